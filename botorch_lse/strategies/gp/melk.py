r"""MELK on a Gaussian process: level sets of a known level, in designed batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from botorch_lse.confidence.classify import UNDECIDED
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.design import DesignStrategy
from botorch_lse.strategies.planning import PlanningProblem


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
