from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from botorch_lse.papers.mason2022 import catoni, catoni_alpha, catoni_mean, catoni_width
from botorch_lse.papers.mason2022.catoni import catoni_means


def psi(u: float) -> float:
    return math.copysign(math.log1p(abs(u) + u * u / 2), u)


def root(values: list[float], alpha: float) -> float:
    r"""Direct root finding on the definition, value by value."""
    low, high = min(values), max(values)
    if low == high:
        return low
    total = lambda m: sum(psi(alpha * (x - m)) for x in values)  # noqa: E731
    return brentq(total, low, high, xtol=1e-300, maxiter=2000)


numbers = st.floats(-1e6, 1e6, allow_nan=False)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=20), st.floats(1e-6, 1e3))
def test_mean_is_the_root_of_its_definition(values: list[float], alpha: float) -> None:
    scale = max(map(abs, values)) + 1e-9
    assert catoni_mean(values, alpha) == pytest.approx(
        root(values, alpha), abs=1e-9 * scale
    )


def test_small_alpha_gives_the_average_and_outliers_count_little() -> None:
    values = torch.tensor([1.0, 2.0, 6.0]).double()
    assert catoni_mean(values, 1e-7) == pytest.approx(3.0, abs=1e-9)
    far = catoni_mean([0.0] * 999 + [1e12], 1.0)
    assert 0 < far < 0.1


@pytest.mark.parametrize("outlier", [1e9, 1e20, -1e30])
def test_one_value_far_away_leaves_the_mean_exact(outlier: float) -> None:
    values = [1.0] * 50 + [3.0] * 50 + [outlier]
    assert catoni_mean(values, 0.1) == pytest.approx(root(values, 0.1), rel=1e-9)


def test_a_root_that_is_found_is_not_left_again(monkeypatch) -> None:
    steps, influence = [], catoni.influence
    monkeypatch.setattr(catoni, "influence", lambda u: steps.append(0) or influence(u))
    x = torch.from_numpy(np.random.default_rng(2).normal(size=(500, 60)))
    catoni_means(x, torch.ones(60).double(), torch.full((500,), 0.1).double())
    assert len(steps) <= 8  # Newton's method; halving began anew and took about 45


def test_no_look_is_taken_that_the_step_before_shows_to_be_needless(monkeypatch):
    looks, influence = [], catoni.influence
    monkeypatch.setattr(catoni, "influence", lambda u: looks.append(0) or influence(u))
    x = np.random.default_rng(3).normal(size=(20, 60))
    rate = torch.full((20,), 0.1).double()
    means = catoni_means(torch.from_numpy(x), torch.ones(60).double(), rate)
    assert len(looks) <= 2  # a third one moved the means by less than rounding
    for row, mean in zip(x, means.tolist(), strict=True):
        assert mean == pytest.approx(root(row.tolist(), 0.1), abs=1e-9)


def test_mean_moves_and_scales_with_the_values() -> None:
    x = np.random.default_rng(0).standard_t(2.1, 200)
    one = catoni_mean(x, 0.3)
    assert catoni_mean(5 + 4 * x, 0.3 / 4) == pytest.approx(5 + 4 * one, rel=1e-10)
    assert catoni_mean(-x, 0.3) == pytest.approx(-one, rel=1e-10)


def test_many_weighted_samples_at_once_equal_one_by_one() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_t(2.1, (7, 40))
    counts = rng.integers(1, 5, 40)
    alpha = rng.uniform(0.01, 2, 7)
    together = catoni_means(*map(torch.tensor, (x, counts.astype(float), alpha)))
    for row, a, got in zip(x, alpha, together.tolist(), strict=True):
        assert got == pytest.approx(root(np.repeat(row, counts).tolist(), a), rel=1e-9)


def test_alpha_and_width_are_those_of_the_theorem() -> None:
    n, v, delta = 100, 3.0, 0.1
    L = math.log(20)
    alpha = math.sqrt(2 * L / (n * (v + 2 * v * L / (n - 2 * L))))
    assert catoni_alpha(n, v, delta) == pytest.approx(alpha, rel=1e-12)
    width = math.sqrt(2 * v * L / (n * (1 - 2 * L / n)))
    assert catoni_width(n, v, delta) == pytest.approx(width, rel=1e-12)


def test_heavy_tails_break_the_average_and_not_the_mean() -> None:
    # Student t with 2.1 degrees: variance 21, no third moment. 2000 runs of 60 values,
    # seed 0. With delta = 0.05 about 100 misses are allowed.
    n, delta, variance = 60, 0.05, 2.1 / 0.1
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_t(2.1, (2000, n)))
    alpha = torch.full((2000,), catoni_alpha(n, variance, delta)).double()
    robust = catoni_means(x, torch.ones(n).double(), alpha).abs()
    assert int((robust > catoni_width(n, variance, delta)).sum()) <= 100
    # Its far errors are smaller than the average's.
    assert float(robust.quantile(0.999)) < 0.6 * float(
        x.mean(dim=1).abs().quantile(0.999)
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: catoni_mean([], 1.0), ValueError, "`values` .*but got none"),
        (lambda: catoni_mean([1.0, math.nan], 1.0), ValueError, "`values` to be fin"),
        (
            lambda: catoni_mean(torch.ones(2, 2), 1.0),
            BotorchTensorDimensionError,
            "`values` to be a vector",
        ),
        (lambda: catoni_mean([1.0], 0.0), ValueError, r"`alpha` in \(0, inf\)"),
        (lambda: catoni_alpha(5, 1.0, 0.1), ValueError, "`n` above 2 log.*5.99.*got 5"),
        (lambda: catoni_alpha(50, -1.0, 0.1), ValueError, "`variance` in"),
        (lambda: catoni_width(50, 1.0, 1.5), ValueError, "`delta` in"),
    ],
)
def test_bad_arguments_are_refused(call, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
