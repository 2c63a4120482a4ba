r"""Strategies for the Pareto set of several outputs."""

from botorch_lse.strategies.pareto.ape import APEStrategy
from botorch_lse.strategies.pareto.base import ParetoStrategy
from botorch_lse.strategies.pareto.gege import GEGEBudgetStrategy, GEGEPACStrategy
from botorch_lse.strategies.pareto.gege_gp import GEGEStrategy
from botorch_lse.strategies.pareto.outputs import MultiOutputStrategy, ParetoEstimate
from botorch_lse.strategies.pareto.pal import PALStrategy
from botorch_lse.strategies.pareto.rounds import EGESHStrategy
from botorch_lse.strategies.pareto.totals import (
    EGESRStrategy,
    RacingStrategy,
    UniformStrategy,
)

__all__ = [
    "APEStrategy",
    "EGESHStrategy",
    "EGESRStrategy",
    "GEGEBudgetStrategy",
    "GEGEPACStrategy",
    "GEGEStrategy",
    "MultiOutputStrategy",
    "PALStrategy",
    "ParetoEstimate",
    "ParetoStrategy",
    "RacingStrategy",
    "UniformStrategy",
]
