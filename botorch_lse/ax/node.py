r"""One generation node for every strategy, its predictions, and how to find it."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from ax.adapter.base import Adapter
from ax.core import Arm, Data, Experiment, GeneratorRun, ObservationFeatures
from ax.core.observation import ObservationData
from ax.core.types import TParameterization
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.transition_criterion import TransitionCriterion
from ax.generators.base import Generator
from ax.storage.json_store.decoder import object_from_json

from botorch_lse.ax.ledger import METADATA, Ledger, LedgerReader, OpenRound
from botorch_lse.ax.measurements import (
    Measurements,
    checked_metrics,
    metric_names,
    warn_of_unknown,
)
from botorch_lse.ax.pool_space import PoolSpace
from botorch_lse.ax.pool_store import StoredStrategy
from botorch_lse.ax.replay import Replay, summary
from botorch_lse.checks import whole_number
from botorch_lse.strategies import State, Strategy


class LevelSetNode(ExternalGenerationNode):
    r"""Asks a strategy for rows of its pool, over the rounds of an experiment.

    The node keeps no state of its own: what it asks for is a function of its arguments,
    the experiment's trials and their data (the rule stands in ``ax/ledger.py``). Each
    generator run stores its round and the round's plan, so that a run that was cut and
    loaded elsewhere goes on with the same rows.

    While all rows of a round are out, ``DataRequiredError`` is raised; when the
    strategy is done, ``GenerationStrategyCompleted``. Replicates in a generator run are
    arm weights. After another node (``MinTrials(..., transition_to=node.name)``) its
    trials count as measured elsewhere; in the very call that goes on to this node, Ax
    does not know the size of a round: ask for no more than one, or again.

    Example:
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]])
        >>> node = LevelSetNode(LSEStrategy(pool, threshold=0.0, noise_std=0.1))
        >>> node.name
        'LSEStrategy'

    Args:
        strategy: Any strategy, or one from storage.
        metrics: The metrics in the order of the strategy's outputs; default those of
            the experiment's objective. Its sign does not matter for a level set; for a
            Pareto set the signs must be those of ``maximize``.
        seed: The seed of ``strategy.init``.
        name: The node's name, by which its trials are known.
        transition_criteria: When to go on to another node; default never.
        pool_folder: Where a pool above 20 MB is written; default the current folder.

    Raises:
        ValueError: If the strategy cannot be stored, or ``metrics`` is no list.
    """

    def __init__(
        self,
        strategy: Strategy | StoredStrategy,
        metrics: Sequence[str] | None = None,
        *,
        seed: int = 0,
        name: str | None = None,
        transition_criteria: Sequence[TransitionCriterion] | None = None,
        pool_folder: str | Path | None = None,
    ) -> None:
        super().__init__(
            name=type(strategy).__name__ if name is None else name,
            should_deduplicate=False,  # replicates are part of the design
            transition_criteria=transition_criteria,
        )
        self.fallback_specs = {}
        self.metrics = checked_metrics(metrics)
        self.seed = whole_number(seed, "seed", 0)
        if not isinstance(strategy, StoredStrategy):
            strategy = StoredStrategy(strategy, pool_folder)
        self.stored = strategy
        r"""The strategy as storage holds it."""
        self._space: PoolSpace | None = None
        self._reader: tuple[list[str], PoolSpace, LedgerReader] | None = None
        self._ledger: Ledger | None = None
        self._issued: list[int] = []
        self._places_per_run = self._runs_promised = self._runs_left = 1

    @property
    def strategy(self) -> Strategy:
        r"""The strategy.

        Raises:
            ValueError: If its pool is not where it was when the experiment was saved.
        """
        return self.stored.get(self._known_experiment)

    @property
    def _known_experiment(self) -> Experiment | None:
        strategy = self._generation_strategy
        return None if strategy is None else strategy._experiment

    @cached_property
    def _replay(self) -> Replay:
        return Replay(self.strategy, self.seed)

    # --- reading ---------------------------------------------------------------------

    def ledger(self, experiment: Experiment, data: Data | None = None) -> Ledger:
        r"""The rounds of an experiment, read from its trials and data."""
        data = experiment.lookup_data() if data is None else data
        metrics = metric_names(experiment, self.metrics, self.strategy)
        space, found = self.space(experiment), self._reader
        # A reader knows what it read before by the same metrics and space.
        if found is None or found[0] != metrics or found[1] is not space:
            measurements = Measurements(metrics, self.strategy)
            reader = LedgerReader(self.name, self.strategy.pool, space, measurements)
            found = self._reader = (metrics, space, reader)
        return found[2].read(experiment, data)

    def history(self, experiment: Experiment) -> list[State]:
        r"""The states before the first and after each complete round."""
        return self._replay.history(self.ledger(experiment))

    def space(self, experiment: Experiment) -> PoolSpace:
        r"""The rows as parameterizations of the experiment's search space."""
        if self._space is None or not self._space.is_of(experiment.search_space):
            self._space = PoolSpace(self.strategy.pool, experiment.search_space)
        return self._space

    def state(self, experiment: Experiment, data: Data | None = None) -> State:
        r"""The strategy's state: a function of the experiment alone."""
        return self._replay.state(self.ledger(experiment, data))

    def summary(self, experiment: Experiment) -> str:
        r"""Where the run stands, in a sentence."""
        return summary(self.state(experiment), self.strategy)

    @property
    def _fitted_adapter(self) -> LevelSetAdapter | None:  # type: ignore[override]
        r"""For ``Client.predict`` and Ax's analyses; ``None`` if it can not predict."""
        experiment = self._known_experiment
        if experiment is None or not self.strategy.can_predict:
            return None
        return LevelSetAdapter(self, experiment)

    # --- asking ----------------------------------------------------------------------

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        r"""Read the experiment at the beginning of a call of ``gen``."""
        warn_of_unknown(experiment, data, self.metrics)
        self._ledger = self.ledger(experiment, data)
        self.stored.keep_pool(experiment)
        self._issued = []
        self._runs_left, self._runs_promised = self._runs_promised, 1

    def get_next_candidate(
        self, pending_parameters: list[TParameterization]
    ) -> TParameterization:
        r"""The next row; pending ones are known from the experiment."""
        space = self.space(self.experiment)
        return {**space.parameters_of(self._take(1)[0])}

    def new_trial_limit(self, raise_generation_errors: bool = False) -> int:
        r"""How many trials the rest of the round makes.

        Ax asks before it says how many measurements a batch trial shall have; the size
        of the last one is taken. If it was smaller, trials get fewer, so that each of
        those promised here gets one.
        """
        ledger = self.ledger(self.experiment)
        rest = 0 if self._is_done(ledger) else len(self._current(ledger).to_ask)
        self._runs_promised = math.ceil(rest / self._places_per_run)
        return self._runs_promised

    def _gen(  # type: ignore[override]  # as ExternalGenerationNode has it
        self,
        experiment: Experiment,
        data: Data | None = None,
        n: int | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        **generator_gen_kwargs: Any,
    ) -> GeneratorRun:
        fixed = generator_gen_kwargs.get("fixed_features")
        if fixed is not None and fixed.parameters:
            raise UnsupportedError(
                "Expected no fixed parameters, because the strategy chooses whole rows "
                "of its pool. Leave the other rows out of the pool instead."
            )
        start = time.monotonic()
        self._places_per_run = 1 if n is None else n
        counts = Counter(self._take(self._places_per_run))
        assert self._ledger is not None  # read at the beginning of `gen`
        current, space = self._current(self._ledger), self.space(experiment)
        run = GeneratorRun(
            arms=[Arm(parameters=space.parameters_of(row)) for row in counts],
            weights=[float(count) for count in counts.values()],
            fit_time=self.fit_time_since_gen,
            gen_time=time.monotonic() - start,
            generator_key=self.name,
            gen_metadata={
                METADATA: {
                    "round": current.number,
                    "plan": list(current.plan),
                    "pool": self.strategy.pool.hash,
                }
            },
        )
        # Ax sets the int 0 here; with it, SQL storage loses the arms of later trials.
        self.fit_time_since_gen = 0.0
        return run

    def _take(self, n: int) -> list[int]:
        assert self._ledger is not None  # read at the beginning of `gen`
        if self._is_done(self._ledger):
            raise GenerationStrategyCompleted(
                summary(self._replay.state(self._ledger), self.strategy)
            )
        current = self._current(self._ledger)
        rest = sorted((Counter(current.to_ask) - Counter(self._issued)).elements())
        if not rest:
            raise DataRequiredError(current.why_wait(len(self._issued)))
        self._runs_left -= 1
        rows = rest[: max(1, min(n, len(rest) - self._runs_left))]
        self._issued += rows
        return rows

    def _is_done(self, ledger: Ledger) -> bool:
        return ledger.open is None and self._replay.complete(ledger).is_done

    def _current(self, ledger: Ledger) -> OpenRound:
        if ledger.open is not None:
            return ledger.open
        try:
            return OpenRound(ledger.n_rounds, self._replay.plan(ledger))
        except ValueError as error:
            if not ledger.pending:
                raise
            raise DataRequiredError(str(error)) from error

    # --- storage ---------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        r"""The constructor's arguments, for Ax's JSON and SQL storage."""
        return {
            "__type": type(self).__name__,
            "strategy": self.stored.to_json(self._known_experiment),
            **self._other_arguments(),
        }

    def _other_arguments(self) -> dict[str, Any]:
        return {
            "metrics": None if self.metrics is None else list(self.metrics),
            "seed": self.seed,
            "name": self.name,
            "transition_criteria": list(self.transition_criteria),
        }

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        same = self.stored.arguments == other.stored.arguments
        return same and self._other_arguments() == other._other_arguments()

    @classmethod
    def deserialize_init_args(
        cls,
        args: dict[str, Any],
        decoder_registry: dict[str, Any] | None = None,
        class_decoder_registry: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        r"""The constructor's arguments from what ``to_dict`` wrote."""
        given = {key: args[key] for key in ("metrics", "seed", "name")}
        criteria = object_from_json(
            args["transition_criteria"],
            decoder_registry=decoder_registry or {},
            class_decoder_registry=class_decoder_registry or {},
        )
        strategy = StoredStrategy(args["strategy"])
        return {**given, "strategy": strategy, "transition_criteria": criteria}


# --- predictions ----------------------------------------------------------------------


class LevelSetGenerator(Generator):
    r"""Says that predictions are there; candidates come from the node."""

    @property
    def can_predict(self) -> bool:
        r"""True: a Gaussian process predicts every row of the pool."""
        return True

    @property
    def can_model_in_sample(self) -> bool:
        r"""Always: rows that were measured can be asked for, too."""
        return True


class LevelSetAdapter(Adapter):
    r"""Mean and standard deviation of a GP strategy's function, for rows of its pool.

    The posterior after the complete rounds, in the units of the metric, noise excluded.

    Args:
        node: The node that holds the strategy.
        experiment: Its experiment.
    """

    def __init__(self, node: LevelSetNode, experiment: Experiment) -> None:
        super().__init__(
            experiment=experiment, generator=LevelSetGenerator(), fit_on_init=False
        )
        (metric,) = metric_names(experiment, node.metrics, node.strategy)
        self._signature = experiment.metrics[metric].signature
        self.outcomes = [self._signature]
        self._node = node

    def _predict(
        self,
        observation_features: list[ObservationFeatures],
        use_posterior_predictive: bool = False,
    ) -> list[ObservationData]:
        if use_posterior_predictive:
            raise UnsupportedError(
                "Expected `use_posterior_predictive=False`: the prediction is that of "
                "the function. Add the noise variance for a new measurement's."
            )
        space = self._node.space(self._experiment)
        answer = self._node.state(self._experiment).classification
        rows = [
            space.row_of(features.parameters, "the point")
            for features in observation_features
        ]
        return [
            ObservationData(
                metric_signatures=[self._signature],
                means=np.array([float(answer.mean[row])]),
                covariance=np.array([[float(answer.sigma[row]) ** 2]]),
            )
            for row in rows
        ]


# --- generation strategies ------------------------------------------------------------


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
    have costs, ``trial_cost`` computes them by trial.

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


def level_set_node(generation_strategy: GenerationStrategy | None) -> LevelSetNode:
    r"""The node that knows the level set: the current one, else the last.

    Raises:
        ValueError: If there is none.
    """
    ours = level_set_nodes(generation_strategy)
    if not ours:
        found = type(generation_strategy).__name__
        if isinstance(generation_strategy, GenerationStrategy):
            found = repr(generation_strategy.name)
        raise ValueError(
            f"Expected `generation_strategy` to hold a LevelSetNode, but got {found}. "
            "Call `client.set_generation_strategy(level_set_generation_strategy("
            "strategy))`; for a modular generator use `client.predict` on the rows."
        )
    return current_level_set_node(generation_strategy) or ours[-1]


def level_set_nodes(generation_strategy: Any) -> list[LevelSetNode]:
    r"""All level-set nodes in order; none if it is no generation strategy."""
    if not isinstance(generation_strategy, GenerationStrategy):
        return []
    nodes = generation_strategy.nodes_by_name.values()
    return [node for node in nodes if isinstance(node, LevelSetNode)]


def current_level_set_node(generation_strategy: Any) -> LevelSetNode | None:
    r"""The current node if it is a ``LevelSetNode``, else ``None``."""
    ours = level_set_nodes(generation_strategy)
    now = [n for n in ours if n.name == generation_strategy.current_node_name]
    return now[0] if now else None
