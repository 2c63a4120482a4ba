r"""All squared norms of pairs under a given design, for small pools."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.designs.arguments import feature_problem, read_arguments
from botorch_lse.designs.exact_kernel import KernelInverse
from botorch_lse.designs.kernel_gram import Covariance
from botorch_lse.designs.targets import PairTargets, whiten


def pair_norms(
    X: Any,
    weights: Tensor,
    factor: float,
    *,
    gamma: float = 0.0,
    noise_var: Any = None,
    kernel: Kernel | Covariance | None = None,
) -> Tensor:
    r"""``|phi_i - factor phi_j|^2_{A(weights)^-1}`` for all ordered pairs: ``N x N``.

    Args:
        X: ``N x m`` features, or points with a ``kernel``.
        weights: ``N``, the design.
        factor: ``c``.
        gamma: The ridge.
        noise_var: ``N`` noise variances; default 1.
        kernel: The kernel, or ``None``; it needs a positive ``gamma``.
    """
    arguments = read_arguments(
        X, gamma=gamma, noise_var=noise_var, pairs_factor=factor, kernel=kernel
    )
    columns = weights.nonzero().squeeze(-1)
    rows = torch.arange(weights.numel(), device=weights.device)
    if kernel is not None:
        inverse = KernelInverse(arguments.kernel_problem(), columns, weights[columns])
        a = inverse.products(rows, rows, inverse.loadings(rows))
    else:
        problem = feature_problem(arguments, arguments.X, None)
        assert isinstance(problem.targets, PairTargets)
        L, _, _ = problem.factor(columns, weights[columns])
        Z = whiten(L, problem.targets.Y)
        a = Z @ Z.mT
    own = a.diagonal()
    return own.unsqueeze(-1) - 2 * factor * a + factor**2 * own
