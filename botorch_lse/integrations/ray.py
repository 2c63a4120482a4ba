r"""Ray's workers as an executor, such as ``run_experiment`` and the benchmarks take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

from botorch_lse.checks import complaint

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    r"""Calls functions as tasks on Ray's workers.

    A task is never begun twice (Ray's own default begins one again whose worker died):
    what was measured once would be measured again unseen. If a worker dies, its call
    alone ends with Ray's error, and ``run_experiment(on_error=)`` says what then.

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
        task = ray.remote(**self._options)(fn)
        future: Future[Any] = task.remote(*args, **kwargs).future()
        return future
