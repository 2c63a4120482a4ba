r"""All trials of a point as one site, against quadrature of the exact posterior."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from botorch_lse.models.expectation import Sites, by_point, sites_of
from botorch_lse.models.latent import _Fit, fit_latent_gp, latent_kernel
from botorch_lse.models.outcomes import Binary, Counts, Ordinal, Outcome, Results
from tests.covering import covering
from tests.models.slopes import assert_gradient

GUESSED = Binary(guess=0.3, lapse=0.05)
CUT = Ordinal(3, at_least=1, cutpoints=(-0.5, 1.0))
OUTCOMES = [Binary(), GUESSED, Counts(), CUT]
X = torch.tensor([[0.1], [0.25], [0.7]], dtype=torch.float64)
NODES = 120


def covariance(points: Tensor) -> Tensor:
    gaps = (points - points.mT) / 0.3
    return 2.0 * (-0.5 * gaps.square()).exp() + 1e-9 * torch.eye(len(points)).double()


def told(outcome: Outcome, p: int, trials: int) -> tuple[Tensor, Tensor]:
    r"""Places and results: each point has another share of high ones."""
    place = torch.arange(p).repeat(trials)
    turn = torch.arange(trials).repeat_interleave(p)
    high = turn * (place + 1) % 5 < 3 - place
    if isinstance(outcome, Binary):
        return place, high.double()
    return place, high.double() + (turn % 3 == 0)


def exact(
    outcome: Outcome, place: Tensor, y: Tensor, K: Tensor, mean: Tensor
) -> tuple[Tensor, Tensor, float]:
    r"""Means and deviations at the points and the evidence, on a grid of each."""
    p = len(K)
    x, w = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(NODES))
    x, w = 10 * x, 10 * w
    grid = torch.cartesian_prod(*[x] * p).view(-1, p)
    weight = torch.cartesian_prod(*[w] * p).view(-1, p).prod(dim=-1)
    log = torch.distributions.MultivariateNormal(mean, K).log_prob(grid)
    for i in range(p):  # a grid value at a time, or three points take a gigabyte
        own = y[place == i]
        at = outcome.log_probability(x.unsqueeze(-1), own, 0 * own + 1).sum(dim=-1)
        log = log + at.repeat_interleave(len(x) ** (p - 1 - i)).repeat(len(x) ** i)
    total = (log + weight.log()).logsumexp(dim=0)
    share = (log + weight.log() - total).exp()
    m = share @ grid
    return m, (share @ (grid - m).square()).sqrt(), float(total)


def moments(K: Tensor, mean: Tensor, sites: Sites, at: Tensor) -> tuple[Tensor, Tensor]:
    r"""Means and deviations at the points, the sites being at ``at``."""
    inverse = torch.linalg.inv(K[at][:, at] + sites.noise.diag())
    found = mean + K[:, at] @ inverse @ (sites.value - mean[at])
    return found, (K - K[:, at] @ inverse @ K[at]).diagonal().sqrt()


@pytest.mark.some(2)
@covering("outcome, p, trials", OUTCOMES, [1, 2, 3], [2, 5, 12])
def test_one_site_for_all_trials_is_nearer_to_the_exact_posterior(outcome, p, trials):
    K, mean = covariance(X[:p]), torch.full((p,), 0.3).double()
    place, y = told(outcome, p, trials)
    results = Results(y, 0 * y + 1, place)
    joined = outcome.joined(results)
    grades = len(torch.stack((place.double(), y)).unique(dim=1).mT)
    assert len(joined.y) == (p if outcome.by_means else grades)
    m, sigma, evidence = exact(outcome, place, y, K, mean)
    one = sites_of(K, mean, outcome, joined)
    found, spread = moments(K, mean, one, torch.arange(p))
    # One site at one point is exact up to quadrature, several are an approximation.
    close = 1e-5 if p == 1 else 0.02
    assert torch.allclose(found, m, atol=close)
    assert torch.allclose(spread, sigma, rtol=3 * close)
    assert one.log_evidence == pytest.approx(evidence, abs=close)
    jittered = K[place][:, place] + 1e-9 * torch.eye(len(place)).double()
    each = sites_of(jittered, mean[place], outcome, Results(y, 0 * y + 1))
    before, before_spread = moments(K, mean, each, place)
    assert (found - m).abs().max() <= (before - m).abs().max() + 1e-3
    assert (spread - sigma).abs().max() <= (before_spread - sigma).abs().max() + 1e-3
    assert abs(one.log_evidence - evidence) <= abs(each.log_evidence - evidence) + 1e-3


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_results_that_are_joined_have_the_same_sites(outcome):
    K, mean = covariance(X), torch.zeros(3).double()
    place, y = told(outcome, 3, 7)
    apart = Results(y, 0 * y + 1, place)
    sites = [sites_of(K, mean, outcome, r) for r in (apart, outcome.joined(apart))]
    for name in ("value", "noise", "residual"):
        found, wanted = (getattr(one, name) for one in sites)
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


def test_points_that_differ_keep_their_results_as_they_are():
    y, trials = torch.tensor([1.0, 0.0, 1.0]).double(), torch.ones(3).double()
    points, results = by_point(X.flip(0), y, trials)
    assert points.tolist() == results.place.tolist() == [0, 1, 2]
    points, results = by_point(X[[2, 0, 2]], y, trials)
    assert X[[2, 0, 2]][points].tolist() == X[[0, 2]].tolist()
    assert results.place.tolist() == [1, 0, 1]


@pytest.mark.parametrize("outcome", [GUESSED, Ordinal(4, at_least=2)], ids=str)
def test_gradient_of_a_fit_to_repeats_is_that_of_its_loss(outcome):
    generator = torch.Generator().manual_seed(3)
    F = torch.rand(12, 2, generator=generator, dtype=torch.float64)
    place = torch.randint(0, 12, (60,), generator=generator)
    noise = torch.randn(60, generator=generator, dtype=torch.float64)
    f = 3 * F[place, 0] - 1.5 + noise
    y = outcome.grade(f) if isinstance(outcome, Ordinal) else (f > 0).double()
    points, results = by_point(F[place], y, 0 * y + 1)
    kernel = latent_kernel(2)
    fit = _Fit(F[place][points], outcome.joined(results), outcome, kernel, [1])
    assert_gradient(fit)


@pytest.mark.parametrize("far", [-12.0, 9.0])
@pytest.mark.parametrize("near", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("outcome", [Binary(), CUT, Counts()], ids=str)
def test_nodes_find_what_lies_beyond_them(outcome, near, far):
    y = torch.tensor([1.0, 0.0, 1.0, 1.0]).double()
    results = Results(y, 5 + 0 * y, torch.zeros(4).long())
    m, v = torch.tensor([0.4]).double(), torch.tensor([2.0]).double()
    begin = torch.tensor([far]).double(), torch.tensor([near]).double()
    found = torch.cat(outcome.derivatives(results, m, v, begin))
    f = m + v.sqrt() * torch.linspace(-12, 12, 40_001, dtype=torch.float64)
    log = outcome.log_probability(f.unsqueeze(-1), y, 5 + 0 * y).sum(dim=-1)
    log = log - 0.5 * (f - m).square() / v
    total = log.logsumexp(dim=0) + math.log(24 / 40_000) - 0.5 * math.log(2 * math.pi)
    share = (log - log.logsumexp(dim=0)).exp()
    first = share @ f
    second = share @ (f - first).square()
    wanted = torch.stack((total, (first - m[0]) / v[0], (second / v[0] - 1) / v[0]))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_fit_to_repeated_grades_finds_their_cutpoints():
    # Its first step makes a grade 0.02 wide beside one of 16.
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(40, 2, generator=generator, dtype=torch.float64)
    rows = torch.randint(0, 40, (500,), generator=generator)
    noise = torch.randn(500, generator=generator, dtype=torch.float64)
    outcome = Ordinal(4, at_least=2, cutpoints=(-1.5, 0.0, 1.5))
    y = outcome.grade(4 * points[rows, 0] - 2 + noise)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    asked = Ordinal(4, at_least=2)
    prior = fit_latent_gp(points[rows], y, 0 * y + 1, bounds, asked)
    assert prior.outcome is not None
    assert prior.outcome.cutpoints == pytest.approx((-1.5, 0.0, 1.5), abs=0.2)
