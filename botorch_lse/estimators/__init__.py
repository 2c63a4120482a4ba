r"""Estimators for designed experiments: least squares, and variances of the noise."""

from typing import TYPE_CHECKING

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
from botorch_lse.moved import lookup

if TYPE_CHECKING:
    from botorch_lse.papers.kone2025 import ArmTotals, LinearFit, span_least_squares
    from botorch_lse.papers.mason2022 import (
        RIPSEstimate,
        catoni_alpha,
        catoni_mean,
        catoni_width,
        rips_projection,
    )
    from botorch_lse.papers.mason2022.rips import rips
    from botorch_lse.papers.weltz2023 import (
        separate_arm_variance,
        separate_arms,
        separate_from_arms,
        uniform_from_arms,
        uniform_variance,
    )
else:
    __getattr__, __dir__ = lookup(__name__)

__all__ = [
    "ArmStatistics",
    "ArmTotals",
    "HeadDesigns",
    "LeastSquares",
    "LinearFit",
    "RIPSEstimate",
    "VarianceEstimate",
    "burn_in_size",
    "catoni_alpha",
    "catoni_mean",
    "catoni_width",
    "head",
    "head_designs",
    "head_from_arms",
    "quadratic_features",
    "rips",
    "rips_projection",
    "separate_arm_variance",
    "separate_arms",
    "separate_from_arms",
    "span_least_squares",
    "uniform_from_arms",
    "uniform_variance",
    "weighted_least_squares",
]
