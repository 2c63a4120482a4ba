r"""MILK to the letter of the paper."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse._validation import whole_number
from botorch_lse.confidence.classify import ratio
from botorch_lse.data.observations import Observations
from botorch_lse.designs import Design, optimal_design
from botorch_lse.goals.extremes import eliminate_pairs, pair_targets
from botorch_lse.goals.gaps import likely_gaps
from botorch_lse.models.gaussian_process import MEMORY_BUDGET
from botorch_lse.papers.mason2022.base import (
    DESIGN_TOLERANCE,
    PACBelief,
    PACQuestion,
    PACStrategy,
    RIPSRounds,
)
from botorch_lse.papers.mason2022.rips import is_spanned

BYTES_OF_A_PAIR = 90
"""The memory that a first round takes for each pair at its peak, in bytes.
Two row numbers, a bound, an estimate, a scale of it, and temporaries of these."""


@dataclass(frozen=True, eq=False)
class ShareQuestion(PACQuestion):
    r"""The question which rows lie above a share of the maximum, a row as well.

    Args:
        rounds: The rounds that tell.
        omega: The share.
    """

    rounds: RIPSRounds
    omega: float

    def everything(self) -> Tensor:
        r"""The initial pairs in question: all ordered ones."""
        N = self.rounds.N
        return torch.ones(N, N, dtype=torch.bool)

    def design(self, belief: PACBelief) -> Design:
        r"""The design for the pairs that are left."""
        targets = pair_targets(belief.active, self.omega)
        return optimal_design(
            self.rounds.Phi,
            targets.rows,
            gamma=self.rounds.gamma,
            target_weights=targets.weights,
            pairs_factor=self.omega,
            tol=DESIGN_TOLERANCE,
        )

    def eliminate(self, belief: PACBelief, new: Observations) -> PACBelief:
        r"""Lines 8 to 16 of Algorithm 2."""
        every = torch.arange(self.rounds.N)
        i, j = belief.active.nonzero().unbind(dim=-1)
        found = self.rounds.estimated(belief, new, every, (i, j, self.omega))
        open_ = belief.active.any(dim=0) | belief.active.any(dim=1)
        rows = open_.nonzero().view(-1)
        if self.rounds.gamma == 0 and belief.design is not None:
            # A design for few pairs need not span single rows: these keep what they had
            rows = rows[
                is_spanned(
                    self.rounds.Phi[rows], self.rounds.Phi, belief.design.weights
                )
            ]
        estimate = belief.estimate
        if rows.numel():
            single = self.rounds.estimated(belief, new, rows)
            estimate = self.rounds.updated(belief, rows, single, len(new))
        return replace(self._judged(belief, i, j, found.means), estimate=estimate)

    def foreseen(self, belief: PACBelief) -> PACBelief:
        r"""The judgement by the gaps that the estimates in hand make likely."""
        i, j = belief.active.nonzero().unbind(dim=-1)
        mean, sigma = belief.estimate.mean, belief.estimate.sigma
        difference = mean[i] - self.omega * mean[j]
        deviation = torch.hypot(sigma[i], self.omega * sigma[j])
        return self._judged(belief, i, j, likely_gaps(difference, deviation))

    def _judged(
        self, belief: PACBelief, i: Tensor, j: Tensor, values: Tensor
    ) -> PACBelief:
        r"""The sides after the pairs ``(i, j)``, with values ``f(x) - omega f(x')``."""
        width = self.rounds.width(belief.t)
        certain, refuted = (torch.zeros_like(belief.active) for _ in range(2))
        refuted[i, j] = values < -width
        certain[i, j] = values > width
        active, side = eliminate_pairs(belief.active, belief.side, certain, refuted)
        return replace(belief, t=belief.t + 1, side=side, active=active)

    def level(self, mean: Tensor) -> float:
        r"""A share of the largest estimate."""
        return self.omega * float(mean.max())


@dataclass(frozen=True, eq=False)
class MILKPACStrategy(PACStrategy):
    r"""MILK to the letter: a guarantee without a prior, in large rounds.

    Arguments: ``omega``, the level as a share of the maximum, in (0, 1) (the paper's
    epsilon is ``1 - omega``), and ``memory_budget``; else see ``PACStrategy``. The
    maximum must not be negative. A round lists its open pairs of rows, as the paper
    does, with bounds and estimates of each: 0.8 GB for 3,000 rows. More than fit the
    budget, 3,454 rows of the default one, are refused.

    Example:
        >>> import torch
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.eye(2, dtype=torch.float64))
        >>> strategy = MILKPACStrategy(pool, omega=0.5, bound=1.0, noise_std=1.0)
        >>> strategy.init().round
        0

    Raises:
        ValueError: If the pairs do not fit ``memory_budget``; else as ``PACStrategy``.

    Source:
        Mason et al. (2022), Algorithm 2, with errata 1 to 5
        (papers/mason2022/errata.md).
    """

    _: KW_ONLY
    omega: float
    memory_budget: int = MEMORY_BUDGET

    theorem: ClassVar[str] = "Theorem 4.3"

    def __post_init__(self) -> None:
        super().__post_init__()
        ratio(self.omega)
        budget, n = whole_number(self.memory_budget, "memory_budget", 1), len(self.pool)
        needed = BYTES_OF_A_PAIR * n**2
        if needed > budget:
            raise ValueError(
                f"Expected rows whose pairs fit `memory_budget` = {budget} bytes, but "
                f"{n} need {needed}. Give a larger budget or fewer rows; "
                "`MILKLinearStrategy` answers this question without a list of pairs."
            )

    @cached_property
    def question(self) -> ShareQuestion:
        r"""The question that the strategy decides."""
        return ShareQuestion(self.rounds, float(self.omega))
