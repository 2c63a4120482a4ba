r"""Elimination on linear features with anytime widths: a guarantee, few samples."""

from botorch_lse.strategies.linear.base import LinearStrategy
from botorch_lse.strategies.linear.belief import NoiseWarning
from botorch_lse.strategies.linear.presets import (
    GEGELinearStrategy,
    HRAGELinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
)

__all__ = [
    "GEGELinearStrategy",
    "HRAGELinearStrategy",
    "LinearStrategy",
    "MELKLinearStrategy",
    "MILKLinearStrategy",
    "NoiseWarning",
]
