from __future__ import annotations

import math

import pytest

from botorch_lse.benchmark import main
from research.benchmark import speed_calls
from research.benchmark.speed_calls import calls_on, exponent


def test_an_exponent_is_that_of_the_last_two_sizes() -> None:
    assert exponent((1, 10, 100), (5.0, 1.0, 100.0)) == pytest.approx(2.0)
    assert math.isnan(exponent((1, 10), (1.0, math.nan)))


@pytest.mark.parametrize(("power", "status"), [(0.9, 0), (1.3, 1), (math.nan, 1)])
def test_growth_beyond_the_claim_fails(monkeypatch, capsys, power, status) -> None:
    monkeypatch.setattr(speed_calls, "seconds_of", lambda arguments, status: 1.0)
    monkeypatch.setattr(
        speed_calls, "calls_on", lambda words, n: [(1.0 + n**power, 0)] * 2
    )
    assert main(["speed", "calls", "--quick"]) == status
    assert ("above what is claimed" in capsys.readouterr().out) == bool(status)


@pytest.mark.slow
def test_a_call_is_measured_and_one_without_memory_fails(monkeypatch) -> None:
    (seconds, peak), other = calls_on(1, 80)
    assert 0.5 < seconds < 60
    assert 100 * 2**20 < peak < 2 * 2**30
    assert math.isfinite(other[0])
    monkeypatch.setattr(speed_calls, "MEMORY", 2**28)
    assert math.isnan(calls_on(0, 80)[0][0])
