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

    Further metrics may be there: each a number or ``(mean, sem)``, which may be NaN.

    Args:
        value: A number or ``(mean, sem)``, or these by metric.
        metrics: The metrics that a strategy learns from.
        exact: Whether a standard error of 0 is taken: Ax's own generators know it, a
            level-set strategy does not.

    Raises:
        ValueError: If there are several metrics and no dictionary, one is missing, a
            value is no number, the name of a metric no text, or a metric that the
            strategy learns from is not finite or its standard error no noise.
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
    return {
        _name(name): _outcome(value[name], name, exact if name in metrics else None)
        for name in value
    }


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(
            "Expected `evaluate` to return a dictionary by the names of metrics, but "
            f"got the name {name!r}. Write {str(name)!r}."
        )
    return name


def _outcome(value: Any, name: str, exact: bool | None) -> Any:
    r"""A number, or ``(mean, sem)``, as floats; only looked at if ``exact`` is None."""
    parts = list(value) if isinstance(value, (tuple, list)) else [value]
    if any(isinstance(part, (str, bytes)) for part in parts):
        parts = []  # text is no number, even where it looks like one
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
    if exact is not None:
        _check_mean(mean, name)
        _check_sem(sem, name, exact)
    return (mean, sem) if rest else mean


def _check_mean(mean: float | None, name: str) -> None:
    if mean is None or not math.isfinite(mean):
        raise ValueError(
            f"Expected `evaluate` to return finite numbers, but got {mean!r} for "
            f"{name!r}. Raise an error where a measurement failed."
        )


def _check_sem(sem: float | None, name: str, exact: bool) -> None:
    if sem is None:
        return
    stored = float(as_stored(np.array([sem]))[0])
    if is_noise(stored) or (exact and 0 <= sem < math.inf):
        return
    wanted = "a standard error of at least 0" if exact else "a positive standard error"
    lost = " (0 in Ax's storage)" if sem != 0 and stored == 0 else ""
    raise ValueError(
        f"Expected `evaluate` to return {wanted}, but got {sem!r}{lost} for {name!r}. "
        f"{HOW_EXACT} Leave it out, or return None, if it is not known."
    )
