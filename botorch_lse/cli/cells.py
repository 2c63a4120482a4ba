r"""CSV files as people keep them: read cell by cell, written whole or not at all.

Every cell is kept as the text that stands in the file, with its line, so that a
complaint can name the place, and what nobody asked to change is written back as it was.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from botorch_lse._files import ChangedError, Seen, read_whole, write_whole
from botorch_lse._numerals import (
    clear_mark,
    is_doubtful,
    is_number,
    marks_of,
    readable,
    without_sign,
)

SOURCE = "source"
"""The column that says which source measured a line, or is to measure it."""
MOST_FAULTS = 40
"""The largest number of complaints that a call shows: more are faults of one kind."""
DELIMITERS = (",", ";", "\t", "|")
"""The characters that may stand between two cells."""
_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
CODE_PAGES = (
    "gb18030",
    "shift_jis",
    "euc_kr",
    "big5",
    "cp1251",
    "cp1250",
    "cp1253",
    "mac_roman",
)
"""The encodings that are tried if the usual ones do not show a name that is asked for.
They are those of other alphabets, and of old Macs."""
FALLBACK = "cp1252"
"""The encoding of older Excels in western Europe, in which any byte is a letter."""
_BLANK = " \t\r\n"
"""The characters that are blank in every encoding: any other may be a letter."""
ZIPPED = b"PK\x03\x04"
"""The first bytes of workbooks since 2007, which are zip archives."""
_WORKBOOKS = (ZIPPED, b"\xd0\xcf\x11\xe0")
"""The first bytes of workbooks; the others are those of old versions of Excel."""
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
"""The endings of workbooks' names: they promise what a CSV file does not hold."""
_LOOKED_AT = 1000
"""The number of lines that are looked at to tell the delimiter of a file."""
_SEPARATOR = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""The first line by which Excel is told what stands between two cells."""
_UNIT = re.compile(r"\s*[\[(][^\])]*[\])]\s*$")


class FaultsError(ValueError):
    r"""The error that lists all faults found in files.

    Args:
        said: The complaints.
    """

    def __init__(self, said: Sequence[str]) -> None:
        self.said = list(said)
        more = len(said) - MOST_FAULTS
        lines = [*said[:MOST_FAULTS], *[f"{more} more like these."] * (more > 0)]
        if len(said) > 1:
            lines.insert(0, f"{len(said)} things to correct:")
        super().__init__("\n- ".join(lines))


@dataclass
class Faults:
    r"""A list of complaints about files, so that one call reports all of them.

    Args:
        said: What was complained about so far.
    """

    said: list[str] = field(default_factory=list)

    @contextmanager
    def noted(self) -> Iterator[None]:
        r"""A context that notes a complaint raised inside and goes on after it."""
        try:
            yield
        except FaultsError as error:
            self.said += error.said
        except ValueError as error:
            self.said.append(str(error))

    def check(self) -> None:
        r"""Raise the noted complaints.

        Raises:
            FaultsError: If something was.
        """
        if self.said:
            raise FaultsError(list(dict.fromkeys(self.said)))


@dataclass(frozen=True)
class Style:
    r"""The style of a file: what a program that reads it next will expect.

    Args:
        delimiter: The separator of cells.
        encoding: Of its text, with a byte order mark where there was one.
        newline: What ends a line.
        before: The text in front of the header: ``sep=;``, lines that begin with ``#``.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    newline: str = "\n"
    before: str = ""

    @property
    def of_another(self) -> Style:
        r"""The style for another file, without remarks that belong to this one."""
        first = self.before.strip().partition("\n")[0].strip()
        is_told = _SEPARATOR.fullmatch(first)
        return replace(self, before=f"{first}{self.newline}" if is_told else "")


@dataclass(frozen=True)
class Line:
    r"""A line of a file.

    Args:
        number: As an editor counts: the header is line 1 as a rule.
        cells: The text of each cell by the name of its column.
    """

    number: int
    cells: Mapping[str, str]


@dataclass(frozen=True)
class Table:
    r"""A file of lines with a header.

    Args:
        path: Where it stands.
        header: The names of its columns.
        lines: Its lines, without empty ones.
        style: How it is written.
        seen: What its file held.
        unended: How many cells the last line has, if no line break ends it.
    """

    path: Path
    header: tuple[str, ...]
    lines: tuple[Line, ...] = field(repr=False)
    style: Style = Style()
    seen: Seen = field(default=Seen(None), repr=False)
    unended: int | None = None

    @property
    def name(self) -> str:
        r"""The file's name in complaints."""
        return self.path.name

    @property
    def last_words(self) -> str:
        r"""The end of a file that lacks a final line break, for messages."""
        line = self.lines[-1]
        words = self.style.delimiter.join(line.cells.values())
        return f"{self.name}, line {line.number}: no line break ends {words!r}"

    @cached_property
    def _columns(self) -> dict[str, str | None]:
        r"""Columns by looser names; ``None`` where several share one."""
        found: dict[str, str | None] = {}
        for name in self.header:
            for loose in {name.casefold(), without_unit(name).casefold()}:
                found[loose] = None if loose in found else name
        return found

    def column(self, wanted: str, has_unit: bool = False) -> str | None:
        r"""The header's name for a column; ``None`` if the file has no such column.

        Capitals do not matter, nor a unit behind one of two names, "strength (MPa)".

        Args:
            wanted: The name as somebody else wrote it.
            has_unit: Whether what is in brackets behind it is a unit, not a remark.

        Raises:
            ValueError: If the name fits several columns, or one of another unit.
        """
        wanted = unicodedata.normalize("NFC", " ".join(wanted.split()))
        if wanted in self.header:
            return wanted
        for loose in (wanted.casefold(), without_unit(wanted).casefold()):
            found = self._columns.get(loose, "")
            if found is None:
                raise ValueError(
                    f"{self.name}: expected one column {wanted!r}, but several have "
                    f"that name: {', '.join(self.header)}. Write the whole name with "
                    "its unit."
                )
            if found:
                ends = (name[len(without_unit(name)) :] for name in (wanted, found))
                units = {re.sub(r"[][()\s]", "", end).casefold() for end in ends}
                if has_unit and len(units - {""}) > 1:
                    raise ValueError(
                        f"{self.name}: expected the column {wanted!r}, but got "
                        f"{found!r}. If these are two units, convert the values and "
                        "rename the column; else write the same in both files."
                    )
                return found
        return None

    @property
    def doubt(self) -> str:
        r"""A sentence on names that may look wrong because the encoding was guessed."""
        if self.style.encoding != FALLBACK or "".join(self.header).isascii():
            return ""
        return (
            " If its names look wrong, it was saved in another code page: save it as "
            "'CSV UTF-8', or name its encoding, as in --encoding gbk."
        )

    def texts(self, column: str) -> list[str]:
        r"""The cells of a column."""
        return [line.cells[column] for line in self.lines]

    @cached_property
    def _marks(self) -> dict[str, str | None]:
        r"""The decimal mark that each column shows by itself."""
        return {name: clear_mark(self.texts(name)) for name in self.header}

    def mark(self, column: str | None = None) -> str | None:
        r"""The decimal mark of a column; ``None`` if neither it nor others show one.

        Args:
            column: Its name in the header; default that of the file.
        """
        own = None if column is None else self._marks[column]
        return own or (next(iter(self.marks)) if len(self.marks) == 1 else None)

    @property
    def marks(self) -> set[str]:
        r"""The decimal marks that columns show, but for names of sources."""
        own = self._marks.items()  # a source may be called 0.25 in any table
        return {mark for name, mark in own if mark and name.casefold() != SOURCE}

    def doubtful(self, column: str) -> Line | None:
        r"""The first line with a mark that may separate thousands, if all may.

        The mark is clear if one number of the column shows it. It is also clear if all
        numbers of the column have three decimals, and other columns show the mark.

        Args:
            column: The name of the column in the header.
        """
        first, are_marked, marks = None, True, set[str]()
        for line in self.lines:
            text = without_sign(line.cells[column])
            if not is_number(text):
                continue
            own = marks_of(text)
            if own and not is_doubtful(text):
                return None  # in large tables long before their end
            first = line if own and first is None else first
            are_marked, marks = are_marked and bool(own), marks | own
        return None if are_marked and marks == {self.mark()} else first

    def complaint(
        self, line: Line | int, column: str, wanted: str, came: str, remedy: str
    ) -> ValueError:
        r"""An error about one cell: its place, its fault, and a remedy.

        Args:
            line: The line or its number.
            column: The name of the column.
            wanted: What was expected: "a number".
            came: What stands there: "got '57,8'".
            remedy: What to do.
        """
        number = line.number if isinstance(line, Line) else line
        return ValueError(
            f"{self.name}, line {number}, column {column}: expected {wanted}, but "
            + readable(f"{came}; {remedy}.")
        )


def without_unit(name: str) -> str:
    r"""The name of a column without a unit in brackets behind it.

    Example:
        >>> without_unit("strength (MPa)")
        'strength'
    """
    return _UNIT.sub("", name).strip() or name


def read_table(
    path: Path,
    encoding: str | None = None,
    names: Sequence[str] = (),
    takes_workbooks: bool = False,
) -> Table:
    r"""Read a CSV file, whatever its delimiter, encoding and ends of lines.

    Args:
        path: The file.
        encoding: That of its text, if somebody said it.
        names: Columns that are looked for, by which an encoding may be told.
        takes_workbooks: Whether a workbook of Excel will do, which is never written.

    Raises:
        ValueError: If it is no table: not there, an Excel workbook, empty, two columns
            of one name, a quotation mark that is not closed, or a line with more cells
            than the header. A line with fewer cells is taken, as spreadsheets leave off
            empty ones.
    """
    raw = content_of(path)
    if raw is None:
        raise ValueError(f"{path}: cannot be read ({os.strerror(errno.ENOENT)}).")
    is_book = takes_workbooks and raw.startswith(ZIPPED)
    if is_book:
        from botorch_lse.cli.workbooks import lines_of  # here: few calls need it

        text, encoding = lines_of(raw, path.name), "utf-8-sig"
    else:
        text, encoding = decoded(raw, path.name, encoding, names)
    newline = "\r\n" if "\r\n" in text else "\n"
    if not text.strip(f'{"".join(DELIMITERS)}" \r\n'):
        raise ValueError(f"{path.name}: expected a header and lines, but it is empty.")
    blank = _BLANK if encoding == FALLBACK else None
    delimiters = (",",) if is_book else DELIMITERS
    reading, faults = _Reading.best(text, blank, delimiters), Faults()
    if not reading.rows:
        raise ValueError(f"{path.name}: expected a header, but there are only remarks.")
    header, lines = reading.header, reading.body
    faults.said += [f"{path.name}, {said}" for said in _faults_of_marks(text, reading)]
    faults.check()  # of lines that a mark swallows nothing more can be said
    with faults.noted():
        _check_header(reading, path.name)
    long = [(n, cells) for n, cells in lines if any(cells[len(header) :])]
    faults.said += [
        f"{path.name}, line {number}: expected {len(header)} cells as in the header, "
        f"but got {len(cells)}. A text or number with {reading.delimiter!r} in it "
        "needs quotation marks around it."
        for number, cells in long * (not faults.said)
    ]
    faults.check()
    padded = (cells + [""] * (len(header) - len(cells)) for _, cells in lines)
    return Table(
        path,
        tuple(header),
        tuple(
            Line(number, dict(zip(header, cells, strict=False)))
            for (number, _), cells in zip(lines, padded, strict=True)
        ),
        Style(reading.delimiter, encoding, newline, reading.before),
        Seen.of(raw),
        None if text.endswith(("\n", "\r")) else len(reading.rows[-1][1]),
    )


def content_of(path: Path) -> bytes | None:
    r"""The content of a file; ``None`` if there is no such file.

    Args:
        path: The file, or a link to it.

    Raises:
        ValueError: If it cannot be read, or is a link to nowhere.
    """
    try:
        return read_whole(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}).") from error


@dataclass(frozen=True)
class _Reading:
    r"""A text as lines of cells, read with one delimiter.

    Args:
        delimiter: The separator of cells.
        before: The text in front of the header.
        rows: The cells of each line and its number; the first is the header.
        blank: What is blank; ``None``: all that Unicode calls so.
    """

    delimiter: str
    before: str
    rows: list[tuple[int, list[str]]] = field(repr=False)
    blank: str | None = None

    @classmethod
    def best(
        cls, text: str, blank: str | None = None, among: Sequence[str] = DELIMITERS
    ) -> _Reading:
        r"""The reading in which header and lines agree best.

        The header alone says too little: its names may hold any delimiter, as in
        ``Temperature, °C;Time, min``, and so may numbers with a decimal comma.

        Args:
            text: What the file holds, something.
            blank: What is blank in it.
            among: The delimiters that it may have, if its first line names none.
        """
        lines = list(io.StringIO(text, newline=""))
        first = next(i for i, line in enumerate(lines) if line.strip())
        told = _SEPARATOR.fullmatch(lines[first].strip("\r\n"))
        delimiters: Sequence[str] = among if told is None else (told[1],)
        # All that stand nowhere leave the lines whole: one of them shows how that is.
        none = [each for each in delimiters if each not in text][1:]
        delimiters = [each for each in delimiters if each not in none]
        start = first if told is None else first + 1
        readings = [_Reading.of(lines, start, each, blank) for each in delimiters]
        found = max(readings, key=_Reading.agreement)
        if len(found.header) == 1 and not all(
            is_number(cells[0]) for _, cells in found.body
        ):  # perhaps a title above the header: the lines below have their own delimiter
            return next((other for other in readings if other.is_even), found)
        return found

    @classmethod
    def of(
        cls, lines: list[str], start: int, delimiter: str, blank: str | None
    ) -> _Reading:
        r"""The reading with one delimiter.

        Args:
            lines: The lines of the file with their ends.
            start: Where the header or a remark may begin.
            delimiter: What is taken for the delimiter.
            blank: What is blank.
        """
        is_remark = [line.lstrip('" ').startswith("#") for line in lines[start:]]
        header = start + [*is_remark, False].index(False)
        rows = _cells(lines, header, delimiter, blank)
        found = cls(delimiter, "", rows, blank)
        if header > start:
            # "#,heat,time" is no remark but names its first column so.
            rows = _cells(lines, header - 1, delimiter, blank)
            longer = cls(delimiter, "", rows, blank)
            names, cells = longer.header, found.header
            is_header = len(names) == len(cells) > 1
            if is_header and not _has_number(names) and _has_number(cells):
                header, found = header - 1, longer
        return replace(found, before="".join(lines[:header]))

    @property
    def header(self) -> list[str]:
        r"""The names of the columns, without line breaks in them."""
        if not self.rows:
            return []
        pieces = "[ \\t\\r\\n]+" if self.blank else r"\s+"
        names = [re.sub(pieces, " ", cell) for cell in self.rows[0][1]]
        while names and not names[-1]:  # Excel leaves columns that were once used
            names.pop()
        return names

    @property
    def body(self) -> list[tuple[int, list[str]]]:
        return self.rows[1:]

    @property
    def is_even(self) -> bool:
        r"""Whether the lines behind the first have one number of cells, several."""
        counts = {len(cells) for _, cells in self.body}
        return len(counts) == 1 and max(counts) > 1

    def agreement(self) -> tuple[bool, float, int]:
        r"""The agreement of header and lines; larger is better.

        Lines may be cut behind their last cell that holds something, which is why they
        agree a little; numbers that a delimiter cuts into pieces do not look like any.
        """
        n, told = len(self.header), [cells for _, cells in self.body]
        exact = sum(len(cells) == n or _is_padded(cells, n) for cells in told)
        short = sum(len(cells) < n for cells in told)
        agree = (exact + short / 4) / len(told) if told else 1.0
        filled = [cell for cells in told[:_LOOKED_AT] for cell in cells if cell]
        numbers = sum(map(is_number, filled)) / max(1, len(filled))
        return n > 1 and agree > 0, agree * (1 + numbers), n


def _cells(
    lines: list[str], start: int, delimiter: str, blank: str | None
) -> list[tuple[int, list[str]]]:
    r"""The cells of each line that has any, with its number in the file.

    A cell may hold line breaks: the number is that of the line on which a row begins.
    """
    rows = (
        (start + first + 1, [cell.strip(blank) for cell in cells])
        for first, _, cells in _spans(lines[start:], delimiter)
    )
    return [(number, cells) for number, cells in rows if any(cells)]


def _spans(lines: list[str], delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    r"""The rows of cells, each with its first line and the line after its last.

    Args:
        lines: The lines with their ends.
        delimiter: The separator of cells.
    """
    reader, first = csv.reader(lines, delimiter=delimiter), 0
    try:
        for cells in reader:
            yield first, reader.line_num, cells
            first = reader.line_num
    except csv.Error:  # the rest of a large file is one cell, since a mark is open
        yield first, len(lines), []


def _faults_of_marks(text: str, reading: _Reading) -> list[str]:
    r"""Complaints about quotation marks that swallow lines.

    A cell in quotation marks may hold line breaks. One that is not closed in its line
    takes the lines below with it, up to the next mark: it ends there within a cell, or
    some of these lines have cells like any other line.

    Args:
        text: What the file holds.
        reading: How it is read.
    """
    if '"' not in text:
        return []
    lines, start = list(io.StringIO(text, newline="")), reading.rows[0][0] - 1
    cell, is_line, said = _cell_of(reading.delimiter), _LineLike.of(reading), []
    for first, last, _ in _spans(lines[start:], reading.delimiter):
        rows, at = lines[start + first : start + last], 0
        row = "".join(rows)
        while at <= len(row):
            here = _line_at(rows, at)
            place = f"line {here + start + first}"
            if (found := cell.match(row, at)) is None:
                is_open = len(rows) > 1 or row.count('"', at) == 1
                said.append(f"{place}: {_NOT_CLOSED if is_open else _BEHIND}")
                break
            inside = found[0].rstrip("\r\n").splitlines()
            there = here + len(inside) - 1
            below = rows[here : there - 1]
            if len(inside) > 1 and reading.delimiter in inside[-1]:
                below.append(rows[there - 1])
            if any(map(is_line, below)):
                said.append(f"{place}: {_NOT_CLOSED}")
            at = found.end() + 1
    return said


_NOT_CLOSED = (
    "a quotation mark opens here that is not closed in its line, so that lines below "
    "would be taken for its text. Delete it, or close it (inches are written "
    '"2"" pipe", with marks around the cell); a text that is to have several lines '
    "must not look like lines of the table."
)
_BEHIND = (
    "text stands behind a quotation mark that closes a cell. A mark inside such a cell "
    'is written twice, as in "2"" pipe"; or delete the marks around it.'
)


def _cell_of(delimiter: str) -> re.Pattern[str]:
    r"""A cell as CSV has it, up to a delimiter or the end of the row.

    A mark that does not stand at the beginning of a cell is a letter like others.
    """
    closed = r'"(?:[^"]|"")*+"[ \t]*'
    return re.compile(
        rf"(?:{closed}|(?!\")[^{re.escape(delimiter)}\r\n]*+)"
        rf"(?:(?={re.escape(delimiter)})|[\r\n]*\Z)"
    )


def _line_at(lines: Sequence[str], at: int) -> int:
    r"""The line number, from 1, of a character of the joined lines."""
    ends = accumulate(map(len, lines))
    return next((i for i, end in enumerate(ends, 1) if at < end), len(lines))


@dataclass(frozen=True)
class _LineLike:
    r"""A test whether a text reads like a line of a table.

    Args:
        delimiter: The separator of cells.
        width: The number of cells in a line.
        numeric: The places of the cells that are numbers as a rule.
    """

    delimiter: str
    width: int
    numeric: tuple[int, ...]

    @classmethod
    def of(cls, reading: _Reading) -> _LineLike:
        r"""The form of most lines of a table."""
        width = len(reading.header)
        whole = [cells for _, cells in reading.body if len(cells) == width]
        columns = (
            [cell for cell in column if cell] for column in zip(*whole, strict=True)
        )
        shares = [sum(map(is_number, own)) / max(1, len(own)) for own in columns]
        return cls(
            reading.delimiter,
            width,
            tuple(i for i, share in enumerate(shares) if share > 0.5),
        )

    def __call__(self, text: str) -> bool:
        cells = [cell.strip(' "\r\n\t') for cell in text.split(self.delimiter)]
        return (
            self.width > 1
            and len(cells) == self.width
            and any(cells)
            and all(not cells[i] or is_number(cells[i]) for i in self.numeric)
        )


def _is_padded(cells: Sequence[str], n: int) -> bool:
    r"""Whether all content stands in the first ``n`` cells, and there is some."""
    return len(cells) > n and not any(cells[n:])


def _has_number(cells: Iterable[str]) -> bool:
    return any(map(is_number, cells))


def decoded(
    raw: bytes, name: str, encoding: str | None = None, names: Sequence[str] = ()
) -> tuple[str, str]:
    r"""The text of a file in composed letters, and its encoding.

    Args:
        raw: What the file holds.
        name: The name.
        encoding: Its encoding where it is not UTF-8, if somebody said it.
        names: Names that it may hold, by which an encoding is told.

    Raises:
        ValueError: If it is no text.
    """
    if raw.startswith(_WORKBOOKS):
        from botorch_lse.cli.workbooks import SAVE

        raise ValueError(f"{name}: expected a CSV file, but it is a workbook. {SAVE}")
    marked = [page for bom, page in _BOMS if raw.startswith(bom)]
    given = [encoding] if encoding else []
    if b"\0" in raw and not marked:
        text = _text(raw, encoding) if encoding else None
        if encoding and text is not None and "\0" not in text:
            return text, encoding
        raise ValueError(
            f"{name}, line {raw[: raw.index(0)].count(10) + 1}: expected text, but got "
            "a byte 0, as in files that were damaged or not saved whole. Restore it "
            "from a copy, or save it anew; if it is UTF-16, save it as 'CSV UTF-8'."
        )
    for page in (*marked, "utf-8", *given):
        if (text := _text(raw, page)) is not None:
            return text, page
    told = [] if given else [unicodedata.normalize("NFC", name) for name in names]
    told = [name for name in told if not name.isascii()]
    for page in (FALLBACK, *CODE_PAGES) if told else ():
        text = _text(raw, page)
        if text is not None and any(name in text for name in told):
            return text, page
    if not given and (text := _text(raw, FALLBACK)) is not None:
        return text, FALLBACK
    raise ValueError(
        f"{name}: expected text in {encoding or 'UTF-8'}, but it holds something else. "
        "If it was saved in another code page, save it as 'CSV UTF-8', or name its "
        'encoding, as in --encoding gbk or encoding = "gbk" in the settings.'
    )


def _text(raw: bytes, encoding: str) -> str | None:
    r"""The text of a file in one encoding; ``None`` if it is not in that encoding."""
    try:
        # Macs write a letter and its accent as two, others as one.
        return unicodedata.normalize("NFC", raw.decode(encoding))
    except UnicodeDecodeError:
        return None


def _check_header(reading: _Reading, name: str) -> None:
    r"""Complain about a line that is not a header, or names that cannot be names.

    Columns need a name each, and another one each.
    """
    header, number = reading.header, reading.rows[0][0]
    long = [cells for _, cells in reading.body if any(cells[len(header) :])]
    if len(long) > max(1, len(reading.body) / 2):
        raise ValueError(
            f"{name}, line {number}: expected a name for every column, but it has "
            f"{len(header)} of them and most lines have {len(long[0])} cells "
            f"({reading.delimiter!r} between two). If it is a title, delete it, or "
            "begin it with #; if it is the header, a name with "
            f"{reading.delimiter!r} in it needs quotation marks around it."
        )
    faults = Faults()
    for i, column in enumerate(header):
        if not column:
            faults.said.append(
                f"{name}: expected a name for every column, but column {i + 1} of the "
                f"header has none. Write one in line {number}, or delete the column; "
                "if the line is a title, begin it with #."
            )
        elif column in header[:i]:
            faults.said.append(
                f"{name}: expected columns of different names, but {column!r} is "
                "there twice. Rename one."
            )
    faults.check()


def write_table(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Mapping[str, str]],
    style: Style,
    over: Seen | None = None,
) -> None:
    r"""Write a CSV file at once: readers find the old file or the new one.

    Args:
        path: The file; it is replaced if it is there.
        header: The names of its columns.
        rows: The cells of each line by column; what is missing stays empty.
        style: How it is to be written.
        over: What the caller saw in the file; default: whatever it holds is replaced.

    Raises:
        ValueError: If the file cannot be written, for example because Excel has it
            open, or was saved meanwhile.
    """
    text = io.StringIO(newline="")
    text.write(style.before)
    writer = csv.writer(text, delimiter=style.delimiter, lineterminator=style.newline)
    writer.writerow(header)
    writer.writerows([row.get(name, "") for name in header] for row in rows)
    try:
        content = text.getvalue().encode(style.encoding)
    except UnicodeEncodeError:  # a letter that the file's encoding does not have
        content = text.getvalue().encode("utf-8-sig")
    replace_file(path, content, over)


def check_is_no_workbook(path: Path, name: str) -> None:
    r"""Complain about an output file whose name is that of a workbook.

    Args:
        path: The file.
        name: What it is called in the settings, or its option.

    Raises:
        ValueError: If a program that opens it would expect a workbook.
    """
    if path.suffix.casefold() in WORKBOOKS:
        raise ValueError(
            f"Expected {name} to be a CSV file, but got {path.name}, the name of a "
            f"workbook, which is not written. Name it {path.stem}.csv: Excel opens it."
        )


def replace_file(path: Path, content: bytes, over: Seen | None = None) -> None:
    r"""Replace the content of a file as a whole.

    Args:
        path: The file.
        content: The content to write.
        over: The content that the caller saw; default: any is replaced.

    Raises:
        ValueError: If it cannot be written, or was saved meanwhile.
    """
    with writing(path):
        write_whole(path, content, over)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    r"""A context in which errors of writing a file become complaints about it."""
    try:
        yield
    except ChangedError as error:
        raise ValueError(
            f"{path}: was saved by something else while this call computed, and is "
            "left as that has it. Call again."
        ) from error
    except OSError as error:
        remedies = {
            errno.ENOSPC: "Make room on its drive",
            errno.EACCES: "Change its rights or those of its folder, or name another",
            errno.ENOENT: "Bring back what is not there, or name another file",
        }
        is_open = "If it is open in another program, close it there"
        remedy = remedies.get(error.errno or 0, is_open)
        raise ValueError(
            f"{path}: cannot be written ({error.strerror}). {remedy}; nothing was "
            "changed in it."
        ) from error
