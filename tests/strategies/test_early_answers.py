r"""Answers while the initial design goes on: by a model of the values so far.

It decides nothing, and the run goes on as if nobody had looked.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_lse import Above, Below, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.models import explanations
from botorch_lse.strategies import LSEStrategy, ParetoByDifferences, ShareOfMax, State


def pool_of(d: int, n: int = 300) -> Pool:
    generator = torch.Generator().manual_seed(0)
    return Pool(torch.rand(n, d, generator=generator, dtype=torch.float64))


def smooth(X: Tensor) -> Tensor:
    return (3 * X[:, 0]).sin() + X[:, 1].square() - X[:, 2] * X[:, 3]


def told(strategy: Strategy, n: int, outputs: int = 1) -> State:
    r"""The state after the first ``n`` rows of the initial design, ten at a time."""
    state = strategy.init()
    while len(state.observations) < n:
        batch = strategy.ask(state)
        y = smooth(strategy.pool.X[batch.order])
        if outputs > 1:
            y = torch.stack((y, -y.square()), dim=-1)
        state = strategy.tell(state, batch.observe(y))
    return state


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    r"""The fits that are made."""
    made: list[object] = []
    given = explanations.fit_likelihood
    monkeypatch.setattr(
        explanations, "fit_likelihood", lambda mll: (made.append(mll), given(mll))
    )
    return made


def test_few_values_tell_most_sides(fits: list[object]) -> None:
    pool = pool_of(8)
    truth = smooth(pool.X)
    level = float(truth.median())
    strategy = Strategy(pool, Above(level), batch_size=10)
    state = told(strategy, 40)
    assert not fits  # nobody looked
    answer = state.classification
    assert len(fits) > 0
    wrong = (answer.probability_above > 0.5) != (truth > level)
    assert float(wrong.double().mean()) < 0.1  # of the unfitted prior: a half
    assert bool(answer.undecided.all())
    assert bool(torch.isfinite(answer.sigma).all())
    missing = "44 of the 84 measurements of the initial design are missing"
    assert missing in answer.guarantee
    assert missing in str(state.forecast())
    looked = len(fits)
    mean, sigma = state.predict(pool.X)
    torch.testing.assert_close(mean, answer.mean)
    torch.testing.assert_close(sigma, answer.sigma)
    assert len(fits) == looked  # the same one


def test_the_run_goes_on_as_if_nobody_had_looked() -> None:
    strategy = Strategy(pool_of(4), Above(0.4), batch_size=10)
    seen = told(strategy, 20)
    assert bool(torch.isfinite(seen.classification.mean).all())
    unseen = strategy.replay(seen.observations)
    for state in (seen, unseen):
        assert state.stop_reason is None
    assert torch.equal(strategy.ask(seen).order, strategy.ask(unseen).order)
    assert torch.equal(seen.classification.mean, unseen.classification.mean)


@pytest.mark.parametrize(
    ("goal", "outputs"),
    [
        (Above(0.4) & Below(0.0, output=1), 2),
        (ParetoByDifferences(maximize=(True, True)), 2),
        (ShareOfMax(0.6), 1),
    ],
    ids=["region", "pareto", "share"],
)
def test_so_it_is_with_every_goal(goal, outputs: int) -> None:
    state = told(Strategy(pool_of(4), goal, batch_size=10), 20, outputs)
    answer = state.classification
    assert bool(answer.undecided.all())
    assert "Nothing is decided yet" in answer.guarantee
    for output in answer.outputs:
        assert bool(torch.isfinite(output.mean).all())
        assert float(output.mean.std()) > 0  # it is no prior


def test_values_of_fewer_rows_than_a_lengthscale_needs_fit_nothing() -> None:
    strategy = Strategy(pool_of(4), Above(0.4), batch_size=4)
    state = told(strategy, 4)
    assert "No model is fitted yet" in state.classification.guarantee
    state = told(strategy, 8)
    assert "Nothing is decided yet" in state.classification.guarantee
    alike = strategy.tell(strategy.init(), Observations(range(8), [0.5] * 8))
    assert "No model is fitted yet" in alike.classification.guarantee


def test_a_function_of_ones_own_is_not_called_with_fewer_values() -> None:
    def own(X: Tensor, Y: Tensor, Yvar: Tensor | None):
        raise AssertionError("called too early")

    strategy = LSEStrategy(
        pool_of(4), threshold=0.4, model=own, n_initial=30, batch_size=10
    )
    state = told(strategy, 20)
    assert "No model is fitted yet" in state.classification.guarantee
    model = GaussianProcess(n_initial=30)
    state = told(Strategy(pool_of(4), Above(0.4), model=model, batch_size=10), 20)
    assert "10 of the 30 measurements" in state.classification.guarantee
