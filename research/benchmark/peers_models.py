r"""Rows left on a wrong side where each package has a model of its own.

The other comparisons of peers give all of them the same fixed process. Here each learns
its model from the values, chooses by it and says which rows are above; so the whole is
compared: model, initial design and rule. Values are exact, one is measured at a time,
and all begin with the same ``2 d + 2`` rows drawn at random by seed.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from botorch_lse import Above, GaussianProcess, Observations, Strategy
from botorch_lse.rules import Random, Rule, Straddle
from research.benchmark.peers_all import FLOOR, package_of
from research.benchmark.peers_packages import started
from research.benchmark.peers_problems import REPORTED, Case
from research.benchmark.peers_runs import reopened
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 4, 1
AT = (10.0, 12.5, 20.0)
"""Measurements for each input after which wrong rows are counted."""
INSIDE = 1.96
"""The standard deviations of an interval that should hold 95 % of the truth."""
QUICK = ("Himmelblau", "Hartmann-3")
EXACT = GaussianProcess(noise_std=0.0)
OURS: dict[str, tuple[GaussianProcess, Rule | None]] = {
    "default": (EXACT, None),
    "single": (GaussianProcess(noise_std=0.0, family="single"), None),
    "straddle": (EXACT, Straddle()),
    "random rows": (EXACT, Random()),
}
"""The strategies of ours: their models and rules."""


@dataclass(frozen=True)
class Job:
    r"""A run: a function of its problem, its method and its seed."""

    problem: str
    method: str
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""What came out.

    Args:
        job: What was run.
        wrong: Rows on the wrong side after each of ``AT``.
        seconds: Wall seconds of all its choosing; of a package those between questions
            and answers.
        held: Shares of the rows not measured whose truth lies within 1.96 standard
            deviations of the mean, after each of ``AT``; of a package none.
        left_out: Shares of the measured values that lie so far from what all others
            predict, likewise.
    """

    job: Job
    wrong: tuple[int, ...]
    seconds: float
    held: tuple[float, ...] = ()
    left_out: tuple[float, ...] = ()


def first_rows(case: Case, seed: int) -> Tensor:
    r"""The rows that all begin with."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(case.pool), generator=generator)
    return order[: 2 * case.pool.d + 2]


def counts_of(case: Case) -> list[int]:
    r"""Measurements after which wrong rows are counted."""
    return [math.ceil(each * case.pool.d) for each in AT]


def of_ours(job: Job, case: Case) -> Run:
    r"""A run of a strategy of ours."""
    goal = Above(case.threshold)
    model, rule = OURS[job.method]
    strategy = Strategy(case.pool, goal, model=model, rule=rule, batch_size=1)
    rows, at = first_rows(case, job.seed), counts_of(case)
    state, wrong, began = strategy.init(job.seed), [], time.perf_counter()
    held, left_out = [], []
    while len(rows):
        state = strategy.tell(state, Observations(rows, case.truth[rows]))
        if len(state.observations) in at:
            answer = state.classification
            wrong.append(int(((answer.mean > case.threshold) != case.above).sum()))
            is_open = torch.ones(len(case.pool), dtype=torch.bool)
            is_open[state.observations.indices] = False
            off = (case.truth - answer.mean).abs()[is_open]
            is_inside = off <= INSIDE * answer.sigma[is_open]
            held.append(float(is_inside.double().mean()))
            is_inside = state.calibration().out.abs() <= INSIDE
            left_out.append(float(is_inside.double().mean()))
        if len(state.observations) >= at[-1]:
            break
        state = reopened(state, goal)
        rows = strategy.ask(state).order
    seconds = time.perf_counter() - began
    return Run(job, tuple(wrong), seconds, tuple(held), tuple(left_out))


def of_package(job: Job, case: Case, command: str) -> Run:
    r"""A run of a package that has a model of its own."""
    rows, at, n = first_rows(case, job.seed), counts_of(case), 0
    wrong, seconds = list[int](), 0.0
    with started(command, case, 0.0, 1, job.seed, has_model=True) as peer:
        while n < at[-1]:
            n += len(rows)
            began = time.perf_counter()
            rows, above = peer.next_and_above(rows, case.truth[rows])
            seconds += time.perf_counter() - began
            assert above is not None  # it has a model
            if n in at:
                wrong.append(int((above != case.above).sum()))
    return Run(job, tuple(wrong), seconds)


def run(
    job: Job, data: Path | None = None, commands: Mapping[str, str] | None = None
) -> Sequence[Run]:
    r"""Play a job."""
    case = REPORTED[job.problem].case(job.seed, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits to few values
        if job.method in OURS:
            return [of_ours(job, case)]
        return [of_package(job, case, (commands or {})[job.method])]


@entry("peers", "models", "packages with models of their own, see peers/README.md")
def models(options: Options) -> Report:
    r"""All problems by which nothing was chosen."""
    commands = dict(package_of(text) for text in options.packages)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    problems = [
        name
        for name in (QUICK if options.quick else REPORTED)
        if REPORTED[name].is_there(options.data)
    ]
    every = product(range(seeds), problems, (*OURS, *commands))
    jobs = [Job(problem, method, seed) for seed, problem, method in every]
    play = partial(run, data=options.data, commands=commands)
    return report(measure(Run, play, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""How the methods compare, and their counts by problem."""
    data = {"runs": [one.record() for one in runs]}
    of_truth = "The truth within intervals of 95 %, rows not measured"
    of_values = "Measured values within intervals of 95 % by all others"
    tables = [
        ratio_table(runs),
        count_table(runs),
        share_table(of_truth, {r.job: r.held for r in runs if r.held}),
        share_table(of_values, {r.job: r.left_out for r in runs if r.left_out}),
    ]
    return Report("peers models", paragraphs(__doc__), tables, data=data)


def by_cell(runs: Sequence[Run]) -> dict[str, dict[str, list[float]]]:
    r"""The mean counts of each method, by problem and method, and its seconds."""
    found: dict[str, dict[str, list[float]]] = {}
    for problem, method in dict.fromkeys((r.job.problem, r.job.method) for r in runs):
        own = [r for r in runs if (r.job.problem, r.job.method) == (problem, method)]
        columns = [*zip(*(r.wrong for r in own), strict=True)]
        counts = [max(sum(column) / len(own), FLOOR) for column in columns]
        seconds = sum(r.seconds for r in own) / len(own)
        found.setdefault(problem, {})[method] = [*counts, seconds]
    return found


def ratio_table(runs: Sequence[Run]) -> Table:
    r"""The default over each other method: geometric means over the problems."""
    cells, lines = by_cell(runs), []
    for method in dict.fromkeys(r.job.method for r in runs):
        both = [own for own in cells.values() if {"default", method} <= own.keys()]
        if method == "default" or not both:
            continue
        line = [method, len(both)]
        for i in range(len(AT) + 1):
            logs = torch.tensor(
                [math.log(own["default"][i] / own[method][i]) for own in both]
            ).double()
            error = float(logs.std() / len(logs) ** 0.5) if len(logs) > 1 else math.nan
            ratio = float(logs.mean().exp())
            line.append(f"{ratio:.2f} ± {ratio * error:.2f}")
        lines.append(tuple(line))
    heads = [f"after {each:g} d" for each in AT]
    columns = ("the default over", "problems", *heads, "seconds")
    return Table("Wrong rows and seconds: geometric means", columns, lines)


def count_table(runs: Sequence[Run]) -> Table:
    r"""The wrong rows of each method by problem."""
    lines = [
        (problem, method, *(f"{x:.1f}" for x in counts[:-1]), f"{counts[-1]:.1f}")
        for problem, own in by_cell(runs).items()
        for method, counts in own.items()
    ]
    heads = [f"after {each:g} d" for each in AT]
    return Table(
        "Wrong rows: means", ("problem", "method", *heads, "seconds a run"), lines
    )


def share_table(title: str, shares: Mapping[Job, Sequence[float]]) -> Table:
    r"""How much lies within the intervals of each method of ours."""
    lines = []
    for method in dict.fromkeys(job.method for job in shares):
        found = [own for job, own in shares.items() if job.method == method]
        own = torch.tensor(found, dtype=torch.float64)
        means = (f"{x:.1%}" for x in own.mean(dim=0).tolist())
        lines.append((method, len(own), *means, f"{float(own.min()):.1%}"))
    heads = [f"after {each:g} d" for each in AT]
    return Table(title, ("method", "runs", *heads, "least"), lines)
