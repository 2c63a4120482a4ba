r"""Small problems and loops that the tests of the strategies share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_lse import Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import State, Strategy
from tests.reference.dense_gp import DenseGP
from tests.registry import StrategyCase, case_of

GP = DenseGP(lengthscale=(0.3, 0.4), outputscale=2.0)
NOISE_STD, LEVEL = 0.3, 0.4


@functools.cache
def grid(side: int = 6) -> torch.Tensor:
    line = torch.linspace(0, 1, side, dtype=torch.float64)
    return torch.cartesian_prod(line, line)


@functools.cache
def truth(seed: int = 0, side: int = 6) -> np.ndarray:
    return GP.sample(grid(side).numpy(), seed)


@functools.cache
def noise(seed: int = 0) -> np.ndarray:
    return NOISE_STD * np.random.default_rng(500 + seed).standard_normal(2000)


def make(of: StrategyCase | type[Strategy], **options) -> Strategy:
    r"""A strategy on the grid with everything known, and a width that decides."""
    case, pool = case_of(of), options.pop("pool", None) or Pool(grid())
    known = {**case.aim(LEVEL), "noise_std": NOISE_STD}
    if case.is_linear:  # any function is linear in the rows' indicators
        pool = Pool(pool.X, features=torch.eye(len(pool)), costs=pool.costs)
        for name in ("beta", "model"):  # their widths are theorems', without a prior
            options.pop(name, None)
        return case.make(pool, **{**known, "batch_size": 1, **options})
    known |= {"model": GPPrior.from_kernel(GP.kernel()), "beta": 4.0, "epsilon": 0.1}
    return case.make(pool, **{**known, **options})


def measure(row: int, before: int, seed: int = 0) -> float:
    r"""The value of the measurement that comes after ``before`` others."""
    return float(truth(seed)[row] + noise(seed)[before])


Value = Callable[[int, int], Any]
r"""The value of the measurement of a row that comes after so many others."""


def one_by_one(value: Value) -> Callable[[Tensor, State], list[Any]]:
    r"""The values of a batch's rows in a state, in the order of the batch."""

    def values(rows: Tensor, state: State) -> list[Any]:
        before = len(state.history)
        return [value(row, before + i) for i, row in enumerate(rows.tolist())]

    return values


def step(strategy: Strategy, state: State, value: Value = measure) -> State:
    r"""One round: ask, measure in the order of the batch, tell."""
    batch = strategy.ask(state)
    return strategy.tell(state, batch.observe(one_by_one(value)(batch.order, state)))


def played(
    strategy: Strategy,
    values: Callable[[Tensor, State], Any],
    rounds: int = 10_000,
    seed: int = 0,
) -> list[State]:
    r"""The states before the first and after each round, to the end or so many rounds.

    Args:
        strategy: Who asks.
        values: What is measured of a batch's rows, in its order, in a state.
        rounds: How many at most.
        seed: The strategy's.
    """
    states = [strategy.init(seed)]
    while not states[-1].is_done and len(states) <= rounds:
        batch = strategy.ask(states[-1])
        told = batch.observe(values(batch.order, states[-1]))
        states.append(strategy.tell(states[-1], told))
    return states


def run(
    strategy: Strategy, rounds: int, seed: int = 0, value: Value = measure
) -> list[State]:
    r"""The same with single measurements that know how many came before."""
    return played(strategy, one_by_one(value), rounds, seed)


def rows(mask: torch.Tensor) -> set[int]:
    return set(mask.nonzero().view(-1).tolist())


FIELDS = (
    "above",
    "below",
    "undecided",
    "lower",
    "upper",
    "mean",
    "sigma",
    "probability_above",
)


def assert_same(strategy: Strategy, a: State, b: State) -> None:
    r"""Bit-identical answers, data and next batches."""
    for name in FIELDS:
        x, y = getattr(a.classification, name), getattr(b.classification, name)
        assert torch.equal(x, y), name
    assert a.stop_reason == b.stop_reason
    assert a.round == b.round
    assert torch.equal(a.observations.indices, b.observations.indices)
    assert torch.equal(a.observations.y, b.observations.y)
    assert torch.equal(a.observations.round, b.observations.round)
    assert sorted(a.abandoned) == sorted(b.abandoned)
    if not a.is_done:
        assert torch.equal(strategy.ask(a).order, strategy.ask(b).order)
