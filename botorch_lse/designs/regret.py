r"""Rounding by regret minimisation, with a guarantee that is checked."""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.designs.basis import span_map
from botorch_lse.designs.certificate import information
from botorch_lse.designs.design import DesignWarning

LARGEST_KAPPA = 1 / 3


def kappa_of(n: int, rank: int) -> float:
    r"""The smallest ``kappa`` with ``n >= 5 rank / kappa^2``, at most 1/3."""
    return min(LARGEST_KAPPA, (5 * rank / n) ** 0.5)


def regret_counts(
    weights: Tensor, n: int, X: Tensor, kappa: float | None = None
) -> Tensor:
    r"""Follow the regularised leader with the ``l_1/2`` regulariser.

    In coordinates where ``n sum lam x x' = I``, step ``t`` has the action
    ``A = (c I + alpha Z)^-2`` with ``trace A = 1`` and ``Z`` the sum of ``x x'`` so
    far, ``alpha = sqrt(h) / kappa``, and takes the point with the largest
    ``x'Ax / (1 + alpha x' A^1/2 x)``. For ``n >= 5 h / kappa^2`` the worst squared norm
    is at most ``1 + 6 kappa`` times that of the weights, whatever the targets.

    Args:
        weights: ``N``, on the simplex.
        n: The number of observations.
        X: ``N x m`` features.
        kappa: The accuracy, in (0, 1/3], or ``None``: the smallest ``n`` allows.

    Source:
        Allen-Zhu, Li, Singh and Wang (2017), section 3; Kone et al. (2025), Theorem 4.
        Choice: only the support of ``weights`` is played, to which the averaging
        argument of the proof applies.
    """
    if X.shape[0] != weights.numel():
        raise BotorchTensorDimensionError(
            f"Expected `X` with one row per weight ({weights.numel()}), but got shape "
            f"{tuple(X.shape)}."
        )
    support = weights.nonzero().squeeze(-1)
    share, Phi = weights[support], X[support]
    Phi = Phi @ span_map(Phi)
    whitener = torch.linalg.cholesky(n * information(Phi, share, 0.0))
    x = torch.linalg.solve_triangular(whitener, Phi.mT, upper=False).mT
    h = x.shape[1]
    if kappa is None:
        kappa = kappa_of(n, h)
    kappa = in_interval(kappa, "kappa", 0.0, LARGEST_KAPPA, closed_high=True)
    alpha = h**0.5 / kappa
    counts = torch.zeros_like(support)
    Z = torch.zeros(h, h, dtype=x.dtype, device=x.device)
    for _ in range(n):
        values, vectors = torch.linalg.eigh(Z)
        root = 1 / (_shift(alpha * values) + alpha * values)
        rotated = (x @ vectors).square()
        score = (rotated @ root.square()) / (1 + alpha * (rotated @ root))
        i = int(score.argmax())
        counts[i] += 1
        Z = Z + torch.outer(x[i], x[i])
    _check(float(torch.linalg.eigvalsh(Z)[0]), kappa, n, h)
    full = torch.zeros_like(weights, dtype=torch.long)
    full[support] = counts
    return full


def _shift(values: Tensor) -> Tensor:
    r"""``c`` with ``sum (c + values)^-2 = 1``, by Newton's method from the left.

    The sum is convex and falls in ``c``; at ``c = 1 - min(values)`` it is at least 1,
    and from there Newton's iterates rise towards the root.
    """
    c = 1 - values.min()
    for _ in range(60):
        inverse = 1 / (c + values)
        excess = inverse.square().sum() - 1
        step = excess / (2 * inverse.pow(3).sum())
        c = c + step
        if float(step) <= 1e-13 * max(1.0, abs(float(c))):
            break
    return c


def _check(smallest: float, kappa: float, n: int, rank: int) -> None:
    r"""The theorem's inequality in its matrix form, where it applies."""
    if n >= 5 * rank / kappa**2 * (1 - 1e-12) and smallest < 1 / (1 + 6 * kappa):
        warnings.warn(
            f"The rounded design misses its guarantee: its information is "
            f"{smallest:.3g} of the weights', below 1 / (1 + 6 kappa) = "
            f"{1 / (1 + 6 * kappa):.3g}. "
            "The features may be too ill-conditioned; use another `method`.",
            DesignWarning,
            stacklevel=3,
        )
