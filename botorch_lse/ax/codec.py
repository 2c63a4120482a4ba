r"""Strategies as plain JSON and back, without pickle and to the last bit.

A strategy is a frozen dataclass whose fields are its constructor's arguments; they are
stored one by one. Loading imports the modules named in the file: load only experiments
you trust.
"""

from __future__ import annotations

import dataclasses
import importlib
from types import BuiltinFunctionType, FunctionType
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
from botorch_lse.confidence import BatchEta, ConstantBeta, UnionBeta
from botorch_lse.prior import GPPrior
from botorch_lse.problem import Pool
from botorch_lse.strategies import Strategy

_SCHEDULES = {cls.__name__: cls for cls in (BatchEta, ConstantBeta, UnionBeta)}
_PACKAGE = __name__.partition(".")[0]
_FUNCTIONS = (FunctionType, BuiltinFunctionType, type)


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
    name = _importable(type(strategy), "strategy")
    return {"class": name, "arguments": arguments, "pool": strategy.pool.hash}


def decode_strategy(stored: dict[str, Any], pool: Pool) -> Strategy:
    r"""The strategy that ``encode_strategy`` wrote.

    Args:
        stored: What it wrote.
        pool: The pool with the stored hash.

    Raises:
        ValueError: If its class or a function is not where it was.
    """
    strategy_class = _resolve(stored["class"])
    if not (isinstance(strategy_class, type) and issubclass(strategy_class, Strategy)):
        raise ValueError(
            f"Expected {stored['class']!r} to name a Strategy, but it names "
            f"{strategy_class!r}."
        )
    arguments = {name: _decode(value) for name, value in stored["arguments"].items()}
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
    return {"kind": "function", "name": _importable(value, name)}


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind, parts = value["kind"], {k: v for k, v in value.items() if k != "kind"}
    if kind == "pool":
        return decode_pool(parts)
    if kind == "tensor":
        return decode_tensor(parts)
    if kind == "kernel":
        return decode_kernel(parts)
    if kind == "schedule":
        schedule = _SCHEDULES[parts.pop("class")]
        return schedule(**{name: _decode(part) for name, part in parts.items()})
    if kind == "tuple":
        return tuple(_decode(item) for item in parts["items"])
    return _resolve(parts["name"])


def _importable(value: Any, name: str) -> str:
    if isinstance(value, _FUNCTIONS):
        for module in _addresses(value.__module__):
            reference = f"{module}:{value.__qualname__}"
            if "<" not in reference and _is_there(reference, value):
                return reference
    shown = getattr(value, "__qualname__", type(value).__name__)
    raise ValueError(
        f"Expected `{name}` of the strategy to be storable, but got {shown!r}, which "
        "another process could not import. Define a function (or class) at the top "
        "level of a module; lambdas, functions inside functions and callable objects "
        "cannot be stored."
    )


def _addresses(module: str) -> list[str]:
    r"""Where to look: this package's own classes at their public, lasting address."""
    parts = module.split(".")
    if parts[0] != _PACKAGE:
        return [module]
    return [".".join(parts[: k + 1]) for k in range(len(parts))]


def _is_there(reference: str, value: Any) -> bool:
    try:
        return _resolve(reference) is value
    except ValueError:
        return False


def _resolve(reference: str) -> Any:
    module, _, path = reference.partition(":")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"Expected {path!r} in module {module!r}, where it was when the experiment "
            f"was saved, but: {error}. Define or install it before loading."
        ) from error
    return found
