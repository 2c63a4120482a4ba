r"""Strategies: ask which rows to measure, tell what came out, read the answer."""

from typing import TYPE_CHECKING

from botorch_lse._lazy import lazy_names

if TYPE_CHECKING:
    from botorch_lse.confidence.audit import audit_size
    from botorch_lse.strategies.composed import ComposedStrategy
    from botorch_lse.strategies.costs import RowCosts
    from botorch_lse.strategies.goals import (
        Above,
        And,
        Below,
        Between,
        Goal,
        Levels,
        Maximiser,
        MaximiserByPairs,
        Not,
        Or,
        Region,
        ShareOfMax,
        ShareOfMaxByPairs,
    )
    from botorch_lse.strategies.hybrid import FinalRuns, MisclassificationProbability
    from botorch_lse.strategies.labels import LabelAudit, audit
    from botorch_lse.strategies.linear.presets import (
        GEGELinearStrategy,
        HRAGELinearStrategy,
        LinearStrategy,
        MELKLinearStrategy,
        MILKLinearStrategy,
    )
    from botorch_lse.strategies.linear.procedure import NoiseWarning
    from botorch_lse.strategies.lookahead import (
        AbsoluteVolumeChange,
        ContentVariance,
        ExpectedMisclassification,
        LookAhead,
        MutualInformation,
        TargetedVariance,
        TruncatedVariance,
    )
    from botorch_lse.strategies.loop import SimulatedRun, State, Strategy
    from botorch_lse.strategies.pareto import (
        GEGEStrategy,
        ParetoByDifferences,
        ParetoEstimate,
        ParetoSet,
    )
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
    from botorch_lse.strategies.processes import GaussianProcess
    from botorch_lse.strategies.rare import extended, rare_event
    from botorch_lse.strategies.rules import (
        Ambiguity,
        ContourEntropy,
        ExpectedFeasibility,
        OptimalDesign,
        Random,
        RandomizedStraddle,
        RanjanImprovement,
        Rule,
        ScoreRule,
        Straddle,
        UFunction,
        Variance,
        Width,
    )
    from botorch_lse.strategies.stops import (
        ContentKnown,
        ContentStop,
        MinimumU,
    )
    from botorch_lse.strategies.turns import AlternatingRules, SwitchingRule
else:
    # A run needs few of them, and to load them all takes a tenth of what BoTorch takes.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "composed": "ComposedStrategy",
            "costs": "RowCosts",
            "goals": (
                "Above And Below Between Goal Levels Maximiser MaximiserByPairs Not Or "
                "Region ShareOfMax ShareOfMaxByPairs"
            ),
            "hybrid": "MisclassificationProbability FinalRuns",
            "labels": "LabelAudit audit",
            "linear.presets": (
                "GEGELinearStrategy HRAGELinearStrategy LinearStrategy "
                "MELKLinearStrategy MILKLinearStrategy"
            ),
            "linear.procedure": "NoiseWarning",
            "lookahead": (
                "AbsoluteVolumeChange ContentVariance ExpectedMisclassification "
                "LookAhead MutualInformation TargetedVariance TruncatedVariance"
            ),
            "loop": "SimulatedRun State Strategy",
            "pareto": ("GEGEStrategy ParetoByDifferences ParetoEstimate ParetoSet"),
            "presets": (
                "GPStrategy HRAGEStrategy ImplicitLSEStrategy "
                "ImplicitStraddleStrategy LSEStrategy MaxVarianceStrategy MELKStrategy "
                "MILKStrategy RandomStrategy StraddleStrategy TruVaRStrategy"
            ),
            "processes": "GaussianProcess",
            "rare": "extended rare_event",
            "rules": (
                "Ambiguity ContourEntropy OptimalDesign ExpectedFeasibility Random "
                "RandomizedStraddle RanjanImprovement Rule ScoreRule Straddle "
                "UFunction Variance Width"
            ),
            "stops": ("ContentKnown ContentStop MinimumU"),
            "turns": "SwitchingRule AlternatingRules",
        },
        {"audit_size": "botorch_lse.confidence.audit"},
    )

__all__ = [
    "Above",
    "AbsoluteVolumeChange",
    "AlternatingRules",
    "Ambiguity",
    "And",
    "Below",
    "Between",
    "ComposedStrategy",
    "ContentKnown",
    "ContentStop",
    "ContentVariance",
    "ContourEntropy",
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
