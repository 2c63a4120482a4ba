r"""What one answer of yes or no tells about sides, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import owens_t
from scipy.stats import norm
from torch import Tensor
from torch.special import entr, ndtr

from botorch_lse.functional import answers
from botorch_lse.functional.answers import AnswerAhead, joint_excess
from botorch_lse.functional.lookahead import ratio_to_level

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


def together(answer: AnswerAhead) -> Tensor:
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
