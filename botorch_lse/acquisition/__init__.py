r"""BoTorch acquisition functions for level sets, with input constructors."""

from botorch_lse.acquisition.points import (
    ContourEntropy,
    ExpectedFeasibility,
    ImplicitStraddle,
    LSEAmbiguity,
    LSEWidth,
    MaxVariance,
    RanjanImprovement,
    Straddle,
    UFunction,
)
from botorch_lse.acquisition.targets import (
    qGEGE,
    qHRAGE,
    qMELK,
    qMILK,
    qNegMaxPosteriorVariance,
    qTruVaR,
)

__all__ = [
    "ContourEntropy",
    "ExpectedFeasibility",
    "ImplicitStraddle",
    "LSEAmbiguity",
    "LSEWidth",
    "MaxVariance",
    "RanjanImprovement",
    "Straddle",
    "UFunction",
    "qGEGE",
    "qHRAGE",
    "qMELK",
    "qMILK",
    "qNegMaxPosteriorVariance",
    "qTruVaR",
]
