r"""What must not change an answer: units, reflection, the order of the rows."""

from __future__ import annotations

import itertools

import pytest
import torch
from gpytorch.kernels import ScaleKernel
from gpytorch.means import ConstantMean

from botorch_lse import Observations, Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import StraddleRankStrategy
from botorch_lse.strategies import (
    ImplicitLSEStrategy,
    ImplicitStraddleStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    RandomStrategy,
    State,
    StraddleStrategy,
    Strategy,
)
from tests.covering import covering
from tests.reference.dense_gp import DenseGP
from tests.registry import EXPLICIT, PLAYED, StrategyCase
from tests.strategies.runs import (
    GP,
    LEVEL,
    NOISE_STD,
    make,
    measure,
)

_RANDOM = torch.Generator().manual_seed(8)
X = torch.rand(30, 2, generator=_RANDOM, dtype=torch.float64)
F = torch.tensor(GP.sample(X.numpy(), 3))
START = [4, 9, 22, 13, 27]
"""Rows measured first, so that no two scores are equal."""


def prior(scale: float, shift: float) -> GPPrior:
    mean = ConstantMean().double()
    mean.constant.data.fill_(shift)
    gp = DenseGP(GP.lengthscale, GP.outputscale * scale**2)
    return GPPrior.from_kernel(gp.kernel(), mean)


def states_of(strategy: Strategy, value, rows: list[int], rounds: int) -> list[State]:
    r"""States of a run whose values are ``value(row, number)``."""
    state = strategy.init(1)
    y = [value(row, i) for i, row in enumerate(rows)]
    states = [strategy.tell(state, Observations(rows, y))]
    while not states[-1].is_done and len(states) <= rounds:
        batch = strategy.ask(states[-1])
        n = len(states[-1].history)
        y = [value(row, n + int(row)) for row in batch.order.tolist()]
        states.append(strategy.tell(states[-1], batch.observe(y)))
    return states


def plain(row: int, number: int) -> float:
    return float(F[row]) + measure(0, number) - measure(0, 0)


@pytest.mark.some(2)
@covering("case, batch_size", PLAYED, [1, 3])
def test_units_of_y_change_nothing(case: StrategyCase, batch_size: int) -> None:
    # A shift moves an implicit level, and features without a constant have none, so
    # there only the scale changes.
    still = case.is_implicit or case.is_linear
    scale, shift = 250.0, (0.0 if still else -4000.0)
    options = {"pool": Pool(X), "batch_size": batch_size}
    one = make(case, **options)
    other = make(
        case,
        **options,
        **case.aim(shift + scale * LEVEL),
        model=prior(scale, shift),
        noise_std=scale * NOISE_STD,
        epsilon=scale * 0.1,
    )
    a = states_of(one, plain, START, 8)
    b = states_of(other, lambda r, i: shift + scale * plain(r, i), START, 8)
    assert len(a) == len(b) > 3
    for s, t in zip(a, b, strict=True):
        assert torch.equal(s.history.indices, t.history.indices)
        for side in ("above", "below", "undecided"):
            assert torch.equal(
                getattr(s.classification, side), getattr(t.classification, side)
            )
        for end in ("lower", "upper", "mean"):
            moved = shift + scale * getattr(s.classification, end)
            got = getattr(t.classification, end)
            assert torch.allclose(got, moved, rtol=0, atol=1e-8 * scale)


@pytest.mark.some(2)
@covering("case, batch_size", EXPLICIT, [3, 1])
def test_reflection_swaps_above_and_below(case: StrategyCase, batch_size: int) -> None:
    options = {"pool": Pool(X), "batch_size": batch_size, "epsilon": 0.0}
    a = states_of(make(case, **options), plain, START, 8)
    mirrored = make(case, **options, threshold=-LEVEL)
    b = states_of(mirrored, lambda r, i: -plain(r, i), START, 8)
    assert len(a) == len(b)
    for s, t in zip(a, b, strict=True):
        assert torch.equal(s.history.indices, t.history.indices)
        assert torch.equal(s.classification.above, t.classification.below)
        assert torch.equal(s.classification.below, t.classification.above)
        assert torch.allclose(s.classification.lower, -t.classification.upper)
        p, q = s.classification.probability_above, t.classification.probability_above
        assert torch.allclose(p, 1 - q, atol=1e-10)


@pytest.mark.some(2)
@covering(
    "cls, batch_size",
    [
        LSEStrategy,
        ImplicitLSEStrategy,
        StraddleStrategy,
        ImplicitStraddleStrategy,
        StraddleRankStrategy,
        MaxVarianceStrategy,
    ],
    [1, 3],
)
def test_order_of_the_pool_is_irrelevant(cls: type, batch_size: int) -> None:
    # The literal batches are left out: they look for an order of choice inside the
    # first rows, where the prior's ties are broken by index.
    order = torch.randperm(30, generator=torch.Generator().manual_seed(2))
    place = order.argsort()
    a = states_of(make(cls, pool=Pool(X), batch_size=batch_size), plain, START, 6)
    shuffled = make(cls, pool=Pool(X[order]), batch_size=batch_size)
    state = shuffled.init(1)
    y = [plain(row, i) for i, row in enumerate(START)]
    state = shuffled.tell(state, Observations(place[START], y))
    for s, after in itertools.pairwise(a):
        new = after.history.select(torch.arange(len(s.history), len(after.history)))
        asked = shuffled.ask(state).order
        assert sorted(order[asked].tolist()) == new.indices.tolist()
        state = shuffled.tell(state, Observations(place[new.indices], new.y))
        for side in ("above", "below", "undecided"):
            here = getattr(state.classification, side)[place]
            assert torch.equal(here, getattr(after.classification, side))


def test_kernel_in_other_units_is_the_same_strategy() -> None:
    kernel = GP.kernel()
    twice = ScaleKernel(kernel).double()
    twice.outputscale = torch.tensor(1.0, dtype=torch.float64)
    a = states_of(make(LSEStrategy, pool=Pool(X), model=kernel), plain, START, 5)
    b = states_of(make(LSEStrategy, pool=Pool(X), model=twice), plain, START, 5)
    for s, t in zip(a, b, strict=True):
        assert torch.equal(s.history.indices, t.history.indices)


@pytest.mark.slow
def test_memory_budget_changes_nothing() -> None:
    for cls in (LSEStrategy, StraddleStrategy, RandomStrategy):
        options = {"pool": Pool(X), "batch_size": 2}
        a = states_of(make(cls, **options), plain, START, 6)
        b = states_of(make(cls, **options, memory_budget=8 * len(X)), plain, START, 6)
        for s, t in zip(a, b, strict=True):
            assert torch.equal(s.history.indices, t.history.indices)
            assert torch.allclose(
                s.classification.lower, t.classification.lower, atol=1e-9
            )
