r"""A pool of rows as an Ax search space.

Either the space is one whole-number parameter, the row's number (``pool_parameters``),
or its parameters are columns of the pool's table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from ax.api.configs import RangeParameterConfig
from ax.core.parameter import FixedParameter, Parameter
from ax.core.search_space import SearchSpace

from botorch_lse.problem import Pool

POOL_INDEX = "pool_index"
"""The parameter that is the number of a pool's row, from 0."""
_SAME = 1e-9
"""Share of a column's range up to which two numbers are the same."""
_SHOWN = 6
"""Columns of a row that a message shows."""


def pool_parameters(pool: Pool) -> list[RangeParameterConfig]:
    r"""The parameters of an experiment whose candidates are the rows of a pool.

    One whole number, ``pool_index``. To see the columns themselves in Ax, configure the
    experiment with parameters that are columns of the pool's table (see ``grid_pool``).

    Example:
        >>> from ax.api.client import Client
        >>> client = Client()
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="pool")

    Args:
        pool: The candidates, at least two.

    Raises:
        ValueError: If it is no pool, or has one row, which Ax cannot express as a
            range.
    """
    if not isinstance(pool, Pool):
        raise ValueError(
            f"Expected `pool` to be a Pool, but got {type(pool).__name__}. Write "
            "`Pool(X)`, or `strategy.pool`."
        )
    if len(pool) < 2:
        raise ValueError(
            "Expected `pool` to have at least 2 rows, because Ax has no range of one "
            f"value, but got {len(pool)}. With one row there is nothing to choose: "
            "`strategy.ask` and `strategy.tell` need no Ax."
        )
    bounds = (0, len(pool) - 1)
    return [RangeParameterConfig(name=POOL_INDEX, bounds=bounds, parameter_type="int")]


class PoolSpace:
    r"""Rows of a pool as parameterizations of a search space, and back.

    Args:
        pool: The candidates.
        search_space: With the parameter ``pool_index``; or each of its parameters is a
            column of the pool's table (or of ``X``, under its names), or fixed. Other
            columns may be there.

    Raises:
        ValueError: If a parameter is no column, a row lies outside the space, or two
            rows have the same parameters.
    """

    def __init__(self, pool: Pool, search_space: SearchSpace) -> None:
        self.n_rows = len(pool)
        self.by_number = POOL_INDEX in search_space.parameters
        if self.by_number:
            return
        free, fixed = _parameters(pool, search_space)
        self.names, self._fixed = list(free), fixed
        self._table = pool.to_frame()[self.names].reset_index(drop=True)
        self._records = _records(self._table, free)
        _check_rows(self._records, fixed, search_space)
        self._rows = _row_by_values(self._records, self.names)

    def parameters_of(self, row: int) -> dict[str, Any]:
        r"""The parameterization of a row."""
        if self.by_number:
            return {POOL_INDEX: int(row)}
        values = dict(zip(self.names, self._records[row], strict=True))
        return {**values, **self._fixed}

    def row_of(self, parameters: Mapping[str, Any], where: str) -> int:
        r"""The row of a parameterization.

        Args:
            parameters: Of an arm. Numbers that differ by rounding errors are the same.
            where: Which trial it comes from, for the message.

        Raises:
            ValueError: If it names no row of the pool; the message has the nearest one.
        """
        if self.by_number:
            return _row_of_number(parameters, self.n_rows, where)
        missing = [name for name in self.names if name not in parameters]
        if missing:
            raise ValueError(
                f"Expected {where} to have the parameters {self.names}, but "
                f"{missing} are missing."
            )
        values = tuple(parameters[name] for name in self.names)
        row = self._rows.get(values)
        if row is not None:
            return row
        nearest, distance = self._nearest(values)
        if distance <= _SAME:
            return nearest
        asked = dict(zip(self.names, values, strict=True))
        raise ValueError(
            f"Expected the parameters of {where} to be a row of the pool, but got "
            f"{_shown(asked)}; the nearest is row {nearest}: "
            f"{_shown(self.parameters_of(nearest))}. {_take_out()}"
        )

    def _nearest(self, values: tuple[Any, ...]) -> tuple[int, float]:
        r"""The nearest row and its largest difference, as a share of the range."""
        apart = np.zeros((self.n_rows, len(values)))
        for j, value in enumerate(values):
            column = self._table.iloc[:, j]
            if _is_number(column) and isinstance(value, (int, float)):
                numbers = column.to_numpy(dtype=float)
                span = float(np.ptp(numbers)) or 1.0
                apart[:, j] = np.abs(numbers - float(value)) / span
            else:
                apart[:, j] = [record[j] != value for record in self._records]
        row = int(np.square(apart).sum(axis=1).argmin())
        return row, float(apart[row].max())


def _parameters(
    pool: Pool, search_space: SearchSpace
) -> tuple[dict[str, Parameter], dict[str, Any]]:
    fixed = {
        name: parameter.value
        for name, parameter in search_space.parameters.items()
        if isinstance(parameter, FixedParameter)
    }
    free = {n: p for n, p in search_space.parameters.items() if n not in fixed}
    columns = list(pool.to_frame().columns)
    missing = [name for name in free if name not in columns]
    if missing or not free:
        raise ValueError(
            f"Expected each parameter of the search space to be a column of the pool "
            f"{columns}, but {missing or 'none'} {'are' if missing else 'is'} not. "
            "Name the columns as the parameters, or build the search space with "
            "`pool_parameters(pool)`."
        )
    return free, fixed


def _records(
    table: pd.DataFrame, parameters: Mapping[str, Parameter]
) -> list[tuple[Any, ...]]:
    columns = []
    for name, parameter in parameters.items():
        values = table[name].astype(object).tolist()
        columns.append([parameter.cast(value) for value in values])
    return list(zip(*columns, strict=True))


def _check_rows(
    records: list[tuple[Any, ...]], fixed: dict[str, Any], search_space: SearchSpace
) -> None:
    names = [name for name in search_space.parameters if name not in fixed]
    for row, record in enumerate(records):
        parameters = {**dict(zip(names, record, strict=True)), **fixed}
        if not search_space.check_membership(parameters):
            raise ValueError(
                "Expected the rows of the pool to lie in the search space, but row "
                f"{row} does not: {_shown(parameters)}. Leave it out of the pool, or "
                "widen the search space."
            )


def _row_by_values(
    records: list[tuple[Any, ...]], names: list[str]
) -> dict[tuple[Any, ...], int]:
    rows: dict[tuple[Any, ...], int] = {}
    for row, record in enumerate(records):
        first = rows.setdefault(record, row)
        if first != row:
            raise ValueError(
                f"Expected the pool's rows to differ in the parameters {names}, but "
                f"rows {first} and {row} are both {record}. Add the column in which "
                "they differ to the search space, or build it with "
                "`pool_parameters(pool)`."
            )
    return rows


def _row_of_number(parameters: Mapping[str, Any], n_rows: int, where: str) -> int:
    if POOL_INDEX not in parameters:
        raise ValueError(
            f"Expected {where} to have the parameter `{POOL_INDEX}`, but it has "
            f"{sorted(parameters)}. Build the search space with "
            "`pool_parameters(pool)`."
        )
    value = parameters[POOL_INDEX]
    if isinstance(value, bool) or not float(value).is_integer():
        raise ValueError(
            f"Expected `{POOL_INDEX}` of {where} to be a whole number, but got "
            f"{value!r}."
        )
    row = int(value)
    if not 0 <= row < n_rows:
        raise ValueError(
            f"Expected `{POOL_INDEX}` of {where} to be a row of the pool, 0 to "
            f"{n_rows - 1}, but got {row}; the nearest is "
            f"{min(max(row, 0), n_rows - 1)}. `Pool.nearest(x)` gives the row nearest "
            f"to a point. {_take_out()}"
        )
    return row


def _is_number(column: pd.Series) -> bool:
    is_bool = pd.api.types.is_bool_dtype(column)
    return bool(pd.api.types.is_numeric_dtype(column)) and not is_bool


def _shown(values: Mapping[str, Any]) -> str:
    names = list(values)
    words = ", ".join(f"{name}={values[name]!r}" for name in names[:_SHOWN])
    return words + (", ..." if len(names) > _SHOWN else "")


def _take_out() -> str:
    return (
        "Take the trial out with `mark_trial_failed` (a completed one with "
        "`experiment.trials[i].mark_failed(unsafe=True)`)."
    )
