r"""Values known only by a limit, as Gaussian values with noise of their own."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SWEEPS = 5
"""The number of passes over all limits."""
TELLS = 1e-6
"""The least precision of a value, in units of the belief's: less is rounding."""


def moment_matched(
    mean: Tensor, covariance: Tensor, noise_var: Tensor, limits: Tensor, sign: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Gaussian values that say of ``f`` nearly what limits of measured values say.

    A value ``y = f + e`` with ``e ~ N(0, s^2)`` lies below its limit ``c`` with
    probability ``Phi((c - f) / s)``. Each such factor becomes a Gaussian in ``f`` for
    which mean and variance of the belief are right while the other factors are Gaussian
    (expectation propagation). With one limit the moments are exact.

    Args:
        mean: ``k`` means of ``f`` where the limits are.
        covariance: ``k x k`` covariances.
        noise_var: ``k`` noise variances ``s^2``.
        limits: ``k`` limits ``c``.
        sign: ``k`` numbers: 1 where the value is below its limit, -1 above.

    Returns:
        The places of the limits that say something, their values, and the noise
        variances of these.

    Source:
        Rasmussen and Williams (2006), section 3.6, Eqs. (3.56) to (3.59) and (3.82).
        Deviation: the noise stands in the factor, in place of a probit of scale 1.
    """
    m, S = mean.double().clone(), covariance.double().clone()
    tau, nu = torch.zeros_like(m), torch.zeros_like(m)
    scale = S.diagonal().clone()
    for _ in range(SWEEPS):
        for i in range(len(m)):
            rest = 1 / S[i, i] - tau[i]  # the precision without this factor
            v = 1 / rest
            u = v * (m[i] / S[i, i] - nu[i])
            total = (v + noise_var[i]).sqrt()
            z = sign[i] * (limits[i] - u) / total
            density = -0.5 * (z.square() + math.log(2 * math.pi))
            ratio = torch.exp(density - torch.special.log_ndtr(z))
            gain = ratio * (z + ratio) * v / total.square()  # the variance shrinks so
            new = gain / (v * (1 - gain))
            new_nu = (u - sign[i] * v * ratio / total) / (v * (1 - gain)) - u / v
            step, shift = new - tau[i], new_nu - nu[i]
            column = S[:, i].clone()
            shrunk = 1 + step * column[i]
            m = m + column * (shift - step * m[i]) / shrunk
            S = S - torch.outer(column, column) * (step / shrunk)
            tau[i], nu[i] = new, new_nu
    told = (tau * scale > TELLS).nonzero().view(-1)
    return told, nu[told] / tau[told], 1 / tau[told]
