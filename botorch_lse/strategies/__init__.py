r"""Strategies: ask which rows to measure, tell what came out, read the answer."""

from typing import TYPE_CHECKING

from botorch_lse.moved import lookup
from botorch_lse.strategies.linear import (
    GEGELinearStrategy,
    HRAGELinearStrategy,
    LinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
    NoiseWarning,
)
from botorch_lse.strategies.loop import SimulatedRun, State, Strategy
from botorch_lse.strategies.pareto import (
    GEGEStrategy,
    MultiOutputStrategy,
    PALStrategy,
    ParetoEstimate,
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
    StraddleRankStrategy,
    StraddleStrategy,
    TruVaRStrategy,
)

if TYPE_CHECKING:
    from botorch_lse.papers.gotovos2013 import (
        ImplicitLSELiteralBatchStrategy,
        LSELiteralBatchStrategy,
    )
    from botorch_lse.papers.kone2025 import (
        APEStrategy,
        EGESHStrategy,
        EGESRStrategy,
        GEGEBudgetStrategy,
        GEGEPACStrategy,
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
    "DesignStrategy",
    "EGESHStrategy",
    "EGESRStrategy",
    "GEGEBudgetStrategy",
    "GEGELinearStrategy",
    "GEGEPACStrategy",
    "GEGEStrategy",
    "GPStrategy",
    "GapEliminationStrategy",
    "HRAGELinearStrategy",
    "HRAGEPACStrategy",
    "HRAGEStrategy",
    "ImplicitLSELiteralBatchStrategy",
    "ImplicitLSEStrategy",
    "ImplicitStraddleStrategy",
    "LSELiteralBatchStrategy",
    "LSEStrategy",
    "LinearStrategy",
    "MELKLinearStrategy",
    "MELKPACStrategy",
    "MELKStrategy",
    "MILKLinearStrategy",
    "MILKPACStrategy",
    "MILKStrategy",
    "MaxVarianceStrategy",
    "MultiOutputStrategy",
    "NoiseWarning",
    "PACStrategy",
    "PALStrategy",
    "ParetoEstimate",
    "ParetoStrategy",
    "RAGEPACStrategy",
    "RacingStrategy",
    "RandomStrategy",
    "SimulatedRun",
    "State",
    "StraddleRankStrategy",
    "StraddleStrategy",
    "Strategy",
    "TruVaRStrategy",
    "UniformStrategy",
]
