r"""A kernel on a finite set of points, seen through blocks of its Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.designs.basis import Basis, pivoted_cholesky

Covariance = Callable[[Tensor, Tensor], Tensor]
"""``(a x d, b x d) -> a x b``: any positive semidefinite function of two points."""

DIAGONAL_BLOCK = 128


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
        N = self.points.shape[0]
        blocks = (
            slice(i, min(i + DIAGONAL_BLOCK, N)) for i in range(0, N, DIAGONAL_BLOCK)
        )
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
