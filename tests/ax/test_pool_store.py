import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import torch
from ax.api.client import Client
from ax.storage.json_store.load import load_experiment
from ax.storage.json_store.save import save_experiment

from botorch_lse import Pool
from botorch_lse.ax import level_set, level_set_generation_strategy, storage
from botorch_lse.ax.storage import POOLS, encode_pool, kept_pool, read_pool, write_pool

from .worlds import client_for, complete, grid_pool, lse, sqlite_storage, state_of


def used(pool=None, rounds=1, **options):
    strategy = lse(pool)
    client = client_for(strategy, **options)
    for _ in range(rounds):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
    return client


def test_the_experiments_properties_hold_the_pool_once():
    client = used(rounds=3)
    pool = grid_pool()
    assert list(client._experiment._properties[POOLS]) == [pool.hash]
    assert read_pool(kept_pool(client._experiment, pool.hash)).hash == pool.hash
    assert POOLS not in json.dumps(
        [t.generator_runs[0].gen_metadata for t in client._experiment.trials.values()]
    )
    for trial in client._experiment.trials.values():
        run = trial.generator_runs[0]
        assert run.gen_metadata["level_set"]["pool"] == pool.hash


def test_an_experiment_alone_keeps_the_pool(tmp_path):
    experiment = used()._experiment
    save_experiment(experiment, str(tmp_path / "experiment.json"))
    again = load_experiment(str(tmp_path / "experiment.json"))
    pool = read_pool(kept_pool(again, grid_pool().hash))
    assert torch.equal(pool.X, grid_pool().X)
    assert pool.names == ("east", "north")


def test_the_generation_strategy_holds_no_rows_once_the_experiment_does(tmp_path):
    client = client_for(lse())
    fresh = client._to_json_snapshot()["generation_strategy"]["nodes"][0]
    assert fresh["strategy"]["pool"]["kind"] == "pool"
    client.get_next_trials(1)
    node = client._to_json_snapshot()["generation_strategy"]["nodes"][0]
    assert node["strategy"]["pool"] is None
    assert node["strategy"]["arguments"]["pool"] == grid_pool().hash


def test_a_client_saved_before_its_first_trial_comes_back(tmp_path):
    path = str(tmp_path / "new.json")
    client = client_for(lse())
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    again.save_to_json_file(path)  # its pool was not even read
    again = Client.load_from_json_file(path)
    assert again.get_next_trials(100) == client.get_next_trials(100)


def test_strategies_of_two_pools_live_in_one_experiment(tmp_path):
    client = used()
    other = Pool(grid_pool().X, names=["x", "y"])
    client.set_generation_strategy(
        level_set_generation_strategy(lse(other), name="again")
    )
    client.get_next_trials(1)
    assert len(client._experiment._properties[POOLS]) == 2
    client.save_to_json_file(str(tmp_path / "two.json"))
    again = Client.load_from_json_file(str(tmp_path / "two.json"))
    assert list(level_set(again).columns[:2]) == ["x", "y"]


# --- files ------------------------------------------------------------------------


@pytest.fixture
def _small_limit(monkeypatch):
    monkeypatch.setattr(storage, "LARGEST_INLINE", 100)


def large_client(tmp_path):
    strategy = lse()
    client = client_for(strategy)
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, pool_folder=tmp_path / "pools")
    )
    for trial, parameters in client.get_next_trials(100).items():
        complete(client, strategy, trial, parameters)
    client.save_to_json_file(str(tmp_path / "run.json"))
    (path,) = (tmp_path / "pools").glob("*.json")
    return client, path


@pytest.mark.usefixtures("_small_limit")
def test_a_large_pool_is_a_file(tmp_path):
    client, path = large_client(tmp_path)
    text = (tmp_path / "run.json").read_text()
    assert str(path) in text
    assert '"kind": "pool"' not in text
    again = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert level_set(again).equals(level_set(client))
    assert again.get_next_trials(100) == client.get_next_trials(100)


@pytest.mark.usefixtures("_small_limit")
def test_who_loads_a_large_pool_does_not_write_it_again(tmp_path, monkeypatch):
    client = client_for(lse())
    client.set_generation_strategy(
        level_set_generation_strategy(lse(), pool_folder=tmp_path / "pools")
    )
    client.save_to_json_file(str(tmp_path / "run.json"))
    (path,) = (tmp_path / "pools").glob("*.json")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = Client.load_from_json_file(str(tmp_path / "run.json"))
    again.get_next_trials(1)
    (stored,) = again._experiment._properties[POOLS].values()
    assert stored["path"] == str(path)
    assert not list(Path().iterdir())


@pytest.mark.usefixtures("_small_limit")
def test_a_missing_or_changed_file_is_named_with_its_hash(tmp_path):
    client, path = large_client(tmp_path)
    (stored,) = client._experiment._properties[POOLS].values()
    path.write_bytes(path.read_bytes().replace(b"east", b"EAST"))
    again = Client.load_from_json_file(str(tmp_path / "run.json"))
    with pytest.raises(ValueError, match=f"{path}.*{stored['sha256']}.*was changed"):
        level_set(again)
    path.unlink()
    with pytest.raises(ValueError, match=f"{path}.*{stored['sha256']}.*is missing"):
        again.get_next_trials(1)


def test_twenty_megabytes_are_the_limit(tmp_path):
    assert storage.LARGEST_INLINE == 20_000_000
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(5000, 3, generator=generator, dtype=torch.float64)
    assert write_pool(encode_pool(Pool(X)), tmp_path)["kind"] == "pool"


@pytest.mark.slow
def test_a_pool_above_the_limit_goes_to_the_folder(tmp_path):
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(500_000, 4, generator=generator, dtype=torch.float64)
    pool = Pool(X)
    written = write_pool(encode_pool(pool), tmp_path)
    assert written["kind"] == "pool_file"
    assert written["bytes"] > 20_000_000
    assert torch.equal(read_pool(written).X, X)


def test_a_pool_that_is_nowhere_is_named():
    with pytest.raises(ValueError, match="hold the `pool` with the hash abc, but they"):
        kept_pool(client_for(lse())._experiment, "abc")


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        (3, r"the path of a folder, but got 3\. Write `pool_folder=\"pools\"`"),
        (__file__, "a folder, but .*test_pool_store.py is a file"),
    ],
)
def test_a_pool_folder_that_is_none_is_refused_at_once(folder, message):
    with pytest.raises(ValueError, match=f"Expected `pool_folder` to be {message}"):
        level_set_generation_strategy(lse(), pool_folder=folder)


# --- SQL --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:TypeDecorator")
def test_the_database_holds_the_pool_with_the_experiment(tmp_path):
    storage = sqlite_storage(tmp_path / "runs.db")
    client = used(storage_config=storage)
    client.get_next_trials(1)
    again = Client.load_from_database("test", storage_config=storage)
    assert list(again._experiment._properties[POOLS]) == [grid_pool().hash]
    with closing(sqlite3.connect(tmp_path / "runs.db")) as database:
        ((nodes,),) = database.execute("select nodes from generation_strategy")
    assert json.loads(nodes)[0]["strategy"]["pool"] is None
    assert torch.equal(
        state_of(again).classification.mean, state_of(client).classification.mean
    )
