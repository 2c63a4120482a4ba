r"""Several sources: the problem's published numbers, and runs of each case."""

from __future__ import annotations

import math

import pytest
import torch

from botorch_lse import Pool
from research.benchmark import peers_sources
from research.benchmark.peers_sources import (
    BOX,
    CASES,
    Job,
    cheap,
    cheapest,
    cost_table,
    dear,
    reached,
    run,
)
from research.benchmark.registry import entries


def test_the_problem_is_the_published_one():
    X = Pool.from_box(BOX, 2**14).X
    truth = dear(X) > 0
    assert float(truth.double().mean()) == pytest.approx(0.30208, abs=0.002)
    for source, share in ((cheap, 0.123), (cheapest, 0.148)):
        wrong = ((source(X) > 0) != truth).double().mean()
        assert float(wrong) == pytest.approx(share, abs=0.003)
    found = torch.corrcoef(torch.stack((dear(X), cheap(X), cheapest(X))))[0, 1:]
    assert found.tolist() == pytest.approx([0.997, 0.903], abs=0.002)


def test_a_level_is_reached_where_errors_stay_below_it():
    trace = [(1.0, 0.5), (2.0, 0.001), (3.0, 0.02), (4.0, 0.01), (5.0, 0.001)]
    assert reached(trace, 0.01) == 4.0
    assert reached(trace, 0.001) == 5.0
    assert math.isinf(reached(trace, 0.0))


QUICK = ("the dear one alone", "one cheap source")


@pytest.mark.parametrize(
    "cases", [QUICK, pytest.param(CASES, marks=pytest.mark.slow)], ids=["two", "all"]
)
def test_runs_of_cases_stand_in_the_table(cases, monkeypatch):
    monkeypatch.setattr(peers_sources, "ROWS", 24)
    monkeypatch.setattr(peers_sources, "MOST", 4.02)
    runs = [run(Job(case, 0))[0] for case in cases]
    for one in runs:
        assert 3 <= one.dear <= 5
        assert one.ended <= 5.02
        assert (one.others == 0) == (one.job.case == "the dear one alone")
    text = cost_table(runs).markdown()
    assert all(case in text for case in cases)


def test_the_command_line_knows_it():
    assert "sources" in {e.name for e in entries("peers")}
