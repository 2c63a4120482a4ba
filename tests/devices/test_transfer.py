r"""Values and records keep their form on the way to another device."""

from __future__ import annotations

from collections import namedtuple
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse import Observations
from botorch_lse._device import CPU, Move, moved, on_cpu
from tests.devices.conftest import Device

HERE = torch.arange(3.0)
Pair = namedtuple("Pair", "left right")


@dataclass(frozen=True, eq=False)
class Record:
    values: Any
    name: str = "record"

    @cached_property
    def twice(self) -> Tensor:
        return 2 * self.values

    def times(self, factor: float) -> Tensor:
        return factor * self.values


def tensors(value: Any) -> list[Tensor]:
    parts: Any = ()
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, Record | Observations):
        parts = vars(value).values()
    return [tensor for part in parts for tensor in tensors(part)]


def test_what_is_there_already_is_the_same_object() -> None:
    record = Record(HERE)
    for value in (HERE, record, [record], {"a": (HERE,)}, RBFKernel(), record.times):
        assert on_cpu(value) is value


def test_containers_and_records_keep_their_form(device: Device) -> None:
    value = {
        "list": [HERE, "word", 3],
        "pair": Pair(HERE, None),
        "record": Record(Record((HERE, HERE))),
        "told": Observations([0, 1], [0.5, 1.5]),
    }
    with device as place:
        there = moved(value, place)
        assert [tensor.device for tensor in tensors(there)] == [place] * 6
        back = on_cpu(there)
    assert isinstance(back["pair"], Pair)
    assert back["list"][1:] == ["word", 3]
    assert torch.equal(back["record"].values.values[1], HERE)
    assert torch.equal(back["told"].y, value["told"].y)
    assert tensors(value)[0] is HERE


def test_what_was_computed_is_left_behind(device: Device) -> None:
    record = Record(HERE)
    assert record.twice.device == CPU
    with device as place:
        there = moved(record, place)
        assert there.twice.device == place
        # Of what holds no tensor too, if it is to be apart.
        bare = Record(1.0)
        assert bare.twice == 2.0
        assert Move(place)(bare) is bare
        apart = Move(place, apart=True)(bare)
        assert apart is not bare
        assert "twice" not in vars(apart)


def test_shared_parts_stay_shared_and_find_their_way_back(device: Device) -> None:
    inner = Record(HERE)
    pair = Record((inner, inner))
    with device as place:
        move = Move(place)
        there = move(pair)
        assert there.values[0] is there.values[1]
        back = Move(CPU, move.way_back)
        assert back(Record(there.values[0], "answer")).values is inner


def test_functions_take_their_arguments_along(device: Device) -> None:
    functions = (Record(HERE).times, partial(torch.add, HERE))
    with device as place:
        for function in functions:
            there = moved(function, place)
            assert there(2.0).device == place
            assert torch.equal(there(2.0).cpu(), function(2.0))


def test_modules_are_copied(device: Device) -> None:
    kernel = RBFKernel().double()
    kernel.aside = HERE
    with device as place:
        there = moved(kernel, place)
        assert there.raw_lengthscale.device == there.aside.device == place
        assert moved(there, place) is there
    assert kernel.raw_lengthscale.device == kernel.aside.device == CPU
    assert deepcopy(kernel).raw_lengthscale.device == CPU
