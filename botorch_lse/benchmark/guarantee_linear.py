r"""The guarantees of the linear strategies with anytime widths."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.benchmark.guarantee import POWER
from botorch_lse.benchmark.registry import Options, entry
from botorch_lse.benchmark.report import Report, Table
from botorch_lse.benchmark.statistics import VIOLATED, WrongFraction
from botorch_lse.confidence import EmptyRegionWarning
from botorch_lse.pareto import pareto_mask
from botorch_lse.problem import Classification, Pool
from botorch_lse.strategies import (
    GEGELinearStrategy,
    HRAGELinearStrategy,
    LinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
    NoiseWarning,
)
from botorch_lse.strategies.base import Request
from botorch_lse.strategies.linear.belief import LinearBelief

DELTA, NOISE, ARMS, RANK, GAP, LEVEL, OMEGA = 0.1, 1.0, 12, 4, 0.01, 0.5, 0.5
LIMIT = 3000
NOTES = (
    f"{ARMS} arms of rank {RANK}, all within {GAP:g} of being decided the other way, "
    f"noise of standard deviation {NOISE:g}; run k uses seed k for arms and noise. "
    f"Runs go on to {LIMIT} measurements, in which few arms can be decided.",
    "A run is wrong if a decided arm is on the wrong side. The chasing form measures, "
    "in batches of a tenth of the data, only the arm whose estimate, judged by the "
    "truth, is nearest to a wrong decision (where pairs are decided with half of the "
    "batch): the sampling that optional stopping fears.",
    "Widths are divided by telling a noise so divided; warnings are silenced.",
)
COLUMNS = (
    "form",
    "runs",
    "wrong fraction",
    "95 % Clopper-Pearson",
    "delta",
    "verdict",
    "arms decided",
    "measurements",
)

Build = Callable[[Tensor, float], LinearStrategy]
IsRight = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    r"""One strategy under test.

    Args:
        arms: From a seed to ``N x h`` features; the means are the first columns.
        build: From features and the noise that is told to the strategy.
        above: From ``N x m`` means to the right answer.
    """

    arms: Callable[[int], Tensor]
    build: Build
    above: IsRight


def near(
    centre: float, first: float | None, columns: int = 1
) -> Callable[[int], Tensor]:
    r"""Arms whose first columns are within ``GAP`` of ``centre``, the others normal.

    Args:
        centre: What the means are near to.
        first: The mean of the first arm, if it is another.
        columns: How many columns are means.
    """

    def arms(seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(2 * seed)
        X = torch.randn(ARMS, RANK, generator=generator, dtype=torch.float64)
        spread = torch.rand(ARMS, columns, generator=generator, dtype=torch.float64)
        X[:, :columns] = centre + GAP * (2 * spread - 1)
        if first is not None:
            X[0, :columns] = first
        return X

    return arms


CASES = {
    "melk_linear": Case(
        near(LEVEL, None),
        lambda X, std: MELKLinearStrategy(
            Pool(X), LEVEL, noise_std=std, delta=DELTA, max_observations=LIMIT
        ),
        lambda means: means[:, 0] > LEVEL,
    ),
    "milk_linear": Case(
        near(OMEGA, 1.0),
        lambda X, std: MILKLinearStrategy(
            Pool(X), omega=OMEGA, noise_std=std, delta=DELTA, max_observations=LIMIT
        ),
        lambda means: means[:, 0] > OMEGA * means.max(),
    ),
    "hrage_linear": Case(
        near(LEVEL, None),
        lambda X, std: HRAGELinearStrategy(
            Pool(X), noise_std=std, delta=DELTA, max_observations=LIMIT
        ),
        lambda means: means[:, 0] == means.max(),
    ),
    "gege_linear": Case(
        near(LEVEL, None, 2),
        lambda X, std: GEGELinearStrategy(
            Pool(X),
            maximize=(True, True),
            noise_std=std,
            delta=DELTA,
            max_observations=LIMIT,
        ),
        pareto_mask,
    ),
}


def chasing(strategy: LinearStrategy, above: Tensor, means: Tensor) -> LinearStrategy:
    r"""The same strategy, but its batches go where a wrong decision is nearest."""
    kind = type(strategy)

    def planned_batch(self: LinearStrategy, belief: LinearBelief, request: Request):  # type: ignore[no-untyped-def]
        if not belief.information.is_complete:
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

    chaser = type(f"Chasing{kind.__name__}", (kind,), {"planned_batch": planned_batch})
    options = {f.name: getattr(strategy, f.name) for f in fields(kind) if f.init}
    return chaser(**options)


def is_wrong(answer: Classification, above: Tensor) -> bool:
    r"""Whether some decided arm is on the wrong side."""
    return bool(((answer.above & ~above) | (answer.below & above)).any())


@dataclass(frozen=True)
class Outcome:
    r"""What the runs of one form gave.

    Args:
        form: ``"designs"`` or ``"chasing the noise"``.
        wrong: The wrong runs.
        decided: Mean share of decided arms.
        samples: Mean number of measurements.
    """

    form: str
    wrong: WrongFraction
    decided: float
    samples: float

    def row(self) -> tuple[str, ...]:
        r"""The cells of the table."""
        low, high = self.wrong.interval
        return (
            self.form,
            str(self.wrong.runs),
            f"{self.wrong.fraction:.3f}",
            f"[{low:.3f}, {high:.3f}]",
            f"{self.wrong.delta:g}",
            self.wrong.verdict,
            f"{self.decided:.1%}",
            f"{self.samples:,.0f}",
        )


def outcome(case: Case, chases: bool, runs: int, divisor: float) -> Outcome:
    r"""Runs ``0, ..., runs - 1`` of one form with its widths divided."""
    wrong, decided, samples = 0, 0.0, 0
    form = "chasing the noise" if chases else "designs"
    for seed in tqdm(range(runs), desc=form, disable=None, leave=False):
        X = case.arms(seed)
        strategy = case.build(X, NOISE / divisor)
        means = X[:, : strategy.m]
        above = case.above(means)
        if chases:
            strategy = chasing(strategy, above, means)
        generator = torch.Generator().manual_seed(2 * seed + 1)

        def measure(
            rows: Tensor,
            counts: Tensor,
            means: Tensor = means,
            generator: torch.Generator = generator,
        ) -> Tensor:
            shape = (len(rows), means.shape[1])
            noise = torch.randn(shape, generator=generator, dtype=torch.float64)
            y = means[rows] + NOISE * noise / counts.sqrt().view(-1, 1)
            return y if means.shape[1] > 1 else y[:, 0]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseWarning)
            warnings.simplefilter("ignore", EmptyRegionWarning)
            run = strategy.simulate(measure, seed)
        wrong += is_wrong(run.classification, above)
        decided += 1.0 - float(run.classification.undecided.double().mean())
        samples += run.n_used
    fraction = WrongFraction(wrong, runs, DELTA)
    return Outcome(form, fraction, decided / runs, samples / runs)


def linear_report(name: str, options: Options) -> Report:
    r"""Both forms as promised, and the power check."""
    case = CASES[name]

    def outcomes(divisor: float) -> list[Outcome]:
        return [outcome(case, c, options.runs, divisor) for c in (False, True)]

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


@entry("guarantee", "gege_linear", "Pareto sets with anytime widths, chasing the noise")
def guarantee_gege_linear(options: Options) -> Report:
    r"""Pareto sets."""
    return linear_report("gege_linear", options)
