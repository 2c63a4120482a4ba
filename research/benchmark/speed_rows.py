r"""How one decision grows with the pool, under a memory budget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from tqdm import tqdm

from botorch_lse._device import CPU, moved
from botorch_lse._validation import usable_device
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import keep_memory, row_blocks
from botorch_lse.strategies import LSEStrategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, Cost, in_fresh_process, measured
from research.papers.problems import matern_prior
from research.report import Report, Table

ROWS = (10**4, 10**5, 10**6, 10**7)
OBSERVATIONS, BATCH = 200, 10
BUDGETS = {10**7: 512 * MIB}
"""The memory budget where it is not ``BUDGET``: what is kept of ten million rows takes
more than that already, so that few rows of the path are."""
BUDGET = 1024 * MIB
FIRST_ROWS = 500
"""A pool of so many rows is decided about first on a GPU, which loads its programs when
they are first used."""


@dataclass(frozen=True)
class Growth:
    r"""What one pool size took: CPU seconds, or on a GPU seconds on the clock.

    Args:
        start: Replaying the past observations.
        decision: One batch asked and told.
        one: One row asked and told.
        answer: Reading the answer after it, for which all rows are brought up to date
            where that was put off.
        bare: The prior covariances of all observations with all rows alone.
        roofline: What one row takes at least where all rows are brought up to date: the
            prior covariances of the observations whose path rows are not kept, and one
            pass over those that are.
        peak: Growth of peak memory over all of it, bytes, the pool itself included; on
            a GPU of its memory.
    """

    start: float
    decision: float
    one: float
    answer: float
    bare: float
    roofline: float
    peak: int


@entry("speed", "rows", "one decision on 10^4 to 10^7 rows")
def speed_rows(options: Options) -> Report:
    r"""Seconds and peak memory by pool size."""
    rows = []
    sizes = ROWS[:-1] if options.quick else ROWS
    for n_rows in tqdm(sizes, desc="speed rows", disable=None, leave=False):
        given = OBSERVATIONS, BATCH, BUDGETS.get(n_rows, BUDGET), options.device
        growth = in_fresh_process(decide, n_rows, *given)
        rows.append(
            (
                f"{n_rows:,}",
                f"{growth.start:.2f}",
                f"{growth.decision:.2f}",
                f"{growth.one:.2f}",
                f"{growth.answer:.2f}",
                f"{growth.bare:.2f}",
                f"{growth.roofline:.2f}",
                f"{(growth.one + growth.answer) / growth.roofline:.1f}",
                f"{growth.peak / MIB:.0f}",
            )
        )
    columns = (
        "rows",
        f"past of {OBSERVATIONS} (s)",
        f"decision, batch of {BATCH} (s)",
        "decision, one row (s)",
        "reading its answer (s)",
        "bare kernel (s)",
        "roofline (s)",
        "one row and its answer over the roofline",
        "peak memory (MiB)",
    )
    where = (
        "One core, CPU seconds, a fresh process per size; memory above what the "
        "libraries take, the pool included."
    )
    if torch.device(options.device) != CPU:
        where = (
            f"On {options.device}, seconds on the clock once all is computed, a fresh "
            "process per size, after a small pool that loads the device's programs; "
            "memory of the device."
        )
    notes = [
        f"`memory_budget` of {BUDGET // MIB} MiB, on 10^7 rows of "
        f"{BUDGETS[10**7] // MIB} MiB; LSE after {OBSERVATIONS} "
        f"observations, told in one round, then a batch of {BATCH} asked and told, "
        f"then one row. Three inputs, Matern-5/2. {where}",
        "The roofline of one row is the prior covariances of the observations whose "
        "path rows are not kept, with all rows, and one pass over those that are.",
        "The bare kernel is what a row's covariances need at least where the past is "
        f"not kept: those of {OBSERVATIONS} observations with all rows, evaluated "
        "once and thrown away.",
    ]
    return Report("speed rows", notes, [Table("Growth with the pool", columns, rows)])


def decide(
    n_rows: int, observations: int, batch_size: int, budget: int, device: str = "cpu"
) -> Growth:
    r"""Tell a past, then ask for one batch and tell it, then for one row."""
    where = usable_device(device, "device")
    if where != CPU and n_rows > FIRST_ROWS:
        decide(FIRST_ROWS, observations, batch_size, budget, device)
    generator = torch.Generator().manual_seed(0)
    prior = matern_prior((0.2, 0.3, 0.4))
    start, decision, one = Cost(), Cost(), Cost()
    with measured(where) as whole:
        X = torch.rand(n_rows, 3, generator=generator, dtype=torch.float64)
        strategy = LSEStrategy(
            Pool(X, device=where),
            0.5,
            model=prior,
            noise_std=0.1,
            beta=9.0,
            batch_size=batch_size,
            memory_budget=budget,
        )
        rows = torch.randint(n_rows, (observations,), generator=generator)
        y = torch.randn(observations, generator=generator, dtype=torch.float64)
        with measured(where) as start:
            state = strategy.tell(strategy.init(0), Observations(rows, y))
        with measured(where) as decision:
            batch = strategy.ask(state)
            state = strategy.tell(state, batch.observe(torch.zeros(len(batch))))
        single, known = replace(strategy, batch_size=1), state.observations
        del strategy, state, batch  # two runs at once would take twice the memory
        state = single.replay(known, seed=0)
        with measured(where) as one:
            batch = single.ask(state)
            state = single.tell(state, batch.observe(torch.zeros(len(batch))))
        with measured(where) as answer:
            state.classification  # noqa: B018  (made when it is read)
        kept = state.belief.posterior._path
    there, X = moved((prior, X), where)
    keep_memory()
    with measured(where) as bare, torch.no_grad():
        features, data = there.features(X), there.features(X[rows])
        for block in row_blocks(n_rows, observations, budget):
            there.covariance(data, features[block])
    with measured(where) as roofline, torch.no_grad():
        for block in row_blocks(n_rows, observations, budget):
            there.covariance(data[len(kept) :], features[block])
        kept.new_ones(len(kept)) @ kept

    def took(cost: Cost) -> float:
        return cost.cpu if where == CPU else cost.seconds

    return Growth(
        took(start),
        took(decision),
        took(one),
        took(answer),
        took(bare),
        took(roofline),
        whole.peak,
    )
