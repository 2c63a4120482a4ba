r"""Checks of arguments that several families of strategies take."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import (
    complaint,
    finite_number,
    in_interval,
    of_type,
    real_vector,
)
from botorch_lse.data.names import in_order
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import NOISE_LEVEL, Pool

NOISY = (
    "Its widths are multiples of the noise. For exact measurements give a small scale, "
    "such as 1e-3 of the spread of the values, or use a strategy on a Gaussian process."
)
"""The reason why a strategy takes no exact measurements, and the remedy."""


def check_noise_once(
    noise_std: float | None, pool: Pool, *, exact: bool = False
) -> None:
    r"""Complain unless the noise is given once: for all rows, or by row.

    Args:
        noise_std: Its standard deviation, or ``None``.
        pool: Its ``noise_var`` has the variance of each row, or is ``None``.
        exact: Whether a noise of 0 is allowed, as by widths that do not vanish with it.

    Raises:
        ValueError: If it is given twice or never, or out of range, or the pool has
            noise levels.
    """
    if pool.names and pool.names[-1] == NOISE_LEVEL:
        wanted, came = "without noise levels", f"its last column is {NOISE_LEVEL!r}"
        remedy = "Use `TruVaRStrategy`, or the pool before `at_noise_levels`."
        raise ValueError(complaint("pool", wanted, came, remedy))
    if (noise_std is None) == (pool.noise_var is None):
        raise ValueError(
            "Expected the noise once, but got "
            f"{'neither' if noise_std is None else 'both'} `noise_std` "
            f"{'nor' if noise_std is None else 'and'} `pool.noise_var`."
        )
    if noise_std is not None:
        in_interval(
            noise_std, "noise_std", 0.0, math.inf, closed_low=exact, remedy=NOISY
        )
    elif pool.noise_var is not None and not exact and not bool(pool.noise_var.all()):
        raise ValueError(f"Expected `pool.noise_var` to be positive. {NOISY}")


def check_budget(
    max_observations: int | None, least: int, what: str, remedy: str
) -> None:
    r"""Complain about a budget too small for a run to begin to answer.

    Args:
        max_observations: The budget; ``None``: no limit.
        least: Measurements that are needed.
        what: What they are needed for, in words.
        remedy: What to give in place of a larger budget, a sentence.

    Raises:
        ValueError: If the budget is smaller.
    """
    if max_observations is not None and max_observations < least:
        raise ValueError(
            f"Expected `max_observations` of at least {least}, {what}, but got "
            f"{max_observations}. {remedy}"
        )


FEW_INPUTS = 32
"""The number of inputs up to which rows are compared input by input."""
BURN_IN = (
    "what the burn-in takes before anything is decided",
    "Give a larger budget, a smaller `burn_in`, closer `variance_bounds`, or known "
    "variances.",
)
"""The last two arguments of ``check_budget`` for a burn-in."""


def points_of(X: Tensor) -> Tensor:
    r"""The number of each row's point, the same for equal rows (``N``).

    Equal rows are one point, where the function has one value. Points are numbered in
    the order of their first input, where it is equal of their second one, and so on.
    """
    if X.shape[1] > FEW_INPUTS:
        return torch.unique(X + 0.0, dim=0, return_inverse=True)[1]  # + 0: -0 is 0
    # Input by input this takes a fraction of the memory, and mostly the first suffices.
    N = len(X)
    points = torch.zeros(N, dtype=torch.long, device=X.device)
    n_points = min(1, N)
    for column in X.unbind(dim=-1):
        if n_points == N:
            break
        values, ranks = torch.unique(column + 0.0, return_inverse=True)
        # Numbers of both stay below 2^63: there are fewer rows than 2^31.
        both = points.mul_(len(values)).add_(ranks)
        found, points = torch.unique(both, return_inverse=True)
        n_points = len(found)
    return points


def first_of_each(points: Tensor) -> Tensor:
    r"""Whether each row is the first with its point's number (``N`` bools)."""
    first = torch.full_like(points, len(points))
    first = first.scatter_reduce(0, points, torch.arange(len(points)), "amin")
    mask = torch.zeros(len(points), dtype=torch.bool)
    mask[first[first < len(points)]] = True
    return mask


def check_targets(targets: Any) -> None:
    r"""Complain unless the items to decide on are a pool or ``None``.

    Raises:
        ValueError: If they are anything else.
    """
    of_type(targets, Pool | None, "targets", "a Pool", "Write `Pool(X)`.")


def at_targets(
    observations: Observations, pool: Pool, targets: Pool | None
) -> Observations:
    r"""The measurements of rows that are targets as well, numbered by these.

    Args:
        observations: Measurements of rows of the pool.
        pool: The rows that can be measured.
        targets: The items to decide on, with as many columns or features; ``None``:
            the pool.
    """
    if targets is None:
        return observations
    points = [targets.X, pool.X]
    if targets.d != pool.d:  # linear strategies know items by their features
        points = [p.X if p.features is None else p.features for p in (targets, pool)]
    which, T = torch.cat(points).unique(dim=0, return_inverse=True)[1], len(targets)
    first = torch.full((len(which),), T)  # of equal targets
    first = first.scatter_reduce(0, which[:T], torch.arange(T), "amin")
    at = first[which[T:]][observations.indices]
    return replace(observations.select(at < T), indices=at[at < T])


class LabelledLevels(tuple[float, ...]):
    r"""The levels of a pool's rows, with the labelled series they come from."""

    given: Any


def check_labels(goal: Any, pool: Pool) -> None:
    r"""Complain about levels whose labels are not those of the pool in its order.

    Args:
        goal: What is asked about the rows of the pool.
        pool: The rows.

    Raises:
        ValueError: If there are such levels.
    """
    for leaf in getattr(goal, "leaves", ()):  # regions have levels
        for name in ("threshold", "low", "high"):
            levels = getattr(leaf, name, None)
            if not isinstance(levels, LabelledLevels):
                continue
            ordered = in_order(levels.given, pool.labels, name)
            if not ordered.index.equals(levels.given.index):
                wanted = "to have one level per row, in the order of the pool's labels"
                remedy = f"Write `{name}.loc[pool.labels]`."
                raise ValueError(complaint(name, wanted, "got another order", remedy))


def checked_level(value: Any, name: str) -> float | tuple[float, ...]:
    r"""A level as a number, or as a tuple of one per row.

    Args:
        value: A number, or one for each row, with the labels of the rows or without.
        name: The argument's name.

    Raises:
        ValueError: If it is neither.
    """
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return finite_number(value, name)
    if isinstance(value, Tensor) and value.ndim == 0:
        return finite_number(value, name)
    numbers = real_vector(value, name, len(value), "row of the pool").tolist()
    if not hasattr(value, "iloc"):  # a series has labels
        return value if isinstance(value, LabelledLevels) else tuple(numbers)
    found = LabelledLevels(numbers)
    found.given = value.copy()
    return found
