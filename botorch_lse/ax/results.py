r"""The answer of an experiment, as a table."""

from __future__ import annotations

from typing import Any

import pandas as pd
from ax.api.client import Client
from ax.core.experiment import Experiment
from ax.generation_strategy.generation_strategy import GenerationStrategy

from botorch_lse.ax.compat import experiment_of, generation_strategy_of
from botorch_lse.ax.metrics import metric_names
from botorch_lse.ax.node import LevelSetNode
from botorch_lse.plotting import level_set_frame, pareto_frame
from botorch_lse.strategies import State


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
    return answer_frame(node, experiment, node.state(experiment))


def answer_frame(
    node: LevelSetNode, experiment: Experiment, state: State
) -> pd.DataFrame:
    r"""The table of a state, for one output or several."""
    answer, observations = state.classification, state.observations
    strategy: Any = node.strategy
    if not has_several_outputs(strategy):
        return level_set_frame(answer, observations)
    names = metric_names(experiment, node.metrics, strategy)
    return pareto_frame(answer, strategy.estimate(state), observations, names)


def has_several_outputs(strategy: Any) -> bool:
    r"""Whether it looks for a Pareto set; it then has ``maximize`` and ``estimate``."""
    return hasattr(strategy, "maximize")


def level_set_node(generation_strategy: GenerationStrategy | None) -> LevelSetNode:
    r"""The node that knows the level set: the current one, else the last.

    Raises:
        ValueError: If there is none.
    """
    found = "none"
    ours: list[LevelSetNode] = []
    if isinstance(generation_strategy, GenerationStrategy):
        found = repr(generation_strategy.name)
        ours = level_set_nodes(generation_strategy)
    elif generation_strategy is not None:
        found = type(generation_strategy).__name__
    if not ours:
        raise ValueError(
            f"Expected `generation_strategy` to hold a LevelSetNode, but got {found}. "
            "Call `client.set_generation_strategy(level_set_generation_strategy("
            "strategy))`; for a modular generator use `client.predict` on the rows."
        )
    return ours[-1]


def level_set_nodes(
    generation_strategy: GenerationStrategy | None,
) -> list[LevelSetNode]:
    r"""All level-set nodes in order, then once more the current node if it is one."""
    if generation_strategy is None:
        return []
    by_name = generation_strategy.nodes_by_name
    current = by_name[generation_strategy.current_node_name]
    nodes = [*by_name.values(), current]
    return [node for node in nodes if isinstance(node, LevelSetNode)]


def current_level_set_node(
    generation_strategy: GenerationStrategy | None,
) -> LevelSetNode | None:
    r"""The current node if it is a ``LevelSetNode``, else ``None``."""
    if generation_strategy is None:
        return None
    node = generation_strategy.nodes_by_name[generation_strategy.current_node_name]
    return node if isinstance(node, LevelSetNode) else None
