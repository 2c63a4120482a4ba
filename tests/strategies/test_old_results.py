r"""Old results that are yes or no, counts, grades or classes (``History``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from botorch_lse import History, Observations, Pool
from botorch_lse.strategies import (
    Above,
    Binary,
    Classes,
    Counts,
    GaussianProcess,
    Ordinal,
    State,
    Strategy,
)
from botorch_lse.surrogate.remarks import DataWarning
from tests.covering import covering

from .runs import assert_same
from .test_yes_or_no import kernel, line, played, rising

POOL = line()
OLD = torch.tensor([2, 9, 15, 21, 28, 28])
NEW = torch.tensor([5, 12, 20, 25])
GUESSED = Binary(guess=0.2, lapse=0.05)
CUT = Ordinal(3, at_least=1, cutpoints=(-0.5, 1.0))
OUTCOMES = [Binary(), GUESSED, Counts(), CUT]
LEVELS = {Counts(): 3.0}
RESULTS = {
    Counts(): ([0, 1, 1, 4, 9, 7], [0, 2, 3, 6]),
    CUT: ([0, 0, 1, 2, 2, 1], [0, 1, 1, 2]),
}
YES_OR_NO = ([0, 1, 0, 1, 1, 0], [0, 0, 1, 1])


def results(outcome: Any) -> tuple[Tensor, Tensor]:
    old, new = RESULTS.get(outcome, YES_OR_NO)
    return torch.tensor(old).double(), torch.tensor(new).double()


def strategy_of(outcome: Any, past: History | None = None, **model: Any) -> Strategy:
    given = GaussianProcess(outcome=outcome, history=past, **model)
    return Strategy(POOL, Above(LEVELS.get(outcome, 0.6)), model=given)


def moments(state: State) -> tuple[Tensor, Tensor]:
    posterior = state.strategy.algorithm.shown(state.belief).posterior
    return posterior.mean, posterior.sigma


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize("is_learnt", [False, True])
def test_old_results_are_worth_what_told_ones_are(outcome, is_learnt):
    old, new = results(outcome)
    model: dict[str, Any] = {} if is_learnt else {"model": kernel()}
    bare = strategy_of(outcome, **model)
    knowing = strategy_of(outcome, History(POOL.X[OLD], old), **model)
    known = knowing.tell(knowing.init(), Observations(NEW, new))
    rows, y = torch.cat((OLD, NEW)), torch.cat((old, new))
    told = bare.tell(bare.init(), Observations(rows, y))
    # A fit ends where its steps are small, which depends on the order of the data.
    close = {"rtol": 1e-3, "atol": 1e-3} if is_learnt else {"rtol": 1e-5, "atol": 1e-5}
    for one, other in zip(moments(known), moments(told), strict=True):
        assert torch.allclose(one, other, **close)
    if not is_learnt:
        before = moments(knowing.init())
        alone = moments(bare.tell(bare.init(), Observations(OLD, old)))
        for one, other in zip(before, alone, strict=True):
            assert torch.allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.some(2)
@covering("outcome, times", OUTCOMES, [1, 3])
def test_old_and_new_results_give_the_posterior_of_quadrature(outcome, times):
    before, after = results(outcome)
    X = torch.tensor([[0.11], [0.37], [0.5]], dtype=torch.float64)
    y = torch.stack((before[1], before[3], after[2]))
    pool = Pool(torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1))
    old = History(X[:2].repeat(times, 1), y[:2].repeat(times))
    model = GaussianProcess(kernel(), outcome=outcome, history=old)
    level = LEVELS.get(outcome, 0.6)
    strategy = Strategy(pool, Above(level), model=model)
    new = Observations([4] * times, y[2:].repeat(times))  # the row at 0.5
    state = strategy.tell(strategy.init(), new)

    nodes, weights = np.polynomial.legendre.leggauss(90)
    f = torch.from_numpy(8 * np.stack(np.meshgrid(nodes, nodes, nodes), -1)).view(-1, 3)
    weight = torch.from_numpy(np.prod(np.meshgrid(weights, weights, weights), axis=0))
    K = kernel()(X).to_dense().double()
    log = outcome.log_probability(f, y, 0 * y + times).sum(dim=-1)
    log = log - 0.5 * (f @ torch.linalg.inv(K) * f).sum(dim=-1)
    share = (log - log.max()).exp() * weight.reshape(-1)
    share = share / share.sum()
    # Given f at the measured points, f elsewhere is normal.
    C = kernel()(X, pool.X).to_dense().double()
    at_rows = f @ torch.linalg.solve(K, C)
    mean = share @ at_rows
    left = 4.0 - (C * torch.linalg.solve(K, C)).sum(dim=0)
    sigma = (left + share @ (at_rows - mean).square()).sqrt()
    found = moments(state)
    # Expectation propagation is an approximation: tolerances are its known quality.
    assert torch.allclose(found[0], mean, atol=0.05)
    assert torch.allclose(found[1], sigma, rtol=0.06)


@pytest.mark.parametrize("outcome", [Binary(), GUESSED], ids=str)
def test_old_results_may_be_numbers_of_successes(outcome):
    yes, n = [3, 1, 4], [4, 5, 4]
    X = POOL.X[OLD[:3]]
    strategy = strategy_of(outcome, History(X, yes, trials=n), model=kernel())
    assert strategy.model.history.counts.tolist() == n
    bare = strategy_of(outcome, model=kernel())
    told = bare.tell(bare.init(), Observations(OLD[:3], yes, trials=n))
    for one, other in zip(moments(strategy.init()), moments(told), strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    later = strategy.with_history(History(X[:1], [1]))
    assert later.model.history.counts.tolist() == [*n, 1]
    table = pd.DataFrame({"x": [0.1, 0.2]}, index=["a", "b"])
    y, trials = pd.Series({"b": 1, "a": 2}), pd.Series({"b": 3, "a": 2})
    named = History(table, y, trials=trials)
    assert named.counts.tolist() == [2, 3]
    assert named.y.tolist() == pytest.approx([1.0, 1 / 3])


@pytest.mark.some(1)
@covering("is_learnt, batch_size", [False, True], [1, 4])
def test_a_run_with_old_results_goes_on_from_its_data(is_learnt, batch_size):
    generator, p = torch.Generator().manual_seed(3), rising(Binary(), POOL)
    X = torch.rand(12, 1, generator=generator, dtype=torch.float64) * 1.2 - 0.1
    y = (X[:, 0] > 0.5).double()
    y[3], y[7] = 1 - y[3], 1 - y[7]
    given = GaussianProcess(
        None if is_learnt else kernel(), outcome=Binary(), history=History(X, y)
    )
    strategy = Strategy(
        POOL, Above(0.75), model=given, batch_size=batch_size, max_observations=12
    )
    state = played(strategy, p)
    assert_same(strategy, strategy.replay(state.observations), state)
    assert "count as made before the run" in state.classification.guarantee
    few = state.predict(POOL.X, data=state.history.select(torch.arange(4)))
    assert not torch.allclose(few[0], state.predict(POOL.X)[0], atol=1e-3)
    again = state.predict(POOL.X, data=state.history)
    for one, other in zip(again, state.predict(POOL.X), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_both_answers_may_be_old_ones():
    r"""Then a fit needs no second answer, and first rows are fewer."""
    X = torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1)
    y = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]).double()
    strategies = [
        Strategy(POOL, Above(0.5), model=GaussianProcess(outcome=Binary(), history=old))
        for old in (None, History(X, y), History(X, 0 * y))
    ]
    needed = [strategy.parts.model.n_first for strategy in strategies]
    assert needed[1] == needed[2] < needed[0]
    is_informed = []
    for strategy in strategies:
        state = strategy.init()
        while len(state.history) < needed[0]:
            batch = strategy.ask(state)
            state = strategy.tell(state, batch.observe(torch.zeros(len(batch))))
        is_informed.append(state.belief.fits.is_informed)
    assert is_informed == [False, True, False]


def test_a_number_and_a_yes_or_no_have_old_results_each():
    pool = Pool(torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double())
    X = torch.rand(9, 2, generator=torch.Generator().manual_seed(1)).double()
    y = torch.stack((3 * X[:, 0], (X[:, 1] > 0.4).double()), dim=-1)
    model = GaussianProcess(
        (kernel(), kernel()),
        noise_std=(0.1, None),
        outcome=(None, Binary()),
        history=History(X, y),
    )
    goal = Above(1.0) & Above(0.5, output=1)
    state = Strategy(pool, goal, model=model).init()
    for j, outcome in enumerate((None, Binary())):
        own = GaussianProcess(
            kernel(),
            noise_std=None if outcome else 0.1,
            outcome=outcome,
            history=History(X, y[:, j]),
        )
        alone = Strategy(pool, Above(0.5), model=own).init().belief.fits.posteriors[0]
        both = state.belief.fits.posteriors[j]
        assert torch.allclose(both.mean, alone.mean)
        assert torch.allclose(both.sigma, alone.sigma)


def test_old_classes_are_told_by_their_labels():
    phases = Classes(("solid", "liquid", "gas"))
    labels = ["solid", "solid", "liquid", "liquid", "gas", "gas"]
    X = torch.linspace(0.05, 0.95, 6, dtype=torch.float64).unsqueeze(-1)
    names = ("gas", "solid", "liquid")  # the goal's order counts
    y = phases.results(labels)[:, [2, 0, 1]]
    past = History(X, y, outputs=names)
    model = GaussianProcess(kernel(0.15), outcome=Binary(), history=past)
    answer = Strategy(POOL, phases, model=model).init().classification
    true = (3 * POOL.X[:, 0]).floor().clamp_max(2).long()
    assert (answer.likeliest == true).double().mean() > 0.9


@pytest.mark.parametrize(
    ("outcome", "past", "match"),
    [
        (Binary(), {"y": [1, 0], "yvar": 0.1}, r"`history\.yvar` to be left out"),
        (Binary(), {"y": [1, 0.4]}, "`y` to be 1 or 0 .* got 0.4.*`trials=n`"),
        (CUT, {"y": [1, 0], "trials": 2}, "`counts` to be left out"),
        (CUT, {"y": [1, 5]}, "`y` to be a grade"),
        (Counts(), {"y": [1, -1]}, "`y` to be"),
        (None, {"y": [1, 0], "trials": 2}, r"`history\.trials` to be left out"),
        (Binary(), {"y": [1, 3], "trials": 2}, "`y` to be whole numbers of successes"),
        (Binary(), {"y": [1, 0], "counts": [1]}, "`counts` to be one number"),
        (Binary(), {"y": [1, 0], "trials": 0}, "`trials` to be one number"),
        (Binary(), {"y": [1, 0], "yvar": 1, "trials": 2}, "`trials` to come alone"),
    ],
)
def test_old_results_that_cannot_be_are_refused(outcome, past, match):
    with pytest.raises(ValueError, match=match):
        strategy_of(outcome, History(POOL.X[:2], **past))


def test_far_old_results_are_named_and_do_no_harm():
    strategy, told = (
        strategy_of(Binary(), History([[40.0], [0.3]], [1, 0])),
        [0, 0, 1, 1],
    )
    with pytest.warns(DataWarning, match="Far from the pool"):
        state = strategy.init()
    state = strategy.tell(state, Observations(NEW, told))
    assert not math.isnan(float(state.classification.mean.sum()))
