r"""The picture of a Pareto set drawn by plotly, imported only when it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from botorch_lse.plotting.pareto import SIDE_OF, pareto_picture
from botorch_lse.plotting.picture import COLOURS, INK

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def pareto_set_figure(
    frame: pd.DataFrame, outputs: tuple[str, str] | None = None
) -> Figure:
    r"""Two outputs of a Pareto strategy with plotly; see ``plot_pareto_set``."""
    import plotly.graph_objects as go

    picture = pareto_picture(frame, outputs)
    figure = go.Figure()
    for side, code in SIDE_OF.items():
        rows = picture.side == side
        mean, counts = picture.mean[rows], picture.counts[rows]
        up, down = picture.upper[rows] - mean, mean - picture.lower[rows]
        size = {"rejected": 4, "open": 6, "accepted": 9}[side]
        figure.add_scatter(
            x=mean[:, 0],
            y=mean[:, 1],
            mode="markers",
            marker={"color": COLOURS[code], "size": size, "line": {"color": INK}},
            marker_line_width=0.5,
            error_x=_bars(up[:, 0], down[:, 0], side),
            error_y=_bars(up[:, 1], down[:, 1], side),
            name=picture.label(side),
            customdata=np.stack((np.flatnonzero(rows), counts), axis=1),
            hovertemplate="row %{customdata[0]}: %{x:g}, %{y:g}<br>measured "
            "%{customdata[1]} times<extra></extra>",
        )
    figure.update_layout(
        template="plotly_white",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0.0},
        margin={"t": 60, "r": 20},
        xaxis_title=picture.names[0],
        yaxis_title=picture.names[1],
    )
    return figure


def _bars(up: np.ndarray, down: np.ndarray, side: str) -> dict[str, Any]:
    thickness = 0.4 if side == "rejected" else 1.2
    ends = {"array": up, "arrayminus": down, "symmetric": False}
    return {"type": "data", "width": 0, "thickness": thickness, **ends}
