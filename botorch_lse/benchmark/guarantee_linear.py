r"""The guarantees of the linear strategies with anytime widths."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.benchmark.guarantee import POWER
from botorch_lse.benchmark.linear_cases import (
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
    Case,
)
from botorch_lse.benchmark.registry import Options, entry
from botorch_lse.benchmark.report import Report, Table
from botorch_lse.benchmark.statistics import VIOLATED, WrongFraction
from botorch_lse.confidence import EmptyRegionWarning
from botorch_lse.problem import Classification
from botorch_lse.strategies import (
    HRAGELinearStrategy,
    LinearStrategy,
    NoiseWarning,
)
from botorch_lse.strategies.linear.belief import LinearBelief
from botorch_lse.strategies.linear.hrage import BurnInBelief
from botorch_lse.strategies.rule import Request

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
COLUMNS = (
    "instances",
    "form",
    "runs",
    "wrong fraction",
    "95 % Clopper-Pearson",
    "delta",
    "verdict",
    "arms decided",
    "measurements",
)


def altered(strategy: LinearStrategy, name: str, **methods: Any) -> LinearStrategy:
    r"""The same strategy with some methods replaced."""
    kind = type(strategy)
    options = {f.name: getattr(strategy, f.name) for f in fields(kind) if f.init}
    new: LinearStrategy = type(f"{name}{kind.__name__}", (kind,), methods)(**options)
    return new


def narrowed(strategy: LinearStrategy, divisor: float) -> LinearStrategy:
    r"""The same strategy, but all its noise scales are divided by a number.

    Its plans and estimates stay as they are; its widths are divided by the number.
    """
    kind = type(strategy)

    def first_noise_var(self: LinearStrategy) -> Tensor:
        return kind.first_noise_var(self) / divisor**2

    def inflated(self: HRAGELinearStrategy, *stages: Any) -> Tensor:
        return kind.inflated(self, *stages) / divisor**2  # type: ignore[attr-defined]

    methods: dict[str, Any] = {"first_noise_var": first_noise_var}
    if issubclass(kind, HRAGELinearStrategy):
        methods["inflated"] = inflated
    return altered(strategy, "Narrow", **methods)


def chasing(strategy: LinearStrategy, above: Tensor, means: Tensor) -> LinearStrategy:
    r"""The same strategy, but its batches go where a wrong decision is nearest."""
    kind = type(strategy)

    def planned_batch(
        self: LinearStrategy, belief: LinearBelief, request: Request
    ) -> Tensor:
        burning = isinstance(belief, BurnInBelief) and belief.stage < 2
        if burning or not belief.information.is_complete:
            return kind.planned_batch(self, belief, request)
        error = (belief.mean - means).sum(dim=-1)
        wrongness = torch.where(above, -error, error) / belief.sigma
        chased = belief.open[wrongness[belief.open].argmax()]
        counts = torch.zeros_like(request.left)
        if not self.uses_items:  # pairs need their other arm as well
            half = replace(request, size=request.size // 2)
            counts = kind.planned_batch(self, belief, half)
        counts[chased] += request.size - counts.sum()
        return counts

    return altered(strategy, "Chasing", planned_batch=planned_batch)


def is_wrong(answer: Classification, above: Tensor) -> bool:
    r"""Whether some decided arm is on the wrong side."""
    return bool(((answer.above & ~above) | (answer.below & above)).any())


@dataclass(frozen=True)
class Outcome:
    r"""What the runs of one form gave.

    Args:
        instances: ``"near ties"`` or ``"varied gaps"``.
        form: ``"designs"`` or ``"chasing the noise"``.
        wrong: The wrong runs.
        decided: Mean share of decided arms.
        samples: Mean number of measurements.
    """

    instances: str
    form: str
    wrong: WrongFraction
    decided: float
    samples: float

    def row(self) -> tuple[str, ...]:
        r"""The cells of the table."""
        low, high = self.wrong.interval
        return (
            self.instances,
            self.form,
            str(self.wrong.runs),
            f"{self.wrong.fraction:.3f}",
            f"[{low:.3f}, {high:.3f}]",
            f"{self.wrong.delta:g}",
            self.wrong.verdict,
            f"{self.decided:.1%}",
            f"{self.samples:,.0f}",
        )


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


def outcome(
    instances: str, case: Case, chases: bool, runs: int, divisor: float
) -> Outcome:
    r"""Runs ``0, ..., runs - 1`` of one form with its widths divided."""
    wrong, decided, samples = 0, 0.0, 0
    form = "chasing the noise" if chases else "designs"
    title = f"{instances}, {form}"
    for seed in tqdm(range(runs), desc=title, disable=None, leave=False):
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
        wrong += is_wrong(run.classification, above)
        decided += 1.0 - float(run.classification.undecided.double().mean())
        samples += run.n_used
    fraction = WrongFraction(wrong, runs, DELTA)
    return Outcome(instances, form, fraction, decided / runs, samples / runs)


def linear_report(name: str, options: Options) -> Report:
    r"""All forms as promised, and the power check."""

    def outcomes(divisor: float) -> list[Outcome]:
        return [
            outcome(instances, case, chases, options.runs, divisor)
            for instances, case in CASES[name].items()
            for chases in (False, True)
        ]

    title = f"guarantee {name}"
    if options.divide_widths is not None:
        scaled = outcomes(options.divide_widths)
        text = f"All widths divided by {options.divide_widths:g}"
        return Report(
            title, NOTES, [_table(text, scaled)], [f"{text}: {_all(scaled)}."]
        )
    whole, power = outcomes(1.0), outcomes(POWER)
    seen = all(o.wrong.verdict == VIOLATED for o in power)
    check = "violated, as it must be" if seen else "NOT violated: no power"
    tables = [
        _table("Whole widths", whole),
        _table(f"Power check: all widths divided by {POWER:g}", power),
    ]
    verdict = [f"Guarantee: {_all(whole)}.", f"Power check: {check}."]
    return Report(title, NOTES, tables, verdict)


def _table(title: str, outcomes: list[Outcome]) -> Table:
    return Table(title, COLUMNS, [outcome.row() for outcome in outcomes])


def _all(outcomes: list[Outcome]) -> str:
    verdicts = {o.wrong.verdict for o in outcomes}
    return VIOLATED if VIOLATED in verdicts else " and ".join(sorted(verdicts))


@entry("guarantee", "melk_linear", "MELK with anytime widths, also chasing the noise")
def guarantee_melk_linear(options: Options) -> Report:
    r"""Level sets."""
    return linear_report("melk_linear", options)


@entry("guarantee", "milk_linear", "MILK with anytime widths, also chasing the noise")
def guarantee_milk_linear(options: Options) -> Report:
    r"""Shares of the maximum."""
    return linear_report("milk_linear", options)


@entry("guarantee", "hrage_linear", "Best arm with anytime widths, chasing the noise")
def guarantee_hrage_linear(options: Options) -> Report:
    r"""The best arm."""
    return linear_report("hrage_linear", options)


@entry("guarantee", "hrage_linear_level", "Level sets with unequal known variances")
def guarantee_hrage_linear_level(options: Options) -> Report:
    r"""Level sets of H-RAGE, variances known."""
    return linear_report("hrage_linear_level", options)


@entry("guarantee", "hrage_linear_head", "Best arm with variances from a burn-in")
def guarantee_hrage_linear_head(options: Options) -> Report:
    r"""The best arm, variances estimated."""
    return linear_report("hrage_linear_head", options)


@entry("guarantee", "hrage_linear_head_level", "Level sets, variances from a burn-in")
def guarantee_hrage_linear_head_level(options: Options) -> Report:
    r"""Level sets, variances estimated."""
    return linear_report("hrage_linear_head_level", options)


@entry("guarantee", "gege_linear", "Pareto sets with anytime widths, chasing the noise")
def guarantee_gege_linear(options: Options) -> Report:
    r"""Pareto sets."""
    return linear_report("gege_linear", options)
