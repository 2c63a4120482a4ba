from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError

from botorch_lse.estimators import (
    ArmStatistics,
    head,
    head_from_arms,
    quadratic_features,
)
from botorch_lse.papers.weltz2023 import separate_arm_variance, uniform_variance
from tests.covering import more_in_full

RNG = np.random.default_rng(11)
D, N = 3, 9
X = RNG.standard_normal((N, D))
FACTOR = RNG.standard_normal((D, D))
SIGMA = FACTOR @ FACTOR.T + 0.1 * np.eye(D)
THETA = np.array([1.0, -2.0, 0.5])


def duplication(d: int) -> np.ndarray:
    r"""``G`` with ``G vech(S) = vec(S)``, entry by entry."""
    pairs = [(i, j) for i in range(d) for j in range(i, d)]
    G = np.zeros((d * d, len(pairs)))
    for column, (i, j) in enumerate(pairs):
        G[i * d + j, column] = G[j * d + i, column] = 1.0
    return G


def literal_phi(x: np.ndarray) -> np.ndarray:
    return np.outer(x, x).reshape(-1) @ duplication(len(x))


def values(rows: np.ndarray, seed: int, X: np.ndarray = X) -> np.ndarray:
    rng = np.random.default_rng(seed)
    s2 = np.einsum("ni,ij,nj->n", X, SIGMA, X)
    return X[rows] @ THETA + np.sqrt(s2[rows]) * rng.standard_normal(len(rows))


def test_quadratic_features_are_those_of_the_duplication_matrix() -> None:
    expected = [literal_phi(x) for x in X]
    np.testing.assert_allclose(quadratic_features(torch.tensor(X)), expected)
    i, j = np.triu_indices(D)
    forms = np.einsum("ni,ij,nj->n", X, SIGMA, X)
    np.testing.assert_allclose(np.array(expected) @ SIGMA[i, j], forms)


def test_head_is_algorithm_1_line_by_line() -> None:
    rows1, rows2 = RNG.integers(0, N, 40), RNG.integers(0, N, 60)
    y1, y2 = values(rows1, 1), values(rows2, 2)
    A1 = sum(np.outer(X[r], X[r]) for r in rows1)
    b1 = sum(X[r] * y for r, y in zip(rows1, y1, strict=True))
    theta = np.linalg.inv(A1) @ b1
    phi = np.array([literal_phi(x) for x in X])
    A2 = sum(np.outer(phi[r], phi[r]) for r in rows2)
    b2 = sum(phi[r] * (y - X[r] @ theta) ** 2 for r, y in zip(rows2, y2, strict=True))
    vech = np.linalg.inv(A2) @ b2
    found = head(X, rows1, y1, rows2, y2)
    np.testing.assert_allclose(found.theta, theta, rtol=1e-10)
    np.testing.assert_allclose(found.Sigma[np.triu_indices(D)], vech, rtol=1e-8)
    np.testing.assert_allclose(found.Sigma, found.Sigma.T)
    np.testing.assert_allclose(found.variances, phi @ vech, rtol=1e-8)


def test_few_arms_give_the_shortest_solution() -> None:
    few = X[:4]
    rows = np.repeat(np.arange(4), 5)
    y = values(rows, 3, few)
    found = head(few, rows, y, rows, y)
    phi = np.array([literal_phi(x) for x in few])
    theta = np.linalg.pinv(few[rows]) @ y
    vech = np.linalg.pinv(phi[rows]) @ (y - few[rows] @ theta) ** 2
    np.testing.assert_allclose(found.Sigma[np.triu_indices(D)], vech, rtol=1e-8)
    means = [((y - few[rows] @ theta) ** 2)[rows == r].mean() for r in range(4)]
    np.testing.assert_allclose(found.variances, means, rtol=1e-8)


def test_uniform_is_algorithm_3() -> None:
    rows = RNG.integers(0, N, 60)
    y = values(rows, 4)
    found, same = uniform_variance(X, rows, y), head(X, rows, y, rows, y)
    torch.testing.assert_close(found.variances, same.variances)
    theta = np.linalg.lstsq(X[rows], y, rcond=None)[0]
    np.testing.assert_allclose(found.theta, theta, rtol=1e-8)


def test_separate_arm_is_algorithm_4() -> None:
    arms = np.arange(6)
    rows = np.repeat(arms, 7)
    y = values(rows, 5)
    squares = (y - y.reshape(6, 7).mean(axis=1).repeat(7)) ** 2
    phi = np.array([literal_phi(x) for x in X])
    vech = np.linalg.lstsq(phi[rows], squares, rcond=None)[0]
    found = separate_arm_variance(X, rows, y)
    assert found.theta is None
    np.testing.assert_allclose(found.variances, phi @ vech, rtol=1e-6)


@more_in_full("n_runs", 300, 1500)
def test_head_is_unbiased_up_to_the_error_of_theta(n_runs: int) -> None:
    r"""Repetitions with seeds 0, 1, ...: ``E = s2 + x' cov(theta) x`` at the arms of
    a square system, where least squares reproduces each arm's mean square.
    """
    arms = X[:6]
    s2 = np.einsum("ni,ij,nj->n", arms, SIGMA, arms)
    k1, k2 = np.full(6, 5), np.full(6, 8)
    inverse = np.linalg.inv(arms.T @ np.diag(k1) @ arms)
    covariance = inverse @ arms.T @ np.diag(k1 * s2) @ arms @ inverse
    expected = s2 + np.einsum("ni,ij,nj->n", arms, covariance, arms)
    rows1, rows2 = np.repeat(np.arange(6), k1), np.repeat(np.arange(6), k2)
    found = np.array(
        [
            head(
                arms,
                rows1,
                values(rows1, 2 * seed, arms),
                rows2,
                values(rows2, 2 * seed + 1, arms),
            ).variances.numpy()
            for seed in range(n_runs)
        ]
    )
    error = found.std(axis=0) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - expected) < 4 * error).all()


def test_estimates_are_clipped_to_the_bounds() -> None:
    rows = RNG.integers(0, N, 20)
    y = values(rows, 6)
    free = head(X, rows, y, rows, y).variances
    low, high = 0.5, float(free.median())
    found = head(X, rows, y, rows, y, bounds=(low, high)).variances
    torch.testing.assert_close(found, free.clamp(low, high))


def test_estimates_scale_with_the_square_of_y_and_ignore_linear_shifts() -> None:
    rows = RNG.integers(0, N, 60)
    y = values(rows, 7)
    base = head(X, rows, y, rows, y).variances
    moved = 10 * y + X[rows] @ np.array([3.0, 1.0, -4.0])
    torch.testing.assert_close(head(X, rows, moved, rows, moved).variances, 100 * base)


def test_statistics_say_the_same_as_values() -> None:
    rows1, rows2 = RNG.integers(0, N, 40), RNG.integers(0, N, 60)
    y1, y2 = values(rows1, 8), values(rows2, 9)
    data = (ArmStatistics.of_values(r, y, N) for r, y in ((rows1, y1), (rows2, y2)))
    found = head_from_arms(torch.tensor(X), *data)
    expected = head(X, rows1, y1, rows2, y2)
    torch.testing.assert_close(found.variances, expected.variances)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (1.0, "`bounds` to be the least and the largest"),
        ((0.0, 1.0), r"`bounds\[0\]` in \(0"),
        ((2.0, 1.0), r"`bounds\[1\]` in \[2"),
    ],
)
def test_bad_bounds_are_named(bounds, message) -> None:
    with pytest.raises(ValueError, match=message):
        head(X, [0], [1.0], [0], [1.0], bounds=bounds)


def test_lengths_must_agree() -> None:
    with pytest.raises(BotorchTensorDimensionError, match="`y`"):
        head(X, [0, 1], [1.0], [0], [1.0])


def test_arms_of_one_feature_work() -> None:
    found = head([[2.0]], [0, 0], [1.0, 3.0], [0, 0], [2.0, 4.0])
    assert found.theta.tolist() == pytest.approx([1.0])
    assert found.variances.tolist() == pytest.approx([2.0])
    assert found.Sigma.tolist() == [pytest.approx([0.5])]
