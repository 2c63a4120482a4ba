r"""Weltz et al. (2023): RAGE and H-RAGE to the letter, and HEAD's rivals."""

from botorch_lse.papers.weltz2023.gap_elimination import GapEliminationStrategy
from botorch_lse.papers.weltz2023.rage import HRAGEPACStrategy, RAGEPACStrategy
from botorch_lse.papers.weltz2023.variance import (
    separate_arm_variance,
    separate_arms,
    separate_from_arms,
    uniform_from_arms,
    uniform_variance,
)

__all__ = [
    "GapEliminationStrategy",
    "HRAGEPACStrategy",
    "RAGEPACStrategy",
    "separate_arm_variance",
    "separate_arms",
    "separate_from_arms",
    "uniform_from_arms",
    "uniform_variance",
]
