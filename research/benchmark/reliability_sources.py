r"""How often the intervals of a failure probability hold where a cheap source helps.

The cases and sources are those of ``peers failures``. Rows are independent draws of the
inputs' normal distributions with larger standard deviations, and what is asked is the
probability of failure under these, which failures are frequent enough for. A run ends
at ``content_tol``. `widened` is to hold the share of the run's own rows that fail,
which the error of the pool as a sample has no part in; `combined` the probability.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from statistics import mean

import torch
from scipy.stats import norm

from botorch_lse import Above, GaussianProcess, Observations, Pool, State, Strategy
from research.benchmark.peers_failures import CASES
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 15, 1
ROWS, BATCH, TOL, MOST = 256, 8, 0.1, 200
"""The rows of a pool, the measurements between two rounds, the error of the estimate
that counts as none, and the number of measurements after which a run ends."""
GROWTH = 1.2
"""Hyper-parameters are learnt anew once there are so many times as many values."""
DRAWS = 4_000_000
"""The draws by which the probability of a case is known."""


@dataclass(frozen=True)
class Job:
    r"""A run: the case, the source beside the target, and the seed."""

    case: str
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
        share: The share of the rows that fail.
        probability: That of failure.
        widened: The ends of the interval of the share; nan without one.
        combined: Those of the interval of the probability.
    """

    job: Job
    cost: float
    stopped: str
    estimate: float
    share: float
    probability: float
    widened: tuple[float, ...]
    combined: tuple[float, ...]

    @property
    def holds(self) -> tuple[bool, bool]:
        r"""Whether `widened` holds the share, and `combined` the probability."""
        pairs = (self.widened, self.share), (self.combined, self.probability)
        slack = 1e-9  # sums are rounded
        first, second = (low - slack <= x <= high + slack for (low, high), x in pairs)
        return first, second


def pool_of(name: str, n: int, seed: int) -> Pool:
    r"""Independent rows of a case."""
    case = CASES[name]
    drawn = [norm(mean, case.widened * std) for mean, std in case.inputs]
    return Pool.from_distribution(drawn, n, seed=seed, method="monte_carlo")


@lru_cache
def probability_of(name: str) -> float:
    r"""The probability of failure, by many draws of a seed that no run has."""
    X = pool_of(name, DRAWS, 10_000).X
    return float((CASES[name].f(X) > 0).double().mean())


def run(job: Job) -> Sequence[Run]:
    r"""Play a run until the probability is known, or after ``MOST`` measurements."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that a source misleads
        return [played(job)]


def played(job: Job) -> Run:
    r"""The outcome of a run."""
    case, plan = CASES[job.case], pool_of(job.case, ROWS, job.seed)
    prices = torch.tensor([case.cost, 1.0], dtype=torch.float64)
    exact = (0.0, 0.0)
    pool = plan.at_sources(("cheap", "dear"), costs=prices, noise_var=exact)
    y = torch.cat((case.sources[job.source](plan.X), case.f(plan.X)))
    y = y / y[ROWS:].std()  # the level is 0 in any unit
    strategy = Strategy(
        pool,
        Above(0.0),
        model=GaussianProcess(refit=GROWTH),
        content_tol=TOL,
        max_observations=MOST,
    )
    state = strategy.init(job.seed)
    while not state.is_done:
        rows = strategy.ask(state, size=BATCH).order
        state = strategy.tell(state, Observations(rows, y[rows]))
    cost = float(prices[state.observations.indices // ROWS].sum())
    share = float((y[ROWS:] > 0).double().mean())
    return ended(job, state, cost, share)


def ended(job: Job, state: State, cost: float, share: float) -> Run:
    r"""The outcome of a run that is over."""
    content, none = state.content(), (math.nan, math.nan)
    probability = probability_of(job.case)
    numbers = cost, str(state.stop_reason), content.estimate, share, probability
    return Run(job, *numbers, content.widened or none, content.combined or none)


@entry("reliability", "sources", "intervals of a failure probability by cheap sources")
def sources(options: Options) -> Report:
    r"""All cases and sources."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    names = list(CASES)[: 1 if options.quick else None]
    jobs = [
        Job(name, source, seed)
        for seed, name in product(range(seeds), names)
        for source in CASES[name].sources
    ]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""How often intervals held, and the runs themselves."""
    data = {"runs": [one.record() for one in runs]}
    return Report("sources", paragraphs(__doc__), [held_table(runs)], data=data)


def held_table(runs: Sequence[Run]) -> Table:
    r"""The counts of runs whose intervals hold, by case and source and in all."""
    rows = []
    pairs = [(name, source) for name, case in CASES.items() for source in case.sources]
    for name, source in (*pairs, ("all", "")):
        own = [r for r in runs if (r.job.case, r.job.source) == (name, source)]
        own = list(runs) if name == "all" else own
        if own:
            held = map(sum, zip(*(r.holds for r in own), strict=True))
            cost = f"{mean(r.cost for r in own):.3g}"
            error = f"{mean(abs(r.estimate / r.share - 1) for r in own):.1%}"
            stopped = ", ".join(sorted({r.stopped for r in own}))
            rows.append((name, source, len(own), *held, cost, error, stopped))
    heads = ("runs", "`widened`", "`combined`", "cost", "error", "stopped")
    return Table("Runs whose interval holds", ("case", "source", *heads), rows)
