r"""Batches from an optimal design on the posterior: what MELK and MILK share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.designs import exchange_design, round_design
from botorch_lse.planning import (
    ROUNDINGS,
    PosteriorProblem,
    Relaxation,
    designed_batch,
)
from botorch_lse.planning.designed import TOLERANCE
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.forecast import ROUGH, Forecast, observations_needed
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.planning import PlanningProblem
from botorch_lse.strategies.state import State, round_generator

DESIGNS = ("posterior", "prior")


@dataclass(frozen=True, eq=False)
class DesignStrategy(GPStrategy):
    r"""A strategy whose batch is a rounded optimal design.

    ``q`` observations placed by weights leave a posterior variance that is a smooth
    function of the weights (``planning.Relaxation``). The weights that make the largest
    variance of the targets smallest are rounded to ``q`` rows, replicates included, and
    improved by exchange: the same planner and the same batches as
    ``optimize_acqf_design``. A design is a function of the complete rounds alone: none
    is started from an earlier one, so that replaying gives the same batches.

    Args:
        rounding: ``"exchange"``: the rounded design, improved by swapping single rows
            while that helps; batches up to 64 rows are also built by greedy steps and
            improved, and the better one is taken. ``"quota"``: the rounded design as it
            is, in a fraction of the time; the worst variance that it leaves is up to
            three times as large where the batch is far smaller than the design's
            support. ``"sample"``: independent draws as in the paper.
        design: ``"posterior"``: the exact remaining variance, as above. ``"prior"``:
            the paper's design on the prior's kernel with the ridge ``1 / (10 i)`` in
            round ``i``, which forgets where was measured. Other arguments: see
            ``GPStrategy``.

    Raises:
        ValueError: Also if ``rounding`` or ``design`` is not known.

    Source:
        Mason et al. (2022), section 5 and Appendix F.1; exchanging is ours.
    """

    _: KW_ONLY
    rounding: str = "exchange"
    design: str = "posterior"

    intersects: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("rounding", ROUNDINGS), ("design", DESIGNS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"Expected `{name}` to be one of {known}, but got "
                    f"{getattr(self, name)!r}."
                )

    @abstractmethod
    def _targets(self, belief: Belief) -> PlanningProblem:
        r"""What is still open."""

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        return posterior.variance

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        if self._is_initial(belief):
            return super()._plan(belief, request)
        posterior = self._expecting(belief, belief.posterior, request.pending)
        generator = round_generator(request.seed, request.round)
        if self.design == "prior":
            counts = self._prior_counts(belief, posterior, request, generator)
        else:
            counts = designed_batch(
                [self._problem(belief, posterior, self._targets(belief))],
                request.size,
                request.left,
                rounding=self.rounding,
                tol=self._tolerance(belief, request.size),
                generator=generator,
            )
        return torch.arange(len(counts)).repeat_interleave(counts)

    def _expecting(
        self, belief: Belief, posterior: PoolPosterior, rows: Tensor
    ) -> PoolPosterior:
        for row in rows.tolist():
            posterior = posterior.expect(row, float(belief.new_noise[row]))
        return posterior

    def _problem(
        self, belief: Belief, posterior: PoolPosterior, targets: PlanningProblem
    ) -> PosteriorProblem:
        r"""What a batch is to predict, for the planner."""
        return PosteriorProblem(
            posterior,
            belief.new_noise.contiguous(),
            targets.rows,
            targets.weights,
            targets.factor,
        )

    def _prior_counts(
        self,
        belief: Belief,
        posterior: PoolPosterior,
        request: Request,
        generator: torch.Generator,
    ) -> Tensor:
        r"""``N`` counts of the paper's design, which knows no earlier measurement."""
        start = PoolPosterior.start(
            posterior.prior, self._posterior_points, self.memory_budget
        )
        targets = self._targets(belief)
        unit = torch.ones(len(self.pool), dtype=torch.float64)
        problem = PosteriorProblem(
            start, unit, targets.rows, targets.weights, targets.factor
        )
        counts, left = torch.zeros_like(request.left), request.left
        method = "sample" if self.rounding == "sample" else "quota"
        while (q := request.size - int(counts.sum())) > 0 and bool((left > 0).any()):
            # Again without the rows that may not be repeated so often.
            usable = left > 0
            relaxation = Relaxation.of(problem, q, TOLERANCE, usable)
            assert relaxation is not None  # the prior is uncertain
            gamma = 1 / (10 * (belief.n_rounds + 1))
            relaxation = replace(
                relaxation, stated={**relaxation.stated, "gamma": gamma}
            )
            weights = relaxation.nearly(TOLERANCE).weights
            rounded = round_design(weights, q, method, generator=generator)
            if self.rounding == "exchange":
                rounded = exchange_design(rounded, **relaxation.stated)
            more = torch.zeros_like(counts)
            more[usable] = rounded
            more = torch.minimum(more, left)
            counts, left = counts + more, left - more
        return counts

    def _tolerance(self, belief: Belief, size: int) -> float | None:
        r"""The certified gap of a design; ``None``: the planner's own."""
        return None

    def _gaps(self, belief: Belief) -> PlanningProblem | None:
        r"""What is still open, weighted by one over the squared gaps expected.

        ``None``: the undecided rows against the level, as for any other strategy.
        """
        return None

    def _forecast(self, state: State) -> Forecast:
        belief = state.belief
        unknown = self._no_forecast(belief)
        if unknown is not None:
            return unknown
        posterior, targets = belief.posterior, self._gaps(belief)
        if targets is None:
            return super()._forecast(state)
        # What is left to do depends on the data, whatever the batches look at.
        problem = self._problem(belief, posterior, targets)
        relaxation = Relaxation.of(problem, self.batch_size, ROUGH)
        if relaxation is None:
            return Forecast(self.batch_size, "Nothing is uncertain any more.")
        beta = self._beta(belief.n_intervals + 1, posterior)
        return Forecast(
            observations_needed(relaxation, beta),
            "By the optimal design for the gaps of the current estimate and the width "
            "of the next round.",
        )
