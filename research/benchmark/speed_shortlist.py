r"""Whether look-ahead finds the best row where it scores a sample and a shortlist."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from tqdm import tqdm

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.goals import Between, Goal, Levels
from botorch_lse.rules import (
    AbsoluteVolumeChange,
    ContentVariance,
    ExpectedMisclassification,
    LookAhead,
    MutualInformation,
    Random,
    TargetedVariance,
    TruncatedVariance,
    lookahead,
)
from botorch_lse.strategies.composed import ComposedStrategy
from research.benchmark.registry import Options, entry
from research.papers.problems import matern_prior
from research.report import Report, Table

NOISE, BETA, LEVEL = 0.1, 4.0, 0.2
INPUTS = (2, 3)
SIZES = {10_000: 4, 36_000: 1}
"""Rows of the pools, and how many draws there are of each."""
VALUES = (60, 200, 350)
LENGTHSCALES = (0.2, 0.1, 0.15)
"""Of the process in two inputs, by draw; twice as long in more. Short ones are the
hard ones: much is local then, which a sample of targets misses."""
LEAST = 0.99
"""What the row that is found takes off the loss, of what the best row takes, at
least."""


@dataclass(frozen=True)
class Found:
    r"""How good the row is that one decision finds.

    Args:
        ratio: What it takes off the loss, of what the best row takes off.
        is_best: Whether it is the best row, or as good.
        seconds: Processor seconds of the decision.
        exact: Processor seconds of the scores of all rows.
    """

    ratio: float
    is_best: bool
    seconds: float
    exact: float


def cases() -> dict[str, tuple[LookAhead, Goal]]:
    r"""Rules with goals, by their names."""
    one, both = Above(LEVEL), Above(0.0) & Above(-0.1, output=1)
    misclassified, near = ExpectedMisclassification(), TargetedVariance()
    return {
        "TruncatedVariance": (TruncatedVariance(eta=0.3), one),
        "TargetedVariance": (near, one),
        "ExpectedMisclassification": (misclassified, one),
        "ExpectedMisclassification, joint": (
            ExpectedMisclassification(batch="joint"),
            one,
        ),
        "MutualInformation": (MutualInformation(), one),
        "AbsoluteVolumeChange": (AbsoluteVolumeChange(), one),
        "ContentVariance": (ContentVariance(), one),
        "ExpectedMisclassification, a band": (misclassified, Between(0.0, 0.5)),
        "ExpectedMisclassification, 4 levels": (
            misclassified,
            Levels((-0.5, 0.0, 0.3, 0.6)),
        ),
        "ExpectedMisclassification, A & B": (misclassified, both),
        "TargetedVariance, A & B": (near, both),
    }


@entry("speed", "shortlist", "whether look-ahead finds the best row of large pools")
def speed_shortlist(options: Options) -> Report:
    r"""The share of draws in which the best row is found, and the worst ratio."""
    rows = []
    sizes = {2_000: 1} if options.quick else SIZES
    for n_rows, draws in sizes.items():
        each = tqdm(cases(), desc=f"{n_rows:,} rows", disable=None, leave=False)
        for name in each:
            found = [one for d in INPUTS for one in _draws(name, n_rows, d, draws)]
            best = sum(one.is_best for one in found)
            seconds = max(one.seconds for one in found)
            exact = max(one.exact for one in found)
            rows.append(
                (
                    name,
                    f"{n_rows:,}",
                    f"{best} of {len(found)}",
                    f"{min(one.ratio for one in found):.3f}",
                    f"{seconds:.1f}",
                    f"{exact:.1f}",
                )
            )
    columns = ("rule", "rows", "best row found", "worst ratio", "s", "s, all pairs")
    notes = [
        "A decision about one row after 60, 200 or 350 values in two and three inputs, "
        "given model, lengthscales 0.1 to 0.4. The ratio is what the row takes off the "
        "loss over what the best row takes, by the scores of all rows on all targets. "
        "Processor seconds, the longest of the draws.",
    ]
    tables = [Table("Sample and shortlist", columns, rows)]
    return Report("speed shortlist", notes, tables, ())


def _draws(name: str, n_rows: int, d: int, draws: int) -> Iterator[Found]:
    for draw in range(draws):
        yield decision(name, n_rows, d, draw)


def decision(name: str, n_rows: int, d: int, draw: int) -> Found:
    r"""One decision, and the scores of all rows.

    Args:
        name: Of the case.
        n_rows: Rows of the pool, drawn at random.
        d: Inputs.
        draw: Number of the problem.
    """
    rule, goal = cases()[name]
    generator = torch.Generator().manual_seed(draw)
    X = torch.rand(n_rows, d, generator=generator, dtype=torch.float64)
    n, scale = VALUES[draw % 3], LENGTHSCALES[draw % 3] * (1 if d == 2 else 2)
    model = GaussianProcess((matern_prior((scale,) * d),) * goal.facts.n_outputs, NOISE)
    given = {"model": model, "beta": BETA}
    rows = torch.randperm(n_rows, generator=generator)[:n]
    y = torch.stack([_truth(X[rows], j) for j in range(goal.facts.n_outputs)], dim=-1)
    y = y + NOISE * torch.randn(y.shape, generator=generator, dtype=torch.float64)
    pool = Pool(X)
    past = Strategy(pool, goal, rule=Random(), batch_size=n, **given)
    told = past.tell(past.init(), Observations(rows, y.squeeze(-1)))
    strategy = Strategy(pool, goal, rule=rule, **given)
    assert isinstance(strategy, ComposedStrategy)  # which ``Strategy(...)`` makes
    memory = rule.start(told.belief.posterior, BETA)
    belief = replace(told.belief, memory=memory)
    context = strategy.parts.context(belief, rows[:0])
    every = torch.arange(n_rows)
    began = time.process_time()
    found = rule.scores(context, None, every)
    seconds = time.process_time() - began
    with all_pairs():
        began = time.process_time()
        wanted = rule.scores(context, None, every)
        exact = time.process_time() - began
    ratio = float(wanted[found.argmax()] / wanted.max())
    return Found(ratio, ratio > 1 - 1e-9, seconds, exact)


@contextmanager
def all_pairs() -> Iterator[None]:
    r"""While it lasts every row is scored on every target, however many there are."""
    before, lookahead.ALL_PAIRS = lookahead.ALL_PAIRS, 2**60
    try:
        yield
    finally:
        lookahead.ALL_PAIRS = before


def _truth(X: torch.Tensor, output: int) -> torch.Tensor:
    waves = (5 * X[:, 0] + 1.3 * output).sin() * (4 * X[:, 1] + output).cos()
    return waves + 0.3 * X[:, 2:].sum(dim=-1)
