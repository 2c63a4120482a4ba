"""The last runs of an exact simulator: the most doubtful rows, counted as they are."""

from __future__ import annotations

import json

import pytest
import torch
from gpytorch.kernels import RBFKernel
from scipy.stats import norm

from botorch_lse import Observations, Pool
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    FinalRuns,
    GaussianProcess,
    MisclassificationProbability,
    Straddle,
    Strategy,
    UFunction,
)

GRID = torch.linspace(0, 1, 15, dtype=torch.float64)
CELLS = torch.cartesian_prod(GRID, GRID)
N, LEVEL = len(CELLS), 0.15
F = (9 * CELLS[:, 0]).sin() * (7 * CELLS[:, 1]).cos()
WEIGHTS = torch.linspace(1, 30, N).double()
KERNEL = RBFKernel().double()
KERNEL.lengthscale = 0.35  # too smooth for the function


def build(rule, weights=None, **options) -> Strategy:
    model = GaussianProcess(KERNEL, noise_std=0.0)
    pool = Pool(CELLS, weights=weights)
    given = {"model": model, "rule": rule, "beta": 9.0, **options}
    return Strategy(pool, Above(LEVEL), **given)


def played(strategy: Strategy, n: int):
    state, rows = strategy.init(), []
    while state.n_used < n and not state.is_done:
        order = strategy.ask(state).order
        rows += order.tolist()
        state = strategy.tell(state, Observations(order, F[order], round=state.round))
    return state, rows


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_row_of_the_largest_expected_error_is_next(weights) -> None:
    strategy = build(MisclassificationProbability(), weights)
    told = torch.tensor([3, 60, 111, 170, 220])
    state = strategy.replay(Observations(told, F[told]))
    answer = state.classification
    z = ((answer.mean - LEVEL).abs() / answer.sigma.clamp_min(1e-300)).numpy()
    wrong = torch.from_numpy(norm.sf(z)) * (1 if weights is None else weights)
    wrong[~answer.undecided] = 0
    assert strategy.ask(state).indices.tolist() == [int(wrong.argmax())]


def test_rows_that_count_alike_are_those_of_u() -> None:
    told = torch.tensor([3, 60, 111, 170, 220])
    plans = []
    for rule in (MisclassificationProbability(), UFunction()):
        strategy = build(rule)
        plans.append(strategy.ask(strategy.replay(Observations(told, F[told]))).order)
    assert torch.equal(*plans)


@pytest.mark.parametrize("size", [1, 4])
def test_the_first_rule_chooses_until_its_measurements_are_made(size: int) -> None:
    rule = FinalRuns((Ambiguity(), MisclassificationProbability()), after=10)
    _, both = played(build(rule, WEIGHTS, batch_size=size), 16)
    _, first = played(build(Ambiguity(), WEIGHTS, batch_size=size), 10)
    assert set(both[:8]) == set(first[:8])
    # From the eleventh on, each is the one of the largest expected error.
    strategy = build(rule, WEIGHTS, batch_size=1)
    told = torch.tensor(both[:12])
    state = strategy.replay(Observations(told, F[told]))
    alone = build(MisclassificationProbability(), WEIGHTS)
    other = alone.replay(Observations(told, F[told]))
    assert torch.equal(strategy.ask(state).order, alone.ask(other).order)


def test_a_batch_may_begin_with_one_rule_and_end_with_the_other() -> None:
    rule = FinalRuns((Ambiguity(), MisclassificationProbability()), after=6)
    strategy = build(rule, batch_size=4)
    state, _ = played(strategy, 4)
    batch = strategy.parts.plan(state.belief, strategy._request(state, _none()))
    halves = build(Ambiguity(), batch_size=2)
    same = halves.replay(state.observations)
    first = halves.parts.plan(same.belief, halves._request(same, _none()))
    assert batch[:2].tolist() == first.tolist()
    assert len(batch.unique()) == 4


def _none() -> torch.Tensor:
    return torch.tensor([], dtype=torch.long)


@pytest.mark.slow
def test_true_sides_are_counted_and_no_row_is_run_twice() -> None:
    # A model that cannot follow the function: only runs make the estimate right.
    rule, errors = FinalRuns((Straddle(), MisclassificationProbability()), after=12), []
    for n in (12, 40, 100):
        state, rows = played(build(rule, WEIGHTS, beta=100.0), n)
        assert len(set(rows)) == len(rows)
        answer, told = state.classification, torch.tensor(rows)
        assert torch.equal(answer.best_guess[told], F[told] > LEVEL)
        true = float((WEIGHTS * (F > LEVEL)).sum() / WEIGHTS.sum())
        errors.append(abs(answer.content().estimate - true))
    assert errors[2] < errors[0]
    assert errors[2] < 0.02


def test_it_is_stored() -> None:
    strategy = build(FinalRuns((Straddle(), MisclassificationProbability()), after=7))
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    assert decode_strategy(stored, strategy.pool).rule == strategy.rule


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FinalRuns((Straddle(),), after=3), "last runs, but got 1"),
        (
            lambda: FinalRuns((Straddle(), MisclassificationProbability()), after=-1),
            "`after`",
        ),
        (
            lambda: FinalRuns((Straddle(), MisclassificationProbability), after=1),
            "class MisclassificationProbability without",
        ),
    ],
)
def test_what_cannot_be_combined_is_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
