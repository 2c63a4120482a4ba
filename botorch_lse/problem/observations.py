r"""What was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.checks import (
    non_negative_vector,
    real_numbers,
    real_vector,
    row_indices,
    whole_numbers,
)

POOL_INDEX, ROUND = "pool_index", "round"
"""The columns of a sheet that say which row was measured, and in which round."""
_SEVERAL = (list, tuple, pd.Index, np.ndarray)
"""What holds names of columns, and is none itself."""


@dataclass(frozen=True, eq=False)
class Observations:
    r"""Measurements, one entry each, in the order in which they were told.

    Args:
        indices: ``n`` rows of the pool.
        y: ``n`` measured values, or ``n x m`` for ``m`` outputs.
        yvar: The known noise variance of each value, the shape of ``y``; ``None`` if
            the strategy knows the noise or the model learns it.
        round: The round of each entry, one number or ``n``; ``None``: not asked for by
            anybody, so a round of their own.
        counts: How many measurements each entry is the mean of; ``None``: one each.

    Raises:
        ValueError: If a value is not finite or a variance negative, or if known and
            unknown variances are mixed.
        BotorchTensorDimensionError: If the lengths differ.
    """

    indices: Tensor
    y: Tensor
    yvar: Tensor | None = None
    round: Tensor | None = None
    counts: Tensor | None = None

    def __post_init__(self) -> None:
        indices = row_indices(self.indices, "indices")
        n = indices.numel()
        y = _values(self.y, "y", n)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "y", y)
        if self.yvar is not None:
            object.__setattr__(self, "yvar", _variances(self.yvar, y))
        if self.round is not None:
            rounds = whole_numbers(self.round, "round")
            rounds = rounds.expand(n).clone() if rounds.ndim == 0 else rounds
            if rounds.shape != (n,) or (rounds < 0).any():
                raise ValueError(
                    f"Expected `round` to be one number of at least 0 per entry ({n}), "
                    f"but got {self.round!r}."
                )
            object.__setattr__(self, "round", rounds)
        if self.counts is not None:
            counts = whole_numbers(self.counts, "counts")
            if counts.shape != (n,) or bool((counts < 1).any()):
                raise ValueError(
                    "Expected `counts` to be one number of at least 1 per entry "
                    f"({n}), but got {self.counts!r}."
                )
            object.__setattr__(self, "counts", counts)

    def __len__(self) -> int:
        return self.indices.numel()

    @property
    def measured(self) -> Tensor:
        r"""The row of every single measurement, entries that are means spelled out."""
        if self.counts is None:
            return self.indices
        return self.indices.repeat_interleave(self.counts)

    @property
    def _each(self) -> Tensor:
        r"""``n``, how many measurements each entry is the mean of."""
        return torch.ones_like(self.indices) if self.counts is None else self.counts

    @property
    def n_measured(self) -> int:
        r"""The number of single measurements."""
        return len(self) if self.counts is None else int(self.counts.sum())

    def times_measured(self, n_rows: int) -> Tensor:
        r"""How often each of ``n_rows`` rows was measured, means spelled out."""
        times = torch.zeros(n_rows, dtype=torch.long)
        return times.index_add_(0, self.indices, self._each)

    @classmethod
    def empty(cls) -> Observations:
        r"""No measurement."""
        none = torch.empty(0, dtype=torch.long)
        return cls(none, torch.empty(0, dtype=torch.float64), round=none)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        y: str | Sequence[str],
        yvar: str | Sequence[str] | None = None,
    ) -> Observations:
        r"""Results from a table such as ``Batch.to_frame`` gives, filled in.

        Lines without a result are passed over: they are not measured yet, and a
        strategy asks for them again. A line without a round was asked for by nobody.
        Numbers written as text are numbers.

        Args:
            frame: One line a measurement, with the columns ``pool_index`` and, for what
                was asked for, ``round``; sheets of several batches one below the other.
            y: The column of the results, or ``m`` columns for ``m`` outputs.
            yvar: The column of their known noise variances, ``m`` of them for ``m``
                outputs, in the order of ``y``.

        Raises:
            ValueError: If a column is missing or there twice, an entry is no number,
                there are fewer columns of variances than of results, or some lines have
                a round and others have none.
        """
        if not isinstance(frame, pd.DataFrame):
            raise ValueError(
                "Expected `frame` to be a DataFrame, but got "
                f"{type(frame).__name__}. Write `pd.DataFrame(frame)`."
            )
        names, variances = _labels(y), [] if yvar is None else _labels(yvar)
        if not names or any(names.count(name) > 1 for name in names):
            raise ValueError(
                "Expected `y` to name the columns of the results, each once, but got "
                f"{y!r}."
            )
        if yvar is not None and len(variances) != len(names):
            raise ValueError(
                "Expected `yvar` to name one column for each column of `y`, "
                f"{names}, but got {yvar!r}."
            )
        wanted = [POOL_INDEX, *names, *variances]
        _check_columns(frame, wanted)
        done = frame[frame[names].notna().all(axis=1)]
        rounds = done.get(ROUND)
        if rounds is not None and rounds.isna().all():
            rounds = None
        if rounds is not None and bool(rounds.isna().any()):
            raise ValueError(
                f"Expected `frame` to have a {ROUND!r} in all lines or in none, but "
                f"line {done.index[rounds.isna()][0]} has none. Tell rows measured "
                "elsewhere apart."
            )
        values, noise = _columns(done, names), _columns(done, variances)
        if not isinstance(y, _SEVERAL):
            values, noise = values[:, 0], noise[:, :1].squeeze(-1)
        return cls(
            _column(done, POOL_INDEX),
            values,
            None if yvar is None else noise,
            None if rounds is None else _column(done, ROUND),
        )

    def output(self, column: int) -> Observations:
        r"""One of several outputs by itself.

        Args:
            column: Its column in ``y``.
        """
        yvar = None if self.yvar is None else self.yvar[:, column]
        return replace(self, y=self.y[:, column], yvar=yvar)

    def select(self, rows: Tensor) -> Observations:
        r"""The entries at ``rows`` (indices or mask), in that order."""

        def taken(part: Tensor | None) -> Tensor | None:
            r"""The rows of a part, if it is there."""
            return None if part is None else part[rows]

        parts = taken(self.yvar), taken(self.round), taken(self.counts)
        return Observations(self.indices[rows], self.y[rows], *parts)

    def at_round(self, round: int) -> Observations:
        r"""The same entries, labelled with one round."""
        return replace(self, round=torch.tensor(round))

    def append(self, other: Observations) -> Observations:
        r"""These entries, then the others.

        Raises:
            ValueError: If one has known variances and the other not.
        """
        if len(self) == 0:
            return other
        if len(other) == 0:
            return self
        if (self.yvar is None) != (other.yvar is None):
            raise ValueError(
                "Expected `yvar` for all observations or for none, but "
                f"{'earlier' if self.yvar is not None else 'new'} ones have it and "
                f"{'new' if self.yvar is not None else 'earlier'} ones do not. Give "
                "every measurement a variance, or none and let the model learn it."
            )
        if self.y.shape[1:] != other.y.shape[1:]:
            raise BotorchTensorDimensionError(
                f"Expected `y` with shape n x {tuple(self.y.shape[1:])} as before, but "
                f"got {tuple(other.y.shape)}."
            )
        if (self.round is None) != (other.round is None):
            raise ValueError("Expected `round` for all observations or for none.")
        counts = None
        if self.counts is not None or other.counts is not None:
            counts = torch.cat((self._each, other._each))
        return Observations(
            torch.cat((self.indices, other.indices)),
            torch.cat((self.y, other.y)),
            _joined(self.yvar, other.yvar),
            _joined(self.round, other.round),
            counts,
        )


def _labels(given: Any) -> list[Any]:
    r"""A list of column names from one name or several."""
    return list(given) if isinstance(given, _SEVERAL) else [given]


def _check_columns(frame: pd.DataFrame, wanted: Sequence[Any]) -> None:
    r"""Complain about a wanted column that is missing or there twice."""
    there = list(frame.columns)
    for name in wanted:
        if name not in there:
            raise ValueError(
                f"Expected `frame` to have the columns {list(wanted)}, but it has "
                f"{there}: {name!r} is missing."
            )
    for name in (*wanted, ROUND):
        if there.count(name) > 1:
            raise ValueError(
                f"Expected `frame` to have the column {name!r} once, but got it "
                f"{there.count(name)} times. Rename or drop the others."
            )


def _columns(frame: pd.DataFrame, names: Sequence[Any]) -> Tensor:
    r"""Columns side by side: ``n x k``."""
    columns = [_column(frame, name) for name in names]
    return torch.stack(columns, dim=-1) if columns else torch.empty(len(frame), 0)


def _column(frame: pd.DataFrame, name: Any) -> Tensor:
    r"""One column as numbers; ``None`` counts as nan."""
    column = frame[name]
    if not pd.api.types.is_numeric_dtype(column):
        column = column.astype(object).map(_spelled_out)
    return real_numbers(column, f"frame[{name!r}]", gaps=True)


def _spelled_out(entry: Any) -> Any:
    r"""The number that a text spells, else the entry as it is."""
    try:
        return float(entry) if isinstance(entry, str) else entry
    except ValueError:
        return entry


def _joined(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    r"""Both parts, or ``None`` if one of them is unknown."""
    return None if first is None or second is None else torch.cat((first, second))


def _values(y: Any, name: str, n: int) -> Tensor:
    r"""``n`` measured values, or ``n x m``, checked column by column."""
    values = real_numbers(y, name)
    if values.ndim == 2 and values.shape[1]:
        checked = [
            real_vector(column, f"{name}[:, {j}]", n, "measurement")
            for j, column in enumerate(values.unbind(dim=1))
        ]
        return torch.stack(checked, dim=-1)
    return real_vector(torch.atleast_1d(values), name, n, "measurement")


def _variances(yvar: Any, y: Tensor) -> Tensor:
    r"""Noise variances in the shape of ``y``; one number stands for all."""
    flat = real_numbers(yvar, "yvar", gaps=True)
    if flat.ndim == 0:
        flat = flat.expand(y.shape)
    if torch.isnan(flat).any():
        raise ValueError(
            "Expected `yvar` for all observations or for none, but entry "
            f"{int(torch.isnan(flat).reshape(-1).nonzero()[0])} is nan. Give every "
            "measurement a variance, or none and let the model learn it."
        )
    if flat.shape != y.shape:
        raise BotorchTensorDimensionError(
            f"Expected `yvar` to have the shape of `y`, {tuple(y.shape)}, but got "
            f"{tuple(flat.shape)}."
        )
    own = non_negative_vector(flat.reshape(-1), "yvar", flat.numel(), "measurement")
    return own.reshape(flat.shape)
