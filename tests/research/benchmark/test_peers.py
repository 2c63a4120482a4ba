import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse import Pool
from botorch_lse.data.observations import Observations
from research.benchmark import peers_all, peers_runs
from research.benchmark.__main__ import main
from research.benchmark.peers_all import (
    LOW,
    MIDDLE,
    QUICK,
    RIVALS,
    SETTINGS,
    Comparison,
    by_setting,
    geometric_mean,
    jobs,
    report,
    targets_table,
)
from research.benchmark.peers_problems import (
    CHOOSING,
    PROBLEMS,
    REPORTED,
    Case,
    Problem,
    borehole,
    camel,
    circuit,
    corners,
    currin,
    curved,
    four_branch,
    level_for,
    levy,
    normal,
    park,
    piston,
    robot_arm,
    rosenbrock,
    styblinski,
)
from research.benchmark.peers_runs import (
    DEFAULT,
    METHODS,
    Job,
    Measurements,
    Run,
    first_rows,
    reopened,
    run,
    strategy_of,
)
from research.benchmark.recorded import measure
from research.benchmark.registry import Options, entries
from tests.covering import covering

SHIPPED = [name for name, problem in PROBLEMS.items() if problem.file is None]
JOB = Job("line", "Straddle", 3, 0.05, False, 9, 0)


def line_case(seed: int, path: Path | None) -> Case:
    X = torch.linspace(0.0, 1.0, 30, dtype=torch.float64).unsqueeze(-1)
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.3
    return Case(Pool(X), (5 * X).sin().view(-1), 0.52, kernel)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setitem(PROBLEMS, "line", Problem(line_case))
    return line_case(0, None)


# --- problems -------------------------------------------------------------------------


def test_results_are_reported_on_other_problems_than_rules_were_chosen_by() -> None:
    assert not set(CHOOSING) & set(REPORTED)
    assert len(CHOOSING) >= 9
    assert len(REPORTED) >= 9
    inputs = {p.case(0, None).pool.d for p in REPORTED.values()}
    assert inputs == {2, 3, 4, 5, 6, 7, 8}
    shipped = [p for p in CHOOSING.values() if p.file is None]
    assert {p.case(0, None).pool.d for p in shipped} == {2, 3, 4, 5, 6, 8}


@pytest.mark.parametrize("name", SHIPPED)
def test_levels_cross_well_formed_problems(name: str) -> None:
    case = PROBLEMS[name].case(0, None)
    assert 770 <= len(case.pool) <= 1500
    assert case.truth.shape == (len(case.pool),)
    assert bool(case.truth.isfinite().all())
    share = float(case.above.double().mean())
    assert 0.1 - 1 / len(case.pool) <= share <= 0.4 + 1 / len(case.pool)
    distance = (case.truth - case.threshold).abs().min()
    assert float(distance) > 0
    again = PROBLEMS[name].case(0, None)
    assert torch.equal(again.pool.X, case.pool.X)
    assert torch.equal(again.truth, case.truth)


def test_only_samples_depend_on_the_seed() -> None:
    for name in SHIPPED:
        one, other = (PROBLEMS[name].case(seed, None) for seed in (0, 1))
        assert torch.equal(one.truth, other.truth) != name.startswith("sample")


def test_problems_of_missing_files_are_left_out(tmp_path: Path) -> None:
    needing = {name: p for name, p in CHOOSING.items() if p.file is not None}
    assert set(needing) == {"SVM", "energy"}
    assert not any(p.is_there(None) or p.is_there(tmp_path) for p in needing.values())
    assert all(PROBLEMS[name].is_there(None) for name in SHIPPED)
    rows = ["1,2,3,0.5", "2,3,4,0.3", "3,4,5,0.4", "4,4,5,0.2"]
    path = tmp_path / str(needing["SVM"].file)
    path.write_text("\n".join(rows))
    assert needing["SVM"].is_there(tmp_path)
    case = needing["SVM"].case(0, tmp_path)
    assert case.truth.tolist() == [-0.5, -0.3, -0.4, -0.2]
    assert case.above.tolist() == [False, False, False, True]


def test_levels_lie_between_values_also_where_some_are_alike() -> None:
    values = torch.tensor([1.0, 2.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    assert level_for(values, 0.4) == 2.5
    assert level_for(values, 0.6) == 2.5  # not between two that are alike
    assert level_for(values, 0.2) == 3.5


def unit(values: list[float], bounds: list[tuple[float, float]]) -> torch.Tensor:
    low, high = torch.tensor(bounds, dtype=torch.float64).unbind(dim=-1)
    return ((torch.tensor(values).double() - low) / (high - low)).unsqueeze(0)


def test_functions_have_their_published_optima_and_scales() -> None:
    at = unit([0.0898, -0.7126], [(-3, 3), (-2, 2)])
    assert float(camel(at)) == pytest.approx(0.0, abs=1e-4)
    assert float(levy(unit([1.0] * 3, [(-10, 10)] * 3))) == pytest.approx(0.0)
    assert float(rosenbrock(unit([1.0] * 4, [(-5, 10)] * 4))) == pytest.approx(0.0)
    assert float(styblinski(unit([-2.903534] * 4, [(-5, 5)] * 4))) == pytest.approx(
        4 * 39.166166, abs=1e-4
    )
    steepest = torch.tensor([[0.216667, 0.0228407]], dtype=torch.float64)
    assert float(currin(steepest)) == pytest.approx(13.798722, abs=1e-5)
    ones = torch.ones(1, 8, dtype=torch.float64)
    assert float(park(ones[:, :4])) == pytest.approx(25.5893, abs=1e-4)
    assert float(robot_arm(ones)) == pytest.approx(4.0)  # whole turns, stretched out
    folded = torch.tensor([[0.0, 0.5, 0.5, 0.5, 1.0, 0.25, 0.5, 0.125]]).double()
    assert float(robot_arm(folded)) == pytest.approx(1 - 0.25 + 0.5 - 0.125)
    # The valleys that Dette and Pepelyshev add: by hand at two points.
    assert float(curved(0 * ones[:, :3])) == pytest.approx(-(16 + 9 + 16))
    assert float(curved(ones[:, :3])) == pytest.approx(-(4 + 1 + 16 * math.sqrt(2)))
    halves = torch.full((1, 5), 0.5, dtype=torch.float64)
    assert float(corners(halves)) == 0.0
    assert float(corners(0 * halves)) == pytest.approx(
        2 * 3 / 2 * 6.5 / 5.5 * 11 / 10 * 101 / 100
    )
    centre = torch.full((1, 2), 0.5, dtype=torch.float64)
    assert float(four_branch(centre)) == pytest.approx(-3.0)
    middle = normal(centre, 2.0)
    assert torch.allclose(middle, torch.zeros_like(middle), atol=1e-12)
    edge = normal(torch.ones(1, 1, dtype=torch.float64), 2.0)
    assert float(edge) == pytest.approx(7.0)


def test_machines_have_the_ranges_that_are_published() -> None:
    X = torch.quasirandom.SobolEngine(8, scramble=True, seed=0).draw(4096).double()
    # Means as Morris et al. (1993) and Ben-Ari and Steinberg (2007) have them, to the
    # digits that 4,096 points give: 77.6 m3 a year, 5.4 V, 0.46 s.
    flow, volts, seconds = borehole(X), circuit(X[:, :6]), piston(X[:, :7])
    assert float(flow.mean()) == pytest.approx(77.6, rel=0.02)
    assert 7 < float(flow.min()) < float(flow.max()) < 310
    assert 2.5 < float(volts.min()) < float(volts.max()) < 9.5
    assert 0.1 < float(seconds.min()) < float(seconds.max()) < 1.3


# --- runs -----------------------------------------------------------------------------


def test_noise_is_that_of_seed_row_and_repeat(line: Case) -> None:
    measurements = Measurements.of_case(line, 0.1, 6, seed=3)
    longer = Measurements.of_case(line, 0.1, 9, seed=3)
    none = torch.empty(0, dtype=torch.long)
    one = measurements.of(torch.tensor([4, 7, 4]), none)
    other = longer.of(torch.tensor([7, 4]), none)
    assert one[0] != one[2]
    assert torch.equal(one[:2], other.flip(0))
    third = measurements.of(torch.tensor([4]), torch.tensor([4, 7, 4]))
    later = longer.of(torch.tensor([4, 4]), torch.tensor([4]))
    assert third == later[1]
    assert one[2] == later[0]
    assert (
        Measurements.of_case(line, 0.1, 6, seed=4).of(torch.tensor([4]), none)
        != (one[0])
    )


def test_all_methods_begin_with_the_same_rows_and_values(line: Case) -> None:
    starts = {method: run(replace(JOB, method=method))[0] for method in METHODS}
    assert len({found.wrong[0] for found in starts.values()}) == 1
    assert len({found.wrong for found in starts.values()}) > 1
    rows = first_rows(line, 0)
    assert len(rows.unique()) == len(rows) == 10
    assert not torch.equal(rows, first_rows(line, 1))


@covering("method, is_learnt", list(METHODS), (False, True))
def test_a_job_is_a_function_of_its_arguments(
    method: str, is_learnt: bool, line: Case
) -> None:
    job = replace(JOB, method=method, is_learnt=is_learnt, n_chosen=6)
    (one,), (other,) = run(job), run(job)
    assert replace(one, seconds=0.0) == replace(other, seconds=0.0)
    assert len(one.wrong) == 3
    assert one.seconds > 0
    assert Run.of_record(json.loads(json.dumps(one.record()))) == one


def test_methods_that_have_decided_all_go_on(line: Case) -> None:
    strategy = strategy_of(replace(JOB, method="U", noise=1e-4), line)
    rows = torch.arange(30)
    whole = replace(strategy, batch_size=30)
    state = whole.tell(whole.init(0), Observations(rows, line.truth))
    assert state.stop_reason == "decided"
    going = reopened(state, strategy.goal)
    assert len(strategy.ask(going)) == 3
    assert going.classification is state.classification
    assert reopened(going, strategy.goal) is going


def test_errors_are_those_of_the_second_half() -> None:
    found = Run(JOB, 10, (9, 8, 7, 2, 4), 0.1)
    assert found.late_error == pytest.approx(0.3)
    assert replace(found, wrong=(9, 5)).late_error == pytest.approx(0.5)
    assert replace(found, wrong=(9, 9, 1, 3)).late_error == pytest.approx(0.2)


def test_recorded_runs_are_not_repeated(tmp_path: Path) -> None:
    record = tmp_path / "runs.jsonl"
    found = Run(JOB, 10, (9, 8, 7), 0.1)
    record.write_text(json.dumps(found.record()) + "\n")
    assert measure(Run, run, [JOB], 1, record) == [found]


# --- the report -----------------------------------------------------------------------


def made_up(problem: str, noise: float, method: str, seed: int, late: int) -> Run:
    job = Job(problem, method, 10, noise, False, 20, seed)
    return Run(job, 100, (50, 40, late), 0.01)


RUNS = [
    made_up("Levy, 3-D", LOW, "Straddle", 0, 10),
    made_up("Levy, 3-D", LOW, "Straddle", 1, 30),
    made_up("Levy, 3-D", LOW, "LSE", 0, 40),
    made_up("Levy, 3-D", LOW, "LSE", 1, 40),
    made_up("Levy, 3-D", MIDDLE, "Straddle", 0, 8),
    made_up("Levy, 3-D", MIDDLE, "LSE", 0, 8),
    made_up("camel", MIDDLE, "Straddle", 0, 4),
    made_up("camel", MIDDLE, "LSE", 0, 0),
]


def test_ratios_are_those_of_made_up_runs() -> None:
    comparison = Comparison(tuple(RUNS))
    assert comparison.methods == ["Straddle", "LSE"]
    assert comparison.ratios("LSE") == {
        ("Levy, 3-D", LOW): pytest.approx(2.0),
        ("Levy, 3-D", MIDDLE): 1.0,
        ("camel", MIDDLE): 1.0,
    }
    # no row wrong counts as half a row
    assert comparison.ratios("Straddle")["camel", MIDDLE] == pytest.approx(8.0)
    assert comparison.wins("Straddle", "LSE") == 1
    assert comparison.wins("LSE", "Straddle") == 1
    total, error = geometric_mean(comparison.ratios("LSE"))
    assert total == pytest.approx(2 ** (1 / 3))
    # by problem the logarithms are log(2) / 2 and 0
    assert error == pytest.approx(total * math.log(2) / 4)
    assert math.isnan(geometric_mean({("camel", MIDDLE): 2.0})[1])


def test_tables_and_picture_are_made_of_made_up_runs(tmp_path: Path) -> None:
    found = report("peers", RUNS, ["SVM (svm.csv)"])
    assert "SVM (svm.csv)" in found.text()
    ratios, wins, errors = found.tables
    assert [row[0] for row in ratios.rows] == ["LSE", "Straddle"]
    columns = dict(zip(ratios.columns, ratios.rows[1], strict=True))
    assert columns["worst"] == "8.00"
    assert columns["worst cell"] == "camel, noise 5.0%"
    assert wins.rows == [("Straddle", "", 1), ("LSE", 1, "")]
    assert errors.rows[0] == ("Levy, 3-D", "0.1%", "20.00%", "40.00%")
    names = sorted(path.name for path in found.write(tmp_path))
    assert names == ["peers.png", "results.json"]
    content = json.loads((tmp_path / "results.json").read_text())
    assert [Run.of_record(record) for record in content["runs"]] == RUNS


def test_the_default_is_held_against_the_best_rival_of_each_cell() -> None:
    assert set(RIVALS) < set(METHODS) - {DEFAULT}
    late = {"Levy, 3-D": (20, 10), "camel": (10, 20)}
    runs = [
        made_up(problem, MIDDLE, method, 0, rival if method == "Straddle" else 40)
        for problem, (_, rival) in late.items()
        for method in RIVALS
    ]
    assert not targets_table(by_setting(runs))
    runs += [made_up(name, MIDDLE, DEFAULT, 0, own) for name, (own, _) in late.items()]
    # another method that is better than all rivals does not count
    runs += [made_up(name, MIDDLE, "randomised", 0, 1) for name in late]
    (table,) = targets_table(by_setting(runs))
    ((setting, ratio, is_near, worst, beyond, none),) = table.rows
    assert setting == "q = 10, fixed model"
    assert ratio == "1.00 +- 0.69"  # 2 and 1 / 2
    assert is_near == "met"
    assert worst == "2.00, Levy, 3-D, noise 5.0%"
    assert (beyond, none) == ("1 of 2", "NOT MET")
    assert report("peers", runs).tables[-1].rows == table.rows


def test_settings_are_told_apart() -> None:
    learnt = replace(RUNS[0], job=replace(RUNS[0].job, is_learnt=True))
    single = replace(RUNS[0], job=replace(RUNS[0].job, q=1))
    found = by_setting([RUNS[0], learnt, single])
    assert list(found) == [
        "q = 10, fixed model",
        "q = 10, learnt model",
        "q = 1, fixed model",
    ]


def test_every_combination_is_run_seed_by_seed() -> None:
    found = jobs(list(REPORTED), Options(seeds=2))
    cells = sum(len(s.noises) for s in SETTINGS)
    assert len(found) == len(set(found)) == 2 * cells * len(REPORTED) * len(METHODS)
    assert [job.seed for job in found] == sorted(job.seed for job in found)
    assert {job.q for job in found} == {1, 10, 50}
    assert {job.is_learnt for job in found} == {False, True}
    assert all(job.n_chosen % job.q == 0 for job in found)
    quick = jobs(list(REPORTED), Options(quick=True))
    assert len(quick) == 4 * len(QUICK) * len(METHODS)


@pytest.mark.parametrize("name", ["all", "choosing", "reported"])
def test_the_command_is_known_and_reads_its_options(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert name in {e.name for e in entries("peers")}
    asked = []

    def known(kind: type, one: object, todo: list[Job], *rest: object) -> list[Run]:
        asked.append((todo, rest, one))
        return RUNS

    monkeypatch.setattr(peers_all, "measure", known)
    record = tmp_path / "runs.jsonl"
    arguments = ["peers", name, "--quick", "--seeds", "2", "--workers", "3"]
    assert main([*arguments, "--record", str(record), "--data", str(tmp_path)]) == 0
    ((todo, rest, one),) = asked
    assert {job.seed for job in todo} == {0, 1}
    assert rest == (3, record, "processes", False)
    assert one.func is peers_runs.run
    assert one.keywords == {"data": tmp_path}
    printed = capsys.readouterr().out
    assert "LSE" in printed
    assert ("svm_on_grid.csv" in printed) == (name != "reported")
