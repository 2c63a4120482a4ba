r"""How often the intervals of a share hold where a cheap source tells of it.

Functions and sources are those of ``peers transfer``, at a fifth of the target's cost.
Rows are independent draws from the unit square, and a run ends at ``content_tol``.
`widened` is to hold the share of the run's own rows that is above the level, which the
error of the pool as a sample has no part in; `combined` the share of the square.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from statistics import mean

import torch
from scipy.stats import uniform

from botorch_lse import Above, GaussianProcess, Observations, Pool, State, Strategy
from research.benchmark.peers_transfer import (
    PROBLEMS,
    REPORTED,
    SHARE_ABOVE,
    source_of,
    standardised,
)
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 9, 1
ROWS, BATCH, COST, TOL, MOST = 256, 4, 0.2, 0.2, 200
"""The rows of a pool, the measurements between two rounds, the cost of a source, the
error of the estimate that counts as none, and the measurements after which a run
ends."""
GROWTH = 1.2
"""Hyper-parameters are learnt anew once there are so many times as many values."""
SOURCES = ("useless", "shifted", "half right")
DRAWS = 1_000_000
"""The draws that say above which level ``SHARE_ABOVE`` of the square is."""


@dataclass(frozen=True)
class Job:
    r"""A run: the target, the source beside it, and the seed."""

    problem: str
    source: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""How a run ended.

    Args:
        job: What was run.
        cost: What it cost, in measurements of the target.
        stopped: The stop reason.
        estimate: The estimate at the end.
        share: The share of the rows that is above the level.
        widened: The ends of the interval of the share; nan without one.
        combined: Those of the interval of the share of the square.
    """

    job: Job
    cost: float
    stopped: str
    estimate: float
    share: float
    widened: tuple[float, ...]
    combined: tuple[float, ...]

    @property
    def holds(self) -> tuple[bool, bool]:
        r"""Whether each interval holds what it is about."""
        pairs = (self.widened, self.share), (self.combined, SHARE_ABOVE)
        slack = 1e-9  # sums are rounded
        first, second = (low - slack <= x <= high + slack for (low, high), x in pairs)
        return first, second


def pool_of(n: int, seed: int) -> Pool:
    r"""Independent rows of the square."""
    return Pool.from_distribution([uniform()] * 2, n, seed=seed, method="monte_carlo")


@lru_cache
def level_of(problem: str) -> float:
    r"""The level above which a share of the square is, by draws that no run has."""
    values = standardised(PROBLEMS[problem])(pool_of(DRAWS, 10_000).X)
    return float(values.kthvalue(round((1 - SHARE_ABOVE) * len(values))).values)


def run(job: Job) -> Sequence[Run]:
    r"""Play a run until the share is known, or after ``MOST`` measurements."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that a source misleads
        return [played(job)]


def played(job: Job) -> Run:
    r"""The outcome of a run."""
    f, plan = standardised(PROBLEMS[job.problem]), pool_of(ROWS, job.seed)
    y = torch.cat((source_of(job.source, f, job.seed)(plan.X), f(plan.X)))
    prices = torch.tensor([COST, 1.0], dtype=torch.float64)
    pool = plan.at_sources(("source", "target"), costs=prices, noise_var=(0.0, 0.0))
    level = level_of(job.problem)
    strategy = Strategy(
        pool,
        Above(level),
        model=GaussianProcess(refit=GROWTH),
        content_tol=TOL,
        max_observations=MOST,
    )
    state = strategy.init(job.seed)
    while not state.is_done:
        rows = strategy.ask(state, size=BATCH).order
        state = strategy.tell(state, Observations(rows, y[rows]))
    cost = float(prices[state.observations.indices // ROWS].sum())
    return ended(job, state, cost, float((y[ROWS:] > level).double().mean()))


def ended(job: Job, state: State, cost: float, share: float) -> Run:
    r"""The outcome of a run that is over."""
    content, none = state.content(), (math.nan, math.nan)
    numbers = cost, str(state.stop_reason), content.estimate, share
    return Run(job, *numbers, content.widened or none, content.combined or none)


@entry("reliability", "sources", "intervals of a share by cheap sources")
def sources(options: Options) -> Report:
    r"""All functions and sources."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    problems = REPORTED if options.quick else PROBLEMS
    jobs = jobs_of(seeds, problems)
    return report(measure(Run, run, jobs, *options.where))


def jobs_of(seeds: int, problems: Iterable[str]) -> list[Job]:
    r"""All runs, those of a function with other seeds, and so other rows, each.

    Of the same rows an interval would miss the share of the square again and again.

    Args:
        seeds: The number of runs of each function with each source.
        problems: The functions by their names.
    """
    n = len(SOURCES)
    return [
        Job(problem, source, n * k + i)
        for k, problem, (i, source) in product(
            range(seeds), problems, enumerate(SOURCES)
        )
    ]


def report(runs: Sequence[Run]) -> Report:
    r"""How often intervals held, and the runs themselves."""
    data = {"runs": [one.record() for one in runs]}
    return Report("sources", paragraphs(__doc__), [held_table(runs)], data=data)


def held_table(runs: Sequence[Run]) -> Table:
    r"""The counts of runs whose intervals hold, by function and source and in all."""
    rows = []
    for name, source in (*product(PROBLEMS, SOURCES), ("all", "")):
        own = [r for r in runs if (r.job.problem, r.job.source) == (name, source)]
        own = list(runs) if name == "all" else own
        if own:
            held = map(sum, zip(*(r.holds for r in own), strict=True))
            cost = f"{mean(r.cost for r in own):.3g}"
            error = f"{mean(abs(r.estimate / r.share - 1) for r in own):.1%}"
            stopped = ", ".join(sorted({r.stopped for r in own}))
            rows.append((name, source, len(own), *held, cost, error, stopped))
    heads = ("runs", "`widened`", "`combined`", "cost", "error", "stopped")
    return Table("Runs whose interval holds", ("problem", "source", *heads), rows)
