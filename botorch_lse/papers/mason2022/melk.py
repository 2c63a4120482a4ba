r"""MELK to the letter of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.checks import finite_number
from botorch_lse.confidence.classify import UNDECIDED
from botorch_lse.designs import Design, optimal_design
from botorch_lse.papers.fixed_confidence import eliminate_rows
from botorch_lse.papers.mason2022.base import (
    DESIGN_TOLERANCE,
    PACBelief,
    PACStrategy,
)
from botorch_lse.problem import Observations
from botorch_lse.strategies.forecast import likely_gaps


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

    def _everything(self) -> Tensor:
        return torch.ones(len(self.pool), dtype=torch.bool)

    def _design(self, belief: PACBelief) -> Design:
        return optimal_design(
            self.Phi, belief.active, gamma=self.gamma, tol=DESIGN_TOLERANCE
        )

    def _eliminate(self, belief: PACBelief, new: Observations) -> PACBelief:
        rows = belief.active.nonzero().view(-1)
        found = self._estimated(belief, new, rows)
        side = eliminate_rows(
            belief.side, rows, found.means, self.threshold, self.width(belief.t)
        )
        return replace(
            belief,
            t=belief.t + 1,
            side=side,
            active=side == UNDECIDED,
            estimate=self._updated(belief, rows, found, len(new)),
        )

    def _foreseen(self, belief: PACBelief) -> PACBelief:
        rows, estimate = belief.active.nonzero().view(-1), belief.estimate
        difference = estimate.mean[rows] - self.threshold
        gaps = likely_gaps(difference, estimate.sigma[rows])
        side = eliminate_rows(belief.side, rows, gaps, 0.0, self.width(belief.t))
        return replace(belief, t=belief.t + 1, side=side, active=side == UNDECIDED)

    def _level(self, mean: Tensor) -> float:
        return float(self.threshold)
