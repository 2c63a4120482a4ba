r"""Values of which only a limit is known: below a detection, beyond a scale."""

from __future__ import annotations

from pathlib import Path

import pytest

from botorch_lse.cli.command_line import parse, read
from botorch_lse.cli.runs import Run
from botorch_lse.cli.settings import settings
from tests.cli.lab import NEXT, Lab, hill

CALL = f"{NEXT} --first 10 --noise-std 0.7"


def results(words: dict[int, str]) -> str:
    r"""Half of the candidates measured, some with words in place of values."""
    lines = (f"{x},{words.get(x, hill({'x': str(x)}))}\n" for x in range(0, 20, 2))
    return f"x,y\n{''.join(lines)}"


def sides(lab: Lab) -> dict[int, str]:
    lab.call("answer")
    return {int(line["x"]): line["side"] for line in lab.read("answer.csv")}


@pytest.mark.slow
def test_a_limit_decides_its_candidate_and_is_not_asked_again(lab: Lab) -> None:
    # At 4 the value is 5.95 and at 10 9.55: near to the level 7 for noise of 0.7.
    lab.write(
        "results.csv", results({0: "<0.5", 4: '"< 6,9"', 10: ">9", 18: "\u22640"})
    )
    said = lab.call(CALL)
    assert "10 measured." in said
    assert "4 values are limits (first <0.5 in results.csv, line 2): their" in said
    assert "decided so, and not asked for again. To the model they are limits" in said
    found = sides(lab)
    assert [found[x] for x in (0, 4, 10, 18)] == ["below", "below", "above", "below"]
    lines = {int(line["x"]): line for line in lab.read("answer.csv")}
    shown = ("probability_above", "mean", "sigma", "lower", "upper", "n_observations")
    assert [lines[4][name] for name in shown] == ["0", "", "", "", "6.9", "0"]
    assert [lines[10][name] for name in shown] == ["1", "", "", "9", "", "0"]
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    limits = {run.places[x] for x in (0, 4, 10, 18)}
    assert run.state.observations.n_measured == 6
    assert limits.isdisjoint(run.state.observations.indices.tolist())
    for _ in range(8):
        sheet = lab.read("sheet.csv")
        assert not {"0", "4", "10", "18"} & {line["x"] for line in sheet}
        if not sheet:
            break
        lab.fill("sheet.csv", hill)
        said = lab.call("next")
    assert "Every candidate is decided." in said
    assert all(
        found == ("above" if float(hill({"x": str(x)})) > 7 else "below")
        for x, found in sides(lab).items()
        if abs(float(hill({"x": str(x)})) - 7) > 0.5
    )


def test_a_limit_from_the_sheet_goes_to_the_results_as_it_is(lab: Lab) -> None:
    lab.call(NEXT)
    first = lab.read("sheet.csv")[0]
    lab.fill("sheet.csv", lambda line: "< 3.5" if line == first else hill(line))
    said = lab.call("next")
    # Where it stands now, when somebody reads this.
    assert "1 value is a limit (first < 3.5 in results.csv): its candidate" in said
    assert lab.read("results.csv")[0]["y"] == "< 3.5"
    before = lab.contents()
    lab.call("next")
    assert lab.contents() == before


@pytest.mark.slow
def test_a_limit_beyond_the_level_says_nothing_and_loses_nothing(lab: Lab) -> None:
    lab.write("results.csv", results({4: "<7.5", 10: ">5"}))
    said = lab.call(CALL)
    assert "8 measured." in said
    assert "2 limits beyond the level 7 say nothing of the side (first <7.5 in" in said
    assert "To the model they are limits, not asked for again." in said
    assert "If a finer method can, measure it and write the value in its place." in said
    without = results({}).replace("4,5.9500\n", "").replace("10,9.5500\n", "")
    found = sides(lab)
    for _ in range(4):
        sheet = lab.read("sheet.csv")
        assert not {"4", "10"} & {line["x"] for line in sheet}
        if sheet:
            lab.fill("sheet.csv", hill)
            lab.call("next")
    assert "4,<7.5" in (lab.folder / "results.csv").read_text()
    # The remedy: a finer method, and its value.
    text = (lab.folder / "results.csv").read_text()
    lab.write("results.csv", text.replace("<7.5", "5.95"))
    assert "1 limit beyond the level" in lab.call("next")
    # Until then the answer is what it is without the line.
    for name in ("botorch-lse.toml", "sheet.csv"):
        (lab.folder / name).unlink()
    lab.write("results.csv", without)
    lab.call(CALL)
    assert sides(lab) == found


def test_limits_reach_the_model_and_end_that_all_values_lie_on_one_side(
    lab: Lab,
) -> None:
    r"""Of a slope all values below the level are limits: "<6"."""
    values = "x,y\n" + "".join(f"{x},{x}\n" for x in range(8, 20, 2))
    lab.write("results.csv", values)
    assert "20 undecided" in lab.call(CALL.replace("--first 10", "--first 4"))
    lab.write("results.csv", values + "0,<6\n2,<6\n4,<6\n6,<6\n")
    said = lab.call("answer --details")
    assert "4 values are limits (first <6 in results.csv, line 8)" in said
    assert "The model knows limits of values approximately" in said
    lines = {int(line["x"]): line for line in lab.read("answer.csv")}
    shown = {x: line["side"] for x, line in lines.items()}
    assert [shown[x] for x in (0, 6, 12, 18)] == ["below", "below", "above", "above"]
    # No value is known at 3, its neighbours are below 6.
    assert float(lines[3]["mean"]) < 6


def test_the_answer_shows_a_limit_as_it_was_told(lab: Lab) -> None:
    # The model expects less than 6.5 there, up to some bound of many digits.
    lab.write("results.csv", results({16: "<6.5"}))
    assert "asked for again. To the model it is a limit, too." in lab.call(CALL)
    lab.call("answer")
    line = next(line for line in lab.read("answer.csv") if line["x"] == "16")
    shown = ("side", "mean", "sigma", "lower", "upper")
    assert [line[name] for name in shown] == ["below", "", "", "", "6.5"]


def test_what_was_not_found_needs_the_limit_of_the_method(lab: Lab) -> None:
    lab.write("results.csv", results({0: "ND", 2: "<LOD", 4: "n.d."}))
    said = lab.refused(CALL)
    assert "3 things to correct" in said
    assert (
        "column y: expected a number or a limit, but got 'ND'; write the limit below "
        "which it lies, such as <0.5." in said
    )
    lab.write("results.csv", results({0: "<0.5", 2: "<0.5", 4: "<0.5"}))
    assert "10 measured." in lab.call(CALL)
    lab.write("results.csv", results({0: "<low"}))
    assert "expected a number, but got '<low'" in lab.refused("next")


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("> 50 mg", "write >50 (a unit may stand"),
        (">1,500", "write >1500 if it is that much, or >1.5"),
        ("<= 1 000,5", "write <=1000.5"),
    ],
)
def test_what_to_write_for_a_limit_is_a_limit(lab: Lab, cell: str, remedy: str) -> None:
    quoted = f'"{cell}"'
    lab.write("results.csv", results({0: quoted, 2: "9.5"}))
    assert f"got '{cell}'; {remedy}" in lab.refused(CALL)
    lab.write("results.csv", results({0: remedy.split()[1], 2: "9.5"}))
    assert " limit" in lab.call(CALL)


@pytest.mark.parametrize("cell", ["<1.500", "<1,500"])
def test_a_limit_that_can_be_read_in_two_ways_is_asked_about(
    lab: Lab, cell: str
) -> None:
    lab.write("results.csv", results(dict.fromkeys(range(0, 20, 2), f'"{cell}"')))
    said = lab.refused(CALL)
    assert f"one way, but got '{cell}', and every such mark" in said
    assert "; if it is one of thousands, write <1500." in said
    whole = results(dict.fromkeys(range(0, 20, 2), "<1500"))
    for text, call in (
        (whole, CALL),
        ((lab.folder / "results.csv").read_text(), f"{CALL} --decimal {cell[2]}"),
    ):
        lab.write("results.csv", text)
        read(parse(call.split()))


def test_a_limit_and_a_value_on_both_sides_are_asked_about(lab: Lab) -> None:
    lab.write("results.csv", "name,y\nn03,<0.5\nn03,9.1\nn04,<1\nn04,0.7\n")
    said = lab.refused(f"{CALL} --replicates")
    assert (
        "results.csv, line 3: expected a value below the level, as the limit in "
        "results.csv, line 2, says of the same candidate, but got 9.1." in said
    )
    assert "things to correct" not in said
    lab.write("results.csv", "name,y\nn03,0.4\nn03,<0.5\nn04,<1\nn04,0.7\n")
    assert "4 measured" in lab.call(f"{CALL} --replicates")


def test_a_limit_may_stand_for_the_value_where_somebody_says_so(lab: Lab) -> None:
    lab.write("results.csv", results({0: "<0.5", 4: "< 6.9"}))
    lab.call(CALL)
    lab.write("results.csv", results({0: "0.5", 4: "< 6.9"}))
    assert "1 value is a limit (first < 6.9" in lab.call("next")
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    assert 0.5 in run.state.observations.y.tolist()


@pytest.mark.slow
def test_limits_alone_decide_their_candidates_and_the_run_goes_on_to_its_end(
    lab: Lab,
) -> None:
    lab.call(NEXT)
    for _ in range(8):
        lab.fill("sheet.csv", lambda line: "<0.5" if line["x"] != "7" else ">9")
        said = lab.call("next")
        if not lab.read("sheet.csv"):
            break
    assert "Every candidate is decided." in said
    assert sides(lab) == {x: "above" if x == 7 else "below" for x in range(20)}


def test_what_limits_decide_is_not_called_decided_by_a_model(lab: Lab) -> None:
    lab.write("results.csv", results({0: "<0.5", 10: ">9", 18: "<0.5"}))
    lab.call(f"{CALL} --beta 9")
    said = lab.call("answer")
    assert "1 above, 2 below" in said  # the model has too few values to decide
    assert "by a model" not in said
    told = "".join(f"{x},{hill({'x': str(x)})}\n" for x in range(1, 20))
    lab.write("results.csv", f"x,y\n0,<0.5\n{told}")
    said = lab.call("answer")
    assert "above or below, but for those with a limit, are so by a model" in said


def test_an_audit_may_ask_for_a_candidate_with_a_limit(lab: Lab) -> None:
    lab.write("results.csv", results({0: "<0.5"}))
    said = lab.call(f"{CALL} --audit 0.2,0.2")
    assert "With an audit the model learns the limit in place of the value, and" in said
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    assert run.state.excluded == ()
    assert bool(run.answer.below[run.places[0]])


def test_a_limit_that_agrees_with_all_others_is_no_slip(lab: Lab) -> None:
    told = "x,y\n" + "".join(f"{x},{200 - 5 * (x - 9) ** 2}\n" for x in range(20))
    told = told.replace("10,195", "10,>8")
    lab.write("results.csv", told)
    said = lab.call(f"{CALL} --beta 9 --audit 0.2,0.2")
    run = Run.read(settings(Path("botorch-lse.toml"), {}))
    assert [r.rows for r in run.state.remarks if r.kind == "slip"] == [(10,)]
    assert "typed" not in said
    lab.write("results.csv", told.replace(">8", "<5"))
    assert "name n10 has the value 5, where all others predict" in lab.call("next")


def test_limits_use_up_the_budget(lab: Lab) -> None:
    words = iter(["<0.5", ">9", "<9", "4.5"])  # the third does not tell the side
    lab.call(f"{NEXT} --first 6 --budget 6")
    lab.fill("sheet.csv", lambda line: next(words))
    assert "sheet.csv: 2 lines to measure" in lab.call("next")
    lab.fill("sheet.csv", lambda line: "<0.5")
    said = lab.call("next")
    assert "The budget is used up" in said
    assert "Nothing more need be measured" in said
    assert lab.read("sheet.csv") == []
