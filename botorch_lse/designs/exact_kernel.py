r"""The certificate with the kernel itself, whatever basis the solver used.

``phi(x)' A^-1 phi(y) = (k(x, y) - k_lam(x)' (K_lam + gamma I)^-1 k_lam(y)) / gamma``
needs the kernel between the support of the design and all points only.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.designs.certificate import Certificate, lower_bound
from botorch_lse.designs.kernel_gram import KernelGram
from botorch_lse.designs.targets import (
    Violators,
    largest_pairs,
    row_blocks,
    top_norms,
)


@dataclass(frozen=True, eq=False)
class KernelTargets:
    r"""Targets as combinations of points.

    Args:
        points: ``T`` points of the Gram matrix.
        weights: Factors of the squared norms: ``T``, for pairs ``T x T``, or ``None``.
        factor: ``c`` for the pairs ``(i, j) -> phi_i - c phi_j``; ``None`` for the
            points themselves.
    """

    points: Tensor
    weights: Tensor | None = None
    factor: float | None = None


@dataclass(frozen=True, eq=False)
class KernelProblem:
    r"""The design problem on a kernel.

    Args:
        gram: The kernel on all points.
        sigma: One noise standard deviation per design point; the design points are
            the first ``len(sigma)`` points of ``gram``.
        gamma: The ridge, above 0.
        targets: What to predict.
    """

    gram: KernelGram
    sigma: Tensor
    gamma: float
    targets: KernelTargets


class KernelInverse:
    r"""Inner products in ``A(lam)^-1`` for a sparse design.

    Args:
        problem: The problem.
        columns: Design points with mass.
        masses: Their weights.

    Source:
        Mason et al. (2022), Lemma G.1, with the columns ``phi / sigma``.
    """

    def __init__(self, problem: KernelProblem, columns: Tensor, masses: Tensor) -> None:
        self.gram, self.gamma, self.columns = problem.gram, problem.gamma, columns
        self.root = masses.sqrt() / problem.sigma[columns]
        K = self.root.unsqueeze(-1) * self.gram.block(columns, columns) * self.root
        eye = torch.eye(K.shape[0], dtype=K.dtype, device=K.device)
        self.L = torch.linalg.cholesky(K + self.gamma * eye)

    def loadings(self, points: Tensor) -> Tensor:
        r"""``R = k_lam(points) L^-T``: ``p x s``."""
        k = self.gram.block(points, self.columns) * self.root
        return torch.linalg.solve_triangular(self.L.mT, k, upper=True, left=False)

    def norms(self, points: Tensor, diagonal: Tensor) -> Tensor:
        r"""``phi' A^-1 phi`` of each point, given its ``k(x, x)``."""
        blocks = row_blocks(points.numel(), self.columns.numel())
        gains = [self.loadings(points[b]).square().sum(dim=-1) for b in blocks]
        return ((diagonal[points] - torch.cat(gains)) / self.gamma).clamp_min(0.0)

    def products(self, left: Tensor, right: Tensor, R: Tensor) -> Tensor:
        r"""``phi_l' A^-1 phi_r``, with ``R`` the loadings of ``right``: ``l x r``."""
        half = torch.linalg.solve_triangular(self.L.mT, R.mT, upper=True)
        k = self.gram.block(left, self.columns) * self.root
        return (self.gram.block(left, right) - k @ half) / self.gamma


def value_on_kernel(problem: KernelProblem, columns: Tensor, masses: Tensor) -> float:
    r"""The largest (weighted) squared norm over all targets, exact up to float64."""
    inverse = KernelInverse(problem, columns, masses)
    return largest_on_kernel(problem, inverse, 1).largest


def largest_on_kernel(
    problem: KernelProblem, inverse: KernelInverse, many: int
) -> Violators:
    r"""The ``many`` largest (weighted) squared norms over all targets."""
    targets = problem.targets
    own = inverse.norms(targets.points, problem.gram.diagonal())
    if targets.factor is None:
        weighted = own if targets.weights is None else own * targets.weights
        return top_norms(weighted, many)
    R = inverse.loadings(targets.points)
    return largest_pairs(
        own,
        lambda rows: inverse.products(targets.points[rows], targets.points, R),
        targets.factor,
        targets.weights,
        many,
    )


def certify_on_kernel(
    problem: KernelProblem,
    columns: Tensor,
    masses: Tensor,
    target_ids: Tensor,
    target_weights: Tensor,
) -> Certificate:
    r"""``certify`` without features: exact up to float64.

    Args:
        problem: The problem.
        columns: Design points with mass.
        masses: Their weights, on the simplex.
        target_ids: Targets with dual weight (pairs: ``i * T + j``).
        target_weights: Their weights, on the simplex.
    """
    inverse = KernelInverse(problem, columns, masses)
    upper = largest_on_kernel(problem, inverse, 1).largest
    N = problem.sigma.numel()
    rows = torch.arange(N, device=columns.device)
    points, mix = as_points(problem.targets, target_ids)
    R = inverse.loadings(points)
    s = (
        torch.cat(
            [
                (inverse.products(rows[b], points, R) @ mix.mT).square()
                @ target_weights
                for b in row_blocks(N, points.numel() + columns.numel())
            ]
        )
        / problem.sigma.square()
    )
    products = mix @ inverse.products(points, points, R) @ mix.mT
    f = float(products.diagonal() @ target_weights)
    average = float(masses @ s[columns])
    return Certificate(upper, lower_bound(f, float(s.max()), average))


def as_points(targets: KernelTargets, ids: Tensor) -> tuple[Tensor, Tensor]:
    r"""Targets ``ids`` as ``mix @ phi(points)``."""
    dtype = torch.float64
    if targets.factor is None:
        scale = torch.ones_like(ids, dtype=dtype)
        if targets.weights is not None:
            scale = targets.weights[ids].sqrt()
        return targets.points[ids], torch.diag(scale)
    T = targets.points.numel()
    i, j = ids // T, ids % T
    members, where = torch.cat((i, j)).unique(return_inverse=True)
    mix = torch.zeros(ids.numel(), members.numel(), dtype=dtype, device=ids.device)
    each = torch.arange(ids.numel(), device=ids.device)
    minus = torch.full_like(each, -targets.factor, dtype=dtype)
    mix.index_put_((each, where[: len(ids)]), torch.ones_like(minus), accumulate=True)
    mix.index_put_((each, where[len(ids) :]), minus, accumulate=True)
    if targets.weights is not None:
        mix = targets.weights[i, j].sqrt().unsqueeze(-1) * mix
    return targets.points[members], mix
