"""Runs whose pool grows until a rare event is met."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from gpytorch.kernels import RBFKernel, ScaleKernel
from scipy.stats import norm

from botorch_lse import Observations, Pool
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    Below,
    ContentKnown,
    ExpectedFeasibility,
    GaussianProcess,
    ShareOfMax,
    Straddle,
    Strategy,
    extended,
)
from botorch_lse.strategies.rare import design_points, rare_event
from tests.covering import more_in_full

KERNEL = ScaleKernel(RBFKernel()).double()
KERNEL.base_kernel.lengthscale = 5.0
KERNEL.outputscale = 25.0
BETA = float(norm.isf(1e-6))


def f(X: torch.Tensor) -> torch.Tensor:
    """Above 0 with probability ``Phi(-BETA)``: 1e-6."""
    return X.sum(dim=-1) / X.shape[-1] ** 0.5 - BETA


def strategy(n: int = 400, seed: int = 0, **options) -> Strategy:
    pool = Pool.from_distribution([norm()] * 2, n, seed=seed, method="monte_carlo")
    given = {
        "model": GaussianProcess(KERNEL, noise_std=0.0),
        "rule": Straddle(),
        "beta": 4.0,
        "content_tol": 0.1,
        "max_observations": 60,
        "goal": Above(0.0),
    }
    return Strategy(pool, **{**given, **options})


def run(state):
    while not state.is_done:
        batch = state.strategy.ask(state)
        state = state.strategy.tell(state, batch.observe(f(batch.pool.X[batch.order])))
    return state


def known(seed: int, steps: int = 8):
    """Extend until the coefficient of variation is at most a tenth."""
    state = run(strategy(seed=seed).init(seed))
    for _ in range(steps):
        if state.content().variation <= 0.1:
            break
        state = run(extended(state, 400))
    return state


@more_in_full("runs", 3, 20)
def test_a_probability_of_one_in_a_million_is_found(runs: int) -> None:
    missed = torch.zeros(2, dtype=torch.long)
    for seed in range(runs):
        state = known(seed)
        content = state.content()
        both = torch.tensor([content.population, content.combined])
        missed += ((both[:, 0] > 1e-6) | (both[:, 1] < 1e-6)).long()
        assert content.variation <= 0.1
        assert content.estimate == pytest.approx(1e-6, rel=0.6)
        assert state.n_used <= 40
    assert int(missed.max()) <= runs / 4


def test_the_run_goes_on_where_it_was() -> None:
    state = run(strategy().init(0))
    assert state.classification.best_guess.sum() == 0
    more = extended(state, 100)
    known, before = more.observations, state.observations
    assert torch.equal(known.indices.sort().values, before.indices.sort().values)
    assert float(known.y.sum()) == pytest.approx(float(before.y.sum()))
    assert (len(more.strategy.pool), more.n_used) == (500, state.n_used)
    assert float(f(more.strategy.pool.X).max()) > float(f(state.strategy.pool.X).max())
    again = extended(state, 100)
    assert again.strategy.pool.hash == more.strategy.pool.hash
    first, second = (s.strategy.ask(s).order for s in (more, again))
    assert torch.equal(first, second)
    replayed = more.strategy.replay(more.observations, seed=0)
    assert torch.equal(replayed.classification.mean, more.classification.mean)


def test_rows_are_drawn_around_different_ways_to_fail() -> None:
    u = torch.tensor([[3, 0], [3.5, 0.1], [0, 3.2], [0, -9], [0.1, 0]]).double()
    above = torch.tensor([True, True, True, True, False])
    mean = torch.tensor([1.0, 2.0, 3.0, 9.0, -1.0]).double()
    # The second is near the first; the fourth is too unlikely to weigh anything.
    assert design_points(u, above, mean).tolist() == [0, 2]
    assert design_points(u, torch.zeros(5, dtype=torch.bool), mean).tolist() == [3]


def test_what_does_not_survive_an_extension_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="claims no confidence"):
        extended(strategy(beta=None).init(0), 100)
    other = Strategy(
        strategy().pool,
        ShareOfMax(0.5),
        model=GaussianProcess(KERNEL, noise_std=0.0),
        beta=4.0,
    )
    with pytest.raises(UnsupportedError, match="a stated level"):
        extended(other.init(0), 100)
    model = GaussianProcess(KERNEL, noise_std=0.0)
    bare = Strategy(Pool(strategy().pool.X), Above(0.0), model=model, beta=4.0)
    with pytest.raises(ValueError, match="knows how its rows were drawn"):
        extended(bare.init(0), 100)
    with pytest.raises(ValueError, match="`n`"):
        extended(strategy().init(0), 3)


def test_runs_end_once_more_rows_are_worth_more_than_runs() -> None:
    # Of the first rows none is above, and the kernel makes that sure at once.
    rule = ContentKnown(0.01, until_sampled=True)
    state = run(strategy(content_tol=rule, beta=9.0).init(0))
    assert state.stop_reason in ("content known", "decided")
    assert state.content().estimate == 0
    few = state.n_used
    for _ in range(8):
        state = run(extended(state, 400))
        if state.content().estimate > 0 and state.content().variation <= 0.1:
            break
    content = state.content()
    low, high = content.posterior
    assert max(high - content.estimate, content.estimate - low) <= max(
        0.01 * content.estimate, content.sampling_error
    )
    assert content.estimate == pytest.approx(1e-6, rel=0.6)
    assert few < state.n_used <= 40


def test_the_error_of_the_sample_is_a_part_or_a_limit() -> None:
    with pytest.raises(ValueError, match="one of `sampling` and `until_sampled`"):
        ContentKnown(0.1, sampling=True, until_sampled=True)
    with pytest.raises(ValueError, match="until_sampled"):
        ContentKnown(0.1, until_sampled="yes")


def test_feasibility_counts_rows_by_weight() -> None:
    # Nothing is measured, so that all rows are as doubtful; the last weighs most.
    X = torch.tensor([[-3.0], [0.0], [3.0]]).double()
    pool = Pool(X, weights=torch.tensor([1.0, 0.0, 4.0]).double())
    for by_weight, wanted in ((False, 0), (True, 2)):
        rule = ExpectedFeasibility(by_weight=by_weight)
        model = GaussianProcess(RBFKernel().double(), noise_std=0.0)
        both = Strategy(pool, Above(0.5), model=model, rule=rule, beta=4.0)
        assert int(both.ask(both.init()).order) == wanted
    with pytest.raises(ValueError, match="by_weight"):
        ExpectedFeasibility(by_weight=2)


# --- what an extension keeps ----------------------------------------------------------


def test_an_extension_keeps_what_was_excluded_and_used_up() -> None:
    given = strategy(max_observations=8, content_tol=None)
    state = given.init(0)
    for _ in range(2):
        batch = given.ask(state)
        state = given.tell(state, batch.observe(f(batch.pool.X[batch.order])))
    batch = given.ask(state)
    state = given.tell(state, None, abandoned=batch.order)
    gone = given.ask(state).order
    state = given.exclude(state, gone)
    more = extended(state, 100)
    assert more.n_used == state.n_used == 3
    assert more.excluded_rows.tolist() == gone.tolist()
    assert len(more.abandoned) == 1
    replayed = more.strategy.replay(
        more.observations,
        seed=0,
        abandoned={0: [row for _, row in more.abandoned]},
        plans={0: [row for _, row in more.abandoned]},
        excluded=more.excluded,
    )
    assert torch.equal(replayed.classification.mean, more.classification.mean)
    assert replayed.n_used == more.n_used
    asked = []
    while not more.is_done:
        batch = more.strategy.ask(more)
        asked += batch.order.tolist()
        more = more.strategy.tell(more, batch.observe(f(batch.pool.X[batch.order])))
    assert not set(asked) & set(gone.tolist())
    assert more.n_used <= 8
    again = extended(more, 100)
    assert again.excluded_rows.tolist() == gone.tolist()
    assert (again.n_used, again.stop_reason) == (8, "budget")


def test_no_probability_is_above_one_after_an_extension() -> None:
    states = [extended(strategy(n=64, seed=s).init(s), 64) for s in range(9)]
    state = max(states, key=lambda s: float(s.strategy.pool.mass.sum()))
    assert float(state.strategy.pool.mass.sum()) > 1.001
    everything = replace(state.strategy, goal=Above(-50.0), content_tol=None)
    found = everything.replay(Observations([0], [f(everything.pool.X[:1]).item()]))
    content = found.content()
    for value in (content.estimate, content.upper, content.expected):
        assert value <= 1.0
    for ends in (content.population, content.sampled, content.posterior):
        assert ends[0] <= ends[1] <= 1.0


# --- the whole of it in one call ------------------------------------------------------


@pytest.mark.some(1)
@more_in_full("runs", 2, 20)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_rare_event_is_met_before_the_run_ends(runs: int, sign: int) -> None:
    goal = Above(0.0) if sign > 0 else Below(0.0)
    missed = 0
    for seed in range(runs):
        given = strategy(seed=seed, content_tol=None, goal=goal)
        state = rare_event(given, lambda X: sign * f(X), n=400, seed=seed)
        content = state.content()
        assert content.variation <= 0.1
        assert bool((sign * state.observations.y > 0).any())
        assert content.estimate == pytest.approx(1e-6, rel=0.6)
        missed += not content.combined[0] <= 1e-6 <= content.combined[1]
    assert missed <= 1 + runs / 4


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::botorch_lse.confidence.calibration.CalibrationWarning"
)
def test_a_learnt_model_meets_a_rare_event() -> None:
    pool = Pool.from_distribution([norm()] * 2, 400, method="monte_carlo")
    model = GaussianProcess(noise_std=0.0)
    given = Strategy(pool, Above(0.0), model=model, max_observations=120)
    state = rare_event(given, f, n=400)
    content = state.content()
    assert bool((state.observations.y > 0).any())
    assert content.variation <= 0.1
    assert content.estimate == pytest.approx(1e-6, rel=0.6)


def test_without_an_event_there_is_no_end_but_the_budget() -> None:
    given = strategy(max_observations=12, content_tol=None)
    never = rare_event(given, lambda X: f(X) - 40.0, n=64, most=200)
    assert never.stop_reason == "budget"
    assert never.n_used == 12
    assert never.content().variation == float("inf")
    few = rare_event(given, lambda X: f(X) - 40.0, n=64, most=2)
    assert len(few.strategy.pool) == 400 + 2 * 64
    with pytest.raises(UnsupportedError, match="a stated level"):
        rare_event(strategy(goal=ShareOfMax(0.5), content_tol=None), f)


@pytest.mark.slow
def test_one_excluded_row_does_not_exhaust_a_pool() -> None:
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.01  # neighbours say nothing of the row
    pool = Pool(torch.linspace(0, 1, 40, dtype=torch.float64).unsqueeze(-1))
    model = GaussianProcess(kernel, noise_std=0.0)
    for rule in (ExpectedFeasibility(), Ambiguity(), Straddle()):
        given = Strategy(pool, Above(0.3), model=model, rule=rule, beta=4.0)
        state = given.exclude(given.init(), [20])
        while not state.is_done:
            batch = given.ask(state)
            y = (6 * batch.pool.X[batch.order, 0]).sin()
            state = given.tell(state, batch.observe(y))
        assert state.stop_reason == "decided"
        undecided = state.classification.undecided.nonzero().view(-1).tolist()
        assert undecided == [20]
        assert "Rows were excluded" in state.classification.guarantee
    # Rows that may not be measured again are another matter.
    noisy = GaussianProcess(kernel, noise_std=2.0)
    given = Strategy(pool, Above(0.3), model=noisy, beta=4.0, max_repeats=1)
    state = given.exclude(given.init(), [20])
    while not state.is_done:
        batch = given.ask(state)
        state = given.tell(state, batch.observe(batch.pool.X[batch.order, 0]))
    assert state.stop_reason == "rows exhausted"
