r"""Sources that may tell nothing: what they are, and runs beside them."""

from __future__ import annotations

import pytest
import torch

from botorch_lse import Pool
from research.benchmark import peers_transfer
from research.benchmark.peers_transfer import (
    PROBLEMS,
    SHIFT,
    SOURCES,
    WAYS,
    Job,
    Run,
    clover,
    ratio_table,
    run,
    source_of,
    standardised,
    unrelated,
)
from research.benchmark.registry import entries

X = Pool.from_box([[0.0, 0.0], [1.0, 1.0]], 2048, seed=1).X


@pytest.mark.parametrize("name", PROBLEMS)
def test_functions_are_standardised_on_the_square(name):
    values = standardised(PROBLEMS[name])(X)
    assert float(values.mean()) == pytest.approx(0.0, abs=0.05)
    assert float(values.std()) == pytest.approx(1.0, abs=0.05)


def test_sources_are_right_where_they_say_so():
    f, other = standardised(clover), unrelated(3)
    made = {name: source_of(name, f, 3) for name in SOURCES}
    assert torch.equal(made["identical"](X), f(X))
    assert torch.equal(made["useless"](X), other(X))
    inside = X[(X > SHIFT).all(dim=-1)]
    moved = made["shifted"](inside - SHIFT)
    torch.testing.assert_close(moved, 0.8 * f(inside) + 0.5)
    left, right = X[X[:, 0] < 0.1], X[X[:, 0] > 0.9]
    half = made["half right"]
    torch.testing.assert_close(half(left), f(left), atol=0.01, rtol=0.0)
    torch.testing.assert_close(half(right), other(right), atol=0.01, rtol=0.0)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_each_source_of_each_function_has_values_in_the_whole_box(name, source):
    corners = torch.cartesian_prod(*2 * (torch.tensor([0.0, 1.0]).double(),))
    assert source_of(source, standardised(PROBLEMS[name]), 0)(corners).isfinite().all()


def test_what_has_nothing_to_do_with_a_target_does_not_follow_it():
    found = torch.stack([unrelated(seed)(X) for seed in range(6)])
    found = torch.cat((found, standardised(clover)(X).unsqueeze(0)))
    correlation = torch.corrcoef(found).fill_diagonal_(0.0)
    assert float(correlation.abs().max()) < 0.7
    assert float(correlation.abs().mean()) < 0.25


@pytest.mark.parametrize("way", WAYS)
def test_a_run_of_each_way_is_charged_for_what_it_measures(way, monkeypatch):
    few = dict.fromkeys(peers_transfer.OLD, 8)
    for name, value in (("ROWS", 24), ("OLD", few), ("MOST", 8.0)):
        monkeypatch.setattr(peers_transfer, name, value)
    one = run(Job("egg box", way, "none" if way == "alone" else "identical", 0))[0]
    assert 4 <= one.dear <= one.ended < 10.0
    assert 0 < one.cost <= one.ended
    # Old values are free, and what a source costs is not the target's.
    assert (one.ended == one.dear) == (way != "at a fifth")


def test_costs_stand_beside_those_of_the_target_alone():
    runs = [
        Run(Job("CLoVER", "alone", "none", 0), 20.0, 30.0, 30, 0, 0),
        Run(Job("CLoVER", "alone", "none", 1), 30.0, 50.0, 50, 2, 0),
        Run(Job("CLoVER", "old values", "useless", 0), 25.0, 36.0, 36, 1, 1),
    ]
    table = ratio_table(runs)
    (alone, useless) = table.rows
    assert alone[:4] == ("CLoVER", "alone", "none", 2)
    assert alone[4:] == ("25", "40", "40", "1", "1", 2, 0)
    assert useless[4:] == ("25", "36", "36", "1.25", "1.2", 1, 1)


def test_the_command_line_knows_it():
    assert "transfer" in {e.name for e in entries("peers")}
