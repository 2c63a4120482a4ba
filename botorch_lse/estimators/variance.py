r"""Noise variances that are a quadratic form of the features, ``s2_x = x' Sigma x``.

This module estimates them (HEAD, by Weltz et al. 2023), and says where to measure in
order to learn them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import in_interval, real_matrix, whole_number
from botorch_lse.designs import Design, optimal_design, round_design
from botorch_lse.designs.basis import spanning_rows
from botorch_lse.estimators.least_squares import (
    ArmStatistics,
    LeastSquares,
    weighted_least_squares,
)

DESIGN_TOLERANCE = 1e-2
"""The relative gap of HEAD's designs: rounding to whole counts costs more than that."""


@dataclass(frozen=True, eq=False)
class VarianceEstimate:
    r"""The noise of every arm, and the data of its estimate.

    Args:
        theta: ``d`` coefficients of the mean; ``None`` if no linear mean was fitted.
        Sigma: ``d x d``, symmetric; where the arms do not determine it, the one with
            the shortest upper triangle. ``x' Sigma x`` is unique on the arms.
        variances: ``N`` noise variances, units of ``y`` squared, within the bounds.
    """

    theta: Tensor | None
    Sigma: Tensor
    variances: Tensor


def quadratic_features(X: Tensor) -> Tensor:
    r"""The features ``phi_x`` with ``x' Sigma x = phi_x' vech(Sigma)``.

    Args:
        X: ``N x d``.

    Returns:
        ``N x d (d + 1) / 2``: squares, and twice the products, in the order of the
        upper triangle.

    Source:
        Weltz et al. (2023), section 3, Notation.
    """
    i, j = torch.triu_indices(X.shape[-1], X.shape[-1])
    return X[:, i] * X[:, j] * torch.where(i == j, 1.0, 2.0).to(X)


def head(
    X: Any, indices1: Any, y1: Any, indices2: Any, y2: Any, bounds: Any = None
) -> VarianceEstimate:
    r"""HEAD: variances by least squares from the residuals of an independent fit.

    The first measurements give ``theta``, the squared residuals of the second
    ``Sigma``. ``head_designs`` says where to measure.

    Example:
        >>> X = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> found = head(X, [0, 1], [1.0, 2.0], [0, 0, 1], [0.0, 2.0, 5.0])
        >>> found.theta.round(decimals=6).tolist()
        [1.0, 2.0]
        >>> found.variances.round(decimals=6).tolist()
        [1.0, 9.0]

    Args:
        X: ``N x d`` features of the arms.
        indices1: The arms of the first stage, one entry per measurement.
        y1: Their values.
        indices2: The arms of the second stage.
        y2: Their values.
        bounds: The least and the largest variance; ``None`` leaves the estimates as
            they are, even negative.

    Raises:
        ValueError: If a row is not an arm, a number not finite, or the bounds are not
            ``0 < least <= largest``.
        BotorchTensorDimensionError: If lengths differ.

    Source:
        Weltz et al. (2023), Algorithm 1. Deviation: solved on the span of the
        features, so that fewer than ``d (d + 1) / 2`` different arms will do.
    """
    X = real_matrix(X, "X")
    first = ArmStatistics.of_values(indices1, y1, len(X))
    second = ArmStatistics.of_values(indices2, y2, len(X))
    return head_from_arms(X, first, second, bounds)


def head_from_arms(
    X: Tensor, first: ArmStatistics, second: ArmStatistics, bounds: Any = None
) -> VarianceEstimate:
    r"""The result of ``head`` from sufficient statistics, whatever the sample size."""
    theta = first.fit(X).theta
    return variances_from_residuals(
        X, theta, second, second.squared_residuals(X @ theta), bounds
    )


def variance_bounds(bounds: Any, name: str = "bounds") -> tuple[float, float]:
    r"""The ``bounds`` as the least and the largest variance.

    Args:
        bounds: Two numbers.
        name: The argument's name.

    Raises:
        ValueError: If they are not two numbers, or not ``0 < least <= largest``.
    """
    try:
        least, largest = bounds
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Expected `{name}` to be the least and the largest variance, but got "
            f"{bounds!r}."
        ) from error
    least = in_interval(least, f"{name}[0]", 0.0, math.inf)
    return least, in_interval(largest, f"{name}[1]", least, math.inf, closed_low=True)


def variances_from_residuals(
    X: Tensor, theta: Tensor | None, data: ArmStatistics, squares: Tensor, bounds: Any
) -> VarianceEstimate:
    r"""The matrix ``Sigma``, by least squares from each arm's mean squared residual.

    Args:
        X: ``N x d`` features of the arms.
        theta: What the residuals were formed with, if a linear mean was fitted.
        data: How often each arm was measured.
        squares: ``N`` means of squared residuals.
        bounds: The least and the largest variance, or ``None``.
    """
    measured = data.counts > 0
    fit: LeastSquares = weighted_least_squares(
        quadratic_features(X)[measured], squares[measured], data.counts[measured]
    )
    d = X.shape[-1]
    i, j = torch.triu_indices(d, d)
    Sigma = torch.zeros(d, d, dtype=X.dtype)
    Sigma[i, j] = fit.theta
    Sigma[j, i] = fit.theta
    variances = quadratic_features(X) @ fit.theta
    if bounds is not None:
        variances = variances.clamp(*variance_bounds(bounds))
    return VarianceEstimate(theta, Sigma, variances)


@dataclass(frozen=True, eq=False)
class HeadDesigns:
    r"""The designs of HEAD's two stages: for the mean, then for the variances.

    Args:
        theta: The G-optimal design for the mean.
        Sigma: The G-optimal design for the variances, on ``quadratic_features``.
    """

    theta: Design
    Sigma: Design

    @property
    def least(self) -> int:
        r"""The smallest budget: twice the number of arms of the larger design."""
        return 2 * max(self.theta.support.numel(), self.Sigma.support.numel())

    def counts(self, budget: int) -> tuple[Tensor, Tensor]:
        r"""The counts of each stage (``N``), which sum to ``budget`` together.

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


def head_designs(X: Any, tol: float = DESIGN_TOLERANCE) -> HeadDesigns:
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
    r"""The number ``ceil(16 kappa^2 h 2 log(4 N / delta))`` of measurements for HEAD.

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
