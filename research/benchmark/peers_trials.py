r"""Answers of yes and no: the trials that batches cost, and that a rising input saves.

*Batches.* Brier scores of the default, one trial at a time and in batches of 10, on the
problems of ``peers outcomes``, with the chance of a right answer told. Below them the
trials that batches need, as a share, for the scores that single trials have, in the sum
over the problems.

*Rising inputs.* Three of these problems and one more, which rise with an intensity; and
fifteen psychometric functions of two, three and five inputs: a threshold and a slope
that depend smoothly on the others, and five shapes between. The level is 0.75. Rows are
chosen by the default in batches of 10, or quasi-randomly, with ``increasing`` and
without. Scores are Brier scores of sides, and errors of the field: the root of the mean
square error of the predicted probability of a yes, by which models of psychometric
functions are compared where no level is asked. Held are the latent values between -2.5
and 2.5 that intervals of 95 % hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.strategies import Binary
from research.benchmark.peers_outcomes import POINTS, TEST_SEED, Job, cube
from research.benchmark.peers_outcomes_problems import (
    PROBLEMS,
    Problem,
    low_dimensional,
)
from research.benchmark.peers_runs import reopened
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 3, 1
ROWS, LEVEL, Z = 600, 0.75, 1.959964
SINGLE_AT, RISING_AT = (50, 100, 150), (20, 50, 100, 200)
"""The numbers of trials after which errors are compared."""
FARTHEST = 2.5
"""The latent values beyond which it does not matter how large they are."""
ONE, TEN = "one at a time", "batches of 10"
RISING = {
    "without increasing": (False, False),
    "increasing": (True, False),
    "without increasing, quasi-random": (False, True),
    "increasing, quasi-random": (True, True),
}
"""For each method whether it knows what rises, and whether rows are quasi-random."""
SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "line": lambda t: t,
    "square": lambda t: t.sign() * t.square() * 1.5,
    "step": lambda t: 0.3 * t + 0.7 * (6 * t).tanh() * 0.6,
    "logarithm": lambda t: t.sign() * (1 + 4 * t.abs()).log() * 0.6,
    "bend": lambda t: torch.where(t > 0, 1.6 * t, 0.6 * t),
}
"""From the distance to the threshold to the latent value over the slope."""
INPUTS = (2, 3, 5)
PUBLISHED = {
    "discrimination, 2-D": (1,),
    "novel detection, 2-D": (1,),
    "contrast sensitivity, 6-D": (0, 4),
    "discrimination, 8-D": (0,),
}
"""The inputs with which a published problem rises: intensities, contrast and size."""


def psychometric(shape: str, d: int) -> Problem:
    r"""A function of ``d`` inputs that rises with the first.

    Args:
        shape: One of ``SHAPES``.
        d: The number of inputs.
    """
    k = list(SHAPES).index(shape)

    def latent(u: Tensor) -> Tensor:
        x, *others = u.unbind(dim=-1)
        waves = [((2.0 + 0.5 * k) * z + j).sin() for j, z in enumerate(others)]
        bends = [(3.0 * z - 0.7 * k + j).cos() for j, z in enumerate(others)]
        threshold = 0.5 + 0.3 * sum(waves[1:], waves[0]) / len(others)
        slope = 7.0 * (1 + 0.4 * sum(bends[1:], bends[0]) / len(others))
        return slope * SHAPES[shape](x - threshold)

    return Problem(d, LEVEL, latent, {})


def novel_detection(u: Tensor) -> Tensor:
    r"""Detection of a stimulus by its intensity and a context.

    Source:
        Owen et al. (2021), "Adaptive nonparametric psychophysics"; its latent function
        is twice that of ``low_dimensional``, less 4, so that no answer is a guess.
    """
    return 2 * low_dimensional(u) - 4


FUNCTIONS = {
    f"{shape}, {d}-D": psychometric(shape, d) for d, shape in product(INPUTS, SHAPES)
}
ALL = PROBLEMS | {"novel detection, 2-D": Problem(2, LEVEL, novel_detection, {})}
ALL |= FUNCTIONS


@dataclass(frozen=True)
class Run(Recorded):
    r"""The outcome of a run.

    Args:
        job: What was run.
        brier: The Brier score after each of its numbers of trials: 0.5 is ignorance.
        field: The root of the mean square error of the probability, likewise.
        held: The share of latent values that intervals of 95 % hold, likewise.
        crossed: The share of points on the wrong side by three deviations, likewise.
    """

    job: Job
    brier: tuple[float, ...]
    field: tuple[float, ...]
    held: tuple[float, ...]
    crossed: tuple[float, ...]


def run(job: Job) -> Sequence[Run]:
    r"""Play a run, and score it after its numbers of trials."""
    problem, is_rising = ALL[job.problem], job.method in RISING
    knows, is_random = RISING.get(job.method, (False, False))
    at, q = (RISING_AT if is_rising else SINGLE_AT), 1 if job.method == ONE else 10
    names = [f"x{j + 1}" for j in range(problem.d)]
    pool = Pool(cube(ROWS, problem.d, job.seed), names=names)
    outcome, goal = Binary(guess=problem.chance), Above(problem.level)
    risen = [names[j] for j in PUBLISHED.get(job.problem, (0,))] if knows else []
    model = GaussianProcess(outcome=outcome, increasing=risen)
    strategy = Strategy(pool, goal, model=model, batch_size=q)
    p = Binary().value(problem.latent(pool.X))
    generator = torch.Generator().manual_seed(job.seed)
    state, found = strategy.init(job.seed), list[tuple[float, ...]]()
    for n in range(q, max(at) + 1, q):
        rows = torch.arange(n - q, n)
        if not is_random:
            rows = strategy.ask(state).order
        drawn = torch.rand(q, generator=generator, dtype=torch.float64)
        told = Observations(rows, (drawn < p[rows]).double())
        state = reopened(strategy.tell(state, told), goal)
        if n in at:
            mean, sigma = state.belief.posterior.at(cube(POINTS, problem.d, TEST_SEED))
            found.append(_scores(problem, outcome, mean, sigma))
    return [Run(job, *zip(*found, strict=True))]


def _scores(
    problem: Problem, outcome: Binary, mean: Tensor, sigma: Tensor
) -> tuple[float, ...]:
    r"""Brier score, error of the field, and the shares held and on the wrong side."""
    p = Binary().value(problem.latent(cube(POINTS, problem.d, TEST_SEED)))
    level = outcome.latent(torch.tensor(problem.level, dtype=torch.float64))
    truth, is_above = outcome.latent(p), p > problem.level
    off = is_above.double() - torch.special.ndtr((mean - level) / sigma)
    counts = truth.abs() <= FARTHEST
    held = ((truth - mean).abs() <= Z * sigma)[counts].double().mean()
    crossed = ((mean - level).abs() > 3 * sigma) & ((mean > level) != is_above)
    # The mean of the probability, as the latent value is uncertain.
    chance = outcome.value(mean / (1 + sigma.square()).sqrt())
    field, brier = (chance - p).square().mean().sqrt(), 2 * off.square().mean()
    return float(brier), float(field), float(held), float(crossed.double().mean())


def jobs_of(seeds: int, only: Sequence[str]) -> Iterator[Job]:
    r"""All runs, a seed after the other."""
    for seed in range(seeds):
        for name in only or ALL:
            methods = [ONE, TEN] if name in PROBLEMS else []
            if name in FUNCTIONS or name in PUBLISHED:
                methods += RISING
            yield from (Job(name, method, seed) for method in methods)


@entry("peers", "trials", "trials that batches cost, and that a rising input saves")
def trials(options: Options) -> Report:
    r"""All problems and methods."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    jobs = list(jobs_of(seeds, options.only))
    runs = measure(Run, run, jobs, *options.where)
    tables = [
        *batches_table([r for r in runs if r.job.method not in RISING]),
        *rising_tables([r for r in runs if r.job.method in RISING]),
    ]
    data = {"runs": [one.record() for one in runs]}
    return Report("trials", paragraphs(__doc__), tables, data=data)


def batches_table(runs: Sequence[Run]) -> list[Table]:
    r"""Brier scores of single trials and of batches, for each problem."""
    by = {(r.job.problem, r.job.seed, r.job.method): r.brier for r in runs}
    rows, sums = list[tuple[Any, ...]](), dict[str, np.ndarray]()
    for name in dict.fromkeys(r.job.problem for r in runs):
        seeds = sorted({s for p, s, m in by if p == name and m == ONE})
        pairs = [(by[name, s, ONE], by[name, s, TEN]) for s in seeds]
        one, ten = (np.array(column) for column in zip(*pairs, strict=True))
        error = (ten - one).std(axis=0, ddof=min(1, len(seeds) - 1)) / len(seeds) ** 0.5
        cells = [
            f"{a:.3f}, {b:.3f} +- {e:.3f}"
            for a, b, e in zip(one.mean(axis=0), ten.mean(axis=0), error, strict=True)
        ]
        rows.append((name, len(seeds), *cells))
        for method, found in ((ONE, one), (TEN, ten)):
            sums[method] = sums.get(method, 0.0) + found.mean(axis=0)
    if not rows:
        return []
    # What falls after so many trials of batches, by lines between those scored.
    falling = -np.minimum.accumulate(sums[TEN])
    needed = np.interp(-sums[ONE], falling, SINGLE_AT)
    shares = []
    for score, n, at in zip(-sums[ONE], needed, SINGLE_AT, strict=True):
        sign = "< " if score < falling[0] else "> " if score > falling[-1] else ""
        shares.append(f"{sign}{n / at:.2f}")
    rows.append(("trials of batches over single ones", "", *shares))
    heads = [f"after {n}: one, ten" for n in SINGLE_AT]
    return [Table("Batches: Brier scores", ("problem", "seeds", *heads), rows)]


def rising_tables(runs: Sequence[Run]) -> list[Table]:
    r"""Scores of problems that rise, for the functions their mean, and intervals.

    With the trials without ``increasing`` that tell as much as those with it do.
    """
    if not runs:
        return []
    return [
        _rising(runs, "Brier scores", "brier"),
        _rising(runs, "errors of the field", "field"),
    ]


def _rising(runs: Sequence[Run], title: str, score: str) -> Table:
    r"""The table of one kind of scores, a field of the runs."""
    groups, rows = dict[str, list[Run]](), list[tuple[Any, ...]]()
    for r in runs:
        is_one = r.job.problem in FUNCTIONS
        name = "mean of the functions" if is_one else r.job.problem
        groups.setdefault(name, []).append(r)
    for name, group in groups.items():
        means = {}
        for method in dict.fromkeys(r.job.method for r in group):
            own = [r for r in group if r.job.method == method]
            n = len({r.job.seed for r in own})
            means[method] = np.array([getattr(r, score) for r in own]).mean(axis=0)
            held = 100 * np.array([r.held for r in own]).mean(axis=0)
            worst = max(max(r.crossed) for r in own)
            pairs = zip(means[method], held, strict=True)
            cells = [f"{b:.3f} ({h:.0f} %)" for b, h in pairs]
            rows.append((name, method, n, *cells, f"{100 * worst:.1f} %"))
        for blind, known in itertools.pairwise(means):
            if RISING[known] != (True, RISING[blind][1]):
                continue
            cells = like(means[blind], means[known])
            rows.append((name, f"trials for as much as {known}", "", *cells, ""))
    heads = [f"after {n}" for n in RISING_AT]
    head = ("problem", "method", "seeds", *heads, "crossed")
    return Table(f"Rising inputs: {title} (held), most crossed", head, rows)


def like(blind: np.ndarray, known: np.ndarray) -> list[str]:
    r"""The trials of one method after which it scores as another after ``RISING_AT``.

    Args:
        blind: Scores of the one after ``RISING_AT``.
        known: Those of the other.
    """
    falling = -np.minimum.accumulate(blind)
    found = []
    for score in -known:
        sign = "< " if score < falling[0] else "> " if score > falling[-1] else ""
        found.append(f"{sign}{np.interp(score, falling, RISING_AT):.0f}")
    return found
