r"""A whole run on a million rows: what is not looked at costs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_lse.data.pool import Pool
from botorch_lse.strategies import LSEStrategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, in_fresh_process, measured, target
from research.papers.problems import matern_prior
from research.report import Report, Table

ROWS, QUICK_ROWS, MEASUREMENTS = 10**6, 10**5, 300
LENGTHSCALES, LEVEL, NOISE_STD = (0.2, 0.3, 0.4), 0.5, 0.1
FREQUENCIES = 2000
"""Cosines that make up a function like a draw from the process."""
CASES = (
    ("the theorem's width", 1, None),
    ("beta = 9", 1, 9.0),
    ("beta = 9", 10, 9.0),
)
MOST_MEMORY = 1024 * MIB
"""Bytes of a run that are the goal."""
BUDGET = 640 * MIB
"""The memory budget, for path rows and temporary arrays: with the pool, the answer and
what else has a number per row a run takes up to twice as much."""


@dataclass(frozen=True)
class Run:
    r"""What a run took.

    Args:
        cpu: Its CPU seconds, the last answer read.
        decided: The share of the rows that were decided at last.
        peak: Growth of peak memory, bytes, the pool included.
    """

    cpu: float
    decided: float
    peak: int


@entry("speed", "run", "a run of 300 measurements on 10^6 rows")
def speed_run(options: Options) -> Report:
    r"""Seconds of whole runs, one row at a time and in batches."""
    n_rows, rows = QUICK_ROWS if options.quick else ROWS, []
    for name, size, beta in tqdm(CASES, desc="speed run", disable=None, leave=False):
        found = in_fresh_process(run, n_rows, MEASUREMENTS, size, beta)
        rows.append(
            (
                name,
                str(size),
                f"{found.cpu:.0f} s",
                f"{100 * found.decided:.0f} %",
                target(f"{found.peak / MIB:.0f}", found.peak <= MOST_MEMORY),
            )
        )
    columns = (
        "width",
        "rows a round",
        "run",
        "decided",
        f"peak memory (MiB, goal {MOST_MEMORY // MIB})",
    )
    notes = [
        f"LSE on {n_rows:,} rows, {MEASUREMENTS} measurements of a function like a "
        f"draw from the process, three inputs, Matern-5/2, `memory_budget` of "
        f"{BUDGET // MIB} MiB; the answer is read once, after the last. One core, CPU "
        "seconds, a fresh process per run; memory above what the libraries take.",
    ]
    return Report("speed run", notes, [Table("Whole runs", columns, rows)])


def run(n_rows: int, measurements: int, size: int, beta: float | None) -> Run:
    r"""One run to its end, its last answer read."""
    generator = torch.Generator().manual_seed(0)
    f = like_a_draw(generator)
    with measured() as cost:
        X = torch.rand(n_rows, 3, generator=generator, dtype=torch.float64)
        strategy = LSEStrategy(
            Pool(X),
            LEVEL,
            model=matern_prior(LENGTHSCALES),
            noise_std=NOISE_STD,
            beta=beta,
            batch_size=size,
            max_observations=measurements,
            memory_budget=BUDGET,
        )
        state = strategy.init(0)
        while not state.is_done:
            batch = strategy.ask(state)
            noise = torch.randn(len(batch), generator=generator, dtype=torch.float64)
            y = f(X[batch.order]) + NOISE_STD * noise
            state = strategy.tell(state, batch.observe(y))
        undecided = state.classification.undecided
    decided = 1.0 - float(undecided.double().mean())
    return Run(cost.cpu, decided, cost.peak)


def like_a_draw(generator: torch.Generator) -> Callable[[Tensor], Tensor]:
    r"""A function of ``N x 3`` points like a draw from a Matern-5/2 process.

    It is made of random cosines. The kernel's frequencies have Student's t
    distribution with five degrees of freedom (Rahimi and Recht, 2007).
    """

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    chi = normal(FREQUENCIES, 5).square().mean(dim=1, keepdim=True)
    scale = torch.tensor(LENGTHSCALES, dtype=torch.float64)
    frequencies = normal(FREQUENCIES, 3) / scale / chi.sqrt()
    uniform = torch.rand(FREQUENCIES, generator=generator, dtype=torch.float64)
    phase, weights = 2 * math.pi * uniform, normal(FREQUENCIES)

    def function(X: Tensor) -> Tensor:
        waves = (X @ frequencies.mT + phase).cos()
        return waves @ weights * math.sqrt(2 / FREQUENCIES)

    return function
