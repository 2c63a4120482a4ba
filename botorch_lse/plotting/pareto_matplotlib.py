r"""The picture of a Pareto set drawn by matplotlib, imported only when it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from botorch_lse.plotting.pareto import SIDE_OF, pareto_picture
from botorch_lse.plotting.picture import COLOURS, INK, MARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    import matplotlib.pyplot as plt

    picture = pareto_picture(frame, outputs)
    if ax is None:
        _, ax = plt.subplots(figsize=(7.0, 5.5), layout="constrained")
    handles = []
    for side, code in SIDE_OF.items():  # what matters most comes last
        rows, colour = picture.side == side, COLOURS[code]
        x, y = picture.mean[rows].T
        low, high = picture.lower[rows], picture.upper[rows]
        faint = side == "rejected"
        bars: dict[str, Any] = {
            "lw": 0.5 if faint else 1.1,
            "alpha": 0.6 if faint else 1,
        }
        ax.hlines(y, low[:, 0], high[:, 0], colors=colour, **bars)
        ax.vlines(x, low[:, 1], high[:, 1], colors=colour, **bars)
        dots: dict[str, Any] = {"c": colour, "edgecolors": INK, "lw": 0.4, "zorder": 3}
        size = {"rejected": 9, "open": 18, "accepted": 36}[side]
        handles.append(ax.scatter(x, y, s=size, label=picture.label(side), **dots))
    seen = picture.counts > 0
    if seen.any():
        x, y = picture.mean[seen].T
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": MARK, "zorder": 4}
        sizes = 24 * picture.counts[seen] ** 0.5
        label = f"measured ({int(picture.counts.sum()):,} times)"
        handles.append(ax.scatter(x, y, s=sizes, lw=0.8, label=label, **ring))
    ax.set(xlabel=picture.names[0], ylabel=picture.names[1])
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.12)}
    ax.legend(handles=handles[::-1], ncols=2, frameon=False, fontsize="small", **below)
    return ax
