r"""The settings of a table: a small file that the first call writes and others read."""

from __future__ import annotations

import codecs
import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from botorch_lse._files import Seen
from botorch_lse._numerals import MARKS, Typed, both_ways, written
from botorch_lse.cli.cells import (
    check_is_no_workbook,
    content_of,
    decoded,
    replace_file,
)
from botorch_lse.cli.kinds import CLASSES, MAJORITY, Kind, kind_of
from botorch_lse.cli.notation import Notation, repaired
from botorch_lse.cli.sources import OF_SOURCES, check_sources

DEFAULT_FILE = "botorch-lse.toml"
"""The file in which the settings stand unless another one is named."""
FILES = ("candidates", "results", "out", "history")
"""The settings that are tables, relative to the folder of the settings."""
PAGE = "report.html"
"""The page of a run, unless another one is named."""
USUAL_AUDIT = (0.05, 0.05)
"""The numbers that ``--audit`` alone stands for, as ``audit=True`` does in Python."""
NUMBERS = ("audit", "source_costs", "source_noise")
"""The settings that are lists of numbers."""
PROGRAM = "botorch-lse"
_TITLE = f"# The settings of {PROGRAM}"
"""The first line of the file."""
_DECIMAL_COMMA = re.compile(r"\s*(\w+)\s*=\s*([+-]?\d[\d.,]*,[\d.]+)\s*(?:#.*)?$")
"""A line of settings with a decimal comma, as many languages write numbers."""


def _setting(default: Any, words: str, kind: type = str) -> Any:
    return field(default=default, metadata={"words": words, "kind": kind})


@dataclass(frozen=True, kw_only=True)
class Settings:
    r"""The question about a table, and the places of its files.

    Args:
        path: The file of the settings.
        is_stored: Whether they were read from it.
        candidates: The table of the candidates.
        column: The column of what is measured.
        above: The level, if the question is which candidates are above it.
        below: The level, if the question is which ones are below it.
        epsilon: How far a candidate on the wrong side may be from the level.
        results: The table of what was measured.
        out: The sheet of what to measure.
        report: A page that ``next`` and ``answer`` write anew at each call.
        batch: How many lines the sheet has.
        budget: The largest number of measurements, or of trials where lines have many.
        max_repeats: The largest number of measurements of one candidate.
        key: The column that names the candidates.
        inputs: The columns that describe the candidates; empty: all that vary.
        ignore: Columns that are no inputs, even if ``inputs`` names them.
        logs: Inputs of which the model sees the logarithm.
        words: Inputs that are words, though they may look like numbers.
        encoding: That of files that are not UTF-8; ``None``: as each file shows it.
        decimal: The decimal mark; ``None``: as each file shows it.
        open: Words for what is not measured yet, besides an empty cell.
        replicates: Whether a candidate may have several lines nobody asked for.
        log_result: Whether the model learns the logarithms of results.
        noise_std: The standard deviation of a measurement's noise.
        outcome: ``"yes-no"`` where results are yes or no, and the level a probability;
            ``"grades"`` where they are grades; ``"counts"`` where they are counts of
            events, and the level an expected count; ``"classes"`` where they are
            classes without an order.
        guess: The probability of a yes where only chance gives it.
        lapse: The probability of a no that is none of the candidate's.
        trials: The column of how many trials each line has, results being successes.
        grades: The number of grades.
        at_least: The grade whose probability, or that of a higher one, is asked for.
        classes: The names of the classes.
        sources: The names of the sources of values, where there are several.
        source_costs: What a measurement costs at each source.
        target: The source that decides; ``None``: the last.
        source_noise: The standard deviation of the noise at each source, and one more
            where that of earlier values of no source is another one.
        history: A table of values of earlier sources, at any inputs.
        beta: The squared width of intervals, where it is not a theorem's.
        first: How many measurements are spread before a model chooses and decides.
        seed: Of what is random.
        audit: The share of candidates that may be wrong, and the probability of more.
    """

    path: Path = Path(DEFAULT_FILE)
    is_stored: bool = False
    candidates: str = _setting("", "the table of the candidates, one a line")
    column: str = _setting("", "the column of what is measured")
    above: float | None = _setting(
        None, "which candidates are above this level?", float
    )
    below: float | None = _setting(
        None, "which candidates are below this level?", float
    )
    epsilon: float = _setting(
        0.0, "candidates this near to the level may go to either side", float
    )
    results: str = _setting("results.csv", "the table of what was measured")
    out: str = _setting("sheet.csv", "the sheet to fill in (may be the results)")
    report: str | None = _setting(
        None, "a page that each next and answer writes anew, such as report.html"
    )
    batch: int = _setting(8, "lines of a sheet", int)
    budget: int | None = _setting(None, "the largest number of measurements", int)
    max_repeats: int | None = _setting(
        None, "the largest number of measurements of one candidate, such as 1", int
    )
    key: str | None = _setting(None, "the column that names the candidates")
    inputs: tuple[str, ...] = _setting(
        (), "the columns that describe the candidates", tuple
    )
    ignore: tuple[str, ...] = _setting((), "columns that are not inputs", tuple)
    logs: tuple[str, ...] = _setting(
        (), "inputs whose ratios count, such as doses: by their logarithm", tuple
    )
    words: tuple[str, ...] = _setting(
        (), "inputs that are words, though they may look like numbers", tuple
    )
    encoding: str | None = _setting(
        None, "the encoding of files that are not UTF-8 (default: seen from the file)"
    )
    decimal: str | None = _setting(
        None, "the decimal mark where a file leaves it open: a point or a comma"
    )
    open: tuple[str, ...] = _setting(
        (), "words for what is not measured yet, besides an empty cell", tuple
    )
    replicates: bool = _setting(
        False, "candidates may stand in several lines that no sheet asked for", bool
    )
    log_result: bool | None = _setting(
        None, "model the logarithms of results, for those whose ratios count", bool
    )
    noise_std: float | None = _setting(
        None,
        "standard deviation of the noise (with log_result a share of the value, such "
        "as 0.1); estimated if it is not given",
        float,
    )
    outcome: str | None = _setting(
        None,
        "yes-no: results are yes or no, and the level is a probability of yes; grades: "
        "results are 0, 1, 2 and so on, and the level is a probability of at_least; "
        "counts: results are counts of events, and the level is an expected count; "
        "classes: results are names of classes, and no level is needed",
    )
    guess: float | None = _setting(
        None, "the probability of a yes by chance alone, such as 0.5 of two", float
    )
    lapse: float | None = _setting(
        None, "the probability of a no by mistake, such as 0.02", float
    )
    trials: str | None = _setting(
        None, "the column of how many trials a line has; results count the successes"
    )
    grades: int | None = _setting(
        None, "the number of grades, such as 4 of 0 to 3", int
    )
    at_least: int | None = _setting(
        None, "the grade that is to be reached, or exceeded, such as 2", int
    )
    classes: tuple[str, ...] = _setting(
        (), "the names of the classes, such as solid,liquid,gas", tuple
    )
    sources: tuple[str, ...] = _setting(
        (), "several sources of values: a sheet says which one measures a line", tuple
    )
    source_costs: tuple[float, ...] = _setting(
        (), "what a measurement costs at each source", tuple
    )
    target: str | None = _setting(None, "the source that decides (default the last)")
    source_noise: tuple[float, ...] = _setting(
        (),
        "the noise of each source, where it is known (see noise_std), and one number "
        "more for earlier values of no source",
        tuple,
    )
    history: str | None = _setting(
        None,
        "a table of earlier values; its column source says of which campaign, or of "
        "which level where sources are numbers",
    )
    beta: float | None = _setting(
        None,
        "decide at sqrt(beta) standard deviations (4: two, 9: three); default four, "
        "of probabilities three",
        float,
    )
    first: int | None = _setting(
        None,
        "measurements to spread first, after which decisions begin (default 2 an input "
        "and 2, at least 10, and 4 if noise is learnt; decisions then come later)",
        int,
    )
    seed: int = _setting(0, "the seed of everything random", int)
    audit: tuple[float, ...] = _setting(
        (),
        "confirm the answer: the share that may be wrong, the probability of more "
        "(alone: 0.05,0.05)",
        tuple,
    )

    def __post_init__(self) -> None:
        if not self.candidates or not self.column:
            missing = "the table of candidates" if self.column else "--column"
            if self.is_stored:
                name = "column" if self.candidates else "candidates"
                example = "strength" if self.candidates else "candidates.csv"
                raise ValueError(
                    f"{self.path.name}: expected {missing}, but got none. Add a line "
                    f'such as {name} = "{example}".'
                )
            raise ValueError(
                f"Expected {missing}, but got none, and there is no {self.path.name} "
                f"yet. Write: {PROGRAM} next candidates.csv --above 40 --column "
                f"strength.{self._lost}"
            )
        needs_level = self.outcome != CLASSES or self.below is not None
        if (self.above is None) == (self.below is None) and needs_level:
            raise ValueError(
                f"{f'{self.path.name}: e' if self.is_stored else 'E'}xpected one "
                "level, --above or --below, but got "
                f"{'none' if self.above is None else 'both'}."
            )
        if self.decimal not in (None, *MARKS):
            raise ValueError(
                "Expected `decimal` to be a point or a comma, but got "
                f"{self.decimal!r}."
            )
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError as error:
                raise ValueError(
                    "Expected `encoding` to be the name of one, such as gbk, "
                    f"shift_jis, cp1251 or mac_roman, but got {self.encoding!r}."
                ) from error
        if self.audit and len(self.audit) != 2:
            raise ValueError(
                "Expected `audit` to be a tolerance and a probability, as in 0.05,0.05,"
                f" but got {list(self.audit)}."
            )
        self.kind  # noqa: B018  (checks the settings about it)
        if any(getattr(self, name) not in (None, ()) for name in OF_SOURCES):
            check_sources(vars(self))
        if self.log_result and self.level <= 0:
            raise ValueError(
                "Expected a level above 0, which has a logarithm, with `log_result`, "
                f"but got {written(self.level)}. Leave `log_result` out."
            )
        if self.report is not None and not is_page(self.report):
            raise ValueError(
                f"Expected `report` to be a page, as in {PAGE}, but got "
                f"{self.report!r}."
            )
        for name in ("results", "out"):
            check_is_no_workbook(self.file(name), f"`{name}`")
        if self.file("out") == self.file("candidates"):
            raise ValueError(
                "Expected `out` to be another file than the candidates, which are "
                f"never written, but got {self.out}. Name another sheet."
            )
        history = None if self.history is None else self.file("history").resolve()
        same = (name for name in FILES[:3] if self.file(name).resolve() == history)
        if others := list(same):
            raise ValueError(
                "Expected `history` to be a table of earlier values alone, but got "
                f"{self.history}, which is `{others[0]}`. Leave it out, or name "
                "another table: values of the results count already."
            )
        if self.max_repeats is not None and self.max_repeats < 1:
            raise ValueError(
                "Expected `max_repeats` to be at least 1, but got "
                f"{self.max_repeats}. Leave it out where candidates may be measured "
                "any number of times."
            )
        if self.max_repeats is not None and self.trials is not None:
            raise ValueError(
                "Expected no `max_repeats` with `trials`, of which each line has its "
                f"own number, but got {self.max_repeats}. Leave `max_repeats` out, or "
                "`trials`, with a line for each trial."
            )

    @property
    def _lost(self) -> str:
        r"""A hint that the settings are lost, where there are results of theirs."""
        if not self.results or not (self.path.parent / self.results).exists():
            return ""
        return (
            f" There is {self.results} beside it, whose settings are lost: say "
            "candidates, level and column again as in the first call; the values in "
            f"{self.results} stay and count."
        )

    @property
    def level(self) -> float:
        r"""The level, whichever side is asked for."""
        level = self.below if self.above is None else self.above
        return MAJORITY if level is None else level

    @cached_property
    def kind(self) -> Kind | None:
        r"""The kind of results that are no measured numbers; ``None``: they are."""
        return kind_of(vars(self), self.level)

    @property
    def side(self) -> str:
        r"""The side that is asked for."""
        return "above" if self.below is None else "below"

    @property
    def notation(self) -> Notation:
        r"""The notation of numbers in the files."""
        return Notation(self.decimal, self.path.name if self.is_stored else None)

    @property
    def names(self) -> tuple[str, ...]:
        r"""All columns that the settings name."""
        several = (self.inputs, self.ignore, self.logs, self.words)
        return tuple(
            filter(
                None,
                (self.column, self.key, self.trials, *(n for s in several for n in s)),
            )
        )

    @property
    def later(self) -> Notation:
        r"""The way to give options from the next call on, when they are in a file."""
        return Notation(self.decimal, self.path.name)

    def file(self, name: str) -> Path:
        r"""The path of a file, relative to the folder of the settings.

        Args:
            name: ``"candidates"``, ``"results"`` or ``"out"``.
        """
        return self.path.parent / str(getattr(self, name))

    @property
    def page(self) -> Path | None:
        r"""The page to write at each call; ``None`` where nobody wants that."""
        return None if self.report is None else self.file("report")

    def write(self) -> None:
        r"""Write the file of the settings, which is not there yet."""
        lines = [
            f"{_TITLE}. Edit them here; every call reads them.",
            "# A line that begins with # is not set.",
            "",
        ]
        for part in _stored():
            value = getattr(self, part.name)
            is_set = value is not None and value != ()
            shown = _toml(value) if is_set else _example(part.name)
            text = f"{'' if is_set else '# '}{part.name} = {shown}"
            lines.append(f"{text}  # {part.metadata['words']}")
        replace_file(self.path, ("\n".join(lines) + "\n").encode(), Seen(None))


def is_page(name: str) -> bool:
    r"""Whether a file is a page by its name: no table is written over by mistake."""
    return Path(name).suffix.casefold() in (".html", ".htm")


def _stored() -> list[Any]:
    return [part for part in fields(Settings) if "words" in part.metadata]


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(part) for part in value)}]"
    if isinstance(value, float):
        text = repr(int(value)) if value == int(value) else repr(value)
        return (both_ways(text) or [text])[-1]  # 1.1250, as 1.125 is asked about
    # What JSON and TOML call a text, a number or a truth value is the same.
    return json.dumps(value, ensure_ascii=False)


def _example(name: str) -> str:
    examples = {
        "report": f'"{PAGE}"',
        "key": '"sample"',
        "inputs": '["time", "heat"]',
        "ignore": '["comment"]',
        "logs": '["dose"]',
        "words": '["lot"]',
        "decimal": '","',
        "open": '["PENDING"]',
        "encoding": '"gbk"',
        "audit": "[0.05, 0.05]",
        "beta": "9",
        "budget": "100",
        "max_repeats": "1",
        "first": "20",
        "log_result": "true",
        "outcome": '"yes-no"',
        "guess": "0.5",
        "lapse": "0.02",
        "trials": '"n"',
        "grades": "4",
        "at_least": "2",
        "classes": '["solid", "liquid", "gas"]',
        "sources": '["coarse", "fine"]',
        "source_costs": "[1, 50]",
        "target": '"fine"',
        "source_noise": "[0.5, 0.1]",
        "history": '"2025.csv"',
    }
    return examples.get(name, "1.0")


def options() -> list[tuple[str, str, Any, str]]:
    r"""The name, option, type and meaning of each setting, for a command line."""
    return [
        (
            part.name,
            f"--{part.name.replace('_', '-')}",
            part.metadata["kind"],
            part.metadata["words"] + _default_in_words(part.default),
        )
        for part in _stored()
        if part.name != "candidates"
    ]


def _default_in_words(default: Any) -> str:
    unset = (None, "", (), False, MISSING)
    return "" if any(default is value for value in unset) else f" (default {default})"


def settings(path: Path, given: Mapping[str, Any]) -> Settings:
    r"""The settings of a call: from their file if it is there, else from its options.

    Args:
        path: The file of the settings.
        given: The options of the call by name, without those that were left out.

    Raises:
        ValueError: If the file is not what it should be, or an option contradicts it.
    """
    options = {name: _from_here(name, given[name], path) for name in given}
    content = content_of(path)
    if content is None:
        return Settings(path=path, **options)
    text, _ = decoded(content, path.name)
    if text.startswith(_TITLE) and not text.endswith(("\n", "\r")):
        last = text.splitlines()[-1]
        raise ValueError(
            f"{path.name}, line {len(text.splitlines())}: no line break ends {last!r}, "
            "as every call writes it: the file was cut short. Restore it from a copy, "
            "or add what is missing and end the line with a line break."
        )
    try:
        stored = tomllib.loads(text, parse_float=Typed)
    except tomllib.TOMLDecodeError as error:
        for number, line in enumerate(text.splitlines(), 1):
            comma = _DECIMAL_COMMA.match(line)
            if comma is not None and (wanted := _with_point(comma[2])):
                raise ValueError(
                    f"{path.name}, line {number}: expected a number with a decimal "
                    f"point, but got {comma[2]}; write {comma[1]} = {wanted}."
                ) from error
        raise ValueError(
            f"{path.name}: expected lines such as above = 40, but: {error}. Texts need "
            "quotation marks."
        ) from error
    found = Settings(path=path, is_stored=True, **_checked(stored, path.name, text))
    differing = [n for n in options if not _same(n, options[n], getattr(found, n))]
    if differing:
        said = [_contradiction(name, options[name], found, text) for name in differing]
        raise ValueError(
            f"{'; '.join(said)}. Change it in {path.name}, which every call reads, and "
            "leave the option out. Nothing was written."
        )
    return found


def _with_point(text: str) -> str | None:
    r"""The correct spelling of a number in the settings; ``None`` if ambiguous."""
    if ways := both_ways(text):
        return " or ".join(ways)
    return (repaired(text) or "").removeprefix("write ") or None


def _from_here(name: str, value: Any, path: Path) -> Any:
    r"""The path of a file named in this folder, from the folder of the settings."""
    if name not in (*FILES, "report") or Path(value).is_absolute():
        return value
    return Path(os.path.relpath(value, path.parent)).as_posix()


def _same(name: str, one: Any, other: Any) -> bool:
    if name in (*FILES, "report") and None not in (one, other):
        return os.path.normpath(one) == os.path.normpath(other)
    return bool(one == other)


def _contradiction(name: str, given: Any, found: Settings, text: str) -> str:
    option = "" if name == "candidates" else f"--{name.replace('_', '-')} "
    shown = ",".join(map(str, given)) if isinstance(given, tuple) else given
    shown = written(given) if isinstance(given, float) else shown
    shown = f"{option}{shown}" if given is not True else option.strip()
    number = _line_of(name, text)
    if number is None:
        return f"{shown} contradicts {found.path.name}, where {name} is not set"
    value = _toml(getattr(found, name))
    return f"{shown} contradicts {found.path.name}, line {number}: {name} = {value}"


def _line_of(entry: str, text: str) -> int | None:
    r"""The number of the line that sets an entry; ``None`` if none does."""
    pattern = re.compile(rf"\s*[\"']?{re.escape(entry)}[\"']?\s*=")
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if pattern.match(line)), None)


def _checked(stored: Mapping[str, Any], file: str, text: str) -> dict[str, Any]:
    r"""The entries of a file of settings, each of its type.

    Args:
        stored: The entries.
        file: The name of the file, for messages.
        text: What it holds, to find the line of an entry.

    Raises:
        ValueError: If an entry is no setting, or not of its type.
    """
    parts = {part.name: part for part in _stored()}
    checked = {}
    for entry, value in stored.items():
        number = _line_of(entry, text)
        name = file if number is None else f"{file}, line {number}"
        if entry not in parts:
            near = difflib.get_close_matches(entry, parts, 1)
            raise ValueError(
                f"{name}: expected settings, but {entry!r} is none"
                + (f"; did you mean {near[0]!r}?" if near else ". Delete the line.")
            )
        checked[entry] = _of_kind(value, parts[entry].metadata["kind"], entry, name)
    return checked


def _of_kind(value: Any, kind: type, entry: str, name: str) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float and is_number:
        return value if isinstance(value, Typed) else float(value)
    text = value.text if isinstance(value, Typed) else value
    # 1.0 is a whole number; 1.000 are perhaps a thousand.
    is_doubtful = isinstance(value, Typed) and both_ways(value.text)
    if kind is int and is_number and value % 1 == 0 and not is_doubtful:
        return int(value)
    if kind is tuple and isinstance(value, list):
        wanted = int | float if entry in NUMBERS else str
        if all(isinstance(part, wanted) for part in value):
            return tuple(value)
    if kind in (str, bool) and isinstance(value, kind):
        return value
    if entry == "audit" and isinstance(value, bool):
        return USUAL_AUDIT if value else ()
    words = {
        float: "a number",
        int: "a whole number",
        tuple: f"a list such as {_example(entry)}",
        str: 'a text in quotation marks, "..."',
        bool: "true or false",
    }
    said = f"{name}: expected {entry} to be {words[kind]}, but got {text!r}"
    if kind in (int, float) and isinstance(text, str) and (way := _with_point(text)):
        said += f"; write {way}, without quotation marks"
    raise ValueError(f"{said}.")
