import json

import pytest
from ax.api.client import Client
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse.ax import POOL_INDEX, level_set
from botorch_lse.models import marginal
from botorch_lse.strategies import Above, GaussianProcess, Strategy
from tests.processes import in_a_new_process

from . import fitting
from .worlds import (
    client_for,
    complete,
    go_on,
    grid_pool,
    lse,
    node_of,
    same_state,
    sqlite_storage,
    state_of,
)


def continued(path, out):
    r"""What was asked, the reason of the stop and the bounds, of a run from a file."""
    client = Client.load_from_json_file(path)
    asked, reason = go_on(client, node_of(client).strategy, out)
    answer = state_of(client).classification
    return asked, reason, answer.lower.tolist(), answer.mean.tolist()


def cut_run(strategy, path, storage=None):
    r"""Two rounds, a failure, one of the third round's rows given out; then saved."""
    client = client_for(strategy, **({} if storage is None else storage))
    for _ in range(2):
        trials = client.get_next_trials(100)
        for trial, parameters in trials.items():
            complete(client, strategy, trial, parameters)
    client.mark_trial_failed(next(iter(client.get_next_trials(1))))
    out = client.get_next_trials(1)
    if path is not None:
        client.save_to_json_file(str(path))
    return client, {i: p[POOL_INDEX] for i, p in out.items()}


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": None, "batch_size": 6, "max_observations": 36},
        {"model": fitting.plain_gp, "refit": fitting.every_third, "n_initial": 3,
         "max_observations": 24},
    ],
)  # fmt: skip
def test_a_new_process_goes_on_as_the_old_one_would(options, tmp_path):
    strategy = lse(**options)
    path = tmp_path / "cut.json"
    client, out = cut_run(strategy, path)
    told = in_a_new_process(continued, str(path), out)
    asked, reason = go_on(client, strategy, out)
    assert len(asked) > 1
    answer = state_of(client).classification
    assert told == (asked, reason, answer.lower.tolist(), answer.mean.tolist())


@pytest.mark.slow
def test_saving_changes_nothing(tmp_path):
    client, _ = cut_run(lse(), tmp_path / "a.json")
    again = Client.load_from_json_file(str(tmp_path / "a.json"))
    assert same_state(state_of(client), state_of(again))
    assert level_set(client).equals(level_set(again))
    assert node_of(client) == node_of(again)
    again.save_to_json_file(str(tmp_path / "b.json"))
    first = json.loads((tmp_path / "a.json").read_text())["generation_strategy"]
    second = json.loads((tmp_path / "b.json").read_text())["generation_strategy"]
    assert first["nodes"] == second["nodes"]


@pytest.mark.some(0, slow=3)
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("kind", ["json", "sqlite"])
def test_a_kernel_as_constructed_in_float32_answers_the_same(kind, tmp_path):
    strategy = lse(model=ScaleKernel(RBFKernel()))
    if kind == "json":
        client, _ = cut_run(strategy, tmp_path / "run.json")
        again = Client.load_from_json_file(str(tmp_path / "run.json"))
    else:
        storage = sqlite_storage(tmp_path / "runs.db")
        client, _ = cut_run(strategy, None, {"storage_config": storage})
        again = Client.load_from_database("test", storage_config=storage)
    assert len(state_of(client).observations) == 6
    assert level_set(client).equals(level_set(again))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TypeDecorator")
def test_sqlite_keeps_every_arm_and_goes_on(tmp_path):
    storage = sqlite_storage(tmp_path / "runs.db")
    strategy = lse()
    client, out = cut_run(strategy, None, {"storage_config": storage})
    again = Client.load_from_database("test", storage_config=storage)
    for index, trial in client._experiment.trials.items():
        kept = again._experiment.trials[index]
        assert kept.arm is not None, index
        assert kept.arm.parameters == trial.arm.parameters
        assert kept.status == trial.status
    assert same_state(state_of(client), state_of(again))
    asked, reason = go_on(again, strategy, out)
    third = Client.load_from_database("test", storage_config=storage)
    assert all(trial.arm is not None for trial in third._experiment.trials.values())
    assert level_set(third).equals(level_set(again))
    memory, out = cut_run(strategy, tmp_path / "x.json")
    assert go_on(memory, strategy, out) == (asked, reason)


@pytest.mark.slow
def test_a_loaded_run_fits_nothing_that_was_fitted_before(tmp_path, monkeypatch):
    pool = grid_pool()
    model = GaussianProcess(n_initial=4, noise_std=0.1)
    strategy = Strategy(pool, Above(0.3), model=model)
    client, made, given = client_for(strategy), [], marginal.fit_likelihood
    monkeypatch.setattr(
        marginal, "fit_likelihood", lambda mll: (made.append(mll), given(mll))[1]
    )

    def next_of(client, trials):
        for trial, parameters in trials.items():
            value = float(pool.X[parameters[POOL_INDEX]].sum().sin())
            client.complete_trial(trial, raw_data={"y": value})
        return client.get_next_trials(max_trials=1)

    trials = client.get_next_trials(max_trials=1)
    for _ in range(7):
        trials = next_of(client, trials)
    client.save_to_json_file(str(tmp_path / "run.json"))
    before = len(made)
    rows = next_of(client, trials)
    one_round = len(made) - before
    assert 0 < one_round < before
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert next_of(loaded, trials) == rows
    assert len(made) == before + 2 * one_round
