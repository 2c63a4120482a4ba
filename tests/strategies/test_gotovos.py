r"""Each strategy against a step-by-step replay of its algorithm in dense NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from botorch_lse import Observations
from botorch_lse.confidence import BatchEta, UnionBeta
from botorch_lse.papers import LSELiteralBatchStrategy, StraddleRankStrategy
from botorch_lse.strategies import (
    ImplicitLSEStrategy,
    ImplicitStraddleStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    State,
    StraddleStrategy,
)
from tests.reference.gotovos import (
    Replay,
    Trace,
    greedy,
    lse,
    lse_implicit,
    lse_rounds,
)
from tests.strategies.runs import (
    GP,
    NOISE_STD,
    Value,
    grid,
    make,
    measure,
    rows,
    run,
    step,
)

X = grid().numpy()
N = len(X)


def each_its_own(seed: int) -> Value:
    r"""Each measurement has its own noise."""
    return lambda row, before: measure(row, before, seed)


def by_batch(seed: int, B: int) -> Value:
    r"""Noise by batch and row: the order inside a batch does not matter."""
    return lambda row, before: measure(row, N * (before // B) + row, seed)


def replay(value: Value) -> Replay:
    return Replay(GP, X, NOISE_STD**2, value)


def assert_sets(state: State, trace: Trace, t: int) -> None:
    assert rows(state.classification.above) == trace.H[t]
    assert rows(state.classification.below) == trace.L[t]
    assert rows(state.classification.undecided) == trace.U[t]


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("beta", [None, 4.0])
def test_lse_is_algorithm_one(seed: int, epsilon: float, beta: float | None) -> None:
    schedule = UnionBeta(N, 0.05) if beta is None else lambda t: 4.0
    strategy = make(LSEStrategy, epsilon=epsilon, beta=beta)
    value = each_its_own(seed)
    trace = lse(replay(value), 0.4, epsilon, schedule, steps=40)
    states = run(strategy, 40, value=value)
    assert states[-1].history.indices.tolist() == trace.rows
    assert len(states) == len(trace.H)
    for t, state in enumerate(states):
        assert_sets(state, trace, t)
    if beta is not None and epsilon > 0:
        assert states[-1].stop_reason == "decided"


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("drop", [False, True])
def test_implicit_lse_is_algorithm_two(seed: int, epsilon: float, drop: bool) -> None:
    # Wide enough for intervals not to contradict each other, which the paper leaves
    # open and we treat in our own way.
    strategy = make(
        ImplicitLSEStrategy, epsilon=epsilon, drop_maximisers=drop, beta=9.0
    )
    value = each_its_own(seed)
    trace = lse_implicit(replay(value), 0.6, epsilon, lambda t: 9.0, 40, drop)
    states = run(strategy, 40, value=value)
    assert not states[-1].classification.contradicted.any()
    assert states[-1].history.indices.tolist() == trace.rows
    assert len(states) == len(trace.H)
    for t, state in enumerate(states):
        assert_sets(state, trace, t)
        assert rows(state.belief.sides.candidates) == trace.Z[t]


def test_the_two_readings_of_the_m_sets_differ_in_these_runs() -> None:
    first, second = (
        [
            lse_implicit(replay(each_its_own(s)), 0.6, 0.2, lambda t: 4.0, 40, drop).Z
            for s in range(3)
        ]
        for drop in (False, True)
    )
    assert first != second


@pytest.mark.parametrize("batch_size", [2, 4])
@pytest.mark.parametrize("beta", [None, 4.0])
def test_lse_in_batches_classifies_after_feedback_only(
    batch_size: int, beta: float | None
) -> None:
    schedule = UnionBeta(N, 0.05) if beta is None else lambda t: 4.0
    strategy = make(LSEStrategy, batch_size=batch_size, beta=beta)
    value = each_its_own(0)
    trace = lse_rounds(replay(value), 0.4, 0.1, schedule, 8, batch_size)
    states = run(strategy, 8, value=value)
    assert states[-1].history.indices.tolist() == trace.rows
    for t, state in enumerate(states):
        assert_sets(state, trace, t)


@pytest.mark.some(2)
@pytest.mark.parametrize("beta", [None, 9.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_literal_batches_are_algorithm_three(beta: float | None, seed: int) -> None:
    B = 4
    strategy = make(LSELiteralBatchStrategy, batch_size=B, beta=beta)
    C = strategy.information
    assert 1.0 < C < 10.0
    eta = BatchEta(UnionBeta(N, 0.05), B, C) if beta is None else lambda t: 9.0
    value = by_batch(seed, B)
    trace = lse(replay(value), 0.4, 0.1, eta, steps=20, batch_size=B)
    states = run(strategy, 5, value=value)
    full = len(trace.values) // B
    assert full >= 3
    for k, state in enumerate(states[: full + 1]):
        told = state.history.indices.tolist()
        assert sorted(told) == sorted(trace.rows[: k * B])
        assert_sets(state, trace, k * B)


def test_literal_batches_decide_inside_a_batch() -> None:
    literal = make(LSELiteralBatchStrategy, batch_size=6)
    states = run(literal, 3, value=by_batch(0, 6))
    feedback_only = make(LSEStrategy, batch_size=6, beta=4.0)
    replayed = feedback_only.replay(states[-1].observations)
    # The same data, but stale intervals decide more.
    decided = ~states[-1].classification.undecided
    assert int(decided.sum()) > int((~replayed.classification.undecided).sum())


@pytest.mark.parametrize("batch_size", [1, 5])
def test_a_literal_batch_claims_nothing_of_a_larger_group(batch_size: int) -> None:
    value = each_its_own(0)
    told = Observations(range(N), [value(row, row) for row in range(N)])
    answers = []
    for cls in (LSELiteralBatchStrategy, LSEStrategy):
        strategy = make(cls, batch_size=batch_size, beta=4.0)
        answers.append(strategy.tell(strategy.init(), told).classification)
    assert torch.equal(answers[0].lower, answers[1].lower)
    assert answers[0].side.tolist() == answers[1].side.tolist()


def test_a_literal_batch_claims_confidence_where_the_bound_is_known() -> None:
    known = make(LSELiteralBatchStrategy, batch_size=3, beta=None)
    assert "Theorem 3 with C = " in known.guarantee
    fitted = make(LSELiteralBatchStrategy, batch_size=3, beta=None, model=None)
    assert "No confidence is claimed" in fitted.guarantee


# --- rules written as one greedy choice after the other -----------------------------

BETA = 1.96**2


def straddle_score(level: Callable[[np.ndarray], float]) -> Callable:
    return lambda mean, sigma: 1.96 * sigma - np.abs(mean - level(mean))


SCORES = {
    StraddleStrategy: straddle_score(lambda mean: 0.4),
    ImplicitStraddleStrategy: straddle_score(lambda mean: 0.6 * mean.max()),
    MaxVarianceStrategy: lambda mean, sigma: sigma**2,
}


@pytest.mark.parametrize("cls", SCORES)
@pytest.mark.parametrize("q", [1, 4])
def test_each_row_is_the_best_given_the_ones_before(cls: type, q: int) -> None:
    strategy = make(cls, batch_size=q, beta=BETA, epsilon=0.0)
    value = each_its_own(0)
    state = strategy.init()
    for _ in range(6):
        told = state.history.indices.tolist(), state.history.y.tolist()
        expected = greedy(replay(value), *told, SCORES[cls], q)
        assert strategy.ask(state).order.tolist() == sorted(expected)
        state = step(strategy, state, value)


def test_rank_takes_the_best_distinct_rows() -> None:
    strategy = make(StraddleRankStrategy, batch_size=4, beta=None, epsilon=0.0)
    state = strategy.init()
    for _ in range(5):
        told, y = state.history.indices.tolist(), state.history.y.tolist()
        mean, sigma = replay(each_its_own(0)).moments(told, y, len(y))
        scores = SCORES[StraddleStrategy](mean, sigma)
        expected = sorted(range(N), key=lambda i: (-round(scores[i], 8), i))[:4]
        assert strategy.ask(state).order.tolist() == sorted(expected)
        state = step(strategy, state, each_its_own(0))


def test_straddle_classifies_by_the_current_interval_alone() -> None:
    strategy = make(StraddleStrategy, beta=None, epsilon=0.0)
    states = run(strategy, 25, value=each_its_own(0))
    back = False
    for before, state in itertools.pairwise(states):
        told, y = state.history.indices.tolist(), state.history.y.tolist()
        mean, sigma = replay(each_its_own(0)).moments(told, y, len(y))
        above = {i for i in range(N) if mean[i] - 1.96 * sigma[i] > 0.4}
        below = {i for i in range(N) if mean[i] + 1.96 * sigma[i] <= 0.4}
        assert rows(state.classification.above) == above
        assert rows(state.classification.below) == below
        now, then = state.classification.undecided, before.classification.undecided
        back |= bool((now & ~then).any())
    assert back
    assert "No confidence is claimed" in states[-1].classification.guarantee


def test_probabilities_come_from_the_last_posterior() -> None:
    state = run(make(LSEStrategy), 7, value=each_its_own(0))[-1]
    told, y = state.history.indices.tolist(), state.history.y.tolist()
    mean, sigma = replay(each_its_own(0)).moments(told, y, len(y))
    p = torch.special.ndtr(torch.tensor((mean - 0.4) / sigma))
    answer = state.classification
    assert np.allclose(answer.mean, mean, atol=1e-9)
    assert np.allclose(answer.sigma, sigma, atol=1e-9)
    assert torch.allclose(answer.probability_above, p, atol=1e-8)


def test_maximal_variance_places_the_first_rounds() -> None:
    strategy = make(LSEStrategy, batch_size=2, n_initial=5)
    reference = make(MaxVarianceStrategy, batch_size=2)
    state, other = strategy.init(), reference.init()
    for _ in range(3):
        assert torch.equal(strategy.ask(state).order, reference.ask(other).order)
        state = step(strategy, state, each_its_own(0))
        other = step(reference, other, each_its_own(0))
    without = make(LSEStrategy, batch_size=2).replay(state.observations)
    assert torch.equal(strategy.ask(state).order, strategy.ask(without).order)
    assert not torch.equal(strategy.ask(state).order, reference.ask(other).order)
