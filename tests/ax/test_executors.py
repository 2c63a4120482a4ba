r"""Ray and Slurm's submitit as executors, with the real packages on this machine."""

import functools
import gc
import multiprocessing
import os
import signal
import time
import warnings
from concurrent.futures import as_completed
from pathlib import Path

import pytest
import submitit
from ax.api.client import Client
from ax.core.trial_status import TrialStatus
from submitit.core.utils import UncompletedJobError

from botorch_lse import Pool
from botorch_lse.ax import (
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
    save_client,
)
from botorch_lse.integrations.submitit import SubmititExecutor
from botorch_lse.strategies import LSEStrategy
from research.benchmark.engines import ENGINES, executor_on

from . import far
from .test_workers import check_ctrl_c
from .worlds import same_state, state_of

STRATEGY = LSEStrategy(
    Pool([[float(i)] for i in range(6)]),
    0.7,
    noise_std=0.05,
    batch_size=3,
    n_initial=3,
    max_observations=6,
)


engine = pytest.mark.engine
"""On the engines that `make test` does not install."""


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="needs the extra `engines`")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=10**8,
    )
    from botorch_lse.integrations.ray import RayExecutor

    yield RayExecutor
    ray.shutdown()
    with warnings.catch_warnings():  # it does not wait for what it has ended
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(params=[pytest.param("ray", marks=engine), "submitit"])
def executor(request, tmp_path):
    if request.param == "ray":
        return request.getfixturevalue("cluster")()
    local = submitit.LocalExecutor(folder=tmp_path / "jobs")
    return SubmititExecutor(local, poll=0.05)


def client():
    made = Client()
    made.configure_experiment(parameters=pool_parameters(STRATEGY.pool), name="test")
    made.configure_optimization(objective="y")
    made.set_generation_strategy(level_set_generation_strategy(STRATEGY, seed=1))
    return made


# Scripts with clusters of their own, before this process has one.


@engine
@pytest.mark.parametrize("to", [os.kill, os.killpg])
def test_a_script_on_ray_ends_soon_after_ctrl_c(to, tmp_path):
    pytest.importorskip("ray", reason="needs the extra `engines`")
    check_ctrl_c("ray", "were cancelled", to, tmp_path)


def go_on_there(name, path):
    r"""Go on with a stored run on an engine, in a process that may be killed."""
    # The engines' own processes import this package's tests from here.
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    os.chdir(Path(path).parent)  # where submitit's jobs lie
    made = Client.load_from_json_file(path)
    with executor_on(name, 2) as executor:
        run_experiment(
            made, far.slow_bench, executor=executor, storage=path, progress=False
        )


def n_completed(path):
    experiment = Client.load_from_json_file(path)._experiment
    return len(experiment.trial_indices_by_status[TrialStatus.COMPLETED])


@pytest.mark.some(0, slow=1)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a run")
@pytest.mark.parametrize(
    "name", [pytest.param(e, marks=[engine] * (e == "ray")) for e in ENGINES]
)
def test_a_run_that_is_killed_goes_on_there(name, tmp_path):
    path, new = str(tmp_path / "run.json"), multiprocessing.get_context("spawn").Process
    save_client(client(), path)
    killed = new(target=go_on_there, args=(name, path))
    killed.start()
    until = time.monotonic() + 120
    while n_completed(path) == 0 and killed.is_alive() and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()
    assert 0 < n_completed(path) < 6  # it was cut midway
    again = new(target=go_on_there, args=(name, path))
    again.start()
    again.join(240)
    assert again.exitcode == 0
    here = client()
    run_experiment(here, far.bench)
    assert same_state(state_of(Client.load_from_json_file(path)), state_of(here))


@pytest.mark.slow
def test_calls_end_in_any_order_with_their_own_results(executor):
    futures = {executor.submit(far.square, i, wait=0.2 * (i == 0)): i for i in range(4)}
    found = {futures[future]: future.result(60) for future in as_completed(futures, 60)}
    assert found == {0: 0, 1: 1, 2: 4, 3: 9}
    executor.shutdown()
    assert executor.submit(far.square, 5).result(60) == 25  # a new watcher, if any


def check_deaths(executor, death):
    futures = [executor.submit(f, 7) for f in (far.fail, far.die, far.square)]
    with pytest.raises(Exception, match="broken bench 7"):
        futures[0].result(60)
    with pytest.raises(death):
        futures[1].result(60)
    assert futures[2].result(60) == 49


@engine
def test_errors_and_deaths_end_their_call_alone(cluster):
    from ray.exceptions import WorkerCrashedError

    check_deaths(cluster(), WorkerCrashedError)


@engine
def test_tasks_of_ray_are_cancelled_with_their_calls(cluster, tmp_path):
    executor = cluster()
    rows = [{"pool_index": i} for i in range(4)]  # on two workers
    futures = [executor.submit(far.hang_noted, row, str(tmp_path)) for row in rows]
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.05)
    assert all(future.cancel() for future in futures)
    assert executor.submit(far.square, 3).result(60) == 9  # they are free again
    assert len(list(tmp_path.iterdir())) == 2  # and the others never began


@engine
@pytest.mark.parametrize("what", ["die", "raise", "hang"])
def test_what_breaks_on_ray_fails_once_and_frees_its_worker(cluster, what, tmp_path):
    made = client()
    evaluate = functools.partial(far.break_once, folder=str(tmp_path), what=what, at=0)
    # One worker: nothing else is evaluated unless that of the broken call is replaced.
    # Where a busy machine begins a new one late, its call is overdue and made again.
    options = {"timeout": 20.0 if what == "hang" else None, "max_retries": 9}
    executor = cluster(num_cpus=2)
    run_experiment(made, evaluate, executor=executor, on_error="retry", **options)
    trials = made._experiment.trials.values()
    assert {trial.status.name for trial in trials} == {"COMPLETED"}
    begun = [path.name.partition("-")[0] for path in tmp_path.glob("*-*")]
    assert len(begun) > len(trials)
    if what != "hang":  # as it is told, nothing is begun again unseen
        assert len(begun) == len(trials) + 1
    here = client()
    run_experiment(here, far.bench)
    assert same_state(state_of(made), state_of(here))


@engine
def test_on_ray_a_call_that_hangs_fails_as_on_error_says(cluster, tmp_path):
    made = client()
    evaluate = functools.partial(far.hang_noted, folder=str(tmp_path))
    with pytest.raises(TimeoutError, match="longer than `timeout`"):
        run_experiment(made, evaluate, executor=cluster(), timeout=0.5)
    assert cluster(num_cpus=2).submit(far.square, 3).result(60) == 9  # both are free


@pytest.mark.slow  # submitit waits for the file system before it gives a job up
def test_errors_and_deaths_of_jobs_end_their_call_alone(tmp_path):
    local = submitit.LocalExecutor(folder=tmp_path)
    check_deaths(SubmititExecutor(local, poll=0.05), UncompletedJobError)


def test_a_run_is_that_of_one_process(executor):
    there, here = client(), client()
    run_experiment(there, far.bench, executor=executor)
    run_experiment(here, far.bench)
    assert same_state(state_of(there), state_of(here))
    assert state_of(there).is_done


@pytest.mark.slow
def test_a_run_goes_on_after_a_bench_broke(executor):
    made = client()
    with pytest.raises(Exception, match="broken bench"):
        run_experiment(made, far.fail, executor=executor)
    run_experiment(made, far.bench, executor=executor)
    here = client()
    run_experiment(here, far.bench)
    assert same_state(state_of(made), state_of(here))


@pytest.mark.slow
def test_jobs_are_cancelled_with_the_executor(tmp_path):
    local = submitit.LocalExecutor(folder=tmp_path)
    executor = SubmititExecutor(local, poll=0.05)
    # A local job is cancelled by the signal that background processes may ignore.
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        future = executor.submit(far.square, 3, wait=60.0)
    finally:
        signal.signal(signal.SIGINT, ours)
    executor.shutdown(cancel_futures=True)
    with pytest.raises(UncompletedJobError):
        future.result(10)


@engine
def test_ray_does_not_repeat_calls_by_itself(cluster):
    with pytest.raises(ValueError, match=r'on_error="retry"'):
        cluster(max_retries=2)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="AutoExecutor"):
        SubmititExecutor("slurm")
    with pytest.raises(ValueError, match="poll"):
        SubmititExecutor(submitit.LocalExecutor(folder="jobs"), poll=0.0)


@engine
def test_ray_must_be_connected(cluster, monkeypatch):
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ValueError, match=r"ray\.init\(\)"):
        cluster()
