r"""What strategies on one Gaussian process per output know."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, UNDECIDED
from botorch_lse.planning import PosteriorProblem
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.pareto.outputs import ParetoEstimate


@dataclass(frozen=True, eq=False)
class GPParetoBelief:
    r"""What the complete rounds say.

    Args:
        posteriors: One per output, units and signs of ``y``.
        side: ``N`` codes: accepted, rejected, open.
        active: ``N`` bools: open rows, and accepted ones that may still decide these.
        estimate: The estimate of every row.
        noise: For each output ``N`` noise variances of new observations.
        contradicted: ``N x m`` bools: intervals that have nothing in common.
        is_informed: Whether the posteriors are those of the model, so that they judge.
        n_intervals: How many intervals were judged; the next is number + 1.
        fitted_rounds: Rounds in the data at the last fit; -1 before any.
        n_rounds: Complete rounds with data.
    """

    posteriors: tuple[PoolPosterior, ...]
    side: Tensor
    active: Tensor
    estimate: ParetoEstimate
    noise: tuple[Tensor, ...]
    contradicted: Tensor
    is_informed: bool = False
    n_intervals: int = 0
    fitted_rounds: int = -1
    n_rounds: int = 0

    @property
    def open(self) -> Tensor:
        r"""The open rows, ascending."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @property
    def live(self) -> Tensor:
        r"""The rows that are not rejected, ascending."""
        is_live = (self.side == UNDECIDED) | (self.side == ABOVE)
        return is_live.nonzero().view(-1)

    @property
    def problems(self) -> list[PosteriorProblem]:
        r"""For each output, what its measurements are to say of the active rows.

        Variances count in units of the prior's largest, so that outputs compare.
        """
        targets = self.active.nonzero().view(-1)
        return [
            PosteriorProblem(
                posterior,
                noise.contiguous(),
                targets,
                torch.ones(targets.numel()).double() / posterior.scale**2,
            )
            for posterior, noise in zip(self.posteriors, self.noise, strict=True)
        ]

    def expecting(self, rows: Tensor) -> GPParetoBelief:
        r"""Posteriors with rows that are out or planned: variances shrink."""
        posteriors = list(self.posteriors)
        each, counts = rows.unique(return_counts=True)
        for row, count in zip(each.tolist(), counts.tolist(), strict=True):
            posteriors = [
                posterior.expect(row, float(noise[row]) / count)
                for posterior, noise in zip(posteriors, self.noise, strict=True)
            ]
        return replace(self, posteriors=tuple(posteriors))
