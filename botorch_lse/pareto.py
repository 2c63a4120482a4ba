r"""Pareto dominance on a finite set: who is dominated, and by how much.

All outputs are maximised. Pairs of rows are compared in blocks, so memory does not grow
with the square of the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from botorch_lse.checks import real_matrix, truth_value

PAIRS = 2**21
"""Pairs compared at once; a block holds four arrays of this size, 64 MiB in all."""
SCREENED = 256
"""Rows compared at once with those that nothing dominates so far."""


def pareto_mask(means: Any, strict: bool = False) -> Tensor:
    r"""Which rows no other row dominates; equal rows are all kept.

    A row dominates another if it is at least as large in every output and larger in
    one. With ``strict=True`` it must be larger in every output, so more rows remain.

    Example:
        >>> pareto_mask([[0.0, 2.0], [1.0, 1.0], [0.0, 1.0]]).tolist()
        [True, True, False]
        >>> pareto_mask([[0.0, 2.0], [1.0, 1.0], [0.0, 1.0]], strict=True).tolist()
        [True, True, True]

    Args:
        means: ``K x m`` values, all outputs maximised.
        strict: Whether a row must be larger in every output to dominate.

    Returns:
        ``K`` bools.

    Rows with large sums go first: the others are compared only with those that remain.

    Source:
        Kone et al. (2025), Definition 1; ``strict`` is that of their ``S_r``. BoTorch's
        ``is_non_dominated`` knows no strict form and visits large sets row by row.
    """
    values, strict = real_matrix(means, "means"), truth_value(strict, "strict")
    front, best = torch.empty(0, dtype=torch.long), values[:0]
    for rows in _likely_first(values).split(SCREENED):
        rows = rows[~_any_dominates(best, values[rows], strict)]
        rows = rows[~_any_dominates(values[rows], values[rows], strict)]
        front = torch.cat((front, rows))
        best = values[front]
    mask = torch.zeros(len(values), dtype=torch.bool)
    mask[front] = True
    return mask


def _likely_first(values: Tensor) -> Tensor:
    r"""The rows' numbers in an order in which none is dominated by a later one.

    By falling sum; equal sums, which rounding makes of rows that dominate each other,
    by falling columns, the first before the others.
    """
    order = torch.arange(len(values))
    total = torch.zeros_like(values[:, 0])
    for column in values.unbind(dim=1):
        total = total + column  # one by one, so that rounding keeps the order
    for key in (*values.unbind(dim=1)[::-1], total):
        order = order[key[order].argsort(descending=True, stable=True)]
    return order


def _any_dominates(best: Tensor, values: Tensor, strict: bool) -> Tensor:
    r"""Whether some row of ``best`` dominates each row of ``values``."""
    dominated = torch.zeros(len(values), dtype=torch.bool)
    for rivals in best.split(max(1, PAIRS // max(len(values), 1))):
        left = (~dominated).nonzero().view(-1)
        each = values[left].unsqueeze(1).unbind(dim=-1)
        columns = list(zip(rivals.unbind(dim=-1), each, strict=True))
        if strict:
            beaten = _all(b > v for b, v in columns)
        else:
            beaten = _all(b >= v for b, v in columns)
            beaten &= ~_all(b == v for b, v in columns)
        dominated[left] = beaten.any(dim=1)
    return dominated


def _all(parts: Iterable[Tensor]) -> Tensor:
    return reduce(torch.logical_and, parts)


def pareto_gaps(means: Any) -> Tensor:
    r"""How far each row is from changing sides between Pareto optimal and not.

    With ``m(i, j) = min_c (mu_j(c) - mu_i(c))`` and ``M = -m``: a dominated row has
    ``Delta*_i = max_j m(i, j)``, what must be added to all its outputs to make it
    undominated; an optimal row has ``min_{j != i} min(M(i, j), M(j, i)_+ +
    (Delta*_j)_+)``.

    Args:
        means: ``K x m`` true means, all outputs maximised.

    Returns:
        ``K`` gaps, at least 0, units of ``y``; infinite for a single row.

    Source:
        Kone et al. (2025), Eq. (1).
    """
    values = real_matrix(means, "means")
    own = _dominance(values)
    return _gaps(values, own.amount, ~own.dominated)


def empirical_gaps(means: Any) -> Tensor:
    r"""Like ``pareto_gaps``, for estimated means of the rows still active.

    A row counts as optimal if no other is larger in every output, as in ``S_r``.

    Args:
        means: ``K x m`` estimates, all outputs maximised.

    Returns:
        ``K`` gaps, at least 0, units of ``y``; infinite for a single row.

    Source:
        Kone et al. (2025), Eq. (5). Deviation: ``(Delta*_j)_+`` as in Eq. (1), where
        Eq. (5) prints ``i``: erratum 1 (papers/kone2025/errata.md).
    """
    values = real_matrix(means, "means")
    own = _dominance(values)
    return _gaps(values, own.amount, own.amount <= 0)


def pareto_margins(means: Any) -> Tensor:
    r"""How far each row is from being strictly dominated, negative if it is.

    ``min_{j != i} M(i, j)``: the row is undominated where this is positive, and where
    it is negative minus this is what must be added to all its outputs.

    Args:
        means: ``K x m`` values, all outputs maximised.

    Returns:
        ``K`` margins, units of ``y``; infinite for a single row.
    """
    values = real_matrix(means, "means")
    result = torch.full_like(values[:, 0], torch.inf)
    everything = torch.arange(len(values))
    for rows in _blocks(everything, len(values)):
        low, _ = _differences(values, rows)
        low[torch.arange(len(rows)), rows] = -torch.inf
        result[rows] = -low.amax(dim=1)
    return result


@dataclass(frozen=True, eq=False)
class _Dominance:
    amount: Tensor  # Delta*_i, 0 at least through j = i
    dominated: Tensor  # in the weak sense


def _dominance(means: Tensor) -> _Dominance:
    K = len(means)
    amount = torch.empty_like(means[:, 0])
    dominated = torch.empty(K, dtype=torch.bool)
    for rows in _blocks(torch.arange(K), K):
        low, high = _differences(means, rows)
        amount[rows] = low.amax(dim=1)
        dominated[rows] = ((low >= 0) & (high > 0)).any(dim=1)
    return _Dominance(amount, dominated)


def _gaps(means: Tensor, amount: Tensor, optimal: Tensor) -> Tensor:
    gaps = amount.clone()
    for rows in _blocks(optimal.nonzero().view(-1), len(means)):
        low, high = _differences(means, rows)
        # M(i, j) = -low and M(j, i) = high.
        rival = torch.minimum(low.neg_(), high.clamp_min_(0.0).add_(amount))
        rival[torch.arange(len(rows)), rows] = torch.inf
        gaps[rows] = rival.amin(dim=1)
    return gaps.clamp_min_(0.0)


def _differences(means: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    r"""Smallest and largest ``mu_j(c) - mu_i(c)`` over ``c``: ``rows x K`` each."""
    low = means[:, 0] - means[rows, 0, None]
    high = low.clone()
    for c in range(1, means.shape[1]):
        difference = means[:, c] - means[rows, c, None]
        torch.minimum(low, difference, out=low)
        torch.maximum(high, difference, out=high)
    return low, high


def _blocks(rows: Tensor, K: int) -> Iterator[Tensor]:
    yield from rows.split(max(1, PAIRS // K))
