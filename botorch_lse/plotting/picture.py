r"""What the pictures show, without a plotting library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from botorch_lse.checks import finite_number, real_vector
from botorch_lse.problem import Classification, Observations

COLOURS = {"above": "#20488c", "below": "#f4cf73", "undecided": "#8f9a97"}
"""Dark, light and in between: lightness 31, 84 and 63 of 100."""
CODES = {"below": 0, "undecided": 1, "above": 2}
INK = "#1a1a1a"
MARK = "#c8002f"
TRUTH = "#0a9396"
_GRID_FILL = 0.1
"""Smallest share of cells of the spanning grid that rows fill on a map of cells."""


def check_answer(classification: Any, observations: Any) -> None:
    r"""Complain about what is no answer, and about what was not measured.

    Raises:
        ValueError: If ``classification`` is no ``Classification``, or ``observations``
            something else than ``Observations`` or ``None``.
    """
    if not isinstance(classification, Classification):
        raise ValueError(
            "Expected `classification` to be a Classification, but got "
            f"{type(classification).__name__}. Give `state.classification`."
        )
    if not isinstance(observations, Observations | None):
        raise ValueError(
            "Expected `observations` to be Observations, but got "
            f"{type(observations).__name__}. Give `state.observations`."
        )


def level_set_frame(
    classification: Classification, observations: Observations | None = None
) -> pd.DataFrame:
    r"""The pool's table with the answer and how often each row was measured.

    Args:
        classification: The answer for ``N`` rows.
        observations: What was measured.

    Returns:
        ``N`` rows: ``Classification.to_frame()`` and ``n_observations`` (ending in
        ``_lse`` where the table has that name).
    """
    check_answer(classification, observations)
    frame = classification.to_frame()
    told = Observations.empty() if observations is None else observations
    counts = told.times_measured(len(classification)).numpy()
    taken = "n_observations" in frame.columns
    frame["n_observations_lse" if taken else "n_observations"] = counts
    return frame


@dataclass(frozen=True)
class Grid:
    r"""Rows as cells: the axes ``x`` and ``y``, each row's ``column`` and ``row``."""

    x: np.ndarray
    y: np.ndarray
    column: np.ndarray
    row: np.ndarray

    def spread(self, values: np.ndarray) -> np.ndarray:
        r"""``N`` values on the cells; NaN where no row lies."""
        cells = np.full((self.y.size, self.x.size), np.nan)
        cells[self.row, self.column] = values
        return cells


@dataclass(frozen=True)
class Picture:
    r"""One classification as arrays; ``points`` and ``grid`` only for maps."""

    side: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    counts: np.ndarray
    threshold: float | None
    truth: np.ndarray | None
    names: tuple[str, ...]
    points: np.ndarray | None
    grid: Grid | None

    def label(self, side: str) -> str:
        r"""The side with its number of rows."""
        return f"{side} ({int((self.side == side).sum()):,})"

    @property
    def level_label(self) -> str:
        r"""The level in words."""
        return f"level {self.threshold:g}"

    @property
    def codes(self) -> np.ndarray:
        r"""``N`` numbers, in the order of ``CODES``."""
        return np.vectorize(CODES.__getitem__, otypes=[float])(self.side)

    @property
    def measured(self) -> np.ndarray:
        r"""``N`` bools."""
        return self.counts > 0

    @property
    def measured_label(self) -> str:
        r"""How many measurements, and on how many rows if some were repeated."""
        rows = int(self.measured.sum())
        repeats = int(self.counts.sum())
        return f"measured ({repeats:,}" + (f" on {rows:,})" if repeats > rows else ")")


def picture_of(
    classification: Classification,
    observations: Observations | None,
    threshold: float | None,
    truth: Any,
    kind: str | None = None,
) -> Picture:
    r"""Everything a renderer needs; arguments as in ``plot_level_set``."""
    check_answer(classification, observations)
    pool, N = classification.pool, len(classification)
    if kind not in (None, "map", "intervals"):
        raise ValueError(
            f"Expected `kind` to be 'map', 'intervals' or None, but got {kind!r}."
        )
    flat = pool is not None and pool.d == 2 and N > 1
    if kind == "map" and not flat:
        raise ValueError(
            "Expected a pool with two inputs for `kind='map'`. Draw `plot_slices` for "
            "more, or `kind='intervals'`."
        )
    flat = flat and kind != "intervals"
    if threshold is not None:
        threshold = finite_number(threshold, "threshold")
    if truth is not None:
        truth = real_vector(truth, "truth", N, "row of the pool", booleans=True).numpy()
        if threshold is None and flat:
            raise ValueError(
                "Expected `threshold` with `truth`, to know where the true contour "
                "runs, but got None."
            )
    points = pool.X.cpu().numpy() if flat and pool is not None else None
    values = {
        name: getattr(classification, name).detach().cpu().numpy()
        for name in ("mean", "lower", "upper")
    }
    frame = level_set_frame(classification, observations)
    return Picture(
        side=classification.side,
        counts=frame.iloc[:, -1].to_numpy(),
        threshold=threshold,
        truth=truth,
        names=tuple(pool.names or ()) if pool is not None else (),
        points=points,
        grid=None if points is None else grid_of(points),
        **values,
    )


def grid_of(points: np.ndarray) -> Grid | None:
    r"""The rows as cells, if they lie on a grid or part of one."""
    (x, column), (y, row) = (_axis(points[:, j]) for j in (0, 1))
    N = len(points)
    cells = x.size * y.size
    aligned = x.size < N and y.size < N and _GRID_FILL * cells <= N
    if not aligned or np.unique(row * x.size + column).size < N:
        return None
    return Grid(x, y, column, row)


def _axis(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""The different values, equal up to rounding errors, and each row's place."""
    span = float(values.max() - values.min()) or 1.0
    keys = np.round((values - values.min()) / span, 9)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return values[first], place


def sorted_intervals(picture: Picture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Each row's place by mean, and its bounds; endless ones end outside the rest."""
    rank = np.empty(len(picture.mean), dtype=np.int64)
    rank[np.argsort(picture.mean, kind="stable")] = np.arange(len(rank))
    ends = np.concatenate((picture.lower, picture.upper, picture.mean))
    ends = ends[np.isfinite(ends)]
    low, high = (float(ends.min()), float(ends.max())) if ends.size else (-1.0, 1.0)
    margin = 0.25 * (high - low or 1.0)
    return (
        rank,
        np.maximum(picture.lower, low - margin),
        np.minimum(picture.upper, high + margin),
    )
