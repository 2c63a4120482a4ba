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
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ax.core.base_trial import BaseTrial
from ax.core.batch_trial import BatchTrial
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.core.trial_status import TrialStatus

from botorch_lse.ax.compat import node_name_of
from botorch_lse.ax.measurements import Gap, Measurement, Measurements
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


@dataclass
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
    results: list[Measurement] = field(default_factory=list)
    used_up: list[int] = field(default_factory=list)
    out: list[int] = field(default_factory=list)
    trials_out: list[int] = field(default_factory=list)
    gap: Gap | None = None

    @property
    def to_ask(self) -> list[int]:
        r"""The rows of the plan that no trial holds, sorted."""
        told = [m.row for m in self.results for _ in range(m.count)]
        gone = told + self.used_up + self.out
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


def read_ledger(
    experiment: Experiment,
    measurements: Measurements,
    node_name: str,
    pool: Pool,
    space: PoolSpace,
) -> Ledger:
    r"""Read an experiment by the rule above.

    Args:
        experiment: Its trials are read, not its data.
        measurements: The data.
        node_name: The node whose trials are own.
        pool: The candidates.
        space: Their parameterizations.

    Raises:
        ValueError: If a trial that counts holds no row of the pool, or one of this
            node's trials was planned on another pool.
    """
    rounds: dict[int, OpenRound] = {}
    groups: list[list[Measurement]] = [[]]  # what lies before each own round, and after
    pending: list[int] = []
    for trial in experiment.trials.values():
        for label, plan in _plans(trial, node_name, pool):
            if label not in rounds:
                rounds[label] = OpenRound(label, plan)
                groups.append([])
        for arm, row, own in _arms(trial, node_name, space):
            if own:
                _enter_own(rounds[own[0]], trial, arm, row, own[1], measurements)
            elif trial.status in _COUNTS:
                groups[-1] += measurements.of(trial, arm, row)
            else:
                pending.append(row)
    return _arrange(list(rounds.values()), groups, tuple(sorted(pending)))


def _arrange(
    rounds: list[OpenRound], groups: list[list[Measurement]], pending: tuple[int, ...]
) -> Ledger:
    steps = _elsewhere(groups[0])
    for current, after in zip(rounds[:-1], groups[1:-1], strict=True):
        steps += [current.close(), *_elsewhere(after)]
    last = rounds[-1] if rounds else None
    tail: tuple[Measurement, ...] = ()
    if last is not None and last.is_over:
        steps += [last.close(), *_elsewhere(groups[-1])]
        last = None
    elif last is not None:
        tail = tuple(sorted(groups[-1]))
    return Ledger(tuple(steps), last, tail, pending, len(rounds))


def _elsewhere(group: list[Measurement]) -> list[Step]:
    results = tuple(sorted(group))
    return [Step(tuple(m.row for m in results), results)] if results else []


def _plans(
    trial: BaseTrial, node_name: str, pool: Pool
) -> Iterator[tuple[int, tuple[int, ...]]]:
    for run in trial.generator_runs:
        if node_name_of(run) != node_name:
            continue
        stored = _stored(run, trial)
        if stored["pool"] != pool.hash:
            raise ValueError(
                f"Expected trial {trial.index} to be planned on this `pool` (hash "
                f"{pool.hash[:12]}), but it was planned on another one "
                f"({stored['pool'][:12]}). Use the pool the experiment was begun with, "
                "or give the new strategy's node another `name`."
            )
        yield int(stored["round"]), tuple(int(row) for row in stored["plan"])


def round_of(trial: BaseTrial) -> int | None:
    r"""The round for which a level-set node asked for a trial; else ``None``."""
    for run in trial.generator_runs:
        stored = (run.gen_metadata or {}).get(METADATA)
        if stored is not None:
            return int(stored["round"])
    return None


def _stored(run: GeneratorRun, trial: BaseTrial) -> dict[str, Any]:
    stored = (run.gen_metadata or {}).get(METADATA)
    if stored is None:
        raise ValueError(
            f"Expected the generator run of trial {trial.index} to hold its round and "
            f"plan, but it was made by another node named {node_name_of(run)!r}. Give "
            "the LevelSetNode another `name`."
        )
    return stored


def _own_weights(trial: BaseTrial, node_name: str) -> dict[str, tuple[int, int]]:
    r"""Round and number of places of each arm of this node, by signature."""
    own: dict[str, tuple[int, int]] = {}
    for run in trial.generator_runs:
        if node_name_of(run) == node_name:
            label = int(_stored(run, trial)["round"])
            for arm, weight in run.arm_weights.items():
                _, before = own.get(arm.signature, (label, 0))
                own[arm.signature] = (label, before + round(weight))
    return own


def _arms(
    trial: BaseTrial, node_name: str, space: PoolSpace
) -> Iterator[tuple[str, int, tuple[int, int] | None]]:
    own = _own_weights(trial, node_name)
    for arm in trial.arms:
        place = own.get(arm.signature)
        if place is not None or not is_left_out(trial, arm.name):
            row = space.row_of(arm.parameters, f"trial {trial.index}")
            yield arm.name, row, place


def _enter_own(
    current: OpenRound,
    trial: BaseTrial,
    arm: str,
    row: int,
    weight: int,
    measurements: Measurements,
) -> None:
    if trial.status in _FREES:
        return
    if is_left_out(trial, arm):
        current.used_up += weight * [row]
        return
    found = measurements.of(trial, arm, row) if trial.status in _COUNTS else []
    if found:
        current.results += [replace(m, count=weight) for m in found]
    elif trial.status.is_early_stopped:
        current.used_up += weight * [row]
    else:
        current.out += weight * [row]
        current.trials_out.append(trial.index)
        if trial.status in _COUNTS and current.gap is None:
            current.gap = measurements.gap(trial, arm)


def is_left_out(trial: BaseTrial, arm: str) -> bool:
    r"""Whether an arm failed or was abandoned."""
    if isinstance(trial, BatchTrial) and arm in trial.abandoned_arm_names:
        return True
    return trial.status in _FREES or trial.status.is_abandoned
