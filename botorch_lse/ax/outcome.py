r"""What an evaluation returned, as Ax takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from botorch_lse.ax.measurements import is_noise
from botorch_lse.checks import real_numbers


def by_metric(value: Any, metrics: list[str]) -> dict[str, Any]:
    r"""The outcome of an evaluation by metric.

    Further metrics may be there: each a number or ``(mean, sem)``, which may be NaN.

    Args:
        value: A number or ``(mean, sem)``, or these by metric.
        metrics: The metrics that a strategy learns from.

    Raises:
        ValueError: If there are several metrics and no dictionary, one is missing, a
            value is no number, the name of a metric no text, or a metric that the
            strategy learns from is not finite or its standard error negative or not
            finite.
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
    return {_name(name): _outcome(value[name], name, name in metrics) for name in value}


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(
            "Expected `evaluate` to return a dictionary by the names of metrics, but "
            f"got the name {name!r}. Write {str(name)!r}."
        )
    return name


def _outcome(value: Any, name: str, is_learnt: bool) -> Any:
    r"""A number, or ``(mean, sem)``, as floats; must be usable if it is learnt from."""
    parts = list(value) if isinstance(value, (tuple, list)) else [value]
    try:
        numbers = [
            None if i and x is None else float(real_numbers(x, name))
            for i, x in enumerate(parts)
        ]
    except (TypeError, ValueError, RuntimeError):
        numbers = []
    if len(numbers) not in (1, 2):
        raise ValueError(
            "Expected `evaluate` to return a number or `(mean, sem)`, but got "
            f"{value!r} for {name!r}. Raise an error where a measurement failed."
        )
    mean, *rest = numbers
    sem = rest[0] if rest else None
    if is_learnt:
        _check_mean(mean, name)
        _check_sem(sem, name)
    return (mean, sem) if rest else mean


def _check_mean(mean: float | None, name: str) -> None:
    if mean is None or not math.isfinite(mean):
        raise ValueError(
            f"Expected `evaluate` to return finite numbers, but got {mean!r} for "
            f"{name!r}. Raise an error where a measurement failed."
        )


def _check_sem(sem: float | None, name: str) -> None:
    if sem is None or is_noise(sem):
        return
    raise ValueError(
        "Expected `evaluate` to return a standard error of at least 0, but got "
        f"{sem!r} for {name!r}. 0 is an exact measurement; leave it out, or return "
        "None, if it is not known."
    )
