r"""The guarantee of GEGE at a fixed confidence (Kone et al. 2025, Theorem 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.papers.kone2025 import GEGEPACStrategy, ParetoStrategy
from research.benchmark.engines import over_seeds
from research.benchmark.guarantee import WRONG, End, Outcome, outcome, power_report
from research.benchmark.registry import Options, entry
from research.report import Report

DELTA, NOISE, ARMS, GAP = 0.02, 0.5, 120, 0.02
EPSILON, LIMIT = 0.2, 10**8
COLUMNS = ("method", *WRONG, "mean samples")
NOTES = (
    f"{ARMS} arms with the canonical basis as features; one exceeds all others, which "
    f"are equal, by {GAP:g} in both outputs. The noise, of standard deviation "
    f"{NOISE:g}, is the same in both outputs, which the theorems allow. Run k uses "
    "seed k.",
    f"A run is wrong if its answer is not the Pareto set; with epsilon = {EPSILON:g} "
    "if the best arm is not accepted. Runs go on until all is decided or the next "
    f"round would exceed {LIMIT:.0e} samples (equal arms without the best are never "
    "told apart). The printed "
    "sample sizes miss the precision that the proof needs and promise nothing.",
    "Widths are divided by telling GEGE a standard deviation so divided.",
)

Build = Callable[[Pool, float], ParetoStrategy]


@dataclass(frozen=True)
class Method:
    r"""A method under test.

    Args:
        name: Its name in the table.
        build: From the pool and the standard deviation it is told to the strategy.
        exact: Whether the answer must be the Pareto set, or only hold it.
    """

    name: str
    build: Build
    exact: bool = True


def methods() -> list[Method]:
    r"""GEGE exact, with a tolerance, and with the printed sample sizes."""
    both = (True, True)
    return [
        Method(
            "GEGE",
            lambda pool, std: GEGEPACStrategy(
                pool,
                maximize=both,
                noise_std=std,
                delta=DELTA,
                max_observations=LIMIT,
            ),
        ),
        Method(
            f"GEGE, epsilon = {EPSILON:g}",
            lambda pool, std: GEGEPACStrategy(
                pool,
                maximize=both,
                noise_std=std,
                delta=DELTA,
                epsilon=EPSILON,
                max_observations=LIMIT,
            ),
            exact=False,
        ),
        Method(
            "GEGE, printed t_r",
            lambda pool, std: GEGEPACStrategy(
                pool,
                maximize=both,
                noise_std=std,
                delta=DELTA,
                sample_size="printed",
                max_observations=LIMIT,
            ),
        ),
    ]


def simulate(method: Method, options: Options, divisor: float) -> Outcome:
    r"""Runs ``0, ..., options.runs - 1`` of one method with its widths divided."""
    run = partial(_end_of, method.name, divisor)
    found = outcome((method.name,), over_seeds(run, options, method.name), DELTA)
    return replace(found, decided=None)


def _end_of(name: str, divisor: float, seed: int) -> End:
    (method,) = (m for m in methods() if m.name == name)
    values = torch.zeros(ARMS, 1, dtype=torch.float64)
    values[0] = GAP
    strategy = method.build(Pool(torch.eye(ARMS)), NOISE / divisor)
    generator = torch.Generator().manual_seed(seed)

    def measure(rows: Tensor, counts: Tensor) -> Tensor:
        noise = torch.randn(len(rows), 1, generator=generator, dtype=torch.float64)
        y = values[rows] + NOISE * noise / counts.sqrt().view(-1, 1)
        return y.repeat(1, 2)

    run = strategy.simulate(measure, seed)
    above = run.classification.above
    others = bool(above[1:].any()) if method.exact else False
    return End.of(run.classification, others or not bool(above[0]), run.n_used)


@entry("guarantee", "gege", "GEGE at a fixed confidence (Theorem 3)")
def guarantee_gege(options: Options) -> Report:
    r"""GEGE as promised, and the power check."""

    def outcomes(divisor: float) -> list[Outcome]:
        return [simulate(method, options, divisor) for method in methods()]

    return power_report("guarantee gege", NOTES, COLUMNS, outcomes, options)
