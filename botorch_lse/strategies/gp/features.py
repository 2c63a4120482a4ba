r"""Features whose inner products are the posterior covariances on a pool."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse.designs.basis import pivoted_cholesky
from botorch_lse.pool_posterior import PoolPosterior

RESIDUAL = 0.05
"""The variance that features may miss, as a share of the largest one of a target. A
large batch leaves less variance and needs better features: ``0.5 / size``."""
RANK = 150
"""Features at most, or twice the batch if that is more: a batch tells no more
directions apart than it has observations, and a design's time grows with their square.
Twice as many changed neither the worst variance nor the F1 score."""


def features_of(
    posterior: PoolPosterior, largest: float, size: int, prior: bool = False
) -> Tensor:
    r"""``N x m`` features whose inner products are the posterior covariances, nearly.

    Args:
        posterior: The posterior on the pool.
        largest: The largest variance of a target, which sets the accuracy.
        size: The number of observations to place.
        prior: Take the covariances before any observation.
    """
    if prior:
        diagonal = posterior.prior_variance

        def column(i: int) -> Tensor:
            one = torch.tensor([i])
            return posterior.prior_covariance(one, slice(None)).squeeze(0)
    else:
        diagonal = posterior.variance

        def column(i: int) -> Tensor:
            return posterior.covariance_with(torch.tensor([i])).squeeze(0)

    allowed = min(RESIDUAL, 0.5 / size) * largest
    return pivoted_cholesky(diagonal, column, allowed, max(RANK, 2 * size)).Phi
