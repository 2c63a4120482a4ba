r"""Maps of classes without an order, learnt from few rows: phases of a material.

Each row has one class, which a measurement shows without error. Maps of nearest centres
in two to five inputs, one of a magnet in a field (up, down, or disordered above a
temperature that falls with the field), and one of a thin layer between two phases. From
some rows on, the share of all rows whose likeliest class is not the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_lse import Pool, Strategy
from botorch_lse.rules import Random, Rule
from botorch_lse.strategies import Binary, Classes, GaussianProcess
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 5, 1
ROWS = 1000
AT = (0.05, 0.1)
"""The shares of the rows that were measured when errors are counted."""
MODEL = GaussianProcess(outcome=Binary())
METHODS: dict[str, tuple[int, Rule | None]] = {
    "batches of 10": (10, None),
    "one at a time": (1, None),
    "random rows": (10, Random()),
}
"""The size of a batch and the rule; ``None``: the default."""


def nearest(d: int, n: int, X: Tensor, seed: int) -> Tensor:
    r"""The number of the nearest of ``n`` random centres."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.rand(n, d, generator=generator, dtype=torch.float64)
    return torch.cdist(X, centres).argmin(dim=-1)


def magnet(X: Tensor, seed: int) -> Tensor:
    r"""Up, down, or disordered above a temperature that falls with the field."""
    temperature, field = X[:, 0], 2 * X[:, 1] - 1
    is_disordered = temperature > 0.6 - 0.4 * field.square() + 0.02 * seed
    return torch.where(is_disordered, 2, (field > 0.1 * temperature).long())


def layer(X: Tensor, seed: int) -> Tensor:
    r"""Two phases, and a thin layer of a third one along the curve between them."""
    height = X[:, 1] - 0.5 - 0.25 * torch.sin(4 * X[:, 0] + seed)
    return torch.where(height.abs() < 0.06, 1, torch.where(height > 0, 2, 0))


@dataclass(frozen=True)
class Map:
    r"""A map of classes.

    Args:
        d: The number of inputs.
        n: The number of classes.
        labels: From ``N x d`` points of the unit cube and a seed to ``N`` classes.
    """

    d: int
    n: int
    labels: Callable[[Tensor, int], Tensor]


MAPS = {
    "nearest of 5, 2-D": Map(2, 5, partial(nearest, 2, 5)),
    "nearest of 4, 3-D": Map(3, 4, partial(nearest, 3, 4)),
    "nearest of 4, 4-D": Map(4, 4, partial(nearest, 4, 4)),
    "nearest of 3, 5-D": Map(5, 3, partial(nearest, 5, 3)),
    "magnet, 2-D": Map(2, 3, magnet),
    "thin layer, 2-D": Map(2, 3, layer),
}


@dataclass(frozen=True)
class Job:
    r"""A run: a function of its map, its method and its seed."""

    map: str
    method: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""What came out.

    Args:
        job: What was run.
        wrong: The share of rows whose likeliest class is wrong, after each of ``AT``.
        decided: The share of rows that is decided at the end.
        decided_wrong: The number of these that are wrong.
    """

    job: Job
    wrong: tuple[float, ...]
    decided: float
    decided_wrong: int


def run(job: Job) -> list[Run]:
    r"""Play a run to its end."""
    of, (size, rule) = MAPS[job.map], METHODS[job.method]
    engine = SobolEngine(of.d, scramble=True, seed=job.seed)
    X = engine.draw(ROWS, dtype=torch.float64)
    labels = of.labels(X, job.seed)
    goal = Classes(tuple(f"phase {k}" for k in range(of.n)))
    strategy = Strategy(
        Pool(X),
        goal,
        model=MODEL,
        rule=rule,
        batch_size=size,
        max_observations=round(AT[-1] * ROWS),
        max_repeats=1,  # a result is without error
    )
    state, wrong = strategy.init(job.seed), list[float]()
    while len(wrong) < len(AT):
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(goal.results(labels[batch.order])))
        if state.history.n_measured >= AT[len(wrong)] * ROWS:
            likeliest = state.classification.likeliest
            assert likeliest is not None  # classes have names
            wrong.append(float((likeliest != labels).double().mean()))
    found = state.classification.classes
    assert found is not None  # there are classes
    is_known = found >= 0
    bad = int((found[is_known] != labels[is_known]).sum())
    return [Run(job, tuple(wrong), float(is_known.double().mean()), bad)]


@entry("peers", "classes", "maps of phases, learnt from few rows")
def classes(options: Options) -> Report:
    r"""All maps and methods."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    names = list(MAPS)[4:5] if options.quick else MAPS
    order = product(range(seeds), names, METHODS)
    jobs = [Job(name, method, seed) for seed, name, method in order]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""The means by map and method, and the runs themselves."""
    rows = []
    for name, method in product(MAPS, METHODS):
        own = [r for r in runs if (r.job.map, r.job.method) == (name, method)]
        if not own:
            continue
        wrong = torch.tensor([r.wrong for r in own], dtype=torch.float64)
        errors = wrong.std(dim=0, correction=min(1, len(own) - 1)) / len(own) ** 0.5
        each = zip(wrong.mean(dim=0).tolist(), errors.tolist(), strict=True)
        cells = [f"{100 * mean:.1f} +- {100 * error:.1f} %" for mean, error in each]
        decided = sum(r.decided for r in own) / len(own)
        bad = sum(r.decided_wrong for r in own)
        rows.append((name, method, len(own), *cells, f"{decided:.0%}", bad))
    heads = (f"wrong after {share:.0%} of the rows" for share in AT)
    table = Table(
        "Rows whose likeliest class is wrong: means, standard errors",
        ("map", "method", "runs", *heads, "decided", "wrong of these"),
        rows,
    )
    data = {"runs": [one.record() for one in runs]}
    return Report("peers classes", paragraphs(__doc__), [table], data=data)
