r"""Confidence: widths of intervals, intersected regions, and classification."""

from botorch_lse.confidence.anytime import (
    AnytimeWidth,
    BatchMartingale,
    Information,
    RKHSWidth,
    StitchedWidth,
)
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
from botorch_lse.models.gaussian_process import PosteriorPath

__all__ = [
    "AnytimeWidth",
    "BatchEta",
    "BatchMartingale",
    "BetaSchedule",
    "ConstantBeta",
    "EmptyRegionWarning",
    "Information",
    "PosteriorPath",
    "RKHSWidth",
    "Regions",
    "StitchedWidth",
    "UnionBeta",
    "beta_schedule",
    "classify",
    "classify_implicit",
    "confidence_regions",
]
