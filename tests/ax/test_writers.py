r"""Two writers of one experiment: the second is refused, and nothing is lost."""

import os
from multiprocessing import get_context

import pytest
from ax.api.client import Client
from ax.storage.sqa_store import save as sqa_save

from botorch_lse.ax import (
    POOL_INDEX,
    pool_parameters,
    recording,
    run_experiment,
    save_client,
)
from botorch_lse.ax.recording import Record

from .benches import bench
from .test_run import alone, rows_of, short, statuses
from .worlds import client_for, grid_pool, same_state, sqlite_storage, state_of

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked runs"),
    pytest.mark.filterwarnings("ignore:TypeDecorator"),
]
KINDS = ("json", "db")
HELD = "one writer, but .* is held by another run that is under way"
STALE = "of them unknown here or further than here.*`client = Client.load_from_"


class Store:
    r"""One experiment in a JSON file or in an SQLite database."""

    def __init__(self, kind, folder):
        self.kind, self.path = kind, folder / f"run.{kind}"
        self.storage = self.path if kind == "json" else None

    def new(self):
        if self.kind == "json":
            client = client_for(short())
            save_client(client, self.path)
            return client
        return client_for(short(), storage_config=sqlite_storage(self.path))

    def load(self):
        if self.kind == "json":
            return Client.load_from_json_file(str(self.path))
        config = sqlite_storage(self.path)
        return Client.load_from_database("test", storage_config=config)

    def run(self, client, evaluate=bench, **options):
        return run_experiment(client, evaluate, storage=self.storage, **options)


def run_that_waits(store, n, ready, go_on):
    r"""A process that waits before its evaluation number ``n``."""
    client, count = store.load(), []

    def evaluate(parameters):
        count.append(parameters)
        if len(count) == n:
            ready.send(True)
            go_on.recv()
        return bench(parameters)

    store.run(client, evaluate)


@pytest.fixture
def under_way(tmp_path):
    r"""A run in another process, in the middle of its third evaluation."""
    context, ends = get_context("fork"), []

    def begin(kind):
        store = Store(kind, tmp_path)
        store.new()
        told, ready = context.Pipe(duplex=False)
        waits, go_on = context.Pipe(duplex=False)
        process = context.Process(target=run_that_waits, args=[store, 3, ready, waits])
        process.start()
        assert told.poll(60)
        ends.append(process)
        return store, process, go_on

    yield begin
    for process in ends:
        process.kill()
        process.join()


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_is_refused_and_the_first_one_goes_on(kind, under_way):
    store, process, go_on = under_way(kind)
    for _ in range(2):
        with pytest.raises(ValueError, match=HELD):
            store.run(store.load())
    go_on.send(True)
    process.join()
    assert process.exitcode == 0
    assert same_state(state_of(store.load()), state_of(alone()[0]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_kill_the_next_run_goes_on_at_once(kind, under_way):
    store, process, _ = under_way(kind)
    process.kill()
    process.join()
    client = store.load()
    assert statuses(client) == ["COMPLETED"] * 2 + ["RUNNING"]
    assert store.run(client) == alone()[1]
    assert rows_of(store.load()) == rows_of(alone()[0])


def test_a_file_that_a_run_holds_is_not_saved_over(under_way, monkeypatch):
    store, _, _ = under_way("json")
    monkeypatch.setattr(recording, "_PATIENCE", 0.1)
    before = store.path.read_bytes()
    with pytest.raises(ValueError, match=HELD):
        save_client(client_for(short()), store.path)
    assert store.path.read_bytes() == before


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_client_loaded_before_another_one_ran_is_refused(kind, tmp_path):
    store = Store(kind, tmp_path)
    first = store.new()
    first.get_next_trials(100)
    if kind == "json":
        save_client(first, store.path)
    old, new = store.load(), store.load()
    store.run(new, max_trials=2)  # the same trials, but further
    with pytest.raises(ValueError, match=STALE):
        store.run(old)
    assert statuses(store.load()) == ["COMPLETED", "COMPLETED", "RUNNING"]
    store.run(new, max_trials=3)  # trials that the other one does not know
    with pytest.raises(ValueError, match=STALE):
        store.run(old)
    assert statuses(store.load()) == ["COMPLETED"] * 5


def test_data_that_came_by_another_way_are_not_overwritten(tmp_path):
    store = Store("json", tmp_path)
    client = store.new()
    store.run(client, max_trials=1)
    client.get_next_trials(100)
    save_client(client, store.path)
    old = store.load()
    client.attach_data(1, {"heat": 3.0})  # of a trial that runs
    client.save_to_json_file(str(store.path))
    with pytest.raises(ValueError, match="1 of them unknown here"):
        store.run(old)
    other = Store("json", tmp_path).load()
    other.attach_trial({POOL_INDEX: 7})
    client.attach_trial({POOL_INDEX: 8})
    client.save_to_json_file(str(store.path))
    with pytest.raises(ValueError, match="1 of them unknown here"):
        store.run(other)


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_without_a_lock_stops_the_run_and_stays(kind, tmp_path):
    store, count = Store(kind, tmp_path), []
    client = store.new()

    def evaluate(parameters):
        count.append(parameters)
        if len(count) == 2:
            other = store.load()
            other.attach_trial({POOL_INDEX: 7})
            if kind == "json":
                other.save_to_json_file(str(store.path))
        return bench(parameters)

    changed = "was changed by something else" if kind == "json" else STALE
    with pytest.raises(ValueError, match=changed) as error:
        store.run(client, evaluate)
    assert "Trial 1" in error.value.__notes__[0]
    assert "gave {'y': (" in error.value.__notes__[0]
    again = store.load()
    assert rows_of(again)[3] == 7
    assert statuses(again) == ["COMPLETED"] + ["RUNNING"] * 3
    assert "rows decided" in store.run(again)


def test_a_link_as_storage_keeps_pointing(tmp_path):
    store = Store("json", tmp_path)
    client = store.new()
    (tmp_path / "far").mkdir()
    target = store.path.rename(tmp_path / "far" / "target.json")
    store.path.symlink_to(target)
    store.run(client, max_trials=2)
    save_client(store.load(), store.path)
    assert store.path.is_symlink()
    assert statuses(Client.load_from_json_file(str(target))) == ["COMPLETED"] * 2


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="rights of POSIX")
def test_a_protected_file_is_not_replaced(tmp_path, monkeypatch):
    store = Store("json", tmp_path)
    client = store.new()
    store.path.chmod(0o444)
    # Root may write anything.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(ValueError, match=r"can be written, but .*run.json is protect"):
        store.run(client)
    assert not client._experiment.trials


# --- databases ------------------------------------------------------------------------


def test_experiments_of_one_database_are_held_one_by_one(tmp_path):
    store = Store("db", tmp_path)
    first = store.new()
    second = Client(storage_config=first._storage_config)
    second.configure_experiment(parameters=pool_parameters(grid_pool()), name="other")
    again = "one writer, but the experiment 'test' in .*run.db is held"
    with Record(first), Record(second), pytest.raises(ValueError, match=again):
        Record(first)
    with Record(first):
        pass


@pytest.mark.slow
def test_what_a_database_did_not_take_is_written_by_the_next_call(
    tmp_path, monkeypatch
):
    store, asked = Store("db", tmp_path), []
    client = store.new()

    def full(*_, **__):
        raise OSError("database or disk is full")

    def evaluate(parameters):
        asked.append(parameters[POOL_INDEX])
        if len(asked) == 2:
            disk.setattr(sqa_save, "_bulk_merge_into_session", full)
        return bench(parameters)

    with (
        monkeypatch.context() as disk,
        pytest.raises(OSError, match="disk is full") as error,
    ):
        store.run(client, evaluate)
    assert "Trial 1" in error.value.__notes__[0]
    assert statuses(store.load()) == ["COMPLETED", "RUNNING", "RUNNING"]
    assert store.run(client, evaluate) == alone()[1]
    assert asked == rows_of(alone()[0])
    assert same_state(state_of(store.load()), state_of(alone()[0]))


@pytest.mark.slow
def test_a_client_whose_trials_never_reached_the_database_is_refused(
    tmp_path, monkeypatch
):
    store = Store("db", tmp_path)
    client = store.new()
    save = client._save_or_update_trials_in_db_if_possible

    def full(**arguments):
        save(**arguments)
        raise OSError("database or disk is full")

    with monkeypatch.context() as disk:
        disk.setattr(client, "_save_or_update_trials_in_db_if_possible", full)
        with pytest.raises(OSError, match="disk is full"):
            store.run(client)
    with pytest.raises(ValueError, match=r"trials \[0, 1, 2\] of .* are not: they"):
        store.run(client)
    assert store.run(store.load()) == alone()[1]


@pytest.mark.slow
def test_what_a_client_elsewhere_wrote_back_is_put_right(tmp_path):
    store = Store("db", tmp_path)
    client = store.new()
    client.get_next_trials(100)
    old = store.load()
    store.run(client, max_trials=1)
    # What `Client.load_from_database` does if a trial ends while it reads.
    old._save_experiment_to_db_if_possible(old._experiment)
    assert statuses(store.load()) == ["RUNNING"] * 3
    store.run(client, max_trials=1)
    again = store.load()
    assert statuses(again) == statuses(client)
    data = [c._experiment.lookup_data().df["trial_index"] for c in (again, client)]
    assert data[0].tolist() == data[1].tolist()
