r"""MELK to the letter of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse._validation import finite_number
from botorch_lse.confidence.classify import UNDECIDED
from botorch_lse.data.observations import Observations
from botorch_lse.designs import Design, optimal_design
from botorch_lse.goals.gaps import likely_gaps
from botorch_lse.papers.fixed_confidence import eliminate_rows
from botorch_lse.papers.mason2022.base import (
    DESIGN_TOLERANCE,
    PACBelief,
    PACQuestion,
    PACStrategy,
    RIPSRounds,
)


@dataclass(frozen=True, eq=False)
class LevelQuestion(PACQuestion):
    r"""The question which rows lie above a threshold.

    Args:
        rounds: The rounds that tell.
        threshold: The level, units of ``y``.
    """

    rounds: RIPSRounds
    threshold: float

    def everything(self) -> Tensor:
        r"""The initial rows in question: all of them."""
        return torch.ones(self.rounds.N, dtype=torch.bool)

    def design(self, belief: PACBelief) -> Design:
        r"""The design for the rows that are left."""
        return optimal_design(
            self.rounds.Phi,
            belief.active,
            gamma=self.rounds.gamma,
            tol=DESIGN_TOLERANCE,
        )

    def eliminate(self, belief: PACBelief, new: Observations) -> PACBelief:
        r"""Lines 8 to 16 of Algorithm 1."""
        rows = belief.active.nonzero().view(-1)
        found = self.rounds.estimated(belief, new, rows)
        side = eliminate_rows(
            belief.side, rows, found.means, self.threshold, self.rounds.width(belief.t)
        )
        return replace(
            belief,
            t=belief.t + 1,
            side=side,
            active=side == UNDECIDED,
            estimate=self.rounds.updated(belief, rows, found, len(new)),
        )

    def foreseen(self, belief: PACBelief) -> PACBelief:
        r"""The judgement by the gaps that the estimates in hand make likely."""
        rows, estimate = belief.active.nonzero().view(-1), belief.estimate
        difference = estimate.mean[rows] - self.threshold
        gaps = likely_gaps(difference, estimate.sigma[rows])
        side = eliminate_rows(belief.side, rows, gaps, 0.0, self.rounds.width(belief.t))
        return replace(belief, t=belief.t + 1, side=side, active=side == UNDECIDED)

    def level(self, mean: Tensor) -> float:
        r"""The level: a stated threshold, whatever the mean."""
        return self.threshold


@dataclass(frozen=True, eq=False)
class MELKPACStrategy(PACStrategy):
    r"""MELK to the letter: a guarantee without a prior, in large rounds.

    Arguments: ``threshold``, the level, units of ``y``; else see ``PACStrategy``.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = MELKPACStrategy(pool, 0.5, bound=1.0, noise_std=1.0, delta=0.1)
        >>> len(strategy.ask(strategy.init()))
        1122

    Source:
        Mason et al. (2022), Algorithm 1, with errata 1 to 5
        (papers/mason2022/errata.md).
    """

    threshold: float

    theorem: ClassVar[str] = "Theorem 3.3"

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number(self.threshold, "threshold")

    @cached_property
    def question(self) -> LevelQuestion:
        r"""The question that the strategy decides."""
        return LevelQuestion(self.rounds, float(self.threshold))
