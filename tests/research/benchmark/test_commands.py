import json
from pathlib import Path

import pytest
import torch

from botorch_lse.rules import lookahead
from research.benchmark import (
    guarantee_lse,
    speed_answers,
    speed_lookahead,
    speed_loop,
    speed_lse,
    speed_path,
    speed_rows,
    speed_run,
    speed_shortlist,
    speed_sources,
    speed_threads,
)
from research.benchmark.__main__ import main
from research.benchmark.registry import Options, entries, entry, find
from research.papers.problems import matern_prior
from research.report import Claim, Report, claims_table

ALL = (
    "paper gotovos2013",
    "guarantee lse",
    "guarantee lse_imp",
    "speed answers",
    "speed lookahead",
    "speed loop",
    "speed lse",
    "speed path",
    "speed rows",
    "speed run",
    "speed sources",
)


def test_list_names_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for name in ALL:
        assert f"| {name} " in printed
    assert {f"{e.kind} {e.name}" for e in entries()} >= set(ALL)


@pytest.mark.parametrize("kind", ["paper", "guarantee", "speed"])
def test_unknown_names_are_refused_with_the_known_ones(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main([kind, "nonsense"])
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert "'nonsense'" in message
    assert ", ".join(e.name for e in entries(kind)) in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["guarantee", "lse", "--runs", "0"], "`--runs` to be at least 1"),
        (["guarantee", "lse", "--divide-widths", "0"], r"`--divide-widths` in \(0"),
        (["paper", "gotovos2013", "--seeds", "0"], "`--seeds` to be at least 1"),
    ],
)
def test_numbers_out_of_range_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    with pytest.raises(SystemExit):
        main(arguments)
    assert re.search(message, capsys.readouterr().err)


def test_a_kind_must_be_known() -> None:
    with pytest.raises(ValueError, match="`kind` to be one of"):
        entry("prayer", "x", "y")


def test_claims_are_a_pasteable_table() -> None:
    claims = [Claim("a", "b", "c", True), Claim("dd", "e", "f", False)]
    lines = claims_table("Claims", claims).markdown().splitlines()
    assert lines[2] == "| claim | paper | measured | holds |"
    assert lines[3] == "|-------|-------|----------|-------|"
    assert lines[4].endswith("| yes   |")
    assert lines[5].endswith("| no    |")


def test_a_report_is_written_as_json(tmp_path: Path) -> None:
    report = Report("t", ("n",), [claims_table("Claims", [])], ("v",), {"x": [1.0]})
    (path,) = report.write(tmp_path / "new")
    content = json.loads(path.read_text())
    assert content["title"] == "t"
    assert content["x"] == [1.0]
    assert content["versions"]["torch"]


def test_guarantee_prints_interval_and_power_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guarantee_lse, "BATCHES", (10, 30))
    monkeypatch.setattr(guarantee_lse, "LIMIT", 60)
    assert main(["guarantee", "lse", "--runs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "95 % Clopper-Pearson" in printed
    assert "LSE literal, B = 30, eta_t" in printed
    assert "Power check: all widths divided by 3" in printed


@pytest.mark.slow
def test_path_cost_is_measured_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speed_path, "SIDE", 10)
    monkeypatch.setattr(speed_path, "OBSERVATIONS", 30)
    report = find("speed", "path").run(Options())
    assert [row[1] for row in report.tables[0].rows] == ["2 s", "600 MB", "30 ms"]
    assert all("met" in row[2] for row in report.tables[0].rows)


@pytest.mark.filterwarnings("ignore:Data .* is not standardized")
@pytest.mark.parametrize("name", speed_answers.FUNCTIONS)
def test_scores_of_an_answer_are_measured(name: str) -> None:
    own, whole = speed_answers.scored(name, 2, 20, 1, torch.get_num_threads())
    assert min(own, whole) > 0


@pytest.mark.slow
def test_rounds_of_two_sources_are_measured() -> None:
    seconds = speed_sources.rounds(20, 30, None)
    assert len(seconds) == speed_sources.ROUNDS
    assert all(took > 0 for took in seconds)


def test_lse_is_compared_with_botorch_on_the_same_data() -> None:
    threads = torch.get_num_threads()
    timing = speed_lse.compare(10, 12, (1, 12), (32, 100))
    assert torch.get_num_threads() == threads
    assert timing.decisions == 12
    assert timing.seconds > 0
    first = min(timing.botorch[1].values())
    last = min(timing.botorch[12].values())
    low, high = sorted((first, last))
    assert 12 * low <= timing.botorch_seconds() <= 12 * high


@pytest.mark.parametrize("name", list(speed_loop.OURS))
def test_runs_of_ours_are_timed_as_botorch_is(name: str) -> None:
    assert speed_loop.by_ours(9, name) == speed_loop.by_botorch(9) == 9
    assert speed_loop.cpu_of(speed_loop.by_ours, 9, name) > 0


def test_rounds_with_many_values_are_timed() -> None:
    whole, one = speed_loop.cpu_of_rounds(30)
    assert whole > 0
    assert one > 0


def test_look_ahead_rules_are_timed_in_turns() -> None:
    seconds, peak = speed_lookahead.times(6, 2)
    assert peak >= 0
    assert list(seconds) == list(speed_lookahead.decisions())
    assert all(took >= 0 for took in seconds.values())


@pytest.mark.parametrize("name", ["TruncatedVariance", "TargetedVariance, A & B"])
def test_a_shortlist_is_compared_with_the_scores_of_all_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookahead, "ALL_PAIRS", 0)
    before = lookahead.ALL_PAIRS
    found = speed_shortlist.decision(name, 300, 2, 0)
    assert before == lookahead.ALL_PAIRS  # it was set for the comparison alone
    assert 0 < found.ratio <= 1
    assert found.is_best == (found.ratio > 1 - 1e-9)


def test_a_device_that_is_not_there_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["speed", "rows", "--device", "abacus"])
    assert "Expected `--device` to be a device that computes" in capsys.readouterr().err


@pytest.mark.parametrize("budget", [2**30, 2**16])
def test_a_decision_is_timed_under_any_budget(budget: int) -> None:
    growth = speed_rows.decide(400, 20, 3, budget)
    assert min(growth.start, growth.decision, growth.one, growth.bare) > 0
    assert growth.peak >= 0


def test_work_is_timed_on_several_threads() -> None:
    before = torch.get_num_threads()
    try:
        found = speed_threads.times(400, 2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert len(found) == 3
    assert min(found.values()) > 0


def test_a_whole_run_is_timed():
    for size, beta in ((1, None), (10, 9.0)):
        found = speed_run.run(2000, 30, size, beta)
        assert 0 <= found.decided <= 1
        assert found.cpu > 0


def test_the_function_of_a_run_has_the_covariance_of_the_process():
    generator = torch.Generator().manual_seed(3)
    X = torch.rand(4, 3, generator=generator, dtype=torch.float64) / 3
    draws = [speed_run.like_a_draw(generator)(X) for _ in range(2000)]
    found = torch.stack(draws).mT.cov(correction=0)
    prior = matern_prior(speed_run.LENGTHSCALES)
    wanted = prior.covariance(prior.features(X), prior.features(X))
    # A covariance of standard normals from n draws is off by at most sqrt(2 / n).
    torch.testing.assert_close(found, wanted, rtol=0, atol=4 * (2 / 2000) ** 0.5)
