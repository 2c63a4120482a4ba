import json
from pathlib import Path

import pytest

from research.benchmark import speed_design
from research.benchmark.design_instances import Instance
from research.benchmark.registry import Options, find
from research.benchmark.speed_design import Comparison, Run

SMALL = (
    Instance("kernel", (1e-2, 1e-3), 60.0, 9.0, points=30, lengthscale=0.2, gamma=0.1),
    Instance(
        "pairs",
        (1e-2,),
        60.0,
        points=10,
        lengthscale=0.2,
        gamma=0.1,
        pairs_factor=0.9,
        compared=False,
    ),
    Instance("linear", (1e-2,), 60.0, points=50),
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")
def test_all_solvers_are_compared_on_the_same_instances(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(speed_design, "INSTANCES", SMALL)
    monkeypatch.setattr(speed_design, "CLOCKS", (0.05,))
    monkeypatch.setattr(speed_design, "in_fresh_process", lambda f, *a: f(*a))
    report = find("speed", "design").run(Options())
    ours, others = report.tables
    assert [row[0] for row in ours.rows] == ["kernel", "kernel", "pairs", "linear"]
    assert sum("met" in row[2] for row in ours.rows) == 3  # the last gap of each
    solvers = {(row[0], row[1]) for row in others.rows}
    assert solvers == {
        ("kernel", "ours"),
        ("kernel", "Frank-Wolfe"),
        ("linear", "ours"),
        ("linear", "Frank-Wolfe"),
        ("linear", "mirror descent"),
    }
    paths = report.write(tmp_path)
    assert [p.name for p in paths] == ["results.json", "design.png"]
    for run in json.loads(paths[0].read_text())["runs"]:
        assert -1e-9 <= run["true gap at most"] <= run["certified gap"] + 1e-9


def test_the_true_gap_is_measured_from_the_best_bound() -> None:
    ours = [Run(1.0, 2.2, 0.1, 0, 3), Run(2.0, 2.1, 0.01, 0, 3)]
    comparison = Comparison(SMALL[0], ours)
    assert comparison.lower_bound == pytest.approx(2.1 / 1.01)
    assert comparison.true_gap(Run(3.0, 4.2, 9.0, 0, 3)) == pytest.approx(1.02)


def test_instances_are_those_of_the_targets() -> None:
    sizes = [len(i.problem()[0]) for i in speed_design.INSTANCES]
    assert sizes == [200, 900, 200, 10**5, 10**5, 10**4, 316**2]
