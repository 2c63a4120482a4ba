import os
from pathlib import Path

import pytest
import torch

from research.papers.kone2025 import experiment, problems
from research.papers.kone2025.claims import noc_claims, synthetic_claims
from research.papers.kone2025.problems import (
    ENERGY_FILE,
    NOC_FILE,
    energy,
    noc,
    synthetic,
)
from research.papers.kone2025.runs import (
    Score,
    budgeted,
    confident,
    least_budget,
    score,
    trace,
)

ROOT = Path(__file__).resolve().parents[4]


def data_file(name: str) -> Path:
    r"""The file in a folder of the user's choice, or beside the checkout."""
    places = [os.environ.get("BOTORCH_LSE_DATA"), ROOT.parent / "shared" / "data"]
    for place in places:
        if place is not None and (Path(place) / name).is_file():
            return Path(place) / name
    pytest.skip(f"{name} is not there")


@pytest.mark.parametrize(("K", "h", "m"), [(10, 8, 2), (60, 8, 2), (40, 8, 4)])
def test_the_first_arms_have_the_smallest_gaps_for_every_size(K, h, m) -> None:
    instance = synthetic(K, h, m)
    gaps = instance.complexity.gaps
    assert float(gaps[h:].min()) > float(gaps[:h].max())
    assert torch.allclose(gaps[:h], synthetic(h, h, m).complexity.gaps)
    assert instance.complexity.rank == h
    other = synthetic(h, h, m).complexity.H_2_lin
    assert instance.complexity.H_2_lin == pytest.approx(other)


def test_smaller_instances_are_part_of_larger_ones_and_seeds_differ() -> None:
    small, large = synthetic(20, seed=3), synthetic(60, seed=3)
    assert torch.equal(large.X[:20], small.X)
    assert not torch.allclose(synthetic(20, seed=4).means[:8], small.means[:8])
    assert bool((large.means <= 0).all())


def test_an_instance_that_cannot_be_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(problems, "MAX_DRAWS", 3)
    with pytest.raises(ValueError, match="3000 draws with seed 3 gave 2"):
        synthetic(10, 2, 2, seed=3)


def test_simulated_means_have_the_stated_noise() -> None:
    instance = synthetic(10)
    rows = torch.zeros(20_000, dtype=torch.long)
    values = instance.measure(0)(rows, torch.full_like(rows, 4))
    error = values - instance.means[0]
    # 4 standard errors of a standard deviation from 20,000 values.
    assert float(error.std()) == pytest.approx(instance.noise_std / 2, rel=0.02)
    assert abs(float(error.mean())) < 4 * instance.noise_std / 2 / 200


def test_noc_is_the_instance_of_the_authors() -> None:
    instance = noc(data_file(NOC_FILE))
    assert instance.truth.nonzero().view(-1).tolist() == [0, 140, 164, 180]
    c = instance.complexity
    found = [c.H_1_lin, c.H_2_lin, c.H_1]
    assert found == pytest.approx([1973.8, 1780.3, 3993.6], abs=0.06)


def test_energy_has_rank_seven_and_two_or_three_pareto_arms() -> None:
    path = data_file(ENERGY_FILE)
    assert int(energy(path, False).truth.sum()) == 2
    assert int(energy(path, False, minimise=False).truth.sum()) == 3
    assert int(energy(path, True).truth.sum()) == 4
    assert energy(path, True).complexity.rank == 7


def test_a_score_counts_wrong_answers() -> None:
    instance = synthetic(10, noise_std=1e-6)
    found = score(instance, budgeted(400)["GEGE"], 3, "t")
    assert (found.wrong, found.runs, found.error) == (0, 3, 0.0)
    assert found.samples == (399, 399, 399)
    assert found.typical == "399 / 399 / 399"
    noisy = synthetic(10, noise_std=10.0)
    assert score(noisy, budgeted(400)["uniform"], 5, "t").wrong == 5


def test_least_budgets_are_those_the_strategies_accept() -> None:
    instance = synthetic(20)
    for name in budgeted(1):
        T = least_budget(name, instance)
        if name == "GEGE":
            continue
        budgeted(T)[name](instance)
        with pytest.raises(ValueError, match="`max_observations`"):
            budgeted(T - 1)[name](instance)


def test_a_trace_holds_every_measurement() -> None:
    instance = synthetic(20)
    plans = trace(instance, budgeted(400)["GEGE"], 0)
    assert len(plans) == 3
    assert [int(plan.sum()) for plan in plans] == [133] * 3
    assert all(len(plan) == 20 for plan in plans)


def test_confident_methods_find_the_set() -> None:
    instance = synthetic(10, noise_std=0.02)
    for name, build in confident(0.1).items():
        assert score(instance, build, 1, name).wrong == 0


def test_claims_judge_their_numbers() -> None:
    errors = {"GEGE": {10: 0.3, 500: 0.32}, "EGE-SH": {10: 0.2, 500: 0.4}}
    errors["uniform"] = {10: 0.3, 500: 0.9}
    samples = {"GEGE": {10: 100.0, 50: 101.0}, "APE": {10: 40.0, 50: 90.0}}
    holds = [c.holds for c in synthetic_claims({0: errors}, {0: samples})]
    assert holds == [True, False, True, True, False]
    wild = {**errors, "GEGE": {10: 0.3, 500: 0.4}}
    both = synthetic_claims({0: errors, 1: wild}, {0: samples})
    assert [c.holds for c in both] == [False, False, True, True, False]
    sure = {
        name: Score(0, 10, (n,) * 10, (4,) * 10)
        for name, n in (("GEGE", 300), ("APE", 100), ("racing", 400))
    }
    noc_errors = {
        "GEGE": {1780: 0.2, 2331: 0.1, 3994: 0.06},
        "EGE-SH": {2331: 0.7, 3994: 0.4},
    }
    found = noc_claims(synthetic(10), noc_errors, sure, 0.01)
    assert [c.holds for c in found] == [False, True, False, True, True, False, True]


@pytest.mark.slow
def test_the_report_says_which_data_are_missing(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(experiment, "QUICK_SIZES", (10, 12))
    monkeypatch.setattr(experiment, "CONFIDENT_SIZES", (8,))
    monkeypatch.setattr(experiment, "INSTANCES", (0,))
    monkeypatch.setattr(experiment, "TABLE2", {(10, 2, 2): (217, 6)})
    report = experiment.reproduce(quick=True, seeds=2)
    text = report.text()
    assert "Left out: noc_CM_log.csv" in text
    assert "claims hold" in text
    assert "Table 2" in text
    report.write(tmp_path)
    assert (tmp_path / "figure1.png").is_file()
