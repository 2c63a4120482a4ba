r"""What an experiment says about a pool: rounds asked for and measurements found.

The rule, a function of trials and data alone, whatever order results came in:

- A trial is *own* if this node made it; its generator run holds its round and the plan
  of that round. Everything else in the pool is *measured elsewhere*.
- Own rounds count in order. What was measured elsewhere in trials between the first
  trial of one round and the first trial of the next is one round between the two.
- COMPLETED and EARLY_STOPPED trials with data count. A FAILED or STALE trial frees its
  place, which is asked again; an ABANDONED one, an abandoned arm and an EARLY_STOPPED
  one without data use it up. Data of failed and abandoned trials are left out, as Ax
  does. The rest is out.
- A round is over when each place of its plan is measured or used up, or when a later
  round has trials (then what is still missing counts as used up).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ax.core.arm import Arm
from ax.core.base_trial import BaseTrial
from ax.core.batch_trial import BatchTrial
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.trial_status import TrialStatus

from botorch_lse.ax.compat import DataLook, DataRow, arms_of, node_name_of
from botorch_lse.ax.measurements import (
    NOTHING,
    Found,
    Gap,
    Measurement,
    Measurements,
    check_together,
)
from botorch_lse.ax.pool_space import PoolSpace
from botorch_lse.problem import Pool

METADATA = "level_set"
"""The key in a generator run's ``gen_metadata``."""

_FREES = (TrialStatus.FAILED, TrialStatus.STALE)
_COUNTS = (TrialStatus.COMPLETED, TrialStatus.EARLY_STOPPED)


@dataclass(frozen=True)
class Step:
    r"""A complete round.

    Args:
        plan: The rows asked for, or measured elsewhere; sorted.
        results: Their measurements, sorted.
        used_up: Rows of the plan without a measurement: abandoned.
    """

    plan: tuple[int, ...]
    results: tuple[Measurement, ...]
    used_up: tuple[int, ...] = ()


@dataclass(frozen=True)
class OpenRound:
    r"""A round some trials of which exist.

    Args:
        number: Counts own rounds from 0.
        plan: The rows asked for.
        results: Measurements so far.
        used_up: As in ``Step``.
        out: Rows that are being measured, replicates included.
        trials_out: The trials that hold them.
        gap: What is missing of the first of these that is completed without its data.
    """

    number: int
    plan: tuple[int, ...]
    results: tuple[Measurement, ...] = ()
    used_up: tuple[int, ...] = ()
    out: tuple[int, ...] = ()
    trials_out: tuple[int, ...] = ()
    gap: Gap | None = None

    @property
    def to_ask(self) -> list[int]:
        r"""The rows of the plan that no trial holds, sorted."""
        told = [m.row for m in self.results for _ in range(m.count)]
        gone = [*told, *self.used_up, *self.out]
        return sorted((Counter(self.plan) - Counter(gone)).elements())

    @property
    def is_over(self) -> bool:
        r"""Whether nothing is out and nothing left to ask."""
        return not self.out and not self.to_ask

    def close(self) -> Step:
        r"""The round as it is; what is missing counts as used up."""
        lost = sorted([*self.used_up, *self.out, *self.to_ask])
        return Step(self.plan, tuple(sorted(self.results)), tuple(lost))


@dataclass(frozen=True)
class Ledger:
    r"""An experiment, read.

    Args:
        steps: The complete rounds in order, own ones and those measured elsewhere.
        open: The round that is open, if one is.
        waiting: What was measured elsewhere since the open round began; it becomes a
            round once that one is over.
        pending: Rows of trials not made by this node that are being measured.
        n_rounds: Own rounds begun.
    """

    steps: tuple[Step, ...]
    open: OpenRound | None
    waiting: tuple[Measurement, ...]
    pending: tuple[int, ...]
    n_rounds: int


class _Run(NamedTuple):
    r"""What is looked at of a generator run.

    Args:
        node: The name of the node that made it.
        stored: Its round and plan, if this node made it; a copy.
        arms: The arms with their weights. Ax lets nobody change an arm once it has a
            name.
    """

    node: str | None
    stored: dict[str, Any] | None
    arms: list[tuple[Arm, float]]


class _Look(NamedTuple):
    r"""All of a trial that the reading uses, by value.

    Args:
        trial: The trial's number.
        status: As Ax says.
        abandoned: The names of its abandoned arms; ``None`` if it is no batch.
        runs: Its generator runs.
        rows: The cells of its rows of data.
    """

    trial: int
    status: TrialStatus
    abandoned: set[str] | None
    runs: list[_Run]
    rows: Sequence[tuple[Any, ...]]


class _Part(NamedTuple):
    r"""What one arm of a trial contributes to the round it was asked for.

    Args:
        round: The number of the round.
        results: Its measurement, if it counts.
        used_up: Its row, as often as it stands in the plan, if it is used up.
        out: The same if it is being measured.
        trial: The trial's number.
        gap: What is missing of its data, if it is completed.
    """

    round: int
    results: tuple[Measurement, ...] = ()
    used_up: tuple[int, ...] = ()
    out: tuple[int, ...] = ()
    trial: int = 0
    gap: Gap | None = None


class _Entry(NamedTuple):
    r"""What a trial says.

    Args:
        plans: Number and plan of each of its rounds.
        own: What it contributes to these.
        elsewhere: Its other measurements.
        pending: The other rows that are being measured.
        measured: All of its measurements.
        sizes: Its largest value, and the largest loss of one in Ax's storage.
    """

    plans: tuple[tuple[int, tuple[int, ...]], ...]
    own: tuple[_Part, ...]
    elsewhere: tuple[Measurement, ...]
    pending: tuple[int, ...]
    measured: tuple[Measurement, ...]
    sizes: tuple[float, float]


class LedgerReader:
    r"""Reads an experiment by the rule above, again and again.

    What a trial says is worked out again only where something that the rule depends on
    differs from the last time, by value. A trial is looked at if it is another object,
    its status or its data changed, or it may change otherwise: a candidate, whose arms
    Ax lets one change until it runs (``immutable_once_run``), and a batch, whose arms
    can be abandoned. To find these, statuses and data are compared as a whole, a
    fraction of a microsecond for each trial; to look at a trial takes ten, to work out
    what it says some hundred.

    Args:
        node_name: The node whose trials are own.
        pool: The candidates.
        space: Their parameterizations.
        measurements: How data are taken.
    """

    def __init__(
        self, node_name: str, pool: Pool, space: PoolSpace, measurements: Measurements
    ) -> None:
        self.node_name, self.pool, self.space = node_name, pool, space
        self.measurements = measurements
        self._known: dict[int, tuple[_Look, _Entry]] = {}
        self._trials: dict[int, BaseTrial] = {}
        self._statuses: dict[TrialStatus, set[int]] = {}
        self._data = DataLook()
        self._steps: dict[int, tuple[Any, tuple[Step, ...]]] = {}
        self._ledger: Ledger | None = None

    def read(self, experiment: Experiment, data: Data) -> Ledger:
        r"""The rounds as they are.

        Raises:
            ValueError: If a trial that counts holds no row of the pool, one of this
                node's trials was planned on another pool, a standard error is no noise,
                known and unknown noise are mixed, or values are lost in Ax's storage.
        """
        suspects = self._data.look_at(data) | self._suspects(experiment)
        rows, before, new = self._data.rows_by_trial, self._known, []
        trials, name = experiment.trials, self.node_name
        for index in sorted(suspects & trials.keys()):
            trial, cells = trials[index], rows.get(index, ())
            known = before.get(index)
            if known is None or not _is_as_before(trial, cells, known[0], name):
                new.append(_look(trial, cells, name))
        if self._ledger is not None and not new and [*before] == [*trials]:
            return self._ledger
        self._ledger = None
        changed = {look.trial: look.rows for look in new if look.rows}
        found = self.measurements.read(
            {i: [DataRow(*cells) for cells in rows] for i, rows in changed.items()}
        )
        fresh = {
            look.trial: (look, self._entry(look, found.get(look.trial, NOTHING)))
            for look in new
        }
        self._known = {i: fresh.get(i) or before[i] for i in trials}
        self._ledger = self._arranged([entry for _, entry in self._known.values()])
        return self._ledger

    def _suspects(self, experiment: Experiment) -> set[int]:
        r"""The trials that must be looked at, whatever their data."""
        if self._ledger is None:  # nothing was read, or the last reading failed
            self._trials, self._statuses = {}, {}
        before, now = self._trials, dict(experiment.trials)
        found = {i for i, trial in now.items() if before.get(i) is not trial}
        found |= {
            i for i, (look, _) in self._known.items() if look.abandoned is not None
        }
        statuses = {s: {*i} for s, i in experiment.trial_indices_by_status.items()}
        for status, indices in statuses.items():
            found |= indices ^ self._statuses.get(status, set())
        self._trials, self._statuses = now, statuses
        return found | statuses[TrialStatus.CANDIDATE]

    def _entry(self, look: _Look, found: Found) -> _Entry:
        plans: list[tuple[int, tuple[int, ...]]] = []
        own: dict[str, tuple[int, int]] = {}  # round and number of places of each arm
        weights: dict[str, float] = {}
        arms: dict[str, Arm] = {}
        for run in look.runs:
            if run.node == self.node_name:
                plans.append(self._plan(run, look.trial))
            for arm, weight in run.arms:
                name = arm.name
                arms.setdefault(name, arm)
                weights[name] = weights.get(name, 0.0) + weight
                if run.node == self.node_name:
                    label, before = own.get(name, (plans[-1][0], 0))
                    own[name] = (label, before + round(weight))
        parts: list[_Part] = []
        elsewhere: list[Measurement] = []
        pending: list[int] = []
        for name, arm in arms.items():
            left_out = _is_left_out(look, name)
            if left_out and name not in own:
                continue
            row = self.space.row_of(arm.parameters, f"trial {look.trial}")
            results: list[Measurement] = []
            if look.status in _COUNTS and not left_out:
                weight = 1.0 if look.abandoned is None else weights[name]
                results = self.measurements.of(look.trial, name, row, weight, found)
            if name in own:
                label, count = own[name]
                counted = tuple(replace(m, count=count) for m in results)
                part = _Part(label, counted, trial=look.trial)
                parts.append(self._placed(part, look, name, count * (row,), found))
            elif look.status in _COUNTS:
                elsewhere += results
            else:
                pending.append(row)
        measured = (*(m for part in parts for m in part.results), *elsewhere)
        sizes = (found.largest, found.loss)
        return _Entry(
            tuple(plans),
            tuple(parts),
            tuple(elsewhere),
            tuple(pending),
            measured,
            sizes,
        )

    def _placed(
        self, part: _Part, look: _Look, arm: str, rows: tuple[int, ...], found: Found
    ) -> _Part:
        r"""Where the places of an own arm went that has no result."""
        if part.results or look.status in _FREES:
            return part
        if _is_left_out(look, arm) or look.status.is_early_stopped:
            return part._replace(used_up=rows)
        gap = None
        if look.status in _COUNTS:
            gap = self.measurements.gap(look.trial, arm, found)
        return part._replace(out=rows, gap=gap)

    def _plan(self, run: _Run, trial: int) -> tuple[int, tuple[int, ...]]:
        if run.stored is None:
            raise ValueError(
                f"Expected the generator run of trial {trial} to hold its round and "
                f"plan, but it was made by another node named {self.node_name!r}. Give "
                "the LevelSetNode another `name`."
            )
        pool = run.stored["pool"]
        if pool != self.pool.hash:
            raise ValueError(
                f"Expected trial {trial} to be planned on this `pool` (hash "
                f"{self.pool.hash[:12]}), but it was planned on another one "
                f"({pool[:12]}). Use the pool the experiment was begun with, "
                "or give the new strategy's node another `name`."
            )
        return int(run.stored["round"]), tuple(int(row) for row in run.stored["plan"])

    def _arranged(self, entries: Sequence[_Entry]) -> Ledger:
        check_together(
            (m for entry in entries for m in entry.measured),
            [entry.sizes for entry in entries],
        )
        plans: dict[int, tuple[int, ...]] = {}
        parts: dict[int, list[_Part]] = {}
        groups: list[list[Measurement]] = [[]]  # before each own round, and after all
        pending: list[int] = []
        for entry in entries:
            for label, plan in entry.plans:
                if label not in plans:
                    plans[label], parts[label] = plan, []
                    groups.append([])
            for part in entry.own:
                parts[part.round].append(part)
            groups[-1] += entry.elsewhere
            pending += entry.pending
        steps = [*self._kept(0, _elsewhere, *groups[0])]
        last: OpenRound | None = None
        for i, (number, after) in enumerate(zip(plans, groups[1:], strict=True), 1):
            if i == len(plans):
                last = _round(number, plans[number], *parts[number])
                if not last.is_over:
                    break
            steps += self._kept(-i, _closed, number, plans[number], *parts[number])
            steps += self._kept(i, _elsewhere, *after)
        else:
            last = None
        tail = () if last is None else tuple(sorted(groups[-1]))
        return Ledger(tuple(steps), last, tail, tuple(sorted(pending)), len(plans))

    def _kept(
        self, place: int, make: Callable[..., tuple[Step, ...]], *given: Any
    ) -> tuple[Step, ...]:
        r"""``make(*given)``, worked out again only if something else was given."""
        if place not in self._steps or self._steps[place][0] != given:
            self._steps[place] = (given, make(*given))
        return self._steps[place][1]


def _round(number: int, plan: tuple[int, ...], *parts: _Part) -> OpenRound:
    return OpenRound(
        number,
        plan,
        results=tuple(m for part in parts for m in part.results),
        used_up=tuple(row for part in parts for row in part.used_up),
        out=tuple(row for part in parts for row in part.out),
        trials_out=tuple(part.trial for part in parts if part.out),
        gap=next((part.gap for part in parts if part.gap is not None), None),
    )


def _closed(number: int, plan: tuple[int, ...], *parts: _Part) -> tuple[Step, ...]:
    return (_round(number, plan, *parts).close(),)


def _elsewhere(*group: Measurement) -> tuple[Step, ...]:
    results = tuple(sorted(group))
    return (Step(tuple(m.row for m in results), results),) if results else ()


def _is_as_before(
    trial: BaseTrial, rows: Sequence[tuple[Any, ...]], known: _Look, node_name: str
) -> bool:
    r"""Whether a look at a trial would be the known one, without making it."""
    if trial.status is not known.status or rows != known.rows:
        return False
    if getattr(trial, "abandoned_arm_names", None) != known.abandoned:
        return False
    runs = trial.generator_runs
    if len(runs) != len(known.runs):
        return False
    for run, (node, stored, arms) in zip(runs, known.runs, strict=True):
        if node_name_of(run) != node or arms_of(run) != arms:
            return False
        if node == node_name and (run.gen_metadata or {}).get(METADATA) != stored:
            return False
    return True


def _look(trial: BaseTrial, rows: Sequence[tuple[Any, ...]], node_name: str) -> _Look:
    gone = getattr(trial, "abandoned_arm_names", None)  # a batch has them
    runs = []
    for run in trial.generator_runs:
        node, stored = node_name_of(run), None
        if node == node_name:
            stored = deepcopy((run.gen_metadata or {}).get(METADATA))
        runs.append(_Run(node, stored, arms_of(run)))
    return _Look(trial.index, trial.status, gone, runs, rows)


def _is_left_out(look: _Look, arm: str) -> bool:
    return arm in (look.abandoned or ()) or _is_left_out_with(look.status)


def round_of(trial: BaseTrial) -> int | None:
    r"""The round for which a level-set node asked for a trial; else ``None``."""
    for run in trial.generator_runs:
        stored = (run.gen_metadata or {}).get(METADATA)
        if stored is not None:
            return int(stored["round"])
    return None


def is_left_out(trial: BaseTrial, arm: str) -> bool:
    r"""Whether an arm failed or was abandoned."""
    if isinstance(trial, BatchTrial) and arm in trial.abandoned_arm_names:
        return True
    return _is_left_out_with(trial.status)


def _is_left_out_with(status: TrialStatus) -> bool:
    return status in _FREES or status.is_abandoned
