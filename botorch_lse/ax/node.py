r"""The Ax generation node of every strategy, its predictions, and how to find it.

A strategy's state is computed from the experiment: the state after telling the strategy
the experiment's rounds one by one.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from ax import Client
from ax.adapter.base import Adapter
from ax.adapter.data_utils import ExperimentData
from ax.core import (
    Arm,
    Data,
    Experiment,
    GeneratorRun,
    Metric,
    ObservationFeatures,
    SearchSpace,
)
from ax.core.observation import ObservationData
from ax.core.types import TParameterization
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.transition_criterion import TransitionCriterion
from ax.generators.base import Generator
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY
from botorch.exceptions import errors as botorch_errors
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import row_indices, truth_value, whole_number
from botorch_lse.ax.compat import (
    experiment_of,
    generation_strategy_of,
    properties_of,
    save_properties,
)
from botorch_lse.ax.constraints import outcome_constraints
from botorch_lse.ax.ledger import (
    EXCLUDED,
    METADATA,
    Ledger,
    LedgerReader,
    Measurement,
    Round,
    excluded_in,
)
from botorch_lse.ax.pool_space import PoolSpace, warn_of_equal_rows
from botorch_lse.ax.storage import StoredStrategy
from botorch_lse.data.observations import History, Observations
from botorch_lse.models.memory import FitMemory, remembering
from botorch_lse.strategies import State, Strategy
from botorch_lse.strategies.algorithm import MAX_FAILURES
from botorch_lse.strategies.loop import looks_of_all
from botorch_lse.surrogate.layout import FromSources

FITS = "level_set_fits"
"""The key under which a generator run stores the fits that planned its rows."""
_KEPT = 3
"""The number of cached states: the newest, the one before it, and one more.
From that one replaying begins when a result of an earlier round arrives late."""


class LevelSetNode(ExternalGenerationNode):
    r"""A node that asks a strategy for rows of its pool, over an experiment's rounds.

    The node keeps no state of its own: what it asks for is a function of its arguments,
    the experiment's trials and their data (the rule stands in ``ax/ledger.py``). Each
    generator run stores its round and the round's plan, so that a run that was cut and
    loaded elsewhere goes on with the same rows.

    While all rows of a round are out, ``DataRequiredError`` is raised; when the
    strategy is done, ``GenerationStrategyCompleted``. Replicates in a generator run are
    arm weights. After another node (``MinTrials(..., transition_to=node.name)``) its
    trials count as measured elsewhere; in the very call that goes on to this node, Ax
    does not know the size of a round: ask for no more than one, or again.

    Example:
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> node = LevelSetNode(LSEStrategy(pool, threshold=0.0, noise_std=0.1))
        >>> node.name
        'LSEStrategy'

    Args:
        strategy: Any strategy, or one from storage, or its JSON.
        metrics: The metrics in the order of the strategy's outputs; default those that
            its goal names (``Above(30, output="zinc")``), else those of the
            experiment's objective. Its sign does not matter for a level set; for a
            Pareto set the signs must be those of ``maximize``.
        seed: The seed of ``strategy.init``.
        name: The node's name, by which its trials are recognised; default the name of
            the strategy's class.
        transition_criteria: When to go on to another node; default never.
        pool_folder: Where a pool above 20 MB is written; default the current folder.
        max_failures: How many trials of a row may fail or be abandoned: after that it
            is not asked for any more; ``None``: as many as it likes. Strategies whose
            algorithm needs its own rows go on asking.
        asynchronous: Whether rows are asked for while others are out, at any time, and
            each result is learnt from as it comes; else a round is waited for.

    Raises:
        ValueError: If the strategy cannot be stored, ``metrics`` is no list, or
            ``max_failures`` less than 1.
        UnsupportedError: If ``asynchronous`` is wanted of an algorithm that judges
            whole rounds, or has a burn-in.
    """

    def __init__(
        self,
        strategy: Strategy | StoredStrategy | Mapping[str, Any],
        metrics: Sequence[str] | None = None,
        *,
        seed: int = 0,
        name: str | None = None,
        transition_criteria: Sequence[TransitionCriterion] | None = None,
        pool_folder: str | Path | None = None,
        max_failures: int | None = MAX_FAILURES,
        asynchronous: bool = False,
    ) -> None:
        super().__init__(
            name=type(strategy).__name__ if name is None else name,
            should_deduplicate=False,  # replicates are part of the design
            transition_criteria=transition_criteria,
        )
        # Ax's default replaces repeated points by Sobol points, which are no rows.
        self.fallback_specs = {}
        self.metrics = _checked_metrics(metrics)
        self.seed = whole_number(seed, "seed", 0)
        if max_failures is not None:
            whole_number(max_failures, "max_failures", 1)
        self.max_failures = max_failures
        self.asynchronous = truth_value(asynchronous, "asynchronous")
        if isinstance(strategy, Strategy) and self.asynchronous:
            _check_asynchronous(strategy)
        if isinstance(strategy, Strategy):
            warn_of_equal_rows(strategy.pool)
        if not isinstance(strategy, StoredStrategy):
            strategy = StoredStrategy(strategy, pool_folder)
        self.stored = strategy
        r"""The strategy in the form in which Ax stores it."""
        self._space: PoolSpace | None = None
        self._reader: LedgerReader | None = None
        self._states: deque[tuple[tuple[Round, ...], State]] = deque(maxlen=_KEPT)
        self._planned: tuple[Any, tuple[int, ...]] = (None, ())
        self._next: tuple[Any, State] | None = None
        self._filled: tuple[Ledger, Ledger] | None = None
        self._past: tuple[Any, Strategy] | None = None
        self._ledger: Ledger | None = None
        self._fits: FitMemory | None = None
        self._issued: list[int] = []
        self._runs_issued = 0
        self._measurements_per_run = self._runs_promised = self._runs_left = 1

    @property
    def strategy(self) -> Strategy:
        r"""The strategy that the node asks.

        Raises:
            ValueError: If its pool is not where it was when the experiment was saved.
        """
        return self.stored.get(self._known_experiment)

    @property
    def _known_experiment(self) -> Experiment | None:
        strategy = self._generation_strategy
        return None if strategy is None else strategy._experiment

    # --- reading ---------------------------------------------------------------------

    def ledger(self, experiment: Experiment, data: Data | None = None) -> Ledger:
        r"""The rounds of an experiment, read from its trials and data."""
        data = experiment.lookup_data() if data is None else data
        names, space = self.metric_names(experiment), self.space(experiment)
        found = self._reader
        # A reader's cache holds only for the metrics and the space it was made with.
        if found is None or (found.metrics, found.space) != (names, space):
            strategy, start = self.strategy, self.strategy.init(self.seed)
            # A burn-in needs its rows too; what needs them at first is asked again.
            can = start.run.ask(strategy.algorithm.takes_any_rows)
            limit = self.max_failures if can else None
            given = (strategy, space, names, limit, self.asynchronous)
            found = LedgerReader(self.name, *given)
            self._reader = found
        read = found.read(experiment, data)
        if self._filled is None or self._filled[0] is not read:
            self._filled = read, self._within_limits(self._refilled(read))
        return self._filled[1]

    def _refilled(self, ledger: Ledger) -> Ledger:
        r"""The ledger with other rows in the places that excluded ones left.

        They are computed anew until a trial asks for one of them and stores the plan.
        """
        current = ledger.open
        if current is None or current.n_free == 0:
            return ledger
        state, rows = self._complete(ledger), list[int]()
        if not state.is_done:
            event = (state.round, current.excluded)
            state = replace(state, excluded=(*state.excluded, event))
            # What is measured elsewhere need not be measured here as well.
            other = [*ledger.pending, *(m.row for m in ledger.measured_meanwhile)]
            kept = torch.tensor([*current.plan, *other]).long()
            rows = state.strategy.refill(state, kept, current.n_free).tolist()
        return ledger.going_on_with(current.refilled(rows))

    def _within_limits(self, ledger: Ledger) -> Ledger:
        r"""The ledger with no more rows to ask for than budget and repeats allow.

        Measurements made elsewhere while a round is open use up both, too.
        """
        current, strategy = ledger.open, self.strategy
        limits = strategy.max_observations, strategy.max_repeats
        if current is None or limits == (None, None) or not current.to_ask:
            return ledger
        state, out = self._state(ledger), [*current.running, *ledger.pending]
        rows = state.strategy.missing(state, out).tolist()
        if len(rows) == len(current.to_ask):
            return ledger
        return ledger.going_on_with(current.asking_only(rows))

    def space(self, experiment: Experiment) -> PoolSpace:
        r"""The rows as parameterizations of the experiment's search space."""
        if self._space is None or not self._space.is_of(experiment.search_space):
            self._space = PoolSpace(self.strategy.pool, experiment.search_space)
        return self._space

    @property
    def asks_one_by_one(self) -> bool:
        r"""Whether each row is planned in the knowledge of those before it.

        So it is where results are learnt from as they come, and where the call says how
        many rows it wants: Ax tells a node the number of trials only once they are
        made.
        """
        return self.asynchronous or self.strategy.algorithm.facts.size_is_open

    # --- the state -------------------------------------------------------------------

    def state(self, experiment: Experiment, data: Data | None = None) -> State:
        r"""The strategy's state, computed from the experiment's trials and data alone.

        Args:
            experiment: The experiment.
            data: Its data, if they were looked up already.
        """
        return self._state(self.ledger(experiment, data))

    def history(self, experiment: Experiment) -> list[State]:
        r"""The states before the first and after each complete round, not cached."""
        ledger = self.ledger(experiment)
        first = self._knowing(ledger).init(self.seed)
        with remembering(self._memory):
            return list(accumulate(ledger.complete, self._tell, initial=first))

    def _knowing(self, ledger: Ledger) -> Strategy:
        r"""The strategy, with measurements off the pool as its history."""
        points = ledger.points
        if not points:
            return self.strategy
        if self._past is None or self._past[0] != points:
            x, y, yvar = zip(*((p.x, p.y, p.yvar) for p in points), strict=True)
            columns = (torch.tensor(part, dtype=torch.float64) for part in (y, yvar))
            values, noise = (part.squeeze(-1) for part in columns)
            X = torch.tensor(x, dtype=torch.float64)
            history = History(X, values, noise if noise.numel() else None)
            self._past = points, self.strategy.with_history(history)
            self._states.clear()
        return self._past[1]

    def _state(self, ledger: Ledger) -> State:
        r"""The state after the complete rounds and the results of the open round."""
        if ledger.open is None:
            return self._before_next(ledger)
        state = self._complete(ledger)
        meanwhile = ledger.measured_meanwhile
        if meanwhile:
            found = _as_observations(meanwhile)
            found = found.at_round(looks_of_all(state, found))
            state = replace(state, deferred=(found,))
        return self._tell(state, ledger.open)

    def _complete(self, ledger: Ledger) -> State:
        r"""The state after ``tell`` of all complete rounds, one by one.

        The last states are remembered with the rounds before them, so that a new round
        costs one ``tell``.
        """
        rounds, strategy = ledger.complete, self._knowing(ledger)
        # Rounds that did not change are the same objects: comparing them is quick.
        fitting = [
            known
            for known in self._states
            if known[1].strategy is strategy and known[0] == rounds[: len(known[0])]
        ]
        if not fitting:
            fitting = [((), strategy.init(self.seed))]
            self._states += fitting
        done, state = max(fitting, key=lambda known: len(known[0]))
        with remembering(self._memory):
            for n, round_ in enumerate(rounds[len(done) :], len(done) + 1):
                state = self._tell(state, round_)
                self._states.append((rounds[:n], state))
        return state

    @property
    def _memory(self) -> FitMemory:
        r"""The known fits, including those stored in generator runs."""
        if self._fits is None:
            self._fits = FitMemory()
            experiment = self._known_experiment
            for trial in () if experiment is None else experiment.trials.values():
                for run in trial.generator_runs:
                    self._fits.learn((run.gen_metadata or {}).get(FITS))
        return self._fits

    def _new_fits(self) -> dict[str, Any]:
        memory = self._memory
        new = {k: fit for k, fit in memory.used.items() if k not in memory.known}
        memory.known |= new
        return {FITS: new} if new else {}

    def _tell(self, state: State, round_: Round) -> State:
        if round_.excluded:
            event = (state.round, round_.excluded)
            state = replace(state, excluded=(*state.excluded, event))
        found = _as_observations(sorted(round_.results)) if round_.results else None
        if found is not None and not round_.is_own:
            n = looks_of_all(state, found)
            if n > 1:
                return state.strategy.tell(state, found.at_round(state.round + n))
        # The plan is set before telling: the round then consists of exactly these rows,
        # and is over once each of them is measured or abandoned.
        state = replace(state, plan=torch.tensor(sorted(round_.plan)).long())
        # A round that nothing came of is over only once that is said.
        lost = list(round_.lost) if round_.lost or found is None else None
        return state.strategy.tell(state, found, abandoned=lost)

    def summary(self, experiment: Experiment) -> str:
        r"""The state of the run, in a sentence.

        The sentence has ``delta`` where the answer claims a confidence, and the reason
        for stopping unless it is that every row is decided.
        """
        return self._summary(self.state(experiment))

    def _summary(self, state: State) -> str:
        answer, delta = state.classification, getattr(self.strategy, "delta", None)
        decided = len(answer) - int(answer.undecided.sum())
        claimed = answer.guarantee.startswith("With probability")
        at = f" at delta = {written(delta)}" if claimed and delta is not None else ""
        goes_without_saying = state.stop_reason in (None, "decided")
        reason = "" if goes_without_saying else f" ({state.stop_reason})"
        gone = len(state.excluded_rows)
        excluded = f" ({gone:,} excluded)" if gone else ""
        return (
            f"{decided:,} of {len(answer):,} rows decided{at}{excluded}; "
            f"{state.n_used:,} evaluation{'s' * (state.n_used != 1)}{reason}"
        )

    def metric_names(self, experiment: Experiment) -> tuple[str, ...]:
        r"""The metrics that the strategy learns from.

        The goal's own names come first, else those given, else the objective's.

        Raises:
            ValueError: If neither is there, there is not one per output of the
                strategy, or the objective's signs are not those of a strategy for
                several outputs.
        """
        signs, strategy = _objective_signs(experiment), self.strategy
        names = tuple(signs) if self.metrics is None else self.metrics
        if strategy.outputs:
            if self.metrics is not None and {*names} != {*strategy.outputs}:
                raise ValueError(
                    "Expected `metrics` to be those that the strategy's `goal` names, "
                    f"{list(strategy.outputs)}, but got {list(names)}. Leave `metrics` "
                    "out, and name the goal's outputs as the metrics."
                )
            return strategy.outputs
        if len(names) != strategy.n_outputs:
            found = f"`metrics` is {list(names)}"
            if self.metrics is None:
                found = f"the experiment's objective has {list(names) or 'none'}"
            raise ValueError(_wanted_metrics(strategy.n_outputs, found, list(signs)))
        for name, up in zip(names, strategy.directions or (), strict=False):
            if name in signs and (signs[name] > 0) != up:
                raise ValueError(
                    f"Expected `maximize` of the strategy to agree with the objective, "
                    f"but {name!r} is to be {'maximised' if up else 'minimised'} by "
                    "the one and not by the other. Write the objective of a metric to "
                    f'be minimised as "-{name}".'
                )
        return names

    def _warn_of_unknown_metrics(self, experiment: Experiment, data: Data) -> None:
        r"""Warn of metrics that the experiment does not have.

        Most often a name is mistyped; it is not refused, because Ax creates a metric
        when its first data are attached.
        """
        known = {*experiment.metrics, *data.metric_names}
        wanted = self.strategy.outputs or self.metrics or ()
        unknown = [name for name in wanted if name not in known]
        if unknown and experiment.metrics:
            warnings.warn(
                "Expected each of `metrics` to be a metric of the experiment, but it "
                f"has {sorted(known)} and not {unknown}. Correct the name, or call "
                f"`client.configure_tracking_metrics({unknown})`.",
                stacklevel=2,
            )

    def _warn_of_constraints(self, experiment: Experiment) -> None:
        r"""Warn of outcome constraints that the goal ignores."""
        ignored = [
            constraint.expression
            for constraint in outcome_constraints(experiment)
            if not {*constraint.metric_names} <= {*self.strategy.outputs}
        ]
        if ignored:
            warnings.warn(
                f"The experiment's `outcome_constraints` {ignored} are no part of the "
                "strategy's goal, and are ignored. If the question is where they hold, "
                "give `Strategy(pool, goal_from_constraints(client))`.",
                stacklevel=2,
            )

    @property
    def _fitted_adapter(self) -> LevelSetAdapter | None:  # type: ignore[override]
        r"""The adapter that ``Client.predict`` and Ax's analyses ask for predictions.

        ``None`` if the strategy cannot predict.
        """
        experiment = self._known_experiment
        if experiment is None or not self.strategy.can_predict:
            return None
        return LevelSetAdapter(self, experiment)

    # --- asking ----------------------------------------------------------------------

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        r"""Read the experiment at the beginning of a call of ``gen``."""
        self._warn_of_unknown_metrics(experiment, data)
        self._warn_of_constraints(experiment)
        self._ledger = self._caught_up(experiment, data)
        self.stored.keep_pool(experiment)
        self._issued, self._runs_issued = [], 0
        self._runs_left, self._runs_promised = self._runs_promised, 1

    def _caught_up(self, experiment: Experiment, data: Data | None = None) -> Ledger:
        r"""The rounds after missing data of completed trials were fetched.

        Where one trial's fetch fails, Ax's orchestrator attaches nothing of the others
        that ended with it, and does not fetch again what is completed: the round would
        wait for ever.
        """
        ledger = self.ledger(experiment, data)
        unfilled = ledger.unfilled if ledger.open is None else ledger.open.unfilled
        names = self.metric_names(experiment)
        metrics = [
            experiment.metrics[name] for name in names if name in experiment.metrics
        ]
        if unfilled and any(can_fetch(metric) for metric in metrics):
            experiment.fetch_trials_data_results(trial_indices=unfilled)
            ledger = self.ledger(experiment)
        return ledger

    def get_next_candidate(
        self, pending_parameters: list[TParameterization]
    ) -> TParameterization:
        r"""The next row's parameterization.

        Args:
            pending_parameters: Not used: pending rows are read from the experiment.
        """
        space = self.space(self.experiment)
        return {**space.parameters_of(self._take(1)[0])}

    def new_trial_limit(self, raise_generation_errors: bool = False) -> int:
        r"""The number of trials in the rest of the round.

        Where rows are planned one by one, how many the budget and the rows allow. Ax
        asks this before it says how many measurements a batch trial shall have, so
        the size of the last batch trial is assumed. Should the next ones be larger,
        ``_take`` gives each of them fewer rows, so that every trial announced here gets
        at least one.
        """
        ledger = self._caught_up(self.experiment)
        if self._is_done(ledger):
            rest = 0
        elif ledger.open is None and self.asks_one_by_one:
            rest = self.strategy.room(self._before_next(ledger), list(ledger.pending))
        else:
            rest = len(self._current(ledger).to_ask)
        self._runs_promised = math.ceil(rest / self._measurements_per_run)
        return self._runs_promised

    def _gen(  # type: ignore[override]  # as ExternalGenerationNode has it
        self,
        experiment: Experiment,
        data: Data | None = None,
        n: int | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        **generator_gen_kwargs: Any,
    ) -> GeneratorRun:
        fixed = generator_gen_kwargs.get("fixed_features")
        if fixed is not None and fixed.parameters:
            raise UnsupportedError(
                "Expected no fixed parameters, because the strategy chooses whole rows "
                "of its pool. Exclude the other rows, `exclude_rows(client, rows)`, or "
                "begin an experiment on a pool without them."
            )
        start = time.monotonic()
        self._measurements_per_run = 1 if n is None else n
        counts = Counter(self._take(self._measurements_per_run))
        assert self._ledger is not None  # read at the beginning of `gen`
        space = self.space(experiment)
        stored: dict[str, Any]
        if self._ledger.open is None and self.asks_one_by_one:
            stored = self._stored_one_by_one(self._ledger, sum(counts.values()))
        else:
            current = self._current(self._ledger)
            stored = {"round": current.number, "plan": list(current.plan)}
        run = GeneratorRun(
            arms=[Arm(parameters=space.parameters_of(row)) for row in counts],
            weights=[float(count) for count in counts.values()],
            fit_time=self.fit_time_since_gen,
            gen_time=time.monotonic() - start,
            generator_key=self.name,
            gen_metadata={
                METADATA: {**stored, "pool": self.strategy.pool.hash},
                **self._new_fits(),
            },
        )
        # Ax sets the int 0 here; with it, SQL storage loses the arms of later trials.
        self.fit_time_since_gen = 0.0
        return run

    def _take(self, n: int) -> list[int]:
        assert self._ledger is not None  # read at the beginning of `gen`
        if self._is_done(self._ledger):
            state = self._state(self._ledger)
            raise GenerationStrategyCompleted(self._summary(state))
        if self._ledger.open is None and self.asks_one_by_one:
            state, before = self._before_next(self._ledger), len(self._issued)
            out = [*self._ledger.pending, *self._issued]
            # At least one is tried: where nothing is left, that raises what is said.
            for _ in range(max(1, min(n, self.strategy.room(state, out)))):
                self._next_row(self._ledger)
            self._runs_issued += 1
            return self._issued[before:]
        current = self._current(self._ledger)
        rest = sorted((Counter(current.to_ask) - Counter(self._issued)).elements())
        if not rest:
            raise DataRequiredError(current.what_is_awaited(len(self._issued)))
        self._runs_left -= 1
        rows = rest[: max(1, min(n, len(rest) - self._runs_left))]
        self._issued += rows
        return rows

    def _next_row(self, ledger: Ledger) -> int:
        r"""One more row, planned in the knowledge of all that are out."""
        out = [*ledger.pending, *self._issued]
        try:
            state = self._before_next(ledger)
            row = state.strategy.next_row(state, out)
        except ValueError as error:  # nothing is left but what is out
            if not out:
                raise
            raise DataRequiredError(str(error)) from error
        self._issued.append(row)
        return row

    def _stored_one_by_one(self, ledger: Ledger, n: int) -> dict[str, Any]:
        r"""The record of the last ``n`` rows of a generator run, planned one by one."""
        if not self.asynchronous:
            return {"round": ledger.n_own_rounds, "plan": list(self._issued)}
        return {
            "round": ledger.n_own_rounds + self._runs_issued - 1,
            "plan": self._issued[-n:],
            "results": list(ledger.unseen),
            "excluded": list(ledger.newly_excluded),
        }

    def _is_done(self, ledger: Ledger) -> bool:
        return ledger.open is None and self._before_next(ledger).is_done

    def _before_next(self, ledger: Ledger) -> State:
        state = self._complete(ledger)
        if not ledger.excluded:
            return state
        known = (ledger.complete, ledger.excluded, ledger.points)
        if self._next is None or self._next[0] != known:
            state = state.strategy.exclude(state, list(ledger.excluded))
            self._next = known, state
        return self._next[1]

    def _current(self, ledger: Ledger) -> Round:
        r"""The open round, else the next one, planned beside the pending rows."""
        if ledger.open is not None:
            return ledger.open
        # Ax may ask several times before a trial exists; the plan must not be redone.
        known = (ledger.complete, ledger.pending, ledger.excluded, ledger.points)
        if self._planned[0] != known:
            try:
                state = self._before_next(ledger)
                batch = state.strategy.ask(state, list(ledger.pending))
            except ValueError as error:  # nothing is left but what is pending
                if not ledger.pending:
                    raise
                raise DataRequiredError(str(error)) from error
            self._planned = known, tuple(batch.order.tolist())
        return Round(self._planned[1], number=ledger.n_own_rounds)

    # --- storage ---------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        r"""The constructor's arguments, for Ax's JSON and SQL storage."""
        return {
            "__type": type(self).__name__,
            "strategy": self.stored.to_json(self._known_experiment),
            **self._other_arguments(),
        }

    def _other_arguments(self) -> dict[str, Any]:
        return {
            "metrics": None if self.metrics is None else list(self.metrics),
            "seed": self.seed,
            "name": self.name,
            "transition_criteria": list(self.transition_criteria),
            "max_failures": self.max_failures,
            "asynchronous": self.asynchronous,
        }

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        same = self.stored.arguments == other.stored.arguments
        return same and self._other_arguments() == other._other_arguments()

    @classmethod
    def deserialize_init_args(
        cls,
        args: dict[str, Any],
        decoder_registry: dict[str, Any] | None = None,
        class_decoder_registry: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        r"""The constructor's arguments from what ``to_dict`` wrote."""
        criteria = object_from_json(
            args["transition_criteria"],
            decoder_registry=decoder_registry or {},
            class_decoder_registry=class_decoder_registry or {},
        )
        given = super().deserialize_init_args(args)  # by name, as they are
        return {**given, "transition_criteria": criteria}


def register_node(node_class: type[LevelSetNode]) -> None:
    r"""Let Ax store a node class; a subclass of ``LevelSetNode`` needs its own call."""
    CORE_ENCODER_REGISTRY[node_class] = node_class.to_dict
    CORE_DECODER_REGISTRY[node_class.__name__] = node_class


register_node(LevelSetNode)


def _as_observations(found: Sequence[Measurement]) -> Observations:
    rows = torch.tensor([m.row for m in found], dtype=torch.long)
    y, yvar = (
        torch.tensor(values, dtype=torch.float64).squeeze(-1)  # of one output a vector
        for values in ([m.y for m in found], [m.yvar for m in found])
    )
    has_means = any(m.count > 1 for m in found)
    counts = torch.tensor([m.count for m in found]) if has_means else None
    return Observations(rows, y, yvar if yvar.numel() else None, counts=counts)


# --- metrics --------------------------------------------------------------------------


def _check_asynchronous(strategy: Strategy) -> None:
    r"""Refuse algorithms that judge whole rounds.

    Raises:
        UnsupportedError: If the strategy needs the rows of a round together.
    """
    if not strategy.init().run.ask(strategy.algorithm.takes_any_rows):
        raise UnsupportedError(
            "Expected a strategy that learns from each result as it comes, but "
            f"{type(strategy).__name__} judges whole rounds, or has a burn-in. Leave "
            "`asynchronous` out."
        )


def _checked_metrics(metrics: Any) -> tuple[str, ...] | None:
    r"""The names of metrics given to a node; ``None`` for those of the objective.

    Raises:
        ValueError: If they are not a list of different names.
    """
    if metrics is None:
        return None
    try:
        names = [] if isinstance(metrics, str) else list(metrics)
    except TypeError:
        names = []
    are_names = bool(names) and all(isinstance(name, str) for name in names)
    if not are_names or len(set(names)) < len(names):
        one = [metrics] if isinstance(metrics, str) else ["y"]
        raise ValueError(
            "Expected `metrics` to be a list of different names, one per output of the "
            f"strategy, but got {metrics!r}. Write `metrics={one}`."
        )
    return tuple(names)


def can_fetch(metric: Metric) -> bool:
    r"""Whether a metric can fetch its values itself; a client's own cannot."""
    names = ("fetch_trial_data", "bulk_fetch_trial_data", "bulk_fetch_experiment_data")
    return any(getattr(type(metric), n) is not getattr(Metric, n) for n in names)


def _objective_signs(experiment: Experiment) -> dict[str, float]:
    r"""The metrics of the objective, positive where they are to be maximised."""
    config = experiment.optimization_config
    return {} if config is None else dict(config.objective.metric_weights)


def _wanted_metrics(n: int, found: str, known: Sequence[str] = ()) -> str:
    r"""The error message where there are not ``n`` metrics, one per output.

    Args:
        n: How many are wanted.
        found: What there is in place of them.
        known: The metrics of the objective.
    """
    if n == 1:
        one = known[0] if known else "y"
        total = " A sum needs a metric of its own." if len(known) > 1 else ""
        return (
            f"Expected an objective with one metric, or `metrics`, but {found}. Call "
            f'`client.configure_optimization(objective="{one}")`, or pass '
            f'`metrics=["{one}"]`.{total}'
        )
    return (
        f"Expected one metric per output of the strategy ({n}), but {found}. Call "
        '`client.configure_optimization(objective="y, -z")`, or pass '
        '`metrics=["y", "z"]`, the outputs in order.'
    )


# --- predictions ----------------------------------------------------------------------


class LevelSetGenerator(Generator):
    r"""A generator that tells Ax of predictions; it makes no candidates.

    Candidates come from the node. Both flags are true: every row can be predicted, also
    rows that were measured.
    """

    can_predict = can_model_in_sample = True


class LevelSetAdapter(Adapter):
    r"""Predictions of a GP strategy's outputs, anywhere in the search space.

    The posterior after the complete rounds, in the units of the metrics, noise
    excluded; outputs are independent of each other. Off the pool the columns of the
    model must come from parameters.

    Args:
        node: The node that holds the strategy.
        experiment: Its experiment.
    """

    def __init__(self, node: LevelSetNode, experiment: Experiment) -> None:
        names = node.metric_names(experiment)
        super().__init__(
            experiment=experiment,
            generator=LevelSetGenerator(),
            # Ax compares all data here with predictions: there are none of costs.
            data=experiment.lookup_data().filter(metric_names=names),
            fit_on_init=False,
        )
        self.outcomes = [experiment.metrics[name].signature for name in names]
        self._node = node

    def _predict(
        self,
        observation_features: list[ObservationFeatures],
        use_posterior_predictive: bool = False,
    ) -> list[ObservationData]:
        if use_posterior_predictive:
            raise UnsupportedError(
                "Expected `use_posterior_predictive=False`: the prediction is that of "
                "the function. Add the noise variance for a new measurement's."
            )
        state = self._node.state(self._experiment)
        return [self._at(f.parameters, state) for f in observation_features]

    def _cross_validate(
        self,
        search_space: SearchSpace,
        cv_training_data: ExperimentData,
        cv_test_points: list[ObservationFeatures],
        use_posterior_predictive: bool = False,
    ) -> list[ObservationData]:
        r"""The predictions at points, had only some values been measured.

        The model stays as it was learnt from all of them.
        """
        experiment = self._experiment
        ledger, state = self._node.ledger(experiment), self._node.state(experiment)
        known = {
            (int(trial), arm) for trial, arm, *_ in cv_training_data.arm_data.index
        }
        found = [
            result
            for round_ in (*ledger.complete, *filter(None, [ledger.open]))
            for result in round_.results
            if (result.trial, result.arm) in known
        ]
        data = _as_observations(found)
        return [self._at(p.parameters, state, data) for p in cv_test_points]

    def _at(
        self,
        parameters: TParameterization,
        state: State,
        data: Observations | None = None,
    ) -> ObservationData:
        r"""The prediction at a row, or at any point where the model takes points.

        Args:
            parameters: The row's, or the point's.
            state: After the complete rounds.
            data: Measurements to predict from, in place of all.
        """
        space, strategy = self._node.space(self._experiment), self._node.strategy
        pool, N = strategy.pool, len(strategy.candidates)
        has_sources = pool.target is not None
        row: int | None = None
        outputs = slice(None)
        if strategy.takes_history and space.is_off_the_pool(parameters):
            x = torch.tensor(space.point_of(parameters, "the point"))
        else:
            row = space.row_of(parameters, "the point")
            x = pool.X[row] if has_sources else strategy.candidates.X[row % N]
            if len(pool) > N and not has_sources:  # a row is one of several outputs
                outputs = slice(row // N, row // N + 1)
        try:
            predicted = (_at_sources if has_sources else State.predict)(
                state, x.unsqueeze(0), data=data
            )
            mean, sigma = (part.view(-1) for part in predicted)
        except botorch_errors.UnsupportedError:
            if row is None:
                raise
            is_decided = row in range(len(pool))[pool.of_target]
            if data is None and strategy.n_predicted == 1 and is_decided:
                answer, only = state.classification, slice(row % N, row % N + 1)
                mean, sigma = answer.mean[only], answer.sigma[only]
            else:
                known = state.observations if data is None else data
                if has_sources:
                    known = known.select(known.indices // N == row // N)
                mean, sigma = _of_values(known)
                mean, sigma = (m.expand(strategy.n_predicted) for m in (mean, sigma))
        return ObservationData(
            metric_signatures=self.outcomes,
            means=mean[outputs].numpy(),
            covariance=sigma[outputs].square().diag().numpy(),
        )


class _EachSource(FromSources):
    r"""The layout of points that say their source themselves, in the last column."""

    def with_target(self, X: Tensor) -> Tensor:
        r"""The points as they are."""
        return X


def _at_sources(
    state: State, X: Tensor, *, data: Observations | None = None
) -> tuple[Tensor, Tensor]:
    r"""The prediction at points of any source; ``state.predict`` has the target's.

    Args:
        state: After the complete rounds.
        X: ``M x d`` points, in the columns of the pool.
        data: Measurements to predict from, in place of all.
    """
    algorithm: Any = state.strategy.algorithm
    layout = algorithm.model.layout
    own = _EachSource(layout.pool, layout.n_outputs, layout.told)
    algorithm = replace(algorithm, model=replace(algorithm.model, given_layout=own))
    data = None if data is None else state.strategy._complete(data)
    found: tuple[Tensor, Tensor] = state.run.ask(algorithm.predict, X, data)
    return found


def _of_values(data: Observations) -> tuple[Tensor, Tensor]:
    r"""The prediction before a model is fitted: the mean and spread of values so far.

    Before there are two that differ, 0 and 1: a process in standard units.
    """
    y = data.y if data.y.ndim > 1 else data.y.unsqueeze(-1)
    if len(y) < 2 or bool((y.amax(dim=0) <= y.amin(dim=0)).any()):
        return torch.zeros(1, dtype=y.dtype), torch.ones(1, dtype=y.dtype)
    return y.mean(dim=0), y.std(dim=0)


# --- generation strategies ------------------------------------------------------------


def level_set_generation_strategy(
    strategy: Strategy,
    metrics: Sequence[str] | None = None,
    *,
    seed: int = 0,
    name: str | None = None,
    pool_folder: str | Path | None = None,
    max_failures: int | None = MAX_FAILURES,
    asynchronous: bool = False,
) -> GenerationStrategy:
    r"""Any strategy as an Ax generation strategy.

    Example:
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="lse")
        >>> client.configure_optimization(objective="y")
        >>> strategy = LSEStrategy(pool, threshold=0.0, batch_size=2, noise_std=0.1)
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> len(client.get_next_trials(max_trials=100))  # the rest of the round
        2

    Results are attached as ``(mean, sem)``: a known sem is the standard deviation of
    the value's noise and goes before the strategy's ``noise_std``; without both the
    noise is learned. A sem of 0 is an exact measurement. Answers of yes and no, told as
    1 and 0 to a model with ``outcome=Binary()``, have no sem; a 0 is taken for none.

    The place of a failed trial is asked again, as a new trial; the place of an
    abandoned one is used up. A row that failed three times is not asked again
    (``max_failures``; ``exclude_rows`` says so by hand). ``run_experiment`` runs the
    whole loop. Where measurements have costs, ``trial_cost`` computes them by trial.

    Args:
        strategy: The strategy; the experiment's search space comes from
            ``pool_parameters(strategy.pool)``, or its parameters are columns of the
            pool.
        metrics: The metrics in the order of the strategy's outputs; default those that
            its goal names, else those of the experiment's objective.
        seed: Fixes everything random.
        name: The name of the node and of the generation strategy.
        pool_folder: Where a pool above 20 MB is written; default the current folder.
        max_failures: How many trials of a row may fail or be abandoned before it is
            not asked for any more; ``None``: as many as it likes.
        asynchronous: Whether rows are asked for while others are out, at any time, and
            each result is learnt from as it comes. The widths hold as they do for
            rounds, if which results are in depends on no value: if it takes no longer,
            and fails no more often, to measure a value because it is large.

    Raises:
        ValueError: If the strategy cannot be stored, ``metrics`` is no list, or
            ``max_failures`` less than 1.
        UnsupportedError: If ``asynchronous`` is wanted of an algorithm that judges
            whole rounds, or has a burn-in.
    """
    node = LevelSetNode(
        strategy,
        metrics,
        seed=seed,
        name=name,
        pool_folder=pool_folder,
        max_failures=max_failures,
        asynchronous=asynchronous,
    )
    return GenerationStrategy(nodes=[node], name=node.name)


def level_set_node(generation_strategy: GenerationStrategy | None) -> LevelSetNode:
    r"""The generation strategy's ``LevelSetNode``: the current one, else the last.

    Raises:
        ValueError: If the strategy has no such node.
    """
    current, ours = level_set_nodes(generation_strategy)
    if not ours:
        found = type(generation_strategy).__name__
        if isinstance(generation_strategy, GenerationStrategy):
            found = repr(generation_strategy.name)
        raise ValueError(
            f"Expected `generation_strategy` to hold a LevelSetNode, but got {found}. "
            "Call `client.set_generation_strategy(level_set_generation_strategy("
            "strategy))`; for a modular generator use `client.predict` on the rows."
        )
    return current or ours[-1]


def exclude_rows(client: Client, rows: Any, *, undo: bool = False) -> None:
    r"""Exclude rows that cannot be measured; they are not asked for any more.

    It counts for the round that is open, else for the next one, and is stored with the
    experiment, so that a run that is loaded goes on in the same way. Trials of these
    rows that are running stay: complete them, or mark them failed. Rows whose trials
    fail again and again need no word: see ``max_failures``.

    Example:
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy, pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="lse")
        >>> client.configure_optimization(objective="y")
        >>> strategy = LSEStrategy(pool, threshold=0.0, batch_size=1, noise_std=0.1)
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> exclude_rows(client, [0, 1])
        >>> client.get_next_trials(max_trials=1)
        {0: {'pool_index': 2}}

    Args:
        client: With its experiment and generation strategy.
        rows: Rows of the pool, as numbers or as parameters of trials.
        undo: Whether to take that back: rows that were excluded by hand may be asked
            for again, from the next round on.

    Raises:
        ValueError: If a row is not in the pool, or there is no ``LevelSetNode``.
        UnsupportedError: If the strategy's algorithm needs the rows it asks for.
    """
    node = level_set_node(generation_strategy_of(client))
    experiment = experiment_of(client)
    rows = [rows] if isinstance(rows, Mapping) else rows
    if isinstance(rows, list | tuple):
        row_of = node.space(experiment).row_of
        rows = [row_of(r, "`rows`") if isinstance(r, Mapping) else r for r in rows]
    found = row_indices(rows, "rows", len(node.strategy.pool)).unique()
    named = list(excluded_in(experiment, node.name))
    if truth_value(undo, "undo"):
        named = [pair for pair in named if pair[1] not in found.tolist()]
    else:
        # It refuses what the strategy refuses, before anything is stored.
        node.strategy.exclude(node.state(experiment), found)
        ledger, known = node.ledger(experiment), {row for _, row in named}
        number = ledger.n_own_rounds
        if ledger.open is not None and ledger.open.number is not None:
            number = ledger.open.number
        named += [(number, row) for row in found.tolist() if row not in known]
    stored = properties_of(experiment).setdefault(EXCLUDED, {})
    stored[node.name] = [list(pair) for pair in named]
    save_properties(experiment)


def level_set_nodes(
    generation_strategy: Any,
) -> tuple[LevelSetNode | None, list[LevelSetNode]]:
    r"""The current node if it is a ``LevelSetNode``, and all such nodes in order.

    Anything else than a generation strategy has no such nodes.
    """
    if not isinstance(generation_strategy, GenerationStrategy):
        return None, []
    nodes = generation_strategy.nodes_by_name
    ours = {n: node for n, node in nodes.items() if isinstance(node, LevelSetNode)}
    return ours.get(generation_strategy.current_node_name), list(ours.values())


def learnt_metrics(experiment: Experiment, generation_strategy: Any) -> list[str]:
    r"""The metrics that an evaluation must return.

    They are those of the level-set strategy, also while a node before it makes the
    trials: an evaluation without one of them is of no use to it later. Without a
    level-set strategy they are the metrics of the objective.

    Raises:
        ValueError: If there are no such metrics.
    """
    current, ours = level_set_nodes(generation_strategy)
    if ours:
        return list((current or ours[0]).metric_names(experiment))
    names = list(_objective_signs(experiment))
    if not names:
        raise ValueError(_wanted_metrics(1, "the experiment's objective has none"))
    return names
