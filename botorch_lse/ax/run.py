r"""An experiment from its first trial to its stop, in parallel, crash or not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from ax.api.client import Client
from ax.core.trial_status import TrialStatus
from ax.exceptions.core import DataRequiredError, OptimizationComplete
from ax.exceptions.generation_strategy import MaxParallelismReachedException
from tqdm import tqdm

from botorch_lse.ax.compat import (
    complete_trial,
    experiment_of,
    generation_strategy_of,
)
from botorch_lse.ax.cost_metric import declare_costs, follows_costs, record_costs
from botorch_lse.ax.costs import COST, has_costs, trial_cost
from botorch_lse.ax.failures import Failures
from botorch_lse.ax.ledger import round_of
from botorch_lse.ax.measurements import metric_names, objective_metrics
from botorch_lse.ax.node import LevelSetNode, current_level_set_node, level_set_nodes
from botorch_lse.ax.outcome import by_metric
from botorch_lse.ax.recording import Record, uninterrupted
from botorch_lse.ax.replay import summary
from botorch_lse.ax.workers import Evaluate, Finished, MakeExecutor, Workers
from botorch_lse.checks import whole_number

ON_ERROR = ("raise", "retry", "fail")


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
    is measured again), or Ray with a few lines::

        class RayExecutor(Executor):
            def submit(self, function, /, *args, **kwargs):
                return ray.remote(function).remote(*args, **kwargs).future()

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
            hold further metrics; a level-set strategy takes no ``sem`` of 0. Where it
            has costs, the trial's is recorded as the tracking metric ``cost`` (see
            ``CostMetric``), unless it is among them.
        executor: Where to evaluate; or a function that makes an executor, which is
            called again when a worker dies (``lambda: ProcessPoolExecutor(2)``).
            Default: in this process, one after the other.
        storage: A JSON file for ``Client.load_from_json_file``, or a symbolic link to
            one, which stays. Beside it lies the empty ``.<file>.lock``. A client with a
            ``storage_config`` writes to its database, one transaction each time.
        max_trials: Stop after so many finished trials of this call, those among them
            that were running before; what runs beyond them stays running.
        max_pending: Trials out at once; default the rest of the round for a level-set
            strategy, else 1.
        on_error: What becomes of a trial whose evaluation raises, kills its worker or
            returns something that is no result, be it in a further metric.
            ``"raise"``: the others' results are recorded, the error is raised, and the
            trial stays running, to be evaluated in the next call. ``"retry"``: it is
            evaluated up to ``max_retries`` times more under its index. ``"fail"``: it
            is marked failed, and a level-set strategy asks for the row again in another
            trial, up to ``max_retries`` times. After that, in both cases, it is marked
            abandoned with a warning: the place is used up. If a level-set strategy asks
            for that row again in this call, its trial is abandoned at once; the run
            ends when a whole round holds only such rows.
        max_retries: See ``on_error``.
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
    if on_error not in ON_ERROR:
        raise ValueError(
            f"Expected `on_error` to be one of {ON_ERROR}, but got {on_error!r}."
        )
    retries = whole_number(max_retries, "max_retries", 0)
    for name, value in (("max_trials", max_trials), ("max_pending", max_pending)):
        if value is not None:
            whole_number(value, name, 1)
    with Record(client, storage) as record, closing(Workers(evaluate, executor)) as out:
        run = _Run(client, record, out, max_trials, max_pending, on_error, retries)
        try:
            with tqdm(
                desc=experiment_of(client).name,
                total=max_trials,
                unit="trial",
                disable=None if progress is None else not progress,
            ) as bar:
                return run.go(bar)
        except BaseException as cause:
            run.rescue(cause)
            raise


class _Run:
    r"""One call of ``run_experiment``."""

    def __init__(
        self,
        client: Client,
        record: Record,
        workers: Workers,
        max_trials: int | None,
        max_pending: int | None,
        on_error: str,
        max_retries: int,
    ) -> None:
        self.client, self.record, self.workers = client, record, workers
        self.max_trials, self.max_pending = max_trials, max_pending
        self.failures = Failures(on_error, max_retries)
        self.n_finished = 0

    def go(self, bar: Any) -> str:
        self.record.catch_up()  # also what an earlier call could not write
        self.resume()
        while True:
            reason = self.ask()
            if not bar.disable:
                bar.set_postfix_str(self.words())
            if len(self.workers) == 0 and reason is not None:
                return reason
            before = self.n_finished
            self.workers.wait()
            self.record_all()
            bar.update(self.n_finished - before)

    @property
    def node(self) -> LevelSetNode | None:
        return current_level_set_node(generation_strategy_of(self.client))

    @property
    def metrics(self) -> list[str]:
        r"""What an evaluation must give: what the level-set strategy learns from.

        Also before it: an evaluation without one of its metrics teaches it nothing.
        """
        experiment = experiment_of(self.client)
        ours = level_set_nodes(generation_strategy_of(self.client))
        if not ours:
            return objective_metrics(experiment)
        node = self.node or ours[0]
        return metric_names(experiment, node.metrics, node.strategy)

    def words(self) -> str:
        if self.node is None:
            return ""
        return summary(self.node.state(experiment_of(self.client)), self.node.strategy)

    # --- asking ----------------------------------------------------------------------

    def resume(self) -> None:
        r"""Trials that are out: those with all data are complete, others run again."""
        experiment, metrics = experiment_of(self.client), set(self.metrics)
        for index in sorted(experiment.trial_indices_by_status[TrialStatus.RUNNING]):
            table = experiment.lookup_data(trial_indices=[index]).df
            if metrics <= set(table["metric_name"][table["mean"].notna()]):
                with self.record.changes():
                    self.client.complete_trial(index)
                    self._follow_costs()
                continue
            if self.max_trials is None or len(self.workers) < self.max_trials:
                for arm in experiment.trials[index].arms:
                    self.workers.submit(index, dict(arm.parameters))

    def ask(self) -> str | None:
        r"""Ask for as many trials as there is room for; why there will be no more."""
        while True:
            if self.max_trials is not None and self.n_finished >= self.max_trials:
                return f"{self.n_finished:,} trials finished in this call"
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
                return f"{self.words()}; {self.failures.why_stop()}"

    def _submit(self, trial: int, parameters: dict[str, Any]) -> None:
        if self.node is not None and self.failures.are_hopeless(parameters):
            self._abandon(trial)
            return
        self.failures.useful(round_of(experiment_of(self.client).trials[trial]))
        self.workers.submit(trial, parameters)

    def _is_fruitless(self, trial: int) -> bool:
        r"""Whether a trial ends a round none of whose rows is evaluated."""
        experiment = experiment_of(self.client)
        if self.node is None or self.node.ledger(experiment).open is not None:
            return False
        return self.failures.were_all_of(round_of(experiment.trials[trial]))

    def _room(self) -> int:
        out = len(self.workers)
        rooms = [] if self.max_pending is None else [self.max_pending - out]
        if self.max_trials is not None:
            rooms.append(self.max_trials - self.n_finished - out)
        if self.node is not None:
            rooms.append(max(1, self.node.new_trial_limit()))
        elif self.max_pending is None:
            rooms.append(1 - out)
        return min(rooms)

    # --- recording -------------------------------------------------------------------

    def record_all(self) -> None:
        r"""Record what ended: all results first, then the errors."""
        for finished, error in self._record_usable():
            self._handle(finished, error)

    def rescue(self, cause: BaseException) -> None:
        r"""Record what was measured before an error; what fails now is noted there."""
        self.workers.look()
        for step in (self._record_usable, self.record.catch_up):
            try:
                step()
            except Exception as error:
                if str(error) != str(cause):
                    cause.add_note(f"Not all that had ended could be recorded: {error}")

    def _record_usable(self) -> list[tuple[Finished, Exception]]:
        r"""Record each result that can be; the others, and why not.

        Raises:
            Exception: The first that recording itself met, after all were tried.
        """
        unusable, broken, ended = [], [], self.workers.ended
        while ended:
            finished = ended[0]
            error = finished.error
            if error is None:
                try:
                    outcome = self._outcome(finished)
                except ValueError as reason:
                    error = reason
            if error is not None:
                unusable.append((finished, error))
            else:
                broken += self._record(finished, outcome)
            ended.popleft()
        if broken:
            for error in broken[1:]:
                broken[0].add_note(f"Then: {error!r}")
            raise broken[0]
        return unusable

    def _record(self, finished: Finished, outcome: dict[str, Any]) -> list[Exception]:
        r"""Complete a trial, whatever becomes of its cost; what failed on the way."""
        failed: list[Exception] = []
        try:
            with uninterrupted(), self.record.changes():
                failed += _failure(lambda: self._add_cost(finished.trial, outcome))
                complete_trial(self.client, finished.trial, outcome)
                failed += _failure(self._follow_costs)
            self.n_finished += 1
        except Exception as error:
            error.add_note(
                f"Trial {finished.trial} ({finished.parameters}) gave {outcome}, which "
                "is not stored yet."
            )
            failed.append(error)
        return failed

    def _outcome(self, finished: Finished) -> dict[str, Any]:
        return by_metric(finished.value, self.metrics)

    def _add_cost(self, trial: int, outcome: dict[str, Any]) -> None:
        r"""What the trial costs beside what it gave, unless that is told."""
        node = self.node
        if node is not None and has_costs(node.strategy) and COST not in outcome:
            declare_costs(self.client, node)
            outcome[COST] = (trial_cost(self.client, trial), 0.0)

    def _follow_costs(self) -> None:
        r"""Costs that the way makes may change with each row."""
        if follows_costs(self.client, self.node):
            record_costs(self.client)

    def _handle(self, finished: Finished, error: Exception) -> None:
        verdict = self.failures.judge(finished, error)
        if verdict == "retry":
            self.workers.submit(finished.trial, finished.parameters)
        elif verdict == "failed":
            with self.record.changes():
                self.client.mark_trial_failed(finished.trial)
            self.n_finished += 1
        else:
            self._abandon(finished.trial)

    def _abandon(self, trial: int) -> None:
        with self.record.changes():
            self.client.mark_trial_abandoned(trial)
            self._follow_costs()
        self.n_finished += 1


def _failure(step: Callable[[], None]) -> list[Exception]:
    r"""What a step raised, if it did."""
    try:
        step()
    except Exception as error:
        return [error]
    return []
