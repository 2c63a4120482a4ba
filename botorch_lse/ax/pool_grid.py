r"""A product grid of Ax parameters as a pool."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from botorch_lse.checks import whole_number
from botorch_lse.problem import Pool

MOST_ROWS = 10**6
"""A grid with more rows is refused: it is rarely meant."""

_REMEDY = "Give what `client.configure_experiment(parameters=...)` takes."

Config = RangeParameterConfig | ChoiceParameterConfig


def grid_pool(
    parameters: Sequence[Config], points: int | Mapping[str, int] = 10
) -> Pool:
    r"""Every combination of the parameters' values, each a row.

    A choice takes its values; a range with a step takes its steps; a range of whole
    numbers and a real one take ``points`` values from bound to bound, evenly spaced on
    its scale. The model sees the logarithm (base 10) of a range on a log scale, ordered
    choices that are words as 0, 1, ..., and other words as one column each. The table
    has the values themselves, so that the same ``parameters`` make the experiment.

    Example:
        >>> from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
        >>> parameters = [
        ...     RangeParameterConfig(
        ...         name="dose", bounds=(1, 100), parameter_type="float", scaling="log"
        ...     ),
        ...     ChoiceParameterConfig(
        ...         name="mix", values=["a", "b"], parameter_type="str"
        ...     ),
        ... ]
        >>> pool = grid_pool(parameters, points=3)
        >>> pool.to_frame()["dose"].tolist()
        [1.0, 1.0, 10.0, 10.0, 100.0, 100.0]
        >>> pool.names
        ('dose', 'mix=a', 'mix=b')

    Args:
        parameters: As for ``client.configure_experiment``.
        points: Values of each range without a step, at least 2; or by name.

    Raises:
        ValueError: If ``parameters`` is no list of ranges and choices, a name is there
            twice, a range has no such scale or steps, a number of points is missing or
            out of range, or the grid has more than ``MOST_ROWS`` rows.
    """
    parameters = _checked(parameters)
    levels = {p.name: _levels(p, points) for p in parameters}
    _check_rows(math.prod(len(v) for v in levels.values()) if levels else 0)
    values = {
        name: v if isinstance(v, list) else v.tolist() for name, v in levels.items()
    }
    rows = list(itertools.product(*values.values()))
    table = pd.DataFrame(
        {
            name: [row[j] for row in rows]  # column by column keeps the data types
            for j, name in enumerate(values)
        }
    )
    return Pool(
        pd.DataFrame({p.name: _model_column(p, table[p.name]) for p in parameters}),
        table=table,
    )


def _checked(parameters: Any) -> list[Config]:
    wanted = "Expected `parameters` to be a list of ranges and choices, but"
    if isinstance(parameters, Config):
        raise ValueError(
            f"{wanted} got {type(parameters).__name__}. Write `grid_pool([...])`."
        )
    if isinstance(parameters, str) or not isinstance(parameters, Iterable):
        raise ValueError(f"{wanted} got {parameters!r}. {_REMEDY}")
    found = list(parameters)
    for i, parameter in enumerate(found):
        if not isinstance(parameter, Config):
            raise ValueError(f"{wanted} entry {i} is {parameter!r}. {_REMEDY}")
        if isinstance(parameter, RangeParameterConfig):
            _check_range(parameter)
    repeated = [n for n, k in Counter(p.name for p in found).items() if k > 1]
    if repeated:
        raise ValueError(
            f"Expected the names of `parameters` to differ, but got {repeated} more "
            "than once. Rename one of them."
        )
    return found


def _check_range(parameter: RangeParameterConfig) -> None:
    low, high = parameter.bounds
    is_log, step = parameter.scaling == "log", parameter.step_size
    if not (math.isfinite(low) and math.isfinite(high) and low <= high) or (
        is_log and low <= 0
    ):
        raise ValueError(
            f"Expected the bounds of the range {parameter.name!r} to be finite, the "
            f"lower first, and positive on a log scale, but got {parameter.bounds}"
            + (" on a log scale. Raise the lower one." if is_log else ".")
        )
    if step is not None and not step > 0:
        raise ValueError(
            f"Expected `step_size` of the range {parameter.name!r} to be positive, but "
            f"got {step:g}. Leave it out for `points` values."
        )


def _check_rows(n_rows: int) -> None:
    if not 1 <= n_rows <= MOST_ROWS:
        raise ValueError(
            f"Expected `parameters` to make between 1 and {MOST_ROWS:,} rows, but they "
            f"make {n_rows:,}. Take fewer `points`, or larger steps."
        )


def _levels(
    parameter: Config, points: int | Mapping[str, int]
) -> list[Any] | np.ndarray:
    r"""The values of a parameter; those of a range not yet as Python's numbers."""
    if isinstance(parameter, ChoiceParameterConfig):
        return list(parameter.values)
    low, high = parameter.bounds
    if parameter.step_size is not None:
        n = math.floor((high - low) / parameter.step_size + 1e-9) + 1
        _check_rows(n)
        values = low + parameter.step_size * np.arange(n)
    else:
        n = _points(parameter.name, points)
        space = np.geomspace if parameter.scaling == "log" else np.linspace
        values = space(low, high, n)
        values[[0, -1]] = low, high
    if parameter.parameter_type == "int":
        return np.unique(np.round(values)).astype(int)
    return values.astype(float)


def _points(name: str, points: int | Mapping[str, int]) -> int:
    if isinstance(points, Mapping):
        if name not in points:
            raise ValueError(
                f"Expected `points` to have a number for the range {name!r}, but it "
                f"has {sorted(points)}."
            )
        points = points[name]
    n = whole_number(points, "points", 2)
    if n > MOST_ROWS:
        raise ValueError(
            f"Expected `points` to be at most {MOST_ROWS:,}, but got {n:,}. Take fewer."
        )
    return n


def _model_column(parameter: Config, column: pd.Series) -> pd.Series:
    if isinstance(parameter, RangeParameterConfig):
        return np.log10(column) if parameter.scaling == "log" else column.astype(float)
    if parameter.parameter_type in ("int", "float", "bool"):
        return column if parameter.is_ordered is not False else column.astype(str)
    if parameter.is_ordered:
        order = {value: i for i, value in enumerate(parameter.values)}
        return column.map(order).astype(float)
    return column
