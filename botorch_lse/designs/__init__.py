r"""Optimal designs on finite sets: weights, proofs, integer counts, complexities."""

from typing import TYPE_CHECKING

from botorch_lse.designs.certificate import Certificate, certify
from botorch_lse.designs.optimal import Design, DesignWarning, optimal_design
from botorch_lse.designs.rounding import exchange_design, round_design
from botorch_lse.moved import lookup

if TYPE_CHECKING:
    from botorch_lse.papers.complexity import (
        Complexity,
        best_arm_complexity,
        implicit_complexity,
        level_set_complexity,
    )
    from botorch_lse.papers.kone2025 import (
        ParetoComplexity,
        mirror_descent_design,
        pareto_complexity,
    )
    from botorch_lse.papers.mason2022 import frank_wolfe_design
else:
    __getattr__, __dir__ = lookup(__name__)

__all__ = [
    "Certificate",
    "Complexity",
    "Design",
    "DesignWarning",
    "ParetoComplexity",
    "best_arm_complexity",
    "certify",
    "exchange_design",
    "frank_wolfe_design",
    "implicit_complexity",
    "level_set_complexity",
    "mirror_descent_design",
    "optimal_design",
    "pareto_complexity",
    "round_design",
]
