r"""The card about a Pareto set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
from ax.adapter.base import Adapter
from ax.core.experiment import Experiment
from ax.generation_strategy.generation_strategy import GenerationStrategy

from botorch_lse.ax.analysis.base import LevelSetCard
from botorch_lse.ax.node import LevelSetNode
from botorch_lse.ax.results import answer_frame, has_several_outputs, level_set_node
from botorch_lse.plotting import pareto_set_figure

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class ParetoAnalysis(LevelSetCard):
    r"""Two metrics of every row with their intervals: accepted, rejected or open.

    Args:
        outputs: The two metrics to draw; default the strategy's first two.
    """

    title: ClassVar[str] = "Pareto set"

    def __init__(self, outputs: tuple[str, str] | None = None) -> None:
        self.outputs = outputs

    def validate_applicable_state(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> str | None:
        r"""What is missing, or ``None``."""
        missing = super().validate_applicable_state(
            experiment, generation_strategy, adapter
        )
        if missing is not None:
            return missing
        strategy: Any = level_set_node(generation_strategy).strategy
        if has_several_outputs(strategy) and len(strategy.maximize) > 1:
            return None
        return (
            f"{type(self).__name__} needs a strategy for several outputs, but "
            f"{type(strategy).__name__} has one: use LevelSetAnalysis."
        )

    def picture(
        self, node: LevelSetNode, experiment: Experiment
    ) -> tuple[pd.DataFrame, Figure]:
        r"""The table of ``level_set(client)``, and two of its metrics."""
        frame = answer_frame(node, experiment, node.state(experiment))
        return frame, pareto_set_figure(frame, self.outputs)
