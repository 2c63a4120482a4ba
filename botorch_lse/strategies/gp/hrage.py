r"""H-RAGE on a Gaussian process: unequal noise, learnt first and then used."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.confidence.classify import UNDECIDED, Sides
from botorch_lse.confidence.regions import Regions
from botorch_lse.confidence.schedules import BetaSchedule, UnionBeta
from botorch_lse.functional.scores import first_best
from botorch_lse.planning.designed import FINE, TOLERANCE
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Pool
from botorch_lse.strategies.arguments import check_targets, places_of
from botorch_lse.strategies.elimination import eliminate_for_best
from botorch_lse.strategies.forecast import squared_gaps
from botorch_lse.strategies.goals import ExplicitGoal, Goal, MaximiserGoal
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.learnt_noise import BurnInBelief, BurnInStrategy
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.planning import PlanningProblem

LEAST_TOLERANCE = 1e-5
"""Gaps that the solver reaches in every case."""
PAIR_ARRAYS = 6
"""Arrays of all pairs alive at once."""


@dataclass(frozen=True, eq=False)
class HRAGEStrategy(BurnInStrategy):
    r"""H-RAGE on a Gaussian process, in batches: learn which rows are noisy, then
    measure accordingly.

    With ``variance_bounds`` a burn-in estimates the noise of every row. Then each batch
    comes from the optimal design, noise per row, for the undecided rows; for the
    maximiser, for the differences of the rows in question. Without ``threshold`` the
    maximiser is wanted: a row is out once another one is better for certain, and
    "above" is the row accepted at last. Rows are classified by the current posterior
    interval, not intersected; what is decided stays decided.

    Args:
        targets: The items to decide on, with the columns of the pool; what can be
            measured remains the pool. Default ``pool``.
        beta: ``None``: Theorem 1 of Gotovos et al. (2013), for the maximiser with its
            union bound over all ordered pairs of items. Other arguments: see
            ``BurnInStrategy``.

    Raises:
        ValueError: Also if the maximiser's pairs exceed the memory budget.
        BotorchTensorDimensionError: If ``targets`` have other columns than the pool.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = HRAGEStrategy(
        ...     pool,
        ...     threshold=0.5,
        ...     model=RBFKernel().double(),
        ...     variance_bounds=(0.1, 1.0),
        ...     burn_in=20,
        ...     batch_size=4,
        ... )
        >>> strategy.n_burn_in, strategy.ask(strategy.init()).counts.tolist()
        (24, [2, 2])

    Source:
        Weltz et al. (2023), Algorithms 1 and 2, in the batched form that Mason et al.
        (2022), section 5, give MELK: fixed batches, the posterior in place of least
        squares on the last round alone, its interval in place of ``2^-t``.
    """

    _: KW_ONLY
    targets: Pool | None = None

    goals: ClassVar[tuple[str, ...]] = ("threshold", "maximiser")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_targets(self.targets)
        if self.targets is not None and self.targets.d != self.pool.d:
            raise BotorchTensorDimensionError(
                f"Expected `targets` with the {self.pool.d} columns of `pool`, but got "
                f"{self.targets.d}."
            )
        pairs = PAIR_ARRAYS * 8 * len(self.items) ** 2
        if self.threshold is None and pairs > self.memory_budget:
            raise ValueError(
                "Expected items whose pairs fit `memory_budget` = "
                f"{self.memory_budget} bytes, but {len(self.items)} need {pairs}. Give "
                "a larger budget or fewer `targets`."
            )

    # --- the problem ------------------------------------------------------------------

    @property
    def items(self) -> Pool:
        r"""The items to decide on."""
        return self.pool if self.targets is None else self.targets

    @cached_property
    def goal(self) -> Goal:
        r"""What is to be decided."""
        if self.threshold is not None:
            return ExplicitGoal(float(self.threshold), self.epsilon)
        return MaximiserGoal(self.epsilon, self._places)

    @cached_property
    def _places(self) -> Tensor:
        return places_of(self.items.X)

    def _default_widths(self) -> BetaSchedule:
        T = len(self.items)
        return UnionBeta(T if self.threshold is not None else T * T, self.delta)

    @property
    def _theorem(self) -> str:
        if self.threshold is not None:
            return "Theorem 1"
        return "Theorem 1, its union bound over all ordered pairs of items"

    # --- learning ---------------------------------------------------------------------

    @property
    def _posterior_points(self) -> Tensor:
        X = self.pool.X
        return X if self.targets is None else torch.cat((X, self.targets.X))

    def _prior_belief(self, prior: GPPrior, yvar: Tensor | None = None) -> BurnInBelief:
        X = self._posterior_points
        posterior = PoolPosterior.start(prior, X, self.memory_budget)
        moments = self._moments(posterior)
        regions = Regions.of_interval(*moments, self._beta(1, posterior), self.items)
        sides = self._start_sides()
        if self.is_theorem:
            sides = self._update_sides(sides, posterior, regions, 1)
        noise = self._planned_noise(prior, yvar)
        return BurnInBelief(posterior, regions, sides, noise)

    def _uninformed(self, posterior: PoolPosterior, mean: float) -> BurnInBelief:
        blank = super()._uninformed(posterior, mean)
        return BurnInBelief(
            blank.posterior, blank.regions, blank.sides, blank.new_noise
        )

    def _moments(self, posterior: PoolPosterior) -> tuple[Tensor, Tensor]:
        rows = self._item_rows
        return posterior.mean[rows], posterior.sigma[rows]

    @property
    def _item_rows(self) -> Tensor:
        return self._posterior_rows(slice(None))

    def _posterior_rows(self, items: Any) -> Any:
        r"""The rows of the posterior that are the given items."""
        first = 0 if self.targets is None else len(self.pool)
        return torch.arange(first, first + len(self.items))[items]

    def _update_sides(
        self, sides: Sides, posterior: PoolPosterior, regions: Regions, t: int
    ) -> Sides:
        if self.threshold is not None:
            return self.goal.update(sides, regions)
        items = sides.candidates.nonzero().view(-1)
        rows = self._posterior_rows(items)
        variance = posterior.variance_between(rows, rows)
        half = (self._beta(t, posterior) * variance).sqrt()
        side = eliminate_for_best(
            sides.side, items, regions.mean[items], half, self.epsilon, self._places
        )
        open_ = side == UNDECIDED
        return replace(sides, side=side, candidates=open_ if open_.any() else side > 0)

    # --- choosing ---------------------------------------------------------------------

    def _initial_plan(self, belief: Belief, request: Request) -> Tensor:
        r"""Rows of the pool by maximal variance, one after the other."""
        N, left = len(self.pool), request.left.clone()
        rows: list[int] = []
        posterior = self._expecting(belief, belief.posterior, request.pending)
        while len(rows) < request.size:
            row = first_best(posterior.variance[:N], left > 0, posterior.scale)
            if row is None:
                break
            rows.append(row)
            left[row] -= 1
            posterior = posterior.expect(row, float(belief.new_noise[row]))
        return torch.tensor(rows, dtype=torch.long)

    def _targets(self, belief: Belief) -> PlanningProblem:
        rows = self._posterior_rows(belief.sides.candidates)
        return PlanningProblem(rows, None, None if self.threshold is not None else 1.0)

    def _tolerance(self, belief: Belief, size: int) -> float | None:
        if int(belief.sides.candidates.sum()) > size:
            return None
        # A race of few rows may be long. After n observations a batch takes about
        # size / (n + size) off a variance: within a larger gap of what is left, the
        # worst batch would do as well.
        n = len(belief.posterior.indices)
        own = FINE if self.rounding == "exchange" else TOLERANCE
        return max(min(own, TOLERANCE * size / (n + size)), LEAST_TOLERANCE)

    def _gaps(self, belief: Belief) -> PlanningProblem:
        targets, posterior = self._targets(belief), belief.posterior
        rows = targets.rows
        mean, variance = posterior.mean[rows], posterior.variance[rows]
        if self.threshold is not None:
            gaps = squared_gaps(mean - self.threshold, variance, self.epsilon)
            return replace(targets, weights=1 / gaps)
        spread = posterior.variance_between(rows, rows)
        gaps = squared_gaps(mean.unsqueeze(-1) - mean, spread, self.epsilon)
        weights = torch.zeros_like(spread)
        best = int(mean.argmax())  # the others are judged by it
        weights[:, best] = 1 / gaps[:, best].clamp_min(torch.finfo(gaps.dtype).tiny)
        weights[best, best] = 0.0
        return replace(targets, weights=weights)
