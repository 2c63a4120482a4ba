r"""The guarantees of the linear strategies with anytime widths."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from botorch_lse.confidence import EmptyRegionWarning
from botorch_lse.data.classification import Classification
from botorch_lse.data.requests import PlanRequest
from botorch_lse.estimators import ArmStatistics
from botorch_lse.goals import Region
from botorch_lse.strategies import (
    LinearStrategy,
    NoiseWarning,
)
from botorch_lse.strategies.linear.algorithm import (
    BurnInPlan,
    LinearAlgorithm,
    LinearBelief,
)
from research.benchmark.engines import over_seeds
from research.benchmark.guarantee import WRONG, End, Outcome, outcome, power_report
from research.benchmark.linear_cases import (
    ARMS,
    BURN_IN_GAP,
    BURN_IN_LIMIT,
    CASES,
    CLEAR,
    DELTA,
    GAP,
    LIMIT,
    NOISE,
    RANK,
    TIES,
    VARIANCES,
)
from research.benchmark.registry import Options, entry
from research.report import Report

NOTES = (
    f"{ARMS} arms of rank {RANK}; run k uses seed k for arms and noise. Near ties: all "
    f"are within {GAP:g} of being decided the other way; few can be decided. Varied "
    f"gaps: {TIES} are, the others' gaps are log-uniform from {CLEAR[0]:g} to "
    f"{CLEAR[1]:g} times a unit, so that a good share is decided.",
    f"Noise of standard deviation {NOISE:g}, up to {LIMIT} measurements. `level` and "
    f"`head`: variances, quadratic in the features, from {VARIANCES[0]:g} to "
    f"{VARIANCES[1]:g}, known or estimated by HEAD in a burn-in of the default size "
    f"(then up to {BURN_IN_LIMIT:,} measurements and ties within {BURN_IN_GAP:.1g}).",
    "A run is wrong if a decided arm is on the wrong side. The chasing form measures, "
    "in batches of a tenth of the data, only the arm whose estimate, judged by the "
    "truth, is nearest to a wrong decision (where pairs are decided with half of the "
    "batch): the sampling that optional stopping fears.",
    "Widths are divided by dividing the noise scales the strategy works with; warnings "
    "are silenced.",
)
COLUMNS = ("instances", "form", *WRONG, "arms decided", "measurements")


def altered(strategy: LinearStrategy, algorithm: LinearAlgorithm) -> LinearStrategy:
    r"""The same strategy with another algorithm."""
    new = replace(strategy)
    # In place of those it would make; a whole simulation asks the parts.
    vars(new)["parts"] = vars(new)["algorithm"] = algorithm
    return new


@dataclass(frozen=True, eq=False)
class NarrowBurnIn(BurnInPlan):
    r"""A burn-in whose noise scales are divided by a number.

    Args:
        divisor: The number.
    """

    divisor: float = 1.0

    def inflated(self, first: ArmStatistics, second: ArmStatistics) -> Tensor:
        r"""``N`` bounds of the variances, divided."""
        return super().inflated(first, second) / self.divisor**2


def narrowed(strategy: LinearStrategy, divisor: float) -> LinearStrategy:
    r"""The same strategy, but all its noise scales are divided by a number.

    Its plans and estimates stay as they are; its widths are divided by the number.
    """
    algorithm = strategy.parts
    plan = algorithm.burn_in
    if plan is not None:
        given = {f.name: getattr(plan, f.name) for f in fields(BurnInPlan)}
        plan = NarrowBurnIn(**given, divisor=divisor)
    noise_var = algorithm.noise_var / divisor**2
    return altered(strategy, replace(algorithm, noise_var=noise_var, burn_in=plan))


@dataclass(frozen=True, eq=False, kw_only=True)
class Chasing(LinearAlgorithm):
    r"""Batches that go where a wrong decision is nearest; else as it was.

    Args:
        above: ``T`` bools: the truth.
        means: ``T x m`` true means.
    """

    above: Tensor
    means: Tensor

    def planned_batch(self, belief: LinearBelief, request: PlanRequest) -> Tensor:
        r"""``N`` counts, all of one row once nothing else must be measured."""
        burning = belief.burn_in is not None and belief.burn_in.lasts
        if burning or not belief.information.is_complete:
            return super().planned_batch(belief, request)
        error = (belief.mean - self.means).sum(dim=-1)
        wrongness = torch.where(self.above, -error, error) / belief.sigma
        chased = belief.open[wrongness[belief.open].argmax()]
        counts = torch.zeros_like(request.left)
        if not isinstance(self.goal, Region):  # pairs need their other arm as well
            half = replace(request, size=request.size // 2)
            counts = super().planned_batch(belief, half)
        counts[chased] += request.size - counts.sum()
        return counts


def chasing(strategy: LinearStrategy, above: Tensor, means: Tensor) -> LinearStrategy:
    r"""The same strategy, but its batches go where a wrong decision is nearest."""
    parts = strategy.parts
    given = {f.name: getattr(parts, f.name) for f in fields(parts)}
    return altered(strategy, Chasing(**given, above=above, means=means))


def is_wrong(answer: Classification, above: Tensor) -> bool:
    r"""Whether some decided arm is on the wrong side."""
    return bool(((answer.above & ~above) | (answer.below & above)).any())


def noisy(
    means: Tensor, noise_var: Tensor, seed: int
) -> Callable[[Tensor, Tensor], Tensor | tuple[Tensor, Tensor]]:
    r"""Means of Gaussian replicates; for one output with their estimated variances."""
    generator = torch.Generator().manual_seed(2 * seed + 1)
    scatters = np.random.default_rng(2 * seed + 1)

    def measure(rows: Tensor, counts: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        shape = (len(rows), means.shape[1])
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        scale = (noise_var[rows] / counts).sqrt()
        y = means[rows] + scale.unsqueeze(-1) * noise
        if means.shape[1] > 1:
            return y
        freedom = (counts - 1).clamp_min(1).double()
        scatter = torch.from_numpy(scatters.chisquare(freedom.numpy())) * (counts > 1)
        return y[:, 0], noise_var[rows] * scatter / freedom / counts

    return measure


def simulate(
    name: str, instances: str, chases: bool, options: Options, divisor: float
) -> Outcome:
    r"""Runs ``0, ..., options.runs - 1`` of one form with its widths divided."""
    form = "chasing the noise" if chases else "designs"
    run = partial(_end_of, name, instances, chases, divisor)
    ends = over_seeds(run, options, f"{instances}, {form}")
    return outcome((instances, form), ends, DELTA)


def _end_of(name: str, instances: str, chases: bool, divisor: float, seed: int) -> End:
    case = CASES[name][instances]
    X = case.arms(seed)
    strategy = narrowed(case.build(X), divisor)
    means = X[:, : strategy.m]
    above = case.above(means)
    if chases:
        strategy = chasing(strategy, above, means)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        warnings.simplefilter("ignore", EmptyRegionWarning)
        run = strategy.simulate(noisy(means, case.noise_var(X), seed), seed)
    answer = run.classification
    return End.of(answer, is_wrong(answer, above), run.n_used)


def linear_report(name: str, options: Options) -> Report:
    r"""All forms as promised, and the power check."""

    def outcomes(divisor: float) -> list[Outcome]:
        return [
            simulate(name, instances, chases, options, divisor)
            for instances in CASES[name]
            for chases in (False, True)
        ]

    return power_report(f"guarantee {name}", NOTES, COLUMNS, outcomes, options)


ENTRIES = {
    "melk_linear": "MELK with anytime widths, also chasing the noise",
    "milk_linear": "MILK with anytime widths, also chasing the noise",
    "hrage_linear": "Best arm with anytime widths, chasing the noise",
    "hrage_linear_level": "Level sets with unequal known variances",
    "hrage_linear_head": "Best arm with variances from a burn-in",
    "hrage_linear_head_level": "Level sets, variances from a burn-in",
    "gege_linear": "Pareto sets with anytime widths, chasing the noise",
}
for _name, _summary in ENTRIES.items():
    entry("guarantee", _name, _summary)(partial(linear_report, _name))
