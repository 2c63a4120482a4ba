r"""Numbers as people write and read them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import SupportsFloat

MARKS = (".", ",")
"""The characters that are decimal marks."""
_NUMBER = r"[+-]?(\d+{0}?\d*|{0}\d+)([eE][+-]?\d+)?"
_NUMBERS = {mark: re.compile(_NUMBER.format(re.escape(mark))) for mark in MARKS}
_DOUBTFUL = re.compile(r"([+-]?[1-9]\d{0,2})[.,](\d{3})")
"""A number with a mark before exactly three digits: of decimals, or of thousands.
(Nobody writes 0,125 for 125.)"""
_BEGINS = re.compile(
    r"[~\u2248<>\u2264\u2265\u00b1$\u20ac\u00a3\u00a5]?\s*[+-]?[.,]?\d"
)
"""The beginning of a number, perhaps with the sign of a price or of a limit."""


_ESCAPED = re.compile(r"\\xa0|\\u(?:20[0-9a-f]{2}|3000)")
"""The blanks that spreadsheets put between thousands, as ``repr`` writes them."""


def plain(text: str) -> str:
    r"""The text of a number with a plain minus and without blanks around it.

    An apostrophe in front is how spreadsheets keep a number as a text.
    """
    return text.replace("\N{MINUS SIGN}", "-").strip().removeprefix("'")


def readable(said: str) -> str:
    r"""A message with plain blanks where ``repr`` escapes those of other widths.

    Example:
        >>> readable("got " + repr("1\u202f000"))
        "got '1 000'"
    """
    return _ESCAPED.sub(" ", said)


def without_sign(text: str) -> str:
    r"""The number of a limit such as ``<0.5``; any other text as it is."""
    return text.lstrip("<>=\u2264\u2265 ")


def number_with(mark: str, text: str) -> float | None:
    r"""The number in a text with a given decimal mark, ``None`` if it holds none.

    Args:
        mark: The decimal mark.
        text: The text.
    """
    if not _NUMBERS[mark].fullmatch(text):  # as most are: nothing is to be cleaned
        text = plain(text)
        if not _NUMBERS[mark].fullmatch(text):
            return None
    number = float(text.replace(mark, "."))
    return number if abs(number) < float("inf") else None


def is_number(text: str) -> bool:
    r"""Whether a text is a number with either mark."""
    return any(number_with(mark, text) is not None for mark in MARKS)


def marks_of(text: str) -> set[str]:
    r"""The possible decimal marks of a text that is a number."""
    return {m for m in MARKS if m in text and number_with(m, text) is not None}


def is_doubtful(text: str) -> bool:
    r"""Whether the mark in a number may be one of thousands."""
    return _DOUBTFUL.fullmatch(plain(text)) is not None


def both_ways(text: str, mark: str = ".") -> tuple[str, ...]:
    r"""The clear spellings of a doubtful number, its mark of thousands or of decimals.

    Example:
        >>> both_ways("1,000"), both_ways("1.125"), both_ways("65.5")
        (('1000', '1.0'), ('1125', '1.1250'), ())

    Args:
        text: The number.
        mark: The decimal mark of the second spelling.
    """
    found = _DOUBTFUL.fullmatch(plain(text))
    if found is None:
        return ()
    whole, rest = found.groups()
    decimals = rest.rstrip("0") or "0"
    return whole + rest, f"{whole}{mark}{decimals}{'0' * (len(decimals) == 3)}"


class Typed(float):
    r"""A number that keeps the text which somebody typed outside of tables.

    Args:
        text: The text.
        mark: Its decimal mark, if it has one.
    """

    text: str

    def __new__(cls, text: str, mark: str = ".") -> Typed:
        found = super().__new__(cls, plain(text).replace(mark, "."))
        found.text = plain(text)
        return found

    def check(self, name: str, marks: set[str]) -> None:
        r"""Ask about a mark before three digits that is not that of the tables.

        Args:
            name: What the number is, for the message.
            marks: The decimal marks in the tables of the person who typed it.
        """
        ways = both_ways(self.text)
        if ways and marks != marks_of(self.text):
            raise ValueError(
                f"{name}: expected a number that can be read in one way, but got "
                f"{self.text}; write {' or '.join(ways)}."
            )


def clear_mark(texts: Iterable[str]) -> str | None:
    r"""The mark that most numbers of a column surely have; ``None`` if none has."""
    marked = (text for text in texts if not is_doubtful(text))
    found = Counter(mark for text in marked for mark in marks_of(text))
    return max(MARKS, key=lambda mark: found[mark]) if found else None


def begins_with_a_number(text: str) -> bool:
    r"""Whether a word begins as a number does: ``800 ml``, ``16%``, ``~800``."""
    return _BEGINS.match(plain(text)) is not None


_ALL = 15
"""The number of digits that every float keeps: 0.1 + 0.2 is 0.3 with them."""


def written(value: SupportsFloat, sigma: float | None = None) -> str:
    r"""A number as a text: as it was given, or with the digits that its error allows.

    Example:
        >>> written(10000000.5)
        '10000000.5'
        >>> written(10000000.4567, sigma=1.3)
        '10000000.5'
        >>> written(57.83219, sigma=0.041)
        '57.832'

    Args:
        value: The number.
        sigma: Its standard deviation, of which two digits are shown; ``None`` or 0: it
            is exact.
    """
    number = float(value) + 0.0  # no -0
    if sigma is None or not 0 < sigma < math.inf or not math.isfinite(number):
        return f"{number:.{_ALL}g}"
    decimals = 1 - _exponent(sigma)
    # Digits in front of the decimal mark are kept: 1,234 is not rounded to 1,200.
    number = round(number, max(decimals, 0)) + 0.0
    digits = _exponent(number) + 1 + max(decimals, 0)
    return f"{number:.{min(max(digits, 1), _ALL)}g}"


def significant(low: float, high: float, least: int) -> int:
    r"""The number of digits that tell numbers of a range apart (to a thousandth).

    Example:
        >>> significant(0.0, 1.0, 4), significant(10000000.0, 10000040.0, 4)
        (4, 10)

    Args:
        low: The smallest number.
        high: The largest number.
        least: The fewest digits.
    """
    if not low < high:
        return _ALL
    largest = _exponent(max(abs(low), abs(high)))
    return min(max(least, largest - _exponent(high - low) + 4), _ALL)


def _exponent(value: float) -> int:
    r"""The power of ten of a number's first digit; 0 for 0."""
    return math.floor(math.log10(abs(value))) if value else 0
