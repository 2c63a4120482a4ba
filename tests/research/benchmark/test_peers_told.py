r"""Intervals of values that somebody brings, one a row."""

from __future__ import annotations

import json

import pytest

from research.benchmark.peers_told import Job, Run, report, run
from research.benchmark.registry import find


@pytest.mark.parametrize("noise", [1.0, 0.05])
def test_most_of_the_truth_is_held_whatever_the_noise(noise: float) -> None:
    (found,) = run(Job("Himmelblau", "additive", noise, 0))
    assert found.told > 0.7
    assert found.every > 0.7
    assert found.left_out > 0.8
    assert 0 < found.wrong < 0.4
    assert found.sure_and_wrong <= 0.1 * found.sure


def test_noise_makes_errors() -> None:
    little, much = (
        run(Job("Himmelblau", "single", noise, 0))[0] for noise in (0.05, 1.0)
    )
    assert little.wrong < much.wrong
    assert little.sure > much.sure


def test_means_are_by_noise_and_family() -> None:
    job = Job("a", "single", 0.2, 0)
    other = Job("b", "single", 0.2, 0)
    found = report(
        [Run(job, 0.9, 0.8, 1.0, 0.1, 30, 1), Run(other, 0.7, 0.6, 0.9, 0.3, 10, 0)]
    )
    (line,) = found.tables[0].rows
    assert line == ("0.2", "single", 2, "80.0%", "70.0%", "95.0%", "20.0%", "2.50%")
    assert len(json.loads(json.dumps(found.data))["runs"]) == 2


def test_it_is_an_entry() -> None:
    assert find("peers", "told").summary
