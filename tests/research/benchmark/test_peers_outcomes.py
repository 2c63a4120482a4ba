r"""Answers of yes and no: the problems, and a run beside published errors."""

from __future__ import annotations

import pytest

from botorch_lse.strategies import Binary
from research.benchmark import peers_outcomes
from research.benchmark.peers_outcomes import PROBLEMS, Job, brier_table, cube, run
from research.benchmark.registry import entries


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("discrimination, 2-D", 0.0629),
        ("Hartmann, 6-D", 0.4193),
        ("discrimination, 8-D", 0.3161),
    ],
)
def test_share_below_the_level_is_that_of_the_published_problem(name, share):
    problem = PROBLEMS[name]
    p = Binary().value(problem.latent(cube(2**14, problem.d, 0)))
    assert float((p <= problem.level).double().mean()) == pytest.approx(share, abs=0.01)


def test_a_run_is_scored_and_stands_beside_published_errors(monkeypatch):
    monkeypatch.setattr(peers_outcomes, "AT", (40, 60))
    monkeypatch.setattr(peers_outcomes, "ROWS", 90)
    for method in peers_outcomes.METHODS:
        (found,) = run(Job("discrimination, 2-D", method, 0))
        assert found.trials == (40, 60)
        assert all(0 <= score < 0.4 for score in found.brier)
        assert all(0 <= share < 0.3 for share in found.hard)
    text = brier_table([found]).markdown()
    assert "ours: quasi-random" in text
    assert "published: GlobalMI" in text


def test_the_command_line_knows_it():
    assert "outcomes" in {e.name for e in entries("peers")}
