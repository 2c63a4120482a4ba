r"""Inputs of simulated measurements, checked before torch is loaded."""

from __future__ import annotations

import math

from botorch_lse._numerals import written
from botorch_lse.cli.candidates import check_marks
from botorch_lse.cli.cells import Faults
from botorch_lse.cli.kinds import Fault, Kind, Labels
from botorch_lse.cli.measurements import MEASURED
from botorch_lse.cli.runs import Run

NO_TRUTH = (
    "Expected a truth to simulate, but no model is learnt from results yet. Say "
    "between which values most candidates will lie, --between 20,60, or name a column "
    "of known values, --truth COLUMN."
)
"""The message where nothing says what is true."""


def check_truth(
    run: Run,
    columns: tuple[str, ...] | None,
    between: tuple[float, ...] | None,
    noise: float | None,
) -> None:
    r"""Complain about a call from which no truth can be made.

    Args:
        run: The run.
        columns: The column of the candidates with the true values, one a source.
        between: The two ends of most true values.
        noise: The standard deviation of simulated noise.

    Raises:
        ValueError: If there is nothing to draw from, or there is no such column.
    """
    kind, has_results = run.settings.kind, bool(run.measured.having(MEASURED))
    if noise is not None and kind is not None:
        raise ValueError(
            "Expected no --noise with `outcome`, as results are drawn by "
            f"{kind.drawn_by}, but got {written(noise)}. Leave it out."
        )
    sources = run.settings.sources
    if columns is not None:
        if len(columns) != max(1, len(sources)):
            wanted = f"a column for each of {', '.join(sources)}" * bool(sources)
            raise ValueError(
                f"Expected --truth to name {wanted or 'one column'}, but got "
                f"{', '.join(columns)}. Separate names by commas, and put a name that "
                "has a comma in quotation marks."
            )
        for column in columns:
            true_values(run, column)
    elif isinstance(kind, Labels) and (between is not None or not has_results):
        raise ValueError(
            "Expected true classes, or results to learn them from, but got "
            f"{'none' if between is None else '--between'}. Name a column of the "
            "candidates: --truth COLUMN."
        )
    elif between is not None and run.measured.sources:
        raise ValueError(
            "Expected --truth where values come from several sources, but got "
            "--between, which does not say how they differ. Name columns of true "
            "values, or leave it out once results have taught a model."
        )
    elif between is None:
        if not has_results:
            raise ValueError(NO_TRUTH)
        return  # the model may have learnt the noise, too
    elif kind is not None and not kind.allows(*between):
        raise ValueError(
            f"Expected --between to be {kind.drawn_by} with `outcome`, from "
            f"{limits_of(kind)}, but got {','.join(map(written, between))}."
        )
    elif run.scale.is_log and between[0] <= 0:
        raise ValueError(
            "Expected --between to be numbers above 0, which have logarithms, with "
            f"`log_result`, but got {','.join(map(written, between))}."
        )
    if kind is not None:
        return  # results are drawn by what is true
    stated = run.settings.noise_std is not None or run.settings.source_noise
    if noise is None and not stated:
        raise ValueError(
            "Expected the noise of a measurement, which nothing says yet, but got "
            "none. Give its standard deviation: --noise 0.5 (0 for none)."
        )


def limits_of(kind: Kind) -> str:
    r"""The limits of what levels are about, such as ``"0 to 1"``."""
    low, high = kind.bounds
    return f"{written(low)} {'on' if math.isinf(high) else f'to {written(high)}'}"


def true_values(run: Run, column: str) -> list[float]:
    r"""The true values that stand in a column of the candidates.

    Args:
        run: The run.
        column: Its name.

    Raises:
        ValueError: If there is no such column, it is an input, or a cell is no number.
    """
    table = run.candidates.table
    name = table.column(column)
    if name is None:
        raise ValueError(
            f"{table.name}: expected the column {column!r} of true values, but it has "
            f"{', '.join(table.header)}."
        )
    if name in run.settings.inputs:
        advice = run.settings.notation.advice("ignore", name)
        raise ValueError(
            f"{table.name}: expected true values in a column that is no input, but "
            f"{name} is one; {advice}."
        )
    kind = run.settings.kind
    check_marks(table, name, run.settings.notation)
    notation = run.settings.notation.with_mark(table.mark(name))
    values, faults = list[float](), Faults()
    for row in run.rows:
        line = run.candidates.lines[row]
        text = line.cells[name]
        value = notation.number(text)
        if isinstance(kind, Labels):
            result = kind.result_of(text, value)
            if not isinstance(result, Fault):
                values.append(result)
                continue
            wanted, remedy = result.wanted, result.remedy
        elif value is None:
            wanted, remedy = "a number", notation.repair(text)
        elif value <= 0 and run.scale.is_log:
            wanted, remedy = "a number above 0, which has a logarithm", "correct it"
        elif kind is not None and not kind.allows(value):
            wanted, remedy = kind.true_value, f"write one from {limits_of(kind)}"
        else:
            values.append(value)
            continue
        complaint = table.complaint(line, name, wanted, f"got {text!r}", remedy)
        faults.said.append(str(complaint))
    faults.check()
    return values
