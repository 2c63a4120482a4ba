r"""A source that helps, helps in part or not at all, beside the target alone.

The target is a function of two inputs without noise. A source beside it is the same
function, a shifted and stretched one, one that is right on half of the box, or one that
has nothing to do with it. It can be measured at a fifth of the target's cost, or it has
values from before the run (``OLD``) and cannot be measured any more: some, or as many
as a whole run takes.

Costs count the initial design; old values are free. A cost to an error is that from
which on the share of rows on the wrong side of the estimate, which is that of the mean,
stays below it. Numbers are means over seeds, each of which draws other rows, divided by
those of the target alone. Choices in the package were made by runs on ``CHOSEN``, so
that only those on ``REPORTED`` are a test of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from botorch.test_functions.synthetic import Branin, SixHumpCamel
from torch import Tensor

from botorch_lse import (
    Above,
    GaussianProcess,
    History,
    Observations,
    Pool,
    State,
    Strategy,
)
from research.benchmark.peers_sources import BOX, dear, reached
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.benchmark.trust_problems import published, waves
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 10, 1
ROWS, BATCH, MOST = 80, 2, 45.0
"""The rows of a pool, the measurements between two fits, and the cost after which a run
ends."""
OLD = {"old values": 20, "old campaign": 40}
"""The number of old values, by what they are called."""
ERROR = 0.02
"""The share of wrong rows to which costs are compared."""
SHARE_ABOVE = 0.3
"""The share of the box that is above the level."""
SHIFT = 0.02
"""The distance, in each input, by which the shifted source is moved, within the box."""
RIM = 0.05
"""The width of the border between the half where a source is right and the other."""
N_WAVES = 6
"""The number of plane waves in a function that has nothing to do with the target."""

Function = Callable[[Tensor], Tensor]
WAYS = {"alone": 0.0, "at a fifth": 0.2, **dict.fromkeys(OLD, 1.0)}
"""What can be measured, and the cost of a source: the target alone; a source as well;
the target, with old values of the source."""


def clover(X: Tensor) -> Tensor:
    r"""CLoVER's function from the unit square."""
    low, high = torch.tensor(BOX, dtype=torch.float64)
    return dear(low + (high - low) * X)


def egg_box(X: Tensor) -> Tensor:
    r"""Waves that are slower along one side, on a slope."""
    return waves(X * torch.tensor([1.2, 0.6], dtype=X.dtype), 1.0) + 0.5 * X[..., 0]


def root_branin(X: Tensor) -> Tensor:
    r"""Minus the root of Branin's function: three minima become hills."""
    return -published(Branin(), X).sqrt()


def log_camel(X: Tensor) -> Tensor:
    r"""Minus the logarithm of the six-hump camel's function, made positive."""
    return -(published(SixHumpCamel(), X) + 2).log()


CHOSEN: dict[str, Function] = {"egg box": egg_box, "Branin": root_branin}
REPORTED: dict[str, Function] = {"CLoVER": clover, "six-hump camel": log_camel}
PROBLEMS = {**CHOSEN, **REPORTED}


def standardised(f: Function) -> Function:
    r"""The function with mean 0 and standard deviation 1 on the unit square."""
    values = f(Pool.from_box([[0.0, 0.0], [1.0, 1.0]], 1024).X)
    centre, scale = values.mean(), values.std()
    return lambda X: (f(X) - centre) / scale


def unrelated(seed: int) -> Function:
    r"""A sum of plane waves of random directions and phases, other ones by seed.

    They are between 0.4 and 1.5 long, about as the functions vary.
    """
    generator = torch.Generator().manual_seed(seed)
    u = torch.rand(3, N_WAVES, generator=generator, dtype=torch.float64)
    angle, frequency = 2 * math.pi * u[0], 2 * math.pi * (0.67 + 1.83 * u[1])
    direction = frequency * torch.stack((angle.cos(), angle.sin()))
    phase = 2 * math.pi * u[2]
    return standardised(lambda X: (X @ direction + phase).sin().sum(dim=-1))


def source_of(name: str, f: Function, seed: int) -> Function:
    r"""The source beside a target.

    Args:
        name: One of ``SOURCES``.
        f: The target, standardised.
        seed: The seed of what has nothing to do with it.
    """
    other = unrelated(seed)

    def half(X: Tensor) -> Tensor:
        share = ((X[..., 0] - 0.5) / RIM).sigmoid()
        return (1 - share) * f(X) + share * other(X)

    made: dict[str, Function] = {
        "useless": other,
        "identical": f,
        "shifted": lambda X: 0.8 * f((X + SHIFT).clamp_max(1.0)) + 0.5,
        "half right": half,
    }
    return made[name]


SOURCES = ("useless", "identical", "shifted", "half right")


@dataclass(frozen=True)
class Job:
    r"""A run: the target, what can be measured, the source beside it, and the seed."""

    problem: str
    way: str
    source: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""The outcome of a run.

    Args:
        job: What was run.
        cost: The cost to ``ERROR``, and all that the run cost if it was not reached.
        ended: The cost at which all was decided, or the run ended.
        dear: The number of measurements of the target.
        undecided: Rows without an answer at the end.
        wrong: Decided rows on the wrong side at the end.
    """

    job: Job
    cost: float
    ended: float
    dear: int
    undecided: int
    wrong: int


def run(job: Job) -> Sequence[Run]:
    r"""Play a run until all is decided, or it has cost ``MOST``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model that a source misleads
        return [played(job)]


def played(job: Job) -> Run:
    r"""The outcome of a run."""
    f = standardised(PROBLEMS[job.problem])
    plan = Pool.from_box([[0.0, 0.0], [1.0, 1.0]], ROWS, seed=job.seed)
    target = f(plan.X)
    level = float(target.quantile(1 - SHARE_ABOVE))
    strategy, y, first = started(job, plan, f, level)
    state, spent, trace = first, 0.0, list[tuple[float, float]]()
    n_sources = len(strategy.pool) // ROWS
    prices = torch.tensor([WAYS[job.way], 1.0][-n_sources:], dtype=torch.float64)
    truth = target > level
    while state.stop_reason is None and spent < MOST:
        rows = strategy.ask(state, size=BATCH).order
        state = strategy.tell(state, Observations(rows, y[rows]))
        spent += float(prices[rows // ROWS].sum())
        wrong = (state.classification.mean > level) != truth
        trace.append((spent, float(wrong.double().mean())))
    answer = state.classification
    is_wrong = (answer.above & ~truth) | (answer.below & truth)
    rows = state.observations.indices
    counts = (
        int((rows // ROWS == n_sources - 1).sum()),
        int(answer.undecided.sum()),
        int(is_wrong.sum()),
    )
    return Run(job, min(reached(trace, ERROR), spent), spent, *counts)


def started(
    job: Job, plan: Pool, f: Function, level: float
) -> tuple[Strategy, Tensor, State]:
    r"""The strategy, the values of all its rows, and the state before the run."""
    if job.way == "alone":
        model = GaussianProcess(noise_std=0.0)
        strategy = Strategy(plan, Above(level), model=model)
        return strategy, f(plan.X), strategy.init(job.seed)
    source = source_of(job.source, f, job.seed)
    costs = (WAYS[job.way], 1.0)
    pool = plan.at_sources(("source", "target"), costs=costs, noise_var=(0.0, 0.0))
    strategy, y = Strategy(pool, Above(level)), torch.cat((source(plan.X), f(plan.X)))
    if job.way not in OLD:
        return strategy, y, strategy.init(job.seed)
    generator = torch.Generator().manual_seed(job.seed)
    old = torch.rand(OLD[job.way], 2, generator=generator, dtype=torch.float64)
    history = History(old, source(old), torch.zeros(len(old)), source="source")
    strategy = strategy.with_history(history)
    state = strategy.exclude(strategy.init(job.seed), torch.arange(ROWS))
    return strategy, y, state


@entry("peers", "transfer", "costs with a source that may tell nothing")
def transfer(options: Options) -> Report:
    r"""All problems, sources and ways."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    problems = REPORTED if options.quick else PROBLEMS
    jobs = [
        Job(problem, way, source, seed)
        for seed, problem, way in product(range(seeds), problems, WAYS)
        for source in (SOURCES if way != "alone" else ("none",))
    ]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""The costs beside those of the target alone, and the runs themselves."""
    data = {"runs": [one.record() for one in runs]}
    return Report("transfer", paragraphs(__doc__), [ratio_table(runs)], data=data)


def ratio_table(runs: Sequence[Run]) -> Table:
    r"""The mean costs, divided by those of the target alone."""
    rows = []
    for problem, way, source in product(PROBLEMS, WAYS, ("none", *SOURCES)):
        wanted = problem, way, source
        own = [r for r in runs if (r.job.problem, r.job.way, r.job.source) == wanted]
        seeds = {r.job.seed for r in own}
        alone = [
            r
            for r in runs
            if (r.job.problem, r.job.way) == (problem, "alone") and r.job.seed in seeds
        ]
        if not own or len(alone) < len(own):
            continue
        ratios = [
            mean_of(own, name) / mean_of(alone, name) for name in ("cost", "ended")
        ]
        numbers = [*(mean_of(own, name) for name in ("cost", "ended", "dear")), *ratios]
        shown = [f"{x:.3g}" for x in numbers]
        left = sum(r.undecided for r in own), sum(r.wrong for r in own)
        rows.append((*wanted, len(own), *shown, *left))
    at = f"cost to {ERROR:.0%}"
    heads = (at, "all decided", "of the target", f"{at}, ratio", "decided, ratio")
    first = ("problem", "way", "source", "runs")
    return Table("Costs: means", (*first, *heads, "undecided", "wrong rows"), rows)


def mean_of(runs: Sequence[Recorded], name: str) -> float:
    r"""The mean of a number of runs."""
    return sum(float(getattr(one, name)) for one in runs) / len(runs)
