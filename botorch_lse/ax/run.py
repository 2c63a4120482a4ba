r"""An experiment from its first trial to its stop, parallel and safe from crashes."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from ax import Client
from ax.core import Experiment
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError, OptimizationComplete
from ax.exceptions.generation_strategy import MaxParallelismReachedException
from tqdm import tqdm

from botorch_lse._validation import in_interval, one_of, real_numbers, whole_number
from botorch_lse.ax import compat
from botorch_lse.ax.compat import complete_trial
from botorch_lse.ax.costs import add_cost, follow_costs
from botorch_lse.ax.ledger import complaint_of, is_noise, round_of
from botorch_lse.ax.node import LevelSetNode, learnt_metrics, level_set_nodes
from botorch_lse.ax.recording import Record, uninterrupted
from botorch_lse.ax.workers import Evaluate, Evaluation, MakeExecutor, Workers
from botorch_lse.models.outcomes import Binary, Quantity, of_failure

ON_ERROR = ("raise", "retry", "fail")
SHOWN = 10
"""The largest number of rows that a text lists."""
FAILED = (
    'Where a measurement failed, call `run_experiment(..., on_error="fail")`: its row '
    "is then asked for again in another trial."
)
"""The remedy for an evaluation without a result."""


def run_experiment(
    client: Client,
    evaluate: Evaluate,
    *,
    executor: Executor | MakeExecutor | None = None,
    storage: str | Path | None = None,
    max_trials: int | None = None,
    max_pending: int | None = None,
    on_error: Literal["raise", "retry", "fail"] = "raise",
    max_retries: int = 2,
    timeout: float | None = None,
    progress: bool | None = None,
) -> str:
    r"""Ask, evaluate and record until the strategy is done.

    After each finished trial, and after each time that trials were asked for, the
    experiment is on the disk. The run may be interrupted (Ctrl-C) or killed at any
    moment: load the client and call this again. What was recorded is there, trials that
    were running are evaluated again under their index (also those attached by hand),
    and the next batch is the one that the run would have asked for. Of results that end
    together all that can be recorded are, whatever becomes of the others; where the
    disk is full, the error names what is not stored yet, and another call with the same
    client writes it.

    One run at a time holds a file, or an experiment in an SQLite file: a second one is
    refused, in another process or thread. So is a client that does not know all trials
    there, because it was loaded before they were made or ended. The lock is that of the
    operating system: it ends with its process, however that dies. A writer without it,
    such as ``client.save_to_json_file``, is noticed, and the run stops and leaves what
    is there; in databases other than SQLite every second writer is noticed like this,
    within the transaction. Locks do not reach from machine to machine on a network
    drive that does not pass them on.

    The executor is any ``concurrent.futures.Executor``: threads, processes (then
    ``evaluate`` must stand at the top level of a module),
    ``dask.distributed.Client(...).get_executor(pure=False)`` (not pure: a repeated row
    is measured again), ``botorch_lse.integrations.ray.RayExecutor()``, or Slurm by
    ``botorch_lse.integrations.submitit.SubmititExecutor(executor)``.

    Ctrl-C ends the call at once, whatever the evaluations do: worker processes are
    ended, jobs cancelled, and the error's notes name the trials that were being
    evaluated and what may still run. For that, an evaluation on a pool of threads runs
    in a thread of its own beside the pool's. ``SystemExit`` in an evaluation is an
    error like others.

    Set ``OMP_NUM_THREADS=1`` for workers that use torch or numpy.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy, pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> strategy = LSEStrategy(pool, threshold=0.2, noise_std=0.01, beta=4.0)
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="run")
        >>> client.configure_optimization(objective="y")
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> def evaluate(parameters):
        ...     return float(pool.X[parameters["pool_index"], 0]), 0.01
        >>> with ThreadPoolExecutor(2) as threads:
        ...     reason = run_experiment(client, evaluate, executor=threads)
        >>> reason.split(";")[0]
        '3 of 3 rows decided'

    Args:
        client: With experiment, objective and generation strategy.
        evaluate: From a parameterization to a number, ``(mean, sem)``, or a dictionary
            of these by metric, which a strategy of several outputs needs, and which may
            hold further metrics. Where a level-set strategy has costs, the trial's is
            recorded as the tracking metric ``cost`` (see ``CostMetric``), unless it is
            among them.
        executor: Where to evaluate; or a function that makes an executor, which is
            called again when a worker dies (``lambda: ProcessPoolExecutor(2)``).
            Default: in this process, one after the other.
        storage: A JSON file for ``Client.load_from_json_file``, or a symbolic link to
            one, which stays. Beside it lies the empty ``.<file>.lock``. A client with a
            ``storage_config`` writes to its database, one transaction each time.
        max_trials: The number of finished trials after which this call stops, including
            trials that were running before; further ones stay running.
        max_pending: The most trials that run at once; default the rest of the round for
            a level-set strategy with a ``batch_size``, else 1. Give the number of
            workers where the strategy is asynchronous, or has no batch size.
        on_error: What becomes of a trial whose evaluation raises, kills its worker or
            returns something that is no result, be it in a further metric.
            ``"raise"``: the others' results are recorded, the error is raised, and the
            trial stays running, to be evaluated in the next call. It is the default
            because a mistake in ``evaluate`` itself would otherwise use up all rows.
            ``"retry"``: it is
            evaluated up to ``max_retries`` times more under its index. ``"fail"``: it
            is marked failed, and a level-set strategy asks for the row again in another
            trial, up to ``max_retries`` times (where a failure is an answer,
            ``Binary(failures="outcome")``, it learns from it, as it does from one that
            was retried in vain). After that, in both cases, it is marked
            abandoned with a warning, and counts as used up. If a level-set strategy
            asks for that row again in this call, its trial is abandoned at once; the
            run ends when a whole round holds only such rows.
        max_retries: See ``on_error``.
        timeout: Seconds that an evaluation may take, from the moment at which it is
            handed to the executor, whose queue counts: then it has failed, and
            ``on_error`` says what becomes of its trial. A job or a process that an
            executor made here runs it in is ended; a thread goes on beside the run,
            and what it returns is not used. Default: any time.
        progress: Show a bar; default only in a terminal.

    Returns:
        Why it stopped, in words.

    Raises:
        ValueError: If an argument is not as said here, or ``storage`` has no folder,
            cannot be written, is held by another run, or holds another run or trials
            that the client does not know; then no trial was made. Later, if something
            else wrote there.
        OSError: If the disk is full.
        DataRequiredError: If the strategy waits for trials that nobody evaluates.
    """
    compat.check_client(client)
    one_of(on_error, "on_error", ON_ERROR)
    retries = whole_number(max_retries, "max_retries", 0)
    if timeout is not None:
        in_interval(timeout, "timeout", 0.0, math.inf)
    if max_trials is not None:
        whole_number(max_trials, "max_trials", 1)
    if max_pending is not None:
        whole_number(max_pending, "max_pending", 1)
    with (
        Record(client, storage) as record,
        closing(Workers(evaluate, executor, timeout)) as workers,
    ):
        limit = math.inf if max_trials is None else max_trials
        run = _Run(client, record, workers, limit, max_pending, on_error, retries)
        try:
            with tqdm(
                desc=compat.experiment_of(client).name,
                total=max_trials,
                unit="trial",
                disable=None if progress is None else not progress,
            ) as bar:
                return run.go(bar)
        except BaseException as cause:
            with uninterrupted(is_ending=True):
                run.rescue(cause)
                if not isinstance(cause, Exception):  # Ctrl-C
                    workers.abandon(cause)
            raise


@dataclass
class _Run:
    r"""One call of ``run_experiment``, with its arguments.

    Args:
        n_finished: Trials that ended in this call.
        n_errors: How often the evaluation failed, of a trial or of a row.
        given_up: The parameters of rows that failed too often, by themselves in words;
            they are not evaluated any more.
        last_evaluated: The newest round a row of which is evaluated.
    """

    client: Client
    record: Record
    workers: Workers
    max_trials: float
    max_pending: int | None
    on_error: str
    max_retries: int
    n_finished: int = 0
    n_errors: Counter[Any] = field(default_factory=Counter)
    given_up: dict[str, dict[str, Any]] = field(default_factory=dict)
    last_evaluated: int | None = None

    def go(self, bar: Any) -> str:
        r"""Run until nothing is asked for or running; return the reason in words.

        Args:
            bar: The progress bar, of ``tqdm``.
        """
        self.record.catch_up()  # also what an earlier call could not write
        self.resume()
        while True:
            reason = self.ask()
            if not bar.disable:
                bar.set_postfix_str(self.summary())
            if len(self.workers) == 0 and reason is not None:
                return reason
            before = self.n_finished
            self.workers.wait()
            self.record_all()
            bar.update(self.n_finished - before)

    @property
    def experiment(self) -> Experiment:
        return compat.experiment_of(self.client)

    @property
    def node(self) -> LevelSetNode | None:
        return level_set_nodes(compat.generation_strategy_of(self.client))[0]

    @property
    def metrics(self) -> list[str]:
        generation_strategy = compat.generation_strategy_of(self.client)
        return learnt_metrics(self.experiment, generation_strategy)

    def summary(self) -> str:
        return "" if self.node is None else self.node.summary(self.experiment)

    # --- asking ----------------------------------------------------------------------

    def resume(self) -> None:
        r"""Resume the running trials: complete those with data, run the rest.

        A trial has all its data and still runs if the process died between the two
        steps, or if its data were attached by hand.
        """
        experiment, metrics = self.experiment, set(self.metrics)
        for index in sorted(experiment.trial_indices_by_status[TrialStatus.RUNNING]):
            table = experiment.lookup_data(trial_indices=[index]).df
            if metrics <= set(table["metric_name"][np.isfinite(table["mean"])]):
                with self.record.changes():
                    self.client.complete_trial(index)
                    follow_costs(self.client, self.node)
                continue
            if len(self.workers) < self.max_trials:
                for arm in experiment.trials[index].arms:
                    self.workers.submit(index, dict(arm.parameters))

    def ask(self) -> str | None:
        r"""Ask for as many trials as may run now, and submit them.

        Returns:
            Why the strategy will ask for no more; ``None`` while it may.
        """
        while True:
            if (n := self.n_finished) >= self.max_trials:
                return f"{n:,} trial{'s' * (n != 1)} finished in this call"
            try:
                room = self._room()
                if room < 1:
                    return None
                with self.record.changes():
                    trials = self.client.get_next_trials(room)
            except OptimizationComplete as stop:
                return str(stop)
            except (DataRequiredError, MaxParallelismReachedException):
                if len(self.workers) == 0:
                    raise
                return None
            for trial, parameters in trials.items():
                self._submit(trial, dict(parameters))
            if len(self.workers) > 0 or not trials:
                return None
            if self._is_fruitless(max(trials)):
                return (
                    f"{self.summary()}; the strategy asks only for rows whose "
                    f"evaluation failed. Exclude them, {self._exclusion()}, or call "
                    "`run_experiment` again when they can be measured"
                )

    def _exclusion(self) -> str:
        r"""The call that excludes the rows that were given up, in words."""
        assert self.node is not None  # only a level-set strategy has rows
        space, rows = self.node.space(self.experiment), list[int]()
        for parameters in self.given_up.values():
            with suppress(ValueError):  # of a trial off the pool
                rows.append(space.row_of(parameters, ""))
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        return f"`exclude_rows(client, {sorted(rows)[:SHOWN]})`{more}"

    def _submit(self, trial: int, parameters: dict[str, Any]) -> None:
        if self.node is not None and repr(parameters) in self.given_up:
            self._abandon(trial)
            return
        self.last_evaluated = round_of(self.experiment.trials[trial])
        self.workers.submit(trial, parameters)

    def _is_fruitless(self, trial: int) -> bool:
        r"""Whether a trial ends a round none of whose rows is evaluated."""
        if self.node is None or self.node.ledger(self.experiment).open is not None:
            return False
        return self.last_evaluated != round_of(self.experiment.trials[trial])

    def _room(self) -> int:
        out, pending = len(self.workers), self.max_pending
        rooms = [self.max_trials - self.n_finished - out]
        node = self.node
        if pending is not None or node is None or node.asks_one_by_one:
            rooms.append((pending or 1) - out)
        if node is not None:
            rooms.append(max(1, node.new_trial_limit()))
        return int(min(rooms))

    # --- recording -------------------------------------------------------------------

    def record_all(self) -> None:
        r"""Record finished evaluations: all results first, then handle the errors.

        In this order an error that ends the run loses no result.
        """
        for unusable in self._record_usable():
            self._handle(unusable)

    def rescue(self, cause: BaseException) -> None:
        r"""Record the measurements before an error leaves the run.

        Args:
            cause: The error; further failures are added to its notes.
        """
        self.workers.collect_finished()
        for step in (self._record_usable, self.record.catch_up):
            try:
                step()
            except Exception as error:
                if str(error) != str(cause):
                    cause.add_note(f"Not all that had ended could be recorded: {error}")

    def _record_usable(self) -> list[Evaluation]:
        r"""Record each finished evaluation that has a usable result.

        Returns:
            The other evaluations, each with its error.

        Raises:
            Exception: The first error of recording itself, after all were tried.
        """
        unusable, broken, finished = [], [], self.workers.finished
        while finished:
            evaluation, outcome = finished[0], None
            if evaluation.error is None:
                try:
                    learnt = self._outcomes(evaluation.trial)
                    outcome = by_metric(evaluation.value, self.metrics, learnt)
                except ValueError as reason:
                    evaluation = evaluation._replace(error=reason)
            if outcome is None:
                unusable.append(evaluation)
            else:
                broken += self._record(evaluation, outcome)
            finished.popleft()
        if broken:
            for error in broken[1:]:
                broken[0].add_note(f"Then: {error!r}")
            raise broken[0]
        return unusable

    def _record(self, finished: Evaluation, outcome: dict[str, Any]) -> list[Exception]:
        r"""Complete a trial, even if its cost cannot be computed.

        Returns:
            The errors that occurred.
        """
        failed: list[Exception] = []
        try:
            with uninterrupted(), self.record.changes():
                with _collecting(failed):
                    add_cost(self.client, self.node, finished.trial, outcome)
                complete_trial(self.client, finished.trial, outcome)
                with _collecting(failed):
                    follow_costs(self.client, self.node)
            self.n_finished += 1
        except Exception as error:
            error.add_note(
                f"Trial {finished.trial} ({finished.parameters}) gave {outcome}, which "
                "is not stored yet."
            )
            failed.append(error)
        return failed

    def _handle(self, finished: Evaluation) -> None:
        r"""Retry a trial or give it up, as ``on_error`` says.

        Raises:
            Exception: The evaluation's own, with ``on_error="raise"``.
        """
        trial, parameters, _, error = finished
        assert error is not None
        row = repr(parameters)
        if self.on_error == "raise":
            error.add_note(
                f"Trial {trial} ({row}) is still running in the experiment; call "
                f"`run_experiment` again to evaluate it. {FAILED}"
            )
            raise error
        key = trial if self.on_error == "retry" else row
        # With "fail" a new trial replaces the failed one, so errors count by row.
        self.n_errors[key] += 1
        is_last = self.n_errors[key] > self.max_retries
        if self._is_result(trial) and (is_last or self.on_error == "fail"):
            self._fail(trial)
        elif is_last:
            self.given_up[row] = parameters
            warnings.warn(
                f"Trial {trial} ({row}) is abandoned: its evaluation failed "
                f"{self.n_errors[key]} times, last with {error!r}. Its place is used "
                "up, and the row is not evaluated again in this run.",
                RuntimeWarning,
                stacklevel=2,
            )
            self._abandon(trial)
        elif self.on_error == "retry":
            self.workers.submit(trial, parameters)
        else:
            self._fail(trial)

    def _is_result(self, trial: int) -> bool:
        r"""Whether the failure of a trial is a result that the strategy learns from."""
        return self.node is not None and of_failure(self._outcomes(trial)) is not None

    def _outcomes(self, trial: int) -> tuple[Quantity | None, ...]:
        r"""The outcome of each metric learnt from, in a trial; ``None``: a number.

        Empty without a level-set strategy.
        """
        current, ours = level_set_nodes(compat.generation_strategy_of(self.client))
        if not ours:
            return ()
        node, row = current or ours[0], None
        with suppress(ValueError):  # of a trial off the pool
            arm = self.experiment.trials[trial].arms[0]
            row = node.space(self.experiment).row_of(arm.parameters, "")
        return node.strategy.outcomes_of(row)

    def _fail(self, trial: int) -> None:
        with self.record.changes():
            self.client.mark_trial_failed(trial)
        self.n_finished += 1

    def _abandon(self, trial: int) -> None:
        with self.record.changes():
            self.client.mark_trial_abandoned(trial)
            follow_costs(self.client, self.node)
        self.n_finished += 1


@contextmanager
def _collecting(errors: list[Exception]) -> Iterator[None]:
    r"""Append an error raised inside the ``with`` block to a list, and go on."""
    try:
        yield
    except Exception as error:
        errors.append(error)


def by_metric(
    value: Any, metrics: list[str], outcomes: Sequence[Quantity | None] = ()
) -> dict[str, Any]:
    r"""The outcome of an evaluation by metric.

    Further metrics may be there: each a number or ``(mean, sem)``, which may be NaN.

    Args:
        value: A number or ``(mean, sem)``, or these by metric.
        metrics: The metrics that a strategy learns from.
        outcomes: What each of them measures; ``None``, and by default: a number.

    Raises:
        ValueError: If there are several metrics and no dictionary, one is missing, a
            value is no number, the name of a metric no text, or a metric that the
            strategy learns from is not finite or its standard error negative or not
            finite, or it has a value that its outcome cannot have.
    """
    if not isinstance(value, Mapping) and len(metrics) == 1:
        value = {metrics[0]: value}
    given = value if isinstance(value, Mapping) else {}
    missing = [name for name in metrics if name not in given]
    if missing:
        raise ValueError(
            f"Expected `evaluate` to return a value for each of the metrics {metrics}, "
            f"but {missing} are missing in {value!r}. Return a dictionary by metric."
        )
    for name in value:
        if not isinstance(name, str):
            raise ValueError(
                "Expected `evaluate` to return a dictionary by the names of metrics, "
                f"but got the name {name!r}. Write {str(name)!r}."
            )
    each = dict(zip(metrics, outcomes, strict=False))
    return {
        name: _outcome(value[name], name, name in metrics, each.get(name))
        for name in value
    }


def _outcome(value: Any, name: str, is_learnt: bool, outcome: Quantity | None) -> Any:
    r"""The result of one metric as floats: a number, or ``(mean, sem)``.

    Args:
        value: The value that the evaluation returned.
        name: The metric's name.
        is_learnt: Whether the strategy learns from the metric; then the mean must be
            finite and the standard error finite and at least 0.
        outcome: What the metric measures; ``None``: a number.
    """
    parts = list(value) if isinstance(value, (tuple, list)) else [value]
    is_truth = bool(parts) and isinstance(parts[0], bool | np.bool_)
    if is_truth and isinstance(outcome, Binary):
        parts[0] = float(parts[0])
    try:
        numbers = [
            None if i and x is None else float(real_numbers(x, name))
            for i, x in enumerate(parts)
        ]
    except (TypeError, ValueError, RuntimeError):
        numbers = []
    if len(numbers) not in (1, 2):
        raise ValueError(
            "Expected `evaluate` to return a number or `(mean, sem)`, but got "
            f"{value!r} for {name!r}. "
            + ("Write `float(...)`." if is_truth else FAILED)
        )
    mean, sem = numbers if len(numbers) == 2 else (numbers[0], None)
    if is_learnt and (mean is None or not math.isfinite(mean)):
        raise ValueError(
            f"Expected `evaluate` to return finite numbers, but got {mean!r} for "
            f"{name!r}. {FAILED}"
        )
    if outcome is not None:
        y = torch.tensor([mean], dtype=torch.float64)
        try:
            outcome.check(y, torch.ones_like(y))
        except ValueError as error:
            what = f"{name!r} of `evaluate`"
            raise ValueError(f"{complaint_of(error, what)} {FAILED}") from error
        if sem and outcome.by_results:
            raise ValueError(
                f"Expected `evaluate` to return {name!r} without a standard error, as "
                f"an answer has no noise of its own, but got {sem!r}. Return the "
                "answer alone."
            )
    if is_learnt and sem is not None and not is_noise(sem):
        raise ValueError(
            "Expected `evaluate` to return a standard error of at least 0, but got "
            f"{sem!r} for {name!r}. 0 is an exact measurement; leave it out, or return "
            "None, if it is not known."
        )
    return (mean, sem) if len(numbers) == 2 else mean
