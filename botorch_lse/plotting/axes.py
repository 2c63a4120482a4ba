r"""The inputs of a pool as people know them: in their units, words by name.

A model may see the logarithm of a dose, and three columns for a solvent. A picture
shows one axis for each, with the values that the pool's table has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from botorch_lse._numerals import significant
from botorch_lse._validation import complaint
from botorch_lse.data.encoding import LEVEL_OF
from botorch_lse.data.pool import Pool


@dataclass(frozen=True, eq=False)
class Axis:
    r"""An input of a pool.

    Args:
        name: The name.
        columns: The columns of ``pool.X`` that come from it.
        values: ``N`` values in its own units; of words their numbers.
        is_log: Whether the model sees logarithms, so that the axis has a log scale.
        words: The words, in the order of their numbers; none where values are numbers.
    """

    name: str
    columns: tuple[int, ...]
    values: np.ndarray
    is_log: bool = False
    words: tuple[str, ...] = ()

    @property
    def varies(self) -> bool:
        r"""Whether two rows differ in this input."""
        return bool(np.ptp(self.values) > 0)

    def text(self, row: int) -> str:
        r"""The value of this input in a row, as a text."""
        value = self.values[row]
        digits = significant(self.values.min(), self.values.max(), 4)
        return self.words[int(value)] if self.words else f"{value:.{digits}g}"


def axes_of(pool: Pool) -> list[Axis]:
    r"""The inputs of a pool, in the order of their columns.

    A column of ``pool.X`` is shown as the column of the pool's table that has its name,
    if it holds its numbers, their logarithms to base 10, or numbers of its words.

    Args:
        pool: The candidates.
    """
    names = pool.names or tuple(f"x{i}" for i in range(pool.d))
    X, found, i = pool.X.detach().cpu().numpy(), list[Axis](), 0
    of_words = {first: (name, n) for name, (first, n) in pool.words.items()}
    while i < pool.d:
        name, n = of_words.get(i, (names[i], 1))
        columns = tuple(range(i, i + n))
        if n > 1:  # one column for each word
            words = tuple(names[c].split(LEVEL_OF, 1)[1] for c in columns)
            codes = X[:, i : i + n].argmax(axis=1).astype(float)
            found.append(Axis(name, columns, codes, words=words))
        else:
            found.append(_of_table(name, columns, X[:, i], pool.table))
        i += n
    return found


def _of_table(
    name: str, columns: tuple[int, ...], x: np.ndarray, table: pd.DataFrame | None
) -> Axis:
    plain = Axis(name, columns, x)
    if table is None or name not in table.columns:
        return plain
    values = table[name]
    is_bool = pd.api.types.is_bool_dtype(values)
    if pd.api.types.is_numeric_dtype(values) and not is_bool:
        numbers = values.to_numpy(dtype=float)
        if (numbers > 0).all() and np.allclose(np.log10(numbers), x):
            return Axis(name, columns, numbers, is_log=True)
        return plain
    # Words in an order, or yes and no: a number for each.
    pairs = pd.DataFrame({"x": x, "word": values.astype(str).to_numpy()})
    pairs = pairs.drop_duplicates().sort_values("x")
    if pairs["x"].duplicated().any() or pairs["word"].duplicated().any():
        return plain
    codes = np.searchsorted(pairs["x"].to_numpy(), x).astype(float)
    return Axis(name, columns, codes, words=tuple(pairs["word"]))


def names_of(pool: Pool | None) -> np.ndarray | None:
    r"""The names of a pool's rows by its table (``N`` texts); ``None``: it has none.

    Args:
        pool: The candidates.
    """
    if pool is None or pool.table is None:
        return None
    return names_in(pool.table, [axis.name for axis in axes_of(pool)])


def names_in(table: pd.DataFrame, others: Sequence[str]) -> np.ndarray | None:
    r"""The names that a table gives its rows; ``None`` where it gives none.

    Its labels, unless they only count; else the first column of words that differs in
    each row.

    Args:
        table: The table.
        others: Columns that are no names, such as inputs.
    """
    if not isinstance(table.index, pd.RangeIndex):
        return np.array([*map(str, table.index)], dtype=object)
    for name, column in table.items():
        are_words = not pd.api.types.is_numeric_dtype(column)
        if are_words and name not in others and column.is_unique:
            return np.array([*map(str, column)], dtype=object)
    return None


def shown_axes(
    axes: Sequence[Axis], inputs: Sequence[str] | None, most: int
) -> list[Axis]:
    r"""The inputs to show.

    Args:
        axes: All inputs.
        inputs: Names of inputs; ``None``: the first that vary.
        most: How many of these.

    Raises:
        ValueError: If ``inputs`` is empty or has another name.
    """
    if inputs is None:
        return ([axis for axis in axes if axis.varies] or list(axes[:1]))[:most]
    known = {axis.name: axis for axis in axes}
    if not inputs or not set(inputs) <= set(known):
        wanted = f"to name inputs of the pool {list(known)}"
        raise ValueError(complaint("inputs", wanted, f"got {list(inputs)}"))
    return [known[name] for name in inputs]
