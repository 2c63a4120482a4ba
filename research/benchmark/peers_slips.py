r"""Errors where some values are typed or measured wrongly.

Each value is off, with a small probability, by 10 to 50 standard deviations of the
noise, up or down. The default strategy, five rows at a time up to ``20 d``; the noise,
1.25 % of the range, is known or learnt. Late error: wrong rows, mean over the second
half of the rounds; the table has its geometric mean over that without slips.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch

from botorch_lse import Above, GaussianProcess, Strategy
from research.benchmark.peers_all import FLOOR
from research.benchmark.peers_problems import REPORTED
from research.benchmark.peers_runs import reopened
from research.benchmark.recorded import Recorded, measure
from research.benchmark.registry import Options, entry
from research.report import Report, Table, paragraphs

SEEDS, QUICK_SEEDS = 2, 1
QUICK = ("Himmelblau", "Hartmann-3")
NOISE = 0.0125
"""The standard deviation of the noise, as a share of the range."""
OFF = (10.0, 50.0)
"""How far slips are off, in standard deviations of the noise."""
SHARES = (0.0, 0.01, 0.03, 0.05)
MOST_FOR_EACH_INPUT, BATCH = 20, 5


@dataclass(frozen=True)
class Job:
    r"""A run: a function of its problem, the share of slips, the noise and its seed."""

    problem: str
    share: float
    is_noise_known: bool
    seed: int


@dataclass(frozen=True)
class Run(Recorded):
    r"""What came out.

    Args:
        job: What was run.
        late: Wrong rows, mean over the second half of the rounds.
        slips: How many values were off.
        found: How many of these were left out at the end.
        right: How many right values were left out at the end.
        wrong_decided: How many rows were decided wrongly at the end.
    """

    job: Job
    late: float
    slips: int
    found: int
    right: int
    wrong_decided: int


def run(job: Job, data: Path | None = None) -> list[Run]:
    r"""Play a job."""
    case = REPORTED[job.problem].case(job.seed, data)
    goal, sigma = Above(case.threshold), NOISE * case.range
    model = GaussianProcess(noise_std=sigma if job.is_noise_known else None)
    strategy = Strategy(case.pool, goal, model=model, batch_size=BATCH)
    noise, slips = (torch.Generator().manual_seed(2 * job.seed + k) for k in (0, 1))
    state, off, wrong = strategy.init(job.seed), set[float](), []
    while state.n_used < MOST_FOR_EACH_INPUT * case.pool.d:
        batch = strategy.ask(state)
        draws = torch.rand(3, len(batch), generator=slips, dtype=torch.float64)
        by = OFF[0] + (OFF[1] - OFF[0]) * draws[1]
        by = sigma * by * torch.where(draws[2] < 0.5, -1.0, 1.0)
        y = torch.randn(len(batch), generator=noise, dtype=torch.float64)
        is_slip = draws[0] < job.share
        y = case.truth[batch.order] + sigma * y + torch.where(is_slip, by, 0.0)
        off.update(y[is_slip].tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of slips, and of fits to few values
            state = strategy.tell(state, batch.observe(y))
        answer = state.classification
        wrong.append(int(((answer.mean > case.threshold) != case.above).sum()))
        state = reopened(state, goal)
    late = wrong[len(wrong) // 2 :]
    out = [slip.value for slip in state.belief.slips]
    is_wrong = (answer.above & ~case.above) | (answer.below & case.above)
    found = sum(value in off for value in out)
    return [
        Run(
            job,
            sum(late) / len(late),
            len(off),
            found,
            len(out) - found,
            int(is_wrong.sum()),
        )
    ]


@entry("peers", "slips", "errors where some values are typed or measured wrongly")
def slips(options: Options) -> Report:
    r"""All problems by which nothing was chosen, with each share of slips."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    names = QUICK if options.quick else REPORTED
    there = [name for name in names if REPORTED[name].is_there(options.data)]
    every = product(range(seeds), there, (True, False), SHARES)
    jobs = [Job(name, share, known, seed) for seed, name, known, share in every]
    play = partial(run, data=options.data)
    return report(measure(Run, play, jobs, *options.where))


def report(runs: Sequence[Run]) -> Report:
    r"""The means by share of slips and noise."""
    data = {"runs": [one.record() for one in runs]}
    return Report("peers slips", paragraphs(__doc__), [slip_table(runs)], data=data)


def slip_table(runs: Sequence[Run]) -> Table:
    r"""The late errors over those without slips, and what was found."""
    clean = {
        (r.job.problem, r.job.is_noise_known, r.job.seed): max(r.late, FLOOR)
        for r in runs
        if r.job.share == 0
    }
    rows = []
    for is_known, share in product((True, False), SHARES):
        own = [
            r for r in runs if (r.job.is_noise_known, r.job.share) == (is_known, share)
        ]
        if not own:
            continue
        ratios = [
            math.log(max(r.late, FLOOR) / clean[r.job.problem, is_known, r.job.seed])
            for r in own
        ]
        logs = torch.tensor(ratios, dtype=torch.float64)
        error = float(logs.std() / len(logs) ** 0.5) if len(logs) > 1 else math.nan
        ratio = float(logs.mean().exp())
        rows.append(
            (
                "known" if is_known else "learnt",
                f"{share:.0%}",
                len(own),
                f"{ratio:.2f} ± {ratio * error:.2f}",
                f"{sum(r.found for r in own)} of {sum(r.slips for r in own)}",
                sum(r.right for r in own),
                sum(r.wrong_decided for r in own),
            )
        )
    found = ("slips left out", "right values left out", "rows decided wrongly")
    columns = ("noise", "slips", "runs", "late error over none", *found)
    return Table("With slips, after 20 d values", columns, rows)
