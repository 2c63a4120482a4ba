r"""Multiplicative sweeps: a rough design, fast, from which Newton's method starts."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse.designs.certificate import information
from botorch_lse.designs.targets import whiten

D_SWEEPS = 40
SADDLE_SWEEPS = 30
BOLDNESS = 3.0
"""The step of the target weights' exponential update, found best by trial."""
TRACE = 1e-3


def d_sweeps(Phi: Tensor, gamma: float, weights: Tensor) -> Tensor:
    r"""``lam <- lam g / sum(lam g)``: towards the D-design, nearly the G-design.

    Args:
        Phi: ``N x m``.
        gamma: The ridge.
        weights: ``N``, positive, where to start.

    Source:
        Silvey, Titterington and Torsney (1978).
    """
    for _ in range(D_SWEEPS):
        L = torch.linalg.cholesky(information(Phi, weights, gamma))
        weights = weights * whiten(L, Phi).square().sum(dim=-1)
        weights = weights / weights.sum()
    return weights


def saddle_sweeps(
    Phi: Tensor, V: Tensor, gamma: float, weights: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Alternate ``w <- w exp(3 g / (sqrt(t) F))`` and ``lam <- lam sqrt(s)``.

    The second is the multiplicative algorithm of the ``w``-averaged (A- or L-) design.

    Args:
        Phi: ``N x m``.
        V: ``T x m`` targets.
        gamma: The ridge.
        weights: ``N``, positive, where to start.

    Returns:
        The design and the target weights.
    """
    w = torch.full_like(V[:, 0], 1 / V.shape[0])
    for t in range(1, SADDLE_SWEEPS + 1):
        L = torch.linalg.cholesky(information(Phi, weights, gamma))
        Y = whiten(L, V)
        g = Y.square().sum(dim=-1)
        w = torch.softmax(w.log() + BOLDNESS / t**0.5 * g / g.max(), dim=0)
        C = Y.mT @ (w.unsqueeze(-1) * Y)
        Z = whiten(L, Phi)
        s = ((Z @ C) * Z).sum(dim=-1).clamp_min(0.0)
        if float(s.max()) <= 0:
            break  # No row tells anything about the targets: any design is optimal.
        weights = weights * s.sqrt()
        # Without a ridge a design may drift to fewer points than span: keep a trace.
        weights = (weights / weights.sum()).clamp_min(TRACE / weights.numel())
    return weights / weights.sum(), w
