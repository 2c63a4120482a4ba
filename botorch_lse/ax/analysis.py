r"""The answer of an experiment: a table, cards, and a reason to stop.

The cards show the pictures of ``botorch_lse.plotting``.
The data frame of a card (``card.df``) is what the renderer of the same name takes:
``plot_progress(card.df)`` draws with matplotlib what the card shows. (Answers and
calibrations are drawn from ``state.classification`` and ``state.calibration()``.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from ax import Client
from ax.adapter.base import Adapter
from ax.analysis.analysis import Analysis
from ax.analysis.markdown.markdown_analysis import create_markdown_analysis_card
from ax.analysis.plotly.plotly_analysis import create_plotly_analysis_card
from ax.core import Experiment
from ax.core.analysis_card import AnalysisCard
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.global_stopping.strategies.base import BaseGlobalStoppingStrategy
from botorch.exceptions.errors import UnsupportedError
from plotly.graph_objects import Figure

from botorch_lse import plotting
from botorch_lse._validation import one_of
from botorch_lse.ax.compat import parts_of
from botorch_lse.ax.costs import TrialCosts
from botorch_lse.ax.modular import acquisition_options, model_answer
from botorch_lse.ax.node import LevelSetNode, level_set_node, level_set_nodes
from botorch_lse.confidence.calibration import Calibration
from botorch_lse.data.classification import Classification
from botorch_lse.data.excursion_volume import CONFIDENCE, Content
from botorch_lse.goals.outcome_levels import quantities
from botorch_lse.plotting.frames import side_words
from botorch_lse.plotting.report import report_of, stated_level
from botorch_lse.strategies import Goal
from botorch_lse.strategies.wording import question_of

Picture = tuple[pd.DataFrame, Figure]
"""The data frame of a card and the plotly figure drawn from it."""


def level_set(
    experiment: Client | Experiment,
    generation_strategy: GenerationStrategy | None = None,
) -> pd.DataFrame:
    r"""The table of rows above and below the level, with probabilities.

    Example:
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy, pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> strategy = LSEStrategy(pool, threshold=0.2, noise_std=0.01, beta=4.0)
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="run")
        >>> client.configure_optimization(objective="y")
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> level_set(client)["side"].tolist()  # nothing is measured yet
        ['undecided', 'undecided', 'undecided']

    Args:
        experiment: A ``Client``, or an experiment.
        generation_strategy: With an experiment: the one that
            ``level_set_generation_strategy`` made.

    Returns:
        The pool's table with the columns ``side``, ``probability_above``, ``mean``,
        ``sigma``, ``lower``, ``upper`` and ``n_observations``, after the complete
        rounds; a round that is open enters when it is complete. For a region of
        several metrics each has the columns ``NAME_mean``, ``NAME_lower`` and
        ``NAME_upper`` as well. For a Pareto strategy of
        several outputs ``side`` is accepted, rejected or open, and each metric has its
        columns: see ``plotting.pareto_frame``. The table's ``attrs`` hold
        ``stop_reason`` (``None`` while the run goes on), ``guarantee``, before there is
        a model ``forecast``: how many measurements are missing, and for one output
        ``content``: how much is above, in words. Without a level-set strategy,
        for one of our acquisition functions in Ax's modular generator, the same table
        of 1,024 Sobol points and the points measured, by the generator's model.

    Raises:
        ValueError: If no level-set strategy is there to ask, and no acquisition
            function with a level.
    """
    whole, generation_strategy = parts_of(experiment, generation_strategy)
    has_node = bool(level_set_nodes(generation_strategy)[1])
    if not has_node and acquisition_options(generation_strategy):
        answer, observations, _ = model_answer(whole, generation_strategy)
        frame = plotting.level_set_frame(answer, observations)
        frame.attrs["guarantee"] = answer.guarantee
        return frame
    node = level_set_node(generation_strategy)
    return answer_frame(node, whole)


def level_set_content(
    experiment: Client | Experiment,
    generation_strategy: GenerationStrategy | None = None,
    confidence: float = CONFIDENCE,
) -> Content:
    r"""The share above the level: probability of failure, area, share of a library.

    Example:
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy, pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]], weights=[1, 1, 2])
        >>> strategy = LSEStrategy(pool, threshold=0.2, noise_std=0.01, beta=4.0)
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="run")
        >>> client.configure_optimization(objective="y")
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> found = level_set_content(client)  # nothing is measured yet
        >>> found.lower, found.upper
        (0.0, 1.0)

    Args:
        experiment: A ``Client``, or an experiment.
        generation_strategy: With an experiment: the one that
            ``level_set_generation_strategy`` made.
        confidence: See ``State.content``.

    Raises:
        ValueError: If no level-set strategy is there to ask, or ``confidence`` is
            outside (0, 1).
    """
    whole, generation_strategy = parts_of(experiment, generation_strategy)
    node = level_set_node(generation_strategy)
    return node.state(whole).content(confidence)


def named_outputs(
    answer: Classification, node: LevelSetNode, experiment: Experiment
) -> Classification:
    r"""The answer with its outputs named as the metrics."""
    strategy, names = node.strategy, node.metric_names(experiment)
    # Where a row measures one output there is one metric, whatever its name.
    if not answer.outputs or strategy.n_outputs != strategy.n_predicted:
        return answer
    pairs = zip(answer.outputs, names, strict=True)
    named = tuple(replace(output, name=name) for output, name in pairs)
    return replace(answer, outputs=named)


def answer_frame(node: LevelSetNode, experiment: Experiment) -> pd.DataFrame:
    r"""The present answer as a table, for a level set or a Pareto set."""
    state = node.state(experiment)
    answer, observations = state.classification, state.measurements
    strategy: Any = node.strategy
    names = node.metric_names(experiment)
    answer = named_outputs(answer, node, experiment)
    if strategy.directions is None:
        frame = plotting.level_set_frame(answer, observations)
        frame.attrs["content"] = str(state.content())
    else:
        estimate = strategy.estimate(state)
        frame = plotting.pareto_frame(answer, estimate, observations, list(names))
    has_model = bool(answer.sigma.isfinite().any())
    if strategy.can_predict and not has_model:  # a forecast costs nothing then
        frame.attrs["forecast"] = str(state.forecast())
    frame.attrs["stop_reason"] = state.stop_reason
    frame.attrs["guarantee"] = answer.guarantee
    return frame


def level_set_report(
    experiment: Client | Experiment,
    path: str | Path,
    generation_strategy: GenerationStrategy | None = None,
) -> None:
    r"""Write the report of an experiment: one HTML file that needs no network.

    See ``plotting.write_report``; the rounds are read from the experiment.

    Args:
        experiment: A ``Client``, or an experiment.
        path: The file, which is replaced.
        generation_strategy: With an experiment: the one that
            ``level_set_generation_strategy`` made.

    Raises:
        ValueError: If no level-set strategy is there to ask.
        OSError: If the file cannot be written.
    """
    whole, generation_strategy = parts_of(experiment, generation_strategy)
    node = level_set_node(generation_strategy)
    metrics, states = metrics_of(node, whole), node.history(whole)
    plotting.write_report(node.state(whole), path, metrics=metrics, states=states)


def metrics_of(node: LevelSetNode, experiment: Experiment) -> tuple[str, ...] | None:
    r"""The metrics, one for each output; ``None`` where a row measures one of them."""
    names = node.metric_names(experiment)
    return names if len(names) == node.strategy.n_predicted else None


def question(node: LevelSetNode, experiment: Experiment) -> str:
    r"""The question with the metrics' names; empty where there are no words."""
    names, outputs = node.metric_names(experiment), list[str]()
    if isinstance(getattr(node.strategy, "goal", None), Goal):
        outputs = [o.name for o in node.state(experiment).classification.outputs]
    return question_of(node.strategy, names, outputs)


def measured_name(node: LevelSetNode, experiment: Experiment) -> str:
    r"""The name of what a row's mean and interval are about, for an axis."""
    if node.strategy.n_predicted > 1:
        return "distance from another answer"  # no metric by itself decides
    return quantities(node.strategy.outcomes, node.metric_names(experiment))[0]


class LevelSetGlobalStoppingStrategy(BaseGlobalStoppingStrategy):
    r"""A stopping strategy that stops, with a reason, when the strategy is done.

    The generation strategy stops an orchestrator by itself when it is asked for more;
    this stops it before, and says why.

    Example:
        >>> from ax.orchestration.orchestrator import OrchestratorOptions
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy
        >>> from botorch_lse.strategies import LSEStrategy
        >>> strategy = LSEStrategy(Pool([[0.0], [1.0]]), threshold=0.0, noise_std=0.1)
        >>> ours = level_set_generation_strategy(strategy)
        >>> options = OrchestratorOptions(
        ...     global_stopping_strategy=LevelSetGlobalStoppingStrategy(ours)
        ... )

    Args:
        generation_strategy: The one that ``level_set_generation_strategy`` made.
        min_trials: Completed trials before it may stop.
        inactive_when_pending_trials: Whether to wait for running trials.

    Raises:
        ValueError: If it holds no ``LevelSetNode``.
    """

    def __init__(
        self,
        generation_strategy: GenerationStrategy,
        min_trials: int = 0,
        inactive_when_pending_trials: bool = True,
    ) -> None:
        super().__init__(min_trials, inactive_when_pending_trials)
        level_set_node(generation_strategy)
        self.generation_strategy = generation_strategy

    def _should_stop_optimization(self, experiment: Experiment) -> tuple[bool, str]:
        node = level_set_node(self.generation_strategy)
        return node.state(experiment).is_done, node.summary(experiment)


# --- cards ----------------------------------------------------------------------------


class LevelSetCard(Analysis):
    r"""Base class of cards about the run of a ``LevelSetNode``."""

    title: ClassVar[str]

    @abstractmethod
    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The data frame of the card and the plotly figure drawn from it."""

    def heading(self, node: LevelSetNode, experiment: Experiment) -> str:
        r"""The title: what is shown, and of which question."""
        asked, title = question(node, experiment), self.title
        if node.strategy.directions is not None:
            title = title.replace("Level set", "Pareto set")
        return f"{title}: {asked}" if asked else title

    def subtitle(self, node: LevelSetNode, experiment: Experiment) -> str:
        r"""The subtitle: decided rows, the guarantee, and the share above.

        The last where rows have weights or were drawn from a distribution.
        """
        state, strategy = node.state(experiment), node.strategy
        words = f"{node.summary(experiment)}. {state.classification.guarantee}"
        if strategy.directions is None and strategy.pool.is_weighted:
            words = f"{words} {state.content()}"
        return words

    def objection(self, node: LevelSetNode, experiment: Experiment) -> str | None:
        r"""The reason why the card does not suit the strategy; ``None`` if it does."""
        return None

    def validate_applicable_state(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> str | None:
        r"""The reason why the card cannot be computed; ``None`` if it can."""
        if experiment is None:
            return f"{type(self).__name__} needs an experiment."
        try:
            node = level_set_node(generation_strategy)
        except ValueError as error:
            return str(error)
        return self.objection(node, experiment)

    def compute(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> AnalysisCard:
        r"""The card of the experiment."""
        assert experiment is not None  # see validate_applicable_state
        return self.card(level_set_node(generation_strategy), experiment)

    def card(self, node: LevelSetNode, experiment: Experiment) -> AnalysisCard:
        r"""The card: a plotly figure and its data frame."""
        frame, figure = self.picture(node, experiment)
        return create_plotly_analysis_card(
            name=type(self).__name__,
            title=self.heading(node, experiment),
            subtitle=self.subtitle(node, experiment),
            df=frame,
            fig=figure,
        )


class ReportAnalysis(LevelSetCard):
    r"""The answer in words: sides, numbers, what it rests on, what comes next.

    The file that ``level_set_report`` writes has the same, with pictures and all rows.
    """

    title: ClassVar[str] = "Report"

    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The pool's table with the answer, without a picture."""
        return answer_frame(node, experiment), Figure()

    def card(self, node: LevelSetNode, experiment: Experiment) -> AnalysisCard:
        r"""The card: words, and the answer's table as its data frame."""
        metrics, state = metrics_of(node, experiment), node.state(experiment)
        return create_markdown_analysis_card(
            name=type(self).__name__,
            title=self.heading(node, experiment),
            subtitle=node.summary(experiment),
            df=self.picture(node, experiment)[0],
            message=report_of(state, metrics=metrics, has_pictures=False).markdown(),
        )


class LevelSetAnalysis(LevelSetCard):
    r"""A map of a pool with two inputs, or the sides along each of more inputs.

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
        ([0.0, 0.5, 1.0], 'Level set: y above 0.2')

    Args:
        threshold: A level to draw; default the strategy's, if it has one.
    """

    title: ClassVar[str] = "Level set"
    kind: ClassVar[str | None] = None

    def __init__(self, threshold: float | None = None) -> None:
        self.threshold = threshold

    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The pool's table with the answer, and its map or intervals."""
        state, threshold, strategy = (
            node.state(experiment),
            self.threshold,
            node.strategy,
        )
        if threshold is None:
            threshold = stated_level(strategy)
        answer = named_outputs(state.classification, node, experiment)
        figure = plotting.level_set_figure(
            answer,
            state.measurements,
            threshold=threshold,
            kind=self.kind,
            metric=measured_name(node, experiment),
            title=self.heading(node, experiment),
            words=side_words(state.classification),
        )
        return plotting.level_set_frame(answer, state.measurements), figure


class IntervalAnalysis(LevelSetAnalysis):
    r"""The intervals of all rows, sorted by mean, for any number of inputs.

    Args:
        threshold: A level to draw; default the strategy's, if it has one.
    """

    title: ClassVar[str] = "Confidence intervals"
    kind: ClassVar[str | None] = "intervals"


class SliceAnalysis(LevelSetCard):
    r"""The sides on slices through one row, one slice for each pair of inputs.

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

    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The data frame with the rows of the slices, and their maps."""
        state = node.state(experiment)
        frame = plotting.slices_frame(
            state.classification,
            state.measurements,
            self.anchor,
            self.inputs,
            measured_name(node, experiment),
        )
        words = side_words(state.classification)
        title = self.heading(node, experiment)
        figure = plotting.slices_figure(frame, self.shade, title=title, words=words)
        return frame, figure


class ProbabilityAnalysis(SliceAnalysis):
    r"""The probability of lying above the level, or in the region, on the same slices.

    Args:
        anchor: The row; default the most doubtful one.
        inputs: Names of inputs; default the first four that vary.
    """

    title: ClassVar[str] = "Probability"
    shade: ClassVar[str] = "probability_above"


class BatchAnalysis(LevelSetCard):
    r"""The rows that each batch measured, and those that are planned or running.

    Args:
        inputs: Names of inputs; default the first four that vary.
    """

    title: ClassVar[str] = "Placement of the batches"

    def __init__(self, inputs: Sequence[str] | None = None) -> None:
        self.inputs = inputs

    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The data frame with each row's last round, and its maps."""
        ledger = node.ledger(experiment)
        out = [] if ledger.open is None else [*ledger.open.running, *ledger.open.to_ask]
        frame = plotting.batches_frame(
            node.strategy.pool,
            node.state(experiment).observations,
            [*out, *ledger.pending],
            self.inputs,
        )
        title = self.heading(node, experiment)
        return frame, plotting.batches_figure(frame, title=title)


class ParetoAnalysis(LevelSetCard):
    r"""The metrics of every row with their intervals: accepted, rejected or open.

    For a region rows are in, out or undecided.

    Args:
        outputs: The two metrics to draw; default all, a panel for each pair.
    """

    title: ClassVar[str] = "Pareto set"

    def __init__(self, outputs: tuple[str, str] | None = None) -> None:
        self.outputs = outputs

    def heading(self, node: LevelSetNode, experiment: Experiment) -> str:
        r"""The title: a Pareto set, or the metrics of a region."""
        words = super().heading(node, experiment)
        if node.strategy.directions is not None:
            return words
        return words.replace(self.title, "Metrics", 1)

    def objection(self, node: LevelSetNode, experiment: Experiment) -> str | None:
        r"""The reason against the card: one output only, or no intervals of outputs."""
        strategy = node.strategy
        if strategy.n_outputs == 1:
            came = "has one"
        elif strategy.directions is None and not strategy.can_predict:
            came = "predicts none"
        else:
            return None
        return (
            f"{type(self).__name__} needs a strategy for several outputs, but "
            f"{type(strategy).__name__} {came}: use LevelSetAnalysis."
        )

    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The table of ``level_set(client)``, and two of its metrics."""
        frame, title = answer_frame(node, experiment), self.heading(node, experiment)
        return frame, plotting.pareto_set_figure(frame, self.outputs, title=title)


class ProgressAnalysis(LevelSetCard):
    r"""Progress by evaluations: decided rows, F1 (truth known), cost, forecast.

    The cost is the sum over all measurements so far: of ``Pool.costs``, or of the
    strategy's costs that depend on the row measured before.

    Args:
        truth: ``N`` bools, the rows that truly lie above the level.
    """

    title: ClassVar[str] = "Progress"

    def __init__(self, truth: Any = None) -> None:
        self.truth = truth

    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The data frame with one row per round, and its lines."""
        states = node.history(experiment)
        costs = None
        if node.strategy.has_costs:
            costs = [0.0, *accumulate(TrialCosts(node, experiment).by_round)]
        frame = plotting.progress_frame(states, self.truth, costs)
        words = side_words(states[-1].classification)
        title = self.heading(node, experiment)
        return frame, plotting.progress_figure(frame, title=title, words=words)

    def subtitle(self, node: LevelSetNode, experiment: Experiment) -> str:
        r"""The subtitle: decided rows, and the measurements still expected."""
        forecast = node.history(experiment)[-1].forecast()
        return f"{super().subtitle(node, experiment)} {forecast}"


class CalibrationAnalysis(LevelSetCard):
    r"""A check whether values lay where the model had predicted them.

    For strategies on Gaussian processes; the subtitle says it in a sentence.

    Args:
        metric: Which of several metrics; default the strategy's first.
    """

    title: ClassVar[str] = "Calibration"

    def __init__(self, metric: str | None = None) -> None:
        self.metric = metric

    def objection(self, node: LevelSetNode, experiment: Experiment) -> str | None:
        r"""The reason against the card: nothing is predicted, or not this metric."""
        try:
            self.calibration(node, experiment)
        except (UnsupportedError, ValueError) as error:
            return str(error)
        return None

    def picture(self, node: LevelSetNode, experiment: Experiment) -> Picture:
        r"""The residuals, beside normal numbers and over the predictions."""
        found = self.calibration(node, experiment)
        figure = plotting.calibration_figure(
            found, metric=self._metric(node, experiment)
        )
        return plotting.calibration_frame(found), figure

    def subtitle(self, node: LevelSetNode, experiment: Experiment) -> str:
        r"""The subtitle: values within their intervals, and whether they are few."""
        said = str(self.calibration(node, experiment))
        return said if self.metric is None else f"{self.metric}: {said}"

    def calibration(self, node: LevelSetNode, experiment: Experiment) -> Calibration:
        r"""The comparison of the metric's predictions with what was measured.

        Raises:
            UnsupportedError: If the strategy has no Gaussian process.
            ValueError: If it does not learn from the metric.
        """
        metric, names = self._metric(node, experiment), node.metric_names(experiment)
        return node.state(experiment).calibration(names.index(metric))

    def _metric(self, node: LevelSetNode, experiment: Experiment) -> str:
        names = node.metric_names(experiment)
        metric = names[0] if self.metric is None else self.metric
        one_of(metric, "metric", names)
        return metric
