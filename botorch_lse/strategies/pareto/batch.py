r"""Batches that make the worst variance of several outputs small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_lse.acquisition.batch_search import exchange_pairs, greedy
from botorch_lse.acquisition.played import JointlyPlayed
from botorch_lse.designs import round_design
from botorch_lse.designs.mixture import design_value, mixed_weights
from botorch_lse.designs.scale import ridge_of
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.gp.design import TOLERANCE, solved
from botorch_lse.strategies.gp.features import features_of
from botorch_lse.strategies.pareto.belief import GPParetoBelief

SMALL = 64
"""Batches up to this size are also tried by greedy steps: rounding costs them most."""


@dataclass(frozen=True, eq=False)
class OutputProblem:
    r"""One output as ``played.PoolProblem``: what a batch leaves of its targets.

    Args:
        posterior: The posterior on the pool.
        noise_var: ``N`` noise variances.
        targets: ``T`` rows.
    """

    posterior: PoolPosterior
    noise_var: Tensor
    targets: Tensor
    pairs_factor: None = None

    @property
    def variance(self) -> Tensor:
        r"""``N`` variances before the batch."""
        return self.posterior.variance

    @property
    def weights(self) -> Tensor:
        r"""``T`` factors: variances count in units of the prior's largest."""
        unit = torch.ones(self.targets.numel(), dtype=torch.float64)
        return unit / self.posterior.scale**2

    @property
    def scale(self) -> float:
        r"""The unit of ties."""
        return 1.0

    @property
    def n_targets(self) -> int:
        r"""``T``."""
        return self.targets.numel()

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between rows of the pool."""
        every = torch.arange(self.noise_var.numel())
        return self.posterior.covariance_between(every[rows], every[columns])

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets."""
        return self.block(self.targets[rows], self.targets)

    def relaxed(self, usable: Tensor, size: int) -> dict[str, Any] | None:
        r"""The arguments of ``optimal_design`` for ``size`` observations.

        In units of the mean noise; ``None`` if no target is uncertain.
        """
        largest = float(self.variance[self.targets].max())
        Phi = features_of(self.posterior, largest, size)
        if Phi.shape[1] == 0:
            return None
        Phi, noise = Phi / self.unit**0.5, self.noise_var / self.unit
        everywhere = bool(usable.all())
        alike = bool((noise == noise[0]).all())
        return {
            "X": Phi if everywhere else Phi[usable],
            "targets": self.targets if everywhere else Phi[self.targets],
            "gamma": ridge_of(size, Phi, noise),
            "noise_var": None if alike else noise[usable],
        }

    @property
    def unit(self) -> float:
        r"""The mean noise variance."""
        return float(self.noise_var.mean())


def designed_batch(belief: GPParetoBelief, size: int, left: Tensor) -> Tensor:
    r"""Rows that make the largest variance of the active rows small, replicates too.

    The best mixture of the outputs' optimal designs, rounded by quota and improved by
    pair exchange; for small batches the greedy choice likewise, if it is better.

    Args:
        belief: Posteriors and active rows.
        size: The number of observations.
        left: ``N``, how often each row may be measured.
    """
    allowed = left.clamp(0, size)
    size = min(size, int(allowed.sum()))
    if size == 0:
        return torch.empty(0, dtype=torch.long)
    problems = output_problems(belief)
    counts = torch.minimum(rounded_mixture(problems, allowed > 0, size), allowed)
    starts = [counts]
    if size <= SMALL:
        starts.append(torch.zeros_like(counts))
    found = [_improved(problems, start, size, allowed) for start in starts]
    best = min(found, key=lambda played: played.value)  # the design if they tie
    return torch.arange(len(left)).repeat_interleave(best.counts)


def output_problems(belief: GPParetoBelief) -> list[OutputProblem]:
    r"""For each output, what its measurements are to say of the active rows."""
    targets = belief.active.nonzero().view(-1)
    return [
        OutputProblem(posterior, noise.contiguous(), targets)
        for posterior, noise in zip(belief.posteriors, belief.noise, strict=True)
    ]


def _improved(
    problems: list[OutputProblem], counts: Tensor, size: int, allowed: Tensor
) -> JointlyPlayed:
    start = JointlyPlayed.of(problems, counts)
    return exchange_pairs(greedy(start, size, allowed), allowed)


def rounded_mixture(problems: list[OutputProblem], usable: Tensor, size: int) -> Tensor:
    r"""``N`` counts of the best mixture of the outputs' designs.

    Args:
        problems: One per output.
        usable: ``N`` bools: the rows that may be measured.
        size: The sum of the counts; they are zero if nothing is uncertain.
    """
    counts = torch.zeros(len(usable), dtype=torch.long)
    stated = [(p, p.relaxed(usable, size)) for p in problems]
    uncertain = [(p, design) for p, design in stated if design is not None]
    if not uncertain:
        return counts
    own = [solved(design, TOLERANCE).weights for _, design in uncertain]

    def values(weights: Tensor) -> list[float]:
        return [
            p.unit / p.posterior.scale**2 * design_value(design, weights)
            for p, design in uncertain
        ]

    counts[usable] = round_design(mixed_weights(own, values), size, "quota")
    return counts
