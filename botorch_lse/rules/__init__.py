r"""Rules: which rows to measure next."""

from typing import TYPE_CHECKING

from botorch_lse._lazy import lazy_names

if TYPE_CHECKING:
    from botorch_lse.data.requests import PlanRequest
    from botorch_lse.rules.base import (
        IntervalPolicy,
        Moments,
        Rule,
        ScoreRule,
        SelectionContext,
        Serves,
        largest_score,
    )
    from botorch_lse.rules.costs import RowCosts
    from botorch_lse.rules.design import OptimalDesign
    from botorch_lse.rules.lookahead import (
        AbsoluteVolumeChange,
        ContentVariance,
        ExpectedMisclassification,
        LookAhead,
        MutualInformation,
        TargetedVariance,
    )
    from botorch_lse.rules.scores import (
        Ambiguity,
        ContourEntropy,
        ExpectedFeasibility,
        Random,
        RandomizedStraddle,
        RanjanImprovement,
        Straddle,
        UFunction,
        Variance,
        Width,
    )
    from botorch_lse.rules.switching import (
        AlternatingRules,
        FinalRuns,
        MisclassificationProbability,
        SwitchingRule,
    )
    from botorch_lse.rules.truncated import TruncatedVariance
else:
    # A run needs few of them.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": (
                "IntervalPolicy Moments Rule ScoreRule SelectionContext Serves "
                "largest_score"
            ),
            "costs": "RowCosts",
            "design": "OptimalDesign",
            "lookahead": (
                "AbsoluteVolumeChange ContentVariance ExpectedMisclassification "
                "LookAhead MutualInformation TargetedVariance"
            ),
            "scores": (
                "Ambiguity ContourEntropy ExpectedFeasibility Random "
                "RandomizedStraddle RanjanImprovement Straddle UFunction Variance "
                "Width"
            ),
            "switching": (
                "AlternatingRules FinalRuns MisclassificationProbability SwitchingRule"
            ),
            "truncated": "TruncatedVariance",
        },
        {
            "PlanRequest": "botorch_lse.data.requests",
        },
    )

__all__ = [
    "AbsoluteVolumeChange",
    "AlternatingRules",
    "Ambiguity",
    "ContentVariance",
    "ContourEntropy",
    "ExpectedFeasibility",
    "ExpectedMisclassification",
    "FinalRuns",
    "IntervalPolicy",
    "LookAhead",
    "MisclassificationProbability",
    "Moments",
    "MutualInformation",
    "OptimalDesign",
    "PlanRequest",
    "Random",
    "RandomizedStraddle",
    "RanjanImprovement",
    "RowCosts",
    "Rule",
    "ScoreRule",
    "SelectionContext",
    "Serves",
    "Straddle",
    "SwitchingRule",
    "TargetedVariance",
    "TruncatedVariance",
    "UFunction",
    "Variance",
    "Width",
    "largest_score",
]
