r"""Numbers as people write and read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

MARKS = (".", ",")
"""Decimal marks."""
_NUMBER = r"[+-]?(\d+{0}?\d*|{0}\d+)([eE][+-]?\d+)?"
_NUMBERS = {mark: re.compile(_NUMBER.format(re.escape(mark))) for mark in MARKS}
_DOUBTFUL = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
"""A mark before exactly three digits: one of decimals, or one of thousands. (Nobody
writes 0,125 for 125.)"""
_BEGINS = re.compile(r"[+-]?[.,]?\d")


def plain(text: str) -> str:
    r"""A text as numbers are read: with a plain minus, without blanks around."""
    return text.replace("\N{MINUS SIGN}", "-").strip()


def number_with(mark: str, text: str) -> float | None:
    r"""The number that a text is with a decimal mark, ``None`` if it is no number.

    Args:
        mark: The decimal mark.
        text: The text.
    """
    text = plain(text)
    if not _NUMBERS[mark].fullmatch(text):
        return None
    number = float(text.replace(mark, "."))
    return number if abs(number) < float("inf") else None


def is_number(text: str) -> bool:
    r"""Whether a text is a number with either mark."""
    return any(number_with(mark, text) is not None for mark in MARKS)


def marks_of(text: str) -> set[str]:
    r"""The decimal marks in a text that is a number, of which one counts."""
    return {m for m in MARKS if m in text and number_with(m, text) is not None}


def is_doubtful(text: str) -> bool:
    r"""Whether the mark in a number may be one of thousands."""
    return _DOUBTFUL.fullmatch(plain(text)) is not None


def clear_mark(texts: Iterable[str]) -> str | None:
    r"""The mark that most numbers of a column have for sure; ``None`` if none has one.

    Args:
        texts: The cells.
    """
    marked = (text for text in texts if not is_doubtful(text))
    found = Counter(mark for text in marked for mark in marks_of(text))
    return max(MARKS, key=lambda mark: found[mark]) if found else None


def begins_with_a_number(text: str) -> bool:
    r"""Whether a word begins as a number does: ``800 ml``, ``16%``, ``1'000``."""
    return _BEGINS.match(plain(text)) is not None
