r"""``python -m botorch_lse.benchmark``: runs a report and writes it to a folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from botorch_lse._validation import in_interval, usable_device, whole_number
from research.benchmark.engines import ENGINES
from research.benchmark.registry import Options, check_installed, entries, find
from research.report import Table

QUICK_RUNS = 40
"""So many without a wrong one show a failure probability of at most 0.1."""


COMMANDS = {
    "list": "name the benchmarks",
    "paper": "reproduce a paper, claim by claim",
    "limits": "compare samples with an oracle's",
    "trust": "count false answers of learnt models",
    "price": "count measurements until an answer is decided and audited",
    "peers": "compare rules by the error they leave",
    "reliability": "count runs until a failure probability is known",
    "guarantee": "simulate a guarantee",
    "speed": "measure time and memory on one core",
}
"""What each command does."""
RECORDED = ("trust", "price", "peers", "reliability")
"""The commands whose runs can be recorded, one by one."""


def build_parser() -> argparse.ArgumentParser:
    r"""The parser of the command line: a group, a name, and options."""
    parser = argparse.ArgumentParser(
        prog="python -m botorch_lse.benchmark",
        description="Reproduce papers, simulate guarantees, compare, measure speed.",
    )
    made = parser.add_subparsers(dest="kind", required=True, metavar="COMMAND")
    commands = {name: made.add_parser(name, help=it) for name, it in COMMANDS.items()}
    for name, command in commands.items():
        _add_size(name, command)
        if name in (*RECORDED, "guarantee"):
            _add_engine(name, command)
        if name in RECORDED:
            _add_record(command)
        _add_own(name, command)
        if name != "list":
            _add_name_and_folder(name, command)
    return parser


def _add_size(name: str, command: argparse.ArgumentParser) -> None:
    r"""Add the options of a command that say how much is run."""
    add = command.add_argument
    if name in ("paper", "limits", *RECORDED):
        add("--quick", action="store_true", help="few seeds")
        add("--seeds", type=int, metavar="K", help="seeds 0 to K - 1")
    if name == "guarantee":
        default = "default: as `list` says, else 200"
        add("--runs", type=int, metavar="K", help=f"runs ({default})")
        unless = f"{QUICK_RUNS} runs, unless --runs says"
        add("--quick", action="store_true", help=unless)
    if name == "speed":
        add("--quick", action="store_true", help="small pools only (lookahead)")


def _add_engine(name: str, command: argparse.ArgumentParser) -> None:
    r"""Add the options that say where runs are made."""
    default = "no other" if name == "guarantee" else "one per core"
    command.add_argument(
        "--workers", type=int, metavar="K", help=f"processes (default: {default})"
    )
    command.add_argument(
        "--engine",
        choices=ENGINES,
        default="processes",
        help="where runs are made (default: processes of this machine)",
    )


def _add_record(command: argparse.ArgumentParser) -> None:
    r"""Add the options of runs that are recorded."""
    command.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="add each run to FILE as it ends; runs that it holds are not repeated",
    )
    command.add_argument(
        "--recorded",
        dest="only_recorded",
        action="store_true",
        help="run nothing: draw tables of the runs that --record FILE holds",
    )


def _add_own(name: str, command: argparse.ArgumentParser) -> None:
    r"""Add the options that one or a few commands have by themselves."""
    if name in ("paper", "limits", "peers"):
        command.add_argument(
            "--data", type=Path, metavar="DIR", help="folder with data sets not shipped"
        )
    if name == "peers":
        command.add_argument(
            "--package",
            dest="packages",
            action="append",
            default=[],
            metavar="NAME=COMMAND",
            help="a peer's package that chooses rows as well (packages, outcomes)",
        )
    if name in ("peers", "speed"):
        command.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="WHAT",
            help="measure one line of the table and no other, such as qEAVC (growth), "
            "or one problem (outcomes)",
        )
    if name == "guarantee":
        command.add_argument(
            "--divide-widths",
            type=float,
            metavar="F",
            help="divide all confidence widths by F instead of the power check by 3",
        )
    if name == "speed":
        command.add_argument(
            "--device", default="cpu", help="where to compute, such as cuda (rows)"
        )


def _add_name_and_folder(name: str, command: argparse.ArgumentParser) -> None:
    r"""Add the benchmark to run, and where results go."""
    if name in ("limits", *RECORDED):
        command.add_argument("name", metavar="NAME", nargs="?", default="all")
    else:
        command.add_argument("name", metavar="NAME", help="see `list`")
    default = " (default: out/NAME)" if name == "paper" else ""
    words = f"write results.json and figures here{default}"
    command.add_argument("--out", type=Path, metavar="DIR", help=words)


def main(arguments: Sequence[str] | None = None) -> int:
    r"""Run one command; returns the exit status."""
    parser = build_parser()
    chosen = parser.parse_args(arguments)
    if chosen.kind == "list":
        print(_listing().markdown())
        return 0
    out = chosen.out
    if out is None and chosen.kind == "paper":
        out = Path("out") / chosen.name
    try:
        benchmark = find(chosen.kind, chosen.name)
        options = _options(chosen, benchmark.runs)
        check_installed((*benchmark.needs, *(() if out is None else ("matplotlib",))))
    except ValueError as error:
        parser.error(str(error))
    report = benchmark.run(options)
    written = [] if out is None else report.write(out)  # before a word is said
    print(report.text())
    if written:
        print(f"\nWritten: {', '.join(map(str, written))}")
    return int(report.failed)


def _options(chosen: argparse.Namespace, runs: int) -> Options:
    for name in ("seeds", "workers"):
        if getattr(chosen, name, None) is not None:
            whole_number(getattr(chosen, name), f"--{name}", 1)
    if chosen.kind in ("paper", "limits", *RECORDED):
        # Which of these a command has was said above; the others stay as they are.
        names = [field.name for field in fields(Options)]
        given = {name: getattr(chosen, name) for name in names if name in chosen}
        for name in {"packages", "only"} & given.keys():
            given[name] = tuple(given[name])
        record = given.get("record")
        if given.get("only_recorded") and (record is None or not record.exists()):
            came = "got none" if record is None else f"there is no {record}"
            raise ValueError(
                "Expected `--record FILE` beside `--recorded`, whose runs are drawn, "
                f"but {came}."
            )
        return Options(**given)
    if chosen.kind == "guarantee":
        if chosen.quick:
            runs = min(runs, QUICK_RUNS)
        if chosen.runs is not None:
            runs = whole_number(chosen.runs, "--runs", 1)
        if chosen.divide_widths is not None:
            in_interval(chosen.divide_widths, "--divide-widths", 0.0, float("inf"))
        where = {"workers": chosen.workers, "engine": chosen.engine}
        return Options(runs=runs, divide_widths=chosen.divide_widths, **where)
    usable_device(chosen.device, "--device")
    return Options(quick=chosen.quick, device=chosen.device, only=tuple(chosen.only))


def _listing() -> Table:
    rows = [(f"{e.kind} {e.name}", e.summary) for e in entries()]
    return Table("Benchmarks", ("command", "what it does"), rows)


if __name__ == "__main__":
    raise SystemExit(main())
