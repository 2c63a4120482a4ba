r"""Posteriors stay posteriors where a residual variance is what rounding left of it."""

from __future__ import annotations

import itertools

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_lse.functional.variance_reduction import single_gain
from botorch_lse.models.gaussian_process import (
    JITTER,
    JITTER_SINGLE,
    GPPrior,
    PoolPosterior,
    PosteriorPath,
    least_noise,
)
from botorch_lse.planning import BatchPosterior, PosteriorProblem
from tests.reference.dense_gp import DenseGP

ROUNDING = 1e-12
"""What twenty float64 operations on sums of a dozen terms may be off, of the prior."""
BACKWARD = 1e-15
"""A factor is that of a covariance this far from the stated one, of the prior: relative
to the least noise, so much of a variance is not known."""


def assert_close(found: Tensor, want: Tensor, scale: float) -> None:
    allowed = ROUNDING * scale + BACKWARD / JITTER * want
    assert ((found - want).abs() <= allowed).all()


@st.composite
def problems(draw):
    r"""A process, rows with copies and near-copies of others, noise down to none."""
    scale = 10.0 ** draw(st.integers(-12, 12))
    gp = DenseGP(
        lengthscale=(draw(st.sampled_from([0.05, 0.3, 2.0])),),
        outputscale=scale,
        is_rbf=draw(st.booleans()),
    )
    x = draw(st.lists(st.floats(0, 1), min_size=3, max_size=8))
    x += [x[0], x[1] + 1e-9, x[2] + 1e-6]
    rows = draw(
        st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=12),
    )
    shares = st.sampled_from([0.0, 1e-300, 1e-20, 1e-8, 1e-2, 1.0])
    noise = [scale * draw(shares) for _ in rows]
    return gp, torch.tensor(x, dtype=torch.float64).unsqueeze(-1), rows, noise


def posterior_of(gp: DenseGP, X: Tensor) -> PoolPosterior:
    return PoolPosterior.start(GPPrior.from_kernel(gp.kernel()), X)


def exact_variances(gp: DenseGP, X: Tensor, rows: list[int], noise: Tensor):
    r"""``N`` variances of the stated covariance in fifty digits."""
    K = gp.covariance(X.numpy(), X.numpy())
    if not rows:
        return torch.tensor(K.diagonal().copy())
    with mpmath.workdps(50):
        A = mpmath.matrix(K[rows][:, rows].tolist())
        for i, variance in enumerate(noise.tolist()):
            A[i, i] += variance
        found = []
        for j in range(len(X)):
            k = mpmath.matrix(K[rows][:, j].tolist())
            found.append(float(K[j, j] - (k.T * mpmath.lu_solve(A, k))[0]))
    return torch.tensor(found, dtype=torch.float64)


def assert_never_more(before: Tensor, after: Tensor, scale: float) -> None:
    assert torch.isfinite(after).all()
    assert (after >= 0).all()
    assert (after <= before).all()
    assert (after <= scale * (1 + ROUNDING)).all()


@pytest.mark.slow
@given(problems())
@settings(max_examples=60, deadline=None)
def test_variances_never_increase_and_are_those_of_exact_arithmetic(problem) -> None:
    gp, X, rows, noise = problem
    start = posterior_of(gp, X)
    raised = torch.tensor(noise).double().clamp_min(JITTER * gp.outputscale)
    want = exact_variances(gp, X, rows, raised)
    observed, expected = start, start
    for row, variance in zip(rows, noise, strict=True):
        y = torch.tensor([gp.outputscale**0.5 * ((row * 7) % 5 - 2)]).double()
        nxt = observed.observe(
            torch.tensor([row]), y, torch.tensor([variance]).double()
        )
        assert_never_more(observed.variance, nxt.variance, gp.outputscale)
        assert torch.isfinite(nxt.mean).all()
        assert torch.isfinite(nxt.information)
        assert nxt.information >= observed.information - ROUNDING
        observed = nxt
        nxt = expected.expect(row, variance)
        assert_never_more(expected.variance, nxt.variance, gp.outputscale)
        expected = nxt
    at_once = start.observe(
        torch.tensor(rows), torch.zeros(len(rows)).double(), torch.tensor(noise)
    )
    planned = start.expect_all(torch.tensor(rows), torch.tensor(noise))
    for found in (observed, expected, at_once, planned):
        assert_close(found.variance, want, gp.outputscale)


@pytest.mark.slow
@given(problems())
@settings(max_examples=40, deadline=None)
def test_the_path_of_exact_repeats_only_narrows(problem) -> None:
    gp, X, rows, noise = problem
    prior = GPPrior.from_kernel(gp.kernel())
    path = PosteriorPath.from_data(
        prior, X[rows], torch.zeros(len(rows)).double(), torch.tensor(noise).double()
    )
    longer = path.after(X[rows], torch.tensor(noise).double())
    means, variances = longer.moments(X, prefixes=True)
    assert torch.isfinite(means).all()
    for before, after in itertools.pairwise(variances):
        assert_never_more(before, after, gp.outputscale)


@pytest.mark.slow
@given(problems())
@settings(max_examples=40, deadline=None)
def test_batches_only_narrow_and_giving_a_row_back_is_as_if_it_never_came(
    problem,
) -> None:
    gp, X, rows, noise = problem
    posterior = posterior_of(gp, X)
    each = torch.full((len(X),), max(noise)).double().clamp_min(posterior.least_noise)
    part = PosteriorProblem(posterior, each, torch.arange(len(X)))
    played = BatchPosterior.of(part, torch.zeros(len(X), dtype=torch.long))
    for row in rows:
        nxt = played.with_observation(row)
        assert_never_more(played.variance, nxt.variance, gp.outputscale)
        played = nxt
    want = exact_variances(gp, X, rows, each[rows])
    assert_close(played.variance, want, gp.outputscale)
    assert_close(BatchPosterior.of(part, played.counts).variance, want, gp.outputscale)
    rest = exact_variances(gp, X, rows[1:], each[rows[1:]])
    without = played.variance + played.rise_without(torch.tensor([0])).square().squeeze(
        0
    )
    assert_close(without, rest, gp.outputscale)


@given(problems())
@settings(max_examples=40, deadline=None)
def test_no_gain_exceeds_what_there_is_to_gain(problem) -> None:
    gp, X, rows, noise = problem
    posterior = posterior_of(gp, X).observe(
        torch.tensor(rows), torch.zeros(len(rows)).double(), torch.tensor(noise)
    )
    every = torch.arange(len(X))
    gain = single_gain(
        posterior.covariance_between(every, every),
        posterior.variance + posterior.least_noise,
    )
    assert torch.isfinite(gain).all()
    assert (gain <= posterior.variance + ROUNDING * gp.outputscale).all()


@pytest.mark.parametrize(
    ("dtype", "share"), [(torch.float64, JITTER), (torch.float32, JITTER_SINGLE)]
)
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_the_least_noise_goes_with_the_scale_and_the_precision(
    dtype: torch.dtype, share: float, scale: float
) -> None:
    variances = scale * torch.tensor([[0.2, 1.0], [0.5, 0.25]]).double()
    found = least_noise(variances, dtype)
    torch.testing.assert_close(found, share * scale * torch.tensor([1.0, 0.5]).double())
    assert float(least_noise(variances[:0, 0], dtype)) == 0.0
