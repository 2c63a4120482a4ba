r"""Least squares with several outputs and one set of features."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.confidence.anytime import OUTSIDE, RANK_TOLERANCE
from botorch_lse.designs.basis import span_map


@dataclass(frozen=True, eq=False)
class LinearFit:
    r"""Estimated means of ``K`` rows.

    Args:
        mean: ``K x m`` estimates, units of ``y``.
        norms: ``K`` squared norms ``x' V^+ x``: the variance of an estimate is the
            noise variance times this. Infinite where the data do not determine the row.
        noise_var: ``m`` estimates of the noise variance, ``y`` squared; ``nan`` without
            degrees of freedom.
    """

    mean: Tensor
    norms: Tensor
    noise_var: Tensor


def span_least_squares(
    X: Tensor, indices: Tensor, y: Tensor, counts: Tensor | None = None
) -> LinearFit:
    r"""``Theta = V^+ sum x y'`` on the span of the rows, and what it says of each row.

    Args:
        X: ``K x h`` features of all rows asked about, of any rank.
        indices: ``n`` rows measured.
        y: ``n x m`` values.
        counts: ``n``, how many measurements each value is the mean of; default one.

    Returns:
        The fit. In directions nobody measured the estimate is zero.

    Source:
        Kone et al. (2025), Eq. (3): the projection on the span of the active rows.
        With measurements that do not span it, the Moore-Penrose inverse on the span.
    """
    Phi = X @ span_map(X)
    weights = torch.ones_like(y[:, 0]) if counts is None else counts.to(y)
    measured = Phi[indices]
    V = (measured * weights.unsqueeze(-1)).mT @ measured
    values, vectors = torch.linalg.eigh(V)
    kept = values > RANK_TOLERANCE * values[-1:].sum()
    root = vectors[:, kept] * values[kept].rsqrt()  # V^+ = root root'
    known = Phi @ root
    theta = root @ (root.mT @ (measured.mT @ (weights.unsqueeze(-1) * y)))
    outside = (Phi @ vectors[:, ~kept]).square().sum(dim=-1)
    unknown = outside > OUTSIDE**2 * Phi.square().sum(dim=-1)
    norms = known.square().sum(dim=-1).masked_fill(unknown, torch.inf)
    freedom = len(y) - int(kept.sum())
    residual = y - measured @ theta
    noise = torch.full_like(y[0], math.nan)
    if freedom > 0:
        noise = (weights.unsqueeze(-1) * residual.square()).sum(dim=0) / freedom
    return LinearFit(Phi @ theta, norms, noise)


@dataclass(frozen=True, eq=False)
class ArmTotals:
    r"""The totals of all measurements of ``K`` unstructured rows.

    Args:
        counts: ``K`` numbers of measurements.
        sums: ``K x m``, their sums.
        squares: ``m``, the sums of their squares, a mean of ``k`` counting ``k`` times.
        entries: How many values came.
    """

    counts: Tensor
    sums: Tensor
    squares: Tensor
    entries: int = 0

    @classmethod
    def zero(cls, K: int, m: int) -> ArmTotals:
        r"""The totals before any measurement of ``K`` rows with ``m`` outputs."""
        none = torch.zeros(K, m, dtype=torch.float64)
        return cls(none[:, 0].clone(), none, none.sum(dim=0))

    def add(
        self, indices: Tensor, y: Tensor, counts: Tensor | None = None
    ) -> ArmTotals:
        r"""The totals after ``n x m`` more values; ``counts`` as in a fit."""
        weights = torch.ones_like(y[:, 0]) if counts is None else counts.to(y)
        weighted = weights.unsqueeze(-1) * y
        return ArmTotals(
            self.counts.index_add(0, indices, weights),
            self.sums.index_add(0, indices, weighted),
            self.squares + (weighted * y).sum(dim=0),
            self.entries + len(y),
        )

    def fit(self) -> LinearFit:
        r"""The mean of each row by itself; 0 where nothing was measured."""
        mean = self.sums / self.counts.clamp_min(1.0).unsqueeze(-1)
        freedom = self.entries - int((self.counts > 0).sum())
        noise = torch.full_like(self.squares, math.nan)
        if freedom > 0:
            within = self.squares - (mean * self.sums).sum(dim=0)
            noise = within.clamp_min(0.0) / freedom
        return LinearFit(mean, 1 / self.counts, noise)
