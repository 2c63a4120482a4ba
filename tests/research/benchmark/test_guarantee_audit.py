r"""Simulated audits: that they hold, that they can fail, and that the loop agrees."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch

from botorch_lse.confidence.audit import LOOKS, audit_size, verdicts
from research.benchmark import guarantee_audit
from research.benchmark.guarantee_audit import (
    DELTA,
    LINE,
    SCENARIOS,
    Scenario,
    at,
    judged,
    least_right,
    outcome,
    passes_in_loop,
    report,
    simulate,
)
from research.benchmark.registry import Options, find
from tests.covering import more_in_full

FAST = [scenario for scenario in SCENARIOS if not scenario.in_loop]
CASES = [pytest.param(one, marks=[pytest.mark.slow] * (one.most > 32)) for one in FAST]


@more_in_full("runs", 500, 10_000)
@pytest.mark.parametrize("scenario", CASES, ids=[scenario.name for scenario in FAST])
def test_wrong_claims_pass_rarely_and_often_with_weak_limits(scenario, runs) -> None:
    promised = outcome(scenario, runs, 1.0).wrong
    assert promised.wrong <= DELTA * runs + 2 * (DELTA * runs) ** 0.5
    assert outcome(scenario, runs, 3.0).wrong.verdict == "violated"


def test_the_loop_passes_as_many_claims_as_the_simulation() -> None:
    r"""With a third of the limits, so that there is something to compare."""
    scenario = Scenario("", partial(at, LINE), 20, 0.0999)
    n = 60
    fast = float(simulate(scenario, 2, 2000, 3.0).passed.double().mean())
    loop = sum(passes_in_loop(scenario, seed, 3.0) for seed in range(n)) / n
    assert fast > 0.2
    # The loop may stop earlier, once it is clear that a claim will not pass.
    assert fast - 0.1 - 4 * (0.25 / n) ** 0.5 < loop < fast + 4 * (0.25 / n) ** 0.5


def test_a_right_claim_passes_at_its_price() -> None:
    scenario = Scenario("", noise_std=0.0)
    audits = simulate(scenario, 0, 100, 1.0)
    assert audits.passed.all()
    price = audit_size(0.05, DELTA, n_rows=1000, is_exact=True)
    assert (audits.measured == price).all()


def test_sums_are_those_of_single_values() -> None:
    r"""The variance of the mean after each look, from rows judged at their last."""
    margins = torch.zeros(200, 100).double()
    scenario = Scenario("", partial(at, LINE))
    found, counts = judged(scenario, margins, 0.05, 1.0, 0)
    one_by_one = torch.zeros(20_000, dtype=torch.int8)
    values = torch.randn(20_000, 8, generator=torch.Generator().manual_seed(1)).double()
    for look in LOOKS:
        mean, n = values[:, :look].mean(dim=1), torch.full((20_000,), look)
        now = verdicts(mean, torch.ones(20_000), n)
        one_by_one = torch.where(one_by_one == 0, now, one_by_one)
    share = float((one_by_one > 0).double().mean())
    error = 4 * (2 * 0.05 / 20_000) ** 0.5
    assert float((found > 0).double().mean()) == pytest.approx(share, abs=error)
    assert set(counts.unique().tolist()) == set(LOOKS)


def test_more_wrong_rows_need_more_right_ones() -> None:
    least = least_right(FAST[0].test(1))
    assert (least.diff() >= 0).all()
    assert int(least[0]) == audit_size(0.05, DELTA, n_rows=1000, is_exact=True)


def test_the_report_has_the_guarantee_its_power_and_the_price(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarantee_audit, "POWER", guarantee_audit.POWER[1:2])
    scenarios = [FAST[1], replace(FAST[5], in_loop=True)]
    found = report(scenarios, Options(runs=40))
    assert len(found.tables) == 3
    assert "violated" in found.verdict[1]
    clear = [row for row in found.tables[2].rows if row[:3] == ("clear", "0.05", "0%")]
    assert clear[0][4] == "1.000"
    (alone,) = report(scenarios[:1], Options(runs=40, divide_widths=3.0)).tables
    assert "divided by 3" in alone.title


def test_audits_are_simulated_ten_thousand_times_unless_told() -> None:
    assert find("guarantee", "audit").runs == 10_000
    assert find("guarantee", "lse").runs == 200
