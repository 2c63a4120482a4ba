r"""Matching by names: lines of a table, columns, labels of an index.

A line belongs to the row that it describes. The number of the row, which stands beside
the description in a sheet, is true only as long as nobody sorts, extends or cuts the
table that the numbers count. The same holds for the place of a column, and for that of
a value in a labelled series.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_lse._lazy import LazyModule
from botorch_lse._validation import complaint
from botorch_lse.data.encoding import LEVEL_OF, SAME_ROW, TIMES

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")  # pools load this, and few of them are tables

ROUNDED = 1e-3
"""The share of a column's range by which spreadsheets may have rounded numbers.
A line that has the number of a row is still about that row."""
MOST_NAMED = 3
"""The number of lines and columns that a message names; it counts the others."""
MOST_LISTED = 12
"""The number of names of columns or words that a message lists."""


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
        r"""The column as numbers if each of its entries is one, else as words."""
        entries, missing = list(column), column.isna().to_numpy()
        if pd.api.types.is_numeric_dtype(column):  # quickly, of millions of rows
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
        else:
            numbers = np.array([_number(entry) for entry in entries], dtype=float)
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
        labels, lines = list(lines.index), with_index(lines)
        shared = [name for name in map(_name, lines.columns) if name in self.columns]
        if not shared:
            raise ValueError(
                "Expected `frame` to say which rows of `pool` were measured, by the "
                f"columns {', '.join(self.columns)} or some of them, but it has "
                f"{', '.join(map(str, lines.columns)) or 'none'}. Keep the columns of "
                "the sheet beside the results."
            )
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
        r"""The number of lines that describe another row than that of their number.

        Args:
            lines: ``n`` lines.
            numbers: ``n`` numbers of rows.

        Returns:
            How many, and what is wrong with the first, in words.
        """
        wrong: dict[int, str] = {}
        labels, lines = list(lines.index), with_index(lines)
        for name in (name for name in lines.columns if _name(name) in self.columns):
            column, own = self.columns[_name(name)], self.table[_name(name)]
            for i, (entry, row) in enumerate(zip(lines[name], numbers, strict=True)):
                if float(column.apart(entry, [row])[0]) > ROUNDED and i not in wrong:
                    wrong[i] = (
                        f"line {labels[i]!r} has {name} {_shown(entry)}, and row "
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
        r"""The difference of a line from the row most like it, in words."""
        row = int(apart.sum(axis=0).argmin())
        name = shared[int(apart[:, row].argmax())]
        own = self.table.iloc[row, list(self.columns).index(name)]
        return (
            f"line {label!r} has {name} {_shown(line[name])} where row {row}, the most "
            f"similar one, has {_shown(own)}"
        )

    def _doubt(self, label: Hashable, line: Mapping[str, Any], rows: np.ndarray) -> str:
        named = ", ".join(map(str, rows[:MOST_NAMED]))
        more = f" and {len(rows) - MOST_NAMED} more" * (len(rows) > MOST_NAMED)
        lacks = [
            name for name in self.columns if name not in line or pd.isna(line[name])
        ]
        absent = f" (it says nothing of {', '.join(lacks)})" if lacks else ""
        return f"line {label!r} fits rows {named}{more}{absent}"


Way = Callable[[Any], float]
"""A function from an entry of a table to an input of the model; nan if not known."""


def way_to(own: Column, x: np.ndarray) -> Way | None:
    r"""The way from a column of the pool's table to an input of the model.

    Tried on all rows: the number itself, its logarithm to base 10, and a list of words
    with the number of each. ``None`` if no way fits.

    Args:
        own: The column.
        x: ``N`` values of the input.
    """
    if own.span is None:
        codes = dict[Any, float]()
        pairs = zip(own.values, x.tolist(), strict=True)
        if not all(codes.setdefault(word, code) == code for word, code in pairs):
            return None
        return lambda entry: codes.get(_word(entry), np.nan)
    if np.allclose(own.values, x, rtol=SAME_ROW, atol=0.0):
        return _number
    if (own.values > 0).all() and np.allclose(np.log10(own.values), x):
        return lambda entry: _log10(_number(entry))
    return None


@dataclass(frozen=True, eq=False)
class Inputs:
    r"""The conversion of points with named inputs into points of a pool.

    A point is written as the pool's table writes its rows: with words where the table
    has words, and with the table's numbers where the model sees their logarithm.

    Args:
        names: The names of the ``d`` inputs.
        X: ``N x d`` inputs of the pool's rows.
        columns: The columns of the pool's table, by their names.
    """

    names: Sequence[str]
    X: np.ndarray
    columns: Mapping[str, Column]

    def of(self, lines: pd.DataFrame, name: str) -> np.ndarray:
        r"""The points under names, in the order of the inputs.

        Args:
            lines: ``n`` points, with further columns or without.
            name: The argument's name.

        Returns:
            ``n x d`` numbers.

        Raises:
            ValueError: If an input is missing, is there twice, or cannot be read.
        """
        lines = lines.rename(columns=_name)
        found, missing = list[np.ndarray](), list[str]()
        for j, own in enumerate(map(_name, self.names)):
            source = self._source(j, own, lines)
            if source is None:
                head = own.partition(LEVEL_OF)[0]
                if head not in missing:
                    missing.append(head)
                continue
            if list(lines.columns).count(source) > 1:
                wanted, came = f"to have the column {source!r} once", "it has several"
                raise ValueError(complaint(name, wanted, came, "Drop the others."))
            found.append(self._read(j, own, lines[source], name))
        if missing:
            wanted = f"to have the columns {_listed(self._wanted)}"
            came = (
                f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing "
                f"among {_listed([str(c) for c in lines.columns])}"
            )
            remedy = "Rename them, or give bare numbers in the order of `pool.names`."
            raise ValueError(complaint(name, wanted, came, remedy))
        return np.stack(found, axis=-1)

    @property
    def _wanted(self) -> list[str]:
        own = [_name(n) for n in self.names]
        return list(dict.fromkeys(n.partition(LEVEL_OF)[0] for n in own))

    def _source(self, j: int, own: str, lines: pd.DataFrame) -> Any:
        r"""The column of ``lines`` that input number ``j`` comes from."""
        if own in lines.columns:
            return own
        heads = [c for c in lines.columns if own.startswith(f"{c}{LEVEL_OF}")]
        if heads:
            return max(heads, key=len)
        others = (c for c in lines.columns if c in self.columns)
        return next((c for c in others if self._ways[j].get(c)), None)

    @cached_property
    def _ways(self) -> list[dict[str, Way | None]]:
        return [
            {c: way_to(own, x) for c, own in self.columns.items()} for x in self.X.T
        ]

    def _read(self, j: int, own: str, column: pd.Series, name: str) -> np.ndarray:
        source = str(column.name)
        if source != own and own.startswith(f"{source}{LEVEL_OF}"):
            return self._level(own, column, name)
        way = self._ways[j][source] if source in self.columns else _number
        if way is None:
            wanted = f"without the name {own!r}"
            came = (
                "the model's input of this name is another number than the column of "
                "the pool's table"
            )
            remedy = "Give what the model takes, in the columns of `pool.X`."
            raise ValueError(complaint(name, wanted, came, remedy))
        values = np.array([way(entry) for entry in column], dtype=float)
        self._check(np.isnan(values), own, column, name, words=None)
        return values

    def _level(self, own: str, column: pd.Series, name: str) -> np.ndarray:
        r"""The input of a level of words: 1 where a word is this level, else 0."""
        head = f"{column.name}{LEVEL_OF}"
        levels = [n for n in map(_name, self.names) if n.startswith(head)]
        texts = [f"{head}{_word(str(entry))}" for entry in column]
        whole = [f"{head}{_word(entry)}" for entry in column]  # 3.0 is the label 3
        texts = [t if t in levels else w for t, w in zip(texts, whole, strict=True)]
        strange = np.array([text not in levels for text in texts])
        words = [level.removeprefix(head) for level in levels]
        self._check(strange, str(column.name), column, name, words=words)
        return np.array([float(text == own) for text in texts])

    def _check(
        self,
        strange: np.ndarray,
        own: str,
        column: pd.Series,
        name: str,
        words: Sequence[str] | None,
    ) -> None:
        r"""Complain about the first entry that is no value of its input."""
        if not bool(strange.any()):
            return
        i = int(strange.argmax())
        if words is None and (known := self.columns.get(str(column.name))) is not None:
            values = [v for v in known.values if isinstance(v, str)]
            words = sorted(set(values)) or None
        kind = "numbers" if words is None else f"one of {_listed(words)}"
        wanted = f"to hold {kind} in the column {own!r}"
        came = f"line {column.index[i]!r} has {_shown(column.iloc[i])}"
        remedy = "" if words is None else "The pool has no other words."
        raise ValueError(complaint(name, wanted, came, remedy))


def chosen(table: pd.DataFrame, wanted: Any, name: str, what: str) -> pd.DataFrame:
    r"""The wanted columns of a table, in their order, by their names.

    Args:
        table: ``N`` rows.
        wanted: The names.
        name: The argument's name.
        what: What the names are of.

    Raises:
        ValueError: If one is missing or there twice.
    """
    return table.take(places_of(table.columns, wanted, name, what), axis=1)


def named_lines(given: Any) -> pd.DataFrame | None:
    r"""The points as a table if their inputs have names, else ``None``.

    Args:
        given: A table, with named levels of its index or without; one point as a
            labelled series or a dictionary; a dictionary of columns; or a sequence of
            points. A table whose columns are merely numbered has no names.
    """
    if isinstance(given, pd.Series):
        if not _has_names(given.index):
            return None
        return pd.DataFrame([list(given)], columns=given.index, index=[given.name])
    if isinstance(given, Mapping):
        is_point = all(
            pd.api.types.is_scalar(value) or getattr(value, "ndim", None) == 0
            for value in given.values()
        )
        return pd.DataFrame([dict(given)] if is_point else dict(given))
    if isinstance(given, pd.DataFrame):
        return with_index(given) if _has_names(given.columns) else None
    points = given if isinstance(given, list | tuple) else ()
    if points and all(_is_named_point(point) for point in points):
        return pd.DataFrame([dict(point) for point in points])
    return None


def _is_named_point(point: Any) -> bool:
    is_series = isinstance(point, pd.Series) and _has_names(point.index)
    return isinstance(point, Mapping) or is_series


def are_named(given: Any) -> bool:
    r"""Whether the object is a table whose columns have names."""
    return isinstance(given, pd.DataFrame) and _has_names(given.columns)


def _has_names(index: pd.Index) -> bool:
    r"""Whether labels are names rather than numbers of places."""
    return not pd.api.types.is_integer_dtype(index)


def is_counted(index: pd.Index) -> bool:
    r"""Whether labels are only 0, 1, 2, ..., which pandas gives where nobody does."""
    return bool(index.equals(pd.RangeIndex(len(index))))


def in_order(
    values: Any,
    labels: pd.Index,
    name: str,
    *,
    are_names: bool | None = None,
    others: str = "the rows of the pool",
) -> Any:
    r"""Values in the order of some rows, which their labels name.

    Values without labels stay as they are. Further labels are left out.

    Args:
        values: A labelled series or table, a dictionary from labels, or anything else.
        labels: The ``N`` labels of the rows.
        name: The argument's name.
        are_names: Whether these labels were given by a person, so that values under
            other labels are not meant; default: unless they are 0, 1, 2, ...
        others: What has the labels, in words.

    Raises:
        ValueError: If a row has no value; or if labels on one side are 0, 1, 2, ... and
            on the other the same in another order, so that both ways can be meant.
    """
    said = isinstance(values, Mapping)
    if said:
        values = pd.Series(dict(values))
    if not isinstance(values, pd.Series | pd.DataFrame):
        return values
    own = values.index
    if own.equals(labels):
        return values
    remedies = (
        f"Write `{name}.loc[labels]` with the labels of these rows if the labels "
        f"count, or `{name}.to_numpy()` if the values stand in order."
    )
    if own.is_unique and bool(labels.isin(own).all()):
        counted = is_counted(own) or is_counted(labels)
        if counted and len(own) == len(labels) and not said:
            wanted = f"to have the labels of {others} in their order"
            came = "got the same labels in another order, which may be places as well"
            raise ValueError(complaint(name, wanted, came, remedies))
        return values.loc[labels]
    are_names = not is_counted(labels) if are_names is None else are_names
    if not said and (is_counted(own) or not are_names):
        return values
    wanted = f"to have a value for each of {others}"
    lacks = labels[~labels.isin(own)]
    came = f"got none for {lacks[0]!r}" if len(lacks) else "labels repeat"
    raise ValueError(complaint(name, wanted, came, remedies))


def beside_rows(values: Any, X: Any, name: str) -> Any:
    r"""Values in the order of the rows of ``X``, where that is a table with labels.

    Args:
        values: One for each row, with labels or without.
        X: A table, or bare numbers.
        name: The argument's name.

    Raises:
        ValueError: As ``in_order`` says.
    """
    if not isinstance(X, pd.DataFrame):
        return values
    return in_order(values, X.index, name, others="the rows of `X`")


def places_of(
    names: Any, wanted: Sequence[str], name: str, what: str = "outputs"
) -> list[int]:
    r"""The places of wanted names among those of columns; further ones are left out.

    Args:
        names: The names of the columns.
        wanted: The names in the order that is wanted.
        name: The argument's name.
        what: What the names are of.

    Raises:
        ValueError: If one is missing or there twice.
    """
    own = [_name(n) for n in names]
    for one in map(_name, wanted):
        if own.count(one) != 1:
            asked = f"to have the {what} {_listed(wanted)}, each once"
            came = f"it has {_listed(own)}"
            remedy = "Rename them, or give bare numbers in this order."
            raise ValueError(complaint(name, asked, came, remedy))
    return [own.index(_name(one)) for one in wanted]


def _listed(names: Sequence[str]) -> str:
    r"""The names in a message; of many only the first."""
    more = f" and {len(names) - MOST_LISTED} more" * (len(names) > MOST_LISTED)
    return ", ".join(repr(name) for name in names[:MOST_LISTED]) + more


def _log10(value: float) -> float:
    return float(np.log10(value)) if value > 0 else np.nan


def with_index(table: pd.DataFrame) -> pd.DataFrame:
    r"""A table with the named levels of its index as columns in front of the others.

    Args:
        table: ``N`` rows.
    """
    names = [name for name in table.index.names if name is not None]
    free = [name for name in names if name not in table.columns]
    return table.reset_index(level=free).reset_index(drop=True)


def repeated(table: pd.DataFrame, n: int) -> pd.DataFrame:
    r"""The rows of a table ``n`` times, with labels that somebody gave as columns.

    Args:
        table: ``N`` rows; labels without a name are put in a column ``label``.
        n: How often.
    """
    if not is_counted(table.index):
        free = "label_lse" if "label" in table else "label"
        names = [free + str(i or "") for i in range(table.index.nlevels)]
        own = zip(table.index.names, names, strict=True)
        table = table.rename_axis(
            [free if name is None else name for name, free in own]
        )
    return pd.concat([with_index(table)] * n, ignore_index=True)


def _name(name: Any) -> str:
    r"""The name of a column, each letter in its one composed form."""
    return unicodedata.normalize("NFC", str(name))


def _holds_times(column: pd.Series) -> bool:
    r"""Whether a column holds dates, times or durations, which files write anyhow."""
    return pd.api.types.infer_dtype(column).startswith(TIMES)


def _number(entry: Any) -> float:
    r"""An entry as a float (yes and no are 1 and 0); nan if it is no number."""
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
    rest = f"; the same of {more} more" * (more > 0)
    return f"{'; '.join(said[:MOST_NAMED])}{rest}"
