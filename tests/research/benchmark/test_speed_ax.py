from itertools import pairwise

import pytest

from research.benchmark import speed_ax
from research.benchmark.registry import Options, find


@pytest.mark.slow
def test_a_run_through_ax_asks_for_the_same_rows_and_is_measured():
    found = speed_ax.overhead(200, 12, 4)
    assert found.same
    assert 0 < found.strategy < found.client
    assert 0 < found.compact < found.json
    assert found.saves > 0


@pytest.mark.slow
def test_the_report_has_its_targets(monkeypatch):
    monkeypatch.setattr(speed_ax, "ROWS", 200)
    monkeypatch.setattr(speed_ax, "TRIALS", 8)
    monkeypatch.setattr(speed_ax, "in_fresh_process", lambda run, *given: run(*given))
    monkeypatch.setattr(speed_ax, "LONG_ROWS", 50)
    monkeypatch.setattr(speed_ax, "CHECKPOINTS", (10, 20, 40))
    report = find("speed", "ax").run(Options())
    rows = {row[0]: row[2] for row in report.tables[0].rows}
    assert rows["saved JSON (client.save_to_json_file)"].endswith("MB: met")
    assert rows["the rows that a run without Ax asks for"] == "the same: met"
    long = report.tables[1].rows
    assert [row[0] for row in long] == ["10", "20", "40"]
    assert long[-1][1].endswith("of 60 s: met")
    moments = report.data["long run"]
    for before, after in pairwise(moments):
        assert all(before[part] < after[part] for part in ("ours", "strategy", "ax"))
    assert all(at["strategy"] < at["ours"] for at in moments)
