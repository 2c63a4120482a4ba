r"""What trials cost, as a metric that Ax fetches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from ax.api.client import Client
from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.metric import Metric, MetricFetchE, MetricFetchResult
from ax.utils.common.result import Err, Ok

from botorch_lse.ax.compat import (
    experiment_of,
    generation_strategy_of,
    has_own_registries,
)
from botorch_lse.ax.costs import COST, Bill, check_costs, travel_of
from botorch_lse.ax.measurements import listed
from botorch_lse.ax.node import LevelSetNode, level_set_node
from botorch_lse.ax.pool_store import StoredStrategy
from botorch_lse.strategies import Strategy

_SAME = 1e-9
"""Relative difference of costs that Ax's storage may make."""


class CostMetric(Metric):
    r"""The cost of each trial, from the strategy: ``Pool.costs`` or TruVaR's ``cost=``.

    A tracking metric for an ``Experiment`` or ``Orchestrator``; in a loop by hand see
    ``trial_cost``. Costs that depend on the row measured before follow the way through
    the rounds as it was; each fetch computes them anew, since a row abandoned later
    changes the way. Summed over the trials of complete rounds they are
    ``TruVaRStrategy.spent(state)`` and the ``cost`` of ``ProgressAnalysis``. Trials
    that are not completed have no data.

    Example:
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [1.0]], costs=[1.0, 3.0])
        >>> metric = CostMetric(LSEStrategy(pool, threshold=0.2))
        >>> metric.name
        'cost'

    ``experiment.add_metric(metric)``, or ``client.configure_metrics([metric])``. A
    ``RegistryBundle`` of your own must name it: ``metric_clss={CostMetric: None}``.

    Args:
        strategy: The strategy of the experiment's ``LevelSetNode``, or one from
            storage.
        name: The metric's name.
        metrics: As given to the node.
        node_name: The name of the node; default as the node's.

    Raises:
        ValueError: If the strategy has no costs or cannot be stored, or ``metrics`` is
            no list of names.
    """

    def __init__(
        self,
        strategy: Strategy | StoredStrategy,
        name: str = COST,
        metrics: Sequence[str] | None = None,
        node_name: str | None = None,
    ) -> None:
        super().__init__(name, lower_is_better=True)
        self.node_name = type(strategy).__name__ if node_name is None else node_name
        names = listed(metrics)
        self.metrics = None if names is None else list(names)
        if not isinstance(strategy, StoredStrategy):
            check_costs(strategy)
            strategy = StoredStrategy(strategy)
        self._stored = strategy
        self._experiment: Experiment | None = None

    @classmethod
    def is_available_while_running(cls) -> bool:
        r"""True, so that Ax computes costs anew rather than look them up."""
        return True

    def fetch_trial_data(self, trial: BaseTrial, **kwargs: Any) -> MetricFetchResult:
        r"""The cost of each arm of a trial.

        Args:
            trial: Of an experiment with the strategy's trials.
            kwargs: Not used.
        """
        return self._fetch(trial.experiment, [trial])[trial.index]

    def bulk_fetch_experiment_data(
        self,
        experiment: Experiment,
        metrics: list[Metric],
        trials: list[BaseTrial] | None = None,
        **kwargs: Any,
    ) -> dict[int, dict[str, MetricFetchResult]]:
        r"""The costs of many trials; the experiment is read once.

        Args:
            experiment: With the strategy's trials.
            metrics: All of this class.
            trials: Default all.
            kwargs: Not used.
        """
        asked = list(experiment.trials.values()) if trials is None else trials
        asked = [trial for trial in asked if trial.status.expecting_data]
        found = {
            metric.signature: metric._fetch(experiment, asked)
            for metric in metrics
            if isinstance(metric, CostMetric)
        }
        return {
            trial.index: {name: results[trial.index] for name, results in found.items()}
            for trial in asked
        }

    def _fetch(
        self, experiment: Experiment, trials: Sequence[BaseTrial]
    ) -> dict[int, MetricFetchResult]:
        try:
            bill = self._bill(experiment)
            return {trial.index: Ok(self._data(trial, bill)) for trial in trials}
        except Exception as error:  # Ax takes failures as results
            failed = MetricFetchE(f"No costs: {error}", error)
            return {trial.index: Err(failed) for trial in trials}

    def keep_pool(self, experiment: Experiment) -> None:
        r"""Store the pool with an experiment, as its node does, not with the metric."""
        self._stored.keep_pool(experiment)
        self._experiment = experiment

    def _bill(self, experiment: Experiment) -> Bill:
        self.keep_pool(experiment)
        node = LevelSetNode(self._stored, self.metrics, name=self.node_name)
        return Bill(node, experiment)

    def _data(self, trial: BaseTrial, bill: Bill) -> Data:
        if not trial.status.is_completed:
            return Data()
        costs = bill.of(trial)
        table = pd.DataFrame({"arm_name": list(costs), "mean": list(costs.values())})
        return Data(
            df=table.assign(
                trial_index=trial.index,
                metric_name=self.name,
                metric_signature=self.signature,
                sem=0.0,
            )
        )

    @classmethod
    def serialize_init_args(cls, obj: Any) -> dict[str, Any]:
        r"""The constructor's arguments, for Ax's JSON and SQL storage."""
        return {
            "strategy": obj._stored.to_json(obj._experiment),
            "name": obj.name,
            "metrics": obj.metrics,
            "node_name": obj.node_name,
        }

    @classmethod
    def deserialize_init_args(
        cls,
        args: dict[str, Any],
        decoder_registry: Mapping[str, Any] | None = None,
        class_decoder_registry: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        r"""The constructor's arguments from what ``serialize_init_args`` wrote."""
        given = {key: args[key] for key in ("name", "metrics", "node_name")}
        return {**given, "strategy": StoredStrategy(args["strategy"])}


def record_costs(client: Client) -> None:
    r"""Attach to each completed trial what it cost, as the metric ``cost``.

    For a loop by hand: call it after trials are completed or abandoned, as often as you
    like. Costs recorded already are corrected where they have changed, which happens
    only where they depend on the row measured before. ``run_experiment`` does it.

    Example:
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy, pool_parameters
        >>> from botorch_lse.strategies import TruVaRStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]], costs=[3.0, 1.0, 2.0])
        >>> strategy = TruVaRStrategy(pool, 0.2, noise_std=0.01, beta=4.0)
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="priced")
        >>> client.configure_optimization(objective="y")
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> for trial, parameters in client.get_next_trials(1).items():
        ...     y = float(pool.X[parameters["pool_index"], 0])
        ...     status = client.complete_trial(trial, {"y": (y, 0.01)})
        ...     record_costs(client)

    Args:
        client: With a level-set strategy that has costs.

    Raises:
        ValueError: If the strategy has no costs.
    """
    experiment = experiment_of(client)
    node = level_set_node(generation_strategy_of(client))
    check_costs(node.strategy)
    declare_costs(client, node)
    bill, recorded = Bill(node, experiment), _recorded(experiment)
    for trial in list(experiment.trials.values()):
        if trial.status.is_completed:
            cost = sum(bill.of(trial).values())
            before = recorded.get(trial.index)
            if before is None or abs(cost - before) > _SAME * cost:
                client.attach_data(trial.index, {COST: (cost, 0.0)})


def declare_costs(client: Client, node: LevelSetNode) -> None:
    r"""Put the metric of costs among the experiment's, unless one has its name.

    Registries of the user may not know it; then Ax makes a plain metric of that name.
    """
    if COST not in experiment_of(client).metrics and not has_own_registries(client):
        metric = CostMetric(node.stored, metrics=node.metrics, node_name=node.name)
        metric.keep_pool(experiment_of(client))
        # Any metric of Ax will do, whatever the annotation says.
        client.configure_metrics([metric])  # type: ignore[list-item]


def follows_costs(client: Client, node: LevelSetNode | None) -> bool:
    r"""Whether a trial's cost may change later, and is not the user's own metric."""
    if node is None or travel_of(node.strategy) is None:
        return False
    metric = experiment_of(client).metrics.get(COST)
    return metric is None or isinstance(metric, CostMetric)


def _recorded(experiment: Experiment) -> dict[int, float]:
    table = experiment.lookup_data().df
    if len(table) == 0:
        return {}
    table = table[table["metric_name"] == COST]
    return dict(zip(table["trial_index"], table["mean"], strict=True))
