r"""Strategies for the Pareto set of several outputs."""

from typing import TYPE_CHECKING

from botorch_lse.moved import lookup
from botorch_lse.strategies.pareto.gege_gp import GEGEStrategy
from botorch_lse.strategies.pareto.outputs import MultiOutputStrategy, ParetoEstimate
from botorch_lse.strategies.pareto.pal import PALStrategy

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lookup(__name__)

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
