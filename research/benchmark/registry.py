r"""Which benchmarks there are.

A new one is one file, named ``guarantee_...``, ``limits_...``, ``peers_...``,
``price_...``, ``reliability_...``, ``speed_...`` or ``trust_...``, that holds a
function decorated with ``entry``. A new paper is a folder in ``research/papers`` whose
``experiment.py`` has ``SUMMARY`` and ``reproduce(quick, seeds, data)``.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from research import papers
from research.report import Report

EXTRAS = {"ax": "ax", "matplotlib": "plot"}
"""Optional libraries that benchmarks need, and the extra that installs each."""
KINDS = (
    "paper",
    "guarantee",
    "trust",
    "price",
    "peers",
    "reliability",
    "limits",
    "speed",
)


@dataclass(frozen=True)
class Options:
    r"""What the command line says; an entry reads what concerns it.

    Args:
        quick: Fewer seeds and observations (all but guarantee and speed), or small
            pools only (speed lookahead), or one case (speed content).
        seeds: Seeds ``0, ..., seeds - 1`` (the same); ``None``: the entry's own number.
        runs: Simulated runs, with seeds ``0, ..., runs - 1`` (guarantee).
        divide_widths: All confidence widths are divided by this (guarantee); ``None``:
            whole widths, and a power check with a third of them.
        data: A folder with data sets that are not part of the package (paper, limits,
            peers).
        workers: Processes that run side by side (trust, peers, reliability,
            guarantee); ``None``: one per core, of guarantee no other process.
        record: A file to which runs are added as they end (trust, peers, reliability);
            those that it holds are not run again.
        only_recorded: Nothing is run: tables are drawn of what ``record`` holds.
        engine: Where they run, one of ``ENGINES`` (the same and guarantee).
        device: Where to compute (speed rows).
        only: What is measured, by its names; empty: everything (speed growth, peers
            outcomes).
        packages: ``NAME=COMMAND`` for each method of a peer's package (peers packages,
            models and outcomes).
    """

    quick: bool = False
    seeds: int | None = None
    runs: int = 200
    divide_widths: float | None = None
    data: Path | None = None
    workers: int | None = None
    record: Path | None = None
    only_recorded: bool = False
    engine: str = "processes"
    device: str = "cpu"
    only: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def where(self) -> tuple[int, Path | None, str, bool]:
        r"""The last arguments of ``recorded.measure``: where runs are made and kept."""
        workers = self.workers or os.cpu_count() or 1
        return workers, self.record, self.engine, self.only_recorded


@dataclass(frozen=True)
class Entry:
    r"""One benchmark.

    Args:
        kind: One of ``KINDS``.
        name: Its name on the command line.
        summary: A line for ``list``.
        run: Does it.
        needs: Modules of optional libraries that it imports.
        runs: Simulated runs where the command line names no number (guarantee).
    """

    kind: str
    name: str
    summary: str
    run: Callable[[Options], Report]
    needs: tuple[str, ...] = ()
    runs: int = Options.runs


_ENTRIES: dict[tuple[str, str], Entry] = {}

Runner = Callable[[Options], Report]


def entry(
    kind: str,
    name: str,
    summary: str,
    needs: tuple[str, ...] = (),
    runs: int = Options.runs,
) -> Callable[[Runner], Runner]:
    r"""Register the decorated function as a benchmark.

    Args:
        kind: One of ``KINDS``.
        name: Its name on the command line.
        summary: A line for ``list``.
        needs: Modules of optional libraries that it imports.
        runs: Simulated runs where the command line names no number (guarantee).

    Raises:
        ValueError: If the kind is unknown.
    """
    if kind not in KINDS:
        raise ValueError(f"Expected `kind` to be one of {KINDS}, but got {kind!r}.")

    def register(run: Runner) -> Runner:
        _ENTRIES[kind, name] = Entry(kind, name, summary, run, needs, runs)
        return run

    return register


def entries(kind: str | None = None) -> list[Entry]:
    r"""All benchmarks, or those of one kind, in the order of ``list``."""
    package = import_module("research.benchmark")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith(tuple(f"{k}_" for k in KINDS)):
            import_module(f"{package.__name__}.{module.name}")
    every = [*_ENTRIES.values(), *(_paper(name) for name in _papers())]
    found = [e for e in every if kind in (None, e.kind)]
    return sorted(found, key=lambda e: (KINDS.index(e.kind), e.name))


def _papers() -> list[str]:
    return [
        module.name for module in pkgutil.iter_modules(papers.__path__) if module.ispkg
    ]


def _paper(name: str) -> Entry:
    experiment = import_module(f"{papers.__name__}.{name}.experiment")

    def run(options: Options) -> Report:
        report: Report = experiment.reproduce(
            quick=options.quick, seeds=options.seeds, data=options.data
        )
        return report

    return Entry("paper", name, experiment.SUMMARY, run)


def check_installed(modules: Iterable[str]) -> None:
    r"""Complain about optional libraries that are missing, before hours are spent.

    Args:
        modules: Their modules, as in ``EXTRAS``.

    Raises:
        ValueError: If one is not installed; the message says what to install.
    """
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"Expected {module} to be installed. Run `pip install "
                f"'botorch-lse[{EXTRAS[module]}]'`."
            ) from error


def find(kind: str, name: str) -> Entry:
    r"""The benchmark of that kind and name.

    Raises:
        ValueError: If there is none; the message names those there are.
    """
    known = {e.name: e for e in entries(kind)}
    if name not in known:
        raise ValueError(
            f"Expected `NAME` after `{kind}` to be one of {', '.join(known)}, but got "
            f"{name!r}. `python -m botorch_lse.benchmark list` describes them."
        )
    return known[name]
