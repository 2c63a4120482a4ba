r"""Packages with models of their own beside ours."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
import torch

from research.benchmark import peers_models
from research.benchmark.peers_models import AT, Job, Run, report, run
from research.benchmark.registry import entries
from research.report import Report

PEER = """
import sys
sys.path.insert(0, sys.argv[1])
from protocol import serve

def start(case):
    level, seen = case["threshold"], {}
    def choose(rows, y):
        seen.update(zip(rows, y))
        open_rows = [i for i in range(len(case["X"])) if i not in seen]
        return open_rows[: case["q"]], [i for i, x in seen.items() if x > level]
    return choose

serve(start)
"""
FOLDER = Path(__file__).parents[3] / "research" / "benchmark" / "peers"


@pytest.fixture
def peer(tmp_path: Path) -> str:
    script = tmp_path / "peer.py"
    script.write_text(PEER)
    return shlex.join([sys.executable, str(script), str(FOLDER)])


def test_a_package_is_judged_by_what_it_calls_above(peer: str) -> None:
    r"""It takes row after row, and calls those above that it has seen above."""
    (found,) = run(Job("Hartmann-3", "peer", 3), commands={"peer": peer})
    case = peers_models.REPORTED["Hartmann-3"].case(3, None)
    first, wrong = peers_models.first_rows(case, 3), []
    assert len(first) == 8
    order = [*first.tolist(), *(i for i in range(len(case.pool)) if i not in first)]
    for n in (30, 38, 60):
        unseen = torch.ones(len(case.pool), dtype=torch.bool)
        unseen[order[:n]] = False
        wrong.append(int((case.above & unseen).sum()))
    assert found.wrong == tuple(wrong)


def test_ours_begins_with_the_same_rows_and_counts_as_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers_models, "AT", (10.0, 10.5, 11.0))
    (found,) = run(Job("Himmelblau", "single", 0))
    assert len(found.wrong) == 3
    assert all(0 < wrong < 841 for wrong in found.wrong)
    assert found.seconds > 0
    assert len(found.held) == 3
    assert all(0.5 < share <= 1 for share in found.held)
    assert all(0.7 < share <= 1 for share in found.left_out)


@pytest.mark.parametrize("method", ["straddle", "random rows"])
def test_other_rules_choose_other_rows(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_models, "AT", (4.0, 8.0, 12.0))
    own, other = (run(Job("Himmelblau", name, 0))[0] for name in ("default", method))
    assert own.wrong != other.wrong


def test_intervals_are_counted_by_method() -> None:
    runs = [Run(Job("a", "default", k), (1, 1, 1), 2.0, (0.9, 0.8, share))
            for k, share in enumerate((0.5, 0.7))]  # fmt: skip
    found = report([*runs, Run(Job("a", "other", 0), (1, 1, 1), 2.0)])
    (line,) = found.tables[2].rows
    assert line == ("default", 2, "90.0%", "80.0%", "60.0%", "50.0%")
    assert not found.tables[3].rows


def test_the_default_is_compared_with_each_other_method() -> None:
    def one(problem: str, method: str, *wrong: int) -> Run:
        return Run(Job(problem, method, 0), wrong, 2.0)

    runs = [one("a", "default", 4, 2, 1), one("a", "other", 8, 2, 0),
            one("b", "default", 4, 2, 1), one("b", "other", 2, 2, 2)]  # fmt: skip
    found = report(runs)
    (line,) = found.tables[0].rows
    assert line[:2] == ("other", 2)
    assert line[2].startswith("1.00 ± ")  # a half and twice
    assert line[4].startswith("1.00 ± ")  # none counts as half a row
    assert len(found.tables[1].rows) == 4
    assert json.loads(json.dumps(found.data))["runs"][0]["wrong"] == [4, 2, 1]
    assert len(AT) == 3


def test_it_is_an_entry() -> None:
    found = {(one.kind, one.name) for one in entries()}
    assert ("peers", "models") in found


def test_notes_are_sentences() -> None:
    with pytest.raises(TypeError, match="`notes`"):
        Report("title", "one")
