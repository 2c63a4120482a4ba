r"""Every practical strategy, through each way into Ax, kept in each storage."""

import functools
import itertools
import tempfile
from pathlib import Path

import pytest
import torch

from botorch_lse.ax import POOL_INDEX, CostMetric, LevelSetNode
from botorch_lse.ax.node import level_set_node
from botorch_lse.strategies import MELKStrategy
from tests.covering import covering

from .matrix import RUNS, SHIP, STORES, STRATEGIES, WAYS, trials_of
from .worlds import (
    client_for,
    complete,
    go_on,
    kernel,
    lse,
    node_of,
    rows_of,
    same_state,
    state_of,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:TypeDecorator"),
    pytest.mark.filterwarnings("ignore:Encountered exception:RuntimeWarning"),
]

# Each strategy once and each way with each store run by default. The cheapest places
# come first: they take the strategies that are left over.
PLACES = list(itertools.product(WAYS, STORES))


@functools.cache
def in_memory(name, way):
    r"""Trials, reason and state of the run that is never stored."""
    with tempfile.TemporaryDirectory() as folder:
        experiment, gs, reason = RUNS[way](name, "memory", Path(folder))
    return trials_of(experiment), reason, level_set_node(gs).state(experiment)


def fetched_costs(node, experiment):
    if "cost" not in experiment.metrics:
        experiment.add_metric(CostMetric(node.stored, node_name=node.name))
    table = experiment.fetch_data().df
    return table["mean"][table["metric_name"] == "cost"]


def check(name, way, store, folder):
    experiment, gs, reason = RUNS[way](name, store, folder)
    trials, state = trials_of(experiment), level_set_node(gs).state(experiment)
    # It ran to its stop, and every accident happened.
    assert state.is_done
    assert "of 16 rows decided" in reason
    statuses = [status for status, _ in trials.values()]
    assert "FAILED" in statuses
    assert state.abandoned or way == "orchestrator"
    assert ("ABANDONED" in statuses) == (way != "experiment")
    # Nothing measured is lost, nothing else is counted.
    measured = [
        (row, tuple(y for metric, y in found if metric != "cost"))
        for status, arms in trials.values()
        if status == "COMPLETED"
        for row, _, found in arms
        if found
    ]
    y = state.history.y.view(len(state.history), -1).tolist()
    told = zip(state.history.indices.tolist(), y, strict=True)
    assert sorted(measured) == sorted(
        (row, tuple(round(value, 9) for value in values)) for row, values in told
    )
    # A node that remembers nothing comes to the same state.
    node = level_set_node(gs)
    new = LevelSetNode(node.strategy, node.metrics, seed=node.seed, name=node.name)
    assert same_state(new.state(experiment), state)
    # What is recorded as costs is what the strategy spent.
    if name == SHIP:
        assert sum(fetched_costs(node, experiment)) == pytest.approx(
            node.strategy.spent(state)
        )
    # Storage leaves no trace.
    expected, why, in_one_piece = in_memory(name, way)
    assert trials == expected
    assert reason == why
    assert same_state(state, in_one_piece)


@pytest.mark.some(1)
@covering("name, place", STRATEGIES, PLACES, in_slow=1)
def test_strategies_through_each_way_in_each_store(name, place, tmp_path):
    check(name, *place, tmp_path)


# --- MELK in the middle of a round ------------------------------------------------


def melk(**options):
    settings = {"threshold": 0.5, "noise_std": 0.1, "batch_size": 6, "beta": 9.0}
    return MELKStrategy(lse().pool, model=kernel(), **settings, **options)


@pytest.mark.slow
def test_the_rest_of_a_melk_round_survives_a_reload(tmp_path):
    from ax.api.client import Client

    strategy = melk(max_observations=18)
    client, whole = client_for(strategy), client_for(strategy)
    for c in (client, whole):
        for trial, parameters in c.get_next_trials(100).items():
            complete(c, strategy, trial, parameters)
    plan = rows_of(whole.get_next_trials(100))
    first = client.get_next_trials(2)
    done = min(first)
    complete(client, strategy, done, first[done])
    client.save_to_json_file(str(tmp_path / "cut.json"))
    again = Client.load_from_json_file(str(tmp_path / "cut.json"))
    rest = again.get_next_trials(100)
    assert sorted(rows_of(first) + rows_of(rest)) == plan
    out = {i: p[POOL_INDEX] for i, p in {**first, **rest}.items() if i != done}
    asked, reason = go_on(again, strategy, out)
    expected = client_for(strategy)
    assert (asked[0], reason)[1] == go_on(expected, strategy, {})[1]
    assert same_state(state_of(again), state_of(expected))


def test_a_failed_place_of_a_melk_round_is_asked_again_and_an_abandoned_one_is_not():
    strategy = melk(max_observations=12)
    client = client_for(strategy)
    first = client.get_next_trials(100)
    failed, abandoned, *others = first
    client.mark_trial_failed(failed)
    client.mark_trial_abandoned(abandoned)
    refilled = client.get_next_trials(100)
    assert rows_of(refilled) == [first[failed][POOL_INDEX]]
    for trial, parameters in [*refilled.items(), *((i, first[i]) for i in others)]:
        complete(client, strategy, trial, parameters)
    state = state_of(client)
    assert state.round == 1
    assert state.abandoned == ((0, first[abandoned][POOL_INDEX]),)
    assert state.n_used == 6
    assert len(state.history) == 5
    assert torch.equal(
        state.history.indices,
        torch.tensor(sorted({**first}[i][POOL_INDEX] for i in [failed, *others])),
    )
    assert len(client.get_next_trials(100)) == 6
    assert node_of(client).state(client._experiment).n_used == 6
