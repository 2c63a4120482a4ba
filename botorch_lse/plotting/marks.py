r"""What a picture consists of: the words that ``pictures`` and the renderers share.

``pictures`` says *what* is drawn, in these words; ``with_matplotlib`` and
``with_plotly`` draw any picture told in them and know nothing of level sets. Lengths
are points, 1/72 inch. Marks are painted in the order in which a panel lists them, later
ones on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Scale:
    r"""Colours for numbers.

    Args:
        colours: The name of a colour map that both libraries know, or the colours of
            equally wide bands.
        low: The number of the first colour.
        high: The number of the last one.
        label: Of the bar beside the panels; empty: no such bar.
        ticks: Numbers written at the bar.
    """

    colours: str | tuple[str, ...]
    low: float
    high: float
    label: str = ""
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Look:
    r"""How a mark looks, and its key in the legend.

    Args:
        colour: Of the line and the bars, and the symbol's fill.
        symbol: ``"circle"``, ``"ring"`` (not filled), ``"square"``, ``"diamond"``,
            ``"triangle"``; ``None``: no symbol.
        size: The symbol's diameter.
        edge: Colour of the symbol's rim; ``None``: no rim.
        dash: ``"solid"``, ``"dash"``, ``"dot"`` or ``"dashdot"``; ``None``: no line.
        width: Of the line, of the rim, and of a ring.
        steps: Whether the line keeps each value until the next place.
        bars: Width of the bars from lower to upper ends; 0: no bars.
        scale: Colours of the numbers that the symbols stand for, in place of
            ``colour``.
    """

    colour: str
    symbol: str | None = None
    size: float = 4.0
    edge: str | None = None
    dash: str | None = None
    width: float = 1.0
    steps: bool = False
    bars: float = 0.0
    scale: Scale | None = None


@dataclass(frozen=True, eq=False)
class Series:
    r"""Places: symbols, a line through them, bars across them, as ``look`` says.

    Args:
        rows: Columns ``x`` and ``y``; where there are such, ``size`` (diameters in
            place of the one of ``look``) and the ends of bars ``y_lower`` and
            ``y_upper``, ``x_lower`` and ``x_upper``; for a scale ``value``.
        look: How it looks.
        label: The key of the legend to which it belongs, if any.
    """

    rows: pd.DataFrame
    look: Look
    label: str = ""


@dataclass(frozen=True, eq=False)
class Cells:
    r"""Rectangles side by side, coloured; a cell for which there is no row stays empty.

    Args:
        rows: Columns ``x`` and ``y``, the cells' centres, and ``value``.
        scale: The colours of ``value``.
    """

    rows: pd.DataFrame
    scale: Scale


@dataclass(frozen=True, eq=False)
class Contour:
    r"""Where numbers on a grid pass a level; with a white margin, so as to be seen.

    Args:
        rows: Columns ``x``, ``y`` and ``value``.
        level: The level.
        look: How it looks.
        label: The key of the legend to which it belongs, if any.
    """

    rows: pd.DataFrame
    level: float
    look: Look
    label: str = ""


Mark = Series | Cells | Contour
Range = tuple[float | None, float | None] | None
"""Where an axis begins and ends; what is ``None`` is left to the renderer."""


@dataclass(frozen=True)
class Key:
    r"""One entry of the legend, for all marks with this label."""

    label: str
    look: Look


@dataclass(frozen=True, eq=False)
class Panel:
    r"""One pair of axes.

    Args:
        marks: What is drawn, in this order.
        x_label: Of the horizontal axis.
        y_label: Of the vertical axis.
        x_range: Of the horizontal axis.
        y_range: Of the vertical axis.
    """

    marks: tuple[Mark, ...]
    x_label: str
    y_label: str
    x_range: Range = None
    y_range: Range = None


@dataclass(frozen=True, eq=False)
class Picture:
    r"""Panels with one legend.

    Args:
        panels: Row by row.
        size: Width and height, inches.
        legend: Its entries, in the order of reading.
        columns: How many panels stand side by side.
        heights: Relative heights of the rows of panels, which then share their
            horizontal axis; empty: all the same, each with its own.
        legend_columns: How many entries stand side by side below a single panel.
        hover: Columns of marks that a reader is told who points at a symbol or cell.
    """

    panels: tuple[Panel, ...]
    size: tuple[float, float]
    legend: tuple[Key, ...] = ()
    columns: int = 1
    heights: tuple[float, ...] = ()
    legend_columns: int = 3
    hover: tuple[str, ...] = ()

    @property
    def grid(self) -> tuple[int, int]:
        r"""Rows and columns of panels."""
        return -(-len(self.panels) // self.columns), self.columns

    @property
    def marks(self) -> list[Mark]:
        r"""The marks of all panels."""
        return [mark for panel in self.panels for mark in panel.marks]

    @property
    def scales(self) -> list[Scale]:
        r"""The scales of all marks, each once; first those with a bar."""
        found = [k.scale if isinstance(k, Cells) else k.look.scale for k in self.marks]
        return sorted(dict.fromkeys(filter(None, found)), key=lambda s: not s.label)


def on_grid(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    r"""A column as a table, ``x`` from left to right, ``y`` downwards."""
    return rows.pivot(index="y", columns="x", values=column)
