r"""Cards about the answer and where it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import pandas as pd
from ax.core.experiment import Experiment

from botorch_lse.ax.analysis.base import LevelSetCard
from botorch_lse.ax.node import LevelSetNode
from botorch_lse.plotting import (
    batches_figure,
    batches_frame,
    level_set_figure,
    level_set_frame,
    slices_figure,
    slices_frame,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class LevelSetAnalysis(LevelSetCard):
    r"""A map of the pool for two inputs, else every row's interval, sorted.

    The cards of this module are used alike.

    Example:
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy, pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]], names=["depth"])
        >>> strategy = LSEStrategy(pool, threshold=0.2, noise_std=0.01, beta=4.0)
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="run")
        >>> client.configure_optimization(objective="y")
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> (card,) = client.compute_analyses([LevelSetAnalysis()], display=False)
        >>> card.df["depth"].tolist(), card.title
        ([0.0, 0.5, 1.0], 'Level set')

    Args:
        threshold: A level to draw; default the strategy's, if it has one.
    """

    title: ClassVar[str] = "Level set"
    kind: ClassVar[str | None] = None

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = threshold

    def picture(
        self, node: LevelSetNode, experiment: Experiment
    ) -> tuple[pd.DataFrame, Figure]:
        r"""The pool's table with the answer, and its map or intervals."""
        state = node.state(experiment)
        threshold = self.threshold
        if threshold is None:
            threshold = getattr(node.strategy, "threshold", None)
        answer, seen = state.classification, state.observations
        figure = level_set_figure(answer, seen, threshold=threshold, kind=self.kind)
        return level_set_frame(answer, seen), figure


class IntervalAnalysis(LevelSetAnalysis):
    r"""Every row's interval, sorted by mean, for any number of inputs.

    Args:
        threshold: A level to draw; default the strategy's, if it has one.
    """

    title: ClassVar[str] = "Confidence intervals"
    kind: ClassVar[str | None] = "intervals"


class SliceAnalysis(LevelSetCard):
    r"""The sides on slices through one row, one for each pair of inputs.

    Args:
        anchor: The row; default the most doubtful one.
        inputs: Names of inputs; default the first four that vary.
    """

    title: ClassVar[str] = "Level set on slices"
    shade: ClassVar[str] = "side"

    def __init__(
        self, anchor: int | None = None, inputs: Sequence[str] | None = None
    ) -> None:
        self.anchor, self.inputs = anchor, inputs

    def picture(
        self, node: LevelSetNode, experiment: Experiment
    ) -> tuple[pd.DataFrame, Figure]:
        r"""The rows of the slices, and their maps."""
        state = node.state(experiment)
        answer, seen = state.classification, state.observations
        frame = slices_frame(answer, seen, self.anchor, self.inputs)
        return frame, slices_figure(frame, self.shade)


class ProbabilityAnalysis(SliceAnalysis):
    r"""The probability of lying above the level, on the same slices.

    Args:
        anchor: The row; default the most doubtful one.
        inputs: Names of inputs; default the first four that vary.
    """

    title: ClassVar[str] = "Probability of lying above the level"
    shade: ClassVar[str] = "probability_above"


class BatchAnalysis(LevelSetCard):
    r"""Where each batch was placed, and the rows that are out.

    Args:
        inputs: Names of inputs; default the first four that vary.
    """

    title: ClassVar[str] = "Placement of the batches"

    def __init__(self, inputs: Sequence[str] | None = None) -> None:
        self.inputs = inputs

    def picture(
        self, node: LevelSetNode, experiment: Experiment
    ) -> tuple[pd.DataFrame, Figure]:
        r"""Each row's last round, and the maps."""
        ledger = node.ledger(experiment)
        out = [] if ledger.open is None else [*ledger.open.out, *ledger.open.to_ask]
        seen = node.state(experiment).observations
        frame = batches_frame(
            node.strategy.pool, seen, [*out, *ledger.pending], self.inputs
        )
        return frame, batches_figure(frame)
