r"""MELK: level sets of a known level, in batches from an optimal design."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.checks import finite_number
from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.designs import Design, optimal_design
from botorch_lse.problem import Observations
from botorch_lse.strategies.design import DesignStrategy, PlanningProblem
from botorch_lse.strategies.forecast import squared_gaps
from botorch_lse.strategies.gp import Belief
from botorch_lse.strategies.pac import DESIGN_TOLERANCE, PACStrategy
from botorch_lse.strategies.pac_rounds import PACBelief


@dataclass(frozen=True, eq=False)
class MELKStrategy(DesignStrategy):
    r"""MELK on a Gaussian process: a batch makes the worst variance of the undecided
    rows small.

    In each round the whole batch comes from the optimal design for the undecided rows;
    rows are classified by the current posterior interval (not intersected), and what is
    decided stays decided. Arguments: see ``DesignStrategy``.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> pool = Pool(torch.linspace(0, 10, 21).unsqueeze(-1))
        >>> strategy = MELKStrategy(
        ...     pool, 0.5, model=RBFKernel().double(), noise_std=0.1, batch_size=7
        ... )
        >>> strategy.ask(strategy.init()).counts.tolist()
        [1, 1, 1, 1, 1, 1, 1]

    Source:
        Mason et al. (2022), Algorithm 1 in the form of section 5 and Appendix F.1.
        Deviations: the design is that of the posterior (``design``), rounded by quota
        (``rounding``); the paper's are the options.
    """

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    def _targets(self, belief: Belief) -> PlanningProblem:
        return PlanningProblem((belief.sides.side == UNDECIDED).nonzero().view(-1))

    def _gaps(self, belief: Belief) -> PlanningProblem:
        rows = self._targets(belief).rows
        posterior, level = belief.posterior, float(self.threshold or 0.0)
        difference, variance = posterior.mean[rows] - level, posterior.variance[rows]
        return PlanningProblem(
            rows, 1 / squared_gaps(difference, variance, self.epsilon)
        )


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
        Mason et al. (2022), Algorithm 1, with errata 1 to 5.
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

    def _level(self, mean: Tensor) -> float:
        return float(self.threshold)


def eliminate_rows(
    side: Tensor, rows: Tensor, values: Tensor, threshold: float, width: float
) -> Tensor:
    r"""The sides after one round of MELK.

    Args:
        side: ``N`` codes.
        rows: The active rows.
        values: Their estimates, units of ``y``.
        threshold: The level.
        width: ``2 2^-t``.

    Source:
        Mason et al. (2022), Algorithm 1, lines 9 to 15; both tests are strict.
    """
    below = values < threshold - width
    above = ~below & (values > threshold + width)
    side = side.clone()
    side[rows[below]], side[rows[above]] = BELOW, ABOVE
    return side
