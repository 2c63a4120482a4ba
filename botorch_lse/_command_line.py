r"""What the command lines share: options read and checked before anything is loaded."""

from __future__ import annotations

import math
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches


def parsed(parser: ArgumentParser, arguments: Sequence[str]) -> Namespace:
    r"""The options of a command line; a mistyped one is answered with the nearest.

    Args:
        parser: It should allow no abbreviations, which mistyped options may look like.
        arguments: The command line.
    """
    found, rest = parser.parse_known_args(arguments)
    if rest:
        unknown = next((word for word in rest if word.startswith("-")), rest[0])
        name = unknown.partition("=")[0]
        parser.error(f"{name} is no option.{did_you_mean(name, options_of(parser))}")
    return found


def options_of(parser: ArgumentParser) -> list[str]:
    r"""The long names of a parser's options."""
    return ["--help", *re.findall(r"--[\w-]+", parser.format_usage())]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    r"""A question about the nearest of some words; empty if none is near.

    Args:
        word: What was written.
        words: What could have been meant.
    """
    near = get_close_matches(word, list(words), 1)
    return f" Did you mean {near[0]}?" if near else ""


def at_least(
    least: float | None, kind: Callable[[str], float] = float
) -> Callable[[str], float]:
    r"""The type of an option that is a finite number.

    Args:
        least: The least number; ``None``: any.
        kind: ``float``, ``int`` for whole numbers, or what reads a number otherwise.
    """
    words = "a whole number" if kind is int else "a number"
    words += "" if least is None else f" of at least {least:g}"

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        is_finite = -math.inf < value < math.inf  # `isfinite` fails on huge integers
        if not is_finite or (least is not None and value < least):
            raise ArgumentTypeError(f"expected {words}, but got {text!r}")
        return value

    return read
