r"""Audits of a claim: how often they pass, exactly and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from botorch_lse.confidence.audit import (
    LOOKS,
    MISTAKEN,
    AuditTest,
    audit_size,
    audit_test,
    next_look,
    verdicts,
)

MOST_WRONG = 60


def passing(test: AuditTest, wrong: float, n: int) -> float:
    r"""The probability to pass within ``n`` rows of which each is wrong so often.

    Exact: the evidence is a function of the two counts, so the probabilities of all
    counts that have not passed are carried from row to row.
    """
    alive, passed = np.zeros(MOST_WRONG), 0.0
    alive[0] = 1.0
    for i in range(1, n + 1):
        alive = (1 - wrong) * alive + wrong * np.concatenate(([0.0], alive[:-1]))
        for k in np.nonzero(alive)[0].tolist():
            if i >= k and AuditTest(test.share, test.limit, i - k, k).has_passed:
                passed += float(alive[k])
                alive[k] = 0.0
    return passed


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("tolerance", [0.05, 0.1])
def test_a_claim_that_is_as_wrong_as_is_tested_passes_rarely(tolerance, attempt):
    test = audit_test(tolerance, 0.05, attempt)
    found = passing(test, test.share, 800)
    assert found <= 1 / test.limit
    assert found >= 0.5 / test.limit  # and the bets are not thrown away


def test_a_limit_that_is_too_low_lets_it_pass():
    test = audit_test(0.1, 0.05)
    weak = AuditTest(test.share, test.limit / 3)
    assert passing(weak, weak.share, 500) > 0.05


@pytest.mark.parametrize(("share", "least"), [(0.0, 1.0), (0.2, 0.999), (0.4, 0.98)])
def test_a_claim_with_few_mistakes_passes(share, least):
    test = audit_test(0.05, 0.05)
    assert passing(test, share * test.share, 1000) >= least - 1e-12


def test_all_attempts_together_spend_no_more_than_delta():
    spent = sum(1 / audit_test(0.05, 0.05, k).limit for k in range(1, 30))
    assert spent == pytest.approx(0.05)


def test_the_evidence_is_the_mixture_of_likelihood_ratios():
    t = 0.08
    for right, wrong in ((0, 0), (10, 0), (40, 1), (100, 7)):
        ratios = [
            weight * (q / t) ** wrong * ((1 - q) / (1 - t)) ** right
            for weight, q in ((0.6, 0.0), (0.25, 0.2 * t), (0.15, 0.5 * t))
        ]
        test = AuditTest(t, 20.0, right, wrong)
        assert test.log_evidence == pytest.approx(math.log(sum(ratios)), rel=1e-10)


def test_verdicts_are_counted():
    test = audit_test(0.05, 0.05).after(torch.tensor([True, True, False]))
    assert (test.right, test.wrong) == (2, 1)
    assert test.after(torch.ones(0, dtype=torch.bool)) == test


def test_what_remains_is_the_least_number_that_passes():
    test = AuditTest(0.05, 20.0, right=30, wrong=1)
    n = test.remaining
    ahead = [AuditTest(0.05, 20.0, 30 + k, 1).has_passed for k in (n - 1, n)]
    assert ahead == [False, True]
    assert AuditTest(0.05, 20.0, right=30 + n, wrong=1).remaining == 0


def test_the_size_of_an_audit_is_near_what_any_test_needs():
    for tolerance in (0.01, 0.05, 0.2):
        least = math.log(0.05) / math.log(1 - tolerance)
        assert least <= audit_size(tolerance, 0.05, is_exact=True) <= 1.25 * least


@pytest.mark.parametrize("most", [1, 2, 8])
def test_noise_makes_a_wrong_row_look_right_as_rarely_as_stated(most):
    n, generator = 200_000, torch.Generator().manual_seed(0)
    values = torch.randn(n, 8, generator=generator, dtype=torch.float64)
    found = torch.zeros(n, dtype=torch.int8)
    for look in [k for k in LOOKS if k <= most]:
        mean = values[:, :look].mean(dim=-1)  # a row exactly at the line is wrong
        now = verdicts(mean, torch.ones(n), torch.full((n,), look), most)
        found = torch.where(found == 0, now, found)
    assert bool((found != 0).all())
    share = float((found == 1).double().mean())
    assert share <= MISTAKEN + 4 * (MISTAKEN / n) ** 0.5
    assert share >= MISTAKEN / 2  # and the looks are not thrown away


def test_a_clear_row_is_judged_at_its_first_look():
    margin = torch.tensor([5.0, -5.0, 0.1]).double()
    ones = torch.ones(3, dtype=torch.long)
    assert verdicts(margin, ones.double(), ones).tolist() == [1, -1, 0]
    assert verdicts(margin, ones.double(), 0 * ones).tolist() == [0, 0, 0]
    assert verdicts(margin, ones.double(), 8 * ones).tolist() == [1, -1, -1]


def test_exact_values_are_clear_at_once():
    margin, ones = torch.tensor([0.1, 0.0, -0.1]).double(), torch.ones(3).long()
    assert verdicts(margin, torch.zeros(3), ones).tolist() == [1, -1, -1]


def test_rows_that_are_not_clear_are_measured_twice_as_often():
    counts = torch.tensor([0, 1, 2, 3, 4, 7, 8])
    assert next_look(counts).tolist() == [1, 2, 4, 4, 8, 8, 8]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: audit_test(0.0, 0.05), "tolerance"),
        (lambda: audit_test(0.05, 1.0), "delta"),
        (lambda: audit_test(0.05, 0.05, 0), "attempt"),
        (lambda: AuditTest(0.05, 0.5), "limit"),
        (lambda: AuditTest(0.05, 20.0, right=-1), "right"),
    ],
)
def test_bad_numbers_are_refused(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call()
