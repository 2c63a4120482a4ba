r"""Features of a kernel with controlled error, and the span of features.

A kernel on ``N`` points becomes ``N x m`` features ``Phi`` with ``Phi Phi'`` close to
the Gram matrix, by a Cholesky factorization with pivots.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import Kernel
from torch import Tensor

Covariance = Callable[[Tensor, Tensor], Tensor]
"""A positive semidefinite function of two points: ``(a x d, b x d) -> a x b``."""

DIAGONAL_BLOCK = 128
"""The number of points whose whole Gram matrix is computed for its diagonal.
A function of two sets of points has no other way to give it."""

RESIDUAL_TOLERANCE = 1e-13
"""The share of the largest squared norm below which squared residuals count as 0.
Float64 cannot tell such a feature from a combination of the others."""
SPAN_TOLERANCE = 1e-10
"""The share of the largest singular value below which others count as zero."""
OUTSIDE = 1e-6
"""The share of a vector's length, outside of a span, that puts the vector outside.
It is far above float64's noise after whitening, far below what users mean by it."""


@dataclass(frozen=True, eq=False)
class Basis:
    r"""Features of ``N`` points whose inner products approximate a Gram matrix.

    ``Phi Phi'`` agrees with the Gram matrix up to ``residual`` on the diagonal.

    Args:
        Phi: ``N x m`` features.
        pivots: ``m`` rows that determine the others, in the order of their choice.
        residual: ``N``, the part of the squared norms that is missing, at least 0. By
            Cauchy-Schwarz it bounds every entry: ``|error_ij|^2 <= r_i r_j``.
    """

    Phi: Tensor
    pivots: Tensor
    residual: Tensor


def pivoted_cholesky(
    diagonal: Tensor,
    column: Callable[[int], Tensor],
    tolerance: Tensor | float,
    max_rank: int | None = None,
) -> Basis:
    r"""Greedy low-rank factor of a positive semidefinite matrix, by its columns.

    Args:
        diagonal: ``N`` diagonal entries.
        column: ``i -> N`` entries of column ``i``.
        tolerance: Stop when every residual is at most this; one number or ``N``.
        max_rank: The largest number of columns.

    Source:
        Harbrecht, Peters and Schneider (2012), Algorithm 1. gpytorch's
        ``pivoted_cholesky`` stops on the trace, not on each row's residual, and has no
        tolerance per row.
    """
    N = diagonal.numel()
    limit = min(max_rank or N, N)
    slack = torch.as_tensor(tolerance, dtype=diagonal.dtype, device=diagonal.device)
    slack = slack.clamp_min(RESIDUAL_TOLERANCE * float(diagonal.max()))
    residual = diagonal.clone()
    rows = torch.empty(min(limit, 64), N, dtype=diagonal.dtype, device=diagonal.device)
    pivots: list[int] = []
    while len(pivots) < limit:
        excess = residual - slack
        i = int(excess.argmax())
        if float(excess[i]) <= 0:
            break
        r = len(pivots)
        if r == rows.shape[0]:
            rows = torch.cat((rows, torch.empty_like(rows)[: limit - r]))
        new = column(i) - rows[:r, i] @ rows[:r]
        new = new / residual[i].sqrt()
        rows[r] = new
        residual = (residual - new.square()).clamp_min(0.0)
        residual[i] = 0.0  # exactly, so that rounding lets no pivot come twice
        pivots.append(i)
    taken = torch.tensor(pivots, dtype=torch.long, device=diagonal.device)
    return Basis(rows[: len(pivots)].mT.contiguous(), taken, residual)


def spanning_rows(Phi: Tensor) -> Tensor:
    r"""The rows of ``Phi`` that span all others; their number is the rank.

    Args:
        Phi: ``N x m``.
    """
    return pivoted_cholesky(
        Phi.square().sum(dim=-1), lambda i: Phi @ Phi[i], 0.0, min(Phi.shape)
    ).pivots


def span_map(Phi: Tensor) -> Tensor:
    r"""The map that gives ``Phi`` orthonormal columns (``m x h``, ``h`` the rank).

    The squared norms ``v' A^-1 v`` of ``gamma = 0`` do not change under it, and the
    information becomes as well conditioned as the weights.

    Source:
        Kone et al. (2025), Appendix H: the matrix ``B_S`` of left singular vectors.
    """
    size = Phi.square().sum(dim=0).max().sqrt().clamp_min(torch.finfo(Phi.dtype).tiny)
    _, sizes, Vh = torch.linalg.svd(Phi / size, full_matrices=False)
    kept = sizes > SPAN_TOLERANCE * sizes[0]
    # The root of N: then equal weights on all rows have the identity as information.
    return Vh[kept].mT / (sizes[kept] * size) * Phi.shape[0] ** 0.5


def outside_span(V: Tensor, columns: Tensor) -> Tensor:
    r"""Whether vectors are outside the span of the columns by more than rounding.

    Args:
        V: ``T x m`` vectors.
        columns: ``m x h``, of full rank.

    Returns:
        ``T`` bools.
    """
    basis = torch.linalg.qr(columns).Q
    missing = (V - V @ basis @ basis.mT).norm(dim=-1)
    return missing > OUTSIDE * V.norm(dim=-1)


@dataclass(frozen=True, eq=False)
class KernelGram:
    r"""The kernel between the rows of ``points``, computed in the blocks asked for.

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
        r"""The kernel between the points ``rows`` and the points ``columns``."""
        with torch.no_grad():
            found = self.covariance(self.points[rows], self.points[columns])
        return found.to(self.points)

    def diagonal(self) -> Tensor:
        r"""The prior variances ``k(x, x)`` (``N``).

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
        r"""The features whose squared norms miss at most ``tolerance``.

        Args:
            tolerance: In units of the kernel; one number or one per point.
        """
        everything = slice(None)
        return pivoted_cholesky(
            self.diagonal(),
            lambda i: self.block(everything, slice(i, i + 1)).squeeze(-1),
            tolerance,
        )
