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

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ax.core import Arm, Data, Experiment
from ax.core.base_trial import BaseTrial
from ax.core.trial_status import TrialStatus

from botorch_lse.ax.compat import DataLook, DataRow, arms_of, node_name_of
from botorch_lse.ax.measurements import (
    Gap,
    Measurement,
    Measurements,
    TrialData,
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
        measured = [m.row for m in self.results for _ in range(m.count)]
        gone = [*measured, *self.used_up, *self.out]
        return sorted((Counter(self.plan) - Counter(gone)).elements())

    @property
    def is_over(self) -> bool:
        r"""Whether nothing is out and nothing left to ask."""
        return not self.out and not self.to_ask

    def why_wait(self, n_issued: int) -> str:
        r"""What must happen before the round is over.

        Args:
            n_issued: Its rows given out in this very call.
        """
        if n_issued:
            return (
                f"Round {self.number} has {len(self.plan)} rows, and all that were "
                f"left are given out. Ask for at most {n_issued} trials now."
            )
        trials = ", ".join(map(str, self.trials_out))
        message = (
            f"Round {self.number} is open: {len(self.out)} of its "
            f"{len(self.plan)} rows are out (trials {trials}). Complete them, or mark "
            "them failed (asked again) or abandoned (used up)."
        )
        return message if self.gap is None else f"{message} {self.gap.how_to_fill()}"

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
        plan: The number of its round, the pool's hash and the rows of the round, if
            this node made the run and they are stored with it.
        is_own: Whether this node made it.
        arms: The arms with their weights. Ax lets nobody change an arm once it has a
            name.
    """

    plan: tuple[int, str, tuple[int, ...]] | None
    is_own: bool
    arms: list[tuple[Arm, float]]


class _Look(NamedTuple):
    r"""All of a trial that the reading uses, by value.

    Args:
        trial: The trial's number.
        status: As Ax says.
        abandoned_arm_names: Of a batch; ``None`` for other trials.
        runs: Its generator runs.
        rows: The cells of its rows of data.
    """

    trial: int
    status: TrialStatus
    abandoned_arm_names: set[str] | None
    runs: list[_Run]
    rows: Sequence[tuple[Any, ...]]

    @property
    def is_batch(self) -> bool:
        return self.abandoned_arm_names is not None


class _Part(NamedTuple):
    r"""What one arm of a trial contributes.

    Args:
        trial: The trial's number.
        round: The number of the round it was asked for; ``None``: measured elsewhere.
        result: Its measurement, if it counts.
        used_up: Its row, as often as it stands in the plan, if it is used up.
        out: The same if it is being measured.
        gap: What is missing of its data, if it is completed.
    """

    trial: int
    round: int | None
    result: Measurement | None = None
    used_up: tuple[int, ...] = ()
    out: tuple[int, ...] = ()
    gap: Gap | None = None


class _Entry(NamedTuple):
    r"""What a trial says.

    Args:
        plans: The plan of each of its rounds, by their numbers.
        parts: What its arms contribute.
        sizes: Its largest value, and the largest loss of one in Ax's storage.
    """

    plans: dict[int, tuple[int, ...]]
    parts: tuple[_Part, ...]
    sizes: tuple[float, float]


class LedgerReader:
    r"""Reads an experiment by the rule above, again and again.

    What a trial says is worked out again only where something that the rule depends on
    differs from the last time, by value. A trial is looked at if it is another object,
    its status or its data changed, or it may change otherwise: a candidate, whose arms
    Ax lets one change until it runs (``immutable_once_run``), and a batch, whose arms
    can be abandoned. To find these takes a fraction of a microsecond for each trial; to
    look at a trial takes ten, to work out what it says some hundred.

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
        self._closed: dict[int, tuple[Any, list[Step]]] = {}
        self._ledger: Ledger | None = None

    def read(self, experiment: Experiment, data: Data) -> Ledger:
        r"""The rounds as they are.

        Raises:
            ValueError: If a trial that counts holds no row of the pool, one of this
                node's trials was planned on another pool, a standard error is no noise,
                known and unknown noise are mixed, or values are lost in Ax's storage.
        """
        suspects = self._data.look_at(data) | self._suspects(experiment)
        rows, before, trials = self._data.rows_by_trial, self._known, experiment.trials
        new: dict[int, _Look] = {}
        for index in sorted(suspects & trials.keys()):
            look = _look(trials[index], rows.get(index, ()), self.node_name)
            if index not in before or before[index][0] != look:
                new[index] = look
        if self._ledger is not None and not new and [*before] == [*trials]:
            return self._ledger
        self._ledger = None
        found = self.measurements.read(
            {i: [DataRow(*cells) for cells in look.rows] for i, look in new.items()}
        )
        fresh = {i: (look, self._entry(look, found[i])) for i, look in new.items()}
        self._known = {i: fresh.get(i) or before[i] for i in trials}
        self._ledger = self._arranged([entry for _, entry in self._known.values()])
        return self._ledger

    def _suspects(self, experiment: Experiment) -> set[int]:
        r"""The trials that must be looked at, whatever their data."""
        if self._ledger is None:  # nothing was read, or the last reading failed
            self._trials, self._statuses = {}, {}
        before, now = self._trials, dict(experiment.trials)
        found = {i for i, trial in now.items() if before.get(i) is not trial}
        batches = (i for i, (look, _) in self._known.items() if look.is_batch)
        statuses = {s: {*i} for s, i in experiment.trial_indices_by_status.items()}
        for status, indices in statuses.items():
            found |= indices ^ self._statuses.get(status, set())
        self._trials, self._statuses = now, statuses
        return found.union(batches, statuses[TrialStatus.CANDIDATE])

    def _entry(self, look: _Look, data: TrialData) -> _Entry:
        r"""What a trial says: first who asked for its arms, then what became of each.

        An arm with a result is measured. One without is asked again if its trial
        failed, used up if it was abandoned or stopped early, else it is out. Of arms
        that this node did not ask for only results and what is out matter.
        """
        plans: dict[int, tuple[int, ...]] = {}
        rounds: dict[str, int] = {}  # of each own arm the first that asked for it
        n_asked: Counter[str] = Counter()  # how often the plan holds each own arm
        weights: defaultdict[str, float] = defaultdict(float)
        arms: dict[str, Arm] = {}
        for run in look.runs:
            if run.is_own:
                number, plan = self._plan(run, look.trial)
                plans.setdefault(number, plan)
            for arm, weight in run.arms:
                arms.setdefault(arm.name, arm)
                weights[arm.name] += weight
                if run.is_own:
                    rounds.setdefault(arm.name, number)
                    n_asked[arm.name] += round(weight)
        parts: list[_Part] = []
        for name, arm in arms.items():
            is_own = name in rounds
            left_out = is_left_out(look, name)
            if left_out and not is_own:
                continue
            row = self.space.row_of(arm.parameters, f"trial {look.trial}")
            part = _Part(look.trial, rounds.get(name))
            rows = (n_asked[name] if is_own else 1) * (row,)
            counts = look.status in _COUNTS and not left_out
            if counts:
                weight = weights[name] if look.is_batch else 1.0
                result = self.measurements.of(look.trial, name, row, weight, data)
                if result is not None:
                    result = replace(result, count=len(rows))
                    parts.append(part._replace(result=result))
                    continue
            if look.status in _FREES or (counts and not is_own):
                continue
            if left_out or look.status.is_early_stopped:
                parts.append(part._replace(used_up=rows))
                continue
            gap = self.measurements.gap(look.trial, name, data) if counts else None
            parts.append(part._replace(out=rows, gap=gap))
        return _Entry(plans, tuple(parts), (data.largest, data.loss))

    def _plan(self, run: _Run, trial: int) -> tuple[int, tuple[int, ...]]:
        if run.plan is None:
            raise ValueError(
                f"Expected the generator run of trial {trial} to hold its round and "
                f"plan, but it was made by another node named {self.node_name!r}. Give "
                "the LevelSetNode another `name`."
            )
        number, pool, rows = run.plan
        if pool != self.pool.hash:
            raise ValueError(
                f"Expected trial {trial} to be planned on this `pool` (hash "
                f"{self.pool.hash[:12]}), but it was planned on another one "
                f"({pool[:12]}). Use the pool the experiment was begun with, "
                "or give the new strategy's node another `name`."
            )
        return number, rows

    def _arranged(self, entries: Sequence[_Entry]) -> Ledger:
        check_together(
            (
                p.result
                for entry in entries
                for p in entry.parts
                if p.result is not None
            ),
            [entry.sizes for entry in entries],
        )
        plans: dict[int, tuple[int, ...]] = {}
        parts: dict[int, list[_Part]] = {}
        groups: list[list[Measurement]] = [[]]  # before each own round, and after all
        pending: list[int] = []
        for entry in entries:
            for number, plan in entry.plans.items():
                if number not in plans:
                    plans[number], parts[number] = plan, []
                    groups.append([])
            for part in entry.parts:
                if part.round is not None:
                    parts[part.round].append(part)
                elif part.result is not None:
                    groups[-1].append(part.result)
                else:
                    pending += part.out
        steps, newest = _elsewhere(groups[0]), next(reversed(plans), None)
        current: OpenRound | None = None
        for number, after in zip(plans, groups[1:], strict=True):
            given = (plans[number], parts[number], after)
            if number == newest:
                current = _round(number, plans[number], parts[number])
                if not current.is_over:
                    break
            # Worked out again only if something else is given than the last time.
            if number not in self._closed or self._closed[number][0] != given:
                closed = _round(number, plans[number], parts[number]).close()
                self._closed[number] = (given, [closed, *_elsewhere(after)])
            steps += self._closed[number][1]
        else:
            current = None
        waiting = () if current is None else tuple(sorted(groups[-1]))
        return Ledger(
            tuple(steps), current, waiting, tuple(sorted(pending)), len(plans)
        )


def _round(number: int, plan: tuple[int, ...], parts: Sequence[_Part]) -> OpenRound:
    return OpenRound(
        number,
        plan,
        results=tuple(part.result for part in parts if part.result is not None),
        used_up=tuple(row for part in parts for row in part.used_up),
        out=tuple(row for part in parts for row in part.out),
        trials_out=tuple(part.trial for part in parts if part.out),
        gap=next((part.gap for part in parts if part.gap is not None), None),
    )


def _elsewhere(group: Sequence[Measurement]) -> list[Step]:
    results = tuple(sorted(group))
    return [Step(tuple(m.row for m in results), results)] if results else []


def _look(trial: BaseTrial, rows: Sequence[tuple[Any, ...]], node_name: str) -> _Look:
    runs = []
    for run in trial.generator_runs:
        plan, is_own = None, node_name_of(run) == node_name
        stored = (run.gen_metadata or {}).get(METADATA)
        if is_own and stored is not None:
            plan = (int(stored["round"]), stored["pool"], tuple(stored["plan"]))
        runs.append(_Run(plan, is_own, arms_of(run)))
    abandoned = getattr(trial, "abandoned_arm_names", None)  # a batch has them
    return _Look(trial.index, trial.status, abandoned, runs, rows)


def round_of(trial: BaseTrial) -> int | None:
    r"""The round for which a level-set node asked for a trial; else ``None``."""
    for run in trial.generator_runs:
        stored = (run.gen_metadata or {}).get(METADATA)
        if stored is not None:
            return int(stored["round"])
    return None


def is_left_out(trial: BaseTrial | _Look, arm: str) -> bool:
    r"""Whether an arm failed or was abandoned."""
    abandoned = getattr(trial, "abandoned_arm_names", None) or ()
    return arm in abandoned or trial.status in _FREES or trial.status.is_abandoned
