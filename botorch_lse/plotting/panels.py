r"""Data frames of pictures with one panel for each pair of inputs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from botorch_lse.checks import whole_number
from botorch_lse.plotting.picture import check_answer, level_set_frame
from botorch_lse.problem import Classification, Observations, Pool

MOST_INPUTS = 4
"""Inputs shown unless others are named: six panels fit on a page."""
_FEWEST = 9
"""Rows that make a slice when their other inputs are exactly the anchor's."""
_NEAREST = 60
"""Rows that a slice shows where fewer than those lie in it."""
_SAME = 1e-9
"""Share of an input's range up to which two values are the same."""


def slices_frame(
    classification: Classification,
    observations: Observations | None = None,
    anchor: int | None = None,
    inputs: Sequence[str] | None = None,
) -> pd.DataFrame:
    r"""Slices through one row of the pool, one for each pair of inputs.

    A slice holds the rows whose other inputs are those of the anchor; where there are
    few, the nearest in the other inputs. With two inputs it holds all rows. With one
    input ``y`` is the posterior mean.

    Args:
        classification: The answer for ``N`` rows, with its pool.
        observations: What was measured.
        anchor: The row to slice through; default the most doubtful one: with the
            probability nearest to one half, the first of equals.
        inputs: Names of the pool's inputs; default the first four that vary.

    Returns:
        A row for each row of each slice: ``panel``, ``x_name``, ``y_name``, ``row``,
        ``x``, ``y``, ``side``, ``probability_above``, ``mean``, ``lower``, ``upper``,
        ``n_observations`` and ``distance`` (to the anchor, in the inputs not shown,
        as a share of their ranges).

    Raises:
        ValueError: If the classification has no pool, ``anchor`` is no row or
            ``inputs`` are not in the pool.
    """
    check_answer(classification, observations)
    pool = _pool(classification)
    if anchor is None:
        doubt = (classification.probability_above - 0.5).abs()
        anchor = int(doubt.argmin())
    anchor = whole_number(anchor, "anchor", 0)
    if anchor >= len(pool):
        raise ValueError(
            f"Expected `anchor` to be a row of the pool, 0 to {len(pool) - 1}, but got "
            f"{anchor}."
        )
    columns = _columns(pool, inputs)
    answer = level_set_frame(classification, observations)
    shown = pd.DataFrame(
        {
            "side": classification.side,
            **{
                name: getattr(classification, name).detach().cpu().numpy()
                for name in ("probability_above", "mean", "lower", "upper")
            },
            "n_observations": answer.iloc[:, -1].to_numpy(),
        }
    )
    low, high = pool.bounds
    scaled = ((pool.X - pool.X[anchor]) / (high - low)).abs().cpu().numpy()
    frames = []
    for panel, (i, j) in enumerate(_pairs(columns)):
        others = [k for k in range(pool.d) if k not in (i, j)]
        distance = scaled[:, others].max(axis=1, initial=0.0)
        rows = _slice(distance)
        part = shown.iloc[rows].reset_index(drop=True)
        y = part["mean"] if j is None else pd.Series(pool.X[rows, j].cpu().numpy())
        part = part.assign(distance=distance[rows])
        frames.append(_panel(pool, panel, i, j, rows, y, part))
    return pd.concat(frames, ignore_index=True)


def batches_frame(
    pool: Pool,
    observations: Observations,
    upcoming: Sequence[int] = (),
    inputs: Sequence[str] | None = None,
) -> pd.DataFrame:
    r"""Where each batch was placed, one panel for each pair of inputs.

    Args:
        pool: The candidates.
        observations: What was measured, labelled by round.
        upcoming: Rows that are planned or out, replicates included.
        inputs: Names of the pool's inputs; default the first four that vary.

    Returns:
        A row for each panel and row of the pool: ``panel``, ``x_name``, ``y_name``,
        ``row``, ``x``, ``y``, ``round`` (of its last measurement; NaN: never),
        ``n_observations`` and ``n_upcoming``. With one input ``y`` is the round, the
        next one for rows never measured that are to come.

    Raises:
        ValueError: If ``inputs`` are not in the pool.
    """
    N = len(pool)
    last = np.full(N, np.nan)
    labels = observations.round
    if labels is None:
        labels = torch.arange(len(observations))
    for row, round_ in zip(observations.indices.tolist(), labels.tolist(), strict=True):
        last[row] = np.fmax(last[row], round_)
    counts = observations.times_measured(N).numpy()
    waiting = np.bincount(np.asarray(upcoming, dtype=np.int64), minlength=N)
    part = pd.DataFrame(
        {"round": last, "n_observations": counts, "n_upcoming": waiting}
    )
    following = np.nanmax(last, initial=-1.0) + 1
    soon = np.where((waiting > 0) & np.isnan(last), following, last)
    rows, frames = np.arange(N), []
    for panel, (i, j) in enumerate(_pairs(_columns(pool, inputs))):
        y = (
            pd.Series(soon, name="round")
            if j is None
            else pd.Series(pool.X[:, j].cpu().numpy())
        )
        frames.append(_panel(pool, panel, i, j, rows, y, part))
    return pd.concat(frames, ignore_index=True)


def _pool(classification: Classification) -> Pool:
    if classification.pool is None:
        raise ValueError(
            "Expected `classification` to hold its pool, but it has none. Take the one "
            "of a strategy's state."
        )
    return classification.pool


def _columns(pool: Pool, inputs: Sequence[str] | None) -> list[int]:
    names = list(pool.names or ())
    if inputs is None:
        varies = (pool.X.amax(dim=0) > pool.X.amin(dim=0)).nonzero().view(-1).tolist()
        return (varies or [0])[:MOST_INPUTS]
    unknown = [name for name in inputs if name not in names]
    if unknown or not inputs:
        raise ValueError(
            f"Expected `inputs` to name inputs of the pool {names}, but got "
            f"{list(inputs)}."
        )
    return [names.index(name) for name in inputs]


def _pairs(columns: list[int]) -> list[tuple[int, int | None]]:
    if len(columns) == 1:
        return [(columns[0], None)]
    return list(itertools.combinations(columns, 2))


def _slice(distance: np.ndarray) -> np.ndarray:
    r"""The rows in the slice; where they are too few for a picture, the nearest."""
    exact = distance <= _SAME
    if exact.sum() >= _FEWEST:
        return np.flatnonzero(exact)
    rank = min(_NEAREST, len(distance)) - 1
    reach = float(np.partition(distance, rank)[rank])
    return np.flatnonzero(distance <= reach + _SAME)


def _panel(
    pool: Pool,
    panel: int,
    i: int,
    j: int | None,
    rows: np.ndarray,
    y: pd.Series,
    part: pd.DataFrame,
) -> pd.DataFrame:
    names = list(pool.names or ())
    place = pd.DataFrame(
        {
            "panel": panel,
            "x_name": names[i],
            "y_name": names[j] if j is not None else y.name,
            "row": rows,
            "x": pool.X[rows, i].cpu().numpy(),
            "y": y.to_numpy(dtype=float),
        }
    )
    return pd.concat((place, part), axis=1)
