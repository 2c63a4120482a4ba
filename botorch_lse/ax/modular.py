r"""The answer of Ax's modular generator, by its model at points of the space.

There is no pool on this path. Sobol points of the search space stand for it, together
with the points that were measured.
"""

from __future__ import annotations

import math
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import torch
from ax.adapter.base import Adapter
from ax.adapter.data_utils import extract_experiment_data
from ax.analysis.analysis import Analysis
from ax.analysis.plotly.plotly_analysis import (
    PlotlyAnalysisCard,
    create_plotly_analysis_card,
)
from ax.core import (
    ChoiceParameter,
    Experiment,
    FixedParameter,
    ObservationFeatures,
    Parameter,
    ParameterType,
    RangeParameter,
    SearchSpace,
)
from ax.core.parameter import DerivedParameter
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.transition_criterion import TrialBasedCriterion
from torch.quasirandom import SobolEngine

from botorch_lse import plotting
from botorch_lse._numerals import written
from botorch_lse._validation import finite_number, whole_number
from botorch_lse.ax.ledger import is_left_out
from botorch_lse.confidence import classify
from botorch_lse.confidence.regions import Regions
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool

POINTS = 1024
"""The number of Sobol points that stand for a search space."""
MOST_DRAWS = 50
"""The multiple of ``POINTS`` that is drawn where constraints leave few points."""
BETA = 1.96**2
"""The squared width of intervals where the acquisition function has none."""


def acquisition_options(generation_strategy: Any) -> dict[str, Any]:
    r"""The options of the acquisition function whose level counts; empty if none.

    The current node's; of those with levels else the newest trial's, or the first's.
    """
    if not isinstance(generation_strategy, GenerationStrategy):
        return {}
    found: list[tuple[float, dict[str, Any]]] = []
    experiment = generation_strategy._experiment
    for node in generation_strategy.nodes_by_name.values():
        newest: float = max(node.trials_from_node, default=-1) if experiment else -1
        if node is generation_strategy.current_node:
            newest = math.inf
        for spec in node.generator_specs:
            options = spec.generator_kwargs.get("botorch_acqf_options") or {}
            if {"threshold", "goal"} & {*options}:
                found.append((newest, options))
    return max(found, key=itemgetter(0), default=(-1, {}))[1]


def model_answer(
    experiment: Experiment,
    generation_strategy: GenerationStrategy | None,
    threshold: float | None = None,
    n: int = POINTS,
    beta: float | None = None,
    seed: int = 0,
) -> tuple[Classification, Observations, float]:
    r"""The answer of the generator's model at points of the search space.

    Args:
        experiment: The experiment, with one metric in its objective.
        generation_strategy: With a modular generator that has data.
        threshold: The level; default that of the acquisition function.
        n: The number of Sobol points.
        beta: The squared width of the intervals; default the acquisition function's,
            or 1.96 squared.
        seed: Of the Sobol points.

    Returns:
        The answer, whose pool is the Sobol points followed by those that were measured;
        the measurements, without those that ``LevelSetNode`` leaves out; and the level.

    Raises:
        ValueError: If no level is given or known, there is not one metric, or the
            generator has no model yet.
    """
    options = acquisition_options(generation_strategy)
    level = options.get("threshold") if threshold is None else threshold
    region = getattr(options.get("goal"), "values", None)
    if level is None and region is not None and region.n_outputs == 1:
        only = region.only_comparison
        level = None if only is None else only.level
    if level is None:
        raise ValueError(
            "Expected `threshold`, because the generation strategy has no acquisition "
            "function with one level of one output, but got None. Write "
            "`ModelAnalysis(threshold=70.0)`; for a table of another region write "
            "`level_set_generation_strategy(Strategy(grid_pool(parameters), goal))`."
        )
    level = finite_number(level, "threshold")
    beta = float(options.get("beta", BETA)) if beta is None else beta
    config = experiment.optimization_config
    names = [] if config is None else list(dict(config.objective.metric_weights))
    if len(names) != 1:
        raise ValueError(
            "Expected an objective of one metric, which the level is about, but got "
            f'{names or "none"}. Write `client.configure_optimization(objective="y")`.'
        )
    adapter = _adapter_of_all_data(experiment, generation_strategy)
    if adapter is None:
        raise ValueError(
            "Expected a `generation_strategy` whose model predicts "
            f"{names[0]!r}, but it has none yet. "
            f"{_until_a_model(experiment, generation_strategy)}"
        )
    records = sobol_points(experiment.search_space, whole_number(n, "n", 1), seed)
    data = experiment.lookup_data().df
    data = data[(data["metric_name"] == names[0]) & np.isfinite(data["mean"])]
    trials = data["trial_index"].map(experiment.trials)
    steps = data.get("step", [np.nan] * len(data))
    data = data.loc[
        [
            not is_left_out(trial, arm) and (pd.isna(step) or trial.status.is_completed)
            for trial, arm, step in zip(trials, data["arm_name"], steps, strict=True)
        ]
    ]
    arms = experiment.arms_by_name
    measured = [dict(arms[name].parameters) for name in data["arm_name"]]
    features = [ObservationFeatures(parameters=r) for r in (*records, *measured)]
    means, covariances = adapter.predict(features)
    signature = experiment.metrics[names[0]].signature
    mean = torch.tensor(means[signature], dtype=torch.float64)
    variance = torch.tensor(covariances[signature][signature], dtype=torch.float64)
    table = pd.DataFrame([*records, *measured])
    columns = table.drop(columns=[p.name for p in _derived(experiment.search_space)])
    pool = Pool(columns.loc[:, columns.nunique() > 1], table=table)
    regions = Regions.of_interval(mean, variance.clamp_min(0.0).sqrt(), beta, pool)
    rows = torch.arange(len(records), len(pool))
    values = torch.tensor(data["mean"].to_numpy(), dtype=torch.float64)
    return classify(regions, level), Observations(rows, values), level


def _adapter_of_all_data(
    experiment: Experiment, generation_strategy: GenerationStrategy | None
) -> Adapter | None:
    r"""The adapter of a node that was begun; fitted anew where data came since.

    Ax fits only when it is asked for a trial, by the node that makes it, and stores no
    fit. What it fits is left as it is.
    """
    if generation_strategy is None:
        return None
    options = acquisition_options(generation_strategy)
    current = generation_strategy.current_node
    begun = [
        spec
        for node in reversed(generation_strategy.nodes_by_name.values())
        for spec in node.generator_specs
        if node.trials_from_node or (node is current and spec._fitted_adapter)
    ]
    # The model of the level comes first; Sobol, which has none, is passed over.
    key = "botorch_acqf_options"
    begun.sort(key=lambda spec: spec.generator_kwargs.get(key) is not options)
    for spec in begun:
        anew = partial(spec.generator_enum, experiment, **spec.generator_kwargs)
        adapter = spec._fitted_adapter or anew()
        if adapter.can_predict:
            now = extract_experiment_data(experiment, adapter._data_loader_config)
            known = adapter.get_training_data().observation_data
            return adapter if now.observation_data.equals(known) else anew()
    return None


def _until_a_model(
    experiment: Experiment, generation_strategy: GenerationStrategy | None
) -> str:
    r"""The steps, in words, until the generator has a model."""
    node = None if generation_strategy is None else generation_strategy.current_node
    if node is None or (node.trials_from_node and not node.transition_criteria):
        return (
            "Call `client.set_generation_strategy`, with a node that has an "
            "`acquisition_generator_spec`."
        )
    left = [
        criterion.num_till_threshold(experiment, node.trials_from_node)
        for criterion in node.transition_criteria
        if isinstance(criterion, TrialBasedCriterion)
    ]
    ask = "ask for the next trial: `client.get_next_trials(1)`."
    if (n := max([int(experiment.lookup_data().df.empty), *left])) > 0:
        return f"Complete {n} more trial{'s' * (n != 1)}, then {ask}"
    return f"{ask[0].upper()}{ask[1:]}"


def sobol_points(search_space: SearchSpace, n: int, seed: int = 0) -> list[Any]:
    r"""Sobol points of a search space, as parameterizations.

    Ax's own Sobol generator takes a minute for a thousand of them.

    Args:
        search_space: Ranges, on their scales; choices, each as often; constraints.
        n: How many.
        seed: The seed of the scrambling.

    Raises:
        ValueError: If the constraints leave hardly any of the space.
    """
    parameters = search_space.parameters
    fixed = {
        name: parameter.value
        for name, parameter in parameters.items()
        if isinstance(parameter, FixedParameter)
    }
    derived = _derived(search_space)
    free = [n for n, p in parameters.items() if p not in derived and n not in fixed]
    engine = SobolEngine(max(len(free), 1), scramble=True, seed=seed)
    found = list[Any]()
    for _ in range(MOST_DRAWS):
        for u in engine.draw(n, dtype=torch.float64).tolist():
            values = {k: _at(parameters[k], v) for k, v in zip(free, u, strict=False)}
            point = {**values, **fixed}
            point.update({p.name: p.compute(point) for p in derived})
            if search_space.check_membership(point):
                found.append(point)
        if len(found) >= n:
            return found[:n]
    raise ValueError(
        f"Expected a search space of whose box constraints leave more than one part in "
        f"{MOST_DRAWS}, but of {MOST_DRAWS * n} Sobol points {len(found)} fulfil them. "
        "Predict points of your own: `client.predict(points)`."
    )


def _derived(search_space: SearchSpace) -> list[DerivedParameter]:
    parameters = search_space.parameters.values()
    return [p for p in parameters if isinstance(p, DerivedParameter)]


def _at(parameter: Parameter, u: float) -> Any:
    r"""The value of a parameter at a place in [0, 1) of its range."""
    if isinstance(parameter, ChoiceParameter):
        return parameter.values[int(u * len(parameter.values))]
    assert isinstance(parameter, RangeParameter)  # there is no other kind
    low, high = float(parameter.lower), float(parameter.upper)
    is_whole = parameter.parameter_type == ParameterType.INT
    half = 0.5 if is_whole else 0.0  # what Ax rounds to the number at an end
    first, last = low - half, high + half
    value = first + u * (last - first)
    if parameter.log_scale:
        value = first * (last / first) ** u
    return parameter.cast(min(max(round(value) if is_whole else value, low), high))


class ModelAnalysis(Analysis):
    r"""A card of the level set by the modular generator's model, on Sobol points.

    Example:
        >>> card = ModelAnalysis(threshold=70.0)

    Args:
        threshold: The level; default that of the acquisition function.
        n: The number of Sobol points.
    """

    def __init__(self, threshold: float | None = None, n: int = POINTS) -> None:
        self.threshold, self.n = threshold, whole_number(n, "n", 1)

    def validate_applicable_state(
        self,
        experiment: Experiment | None = None,
        generation_strategy: GenerationStrategy | None = None,
        adapter: Adapter | None = None,
    ) -> str | None:
        r"""The reason why the card cannot be computed; ``None`` if it can."""
        if experiment is None:
            return "ModelAnalysis needs an experiment."
        try:
            model_answer(experiment, generation_strategy, self.threshold, 1)
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
        answer, observations, level = model_answer(
            experiment, generation_strategy, self.threshold, self.n
        )
        config = experiment.optimization_config
        assert config is not None  # the objective has one metric
        (metric,) = dict(config.objective.metric_weights)
        n_above, n_open = int(answer.above.sum()), int(answer.undecided.sum())
        title = f"Level set by the model: {metric} above {written(level)}"
        return create_plotly_analysis_card(
            name=type(self).__name__,
            title=title,
            subtitle=(
                f"Of {len(answer):,} points of the search space: {n_above:,} above "
                f"{written(level)}, {n_open:,} undecided. {answer.guarantee}"
            ),
            df=plotting.level_set_frame(answer, observations),
            fig=plotting.level_set_figure(
                answer, observations, threshold=level, metric=metric, title=title
            ),
        )
