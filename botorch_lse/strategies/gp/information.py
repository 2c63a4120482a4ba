r"""How much any few measurements can tell about the function."""

from __future__ import annotations

import math

from botorch_lse.pool_posterior import PoolPosterior


def information_bound(posterior: PoolPosterior, noise_var: float, n: int) -> float:
    r"""An upper bound of the information about ``f`` in any ``n`` measurements, nats.

    Greedy choice (the largest variance next) reaches at least ``1 - 1/e`` of the
    maximum, because information is monotone and submodular in the set.

    Args:
        posterior: On the pool.
        noise_var: The smallest noise variance of a measurement.
        n: The number of measurements.

    Source:
        Krause and Guestrin (2005); used by Srinivas et al. (2010), section 2.
    """
    if noise_var <= 0:
        return math.inf if n > 0 else 0.0
    information = 0.0
    for _ in range(n):
        row = int(posterior.variance.argmax())
        information += 0.5 * math.log1p(float(posterior.variance[row]) / noise_var)
        posterior = posterior.expect(row, noise_var)
    return information / (1.0 - math.exp(-1.0))
