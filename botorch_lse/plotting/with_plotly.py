r"""Drawing by plotly, which is imported only when a picture is drawn."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_lse._numerals import significant
from botorch_lse.plotting import marks as m

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_SYMBOLS = {"ring": "circle-open", "triangle": "triangle-up"}
"""The names of symbols where plotly's differ from ours."""
_INCH = 96
_POINT = _INCH / 72
"""The pixels of a point and, above, of an inch, as browsers count them."""
_LINE = 18
"""The pixels of a line of the title."""
_BOTTOM, _PLOTLY_HEIGHT, _PLOTLY_WIDTH = 80, 450, 640
"""The pixels below the panels, and of a figure whose size nobody gives.
A page may be wider: the width is that of a notebook's column, so that the legend does
not run into the title there."""
_BUTTONS = 20
"""The pixels that plotly's buttons take at the upper edge, where no word may stand."""
_KEY, _LETTER = 45, 6
"""The pixels of an entry of the legend, and of each letter."""
_MANY = 1000
"""The number of symbols from which WebGL is used: without it browsers are slow."""


def draw(picture: m.Picture) -> Figure:
    r"""Draw a picture as a new plotly figure."""
    from plotly.subplots import make_subplots

    # A panel is as wide as its share of the figure without the gaps and the scales.
    share = (0.8 - 0.14 * len(picture.scales)) / picture.columns
    letters = int(_PLOTLY_WIDTH * share / _LETTER)
    titles = [textwrap.wrap(panel.title, letters) for panel in picture.panels]
    figure = make_subplots(
        *picture.grid,
        shared_xaxes=bool(picture.heights),
        row_heights=list(picture.heights) or None,
        horizontal_spacing=0.1,
        vertical_spacing=0.35 / picture.grid[0],
        subplot_titles=["<br>".join(lines) for lines in titles],
    )
    figure.update_annotations(font={"size": 12})
    series = [mark for mark in picture.marks if isinstance(mark, m.Series)]
    n = max((len(mark.rows) for mark in series), default=0)
    # The same for all: what WebGL draws hides what is drawn without it.
    kind = {"type": "scatter" if n < _MANY else "scattergl"}
    for k, panel in enumerate(picture.panels):
        row, column = divmod(k, picture.columns)
        place = {"row": row + 1, "col": column + 1}
        for mark in panel.marks:
            for trace in _traces(mark, picture):
                figure.add_trace(kind | trace, **place)
        figure.update_xaxes(title_text=panel.x_label, range=panel.x_range, **place)
        figure.update_yaxes(title_text=panel.y_label, range=panel.y_range, **place)
        if panel.x_ticks is not None:
            figure.update_xaxes(**_ticks(panel.x_ticks), **place)
        if panel.y_ticks is not None:
            figure.update_yaxes(**_ticks(panel.y_ticks), **place)
    for key in picture.legend:
        entry = {"x": [None], "y": [None], "name": key.label, "legendgroup": key.label}
        figure.add_trace(kind | entry | _style(key.look))
    for k, scale in enumerate(picture.scales):
        figure.update_layout({f"coloraxis{k + 1}": _colours(scale, 1.02 + 0.14 * k)})
    title = picture.title.splitlines()
    if title:
        # Below the buttons of the upper edge; the legend stands below it.
        text = {"text": "<br>".join(title), "font": {"size": 13}}
        figure.update_layout(title=text)
        # plotly hangs up several lines at the middle of them, not at the first.
        pad = {"t": 10 + _BUTTONS + _LINE * (len(title) - 1) / 2}
        figure.update_layout(title={"y": 1.0, "yanchor": "top", "pad": pad})
    height = _INCH * picture.size[1] if len(picture.panels) > 1 else None
    top, above = 60 + _LINE * len(title) + _BUTTONS * bool(title), 1.02
    if n_lines := max(map(len, titles)):
        # The titles of the upper panels stand between them and the legend.
        top += _LINE * n_lines
        above += 1.2 * _LINE * n_lines / ((height or _PLOTLY_HEIGHT) - top - _BOTTOM)
    # The legend grows upwards if it takes more than one line.
    width = sum(_KEY + _LETTER * len(key.label) for key in picture.legend)
    more = width // _PLOTLY_WIDTH
    top += _LINE * more + _BUTTONS * (more > 0 and not title)
    figure.update_layout(
        template="plotly_white",
        legend={"orientation": "h", "yanchor": "bottom", "y": above, "x": 0.0},
        margin={"t": top, "b": _BOTTOM, "r": 20},
        height=height,
    )
    return figure


def _ticks(ticks: m.Ticks) -> dict[str, Any]:
    return {"tickmode": "array", "tickvals": ticks.at, "ticktext": ticks.labels}


def _traces(mark: m.Mark, picture: m.Picture) -> list[dict[str, Any]]:
    r"""A mark as plotly's traces; ``draw`` makes those without a type scatter plots."""
    rows, names = mark.rows, [name for name in picture.hover if name in mark.rows]
    if isinstance(mark, m.Series):
        trace = {"x": rows["x"], "y": rows["y"], **_group(mark), **_style(mark.look)}
        for axis in "xy":
            if mark.look.bars and f"{axis}_lower" in rows:
                trace[f"error_{axis}"] = _bars(mark, axis)
        if mark.look.symbol is None:
            return [trace]
        if "size" in rows:
            trace["marker"]["size"] = _POINT * rows["size"]
        if mark.look.scale is not None:
            trace["marker"] |= {"color": rows["value"]}
            trace["marker"] |= _colour_axis(mark.look.scale, picture)
        return [trace | _hover(names, [rows[name] for name in names])]
    z = m.on_grid(rows, "value")
    trace = {"x": z.columns, "y": z.index, "z": z.to_numpy()}
    if isinstance(mark, m.Cells):
        columns = [m.on_grid(rows, name) for name in names]
        trace |= {"type": "heatmap", "hoverongaps": False} | _hover(names, columns)
        return [trace | _colour_axis(mark.scale, picture)]
    levels = {"start": mark.level, "end": mark.level, "size": 1, "coloring": "none"}
    trace |= {"type": "contour", "contours": levels, "hoverinfo": "skip"}
    width = _POINT * mark.look.width
    lines = [
        {"color": "white", "width": 2.6 * width},
        {"color": mark.look.colour, "width": width, "dash": mark.look.dash},
    ]
    return [trace | _group(mark) | {"line": line} for line in lines]


def _group(mark: m.Series | m.Contour) -> dict[str, Any]:
    return {"name": mark.label, "legendgroup": mark.label, "showlegend": False}


def _style(look: m.Look) -> dict[str, Any]:
    r"""A style as plotly's arguments of a trace or of an entry of the legend."""
    style, modes, width = {}, [], _POINT * look.width
    if look.dash is not None:
        modes.append("lines")
        line = {"color": look.colour, "dash": look.dash, "width": width}
        style["line"] = line | {"shape": "hv" if look.steps else "linear"}
    if look.symbol is not None:
        modes.append("markers")
        has_rim = look.edge is not None or look.symbol == "ring"
        rim = {"color": look.edge, "width": width if has_rim else 0}
        marker = {"symbol": _SYMBOLS.get(look.symbol, look.symbol), "line": rim}
        style["marker"] = marker | {"color": look.colour, "size": _POINT * look.size}
    if not modes:  # only bars
        return {"mode": "none", "hoverinfo": "skip"}
    return style | {"mode": "+".join(modes)}


def _bars(mark: m.Series, name: str) -> dict[str, Any]:
    middle = mark.rows[name]
    up, down = mark.rows[f"{name}_upper"] - middle, middle - mark.rows[f"{name}_lower"]
    ends = {"type": "data", "symmetric": False, "array": up, "arrayminus": down}
    look = {"color": mark.look.colour, "thickness": _POINT * mark.look.bars}
    return ends | look | {"width": 0}


def _hover(names: Sequence[str], columns: list[Any]) -> dict[str, Any]:
    r"""The text at the pointer: the coordinates, then each column with its name."""
    if not columns:
        return {}
    words = ["%{x:.9~g}, %{y:.9~g}"] * ("place" not in names)
    for k, (name, values) in enumerate(zip(names, columns, strict=True)):
        if name in ("name", "place"):  # words that say which it is and where
            columns[k] = values.map(_untagged)
            said = f"%{{customdata[{k}]}}"
            words.insert(len(words) * (name == "place"), said)
            continue
        is_whole = np.array_equal(values, np.round(values), equal_nan=True)
        finite = np.asarray(values, dtype=float)[np.isfinite(values)]
        low, high = finite.min(initial=math.inf), finite.max(initial=-math.inf)
        digits = "" if is_whole else f":.{significant(low, high, 4)}~g"
        words.append(f"{name.replace('_', ' ')} %{{customdata[{k}]{digits}}}")
    text = "<br>".join(words) + "<extra></extra>"
    return {"customdata": np.stack(columns, axis=-1), "hovertemplate": text}


def _untagged(words: Any) -> Any:
    r"""Words in which plotly finds no tags; what is missing stays so."""
    return html.escape(words, quote=False) if isinstance(words, str) else words


def _colour_axis(scale: m.Scale, picture: m.Picture) -> dict[str, str]:
    return {"coloraxis": f"coloraxis{picture.scales.index(scale) + 1}"}


def _colours(scale: m.Scale, place: float) -> dict[str, Any]:
    colours: Any = scale.colours
    if not isinstance(colours, str):  # each colour begins and ends its band
        n = len(colours)
        colours = [((k + end) / n, c) for k, c in enumerate(colours) for end in (0, 1)]
    axis = {"colorscale": colours, "cmin": scale.low, "cmax": scale.high}
    bar = {"title": scale.label, "tickvals": scale.ticks or None, "x": place}
    return axis | {"colorbar": bar, "showscale": bool(scale.label)}
