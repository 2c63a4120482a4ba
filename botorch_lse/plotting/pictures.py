r"""The pictures: what each shows, drawn by matplotlib (``plot_...``) and by plotly.

For each picture there is one function that describes it by the records of ``marks.py``
and two that draw it. These take the same arguments, which the one for matplotlib
documents. Colours differ in lightness as well as in hue, so that they can be told apart
in print and by colour-blind readers.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy  # which loads its packages when they are first used
import torch

from botorch_lse._numerals import significant, written
from botorch_lse._validation import complaint, finite_number, one_of, real_vector
from botorch_lse.confidence.calibration import Calibration
from botorch_lse.data.classification import ACCEPTED, SIDES, Classification
from botorch_lse.data.names import in_order
from botorch_lse.data.observations import Observations
from botorch_lse.plotting import marks as m
from botorch_lse.plotting import with_matplotlib, with_plotly
from botorch_lse.plotting.axes import Axis, axes_of, names_in
from botorch_lse.plotting.frames import (
    EARLIER,
    IN_REGION,
    LATER,
    LEFT_OUT,
    WORDS,
    bare_frame,
    calibration_frame,
    check_answer,
    classes_of,
    side_words,
    slices_frame,
    words_in,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as PlotlyFigure

COLOURS = {"below": "#f4cf73", "undecided": "#8f9a97", "above": "#20488c"}
"""The colours of the sides: light, in between and dark (84, 63 and 31 of 100)."""
LINES = COLOURS | {"below": "#b58900", "undecided": "#5b6663"}
"""The sides' colours, dark enough for thin lines on white."""
INK = "#1a1a1a"
MARK = "#c8002f"
TRUTH = "#0a9396"
CLASSES = ("#f4d77c", "#a1dab4", "#41b6c4", "#2c7fb8", "#253494", "#081d58")
"""The colours of several classes, from low to high; the last one for all above it."""
CLASS_LINES = (LINES["below"], "#3f9a5f", "#1d8fa0", *CLASSES[3:])
"""The classes' colours, dark enough for thin lines on white."""
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
PROBABILITY_SCALE = m.Scale("cividis_r", 0.0, 1.0, "probability above", QUARTERS)
"""The colour scale of probabilities: light to dark like the sides, above being dark.
The colour map is made for colour-blind readers."""
PHASES = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9",
    "#d55e00", "#f0e442", "#332288", "#882255", "#b0b0b0",
)  # fmt: skip
"""The colours of classes without an order, by Okabe and Ito, and three more."""
NONE_COLOUR = "#4d4d4d"
"""The colour of rows that are decided to be of no class."""
FADED = 0.6
"""The share of white in the colour of rows that are only likely to be of a class."""
ROUND_MAP = "viridis"
SHADES = ("side", "probability_above")

_MOST_OUTPUTS = 4
"""The number of outputs shown unless two are named: six panels fit on a page."""
FORECAST_SHOWN = 3
"""The multiple of the evaluations made at which their axis ends.
A distant forecast does not squeeze the rest; the forecast's label has its number."""
PALE = "#7d95c2"
"""The colour of residuals that no longer count, beside the dark blue of others."""
WITHIN = -float(scipy.special.ndtri(0.025))
"""The bound within which a standard normal number lies with probability 95 %."""
LINE_LENGTH, TITLE_WIDTH = 105, 12.0
"""The letters on a title's line above two panels, and the panels' width in inches."""
_GRID_FILL = 0.1
"""The least share of a grid that rows must fill so that a map shows cells.
Else it shows points, as cells would be too small."""
_INTERVAL = (
    "name",
    "place",
    "row",
    "mean",
    "lower",
    "upper",
    "probability_above",
    "n_observations",
)
_PLACEMENT = ("name", "place", "row", "round", "n_observations", "n_upcoming")
"""The columns that plotly shows when the pointer is on a row."""
_PANEL = (3.3, 3.6)
"""Width and height of a panel beside others, inches.
Three fill a column of text and have labels of 10 pixels there, which can be read."""
_MOST_PANELS = 6
"""The number of inputs that have a panel of their own, those that tell most."""
_MOST_NAMED = 40
"""The number of rows that have their names at the axis."""
_MOST_PLACED = 20_000
"""The number of rows of which the pointer shows the inputs: each takes microseconds."""
_KINDS = ("map", "inputs", "intervals")


def plot_level_set(
    classification: Classification,
    observations: Observations | None = None,
    threshold: float | None = None,
    ax: Axes | None = None,
    truth: Any = None,
    kind: str | None = None,
    *,
    metric: str = "y",
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> Axes:
    r"""Draw a classification with matplotlib.

    For a pool with two inputs a map (cells where the rows lie on a grid or part of one,
    else points) with the measured rows. For one input every row's interval along it,
    with the means of the measured values and, where their noise is known, their own
    95 % intervals. For more inputs the share of each side along each input, first the
    inputs along which it changes most; numbers with many values in ten classes. Without
    a pool the intervals of rows sorted by mean. Inputs are shown as in the pool's
    table: in its units, also where the model sees their logarithms, and words by name.

    Args:
        classification: The answer for ``N`` rows.
        observations: The measurements.
        threshold: The level, units of ``y``: a line across the intervals; with
            ``truth`` the contour on the map. A region has its own levels, of which no
            one need be given: contours of each output on the map, lines across the
            intervals of one output; of several outputs the intervals are margins, with
            a line at the edge of the region.
        ax: Where to draw, of several panels the first; default a new figure.
        truth: ``N`` true values; on a grid their contour at ``threshold``, along inputs
            the share above it, else points on the intervals.
        kind: ``"map"``, ``"inputs"``, ``"intervals"`` (sorted by mean; of up to 40 rows
            with their names), or ``None``: what suits the number of inputs.
        metric: What was measured, with its unit: a label.
        title: Written above; how much is above follows where rows have weights.
        words: What sides are called; default in and out for a region of several levels.

    Returns:
        The axes drawn on; of several the first.

    Raises:
        ValueError: If ``truth`` comes without ``threshold`` for a map or along inputs,
            or ``kind`` is unknown, a map of other than two inputs, or ``"inputs"``
            without a pool whose inputs vary.
        BotorchTensorDimensionError: If ``truth`` has another length.
    """
    answer = classification, observations, threshold, truth, kind
    picture = level_set(*answer, metric=metric, title=title, words=words)
    if ax is not None:
        picture = replace(picture, panels=picture.panels[:1])
    return with_matplotlib.draw_on(picture, ax)


def level_set_figure(
    classification: Classification,
    observations: Observations | None = None,
    threshold: float | None = None,
    truth: Any = None,
    kind: str | None = None,
    *,
    metric: str = "y",
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> PlotlyFigure:
    r"""Draw a classification with plotly; arguments as in ``plot_level_set``."""
    answer = classification, observations, threshold, truth, kind
    picture = level_set(*answer, metric=metric, title=title, words=words)
    return with_plotly.draw(picture)


def level_set(
    classification: Classification,
    observations: Observations | None = None,
    threshold: float | None = None,
    truth: Any = None,
    kind: str | None = None,
    *,
    metric: str = "y",
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> m.Picture:
    r"""Describe the picture of ``plot_level_set``.

    A map for two inputs, intervals along one, the sides along each of more.
    """
    check_answer(classification, observations)
    pool, N = classification.pool, len(classification)
    if kind not in (None, *_KINDS):
        wanted = "to be 'map', 'inputs', 'intervals' or None"
        raise ValueError(complaint("kind", wanted, f"got {kind!r}"))
    if threshold is not None:
        threshold = finite_number(threshold, "threshold")
    if truth is not None:
        if pool is not None:
            truth = in_order(truth, pool.labels, "truth")
        truth = real_vector(truth, "truth", N, "row of the pool", booleans=True).numpy()
    words = side_words(classification) if words is None else words
    axes = [] if pool is None else axes_of(pool)
    suiting = "map" if len(axes) == 2 else "inputs" if len(axes) > 2 else "intervals"
    shown = kind or (suiting if N > 1 else "intervals")
    if shown != "intervals" and truth is not None and threshold is None:
        raise ValueError(
            "Expected `threshold` with `truth`, to know where the true contour runs, "
            "but got None."
        )
    is_map = len(axes) == 2 and N > 1 and shown == "map"
    if kind == "map" and not is_map:
        raise ValueError(
            "Expected a pool with two inputs for `kind='map'`. Draw `plot_slices` for "
            "more, or `kind='intervals'`."
        )
    varying = [axis for axis in axes if axis.varies]
    if kind == "inputs" and not varying:
        raise ValueError(
            "Expected a pool with inputs that vary for `kind='inputs'`. Draw "
            "`kind='intervals'`."
        )
    if is_map:
        names = [axis.name for axis in axes]
        frame = slices_frame(classification, observations, 0, names)  # all rows
        picture = _map_of_sides(frame, classification, threshold, truth, words)
    elif pool is not None and varying and shown == "inputs":
        frame = bare_frame(classification, observations)
        above = None if truth is None else truth > threshold
        picture = _along_inputs(varying, frame, pool.mass.cpu().numpy(), above, words)
    else:
        is_line = len(axes) == 1 and N > 1 and kind is None
        given = classification, observations, threshold, truth, metric, words
        picture = _intervals_of(*given, axes, is_line)
    return _titled(picture, classification, title)


def _map_of_sides(
    frame: pd.DataFrame,
    classification: Classification,
    threshold: float | None,
    truth: np.ndarray | None,
    words: Mapping[str, str],
) -> m.Picture:
    r"""The map over two inputs, with contours of the truth, or else of the means."""
    columns: Mapping[str, np.ndarray]
    contours = Contours()
    if classification.class_names:
        columns = {}  # the colours show where classes meet
    elif truth is None:
        columns, contours = _level_columns(classification)
    else:
        assert threshold is not None  # checked with the truth
        columns = {"truth": truth}
        contours = {f"true level {written(threshold)}": ("truth", threshold)}
    return _maps(frame.assign(**columns), "side", contours, words, (8.0, 6.0))


def _intervals_of(
    classification: Classification,
    observations: Observations | None,
    threshold: float | None,
    truth: np.ndarray | None,
    metric: str,
    words: Mapping[str, str],
    axes: list[Axis],
    is_line: bool,
) -> m.Picture:
    r"""The rows' intervals side by side, or along the only input (``is_line``)."""
    lines = _lines(classification)
    if threshold is not None:
        lines = {f"level {written(threshold)}": threshold}
    frame = bare_frame(classification, observations)
    if axes and len(classification) <= _MOST_PLACED:
        frame["place"] = _places(axes)
    values, along = None, None
    if len(classification.outputs) > 1 or classification.meaning == ACCEPTED:
        metric = "distance from another answer"  # no value is one
    elif observations is not None and observations.y.ndim == 1:
        values = measured_values(observations)
    if is_line:
        along = slices_frame(classification, observations, 0, [axes[0].name])
    return _intervals(frame, lines, truth, words, metric, values, along)


Contours = dict[str, tuple[str, float]]
"""The contour lines of a picture: by label a column of a frame and a level."""


def _level_columns(
    classification: Classification,
) -> tuple[dict[str, np.ndarray], Contours]:
    r"""The columns of outputs' means minus each level of a region, drawn where 0."""
    columns, contours = dict[str, np.ndarray](), Contours()
    for output in classification.outputs:
        for i, level in enumerate(output.levels):
            name = f"{output.name} over level {i}"
            columns[name] = (output.mean - level).detach().cpu().numpy()
            own = f" {written(level)}" if level.numel() == 1 else ", a level by row"
            # Of one output it is clear whose level it is; its name here is but "y0".
            whose = output.name if len(classification.outputs) > 1 else "level"
            label = f"{whose}{own}".removeprefix("level, ")
            contours[label] = (name, 0.0)
    return columns, contours


def _lines(classification: Classification) -> dict[str, float]:
    r"""The levels of a region of one output by label; of several the edge, 0."""
    outputs = classification.outputs
    if classification.meaning == ACCEPTED:
        return {"edge of the set": 0.0}
    if len(outputs) > 1:
        return {"edge of the region": 0.0}
    levels = [level for output in outputs for level in output.levels]
    return {f"level {written(v)}": float(v) for v in levels if v.numel() == 1}


def _titled(
    picture: m.Picture, classification: Classification, title: str
) -> m.Picture:
    r"""The picture with a title, and the share above where rows stand for more."""
    pool, words = classification.pool, [title] if title else []
    if pool is not None and pool.is_weighted:
        words.append(str(classification.content()))
    return _headed(picture, *words)


def _headed(picture: m.Picture, *words: str) -> m.Picture:
    r"""The picture under sentences, in lines no wider than the picture."""
    length = int(LINE_LENGTH * picture.size[0] / TITLE_WIDTH)
    lines = (textwrap.fill(word, length) for word in words)
    return replace(picture, title="\n".join(lines))


def plot_slices(
    frame: pd.DataFrame,
    shade: str = "side",
    *,
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> Figure:
    r"""Draw slices with matplotlib: a map for each pair of inputs.

    The inputs that a slice holds fixed are written above it.

    Args:
        frame: Of ``slices_frame``.
        shade: ``"side"`` (above, below, undecided), or ``"probability_above"``.
        title: Written above.
        words: The words for sides, such as ``{"above": "in", "below": "out"}``;
            default those that the frame knows of the answer.

    Returns:
        The figure.

    Raises:
        ValueError: If ``shade`` is neither.
    """
    return with_matplotlib.draw(slices(frame, shade, title=title, words=words))


def slices_figure(
    frame: pd.DataFrame,
    shade: str = "side",
    *,
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> PlotlyFigure:
    r"""Draw slices with plotly; arguments as in ``plot_slices``."""
    return with_plotly.draw(slices(frame, shade, title=title, words=words))


def slices(
    frame: pd.DataFrame,
    shade: str = "side",
    *,
    title: str = "",
    words: Mapping[str, str] | None = None,
) -> m.Picture:
    r"""Describe the picture of ``plot_slices``: a map for each pair of inputs."""
    one_of(shade, "shade", SHADES)
    words = words_in(frame) if words is None else words
    contours = {} if shade == "side" else {"probability 0.5": (shade, 0.5)}
    return _headed(_maps(frame, shade, contours, words or {}), title)


def plot_batches(frame: pd.DataFrame, *, title: str = "") -> Figure:
    r"""Draw the placement of batches with matplotlib.

    Args:
        frame: Of ``batches_frame``.
        title: Written above.

    Returns:
        The figure: pool rows small and grey, measured ones in the shade of their last
        round and larger for replicates, those to come as rings.
    """
    return with_matplotlib.draw(batches(frame, title=title))


def batches_figure(frame: pd.DataFrame, *, title: str = "") -> PlotlyFigure:
    r"""Draw the placement of batches with plotly; arguments as in ``plot_batches``."""
    return with_plotly.draw(batches(frame, title=title))


def batches(frame: pd.DataFrame, *, title: str = "") -> m.Picture:
    r"""Describe the picture of ``plot_batches``: a panel for each pair of inputs."""
    last = float(np.nanmax(frame["round"].to_numpy(), initial=0.0))
    ticks = tuple(np.unique(np.linspace(0, last, 6).round()).tolist())
    scale = m.Scale(ROUND_MAP, 0.0, max(last, 1.0), "round" if last > 0 else "", ticks)
    pool = m.Look(COLOURS["undecided"], "circle", 2.0)
    measured = m.Look("#777777", "circle", 4.7, INK, width=0.4, scale=scale)
    ring = m.Look(MARK, "ring", 7.7, width=1.4)

    def marks(part: pd.DataFrame) -> list[m.Mark]:
        measured_rows = part[part["n_observations"] > 0].sort_values("round")
        measured_rows = measured_rows.assign(value=measured_rows["round"])
        soon = part[part["n_upcoming"] > 0]
        return [
            _dots(part[["place", "row", "x", "y"]], pool, "pool"),
            _dots(measured_rows, measured, "measured", "n_observations"),
            _dots(soon, ring, "planned or out", "n_upcoming"),
        ]

    return _headed(_panels(frame, marks, _PLACEMENT), title)


def plot_progress(
    frame: pd.DataFrame, *, title: str = "", words: Mapping[str, str] | None = None
) -> Figure:
    r"""Draw a run's progress with matplotlib.

    Args:
        frame: Of ``progress_frame``.
        title: Written above.
        words: The words for sides, such as ``{"above": "in", "below": "out"}``;
            default those that the frame knows of the answer.

    Returns:
        The figure: rows on each side by evaluations, and below them F1 (where the truth
        is known) and the cumulative cost (unless each evaluation costs 1); the forecast
        as a dotted line.
    """
    return with_matplotlib.draw(progress(frame, title=title, words=words))


def progress_figure(
    frame: pd.DataFrame, *, title: str = "", words: Mapping[str, str] | None = None
) -> PlotlyFigure:
    r"""Draw a run's progress with plotly; arguments as in ``plot_progress``."""
    return with_plotly.draw(progress(frame, title=title, words=words))


def progress(
    frame: pd.DataFrame, *, title: str = "", words: Mapping[str, str] | None = None
) -> m.Picture:
    r"""Describe the picture of ``plot_progress``.

    Rows on each side by evaluations; below them F1 (if known) and the cost (if told).
    """
    words = words_in(frame) if words is None else words
    frame, last = frame.assign(x=frame["evaluations"]), frame.iloc[-1]
    symbols, dashes = ("circle", "square", "triangle"), ("solid", "dash", "dashdot")
    marks = list[m.Mark]()
    for side, symbol, dash in zip(SIDES, symbols, dashes, strict=True):
        look = m.Look(LINES[side], symbol, dash=dash, width=1.5, steps=True)
        label = words.get(side, side)
        marks.append(m.Series(frame.assign(y=frame[side]), look, label))
    spent, foreseen, x_range = last["evaluations"], last["forecast"], None
    if spent < foreseen < np.inf:
        ends = pd.DataFrame({"x": [spent, foreseen], "y": [last["undecided"], 0.0]})
        look = m.Look(MARK, "circle", dash="dot", width=1.5)
        label = f"forecast: about {int(foreseen - spent):,} more"
        marks.append(m.Series(ends, look, label))
        x_range = (0.0, 1.05 * min(foreseen, FORECAST_SHOWN * spent))
    panels = [m.Panel(tuple(marks), "", "rows", x_range, (0.0, None))]
    look = m.Look(INK, dash="solid", width=1.5, steps=True)
    # Where each evaluation costs 1 the axis says so.
    has_costs = not np.array_equal(frame["cost"], frame["evaluations"])
    kinds = ("f1", "F1", (0.0, 1.05)), ("cost", "cost", None)
    for name, word, y_range in kinds:
        if name in frame and (name != "cost" or has_costs):
            line = m.Series(frame.assign(y=frame[name]), look)
            panels.append(m.Panel((line,), "", word, x_range, y_range))
    panels[-1] = replace(panels[-1], x_label="evaluations")
    size, heights = (7.0, 2.0 + 1.5 * len(panels)), (2.0, 1.0, 1.0)[: len(panels)]
    picture = m.Picture(tuple(panels), size, _legend(marks), heights=heights)
    return _headed(picture, title)


def plot_pareto_set(
    frame: pd.DataFrame,
    outputs: tuple[str, str] | None = None,
    ax: Axes | None = None,
    *,
    title: str = "",
) -> Axes:
    r"""Draw the outputs of a Pareto strategy, or of a region, with matplotlib.

    Every row's means with their intervals, by whether it is accepted, rejected or open
    (in or out of the region, or undecided); measured rows are ringed.

    Args:
        frame: From ``pareto_frame``, or ``level_set(client)`` of a region.
        outputs: The two outputs to draw; default all, a panel for each pair of the
            first four, and on axes of yours the first two.
        ax: Where to draw; default a new figure.
        title: Written above.

    Returns:
        The axes drawn on; of several the first.

    Raises:
        ValueError: If ``frame`` has not two such outputs.
    """
    if outputs is None and ax is not None:
        first, second, *_ = (
            *_outputs_of(frame),
            "",
            "",
        )  # refused where there are none
        outputs = first, second
    return with_matplotlib.draw_on(pareto_set(frame, outputs, title=title), ax)


def pareto_set_figure(
    frame: pd.DataFrame, outputs: tuple[str, str] | None = None, *, title: str = ""
) -> PlotlyFigure:
    r"""Draw the outputs of a Pareto strategy with plotly; see ``plot_pareto_set``."""
    return with_plotly.draw(pareto_set(frame, outputs, title=title))


def pareto_set(
    frame: pd.DataFrame, outputs: tuple[str, str] | None = None, *, title: str = ""
) -> m.Picture:
    r"""Describe the picture of ``plot_pareto_set``: a panel for each pair of outputs.

    Accepted rows are painted last, on top of open and rejected ones.
    """
    known = _outputs_of(frame)
    names = known[:_MOST_OUTPUTS] if outputs is None else tuple(outputs)
    if len(names) < 2 or not set(names) <= set(known) or len(outputs or "xy") != 2:
        raise ValueError(
            f"Expected `outputs` to be two of the outputs in `frame`, {list(known)}, "
            f"but got {names if outputs is not None else None}. Draw the margins of a "
            "single output with `plot_level_set`."
        )
    rows = pd.DataFrame({"row": range(len(frame))})
    if (called := names_in(frame, ["side", "side_lse"])) is not None:
        rows["name"] = called
    for name in ("side", "n_observations"):  # of which the pool's table may have one
        ours = f"{name}_lse" if f"{name}_lse" in frame.columns else name
        rows[name] = frame[ours].to_numpy()
    words = WORDS
    if rows["side"].isin(SIDES).all():  # of a region
        words = {side: IN_REGION.get(side, side) for side in SIDES}
        rows["side"] = rows["side"].map(words)
    panels = []
    for pair in itertools.combinations(names, 2):
        located = rows
        for axis, name in zip("xy", pair, strict=True):
            ends = (frame[f"{name}_{end}"] for end in ("mean", "lower", "upper"))
            located = located.assign(**_with_finite_ends(axis, *ends))
        panels.append(m.Panel(tuple(_by_side(located, words)), *pair))
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    width, height = (7.0, 5.5) if len(panels) == 1 else (4.4, 3.8)
    picture = m.Picture(
        tuple(panels),
        (width * columns, height * -(-len(panels) // columns)),
        _legend(panels[0].marks)[::-1],
        columns,
        legend_columns=2,
        hover=("name", "row", "n_observations"),
    )
    return _headed(picture, title)


def _outputs_of(frame: pd.DataFrame) -> tuple[str, ...]:
    columns = [str(name) for name in frame.columns]
    names = (name.removesuffix("_mean") for name in columns if name.endswith("_mean"))
    return tuple(n for n in names if {f"{n}_lower", f"{n}_upper"} <= set(columns))


def _by_side(rows: pd.DataFrame, words: Mapping[str, str]) -> list[m.Mark]:
    r"""The rows with their intervals, side by side, in the sides' colours."""
    marks = list[m.Mark]()
    kinds = ("below", 3.0, 0.5), ("undecided", 4.2, 1.1), ("above", 6.0, 1.1)
    for side, size, bars in kinds:
        part = rows[rows["side"] == words[side]]
        look = m.Look(COLOURS[side], "circle", size, INK, width=0.4, bars=bars)
        marks.append(_dots(part, look, f"{words[side]} ({len(part):,})"))
    if (measured_rows := rows[rows["n_observations"] > 0]).size:
        label = f"measured ({int(measured_rows['n_observations'].sum()):,} times)"
        ring = m.Look(MARK, "ring", 4.9, width=0.8)
        marks.append(_dots(measured_rows, ring, label, "n_observations"))
    return marks


def plot_calibration(calibration: Calibration, *, metric: str = "y") -> Figure:
    r"""Draw with matplotlib whether predictions were as good as claimed.

    Args:
        calibration: ``state.calibration()``.
        metric: What was predicted, with its unit: a label.

    Returns:
        The figure. Left, each residual over the standard normal number of its rank: if
        the model is right they lie on the line, each of the later half that was
        predicted ahead with probability 95 % between the dashed lines; predictions that
        are too narrow make it steeper. Right, residuals with each value left out, over
        the predictions. What the calibration says is the title.

    Raises:
        ValueError: If ``calibration`` is no ``Calibration``.
    """
    return with_matplotlib.draw(calibration_picture(calibration, metric=metric))


def calibration_figure(calibration: Calibration, *, metric: str = "y") -> PlotlyFigure:
    r"""Draw a calibration with plotly; arguments as in ``plot_calibration``."""
    return with_plotly.draw(calibration_picture(calibration, metric=metric))


def calibration_picture(calibration: Calibration, *, metric: str = "y") -> m.Picture:
    r"""Describe the picture of ``plot_calibration``."""
    frame = calibration_frame(calibration)
    right = m.Look(INK, dash="solid", width=0.8)
    bound = m.Look(INK, dash="dash", width=0.8)

    def dots(kind: str, colour: str, symbol: str, x: str) -> m.Mark:
        # Without the column that is empty for this kind, so that no pointer shows it.
        rows = frame[frame["kind"] == kind].dropna(axis="columns")
        label, look = f"{kind} ({len(rows):,})", m.Look(colour, symbol, 3.5)
        return _dots(rows.assign(x=rows[x], y=rows["residual"]), look, label)

    def line(x: Any, y: Any, look: m.Look) -> m.Mark:
        label = "as predicted" if look is right else "95 % interval"
        return m.Series(pd.DataFrame({"x": x, "y": y}), look, label)

    later = frame[frame["kind"] == LATER].sort_values("expected")
    ends = _span(frame["expected"], 2.0)
    by_rank = [
        dots(EARLIER, PALE, "circle", "expected"),
        dots(LEFT_OUT, LINES["below"], "diamond", "expected"),
        dots(LATER, LINES["above"], "circle", "expected"),
        line(ends, ends, right),
        line(later["expected"], later["lower"], bound),
        line(later["expected"], later["upper"], bound),
    ]
    ends = _span(frame["predicted"].dropna(), 1.0)
    by_prediction = [
        dots(LEFT_OUT, LINES["below"], "diamond", "predicted"),
        line(ends, 0.0, right),
        line(ends, -WITHIN, bound),
        line(ends, WITHIN, bound),
    ]
    residual = "residual / predicted sd"
    expected = "normal quantile: expected residual"
    parts = [(by_rank, expected)]
    # Of answers of yes and no none is left out of its own prediction.
    if len(by_prediction[0].rows) or not len(calibration.ahead):
        parts.append((by_prediction, f"{metric}: predicted, itself left out"))
    panels = tuple(
        m.Panel(tuple(mark for mark in marks if len(mark.rows)), x_label, residual)
        for marks, x_label in parts
    )
    return m.Picture(
        panels,
        (10.0 if len(panels) > 1 else 5.2, 5.2),
        _legend(mark for panel in panels for mark in panel.marks),
        columns=len(panels),
        hover=("number", "predicted"),
        title=textwrap.fill(str(calibration), LINE_LENGTH * len(panels) // 2),
    )


def _span(values: pd.Series, default: float) -> tuple[float, float]:
    return (values.min(), values.max()) if len(values) else (-default, default)


def _places(axes: list[Axis]) -> list[str]:
    r"""The inputs of each row in words, the first four of them."""
    texts = [
        [f"{axis.name} {axis.text(row)}" for row in range(len(axis.values))]
        for axis in axes[:4]
    ]
    return [", ".join(words) for words in zip(*texts, strict=True)]


def _along_inputs(
    axes: list[Axis],
    frame: pd.DataFrame,
    mass: np.ndarray,
    truth: np.ndarray | None,
    words: Mapping[str, str],
) -> m.Picture:
    r"""The share of each side along each input, a panel for each.

    Args:
        axes: The inputs that vary.
        frame: Of ``bare_frame``.
        mass: ``N`` numbers: how much each row counts.
        truth: ``N`` bools, the rows that are truly above, if they are known.
        words: The words for the sides.
    """
    keys, line_colours = _sides(frame)[0], _line_colours(frame)
    labels, _ = _labels(frame, words)
    member = {side: (keys == side).to_numpy(float) for side in labels}
    if truth is not None:
        member["truth"], labels = truth.astype(float), labels | {"truth": "truly above"}
    found = list[tuple[float, m.Panel]]()
    for axis in axes:
        table, lines, spread = _along(axis, member, mass), list[m.Mark](), 0.0
        for (side, label), symbol in zip(
            labels.items(), itertools.cycle(("circle", "square", "triangle", "diamond"))
        ):
            colour = line_colours[side]
            dash = "dot" if side == "truth" else "solid"
            look = m.Look(colour, symbol, 5.0, dash=dash, width=1.6)
            rows = table[["x", "place", "rows"]].assign(y=table[side])
            lines.append(m.Series(rows.assign(share=table[side]), look, label))
            spread = max(spread, table[side].max() - table[side].min())
        shown = tuple(lines), axis.name, "share of rows", None, (-0.03, 1.03)
        found.append((spread, m.Panel(*shown, x_ticks=_ticks_of(axis))))
    found.sort(key=lambda one: -one[0])
    panels = tuple(panel for _, panel in found[:_MOST_PANELS])
    columns = 2 if len(panels) in (2, 4) else min(len(panels), 3)
    whole = (_PANEL[0] * columns, _PANEL[1] * -(-len(panels) // columns))
    legend = _legend(panels[0].marks)
    return m.Picture(panels, whole, legend, columns, hover=("place", "share", "rows"))


def _line_colours(frame: pd.DataFrame) -> dict[str, str]:
    r"""The colours of lines about the sides, the classes or the truth."""
    keys = _sides(frame)[1]
    if "class_number" in frame and "class_name" not in frame:
        last = len(CLASS_LINES) - 1
        numbers = range(len(keys) - 1)  # all but undecided
        keys = keys | {f"class {k}": CLASS_LINES[min(k, last)] for k in numbers}
    return keys | LINES | {"truth": TRUTH}


def _along(
    axis: Axis, member: Mapping[str, np.ndarray], mass: np.ndarray
) -> pd.DataFrame:
    r"""The share of each side in each class of an input's values, in their order.

    Args:
        axis: The input.
        member: By side ``N`` numbers, 1 for the rows on it.
        mass: How much each row counts.
    """
    classes = classes_of(axis.values).numpy()
    x = np.log10(axis.values) if axis.is_log else axis.values
    total = np.bincount(classes, mass)
    # A class in which no row counts has no share.
    total = np.where(total > 0, total, np.nan)
    n, texts = np.bincount(classes), list[str]()
    columns = {"x": np.bincount(classes, x) / n, "rows": n.astype(float)}
    for side, is_there in member.items():
        columns[side] = np.bincount(classes, mass * is_there) / total
    for k in range(len(n)):
        own = np.flatnonzero(classes == k)
        low, high = own[axis.values[own].argmin()], own[axis.values[own].argmax()]
        ends = dict.fromkeys((axis.text(int(low)), axis.text(int(high))))
        texts.append(f"{axis.name} {' to '.join(ends)}")
    return pd.DataFrame(columns).assign(place=texts).sort_values("x")


def _ticks_of(axis: Axis) -> m.Ticks | None:
    r"""The labels of an input's axis: its words, or numbers for their logarithms."""
    words = np.array(axis.words or [None], dtype=object)
    word = words[axis.values.astype(int) if axis.words else np.zeros(1, dtype=int)]
    part = {
        "x": axis.values,
        "x_word": np.broadcast_to(word, len(axis.values)),
        "x_log": axis.is_log,
        "x_name": axis.name,
    }
    return _ticks(pd.DataFrame(part), "x")


def _intervals(
    frame: pd.DataFrame,
    lines: Mapping[str, float],
    truth: np.ndarray | None,
    words: Mapping[str, str],
    metric: str,
    values: pd.DataFrame | None,
    along: pd.DataFrame | None,
) -> m.Picture:
    r"""A panel with every row's interval.

    Args:
        frame: Of ``bare_frame``.
        lines: By label the levels to draw.
        truth: ``N`` true values, if they are known.
        words: The words for the sides.
        metric: The measurements.
        values: Of ``measured_values``; ``None``: measured rows are marked at their
            means.
        along: Of ``slices_frame``, all rows in their order: their intervals stand where
            their one input is; ``None``: rows are sorted by mean.
    """
    N, mean, (sides, measured) = len(frame), frame["mean"], _labels(frame, words)
    keys, colours = _sides(frame)
    ends = _with_finite_ends("y", mean, frame["lower"], frame["upper"])
    x_label, x_ticks = "rows, sorted by mean", None
    x = np.argsort(np.argsort(mean.to_numpy(), kind="stable")).astype(float)
    margin = max(0.5, 0.01 * N)
    if "name" in frame and N <= _MOST_NAMED:
        order = np.argsort(x)
        x_ticks = m.Ticks(tuple(x[order]), tuple(frame["name"].iloc[order]))
    if along is not None:
        x_label, x_ticks = along["x_name"].iloc[0], _ticks(along, "x")
        x = _coordinates(along, "x").to_numpy(float)
        margin = 0.02 * np.ptp(x) or 0.5
    rows, marks = frame.assign(row=range(N), x=x, **ends), list[m.Mark]()
    for side, label in sides.items():
        bars = m.Look(colours[side], bars=np.clip(300 / N, 0.4, 6))
        marks.append(m.Series(rows[keys == side], bars, label))
    dot = m.Look(INK, "circle", np.clip(60 / N**0.5, 0.7, 3.5))
    marks.append(_dots(rows, dot, "mean"))
    if truth is not None:
        dot = replace(dot, colour=TRUTH, symbol="diamond")
        marks.append(_dots(rows.assign(y=truth), dot, "truth"))
    x_range = (float(x.min()) - margin, float(x.max()) + margin)
    for label, level in lines.items():
        line = pd.DataFrame({"x": x_range, "y": level})
        marks.append(m.Series(line, m.Look(INK, dash="dash"), label))
    if values is not None:
        own = rows.drop(columns=["y", "y_lower", "y_upper"])
        rows = own.join(values, how="inner")
    marks += _measured(rows, measured, bars=values is not None)
    panel = m.Panel(tuple(marks), x_label, metric, x_range=x_range, x_ticks=x_ticks)
    legend = _legend(marks, _swatches(sides, colours))
    return m.Picture((panel,), (8.0, 6.0), legend, hover=_INTERVAL)


def _maps(
    frame: pd.DataFrame,
    shade: str,
    contours: Mapping[str, tuple[str, float]],
    words: Mapping[str, str],
    size: tuple[float, float] | None = None,
) -> m.Picture:
    r"""Maps of a column, one for each panel of a frame.

    Args:
        frame: From ``slices_frame``.
        shade: The column that the colours show.
        contours: By label a column of ``frame`` and a level, to draw as contour lines.
        words: The words for the sides.
        size: Width and height of a panel, inches.
    """
    sides, measured = _labels(frame, words)
    keys, colours = _sides(frame)
    if shade == "side":
        scale = m.Scale(tuple(colours.values()), -0.5, len(colours) - 0.5)
        value = keys.map(list(colours).index)
    else:
        value = frame[shade]
        label = f"probability {words.get('above', 'above')}"
        sides, scale = {}, replace(PROBABILITY_SCALE, label=label)

    def marks(part: pd.DataFrame) -> list[m.Mark]:
        cells = _on_grid(part)
        if cells is None:
            # The fewer rows the larger; a map by itself has room for more.
            dot = np.clip((2e4 if size else 4e3) / len(part), 6, 60) ** 0.5
            look = m.Look(INK, "circle", dot, INK, width=0.2, scale=scale)
            # Each side by itself, so that a reader of the plotly figure can hide it.
            own = keys[part.index]
            groups = {label: part[own == s] for s, label in sides.items()}
            groups = groups or {"": part}
            drawn: list[m.Mark] = [m.Series(groups[k], look, k) for k in groups]
        else:
            drawn = [m.Cells(cells, scale)]
            dashes = itertools.cycle(("solid", "dash", "dot", "dashdot"))
            # Between words there is nothing through which a line could run.
            are_words = part["x_word"].notna().any() or part["y_word"].notna().any()
            for (label, (name, level)), dash in zip(
                () if are_words else contours.items(), dashes, strict=False
            ):
                if cells[name].min() < level < cells[name].max():
                    z = cells.assign(value=cells[name])
                    drawn.append(m.Contour(z, level, m.Look(INK, dash=dash), label))
        return drawn + _measured(part, measured)

    swatches = _swatches(sides, colours)
    return _panels(frame.assign(value=value), marks, _INTERVAL, swatches, size)


def _panels(
    frame: pd.DataFrame,
    marks: Callable[[pd.DataFrame], list[m.Mark]],
    hover: tuple[str, ...],
    swatches: Mapping[str, str] | None = None,
    size: tuple[float, float] | None = None,
) -> m.Picture:
    r"""A picture with one panel for each pair of inputs, at most three side by side.

    Args:
        frame: With the columns ``panel``, ``x_name`` and ``y_name``.
        marks: From the rows of one panel to its marks.
        hover: See ``Picture``.
        swatches: By label the colours of the sides, if the legend shows them.
        size: Width and height of a panel, inches.
    """
    panels = []
    for _, part in frame.groupby("panel"):
        first, place = part.iloc[0], _place(part)
        coordinates = {name: _coordinates(part, name) for name in "xy"}
        located = part.assign(place=place, **coordinates)
        drawn = tuple(mark for mark in marks(located) if len(mark.rows))
        panels.append(
            m.Panel(
                drawn,
                first["x_name"],
                first["y_name"],
                x_ticks=_ticks(part, "x"),
                y_ticks=_ticks(part, "y"),
                title=first["held"],
            )
        )
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    width, height = size or (_PANEL if len(panels) > 1 else (6.0, 4.6))
    whole = (width * columns, height * -(-len(panels) // columns))
    legend = _legend((mark for panel in panels for mark in panel.marks), swatches)
    return m.Picture(tuple(panels), whole, legend, columns, hover=hover)


def _coordinates(part: pd.DataFrame, axis: str) -> pd.Series:
    r"""The positions of rows on an axis: at logarithms if it has a log scale."""
    return np.log10(part[axis]) if part[f"{axis}_log"].iloc[0] else part[axis]


def _place(part: pd.DataFrame) -> pd.Series:
    words = []
    for axis in "xy":
        digits = significant(part[axis].min(), part[axis].max(), 6)
        numbers = part[axis].map(f"{{:.{digits}g}}".format)
        own = part[f"{axis}_word"].where(part[f"{axis}_word"].notna(), numbers)
        words.append(part[f"{axis}_name"] + " " + own.astype(str))
    return words[0] + ", " + words[1]


def _ticks(part: pd.DataFrame, axis: str) -> m.Ticks | None:
    r"""The labels of an axis: words, or numbers in place of their logarithms."""
    if part[f"{axis}_word"].notna().all():
        words = part.drop_duplicates(axis).sort_values(axis)
        return m.Ticks(tuple(words[axis]), tuple(words[f"{axis}_word"]))
    values = part[axis]
    is_round = part[f"{axis}_name"].iloc[0] == "round"
    if is_round and values.notna().any():  # there is no round 0.2
        at = np.unique(np.linspace(0, values.max(), 6).round()).tolist()
        return m.Ticks(tuple(at), tuple(written(value) for value in at))
    if not part[f"{axis}_log"].iloc[0]:
        return None
    low, high = math.log10(values.min()), math.log10(values.max())
    powers = range(math.floor(low), math.ceil(high) + 1)
    steps = (1,) if high - low > 2 else (1, 2, 5)
    # Every second or third power, if there are many.
    powers = powers[:: max(1, len(powers) // 6)]
    marks = [step * 10.0**power for power in powers for step in steps]
    shown = [v for v in marks if low - 1e-9 <= math.log10(v) <= high + 1e-9]
    at = tuple(math.log10(value) for value in shown)
    return m.Ticks(at, tuple(written(value) for value in shown))


def _legend(
    marks: Iterable[m.Mark], swatches: Mapping[str, str] | None = None
) -> tuple[m.Key, ...]:
    r"""The legend: a square for each side, then one entry for each other label."""
    swatch = m.Look(INK, "square", 8.0, edge=INK, width=0.4)
    kinds = (swatches or {}).items()
    looks = {label: replace(swatch, colour=colour) for label, colour in kinds}
    for mark in marks:
        if not isinstance(mark, m.Cells) and mark.label:
            # Large enough to be seen, small enough for a line of text.
            size = np.clip(mark.look.size, 5.0, 8.0)
            looks.setdefault(mark.label, replace(mark.look, size=size))
    return tuple(m.Key(label, look) for label, look in looks.items())


def _labels(
    frame: pd.DataFrame, words: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    r"""The labels of the sides and of the measured rows in the legend.

    With one panel they have the number of rows on each side, the number of
    measurements, and, if some rows were measured repeatedly, how many rows were.

    Args:
        frame: The rows, with their sides.
        words: The words for the sides.
    """
    keys, colours = _sides(frame)
    # Above before below, undecided ones last.
    order = sorted(colours, key=lambda side: side == "undecided")
    order = list(SIDES) if "class_number" not in frame else order
    sides = {side: words.get(side, side) for side in order}
    if "panel" in frame and frame["panel"].nunique() > 1:
        return sides, "measured"
    sides = {s: f"{w} ({(keys == s).sum():,})" for s, w in sides.items()}
    total, rows = frame["n_observations"].sum(), (frame["n_observations"] > 0).sum()
    noun = "row" if rows == 1 else "rows"
    where = f" on {rows:,} {noun}" if total > rows else ""
    return sides, f"measured ({total:,}{where})"


def _sides(frame: pd.DataFrame) -> tuple[pd.Series, dict[str, str]]:
    r"""The side of each row, and the colours of all; classes where there are such."""
    if "class_number" not in frame:
        return frame["side"], COLOURS
    number = frame["class_number"]
    if "class_name" in frame:
        return _named_classes(frame["class_name"], number < 0)
    keys = ("class " + number.astype(str)).where(number >= 0, "undecided")
    colours = {"undecided": COLOURS["undecided"]}
    for k in range(int(number.max()) + 1):
        colours[f"class {k}"] = CLASSES[min(k, len(CLASSES) - 1)]
    return keys, colours


def _named_classes(
    names: pd.Series, is_open: pd.Series
) -> tuple[pd.Series, dict[str, str]]:
    r"""The class of each row, likely ones told from decided ones, and the colours."""
    *classes, none = names.cat.categories
    full = dict(zip(classes, itertools.cycle(PHASES))) | {none: NONE_COLOUR}
    keys = names.astype(str).where(~is_open, names.astype(str) + ", likeliest")
    colours = dict[str, str]()
    for name, colour in full.items():
        parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        pale = "#" + "".join(f"{round(x + FADED * (255 - x)):02x}" for x in parts)
        colours |= {name: colour, f"{name}, likeliest": pale}
    shown = set(keys)
    return keys, {key: colour for key, colour in colours.items() if key in shown}


def _swatches(sides: Mapping[str, str], colours: Mapping[str, str]) -> dict[str, str]:
    return {label: colours[side] for side, label in sides.items()}


def measured_values(observations: Observations) -> pd.DataFrame:
    r"""The measured values of one output, by row.

    Args:
        observations: The measurements.

    Returns:
        By row the mean ``y`` of its values and the ends ``y_lower`` and ``y_upper`` of
        its 95 % interval, by the values' own noise; equal to it where that is unknown.
    """
    noise = observations.yvar
    yvar = torch.zeros_like(observations.y) if noise is None else noise
    counts = observations.counts
    n = torch.ones_like(observations.y) if counts is None else counts.to(yvar)
    columns = {"n": n, "y": n * observations.y, "var": n.square() * yvar}
    table = pd.DataFrame({k: v.numpy() for k, v in columns.items()})
    sums = table.groupby(observations.indices.numpy()).sum()
    mean, half = sums["y"] / sums["n"], WITHIN * sums["var"] ** 0.5 / sums["n"]
    return pd.DataFrame({"y": mean, "y_lower": mean - half, "y_upper": mean + half})


def _measured(rows: pd.DataFrame, label: str, bars: bool = False) -> list[m.Mark]:
    measured_rows = rows[rows["n_observations"] > 0]
    if measured_rows.empty:
        return []
    diameter = np.clip(3e3 / len(measured_rows), 7, 18) ** 0.5
    look = m.Look(MARK, "circle", diameter, edge="white", width=0.5, bars=0.8 * bars)
    return [_dots(measured_rows, look, label, "n_observations")]


def _dots(
    rows: pd.DataFrame, look: m.Look, label: str, times: str | None = None
) -> m.Series:
    r"""A symbol for each row; its area grows with the root of the column ``times``.

    The root keeps rows with many replicates from hiding their neighbours.
    """
    if times is not None:
        rows = rows.assign(size=look.size * rows[times] ** 0.25)
    return m.Series(rows, look, label)


def _with_finite_ends(
    axis: str, mean: pd.Series, lower: pd.Series, upper: pd.Series
) -> dict[str, np.ndarray]:
    r"""Columns for error bars along an axis; infinite ends are cut outside the rest."""
    ends = np.array((mean, lower, upper), dtype=float)
    finite = ends[np.isfinite(ends)]
    low, high = (finite.min(), finite.max()) if finite.size else (-1.0, 1.0)
    margin = 0.25 * ((high - low) or 1.0)
    down, up = ends[1].clip(low - margin), ends[2].clip(max=high + margin)
    return {axis: ends[0], f"{axis}_lower": down, f"{axis}_upper": up}


def _on_grid(part: pd.DataFrame) -> pd.DataFrame | None:
    r"""The rows with exactly equal coordinates if they lie on a grid or part of one.

    ``None`` if they do not; coordinates that differ by rounding errors are made equal.
    """
    cells = part.assign(x=_snapped(part["x"]), y=_snapped(part["y"]))
    x, y, N = cells["x"].nunique(), cells["y"].nunique(), len(cells)
    is_grid = max(x, y) < N and _GRID_FILL * x * y <= N
    return cells if is_grid and not cells.duplicated(["x", "y"]).any() else None


def _snapped(values: pd.Series) -> pd.Series:
    r"""The values, made equal where they differ by rounding errors only."""
    span = float(values.max() - values.min()) or 1.0
    keys = ((values - values.min()) / span).round(9)
    return values.groupby(keys).transform("first")
