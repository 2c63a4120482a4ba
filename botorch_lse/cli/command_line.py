r"""The command line for tables: what is asked, and whether the files can be read.

A wrong option and a fault of a file are answered at once: options are read before
pandas is loaded, files before torch, ``botorch_lse.cli.commands`` for a right call.
"""

from __future__ import annotations

import argparse
import csv
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from botorch_lse import __version__
from botorch_lse._files import seen_to_write
from botorch_lse._numerals import Typed
from botorch_lse.cli.cells import Faults, check_is_no_workbook, writing
from botorch_lse.cli.options import (
    answered,
    at_least,
    did_you_mean,
    number,
    options_of,
    parsed,
)
from botorch_lse.cli.progress import doing
from botorch_lse.cli.settings import (
    DEFAULT_FILE,
    FILES,
    NUMBERS,
    PAGE,
    PROGRAM,
    USUAL_AUDIT,
    is_page,
    options,
    settings,
)

if TYPE_CHECKING:
    from botorch_lse.cli.runs import Run
    from botorch_lse.cli.settings import Settings

DESCRIPTION = """\
Which lines of a table are above a level? `next` writes a sheet of what to measure; fill
it in and call `next` again, until it says that everything is decided. The settings of
the first call stand in botorch-lse.toml, so that later calls need none. There is no
state but the files: stop at any point, and go on from them."""

DEMO = (
    f"To see a whole run: `{PROGRAM} demo` classifies a sea bed from noisy soundings."
)
COMMANDS = {
    "next": "write the sheet of what to measure next",
    "answer": "write what is known of each candidate, as a table and a picture",
    "report": "write a page to hand on: answer, list, pictures, what it rests on",
    "simulate": "say how many measurements to expect, from simulated ones",
}
_TRIES = 3
"""The number of times that a call begins if files are saved while it computes."""
LEAST = {
    "batch": 1,
    "budget": 1,
    "max_repeats": 1,
    "seed": 0,
    "epsilon": 0,
    "noise_std": 0,
    "beta": 0,
    "guess": 0,
    "lapse": 0,
    "grades": 2,
    "at_least": 1,
}
"""The least value that a setting may have, where there is one."""


def main(arguments: Sequence[str] | None = None) -> int:
    r"""Run a command.

    Args:
        arguments: The command line; default ``sys.argv[1:]``.

    Returns:
        The exit status; see ``answered``.
    """
    given = sys.argv[1:] if arguments is None else arguments
    return answered(
        PROGRAM, lambda: _carry_out(given), {"matplotlib": "plot", "plotly": "plot"}
    )


def _carry_out(arguments: Sequence[str]) -> int:
    r"""Carry out a command, again if somebody saved a file meanwhile."""
    call = parse(arguments)
    for is_last in (*[False] * _TRIES, True):
        run = read(call)
        # Not at the top: it brings torch, which no wrong call should wait for.
        with doing("loading the model", at_once=False), _kept_from_collection():
            from botorch_lse.cli.commands import carry_out
            from botorch_lse.cli.runs import SavedMeanwhileError

        try:
            carry_out(run, call)
            break
        except SavedMeanwhileError:
            if is_last:
                raise
    return 0


@contextmanager
def _kept_from_collection() -> Iterator[None]:
    r"""A context for loading packages, whose objects are then never looked through.

    Python's garbage collector looks through all objects again and again while they are
    made; of the time of a call after few values that was a sixth.
    """
    if "botorch_lse.cli.commands" in sys.modules or not gc.isenabled():
        yield  # nothing is loaded, or somebody has other plans
        return
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    r"""The command and its options.

    Each command has a parser of its own, so that what is wrong is said beside the usage
    of this command.
    """
    whole, parts = parsers()
    first, *rest = arguments or ["--help"]
    if first in parts:
        return parsed(parts[first], rest)
    if first not in ("-h", *options_of(whole)):
        whole.error(_no_command(first, options_of(whole)))
    return whole.parse_args([first])  # which says what is asked for, and ends


def _no_command(first: str, own: Sequence[str]) -> str:
    known = [*COMMANDS, "demo"]
    wanted = f"expected a command ({', '.join(known)})"
    if first.startswith("-"):
        near = did_you_mean(first, own)
        return f"{wanted} before its options, but got {first}.{near}"
    return f"{wanted}, but got {first}.{did_you_mean(first, [*known, *own])}"


def parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    r"""The parser of the whole command line, for its help, and one for each command."""
    whole = argparse.ArgumentParser(prog=PROGRAM, description=DESCRIPTION, epilog=DEMO)
    whole.add_argument(
        "--version", action="version", version=f"{PROGRAM} {__version__}"
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    parts = dict[str, argparse.ArgumentParser]()
    for name, words in COMMANDS.items():
        parts[name] = part = commands.add_parser(
            name,
            parents=[_common_options(takes_table=name != "report")],
            help=words,
            description=f"{words.capitalize()}.",
            allow_abbrev=False,
        )
        part.set_defaults(command=name)
    _add_answer_options(parts["answer"])
    parts["report"].add_argument(
        "page", nargs="?", type=page, metavar="PAGE",
        help=f"the page to write (default that of the settings, else {PAGE})",
    )  # fmt: skip
    _add_simulate_options(parts["simulate"])
    return whole, parts


def _add_answer_options(part: argparse.ArgumentParser) -> None:
    for option, file, words in (
        ("--table", "answer.csv", "the table to write (default answer.csv)"),
        ("--picture", "answer.png", "the picture to draw (default answer.png)"),
    ):
        part.add_argument(
            option, type=Path, default=Path(file), metavar="FILE", help=words
        )
    part.add_argument(
        "--details",
        action="store_true",
        help="say what the answer is worth: what is claimed and assumed",
    )


def _add_simulate_options(part: argparse.ArgumentParser) -> None:
    add = part.add_argument
    some = at_least(1, int)
    add("--runs", type=some, default=3, metavar="INT", help="how many runs (default 3)")
    add(
        "--most",
        type=some,
        default=300,
        metavar="INT",
        help="measurements of a run at most (default 300)",
    )
    add(
        "--truth",
        type=names,
        metavar="COLUMN",
        help="true values: a column of the candidates (of several sources one each)",
    )
    add(
        "--between",
        type=ends,
        metavar="LOW,HIGH",
        help="most true values lie between these; functions are drawn (not needed once "
        "a model is learnt from results)",
    )
    add(
        "--noise",
        type=at_least(0, number),
        metavar="STD",
        help="standard deviation of simulated noise (default noise_std, or as learnt)",
    )


def _common_options(*, takes_table: bool) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    add = found.add_argument
    if takes_table:
        add("candidates", nargs="?", help="the table of the candidates, one a line")
    add(
        "--settings",
        type=Path,
        default=Path(DEFAULT_FILE),
        metavar="FILE",
        help="where the settings stand (default botorch-lse.toml)",
    )
    for name, option, kind, words in options():
        if name == "report" and not takes_table:
            continue  # this command names its page itself
        if kind is bool:
            add(option, action="store_true", help=words)
        elif name == "audit":
            alone = USUAL_AUDIT  # what --audit without numbers stands for
            add(option, nargs="?", const=alone, type=numbers, metavar="A,B", help=words)
        elif name in NUMBERS:
            add(option, type=numbers, metavar="A,B", help=words)
        elif kind is tuple:
            add(option, type=names, metavar="A,B", help=words)
        else:
            read_one = number if kind is float else kind
            one = kind if kind is str else at_least(LEAST.get(name), read_one)
            add(option, type=one, metavar=kind.__name__.upper(), help=words)
    return found


def page(text: str) -> Path:
    r"""The file of a page."""
    if not is_page(text):
        raise argparse.ArgumentTypeError(
            f"expected a page, as in {PAGE}, but got {text!r}"
        )
    return Path(text)


def names(text: str) -> tuple[str, ...]:
    r"""Names separated by commas; a name with a comma is put in quotation marks.

    Example:
        >>> names('heat, "time, min"')
        ('heat', 'time, min')
    """
    (parts,) = csv.reader([" ".join(text.split())], skipinitialspace=True)
    return tuple(part.strip() for part in parts if part.strip())


def numbers(text: str) -> tuple[float, ...]:
    r"""Numbers separated by commas, as an option gives them."""
    try:
        return tuple(map(number, text.split(",")))
    except ValueError:
        wanted = "numbers with commas between them, as in 0.05,0.05"
        raise argparse.ArgumentTypeError(
            f"expected {wanted}, but got {text!r}"
        ) from None


def ends(text: str) -> tuple[float, ...]:
    r"""The two ends of an interval, separated by a comma."""
    found = numbers(text)
    if len(found) != 2 or not found[0] < found[1]:
        raise argparse.ArgumentTypeError(
            f"expected a smaller and a larger value, as in 20,60, but got {text!r}"
        )
    return found


def read(call: argparse.Namespace) -> Run:
    r"""The run that a call is about, from its files.

    Raises:
        ValueError: If a file is not what it should be.
    """
    known = {"candidates", *(name for name, *_ in options())}
    given = {name: value for name, value in vars(call).items() if name in known}
    found = settings(call.settings, given)
    if call.command == "answer":
        check_is_no_workbook(call.table, "--table")
        own = {os.path.realpath(found.file(name)) for name in FILES}
        for path in (call.table, call.picture):
            if os.path.realpath(path) in own:
                raise ValueError(
                    f"Expected another file for the answer, but {path} is one of the "
                    "tables it rests on. Name another one."
                )
    # Not at the top: they bring pandas.
    from botorch_lse.cli.runs import Run
    from botorch_lse.cli.truths import check_truth

    run = Run.read(found)
    _check_numbers(run, call)
    if call.command != "simulate" or call.truth is None:
        run.check_measured()
    if call.command == "simulate":
        check_truth(run, call.truth, call.between, call.noise)
    if call.command == "answer":
        for path in (call.table, call.picture):
            with writing(path):
                seen_to_write(path)
        _check_format(call.picture)
    if call.command == "report":
        call.page = call.page or found.page or Path(PAGE)
    if (path := _page_of(found, call)) is not None:
        import plotly  # noqa: F401  (said before anything is computed, if it is missing)

        with writing(path):
            seen_to_write(path)
    return run


def _page_of(found: Settings, call: argparse.Namespace) -> Path | None:
    r"""The page that a call writes; ``None`` if it writes none."""
    if call.command == "report":
        return call.page
    return found.page if call.command in ("next", "answer") else None


def _check_numbers(run: Run, call: argparse.Namespace) -> None:
    r"""Ask about numbers outside tables that can be read in two ways beside them."""
    found, faults = run.settings, Faults()
    given = {f"--{name.replace('_', '-')}": x for name, x in vars(call).items()}
    if found.is_stored:
        given |= {f"{found.path.name}, {name}": x for name, x in vars(found).items()}
    for name, value in given.items():
        for one in value if isinstance(value, tuple) else (value,):
            with faults.noted():
                if isinstance(one, Typed):
                    one.check(name, run.marks)
    faults.check()


def _check_format(path: Path) -> None:
    r"""Complain about a picture whose name has no picture's ending.

    Raises:
        ValueError: If matplotlib, where it is installed, writes no such file.
    """
    with suppress(ImportError):  # the table needs no matplotlib, and is written
        from matplotlib.backend_bases import FigureCanvasBase

        kind = path.suffix.removeprefix(".").casefold()
        if kind and kind not in FigureCanvasBase.get_supported_filetypes():
            raise ValueError(
                f"Expected --picture to be a picture, but got {path.name}. Name it "
                f"{path.stem}.png, .pdf or .svg."
            )
