r"""TruVaR: truncated variance reduction, for level sets and for the maximiser."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse.checks import in_interval, truth_value, whole_number
from botorch_lse.confidence.regions import Regions
from botorch_lse.confidence.schedules import BetaSchedule
from botorch_lse.functional.scores import first_best
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Observations
from botorch_lse.strategies.goals import (
    ExplicitGoal,
    Goal,
    ImplicitGoal,
    MaximiserGoal,
)
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.noise_levels import NoiseLevelStrategy
from botorch_lse.strategies.gp.row_costs import RowCost, RowCosts
from botorch_lse.strategies.gp.truvar_epochs import EpochBeta, Epochs, TruVaRBelief
from botorch_lse.strategies.gp.truvar_scores import (
    epoch_reductions,
    quick_scores,
    stays_in_question,
)
from botorch_lse.strategies.loop import Request, check_state
from botorch_lse.strategies.state import State


@dataclass(frozen=True, eq=False, kw_only=True)
class TruVaRStrategy(NoiseLevelStrategy):
    r"""Measure what most shrinks the widths of the rows in question, per cost.

    ``M_t`` are the rows in question: undecided ones for a level set, possible
    maximisers if neither ``threshold`` nor ``omega`` is given. In epoch ``i`` the rule
    brings the widths ``sqrt(beta_(i)) sigma`` in ``M_t`` down to ``eta_(i)``: it
    chooses the row with the largest truncated variance reduction over ``M_t`` per cost.
    Then ``eta`` is multiplied by ``eta_ratio``. Rows are classified by the current
    interval, not intersected.

    In a batch the steps are greedy with ``M_t``, ``eta`` and ``beta`` fixed and
    variances updated; ``t`` counts rounds. Where everything in question has reached
    ``eta`` inside a batch, the plain variance reduction decides. The answer to "where
    is the maximum" is ``recommend``; ``classification.above`` holds the accepted row
    once it is decided.

    With ``omega``, ``M_t`` are the rows that are undecided or may be the maximiser, by
    the optimistic and pessimistic levels of LSE_imp: our combination, which the paper
    announces and does not write out.

    Args:
        cost: What a measurement costs, as a function ``(previous, rows) -> costs`` of
            the row measured before (``None`` at first: no travel) and ``k`` rows; costs
            positive. Batches come in the order of cheapest next row. Default
            ``pool.costs``, or 1.
        eta: ``eta_(1)``, in standard deviations of the prior; 0 is pure variance
            reduction in one endless epoch.
        eta_ratio: ``r``, in (0, 1).
        delta_bar: An epoch ends when all widths are at most ``(1 + delta_bar) eta``.
        beta_factor: ``a`` of the paper's practical width ``beta_(i) = a log(N
            t_(i)^2)``, ``t_(i)`` the first round of the epoch; it used 1 for level sets
            and 0.5 for the maximiser. It claims no confidence. Default ``beta``.
        monotone: Whether rows that left ``M_t`` stay out. If not, ``M_t`` and the
            classes are found anew from all rows after every round.
        only_open: Whether to measure rows of ``M_t`` only; much faster.
        anticipates: Whether the sum after the look-ahead runs over the rows that would
            then be in question, were the observation its mean. Not for ``omega``.
        prefilter: Score only so many rows: those of largest upper bound (maximiser),
            straddle score (threshold) or variance (omega).

    Other arguments: see ``GPStrategy``; a given ``beta`` schedule is read at ``t_(i)``
    and kept through the epoch, the theorem's (``None``) grows with ``t``.

    Raises:
        ValueError: If a number is out of range, or ``beta`` and ``beta_factor`` or
            ``cost`` and ``pool.costs`` are given both.
        UnsupportedError: If ``anticipates`` comes with ``omega``.

    Source:
        Bogunovic et al. (2016), Algorithms 1 and 2 and Appendix A, with errata 1 to 6
        (papers/bogunovic2016/errata.md).
        Deviation: a row at its bound exactly is below where the paper leaves it open.
    """

    cost: RowCost | None = None
    eta: float = 1.0
    eta_ratio: float = 0.1
    delta_bar: float = 0.0
    beta_factor: float | None = None
    monotone: bool = True
    only_open: bool = False
    anticipates: bool = False
    prefilter: int | None = None

    goals: ClassVar[tuple[str, ...]] = ("threshold", "omega", "maximiser")
    intersects: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        inf = math.inf
        in_interval(self.eta, "eta", 0.0, inf, closed_low=True)
        in_interval(self.eta_ratio, "eta_ratio", 0.0, 1.0)
        in_interval(self.delta_bar, "delta_bar", 0.0, inf, closed_low=True)
        if self.beta_factor is not None:
            in_interval(self.beta_factor, "beta_factor", 0.0, inf)
            if self.beta is not None:
                raise ValueError(
                    "Expected the width once, but got both `beta` and `beta_factor`. "
                    "Leave one out."
                )
        for name in ("monotone", "only_open", "anticipates"):
            truth_value(getattr(self, name), name)
        if self.prefilter is not None:
            whole_number(self.prefilter, "prefilter", 1)
        if self.anticipates and self.omega is not None:
            raise UnsupportedError(
                "Expected `anticipates` to be False with `omega`: the levels after a "
                "look-ahead are not defined. Leave it out, or give `threshold`."
            )
        self.prices  # noqa: B018  (checks the costs)

    @cached_property
    def goal(self) -> Goal:
        r"""What is to be decided."""
        if self.threshold is not None:
            return ExplicitGoal(float(self.threshold), self.epsilon)
        if self.omega is not None:
            return ImplicitGoal(float(self.omega), self.epsilon, drop_maximisers=True)
        return MaximiserGoal(self.epsilon, self.places)

    @cached_property
    def prices(self) -> RowCosts:
        r"""What rows cost."""
        return RowCosts(self.pool, self.cost)

    def _default_widths(self) -> BetaSchedule:
        if self.beta_factor is not None:
            return EpochBeta(len(self.pool), self.beta_factor)
        return super()._default_widths()

    @property
    def claims_confidence(self) -> bool:
        r"""Whether the widths are a theorem's."""
        return self.beta is None and self.beta_factor is None

    @property
    def _source(self) -> str:
        return "Bogunovic et al. 2016, Lemma C.1"

    # --- answers --------------------------------------------------------------------

    def recommend(self, state: State) -> int:
        r"""The row to report as the maximiser: the one with the largest posterior mean.

        Rows that were ruled out count too, since with a heuristic width that may have
        been wrong. ``state.classification.above`` holds the accepted row.

        Args:
            state: Where the run stands.

        Source:
            Bogunovic et al. (2016), section 4.
        """
        check_state(self, state)
        posterior = state.belief.posterior
        everything = torch.ones(len(self.pool), dtype=torch.bool)
        return int(first_best(posterior.mean, everything, posterior.scale) or 0)

    def spent(self, state: State) -> float:
        r"""The summed costs of all complete rounds.

        Args:
            state: Where the run stands.
        """
        check_state(self, state)
        return float(state.belief.spent)

    # --- learning -------------------------------------------------------------------

    def _prior_belief(self, prior: GPPrior, yvar: Tensor | None = None) -> TruVaRBelief:
        posterior = PoolPosterior.start(prior, self.pool.X, self.memory_budget)
        epochs = Epochs(1, self.eta * posterior.scale, self._beta(1, posterior))
        regions = Regions.of_interval(
            posterior.mean, posterior.sigma, epochs.beta, self.pool
        )
        sides = self.goal.start(len(self.pool))  # nothing is decided before any data
        noise = self._planned_noise(prior, yvar)
        return TruVaRBelief(posterior, regions, sides, noise, epochs=epochs)

    def _uninformed(self, posterior: PoolPosterior, mean: float) -> TruVaRBelief:
        blank = super()._uninformed(posterior, mean)
        return TruVaRBelief(
            blank.posterior, blank.regions, blank.sides, blank.new_noise
        )

    def _learn(
        self, belief: Belief, new: Observations, history: Observations, seed: int
    ) -> TruVaRBelief:
        assert isinstance(belief, TruVaRBelief)  # made by `_start` or here
        rows = self.prices.visiting_order(belief.previous, new.measured)
        spent = belief.spent + self.prices.along(belief.previous, rows)
        learnt = super()._learn(belief, new, history, seed)
        return replace(learnt, previous=int(rows[-1]), spent=spent)  # type: ignore[return-value, call-arg]

    def _along(self, belief: Belief, history: Observations) -> Belief:
        # Epochs are a fold over the rounds, whoever learnt the model.
        assert history.round is not None  # labelled by `tell`
        for label in history.round.unique().tolist():
            rows = (history.round == label).nonzero().view(-1)
            belief = self._observe(belief, history.select(rows))
        return belief

    def _current_beta(self, belief: Belief, t: int) -> float:
        assert isinstance(belief, TruVaRBelief)
        if self.claims_confidence:
            return self._beta(t, belief.posterior)
        return belief.epochs.beta

    def _judged(self, belief: Belief, t: int) -> TruVaRBelief:
        judged = super()._judged(belief, t)
        assert isinstance(judged, TruVaRBelief)
        beta, epochs = self._beta(t, judged.posterior), judged.epochs
        if self.claims_confidence:
            epochs = replace(epochs, beta=beta)
        sigma = judged.posterior.sigma[judged.sides.candidates]
        if sigma.numel():
            widest = float(sigma.max())
            epochs = epochs.after(widest, beta, self.eta_ratio, self.delta_bar)
        return replace(judged, epochs=epochs)

    @property
    def _keeps_sides(self) -> bool:
        return super()._keeps_sides and self.monotone

    # --- choosing -------------------------------------------------------------------

    def _open_rows(self, belief: Belief) -> Tensor:
        everything = super()._open_rows(belief)
        restricted = self.only_open and not self._is_initial(belief)
        return belief.sides.candidates if restricted else everything

    def _visiting_order(self, belief: Any, rows: Tensor, before: Tensor) -> Tensor:
        previous = self.prices.end(belief.previous, before)
        return self.prices.visiting_order(previous, rows)

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        assert isinstance(belief, TruVaRBelief)
        left, posterior = request.left.clone(), belief.posterior
        for row in request.pending.tolist():
            posterior = posterior.expect(row, float(belief.new_noise[row]))
        belief = replace(
            belief, previous=self.prices.end(belief.previous, request.pending)
        )
        chosen: list[int] = []
        while len(chosen) < request.size:
            usable = (self._open_rows(belief) & (left > 0)).nonzero().view(-1)
            if usable.numel() == 0:
                break
            row = self._choice(belief, posterior, usable)
            chosen.append(row)
            left[row] -= 1
            if len(chosen) < request.size:
                posterior = posterior.expect(row, float(belief.new_noise[row]))
            belief = replace(belief, previous=row)
        return torch.tensor(chosen, dtype=torch.long)

    def _choice(
        self, belief: TruVaRBelief, posterior: PoolPosterior, usable: Tensor
    ) -> int:
        rows = usable
        if self.prefilter is not None and not self._is_initial(belief):
            scores = quick_scores(belief, posterior, self.goal)[usable]
            best = scores.sort(descending=True, stable=True).indices[: self.prefilter]
            rows = usable[best].sort().values
        scores = self._score_rows(belief, posterior, rows)
        everything = torch.ones_like(rows, dtype=torch.bool)
        at = first_best(scores, everything, float(scores.max()))
        return int(rows[at or 0])

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        assert isinstance(belief, TruVaRBelief)
        return self._score_rows(belief, posterior, torch.arange(len(self.pool)))

    def _score_rows(
        self, belief: TruVaRBelief, posterior: PoolPosterior, rows: Tensor
    ) -> Tensor:
        r"""Eq. (3) for some rows."""
        costs = self.prices.of(belief.previous, rows)
        if self._is_initial(belief):
            return posterior.variance[rows] / costs
        targets = (belief.sides.candidates & self.is_first_copy).nonzero().view(-1)
        noise = belief.new_noise[rows]
        stays = None
        if self.anticipates and targets.numel():
            stays = stays_in_question(self.threshold, self.epsilon)
        found = epoch_reductions(posterior, rows, targets, noise, belief.epochs, stays)
        return found / costs
