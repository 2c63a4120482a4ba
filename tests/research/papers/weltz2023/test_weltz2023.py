import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from botorch_lse.estimators import ArmStatistics, quadratic_features
from research.benchmark.__main__ import main
from research.papers.weltz2023 import experiment
from research.papers.weltz2023.problems import (
    LinearProblem,
    benchmark,
    signal_to_noise,
    sphere_problem,
    web_page,
)
from research.papers.weltz2023.runs import (
    EXAMPLES,
    Example,
    h_rage,
    noisier,
    run_to_the_end,
    variance_errors,
)

SMALL = LinearProblem(
    torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]).double(),
    torch.tensor([1.0, -1.0]).double(),
    torch.tensor([0.5, 2.0]).double(),
)


@pytest.mark.slow
def test_drawn_statistics_are_distributed_as_those_of_single_values() -> None:
    r"""4,000 draws of 5 values of 3 arms, seeds 0 and 1: mean, variance and covariance
    of the arm's mean and scatter, within four standard errors.
    """
    runs, k = 4000, 5
    rng = np.random.default_rng(0)
    counts = torch.full((3,), k)
    drawn = [SMALL.draw(counts, rng) for _ in range(runs)]
    rng = np.random.default_rng(1)
    rows = torch.arange(3).repeat_interleave(k)
    std = SMALL.variances.sqrt()[rows].numpy()
    single = []
    for _ in range(runs):
        y = SMALL.means[rows].numpy() + std * rng.standard_normal(len(rows))
        single.append(ArmStatistics.of_values(rows, y, 3))
    for name in ("means", "scatter"):
        ours, theirs = (
            torch.stack([getattr(s, name) for s in runs]) for runs in (drawn, single)
        )
        for power in (1, 2):
            a, b = ours**power, theirs**power
            error = ((a.var(dim=0) + b.var(dim=0)) / runs).sqrt()
            assert bool(((a.mean(dim=0) - b.mean(dim=0)).abs() < 4 * error).all())


def test_arms_that_are_not_measured_stay_unknown() -> None:
    rng = np.random.default_rng(0)
    data = SMALL.measure(torch.tensor([0, 1, 7]), 3, rng)
    assert data.indices.tolist() == [1, 2]
    assert data.round.tolist() == [3, 3]
    assert data.counts.tolist() == [1, 7]
    assert float(data.yvar[0]) == 0.0


def test_example_1_is_the_papers() -> None:
    problem = signal_to_noise()
    gaps = problem.means.max() - problem.means
    assert len(problem.X) == 9
    assert float(gaps.sort().values[1]) == pytest.approx(1 - math.cos(0.02))
    assert problem.variances[:4].tolist() == pytest.approx([1, 1, 0.16, 0.16])
    rank = torch.linalg.matrix_rank(quadratic_features(problem.X))
    assert int(rank) == 9  # one less than d (d + 1) / 2


def test_example_2_is_the_papers() -> None:
    problem = benchmark()
    assert len(problem.X) == 6
    quiet = [
        n for n, v in zip(problem.names, problem.variances, strict=True) if v < 0.3
    ]
    assert quiet == ["e3", "e2 + e3"]


def test_example_3_is_the_papers() -> None:
    problem = web_page()
    best = problem.means.sort(descending=True)
    assert problem.names[int(best.indices[0])] == "001"
    assert float(best.values[0] - best.values[1]) == pytest.approx(0.005)
    assert float(problem.variances[0]) == pytest.approx(0.3)


def test_the_spheres_have_their_radii() -> None:
    problem = sphere_problem(5, 0)
    lengths = problem.X.norm(dim=1)
    torch.testing.assert_close(lengths[:200], torch.ones(200).double())
    torch.testing.assert_close(lengths[200:], torch.full((1800,), 0.1).double())


def test_ignoring_a_noisy_arm_costs_nothing_first_and_its_ratio_in_the_end() -> None:
    assert noisier(1.0).ratio == pytest.approx(1.0, abs=1e-5)
    a, b = noisier(20.0), noisier(40.0)
    assert a.informative == b.informative == 0.0
    assert b.ratio / a.ratio == pytest.approx(2.0, rel=1e-5)


@pytest.mark.slow
def test_head_beats_the_others_in_high_dimension() -> None:
    runs = [variance_errors(15, (95_000,), seed) for seed in range(3)]
    mean = {name: np.mean([r[name] for r in runs]) for name in runs[0]}
    assert mean["HEAD"] * 1.5 < mean["Uniform"]
    assert mean["HEAD"] < mean["Separate Arm"]


def test_a_whole_run_of_example_1_takes_seconds() -> None:
    run = run_to_the_end(signal_to_noise(), h_rage(signal_to_noise()), 0)
    assert run.right
    assert run.samples > 4_000_000
    assert run.burn_in == 74_017
    assert run.seconds < 10


@pytest.mark.parametrize("title", EXAMPLES)
def test_oracles_are_certified_and_bounded_by_kappa(title: str) -> None:
    problem = EXAMPLES[title]()
    psi, rho = problem.psi, problem.rho
    assert max(psi.design.gap, rho.design.gap) <= 1e-6
    low, high = problem.bounds
    assert low / high - 1e-6 <= psi.value / rho.value <= 1 + 1e-6
    A = problem.X.mT @ (
        (psi.design.weights / problem.variances).unsqueeze(-1) * problem.X
    )
    best = int(problem.means.argmax())
    others = torch.arange(len(problem.X)) != best
    V = problem.X[best] - problem.X[others]
    gaps = problem.means[best] - problem.means[others]
    ratios = (V @ torch.linalg.pinv(A) * V).sum(dim=1) / gaps.square()
    assert float(ratios.max()) == pytest.approx(psi.value, rel=1e-6)


@pytest.mark.slow
def test_heteroskedastic_samples_are_fewer() -> None:
    example = Example.run("2", benchmark, 2)
    h, r = example.samples("H-RAGE").mean(), example.samples("RAGE").mean()
    assert float(h / r) <= 0.5
    assert example.lower_bound < float(example.samples("H-RAGE").min())
    assert example.wrong("H-RAGE").wrong == 0
    assert example.burn_in("RAGE") == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")
def test_the_paper_prints_claims_and_writes_results_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "SIZES", (15_000, 95_000))
    monkeypatch.setattr(experiment, "DIMENSIONS", (3, 11))
    assert main(["paper", "weltz2023", "--seeds", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| claim " in printed
    assert "samples / lower bound" in printed
    assert {p.name for p in tmp_path.iterdir()} == {
        "results.json",
        "fig1c_kappa.png",
        "fig2_errors.png",
        "fig3_samples.png",
        "fig4_oracles.png",
        "fig5_oracles.png",
        "fig6_oracles.png",
    }
    content = json.loads((tmp_path / "results.json").read_text())
    assert len(content["samples"]["Example 1: signal to noise"]["RAGE"]) == 1
