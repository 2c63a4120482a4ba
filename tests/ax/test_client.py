import pytest
import torch
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.service.ax_client import AxClient

from botorch_lse.ax import (
    POOL_INDEX,
    goal_from_constraints,
    level_set,
    level_set_content,
    level_set_generation_strategy,
    run_experiment,
)
from botorch_lse.ax.compat import as_stored
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    ImplicitLSEStrategy,
    MaxVarianceStrategy,
    RandomStrategy,
    StraddleStrategy,
    Strategy,
)

from .worlds import (
    NOISE,
    client_for,
    complete,
    fresh_state,
    grid_pool,
    kernel,
    lse,
    measure,
    rows_of,
    same_state,
    state_of,
    truth,
)


def drive(client, strategy, rounds=100):
    r"""Everything in order, until the strategy stops."""
    asked = []
    for _ in range(rounds):
        try:
            trials = client.get_next_trials(max_trials=100)
        except GenerationStrategyCompleted as stop:
            return asked, str(stop)
        asked.append(rows_of(trials))
        for trial, parameters in trials.items():
            complete(client, strategy, trial, parameters)
    return asked, None


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "make",
    [
        lse,
        lambda: StraddleStrategy(
            grid_pool(), 0.5, model=kernel(), batch_size=3, noise_std=NOISE,
            max_observations=12,
        ),
        lambda: MaxVarianceStrategy(
            grid_pool(), 0.5, model=kernel(), batch_size=4, noise_std=NOISE, beta=4.0,
            max_observations=14,
        ),
        lambda: RandomStrategy(
            grid_pool(), 0.5, model=kernel(), batch_size=3, noise_std=NOISE, beta=4.0,
            max_observations=9,
        ),
        lambda: ImplicitLSEStrategy(
            grid_pool(), omega=0.6, model=kernel(), batch_size=3, noise_std=NOISE,
            beta=4.0, epsilon=0.1, max_observations=12,
        ),
        lambda: lse(model=None, batch_size=6, max_observations=24),
    ],
)  # fmt: skip
def test_a_client_asks_what_the_strategy_asks(make):
    strategy = make()
    client = client_for(strategy)
    asked, reason = drive(client, strategy)
    state, expected = strategy.init(seed=3), []
    while not state.is_done:
        batch = strategy.ask(state)
        expected.append(batch.order.tolist())
        y = as_stored([measure(strategy.pool, row) for row in batch.order])
        state = strategy.tell(state, batch.observe(y, NOISE**2))
    assert asked == expected
    assert same_state(state_of(client), state)
    n = int(state.classification.undecided.sum())
    why = "" if state.stop_reason == "decided" else f" ({state.stop_reason})"
    assert reason == f"{36 - n} of 36 rows decided; {state.n_used} evaluations{why}"


@pytest.mark.slow
def test_failures_abandoned_and_foreign_trials_out_of_order():
    strategy = lse()
    client = client_for(strategy)
    attached = client.attach_trial({POOL_INDEX: 0})
    complete(client, strategy, attached, {POOL_INDEX: 0})

    first = client.get_next_trials(2)
    assert len(first) == 2
    late = client.attach_trial({POOL_INDEX: 35})  # measured while round 0 is open
    failed, done = first
    client.mark_trial_failed(failed)
    rest = client.get_next_trials(100)
    assert len(rest) == 2  # the third row and the one that failed
    assert first[failed][POOL_INDEX] in rows_of(rest)
    with pytest.raises(DataRequiredError, match="Round 0 is open: 3 of its 3 rows"):
        client.get_next_trials(1)
    gone, other = rest
    client.mark_trial_abandoned(gone)
    complete(client, strategy, other, rest[other])
    complete(client, strategy, late, {POOL_INDEX: 35})
    complete(client, strategy, done, first[done])

    second = client.get_next_trials(100)
    assert len(second) == 3
    state = state_of(client)
    # round 0: the attached row; 1: two of three; 2: the row measured meanwhile
    assert state.history.round.tolist() == [0, 1, 1, 2]
    assert state.history.indices.tolist()[-1] == 35
    assert state.abandoned == ((1, rest[gone][POOL_INDEX]),)
    assert state.n_used == 5
    assert same_state(state, fresh_state(client))
    for trial, parameters in reversed(second.items()):
        complete(client, strategy, trial, parameters)
    asked, reason = drive(client, strategy)
    assert "36 of 36 rows decided" in reason
    table = level_set(client)
    above = truth(strategy.pool).numpy() > 0.5
    decided = table["side"] != "undecided"
    assert decided.all()
    assert ((table["side"] == "above") == above).mean() > 0.9
    assert list(table.columns[:2]) == ["east", "north"]
    assert table["n_observations"].sum() == 5 + 3 * (1 + len(asked)) - 1


def test_what_is_measured_elsewhere_takes_of_the_budget():
    strategy = lse(batch_size=8, max_observations=8, epsilon=0.0)
    client = client_for(strategy)
    first = client.get_next_trials(2)
    asked = rows_of(first)
    plan = strategy.planned(strategy.init(3)).tolist()
    elsewhere = [row for row in range(36) if row not in plan][:3]
    trials = [client.attach_trial({POOL_INDEX: row}) for row in elsewhere]
    complete(client, strategy, trials[0], {POOL_INDEX: elsewhere[0]})
    rest = client.get_next_trials(100)  # 2 + 3 of 8 are measured or out
    assert len(rest) == 3
    assert not {*asked, *rows_of(rest)} - {*plan}
    with pytest.raises(DataRequiredError, match="Round 0 is open: 5 of its 5 rows"):
        client.get_next_trials(1)
    client.mark_trial_failed(trials[1])  # which gives a place back
    for trial, parameters in {**first, **rest}.items():
        complete(client, strategy, trial, parameters)
    assert same_state(state_of(client), fresh_state(client))
    last = client.get_next_trials(100)
    assert len(last) == 1
    for trial, parameters in last.items():
        complete(client, strategy, trial, parameters)
    complete(client, strategy, trials[2], {POOL_INDEX: elsewhere[2]})
    with pytest.raises(GenerationStrategyCompleted, match="8 evaluations"):
        client.get_next_trials(1)
    assert state_of(client).n_used == 8
    assert same_state(state_of(client), fresh_state(client))


def test_what_is_measured_elsewhere_takes_of_the_repeats():
    strategy = lse(batch_size=4, max_repeats=1, epsilon=0.0)
    client = client_for(strategy)
    plan = strategy.planned(strategy.init(3)).tolist()
    first = client.get_next_trials(1)
    row = next(row for row in plan if row not in rows_of(first))
    trial = client.attach_trial({POOL_INDEX: row})
    complete(client, strategy, trial, {POOL_INDEX: row})
    rest = client.get_next_trials(100)
    assert sorted([*rows_of(first), row, *rows_of(rest)]) == plan
    for trial, parameters in {**first, **rest}.items():
        complete(client, strategy, trial, parameters)
    assert state_of(client).round == 2  # without the row, and the row
    assert same_state(state_of(client), fresh_state(client))
    assert row not in rows_of(client.get_next_trials(4))


@pytest.mark.slow
def test_the_order_of_results_leaves_no_trace():
    def run(order):
        strategy = lse(model=None, batch_size=6)
        client = client_for(strategy)
        attached = client.attach_trial({POOL_INDEX: 7})
        trials = client.get_next_trials(100)
        for trial in order({**trials, attached: {POOL_INDEX: 7}}.items()):
            complete(client, strategy, *trial)
        return client, rows_of(client.get_next_trials(100))

    forward, asked = run(list)
    backward, asked_back = run(lambda items: list(items)[::-1])
    assert asked == asked_back
    assert same_state(state_of(forward), state_of(backward))


def test_a_late_result_from_elsewhere_enters_where_its_trial_stands():
    strategy = lse()
    client = client_for(strategy)
    early = client.attach_trial({POOL_INDEX: 5})
    plan = client.get_next_trials(100)
    for trial, parameters in plan.items():
        complete(client, strategy, trial, parameters)
    second = client.get_next_trials(100)
    complete(client, strategy, early, {POOL_INDEX: 5})
    state = state_of(client)
    assert state.history.indices.tolist() == [5, *rows_of(plan)]
    assert same_state(state, fresh_state(client))
    assert state.plan.tolist() == rows_of(second)  # what was asked stays asked


def test_a_running_trial_of_a_user_is_pending():
    strategy = lse(beta=9.0)
    empty = client_for(strategy)
    best = rows_of(empty.get_next_trials(1))[0]
    client = client_for(strategy)
    client.attach_trial({POOL_INDEX: best})
    state = strategy.init(seed=3)
    expected = strategy.ask(state, pending=[best]).order.tolist()
    assert rows_of(client.get_next_trials(100)) == expected


def test_the_budget_that_is_pending_is_waited_for():
    strategy = lse(batch_size=1, max_observations=1)
    client = client_for(strategy)
    row = rows_of(client_for(strategy).get_next_trials(1))[0]
    client.attach_trial({POOL_INDEX: row})
    with pytest.raises(DataRequiredError, match="Nothing is left to ask"):
        client.get_next_trials(1)


def test_two_rounds_are_never_open_at_once():
    client = client_for(lse())
    for _ in range(3):
        assert len(client.get_next_trials(1)) == 1
    for n in (1, 2):
        with pytest.raises(DataRequiredError, match=r"trials 0, 1, 2"):
            client.get_next_trials(n)
    assert len(client._experiment.trials) == 3


def test_a_completed_trial_without_data_is_named():
    client = client_for(lse(batch_size=1))
    (trial,) = client.get_next_trials(1)
    client.complete_trial(trial)
    with pytest.raises(DataRequiredError, match=r"attach_data\(0, "):
        client.get_next_trials(1)
    client.attach_data(trial, {"y": (0.3, NOISE)})
    assert len(client.get_next_trials(1)) == 1


@pytest.mark.filterwarnings("ignore")  # that the name is not the experiment's, too
def test_data_under_another_name_lead_to_the_goal_that_names_its_output():
    def going(name):
        model = GaussianProcess(kernel(), noise_std=NOISE)
        strategy = Strategy(
            grid_pool(), Above(0.5, output=name), model=model, batch_size=1
        )
        client = client_for(strategy)
        (trial,) = client.get_next_trials(1)
        client.complete_trial(trial, {"y": (0.3, NOISE)})
        return client.get_next_trials(1)

    said = r"as `output` of the goal if it names"
    with (
        pytest.raises(DataRequiredError, match=said),
        pytest.warns(match="Correct the"),
    ):
        going("z")
    assert len(going("y")) == 1


def test_a_value_that_is_attached_again_replaces_the_first():
    strategy = lse(batch_size=1)
    client = client_for(strategy)
    (trial,) = client.get_next_trials(1)
    client.complete_trial(trial, {"y": (0.3, NOISE)})
    before = state_of(client)
    client.attach_data(trial, {"y": (2.5, NOISE)})
    after = state_of(client)
    assert before.history.y.tolist() == as_stored([0.3]).tolist()
    assert after.history.y.tolist() == as_stored([2.5]).tolist()
    assert same_state(after, fresh_state(client))


def test_early_stopped_trials_use_their_place_up_or_count():
    strategy = lse()
    client = client_for(strategy)
    trials = client.get_next_trials(100)
    with_data, without, other = trials
    client.attach_data(with_data, {"y": (0.1, NOISE)})
    client.mark_trial_early_stopped(with_data)
    client._experiment.trials[without].mark_early_stopped(unsafe=True)
    complete(client, strategy, other, trials[other])
    state = state_of(client)
    assert state.round == 1
    assert len(state.history) == 2
    assert state.abandoned == ((0, trials[without][POOL_INDEX]),)


@pytest.mark.slow
def test_the_objectives_sign_is_inert():
    up, down = client_for(lse(), "y"), client_for(lse(), "-y")
    for _ in range(3):
        trials = up.get_next_trials(100)
        assert trials == down.get_next_trials(100)
        for client in (up, down):
            for trial, parameters in trials.items():
                complete(client, lse(), trial, parameters)
    assert level_set(up).equals(level_set(down))


def test_fixed_parameters_are_refused():
    client = client_for(lse())
    with pytest.raises(UnsupportedError, match="no fixed parameters"):
        client.get_next_trials(1, fixed_parameters={POOL_INDEX: 3})


@pytest.mark.parametrize("objective", ["a, z", "a + z"])
def test_an_objective_of_several_metrics_is_refused(objective):
    client = client_for(lse(), objective)
    said = r"one metric.*\['a', 'z'\].*`metrics=\[\"a\"\]`\. A sum needs a metric"
    with pytest.raises(ValueError, match=said):
        client.get_next_trials(1)
    # Both remedies.
    client.configure_optimization(objective="a")
    assert client.get_next_trials(1)
    client = client_for(lse(), objective)
    client.set_generation_strategy(level_set_generation_strategy(lse(), metrics=["a"]))
    assert client.get_next_trials(1)


def test_a_row_outside_the_pool_is_refused_with_the_nearest():
    client = client_for(lse())
    with pytest.warns(RuntimeWarning, match="out-of-design"):
        trial = client.attach_trial({POOL_INDEX: 99})
    client.complete_trial(trial, {"y": (1.0, NOISE)})
    with pytest.raises(ValueError, match="0 to 35, but got 99; the nearest is 35"):
        client.get_next_trials(1)
    client._experiment.trials[trial].mark_failed(unsafe=True)
    assert len(client.get_next_trials(1)) == 1


def test_another_pool_under_the_same_name_is_refused():
    strategy = lse()
    client = client_for(strategy)
    client.get_next_trials(3)
    other = client_for(lse(grid_pool(7)))
    other.set_experiment(client._experiment)
    with pytest.raises(ValueError, match="planned on another one"):
        other.get_next_trials(1)


def test_max_repeats_and_replicates():
    pool = grid_pool(2)
    strategy = lse(pool, batch_size=6, max_repeats=2, beta=100.0, epsilon=0.0)
    client = client_for(strategy)
    trials = client.get_next_trials(100)
    assert len(trials) == 6  # replicates are trials of their own
    assert len(set(rows_of(trials))) < 6
    for repeat, (trial, parameters) in enumerate(trials.items()):
        complete(client, strategy, trial, parameters, repeat)
    assert len(client.get_next_trials(100)) == 2
    counts = torch.bincount(torch.tensor(rows_of(trials)), minlength=4)
    assert int(counts.max()) == 2


@pytest.mark.filterwarnings("ignore:The `AxClient` class is deprecated")
def test_another_client_is_told_from_the_one_that_is_taken():
    other = AxClient(verbose_logging=False)
    for door in (level_set, level_set_content, goal_from_constraints):
        with pytest.raises(ValueError, match=r"Client.*`client\.experiment`"):
            door(other)
    with pytest.raises(ValueError, match=r"`client` to be a `Client` .*`client = Cl"):
        run_experiment(other, lambda parameters: 0.0)
