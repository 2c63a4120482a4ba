from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse.papers.mason2022 import (
    catoni_alpha,
    catoni_mean,
    catoni_width,
    rips,
    rips_projection,
)
from botorch_lse.papers.mason2022.quadrature import condensed
from tests.covering import more_in_full

N, M = 12, 3
RNG = np.random.default_rng(3)
X = torch.tensor(RNG.standard_normal((N, M)))
LAM = torch.tensor(RNG.dirichlet(np.ones(N)))
THETA = torch.tensor([0.5, -0.3, 0.2]).double()
S = 12.0


def draws(n: int, seed: int, degrees: float = 5.0) -> tuple:
    rng = np.random.default_rng(seed)
    rows = rng.choice(N, n, p=LAM.numpy())
    noise = rng.standard_t(degrees, n)
    return torch.tensor(rows), X[rows] @ THETA + torch.tensor(noise)


def by_definition(v, rows, y, gamma: float, delta: float) -> float:
    A = sum(w * np.outer(x, x) for w, x in zip(LAM.numpy(), X.numpy(), strict=True))
    inverse = np.linalg.inv(A + gamma * np.eye(M))
    scores = X.numpy()[rows] @ inverse @ v.numpy()
    variance = S * float(v.numpy() @ inverse @ v.numpy())
    return catoni_mean(scores * y.numpy(), catoni_alpha(len(rows), variance, delta))


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_means_of_few_draws_are_those_of_the_definition(gamma: float) -> None:
    rows, y = draws(60, 0)
    found = rips(X, X, LAM, rows, y, second_moment=S, delta=0.01, gamma=gamma)
    for v, got in zip(X, found.means.tolist(), strict=True):
        assert got == pytest.approx(by_definition(v, rows, y, gamma, 0.01), rel=1e-9)


def test_means_of_many_draws_agree_within_the_stated_accuracy() -> None:
    rows, y = draws(200_000, 1, degrees=2.1)
    found = rips(X, X, LAM, rows, y, second_moment=S, delta=0.01)
    for v, got, norm in zip(X, found.means.tolist(), found.norms.tolist(), strict=True):
        width = catoni_width(len(rows), S * norm, 0.01)
        exact = by_definition(v, rows, y, 0.0, 0.01)
        assert abs(got - exact) < 1e-4 * width


def test_designs_that_do_not_span_estimate_what_they_span() -> None:
    # Only rows 0 and 1 are drawn; what they span is estimated as in their plane.
    lam = torch.zeros(N).double()
    lam[:2] = 0.5
    rows = torch.arange(60) % 2
    y = torch.tensor(RNG.standard_normal(60))
    V = torch.stack((X[0], X[1], 0.3 * X[0] - 2 * X[1]))
    plane = torch.linalg.qr(X[:2].mT).Q
    options = {"second_moment": S, "delta": 0.01}
    found = rips(V, X, lam, rows, y, **options)
    inside = rips(V @ plane, X[:2] @ plane, lam[:2], rows, y, **options)
    assert torch.allclose(found.means, inside.means, rtol=1e-9)
    assert torch.allclose(found.norms, inside.norms, rtol=1e-9)


def test_pairs_are_directions_like_others() -> None:
    rows, y = draws(500, 2)
    i, j = (
        part.reshape(-1)
        for part in torch.meshgrid(*[torch.arange(N)] * 2, indexing="ij")
    )
    options = {"second_moment": S, "delta": 0.01, "gamma": 0.05}
    found = rips(X, X, LAM, rows, y, pairs=(i, j, 0.6), **options)
    plain = rips(X[i] - 0.6 * X[j], X, LAM, rows, y, **options)
    assert torch.allclose(found.means, plain.means, rtol=1e-9, atol=1e-12)
    assert torch.allclose(found.norms, plain.norms, rtol=1e-10)


@more_in_full("n_runs", 60, 300)
def test_error_bound_holds_under_heavy_tails(n_runs: int) -> None:
    # Noise with 2.1 degrees has variance 21. Runs of 200 draws, seeds 0, 1, ...;
    # each of the 12 directions may fail with probability 0.05 / 12.
    second = 21 + float((X @ THETA).square().max())
    delta = 0.05 / N
    wrong = 0
    for seed in range(n_runs):
        rows, y = draws(200, seed, degrees=2.1)
        found = rips(X, X, LAM, rows, y, second_moment=second, delta=delta)
        width = catoni_width(200, second, delta) * found.norms.sqrt()
        wrong += bool(((found.means - X @ THETA).abs() > width).any())
    assert wrong <= 0.05 * n_runs


@more_in_full("n_runs", 80, 400)
def test_estimates_are_unbiased_for_light_tails(n_runs: int) -> None:
    # Runs of 400 draws: the average over runs within 4 standard errors.
    runs = []
    for seed in range(n_runs):
        rows, y = draws(400, seed, degrees=30.0)
        runs.append(rips(X, X, LAM, rows, y, second_moment=S, delta=0.01).means)
    found = torch.stack(runs)
    error = (found.mean(dim=0) - X @ THETA).abs()
    assert bool((error < 4 * found.std(dim=0) / n_runs**0.5).all())


def test_projection_solves_the_linear_program() -> None:
    rows, y = draws(100, 4)
    found = rips(X, X, LAM, rows, y, second_moment=S, delta=0.01)
    values = rips_projection(found, X)
    theta = torch.linalg.lstsq(X, values).solution
    assert torch.allclose(X @ theta, values, atol=1e-7)

    def worst(theta: torch.Tensor) -> float:
        return float(((X @ theta - found.means).abs() / found.norms.sqrt()).max())

    generator = torch.Generator().manual_seed(0)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        step = scale * torch.randn(200, M, generator=generator, dtype=torch.float64)
        assert all(worst(theta + s) >= worst(theta) - 1e-9 for s in step)
    i, j = torch.arange(N), torch.arange(N).flip(0)
    pairs = (i, j, 0.5)
    paired = rips(X, X, LAM, rows, y, second_moment=S, delta=0.01, pairs=pairs)
    same = rips_projection(paired, X, pairs=pairs)
    plain = rips_projection(paired, X[i] - 0.5 * X[j])
    size = paired.norms.sqrt()
    gaps = [((v - paired.means).abs() / size).max() for v in (same, plain)]
    assert float(gaps[0]) == pytest.approx(float(gaps[1]), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.05, 5.0), st.integers(50, 400))
def test_condensed_values_keep_cubic_sums(seed: int, width: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    group = torch.tensor(rng.integers(0, 3, n))
    y = torch.tensor(rng.standard_t(2.1, n).round(1))
    nodes = condensed(group, y, torch.full((3,), width).double())
    assert nodes.y.numel() <= n
    for g in range(3):
        here, mine = group == g, nodes.group == g
        for power in range(4):
            exact = float((y[here] ** power).sum())
            got = float(nodes.weights[mine] @ nodes.y[mine] ** power)
            scale = float((y[here].abs() ** power).sum()) + 1
            assert got == pytest.approx(exact, abs=1e-9 * scale)


def test_condensed_sums_of_smooth_functions_are_within_the_bound() -> None:
    y = torch.tensor(np.random.default_rng(0).exponential(1.0, 20_000))
    for width in (0.1, 0.5):
        nodes = condensed(torch.zeros_like(y).long(), y, torch.tensor([width]).double())
        assert nodes.y.numel() < 400
        off = float(nodes.weights @ nodes.y.sin() - y.sin().sum()) / 20_000
        assert abs(off) <= width**4 / 384


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weights": -LAM}, ValueError, "`weights` to be non-negative"),
        ({"indices": [0, N]}, ValueError, "`indices` to be rows of the pool, 0 to 11"),
        ({"y": [1.0, math.inf]}, ValueError, "`y` to be finite"),
        ({"second_moment": 0.0}, ValueError, r"`second_moment` in \(0, inf\)"),
        ({"delta": 1e-9}, ValueError, "`n` above"),
        ({"V": torch.ones(2, 5)}, BotorchTensorDimensionError, "`V` to have the 3"),
        ({"gamma": -1.0}, ValueError, r"`gamma` in \[0, inf\)"),
        (
            {"weights": torch.eye(N)[0], "indices": torch.zeros(40).long()},
            ValueError,
            "direction in the span .*direction 1 is not. Give a positive",
        ),
        ({"weights": torch.eye(N)[1]}, ValueError, "drawn by `weights`, but row 0"),
    ],
)
def test_bad_arguments_are_refused(options: dict, error: type, message: str) -> None:
    n = len(options.get("indices", range(40)))
    arguments = {
        "V": X,
        "X": X,
        "weights": LAM,
        "indices": torch.arange(40) % N,
        "y": torch.zeros(n if "y" not in options else 40),
        "second_moment": S,
        "delta": 0.1,
        **options,
    }
    if "y" in options:
        arguments["indices"] = [0, 1]
    with pytest.raises(error, match=message):
        rips(**arguments)
