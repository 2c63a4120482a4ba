r"""Gotovos et al. (2013): LSE in batches to the letter, ranked straddle scores."""

from botorch_lse.papers.gotovos2013.literal_batches import (
    ImplicitLSELiteralBatchStrategy,
    LSELiteralBatchStrategy,
)
from botorch_lse.papers.gotovos2013.straddle_rank import (
    StraddleRank,
    StraddleRankStrategy,
)

__all__ = [
    "ImplicitLSELiteralBatchStrategy",
    "LSELiteralBatchStrategy",
    "StraddleRank",
    "StraddleRankStrategy",
]
