r"""Pictures drawn by matplotlib, which is imported only when one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_lse.plotting.picture import (
    CODES,
    COLOURS,
    INK,
    MARK,
    TRUTH,
    Grid,
    Picture,
    picture_of,
    sorted_intervals,
)
from botorch_lse.problem import Classification, Observations
from botorch_lse.problem.classification import SIDES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    import matplotlib.pyplot as plt

    picture = picture_of(classification, observations, threshold, truth, kind)
    if ax is None:
        _, ax = plt.subplots(figsize=(8.0, 6.0), layout="constrained")
    if picture.points is None:
        handles = _draw_intervals(picture, ax)
    else:
        handles = _draw_map(picture, picture.points, ax)
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)}
    ax.legend(handles=handles, ncols=3, frameon=False, fontsize="small", **below)
    return ax


def _draw_map(picture: Picture, points: np.ndarray, ax: Axes) -> list[Any]:
    from matplotlib.colors import ListedColormap

    handles = _side_patches(picture)
    palette = [COLOURS[side] for side in CODES]
    if picture.grid is None:
        shades = np.asarray(palette)[picture.codes.astype(int)]
        size = float(np.clip(2e4 / len(shades), 4, 60))
        ax.scatter(
            points[:, 0], points[:, 1], s=size, c=shades, edgecolors=INK, linewidths=0.2
        )
    else:
        grid = picture.grid
        colours: dict[str, Any] = {
            "cmap": ListedColormap(palette),
            "vmin": -0.5,
            "vmax": 2.5,
        }
        cells = grid.spread(picture.codes)
        ax.pcolormesh(
            grid.x, grid.y, cells, shading="nearest", rasterized=True, **colours
        )
        handles += _draw_contour(picture, grid, ax)
    x, y = points[picture.measured].T
    ax.set(xlabel=picture.names[0], ylabel=picture.names[1])
    return handles + _draw_marks(picture, x, y, ax)


def _draw_contour(picture: Picture, grid: Grid, ax: Axes) -> list[Any]:
    from matplotlib import patheffects

    level, truth = picture.threshold, picture.truth
    if truth is None or level is None or not truth.min() < level < truth.max():
        return []
    cells = np.ma.masked_invalid(grid.spread(truth))
    lines = ax.contour(grid.x, grid.y, cells, levels=[level], colors=INK, linewidths=1)
    lines.set_path_effects([patheffects.withStroke(linewidth=2.6, foreground="white")])
    return ax.plot([], [], color=INK, lw=1, label=f"true level {level:g}")


def _draw_marks(picture: Picture, x: np.ndarray, y: np.ndarray, ax: Axes) -> list[Any]:
    if x.size == 0:
        return []
    size = float(np.clip(3e3 / x.size, 7, 18)) * picture.counts[picture.measured] ** 0.5
    style: dict[str, Any] = {
        "c": MARK,
        "edgecolors": "white",
        "linewidths": 0.5,
        "zorder": 3,
    }
    return [ax.scatter(x, y, s=size, label=picture.measured_label, **style)]


def _draw_intervals(picture: Picture, ax: Axes) -> list[Any]:
    rank, lower, upper = sorted_intervals(picture)
    N, seen = len(rank), picture.measured
    width = float(np.clip(300 / N, 0.4, 6))
    for side in SIDES:
        rows = picture.side == side
        bars = ax.vlines(rank[rows], lower[rows], upper[rows], colors=COLOURS[side])
        bars.set(linewidth=width, rasterized=N > 1000)
    dots: dict[str, Any] = {"ls": "", "ms": float(np.clip(60 / N**0.5, 0.7, 3.5))}
    handles = _side_patches(picture)
    handles += ax.plot(rank, picture.mean, "o", c=INK, mew=0, label="mean", **dots)
    if picture.truth is not None:
        dots |= {"c": TRUTH, "mew": 0, "label": "truth"}
        handles += ax.plot(rank, picture.truth, "D", **dots)
    if picture.threshold is not None:
        level = ax.axhline(picture.threshold, color=INK, ls="--", lw=1)
        level.set_label(picture.level_label)
        handles.append(level)
    ax.set(xlabel="rows, sorted by mean", ylabel="y")
    ax.margins(x=0.01)
    return handles + _draw_marks(picture, rank[seen], picture.mean[seen], ax)


def _side_patches(picture: Picture) -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=COLOURS[side], edgecolor=INK, lw=0.4, label=picture.label(side))
        for side in SIDES
    ]
