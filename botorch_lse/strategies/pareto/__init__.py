r"""Pareto sets of several outputs, each a Gaussian process."""

from botorch_lse.strategies.pareto.gege_gp import GEGEStrategy
from botorch_lse.strategies.pareto.gp import GPParetoStrategy
from botorch_lse.strategies.pareto.outputs import MultiOutputStrategy, ParetoEstimate
from botorch_lse.strategies.pareto.pal import PALStrategy

__all__ = [
    "GEGEStrategy",
    "GPParetoStrategy",
    "MultiOutputStrategy",
    "PALStrategy",
    "ParetoEstimate",
]
