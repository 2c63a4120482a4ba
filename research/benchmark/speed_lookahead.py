r"""One decision of each rule that looks ahead, against truncated variance's."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from botorch_lse.functional.lookahead import (
    expected_misclassification,
    mutual_information,
    targeted_variance,
)
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.rules.lookahead import Reductions
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, in_fresh_process, measured, target
from research.papers.problems import grid, matern_prior
from research.report import Report, Table

OBSERVATIONS, NOISE, LEVEL = 50, 0.1, 0.3
SMALL, LARGE, HUGE, LARGEST = 50, 100, 316, 1000
"""Sides of the grids: 2,500, 10,000, 100,000 and a million rows, all of them candidates
and targets."""
TURNS = {SMALL: 5, LARGE: 5, HUGE: 1, LARGEST: 1}
"""How often each loss is evaluated on the grids, in turns; the fastest counts."""
BETA, ETA = 9.0, 0.1
LENGTHSCALES = (0.1, 0.2)
SECONDS = {SMALL: 0.3, LARGE: 4.0, HUGE: 10.0, LARGEST: 10.0}
RATIO = 1.3
"""What a decision may take, and over truncated variance."""
VOLUME = "AbsoluteVolumeChange"
REFERENCE = "TruncatedVariance"
MISCLASSIFICATION = "ExpectedMisclassification"

Decision = Callable[[Reductions], Tensor]


@entry("speed", "lookahead", "one decision of each rule on 2,500 to 10^6 rows")
def speed_lookahead(options: Options) -> Report:
    r"""Seconds, ratios and memory of each loss."""
    rows = []
    data: dict[str, float] = {}
    turns = {SMALL: TURNS[SMALL]} if options.quick else TURNS
    for side, n in turns.items():
        seconds, peak = in_fresh_process(times, side, n)
        for name, took in seconds.items():
            ratio = took / seconds[REFERENCE]
            data[f"{name} {side**2}"] = ratio
            rows.append(
                (
                    f"{name}, {side**2:,} x {side**2:,}",
                    target(f"{took:.2f}", took <= SECONDS[side]),
                    target(f"{ratio:.2f}", ratio <= RATIO),
                )
            )
        rows.append((f"all, {side**2:,}, peak memory", f"{peak / MIB:.0f} MiB", ""))
    columns = ("rule, candidates x targets", "seconds", "ratio")
    notes = [
        f"{OBSERVATIONS} observations, Matern-5/2, every row candidate and target. "
        "Seconds of the processor, one core; the fastest of "
        f"{TURNS[SMALL]} on {SMALL**2:,} rows and {TURNS[LARGE]} on {LARGE**2:,}, "
        "where losses take turns in one process. "
        f"The ratio is that to {REFERENCE} in the same process. Targets: at most "
        + ", ".join(f"{s:g} s on {side**2:,} rows" for side, s in SECONDS.items())
        + f", and {RATIO:g} times. Memory above that of the libraries.",
        "Every row is scored on a sample of the targets, and a shortlist on all. "
        f"On {LARGEST**2:,} two rules are measured.",
    ]
    tables = [Table("Look ahead", columns, rows)]
    return Report("speed lookahead", notes, tables, (), data)


def decisions() -> dict[str, Decision]:
    r"""What the rules compute, by their names."""

    def summed(loss: Callable, reductions: Reductions) -> Tensor:  # type: ignore[type-arg]
        posterior = reductions.posterior
        return reductions.summed(
            lambda t: loss(posterior.mean[t] - LEVEL, posterior.variance[t])
        )

    return {
        REFERENCE: lambda reductions: reductions.truncated(BETA, ETA),
        "TargetedVariance": partial(summed, targeted_variance),
        MISCLASSIFICATION: partial(summed, expected_misclassification),
        "MutualInformation": partial(summed, mutual_information),
        VOLUME: lambda reductions: reductions.volume_change(LEVEL),
    }


def times(side: int, turns: int) -> tuple[dict[str, float], int]:
    r"""Decisions, which take turns, on a grid.

    Returns:
        The least processor seconds of each, and the peak memory.
    """
    found = decisions()
    if side == LARGEST:
        found = {name: found[name] for name in (REFERENCE, MISCLASSIFICATION)}
    seconds = dict.fromkeys(found, float("inf"))
    with measured() as cost:
        reductions = problem(side)
        for _ in range(turns):
            for name, decide in found.items():
                began = time.process_time()
                decide(reductions).argmax()
                seconds[name] = min(seconds[name], time.process_time() - began)
    return seconds, cost.peak


def problem(side: int) -> Reductions:
    r"""Every row of a grid a candidate and a target, after some observations."""
    X, prior = grid(side), matern_prior(LENGTHSCALES)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randperm(len(X), generator=generator)[:OBSERVATIONS]
    noise_var = torch.full((len(X),), NOISE**2, dtype=torch.float64)
    y = (6.0 * X[rows].sum(dim=-1)).sin()
    posterior = PoolPosterior.start(prior, X).observe(rows, y, noise_var[rows])
    every = torch.arange(len(X))
    return Reductions(posterior, every, every, noise_var)
