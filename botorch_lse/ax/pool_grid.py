r"""A product grid of Ax parameters as a pool."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from botorch_lse.checks import whole_number
from botorch_lse.problem import Pool

MOST_ROWS = 10**6
"""A grid with more rows is refused: it is rarely meant."""

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
        ValueError: If a number of points is missing or out of range, or the grid has
            more than ``MOST_ROWS`` rows.
    """
    values = {p.name: _values(p, points) for p in parameters}
    n_rows = math.prod(len(v) for v in values.values())
    if not values or n_rows > MOST_ROWS:
        raise ValueError(
            f"Expected `parameters` to make between 1 and {MOST_ROWS:,} rows, but they "
            f"make {n_rows if values else 0:,}. Take fewer `points`."
        )
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


def _values(parameter: Config, points: int | Mapping[str, int]) -> list[Any]:
    if isinstance(parameter, ChoiceParameterConfig):
        return list(parameter.values)
    low, high = parameter.bounds
    is_int = parameter.parameter_type == "int"
    if parameter.step_size is not None:
        steps = math.floor((high - low) / parameter.step_size + 1e-9)
        values = low + parameter.step_size * np.arange(steps + 1)
    else:
        n = _points(parameter.name, points)
        space = np.geomspace if parameter.scaling == "log" else np.linspace
        values = space(low, high, n)
        values[[0, -1]] = low, high
    if is_int:
        return [int(v) for v in np.unique(np.round(values))]
    return [float(v) for v in values]


def _points(name: str, points: int | Mapping[str, int]) -> int:
    if isinstance(points, Mapping):
        if name not in points:
            raise ValueError(
                f"Expected `points` to have a number for the range {name!r}, but it "
                f"has {sorted(points)}."
            )
        points = points[name]
    return whole_number(points, "points", 2)


def _model_column(parameter: Config, column: pd.Series) -> pd.Series:
    if isinstance(parameter, RangeParameterConfig):
        return np.log10(column) if parameter.scaling == "log" else column.astype(float)
    if parameter.parameter_type in ("int", "float", "bool"):
        return column if parameter.is_ordered is not False else column.astype(str)
    if parameter.is_ordered:
        order = {value: i for i, value in enumerate(parameter.values)}
        return column.map(order).astype(float)
    return column
