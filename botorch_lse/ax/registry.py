r"""What Ax must know to store our classes."""

from __future__ import annotations

from ax.storage.botorch_modular_registry import (
    CLASS_TO_REVERSE_REGISTRY,
    register_acquisition_function,
)
from ax.storage.json_store.encoders import metric_to_dict
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY
from ax.storage.metric_registry import CORE_METRIC_REGISTRY
from botorch.acquisition.acquisition import AcquisitionFunction

from botorch_lse import acquisition
from botorch_lse.ax.compat import check_ax_version
from botorch_lse.ax.costs import CostMetric
from botorch_lse.ax.node import LevelSetNode

COST_METRIC = 8130
"""The number of ``CostMetric`` in SQL storage; Ax's own are small."""


def register_node(node_class: type[LevelSetNode]) -> None:
    r"""Let Ax store a node class; a subclass of ``LevelSetNode`` needs its own call."""
    CORE_ENCODER_REGISTRY[node_class] = node_class.to_dict
    CORE_DECODER_REGISTRY[node_class.__name__] = node_class


def register_acquisition(acqf_class: type[AcquisitionFunction]) -> None:
    r"""Let Ax store an acquisition class, which it knows by its bare name.

    Raises:
        ValueError: If another class has this name already.
    """
    name = acqf_class.__name__
    known = CLASS_TO_REVERSE_REGISTRY[AcquisitionFunction].get(name, acqf_class)
    if f"{known.__module__}.{known.__qualname__}" != (
        f"{acqf_class.__module__}.{acqf_class.__qualname__}"
    ):
        raise ValueError(
            f"Expected the name {name!r} to be free in Ax's registry of acquisition "
            f"functions, but {known.__module__}.{name} holds it, and Ax stores classes "
            "by name only. Rename that class."
        )
    register_acquisition_function(acqf_class)


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


check_ax_version()
register_node(LevelSetNode)
register_cost_metric()
for _name in acquisition.__all__:
    _exported = getattr(acquisition, _name)
    if isinstance(_exported, type) and issubclass(_exported, AcquisitionFunction):
        register_acquisition(_exported)
