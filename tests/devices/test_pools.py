r"""Pools say where strategies compute; what they hold stays on the CPU."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from torch import Tensor

from botorch_lse import History, Observations, Pool
from botorch_lse.ax.storage import decode_pool, encode_pool
from tests.devices.conftest import Device

X = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)
ONES = torch.ones(4)


def assert_on_cpu(record: object) -> None:
    tensors = [part for part in vars(record).values() if isinstance(part, Tensor)]
    assert tensors
    assert all(tensor.device.type == "cpu" for tensor in tensors)


def test_a_pool_computes_on_the_cpu_unless_said_otherwise() -> None:
    assert Pool(X).device == torch.device("cpu")
    assert Pool([[0.0]], device="cpu").device == torch.device("cpu")


def test_the_device_is_said_or_that_of_the_rows(device: Device) -> None:
    with device as place:
        given = X.to(place), ONES.to(place)
        pools = [
            Pool(X, device=place),
            Pool(X, device=str(place)),
            Pool(X).to(place),
            Pool(given[0]),
            Pool(given[0], weights=given[1], costs=given[1], noise_var=given[1]),
            Pool(X, device=place).at_outputs(2, costs=(1.0, 1.0)),
            Pool(X, device=place).at_noise_levels((0.1, 0.2), (1.0, 1.0)),
        ]
        for pool in pools:
            assert pool.device == place
            assert_on_cpu(pool)
        assert Pool(given[0], device="cpu").device.type == "cpu"
        assert pools[0].to("cpu").device.type == "cpu"


def test_a_pool_is_the_same_on_every_device(device: Device) -> None:
    here = Pool(X, weights=ONES, costs=ONES, total=5.0)
    with device as place:
        there = here.to(place)
    assert there.hash == here.hash
    assert encode_pool(there) == encode_pool(here)
    assert decode_pool(encode_pool(there)).device.type == "cpu"
    pd.testing.assert_frame_equal(there.to_frame(), here.to_frame())


def test_records_are_on_the_cpu_wherever_their_numbers_come_from(
    device: Device,
) -> None:
    with device as place:
        rows, y = torch.arange(4).to(place), ONES.to(place)
        assert_on_cpu(Observations(rows, y, y, rows, rows + 1))
        assert_on_cpu(Observations([0, 1, 2, 3], y))
        assert_on_cpu(History(X.to(place), y, y))
        assert Pool(X).nearest(X[2].to(place)) == 2


@pytest.mark.parametrize("wrong", ["tpu", "meta", "cuda:77", 1.5, "gpu"])
def test_devices_that_are_not_there_are_refused(wrong: object) -> None:
    message = "Expected `device` to be a device that computes in float64, .* but got "
    with pytest.raises(ValueError, match=message):
        Pool(X, device=wrong)
    with pytest.raises(ValueError, match="Leave it out to compute on the CPU"):
        Pool(X).to(wrong)


def test_devices_without_double_precision_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ones(*size: object, **options: object) -> Tensor:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    monkeypatch.setattr(torch, "ones", ones)
    with pytest.raises(ValueError, match=r"float64, .*got 'mps': Cannot convert"):
        Pool(X, device="mps")
