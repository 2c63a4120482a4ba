r"""Experiments in Ax whose pool is on a device."""

from __future__ import annotations

from typing import Any

import pytest

from botorch_lse.ax import level_set
from tests.devices.conftest import Device

worlds = pytest.importorskip("tests.ax.worlds")


def after_two_rounds(pool: Any) -> Any:
    strategy = worlds.lse(pool)
    client = worlds.client_for(strategy)
    for _ in range(2):
        for trial, parameters in client.get_next_trials(3).items():
            worlds.complete(client, strategy, trial, parameters)
    return client


@pytest.mark.slow
def test_ax_runs_and_stores_them_as_on_the_cpu(device: Device) -> None:
    pool = worlds.grid_pool()
    here = after_two_rounds(pool)
    with device as place:
        there = after_two_rounds(pool.to(place))
        assert there.summarize().equals(here.summarize())
        answer, expected = level_set(there), level_set(here)
        assert (answer["side"] == expected["side"]).all()
        stored = there._to_json_snapshot()
    again = type(there)._from_json_snapshot(stored)
    assert again.get_next_trials(3) == here.get_next_trials(3)
