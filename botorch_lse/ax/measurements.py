r"""What a strategy learns from: metrics, and their data as measurements of rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from ax.core import BatchTrial, Data, Experiment
from ax.core.base_trial import BaseTrial
from torch import Tensor

from botorch_lse.ax.compat import DataRow, as_stored
from botorch_lse.problem import Observations
from botorch_lse.strategies import Strategy

_LOST_IN_STORAGE = 1e-4
"""Share of the largest value above which Ax's ten decimals cannot be accepted."""

# --- metrics --------------------------------------------------------------------------


def checked_metrics(metrics: Any) -> tuple[str, ...] | None:
    r"""Names of metrics as given to a node; ``None`` for those of the objective.

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


def warn_of_unknown(
    experiment: Experiment, data: Data, metrics: Sequence[str] | None
) -> None:
    r"""Warn of metrics that the experiment does not have: a mistyped name, most often.

    They may still come with the first data.

    Args:
        experiment: With its metrics.
        data: Its data; metrics among them are known, too.
        metrics: Those given; ``None``: the objective's, which are known.

    Warns:
        UserWarning: If the experiment has metrics, but not all of these.
    """
    known = {*experiment.metrics, *data.metric_names}
    unknown = [name for name in metrics or () if name not in known]
    if unknown and experiment.metrics:
        warnings.warn(
            "Expected each of `metrics` to be a metric of the experiment, but it has "
            f"{sorted(known)} and not {unknown}. Correct the name, or call "
            f"`client.configure_tracking_metrics({unknown})`.",
            stacklevel=2,
        )


def metric_names(
    experiment: Experiment, metrics: Sequence[str] | None, strategy: Strategy
) -> list[str]:
    r"""The metrics that the strategy learns from: those given, or the objective's.

    Raises:
        ValueError: If neither is there, there is not one per output of the strategy, or
            the objective's signs are not those of a strategy for several outputs.
    """
    signs = _signs(experiment)
    names = list(signs) if metrics is None else list(metrics)
    if len(names) != strategy.n_outputs:
        found = f"`metrics` is {names}"
        if metrics is None:
            found = f"the experiment's objective has {names or 'none'}"
        raise ValueError(_wanted(strategy.n_outputs, found))
    for name, up in zip(names, strategy.directions or (), strict=False):
        if name in signs and (signs[name] > 0) != up:
            raise ValueError(
                f"Expected `maximize` of the strategy to agree with the objective, but "
                f"{name!r} is to be {'maximised' if up else 'minimised'} by the one "
                "and not by the other. Write the objective of a metric to be minimised "
                f'as "-{name}".'
            )
    return names


def objective_metrics(experiment: Experiment) -> list[str]:
    r"""The metrics of the objective, where no level-set strategy says how many.

    Raises:
        ValueError: If the experiment has no objective.
    """
    names = list(_signs(experiment))
    if not names:
        raise ValueError(_wanted(1, "the experiment's objective has none"))
    return names


def _signs(experiment: Experiment) -> dict[str, float]:
    r"""The metrics of the objective, positive where they are to be maximised."""
    config = experiment.optimization_config
    return {} if config is None else dict(config.objective.metric_weights)


def _wanted(n: int, found: str) -> str:
    if n == 1:
        return (
            f"Expected an objective with one metric, or `metrics`, but {found}. Call "
            '`client.configure_optimization(objective="y")`, or pass `metrics=["y"]`.'
        )
    return (
        f"Expected one metric per output of the strategy ({n}), but {found}. Call "
        '`client.configure_optimization(objective="y, -z")`, or pass '
        '`metrics=["y", "z"]`, the outputs in order.'
    )


# --- measurements ---------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Measurement:
    r"""One measured arm.

    Args:
        row: The row of the pool.
        y: One value per metric.
        yvar: Their noise variances; empty if unknown.
        trial: The trial's index.
        arm: The arm's name.
        count: How many of the round's planned measurements it stands for: the arm's
            weight.
    """

    row: int
    y: tuple[float, ...]
    yvar: tuple[float, ...]
    trial: int
    arm: str
    count: int = 1


@dataclass(frozen=True)
class Gap:
    r"""What is missing of the data of a completed trial.

    Args:
        trial: Its index.
        missing: The metrics without a value.
        found: The metrics with one, also those that the strategy does not learn from.
    """

    trial: int
    missing: tuple[str, ...]
    found: tuple[str, ...]

    def how_to_fill(self) -> str:
        r"""The call that attaches what is missing."""
        values = ", ".join(f"{name!r}: (mean, sem)" for name in self.missing)
        words = (
            f"Trial {self.trial} is completed without data for {list(self.missing)}, "
            f"its data have {list(self.found) or 'none'}: call "
            f"`client.attach_data({self.trial}, {{{values}}})`."
        )
        if self.found:
            words += " If it was measured under another name, give that as `metrics`."
        return words


@dataclass
class TrialData:
    r"""The data of one trial, as a strategy takes them.

    Args:
        values: By arm and metric the value and its standard error.
        metrics: By arm all metrics with a value, also those not learned from.
        largest: The largest value in size.
        loss: The largest change of a value in Ax's storage format.
    """

    values: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    metrics: dict[str, set[str]] = field(default_factory=dict)
    largest: float = 0.0
    loss: float = 0.0


class Measurements:
    r"""Reads the data of trials as measurements of arms.

    A standard error (``sem``) that is known gives the noise variance ``sem^2`` of the
    value; 0, also one that Ax's storage rounds to 0, is an exact measurement. Where it
    is missing, the strategy's own noise counts (``noise_std`` or ``pool.noise_var``,
    divided by the weight of the arm, whose value is a mean of so many replicates);
    where that is missing too, the noise is unknown and learned.

    Args:
        metrics: The metrics in the order of the strategy's outputs.
        strategy: Knows the noise where the data do not.
    """

    def __init__(self, metrics: Sequence[str], strategy: Strategy) -> None:
        self.metrics = tuple(metrics)
        self.strategy = strategy

    def read(
        self, rows_by_trial: Mapping[int, Sequence[DataRow]]
    ) -> dict[int, TrialData]:
        r"""The data of some trials; of several steps of one value the last counts."""
        found = {trial: TrialData() for trial in rows_by_trial}
        rows = [row for rows in rows_by_trial.values() for row in _last_steps(rows)]
        if not rows:
            return found
        numbers = np.array([(row.mean, row.sem) for row in rows], dtype=float)
        # Both columns at once: the way through Ax's format takes milliseconds.
        stored = as_stored(numbers.ravel()).reshape(-1, 2)
        sems = numbers[:, 1]
        stored[:, 1] = np.where(np.isinf(sems), sems, stored[:, 1])  # not as missing
        for row, (given, _), (mean, sem) in zip(
            rows, numbers.tolist(), stored.tolist(), strict=True
        ):
            if math.isnan(given):
                continue
            data = found[row.trial]
            data.metrics.setdefault(row.arm, set()).add(row.metric)
            if row.metric in self.metrics:
                data.largest = max(data.largest, abs(given))
                data.loss = max(data.loss, abs(mean - given))
                if not math.isnan(mean):
                    by_metric = data.values.setdefault(row.arm, {})
                    by_metric[row.metric] = (mean, sem)
        return found

    def of(
        self, trial: int, arm: str, row: int, weight: float, data: TrialData
    ) -> Measurement | None:
        r"""The measurement of an arm; ``None`` if a metric is missing.

        Raises:
            ValueError: If a standard error is negative or infinite, or known and
                unknown noise are mixed.
        """
        by_metric = data.values.get(arm, {})
        if any(name not in by_metric for name in self.metrics):
            return None
        yvar = []
        for c, name in enumerate(self.metrics):
            sem = by_metric[name][1]
            if not math.isnan(sem) and not is_noise(sem):
                raise ValueError(
                    f"Expected the `sem` of trial {trial} to be finite and at least 0, "
                    f"or missing, but got {sem:g}. 0 is an exact measurement; leave it "
                    f"out where the noise is unknown. `client.attach_data({trial}, "
                    f"{{{name!r}: (mean, sem)}})` replaces it."
                )
            variance = self._variance(sem, c, row, weight, f"{arm} of trial {trial}")
            yvar += [] if variance is None else [variance]
        if 0 < len(yvar) < len(self.metrics):
            raise ValueError(_mixed(trial, trial))
        y = tuple(by_metric[name][0] for name in self.metrics)
        return Measurement(row, y, tuple(yvar), trial, arm)

    def gap(self, trial: int, arm: str, data: TrialData) -> Gap:
        r"""What is missing for an arm without a measurement."""
        found = data.metrics.get(arm, set())
        missing = tuple(name for name in self.metrics if name not in found)
        return Gap(trial, missing, tuple(sorted(found)))

    def _variance(
        self, sem: float, output: int, row: int, weight: float, arm: str
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
        std = getattr(self.strategy, "noise_std", None)
        if isinstance(std, Sequence):
            std = std[output]
        if std is not None:
            return float(std) ** 2 / weight
        if self.strategy.pool.noise_var is not None:
            return float(self.strategy.pool.noise_var[row]) / weight
        if weight > 1 and not self.strategy.weighs_by_counts:
            raise ValueError(
                f"Expected a sem for arm {arm}, which is a mean of {weight:g} "
                f"replicates, but got none. Attach (mean, s / sqrt({weight:g})), or "
                "give the strategy `noise_std`."
            )
        return None


def is_noise(sem: float) -> bool:
    r"""Whether a standard error is at least 0 and its square finite."""
    return sem >= 0 and sem * sem < math.inf


def as_observations(found: Sequence[Measurement]) -> Observations:
    r"""Measurements as a strategy takes them."""
    known = any(m.yvar for m in found)
    rows = torch.tensor([m.row for m in found], dtype=torch.long)
    yvar = _columns([m.yvar for m in found]) if known else None
    has_means = any(m.count > 1 for m in found)
    counts = torch.tensor([m.count for m in found]) if has_means else None
    return Observations(rows, _columns([m.y for m in found]), yvar, counts=counts)


def _columns(values: Sequence[tuple[float, ...]]) -> Tensor:
    matrix = torch.tensor(values, dtype=torch.float64)
    return matrix[:, 0] if matrix.ndim == 2 and matrix.shape[1] == 1 else matrix


def _mixed(known: int, unknown: int) -> str:
    return (
        f"Expected a sem for all measurements or for none, but trial {known} has one "
        f"and trial {unknown} has not. Attach (mean, sem) everywhere, or nowhere and "
        "let the model learn the noise; or give the strategy `noise_std`, which then "
        "stands where a sem is missing."
    )


def check_together(
    measured: Iterable[Measurement], found: Iterable[tuple[float, float]]
) -> None:
    r"""Refuse what no measurement shows by itself.

    Args:
        measured: All that count.
        found: The largest value and the largest loss in storage, of each trial.

    Raises:
        ValueError: If known and unknown noise are mixed, or values are lost in Ax's
            storage format.
    """
    first: dict[bool, int] = {}
    for m in measured:
        first.setdefault(bool(m.yvar), m.trial)
    if len(first) > 1:
        raise ValueError(_mixed(first[True], first[False]))
    largest, loss = (max(column) for column in zip((0.0, 0.0), *found, strict=True))
    if loss > _LOST_IN_STORAGE * largest:
        raise ValueError(
            "Expected values that survive Ax's storage, which keeps ten decimals, but "
            f"the largest is {largest:g}. Give them in smaller units, so that they are "
            "near 1 (threshold, noise and accuracy too)."
        )


def _last_steps(rows: Sequence[DataRow]) -> Iterable[DataRow]:
    r"""Of each value the last step, one without a step before all: as ``Data.df``."""
    return {(r.arm, r.metric): r for r in sorted(rows, key=_step)}.values()


def _step(row: DataRow) -> float:
    return math.inf if row.step is None or math.isnan(row.step) else row.step


def weight_of(trial: BaseTrial, arm: str) -> float:
    r"""How many replicates an arm stands for in its trial."""
    if not isinstance(trial, BatchTrial):
        return 1.0
    return float(trial.arm_weights[trial.arms_by_name[arm]])
