r"""Rows that fail again and again, and rows that are excluded by hand."""

from collections import Counter

import pytest
from ax.api.client import Client
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

from .worlds import (
    NOISE,
    client_for,
    complete,
    fresh_state,
    lse,
    measure,
    node_of,
    rows_of,
    same_state,
    sqlite_storage,
    state_of,
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


def test_a_row_of_the_open_round_is_taken_out_of_it():
    strategy = lse()
    client = client_for(strategy)
    ((trial, parameters),) = client.get_next_trials(1).items()
    rest = state_of(client).plan.tolist()
    rest.remove(parameters[POOL_INDEX])
    exclude_rows(client, rest[:1])
    exclude_rows(client, rest[:1])  # no more than once
    assert rows_of(client.get_next_trials(100)) == rest[1:]
    for i, row in ((trial, parameters[POOL_INDEX]), (trial + 1, rest[1])):
        complete(client, strategy, i, {POOL_INDEX: row})
    state = state_of(client)
    assert state.round == 1
    assert len(state.history) == 2
    assert same_state(state, fresh_state(client))
    assert rest[0] not in rows_of(client.get_next_trials(100))


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
