r"""Goals: questions about the rows of a pool."""

from typing import TYPE_CHECKING

from botorch_lse._lazy import lazy_names

if TYPE_CHECKING:
    from botorch_lse.functional.value_region import Comparison, ValueRegion
    from botorch_lse.goals.base import Goal, GoalFacts, Intervals, Targets
    from botorch_lse.goals.classes import Classes
    from botorch_lse.goals.extremes import (
        Maximiser,
        MaximiserByPairs,
        ShareOfMax,
        ShareOfMaxByPairs,
    )
    from botorch_lse.goals.pareto import ParetoByDifferences, ParetoEstimate, ParetoSet
    from botorch_lse.goals.regions import (
        Above,
        And,
        Below,
        Between,
        Levels,
        Not,
        Or,
        Region,
    )
else:
    # A run needs one of them.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": "Goal GoalFacts Intervals Targets",
            "classes": "Classes",
            "extremes": "Maximiser MaximiserByPairs ShareOfMax ShareOfMaxByPairs",
            "pareto": "ParetoByDifferences ParetoEstimate ParetoSet",
            "regions": "Above And Below Between Levels Not Or Region",
        },
        dict.fromkeys(
            ("Comparison", "ValueRegion"), "botorch_lse.functional.value_region"
        ),
    )

__all__ = [
    "Above",
    "And",
    "Below",
    "Between",
    "Classes",
    "Comparison",
    "Goal",
    "GoalFacts",
    "Intervals",
    "Levels",
    "Maximiser",
    "MaximiserByPairs",
    "Not",
    "Or",
    "ParetoByDifferences",
    "ParetoEstimate",
    "ParetoSet",
    "Region",
    "ShareOfMax",
    "ShareOfMaxByPairs",
    "Targets",
    "ValueRegion",
]
