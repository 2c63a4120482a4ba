import functools
import math
import signal
from concurrent.futures import (
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from multiprocessing import get_context

import pytest
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetNode,
    costs,
    exclude_rows,
    level_set,
    level_set_generation_strategy,
    recording,
    run_experiment,
    save_client,
)
from botorch_lse.ax import run as run_module
from botorch_lse.ax.recording import Record
from botorch_lse.ax.run import _Run, by_metric
from botorch_lse.ax.workers import Evaluation, Workers

from . import benches, several
from .test_pareto_in_ax import plain
from .worlds import (
    NOISE,
    client_for,
    go_on,
    grid_pool,
    lse,
    same_state,
    sqlite_storage,
    state_of,
)


def rows_of(client):
    return [t.arm.parameters[POOL_INDEX] for t in client._experiment.trials.values()]


def short(pool=None):
    return lse(pool, max_observations=9)


@functools.cache
def alone():
    r"""The same run, every trial in order, by hand."""
    client = client_for(short())
    _, reason = go_on(client, short(), {})
    return client, reason


def two_processes():
    return ProcessPoolExecutor(2, mp_context=get_context("fork"))


def statuses(client):
    return [t.status.name for t in client._experiment.trials.values()]


@pytest.mark.some(1)
@pytest.mark.parametrize("make", [None, lambda: ThreadPoolExecutor(2), two_processes])
def test_a_run_asks_what_a_client_asks_on_any_executor(make, tmp_path):
    expected, reason = alone()
    client = client_for(short())
    path = tmp_path / "run.json"
    evaluate = benches.bench if make is None else benches.slow_bench
    assert run_experiment(client, evaluate, executor=make, storage=path) == reason
    assert rows_of(client) == rows_of(expected)
    assert same_state(state_of(client), state_of(expected))
    again = Client.load_from_json_file(str(path))
    assert level_set(again).equals(level_set(client))


def test_an_executor_of_the_user_is_left_open():
    with ThreadPoolExecutor(2) as threads:
        run_experiment(client_for(short()), benches.bench, executor=threads)
        assert threads.submit(int, "7").result() == 7


def test_it_stops_after_so_many_trials_and_goes_on(tmp_path):
    expected, reason = alone()
    client = client_for(short())
    words = run_experiment(client, benches.bench, max_trials=4)
    assert words == "4 trials finished in this call"
    assert statuses(client) == ["COMPLETED"] * 4
    path = tmp_path / "run.json"
    save_client(client, path)
    again = Client.load_from_json_file(str(path))
    assert run_experiment(again, benches.bench, storage=path, max_pending=1) == reason
    assert rows_of(again) == rows_of(expected)


def test_trials_that_were_running_count_to_the_limit():
    client = client_for(short())
    client.get_next_trials(100)
    assert statuses(client) == ["RUNNING"] * 3
    words = run_experiment(client, benches.bench, max_trials=1)
    assert words == "1 trial finished in this call"
    assert statuses(client) == ["COMPLETED", "RUNNING", "RUNNING"]
    assert run_experiment(client, benches.bench) == alone()[1]
    assert rows_of(client) == rows_of(alone()[0])


# --- interrupt and resume ---------------------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize("make", [None, lambda: ThreadPoolExecutor(2)])
def test_an_interrupt_loses_nothing(make, tmp_path):
    expected, reason = alone()
    client, path, count = client_for(short()), tmp_path / "run.json", []

    def evaluate(parameters):
        count.append(parameters)
        if len(count) == 5:
            raise KeyboardInterrupt
        return benches.bench(parameters)

    with pytest.raises(KeyboardInterrupt):
        run_experiment(client, evaluate, executor=make, storage=path)
    again = Client.load_from_json_file(str(path))
    assert statuses(again) == statuses(client)
    # A second worker may be under way, or already further.
    n_completed = statuses(again).count("COMPLETED")
    assert n_completed == 4 if make is None else 3 <= n_completed <= 5
    running = again._experiment.trials_by_status[TrialStatus.RUNNING]
    running = sorted(running, key=lambda t: t.index)
    rows, asked = [t.arm.parameters[POOL_INDEX] for t in running], []

    def remember(parameters):
        asked.append(parameters[POOL_INDEX])
        return benches.bench(parameters)

    assert run_experiment(again, remember, storage=path) == reason
    assert asked[: len(rows)] == rows
    assert rows_of(again) == rows_of(expected)
    assert same_state(state_of(again), state_of(expected))


def in_one_breath(workers, results):
    r"""Futures that have all ended when they are looked at."""
    for trial, result in enumerate(results):
        future = Future()
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
        workers._running[future] = Evaluation(trial, {})


@pytest.mark.parametrize("end", [KeyboardInterrupt(), BrokenExecutor("dead")])
def test_results_that_end_with_an_interrupt_or_a_crash_are_kept(end):
    with ThreadPoolExecutor(1) as threads:
        workers = Workers(benches.bench, threads)
        in_one_breath(workers, [1.0, end, 2.0])
        with pytest.raises(type(end)):
            workers.wait()
        workers.collect_finished()
    assert {(f.trial, f.value) for f in workers.finished} == {(0, 1.0), (2, 2.0)}


def test_a_running_trial_with_all_its_data_is_not_measured_again():
    client = client_for(short())
    first, *_ = client.get_next_trials(100)
    client.attach_data(first, {"y": (0.123, NOISE)})
    asked = []
    run_experiment(client, lambda p: asked.append(p) or benches.bench(p), max_trials=2)
    assert len(asked) == 2
    data = client._experiment.lookup_data(trial_indices=[first]).df
    assert data["mean"].tolist() == [0.123]
    assert client._experiment.trials[first].status.is_completed


def test_the_file_of_another_run_is_not_overwritten(tmp_path):
    path = tmp_path / "run.json"
    client = client_for(short())
    run_experiment(client, benches.bench, storage=path, max_trials=3)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"`storage`.*3 of them unknown.*load_from"):
        run_experiment(client_for(short()), benches.bench, storage=path)
    assert path.read_bytes() == before


@pytest.mark.filterwarnings("ignore:TypeDecorator")
def test_a_database_is_written_as_the_run_goes(tmp_path):
    storage = sqlite_storage(tmp_path / "runs.db")
    client = client_for(short(), storage_config=storage)
    seen = []

    def evaluate(parameters):
        stored = Client.load_from_database("test", storage_config=storage)
        seen.append(statuses(stored))
        return benches.bench(parameters)

    run_experiment(client, evaluate, max_trials=4)
    assert seen[0] == ["RUNNING"] * 3
    assert seen[2] == ["COMPLETED"] * 2 + ["RUNNING"]
    assert seen[3] == ["COMPLETED"] * 3 + ["RUNNING"]


# --- errors and dead workers ------------------------------------------------------


def first_rows():
    return rows_of(alone()[0])[:3]


def test_an_error_is_raised_after_the_others_are_recorded(tmp_path):
    row = first_rows()[0]
    evaluate = benches.with_options(benches.raises_always, rows=[row])
    client, path = client_for(short()), tmp_path / "run.json"
    with pytest.raises(OSError, match="no power") as error:
        run_experiment(client, evaluate, executor=two_processes, storage=path)
    assert "Trial 0" in error.value.__notes__[0]
    again = Client.load_from_json_file(str(path))
    assert statuses(again)[0] == "RUNNING"
    run_experiment(again, benches.bench, storage=path)
    assert same_state(state_of(again), state_of(alone()[0]))


@pytest.mark.parametrize(
    "evaluate", [benches.raises_the_first_time, benches.dies_the_first_time]
)
def test_a_trial_is_tried_again_under_its_index(evaluate, tmp_path):
    rows = first_rows()
    client = client_for(short())
    once = benches.with_options(evaluate, folder=str(tmp_path), rows=rows[1:])
    run_experiment(client, once, executor=two_processes, on_error="retry")
    assert same_state(state_of(client), state_of(alone()[0]))
    assert set(statuses(client)) == {"COMPLETED"}


@pytest.mark.some(2)
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Ax's, warned again
@pytest.mark.parametrize("evaluate", [benches.raises_always, benches.dies_always])
@pytest.mark.parametrize("on_error", ["retry", "fail"])
def test_a_hopeless_trial_uses_its_place_up(evaluate, on_error):
    row = first_rows()[0]
    client = client_for(short())
    hopeless = benches.with_options(evaluate, rows=[row])
    with pytest.warns(RuntimeWarning, match="abandoned: its evaluation failed 2 times"):
        run_experiment(
            client,
            hopeless,
            executor=two_processes,
            on_error=on_error,
            max_retries=1,
            max_trials=3 if on_error == "retry" else 4,  # one round
        )
    ends = list(zip(rows_of(client), statuses(client), strict=True))
    abandoned = [r for r, status in ends if status == "ABANDONED"]
    failed = [r for r, status in ends if status == "FAILED"]
    assert abandoned == [row]
    assert failed == ([row] if on_error == "fail" else [])
    others = [r for r, status in ends if status == "COMPLETED"]
    assert len(others) == 2  # nobody else is blamed for the crash
    assert row not in others


@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore:The '?(inplace|future)")  # Ax's, warned again
@pytest.mark.parametrize("on_error", ["retry", "fail"])
@pytest.mark.parametrize("max_pending", [1, None])
def test_a_run_ends_when_only_hopeless_rows_are_asked_for(on_error, max_pending):
    strategy = lse(max_observations=None)
    client = client_for(strategy)
    client.set_generation_strategy(  # with a limit the strategy leaves the row alone
        level_set_generation_strategy(strategy, seed=3, max_failures=None)
    )
    row, asked = first_rows()[0], []

    def evaluate(parameters):
        asked.append(parameters[POOL_INDEX])
        return benches.raises_always(parameters, rows=[row])

    with pytest.warns(RuntimeWarning, match="not evaluated again") as warned:
        reason = run_experiment(
            client, evaluate, on_error=on_error, max_retries=1, max_pending=max_pending
        )
    assert asked.count(row) == 2
    assert len([w for w in warned if w.category is RuntimeWarning]) == 1
    assert "asks only for rows whose evaluation failed" in reason
    assert str(row) in reason
    assert "of 36 rows decided; " in reason
    state = state_of(client)
    assert not state.is_done
    # The last round held nothing else; in the others something was measured.
    last = {r for n, r in state.abandoned if n == state.round - 1}
    assert last == {row}
    assert state.history.round.unique().tolist() == list(range(state.round - 1))
    # Where it can be measured, a later call goes on to the answer; else without it.
    assert f"`exclude_rows(client, [{row}])`, or call" in reason
    if on_error == "retry":
        exclude_rows(client, [row])
        run_experiment(client, evaluate)
        assert state_of(client).is_done
        assert asked.count(row) == 2
    else:
        assert "36 of 36 rows decided" in run_experiment(client, benches.bench)


@pytest.mark.filterwarnings("ignore:The '?(inplace|future)")
def test_ten_of_the_rows_that_are_given_up_are_named():
    client = client_for(lse(max_observations=None, batch_size=13))
    with pytest.warns(RuntimeWarning, match="not evaluated again"):
        reason = run_experiment(client, fails, on_error="retry", max_retries=0)
    rows = sorted({*rows_of(client)})
    assert f"`exclude_rows(client, {rows[:10]})` and {len(rows) - 10} more" in reason
    asked = [t.arm.parameters for t in client._experiment.trials.values()]
    exclude_rows(client, asked)  # by parameters, as trials have them
    assert sorted(state_of(client).excluded_rows.tolist()) == rows
    exclude_rows(client, asked[0], undo=True)


def fails(parameters):
    raise RuntimeError("the bench is off")


@pytest.mark.filterwarnings("ignore:The '?(inplace|future)")
def test_with_max_repeats_a_hopeless_row_is_left_for_the_others():
    client = client_for(lse(max_observations=None, max_repeats=1))
    row = first_rows()[0]
    hopeless = benches.with_options(benches.raises_always, rows=[row])
    with pytest.warns(RuntimeWarning, match="not evaluated again"):
        reason = run_experiment(client, hopeless, on_error="fail", max_retries=0)
    assert "asks only" not in reason
    assert state_of(client).is_done
    assert rows_of(client).count(row) == 1


def test_a_dead_worker_of_the_users_executor_is_explained(tmp_path):
    evaluate = benches.with_options(benches.dies_always, rows=first_rows())
    client, path = client_for(short()), tmp_path / "run.json"
    with two_processes() as processes, pytest.raises(BrokenExecutor) as error:
        run_experiment(client, evaluate, executor=processes, storage=path)
    assert "lambda: ProcessPoolExecutor(2)" in error.value.__notes__[0]
    assert statuses(Client.load_from_json_file(str(path))) == ["RUNNING"] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_error": "ignore"}, "`on_error` to be one of"),
        ({"max_retries": -1}, "`max_retries`"),
        ({"max_trials": 0}, "`max_trials`"),
        ({"max_pending": 0}, "`max_pending`"),
        ({"evaluate": 3}, "`evaluate` to be a function of a parameterization.*got 3"),
        ({"executor": "threads"}, "`executor` to be .* 'threads'.*ThreadPoolExecutor"),
        ({"executor": dict}, r"`executor` to be .*that makes one, but it made \{\}"),
        ({"storage": 3}, "`storage` to be the path of a JSON file, but got 3"),
    ],
)
def test_bad_options_are_refused(options, message):
    client = client_for(short())
    with pytest.raises(ValueError, match=message):
        run_experiment(client, **{"evaluate": benches.bench, **options})
    assert not client._experiment.trials


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nodir/x.json", r"`storage` to lie in a folder.*but there is no .*nodir"),
        ("", "`storage` to be a file, but .* is a folder. Write .*run.json"),
        ("notes.json", "but .*notes.json holds no experiment. Take another name"),
        ("list.json", "but .*list.json holds no experiment"),
        ("null.json", "but .*null.json holds no experiment"),
        ("bare.json", "but .*bare.json holds no experiment"),
        ("trials.json", "but .*trials.json holds no experiment"),
        ("deep.json", "but .*deep.json holds no experiment"),
        ("empty.json", "but .*empty.json holds no experiment"),
        ("binary.json", "but .*binary.json holds no experiment"),
    ],
)
def test_storage_is_looked_at_before_the_first_trial(name, message, tmp_path):
    (tmp_path / "notes.json").write_text("buy milk")
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "null.json").write_text("null")
    (tmp_path / "bare.json").write_text('{"experiment": {}}')
    (tmp_path / "trials.json").write_text(
        '{"experiment": {"name": "test", "trials": [1], "data_by_trial": {}}}'
    )
    (tmp_path / "deep.json").write_text(100_000 * "[")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "binary.json").write_bytes(bytes(range(256)))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    client = client_for(short())
    with pytest.raises(ValueError, match=message):
        run_experiment(client, benches.bench, storage=tmp_path / name)
    assert not client._experiment.trials
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "finite numbers, but got nan for 'y'"),
        ({"z": 1.0}, r"\['y'\] are missing"),
        ((1.0, -1.0), "a standard error of at least 0, but got -1.0 for 'y'"),
    ],
)
def test_an_unusable_result_is_an_error_of_its_trial(value, message):
    client = client_for(short())
    with pytest.raises(ValueError, match=message):
        run_experiment(client, lambda _: value)
    assert statuses(client) == ["RUNNING"] * 3
    results = iter([value])
    run_experiment(
        client,
        lambda parameters: next(results, None) or benches.bench(parameters),
        on_error="retry",
    )
    assert same_state(state_of(client), state_of(alone()[0]))


@pytest.mark.some(2)
@pytest.mark.parametrize("value", [math.nan, math.inf, None, "broken", OSError("off")])
def test_a_measurement_that_fails_is_told_what_to_do_and_that_does_it(value):
    first = first_rows()[0]

    def evaluate(parameters):
        failed.append(parameters[POOL_INDEX])
        if parameters[POOL_INDEX] == first and failed.count(first) < 3:
            if isinstance(value, OSError):
                raise value
            return value
        return benches.bench(parameters)

    client, failed = client_for(short()), []
    with pytest.raises((ValueError, OSError)) as raised:
        run_experiment(client, evaluate)
    said = " ".join([str(raised.value), *raised.value.__notes__])
    assert 'run_experiment(..., on_error="fail")' in said
    assert isinstance(value, OSError) or "'y'" in said
    run_experiment(client, evaluate, on_error="fail")
    assert same_state(state_of(client), state_of(alone()[0]))
    assert statuses(client).count("FAILED") == 1


@pytest.mark.some(1)
@pytest.mark.parametrize("useless", [{"y": 1.0, "heat": "hot"}, {"y": 1.0, 3: 4.0}])
@pytest.mark.parametrize("on_error", ["raise", "retry", "fail"])
def test_a_useless_further_metric_is_an_error_of_its_trial(useless, on_error, tmp_path):
    client, path, results = client_for(short()), tmp_path / "run.json", [useless]

    def evaluate(parameters):
        return results.pop() if results else benches.bench(parameters)

    if on_error == "raise":
        with pytest.raises(ValueError, match="`evaluate` to return a"):
            run_experiment(client, evaluate, storage=path)
        client = Client.load_from_json_file(str(path))
    run_experiment(client, evaluate, storage=path, on_error=on_error)
    assert same_state(state_of(client), state_of(alone()[0]))
    assert statuses(client).count("FAILED") == (on_error == "fail")


def record_together(client, record, results, **options):
    r"""What a run does with results that ended in one moment."""
    workers = Workers(benches.bench)
    run = _Run(client, record, workers, math.inf, None, "raise", 0)
    for trial, value in results.items():
        row = dict(client._experiment.trials[trial].arm.parameters)
        workers.finished.append(Evaluation(trial, row, value))
    return run


def test_a_useless_result_costs_no_other_of_its_moment(tmp_path):
    client, path = client_for(short()), tmp_path / "run.json"
    results = dict.fromkeys(client.get_next_trials(100), (0.5, NOISE))
    results[0] = {"y": 1.0, "heat": "hot"}
    with Record(client, path) as record:
        run = record_together(client, record, results)
        with pytest.raises(ValueError, match="'hot' for 'heat'"):
            run.record_all()
    again = Client.load_from_json_file(str(path))
    assert statuses(again) == ["RUNNING", "COMPLETED", "COMPLETED"]


@pytest.mark.parametrize("failing", ["complete_trial", "write", "costs"])
def test_all_results_of_a_moment_are_recorded_whatever_fails(
    failing, tmp_path, monkeypatch
):
    pool = grid_pool()
    client = client_for(short(Pool(pool.X, names=pool.names, costs=1 + pool.X[:, 0])))
    path = tmp_path / "run.json"
    results = dict.fromkeys(client.get_next_trials(100), (0.5, NOISE))
    once = [OSError("No space left on device")]

    def failing_once(function):
        def called(*args, **kwargs):
            if once:
                raise once.pop()
            return function(*args, **kwargs)

        return called

    with Record(client, path) as record:
        run = record_together(client, record, results)
        owner, name = {
            "complete_trial": (run_module, "complete_trial"),
            "write": (recording, "write_whole"),
            "costs": (costs.TrialCosts, "of_arms"),
        }[failing]
        monkeypatch.setattr(owner, name, failing_once(getattr(owner, name)))
        with pytest.raises(OSError, match="No space left") as error:
            run.record_all()
        run.rescue(error.value)
    again = Client.load_from_json_file(str(path))
    lost = failing == "complete_trial"
    assert statuses(again) == ["RUNNING" if lost else "COMPLETED", *2 * ["COMPLETED"]]
    table = again._experiment.lookup_data().df
    n_costs = int((table["metric_name"] == "cost").sum())
    assert n_costs == (3 if failing == "write" else 2)
    if failing != "costs":
        assert "Trial 0" in error.value.__notes__[0]


def test_an_interrupt_waits_until_a_result_is_on_the_disk(tmp_path, monkeypatch):
    client, path = client_for(short()), tmp_path / "run.json"
    complete = run_module.complete_trial

    def interrupted(*args, **kwargs):
        complete(*args, **kwargs)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run_module, "complete_trial", interrupted)
    # A shell starts what runs in the background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_experiment(client, benches.bench, storage=path)
    finally:
        signal.signal(signal.SIGINT, before)
    again = Client.load_from_json_file(str(path))
    assert statuses(again) == ["COMPLETED", "RUNNING", "RUNNING"]


def test_what_a_full_disk_did_not_take_is_written_by_the_next_call(
    tmp_path, monkeypatch
):
    client, path, asked = client_for(short()), tmp_path / "run.json", []

    def full(*_):
        raise OSError("No space left on device")

    def evaluate(parameters):
        asked.append(parameters[POOL_INDEX])
        if len(asked) == 3:
            disk.setattr(recording, "write_whole", full)
        return benches.bench(parameters)

    with (
        monkeypatch.context() as disk,
        pytest.raises(OSError, match="No space left") as error,
    ):
        run_experiment(client, evaluate, storage=path)
    (note,) = error.value.__notes__
    assert "Trial 2" in note
    assert "not stored yet" in note
    stored = statuses(Client.load_from_json_file(str(path)))
    assert stored == ["COMPLETED", "COMPLETED", "RUNNING"]
    _, reason = alone()
    assert run_experiment(client, evaluate, storage=path) == reason
    assert asked == rows_of(alone()[0])
    again = Client.load_from_json_file(str(path))
    assert same_state(state_of(again), state_of(alone()[0]))


def test_a_call_with_nothing_left_to_measure_still_writes(tmp_path):
    client, path = client_for(short()), tmp_path / "run.json"
    reason = run_experiment(client, benches.bench)
    assert run_experiment(client, benches.bench, storage=path) == reason
    again = Client.load_from_json_file(str(path))
    assert same_state(state_of(again), state_of(client))


def test_a_disk_that_is_full_from_the_start_costs_no_measurement(tmp_path, monkeypatch):
    client = client_for(short())

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(recording, "write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        run_experiment(client, benches.bench, storage=tmp_path / "run.json")
    assert not client._experiment.trials


def test_a_running_trial_whose_value_is_nan_is_measured():
    client = client_for(short())
    first, *_ = client.get_next_trials(100)
    client.attach_data(first, {"y": (float("nan"), NOISE)})
    asked = []
    run_experiment(client, lambda p: asked.append(p) or benches.bench(p), max_trials=3)
    assert len(asked) == 3


def test_several_metrics_need_a_dictionary():
    assert by_metric({"a": 1.0, "b": (2.0, 0.1)}, ["a", "b"])["b"] == (2.0, 0.1)
    with pytest.raises(ValueError, match=r"each of the metrics \['a', 'b'\]"):
        by_metric(1.0, ["a", "b"])


@pytest.mark.slow
def test_a_dask_cluster_is_an_executor():
    import distributed

    with distributed.Client(processes=False, dashboard_address=None) as cluster:
        client = client_for(short())
        executor = cluster.get_executor(pure=False)
        run_experiment(client, benches.slow_bench, executor=executor)
    assert same_state(state_of(client), state_of(alone()[0]))


# --- several metrics ----------------------------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize("name", several.NAMES)
def test_a_strategy_of_several_outputs_runs_and_goes_on(name, tmp_path):
    strategy, path = several.make(name), tmp_path / "run.json"
    client, measured = client_for(strategy, "y, -z"), []

    def evaluate(parameters):
        measured.append(parameters[POOL_INDEX])
        if len(measured) == 3:
            raise KeyboardInterrupt
        return several.bench(parameters)

    with pytest.raises(KeyboardInterrupt):
        run_experiment(client, evaluate, storage=path)
    again = Client.load_from_json_file(str(path))
    assert statuses(again)[:3] == ["COMPLETED"] * 2 + ["RUNNING"]
    reason = run_experiment(again, several.bench, storage=path)
    state, asked = plain(strategy)
    assert rows_of(again) == [row for batch in asked for row in sorted(batch)]
    assert "of 4 rows decided" in reason
    answer = state_of(again).classification
    assert answer.side.tolist() == state.classification.side.tolist()


def test_a_metric_beside_the_objective_is_asked_for():
    client = client_for(several.make("PALStrategy"))
    client.configure_tracking_metrics(["z"])
    node = LevelSetNode(several.make("PALStrategy"), ["y", "z"])
    first = sobol(MinTrials(threshold=2, transition_to=node.name))
    client.set_generation_strategy(GenerationStrategy(nodes=[first, node]))
    with pytest.raises(ValueError, match=r"\['z'\] are missing in"):
        run_experiment(client, lambda _: {"y": 1.0}, max_trials=1)
    assert "of 4 rows decided" in run_experiment(client, several.bench)


def test_several_objectives_need_no_level_set_strategy():
    client = client_for(short(), "y, -z")
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol()]))
    with pytest.raises(ValueError, match=r"\['z'\] are missing in"):
        run_experiment(client, lambda _: {"y": 1.0}, max_trials=1)
    run_experiment(client, lambda _: {"y": 1.0, "z": 2.0}, max_trials=2)
    assert statuses(client) == ["COMPLETED"] * 2


# --- other strategies, costs, progress --------------------------------------------


def test_it_runs_any_generation_strategy():
    client = client_for(short())
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol()]))
    out = []

    def evaluate(parameters):
        out.append(statuses(client).count("RUNNING"))
        return {"y": benches.bench(parameters), "seconds": 1.5}

    assert run_experiment(client, evaluate, max_trials=3).startswith("3 trials")
    assert out == [1, 1, 1]
    assert "seconds" in client._experiment.metrics


def sobol(*criteria):
    spec = GeneratorSpec(Generators.SOBOL, {"seed": 0})
    return GenerationNode("S", [spec], transition_criteria=list(criteria))


def test_exact_values_are_taken_also_where_a_level_set_node_follows():
    client = client_for(short())
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol()]))
    run_experiment(client, lambda _: (1.0, 0.0), max_trials=1)
    assert statuses(client) == ["COMPLETED"]
    client, ours = client_for(short()), LevelSetNode(short())
    first = sobol(MinTrials(threshold=2, transition_to=ours.name))
    client.set_generation_strategy(GenerationStrategy(nodes=[first, ours]))
    run_experiment(client, lambda _: (1.0, 0.0), max_trials=1)
    assert statuses(client) == ["COMPLETED"]


def test_waiting_for_what_nobody_measures_is_an_error():
    client = client_for(short())
    trials = client.get_next_trials(100)
    for trial in trials:
        client._experiment.trials[trial]._status = TrialStatus.STAGED
    with pytest.raises(DataRequiredError, match="Round 0 is open"):
        run_experiment(client, benches.bench)


def test_costs_are_recorded_beside_the_values():
    pool = grid_pool()
    priced = Pool(pool.X, names=pool.names, costs=1 + pool.X[:, 0])
    client = client_for(short(priced))
    run_experiment(client, benches.bench, max_trials=5)
    table = client._experiment.lookup_data().df
    costs = table[table["metric_name"] == "cost"]
    assert len(costs) == 5
    rows = rows_of(client)[:5]
    expected = [float(priced.costs[row]) for row in rows]
    assert costs["mean"].tolist() == pytest.approx(expected)
    assert client._experiment.optimization_config.metric_names == {"y"}
    plain, _ = alone()  # the costs change nothing for a strategy that ignores them
    assert rows == rows_of(plain)[:5]


def test_the_progress_bar_is_off_unless_asked_for(capsys):
    run_experiment(client_for(short()), benches.bench, max_trials=2)
    assert "trial" not in capsys.readouterr().err.lower().replace("new trial", "")
    run_experiment(client_for(short()), benches.bench, max_trials=2, progress=True)
    assert "rows decided" in capsys.readouterr().err
