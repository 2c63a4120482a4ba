r"""What every strategy promises about asking, telling and replaying."""

from __future__ import annotations

import dataclasses
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from gpytorch.kernels import RBFKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse import Observations, Pool
from botorch_lse.data.requests import canonical_order, matching
from botorch_lse.papers import (
    GEGEPACStrategy,
    MELKPACStrategy,
    RAGEPACStrategy,
    StraddleRankStrategy,
)
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    GEGEStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    MELKLinearStrategy,
    RandomStrategy,
    State,
    StraddleStrategy,
    Strategy,
)
from tests.covering import covering
from tests.registry import PLAYED, StrategyCase
from tests.strategies.runs import (
    FIELDS,
    GP,
    assert_same,
    grid,
    make,
    measure,
    run,
    step,
    truth,
)

every = pytest.mark.parametrize("case", PLAYED)
batches = covering("case, batch_size", PLAYED, [1, 3])


def after(strategy: Strategy, rounds: int = 3) -> State:
    state = run(strategy, rounds)[-1]
    assert not state.is_done
    return state


def told(rows: list[int], before: int = 100) -> Observations:
    return Observations(rows, [measure(row, before + i) for i, row in enumerate(rows)])


# --- replay -------------------------------------------------------------------------


@pytest.mark.some(4)
@batches
def test_replay_equals_telling_one_by_one(case: StrategyCase, batch_size: int) -> None:
    strategy = make(case, batch_size=batch_size)
    state = run(strategy, 5, seed=3)[-1]
    assert len(state.history) >= 5
    assert_same(strategy, strategy.replay(state.observations, seed=3), state)


@pytest.mark.some(2)
@every
def test_replay_in_mid_round_gives_the_same_remaining_batch(case: StrategyCase) -> None:
    strategy = make(case, batch_size=4)
    state = after(strategy)
    batch = strategy.ask(state)
    part = strategy.tell(state, told(batch.order[[2, 0]].tolist()))
    again = strategy.replay(part.observations)
    assert_same(strategy, again, part)
    left = remove(batch.order, batch.order[[2, 0]])
    assert torch.equal(strategy.ask(again).order, left)


@pytest.mark.some(4)
@batches
def test_replay_takes_what_a_state_lost(case: StrategyCase, batch_size: int) -> None:
    strategy = make(case, batch_size=batch_size)
    state = strategy.init(seed=3)
    for i in range(4):
        rows = strategy.ask(state).order
        out = rows[:1] if i == 1 else rows[:0]
        left = told(remove(rows, out).tolist(), 10 * i)
        state = strategy.tell(state, left, abandoned=out)
    assert len(state.abandoned) == 1
    by_round = {round_: [row] for round_, row in state.abandoned}
    for abandoned in (state.abandoned, by_round):
        again = strategy.replay(state.observations, 3, abandoned=abandoned)
        assert_same(strategy, again, state)


@pytest.mark.some(4)
@every
def test_replay_without_labels_uses_all_values_in_any_order(case: StrategyCase) -> None:
    strategy = make(case, batch_size=4)
    if strategy.algorithm.facts.needs_its_rows:
        pytest.skip("learns nothing from rows that it did not ask for")
    asked = strategy.ask(strategy.init(seed=0)).order.tolist()
    others = [row for row in range(20) if row not in asked]
    for rows in (asked[:2] + others, others + asked[:2], asked + others):
        found = strategy.replay(told(rows), seed=0)
        assert len(found.history) == len(rows)


@pytest.mark.some(4)
@every
def test_replay_without_labels_takes_what_was_planned_for_its_rounds(
    case: StrategyCase,
) -> None:
    strategy = make(case)
    state = run(strategy, 4)[-1]
    bare = Observations(state.history.indices, state.history.y)
    assert_same(strategy, strategy.replay(bare), state)


@pytest.mark.some(4)
@every
def test_states_survive_pickling(case: StrategyCase) -> None:
    strategy = make(case, batch_size=2)
    state = after(strategy)
    again = pickle.loads(pickle.dumps((strategy, state)))
    assert_same(again[0], again[1], state)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), case=st.sampled_from(PLAYED))
def test_any_history_replays_and_partitions_the_pool(
    data: st.DataObject, case: StrategyCase
) -> None:
    strategy = make(case, batch_size=data.draw(st.integers(1, 4)))
    state = strategy.init()
    for _ in range(data.draw(st.integers(1, 6))):
        if state.is_done:
            break
        batch = strategy.ask(state)
        kind = data.draw(st.sampled_from(["all", "part", "others", "both", "lost"]))
        if data.draw(st.integers(0, 3)) == 0:
            gone = data.draw(st.lists(st.integers(0, 35), min_size=1, max_size=5))
            state = strategy.exclude(state, [*gone, *batch.order[:1].tolist()])
            if state.is_done:
                break
            batch = strategy.ask(state)
            assert not torch.isin(batch.order, state.excluded_rows).any()
        part = batch.order[: data.draw(st.integers(1, len(batch)))].tolist()
        others = data.draw(st.lists(st.integers(0, 35), min_size=1, max_size=5))
        rows = {
            "all": batch.order.tolist(),
            "part": part,
            "others": others,
            "both": part + others,
            "lost": [],
        }[kind]
        lost = part if kind == "lost" else None
        state = strategy.tell(
            state, told(rows, len(state.observations)), abandoned=lost
        )
        answer = state.classification
        sides = answer.above.int() + answer.below.int() + answer.undecided.int()
        assert bool((sides == 1).all())
    abandoned: dict[int, list[int]] = {}
    for label, row in state.abandoned:
        abandoned.setdefault(label, []).append(row)
    again = strategy.replay(
        state.observations, abandoned=abandoned, excluded=state.excluded
    )
    assert_same(strategy, again, state)


# --- asking -------------------------------------------------------------------------


@pytest.mark.some(4)
@batches
def test_asking_changes_nothing(case: StrategyCase, batch_size: int) -> None:
    strategy = make(case, batch_size=batch_size)
    state = after(strategy)
    fresh = strategy.replay(state.observations)
    first = strategy.ask(state)
    strategy.ask(state, pending=first.order.tolist())
    strategy.ask(state, pending=[0, 0, 1])
    again = strategy.ask(state)
    assert torch.equal(first.order, again.order)
    assert first.round == again.round == state.round
    assert len(first) == batch_size
    assert_same(strategy, state, fresh)


@pytest.mark.some(4)
@every
def test_batches_are_sorted_rows_of_the_pool(case: StrategyCase) -> None:
    strategy = make(case, batch_size=5)
    batch = strategy.ask(after(strategy))
    assert torch.equal(batch.order, batch.order.sort().values)
    assert batch.pool is strategy.pool
    if case.cls is StraddleRankStrategy:
        assert (batch.counts == 1).all()


def test_seed_decides_what_random_draws() -> None:
    strategy = make(RandomStrategy, batch_size=4)
    orders = [strategy.ask(strategy.init(seed)).order.tolist() for seed in range(6)]
    assert len({tuple(order) for order in orders}) > 3
    assert orders[2] == strategy.ask(strategy.init(2)).order.tolist()
    rounds = [s.history.indices.tolist()[-4:] for s in run(strategy, 3)[1:]]
    assert rounds[0] != rounds[1]


def test_random_draws_anew_in_each_round() -> None:
    # After every second round all rows are measured equally often.
    strategy = make(RandomStrategy, batch_size=18, epsilon=0.0, beta=50.0)
    states = run(strategy, 6)
    firsts = [strategy.ask(state).order.tolist() for state in states[::2]]
    assert len({tuple(first) for first in firsts}) == len(firsts) == 4


def test_global_seed_decides_nothing() -> None:
    strategy = make(RandomStrategy, batch_size=4)
    torch.manual_seed(1)
    first = strategy.ask(strategy.init(0)).order
    torch.manual_seed(2)
    assert torch.equal(strategy.ask(strategy.init(0)).order, first)


def test_random_measures_every_row_before_any_twice() -> None:
    strategy = make(RandomStrategy, batch_size=9, epsilon=0.0, beta=30.0)
    state = run(strategy, 8)[-1]
    assert torch.bincount(state.history.indices).tolist() == [2] * 36


# --- telling in pieces --------------------------------------------------------------


@pytest.mark.some(1)
@every
def test_order_of_arrival_inside_a_round_is_irrelevant(case: StrategyCase) -> None:
    strategy = make(case, batch_size=4)
    state = after(strategy)
    batch = strategy.ask(state)
    y = torch.tensor([measure(row, 40 + i) for i, row in enumerate(batch.order)])
    whole = strategy.tell(state, batch.observe(y))
    for order in ([3, 1, 0, 2], [0, 1, 2, 3], [2, 3, 1, 0]):
        part = state
        for i in order[:3]:
            part = strategy.tell(part, Observations(batch.order[[i]], y[[i]]))
            assert part.round == state.round
            for name in FIELDS:
                before = getattr(state.classification, name)
                assert torch.equal(getattr(part.classification, name), before)
        rest = strategy.ask(part)
        assert rest.round == state.round
        assert torch.equal(rest.order, batch.order[[order[3]]])
        part = strategy.tell(part, Observations(batch.order[[order[3]]], y[[order[3]]]))
        assert_same(strategy, part, whole)
    mixed = Observations(batch.order[[3, 0, 2, 1]], y[[3, 0, 2, 1]])
    assert_same(strategy, strategy.tell(state, mixed), whole)


def test_replicates_are_told_one_at_a_time() -> None:
    pool = Pool(torch.tensor([[0.0], [1.0]]).double())
    strategy = make(
        MaxVarianceStrategy, pool=pool, batch_size=4, model=RBFKernel().double()
    )
    state = strategy.init()
    batch = strategy.ask(state)
    assert batch.counts.tolist() == [2, 2]
    part = strategy.tell(state, Observations([0], [0.3]))
    assert strategy.ask(part).order.tolist() == [0, 1, 1]
    part = strategy.tell(part, Observations([1, 1], [0.3, 0.1]))
    assert strategy.ask(part).order.tolist() == [0]


@pytest.mark.some(4)
@every
def test_rows_nobody_asked_for_are_kept_as_a_round(case: StrategyCase) -> None:
    strategy = make(case, batch_size=3)
    state = after(strategy)
    asked = strategy.ask(state).order.tolist()
    others = [row for row in (35, 17, 4, 9, 22, 30) if row not in asked][:2]
    later = strategy.tell(state, told(others))
    assert later.round == state.round + 1
    assert later.history.indices.tolist()[-2:] == sorted(others)
    assert len(later.history) == len(state.history) + 2
    assert_same(strategy, strategy.replay(later.observations), later)


@pytest.mark.some(2)
@every
def test_rows_nobody_asked_for_wait_until_the_round_is_complete(
    case: StrategyCase,
) -> None:
    strategy = make(case, batch_size=3)
    state = after(strategy)
    asked = strategy.ask(state).order.tolist()
    others = [row for row in (35, 17, 4, 9, 22, 30) if row not in asked][:2]
    part = strategy.tell(state, told(asked[:1]))
    part = strategy.tell(part, told(others, 60))
    assert torch.equal(strategy.ask(part).order, torch.tensor(asked[1:]))
    assert len(part.observations) == len(state.history) + 3
    assert_same(strategy, strategy.replay(part.observations), part)
    whole = strategy.tell(part, told(asked[1:], 80))
    assert len(whole.observations) == len(state.history) + 5
    assert_same(strategy, strategy.replay(whole.observations), whole)


def test_waiting_rows_that_the_next_round_wants_count_to_it() -> None:
    strategy = make(LSEStrategy, batch_size=3)
    state = after(strategy)
    asked = strategy.ask(state).order.tolist()
    y = told(asked)
    following = strategy.ask(strategy.tell(state, y)).order.tolist()
    early = [row for row in following if row not in asked][:1]
    part = strategy.tell(state, y.select(torch.tensor([0])))
    part = strategy.tell(part, told(early, 60))
    whole = strategy.tell(part, y.select(torch.tensor([1, 2])))
    assert whole.round == state.round + 1
    assert strategy.ask(whole).order.tolist() == sorted(
        remove(torch.tensor(following), torch.tensor(early)).tolist()
    )
    assert_same(strategy, strategy.replay(whole.observations), whole)


def test_abandoned_rows_are_used_up() -> None:
    strategy = make(LSEStrategy, batch_size=3, max_observations=12)
    state = after(strategy, 2)
    asked = strategy.ask(state).order.tolist()
    part = strategy.tell(state, told(asked[:1]))
    part = strategy.tell(part, None, abandoned=asked[1:2])
    assert strategy.ask(part).order.tolist() == asked[2:]
    whole = strategy.tell(part, told(asked[2:]))
    assert whole.round == state.round + 1
    assert len(whole.history) == 8
    assert whole.n_used == 9
    again = strategy.replay(whole.observations, abandoned={2: asked[1:2]})
    assert_same(strategy, again, whole)
    end = run_on(strategy, whole)
    assert end.stop_reason == "budget"
    assert len(end.history) == 11


def run_on(strategy: Strategy, state: State) -> State:
    while not state.is_done:
        state = step(strategy, state)
    return state


@pytest.mark.some(2)
@pytest.mark.parametrize("n_lost", [1, 2, 4])
@pytest.mark.parametrize("learns", [True, False])
def test_rows_of_a_batch_whose_size_the_call_says_are_used_up(
    n_lost: int, learns: bool
) -> None:
    known: dict[str, Any] = {} if learns else {"model": GP.kernel(), "noise_std": 0.3}
    model, limits = GaussianProcess(**known), {"max_repeats": 1, "max_observations": 12}
    strategy = Strategy(Pool(grid()), Above(0.4), model=model, **limits)
    asked, state = list[int](), strategy.init()
    while not state.is_done:
        batch = strategy.ask(state, size=4).order.tolist()
        asked += batch
        lost, rest = batch[:n_lost], batch[n_lost:]
        results = told(rest, state.n_used) if rest else None
        state = strategy.tell(state, results, abandoned=lost)
        assert state.n_used == len(asked)
    assert (len(asked), len(set(asked))) == (12, 12)  # charged, and asked for once
    assert len(state.abandoned) == 3 * n_lost
    assert "abandoned" in state.classification.guarantee
    gone: dict[int, list[int]] = {}
    for label, row in state.abandoned:
        gone.setdefault(label, []).append(row)
    again = strategy.replay(state.observations, abandoned=gone)
    assert_same(strategy, again, state)


def test_a_round_may_be_lost_altogether() -> None:
    strategy = make(LSEStrategy, batch_size=2)
    state = after(strategy)
    asked = strategy.ask(state).order.tolist()
    lost = strategy.tell(state, None, abandoned=asked)
    assert lost.round == state.round + 1
    assert len(lost.history) == len(state.history)
    again = strategy.replay(lost.observations, abandoned={state.round: asked})
    assert_same(strategy, again, lost)


def test_stored_plans_are_used_instead_of_new_ones() -> None:
    strategy = make(RandomStrategy, batch_size=3)
    state = after(strategy, 2)
    plans = {state.round: [7, 7, 30]}
    again = strategy.replay(state.observations, plans=plans)
    assert strategy.ask(again).order.tolist() == [7, 7, 30]
    one = Observations([30], [0.2], yvar=0.09, round=state.round)
    part = strategy.replay(state.observations.append(one), plans=plans)
    assert strategy.ask(part).order.tolist() == [7, 7]


# --- pending rows -------------------------------------------------------------------


@pytest.mark.some(4)
@every
def test_pending_rows_of_the_round_are_not_asked_again(case: StrategyCase) -> None:
    strategy = make(case, batch_size=4)
    state = after(strategy)
    asked = strategy.ask(state).order
    rest = strategy.ask(state, pending=asked[:3])
    assert torch.equal(rest.order, asked[3:])
    assert rest.round == state.round


@pytest.mark.some(4)
@every
def test_a_further_batch_knows_the_rows_that_are_out(case: StrategyCase) -> None:
    strategy = make(case, batch_size=3)
    state = after(strategy)
    asked = strategy.ask(state).order
    ahead = strategy.ask(state, pending=asked)
    assert ahead.round == state.round + 1
    assert len(ahead) == 3
    if case.cls is StraddleRankStrategy:
        assert not set(ahead.order.tolist()) & set(asked.tolist())


@pytest.mark.parametrize("cls", [StraddleStrategy, MaxVarianceStrategy, LSEStrategy])
def test_a_batch_and_a_further_one_are_one_batch_of_twice_the_size(cls: type) -> None:
    strategy, double = make(cls, batch_size=3), make(cls, batch_size=6)
    first = strategy.ask(strategy.init()).order
    second = strategy.ask(strategy.init(), pending=first).order
    both = torch.cat((first, second)).sort().values
    assert torch.equal(double.ask(double.init()).order, both)


@pytest.mark.some(2)
@every
def test_a_further_batch_knows_told_rows_of_the_open_round(case: StrategyCase) -> None:
    strategy = make(case, batch_size=3)
    state = after(strategy)
    asked = strategy.ask(state).order
    part = strategy.tell(state, told(asked[:2].tolist()))
    ahead = strategy.ask(part, pending=asked[2:])
    assert torch.equal(ahead.order, strategy.ask(state, pending=asked).order)


def test_foreign_pending_rows_move_the_plan_away() -> None:
    strategy = make(StraddleStrategy, batch_size=1, epsilon=0.0)
    state = after(strategy)
    best = strategy.ask(state).order.tolist()
    line = torch.cdist(grid()[best], grid())[0]
    near = int(line.argsort()[1])
    moved = strategy.ask(state, pending=[near] * 30)
    assert moved.order.tolist() != best


# --- limits and ends ----------------------------------------------------------------


@pytest.mark.some(4)
@batches
def test_budget_is_kept_exactly(case: StrategyCase, batch_size: int) -> None:
    strategy = make(
        case, batch_size=batch_size, max_observations=7, beta=25.0, epsilon=0.0
    )
    end = run_on(strategy, strategy.init())
    assert end.stop_reason == "budget"
    assert len(end.history) == 7
    with pytest.raises(ValueError, match=r"`state` that is not done.*budget"):
        strategy.ask(end)


@pytest.mark.some(2)
@every
def test_what_came_unasked_takes_of_the_budget(case: StrategyCase) -> None:
    strategy = make(case, batch_size=7, max_observations=9, beta=25.0, epsilon=0.0)
    plan = strategy.ask(strategy.init()).order
    others = [row for row in range(36) if row not in plan.tolist()]
    state = strategy.tell(strategy.init(), told([int(plan[3]), *others[:4]]))
    rest = strategy.ask(state).order
    assert len(rest) == 4  # 5 of 9 are used, though 6 rows of the round are missing
    assert not set(rest.tolist()) - set(plan.tolist())
    given_up = remove(remove(plan, plan[3:4]), rest)
    out = strategy.ask(state, pending=given_up[:1]).order
    assert torch.equal(out, rest[torch.isin(rest, out)])
    assert len(out) == 3  # nor with those that are out besides
    for row in rest[[2, 0]].tolist():  # what is asked for stays as it is
        state = strategy.tell(state, told([row]))
        rest = remove(rest, torch.tensor([row]))
        assert torch.equal(strategy.ask(state).order, rest)
        again = strategy.replay(state.observations)
        assert_same(strategy, again, state)
    end = run_on(strategy, state)
    assert end.stop_reason == "budget"
    assert end.n_used == 9
    assert_same(strategy, strategy.replay(end.observations), end)


@pytest.mark.some(1)
@covering("case, size, budget", PLAYED, [3, 7], [14, 15])
def test_workers_keep_the_budget(case: StrategyCase, size: int, budget: int) -> None:
    # Six are out at a time, and the one that has been out for the shortest time ends
    # first, so that rows of the round after come before those of the round.
    options = {"batch_size": size, "max_observations": budget}
    strategy = make(case, beta=25.0, epsilon=0.0, **options)
    state, out = strategy.init(), list[int]()
    while not state.is_done:
        while len(out) < 6 and state.n_used + len(out) < budget:
            rows = strategy.ask(state, pending=out).order.tolist()
            out += rows[: 6 - len(out)]
        assert out
        state = strategy.tell(state, told([out.pop()], state.n_used))
        assert state.n_used + len(out) <= budget
        if state.n_used == budget - 4:
            assert_same(strategy, strategy.replay(state.observations), state)
    assert (state.n_used, out) == (budget, [])
    assert_same(strategy, strategy.replay(state.observations), state)


@pytest.mark.some(2)
@every
def test_rows_are_repeated_no_more_often_than_allowed(case: StrategyCase) -> None:
    strategy = make(case, batch_size=5, max_repeats=1, beta=25.0, epsilon=0.0)
    end = run_on(strategy, strategy.init())
    # Some end once the rows that are left tell nothing of those that are open.
    assert end.stop_reason in ("rows exhausted", "out of reach")
    assert torch.bincount(end.history.indices).max() == 1


def test_stop_when_the_undecided_rows_are_used_up() -> None:
    strategy = make(LSEStrategy, max_repeats=1, beta=4.0, epsilon=0.0)
    end = run_on(strategy, strategy.init())
    measured = set(end.history.indices.tolist())
    undecided = set(end.classification.undecided.nonzero().view(-1).tolist())
    assert end.stop_reason == "rows exhausted"
    assert undecided <= measured
    assert len(measured) < 36


@pytest.mark.some(4)
@every
def test_pending_rows_count_to_the_limits(case: StrategyCase) -> None:
    strategy = make(case, batch_size=4, max_observations=16, max_repeats=1, beta=25.0)
    state = after(strategy, 2)
    asked = strategy.ask(state).order
    ahead = strategy.ask(state, pending=asked)
    assert len(ahead) == 4
    assert not set(ahead.order.tolist()) & set(asked.tolist())
    with pytest.raises(ValueError, match="Nothing is left to ask while 8 rows"):
        strategy.ask(state, pending=torch.cat((asked, ahead.order)))


def test_decided_pool_ends_the_run() -> None:
    strategy = make(LSEStrategy, epsilon=0.5)
    end = run_on(strategy, strategy.init())
    assert end.stop_reason == "decided"
    assert not end.classification.undecided.any()
    with pytest.raises(ValueError, match=r"it stopped: decided. Read `state.class"):
        strategy.ask(end)
    late = strategy.tell(end, told([4, 5]))
    assert len(late.history) == len(end.history) + 2
    assert_same(strategy, strategy.replay(late.observations), late)


def test_level_out_of_reach_is_decided_without_a_measurement() -> None:
    strategy = make(LSEStrategy, threshold=100.0, beta=None)  # by Theorem 1
    state = strategy.init()
    assert state.stop_reason == "decided"
    assert state.classification.below.all()


@pytest.mark.parametrize("cls", [LSEStrategy, StraddleStrategy, RandomStrategy])
def test_pool_of_one_row_is_decided(cls: type) -> None:
    pool = Pool(torch.tensor([[0.5, 0.5]]))
    strategy = make(cls, pool=pool, batch_size=2)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe([1.0] * len(batch)))
    assert state.stop_reason == "decided"
    assert state.classification.above.all()


def test_duplicate_rows_share_their_information() -> None:
    pool = Pool(torch.cat((grid(), grid())))
    state = run(make(LSEStrategy, pool=pool), 4)[0]
    strategy = make(LSEStrategy, pool=pool)
    for _ in range(6):
        batch = strategy.ask(state)
        assert int(batch.order[0]) < 36
        state = strategy.tell(state, batch.observe([0.7]))
    answer = state.classification
    assert torch.allclose(answer.mean[:36], answer.mean[36:], atol=1e-9)
    assert torch.allclose(answer.lower[:36], answer.lower[36:], atol=1e-6)


def test_most_decided_rows_are_right() -> None:
    strategy = make(LSEStrategy, batch_size=3, beta=None, max_observations=90)
    answer = run_on(strategy, strategy.init()).classification
    above = torch.tensor(truth() > 0.4 - 0.1)
    below = torch.tensor(truth() <= 0.4 + 0.1)
    assert bool((above | ~answer.above).all())
    assert bool((below | ~answer.below).all())
    assert int(answer.undecided.sum()) < 30


# --- what is refused ----------------------------------------------------------------


def test_bad_tells_are_refused() -> None:
    strategy = make(LSEStrategy, batch_size=2)
    state = after(strategy)
    with pytest.raises(
        ValueError, match=r"`indices` .*0 to 35, but got 36. `Pool.near"
    ):
        strategy.tell(state, Observations([36], [1.0]))
    with pytest.raises(ValueError, match=r"`observations` to be .*observe\(y\)"):
        strategy.tell(strategy.init(), torch.ones(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`pending` to be rows of the pool, 0 to 35"):
        strategy.ask(state, pending=[99])
    with pytest.raises(ValueError, match="`abandoned` to hold rows of the open round"):
        strategy.tell(state, None, abandoned=[unasked(strategy, state)])
    with pytest.raises(BotorchTensorDimensionError, match=r"`y` .*has one output"):
        strategy.tell(state, Observations([0, 1], torch.zeros(2, 2)))
    with pytest.raises(ValueError, match="`seed` to be at least 0"):
        strategy.init(-1)


@pytest.mark.parametrize(
    "number", [Fraction(1, 10), Decimal("0.1"), np.float64(0.1), torch.tensor(0.1)]
)
def test_numbers_of_other_libraries_are_numbers(number) -> None:
    for cls in (LSEStrategy, MELKLinearStrategy):
        one = cls(Pool(torch.eye(3)), threshold=0.5, noise_std=number)
        assert type(one.noise_std) is float
        assert one.ask(one.init()).order.numel()


def test_a_whole_number_beyond_int64_is_refused_or_a_float() -> None:
    with pytest.raises(ValueError, match="`max_observations` to be a whole number"):
        LSEStrategy(Pool(torch.eye(3)), threshold=0.5, max_observations=10**30)
    with pytest.raises(ValueError, match="`noise_std` to be finite, but got inf"):
        LSEStrategy(Pool(torch.eye(3)), threshold=0.5, noise_std=10**400)


def test_strategy_or_call_says_how_large_a_batch_is() -> None:
    for cls, goal in (
        (LSEStrategy, {"threshold": 0.5}),
        (GEGEStrategy, {"maximize": (True, True)}),
    ):
        given = {"noise_std": 0.1, **goal}
        free = cls(Pool(torch.eye(3)), **given)
        start = free.init(0)
        assert [len(free.ask(start)), len(free.ask(start, size=2))] == [1, 2]
        fixed = cls(Pool(torch.eye(3)), batch_size=2, **given)
        with pytest.raises(ValueError, match=r"no `size`, because .*`batch_size` = 2"):
            fixed.ask(fixed.init(0), size=3)
        with pytest.raises(ValueError, match="`batch_size` to be at least 1"):
            cls(Pool(torch.eye(3)), batch_size=0, **given)


@pytest.mark.parametrize("name", ["plans", "abandoned", "excluded"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1], r"to be a dictionary from .* or pairs of .*, but got \[1\]. Write `{0: "),
        (7, r"to be a dictionary from .* or pairs of .*, but got 7. Write `{0: "),
        ({"a": [1]}, "to be a whole number, but got 'a'"),
        ({0: ["a"]}, r"\[0\]` to hold whole numbers, but got str 'a'"),
        ({0: [99]}, r"\[0\]` to be rows of the pool, 0 to 35, but got 99"),
    ],
)
def test_rows_by_round_are_checked_when_replayed(name, given, message) -> None:
    with pytest.raises(ValueError, match=f"`.*{name}.*{message}"):
        make(LSEStrategy).replay(Observations([0], [1.0]), **{name: given})


@pytest.mark.parametrize("budget", [1, 287])
def test_a_memory_budget_below_one_row_is_refused_with_the_least(budget: int) -> None:
    for cls in (LSEStrategy, GEGEStrategy):
        message = f"`memory_budget` of at least 288 bytes, one .* but got {budget}"
        goal = {"threshold": 0.5} if cls is LSEStrategy else {"maximize": (True, True)}
        with pytest.raises(ValueError, match=message):
            cls(Pool(torch.rand(36, 2)), memory_budget=budget, **goal)


def unasked(strategy: Strategy, state: State) -> int:
    asked = strategy.ask(state).order.tolist()
    return next(row for row in range(36) if row not in asked)


@pytest.mark.parametrize("partly", [False, True])
def test_mixed_known_and_unknown_noise_is_refused_at_once(partly: bool) -> None:
    strategy = make(LSEStrategy, model=None, noise_std=None, batch_size=2)
    state = strategy.init()
    order = strategy.ask(state).order
    state = strategy.tell(state, Observations(order, [1.0, 2.0], yvar=[0.1, 0.2]))
    rows = strategy.ask(state).order[: 1 if partly else 2]
    with pytest.raises(ValueError, match=r"`yvar` for all .*earlier ones have it"):
        strategy.tell(state, Observations(rows, [0.5] * len(rows)))


# --- multisets ----------------------------------------------------------------------

small = st.lists(st.integers(0, 4), max_size=8)


@given(small, small)
def test_removing_rows_is_multiset_subtraction(rows: list, taken: list) -> None:
    left = remove(_long(rows), _long(taken)).tolist()
    for row in range(5):
        assert left.count(row) == max(0, rows.count(row) - taken.count(row))
    kept = iter(rows)
    assert all(row in kept for row in left)  # a subsequence: the order is kept


@given(small, small)
def test_matching_marks_as_many_rows_as_are_wanted(rows: list, wanted: list) -> None:
    mask = matching(_long(rows), _long(wanted)).tolist()
    hit = [row for row, m in zip(rows, mask, strict=True) if m]
    for row in range(5):
        assert hit.count(row) == min(rows.count(row), wanted.count(row))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8))
def test_canonical_order_forgets_the_order_of_arrival(pairs: list) -> None:
    def canonical(pairs: list) -> list:
        told = Observations([p[0] for p in pairs], [float(p[1]) for p in pairs])
        ordered = told.select(canonical_order(told))
        return list(zip(ordered.indices.tolist(), ordered.y.tolist(), strict=True))

    assert canonical(pairs) == canonical(pairs[::-1]) == sorted(pairs)


def remove(rows: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
    return rows[~matching(rows, taken)]


def _long(values: list[int]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.long)


def test_means_of_replicates_fill_the_points_of_all_replicates() -> None:
    """One mean per row closes the round, counts in full and equals its replicates."""
    pool = Pool(torch.linspace(0, 1, 3, dtype=torch.float64).unsqueeze(-1))
    strategy = MaxVarianceStrategy(
        pool, 0.3, model=RBFKernel().double(), batch_size=7, noise_std=2.0, epsilon=0.1
    )
    batch = strategy.ask(strategy.init())
    assert int(batch.counts.max()) > 1
    y = torch.arange(7, dtype=torch.float64)
    single = strategy.tell(strategy.init(), batch.observe(y))
    means = [float(y[batch.order == row].mean()) for row in batch.indices]
    told = batch.observe(means, yvar=4.0 / batch.counts, means=True)
    state = strategy.tell(strategy.init(), told)
    assert (state.round, state.n_used) == (1, 7)
    assert torch.equal(state.uses(3), single.uses(3))
    torch.testing.assert_close(state.classification.mean, single.classification.mean)
    torch.testing.assert_close(state.classification.sigma, single.classification.sigma)
    again = strategy.replay(state.observations)
    assert torch.equal(again.classification.mean, state.classification.mean)


# --- told twice, asked by another -----------------------------------------------------


@pytest.mark.some(4)
@every
def test_a_sheet_filled_in_further_is_not_counted_twice(case: StrategyCase) -> None:
    strategy = make(case, batch_size=4)
    state = strategy.init()
    batch = strategy.ask(state)
    first = batch.observe([0.1, 0.2, 0.3, 0.4])
    part = strategy.tell(state, first.select(torch.tensor([0, 1])))
    whole = strategy.tell(part, first.select(torch.tensor([2, 3])))
    for before in (part, whole):
        with pytest.raises(ValueError, match=r"new measurements, but got \d told"):
            strategy.tell(before, first)
    assert_same(strategy, strategy.replay(first), whole)
    again = Observations(first.indices, first.y)  # without labels: measured again
    assert len(strategy.tell(whole, again).observations) == 8


@pytest.mark.some(4)
@every
def test_a_state_answers_whoever_asks(case: StrategyCase) -> None:
    strategy = make(case, batch_size=4)
    state = after(strategy)
    assert len(strategy.ask(state)) == 4
    other = dataclasses.replace(strategy, batch_size=2)
    assert len(other.ask(state)) == 2
    assert len(strategy.ask(state)) == 4


@pytest.mark.parametrize("noise_std", [1e3, 1e20])
@pytest.mark.parametrize(
    "build",
    [
        lambda s: MELKPACStrategy(Pool(grid()), 0.5, bound=2 * s, noise_std=s),
        lambda s: RAGEPACStrategy(Pool(grid()), noise_std=100 * s),
        lambda s: GEGEPACStrategy(Pool(grid()), maximize=(True,) * 2, noise_std=s),
    ],
)
def test_rounds_that_nobody_could_list_are_refused(build, noise_std: float) -> None:
    def first() -> None:
        strategy = build(noise_std)
        strategy.ask(strategy.init())

    with pytest.raises(ValueError, match=r"round of at most .* State `y` in units"):
        first()
