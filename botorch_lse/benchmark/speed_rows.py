r"""How one decision grows with the pool, under a memory budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from tqdm import tqdm

from botorch_lse.benchmark.registry import Options, entry
from botorch_lse.benchmark.speed import MIB, Cost, in_fresh_process, measured
from botorch_lse.models.gaussian_process import row_blocks
from botorch_lse.papers.problems import matern_prior
from botorch_lse.papers.report import Report, Table
from botorch_lse.problem import Observations, Pool
from botorch_lse.strategies import LSEStrategy

ROWS = (10**4, 10**5, 10**6, 10**7)
OBSERVATIONS, BATCH = 200, 10
BUDGETS = {10**7: 512 * MIB}
"""The memory budget where it is not ``BUDGET``: what is kept of ten million rows takes
more than that already, so that few rows of the path are."""
BUDGET = 1024 * MIB


@dataclass(frozen=True)
class Growth:
    r"""What one pool size took.

    Args:
        start: Replaying the past observations.
        decision: One batch asked and told: seconds.
        one: One row asked and told: seconds.
        bare: The prior covariances of all observations with all rows alone: seconds.
        peak: Growth of peak memory over all of it, bytes, the pool itself included.
    """

    start: float
    decision: float
    one: float
    bare: float
    peak: int


@entry("speed", "rows", "one decision on 10^4 to 10^7 rows")
def speed_rows(options: Options) -> Report:
    r"""Seconds and peak memory by pool size."""
    rows = []
    sizes = ROWS[:-1] if options.quick else ROWS
    for n_rows in tqdm(sizes, desc="speed rows", disable=None, leave=False):
        budget = BUDGETS.get(n_rows, BUDGET)
        growth = in_fresh_process(decide, n_rows, OBSERVATIONS, BATCH, budget)
        rows.append(
            (
                f"{n_rows:,}",
                f"{growth.start:.2f}",
                f"{growth.decision:.2f}",
                f"{growth.one:.2f}",
                f"{growth.bare:.2f}",
                f"{growth.one / growth.bare:.1f}",
                f"{growth.peak / MIB:.0f}",
            )
        )
    columns = (
        "rows",
        f"past of {OBSERVATIONS} (s)",
        f"decision, batch of {BATCH} (s)",
        "decision, one row (s)",
        "bare kernel (s)",
        "one row over bare",
        "peak memory (MiB)",
    )
    notes = [
        f"`memory_budget` of {BUDGET // MIB} MiB, on 10^7 rows of "
        f"{BUDGETS[10**7] // MIB} MiB; LSE after {OBSERVATIONS} "
        f"observations, told in one round, then a batch of {BATCH} asked and told, "
        "then one row. Three inputs, Matern-5/2. One core, CPU seconds, a fresh "
        "process per size; memory above what the libraries take, the pool included.",
        "The bare kernel is what a row's covariances need at least where the past is "
        f"not kept: those of {OBSERVATIONS} observations with all rows, evaluated "
        "once and thrown away.",
    ]
    return Report("speed rows", notes, [Table("Growth with the pool", columns, rows)])


def decide(n_rows: int, observations: int, batch_size: int, budget: int) -> Growth:
    r"""Tell a past, then ask for one batch and tell it, then for one row."""
    generator = torch.Generator().manual_seed(0)
    prior = matern_prior((0.2, 0.3, 0.4))
    start, decision, one = Cost(), Cost(), Cost()
    with measured() as whole:
        X = torch.rand(n_rows, 3, generator=generator, dtype=torch.float64)
        strategy = LSEStrategy(
            Pool(X),
            0.5,
            model=prior,
            noise_std=0.1,
            beta=9.0,
            batch_size=batch_size,
            memory_budget=budget,
        )
        rows = torch.randint(n_rows, (observations,), generator=generator)
        y = torch.randn(observations, generator=generator, dtype=torch.float64)
        with measured() as start:
            state = strategy.tell(strategy.init(0), Observations(rows, y))
        with measured() as decision:
            batch = strategy.ask(state)
            state = strategy.tell(state, batch.observe(torch.zeros(len(batch))))
        single, known = replace(strategy, batch_size=1), state.observations
        del strategy, state, batch  # two runs at once would take twice the memory
        state = single.replay(known, seed=0)
        with measured() as one:
            batch = single.ask(state)
            single.tell(state, batch.observe(torch.zeros(len(batch))))
    with measured() as bare, torch.no_grad():
        features, data = prior.features(X), prior.features(X[rows])
        for block in row_blocks(n_rows, observations, budget):
            prior.covariance(data, features[block])
    return Growth(start.cpu, decision.cpu, one.cpu, bare.cpu, whole.peak)
