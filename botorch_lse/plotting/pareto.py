r"""What the pictures of a Pareto set show, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from botorch_lse.plotting.picture import check_answer
from botorch_lse.problem import Classification, Observations
from botorch_lse.strategies import ParetoEstimate

WORDS = {"above": "accepted", "below": "rejected", "undecided": "open"}
"""The sides of a classification as a Pareto strategy means them."""
SIDE_OF = {WORDS[side]: side for side in ("below", "undecided", "above")}
"""Back again, in the order of drawing."""


def pareto_frame(
    classification: Classification,
    estimate: ParetoEstimate,
    observations: Observations | None = None,
    outputs: Sequence[str] | None = None,
) -> pd.DataFrame:
    r"""The pool's table with the answer and every output with its interval.

    Args:
        classification: The answer for ``N`` rows.
        estimate: ``strategy.estimate(state)``.
        observations: What was measured.
        outputs: The ``m`` names of the outputs; default ``y0``, ``y1``, ...

    Returns:
        ``N`` rows. Columns added: ``side`` (accepted, rejected, open), ``margin``,
        ``margin_lower``, ``margin_upper``; for each output ``NAME_mean``,
        ``NAME_lower``, ``NAME_upper``; ``n_observations``. Where the pool's table has
        such a name already, ours ends in ``_lse``.

    Raises:
        ValueError: If there is not one name per output.
    """
    check_answer(classification, observations)
    answer = {"side": [WORDS[side] for side in classification.side]}
    columns = {
        "margin": classification.mean,
        "margin_lower": classification.lower,
        "margin_upper": classification.upper,
    }
    for c, name in enumerate(output_names(estimate, outputs)):
        for part in ("mean", "lower", "upper"):
            columns[f"{name}_{part}"] = getattr(estimate, part)[:, c]
    told = Observations.empty() if observations is None else observations
    counts = told.times_measured(len(classification)).numpy()
    values = {name: column.detach().cpu().numpy() for name, column in columns.items()}
    ours = pd.DataFrame({**answer, **values, "n_observations": counts})
    if classification.pool is None:
        return ours
    table = classification.pool.to_frame()
    taken = {name: f"{name}_lse" for name in ours if name in table}
    ours = ours.rename(columns=taken).set_index(table.index)
    return pd.concat((table, ours), axis=1)


def output_names(
    estimate: ParetoEstimate, outputs: Sequence[str] | None
) -> tuple[str, ...]:
    r"""The names given, or ``y0``, ``y1``, ...

    Raises:
        ValueError: If there is not one name per output.
    """
    m = estimate.mean.shape[1]
    if outputs is None:
        return tuple(f"y{c}" for c in range(m))
    if isinstance(outputs, str) or len(outputs) != m:
        raise ValueError(
            f"Expected `outputs` to be {m} names, one per output, but got {outputs!r}."
        )
    return tuple(outputs)


@dataclass(frozen=True)
class ParetoPicture:
    r"""Two outputs of every row as arrays.

    Args:
        side: ``N`` words: accepted, rejected, open.
        mean: ``N x 2`` means.
        lower: ``N x 2`` lower ends, those without end outside all others.
        upper: ``N x 2`` upper ends.
        counts: ``N``, how often each row was measured.
        names: The two outputs.
    """

    side: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    counts: np.ndarray
    names: tuple[str, str]

    def label(self, side: str) -> str:
        r"""The side with its number of rows."""
        return f"{side} ({int((self.side == side).sum()):,})"


def pareto_picture(
    frame: pd.DataFrame, outputs: tuple[str, str] | None
) -> ParetoPicture:
    r"""Everything a renderer needs; arguments as in ``plot_pareto_set``.

    Raises:
        ValueError: If ``frame`` has not two such outputs.
    """
    known = _outputs_in(frame)
    names = tuple(known[:2]) if outputs is None else tuple(outputs)
    if len(names) != 2 or not set(names) <= set(known):
        raise ValueError(
            f"Expected `outputs` to be two of the outputs in `frame`, {known}, but got "
            f"{names if outputs is not None else None}. Draw the margins of a single "
            "output with `plot_level_set`."
        )
    mean, lower, upper = (
        frame[[f"{name}_{part}" for name in names]].to_numpy(dtype=float)
        for part in ("mean", "lower", "upper")
    )
    lower, upper = _finite(mean, lower, upper)
    side, counts = (
        frame[_ours(frame, name)].to_numpy() for name in ("side", "n_observations")
    )
    return ParetoPicture(side, mean, lower, upper, counts, (names[0], names[1]))


def _ours(frame: pd.DataFrame, name: str) -> str:
    return f"{name}_lse" if f"{name}_lse" in frame else name


def _outputs_in(frame: pd.DataFrame) -> list[str]:
    names = [
        column.removesuffix("_mean")
        for column in map(str, frame.columns)
        if column.endswith("_mean")
    ]
    return [n for n in names if {f"{n}_lower", f"{n}_upper"} <= set(frame.columns)]


def _finite(
    mean: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    ends = np.concatenate((mean, lower, upper))
    ends = np.where(np.isfinite(ends), ends, np.nan)
    low, high = np.nanmin(ends, axis=0), np.nanmax(ends, axis=0)
    margin = 0.25 * np.where(high > low, high - low, 1.0)
    return np.maximum(lower, low - margin), np.minimum(upper, high + margin)
