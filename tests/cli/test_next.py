r"""From the candidates to the next sheet, again and again."""

from __future__ import annotations

import csv
import math
import random
import re
import tomllib

import pytest

from botorch_lse.__main__ import command, main
from botorch_lse.models import marginal
from botorch_lse.strategies import composed
from tests.cli.lab import HILL, NEXT, Lab, Line, goes_on_after_any_interruption, hill


def finish(lab: Lab, most: int = 12) -> str:
    r"""Fill in sheets until nothing more need be measured."""
    for _ in range(most):
        said = lab.call("next")
        if "Nothing more" in said:
            return said
        lab.fill("sheet.csv", hill)
    raise AssertionError(said)


def test_sheet_after_sheet_decides_every_candidate(lab: Lab) -> None:
    said = lab.call(NEXT)
    assert "20 candidates: 0 measured." in said
    assert "sheet.csv: 4 lines to measure" in said
    sheet = lab.read("sheet.csv")
    assert list(sheet[0]) == ["sheet", "x", "name", "repeat", "y"]
    assert {line["sheet"] for line in sheet} == {"1"}
    lab.fill("sheet.csv", hill)
    said = finish(lab)
    assert "Every candidate is decided" in said
    assert "8 above, 12 below, 0 undecided" in said
    assert "all 20 about" not in said  # it says no more than the sides
    assert lab.read("sheet.csv") == []
    results = lab.read("results.csv")
    assert [float(line["y"]) for line in results] == [float(hill(x)) for x in results]
    sheets = [int(line["sheet"]) for line in results]
    assert sheets == sorted(sheets)


def test_the_same_files_give_the_same_sheet_after_any_interruption(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", hill)
    goes_on_after_any_interruption(lab, monkeypatch)


def test_sorted_candidates_give_the_same_sheets(lab: Lab) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", hill)
    before = lab.contents()
    lab.call("next")
    wanted = lab.read("sheet.csv"), lab.read("results.csv")
    header, *lines = HILL.splitlines(keepends=True)
    random.Random(0).shuffle(lines)
    (lab.folder / "results.csv").unlink()
    (lab.folder / "sheet.csv").write_bytes(before["sheet.csv"])
    lab.write("candidates.csv", header + "".join(lines))
    lab.call("next")
    assert (lab.read("sheet.csv"), lab.read("results.csv")) == wanted


def test_failed_lines_are_asked_again_and_the_sheet_is_full(lab: Lab) -> None:
    lab.call(NEXT)
    first, second, third, fourth = (line["name"] for line in lab.read("sheet.csv"))
    words = {first: "Failed", second: "n/a", third: "", fourth: "4.5"}
    lab.fill("sheet.csv", lambda line: words[line["name"]])
    said = lab.call("next")
    assert "1 measured, 1 failed, 1 not measurable" in said
    assert "1 still open, 1 again because they failed" in said
    sheet = lab.read("sheet.csv")
    assert [line["name"] for line in sheet[:2]] == [third, first]
    assert [line["sheet"] for line in sheet] == ["1", "2", "2", "2"]
    assert second not in [line["name"] for line in sheet]
    lab.fill("sheet.csv", hill)
    for _ in range(3):  # what cannot be measured never comes back
        lab.call("next")
        sheet = lab.read("sheet.csv")
        assert second not in [line["name"] for line in sheet]
        assert len(sheet) in (0, 4)
        if sheet:
            lab.fill("sheet.csv", hill)
    results = lab.read("results.csv")
    assert [line["y"] for line in results if line["name"] == second] == ["n/a"]
    assert next(line["y"] for line in results if line["name"] == first) == "Failed"


@pytest.mark.slow
def test_results_and_sheet_may_be_one_file(lab: Lab) -> None:
    lab.call(f"{NEXT} --results lab.csv --out lab.csv")
    lab.fill("lab.csv", lambda line: "failed" if line["x"] == "0" else hill(line))
    lab.call("next")
    lines = lab.read("lab.csv")
    assert len(lines) == 8
    assert [line["name"] for line in lines].count("n00") == 2
    assert [line["y"] != "" for line in lines] == [True] * 4 + [False] * 4
    before = lab.contents()
    lab.call("next")  # nothing was filled in: nothing changes
    assert lab.contents() == before
    for _ in range(6):
        lab.fill("lab.csv", hill)
        said = lab.call("next")
    assert "Nothing more need be measured" in said


def test_history_without_sheets_counts(lab: Lab) -> None:
    lab.write("results.csv", "name,y,remark\nn03,3.95,old\nn09,9.95,\n")
    said = lab.call(NEXT)
    assert "2 measured" in said
    lab.fill("sheet.csv", hill)
    lab.call("next")
    results = lab.read("results.csv")
    assert list(results[0]) == ["name", "y", "remark", "sheet", "repeat"]
    assert results[0]["remark"] == "old"
    assert [line["sheet"] for line in results] == ["", ""] + ["1"] * 4


def test_candidates_with_some_results_are_a_history(lab: Lab) -> None:
    header, *lines = HILL.splitlines()
    known = [f"{line},{'4.5' if i in (2, 14) else ''}" for i, line in enumerate(lines)]
    lab.write("candidates.csv", "\n".join([f"{header},y", *known]))
    said = lab.call(f"{NEXT} --results candidates.csv")
    assert "20 candidates: 2 measured." in said
    assert 'inputs = ["x"]' in (lab.folder / "botorch-lse.toml").read_text()


def test_a_value_without_the_sheets_number_answers_its_line(lab: Lab) -> None:
    lab.call(NEXT)
    name = lab.read("sheet.csv")[0]["name"]
    lab.write("results.csv", f"name,y\n{name},3.5\n")
    lab.call("next")
    assert name not in [line["name"] for line in lab.read("sheet.csv")]
    assert len(lab.read("sheet.csv")) == 4


@pytest.mark.some(1)
@pytest.mark.parametrize("side", ["above", "below"])
def test_the_number_on_the_side_asked_for_is_said_until_it_is_known(
    lab: Lab, side: str
) -> None:
    def waves(line: Line) -> str:
        return f"{10 * math.sin(float(line['x'])):.4f}"

    xs = [i / 2 for i in range(30)]
    lab.write("candidates.csv", "x,name\n" + "".join(f"{x},{x}\n" for x in xs))
    truth = sum((10 * math.sin(x) > 4) == (side == "above") for x in xs)
    call = f"next candidates.csv --{side} 4 --column y --key name --noise-std 0.5"
    text, known = lab.call(f"{call} --batch 8 --first 8 --beta 4"), []
    for _ in range(3):
        assert "all 30 about" not in text or known
        lab.fill("sheet.csv", waves)
        text = lab.call("next")
        words = rf"all 30 about (\d+) (?:are|is) {side}; .* (\d+) and (\d+) with"
        found = re.search(words, text)
        assert found is not None
        known.append(tuple(map(int, found.groups())))
    assert all(0 <= low <= high <= 30 for _, low, high in known)
    best, low, high = known[-1]
    assert low - 2 <= truth <= high + 2
    assert abs(best - truth) <= 2


def test_a_budget_ends_the_run(lab: Lab) -> None:
    lab.call(f"{NEXT} --budget 6 --first 6")
    lab.fill("sheet.csv", hill)
    assert "sheet.csv: 2 lines to measure" in lab.call("next")
    lab.fill("sheet.csv", hill)
    assert "The budget is used up" in lab.call("next")


def test_lines_that_failed_are_asked_again_within_the_budget(lab: Lab) -> None:
    lab.call(f"{NEXT} --budget 4 --first 4")
    names = [line["name"] for line in lab.read("sheet.csv")]
    lines = lab.read("candidates.csv")
    other = next(line for line in lines if line["name"] not in names)
    lab.write("results.csv", f"name,y\n{other['name']},{hill(other)}\n")
    lab.fill("sheet.csv", lambda line: "failed" if line["name"] == names[0] else "")
    assert "sheet.csv: 3 lines to measure (3 still open)" in lab.call("next")
    lab.fill("sheet.csv", lambda line: "failed" if line["name"] == names[1] else "")
    said = lab.call("next")
    assert "sheet.csv: 3 lines to measure (2 still open, 1 again because" in said
    lab.fill("sheet.csv", hill)
    assert "The budget is used up" in lab.call("next")


def test_settings_are_written_read_and_edited(lab: Lab) -> None:
    lab.call(f"{NEXT} --noise-std 0.25")
    file = lab.folder / "botorch-lse.toml"
    stored = tomllib.loads(file.read_text())
    assert stored["above"] == 7
    assert stored["noise_std"] == 0.25
    assert stored["inputs"] == ["x"]
    assert "budget" not in stored
    lab.call(NEXT)  # the same once more contradicts nothing
    said = lab.refused("next --above 8 --budget 30")
    line = (
        file.read_text()
        .splitlines()
        .index(next(x for x in file.read_text().splitlines() if x.startswith("above")))
    )
    assert f"--above 8 contradicts botorch-lse.toml, line {line + 1}: above = 7" in said
    assert "--budget 30 contradicts botorch-lse.toml, where budget is not set" in said
    assert "Change it in botorch-lse.toml" in said
    file.write_text(file.read_text().replace("above = 7 ", "above = 8 "))
    lab.fill("sheet.csv", hill)
    assert "y against 8" in lab.call("next")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "batch = 4",
            "batch = '4'",
            "botorch-lse.toml, line 12: expected batch to be a whole number, but got",
        ),
        ("batch", "bach", "line 12: expected settings, but 'bach' is none; did you "),
        ("# budget", "x = 1  #", "line 13: expected settings, but 'x' is none. Delete"),
        ("above = 7", "above = seven", "expected lines such as above = 40"),
        (
            "above = 7",
            "",
            "botorch-lse.toml: expected one level, --above or --below, but got none",
        ),
        ("# below = 1.0", "below = 1.0", "but got both"),
        ('# decimal = ","', 'decimal = ";"', "Expected `decimal` to be a point or"),
        ('out = "sheet.csv"', 'out = "candidates.csv"', "which are never written"),
        ("batch = 4", "batch = 0", "Expected `batch_size` to be at least 1"),
        ("replicates = false", "replicates = 1", "to be true or false, but got 1"),
        ('inputs = ["x"]', "inputs = [1]", 'a list such as ["time", "heat"]'),
        ("# audit", "audit = [0.1] #", "Expected `audit` to be a tolerance and"),
    ],
)
def test_settings_that_are_wrong_are_named(
    lab: Lab, old: str, new: str, said: str
) -> None:
    lab.call(NEXT)
    file = lab.folder / "botorch-lse.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert said in lab.refused("next")


def test_a_first_call_without_a_question_says_what_to_write(lab: Lab) -> None:
    assert "Write: botorch-lse next candidates.csv --above 40" in lab.refused("next")
    said = lab.refused("next candidates.csv --column y")
    assert "--above or --below, but got none" in said


def test_settings_that_an_editor_saved_with_a_mark_are_read(lab: Lab) -> None:
    lab.call(NEXT)
    file = lab.folder / "botorch-lse.toml"
    file.write_bytes(
        file.read_bytes().decode().replace("\n", "\r\n").encode("utf-8-sig")
    )
    lab.call("next")


def test_a_candidate_that_fails_and_fails_is_asked_about(lab: Lab) -> None:
    lab.call(f"{NEXT} --first 20")
    name = lab.read("sheet.csv")[0]["name"]
    for n in range(4):
        said = lab.call("next")
        asked = f"name {name} failed 3 times: write n/a if it cannot be measured."
        assert (asked in said) == (n == 3)
        lab.fill("sheet.csv", lambda x: "failed" if x["name"] == name else hill(x))
    lab.call("next")
    lab.fill("sheet.csv", lambda x: "n/a" if x["name"] == name else hill(x))
    assert "failed 4 times" not in lab.call("next")
    assert name not in {line["name"] for line in lab.read("sheet.csv")}


def test_settings_that_a_summary_names_do_what_it_says(lab: Lab) -> None:
    said = lab.call(f"{NEXT} --batch 4 --budget 8")
    assert "rows are decided after 8, less surely than after 14: 8 to go." in said
    file = lab.folder / "botorch-lse.toml"
    file.write_text(file.read_text().replace("# first = 20", "first = 6"))
    assert "The first 6 measurements are spread" in lab.call("next")
    file.write_text(file.read_text().replace("budget = 8", "budget = 4"))
    lab.fill("sheet.csv", hill)
    ended = "The budget is used up; for more, set budget in the settings."
    assert ended in lab.call("next")
    file.write_text(file.read_text().replace("budget = 4", "budget = 8"))
    assert ended not in lab.call("next")
    assert len(lab.read("sheet.csv")) == 4


def test_the_summary_says_when_a_model_begins_to_choose_and_to_decide(lab: Lab) -> None:
    said = lab.call(f"{NEXT} --batch 6")
    spread = (
        "The first 9 measurements are spread over the table, and nothing is decided"
    )
    assert f"{spread} before there are 14: 14 to go." in said
    lab.fill("sheet.csv", hill)
    assert "before there are 14: 8 to go." in lab.call("next")
    lab.fill("sheet.csv", hill)
    said = lab.call("next")
    assert (
        "A model of these values chooses what to measure next, and nothing is" in said
    )
    assert "decided before there are 14: 2 to go." in said
    assert "20 undecided" in said
    assert "Of all 20 about" in said


def test_what_is_no_command_for_tables_is_the_demo(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for line in ("demo --pool absent.csv", "--pool absent.csv"):
        assert command(line.split()) == 2
        assert (
            "python -m botorch_lse: error: Expected `--pool`" in capsys.readouterr().err
        )
    with pytest.raises(SystemExit) as stop:
        command([])
    assert stop.value.code == 0
    assert "next" in capsys.readouterr().out


def test_both_ways_to_call_reach_the_table(lab: Lab) -> None:
    assert main(NEXT.split()) == 0
    assert len(lab.read("sheet.csv")) == 4


def test_the_first_call_says_what_each_column_is_taken_for(lab: Lab) -> None:
    rows = [
        ("R1", "800", "DMF", "yes", "3", "7", "a", ""),
        ("R2", "3000", "MeOH", "no", "1", "7", "b", "4.5"),
        ("R3", "1200", "water", "no", "2.5", "7", "b", ""),
    ]
    header = "recipe;flow;solvent;dry;dose;lot;remark;y (%)"
    lab.write("candidates.csv", "\n".join([header, *map(";".join, rows), ""]))
    call = "next candidates.csv --above 7 --column y --key recipe --batch 2"
    said = lab.call(f"{call} --ignore remark --logs dose")
    assert said.startswith(
        "candidates.csv: 3 lines; semicolons between cells; decimal point.\n"
        "  recipe: names the candidates\n"
        "  flow: numbers 800 to 3000\n"
        "  solvent: 3 words (DMF, MeOH, water)\n"
        "  dry: yes or no\n"
        "  dose: numbers 1 to 3, by their logarithm\n"
        "  lot: not used (7 in every line)\n"
        "  remark: ignored\n"
        "  y (%): what is measured\n"
    )
    again = lab.call("next")
    assert "flow" not in again  # once is enough
    assert "Not used" not in again


def test_words_of_which_there_are_many_are_shown_in_part(lab: Lab) -> None:
    rows = [f"{x},w{x % 9}" for x in range(20)]
    lab.write("candidates.csv", "\n".join(["x,kind", *rows, ""]))
    said = lab.call(
        "next candidates.csv --above 7 --column y --batch 2 --inputs x,kind"
    )
    assert "kind: 9 words (w0, w1, w2, w3, w4, w5, and 3 more)" in said


@pytest.mark.slow
def test_a_column_that_a_correction_leaves_out_is_named_in_every_call(
    lab: Lab,
) -> None:
    header, *lines = HILL.splitlines()
    rows = [f"{line},{i * i % 7 if i != 3 else ''}" for i, line in enumerate(lines)]
    lab.write("candidates.csv", "\n".join([f"{header},share", *rows]))
    call = "next candidates.csv --above 7 --column share --key name --batch 4"
    assert "19 values of share in candidates.csv do not count" in lab.call(call)
    file = lab.folder / "botorch-lse.toml"
    file.write_text(file.read_text().replace('column = "share"', 'column = "y"'))
    (lab.folder / "sheet.csv").unlink()
    rows = [f"{line},{i * i % 7}" for i, line in enumerate(lines)]
    lab.write("candidates.csv", "\n".join([f"{header},share", *rows]))
    for command_ in ("next", "next", "answer"):
        assert "Not used of candidates.csv: share. To use one, name it in" in (
            lab.call(command_)
        )
    # Each of the two remedies.
    text = file.read_text()
    file.write_text(text.replace("# ignore =", 'ignore = ["share"]  #'))
    assert "Not used" not in lab.call("next")
    file.write_text(text.replace('inputs = ["x"]', 'inputs = ["x", "share"]'))
    assert "Not used" not in lab.call("next")


def test_a_column_to_be_measured_that_is_full_is_asked_about(lab: Lab) -> None:
    header, *lines = HILL.splitlines()
    rows = [f"{line},{i * i % 23}" for i, line in enumerate(lines)]
    lab.write("candidates.csv", "\n".join([f"{header},share", *rows]))
    call = "next candidates.csv --above 3 --key name --batch 4"
    for name in ("next", "answer"):
        said = lab.refused(f"{call} --column share".replace("next", name))
        assert "candidates.csv, column share: expected what is to be measured" in said
        assert "give --results candidates.csv; if it is an input, give --column" in said
    assert "20 measured" in lab.call(
        f"{call} --column share --results candidates.csv --noise-std 1 --first 8"
    )
    for path in lab.folder.glob("[bs]*"):
        path.unlink()
    said = lab.call(f"{call} --column y --inputs x,share")
    assert "share: numbers 0 to 18" in said


@pytest.mark.parametrize("remedy", ["copy", "set"])
def test_values_beside_the_candidates_are_named_and_can_be_used(
    lab: Lab, remedy: str
) -> None:
    header, *lines = HILL.splitlines()
    known = [f"{line},{'4.5' if i in (2, 14) else ''}" for i, line in enumerate(lines)]
    lab.write("candidates.csv", "\n".join([f"{header},y", *known]))
    said = lab.call(NEXT)
    assert (
        "2 values of y in candidates.csv do not count. To use them, copy these lines "
        'to results.csv, or set results = "candidates.csv" in botorch-lse.toml.' in said
    )
    if remedy == "copy":
        lab.write("results.csv", "\n".join([f"{header},y", known[2], known[14]]))
    else:
        file = lab.folder / "botorch-lse.toml"
        text = file.read_text()
        file.write_text(text.replace('"results.csv"', '"candidates.csv"'))
    said = lab.call("next")
    assert "2 measured" in said
    assert "do not count" not in said


MISSING = ["NA", "NaN", "<NA>", "NULL", "#N/A"]


@pytest.mark.some(2)
@pytest.mark.parametrize("word", MISSING)
def test_what_programs_write_for_missing_values_is_an_empty_cell(
    lab: Lab, word: str
) -> None:
    lab.call(NEXT)
    first = lab.read("sheet.csv")[0]
    lab.fill("sheet.csv", lambda x: word if x == first else hill(x))
    said = lab.call("next")
    assert "3 measured." in said
    assert "not measurable" not in said
    assert f"{word} in sheet.csv, line 2: counts as empty, as programs write" in said
    again = lab.read("sheet.csv")[0]
    assert again == first
    lab.fill("sheet.csv", hill)
    assert "7 measured." in lab.call("next")
    # In results that nobody asked for such a line says nothing.
    results = (lab.folder / "results.csv").read_text()
    lab.write("results.csv", f"{results},19,n19,,{word}\n")
    assert "7 measured." in lab.call("next")
    assert len(lab.read("sheet.csv")) == 4


@pytest.mark.some(2)
@pytest.mark.parametrize("mark", ["failed", "n/a", "not measurable", "Excluded"])
def test_every_mark_can_be_taken_back(lab: Lab, mark: str) -> None:
    lab.call(NEXT)
    name = lab.read("sheet.csv")[0]["name"]
    lab.fill("sheet.csv", lambda x: mark if x["name"] == name else hill(x))
    said = lab.call("next")
    undo = "empty its cell in results.csv to ask for it again"
    assert (undo in said) == (mark != "failed")
    lines = (lab.folder / "results.csv").read_text()
    lab.write("results.csv", lines.replace(f"1,{mark}\n", "1,\n"))
    lab.call("next")
    names = [line["name"] for line in lab.read("sheet.csv")]
    assert name in names
    lab.fill("sheet.csv", hill)
    said = lab.call("next")
    assert "failed" not in said.split("sheet.csv:")[0]
    assert "measurable" not in said.split("sheet.csv:")[0]
    results = [x for x in lab.read("results.csv") if x["name"] == name]
    assert [line["y"] for line in results] == [hill(results[0])] * len(results)
    # Or the whole line goes.
    lab.write("results.csv", lines)
    marked = next(x for x in lines.splitlines(True) if x.endswith(f",{mark}\n"))
    (lab.folder / "sheet.csv").unlink()
    lab.write("results.csv", lines.replace(marked, ""))
    assert "20 candidates: 3 measured.\n" in lab.call("next")


@pytest.mark.slow
def test_columns_that_people_add_are_kept_and_come_back(lab: Lab) -> None:
    lab.write("results.csv", "name,y,day\nn03,3.95,Monday\n")
    lab.call(NEXT)
    sheet = lab.read("sheet.csv")
    header = [*sheet[0], "operator"]
    rows = [[*line.values(), f"op{i}"] for i, line in enumerate(sheet)]
    for row in rows[:3]:
        row[4] = "4.5"
    text = "\n".join(",".join(row) for row in [header, *rows])
    lab.write("sheet.csv", f"{text}\n")
    lab.call("next")
    results = lab.read("results.csv")
    assert list(results[0]) == ["name", "y", "day", "sheet", "repeat", "operator"]
    assert [line["operator"] for line in results] == ["", "op0", "op1", "op2"]
    assert results[0]["day"] == "Monday"
    assert [line["operator"] for line in lab.read("sheet.csv")] == ["op3", "", "", ""]
    lab.call("answer")
    answer = {line["name"]: line for line in lab.read("answer.csv")}
    assert answer["n03"]["day"] == "Monday"
    assert answer[sheet[0]["name"]]["operator"] == "op0"
    assert answer[sheet[3]["name"]]["operator"] == "op3"
    toml = tomllib.loads((lab.folder / "botorch-lse.toml").read_text())
    assert toml["inputs"] == ["x"]
    # The same where there are no results yet.
    (lab.folder / "results.csv").unlink()
    lab.write("sheet.csv", f"{text}\n")
    lab.call("next")
    assert [line["operator"] for line in lab.read("results.csv")] == [
        "op0",
        "op1",
        "op2",
    ]


@pytest.mark.parametrize("word", ["", "PENDING"])
def test_another_result_beside_the_one_asked_for_is_no_input(
    lab: Lab, word: str
) -> None:
    header, *lines = HILL.splitlines()
    known = [
        f"{line},{f'{i / 2},{i * 3 % 11}' if i in (2, 7, 14) else f'{word},{word}'}"
        for i, line in enumerate(lines)
    ]
    lab.write("candidates.csv", "\n".join([f"{header},yield,ee", *known, ""]))
    call = NEXT.replace("column y", "column yield --results candidates.csv")
    if word:
        said = lab.refused(f"{call} --inputs x")
        assert "if 'PENDING' says that it is not measured yet, give --open PENDING" in (
            said
        )
        call += " --open PENDING"
    said = lab.call(call)
    assert "ee: another result, filled where yield is; not used" in said
    assert "3 measured." in said
    toml = tomllib.loads((lab.folder / "botorch-lse.toml").read_text())
    assert toml["inputs"] == ["x"]
    assert "3 measured." in lab.call("next")


def test_a_delimiter_that_the_file_says_is_said(lab: Lab) -> None:
    lab.write("candidates.csv", f"sep=|\n{HILL.replace(',', '|')}")
    assert "candidates.csv: 20 lines; '|' between cells." in lab.call(NEXT)
    assert (lab.folder / "sheet.csv").read_text().startswith("sep=|\nsheet|x|name|")


def test_a_table_of_which_nothing_can_be_measured_says_what_to_do(lab: Lab) -> None:
    lab.write("candidates.csv", "x,name\n1,a\n4,b\n")
    lab.write("results.csv", "name,y\na,n/a\nb,excluded\n")
    call = "next candidates.csv --above 7 --column y --key name --batch 2"
    assert "Empty a cell that says so in results.csv." in lab.refused(call)
    lab.write("results.csv", "name,y\na,n/a\nb,\n")
    lab.call(call)


@pytest.mark.some(1)
@pytest.mark.parametrize("kept", ["kept", "lost", "spoilt"])
def test_a_new_call_fits_the_past_only_if_its_file_is_lost(
    lab: Lab, monkeypatch, kept: str
) -> None:
    made = []
    given = marginal.fit_likelihood
    monkeypatch.setattr(
        marginal, "fit_likelihood", lambda mll: (made.append(mll), given(mll))[1]
    )
    lab.call(f"{NEXT} --first 8 --noise-std 2")
    for _ in range(3):
        lab.fill("sheet.csv", hill)
        lab.call("next")
    sheet = lab.contents()["sheet.csv"]
    # One for each sheet with a model, and one more without a value in doubt.
    n = len(made)
    assert n in (2, 3)
    if kept == "lost":
        (lab.folder / ".botorch-lse.fits.json").unlink()
    elif kept == "spoilt":
        lab.write(".botorch-lse.fits.json", '{"a": [1')
    lab.call("next")
    assert len(made) == (n if kept == "kept" else 2 * n)
    assert lab.contents()["sheet.csv"] == sheet


@pytest.mark.slow
def test_without_the_column_sheet_no_answer_is_narrower(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # By the theorem's width, which grows from round to round.
    monkeypatch.setattr(composed, "LEARNT_WIDTH", None)
    lab.call(f"{NEXT} --noise-std 0.5 --replicates")
    for _ in range(4):
        lab.fill("sheet.csv", hill)
        lab.call("next")
    lines = [
        {k: v for k, v in line.items() if k not in ("sheet", "repeat")}
        for line in lab.read("results.csv")
    ]
    assert len(lines) == 16

    def answer() -> list[tuple[float, float, str]]:
        lab.call("answer")
        found = lab.read("answer.csv")
        return [(float(a["lower"]), float(a["upper"]), a["side"]) for a in found]

    own = answer()
    assert math.isfinite(own[0][0])
    random.Random(3).shuffle(lines)
    (lab.folder / "sheet.csv").unlink()
    with (lab.folder / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)
    pairs = list(zip(own, answer(), strict=True))
    # The numbers of the answer are rounded to be read.
    assert all(b[1] - b[0] >= (a[1] - a[0]) * (1 - 1e-3) for a, b in pairs)
    assert any(b[1] - b[0] > (a[1] - a[0]) * 1.01 for a, b in pairs)
    assert not any(a[2] == "undecided" != b[2] for a, b in pairs)
