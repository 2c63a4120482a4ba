r"""What observations take off a loss, against its definition and Owen's function."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import quad, trapezoid
from scipy.special import entr, ndtr, owens_t
from scipy.stats import norm
from torch import Tensor

from botorch_lse.functional.lookahead import (
    Removal,
    expected_misclassification,
    mean_absolute,
    mutual_information,
    targeted_variance,
    truncated_variance,
    values_to_come,
    volume_changes,
    volume_series,
)

VARIANCE = 4.0
"""Of every target here; losses of the side do not depend on it. A power of 2, so that a
share of it is no other number: close to the whole, roots make 1e-16 of it 1e-8."""
SIDES = {
    "product": (expected_misclassification, lambda p, q: p * q),
    "entropy": (mutual_information, lambda p, q: entr(p) + entr(q)),
}
NAMES = list(SIDES)
RATIOS = torch.tensor([-8.0, -3.1, -1.0, -1e-6, 0.0, 0.02, 0.4, 1.7, 5.0]).double()
SHARES = torch.tensor([0.0, 1e-10, 1e-4, 0.02, 0.3, 0.7, 0.98, 1 - 1e-8, 1.0]).double()
NEAR_0 = torch.logspace(-14, -2, 49, dtype=torch.float64)
NEAR_1 = 1 - torch.logspace(-9, -2, 29, dtype=torch.float64)
DENSE = torch.cat((NEAR_0, NEAR_1, torch.linspace(0, 1, 101, dtype=torch.float64)))
DENSE = DENSE.sort().values


def removal(name: str, a: Tensor) -> Removal:
    return SIDES[name][0](a * VARIANCE**0.5, torch.full_like(a, VARIANCE))


def now(name: str, a: float) -> float:
    return float(SIDES[name][1](ndtr(a), ndtr(-a)))


def afterwards(name: str, a: float, rho: float) -> float:
    r"""The expected loss after the observation, by its definition."""
    if rho in (0.0, 1.0):
        return now(name, a) if rho == 0.0 else 0.0

    def density(x: float) -> float:
        # Of the ratio to come, which matters only where the loss is not negligible.
        return now(name, x) * norm.pdf(x, a / math.sqrt(1 - rho), spread)

    spread = math.sqrt(rho / (1 - rho))
    middle = a / math.sqrt(1 - rho)
    low, high = max(middle - 9 * spread, -9.0), min(middle + 9 * spread, 9.0)
    if low >= high:
        return 0.0
    cuts = sorted({low, high, *(c for c in (0.0, middle) if low < c < high)})
    return sum(
        quad(density, i, j, epsabs=1e-13, limit=200)[0] for i, j in pairwise(cuts)
    )


# --- reference ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_removals_are_those_of_the_definition(name: str) -> None:
    found = removal(name, RATIOS).of(SHARES.unsqueeze(-1) * VARIANCE)
    for i, rho in enumerate(SHARES.tolist()):
        for j, a in enumerate(RATIOS.tolist()):
            wanted = now(name, a) - afterwards(name, a, rho)
            assert float(found[i, j]) == pytest.approx(wanted, abs=1e-10)


def test_wrong_sides_are_owens_function() -> None:
    a, rho = np.linspace(-9, 9, 145), DENSE.unsqueeze(-1).numpy()
    given = torch.from_numpy(rho * VARIANCE)
    found = removal("product", torch.from_numpy(a)).of(given)
    k = np.sqrt((1 - rho) / (1 + rho))
    wanted = 2 * owens_t(a, 1.0) - 2 * owens_t(a, k)
    assert np.abs(found.numpy() - wanted).max() <= 2e-11


def test_the_expected_product_is_a_bivariate_probability() -> None:
    # Independent of every derivation: draws of the truth and of two second opinions.
    draws, a, rho = 400_000, 0.6, 0.35
    generator = torch.Generator().manual_seed(0)
    z, one, two = torch.randn(3, draws, generator=generator).double()
    mean = a + math.sqrt(rho) * z
    left = math.sqrt(1 - rho)
    is_split = (mean + left * one > 0) & (mean + left * two <= 0)
    found = now("product", a) - float(
        removal("product", torch.tensor([a]).double()).of(torch.tensor(rho * VARIANCE))
    )
    error = float(is_split.double().std()) / math.sqrt(draws)
    assert float(is_split.double().mean()) == pytest.approx(found, abs=4 * error)


@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_variances_are_weighed_by_the_density_of_the_level(tau: float) -> None:
    distance, variance = (
        torch.tensor([0.0, -1.2, 3.0]).double(),
        torch.tensor([1, 2, 4]),
    )
    gain = torch.tensor([[0.5, 0.1, 3.0], [0.0, 0.0, 0.0]]).double()
    density = norm.pdf(0.0, distance.numpy(), (variance + tau**2).sqrt().numpy())
    found = targeted_variance(distance, variance, tau).of(gain)
    torch.testing.assert_close(found, gain * torch.from_numpy(density))


def test_variances_are_truncated_where_they_are_small_enough() -> None:
    variance, gain = torch.tensor([4.0, 1.0, 0.2]), torch.tensor([3.9, 0.1, 0.1])
    found = truncated_variance(variance, 9.0, 1.5).of(gain)
    torch.testing.assert_close(found, torch.tensor([36.0 - 2.25, 0.9, 0.0]))


# --- volume ---------------------------------------------------------------------------


def volume_world(n: int, closest: float) -> tuple[Tensor, Tensor, Tensor]:
    r"""Distances and variances of targets, and how candidates move their means."""
    generator = torch.Generator().manual_seed(n)
    draw = {"generator": generator, "dtype": torch.float64}
    variance = 0.5 + torch.rand(n, **draw)
    distance = torch.randn(n, **draw)
    rho = closest * (2 * torch.rand(6, n, **draw) - 1)
    rho[:, 0] = closest
    return distance, variance, rho * variance.sqrt()


def brute_force(distance: Tensor, variance: Tensor, moves: Tensor) -> float:
    r"""The expected absolute change from 200,000 values of one observation."""
    z = np.linspace(-9, 9, 200_001)[:, None]
    total = 0.0
    for d, v, w in zip(*(x.tolist() for x in (distance, variance, moves)), strict=True):
        left = math.sqrt(max(v - w**2, 1e-300))
        total = total + ndtr((d + w * z) / left) - ndtr(d / math.sqrt(v))
    return float(trapezoid(np.abs(total) * norm.pdf(z), z, axis=0).item())


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("closest", "rtol", "atol"),
    [(0.3, 1e-4, 0.0), (0.8, 2e-4, 0.0), (0.99, 1e-3, 0.0), (1.0, 0.0, 0.015)],
)
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_volume_changes_are_those_of_brute_force(n, closest, rtol, atol) -> None:
    distance, variance, moves = volume_world(n, closest)
    values = values_to_come(1)
    each = volume_changes(distance, variance, moves.unsqueeze(-2), values)
    found = mean_absolute(each, values)
    wanted = [brute_force(distance, variance, row) for row in moves]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("closest", [0.5, 0.75, 0.9, 1.0])
def test_the_series_of_a_volume_change_is_the_direct_sum(closest) -> None:
    distance, variance, moves = volume_world(40, closest)
    distance[3], variance[5], moves[:, 5] = 60.0, 0.0, 0.0  # certain targets
    values = values_to_come(1)
    wanted = volume_changes(distance, variance, moves.unsqueeze(-2), values)
    found = volume_series(distance, variance).of(moves)
    density = torch.from_numpy(norm.pdf(values[:, 0]))
    torch.testing.assert_close(density * found, density * wanted, atol=1e-6, rtol=0)


def test_values_of_a_batch_have_the_mean_of_those_of_its_points() -> None:
    # Two observations of which the second tells nothing are one.
    distance, variance, moves = volume_world(7, 0.9)
    both = torch.stack((moves, torch.zeros_like(moves)), dim=-2)
    one, two = values_to_come(1), values_to_come(2)
    wanted = mean_absolute(
        volume_changes(distance, variance, moves.unsqueeze(-2), one), one
    )
    found = mean_absolute(volume_changes(distance, variance, both, two), two)
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=0)


# --- properties and extremes ----------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_more_is_removed_where_more_is_learnt(name: str) -> None:
    a = torch.linspace(-9, 9, 73).double()
    found = removal(name, a).of(DENSE.unsqueeze(-1) * VARIANCE)
    assert float(found.diff(dim=0).min()) >= -1e-15
    nothing, everything = found[0], found[-1]
    present = torch.tensor([now(name, x) for x in a.tolist()], dtype=torch.float64)
    torch.testing.assert_close(nothing, torch.zeros_like(a), atol=1e-13, rtol=0)
    torch.testing.assert_close(everything, present, atol=2e-11, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_both_sides_of_the_level_are_alike(name: str) -> None:
    gain = SHARES.unsqueeze(-1) * VARIANCE
    assert torch.equal(removal(name, RATIOS).of(gain), removal(name, -RATIOS).of(gain))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_small_differences(name: str) -> None:
    a = torch.tensor([-4.0, -0.7, 0.05, 1.3]).double().requires_grad_()
    gain = (torch.tensor([0.02, 0.3, 0.6, 0.97]).double() * VARIANCE).requires_grad_()

    def found(a: Tensor, gain: Tensor) -> Tensor:
        return removal(name, a).of(gain)

    assert torch.autograd.gradcheck(found, (a, gain), eps=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rho", [0.0, 1e-20, 1e-6, 1 - 1e-15, 1.0, 1.1])
def test_gradients_are_finite(name: str, rho: float) -> None:
    a = torch.tensor([-40.0, -9.0, -1e-9, 0.0, 1.0]).double().requires_grad_()
    gain = torch.full_like(a, rho * VARIANCE).requires_grad_()
    removal(name, a).of(gain).sum().backward()
    assert bool(torch.isfinite(a.grad).all() and torch.isfinite(gain.grad).all())


@pytest.mark.parametrize("make", [targeted_variance, *(s[0] for s in SIDES.values())])
def test_a_target_that_is_known_has_nothing_to_remove(make) -> None:
    zero = torch.zeros(3).double()
    found = make(torch.tensor([-1.0, 0.0, 1.0]).double(), zero).of(zero)
    torch.testing.assert_close(found, zero, atol=1e-15, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_targets_far_from_the_level_still_have_an_order(name: str) -> None:
    a = torch.tensor([7.0, 8.5, 10.0]).double()
    found = removal(name, a).of(torch.tensor([[0.2], [0.5]]).double() * VARIANCE)
    assert bool((found.diff(dim=1) < 0).all())
    assert bool((found[1] > found[0]).all())


# --- sums -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_those_of_the_single_removals(name: str) -> None:
    a = torch.cat((RATIOS, torch.linspace(-9, 9, 80).double()))
    shares = torch.cat((SHARES, DENSE[::9])).unsqueeze(-1)
    of = removal(name, a)
    gain = shares * VARIANCE * torch.linspace(0.3, 1.0, len(a)).double()
    wanted = of.of(gain).sum(dim=-1)
    # The error of either is below 1e-10 for each target.
    torch.testing.assert_close(of.summed(gain), wanted, rtol=0, atol=1e-10 * len(a))


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_pairs_apart_are_those_of_the_definition(name: str) -> None:
    # Of one target each, below and above the share at which formulas change.
    for a in (0.0, 0.4, -1.7, 3.1):
        of = removal(name, torch.tensor([a], dtype=torch.float64))
        for rho in (1e-3, 0.03, 0.199, 0.201, 0.6):
            gain = torch.tensor([[rho * VARIANCE]], dtype=torch.float64)
            found = of.summed(gain)
            wanted = now(name, a) - afterwards(name, a, rho)
            assert float(found) == pytest.approx(wanted, abs=3e-11)


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_little_keep_their_digits(name: str) -> None:
    # What is removed in proportion to the reduction stays so, down to rounding.
    a = torch.tensor([0.5, 1.5]).double()
    gain = torch.tensor([[1e-9], [1e-11]], dtype=torch.float64) * VARIANCE
    found = removal(name, a).summed(gain.expand(2, 2).contiguous())
    assert float(found[0] / found[1]) == pytest.approx(100.0, rel=1e-7)


# --- the loss now ---------------------------------------------------------------------


@pytest.mark.parametrize("weight", [None, 2.5])
@pytest.mark.parametrize("name", NAMES)
def test_the_loss_now_is_what_learning_a_target_exactly_removes(name, weight) -> None:
    a = torch.tensor([0.0, 0.4, -1.7, 6.0]).double()
    variance = torch.full_like(a, VARIANCE)
    of = removal(name, a)
    if weight is not None:
        of = of.weighted(torch.full_like(a, weight))
    wanted = of.of(variance)
    torch.testing.assert_close(of.whole(variance), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("is_square", [False, True])
def test_a_change_of_volume_is_sampled_by_its_mean_square(is_square: bool) -> None:
    a = torch.tensor([0.0, 0.4, -1.7]).double()
    variance = torch.full_like(a, VARIANCE)
    series = volume_series(a * VARIANCE**0.5, variance, is_square)
    wanted = [float(ndtr(x) * ndtr(-x)) for x in a.tolist()]
    weighted = series.weighted(torch.full_like(a, 3.0))
    assert series.whole(variance).tolist() == pytest.approx(wanted, rel=1e-12)
    assert (weighted.whole(variance) / 3).tolist() == pytest.approx(wanted, rel=1e-12)
