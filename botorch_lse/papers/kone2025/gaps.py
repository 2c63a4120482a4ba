r"""Gaps: the distances of rows from changing sides, and the hardness of an instance.

All outputs are maximised. Whatever a row falls behind, it falls behind a row that
nothing dominates no less, in floating point too: so all rows are compared with this
front, in blocks, and not with each other. Time grows with the rows times the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import real_matrix
from botorch_lse.designs.basis import span_map
from botorch_lse.pareto import PAIRS, pareto_mask


def pareto_gaps(means: Any) -> Tensor:
    r"""The distance of each row from changing between Pareto optimal and not.

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
    optimal = pareto_mask(values)
    return _gaps(values, dominations(values, optimal), optimal)[0]


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
    return standing(real_matrix(means, "means"))[0]


def standing(means: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""``empirical_gaps``, and the rows on which they rest.

    Where a row is taken out that is neither optimal nor needed, all others keep their
    gaps and sides: what it dominates, a row that dominates it does too.

    Args:
        means: ``K x m`` estimates, all outputs maximised.

    Returns:
        ``K`` gaps, ``K`` bools of the rows that count as optimal, and ``K`` bools of
        the rows that are needed for the gap of one.
    """
    amount = dominations(means)
    optimal = amount <= 0
    gaps, needed = _gaps(means, amount, optimal)
    return gaps, optimal, needed


def pareto_margins(means: Any) -> Tensor:
    r"""The distance of each row from being strictly dominated, negative if it is.

    ``min_{j != i} M(i, j)``: the row is undominated where this is positive, and where
    it is negative minus this is what must be added to all its outputs.

    Args:
        means: ``K x m`` values, all outputs maximised.

    Returns:
        ``K`` margins, units of ``y``; infinite for a single row.
    """
    values = real_matrix(means, "means")
    optimal = pareto_mask(values)
    front, result = optimal.nonzero().view(-1), -dominations(values, optimal)
    for rows in blocks(front, len(values)):
        low, _ = differences(values, rows)
        low[torch.arange(len(rows)), rows] = -torch.inf
        result[rows] = -low.amax(dim=1)
    return result


def dominations(means: Tensor, optimal: Tensor | None = None) -> Tensor:
    r"""``Delta*`` of each row, 0 where nothing dominates it.

    Args:
        means: ``K x m``, all outputs maximised.
        optimal: ``K`` bools, which rows nothing dominates, where that is known.
    """
    optimal = pareto_mask(means) if optimal is None else optimal
    amount, front = torch.zeros_like(means[:, 0]), means[optimal]
    for rows in blocks((~optimal).nonzero().view(-1), len(front)):
        low, _ = differences(means, rows, front)
        amount[rows] = low.amax(dim=1)
    return amount


def _gaps(means: Tensor, amount: Tensor, optimal: Tensor) -> tuple[Tensor, Tensor]:
    gaps, needed = amount.clone(), torch.zeros_like(optimal)
    for rows in blocks(optimal.nonzero().view(-1), len(means)):
        low, high = differences(means, rows)
        # M(i, j) = -low and M(j, i) = high.
        rival = torch.minimum(low.neg_(), high.clamp_min_(0.0).add_(amount))
        rival[torch.arange(len(rows)), rows] = torch.inf
        gaps[rows], nearest = rival.min(dim=1)
        needed[nearest] = True
    return gaps.clamp_min_(0.0), needed


def differences(
    means: Tensor, rows: Tensor, rivals: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""Smallest and largest ``mu_j(c) - mu_i(c)`` over ``c``: ``rows x rivals`` each.

    Args:
        means: ``K x m``.
        rows: The rows ``i``.
        rivals: The means of the ``j``; default those of all rows.
    """
    rivals = means if rivals is None else rivals
    low = rivals[:, 0] - means[rows, 0, None]
    high = low.clone()
    for c in range(1, means.shape[1]):
        difference = rivals[:, c] - means[rows, c, None]
        torch.minimum(low, difference, out=low)
        torch.maximum(high, difference, out=high)
    return low, high


def blocks(rows: Tensor, K: int) -> Iterator[Tensor]:
    r"""The rows in blocks, so small that each may be compared with ``K`` others."""
    yield from rows.split(max(1, PAIRS // K))


@dataclass(frozen=True, eq=False)
class ParetoComplexity:
    r"""``sum`` and ``max`` of inverse squared gaps, smallest gaps first.

    Args:
        gaps: ``K`` gaps, units of ``y``.
        H_1: ``sum_i 1 / gap_i^2`` over all arms.
        H_2: ``max_i i / gap_(i)^2`` over all arms, gaps ascending.
        H_1_lin: ``H_1`` over the ``rank`` smallest gaps.
        H_2_lin: ``H_2`` over the ``rank`` smallest gaps.
        rank: The rank of the features; ``K`` without features.
    """

    gaps: Tensor
    H_1: float
    H_2: float
    H_1_lin: float
    H_2_lin: float
    rank: int


def pareto_complexity(means: Any, X: Any = None) -> ParetoComplexity:
    r"""``H_1``, ``H_2`` and their linear forms.

    Args:
        means: ``K x m`` true means, all outputs maximised.
        X: ``K x h`` features of the arms; ``None``: unstructured, the linear forms
            equal the others.

    Returns:
        Infinite values where a gap is 0: two arms tie and no budget separates them.

    Source:
        Kone et al. (2025), section 2.1, Eq. (1) and (2).
    """
    values = real_matrix(means, "means")
    K = values.shape[0]
    rank = K if X is None else span_map(real_matrix(X, "X")).shape[1]
    gaps = pareto_gaps(values)
    inverse = gaps.sort().values ** -2.0
    ranked = inverse * torch.arange(1, K + 1).to(inverse)
    return ParetoComplexity(
        gaps,
        float(inverse.sum()),
        float(ranked.max()),
        float(inverse[:rank].sum()),
        float(ranked[:rank].max()),
        rank,
    )
