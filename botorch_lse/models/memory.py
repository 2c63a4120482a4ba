r"""A memory of fits, so that a new process need not repeat those of the past.

A fit is a function of the model before it, its data included, and of the random numbers
from there. What is remembered is found by a hash of both, and of the versions that
compute it: it changes no digit, and may be lost without harm.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import version
from typing import Any

import torch
from gpytorch.models import ExactGP
from torch import Tensor
from torch.nn import Module

PACKAGES = ("botorch-lse", "botorch", "gpytorch", "torch", "scipy")
"""The packages that compute a fit, or say what is fitted."""
Fit = list[Any]
"""The outcome of a fit as plain JSON: what it attained, and each parameter's values."""


class FitMemory:
    r"""Fits by their hashes: those known from before, and those that were used.

    Args:
        known: Fits of an earlier process; what is not a fit is left out.
    """

    def __init__(self, known: Any = None) -> None:
        self.known: dict[str, Fit] = {}
        self.used: dict[str, Fit] = {}
        self.learn(known)

    def learn(self, known: Any) -> None:
        r"""Add the fits of an earlier process; what is not a fit is left out."""
        if isinstance(known, Mapping):
            self.known |= {str(k): fit for k, fit in known.items() if _is_fit(fit)}

    def fits(self, model: ExactGP, fit: Callable[[], float]) -> float:
        r"""The outcome of a fit, which is carried out if it is not known.

        Args:
            model: The model, which has the fitted parameters then.
            fit: Fits it and returns what it attains.
        """
        parameters, before = list(model.parameters()), torch.get_rng_state()
        inputs: Any = model.train_inputs
        noise = getattr(model.likelihood, "noise", None)  # if known, no parameter
        # What is held as it is.
        held = [name for name, p in model.named_parameters() if not p.requires_grad]
        parts = *inputs, model.train_targets, noise, before
        key = _hash_of(f"{held}", model, *parts)
        found = self.used.get(key, self.known.get(key))
        if found is not None and _set(parameters, found[1:]):
            self.used[key] = found
            model.train()
            model.eval()
            return float(found[0])
        value = fit()
        # Were random numbers drawn, the next fit would begin with others.
        if math.isfinite(value) and torch.equal(before, torch.get_rng_state()):
            flat = [p.detach().double().flatten().tolist() for p in parameters]
            self.used[key] = [value, *flat]
        return value

    def point(self, key: str, n: int, search: Callable[[], list[float]]) -> list[float]:
        r"""The ``n`` numbers that a search finds, which is made if they are not known.

        Args:
            key: What it is a function of, as a hash.
            n: How many there are.
            search: Finds them.
        """
        found = self.used.get(key, self.known.get(key))
        if found is None or [len(part) for part in found[1:]] != [n]:
            found = [0.0, search()]
        if _is_fit(found):
            self.used[key] = found
        return list(found[1])


_MEMORY: ContextVar[FitMemory | None] = ContextVar("fits", default=None)


@contextmanager
def remembering(memory: FitMemory) -> Iterator[None]:
    r"""A context in which fits of default models are looked up and remembered."""
    token = _MEMORY.set(memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)


def remembered(model: ExactGP, fit: Callable[[], float]) -> float:
    r"""The outcome of a fit, looked up where fits are remembered."""
    memory = _MEMORY.get()
    return fit() if memory is None else memory.fits(model, fit)


def remembered_point(
    words: str,
    module: Module,
    parts: Iterable[Tensor],
    n: int,
    search: Callable[[], list[float]],
) -> list[float]:
    r"""The ``n`` numbers that a search finds, looked up where fits are remembered.

    Args:
        words: What the search is about.
        module: A part of a model, as it is before the search.
        parts: All other numbers of which the search is a function.
        n: How many numbers it finds.
        search: Finds them, without random numbers.
    """
    memory = _MEMORY.get()
    if memory is None:
        return search()
    return memory.point(_hash_of(words, module, *parts), n, search)


def _is_fit(found: Any) -> bool:
    if not isinstance(found, list) or not found:
        return False
    lists = [part for part in found[1:] if isinstance(part, list)]
    numbers = [found[0], *(value for part in lists for value in part)]
    are_numbers = all(
        isinstance(value, int | float) and math.isfinite(value) for value in numbers
    )
    return are_numbers and len(lists) == len(found) - 1


def _set(parameters: Iterable[Tensor], values: list[list[float]]) -> bool:
    r"""Whether values fit the parameters, which are then set to them."""
    parameters = list(parameters)
    if [p.numel() for p in parameters] != [len(own) for own in values]:
        return False
    with torch.no_grad():
        for parameter, own in zip(parameters, values, strict=True):
            new = torch.tensor(own, dtype=torch.float64).view(parameter.shape)
            parameter.copy_(new)
    return True


def _hash_of(words: str, module: Module, *parts: Tensor | None) -> str:
    digest = hashlib.sha256(f"{_versions()}|{module}|{words}|".encode())
    named = [*module.state_dict().items(), *((str(i), p) for i, p in enumerate(parts))]
    for name, part in named:
        if isinstance(part, Tensor):
            digest.update(f"{name}|{tuple(part.shape)}|{part.dtype}|".encode())
            digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


@cache
def _versions() -> str:
    return "|".join(f"{name} {version(name)}" for name in PACKAGES)
