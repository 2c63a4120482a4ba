r"""Slurm, through submitit, as an executor, such as ``run_experiment`` takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures import wait as await_all
from threading import Lock, Thread
from typing import Any

import submitit

from botorch_lse._validation import in_interval, of_type

__all__ = ["SubmititExecutor"]


_PATIENCE = 600.0
"""The seconds for which a job may be out of sight before its call fails."""


class SubmititExecutor(Executor):
    r"""An executor that calls functions as jobs of a cluster.

    Each call is a job of its own. Its result is noticed within ``poll`` seconds after
    submitit knows of it, which on Slurm takes up to a minute. A job that fails or is
    cancelled ends its call with submitit's error, which holds the job's own traceback.
    ``future.cancel()`` cancels the job. While the folder of the jobs cannot be read it
    is looked at again, for ten minutes.

    Example:
        >>> from tempfile import mkdtemp  # on Slurm a folder that all nodes see
        >>> cluster = submitit.AutoExecutor(folder=mkdtemp(), cluster="local")
        >>> cluster.update_parameters(timeout_min=60)
        >>> with SubmititExecutor(cluster, poll=0.1) as executor:
        ...     executor.submit(pow, 2, 10).result()
        1024

    Without ``cluster`` it is Slurm. ``run_experiment(client, evaluate,
    executor=executor, max_pending=8)`` makes a job of each trial.

    Args:
        executor: Submitit's, for Slurm or, with ``cluster="local"``, this machine.
        poll: Seconds between two looks at the jobs.

    Raises:
        ValueError: If ``executor`` is not of submitit, or ``poll`` not positive.
    """

    def __init__(self, executor: submitit.Executor, poll: float = 1.0) -> None:
        remedy = 'Write `submitit.AutoExecutor(folder="jobs")`.'
        of_type(
            executor, submitit.Executor, "executor", "an executor of submitit", remedy
        )
        self._cluster = executor
        self._poll = in_interval(poll, "poll", 0.0, float("inf"))
        self._jobs: dict[Future[Any], submitit.Job[Any]] = {}
        self._watcher: Thread | None = None
        self._lock = Lock()

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        r"""Submit a job.

        Args:
            fn: Pickled by ``cloudpickle``.
            args: Its arguments.
            kwargs: Its arguments by name.
        """
        job = self._cluster.submit(fn, *args, **kwargs)
        future = _JobFuture(job)
        with self._lock:
            self._jobs[future] = job
            if self._watcher is None:
                self._watcher = Thread(target=self._watch, daemon=True)
                self._watcher.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        r"""Wait for the jobs that are left, or cancel them.

        Args:
            wait: Whether to wait for the jobs that are left.
            cancel_futures: Whether to cancel these before.
        """
        with self._lock:
            jobs = dict(self._jobs)
        if cancel_futures:
            for job in jobs.values():
                job.cancel(check=False)
        if wait:  # not for jobs whose calls were cancelled, which may not obey
            await_all([future for future in jobs if not future.cancelled()])

    def _watch(self) -> None:
        failing = dict[Future[Any], float]()
        while True:
            for future, job in list(self._jobs.items()):
                try:
                    # One that was cancelled, too: its process is still to end.
                    if not job.done():
                        failing.pop(future, None)
                        continue
                except OSError as error:  # a drive that is away for a moment
                    since = failing.setdefault(future, time.monotonic())
                    if time.monotonic() - since < _PATIENCE:
                        continue
                    _finish(future, error)
                except Exception as error:
                    _finish(future, error)
                else:
                    _finish(future, job)
                with self._lock:
                    del self._jobs[future]
            with self._lock:
                if not self._jobs:
                    self._watcher = None
                    return
            time.sleep(self._poll)


class _JobFuture(Future[Any]):
    r"""The result of a job, which is cancelled with it.

    Args:
        job: The job.
    """

    def __init__(self, job: submitit.Job[Any]) -> None:
        super().__init__()
        self._job = job

    def cancel(self) -> bool:
        if not self.done():
            self._job.cancel(check=False)
        return super().cancel()


def _finish(future: Future[Any], job: submitit.Job[Any] | Exception) -> None:
    r"""Give a call its result, or the error with which it ended."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        if isinstance(job, Exception):
            raise job
        future.set_result(job.result())
    except Exception as error:  # that of the function, or of the cluster
        future.set_exception(error)
