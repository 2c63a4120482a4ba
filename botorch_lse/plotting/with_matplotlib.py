r"""Drawing by matplotlib, which is imported only when a picture is drawn."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_lse.plotting import marks as m

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SYMBOLS = {"circle": "o", "ring": "o", "square": "s", "diamond": "D", "triangle": "^"}
_DASHES = {None: "", "solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_MANY = 1000
"""The number of bars above which they are an image inside vector files (PDF, SVG).
Cells always are one: thousands of lines would make such files large and slow."""


_LINE = 80
"""The letters that stand below a panel beside each other; more are turned upright."""
_PER_INCH = 15
"""The letters of a panel's title on an inch; 16 of them are as wide as the inch."""
_GAP = 0.05
"""The inches between a panel's axis and the legend below it."""


def _letters(panel: m.Panel) -> int:
    r"""The number of letters at the horizontal axis."""
    labels = () if panel.x_ticks is None else panel.x_ticks.labels
    return sum(len(label) + 2 for label in labels)


def draw(picture: m.Picture) -> Figure:
    r"""Draw a picture on a new matplotlib figure."""
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(
        *picture.grid,
        figsize=picture.size,
        sharex=bool(picture.heights),
        height_ratios=picture.heights or None,
        layout="constrained",
        squeeze=False,
    )
    n = len(picture.panels)
    for ax in grid.flat[n:]:
        ax.set_axis_off()
    _fill(list(grid.flat[:n]), picture)
    return figure


def draw_on(picture: m.Picture, ax: Axes | None = None) -> Axes:
    r"""Draw a picture of one panel on axes, by default those of a new figure."""
    if ax is None:
        return draw(picture).axes[0]
    _fill([ax], picture)
    return ax


def _fill(axes: list[Axes], picture: m.Picture) -> None:
    from matplotlib.cm import ScalarMappable

    for place, panel in zip(axes, picture.panels, strict=True):
        for k, mark in enumerate(panel.marks):
            # Without `zorder` matplotlib paints kind after kind. Below 2, where the
            # lines are that a user may add.
            _draw_mark(place, mark, {"zorder": 1 + k / 1000})
        place.set(xlabel=panel.x_label, ylabel=panel.y_label)
        if panel.x_range is not None:
            place.set_xlim(*panel.x_range)
        if panel.y_range is not None:
            place.set_ylim(*panel.y_range)
        if panel.x_ticks is not None:
            place.set_xticks(panel.x_ticks.at, panel.x_ticks.labels)
            if _letters(panel) > _LINE:
                place.tick_params(axis="x", labelrotation=90, labelsize="small")
        if panel.y_ticks is not None:
            place.set_yticks(panel.y_ticks.at, panel.y_ticks.labels)
        if panel.title:
            width = int(_PER_INCH * picture.size[0] / picture.columns)
            place.set_title(textwrap.fill(panel.title, width), fontsize="small")
    for scale in picture.scales:
        if scale.label:
            bar = ScalarMappable(**_colours(scale))
            ticks = scale.ticks or None
            axes[0].figure.colorbar(bar, ax=axes, label=scale.label, ticks=ticks)
    if picture.title and (len(axes) > 1 or picture.panels[0].title):
        axes[0].figure.suptitle(picture.title, fontsize="medium")
    elif picture.title:
        axes[0].set_title(picture.title, fontsize="medium")
    _draw_legend(axes, picture)


def _draw_legend(axes: list[Axes], picture: m.Picture) -> None:
    r"""Draw the legend: below a single panel, else at the lower end of the figure."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    keys, style = picture.legend, dict[str, Any](frameon=False, fontsize="small")
    lines = [Line2D([], [], label=key.label, **_line_style(key.look)) for key in keys]
    if len(axes) > 1 and keys:
        style |= {"loc": "outside lower center", "ncols": len(keys)}
        axes[0].figure.legend(handles=lines, **style)
    elif keys:
        style |= {"loc": "upper center", "ncols": picture.legend_columns}
        (ax,) = axes
        # In inches: a share of the panel would shrink with it where names are long.
        box, dpi = ax.xaxis.get_tightbbox(), ax.figure.dpi
        depth = _GAP + (0.0 if box is None else max(0.0, ax.bbox.y0 - box.y0) / dpi)
        below = ScaledTranslation(0.0, -depth, ax.figure.dpi_scale_trans)
        style |= {"bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0.0}
        ax.legend(handles=lines, bbox_transform=ax.transAxes + below, **style)


def _draw_mark(ax: Axes, mark: m.Mark, style: dict[str, Any]) -> None:
    if isinstance(mark, m.Series):
        _draw_series(ax, mark, style)
        return
    table = m.on_grid(mark.rows, "value")
    axes = table.columns, table.index
    if isinstance(mark, m.Cells):
        style |= _colours(mark.scale) | {"shading": "nearest", "rasterized": True}
        ax.pcolormesh(*axes, table, **style)
    else:
        from matplotlib.patheffects import withStroke

        style |= {"colors": mark.look.colour, "linewidths": mark.look.width}
        style["linestyles"] = _DASHES[mark.look.dash]
        z = np.ma.masked_invalid(table)
        lines = ax.contour(*axes, z, levels=[mark.level], **style)
        margin = withStroke(linewidth=2.6 * mark.look.width, foreground="white")
        lines.set_path_effects([margin])


def _draw_series(ax: Axes, mark: m.Series, style: dict[str, Any]) -> None:
    rows, look = mark.rows, mark.look
    bars = style | {"colors": look.colour, "lw": look.bars}
    bars["rasterized"] = len(rows) > _MANY
    if look.bars and "x_lower" in rows:
        ax.hlines(rows["y"], rows["x_lower"], rows["x_upper"], **bars)
    if look.bars and "y_lower" in rows:
        ax.vlines(rows["x"], rows["y_lower"], rows["y_upper"], **bars)
    style["label"] = mark.label or None
    if look.dash is not None:
        style["drawstyle"] = "steps-post" if look.steps else "default"
        ax.plot(rows["x"], rows["y"], **style, **_line_style(look))
    elif look.symbol is not None:
        face, edge = _face_and_edge(look)
        style |= {"marker": _SYMBOLS[look.symbol], "edgecolors": edge, "c": face}
        if look.scale is not None:
            style |= {"c": rows["value"]} | _colours(look.scale)
        size = np.square(rows.get("size", look.size))
        ax.scatter(rows["x"], rows["y"], s=size, linewidths=look.width, **style)


def _face_and_edge(look: m.Look) -> tuple[str, str]:
    is_ring = look.symbol == "ring"
    return ("none", look.colour) if is_ring else (look.colour, look.edge or "none")


def _line_style(look: m.Look) -> dict[str, Any]:
    face, edge = _face_and_edge(look)
    style = {"color": look.colour, "ls": _DASHES[look.dash], "lw": look.width}
    symbol = _SYMBOLS.get(look.symbol or "", "")
    style |= {"marker": symbol, "ms": look.size, "mew": look.width}
    return style | {"mfc": face, "mec": edge}


def _colours(scale: m.Scale) -> dict[str, Any]:
    from matplotlib.colors import ListedColormap, Normalize

    names = scale.colours
    cmap = names if isinstance(names, str) else ListedColormap(list(names))
    return {"cmap": cmap, "norm": Normalize(scale.low, scale.high)}
