r"""The command lines: ``python -m botorch_lse`` and ``botorch-lse``.

The first is the demo, the second has commands for tables and ``demo``; each also takes
what the other does.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from botorch_lse import __version__
from botorch_lse._files import seen_to_write
from botorch_lse._numerals import Typed
from botorch_lse.cli import main as table
from botorch_lse.cli.cells import writing
from botorch_lse.cli.options import answered, at_least, number, options_of, parsed

DESCRIPTION = """\
Where is the sea deeper than 100 m? An Ax experiment classifies the 4,841 sea cells of a
real chart (off Vancouver Island) from noisy soundings, asked for in batches, and stops
when every cell is decided. Prints a table and whether values lay where they were
predicted; writes level_set.png, calibration.png, level_set.csv, report.html."""

SEA_BED = "topobathy"
"""The name of the pool that comes with the package."""
METHODS = ("default", "lse", "melk", "straddle", "random")


def command(arguments: Sequence[str] | None = None) -> int:
    r"""Run a command for tables, or ``demo``: the console script ``botorch-lse``.

    Args:
        arguments: The command line; default ``sys.argv[1:]``.

    Returns:
        The exit status; 2 if an option or a file is not what it should be.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    first = given[0].partition("=")[0] if given else "--help"
    if first == "demo":
        return demo(given[1:])
    if first in options_of(parser()) and first not in ("--help", "--version"):
        return demo(given)
    return table(given)


def main(arguments: Sequence[str] | None = None) -> int:
    r"""Run the demo, or a command for tables if the first word is one.

    Args:
        arguments: The command line; default ``sys.argv[1:]``.

    Returns:
        The exit status; 2 if an option or its file is not what it should be.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and not given[0].startswith("-"):
        return command(given)
    return demo(given)


def demo(arguments: Sequence[str]) -> int:
    r"""Run the demo.

    Returns:
        The exit status, as of ``main``.
    """
    needs = dict.fromkeys(("ax", "filelock", "matplotlib", "plotly"), "ax,plot")
    return answered("python -m botorch_lse", lambda: _run(arguments), needs)


def _run(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    logging.disable(logging.INFO)  # Ax logs a line per trial
    try:
        check(options)
        from botorch_lse.cli.demo import run_demo

        run_demo(options)
    finally:
        logging.disable(logging.NOTSET)
    return 0


def check(options: argparse.Namespace) -> None:
    r"""Check the demo's options before the demo is loaded.

    Args:
        options: The options. The folder of what is written is made.

    Raises:
        ValueError: If a number has thousands marked, the pool cannot be read, or a file
            not written.
        OSError: If the folder cannot be made.
    """
    for name in ("threshold", "noise", "epsilon"):
        if isinstance(value := getattr(options, name), Typed):
            value.check(f"--{name}", {"."})
    if options.pool != SEA_BED:
        try:
            Path(options.pool).open("rb").close()
        except OSError as error:
            raise ValueError(
                f"Expected `--pool` to be a CSV file, but {options.pool} cannot be "
                f"read: {error}"
            ) from error
    options.out.mkdir(parents=True, exist_ok=True)
    for name in ("level_set.png", "calibration.png", "level_set.csv", "report.html"):
        with writing(options.out / name):
            seen_to_write(options.out / name)


def parser() -> argparse.ArgumentParser:
    r"""The parser of the demo's options."""
    found = argparse.ArgumentParser(
        prog="python -m botorch_lse",
        description=DESCRIPTION,
        epilog="For tables of your own: botorch-lse --help.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = found.add_argument
    add("--version", action="version", version=f"botorch-lse {__version__}")
    add("--out", type=Path, default=Path(), metavar="DIR", help="where files go")
    add(
        "--pool",
        default=SEA_BED,
        metavar="FILE",
        help="another pool: a CSV file whose last column is the true value (the others "
        "are the inputs), from which noisy measurements are simulated",
    )
    add("--raw", action="store_true", help="the chart as it is, not averaged")
    real = at_least(None, number)
    add("--threshold", type=real, default=100.0, help="the level, units of y")
    add("--noise", type=real, default=5.0, help="noise standard deviation, units of y")
    add("--epsilon", type=real, default=6.0, help="accuracy, units of y")
    add("--batch", type=int, default=10, help="measurements per round")
    add("--budget", type=int, default=1100, help="most measurements")
    add("--seed", type=int, default=0, help="seed of noise and of random choices")
    add(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=["default", "straddle", "random"],
        help="what to run: the first as an Ax experiment, which the picture and the "
        "table file show; the others by ask and tell, to compare",
    )
    return found


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    r"""The demo's options, read from the command line and checked."""
    reader = parser()
    options = parsed(reader, arguments)
    for name in ("noise", "batch", "budget"):
        if getattr(options, name) <= 0:
            reader.error(f"--{name}: expected a positive number")
    if options.epsilon < 0:
        reader.error("--epsilon: expected at least 0")
    return options


if __name__ == "__main__":
    sys.exit(main())
