r"""Outcomes and their Gaussian posteriors, against sampling of their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch import Tensor

from botorch_lse.models import latent
from botorch_lse.models.expectation import _WithSites, residuals_ahead, sites_of
from botorch_lse.models.fitted import additive_kernel
from botorch_lse.models.latent import (
    CRISP,
    GUESSED,
    NARROW,
    PLAIN,
    WIDE_SPREAD,
    _Fit,
    fit_latent_gp,
    latent_kernel,
    rising_kernel,
)
from botorch_lse.models.marginal import term_of
from botorch_lse.models.outcomes import Binary, Counts, Results
from botorch_lse.models.rising import RisingMean, Slope
from tests.models.slopes import assert_gradient

DRAWS = 400_000
OUTCOMES = [Binary(), Binary(guess=0.5, lapse=0.04), Binary(lapse=0.1)]
PAIRS = [(0.7, 0.9), (-1.4, 0.3), (0.0, 4.0), (2.0, 0.05)]


def normal(mean: float, variance: float, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    half = torch.randn(DRAWS // 2, generator=generator, dtype=torch.float64)
    return mean + math.sqrt(variance) * torch.cat((half, -half))


def number(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_moments_of_the_probability_are_those_of_draws(outcome, mean, variance):
    p = outcome.value(normal(mean, variance))
    found, spread = outcome.moments(number(mean), number(variance))
    assert float(found) == pytest.approx(float(p.mean()), abs=4 / math.sqrt(DRAWS))
    assert float(spread) == pytest.approx(float(p.std()), abs=4 / math.sqrt(DRAWS))


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_pseudo_noise_takes_off_what_an_answer_takes_off(outcome, mean, variance):
    f = normal(mean, variance)
    p = outcome.value(f)
    expected = 0.0
    for weight in (p, 1 - p):  # the variance of the mean after the answer
        after = float((weight * f).mean() / weight.mean())
        expected += float(weight.mean()) * (after - mean) ** 2
    noise = float(outcome.pseudo_noise(number(mean), number(variance)))
    assert variance**2 / (variance + noise) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize("trials", [1, 6, 300])
def test_derivatives_are_those_of_the_log_probability(outcome, trials):
    y, n = number(round(0.8 * trials) / trials), number(float(trials))
    mean, variance, step = number(0.4), number(0.8), 1e-4
    near = outcome.similar(y, n)

    def log(at: Tensor) -> Tensor:
        x = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
        f = at + variance.sqrt() * x
        told = outcome.log_probability(f, y, n)
        found = (told - 0.5 * x.square()).logsumexp(dim=0) + math.log(18 / 20_000)
        return found - 0.5 * math.log(2 * math.pi)

    product = 1 / (1 / near[1] + 1 / variance)
    centre = product * (near[0] / near[1] + mean / variance)
    found = outcome.derivatives(Results(y, n), mean, variance, (centre, product))
    ahead, here, before = log(mean + step), log(mean), log(mean - step)
    assert float(found[0]) == pytest.approx(float(here), abs=1e-4)
    slope = float((ahead - before) / (2 * step))
    assert float(found[1]) == pytest.approx(slope, rel=1e-3)
    curve = float((ahead - 2 * here + before) / step**2)
    assert float(found[2]) == pytest.approx(curve, rel=1e-2, abs=1e-4)


def covariance(X: Tensor, lengthscale: float = 0.3) -> Tensor:
    gaps = (X.unsqueeze(0) - X.unsqueeze(1)) / lengthscale
    return 2.0 * (-0.5 * gaps.square()).exp() + 1e-9 * torch.eye(len(X)).double()


@pytest.mark.some(3)
@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize("trials", [1, 8])
def test_posterior_and_evidence_are_those_of_weighted_draws(outcome, trials):
    X = torch.tensor([0.1, 0.25, 0.7], dtype=torch.float64)
    K, mean, n = covariance(X), torch.full((3,), 0.3).double(), trials + 0 * X
    y = torch.tensor([trials, trials // 2, 0]).double() / trials
    generator = torch.Generator().manual_seed(1)
    white = torch.randn(DRAWS, 3, generator=generator, dtype=torch.float64)
    f = mean + white @ torch.linalg.cholesky(K).mT
    log = outcome.log_probability(f, y, n).sum(dim=-1)
    weight = (log - log.logsumexp(dim=0)).exp().unsqueeze(-1)
    exact = (weight * f).sum(dim=0)
    spread = (weight * (f - exact).square()).sum(dim=0).sqrt()

    sites = sites_of(K, mean, outcome, Results(y, n))
    inverse = torch.linalg.inv(K + sites.noise.diag())
    found = mean + K @ inverse @ (sites.value - mean)
    sigma = (K - K @ inverse @ K).diagonal().sqrt()
    # Expectation propagation is an approximation: tolerances are its known quality.
    assert torch.allclose(found, exact, atol=0.03)
    assert torch.allclose(sigma, spread, rtol=0.06)
    evidence = float(log.logsumexp(dim=0)) - math.log(DRAWS)
    assert sites.log_evidence == pytest.approx(evidence, abs=0.04)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_slopes_are_the_gradient_of_the_evidence(outcome):
    generator = torch.Generator().manual_seed(2)
    X = torch.rand(25, generator=generator, dtype=torch.float64)
    p = outcome.value(4 * X - 2)
    y = (torch.rand(25, generator=generator, dtype=torch.float64) < p).double()

    def sites(lengthscale: float, mean: float):
        at = torch.full_like(X, mean)
        K, results = covariance(X, lengthscale), Results(y, 0 * y + 1)
        return sites_of(K, at, outcome, results, least=None)

    found, step = sites(0.3, 0.1), 1e-3
    difference = covariance(X, 0.3 + step) - covariance(X, 0.3 - step)
    by_length = (
        sites(0.3 + step, 0.1).log_evidence - sites(0.3 - step, 0.1).log_evidence
    )
    expected = pytest.approx(by_length, rel=1e-3, abs=1e-6)
    assert float((found.slopes * difference).sum()) == expected
    by_mean = sites(0.3, 0.1 + step).log_evidence - sites(0.3, 0.1 - step).log_evidence
    assert float(found.residual.sum()) == pytest.approx(by_mean / (2 * step), rel=1e-3)


def test_trials_told_together_are_trials_told_one_by_one():
    X = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    K, mean, outcome = covariance(X), 0 * X, Binary()
    rows = torch.tensor([0] * 5 + [1] * 5 + [2] * 5)
    each = torch.tensor([1, 1, 1, 1, 0] + [1, 1, 0, 0, 0] + [0] * 5).double()
    one_by_one = Results(each, 0 * each + 1)
    alone = sites_of(K[rows][:, rows], mean[rows], outcome, one_by_one)
    shares = torch.tensor([0.8, 0.4, 0.0]).double()
    joint = sites_of(K, mean, outcome, Results(shares, 5 + 0 * X))
    found = []
    for sites, at in ((alone, rows), (joint, torch.arange(3))):
        inner = K[at][:, at] + sites.noise.diag()
        found.append(K[:, at] @ torch.linalg.solve(inner, sites.value))
    assert torch.allclose(*found, atol=0.03)


@pytest.mark.parametrize("priors", [PLAIN, CRISP], ids=["plain", "crisp"])
@pytest.mark.parametrize("words", [None, {2: 3}], ids=["numbers", "words"])
def test_gradient_of_the_fit_is_that_of_its_loss(words, priors):
    generator = torch.Generator().manual_seed(3)
    F = torch.rand(20, 3, generator=generator, dtype=torch.float64)
    if words:
        F[:, 2] = (3 * F[:, 2]).floor()
    y = (F[:, 0] + F[:, 1] > 1).double()
    kernel = latent_kernel(5 if words else 3, words, True, priors)
    fit = _Fit(F, Results(y, 0 * y + 1), Binary(guess=0.1), kernel, [1], priors)
    assert_gradient(fit)


@pytest.mark.parametrize("priors", [PLAIN, NARROW, GUESSED, CRISP])
@pytest.mark.parametrize("given", [(4,), (4, {}, False), (1,), (5, {3: 2})])
def test_lengthscales_expect_variation_whatever_the_kernel(given, priors):
    given = (*given, *(None, True)[len(given) - 1 :], priors)
    parts = [k for k in latent_kernel(*given).modules() if is_of_numbers(k)]
    assert parts
    for part in parts:
        prior, root = part.lengthscale_prior, part.lengthscale.numel() ** 0.5
        assert float(prior.loc.exp()) == pytest.approx(priors.lengthscale * root)
        assert float(prior.scale) == pytest.approx(priors.spread)
        start = part.lengthscale.unique().tolist()
        assert start == pytest.approx([priors.lengthscale * root])


def test_scales_keep_their_medians_and_may_vary_less_than_those_of_numbers():
    plain, latent = additive_kernel(4), latent_kernel(4, priors=NARROW)
    for one, other in zip(plain.kernels, latent.kernels, strict=True):
        assert other.outputscale_prior.loc == one.outputscale_prior.loc
        assert float(other.outputscale_prior.scale) == pytest.approx(0.7)
        assert other.outputscale == one.outputscale


@pytest.mark.parametrize(
    ("outcome", "rising", "priors"),
    [
        (Binary(), (), PLAIN),
        (Counts(), (), PLAIN),
        (Binary(), (1,), NARROW),
        (Binary(guess=0.5), (), GUESSED),
        (Binary(lapse=0.04), (1,), GUESSED),
    ],
    ids=str,
)
def test_priors_are_those_of_outcomes_and_rising_inputs(outcome, rising, priors):
    X = torch.rand(20, 2, generator=torch.Generator().manual_seed(4)).double()
    y, bounds = (X.sum(dim=-1) > 1).double(), torch.tensor([[0.0, 0], [1, 1]]).double()
    prior = fit_latent_gp(X, y, 0 * y + 1, bounds, outcome, rising=rising)
    assert float(prior.scale) == priors.unit
    parts = [k for k in prior.covar_module.modules() if is_of_numbers(k)]
    medians = {round(float(p.lengthscale_prior.loc.exp()), 6) for p in parts}
    assert priors.lengthscale in medians  # of one input
    spreads = {round(float(p.lengthscale_prior.scale), 6) for p in parts}
    assert spreads == {priors.spread}


def dense(kernel, X) -> Tensor:
    r"""The covariances of points, which its diagonal and its term must agree with."""
    term = term_of(kernel, X)
    assert term is not None
    with torch.no_grad():
        found = kernel(X).to_dense()
        torch.testing.assert_close(kernel(X, diag=True), found.diagonal())
        torch.testing.assert_close(term.value(), found)
    return found


def matern(X) -> Tensor:
    r"""The covariances of a function of all inputs, at its median lengthscale."""
    r = 5**0.5 * torch.cdist(X, X) / (0.38 * X.shape[1] ** 0.5)
    return (1 + r + r.square() / 3) * torch.exp(-r)


@pytest.mark.parametrize("is_sum", [True, False])
def test_lines_have_heights_and_slopes_that_depend_on_the_other_inputs(is_sum):
    X = torch.rand(9, 4, generator=torch.Generator().manual_seed(2)).double()
    every, others, x = matern(X), matern(X[:, [0, 2, 3]]), X[:, 1] - 0.5
    lines = x.outer(x)
    wanted = every + lines
    if is_sum:
        wanted = 0.15 * every + 0.1 * others + lines + 0.25 * others * lines
        wanted = wanted + 0.2 / 3 * sum(matern(X[:, [c]]) for c in (0, 2, 3))
    kernel = rising_kernel(4, {}, [1], is_sum)
    torch.testing.assert_close(dense(kernel, X), wanted)
    kernel.outputscale = 3.0  # one factor says how steep all is
    torch.testing.assert_close(dense(kernel, X), 3 * wanted)


def test_a_line_of_one_input_has_one_slope():
    X = torch.rand(9, 1, generator=torch.Generator().manual_seed(2)).double()
    x, found = X.view(-1) - 0.5, dense(rising_kernel(1, {}, [0]), X)
    torch.testing.assert_close(found, 0.15 * matern(X) + x.outer(x))


def test_several_inputs_share_a_rise_and_its_slopes():
    X = torch.rand(9, 2, generator=torch.Generator().manual_seed(2)).double()
    lines = [x.outer(x) for x in (X - 0.5).T]
    turns = [matern(X[:, [1]]) * lines[0], matern(X[:, [0]]) * lines[1]]
    wanted = 0.15 * matern(X) + (sum(lines) + 0.25 * sum(turns)) / 2**0.5
    torch.testing.assert_close(dense(rising_kernel(2, {}, [0, 1]), X), wanted)
    corners = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    for columns in ([0], [0, 1]):
        low, high = RisingMean(columns, rise=3.0)(corners)
        assert float(high - low) == pytest.approx(3.0)


@pytest.mark.parametrize("is_sum", [True, False])
@pytest.mark.parametrize("guess", [0.0, 0.5])
def test_the_mean_rises_with_the_factor_unless_answers_are_guessed(is_sum, guess):
    X = torch.rand(60, 2, generator=torch.Generator().manual_seed(6)).double()
    y, bounds = (X[:, 0] > 0.5).double(), torch.tensor([[0.0, 0], [1, 1]]).double()
    given = bounds, Binary(guess=guess), None, is_sum, (0,)
    fitted = fit_latent_gp(X, y, 0 * y + 1, *given)
    factor = float(fitted.covar_module.outputscale)
    assert factor > 1.5  # a step is steep
    low, high = fitted.mean_module(bounds)
    wanted = GUESSED.rise if guess else NARROW.rise * factor**0.5
    assert float(high - low) == pytest.approx(wanted)


@pytest.mark.parametrize("is_sum", [True, False])
def test_scales_of_heights_spread_more_than_those_of_lines(is_sum):
    kernel = rising_kernel(3, {}, [0], is_sum)
    spreads: dict[bool, set[float]] = {True: set(), False: set()}
    for term in kernel.base_kernel.kernels:
        is_line = any(isinstance(part, Slope) for part in term.modules())
        spreads[is_line].add(float(term.outputscale_prior.scale))
    assert float(kernel.outputscale_prior.scale) == NARROW.factor_spread
    of_height = WIDE_SPREAD if is_sum else NARROW.scale_spread
    assert spreads == {True: {NARROW.scale_spread}, False: {of_height}}


@pytest.mark.parametrize(
    ("words", "rising"),
    [(None, [1]), (None, [0, 2]), ({2: 3}, [0]), ({0: 3}, [1])],
    ids=str,
)
def test_gradient_of_a_fit_with_lines_is_that_of_its_loss(words, rising):
    F = torch.rand(20, 3, generator=torch.Generator().manual_seed(3)).double()
    for column in words or ():
        F[:, column] = (3 * F[:, column]).floor()
    y = (F[:, 0] + F[:, 1] > 1).double()
    kernel = rising_kernel(5 if words else 3, words or {}, rising)
    fit = _Fit(F, Results(y, 0 * y + 1), Binary(lapse=0.1), kernel, rising, NARROW)
    assert_gradient(fit)


def is_of_numbers(kernel) -> bool:
    return isinstance(kernel, (MaternKernel, RBFKernel))


def test_a_fit_finds_which_input_matters():
    generator = torch.Generator().manual_seed(4)
    X = torch.rand(120, 2, generator=generator, dtype=torch.float64)
    outcome = Binary()
    p = outcome.value(3 * torch.sin(6 * X[:, 0]))
    y = (torch.rand(120, generator=generator, dtype=torch.float64) < p).double()
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    prior = fit_latent_gp(X, y, 0 * y + 1, bounds, outcome, is_sum=False)
    lengthscale = prior.covar_module.base_kernel.lengthscale[0]
    assert float(lengthscale[1]) > 3 * float(lengthscale[0])


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_residuals_ahead_are_standard_normal_under_the_model(outcome):
    X = torch.linspace(0, 1, 12, dtype=torch.float64)
    K, mean, found = covariance(X), 0.2 + 0 * X, []
    generator = torch.Generator().manual_seed(5)
    L = torch.linalg.cholesky(K)
    n = torch.tensor([1.0, 1, 1, 3, 1, 1, 10, 1, 1, 1, 2, 1]).double()
    for _ in range(150):
        f = mean + L @ torch.randn(12, generator=generator, dtype=torch.float64)
        y = torch.binomial(n, outcome.value(f), generator=generator) / n
        found.append(residuals_ahead(K, mean, outcome, y, n, generator))
    z = torch.stack(found)
    error = 4 / math.sqrt(z.numel())
    assert float(z.mean()) == pytest.approx(0.0, abs=error)
    assert float(z.var()) == pytest.approx(1.0, abs=1.5 * error)
    neighbours = (z[:, 1:] * z[:, :-1]).mean()
    assert float(neighbours) == pytest.approx(0.0, abs=error)


@pytest.mark.parametrize(
    "precision",
    [
        [0.5, 2.0, 1e-6, 3.0, 40.0],
        [0.5, 2.0, 1e6, 3.0, 1e4],
        [0.5, 2.0, 1e-12, 3.0, 40.0],  # tells next to nothing
        [0.5, 2.0, -0.1, 3.0, 40.0],  # as guesses may
    ],
    ids=["usual", "precise", "tiny", "negative"],
)
def test_processes_with_sites_are_those_of_dense_inverses(precision):
    X = torch.tensor([0.0, 0.1, 0.5, 0.6, 1.0], dtype=torch.float64)
    K, T = covariance(X, 0.1), torch.tensor(precision, dtype=torch.float64)
    found, eye = _WithSites(K, T), torch.eye(5).to(K)
    assert found.is_fast == (min(precision) >= 1e-6)
    wanted = torch.linalg.inv(torch.linalg.inv(K) + T.diag())
    torch.testing.assert_close(found.variance, wanted.diagonal(), rtol=1e-7, atol=0)
    inverse = T.diag() @ torch.linalg.inv(eye + K * T)
    torch.testing.assert_close(found.inverse, inverse, rtol=1e-7, atol=1e-9)
    determinant = torch.linalg.det(eye + K * T).abs().log()
    torch.testing.assert_close(found.log_determinant, determinant)
    r = T * torch.arange(1, 6).to(K)  # of values that all differ from the mean
    x = found.residual(r)
    torch.testing.assert_close(x + T * (K @ x), r, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("size", "lengthscale", "mean", "seed"),
    [(6, 1.5, -4.0, 3), (8, 0.5, -4.0, 1), (8, 0.8, -5.0, 1), (8, 1.5, -4.0, 1)],
)
def test_sites_of_answers_that_contradict_a_mean_settle(size, lengthscale, mean, seed):
    line = torch.linspace(0, 1, size, dtype=torch.float64)
    X = torch.cartesian_prod(line, line)
    outcome, generator = Binary(guess=0.5, lapse=0.04), torch.Generator()
    latent_values = 2 * (seed % 3 - 1) + 2 * torch.sin(4 * X.sum(dim=-1) + seed)
    draw = {"generator": generator.manual_seed(seed), "dtype": X.dtype}
    drawn = torch.rand(2, len(X), **draw)
    y = (drawn < outcome.value(latent_values)).double().mean(dim=0)
    kernel = MaternKernel(nu=2.5).double()
    kernel.lengthscale = lengthscale
    K, at = kernel(X).to_dense().detach(), torch.full_like(y, mean)
    results = Results(y, torch.full_like(y, 2))
    sites = sites_of(K, at, outcome, results, None, None, 1e-9)
    assert math.isfinite(sites.log_evidence)
    posterior = K - K @ sites.inverse @ K
    assert float(torch.linalg.eigvalsh(posterior)[0]) > -1e-9
    # The moments are those with each point's results in place of its site.
    near, centre, cavity = sites.near, *sites.without
    _, slope, curve = outcome.derivatives(results, centre, cavity, near)
    exact = centre + cavity * slope, cavity + cavity.square() * curve
    torch.testing.assert_close(near, exact, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(posterior.diagonal(), near[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("trials", [10, 1_000, 1_000_000])
@pytest.mark.parametrize("outcome", [Binary(), Counts()], ids=str)
def test_results_of_many_trials_have_their_exact_evidence(outcome, trials):
    # Points that know nothing of each other are integrated one by one.
    p, variance = 4, 2.0
    f = torch.linspace(-1.5, 1.5, p, dtype=torch.float64)
    y, n = outcome.value(f), torch.full_like(f, trials)
    K, mean = variance * torch.eye(p).double(), torch.full_like(f, 0.1)
    sites = sites_of(K, mean, outcome, Results(y, n), least=None)
    exact = 0.0
    for i in range(p):
        width = 40 / math.sqrt(trials)
        at = f[i] + torch.linspace(-width, width, 400_001, dtype=torch.float64)
        log = outcome.log_probability(at.unsqueeze(-1), y[i : i + 1], n[i : i + 1])
        log = log.squeeze(-1) - (at - 0.1).square() / (2 * variance)
        log = log.logsumexp(dim=0) + math.log(2 * width / 400_000)
        exact += float(log) - 0.5 * math.log(2 * math.pi * variance)
    assert sites.log_evidence == pytest.approx(exact, abs=5e-3)
    near, _ = sites.near
    torch.testing.assert_close(mean + K @ sites.residual, near, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_fit_to_counts_ends_where_little_is_left_to_gain(scale, monkeypatch):
    ends = []
    monkeypatch.setattr(
        latent,
        "remembered_point",
        lambda asked, kernel, told, n, search: ends.append(search()) or ends[-1],
    )
    X = torch.rand(40, 2, generator=torch.Generator().manual_seed(6)).double()
    y = (scale * (2 + (6 * X).sin().sum(dim=-1))).round().clamp_min(0.0)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    fit_latent_gp(X, y, 0 * y + 1, bounds, Counts())
    fit = _Fit(X, Results(y, 0 * y + 1), Counts(), latent_kernel(2))
    fit.settled = 1e-6
    first, _ = fit(fit.start)
    assert first == 0.0
    end = np.array(ends[0])
    loss, _ = fit(end)
    assert loss < -1.0
    best = scipy.optimize.minimize(fit, end, jac=True, bounds=fit.bounds)
    assert loss - float(best.fun) < 0.05


@pytest.mark.parametrize("of_logs", [False, True])
def test_priors_of_a_fit_are_those_of_its_kernel(of_logs):
    F = torch.rand(12, 2, generator=torch.Generator().manual_seed(7)).double()
    kernel = latent_kernel(2)
    results = Results((F.sum(dim=-1) > 1).double(), 1 + 0 * F[:, 0])
    fit = _Fit(F, results, Binary(), kernel, (), PLAIN._replace(of_logs=of_logs))
    fit.settled = 1e-9

    def of_prior(x) -> float:
        loss, _ = fit(x)
        listed = kernel.named_priors()
        log = sum(p.log_prob(of(at)).sum().item() for _, at, p, of, _ in listed)
        # The density of a logarithm is that of the number, times the number.
        return loss + fit.sites.log_evidence + log + of_logs * float(x[:-1].sum())

    moved = fit.start + 0.2 * np.sin(np.arange(len(fit.start)))
    moved[-1] = fit.start[-1]  # the mean, whose prior is another one
    assert of_prior(fit.start) == pytest.approx(of_prior(moved), abs=1e-6)


def test_certain_answers_stay_finite():
    outcome, far = Binary(), torch.tensor([-40.0, 40.0], dtype=torch.float64)
    variance = torch.full_like(far, 0.5)
    assert bool(outcome.pseudo_noise(far, variance).isfinite().all())
    mean, spread = outcome.moments(far, variance)
    assert mean.tolist() == pytest.approx([0.0, 1.0])
    assert bool((spread >= 0).all())
    assert outcome.latent(torch.tensor([0.0, 1.0])).tolist() == [-8.0, 8.0]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"guess": -0.1}, "Expected `guess` in"),
        ({"lapse": 1.0}, "Expected `lapse` in"),
        ({"guess": 0.6, "lapse": 0.4}, "less than 1 together"),
    ],
)
def test_rates_are_checked(given, match):
    with pytest.raises(ValueError, match=match):
        Binary(**given)
