r"""Catoni's mean: as accurate under heavy tails as the average is under light ones."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import in_interval, real_vector, whole_number

ROOT = 1e-13
"""A root is found when the step is below this share of the scale of the problem."""
MAX_STEPS = 200
"""Newton's method usually needs 4 steps; bisection alone one for each bit of the root's
share of the largest value."""


def influence(u: Tensor) -> tuple[Tensor, Tensor]:
    r"""``psi(u) = sign(u) log(1 + |u| + u^2 / 2)``, and its slope.

    The slope is ``psi'(u) = (1 + |u|) / (1 + |u| + u^2 / 2)``.

    Source:
        Catoni (2012), the widest choice; Lugosi and Mendelson (2019), section 2.1.
    """
    size = u.abs()
    grown = torch.addcmul(size, size, size, value=0.5)
    pull = grown.log1p().copysign_(u)
    return pull, size.add_(1).div_(grown.add_(1))


def catoni_mean(values: Any, alpha: float) -> float:
    r"""The root ``m`` of ``sum_i psi(alpha (values_i - m)) = 0``.

    Example:
        >>> round(catoni_mean([1.0] * 50 + [3.0] * 50 + [1e6], alpha=0.1), 1)
        4.3

    Args:
        values: ``n`` numbers.
        alpha: How soon a value counts as far away, above 0, one over the values'
            units; see ``catoni_alpha``.

    Raises:
        ValueError: If there is no value, one is not finite, or ``alpha`` not positive.

    Source:
        Catoni (2012); used by Mason et al. (2022), Appendix C.
    """
    vector = real_vector(values, "values")
    if vector.numel() == 0:
        raise ValueError("Expected `values` to hold at least one number, but got none.")
    alpha = in_interval(alpha, "alpha", 0.0, math.inf)
    rate = vector.new_full((1,), alpha)
    return float(catoni_means(vector.unsqueeze(0), torch.ones_like(vector), rate))


def catoni_means(values: Tensor, weights: Tensor, alpha: Tensor) -> Tensor:
    r"""Catoni's means of several weighted samples at once.

    Safe Newton: the sum falls in ``m`` and changes its sign between the smallest and
    the largest value; where a step leaves the interval still possible, it is halved.
    SciPy's root finders take one function of one number at a time.

    Args:
        values: ``k x n``, a sample per row.
        weights: ``n`` positive weights, shared: how many values each entry stands for.
        alpha: ``k`` positive numbers.

    Returns:
        ``k`` means.
    """
    low, high = values.amin(dim=-1), values.amax(dim=-1)
    largest, rate = values.abs().amax(dim=-1), alpha.unsqueeze(-1)
    total = weights.sum()
    mean = (values @ weights / total).clamp(low, high)
    for _ in range(MAX_STEPS):
        pull, slope = influence((values - mean.unsqueeze(-1)).mul_(rate))
        excess = pull @ weights
        low = torch.where(excess >= 0, mean, low)
        high = torch.where(excess <= 0, mean, high)
        steepness = slope @ weights
        step = excess / (alpha * steepness)
        # The scale on which the sum changes; one far value says nothing about it.
        close = ROOT * torch.minimum(largest, mean.abs() + 1 / alpha)
        newton = mean + step
        # A step too small to leave an end of the interval is the last one: halving the
        # interval would begin anew. So is one after which the next is that small, as
        # `abs(psi'') <= 1/4` tells: it would take one more look at all values.
        bent = alpha * step.abs() * total / 4
        is_last = (step.abs() <= close) | (
            bent * step.abs() <= 2 * close * (steepness - bent)
        )
        inside = is_last | ((newton > low) & (newton < high))
        found = torch.where(inside, newton.clamp(low, high), 0.5 * (low + high))
        moved = (found - mean).abs()
        mean = found
        if bool((is_last | (moved <= close)).all()):
            break
    return mean


def catoni_alpha(n: int, variance: float, delta: float) -> float:
    r"""The ``alpha`` for which the mean of ``n`` values is best at ``delta``.

    ``sqrt(2 L / (n v (1 + 2 L / (n - 2 L))))`` with ``L = log(2 / delta)`` and the
    variance ``v``.

    Args:
        n: The number of values, above ``2 L``.
        variance: A bound of their variance, above 0.
        delta: The failure probability, in (0, 1).

    Raises:
        ValueError: If a number is out of range or ``n`` too small.

    Source:
        Catoni (2012), Proposition 2.4; Lugosi and Mendelson (2019), Theorem 5.
    """
    n, v, L = _read(n, variance, delta)
    return math.sqrt(2 * L / (n * v * (1 + 2 * L / (n - 2 * L))))


def catoni_width(n: int, variance: float, delta: float) -> float:
    r"""The largest error of the mean, with probability ``1 - delta``.

    ``sqrt(2 v L / (n - 2 L))``, for ``alpha`` from ``catoni_alpha``; only the variance
    need be finite. Arguments and errors: see ``catoni_alpha``.

    Source:
        Lugosi and Mendelson (2019), Theorem 5.
    """
    n, v, L = _read(n, variance, delta)
    return math.sqrt(2 * v * L / (n - 2 * L))


def _read(n: int, variance: float, delta: float) -> tuple[int, float, float]:
    n = whole_number(n, "n", 1)
    v = in_interval(variance, "variance", 0.0, math.inf)
    L = math.log(2 / in_interval(delta, "delta", 0.0, 1.0))
    if n <= 2 * L:
        raise ValueError(
            f"Expected `n` above 2 log(2 / delta) = {2 * L:g}, but got {n}. Draw more "
            "values or allow a larger `delta`."
        )
    return n, v, L
