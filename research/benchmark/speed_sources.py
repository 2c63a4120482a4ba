r"""One round of a run with two sources, the fit and the choice of the next rows."""

from __future__ import annotations

from dataclasses import replace

import torch

from botorch_lse import Above, GaussianProcess, Observations, Pool, Strategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, measured, target
from research.report import Report, Table

ROWS, OBSERVATIONS, BATCH, ROUNDS = 500, 200, 4, 4
"""Rows of each source, measurements before the rounds, and a quarter of them dear."""
SECONDS = 2.0
"""What a round may take."""
STD = 0.1


@entry("speed", "sources", "one round after 200 measurements of two sources")
def speed_sources(options: Options) -> Report:
    r"""CPU seconds of the median and of the slowest round, against their target."""
    rows, data = [], dict[str, float]()
    for name, std in (("learnt", None), ("known", STD)):
        seconds = in_fresh_process(rounds, ROWS, OBSERVATIONS, std)
        middle, most = sorted(seconds)[len(seconds) // 2], max(seconds)
        rows.append((name, f"{middle:.2f}", target(f"{most:.2f}", most <= SECONDS)))
        data[name] = most
    table = Table("Seconds of a round", ("noise", "median", "slowest"), rows)
    notes = [
        f"{ROWS} rows at each of two sources, {OBSERVATIONS} measurements, a batch of "
        f"{BATCH}, the likeliest of four models; CPU seconds of one core in {ROUNDS} "
        "rounds after one that does not count, at most 2 s. A round takes twice as "
        "long where a value may be a slip, as all models are then fitted without it.",
    ]
    return Report("speed sources", notes, [table], (), data)


def rounds(n_rows: int, n: int, noise_std: float | None) -> list[float]:
    r"""CPU seconds of rounds one after the other, each told and then asked.

    Args:
        n_rows: Rows of each source.
        n: Measurements before the first round.
        noise_std: The noise where it is known.
    """
    generator = torch.Generator().manual_seed(0)
    plan = Pool.from_box([[0.0, 0.0], [1.0, 1.0]], n_rows)
    pool = plan.at_sources(("coarse", "fine"), costs=(1, 10))
    x, z, source = pool.X.T
    f = torch.sin(6 * x) * torch.cos(5 * z)
    f = f + (1 - source) * (0.3 * torch.sin(9 * x + z) + 0.1)
    strategy = Strategy(
        pool, Above(0.3), model=GaussianProcess(noise_std=noise_std), batch_size=BATCH
    )

    def told(rows: torch.Tensor) -> Observations:
        noise = torch.randn(len(rows), generator=generator, dtype=torch.float64)
        return Observations(rows, f[rows] + STD * noise)

    cheap = torch.randperm(n_rows, generator=generator)[: n - n // 4]
    dear = n_rows + torch.randperm(n_rows, generator=generator)[: n // 4]
    first = told(torch.cat((cheap, dear)))
    state = replace(strategy, batch_size=n).tell(strategy.init(), first)
    batch, seconds = strategy.ask(state), list[float]()
    for _ in range(ROUNDS + 1):
        new = told(batch.order)
        with measured() as cost:
            state = strategy.tell(state, new)
            batch = strategy.ask(state)
        seconds.append(cost.cpu)
    return seconds[1:]
