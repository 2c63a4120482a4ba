r"""Runs where gradients are switched off, or in inference mode, are runs as always."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch

from botorch_lse import History, Observations, Pool
from botorch_lse.models.fitted import QuadraticNoise, fit_heteroscedastic_gp
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    MELKLinearStrategy,
    Strategy,
)

MODES = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}
NOISE = QuadraticNoise([[0.05]], bounds=(0.01, 0.1))


def learnt(pool: Pool) -> Strategy:
    return Strategy(pool, Above(0.5), batch_size=5)


def with_old_values(pool: Pool) -> Strategy:
    history = History(pool.X[:6] + 0.01, pool.X[:6, 0])
    return Strategy(
        pool, Above(0.5), model=GaussianProcess(history=history), batch_size=3
    )


def with_own_model(pool: Pool) -> Strategy:
    factory = partial(fit_heteroscedastic_gp, noise=NOISE)
    return Strategy(pool, Above(0.5), model=GaussianProcess(factory), batch_size=5)


def linear(pool: Pool) -> Strategy:
    return MELKLinearStrategy(pool, 0.5, noise_std=1.0, batch_size=4)


def play(make: Callable[[Pool], Strategy], *modes: Callable[[], Any]) -> Any:
    r"""Make a pool and a strategy and measure, each round in a mode of its own."""
    with modes[0]():
        line = torch.linspace(0, 1, 12, dtype=torch.float64)
        pool = Pool(line.unsqueeze(-1))
        strategy = make(pool)
        state = strategy.init()
    for mode in modes:
        with mode():
            batch = strategy.ask(state)
            y = (4 * pool.X[batch.order, 0]).sin() + 0.01 * batch.order
            state = strategy.tell(state, Observations(batch.order, y))
            answer = state.classification
    with modes[-1]():
        return answer, strategy.replay(state.observations)


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize(
    "make",
    [learnt, linear, with_old_values, with_own_model],
)
def test_a_run_is_the_same_where_gradients_are_switched_off(
    make: Callable[[Pool], Strategy], mode: Callable[[], Any]
) -> None:
    answer, again = play(make, mode, nullcontext)  # begun inside, gone on outside
    wanted, _ = play(make, nullcontext, nullcontext)
    inside, _ = play(make, mode, mode)
    for found in (answer, inside, again.classification):
        assert torch.equal(found.mean, wanted.mean)
        assert torch.equal(found.lower, wanted.lower)
        assert found.side.tolist() == wanted.side.tolist()
        assert not found.mean.is_inference()


def test_records_and_models_made_in_inference_mode_serve_outside() -> None:
    with torch.inference_mode():
        pool = Pool(torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1))
        history = History(pool.X, pool.X[:, 0])
        told = Observations(torch.tensor([1, 2]), torch.tensor([0.1, 0.2]), 0.01)
        parts = [pool.X, pool.bounds, pool.mass, history.X, history.y]
        some = told.append(told).select(torch.tensor([0])).at_round(2)
        for one in (told, some):
            parts += [one.indices, one.y, one.yvar]  # type: ignore[list-item]
        bare = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)
        model = fit_heteroscedastic_gp(bare, 4 * bare, None, NOISE)
    assert not any(part.is_inference() for part in parts)
    same = fit_heteroscedastic_gp(pool.X, 4 * pool.X, None, NOISE)
    assert torch.equal(model.posterior(pool.X).mean, same.posterior(pool.X).mean)
