r"""A proven interval around the optimal value, from any design and target weights.

The problem is ``F* = min over lam in the simplex of max_v v' A(lam)^-1 v`` with
``A(lam) = sum_x lam_x phi_x phi_x' + gamma I``. For every design ``lam`` and every
``w`` on the simplex of the targets, with ``f = sum_v w_v v' A^-1 v`` and
``s_x = sum_v w_v (phi_x' A^-1 v)^2``,

    max_v v' A^-1 v  >=  F*  >=  f^2 / (f + max_x s_x - sum_x lam_x s_x).

Proof of the right side. The maximum over the targets is at least the ``w``-average.
For any vectors ``u_v`` and any design, ``v' A^-1 v >= 2 u_v' v - u_v' A u_v``, which is
linear in the design and hence, averaged and minimised over designs, at least
``2 sum w u'v - gamma sum w |u|^2 - max_x sum w (phi_x' u)^2``. Put
``u_v = c A(lam)^-1 v`` and use ``f = sum_x lam_x s_x + gamma sum w |A^-1 v|^2``: the
bound is ``2 c f - c^2 (f + max_x s_x - sum_x lam_x s_x)``; the best ``c`` gives it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 2**19
"""The entries of one block of a Gram matrix or of whitened features (4 MB)."""


@dataclass(frozen=True)
class Certificate:
    r"""The certificate ``upper >= F* >= lower``, both squared norms.

    Args:
        upper: The design's own value, the largest squared norm.
        lower: A proven lower bound of the value of every design.
    """

    upper: float
    lower: float

    @property
    def gap(self) -> float:
        r"""The relative gap ``upper / lower - 1``; 0 where both are 0."""
        return relative_gap(self.upper, self.lower)


def relative_gap(upper: float, lower: float) -> float:
    r"""The gap ``upper / lower - 1``; 0 where both are 0, infinite without a proof."""
    if upper <= 0:
        return 0.0
    proves = 0 < lower < math.inf and upper < math.inf
    return max(upper / lower - 1.0, 0.0) if proves else math.inf


def lower_bound(f: float, largest: float, average: float) -> float:
    r"""The bound ``f^2 / (f + largest - average)``, the right side of the certificate.

    Args:
        f: ``sum_v w_v g_v``.
        largest: ``max_x s_x``.
        average: ``sum_x lam_x s_x``, at most ``largest``.
    """
    return f * f / (f + max(largest - average, 0.0)) if f > 0 else 0.0


def information(Phi: Tensor, weights: Tensor, gamma: float) -> Tensor:
    r"""The information ``A = sum_x lam_x phi_x phi_x' + gamma I``: ``m x m``."""
    A = Phi.mT @ (weights.unsqueeze(-1) * Phi)
    return A + gamma * torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)


def whiten(L: Tensor, rows: Tensor) -> Tensor:
    r"""The rows ``Z = rows L^-T``: ``Z Z'`` are inner products in ``(L L')^-1``."""
    return torch.linalg.solve_triangular(L.mT, rows, upper=True, left=False)


def row_blocks(n_rows: int, width: int) -> list[slice]:
    r"""Slices of rows that keep ``rows x width`` entries within ``BLOCK``."""
    step = max(1, BLOCK // max(width, 1))
    return [slice(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]


def sensitivities(Phi: Tensor, L: Tensor, V: Tensor, w: Tensor) -> Tensor:
    r"""The sums ``sum_v w_v (phi_x' A^-1 v)^2`` of all rows ``x``; ``A = L L'``."""
    Y = whiten(L, V)
    scaled = (w.sqrt().unsqueeze(-1) * Y).mT
    U = torch.linalg.solve_triangular(L.mT, scaled, upper=True)  # m x t
    # The same sums in two orders: the first is cheaper for many targets.
    if U.shape[1] > U.shape[0]:
        C = U @ U.mT
        blocks = row_blocks(*Phi.shape)
        return torch.cat([((Phi[b] @ C) * Phi[b]).sum(dim=-1) for b in blocks])
    blocks = row_blocks(Phi.shape[0], U.shape[1])
    return torch.cat([(Phi[b] @ U).square().sum(dim=-1) for b in blocks])


def certify(
    Phi: Tensor, V: Tensor, weights: Tensor, target_weights: Tensor, gamma: float = 0.0
) -> Certificate:
    r"""The interval of the module's head, for explicit features and targets.

    Args:
        Phi: ``N x m`` features of the design points.
        V: ``T x m`` targets.
        weights: ``N``, the design, on the simplex.
        target_weights: ``T``, on the simplex; any is valid, good ones are tight.
        gamma: The ridge, at least 0; for 0 the information must be regular.

    Source:
        Own, proof above; for ``gamma = 0`` and ``V = Phi`` the upper end has the
        minimum ``rank(Phi)`` (Kiefer and Wolfowitz 1960).
    """
    L = torch.linalg.cholesky(information(Phi, weights, gamma))
    g = whiten(L, V).square().sum(dim=-1)
    s = sensitivities(Phi, L, V, target_weights)
    f = float(target_weights @ g)
    return Certificate(
        float(g.max()), lower_bound(f, float(s.max()), float(weights @ s))
    )
