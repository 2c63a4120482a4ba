r"""Moves of values and records from one device to another.

A strategy computes on the device of its pool, while tables, pictures and stored runs
want what goes in and out on the CPU. Between the two everything passes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property, partial, wraps
from types import MethodType
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.nn import Module

CPU = torch.device("cpu")
P = ParamSpec("P")
T = TypeVar("T")


def moved(value: T, device: torch.device) -> T:
    r"""The value with all its tensors on a device; those that are there stay the same.

    Tensors; dataclasses, without what they have computed meanwhile; lists, tuples and
    dictionaries; modules (kernels, models), which are copied; methods and partial
    functions of all these. Anything else is left as it is, also a function that holds
    a tensor in its closure.

    Example:
        >>> import torch
        >>> pair = (torch.ones(2), "both")
        >>> moved(pair, torch.device("cpu")) is pair
        True

    Args:
        value: Anything.
        device: Where its tensors shall live.
    """
    found: T = Move(device)(value)
    return found


def on_cpu(value: T) -> T:
    r"""The value with all its tensors on the CPU; see ``moved``."""
    return moved(value, CPU)


def at_home(values: Tensor) -> Tensor:
    r"""The tensor on torch's default device, where new tensors are made now.

    The default device is the CPU, and the pool's device only while a strategy computes
    there.
    """
    return values.to(torch.get_default_device())


def ordinary(function: Callable[P, T]) -> Callable[P, T]:
    r"""A function that computes as always, also where gradients are switched off.

    Loops that measure often stand inside ``torch.no_grad()`` or
    ``torch.inference_mode()``. A fit needs gradients there, too, and what is kept of
    one call must be of use to the next one outside: a decorator.

    Args:
        function: Any function; what it makes of tensors are its own ones.
    """

    @wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> T:
        if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
            return function(*arguments, **options)
        with torch.inference_mode(mode=False), torch.enable_grad():
            given: Any = tuple(map(_usable, arguments))
            named: Any = {name: _usable(value) for name, value in options.items()}
            return function(*given, **named)

    return called


def _usable(value: Any) -> Any:
    r"""A tensor of inference mode as one that gradients may need; others unchanged."""
    is_of_inference = isinstance(value, Tensor) and value.is_inference()
    return value.clone() if is_of_inference else value


@dataclass(eq=False)
class Move:
    r"""A move of several values that keeps parts shared that were shared.

    Args:
        device: Where their tensors shall live.
        known: Pairs of a value and what stands for it there, known beforehand.
        apart: Whether dataclasses without a tensor are copied too: what they compute
            for themselves later is on the device on which they are asked.
    """

    device: torch.device
    known: Iterable[tuple[Any, Any]] = ()
    apart: bool = False
    # By the identity of a value, which is kept alive so that no other one gets it.
    _pairs: dict[int, tuple[Any, Any]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._pairs = {id(pair[0]): pair for pair in self.known}

    def __call__(self, value: Any) -> Any:
        r"""The value on the new device."""
        if value is None or isinstance(value, str | int | float | bool | complex):
            return value
        if id(value) not in self._pairs:
            self._pairs[id(value)] = value, self._there(value)
        return self._pairs[id(value)][1]

    @property
    def way_back(self) -> tuple[tuple[Any, Any], ...]:
        r"""The pairs of moved values and their originals, for ``known``."""
        pairs = self._pairs.values()
        return tuple((there, here) for here, there in pairs if there is not here)

    def _there(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(self.device)
        if isinstance(value, Module):
            return self._module(value)
        if isinstance(value, partial):
            given = (value.func, value.args, value.keywords)
            return self._if_changed(value, given, lambda f, a, k: partial(f, *a, **k))
        if isinstance(value, MethodType):
            parts = (value.__func__, value.__self__)
            return self._if_changed(value, parts, MethodType)
        if isinstance(value, dict):
            return self._if_changed(
                value,
                tuple(value.values()),
                lambda *values: type(value)(zip(value, values, strict=True)),
            )
        if type(value) in (list, tuple):
            kind = type(value)
            return self._if_changed(value, tuple(value), lambda *v: kind(v))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._if_changed(value, tuple(value), type(value))
        if is_dataclass(value) and not isinstance(value, type):
            return self._record(value)
        return value

    def _if_changed(
        self, value: Any, parts: tuple[Any, ...], build: Callable[..., Any]
    ) -> Any:
        there = tuple(self(part) for part in parts)
        pairs = zip(parts, there, strict=True)
        return value if all(a is b for a, b in pairs) else build(*there)

    def _record(self, value: Any) -> Any:
        r"""The moved dataclass, without the checks made when it was first built."""
        # What it computed itself may be of another device or hold one that is.
        kind = type(value)
        own = {
            name: part
            for name, part in vars(value).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }
        there = {name: self(part) for name, part in own.items()}
        is_same = all(there[name] is part for name, part in own.items())
        if is_same and not self.apart:
            return value
        made = object.__new__(kind)
        for name, part in there.items():
            object.__setattr__(made, name, part)
        return made

    def _module(self, value: Module) -> Module:
        r"""The moved module, with what torch knows of it and tensors it holds aside."""
        if all(tensor.device == self.device for tensor in _tensors_of(value)):
            return value
        made = deepcopy(value).to(self.device)
        for part in made.modules():
            for name, aside in _held_aside(part):
                setattr(part, name, self(aside))
        return made


def _held_aside(part: Module) -> Iterator[tuple[str, Any]]:
    r"""The plain attributes of a module that may be tensors."""
    for name, value in list(vars(part).items()):
        if isinstance(value, Tensor) or type(value) in (list, tuple):
            yield name, value


def _tensors_of(module: Module) -> Iterator[Tensor]:
    yield from module.parameters()
    yield from module.buffers()
    for part in module.modules():
        for _, value in _held_aside(part):
            items = [value] if isinstance(value, Tensor) else value
            yield from (item for item in items if isinstance(item, Tensor))
