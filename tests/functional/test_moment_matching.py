r"""Limits of values as Gaussian values, against numerical integration."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_lse.functional.limits import moment_matched

MEAN = torch.tensor([0.3, -0.1], dtype=torch.float64)
COVARIANCE = torch.tensor([[1.0, 0.7], [0.7, 1.5]], dtype=torch.float64)
NOISE = torch.tensor([0.02, 0.3], dtype=torch.float64)


def after(
    mean: Tensor, covariance: Tensor, told: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    r"""Moments once Gaussian values are known, by the textbook formula."""
    rows, y, noise = told
    own = covariance[rows]
    gain = torch.linalg.solve(own[:, rows] + noise.diag(), own).T
    return mean + gain @ (y - mean[rows]), covariance - gain @ own


def integrated(
    mean: Tensor,
    covariance: Tensor,
    noise: Tensor,
    rows: list[int],
    limits: Tensor,
    sign: Tensor,
) -> tuple[Tensor, Tensor]:
    r"""Moments of two Gaussian numbers whose noisy values lie beyond limits."""
    grid = torch.linspace(-12.0, 12.0, 1201, dtype=torch.float64)
    f = torch.cartesian_prod(grid, grid)
    d = f - mean
    log_p = -0.5 * (d @ torch.linalg.inv(covariance) * d).sum(-1)
    for row, c, s, v in zip(rows, limits, sign, noise, strict=True):
        log_p += torch.special.log_ndtr(s * (c - f[:, row]) / v.sqrt())
    p = (log_p - log_p.max()).exp()
    p /= p.sum()
    found = p @ f
    return found, ((f - found).T * p) @ (f - found)


@pytest.mark.some(4)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("limit", [-2.0, -0.1, 0.5, 3.0])
def test_with_one_limit_the_moments_of_all_rows_are_exact(limit, sign):
    limits, signs = torch.tensor([limit]).double(), torch.tensor([sign]).double()
    told = moment_matched(
        MEAN[:1], COVARIANCE[:1, :1], NOISE[:1], limits=limits, sign=signs
    )
    found = after(MEAN, COVARIANCE, told)
    wanted = integrated(MEAN, COVARIANCE, NOISE[:1], [0], limits, signs)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.some(4)
@pytest.mark.parametrize("signs", [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)])
@pytest.mark.parametrize("limits", [(-1.0, -1.0), (0.2, 0.4), (2.0, -3.0)])
def test_with_two_limits_the_moments_are_near(limits, signs):
    c, s = torch.tensor(limits).double(), torch.tensor(signs).double()
    told = moment_matched(MEAN, COVARIANCE, NOISE, c, s)
    mean, covariance = after(MEAN, COVARIANCE, told)
    wanted, wanted_covariance = integrated(MEAN, COVARIANCE, NOISE, [0, 1], c, s)
    # Known to err by little where limits are correlated; counted in deviations.
    scale = wanted_covariance.diagonal().sqrt()
    assert bool(((mean - wanted).abs() <= 0.03 * scale).all())
    error = (covariance - wanted_covariance) / torch.outer(scale, scale)
    assert bool((error.abs() <= 0.06).all())


def test_a_limit_that_says_nothing_is_left_out_and_one_far_away_stays_finite():
    c, s = torch.tensor([9.0, -30.0]).double(), torch.ones(2).double()
    told = moment_matched(MEAN, 1e-2 * COVARIANCE, NOISE, c, s)
    assert told[0].tolist() == [1]
    mean, covariance = after(MEAN, 1e-2 * COVARIANCE, told)
    assert bool(torch.isfinite(mean).all())
    assert float(mean[1]) < -1.0
    assert bool((torch.linalg.eigvalsh(covariance) > 0).all())


def test_units_and_direction_of_values_do_not_matter():
    c, s = torch.tensor([-0.5, 0.7]).double(), torch.tensor([1.0, -1.0]).double()
    rows, y, noise = moment_matched(MEAN, COVARIANCE, NOISE, c, s)
    turned = moment_matched(-9 * MEAN, 81 * COVARIANCE, 81 * NOISE, -9 * c, -s)
    assert rows.tolist() == turned[0].tolist()
    torch.testing.assert_close(turned[1], -9 * y)
    torch.testing.assert_close(turned[2], 81 * noise)
