r"""The answer of a run as files: a table and a picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from botorch_lse._files import Seen, write_figure
from botorch_lse._numerals import written
from botorch_lse.cli.cells import write_table, writing
from botorch_lse.cli.runs import Run
from botorch_lse.data.pool import Pool
from botorch_lse.plotting import level_set_frame, plot_level_set
from botorch_lse.plotting.axes import axes_of

UNMEASURABLE = "n/a"
"""The word for the side of candidates that cannot be measured."""
OF_A_LEVEL = ("class", "probability_above", "mean", "sigma", "lower", "upper")
"""The columns that say something of one level, and nothing of classes."""
OF_CLASSES = 0.01
"""The standard deviation to which probabilities of classes are written."""
PLACES = 6
"""The decimal places of probabilities: nobody wants to read 3e-16."""


def answer_frame(run: Run) -> pd.DataFrame:
    r"""The candidates in the order of their file with the answer beside them."""
    frame = level_set_frame(run.answer, run.state.measurements)
    ours, lines = columns(run, frame), run.candidates.lines
    frame.index = pd.Index([lines[row].number for row in run.rows])
    if run.answer.class_names:  # sides, and distances from another class, tell little
        frame[ours["side"]] = frame[ours["class"]].fillna("undecided")
        frame = frame.drop(columns=[ours[name] for name in OF_A_LEVEL])
    for row, entry in run.measured.known.items():
        # Of these only the limit is known; the rest comes from what lies around.
        end, other = ("upper", "lower")[:: 1 if entry.side == "below" else -1]
        names = [ours[name] for name in ("mean", "sigma", other, end)]
        frame.loc[lines[row % len(lines)].number, names] = *[np.nan] * 3, entry.value
    said = run.measured.remarks_of(run.sheet_header)
    number = {line.number: row for row, line in enumerate(lines)}
    out = [lines[row] for row in sorted({*range(len(lines))} - {*run.rows.tolist()})]
    if out:
        rest = pd.DataFrame([line.cells for line in out], [line.number for line in out])
        rest[ours["side"]] = UNMEASURABLE
        frame = pd.concat([frame, rest])
    for name, rows in said.items():
        at_sources = range(
            0, max(1, len(run.measured.sources)) * len(lines), len(lines)
        )
        noted = (([number[at] + n for n in at_sources]) for at in frame.index)
        added = ["; ".join(rows[i] for i in one if rows.get(i)) for one in noted]
        frame[f"{name}_lse" if name in frame else name] = added
    return frame.sort_index()


def columns(run: Run, frame: pd.DataFrame) -> dict[str, str]:
    r"""The names of the columns that the answer adds, by their content.

    Their names end otherwise where the candidates' table has one of them already.

    Args:
        run: The run.
        frame: The answer.
    """
    own = len(run.candidates.table.header)  # ours stand behind these
    names = [str(name) for name in frame.columns[own:]]
    # From behind: what people have added stands there, and may have such a name, too.
    return {name.removesuffix("_lse"): name for name in reversed(names)}


def write_answer(run: Run, path: Path, over: Seen | None = None) -> None:
    r"""Write the answer's table in the style of the candidates' file.

    Args:
        run: The run.
        path: The file.
        over: The content that the caller saw; default: any is replaced.
    """
    frame, mark = answer_frame(run), run.mark
    names, ours = [str(name) for name in frame.columns], columns(run, frame)

    def text(name: str, value: object, sigma: float) -> str:
        if not isinstance(value, float):
            return str(value)
        if name == ours["n_observations"]:  # missing where others have whole ones
            return "" if np.isnan(value) else f"{value:.0f}"
        if not np.isfinite(value) or np.isinf(sigma):  # no model is learnt yet
            return ""
        if name == ours.get("probability_above"):
            return f"{round(value, PLACES):.6g}".replace(".", mark)
        return written(value, sigma).replace(".", mark)

    rows = []
    for row in frame.to_dict(orient="records"):
        sigma = float(row[ours["sigma"]]) if "sigma" in ours else OF_CLASSES
        rows.append({name: text(name, row[name], sigma) for name in names})
    style = run.candidates.table.style.of_another
    write_table(path, names, rows, style, over)


def draw_answer(run: Run, path: Path, over: Seen | None = None) -> None:
    r"""Draw the answer: a map of two inputs, else the interval of each candidate.

    Args:
        run: The run.
        path: The file.
        over: The content that the caller saw; default: any is replaced.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If the file cannot be written.
    """
    found, answer = run.settings, run.answer
    pool = run.pool.without_sources
    observations = run.scale.shown(run.state.measurements)
    shown = run.candidates.drawn(run.rows)
    drawn = Pool(pool.X, names=pool.names, table=shown)
    answer = replace(answer, pool=drawn)
    # One picture for one file: of more inputs each candidate, not each input.
    kind = "intervals" if len(axes_of(drawn)) > 2 else None
    level = None if answer.class_names else found.level
    axes = plot_level_set(answer, observations, level, kind=kind)
    axes.set_title(run.question)
    if axes.get_ylabel() == "y":
        axes.set_ylabel(run.quantity)
        if run.scale.is_log:
            axes.set_yscale("log")
    if axes.get_xlabel() == "rows, sorted by mean":
        axes.set_xlabel("candidates, sorted by what is expected")
    figure = axes.get_figure(root=True)
    assert figure is not None  # drawn just now
    with writing(path):
        try:
            write_figure(figure, path, over, dpi=150, bbox_inches="tight")
        except ValueError as error:  # the end of its name is no format
            said = f"{path}: the picture cannot be written ({error})."
            raise ValueError(said) from error
