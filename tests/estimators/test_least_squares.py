from __future__ import annotations

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse.data.observations import Observations
from botorch_lse.estimators import ArmStatistics, weighted_least_squares

RNG = np.random.default_rng(7)
X = RNG.standard_normal((6, 3))


def test_weighted_least_squares_solves_the_normal_equations() -> None:
    y, w = RNG.standard_normal(6), RNG.uniform(0.1, 5.0, 6)
    fit = weighted_least_squares(X, y, w)
    A = X.T @ np.diag(w) @ X
    np.testing.assert_allclose(fit.theta, np.linalg.solve(A, X.T @ (w * y)), rtol=1e-10)
    np.testing.assert_allclose(fit.root @ fit.root.T, np.linalg.inv(A), rtol=1e-10)
    V = torch.tensor(RNG.standard_normal((4, 3)))
    expected = [v @ np.linalg.solve(A, v) for v in V.numpy()]
    np.testing.assert_allclose(fit.squared_norms(V), expected, rtol=1e-10)


def test_the_shortest_solution_is_found_where_features_are_dependent() -> None:
    flat = X[:, :2] @ RNG.standard_normal((2, 4))
    y = RNG.standard_normal(6)
    fit = weighted_least_squares(flat, y)
    np.testing.assert_allclose(fit.theta, np.linalg.pinv(flat) @ y, atol=1e-10)


def test_directions_outside_the_data_have_infinite_variance() -> None:
    fit = weighted_least_squares([[1.0, 0.0]], [2.0], [4.0])
    V = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).double()
    norms = fit.squared_norms(V)
    assert norms.tolist() == [1.0, torch.inf, torch.inf]


def test_inverse_variances_are_the_best_weights() -> None:
    s2 = RNG.uniform(0.1, 5.0, 6)
    best = weighted_least_squares(X, np.zeros(6), 1 / s2)
    for weights in (np.ones(6), s2, RNG.uniform(0.5, 2.0, 6)):
        inverse = np.linalg.inv(X.T @ np.diag(weights) @ X)
        covariance = inverse @ X.T @ np.diag(weights**2 * s2) @ X @ inverse
        least = np.linalg.eigvalsh(covariance - (best.root @ best.root.T).numpy())[0]
        assert least > -1e-12


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X, np.zeros(5)), BotorchTensorDimensionError, "`y` to be a vector"),
        ((X, np.zeros(6), -np.ones(6)), ValueError, "`weights` to be non-negative"),
        ((X, np.full(6, np.nan)), ValueError, "`y` to be finite"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        weighted_least_squares(*arguments)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1e3, 1e3)), min_size=1))
def test_arm_statistics_are_those_of_the_values(values) -> None:
    rows, y = (torch.tensor(part) for part in zip(*values, strict=True))
    y = y.double()
    found = ArmStatistics.of_values(rows, y, 5)
    assert found.n == len(values)
    for arm in range(5):
        own = y[rows == arm].numpy()
        assert int(found.counts[arm]) == len(own)
        if len(own):
            assert float(found.means[arm]) == pytest.approx(own.mean(), abs=1e-9)
            scatter = ((own - own.mean()) ** 2).sum()
            assert float(found.scatter[arm]) == pytest.approx(scatter, abs=1e-6)


def test_parts_merge_into_the_whole() -> None:
    rows = torch.tensor([0, 0, 1, 3, 3, 3, 0, 1])
    y = torch.tensor(RNG.standard_normal(8))
    whole = ArmStatistics.of_values(rows, y, 4)
    first = ArmStatistics.of_values(rows[:5], y[:5], 4)
    parts = first.merge(ArmStatistics.of_values(rows[5:], y[5:], 4))
    assert torch.equal(parts.counts, whole.counts)
    torch.testing.assert_close(parts.means, whole.means)
    torch.testing.assert_close(parts.scatter, whole.scatter)


def test_means_with_sample_variances_say_the_same_as_the_values() -> None:
    rows = torch.tensor([2, 2, 2, 0])
    y = torch.tensor([1.0, 2.0, 6.0, 5.0]).double()
    yvar = [float(y[:3].var()) / 3, 0.0]
    means = Observations([2, 0], [3.0, 5.0], yvar, counts=torch.tensor([3, 1]))
    found = ArmStatistics.of_observations(means, 3)
    expected = ArmStatistics.of_values(rows, y, 3)
    for name in ("counts", "means", "scatter"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name))


def test_the_fit_from_arms_is_the_fit_from_values() -> None:
    rows = torch.tensor([0, 1, 1, 2, 2, 2, 5])
    y = torch.tensor(RNG.standard_normal(7))
    s2 = torch.tensor(RNG.uniform(0.5, 2.0, 6))
    fit = ArmStatistics.of_values(rows, y, 6).fit(torch.tensor(X), s2)
    direct = weighted_least_squares(X[rows], y, 1 / s2[rows])
    torch.testing.assert_close(fit.theta, direct.theta)
    V = torch.eye(3).double()
    torch.testing.assert_close(fit.squared_norms(V), direct.squared_norms(V))


def test_squared_residuals_are_those_of_the_values() -> None:
    rows, y = torch.tensor([0, 0, 2]), torch.tensor([1.0, 3.0, 4.0]).double()
    found = ArmStatistics.of_values(rows, y, 3)
    squares = found.squared_residuals(torch.tensor([0.0, 9.0, 1.0]).double())
    assert squares.tolist() == [5.0, 0.0, 9.0]


def test_means_without_variance_are_refused() -> None:
    means = Observations([0], [1.0], counts=torch.tensor([3]))
    with pytest.raises(ValueError, match="`yvar` with means of replicates"):
        ArmStatistics.of_observations(means, 1)


def test_several_outputs_are_refused() -> None:
    two = Observations([0], torch.ones(1, 2))
    with pytest.raises(BotorchTensorDimensionError, match="`y` with one output"):
        ArmStatistics.of_observations(two, 1)


def test_billions_of_replicates_do_not_overflow() -> None:
    k = 4_000_000_000
    data = Observations([0], [1.0], [2.0 / k], counts=torch.tensor([k]))
    found = ArmStatistics.of_observations(data, 1)
    assert float(found.scatter[0]) == pytest.approx(2.0 * (k - 1))
    assert float(found.squared_residuals(torch.zeros(1))[0]) == pytest.approx(3.0)
