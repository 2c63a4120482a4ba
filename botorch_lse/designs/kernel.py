r"""A kernel on a finite set of points, and the value of a design on the kernel itself.

A solver works on features that agree with the kernel up to a small error. The value
that is reported is that of the kernel: ``phi(x)' A^-1 phi(y) = (k(x, y) - k_lam(x)'
(K_lam + gamma I)^-1 k_lam(y)) / gamma`` needs the kernel between the support of the
design and all points only.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.designs.basis import Basis, pivoted_cholesky
from botorch_lse.designs.certificate import row_blocks
from botorch_lse.designs.targets import Violators, largest_pairs, top_norms

Covariance = Callable[[Tensor, Tensor], Tensor]
"""``(a x d, b x d) -> a x b``: any positive semidefinite function of two points."""

DIAGONAL_BLOCK = 128
"""Points of which the whole Gram matrix is computed for the sake of its diagonal."""


@dataclass(frozen=True, eq=False)
class KernelGram:
    r"""``k(x, x')`` between the rows of ``points``, never all at once.

    Args:
        points: ``N x d``, float64.
        covariance: The kernel as a function of two sets of points.
    """

    points: Tensor
    covariance: Covariance

    @classmethod
    def of(cls, kernel: Kernel | Covariance, points: Tensor) -> KernelGram:
        r"""The Gram matrix of a GPyTorch kernel or of a function of two sets.

        Raises:
            UnsupportedError: If the kernel is batched.
            BotorchTensorDimensionError: If the kernel does not return ``a x b``.
        """
        if isinstance(kernel, Kernel):
            if len(kernel.batch_shape):
                raise UnsupportedError(
                    "Expected `kernel` without batch shape, but got "
                    f"{tuple(kernel.batch_shape)}. Solve one design per member."
                )
            frozen = deepcopy(kernel).to(points).requires_grad_(False).eval()
            gram = cls(points, lambda a, b: frozen(a, b).to_dense())
        else:
            gram = cls(points, kernel)
        found = gram.block(slice(0, 1), slice(0, 1))
        if found.shape != (1, 1):
            raise BotorchTensorDimensionError(
                "Expected `kernel` to map a x d and b x d points to a x b covariances, "
                f"but for a = b = 1 it gave shape {tuple(found.shape)}."
            )
        return gram

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""``k`` between the points ``rows`` and ``columns``."""
        with torch.no_grad():
            found = self.covariance(self.points[rows], self.points[columns])
        return found.to(self.points)

    def diagonal(self) -> Tensor:
        r"""``N`` prior variances ``k(x, x)``.

        Raises:
            ValueError: If one is not finite or negative.
        """
        blocks = torch.arange(len(self.points)).split(DIAGONAL_BLOCK)
        variances = torch.cat([self.block(b, b).diagonal() for b in blocks])
        wrong = ~(variances.isfinite() & (variances >= 0))
        if bool(wrong.any()):
            i = int(wrong.nonzero()[0])
            raise ValueError(
                "Expected `kernel` to give finite, non-negative variances, but k(x, x) "
                f"of row {i} is {float(variances[i])}."
            )
        return variances

    def basis(self, tolerance: Tensor | float) -> Basis:
        r"""Features whose squared norms miss at most ``tolerance``.

        Args:
            tolerance: In units of the kernel; one number or one per point.
        """
        everything = slice(None)
        return pivoted_cholesky(
            self.diagonal(),
            lambda i: self.block(everything, slice(i, i + 1)).squeeze(-1),
            tolerance,
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
