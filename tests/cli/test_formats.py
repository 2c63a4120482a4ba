r"""Files as spreadsheets write them in several countries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from botorch_lse.__main__ import command
from botorch_lse.cli.candidates import Candidates
from botorch_lse.cli.cells import Style, read_table, write_table
from botorch_lse.cli.notation import Notation
from tests.cli.lab import HILL, NEXT, Lab, hill

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
    filled = filled.replace("4,25", "4.25")  # the same, whoever saved it
    (lab.folder / "sheet.csv").write_bytes(filled.encode(encoding))
    assert "1 measured" in lab.call("next")


def test_each_file_keeps_its_own_style(lab: Lab) -> None:
    lab.write("results.csv", 'name;y;remark\r\nn03;3.95;"old; good"\r\n', "utf-8-sig")
    lab.call(NEXT)
    assert b";" not in (lab.folder / "sheet.csv").read_bytes()
    lab.fill("sheet.csv", hill)
    lab.call("next")
    raw = (lab.folder / "results.csv").read_bytes()
    assert raw.startswith(b'\xef\xbb\xbfname;y;remark;sheet;repeat\r\nn03;3.95;"old; ')
    assert len(lab.read("results.csv", ";")) == 5


def test_a_remark_in_brackets_is_no_unit(lab: Lab) -> None:
    text = HILL.replace("x,name", "x(in),name,x(out),y(last)")
    lab.write("candidates.csv", re.sub(r"(n\d\d)", r"\1,7,", text))
    lab.write("results.csv", "name,x(in),y,y(sd)\nn03,3,3.95,0.1\n")
    call = f"{NEXT} --inputs x(in) --ignore x(out)"
    assert "1 measured" in lab.call(call)
    lab.fill("sheet.csv", lambda line: hill({"x": line["x(in)"]}))
    assert "5 measured" in lab.call("next")
    assert list(lab.read("results.csv")[0])[:4] == ["name", "x(in)", "y", "y(sd)"]
    assert {line["y(sd)"] for line in lab.read("results.csv")} == {"0.1", ""}


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


OPEN = [
    'b,2,"2 inch\nc,3,\nd,4,\n',
    'b,2,"2 inch\nc,3,"3 inch"\nd,4,\n',
    'b,2,"2 inch\nc,3,"3 inch\nd,4,\n',
    'b,2,"\nc,3,"\nd,4,\n',
    'b,2,"half\nc,3,\nd,4,2"\ne,5,\n',
    '"b,2,\nc,3,\n"d",4,\n',
    '"b\nb",2,"open\nd,4,\n',
]
"""A line whose mark is not closed, and what stands below it."""


@pytest.mark.parametrize("lines", OPEN)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_mark_that_is_not_closed_is_named_where_it_opens(
    tmp_path: Path, lines: str, delimiter: str
) -> None:
    path = tmp_path / "table.csv"
    text = f"name,x,note\na,1,ok\n{lines}".replace(",", delimiter)
    path.write_text(text)
    line = 4 if lines.startswith('"b\nb') else 3
    with pytest.raises(ValueError, match=f"line {line}: a quotation mark opens here"):
        read_table(path)
    if lines == OPEN[0]:  # the remedy
        path.write_text(text.replace('"2 inch', '"2"" inch"'))
        assert [line.number for line in read_table(path).lines] == [2, 3, 4, 5]


def test_a_mark_that_is_not_closed_in_a_large_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rest = "".join(f"n{i},{i},{i}.25\n" for i in range(20_000))
    path.write_text(f'name,x,y\na,1,"2 inch\n{rest}')
    with pytest.raises(ValueError, match="line 2: a quotation mark opens here"):
        read_table(path)


def test_marks_and_line_breaks_that_are_meant_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    cells = ["Alloy\nA", '2" pipe', "b, c\nd, e", 'say "hi"', "1\n2, kg\n", '"', ""]
    rows = [{"note": cell, "x": str(i), "y": ""} for i, cell in enumerate(cells)]
    write_table(path, ["note", "x", "y"], rows, Style())
    found = [line.cells["note"] for line in read_table(path).lines]
    assert found == [cell.strip() for cell in cells]
    path.write_text('a,b\n1,2" pipe\n2,"x" \n')
    assert read_table(path).texts("b") == ['2" pipe', "x"]
    path.write_text('a,b\n1,2\n2,"2" pipe"\n')
    with pytest.raises(ValueError, match="line 3: text stands behind a quotation"):
        read_table(path)


def test_a_byte_0_is_named(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"a,b\n1,2\n2,\0\n")
    with pytest.raises(ValueError, match="line 3: expected text, but got a byte 0"):
        read_table(path)
    path.write_bytes("a,b\n1,2\n".encode("utf-16-le"))
    assert read_table(path, "utf-16-le").texts("b") == ["2"]


@pytest.mark.slow
def test_every_cut_of_what_was_written_is_refused_or_said(lab: Lab) -> None:
    lab.call(NEXT + " --noise-std 0.1")
    lab.fill("sheet.csv", hill)
    whole = (lab.folder / "sheet.csv").read_bytes()
    found = read_table(lab.folder / "sheet.csv")
    end = whole.rindex(b"\n", 0, -1) + 1
    n_cells = len(found.header)
    for at in range(end + 1, len(whole)):
        lab.write("sheet.csv", whole[:at].decode())
        if whole[end:at].count(b",") < n_cells - 1:
            assert "the file was cut short" in lab.refused("next")
    lab.write("sheet.csv", whole[:-2].decode())
    said = lab.call("next")
    assert f"sheet.csv, line 5: no line break ends '{whole[end:-2].decode()}'" in said
    assert "no line break" not in lab.call("next")
    text = (lab.folder / "botorch-lse.toml").read_text()
    for at in range(text.index("column"), len(text), 40):
        lab.write("botorch-lse.toml", text[: at - (text[at - 1] == "\n")])
        assert "botorch-lse.toml, line" in lab.refused("next")


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ('candidates = "candidates.csv"\nabove = 7\n', "toml: expected --column, but"),
        ('column = "y"\nabove = 7\n', "toml: expected the table of candidates, but"),
        ('candidates = "candidates.csv"\ncolumn = "y"\n', "toml: expected one level"),
    ],
)
def test_settings_without_what_they_need_are_named(
    lab: Lab, kept: str, said: str
) -> None:
    lab.write("botorch-lse.toml", kept)
    assert said in lab.refused("next")


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


def cells_of(path: Path, text: str) -> list[dict[str, str]]:
    path.write_text(text, newline="", encoding="utf-8")
    return [dict(line.cells) for line in read_table(path).lines]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (  # units behind commas in names, which are more than the delimiters
            "Temperature, °C;Time, min;Pressure, bar\n20;5;1\n30;6;2\n",
            {"Temperature, °C": "20", "Time, min": "5", "Pressure, bar": "1"},
        ),
        (  # and numbers with a comma in every cell: four cells by either
            "Temperature, °C;Time, min;p, bar\n20,5;5,0;1,0\n30,5;6,5;2,5\n",
            {"Temperature, °C": "20,5", "Time, min": "5,0", "p, bar": "1,0"},
        ),
        (  # a line break in the first cell of the header
            '"Temperature\n(°C)";"Time, min"\n20;5\n',
            {"Temperature (°C)": "20", "Time, min": "5"},
        ),
        ("a;b,c\nred, blue;x\ngreen;y\n", {"a": "red, blue", "b,c": "x"}),
        ("x\n1,5\n2,5\n", {"x": "1,5"}),
        ("a\tb, c; d\n1,5\t2\n", {"a": "1,5", "b, c; d": "2"}),
        ("a|b, c|d\n1,5|2|x;y\n3|4|z\n", {"a": "1,5", "b, c": "2", "d": "x;y"}),
        ("a;b|c\n1;2\n3;4\n", {"a": "1", "b|c": "2"}),
        ("sep=;\na;b, c\n1;2\n", {"a": "1", "b, c": "2"}),
        ('"sep=|"\r\na|b\r\n1|2\r\n', {"a": "1", "b": "2"}),
        ("# of Anna, May\n# two remarks\na,b\n1,2\n", {"a": "1", "b": "2"}),
        ("#,a,b\n1,2,3\n2,5,6\n", {"#": "1", "a": "2", "b": "3"}),
        ("# from, the, bench\na,b,c\n1,2,3\n", {"a": "1", "b": "2", "c": "3"}),
        ("a;b\n1;\n2;\n", {"a": "1", "b": ""}),
        ("name,y\nn1\nn2\n", {"name": "n1", "y": ""}),
        (
            "Zeit (s),a\n1,2\n".replace("Z", "Z\u0308"),
            {"Z\u0308eit (s)": "1", "a": "2"},
        ),
        ("Gro\u0308\u00dfe,a\n1,2\n", {"Gr\u00f6\u00dfe": "1", "a": "2"}),
    ],
)
def test_header_and_lines_say_together_what_stands_between_cells(
    tmp_path: Path, text: str, wanted: dict[str, str]
) -> None:
    assert cells_of(tmp_path / "t.csv", text)[0] == wanted


@pytest.mark.parametrize(
    ("text", "said", "repaired"),
    [
        (
            "Recipes of May\nheat,time\n20,5\n30,6\n",
            "t.csv, line 1: expected a name for every column, but it has 1 of them and "
            "most lines have 2 cells (',' between two). If it is a title, delete it, "
            "or begin it with #",
            "#Recipes of May\nheat,time\n20,5\n30,6\n",
        ),
        (
            "Recipes,of May,\nheat,time,y\n20,5,1\n30,6,2\n",
            "line 1: expected a name for every column, but it has 2",
            "heat,time,y\n20,5,1\n30,6,2\n",
        ),
        (
            "May,,Anna\nheat,time,y\n20,5,1\n",
            "column 2 of the header has none. Write one in line 1, or delete the "
            "column; if the line is a title, begin it with #.",
            "#May,,Anna\nheat,time,y\n20,5,1\n",
        ),
        (
            "heat,time, min\n20,5,\n30,6,2\n1,2,3,4\n",
            "line 4: expected 3 cells as in the header, but got 4",
            "heat,time, min\n20,5,\n30,6,2\n1,2,3\n",
        ),
        ("# nothing but remarks\n", "only remarks", "# nothing but remarks\na\n1\n"),
        ("sep=;\n", "only remarks", "sep=;\na;b\n1;2\n"),
    ],
)
def test_a_line_that_is_no_header_is_named(
    tmp_path: Path, text: str, said: str, repaired: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        cells_of(tmp_path / "t.csv", text)
    assert cells_of(tmp_path / "t.csv", repaired)


def test_what_stands_before_the_header_stays_in_its_file(lab: Lab) -> None:
    remark = "sep=;\n# candidates of May\n"
    lab.write("candidates.csv", remark + HILL.replace(",", ";"))
    lab.write("results.csv", "# results of May; all good\nname;y\nn03;3\n")
    lab.call(NEXT)
    text = (lab.folder / "sheet.csv").read_text()
    assert text.startswith("sep=;\nsheet;x;name;repeat;y\n")
    lines = text.splitlines()
    lab.write("sheet.csv", "\n".join([*lines[:2], f"{lines[2]}4", *lines[3:]]))
    assert "2 measured" in lab.call("next")
    text = (lab.folder / "results.csv").read_text()
    assert text.startswith("# results of May; all good\nname;y;sheet;repeat\nn03;3;;")
    assert (lab.folder / "candidates.csv").read_text().startswith(remark)


def test_letters_with_accents_are_the_same_in_either_form(lab: Lab) -> None:
    apart = HILL.replace("x,name", "W\u00e4rme,name").replace("n0", "\u00e40")
    lab.write("candidates.csv", apart.replace("\u00e4", "a\u0308"))
    lab.write("results.csv", "name,Ausbeute (" + "\u00e4" + ")\n\u00e403,4\n")
    lab.call(
        "next candidates.csv --above 7 --column Ausbeute --key name --batch 2 "
        "--inputs Wa\u0308rme"
    )
    assert '"W\u00e4rme"' in (lab.folder / "botorch-lse.toml").read_text()
    assert "1 measured" in lab.call("next --inputs W\u00e4rme")


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("encoding", "names", "words"),
    [
        ("gb18030", "\u6e29\u5ea6,\u4ea7\u7387", "\u4e59\u9187 \u6c34"),
        ("shift_jis", "\u6e29\u5ea6,\u53ce\u7387", "\u6c34 \u7a7a"),
        ("euc_kr", "\uc628\ub3c4,\uc218\uc728", "\ubb3c \uacf5\uae30"),
        ("cp1251", "\u0442\u0435\u043f,\u0432\u044b\u0445", "\u0430 \u044f"),
        ("mac_roman", "W\u00e4rme,Ma\u00df", "\u00e4 \u00fc"),
    ],
)  # fmt: skip
def test_code_pages_of_other_alphabets_are_told_by_the_names_asked_for(
    lab: Lab, encoding: str, names: str, words: str
) -> None:
    heat, share = names.split(",")
    rows = [f"{x},{words.split()[x % 2]},n{x}" for x in (1, 5, 9, 2, 7)]
    lab.write("candidates.csv", "\n".join([f"{heat},w,name", *rows, ""]), encoding)
    call = ["next", "candidates.csv", "--above", "7", "--column", share]
    call += ["--key", "name", "--inputs", f"{heat},w", "--batch", "2"]
    assert command(call) == 0
    said = lab.capture.readouterr().out
    assert f"encoding {encoding}" in said
    assert f"  {heat}: numbers 1 to 9\n" in said
    assert f"w: 2 words ({', '.join(sorted(words.split()))})" in said
    sheet = (lab.folder / "sheet.csv").read_bytes().decode(encoding)
    assert sheet.splitlines()[0] == f"sheet,{heat},w,name,repeat,{share}"
    filled = [f"{line}{'4.5' if i else ''}" for i, line in enumerate(sheet.split())]
    lab.write("sheet.csv", "\n".join([*filled, ""]), encoding)
    assert "2 measured" in lab.call("next")


def test_a_code_page_that_is_not_told_is_asked_for(lab: Lab) -> None:
    text = "\u6e29\u5ea6,name\n1,n1\n4,n2\n"
    lab.write("candidates.csv", text, "gbk")
    lab.write("results.csv", "name,\u4ea7\u7387\nn1,4.5\n", "gbk")
    call = "next candidates.csv --above 7 --key name --batch 2 --column"
    said = lab.refused(f"{call} yield")
    assert "If its names look wrong, it was saved in another code page" in said
    assert "as in --encoding gbk" in said
    assert "1 measured" in lab.call(f"{call} \u4ea7\u7387 --encoding gbk")
    file = lab.folder / "botorch-lse.toml"
    settings_text = file.read_text(encoding="utf-8")
    assert 'encoding = "gbk"' in settings_text
    wrong = settings_text.replace('encoding = "gbk"', 'encoding = "gkb"')
    file.write_text(wrong, encoding="utf-8")
    assert "such as gbk, shift_jis, cp1251 or mac_roman, but got 'gkb'" in (
        lab.refused("next")
    )
    lab.write("candidates.csv", text.replace("\u6e29", "\u8054"), "gbk")
    (lab.folder / "botorch-lse.toml").unlink()
    (lab.folder / "candidates.csv").write_bytes(b"a,b\n\x81\x8d,1\n")
    said = lab.refused("next candidates.csv --above 7 --column y")
    assert "expected text in UTF-8, but it holds something else. If it was" in said


def test_names_that_were_guessed_are_asked_about_at_once(lab: Lab) -> None:
    lab.write("candidates.csv", "\u6e29\u5ea6,name\n1,n1\n4,n2\n", "gbk")
    call = "next candidates.csv --above 7 --column y --key name --batch 2"
    asked = "delete botorch-lse.toml and sheet.csv, and call again with its encoding, "
    assert f"{asked}as in --encoding gbk." in lab.call(call)
    for name in ("botorch-lse.toml", "sheet.csv"):
        (lab.folder / name).unlink()
    said = lab.call(f"{call} --encoding gbk")
    assert "  \u6e29\u5ea6: numbers 1 to 4\n" in said
    assert asked not in said


def test_nothing_is_taken_off_letters_of_a_guessed_encoding(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    cell = "\u00e0"  # ends in what would be a blank of another encoding
    raw = f"a,b\n{cell},1\n".encode("gb18030")
    path.write_bytes(raw)
    table = read_table(path)
    assert table.style.encoding == "cp1252"
    write_table(path, table.header, [line.cells for line in table.lines], table.style)
    assert path.read_bytes() == raw
