r"""Audits of a claim: how often they pass, exactly and by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import binom, hypergeom

from botorch_lse.confidence.audit import (
    LOOKS,
    MISTAKEN,
    NOISE_PAIRS,
    NOISE_SHARE,
    AuditTest,
    audit_size,
    audit_test,
    doubt_test,
    next_look,
    noise_bound,
    too_many,
    verdicts,
)
from research.benchmark.guarantee_audit import LINE, Scenario, at, simulate
from tests.covering import more_in_full

MOST_WRONG = 60


def passing(test: AuditTest, share: float, n: int) -> float:
    r"""The probability to pass within ``n`` rows if such a share of many is wrong.

    Exact: the evidence is a function of the two counts, so the probabilities of all
    counts that have not passed are carried from row to row.
    """
    wrong = share * (1 - test.mistaken)
    alive, passed = np.zeros(MOST_WRONG), 0.0
    alive[0] = 1.0
    least = least_right(test, MOST_WRONG)
    for i in range(1, n + 1):
        alive = (1 - wrong) * alive + wrong * np.concatenate(([0.0], alive[:-1]))
        has_passed = i - np.arange(MOST_WRONG) >= least
        passed += float(alive[has_passed].sum())
        alive[has_passed] = 0.0
    return passed


def passing_of_few(test: AuditTest, wrong: int) -> float:
    r"""The same without replacement from few rows, so many of which are wrong.

    Carried along are the numbers of wrong rows drawn and of those that were found.
    """
    n_rows, found = test.n_rows, 1 - test.mistaken
    alive, passed = np.zeros((wrong + 1, wrong + 1)), 0.0
    alive[0, 0] = 1.0
    least = least_right(test, wrong + 1)
    for i in range(1, n_rows + 1):
        left = n_rows - i + 1
        is_wrong = (wrong - np.arange(wrong + 1.0))[:, None] / left
        after = (1 - is_wrong).clip(0) * alive
        after[1:, 1:] += (found * is_wrong * alive)[:-1, :-1]
        after[1:, :] += ((1 - found) * is_wrong * alive)[:-1, :]
        has_passed = i - np.arange(wrong + 1) >= least
        passed += float(after[:, has_passed].sum())
        after[:, has_passed] = 0.0
        alive = after
    return passed


def least_right(test: AuditTest, n: int) -> np.ndarray:
    r"""How many right rows make it pass beside ``0, ..., n - 1`` wrong ones."""
    least = np.full(n, np.inf)
    for k in range(n):
        if test.n_rows is not None and k > test.n_rows:
            break
        beside = replace(test, wrong=k)
        number = beside.remaining
        if replace(beside, right=number).has_passed:
            least[k] = number
    return least


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("tolerance", [0.05, 0.1])
def test_a_claim_that_is_as_wrong_as_is_tested_passes_rarely(tolerance, attempt):
    test = audit_test(tolerance, 0.05, attempt)
    found = passing(test, test.share, 800)
    assert found <= 1 / test.limit
    assert found >= 0.5 / test.limit  # and the bets are not thrown away


@pytest.mark.parametrize("n_rows", [20, 300])
def test_the_evidence_about_few_rows_is_a_ratio_of_probabilities(n_rows):
    test = audit_test(0.05, 0.05, n_rows=n_rows)
    too_many_wrong = too_many(0.05, n_rows)
    for right, wrong in ((3, 0), (15, 0), (9, 1)):
        n, chances = right + wrong, []
        for multiple in (0.0, 0.2, 0.5, 1.0):
            drawn = np.arange(n + 1)
            among = hypergeom.pmf(drawn, n_rows, int(multiple * too_many_wrong), n)
            chances.append(among @ binom.pmf(wrong, drawn, 1 - test.mistaken))
        ratio = (0.6 * chances[0] + 0.25 * chances[1] + 0.15 * chances[2]) / chances[3]
        evidence = replace(test, right=right, wrong=wrong).log_evidence
        assert math.exp(evidence) == pytest.approx(ratio, rel=1e-8)


@pytest.mark.some(9)
@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("is_exact", [True, False])
@pytest.mark.parametrize(
    ("tolerance", "n_rows"),
    [(0.049, 20), (0.05, 20), (0.09, 50), (0.0599, 50), (0.1, 7), (0.02, 300)],
)
def test_a_claim_about_few_rows_passes_rarely(tolerance, n_rows, is_exact, attempt):
    r"""A wrong row that noise lets look right looks so for good."""
    test = audit_test(tolerance, 0.05, attempt, n_rows=n_rows, is_exact=is_exact)
    for more in range(3):
        wrong = too_many(tolerance, n_rows) + more
        assert passing_of_few(test, wrong) <= 1 / test.limit
    assert passing_of_few(test, 0) == pytest.approx(1.0)


def test_a_right_verdict_adds_to_the_evidence_and_a_wrong_one_takes_from_it():
    for n_rows in (None, 100, 1000):
        test = audit_test(0.1, 0.05, n_rows=n_rows)
        table = np.array(
            [
                [replace(test, right=r, wrong=w).log_evidence for r in range(60)]
                for w in range(6)
            ]
        )
        assert (np.diff(table, axis=1)[np.isfinite(table[:, 1:])] >= -1e-10).all()
        assert (table[1:] <= table[:-1]).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["claim", "doubt"])
def test_along_looks_after_every_row(kind):
    generator = torch.Generator().manual_seed(0)
    test = audit_test(0.1, 0.05, n_rows=200)
    test, ends = test if kind == "claim" else doubt_test(test, 0.2), []
    for _ in range(30):
        rows = torch.rand(120, generator=generator) > 0.08
        ends.append(any(test.after(rows[:k]).has_passed for k in range(121)))
        assert test.along(rows) == ends[-1]
    assert 0 < sum(ends) < 30


def test_many_rows_are_as_infinitely_many():
    many, few = (audit_test(0.05, 0.05, n_rows=n) for n in (None, 10**7))
    for right, wrong in ((0, 0), (60, 0), (100, 3)):
        evidence = [
            replace(t, right=right, wrong=wrong).log_evidence for t in (many, few)
        ]
        assert evidence[0] == pytest.approx(evidence[1], abs=1e-3)


def test_exact_values_of_nearly_all_rows_leave_no_doubt():
    test = AuditTest(0.1, 1e9, right=19, n_rows=20)  # two wrong would be too many
    assert test.log_evidence == math.inf
    assert test.has_passed
    assert not AuditTest(0.1, 1e9, right=18, wrong=2, n_rows=20).has_passed


def test_a_limit_that_is_too_low_lets_it_pass():
    test = audit_test(0.1, 0.05)
    weak = replace(test, limit=test.limit / 3)
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
    hopeless = AuditTest(0.05, 20.0, right=30, wrong=6, n_rows=100)
    assert hopeless.remaining == 64


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


def test_nothing_is_said_between_two_looks():
    margin, counts = torch.full((8,), 5.0).double(), torch.arange(1, 9)
    found = verdicts(margin, torch.ones(8), counts)
    assert found.tolist() == [1, 1, 0, 1, 0, 0, 0, 1]
    assert verdicts(margin[:1], torch.zeros(1), torch.tensor([3])).tolist() == [1]


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
        (lambda: AuditTest(0.05, 20.0, right=6, n_rows=5), "n_rows"),
        (lambda: AuditTest(0.05, 20.0, mistaken=1.0), "mistaken"),
    ],
)
def test_bad_numbers_are_refused(call, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        call()


# --- noise that is learnt, or not Gaussian --------------------------------------------


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("pairs", [1, 3, NOISE_PAIRS])
def test_the_bound_of_the_noise_is_too_low_as_rarely_as_stated(pairs):
    r"""10,000 bounds for a standard deviation of 2, whatever the rows' means are."""
    generator, delta, n = torch.Generator().manual_seed(0), 0.5, 10_000
    means = 100 * torch.randn(n, pairs, 1, generator=generator, dtype=torch.float64)
    y = means + 2 * torch.randn(n, pairs, 2, generator=generator, dtype=torch.float64)
    bounds = [noise_bound(*row.T, delta) for row in y]
    low, promised = sum(b < 2 for b in bounds) / n, NOISE_SHARE * delta
    assert abs(low - promised) <= 4 * (promised / n) ** 0.5  # it is exact


def test_without_replicates_nothing_bounds_the_noise():
    none = torch.empty(0, dtype=torch.float64)
    assert noise_bound(none, none, 0.05) == math.inf


def test_the_bound_says_nothing_of_the_means_that_are_judged():
    r"""Among bounds that are far too low, means at the line are as usual."""
    generator, n = torch.Generator().manual_seed(0), 20_000
    y = torch.randn(n, NOISE_PAIRS, 4, generator=generator, dtype=torch.float64)
    spread = (y[..., 0] - y[..., 1]).square().sum(dim=1)
    lowest = y[spread.argsort()[:500]]
    for look in (2, 4):
        means = lowest[..., :look].mean(dim=-1) * look**0.5
        assert abs(float(means.square().mean()) - 1) < 4 * (2 / means.numel()) ** 0.5
    alone = lowest[..., 0]  # the first value alone is not: it is judged with the second
    assert float(alone.square().mean()) < 0.9


@pytest.mark.some(1)
@more_in_full("n_runs", 2000, 10_000)
@pytest.mark.parametrize("options", [{"is_learnt": True}, {"by_sign": True, "most": 1}])
def test_wrong_claims_pass_rarely_where_the_noise_is_not_known(options, n_runs):
    scenario = Scenario("", partial(at, LINE), n_rows=200, **options)
    for divisor, is_rare in ((1.0, True), (3.0, False)):
        audits = simulate(scenario, scenario.n_wrong, n_runs, divisor)
        passed = int(audits.passed.sum())
        assert (passed <= 0.05 * n_runs + 2 * (0.05 * n_runs) ** 0.5) == is_rare


def test_the_price_of_learnt_noise_is_what_such_an_audit_takes():
    for options in ({"is_learnt": True}, {"by_sign": True, "most": 1}):
        scenario = Scenario("", **options)
        audits = simulate(scenario, 0, 300, 1.0)
        options.pop("most", None)
        price = audit_size(0.05, 0.05, n_rows=1000, **options)
        assert audits.passed.double().mean() >= 0.95
        assert price <= float(audits.measured[audits.passed].median()) <= price + 4


def test_bounded_noise_makes_a_wrong_row_look_right_as_rarely_as_stated():
    r"""Values of -1 and 1: sub-Gaussian with scale 1, of which 0.05 is promised."""
    n, generator = 50_000, torch.Generator().manual_seed(0)
    values = 2.0 * torch.randint(2, (n, 8), generator=generator).double() - 1
    found = torch.zeros(n, dtype=torch.int8)
    for look in LOOKS:
        mean, counts = values[:, :look].mean(dim=-1), torch.full((n,), look)
        now = verdicts(mean, torch.ones(n), counts, is_gaussian=False)
        found = torch.where(found == 0, now, found)
    assert float((found == 1).double().mean()) <= MISTAKEN


def test_noise_that_may_be_other_than_gaussian_needs_a_longer_reach():
    one, std = torch.ones(3).long(), torch.ones(3)
    margin = torch.tensor([2.3, 2.9, 3.0]).double()
    assert verdicts(margin, std, one).tolist() == [1, 1, 1]
    assert verdicts(margin, std, one, is_gaussian=False).tolist() == [0, 0, 1]
