r"""Ray's workers as an executor, such as ``run_experiment`` and the benchmarks take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

from botorch_lse._validation import complaint

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    r"""An executor that calls functions as tasks on Ray's workers.

    A task is never begun twice (Ray's own default begins one again whose worker died):
    what was measured once would be measured again unseen. If a worker dies, its call
    alone ends with Ray's error, and ``run_experiment(on_error=)`` says what then.
    ``future.cancel()`` cancels the task, and ends the worker that has begun it.

    Example:
        >>> _ = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        >>> with RayExecutor() as executor:
        ...     executor.submit(lambda x: 2 * x, 21).result()
        42
        >>> ray.shutdown()

    ``run_experiment(client, evaluate, executor=RayExecutor())`` makes a task of each
    trial.

    Args:
        options: As of ``ray.remote``, such as ``num_cpus=4`` or ``resources``.

    Raises:
        ValueError: If Ray is not connected, or retries are asked for.
    """

    def __init__(self, **options: Any) -> None:
        if not ray.is_initialized():
            wanted = "to be connected before an executor is made"
            came = "it is not"
            raise ValueError(complaint("ray", wanted, came, "Call `ray.init()`."))
        if options.get("max_retries", 0) != 0:
            raise ValueError(
                complaint(
                    "max_retries",
                    "to be left out",
                    f"got {options['max_retries']!r}",
                    'Write `run_experiment(..., on_error="retry")`.',
                )
            )
        self._options = {**options, "max_retries": 0}

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        r"""Begin a call on a worker.

        Args:
            fn: Pickled by ``cloudpickle``.
            args: Its arguments.
            kwargs: Its arguments by name.
        """

        def call(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)  # Ray takes functions, not all that is called

        task = ray.remote(**self._options)(call)
        return _TaskFuture(task.remote(*args, **kwargs))


class _TaskFuture(Future[Any]):
    r"""The result of a task, which is cancelled with it.

    Ray's own future is not cancelled with its task: a waiting task would begin after
    its call was given up.

    Args:
        task: Ray's reference of the result.
    """

    def __init__(self, task: Any) -> None:
        super().__init__()
        self._task = task
        task.future().add_done_callback(self._take)

    def cancel(self) -> bool:
        r"""Cancel the task; its worker is ended, and others take over."""
        is_cancelled = super().cancel()  # first: Ray may answer at once
        if is_cancelled:
            # A mere interrupt does not reach a call that waits for a device.
            ray.cancel(self._task, force=True)
        return is_cancelled

    def _take(self, ended: Future[Any]) -> None:
        if not self.set_running_or_notify_cancel():
            return
        if (error := ended.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(ended.result())
