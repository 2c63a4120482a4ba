r"""Notation of numbers in a table, and remedies for cells that are not numbers.

Every column shows its decimal mark itself, as files come from people and programs of
several countries. What could be read in two ways is asked about.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace

from botorch_lse._numerals import MARKS, both_ways, number_with, plain

MISSING = frozenset({"na", "nan", "<na>", "null", "#n/a"})
"""The words that programs (R, pandas, SQL, Excel) write where nothing stands."""
LISTS = ("ignore", "inputs", "logs", "open", "words")
"""The settings that are lists of names."""
_BETWEEN = r"\s'\N{RIGHT SINGLE QUOTATION MARK}.,"
_THOUSANDS = re.compile(
    rf"([+-]?[1-9]\d{{0,2}}([{_BETWEEN}])\d{{3}}(?:\2\d{{3}})*)(?:[.,](\d+))?"
)
"""A number with something between its thousands, and perhaps decimals."""
_WITH_UNIT = re.compile(
    r"([+-]?\d+(?:[.,]\d+)?)(?:%|\s*\u00b0\s*\w|\s+\D+|\s+[^\W\d]\S*|[^\W\d]\D+)"
)
"""A number and a unit behind it. (One letter, as in 4x, may be a slip for a digit.)"""


@dataclass(frozen=True)
class Notation:
    r"""The notation of numbers, and the place where a user can change it.

    Args:
        decimal: The decimal mark where a column does not show it; ``None``: nobody said
            it, so that what is doubtful is asked about.
        settings: The name of the file that holds the settings; ``None`` while there is
            none and they come from the command line.
        seen: The decimal mark that a column shows.
    """

    decimal: str | None = None
    settings: str | None = None
    seen: str | None = None

    @property
    def mark(self) -> str:
        r"""The decimal mark in use."""
        return self.seen or self.decimal or "."

    def number(self, text: str) -> float | None:
        r"""The number that a cell holds, ``None`` if it holds something else."""
        return number_with(self.mark, text)

    def repair(self, text: str, sign: str = "") -> str:
        r"""The remedy for a cell that is not a number.

        Args:
            text: The cell's text.
            sign: That of a limit in front of it, which must not get lost.
        """
        text = plain(text)
        if thousands := _THOUSANDS.fullmatch(text):
            whole, _, rest = thousands.groups()
            joined = re.sub(r"[^\d+-]", "", whole)
            if rest is not None:
                return f"write {sign}{joined}{self.mark}{rest}"
            if ways := both_ways(text, self.mark):
                return f"write {sign}{ways[0]} if it is that much, or {sign}{ways[1]}"
            return f"write {sign}{joined}"
        other = MARKS[1 - MARKS.index(self.mark)]
        if number_with(other, text) is not None:
            return f"write {sign}{text.replace(other, self.mark)}"
        if unit := _WITH_UNIT.fullmatch(text):
            number = unit[1].replace(other, self.mark)
            return f"write {sign}{number} (a unit may stand in the header, in brackets)"
        return "write a number"

    def advice(self, name: str, value: str) -> str:
        r"""The way to give an option another value.

        Args:
            name: The name as settings have it, "noise_std".
            value: The value as the command line takes it.
        """
        if self.settings is None:
            if name in LISTS and "," in value:
                value = f'"{value}"'
            quoted = shlex.quote(value) if value else ""  # "heat [C]" is one word
            if value in MARKS:  # which must not run into those of the sentence
                quoted = f"'{value}'"
            return f"give --{name.replace('_', '-')} {quoted}".strip()
        quoted = f'"{value}"' if value else "true"
        if name in LISTS:
            quoted = f"[{quoted}]"
        return f"set {name} = {quoted} in {self.settings}"

    def with_mark(self, seen: str | None) -> Notation:
        r"""The notation of a column that shows a decimal mark.

        Args:
            seen: The mark; ``None`` if the column shows none.
        """
        return replace(self, seen=seen)


def repaired(text: str) -> str | None:
    r"""The correct spelling of a number outside tables; ``None`` if ambiguous."""
    remedy = Notation().repair(text).partition(" (")[0]
    return None if remedy == "write a number" else remedy


def is_missing(text: str) -> bool:
    r"""Whether a cell holds a word that programs write for a missing value."""
    return text.casefold() in MISSING
