r"""Answers of yes and no: our errors beside the published ones, on four problems.

Problems, protocol and scores are those of Letham et al. (2022), "Look-ahead acquisition
functions for Bernoulli level set estimation": 10 quasi-random trials, then the rule's;
scores on 1,000 quasi-random points. Theirs chose from the box one trial at a time, by a
variational model that was refitted every 10 trials, 300 runs; ours choose from a pool
of as many quasi-random points as it says below, in batches of 10, each with a fit. The
published means were read off the vector graphics that the authors keep beside their
code (error about 0.001). Those in two inputs end after 490 trials. The truth of the
contrast sensitivity is another fit to the same data than theirs, so that its published
means are no more than orientation.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse._validation import one_of
from botorch_lse.rules import Rule
from botorch_lse.strategies import Binary, MutualInformation
from research.benchmark.peers_all import package_of
from research.benchmark.peers_outcomes_problems import PROBLEMS, Problem
from research.benchmark.peers_packages import Package, running
from research.benchmark.peers_runs import reopened
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 20, 2
ROWS, POINTS, BATCH = 1500, 1000, 10
AT = (100, 250, 500)
"""The numbers of trials after which errors are compared."""
TEST_SEED = 99
"""The seed of the points on which all runs of a problem are scored."""
QUASI_RANDOM, TOLD = "quasi-random", ", told the chance"
METHODS: dict[str, Rule | None] = {
    "default": None,
    "MutualInformation": MutualInformation(),
    QUASI_RANDOM: None,
    f"default{TOLD}": None,
    f"{QUASI_RANDOM}{TOLD}": None,
}
"""Our rules. Those that are ``TOLD`` know how many answers are right by chance."""


@dataclass(frozen=True)
class Job:
    r"""A run: the names of problem and method, and its seed."""

    problem: str
    method: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""The outcome of a run.

    Args:
        job: What was run.
        trials: Numbers of trials.
        brier: The Brier score after each: 0.5 is ignorance.
        expected: The expected class error after each: the mean probability of the side
            on which a point is not.
        hard: The share of points that are on the wrong side by then.
        seconds: CPU seconds of each decision, the fit and the choice of a batch, after
            ``BATCH``, ``2 BATCH`` and so on trials.
    """

    job: Job
    trials: tuple[int, ...]
    brier: tuple[float, ...]
    expected: tuple[float, ...]
    hard: tuple[float, ...]
    seconds: tuple[float, ...]


class Player(Protocol):
    r"""A method in the middle of a run."""

    def next(self, rows: Tensor, y: Tensor) -> tuple[Tensor, float]:
        r"""The next batch, given new answers, and the CPU seconds that it took."""

    def below(self) -> Tensor:
        r"""The probabilities that the points of the test are not above the level."""


class Ours:
    r"""A rule of ours, or quasi-random rows, with our model.

    Args:
        pool: The rows.
        problem: What is asked of them.
        job: The run.
        test: ``n x d`` points.
        q: The rows of a batch.
    """

    def __init__(
        self, pool: Pool, problem: Problem, job: Job, test: Tensor, q: int
    ) -> None:
        self.goal = Above(problem.level)
        outcome = Binary(guess=problem.chance if job.method.endswith(TOLD) else 0.0)
        self.strategy = Strategy(
            pool,
            self.goal,
            model=GaussianProcess(outcome=outcome),
            rule=METHODS[job.method],
            batch_size=q,
        )
        self.state, self.test, self.q = self.strategy.init(job.seed), test, q
        self.is_random = job.method.startswith(QUASI_RANDOM)
        level = torch.tensor(problem.level, dtype=torch.float64)
        self.level = outcome.latent(level)

    def next(self, rows: Tensor, y: Tensor) -> tuple[Tensor, float]:
        r"""See ``Player``."""
        began = time.process_time()
        told = self.strategy.tell(self.state, Observations(rows, y))
        self.state = state = reopened(told, self.goal)
        n = state.history.n_measured
        rows = torch.arange(n, n + self.q)
        if not self.is_random:
            rows = self.strategy.ask(state).order
        return rows, time.process_time() - began

    def below(self) -> Tensor:
        r"""See ``Player``."""
        mean, sigma = self.state.belief.posterior.at(self.test)
        return torch.special.ndtr((self.level - mean) / sigma)


class OfPackage:
    r"""A package of others, with its own model.

    Args:
        package: Its script, which knows the case.
    """

    def __init__(self, package: Package) -> None:
        self.package, self.last = package, dict[str, Any]()

    def next(self, rows: Tensor, y: Tensor) -> tuple[Tensor, float]:
        r"""See ``Player``."""
        chosen, self.last = self.package.next_and_more(rows, y)
        return chosen, self.last["seconds"]

    def below(self) -> Tensor:
        r"""See ``Player``."""
        return torch.tensor(self.last["below"], dtype=torch.float64)


@contextmanager
def playing(
    job: Job, pool: Pool, test: Tensor, commands: Mapping[str, str], q: int = BATCH
) -> Iterator[Player]:
    r"""The method of a run, until the context ends.

    Args:
        job: The run.
        pool: Its rows.
        test: ``n x d`` points.
        commands: What starts the packages of others, by the names of their methods.
        q: The rows of a batch.
    """
    problem = PROBLEMS[job.problem]
    if job.method in METHODS:
        yield Ours(pool, problem, job, test, q)
        return
    rows = {"X": pool.X.tolist(), "test": test.tolist()}
    stated = {**rows, "level": problem.level, "q": q, "seed": job.seed}
    with running(commands[job.method], stated) as package:
        yield OfPackage(package)


def cube(n: int, d: int, seed: int) -> Tensor:
    r"""Quasi-random points of the unit cube (``n x d``)."""
    return SobolEngine(d, scramble=True, seed=seed).draw(n, dtype=torch.float64)


def run(job: Job, commands: Mapping[str, str] | None = None) -> Sequence[Run]:
    r"""Play a run, and score it after ``AT`` trials.

    Args:
        job: What to run.
        commands: What starts the packages of others, by the names of their methods.
    """
    problem, outcome = PROBLEMS[job.problem], Binary()
    pool, test = (
        Pool(cube(ROWS, problem.d, job.seed)),
        cube(POINTS, problem.d, TEST_SEED),
    )
    p = outcome.value(problem.latent(pool.X))
    is_below = outcome.value(problem.latent(test)) <= problem.level
    generator, rows = torch.Generator().manual_seed(job.seed), torch.arange(BATCH)
    scores, seconds = list[tuple[float, float, float]](), list[float]()
    with playing(job, pool, test, commands or {}) as player:
        for n in range(BATCH, max(AT) + BATCH, BATCH):
            drawn = torch.rand(BATCH, generator=generator, dtype=torch.float64)
            rows, took = player.next(rows, (drawn < p[rows]).double())
            seconds.append(round(took, 3))
            if n in AT:
                scores.append(_scores(player.below(), is_below))
    brier, expected, hard = zip(*scores, strict=True)
    return [Run(job, AT, brier, expected, hard, tuple(seconds))]


def _scores(below: Tensor, is_below: Tensor) -> tuple[float, float, float]:
    r"""The Brier score, the expected class error and the share of wrong sides.

    Args:
        below: Probabilities that points are not above the level.
        is_below: Whether they are not.
    """
    off = (is_below.double() - below).abs()
    brier, hard = 2 * off.square().mean(), (off >= 0.5).double().mean()
    return float(brier), float(off.mean()), float(hard)


@entry("peers", "outcomes", "errors by answers of yes and no, beside published ones")
def outcomes(options: Options) -> Report:
    r"""All problems and methods."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    commands = dict(package_of(text) for text in options.packages)
    for name in options.only:
        one_of(name, "--only", tuple(PROBLEMS))
    order = product(range(seeds), options.only or PROBLEMS, (*METHODS, *commands))
    jobs = [
        Job(problem, method, seed)
        for seed, problem, method in order
        if PROBLEMS[problem].chance or not method.endswith(TOLD)
    ]
    play = partial(run, commands=commands)
    return report(measure(Run, play, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""Our means beside the published ones, and the runs themselves."""
    data = {"runs": [one.record() for one in runs]}
    tables = [brier_table(runs), class_error_table(runs)]
    return Report("outcomes", paragraphs(__doc__), tables, data=data)


def brier_table(runs: Sequence[Run]) -> Table:
    r"""Brier scores of each method on each problem, and published ones."""
    title, cells = "Brier scores: means, standard errors", dict[str, list[Any]]()
    for (problem, method), own in by_cell(runs).items():
        scores = _means([r.brier for r in own])
        cells.setdefault(problem, []).append((problem, method, len(own), *scores))
    for problem, rows in cells.items():
        for method, theirs in PROBLEMS[problem].published.items():
            known = ["-" if x is None else f"{x:.3f}" for x in theirs]
            rows.append((problem, f"published: {method}", 300, *known))
    return _table(title, [row for rows in cells.values() for row in rows])


def class_error_table(runs: Sequence[Run]) -> Table:
    r"""Expected class errors of each method on each problem."""
    rows = [
        (*cell, len(own), *_means([r.expected for r in own]))
        for cell, own in by_cell(runs).items()
    ]
    return _table("Expected class errors: means, standard errors", rows)


def by_cell(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    r"""The runs by problem and method."""
    found = dict[tuple[str, str], list[Run]]()
    for one in sorted(runs, key=lambda r: list(PROBLEMS).index(r.job.problem)):
        whose = "ours: " if one.job.method in METHODS else ""
        found.setdefault((one.job.problem, whose + one.job.method), []).append(one)
    return found


def _means(scores: Sequence[Sequence[float]]) -> list[str]:
    r"""Means of columns with their standard errors."""
    each, n = torch.tensor(scores, dtype=torch.float64), len(scores)
    errors = each.std(dim=0, correction=min(1, n - 1)) / n**0.5
    pairs = zip(each.mean(dim=0).tolist(), errors.tolist(), strict=True)
    return [f"{mean:.3f} +- {error:.3f}" for mean, error in pairs]


def _table(title: str, rows: Sequence[Any]) -> Table:
    r"""A table with a column for each of ``AT``."""
    heads = [f"after {n}" for n in AT]
    return Table(title, ("problem", "method", "runs", *heads), rows)
