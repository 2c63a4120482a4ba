r"""Costs of trials: computed by hand, recorded in an experiment, or fetched by Ax."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from ax import Client
from ax.core import BatchTrial, Data, Experiment, Metric
from ax.core.base_trial import BaseTrial
from ax.core.metric import MetricFetchE, MetricFetchResult
from ax.storage.json_store.encoders import metric_to_dict
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY
from ax.storage.metric_registry import CORE_METRIC_REGISTRY
from ax.utils.common.result import Err, Ok

from botorch_lse.ax import compat
from botorch_lse.ax.ledger import Measurement, is_left_out
from botorch_lse.ax.node import LevelSetNode, level_set_node
from botorch_lse.ax.storage import StoredStrategy
from botorch_lse.strategies import Strategy

COST = "cost"
"""The name of the tracking metric of a trial's cost."""
COST_METRIC = 8130
"""The number of ``CostMetric`` in SQL storage; Ax's own are small."""
_SAME = 1e-9
"""The share by which equal costs may differ, since Ax's storage rounds them."""


def _check_costs(strategy: Strategy) -> None:
    r"""Refuse a strategy without costs.

    Raises:
        ValueError: If it has none.
    """
    if not strategy.has_costs:
        raise ValueError(
            "Expected a `strategy` whose measurements have costs, but got a "
            f"{type(strategy).__name__} whose pool has none. Write `Pool(X, "
            "costs=...)`, or `TruVaRStrategy(pool, cost=...)` for costs that depend on "
            "the row measured before."
        )


def trial_cost(client: Client, trial_index: int) -> float:
    r"""The cost of a trial: its row's ``Pool.costs``, or TruVaR's ``cost=``.

    For a loop by hand; ``run_experiment`` records it by itself, and ``CostMetric`` is
    for an experiment whose metrics are fetched. A cost that depends on the row measured
    before (a ship's travel) follows the round's cheapest order, the one in which the
    strategy asks. Rows of a round that are abandoned later change the others' way:
    ``record_costs`` brings what was recorded up to date.

    Example:
        >>> from ax.api.client import Client
        >>> from botorch_lse import Pool
        >>> from botorch_lse.ax import level_set_generation_strategy, pool_parameters
        >>> from botorch_lse.strategies import LSEStrategy
        >>> pool = Pool([[0.0], [0.5], [1.0]], costs=[3.0, 1.0, 2.0])
        >>> strategy = LSEStrategy(pool, threshold=0.2, noise_std=0.01, beta=4.0)
        >>> client = Client()
        >>> client.configure_experiment(parameters=pool_parameters(pool), name="run")
        >>> client.configure_optimization(objective="y")
        >>> client.set_generation_strategy(level_set_generation_strategy(strategy))
        >>> for trial, parameters in client.get_next_trials(1).items():
        ...     y = float(pool.X[parameters["pool_index"], 0])
        ...     data = {"y": (y, 0.01), "cost": (trial_cost(client, trial), 0.0)}
        ...     status = client.complete_trial(trial, data)

    Args:
        client: A client with a level-set strategy that has costs.
        trial_index: Of a trial that runs or is measured.

    Returns:
        The cost; for an arm measured ``k`` times, of all ``k``; 0 for a trial that
        failed, was abandoned or is no row of the pool (nobody said what that costs).

    Raises:
        ValueError: If the strategy has no costs or there is no such trial.
    """
    experiment, node = _costly_run(client)
    if trial_index not in experiment.trials:
        raise ValueError(
            f"Expected `trial_index` to be one of the experiment's "
            f"{len(experiment.trials)} trials, but got {trial_index}."
        )
    return TrialCosts(node, experiment).of_trial(experiment.trials[trial_index])


def _costly_run(client: Client) -> tuple[Experiment, LevelSetNode]:
    node = level_set_node(compat.generation_strategy_of(client))
    _check_costs(node.strategy)
    return compat.experiment_of(client), node


class TrialCosts:
    r"""The costs of an experiment's measurements, as its trials are now.

    Where a cost depends on the row measured before, the rows of a round are visited in
    the cheapest order, beginning at the last row of the round before; several visits of
    one row in a round share their cost equally. Failed and abandoned trials are not
    visited. In the open round all rows that are not used up are visited, measured or
    not.

    Args:
        node: Its strategy has costs.
        experiment: The experiment.
    """

    def __init__(self, node: LevelSetNode, experiment: Experiment) -> None:
        self._space = node.space(experiment)
        self._strategy: Any = node.strategy
        self._last_row: int | None = None  # the last row visited so far
        self._measured: dict[tuple[int, str], float] = {}
        self._expected: dict[int, float] = {}
        self._running_trials: Sequence[int] = ()
        ledger = node.ledger(experiment)
        self._failed = ledger.failed
        self.by_round = [
            self._cost_of_results(round_.results) for round_ in ledger.complete
        ]
        r"""The summed cost of each complete round."""
        if ledger.open is not None:
            rows = Counter(ledger.open.plan) - Counter(ledger.open.lost)
            self._running_trials = ledger.open.running_trials
            self._expected = self._cost_per_visit(sorted(rows.elements()))
            self._cost_of_results(ledger.open.results, self._expected)
        self._cost_of_results(ledger.measured_meanwhile)

    def of_trial(self, trial: BaseTrial) -> float:
        r"""The cost of a trial, all its arms together."""
        return sum(self.of_arms(trial).values())

    def of_arms(self, trial: BaseTrial) -> dict[str, float]:
        r"""The costs of a trial's arms by name, without failed or abandoned ones.

        An arm of the open round that is still running has the cost of its visit in the
        planned order; any other running arm that of going there next.
        """
        found = {}
        weights = trial.arm_weights if isinstance(trial, BatchTrial) else {}
        for arm in trial.arms:
            failed = is_left_out(trial, arm.name) or (
                (trial.index, arm.name) in self._failed
            )
            if failed or self._space.is_off_the_pool(arm.parameters):
                continue
            row = self._space.row_of(arm.parameters, f"trial {trial.index}")
            if (trial.index, arm.name) in self._measured:
                found[arm.name] = self._measured[trial.index, arm.name]
            elif trial.index in self._running_trials and row in self._expected:
                found[arm.name] = self._expected[row] * weights.get(arm, 1.0)
            else:
                found[arm.name] = self._cost_of_next(row)
        return found

    def _cost_of_results(
        self, results: Sequence[Measurement], costs: Mapping[int, float] | None = None
    ) -> float:
        r"""Add the costs of some results, and return their sum.

        Args:
            results: Measurements of one round.
            costs: The cost of one visit by row, if it is known already.
        """
        if costs is None:
            rows = [m.row for m in results for _ in range(m.count)]
            costs = self._cost_per_visit(rows)
        by_arm = {(m.trial, m.arm): m.count * costs[m.row] for m in results}
        self._measured |= by_arm
        return sum(by_arm.values())

    def _cost_per_visit(self, rows: list[int]) -> dict[int, float]:
        r"""The cost of one visit of each row, visited in the cheapest order.

        The order begins at ``_last_row``, which is then the last row of the order.
        """
        if not self._strategy.costs_depend_on_previous:
            return {row: self._cost_of_next(row) for row in rows}
        spent: defaultdict[int, float] = defaultdict(float)
        wanted = torch.tensor(rows, dtype=torch.long)
        order = self._strategy.prices.visiting_order(self._last_row, wanted)
        for row in order.tolist():
            spent[row] += self._cost_of_next(row)
            self._last_row = row
        counts = Counter(rows)
        return {row: cost / counts[row] for row, cost in spent.items()}

    def _cost_of_next(self, row: int) -> float:
        if not self._strategy.costs_depend_on_previous:
            return float(self._strategy.pool.costs[row])
        return float(self._strategy.prices.of(self._last_row, torch.tensor([row])))


class CostMetric(Metric):
    r"""A metric of each trial's cost: ``Pool.costs`` or TruVaR's ``cost=``.

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
            storage, or its JSON.
        name: The metric's name.
        metrics: As given to the node.
        node_name: The name of the node; default as the node's.

    Raises:
        ValueError: If the strategy has no costs or cannot be stored, or ``metrics`` is
            no list of names.
    """

    def __init__(
        self,
        strategy: Strategy | StoredStrategy | Mapping[str, Any],
        name: str = COST,
        metrics: Sequence[str] | None = None,
        node_name: str | None = None,
    ) -> None:
        super().__init__(name, lower_is_better=True)
        if isinstance(strategy, Strategy):
            _check_costs(strategy)
        self._node = node = LevelSetNode(strategy, metrics, name=node_name)
        self.node_name = node.name
        self.metrics = None if node.metrics is None else list(node.metrics)
        self._experiment: Experiment | None = None

    @classmethod
    def is_available_while_running(cls) -> bool:
        r"""Whether Ax computes costs anew rather than look them up: always."""
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
        metrics: list[Any],
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
            metric.signature: metric._fetch(experiment, asked) for metric in metrics
        }
        return {
            trial.index: {name: results[trial.index] for name, results in found.items()}
            for trial in asked
        }

    def _fetch(
        self, experiment: Experiment, trials: Sequence[BaseTrial]
    ) -> dict[int, MetricFetchResult]:
        try:
            self.keep_pool(experiment)
            costs = TrialCosts(self._node, experiment)
            return {trial.index: Ok(self._data(trial, costs)) for trial in trials}
        except Exception as error:  # Ax takes failures as results
            failed = MetricFetchE(f"No costs: {error}", error)
            return {trial.index: Err(failed) for trial in trials}

    def keep_pool(self, experiment: Experiment) -> None:
        r"""Store the pool with an experiment, as its node does, not with the metric."""
        self._node.stored.keep_pool(experiment)
        self._experiment = experiment

    def _data(self, trial: BaseTrial, costs: TrialCosts) -> Data:
        if not trial.status.is_completed:
            return Data()
        found = costs.of_arms(trial)
        table = pd.DataFrame({"arm_name": list(found), "mean": list(found.values())})
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
            "strategy": obj._node.stored.to_json(obj._experiment),
            "name": obj.name,
            "metrics": obj.metrics,
            "node_name": obj.node_name,
        }


def register_cost_metric() -> None:
    r"""Let Ax store the metric of costs, as JSON and in SQL.

    Raises:
        ValueError: If another metric has its number.
    """
    for known, number in CORE_METRIC_REGISTRY.items():
        if number == COST_METRIC and known is not CostMetric:
            raise ValueError(
                f"Expected the number {COST_METRIC} to be free in Ax's registry of "
                f"metrics, but {known.__name__} holds it. Register that one under "
                "another number."
            )
    CORE_METRIC_REGISTRY[CostMetric] = COST_METRIC
    CORE_ENCODER_REGISTRY[CostMetric] = metric_to_dict
    CORE_DECODER_REGISTRY[CostMetric.__name__] = CostMetric


register_cost_metric()


def record_costs(client: Client) -> None:
    r"""Attach the cost of each completed trial to it, as the metric ``cost``.

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

    Trials that are no row of the pool have no cost.

    Args:
        client: A client with a level-set strategy that has costs.

    Raises:
        ValueError: If the strategy has no costs.
    """
    experiment, node = _costly_run(client)
    _declare_costs(client, node)
    costs = TrialCosts(node, experiment)
    table = experiment.lookup_data().df
    table = table[table["metric_name"] == COST]
    recorded = dict(zip(table["trial_index"], table["mean"], strict=True))
    for trial in list(experiment.trials.values()):
        if trial.status.is_completed and (found := costs.of_arms(trial)):
            cost, before = sum(found.values()), recorded.get(trial.index)
            if before is None or abs(cost - before) > _SAME * cost:
                client.attach_data(trial.index, {COST: (cost, 0.0)})


def add_cost(
    client: Client, node: LevelSetNode | None, trial: int, outcome: dict[str, Any]
) -> None:
    r"""Add a trial's cost to its outcome, unless the evaluation returned a cost."""
    if node is not None and node.strategy.has_costs and COST not in outcome:
        experiment = compat.experiment_of(client)
        found = TrialCosts(node, experiment).of_arms(experiment.trials[trial])
        if found:
            _declare_costs(client, node)
            outcome[COST] = (sum(found.values()), 0.0)


def follow_costs(client: Client, node: LevelSetNode | None) -> None:
    r"""Correct recorded costs where later trials have changed the order of visits.

    Does nothing for costs that do not depend on the order, or if the metric ``cost`` is
    the user's own.
    """
    if node is not None and node.strategy.costs_depend_on_previous:
        metric = compat.experiment_of(client).metrics.get(COST)
        if metric is None or isinstance(metric, CostMetric):
            record_costs(client)


def _declare_costs(client: Client, node: LevelSetNode) -> None:
    r"""Add the metric of costs to the experiment, unless one has its name.

    Registries of the user may not know it; then Ax makes a plain metric of that name.
    """
    experiment = compat.experiment_of(client)
    if COST not in experiment.metrics and not compat.has_own_registries(client):
        metric = CostMetric(node.stored, metrics=node.metrics, node_name=node.name)
        metric.keep_pool(experiment)
        # Any metric of Ax will do, whatever the annotation says.
        client.configure_metrics([metric])  # type: ignore[list-item]
