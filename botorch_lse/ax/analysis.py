r"""The level set as an Ax analysis card."""

from __future__ import annotations

from ax.adapter.base import Adapter
from ax.analysis.analysis import Analysis
from ax.analysis.plotly.plotly_analysis import (
    PlotlyAnalysisCard,
    create_plotly_analysis_card,
)
from ax.core.experiment import Experiment
from ax.generation_strategy.generation_strategy import GenerationStrategy

from botorch_lse.ax.node import summary
from botorch_lse.ax.results import level_set_node
from botorch_lse.plotting import level_set_figure, level_set_frame


class LevelSetAnalysis(Analysis):
    r"""A map of the pool for two inputs, else every row's interval, sorted.

    Example:
        >>> cards = client.compute_analyses([LevelSetAnalysis()])  # doctest: +SKIP

    Args:
        threshold: A level to draw; default the strategy's, if it has one.
    """

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = threshold

    def validate_applicable_state(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> str | None:
        r"""What is missing, or ``None``."""
        if experiment is None:
            return "LevelSetAnalysis needs an experiment."
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
        state = node.state(experiment)
        threshold = self.threshold
        if threshold is None:
            threshold = getattr(node.strategy, "threshold", None)
        return create_plotly_analysis_card(
            name=type(self).__name__,
            title="Level set",
            subtitle=f"{summary(state)}. {state.classification.guarantee}",
            df=level_set_frame(state.classification, state.observations),
            fig=level_set_figure(
                state.classification, state.observations, threshold=threshold
            ),
        )
