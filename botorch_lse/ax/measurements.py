r"""Ax data as measurements of rows, with their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from ax.core.base_trial import BaseTrial
from ax.core.batch_trial import BatchTrial
from ax.core.data import Data
from torch import Tensor

from botorch_lse.ax.compat import as_stored
from botorch_lse.problem import Observations
from botorch_lse.strategies import PACStrategy, ParetoStrategy, Strategy

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


class Measurements:
    r"""The data of an experiment, looked up by trial and arm.

    A standard error (``sem``) that is known gives the noise variance ``sem^2`` of the
    value. Where it is missing, the strategy's own noise counts (``noise_std`` or
    ``pool.noise_var``, divided by the weight of the arm, whose value is a mean of so
    many replicates); where that is missing too, the noise is unknown and learned.

    Args:
        data: The experiment's data.
        metrics: The metrics in the order of the strategy's outputs.
        strategy: Knows the noise where the data do not.

    Raises:
        ValueError: If values are lost in Ax's storage format.

    A standard error of 0, also one that Ax's storage rounds to 0, is an exact
    measurement.
    """

    def __init__(self, data: Data, metrics: Sequence[str], strategy: Strategy) -> None:
        self.metrics = tuple(metrics)
        self.strategy = strategy
        self._data = data
        self._values: dict[tuple[int, str], dict[str, tuple[float, float]]] = {}
        self._trial_by_known: dict[bool, int] = {}
        table = data.df
        if len(table) == 0:
            return
        table = table[table["metric_name"].isin(self.metrics)]
        means = _readable(table)
        sems = table["sem"].to_numpy(dtype=float)
        sems = np.where(np.isinf(sems), sems, as_stored(sems))  # not as missing ones
        keys = zip(table["trial_index"], table["arm_name"], strict=True)
        names = table["metric_name"]
        for (trial, arm), name, mean, sem in zip(keys, names, means, sems, strict=True):
            if not np.isnan(mean):
                entry = self._values.setdefault((int(trial), str(arm)), {})
                entry[str(name)] = (float(mean), float(sem))

    def of(self, trial: BaseTrial, arm: str, row: int) -> list[Measurement]:
        r"""The measurement of an arm; none if a metric is missing.

        Raises:
            ValueError: If a standard error is negative or infinite, or known and
                unknown noise are mixed.
        """
        found = self._values.get((trial.index, arm), {})
        if any(name not in found for name in self.metrics):
            return []
        weight = weight_of(trial, arm)
        values = [found[name] for name in self.metrics]
        yvar = [
            self._variance(sem, c, row, weight, trial, arm)
            for c, (_, sem) in enumerate(values)
        ]
        for value in yvar:
            self._trial_by_known.setdefault(value is not None, trial.index)
        if len(self._trial_by_known) > 1:
            raise ValueError(_mixed(self._trial_by_known))
        known = tuple(v for v in yvar if v is not None)
        y = tuple(mean for mean, _ in values)
        return [Measurement(row, y, known, trial.index, arm)]

    def gap(self, trial: BaseTrial, arm: str) -> Gap:
        r"""What is missing for an arm without a measurement."""
        table = self._data.df
        of_arm = (table["trial_index"] == trial.index) & (table["arm_name"] == arm)
        names = table["metric_name"][of_arm & table["mean"].notna()]
        found = tuple(sorted(set(names)))
        missing = tuple(name for name in self.metrics if name not in found)
        return Gap(trial.index, missing, found)

    def _variance(
        self,
        sem: float,
        column: int,
        row: int,
        weight: float,
        trial: BaseTrial,
        arm: str,
    ) -> float | None:
        if not np.isnan(sem) and not is_noise(sem):
            raise ValueError(
                f"Expected the `sem` of trial {trial.index} to be finite and at least "
                f"0, or missing, but got {sem:g}. 0 is an exact measurement; leave it "
                "out where the noise is unknown. "
                f"`client.attach_data({trial.index}, "
                f"{{{self.metrics[column]!r}: (mean, sem)}})` replaces it."
            )
        if isinstance(self.strategy, PACStrategy):  # its noise is bounded, not known
            if weight > 1:
                raise ValueError(
                    f"Expected one value for each draw, but arm {arm} of trial "
                    f"{trial.index} is a mean of {weight:g}. Ask for trials of one "
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
        if weight > 1 and not isinstance(self.strategy, ParetoStrategy):
            raise ValueError(
                f"Expected a sem for arm {arm} of trial {trial.index}, which is a mean "
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


def _readable(table: pd.DataFrame) -> np.ndarray:
    given = table["mean"].to_numpy(dtype=float)
    means = as_stored(given)
    largest = np.nanmax(np.abs(given), initial=0.0)
    loss = np.nanmax(np.abs(means - given), initial=0.0)
    if loss > _LOST_IN_STORAGE * largest:
        raise ValueError(
            "Expected values that survive Ax's storage, which keeps ten decimals, but "
            f"the largest is {largest:g}. Give them in smaller units, so that they are "
            "near 1 (threshold, noise and accuracy too)."
        )
    return means


def weight_of(trial: BaseTrial, arm: str) -> float:
    r"""How many replicates an arm stands for in its trial."""
    if not isinstance(trial, BatchTrial):
        return 1.0
    return float(trial.arm_weights[trial.arms_by_name[arm]])
