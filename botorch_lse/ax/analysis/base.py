r"""What the cards share."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import pandas as pd
from ax.adapter.base import Adapter
from ax.analysis.analysis import Analysis
from ax.analysis.plotly.plotly_analysis import (
    PlotlyAnalysisCard,
    create_plotly_analysis_card,
)
from ax.core.experiment import Experiment
from ax.generation_strategy.generation_strategy import GenerationStrategy

from botorch_lse.ax.node import LevelSetNode
from botorch_lse.ax.results import level_set_node
from botorch_lse.ax.summary import summary

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class LevelSetCard(Analysis):
    r"""A card about the run of a ``LevelSetNode``."""

    title: ClassVar[str]

    @abstractmethod
    def picture(
        self, node: LevelSetNode, experiment: Experiment
    ) -> tuple[pd.DataFrame, Figure]:
        r"""The data frame and the plotly figure drawn from it."""

    def subtitle(self, node: LevelSetNode, experiment: Experiment) -> str:
        r"""Where the run stands."""
        state = node.state(experiment)
        return f"{summary(state, node.strategy)}. {state.classification.guarantee}"

    def validate_applicable_state(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> str | None:
        r"""What is missing, or ``None``."""
        if experiment is None:
            return f"{type(self).__name__} needs an experiment."
        try:
            level_set_node(generation_strategy)
        except ValueError as error:
            return str(error)
        return None

    def compute(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> PlotlyAnalysisCard:
        r"""The card: a plotly figure and its data frame."""
        assert experiment is not None  # see validate_applicable_state
        node = level_set_node(generation_strategy)
        frame, figure = self.picture(node, experiment)
        return create_plotly_analysis_card(
            name=type(self).__name__,
            title=self.title,
            subtitle=self.subtitle(node, experiment),
            df=frame,
            fig=figure,
        )
