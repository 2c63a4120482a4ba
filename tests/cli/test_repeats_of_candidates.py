r"""How often a candidate may be measured: the setting ``max_repeats``."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.cli.lab import Lab, hill
from tests.cli.test_tables_of_answers import CALL, chance

FEW = "x,name\n2,a\n9,b\n16,c\n"


def answered(lab: Lab, call: str, most: int = 12) -> str:
    r"""What is said once nothing more need be measured."""
    bench, said = random.Random(0), lab.call(call)
    for _ in range(most):
        if "Nothing more need be measured" in said:
            return said
        lab.fill(
            "sheet.csv",
            lambda line: "yes" if bench.random() < chance(line) else "no",
            "works",
        )
        said = lab.call("next")
    raise AssertionError(said)


def times(lab: Lab) -> dict[str, int]:
    return Counter(line["name"] for line in lab.read("results.csv"))


@pytest.mark.some(1)
@pytest.mark.parametrize("most", [1, 3])
def test_no_candidate_is_measured_more_often(lab: Lab, most: int) -> None:
    lab.write("candidates.csv", FEW)
    said = answered(lab, f"{CALL} --max-repeats {most}")
    assert "No candidate is left to measure." in said
    assert times(lab) == {"a": most, "b": most, "c": most}
    # More are allowed by the settings, whose other words stay.
    file = lab.folder / "botorch-lse.toml"
    text = file.read_text()
    assert f"\nmax_repeats = {most}  # the largest number of measurements of" in text
    file.write_text(text.replace(f"max_repeats = {most}", f"max_repeats = {most + 1}"))
    assert "sheet.csv: 3 lines to measure" in lab.call("next")
    assert "No candidate is left to measure." in answered(lab, "next")
    assert {*times(lab).values()} == {most + 1}


def test_without_the_setting_candidates_are_measured_again(lab: Lab) -> None:
    lab.write("candidates.csv", FEW)
    assert "sheet.csv: 10 lines to measure" in lab.call(CALL)


def test_what_failed_was_no_measurement(lab: Lab) -> None:
    lab.write("candidates.csv", FEW)
    lab.call(f"{CALL} --max-repeats 1")
    lab.fill(
        "sheet.csv", lambda line: "again" if line["name"] == "b" else "no", "works"
    )
    assert "sheet.csv: 1 line to measure" in lab.call("next")
    assert [line["name"] for line in lab.read("sheet.csv")] == ["b"]


def test_results_that_nobody_asked_for_count_however_many_there_are(lab: Lab) -> None:
    lab.write("candidates.csv", FEW)
    lab.write("results.csv", "name,works\na,yes\na,no\na,yes\na,yes\nb,no\n")
    lab.call(f"{CALL} --max-repeats 1 --replicates")
    assert [line["name"] for line in lab.read("sheet.csv")] == ["c"]


def test_values_are_measured_once_each(lab: Lab) -> None:
    said = lab.call(
        "next candidates.csv --above 7 --column y --key name --batch 30 --max-repeats 1"
    )
    assert "sheet.csv: 20 lines to measure" in said
    lab.fill("sheet.csv", hill)
    assert "20 candidates: 20 measured." in lab.call("next")


def test_simulated_runs_measure_as_often(lab: Lab) -> None:
    lab.write("candidates.csv", "x,name,p\n2,a,0.7\n9,b,0.8\n16,c,0.7\n")
    said = lab.call(
        f"{CALL.replace('next', 'simulate')} --ignore p --truth p --max-repeats 4 "
        "--runs 2 --most 90"
    )
    assert said.count(" 12 ") >= 2


def test_an_audit_needs_trials(lab: Lab) -> None:
    strict = CALL.replace("0.75", "0.95").replace("0.1", "0.02")
    said = lab.refused(f"{strict} --audit --max-repeats 3")
    assert "more than `max_repeats=3`" in said
    for way in ("--audit --max-repeats 30", "--max-repeats 3"):
        (lab.folder / "botorch-lse.toml").unlink(missing_ok=True)
        assert "sheet.csv: " in lab.call(f"{strict} {way}")
