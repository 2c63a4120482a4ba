r"""Answers and choices before anything is decided: by a model of the values so far.

While the first rows are measured the run goes on as if nobody had looked; then the rule
chooses by that model, which decides nothing until enough was measured.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_lse import Above, Below, GaussianProcess, Observations, Pool, Strategy
from botorch_lse.models import marginal
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
    given = marginal.fit_likelihood
    monkeypatch.setattr(
        marginal, "fit_likelihood", lambda mll: (made.append(mll), given(mll))[1]
    )
    return made


def test_few_values_tell_most_sides(fits: list[object]) -> None:
    pool = pool_of(8)
    truth = smooth(pool.X)
    level = float(truth.median())
    model = GaussianProcess(n_initial=80)
    strategy = Strategy(pool, Above(level), model=model, batch_size=10)
    state = told(strategy, 40)
    assert not fits  # nobody looked
    answer = state.classification
    assert len(fits) > 0
    wrong = (answer.probability_above > 0.5) != (truth > level)
    assert float(wrong.double().mean()) < 0.1  # of the unfitted prior: a half
    assert bool(answer.undecided.all())
    assert bool(torch.isfinite(answer.sigma).all())
    missing = "40 of the 80 measurements that come before are missing"
    assert missing in answer.guarantee
    assert missing in str(state.forecast())
    looked = len(fits)
    mean, sigma = state.predict(pool.X)
    torch.testing.assert_close(mean, answer.mean)
    torch.testing.assert_close(sigma, answer.sigma)
    assert len(fits) == looked  # the same one


def test_the_run_goes_on_as_if_nobody_had_looked() -> None:
    model = GaussianProcess(n_initial=40)
    strategy = Strategy(pool_of(4), Above(0.4), model=model, batch_size=10)
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


# --- choices ----------------------------------------------------------------------


def until(strategy: Strategy, n: int, seed: int = 0) -> State:
    state = strategy.init(seed)
    while len(state.observations) < n:
        batch = strategy.ask(state)
        state = strategy.tell(
            state, batch.observe(smooth(strategy.pool.X[batch.order]))
        )
    return state


@pytest.mark.slow
def test_rows_are_chosen_near_the_level_before_anything_is_decided() -> None:
    pool = pool_of(4)
    distance = (smooth(pool.X) - 0.4).abs()
    early, late = (
        until(Strategy(pool, Above(0.4), model=model, batch_size=4), 36)
        for model in (GaussianProcess(), GaussianProcess(n_initial=40))
    )
    for state in (early, late):
        assert bool(state.classification.undecided.all())
    chosen = slice(14, 36)
    near = distance[early.observations.indices[chosen]].mean()
    assert near < 0.7 * distance[late.observations.indices[chosen]].mean()


@pytest.mark.slow
def test_nothing_is_decided_and_no_point_repeated_until_enough_was_measured() -> None:
    strategy = Strategy(pool_of(4), Above(0.4), batch_size=4)
    assert strategy.parts.model.n_deciding() == 44
    state = until(strategy, 40)
    assert state.belief.is_early
    assert state.belief.held_back is not None
    assert bool((state.belief.held_back.side != -1).any())  # by itself it would
    assert bool(state.classification.undecided.all())
    assert "4 of the 44 measurements that come before are missing" in str(
        state.forecast()
    )
    rows = state.observations.indices
    assert len(rows) - len(rows.unique()) == 4  # which estimate the noise
    state = until(strategy, 44)
    assert not state.belief.is_early
    assert not bool(state.classification.undecided.all())
    again = strategy.replay(state.observations)
    assert torch.equal(again.classification.above, state.classification.above)
    assert torch.equal(strategy.ask(again).order, strategy.ask(state).order)


def test_noise_that_is_told_needs_no_repeats_to_decide() -> None:
    strategy = Strategy(pool_of(4), Above(0.4), batch_size=10)
    state = strategy.init()
    for _ in range(4):
        assert bool(state.classification.undecided.all())
        batch = strategy.ask(state)
        y = smooth(strategy.pool.X[batch.order])
        state = strategy.tell(state, batch.observe(y, torch.full_like(y, 1e-4)))
    assert not bool(state.classification.undecided.all())


@pytest.mark.slow
def test_a_small_pool_is_decided_once_all_of_it_is_measured() -> None:
    X = torch.tensor([[a, b] for a in range(3) for b in range(4)]).double()
    strategy = Strategy(Pool(X), Above(2.2), batch_size=5)
    assert strategy.parts.model.n_deciding() == 12 + 4
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(X[batch.order].sum(dim=-1)))
        n_rows = len(state.observations.indices.unique())
        assert bool(state.classification.undecided.all()) == (n_rows < 12)
    assert state.stop_reason == "decided"


@pytest.mark.slow
def test_the_share_above_is_followed_early_and_ends_nothing() -> None:
    strategy = Strategy(pool_of(4), Above(0.4), batch_size=4, content_tol=0.5)
    state = until(strategy, 40)
    assert state.stop_reason is None
    assert not state.is_done
    content = state.content()
    assert content.posterior is not None
    assert content.posterior[0] <= content.estimate <= content.posterior[1]


@pytest.mark.slow
def test_few_values_tell_the_outputs_of_a_pareto_set() -> None:
    pool = pool_of(4)
    model = GaussianProcess(n_initial=80)
    goal = ParetoByDifferences((True, True))
    strategy = Strategy(pool, goal, model=model, batch_size=10)
    state = told(strategy, 40, outputs=2)
    mean, _ = state.predict(pool.X)
    found = strategy.estimate(state)
    torch.testing.assert_close(found.mean, mean)
    assert bool((found.margin != found.margin[0]).any())
    assert torch.equal(state.classification.mean, found.margin)
    assert bool(state.classification.undecided.all())


def test_a_model_that_decides_nothing_yet_tells_the_outputs_too() -> None:
    pool = pool_of(4)
    goal = ParetoByDifferences((True, True))
    strategy = Strategy(pool, goal, batch_size=10)
    state = told(strategy, 20, outputs=2)
    assert state.belief.is_early
    mean, _ = state.predict(pool.X)
    torch.testing.assert_close(strategy.estimate(state).mean, mean)
    assert bool(state.classification.undecided.all())
