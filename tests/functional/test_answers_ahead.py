r"""What one answer of yes or no tells about sides, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import owens_t
from scipy.stats import norm
from torch import Tensor
from torch.special import entr, ndtr

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
    monkeypatch.setattr(AnswerAhead, "at_a_time", 2 * len(DISTANCE))
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


@pytest.mark.parametrize("mean", [-3.0, 0.0, 2.0, 7.0])
@pytest.mark.parametrize("variance", [1e-4, 0.3, 4.0])
def test_counts_of_all_sizes_take_off_the_variance_of_their_mean(mean, variance):
    # A count tells less than the value itself, and more than whether it is 0.
    result = any_results(Counts(), mean, variance)
    target = torch.zeros(1).double(), torch.tensor([variance]).double()
    t = result.with_sides(*target, target[1].unsqueeze(0))
    assert float(result.shares.sum()) == pytest.approx(1.0)
    removed = float(result.removed("product", target[0], t))
    f = latent_values(result.mean, result.variance)
    is_any = -torch.expm1(-f.exp())
    chances = torch.stack((is_any, 1 - is_any), dim=1)
    least = AnyResultAhead(result.mean, result.variance, chances)
    few = least.with_sides(*target, target[1].unsqueeze(0))
    assert float(least.removed("product", target[0], few)) <= removed * (1 + 1e-9)
    assert removed < 0.25
    if mean == 7.0 and variance > 1e-3:  # a thousand events nearly tell the value
        assert removed > 0.21


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_results_of_any_kind_may_be_taken_in_pieces(outcome, monkeypatch):
    candidates = torch.linspace(-1.0, 1.0, 5).double()
    whole = outcome.ahead(candidates, candidates.square() + 2.5)
    monkeypatch.setattr(type(whole), "at_a_time", 2 * len(DISTANCE))
    covariance = COVARIANCE * candidates.unsqueeze(-1)
    given = DISTANCE, TARGET_VARIANCE
    pieces = list(whole.pieces(covariance))
    assert [len(some.mean) for some, _ in pieces] == [2, 2, 1]
    found = [some.volume_change(some.with_sides(*given, c)) for some, c in pieces]
    wanted = whole.volume_change(whole.with_sides(*given, covariance))
    torch.testing.assert_close(torch.cat(found), wanted, rtol=1e-6, atol=1e-12)
