r"""How decisions grow: slopes, limits, and every rule on a small problem."""

from __future__ import annotations

import math

import pytest

from research.benchmark import speed_decisions
from research.benchmark.speed_decisions import (
    BASE,
    LONGEST,
    SIZES,
    Decision,
    decide,
    decisions,
    draw_growth,
    growth_table,
    rules,
    slope,
)


def test_the_slope_is_the_exponent_of_the_last_two_sizes() -> None:
    ones = [Decision(n, 5.0, 0) for n in (1, 10)]
    ones += [Decision(n, 1e-4 * n**2, 0) for n in (100, 300)]
    assert math.isclose(slope(ones), 2.0)
    assert math.isnan(slope(ones[:1]))


@pytest.mark.parametrize("name", rules())
def test_every_rule_decides(name: str) -> None:
    assert decide(name, rows=60, measurements=8, batch=3, inputs=2) > 0


def test_nothing_larger_is_tried_after_a_long_decision(monkeypatch) -> None:
    tried = []

    def made_up(name: str, **size: int) -> float:
        tried.append((name, size))
        return 2 * LONGEST if size["rows"] >= 3_000 else 1.0

    monkeypatch.setattr(speed_decisions, "decide", made_up)
    found = decisions("Straddle", "rows", SIZES["rows"])
    assert [one.size for one in found] == [1_000, 3_000]
    others = {"measurements": 100, "batch": 8, "inputs": 3}
    assert tried[1:] == [("Straddle", {"rows": n, **others}) for n in (1_000, 3_000)]
    sizes = SIZES["rows"]
    made = {(rule, "rows"): found for rule in rules()}
    table = growth_table("rows", sizes, made)
    assert table.rows[0][1:6] == ("1", "60", "", "", "")
    assert float(table.rows[0][6]) == round(math.log(60) / math.log(3), 2)


def test_the_picture_has_a_line_for_each_rule_and_axis() -> None:
    pytest.importorskip("matplotlib")
    records = [
        {"rule": rule, "axis": axis, "size": n, "seconds": 0.1 * n, "peak": 10 * n}
        for rule in ("a", "b")
        for axis in BASE
        for n in (1, 2)
    ]
    figure = draw_growth(records)
    assert len(figure.axes) == 2 * len(BASE)
    assert all(len(axes.lines) == 2 for axes in figure.axes)
    assert {axes.get_xlabel() for axes in figure.axes} == {"", *BASE}
