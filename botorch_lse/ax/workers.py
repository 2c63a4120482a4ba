r"""Evaluations in flight on any executor, and what to do when a worker dies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    wait,
)
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
        if self._executor is None:
            trial, parameters = self._queue[0]
            self.ended.append(
                self._ended(trial, parameters, self._evaluate, parameters)
            )
            self._queue.popleft()
            return
        self._send(self._executor)
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

    def _send(self, executor: Executor) -> None:
        while self._queue or self._suspects:
            source = self._suspects or self._queue
            if self._suspects and self._flying:
                return  # suspects run alone
            trial, parameters = source[0]
            try:
                future = executor.submit(self._evaluate, parameters)
            except BrokenExecutor:
                if not self._flying:
                    raise
                return  # those in flight tell of the crash
            source.popleft()
            self._flying[future] = trial, parameters
            if source is self._suspects:
                return

    def _collect(self, done: set[Future[Any]]) -> None:
        if any(_was_lost(future) for future in done):
            wait(self._flying)  # a broken executor ends all of them
            done = set(self._flying)
        lost = []
        for future in sorted(done, key=lambda f: self._flying[f][0]):
            trial, parameters = self._flying.pop(future)
            if _was_lost(future):
                lost.append((trial, parameters, future))
            else:
                self.ended.append(self._ended(trial, parameters, future.result))
        if lost:
            self.ended += self._after_crash(lost)

    def _after_crash(
        self, lost: list[tuple[int, Parameters, Future[Any]]]
    ) -> list[Finished]:
        crash = lost[0][2].exception()
        if self._make is None:
            assert isinstance(crash, BrokenExecutor)
            trials = ", ".join(str(trial) for trial, *_ in lost)
            crash.add_note(
                f"A worker died while trials {trials} were evaluated; they are still "
                "running in the experiment and will be asked again. To go on by itself "
                "after a crash, a run needs a function that makes an executor, such as "
                "`executor=lambda: ProcessPoolExecutor(2)`."
            )
            raise crash
        self._executor = self._make()
        if len(lost) == 1:
            trial, parameters, _ = lost[0]
            assert isinstance(crash, Exception)
            return [Finished(trial, parameters, error=crash)]
        self._suspects.extend((trial, parameters) for trial, parameters, _ in lost)
        return []

    def _ended(
        self, trial: int, parameters: Parameters, call: Callable[..., Any], *args: Any
    ) -> Finished:
        try:
            return Finished(trial, parameters, call(*args))
        except Exception as error:  # the caller decides what becomes of it
            return Finished(trial, parameters, error=error)


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


def _was_lost(future: Future[Any]) -> bool:
    return not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


def _has_result(future: Future[Any]) -> bool:
    return not future.cancelled() and future.exception() is None
