r"""The records that describe a picture, independent of the plotting library.

``pictures`` describes *what* is drawn by these records; ``with_matplotlib`` and
``with_plotly`` draw any picture described by them and know nothing of level sets.
Lengths are points, 1/72 inch. Marks are painted in the order in which a panel lists
them, later ones on top.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Scale:
    r"""A colour scale: which colours stand for which numbers.

    Args:
        colours: The name of a colour map that both libraries know, or the colours of
            equally wide bands.
        low: The number of the first colour.
        high: The number of the last one.
        label: The label of the colour bar; if empty, no colour bar is drawn.
        ticks: Numbers written at the colour bar.
    """

    colours: str | tuple[str, ...]
    low: float
    high: float
    label: str = ""
    ticks: tuple[float, ...] = ()


@dataclass(frozen=True)
class Look:
    r"""The style of a mark and of its entry in the legend.

    Args:
        colour: The colour of the line, the bars and the symbol's fill.
        symbol: ``"circle"``, ``"ring"`` (not filled), ``"square"``, ``"diamond"``,
            ``"triangle"``; ``None``: no symbol.
        size: The symbol's diameter.
        edge: Colour of the symbol's rim; ``None``: no rim.
        dash: ``"solid"``, ``"dash"``, ``"dot"`` or ``"dashdot"``; ``None``: no line.
        width: The width of the line, of the rim, and of a ring.
        steps: Whether the line keeps each value until the next ``x``, as stairs do.
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
    r"""Points, drawn as symbols, a line through them, or error bars, as ``look`` says.

    Args:
        rows: Columns ``x`` and ``y``; where there are such, ``size`` (diameters in
            place of the one of ``look``) and the ends of bars ``y_lower`` and
            ``y_upper``, ``x_lower`` and ``x_upper``; for a scale ``value``.
        look: The style.
        label: The entry of the legend to which it belongs, if any.
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
    r"""The contour line of numbers on a grid, with a white margin to be seen on cells.

    Args:
        rows: Columns ``x``, ``y`` and ``value``.
        level: The level.
        look: The style.
        label: The key of the legend to which it belongs, if any.
    """

    rows: pd.DataFrame
    level: float
    look: Look
    label: str = ""


Mark = Series | Cells | Contour
Range = tuple[float | None, float | None] | None
"""The ends of an axis; the library chooses an end that is ``None``."""


@dataclass(frozen=True)
class Key:
    r"""One entry of the legend, which stands for all marks with its label."""

    label: str
    look: Look


@dataclass(frozen=True)
class Ticks:
    r"""Places on an axis, and the labels written there.

    Args:
        at: Numbers.
        labels: A text for each.
    """

    at: tuple[float, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Panel:
    r"""One pair of axes and the marks drawn on them.

    Args:
        marks: What is drawn, in this order.
        x_label: The label of the horizontal axis.
        y_label: The label of the vertical axis.
        x_range: The range of the horizontal axis.
        y_range: The range of the vertical axis.
        x_ticks: What is written at the horizontal axis; default its numbers.
        y_ticks: The same for the vertical axis.
        title: A line written above the panel, smaller than the picture's title.
    """

    marks: tuple[Mark, ...]
    x_label: str
    y_label: str
    x_range: Range = None
    y_range: Range = None
    x_ticks: Ticks | None = None
    y_ticks: Ticks | None = None
    title: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    r"""A picture: panels with one legend.

    Args:
        panels: Row by row.
        size: Width and height, inches.
        legend: Its entries, in the order of reading.
        columns: How many panels stand side by side.
        heights: Relative heights of the rows of panels, which then share their
            horizontal axis; empty: all the same, each with its own.
        legend_columns: How many entries stand side by side below a single panel.
        hover: Columns of the marks' rows that plotly shows when the pointer is on a
            symbol or cell.
        title: Lines written above the panels; empty: none.
    """

    panels: tuple[Panel, ...]
    size: tuple[float, float]
    legend: tuple[Key, ...] = ()
    columns: int = 1
    heights: tuple[float, ...] = ()
    legend_columns: int = 3
    hover: tuple[str, ...] = ()
    title: str = ""

    @property
    def grid(self) -> tuple[int, int]:
        r"""The numbers of rows and columns in which the panels are arranged."""
        return -(-len(self.panels) // self.columns), self.columns

    @property
    def marks(self) -> list[Mark]:
        r"""The marks of all panels, panel by panel."""
        return [mark for panel in self.panels for mark in panel.marks]

    @property
    def scales(self) -> list[Scale]:
        r"""The scales of all marks, each once; first those with a bar."""
        found = [k.scale if isinstance(k, Cells) else k.look.scale for k in self.marks]
        return sorted(dict.fromkeys(filter(None, found)), key=lambda s: not s.label)


def on_grid(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    r"""A column as a matrix: one column for each ``x``, one row for each ``y``."""
    return rows.pivot(index="y", columns="x", values=column)
