r"""The reproduction of TruVaR's paper on small problems."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound
from botorch.models import SingleTaskGP

from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.strategies import MaxVarianceStrategy
from research.benchmark.__main__ import main
from research.benchmark.registry import entries
from research.papers.bogunovic2016 import experiment, level_sets
from research.papers.bogunovic2016.claims import trimmed_mean
from research.papers.bogunovic2016.level_sets import Sizes, spending
from research.papers.bogunovic2016.optimisation import best_so_far, start_rows
from research.papers.bogunovic2016.problems import (
    HIGH,
    LAKE,
    LEVELS,
    PRICES,
    PricedProblem,
    lake_problem,
    levels_problem,
    one_level,
    peak_problem,
    sea_trip,
    smooth_prior,
    smooth_sample,
)
from research.papers.bogunovic2016.runs import (
    PoolModel,
    PricedRun,
    run_priced,
)

SMALL = Sizes(8, 2, 1, 8, 1, 1, 30.0, 1, 6, 1, 5)


# --- problems -----------------------------------------------------------------------


def test_the_boat_pays_for_every_metre_and_every_dive() -> None:
    problem = lake_problem(0, 5)
    travel = problem.travel
    assert travel is not None
    X = problem.pool.X * torch.tensor(LAKE)
    rows = torch.tensor([0, 7, 24])
    dive = 4 * (X[rows, 1] + 1)
    torch.testing.assert_close(travel(None, rows), dive)
    torch.testing.assert_close(travel(24, rows), dive + 0.25 * (1400 - X[rows, 0]))
    assert float(problem.above.double().mean()) == pytest.approx(0.3, abs=0.05)


def test_the_ship_pays_for_every_kilometre() -> None:
    problem = sea_trip(0)
    travel = problem.travel
    assert travel is not None
    X = problem.pool.X
    assert 400 < len(problem.pool) < 700
    way = (X[[3, 9]] - X[4]).norm(dim=-1)
    torch.testing.assert_close(travel(4, torch.tensor([3, 9])), 1.0 + way)
    assert torch.equal(travel(None, torch.tensor([3])), torch.ones(1).double())


def test_noise_levels_measure_one_function() -> None:
    problem = levels_problem(0, 12)
    N = 144
    assert torch.equal(problem.truth[:N], problem.truth[2 * N :])
    assert float((problem.truth[:N] > HIGH).double().mean()) >= 0.02
    rows = torch.zeros(4000, dtype=torch.long)
    for k, level in enumerate(LEVELS):
        y = problem.measure(rows + k * N, problem.noise_generator())
        assert float(y.var()) == pytest.approx(level, rel=0.1)
        single = one_level(problem, k)
        assert single.pool.costs[0] == PRICES[k] == problem.pool.costs[k * N]
        assert torch.equal(single.truth, problem.truth[:N])


def test_smooth_samples_have_the_kernels_covariance() -> None:
    draws = torch.stack([smooth_sample(seed, 5) for seed in range(4000)])
    pool = Pool(torch.cartesian_prod(*[torch.linspace(0, 1, 5).double()] * 2))
    want = smooth_prior().covariance(pool.X, pool.X)
    found = draws.mT @ draws / len(draws)
    assert float((found - want).abs().max()) < 4 * (2 / len(draws)) ** 0.5


def test_peaks_are_posterior_means_through_their_anchors() -> None:
    problem = peak_problem(3, 10)
    generator = torch.Generator().manual_seed(6)
    anchors = torch.rand(200, 2, generator=generator, dtype=torch.float64)
    white = torch.randn(200, generator=generator, dtype=torch.float64).numpy()
    prior = smooth_prior()
    K = prior.covariance(anchors, anchors).numpy() + 1e-8 * np.eye(200)
    values = np.linalg.cholesky(K) @ white
    cross = prior.covariance(problem.pool.X, anchors).numpy()
    want = cross @ np.linalg.solve(K, values)
    np.testing.assert_allclose(problem.truth.numpy(), want, atol=1e-4)


# --- runs ---------------------------------------------------------------------------


def test_a_priced_run_adds_up_what_it_pays() -> None:
    problem = lake_problem(1, 6)
    strategy = MaxVarianceStrategy(
        problem.pool, problem.threshold, model=problem.prior, beta=9.0
    )
    run = run_priced(problem, strategy, 300.0)
    travel = problem.travel
    assert travel is not None
    paid, previous = [0.0], None
    for row in run.rows.tolist():
        paid.append(paid[-1] + float(travel(previous, torch.tensor([row]))))
        previous = row
    assert run.cost.tolist() == pytest.approx(paid)
    assert run.cost[-2] < 300.0 <= run.cost[-1]
    unit = run_priced(problem, strategy, 4.0, unit=True)
    assert unit.cost.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_runs_are_read_at_costs_and_scores() -> None:
    exact = {"dtype": torch.float64}
    run = PricedRun(
        torch.tensor([0.0, 3.0, 7.0], **exact),
        torch.tensor([0.1, 0.8, 0.96], **exact),
        torch.tensor([4, 2]),
    )
    assert run.at(torch.tensor([0.0, 2.9, 3.0, 6.9, 50.0])).tolist() == [
        0.1,
        0.1,
        0.8,
        0.8,
        0.96,
    ]
    assert run.cost_to(0.5) == 3.0
    assert run.cost_to(0.99) == float("inf")
    assert spending([run], 2).tolist() == [0.0, 10.0, 2.0]


@pytest.mark.parametrize("rule", ["ei", "ucb"])
def test_rivals_are_botorchs_functions_of_the_same_posterior(rule: str) -> None:
    problem = peak_problem(0, 6)
    X, at = problem.pool.X, torch.tensor([3, 20, 30])
    y, noise = problem.truth[at], torch.full((3,), 1e-4).double()
    posterior = PoolPosterior.start(problem.prior, X).observe(at, y, noise)
    exact = SingleTaskGP(
        X[at],
        y.unsqueeze(-1),
        noise.unsqueeze(-1),
        covar_module=problem.prior.covar_module,
        mean_module=problem.prior.mean_module,
        outcome_transform=None,
    ).eval()
    values = []
    for model in (PoolModel(posterior), exact):
        best = float(y.max())
        function = {
            "ei": lambda m, best=best: LogExpectedImprovement(m, best),
            "ucb": lambda m: UpperConfidenceBound(m, 2.0),
        }[rule](model)
        with torch.no_grad():
            values.append(function(X.unsqueeze(-2)))
    torch.testing.assert_close(*values, rtol=1e-5, atol=1e-6)


def test_best_values_so_far_never_get_worse() -> None:
    pool = Pool(torch.arange(5.0).unsqueeze(-1))
    truth = torch.tensor([0.0, 3.0, 1.0, 5.0, 2.0]).double()
    problem = PricedProblem(pool, truth, smooth_prior(), 0)
    found = best_so_far(problem, torch.tensor([2, 0, 1]), 5)
    assert found.tolist() == [4.0, 4.0, 2.0, 2.0, 2.0]
    assert len(set(start_rows(problem))) == 3


def test_trimmed_means_drop_the_best_and_worst() -> None:
    runs = torch.arange(40.0).unsqueeze(-1)
    runs[0], runs[-1] = -1e9, 1e9
    assert float(trimmed_mean(runs)) == pytest.approx(19.5)


# --- commands -----------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "QUICK", SMALL)
    monkeypatch.setattr(level_sets, "SEA_BUDGET", 60.0)
    monkeypatch.setattr(level_sets, "LAKE_BUDGET", 300.0)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")
@pytest.mark.filterwarnings("ignore::botorch_lse.models.gaussian_process.JitterWarning")
def test_paper_prints_claims_and_writes_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "bogunovic2016", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for start in ("lake, unit cost: TruVaR", "sea: cheaper", "noise levels", "maxima"):
        assert f"| {start}" in printed
    assert "SVM grid: skipped" in printed
    names = {p.stem for p in tmp_path.iterdir()}
    assert {"lake_paths", "sea_cost", "levels", "levels_spent", "maxima"} <= names
    content = json.loads((tmp_path / "results.json").read_text())
    assert len(content["maxima"]["EI"][0]) == SMALL.steps
    assert content["levels"]["TruVaR, all levels"][0]["cost"][0] == 0.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.filterwarnings("ignore::botorch_lse.models.gaussian_process.JitterWarning")
def test_svm_grid_is_run_where_its_file_is(tmp_path: Path) -> None:
    line = np.linspace(0, 1, 4)
    X = np.array(np.meshgrid(line, line, line)).reshape(3, -1).T
    error = ((X - 0.4) ** 2).sum(axis=1)
    table = np.column_stack((X, error))
    np.savetxt(tmp_path / experiment.SVM_FILE, table, delimiter=",")
    part = experiment.svm_part(tmp_path, SMALL)
    assert part.claims[0].claim.startswith("SVM grid")
    for runs in part.data["svm"].values():
        assert len(runs[0]) == SMALL.svm_steps
        assert (np.diff(runs[0]) <= 0).all()
    assert experiment.svm_part(None, SMALL).claims == ()


def test_seeds_set_the_number_of_runs() -> None:
    sizes = experiment.sizes_of(seeds=7)
    assert (sizes.lake, sizes.unit, sizes.sea, sizes.peaks) == (7, 7, 7, 7)
    assert sizes.grid == Sizes().grid


def test_list_names_the_entries() -> None:
    names = {f"{e.kind} {e.name}" for e in entries()}
    assert {
        "paper bogunovic2016",
        "guarantee truvar",
        "guarantee truvar_max",
        "speed truvar",
    } <= names


@pytest.mark.slow
@pytest.mark.exhaustive
def test_quick_paper_runs_in_a_fresh_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "botorch_lse.benchmark", "paper", "bogunovic2016"]
    subprocess.run([*command, "--quick", "--out", str(tmp_path)], check=True)
    assert (tmp_path / "results.json").exists()
