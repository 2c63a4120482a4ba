r"""Candidates in a workbook of Excel: read as if it had been saved as CSV."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pytest
from openpyxl import Workbook

from botorch_lse.cli.workbooks import lines_of
from tests.cli.lab import HILL, NEXT, Lab, hill

ROWS: list[list[Any]] = [["x", "name"], *([x, f"n{x:02d}"] for x in range(20))]
BOOK = NEXT.replace("candidates.csv", "plan.xlsx")


def book(sheets: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    made, file = Workbook(), io.BytesIO()
    made.remove(made.worksheets[0])
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
    made.save(file)
    return file.getvalue()


def write(lab: Lab, sheets: Mapping[str, Sequence[Sequence[Any]]]) -> None:
    (lab.folder / "plan.xlsx").write_bytes(book(sheets))


@pytest.mark.slow
def test_a_workbook_gives_the_run_of_the_same_table(lab: Lab) -> None:
    write(lab, {"Plan": ROWS, "Sheet2": []})
    before = (lab.folder / "plan.xlsx").read_bytes()
    answers = []
    for line in (BOOK, NEXT):
        lab.write("candidates.csv", HILL)
        said = lab.call(line).splitlines()[0]
        assert said.endswith("values are read.") == (line == BOOK)
        for _ in range(4):
            lab.fill("sheet.csv", hill)
            lab.call("next")
        lab.call("answer")
        answers.append((lab.read("answer.csv"), lab.read("results.csv")))
        for name in ("sheet.csv", "results.csv", "answer.csv", "botorch-lse.toml"):
            (lab.folder / name).unlink()
    assert answers[0] == answers[1]
    assert (lab.folder / "plan.xlsx").read_bytes() == before


def test_cells_are_values() -> None:
    rows = [
        ["a; b", "share", "day", "hour", "flag", "note"],
        [1.5, 0.05, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4), True, "two\nlines"],
        [None, 20, None, None, False, 'a "quote", and more'],
    ]
    text = lines_of(book({"one": rows}), "book.xlsx")
    assert text.splitlines() == [
        "a; b,share,day,hour,flag,note",
        "1.5,0.05,2026-01-02,2026-01-02T03:04:00,TRUE,two lines",
        ',20,,,FALSE,"a ""quote"", and more"',
    ]


def test_names_may_hold_what_else_stands_between_cells(lab: Lab) -> None:
    named = [["x", "name"], *([x, f"n;{x}|{x}"] for x in range(20))]
    write(lab, {"Plan": named})
    lab.call(BOOK)
    assert {line["name"].partition(";")[0] for line in lab.read("sheet.csv")} == {"n"}


def test_complaints_name_the_row_as_excel_counts(lab: Lab) -> None:
    rows = [row[:] for row in ROWS]
    rows.insert(3, [None, None])
    rows[7][0] = "#DIV/0!"
    write(lab, {"Plan": rows})
    said = lab.refused(BOOK)
    assert "plan.xlsx, line 8, column x" in said
    assert "#DIV/0!" in said


def test_several_filled_sheets_are_refused(lab: Lab) -> None:
    write(lab, {"Plan": ROWS, "Old": ROWS})
    said = lab.refused(BOOK)
    assert "expected one sheet with cells, but got 'Plan', 'Old'" in said
    write(lab, {"Plan": ROWS})  # as it says
    lab.call(BOOK)


def test_an_empty_workbook_is_an_empty_table(lab: Lab) -> None:
    write(lab, {"Plan": []})
    assert "expected a header and lines, but it is empty" in lab.refused(BOOK)


def test_what_openpyxl_cannot_read_is_refused(lab: Lab) -> None:
    (lab.folder / "plan.xlsx").write_bytes(b"PK\x03\x04 and no more")
    said = lab.refused(BOOK)
    assert "plan.xlsx: expected a CSV file or a workbook of Excel" in said
    assert "save it as 'CSV UTF-8" in said


def test_without_openpyxl_it_says_what_reads_workbooks(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lab, {"Plan": ROWS})
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "openpyxl", None)
        said = lab.refused(BOOK)
    assert "pip install 'botorch-lse[table]'" in said
    lab.call(BOOK)


def test_results_and_sheets_are_not_workbooks(lab: Lab) -> None:
    write(lab, {"Plan": ROWS})
    lab.call(BOOK)
    (lab.folder / "results.csv").write_bytes((lab.folder / "plan.xlsx").read_bytes())
    assert "expected a CSV file, but it is a workbook" in lab.refused("next")
