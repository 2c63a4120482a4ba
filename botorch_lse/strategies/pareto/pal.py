r"""PAL: Pareto active learning by hyper-rectangles of a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import BELOW, UNDECIDED
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.pareto import pareto_mask
from botorch_lse.posterior import row_blocks
from botorch_lse.problem import Observations
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.pareto.belief import GPParetoBelief
from botorch_lse.strategies.pareto.gp import GPParetoStrategy
from botorch_lse.strategies.pareto.margins import (
    Comparison,
    judge,
    sorted_out,
    with_margins,
)
from botorch_lse.strategies.pareto.outputs import ParetoEstimate


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

    @property
    def n_claims(self) -> int:
        r"""Outputs times rows."""
        return self.m * len(self.pool)

    @property
    def _promise(self) -> str:
        if not bool(self.tolerances.any()):
            return (
                "accepted rows are Pareto optimal, and each rejected one is nowhere "
                "above some row that is not rejected"
            )
        return (
            f"every rejected row exceeds an accepted one by at most {self._up_to} in "
            "each output once no row is open, and no accepted row is exceeded by more "
            "than twice that in every output"
        )

    # --- judging ----------------------------------------------------------------------

    def _judged(self, belief: GPParetoBelief, root_beta: float) -> GPParetoBelief:
        estimate, contradicted = self._intersected(belief, root_beta)
        if bool(contradicted.any()):
            # What earlier rectangles decided is not believed any more.
            nothing = torch.full_like(belief.side, UNDECIDED)
            belief = replace(belief, side=nothing, active=nothing == UNDECIDED)
        belief = replace(belief, contradicted=contradicted)
        low, high = self._corners(estimate)
        side = belief.side.clone()
        side[self._covered(belief, low, high)] = BELOW
        belief = replace(belief, side=side, estimate=estimate)
        rows = belief.open
        if rows.numel() == 0:
            return replace(belief, active=torch.zeros_like(belief.active))

        def compare(rows: Tensor, rivals: Tensor) -> Comparison:
            mean, sigma = (self.signs * estimate.mean).mT, estimate.sigma.mT
            return Comparison(
                low.mT[:, rows, None] - high.mT[:, None, rivals],
                high.mT[:, rows, None] - low.mT[:, None, rivals],
                mean[:, rows, None] - mean[:, None, rivals],
                torch.hypot(sigma[:, rows, None], sigma[:, None, rivals]),
            )

        found = judge(rows, belief.live, compare, *self._judging)
        estimate = with_margins(estimate, rows, found)
        return replace(sorted_out(belief, found), estimate=estimate)

    def _intersected(
        self, belief: GPParetoBelief, root_beta: float
    ) -> tuple[ParetoEstimate, Tensor]:
        r"""Estimates, and ``N x m`` bools: intervals contradict each other."""
        mean = torch.stack([p.mean for p in belief.posteriors], dim=-1)
        sigma = torch.stack([p.sigma for p in belief.posteriors], dim=-1)
        old, half = belief.estimate, root_beta * sigma
        lower = torch.maximum(old.lower, mean - half)
        upper = torch.minimum(old.upper, mean + half)
        contradicted = belief.contradicted | (lower > upper)
        lower = torch.where(contradicted, mean - half, lower)
        upper = torch.where(contradicted, mean + half, upper)
        found = replace(old, mean=mean, sigma=sigma, lower=lower, upper=upper)
        return found, contradicted

    def _corners(self, estimate: ParetoEstimate) -> tuple[Tensor, Tensor]:
        r"""``N x m`` worst and best corners, all outputs maximised."""
        ends = self.signs * estimate.lower, self.signs * estimate.upper
        return torch.minimum(*ends), torch.maximum(*ends)

    def _covered(self, belief: GPParetoBelief, low: Tensor, high: Tensor) -> Tensor:
        r"""Open rows that exceed nothing that a row of the pessimistic front has."""
        live, rows = belief.live, belief.open
        on_front = torch.zeros_like(belief.active)
        on_front[live[pareto_mask(low[live])]] = True
        front, rows = on_front.nonzero().view(-1), rows[~on_front[rows]]
        covered = [rows[:0]]
        worst = low[front] + self.tolerances
        for block in row_blocks(rows.numel(), worst.numel(), self.memory_budget):
            best = high[rows[block]].unsqueeze(1)
            covered.append(rows[block][(best <= worst).all(dim=-1).any(dim=1)])
        return torch.cat(covered)

    def _learn(
        self,
        belief: GPParetoBelief,
        new: Observations,
        history: Observations,
        seed: int,
    ) -> GPParetoBelief:
        before = belief.contradicted
        belief = super()._learn(belief, new, history, seed)
        if self.beta is None and belief.is_informed:
            found, newly = belief.estimate, belief.contradicted & ~before
            for c in range(self.m):
                lower, upper = found.lower[:, c], found.upper[:, c]
                mean, sigma = found.mean[:, c], found.sigma[:, c]
                regions = Regions(lower, upper, mean, sigma, self.pool, newly[:, c])
                warn_if_empty(regions, self.guarantee)
        return belief

    # --- choosing ---------------------------------------------------------------------

    def _open_rows(self, belief: GPParetoBelief) -> Tensor:
        if self._is_initial(belief):
            return torch.ones(len(self.pool), dtype=torch.bool)
        return belief.side != BELOW

    def _plan(self, belief: GPParetoBelief, request: Request) -> Tensor:
        return self._greedy(belief, request, self._open_rows(belief))

    def _scores(self, belief: GPParetoBelief) -> Tensor:
        if self._is_initial(belief):
            return super()._scores(belief)
        root_beta = self.widths(belief.n_intervals) ** 0.5
        expected, _ = self._intersected(belief, root_beta)
        scales = torch.tensor([p.scale for p in belief.posteriors]).double()
        sides = (expected.upper - expected.lower).clamp_min(0.0) / scales
        return sides.norm(dim=-1)
