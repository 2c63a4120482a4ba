r"""Confidence: posterior path, widths, intersected regions, classification."""

from botorch_lse.confidence.classify import classify, classify_implicit
from botorch_lse.confidence.regions import (
    EmptyRegionWarning,
    Regions,
    confidence_regions,
)
from botorch_lse.confidence.schedules import (
    BatchEta,
    BetaSchedule,
    ConstantBeta,
    UnionBeta,
    beta_schedule,
)
from botorch_lse.posterior import PosteriorPath

__all__ = [
    "BatchEta",
    "BetaSchedule",
    "ConstantBeta",
    "EmptyRegionWarning",
    "PosteriorPath",
    "Regions",
    "UnionBeta",
    "beta_schedule",
    "classify",
    "classify_implicit",
    "confidence_regions",
]
