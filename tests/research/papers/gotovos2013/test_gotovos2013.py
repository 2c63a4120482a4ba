import json
from pathlib import Path

import pytest

from research.benchmark.__main__ import main
from research.papers.gotovos2013 import experiment, problems
from research.papers.problems import gp_sample


@pytest.fixture
def small_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "GRID", 12)
    monkeypatch.setattr(experiment, "QUICK_MEASUREMENTS", 90)


@pytest.mark.slow
@pytest.mark.usefixtures("small_paper")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")
def test_paper_prints_claims_and_writes_results_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "SCENES", experiment.SCENES[:1])
    command = ["paper", "gotovos2013", "--quick", "--seeds", "1"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| claim " in printed
    assert "gp: LSE beats VAR" in printed
    assert {p.name for p in tmp_path.iterdir()} == {
        "results.json",
        "f1_gp.png",
        "points_gp.png",
    }
    curves = json.loads((tmp_path / "results.json").read_text())["curves"]["gp"]
    assert curves["LSE"]["evaluations"][-1] == 90
    assert len(curves["STR_rank"]["f1"][0]) == 3


def test_the_sea_problem_keeps_fit_and_evaluation_apart() -> None:
    problem = problems.sea_problem(0)
    assert len(problem.pool) == 4841 - problems.FIT_CELLS
    assert problem.omega * float(problem.truth.max()) == pytest.approx(100.0)
    assert 0.2 < float(problem.above.double().mean()) < 0.5


@pytest.mark.slow
def test_paper_samples_have_a_level_at_their_quantile() -> None:
    pool, _, _ = gp_sample(0, 60, problems.LENGTHSCALES)
    problem = problems.sample_problem(0)
    assert len(pool) == len(problem.pool) == 3600
    assert float(problem.above.double().mean()) == pytest.approx(0.3, abs=1e-3)
