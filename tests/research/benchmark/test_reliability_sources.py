r"""The count of intervals that hold where a cheap source helps: parts, short runs."""

from __future__ import annotations

import math

import pytest

from research.benchmark import reliability_sources
from research.benchmark.peers_transfer import SHARE_ABOVE
from research.benchmark.registry import entries
from research.benchmark.reliability_sources import (
    SOURCES,
    Job,
    Run,
    held_table,
    jobs_of,
    level_of,
    pool_of,
)


def test_intervals_hold_what_they_are_about() -> None:
    numbers = 20.0, "content known", 0.12, 0.15
    run = Run(Job("CLoVER", "shifted", 0), *numbers, (0.1, 0.14), (0.05, SHARE_ABOVE))
    assert run.holds == (False, True)
    nothing = (math.nan, math.nan)
    assert Run(run.job, *numbers, nothing, nothing).holds == (False, False)
    wanted = ("CLoVER", "shifted", 1, 0, 1, "20", "20.0%", "content known")
    assert held_table([run]).rows[0] == wanted


def test_the_rows_are_a_sample_of_the_square() -> None:
    pool = pool_of(30, 0)
    assert pool.is_sample
    assert 0 < float(pool.X.min()) < float(pool.X.max()) < 1


def test_each_run_of_a_function_has_its_own_rows() -> None:
    jobs = jobs_of(3, ("CLoVER", "egg box"))
    assert len(jobs) == 2 * 3 * len(SOURCES)
    assert sorted(job.seed for job in jobs if job.problem == "CLoVER") == [*range(9)]


def test_short_runs_stand_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("ROWS", 40), ("MOST", 16), ("DRAWS", 1_000)):
        monkeypatch.setattr(reliability_sources, name, small)
    level_of.cache_clear()
    (found,) = reliability_sources.run(Job("CLoVER", "shifted", 0))
    level_of.cache_clear()  # it was known by few draws
    assert found.cost < 16
    assert Run.of_record(found.record()) == found
    assert "CLoVER" in held_table([found]).markdown()


def test_the_command_line_knows_it() -> None:
    assert "sources" in {e.name for e in entries("reliability")}
