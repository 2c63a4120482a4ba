r"""Tables as numbers: what their columns become, and which numbers are equal.

It needs no torch, so that the faults of a table are found before torch is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from botorch_lse._lazy import LazyModule
from botorch_lse._numerals import begins_with_a_number, is_doubtful, readable

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")  # pools load this, and few of them are tables

LEVEL_OF = "="
"""The text between the name of a column of words and a word of it."""
SAME_ROW = 1e-6
"""The share of an input's range by which a point may differ from a row of the pool.
Single precision and scaling to the unit cube and back stay within."""
FEW_LEVELS = 20
"""The number of different words that are levels however few the rows are.
In a small pool every row may have its own."""
MOST_LEVELS = 200
"""The number of different words above which they are refused: each is an input."""
REPAIRS = (
    ("the comma is the decimal mark", ",", "."),
    (
        "something stands between thousands",
        r"(?<=\d)[\s'\u2019,](?=\d{3}(?!\d))",
        "",
    ),
    ("a unit stands behind the number", r"[^\d.]+$", ""),
    ("a sign stands before the number", r"^[^\d.+-]+", ""),
)
"""The ways to make numbers of words that begin with one: name, pattern, replacement."""
TIMES = ("date", "time", "period")
"""The beginnings of pandas' type names for dates, times and durations."""


def encode(table: pd.DataFrame) -> pd.DataFrame:
    r"""A table as numbers: booleans become 0 and 1, words one column per level.

    A column of text that holds only numbers counts as numbers; ``astype("category")``
    keeps its levels apart.

    Args:
        table: ``N`` rows, one a candidate.

    Returns:
        ``N`` rows of floats; a level's column is named ``NAME=LEVEL``.

    Raises:
        ValueError: If the table is empty or misses values, or if a column holds times,
            numbers but for a few cells, texts that may be read in several ways, or too
            many different words to be levels.
    """
    for size, unit in zip(table.shape, ("row", "column"), strict=True):
        if size == 0:
            raise ValueError(f"Expected `X` to have at least one {unit}, but got none.")
    named = (table.iloc[:, i].rename(str(n)) for i, n in enumerate(table.columns))
    return pd.concat([_encoded(column) for column in named], axis=1)


def _encoded(column: pd.Series) -> pd.Series | pd.DataFrame:
    r"""One column as numbers: a single column, or for words one column per level."""
    missing = column.isna()
    if bool(missing.any()):
        raise ValueError(
            f"Expected `X` to be complete, but column {column.name!r} misses values, "
            f"first in rows {column.index[missing].tolist()[:3]}. Fill or drop them."
        )
    kind = pd.api.types.infer_dtype(column)
    if kind.startswith(TIMES):
        raise ValueError(
            f"Expected `X` to hold numbers or words, but column {column.name!r} holds "
            f"{kind} values. Convert it to numbers, such as the days since the first: "
            "`(t - t.min()) / pd.Timedelta(days=1)`, or give it in `table=` only."
        )
    booleans = kind == "boolean" or pd.api.types.is_bool_dtype(column)
    if booleans or pd.api.types.is_numeric_dtype(column):
        return column.astype(float)
    numbers = None if kind == "categorical" else _as_numbers(column)
    return _one_per_level(column) if numbers is None else numbers


def _as_numbers(column: pd.Series) -> pd.Series | None:
    r"""The numbers in a column of objects or text, or ``None`` if it holds words."""
    numbers = pd.to_numeric(column, errors="coerce")
    broken = numbers.isna()
    # Mostly words: a few digits among them are labels. Mostly numbers: a few words
    # among them are mistakes, and are refused below.
    if 2 * int(broken.sum()) >= len(column):
        _ask_about_words(column)
        return None
    _ask_about_marks(column)
    if bool(broken.any()):
        i = int(broken.to_numpy().argmax())
        raise ValueError(
            f"Expected column {column.name!r} of `X` to hold numbers, as most of its "
            f"cells do, but row {column.index[i]!r} has "
            f"{readable(repr(column.iloc[i]))}. Write a "
            'number or drop the row; if they are labels, say `astype("category")`.'
        )
    return numbers.astype(float)


def _ask_about_words(column: pd.Series) -> None:
    r"""Complain about words most of which begin with a number, such as ``800 ml``."""
    words = column.astype(str).drop_duplicates()
    alike = words[words.map(begins_with_a_number)]
    if 2 * len(alike) > len(words):
        broken = alike[pd.to_numeric(alike, errors="coerce").isna()]
        raise ValueError(
            f"Expected column {column.name!r} of `X` to hold numbers or words, but "
            "most cells begin with a number, such as "
            f"{readable(repr(broken.iloc[0]))} in row "
            f"{broken.index[0]!r}. {_in_numbers(words)}; if they are words, say "
            '`astype("category")`.'
        )


def _in_numbers(words: pd.Series) -> str:
    r"""The way a column becomes numbers, with code tried on its words.

    Only what makes a number of every word is advised, since a pattern that finds the
    first digits alone makes 1 of ``1 000``.

    Args:
        words: The different words of the column.
    """
    ways = [
        f"if {when}, say `pd.to_numeric(column.astype(str).str.replace("
        f'r"{found}", "{other}", regex=True))`'
        for when, found, other in REPAIRS
        if pd.to_numeric(words.str.replace(found, other, regex=True), errors="coerce")
        .notna()
        .all()
    ]
    said = "; ".join(ways) or "convert it to numbers"
    return f"{said[0].upper()}{said[1:]}"


def _ask_about_marks(column: pd.Series) -> None:
    r"""Complain about texts whose marks may all be those of thousands."""
    marked = column[column.map(lambda text: isinstance(text, str) and "." in text)]
    if len(marked) and bool(marked.map(is_doubtful).all()):
        raise ValueError(
            f"Expected column {column.name!r} of `X` to hold numbers that can be read "
            f"in one way, but row {marked.index[0]!r} has the text {marked.iloc[0]!r}, "
            "and every point in the column stands before three digits. If it is the "
            "decimal point, say `pd.to_numeric(column)`; if it is one of thousands, "
            '`pd.to_numeric(column.str.replace(".", ""))`.'
        )


def _one_per_level(column: pd.Series) -> pd.DataFrame:
    r"""One column of 0 and 1 per word, in alphabetical order."""
    words = column.astype(str)
    levels, N = words.nunique(), len(words)
    if levels > MOST_LEVELS or (levels > FEW_LEVELS and 2 * levels > N):
        raise ValueError(
            f"Expected column {column.name!r} of `X` to have at most {MOST_LEVELS} "
            f"levels, and at most {FEW_LEVELS} or half as many as rows, but got "
            f"{levels} different words in {N} rows. If it names the rows, set it "
            f"as the index, `X.set_index({column.name!r})`, or leave it out of `X` and "
            "give the whole table as `table=`; if it is an input, describe it by "
            "numbers."
        )
    return pd.get_dummies(
        words, prefix=str(column.name), prefix_sep=LEVEL_OF, dtype=float
    )
