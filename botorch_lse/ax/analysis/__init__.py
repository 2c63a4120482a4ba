r"""The pictures of ``botorch_lse.plotting`` as Ax analysis cards.

The data frame of a card (``card.df``) is what the renderer of the same name takes:
``plot_progress(card.df)`` draws with matplotlib what the card shows.
"""

from botorch_lse.ax.analysis.level_set import (
    BatchAnalysis,
    IntervalAnalysis,
    LevelSetAnalysis,
    ProbabilityAnalysis,
    SliceAnalysis,
)
from botorch_lse.ax.analysis.pareto import ParetoAnalysis
from botorch_lse.ax.analysis.progress import ProgressAnalysis

__all__ = [
    "BatchAnalysis",
    "IntervalAnalysis",
    "LevelSetAnalysis",
    "ParetoAnalysis",
    "ProbabilityAnalysis",
    "ProgressAnalysis",
    "SliceAnalysis",
]
