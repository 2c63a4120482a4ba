r"""What a paper's experiment or a benchmark prints and writes."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from botorch_lse._files import write_figure, write_whole


@dataclass(frozen=True)
class Table:
    r"""A table that can be pasted into Markdown.

    Args:
        title: The line above it.
        columns: Headings.
        rows: One tuple per row, the length of ``columns``.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def markdown(self) -> str:
        r"""The table with aligned columns."""
        cells = [self.columns, *[tuple(str(c) for c in row) for row in self.rows]]
        widths = [max(len(row[j]) for row in cells) for j in range(len(self.columns))]
        lines = [
            "| "
            + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))
            + " |"
            for row in cells
        ]
        rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
        return "\n".join([self.title, "", lines[0], rule, *lines[1:]])

    def records(self) -> list[dict[str, Any]]:
        r"""The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Claim:
    r"""A statement of a paper beside what was measured.

    Args:
        claim: The statement, with the criterion by which it is judged.
        paper: What the paper reports.
        measured: What this run found.
        holds: Whether the criterion is met.
    """

    claim: str
    paper: str
    measured: str
    holds: bool

    def row(self) -> tuple[str, str, str, str]:
        r"""The cells of ``claims_table``."""
        return self.claim, self.paper, self.measured, "yes" if self.holds else "no"


def claims_table(title: str, claims: Sequence[Claim]) -> Table:
    r"""One row per claim."""
    columns = ("claim", "paper", "measured", "holds")
    return Table(title, columns, [claim.row() for claim in claims])


def paragraphs(text: str | None) -> list[str]:
    r"""The paragraphs of a docstring but the first line, each in one line."""
    _, *rest = (text or "").strip().split("\n\n")
    return [" ".join(each.split()) for each in rest]


@dataclass(frozen=True)
class Report:
    r"""The outcome of one command.

    Args:
        title: The first line.
        notes: Sentences on how it was measured.
        tables: What was measured.
        verdict: Closing lines.
        data: Further numbers for ``results.json``.
        figures: Functions that draw a figure, by file name without suffix.
        failed: Whether something is not as it is claimed, for the exit status.
    """

    title: str
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    verdict: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    failed: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.notes, str):  # a sequence, too, of letters
            raise TypeError("Expected `notes` to be sentences, but got one string.")

    def text(self) -> str:
        r"""Everything but the figures, as Markdown."""
        parts = [f"## {self.title}", "\n".join(f"- {note}" for note in self.notes)]
        parts += [table.markdown() for table in self.tables]
        parts += ["\n".join(self.verdict)]
        return "\n\n".join(part for part in parts if part)

    def write(self, directory: Path) -> list[Path]:
        r"""``results.json`` and one PNG per figure; makes the directory if needed."""
        directory.mkdir(parents=True, exist_ok=True)
        results = directory / "results.json"
        write_whole(results, (json.dumps(self._content(), indent=1) + "\n").encode())
        paths = [results]
        for name, draw in self.figures.items():
            paths.append(directory / f"{name}.png")
            write_figure(draw(), paths[-1], dpi=150)
        return paths

    def _content(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "notes": list(self.notes),
            "tables": {table.title: table.records() for table in self.tables},
            "verdict": list(self.verdict),
            "versions": {
                "python": platform.python_version(),
                **{p: version(p) for p in ("botorch-lse", "botorch", "torch")},
            },
            **self.data,
        }
