r"""A pretended device, for machines that have none but the CPU.

Its tensors say that they live on ``meta`` and hold a tensor of the CPU, with which
everything is computed. What a GPU refuses they refuse: to be combined with tensors of
the CPU (of at least one dimension), to index these, random numbers from a generator of
the CPU, and to become an array. So whatever forgets the device fails here as it would
there, and whatever runs gives the numbers of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

PRETENDED = torch.device("meta")
_aten = torch.ops.aten
_TAKES_INDICES = {
    _aten.index.Tensor,
    _aten.index_put.default,
    _aten.index_put_.default,
    _aten._unsafe_index.Tensor,
    _aten._index_put_impl_.default,
}
r"""These take indices of the CPU for values that live elsewhere, on a GPU as well."""
_COPIES = {_aten._to_copy.default, _aten.copy_.default}
r"""These go from one device to another."""
_JOINS = {_aten.cat.default, _aten.stack.default}
r"""These refuse single numbers of another device, which others take."""


class Pretended(Tensor):
    r"""A tensor of the pretended device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Pretended:
        made = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=PRETENDED,
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return computed(func, args, kwargs or {})

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, other: Tensor) -> None:  # as a module does whose precision changes
        Tensor.data.__set__(self, other)
        self.held = other.held

    def tolist(self) -> Any:
        return self.held.tolist()

    def __repr__(self, **options: Any) -> str:
        return f"Pretended({self.held!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Pretended:
        made = Pretended(self.held.detach().clone())
        if getattr(self, "_is_param", False):
            made._is_param = True
        memo[id(self)] = made.requires_grad_(self.requires_grad)
        return made


def computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    r"""What an operation gives, computed on the CPU and put where it belongs."""
    given = list(_tensors((*args, *kwargs.values())))
    ours = {id(x.held): x for x in given if isinstance(x, Pretended)}
    device = kwargs.get("device")
    is_wanted = device is not None and torch.device(device).type == PRETENDED.type
    if not ours and not is_wanted:
        return func(*args, **kwargs)
    _refuse(func, args, kwargs, given, bool(ours))
    named = {**kwargs, "device": "cpu"} if is_wanted else kwargs
    found = func(
        *(_held(value) for value in args),
        **{name: _held(value) for name, value in named.items()},
    )
    if torch.Tag.inplace_view in func.tags:  # another shape of the same tensor
        with no_dispatch():
            func(*args, **kwargs)
    if func is _aten.copy_.default:
        return args[0]
    stays = bool(ours) if device is None else is_wanted
    return _put(found, ours) if stays else found


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _held(value: Any) -> Any:
    if isinstance(value, Pretended):
        return value.held
    if isinstance(value, list | tuple):
        return type(value)(_held(part) for part in value)
    return value


def _put(found: Any, ours: dict[int, Pretended]) -> Any:
    if isinstance(found, list | tuple):
        return type(found)(_put(part, ours) for part in found)
    if not isinstance(found, Tensor):
        return found
    # What was changed in place is the tensor that was given.
    known = ours.get(id(found))
    return Pretended(found) if known is None else known


def _refuse(
    func: Any, args: Any, kwargs: Any, given: Sequence[Tensor], has_ours: bool
) -> None:
    r"""Complain as a GPU does about tensors and generators of the CPU."""
    generator = kwargs.get("generator")
    if generator is not None and generator.device.type == "cpu":
        raise RuntimeError(f"Expected a generator of the device in {func}.")
    if not has_ours or func in _COPIES:
        return
    if func in _TAKES_INDICES:
        own, _, *values = args
        if not isinstance(own, Pretended):
            raise RuntimeError(f"A tensor of the CPU is indexed by others in {func}.")
        given = list(_tensors((own, *values)))
    least = 0 if func in _JOINS else 1
    for x in given:
        if not isinstance(x, Pretended) and x.ndim >= least:
            raise RuntimeError(f"Two devices in {func}: {tuple(x.shape)} on the CPU.")


class _Operations(TorchDispatchMode):
    r"""Tensors that are made on the pretended device are pretended ones."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if Pretended not in types and kwargs.get("device") is None:
            return func(*args, **kwargs)  # as most of what is computed on the CPU
        return computed(func, args, kwargs)


_AT_PLACES = {Tensor.__getitem__, Tensor.__setitem__}


def _as_tensors(index: Any) -> Any:
    r"""An index whose lists and arrays are tensors of the CPU."""
    if isinstance(index, tuple):
        return tuple(_as_tensors(part) for part in index)
    if isinstance(index, list | np.ndarray):
        return torch.as_tensor(index, device="cpu")
    return index


_FROM_DATA: set[Callable[..., Any]] = {torch.tensor, torch.as_tensor, torch.asarray}


class _Functions(TorchFunctionMode):
    r"""Numbers become tensors by way of the CPU: of ``meta`` torch keeps none."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if args and isinstance(args[0], Pretended):
            if func in _AT_PLACES:
                args = (args[0], _as_tensors(args[1]), *args[2:])
            if func is Tensor.new_tensor:
                like = {"device": PRETENDED, "dtype": args[0].dtype}
                func, args, kwargs = torch.tensor, args[1:], {**like, **kwargs}
        device = kwargs.get("device")
        if func not in _FROM_DATA or device is None:
            return func(*args, **kwargs)
        if torch.device(device).type != PRETENDED.type:
            return func(*args, **kwargs)
        if isinstance(args[0], Pretended):
            dtype = kwargs.get("dtype")
            return args[0] if dtype is None else args[0].to(dtype)
        return func(*args, **{**kwargs, "device": "cpu"}).to(PRETENDED)


@contextmanager
def pretence() -> Iterator[torch.device]:
    r"""A context in which there is the pretended device."""
    with ExitStack() as stack:
        stack.enter_context(_Operations())
        stack.enter_context(_Functions())
        yield PRETENDED
