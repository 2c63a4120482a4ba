r"""Strategies on a Gaussian process, in batches of the user's size."""

from typing import TYPE_CHECKING

from botorch_lse.moved import lookup
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.gp.baselines import MaxVarianceStrategy, RandomStrategy
from botorch_lse.strategies.gp.design import DesignStrategy
from botorch_lse.strategies.gp.hrage import HRAGEStrategy
from botorch_lse.strategies.gp.lse import (
    ImplicitLSEStrategy,
    LSEStrategy,
)
from botorch_lse.strategies.gp.melk import MELKStrategy
from botorch_lse.strategies.gp.milk import MILKStrategy
from botorch_lse.strategies.gp.straddle import (
    ImplicitStraddleStrategy,
    StraddleRankStrategy,
    StraddleStrategy,
)
from botorch_lse.strategies.gp.truvar import TruVaRStrategy

if TYPE_CHECKING:
    from botorch_lse.papers.gotovos2013 import (
        ImplicitLSELiteralBatchStrategy,
        LSELiteralBatchStrategy,
    )
else:
    __getattr__, __dir__ = lookup(__name__)

__all__ = [
    "DesignStrategy",
    "GPStrategy",
    "HRAGEStrategy",
    "ImplicitLSELiteralBatchStrategy",
    "ImplicitLSEStrategy",
    "ImplicitStraddleStrategy",
    "LSELiteralBatchStrategy",
    "LSEStrategy",
    "MELKStrategy",
    "MILKStrategy",
    "MaxVarianceStrategy",
    "RandomStrategy",
    "StraddleRankStrategy",
    "StraddleStrategy",
    "TruVaRStrategy",
]
