r"""The report of a table's run, in the units and words of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import pandas as pd

from botorch_lse.cli.answers import answer_frame, columns
from botorch_lse.cli.measurements import MEASURED
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import PROGRAM
from botorch_lse.data.pool import Pool
from botorch_lse.plotting import level_set_frame
from botorch_lse.plotting.axes import axes_of
from botorch_lse.plotting.frames import side_words
from botorch_lse.plotting.report import (
    Drawing,
    Report,
    drawings_of,
    drawings_of_inputs,
    drawings_of_run,
    versions,
)

_APART = ("path", "is_stored", "report")
"""The settings that say where something stands, and nothing of the run."""


def report_of(
    run: Run, answer: Sequence[str], basis: str, lines: Sequence[Mapping[str, str]] = ()
) -> Report:
    r"""Gather what the report of a table's run says.

    Args:
        run: The run.
        answer: The present knowledge, in sentences.
        basis: What the answer rests on, in lines.
        lines: New lines of the sheet, which the run does not know yet.
    """
    state, frame = run.state, answer_frame(run)
    names = columns(run, level_set_frame(run.answer, state.measurements))
    for name in {*frame} & {*run.candidates.inputs}:  # cells are text, as in the file
        numbers = run.candidates.frame.get(name)
        if numbers is not None and pd.api.types.is_numeric_dtype(numbers):
            frame[name] = numbers.to_numpy()
    shown = run.candidates.drawn(run.rows)
    pool = run.pool.without_sources
    pool = Pool(pool.X, names=pool.names, table=shown)
    drawn = replace(run.answer, pool=pool)
    level: float | None = run.settings.level
    metrics = [run.quantity]
    if drawn.class_names:
        level, metrics = None, [output.name for output in drawn.outputs]
    words = side_words(drawn)
    observations = run.scale.shown(state.measurements)
    drawings, progress = list[Drawing](), list[Drawing]()
    if state.history.n_measured and bool(drawn.sigma.isfinite().any()):
        drawings = drawings_of(drawn, observations, metrics, words, level)
        if len(axes_of(pool)) > 1:  # intervals are not along the input
            label = {"title": {"text": "candidates, sorted by what is expected"}}
            drawings[-1].figure.update_layout(xaxis=label)
        drawings += drawings_of_inputs(state, metrics)
        progress = drawings_of_run(state, run.progress, words, metrics)
    return Report(
        title=run.question,
        answer=answer,
        facts=facts(run, bool(lines)),
        table=frame,
        side=names["side"],
        inside=words["above"],
        drawings=drawings,
        progress=progress,
        basis=basis.splitlines(),
        following=sheet(run, lines),
        following_words=following(run, bool(lines)),
        settings=settings(run),
        mark=run.mark,
    )


def facts(run: Run, is_new: bool) -> dict[str, str]:
    r"""The numbers of a run by name.

    Args:
        run: The run.
        is_new: Whether a sheet is new, and not counted yet.
    """
    measured = run.measured.having(MEASURED)
    found = {"measurements": f"{len(measured):,}{run.by_source}"}
    different = {entry.row % len(run.candidates) for entry in measured}
    found["different candidates"] = f"{len(different):,}"
    found["sheets"] = f"{run.measured.last_sheet + is_new:,}"
    if gone := len(run.measured.excluded):
        found["not measurable"] = f"{gone:,}"
    return found


def sheet(run: Run, lines: Sequence[Mapping[str, str]]) -> pd.DataFrame | None:
    r"""The lines of the sheet that are open, and new ones; ``None`` without any."""
    open_ = [entry.line.cells for entry in run.measured.open]
    if run.is_done or not (open_ or lines):
        return None
    frame = pd.DataFrame([*open_, *lines])
    header = [name for name in run.sheet_header if name in frame]
    frame = frame[[*header, *(name for name in frame if name not in header)]]
    return frame.drop(columns=run.result_column, errors="ignore")


def following(run: Run, is_new: bool) -> str:
    r"""A sentence on what to do next; ``is_new``: a sheet has new lines."""
    if run.is_done:
        return "Nothing more need be measured."
    if run.measured.open or is_new:
        return f"These lines of {run.settings.out} are open."
    return f"{PROGRAM} next writes what to measure next."


def settings(run: Run) -> dict[str, str]:
    r"""The settings, files and versions by which the answer can be had again.

    The fingerprints are the first 16 digits of the SHA-256 of the files.
    """
    found = {}
    for part in fields(run.settings):
        value = getattr(run.settings, part.name)
        if part.name not in _APART and value not in (None, (), "", False):
            found[part.name] = str(value)
    for name in ("candidates", "results", "history"):
        path = run.settings.file(name)
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[f"SHA-256 of {path.name}"] = digest[:16]
    return found | versions()
