r"""How decisions in large pools scale with the cores, by torch's threads."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from tqdm import tqdm

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.designs import optimal_design
from botorch_lse.strategies import LSEStrategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, measured
from research.benchmark.speed_lookahead import (
    LARGE,
    MISCLASSIFICATION,
    decisions,
    problem,
)
from research.papers.problems import matern_prior
from research.report import Report, Table

ROWS, QUICK_ROWS = 10**6, 10**4
OBSERVATIONS, BATCH, BUDGET = 200, 10, 2**30
POINTS, FEATURES, TOL = 10**5, 20, 1e-3
TURNS = 3
"""How often each is done; the fastest counts."""


@entry("speed", "threads", "large pools on one core and on several")
def speed_threads(options: Options) -> Report:
    r"""Seconds on the clock with 1, 2, 4 ... threads, up to the number of cores."""
    n_rows = QUICK_ROWS if options.quick else ROWS
    most = 2 if options.quick else os.cpu_count() or 1
    counts = [2**i for i in range(most.bit_length()) if 2**i <= most]
    found = {
        n: in_fresh_process(times, n_rows, n)
        for n in tqdm(counts, desc="speed threads", disable=None, leave=False)
    }
    rows = [
        (name, *(f"{found[n][name]:.2f} ({one / found[n][name]:.1f})" for n in counts))
        for name, one in found[counts[0]].items()
    ]
    notes = [
        "Seconds on the clock, a fresh process per number of threads, the fastest of "
        f"{TURNS}; in brackets how many times as fast as on one. On a machine on which "
        "nothing else runs."
    ]
    columns = ("what", *(f"{n} thread{'s' * (n > 1)} (s)" for n in counts))
    return Report("speed threads", notes, [Table("Several cores", columns, rows)])


def times(n_rows: int, threads: int) -> dict[str, float]:
    r"""Seconds on the clock of each piece of work, with so many threads."""
    torch.set_num_threads(threads)
    side = round(min(LARGE, n_rows**0.5))
    reductions, decide = problem(side), decisions()[MISCLASSIFICATION]
    points = torch.randn(
        min(POINTS, n_rows), FEATURES, generator=_generator(), dtype=torch.float64
    )
    unit = torch.nn.functional.normalize(points, dim=-1)
    work = {
        f"LSE, batch of {BATCH} on {n_rows:,} rows": lse(n_rows),
        f"{MISCLASSIFICATION}, {side**2:,} rows": lambda: decide(reductions),
        f"design, {len(unit):,} x {FEATURES}": lambda: optimal_design(unit, tol=TOL),
    }
    return {name: min(_seconds(do) for _ in range(TURNS)) for name, do in work.items()}


def lse(n_rows: int) -> Callable[[], object]:
    r"""A decision after some measurements: to ask for a batch and tell it."""
    generator = _generator()
    X = torch.rand(n_rows, 3, generator=generator, dtype=torch.float64)
    y = (6 * X.sum(dim=-1)).sin()
    strategy = LSEStrategy(
        Pool(X),
        0.5,
        model=matern_prior((0.2, 0.3, 0.4)),
        noise_std=0.1,
        beta=9.0,
        batch_size=BATCH,
        memory_budget=BUDGET,
    )
    rows = torch.randint(n_rows, (OBSERVATIONS,), generator=generator)
    state = strategy.tell(strategy.init(0), Observations(rows, y[rows]))

    def decide() -> object:
        batch = strategy.ask(state)
        return strategy.tell(state, batch.observe(y[batch.order]))

    return decide


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _seconds(do: Callable[[], object]) -> float:
    with measured() as cost:
        do()
    return cost.seconds
