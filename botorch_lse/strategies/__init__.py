r"""Strategies: ask which rows to measure, tell what came out, read the answer."""

from botorch_lse.strategies.base import Strategy
from botorch_lse.strategies.baselines import MaxVarianceStrategy, RandomStrategy
from botorch_lse.strategies.gp import GPStrategy
from botorch_lse.strategies.lse import (
    ImplicitLSELiteralBatchStrategy,
    ImplicitLSEStrategy,
    LSELiteralBatchStrategy,
    LSEStrategy,
)
from botorch_lse.strategies.state import State
from botorch_lse.strategies.straddle import (
    ImplicitStraddleStrategy,
    StraddleRankStrategy,
    StraddleStrategy,
)

__all__ = [
    "GPStrategy",
    "ImplicitLSELiteralBatchStrategy",
    "ImplicitLSEStrategy",
    "ImplicitStraddleStrategy",
    "LSELiteralBatchStrategy",
    "LSEStrategy",
    "MaxVarianceStrategy",
    "RandomStrategy",
    "State",
    "StraddleRankStrategy",
    "StraddleStrategy",
    "Strategy",
]
