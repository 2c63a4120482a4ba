r"""Elimination on linear features with anytime widths: a guarantee, few samples."""

from botorch_lse.strategies.linear.presets import (
    GEGELinearStrategy,
    HRAGELinearStrategy,
    LinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
)
from botorch_lse.strategies.linear.procedure import NoiseWarning

__all__ = [
    "GEGELinearStrategy",
    "HRAGELinearStrategy",
    "LinearStrategy",
    "MELKLinearStrategy",
    "MILKLinearStrategy",
    "NoiseWarning",
]
