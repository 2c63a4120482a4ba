r"""Panels and progress drawn by matplotlib, which is imported only then."""

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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    check_shade(shade)
    figure, axes = _panels(frame)
    drawn: Any = None
    for ax, (_, part) in zip(axes, frame.groupby("panel"), strict=True):
        drawn = _draw_shade(part, shade, ax)
        seen = part[part["n_observations"] > 0]
        ax.scatter(
            seen["x"], seen["y"], s=16, c=MARK, edgecolors="white", lw=0.6, zorder=3
        )
    handles = _side_handles(frame) if shade == "side" else []
    handles += [_dot("measured", MARK)] if (frame["n_observations"] > 0).any() else []
    if shade != "side":
        bar = figure.colorbar(drawn, ax=list(axes), label="probability above")
        bar.ax.axhline(0.5, color=INK, lw=1)
    _legend(figure, handles)
    return figure


def plot_batches(frame: pd.DataFrame) -> Figure:
    r"""Draw the placement of batches with matplotlib.

    Args:
        frame: Of ``batches_frame``.

    Returns:
        The figure: pool rows small and grey, measured ones in the shade of their last
        round and larger for replicates, those to come as rings.
    """
    from matplotlib.ticker import MaxNLocator

    figure, axes = _panels(frame)
    last = float(np.nanmax(frame["round"].to_numpy(), initial=0.0))
    drawn: Any = None
    for ax, (_, part) in zip(axes, frame.groupby("panel"), strict=True):
        ax.scatter(part["x"], part["y"], s=4, c=COLOURS["undecided"], lw=0, zorder=1)
        seen = part[part["n_observations"] > 0].sort_values("round")
        drawn = ax.scatter(
            seen["x"],
            seen["y"],
            s=22 * seen["n_observations"] ** 0.5,
            c=seen["round"],
            cmap=ROUND_MAP,
            vmin=0,
            vmax=max(last, 1.0),
            edgecolors=INK,
            linewidths=0.4,
            zorder=2,
        )
        soon = part[part["n_upcoming"] > 0]
        size = 60 * soon["n_upcoming"] ** 0.5
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": MARK, "lw": 1.4}
        ax.scatter(soon["x"], soon["y"], s=size, zorder=3, **ring)
    if last > 0:
        whole = MaxNLocator(integer=True)
        figure.colorbar(drawn, ax=list(axes), label="round", ticks=whole)
    handles = [_dot("pool", COLOURS["undecided"]), _dot("measured", "#777777", INK)]
    if (frame["n_upcoming"] > 0).any():
        handles.append(_dot("planned or out", "none", MARK))
    _legend(figure, handles)
    return figure


def plot_progress(frame: pd.DataFrame) -> Figure:
    r"""Draw a run's progress with matplotlib.

    Args:
        frame: Of ``progress_frame``.

    Returns:
        The figure: rows on each side by evaluations, and below them F1 (where the truth
        is known) and the cumulative cost; the forecast as a dotted line.
    """
    import matplotlib.pyplot as plt

    lower = [name for name in ("f1", "cost") if name in frame]
    heights = [2.0, *(1.0 for _ in lower)]
    figure, axes = plt.subplots(
        len(heights),
        sharex=True,
        figsize=(7.0, 2.0 + 1.5 * len(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    top, *rest = axes[:, 0]
    n = frame["evaluations"]
    for side, style in zip(SIDES, ("-o", "--s", "-.^"), strict=True):
        line: dict[str, Any] = {"color": LINES[side], "label": side, "ms": 4}
        top.step(n, frame[side], style, where="post", **line)
    _draw_forecast(frame, top)
    top.set(ylabel="rows", ylim=(0, None))
    for name, ax in zip(lower, rest, strict=True):
        ax.step(n, frame[name], where="post", color=INK)
        ax.set(ylabel={"f1": "F1", "cost": "cost"}[name])
    if "f1" in lower:
        rest[0].set(ylim=(0, 1.05))
    axes[-1, 0].set(xlabel="evaluations")
    handles, labels = top.get_legend_handles_labels()
    _legend(figure, handles, labels)
    return figure


def _draw_forecast(frame: pd.DataFrame, ax: Axes) -> None:
    foreseen = frame["forecast"].iloc[-1]
    last = frame.iloc[-1]
    if not np.isfinite(foreseen) or foreseen <= last["evaluations"]:
        return
    ends = [last["evaluations"], foreseen], [last["undecided"], 0]
    more = int(foreseen - last["evaluations"])
    label = f"forecast: about {more:,} more"
    ax.plot(*ends, ":", color=MARK, marker="o", ms=4, label=label)
    ax.set_xlim(0, min(foreseen, FORECAST_SHOWN * last["evaluations"]) * 1.05)


def _draw_shade(part: pd.DataFrame, shade: str, ax: Axes) -> Any:
    from matplotlib.colors import ListedColormap

    style: dict[str, Any] = {"cmap": PROBABILITY_MAP, "vmin": 0, "vmax": 1}
    values = part["probability_above"].to_numpy()
    if shade == "side":
        palette = ListedColormap([COLOURS[side] for side in CODES])
        style = {"cmap": palette, "vmin": -0.5, "vmax": 2.5}
        values = part["side"].map(CODES).to_numpy(dtype=float)
    grid = cells_of(part)
    if grid is None:
        ends = style | {"edgecolors": INK, "linewidths": 0.2}
        size = float(np.clip(4e3 / len(part), 8, 60))
        return ax.scatter(part["x"], part["y"], s=size, c=values, **ends)
    cells = grid.spread(values)
    drawn = ax.pcolormesh(
        grid.x, grid.y, cells, shading="nearest", rasterized=True, **style
    )
    if shade != "side" and np.nanmin(cells) < 0.5 < np.nanmax(cells):
        half = np.ma.masked_invalid(cells)
        ax.contour(grid.x, grid.y, half, levels=[0.5], colors=INK, linewidths=1)
    return drawn


def _panels(frame: pd.DataFrame) -> tuple[Figure, list[Axes]]:
    import matplotlib.pyplot as plt

    heads = frame.groupby("panel")[["x_name", "y_name"]].first()
    rows, columns = panel_grid(len(heads))
    width, height = (4.2, 3.6) if len(heads) > 1 else (6.0, 4.6)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        layout="constrained",
        squeeze=False,
    )
    used = list(axes.ravel())[: len(heads)]
    for ax in list(axes.ravel())[len(heads) :]:
        ax.set_axis_off()
    for ax, (x_name, y_name) in zip(used, heads.to_numpy(), strict=True):
        ax.set(xlabel=x_name, ylabel=y_name)
    return figure, used


def _side_handles(frame: pd.DataFrame) -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=COLOURS[side], edgecolor=INK, lw=0.4, label=label)
        for side, label in side_counts(frame).items()
    ]


def _dot(label: str, face: str, edge: str = "white") -> Any:
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6}
    return Line2D([], [], mfc=face, mec=edge, label=label, **style)


def _legend(figure: Figure, handles: list[Any], labels: Any = None) -> None:
    if handles:
        names = [h.get_label() for h in handles] if labels is None else labels
        style: dict[str, Any] = {"loc": "outside lower center", "frameon": False}
        figure.legend(handles, names, ncols=len(handles), fontsize="small", **style)
