r"""BoTorch acquisition functions for level sets, with input constructors."""

from botorch_lse.acquisition import input_constructors as _registered  # noqa: F401
from botorch_lse.acquisition.design import (
    qGEGE,
    qHRAGE,
    qMELK,
    qMILK,
    qNegMaxPosteriorVariance,
)
from botorch_lse.acquisition.regions import LSEAmbiguity, LSEWidth
from botorch_lse.acquisition.straddle import ImplicitStraddle, MaxVariance, Straddle
from botorch_lse.acquisition.truvar import qTruVaR

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
