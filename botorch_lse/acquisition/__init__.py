r"""BoTorch acquisition functions for level sets, with input constructors."""

from botorch_lse._lazy import lazy_names
from botorch_lse.acquisition.answers import (
    BernoulliEAVC,
    BernoulliGlobalMI,
    BernoulliMisclassification,
    BernoulliStraddle,
)
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
    qEAVC,
    qExpectedMisclassification,
    qGEGE,
    qGlobalMI,
    qHRAGE,
    qMELK,
    qMILK,
    qNegMaxPosteriorVariance,
    qTargetedIMSE,
    qTruVaR,
)

__all__ = [
    "BernoulliEAVC",
    "BernoulliGlobalMI",
    "BernoulliMisclassification",
    "BernoulliStraddle",
    "ContourEntropy",
    "ExpectedFeasibility",
    "ImplicitStraddle",
    "LSEAmbiguity",
    "LSEWidth",
    "MaxVariance",
    "RanjanImprovement",
    "Straddle",
    "UFunction",
    "qEAVC",
    "qExpectedMisclassification",
    "qGEGE",
    "qGlobalMI",
    "qHRAGE",
    "qMELK",
    "qMILK",
    "qNegMaxPosteriorVariance",
    "qTargetedIMSE",
    "qTruVaR",
]

# All names are here; what is not is looked for in the other packages.
__getattr__, __dir__ = lazy_names(__name__, {})
