r"""The belief of Gaussian processes about items, now and once more is known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.goals.base import Differences
from botorch_lse.models import correlated
from botorch_lse.models.gaussian_process import PoolPosterior


@dataclass(frozen=True, eq=False)
class GaussianItems:
    r"""The belief of Gaussian processes about the items, as goals ask for it.

    Args:
        posteriors: For each output a posterior that has the items among its rows.
        rows: ``T`` rows of the posteriors that are the items.
        beta: The squared width of intervals of differences.
    """

    posteriors: tuple[PoolPosterior, ...]
    rows: Tensor
    beta: float

    @property
    def memory_budget(self) -> int:
        r"""The bytes for arrays over items and their pairs."""
        return self.posteriors[0].memory_budget

    @property
    def scale(self) -> list[float]:
        r"""The prior's largest standard deviation of each output."""
        return [posterior.scale for posterior in self.posteriors]

    @property
    def correlation(self) -> Tensor | None:
        r"""The correlations of the outputs (``T x m x m``); ``None``: independent."""
        return correlated.correlation_at(self.posteriors, self.rows)

    def variance(self, output: int, items: Tensor) -> Tensor:
        r"""The posterior variances of some items."""
        return self.posteriors[output].variance[self.rows[items]]

    def differences(self, output: int, rivals: Tensor, factor: float) -> Differences:
        r"""The spread and the interval of ``f(i) - factor f(rival)``."""
        variance = self.posteriors[output].variance_against(self.rows[rivals], factor)

        def at(items: Tensor) -> tuple[Tensor, Tensor]:
            sigma = variance(self.rows[items]).sqrt_()
            return sigma, self.beta**0.5 * sigma

        return at


@dataclass(frozen=True, eq=False)
class ItemsAhead(GaussianItems):
    r"""The belief once some rows are known exactly, wherever their values lie.

    Of a difference the variance ``v`` becomes ``w``, and its mean moves by at most
    ``sqrt(beta (v - w))`` if its interval holds. So nothing is decided by the new
    interval that is not decided by one of ``sqrt(beta) (sqrt(w) - sqrt(v - w))`` around
    the present mean.

    Args:
        before: The posteriors before these rows are known.
    """

    before: tuple[PoolPosterior, ...] = ()

    def differences(self, output: int, rivals: Tensor, factor: float) -> Differences:
        r"""The spread and the narrowest interval of ``f(i) - factor f(rival)``."""
        variance = self.before[output].variance_against(self.rows[rivals], factor)
        ahead = super().differences(output, rivals, factor)

        def at(items: Tensor) -> tuple[Tensor, Tensor]:
            sigma, width = ahead(items)
            moves = (variance(self.rows[items]) - sigma.square()).clamp_min_(0).sqrt_()
            return sigma, (width - self.beta**0.5 * moves).clamp_min_(0)

        return at


def moments(
    posterior: PoolPosterior, rows: Tensor, points: Tensor
) -> tuple[Tensor, Tensor]:
    r"""The mean and the standard deviation of each item (``T`` each).

    What was measured without noise is known. The least noise, which factors need, would
    leave it undecided for ever where it is close to a level.

    Args:
        posterior: That has the items among its rows.
        rows: ``T`` rows of it that are the items.
        points: ``T`` numbers, the same for items that are one point.
    """
    mean, sigma = posterior.mean, posterior.sigma
    if len(rows) != len(mean):
        mean, sigma = mean[rows], sigma[rows]
    if posterior.known is None:
        return mean, sigma
    own = posterior.known[rows]
    told = (~own.isnan()).nonzero().view(-1)
    of_point = own.new_full((int(points.max()) + 1,), torch.nan)
    of_point[points[told]] = own[told]
    known = of_point[points]
    is_known = ~known.isnan()
    return torch.where(is_known, known, mean), sigma.masked_fill(is_known, 0.0)
