r"""Where to measure in order to learn the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from botorch_lse.checks import in_interval, real_matrix, whole_number
from botorch_lse.designs import Design, optimal_design, round_design
from botorch_lse.designs.basis import spanning_rows
from botorch_lse.estimators.variance import quadratic_features, variance_bounds

TOLERANCE = 1e-2


@dataclass(frozen=True, eq=False)
class HeadDesigns:
    r"""HEAD's two stages.

    Args:
        theta: The G-optimal design for the mean.
        Sigma: The G-optimal design for the variances, on ``quadratic_features``.
    """

    theta: Design
    Sigma: Design

    @property
    def least(self) -> int:
        r"""Twice the arms of the larger design: the smallest budget of both."""
        return 2 * max(self.theta.support.numel(), self.Sigma.support.numel())

    def counts(self, budget: int) -> tuple[Tensor, Tensor]:
        r"""``N`` counts of each stage, which sum to ``budget`` together.

        Args:
            budget: All measurements; the first stage has the smaller half.

        Raises:
            ValueError: If a stage cannot measure each arm of its design once.
        """
        budget = whole_number(budget, "budget", 2)
        if budget < self.least:
            raise ValueError(
                f"Expected `budget` of at least {self.least}, twice the arms of the "
                f"larger design, but got {budget}."
            )
        first = round_design(self.theta.weights, budget // 2, "pukelsheim")
        rest = budget - budget // 2
        return first, round_design(self.Sigma.weights, rest, "pukelsheim")


def head_designs(X: Any, tol: float = TOLERANCE) -> HeadDesigns:
    r"""The G-optimal designs of HEAD.

    Example:
        >>> plan = head_designs(torch.eye(2))
        >>> [stage.tolist() for stage in plan.counts(20)]
        [[5, 5], [5, 5]]

    Args:
        X: ``N x d`` features of the arms.
        tol: How far the designs may be from optimal, relatively.

    Source:
        Weltz et al. (2023), Algorithm 1, stages 1 and 2. Deviation: efficient rounding,
        which keeps the budget; the first ``ceil`` as printed exceeds it, erratum 3
        (papers/weltz2023/errata.md).
    """
    X = real_matrix(X, "X")
    return HeadDesigns(
        optimal_design(X, tol=tol), optimal_design(quadratic_features(X), tol=tol)
    )


def burn_in_size(X: Any, bounds: Any, delta: float) -> int:
    r"""``ceil(16 kappa^2 h 2 log(4 N / delta))`` measurements for HEAD.

    ``kappa`` is the ratio of the bounds and ``h`` the rank of the quadratic features.
    The standard deviation of an arm's estimate is at most ``2 s2_max sqrt(h / Gamma)``;
    with this size Gaussian tails of it leave ``s2_min / 2`` at some arm with
    probability ``delta / 2`` at most. A practical choice: the estimates are not quite
    Gaussian, and the theorem's own constants ask for far more.

    Args:
        X: ``N x d`` features of the arms.
        bounds: The least and the largest noise variance.
        delta: The failure probability.

    Source:
        The scaling ``kappa^2 h log(N / delta)`` of Weltz et al. (2023), Appendix D; the
        constant is own, because the paper does not say what its experiments used.
    """
    X = real_matrix(X, "X")
    least, largest = variance_bounds(bounds)
    delta = in_interval(delta, "delta", 0.0, 1.0)
    rank = spanning_rows(quadratic_features(X)).numel()
    share = 2 * math.log(4 * len(X) / delta)
    return math.ceil(16 * (largest / least) ** 2 * rank * share)
