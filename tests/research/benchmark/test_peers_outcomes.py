r"""Answers of yes and no: the problems, and a run beside published errors."""

from __future__ import annotations

import json
import shlex
import sys

import pytest
import torch

from botorch_lse.strategies import Binary
from research.benchmark import peers_decisions, peers_outcomes
from research.benchmark.peers_outcomes import Job, Run, cube, outcomes, report, run
from research.benchmark.peers_outcomes_problems import (
    CSF,
    PROBLEMS,
    contrast_sensitivity,
)
from research.benchmark.registry import Options, entries

PEER = """
import json, sys
case, seen = json.loads(sys.stdin.readline()), 0
print("{}", flush=True)
for line in sys.stdin:
    seen += len(json.loads(line)["rows"])
    answer = {"rows": list(range(seen, seen + case["q"])), "seconds": seen / 100}
    print(json.dumps({**answer, "below": [0.25] * len(case["test"])}), flush=True)
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_outcomes, "AT", (20, 40, 60))
    monkeypatch.setattr(peers_outcomes, "ROWS", 90)


# The third share is that of the fit whose values are stored.
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("discrimination, 2-D", 0.0629),
        ("Hartmann, 6-D", 0.4193),
        ("contrast sensitivity, 6-D", 0.579),
        ("discrimination, 8-D", 0.3161),
    ],
)
def test_share_below_the_level_is_that_of_the_published_problem(name, share):
    problem = PROBLEMS[name]
    p = Binary().value(problem.latent(cube(2**14, problem.d, 0)))
    assert float((p <= problem.level).double().mean()) == pytest.approx(share, abs=0.01)


def test_the_stored_fit_is_interpolated_and_never_below_chance():
    values = torch.tensor(json.loads(CSF.read_text())["values"]).double()
    points = torch.quasirandom.SobolEngine(6).draw(257, dtype=torch.float64)[1:]
    off = contrast_sensitivity(points) - values.clamp_min(0)
    assert float(off.abs().max()) < 0.002  # of values with three digits
    assert float(contrast_sensitivity(cube(1000, 6, 1)).min()) == 0


def test_contrast_is_easier_to_see_where_there_is_more():
    low, high = torch.full((2, 6), 0.5, dtype=torch.float64)
    low[0], high[0] = 0.1, 0.9
    f = contrast_sensitivity(torch.stack((low, high)))
    assert f[0] < f[1]


def test_a_run_is_scored_and_stands_beside_published_errors():
    found = [
        one
        for method in peers_outcomes.METHODS
        for one in run(Job("discrimination, 2-D", method, 0))
    ]
    for one in found:
        assert one.trials == (20, 40, 60)
        assert all(0 <= score < 0.4 for score in one.brier)
        assert all(0 <= error < 0.4 for error in one.expected)
        assert all(0 <= share < 0.3 for share in one.hard)
        assert len(one.seconds) == 6
    text = report(found).text()
    assert "ours: quasi-random" in text
    assert "published: GlobalMI" in text
    again = [Run.of_record(json.loads(json.dumps(one.record()))) for one in found]
    assert again == found


def test_scores_are_those_of_the_definition():
    below = torch.tensor([0.25, 0.75, 0.5, 1.0], dtype=torch.float64)
    is_below = torch.tensor([False, False, True, True])
    brier, expected, hard = peers_outcomes._scores(below, is_below)
    # 2 (I - p)^2 and p (1 - I) + (1 - p) I, by hand.
    assert brier == pytest.approx(2 * (0.25**2 + 0.75**2 + 0.5**2 + 0) / 4)
    assert expected == pytest.approx((0.25 + 0.75 + 0.5 + 0) / 4)
    assert hard == pytest.approx(2 / 4)


def test_a_package_with_its_own_model_plays_the_same_problem(tmp_path):
    command = shlex.join([sys.executable, "-c", PEER])
    options = Options(
        seeds=1,
        workers=1,
        only=("discrimination, 2-D",),
        packages=(f"theirs={command}",),
        record=tmp_path / "runs.jsonl",
    )
    job = Job("discrimination, 2-D", "theirs", 0)
    (found,) = run(job, {"theirs": command})
    error = 0.25 * (1 - 0.0629) + 0.75 * 0.0629
    assert found.expected == pytest.approx((error,) * 3, abs=0.02)
    assert found.seconds == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    ours = [next(iter(run(Job(job.problem, m, 0)))) for m in peers_outcomes.METHODS]
    lines = [json.dumps(one.record()) + "\n" for one in (found, *ours)]
    options.record.write_text("".join(lines))
    shown = outcomes(options)
    brier, _ = shown.tables
    assert {"theirs", "ours: default"} <= {row[1] for row in brier.rows}
    assert {row[0] for row in brier.rows} == {"discrimination, 2-D"}
    with pytest.raises(ValueError, match=r"Expected `--only` to be one of .*Hartmann"):
        outcomes(Options(only=("hartmann",)))


def test_one_decision_is_timed_beside_a_package(monkeypatch):
    monkeypatch.setattr(peers_decisions, "ANSWERS", (30,))
    monkeypatch.setattr(peers_decisions, "METHODS", ("default",))
    jobs = [
        peers_decisions.Job("discrimination, 2-D", method, 30, 0)
        for method in ("default", "theirs")
    ]
    command = shlex.join([sys.executable, "-c", PEER])
    found = [
        one for job in jobs for one in peers_decisions.run(job, {"theirs": command})
    ]
    assert found[0].seconds > 0
    (table,) = peers_decisions.report(found).tables
    assert table.rows[1] == ("discrimination, 2-D", "theirs", "0.30")


def test_the_command_line_knows_it():
    assert {"outcomes", "decisions"} <= {e.name for e in entries("peers")}
