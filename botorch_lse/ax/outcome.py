r"""What an evaluation returned, as Ax takes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def by_metric(value: Any, metrics: list[str]) -> dict[str, Any]:
    r"""The outcome of an evaluation by metric.

    Args:
        value: A number or ``(mean, sem)``, or these by metric.
        metrics: The metrics that a strategy learns from.

    Raises:
        ValueError: If there are several metrics and no dictionary, one is missing, or
            a number is not finite.
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
    for name in metrics:
        mean = value[name][0] if isinstance(value[name], tuple) else value[name]
        if not math.isfinite(mean):
            raise ValueError(
                f"Expected `evaluate` to return finite numbers, but got {mean!r} for "
                f"{name!r}. Raise an error where a measurement failed."
            )
    return dict(value)
