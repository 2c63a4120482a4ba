r"""GEGE on Gaussian processes: Pareto sets in designed batches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.planning import designed_batch
from botorch_lse.pool_posterior import PoolPosterior
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
