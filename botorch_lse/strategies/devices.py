r"""Algorithms that compute on the device of the pool.

The loop of a run, audits, stops and what people are told stay on the CPU. Only the
algorithm that believes and plans is elsewhere: it is built of a copy of the strategy
whose tensors live there, and stands behind a proxy through which everything passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from types import MethodType
from typing import Any

import torch

from botorch_lse._device import CPU, Move, moved
from botorch_lse.strategies.algorithm import Algorithm

BELIEFS = frozenset({"start", "learn", "lose", "shown"})
"""The methods of an algorithm that return a belief.
Nobody outside looks into a belief, so that it stays where it is."""


def on_device(strategy: Any) -> Any:
    r"""The parts of a strategy, on the device of its pool.

    Args:
        strategy: One that has ``parts``, an algorithm made of its arguments.

    Returns:
        Its parts themselves, if the pool is on the CPU. Elsewhere those of a copy of
        the strategy, behind ``OnDevice``.
    """
    device = strategy.pool.device
    if device == CPU:
        return strategy.parts
    there = Move(device, apart=True)
    copy = there(strategy)
    with torch.device(device):
        parts = copy.parts
    return OnDevice(parts, device, there.way_back)


@dataclass(frozen=True, eq=False)
class OnDevice:
    r"""An algorithm whose arguments go to a device and whose answers come back.

    It has whatever the inner algorithm has. While that computes, tensors are made on
    the device unless a place is named.

    Args:
        inner: The algorithm; all its tensors are on the device.
        device: The device.
        way_back: Pairs of something there and what it is a copy of, such as the pool
            that an answer names.
    """

    inner: Any
    device: torch.device
    way_back: tuple[tuple[Any, Any], ...] = field(default=(), repr=False)

    def __getattr__(self, name: str) -> Any:
        r"""An attribute of the inner algorithm, or one of its methods."""
        if name.startswith("__"):  # those that copying and pickling look for
            raise AttributeError(name)
        with torch.device(self.device):
            found = getattr(self.inner, name)
        if isinstance(found, MethodType):
            return partial(self._call, name)
        return self._here(found)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        given, named = moved((arguments, options), self.device)
        with torch.device(self.device):
            found = getattr(self.inner, name)(*given, **named)
        return found if name in BELIEFS else self._here(found)

    def _here(self, found: Any) -> Any:
        return Move(CPU, self.way_back)(found)


Algorithm.register(OnDevice)
