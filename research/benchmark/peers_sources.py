r"""Several sources: the cost of a level set by all of them, beside that by one.

The problem is the one of CLoVER (Marques et al. 2018), a function of two inputs with
cheap versions of it, which mfEGRA (Chaudhuri et al. 2021) solved at a cost lower by
46 % than by the dear one alone. A version is here the dear one plus a smooth error, and
a useless source is a function that has nothing to do with it. Rows are quasi-random
points, others for each seed: without noise, the same rows would give the same run. A
run is charged for its initial design as well; one measurement is made at a time.

A level of errors is reached at the cost from which on the share of rows on the wrong
side of the estimate, which is that of the mean, stays below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 10, 2
ROWS, MOST = 400, 45.0
"""The number of rows, and the cost after which a run ends."""
LEVELS = (0.01, 0.001)
"""The shares of wrong rows whose costs are compared."""
BOX = [[-4.0, -3.0], [7.0, 8.0]]


def dear(X: Tensor) -> Tensor:
    r"""The multimodal function whose sign is asked for."""
    x, y = X.unbind(dim=-1)
    return (x.square() + 4) * (y - 1) / 20 - torch.sin(5 * x / 2) - 2


def cheap(X: Tensor) -> Tensor:
    r"""A version of it with a small error; alone it errs in 12 % of the box."""
    x, y = X.unbind(dim=-1)
    return dear(X) + torch.sin(5 * (x + y / 2) / 22 + 5 / 4)


def cheapest(X: Tensor) -> Tensor:
    r"""A version of it with a larger error, which alone errs in 15 % of the box."""
    x, y = X.unbind(dim=-1)
    return dear(X) + 3 * torch.sin(5 * (x + y + 7) / 11)


def useless(X: Tensor) -> Tensor:
    r"""A function that has nothing to do with it."""
    x, y = X.unbind(dim=-1)
    return 3 * torch.sin(1.7 * x + 2.3 * y) * torch.cos(2.1 * y - x)


Source = Callable[[Tensor], Tensor]
CASES: dict[str, dict[Source, float]] = {
    "the dear one alone": {dear: 1.0},
    "one cheap source": {cheap: 0.01, dear: 1.0},
    "two cheap sources": {cheapest: 0.001, cheap: 0.01, dear: 1.0},
    "a cheap source at a fifth": {cheap: 0.2, dear: 1.0},
    "a useless source": {useless: 0.01, dear: 1.0},
}
"""Sources and their costs; the last one is the target."""


@dataclass(frozen=True)
class Job:
    r"""A run: the name of its case, and its seed."""

    case: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""The outcome of a run.

    Args:
        job: What was run.
        costs: For each of ``LEVELS`` the cost at which it was reached; infinite if it
            was not.
        dear: The number of measurements of the target.
        others: The number of all other measurements.
        wrong: Decided rows on the wrong side at the end.
        ended: The cost at which all was decided, or the run ended.
    """

    job: Job
    costs: tuple[float, ...]
    dear: int
    others: int
    wrong: int
    ended: float


def run(job: Job) -> Sequence[Run]:
    r"""Play a run until all is decided, or it has cost ``MOST``."""
    sources = CASES[job.case]
    plan, model = Pool.from_box(BOX, ROWS, seed=job.seed), GaussianProcess()
    truth = dear(plan.X) > 0
    prices = torch.tensor(list(sources.values()), dtype=torch.float64)
    y = torch.cat([source(plan.X) for source in sources])
    if len(sources) == 1:
        pool, model = plan, GaussianProcess(noise_std=0.0)
    else:
        names = [source.__name__ for source in sources]
        exact = (0.0,) * len(names)
        pool = plan.at_sources(names, costs=prices, noise_var=exact)
    strategy = Strategy(pool, Above(0.0), model=model)
    state, spent, trace = strategy.init(job.seed), 0.0, list[tuple[float, float]]()
    while state.stop_reason is None and spent < MOST:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, y[rows]))
        spent += float(prices[rows // ROWS].sum())
        wrong = (state.classification.mean > 0) != truth
        trace.append((spent, float(wrong.double().mean())))
    answer = state.classification
    is_wrong = (answer.above & ~truth) | (answer.below & truth)
    n_dear = int((state.observations.indices // ROWS == len(sources) - 1).sum())
    counts = n_dear, len(trace) - n_dear
    costs = tuple(reached(trace, level) for level in LEVELS)
    return [Run(job, costs, *counts, int(is_wrong.sum()), spent)]


def reached(trace: Sequence[tuple[float, float]], level: float) -> float:
    r"""The cost from which on all errors are at most ``level``.

    Args:
        trace: Costs and errors, measurement by measurement.
        level: The share of wrong rows.
    """
    found = float("inf")
    for cost, error in reversed(trace):
        if error > level:
            break
        found = cost
    return found


@entry("peers", "sources", "costs of a level set by cheap and dear sources")
def sources(options: Options) -> Report:
    r"""All cases."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    jobs = [Job(case, seed) for seed, case in product(range(seeds), CASES)]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""The costs of each case, and the runs themselves."""
    data = {"runs": [one.record() for one in runs]}
    return Report("sources", paragraphs(__doc__), [cost_table(runs)], data=data)


def cost_table(runs: Sequence[Run]) -> Table:
    r"""The median costs of each case, in measurements of the target."""
    rows = []
    for case in CASES:
        own = [one for one in runs if one.job.case == case]
        if not own:
            continue
        columns = zip(*(one.costs for one in own), strict=True)
        numbers = [torch.tensor(column).median().item() for column in columns]
        medians = [
            torch.tensor([float(getattr(one, name)) for one in own]).median().item()
            for name in ("ended", "dear", "others")
        ]
        wrong = sum(one.wrong for one in own)
        shown = [f"{x:.4g}" for x in (*numbers, *medians)]
        rows.append((case, len(own), *shown, wrong))
    heads = [f"cost to {level:.1%}" for level in LEVELS]
    end = ("all decided at", "of the target", "of others", "wrong rows in all")
    return Table("Costs: medians", ("case", "runs", *heads, *end), rows)
