r"""Kone et al. (2025): GEGE and its rivals to the letter, mirror descent."""

from botorch_lse.papers.kone2025.ape import APEStrategy
from botorch_lse.papers.kone2025.base import ParetoStrategy
from botorch_lse.papers.kone2025.gaps import (
    ParetoComplexity,
    empirical_gaps,
    pareto_complexity,
    pareto_gaps,
    pareto_margins,
)
from botorch_lse.papers.kone2025.gege import GEGEBudgetStrategy, GEGEPACStrategy
from botorch_lse.papers.kone2025.least_squares import (
    ArmTotals,
    LinearFit,
    span_least_squares,
)
from botorch_lse.papers.kone2025.mirror_descent import mirror_descent_design
from botorch_lse.papers.kone2025.pal import (
    Diameter,
    PALStrategy,
    ParetoByRectangles,
)
from botorch_lse.papers.kone2025.rounds import EGESHStrategy
from botorch_lse.papers.kone2025.totals import (
    EGESRStrategy,
    RacingStrategy,
    UniformStrategy,
)

__all__ = [
    "APEStrategy",
    "ArmTotals",
    "Diameter",
    "EGESHStrategy",
    "EGESRStrategy",
    "GEGEBudgetStrategy",
    "GEGEPACStrategy",
    "LinearFit",
    "PALStrategy",
    "ParetoByRectangles",
    "ParetoComplexity",
    "ParetoStrategy",
    "RacingStrategy",
    "UniformStrategy",
    "empirical_gaps",
    "mirror_descent_design",
    "pareto_complexity",
    "pareto_gaps",
    "pareto_margins",
    "span_least_squares",
]
