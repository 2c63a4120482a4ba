r"""Strategies as plain JSON and back, without pickle and to the last bit.

A strategy is a frozen dataclass whose fields are its constructor's arguments; they are
stored one by one. Functions and classes are stored by name; which names a file may use
stands in ``ax/references.py``. Everything else in a file is numbers, texts and the
parts that this module knows by kind.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from botorch.models.model import Model
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.ax.kernel_codec import decode_kernel, encode_kernel
from botorch_lse.ax.pool_codec import (
    decode_pool,
    decode_tensor,
    encode_pool,
    encode_tensor,
)
from botorch_lse.ax.references import find, reference_to
from botorch_lse.confidence import BatchEta, ConstantBeta, UnionBeta
from botorch_lse.models.prior import GPPrior
from botorch_lse.problem import Pool
from botorch_lse.strategies import Strategy

_SCHEDULES = {cls.__name__: cls for cls in (BatchEta, ConstantBeta, UnionBeta)}
_SCALARS = (bool, int, float, str, type(None))


def encode_strategy(strategy: Strategy) -> dict[str, Any]:
    r"""A strategy as JSON; its pool as a hash (``pool_store`` keeps the rows).

    Raises:
        ValueError: If an argument cannot be stored; the message names it.
    """
    if not isinstance(strategy, Strategy):
        raise ValueError(
            "Expected `strategy` to be a Strategy such as `LSEStrategy`, but got "
            f"{type(strategy).__name__}."
        )
    arguments = {}
    for argument in dataclasses.fields(strategy):
        if argument.init and argument.name != "pool":
            value = getattr(strategy, argument.name)
            arguments[argument.name] = _encode(value, argument.name, strategy.pool)
    name = reference_to(type(strategy), "strategy")
    return {"class": name, "arguments": arguments, "pool": strategy.pool.hash}


def decode_strategy(stored: dict[str, Any], pool: Pool) -> Strategy:
    r"""The strategy that ``encode_strategy`` wrote.

    Args:
        stored: What it wrote.
        pool: The pool with the stored hash.

    Raises:
        ValueError: If its class or a function may not be used or is not where it was,
            an argument is not one of the class, or the pool is another one.
    """
    strategy_class = find(stored["class"], "strategy")
    if not (isinstance(strategy_class, type) and issubclass(strategy_class, Strategy)):
        raise ValueError(
            f"Expected {stored['class']!r} to name a Strategy, but it names "
            f"{strategy_class!r}."
        )
    if pool.hash != stored["pool"]:
        raise ValueError(
            f"Expected the `pool` with the hash {stored['pool']}, but got {pool.hash}: "
            "the file is damaged or was edited."
        )
    arguments = _decode_arguments(strategy_class, stored["arguments"])
    return strategy_class(pool=pool, **arguments)


def _encode(value: Any, name: str, pool: Pool) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Pool):  # items to decide on, beside the pool itself
        return {"kind": "pool", **encode_pool(value)}
    if isinstance(value, Tensor):
        return {"kind": "tensor", **encode_tensor(value)}
    if isinstance(value, Kernel):
        return {"kind": "kernel", **encode_kernel(value, name, pool.X)}
    if type(value) in _SCHEDULES.values():
        arguments = {
            part.name: _encode(getattr(value, part.name), name, pool)
            for part in dataclasses.fields(value)
        }
        return {"kind": "schedule", "class": type(value).__name__, **arguments}
    if isinstance(value, (list, tuple)):
        return {"kind": "tuple", "items": [_encode(v, name, pool) for v in value]}
    if isinstance(value, (Model, GPPrior)):
        raise ValueError(
            f"Expected `{name}` of the strategy to be storable, but a fixed "
            f"{type(value).__name__} is not. Give its GPyTorch kernel, or an "
            "importable function (train_X, train_Y, train_Yvar) -> model."
        )
    return {"kind": "function", "name": reference_to(value, name)}


def _decode(value: Any, name: str) -> Any:
    if isinstance(value, _SCALARS):
        return value
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind == "pool":
        return decode_pool(value)
    if kind == "tensor":
        return decode_tensor(value)
    if kind == "kernel":
        return decode_kernel(value)
    if kind == "schedule" and value["class"] in _SCHEDULES:
        parts = {k: v for k, v in value.items() if k not in ("kind", "class")}
        schedule = _SCHEDULES[value["class"]]
        return schedule(**_decode_arguments(schedule, parts))
    if kind == "tuple":
        return tuple(_decode(item, name) for item in value["items"])
    if kind == "function":
        return find(value["name"], name)
    raise ValueError(
        f"Expected the stored `{name}` to be a number, a text, or of the kind pool, "
        f"tensor, kernel, schedule, tuple or function, but got {value!r}. The file was "
        "saved by a newer version, is damaged or was edited."
    )


def _decode_arguments(target: Any, stored: dict[str, Any]) -> dict[str, Any]:
    known = [part.name for part in dataclasses.fields(target) if part.init]
    strange = [name for name in stored if name not in known or name == "pool"]
    if strange:
        raise ValueError(
            f"Expected the stored arguments of {target.__name__} to be among {known}, "
            f"but got {strange}. The file was saved by another version, is damaged or "
            "was edited."
        )
    return {name: _decode(value, name) for name, value in stored.items()}
