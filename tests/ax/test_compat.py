r"""One contract test for each private name of Ax, and for the bug worked around."""

import contextlib
import json
from importlib.metadata import version

import numpy as np
import pytest
from ax.api.client import Client
from ax.core.arm import Arm
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.exceptions.core import TrialMutationError
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.registry import (
    CORE_DECODER_REGISTRY,
    CORE_ENCODER_REGISTRY,
)

from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetNode,
    compat,
    level_set_generation_strategy,
)

from .worlds import client_for, lse, sqlite_storage


def test_the_tested_version_is_installed():
    assert version("ax-platform") == compat.TESTED_AX


@pytest.mark.parametrize("old", ["0.5.0", "1.3.0", "1.2.9rc1"])
def test_an_old_ax_is_refused(old):
    with pytest.raises(ImportError, match=r"at least 1\.3\.1 .*pip install"):
        compat.check_ax_version(old)


@pytest.mark.parametrize("new", ["1.3.1", "1.3.2", "1.4.0", "2.0.0"])
def test_a_newer_ax_is_tried(new):
    compat.check_ax_version(new)


def test_a_client_shows_its_parts():
    client = client_for(lse())
    assert isinstance(compat.experiment_of(client), Experiment)
    assert compat.generation_strategy_of(client).name == "LSEStrategy"
    assert compat.generation_strategy_of(Client()) is None


def test_a_generator_run_shows_its_node():
    client = client_for(lse())
    client.get_next_trials(1)
    (run,) = client._experiment.trials[0].generator_runs
    assert compat.node_name_of(run) == "LSEStrategy"
    assert compat.node_name_of(GeneratorRun(arms=[])) is None


def test_a_generator_run_shows_its_arms_with_their_weights():
    arms = [Arm({"x": 0.0}, name="0_0"), Arm({"x": 1.0}, name="0_1")]
    run = GeneratorRun(arms=arms, weights=[1.0, 3.0])
    assert compat.arms_of(run) == [*zip(run.arms, run.weights, strict=True)]


@pytest.mark.parametrize("batch", [True, False])
def test_ax_lets_nobody_change_the_arms_of_a_trial_that_has_run(batch):
    # A trial that has run is not looked into again while its runs are the same objects.
    experiment = client_for(lse())._experiment
    arm, other = Arm({POOL_INDEX: 0}), Arm({POOL_INDEX: 1})
    trial = experiment.new_batch_trial() if batch else experiment.new_trial()
    (trial.add_arms_and_weights([arm]) if batch else trial.add_arm(arm))
    trial.mark_running(no_runner_required=True)
    with pytest.raises(TrialMutationError):
        trial.add_arm(other)
    with pytest.raises(TrialMutationError):
        trial.add_generator_run(GeneratorRun(arms=[other]))


def test_numbers_are_read_as_ax_stores_them():
    rng = np.random.default_rng(0)
    for scale in (1e-9, 1e-3, 1.0, 1e5, 1e13):
        values = scale * rng.normal(size=500)
        once = compat.as_stored(values)
        assert np.array_equal(compat.as_stored(once), once)
        assert np.abs(once - values).max() <= 5.1e-11 + 1e-15 * scale * 5
    assert np.isnan(compat.as_stored([np.nan, 1.0])).tolist() == [True, False]


def test_the_node_overrides_what_ax_calls():
    names = ("_gen", "new_trial_limit", "update_generator_state", "_fitted_adapter")
    for name in names:
        assert hasattr(ExternalGenerationNode, name)
        assert name in vars(LevelSetNode)


def test_fit_times_are_floats_on_every_run():
    r"""Ax 1.3.1 sets the int 0 after the first run, and SQL storage then loses arms."""
    client = client_for(lse())
    client.get_next_trials(3)
    for trial in client._experiment.trials.values():
        assert isinstance(trial.generator_runs[0].fit_time, float)


def test_a_snapshot_is_the_clients_own_with_the_experiment_once():
    client = client_for(lse())
    for trial in list(client.get_next_trials(100))[:2]:
        client.complete_trial(trial, {"y": (0.1 + trial, float("nan"))})
    whole, known = client._to_json_snapshot(), {}
    for _ in range(2):  # the second time from what is known
        ours = compat.snapshot_of(client, known)
        assert json.dumps(ours["experiment"]) == json.dumps(whole["experiment"])
        # Whether a model was made is written by Ax and read by nobody.
        theirs = {**whole["generation_strategy"], "experiment": None}
        theirs["had_initialized_model"] = False
        assert json.dumps(ours["generation_strategy"]) == json.dumps(theirs)
    assert len(known) == 2
    client.attach_data(0, {"y": (7.5, 0.1)})
    again = json.dumps(compat.snapshot_of(client, known)["experiment"])
    assert again == json.dumps(client._to_json_snapshot()["experiment"])
    assert "7.5" in again


def test_a_trial_is_completed_as_the_client_does_it():
    outcome = {"y": (0.25, 0.1), "heat": 3.0, "y2": (1.0, None)}
    written = []
    for complete in (Client.complete_trial, compat.complete_trial):
        client = client_for(lse())
        for trial in list(client.get_next_trials(100))[:2]:
            complete(client, trial, outcome)
        trials = client._to_json_snapshot()["experiment"]["trials"]
        data = client._experiment.lookup_data().full_df
        written.append((len(trials), sorted(client._experiment.metrics), data))
        statuses = [t.status.name for t in client._experiment.trials.values()]
        assert statuses == ["COMPLETED", "COMPLETED", "RUNNING"]
    assert written[0][:2] == written[1][:2]
    assert written[0][2].equals(written[1][2])


def test_private_names_of_storage_are_there():
    experiment = client_for(lse())._experiment
    assert compat.properties_of(experiment) is experiment._properties
    assert experiment.db_id is None
    assert not compat.has_own_registries(client_for(lse()))
    assert not compat.lies_in_database(client_for(lse()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TypeDecorator")
def test_a_transaction_is_whole_or_nothing(tmp_path):
    storage = sqlite_storage(tmp_path / "runs.db")
    client = client_for(lse(), storage_config=storage)
    first, second, _ = client.get_next_trials(100)
    with compat.one_transaction():
        client.complete_trial(first, {"y": (0.1, 0.1)})
    with contextlib.suppress(OSError), compat.one_transaction():
        client.complete_trial(second, {"y": (0.2, 0.1)})
        raise OSError
    again = Client.load_from_database("test", storage_config=storage)
    statuses = [t.status.name for t in again._experiment.trials.values()]
    assert statuses == ["COMPLETED", "RUNNING", "RUNNING"]
    assert again._experiment.lookup_data().df["mean"].tolist() == [0.1]
    client.complete_trial(second)  # the session works as before
    again = Client.load_from_database("test", storage_config=storage)
    assert again._experiment.trials[second].status.is_completed


@pytest.mark.filterwarnings("ignore:TypeDecorator")
def test_a_database_shows_its_file_and_its_trials(tmp_path):
    storage = sqlite_storage(tmp_path / "runs.db")
    assert compat.database_file() == (tmp_path / "runs.db").resolve()
    assert compat.database_rows("test") is None
    client = client_for(lse(), storage_config=storage)
    first, *_ = client.get_next_trials(2)
    client._experiment.trials[first].mark_completed()
    row, rows = compat.database_rows("test")
    assert row == client._experiment.db_id
    trials = [(t.db_id, i) for i, t in client._experiment.trials.items()]
    assert [(row, index) for row, (index, _) in rows.items()] == trials
    assert [status.name for _, status in rows.values()] == ["RUNNING"] * 2
    compat.save_trials(client, [first])
    _, rows = compat.database_rows("test")
    assert [status.name for _, status in rows.values()] == ["COMPLETED", "RUNNING"]


def test_the_registries_decode_what_they_encode():
    assert CORE_ENCODER_REGISTRY[LevelSetNode] is LevelSetNode.to_dict
    assert CORE_DECODER_REGISTRY["LevelSetNode"] is LevelSetNode
    (node,) = level_set_generation_strategy(lse(), ["y"], seed=4)._nodes
    again = object_from_json(object_to_json(node))
    assert again == node
    assert (again.seed, again.metrics, again.name) == (4, ("y",), "LSEStrategy")
    assert again.should_deduplicate is False
    assert again.fallback_specs == {}


def test_the_cells_of_data_are_those_of_the_table_of_ax():
    client = client_for(lse())
    for trial in client.get_next_trials(100):
        client.attach_data(trial, {"y": (0.5, 0.1)}, progression=2)
        client.attach_data(trial, {"y": (0.25 + trial, 0.1)})
    data = client._experiment.lookup_data()
    columns = list(zip(*compat.cells_of(data), strict=True))
    names = ["trial_index", "arm_name", "metric_name", "mean", "sem"]
    for cells, name in zip(columns, names, strict=False):
        assert list(cells) == data.full_df[name].tolist()
    assert np.array_equal(columns[5], data.full_df["step"], equal_nan=True)
    assert {*columns[0]} == {0, 1, 2}
