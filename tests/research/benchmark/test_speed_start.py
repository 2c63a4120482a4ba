r"""The report on imports and on the first answers of the command line."""

from __future__ import annotations

import pytest

from research.benchmark import speed_start
from research.benchmark.registry import Options
from research.benchmark.speed_start import CALLS, PROGRAM, seconds_of


def test_seconds_are_those_of_the_processor_in_a_fresh_interpreter() -> None:
    assert seconds_of(["-c", "pass"], 0) > 0
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    assert seconds_of(["-c", busy], 0) >= 0.3


@pytest.mark.parametrize("call", CALLS)
def test_every_call_ends_as_it_has_to(call: str) -> None:
    assert seconds_of(["-c", PROGRAM, *call.split()], CALLS[call]) > 0


def test_the_seconds_of_what_fails_are_not_reported() -> None:
    with pytest.raises(
        RuntimeError, match=r"(?s)status 0, but it ended with 1.*NameErr"
    ):
        seconds_of(["-c", "absent"], 0)


def test_each_kind_of_start_has_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    took = {speed_start.BOTORCH: 2.0, speed_start.NAMES: 2.4}

    def known(arguments: list[str], status: int) -> float:
        return took.get(arguments[1], 0.5)

    monkeypatch.setattr(speed_start, "seconds_of", known)
    (table,) = speed_start.speed_start(Options()).tables
    assert [row[1:] for row in table.rows] == [
        ("2.00", "1.00"),
        ("2.40", "1.20: MISSED"),
        *[("0.50: met", "0.25")] * len(CALLS),
    ]
