r"""What a strategy on a Gaussian process knows after the complete rounds."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from botorch_lse.confidence.classify import Sides
from botorch_lse.confidence.regions import Regions
from botorch_lse.pool_posterior import PoolPosterior


@dataclass(frozen=True, eq=False)
class Belief:
    r"""What the complete rounds say.

    Args:
        posterior: Posterior on the pool.
        regions: ``C_t``, or the last interval where a strategy does not intersect or
            learns its model.
        sides: The sets of the classification.
        new_noise: ``N`` noise variances of new observations, units of the posterior.
        n_intervals: How many intervals the regions hold; the next is number + 1.
        fitted_rounds: Rounds in the data at the last fit; -1 before any.
        n_rounds: Complete rounds with data.
        one_sided: ``"above"`` or ``"below"`` while every value lies on that side of the
            level, so that a learnt model decides nothing.
    """

    posterior: PoolPosterior
    regions: Regions
    sides: Sides
    new_noise: Tensor
    n_intervals: int = 1
    fitted_rounds: int = -1
    n_rounds: int = 0
    one_sided: str | None = None
