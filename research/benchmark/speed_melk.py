r"""Decisions of MELK and MILK on a Gaussian process, and what Ax adds to a round."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from botorch_lse.data.pool import Pool
from botorch_lse.strategies import MELKStrategy, MILKStrategy, Strategy
from research.benchmark.registry import Options, entry
from research.benchmark.speed import MIB, in_fresh_process, measured, target
from research.papers.problems import grid, matern_prior
from research.report import Report, Table

BATCH, ROUNDS, NOISE = 10, 8, 0.3
LENGTHSCALES = (0.1, 0.2)
AX_SIDE, AX_LIMIT = 32, 0.5


@dataclass(frozen=True)
class Decisions:
    r"""CPU seconds of each decision (tell and ask), and the growth of peak memory."""

    seconds: list[float]
    peak: int


@entry(
    "speed",
    "melk",
    "decisions of MELK and MILK, and Ax's share of a round",
    needs=("ax",),
)
def speed_melk(options: Options) -> Report:
    r"""MELK and MILK against their targets."""
    rows = []
    for name, side, first, later in (
        ("MELK", 32, 1.0, 1.0),
        ("MELK", 100, 15.0, 3.0),
        ("MILK", 30, 10.0, 10.0),
    ):
        found = in_fresh_process(decide, name, side)
        begun, rest = found.seconds[0], max(found.seconds[1:])
        rows.append(
            (
                f"{name}, {side**2:,} rows",
                f"{first:g} s, then {later:g} s",
                target(f"{begun:.2f} s", begun <= first),
                target(f"{rest:.2f} s", rest <= later),
                f"{found.peak / MIB:.0f} MiB",
            )
        )
    alone, through = in_fresh_process(rounds_with_and_without_ax)
    added = through - alone
    rows.append(
        (
            f"Ax's part of a round of {BATCH} trials",
            f"{AX_LIMIT:g} s",
            target(f"{added:.2f} s", added <= AX_LIMIT),
            "",
            "",
        )
    )
    notes = [
        f"Matern-5/2, batches of {BATCH}, {ROUNDS} rounds of measurements of a smooth "
        "function. A decision: the results of the last round told, the next asked: "
        "posterior, elimination, design, rounding. The first starts from the prior; of "
        "the others the slowest is shown. A fresh process each, CPU seconds on one "
        "core: what else a shared machine does counts little.",
        f"Ax: a Client on {AX_SIDE**2:,} rows, {BATCH} trials asked for and completed "
        "one by one, mean of the rounds, less the strategy's own time for the same "
        "rounds in the same process.",
    ]
    columns = ("what", "target", "first decision", "later ones", "peak memory")
    data = {"ax_seconds_per_round": added}
    table = Table("MELK and MILK", columns, rows)
    return Report("speed melk", notes, [table], (), data)


def strategy(name: str, side: int) -> Strategy:
    r"""A strategy that has enough to decide for all rounds."""
    pool = Pool(grid(side))
    prior = matern_prior(LENGTHSCALES).covar_module
    if name == "MELK":
        return MELKStrategy(
            pool, 0.5, model=prior, batch_size=BATCH, noise_std=NOISE, beta=9.0
        )
    return MILKStrategy(
        pool, omega=0.5, model=prior, batch_size=BATCH, noise_std=NOISE, beta=9.0
    )


def value(pool: Pool, row: int) -> float:
    r"""A smooth function with a deterministic disturbance in place of noise."""
    x = 6.0 * float(pool.X[row].sum())
    return float(torch.tensor(x).sin()) + NOISE * float(torch.tensor(1e3 * x).cos())


def decide(name: str, side: int) -> Decisions:
    r"""The seconds of ``ROUNDS`` decisions."""
    planner = strategy(name, side)
    seconds = []
    with measured() as cost:
        began = time.process_time()
        state = planner.init()
        batch = planner.ask(state)
        seconds.append(time.process_time() - began)
        for _ in range(ROUNDS):
            y = torch.tensor([value(planner.pool, int(row)) for row in batch.order])
            began = time.process_time()
            state = planner.tell(state, batch.observe(y))
            batch = planner.ask(state)
            seconds.append(time.process_time() - began)
    return Decisions(seconds, cost.peak)


def rounds_with_and_without_ax() -> tuple[float, float]:
    r"""Mean seconds of a round, by the strategy alone and through a Client."""
    import logging

    from ax.api.client import Client

    from botorch_lse.ax import level_set_generation_strategy, pool_parameters
    from botorch_lse.ax.pool_space import POOL_INDEX

    logging.getLogger("ax").setLevel(logging.ERROR)
    logging.getLogger("ax.api.client").setLevel(logging.ERROR)
    planner = strategy("MELK", AX_SIDE)
    alone = sum(decide("MELK", AX_SIDE).seconds) / (ROUNDS + 1)
    client = Client()
    client.configure_experiment(parameters=pool_parameters(planner.pool), name="speed")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(planner))
    began = time.process_time()
    for _ in range(ROUNDS):
        for index, parameters in client.get_next_trials(BATCH).items():
            y = value(planner.pool, int(parameters[POOL_INDEX]))
            client.complete_trial(index, {"y": (y, NOISE)})
    return alone, (time.process_time() - began) / ROUNDS
