r"""Panels and progress drawn by plotly, which is imported only then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from botorch_lse.plotting.picture import CODES, COLOURS, INK, MARK
from botorch_lse.plotting.style import (
    FORECAST_SHOWN,
    LINES,
    PROBABILITY_MAP,
    ROUND_MAP,
    cells_of,
    check_shade,
    panel_grid,
    side_counts,
)
from botorch_lse.problem.classification import SIDES

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def slices_figure(frame: pd.DataFrame, shade: str = "side") -> Figure:
    r"""Draw slices with plotly; arguments as in ``plot_slices``."""
    check_shade(shade)
    figure, places = _panels(frame)
    colours = _colours(shade)
    figure.update_layout(coloraxis=colours)
    for place, (_, part) in zip(places, frame.groupby("panel"), strict=True):
        values = part["probability_above"].to_numpy(dtype=float)
        if shade == "side":
            values = part["side"].map(CODES).to_numpy(dtype=float)
        grid, words = cells_of(part), _words(part)
        if grid is None:
            line = {"color": INK, "width": 0.3}
            marker = {"color": values, "coloraxis": "coloraxis", "line": line}
            points = {"x": part["x"], "y": part["y"], "text": words}
            figure.add_scatter(
                **points, mode="markers", marker=marker, showlegend=False, **place
            )
        else:
            figure.add_heatmap(
                x=grid.x, y=grid.y, z=grid.spread(values), coloraxis="coloraxis",
                hovertemplate="%{x:g}, %{y:g}<br>%{z:.3g}<extra></extra>", **place,
            )  # fmt: skip
        seen = part[part["n_observations"] > 0]
        _dots(figure, seen, "measured", {"color": MARK, "size": 6}, place)
    if shade == "side":
        for side, label in side_counts(frame).items():
            _entry(figure, label, {"color": COLOURS[side], "symbol": "square"})
    return figure


def batches_figure(frame: pd.DataFrame) -> Figure:
    r"""Draw the placement of batches with plotly; argument as in ``plot_batches``."""
    figure, places = _panels(frame)
    last = max(float(np.nanmax(frame["round"].to_numpy(), initial=0.0)), 1.0)
    bar = {"title": "round"}
    figure.update_layout(
        coloraxis={"colorscale": ROUND_MAP, "cmin": 0, "cmax": last, "colorbar": bar}
    )
    for place, (_, part) in zip(places, frame.groupby("panel"), strict=True):
        grey = {"color": COLOURS["undecided"], "size": 3}
        _dots(figure, part, "pool", grey, place)
        seen = part[part["n_observations"] > 0]
        marker = {
            "color": seen["round"],
            "coloraxis": "coloraxis",
            "size": 7 * seen["n_observations"] ** 0.25,
            "line": {"color": INK, "width": 0.5},
        }
        _dots(figure, seen, "measured", marker, place)
        ring = {"color": MARK, "size": 11, "symbol": "circle-open"}
        _dots(figure, part[part["n_upcoming"] > 0], "planned or out", ring, place)
    return figure


def progress_figure(frame: pd.DataFrame) -> Figure:
    r"""Draw a run's progress with plotly; argument as in ``plot_progress``."""
    from plotly.subplots import make_subplots

    lower = [name for name in ("f1", "cost") if name in frame]
    heights = [2.0, *(1.0 for _ in lower)]
    figure = make_subplots(
        rows=len(heights), cols=1, shared_xaxes=True, row_heights=heights
    )
    n = frame["evaluations"]
    for side, dash in zip(SIDES, ("solid", "dash", "dashdot"), strict=True):
        line = {"color": LINES[side], "dash": dash, "shape": "hv"}
        figure.add_scatter(
            x=n, y=frame[side], mode="lines+markers", line=line, name=side, row=1, col=1
        )
    _add_forecast(frame, figure)
    figure.update_yaxes(title_text="rows", rangemode="tozero", row=1, col=1)
    for row, name in enumerate(lower, start=2):
        line = {"color": INK, "shape": "hv"}
        figure.add_scatter(
            x=n, y=frame[name], mode="lines", line=line, showlegend=False, row=row,
            col=1,
        )  # fmt: skip
        title = {"f1": "F1", "cost": "cost"}[name]
        figure.update_yaxes(title_text=title, row=row, col=1)
    figure.update_xaxes(title_text="evaluations", row=len(heights), col=1)
    return _finished(figure)


def _add_forecast(frame: pd.DataFrame, figure: Figure) -> None:
    last, foreseen = frame.iloc[-1], frame["forecast"].iloc[-1]
    if not np.isfinite(foreseen) or foreseen <= last["evaluations"]:
        return
    more = int(foreseen - last["evaluations"])
    figure.add_scatter(
        x=[last["evaluations"], foreseen],
        y=[last["undecided"], 0],
        mode="lines+markers",
        line={"color": MARK, "dash": "dot"},
        name=f"forecast: about {more:,} more",
        row=1,
        col=1,
    )
    shown = min(foreseen, FORECAST_SHOWN * last["evaluations"])
    figure.update_xaxes(range=[0, 1.05 * shown])


def _panels(frame: pd.DataFrame) -> tuple[Figure, list[dict[str, int]]]:
    from plotly.subplots import make_subplots

    heads = frame.groupby("panel")[["x_name", "y_name"]].first()
    rows, columns = panel_grid(len(heads))
    figure = make_subplots(
        rows=rows, cols=columns, horizontal_spacing=0.1, vertical_spacing=0.35 / rows
    )
    places = []
    for panel, (x_name, y_name) in enumerate(heads.to_numpy()):
        place = {"row": panel // columns + 1, "col": panel % columns + 1}
        figure.update_xaxes(title_text=x_name, **place)
        figure.update_yaxes(title_text=y_name, **place)
        places.append(place)
    return _finished(figure, 340 * rows if len(heads) > 1 else None), places


def _finished(figure: Figure, height: int | None = None) -> Figure:
    figure.update_layout(
        template="plotly_white",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.03, "x": 0.0},
        margin={"t": 60, "r": 20},
        height=height,
    )
    return figure


def _colours(shade: str) -> dict[str, Any]:
    if shade != "side":
        bar = {"title": "probability above"}
        return {
            "colorscale": PROBABILITY_MAP, "cmin": 0, "cmax": 1, "colorbar": bar
        }  # fmt: skip
    scale = [
        [(code + step) / 3, COLOURS[side]]
        for side, code in CODES.items()
        for step in (0, 1)
    ]
    return {"colorscale": scale, "cmin": -0.5, "cmax": 2.5, "showscale": False}


def _dots(
    figure: Figure,
    part: pd.DataFrame,
    name: str,
    marker: dict[str, Any],
    place: dict[str, int],
) -> None:
    first = name not in {trace.name for trace in figure.data}
    if len(part):
        figure.add_scatter(
            x=part["x"],
            y=part["y"],
            mode="markers",
            marker=marker,
            name=name,
            legendgroup=name,
            showlegend=first,
            text=[f"row {row}" for row in part["row"]],
            **place,
        )


def _entry(figure: Figure, label: str, marker: dict[str, Any]) -> None:
    none = [None]
    figure.add_scatter(x=none, y=none, mode="markers", marker=marker, name=label)


def _words(part: pd.DataFrame) -> list[str]:
    columns = zip(part["row"], part["mean"], part["probability_above"], strict=True)
    return [f"row {row}: mean {m:.3g}, probability {p:.3g}" for row, m, p in columns]
