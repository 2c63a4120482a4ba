r"""States know their problem; rows may be told more often than they may be asked."""

import dataclasses

import pytest
import torch

from botorch_lse import Pool
from botorch_lse.data.observations import Observations
from botorch_lse.papers import PALStrategy
from botorch_lse.strategies import (
    Above,
    GEGEStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    MELKStrategy,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)
from tests.registry import GAUSSIAN, PLAYED, STRATEGIES, case_of

from . import pareto_runs
from .runs import grid, make, step

FEATURES, MEANS = pareto_runs.linear_problem()
NOT_STATES = [None, 3, "run", LSEStrategy]


def one_of(strategy, **options):
    case = case_of(strategy)
    if case.has_several_outputs:
        return pareto_runs.make(case, FEATURES, **options)
    if case.family == "confidence":
        return case.make(Pool(FEATURES), **case.aim(0.4), **options)
    return make(case, batch_size=2, **options)


@pytest.mark.parametrize("case", STRATEGIES)
def test_what_is_no_state_is_refused(case):
    strategy = one_of(case)
    for wrong in NOT_STATES:
        for call in (
            strategy.ask,
            strategy.missing,
            strategy.planned,
            lambda given: strategy.tell(given, None),
        ):
            with pytest.raises(
                ValueError, match=r"Expected `state` to be a State, but"
            ):
                call(wrong)


@pytest.mark.parametrize("cls", [LSEStrategy, GEGEStrategy])
def test_what_are_no_observations_are_refused(cls):
    strategy = one_of(cls)
    for wrong in (None, 3, [1.0], {"indices": [0], "y": [1.0]}):
        with pytest.raises(ValueError, match=r"Expected `observations` to be Obs"):
            strategy.replay(wrong)


def test_answers_beside_the_loop_refuse_what_is_no_state():
    strategy = make(TruVaRStrategy)
    with pytest.raises(ValueError, match="`state` to be a State"):
        strategy.recommend(None)
    with pytest.raises(ValueError, match="`state` to be a State"):
        strategy.spent(None)
    with pytest.raises(ValueError, match="`state` to be a State"):
        one_of(PALStrategy).estimate(None)


@pytest.mark.parametrize("case", PLAYED)
def test_a_state_of_another_pool_of_equal_size_is_refused(case):
    strategy, other = make(case), make(case, pool=Pool(2.0 * grid()))
    state = other.init()
    with pytest.raises(ValueError, match=r"with another pool of 36 rows.*Go on with"):
        strategy.ask(state)
    with pytest.raises(ValueError, match="another pool"):
        strategy.tell(state, Observations([0], [1.0]))


def test_a_state_for_other_outputs_is_refused():
    strategy, other = one_of(GEGEStrategy), one_of(GEGEStrategy, maximize=(True, False))
    with pytest.raises(ValueError, match=r"with `maximize` = \(True, False\)"):
        strategy.ask(other.init())


@pytest.mark.parametrize(
    ("cls", "goal"),
    [(LSEStrategy, "threshold"), (LSEStrategy, "epsilon"), (MELKStrategy, "threshold")],
)
def test_a_state_for_another_goal_is_refused(cls, goal):
    strategy = make(cls)
    other = dataclasses.replace(strategy, **{goal: 0.7})
    with pytest.raises(ValueError, match=rf"`{goal}` = 0.7.*`strategy.replay\(state"):
        strategy.ask(other.init())


def test_a_state_of_another_class_is_refused():
    state = step(make(StraddleStrategy), make(StraddleStrategy).init())
    with pytest.raises(ValueError, match=r"this LSEStrategy made, .* a StraddleStrat"):
        make(LSEStrategy).ask(state)


@pytest.mark.parametrize("case", PLAYED)
def test_an_equal_pool_and_other_limits_go_on(case):
    strategy = make(case, batch_size=2, max_observations=2)
    state = step(strategy, strategy.init())
    more = make(case, pool=Pool(grid()), batch_size=3, max_observations=9)
    assert len(more.ask(dataclasses.replace(state, stop_reason=None))) == 3


# --- rows used more often than allowed ----------------------------------------------


@pytest.mark.some(6)
@pytest.mark.parametrize("case", PLAYED)
def test_a_row_told_twice_by_hand_is_asked_no_more(case):
    strategy = make(case, batch_size=3, max_repeats=1, beta=25.0, epsilon=0.0)
    state = strategy.tell(strategy.init(), Observations([4, 4, 4], [0.1, 0.2, 0.3]))
    for _ in range(3):
        batch = strategy.ask(state)
        assert not (batch.order == 4).any()
        state = step(strategy, state)


@pytest.mark.some(6)
@pytest.mark.parametrize("case", PLAYED)
def test_a_row_pending_twice_is_asked_no_more(case):
    strategy = make(case, batch_size=3, max_repeats=1, beta=25.0, epsilon=0.0)
    state = step(strategy, strategy.init())
    out = strategy.ask(state).order
    ahead = strategy.ask(state, pending=[*out.tolist(), 7, 7, 7])
    assert not torch.isin(ahead.order, torch.tensor([*out.tolist(), 7])).any()


@pytest.mark.parametrize(
    ("n_rows", "batch_size", "max_repeats", "seed"),
    [(5, 3, 2, 0), (8, 4, 2, 6)],
)
def test_rows_measured_again_to_tell_the_noise_keep_the_limit(
    n_rows, batch_size, max_repeats, seed
):
    # Three of ten measurements fail, and are used up.
    pool = Pool(torch.linspace(0, 1, n_rows).double().unsqueeze(-1))
    given = {"batch_size": batch_size, "max_repeats": max_repeats}
    strategy = Strategy(pool, Above(0.3), **given)
    generator = torch.Generator().manual_seed(seed)
    state, asked = strategy.init(), torch.zeros(n_rows, dtype=torch.long)
    while not state.is_done:
        rows = strategy.ask(state).order
        asked += torch.bincount(rows, minlength=n_rows)
        is_lost = torch.rand(len(rows), generator=generator) < 0.3 * (n_rows > 5)
        told = rows[~is_lost]
        noise = 0.2 * torch.randn(len(told), generator=generator).double()
        y = (6 * pool.X[told, 0]).sin() + noise
        state = strategy.tell(state, Observations(told, y), abandoned=rows[is_lost])
    assert asked.max() == max_repeats


@pytest.mark.parametrize("case", GAUSSIAN)
def test_so_it_is_with_several_outputs(case):
    strategy = pareto_runs.make(case, FEATURES, max_repeats=1, batch_size=3, beta=25.0)
    twice = Observations([4, 4, 4], torch.zeros(3, 2))
    state = strategy.tell(strategy.init(), twice)
    assert not (strategy.ask(state).order == 4).any()
    ahead = strategy.ask(state, pending=[5, 5])
    assert not torch.isin(ahead.order, torch.tensor([4, 5])).any()


def test_an_exhausted_pool_is_told_more_than_it_may_be_asked():
    strategy = make(MaxVarianceStrategy, max_repeats=1, beta=1e6, batch_size=36)
    every = Observations(list(range(36)) * 2, [0.0] * 72)
    assert strategy.tell(strategy.init(), every).stop_reason == "rows exhausted"


# --- states never change -------------------------------------------------------------


def parts(value):
    r"""A record, its fields, their fields, and the entries of tuples."""
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Pool)):
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))
    if isinstance(value, tuple):
        for entry in value:
            yield from parts(entry)


@pytest.mark.some(8)
@pytest.mark.parametrize("case", STRATEGIES)
def test_a_state_and_its_copies_share_nothing_that_changes(case):
    strategy = one_of(case)
    state = strategy.init()
    rows = strategy.ask(state).order[:1]
    y = MEANS[rows] if case.has_several_outputs else torch.zeros(1)
    told = strategy.tell(state, Observations(rows, y))
    for one in (state, told):
        copied = dataclasses.replace(one)
        before = [
            (field, getattr(one, field.name)) for field in dataclasses.fields(one)
        ]
        batch, plan = strategy.ask(one).order, strategy.planned(one)
        assert not any(isinstance(part, (list, dict, set)) for part in parts(one))
        for field, value in before:
            assert getattr(one, field.name) is value
            assert getattr(copied, field.name) is value
        assert torch.equal(strategy.ask(copied).order, batch)
        assert torch.equal(strategy.planned(copied), plan)
        assert "planned_rows" not in vars(dataclasses.replace(one))
