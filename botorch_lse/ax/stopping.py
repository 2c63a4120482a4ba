r"""Stop an Ax orchestrator when the pool is classified."""

from __future__ import annotations

from ax.core.experiment import Experiment
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.global_stopping.strategies.base import BaseGlobalStoppingStrategy

from botorch_lse.ax.results import level_set_node
from botorch_lse.ax.summary import summary


class LevelSetGlobalStoppingStrategy(BaseGlobalStoppingStrategy):
    r"""Stops when the strategy is done, with the reason in words.

    The generation strategy stops an orchestrator by itself when it is asked for more;
    this stops it before, and tells why.

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
        state = node.state(experiment)
        return state.is_done, summary(state, node.strategy)
