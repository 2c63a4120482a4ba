r"""The incremental posterior on a pool against dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpytorch.means import ConstantMean
from torch import Tensor

from botorch_lse.models.gaussian_process import JITTER, GPPrior, PoolPosterior
from tests.covering import covering
from tests.reference.dense_gp import DenseGP

N = 40
GP = DenseGP(lengthscale=(0.3, 0.5), outputscale=2.5, mean=4.0)
X = torch.rand(N, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
ROWS = [3, 17, 3, 39, 0, 8, 21, 3, 30, 12, 13, 14, 5, 5, 28, 19, 2, 33, 36, 7]
Y = np.random.default_rng(1).normal(4.0, 1.5, len(ROWS))
NOISE = np.random.default_rng(2).uniform(0.05, 0.5, len(ROWS))
IN_CACHE, HALF, TINY = 2**30, 2 * 8 * 10 * N, 1
"""Budgets for all path rows, for the first ten of them, and for none."""


def start(budget: int = IN_CACHE) -> PoolPosterior:
    mean = ConstantMean().double().initialize(constant=torch.tensor(4.0).double())
    return PoolPosterior.start(GPPrior.from_kernel(GP.kernel(), mean), X, budget)


def dense(n: int) -> tuple[np.ndarray, np.ndarray]:
    x = X.numpy()
    return GP.posterior(x, x[ROWS[:n]], Y[:n], NOISE[:n])


def observe(posterior: PoolPosterior, begin: int, end: int) -> PoolPosterior:
    return posterior.observe(
        torch.tensor(ROWS[begin:end], dtype=torch.long),
        torch.tensor(Y[begin:end]),
        torch.tensor(NOISE[begin:end]),
    )


def assert_dense(posterior: PoolPosterior, n: int) -> None:
    mean, covariance = dense(n)
    assert np.allclose(posterior.mean, mean, rtol=0, atol=1e-9)
    assert np.allclose(posterior.variance, covariance.diagonal(), rtol=0, atol=1e-9)
    some = torch.tensor([1, 3, 20])
    got = posterior.covariance_with(some)
    assert np.allclose(got, covariance[some], rtol=0, atol=1e-9)


@covering("budget, step", [IN_CACHE, HALF, TINY], [1, 3, len(ROWS)])
def test_observing_equals_dense_conditioning(budget: int, step: int) -> None:
    posterior = start(budget)
    assert_dense(posterior, 0)
    for begin in range(0, len(ROWS), step):
        posterior = observe(posterior, begin, begin + step)
        assert_dense(posterior, min(begin + step, len(ROWS)))
    assert posterior.indices.tolist() == ROWS
    assert np.isclose(posterior.scale, 2.5**0.5)


@pytest.mark.parametrize("budget", [IN_CACHE, HALF, TINY])
def test_expecting_equals_dense_conditioning_on_the_mean(budget: int) -> None:
    posterior = observe(start(budget), 0, 12)
    mean, _ = dense(12)
    expected, planned = posterior, [6, 6, 25, 3]
    for n, row in enumerate(planned, start=1):
        expected = expected.expect(row, 0.2)
        x = X.numpy()
        told, covariance = GP.posterior(
            x,
            x[ROWS[:12] + planned[:n]],
            np.concatenate((Y[:12], mean[planned[:n]])),
            np.concatenate((NOISE[:12], np.full(n, 0.2))),
        )
        assert torch.equal(expected.mean, posterior.mean)
        assert np.allclose(expected.mean, told, rtol=0, atol=1e-9)
        variance = covariance.diagonal()
        assert np.allclose(expected.variance, variance, rtol=0, atol=1e-9)
    assert_dense(posterior, 12)


def moments(posterior: PoolPosterior) -> tuple[Tensor, ...]:
    rows = torch.tensor([0, 11])
    return (
        posterior.mean.clone(),
        posterior.variance.clone(),
        posterior.covariance_with(rows),
    )


def test_branches_from_one_parent_do_not_see_each_other() -> None:
    parent = observe(start(), 0, 5)
    before = moments(parent)
    first = observe(parent, 5, 9)
    of_first = moments(first)
    other = parent.observe(
        torch.tensor([1, 2, 4]),
        torch.tensor([9.0, 8.0, 7.0]).double(),
        torch.full((3,), 0.1, dtype=torch.float64),
    )
    of_other = moments(other)
    first_child, other_child = observe(first, 9, 20), observe(other, 9, 20)
    late = observe(parent, 5, 20)
    for posterior, saved in (
        (parent, before),
        (first, of_first),
        (other, of_other),
    ):
        for now, then in zip(moments(posterior), saved, strict=True):
            assert torch.equal(now, then)
    assert_dense(first, 9)
    assert_dense(first_child, 20)
    assert_dense(late, 20)
    x = X.numpy()
    told, _ = GP.posterior(
        x,
        x[[*ROWS[:5], 1, 2, 4, *ROWS[9:20]]],
        np.concatenate((Y[:5], [9.0, 8.0, 7.0], Y[9:20])),
        np.concatenate((NOISE[:5], [0.1] * 3, NOISE[9:20])),
    )
    assert np.allclose(other_child.mean, told, rtol=0, atol=1e-8)


@pytest.mark.parametrize("budget", [IN_CACHE, HALF, TINY])
def test_expecting_several_at_once_is_expecting_them_in_turn(budget: int) -> None:
    posterior = observe(start(budget), 0, 12).expect(9, 0.1)
    rows = [25, 6, ROWS[0], 3]
    noise = torch.tensor([0.2, 0.0, 0.3, 1.0], dtype=torch.float64)
    one, in_turn = posterior.expect_all(torch.tensor(rows), noise), posterior
    for row, variance in zip(rows, noise.tolist(), strict=True):
        in_turn = in_turn.expect(row, variance)
    assert torch.equal(one.mean, posterior.mean)
    assert torch.allclose(one.variance, in_turn.variance, rtol=0, atol=1e-12)
    every = torch.arange(len(X))
    found, want = (p.covariance_between(every, every) for p in (one, in_turn))
    assert torch.allclose(found, want, rtol=0, atol=1e-12)


def test_a_long_batch_expected_in_turn_equals_dense_conditioning() -> None:
    rows = 2 * ROWS  # more than are put together, and a rest
    expected = start()
    for row in rows:
        expected = expected.expect(row, 0.3)
    x, every = X.numpy(), torch.arange(N)
    _, want = GP.posterior(x, x[rows], np.zeros(len(rows)), np.full(len(rows), 0.3))
    for found in (
        expected.covariance_with(every),
        expected.covariance_between(every, every),
        expected.at_rows(every.flip(0)).covariance_with(every).flip(0, 1),
    ):
        assert np.allclose(found, want, rtol=0, atol=1e-9)


def test_observing_nothing_changes_nothing() -> None:
    posterior = observe(start(), 0, 4)
    assert observe(posterior, 4, 4) is posterior


def test_real_rows_after_hypothetical_ones_are_refused() -> None:
    with pytest.raises(ValueError, match="no hypothetical rows"):
        observe(start().expect(0, 0.1), 0, 1)


def test_rows_in_cache_keep_to_the_budget() -> None:
    posterior = start(HALF)
    for i in range(len(ROWS)):
        posterior = observe(posterior, i, i + 1)
        assert posterior._rows.data.numel() * 8 <= HALF / 2
        assert posterior._kept == min(i + 1, 10)


def test_exact_repeats_leave_no_variance() -> None:
    posterior = start()
    for _ in range(3):
        expected = posterior.expect(7, 0.0)
        assert (expected.variance <= posterior.variance).all()
        posterior = expected
    # Exact is the least noise, which repeats average away as any other.
    left = JITTER * GP.outputscale / 3
    assert abs(float(posterior.variance[7]) - left) < 1e-14 * GP.outputscale
    assert torch.isfinite(posterior.variance).all()
