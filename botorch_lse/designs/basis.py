r"""Features with controlled error: pivoted Cholesky of a Gram matrix, and spans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

RANK_TOLERANCE = 1e-13
"""Squared residuals below this, relative to the largest squared norm, count as zero:
float64 cannot tell such a feature from a combination of the others."""
SPAN_TOLERANCE = 1e-10
"""Singular values below this, relative to the largest, count as zero."""


@dataclass(frozen=True, eq=False)
class Basis:
    r"""``Phi Phi'`` agrees with the Gram matrix up to ``residual`` on the diagonal.

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
        max_rank: At most so many columns.

    Source:
        Harbrecht, Peters and Schneider (2012), Algorithm 1. gpytorch's
        ``pivoted_cholesky`` stops on the trace, not on each row's residual, and has no
        tolerance per row.
    """
    N = diagonal.numel()
    limit = min(max_rank or N, N)
    slack = torch.as_tensor(tolerance, dtype=diagonal.dtype, device=diagonal.device)
    slack = slack.clamp_min(RANK_TOLERANCE * float(diagonal.max()))
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
        residual[i] = 0.0
        pivots.append(i)
    taken = torch.tensor(pivots, dtype=torch.long, device=diagonal.device)
    return Basis(rows[: len(pivots)].mT.contiguous(), taken, residual)


def spanning_rows(Phi: Tensor) -> Tensor:
    r"""Rows of ``Phi`` that span all others; their number is the rank.

    Args:
        Phi: ``N x m``.
    """
    return pivoted_cholesky(
        Phi.square().sum(dim=-1), lambda i: Phi @ Phi[i], 0.0, min(Phi.shape)
    ).pivots


def span_map(Phi: Tensor) -> Tensor:
    r"""``m x h`` so that ``Phi @ map`` has orthonormal columns, ``h`` the rank.

    The squared norms ``v' A^-1 v`` of ``gamma = 0`` do not change under it, and the
    information becomes as well conditioned as the weights.

    Source:
        Kone et al. (2025), Appendix H: the matrix ``B_S`` of left singular vectors.
    """
    size = Phi.square().sum(dim=0).max().sqrt().clamp_min(torch.finfo(Phi.dtype).tiny)
    _, sizes, Vh = torch.linalg.svd(Phi / size, full_matrices=False)
    kept = sizes > SPAN_TOLERANCE * sizes[0]
    return Vh[kept].mT / (sizes[kept] * size) * Phi.shape[0] ** 0.5
