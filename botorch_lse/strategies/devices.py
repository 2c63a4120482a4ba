r"""The door between a run on the CPU and an algorithm on the device of its pool.

The loop of a run, audits, stops and what people are told stay on the CPU. Only the
algorithm that believes and plans is elsewhere: it is built of a copy of the strategy
whose tensors live there, and whoever asks it goes through its door.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch

from botorch_lse._device import CPU, Move, moved

P = ParamSpec("P")
T = TypeVar("T")


class Door:
    r"""The door to a device: arguments go in, answers come out.

    While a function computes inside, tensors are made on the device unless a place is
    named. On the CPU the function is called as it is.

    Args:
        device: The device.
        way_back: Pairs of something there and what it is a copy of, such as the pool
            that an answer names.
    """

    def __init__(
        self, device: torch.device = CPU, way_back: tuple[tuple[Any, Any], ...] = ()
    ) -> None:
        self.device = device
        self._way_back = way_back

    def inside(
        self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        r"""The result of a function, which stays on the device, as beliefs do."""
        if self.device == CPU:
            return function(*arguments, **options)
        given: Any
        given, named = moved((arguments, options), self.device)
        with torch.device(self.device):
            return function(*given, **named)

    def through(
        self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        r"""The result of a function, brought back to the CPU."""
        if self.device == CPU:
            return function(*arguments, **options)
        found: T = Move(CPU, self._way_back)(
            self.inside(function, *arguments, **options)
        )
        return found


def on_device(strategy: Any) -> Any:
    r"""The parts of a strategy, on the device of its pool.

    Args:
        strategy: One that has ``parts``, an algorithm made of its arguments.

    Returns:
        Its parts themselves, if the pool is on the CPU. Elsewhere those of a copy of
        the strategy, with a door.
    """
    device = strategy.pool.device
    if device == CPU:
        return strategy.parts
    there = Move(device, apart=True)
    copy = there(strategy)
    with torch.device(device):
        parts = copy.parts
        # Asked for without a door; what a goal makes and keeps for it belongs there.
        parts.audit_facts  # noqa: B018
    # Not an argument of it, as it says nothing of what is believed or planned.
    object.__setattr__(parts, "door", Door(device, there.way_back))
    return parts
