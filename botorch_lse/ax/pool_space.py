r"""A pool of rows as an Ax search space: one whole-number parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ax.api.configs import RangeParameterConfig

from botorch_lse.problem import Pool

POOL_INDEX = "pool_index"


def pool_parameters(pool: Pool) -> list[RangeParameterConfig]:
    r"""The parameters of an experiment whose candidates are the rows of a pool.

    Example:
        >>> from ax.api.client import Client
        >>> client = Client()
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="pool")

    Args:
        pool: The candidates, at least two.

    Raises:
        ValueError: If the pool has one row, which Ax cannot express as a range.
    """
    if len(pool) < 2:
        raise ValueError(
            "Expected `pool` to have at least 2 rows, because Ax has no range of one "
            f"value, but got {len(pool)}. With one row there is nothing to choose: "
            "`strategy.ask` and `strategy.tell` need no Ax."
        )
    bounds = (0, len(pool) - 1)
    return [RangeParameterConfig(name=POOL_INDEX, bounds=bounds, parameter_type="int")]


def parameters_of(row: int) -> dict[str, int]:
    r"""The parameterization of a row."""
    return {POOL_INDEX: int(row)}


def row_of(parameters: Mapping[str, Any], n_rows: int, where: str) -> int:
    r"""The row of a parameterization.

    Args:
        parameters: Of an arm.
        n_rows: The pool's rows.
        where: Which trial it comes from, for the message.

    Raises:
        ValueError: If it names no row of the pool.
    """
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
            "to a point. Take the trial out with `mark_trial_failed` (a completed one "
            "with `experiment.trials[i].mark_failed(unsafe=True)`)."
        )
    return row
