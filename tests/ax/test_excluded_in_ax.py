r"""Rows that fail again and again, and rows that are excluded by hand."""

import random
from collections import Counter

import pytest
from ax.api.client import Client
from ax.exceptions.core import DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from botorch.exceptions.errors import UnsupportedError

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    exclude_rows,
    level_set_generation_strategy,
    run_experiment,
)
from botorch_lse.papers.mason2022 import MELKPACStrategy
from botorch_lse.strategies import Above, GaussianProcess, Strategy

from .worlds import (
    NOISE,
    client_for,
    complete,
    fresh_state,
    grid_pool,
    kernel,
    lse,
    measure,
    node_of,
    rows_of,
    same_state,
    sqlite_storage,
    state_of,
    truth,
)

NEVER = {0, 7, 21}


def tried(client):
    return Counter(
        arm.parameters[POOL_INDEX]
        for trial in client._experiment.trials.values()
        for arm in trial.arms
    )


def go(client, strategy, never, n_trials):
    r"""Run with rows that always fail, all others measured at once."""
    while len(client._experiment.trials) < n_trials:
        try:
            trials = client.get_next_trials(100)
        except GenerationStrategyCompleted:
            return
        for trial, parameters in trials.items():
            if parameters[POOL_INDEX] in never:
                client.mark_trial_failed(trial)
            else:
                complete(client, strategy, trial, parameters, trial)


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("limit", [1, 3])
def test_rows_that_always_fail_take_no_more_trials_than_the_limit(limit):
    strategy = lse(epsilon=0.0)
    client = client_for(strategy)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, seed=3, max_failures=limit)
    )
    first = {p[POOL_INDEX] for p in client.get_next_trials(100).values()}
    client = client_for(strategy)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, seed=3, max_failures=limit)
    )
    never = NEVER | first  # among them a whole round
    go(client, strategy, never, 60)
    counts = tried(client)
    # Replicates of one round are out together: up to two more may fail with the last.
    assert limit <= max(counts[row] for row in never) <= limit + 2
    assert all(counts[row] >= limit for row in first)
    state = state_of(client)
    assert {*state.excluded_rows.tolist()} == {r for r in never if counts[r] >= limit}
    assert same_state(state, fresh_state(client))
    assert "Rows were excluded" in state.classification.guarantee
    assert state.n_used == len(state.observations)  # failures are not charged


def test_without_a_limit_they_are_asked_for_ever():
    strategy = lse()
    client = client_for(strategy)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, seed=3, max_failures=None)
    )
    row = next(iter(client.get_next_trials(100).values()))[POOL_INDEX]
    client.mark_trial_failed(0)
    go(client, strategy, {row}, 12)
    assert tried(client)[row] > 5


def test_abandoned_trials_of_a_row_count_as_failures():
    strategy = lse(batch_size=1)
    client = client_for(strategy)
    asked = Counter()
    for _ in range(12):
        ((trial, parameters),) = client.get_next_trials(1).items()
        asked[parameters[POOL_INDEX]] += 1
        client.mark_trial_abandoned(trial)
    assert max(asked.values()) == 3
    assert same_state(state_of(client), fresh_state(client))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Trial .* is abandoned")
def test_a_run_goes_on_without_them():
    strategy = lse(max_observations=15, epsilon=0.0)
    client = client_for(strategy)

    def evaluate(parameters):
        if parameters[POOL_INDEX] in NEVER:
            raise RuntimeError("the probe does not reach there")
        return measure(strategy.pool, parameters[POOL_INDEX]), NOISE

    exclude_rows(client, [35])
    reason = run_experiment(client, evaluate, on_error="fail", progress=False)
    assert reason.endswith("(budget)")
    assert tried(client)[35] == 0
    assert all(n <= 3 for row, n in tried(client).items() if row in NEVER)


@pytest.mark.some(0, slow=2)
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("kind", ["json", "sql"])
def test_what_is_excluded_by_hand_survives_storage(kind, tmp_path):
    strategy = lse(epsilon=0.0)
    storage = sqlite_storage(tmp_path / "lab.db") if kind == "sql" else None
    client = client_for(strategy, storage_config=storage)
    planned = client.get_next_trials(100)
    for trial, parameters in planned.items():
        complete(client, strategy, trial, parameters)
    gone = sorted(state_of(client).strategy.ask(state_of(client)).order.tolist())[:1]
    exclude_rows(client, gone)
    if kind == "json":
        client.save_to_json_file(str(tmp_path / "run.json"))
        again = Client.load_from_json_file(str(tmp_path / "run.json"))
    else:
        again = Client.load_from_database("test", storage_config=storage)
    batch = rows_of(again.get_next_trials(100))
    assert len(batch) == 3  # another row took the place
    assert gone[0] not in batch
    assert batch == rows_of(client.get_next_trials(100)) or kind == "sql"
    assert same_state(state_of(again), fresh_state(again))


def reloaded(client, tmp_path):
    path = str(tmp_path / "run.json")
    client.save_to_json_file(path)
    return Client.load_from_json_file(path)


def test_another_row_takes_the_place_in_the_open_round(tmp_path):
    strategy = lse()
    client = client_for(strategy)
    (first,) = client.get_next_trials(1).values()
    start = strategy.init(3)
    plan = strategy.ask(start).order.tolist()
    gone = next(row for row in plan if row != first[POOL_INDEX])
    exclude_rows(client, [gone])
    exclude_rows(client, [gone])  # no more than once
    wanted = strategy.planned(strategy.exclude(start, [gone])).tolist()
    assert state_of(client).plan.tolist() == wanted
    client = reloaded(client, tmp_path)
    rest = client.get_next_trials(1)
    client = reloaded(client, tmp_path)
    rest |= client.get_next_trials(100)
    assert sorted([first[POOL_INDEX], *rows_of(rest)]) == wanted
    for i, parameters in ({0: first} | rest).items():
        complete(client, strategy, i, parameters)
    state = state_of(client)
    assert state.round == 1
    assert len(state.history) == 3  # as many as the round has
    assert same_state(state, fresh_state(client))
    again = strategy.replay(state.observations, 3, excluded=state.excluded)
    assert same_state(state, again)
    assert gone not in rows_of(client.get_next_trials(100))


@pytest.mark.some(1, slow=1)
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("kind", ["json", pytest.param("sql", marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [4, None])
def test_a_round_is_filled_up_after_failures_whenever_it_is_loaded(
    kind, size, tmp_path
):
    r"""Failures, exclusions by hand and reloads in any order, at every step."""
    strategy = lse(batch_size=size, epsilon=0.0, beta=25.0)
    storage = sqlite_storage(tmp_path / "lab.db") if kind == "sql" else None
    client = client_for(strategy, storage_config=storage)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, seed=3, max_failures=2)
    )
    dice, out, n_rounds, asked = random.Random(5), {}, 0, []
    for step in range(40):
        try:
            n = 4 if size is None else dice.randint(1, 4)
            new = client.get_next_trials(n)
            out |= {i: p[POOL_INDEX] for i, p in new.items()}
            asked += new
        except DataRequiredError:
            pass
        trial = dice.choice(sorted(out))
        row = out.pop(trial)
        if dice.random() < 0.4:
            client.mark_trial_failed(trial)
        else:
            complete(client, strategy, trial, {POOL_INDEX: row}, step)
        if dice.random() < 0.1 and state_of(client).plan is not None:
            # One that may be out, or measured, or not asked for yet.
            exclude_rows(client, [dice.choice(state_of(client).plan.tolist())])
        before = state_of(client)
        if dice.random() > 0.3:
            pass
        elif kind == "json":
            client = reloaded(client, tmp_path)
        else:
            client = Client.load_from_database("test", storage_config=storage)
        assert same_state(state_of(client), before)
        assert state_of(client).plan is None or len(state_of(client).plan) == 4
        if state_of(client).round > n_rounds:
            n_rounds = state_of(client).round
            assert int((state_of(client).history.round == n_rounds - 1).sum()) == 4
    assert n_rounds > 3
    assert len(state_of(client).excluded_rows) > 2


def test_a_place_that_nobody_can_take_is_given_up():
    strategy = lse(max_repeats=1)
    client = client_for(strategy)
    (first,) = client.get_next_trials(1).values()
    row = first[POOL_INDEX]
    exclude_rows(client, [r for r in range(36) if r != row])
    complete(client, strategy, 0, first)
    state = state_of(client)
    assert (state.round, len(state.history)) == (1, 1)
    assert same_state(state, fresh_state(client))
    # The only row that may be measured is decided.
    assert state.stop_reason == "decided"
    said = r"1 of 36 rows decided \(35 excluded\); 1 evaluation$"
    with pytest.raises(GenerationStrategyCompleted, match=said):
        client.get_next_trials(1)


def test_what_is_measured_elsewhere_takes_no_place():
    strategy = lse(max_repeats=1)
    client = client_for(strategy)
    (first,) = client.get_next_trials(1).values()
    plan = state_of(client).plan.tolist()
    gone = next(r for r in plan if r != first[POOL_INDEX])
    (new,) = {
        *strategy.planned(strategy.exclude(strategy.init(3), [gone])).tolist()
    } - {*plan}
    trial = client.attach_trial({POOL_INDEX: new})
    exclude_rows(client, [gone])
    rows = rows_of(client.get_next_trials(100))
    assert len(rows) == 2
    assert new not in rows
    complete(client, strategy, trial, {POOL_INDEX: new})
    assert same_state(state_of(client), fresh_state(client))


@pytest.mark.some(1)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_was_excluded_by_hand_can_be_asked_for_again(asynchronous, tmp_path):
    strategy = lse(max_repeats=1, epsilon=0.0)
    client = client_for(strategy)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, seed=3, asynchronous=asynchronous)
    )
    exclude_rows(client, [row for row in range(36) if row not in (1, 22, 30, 5)])
    play(client, strategy)
    assert tried(client).keys() == {1, 22, 30, 5}
    exclude_rows(client, [7, 22], undo=True)
    client = reloaded(client, tmp_path)
    assert len(state_of(client).excluded_rows) == 31
    play(client, strategy)
    assert same_state(state_of(client), fresh_state(client))
    assert tried(client) == Counter([1, 22, 30, 5, 7])


def play(client, strategy):
    r"""Measure whatever is asked for, to the end."""
    while not state_of(client).is_done:
        for trial, parameters in client.get_next_trials(1).items():
            complete(client, strategy, trial, parameters)


def with_audit():
    return Strategy(
        grid_pool(),
        Above(0.5, epsilon=0.5),
        model=GaussianProcess(kernel(), noise_std=1e-3),
        beta=4.0,
        audit=(0.3, 0.2),
    )


def audited():
    r"""An asynchronous run that has come to the rows of its audit."""
    strategy = with_audit()
    client = client_for(strategy)
    client.set_generation_strategy(
        level_set_generation_strategy(
            strategy, seed=3, asynchronous=True, max_failures=1
        )
    )
    while state_of(client).run.notes[0].claim is None:
        for trial, parameters in client.get_next_trials(1).items():
            tell(client, strategy, trial, parameters)
    return strategy, client


def tell(client, strategy, trial, parameters):
    value = float(truth(strategy.pool)[parameters[POOL_INDEX]])
    client.complete_trial(trial, {"y": (value, 1e-3)})


@pytest.mark.some(0, slow=1)
@pytest.mark.parametrize("how", ["failed", "by hand", "while out"])
def test_an_audit_goes_on_without_a_row_that_it_drew(how, tmp_path):
    r"""It counts as wrong, and the next draw is measured in its place."""
    strategy, client = audited()
    claim = state_of(client).run.notes[0].claim
    drawn = claim.drawn.tolist()
    out = client.get_next_trials(3)
    (lost, row), *_ = ((i, p[POOL_INDEX]) for i, p in out.items())
    assert row == drawn[0]
    if how == "failed":
        client.mark_trial_failed(lost)  # the limit is one
    elif how == "by hand":
        client.mark_trial_abandoned(lost)
        exclude_rows(client, [row])
    else:
        exclude_rows(client, [row])
    more = client.get_next_trials(1)  # planned before any of the results is in
    assert rows_of(more) == [drawn[3]]
    client = reloaded(client, tmp_path)
    for trial, parameters in (out | more).items():
        if trial != lost:
            tell(client, strategy, trial, parameters)
    state = state_of(client)
    claim = state.run.notes[0].claim
    assert claim.drawn.tolist() == drawn  # the draws were made before any value
    assert claim.judged.tolist() == [False, True, True, True]
    while not state_of(client).is_done:
        for trial, parameters in client.get_next_trials(2).items():
            tell(client, strategy, trial, parameters)
        client = reloaded(client, tmp_path)
        assert same_state(state_of(client), fresh_state(client))
    state = state_of(client)
    assert state.stop_reason in ("audited", "not confirmed")
    assert row in state.excluded_rows.tolist()
    lost_in = {number: [row] for number, row in state.abandoned}
    again = strategy.replay(
        state.observations, 3, excluded=state.excluded, abandoned=lost_in
    )
    assert same_state(state, again)


@pytest.mark.slow
def test_what_was_excluded_when_a_row_was_planned_is_part_of_what_is_kept(tmp_path):
    r"""A row that fails late does not change what was known before it did."""
    strategy, client = audited()
    out = client.get_next_trials(2)
    (late, first), (soon, second) = out.items()
    tell(client, strategy, soon, second)
    client.get_next_trials(1)
    n = len(state_of(client).history)
    client.mark_trial_failed(late)
    assert state_of(client).round == n  # it waits for the next result
    assert state_of(client).run.notes[0].claim.judged.tolist() == []
    more = client.get_next_trials(1)
    for trial, parameters in more.items():
        tell(client, strategy, trial, parameters)
    state = state_of(client)
    assert state.excluded == ((n, (first[POOL_INDEX],)),)
    assert state.run.notes[0].claim.judged.tolist()[:2] == [False, True]
    assert same_state(state_of(reloaded(client, tmp_path)), state)


def test_when_nothing_is_left_the_run_is_over():
    strategy = lse()
    client = client_for(strategy)
    exclude_rows(client, list(range(36)))
    with pytest.raises(GenerationStrategyCompleted, match="rows exhausted"):
        client.get_next_trials(1)


def test_what_cannot_be_excluded_is_refused():
    client = client_for(lse())
    with pytest.raises(ValueError, match="`rows`"):
        exclude_rows(client, [36])
    with pytest.raises(ValueError, match="`max_failures`"):
        level_set_generation_strategy(lse(), max_failures=0)
    pool = Pool([[0.0, 1.0], [1.0, 0.0]])
    pac = MELKPACStrategy(pool, threshold=0.4, noise_std=0.3, bound=2.0)
    client = client_for(pac)
    with pytest.raises(UnsupportedError, match="needs every row"):
        exclude_rows(client, [0])
    assert node_of(client).ledger(client._experiment).excluded == ()


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_more_at_once_than_an_audit_has_left_are_those_that_there_are(
    asynchronous: bool,
) -> None:
    strategy = with_audit()
    client = client_for(strategy)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, seed=3, asynchronous=asynchronous)
    )
    sizes = []
    while not state_of(client).is_done:
        trials = client.get_next_trials(20)
        sizes.append(len(trials))
        for trial, parameters in trials.items():
            tell(client, strategy, trial, parameters)
    assert 1 <= min(sizes) < 20  # of the audit less was left
    assert state_of(client).stop_reason == "audited"
