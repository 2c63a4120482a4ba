r"""Several sources of values in tables, such as a quick assay and a careful one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from botorch_lse._numerals import MARKS, is_doubtful, number_with
from botorch_lse.cli.cells import SOURCE, Line, Table
from botorch_lse.cli.notation import Notation

OF_SOURCES = ("source_costs", "source_noise", "target", "sources", "history")
"""The settings of a table with several sources."""


def check_sources(found: Mapping[str, Any]) -> None:
    r"""Complain about settings of sources that do not go together.

    Args:
        found: The settings by name.

    Raises:
        ValueError: If one is missing, or does not go with another one.
    """
    sources, has_old = found["sources"], found["history"] is not None
    needs = [*OF_SOURCES[: 1 if has_old else 2], "target"]
    given = [name for name in needs if found[name] not in (None, ())]
    if given and not sources:
        raise ValueError(
            f"Expected `sources` to name the sources of `{given[0]}`, but got none. "
            f"Name them, as in coarse,fine, or leave `{given[0]}` out."
        )
    if found["outcome"] is not None:
        own = "sources" if sources else "history"
        raise ValueError(
            f"Expected no `outcome` with `{own}`, whose values are measured numbers, "
            f"but got {found['outcome']}. Leave one of the two out."
        )
    if sources:
        _check_names(found)
    noise, names = found["source_noise"], sources or ("these candidates",)
    if noise and found["noise_std"] is not None:
        raise ValueError(
            "Expected the noise once, but got both `noise_std` and `source_noise`. "
            "Leave one out: the first is that of all sources."
        )
    numbers = [len(names), len(names) + has_old]
    if noise and not (len(noise) in numbers and all(0 <= x < 1e300 for x in noise)):
        old = " and, if they are known otherwise, earlier values" * has_old
        raise ValueError(
            "Expected `source_noise` to be a standard deviation for each of "
            f"{', '.join(names)}{old}, but got {_listed(noise)}. Write one for each, 0 "
            "where values are exact, or leave it out, so that it is learnt."
        )


def _check_names(found: Mapping[str, Any]) -> None:
    r"""Complain about names of sources, or their costs; see ``check_sources``."""
    sources, costs = found["sources"], found["source_costs"]
    if found["results"] == found["candidates"]:
        raise ValueError(
            "Expected `results` to be another table than the candidates with "
            f"`sources`, but got {found['results']}. Copy measured lines to another "
            f"file, with a column {SOURCE!r}, and name that."
        )
    if len(sources) < 2 or len({*map(_word, sources)}) < len(sources):
        raise ValueError(
            "Expected `sources` to be at least two different names, but got "
            f"{', '.join(sources)}. Name each source that measures, or leave it out."
        )
    if found["target"] not in (None, *sources):
        raise ValueError(
            f"Expected `target` to be one of {', '.join(sources)}, but got "
            f"{found['target']!r}. Name the source that decides, by default the last."
        )
    if len(costs) != len(sources) or not all(0 < x < math.inf for x in costs):
        raise ValueError(
            "Expected `source_costs` to be a number above 0 for each of "
            f"{', '.join(sources)}, but got {_listed(costs)}. Write what a measurement "
            "costs at each, in any unit."
        )


def is_fidelity(sources: Sequence[str]) -> bool:
    r"""Whether sources are different numbers, such as sizes of a mesh, and not names.

    Args:
        sources: The names of the sources.
    """
    try:
        numbers = {*map(float, sources)}
    except ValueError:
        return False
    return len(numbers) == len(sources) > 1 and all(map(math.isfinite, numbers))


def number_in(
    line: Line, table: Table, column: str, notation: Notation
) -> float | None:
    r"""The number in a cell that says of which level of a fidelity a value is.

    Args:
        line: The line.
        table: Its file.
        column: The column of sources.
        notation: The notation of numbers.
    """
    text = line.cells[column]
    number = notation.with_mark(table.mark(column)).number(text)
    # A table's own marks and those of the settings may stand in one column.
    others = (number_with(mark, text) for mark in MARKS if not is_doubtful(text))
    return next((x for x in (number, *others) if x is not None), None)


def source_of(
    line: Line, table: Table, sources: Sequence[str], notation: Notation
) -> int:
    r"""The number of the source that measured a line, or is to measure it.

    Args:
        line: The line.
        table: Its file.
        sources: The names of the sources.
        notation: The notation of numbers.

    Raises:
        ValueError: If the line names none of them.
    """
    column = column_of_sources(table, f"which of {', '.join(sources)} measured a line")
    text, words = line.cells[column], [*map(_word, sources)]
    if is_fidelity(sources):
        number, levels = (
            number_in(line, table, column, notation),
            [*map(float, sources)],
        )
        if number is not None and number in levels:
            return levels.index(number)
    if _word(text) not in words:
        near = get_close_matches(_word(text), words, 1)
        wanted = f"a source ({', '.join(sources)})"
        came = f"got {text!r}" if text else "the cell is empty"
        remedy = f"write {sources[words.index(near[0])] if near else 'its name'}; a "
        remedy += "value of an earlier source belongs in a table that `history` names"
        raise table.complaint(line, column, wanted, came, remedy)
    return words.index(_word(text))


def column_of_sources(table: Table, meaning: str) -> str:
    r"""The column of a table that names sources.

    Args:
        table: The file.
        meaning: What the column says, for a message.

    Raises:
        ValueError: If there is none.
    """
    column = table.column(SOURCE)
    if column is None:
        raise ValueError(
            f"{table.name}: expected the column {SOURCE!r}, which says {meaning}, but "
            f"it has {', '.join(table.header)}. Add it."
        )
    return column


def number_of(name: str, sources: list[str]) -> int:
    r"""The number of a source by its name, in any case; a new name is added.

    Args:
        name: The name.
        sources: The names so far.
    """
    words = [*map(_word, sources)]
    if _word(name) in words:
        return words.index(_word(name))
    sources.append(name)
    return len(words)


def _word(text: str) -> str:
    return " ".join(text.casefold().split())


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{x:g}" for x in numbers) or "none"
