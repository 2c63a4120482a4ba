r"""Reductions of the variances of target points by observations.

Notation: ``s(v)^2`` is the posterior variance of target ``v``, ``g_X(v)`` the gain,
what observations at ``X`` take off it, whatever their values. With ``beta`` and ``eta``

    sum_v max(beta s(v)^2, eta^2) - sum_v max(beta (s(v)^2 - g_X(v)), eta^2)
        = sum_v min(beta g_X(v), excess(v)),  excess(v) = max(beta s(v)^2 - eta^2, 0)

because reductions below the width ``eta`` that is wanted do not count.
"""

from __future__ import annotations

import torch
from torch import Tensor


def single_gain(
    covariance: Tensor, observed_var: Tensor, out: Tensor | None = None
) -> Tensor:
    r"""The reduction of each target's variance by one observation.

    ``k(x, v)^2 / (s(x)^2 + noise(x))`` for candidate ``x`` and target ``v``.

    Args:
        covariance: ``... x C x T`` posterior covariances of candidates and targets.
        observed_var: ``... x C`` variances of an observation at each candidate, noise
            of at least ``least_noise`` included.
        out: Where to write the result, perhaps ``covariance`` itself: fresh memory
            costs more than the arithmetic. Default a new tensor.

    Returns:
        ``... x C x T``, units of ``y`` squared.

    Source:
        Bogunovic et al. (2016), Eq. (18), with the candidate's noise, erratum 1
        (papers/bogunovic2016/errata.md).
    """
    squared = torch.square(covariance, out=out)
    return torch.div(squared, observed_var.unsqueeze(-1), out=out)


def joint_gain(L: Tensor, covariance: Tensor) -> Tensor:
    r"""The reduction of each target's variance by a batch: ``c(v)' (L L')^-1 c(v)``.

    Args:
        L: ``... x q x q``, the factor of the batch's covariance plus noise.
        covariance: ``... x q x T`` posterior covariances of batch and targets.

    Returns:
        ``... x T``, units of ``y`` squared.
    """
    if L.shape[-1] == 1:  # a batched solve of size one is several times slower
        return (covariance / L).square().squeeze(-2)
    W = torch.linalg.solve_triangular(L, covariance, upper=False)
    return W.square().sum(dim=-2)


def excess(
    variance: Tensor, beta: float | Tensor = 1.0, eta: float | Tensor = 0.0
) -> Tensor:
    r"""The excess ``max(beta s(v)^2 - eta^2, 0)``: what is left to remove in an epoch.

    Source:
        Bogunovic et al. (2016), Eq. (24), times ``beta``.
    """
    return (beta * variance - eta**2).clamp_min(0.0)
