r"""Strategies: ask which rows to measure, tell the results, read the answer."""

from typing import TYPE_CHECKING

from botorch_lse._lazy import lazy_names

if TYPE_CHECKING:
    from botorch_lse.confidence.audit import audit_size
    from botorch_lse.goals.base import Goal
    from botorch_lse.goals.classes import Classes
    from botorch_lse.goals.extremes import (
        Maximiser,
        MaximiserByPairs,
        ShareOfMax,
        ShareOfMaxByPairs,
    )
    from botorch_lse.goals.pareto import ParetoByDifferences, ParetoEstimate, ParetoSet
    from botorch_lse.goals.regions import (
        Above,
        And,
        Below,
        Between,
        Levels,
        Not,
        Or,
        Region,
    )
    from botorch_lse.models.outcomes import Binary, Counts, LogNormal, Ordinal
    from botorch_lse.rules.base import Rule, ScoreRule
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
    from botorch_lse.strategies.composed import ComposedStrategy
    from botorch_lse.strategies.criteria.content import (
        ContentKnown,
        ContentStop,
        MinimumU,
    )
    from botorch_lse.strategies.labels import LabelAudit, audit
    from botorch_lse.strategies.linear.algorithm import NoiseWarning
    from botorch_lse.strategies.linear.presets import (
        GEGELinearStrategy,
        HRAGELinearStrategy,
        LinearStrategy,
        MELKLinearStrategy,
        MILKLinearStrategy,
    )
    from botorch_lse.strategies.loop import SimulatedRun, State, Strategy
    from botorch_lse.strategies.pareto import GEGEStrategy
    from botorch_lse.strategies.presets import (
        GPStrategy,
        HRAGEStrategy,
        ImplicitLSEStrategy,
        ImplicitStraddleStrategy,
        LSEStrategy,
        MaxVarianceStrategy,
        MELKStrategy,
        MILKStrategy,
        RandomStrategy,
        StraddleStrategy,
        TruVaRStrategy,
    )
    from botorch_lse.strategies.rare import extended, rare_event
    from botorch_lse.surrogate.settings import GaussianProcess
else:
    # A run needs few of them, and to load them all takes a tenth of what BoTorch takes.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "composed": "ComposedStrategy",
            "criteria.content": "ContentKnown ContentStop MinimumU",
            "labels": "LabelAudit audit",
            "linear.presets": (
                "GEGELinearStrategy HRAGELinearStrategy LinearStrategy "
                "MELKLinearStrategy MILKLinearStrategy"
            ),
            "linear.algorithm": "NoiseWarning",
            "loop": "SimulatedRun State Strategy",
            "pareto": "GEGEStrategy",
            "presets": (
                "GPStrategy HRAGEStrategy ImplicitLSEStrategy "
                "ImplicitStraddleStrategy LSEStrategy MELKStrategy MILKStrategy "
                "MaxVarianceStrategy RandomStrategy StraddleStrategy TruVaRStrategy"
            ),
            "rare": "extended rare_event",
        },
        {
            "audit_size": "botorch_lse.confidence.audit",
            "Goal": "botorch_lse.goals.base",
            "Classes": "botorch_lse.goals.classes",
            "Maximiser": "botorch_lse.goals.extremes",
            "MaximiserByPairs": "botorch_lse.goals.extremes",
            "ShareOfMax": "botorch_lse.goals.extremes",
            "ShareOfMaxByPairs": "botorch_lse.goals.extremes",
            "ParetoByDifferences": "botorch_lse.goals.pareto",
            "ParetoEstimate": "botorch_lse.goals.pareto",
            "ParetoSet": "botorch_lse.goals.pareto",
            "Above": "botorch_lse.goals.regions",
            "And": "botorch_lse.goals.regions",
            "Below": "botorch_lse.goals.regions",
            "Between": "botorch_lse.goals.regions",
            "Levels": "botorch_lse.goals.regions",
            "Not": "botorch_lse.goals.regions",
            "Or": "botorch_lse.goals.regions",
            "Region": "botorch_lse.goals.regions",
            "Rule": "botorch_lse.rules.base",
            "ScoreRule": "botorch_lse.rules.base",
            "RowCosts": "botorch_lse.rules.costs",
            "OptimalDesign": "botorch_lse.rules.design",
            "AbsoluteVolumeChange": "botorch_lse.rules.lookahead",
            "ContentVariance": "botorch_lse.rules.lookahead",
            "ExpectedMisclassification": "botorch_lse.rules.lookahead",
            "LookAhead": "botorch_lse.rules.lookahead",
            "MutualInformation": "botorch_lse.rules.lookahead",
            "TargetedVariance": "botorch_lse.rules.lookahead",
            "Ambiguity": "botorch_lse.rules.scores",
            "ContourEntropy": "botorch_lse.rules.scores",
            "ExpectedFeasibility": "botorch_lse.rules.scores",
            "Random": "botorch_lse.rules.scores",
            "RandomizedStraddle": "botorch_lse.rules.scores",
            "RanjanImprovement": "botorch_lse.rules.scores",
            "Straddle": "botorch_lse.rules.scores",
            "UFunction": "botorch_lse.rules.scores",
            "Variance": "botorch_lse.rules.scores",
            "Width": "botorch_lse.rules.scores",
            "AlternatingRules": "botorch_lse.rules.switching",
            "FinalRuns": "botorch_lse.rules.switching",
            "MisclassificationProbability": "botorch_lse.rules.switching",
            "SwitchingRule": "botorch_lse.rules.switching",
            "TruncatedVariance": "botorch_lse.rules.truncated",
            "Binary": "botorch_lse.models.outcomes",
            "Counts": "botorch_lse.models.outcomes",
            "LogNormal": "botorch_lse.models.outcomes",
            "Ordinal": "botorch_lse.models.outcomes",
            "GaussianProcess": "botorch_lse.surrogate.settings",
        },
    )

__all__ = [
    "Above",
    "AbsoluteVolumeChange",
    "AlternatingRules",
    "Ambiguity",
    "And",
    "Below",
    "Between",
    "Binary",
    "Classes",
    "ComposedStrategy",
    "ContentKnown",
    "ContentStop",
    "ContentVariance",
    "ContourEntropy",
    "Counts",
    "ExpectedFeasibility",
    "ExpectedMisclassification",
    "FinalRuns",
    "GEGELinearStrategy",
    "GEGEStrategy",
    "GPStrategy",
    "GaussianProcess",
    "Goal",
    "HRAGELinearStrategy",
    "HRAGEStrategy",
    "ImplicitLSEStrategy",
    "ImplicitStraddleStrategy",
    "LSEStrategy",
    "LabelAudit",
    "Levels",
    "LinearStrategy",
    "LogNormal",
    "LookAhead",
    "MELKLinearStrategy",
    "MELKStrategy",
    "MILKLinearStrategy",
    "MILKStrategy",
    "MaxVarianceStrategy",
    "Maximiser",
    "MaximiserByPairs",
    "MinimumU",
    "MisclassificationProbability",
    "MutualInformation",
    "NoiseWarning",
    "Not",
    "OptimalDesign",
    "Or",
    "Ordinal",
    "ParetoByDifferences",
    "ParetoEstimate",
    "ParetoSet",
    "Random",
    "RandomStrategy",
    "RandomizedStraddle",
    "RanjanImprovement",
    "Region",
    "RowCosts",
    "Rule",
    "ScoreRule",
    "ShareOfMax",
    "ShareOfMaxByPairs",
    "SimulatedRun",
    "State",
    "Straddle",
    "StraddleStrategy",
    "Strategy",
    "SwitchingRule",
    "TargetedVariance",
    "TruVaRStrategy",
    "TruncatedVariance",
    "UFunction",
    "Variance",
    "Width",
    "audit",
    "audit_size",
    "extended",
    "rare_event",
]
