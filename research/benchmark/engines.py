r"""Where many runs are made: processes of this machine, or a cluster's workers.

A run is a function of its job, so that results do not depend on where it was made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from botorch_lse._validation import complaint
from research.benchmark.registry import Options
from research.benchmark.speed import one_thread

ENGINES = ("processes", "dask", "ray", "submitit")
_NEEDS = {"dask": ("distributed", "dask"), "ray": ("ray",), "submitit": ("submitit",)}
FOLDER = Path("submitit_jobs")
"""Where submitit's jobs and their logs lie."""
TIMEOUT = 240
"""Minutes after which Slurm ends a run."""
Result = TypeVar("Result")


@contextmanager
def executor_on(engine: str, workers: int) -> Iterator[Executor]:
    r"""An executor that ends with the context.

    Args:
        engine: ``"processes"``; ``"dask"``, ``"ray"``: the cluster that the package's
            own settings name (``DASK_SCHEDULER_ADDRESS``, ``RAY_ADDRESS``), else
            one on this machine; ``"submitit"``: Slurm where there is one.
        workers: How many work on this machine; a cluster has as many as it has.

    Raises:
        ValueError: If the engine's package is not installed.
    """
    _check_installed(engine)
    if engine == "dask":
        yield from _on_dask(workers)
    elif engine == "ray":
        yield from _on_ray(workers)
    elif engine == "submitit":
        yield from _on_slurm()
    else:
        with ProcessPoolExecutor(workers, get_context("spawn"), one_thread) as executor:
            yield executor


def on_one_thread(run: Callable[[Any], Any], job: Any) -> Any:
    r"""Run a job on one core of a worker that may have more.

    Args:
        run: A function of a module.
        job: What it takes.
    """
    one_thread()
    return run(job)


def over_seeds(
    run: Callable[[int], Result], options: Options, title: str
) -> list[Result]:
    r"""What a run gives with the seeds ``0, ..., options.runs - 1``: see ``over``."""
    return over(run, range(options.runs), options, title)


def over(
    run: Callable[[Any], Result], jobs: Sequence[Any], options: Options, title: str
) -> list[Result]:
    r"""What a run gives with each job, in their order.

    In this process unless the options name workers or an engine.

    Args:
        run: From a job to a result; for other processes it must be picklable, as a
            ``partial`` of a function of a module is.
        jobs: Seeds, or whatever a run takes.
        options: The command line's.
        title: Stands before the progress bar.
    """
    bar = partial(tqdm, total=len(jobs), desc=title, disable=None, leave=False)
    if options.workers is None and options.engine == "processes":
        return [run(job) for job in bar(jobs)]
    workers = options.workers or os.cpu_count() or 1
    with executor_on(options.engine, workers) as executor:
        futures = [executor.submit(on_one_thread, run, job) for job in jobs]
        for future in bar(as_completed(futures)):
            future.result()  # a failure ends it all
        return [future.result() for future in futures]


def _check_installed(engine: str) -> None:
    for module in _NEEDS.get(engine, ())[:1]:
        try:
            import_module(module)
        except ImportError as error:
            wanted = "to name an engine whose package is installed"
            came = f"{module} is not"
            extra = f"Write `pip install 'botorch-lse[{engine}]'`."
            raise ValueError(complaint("--engine", wanted, came, extra)) from error


def _on_dask(workers: int) -> Iterator[Executor]:
    from dask import config
    from distributed import Client, LocalCluster

    address = config.get("scheduler-address", None)
    # One thread each: fits of a model use torch's random numbers, which threads share.
    if address is not None:
        with Client(address) as client:
            yield client.get_executor(pure=False)
        return
    local = LocalCluster(workers, threads_per_worker=1, dashboard_address=None)
    with local, Client(local) as client:
        yield client.get_executor(pure=False)


def _on_ray(workers: int) -> Iterator[Executor]:
    import ray

    from botorch_lse.integrations.ray import RayExecutor

    is_ours = not ray.is_initialized()
    if is_ours:
        # A cluster that is there has the size it has.
        size = None if "RAY_ADDRESS" in os.environ else workers
        ray.init(num_cpus=size, include_dashboard=False, log_to_driver=False)
    try:
        yield RayExecutor(num_cpus=1)
    finally:
        if is_ours:
            ray.shutdown()


def _on_slurm() -> Iterator[Executor]:
    import submitit

    from botorch_lse.integrations.submitit import SubmititExecutor

    cluster = submitit.AutoExecutor(folder=FOLDER)
    cluster.update_parameters(timeout_min=TIMEOUT, cpus_per_task=1)
    executor = SubmititExecutor(cluster)
    yield executor
    executor.shutdown()
