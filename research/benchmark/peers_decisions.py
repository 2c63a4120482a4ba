r"""One decision by answers of yes and no: our CPU seconds beside other packages'.

After so many quasi-random answers a method fits its model and says which row of 1,500
is to be tried next. The problems are those of ``peers outcomes``. Of a package, the
seconds are those of its own process (``peers/README.md``); all have one thread. Before
the decision that counts there is one after 20 answers, by which libraries are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import median

import torch

from botorch_lse import Pool
from botorch_lse._validation import one_of
from botorch_lse.strategies import Binary
from research.benchmark.peers_all import package_of
from research.benchmark.peers_outcomes import POINTS, ROWS, TEST_SEED, cube, playing
from research.benchmark.peers_outcomes import Job as Play
from research.benchmark.peers_outcomes_problems import PROBLEMS
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 5, 1
FIRST = 20
"""The answers before the decision that does not count."""
ANSWERS = (50, 100, 250)
"""The numbers of answers before the decision."""
METHODS = ("default", "MutualInformation")
"""The methods of ``peers outcomes``."""


@dataclass(frozen=True)
class Job:
    r"""A decision: the names of problem and method, answers before it, and its seed."""

    problem: str
    method: str
    answers: int
    seed: int


@dataclass(frozen=True)
class Decision(Recorded):
    r"""What a decision took.

    Args:
        job: What was decided.
        seconds: CPU seconds of fit and choice.
    """

    job: Job
    seconds: float


def run(job: Job, commands: Mapping[str, str] | None = None) -> Sequence[Decision]:
    r"""Decide once.

    Args:
        job: What to decide.
        commands: What starts the packages of others, by the names of their methods.
    """
    problem = PROBLEMS[job.problem]
    pool = Pool(cube(ROWS, problem.d, job.seed))
    p = Binary().value(problem.latent(pool.X[: job.answers]))
    generator = torch.Generator().manual_seed(job.seed)
    drawn = torch.rand(job.answers, generator=generator, dtype=torch.float64)
    test, rows = cube(POINTS, problem.d, TEST_SEED), torch.arange(job.answers)
    play = Play(job.problem, job.method, job.seed)
    with playing(play, pool, test, commands or {}, q=1) as player:
        y = (drawn < p).double()
        player.next(rows[:FIRST], y[:FIRST])
        _, seconds = player.next(rows[FIRST:], y[FIRST:])
    return [Decision(job, seconds)]


@entry("peers", "decisions", "CPU seconds of a decision by answers, and packages'")
def decisions(options: Options) -> Report:
    r"""All problems, or those named by ``--only``."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    commands = dict(package_of(text) for text in options.packages)
    for name in options.only:
        one_of(name, "--only", tuple(PROBLEMS))
    problems, methods = options.only or tuple(PROBLEMS), (*METHODS, *commands)
    order = product(range(seeds), problems, ANSWERS, methods)
    jobs = [Job(problem, method, n, seed) for seed, problem, n, method in order]
    play = partial(run, commands=commands)
    return report(measure(Decision, play, jobs, *options.where))


def report(found: Sequence[Decision]) -> Report:
    r"""Medians of each method, and the decisions themselves."""
    cells = dict[tuple[str, str], dict[int, list[float]]]()
    for one in found:
        own = cells.setdefault((one.job.problem, one.job.method), {})
        own.setdefault(one.job.answers, []).append(one.seconds)
    rows = [
        (*cell, *(f"{median(own[n]):.2f}" if n in own else "-" for n in ANSWERS))
        for cell, own in cells.items()
    ]
    heads = ("problem", "method", *(f"after {n}" for n in ANSWERS))
    tables = [Table("CPU seconds of a decision: medians", heads, rows)]
    data = {"decisions": [one.record() for one in found]}
    return Report("peers decisions", paragraphs(__doc__), tables, data=data)
