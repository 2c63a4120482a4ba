r"""Numbers as people and programs of several countries write them."""

from __future__ import annotations

import pytest

from botorch_lse._numerals import clear_mark
from botorch_lse.cli.command_line import parse, read
from botorch_lse.cli.notation import Notation
from tests.cli.lab import HILL, NEXT, Lab, hill


@pytest.mark.parametrize(
    ("text", "decimal", "number"),
    [
        ("1", ".", 1.0),
        (" -2.5e-3 ", ".", -0.0025),
        (".5", ".", 0.5),
        ("5.", ".", 5.0),
        ("\N{MINUS SIGN}3", ".", -3.0),
        ("1,5", ",", 1.5),
        ("1,5", ".", None),
        ("1.5", ",", None),
        ("1.000,5", ",", None),
        ("inf", ".", None),
        ("1_000", ".", None),
        ("", ".", None),
        ("<0.5", ".", None),
    ],
)
def test_numbers_are_read_as_they_are_written(
    text: str, decimal: str, number: float | None
) -> None:
    assert Notation(decimal).number(text) == number


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("57,8", "write 57.8"),
        ("1 000", "write 1000"),
        ("1'000", "write 1000"),
        ("12\N{NO-BREAK SPACE}000,5", "write 12000.5"),
        ("1.234.567", "write 1234567"),
        ("1,234.5", "write 1234.5"),
        ("1,000", "write 1000 if it is that much, or 1.0"),
        ("16%", "write 16 (a unit may stand in the header, in brackets)"),
        ("800 ml", "write 800 (a unit may stand in the header, in brackets)"),
        ("0,8 ml", "write 0.8 (a unit may stand in the header, in brackets)"),
        (
            "800\N{DEGREE SIGN}C",
            "write 800 (a unit may stand in the header, in brackets)",
        ),
        ("12 kg/m3", "write 12 (a unit may stand in the header, in brackets)"),
        ("38 \N{PLUS-MINUS SIGN} 1", "write a number"),
        ("4x", "write a number"),
        ("12:30", "write a number"),
        ("many", "write a number"),
    ],
)
def test_what_to_write_in_place_of_a_cell_is_a_number(text: str, remedy: str) -> None:
    found = Notation(".")
    assert found.repair(text) == remedy
    for word in remedy.split():
        if word[0].isdigit():
            assert found.number(word) is not None


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (["1", "20"], None),
        (["1.5", "20", "word"], "."),
        (["1,5", "2,25", "3.5"], ","),
        (["1.000", "12,500"], None),  # of thousands, or of decimals
        (["0.125"], "."),  # nobody writes 125 so
        (["1.000", "2.5"], "."),
        (["1e3", "1.5e3"], "."),
    ],
)
def test_a_column_shows_its_decimal_mark(texts: list[str], mark: str | None) -> None:
    assert clear_mark(texts) == mark


def flows(cells: list[str], more: str = "") -> str:
    r"""A table with a column of quoted cells."""
    rows = [f'n{i},"{cell}",{i * i}{more}' for i, cell in enumerate(cells)]
    return "\n".join([f"name,flow,k{',z' if more else ''}", *rows, ""])


CALL = "next candidates.csv --above 7 --column y --key name --batch 2"


@pytest.mark.some(7)
@pytest.mark.parametrize(
    ("cells", "options", "said", "repaired"),
    [
        (["1 000", "1 200", "3 000"], "", "got '1 000', and most of 3 diff", [0, " "]),
        (["1'000", "1'200", "800"], "", "; write 1000;", [0, "'"]),
        (["16%", "8%", "4%"], "", "got '16%', and most", [0, "%"]),
        (["800 ml", "9 ml", "7 ml"], "", "but got '800 ml'", [0, " ml"]),
        (["800 ml", "9 ml", "7 ml"], "", "give --words flow", ["--words flow"]),
        (["2-propanol", "1-butanol", "4-x"], "", "--words flow", ["--words flow"]),
        (["800 ml", "9 ml", "7 ml"], "", "give --ignore flow", ["--ignore flow"]),
        (
            ["800", "1.000", "3.000"],
            "",
            "line 3, column flow: expected a number that can be read in one way, but "
            "got '1.000', and every such mark in the column stands before three "
            "digits; if it is the decimal mark, give --decimal '.'; if it is one of "
            "thousands, write 1000.",
            [0, "."],
        ),
        (["800", "1.000", "3.000"], "", "give --decimal '.'", ["--decimal ."]),
        (["800", "1,000", "3,000"], "", "one of thousands, write 1000", [0, ","]),
        (["1,250", "1,000", "3,000"], "", "give --decimal ','", ["--decimal ,"]),
        (
            ["1,250", "1,000", "3,000"],
            "--decimal .",
            "but got '1,250', and most",
            [0, ","],
        ),
    ],
)
def test_cells_that_can_be_read_in_two_ways_are_asked_about(
    lab: Lab, cells: list[str], options: str, said: str, repaired: list[object]
) -> None:
    lab.write("candidates.csv", flows(cells))
    assert said in lab.refused(f"{CALL} {options}")
    remedy = repaired[-1]
    assert isinstance(remedy, str)
    if remedy.startswith("--"):
        lab.call(f"{CALL} {options} {remedy}")
    else:
        lab.write("candidates.csv", flows([x.replace(remedy, "") for x in cells]))
        lab.call(f"{CALL} {options}")


def test_three_decimals_are_no_question_where_other_columns_show_the_mark(
    lab: Lab,
) -> None:
    lab.write("candidates.csv", flows(["1.250", "2.000", "3.000"], ",0.5"))
    assert "flow: numbers 1.250 to 3.000" in lab.call(CALL)


def test_each_file_has_the_mark_that_it_shows(lab: Lab) -> None:
    r"""Candidates with points, and a sheet that came through another Excel."""
    halves = HILL.replace("\n1,", "\n1.5,n1h\n1,")
    lab.write("candidates.csv", halves)
    lab.call(NEXT)
    for mark in (",", ".", ",", ","):
        for line in lab.read("sheet.csv"):
            assert "," not in line["x"]
        lab.fill("sheet.csv", lambda line, m=mark: hill(line).replace(".", m))
        lab.call("next")
    values = [line["y"] for line in lab.read("results.csv")]
    assert len(values) >= 16
    assert not any("." in value for value in values)  # as the first ones had it
    lab.write("results.csv", 'name,y\nn03,"3,95"\nn04,5.25\nn05,6.5\n')
    assert "line 2, column y: expected a number, but got '3,95'; write 3.95." in (
        lab.refused("next")
    )


def test_lines_that_excel_rewrote_stay_readable_beside_new_ones(lab: Lab) -> None:
    rows = [f"{x}.5,n{x:02d}" for x in range(20)]
    lab.write("candidates.csv", "\n".join(["x,name", *rows, ""]))
    lab.call(NEXT)
    sheet = (lab.folder / "sheet.csv").read_text().splitlines()
    german = [line.replace(",", ";").replace(".", ",") for line in sheet]
    german[1] += "3,25"
    lab.write("sheet.csv", "\n".join([*german, ""]))
    lab.call("next")
    lines = lab.read("sheet.csv", ";")
    assert len(lines) == 4
    assert all("," in line["x"] for line in lines)
    lab.fill("sheet.csv", lambda _: "3,5", delimiter=";")
    assert "5 measured" in lab.call("next")


@pytest.mark.parametrize("level", ["65,5", "65.5"])
def test_a_level_may_have_a_decimal_comma(lab: Lab, level: str) -> None:
    call = f"next candidates.csv --above {level} --column y --key name --batch 4"
    lab.call(call)
    file = lab.folder / "botorch-lse.toml"
    text = file.read_text()
    assert "above = 65.5 " in text
    file.write_text(text.replace("above = 65.5 ", "above = 65,5 "))
    said = lab.refused("next")
    assert "line 6: expected a number with a decimal point, but got 65,5;" in said
    assert "write above = 65.5" in said
    file.write_text(text.replace("above = 65.5 ", 'above = "65,5" '))
    assert "write 65.5, without quotation marks" in lab.refused("next")
    # What may be one of thousands is not repaired in one way.
    file.write_text(text.replace("above = 65.5 ", "above = 1,000 "))
    assert "write above = 1000 or 1.0" in lab.refused("next")
    file.write_text(text.replace("above = 65.5 ", 'above = "1,000" '))
    assert "write 1000 or 1.0, without quotation marks" in lab.refused("next")


CELLS = {"": "", ".": "0.5", ",": '"0,5"'}
"""A cell of a table that shows a decimal mark, or none."""


def marked(lab: Lab, mark: str) -> None:
    rows = [f"{x * x},n{x},{CELLS[mark] or x % 2}" for x in range(5)]
    lab.write("candidates.csv", "\n".join(["x,name,z", *rows, ""]))


@pytest.mark.some(5)
@pytest.mark.parametrize("decimal", ["", ".", ","])
@pytest.mark.parametrize("mark", ["", ".", ","])
@pytest.mark.parametrize("own", [".", ","])
def test_a_number_outside_tables_has_the_decimal_mark_of_the_tables_or_is_asked_about(
    lab: Lab, own: str, mark: str, decimal: str
) -> None:
    marked(lab, mark)
    call = "next candidates.csv --column y --key name --batch 2"
    call += f" --decimal {decimal}" if decimal else ""
    typed = f"--above 1{own}125 --epsilon 2{own}000"
    if own == (decimal or mark):
        lab.call(f"{call} {typed}")
        numbers = "1.1250", "2"
    else:
        said = lab.refused(f"{call} {typed}")
        for name, ways in (("above", "1125 or 1.1250"), ("epsilon", "2000 or 2.0")):
            got = typed.partition(f"--{name} ")[2].split()[0]
            wanted = "a number that can be read in one way"
            assert f"--{name}: expected {wanted}, but got {got}; write {ways}." in said
        lab.call(f"{call} --above 1125 --epsilon 2.0")
        numbers = "1125", "2"
    # What the first call writes no later one asks about.
    text = (lab.folder / "botorch-lse.toml").read_text()
    assert f"above = {numbers[0]} " in text
    assert f"epsilon = {numbers[1]} " in text
    lab.call("next")


@pytest.mark.parametrize(
    ("option", "ways"),
    [
        ("--noise-std 1.250", ["1250", "1.25"]),
        ("--beta 4.000", ["4000", "4.0"]),
        ("--audit 0.05,1.000", ["1000", "1.0"]),
        ("--noise 1.250", ["1250", "1.25"]),
        ("--between 1.250,2e4", ["1250", "1.25"]),
    ],
)
def test_every_number_of_a_call_is_read_by_the_same_rule(
    lab: Lab, option: str, ways: list[str]
) -> None:
    marked(lab, ",")
    name = option.split()[0]
    call = "simulate candidates.csv --above 1 --column y --key name --runs 1 --most 2"
    for other in ("--between 1,9", "--noise 1"):
        call += "" if other.startswith(f"{name} ") else f" {other}"
    said = lab.refused(f"{call} {option}")
    assert f"{name}: expected a number that can be read in one way" in said
    assert f"; write {' or '.join(ways)}." in said
    typed = said.partition("but got ")[2].partition(";")[0]
    for way in ways:
        again = f"{call} {option.replace(typed, way)}"
        read(parse(again.split()))


def test_numbers_of_the_settings_are_read_by_the_same_rule(lab: Lab) -> None:
    marked(lab, ",")
    lab.call("next candidates.csv --above 2,5 --column y --key name --batch 2")
    file = lab.folder / "botorch-lse.toml"
    text = file.read_text()
    file.write_text(text.replace("above = 2.5", "above = 1.000"))
    said = lab.refused("next")
    assert "botorch-lse.toml, above: expected a number that can be read in one" in said
    assert "got 1.000; write 1000 or 1.0." in said
    for level in ("1000", "1.0"):
        file.write_text(text.replace("above = 2.5", f"above = {level}"))
        lab.call("next")
    # Nor is the budget one measurement without a question.
    file.write_text(text.replace("# budget = 100", "budget = 1.000"))
    said = lab.refused("next")
    assert "budget to be a whole number, but got '1.000'; write 1000 or 1.0" in said
    file.write_text(text.replace("# budget = 100", "budget = inf"))
    assert "expected budget to be a whole number, but got 'inf'" in lab.refused("next")
    # An option that says the same is typed by somebody, too.
    file.write_text(text.replace("above = 2.5", "above = 1.0"))
    assert "--above: expected a number that can be" in lab.refused("next --above 1.000")
    lab.call("next --above 1,000")


def test_files_that_differ_leave_a_number_open(lab: Lab) -> None:
    marked(lab, ".")
    call = "next candidates.csv --above 2.125 --column y --key name --batch 2"
    lab.write("results.csv", 'name,y\nn1,"0,5"\n')
    assert "--above: expected a number that can be" in lab.refused(call)
    lab.write("results.csv", "name,y\nn1,0.5\n")
    lab.call(call)


def test_ends_of_an_interval_are_named_when_they_are_not_two(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    call = "simulate candidates.csv --above 7 --column y --key name --between"
    for text in ("20,5,60,5", "1_0,2", "nan,3", "x,3"):
        with pytest.raises(SystemExit):
            lab.call(f"{call} {text}")
        assert f"but got '{text}'" in capsys.readouterr().err
