r"""What is wrong in a file is said with its place and what to do about it."""

from __future__ import annotations

import pytest

from tests.cli.lab import HILL, NEXT, Lab

KEYED = "name,y\nn03,4\nn09,10\n"


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (
            "name,y\nn03,4.5\nn04,\nn09,'57,8'\nn10,6.0\n".replace("'", '"'),
            "results.csv, line 4, column y: expected a number, but got '57,8'; "
            "write 57.8.",
        ),
        ("name,y\nn03,57.8 MPa\n", "but got '57.8 MPa'; write 57.8 (a unit may stand"),
        (
            "name,y\nn03,lost\n",
            "line 2, column y: expected a number, but got 'lost'; write a number, "
            "leave the cell empty, or write failed (asked again) or n/a",
        ),
        (
            "name,y\nn03,Yes\n",
            "a number, but got 'Yes'; if results are yes or no, give --outcome yes-no, "
            "with a level that is a probability of yes, such as 0.75.",
        ),
        ("name,y\nn03,none\n", "expected a number, but got 'none'"),
        ("name,y\nn03,1e999\n", "expected a number, but got '1e999'"),
        (
            "name,y\nn3,4\n",
            "line 2, column name: expected a candidate of candidates.csv, such as n13,"
            " but got 'n3'; correct it",
        ),
        ("name,y\n,4\n", "column name: expected a candidate of candidates.csv"),
        (
            "name,x,y\nn03,4,4\n",
            "line 2, column x: expected 3 as name n03 has in line 5 of candidates.csv, "
            "but got '4'; correct the line that is wrong",
        ),
        (
            "x,y\n3.01,4\n",
            "line 2, column x: expected the inputs of a candidate of candidates.csv; "
            "the likest, in line 5, has 3, but got '3.01'; restore the inputs",
        ),
        ("x,y\nthree,4\n", "line 2, column x: expected a number, but got 'three'"),
        ("place,y\n3,4\n", "its key 'name' to tell which candidates were measured"),
        ("name,z\nn03,4\n", "expected the column 'y' of what is measured, but it has"),
        (
            f"{KEYED}n03,4\n",
            "results.csv, line 2, and results.csv, line 4: expected each measurement "
            "once, but both are the same value of one candidate. If a line was copied "
            "twice, delete one; if it was measured twice, give --replicates.",
        ),
        (f"{KEYED}n03,5\n", "but both are values of one candidate"),
        (
            f"{KEYED}n03,n/a\n",
            "results.csv, line 4: expected no value of a candidate that cannot be "
            "measured, but results.csv, line 2 has one. Write failed in place of n/a",
        ),
        (
            "name,y,sheet\nn03,4,first\n",
            "column sheet: expected a whole number, as the",
        ),
        ("name,y\nn03,4,5\n", "line 2: expected 2 cells as in the header, but got 3."),
        ("name,y,y\nn03,4,5\n", "columns of different names, but 'y' is there twice"),
        ("name,,y\nn03,4,5\n", "column 2 of the header has none"),
        ("", "results.csv: expected a header and lines, but it is empty"),
        ("PK\x03\x04", "but it is a workbook. In Excel, save it as 'CSV UTF-8"),
        ("name,y (MPa),y (%)\nn03,4,5\n", "but several have that name: name, y (MPa)"),
    ],
)
def test_results_that_are_wrong(lab: Lab, results: str, said: str) -> None:
    lab.write("results.csv", results)
    assert said in lab.refused(NEXT)


@pytest.mark.parametrize(
    ("candidates", "options", "said"),
    [
        (
            "x,z\n1,2\n,3\n",
            "",
            "candidates.csv, line 3, column x: expected a value for every candidate, "
            "but the cell is empty; fill it in, delete the line, or leave the column "
            "out: give --ignore x.",
        ),
        (
            "x,z\n1,2\n2,3\n7,9\n4x,3\n",
            "",
            "line 5, column x: expected a number, but got '4x'; write a number.",
        ),
        (
            "heat [C],z\n1,2\n,3\n",
            "",
            "leave the column out: give --ignore 'heat [C]'.",
        ),
        (
            'x,z\n"1,5",2\n2.5,7\n3.5,9\n',
            "",
            "line 2, column x: expected a number, but got '1,5'; write 1.5.",
        ),
        (
            "x,z\n1,2\n2,3\n1.0,2\n",
            "",
            "candidates.csv, lines 2 and 4: expected different candidates, but their "
            "inputs are the same (1, 2). Delete one line; if they are different "
            "samples, let a column name them: give --key NAME.",
        ),
        (
            "x,name\n1,a\n2,b\n4,a\n",
            "--key name",
            "candidates.csv, lines 2 and 4, column name: expected different names, but "
            "both are 'a'. Delete one line, or rename it.",
        ),
        ("x,name\n1,a\n2,\n", "--key name", "line 3, column name: expected a name for"),
        (
            "no,x\n1,5\n2,3\n3,9\n",
            "",
            "column 'no' counts the lines. If it names the candidates, give --key no; "
            "if it says nothing about them, give --ignore no; if it is an input, name "
            "all inputs with --inputs.",
        ),
        (
            "x,text\n" + "".join(f"{i},w{i}\n" for i in (3, 1, *range(4, 40))),
            "",
            "column text: expected few different words, each a level of an input, but "
            "got 38 in 38 lines. If it names the candidates, give --key text",
        ),
        (
            "x,y\n1,\n2,\n",
            "--key nam",
            "`key` to name columns of it, but 'nam' is none",
        ),
        ("x,y\n1,2\n2,3\n", "--ignore x", "no column is left that varies"),
        ("x\n", "", "candidates.csv: expected candidates, but got no line"),
        ("sheet,x\n1,2\n", "", "column 'sheet' is one of a sheet"),
    ],
)
def test_candidates_that_are_wrong(
    lab: Lab, candidates: str, options: str, said: str
) -> None:
    lab.write("candidates.csv", candidates)
    call = "next candidates.csv --above 7 --column y --batch 2"
    assert said in lab.refused(f"{call} {options}")


def test_a_file_that_is_missing_is_named(lab: Lab) -> None:
    assert "absent.csv: cannot be read" in lab.refused(
        "next absent.csv --above 7 --column y"
    )


def test_remedies_name_the_settings_once_there_are_some(lab: Lab) -> None:
    lab.call(NEXT)
    lab.write("results.csv", 'name,y\nn03,"57,800"\n')
    said = lab.refused("next")
    assert 'set decimal = "," in botorch-lse.toml; if it is one of thousands' in said
    lab.write("results.csv", f"{KEYED}n03,4\n")
    assert lab.refused("next").endswith("set replicates = true in botorch-lse.toml.")


def test_two_samples_may_have_equal_inputs_and_be_told_apart(lab: Lab) -> None:
    lab.write("candidates.csv", "x,name\n1,a\n1,b\n2,c\n5,d\n")
    lab.write("results.csv", "x,y\n1,3\n")
    call = "next candidates.csv --above 7 --column y --key name --batch 2"
    assert "lines 2 and 3 of candidates.csv have these inputs" in lab.refused(call)
    lab.write("results.csv", "name,y\na,3\n")
    lab.call(call)


def test_replicates_are_taken_where_they_are_announced(lab: Lab) -> None:
    lab.write("results.csv", f"{KEYED}n03,4.1\n")
    assert "3 measured" in lab.call(f"{NEXT} --replicates")


def test_a_line_pasted_twice_is_asked_about(lab: Lab) -> None:
    lab.call(NEXT)
    line = next(line for line in lab.read("sheet.csv") if line["repeat"] == "1")
    text = f"1,{line['x']},{line['name']},1,4.0\n"
    lab.write("results.csv", "sheet,x,name,repeat,y\n" + 2 * text)
    assert "both are the same value of one candidate" in lab.refused("next")


def test_results_and_sheet_that_disagree_are_shown(lab: Lab) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", lambda _: "4.0")
    line = lab.read("sheet.csv")[0]
    text = f"1,{line['x']},{line['name']},{line['repeat']}"
    lab.write("results.csv", f"sheet,x,name,repeat,y\n{text},5.0\n")
    said = lab.refused("next")
    assert said.startswith("results.csv, line 2, and sheet.csv, line 2: expected the")
    assert "but one says 5, the other 4. Correct one, or delete it." in said


def test_a_value_told_with_and_without_its_sheet_is_asked_about(lab: Lab) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", lambda _: "4.0")
    name = next(x["name"] for x in lab.read("sheet.csv") if x["repeat"] == "1")
    lab.write("results.csv", f"name,y\n{name},4.0\n")
    assert "If a line was copied twice, delete one" in lab.refused("next")


def test_changed_candidates_are_refused_not_mixed_up(lab: Lab) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", lambda _: "4.0")
    header, *lines = HILL.splitlines()
    names = [line.split(",")[1] for line in lines]
    mixed = [f"{x},{name}" for x, name in enumerate(reversed(names))]
    lab.write("candidates.csv", "\n".join([header, *mixed]))
    assert "correct the line that is wrong: one of the two" in lab.refused("next")


def test_all_faults_of_a_file_are_said_in_one_call(lab: Lab) -> None:
    lab.write(
        "results.csv",
        "name,x,y\nn03,3,3.95\nn4,4,5,9\nn05,5,much\nn06,6,9.1\nn07,7,2\n",
    )
    assert "line 3: expected 3 cells" in lab.refused(NEXT)
    lab.write(
        "results.csv",
        "name,x,y\nn03,3,3.95\nn4,4,5.9\nn05,5,much\nn06,7,9.1\nn03,3,2\nn9,9,?\n",
    )
    said = lab.refused(NEXT).splitlines()
    assert said[0] == "5 things to correct:"
    assert [line.partition(":")[0] for line in said[1:]] == [
        "- results.csv, line 3, column name",
        "- results.csv, line 4, column y",
        "- results.csv, line 5, column x",
        "- results.csv, line 7, column y",
        "- results.csv, line 7, column name",
    ]
    lab.write("results.csv", "name,x,y\nn03,3,3.95\nn03,3,2\nn04,4,5\nn04,4,5\n")
    said = lab.refused(NEXT).splitlines()
    assert len(said) == 3
    assert all("If a line was copied twice" in line for line in said[1:])


def test_faults_of_results_and_sheet_are_said_together(lab: Lab) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", lambda _: "soon")
    lab.write("results.csv", "name,y\nn33,4\n")
    said = lab.refused("next").splitlines()
    assert said[0] == "5 things to correct:"
    assert sum("sheet.csv" in line for line in said) == 4


def test_all_faults_of_the_candidates_are_said_in_one_call(lab: Lab) -> None:
    rows = ["a,1,2,x", "a,2,7,y", ",4,9,z", "d,5,,w", "e,6 g,4,NA", "f,7,3,x"]
    lab.write("candidates.csv", "\n".join(["name,heat,time,kind", *rows, ""]))
    call = "next candidates.csv --above 7 --column y --key name --batch 2"
    said = lab.refused(call)
    for part in (
        "4 things to correct",
        "line 4, column name: expected a name for every candidate",
        "line 5, column time: expected a value for every candidate, but the cell is e",
        "line 6, column heat: expected a number, but got '6 g'; write 6",
        "line 6, column kind: expected a value for every candidate, but got 'NA'; fill "
        "it in, delete the line, or leave the column out: give --ignore kind; if it is "
        "a word, give --words kind",
    ):
        assert part in said
    rows = ["a,1,2,x", "a,2,7,y", "c,4,9,z", "d,5,1,w", "e,6,4,NA", "e,7,3,x"]
    lab.write("candidates.csv", "\n".join(["name,heat,time,kind", *rows, ""]))
    said = lab.refused(f"{call} --words kind")
    assert "lines 2 and 3, column name" in said
    assert "lines 6 and 7, column name" in said
    rows = [f"{row[0]}{i}{row[1:]}" for i, row in enumerate(rows)]
    lab.write("candidates.csv", "\n".join(["name,heat,time,kind", *rows, ""]))
    assert "kind: 5 words (NA, w, x, y, z)" in lab.call(f"{call} --words kind")


def test_of_many_faults_of_one_kind_the_rest_is_counted(lab: Lab) -> None:
    lab.write("results.csv", "name,y\n" + "".join(f"n{i},1\n" for i in range(100, 160)))
    said = lab.refused(NEXT).splitlines()
    assert said[0] == "60 things to correct:"
    assert said[-1] == "- 20 more like these."
    assert len(said) == 42


def test_a_second_value_of_one_line_can_be_kept_as_a_replicate(lab: Lab) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", lambda _: "4.0")
    copied = (lab.folder / "sheet.csv").read_text()
    lab.call("next")
    text = copied.replace(",4.0", ",5.0").splitlines()
    lab.write("sheet.csv", "\n".join([text[0], text[1], ""]))  # measured twice
    said = lab.refused("next")
    assert (
        "but one says 4, the other 5. Correct one, or delete it. If both were" in said
    )
    assert (
        "move the line of sheet.csv to results.csv, its cells sheet and repeat empty, "
        "and set replicates = true in botorch-lse.toml." in said
    )
    header, *lines = (lab.folder / "results.csv").read_text().splitlines()
    cells = text[1].split(",")
    assert header.split(",")[0] == "sheet"
    assert header.split(",")[3] == "repeat"
    cells[0] = cells[3] = ""
    lab.write("results.csv", "\n".join([header, *lines, ",".join(cells), ""]))
    lab.write("sheet.csv", f"{header}\n")
    file = lab.folder / "botorch-lse.toml"
    off, on = "replicates = false", "replicates = true"
    file.write_text(file.read_text().replace(off, on))
    assert "5 measured" in lab.call("next")


@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", ["xlsx", "XLS", "ods"])
def test_workbooks_are_refused_wherever_one_is_named(lab: Lab, suffix: str) -> None:
    book = f"book.{suffix}"
    for option in ("--results", "--out"):
        said = lab.refused(f"{NEXT} {option} {book}")
        assert f"but got {book}, the name of a workbook, which is not written." in said
        assert "Name it book.csv: Excel opens it." in said
    lab.call(f"{NEXT} --out book.csv")
    assert f"Expected --table to be a CSV file, but got {book}" in lab.refused(
        f"answer --table {book}"
    )
    lab.call("answer --table found.csv")
    (lab.folder / book).write_bytes(
        b"\xd0\xcf\x11\xe0" if suffix == "XLS" else b"PK\3\4"
    )
    (lab.folder / "botorch-lse.toml").unlink()
    said = lab.refused(NEXT.replace("candidates.csv", book))
    assert f"{book}: expected a CSV file" in said
    lab.call(NEXT)  # the file that was saved as CSV


HEATED = "name,heat,time\nR1,20,5\nR2,35,6\nR3,50,9\nR4,65,4\nR5,80,7\nR6,95,8\n"


@pytest.mark.parametrize(
    ("candidates", "said", "line"),
    [
        (
            HEATED.replace("R1", ",°C,min\nR1"),
            "line 2: expected a candidate, but it looks like a line of units (°C, "
            "min). Delete it; a unit may stand in the header, as in 'heat (°C)'.",
            ",°C,min\n",
        ),
        (
            HEATED.replace("R4", "name,heat,time\nR4"),
            "line 5: expected a candidate, but it repeats the header. Delete it.",
            "name,heat,time\nR4",
        ),
        (
            f"{HEATED}Total,345,39\n",
            "line 8: expected a candidate, but it looks like a sum or mean of the",
            "Total,345,39\n",
        ),
        (f"{HEATED}Mittelwert:,57.5,6.5\n", "a sum or mean of the", "Mittel"),
    ],
)
def test_lines_that_are_no_candidates_are_asked_about(
    lab: Lab, candidates: str, said: str, line: str
) -> None:
    lab.write("candidates.csv", candidates)
    call = "next candidates.csv --above 7 --column y --key name --batch 2"
    assert said in lab.refused(call)
    assert line in candidates
    lab.write("candidates.csv", HEATED)  # the line deleted
    lab.call(call)


def test_a_key_that_a_spreadsheet_made_a_number_is_named_as_it_was(lab: Lab) -> None:
    lab.write("candidates.csv", "name,heat\n1E5,20\n2E5,35\n1E6,50\n")
    lab.write("results.csv", "name,y\n1.00E+05,4\n")
    call = "next candidates.csv --above 7 --column y --key name --batch 2"
    said = lab.refused(call)
    assert "a candidate of candidates.csv, such as 1E5, but got '1.00E+05'" in said
    lab.write("results.csv", "name,y\n1E5,4\n")
    assert "1 measured" in lab.call(call)


def test_numbers_kept_as_texts_by_an_apostrophe_are_numbers(lab: Lab) -> None:
    lab.write("candidates.csv", "name,heat\na,'20\nb,'35\nc,'50\n")
    lab.write("results.csv", "name,y\na,'4.5\n")
    said = lab.call("next candidates.csv --above 7 --column y --key name --batch 2")
    assert "heat: numbers '20 to '50" in said
    assert "1 measured" in said


def test_settings_that_were_lost_are_missed_where_there_are_results(lab: Lab) -> None:
    bare = "next candidates.csv --above 7"
    assert "are lost" not in lab.refused(bare)
    lab.call(NEXT)
    lab.write("results.csv", f"{KEYED}")
    (lab.folder / "botorch-lse.toml").unlink()
    assert "There is results.csv beside it, whose settings are lost" in lab.refused(
        bare
    )
    lab.call(NEXT)  # the remedy: the options of the first call
    assert lab.read("results.csv")[0]["y"] == "4"
