import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from botorch_lse.confidence.classify import Sides, explicit_sides
from botorch_lse.functional.scores import ambiguity
from research.benchmark.__main__ import main
from research.papers.mason2022 import experiment
from research.papers.mason2022.allocation import allocate
from research.papers.mason2022.curves import score_run
from research.papers.mason2022.linear import (
    ExplicitRule,
    ImplicitRule,
    LinearRuns,
    RKHSWidth,
    run_linear,
    wrong_rows,
)
from research.papers.mason2022.problems import METHODS, PANELS
from research.papers.mason2022.soare import arms

WIDTH = RKHSWidth(None, 1.0, 0.5, 0.1)


def linear_runs(runs: int = 2, N: int = 12, m: int = 3) -> LinearRuns:
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(runs, N, m, generator=generator, dtype=torch.float64)
    X = X / X.norm(dim=-1, keepdim=True)
    streams = [torch.Generator().manual_seed(seed) for seed in range(runs)]
    return LinearRuns(X, X[..., 0].clone(), streams, 0.5)


def test_rank_one_updates_equal_the_dense_ridge_solution() -> None:
    runs = linear_runs()
    generator = torch.Generator().manual_seed(1)
    chosen, y = [], []
    noise = [torch.Generator().manual_seed(seed) for seed in range(2)]
    for _ in range(40):
        rows = torch.randint(12, (2,), generator=generator)
        chosen.append(rows)
        runs.measure(rows)
    white = torch.stack(
        [torch.randn(1024, generator=g, dtype=torch.float64) for g in noise]
    )
    for r in range(2):
        rows = torch.stack(chosen)[:, r]
        x = runs.X[r, rows]
        y = runs.truth[r, rows] + 0.5 * white[r, :40]
        A = torch.eye(3, dtype=torch.float64) + x.mT @ x
        torch.testing.assert_close(runs.mean[r], runs.X[r] @ A.inverse() @ x.mT @ y)
        norms = (runs.X[r] @ A.inverse() * runs.X[r]).sum(dim=-1)
        torch.testing.assert_close(runs.norms[r], norms)
        assert float(runs.information[r]) == pytest.approx(0.5 * float(A.logdet()))


def test_explicit_rule_is_lse_on_each_run() -> None:
    runs, rule = linear_runs(), ExplicitRule(0.2)
    for _ in range(30):
        runs.intersect(WIDTH)
        before = runs.side.clone()
        rule.decide(runs)
        for r in range(2):
            sides = explicit_sides(runs.lower[r], runs.upper[r], 0.2, 0.0)
            open_ = before[r] == 0
            assert torch.equal(runs.side[r][open_], sides[open_])
            assert torch.equal(runs.side[r][~open_], before[r][~open_])
            scores = ambiguity(runs.lower[r], runs.upper[r], 0.2)
            if bool(runs.candidates[r].any()):
                best = scores[runs.candidates[r]].max()
                assert scores[rule.choose(runs)[r]] == best
        runs.measure(rule.choose(runs))


def test_implicit_rule_is_lse_imp_on_each_run() -> None:
    runs, rule = linear_runs(), ImplicitRule(0.5)
    expected = [Sides.start(12) for _ in range(2)]
    for _ in range(300):
        runs.intersect(WIDTH)
        rule.decide(runs)
        for r in range(2):
            expected[r] = expected[r].update_implicit(
                runs.lower[r], runs.upper[r], 0.5, 0.0
            )
            assert torch.equal(runs.side[r], expected[r].side)
            assert torch.equal(runs.candidates[r], expected[r].candidates)
        runs.measure(rule.choose(runs))
    assert bool((runs.side != 0).any())


@pytest.mark.slow
def test_a_run_is_the_same_alone_and_among_others() -> None:
    together = run_linear(linear_runs(), ExplicitRule(0.2), WIDTH, 5000)
    alone = linear_runs()
    alone.keep(torch.tensor([False, True]))
    (second,) = run_linear(alone, ExplicitRule(0.2), WIDTH, 5000)
    assert second.measurements == together[1].measurements
    assert torch.equal(second.side, together[1].side)
    assert wrong_rows(second.side, linear_runs().truth[1] > 0.2) == 0


def test_runs_stop_at_the_limit() -> None:
    ended = run_linear(linear_runs(), ExplicitRule(0.2), WIDTH, 3)
    assert [end.measurements for end in ended] == [3, 3]


def test_the_width_is_that_of_chowdhury_and_gopalan() -> None:
    none = torch.zeros(1, dtype=torch.float64)
    first = RKHSWidth(25, 1.0, 2.0, 0.1)(0, none)
    assert float(first) == pytest.approx(1 + 2 * math.sqrt(2 * (1 + math.log(10))))
    later = RKHSWidth(25, 1.0, 2.0, 0.1)(100, none)
    gain = 12.5 * math.log(5)
    assert float(later) == pytest.approx(
        1 + 2 * math.sqrt(2 * (gain + 1 + math.log(10)))
    )


def test_realised_information_never_exceeds_the_bound() -> None:
    runs = linear_runs()
    for n in range(1, 200):
        runs.measure(runs.norms.argmax(dim=-1))
        assert bool((runs.information <= 1.5 * math.log1p(n / 3)).all())


@pytest.mark.parametrize("spanning", [False, True])
def test_soare_arms_are_as_printed(spanning: bool) -> None:
    X = arms(0, spanning)
    assert X.shape == (100, 25)
    assert int(torch.linalg.matrix_rank(X)) == (25 if spanning else 2)
    torch.testing.assert_close(X.norm(dim=-1), torch.ones(100, dtype=torch.float64))
    gaps = (X[25:, 0] - 0.5).abs()
    assert math.cos(0.3 * math.pi) - 0.5 <= float(gaps.min()) < 0.15


def test_panels_have_the_level_at_their_quantile() -> None:
    for panel in PANELS:
        problem = panel.problem(1)
        share = 0.1 if panel.function == "gp" else 0.3
        found = float(problem.above.double().mean())
        assert found == pytest.approx(share, abs=0.01)
    assert {f for p in PANELS for f in p.figures} == {"2b", "2c", "3", "4", "5"}


def test_scores_are_read_at_every_tenth_measurement() -> None:
    problem = PANELS[0].problem(0)
    for method in METHODS:
        scores = score_run(problem, method.build(problem, 40), 40)
        assert scores.shape == (4, 2)
        assert bool(((scores >= 0) & (scores <= 1)).all())


def test_designs_add_up_to_allocations() -> None:
    found = allocate(0, 8)
    for by_draws in (False, True):
        total = found.total(by_draws)
        assert float(total.sum()) == pytest.approx(1.0)
        assert 0 <= found.distance(total, 2) <= found.distance(total) <= 1
    assert found.distance(found.oracle) == 0
    assert found.loss(found.oracle) == pytest.approx(1.0, rel=1e-3)
    assert found.loss(found.total()) >= 1 - 1e-2
    assert found.active == sorted(found.active, reverse=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")
def test_the_paper_prints_claims_and_writes_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(
        experiment.QUICK,
        seeds=2,
        n=80,
        panels=(1,),
        grid=8,
        soare_seeds=1,
        limit=200,
    )
    monkeypatch.setattr(experiment, "QUICK", small)
    command = ["paper", "mason2022", "--quick", "--out", str(tmp_path)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "2b: mean F1 of the declared set, MELK less VR" in printed
    assert "MILK needs fewer samples than LSE_imp" in printed
    assert {p.name for p in tmp_path.iterdir()} == {
        "results.json",
        *(f"figure_{name}.png" for name in ("1", "2a_6", "2b", "3")),
    }
    content = json.loads((tmp_path / "results.json").read_text())
    assert len(content["declared_f1"][PANELS[1].key]["MELK"][0]) == 8
    assert content["samples"][0]["wrong"] == 0
