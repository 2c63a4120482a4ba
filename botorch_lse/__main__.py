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

DESCRIPTION = """\
Where is the sea deeper than 100 m? An Ax experiment classifies the 4,841 sea cells of a
real chart (off Vancouver Island) from noisy soundings, asked for in batches, and stops
when every cell is decided. Prints a table and whether values lay where they were
predicted; writes level_set.png, calibration.png and level_set.csv."""

TABLE_COMMANDS = ("next", "answer", "simulate")
"""Commands of ``botorch_lse.table``, which is imported only if one is called."""

METHODS = ("default", "lse", "melk", "straddle", "random")


def command(arguments: Sequence[str] | None = None) -> int:
    r"""Run a command for tables, or ``demo``: the console script ``botorch-lse``.

    Args:
        arguments: The command line; default ``sys.argv[1:]``.

    Returns:
        The exit status; 2 if an option or a file is not what it should be.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    asks_for_help = not given or given[0] in ("-h", "--help")
    is_demo = given[:1] == ["demo"]
    if asks_for_help or not (is_demo or given[0].startswith("-")):
        from botorch_lse.table import main as table

        return table(given or ["--help"])
    return main(given[1:] if is_demo else given)


def main(arguments: Sequence[str] | None = None) -> int:
    r"""Run the demo, or a command for tables if the first word is one.

    Args:
        arguments: The command line; default ``sys.argv[1:]``.

    Returns:
        The exit status; 2 if an option or its file is not what it should be.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] and given[0] in (*TABLE_COMMANDS, "demo"):
        return command(given)
    options = parse(arguments)
    logging.disable(logging.INFO)  # Ax logs a line per trial
    try:
        from botorch_lse.demo import run_demo

        options.out.mkdir(parents=True, exist_ok=True)
        run_demo(options)
    except (ValueError, OSError) as error:
        notes = getattr(error, "__notes__", [])
        said = " ".join(" ".join((str(error), *notes)).split())
        print(f"python -m botorch_lse: error: {said}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"The demo needs Ax and matplotlib ({error}).", file=sys.stderr)
        print("Install them with: pip install 'botorch-lse[ax,plot]'", file=sys.stderr)
        return 1
    finally:
        logging.disable(logging.NOTSET)
    return 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    r"""The demo's options, read from the command line and checked."""
    parser = argparse.ArgumentParser(
        prog="python -m botorch_lse",
        description=DESCRIPTION,
        epilog="For tables of your own: botorch-lse --help.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path(), metavar="DIR", help="where files go")
    add(
        "--pool",
        default="topobathy",
        metavar="FILE",
        help="another pool: a CSV file whose last column is the true value (the others "
        "are the inputs), from which noisy measurements are simulated",
    )
    add("--raw", action="store_true", help="the chart as it is, not averaged")
    add("--threshold", type=float, default=100.0, help="the level, units of y")
    add("--noise", type=float, default=5.0, help="noise standard deviation, units of y")
    add("--epsilon", type=float, default=6.0, help="accuracy, units of y")
    add("--batch", type=int, default=10, help="measurements per round")
    add("--budget", type=int, default=800, help="most measurements")
    add("--seed", type=int, default=0, help="seed of noise and of random choices")
    add(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=["default", "straddle", "random"],
        help="what to run: the first as an Ax experiment, which the picture and the "
        "table file show; the others by ask and tell, to compare",
    )
    options = parser.parse_args(arguments)
    for name in ("noise", "batch", "budget"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name}: expected a positive number")
    if options.epsilon < 0:
        parser.error("--epsilon: expected at least 0")
    return options


if __name__ == "__main__":
    sys.exit(main())
