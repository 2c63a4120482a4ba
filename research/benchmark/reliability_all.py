r"""How many runs until a failure probability is known, ours beside the literature's."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import mean, median

import torch

from botorch_lse.confidence.calibration import CalibrationWarning
from botorch_lse.data.excursion_volume import (
    CONFIDENCE,
    in_quadrature,
    proportion_limits,
)
from botorch_lse.strategies import (
    Above,
    ContentKnown,
    ContentStop,
    ExpectedFeasibility,
    GaussianProcess,
    MinimumU,
    Rule,
    State,
    Strategy,
    UFunction,
    extended,
)
from botorch_lse.strategies.algorithm import CONTENT
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.benchmark.reliability_problems import CASES, RARE, Case
from research.benchmark.stops import MaximumFeasibility
from research.report import Report, Table

SEEDS, QUICK_SEEDS = 10, 1
TOL = 0.05
"""The error that counts as none: of the estimate, against the pool's own labels."""
LIMIT = 450
"""A run ends after so many measurements, known or not; where others needed more, after
as many as they did."""
GROWTH = 1.05
"""Hyper-parameters are learnt anew once there are so many times as many runs."""
FEW = 12
"""Runs of the initial design of published AK-MCS."""
RARE_ROWS, MORE_ROWS, VARIATION = 3_000, 3_000, 0.1
"""Rows of the first pool of a rare event, and those that each extension adds until the
coefficient of variation of the pool as a sample is at most the last."""
RARE_LIMIT = 900
"""A run of a rare event ends after so many measurements, known or not."""


@dataclass(frozen=True)
class Method:
    r"""A way to choose runs and to stop.

    Args:
        rule: By which runs are chosen; ``None``: the default.
        stop: By which it ends.
        n_initial: Runs of the initial design; ``None``: the default.
        noise: The standard deviation of the noise of a run, as a share of that of the
            pool's values; the model has to learn it. 0: none, as the model is told.
    """

    rule: Rule | None
    stop: float | ContentStop
    n_initial: int | None = None
    noise: float = 0.0


OURS, OURS_FEW, U, EFF = "ours", f"ours, {FEW} first", "U", "EFF"
NOISE, NOISY_TOL = 0.05, 0.1
"""Of the method with noise: the noise, as a share of the deviation of the values, and
the error that counts as none."""
NOISY = f"ours, noise {NOISE:.0%}"
METHODS = {
    OURS: Method(None, TOL),
    OURS_FEW: Method(None, TOL, FEW),
    NOISY: Method(None, NOISY_TOL, noise=NOISE),
    U: Method(UFunction(), MinimumU()),
    EFF: Method(ExpectedFeasibility(), MaximumFeasibility()),
}
NOISY_CASES = (
    "four-branch, k = 6",
    "four-branch, k = 7",
    "oscillator",
    "multimodal",
)
"""The cheap cases; published runs have no noise."""
QUICK_CASES = ("four-branch, k = 7",)
HALVED, NO_MORE, COVERED = 3, 6, 0.9
"""The targets: on how many cases at most half of the best published effort, on how many
no more than it; the share of runs whose interval holds the truth."""

NOTES = (
    "Model learnt (SingleTaskGP), no noise, one run at a time, the initial design of "
    f"10 d rows included in `runs` (`{OURS_FEW}`: of {FEW}, as in published runs). The "
    f"model is fitted again after {GROWTH - 1:.0%} more runs. All methods get the same "
    "pool of independent draws (run k: seed k) and the same model; they differ in rule "
    "and stop.",
    f"`{OURS}`: the default rule, `content_tol={TOL}`. `{U}`: AK-MCS, until "
    f"min U >= 2. `{EFF}`: expected feasibility, until its maximum is at most 1e-3.",
    f"`{NOISY}`: `content_tol={NOISY_TOL}`, each run with noise of {NOISE:.0%} of the "
    "standard deviation of the pool's values, which the model has to learn.",
    "`error` is against the pool's own labels, as published errors are; `known from` "
    f"is the first run from which the estimate stays within {TOL:.0%} until the end.",
    f"Rare events (`{OURS_FEW}`) begin with a pool of {RARE_ROWS:,} draws, which is "
    f"extended by {MORE_ROWS:,} rows where the model sees the event, once its error as "
    "a sample is what is not known (`ContentKnown(..., until_sampled=True)`), until "
    f"that is at most {VARIATION:.0%}. `error` is against the labels of the last pool.",
    "`published`: the fewest runs that others report with an error below 5 %, on pools "
    "and initial designs of their own; what they report was read, not run.",
    "`covers`: in how many runs the 95 % interval at the end holds the share of the "
    "pool: the posterior's, which is right if the model is, widened by what the "
    "estimate has moved in the last five rounds or tenth of all rounds, with noise in "
    "more (`content().widened`); in brackets without that. `P within`: in how many the "
    "limits by model and pool together (`content().combined`) hold the reference.",
)


@dataclass(frozen=True)
class Job:
    r"""A run to be made.

    Args:
        case: A name of ``CASES`` or ``RARE``.
        method: One of ``METHODS``.
        seed: Of pool and run.
    """

    case: str
    method: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""How a run ended.

    Args:
        job: What was run.
        n_used: Measurements.
        stopped: The stop reason.
        estimate: The estimate at the end.
        truth: The share of the pool that fails.
        known_from: After how many measurements the estimate was within the tolerance
            for good; ``limit_of(case) + 1`` if it was not at the end.
        low: The lower end of the posterior's interval; nan without one.
        high: The upper end.
        wide_low: The lower end of the widened interval; nan without one.
        wide_high: Its upper end.
    """

    job: Job
    n_used: int
    stopped: str
    estimate: float
    truth: float
    known_from: int
    low: float
    high: float
    wide_low: float
    wide_high: float

    @property
    def error(self) -> float:
        r"""The error of the estimate as a share of the truth."""
        return abs(self.estimate - self.truth) / self.truth

    @property
    def covers(self) -> bool:
        r"""Whether the widened interval holds the truth."""
        return self._holds(self.wide_low, self.wide_high)

    @property
    def model_covers(self) -> bool:
        r"""Whether the model's own interval holds the truth."""
        return self._holds(self.low, self.high)

    def _holds(self, low: float, high: float) -> bool:
        slack = 1e-9  # sums are rounded
        return low - slack <= self.truth <= high + slack


def limit_of(case: str) -> int:
    r"""After how many measurements a run of a case ends at the latest."""
    if case in RARE:
        return RARE_LIMIT
    return max(LIMIT, CASES[case].effort or 0)


def run(job: Job, limit: int | None = None) -> list[Run]:
    r"""Run a job.

    Args:
        job: What to run.
        limit: After how many measurements it ends at the latest; default
            ``limit_of(job.case)``.
    """
    limit = limit_of(job.case) if limit is None else limit
    if job.case in RARE:
        return [rare_run(job, limit)]
    case, method = CASES[job.case], METHODS[job.method]
    pool = case.pool(job.seed)
    values = case.f(pool.X)
    truth = float((values > 0).double().mean())
    sigma = method.noise * float(values.std())
    generator = torch.Generator().manual_seed(job.seed)
    noise_std = None if sigma else 0.0
    strategy = Strategy(
        pool,
        Above(0.0),
        model=GaussianProcess(
            noise_std=noise_std, refit=GROWTH, n_initial=method.n_initial
        ),
        rule=method.rule,
        content_tol=method.stop,
        max_observations=limit,
    )
    state, last_wrong = strategy.init(seed=job.seed), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        while not state.is_done:
            batch = strategy.ask(state)
            y = values[batch.order]
            if sigma:
                y = y + sigma * torch.randn(len(y), generator=generator).to(y)
            state = strategy.tell(state, batch.observe(y))
            estimate = state.classification.content().estimate
            if abs(estimate - truth) > TOL * truth:
                last_wrong = state.n_used
    is_wrong_at_end = last_wrong == state.n_used
    known_from = limit + 1 if is_wrong_at_end else last_wrong + 1
    return [_ended(job, state, truth, known_from)]


def rare_run(job: Job, limit: int) -> Run:
    r"""Run a job on a rare event, with a pool that grows where the event is.

    Args:
        job: What to run.
        limit: After how many measurements it ends at the latest.
    """
    case, method = RARE[job.case], METHODS[job.method]
    pool = replace(case, rows=RARE_ROWS).pool(job.seed)
    model = GaussianProcess(
        noise_std=0.0,
        refit=GROWTH,
        n_initial=method.n_initial,
        needs_both_sides=False,  # of the first rows none fails
    )
    rule = ContentKnown(TOL, until_sampled=True)
    strategy = Strategy(
        pool, Above(0.0), model=model, content_tol=rule, max_observations=limit
    )
    state = strategy.init(seed=job.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        while state.n_used < limit:
            strategy = state.strategy
            while not state.is_done:
                batch = strategy.ask(state)
                y = case.f(batch.pool.X[batch.order])
                state = strategy.tell(state, batch.observe(y))
            content = state.content()
            if content.estimate > 0 and content.variation <= VARIATION:
                break
            state = extended(state, MORE_ROWS)
    rows = state.strategy.pool
    truth = float(rows.mass[case.f(rows.X) > 0].sum())
    found = _ended(job, state, truth, limit + 1)
    # Of earlier pools the truth was another one.
    return found if found.error > TOL else replace(found, known_from=found.n_used)


def _ended(job: Job, state: State, truth: float, known_from: int) -> Run:
    content = state.content()
    low, high = content.posterior or (math.nan, math.nan)
    wide_low, wide_high = content.widened or (math.nan, math.nan)
    return Run(
        job,
        state.n_used,
        str(state.stop_reason),
        content.estimate,
        truth,
        known_from,
        low,
        high,
        wide_low,
        wide_high,
    )


@entry("reliability", "all", "runs until a failure probability is known to 5 %")
def reliability(options: Options) -> Report:
    r"""All cases, or with ``--quick`` one of them."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    runs = [*product(METHODS, CASES), *product((OURS_FEW,), RARE)]
    if options.quick:
        runs = [*product(METHODS, QUICK_CASES)]
    runs = [(m, case) for m, case in runs if m != NOISY or case in NOISY_CASES]
    # Seed by seed, so that what ended early is balanced.
    order = product(range(seeds), runs)
    jobs = [Job(case, method, seed) for seed, (method, case) in order]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""Tables, targets and the runs themselves."""
    data = {"runs": [run.record() for run in runs]}
    tables = [efforts_table(runs), targets_table(runs)]
    return Report("reliability", NOTES, tables, data=data)


def chosen(runs: Sequence[Run], case: str, method: str) -> list[Run]:
    r"""The runs of one method on one case."""
    return [run for run in runs if (run.job.case, run.job.method) == (case, method)]


def efforts_table(runs: Sequence[Run]) -> Table:
    r"""Runs and errors of each method on each case."""
    rows = []
    for name, case in {**CASES, **RARE}.items():
        for method in METHODS:
            some = chosen(runs, name, method)
            if not some:
                continue
            used = sorted(run.n_used for run in some)
            known = median(run.known_from for run in some)
            rows.append(
                (
                    name,
                    method,
                    len(some),
                    f"{median(used):g} ({used[0]} to {used[-1]})",
                    f"{known:g}" if known <= limit_of(name) else "never",
                    f"{mean(run.error for run in some):.1%}",
                    f"{max(run.error for run in some):.1%}",
                    f"{sum(run.covers for run in some)} "
                    f"({sum(run.model_covers for run in some)}) of {len(some)}",
                    _held(some, case) if name in CASES else "",
                    ", ".join(sorted({run.stopped for run in some})),
                    f"{case.effort} ({case.by})",
                    f"{mean(run.estimate for run in some):.3g}",
                    f"{case.probability:.3g}",
                )
            )
    columns = (
        "case",
        "method",
        "seeds",
        "runs, median (all)",
        "known from",
        "error",
        "worst",
        "covers",
        "P within",
        "stopped",
        "published",
        "estimate",
        "reference",
    )
    return Table("Runs until the failure probability is known", columns, rows)


def _held(runs: Sequence[Run], case: Case) -> str:
    r"""In how many runs model and pool together held the reference."""
    held = 0
    for run in runs:
        pool = proportion_limits(run.estimate, case.rows, CONFIDENCE)
        low, high = in_quadrature(run.estimate, (run.wide_low, run.wide_high), pool)
        held += low <= case.probability <= high
    return f"{held} of {len(runs)}"


def targets_table(runs: Sequence[Run]) -> Table:
    r"""Each target with what was measured; what fails is said."""
    rows: list[tuple[str, str, str]] = []
    for method in (OURS, OURS_FEW, NOISY):
        if any(run.job.method == method for run in runs):
            rows += _targets(runs, method)
    return Table("Targets", ("target", "measured", "verdict"), rows)


def _targets(runs: Sequence[Run], method: str) -> list[tuple[str, str, str]]:
    r"""The targets of one of our methods."""
    halved, no_more, missed = [], [], []
    for name, case in CASES.items():
        some = chosen(runs, name, method)
        if not some or case.effort is None:
            continue
        used = median(run.n_used for run in some)
        is_right = median(run.error for run in some) <= TOL
        ended = all(run.stopped in (CONTENT, "decided") for run in some)
        if is_right and ended and used <= case.effort / 2:
            halved.append(name)
        if is_right and ended and used <= case.effort:
            no_more.append(name)
        if mean(run.covers for run in some) < COVERED:
            missed.append(name)
    wanted = [
        (f"at most half of the best published effort on {HALVED}", halved, HALVED),
        (f"no more than the best published effort on {NO_MORE}", no_more, NO_MORE),
    ]
    rows = [
        (
            f"{method}: runs until our stop, error at most {TOL:.0%}: {target} of "
            f"{len(CASES)}",
            f"{len(names)}: {', '.join(names) or 'none'}",
            "met" if len(names) >= least else "NOT MET",
        )
        for target, names, least in wanted
        if METHODS[method].noise == 0  # published runs have none
    ]
    rows.append(
        (
            f"{method}: the interval covers in at least {COVERED:.0%} of the seeds on "
            "each case",
            f"not on {', '.join(missed)}" if missed else "on each that was run",
            "NOT MET" if missed else "met",
        )
    )
    return rows
