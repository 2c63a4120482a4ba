r"""The old place of the papers' fixed-confidence algorithms; see ``moved``."""

from typing import TYPE_CHECKING

from botorch_lse.moved import lookup

if TYPE_CHECKING:
    from botorch_lse.papers.mason2022 import (
        MELKPACStrategy,
        MILKPACStrategy,
        PACStrategy,
    )
    from botorch_lse.papers.weltz2023 import (
        GapEliminationStrategy,
        HRAGEPACStrategy,
        RAGEPACStrategy,
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
