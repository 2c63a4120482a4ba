r"""Answers of yes and no: our errors beside the published ones, on three problems.

Problems, protocol and scores are those of Letham et al. (2022), "Look-ahead acquisition
functions for Bernoulli level set estimation": 10 quasi-random trials, then the rule's;
scores on 1,000 quasi-random points. Theirs chose from the box one trial at a time, by a
variational model that was refitted every 10 trials, 300 runs; ours choose from a pool
of as many quasi-random points as it says below, in batches of 10, each with a fit. The
published means were read off the vector graphics that the authors keep beside their
code (error about 0.001). A fourth problem of theirs is a fit to data that are not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.rules import Rule
from botorch_lse.strategies import Binary, MutualInformation
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 20, 2
ROWS, POINTS, BATCH = 1500, 1000, 10
AT = (100, 250)
"""The numbers of trials after which errors are compared."""
TEST_SEED = 99
"""The seed of the points on which all runs of a problem are scored."""


@dataclass(frozen=True)
class Problem:
    r"""A latent function of the unit cube, and the level of its probability.

    Args:
        d: The number of inputs.
        level: The probability.
        latent: From ``n x d`` points to ``n`` latent values.
        published: For each method its mean Brier score after ``AT`` trials, where the
            authors show it.
    """

    d: int
    level: float
    latent: Callable[[Tensor], Tensor]
    published: dict[str, tuple[float | None, ...]]


def low_dimensional(u: Tensor) -> Tensor:
    r"""Discrimination of a stimulus by its intensity and a context."""
    context, intensity = (2 * u - 1).unbind(dim=-1)
    slope = 0.05 + 0.4 * (0.2 * context - 1).square() * context.square()
    return (intensity + 1) / slope


def hartmann(u: Tensor) -> Tensor:
    r"""The Hartmann function of six inputs, shifted and scaled."""
    rates = [[8, 3, 10, 3.5, 1.7, 6], [0.5, 8, 10, 1, 6, 9],
             [3, 3.5, 1.7, 8, 10, 6], [10, 6, 0.5, 8, 1, 9]]  # fmt: skip
    centres = [[1312, 1696, 5569, 124, 8283, 5886],
               [2329, 4135, 8307, 3736, 1004, 9991],
               [2348, 1451, 3522, 2883, 3047, 6650],
               [4047, 8828, 8732, 5743, 1091, 381]]  # fmt: skip
    A, P = (torch.tensor(x, dtype=u.dtype) for x in (rates, centres))
    weights = torch.tensor([0.2, 0.22, 0.28, 0.3], dtype=u.dtype)
    far = (A * (u.unsqueeze(1) - 1e-4 * P).square()).sum(dim=-1)
    return -30 * ((-far).exp() @ weights - 0.1) - 2


def high_dimensional(u: Tensor) -> Tensor:
    r"""Discrimination with eight inputs and a guess rate of one half."""
    low = torch.tensor([-1, -1, 0.5, 0.05, 0.05, 0, 0, 0.5], dtype=u.dtype)
    high = torch.tensor([1, 1, 1.5, 0.15, 0.2, 0.9, 1.57, 2], dtype=u.dtype)
    x = (low + (high - low) * u).unbind(dim=-1)
    amplitude, frequency, scale, shift, spread, skew, phase, period = x
    wave = torch.cos(0.6 * math.pi * period * frequency + phase)
    tilt = 2 - skew - skew * torch.sin(0.3 * math.pi * period * frequency + phase)
    k = (-scale / 2 * wave + scale / 2 + shift) * tilt - 1
    z = (amplitude - k) / (2 * spread + spread * k)
    p = (0.5 + torch.special.ndtr(z) / 2).clamp(0.5, 1 - 1e-5)
    return torch.special.ndtri(p)


PROBLEMS = {
    "discrimination, 2-D": Problem(
        2,
        0.75,
        low_dimensional,
        {
            "EAVC": (0.059, None),
            "GlobalMI": (0.057, None),
            "Straddle": (0.045, None),
            "quasi-random": (0.067, None),
        },
    ),
    "Hartmann, 6-D": Problem(
        6,
        0.5,
        hartmann,
        {
            "EAVC": (0.377, 0.246),
            "GlobalMI": (0.360, 0.233),
            "Straddle": (0.335, 0.255),
            "quasi-random": (0.337, 0.248),
        },
    ),
    "discrimination, 8-D": Problem(
        8,
        0.75,
        high_dimensional,
        {
            "EAVC": (0.429, 0.274),
            "GlobalMI": (0.391, 0.233),
            "Straddle": (0.360, 0.358),
            "quasi-random": (0.350, 0.234),
        },
    ),
}
QUASI_RANDOM = "quasi-random"
METHODS: dict[str, Rule | None] = {
    "default": None,
    "MutualInformation": MutualInformation(),
    QUASI_RANDOM: None,
}


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
        hard: The share of points that are on the wrong side by then.
    """

    job: Job
    trials: tuple[int, ...]
    brier: tuple[float, ...]
    hard: tuple[float, ...]


def cube(n: int, d: int, seed: int) -> Tensor:
    r"""Quasi-random points of the unit cube (``n x d``)."""
    return SobolEngine(d, scramble=True, seed=seed).draw(n, dtype=torch.float64)


def run(job: Job) -> Sequence[Run]:
    r"""Play a run, and score it after ``AT`` trials."""
    problem, outcome = PROBLEMS[job.problem], Binary()
    pool = Pool(cube(ROWS, problem.d, job.seed))
    p = outcome.value(problem.latent(pool.X))
    strategy = Strategy(
        pool,
        Above(problem.level),
        model=GaussianProcess(outcome=outcome),
        rule=METHODS[job.method],
        batch_size=BATCH,
        max_observations=max(AT),
    )
    test = cube(POINTS, problem.d, TEST_SEED)
    level = outcome.latent(torch.tensor(problem.level, dtype=torch.float64))
    is_below = problem.latent(test) <= level
    generator, state = torch.Generator().manual_seed(job.seed), strategy.init(job.seed)
    brier, hard = list[float](), list[float]()
    while len(brier) < len(AT):
        n = state.history.n_measured
        is_first = n < BATCH or job.method == QUASI_RANDOM
        rows = torch.arange(n, n + BATCH) if is_first else strategy.ask(state).order
        drawn = torch.rand(BATCH, generator=generator, dtype=torch.float64)
        state = strategy.tell(state, Observations(rows, (drawn < p[rows]).double()))
        if state.history.n_measured in AT:
            mean, sigma = state.belief.posterior.at(test)
            share = torch.special.ndtr((level - mean) / sigma)
            brier.append(float(2 * (is_below.double() - share).square().mean()))
            hard.append(float(((share > 0.5) != is_below).double().mean()))
    return [Run(job, AT, tuple(brier), tuple(hard))]


@entry("peers", "outcomes", "errors by answers of yes and no, beside published ones")
def outcomes(options: Options) -> Report:
    r"""All problems and methods."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    order = product(range(seeds), PROBLEMS, METHODS)
    jobs = [Job(problem, method, seed) for seed, problem, method in order]
    return report(measure(Run, run, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""Our means beside the published ones, and the runs themselves."""
    data = {"runs": [one.record() for one in runs]}
    return Report("outcomes", paragraphs(__doc__), [brier_table(runs)], data=data)


def brier_table(runs: Sequence[Run]) -> Table:
    r"""Brier scores of each method on each problem."""
    rows = []
    for name, problem in PROBLEMS.items():
        for method in METHODS:
            own = [r for r in runs if (r.job.problem, r.job.method) == (name, method)]
            if own:
                scores = torch.tensor([r.brier for r in own], dtype=torch.float64)
                means = scores.mean(dim=0).tolist()
                errors = (scores.std(dim=0, correction=0) / len(own) ** 0.5).tolist()
                cells = [
                    f"{mean:.3f} +- {error:.3f}"
                    for mean, error in zip(means, errors, strict=True)
                ]
                rows.append((name, f"ours: {method}", len(own), *cells))
        for method, theirs in problem.published.items():
            cells = ["-" if x is None else f"{x:.3f}" for x in theirs]
            rows.append((name, f"published: {method}", 300, *cells))
    heads = tuple(f"after {n}" for n in AT)
    return Table(
        "Brier scores: means, standard errors",
        ("problem", "method", "runs", *heads),
        rows,
    )
