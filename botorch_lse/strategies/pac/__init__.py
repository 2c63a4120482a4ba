r"""The papers' fixed-confidence algorithms, where they stood before ``papers``."""

from typing import TYPE_CHECKING

from botorch_lse.moved import lookup
from botorch_lse.strategies.pac.gap_elimination import GapEliminationStrategy
from botorch_lse.strategies.pac.rage import HRAGEPACStrategy, RAGEPACStrategy

if TYPE_CHECKING:
    from botorch_lse.papers.mason2022 import (
        MELKPACStrategy,
        MILKPACStrategy,
        PACStrategy,
    )
else:
    __getattr__, __dir__ = lookup(__name__)

__all__ = [
    "GapEliminationStrategy",
    "HRAGEPACStrategy",
    "MELKPACStrategy",
    "MILKPACStrategy",
    "PACStrategy",
    "RAGEPACStrategy",
]
