r"""Batches whose size the call says, and results that are learnt from as they come."""

import heapq
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from ax.api.client import Client
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    level_set_generation_strategy,
    run_experiment,
)
from botorch_lse.data.observations import Observations
from botorch_lse.papers import LSELiteralBatchStrategy
from botorch_lse.papers.mason2022 import MELKPACStrategy
from botorch_lse.strategies import MELKLinearStrategy, loop

from .worlds import (
    NOISE,
    client_for,
    complete,
    fresh_state,
    grid_pool,
    lse,
    measure,
    rows_of,
    same_state,
    sqlite_storage,
    state_of,
)


def asynchronous(strategy, seed=3, **options):
    client = client_for(strategy, **options)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, seed=seed, asynchronous=True)
    )
    return client


def reloaded(client, tmp_path):
    path = str(tmp_path / "run.json")
    client.save_to_json_file(path)
    return Client.load_from_json_file(path)


def expected(strategy, state, out, n):
    r"""Rows planned one by one: each is the best beside all that are out."""
    rows, out = [], list(out)
    for _ in range(n):
        found = int(strategy.ask(state, out, size=1).order[0])
        rows.append(found)
        out.append(found)
    return rows


# --- the size of a batch --------------------------------------------------------------


@pytest.mark.slow
def test_a_call_gets_as_many_trials_as_it_asks_for(tmp_path):
    strategy = lse(batch_size=None, epsilon=0.0)
    client = client_for(strategy)
    for n in (8, 2, 5):
        wanted = expected(strategy, state_of(client), [], n)
        trials = client.get_next_trials(n)
        assert [p[POOL_INDEX] for p in trials.values()] == wanted
        with pytest.raises(DataRequiredError, match=f"{n} of its {n} rows are out"):
            client.get_next_trials(1)
        (failed, _), *others = trials.items()
        client.mark_trial_failed(failed)
        for trial, parameters in others:
            complete(client, strategy, trial, parameters)
        client = reloaded(client, tmp_path)
        again = client.get_next_trials(8)  # the place that failed, and no more
        assert rows_of(again) == wanted[:1]
        for trial, parameters in again.items():
            complete(client, strategy, trial, parameters)
        assert same_state(state_of(client), fresh_state(client))
    assert state_of(client).round == 3


def test_a_strategy_that_fixes_it_gets_its_own():
    client = client_for(lse(batch_size=3))
    assert len(client.get_next_trials(8)) == 3


def test_a_budget_limits_what_is_given():
    strategy = lse(batch_size=None, max_observations=5)
    assert len(client_for(strategy).get_next_trials(8)) == 5
    once = lse(batch_size=None, max_repeats=1)
    assert len(client_for(once).get_next_trials(99)) == 36


def test_a_million_trials_at_once_are_no_more_than_can_be_planned(monkeypatch):
    strategy = lse(batch_size=None)
    assert strategy.room(strategy.init()) == loop.MOST_AT_ONCE == 2048
    monkeypatch.setattr(loop, "MOST_AT_ONCE", 50)
    assert len(client_for(strategy).get_next_trials(10**6)) == 50


def test_asking_by_hand_takes_a_size():
    strategy = lse(batch_size=None, epsilon=0.0)
    state = strategy.init()
    batch = strategy.ask(state, size=6)
    assert len(batch) == 6
    assert len(strategy.ask(state)) == 1
    y = torch.tensor([measure(strategy.pool, row) for row in batch.order.tolist()])
    some = Observations(batch.order[:4], y[:4])
    looks = strategy.tell(state, some).belief.n_intervals - 1
    assert looks == 4  # nobody knows what asked for them
    part = strategy.tell(state, some.at_round(batch.round))
    assert part.round == 1  # what is told together is a round
    assert len(strategy.ask(part, pending=batch.order[4:], size=3)) == 3
    assert strategy.room(part) > 100
    with pytest.raises(ValueError, match=r"no `size`.*`batch_size` = 3"):
        lse(batch_size=3).ask(lse().init(), size=2)
    with pytest.raises(ValueError, match="`size`"):
        strategy.ask(state, size=0)


# --- asynchronous ---------------------------------------------------------------------


@pytest.mark.slow
def test_each_row_is_planned_beside_those_that_are_out():
    strategy = lse(batch_size=3, epsilon=0.0)
    one = lse(batch_size=None, epsilon=0.0)
    client = asynchronous(strategy)
    out = {}
    for step in range(12):
        rows = list(out.values())
        trials = client.get_next_trials(4 if step == 0 else 1)
        n = len(trials)
        wanted = expected(one, one.replay(state_of(client).observations, 3), rows, n)
        assert [p[POOL_INDEX] for p in trials.values()] == wanted
        out |= {i: p[POOL_INDEX] for i, p in trials.items()}
        trial = sorted(out)[step % len(out)]  # not in the order of asking
        complete(client, strategy, trial, {POOL_INDEX: out.pop(trial)})
        state = state_of(client)
        assert len(state.history) == step + 1  # learnt from at once
        assert same_state(state, fresh_state(client))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("kind", ["json", pytest.param("sql", marks=pytest.mark.slow)])
def test_a_run_that_is_loaded_goes_on_with_the_same_rows(kind, tmp_path):
    strategy, dice = lse(epsilon=0.0), random.Random(4)
    storage = sqlite_storage(tmp_path / "lab.db") if kind == "sql" else None
    client = asynchronous(strategy, storage_config=storage)
    out, order = {}, []
    for step in range(14):
        trials = client.get_next_trials(dice.randint(1, 3))
        out |= {i: p[POOL_INDEX] for i, p in trials.items()}
        for _ in range(dice.randint(0, min(3, len(out)))):
            trial = dice.choice(sorted(out))
            row = out.pop(trial)
            if dice.random() < 0.15:
                client.mark_trial_failed(trial)
            elif dice.random() < 0.1:
                client.mark_trial_abandoned(trial)
            else:
                order.append(trial)
                complete(client, strategy, trial, {POOL_INDEX: row}, step)
        before = state_of(client)
        if kind == "json":
            again = reloaded(client, tmp_path)
        else:
            again = Client.load_from_database("test", storage_config=storage)
        assert same_state(state_of(again), before)
        client = again  # every step in a new process, so to say
    assert order != sorted(order)  # results did not come as they were asked for
    live = asynchronous(strategy)
    assert rows_of(live.get_next_trials(1)) == [
        client._experiment.arms_by_name["0_0"].parameters[POOL_INDEX]
    ]


@pytest.mark.slow
def test_the_order_of_results_is_part_of_what_is_kept(tmp_path):
    strategy = lse(epsilon=0.0)
    states = []
    for order in ([0, 1, 2], [2, 1, 0]):
        client = asynchronous(strategy)
        trials = client.get_next_trials(3)
        for trial in order:
            complete(client, strategy, trial, trials[trial])
            client.get_next_trials(1)
        state = state_of(client)
        rows = [trials[i][POOL_INDEX] for i in order]
        assert state.history.indices.tolist() == rows
        assert same_state(state_of(reloaded(client, tmp_path)), state)
        states.append(state)
    assert len(states[0].history) == len(states[1].history)


def simulated(client, strategy, workers, n_trials, seed=0):
    r"""The share of their time in which workers are busy, in simulated time.

    One in ten measurements takes twenty times as long as the others.
    """
    dice, clock, busy, started = random.Random(seed), 0.0, 0.0, 0
    out = []  # (when it ends, trial, row)
    while started < n_trials:
        try:
            trials = client.get_next_trials(workers - len(out))
        except (DataRequiredError, GenerationStrategyCompleted):
            trials = {}
        for trial, parameters in trials.items():
            takes = dice.uniform(0.5, 1.5) * (20 if dice.random() < 0.1 else 1)
            heapq.heappush(out, (clock + takes, trial, parameters[POOL_INDEX]))
            started += 1
        until, trial, row = heapq.heappop(out)
        busy += (len(out) + 1) * (until - clock)
        clock = until
        complete(client, strategy, trial, {POOL_INDEX: row}, trial)
    return busy / (workers * clock)


@pytest.mark.slow
def test_workers_are_busy_though_some_measurements_take_long():
    rounds = lse(batch_size=8, epsilon=0.0, beta=25.0)
    waiting = simulated(client_for(rounds), rounds, 8, 64)
    at_once = simulated(asynchronous(rounds), rounds, 8, 64)
    assert at_once >= 0.95
    assert waiting < 0.35  # rounds wait for their last row


@pytest.mark.slow
def test_a_run_on_threads_learns_from_each_result():
    strategy = lse(max_observations=24, epsilon=0.0)
    client = asynchronous(strategy)

    def evaluate(parameters):
        return measure(strategy.pool, parameters[POOL_INDEX]), NOISE

    with ThreadPoolExecutor(3) as threads:
        reason = run_experiment(client, evaluate, executor=threads, max_pending=3)
    assert reason.endswith("24 evaluations (budget)")
    state = state_of(client)
    assert len(state.history) == 24
    assert same_state(state, fresh_state(client))


def test_linear_features_learn_from_each_result():
    pool = grid_pool(4)
    pool = Pool(pool.X, features=torch.eye(16))
    strategy = MELKLinearStrategy(pool, threshold=0.5, noise_std=NOISE, batch_size=4)
    client = asynchronous(strategy)
    out = client.get_next_trials(5)
    for trial in sorted(out, reverse=True)[:3]:
        complete(client, strategy, trial, out[trial])
        client.get_next_trials(1)
    state = state_of(client)
    assert len(state.history) == 3
    assert same_state(state, fresh_state(client))


def test_rows_are_planned_by_the_widths_of_the_strategy():
    # For batches of one, one exact value would decide all others.
    kernel = RBFKernel().double()
    kernel.lengthscale = 10.0
    pool = Pool([[0.0], [0.1], [0.2], [0.3]])
    strategy = LSELiteralBatchStrategy(
        pool, 0.4, model=kernel, noise_std=0.0, batch_size=3
    )
    client = asynchronous(strategy)
    trials = client.get_next_trials(5)
    assert len(trials) == strategy.room(strategy.init()) == 3
    trials |= client.get_next_trials(5)
    assert rows_of(trials) == [0, 1, 2, 3]
    with pytest.raises(DataRequiredError, match="while 4 rows are `pending`"):
        client.get_next_trials(1)
    for trial in trials:
        client.complete_trial(trial, {"y": 0.0})
    with pytest.raises(GenerationStrategyCompleted, match="4 evaluations"):
        client.get_next_trials(1)


def test_algorithms_that_judge_whole_rounds_are_refused():
    pool = Pool([[0.0, 1.0], [1.0, 0.0]])
    pac = MELKPACStrategy(pool, threshold=0.4, noise_std=0.3, bound=2.0)
    with pytest.raises(UnsupportedError, match="MELKPACStrategy judges whole rounds"):
        level_set_generation_strategy(pac, asynchronous=True)
    with pytest.raises(ValueError, match="`asynchronous`"):
        level_set_generation_strategy(lse(), asynchronous="yes")
