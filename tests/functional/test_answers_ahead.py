r"""What one answer of yes or no tells about sides, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import owens_t
from scipy.stats import norm
from torch import Tensor
from torch.special import entr, log_ndtr, ndtr

from botorch_lse.functional import answers
from botorch_lse.functional.answers import (
    AnswerAhead,
    AnyResultAhead,
    ResultAhead,
    joint_excess,
    latent_values,
)
from botorch_lse.functional.lookahead import ratio_to_level
from botorch_lse.models.outcomes import Binary, Counts, Ordinal

LOSSES = {"product": lambda p: p * (1 - p), "entropy": lambda p: entr(p) + entr(1 - p)}
GUESSES = [(0.0, 0.0), (0.5, 0.0), (0.2, 0.1)]
MEAN, VARIANCE = 0.7, 2.3
DISTANCE = torch.tensor([-1.5, -0.2, 0.0, 0.9, 3.0]).double()
TARGET_VARIANCE = torch.tensor([0.5, 1.0, 2.0, 4.0, 1.5]).double()
COVARIANCE = torch.tensor([0.6, -1.2, 1.9, 2.5, 0.0]).double()
N = 1_000_000


def ahead(guess: float = 0.0, lapse: float = 0.0) -> AnswerAhead:
    mean, variance = (torch.tensor([x]).double() for x in (MEAN, VARIANCE))
    return AnswerAhead(mean, variance, guess, lapse)


def together(answer: ResultAhead) -> Tensor:
    return answer.with_sides(DISTANCE, TARGET_VARIANCE, COVARIANCE.unsqueeze(0))


def drawn(guess: float, lapse: float) -> tuple[Tensor, Tensor]:
    r"""Answers (``N``) and sides (``N x T``), drawn by the definition."""
    generator = torch.Generator().manual_seed(0)
    normal = {"generator": generator, "dtype": torch.float64}
    f = MEAN + VARIANCE**0.5 * torch.randn(N, **normal)
    chance = guess + (1 - guess - lapse) * ndtr(f)
    yes = torch.rand(N, **normal) < chance
    mean = DISTANCE + COVARIANCE / VARIANCE * (f - MEAN).unsqueeze(-1)
    left = (TARGET_VARIANCE - COVARIANCE.square() / VARIANCE).sqrt()
    return yes, mean + left * torch.randn(N, 5, **normal) > 0


@pytest.mark.parametrize("rho", [-0.99, -0.9, -0.7, -0.4, 0.0, 0.2, 0.5, 0.8, 0.95])
def test_the_covariance_of_two_events_is_that_by_owens_function(rho):
    h = np.array([-4.0, -1.3, -0.2, 0.1, 0.8, 2.5])[:, None]
    k = np.array([-3.1, -1.31, -0.5, 0.3, 1.0, 4.1])
    root = (1 - rho**2) ** 0.5
    both = (norm.cdf(h) + norm.cdf(k)) / 2 - 0.5 * (h * k < 0)
    both = both - owens_t(h, (k - rho * h) / (h * root))
    both = both - owens_t(k, (h - rho * k) / (k * root))
    wanted = torch.from_numpy(both - norm.cdf(h) * norm.cdf(k))
    h, k = map(torch.from_numpy, (h, k))
    found = joint_excess(h, k, torch.tensor(rho).double())
    atol = 1e-8 if abs(rho) < 0.97 else 1e-6
    torch.testing.assert_close(found, wanted, rtol=0.0, atol=atol)


def test_many_pairs_have_the_values_of_few():
    generator = torch.Generator().manual_seed(0)
    h, k = (torch.randn(300, generator=generator).double() for _ in range(2))
    rho = 2 * torch.rand(300, 300, generator=generator).double() - 1
    found = joint_excess(h.unsqueeze(-1), k, 0.9 * rho)
    row = joint_excess(h[7], k, 0.9 * rho[7])
    torch.testing.assert_close(found[7], row, rtol=0.0, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_candidates_may_be_taken_in_pieces(loss, monkeypatch):
    monkeypatch.setattr(answers, "PAIRS", 2 * len(DISTANCE))
    candidates = torch.linspace(-1.0, 1.0, 5).double()
    whole = AnswerAhead(candidates, candidates.square() + 2.5, 0.2, 0.1)
    covariance = COVARIANCE * candidates.unsqueeze(-1)
    given, b = (DISTANCE, TARGET_VARIANCE), ratio_to_level(DISTANCE, TARGET_VARIANCE)
    pieces = list(whole.pieces(covariance))
    assert [len(some.mean) for some, _ in pieces] == [2, 2, 1]
    found = [some.removed(loss, b, some.with_sides(*given, c)) for some, c in pieces]
    wanted = whole.removed(loss, b, whole.with_sides(*given, covariance))
    torch.testing.assert_close(torch.cat(found), wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("guess", "lapse"), GUESSES)
def test_the_effect_of_an_answer_is_that_of_its_definition(guess, lapse):
    answer = ahead(guess, lapse)
    yes, above = drawn(guess, lapse)
    p1, p = yes.double().mean(), above.double().mean(dim=0)
    assert float(answer.yes) == pytest.approx(float(p1), abs=4 * 0.5 / N**0.5)
    assert float(answer.yes + answer.no) == pytest.approx(1.0)
    after = [above[sign].double().mean(dim=0) for sign in (yes, ~yes)]
    error = 4 * (0.25 / N) ** 0.5 / min(float(p1), 1 - float(p1))
    t, b = together(answer), ratio_to_level(DISTANCE, TARGET_VARIANCE)
    for sign, chance, wanted in zip(
        (1, -1), (answer.yes, answer.no), after, strict=True
    ):
        found = ndtr(b) + sign * t / chance
        torch.testing.assert_close(found[0], wanted, rtol=0.0, atol=error)
    for name, loss in LOSSES.items():
        wanted = loss(p) - p1 * loss(after[0]) - (1 - p1) * loss(after[1])
        found = answer.removed(name, b, t)[0]
        torch.testing.assert_close(found, wanted, rtol=0.0, atol=2e-3)
        assert bool((found[:-1] > 1e-5).all())
    change = sum(
        chance * (sides.sum() - p.sum()).abs()
        for chance, sides in zip((p1, 1 - p1), after, strict=True)
    )
    assert float(answer.volume_change(t)) == pytest.approx(float(change), abs=5 * error)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_has_nothing_in_common_with_an_answer_is_told_nothing(loss):
    answer = ahead(0.2, 0.1)
    b = ratio_to_level(DISTANCE, TARGET_VARIANCE)
    removed = answer.removed(loss, b, together(answer))[0]
    assert float(removed[-1]) == pytest.approx(0.0, abs=1e-15)
    p = ndtr(b)
    assert bool((removed <= LOSSES[loss](p)).all())


@pytest.mark.parametrize("loss", LOSSES)
def test_yes_and_no_may_change_their_places(loss):
    one = ahead(0.2, 0.1)
    other = AnswerAhead(-one.mean, one.variance, 0.1, 0.2)
    given = -DISTANCE, TARGET_VARIANCE, COVARIANCE.unsqueeze(0)
    b = ratio_to_level(DISTANCE, TARGET_VARIANCE)
    found = other.removed(loss, -b, other.with_sides(*given))
    wanted = one.removed(loss, b, together(one))
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES)
def test_extremes_have_values_and_gradients(loss):
    mean = torch.tensor([-60.0, 0.0, 60.0]).double().requires_grad_()
    variance = torch.tensor([1e-12, 4.0, 1e4]).double()
    answer = AnswerAhead(mean, variance)
    sides = torch.tensor([-90.0, 0.0, 90.0, 1.0]).double(), variance[[0, 1, 2, 2]]
    covariance = variance.sqrt().outer(sides[1].sqrt())
    t = answer.with_sides(*sides, covariance)
    removed = answer.removed(loss, ratio_to_level(*sides), t)
    removed.sum().backward()
    assert bool((removed > -1e-12).all())
    assert bool(mean.grad.isfinite().all())


# --- results of other kinds -----------------------------------------------------------

GRADES = Ordinal(4, at_least=2, cutpoints=(-1.0, 0.0, 1.5))
OUTCOMES = {"yes or no": Binary(), "grades": GRADES, "counts": Counts()}
OTHERS = {name: OUTCOMES[name] for name in ("grades", "counts")}


def any_results(outcome, mean=MEAN, variance=VARIANCE) -> AnyResultAhead:
    mean, variance = (torch.tensor([x]).double() for x in (mean, variance))
    return outcome.ahead(mean, variance)


def by_table(guess: float = 0.0, lapse: float = 0.0) -> AnyResultAhead:
    r"""An answer of yes or no as any other result is."""
    mean, variance = (torch.tensor([x]).double() for x in (MEAN, VARIANCE))
    yes = Binary(guess, lapse).value(latent_values(mean, variance))
    return AnyResultAhead(mean, variance, torch.stack((yes, 1 - yes), dim=1))


@pytest.mark.parametrize(("guess", "lapse"), GUESSES)
def test_answers_by_their_probabilities_tell_what_closed_forms_say(guess, lapse):
    exact, table = ahead(guess, lapse), by_table(guess, lapse)
    b, t = ratio_to_level(DISTANCE, TARGET_VARIANCE), together(exact)
    found = together(table)
    torch.testing.assert_close(found[:, 0], t, rtol=0.0, atol=2e-6)
    torch.testing.assert_close(found.sum(dim=1), 0 * t, rtol=0.0, atol=1e-12)
    for loss in LOSSES:
        given = {"rtol": 0.0, "atol": 1e-5}
        wanted = exact.removed(loss, b, t)
        torch.testing.assert_close(table.removed(loss, b, found), wanted, **given)
    wanted = float(exact.volume_change(t))
    assert float(table.volume_change(found)) == pytest.approx(wanted, abs=1e-5)


def test_a_side_that_the_value_decides_is_told_by_its_answer():
    exact, table = ahead(), by_table()
    variance = torch.tensor([VARIANCE]).double()
    for distance in torch.linspace(-2.0, 2.0, 9).double().split(1):
        given = distance, variance, variance.unsqueeze(0)  # the candidate is the target
        wanted = float(exact.with_sides(*given))
        assert float(table.with_sides(*given)[0, 0]) == pytest.approx(wanted, rel=0.01)


def drawn_results(outcome) -> tuple[Tensor, Tensor]:
    r"""Results (``N``) and sides (``N x T``), drawn by the definition."""
    generator = torch.Generator().manual_seed(1)
    normal = {"generator": generator, "dtype": torch.float64}
    f = MEAN + VARIANCE**0.5 * torch.randn(N, **normal)
    if isinstance(outcome, Counts):
        y = torch.poisson(f.exp(), generator=generator)
    else:
        y = outcome.grade(f + torch.randn(N, **normal))
    mean = DISTANCE + COVARIANCE / VARIANCE * (f - MEAN).unsqueeze(-1)
    left = (TARGET_VARIANCE - COVARIANCE.square() / VARIANCE).sqrt()
    return y, mean + left * torch.randn(N, 5, **normal) > 0


@pytest.mark.parametrize("outcome", OTHERS.values(), ids=OTHERS)
def test_the_effect_of_a_result_is_that_of_its_definition(outcome):
    y, above = drawn_results(outcome)
    # Rare counts are taken together: they have no mean of their own.
    y = y.clamp_max(60.0)
    p, shares = above.double().mean(dim=0), y.long().bincount().double() / N
    sums = torch.zeros(len(shares), 5).double().index_add(0, y.long(), above.double())
    after = sums / (shares * N).clamp_min(1.0).unsqueeze(-1)
    result, b = any_results(outcome), ratio_to_level(DISTANCE, TARGET_VARIANCE)
    found = together(result)
    assert float(result.shares.sum()) == pytest.approx(1.0)
    for name, loss in LOSSES.items():
        wanted = loss(p) - (shares.unsqueeze(-1) * loss(after)).sum(dim=0)
        removed = result.removed(name, b, found)[0]
        torch.testing.assert_close(removed, wanted, rtol=0.01, atol=1e-3)
        assert bool((removed[:-1] > 1e-5).all())
    change = (shares * (after.sum(dim=-1) - p.sum()).abs()).sum()
    assert float(result.volume_change(found)) == pytest.approx(float(change), rel=5e-3)


def dense(outcome, mean: float, variance: float, rho: float) -> dict[str, float]:
    r"""What a result tells about one target on the level, by thousands of values."""
    x = torch.linspace(-8.0, 8.0, 4001).double()
    w = torch.exp(-x.square() / 2)
    w, f = w / w.sum(), mean + variance**0.5 * x
    above = ndtr(rho / max(1 - rho**2, 1e-12) ** 0.5 * x)
    if isinstance(outcome, Counts):
        # The likely ones: of the values between -6 and 6 deviations.
        least, most = float(f[500].exp()), float(f[-500].exp())
        k = torch.arange(max(0, int(least - 8 * least**0.5)), int(most + 200)).double()
        chances = torch.distributions.Poisson(f.exp()).log_prob(k.unsqueeze(-1)).exp()
    else:
        k = torch.arange(outcome.grades).double().unsqueeze(-1)
        chances = outcome.log_probability(f, k, torch.ones_like(k)).exp()
    P, joint = chances @ w, chances @ (w * above)
    keep = P > 1e-14
    P, p = P[keep], joint[keep] / P[keep]
    found = {
        name: float(loss(torch.tensor(0.5)) - (P * loss(p)).sum())
        for name, loss in LOSSES.items()
    }
    return {**found, "volume": float((P * (p - 0.5).abs()).sum())}


CASES = [(c, m, v) for c in (Counts(),) for m in (-2.0, 1.0, 4.0) for v in (0.05, 0.5)]
CASES += [(GRADES, m, v) for m in (-1.0, 0.5) for v in (0.3, 4.0, 25.0)]


@pytest.mark.parametrize(("outcome", "mean", "variance"), CASES)
@pytest.mark.parametrize(("rho", "error"), [(0.4, 0.01), (-0.95, 0.02), (1.0, 0.07)])
def test_quadrature_is_as_good_as_many_values(outcome, mean, variance, rho, error):
    result, wanted = (
        any_results(outcome, mean, variance),
        dense(outcome, mean, variance, rho),
    )
    distance, unit = torch.zeros(1).double(), torch.ones(1).double()
    t = result.with_sides(
        distance, unit, torch.tensor([[rho * variance**0.5]]).double()
    )
    for loss in LOSSES:
        found = float(result.removed(loss, distance, t))
        assert found == pytest.approx(wanted[loss], rel=error)
    assert float(result.volume_change(t)) == pytest.approx(wanted["volume"], rel=error)


EXTREME = [
    (mean, variance) for mean in (-40.0, -12.0, 9.0, 30.0) for variance in (1, 4)
]


@pytest.mark.parametrize(("mean", "variance"), EXTREME)
@pytest.mark.parametrize(("guess", "lapse"), GUESSES)
def test_no_answer_takes_off_more_than_there_is(mean, variance, guess, lapse):
    given = (torch.tensor([float(x)]).double() for x in (mean, variance))
    answer = AnswerAhead(*given, guess, lapse)
    distance = torch.linspace(-12.0, 12.0, 49).double() + mean
    for rho in (-0.9, 0.1, 0.5, 0.9, 0.99):
        covariance = torch.full((1, 49), rho * 2 * variance**0.5).double()
        own = torch.full((49,), 4.0).double()
        t = answer.with_sides(distance, own, covariance)
        b = ratio_to_level(distance, own)
        p, q = log_ndtr(b).exp(), log_ndtr(-b).exp()
        most = {"product": p * q, "entropy": entr(p) + entr(q)}
        for loss in LOSSES:
            removed = answer.removed(loss, b, t)[0]
            assert bool(removed.isfinite().all())
            assert bool((removed <= most[loss] * (1 + 1e-6) + 1e-300).all())


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_results_of_any_kind_may_be_taken_in_pieces(outcome, monkeypatch):
    candidates = torch.linspace(-1.0, 1.0, 5).double()
    whole = outcome.ahead(candidates, candidates.square() + 2.5)
    monkeypatch.setattr(answers, "PAIRS", 2 * len(DISTANCE) * whole.per_pair)
    covariance = COVARIANCE * candidates.unsqueeze(-1)
    given = DISTANCE, TARGET_VARIANCE
    pieces = list(whole.pieces(covariance))
    assert [len(some.mean) for some, _ in pieces] == [2, 2, 1]
    found = [some.volume_change(some.with_sides(*given, c)) for some, c in pieces]
    wanted = whole.volume_change(whole.with_sides(*given, covariance))
    torch.testing.assert_close(torch.cat(found), wanted, rtol=1e-6, atol=1e-12)
