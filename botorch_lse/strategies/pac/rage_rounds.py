r"""What the rounds of RAGE and H-RAGE say."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.estimators import ArmStatistics, LeastSquares
from botorch_lse.strategies.rule import countable


@dataclass(frozen=True, eq=False)
class ItemEstimate:
    r"""The last estimate of every item while it was undecided.

    Args:
        mean: ``T`` estimates, units of ``y``; 0 before the first.
        half_width: ``T``, what they are off at most; infinite before the first and
            where the measurements determine differences of items only.
        sigma: ``T``, bounds of their standard deviations.
        probability_above: ``T`` probabilities of lying above the level, or of being the
            best, were the estimates Gaussian with these standard deviations.
    """

    mean: Tensor
    half_width: Tensor
    sigma: Tensor
    probability_above: Tensor

    @classmethod
    def unknown(cls, T: int) -> ItemEstimate:
        r"""Before any measurement."""
        zero = torch.zeros(T, dtype=torch.float64)
        return cls(zero, zero + torch.inf, zero + torch.inf, zero + 0.5)

    def updated(self, rows: Tensor, *parts: Tensor) -> ItemEstimate:
        r"""With new values, in the order of the fields, at ``rows``."""
        old = (self.mean, self.half_width, self.sigma, self.probability_above)
        new = (o.index_copy(0, rows, p) for o, p in zip(old, parts, strict=True))
        return ItemEstimate(*new)


@dataclass(frozen=True, eq=False)
class RageBelief:
    r"""Where the algorithm stands.

    Args:
        t: The algorithm's round, from 1; -1 and 0 are the two stages of the burn-in.
        side: ``T`` codes: the items' sides.
        estimate: The last estimates.
        data: The measurements of the current round.
        plan: ``N`` counts that complete it; ``None`` once the algorithm has ended.
        variances: ``N`` noise variances that designs and fits use; ``None`` before the
            burn-in is over.
        first: The measurements of the burn-in's first stage.
        n_burn_in: Measurements made during the burn-in.
    """

    t: int
    side: Tensor
    estimate: ItemEstimate
    data: ArmStatistics
    plan: Tensor | None = None
    variances: Tensor | None = None
    first: ArmStatistics | None = None
    n_burn_in: int = 0

    @property
    def active(self) -> Tensor:
        r"""The undecided items' row numbers."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @property
    def missing(self) -> Tensor:
        r"""``N`` counts that the current round still needs."""
        if self.plan is None:
            return torch.zeros_like(self.data.counts)
        return (self.plan - self.data.counts).clamp_min(0)

    def next_round(self) -> RageBelief:
        r"""The round after this one, without data or plan."""
        empty = ArmStatistics.empty(len(self.data.counts))
        return replace(self, t=self.t + 1, data=empty, plan=None)


def log_term(t: int, n_items: int, delta: float) -> float:
    r"""``log(8 t^2 |Z| / delta)``.

    Source:
        Weltz et al. (2023), Algorithm 2, line 8, and Algorithm 5, line 6.
    """
    return math.log(8 * t**2 * n_items / delta)


def counts_at_least(weights: Tensor, size: float) -> Tensor:
    r"""``ceil(size * weights)`` as int64, up to rounding of the product."""
    shares = countable(size) * weights
    return (shares * (1 - 1e-12)).ceil().long()


def eliminate_worse(side: Tensor, rows: Tensor, values: Tensor, width: float) -> Tensor:
    r"""The sides after one round of best-arm elimination; a single survivor is best.

    Args:
        side: ``T`` codes.
        rows: The active items.
        values: Their estimates, units of ``y``.
        width: An item goes if another one's estimate is better by more than this.

    Source:
        Weltz et al. (2023), Algorithm 2, line 13; the test is strict.
    """
    worse = values.max() - values > width
    side = side.index_fill(0, rows[worse], BELOW)
    left = rows[~worse]
    return side.index_fill(0, left, ABOVE) if left.numel() == 1 else side


def probability_best(Z: Tensor, fit: LeastSquares, scale: float) -> Tensor:
    r"""``P(z beats the best other item)``, judged by the estimated best two.

    Args:
        Z: ``T x d`` items.
        fit: Their estimate.
        scale: What the variances of the fit are multiplied by.
    """
    values = Z @ fit.theta
    best = int(values.argmax())
    others = torch.arange(len(values)) != best
    sigma = (scale * fit.squared_norms(Z[others] - Z[best])).sqrt()
    gaps = (values[others] - values[best]) / sigma.clamp_min(
        torch.finfo(sigma.dtype).tiny
    )
    chances = torch.full_like(values, 0.5)
    chances[others] = torch.special.ndtr(gaps)
    if len(values) > 1:
        chances[best] = 1 - chances[others].max()
    return chances
