r"""The least noise of a measurement: the one floor of everything that is divided by.

A measurement divides by the variance that it has, ``k(x, x)`` given the data plus its
noise. Without noise, and where the row is known already, that variance is what rounding
left of it: of any size and any sign, another one on each processor. Every variance of
noise is therefore raised to a share of the process's own variance that is far above
rounding, and far below what anybody measures. Exact measurements (simulators) are such
measurements; they leave the standard deviation ``1e-5`` of the prior's.
"""

from __future__ import annotations

import torch
from torch import Tensor

JITTER = 1e-10
"""The share in float64. A Cholesky factor of ``n`` rows is off by about ``n 1e-16`` of
the prior variance, so that 10,000 measurements keep two digits of what this leaves."""
JITTER_SINGLE = 1e-5
"""The share where the kernel is evaluated in float32, for 100 measurements likewise."""
ROUNDING = 1e-14
"""What differences of variances are off, as a share of the prior variance."""
TOLD = (
    "Measurements without noise count as exact, up to a noise variance of "
    f"{JITTER:g} of the prior's ({JITTER_SINGLE:g} in float32)."
)
"""What an answer says that rests on such measurements."""


def least_noise(prior_variance: Tensor, dtype: torch.dtype) -> Tensor:
    r"""The least noise variance of a measurement, units of ``y`` squared.

    Args:
        prior_variance: ``... x N`` variances of the function before any measurement.
        dtype: The precision in which the kernel is evaluated.

    Returns:
        ``...``, relative to the largest of them; 0 if there are none.
    """
    share = JITTER if dtype == torch.float64 else JITTER_SINGLE
    variance = torch.nn.functional.pad(prior_variance.detach().double(), (0, 1))
    return share * variance.amax(dim=-1)
