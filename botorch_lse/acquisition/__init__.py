r"""BoTorch acquisition functions for level sets, with input constructors."""

from botorch_lse.acquisition.points import (
    ImplicitStraddle,
    LSEAmbiguity,
    LSEWidth,
    MaxVariance,
    Straddle,
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
    "ImplicitStraddle",
    "LSEAmbiguity",
    "LSEWidth",
    "MaxVariance",
    "Straddle",
    "qGEGE",
    "qHRAGE",
    "qMELK",
    "qMILK",
    "qNegMaxPosteriorVariance",
    "qTruVaR",
]
