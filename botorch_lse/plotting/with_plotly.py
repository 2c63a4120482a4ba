r"""Pictures drawn by plotly, which is imported only when one is drawn."""

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
    from plotly.graph_objects import Figure


def level_set_figure(
    classification: Classification,
    observations: Observations | None = None,
    threshold: float | None = None,
    truth: Any = None,
    kind: str | None = None,
) -> Figure:
    r"""Draw a classification with plotly; arguments as in ``plot_level_set``."""
    import plotly.graph_objects as go

    picture = picture_of(classification, observations, threshold, truth, kind)
    figure = go.Figure()
    if picture.points is None:
        _add_intervals(picture, figure)
    else:
        _add_map(picture, picture.points, figure)
    figure.update_layout(
        template="plotly_white",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0.0},
        margin={"t": 60, "r": 20},
    )
    return figure


def _add_map(picture: Picture, points: np.ndarray, figure: Figure) -> None:
    if picture.grid is None:
        for side in SIDES:
            x, y = points[picture.side == side].T
            edge = {"color": INK, "width": 0.3}
            marker: dict[str, Any] = {"color": COLOURS[side], "line": edge}
            label = picture.label(side)
            figure.add_scattergl(x=x, y=y, mode="markers", marker=marker, name=label)
    else:
        grid = picture.grid
        scale = [
            [(code + step) / 3, COLOURS[side]]
            for side, code in CODES.items()
            for step in (0, 1)
        ]
        figure.add_heatmap(
            x=grid.x,
            y=grid.y,
            z=grid.spread(picture.codes),
            zmin=-0.5,
            zmax=2.5,
            colorscale=scale,
            showscale=False,
            customdata=grid.spread(picture.mean),
            hovertemplate="%{x:g}, %{y:g}<br>mean %{customdata:g}<extra></extra>",
        )
        for side in SIDES:  # the legend's entries
            marker = {"color": COLOURS[side], "symbol": "square"}
            none = [None]
            label = picture.label(side)
            figure.add_scatter(
                x=none, y=none, mode="markers", marker=marker, name=label
            )
        _add_contour(picture, grid, figure)
    x, y = points[picture.measured].T
    _add_marks(picture, x, y, figure)
    figure.update_layout(xaxis_title=picture.names[0], yaxis_title=picture.names[1])


def _add_contour(picture: Picture, grid: Grid, figure: Figure) -> None:
    if picture.truth is None or picture.threshold is None:
        return
    level = picture.threshold
    figure.add_contour(
        x=grid.x,
        y=grid.y,
        z=grid.spread(picture.truth),
        contours={"start": level, "end": level, "size": 1, "coloring": "none"},
        line={"color": INK, "width": 1.5},
        showscale=False,
        showlegend=True,
        hoverinfo="skip",
        name=f"true level {level:g}",
    )


def _add_marks(picture: Picture, x: np.ndarray, y: np.ndarray, figure: Figure) -> None:
    if x.size:
        size = 6.0 * picture.counts[picture.measured] ** 0.25
        line = {"color": "white", "width": 0.7}
        marker = {"color": MARK, "size": size, "line": line}
        name = picture.measured_label
        figure.add_scattergl(x=x, y=y, mode="markers", marker=marker, name=name)


def _add_intervals(picture: Picture, figure: Figure) -> None:
    rank, lower, upper = sorted_intervals(picture)
    for side in SIDES:
        rows = picture.side == side
        gap = np.full(int(rows.sum()), np.nan)
        x = np.stack((rank[rows], rank[rows], gap), axis=1).ravel()
        y = np.stack((lower[rows], upper[rows], gap), axis=1).ravel()
        line, label = {"color": COLOURS[side], "width": 2}, picture.label(side)
        figure.add_scattergl(x=x, y=y, mode="lines", line=line, name=label)
    dots: dict[str, Any] = {"mode": "markers", "x": rank}
    marker: dict[str, Any] = {"color": INK, "size": 3}
    figure.add_scattergl(**dots, y=picture.mean, marker=marker, name="mean")
    if picture.truth is not None:
        marker = {"color": TRUTH, "size": 4, "symbol": "diamond"}
        figure.add_scattergl(**dots, y=picture.truth, marker=marker, name="truth")
    if picture.threshold is not None:
        line = {"color": INK, "width": 1, "dash": "dash"}
        ends, level = [0, len(rank) - 1], [picture.threshold] * 2
        label = picture.level_label
        figure.add_scattergl(x=ends, y=level, mode="lines", line=line, name=label)
    seen = picture.measured
    _add_marks(picture, rank[seen], picture.mean[seen], figure)
    figure.update_layout(xaxis_title="rows, sorted by mean", yaxis_title="y")
