r"""The lines of results and of the sheet: measured, open, failed, not measurable.

Both files are read alike, and may be one. A line that a sheet asked for has the sheet's
number and says the how-many-th measurement of its candidate it is: these three name it,
so that a line copied from the sheet to the results is known to be the same one. A line
without a number was measured elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botorch_lse._numerals import (
    MARKS,
    is_doubtful,
    number_with,
    without_sign,
    written,
)
from botorch_lse.cli.candidates import (
    REPEAT,
    SHEET,
    Candidates,
    check_marks,
    is_open,
)
from botorch_lse.cli.cells import (
    SOURCE,
    Faults,
    Line,
    Table,
    content_of,
    read_table,
    without_unit,
)
from botorch_lse.cli.kinds import AGAIN, OUTCOME, PAIR_OF, Fault, Kind
from botorch_lse.cli.notation import is_missing
from botorch_lse.cli.settings import Settings
from botorch_lse.cli.sources import (
    column_of_sources,
    is_fidelity,
    number_in,
    number_of,
    source_of,
)

if TYPE_CHECKING:
    from botorch_lse.data.observations import Observations

FAILED = ("failed", "fail")
"""The words for a measurement that failed and is asked for again."""
EXCLUDED = ("n/a", "not measurable", "excluded")
"""The words for a candidate that cannot be measured at all.
(``NA`` is not one of them: programs write it where nothing stands.)"""
OPEN, MEASURED = "open", "measured"
NOT_FOUND = frozenset(
    {"nd", "n.d.", "bd", "bdl", "b.d.l.", "lod", "<lod", "loq", "<loq", "not detected"}
)
"""The words for a value below a limit that is not given."""
LIMITS = {"<": "below", "<=": "below", "\N{LESS-THAN OR EQUAL TO}": "below"}
LIMITS |= {">": "above", ">=": "above", "\N{GREATER-THAN OR EQUAL TO}": "above"}
"""The signs of a limit, and the side of it on which the value lies."""
UNTOLD = "limit"
"""The status of a limit on the wrong side of the level, which tells nothing."""
_LIMIT = re.compile(f"({'|'.join(sorted(LIMITS, reverse=True))})\\s*(.+)")
WORDS = "failed (asked again) or n/a (cannot be measured, never asked again)"
"""The words that may stand in place of a number, for a message."""


@dataclass(frozen=True)
class Entry:
    r"""One line of a file, understood.

    Args:
        table: Its file.
        line: Its cells.
        row: The candidate; at the second of several sources plus the number of
            candidates, at the third twice that.
        sheet: The number of the sheet that asked for it; 0 if none did.
        repeat: The how-many-th measurement of the candidate; 0 where nobody counted.
        status: ``"open"``, ``"measured"``, ``"failed"``, ``"n/a"``, or ``"limit"`` for
            a limit that does not tell the side of the level.
        value: What was measured, or the limit of it.
        lies: ``"above"`` or ``"below"``, where the value lies of its limit.
        trials: How many trials the value counts the successes of; ``None``: it is one.
    """

    table: Table = field(repr=False)
    line: Line = field(repr=False)
    row: int
    sheet: int
    repeat: int
    status: str
    value: float | None = None
    lies: str | None = None
    trials: int | None = None

    @property
    def side(self) -> str | None:
        r"""The side of the level where a limit tells it."""
        return self.lies if self.status == MEASURED else None

    @property
    def name(self) -> tuple[int, int, int]:
        r"""The name that tells a line from others that sheets asked for."""
        return self.sheet, self.row, self.repeat

    @property
    def said(self) -> tuple[Any, ...]:
        r"""The line's statement about the measurement."""
        return self.status, self.value, self.side, self.trials

    @property
    def place(self) -> str:
        r"""The place of the line, for messages."""
        return f"{self.table.name}, line {self.line.number}"


@dataclass(frozen=True)
class Earlier:
    r"""Values of earlier campaigns, which need not be of candidates.

    Args:
        inputs: The inputs of each value.
        values: The values.
        source: The name of the source of each, or its number where sources are some.
    """

    inputs: tuple[tuple[object, ...], ...] = ()
    values: tuple[float, ...] = ()
    source: tuple[str | float, ...] = ()


@dataclass(frozen=True)
class Measurements:
    r"""All that is known of the candidates, and the measurements still out.

    Args:
        entries: All lines, each once, without those that are answered elsewhere.
        results: The table of results; ``None`` while it is not there.
        sheet: The sheet; ``None`` while it is not there; the results if both are one.
        taken: Lines of the sheet that the results do not have yet, each with the line
            of the results that waits for it, if one does.
        missing: The places of cells with a word for what is missing, such as ``NA``.
        sources: The names of all sources, if there are several: those that measure, or
            the only one, then those of earlier values alone.
        earlier: Values of earlier campaigns.
    """

    entries: tuple[Entry, ...]
    results: Table | None
    sheet: Table | None
    taken: tuple[tuple[Entry, int | None], ...]
    missing: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    earlier: Earlier = field(default=Earlier(), repr=False)

    def having(self, *status: str) -> list[Entry]:
        r"""The lines that have one of some statuses."""
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
        r"""The number of measurements of each candidate that are made or out."""
        return Counter(entry.row for entry in self.having(MEASURED, OPEN, UNTOLD))

    @cached_property
    def known(self) -> dict[int, Entry]:
        r"""The candidates whose side a limit tells, each with the limit."""
        return {entry.row: entry for entry in self.entries if entry.side is not None}

    @cached_property
    def untold(self) -> dict[int, Entry]:
        r"""The candidates known only by a limit that does not tell the side."""
        rows = {entry.row for entry in self.having(MEASURED)}
        return {e.row: e for e in self.having(UNTOLD) if e.row not in rows}

    @cached_property
    def owed(self) -> list[int]:
        r"""The candidates to ask again: asked for, but neither measured nor out."""
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

    def remarks(self, sheet_header: Iterable[str]) -> list[str]:
        r"""The columns that people have added: a date, who measured, a remark.

        Args:
            sheet_header: The columns of a sheet as it is written.
        """
        found = list[str]()
        for table in (self.results, self.sheet):
            if table is None:
                continue
            ours = {table.column(name) for name in (*sheet_header, *found)}
            found += [name for name in table.header if name not in ours]
        return found

    def remarks_of(self, sheet_header: Iterable[str]) -> dict[str, dict[int, str]]:
        r"""The notes that people wrote beside values, by column and candidate.

        Args:
            sheet_header: The columns of a sheet as it is written.
        """
        names, entries = self.remarks(sheet_header), self.entries
        said: dict[str, dict[int, list[str]]] = {name: {} for name in names}
        for entry in entries:
            for name in names:
                there = entry.table.column(name)
                text = "" if there is None else entry.line.cells[there]
                texts = said[name].setdefault(entry.row, [])
                if text and text not in texts:
                    texts.append(text)
        return {
            name: {row: "; ".join(texts) for row, texts in rows.items()}
            for name, rows in said.items()
        }

    @property
    def last_sheet(self) -> int:
        r"""The number of the last sheet; 0 before any."""
        return max((entry.sheet for entry in self.entries), default=0)

    def by_sheet(
        self, places: Mapping[int, int], *, with_limits: bool
    ) -> list[Observations]:
        r"""The measurements sheet by sheet, those made elsewhere first.

        Each has the number of its sheet as the label of its round. What no sheet asked
        for has none: nobody knows how often it was looked at while it came.

        Args:
            places: The rows of the pool by candidate.
            with_limits: Whether limits that tell the side stand for their values.
        """
        # Not at the top: the files are read without torch.
        import torch

        from botorch_lse.data.observations import Observations

        done = [e for e in self.having(MEASURED) if with_limits or e.side is None]
        groups = []
        for sheet in sorted({entry.sheet for entry in done}):
            part = [entry for entry in done if entry.sheet == sheet]
            rows = torch.tensor([places[entry.row] for entry in part])
            values = torch.tensor([entry.value for entry in part], dtype=torch.float64)
            trials = [entry.trials or 1 for entry in part]
            is_counted = any(entry.trials is not None for entry in part)
            told = Observations(rows, values, trials=trials if is_counted else None)
            groups.append(told.at_round(sheet) if sheet else told)
        return groups


def measurements(found: Settings, candidates: Candidates) -> Measurements:
    r"""Read the results and the sheet.

    Args:
        found: The settings.
        candidates: The candidates.

    Raises:
        ValueError: If a line is not what it should be, or stands there twice.
    """
    faults = Faults()
    tables = dict[str, Table | None]()
    for name in ("results", "out"):
        with faults.noted():
            tables[name] = _table_of(found, name)
    faults.check()
    results, sheet = tables["results"], tables["out"]
    if results is not None and sheet is not None and results.path == sheet.path:
        sheet = results
    files = (results,) if sheet is results else (results, sheet)
    there = tuple(table for table in files if table is not None)
    for own in there:
        for name in candidates.inputs:
            with faults.noted():
                own.column(name, has_unit=True)  # which may be another one
    faults.check()
    reader = _Reader(candidates, found, there)
    sources, earlier = found.sources, Earlier()
    if found.sources or found.history is not None:
        sources, earlier = reader.earlier()
    read = [list[Entry](), list[Entry]()]
    for entries, table in zip(read, files, strict=False):
        with faults.noted():
            entries += _without_repeats(reader.entries(table), found)
    faults.check()
    entries, taken = _merged(read[0], read[1], found)
    with faults.noted():
        _check_order(entries, found)
    measured = Counter(entry.row for entry in entries if entry.status == MEASURED)
    # A line is answered, too, where its value came without the number of the sheet.
    entries = [e for e in entries if e.status != OPEN or measured[e.row] < e.repeat]
    with faults.noted():
        _check_excluded(entries)
    with faults.noted():
        _check_limits(entries, found.level)
    if found.kind is not None and found.trials is None:
        with faults.noted():
            _check_words(entries, found.kind, found.column)
    faults.check()
    excluded = {entry.row for entry in entries if entry.status == "n/a"}
    entries = [e for e in entries if e.status != OPEN or e.row not in excluded]
    missing = tuple(place for table in files for place in reader.missing(table))
    given = tuple(entries), results, sheet, tuple(taken), missing
    return Measurements(*given, sources, earlier)


def _table_of(found: Settings, name: str) -> Table | None:
    path = found.file(name)
    if content_of(path) is None:
        return None
    table = read_table(path.resolve(), found.encoding, found.names)
    is_ours = table.column(SHEET) is not None  # and was written with all cells
    if is_ours and table.unended is not None and table.unended < len(table.header):
        raise ValueError(
            f"{table.last_words}, and has {table.unended} cells of "
            f"{len(table.header)}: the file was cut short. Restore it from a copy, or "
            "complete the line and end it with a line break."
        )
    return table


@dataclass(frozen=True)
class _Reader:
    r"""A reader that understands the lines of a file.

    Args:
        candidates: What they are about.
        found: The settings.
        others: The tables of results, which all have one unit of them.
    """

    candidates: Candidates
    found: Settings
    others: tuple[Table, ...]

    def column_of(self, table: Table) -> str:
        r"""The column of what is measured.

        Raises:
            ValueError: If it has none, or one of another unit than other tables.
        """
        column = table.column(self.found.column, has_unit=True)
        if column is None:
            raise ValueError(
                f"{table.name}: expected the column {self.found.column!r} of what is "
                f"measured, but it has {', '.join(table.header)}. Add it, or "
                f"{self.found.notation.advice('column', 'NAME')}.{table.doubt}"
            )
        if column != without_unit(column):
            for other in self.others:
                if self.found.column not in other.header:
                    other.column(column, has_unit=True)
        return column

    def entries(self, table: Table | None) -> list[Entry]:
        r"""The lines with content; those that only list a candidate are left out."""
        if table is None:
            return []
        found, faults, column = list[Entry](), Faults(), self.column_of(table)
        with faults.noted():
            check_marks(table, column, self.found.notation)
        is_asked = bool(faults.said)
        for line in table.lines:
            with faults.noted():
                sheet = self._count(table, line, SHEET)
                text = line.cells[column]
                if is_asked and is_doubtful(without_sign(text)):
                    continue
                if sheet or not is_open(text, self.found.open):
                    found.append(self._entry(table, line, column, sheet))
        faults.check()
        return found

    def missing(self, table: Table | None) -> list[str]:
        if table is None:
            return []
        column = self.column_of(table)
        found = (line for line in table.lines if is_missing(line.cells[column]))
        return [
            f"{line.cells[column]} in {table.name}, line {line.number}"
            for line in found
        ]

    def _entry(self, table: Table, line: Line, column: str, sheet: int) -> Entry:
        text, faults = line.cells[column], Faults()
        is_out = is_open(text, self.found.open)
        status, value, row, repeat = OPEN if is_out else self._status(text), None, 0, 0
        lies, limit, trials = None, _LIMIT.fullmatch(text), None
        with faults.noted():
            if status == MEASURED and self.found.kind is not None:
                trials = self._trials(table, line)
                value = self._result(self.found.kind, table, line, column, trials)
            elif status == MEASURED:
                number = text if limit is None else limit[2]
                value = self._value(table, line, column, number)
                if limit is not None:
                    lies, beyond = LIMITS[limit[1]], value - self.found.level
                    if (beyond > 0) if lies == "below" else (beyond < 0):
                        status = UNTOLD
        with faults.noted():
            row = self.candidates.find(line, table)
        if self.found.sources:
            with faults.noted():
                number = source_of(line, table, self.found.sources, self.found.notation)
                row += number * len(self.candidates)
                target = self.found.target or self.found.sources[-1]
                if lies is not None and self.found.sources[number] != target:
                    status = UNTOLD  # of what is decided it tells no side
        with faults.noted():
            repeat = self._count(table, line, REPEAT) or 1 if sheet else 0
        faults.check()
        return Entry(table, line, row, sheet, repeat, status, value, lies, trials)

    def earlier(self) -> tuple[tuple[str, ...], Earlier]:
        r"""The names of all sources, and the values of earlier campaigns.

        Raises:
            ValueError: If a line of their table is not what it should be.
        """
        own, found = self.candidates, self.found
        if own.table.column(SOURCE) is not None:
            raise ValueError(
                f"{own.table.name}: expected no column {SOURCE!r}, which says in other "
                "tables where values come from. Rename it."
            )
        sources = [*found.sources] or [own.table.name]
        if found.history is None:
            return tuple(sources), Earlier()
        table = read_table(
            found.file("history"), found.encoding, found.names, takes_workbooks=True
        )
        meaning = "of which campaign each value is (any name, such as 2025)"
        if is_fidelity(found.sources):
            meaning = "of which level each value is (a number)"
        column, named = self.column_of(table), column_of_sources(table, meaning)
        asked = {name: table.column(name, has_unit=True) for name in own.inputs}
        absent = [name for name, there in asked.items() if there is None]
        if absent:
            raise ValueError(
                f"{table.name}: expected the inputs of {own.table.name}, but column "
                f"{absent[0]!r} is missing. Add it."
            )
        check_marks(table, column, self.found.notation)
        faults = Faults()
        lines = list[tuple[tuple[object, ...], float, str | float]]()
        for line in table.lines:
            text = line.cells[column]
            if is_open(text, found.open) or self._status(text) != MEASURED:
                continue
            with faults.noted():
                inputs = own.inputs_of(line, table)
                self._check_inputs(line, table, inputs)
                value = self._value(table, line, column, text, is_earlier=True)
                if not (text := line.cells[named]):
                    came, remedy = "the cell is empty", "write one, such as the year"
                    wanted = "the name of a source"
                    raise table.complaint(line, named, wanted, came, remedy)
                if is_fidelity(found.sources):
                    source = number_in(line, table, named, found.notation)
                    if source is None:
                        wanted = f"a number, as {', '.join(found.sources)} are"
                        came = f"got {text!r}"
                        remedy = "write its number, or give sources other names"
                        raise table.complaint(line, named, wanted, came, remedy)
                    lines.append((inputs, value, source))
                else:
                    at = number_of(text, sources)
                    lines.append((inputs, value, sources[at]))
        faults.check()
        if not lines:
            raise ValueError(
                f"{table.name}: expected values of earlier campaigns in column "
                f"{column}, but got none. Leave `history` out."
            )
        return tuple(sources), Earlier(*zip(*lines, strict=True))

    def _check_inputs(
        self, line: Line, table: Table, inputs: tuple[object, ...]
    ) -> None:
        r"""Complain about an input of an earlier value that no model knows."""
        own = self.candidates
        for name, value in zip(own.inputs, inputs, strict=True):
            there, words = str(table.column(name)), own.frame[name]
            if isinstance(value, str) and value not in set(words):
                wanted = f"a word of {own.table.name} ({', '.join(sorted({*words}))})"
                remedy = "correct it, or delete the line, as no candidate is like it"
            elif name in own.logs and value <= 0:  # type: ignore[operator]  # a number
                wanted, remedy = "a number above 0, which has a logarithm", "correct it"
            else:
                continue
            came = f"got {line.cells[there]!r}"
            raise table.complaint(line, there, wanted, came, remedy)

    def _status(self, text: str) -> str:
        r"""The status of a line that is not open."""
        word = " ".join(text.casefold().split())
        if word in (FAILED if self.found.kind is None else (AGAIN,)):
            return FAILED[0]
        return "n/a" if word in EXCLUDED else MEASURED

    def _trials(self, table: Table, line: Line) -> int | None:
        r"""The number of trials of a line; ``None`` where each line is one."""
        if self.found.trials is None:
            return None
        column = table.column(self.found.trials)
        if column is None:
            raise ValueError(
                f"{table.name}: expected the column {self.found.trials!r} of how many "
                f"trials a line has, but it has {', '.join(table.header)}. Add it."
            )
        text = line.cells[column]
        number = self.found.notation.with_mark(table.mark(column)).number(text)
        if number is None or number != int(number) or number < 1:
            wanted, remedy = "a whole number of trials", "write how many there were"
            raise table.complaint(line, column, wanted, f"got {text!r}", remedy)
        return int(number)

    def _result(
        self, kind: Kind, table: Table, line: Line, column: str, trials: int | None
    ) -> float:
        r"""The result that is no measured number, or the number of successes.

        Args:
            kind: What results are.
            table: The file.
            line: The line.
            column: The column of what is measured.
            trials: How many trials the line has; ``None``: it is one.
        """
        text = line.cells[column]
        number = self.found.notation.with_mark(table.mark(column)).number(text)
        if trials is None:
            found = kind.result_of(text, number)
        elif number is None or number != int(number) or not 0 <= number <= trials:
            wanted = f"a whole number of successes in {trials} trials"
            found = Fault(wanted, "write how many there were")
        else:
            found = number
        if isinstance(found, Fault):
            came = f"got {text!r}"
            raise table.complaint(line, column, found.wanted, came, found.remedy)
        return found

    def _value(
        self,
        table: Table,
        line: Line,
        column: str,
        number: str,
        is_earlier: bool = False,
    ) -> float:
        r"""The measured value, or the limit of it.

        Args:
            table: The file.
            line: The line.
            column: The column of what is measured.
            number: The cell without the sign of a limit.
            is_earlier: Whether it is of an earlier campaign, of which no limit counts.
        """
        text, notation = (
            line.cells[column],
            self.found.notation.with_mark(table.mark(column)),
        )
        value = notation.number(number)
        if value is None and number != text and not is_doubtful(number):
            # A limit shows no mark to its column, so that it may have another one.
            found = (number_with(mark, number) for mark in MARKS)
            value = next((value for value in found if value is not None), None)
        came, below = f"got {text!r}", "write the limit below which it lies, such as "
        if is_earlier:
            below = "leave the cell empty, as earlier values may not be limits such as "
        is_limit = is_earlier and _LIMIT.fullmatch(text) is not None
        if value is None and (is_limit or text.casefold() in NOT_FOUND):
            wanted = "a number" if is_earlier else "a number or a limit"
            raise table.complaint(line, column, wanted, came, f"{below}<0.5")
        if value is None:
            sign = text.removesuffix(number).strip()
            remedy = notation.repair(number, sign)
            if text.casefold() in PAIR_OF:
                asked = self.found.notation.advice("outcome", OUTCOME)
                remedy = f"if results are yes or no, {asked}, with a level that is a "
                remedy += "probability of yes, such as 0.75"
            elif not any(map(str.isdigit, text)):
                asked = self.found.notation.advice("open", text)
                remedy += f", leave the cell empty, or write {WORDS}; if {text!r} "
                remedy += f"says that it is not measured yet, {asked}"
            raise table.complaint(line, column, "a number", came, remedy)
        if self.found.log_result and value <= 0:
            wanted = "a number above 0, which has a logarithm"
            remedy = f"{below}<0.1; or set log_result = false in {self.found.path.name}"
            raise table.complaint(line, column, wanted, came, remedy)
        return value

    def _count(self, table: Table, line: Line, name: str) -> int:
        r"""The number of the sheet or of the repeat; 0 where the cell is empty."""
        column = table.column(name)
        text = "" if column is None else line.cells[column]
        if not text:
            return 0
        notation = self.found.notation.with_mark(table.mark(column))
        number = notation.number(text)
        if number is None or number != int(number) or number < 1:
            raise table.complaint(
                line,
                str(column),
                "a whole number, as the sheet has it",
                f"got {text!r}",
                "restore it, or leave the cell empty if no sheet asked for the line",
            )
        return int(number)


def _without_repeats(entries: Iterable[Entry], found: Settings) -> list[Entry]:
    r"""The lines of one file, each once; a value given twice is asked about."""
    kept = dict[tuple[int, int, int], list[Entry]]()
    faults = Faults()
    for entry in entries:
        others = kept.setdefault(entry.name, [])
        before = others[-1] if others else None
        if before is None or before.status == OPEN:
            others[-1:] = [entry]
        elif entry.status == MEASURED == before.status:
            if not found.replicates:
                faults.said.append(str(_repeated(before, entry, found)))
            others.append(entry)
        elif entry.status in (OPEN, before.status):
            continue  # to wait or to fail twice says no more than once
        elif entry.sheet == 0:
            others.append(entry)
        else:
            faults.said.append(str(_contradiction(before, entry)))
    faults.check()
    return [entry for others in kept.values() for entry in others]


def _repeated(one: Entry, other: Entry, found: Settings) -> ValueError:
    value = one.value == other.value and one.value is not None
    return ValueError(
        f"{one.place}, and {other.place}: expected each measurement once, but both are "
        f"{'the same value' if value else 'values'} of one candidate. If a line was "
        "copied twice, delete one; if it was measured twice, "
        f"{found.notation.advice('replicates', '')}."
    )


def _contradiction(one: Entry, other: Entry) -> ValueError:
    said = [
        written(entry.value) if entry.value is not None else entry.status
        for entry in (one, other)
    ]
    return ValueError(
        f"{one.place}, and {other.place}: expected the same of one measurement, but "
        f"one says {said[0]}, the other {said[1]}. Correct one, or delete it."
    )


def _merged(
    known: list[Entry], rest: list[Entry], found: Settings
) -> tuple[list[Entry], list[tuple[Entry, int | None]]]:
    r"""The lines of results and sheet, each once, and what only the sheet has."""
    entries, taken = list(known), list[tuple[Entry, int | None]]()
    places = {entry.name: i for i, entry in enumerate(known)}
    faults = Faults()
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
        elif entry.said != entries[i].said:
            # The same stands in both where a call was interrupted between the files.
            said = str(_contradiction(entries[i], entry))
            if entry.status == MEASURED == entries[i].status:
                replicates = found.notation.advice("replicates", "")
                said += (
                    f" If both were measured, move the line of {entry.table.name} to "
                    f"{entries[i].table.name}, its cells {SHEET} and {REPEAT} empty, "
                    f"and {replicates}."
                )
            faults.said.append(said)
    faults.check()
    return entries, taken


def _check_order(entries: list[Entry], found: Settings) -> None:
    r"""Ask about a value given both with the sheet's number and without."""
    if found.replicates:
        return
    alone = {e.row: e for e in entries if e.sheet == 0 and e.status == MEASURED}
    faults = Faults()
    for entry in entries:
        before = alone.get(entry.row)
        if before and entry.status == MEASURED and entry.sheet and entry.repeat == 1:
            faults.said.append(str(_repeated(before, entry, found)))
    faults.check()


def _check_excluded(entries: list[Entry]) -> None:
    r"""Complain about candidates marked as not measurable that were measured."""
    measured = {entry.row: entry for entry in entries if entry.status == MEASURED}
    faults = Faults()
    for entry in entries:
        if entry.status == "n/a" and entry.row in measured:
            faults.said.append(
                f"{entry.place}: expected no value of a candidate that cannot be "
                f"measured, but {measured[entry.row].place} has one. Write failed in "
                "place of n/a, or delete the value."
            )
    faults.check()


def _check_limits(entries: list[Entry], level: float) -> None:
    r"""Complain if limits and values put a candidate on both sides of the level."""
    limits = {entry.row: entry for entry in entries if entry.side is not None}
    faults = Faults()
    for entry in entries:
        limit = limits.get(entry.row)
        if limit is None or entry.status != MEASURED or entry.value is None:
            continue
        own = entry.side or ("above" if entry.value > level else "below")
        if own != limit.side:
            faults.said.append(
                f"{entry.place}: expected a value {limit.side} the level, as the limit "
                f"in {limit.place}, says of the same candidate, but got "
                f"{written(entry.value)}. Correct one, or delete it."
            )
    faults.check()


def _check_words(entries: list[Entry], kind: Kind, name: str) -> None:
    r"""Complain about words for yes and no of two pairs, one of which may be a slip."""
    faults, first = Faults(), None
    for entry in entries:
        column = entry.table.column(name)
        if entry.status != MEASURED or column is None:
            continue
        text = entry.line.cells[column]
        if (pair := kind.pair_of(text)) is None:
            return
        if first is None:
            first, (yes, no) = entry, pair
        elif pair != (yes, no):
            faults.said.append(
                f"{entry.place}, column {column}: expected {yes} or {no}, as in "
                f"{first.place}, but got {text!r}; write {yes if entry.value else no}."
            )
    faults.check()


def results_with(
    now: Measurements, sheet_header: Iterable[str]
) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    r"""The results with the sheet's additions: a header and the cells of each line.

    Args:
        now: What was read.
        sheet_header: The header of a new table of results.
    """
    if now.results is None:
        header = (*sheet_header, *now.remarks(sheet_header))
        return header, [dict(entry.line.cells) for entry, _ in now.taken]
    results, header = now.results, now.results.header
    header += tuple(name for name in (SHEET, REPEAT) if results.column(name) is None)
    more = now.remarks(sheet_header)
    header += tuple(name for name in more if results.column(name) is None)
    rows = {line.number: dict(line.cells) for line in results.lines}
    added = []
    for entry, number in now.taken:
        named = written_as_in(results, entry.line.cells, entry.table)
        cells = {name: text for name, text in named.items() if name in header}
        if number is None:
            added.append(cells)
        else:
            rows[number].update(cells)
    return header, [*rows.values(), *added]


def written_as_in(
    target: Table, cells: Mapping[str, str], source: Table
) -> dict[str, str]:
    r"""Cells under the column names and with the decimal marks of another file.

    Args:
        target: The file to which they go.
        cells: The cells of a line by column.
        source: The file from which they come.
    """
    found = {}
    for name, text in cells.items():
        there = target.column(name)
        old = source.mark(name) if name in source.header else None
        new = None if there is None else target.mark(there)
        if old and new and old != new and number_with(old, text) is not None:
            text = text.replace(old, new)
        found[there or name] = text
    return found
