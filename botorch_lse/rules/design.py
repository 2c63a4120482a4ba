r"""Optimal designs as a rule: whole batches, planned at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse._validation import one_of
from botorch_lse.data.requests import PlanRequest, round_generator
from botorch_lse.designs import exchange_design, round_design
from botorch_lse.planning.designed import (
    FINE,
    ROUNDINGS,
    TOLERANCE,
    Relaxation,
    designed_batch,
)
from botorch_lse.rules.base import (
    IntervalPolicy,
    Rule,
    SelectionContext,
    Serves,
    one_by_one,
    problems_of,
    variance_left,
)
from botorch_lse.surrogate.posterior import Posterior

DESIGNS = ("posterior", "prior")
LEAST_TOLERANCE = 1e-5
"""The smallest gap asked of a design: the solver reaches it on every problem."""


@dataclass(frozen=True)
class OptimalDesign(Rule):
    r"""Measure the batch that makes the largest variance of the targets smallest.

    ``q`` observations placed by weights leave a posterior variance that is a smooth
    function of the weights (``planning.Relaxation``). The best weights are rounded to
    ``q`` rows and improved by exchange: the same planner and the same batches as
    ``optimize_acqf_design``. A design is a function of the complete rounds alone: none
    is started from an earlier one, so that replaying gives the same batches.

    Args:
        rounding: See ``MELKStrategy``.
        design: See ``MELKStrategy``.
        may_race: Whether few rows may stay in question for long, as where the best of
            them is wanted; then designs are solved ever more closely.

    Raises:
        ValueError: If ``rounding`` or ``design`` is not known.

    Source:
        Mason et al. (2022), section 5 and Appendix F.1; exchanging is ours.
    """

    rounding: str = "exchange"
    design: str = "posterior"
    may_race: bool = False

    serves = Serves.ANYTHING
    intervals = IntervalPolicy(intersects=False)

    def __post_init__(self) -> None:
        one_of(self.rounding, "rounding", ROUNDINGS)
        one_of(self.design, "design", DESIGNS)

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The designed batch; initial rows are chosen by maximal variance."""
        if context.is_initial:
            return one_by_one(context, request, variance_left)
        generator = round_generator(request.seed, request.round)
        if self.design == "prior":
            if context.fits.layout.n_each > 1:
                raise UnsupportedError(
                    'Expected `design="posterior"` where a measurement gives one '
                    'output, but got "prior". Leave it out.'
                )
            counts = self._prior_counts(context, request, generator)
        else:
            counts = designed_batch(
                context.problems,
                request.size,
                request.left,
                rounding=self.rounding,
                tol=self._tolerance(context, request.size),
                generator=generator,
            )
        return torch.arange(len(counts)).repeat_interleave(counts)

    def _tolerance(self, context: SelectionContext, size: int) -> float | None:
        r"""The certified gap of a design; ``None``: the planner's own."""
        if not self.may_race or int(context.belief.sides.candidates.sum()) > size:
            return None
        # A race of few rows may be long. After n observations a batch takes about
        # size / (n + size) off a variance: within a larger gap of what is left, the
        # worst batch would do as well.
        n = len(context.belief.fits.measured)
        own = FINE if self.rounding == "exchange" else TOLERANCE
        return max(min(own, TOLERANCE * size / (n + size)), LEAST_TOLERANCE)

    def _prior_counts(
        self,
        context: SelectionContext,
        request: PlanRequest,
        generator: torch.Generator,
    ) -> Tensor:
        r"""The paper's design, which ignores earlier measurements (``N`` counts)."""
        unit = torch.ones(len(request.left), dtype=torch.float64)
        before = context.posterior.before_data()
        found = Posterior(context.fits.layout, (before,), (unit,))
        (problem,) = problems_of(found, context.targets)
        counts, left = torch.zeros_like(request.left), request.left
        method = "sample" if self.rounding == "sample" else "quota"
        gamma = 1 / (10 * (context.belief.fits.n_rounds + 1))
        while (q := request.size - int(counts.sum())) > 0 and bool((left > 0).any()):
            # Again without the rows that may not be repeated so often.
            usable = left > 0
            relaxation = Relaxation.of(problem, q, TOLERANCE, usable)
            assert relaxation is not None  # the prior is uncertain
            stated = {**relaxation.stated, "gamma": gamma}
            weights = replace(relaxation, stated=stated).nearly(TOLERANCE).weights
            rounded = round_design(weights, q, method, generator=generator)
            if self.rounding == "exchange":
                rounded = exchange_design(rounded, **stated)
            more = torch.zeros_like(counts)
            more[usable] = rounded
            more = torch.minimum(more, left)
            counts, left = counts + more, left - more
        return counts
