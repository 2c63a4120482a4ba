r"""Evaluations in flight on any executor, and what to do when a worker dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

Parameters = dict[str, Any]
Evaluate = Callable[[Parameters], Any]
MakeExecutor = Callable[[], Executor]

_REMEDY = (
    "Write `executor=lambda: ThreadPoolExecutor(2)`, or `ProcessPoolExecutor`, from "
    "`concurrent.futures`."
)


@dataclass(frozen=True)
class Finished:
    r"""A trial that ended.

    Args:
        trial: Its index.
        parameters: Its parameterization.
        value: What the evaluation returned.
        error: What it raised, if it did.
    """

    trial: int
    parameters: Parameters
    value: Any = None
    error: Exception | None = None


class Workers:
    r"""Evaluates parameterizations, in this process or on an executor.

    When a worker process dies, an executor gives up all that it holds, and nobody knows
    which evaluation was the cause. They are then run again one at a time on a new
    executor: the one that kills a worker alone is the cause, the others are not blamed.

    Args:
        evaluate: A function of a parameterization.
        executor: An executor, or a function that makes one and can make another after a
            crash; ``None``: one evaluation after the other in this process.

    Raises:
        ValueError: If one of them is something else.
    """

    def __init__(
        self, evaluate: Evaluate, executor: Executor | MakeExecutor | None = None
    ) -> None:
        if not callable(evaluate):
            raise ValueError(
                "Expected `evaluate` to be a function of a parameterization, but got "
                f"{evaluate!r}. Write `def evaluate(parameters): return value`."
            )
        self._evaluate = evaluate
        self._make: MakeExecutor | None = None
        self._executor: Executor | None = None
        if isinstance(executor, Executor):
            self._executor = executor
        elif executor is not None:
            self._make, self._executor = executor, _made(executor)
        self._queue: deque[tuple[int, Parameters]] = deque()
        self._suspects: deque[tuple[int, Parameters]] = deque()
        self._flying: dict[Future[Any], tuple[int, Parameters]] = {}
        self.ended: deque[Finished] = deque()
        r"""What has ended and was not taken yet."""

    def __len__(self) -> int:
        return len(self._queue) + len(self._suspects) + len(self._flying)

    def submit(self, trial: int, parameters: Parameters) -> None:
        r"""Evaluate a trial."""
        self._queue.append((trial, parameters))

    def wait(self) -> None:
        r"""Wait until an evaluation ends: it is then among ``ended``.

        They lie there until they are taken one by one, so that an interrupt at any
        moment loses none.

        Raises:
            BrokenExecutor: If a worker died and no other executor can be made.
        """
        self._send()
        if self._flying:
            done, _ = wait(self._flying, return_when=FIRST_COMPLETED)
            self._collect(done)

    def look(self) -> None:
        r"""Put what has been measured among ``ended``, without waiting."""
        self._collect({f for f in self._flying if f.done() and _has_result(f)})

    def close(self) -> None:
        r"""Take back what has not begun; shut down an executor made here."""
        for future in self._flying:
            future.cancel()
        if self._make is not None and self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _send(self) -> None:
        while self._queue or self._suspects:
            source = self._suspects or self._queue
            if self._flying and (self._suspects or self._executor is None):
                return  # suspects run alone, as all do in this process
            trial, parameters = source[0]
            try:
                future = self._begin(parameters)
            except BrokenExecutor:
                if not self._flying:
                    raise
                return  # the crash is noticed by those in flight
            self._flying[future] = trial, parameters
            source.popleft()
            if source is self._suspects:
                return

    def _begin(self, parameters: Parameters) -> Future[Any]:
        if self._executor is not None:
            return self._executor.submit(self._evaluate, parameters)
        future: Future[Any] = Future()
        try:
            future.set_result(self._evaluate(parameters))
        except Exception as error:  # the caller decides what becomes of it
            future.set_exception(error)
        return future

    def _was_lost(self, future: Future[Any]) -> bool:
        if self._executor is None or future.cancelled():
            return False
        return isinstance(future.exception(), BrokenExecutor)

    def _collect(self, done: set[Future[Any]]) -> None:
        if any(self._was_lost(future) for future in done):
            wait(self._flying)  # a broken executor ends all of them
            done = set(self._flying)
        lost: deque[Finished] = deque()
        for future in sorted(done, key=lambda f: self._flying[f][0]):
            trial, parameters = self._flying.pop(future)
            to = lost if self._was_lost(future) else self.ended
            try:
                to.append(Finished(trial, parameters, future.result()))
            except Exception as error:
                to.append(Finished(trial, parameters, error=error))
        if lost and self._make is None:
            trials = ", ".join(str(finished.trial) for finished in lost)
            assert lost[0].error is not None
            lost[0].error.add_note(
                f"A worker died while trials {trials} were evaluated; they are still "
                "running in the experiment and will be asked again. To go on by itself "
                "after a crash, a run needs a function that makes an executor, such as "
                "`executor=lambda: ProcessPoolExecutor(2)`."
            )
            raise lost[0].error
        if lost and self._make is not None:
            self._executor = self._make()
            if len(lost) == 1:
                self.ended += lost
            else:
                self._suspects += [(f.trial, f.parameters) for f in lost]


def _made(make: MakeExecutor) -> Executor:
    if not callable(make):
        raise ValueError(
            "Expected `executor` to be an Executor or a function that makes one, but "
            f"got {make!r}. {_REMEDY}"
        )
    executor = make()
    if not hasattr(executor, "submit"):
        raise ValueError(
            f"Expected `executor` to make an Executor, but it made {executor!r}. "
            f"{_REMEDY}"
        )
    return executor


def _has_result(future: Future[Any]) -> bool:
    return not future.cancelled() and future.exception() is None
