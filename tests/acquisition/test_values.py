r"""Every acquisition value equals an independent dense computation."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import entropy, norm

from botorch_lse.acquisition import (
    ContourEntropy,
    ExpectedFeasibility,
    ImplicitStraddle,
    LSEAmbiguity,
    LSEWidth,
    MaxVariance,
    RanjanImprovement,
    Straddle,
    UFunction,
)
from botorch_lse.confidence import UnionBeta
from tests.registry import MOMENTS

RTOL = 1e-9
ROUNDS = [0, 0, 0, 1, 2, 2, 2, 3, 3]
ENDS = [0, 3, 4, 7, 9]


def in_a_band(alpha, power):
    r"""``E max(a^power - |f - 21|^power, 0)`` with ``a = alpha sigma``, by its mean."""

    def value(mean, sigma):
        a = alpha * sigma

        def weighed(y):
            return (a**power - abs(y) ** power) * norm.pdf(y, mean - 21.0, sigma)

        return quad(weighed, -a, a, points=[0.0], epsabs=0.0, epsrel=1e-11)[0]

    return value


RIVALS = {
    UFunction: lambda mean, sigma: -abs(mean - 21.0) / sigma,
    ContourEntropy: lambda mean, sigma: entropy(
        [norm.cdf(21.0, mean, sigma), norm.sf(21.0, mean, sigma)]
    ),
    ExpectedFeasibility: in_a_band(2.0, 1),
    RanjanImprovement: in_a_band(1.96, 2),
}


def expected(acqf_class, dense, P, pending, noise, pool=None):
    n = len(dense.y)
    mean, sigma = dense.moments(P, n, pending, noise)
    if acqf_class is MaxVariance:
        return sigma**2
    if acqf_class in RIVALS:
        return [RIVALS[acqf_class](*at) for at in zip(mean, sigma, strict=True)]
    level = 21.0
    if acqf_class is ImplicitStraddle:
        level = 0.9 * dense.moments(pool, n)[0].max()
    return 1.96 * sigma - np.abs(mean - level)


@pytest.mark.some(3)
@pytest.mark.parametrize("case", MOMENTS)
@pytest.mark.parametrize("with_pending", [False, True])
def test_marginal_values_equal_dense_formulas(
    model_and_dense, points, case, with_pending
):
    model, dense, noise = model_and_dense
    pending = points[:3] + 0.01 if with_pending else None
    acqf = case.cls(model, **case.options(points))
    acqf.set_X_pending(pending)
    values = acqf(points.unsqueeze(-2)).detach().numpy()
    P = points.numpy()
    want = expected(
        case.cls, dense, P, None if pending is None else pending.numpy(), noise, P
    )
    np.testing.assert_allclose(values, want, rtol=RTOL, atol=1e-8)


@pytest.mark.some(9)
@pytest.mark.parametrize("with_pending", [False, True])
@pytest.mark.parametrize("schedule", [4.0, UnionBeta(40, 0.1)], ids=["4", "theorem"])
@pytest.mark.parametrize("by_round", [False, True])
def test_region_values_equal_dense_formulas(
    model_and_dense, points, with_pending, schedule, by_round
):
    model, dense, noise = model_and_dense
    rounds = torch.tensor(ROUNDS) if by_round else None
    ends = ENDS if by_round else list(range(10))
    beta = schedule if callable(schedule) else lambda t: schedule
    betas = [beta(t + 1) for t in range(len(ends))]
    pending = points[:3] + 0.01 if with_pending else None
    lower, upper = dense.region(
        points.numpy(), ends, betas, None if pending is None else pending.numpy(), noise
    )
    ambiguity = LSEAmbiguity(model, 21.0, schedule, rounds, X_pending=pending)
    width = LSEWidth(model, schedule, rounds, X_pending=pending)
    X = points.unsqueeze(-2)
    want = np.minimum(upper - 21.0, 21.0 - lower)
    np.testing.assert_allclose(ambiguity(X).numpy(), want, rtol=RTOL, atol=1e-8)
    np.testing.assert_allclose(width(X).numpy(), upper - lower, rtol=RTOL, atol=1e-8)


def test_pending_points_leave_the_mean(model_and_dense, points):
    model, _, _ = model_and_dense
    narrow = Straddle(model, threshold=21.0, beta=0.0)  # minus the distance alone
    before = narrow(points.unsqueeze(-2))
    narrow.set_X_pending(points[:5])
    torch.testing.assert_close(narrow(points.unsqueeze(-2)), before)


def test_ambiguity_replays_algorithm_1_step_by_step(model_and_dense, points):
    """Undecided is what Algorithm 1, run on the same data, leaves undecided."""
    model, dense, _ = model_and_dense
    P, h, epsilon, beta = points.numpy(), 21.0, 0.3, 4.0
    lower, upper = np.full(len(P), -np.inf), np.full(len(P), np.inf)
    undecided = np.ones(len(P), dtype=bool)
    for t in range(10):
        mean, sigma = dense.moments(P, t)
        lower = np.where(undecided, np.maximum(lower, mean - 2 * sigma), lower)
        upper = np.where(undecided, np.minimum(upper, mean + 2 * sigma), upper)
        decided = (lower + epsilon > h) | (upper - epsilon <= h)
        undecided &= ~decided
    values = LSEAmbiguity(model, h, beta)(points.unsqueeze(-2)).numpy()
    assert 0 < undecided.sum() < len(P)
    np.testing.assert_array_equal(values >= epsilon, undecided)
    score = np.minimum(upper - h, h - lower)
    best = np.flatnonzero(undecided)[score[undecided].argmax()]
    assert values.argmax() == best
