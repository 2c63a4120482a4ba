r"""Look-ahead classes for a level against draws of the values to come."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from scipy.special import entr, ndtr
from scipy.stats import norm

from botorch_lse.acquisition import (
    qEAVC,
    qExpectedMisclassification,
    qGlobalMI,
    qTargetedIMSE,
)
from botorch_lse.functional.lookahead import CLOSE
from tests.acquisition.conftest import batches, make_dense, make_model
from tests.acquisition.test_contract_classes import ensemble, member

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

POOL = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
TARGETS = POOL[:13]
LEVEL, NOISE, DRAWS = 21.0, 0.8, 100_000
SIDES = [
    (qExpectedMisclassification, {}, lambda p, q: p * q),
    (qGlobalMI, {}, lambda p, q: entr(p) + entr(q)),
]
CLASSES = [(cls, options) for cls, options, _ in SIDES]
CLASSES += [(qTargetedIMSE, {}), (qTargetedIMSE, {"tau": 0.5}), (qEAVC, {})]


def price(X):
    return 1.0 + 3.0 * X[..., 1]


def covariance(dense, A, B, seen, noise):
    r"""Covariances after observations at ``seen``, from one inverse."""
    inverse = np.linalg.inv(dense.k(seen, seen) + np.diag(noise))
    return dense.k(A, B) - dense.k(A, seen) @ inverse @ dense.k(seen, B)


def world(dense, batch, pending):
    r"""Means and variances of the targets, and how the batch moves them."""
    T = TARGETS.numpy()
    seen = np.concatenate((dense.X, pending))
    noise = np.concatenate((dense.noise, np.full(len(pending), NOISE)))
    mean, _ = dense.moments(T, len(dense.y))
    variance = np.diag(covariance(dense, T, T, seen, noise))
    cross = covariance(dense, T, batch, seen, noise)
    K = covariance(dense, batch, batch, seen, noise) + NOISE * np.eye(len(batch))
    return mean, variance, cross @ np.linalg.inv(K), K


@pytest.mark.some(2)
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("n_pending", [0, 2])
@pytest.mark.parametrize(("cls", "options", "loss"), SIDES)
def test_values_are_means_over_draws_of_the_batch(cls, options, loss, q, n_pending):
    model, X, Y, _ = make_model()
    dense, pending = make_dense(X, Y), POOL[20 : 20 + n_pending]
    batch = POOL[23 : 23 + q]
    mean, variance, weights, K = world(dense, batch.numpy(), pending.numpy())
    random = np.random.default_rng(0)
    moves = random.standard_normal((DRAWS, q)) @ np.linalg.cholesky(K).T @ weights.T
    left = np.sqrt(variance - np.diag(weights @ K @ weights.T))

    def total(mean, sd):
        a = (mean - LEVEL) / sd
        return loss(ndtr(a), ndtr(-a)).sum(axis=-1)

    taken = total(mean, np.sqrt(variance)) - total(mean + moves, left)
    acqf = cls(model, TARGETS, LEVEL, **options, noise_var=NOISE, X_pending=pending)
    error = taken.std() / DRAWS**0.5
    assert q * float(acqf(batch)) == pytest.approx(taken.mean(), abs=4 * error)


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("n_pending", [0, 2])
def test_volume_changes_are_means_over_draws_of_the_batch(q, n_pending):
    model, X, Y, _ = make_model()
    dense, pending = make_dense(X, Y), POOL[20 : 20 + n_pending]
    batch = POOL[23 : 23 + q]
    mean, variance, weights, K = world(dense, batch.numpy(), pending.numpy())
    random = np.random.default_rng(0)
    moves = random.standard_normal((DRAWS, q)) @ np.linalg.cholesky(K).T @ weights.T
    left = np.sqrt(variance - np.diag(weights @ K @ weights.T))
    after = ndtr((mean + moves - LEVEL) / left).sum(axis=-1)
    change = np.abs(after - ndtr((mean - LEVEL) / np.sqrt(variance)).sum())
    acqf = qEAVC(model, TARGETS, LEVEL, noise_var=NOISE, X_pending=pending)
    # Of a batch ours is a mean over fewer values, though evenly spread ones.
    own = 0.0 if q == 1 else 0.01 * change.mean()
    error = 4 * change.std() / DRAWS**0.5 + own
    assert q * float(acqf(batch)) == pytest.approx(change.mean(), abs=error)


def test_volume_changes_of_one_value_are_exact_up_to_a_share_of_the_targets():
    model, X, Y, _ = make_model()
    dense, none = make_dense(X, Y), POOL[:0].numpy()
    batch = torch.cat((POOL[23:], TARGETS[:3] + 1e-3))  # far from the targets, and near
    with torch.no_grad():
        found = qEAVC(model, TARGETS, LEVEL, noise_var=NOISE)(batch.unsqueeze(1))
    z = torch.linspace(-8, 8, 20_001).double().numpy()
    shares = []
    for point, value in zip(batch, found.tolist(), strict=True):
        mean, variance, weights, K = world(dense, point.numpy()[None], none)
        moves = weights[:, 0] * K[0, 0] ** 0.5
        shares.append(np.abs(moves / np.sqrt(variance)).max())
        left = np.sqrt(variance - moves**2)
        after = ndtr((mean + z[:, None] * moves - LEVEL) / left).sum(axis=-1)
        change = np.abs(after - ndtr((mean - LEVEL) / np.sqrt(variance)).sum())
        want = trapezoid(change * norm.pdf(z), z)
        assert value == pytest.approx(want, rel=1e-3, abs=1e-5 * len(TARGETS))
    assert min(shares) < CLOSE < max(shares)  # by the series, and one by one


@pytest.mark.parametrize("tau", [0.0, 0.5])
@pytest.mark.parametrize("q", [1, 3])
def test_targeted_variance_is_that_of_a_fresh_solve(tau, q):
    model, X, Y, _ = make_model()
    pending, batch = POOL[20:22], POOL[23 : 23 + q]
    parts = world(make_dense(X, Y), batch.numpy(), pending.numpy())
    mean, variance, weights, K = parts
    density = norm.pdf(LEVEL, mean, np.sqrt(variance + tau**2))
    want = (density * np.diag(weights @ K @ weights.T)).sum()
    acqf = qTargetedIMSE(model, TARGETS, LEVEL, tau, noise_var=NOISE, X_pending=pending)
    assert q * float(acqf(batch)) == pytest.approx(want, rel=1e-9)


@pytest.mark.some(3)
@pytest.mark.parametrize(("cls", "options"), CLASSES)
def test_costs_divide_and_ensembles_are_averaged(cls, options):
    X, several = batches((4,), 2), ensemble()
    free, paid = (
        cls(several, TARGETS, LEVEL, **options, cost=cost) for cost in (None, price)
    )
    each = [cls(member(several, i), TARGETS, LEVEL, **options)(X) for i in range(3)]
    torch.testing.assert_close(free(X), torch.stack(each).mean(dim=0))
    torch.testing.assert_close(paid(X), 2 * free(X) / price(X).sum(dim=-1))


@pytest.mark.parametrize("cls", [qGlobalMI, qEAVC])
@pytest.mark.parametrize("q", [1, 2])
def test_gradients_are_those_of_small_differences(cls, q):
    acqf = cls(make_model()[0], TARGETS, LEVEL, noise_var=NOISE)
    X = POOL[23 : 23 + q].clone().requires_grad_()
    assert torch.autograd.gradcheck(acqf, (X,), eps=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: qTargetedIMSE(m, TARGETS, LEVEL, tau=-1.0), "`tau`"),
        (lambda m: qGlobalMI(m, TARGETS, float("nan")), "`threshold`"),
        (lambda m: qGlobalMI(m, TARGETS, LEVEL, cost=0.0), "`cost`"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(make_model()[0])
