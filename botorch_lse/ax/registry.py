r"""What Ax must know to store our classes."""

from __future__ import annotations

from ax.storage.botorch_modular_registry import (
    CLASS_TO_REVERSE_REGISTRY,
    register_acquisition_function,
)
from ax.storage.json_store.registry import (
    CORE_DECODER_REGISTRY,
    CORE_ENCODER_REGISTRY,
)
from botorch.acquisition.acquisition import AcquisitionFunction

from botorch_lse import acquisition
from botorch_lse.ax.compat import check_ax_version
from botorch_lse.ax.node import LevelSetNode


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


def register_everything() -> None:
    r"""Register what ``botorch_lse`` exports."""
    check_ax_version()
    register_node(LevelSetNode)
    for name in acquisition.__all__:
        exported = getattr(acquisition, name)
        if isinstance(exported, type) and issubclass(exported, AcquisitionFunction):
            register_acquisition(exported)


register_everything()
