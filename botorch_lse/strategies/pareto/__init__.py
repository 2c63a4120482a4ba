r"""Pareto sets of several outputs, each a Gaussian process."""

from botorch_lse.strategies.pareto.base import GPParetoStrategy
from botorch_lse.strategies.pareto.outputs import MultiOutputStrategy, ParetoEstimate
from botorch_lse.strategies.pareto.presets import GEGEStrategy, PALStrategy

__all__ = [
    "GEGEStrategy",
    "GPParetoStrategy",
    "MultiOutputStrategy",
    "PALStrategy",
    "ParetoEstimate",
]
