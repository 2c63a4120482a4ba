r"""Evaluations in flight: handed to an executor, awaited, given up, ended.

The only module that knows how executors differ: threads cannot be ended, processes can,
and Dask begins a call again whose worker died.
"""

from __future__ import annotations

import math
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import nullcontext
from threading import Event, Thread
from typing import Any, NamedTuple

from botorch_lse.ax.recording import uninterrupted

PULSE = 0.5
"""The seconds of one wait.
Interrupts of other threads, and all on Windows, are seen once a wait has ended."""

Parameters = dict[str, Any]
Evaluate = Callable[[Parameters], Any]
MakeExecutor = Callable[[], Executor]


class Evaluation(NamedTuple):
    r"""The evaluation of a trial, before or after it has run.

    Args:
        trial: The index of the trial.
        parameters: The parameterization of the trial.
        value: The value that the evaluation returned.
        error: What it raised, if it did.
    """

    trial: int
    parameters: Parameters
    value: Any = None
    error: Exception | None = None


class Workers:
    r"""A queue that evaluates parameterizations in this process or on an executor.

    When a worker process dies, an executor gives up all that it holds, and nobody knows
    which evaluation was the cause. They are then run again one at a time on a new
    executor: the one that kills a worker alone is the cause, the others are not blamed.

    Args:
        evaluate: A function of a parameterization.
        executor: An executor, or a function that makes one and can make another after a
            crash; ``None``: one evaluation after the other in this process.
        timeout: Seconds that an evaluation may take; ``None``: any time.

    Raises:
        ValueError: If one of them is something else.
    """

    def __init__(
        self,
        evaluate: Evaluate,
        executor: Executor | MakeExecutor | None = None,
        timeout: float | None = None,
    ) -> None:
        if not callable(evaluate):
            raise ValueError(
                "Expected `evaluate` to be a function of a parameterization, but got "
                f"{evaluate!r}. Write `def evaluate(parameters): return value`."
            )
        self._evaluate, self._timeout = evaluate, timeout
        self._make: MakeExecutor | None = None
        if executor is not None and not isinstance(executor, Executor):
            self._make, executor = executor, _executor_from(executor)
        self._executor = executor
        self._hung: list[Any] = []  # processes of pools in which a call hangs
        self._due: dict[Future[Any], float] = {}
        self._beside: dict[Future[Any], _Beside] = {}
        self._queue: deque[Evaluation] = deque()
        self._suspects: deque[Evaluation] = deque()
        self._running: dict[Future[Any], Evaluation] = {}
        self.finished: deque[Evaluation] = deque()
        r"""The evaluations that have ended and that nobody has taken from here yet."""

    def __len__(self) -> int:
        return len(self._queue) + len(self._suspects) + len(self._running)

    def submit(self, trial: int, parameters: Parameters) -> None:
        r"""Put a trial in the queue; ``wait`` starts it.

        Args:
            trial: The index of the trial.
            parameters: The parameterization of the trial.
        """
        self._queue.append(Evaluation(trial, parameters))

    def wait(self) -> None:
        r"""Start the queued evaluations and wait until one ends or is overdue.

        It is then in ``finished``, from where the caller takes one after the other once
        it is recorded, so that an interrupt at any moment loses none.

        Raises:
            BrokenExecutor: If a worker died and no other executor can be made.
        """
        self._start_evaluations()
        if self._running:
            due = min(self._due.get(f, math.inf) for f in self._running)
            done, left = set[Future[Any]](), math.inf
            while not done and left > 0:
                left = max(due - time.monotonic(), 0.0)
                pause = min(left, PULSE)
                done, _ = wait(self._running, pause, return_when=FIRST_COMPLETED)
            self._collect(done)
            self._give_up_overdue()

    def collect_finished(self) -> None:
        r"""Move evaluations with a result to ``finished``, without waiting."""
        done = (f for f in self._running if f.done() and not f.cancelled())
        self._collect({future for future in done if future.exception() is None})

    def close(self) -> None:
        r"""Cancel evaluations that have not begun; shut down an executor made here."""
        for future in self._running:
            future.cancel()
        if self._make is not None and self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
        if self._timeout is not None:  # whoever leaves a pool waits for its calls
            for beside in self._beside.values():
                beside.let_go()
        for process in self._hung:
            process.kill()

    def abandon(self, cause: BaseException) -> None:
        r"""End the running evaluations at once, as far as that is possible.

        Args:
            cause: Why, such as Ctrl-C; what was being evaluated is added to its notes.
        """
        if not self._running:
            return
        trials = ", ".join(sorted(str(each.trial) for each in self._running.values()))
        for future in self._running:
            future.cancel()
        for beside in self._beside.values():
            beside.let_go()
        if processes := processes_of(self._executor):
            for process in processes:
                process.kill()
            end = "The processes that evaluated them were ended."
        elif self._executor is None or self._beside:
            end = "Their threads go on until this process ends."
        else:
            end = "Their calls were cancelled; what a worker has begun may go on there."
        cause.add_note(
            f"Trials {trials} were being evaluated; they are still running in the "
            f"experiment, and the next call evaluates them again. {end}"
        )

    def _start_evaluations(self) -> None:
        while self._queue or self._suspects:
            source = self._suspects or self._queue
            if self._running and (self._suspects or self._executor is None):
                return  # suspects run alone, as all do in this process
            # In this process an evaluation runs at once, and may be interrupted.
            runs_here = self._executor is None and self._timeout is None
            try:
                with nullcontext() if runs_here else uninterrupted():
                    future = self._start(source[0].parameters)
                    self._running[future] = source[0]
                    source.popleft()
            except BrokenExecutor:
                if not self._running:
                    raise
                return  # the crash is noticed by those in flight
            if source is self._suspects:
                return

    def _start(self, parameters: Parameters) -> Future[Any]:
        executor, evaluate = self._executor, self._evaluate
        if isinstance(executor, ThreadPoolExecutor):
            beside = _Beside(evaluate)
            future = executor.submit(beside, parameters)
            self._beside[future] = beside
        elif executor is not None:
            if type(executor).__module__.startswith("distributed."):
                evaluate = begun_once(evaluate)
            future = executor.submit(evaluate, parameters)
        elif self._timeout is not None:
            future = in_thread(evaluate, parameters)
        else:
            future = Future()
            try:
                future.set_result(evaluate(parameters))
            except (Exception, SystemExit) as error:  # the caller decides what then
                future.set_exception(error)
        if self._timeout is not None:
            self._due[future] = time.monotonic() + self._timeout
        return future

    def _give_up_overdue(self) -> None:
        r"""Treat overdue evaluations as failed, and free their places."""
        now = time.monotonic()
        late = [f for f in self._running if self._due.get(f, math.inf) <= now]
        late = [future for future in late if not future.done()]
        for future in late:
            asked = self._taken(future)
            words = f"The evaluation took longer than `timeout`, {self._timeout:g} s."
            self.finished.append(asked._replace(error=TimeoutError(words)))
            if not future.cancel() and (processes := processes_of(self._executor)):
                self._hung += processes
                self._replace_executor()

    def _replace_executor(self) -> None:
        r"""Go on with another executor, if one can be made; nothing is begun twice.

        Calls begun on the old executor go on there; its processes end with the run.
        """
        if self._make is None or self._executor is None:
            return
        for future in [f for f in self._running if f.cancel()]:
            self._queue.appendleft(self._taken(future))
        self._executor.shutdown(wait=False)
        self._executor = self._make()

    def _taken(self, future: Future[Any]) -> Evaluation:
        r"""The evaluation of a call that is awaited no more."""
        self._due.pop(future, None)
        if (beside := self._beside.pop(future, None)) is not None:
            beside.let_go()
        return self._running.pop(future)

    def _was_lost(self, future: Future[Any]) -> bool:
        if self._executor is None or future.cancelled():
            return False
        return isinstance(future.exception(), BrokenExecutor)

    def _collect(self, done: set[Future[Any]]) -> None:
        if any(self._was_lost(future) for future in done):
            wait(self._running)  # a broken executor ends all of them
            done = set(self._running)
        lost: list[Evaluation] = []
        for future in sorted(done, key=lambda f: self._running[f].trial):
            to = lost if self._was_lost(future) else self.finished
            asked = self._taken(future)
            try:
                to.append(asked._replace(value=future.result()))
            except Exception as error:
                to.append(asked._replace(error=error))
            except SystemExit as error:  # it would end the script without a word
                # Not `code`, which is gone once Dask has changed how errors travel.
                code = error.args[0] if error.args else None
                ended = RuntimeError(f"The evaluation called `sys.exit({code!r})`.")
                ended.__cause__ = error
                to.append(asked._replace(error=ended))
        if lost and self._make is None:
            trials = ", ".join(str(evaluation.trial) for evaluation in lost)
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
                self.finished += lost
            else:
                self._suspects += [asked._replace(error=None) for asked in lost]


def _executor_from(make: MakeExecutor) -> Executor:
    executor = make() if callable(make) else None
    if not hasattr(executor, "submit"):
        found = f"it made {executor!r}" if callable(make) else f"got {make!r}"
        raise ValueError(
            "Expected `executor` to be an Executor or a function that makes one, but "
            f"{found}. Write `executor=lambda: ThreadPoolExecutor(2)`, or "
            "`ProcessPoolExecutor`, from `concurrent.futures`."
        )
    return executor


class _Beside:
    r"""A call in its own thread, for which a pool's thread waits until let go.

    Python waits for a pool's threads before it ends, but not for this one.

    Args:
        evaluate: What is called.
    """

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate, self._go = evaluate, Event()

    def __call__(self, parameters: Parameters) -> Any:
        if self._go.is_set():  # given up before it began
            raise TimeoutError
        future = in_thread(self._evaluate, parameters)
        future.add_done_callback(lambda _: self._go.set())
        self._go.wait()
        return future.result(timeout=0)

    def let_go(self) -> None:
        self._go.set()


def in_thread(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    r"""A call in a thread that does not keep Python from ending.

    Args:
        function: What is called.
        arguments: With what.
    """
    future: Future[Any] = Future()

    def run() -> None:
        try:
            result = function(*arguments)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    Thread(target=run, daemon=True).start()
    return future


def processes_of(executor: Executor | None) -> list[Any]:
    r"""The worker processes of a local pool; empty for other executors."""
    if not isinstance(executor, ProcessPoolExecutor):
        return []
    # Python 3.14 has `kill_workers`; before, nothing public ends one that hangs.
    return [*(getattr(executor, "_processes", None) or {}).values()]


def begun_once(evaluate: Evaluate) -> Evaluate:
    r"""An evaluation that Dask begins only once, though it repeats lost calls.

    The scheduler remembers that the call has begun, which outlives its worker.
    """
    name = f"botorch-lse-{uuid.uuid4().hex}"

    # Within a function, to be sent as it is: workers need not have this package.
    def begin(parameters: dict[str, Any]) -> Any:
        from distributed import Event as Mark
        from distributed import get_client

        mark = Mark(name, client=get_client())
        if mark.is_set():
            raise RuntimeError(
                "The worker that evaluated this died; the call is not begun again by "
                "itself."
            )
        mark.set()
        result = evaluate(parameters)
        mark.clear()  # which the scheduler then forgets
        return result

    return begin
