r"""PAL on Gaussian processes, a rival of the Pareto papers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from botorch_lse.confidence.classify import BELOW, Sides
from botorch_lse.goals.base import Intervals
from botorch_lse.goals.pareto import (
    ParetoSet,
    ParetoSides,
    RivalComparison,
    with_outputs,
)
from botorch_lse.models.gaussian_process import row_blocks
from botorch_lse.pareto import pareto_mask
from botorch_lse.rules.base import Rule, ScoreRule, SelectionContext, Serves
from botorch_lse.strategies.pareto import GPParetoStrategy


@dataclass(frozen=True)
class ParetoByRectangles(ParetoSet):
    r"""The Pareto set by rectangles: intersected intervals, one side per output.

    A row is rejected if its best corner does not exceed, up to the tolerances, the
    worst corner of a row on the pessimistic front; it is accepted if no row's best
    corner exceeds its worst corner by them in every output.

    Args:
        maximize: For each output, whether more is better.
        accuracies: One accuracy per output, in its units; default none.

    Source:
        Zuluaga et al. (2016), epsilon-PAL.
    """

    @property
    def _promise(self) -> str:
        r"""The claim that holds with the stated probability."""
        if not bool(self.tolerances.any()):
            return (
                "accepted rows are Pareto optimal, and each rejected one is nowhere "
                "above some row that is not rejected"
            )
        return (
            f"every rejected row exceeds an accepted one by at most {self.up_to} in "
            "each output once no row is open, and no accepted row is exceeded by more "
            "than twice that in every output"
        )

    def n_claims(self, n_items: int) -> int:
        r"""The number of intervals: one for each output of each row."""
        return len(self.maximize) * n_items

    def reopened(self, sides: Sides, contradicted: Tensor) -> Sides:
        r"""The sides with every row open: earlier rectangles are not believed."""
        return sides.reopened(torch.ones_like(contradicted))

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after a judgement by the corners of the rectangles."""
        found = with_outputs(sides, seen)
        estimate = found.estimate
        ends = self.signs * estimate.lower, self.signs * estimate.upper
        low, high = torch.minimum(*ends), torch.maximum(*ends)
        side = found.side.clone()
        budget = seen.belief.memory_budget
        side[self._covered(found, low, high, budget)] = BELOW
        found = replace(found, side=side, candidates=side != BELOW)
        if found.open.numel() == 0:
            return replace(found, active=torch.zeros_like(found.active))

        columns = low, high, self.signs * estimate.mean, estimate.sigma
        outputs = list(zip(*(part.unbind(dim=-1) for part in columns), strict=True))

        def compare(rows: Tensor, rivals: Tensor) -> Iterator[RivalComparison]:
            for low, high, mean, sigma in outputs:
                yield RivalComparison(
                    low[rows, None] - high[rivals],
                    high[rows, None] - low[rivals],
                    mean[rows, None] - mean[rivals],
                    partial(_spread, sigma[rows], sigma[rivals]),
                )

        return self.judged(found, seen, compare)

    def _covered(
        self, sides: ParetoSides, low: Tensor, high: Tensor, budget: int
    ) -> Tensor:
        r"""Open rows that exceed nothing that a row of the pessimistic front has."""
        live, rows = sides.live, sides.open
        on_front = torch.zeros_like(sides.active)
        on_front[live[pareto_mask(low[live])]] = True
        front, rows = on_front.nonzero().view(-1), rows[~on_front[rows]]
        covered = [rows[:0]]
        worst = low[front] + self.tolerances
        for block in row_blocks(rows.numel(), worst.numel(), budget):
            best = high[rows[block]].unsqueeze(1)
            covered.append(rows[block][(best <= worst).all(dim=-1).any(dim=1)])
        return torch.cat(covered)


def _spread(own: Tensor, rivals: Tensor, rival: Tensor) -> Tensor:
    r"""The deviations (``B``) of differences from one of ``L`` rivals for each row."""
    return torch.hypot(own, rivals[rival])


@dataclass(frozen=True)
class Diameter(ScoreRule):
    r"""Measure the row of the largest hyper-rectangle, in units of the prior.

    Source:
        Zuluaga et al. (2016). Deviation: the diameter is taken in units of the prior
        standard deviations, not of ``y``.
    """

    serves = Serves.ANYTHING
    only_candidates = True

    def scores(self, context: SelectionContext) -> Tensor:
        r"""Diameters of the rectangles, with the intervals that planned rows leave.

        Where a measurement gives one output, its side alone.
        """
        sides = []
        for posterior, regions in zip(
            context.posteriors, context.belief.all_regions, strict=True
        ):
            expected = posterior.mean, posterior.sigma, context.beta
            left = regions.intersect(*expected)
            sides.append((left.upper - left.lower).clamp_min(0.0) / posterior.scale)
        return context.fits.layout.merged(
            sides, partial(torch.linalg.vector_norm, dim=0)
        )


@dataclass(frozen=True, eq=False)
class PALStrategy(GPParetoStrategy):
    r"""Measure the row of the largest hyper-rectangle until all rows are decided.

    A row's rectangle is the intersection of its intervals so far, one side per output.
    A row is rejected if its best corner does not exceed, up to ``epsilon``, the worst
    corner of a row on the pessimistic front; it is accepted if no row's best corner
    exceeds its worst corner by ``epsilon`` in every output. In batches each choice
    shrinks the rectangles as if it had been measured.

    Arguments: see ``GPParetoStrategy``.

    Source:
        Zuluaga et al. (2016), epsilon-PAL, with the widths of its Theorem 1; the
        intersections are those of Zuluaga et al. (2013). Deviations: the diameter is
        taken in units of the prior standard deviations, not of ``y``; the first
        interval is the prior's.
    """

    @cached_property
    def goal(self) -> ParetoSet:
        r"""The goal: which rows are Pareto optimal, by rectangles."""
        return ParetoByRectangles(tuple(self.maximize), self.accuracies)

    @property
    def rule(self) -> Rule:
        r"""Measure the row of the largest rectangle."""
        return Diameter()
