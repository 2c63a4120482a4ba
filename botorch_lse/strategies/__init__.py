r"""Strategies: ask which rows to measure, tell what came out, read the answer."""

from botorch_lse.strategies.ape import APEStrategy
from botorch_lse.strategies.base import Strategy
from botorch_lse.strategies.baselines import MaxVarianceStrategy, RandomStrategy
from botorch_lse.strategies.design import DesignStrategy
from botorch_lse.strategies.gege import GEGEBudgetStrategy, GEGEPACStrategy
from botorch_lse.strategies.gp import GPStrategy
from botorch_lse.strategies.lse import (
    ImplicitLSELiteralBatchStrategy,
    ImplicitLSEStrategy,
    LSELiteralBatchStrategy,
    LSEStrategy,
)
from botorch_lse.strategies.melk import MELKPACStrategy, MELKStrategy
from botorch_lse.strategies.milk import MILKPACStrategy, MILKStrategy
from botorch_lse.strategies.pac import PACStrategy
from botorch_lse.strategies.pareto_base import ParetoEstimate, ParetoStrategy
from botorch_lse.strategies.pareto_rounds import EGESHStrategy
from botorch_lse.strategies.pareto_totals import (
    EGESRStrategy,
    RacingStrategy,
    UniformStrategy,
)
from botorch_lse.strategies.rage import HRAGEPACStrategy, RAGEPACStrategy
from botorch_lse.strategies.rage_base import GapEliminationStrategy
from botorch_lse.strategies.state import State
from botorch_lse.strategies.straddle import (
    ImplicitStraddleStrategy,
    StraddleRankStrategy,
    StraddleStrategy,
)
from botorch_lse.strategies.truvar import TruVaRStrategy

__all__ = [
    "APEStrategy",
    "DesignStrategy",
    "EGESHStrategy",
    "EGESRStrategy",
    "GEGEBudgetStrategy",
    "GEGEPACStrategy",
    "GPStrategy",
    "GapEliminationStrategy",
    "HRAGEPACStrategy",
    "ImplicitLSELiteralBatchStrategy",
    "ImplicitLSEStrategy",
    "ImplicitStraddleStrategy",
    "LSELiteralBatchStrategy",
    "LSEStrategy",
    "MELKPACStrategy",
    "MELKStrategy",
    "MILKPACStrategy",
    "MILKStrategy",
    "MaxVarianceStrategy",
    "PACStrategy",
    "ParetoEstimate",
    "ParetoStrategy",
    "RAGEPACStrategy",
    "RacingStrategy",
    "RandomStrategy",
    "State",
    "StraddleRankStrategy",
    "StraddleStrategy",
    "Strategy",
    "TruVaRStrategy",
    "UniformStrategy",
]
