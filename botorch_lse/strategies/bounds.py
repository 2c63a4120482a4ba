r"""Which rows can take most off a loss, without looking at every target of each.

What a row takes off a loss is a sum over all targets, and with 100,000 of both there
are too many pairs. This module bounds the sums from above at a cost that grows with the
rows and the targets, not with their product; rows are then examined exactly from the
largest bound down until no other can be the best.

A removal at target ``v`` is a growing function ``R_v`` of the reduction ``g`` of its
variance. Any straight line above it, ``R_v(g) <= A_v + B_v g``, gives

    sum_v R_v(g(x, v)) <= sum_v A_v + sum_v B_v k(x, v)^2 / (s(x)^2 + noise(x)).

The covariances are ``k(x, v) = F(x)' F(v)`` up to an error of at most ``sqrt(e(x)
e(v))``: ``F`` are the first columns of a Cholesky factor with pivots, ``e`` the
variances that they leave (Cauchy and Schwarz). By the triangle inequality the last sum
is at most

    (sqrt(F(x)' G F(x)) + sqrt(e(x) sum_v B_v e(v)))^2 / (s(x)^2 + noise(x)),
    G = sum_v B_v F(v) F(v)'.

An effect that begins in proportion to covariances has that part by itself, with signs:
``abs(sum_v C_v k(x, v)) <= abs(F(x)' sum_v C_v F(v)) + sqrt(e(x)) sum_v abs(C_v)
sqrt(e(v))``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.functional.lines import Lines
from botorch_lse.functional.lookahead import TINY, Effect
from botorch_lse.models.gaussian_process import PoolPosterior, row_blocks

RANK = 256
"""Columns of ``F``; fewer where they do not fit a quarter of the memory budget."""
PIVOTS = 32
"""Of them computed together."""
JITTER = 1e-10
"""Added to the covariance of pivots, as a share of the largest variance."""
LEAST_IMPORTANCE = 1e-3
"""Of a row, as a share of the largest, when pivots are drawn."""
LINES_EACH = 2**8
"""Numbers held of a target while lines are made, about."""
ROUNDING = 1e-9
"""Bounds are raised by this share, so that they hold in spite of rounding."""


@dataclass(frozen=True, eq=False)
class LowRank:
    r"""A part of the posterior covariance of all rows of a pool, and what is left.

    Args:
        factor: ``N x m``: ``F``, units of ``y``.
        left: ``N`` variances left: ``e``, units of ``y`` squared.
    """

    factor: Tensor
    left: Tensor

    @classmethod
    def of(
        cls,
        posterior: PoolPosterior,
        rows: Tensor | None = None,
        importance: Tensor | None = None,
    ) -> LowRank:
        r"""With pivots drawn by the variance left, always the same for a posterior.

        Args:
            posterior: On the pool.
            rows: The rows that are looked at; all if ``None``. The factor then has one
                line for each of them, and only they cost time and memory.
            importance: As many factors, at least 0, by which pivots are drawn as well:
                where they are large the factor leaves less.

        Source:
            Chen, Epperly, Tropp and Webber (2024), randomly pivoted Cholesky, in
            blocks. The draws decide how tight bounds are, not whether they hold.
        """
        variance = posterior.variance if rows is None else posterior.variance[rows]
        N, generator = len(variance), torch.Generator().manual_seed(0)
        most = min(RANK, N, posterior.memory_budget // (4 * 8 * N))
        factor, left, m = variance.new_zeros(N, most), variance.clone(), 0
        jitter = JITTER * variance.max()
        while m < most and bool((left > jitter).sum() >= min(PIVOTS, most - m)):
            size = min(PIVOTS, most - m)
            drawn = torch.where(left > jitter, left, 0.0)
            if importance is not None:
                drawn = drawn * (importance / importance.max() + LEAST_IMPORTANCE)
            pivots = torch.multinomial(
                drawn.to(generator.device), size, generator=generator
            ).to(drawn.device)
            columns = _columns(posterior, pivots, rows)  # size x N
            columns -= factor[pivots, :m] @ factor[:, :m].mT
            block = columns[:, pivots] + jitter * torch.eye(size, dtype=left.dtype)
            L, info = torch.linalg.cholesky_ex(block)
            if bool(info):  # what is left is rounding
                break
            new = torch.linalg.solve_triangular(L, columns, upper=False)
            factor[:, m : m + size] = new.mT
            left, m = (left - new.square().sum(dim=0)).clamp_min(0.0), m + size
        return cls(factor[:, :m], left + ROUNDING * variance)

    def summed(self, rows: Tensor, targets: Tensor, factor: Tensor) -> Tensor:
        r"""At least ``abs(sum_v factor_v k(x, v))`` for each of ``C`` rows.

        Args:
            rows: ``C`` rows.
            targets: ``T`` rows.
            factor: ``T`` factors of any sign.
        """
        # Rows of the factor are many numbers: it is read as it lies, not copied.
        of_all = torch.zeros_like(self.left).index_add_(0, targets, factor)
        found = (self.factor @ (of_all @ self.factor))[rows]
        rest = self.left[rows].sqrt() * (factor.abs() @ self.left[targets].sqrt())
        return found.abs() + rest

    def weighted(self, rows: Tensor, targets: Tensor, weight: Tensor) -> Tensor:
        r"""At least ``sum_v weight_v k(x, v)^2`` for each of ``C`` rows.

        Args:
            rows: ``C`` rows.
            targets: ``T`` rows.
            weight: ``T`` weights, at least 0.
        """
        m = self.factor.shape[-1]
        of_targets = self.factor.new_zeros(m, m)
        for b in row_blocks(len(targets), m + 1):
            F = self.factor[targets[b]]
            of_targets += (F * weight[b].unsqueeze(-1)).mT @ F
        parts = []
        for b in row_blocks(len(rows), m + 1):
            F = self.factor[rows[b]]
            parts.append(((F @ of_targets) * F).sum(dim=-1))
        rest = self.left[rows] * (weight @ self.left[targets])
        return (torch.cat(parts).clamp_min(0.0).sqrt() + rest.sqrt()).square()


def _columns(posterior: PoolPosterior, pivots: Tensor, rows: Tensor | None) -> Tensor:
    r"""Covariances of pivots, given by their places in ``rows``, with all of these."""
    if rows is None:
        return posterior.covariance_with(pivots)
    of_rows = posterior.against(rows[pivots])
    blocks = row_blocks(
        len(rows), len(posterior.indices) + len(pivots), posterior.memory_budget
    )
    return torch.cat([of_rows(rows[block]) for block in blocks]).mT.contiguous()


def upper_bounds(
    posterior: PoolPosterior,
    rows: Tensor,
    observed: Tensor,
    targets: Tensor,
    effect_at: Callable[[Tensor], Effect],
    effect: Effect | None = None,
) -> Tensor:
    r"""At least what each of ``C`` rows takes off a loss of ``T`` targets.

    Args:
        posterior: On the pool.
        rows: ``C`` candidates.
        observed: ``C`` variances of an observation at each, noise included.
        targets: ``T`` rows in question.
        effect_at: From numbers of targets to what an observation does there.
        effect: That at all targets, where it is known and their lines fit the memory.

    Returns:
        ``C`` sums, units of the loss.
    """
    largest = largest_share(posterior, rows, observed)
    if effect is None:
        starts, slopes = lines_above(posterior, targets, effect_at, largest)
        effect = effect_at(targets)
    else:
        starts, slopes = effect.lines(posterior.variance[targets], largest)
    # What the factor leaves matters where much is taken off, not everywhere alike.
    importance = torch.full_like(posterior.variance, TINY)
    importance[targets] += slopes.sum(dim=0)
    part = LowRank.of(posterior, importance=importance)
    first = torch.zeros_like(observed)
    if effect.first is not None:
        first = part.summed(rows, targets, effect.first) / observed.sqrt()
    bounds = torch.stack(
        [
            effect.bound(
                start.sum() + part.weighted(rows, targets, slope) / observed, first
            )
            for start, slope in zip(starts, slopes, strict=True)
        ]
    )
    return bounds.amin(dim=0) * (1 + ROUNDING)


def largest_share(posterior: PoolPosterior, rows: Tensor, observed: Tensor) -> float:
    r"""The largest share of a variance that an observation takes off.

    Args:
        posterior: On the pool.
        rows: ``C`` candidates.
        observed: ``C`` variances of an observation at each, noise included.
    """
    return float((posterior.variance[rows] / observed).max())


def lines_above(
    posterior: PoolPosterior,
    targets: Tensor,
    effect_at: Callable[[Tensor], Effect],
    largest: float,
) -> Lines:
    r"""Lines ``A + B g`` above the effects at ``T`` targets, block by block.

    Args:
        posterior: On the pool.
        targets: ``T`` rows.
        effect_at: From numbers of targets to effects there.
        largest: The largest share of a variance that an observation takes off.
    """
    parts = []
    for block in row_blocks(len(targets), LINES_EACH):
        some = targets[block]
        parts.append(effect_at(some).lines(posterior.variance[some], largest))
    starts, slopes = zip(*parts, strict=True)
    return torch.cat(starts, dim=1), torch.cat(slopes, dim=1)
