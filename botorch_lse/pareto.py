r"""Pareto dominance on a finite set: which rows are dominated.

All outputs are maximised. Pairs of rows are compared in blocks, so memory does not grow
with the square of the number of rows. How far the rows of a known instance are from
changing sides (``pareto_gaps`` and its relatives) stands with the paper that asks it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import real_matrix, truth_value

__all__ = ["pareto_mask"]

PAIRS = 2**21
"""The number of pairs compared at once: a block holds four such arrays, 64 MiB."""
SCREENED = 256
"""The number of rows compared at once with those that nothing dominates so far.
Few, so that the front is nearly final, but many enough for one tensor operation."""


def pareto_mask(means: Any, strict: bool = False) -> Tensor:
    r"""A mask of the rows that no other row dominates; equal rows are all kept.

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
    r"""The rows' numbers in an order where none is dominated by a later one.

    Rows are ordered by falling sum. Rounding may make sums equal of rows that dominate
    each other; these are ordered by falling columns, the first before the others.
    """
    order = torch.arange(len(values))
    total = torch.zeros_like(values[:, 0])
    for column in values.unbind(dim=1):
        # One column after the other: then a row that dominates another never has the
        # smaller rounded sum, which a library's sum in blocks does not promise.
        total = total + column
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
