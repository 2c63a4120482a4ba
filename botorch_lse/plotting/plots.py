r"""The pictures, drawn by matplotlib (``plot_...``) and by plotly (``..._figure``).

Both take the same arguments; matplotlib's say what they mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from botorch_lse.plotting import pictures, with_matplotlib, with_plotly
from botorch_lse.problem import Classification, Observations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from plotly.graph_objects import Figure as PlotlyFigure


def plot_level_set(
    classification: Classification,
    observations: Observations | None = None,
    threshold: float | None = None,
    ax: Axes | None = None,
    truth: Any = None,
    kind: str | None = None,
) -> Axes:
    r"""Draw a classification with matplotlib.

    For a pool with two inputs a map (cells where the rows lie on a grid or part of one,
    else points) with the measured rows; otherwise every row's interval, rows sorted by
    mean.

    Args:
        classification: The answer for ``N`` rows.
        observations: What was measured.
        threshold: The level, units of ``y``: a line across the intervals; with
            ``truth`` the contour on the map.
        ax: Where to draw; default a new figure.
        truth: ``N`` true values; on a grid their contour at ``threshold``, else points
            on the intervals.
        kind: ``"map"``, ``"intervals"``, or ``None``: a map where there are two inputs.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If ``truth`` comes without ``threshold`` for a map, or ``kind`` is
            unknown or a map of other than two inputs.
        BotorchTensorDimensionError: If ``truth`` has another length.
    """
    picture = pictures.level_set(classification, observations, threshold, truth, kind)
    return with_matplotlib.draw_on(picture, ax)


def level_set_figure(
    classification: Classification,
    observations: Observations | None = None,
    threshold: float | None = None,
    truth: Any = None,
    kind: str | None = None,
) -> PlotlyFigure:
    r"""Draw a classification with plotly; arguments as in ``plot_level_set``."""
    return with_plotly.draw(
        pictures.level_set(classification, observations, threshold, truth, kind)
    )


def plot_slices(frame: pd.DataFrame, shade: str = "side") -> Figure:
    r"""Draw slices with matplotlib: a map for each pair of inputs.

    Args:
        frame: Of ``slices_frame``.
        shade: ``"side"`` (above, below, undecided), or ``"probability_above"``.

    Returns:
        The figure.

    Raises:
        ValueError: If ``shade`` is neither.
    """
    return with_matplotlib.draw(pictures.slices(frame, shade))


def slices_figure(frame: pd.DataFrame, shade: str = "side") -> PlotlyFigure:
    r"""Draw slices with plotly; arguments as in ``plot_slices``."""
    return with_plotly.draw(pictures.slices(frame, shade))


def plot_batches(frame: pd.DataFrame) -> Figure:
    r"""Draw the placement of batches with matplotlib.

    Args:
        frame: Of ``batches_frame``.

    Returns:
        The figure: pool rows small and grey, measured ones in the shade of their last
        round and larger for replicates, those to come as rings.
    """
    return with_matplotlib.draw(pictures.batches(frame))


def batches_figure(frame: pd.DataFrame) -> PlotlyFigure:
    r"""Draw the placement of batches with plotly; argument as in ``plot_batches``."""
    return with_plotly.draw(pictures.batches(frame))


def plot_progress(frame: pd.DataFrame) -> Figure:
    r"""Draw a run's progress with matplotlib.

    Args:
        frame: Of ``progress_frame``.

    Returns:
        The figure: rows on each side by evaluations, and below them F1 (where the truth
        is known) and the cumulative cost; the forecast as a dotted line.
    """
    return with_matplotlib.draw(pictures.progress(frame))


def progress_figure(frame: pd.DataFrame) -> PlotlyFigure:
    r"""Draw a run's progress with plotly; argument as in ``plot_progress``."""
    return with_plotly.draw(pictures.progress(frame))


def plot_pareto_set(
    frame: pd.DataFrame,
    outputs: tuple[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw two outputs of a Pareto strategy with matplotlib.

    Every row's means with their intervals, by whether it is accepted, rejected or open;
    measured rows are ringed.

    Args:
        frame: From ``pareto_frame``.
        outputs: The two outputs to draw; default the first two.
        ax: Where to draw; default a new figure.

    Returns:
        The axes drawn on.

    Raises:
        ValueError: If ``frame`` has not two such outputs.
    """
    return with_matplotlib.draw_on(pictures.pareto_set(frame, outputs), ax)


def pareto_set_figure(
    frame: pd.DataFrame, outputs: tuple[str, str] | None = None
) -> PlotlyFigure:
    r"""Two outputs of a Pareto strategy with plotly; see ``plot_pareto_set``."""
    return with_plotly.draw(pictures.pareto_set(frame, outputs))
