r"""Estimators for designed experiments: least squares, and variances of the noise."""

from botorch_lse.estimators.least_squares import (
    ArmStatistics,
    LeastSquares,
    weighted_least_squares,
)
from botorch_lse.estimators.variance import (
    HeadDesigns,
    VarianceEstimate,
    burn_in_size,
    head,
    head_designs,
    head_from_arms,
    quadratic_features,
)

__all__ = [
    "ArmStatistics",
    "HeadDesigns",
    "LeastSquares",
    "VarianceEstimate",
    "burn_in_size",
    "head",
    "head_designs",
    "head_from_arms",
    "quadratic_features",
    "weighted_least_squares",
]
