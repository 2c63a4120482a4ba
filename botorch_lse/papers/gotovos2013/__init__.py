r"""Gotovos et al. (2013): LSE in batches to the letter."""

from botorch_lse.papers.gotovos2013.literal_batches import (
    ImplicitLSELiteralBatchStrategy,
    LSELiteralBatchStrategy,
)

__all__ = ["ImplicitLSELiteralBatchStrategy", "LSELiteralBatchStrategy"]
