r"""Whether all that was measured lies on one side of the level."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse.problem import Observations
from botorch_lse.strategies.goals import Goal

CLEAR = 1.0
"""Standard errors by which a row's mean must clear the level to count as beyond it: a
value that noise alone carried over is no evidence of the other side."""


def row_means(history: Observations, noise_var: Tensor) -> tuple[Tensor, Tensor]:
    r"""The mean of each measured row's values, and its standard error.

    Args:
        history: ``n`` measurements, some of them perhaps means of several.
        noise_var: ``n`` noise variances of these.

    Returns:
        Two tensors with one entry per measured row, units of ``y``.
    """
    rows, place = history.indices.unique(return_inverse=True)
    counts = torch.ones_like(history.y) if history.counts is None else history.counts
    weight = counts.double()
    zero = torch.zeros(rows.numel(), dtype=torch.float64)
    n = zero.index_add(0, place, weight)
    total = zero.index_add(0, place, weight * history.y)
    variance = zero.index_add(0, place, weight.square() * noise_var)
    return total / n, variance.sqrt() / n


def side_of_all(history: Observations, noise_var: Tensor, goal: Goal) -> str | None:
    r"""The side of the level on which all values lie, noise considered.

    Args:
        history: All measurements.
        noise_var: Their noise variances.
        goal: What is to be decided; one without a level has no sides.

    Returns:
        ``"above"``, ``"below"``, or ``None`` where there are values on both.
    """
    mean, error = row_means(history, noise_var)
    level = goal.level_of(mean)
    if level is None:
        return None
    if not bool((mean - CLEAR * error > level).any()):
        return "below"
    if not bool((mean + CLEAR * error <= level).any()):
        return "above"
    return None
