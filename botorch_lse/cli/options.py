r"""Shared parts of the command lines: options checked before anything is loaded."""

from __future__ import annotations

import math
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches

from botorch_lse._numerals import MARKS, Typed, number_with, readable
from botorch_lse.cli.notation import repaired

_NEGATIVE = re.compile(r"-[.,]?\d")
_OPTION = re.compile(r"--[\w-]+")


def parsed(parser: ArgumentParser, arguments: Sequence[str]) -> Namespace:
    r"""The options of a command line; a mistyped one is answered with the nearest.

    Args:
        parser: It should allow no abbreviations, which mistyped options may look like.
        arguments: The command line.
    """
    found, rest = parser.parse_known_args(_with_negative_values(arguments))
    if rest:
        unknown = next((word for word in rest if word.startswith("-")), rest[0])
        name = unknown.partition("=")[0]
        parser.error(f"{name} is no option.{did_you_mean(name, options_of(parser))}")
    return found


def _with_negative_values(arguments: Sequence[str]) -> list[str]:
    r"""The words of a call, a negative value joined to the option before it.

    ``argparse`` takes ``-1e-3``, ``-5,5`` and ``-20,60`` for options.
    """
    found = list[str]()
    for word in arguments:
        if _NEGATIVE.match(word) and found and _OPTION.fullmatch(found[-1]):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def answered(
    program: str, act: Callable[[], int], needs: Mapping[str, str] | None = None
) -> int:
    r"""The status of a call; foreseeable errors are reported in a line.

    Args:
        program: What the line begins with.
        act: The call; it writes its files before it says a word.
        needs: Modules that need not be installed, each with the extra that has it.

    Returns:
        The exit status; 2 if an option or a file is not what it should be, 1 if a
        package is missing, 130 after Ctrl-C.
    """
    # Before torch is loaded, which reads it once: threads that wait for each other give
    # way, where they would otherwise spin and take up to five times as long beside
    # whatever else runs on the machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        try:
            status = act()
        except SystemExit:  # a parser's, which has said something
            _flush()
            raise
        _flush()
    except BrokenPipeError:  # whoever reads has seen enough, as in `| head -1`
        _silence()
    except KeyboardInterrupt:
        _complain(f"{program}: stopped; no file was left half written")
        return 130
    except ImportError as error:
        _complain(f"{program}: error: {_of_missing(error, needs or {})}")
        return 1
    except (ValueError, OSError) as error:
        said = [str(error), *getattr(error, "__notes__", [])]
        if isinstance(error, OSError) and error.strerror:
            is_output = error.filename is None
            said[0] = f"{error.filename or 'standard output'}: {error.strerror}."
            if is_output:
                _silence()
        _complain(f"{program}: error: {' '.join(part.strip() for part in said)}")
        return 2
    else:
        return status
    return 0


def say(said: str) -> None:
    r"""Print to standard output; a reader that has gone away ends no run."""
    try:
        print(said, flush=True)
    except BrokenPipeError:
        _silence()


def _of_missing(error: ImportError, needs: Mapping[str, str]) -> str:
    r"""The remedy for a module that cannot be imported."""
    module = (error.name or "").partition(".")[0]
    if module not in needs:
        return f"{error}. The installation seems to be damaged."
    return (
        f"{module} is needed, which is not installed ({error}). Install it with: pip "
        f"install 'botorch-lse[{needs[module]}]'"
    )


def _complain(said: str) -> None:
    r"""Print to standard error, if there is one that takes it."""
    with suppress(OSError):
        print(said, file=sys.stderr, flush=True)


def _flush() -> None:
    r"""Write what is buffered now, where an error can be answered."""
    if sys.stdout is not None:  # ``None`` where the shell closed it
        sys.stdout.flush()


def _silence() -> None:
    r"""Send standard output nowhere: at its end Python would write the rest again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def options_of(parser: ArgumentParser) -> list[str]:
    r"""The long names of a parser's options."""
    return ["--help", *re.findall(r"--[\w-]+", parser.format_usage())]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    r"""A question about the nearest of some words; empty if none is near.

    Args:
        word: The word that was written.
        words: The words that could be meant.
    """
    near = get_close_matches(word, list(words), 1)
    return f" Did you mean {near[0]}?" if near else ""


def number(text: str) -> Typed:
    r"""A number as an option gives it, also with a decimal comma; see ``Typed.check``.

    Raises:
        ValueError: If it is not a number.
        argparse.ArgumentTypeError: If it is not a number, and there is a remedy.
    """
    for mark in MARKS:
        if number_with(mark, text) is not None:
            return Typed(text, mark)
    remedy = repaired(text)
    if remedy is None:
        raise ValueError(f"Expected a number, but got {text!r}.")
    said = f"expected a number, but got {text!r}; {remedy}"
    raise ArgumentTypeError(readable(said))


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
