r"""MILK on a Gaussian process: a level relative to the unknown maximum, by pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.confidence.classify import BELOW, UNDECIDED, Sides
from botorch_lse.confidence.regions import Regions
from botorch_lse.confidence.schedules import BetaSchedule, UnionBeta
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.posterior import row_blocks
from botorch_lse.strategies.elimination import eliminate_pairs
from botorch_lse.strategies.forecast import squared_gaps
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.design import DesignStrategy
from botorch_lse.strategies.planning import PlanningProblem, pair_targets


@dataclass(frozen=True, eq=False)
class PairSides(Sides):
    r"""The sets of MILK.

    Args:
        pairs: ``N x N`` bools, the ordered pairs still open; else see ``Sides``.
    """

    pairs: Tensor | None = None

    def reopened(self, rows: Tensor) -> PairSides:
        r"""The same with ``rows`` undecided and all their pairs open."""
        assert self.pairs is not None
        found = super().reopened(rows)
        partners = rows & (found.side != BELOW).unsqueeze(-1)
        pairs = self.pairs | partners | rows.unsqueeze(-1)
        return PairSides(found.side, found.candidates, pairs=pairs)


@dataclass(frozen=True, eq=False)
class MILKStrategy(DesignStrategy):
    r"""MILK on a Gaussian process: a batch makes the worst variance of the open pairs
    ``f(x) - omega f(x')`` small.

    ``x`` is above once every pair ``(x, x')`` is certain, below once one is refuted; a
    row below leaves all pairs. The unknown maximum is never estimated. Pairs are judged
    by their own posterior intervals, not intersected; what is decided stays decided.

    Args:
        beta: ``None``: Theorem 1 of Gotovos et al. (2013) with its union bound taken
            over all ``N^2`` ordered pairs. Other arguments: see ``DesignStrategy``.

    Raises:
        ValueError: Also if the pool has more pairs than the memory budget.

    Source:
        Mason et al. (2022), Algorithm 2 in the form of section 5 and Appendix F.1; the
        posterior in place of RIPS as for MELK. ``epsilon``: a pair is certain if its
        lower end plus ``epsilon`` is positive, tested first.
    """

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = 8 * len(self.pool) ** 2
        if needed > self.memory_budget:
            raise ValueError(
                f"Expected a `pool` whose pairs fit `memory_budget` = "
                f"{self.memory_budget} bytes, but {len(self.pool)} rows need {needed}. "
                "Give a larger budget or fewer rows, or use `ImplicitLSEStrategy`."
            )

    def _default_widths(self) -> BetaSchedule:
        return UnionBeta(len(self.pool) ** 2, self.delta)

    @property
    def _theorem(self) -> str:
        return "Theorem 1, its union bound over all ordered pairs"

    def _start_sides(self) -> Sides:
        N = len(self.pool)
        start = Sides.start(N)
        pairs = torch.ones(N, N, dtype=torch.bool)
        return PairSides(start.side, start.candidates, pairs=pairs)

    def _update_sides(
        self, sides: Sides, posterior: PoolPosterior, regions: Regions, t: int
    ) -> Sides:
        assert isinstance(sides, PairSides)
        assert sides.pairs is not None
        root_beta = self._beta(t, posterior) ** 0.5
        omega = float(self.omega or 0.0)
        certain, refuted, outdone = (torch.zeros_like(sides.pairs) for _ in range(3))
        mean, every = posterior.mean, torch.arange(len(self.pool))
        live = sides.pairs.any(dim=1).nonzero().view(-1)
        for block in row_blocks(live.numel(), len(self.pool), self.memory_budget):
            i = live[block]
            centre = mean[i].unsqueeze(-1) - omega * mean
            half = root_beta * posterior.variance_between(i, every, omega).sqrt()
            certain[i] = centre - half + self.epsilon > 0
            refuted[i] = (centre + half - self.epsilon <= 0) & ~certain[i]
            outdone[i] = centre + half <= 0
        pairs, side = eliminate_pairs(
            sides.pairs, sides.side, certain, refuted, outdone
        )
        return PairSides(side, side == UNDECIDED, pairs=pairs)

    def _targets(self, belief: Belief) -> PlanningProblem:
        assert isinstance(belief.sides, PairSides)
        assert belief.sides.pairs is not None
        return pair_targets(belief.sides.pairs, float(self.omega or 0.0))

    def _gaps(self, belief: Belief) -> PlanningProblem:
        targets, omega = self._targets(belief), float(self.omega or 0.0)
        rows = targets.rows
        mean, variance = belief.posterior.mean[rows], belief.posterior.variance[rows]
        difference = mean.unsqueeze(-1) - omega * mean
        spread = variance.unsqueeze(-1) + omega**2 * variance
        weights = 1 / squared_gaps(difference, spread, self.epsilon)
        if targets.weights is not None:
            weights = weights * targets.weights
        # A row that seems to be below needs one partner only: the likely maximum.
        best = int(mean.argmax())
        below = mean <= omega * mean[best]
        weights[below] *= (torch.arange(len(rows)) == best).double()
        return PlanningProblem(rows, weights, omega)
