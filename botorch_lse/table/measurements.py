r"""The lines of results and of the sheet: measured, open, failed, not measurable.

Both files are read alike, and may be one. A line that a sheet asked for has the sheet's
number and says the how-many-th measurement of its candidate it is: these three name it,
so that a line copied from the sheet to the results is known to be the same one. A line
without a number was measured elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from botorch_lse.table.candidates import REPEAT, SHEET, Candidates
from botorch_lse.table.cells import Line, Notation, Table, read_table
from botorch_lse.table.settings import Settings

if TYPE_CHECKING:
    from botorch_lse.problem import Observations

FAILED = ("failed", "fail")
"""Words for a measurement that failed and is asked again."""
EXCLUDED = ("n/a", "na", "not measurable", "excluded")
"""Words for a candidate that cannot be measured at all."""
OPEN, MEASURED = "open", "measured"
WORDS = "failed (asked again) or n/a (cannot be measured, never asked again)"
"""What may stand in a cell in place of a number, in a message."""


@dataclass(frozen=True)
class Entry:
    r"""One line, understood.

    Args:
        table: Its file.
        line: Its cells.
        row: The candidate.
        sheet: The number of the sheet that asked for it; 0 if none did.
        repeat: The how-many-th measurement of the candidate; 0 where nobody counted.
        status: ``"open"``, ``"measured"``, ``"failed"`` or ``"n/a"``.
        value: What was measured.
    """

    table: Table = field(repr=False)
    line: Line = field(repr=False)
    row: int
    sheet: int
    repeat: int
    status: str
    value: float | None = None

    @property
    def name(self) -> tuple[int, int, int]:
        r"""What tells it from other lines that sheets asked for."""
        return self.sheet, self.row, self.repeat

    @property
    def place(self) -> str:
        r"""Where it stands."""
        return f"{self.table.name}, line {self.line.number}"


@dataclass(frozen=True)
class Measurements:
    r"""Everything that is known of the candidates, and what is out.

    Args:
        entries: All lines, each once, without those that are answered elsewhere.
        results: The table of results; ``None`` while there is none.
        sheet: The sheet, ``None`` while there is none; the results where both are one.
        taken: Lines of the sheet that the results do not have yet, each with the line
            of the results that waits for it, if one does.
    """

    entries: tuple[Entry, ...]
    results: Table | None
    sheet: Table | None
    taken: tuple[tuple[Entry, int | None], ...]

    def having(self, *status: str) -> list[Entry]:
        r"""The lines with one of these statuses."""
        return [entry for entry in self.entries if entry.status in status]

    @cached_property
    def open(self) -> list[Entry]:
        r"""The lines that are to be measured, in the order of the file."""
        return self.having(OPEN)

    @cached_property
    def excluded(self) -> set[int]:
        r"""The candidates that cannot be measured."""
        return {entry.row for entry in self.having("n/a")}

    @cached_property
    def counts(self) -> Counter[int]:
        r"""For each candidate, how many measurements are there or out."""
        return Counter(entry.row for entry in self.having(MEASURED, OPEN))

    @cached_property
    def owed(self) -> list[int]:
        r"""Candidates to be asked again: asked for, but neither measured nor out."""
        asked: Counter[int] = Counter()
        for entry in self.entries:
            asked[entry.row] = max(asked[entry.row], entry.repeat)
        missing = {row: asked[row] - self.counts[row] for row in sorted(asked)}
        return [
            row
            for row, n in missing.items()
            for _ in range(n)
            if row not in self.excluded
        ]

    @property
    def last_sheet(self) -> int:
        r"""The number of the last sheet; 0 before any."""
        return max((entry.sheet for entry in self.entries), default=0)

    def by_sheet(self, places: Mapping[int, int]) -> list[Observations]:
        r"""What was measured, sheet after sheet, what was measured elsewhere first.

        Args:
            places: The rows of the pool by candidate.
        """
        # Not at the top: the files are read without torch.
        import torch

        from botorch_lse.problem import Observations

        done = self.having(MEASURED)
        groups = []
        for sheet in sorted({entry.sheet for entry in done}):
            part = [entry for entry in done if entry.sheet == sheet]
            rows = torch.tensor([places[entry.row] for entry in part])
            values = torch.tensor([entry.value for entry in part], dtype=torch.float64)
            groups.append(Observations(rows, values))
        return groups


def measurements(found: Settings, candidates: Candidates) -> Measurements:
    r"""Read the results and the sheet.

    Args:
        found: The settings.
        candidates: The candidates.

    Raises:
        ValueError: If a line is not what it should be, or stands there twice.
    """
    results, sheet = (_table_of(found, name) for name in ("results", "out"))
    if results is not None and sheet is not None and results.path == sheet.path:
        sheet = results
    reader = _Reader(candidates, found.column, found.notation)
    known = _without_repeats(reader.entries(results), found)
    if sheet is results:
        rest: list[Entry] = []
    else:
        rest = _without_repeats(reader.entries(sheet), found)
    entries, taken = _merged(known, rest)
    _check_order(entries, found)
    measured = Counter(entry.row for entry in entries if entry.status == MEASURED)
    # A line is answered, too, where its value came without the number of the sheet.
    entries = [e for e in entries if e.status != OPEN or measured[e.row] < e.repeat]
    _check_excluded(entries)
    excluded = {entry.row for entry in entries if entry.status == "n/a"}
    entries = [e for e in entries if e.status != OPEN or e.row not in excluded]
    return Measurements(tuple(entries), results, sheet, tuple(taken))


def _table_of(found: Settings, name: str) -> Table | None:
    path = found.file(name).resolve()
    return read_table(path) if path.exists() else None


@dataclass(frozen=True)
class _Reader:
    r"""Understands the lines of a file.

    Args:
        candidates: What they are about.
        column: What is measured.
        notation: How numbers are written.
    """

    candidates: Candidates
    column: str
    notation: Notation

    def entries(self, table: Table | None) -> list[Entry]:
        r"""The lines that say something; those that only list a candidate do not."""
        if table is None:
            return []
        column = table.column(self.column)
        if column is None:
            raise ValueError(
                f"{table.name}: expected the column {self.column!r} of what is "
                f"measured, but it has {', '.join(table.header)}. Add it, or name "
                "another column with --column."
            )
        found = []
        for line in table.lines:
            sheet = self._count(table, line, SHEET)
            if sheet or line.cells[column]:
                found.append(self._entry(table, line, column, sheet))
        return found

    def _entry(self, table: Table, line: Line, column: str, sheet: int) -> Entry:
        text = line.cells[column]
        status, value = _status(text), None
        if status == MEASURED:
            value = self.notation.number(text)
            if value is None:
                remedy = self.notation.repair(text)
                remedy += f", leave the cell empty, or write {WORDS}" * (
                    not _digits(text)
                )
                raise table.complaint(line, column, "a number", f"got {text!r}", remedy)
        row = self.candidates.find(line, table)
        repeat = self._count(table, line, REPEAT) or 1 if sheet else 0
        return Entry(table, line, row, sheet, repeat, status, value)

    def _count(self, table: Table, line: Line, name: str) -> int:
        r"""The number of the sheet or of the repeat; 0 where the cell is empty."""
        column = table.column(name)
        text = "" if column is None else line.cells[column]
        if not text:
            return 0
        number = self.notation.number(text)
        if number is None or number != int(number) or number < 1:
            raise table.complaint(
                line,
                str(column),
                "a whole number, as the sheet has it",
                f"got {text!r}",
                "restore it, or leave the cell empty if no sheet asked for the line",
            )
        return int(number)


def _status(text: str) -> str:
    r"""What a cell of the results says."""
    word = " ".join(text.casefold().split())
    if not word:
        return OPEN
    if word in FAILED:
        return "failed"
    return "n/a" if word in EXCLUDED else MEASURED


def _digits(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


def _without_repeats(entries: Iterable[Entry], found: Settings) -> list[Entry]:
    r"""The lines of one file; a value that stands there twice is asked about."""
    kept = dict[tuple[int, int, int], list[Entry]]()
    for entry in entries:
        others = kept.setdefault(entry.name, [])
        before = others[-1] if others else None
        if before is None or before.status == OPEN:
            others[-1:] = [entry]
        elif entry.status == MEASURED == before.status:
            if not found.replicates:
                raise _repeated(before, entry, found)
            others.append(entry)
        elif entry.status in (OPEN, before.status):
            continue  # to wait or to fail twice says no more than once
        elif entry.sheet == 0:
            others.append(entry)
        else:
            raise _contradiction(before, entry)
    return [entry for others in kept.values() for entry in others]


def _repeated(one: Entry, other: Entry, found: Settings) -> ValueError:
    r"""The question about a measurement that stands there twice."""
    value = one.value == other.value and one.value is not None
    return ValueError(
        f"{one.place}, and {other.place}: expected each measurement once, but both are "
        f"{'the same value' if value else 'values'} of one candidate. If a line was "
        "copied twice, delete one; if it was measured twice, "
        f"{found.notation.advice('replicates', '')}."
    )


def _contradiction(one: Entry, other: Entry) -> ValueError:
    r"""That two lines say different things about one measurement."""
    said = [
        f"{entry.value:g}" if entry.value is not None else entry.status
        for entry in (one, other)
    ]
    return ValueError(
        f"{one.place}, and {other.place}: expected the same of one measurement, but "
        f"one says {said[0]}, the other {said[1]}. Correct one, or delete it."
    )


def _merged(
    known: list[Entry], rest: list[Entry]
) -> tuple[list[Entry], list[tuple[Entry, int | None]]]:
    r"""The lines of results and sheet, each once, and what only the sheet has."""
    entries, taken = list(known), list[tuple[Entry, int | None]]()
    places = {entry.name: i for i, entry in enumerate(known)}
    for entry in rest:
        i = places.get(entry.name)
        if i is None:
            entries.append(entry)
            if entry.status != OPEN:
                taken.append((entry, None))
        elif entry.status == OPEN:
            continue
        elif entries[i].status == OPEN:
            taken.append((entry, entries[i].line.number))
            entries[i] = entry
        elif (entry.status, entry.value) != (entries[i].status, entries[i].value):
            # The same stands in both where a call was interrupted between the files.
            raise _contradiction(entries[i], entry)
    return entries, taken


def _check_order(entries: list[Entry], found: Settings) -> None:
    r"""Ask about a value that came with the sheet's number and once more without."""
    if found.replicates:
        return
    alone = {e.row: e for e in entries if e.sheet == 0 and e.status == MEASURED}
    for entry in entries:
        before = alone.get(entry.row)
        if before and entry.status == MEASURED and entry.sheet and entry.repeat == 1:
            raise _repeated(before, entry, found)


def _check_excluded(entries: list[Entry]) -> None:
    r"""Complain about candidates that cannot be measured and were measured."""
    measured = {entry.row: entry for entry in entries if entry.status == MEASURED}
    for entry in entries:
        if entry.status == "n/a" and entry.row in measured:
            raise ValueError(
                f"{entry.place}: expected no value of a candidate that cannot be "
                f"measured, but {measured[entry.row].place} has one. Write failed in "
                "place of n/a, or delete the value."
            )


def results_with(
    now: Measurements, sheet_header: Iterable[str]
) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    r"""The results with what only the sheet has: a header and the cells of each line.

    Args:
        now: What was read.
        sheet_header: The header of a new table of results.
    """
    if now.results is None:
        return tuple(sheet_header), [dict(entry.line.cells) for entry, _ in now.taken]
    results, header = now.results, now.results.header
    header += tuple(name for name in (SHEET, REPEAT) if results.column(name) is None)
    rows = {line.number: dict(line.cells) for line in results.lines}
    added = []
    for entry, number in now.taken:
        named = ((results.column(n) or n, t) for n, t in entry.line.cells.items())
        cells = {name: text for name, text in named if name in header}
        if number is None:
            added.append(cells)
        else:
            rows[number].update(cells)
    return header, [*rows.values(), *added]
