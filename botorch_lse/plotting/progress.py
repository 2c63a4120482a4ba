r"""The data frame of a run's progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from botorch_lse.checks import real_vector
from botorch_lse.problem import Classification
from botorch_lse.strategies import State


def progress_frame(
    states: Sequence[State],
    truth: Any = None,
    costs: Sequence[float] | None = None,
) -> pd.DataFrame:
    r"""How far a run was after each round.

    Args:
        states: The states before the first and after each round.
        truth: ``N`` bools, the rows that truly lie above the level; then there is a
            column ``f1``: the F1 score of the answer, undecided rows on the likelier
            side.
        costs: Cumulative costs, one for each state; default the sum of ``Pool.costs``
            over all measurements, or their number.

    Returns:
        A row for each state: ``round``, ``evaluations``, ``above``, ``below``,
        ``undecided``, ``cost``, ``forecast`` (the evaluations, spent ones included,
        until everything is decided; for the last state, if the strategy foresees them)
        and, with ``truth``, ``f1``.

    Raises:
        ValueError: If there is no state, or the number of costs is another.
        BotorchTensorDimensionError: If ``truth`` has another length.
    """
    if not states:
        raise ValueError("Expected `states` to hold at least one state, but got none.")
    if costs is not None and len(costs) != len(states):
        raise ValueError(
            f"Expected `costs` to have one entry per state ({len(states)}), but got "
            f"{len(costs)}."
        )
    answers = [state.classification for state in states]
    frame = pd.DataFrame(
        {
            "round": [state.round for state in states],
            "evaluations": [state.n_used for state in states],
            **{
                side: [int(getattr(answer, side).sum()) for answer in answers]
                for side in ("above", "below", "undecided")
            },
            "cost": [_cost(state) for state in states] if costs is None else costs,
            "forecast": np.nan,
        }
    )
    foreseen = states[-1].forecast().observations
    if foreseen is not None:
        frame.loc[len(frame) - 1, "forecast"] = states[-1].n_used + foreseen
    if truth is not None:
        N = len(answers[0])
        above = real_vector(truth, "truth", N, "row of the pool", booleans=True) > 0.5
        frame["f1"] = [_f1(answer, above.numpy()) for answer in answers]
    return frame


def _cost(state: State) -> float:
    pool = state.classification.pool
    if pool is None or pool.costs is None:
        return float(state.n_used)
    return float((state.uses(len(pool)) * pool.costs).sum())


def _f1(answer: Classification, above: np.ndarray) -> float:
    r"""``2 TP / (2 TP + FP + FN)``; 1 where both sets are empty."""
    said = answer.best_guess.cpu().numpy()
    right, wrong = int((said & above).sum()), int((said ^ above).sum())
    return 1.0 if right + wrong == 0 else 2 * right / (2 * right + wrong)
