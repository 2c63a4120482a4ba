r"""Evaluations that hang, leave, or are interrupted, on every kind of executor."""

import contextlib
import functools
import os
import signal
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import submitit
from ax.api.client import Client

from botorch_lse import Pool
from botorch_lse.ax import (
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
)
from botorch_lse.ax.workers import begun_once
from botorch_lse.integrations.submitit import SubmititExecutor
from botorch_lse.strategies import RandomStrategy
from research.benchmark.engines import executor_on
from tests.processes import CONTEXT

from . import far

POOL = Pool([[float(i)] for i in range(6)])


def client():
    strategy = RandomStrategy(
        POOL, 0.7, noise_std=0.05, batch_size=2, n_initial=2, max_observations=4
    )
    made = Client()
    made.configure_experiment(parameters=pool_parameters(POOL), name="test")
    made.configure_optimization(objective="y")
    made.set_generation_strategy(level_set_generation_strategy(strategy, seed=1))
    return made


def statuses(made):
    return [t.status.name for t in made._experiment.trials.values()]


def processes():
    return ProcessPoolExecutor(2, mp_context=get_context("fork"))


def threads():
    return ThreadPoolExecutor(2)


@pytest.fixture
def first_row():
    made = client()
    return next(iter(made.get_next_trials(1).values()))["pool_index"]


@pytest.mark.some(0, slow=2)
@pytest.mark.filterwarnings("ignore:.*is abandoned.*longer than `timeout`, 5 s")
@pytest.mark.parametrize("executor", [None, threads, processes])
def test_an_evaluation_that_hangs_is_one_that_failed(executor, first_row):
    made = client()
    evaluate = functools.partial(far.hang_in, rows=[first_row])
    options = {"executor": executor, "timeout": 5.0, "max_retries": 0}
    run_experiment(made, evaluate, on_error="retry", **options)
    found = statuses(made)
    assert found.count("ABANDONED") == 1
    assert set(found) == {"ABANDONED", "COMPLETED"}


@pytest.mark.parametrize("executor", [None, threads, processes])
def test_an_evaluation_that_hangs_ends_the_run_as_errors_do(executor):
    made = client()
    evaluate = functools.partial(far.hang_in, rows=range(6))
    # The end of the `with` block of a pool does not wait for it either.
    pool = contextlib.nullcontext() if executor is None else executor()
    with pytest.raises(TimeoutError, match="longer than `timeout`") as error, pool:
        run_experiment(
            made, evaluate, executor=None if executor is None else pool, timeout=0.2
        )
    assert 'on_error="fail"' in str(error.value.__notes__)
    assert statuses(made) == ["RUNNING", "RUNNING"]


def test_a_timeout_must_be_positive():
    with pytest.raises(ValueError, match="`timeout`"):
        run_experiment(client(), far.bench, timeout=0.0)


@pytest.fixture
def interrupts():
    r"""A shell starts what runs in the background with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        (threads, "Their threads go on until this process ends."),
        (processes, "The processes that evaluated them were ended."),
    ],
)
def test_an_interrupt_ends_the_run_whatever_the_evaluations_do(
    executor, words, interrupts, first_row
):
    made = client()
    given = {"main": os.getpid(), "row": first_row}
    evaluate = functools.partial(far.interrupt_and_hang, **given)
    with pytest.raises(KeyboardInterrupt) as error, executor() as pool:
        run_experiment(made, evaluate, executor=pool)
    (note,) = error.value.__notes__
    assert "were being evaluated; they are still running in the experiment" in note
    assert note.endswith(words)
    assert statuses(made) == ["RUNNING", "RUNNING"]


@pytest.mark.parametrize("executor", [None, threads, processes])
def test_an_evaluation_that_leaves_is_an_error(executor):
    import distributed  # noqa: F401  # it changes how errors travel

    made = client()
    with pytest.raises(RuntimeError, match=r"called `sys.exit\(3\)`"):
        run_experiment(made, far.leave, executor=executor)
    assert statuses(made) == ["RUNNING", "RUNNING"]


# --- Slurm ----------------------------------------------------------------------------


class Job:
    r"""A job whose folder cannot be read at the first looks."""

    def __init__(self, errors=(), ends=True):
        self.errors, self.ends, self.is_cancelled = list(errors), ends, False

    def done(self):
        if self.errors:
            raise self.errors.pop(0)
        return self.ends

    def result(self):
        return 42

    def cancel(self, check=True):
        self.is_cancelled = True


class Cluster(submitit.LocalExecutor):
    def __init__(self, folder, job):
        super().__init__(folder=folder)
        self.job = job

    def submit(self, fn, *args, **kwargs):
        return self.job


def test_a_look_that_fails_ends_no_job(tmp_path):
    stale = OSError("Stale file handle")
    executor = SubmititExecutor(Cluster(tmp_path, Job([stale, stale])), poll=0.01)
    assert executor.submit(pow, 2, 3).result(60) == 42


def test_a_job_that_cannot_be_looked_at_ends_its_call(tmp_path, monkeypatch):
    monkeypatch.setattr("botorch_lse.integrations.submitit._PATIENCE", 0.0)
    for error in (OSError("gone"), RuntimeError("broken")):
        executor = SubmititExecutor(Cluster(tmp_path, Job([error])), poll=0.01)
        with pytest.raises(type(error), match=str(error)):
            executor.submit(pow, 2, 3).result(60)
    executor = SubmititExecutor(Cluster(tmp_path, Job()), poll=0.01)
    assert executor.submit(pow, 2, 3).result(60) == 42


@pytest.mark.parametrize("whose", [threading.main_thread, threading.current_thread])
def test_jobs_are_cancelled_when_a_run_is_interrupted(tmp_path, interrupts, whose):
    r"""Whichever thread gets the signal: systems may choose any."""
    job = Job(ends=False)
    executor = SubmititExecutor(Cluster(tmp_path, job), poll=0.01)

    def press():
        signal.pthread_kill(whose().ident, signal.SIGINT)

    threading.Timer(0.5, press).start()
    with pytest.raises(KeyboardInterrupt) as error:
        run_experiment(client(), far.bench, executor=executor)
    assert job.is_cancelled
    executor.shutdown()  # the watcher has ended, too
    assert "Their calls were cancelled" in error.value.__notes__[0]


# --- Dask -----------------------------------------------------------------------------


def test_dask_begins_a_call_once():
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(n_workers=1, threads_per_worker=1, **options) as there:
            once, row = begun_once(far.bench), {"pool_index": 2}
            assert there.submit(once, row).result() == far.bench(row)
            fails = begun_once(far.leave_by_error)
            with pytest.raises(KeyError):
                there.submit(fails, {}, pure=False).result()
            with pytest.raises(RuntimeError, match="is not begun again by itself"):
                there.submit(fails, {}, pure=False).result()


@pytest.mark.slow
def test_a_worker_of_dask_that_dies_is_no_second_measurement(tmp_path):
    distributed = pytest.importorskip("distributed")
    notes = tmp_path / "notes.txt"
    evaluate = functools.partial(far.die_the_first_time, notes=str(notes))
    options = {"processes": True, "dashboard_address": None, "silence_logs": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(n_workers=2, threads_per_worker=1, **options) as there:
            executor = there.get_executor(pure=False)
            with pytest.raises(RuntimeError, match="is not begun again by itself"):
                run_experiment(client(), evaluate, executor=executor, max_pending=1)
            time.sleep(1)
    assert notes.read_text().count("begun") == 1


# --- Ctrl-C, as scripts and notebooks give it -----------------------------------------


@contextlib.contextmanager
def executor_of(name, folder):
    if name in ("dask", "ray"):
        with executor_on(name, 2) as executor:
            yield executor
    elif name == "submitit":
        yield SubmititExecutor(submitit.LocalExecutor(folder=folder), poll=0.05)
    else:
        with {"threads": threads, "processes": processes}[name]() as pool:
            yield pool


def hang_until_interrupted(name, folder):
    r"""What a script does whose evaluations hang; what the interrupt says is noted."""
    os.setsid()  # a group of its own, to which a terminal's Ctrl-C goes
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Those of Dask and submitit import this package's tests from here.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    evaluate = functools.partial(far.hang_noted, folder=folder)
    try:
        with executor_of(name, folder) as executor:
            options = {"executor": executor, "max_pending": 2, "progress": False}
            try:
                run_experiment(client(), evaluate, **options)
            finally:
                Path(folder, "left").touch()
    except KeyboardInterrupt as error:
        Path(folder, "notes").write_text("\n".join(error.__notes__))


@pytest.mark.some(1)
@pytest.mark.skipif(not hasattr(os, "setsid"), reason="signals go to a group")
@pytest.mark.parametrize("to", [os.kill, os.killpg])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("threads", "go on until this process ends"),
        ("processes", "were ended"),
        pytest.param("dask", "were cancelled", marks=pytest.mark.slow),
        pytest.param("submitit", "were cancelled", marks=pytest.mark.slow),
    ],
)
def test_a_script_ends_soon_after_ctrl_c_though_its_evaluations_hang(
    name, words, to, tmp_path
):
    check_ctrl_c(name, words, to, tmp_path)


def check_ctrl_c(name, words, to, tmp_path):
    r"""A script whose evaluations hang on an executor, and Ctrl-C."""
    # What is promised is a time, two seconds; a busy machine is given ten times that.
    script = CONTEXT.Process(target=hang_until_interrupted, args=(name, str(tmp_path)))
    script.start()
    try:
        end = time.monotonic() + 120
        while len(list(tmp_path.glob("begun *"))) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        begun = time.time()
        to(script.pid, signal.SIGINT)
        script.join(20)
        left = (tmp_path / "left").stat().st_mtime - begun
        whole = time.time() - begun
        print(f"{name}, {to.__name__}: the run {left:.1f} s, the script {whole:.1f} s")
        assert script.exitcode == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)
    said = (tmp_path / "notes").read_text()
    assert "Trials 0, 1 were being evaluated" in said
    assert words in said
