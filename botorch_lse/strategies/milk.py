r"""MILK: level sets relative to the unknown maximum, through pairs of rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED, Sides, ratio
from botorch_lse.confidence.regions import Regions
from botorch_lse.confidence.schedules import BetaSchedule, UnionBeta
from botorch_lse.designs import Design, optimal_design
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.posterior import row_blocks
from botorch_lse.problem import Observations
from botorch_lse.strategies.design import DesignStrategy, PlanningProblem
from botorch_lse.strategies.forecast import squared_gaps
from botorch_lse.strategies.gp import Belief
from botorch_lse.strategies.pac import DESIGN_TOLERANCE, PACStrategy
from botorch_lse.strategies.pac_rounds import PACBelief


def eliminate_pairs(
    active: Tensor, side: Tensor, certain: Tensor, refuted: Tensor
) -> tuple[Tensor, Tensor]:
    r"""The active pairs and the sides after one round of MILK.

    A row with a refuted pair goes to ``B`` and leaves all pairs, as first and as second
    member. Of the others the certain pairs leave; a row without a pair as first member
    goes to ``G``.

    Args:
        active: ``N x N`` bools, the ordered pairs ``A_t``.
        side: ``N`` codes.
        certain: ``N x N`` bools: ``f(x) > omega f(x')`` is certain.
        refuted: ``N x N`` bools: its contrary is.

    Source:
        Mason et al. (2022), Algorithm 2, lines 9 to 17, with errata 3: the pairs of
        ``A_t`` are examined at once, line 16 tests ``A_{t+1}`` for rows not in ``B``.
    """
    bad = (active & refuted).any(dim=1)
    stays = ~bad
    left = active & ~certain & stays.unsqueeze(-1) & stays
    side = torch.where(bad, BELOW, side)
    good = (side != BELOW) & ~left.any(dim=1)
    return left, torch.where(good, ABOVE, side).to(torch.int8)


@dataclass(frozen=True, eq=False)
class PairSides(Sides):
    r"""The sets of MILK.

    Args:
        pairs: ``N x N`` bools, the ordered pairs still open; else see ``Sides``.
    """

    pairs: Tensor | None = None


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
        root_beta = self.widths(t) ** 0.5
        omega = float(self.omega or 0.0)
        certain, refuted = torch.zeros_like(sides.pairs), torch.zeros_like(sides.pairs)
        mean, variance = posterior.mean, posterior.variance
        live = sides.pairs.any(dim=1).nonzero().view(-1)
        for block in row_blocks(live.numel(), len(self.pool), self.memory_budget):
            i = live[block]
            centre = mean[i].unsqueeze(-1) - omega * mean
            cross = posterior.covariance_with(i)
            spread = variance[i].unsqueeze(-1) + omega**2 * variance - 2 * omega * cross
            half = root_beta * spread.clamp_min(0.0).sqrt()
            certain[i] = centre - half + self.epsilon > 0
            refuted[i] = (centre + half - self.epsilon <= 0) & ~certain[i]
        pairs, side = eliminate_pairs(sides.pairs, sides.side, certain, refuted)
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


def pair_targets(pairs: Tensor, omega: float) -> PlanningProblem:
    r"""The open pairs among the rows that occur in them."""
    rows = (pairs.any(dim=0) | pairs.any(dim=1)).nonzero().view(-1)
    inner = pairs[rows][:, rows]
    return PlanningProblem(rows, None if bool(inner.all()) else inner.double(), omega)


@dataclass(frozen=True, eq=False)
class MILKPACStrategy(PACStrategy):
    r"""MILK to the letter: a guarantee without a prior, in large rounds.

    Arguments: ``omega``, the level as a share of the maximum, in (0, 1) (the paper's
    epsilon is ``1 - omega``); else see ``PACStrategy``. The maximum must not be
    negative.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = MILKPACStrategy(pool, omega=0.5, bound=1.0, noise_std=1.0)
        >>> strategy.init().round
        0

    Source:
        Mason et al. (2022), Algorithm 2, with errata 1 to 5.
    """

    _: KW_ONLY
    omega: float

    theorem: ClassVar[str] = "Theorem 4.3"

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio(self.omega)

    def _everything(self) -> Tensor:
        N = len(self.pool)
        return torch.ones(N, N, dtype=torch.bool)

    def _design(self, belief: PACBelief) -> Design:
        targets = pair_targets(belief.active, self.omega)
        return optimal_design(
            self.Phi,
            targets.rows,
            gamma=self.gamma,
            target_weights=targets.weights,
            pairs_factor=self.omega,
            tol=DESIGN_TOLERANCE,
        )

    def _eliminate(self, belief: PACBelief, new: Observations) -> PACBelief:
        every = torch.arange(len(self.pool))
        i, j = belief.active.nonzero().unbind(dim=-1)
        found = self._estimated(belief, new, every, (i, j, self.omega))
        width = self.width(belief.t)
        certain, refuted = (torch.zeros_like(belief.active) for _ in range(2))
        refuted[i, j] = found.means < -width
        certain[i, j] = found.means > width
        active, side = eliminate_pairs(belief.active, belief.side, certain, refuted)
        open_ = belief.active.any(dim=0) | belief.active.any(dim=1)
        rows = open_.nonzero().view(-1)
        single = self._estimated(belief, new, rows)
        return replace(
            belief,
            t=belief.t + 1,
            side=side,
            active=active,
            estimate=self._updated(belief, rows, single, len(new)),
        )

    def _level(self, mean: Tensor) -> float:
        return self.omega * float(mean.max())
