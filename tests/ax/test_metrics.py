r"""Which metrics a strategy learns from, and what is said when they are not there."""

import math

import pandas as pd
import pytest
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.core.data import Data
from ax.core.metric import Metric, MetricFetchE
from ax.core.runner import Runner
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError
from ax.orchestration.orchestrator import Orchestrator, OrchestratorOptions
from ax.utils.common.result import Err, Ok
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    CostMetric,
    LevelSetNode,
    level_set_generation_strategy,
    pool_parameters,
    record_costs,
    trial_cost,
)
from botorch_lse.strategies import GEGEStrategy, LSEStrategy

from .worlds import (
    NOISE,
    client_for,
    grid_pool,
    kernel,
    lse,
    measure,
    node_of,
    same_state,
    state_of,
)


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


BAD = [math.nan, math.inf, -math.inf]


@pytest.mark.some(1)
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("sem", [NOISE, None])
def test_a_value_that_is_no_number_is_a_measurement_that_failed(bad, sem, tmp_path):
    client = client_with(None)
    one, two, *rest = client.get_next_trials(100).items()
    client.complete_trial(one[0], {"y": (bad, sem)})
    for trial, _ in (two, *rest):
        client.complete_trial(trial, {"y": (0.3, NOISE)})
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    for own in (client, loaded):
        (again,) = own.get_next_trials(100).items()  # all that the round still needs
        assert again[1] == one[1]
        own.complete_trial(again[0], {"y": (0.2, NOISE)})
        assert state_of(own).round == 1
    assert same_state(state_of(client), state_of(loaded))
    # The value may still be corrected.
    client.attach_data(one[0], {"y": (0.25, NOISE)})
    assert len(state_of(client).observations) == 2 + len(rest) + 1


def test_a_row_whose_values_are_no_numbers_is_asked_for_three_times():
    client = client_with(None)
    first = client.get_next_trials(100)
    (bad, row), *_ = first.items()
    for trial in [*first][1:]:
        client.complete_trial(trial, {"y": (0.3, NOISE)})
    for value in BAD:
        client.complete_trial(bad, {"y": (value, NOISE)})
        ((bad, asked),) = client.get_next_trials(100).items()
        assert (asked == row) == (value != BAD[-1])
    client.complete_trial(bad, {"y": (0.1, NOISE)})
    state = state_of(client)
    assert state.excluded_rows.tolist() == [row["pool_index"]]
    assert state.round == 1


def test_one_metric_of_several_may_fail():
    kernels = tuple(kernel() for _ in range(2))
    known = {"model": kernels, "noise_std": NOISE, "beta": 4.0, "batch_size": 1}
    strategy = GEGEStrategy(grid_pool(), maximize=(True, True), **known)
    client = client_for(strategy, objective="y, z")
    ((trial, row),) = client.get_next_trials(1).items()
    client.complete_trial(trial, {"y": (0.3, NOISE), "z": (math.nan, NOISE)})
    assert [*client.get_next_trials(1).values()] == [row]


def test_what_failed_elsewhere_counts_for_nothing():
    x = RangeParameterConfig(name="x", bounds=(0, 1), parameter_type="float")
    pool = Pool([[0.0], [0.5], [1.0]], names=["x"])
    client = Client()
    client.configure_experiment(parameters=[x], name="test")
    client.configure_optimization(objective="y")
    strategy = LSEStrategy(pool, 0.5, model=RBFKernel(), noise_std=NOISE, beta=4.0)
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    for value in (0.3, 0.5):  # off the pool, and a row of it
        trial = client.attach_trial({"x": value})
        client.complete_trial(trial, {"y": math.nan})
    assert len(state_of(client).observations) == 0
    assert node_of(client).ledger(client._experiment).points == ()


def test_what_failed_costs_nothing():
    base = grid_pool()
    pool = Pool(base.X, names=base.names, costs=1 + base.X[:, 0])
    client = client_for(lse(pool, batch_size=2))
    one, two = client.get_next_trials(2)
    client.complete_trial(one, {"y": (math.nan, NOISE)})
    client.complete_trial(two, {"y": (0.3, NOISE)})
    record_costs(client)
    table = client._experiment.lookup_data().df
    assert table["trial_index"][table["metric_name"] == "cost"].tolist() == [two]
    assert trial_cost(client, one) == 0.0


def test_nobody_is_told_to_mark_a_completed_trial():
    client = client_with(["q"], tracking=["q"])
    done, running, *_ = client.get_next_trials(2)
    client.complete_trial(done, {"y": (0.3, NOISE)})
    client.complete_trial(client.attach_trial({"pool_index": 0}), {"q": (0.1, NOISE)})
    rest = client.get_next_trials(100)
    with pytest.raises(DataRequiredError, match=r"Complete those that run, or mark"):
        client.get_next_trials(1)
    for trial in (running, *rest):
        client.mark_trial_abandoned(trial)
    with pytest.raises(DataRequiredError) as raised:
        client.get_next_trials(1)
    assert "mark" not in str(raised.value)
    assert "attach_data(0, {'q': (mean, sem)})`, with `math.nan`" in str(raised.value)
    client.attach_data(done, {"q": (math.nan, NOISE)})
    assert len(client.get_next_trials(100)) == 1


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


def test_what_a_trial_was_stopped_short_of_does_not_count(tmp_path):
    client = client_for(lse(batch_size=2))
    one, two = client.get_next_trials(2)
    client.attach_data(one, {"y": (2.14, NOISE)}, progression=10)
    client.complete_trial(two, {"y": (0.1, NOISE)}, progression=20)  # its last step
    client.mark_trial_early_stopped(one)
    row = client._experiment.trials[two].arm.parameters["pool_index"]
    assert state_of(client).observations.indices.tolist() == [row]
    assert len(state_of(client).abandoned) == 1  # its place is used up
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert same_state(state_of(loaded), state_of(client))
    # A value without a step is the trial's own.
    client.attach_data(one, {"y": (0.14, NOISE)})
    assert state_of(client).observations.y.sum() == pytest.approx(0.24)
    assert state_of(client).abandoned == ()


# --- fetched by Ax ----------------------------------------------------------------


class Unsure(Metric):
    r"""A bench whose fetches fail: once for some trials, for ever, or with nan."""

    def __init__(self, name, how):
        super().__init__(name)
        self.how, self.failed = how, set()

    def fetch_trial_data(self, trial, **kwargs):
        fails = trial.index == 5 or (self.how == "once" and trial.index % 6 == 5)
        if self.how in ("once", "always") and fails and trial.index not in self.failed:
            self.failed |= {trial.index} if self.how == "once" else set()
            return Err(MetricFetchE("the database is down", None))
        y = measure(grid_pool(), trial.arm.parameters["pool_index"])
        row = {
            "trial_index": trial.index,
            "arm_name": trial.arm.name,
            "metric_name": "y",
            "metric_signature": "y",
            "mean": math.nan if self.how == "nan" and trial.index in (3, 8) else y,
            "sem": NOISE,
        }
        return Ok(Data(df=pd.DataFrame([row])))


class AtOnce(Runner):
    r"""Trials end at once."""

    def run(self, trial):
        return {}

    def __init__(self, fails=frozenset()):
        super().__init__()
        self.fails = fails

    def poll_trial_status(self, trials):
        known = {trial.index for trial in trials}
        lost = known & self.fails
        return {TrialStatus.COMPLETED: known - lost, TrialStatus.FAILED: lost}


@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore")  # Ax's, of the fetches that fail
@pytest.mark.parametrize("how", ["once", "always", "nan", "runner"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_orchestrator_goes_on_after_a_fetch_that_failed(how, asynchronous):
    strategy = lse(batch_size=4, max_observations=16)
    client = client_for(strategy)
    client.configure_metrics([Unsure("y", how)])
    experiment = client._experiment
    experiment.runner = AtOnce({2, 5, 6} if how == "runner" else set())
    gs = level_set_generation_strategy(strategy, asynchronous=asynchronous)
    options = OrchestratorOptions(
        max_pending_trials=4,
        init_seconds_between_polls=0,
        min_seconds_before_poll=0.0,
        tolerated_trial_failure_rate=0.9,
    )
    Orchestrator(experiment, gs, options).run_n_trials(max_trials=24)
    (node,) = gs.nodes_by_name.values()
    state = node.state(experiment)
    assert state.stop_reason == "budget"
    completed = experiment.trial_indices_by_status[TrialStatus.COMPLETED]
    nan = 2 if how == "nan" else 0
    assert len(state.observations) == len(completed) - nan  # nothing is lost
