r"""Tables of runs for the reproduction of Kone et al. (2025)."""

from __future__ import annotations

from collections.abc import Mapping

from botorch_lse.benchmark.kone2025_runs import Score
from botorch_lse.benchmark.report import Table

Scores = Mapping[str, Score | None]
"""By method; ``None`` where it cannot run."""


def error_table(title: str, by: str, scores: Mapping[int, Scores]) -> Table:
    r"""Shares of wrong runs, one row per key, one column per method."""
    rows = [(key, *error_cells(s)) for key, s in scores.items()]
    return Table(title, (by, *next(iter(scores.values()))), rows)


def error_cells(scores: Scores) -> list[str]:
    r"""Shares of wrong runs, a dash where a method cannot run."""
    return ["-" if s is None else f"{s.error:.3f}" for s in scores.values()]


def sample_table(title: str, scores: Mapping[str, Score]) -> Table:
    r"""Wrong runs, samples and rounds, one row per method."""
    columns = ("method", "runs", "wrong", "samples: least / median / most", "rounds")
    rows = [
        (name, s.runs, s.wrong, s.typical, max(s.rounds)) for name, s in scores.items()
    ]
    return Table(title, columns, rows)


def errors_by_method(scores: Mapping[int, Scores]) -> dict[str, dict[int, float]]:
    r"""Shares of wrong runs by method, then key, where they can run."""
    names = next(iter(scores.values()))
    return {
        n: {k: s.error for k, each in scores.items() if (s := each[n]) is not None}
        for n in names
    }
