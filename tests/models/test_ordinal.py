r"""Grades as outcomes, against sums, integrals and draws of their definition."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from scipy.stats import norm
from torch import Tensor

from botorch_lse import Observations, Pool
from botorch_lse.models.expectation import residuals_ahead, sites_of
from botorch_lse.models.latent import _Fit, fit_latent_gp, latent_kernel
from botorch_lse.models.outcomes import Outcome, Results
from botorch_lse.strategies import Above, Binary, GaussianProcess, Ordinal, Strategy
from tests.models.slopes import assert_gradient

OUTCOMES = [
    Ordinal(4, at_least=2, cutpoints=(-1.2, 0.0, 0.4)),
    Ordinal(5, at_least=1, cutpoints=(0.3, 0.35, 2.0, 9.0)),
    Ordinal(3, at_least=2),
]
PAIRS = [(0.7, 0.9), (-1.4, 0.3), (0.0, 4.0), (2.0, 0.05)]
CUTS = (-2.0, 0.0, 1.5)
DRAWS = 400_000


def number(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)


def grid(mean: float, variance: float) -> tuple[Tensor, Tensor]:
    r"""Latent values and their probabilities, on a fine grid."""
    f = mean + variance**0.5 * torch.linspace(-9, 9, 6001, dtype=torch.float64)
    share = (-0.5 * (f - mean).square() / variance).exp()
    return f, share / share.sum()


def chances(outcome: Ordinal, f: Tensor) -> Tensor:
    r"""The probabilities of the grades at latent values (``grades x len(f)``)."""
    cuts = outcome.cutpoints or (-2.0, 0.0)  # of three grades before a fit
    at_least = [norm.cdf(f - cut) for cut in cuts]
    edges = [0 * f.numpy() + 1, *at_least, 0 * f.numpy()]
    return torch.stack([torch.from_numpy(a - b) for a, b in pairwise(edges)])


def drawn(outcome: Ordinal, f: Tensor, generator: torch.Generator) -> Tensor:
    r"""A grade at each latent value, by noise of its own."""
    noise = torch.randn(f.shape, generator=generator, dtype=torch.float64)
    assert outcome.cutpoints is not None
    return sum((f + noise > cut).double() for cut in outcome.cutpoints)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_grades_have_the_probabilities_of_the_definition(outcome):
    f = torch.linspace(-5, 5, 41, dtype=torch.float64)
    wanted, trials = chances(outcome, f), torch.ones(41).double()
    for k in range(outcome.grades):
        found = outcome.log_probability(f, torch.full_like(f, k), trials).exp()
        torch.testing.assert_close(found, wanted[k], rtol=1e-9, atol=1e-14)
    reached = wanted[outcome.at_least :].sum(dim=0)
    torch.testing.assert_close(outcome.value(f), reached)
    torch.testing.assert_close(outcome.latent(reached), f)


def test_latent_values_are_graded_by_the_cutpoints_below_them():
    outcome = Ordinal(3, at_least=1, cutpoints=(-1.0, 2.0))
    f = torch.tensor([-3.0, -0.5, 1.9, 2.1, 40.0]).double()
    assert outcome.grade(f).tolist() == [0, 1, 1, 2, 2]


def test_two_grades_are_no_and_yes():
    m, v = torch.tensor([0.3, -2.0, 9.0]).double(), torch.tensor([0.1, 1, 5]).double()
    y, ones = torch.tensor([1.0, 0, 1]).double(), torch.ones(3).double()
    grades, answers = Ordinal(2, at_least=1), Binary()
    for name, given in (
        ("derivatives", (Results(y, ones), m, v, (m, v))),
        ("log_probability", (m, y, ones)),
        ("moments", (m, v)),
        ("pseudo_noise", (m, v)),
    ):
        found, wanted = (getattr(one, name)(*given) for one in (grades, answers))
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)
    found, wanted = (one.quantiles(y, ones, m, v) for one in (grades, answers))
    torch.testing.assert_close(found, wanted, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_moments_and_quantiles_are_those_of_the_definition(outcome, mean, variance):
    f, share = grid(mean, variance)
    each = chances(outcome, f)
    p = each[outcome.at_least :].sum(dim=0)
    expected = (share * p).sum()
    spread = (share * (p - expected).square()).sum().sqrt()
    found = outcome.moments(number(mean), number(variance))
    wanted = torch.stack((expected, spread))
    torch.testing.assert_close(torch.cat(found), wanted, rtol=1e-4, atol=1e-6)
    y = torch.arange(outcome.grades).double()
    low, high = outcome.quantiles(y, 0 * y + 1, number(mean), number(variance))
    wanted = each @ share
    torch.testing.assert_close(high - low, wanted, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(high, wanted.cumsum(dim=0), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_the_posterior_of_one_grade_has_its_moments(outcome, mean, variance):
    f, share = grid(mean, variance)
    for k in range(outcome.grades):
        weight = share * chances(outcome, f)[k]
        evidence = weight.sum()
        m = (weight * f).sum() / evidence
        v = (weight * (f - m).square()).sum() / evidence
        y, K = number(k), number(variance).view(1, 1)
        site = sites_of(K, number(mean), outcome, Results(y, number(1)))
        left = 1 / (1 / variance + site.precision)
        found = left * (mean / variance + site.weighted)
        # Of what is as good as impossible the grid has few digits.
        close = {"rtol": 1e-4, "atol": 1e-4} if evidence > 1e-9 else {"rtol": 0.1}
        torch.testing.assert_close(found[0], m, **({"atol": 0.1} | close))
        torch.testing.assert_close(left[0], v, **({"atol": 0.1} | close))
        log = torch.tensor(site.log_evidence).double()
        torch.testing.assert_close(log, evidence.log(), **({"atol": 0.1} | close))


def log_under(outcome: Outcome, y: Tensor, mean: Tensor, variance: Tensor) -> float:
    results, near = Results(y, 0 * y + 1), (mean, variance)
    return float(outcome.derivatives(results, mean, variance, near)[0])


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_derivatives_are_those_of_the_log_probability(outcome, mean, variance):
    m, v, step = number(mean), number(variance), 1e-4
    for k in range(outcome.grades):
        y = number(k)
        _, slope, curve = outcome.derivatives(Results(y, number(1)), m, v, (m, v))
        ahead, here, before = (
            log_under(outcome, y, m + s, v) for s in (step, 0, -step)
        )
        assert float(slope) == pytest.approx((ahead - before) / 2 / step, rel=1e-5)
        second = (ahead - 2 * here + before) / step**2
        assert float(curve) == pytest.approx(second, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("at_least", [1, 2, 3, 4])
def test_derivatives_by_distances_are_differences(at_least):
    asked, gaps = Ordinal(5, at_least=at_least), [0.4, 1.1, 0.7]
    y = torch.tensor([0.0, 1, 2, 3, 4, 2]).double()
    m, v = torch.linspace(-2, 2, 6).double(), torch.linspace(0.1, 3, 6).double()
    assert len(asked.unknowns) == len(gaps)
    results = Results(y, 0 * y + 1)
    outcome = asked.with_parameters(gaps)
    _, slope, curve = outcome.derivatives(results, m, v, (m, v))
    near = m + v * slope, v + v.square() * curve  # the moments given the grades
    found = outcome.by_parameters(results, m, v, near)

    def total(i: int, step: float) -> float:
        moved = [gap + step * (i == j) for j, gap in enumerate(gaps)]
        outcome = asked.with_parameters(moved)
        return float(outcome.derivatives(results, m, v, (m, v))[0].sum())

    for i in range(3):
        slope = (total(i, 1e-5) - total(i, -1e-5)) / 2e-5
        assert float(found[i]) == pytest.approx(slope, rel=1e-6)


@pytest.mark.some(5)
@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize(("mean", "variance"), PAIRS)
def test_pseudo_noise_takes_off_what_a_grade_takes_off(outcome, mean, variance):
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(DRAWS // 2, generator=generator, dtype=torch.float64)
    f = mean + math.sqrt(variance) * torch.cat((half, -half))
    expected = 0.0
    for weight in chances(outcome, f):  # the variance of the mean after the grade
        if float(weight.mean()) > 1e-12:
            after = float((weight * f).mean() / weight.mean())
            expected += float(weight.mean()) * (after - mean) ** 2
    noise = float(outcome.pseudo_noise(number(mean), number(variance)))
    assert variance**2 / (variance + noise) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("outcome", OUTCOMES[:2], ids=str)
def test_grades_tell_more_than_their_side_alone(outcome):
    cut = outcome.cutpoints[outcome.at_least - 1]
    for mean, variance in PAIRS:
        m, v = number(mean), number(variance)
        side = Binary().pseudo_noise(m - cut, v)
        assert float(outcome.pseudo_noise(m, v)) < float(side)


def covariance(X: Tensor, lengthscale: float = 0.3) -> Tensor:
    gaps = (X.unsqueeze(0) - X.unsqueeze(1)) / lengthscale
    return 2.0 * (-0.5 * gaps.square()).exp() + 1e-9 * torch.eye(len(X)).double()


@pytest.mark.parametrize("outcome", OUTCOMES[:2], ids=str)
def test_posterior_and_evidence_are_those_of_weighted_draws(outcome):
    X = torch.tensor([0.1, 0.25, 0.7], dtype=torch.float64)
    K, mean, n = covariance(X), torch.full((3,), 0.3).double(), 0 * X + 1
    y = torch.tensor([1.0, 2.0, 0.0]).double()
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


@pytest.mark.parametrize("at_least", [1, 3])
def test_gradient_of_the_fit_is_that_of_its_loss(at_least):
    generator = torch.Generator().manual_seed(3)
    F = torch.rand(24, 2, generator=generator, dtype=torch.float64)
    y = (4 * F[:, 0]).floor()
    asked = Ordinal(4, at_least=at_least)
    fit = _Fit(F, Results(y, 0 * y + 1), asked, latent_kernel(2), [0])
    assert_gradient(fit)


@pytest.mark.some(1)
@pytest.mark.parametrize("at_least", [1, 2, 3])
def test_cutpoints_are_learnt(at_least):
    truth = Ordinal(4, at_least=at_least, cutpoints=CUTS)
    generator = torch.Generator().manual_seed(4)
    X = torch.rand(250, 1, generator=generator, dtype=torch.float64)
    f = 3 * torch.sin(7 * X[:, 0])
    y = drawn(truth, f, generator)
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    asked = Ordinal(4, at_least=at_least)
    prior = fit_latent_gp(X, y, 0 * y + 1, bounds, asked)
    assert isinstance(prior.outcome, Ordinal)
    found = torch.tensor(prior.outcome.cutpoints).double()
    assert float(found[at_least - 1]) == 0.0
    wanted = torch.tensor(CUTS).double().diff()
    # Of 250 grades the standard errors are 0.15 to 0.25.
    assert torch.allclose(found.diff(), wanted, atol=0.5)
    assert prior.outcome.grades == 4


def test_a_search_that_begins_with_a_long_step_settles():
    # With a bound of 1000 the first step of this fit was to distances of hundreds.
    generator = torch.Generator().manual_seed(8)
    X = torch.rand(60, 3, generator=generator, dtype=torch.float64)
    f = 5 * torch.sin(4 * X).prod(dim=-1)
    y = drawn(Ordinal(4, at_least=2, cutpoints=CUTS), f, generator)
    bounds = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.float64)
    prior = fit_latent_gp(X, y, 0 * y + 1, bounds, Ordinal(4, at_least=2))
    assert max(map(abs, prior.outcome.cutpoints)) < 5


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("outcome", OUTCOMES[:2], ids=str)
def test_residuals_ahead_are_standard_normal_under_the_model(outcome):
    X = torch.linspace(0, 1, 12, dtype=torch.float64)
    K, mean, n, found = covariance(X), 0.2 + 0 * X, 0 * X + 1, []
    generator = torch.Generator().manual_seed(5)
    L = torch.linalg.cholesky(K)
    for _ in range(150):
        f = mean + L @ torch.randn(12, generator=generator, dtype=torch.float64)
        y = drawn(outcome, f, generator)
        found.append(residuals_ahead(K, mean, outcome, y, n, generator))
    z = torch.stack(found)
    error = 4 / math.sqrt(z.numel())
    assert float(z.mean()) == pytest.approx(0.0, abs=error)
    assert float(z.var()) == pytest.approx(1.0, abs=1.5 * error)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_certain_grades_stay_finite(outcome):
    far = torch.tensor([-60.0, 60.0], dtype=torch.float64)
    variance = torch.full_like(far, 0.5)
    assert bool(outcome.pseudo_noise(far, variance).isfinite().all())
    for k in range(outcome.grades):
        y = torch.full_like(far, k)
        given = Results(y, 0 * y + 1), far, variance, (far, variance)
        for part in (*outcome.derivatives(*given), outcome.by_parameters(*given)):
            assert bool(part.isfinite().all())


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"grades": 1, "at_least": 1}, "`grades` to be at least 2"),
        ({"grades": 4, "at_least": 0}, "`at_least` to be at least 1"),
        ({"grades": 4, "at_least": 4}, "one of the grades 1 to 3"),
        ({"grades": 4, "at_least": 2.5}, "`at_least` to be a whole number"),
        ({"grades": 3, "at_least": 1, "cutpoints": (1.0, 0.0)}, "to rise by at least"),
        ({"grades": 3, "at_least": 1, "cutpoints": (0.0, math.inf)}, "finite"),
    ],
)
def test_grades_and_cutpoints_are_checked(given, match):
    with pytest.raises(ValueError, match=match):
        Ordinal(**given)


def test_cutpoints_are_one_fewer_than_grades():
    with pytest.raises(BotorchTensorDimensionError, match=r"per boundary of two .*2"):
        Ordinal(3, at_least=1, cutpoints=(0.0,))
    assert Ordinal(3, at_least=1, cutpoints=[0, 1]).cutpoints == (0.0, 1.0)
    assert {Ordinal(3, at_least=1, cutpoints=[0, 1])}  # it has a hash, as Ax needs


def line(n: int = 31) -> Pool:
    return Pool(torch.linspace(0, 1, n, dtype=torch.float64).unsqueeze(-1))


@pytest.mark.parametrize(
    ("told", "match"),
    [
        (Observations([0], [4.0]), "to be a grade, 0 to 3, with `outcome=Ordinal"),
        (Observations([0], [-1.0]), "to be a grade, 0 to 3"),
        (Observations([0], [1.5]), "to be a grade, 0 to 3"),
        (Observations([0], [2.0], counts=[3]), "Tell each grade by itself"),
        (Observations([0], [2.0], yvar=[0.1]), "`yvar` to be left out"),
    ],
)
def test_results_that_are_no_grades_are_refused(told, match):
    model = GaussianProcess(outcome=Ordinal(4, at_least=2))
    strategy = Strategy(line(), Above(0.75), model=model)
    with pytest.raises(ValueError, match=match):
        strategy.tell(strategy.init(seed=0), told)
    strategy.tell(strategy.init(seed=0), Observations([0, 0, 1], [2.0, 3.0, 0.0]))


def test_levels_that_are_grades_are_refused_and_the_remedy_works():
    model = GaussianProcess(outcome=Ordinal(4, at_least=2))
    with pytest.raises(ValueError, match=r"Above 0\.5 are the rows where a grade of 2"):
        Strategy(line(), Above(1.5), model=model)
    Strategy(line(), Above(0.5), model=model)
