r"""The card about a run's progress."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
from ax.core.experiment import Experiment

from botorch_lse.ax.analysis.base import LevelSetCard
from botorch_lse.ax.costs import Bill, has_costs
from botorch_lse.ax.node import LevelSetNode
from botorch_lse.plotting import progress_figure, progress_frame

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class ProgressAnalysis(LevelSetCard):
    r"""Rows decided, F1 where the truth is known, cost and forecast, by evaluations.

    The cost is the sum over all measurements so far: by ``Pool.costs``, or along the
    way of a strategy whose costs depend on the row before.

    Args:
        truth: ``N`` bools, the rows that truly lie above the level.
    """

    title: ClassVar[str] = "Progress"

    def __init__(self, truth: Any = None) -> None:
        self.truth = truth

    def picture(
        self, node: LevelSetNode, experiment: Experiment
    ) -> tuple[pd.DataFrame, Figure]:
        r"""One row a round, and the lines."""
        states = node.history(experiment)
        costs = None
        if has_costs(node.strategy):
            costs = [0.0, *accumulate(Bill(node, experiment).rounds)]
        frame = progress_frame(states, self.truth, costs)
        return frame, progress_figure(frame)

    def subtitle(self, node: LevelSetNode, experiment: Experiment) -> str:
        r"""Where the run stands, and what is foreseen."""
        forecast = node.history(experiment)[-1].forecast()
        return f"{super().subtitle(node, experiment)} {forecast}"
