r"""What an evaluation returned, as Ax takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from botorch_lse.ax.compat import as_stored
from botorch_lse.ax.measurements import HOW_EXACT, is_noise


def by_metric(value: Any, metrics: list[str], *, exact: bool = False) -> dict[str, Any]:
    r"""The outcome of an evaluation by metric.

    Args:
        value: A number or ``(mean, sem)``, or these by metric.
        metrics: The metrics that a strategy learns from.
        exact: Whether a standard error of 0 is taken: Ax's own generators know it, a
            level-set strategy does not.

    Raises:
        ValueError: If there are several metrics and no dictionary, one is missing, or
            a value is no number, not finite, or its standard error is no noise.
    """
    if not isinstance(value, Mapping) and len(metrics) == 1:
        value = {metrics[0]: value}
    missing = list(metrics)
    if isinstance(value, Mapping):
        missing = [name for name in metrics if name not in value]
    if missing:
        raise ValueError(
            f"Expected `evaluate` to return a value for each of the metrics {metrics}, "
            f"but {missing} are missing in {value!r}. Return a dictionary by metric."
        )
    return {**value, **{name: _outcome(value[name], name, exact) for name in metrics}}


def _outcome(value: Any, name: str, exact: bool) -> Any:
    r"""A number, or ``(mean, sem)``, as floats."""
    parts = list(value) if isinstance(value, (tuple, list)) else [value]
    try:
        numbers = [None if i and x is None else float(x) for i, x in enumerate(parts)]
    except (TypeError, ValueError, RuntimeError):
        numbers = []
    if len(numbers) not in (1, 2):
        raise ValueError(
            "Expected `evaluate` to return a number or `(mean, sem)`, but got "
            f"{value!r} for {name!r}. Raise an error where a measurement failed."
        )
    mean, *rest = numbers
    sem = rest[0] if rest else None
    if mean is None or not math.isfinite(mean):
        raise ValueError(
            f"Expected `evaluate` to return finite numbers, but got {mean!r} for "
            f"{name!r}. Raise an error where a measurement failed."
        )
    if sem is not None:
        _check_sem(sem, name, exact)
    return (mean, sem) if rest else mean


def _check_sem(sem: float, name: str, exact: bool) -> None:
    stored = float(as_stored(np.array([sem]))[0])
    if is_noise(stored) or (exact and 0 <= sem < math.inf):
        return
    wanted = "a standard error of at least 0" if exact else "a positive standard error"
    lost = " (0 in Ax's storage)" if sem != 0 and stored == 0 else ""
    raise ValueError(
        f"Expected `evaluate` to return {wanted}, but got {sem!r}{lost} for {name!r}. "
        f"{HOW_EXACT} Leave it out, or return None, if it is not known."
    )
