r"""Tables whose results are yes or no, or counts of successes."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import scipy
import torch

from botorch_lse.cli.kinds import PAIRS
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import settings
from botorch_lse.cli.simulated import _measured, truth_of
from tests.cli.lab import HILL, Lab, Line

CALL = (
    "next candidates.csv --above 0.75 --column works --key name --batch 10 "
    "--epsilon 0.1 --outcome yes-no"
)


def chance(line: Line) -> float:
    x = torch.tensor((float(line["x"]) - 9) / 3)
    return float(torch.special.ndtr(x))


def run_of_files() -> Run:
    return Run.read(settings(Path("botorch-lse.toml"), {}))


def with_results(lab: Lab, *answers: str, header: str = "name,works") -> None:
    lab.write("results.csv", "\n".join([header, *answers, ""]))


@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_words_for_yes_and_no_are_read_in_any_case(
    lab: Lab, pair: tuple[str, str]
) -> None:
    yes, no = pair
    with_results(lab, f"n03,{yes.title()}", f"n04, {no.upper()} ", f"n05,{no}")
    said = lab.call(CALL)
    values = [entry.value for entry in run_of_files().measured.having("measured")]
    assert values == [1.0, 0.0, 0.0]
    assert f"Fill in 'works': {yes} or {no}, again (asked again) or n/a" in said


@pytest.mark.slow
def test_a_run_is_played_in_probabilities(lab: Lab) -> None:
    bench = random.Random(0)
    said = lab.call(f"{CALL.replace('10', '25')} --beta 4 --first 10")
    assert "Fill in 'works': yes or no (or pass or fail, or 1 or 0), again" in said
    for _ in range(3):
        lab.fill(
            "sheet.csv",
            lambda line: "pass" if bench.random() < chance(line) else "fail",
            "works",
        )
        said = lab.call("next")
    assert "Probability of works against 0.75: " in said
    assert "look for a wrong value" not in said  # many results, as each tells little
    lab.call("answer --details")
    for line in lab.read("answer.csv"):
        low, mean, high = (float(line[name]) for name in ("lower", "mean", "upper"))
        assert 0 <= low <= mean <= high <= 1
        assert line["side"] != "above" or chance(line) > 0.65
        assert line["side"] != "below" or chance(line) < 0.85
    sides = {line["side"] for line in lab.read("answer.csv")}
    assert {"above", "below"} <= sides
    lab.call("report")
    page = (lab.folder / "report.html").read_text()
    assert "works: probability above 0.75?" in page
    assert "probability of works" in page


@pytest.mark.slow
def test_grades_are_numbers_and_the_level_a_probability(lab: Lab) -> None:
    bench, call = random.Random(0), CALL.replace("yes-no", "grades")
    said = lab.call(f"{call.replace('10', '40')} --grades 4 --at-least 2 --beta 4")
    assert "Fill in 'works': a grade, 0 to 3, again (asked again) or n/a" in said

    def grade(line: Line) -> str:
        f = (float(line["x"]) - 9) / 3 + bench.gauss(0.0, 1.0)
        return str(sum(f > cut for cut in (-1.5, 0.0, 1.0)))

    for _ in range(2):
        lab.fill("sheet.csv", grade, "works")
        said = lab.call("next")
    assert "Probability of works >= 2 against 0.75: " in said
    assert {entry.value for entry in run_of_files().measured.having("measured")} == {
        *range(4)
    }
    lab.call("answer --details")
    for line in lab.read("answer.csv"):
        low, mean, high = (float(line[name]) for name in ("lower", "mean", "upper"))
        assert 0 <= low <= mean <= high <= 1
        assert line["side"] != "above" or chance(line) > 0.65
        assert line["side"] != "below" or chance(line) < 0.85
    assert {"above", "below"} <= {line["side"] for line in lab.read("answer.csv")}
    lab.call("report")
    page = (lab.folder / "report.html").read_text()
    assert "works: probability of at least 2 above 0.75?" in page
    assert "probability of works >= 2" in page or "works \\u003e= 2" in page
    said = lab.call("simulate --runs 1 --most 20")
    assert "results are drawn by its probabilities" in said
    assert "run 1: " in said
    said = lab.call("simulate --runs 1 --most 20 --between 0.1,0.9")
    assert "run 1: " in said


@pytest.mark.slow
def test_counts_of_events_are_numbers_and_so_is_the_level(lab: Lab) -> None:
    bench = np.random.default_rng(0)
    call = CALL.replace("yes-no", "counts").replace("0.75", "5").replace("0.1", "0.5")
    said = lab.call(f"{call.replace('10', '40')} --beta 4 --first 10")
    assert "Fill in 'works': how many there are, 0, 1, 2 and so on, again" in said
    with_results(lab, *(f"n{x:02d},0" for x in range(20)))
    said = lab.call("next")
    assert "nothing is decided before there are two different counts" in said
    (lab.folder / "results.csv").unlink()

    def expected(line: Line) -> float:
        return float(np.exp(float(line["x"]) / 6))

    for _ in range(2):
        lab.fill("sheet.csv", lambda line: str(bench.poisson(expected(line))), "works")
        said = lab.call("next")
    assert "Expected count of works against 5: " in said
    assert "look for a wrong value" not in said
    lab.call("answer --details")
    for line in lab.read("answer.csv"):
        low, mean, high = (float(line[name]) for name in ("lower", "mean", "upper"))
        assert 0 <= low <= mean <= high
        assert line["side"] != "above" or expected(line) > 4
        assert line["side"] != "below" or expected(line) < 6
    assert {"above", "below"} <= {line["side"] for line in lab.read("answer.csv")}
    lab.call("report")
    page = (lab.folder / "report.html").read_text()
    assert "works: expected count above 5?" in page
    assert "expected count of works" in page


def test_counts_of_events_are_simulated(lab: Lab) -> None:
    call = CALL.replace("yes-no", "counts").replace("0.75", "5").replace("0.1", "0.5")
    call = call.replace("next", "simulate")
    said = lab.call(f"{call} --runs 1 --most 20 --between 1,20")
    assert "results are drawn by its expected counts" in said
    assert "run 1: " in said
    run, bench = run_of_files(), np.random.default_rng(0)
    truth = truth_of(run, 1, None, (1.0, 20.0), None)
    rows = torch.zeros(4000, dtype=torch.long)
    drawn = _measured(run, truth, rows, truth.values[0], bench).y
    mean = float(truth.values[0, 0])
    assert float(drawn.mean()) == pytest.approx(mean, abs=4 * (mean / 4000) ** 0.5)
    assert float(drawn.var()) == pytest.approx(mean, rel=0.1)


PHASES = (
    "next candidates.csv --column phase --key name --batch 12 --first 8 --beta 4 "
    "--outcome classes --classes solid,liquid,gas"
)


def phase(line: Line) -> str:
    x = float(line["x"])
    return "solid" if x < 6 else "Liquid" if x < 13 else "gas"


def test_classes_are_told_by_their_names(lab: Lab) -> None:
    said = lab.call(PHASES)
    assert "Fill in 'phase': solid, liquid or gas, again (asked again) or n/a" in said
    gas = "".join(f"n{x:02d},gas\n" for x in range(20))
    lab.write("results.csv", f"name,phase\n{gas}")
    said = lab.call("next")
    assert "nothing is decided before there are two classes" in said
    # A name may be a number.
    counts = "solid: 0, liquid: 0, gas: 0, none: 0, undecided: 20."
    assert f"Candidates by phase: {counts}\n" in said
    assert "The likeliest classes, decided or not: " in said
    found = run_of_files().state.observations.y
    assert found.tolist() == [[0.0, 0.0, 1.0]] * 20


@pytest.mark.parametrize("name", ["Undecided", "excluded", "NA"])
def test_no_class_has_the_name_of_something_else(name: str, lab: Lab) -> None:
    said = lab.refused(PHASES.replace("solid", name))
    assert f"but got {name}, liquid, gas. For three write solid,liquid,gas" in said


@pytest.mark.slow
def test_classes_are_mapped_by_their_names(lab: Lab) -> None:
    lab.call(PHASES)
    for _ in range(2):
        lab.fill("sheet.csv", phase, "phase")
        said = lab.call("next")
    assert "The likeliest classes, decided or not: " in said
    assert "Edges of classes take most of them" in said
    lab.call("answer --details")
    lines = lab.read("answer.csv")
    assert {line["side"] for line in lines} <= {"solid", "liquid", "gas", "undecided"}
    assert sum(line["likeliest"] != phase(line).lower() for line in lines) <= 2
    assert all(
        line["side"] in ("undecided", phase(line).lower()) or 5 <= int(line["x"]) <= 13
        for line in lines
    )
    assert 0 <= float(lines[0]["gas_lower"]) <= float(lines[0]["gas_mean"]) < 0.2
    assert "probability_above" not in lines[0]
    assert "mean" not in lines[0]
    lab.call("report")
    page = (lab.folder / "report.html").read_text()
    assert "phase: which of solid, liquid and gas it is" in page


@pytest.mark.slow
def test_an_answer_about_classes_has_the_probability_of_each(lab: Lab) -> None:
    told = "".join(f"n{x:02d},{phase({'x': x})}\n" for x in (1, 8, 15, 18))
    lab.write("results.csv", f"name,phase\n{told}")
    lab.call(PHASES.replace("next", "answer"))
    line = lab.read("answer.csv")[1]
    assert line["likeliest"] == "solid"
    assert line["side"] == "undecided"
    names = [f"{name}_mean" for name in ("solid", "liquid", "gas")]
    assert float(line[names[0]]) > max(float(line[name]) for name in names[1:])
    assert (lab.folder / "answer.png").exists()


@pytest.mark.slow
def test_classes_are_simulated_by_a_column_of_true_ones(lab: Lab) -> None:
    lines = [line.split(",") for line in HILL.splitlines()[1:]]
    rows = [f"{x},{name},{phase({'x': x})}" for x, name in lines]
    lab.write("candidates.csv", "\n".join(["x,name,truth", *rows, ""]))
    call = PHASES.replace("next", "simulate") + " --ignore truth --truth truth"
    said = lab.call(f"{call} --runs 2 --most 24")
    assert "the column truth; results are drawn by its classes" in said
    assert "decided, 0 wrong" in said
    assert "epsilon" not in said


@pytest.mark.slow
def test_classes_are_simulated_by_what_was_learnt(lab: Lab) -> None:
    lab.call(PHASES)
    lab.fill("sheet.csv", phase, "phase")
    said = lab.call("simulate --runs 1 --most 10")
    assert "results are drawn by its classes" in said
    assert "run 1: " in said
    truth = truth_of(run_of_files(), 50, None, None, None)
    share = (truth.values[:, 0] == 0).double().mean()
    assert float(share) > 0.8  # the first candidate is close to solid ones


def test_equal_grades_decide_nothing(lab: Lab) -> None:
    with_results(lab, *(f"n{x:02d},{2 + x % 2}" for x in range(20)))
    said = lab.call(f"{CALL.replace('yes-no', 'grades')} --grades 4 --at-least 2")
    assert "0 above, 0 below, 20 undecided" in said
    assert "nothing is decided before there are grades below 2 and others" in said


def test_counts_stand_in_two_columns(lab: Lab) -> None:
    said = lab.call(f"{CALL} --trials n --beta 4")
    assert "Fill in 'n', the trials, and 'works': the successes, again" in said
    header = (lab.folder / "sheet.csv").read_text().splitlines()[0]
    assert header == "sheet,x,name,repeat,works,n"
    lab.fill("sheet.csv", lambda line: "40", "n")
    lab.fill("sheet.csv", lambda line: f"{40 * chance(line):.0f}", "works")
    said = lab.call("next")
    assert "10 measured in 400 trials." in said
    assert "40" in (lab.folder / "results.csv").read_text()
    found = run_of_files().state.observations
    assert found.counts is not None
    assert found.counts.tolist() == [40] * 10
    assert found.y.tolist() == pytest.approx(
        [
            round(40 * chance({"x": str(int(run_of_files().candidates.frame["x"][i]))}))
            / 40
            for i in found.indices.tolist()
        ]
    )


def test_a_budget_counts_trials(lab: Lab) -> None:
    lab.call(f"{CALL} --trials n --budget 47")
    lab.fill("sheet.csv", lambda line: "4", "n")
    lab.fill("sheet.csv", lambda line: f"{4 * chance(line):.0f}", "works")
    said = lab.call("next")
    assert "The budget leaves 7 trials; about " in said
    assert "sheet.csv: 1 line to measure" in said  # of 4 trials; two would have 8
    assert "run 1: 8 trials in 2 sheets" in lab.call("simulate --runs 1 --most 300")


def test_trials_may_be_planned_for_each_candidate(lab: Lab) -> None:
    lines = HILL.splitlines()
    table = [
        f"{lines[0]},n",
        *(f"{line},{10 + i % 2}" for i, line in enumerate(lines[1:])),
    ]
    lab.write("candidates.csv", "\n".join(table))
    said = lab.call(f"{CALL} --trials n")
    assert "\n  n: how many trials are planned\n" in said
    assert run_of_files().settings.inputs == ("x",)
    lines = lab.read("sheet.csv")
    assert {line["n"] for line in lines} == {"10", "11"}
    assert list(lines[0]) == ["sheet", "x", "name", "n", "repeat", "works"]


def test_equal_results_decide_nothing(lab: Lab) -> None:
    with_results(lab, *(f"n{x:02d},yes" for x in range(20)))
    said = lab.call(CALL)
    assert "0 above, 0 below, 20 undecided" in said
    alike = "All results so far are alike: nothing is decided before there are a yes"
    assert f"{alike} and a no, and all are measured again." in said
    (lab.folder / "sheet.csv").unlink()
    (lab.folder / "botorch-lse.toml").unlink()
    said = lab.call(f"{CALL} --max-repeats 1")
    assert f"No candidate is left to measure.\n{alike} and a no.\n" in said


@pytest.mark.parametrize(
    ("kind", "result", "contrast"),
    [
        ("yes-no", "no", "a yes and a no"),
        ("classes --classes a,b", "a", "two classes"),
        ("counts", "0", "two different counts"),
        ("grades --grades 3 --at-least 2", "1", "grades below 2 and others"),
    ],
)
def test_equal_results_teach_no_model(
    lab: Lab, kind: str, result: str, contrast: str
) -> None:
    table = [f"{i * 7 % 40},{i * i % 41},{i**3 % 37},n{i:02d}" for i in range(40)]
    lab.write("candidates.csv", "\n".join(["x,y,z,name", *table, ""]))
    with_results(lab, *(f"n{i:02d},{result}" for i in range(16)))
    call = CALL.replace("yes-no", kind)
    if "classes" in kind:
        call = call.replace("--above 0.75", "").replace("--epsilon 0.1", "")
    said = lab.call(call)
    assert "A model of these values" not in said
    assert f"before there are {contrast}, and new candidates come first." in said


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "kind",
    ["yes-no", "classes --classes yes,no,maybe", "grades --grades 2 --at-least 1"],
)
def test_fits_to_answers_are_remembered(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    names = "1", "0"
    if "classes" in kind:
        names = "yes", "no"
    with_results(lab, *(f"n{i:02d},{names[i < 10]}" for i in range(2, 18)))
    lab.call(f"{CALL.replace('yes-no', kind)} --first 8")
    before = lab.contents()

    def minimize(*given: object, **options: object) -> None:
        raise AssertionError("a fit is searched for again")

    monkeypatch.setattr(scipy.optimize, "minimize", minimize)
    lab.call("next")
    assert lab.contents() == before


def test_words_of_two_pairs_are_asked_about(lab: Lab) -> None:
    with_results(lab, "n03,yes", "n04,no", "n05,fail", "n06,1")
    said = lab.refused(CALL)
    first = "results.csv, line 4, column works: expected yes or no, as in results.csv"
    assert f"{first}, line 2, but got 'fail'; write no." in said
    assert "line 5, column works: expected yes or no" in said
    assert "but got '1'; write yes." in said
    with_results(lab, "n03,pass", "n04,no", "n05,psas")
    assert "expected yes or no, but got 'psas'; write pass" in lab.refused(CALL)


def test_guess_and_lapse_bound_what_is_believed(lab: Lab) -> None:
    with_results(lab, *(f"n{x:02d},{int(x > 8)}" for x in range(20)))
    lab.call(f"{CALL} --guess 0.5 --lapse 0.1 --beta 1")
    answer = run_of_files().answer
    assert float(answer.lower.min()) >= 0.5
    assert float(answer.upper.max()) <= 0.9


def test_words_without_the_option_are_answered_with_it(lab: Lab) -> None:
    with_results(lab, "n03,ok", "n04,nok")
    numbers = CALL.removesuffix(" --outcome yes-no")
    said = lab.refused(numbers)
    assert "if results are yes or no, give --outcome yes-no, with a level that" in said
    lab.call(f"{numbers} --outcome yes-no")


@pytest.mark.slow
def test_simulated_results_are_drawn_by_true_probabilities(lab: Lab) -> None:
    lines = HILL.splitlines()
    rows = [
        f"{x},{name},{chance({'x': x}):.3f}"
        for x, name in (a.split(",") for a in lines[1:])
    ]
    lab.write("candidates.csv", "\n".join([f"{lines[0]},truth", *rows]))
    call = (
        CALL.replace("next", "simulate") + " --ignore truth --runs 1 --most 60 --beta 4"
    )
    said = lab.call(f"{call} --truth truth")
    assert "the column truth; results are drawn by its probabilities." in said
    assert "run 1: " in said
    run = run_of_files()
    drawn = truth_of(run, 200, None, (0.2, 0.9), None)
    assert drawn.noise_std is None
    share = ((drawn.values >= 0.2) & (drawn.values <= 0.9)).double().mean()
    assert float(share) == pytest.approx(0.95, abs=0.03)


def test_a_true_value_is_a_probability(lab: Lab) -> None:
    call = CALL.replace("next", "simulate") + " --ignore name --truth name"
    lab.write("candidates.csv", HILL.replace("n", "2").replace("2ame", "name"))
    call = call.replace("--key name", "")
    assert "expected a probability of yes, but got '200'" in lab.refused(call)


@pytest.mark.slow
def test_an_audit_tries_drawn_candidates_until_they_are_clear(lab: Lab) -> None:
    bench, told = random.Random(0), "--epsilon 0.2 --outcome yes-no --audit 0.3,0.2"
    call = f"next candidates.csv --above 0.5 --column works --key name --batch 8 {told}"
    said = lab.call(f"{call} --beta 4 --first 10")
    for _ in range(30):
        if "confirmed it" in said:
            break
        lab.fill(
            "sheet.csv",
            lambda line: "yes" if bench.random() < chance(line) else "no",
            "works",
        )
        said = lab.call("next")
    assert "candidates drawn at random confirmed it" in said
    assert "assumes independent trials" in lab.call("answer")


def test_an_audit_may_be_asked_for(lab: Lab) -> None:
    assert "sheet.csv: " in lab.call(f"{CALL} --audit")


@pytest.mark.slow
@pytest.mark.parametrize("most", ["", " --max-repeats 1"])
def test_an_audit_of_classes_is_advised_where_the_settings_take_one(
    lab: Lab, most: str
) -> None:
    told = [f"n{x:02d},{phase({'x': str(x)})}" for x in range(20)]
    with_results(lab, *told, header="name,phase")
    said = lab.call(f"{PHASES.replace('next', 'answer')}{most}")
    assert "Candidates decided are so by a model learnt from your values; check" in said
    assert ("add the line `audit = true`" in said) is (not most)
    file = lab.folder / "botorch-lse.toml"
    file.write_text(f"{file.read_text()}audit = true\n")
    if most:
        assert "or leave `audit` out" in lab.refused("next")
    else:
        lab.call("next")


def test_no_audit_of_counts_is_advised(lab: Lab) -> None:
    with_results(lab, *(f"n{x:02d},{30 * (x > 9)}" for x in range(20)))
    call = CALL.replace("yes-no", "counts").replace("0.75", "5").replace("0.1", "0.5")
    said = lab.call(f"{call.replace('next', 'answer')} --beta 4 --first 10")
    assert "above or below are so by a model learnt from your values; check a " in said
    assert "audit" not in said
