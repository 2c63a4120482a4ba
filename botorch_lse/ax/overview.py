r"""Ax's overview of an experiment, with the answer about the pool in front."""

from __future__ import annotations

import shutil
from typing import Any

from ax.adapter.base import Adapter
from ax.analysis.analysis import Analysis
from ax.analysis.graphviz import GraphvizAnalysisCard
from ax.analysis.overview import OverviewAnalysis
from ax.core import Experiment
from ax.core.analysis_card import AnalysisCardBase, AnalysisCardGroup
from ax.generation_strategy.generation_strategy import GenerationStrategy

from botorch_lse.ax.analysis import (
    BatchAnalysis,
    CalibrationAnalysis,
    IntervalAnalysis,
    LevelSetAnalysis,
    LevelSetCard,
    ParetoAnalysis,
    ProbabilityAnalysis,
    ProgressAnalysis,
    ReportAnalysis,
    SliceAnalysis,
)
from botorch_lse.ax.compat import set_overview
from botorch_lse.ax.modular import ModelAnalysis, acquisition_options
from botorch_lse.ax.node import level_set_node, level_set_nodes

CARDS: tuple[type[LevelSetCard], ...] = (
    ReportAnalysis,
    LevelSetAnalysis,
    ParetoAnalysis,
    ProbabilityAnalysis,
    SliceAnalysis,
    IntervalAnalysis,
    BatchAnalysis,
    ProgressAnalysis,
    CalibrationAnalysis,
)
"""The cards of an overview, in order; those that do not suit are left out."""


class LevelSetOverview(Analysis):
    r"""The result of ``client.compute_analyses()``: Ax's overview after our cards.

    Without a ``LevelSetNode``, or an acquisition function with a level in Ax's modular
    generator, it is Ax's overview as it is. Ax's drawing of the generation strategy is
    left out where Graphviz's program ``dot`` is not installed: a notebook would show a
    traceback in place of all cards.
    """

    def validate_applicable_state(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> str | None:
        r"""Ax's reason why there is no overview; ``None`` if there is one."""
        overview = OverviewAnalysis()
        return overview.validate_applicable_state(
            experiment, generation_strategy, adapter
        )

    def compute(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> AnalysisCardGroup:
        r"""The group of all cards."""
        given: dict[str, Any] = {
            "experiment": experiment,
            "generation_strategy": generation_strategy,
            "adapter": adapter,
        }
        whole = _drawable(OverviewAnalysis().compute(**given))
        has_node = bool(level_set_nodes(generation_strategy)[1])
        is_ours = has_node or acquisition_options(generation_strategy)
        if experiment is None or not is_ours:
            return whole
        makers = CARDS if has_node else (ModelAnalysis,)
        cards: list[Analysis] = [make() for make in makers]
        suitable = [c for c in cards if c.validate_applicable_state(**given) is None]
        if not suitable:
            return whole
        title, words = "The answer by the model", "On points of the search space."
        if has_node:
            title = "The answer about the pool"
            words = f"{level_set_node(generation_strategy).summary(experiment)}."
        ours = AnalysisCardGroup(
            name="LevelSetAnalyses",
            title=title,
            subtitle=words,
            children=[card.compute_or_error_card(**given) for card in suitable],
        )
        return AnalysisCardGroup(
            name=whole.name,
            title=whole.title,
            subtitle=whole.subtitle,
            children=[ours, *whole.children],
        )


def _drawable(group: AnalysisCardGroup) -> AnalysisCardGroup:
    r"""The group without cards that this machine cannot draw, or empty groups."""
    if shutil.which("dot") is not None:
        return group
    kept: list[AnalysisCardBase] = []
    for card in group.children:
        if isinstance(card, AnalysisCardGroup):
            card = _drawable(card)
            kept += [card] if card.children else []
        elif not isinstance(card, GraphvizAnalysisCard):
            kept.append(card)
    return AnalysisCardGroup(
        name=group.name, title=group.title, subtitle=group.subtitle, children=kept
    )


set_overview(LevelSetOverview)
