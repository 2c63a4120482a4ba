r"""The candidates: which they are, what describes them, how they are found again.

A line of results belongs to the candidate of its key, or of its inputs where there is
no key. Never to the one that stands at the same place: people sort their tables.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from botorch_lse._numerals import begins_with_a_number, is_number, number_with
from botorch_lse.cli.cells import Faults, Line, Table
from botorch_lse.cli.notation import LISTS, Notation, is_missing
from botorch_lse.data.encoding import SAME_ROW, encode

if TYPE_CHECKING:
    from torch import Tensor

    from botorch_lse.data.pool import Pool

SHEET, REPEAT = "sheet", "repeat"
"""The columns that a sheet adds: its number, and which repeat of its row a line is."""
YES, NO = ("yes", "true"), ("no", "false")
"""The words that are read as 1 and as 0, both in one input."""
SUMS = frozenset(
    {"total", "totals", "sum", "mean", "average", "summe", "gesamt", "mittelwert"}
    | {"somme", "moyenne", "totale", "suma", "media", "\u5408\u8ba1", "\u5408\u8a08"}
)
"""The names of the last line of a table where it adds up the others."""
MOSTLY = 0.8
"""The share of numbers from which on a column is one of numbers."""
SHOWN = 6
"""The number of words of an input that are shown."""


@dataclass(frozen=True, eq=False)
class Candidates:
    r"""The table of the candidates, as read.

    Args:
        table: The file.
        key: Its column that names the candidates, if there is one.
        inputs: Its columns that describe them.
        notation: The notation of numbers.
        lines: The ``N`` lines in an order of their own, by inputs and key, so that
            sorting the file changes nothing.
        frame: ``N`` rows of inputs, numbers or words, in the same order.
        logs: The inputs of which the model sees the logarithm.
        ignore: The columns that are no inputs because somebody said so.
        column: What is measured, if the table has a column of it.
        open: Words that stand for what is not measured yet.
    """

    table: Table
    key: str | None
    inputs: tuple[str, ...]
    notation: Notation
    lines: tuple[Line, ...] = field(repr=False)
    frame: pd.DataFrame = field(repr=False)
    logs: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    column: str | None = None
    open: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        table: Table,
        column: str,
        notation: Notation,
        key: str | None = None,
        inputs: Sequence[str] = (),
        ignore: Sequence[str] = (),
        logs: Sequence[str] = (),
        words: Sequence[str] = (),
        open: Sequence[str] = (),
    ) -> Candidates:
        r"""The candidates of a table.

        Args:
            table: The file.
            column: What is measured, which is no input.
            notation: The notation of numbers.
            key: The column that names the candidates.
            inputs: The columns that describe them; empty: all others that vary.
            ignore: Columns that are no inputs, even if ``inputs`` names them.
            logs: Inputs of which the model sees the logarithm.
            words: Inputs that are words, though they may look like numbers.
            open: Words that stand for what is not measured yet.

        Raises:
            ValueError: If a column or a cell is not what it should be, or two lines are
                the same candidate.
        """
        _check_is_of_candidates(table)
        faults = Faults()
        key = None if key is None else _known(table, key, "key")
        ignored = tuple(_known(table, name, "ignore") for name in ignore)
        by_log = tuple(_known(table, name, "logs") for name in logs)
        by_log = tuple(name for name in by_log if name not in ignored)
        labels = {_known(table, name, "words") for name in words}
        own = table.column(column)
        chosen = tuple(
            there
            for name in inputs
            if (there := _known(table, name, "inputs")) not in ignored
        )
        if inputs and not chosen:
            raise ValueError(
                f"{table.name}: expected `ignore` to leave one of `inputs`, but it "
                f"names all: {', '.join(ignored)}. Name other `inputs`."
            )
        if not chosen:
            with faults.noted():
                others = _other_results(table, own, open)
                left_out = {key, own, *ignored, *others}
                chosen = _described_by(table, left_out, notation)
        parts = dict[str, list[object]]()
        for name in chosen:
            with faults.noted():
                parts[name] = _read_column(table, name, notation, name in labels)
        if key is not None:
            with faults.noted():
                _check_key(table, key)
        faults.check()
        lines, frame = _in_order(table, key, pd.DataFrame(parts))
        known = table, key, chosen, notation, lines, frame
        found = cls(*known, by_log, ignored, own, tuple(open))
        for check in (found._check_names, found._check_logs):
            with faults.noted():
                check()
        faults.check()
        return found

    def __len__(self) -> int:
        return len(self.lines)

    def pool(self, rows: np.ndarray) -> Pool:
        r"""The pool of some candidates, with the cells of their lines as its table.

        Args:
            rows: Which candidates, sorted.
        """
        from botorch_lse.data.pool import Pool

        cells = pd.DataFrame([self.lines[row].cells for row in rows], dtype=str)
        frame = self.frame.iloc[rows].reset_index(drop=True)
        by_log = {name: np.log10(frame[name]) for name in self.logs}
        # Nothing is left to ask about words: that was done where they were read.
        words = {name: "category" for name in self.inputs if name not in self._slack}
        return Pool(frame.assign(**by_log).astype(words), table=cells)

    def points(self, inputs: Sequence[tuple[object, ...]]) -> Tensor:
        r"""The points of other inputs, in the columns of ``pool`` (``n x d``).

        Args:
            inputs: ``n`` times the inputs, as ``inputs_of`` reads them.
        """
        other = pd.DataFrame(list(inputs), columns=list(self.inputs))
        frame = pd.concat([self.frame, other], ignore_index=True)
        lines = (*self.lines, *self.lines[:1] * len(other))
        both = replace(self, lines=lines, frame=frame)
        return both.pool(np.arange(len(frame))).X[len(self) :]

    def drawn(self, rows: np.ndarray) -> pd.DataFrame:
        r"""The inputs of some candidates for a picture: numbers, and words by name.

        The table of ``pool`` holds cells as they are written, which an axis would show
        as words, one beside the other. Rows are labelled by the key, if there is one.

        Args:
            rows: Which candidates, sorted.
        """
        shown = self.frame.iloc[rows].reset_index(drop=True)
        if self.key is not None:
            shown.index = pd.Index([self.lines[row].cells[self.key] for row in rows])
        said = {
            name: [self.lines[row].cells[name] for row in rows]
            for name in self.inputs
            if name in self._answers
        }
        return shown.assign(**said)

    def called(self, row: int) -> str:
        r"""The name of a candidate in a message."""
        cells = self.lines[row].cells
        if self.key is not None:
            return f"{self.key} {cells[self.key]}"
        return ", ".join(f"{name} = {cells[name]}" for name in self.inputs)

    # --- what was understood ----------------------------------------------------------

    @property
    def unused(self) -> list[str]:
        r"""Columns that are neither key, input, ignored nor measured, and vary."""
        used = {self.key, self.column, *self.inputs, *self.ignore}
        rest = (name for name in self.table.header if name not in used)
        return [name for name in rest if len({*self.table.texts(name)}) > 1]

    def described(self, trials: str | None = None) -> list[str]:
        r"""A line for each column of the table: what it was understood to be.

        Args:
            trials: The column of how many trials a line has, if results count them.
        """
        plan = None if trials is None else self.table.column(trials)
        planned = "how many trials are planned"
        return [
            f"{name}: {planned if name == plan else self._meaning(name)}"
            for name in self.table.header
        ]

    def _meaning(self, name: str) -> str:
        if name == self.key:
            return "names the candidates"
        if name == self.column:
            return "what is measured"
        if name in self.ignore:
            return "ignored"
        if name not in self.inputs:
            if name in _other_results(self.table, self.column, self.open):
                return f"another result, filled where {self.column} is; not used"
            cells = {*self.table.texts(name)}
            same = f" ({next(iter(cells)) or 'empty'} in every line)"
            return f"not used{same if len(cells) == 1 else ''}"
        if name in self._answers:
            return "yes or no"
        if name not in self._slack:
            words = sorted({*self.frame[name]})
            more = [f"and {len(words) - SHOWN} more"] * (len(words) > SHOWN)
            shown = ", ".join([*words[:SHOWN], *more])
            return f"{len(words)} word{'s' * (len(words) != 1)} ({shown})"
        numbers = self.frame[name].to_numpy()
        ends = (self.lines[i].cells[name] for i in (numbers.argmin(), numbers.argmax()))
        log = ", by their logarithm" if name in self.logs else ""
        return f"numbers {' to '.join(ends)}{log}"

    # --- finding them again -----------------------------------------------------------

    @cached_property
    def _by_key(self) -> dict[str, int]:
        assert self.key is not None  # or nobody asks
        return {line.cells[self.key]: i for i, line in enumerate(self.lines)}

    @cached_property
    def _by_inputs(self) -> dict[tuple[object, ...], list[int]]:
        found: dict[tuple[object, ...], list[int]] = {}
        for i, row in enumerate(self.frame.itertuples(index=False, name=None)):
            found.setdefault(row, []).append(i)
        return found

    def find(self, line: Line, table: Table) -> int:
        r"""The candidate that a line of another file is about.

        Raises:
            ValueError: If it is about none, or its inputs are those of another one.
        """
        by_key = None if self.key is None else table.column(self.key)
        if by_key is None:
            return self._find_by_inputs(line, table)
        name = line.cells[by_key]
        row = self._by_key.get(name)
        if row is None:
            near = self._equal_numbers(name)
            near = near or difflib.get_close_matches(name, self._by_key, 1)
            hint = f", such as {near[0]}" if near else ""
            raise table.complaint(
                line,
                by_key,
                f"a candidate of {self.table.name}{hint}",
                f"got {name!r}" if name else "the cell is empty",
                f"correct it, add the candidate to {self.table.name}, or delete the "
                "line",
            )
        self._check_inputs(line, table, row)
        return row

    def _equal_numbers(self, name: str) -> list[str]:
        r"""Keys that are the same number, as a spreadsheet makes 1.00E+05 of 1E5."""
        number = number_with(".", name.replace(",", "."))
        if number is None:
            return []
        return [key for key in self._by_key if number_with(".", key) == number]

    def _check_inputs(self, line: Line, table: Table, row: int) -> None:
        r"""Complain if a line has the key of one candidate and inputs of another."""
        for name in self.inputs:
            there = table.column(name)
            if there is None or not line.cells[there]:
                continue
            value, wanted = self._cell(line, table, name, there), self.frame[name][row]
            is_close = value == wanted
            if isinstance(value, float) and isinstance(wanted, float):
                is_close = abs(value - wanted) <= self._slack.get(name, 0.0)
            if not is_close:
                own = self.lines[row]
                raise table.complaint(
                    line,
                    there,
                    f"{own.cells[name]} as {self.called(row)} has in line "
                    f"{own.number} of {self.table.name}",
                    f"got {line.cells[there]!r}",
                    "correct the line that is wrong: one of the two is about another "
                    "candidate",
                )

    def _find_by_inputs(self, line: Line, table: Table) -> int:
        columns = {name: table.column(name) for name in self.inputs}
        absent = [name for name, there in columns.items() if there is None]
        if absent:
            keyed = f" or its key {self.key!r}" if self.key else ""
            raise ValueError(
                f"{table.name}: expected the inputs of {self.table.name}{keyed} to "
                "tell which candidates were measured, but column "
                f"{absent[0]!r} is missing. "
                "Add it, or name a column that both tables have: "
                f"{self.notation.advice('key', 'NAME')}."
            )
        values = self.inputs_of(line, table)
        found = self._by_inputs.get(values) or self._near(values)
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(
                f"{table.name}, line {line.number}: expected one candidate, but lines "
                f"{self.lines[found[0]].number} and {self.lines[found[1]].number} of "
                f"{self.table.name} have these inputs. Add the column {self.key!r}."
            )
        return self._refuse(line, table, values)

    def inputs_of(self, line: Line, table: Table) -> tuple[object, ...]:
        r"""The inputs that a line of another file has.

        Raises:
            ValueError: If one is no value of its input.
        """
        columns = {name: str(table.column(name)) for name in self.inputs}
        return tuple(self._cell(line, table, *pair) for pair in columns.items())

    def _refuse(self, line: Line, table: Table, values: tuple[object, ...]) -> int:
        r"""Complain that no candidate has given inputs, and name the nearest one."""
        apart = pd.DataFrame(
            {name: self._apart(name, value) for name, value in self._named(values)}
        )
        row = int(apart.sum(axis=1).to_numpy().argmin())
        name = str(apart.loc[row].idxmax())
        there = str(table.column(name))
        own = self.lines[row]
        raise table.complaint(
            line,
            there,
            f"the inputs of a candidate of {self.table.name}; the likest, in line "
            f"{own.number}, has {own.cells[name]}",
            f"got {line.cells[there]!r}",
            "restore the inputs (programs round what they show), or let a column name "
            f"the candidates in both tables: {self.notation.advice('key', 'NAME')}",
        )

    def _apart(self, name: str, value: object) -> pd.Series:
        r"""The distances of candidates from a value, as shares of the input's range."""
        column = self.frame[name]
        if not isinstance(value, float):
            return (column != value).astype(float)
        span = self._slack[name] / SAME_ROW or 1.0
        return (column - value).abs() / span

    def _named(self, values: tuple[object, ...]) -> zip[tuple[str, object]]:
        return zip(self.inputs, values, strict=True)

    def _near(self, values: tuple[object, ...]) -> list[int]:
        r"""The candidates whose inputs differ from a line's in the last digits only."""
        same = np.ones(len(self), dtype=bool)
        for name, value in self._named(values):
            column = self.frame[name]
            if isinstance(value, float) and not isinstance(column.iloc[0], str):
                same &= (column - value).abs().to_numpy() <= self._slack[name]
            else:
                same &= (column == value).to_numpy()
        return [int(i) for i in np.flatnonzero(same)]

    @cached_property
    def _slack(self) -> dict[str, float]:
        r"""The largest difference that one number of a column may show."""
        spans = {
            name: float(column.max() - column.min()) or abs(float(column.iloc[0]))
            for name, column in self.frame.items()
            if pd.api.types.is_numeric_dtype(column)
        }
        return {str(name): SAME_ROW * span for name, span in spans.items()}

    def _cell(self, line: Line, table: Table, name: str, there: str) -> object:
        r"""The input of a candidate, read from a line of another file."""
        text = line.cells[there]
        if name not in self._slack:
            return text
        number = _yes_or_no(text) if name in self._answers else None
        # A few lines may not show the mark that all candidates together show.
        mark = table.mark(there) or self.table.mark(name)
        notation = self.notation.with_mark(mark)
        number = notation.number(text) if number is None else number
        if number is None:
            came = f"got {text!r}" if text else "the cell is empty"
            raise table.complaint(line, there, "a number", came, notation.repair(text))
        return number

    @cached_property
    def _answers(self) -> set[str]:
        r"""The columns that say yes or no."""
        return {
            name
            for name in self._slack
            if _yes_or_no(self.lines[0].cells[name]) is not None
        }

    def _check_logs(self) -> None:
        for name in self.logs:
            if name not in self._slack or name in self._answers:
                raise ValueError(
                    f"{self.table.name}: expected `logs` to name inputs that are "
                    f"numbers, but {name!r} is none. Leave it out."
                )
            least = int(self.frame[name].to_numpy().argmin())
            if self.frame[name][least] <= 0:
                line = self.lines[least]
                raise self.table.complaint(
                    line,
                    name,
                    "a number above 0, which has a logarithm",
                    f"got {line.cells[name]!r}",
                    f"correct it, or leave {name!r} out of `logs`",
                )

    # --- duplicates -------------------------------------------------------------------

    def _check_names(self) -> None:
        r"""Complain about lines that nobody could tell apart."""
        alike: dict[object, list[Line]] = {}
        for line, row in zip(
            self.lines, self.frame.itertuples(index=False, name=None), strict=True
        ):
            name = row if self.key is None else line.cells[self.key]
            alike.setdefault(name, []).append(line)
        faults = Faults()
        for lines in alike.values():
            if len(lines) > 1:
                faults.said.append(self._not_apart(lines))
        faults.check()

    def _not_apart(self, lines: Sequence[Line]) -> str:
        *first, last = sorted(line.number for line in lines)
        places = f"{self.table.name}, lines {', '.join(map(str, first))} and {last}"
        cells = lines[0].cells
        all_of = "both" if len(lines) == 2 else "all"
        if self.key is not None:
            return (
                f"{places}, column {self.key}: expected different names, but {all_of} "
                f"are {cells[self.key]!r}. Delete one line, or rename it."
            )
        return (
            f"{places}: expected different candidates, but their inputs are the same "
            f"({', '.join(cells[name] for name in self.inputs)}). Delete one line; if "
            "they are different samples, let a column name them: "
            f"{self.notation.advice('key', 'NAME')}."
        )


def _check_is_of_candidates(table: Table) -> None:
    if not table.lines:
        raise ValueError(f"{table.name}: expected candidates, but got no line.")
    for name in (SHEET, REPEAT):
        if table.column(name) is not None:
            raise ValueError(
                f"{table.name}: expected candidates, but column {name!r} is one of a "
                "sheet. Name the table of all candidates, or rename the column."
            )
    _check_lines(table)


def _in_order(
    table: Table, key: str | None, frame: pd.DataFrame
) -> tuple[tuple[Line, ...], pd.DataFrame]:
    r"""The lines and cells of candidates by inputs, then by the column of names.

    What has equal inputs stands together.
    """
    names = [""] * len(frame) if key is None else table.texts(key)
    order = frame.assign(**{"": names}).sort_values([*frame.columns, ""]).index
    lines = tuple(table.lines[i] for i in order)
    return lines, frame.loc[order].reset_index(drop=True)


def _check_lines(table: Table) -> None:
    r"""Ask about lines that are not candidates: units, a second header, a sum."""
    first, last = table.lines[0], table.lines[-1]
    faults, units = Faults(), dict[str, str]()
    if not any(map(_is_value, first.cells.values())):
        filled = {name: text for name, text in first.cells.items() if text}
        units = {n: u for n, u in filled.items() if _is_mostly_numbers(table, n)}
    if units:
        name, unit = next(iter(units.items()))
        faults.said.append(
            f"{table.name}, line {first.number}: expected a candidate, but it looks "
            f"like a line of units ({', '.join(units.values())}). Delete it; a unit "
            f"may stand in the header, as in '{name} ({unit})'."
        )
    for line in table.lines:
        if tuple(line.cells.values()) == table.header:
            faults.said.append(
                f"{table.name}, line {line.number}: expected a candidate, but it "
                "repeats the header. Delete it."
            )
    words = {text.casefold().rstrip(":") for text in last.cells.values()}
    if len(table.lines) > 1 and words & SUMS:
        faults.said.append(
            f"{table.name}, line {last.number}: expected a candidate, but it looks "
            "like a sum or mean of the others. Delete it; if it is a candidate, give "
            "it another name."
        )
    faults.check()


def _is_mostly_numbers(table: Table, name: str) -> bool:
    r"""Whether what a column holds below its first line is mostly numbers."""
    below = [text for text in table.texts(name)[1:] if text]
    return bool(below) and sum(map(is_number, below)) >= MOSTLY * len(below)


def _is_value(text: str) -> bool:
    r"""Whether a cell begins as a number does and is not a unit such as 1/min."""
    return begins_with_a_number(text) and not text.startswith(("1/", "10^"))


def _known(table: Table, name: str, setting: str) -> str:
    r"""The header's name of a column that a setting names."""
    found = table.column(name)
    if found is None:
        near = difflib.get_close_matches(name, table.header, 1)
        with_comma = [name for name in table.header if "," in name]
        marks = (
            "On the command line a name with a comma stands in quotation marks, as in "
            f"--{setting} '\"{with_comma[0]}\"'. "
            if with_comma and setting in LISTS
            else ""
        )
        raise ValueError(
            f"{table.name}: expected `{setting}` to name columns of it, but {name!r} "
            + (f"is none; did you mean {near[0]!r}? " if near else "is none. ")
            + f"{marks}It has {', '.join(table.header)}.{table.doubt}"
        )
    return found


def is_open(text: str, words: Sequence[str]) -> bool:
    r"""Whether a cell says that something is not measured yet.

    Args:
        text: The cell.
        words: Words that stand for it, besides an empty cell.
    """
    known = {word.casefold() for word in words}
    return not text or is_missing(text) or text.casefold() in known


def _other_results(table: Table, column: str | None, words: Sequence[str]) -> list[str]:
    r"""The columns filled exactly where the column of results is, if that is not full.

    Args:
        table: The file.
        column: The column of the results.
        words: Words that stand for what is not measured yet.
    """
    if column is None:
        return []
    where = [is_open(text, words) for text in table.texts(column)]
    if len({*where}) == 1:
        return []
    filled = {
        name: [is_open(text, words) for text in table.texts(name)]
        for name in table.header
    }
    return [n for n, own in filled.items() if own == where and n != column]


def _described_by(
    table: Table, left_out: set[str | None], notation: Notation
) -> tuple[str, ...]:
    r"""The default inputs: all columns that vary.

    A column that counts the lines is no input by chance only, so that it is asked
    about: taken as one, it would make neighbours of what happens to stand side by side.
    """
    names = []
    for name in table.header:
        cells = [line.cells[name] for line in table.lines]
        if name in left_out or (len(set(cells)) == 1 and len(cells) > 1):
            continue
        names.append(name)
    faults = Faults()
    for name in names if len(names) > 1 else ():
        if _counts_up(table, name, notation):
            faults.said.append(
                f"{table.name}: expected inputs, but column {name!r} counts the lines. "
                f"If it names the candidates, {notation.advice('key', name)}; if it "
                f"says nothing about them, {notation.advice('ignore', name)}; if it is "
                "an input, name all inputs with --inputs."
            )
    faults.check()
    if not names:
        raise ValueError(
            f"{table.name}: expected columns that describe the candidates, but no "
            f"column is left that varies, of {', '.join(table.header)}."
        )
    return tuple(names)


def _counts_up(table: Table, name: str, notation: Notation) -> bool:
    r"""Whether a column counts 1, 2, 3, ..., perhaps from another number on."""
    numbers = map(notation.number, table.texts(name))
    first = next(numbers)
    if first is None or len(table.lines) <= 2:
        return False
    return all(number == first + i for i, number in enumerate(numbers, 1))


def _yes_or_no(text: str) -> float | None:
    word = text.casefold()
    return 1.0 if word in YES else 0.0 if word in NO else None


def _check_key(table: Table, key: str) -> None:
    faults = Faults()
    for line in table.lines:
        if not line.cells[key]:
            came, remedy = "the cell is empty", "fill it in"
            wanted = "a name for every candidate"
            faults.said.append(str(table.complaint(line, key, wanted, came, remedy)))
    faults.check()


def _read_column(
    table: Table, name: str, notation: Notation, is_words: bool
) -> list[object]:
    r"""One input of all lines: numbers, yes and no as 1 and 0, or words.

    Mostly numbers: a few words among them are mistakes, as ``Pool`` has it.

    Args:
        table: The file.
        name: The column.
        notation: The notation of numbers.
        is_words: Whether somebody said that its cells are words.
    """
    faults, cells = Faults(), table.texts(name)
    for line, text in zip(table.lines, cells, strict=True):
        if not text or (is_missing(text) and not is_words):
            wanted = "a value for every candidate"
            came = f"got {text!r}" if text else "the cell is empty"
            remedy = (
                "fill it in, delete the line, or leave the column out: "
                f"{notation.advice('ignore', name)}"
            )
            if text:
                remedy += f"; if it is a word, {notation.advice('words', name)}"
            faults.said.append(str(table.complaint(line, name, wanted, came, remedy)))
    faults.check()
    if not is_words and all(_yes_or_no(text) is not None for text in cells):
        return [_yes_or_no(text) for text in cells]
    is_doubtful = not is_words and table.doubtful(name) is not None
    if is_doubtful and 2 * sum(map(is_number, cells)) > len(cells):
        check_marks(table, name, notation)
    own = notation.with_mark(table.mark(name))
    numbers = [own.number(text) for text in cells]
    if is_words or 2 * numbers.count(None) >= len(cells):
        if not is_words:
            _ask_about_words(table, name, notation)
        return list(_checked_words(table, name, cells, notation))
    for line, text, number in zip(table.lines, cells, numbers, strict=True):
        if number is None:
            complaint = table.complaint(
                line, name, "a number", f"got {text!r}", own.repair(text)
            )
            faults.said.append(str(complaint))
    faults.check()
    return list(numbers)


def check_marks(table: Table, name: str, notation: Notation) -> None:
    r"""Ask about a column whose decimal marks may separate thousands.

    Args:
        table: The file.
        name: The column.
        notation: The notation of numbers.

    Raises:
        ValueError: If all marks of the column stand before three digits, and nobody
            said what the decimal mark is.
    """
    line = table.doubtful(name) if notation.decimal is None else None
    if line is None:
        return
    text = line.cells[name]
    mark = "." if "." in text else ","
    raise table.complaint(
        line,
        name,
        "a number that can be read in one way",
        f"got {text!r}, and every such mark in the column stands before three digits",
        f"if it is the decimal mark, {notation.advice('decimal', mark)}; if it is one "
        f"of thousands, write {text.replace(mark, '')}",
    )


def _ask_about_words(table: Table, name: str, notation: Notation) -> None:
    r"""Ask about words most of which begin with a number, such as ``800 ml``."""
    found = [x for x in table.lines if begins_with_a_number(x.cells[name])]
    words = {*table.texts(name)}
    if 2 * len({line.cells[name] for line in found}) <= len(words):
        return
    own = notation.with_mark(table.mark(name))
    line = next(line for line in found if own.number(line.cells[name]) is None)
    text = line.cells[name]
    raise table.complaint(
        line,
        name,
        "numbers, or words that do not begin with one",
        f"got {text!r}, and most of {len(words)} different cells are like it",
        f"{own.repair(text)}; if they are words, {notation.advice('words', name)}; if "
        f"the column says nothing of the candidates, {notation.advice('ignore', name)}",
    )


def _checked_words(
    table: Table, name: str, cells: list[str], notation: Notation
) -> list[str]:
    r"""The words, if they are few enough to be levels of an input."""
    try:
        encode(pd.DataFrame({name: pd.Series(cells, dtype="category")}))
    except ValueError as error:
        raise ValueError(
            f"{table.name}, column {name}: expected few different words, each a level "
            f"of an input, but got {len(set(cells))} in {len(cells)} lines. If it "
            f"names the candidates, {notation.advice('key', name)}; if it says nothing "
            f"about them, {notation.advice('ignore', name)}; else describe it by "
            "numbers."
        ) from error
    return cells
