r"""Kernels of several sources of values, such as coarse and fine simulations.

A point has the number of its source ``l`` as last column. Sources are sums over
independent processes ``g_j`` of the inputs alone, ``f_l(x) = sum_j A_lj g_j(x)``, so
that the covariance of ``f_l(x)`` and ``f_m(x')`` is ``sum_j A_lj A_mj k_j(x, x')`` (the
linear model of coregionalization).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import reduce
from operator import add
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import NormalPrior
from torch import Tensor
from torch.nn import Parameter

from botorch_lse._validation import check_shape, real_matrix

STEEPNESS = 10.0
"""The standard deviation of what says where and how fast a part fades.
With 10 it falls from nine tenths to one in 0.44 of a side."""


class Loadings(Kernel):
    r"""The covariance ``a_l a_m`` of two sources by their loadings on one process.

    Args:
        given: ``M`` loadings; ``nan`` where they are to be learnt. ``J x M``: on each
            of ``J`` processes with one kernel, so that it is the sum of ``J``
            covariances.
        column: Where the inputs have the number of the source.
    """

    given: Tensor
    free: Tensor | None

    def __init__(self, given: Any, column: int) -> None:
        super().__init__(active_dims=(column,))
        self.column = column
        self.register_buffer("given", torch.as_tensor(given, dtype=torch.float64))
        n_free = int(self.given.isnan().sum())
        free = Parameter(torch.zeros(n_free, dtype=torch.float64)) if n_free else None
        self.register_parameter("free", free)
        if free is not None:
            self.register_prior("free_prior", _normal(1.0), "free")

    @property
    def is_of_one(self) -> bool:
        r"""Whether one source has the process alone, with loading 1."""
        given = self.given
        is_known = self.free is None and given.ndim == 1
        return is_known and float(given.max()) == int(given.count_nonzero()) == 1

    @property
    def loadings(self) -> Tensor:
        r"""The loadings of each source (``M x J``)."""
        found = self.given
        if self.free is not None:
            found = found.masked_scatter(found.isnan(), self.free)
        return found.view(-1, found.shape[-1]).mT

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""Covariances of ``N x 1`` numbers with ``M x 1``, or the diagonal alone."""
        loadings = self.loadings
        one, other = (loadings[x.squeeze(-1).round().long()] for x in (x1, x2))
        return (one * other).sum(dim=-1) if diag else one @ other.mT


class Fading(Kernel):
    r"""The covariance ``s(x) s(x')`` by which a part fades along a direction.

    ``s(x) = 1 / (1 + exp(-w^T (x - 1/2) - b))`` in the unit cube, with ``w`` and ``b``
    to be learnt: near 1 on one side of a plane and near 0 on the other, or the same
    everywhere.

    Args:
        columns: The ``k`` columns along which it may fade.
    """

    free: Tensor

    def __init__(self, columns: Sequence[int]) -> None:
        super().__init__(active_dims=tuple(columns))
        free = torch.zeros(len(columns) + 1, dtype=torch.float64)
        self.register_parameter("free", Parameter(free))
        self.register_prior("free_prior", _normal(STEEPNESS), "free")

    def share(self, X: Tensor) -> Tensor:
        r"""The factor ``s`` at ``... x k`` points."""
        return ((X - 0.5) @ self.free[:-1] + self.free[-1]).sigmoid()

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""Covariances of ``N x k`` points with ``M x k``, or the diagonal alone."""
        one, other = self.share(x1), self.share(x2)
        return one * other if diag else one.unsqueeze(-1) * other.unsqueeze(-2)


def _normal(std: float) -> NormalPrior:
    zero = torch.zeros((), dtype=torch.float64)
    return NormalPrior(zero, zero + std)


def source_kernel(kernels: Sequence[Kernel], loadings: Any, d: int) -> Kernel:
    r"""A given kernel of sources: ``sum_j A_lj A_mj k_j(x, x')``, units of ``y``.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import Above, GaussianProcess, Strategy
        >>> pool = Pool(torch.linspace(0, 10, 21).unsqueeze(-1))
        >>> meshes = pool.at_sources(("coarse", "fine"), costs=(1, 50))
        >>> coarse = [1.0, 0.0]  # a process of its own
        >>> fine = [0.8, 0.6]  # 0.8 times the same, and another one
        >>> kernel = source_kernel([RBFKernel(), RBFKernel()], [coarse, fine], d=1)
        >>> model = GaussianProcess(kernel, noise_std=0.0)
        >>> strategy = Strategy(meshes, Above(0.5), model=model)

    Args:
        kernels: ``J`` kernels of the inputs, without the column of sources.
        loadings: ``M x J`` numbers ``A``.
        d: The number of inputs.

    Raises:
        BotorchTensorDimensionError: If ``loadings`` has not one column per kernel.
    """
    A = real_matrix(loadings, "loadings")
    wanted = f"to have a column for each of {len(kernels)} kernels"
    check_shape(A.shape[-1] == len(kernels), A, "loadings", wanted)
    own = [of_inputs(deepcopy(kernel).double(), d) for kernel in kernels]
    parts = zip(own, A.unbind(dim=-1), strict=True)
    return reduce(add, [kernel * Loadings(a, d) for kernel, a in parts])


def of_inputs(kernel: Kernel, d: int) -> Kernel:
    r"""The kernel, which looks at the first ``d`` columns if it looks at all."""
    if kernel.active_dims is None:
        kernel.active_dims = torch.arange(d)
    return kernel
