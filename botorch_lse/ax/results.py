r"""The answer of an experiment: as a table, and as a reason to stop."""

from __future__ import annotations

from typing import Any

import pandas as pd
from ax import Client
from ax.core import Experiment
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.global_stopping.strategies.base import BaseGlobalStoppingStrategy

from botorch_lse.ax.compat import experiment_of, generation_strategy_of
from botorch_lse.ax.measurements import metric_names
from botorch_lse.ax.node import LevelSetNode, level_set_node
from botorch_lse.plotting import level_set_frame, pareto_frame


def level_set(
    experiment: Client | Experiment,
    generation_strategy: GenerationStrategy | None = None,
) -> pd.DataFrame:
    r"""Which rows are above the level, which below, how sure.

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
        rounds; a round that is open enters when it is complete. For a strategy of
        several outputs ``side`` is accepted, rejected or open, and each metric has its
        columns: see ``plotting.pareto_frame``.

    Raises:
        ValueError: If no level-set strategy is there to ask.
    """
    if isinstance(experiment, Client):
        generation_strategy = generation_strategy_of(experiment)
        experiment = experiment_of(experiment)
    node = level_set_node(generation_strategy)
    return answer_frame(node, experiment)


def answer_frame(node: LevelSetNode, experiment: Experiment) -> pd.DataFrame:
    r"""The answer as things stand, for a level set or a Pareto set."""
    state = node.state(experiment)
    answer, observations = state.classification, state.observations
    strategy: Any = node.strategy
    if strategy.directions is None:
        return level_set_frame(answer, observations)
    names = metric_names(experiment, node.metrics, strategy)
    return pareto_frame(answer, strategy.estimate(state), observations, names)


class LevelSetGlobalStoppingStrategy(BaseGlobalStoppingStrategy):
    r"""Stops when the strategy is done, with the reason in words.

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
