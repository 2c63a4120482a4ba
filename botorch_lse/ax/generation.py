r"""Any strategy as an Ax generation strategy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ax.generation_strategy.generation_strategy import GenerationStrategy

from botorch_lse.ax.node import LevelSetNode
from botorch_lse.strategies import Strategy


def level_set_generation_strategy(
    strategy: Strategy,
    metrics: Sequence[str] | None = None,
    *,
    seed: int = 0,
    name: str | None = None,
    pool_folder: str | Path | None = None,
) -> GenerationStrategy:
    r"""Any strategy as an Ax generation strategy.

    Example:
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="lse")
        >>> client.configure_optimization(objective="y")
        >>> strategy = LSEStrategy(pool, threshold=0.0, batch_size=2, noise_std=0.1)
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> len(client.get_next_trials(max_trials=100))  # the rest of the round
        2

    Results are attached as ``(mean, sem)``: a known sem is the standard deviation of
    the value's noise and goes before the strategy's ``noise_std``; without both the
    noise is learned. A sem of 0 is refused.

    The place of a failed trial is asked again, as a new trial; the place of an
    abandoned one is used up. ``run_experiment`` runs the whole loop. Where measurements
    have costs, ``trial_cost`` tells them by trial.

    Args:
        strategy: The strategy; the experiment's search space comes from
            ``pool_parameters(strategy.pool)``, or its parameters are columns of the
            pool.
        metrics: The metrics in the order of the strategy's outputs; default those of
            the experiment's objective.
        seed: Fixes everything random.
        name: The name of the node and of the generation strategy.
        pool_folder: Where a pool above 20 MB is written; default the current folder.

    Raises:
        ValueError: If the strategy cannot be stored, or ``metrics`` is no list.
    """
    node = LevelSetNode(
        strategy, metrics, seed=seed, name=name, pool_folder=pool_folder
    )
    return GenerationStrategy(nodes=[node], name=node.name)
