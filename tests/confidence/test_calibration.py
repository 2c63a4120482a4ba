r"""Standardised residuals against brute force, and the test of them by simulation."""

from __future__ import annotations

import math

import pytest
import scipy
import torch

from botorch_lse.confidence.calibration import (
    FALSE_ALARM,
    GROWTH,
    Calibration,
    growing_noise,
    left_out,
)
from tests.reference.dense_gp import DenseGP


def calibration(ahead: torch.Tensor) -> Calibration:
    return Calibration(ahead, ahead, torch.zeros_like(ahead))


def test_left_out_residuals_are_those_of_models_without_the_value() -> None:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(12, 2, generator=generator).double()
    y = torch.randn(12, generator=generator).double()
    noise = 0.1 + torch.rand(12, generator=generator).double()
    gp = DenseGP(lengthscale=(0.3, 0.5), outputscale=2.0)
    K = torch.from_numpy(gp.covariance(X.numpy(), X.numpy())) + noise.diag()
    L = torch.linalg.cholesky(K)
    whitened = torch.linalg.solve_triangular(L, y[:, None], upper=False)[:, 0]
    found, sigma = left_out(L, whitened)
    own = Calibration.of(found, L, whitened, y)
    for i in range(12):
        others = torch.arange(12) != i
        weights = torch.linalg.solve(K[others][:, others], K[others, i])
        spread = K[i, i] - weights @ K[others, i]
        want = (y[i] - weights @ y[others]) / spread.sqrt()
        torch.testing.assert_close(found[i], want, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(sigma[i], spread.sqrt(), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(own.predicted[i], weights @ y[others])


def test_a_model_that_is_right_is_reported_rarely() -> None:
    n_runs, generator = 4000, torch.Generator().manual_seed(0)
    z = torch.randn(n_runs, 300, generator=generator, dtype=torch.float64)
    failed = sum(calibration(row).has_failed for row in z)
    limit = FALSE_ALARM + 4 * math.sqrt(FALSE_ALARM / n_runs)
    assert failed / n_runs <= limit


@pytest.mark.parametrize(("factor", "n"), [(1.5, 300), (2.0, 80), (5.0, 12)])
def test_predictions_that_are_too_narrow_are_found_soon(factor, n) -> None:
    generator = torch.Generator().manual_seed(1)
    z = factor * torch.randn(200, n, generator=generator, dtype=torch.float64)
    failed = sum(calibration(row).has_failed for row in z)
    assert failed >= 0.8 * 200


def test_what_was_put_right_by_later_data_is_forgiven() -> None:
    generator = torch.Generator().manual_seed(2)
    first = 6 * torch.randn(20, generator=generator).double()
    later = torch.randn(40, generator=generator).double()
    assert calibration(first).has_failed
    assert not calibration(torch.cat((first, later))).has_failed
    assert calibration(torch.cat((later, first))).has_failed


def test_coverage_is_the_share_within_the_interval() -> None:
    z = torch.linspace(-4, 4, 801, dtype=torch.float64)
    want = float((z[400:].abs() <= 1.959963984540054).double().mean())
    assert calibration(z).coverage() == pytest.approx(want)
    with pytest.raises(ValueError, match="Nothing was predicted"):
        calibration(z[:0]).coverage()


def test_what_is_said_tells_failure_from_success() -> None:
    good = calibration(torch.tensor([0.1, -1.0, 0.5]).double())
    bad = calibration(torch.full((5,), 9.0).double())
    assert "100 % of the last 2 values" in str(good)
    for last, where in ((0.1, "in"), (9.0, "outside of")):
        one = str(calibration(torch.tensor([last]).double()))
        assert f"The last value lay {where} its 95 % interval" in one
    assert "too narrow" not in str(good)
    assert "too narrow" in str(bad)
    assert "Nothing was predicted" in str(calibration(torch.zeros(0).double()))


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_a_level_out_of_range_is_refused(level) -> None:
    with pytest.raises(ValueError, match="`level`"):
        calibration(torch.zeros(3).double()).coverage(level)


# --- noise that grows with the value --------------------------------------------------


def errors(n, seed, growth=1.0):
    r"""Predictions between 0 and 1, and errors ``growth`` times larger at 1."""
    generator = torch.Generator().manual_seed(seed)
    predicted = torch.rand(n, generator=generator, dtype=torch.float64)
    draws = torch.randn(n, generator=generator, dtype=torch.float64)
    return predicted, growth**predicted * draws, torch.ones(n).double()


def test_growing_noise_is_a_rank_correlation_that_matters() -> None:
    n_found = 0
    for seed in range(200):
        predicted, error, shares = errors(40, seed, growth=8.0)
        ranks = scipy.stats.rankdata(error.abs())
        scores = scipy.stats.halfnorm.ppf(ranks / 41)
        rho = scipy.stats.pearsonr(scores, scipy.stats.rankdata(predicted)).statistic
        is_large = predicted > predicted.median()
        halves = [
            float(error[at].square().mean()) ** 0.5 for at in (~is_large, is_large)
        ]
        wanted = rho * 39**0.5 > GROWTH and halves[1] > 1.5 * halves[0]
        found = growing_noise(predicted, error, shares)
        assert found == (pytest.approx(tuple(halves)) if wanted else None)
        n_found += found is not None
    assert 50 < n_found < 150  # both answers were looked at


@pytest.mark.slow
def test_growing_noise_is_found_and_no_other() -> None:
    found = [growing_noise(*errors(80, seed, growth=10.0)) for seed in range(100)]
    assert sum(one is not None for one in found) >= 95
    # By 2000 draws at 5e-4 more than 5 alarms have a probability of 6e-4.
    same = [growing_noise(*errors(60, seed)) for seed in range(2000)]
    assert sum(one is not None for one in same) <= 5
    falls = [growing_noise(*errors(60, seed, growth=0.1)) for seed in range(100)]
    assert falls == [None] * 100


def test_errors_that_tell_of_the_function_tell_of_no_noise() -> None:
    predicted, error, shares = errors(60, seed=0, growth=10.0)
    assert growing_noise(predicted, error, shares) is not None
    assert growing_noise(predicted, error, 0.4 * shares) is None
    few = torch.arange(60) < 19
    assert growing_noise(predicted, error, torch.where(few, 1.0, 0.4).double()) is None
