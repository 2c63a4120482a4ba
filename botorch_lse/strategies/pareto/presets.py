r"""GEGE and PAL on Gaussian processes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import BELOW, UNDECIDED
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.models.posterior import PoolPosterior, row_blocks
from botorch_lse.pareto import pareto_mask
from botorch_lse.planning import designed_batch
from botorch_lse.problem import Observations
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.pareto.base import (
    Comparison,
    GPParetoBelief,
    GPParetoStrategy,
    judge,
    sorted_out,
    with_margins,
)
from botorch_lse.strategies.pareto.outputs import ParetoEstimate


@dataclass(frozen=True, eq=False)
class GEGEStrategy(GPParetoStrategy):
    r"""GEGE on Gaussian processes, in batches of the user's size.

    Rows are judged by the posterior intervals of their differences, output by output: a
    row is rejected once another one certainly exceeds it in every output, and accepted
    once each other row is certainly exceeded (up to ``epsilon``) in some output. What
    is decided stays decided. The batch is the optimal design for the active rows, those
    open and those accepted ones that may still reject an open one; for several outputs
    the best mixture of their own designs, rounded by quota, replicates included, and
    improved by pair exchange.

    Arguments: see ``GPParetoStrategy``. Equal rows share their side; rows of equal
    values are told apart by no data: give ``epsilon`` or ``max_observations``.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.linspace(0, 10, 21).unsqueeze(-1))
        >>> kernels = (RBFKernel().double(), RBFKernel().double())
        >>> strategy = GEGEStrategy(
        ...     pool,
        ...     maximize=(True, False),
        ...     model=kernels,
        ...     noise_std=0.1,
        ...     batch_size=7,
        ... )
        >>> strategy.ask(strategy.init()).counts.tolist()
        [1, 1, 1, 1, 1, 1, 1]

    Source:
        Kone et al. (2025), Algorithm 1 for the design and section 3.3 for ``epsilon``;
        the rule of Auer et al. (2016) with posterior intervals in place of empirical
        gaps, since in batches of a given size no round reaches the gap it decides.
        Widths: a union bound over all outputs, pairs of rows and rounds.
    """

    @property
    def n_claims(self) -> int:
        r"""Outputs times rows and unordered pairs of rows."""
        N = len(self.pool)
        return self.m * N * (N + 1) // 2

    @property
    def _promise(self) -> str:
        if not bool(self.tolerances.any()):
            return "accepted rows are Pareto optimal and rejected ones are not"
        return (
            "no rejected row is Pareto optimal, and no accepted row is exceeded by "
            f"more than {self._up_to} in every output"
        )

    # --- judging ----------------------------------------------------------------------

    def _judged(self, belief: GPParetoBelief, root_beta: float) -> GPParetoBelief:
        rows, rivals = belief.open, belief.live
        estimate = self._outputs(belief, root_beta)
        if rows.numel() == 0:
            return replace(belief, estimate=estimate)

        def compare(rows: Tensor, rivals: Tensor) -> Comparison:
            parts = [
                difference(posterior, rows, rivals, float(sign))
                for posterior, sign in zip(belief.posteriors, self.signs, strict=True)
            ]
            mean, sigma = (torch.stack(part) for part in zip(*parts, strict=True))
            half = root_beta * sigma
            return Comparison(mean - half, mean + half, mean, sigma)

        found = judge(rows, rivals, compare, *self._judging)
        estimate = with_margins(estimate, rows, found)
        return replace(sorted_out(belief, found), estimate=estimate)

    def _outputs(self, belief: GPParetoBelief, root_beta: float) -> ParetoEstimate:
        mean = torch.stack([p.mean for p in belief.posteriors], dim=-1)
        sigma = torch.stack([p.sigma for p in belief.posteriors], dim=-1)
        half = root_beta * sigma
        ends = {"lower": mean - half, "upper": mean + half}
        return replace(belief.estimate, mean=mean, sigma=sigma, **ends)

    # --- choosing ---------------------------------------------------------------------

    def _plan(self, belief: GPParetoBelief, request: Request) -> Tensor:
        if self._is_initial(belief):
            everywhere = torch.ones(len(self.pool), dtype=torch.bool)
            return self._greedy(belief, request, everywhere)
        problems = belief.expecting(request.pending).problems
        counts = designed_batch(problems, request.size, request.left)
        return torch.arange(len(counts)).repeat_interleave(counts)


def difference(
    posterior: PoolPosterior, rows: Tensor, rivals: Tensor, sign: float
) -> tuple[Tensor, Tensor]:
    r"""``B x L`` means and standard deviations of ``sign (f(row) - f(rival))``."""
    mean = posterior.mean[rows].unsqueeze(-1) - posterior.mean[rivals]
    return sign * mean, posterior.variance_between(rows, rivals).sqrt()


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
        r"""One interval for each output of each row."""
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
