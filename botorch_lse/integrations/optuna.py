r"""A sampler for Optuna studies that are to find where something is above a level.

Needs ``pip install 'botorch-lse[optuna]'``.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from botorch_lse._validation import complaint, of_type
from botorch_lse.data.observations import Observations
from botorch_lse.models.outcomes import of_failure
from botorch_lse.strategies import State, Strategy
from botorch_lse.strategies.algorithm import MAX_FAILURES
from botorch_lse.strategies.loop import Unasked

__all__ = ["LevelSetSampler"]

ROW = "botorch_lse:row"
"""The attribute of a trial that says which row of the pool it is."""


class LevelSetSampler(BaseSampler):
    r"""A sampler of a pool's rows that stops the study when the strategy is done.

    Parameters have the names of the pool's columns. The outputs are the values that the
    objective returns, or where the goal names its outputs, user attributes of the trial
    (``trial.set_user_attr("strength", 41.0)``). What is known is a function of the
    study's trials, so that a study that is loaded goes on, also with several workers:
    trials that are running count as being measured. Failed and pruned trials are asked
    for again, three times in all (without end by algorithms that need the very rows
    that they ask for). Enqueued trials count where they are rows. ``study.optimize``
    ends with the run; who calls ``study.ask`` looks at ``sampler.state(study)``, and
    after the end is given the row with the widest interval.

    Example:
        >>> import optuna
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import Above, Strategy
        >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
        >>> pool = Pool([[0.0], [0.5], [1.0]], names=("x",))
        >>> sampler = LevelSetSampler(Strategy(pool, Above(0.6), max_observations=3))
        >>> study = optuna.create_study(sampler=sampler)
        >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=9)
        >>> len(study.trials), sampler.state(study).stop_reason
        (3, 'budget')

    Args:
        strategy: The strategy; without a ``batch_size`` each result is learnt from as
            it comes.
        seed: Of the strategy.

    Raises:
        ValueError: If ``strategy`` is not a strategy.
    """

    def __init__(self, strategy: Strategy, seed: int = 0) -> None:
        of_type(
            strategy,
            Strategy,
            "strategy",
            "a Strategy",
            "Write `Strategy(pool, Above(0.5))`.",
        )
        self.strategy, self.seed = strategy, seed
        self._table = strategy.pool.to_frame()
        self._states: dict[int, tuple[State, frozenset[int]]] = {}
        self._added: dict[int, Unasked] = {}
        self._lock = threading.RLock()  # Optuna's threads share one sampler

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_lock"}

    def __setstate__(self, parts: dict[str, Any]) -> None:
        vars(self).update(parts, _lock=threading.RLock())

    # --- what is known ----------------------------------------------------------------

    def state(self, study: Study) -> State:
        r"""The state of the run after all finished trials of a study."""
        with self._lock:
            start = self.strategy.init(self.seed), frozenset[int]()
            state, known = self._states.get(study._study_id, start)
            ended = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)
            trials = study.get_trials(deepcopy=False, states=ended)
            new = [trial for trial in trials if trial.number not in known]
            new.sort(key=lambda t: (t.datetime_complete or datetime.max, t.number))
            for trial in new:
                state = self._told(state, study, trial, trial.state, trial.values)
                known |= {trial.number}
                self._states[study._study_id] = state, known
            return state

    def _told(
        self,
        state: State,
        study: Study,
        trial: FrozenTrial,
        ended: TrialState,
        values: Sequence[float] | None,
    ) -> State:
        row = self._row_of(trial)
        if row is None or state.is_done:
            return state
        y = self._outputs(trial, values) if ended == TrialState.COMPLETE else []
        # Nobody asks the sampler for a parameter that is fixed, or has one value.
        for name in trial.params if y and ROW in trial.system_attrs else ():
            if name in self._table:
                self._value(row, name, trial.distributions[name], trial.params[name])
        if ended == TrialState.FAIL and {*self._table} <= {*trial.params}:
            y = [*(of_failure(self.strategy.outcomes_of(row)) or ())]
        if y and all(map(math.isfinite, y)):
            told = torch.tensor([y] if len(y) > 1 else y, dtype=torch.float64)
            new = Observations(torch.tensor([row]), told)
            if ROW in trial.system_attrs:
                return self.strategy.tell(state, new)
            known = self._added.get(study._study_id)
            # A run elsewhere may have ended it in other portions.
            known = self._added[study._study_id] = Unasked.after(state, new, known)
            return known.state
        if not state.run.ask(self.strategy.algorithm.takes_any_rows):
            return state  # its algorithm needs this row: it is asked for again
        failed = [
            other
            for other in study.get_trials(deepcopy=False)
            if other.number <= trial.number
            and other.state in (TrialState.FAIL, TrialState.PRUNED)
            and self._row_of(other) == row
        ]
        if len({*(other.number for other in failed), trial.number}) >= MAX_FAILURES:
            return self.strategy.exclude(state, [row])
        return state

    def _row_of(self, trial: FrozenTrial) -> int | None:
        found: int | None = trial.system_attrs.get(ROW)
        if found is not None or not {*self._table} <= {*trial.params}:
            return found
        return self.strategy.pool.row_of(trial.params)

    def _outputs(
        self, trial: FrozenTrial, values: Sequence[float] | None
    ) -> list[float]:
        names, n = self.strategy.outputs, self.strategy.n_outputs
        if not names:
            if values is None or len(values) != n:
                wanted = f"to return {n} value{'s' if n > 1 else ''}, one per output"
                raise ValueError(complaint("objective", wanted, f"got {values}"))
            return [float(value) for value in values]
        missing = [name for name in names if name not in trial.user_attrs]
        if missing:
            wanted = f"to set the user attributes {list(names)} of each trial"
            raise ValueError(complaint("objective", wanted, f"{missing} are missing"))
        return [float(trial.user_attrs[name]) for name in names]

    # --- Optuna's questions -----------------------------------------------------------

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        r"""Choose the row of a trial, and note it in the trial."""
        if "fixed_params" in trial.system_attrs:  # it was enqueued
            return
        with self._lock:
            state = self.state(study)
            running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            rows = [self._row_of(t) for t in running if t.number != trial.number]
            out = [row for row in rows if row is not None]
            if self.strategy.room(state, out) == 0:
                _stop(study)
                answer = state.classification
                row = int((answer.upper - answer.lower).nan_to_num(0.0).argmax())
            else:
                row = int(self.strategy.ask(state, pending=out).order[0])
            study._storage.set_trial_system_attr(trial._trial_id, ROW, row)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        r"""An empty space: parameters are asked for one by one."""
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, Any]
    ) -> dict[str, Any]:
        r"""An empty sample: parameters are asked for one by one."""
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        r"""The value of a parameter in the row of the trial.

        Raises:
            ValueError: If the pool has no column of that name or the distribution does
                not contain it, or a trial was enqueued without this parameter.
        """
        if param_name not in self._table:
            wanted = f"to be a column of the pool, {list(self._table)}"
            raise ValueError(complaint("name", wanted, f"got {param_name!r}"))
        if ROW not in trial.system_attrs:
            came = f"{param_name!r} is missing"
            raise ValueError(complaint("params", "to be whole where enqueued", came))
        return self._value(trial.system_attrs[ROW], param_name, param_distribution)

    def _value(
        self, row: int, name: str, asked: BaseDistribution, given: Any = None
    ) -> Any:
        # The value of a row as the distribution has it, which is to be the one given.
        (value,) = self._table[name].iloc[[row]].tolist()
        near = _nearest(value, asked)
        if near is not None and given in (None, near):
            return near
        entries = self._table[name].unique().tolist()
        wanted = f"to be {value!r} in row {row} of the pool"
        came = f"got {'' if given is None else f'{given!r} from '}{asked}"
        how, choices = "categorical", f"{entries}"
        if all(isinstance(entry, int | float) for entry in entries):
            how, choices = "float", f"{min(entries)}, {max(entries)}"
        remedy = f"Call `trial.suggest_{how}({name!r}, {choices})`"
        after = "" if given is None else " in a new study, and fix no parameter"
        raise ValueError(complaint(name, wanted, came, f"{remedy}{after}."))

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        r"""Learn from a trial that ends, and stop the study when all is decided."""
        with self._lock:
            now = self._told(self.state(study), study, trial, state, values)
            known = self._states.get(study._study_id, (now, frozenset[int]()))[1]
            self._states[study._study_id] = now, known | {trial.number}
            if now.is_done:
                _stop(study)


def _nearest(value: Any, asked: Any) -> Any:
    # The value of a distribution that is the given one up to rounding, if there is one.
    if isinstance(asked, CategoricalDistribution):
        return value if value in asked.choices else None
    if not isinstance(value, int | float):
        return None
    near, step = min(max(value, asked.low), asked.high), asked.step or 0
    near = asked.low + round((near - asked.low) / step) * step if step else near
    # Single precision may have rounded a row; whole numbers may be stored as floats.
    alike = math.isclose(value, near, rel_tol=1e-7, abs_tol=1e-7 * step)
    return near if alike else None


def _stop(study: Study) -> None:
    # Optuna raises where `study.ask` and `study.tell` are called by hand, and refuses
    # the last result with it: there is no loop to end then.
    with contextlib.suppress(RuntimeError):
        study.stop()
