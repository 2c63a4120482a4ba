import pytest
import torch

from botorch_lse.ax import POOL_INDEX, LevelSetNode
from botorch_lse.strategies import LSEStrategy
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from tests.covering import more_in_full

from .worlds import (
    client_for,
    complete,
    fresh_state,
    lse,
    node_of,
    same_state,
    state_of,
)


@more_in_full("n_steps", 35, 70)
def test_every_state_along_a_ragged_run_equals_a_fresh_replay(n_steps):
    strategy = lse(model=None, batch_size=4, refit=2)
    client = client_for(strategy)
    generator = torch.Generator().manual_seed(0)
    running = {}
    for step in range(n_steps):
        dice = float(torch.rand(1, generator=generator))
        if dice < 0.15:
            running[client.attach_trial({POOL_INDEX: (7 * step) % 36})] = {
                POOL_INDEX: (7 * step) % 36
            }
        elif dice < 0.25 and running:
            client.mark_trial_failed(running.popitem()[0])
        elif dice < 0.3 and running:
            client.mark_trial_abandoned(running.popitem()[0])
        elif running and dice < 0.8:
            trial = list(running)[int(dice * 100) % len(running)]
            complete(client, strategy, trial, running.pop(trial), step)
        elif not state_of(client).is_done and not running:
            running.update(client.get_next_trials(int(dice * 10) % 4 + 1))
        assert same_state(state_of(client), fresh_state(client))
    assert state_of(client).round > n_steps // 17


@pytest.mark.slow
def test_the_fold_equals_the_strategys_own_replay():
    strategy = lse()
    client = client_for(strategy)
    attached = client.attach_trial({POOL_INDEX: 4})
    complete(client, strategy, attached, {POOL_INDEX: 4})
    for _ in range(3):
        trials = client.get_next_trials(100)
        client.mark_trial_abandoned(trials.popitem()[0])
        for trial, parameters in trials.items():
            complete(client, strategy, trial, parameters)
    node, experiment = node_of(client), client._experiment
    rounds = node.ledger(experiment).complete
    state = node.state(experiment)
    replayed = strategy.replay(
        state.observations,
        seed=node.seed,
        plans={i: list(round_.plan) for i, round_ in enumerate(rounds)},
        abandoned={i: list(round_.lost) for i, round_ in enumerate(rounds)},
    )
    assert same_state(replayed, state)


@pytest.mark.slow
def test_a_new_round_costs_one_tell(monkeypatch):
    told = []
    tell = LSEStrategy.tell

    def counted(self, state, observations, **options):
        told.append(1)
        return tell(self, state, observations, **options)

    monkeypatch.setattr(LSEStrategy, "tell", counted)
    strategy = lse(epsilon=0.0, batch_size=2)
    client = client_for(strategy)
    for n_rounds in range(12):
        assert len(told) <= n_rounds + 1
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters, n_rounds)
    told.clear()
    fresh_state(client)
    assert len(told) == 12


def test_a_plan_is_drawn_once_per_round(monkeypatch):
    planned = []
    plan = GaussianAlgorithm.plan

    def counted(self, belief, request):
        planned.append(1)
        return plan(self, belief, request)

    monkeypatch.setattr(GaussianAlgorithm, "plan", counted)
    strategy = lse()
    client = client_for(strategy)
    for _ in range(3):  # one by one, while a foreign row is pending
        client.attach_trial({POOL_INDEX: 17})
        client.get_next_trials(1)
    assert len(planned) <= 2


@pytest.mark.slow
def test_states_kept_are_few():
    strategy = lse(epsilon=0.0, batch_size=1)
    client = client_for(strategy)
    for repeat in range(10):
        for trial, parameters in client.get_next_trials(1).items():
            complete(client, strategy, trial, parameters, repeat)
    assert len(node_of(client)._states) <= 3


def test_rows_measured_elsewhere_are_one_round_between_two():
    strategy = lse()
    client = client_for(strategy)
    for row in (3, 1, 2):
        trial = client.attach_trial({POOL_INDEX: row})
        complete(client, strategy, trial, {POOL_INDEX: row})
    (round_,) = node_of(client).ledger(client._experiment).complete
    assert round_.plan == (1, 2, 3)
    # One round, and nobody knows how often it was looked at while it came.
    assert len(state_of(client).observations.round.unique()) == 1
    assert state_of(client).belief.n_intervals == 1 + 3


def test_a_round_that_was_left_open_is_closed_by_the_next():
    strategy = lse()
    client = client_for(strategy)
    trials = client.get_next_trials(100)
    for trial, parameters in trials.items():
        complete(client, strategy, trial, parameters)
    second = client.get_next_trials(100)
    client._experiment.trials[1].mark_failed(unsafe=True)  # somebody's change of mind
    state = state_of(client)
    assert state.round == 1
    assert state.abandoned == ((0, trials[1][POOL_INDEX]),)
    assert sorted(state.plan.tolist()) == sorted(p[POOL_INDEX] for p in second.values())


def test_a_node_asks_by_name():
    assert LevelSetNode(lse()).name == "LSEStrategy"
    assert LevelSetNode(lse(), name="depth").name == "depth"
