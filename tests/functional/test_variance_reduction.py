r"""The pure functions against their definitions in NumPy."""

import numpy as np
import pytest
import torch

from botorch_lse.functional.lookahead import truncated_variance
from botorch_lse.functional.variance_reduction import (
    excess,
    joint_gain,
    single_gain,
)
from botorch_lse.models.gaussian_process import least_noise

RTOL = 1e-9
_RANDOM = np.random.default_rng(0)
A = _RANDOM.standard_normal((9, 9))
C = A @ A.T  # covariances of three candidates and six targets
NOISE = np.array([0.3, 1.0, 0.02])
BEFORE = np.diag(C)[3:]


def truncated_reduction(gain, variance, beta: float, eta: float) -> torch.Tensor:
    return truncated_variance(variance, beta, eta).of(gain).sum(dim=-1)


def conditioned(observed: list[int]) -> np.ndarray:
    r"""Variances of the targets from the inverse of the observations' covariance."""
    K = C[np.ix_(observed, observed)] + np.diag(NOISE[observed])
    cross = C[np.ix_(observed, range(3, 9))]
    return BEFORE - np.diag(cross.T @ np.linalg.inv(K) @ cross)


def definition(before, after, beta: float, eta: float) -> float:
    widths = [np.maximum(beta * v, eta**2).sum() for v in (before, after)]
    return widths[0] - widths[1]


@pytest.mark.parametrize("eta", [0.0, 1.5, 4.0, 100.0])
def test_single_reductions_are_equation_3(eta: float) -> None:
    observed = torch.tensor(np.diag(C)[:3] + NOISE)
    gain = single_gain(torch.tensor(C[:3, 3:]), observed)
    found = truncated_reduction(gain, torch.tensor(BEFORE), 4.0, eta)
    want = [definition(BEFORE, conditioned([i]), 4.0, eta) for i in range(3)]
    np.testing.assert_allclose(found.numpy(), want, rtol=RTOL, atol=1e-9)
    assert (found >= 0).all()


@pytest.mark.parametrize("eta", [0.0, 1.5])
@pytest.mark.parametrize("batch", [[1], [0, 2], [0, 1, 2], [2, 2, 1]])
def test_joint_reductions_are_those_of_the_whole_batch(
    batch: list[int], eta: float
) -> None:
    K = C[np.ix_(batch, batch)] + np.diag(NOISE[batch])
    gain = joint_gain(
        torch.tensor(np.linalg.cholesky(K)), torch.tensor(C[np.ix_(batch, range(3, 9))])
    )
    found = truncated_reduction(gain, torch.tensor(BEFORE), 4.0, eta)
    want = definition(BEFORE, conditioned(batch), 4.0, eta)
    np.testing.assert_allclose(found.numpy(), want, rtol=RTOL)


def test_excess_is_all_that_can_be_removed() -> None:
    huge = torch.full((6,), 1e9, dtype=torch.float64)
    variance = torch.tensor(BEFORE)
    torch.testing.assert_close(
        truncated_reduction(huge, variance, 4.0, 2.0), excess(variance, 4.0, 2.0).sum()
    )
    want = np.maximum(4.0 * BEFORE - 4.0, 0.0)
    np.testing.assert_allclose(excess(variance, 4.0, 2.0).numpy(), want)


def test_a_known_point_without_noise_gains_nothing() -> None:
    none = torch.zeros(2, 3, dtype=torch.float64)
    least = least_noise(torch.tensor(BEFORE), torch.float64).expand(2)
    assert (single_gain(none, least) == 0).all()
