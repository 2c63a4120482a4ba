r"""Scores of one Gaussian value, against integrals of what they are defined as."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from botorch_lse.functional.scores import (
    CERTAIN,
    best_ones,
    contour_entropy,
    expected_feasibility,
    first_best,
    ranjan_improvement,
    u_function,
)

LEVEL = 21.0
SCORES = [u_function, expected_feasibility, ranjan_improvement, contour_entropy]
BANDS = [(expected_feasibility, 1), (ranjan_improvement, 2)]
every = pytest.mark.parametrize("score", SCORES)
far = pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 2.0, 5.0, 12.0, 30.0])
both_types = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def at(score, t, sigma, **options):
    r"""A score ``t`` deviations above the level, which is 0 to round nothing."""
    moments = (torch.tensor([v], dtype=torch.float64) for v in (t * sigma, sigma))
    return score(*moments, 0.0, **options).item()


def in_a_band(power, t, sigma, alpha):
    r"""``E max(a^power - |f|^power, 0)`` for ``a = alpha sigma``, by its definition."""
    a, mean = alpha * sigma, t * sigma

    def weighed(y):
        return (a**power - abs(y) ** power) * norm.pdf(y, mean, sigma)

    # Far from the level all the mass is at the near end of the band.
    nearer = [a - sigma / (1 + t) * k for k in (3, 10, 30)]
    points = [0.0, *(y for y in nearer if y > -a)]
    return quad(weighed, -a, a, points=points, epsabs=0, epsrel=1e-12, limit=500)[0]


@far
@pytest.mark.parametrize("sigma", [3.0, 1e-4])
@pytest.mark.parametrize("alpha", [0.5, 1.96, 2.0, 4.0])
@pytest.mark.parametrize(("score", "power"), BANDS)
def test_scores_of_a_band_equal_their_integrals(score, power, alpha, sigma, t):
    want = in_a_band(power, t, sigma, alpha)
    for signed in (t, -t):
        found = at(score, signed, sigma, alpha=alpha)
        # The normal distribution 30 deviations off has fewer digits.
        assert found == pytest.approx(want, rel=1e-9 if t < 20 else 1e-4)


@pytest.mark.parametrize(("score", "power"), BANDS)
def test_scores_of_a_band_equal_monte_carlo_of_their_definitions(score, power):
    generator = torch.Generator().manual_seed(0)
    mean, sigma = torch.tensor([20.0, 24.0]).double(), torch.tensor([0.7, 2.5]).double()
    f = mean + sigma * torch.randn(400_000, 2, generator=generator).double()
    alpha = {1: 2.0, 2: 1.96}[power]  # the defaults
    deep = (alpha * sigma) ** power - (f - LEVEL).abs() ** power
    drawn = deep.clamp_min(0.0)
    error = drawn.std(dim=0) / math.sqrt(len(drawn))
    found = score(mean, sigma, LEVEL)
    assert ((found - drawn.mean(dim=0)).abs() <= 4 * error).all()


@pytest.mark.parametrize("mean", [20.0, 21.0, 23.5])
@pytest.mark.parametrize("sigma", [0.4, 5.0])
def test_expected_feasibility_is_the_formula_of_the_paper(mean, sigma):
    d, a = mean - LEVEL, 2 * sigma
    u, low, high = -d / sigma, (-a - d) / sigma, (a - d) / sigma
    cdf, pdf = norm.cdf, norm.pdf
    want = (
        d * (2 * cdf(u) - cdf(low) - cdf(high))
        - sigma * (2 * pdf(u) - pdf(low) - pdf(high))
        + a * (cdf(high) - cdf(low))
    )
    moments = (torch.tensor([v], dtype=torch.float64) for v in (mean, sigma))
    found = expected_feasibility(*moments, LEVEL).item()
    assert found == pytest.approx(want, rel=1e-10)


@far
def test_entropy_is_that_of_the_two_sides(t):
    p, rest = norm.cdf(-t), norm.sf(-t)
    want = -(p * norm.logcdf(-t) + rest * math.log1p(-p))
    for signed in (t, -t):
        assert at(contour_entropy, signed, 3.0) == pytest.approx(want, rel=1e-10)


@far
def test_u_is_the_probability_of_the_wrong_side(t):
    u = at(u_function, -t, 3.0)
    assert u == pytest.approx(-t)
    assert norm.cdf(u) == pytest.approx(norm.sf(t))


@every
@both_types
def test_scores_fall_with_the_distance_from_the_level(score, dtype):
    distance = torch.linspace(0, 10, 101).to(dtype)
    values = score(distance, torch.ones_like(distance), 0.0)
    assert values.dtype == dtype
    assert (values.diff() < 0).all()
    if score is not u_function:
        assert (values > 0).all()


@every
@both_types
def test_values_and_gradients_are_finite(score, dtype):
    distance = torch.tensor([0.0, 1e-30, 1e-6, 1.0, 1e6], dtype=dtype)
    size = torch.tensor([0.0, 1e-30, 1e-9, 1e-3, 1.0, 1e3], dtype=dtype)
    mean, sigma = torch.cartesian_prod(distance, size).unbind(dim=-1)
    mean, sigma = mean.clone().requires_grad_(), sigma.clone().requires_grad_()
    value = score(mean, sigma, 0.0)
    value.sum().backward()
    for found in (value, mean.grad, sigma.grad):
        assert torch.isfinite(found).all()


@pytest.mark.parametrize("mean", [LEVEL - 1, LEVEL + 1e-3])
def test_what_is_certain_is_worth_nothing(mean):
    mean = torch.tensor([mean]).double()
    for score in (expected_feasibility, ranjan_improvement, contour_entropy):
        assert score(mean, torch.zeros(1).double(), LEVEL).item() == 0.0
    assert u_function(mean, torch.zeros(1).double(), LEVEL).item() == -CERTAIN


@pytest.mark.parametrize("sigma", [0.0, 1e-6, 1.0])
def test_on_the_level_scores_are_what_they_say(sigma):
    assert at(u_function, 0.0, sigma) == 0.0
    assert at(contour_entropy, 0.0, sigma) == pytest.approx(math.log(2))
    inside = 2 * norm.cdf(2) - 1
    hat = 2 * inside - 2 * (norm.pdf(0) - norm.pdf(2))
    assert at(expected_feasibility, 0.0, sigma) == pytest.approx(sigma * hat)
    parabola = 3 * inside + 4 * norm.pdf(2)
    found = at(ranjan_improvement, 0.0, sigma, alpha=2.0)
    assert found == pytest.approx(sigma**2 * parabola)


@every
def test_gradients_are_right(score):
    mean = torch.linspace(-6, 6, 13).double().add(0.05).requires_grad_()
    sigma = torch.linspace(0.5, 2, 13).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda m, s: score(m, s, 0.0), (mean, sigma))


@pytest.mark.parametrize(
    ("score", "power"), [(u_function, 0), *BANDS, (contour_entropy, 0)]
)
def test_units_of_y_change_scores_by_their_own(score, power):
    mean, sigma = torch.linspace(18, 25, 9).double(), torch.linspace(0.1, 3, 9).double()
    other = score(100 * mean + 7, 100 * sigma, 100 * LEVEL + 7)
    torch.testing.assert_close(other, 100**power * score(mean, sigma, LEVEL))


def test_the_best_row_is_one_that_may_be_chosen():
    eligible = torch.tensor([False, True, True])
    for scores in ([9.0, 1.0, 2.0], [-math.inf] * 3, [math.inf, -math.inf, -math.inf]):
        row = first_best(torch.tensor(scores), eligible, 1.0)
        assert row == (2 if scores[2] > scores[1] else 1)
    assert first_best(torch.zeros(3), torch.zeros(3, dtype=torch.bool), 1.0) is None


def test_the_first_of_equal_scores_are_taken_whatever_rounding_says():
    scores = torch.tensor([3.0, 1.0, 2.0, 2.0 + 1e-13, 2.0, 0.0])
    assert best_ones(scores, 3).tolist() == [0, 2, 3]
    assert best_ones(-scores, 3).tolist() == [1, 2, 5]
    assert best_ones(scores, 9).tolist() == list(range(6))


def test_infinite_scores_are_the_best_ones():
    inf = torch.inf
    scores = torch.tensor([1.0, inf, -inf, inf, inf])
    assert best_ones(scores, 2).tolist() == [1, 3]
    assert best_ones(scores, 4).tolist() == [0, 1, 3, 4]
    assert best_ones(torch.tensor([-inf, -inf, 0.0]), 2).tolist() == [0, 2]
