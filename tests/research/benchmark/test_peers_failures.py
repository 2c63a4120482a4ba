r"""Failure probabilities by several sources: the cases' numbers, and short runs."""

from __future__ import annotations

import pytest
import torch

from research.benchmark import peers_failures
from research.benchmark.peers_failures import ALONE, CASES, PUBLISHED, Job, ratio_table
from research.benchmark.registry import entries

DRAWS = 1_000_000


@pytest.mark.parametrize("name", CASES)
def test_probabilities_are_the_known_ones(name):
    case = CASES[name]
    generator = torch.Generator().manual_seed(0)
    mean, std = torch.tensor(case.inputs, dtype=torch.float64).unbind(dim=-1)
    z = torch.randn(DRAWS, len(mean), generator=generator, dtype=torch.float64)
    X = mean + std * z
    for f, known in zip(
        (case.f, case.sources[PUBLISHED]), case.probability, strict=True
    ):
        found = float((f(X) > 0).double().mean())
        error = (known * (1 - known) / DRAWS) ** 0.5
        assert abs(found - known) < 4 * error + 0.005 * known


@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_the_inputs_own_distribution(name):
    case = CASES[name]
    X, weight = case.rows(0)
    mean, std = torch.tensor(case.inputs, dtype=torch.float64).unbind(dim=-1)
    assert float(weight.sum()) == pytest.approx(1.0)
    torch.testing.assert_close(weight @ X, mean, rtol=0.1, atol=0.1)
    spread = (weight @ (X - mean).square()).sqrt()
    torch.testing.assert_close(spread / std, torch.ones_like(std), rtol=0.2, atol=0.0)


def test_runs_stand_in_the_table(monkeypatch):
    monkeypatch.setattr(peers_failures, "ROWS", 40)
    monkeypatch.setattr(peers_failures, "MOST", 6.0)
    runs = [
        one
        for source in (ALONE, PUBLISHED)
        for one in peers_failures.run(Job("RP53", source, 0))
    ]
    assert all(one.dear <= one.ended <= 11 for one in runs)
    text = ratio_table(runs).markdown()
    assert "RP53" in text
    assert PUBLISHED in text


def test_the_command_line_knows_it():
    assert "failures" in {e.name for e in entries("peers")}
