r"""What measuring costs, recorded beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ax.api.client import Client

from botorch_lse.ax.compat import experiment_of
from botorch_lse.ax.node import LevelSetNode

COST = "cost"
"""The tracking metric of a trial's cost, from ``Pool.costs``."""


def cost_of_parameters(
    node: LevelSetNode | None, client: Client, parameters: Mapping[str, Any]
) -> float | None:
    r"""The cost of measuring a parameterization's row; ``None`` without costs."""
    if node is None or node.strategy.pool.costs is None:
        return None
    row = node.space(experiment_of(client)).row_of(parameters, "the trial")
    return float(node.strategy.pool.costs[row])
