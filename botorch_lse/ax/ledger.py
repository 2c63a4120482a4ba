r"""The ledger of an experiment: rounds asked for, and measurements found.

The rule, a function of trials and data alone, whatever order results came in:

- A trial is *own* if this node made it; its generator run holds its round and the plan
  of that round. Everything else in the pool is *measured elsewhere*.
- Own rounds count in order. What was measured elsewhere in trials between the first
  trial of one round and the first trial of the next is one round between the two,
  whose measurements count as one look at the intervals each.
- COMPLETED and EARLY_STOPPED trials with data count as measured; of the latter only
  values without a progression, since one at a step is what the trial had come to when
  it was stopped, and not what is asked for. The row of a FAILED or STALE trial is asked
  for again; that of an ABANDONED one, of an abandoned arm and of an EARLY_STOPPED one
  without data is *used up*: it is not asked for again in this round. Data of failed and
  abandoned trials are left out, as Ax does. An arm with a value that is nan or infinite
  failed, whatever became of its trial: Ax lets nobody mark a completed trial. Where all
  metrics are answers of which a failure is one (``Binary(failures="outcome")``), a
  FAILED trial, whoever made it, and such an arm count as measured. All other rows are
  *running*.
- A round is over when each measurement of its plan is made or used up, or when a later
  round has trials (then what is still missing counts as used up).
- Trials with parameters that are no row of the pool are a *history*: where the model
  takes points, their results count as measured before the run, in the order of the
  trials. What is running there does not matter.
- Where the plan of a round changes while it is asked for (it grows, another row takes
  the place of an excluded one, or what was measured elsewhere leaves the budget fewer
  places), that of its newest trial counts.
- Asynchronous nodes have no rounds that are waited for. Each of their generator runs
  holds the trials whose results were in when its row was planned: these are a round,
  and what came since is one more. So the order in which results came is that in which
  they were learnt from, whatever a clock said, and a run that is loaded goes on with
  the same rows. They hold likewise which rows had been excluded by then.
- A row whose own trials failed or were abandoned ``max_failures`` times is *excluded*
  from the round of the last of them on: it is not asked for any more, and the places
  that the plan still holds for it are *free*. So it is with rows that ``exclude_rows``
  names, from the round that was open then, or came next. Who takes free places the
  strategy says, from the complete rounds and the rest of the plan; the generator run
  that asks for one of them stores the new plan.

A standard error (``sem``) that is known gives the noise variance ``sem^2`` of the
value; 0, also one that Ax's storage rounds to 0, is an exact measurement. Where it is
missing, the strategy's own noise counts (``noise_std`` or ``pool.noise_var``, divided
by the weight of the arm, which is the number of replicates in its value); where that is
missing too, the noise is unknown and learned.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from ax.core import Arm, BatchTrial, Data, Experiment, GeneratorRun
from ax.core.base_trial import BaseTrial
from ax.core.trial_status import TrialStatus

from botorch_lse._numerals import written
from botorch_lse.ax.compat import (
    arms_of,
    as_stored,
    cells_of,
    node_name_of,
    properties_of,
)
from botorch_lse.ax.pool_space import PoolSpace
from botorch_lse.models.outcomes import LogNormal, Quantity, of_failure
from botorch_lse.strategies import Strategy

METADATA = "level_set"
"""The key of our entry in a generator run's ``gen_metadata``."""

EXCLUDED = "level_set_excluded"
"""The key in an experiment's properties of rows that were excluded by hand."""

NOWHERE = -1
"""The row number of a measurement that is at no row."""

_FREES = (TrialStatus.FAILED, TrialStatus.STALE)
_COUNTS = (TrialStatus.COMPLETED, TrialStatus.EARLY_STOPPED)
_LOST_IN_STORAGE = 1e-4
"""The share of the largest value that rounding to Ax's ten decimals may change.
A larger change could move a row to the other side of the level after loading."""


@dataclass(frozen=True, order=True)
class Measurement:
    r"""The measurement of one arm.

    Args:
        row: The row of the pool.
        y: One value per metric.
        yvar: Their noise variances; empty if unknown.
        trial: The trial's index.
        arm: The arm's name.
        count: How many of the round's planned measurements this value is the mean of:
            the arm's weight.
    """

    row: int
    y: tuple[float, ...]
    yvar: tuple[float, ...]
    trial: int
    arm: str
    count: int = 1


@dataclass(frozen=True)
class Round:
    r"""A round of the experiment, or the contribution of one arm to it.

    Args:
        plan: The rows asked for, or measured elsewhere.
        results: Their measurements so far.
        lost: Rows of the plan that were abandoned and will not be measured.
        running: Rows that are being measured, once for each replicate.
        running_trials: The indices of the trials that measure them.
        unfilled: Those of these that are completed without their data.
        remedy: How to fill in what is missing of the first of them.
        number: The position of the open round among the own rounds, from 0; ``None``
            for a complete round.
        excluded: Rows that are known since this round not to be measurable.
        n_free: Places of the open round that they left and nobody has taken yet.
        is_own: Whether this node asked for it; if not, nobody knows how often what was
            measured elsewhere was looked at while it came.
    """

    plan: tuple[int, ...] = ()
    results: tuple[Measurement, ...] = ()
    lost: tuple[int, ...] = ()
    running: tuple[int, ...] = ()
    running_trials: tuple[int, ...] = ()
    unfilled: tuple[int, ...] = ()
    remedy: str | None = None
    number: int | None = None
    excluded: tuple[int, ...] = ()
    n_free: int = 0
    is_own: bool = True

    @property
    def to_ask(self) -> list[int]:
        r"""The rows of the plan for which there is no trial yet, sorted."""
        measured = [m.row for m in self.results for _ in range(m.count)]
        gone = [*measured, *self.lost, *self.running]
        return sorted((Counter(self.plan) - Counter(gone)).elements())

    @property
    def is_over(self) -> bool:
        r"""Whether no row is being measured and none is left to ask for."""
        return not self.running and not self.to_ask and not self.n_free

    def what_is_awaited(self, n_issued: int) -> str:
        r"""The events that must happen before the round is over, in words.

        Args:
            n_issued: How many of its rows the call that asks has received already.
        """
        rows = f"{len(self.plan)} row{'s' * (len(self.plan) != 1)}"
        if n_issued:
            return (
                f"Round {self.number} has {rows}, and all that were left are given "
                f"out. Ask for at most {n_issued} trial{'s' * (n_issued != 1)} now."
            )
        trials = ", ".join(map(str, self.running_trials))
        words = [
            f"Round {self.number} is open: {len(self.running)} of its "
            f"{rows} {'are' if self.running[1:] else 'is'} out (trials {trials})."
        ]
        if {*self.running_trials} - {*self.unfilled}:  # Ax marks none that is completed
            words.append(
                "Complete those that run, or mark them failed (asked again) or "
                "abandoned (used up)."
            )
        return " ".join([*words, *filter(None, [self.remedy])])

    def close(self) -> Round:
        r"""The round as a complete one: rows without a measurement become used up."""
        lost = sorted([*self.lost, *self.running, *self.to_ask])
        results = tuple(sorted(self.results))
        return Round(self.plan, results, tuple(lost), excluded=self.excluded)

    def without(self, rows: Sequence[int]) -> Round:
        r"""The round that asks for no more of some rows, which it excludes."""
        places = Counter(row for row in self.to_ask if row in set(rows))
        plan = tuple((Counter(self.plan) - places).elements())
        free = sum(places.values())
        return replace(self, plan=plan, excluded=tuple(rows), n_free=free)

    def refilled(self, rows: Sequence[int]) -> Round:
        r"""The round with rows in its free places; places still free are given up."""
        plan = tuple(sorted([*self.plan, *rows]))
        return replace(self, plan=plan, n_free=0)

    def asking_only(self, rows: Sequence[int]) -> Round:
        r"""The round whose plan asks for the given rows only."""
        kept = Counter(self.plan) - Counter(self.to_ask) + Counter(rows)
        return replace(self, plan=tuple(sorted(kept.elements())))


@dataclass(frozen=True)
class Ledger:
    r"""The rounds of an experiment, as ``LedgerReader`` found them.

    Args:
        complete: The complete rounds in order, own ones and those measured elsewhere.
        open: The round that is open, if one is.
        measured_meanwhile: What was measured elsewhere since the open round began; it
            becomes a round once that one is over.
        pending: Rows of trials not made by this node that are being measured.
        n_own_rounds: How many rounds this node has begun.
        excluded: Rows that are known since the last round not to be measurable.
        unseen: The trials whose results came since the last row was planned, where the
            node is asynchronous.
        newly_excluded: The rows that were excluded since then, likewise.
        points: What was measured off the pool.
        failed: The arms, by trial and name, whose values are nan or infinite.
        unfilled: Where the node is asynchronous, the trials that are completed without
            their data.
    """

    complete: tuple[Round, ...]
    open: Round | None
    measured_meanwhile: tuple[Measurement, ...]
    pending: tuple[int, ...]
    n_own_rounds: int
    excluded: tuple[int, ...] = ()
    unseen: tuple[int, ...] = ()
    newly_excluded: tuple[int, ...] = ()
    points: tuple[Point, ...] = ()
    failed: frozenset[tuple[int, str]] = frozenset()
    unfilled: tuple[int, ...] = ()

    def going_on_with(self, round_: Round) -> Ledger:
        r"""The ledger with another plan of the open round.

        The round is over if it was waiting only for places that the plan gives up.
        """
        if not round_.is_over:
            return replace(self, open=round_)
        new = (round_.close(), *_elsewhere(self.measured_meanwhile))
        done = (*self.complete, *new)
        return replace(self, complete=done, open=None, measured_meanwhile=())


class Point(NamedTuple):
    r"""A measurement that is at no row of the pool.

    Args:
        x: What the model takes of its parameters.
        y: One value per metric.
        yvar: Their noise variances; empty if unknown.
        trial: The trial's index.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    yvar: tuple[float, ...]
    trial: int


_Arrival = tuple[Round, list[Measurement]]
"""The round of what a trial brought, and its measurements that were made elsewhere."""


@dataclass
class _Asked:
    r"""The requests that the generator runs of one trial made.

    Args:
        plans, seen, gone: See ``_Entry``.
        arms: The arms by their names.
        weights: The weight of each arm, of all runs together.
        rounds: The first round that asked for each own arm.
        counts: How often the plan holds each own arm.
    """

    plans: dict[int, tuple[int, ...]] = field(default_factory=dict)
    seen: dict[int, tuple[int, ...]] = field(default_factory=dict)
    gone: dict[int, tuple[int, ...]] = field(default_factory=dict)
    arms: dict[str, Arm] = field(default_factory=dict)
    weights: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    rounds: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


class _Entry(NamedTuple):
    r"""The contribution of one trial to the ledger.

    Args:
        plans: The plan of each round that the trial belongs to, by the round's number.
        seen: The trials whose results were in when each of these rounds was planned.
        gone: The rows that had been excluded since the plan before, likewise.
        parts: What each arm contributes, with the number of the round for which the arm
            was asked; ``None`` if it was measured elsewhere.
        points: What it measured off the pool.
        failed: The rows of own arms that failed or were abandoned, with their rounds.
        spoilt: The names of the arms whose values are nan or infinite.
        largest: The largest absolute value among its data.
        rounding_error: The largest change of a value in Ax's storage format.
    """

    plans: dict[int, tuple[int, ...]]
    seen: dict[int, tuple[int, ...]]
    gone: dict[int, tuple[int, ...]]
    parts: list[tuple[int | None, Round]]
    points: tuple[Point, ...]
    failed: tuple[tuple[int, int], ...]
    spoilt: tuple[str, ...]
    largest: float
    rounding_error: float


_Values = Mapping[str, Mapping[str, tuple[float, float, float]]]
"""The values by arm and metric: as given, as stored, and the standard error.
Values that are nan or infinite are nan here."""


class LedgerReader:
    r"""A reader of an experiment by the rule of this module; it can read again.

    The contribution of a trial is kept from one reading to the next. It is computed
    again only if the trial is another object, its status, its abandoned arms or its
    data changed by value, or it is a candidate, whose arms Ax lets one change until it
    runs (``immutable_once_run``). Finding these trials takes a fraction of a
    microsecond for each, computing a contribution some hundred microseconds.

    Args:
        node_name: The node whose trials are own.
        strategy: Has the pool, and the noise where the data have no standard errors.
        space: The candidates' parameterizations.
        metrics: The metrics in the order of the strategy's outputs.
        max_failures: How often a row may fail; ``None``: as often as it likes.
        asynchronous: Whether results are learnt from as they come.
    """

    def __init__(
        self,
        node_name: str,
        strategy: Strategy,
        space: PoolSpace,
        metrics: Sequence[str],
        max_failures: int | None = None,
        asynchronous: bool = False,
    ) -> None:
        self.node_name, self.strategy = node_name, strategy
        self.max_failures, self.asynchronous = max_failures, asynchronous
        self._named: tuple[tuple[int, int], ...] = ()
        self.space, self.metrics = space, tuple(metrics)
        self._known: dict[int, _Entry] = {}
        self._trials: dict[int, BaseTrial] = {}
        self._statuses: dict[TrialStatus, set[int]] = {}
        self._abandoned: dict[int, set[str]] = {}
        self._cells: list[tuple[Any, ...]] = []
        self._rows: dict[int, list[tuple[Any, ...]]] = {}  # the same by trial
        self._closed: dict[int, tuple[Any, list[Round]]] = {}
        self._ledger: Ledger | None = None

    def read(self, experiment: Experiment, data: Data) -> Ledger:
        r"""The rounds of an experiment in its present state.

        Raises:
            ValueError: If a trial that counts holds no row of the pool, one of this
                node's trials was planned on another pool, a standard error is no noise,
                known and unknown noise are mixed, or values are lost in Ax's storage.
        """
        to_read = self._trials_with_changed_data(data) | self._possibly_changed(
            experiment
        )
        known, self._ledger = self._ledger, None  # after an error all is read again
        before, trials = self._known, experiment.trials
        indices = sorted(to_read & trials.keys())
        values = _values(self._final(trials[i]) for i in indices)
        new = {i: self._entry(trials[i], values.get(i, {})) for i in indices}
        changed = {i: entry for i, entry in new.items() if before.get(i) != entry}
        named = excluded_in(experiment, self.node_name)
        is_new = named != self._named
        self._named = named
        if known is None or changed or is_new or [*before] != [*trials]:
            self._known = {i: changed.get(i) or before[i] for i in trials}
            _check_together([*self._known.values()], self.strategy, self.metrics)
            known = self._by_arrival() if self.asynchronous else self._assembled()
            points = tuple(p for entry in self._known.values() for p in entry.points)
            spoilt = ((t, a) for t, e in self._known.items() for a in e.spoilt)
            known = replace(known, points=points, failed=frozenset(spoilt))
        self._ledger = known
        return known

    def _final(self, trial: BaseTrial) -> Sequence[tuple[Any, ...]]:
        r"""The rows of a trial's data, without those after an early stop."""
        rows = self._rows.get(trial.index, ())
        if not trial.status.is_early_stopped:
            return rows
        return [row for row in rows if _step(row) == math.inf]

    def _trials_with_changed_data(self, data: Data) -> set[int]:
        r"""The trials whose rows of data changed, by value."""
        cells = cells_of(data)
        if cells == self._cells:
            return set()
        before, now = self._rows, dict[int, list[tuple[Any, ...]]]()
        for row in cells:
            now.setdefault(row[0], []).append(row)
        self._cells, self._rows = cells, now
        return {t for t in before.keys() | now.keys() if before.get(t) != now.get(t)}

    def _possibly_changed(self, experiment: Experiment) -> set[int]:
        r"""The trials whose contribution may change, whatever their data."""
        if self._ledger is None:  # nothing was read, or the last reading failed
            self._trials, self._statuses, self._abandoned = {}, {}, {}
        before, now = self._trials, dict(experiment.trials)
        found = {i for i, trial in now.items() if before.get(i) is not trial}
        statuses = {s: {*i} for s, i in experiment.trial_indices_by_status.items()}
        for status, indices in statuses.items():
            found |= indices ^ self._statuses.get(status, set())
        abandoned = {
            i: trial.abandoned_arm_names
            for i in found | self._abandoned.keys()
            if isinstance(trial := now.get(i), BatchTrial)
        }
        found |= {
            i for i, names in abandoned.items() if self._abandoned.get(i) != names
        }
        self._trials, self._statuses, self._abandoned = now, statuses, abandoned
        return found | statuses[TrialStatus.CANDIDATE]

    def _entry(self, trial: BaseTrial, values: _Values) -> _Entry:
        r"""The contribution of one trial to the ledger.

        First it finds which node asked for each arm, then what became of the arm. Of
        arms that this node did not ask for only results and running rows matter.
        """
        asked, counts = self._asked(trial), trial.status in _COUNTS
        parts: list[tuple[int | None, Round]] = []
        failed, points = list[tuple[int, int]](), list[Point]()
        spoilt = list[str]()
        for name, arm in asked.arms.items():
            is_own, given = name in asked.rounds, values.get(name, {})
            failure = self._failure(trial, arm, given)
            given = given if failure is None else failure
            left_out = failure is None and is_left_out(trial, name)
            is_spoilt = counts and not left_out and self._is_spoilt(given)
            spoilt += [name] if is_spoilt else []
            if (left_out or is_spoilt) and not is_own:
                continue
            if not is_own and self._is_history(arm):
                if counts or failure is not None:
                    points += self._point(trial, arm, asked.weights[name], given)
                continue
            row = self._located(self.space.row_of, trial, arm)
            if (left_out or is_spoilt) and trial.status != TrialStatus.STALE:
                failed.append((row, asked.rounds[name]))
            part = None
            if not is_spoilt:
                part = self._part(trial, asked, name, row, given, failure is not None)
            if part is not None:
                parts.append((asked.rounds.get(name), part))
        learnt = [v[m] for v in values.values() for m in self.metrics if m in v]
        # What failed, or storage does not hold at all, is nan, which is no maximum.
        largest = max([0.0, *(abs(given) for given, _, _ in learnt)])
        rounding_error = max(
            [0.0, *(abs(stored - given) for given, stored, _ in learnt)]
        )
        return _Entry(
            asked.plans,
            asked.seen,
            asked.gone,
            parts,
            tuple(points),
            tuple(failed),
            tuple(spoilt),
            largest,
            rounding_error,
        )

    def _asked(self, trial: BaseTrial) -> _Asked:
        r"""The requests that the generator runs of a trial made."""
        asked = _Asked()
        for run in trial.generator_runs:
            if is_own := node_name_of(run) == self.node_name:
                number, plan, results, excluded = self._plan(run, trial.index)
                asked.plans[number] = plan
                asked.seen.setdefault(number, results)
                asked.gone.setdefault(number, excluded)
            for arm, weight in arms_of(run):
                asked.arms.setdefault(arm.name, arm)
                asked.weights[arm.name] += weight
                if is_own:
                    asked.rounds.setdefault(arm.name, number)
                    asked.counts[arm.name] += round(weight)
        return asked

    def _part(
        self,
        trial: BaseTrial,
        asked: _Asked,
        name: str,
        row: int,
        given: Mapping[str, tuple[float, float, float]],
        is_failure: bool,
    ) -> Round | None:
        r"""The contribution of an arm whose values are finite.

        An arm with a result is measured. One without contributes nothing if its trial
        failed, so that it is asked for again; it is used up if it was abandoned or
        stopped early; else it is running.

        Args:
            trial: The trial.
            asked: What its generator runs asked for.
            name: The name of the arm.
            row: Its row.
            given: Its values.
            is_failure: Whether they are what a failure of the arm is.
        """
        is_own = name in asked.rounds
        left_out = is_left_out(trial, name) and not is_failure
        weight = asked.weights[name] if isinstance(trial, BatchTrial) else 1.0
        count = asked.counts[name] if is_own else 1
        own = self.strategy.outcomes_of(row)
        if not is_own and any(one is not None and one.by_results for one in own):
            count = round(weight)  # a share of so many trials
        counts = is_failure or (trial.status in _COUNTS and not left_out)
        remedy = None
        if counts:
            result = self._measurement(trial.index, name, row, weight, given)
            if result is not None:
                return Round(results=(replace(result, count=count),))
            remedy = how_to_fill(trial.index, self.metrics, given)
        if trial.status in _FREES or (counts and not is_own):
            return None
        if left_out or trial.status.is_early_stopped:
            return Round(lost=count * (row,))
        return Round(
            running=count * (row,),
            running_trials=(trial.index,),
            unfilled=(trial.index,) if counts else (),
            remedy=remedy,
        )

    def _failure(
        self,
        trial: BaseTrial,
        arm: Arm,
        given: Mapping[str, tuple[float, float, float]],
    ) -> dict[str, tuple[float, float, float]] | None:
        r"""The values that the failure of an arm stands for, if it is an answer.

        A failed trial is an answer where the model says so, as ``Binary`` may.
        ``None`` where it is not, or where the arm has not failed.
        """
        is_spoilt = trial.status in _COUNTS and self._is_spoilt(given)
        if arm.name in _abandoned_arms(trial):
            return None
        if not (is_spoilt or trial.status == TrialStatus.FAILED):
            return None
        is_history = self._is_history(arm)
        place = self.space.point_of if is_history else self.space.row_of
        try:
            found: Any = place(arm.parameters, f"trial {trial.index}")
        except ValueError:  # at no row, and taken out as the message about it says
            return None
        values = of_failure(self.strategy.outcomes_of(None if is_history else found))
        if values is None:
            return None
        pairs = zip(self.metrics, values, strict=True)
        return {name: (value, value, math.nan) for name, value in pairs}

    def _is_spoilt(self, given: Mapping[str, tuple[float, float, float]]) -> bool:
        r"""Whether a value of an arm is nan or infinite, in a metric to learn from."""
        return any(math.isnan(given[name][0]) for name in self.metrics if name in given)

    def _is_history(self, arm: Arm) -> bool:
        r"""Whether an arm is off the pool, and the strategy can learn from it."""
        return self.strategy.takes_history and self.space.is_off_the_pool(
            arm.parameters
        )

    def _point(
        self,
        trial: BaseTrial,
        arm: Arm,
        weight: float,
        given: Mapping[str, tuple[float, float, float]],
    ) -> list[Point]:
        r"""The measurement of an arm off the pool; ``None`` if a metric is missing."""
        weight = weight if isinstance(trial, BatchTrial) else 1.0
        found = self._measurement(trial.index, arm.name, None, weight, given)
        if found is None:
            return []
        x = self._located(self.space.point_of, trial, arm)
        return [Point(x, found.y, found.yvar, trial.index)]

    def _located(self, place: Callable[..., Any], trial: BaseTrial, arm: Arm) -> Any:
        r"""The row of an arm, or the way to take out a trial that is at no row.

        Args:
            place: Finds the row or the point of a parameterization.
            trial: The trial.
            arm: Its arm.
        """
        try:
            return place(arm.parameters, f"trial {trial.index}")
        except ValueError as error:
            remedy = f"client.mark_trial_abandoned({trial.index})"
            if trial.status.is_terminal:  # Ax lets nobody mark it any more
                spoilt = ", ".join(f"{name!r}: math.nan" for name in self.metrics)
                remedy = f"client.attach_data({trial.index}, {{{spoilt}}})"
            raise ValueError(f"{error} Take the trial out: `{remedy}`.") from error

    def _plan(
        self, run: GeneratorRun, trial: int
    ) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        r"""The number of a generator run's round, and its stored plan.

        Where the node is asynchronous, also the trials whose results had come since the
        plan before, and the rows that had been excluded.
        """
        stored = _stored_in(run)
        if stored is None:
            raise ValueError(
                f"Expected the generator run of trial {trial} to hold its round and "
                f"plan, but it was made by another node named {self.node_name!r}. Give "
                "the LevelSetNode another `name`."
            )
        if stored["pool"] != (own := self.strategy.pool.hash):
            raise ValueError(
                f"Expected trial {trial} to be planned on this `pool` (hash "
                f"{own[:12]}), but it was planned on another one "
                f"({stored['pool'][:12]}). Use the pool the experiment was begun with, "
                "or give the new strategy's node another `name`."
            )
        since = (tuple(stored.get(key, ())) for key in ("results", "excluded"))
        results, excluded = since
        return int(stored["round"]), tuple(stored["plan"]), results, excluded

    def _measurement(
        self,
        trial: int,
        arm: str,
        row: int | None,
        weight: float,
        given: Mapping[str, tuple[float, float, float]],
    ) -> Measurement | None:
        r"""The measurement of an arm; ``None`` if a metric is missing.

        Raises:
            ValueError: If a standard error is negative or infinite, or there is one
                where a metric is an outcome such as yes or no, which cannot have every
                value either, or known and unknown noise are mixed.
        """
        y, yvar = [], []
        outcomes = self.strategy.outcomes_of(row)
        has_outcomes = any(one is not None and one.by_results for one in outcomes)
        for c, name in enumerate(self.metrics):
            _, mean, sem = given.get(name, (math.nan,) * 3)
            if math.isnan(mean):
                return None
            y.append(mean)
            if (outcome := outcomes[c]) is not None:
                n = 1 if row is None else round(weight)
                try:
                    outcome.check(*torch.tensor([[mean], [n]], dtype=torch.float64))
                except ValueError as error:
                    if "`y`" not in str(error):  # about a mean, which it forbids
                        raise
                    raise _impossible(error, trial, name) from error
            if not math.isnan(sem) and not is_noise(sem):
                raise ValueError(
                    f"Expected the `sem` of trial {trial} to be finite and at least 0, "
                    f"or missing, but got {written(sem)}. 0 is an exact measurement; "
                    f"leave it out where the noise is unknown. `client.attach_data("
                    f"{trial}, {{{name!r}: (mean, sem)}})` replaces it."
                )
            if has_outcomes:
                self._check_no_sem(sem, trial, name, outcome)
                continue
            variance = self._variance(sem, c, row, weight, f"{arm} of trial {trial}")
            is_stated = math.isnan(sem) and self.strategy.noise_std_of(row) is not None
            if variance and is_stated and isinstance(outcome, LogNormal):
                variance *= mean**2  # a share of the value was stated
            yvar += [] if variance is None else [variance]
        if 0 < len(yvar) < len(self.metrics):
            raise ValueError(_mixed(trial, trial))
        at = NOWHERE if row is None else row
        return Measurement(at, tuple(y), tuple(yvar), trial, arm)

    def _check_no_sem(
        self, sem: float, trial: int, name: str, outcome: Quantity | None
    ) -> None:
        r"""Refuse a standard error beside an outcome such as yes or no.

        A 0 of an outcome is let pass: many write ``(1, 0.0)`` for an answer, which is
        certain of itself and says little of the probability.

        Raises:
            ValueError: If there is one.
        """
        is_answer = outcome is not None and outcome.by_results
        if math.isnan(sem) or (is_answer and sem == 0):
            return
        why = "as an answer has no noise of its own"
        if not is_answer:
            why = (
                "as another metric is an answer: its noise is `noise_std` of the model"
            )
        raise ValueError(
            f"Expected no `sem` of {name!r} in trial {trial}, {why}, but got "
            f"{written(sem)}. `client.attach_data({trial}, {{{name!r}: value}})` "
            "replaces it."
        )

    def _variance(
        self, sem: float, output: int, row: int | None, weight: float, arm: str
    ) -> float | None:
        r"""The noise variance of one value; ``None`` if it is unknown."""
        if not self.strategy.takes_means:
            if weight > 1:
                raise ValueError(
                    f"Expected one value for each draw, but arm {arm} is a mean of "
                    f"{weight:g}. Ask for trials of one arm: "
                    f"`{type(self.strategy).__name__}` needs every value."
                )
            return None
        if not math.isnan(sem):
            return sem * sem
        stds = self.strategy.noise_std_of(row)
        if stds is not None:
            return float(stds[output]) ** 2 / weight
        if self.strategy.pool.noise_var is not None and row is None:
            raise ValueError(
                f"Expected a sem for arm {arm}, which is no row of the pool, so that "
                "`pool.noise_var` does not say its noise. Attach (mean, sem)."
            )
        if self.strategy.pool.noise_var is not None:
            return float(self.strategy.pool.noise_var[row]) / weight
        if weight > 1 and not self.strategy.weighs_by_counts:
            raise ValueError(
                f"Expected a sem for arm {arm}, which is a mean of {weight:g} "
                f"replicates, but got none. Attach (mean, s / sqrt({weight:g})), or "
                "give the strategy `noise_std`."
            )
        return None

    def _by_arrival(self) -> Ledger:
        r"""The rounds of an asynchronous node, by the times its results were used."""
        came, out, unfilled = dict[int, _Arrival](), list[int](), list[int]()
        for trial, entry in self._known.items():
            parts = [part for _, part in entry.parts]
            other = [m for n, part in entry.parts if n is None for m in part.results]
            out += [row for part in parts for row in part.running]
            unfilled += [index for part in parts for index in part.unfilled]
            both = _round(None, (), parts)
            if both.results or both.lost:
                came[trial] = both, other
        seen = {n: t for e in self._known.values() for n, t in e.seen.items()}
        gone = {n: rows for e in self._known.values() for n, rows in e.gone.items()}
        rounds, noted, waiting = list[Round](), set[int](), list[int]()
        excluded = self._excluded([*self._known.values()])
        still = {row for rows in excluded.values() for row in rows}
        for number in sorted(seen):
            new = [row for row in gone[number] if row in still - noted]
            noted, waiting = noted.union(new), [*waiting, *new]
            group = [came.pop(trial) for trial in seen[number] if trial in came]
            if group:  # an exclusion takes effect with the next results
                rounds += _together(group, waiting)
                waiting = []
        unseen, since = tuple(sorted(came)), still - noted
        waiting += sorted(since)
        if unseen:
            rounds += _together([came[trial] for trial in unseen], waiting)
            waiting = []
        return Ledger(
            tuple(rounds),
            None,
            (),
            tuple(sorted(out)),
            max(seen, default=-1) + 1,
            tuple(sorted(waiting)),
            unseen,
            tuple(sorted(since)),
            unfilled=tuple(unfilled),
        )

    def _assembled(self) -> Ledger:
        entries = [*self._known.values()]
        plans: dict[int, tuple[int, ...]] = {}
        parts: dict[int, list[Round]] = {}
        groups: list[list[Measurement]] = [[]]  # before each own round, and after all
        pending: list[int] = []
        for entry in entries:
            for number, plan in entry.plans.items():
                if number not in plans:
                    parts[number] = []
                    groups.append([])
                plans[number] = plan
            for asked, part in entry.parts:
                if asked is not None:
                    parts[asked].append(part)
                else:
                    groups[-1] += part.results
                    pending += part.running
        excluded = self._excluded(entries)
        complete, newest = _elsewhere(groups[0]), next(reversed(plans), None)
        current: Round | None = None
        for number, after in zip(plans, groups[1:], strict=True):
            gone = excluded.pop(number, ())
            given = (plans[number], parts[number], after, gone)
            if number == newest:
                current = _round(number, plans[number], parts[number]).without(gone)
                if not current.is_over:
                    break
            # Kept from the last reading: sorting all rounds at each step of a long run
            # would cost more than reading the new trial. Unchanged rounds also stay the
            # same objects, which the node's comparison of rounds relies on for speed.
            if number not in self._closed or self._closed[number][0] != given:
                closed = _round(number, plans[number], parts[number])
                closed = closed.without(gone).close()
                self._closed[number] = (given, [closed, *_elsewhere(after)])
            complete += self._closed[number][1]
        else:
            current = None
        meanwhile = () if current is None else tuple(sorted(groups[-1]))
        return Ledger(
            tuple(complete),
            current,
            meanwhile,
            tuple(sorted(pending)),
            len(plans),
            tuple(sorted(row for rows in excluded.values() for row in rows)),
        )

    def _excluded(self, entries: Sequence[_Entry]) -> dict[int, tuple[int, ...]]:
        r"""The rows that cannot be measured, by the round since when."""
        since, failures = dict[int, int](), Counter[int]()
        for row, number in (pair for entry in entries for pair in entry.failed):
            failures[row] += 1
            if failures[row] == self.max_failures:
                since[row] = number
        for number, row in self._named:
            since[row] = min(number, since.get(row, number))
        found = dict[int, tuple[int, ...]]()
        for row, number in sorted(since.items()):
            found[number] = (*found.get(number, ()), row)
        return found


def _together(group: Sequence[_Arrival], excluded: Iterable[int]) -> list[Round]:
    r"""The complete round of several trials' results and of excluded rows.

    Several results that were measured elsewhere are a round of their own after it.
    """
    own, other = _round(None, (), [one for one, _ in group]), list[Measurement]()
    if sum(len(part) for _, part in group) > 1:
        other = [m for _, part in group for m in part]
        own = replace(own, results=tuple(m for m in own.results if m not in other))
    measured = [m.row for m in own.results for _ in range(m.count)]
    own = replace(own, plan=tuple(sorted([*measured, *own.lost]))).close()
    rounds = ([own] if own.plan else []) + _elsewhere(other)
    return [replace(rounds[0], excluded=tuple(sorted(excluded))), *rounds[1:]]


def _round(number: int | None, plan: tuple[int, ...], parts: Sequence[Round]) -> Round:
    return Round(
        plan,
        results=tuple(result for part in parts for result in part.results),
        lost=tuple(row for part in parts for row in part.lost),
        running=tuple(row for part in parts for row in part.running),
        running_trials=tuple(trial for part in parts for trial in part.running_trials),
        unfilled=tuple(trial for part in parts for trial in part.unfilled),
        remedy=next((part.remedy for part in parts if part.remedy is not None), None),
        number=number,
    )


def _elsewhere(group: Sequence[Measurement]) -> list[Round]:
    results = tuple(sorted(group))
    plan = tuple(m.row for m in results)
    return [Round(plan, results, is_own=False)] if results else []


def _check_together(
    entries: Sequence[_Entry], strategy: Strategy, metrics: Sequence[str]
) -> None:
    r"""Refuse trials that contradict each other, though each is right by itself.

    What is off the pool joins a history that the strategy was given, whose noise may
    be known where that of the rows is not.

    Raises:
        ValueError: If known and unknown noise are mixed, or values are lost in Ax's
            storage format.
    """
    first: dict[bool, int] = {}
    model = getattr(strategy, "model", None)
    past = getattr(strategy, "history", getattr(model, "history", None))
    is_log = any(isinstance(one, LogNormal) for one in strategy.outcomes)
    for entry in entries:
        for _, part in entry.parts:
            for m in part.results:
                first.setdefault(bool(m.yvar), m.trial)
        for point in entry.points:
            if past is None:
                first.setdefault(bool(point.yvar), point.trial)
            elif bool(point.yvar) != (past.yvar is not None) and not (
                point.yvar and not is_log and strategy.noise_std_of(None) is not None
            ):
                raise ValueError(_unlike_history(point, metrics))
    if len(first) > 1:
        raise ValueError(_mixed(first[True], first[False]))
    largest = max((entry.largest for entry in entries), default=0.0)
    if any(entry.rounding_error > _LOST_IN_STORAGE * largest for entry in entries):
        raise ValueError(
            "Expected values that survive Ax's storage, which keeps ten decimals, but "
            f"the largest is {written(largest)}. Give them in smaller units, so that "
            "they are near 1 (threshold, noise and accuracy too)."
        )


def _unlike_history(point: Point, metrics: Sequence[str]) -> str:
    r"""The complaint that the noise of a point is known, or not, unlike a history's.

    Args:
        point: The measurement.
        metrics: Its metrics.
    """
    value, trial = "mean" if point.yvar else "(mean, sem)", point.trial
    values = ", ".join(f"{name!r}: {value}" for name in metrics)
    wanted, came = "a sem for", "got none"
    remedy = f"Call `client.attach_data({trial}, {{{values}}})`"
    if point.yvar:
        wanted, came = "no known noise of", "it is known"
        remedy += ", or give the strategy `History(X, y, yvar)`"
    return (
        f"Expected {wanted} trial {trial}, which is at no row and joins the `history` "
        f"of the strategy, {'without' if point.yvar else 'with'} `yvar`, but {came}. "
        f"{remedy}."
    )


def _impossible(error: ValueError, trial: int, name: str) -> ValueError:
    r"""The complaint about a value, with its trial and the way to replace it there."""
    return ValueError(
        f"{complaint_of(error, f'{name!r} of trial {trial}')} `client.attach_data("
        f"{trial}, {{{name!r}: value}})` replaces it; `math.nan` says that it failed."
    )


def complaint_of(error: ValueError, what: str) -> str:
    r"""The complaint of an outcome about ``y``, called by another name.

    Its remedies are left out, as they are about telling a strategy directly.
    """
    return f"{str(error).split('. ')[0].replace('`y`', what)}."


def _mixed(known: int, unknown: int) -> str:
    return (
        f"Expected a sem for all measurements or for none, but trial {known} has one "
        f"and trial {unknown} has not. Attach (mean, sem) everywhere, or nowhere and "
        "let the model learn the noise; or give the strategy `noise_std`, which then "
        "stands where a sem is missing."
    )


def how_to_fill(trial: int, metrics: Sequence[str], found: Iterable[str]) -> str:
    r"""The call that attaches the missing data of a completed trial.

    Args:
        trial: The index of the trial.
        metrics: Those that the strategy learns from.
        found: The metrics with a value, also others.
    """
    missing, there = [name for name in metrics if name not in found], sorted(found)
    values = ", ".join(f"{name!r}: (mean, sem)" for name in missing)
    words = (
        f"Trial {trial} is completed without data for {missing}, its data have "
        f"{there or 'none'}: call `client.attach_data({trial}, {{{values}}})`, with "
        "`math.nan` for a mean that could not be measured: the row is then asked for "
        "again."
    )
    if there:
        words += (
            " If it was measured under another name, give that as `output` of the goal "
            "if it names outputs, else as `metrics` of `level_set_generation_strategy`."
        )
    return words


def is_noise(sem: float) -> bool:
    r"""Whether a standard error is at least 0 and its square is finite."""
    return sem >= 0 and sem * sem < math.inf


def _values(rows_by_trial: Iterable[Sequence[tuple[Any, ...]]]) -> dict[int, _Values]:
    r"""The data of some trials, by trial, arm and metric.

    Where Ax holds a metric at several progressions of a trial, the last one counts.
    """
    found: defaultdict[int, Any] = defaultdict(lambda: defaultdict(dict))
    cells = [cell for rows in rows_by_trial for cell in _last_steps(rows)]
    if not cells:
        return found
    numbers = np.array([(mean, sem) for *_, mean, sem, _ in cells], dtype=float)
    failed = (math.nan, math.nan, math.nan)
    # Both columns in one call: converting to Ax's format and back takes milliseconds.
    stored = as_stored(numbers.ravel()).reshape(-1, 2)
    sems = numbers[:, 1]
    stored[:, 1] = np.where(np.isinf(sems), sems, stored[:, 1])  # not as missing
    for (trial, arm, metric, *_), (given, _), (mean, sem) in zip(
        cells, numbers.tolist(), stored.tolist(), strict=True
    ):
        is_number = math.isfinite(given)
        found[trial][arm][metric] = (given, mean, sem) if is_number else failed
    return found


def _last_steps(cells: Sequence[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    r"""The last progression of each value; a value without a step counts as the last.

    This is what Ax's own ``Data.df`` does.
    """
    return {cell[1:3]: cell for cell in sorted(cells, key=_step)}.values()


def _step(cell: tuple[Any, ...]) -> float:
    step = cell[-1]
    return math.inf if step is None or math.isnan(step) else step


def _stored_in(run: GeneratorRun) -> dict[str, Any] | None:
    return (run.gen_metadata or {}).get(METADATA)


def excluded_in(experiment: Experiment, node_name: str) -> tuple[tuple[int, int], ...]:
    r"""The rows that were excluded by hand, each after the number of its round."""
    stored = properties_of(experiment).get(EXCLUDED, {}).get(node_name, [])
    return tuple((int(number), int(row)) for number, row in stored)


def round_of(trial: BaseTrial) -> int | None:
    r"""The round for which a level-set node asked for a trial; else ``None``."""
    found = filter(None, map(_stored_in, trial.generator_runs))
    return next((int(stored["round"]) for stored in found), None)


def is_left_out(trial: BaseTrial, arm: str) -> bool:
    r"""Whether an arm's data are ignored: it, or its trial, failed or was abandoned."""
    is_abandoned = trial.status.is_abandoned or arm in _abandoned_arms(trial)
    return is_abandoned or trial.status in _FREES


def _abandoned_arms(trial: BaseTrial) -> Iterable[str]:
    return getattr(trial, "abandoned_arm_names", None) or ()
