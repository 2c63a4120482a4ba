r"""Elimination on linear features with anytime widths: a guarantee, few samples."""

from botorch_lse.strategies.linear.assumptions import NoiseWarning
from botorch_lse.strategies.linear.base import LinearStrategy
from botorch_lse.strategies.linear.gege import GEGELinearStrategy
from botorch_lse.strategies.linear.hrage import HRAGELinearStrategy
from botorch_lse.strategies.linear.melk import MELKLinearStrategy, MILKLinearStrategy

__all__ = [
    "GEGELinearStrategy",
    "HRAGELinearStrategy",
    "LinearStrategy",
    "MELKLinearStrategy",
    "MILKLinearStrategy",
    "NoiseWarning",
]
