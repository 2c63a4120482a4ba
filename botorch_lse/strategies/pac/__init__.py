r"""The papers' fixed-confidence algorithms to the letter: a guarantee, no prior."""

from botorch_lse.strategies.pac.base import PACStrategy
from botorch_lse.strategies.pac.gap_elimination import GapEliminationStrategy
from botorch_lse.strategies.pac.melk import MELKPACStrategy
from botorch_lse.strategies.pac.milk import MILKPACStrategy
from botorch_lse.strategies.pac.rage import HRAGEPACStrategy, RAGEPACStrategy

__all__ = [
    "GapEliminationStrategy",
    "HRAGEPACStrategy",
    "MELKPACStrategy",
    "MILKPACStrategy",
    "PACStrategy",
    "RAGEPACStrategy",
]
