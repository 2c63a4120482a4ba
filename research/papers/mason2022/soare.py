r"""Samples until done with exact widths on Soare's instance (Figures 2a and 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.data.pool import Pool
from botorch_lse.papers.mason2022 import MELKPACStrategy, MILKPACStrategy, PACStrategy
from research.papers.mason2022.linear import (
    Ended,
    ExplicitRule,
    ImplicitRule,
    LinearRuns,
    RKHSWidth,
    run_linear,
    wrong_rows,
)
from research.report import Claim, Table

ARMS, DIMENSION = 100, 25
LEVEL, OMEGA, BOUND, NOISE, DELTA = 0.5, 0.5, 1.0, 1.0, 0.1
LIMIT, QUICK_LIMIT = 1_000_000, 20_000
SPAN = 1e-10
RIDGE = 1e-7
"""The gamma of Appendix F.1."""
EXPLICIT, IMPLICIT = "6a, explicit", "2a and 6b, implicit"


@dataclass(frozen=True, eq=False)
class Samples:
    r"""What one method needed on one form of the instance.

    Args:
        figure: Explicit or implicit.
        instance: ``"printed"`` or ``"spanning"``.
        method: With its width.
        counts: Measurements until done, one per run.
        wrong: Runs with a row on the wrong side.
        unfinished: Runs that reached the limit.
    """

    figure: str
    instance: str
    method: str
    counts: tuple[int, ...]
    wrong: int
    unfinished: int

    @property
    def mean(self) -> float:
        r"""The mean number of measurements."""
        return sum(self.counts) / len(self.counts)


def arms(seed: int, spanning: bool) -> Tensor:
    r"""``100 x 25`` arms; ``theta`` is the first basis vector.

    As printed, arms 3 to 100 are ``cos(pi/4 (1 + xi)) e_1 + sin(pi/4 (1 + xi)) e_2``,
    ``xi`` uniform on (-0.2, 0.2), and all arms span two dimensions. The spanning form
    puts ``e_3, ..., e_25`` in the places of arms 3 to 25.
    """
    generator = torch.Generator().manual_seed(2 * seed)
    xi = 0.4 * torch.rand(ARMS - 2, generator=generator, dtype=torch.float64) - 0.2
    angle = math.pi / 4 * (1 + xi)
    X = torch.zeros(ARMS, DIMENSION, dtype=torch.float64)
    X[0, 0] = X[1, 1] = 1.0
    X[2:, 0], X[2:, 1] = angle.cos(), angle.sin()
    if spanning:
        X[2:DIMENSION] = torch.eye(DIMENSION, dtype=torch.float64)[2:]
    return X


def widths(spanning: bool) -> dict[str, RKHSWidth]:
    r"""The widths of LSE that are compared; where all directions are measured the
    realised information is nearly the bound.
    """
    bound = RKHSWidth(DIMENSION, BOUND, NOISE, DELTA)
    found = {f"gamma_T of Srinivas et al., d = {DIMENSION}": bound}
    if not spanning:
        found["realised information"] = RKHSWidth(None, BOUND, NOISE, DELTA)
    return found


def soare_samples(seeds: int, spanning: bool, limit: int = LIMIT) -> list[Samples]:
    r"""All methods on seeds ``0, ..., seeds - 1``, LSE up to a limit."""
    instance = "spanning" if spanning else "printed"
    X = torch.stack([arms(seed, spanning) for seed in range(seeds)])
    truth = X[..., 0]
    above = truth > LEVEL
    found = []
    for figure, name in ((EXPLICIT, "MELK"), (IMPLICIT, "MILK")):
        ends = []
        for seed in tqdm(range(seeds), desc=name, disable=None, leave=False):
            strategy = _pac(Pool(X[seed]), figure)
            ends.append(run_pac(strategy, truth[seed], seed))
        found.append(_summary(figure, instance, name, ends, above))
    for figure, name in ((EXPLICIT, "LSE"), (IMPLICIT, "LSE_imp")):
        rule = ExplicitRule(LEVEL) if figure == EXPLICIT else ImplicitRule(OMEGA)
        for which, width in widths(spanning).items():
            ends = run_linear(_linear_runs(X, truth), rule, width, limit)
            title = f"{name}, {which}"
            found.append(_summary(figure, instance, title, ends, above))
    return found


def _linear_runs(X: Tensor, truth: Tensor) -> LinearRuns:
    # Coordinates of the span: inner products stay.
    _, sizes, Vh = torch.linalg.svd(X.flatten(0, 1), full_matrices=False)
    streams = [torch.Generator().manual_seed(2 * s + 1) for s in range(len(X))]
    return LinearRuns(X @ Vh[sizes > SPAN * sizes[0]].mT, truth, streams, NOISE)


def _pac(pool: Pool, figure: str) -> PACStrategy:
    if figure == EXPLICIT:
        return MELKPACStrategy(
            pool, LEVEL, bound=BOUND, noise_std=NOISE, gamma=RIDGE, delta=DELTA
        )
    return MILKPACStrategy(
        pool, omega=OMEGA, bound=BOUND, noise_std=NOISE, gamma=RIDGE, delta=DELTA
    )


def run_pac(strategy: PACStrategy, truth: Tensor, seed: int) -> Ended:
    r"""Rounds until every row is decided."""
    state, noise = strategy.init(seed), torch.Generator().manual_seed(2 * seed + 1)
    while not state.is_done:
        batch = strategy.ask(state)
        white = torch.randn(len(batch), generator=noise, dtype=torch.float64)
        y = truth[batch.order] + NOISE * white
        state = strategy.tell(state, batch.observe(y))
    answer = state.classification
    side = torch.zeros(len(truth), dtype=torch.int8)
    side[answer.above], side[answer.below] = ABOVE, BELOW
    return Ended(state.n_used, side)


def _summary(
    figure: str, instance: str, method: str, ends: Sequence[Ended], above: Tensor
) -> Samples:
    wrong = sum(
        wrong_rows(end.side, rows) > 0 for end, rows in zip(ends, above, strict=True)
    )
    counts = tuple(end.measurements for end in ends)
    unfinished = sum(bool((end.side == 0).any()) for end in ends)
    return Samples(figure, instance, method, counts, wrong, unfinished)


def soare_table(found: Sequence[Samples]) -> Table:
    r"""How many measurements each algorithm needs until it is done."""
    rows = [
        (
            s.figure,
            s.instance,
            s.method,
            f"{s.mean:,.0f}",
            f"{min(s.counts):,} to {max(s.counts):,}",
            str(len(s.counts)),
            str(s.wrong),
            str(s.unfinished),
        )
        for s in found
    ]
    columns = ("figure", "instance", "method and width", "mean samples", "range")
    return Table(
        "Figures 2a and 6: samples until every row is decided",
        (*columns, "runs", "wrong runs", "unfinished"),
        rows,
    )


def soare_claims(found: Sequence[Samples]) -> list[Claim]:
    r"""Whether the paper's order appears."""
    claims = []
    for figure, ours, paper in (
        (EXPLICIT, "MELK", "MELK outperforms LSE"),
        (IMPLICIT, "MILK", "MILK greatly outperforms LSE_imp"),
    ):
        group = [s for s in found if s.figure == figure]
        for instance in dict.fromkeys(s.instance for s in group):
            here = [s for s in group if s.instance == instance]
            mine = next(s for s in here if s.method == ours)
            for other in here:
                if other is mine:
                    continue
                ratio = other.mean / mine.mean
                least = "at least " if other.unfinished else ""
                claims.append(
                    Claim(
                        f"{figure}, {instance}: {ours} needs fewer samples than "
                        f"{other.method}",
                        paper,
                        f"{mine.mean:,.0f} against {least}{other.mean:,.0f}: {least}"
                        f"{ratio:.2f} times as many",
                        ratio > 1,
                    )
                )
    return claims
