r"""Answers of yes and no: the trials that batches cost, and that a rising input saves.

*Batches.* Brier scores of the default, one trial at a time and in batches of 10, on the
problems of ``peers outcomes``, with the chance of a right answer told. Below them the
trials that batches need, as a share, for the scores that single trials have, in the sum
over the problems.

*Rising inputs.* Published psychometric functions, and fifteen of two, three and five
inputs: a threshold and a slope that depend smoothly on the others, and five shapes
between. On eight of these, of two and three inputs, priors were chosen. The level is
0.75. Rows are chosen by the default in batches of 10, or quasi-randomly, with
``increasing`` and without. Scores are Brier scores of sides and, as in publications,
errors of the field: how far the predicted probability of a yes is off, the mean and the
root of the mean square; and of the threshold: how far off the intensity is at which the
predicted median reaches the level, as a share of its range. Held are the latent values
between -2.5 and 2.5 that intervals of 95 % hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.strategies import Binary
from research.benchmark.peers_outcomes import POINTS, TEST_SEED, Job, cube
from research.benchmark.peers_outcomes_problems import PROBLEMS
from research.benchmark.peers_psychometric import (
    ALL,
    AUDIOGRAMS,
    FUNCTIONS,
    PUBLISHED,
)
from research.benchmark.peers_runs import reopened
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 3, 1
ROWS, Z = 600, 1.959964
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
OURS = ((0,), ())
"""The inputs with which our functions rise and fall."""
CONTEXTS, STEPS = 100, 401
"""The other inputs, and the steps of a rising one, by which thresholds are compared."""


@dataclass(frozen=True)
class Run(Recorded):
    r"""The outcome of a run.

    Args:
        job: What was run.
        brier: The Brier score after each of its numbers of trials: 0.5 is ignorance.
        field: The mean absolute error of the probability, likewise.
        square: The root of its mean square error, likewise.
        threshold: The mean absolute error of the threshold, likewise; not a number
            where the problem does not rise.
        held: The share of latent values that intervals of 95 % hold, likewise.
        crossed: The share of points on the wrong side by three deviations, likewise.
    """

    job: Job
    brier: tuple[float, ...]
    field: tuple[float, ...]
    square: tuple[float, ...]
    threshold: tuple[float, ...]
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
    along = PUBLISHED.get(job.problem, OURS) if knows else ((), ())
    risen, fallen = ([names[j] for j in columns] for columns in along)
    model = GaussianProcess(outcome=outcome, increasing=risen, decreasing=fallen)
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
            # What the user sees, also before rows are decided.
            shown = strategy.algorithm.shown(state.belief)
            found.append(_scores(job.problem, outcome, shown.posterior))
    return [Run(job, *zip(*found, strict=True))]


def _scores(name: str, outcome: Binary, posterior: PoolPosterior) -> tuple[float, ...]:
    r"""The scores of a run, as in ``Run``."""
    problem, X = ALL[name], cube(POINTS, ALL[name].d, TEST_SEED)
    mean, sigma = posterior.at(X)
    p = Binary().value(problem.latent(X))
    level = outcome.latent(torch.tensor(problem.level, dtype=torch.float64))
    truth, is_above = outcome.latent(p), p > problem.level
    off = is_above.double() - torch.special.ndtr((mean - level) / sigma)
    counts = truth.abs() <= FARTHEST
    held = ((truth - mean).abs() <= Z * sigma)[counts].double().mean()
    crossed = ((mean - level).abs() > 3 * sigma) & ((mean > level) != is_above)
    # The mean of the probability, as the latent value is uncertain.
    error = outcome.value(mean / (1 + sigma.square()).sqrt()) - p
    scores = (
        2 * off.square().mean(),
        error.abs().mean(),
        error.square().mean().sqrt(),
        _threshold_error(name, posterior, level),
        held,
        crossed.double().mean(),
    )
    return tuple(float(score) for score in scores)


def _threshold_error(name: str, posterior: PoolPosterior, level: Tensor) -> Tensor:
    r"""How far off the threshold is, as a share of the range of the rising input.

    The mean of the contexts where the truth crosses the level; where the prediction
    does not, its threshold is the end of the range.
    """
    problem = ALL[name]
    if name not in PUBLISHED and name not in FUNCTIONS:
        return torch.tensor(torch.nan)
    (rising, *_), _ = PUBLISHED.get(name, OURS)
    lines = cube(CONTEXTS, problem.d, TEST_SEED).unsqueeze(1).repeat(1, STEPS, 1)
    lines[..., rising] = torch.linspace(0, 1, STEPS, dtype=lines.dtype)
    p = Binary().value(problem.latent(lines.flatten(0, 1))).view(CONTEXTS, STEPS)
    is_above = p > problem.level
    crosses = is_above.any(dim=-1) & ~is_above.all(dim=-1)
    median = posterior.at(lines[crosses].flatten(0, 1))[0].view(-1, STEPS)
    reached = (median > level).cumsum(dim=-1).clamp_max(1).sum(dim=-1)
    error = (reached - is_above[crosses].cumsum(dim=-1).clamp_max(1).sum(dim=-1)).abs()
    return error.double().mean() / (STEPS - 1)


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
        _rising(runs, "errors of the field, mean", "field"),
        _rising(runs, "errors of the field, root of the mean square", "square"),
        _rising(runs, "errors of the threshold", "threshold"),
    ]


def _rising(runs: Sequence[Run], title: str, score: str) -> Table:
    r"""The table of one kind of scores, a field of the runs."""
    groups, rows = dict[str, list[Run]](), list[tuple[Any, ...]]()
    for r in runs:
        kind, name = "published problems", r.job.problem
        if name in FUNCTIONS:
            kind = name = "functions"
        if name in AUDIOGRAMS:
            name = "audiograms"
        for key in dict.fromkeys((name, kind)):
            groups.setdefault(key, []).append(r)
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
