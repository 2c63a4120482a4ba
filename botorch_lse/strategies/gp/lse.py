r"""LSE and LSE_imp, sequential and in batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.checks import truth_value
from botorch_lse.functional.scores import ambiguity, interval
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.goals import Goal, ImplicitGoal
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.gp.belief import Belief


@dataclass(frozen=True, eq=False)
class LSEStrategy(GPStrategy):
    r"""Measure the most ambiguous undecided row of intersected confidence regions.

    In batches (LSE_batch) planned rows shrink ``sigma`` and leave ``mean``; the
    regions that result choose the next row and are then forgotten. Regions are
    intersected and rows classified once per complete round, where the width of
    Theorem 1 holds as it stands (``t`` counts rounds). Arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), Algorithm 1; Algorithm 3 with erratum 6
        (papers/gotovos2013/errata.md). The letter of Algorithm 3 is
        ``LSELiteralBatchStrategy``.
    """

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        lower, upper = self._batch_regions(belief, posterior)
        return ambiguity(lower, upper, self.goal.level(posterior.mean))

    def _batch_regions(
        self, belief: Belief, posterior: PoolPosterior
    ) -> tuple[Tensor, Tensor]:
        beta = self._beta(belief.n_intervals, posterior)
        lower, upper = interval(posterior.mean, posterior.sigma, beta)
        regions = belief.regions
        return torch.maximum(regions.lower, lower), torch.minimum(regions.upper, upper)

    def _open_rows(self, belief: Belief) -> Tensor:
        everything = super()._open_rows(belief)
        return everything if self._is_initial(belief) else belief.sides.candidates


@dataclass(frozen=True, eq=False)
class ImplicitLSEStrategy(LSEStrategy):
    r"""LSE for the level ``omega max f``: measure the widest region among the rows that
    are undecided or may be the maximiser.

    Args:
        drop_maximisers: Whether decided rows are left alone once they cannot be the
            maximiser any more (the paper's text); by default they stay candidates (its
            pseudocode). Other arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), Algorithm 2, with errata 4 and 5
        (papers/gotovos2013/errata.md).
    """

    drop_maximisers: bool = False

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    def __post_init__(self) -> None:
        super().__post_init__()
        truth_value(self.drop_maximisers, "drop_maximisers")

    @cached_property
    def goal(self) -> Goal:
        r"""The implicit level."""
        return ImplicitGoal(
            float(self.omega or 0.0), self.epsilon, self.drop_maximisers
        )

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        lower, upper = self._batch_regions(belief, posterior)
        return upper - lower
