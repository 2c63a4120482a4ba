r"""Files as spreadsheets write them in several countries."""

from __future__ import annotations

from pathlib import Path

import pytest

from botorch_lse.table.candidates import Candidates
from botorch_lse.table.cells import Notation, Style, read_table, write_table
from tests.table.lab import HILL, NEXT, Lab, hill

GERMAN = "x;name\r\n" + "".join(f"{x},5;n{x:02d}\r\n" for x in range(20))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8", "utf-16", "cp1252"])
def test_semicolons_decimal_commas_marks_and_ends_of_lines(
    lab: Lab, encoding: str
) -> None:
    text = GERMAN.replace("x;name", "Wärme x;name")
    lab.write("candidates.csv", text, encoding)
    lab.call(f"{NEXT} --decimal ,")
    raw = (lab.folder / "sheet.csv").read_bytes()
    assert raw.startswith(b"\xff\xfe") == (encoding == "utf-16")
    assert raw.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    sheet = raw.decode(encoding)
    assert sheet.count("\r\n") == sheet.count("\n") == 5
    assert sheet.startswith("sheet;Wärme x;name;repeat;y")
    line = sheet.splitlines()[1]
    filled = sheet.replace(line, f"{line}4,25")
    (lab.folder / "sheet.csv").write_bytes(filled.encode(encoding))
    assert "1 measured" in lab.call("next")
    assert f"{line}4,25\r\n" in (lab.folder / "results.csv").read_bytes().decode(
        encoding
    )
    filled = filled.replace("4,25", "4.25")
    (lab.folder / "sheet.csv").write_bytes(filled.encode(encoding))
    assert 'write 4,25, or set decimal = "." in' in lab.refused("next")


def test_each_file_keeps_its_own_style(lab: Lab) -> None:
    lab.write("results.csv", 'name;y;remark\r\nn03;3.95;"old; good"\r\n', "utf-8-sig")
    lab.call(NEXT)
    assert b";" not in (lab.folder / "sheet.csv").read_bytes()
    lab.fill("sheet.csv", hill)
    lab.call("next")
    raw = (lab.folder / "results.csv").read_bytes()
    assert raw.startswith(b'\xef\xbb\xbfname;y;remark;sheet;repeat\r\nn03;3.95;"old; ')
    assert len(lab.read("results.csv", ";")) == 5


def test_units_stand_in_names_and_may_be_left_out(lab: Lab) -> None:
    lab.write("candidates.csv", HILL.replace("x,name", "x (mm),Name"))
    lab.write("results.csv", "X,strength (MPa)\n3,3.95\n9.0000001,9.95\n")
    call = "next candidates.csv --above 7 --column strength --key name --batch 4"
    assert "2 measured" in lab.call(call)
    assert list(lab.read("sheet.csv")[0])[-1] == "strength (MPa)"


def test_empty_lines_and_columns_of_spreadsheets_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"\r\na,b,,\r\n1,2,,\r\n,,,\r\n\r\n3\r\n")
    table = read_table(path)
    assert table.header == ("a", "b")
    assert [(line.number, dict(line.cells)) for line in table.lines] == [
        (3, {"a": "1", "b": "2"}),
        (6, {"a": "3", "b": ""}),
    ]


def test_lines_are_counted_where_a_cell_holds_a_line_break(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,b\n1,"two\nlines"\n3,4\n')
    assert [line.number for line in read_table(path).lines] == [2, 4]


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")
    path.chmod(0o640)
    write_table(path, ["a", "b"], [{"a": "1"}], Style(";", "utf-8-sig", "\r\n"))
    assert path.read_bytes() == b"\xef\xbb\xbfa;b\r\n1;\r\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]
    with pytest.raises(ValueError, match=r"cannot be written .* nothing was changed"):
        write_table(tmp_path / "absent" / "t.csv", ["a"], [], Style())


def test_letters_that_an_encoding_lacks_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_table(
        path, ["a"], [{"a": "\N{GREEK SMALL LETTER MU}m"}], Style(encoding="cp1252")
    )
    assert read_table(path).lines[0].cells["a"] == "\N{GREEK SMALL LETTER MU}m"


def test_words_and_answers_are_inputs_as_in_a_pool(tmp_path: Path) -> None:
    path = tmp_path / "candidates.csv"
    path.write_text("heat,soil,wet,batch\n10,clay,yes,7\n20,sand,No,7\n35,clay,no,7\n")
    found = Candidates.of(read_table(path), "y", Notation())
    assert found.inputs == ("heat", "soil", "wet")  # the batch never varies
    pool = found.pool(found.frame.index.to_numpy())
    assert pool.names == ("heat", "soil=clay", "soil=sand", "wet")
    assert pool.X.tolist() == [[10, 1, 0, 1], [20, 0, 1, 0], [35, 1, 0, 0]]
    path = tmp_path / "results.csv"
    path.write_text("wet,soil,heat\nNO,sand,20.0\n")
    table = read_table(path)
    assert found.lines[found.find(table.lines[0], table)].number == 3


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
