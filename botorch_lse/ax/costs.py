r"""What the trials of an experiment cost, as things stand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from ax.api.client import Client
from ax.core.base_trial import BaseTrial
from ax.core.experiment import Experiment

from botorch_lse.ax.compat import experiment_of, generation_strategy_of
from botorch_lse.ax.ledger import OpenRound, is_left_out
from botorch_lse.ax.measurements import Measurement, weight_of
from botorch_lse.ax.node import LevelSetNode, level_set_node
from botorch_lse.strategies import Strategy
from botorch_lse.strategies.costs import RowCost

COST = "cost"
"""The tracking metric of a trial's cost."""


def has_costs(strategy: Strategy) -> bool:
    r"""Whether a strategy's measurements have costs."""
    return strategy.pool.costs is not None or travel_of(strategy) is not None


def travel_of(strategy: Any) -> RowCost | None:
    r"""The costs that depend on the row measured before; ``None`` without."""
    return getattr(strategy, "cost", None)


def check_costs(strategy: Strategy) -> None:
    r"""Refuse a strategy without costs.

    Raises:
        ValueError: If it has none.
    """
    if not has_costs(strategy):
        raise ValueError(
            "Expected a `strategy` whose measurements have costs, but got a "
            f"{type(strategy).__name__} whose pool has none. Write `Pool(X, "
            "costs=...)`, or `TruVaRStrategy(pool, cost=...)` for costs that depend on "
            "the row measured before."
        )


def trial_cost(client: Client, trial_index: int) -> float:
    r"""What a trial costs: its row's ``Pool.costs``, or TruVaR's ``cost=``.

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
        client: With a level-set strategy that has costs.
        trial_index: Of a trial that runs or is measured.

    Returns:
        The cost; for an arm measured ``k`` times, of all ``k``; 0 for a trial that
        failed or was abandoned.

    Raises:
        ValueError: If the strategy has no costs or there is no such trial.
    """
    experiment = experiment_of(client)
    node = level_set_node(generation_strategy_of(client))
    check_costs(node.strategy)
    if trial_index not in experiment.trials:
        raise ValueError(
            f"Expected `trial_index` to be one of the experiment's "
            f"{len(experiment.trials)} trials, but got {trial_index}."
        )
    return sum(Bill(node, experiment).of(experiment.trials[trial_index]).values())


class Bill:
    r"""The costs of an experiment's measurements, as things stand.

    In a round rows are visited in the cheapest order from where the round before
    ended; visits of one row in one round share their cost. Failed and abandoned trials
    are not visited. In the open round all rows not used up count, measured or not.

    Args:
        node: Its strategy has costs.
        experiment: The experiment.
    """

    def __init__(self, node: LevelSetNode, experiment: Experiment) -> None:
        self.space = node.space(experiment)
        self.strategy: Any = node.strategy
        self.end: int | None = None
        self.measured: dict[tuple[int, str], float] = {}
        self.expected: dict[int, float] = {}
        ledger = node.ledger(experiment)
        self.rounds = [self._pay(step.results) for step in ledger.steps]
        r"""The summed cost of each complete round."""
        self.trials_out: Sequence[int] = ()
        if ledger.open is not None:
            self.trials_out = ledger.open.trials_out
            self.expected = self._visits(_to_visit(ledger.open))
            self._enter(ledger.open.results, self.expected)
        self._pay(ledger.waiting)

    def of(self, trial: BaseTrial) -> dict[str, float]:
        r"""The costs of a trial's arms; of those that are out, as far as known."""
        found = {}
        for arm in trial.arms:
            if is_left_out(trial, arm.name):
                continue
            row = self.space.row_of(arm.parameters, f"trial {trial.index}")
            if (trial.index, arm.name) in self.measured:
                found[arm.name] = self.measured[trial.index, arm.name]
            elif trial.index in self.trials_out and row in self.expected:
                found[arm.name] = self.expected[row] * weight_of(trial, arm.name)
            else:
                found[arm.name] = self._next(row)
        return found

    def _pay(self, results: Sequence[Measurement]) -> float:
        visits = self._visits([m.row for m in results for _ in range(m.count)])
        return self._enter(results, visits)

    def _enter(
        self, results: Sequence[Measurement], visits: Mapping[int, float]
    ) -> float:
        costs = {(m.trial, m.arm): m.count * visits[m.row] for m in results}
        self.measured |= costs
        return sum(costs.values())

    def _visits(self, rows: list[int]) -> dict[int, float]:
        r"""The cost of a visit by row, on the way from ``end``, which moves on."""
        if travel_of(self.strategy) is None:
            return {row: self._next(row) for row in rows}
        spent: defaultdict[int, float] = defaultdict(float)
        wanted = torch.tensor(rows, dtype=torch.long)
        for row in self.strategy.prices.visiting_order(self.end, wanted).tolist():
            spent[row] += self._next(row)
            self.end = row
        counts = Counter(rows)
        return {row: cost / counts[row] for row, cost in spent.items()}

    def _next(self, row: int) -> float:
        if travel_of(self.strategy) is None:
            return float(self.strategy.pool.costs[row])
        return float(self.strategy.prices.of(self.end, torch.tensor([row])))


def _to_visit(current: OpenRound) -> list[int]:
    rest = Counter(current.plan) - Counter(current.used_up)
    return sorted(rest.elements())
