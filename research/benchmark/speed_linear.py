r"""Decisions of the linear strategies on 10,000 rows with 20 features."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.strategies import (
    GEGELinearStrategy,
    HRAGELinearStrategy,
    LinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
)
from research.benchmark.registry import Options, entry
from research.benchmark.speed import in_fresh_process, target
from research.report import Report, Table

ROWS, FEATURES, BATCH, ROUNDS, LIMIT = 10_000, 20, 200, 8, 1.0
LEVEL, OMEGA = 0.3, 0.5
DESIGNS = ("uniform", "gaps")


def strategies(pool: Pool, design: str) -> dict[str, LinearStrategy]:
    r"""Each of them, by name; noise of standard deviation 1."""
    options = {"noise_std": 1.0, "design": design, "batch_size": BATCH}
    made: dict[str, Callable[..., LinearStrategy]] = {
        "MELK, level set": lambda **o: MELKLinearStrategy(pool, LEVEL, **o),
        "MILK, share of the maximum": lambda **o: MILKLinearStrategy(
            pool, omega=OMEGA, **o
        ),
        "H-RAGE, best row": lambda **o: HRAGELinearStrategy(pool, **o),
        "GEGE, Pareto set of two outputs": lambda **o: GEGELinearStrategy(
            pool, maximize=(True, True), **o
        ),
    }
    return {name: build(**options) for name, build in made.items()}


def features(seed: int = 0) -> tuple[Tensor, Tensor]:
    r"""Unit vectors, ``ROWS x FEATURES``, and two linear functions, ``ROWS x 2``."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(ROWS, FEATURES, generator=generator, dtype=torch.float64)
    X = X / X.norm(dim=1, keepdim=True)
    theta = torch.randn(FEATURES, 2, generator=generator, dtype=torch.float64)
    return X, X @ theta


def decide(name: str, design: str) -> tuple[list[float], int]:
    r"""CPU seconds of ``ROUNDS`` decisions, and how many rows stayed undecided."""
    X, F = features()
    strategy, noise = strategies(Pool(X), design)[name], torch.Generator()
    noise.manual_seed(1)
    began = time.process_time()
    state = strategy.init()
    batch = strategy.ask(state)
    seconds = [time.process_time() - began]
    for _ in range(ROUNDS - 1):
        y = F[batch.order][:, : strategy.m]
        y = y + torch.randn(y.shape, generator=noise, dtype=torch.float64)
        told = batch.observe(y if strategy.m > 1 else y[:, 0])
        began = time.process_time()
        state = strategy.tell(state, told)
        batch = strategy.ask(state)
        seconds.append(time.process_time() - began)
    return seconds, int(state.classification.undecided.sum())


@entry("speed", "linear", "decisions of the linear strategies on 10,000 x 20 features")
def speed_linear(options: Options) -> Report:
    r"""Every linear strategy and both designs against one second."""
    rows, slowest = [], 0.0
    for name in strategies(Pool(features()[0]), DESIGNS[0]):
        for design in DESIGNS:
            seconds, undecided = in_fresh_process(decide, name, design)
            worst, slowest = max(seconds), max(slowest, *seconds)
            rows.append(
                (
                    name,
                    design,
                    f"{seconds[0]:.2f}",
                    f"{max(seconds[1:]):.2f}",
                    f"{undecided:,}",
                    target(f"{worst:.2f} s", worst <= LIMIT),
                )
            )
    notes = [
        f"{ROWS:,} unit rows of {FEATURES} features, noise of standard deviation 1, "
        f"{ROUNDS} batches of {BATCH}. A decision: the last batch told, the next asked "
        "(widths, elimination, design, rounding); the first, from nothing, includes "
        "the design that fixes the widths. CPU seconds on one core.",
    ]
    columns = (
        "strategy",
        "design",
        "first decision (s)",
        "slowest later one (s)",
        "undecided at the end",
        f"target {LIMIT:g} s",
    )
    table = Table("Decisions", columns, rows)
    return Report("speed linear", notes, [table], (), {"slowest_seconds": slowest})
