r"""The posterior path: every past posterior from one triangular factor.

Notation: ``n`` observations with prior means ``m``, covariance ``K`` and noise
variances ``s``; ``L L' = K + diag(s)``; ``k(x)`` the prior covariances between the
observations and ``x``. With ``V = L^-1 k(x)`` and ``a = L^-1 (y - m)`` the posterior
after the first ``t`` observations has

    mean      m(x) + sum_{i <= t} a_i V_i(x)
    variance  k(x, x) - sum_{i <= t} V_i(x)^2

because the leading block of ``L`` is the factor of the leading block of ``K``.
Everything is batch-shaped: leading dimensions are those of an ensemble.
"""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_lse.functional.jitter import JITTER

STEPS = (0.0, 1.0, 1e2, 1e4)
"""Tried in turn, times the least noise, until the factor exists: covariances of nearly
equal points with hardly any noise are singular in float64."""


class JitterWarning(BotorchWarning):
    r"""Noise was added to a covariance to factorise it; answers change a little."""


def factorize(
    covariance: Tensor, noise_var: Tensor, least: Tensor | None = None
) -> Tensor:
    r"""The lower Cholesky factor of ``covariance + diag(noise_var)``.

    Args:
        covariance: ``... x n x n``.
        noise_var: ``... x n``.
        least: ``...``, see ``least_noise``: smaller noise variances are raised to it.
            ``None`` where no prior is known: they stay, and a jitter is a share of the
            mean of the diagonal.

    Returns:
        ``... x n x n``, float64.

    Raises:
        ValueError: If even the largest jitter does not help.
    """
    noise_var = noise_var.double()
    if least is not None:
        noise_var = torch.maximum(noise_var, least.unsqueeze(-1))
    noisy = covariance.double() + torch.diag_embed(noise_var)
    if least is None:
        least = JITTER * noisy.diagonal(dim1=-2, dim2=-1).mean(dim=-1)
    eye = torch.eye(noisy.shape[-1], dtype=noisy.dtype, device=noisy.device)
    for step in STEPS:
        L, info = torch.linalg.cholesky_ex(noisy + step * least[..., None, None] * eye)
        if not bool(info.any()):
            if step > 0:
                warnings.warn(
                    f"The covariance of {noisy.shape[-1]} observations is singular; "
                    f"{step * float(least.max()):g} was added to the noise variance. "
                    "Give a larger one to avoid this.",
                    JitterWarning,
                    stacklevel=2,
                )
            return L
    raise ValueError(
        "Expected the prior covariance of the observations plus `noise_var` to be "
        "positive definite, but its Cholesky factor does not exist even with a jitter "
        f"of {STEPS[-1] * float(least.max()):g}. Check the kernel and give a positive "
        "noise variance."
    )


def path_rows(L: Tensor, cross: Tensor) -> Tensor:
    r"""``V = L^-1 cross``: one row per observation, one column per point.

    Args:
        L: ``... x n x n`` lower factor.
        cross: ``... x n x N`` prior covariances.
    """
    return torch.linalg.solve_triangular(L, cross.to(L.dtype), upper=False)


def extended(L: Tensor, cross: Tensor, block: Tensor) -> Tensor:
    r"""The factor of a covariance with ``q`` more rows and columns.

    Args:
        L: ``... x n x n``, the factor so far.
        cross: ``... x q x n``, the path rows at the new points, transposed.
        block: ``... x q x q``, the factor of what is left of their covariance.
    """
    n, q = cross.shape[-1], cross.shape[-2]
    full = L.new_zeros(*L.shape[:-2], n + q, n + q)
    full[..., :n, :n], full[..., n:, :n], full[..., n:, n:] = L, cross, block
    return full


def path_moments(
    V: Tensor, a: Tensor, mean: Tensor, variance: Tensor, ends: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Posterior means and variances after the first ``ends[r]`` observations.

    Args:
        V: ``... x n x N`` from ``path_rows``.
        a: ``... x n``, the whitened residuals ``L^-1 (y - m)``.
        mean: ``... x N`` prior means.
        variance: ``... x N`` prior variances.
        ends: ``R`` numbers from 0 (the prior) to ``n``, not decreasing.

    Returns:
        Two tensors, ``R x ... x N``; variances are at least 0.

    Source:
        Rasmussen and Williams (2006), Eq. (2.25), (2.26), in the factored form of
        Algorithm 2.1; the prefix property is that of the Cholesky factor.
    """
    zero = V.new_zeros(*V.shape[:-2], 1, V.shape[-1])
    gain = torch.cat((zero, (V * a.unsqueeze(-1)).cumsum(dim=-2)), dim=-2)
    loss = torch.cat((zero, V.square().cumsum(dim=-2)), dim=-2)
    means = mean.unsqueeze(-2) + gain.index_select(-2, ends)
    variances = (variance.unsqueeze(-2) - loss.index_select(-2, ends)).clamp_min(0.0)
    return means.movedim(-2, 0), variances.movedim(-2, 0)


def round_ends(rounds: Tensor) -> Tensor:
    r"""Where each round ends: 0, then the number of observations up to each round.

    Args:
        rounds: ``n`` round numbers, not decreasing.

    Returns:
        ``R + 1`` counts for ``R`` different rounds, the first 0, the last ``n``.
    """
    _, counts = torch.unique_consecutive(rounds, return_counts=True)
    return torch.cat((counts.new_zeros(1), counts.cumsum(dim=0)))
