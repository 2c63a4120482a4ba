"""How much is above: the share of a pool, and every interval that is stated of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binom, norm

from botorch_lse import Classification, Pool
from botorch_lse.data.excursion_volume import (
    Content,
    difference_limits,
    in_quadrature,
    proportion_limits,
    sampling_limits,
)
from tests.covering import more_in_full

X = torch.arange(5.0).unsqueeze(-1)
SIDES = torch.tensor([1, 1, 0, 0, -1], dtype=torch.int8)
P = torch.tensor([0.99, 0.9, 0.7, 0.2, 0.01]).double()


def answer(pool: Pool) -> Classification:
    ends = torch.arange(5.0).double()
    return Classification(
        SIDES == 1, SIDES == -1, SIDES == 0, ends, ends, ends, ends, P, "So.", pool=pool
    )


# --- decided rows ---------------------------------------------------------------------


def test_undecided_rows_are_between_the_limits() -> None:
    found = answer(Pool(X)).content()
    assert (found.lower, found.upper) == pytest.approx((0.4, 0.8))
    assert found.estimate == pytest.approx(0.6)  # 0.7 is likelier above, 0.2 below
    assert found.expected == pytest.approx((1 + 1 + 0.7 + 0.2) / 5)
    assert found.population == (found.lower, found.upper)
    assert found.sampling_error == 0
    assert found.guarantee == "So."


def test_rows_count_by_their_weights() -> None:
    found = answer(Pool(X, weights=[1, 2, 3, 4, 10])).content()
    assert (found.lower, found.upper) == pytest.approx((3 / 20, 10 / 20))
    assert found.estimate == pytest.approx(6 / 20)
    assert found.expected == pytest.approx((3 + 0.7 * 3 + 0.2 * 4) / 20)
    assert found.effective_size == pytest.approx(20**2 / 130)


def test_every_choice_of_undecided_rows_is_within_the_limits() -> None:
    pool = Pool(X, weights=[1, 2, 3, 4, 10], total=40)
    found = answer(pool).content()
    for third in (0, 1):
        for fourth in (0, 1):
            true = torch.tensor([1, 1, third, fourth, 0]).double()
            content = float((pool.mass * true).sum())
            assert found.lower - 1e-12 <= content <= found.upper + 1e-12


def test_the_sentence_has_every_interval_and_its_source() -> None:
    words = str(answer(Pool(X, is_sample=True)).content())
    assert "0.6 of the distribution is above" in words
    assert "by decided rows between 0.4 and 0.8" in words
    assert "effective size 5" in words
    assert "by the model" not in words


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_confidence_is_a_probability(confidence: float) -> None:
    with pytest.raises(ValueError, match="`confidence`"):
        answer(Pool(X)).content(confidence)


# --- the pool as a sample -------------------------------------------------------------


def test_limits_of_equal_rows_are_those_of_clopper_and_pearson() -> None:
    N, hits = 400, 7
    mass = torch.full((N,), 1 / N, dtype=torch.float64)
    low, high = sampling_limits(mass, torch.arange(N) < hits, True, 0.9)
    # By their definition: what is as extreme has the probability 5 % at each end.
    assert binom.sf(hits - 1, N, low) == pytest.approx(0.05, rel=1e-6)
    assert binom.cdf(hits, N, high) == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("hits", [0, 300])
def test_limits_of_none_and_of_all_rows(hits: int) -> None:
    mass = torch.full((300,), 1 / 300, dtype=torch.float64)
    low, high = sampling_limits(mass, torch.arange(300) < hits, True, 0.95)
    least = 1 - 0.025 ** (1 / 300)
    wanted = (0.0, least) if hits == 0 else (1 - least, 1.0)
    assert (low, high) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.some(1)
@pytest.mark.parametrize("method", ["monte_carlo", "sobol"])
@pytest.mark.parametrize("shift", [None, 2.0])
@more_in_full("runs", 150, 1000)
def test_limits_hold_for_pools_that_are_drawn_again(
    method: str, shift, runs: int
) -> None:
    truth, missed, errors = norm.sf(2), 0, []
    for seed in range(runs):
        pool = Pool.from_distribution(
            [norm()],
            256 if shift else 1024,
            seed=seed,
            method=method,
            sampling=None if shift is None else [norm(shift, 1)],
        )
        member = pool.X[:, 0] > 2
        low, high = sampling_limits(pool.mass, member, pool.total is None, 0.95)
        missed += not low <= truth <= high
        errors.append(float(pool.mass[member].sum()) - truth)
    # At most 5 % miss it: more do so with probability 1e-3.
    assert missed <= binom.isf(1e-3, runs, 0.05)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(runs)


@pytest.mark.slow
def test_the_stated_standard_error_is_that_of_many_pools() -> None:
    for total in (True, False):
        found, stated = [], []
        for seed in range(200):
            pool = Pool.from_distribution(
                [norm()], 400, seed=seed, method="monte_carlo", sampling=[norm(1, 1.5)]
            )
            if not total:  # divided by the sum of the weights instead
                pool = Pool(pool.X, weights=pool.weights, is_sample=True)
            side = torch.where(pool.X[:, 0] > 1, 1, -1)
            content = Content.of(
                pool.mass,
                side,
                (side > 0).double(),
                "",
                is_sample=True,
                adds_up=pool.total is None,
            )
            found.append(content.estimate)
            stated.append(content.sampling_error)
        # The standard deviation of 200 numbers is known to 5 %.
        assert np.mean(stated) == pytest.approx(np.std(found), rel=0.2)


def test_a_sample_without_any_hit_knows_nothing_of_the_number() -> None:
    mass, side = torch.full((100,), 0.01).double(), -torch.ones(100)
    found = [
        Content.of(mass, side, torch.zeros(100).double(), "", is_sample=sampled)
        for sampled in (True, False)
    ]
    assert [content.variation for content in found] == [float("inf"), 0.0]


def test_no_limit_of_a_probability_is_above_one() -> None:
    mass = torch.full((100,), 0.0101).double()
    none, half = torch.zeros(100), torch.full((100,), 0.5).double()
    found = Content.of(mass, none, half, "", is_sample=True, adds_up=False)
    assert found.population[1] == 1.0
    all_above = Content.of(mass, none + 1, half, "", is_sample=True, adds_up=False)
    wider = replace(all_above, posterior=(1.005, 1.01), widened=(0.9, 1.1))
    wider = replace(wider, design=(1.001, 1.002))
    for content in (found, all_above, wider):
        for name in ("estimate", "expected", "lower", "upper"):
            assert 0 <= getattr(content, name) <= 1.0
        for name in ("population", "sampled", "posterior", "design", "widened"):
            low, high = getattr(content, name) or (0.0, 0.0)
            assert 0 <= low <= high <= 1.0
        assert content.combined is None or content.combined[1] <= 1.0
    # Rounding alone: ten tenths of a weighted pool.
    each = Pool(torch.arange(7.0)[:, None], weights=torch.full((7,), 0.1)).mass
    assert Content.of(each, torch.ones(7), torch.ones(7), "").estimate <= 1.0
    sums = [torch.full((n,), 1 / n).double() for n in range(1, 400)]
    found = [Content.of(m, torch.ones(len(m)), m, "", is_sample=True) for m in sums]
    assert max(content.sampled[1] for content in found) <= 1.0


def test_the_population_adds_both_errors() -> None:
    found = answer(Pool(X, is_sample=True)).content(0.9)
    assert found.population[0] < found.lower < found.upper < found.population[1]
    wanted = sampling_limits(Pool(X).mass, SIDES == 1, True, 0.9)[0]
    assert found.population[0] == wanted


def test_errors_of_model_and_pool_are_joined() -> None:
    assert in_quadrature(0.5, (0.47, 0.53), (0.46, 0.62)) == pytest.approx(
        (0.45, 0.5 + 0.0153**0.5)
    )
    assert in_quadrature(0.5, (0.55, 0.6)) == pytest.approx((0.5, 0.6))
    assert in_quadrature(0.1, (0.0, 0.9), (0.0, 0.9)) == (0.0, 1.0)
    found = answer(Pool(X, is_sample=True)).content(0.9)
    assert found.combined is None
    assert found.sampled[0] < found.estimate < found.sampled[1]
    sure = replace(found, posterior=(found.estimate, found.estimate))
    assert sure.combined == pytest.approx(found.sampled)
    wide = replace(sure, widened=(0.0, found.sampled[1]))
    assert wide.combined[0] == 0.0
    assert wide.combined[1] > found.sampled[1]
    assert "with the errors of model and sample together between 0 and" in str(wide)
    # Where the rows are all there is, only the model can be wrong.
    whole = replace(answer(Pool(X)).content(), posterior=(0.5, 0.7))
    assert whole.sampled == (whole.estimate, whole.estimate)
    assert whole.combined == pytest.approx((0.5, 0.7))
    assert "together" not in str(whole)


def test_limits_of_model_and_pool_hold_the_probability() -> None:
    # Pools of 400 rows, and a model that is off by a normal error and says how much.
    generator, error, runs = torch.Generator().manual_seed(0), 0.02, 2_000
    shares = torch.empty(runs, 400).uniform_(generator=generator).lt(0.3).double()
    said = shares.mean(-1) + error * torch.randn(runs, generator=generator)
    missed, alone = 0, 0
    for estimate in said.tolist():
        pool = proportion_limits(estimate, 400, 0.95)
        model = estimate - 1.96 * error, estimate + 1.96 * error
        low, high = in_quadrature(estimate, model, pool)
        missed += not low <= 0.3 <= high
        alone += not pool[0] <= 0.3 <= pool[1]
    assert 0.03 * runs < missed < 0.06 * runs
    assert alone > 0.1 * runs  # what the pool's error alone would miss


# --- rows drawn at random -------------------------------------------------------------


def plays(n_rows: int, n: int, wrong: int, masses, delta: float, runs: int) -> int:
    """In how many runs the limits miss the sum at any time."""
    missed = 0
    generator = torch.Generator().manual_seed(n + wrong)
    for _ in range(runs):
        x = torch.zeros(n_rows).double()
        which = torch.randperm(n_rows, generator=generator)[:wrong]
        x[which] = masses[which]
        draws = x[torch.randperm(n_rows, generator=generator)[:n]]
        low, high = difference_limits(draws, n_rows, float(masses.abs().max()), delta)
        # The limits use the most that the bets grew to at any time: one look is all.
        missed += not low - 1e-12 <= float(x.sum()) <= high + 1e-12
    return missed


@pytest.mark.some(1)
@more_in_full("runs", 40, 400)
@pytest.mark.parametrize("wrong", [0, 5, 40, 200])
@pytest.mark.parametrize("uneven", [False, True])
def test_limits_by_draws_hold_at_every_time(
    wrong: int, uneven: bool, runs: int
) -> None:
    n_rows, delta = 400, 0.2
    masses = torch.ones(n_rows).double()
    if uneven:
        masses = torch.linspace(-1, 1, n_rows).double()
    missed = plays(n_rows, 120, wrong, masses, delta, runs)
    assert missed <= binom.isf(1e-3, runs, delta)


def test_a_model_that_is_right_makes_them_narrow() -> None:
    zeros = torch.zeros(70).double()
    low, high = difference_limits(zeros, 10**9, 1.0, 0.05)
    # Not narrower than one bet of everything on "never wrong", and not much wider.
    assert 1 - 0.025 ** (1 / 70) < high / 1e9 < 1.25 * np.log(1 / 0.025) / 70
    assert low == -high
    assert difference_limits(torch.zeros(10).double(), 10, 1.0, 0.05) == (0.0, 0.0)


def test_limits_shrink_with_the_draws_and_end_at_the_truth() -> None:
    generator = torch.Generator().manual_seed(3)
    x = (torch.rand(500, generator=generator) < 0.04).double()
    widths = []
    for n in (10, 50, 250, 499, 500):
        low, high = difference_limits(x[:n], 500, 1.0, 0.05)
        assert low <= float(x.sum()) <= high
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0


def test_without_draws_nothing_is_known() -> None:
    none = torch.zeros(0).double()
    assert difference_limits(none, 8, 0.5, 0.05) == (-4.0, 4.0)


# --- sets -----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 0.8, 0.95])
def test_a_conservative_set_holds_however_sides_hang_together(alpha: float) -> None:
    found = answer(Pool(X))
    member = found.conservative(alpha)
    # The worst that can be: no two rows are below at the same time.
    assert float((1 - P)[member].sum()) <= 1 - alpha
    assert P[member].min() >= P[~member].max()
    more = member.clone()
    more[torch.where(member, -1.0, P).argmax()] = True
    assert float((1 - P)[more].sum()) > 1 - alpha
    with pytest.raises(ValueError, match="`alpha`"):
        found.conservative(95)


def test_the_expectation_of_the_set_has_the_expected_content() -> None:
    pool = Pool(X, weights=[1, 2, 3, 4, 10])
    member, deviation = answer(pool).vorobev()
    expected = float(pool.mass @ P)
    assert float(pool.mass[member].sum()) >= expected
    assert P[member].min() >= P[~member].max()
    least = member.nonzero().view(-1)[P[member].argmin()]
    assert float(pool.mass[member].sum() - pool.mass[least]) < expected
    # By its definition: the mean mass of the symmetric difference, over draws of sides.
    draws = torch.rand(200_000, 5, generator=torch.Generator().manual_seed(0)) < P
    wrong = (draws != member).double() @ pool.mass
    assert deviation == pytest.approx(
        float(wrong.mean()), abs=4 * float(wrong.std()) / 200_000**0.5
    )
