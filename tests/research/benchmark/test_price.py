r"""Measurements until learnt answers are decided and audited."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from research.benchmark import price_all
from research.benchmark.price_all import (
    AUDITED,
    BEFORE,
    DEFAULT,
    LIMIT,
    METHODS,
    Job,
    Run,
    prices,
    report,
    run,
    strategy_of,
)
from research.benchmark.registry import find
from research.benchmark.trust_problems import FUNCTIONS


@pytest.mark.parametrize("method", METHODS)
def test_a_plane_is_decided_by_all_methods(method: str) -> None:
    (found,) = run(Job("plane", method, 8, True, 0))
    assert found.is_decided
    assert found.decided <= 80
    assert found.wrong == 0
    assert found.is_audited == (method == DEFAULT)
    assert found.audited == found.decided or found.audited > found.decided + 50


def test_the_default_before_is_what_it_was() -> None:
    instance = FUNCTIONS["plane"].make(0)
    before = strategy_of(Job("plane", BEFORE, 8, True, 0), instance)
    now = strategy_of(Job("plane", DEFAULT, 8, True, 0), instance)
    assert before.algorithm.model.n_first == 20
    assert now.algorithm.model.n_first == 10
    assert before.algorithm.widths(5) > now.algorithm.widths(5) == 16


def test_a_run_that_is_not_decided_counts_as_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price_all, "LIMIT", 16)
    (found,) = run(Job("sea bed", DEFAULT, 8, True, 0))
    assert not found.is_decided
    assert found.decided == found.audited == 16


def runs() -> list[Run]:
    one = Run(Job("plane", DEFAULT, 8, True, 0), 30, 100, True, True, 0.0)
    before = replace(one.job, method=BEFORE)
    rest = [replace(one.job, method=m) for m in METHODS if m not in (DEFAULT, BEFORE)]
    others = [Run(job, 50, 50, True, False, 0.0) for job in (before, *rest)]
    slow = [
        replace(r, job=replace(r.job, function="sines"), decided=170, audited=200)
        for r in (one, *others)
    ]
    return [one, *others, *slow]


def test_prices_are_compared_with_the_default_before() -> None:
    assert prices(runs())["plane"] == {DEFAULT: 30, AUDITED: 100, BEFORE: 50,
                                       "LSE": 50, "Straddle": 50}  # fmt: skip
    found = report(runs())
    assert found.tables[0].rows[-1][:4] == ("sum", "200", "300", "220")
    verdicts = {row[0]: row[2:] for row in found.tables[-1].rows}
    assert [*verdicts.values()] == [
        ("0.91", "NOT MET"),
        ("1.00", "NOT MET"),
        ("1.36", "met"),
        ("1.18", "NOT MET"),
    ]
    assert json.loads(json.dumps(found.data))["runs"][0]["decided"] == 30
    assert LIMIT > 300


def test_it_is_an_entry() -> None:
    assert find("price", "all").summary
