r"""Errors where some values are wrong."""

from __future__ import annotations

import json

from research.benchmark.peers_slips import SHARES, Job, Run, report, run
from research.benchmark.registry import find


def test_slips_are_found_and_right_values_stay() -> None:
    (found,) = run(Job("Hartmann-3", 0.05, True, 0))
    assert found.slips > 0
    assert found.found > 0
    assert found.right <= 1
    (clean,) = run(Job("Hartmann-3", 0.0, True, 0))
    assert clean.slips == clean.found == 0
    assert 0 < clean.late < 200


def test_errors_are_over_those_without_slips() -> None:
    runs = [
        Run(Job("a", share, False, 0), late, 10, 7, 1, 2)
        for share, late in zip(SHARES, (4.0, 4.0, 8.0, 2.0), strict=True)
    ]
    rows = report([*runs, *runs]).tables[0].rows
    assert [row[3] for row in rows] == [
        "1.00 ± 0.00", "1.00 ± 0.00", "2.00 ± 0.00", "0.50 ± 0.00"
    ]  # fmt: skip
    assert rows[0][:3] == ("learnt", "0%", 2)
    assert rows[0][4:] == ("14 of 20", 2, 4)
    assert len(json.loads(json.dumps(report(runs).data))["runs"]) == 4


def test_it_is_an_entry() -> None:
    assert find("peers", "slips").summary
