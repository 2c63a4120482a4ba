r"""What the panels of both plotting libraries share."""

from __future__ import annotations

import math

import pandas as pd

from botorch_lse.plotting.picture import COLOURS, Grid, grid_of
from botorch_lse.problem.classification import SIDES

SHADES = ("side", "probability_above")
PROBABILITY_MAP = "cividis_r"
"""From light to dark, as the sides: above is dark. Made for colour-blind readers."""
ROUND_MAP = "viridis"
LINES = {"above": COLOURS["above"], "below": "#b58900", "undecided": "#5b6663"}
"""The sides' colours, dark enough for thin lines on white."""

FORECAST_SHOWN = 3
"""A forecast is drawn up to so many times the evaluations made; its label has it."""


def check_shade(shade: str) -> None:
    r"""Refuse an unknown shade."""
    if shade not in SHADES:
        raise ValueError(f"Expected `shade` to be one of {SHADES}, but got {shade!r}.")


def panel_grid(n_panels: int) -> tuple[int, int]:
    r"""Rows and columns of panels: at most three side by side."""
    columns = min(n_panels, 3 if n_panels != 4 else 2)
    return math.ceil(n_panels / columns), columns


def cells_of(part: pd.DataFrame) -> Grid | None:
    r"""The cells of one panel, if its rows lie on a grid."""
    return grid_of(part[["x", "y"]].to_numpy(dtype=float))


def side_counts(frame: pd.DataFrame) -> dict[str, str]:
    r"""A label for each side; with one panel the number of rows, too."""
    if frame["panel"].nunique() > 1:
        return {side: side for side in SIDES}
    return {side: f"{side} ({int((frame['side'] == side).sum()):,})" for side in SIDES}
