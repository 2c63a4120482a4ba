r"""Intervals where somebody brings values: one value a row, noise learnt.

Ninety rows drawn at random (half of a smaller table) are told at once, each once, so
that no repeats tell the noise. How much of the truth lies in the intervals of 95 %, at
told rows and at all, how many of the sure sides are wrong (probability above 0.975),
and the errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch

from botorch_lse import Above, GaussianProcess, Observations, Strategy
from research.benchmark.peers_models import INSIDE
from research.benchmark.peers_problems import PROBLEMS
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 2, 1
QUICK = ("Himmelblau", "Hartmann-3")
NOISES = (1.0, 0.5, 0.2, 0.05)
"""Standard deviations of the noise, as shares of that of the truth."""
TOLD = 90
SURE = 0.975
FAMILIES = ("additive", "single")


@dataclass(frozen=True)
class Job:
    r"""A table: a function of its problem, the family of models, noise and seed."""

    problem: str
    family: str
    noise: float
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""What came out.

    Args:
        job: What was run.
        told: The share of told rows whose truth lies in its interval.
        every: The same of all rows.
        left_out: The share of told values within 1.96 standard deviations of what all
            others predict, noise included.
        wrong: The share of all rows whose mean is on the wrong side.
        sure: The number of rows that are sure.
        sure_and_wrong: The number of these that are wrong.
    """

    job: Job
    told: float
    every: float
    left_out: float
    wrong: float
    sure: int
    sure_and_wrong: int


def run(job: Job, data: Path | None = None) -> list[Run]:
    r"""Fit a model to a table of told values, and compare."""
    case = PROBLEMS[job.problem].case(job.seed, data)
    N, generator = len(case.pool), torch.Generator().manual_seed(job.seed)
    rows = torch.randperm(N, generator=generator)[: min(TOLD, N // 2)]
    draws = torch.randn(len(rows), generator=generator, dtype=torch.float64)
    y = case.truth[rows] + job.noise * case.truth.std() * draws
    model = GaussianProcess(family=job.family)
    strategy = Strategy(case.pool, Above(case.threshold), model=model, batch_size=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of noise that nothing tells
        state = strategy.tell(strategy.init(job.seed), Observations(rows, y))
        answer = state.classification
    inside = ((case.truth - answer.mean).abs() <= INSIDE * answer.sigma).double()
    z = (answer.mean - case.threshold) / answer.sigma
    wrong = (z > 0) != case.above
    sure = torch.special.ndtr(z.abs()) > SURE
    left_out = state.calibration().out.abs() <= INSIDE
    return [
        Run(
            job,
            float(inside[rows].mean()),
            float(inside.mean()),
            float(left_out.double().mean()),
            float(wrong.double().mean()),
            int(sure.sum()),
            int((sure & wrong).sum()),
        )
    ]


@entry("peers", "told", "intervals where told values have one value a row")
def told(options: Options) -> Report:
    r"""All problems, with each noise."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    names = QUICK if options.quick else PROBLEMS
    there = [name for name in names if PROBLEMS[name].is_there(options.data)]
    every = product(range(seeds), there, FAMILIES, NOISES)
    jobs = [Job(name, family, noise, seed) for seed, name, family, noise in every]
    play = partial(run, data=options.data)
    return report(measure(Run, play, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""The means by noise and family."""
    rows = []
    for noise, family in product(NOISES, FAMILIES):
        own = [r for r in runs if (r.job.noise, r.job.family) == (noise, family)]
        if not own:
            continue
        shares = torch.tensor(
            [(r.told, r.every, r.left_out, r.wrong) for r in own], dtype=torch.float64
        )
        means = (f"{x:.1%}" for x in shares.mean(dim=0).tolist())
        wrong = sum(r.sure_and_wrong for r in own) / max(sum(r.sure for r in own), 1)
        rows.append((f"{noise:g}", family, len(own), *means, f"{wrong:.2%}"))
    heads = ("told rows", "all rows", "left out", "wrong rows", "wrong of sure rows")
    table = Table(
        "The truth within intervals of 95 %, by noise",
        ("noise", "family", "tables", *heads),
        rows,
    )
    data = {"runs": [one.record() for one in runs]}
    return Report("peers told", paragraphs(__doc__), [table], data=data)
