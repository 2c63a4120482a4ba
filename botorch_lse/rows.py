r"""Which row of a table a line of another table is about.

A line belongs to the row that it describes. The number of the row, which stands beside
the description in a sheet, is true only as long as nobody sorts, extends or cuts the
table that the numbers count.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_lse._lazy import LazyModule
from botorch_lse.encoding import SAME_ROW, TIMES

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")  # pools load this, and few of them are tables

ROUNDED = 1e-3
"""A line that has the number of a row is about it, too, if spreadsheets have rounded
what they show: by no more than this share of a column's range."""
MOST_NAMED = 3
"""Lines and columns that a message names; of more it says how many there are."""


@dataclass(frozen=True, eq=False)
class Column:
    r"""One column of the table whose rows are looked for.

    Args:
        values: ``N`` floats, nan where nothing stands; of words ``N`` texts or None.
        span: The range of the numbers; ``None`` for words.
    """

    values: np.ndarray
    span: float | None

    @classmethod
    def of(cls, column: pd.Series) -> Column:
        r"""A column as numbers if each of its entries is one, else as words."""
        entries = list(column)
        numbers = np.array([_number(entry) for entry in entries], dtype=float)
        missing = column.isna().to_numpy()
        if bool((np.isnan(numbers) & ~missing).any()) or bool(missing.all()):
            words = np.array([_word(entry) for entry in entries], dtype=object)
            return cls(words, None)
        low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
        return cls(numbers, (high - low) or abs(high) or 1.0)

    def apart(self, entry: Any, rows: Any = slice(None)) -> np.ndarray:
        r"""The distances of an entry from some rows, as shares of the column's range.

        Of words 0 or 1. What is missing on either side is no difference.

        Args:
            entry: What another table has in the column.
            rows: Which rows; default all ``N``.
        """
        values = self.values[rows]
        if bool(pd.isna(entry)):
            return np.zeros(len(values))
        if self.span is None:
            word = _word(entry)
            same = [value is None or value == word for value in values]
            return 1.0 - np.array(same, dtype=float)
        number = _number(entry)
        if np.isnan(number):  # a word among numbers: nothing is like it
            return np.ones(len(values))
        return np.nan_to_num(np.abs(values - number) / self.span, nan=0.0)


@dataclass(frozen=True, eq=False)
class Rows:
    r"""The rows of a table, found by what lines of another one say about them.

    Args:
        table: ``N`` rows; named levels of its index count as columns.
        columns: The columns, by their names as text.
    """

    table: pd.DataFrame
    columns: Mapping[str, Column]

    @classmethod
    def of(cls, table: pd.DataFrame) -> Rows:
        r"""The rows of a table.

        Args:
            table: ``N`` rows.
        """
        whole = with_index(table)
        parts = (whole.iloc[:, i] for i in range(whole.shape[1]))
        whole = pd.concat([part for part in parts if not _holds_times(part)], axis=1)
        whole.columns = whole.columns.map(_name)
        return cls(whole, {str(name): Column.of(whole[name]) for name in whole})

    def find(
        self, lines: pd.DataFrame, numbers: Sequence[int] | None = None
    ) -> list[int]:
        r"""The row of each line, by all columns that both tables have.

        Args:
            lines: ``n`` lines, with further columns or without.
            numbers: ``n`` numbers of rows, for rows that are alike in all columns, and
                for lines that were rounded.

        Raises:
            ValueError: If a line is about no row, or about several.
        """
        shared = [name for name in map(_name, lines.columns) if name in self.columns]
        if not shared:
            raise ValueError(
                "Expected `frame` to say which rows of `pool` were measured, by the "
                f"columns {', '.join(self.columns)} or some of them, but it has "
                f"{', '.join(map(str, lines.columns)) or 'none'}. Keep the columns of "
                "the sheet beside the results."
            )
        labels = list(lines.index)
        found, lost, doubtful = [], list[str](), list[str]()
        for i, entries in enumerate(lines.to_dict(orient="records")):
            line = {_name(name): entry for name, entry in entries.items()}
            apart = np.stack([self.columns[name].apart(line[name]) for name in shared])
            number = None if numbers is None else int(numbers[i])
            rows = self._fitting(apart, number)
            if len(rows) == 1:
                found.append(int(rows[0]))
            elif len(rows) == 0:
                lost.append(self._farthest(labels[i], line, shared, apart))
            else:
                doubtful.append(self._doubt(labels[i], line, rows))
        if lost:
            raise ValueError(
                "Expected each line of `frame` to be about a row of `pool`, but "
                f"{_counted(lost)}. Correct the line; or add its row to the pool; or "
                "leave the line out, `frame.drop(index=...)`, and tell the model of it "
                "by `strategy.with_history(History(X, y))`."
            )
        if doubtful:
            raise ValueError(
                "Expected each line of `frame` to be about one row of `pool`, but "
                f"{_counted(doubtful)}. Let a column of the pool's table, or its named "
                "index, tell the rows apart, and keep it in the sheet."
            )
        return found

    def contradictions(
        self, lines: pd.DataFrame, numbers: Sequence[int]
    ) -> tuple[int, str]:
        r"""How many lines describe another row than that of their number.

        Args:
            lines: ``n`` lines.
            numbers: ``n`` numbers of rows.

        Returns:
            How many, and what is wrong with the first, in words.
        """
        wrong: dict[int, str] = {}
        for name in (name for name in lines.columns if _name(name) in self.columns):
            column, own = self.columns[_name(name)], self.table[_name(name)]
            for i, (entry, row) in enumerate(zip(lines[name], numbers, strict=True)):
                if float(column.apart(entry, [row])[0]) > ROUNDED and i not in wrong:
                    wrong[i] = (
                        f"line {lines.index[i]!r} has {name} {_shown(entry)}, and row "
                        f"{row} has {_shown(own.iloc[row])}"
                    )
        return len(wrong), wrong[min(wrong)] if wrong else ""

    def _fitting(self, apart: np.ndarray, number: int | None) -> np.ndarray:
        r"""The rows that a line may be about; its number decides between equals."""
        largest = apart.max(axis=0)
        rows = np.flatnonzero(largest <= SAME_ROW)
        is_row = number is not None and 0 <= number < len(largest)
        if len(rows) == 0 and is_row and largest[number] <= ROUNDED:
            return np.array([number])
        if len(rows) > 1 and is_row and number in rows and self._are_alike(rows):
            return np.array([number])
        return rows

    def _are_alike(self, rows: np.ndarray) -> bool:
        r"""Whether nothing in the table tells some rows apart."""
        first = self.table.iloc[rows[0]]
        return all(self.table.iloc[row].equals(first) for row in rows[1:])

    def _farthest(
        self,
        label: Hashable,
        line: Mapping[str, Any],
        shared: Sequence[str],
        apart: np.ndarray,
    ) -> str:
        r"""In what a line differs from the row that is most like it, in words."""
        row = int(apart.sum(axis=0).argmin())
        name = shared[int(apart[:, row].argmax())]
        own = self.table.iloc[row, list(self.columns).index(name)]
        return (
            f"line {label!r} has {name} {_shown(line[name])} where row {row}, the most "
            f"similar one, has {_shown(own)}"
        )

    def _doubt(self, label: Hashable, line: Mapping[str, Any], rows: np.ndarray) -> str:
        r"""Which rows a line may be about, in words."""
        named = ", ".join(map(str, rows[:MOST_NAMED]))
        more = f" and {len(rows) - MOST_NAMED} others" * (len(rows) > MOST_NAMED)
        lacks = [
            name for name in self.columns if name not in line or pd.isna(line[name])
        ]
        absent = f" (it says nothing of {', '.join(lacks)})" if lacks else ""
        return f"line {label!r} fits rows {named}{more}{absent}"


def with_index(table: pd.DataFrame) -> pd.DataFrame:
    r"""A table with the named levels of its index as columns in front of the others.

    Args:
        table: ``N`` rows.
    """
    names = [name for name in table.index.names if name is not None]
    free = [name for name in names if name not in table.columns]
    return table.reset_index(level=free).reset_index(drop=True)


def _name(name: Any) -> str:
    r"""The name of a column, each letter in its one composed form."""
    return unicodedata.normalize("NFC", str(name))


def _holds_times(column: pd.Series) -> bool:
    r"""Whether a column holds dates, times or durations: files write them anyhow."""
    return pd.api.types.infer_dtype(column).startswith(TIMES)


def _number(entry: Any) -> float:
    r"""An entry as a float, of yes and no 1 and 0; nan if it is no number."""
    if isinstance(entry, str):
        entry = {"true": 1.0, "false": 0.0}.get(entry.strip().casefold(), entry)
    try:
        return float(entry)
    except (TypeError, ValueError):
        return np.nan


def _word(entry: Any) -> str | None:
    r"""An entry as a text, whatever way the file writes it; ``None`` if it is missing.

    A label such as 3 comes back as 3.0 where its column has gaps.
    """
    if bool(pd.isna(entry)):
        return None
    if isinstance(entry, float) and entry.is_integer():
        entry = int(entry)
    return unicodedata.normalize("NFC", " ".join(str(entry).split()))


def _shown(entry: Any) -> str:
    return repr(entry) if isinstance(entry, str) else str(entry)


def _counted(said: Sequence[str]) -> str:
    r"""The first complaints, and how many more there are."""
    more = len(said) - MOST_NAMED
    rest = f"; {more} more lines do not either" * (more > 0)
    return f"{'; '.join(said[:MOST_NAMED])}{rest}"
