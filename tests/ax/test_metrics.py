r"""Which metrics a strategy learns from, and what is said when they are not there."""

import pytest
from ax.api.client import Client
from ax.exceptions.core import DataRequiredError

from botorch_lse import Pool
from botorch_lse.ax import (
    CostMetric,
    LevelSetNode,
    level_set_generation_strategy,
    pool_parameters,
)

from .worlds import NOISE, grid_pool, lse, node_of, state_of


def client_with(metrics, objective="y", tracking=()):
    strategy, client = lse(), Client()
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="test")
    if objective is not None:
        client.configure_optimization(objective=objective)
    if tracking:
        client.configure_tracking_metrics(tracking)
    client.set_generation_strategy(level_set_generation_strategy(strategy, metrics))
    return client


UNKNOWN = r"each of `metrics` to be .* but it has \['y'\] and not \['q'\]\. .*tracking"


def test_a_metric_that_the_experiment_does_not_have_is_warned_of():
    client = client_with(["q"])
    with pytest.warns(UserWarning, match=UNKNOWN):
        (trial,) = client.get_next_trials(1)
    client.complete_trial(trial, {"y": (0.1, NOISE), "q": (0.3, NOISE)})
    assert client.get_next_trials(1)  # it came with the data
    fresh = client_with(["q"])
    fresh.configure_tracking_metrics(["q"])
    assert len(fresh.get_next_trials(3)) == 3


def test_an_experiment_without_metrics_may_get_them_with_the_data():
    client = client_with(["q"], objective=None)
    experiment = client._experiment
    # A warning would be an error here.
    node_of(client).update_generator_state(experiment, experiment.lookup_data())
    assert state_of(client).round == 0


def test_waiting_names_the_metric_that_is_missing_and_those_that_are_there():
    client = client_with(["q"], tracking=["q"])
    for trial in client.get_next_trials(100):
        client.complete_trial(trial, {"y": (0.3, NOISE)})
    message = (
        r"Trial 0 is completed without data for \['q'\], its data have \['y'\]: .*"
        r"attach_data\(0, \{'q': \(mean, sem\)\}\)`.*`metrics`"
    )
    with pytest.raises(DataRequiredError, match=message):
        client.get_next_trials(1)
    for trial in list(client._experiment.trials):
        client.attach_data(trial, {"q": (0.3, NOISE)})
    assert state_of(client).round == 1


def test_waiting_for_data_that_are_nan_says_that_there_are_none():
    client = client_with(None)
    for trial in client.get_next_trials(100):
        client.complete_trial(trial, {"y": (float("nan"), NOISE)})
    with pytest.raises(DataRequiredError, match=r"for \['y'\], its data have none: "):
        client.get_next_trials(1)


@pytest.mark.parametrize("make", [level_set_generation_strategy, LevelSetNode])
@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("quality", r"got 'quality'\. Write `metrics=\['quality'\]`"),
        (3, "got 3"),
        ([3], r"got \[3\]"),
        (["y", "y"], r"got \['y', 'y'\]"),
    ],
)
def test_metrics_are_a_list_of_names(make, metrics, message):
    with pytest.raises(ValueError, match=rf"`metrics` to be a list of .*{message}"):
        make(lse(), metrics=metrics)


def test_the_metrics_of_costs_are_a_list_too():
    strategy = lse(Pool(grid_pool().X, costs=1 + grid_pool().X[:, 0]))
    with pytest.raises(ValueError, match=r"Write `metrics=\['quality'\]`"):
        CostMetric(strategy, metrics="quality")
