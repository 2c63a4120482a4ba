from __future__ import annotations

import pytest
import torch

from research.benchmark.guarantee_norm import (
    NORM,
    bounded_norm_problem,
    guarantee_norm,
)
from research.benchmark.registry import Options


@pytest.mark.parametrize("seed", range(3))
def test_functions_have_the_norm(seed: int) -> None:
    problem = bounded_norm_problem(seed)
    X = problem.pool.X
    with torch.no_grad():
        K = problem.prior.covariance(X, X)
    values = problem.truth
    assert float(values @ torch.linalg.solve(K, values)) == pytest.approx(NORM**2)


@pytest.mark.some(1)
@pytest.mark.parametrize(("divisor", "wrong"), [(1.0, "0.000"), (20.0, "1.000")])
def test_runs_are_wrong_once_widths_are_far_too_small(
    divisor: float, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("research.benchmark.guarantee_norm.LIMIT", 100)
    report = guarantee_norm(Options(runs=2, divide_widths=divisor))
    assert [row[2] for row in report.tables[0].rows] == [wrong] * 4
