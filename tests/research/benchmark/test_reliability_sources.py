r"""The count of intervals that hold where a cheap source helps: parts, short runs."""

from __future__ import annotations

import math

import pytest

from research.benchmark import reliability_sources
from research.benchmark.peers_failures import PUBLISHED
from research.benchmark.registry import entries
from research.benchmark.reliability_sources import (
    Job,
    Run,
    held_table,
    pool_of,
    probability_of,
)


def test_intervals_hold_what_they_are_about() -> None:
    numbers = 20.0, "content known", 0.12, 0.15, 0.2
    run = Run(Job("RP53", PUBLISHED, 0), *numbers, (0.1, 0.14), (0.05, 0.2))
    assert run.holds == (False, True)
    nothing = (math.nan, math.nan)
    assert Run(run.job, *numbers, nothing, nothing).holds == (False, False)
    wanted = ("RP53", PUBLISHED, 1, 0, 1, "20", "20.0%", "content known")
    assert held_table([run]).rows[0] == wanted


def test_the_rows_are_a_sample_of_the_distribution_that_is_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reliability_sources, "DRAWS", 100_000)
    assert pool_of("RP53", 30, 0).is_sample
    probability_of.cache_clear()
    P = probability_of("RP53")
    probability_of.cache_clear()
    assert 0.1 < P < 0.2


def test_short_runs_stand_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("ROWS", 40), ("MOST", 16), ("DRAWS", 1_000)):
        monkeypatch.setattr(reliability_sources, name, small)
    probability_of.cache_clear()
    (found,) = reliability_sources.run(Job("RP53", PUBLISHED, 0))
    probability_of.cache_clear()
    assert found.cost < 16
    assert Run.of_record(found.record()) == found
    assert "RP53" in held_table([found]).markdown()


def test_the_command_line_knows_it() -> None:
    assert "sources" in {e.name for e in entries("reliability")}
