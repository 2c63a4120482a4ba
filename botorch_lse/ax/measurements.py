r"""Ax data as measurements of rows, with their noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from ax.core.base_trial import BaseTrial
from ax.core.batch_trial import BatchTrial
from torch import Tensor

from botorch_lse.ax.compat import DataRow, as_stored
from botorch_lse.problem import Observations
from botorch_lse.strategies import Strategy

_LOST_IN_STORAGE = 1e-4
"""Share of the largest value above which Ax's ten decimals cannot be accepted."""


@dataclass(frozen=True, order=True)
class Measurement:
    r"""One measured arm.

    Args:
        row: The row of the pool.
        y: One value per metric.
        yvar: Their noise variances; empty if unknown.
        trial: The trial's index.
        arm: The arm's name.
        count: How many places of the round's plan it fills: the arm's weight.
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


class Found(NamedTuple):
    r"""The data of one trial, as a strategy takes them.

    Args:
        values: By arm and metric the value and its standard error.
        names: By arm all metrics with a value, also those not learned from.
        largest: The largest value in size.
        loss: The largest change of a value in Ax's storage format.
    """

    values: Mapping[str, Mapping[str, tuple[float, float]]]
    names: Mapping[str, tuple[str, ...]]
    largest: float = 0.0
    loss: float = 0.0


NOTHING = Found({}, {})
"""What a trial without data has."""


class Measurements:
    r"""Reads the data of trials as measurements of arms.

    A standard error (``sem``) that is known gives the noise variance ``sem^2`` of the
    value. Where it is missing, the strategy's own noise counts (``noise_std`` or
    ``pool.noise_var``, divided by the weight of the arm, whose value is a mean of so
    many replicates); where that is missing too, the noise is unknown and learned.

    Args:
        metrics: The metrics in the order of the strategy's outputs.
        strategy: Knows the noise where the data do not.

    A standard error of 0, also one that Ax's storage rounds to 0, is an exact
    measurement.
    """

    def __init__(self, metrics: Sequence[str], strategy: Strategy) -> None:
        self.metrics = tuple(metrics)
        self.strategy = strategy

    def read(self, rows_by_trial: Mapping[int, Sequence[DataRow]]) -> dict[int, Found]:
        r"""The data of some trials; of several steps of one value the last counts."""
        last = {t: _last_steps(rows) for t, rows in rows_by_trial.items()}
        ours = [r for rows in last.values() for r in rows if r.metric in self.metrics]
        if not ours:
            return {trial: self._found(rows, iter(())) for trial, rows in last.items()}
        numbers = np.array([(r.mean, r.sem) for r in ours], dtype=float).reshape(-1, 2)
        # Both columns at once: the way through Ax's format takes milliseconds.
        stored = as_stored(numbers.ravel()).reshape(-1, 2)
        sems = numbers[:, 1]
        stored[:, 1] = np.where(np.isinf(sems), sems, stored[:, 1])  # not as missing
        there = iter(zip(stored.tolist(), numbers[:, 0].tolist(), strict=True))
        return {trial: self._found(rows, there) for trial, rows in last.items()}

    def _found(
        self, rows: list[DataRow], stored: Iterator[tuple[list[float], float]]
    ) -> Found:
        values: dict[str, dict[str, tuple[float, float]]] = {}
        names: dict[str, list[str]] = {}
        largest = loss = 0.0
        for row in rows:
            if pd.notna(row.mean):
                names.setdefault(row.arm, []).append(row.metric)
            if row.metric not in self.metrics:
                continue
            (mean, sem), given = next(stored)
            if not math.isnan(given):
                largest, loss = max(largest, abs(given)), max(loss, abs(mean - given))
            if not math.isnan(mean):
                values.setdefault(row.arm, {})[row.metric] = (mean, sem)
        sorted_names = {arm: tuple(sorted(set(n))) for arm, n in names.items()}
        return Found(values, sorted_names, largest, loss)

    def of(
        self, trial: int, arm: str, row: int, weight: float, found: Found
    ) -> list[Measurement]:
        r"""The measurement of an arm; none if a metric is missing.

        Raises:
            ValueError: If a standard error is negative or infinite, or known and
                unknown noise are mixed.
        """
        by_metric = found.values.get(arm, {})
        if any(name not in by_metric for name in self.metrics):
            return []
        values = [by_metric[name] for name in self.metrics]
        yvar = [
            self._variance(sem, c, row, weight, trial, arm)
            for c, (_, sem) in enumerate(values)
        ]
        known = tuple(v for v in yvar if v is not None)
        if 0 < len(known) < len(yvar):
            raise ValueError(_mixed({True: trial, False: trial}))
        y = tuple(mean for mean, _ in values)
        return [Measurement(row, y, known, trial, arm)]

    def gap(self, trial: int, arm: str, found: Found) -> Gap:
        r"""What is missing for an arm without a measurement."""
        names = found.names.get(arm, ())
        missing = tuple(name for name in self.metrics if name not in names)
        return Gap(trial, missing, names)

    def _variance(
        self,
        sem: float,
        column: int,
        row: int,
        weight: float,
        trial: int,
        arm: str,
    ) -> float | None:
        if not np.isnan(sem) and not is_noise(sem):
            raise ValueError(
                f"Expected the `sem` of trial {trial} to be finite and at least "
                f"0, or missing, but got {sem:g}. 0 is an exact measurement; leave it "
                "out where the noise is unknown. "
                f"`client.attach_data({trial}, "
                f"{{{self.metrics[column]!r}: (mean, sem)}})` replaces it."
            )
        if not self.strategy.takes_means:
            if weight > 1:
                raise ValueError(
                    f"Expected one value for each draw, but arm {arm} of trial "
                    f"{trial} is a mean of {weight:g}. Ask for trials of one "
                    f"arm: `{type(self.strategy).__name__}` needs every value."
                )
            return None
        if not np.isnan(sem):
            return sem * sem
        std = getattr(self.strategy, "noise_std", None)
        if isinstance(std, Sequence):
            std = std[column]
        if std is not None:
            return float(std) ** 2 / weight
        if self.strategy.pool.noise_var is not None:
            return float(self.strategy.pool.noise_var[row]) / weight
        if weight > 1 and not self.strategy.weighs_by_counts:
            raise ValueError(
                f"Expected a sem for arm {arm} of trial {trial}, which is a mean "
                f"of {weight:g} replicates, but got none. Attach (mean, s / "
                f"sqrt({weight:g})), or give the strategy `noise_std`."
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
    counts = torch.tensor([m.count for m in found]) if _has_means(found) else None
    return Observations(rows, _columns([m.y for m in found]), yvar, counts=counts)


def _has_means(found: Sequence[Measurement]) -> bool:
    return any(m.count > 1 for m in found)


def _columns(values: Sequence[tuple[float, ...]]) -> Tensor:
    matrix = torch.tensor(values, dtype=torch.float64)
    return matrix[:, 0] if matrix.ndim == 2 and matrix.shape[1] == 1 else matrix


def _mixed(trial_by_known: dict[bool, int]) -> str:
    known, unknown = trial_by_known[True], trial_by_known[False]
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
        raise ValueError(_mixed(first))
    largest, loss = (max(column) for column in zip((0.0, 0.0), *found, strict=True))
    if loss > _LOST_IN_STORAGE * largest:
        raise ValueError(
            "Expected values that survive Ax's storage, which keeps ten decimals, but "
            f"the largest is {largest:g}. Give them in smaller units, so that they are "
            "near 1 (threshold, noise and accuracy too)."
        )


def _last_steps(rows: Sequence[DataRow]) -> list[DataRow]:
    r"""Of each value the last step, one without a step before all: as ``Data.df``."""
    last: dict[tuple[str, str], DataRow] = {}
    for row in rows:
        key = (row.arm, row.metric)
        if key not in last or _step(row) >= _step(last[key]):
            last[key] = row
    return list(last.values())


def _step(row: DataRow) -> float:
    return math.inf if row.step is None or math.isnan(row.step) else row.step


def weight_of(trial: BaseTrial, arm: str) -> float:
    r"""How many replicates an arm stands for in its trial."""
    if not isinstance(trial, BatchTrial):
        return 1.0
    return float(trial.arm_weights[trial.arms_by_name[arm]])
