r"""Covariances of common stationary kernels, in few passes over memory.

GPyTorch evaluates a kernel in some ten passes, each with an array of its own. Where no
gradient is wanted, distances by differences and operations in place take a third of the
time, and more than half of a decision in a large pool is such evaluations. Distances by
differences are also more exact than those by products, which cancel for near points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul
from typing import ClassVar

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from torch import Tensor

MOST_INPUTS = 25
"""The number of inputs beyond which distances by one matrix product are faster."""


@dataclass(frozen=True, eq=False)
class Stationary:
    r"""A covariance that depends on the scaled distance of two points alone.

    Args:
        of_distance: From distances to correlations; may overwrite the distances.
        unit: What counts as 1 of the distances: for each input, or for all. It is the
            lengthscale over a constant, so that nothing need be multiplied later.
        scale: The variance, float64.
        columns: Those of the inputs that it looks at; ``None``: all.
    """

    of_distance: Callable[[Tensor], Tensor]
    unit: Tensor
    scale: Tensor
    columns: Tensor | None = None

    @classmethod
    def of(cls, kernel: Kernel) -> Stationary | None:
        r"""The stationary form of a Matern or RBF kernel, scaled or not; else ``None``.

        Other classes, subclasses included, and kernels of ensembles are GPyTorch's
        business.

        Args:
            kernel: With its hyper-parameters fixed.
        """
        scale = torch.ones((), dtype=torch.float64)
        while type(kernel) is ScaleKernel and kernel.active_dims is None:
            if len(kernel.batch_shape):
                return None
            scale = scale * kernel.outputscale.detach().double()
            kernel = kernel.base_kernel
        if type(kernel) is RBFKernel:
            of_distance, per_length = _squared_exponential, 0.5**0.5
        elif type(kernel) is MaternKernel and kernel.nu in _MATERN:
            of_distance, per_length = _MATERN[kernel.nu], (2 * kernel.nu) ** 0.5
        else:
            return None
        if len(kernel.batch_shape):
            return None
        unit = kernel.lengthscale.detach() / per_length
        return cls(of_distance, unit, scale, kernel.active_dims)

    @property
    def variance(self) -> Tensor:
        r"""The variance at every point."""
        return self.scale

    def __call__(self, F: Tensor, G: Tensor) -> Tensor | None:
        r"""The correlations of ``... x N x d`` points with ``... x M x d``.

        ``None`` where they are GPyTorch's business: with gradients, of many inputs, and
        of points with other columns.
        """
        has_gradient = torch.is_grad_enabled() and (F.requires_grad or G.requires_grad)
        d = F.shape[-1] if self.columns is None else len(self.columns)
        # One column would be stretched to all lengthscales; GPyTorch refuses it.
        fits = self.unit.shape[-1] in (1, d) and G.shape[-1] == F.shape[-1]
        if has_gradient or not fits or d > MOST_INPUTS:
            return None
        if self.columns is not None:
            F, G = F[..., self.columns], G[..., self.columns]
        F, G = F / self.unit, G / self.unit
        if F.shape[-1] == 1:  # the same to the bit, in less than half of the time
            return self.of_distance((F - G.mT).abs_())
        mode = "donot_use_mm_for_euclid_dist"
        return self.of_distance(torch.cdist(F, G, compute_mode=mode))


@dataclass(frozen=True, eq=False)
class StationarySum:
    r"""A sum of stationary covariances, such as the kernel of the default model.

    It reads the kernels once, and adds in place.

    Args:
        terms: The summands, each with its ``scale``.
    """

    terms: tuple[Stationary, ...]

    scale: ClassVar[float] = 1.0

    @property
    def variance(self) -> Tensor:
        r"""The variance at every point."""
        return reduce(add, (term.scale for term in self.terms))

    def __call__(self, F: Tensor, G: Tensor) -> Tensor | None:
        r"""The covariances of ``... x N x d`` points with ``... x M x d``, float64.

        ``None`` where one of the terms leaves them to GPyTorch.
        """
        found: Tensor | None = None
        for term in self.terms:
            if (own := term(F, G)) is None:
                return None
            if found is None:
                found = own.double().mul_(term.scale)
            else:
                found.add_(own, alpha=float(term.scale))
        return found


def stationary_form(kernel: Kernel) -> Stationary | StationarySum | None:
    r"""The stationary form of a kernel, or of a sum of kernels; else ``None``.

    Args:
        kernel: With its hyper-parameters fixed.
    """
    if type(kernel) is not AdditiveKernel or kernel.active_dims is not None:
        return Stationary.of(kernel)
    terms = [_term(part) for part in kernel.kernels]
    known = tuple(term for term in terms if term is not None)
    return StationarySum(known) if len(known) == len(terms) else None


def _term(kernel: Kernel) -> Stationary | None:
    r"""The stationary form of a summand, which may have its columns from its base."""
    if not _selects_once(kernel):
        return Stationary.of(kernel)
    base = kernel.base_kernel
    found = None if type(base) is ScaleKernel else Stationary.of(base)
    scale = kernel.outputscale.detach().double()
    return None if found is None else replace(found, scale=scale)


def covariances(kernel: Kernel, F: Tensor, G: Tensor) -> Tensor:
    r"""The covariances of ``... x N x d`` points with ``... x M x d``, float64.

    Those of usual kernels, and of their sums and products, by differences: of a
    lengthscale that a fit without priors has made tiny, 1e-8 say, products leave
    distances of 0.1 between equal points, another one in each call.

    Args:
        kernel: Any kernel, with its hyper-parameters fixed.
        F: Points.
        G: Other points.
    """
    found = stationary_form(kernel)
    if found is not None and (value := found(F, G)) is not None:
        return value.double().mul_(found.scale)
    of_parts = composed(kernel, lambda part: covariances(part, F, G))
    return kernel(F, G).to_dense().double() if of_parts is None else of_parts


def composed(kernel: Kernel, of: Callable[[Kernel], Tensor]) -> Tensor | None:
    r"""The value of a scaled kernel, a sum or a product, of those of its parts.

    Args:
        kernel: Any kernel; for one that is not composed the result is ``None``.
        of: From a part to its covariances, float64.
    """
    kind, columns = type(kernel), kernel.active_dims
    if len(kernel.batch_shape):
        return None
    if kind is ScaleKernel and (columns is None or _selects_once(kernel)):
        return kernel.outputscale.detach().double() * of(kernel.base_kernel)
    if kind in (AdditiveKernel, ProductKernel) and columns is None:
        return reduce(mul if kind is ProductKernel else add, map(of, kernel.kernels))
    return None


def _selects_once(kernel: Kernel) -> bool:
    r"""Whether a scaled kernel has columns, those of its base: it took them over."""
    if type(kernel) is not ScaleKernel or len(kernel.batch_shape):
        return False
    columns, own = kernel.active_dims, kernel.base_kernel.active_dims
    return columns is not None and own is not None and torch.equal(own, columns)


def _squared_exponential(r: Tensor) -> Tensor:
    return r.square_().neg_().exp_()


def _exponential(r: Tensor) -> Tensor:
    return r.neg_().exp_()


def _matern_3(r: Tensor) -> Tensor:
    decay = r.neg().exp_()
    return decay.addcmul_(decay, r)


def _matern_5(r: Tensor) -> Tensor:
    decay = r.neg().exp_()
    polynomial = r.addcmul_(r, r, value=1 / 3)
    return decay.addcmul_(decay, polynomial)


_MATERN = {0.5: _exponential, 1.5: _matern_3, 2.5: _matern_5}
