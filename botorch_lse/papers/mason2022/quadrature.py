r"""Many values of few rows, replaced by a few that keep sums of smooth functions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True, eq=False)
class Nodes:
    r"""Weighted values by row.

    Args:
        group: ``k``, the row each value belongs to.
        y: ``k`` values.
        weights: ``k``, how many values each stands for; they sum to the number of
            values.
    """

    group: Tensor
    y: Tensor
    weights: Tensor


def condensed(group: Tensor, y: Tensor, width: Tensor) -> Nodes:
    r"""Two nodes for the values of each bin, with the bin's first three moments.

    For a function whose fourth derivative is at most ``M`` a bin's average is off by at
    most ``M width^4 / 384``, because the two nodes are the Gauss rule of the bin's own
    values. Bins of one or two values lose nothing. Where bins would not save anything
    the values are returned as they are.

    Args:
        group: ``n`` rows, from 0.
        y: ``n`` values.
        width: One bin width per row.

    Source:
        Own; the rule is the two-point Gauss quadrature of a discrete measure (Golub
        and Welsch 1969), whose nodes lie within the bin.
    """
    lowest = torch.full_like(width, torch.inf).scatter_reduce(0, group, y, "amin")
    # Far values of heavy tails: bins that no int64 could count are capped.
    place = ((y - lowest[group]) / width[group]).floor().clamp_max(2.0**31)
    key = torch.stack((group.to(place), place), dim=-1)
    bins, where = _distinct(key)
    if 2 * len(bins) >= y.numel():
        return Nodes(group, y, torch.ones_like(y))
    k = len(bins)
    count = torch.bincount(where, minlength=k).to(y)
    centre = _sums(where, y, k) / count
    off = y - centre[where]
    spread = (_sums(where, off.square(), k) / count).sqrt()
    skewness = _sums(where, (off / spread.clamp_min(TINY)[where]) ** 3, k) / count
    root = (1 + 0.25 * skewness.square()).sqrt()
    far = 0.5 * skewness.abs() + root
    # The nodes are ``far`` and ``-1 / far`` spreads away, on the skewed side first.
    side = torch.copysign(spread, skewness)
    share = 1 / (1 + far.square())
    return Nodes(
        bins[:, 0].long().repeat(2),
        torch.cat((centre + side * far, centre - side / far)),
        torch.cat((count * share, count * (1 - share))),
    )


def _distinct(key: Tensor) -> tuple[Tensor, Tensor]:
    r"""Different rows of ``n x 2`` whole numbers, and where each row is among them."""
    code = key[:, 0] * 2.0**32 + key[:, 1]
    codes, where = code.unique(return_inverse=True)
    group = (codes / 2.0**32).floor()
    return torch.stack((group, codes - group * 2.0**32), dim=-1), where


def _sums(where: Tensor, values: Tensor, k: int) -> Tensor:
    return torch.zeros(k, dtype=values.dtype).index_add_(0, where, values)
