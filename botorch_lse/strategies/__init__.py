r"""Strategies: ask which rows to measure, tell what came out, read the answer."""

from typing import TYPE_CHECKING

from botorch_lse.confidence.audit import audit_size
from botorch_lse.moved import lookup
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
from botorch_lse.strategies.hybrid import Doubt, LastRuns
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
    MultiOutputStrategy,
    ParetoByDifferences,
    ParetoEstimate,
    ParetoSet,
)
from botorch_lse.strategies.presets import (
    DesignStrategy,
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
    Design,
    ExpectedFeasibility,
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
    MaximumFeasibility,
    MinimumU,
    StableEstimate,
)
from botorch_lse.strategies.turns import Handover, Turns

if TYPE_CHECKING:
    from botorch_lse.papers.gotovos2013 import (
        ImplicitLSELiteralBatchStrategy,
        LSELiteralBatchStrategy,
        StraddleRankStrategy,
    )
    from botorch_lse.papers.kone2025 import (
        APEStrategy,
        EGESHStrategy,
        EGESRStrategy,
        GEGEBudgetStrategy,
        GEGEPACStrategy,
        PALStrategy,
        ParetoStrategy,
        RacingStrategy,
        UniformStrategy,
    )
    from botorch_lse.papers.mason2022 import (
        MELKPACStrategy,
        MILKPACStrategy,
        PACStrategy,
    )
    from botorch_lse.papers.weltz2023 import (
        GapEliminationStrategy,
        HRAGEPACStrategy,
        RAGEPACStrategy,
    )
else:
    __getattr__, __dir__ = lookup(__name__)

__all__ = [
    "APEStrategy",
    "Above",
    "AbsoluteVolumeChange",
    "Ambiguity",
    "And",
    "Below",
    "Between",
    "ComposedStrategy",
    "ContentKnown",
    "ContentStop",
    "ContentVariance",
    "ContourEntropy",
    "Design",
    "DesignStrategy",
    "Doubt",
    "EGESHStrategy",
    "EGESRStrategy",
    "ExpectedFeasibility",
    "ExpectedMisclassification",
    "GEGEBudgetStrategy",
    "GEGELinearStrategy",
    "GEGEPACStrategy",
    "GEGEStrategy",
    "GPStrategy",
    "GapEliminationStrategy",
    "GaussianProcess",
    "Goal",
    "HRAGELinearStrategy",
    "HRAGEPACStrategy",
    "HRAGEStrategy",
    "Handover",
    "ImplicitLSELiteralBatchStrategy",
    "ImplicitLSEStrategy",
    "ImplicitStraddleStrategy",
    "LSELiteralBatchStrategy",
    "LSEStrategy",
    "LabelAudit",
    "LastRuns",
    "Levels",
    "LinearStrategy",
    "LookAhead",
    "MELKLinearStrategy",
    "MELKPACStrategy",
    "MELKStrategy",
    "MILKLinearStrategy",
    "MILKPACStrategy",
    "MILKStrategy",
    "MaxVarianceStrategy",
    "Maximiser",
    "MaximiserByPairs",
    "MaximumFeasibility",
    "MinimumU",
    "MultiOutputStrategy",
    "MutualInformation",
    "NoiseWarning",
    "Not",
    "Or",
    "PACStrategy",
    "PALStrategy",
    "ParetoByDifferences",
    "ParetoEstimate",
    "ParetoSet",
    "ParetoStrategy",
    "RAGEPACStrategy",
    "RacingStrategy",
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
    "StableEstimate",
    "State",
    "Straddle",
    "StraddleRankStrategy",
    "StraddleStrategy",
    "Strategy",
    "TargetedVariance",
    "TruVaRStrategy",
    "TruncatedVariance",
    "Turns",
    "UFunction",
    "UniformStrategy",
    "Variance",
    "Width",
    "audit",
    "audit_size",
    "extended",
    "rare_event",
]
