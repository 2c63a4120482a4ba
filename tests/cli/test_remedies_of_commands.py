r"""Every remedy that a message of the command line names, executed.

A case is a folder of files and a call that is refused; what the message says is done
to the files, or to the call, and the call goes through.
"""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from botorch_lse import cli
from botorch_lse.cli import command_line, demo, options
from botorch_lse.cli.cells import write_table
from botorch_lse.cli.runs import Run
from botorch_lse.cli.simulated import truth_of
from tests.cli.lab import HILL
from tests.cli.test_workbooks import book
from tests.remedies import sites_of

ROOM = Path(cli.__file__).resolve().parent
FILES = {str(path): path for path in ROOM.glob("*.py")}
ALWAYS = "--above 7 --column y"
CALL = f"next candidates.csv {ALWAYS} --key name"
BY_INPUTS = f"next candidates.csv {ALWAYS} --ignore name"
TOML = 'candidates = "candidates.csv"\ncolumn = "y"\nkey = "name"\nabove = 7\n'
SETTINGS = "botorch-lse.toml"
Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Way:
    r"""What a message says to do.

    Args:
        files: Files that are changed.
        call: Another call; default the same.
        holds: What must hold of the run then.
    """

    files: Files = field(default_factory=dict)
    call: str | None = None
    holds: Callable[[Run], bool] = lambda run: len(run.candidates) > 0


@dataclass(frozen=True)
class Case:
    r"""A place that complains, the state in which it does, and what helps.

    Args:
        files: Files beside the candidates' table.
        call: The call that is refused.
        says: What the message names.
        ways: What it says to do.
    """

    files: Files
    call: str
    says: str
    ways: tuple[Way, ...]


CASES: list[tuple[str, Case]] = []
OTHERS: dict[str, Callable[[], None]] = {}


def case(site: str, files: Files, call: str, says: str, *ways: Way) -> None:
    CASES.append((site, Case(files, call, says, ways)))


def results(text: str) -> dict[str, str]:
    return {"results.csv": text}


def table(text: str) -> dict[str, str]:
    return {"candidates.csv": text}


def stored(text: str) -> dict[str, str]:
    return {SETTINGS: text}


def other(site: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    r"""Register a place that no file and no call alone leads to."""

    def register(steps: Callable[[], None]) -> Callable[[], None]:
        OTHERS[site] = steps
        return steps

    return register


# --- playing ------------------------------------------------------------------------


def understood(call: str) -> Run:
    r"""What a call makes of the files, before anything is learnt."""
    run = command_line.read(command_line.parse(shlex.split(call)))
    assert len(run.rows) > 0
    return run


def put(files: Files) -> None:
    for name, text in files.items():
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())


def passed(call: Callable[[], Any], errors: Any = ValueError) -> tuple[str, set[str]]:
    r"""The error of a call, and the places that complained on the way to it."""
    seen = set[tuple[str, int]]()

    def within(frame: FrameType, _event: str, _given: Any) -> Any:
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return within

    def enters(frame: FrameType, _event: str, _given: Any) -> Any:
        return within if frame.f_code.co_filename in FILES else None

    before = sys.gettrace()
    sys.settrace(enters)
    try:
        with pytest.raises(errors) as raised:
            call()
    finally:
        sys.settrace(before)
    sites = {
        name
        for own, path in FILES.items()
        for name, first, last in sites_of(path)
        if any((own, line) in seen for line in range(first, last + 1))
    }
    return str(raised.value), sites


def refused(site: str, says: str, call: Callable[[], Any], errors: Any = ValueError):
    said, sites = passed(call, errors)
    assert says in said, said
    assert site in sites, (sites, said)


def test_each_place_that_complains_has_a_case() -> None:
    there = {name for path in FILES.values() for name, _, _ in sites_of(path)}
    # Which hand on what others have said.
    there -= {f"cells:Faults.{name}" for name in ("noted#1", "noted#2", "check#1")}
    assert {site for site, _ in CASES} | OTHERS.keys() == there


@pytest.mark.parametrize(
    ("site", "one"), CASES, ids=[f"{site}, {one.says}" for site, one in CASES]
)
def test_what_the_message_says_can_be_done(
    site: str, one: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i, way in enumerate([None, *one.ways]):
        folder = tmp_path / str(i)
        folder.mkdir()
        monkeypatch.chdir(folder)
        put({"candidates.csv": HILL, **one.files})
        if way is None:
            refused(site, one.says, lambda: understood(one.call))
            continue
        put(way.files)
        assert way.holds(understood(way.call or one.call))


@pytest.mark.some(5)
@pytest.mark.parametrize("site", OTHERS)
def test_what_another_message_says_can_be_done(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put({"candidates.csv": HILL})
    OTHERS[site]()


def values(*wanted: float) -> Callable[[Run], bool]:
    r"""That just these values were measured."""
    return lambda run: (
        [entry.value for entry in run.measured.having("measured")] == [*wanted]
    )


# --- files --------------------------------------------------------------------------


ONE = results("name,y\nn03,4.5\n")
SAVED = Way({"saved.csv": "\ufeff" + HILL}, CALL.replace("candidates", "saved"))
case(
    "cells:read_table#1",
    {},
    f"next no.csv {ALWAYS}",
    "no.csv: cannot be read (No such file",
    Way(call=CALL),
)
case(
    "cells:read_table#2",
    table(""),
    CALL,
    "expected a header and lines, but it is empty",
    Way(table(HILL)),
)
case(
    "cells:read_table#3",
    table("# a remark\n"),
    CALL,
    "expected a header, but there are only remarks",
    Way(table(f"# a remark\n{HILL}")),
)
INCHES = 'x,name\n1,"2" pipe"\n2,rod\n'
case(
    "cells:read_table#4",
    table(INCHES),
    CALL,
    'is written twice, as in "2"" pipe"; or delete the marks around it',
    Way(table(INCHES.replace('"2" pipe"', '"2"" pipe"'))),
    Way(table(INCHES.replace('"2" pipe"', '2" pipe'))),
)
OPEN_MARK = 'x,name\n1,"two\n2,rod\n3,bar\n'
case(
    "cells:read_table#4",
    table(OPEN_MARK),
    CALL,
    "Delete it, or close it (inches are written",
    Way(table(OPEN_MARK.replace('"', ""))),
    Way(table(OPEN_MARK.replace('"two', '"two"'))),
)
LONG = table(HILL.replace("3,n03", "3,n03, new"))
case(
    "cells:read_table#5",
    LONG,
    CALL,
    "A text or number with ',' in it needs quotation marks around it",
    Way(table(HILL.replace("3,n03", '3,"n03, new"'))),
)
case(
    "cells:decoded#1",
    table(b"\xd0\xcf\x11\xe0 workbook"),  # type: ignore[arg-type]
    CALL,
    "save it as 'CSV UTF-8 (comma delimited)', and name that file",
    SAVED,
)
case(
    "cells:decoded#2",
    table(HILL.encode("utf-16-le")),  # type: ignore[arg-type]
    CALL,
    "or save it anew; if it is UTF-16, save it as 'CSV UTF-8'",
    Way(table("\ufeff" + HILL)),
)
CHINESE = HILL.replace("name", "\u540d")
case(
    "cells:decoded#3",
    table(CHINESE.encode("gbk")),  # type: ignore[arg-type]
    f"{CALL} --encoding ascii".replace("name", "\u540d"),
    "save it as 'CSV UTF-8', or name its encoding, as in --encoding gbk",
    Way(table(CHINESE)),
    Way(call=f"{CALL} --encoding gbk".replace("name", "\u540d")),
)
case(
    "cells:decoded#3",
    {
        **table(CHINESE.encode("gbk")),  # type: ignore[arg-type]
        **stored(TOML.replace("name", "\u540d") + 'encoding = "ascii"\n'),
    },
    "next",
    'or encoding = "gbk" in the settings',
    Way(stored(TOML.replace("name", "\u540d") + 'encoding = "gbk"\n')),
)
TITLE = f"Our hill\n{HILL}"
case(
    "cells:_check_header#1",
    table(TITLE),
    CALL,
    "If it is a title, delete it, or begin it with #",
    Way(table(HILL)),
    Way(table(f"# {TITLE}")),
)
case(
    "cells:_check_header#2",
    table(HILL.replace("x,name", ",name")),
    CALL,
    "Write one in line 1, or delete the column; if the line is a title, begin it with",
    Way(table(HILL)),
    Way(table(f"#,Our hill\n{HILL}")),
)
case(
    "cells:_check_header#3",
    table(HILL.replace("x,name", "name,name")),
    CALL,
    "'name' is there twice. Rename one",
    Way(table(HILL)),
)
case(
    "cells:check_is_no_workbook#1",
    {},
    f"{CALL} --out sheet.xlsx",
    "Name it sheet.csv: Excel opens it",
    Way(call=f"{CALL} --out sheet.csv"),
)
UNITS = "x,y (MPa),y (%)\n1,,\n2,,\n"
case(
    "cells:Table.column#1",
    table(UNITS),
    f"next candidates.csv {ALWAYS}",
    "Write the whole name with its unit",
    Way(call="next candidates.csv --above 7 --column 'y (%)' --ignore 'y (MPa)'"),
)


for beside, wanted, came in (
    (results("name,X [cm],y\nn03,3,4.5\n"), "x (mm)", "X [cm]"),
    (
        {
            **results("name,y (psi)\nn03,4.5\n"),
            "sheet.csv": "sheet,name,repeat,y (MPa)\n1,n04,1,\n",
        },
        "y (psi)",
        "y (MPa)",
    ),
):
    case(
        "cells:Table.column#2",
        {**table(HILL.replace("x,", "x (mm),", 1)), **beside},
        CALL,
        f".csv: expected the column {wanted!r}, but got {came!r}. If these are two ",
        Way(
            {name: text.replace(came, wanted) for name, text in beside.items()},
            holds=values(4.5),
        ),
        Way({name: text.replace(came, came[0]) for name, text in beside.items()}),
    )
case(
    "cells:Table.column#2",
    {
        "old.csv": "x,source,y (psi)\n3.5,trial,4.5\n",
        **results("name,y (MPa)\nn03,4.5\n"),
    },
    f"{CALL} --history old.csv",
    "results.csv: expected the column 'y (psi)', but got 'y (MPa)'. If these are two",
    Way({"old.csv": "x,source,y (MPa)\n3.5,trial,4.5\n"}),
)


ROWS = [line.split(",") for line in HILL.splitlines()]
case(
    "workbooks:lines_of#2",
    table(b"PK\x03\x04 workbook"),  # type: ignore[arg-type]
    CALL,
    "save it as 'CSV UTF-8 (comma delimited)', and name that file",
    SAVED,
)
case(
    "workbooks:lines_of#3",
    table(book({"Plan": ROWS, "Old": ROWS})),  # type: ignore[arg-type]
    CALL,
    "Save that of the candidates as a file of its own",
    Way(
        {"plan.xlsx": book({"Plan": ROWS})}, CALL.replace("candidates.csv", "plan.xlsx")
    ),
)


@other("workbooks:lines_of#1")
def a_workbook_without_what_reads_it() -> None:
    put({"plan.xlsx": book({"Plan": ROWS})})
    call = CALL.replace("candidates.csv", "plan.xlsx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "openpyxl", None)
        refused(
            "workbooks:lines_of#1",
            "pip install 'botorch-lse[table]'",
            lambda: understood(call),
        )
        put(SAVED.files)
        assert SAVED.holds(understood(SAVED.call))
    assert len(understood(call).candidates) == 20


@other("cells:content_of#1")
def a_link_to_nowhere() -> None:
    Path("candidates.csv").unlink()
    Path("candidates.csv").symlink_to("gone.csv")
    refused("cells:content_of#1", "cannot be read (", lambda: understood(CALL))
    Path("gone.csv").write_text(HILL)
    assert len(understood(CALL).candidates) == 20


@other("cells:writing#1")
def a_file_saved_meanwhile() -> None:
    run = understood(CALL)
    path = Path("sheet.csv")
    path.write_text("name\n")
    write = (path, ["name"], [], run.candidates.table.style)
    refused(
        "cells:writing#1",
        "was saved by something else while this call computed, and is left as that "
        "has it. Call again",
        lambda: write_table(*write, over=run.seen[path]),
    )
    assert path.read_text() == "name\n"
    path.unlink()
    write_table(*write, over=understood(CALL).seen[path])


@other("cells:writing#2")
def a_folder_that_is_gone() -> None:
    run = understood(CALL)
    path = Path("gone", "sheet.csv")
    write = (["name"], [], run.candidates.table.style)
    refused(
        "cells:writing#2",
        "Bring back what is not there, or name another file; nothing was changed",
        lambda: write_table(path, *write),
    )
    write_table(Path("other.csv"), *write)
    path.parent.mkdir()
    write_table(path, *write)
    assert path.exists()


# --- candidates ---------------------------------------------------------------------


case(
    "candidates:_check_is_of_candidates#1",
    table("x,name\n"),
    CALL,
    "expected candidates, but got no line",
    Way(table(HILL)),
)
OF_A_SHEET = HILL.replace("x,name", "sheet,name")
case(
    "candidates:_check_is_of_candidates#2",
    table(OF_A_SHEET),
    CALL,
    "Name the table of all candidates, or rename the column",
    Way({"all.csv": HILL}, CALL.replace("candidates", "all")),
    Way(table(OF_A_SHEET.replace("sheet", "page")), f"{CALL} --inputs page"),
)
WRONG = results("name,y\nn3,4.5\n")
case(
    "candidates:Candidates.of#1",
    table("x,z,name\n0,1,a\n2,2,b\n4,5,c\n"),
    f"{CALL} --inputs x --ignore x",
    "expected `ignore` to leave one of `inputs`, but it names all: x. Name other",
    Way(call=f"{CALL} --inputs z --ignore x"),
    Way(call=f"{CALL} --inputs x,z --ignore x --logs x --words x"),
)
case(
    "candidates:Candidates.find#1",
    WRONG,
    CALL,
    "correct it, add the candidate to candidates.csv, or delete the line",
    Way(ONE, holds=values(4.5)),
    Way(table(f"{HILL}20,n3\n"), holds=values(4.5)),
    Way(results("name,y\n"), holds=values()),
)
case(
    "candidates:Candidates._check_inputs#1",
    results("name,x,y\nn03,4,4.5\n"),
    CALL,
    "correct the line that is wrong: one of the two is about another candidate",
    Way(results("name,x,y\nn04,4,4.5\n"), holds=values(4.5)),
    Way(results("name,x,y\nn03,3,4.5\n"), holds=values(4.5)),
)
case(
    "candidates:Candidates._find_by_inputs#1",
    results("place,y\n3,4.5\n"),
    BY_INPUTS,
    "Add it, or name a column that both tables have: give --key NAME",
    Way(results("place,x,y\n3,3,4.5\n"), holds=values(4.5)),
    Way(results("place,name,y\n3,n03,4.5\n"), CALL, values(4.5)),
)
TWINS = table(f"{HILL}3,n20\n")
case(
    "candidates:Candidates._find_by_inputs#2",
    {**TWINS, **results("x,y\n3,4.5\n")},
    CALL,
    "have these inputs. Add the column 'name'",
    Way(results("x,name,y\n3,n20,4.5\n"), holds=values(4.5)),
)
case(
    "candidates:Candidates._refuse#1",
    results("x,y\n3.01,4.5\n"),
    CALL,
    "restore the inputs (programs round what they show), or let a column name the",
    Way(results("x,y\n3,4.5\n"), holds=values(4.5)),
    Way(results("x,name,y\n3,n03,4.5\n"), holds=values(4.5)),
)
case(
    "candidates:Candidates._cell#1",
    results("x,y\n3 mm,4.5\n"),
    CALL,
    "write 3 (a unit may stand in the header, in brackets)",
    Way(results("x (mm),y\n3,4.5\n"), holds=values(4.5)),
)
case(
    "candidates:Candidates._check_logs#1",
    {},
    f"{CALL} --logs name",
    "'name' is none. Leave it out",
    Way(call=CALL),
)
case(
    "candidates:Candidates._check_logs#2",
    {},
    f"{CALL} --logs x",
    "got '0'; correct it, or leave 'x' out of `logs`",
    Way(table(HILL.replace("0,n00", "0.5,n00", 1))),
    Way(call=CALL),
)
case(
    "candidates:Candidates._check_names#1",
    table(f"{HILL}20,n03\n"),
    CALL,
    "both are 'n03'. Delete one line, or rename it",
    Way(table(HILL)),
    Way(table(f"{HILL}20,n20\n")),
)
case(
    "candidates:Candidates._check_names#1",
    TWINS,
    BY_INPUTS,
    "if they are different samples, let a column name them: give --key NAME",
    Way(table(HILL)),
    Way(call=CALL),
)
case(
    "candidates:_check_lines#1",
    table(HILL.replace("\n", "\nmm,\n", 1)),
    CALL,
    "Delete it; a unit may stand in the header, as in 'x (mm)'",
    Way(table(HILL)),
    Way(table(HILL.replace("x,name", "x (mm),name"))),
)
case(  # the first line is no line of units
    "candidates:_read_column#2",
    table("x,name\n1\u202f000,a\n2000,b\n3500,c\n"),
    CALL,
    "got '1 000'; write 1000",
    Way(table("x,name\n1000,a\n2000,b\n3500,c\n")),
)
case(
    "candidates:_read_column#2",
    table("x,name\n800 ml,a\n900,b\n950,c\n"),
    CALL,
    "got '800 ml'; write 800 (a unit may stand in the header",
    Way(table("x (ml),name\n800,a\n900,b\n950,c\n")),
)
case(
    "candidates:_check_lines#1",
    table("x,name\n1/min,\n900,b\n950,c\n"),
    CALL,
    "as in 'x (1/min)'",
    Way(table("x (1/min),name\n900,b\n950,c\n")),
)
case(
    "candidates:_check_lines#2",
    table(f"{HILL}x,name\n20,n20\n"),
    CALL,
    "it repeats the header. Delete it",
    Way(table(f"{HILL}20,n20\n")),
)
case(
    "candidates:_check_lines#3",
    table(f"{HILL}190,Total\n"),
    CALL,
    "Delete it; if it is a candidate, give it another name",
    Way(table(HILL)),
    Way(table(f"{HILL}190,Total fat\n")),
)
case(
    "candidates:_known#1",
    {},
    CALL.replace("--key name", "--key nam"),
    "'nam' is none; did you mean 'name'? It has x, name",
    Way(call=CALL),
)
COMMA = table(HILL.replace("x,name", '"heat, C",name'))
case(
    "candidates:_known#1",
    COMMA,
    f"{CALL} --inputs 'heat, C'",
    "stands in quotation marks, as in --inputs '\"heat, C\"'",
    Way(call=f"{CALL} --inputs '\"heat, C\"'"),
)
COUNTED = table("x,no\n4,1\n9,2\n6,3\n")
case(
    "candidates:_described_by#1",
    COUNTED,
    f"next candidates.csv {ALWAYS}",
    "if it is an input, name all inputs with --inputs",
    Way(call=f"next candidates.csv {ALWAYS} --key no"),
    Way(call=f"next candidates.csv {ALWAYS} --ignore no"),
    Way(call=f"next candidates.csv {ALWAYS} --inputs x,no"),
)
case(
    "candidates:_described_by#2",
    table("x,name\n3,a\n3,b\n"),
    CALL,
    "expected columns that describe the candidates, but no column is left that varies",
    Way(table("x,name\n3,a\n4,b\n")),
)
NAMELESS = HILL.replace("3,n03", "3,")
case(
    "candidates:_check_key#1",
    table(NAMELESS),
    CALL,
    "the cell is empty; fill it in",
    Way(table(HILL)),
)
LACKING = table("x,z,name\n0,1,a\n,2,b\n4,5,c\n")
case(
    "candidates:_read_column#1",
    LACKING,
    CALL,
    "fill it in, delete the line, or leave the column out: give --ignore x",
    Way(table("x,z,name\n0,1,a\n2,2,b\n4,5,c\n")),
    Way(table("x,z,name\n0,1,a\n4,5,c\n")),
    Way(call=f"{CALL} --ignore x"),
)
case(
    "candidates:_read_column#1",
    {**LACKING, **stored(f'{TOML}inputs = ["x", "z"]\n')},
    "next",
    'leave the column out: set ignore = ["x"] in botorch-lse.toml',
    Way(
        stored(f'{TOML}inputs = ["x", "z"]\nignore = ["x"]\n'),
        holds=lambda run: run.candidates.inputs == ("z",),
    ),
)
case(
    "candidates:_read_column#1",
    table("x,name\nNA,a\nEU,b\nNA,c\n"),
    CALL,
    "if it is a word, give --words x",
    Way(call=f"{CALL} --words x"),
)
case(
    "candidates:_read_column#2",
    table(HILL.replace("3,n03", "3o,n03")),
    CALL,
    "expected a number, but got '3o'; write a number",
    Way(table(HILL)),
)
MARKED = table('x,name\n"1.000",a\n"2.500",b\n')
case(
    "candidates:check_marks#1",
    MARKED,
    CALL,
    "if it is the decimal mark, give --decimal '.'; if it is one of thousands, write",
    Way(call=f"{CALL} --decimal '.'", holds=lambda run: run.pool.X.max() == 2.5),
    Way(
        table("x,name\n1000,a\n2500,b\n"), holds=lambda run: run.pool.X.max() == 2500.0
    ),
)
ML = table("x,z,name\n800 ml,1,a\n900 ml,2,b\n950 ml,4,c\n")
case(
    "candidates:_ask_about_words#1",
    ML,
    CALL,
    "write 800 (a unit may stand in the header, in brackets); if they are words, give",
    Way(table("x (ml),z,name\n800,1,a\n900,2,b\n950,4,c\n")),
    Way(call=f"{CALL} --words x"),
    Way(call=f"{CALL} --ignore x"),
)
WORDY = table("z,x\n" + "".join(f"{i * i},w{chr(97 + i)}\n" for i in range(26)))
case(
    "candidates:_checked_words#1",
    WORDY,
    f"next candidates.csv {ALWAYS}",
    "If it names the candidates, give --key x; if it says nothing about them, give",
    Way(call=f"next candidates.csv {ALWAYS} --key x"),
    Way(call=f"next candidates.csv {ALWAYS} --ignore x"),
)


# --- results ------------------------------------------------------------------------


CUT = "sheet,x,name,repeat,y\n1,3,n03,1,4.5\n1,4,n04"
case(
    "measurements:_table_of#1",
    {"sheet.csv": CUT},
    CALL,
    "or complete the line and end it with a line break",
    Way({"sheet.csv": f"{CUT},1,5.5\n"}, holds=values(4.5, 5.5)),
)
case(
    "measurements:_Reader.column_of#1",
    results("name,z\nn03,4.5\n"),
    CALL,
    "Add it, or give --column NAME",
    Way(results("name,y\nn03,4.5\n"), holds=values(4.5)),
    Way(call=CALL.replace("--column y", "--column z"), holds=values(4.5)),
)
case(
    "measurements:_Reader.column_of#1",
    {**results("name,z\nn03,4.5\n"), **stored(TOML)},
    "next",
    'Add it, or set column = "NAME" in botorch-lse.toml',
    Way(stored(TOML.replace('"y"', '"z"')), holds=values(4.5)),
)
case(
    "measurements:_Reader._value#1",
    results("name,y\nn03,ND\n"),
    CALL,
    "write the limit below which it lies, such as <0.5",
    Way(results("name,y\nn03,<0.5\n"), holds=values(0.5)),
)
PENDING = results("name,y\nn03,PENDING\nn04,4.5\n")
case(
    "measurements:_Reader._value#2",
    PENDING,
    CALL,
    "leave the cell empty, or write failed (asked again) or n/a (cannot be measured, "
    "never asked again); if 'PENDING' says that it is not measured yet, give --open "
    "PENDING",
    *(
        Way(results(f"name,y\nn03,{word}\nn04,4.5\n"), holds=values(4.5))
        for word in ("", "failed", "n/a")
    ),
    Way(call=f"{CALL} --open PENDING", holds=values(4.5)),
)
case(
    "measurements:_Reader._value#2",
    results("name,y\nn03,yes\n"),
    CALL,
    "if results are yes or no, give --outcome yes-no, with a level that is a "
    "probability of yes, such as 0.75",
    Way(call=f"{CALL.replace('7', '0.75')} --outcome yes-no", holds=values(1.0)),
)
YES_NO = f"{CALL.replace('7', '0.75')} --outcome yes-no"
ANSWERS = results("name,y\nn03,yes\nn04,no\n")
case(
    "kinds:kind_of#1",
    {},
    f"{CALL} --guess 0.5",
    "Expected `outcome` to be yes-no where `guess` is given, but got none. Set it, or "
    "leave `guess` out",
    Way(call=f"{YES_NO} --guess 0.5"),
    Way(call=CALL),
)
case(
    "kinds:kind_of#2",
    {},
    f"{CALL} --outcome binary",
    "to be yes-no, counts, grades or classes, but got 'binary'. Leave it out where "
    "results are measured",
    Way(call=YES_NO),
    Way(call=CALL),
)
GRADES = f"{CALL.replace('7', '0.75')} --outcome grades --grades 4 --at-least 2"
case(
    "kinds:kind_of#1",
    {},
    f"{GRADES} --guess 0.5",
    "to be yes-no where `guess` is given, but got grades. Set it, or leave `guess` out",
    Way(call=f"{YES_NO} --guess 0.5"),
    Way(call=GRADES),
)
case(
    "kinds:_graded#1",
    {},
    GRADES.replace("--at-least 2", "--at-least 4"),
    "from 1 to one less than that, but got 4 and 4. Of the grades 0 to 3, where 2 is "
    "good enough, write 4 and 2",
    Way(call=GRADES),
)
case(
    "kinds:_graded#1",
    {},
    GRADES.replace("--at-least 2", ""),
    "but got 4 and none. Of the grades 0 to 3, where 2 is good enough, write 4 and 2",
    Way(call=GRADES),
)
case(
    "kinds:kind_of#5",
    {},
    GRADES.replace("0.75", "2"),
    "Above 0.75 are candidates of which three of four results are 2 or more",
    Way(call=GRADES),
)
case(
    "measurements:_Reader._result#1",
    results("name,y\nn03,2\nn04,good\n"),
    GRADES,
    "line 3, column y: expected a grade, a whole number from 0 to 3, but got 'good'; "
    "write it, leave the cell empty, or write again (asked again) or n/a (cannot be ",
    Way(results("name,y\nn03,2\nn04,3\n"), holds=values(2.0, 3.0)),
    *(
        Way(results(f"name,y\nn03,2\nn04,{word}\n"), holds=values(2.0))
        for word in ("", "again", "n/a")
    ),
)
PHASES = f"{CALL.replace('--above 7 ', '')} --outcome classes --classes solid,gas"
FOUND = results("name,y\nn03,gas\nn04,solid\n")
case(
    "kinds:_labels#1",
    {},
    PHASES.replace("solid,gas", "solid,Solid"),
    "Expected `classes` to be at least two different names, none of them NA, again, "
    "failed, n/a, not measurable, excluded, undecided or none, but got solid, Solid. "
    "For three write solid,liquid,gas",
    Way(call=PHASES.replace("solid,gas", "solid,liquid,gas")),
)
case(
    "kinds:_labels#2",
    {},
    f"{PHASES} --below 0.5",
    "Expected no `below` with `outcome` = classes, as a candidate is of the class that "
    "is likely there, but got 0.5. Leave it out",
    Way(call=PHASES),
)
case(
    "kinds:kind_of#5",
    {},
    f"{PHASES} --above 0.4",
    "a probability, between 0.5 and 1, with `outcome`, but got 0.4. Leave the level "
    "out, or ask for more, as by --above 0.9",
    Way(call=PHASES),
    Way(call=f"{PHASES} --above 0.9"),
)
case(
    "measurements:_Reader._result#1",
    results("name,y\nn03,gas\nn04,sold\n"),
    PHASES,
    "line 3, column y: expected a class, solid or gas, but got 'sold'; write solid, "
    "leave the cell empty, or write again (asked again) or n/a (cannot be ",
    Way(FOUND, holds=values(1.0, 0.0)),
    *(
        Way(results(f"name,y\nn03,gas\nn04,{word}\n"), holds=values(1.0))
        for word in ("", "again", "n/a")
    ),
)
EVENTS = f"{CALL} --outcome counts"
case(
    "kinds:kind_of#4",
    {},
    f"{EVENTS} --audit",
    "Expected no `audit` with `outcome` = counts, of which an audit has no test, but "
    "got one. Leave `audit` out",
    Way(call=EVENTS),
)
case(
    "kinds:kind_of#5",
    {},
    EVENTS.replace("7", "0"),
    "Expected a level that is an expected count, above 0, with `outcome`, but got 0. "
    "Above 5 are candidates in which more than 5 are expected",
    Way(call=EVENTS.replace("7", "5")),
)
case(
    "measurements:_Reader._result#1",
    results("name,y\nn03,2\nn04,2.5\n"),
    EVENTS,
    "line 3, column y: expected a count, a whole number from 0 on, but got '2.5'; write"
    " it, leave the cell empty, or write again (asked again) or n/a (cannot be ",
    Way(results("name,y\nn03,2\nn04,3\n"), holds=values(2.0, 3.0)),
    *(
        Way(results(f"name,y\nn03,2\nn04,{word}\n"), holds=values(2.0))
        for word in ("", "again", "n/a")
    ),
)
case(
    "kinds:kind_of#3",
    {},
    f"{YES_NO} --noise-std 0.1",
    "about measured numbers, but got 0.1. Leave `noise_std` out",
    Way(call=YES_NO),
)
case(
    "kinds:_kind#1",
    {},
    f"{YES_NO} --guess 0.5 --lapse 0.6",
    "less than 1 together, but got 0.5 and 0.6. Without guessed answers and lapses "
    "leave them out",
    Way(call=YES_NO),
)
case(
    "kinds:kind_of#5",
    {},
    YES_NO.replace("0.75", "75"),
    "Expected a level that is a probability, between 0 and 1, with `outcome`, but got "
    "75. Write 0.75 for 75 %",
    Way(call=YES_NO),
)
case(
    "kinds:kind_of#5",
    {},
    f"{YES_NO} --guess 0.8",
    "between 0.8 and 1, with `outcome`, but got 0.75. The guess and lapse rates bound",
    Way(call=f"{YES_NO} --guess 0.5"),
)
case(
    "measurements:_Reader._result#1",
    results("name,y\nn03,yes\nn04,nein\n"),
    YES_NO,
    "results.csv, line 3, column y: expected yes or no, but got 'nein'; write yes or "
    "no, leave the cell empty, or write again (asked again) or n/a (cannot be ",
    Way(ANSWERS, holds=values(1.0, 0.0)),
    *(
        Way(results(f"name,y\nn03,yes\nn04,{word}\n"), holds=values(1.0))
        for word in ("", "again", "n/a")
    ),
)
case(
    "measurements:_Reader._result#1",
    results("name,y\nn03,pass\nn04,failed\n"),
    YES_NO,
    "write fail if the result is no, or again to have it asked again",
    Way(results("name,y\nn03,pass\nn04,fail\n"), holds=values(1.0, 0.0)),
    Way(results("name,y\nn03,pass\nn04,again\n"), holds=values(1.0)),
)
case(
    "measurements:_check_words#1",
    results("name,y\nn03,yes\nn04,fail\n"),
    YES_NO,
    "line 3, column y: expected yes or no, as in results.csv, line 2, but got 'fail'; "
    "write no",
    Way(ANSWERS, holds=values(1.0, 0.0)),
)
COUNTS = results("name,y,n\nn03,7,20\n")
case(
    "measurements:_Reader._result#1",
    COUNTS,
    YES_NO,
    "but got '7'; write yes or no; numbers of successes need `trials`, the column of",
    Way(ANSWERS, holds=values(1.0, 0.0)),
    Way(call=f"{YES_NO} --trials n", holds=values(7.0)),
)
case(
    "measurements:_Reader._result#1",
    results("name,y,n\nn03,21,20\n"),
    f"{YES_NO} --trials n",
    "expected a whole number of successes in 20 trials, but got '21'; write how many",
    Way(COUNTS, holds=values(7.0)),
)
case(
    "measurements:_Reader._trials#1",
    results("name,y\nn03,7\n"),
    f"{YES_NO} --trials n",
    "expected the column 'n' of how many trials a line has, but it has name, y. Add it",
    Way(COUNTS, holds=values(7.0)),
)
case(
    "measurements:_Reader._trials#2",
    results("name,y,n\nn03,7,\n"),
    f"{YES_NO} --trials n",
    "line 2, column n: expected a whole number of trials, but got ''; write how many",
    Way(COUNTS, holds=values(7.0)),
)
ZERO = results("name,y\nn03,0\n")
LOGS = f"{CALL} --log-result"
case(
    "measurements:_Reader._value#3",
    {**ZERO, **stored(TOML + "log_result = true\n")},
    "next",
    f"such as <0.1; or set log_result = false in {SETTINGS}",
    Way(results("name,y\nn03,<0.1\n"), holds=values(0.1)),
    Way(stored(TOML + "log_result = false\n"), holds=values(0.0)),
)
case(
    "measurements:_Reader._count#1",
    results("sheet,name,repeat,y\none,n03,1,4.5\n"),
    CALL,
    "restore it, or leave the cell empty if no sheet asked for the line",
    Way(results("sheet,name,repeat,y\n1,n03,1,4.5\n"), holds=values(4.5)),
    Way(results("sheet,name,repeat,y\n,n03,,4.5\n"), holds=values(4.5)),
)
AGAIN = results("name,y\nn03,4.5\nn03,5\n")
case(
    "measurements:_without_repeats#1",
    AGAIN,
    CALL,
    "delete one; if it was measured twice, give --replicates",
    Way(ONE, holds=values(4.5)),
    Way(call=f"{CALL} --replicates", holds=values(4.5, 5.0)),
)
ASKED = "sheet,x,name,repeat,y\n"
case(
    "measurements:_without_repeats#2",
    results(f"{ASKED}1,3,n03,1,4.5\n1,3,n03,1,failed\n"),
    CALL,
    "one says 4.5, the other failed. Correct one, or delete it",
    Way(results(f"{ASKED}1,3,n03,1,4.5\n"), holds=values(4.5)),
    Way(results(f"{ASKED}1,3,n03,1,4.5\n1,3,n03,2,failed\n"), holds=values(4.5)),
)
TAKEN = {
    **results(f"{ASKED}1,3,n03,1,4.5\n"),
    "sheet.csv": f"{ASKED}1,3,n03,1,5\n",
}
case(
    "measurements:_merged#1",
    TAKEN,
    CALL,
    "move the line of sheet.csv to results.csv, its cells sheet and repeat empty, and "
    "give --replicates",
    Way({"sheet.csv": f"{ASKED}1,3,n03,1,4.5\n"}, holds=values(4.5)),
    Way({"sheet.csv": ASKED}, holds=values(4.5)),
    Way(
        {**results(f"{ASKED}1,3,n03,1,4.5\n,3,n03,,5\n"), "sheet.csv": ASKED},
        f"{CALL} --replicates",
        values(4.5, 5.0),
    ),
)
case(
    "measurements:_check_order#1",
    results(f"{ASKED},3,n03,,4.5\n1,3,n03,1,5\n"),
    CALL,
    "delete one; if it was measured twice, give --replicates",
    Way(results(f"{ASKED}1,3,n03,1,5\n"), holds=values(5.0)),
    Way(call=f"{CALL} --replicates", holds=values(4.5, 5.0)),
)
case(
    "measurements:_check_excluded#1",
    results("name,y\nn03,4.5\nn03,n/a\n"),
    CALL,
    "Write failed in place of n/a, or delete the value",
    Way(results("name,y\nn03,4.5\nn03,failed\n"), holds=values(4.5)),
    Way(results("name,y\nn03,n/a\n"), holds=lambda run: len(run.rows) == 19),
)
case(
    "measurements:_check_limits#1",
    results("name,y\nn03,<0.5\nn03,9.1\n"),
    f"{CALL} --replicates",
    "but got 9.1. Correct one, or delete it",
    Way(results("name,y\nn03,<0.5\nn03,0.1\n"), holds=values(0.5, 0.1)),
    Way(results("name,y\nn03,9.1\n"), holds=values(9.1)),
)
EVERY = "".join(f"n{i:02d},n/a\n" for i in range(20))
case(
    "runs:Run.rows#1",
    results(f"name,y\n{EVERY}"),
    CALL,
    "Empty a cell that says so in results.csv",
    Way(
        results(f"name,y\n{EVERY.replace('n03,n/a', 'n03,')}"),
        holds=lambda run: len(run.rows) == 1,
    ),
)
FULL = table("x,name,y\n4,a,7\n9,b,6\n")
case(
    "runs:Run.check_measured#1",
    FULL,
    CALL,
    "If these are results, give --results candidates.csv; if it is an input, give "
    "--column NAME, of what is measured; else rename it, or delete it",
    Way(call=f"{CALL} --results candidates.csv", holds=values(7.0, 6.0)),
    Way(call=CALL.replace("--column y", "--column z")),
    Way(table("x,name,old\n4,a,7\n9,b,6\n")),
    Way(table("x,name\n4,a\n9,b\n")),
)
case(
    "runs:Run.check_measured#1",
    FULL,
    f"{CALL} --sources coarse,fine --source-costs 1,50",
    "If these are results, copy the lines to results.csv, with a column 'source', and "
    "delete 'y' here; if it is an",
    Way(
        {**table("x,name\n4,a\n9,b\n"), **results("name,source,y\na,fine,7\n")},
        holds=values(7.0),
    ),
)


@other("runs:Run.check_files#1")
def a_sheet_saved_meanwhile() -> None:
    run = understood(CALL)
    Path("sheet.csv").write_text("sheet,x,name,repeat,y\n1,3,n03,1,4.5\n")
    says = "sheet.csv was saved while this call computed: nothing was written. Call"
    refused("runs:Run.check_files#1", says, run.check_files)
    again = understood(CALL)
    again.check_files()
    assert values(4.5)(again)


# --- settings and calls -------------------------------------------------------------


def call_with(option: str) -> str:
    return f"{CALL} {option}"


case(
    "settings:Settings.__post_init__#1",
    stored(TOML.replace('column = "y"\n', "")),
    "next",
    'Add a line such as column = "strength"',
    Way(stored(TOML)),
)
case(
    "settings:Settings.__post_init__#2",
    {},
    "next candidates.csv --above 7",
    "Write: botorch-lse next candidates.csv --above 40 --column strength",
    Way(call="next candidates.csv --above 40 --column strength --ignore name"),
)
case(
    "settings:Settings.__post_init__#3",
    {},
    "next candidates.csv --column y --key name",
    "one level, --above or --below, but got none",
    Way(call=CALL),
    Way(call=CALL.replace("--above", "--below")),
)
case(
    "settings:Settings.__post_init__#4",
    {},
    call_with("--decimal ;").replace(";", "';'"),
    "`decimal` to be a point or a comma",
    Way(call=call_with("--decimal ,")),
    Way(call=call_with("--decimal .")),
)
case(
    "settings:Settings.__post_init__#5",
    {},
    call_with("--encoding chinese7"),
    "such as gbk, shift_jis, cp1251 or mac_roman",
    *(
        Way(call=call_with(f"--encoding {page}"))
        for page in ("gbk", "shift_jis", "cp1251", "mac_roman")
    ),
)
case(
    "settings:Settings.__post_init__#6",
    {},
    call_with("--audit 0.05"),
    "a tolerance and a probability, as in 0.05,0.05",
    Way(call=call_with("--audit 0.05,0.05")),
)
case(
    "settings:Settings.__post_init__#7",
    {},
    LOGS.replace("--above 7", "--above 0"),
    "Leave `log_result` out",
    Way(call=CALL.replace("--above 7", "--above 0")),
)
case(
    "settings:Settings.__post_init__#8",
    {},
    call_with("--report answer.csv"),
    "`report` to be a page, as in report.html, but got 'answer.csv'",
    Way(call=call_with("--report report.html")),
)
case(
    "settings:Settings.__post_init__#9",
    {},
    call_with("--out candidates.csv"),
    "Name another sheet",
    Way(call=call_with("--out next.csv")),
)
NOW = results("name,source,x,y\nn03,now,3,4.5\n")
for own in ("./results.csv", "old/../results.csv"):
    case(
        "settings:Settings.__post_init__#10",
        {**NOW, **stored(f'{TOML}history = "{own}"\n')},
        "next",
        f"but got {own}, which is `results`. Leave it out, or name another table",
        Way(stored(TOML), holds=values(4.5)),
        Way({**stored(f'{TOML}history = "old.csv"\n'), "old.csv": NOW["results.csv"]}),
    )
case(
    "settings:Settings.__post_init__#11",
    stored(f"{TOML}max_repeats = 0\n"),
    "next",
    "Leave it out where candidates may be measured any number of times",
    Way(stored(TOML)),
)
TRIALS = "next candidates.csv --above 0.7 --column y --outcome yes-no --ignore name"
case(
    "settings:Settings.__post_init__#12",
    {},
    f"{TRIALS} --trials n --max-repeats 2",
    "Leave `max_repeats` out, or `trials`, with a line for each trial",
    Way(call=f"{TRIALS} --trials n"),
    Way(call=f"{TRIALS} --max-repeats 2"),
)


def _first_settings() -> str:
    Path("first.toml").unlink(missing_ok=True)
    call = command_line.parse(shlex.split(f"{CALL} --settings first.toml"))
    command_line.read(call).settings.write()
    return Path("first.toml").read_text()


@other("settings:settings#1")
def settings_cut_short() -> None:
    whole = _first_settings()
    cut = whole.rstrip()[:-3]
    Path(SETTINGS).write_text(cut)
    says = "or add what is missing and end the line with a line break"
    refused("settings:settings#1", says, lambda: understood("next"))
    Path(SETTINGS).write_text(f"{cut}\n")
    assert understood("next").settings.above == 7.0
    Path(SETTINGS).write_text(whole)
    assert understood("next").settings.above == 7.0


case(
    "settings:settings#2",
    stored(TOML.replace("above = 7", "above = 7,5")),
    "next",
    "expected a number with a decimal point, but got 7,5; write above = 7.5",
    Way(stored(TOML.replace("above = 7", "above = 7.5"))),
)
case(
    "settings:settings#2",
    stored(TOML.replace("above = 7", "above = 1.000,5")),
    "next",
    "but got 1.000,5; write above = 1000.5",
    Way(
        stored(TOML.replace("above = 7", "above = 1000.5")),
        holds=lambda run: run.settings.above == 1000.5,
    ),
)
case(
    "settings:_of_kind#1",
    stored(TOML.replace("above = 7", 'above = "1 000"')),
    "next",
    "write 1000, without quotation marks",
    Way(stored(TOML.replace("above = 7", "above = 1000"))),
)
case(
    "settings:settings#3",
    stored(TOML.replace('"y"', "y")),
    "next",
    "expected lines such as above = 40, but",
    Way(stored(TOML)),
)
case(
    "settings:settings#4",
    stored(TOML),
    "next --above 8",
    f"Change it in {SETTINGS}, which every call reads, and leave the option out",
    Way(stored(TOML.replace("7", "8")), "next", lambda run: run.settings.above == 8.0),
)
case(
    "settings:_checked#1",
    stored(TOML.replace("above", "abowe")),
    "next",
    "'abowe' is none; did you mean 'above'?",
    Way(stored(TOML)),
)
case(
    "settings:_checked#1",
    stored(f"{TOML}colour = 1\n"),
    "next",
    "'colour' is none; did you mean 'column'?",
    Way(stored(TOML)),
)
case(
    "settings:_of_kind#1",
    stored(TOML.replace("above = 7", 'above = "7,5"')),
    "next",
    "write 7.5, without quotation marks",
    Way(stored(TOML.replace("above = 7", "above = 7.5"))),
)
case(
    "command_line:read#1",
    {},
    "answer candidates.csv --above 7 --column y --key name --table results.csv",
    "is one of the tables it rests on. Name another one",
    Way(call="answer candidates.csv --above 7 --column y --key name"),
)
case(
    "command_line:_check_format#1",
    {},
    "answer candidates.csv --above 7 --column y --key name --picture map.xyz",
    "Name it map.png, .pdf or .svg",
    *(
        Way(
            call="answer candidates.csv --above 7 --column y --key name --picture "
            f"map.{kind}"
        )
        for kind in ("png", "pdf", "svg")
    ),
)
# --- several sources ----------------------------------------------------------------


SOURCES = "--sources coarse,fine --source-costs 1,50"
AT_SOURCES = f"{CALL} {SOURCES}"
YES = "--outcome yes-no"
case(
    "sources:check_sources#1",
    {},
    f"{CALL} --source-costs 1,50",
    "Name them, as in coarse,fine, or leave `source_costs` out",
    Way(call=f"{CALL} --source-costs 1,50 --sources coarse,fine"),
    Way(call=CALL),
)
case(
    "sources:check_sources#2",
    {},
    f"{AT_SOURCES.replace('above 7', 'above 0.7')} {YES}",
    "Expected no `outcome` with `sources`, whose values are measured numbers",
    Way(call=AT_SOURCES),
    Way(call=f"{CALL.replace('above 7', 'above 0.7')} {YES}"),
)
case(
    "sources:_check_names#1",
    table("x,name,y\n1,a,3\n3,b,\n"),
    f"{AT_SOURCES} --results candidates.csv",
    "Copy measured lines to another file, with a column 'source', and name that",
    Way(
        results("name,y,source\na,3,fine\n"),
        f"{AT_SOURCES} --results results.csv",
        values(3.0),
    ),
)
case(
    "sources:_check_names#2",
    {},
    f"{CALL} --sources fine,Fine --source-costs 1,50",
    "Name each source that measures, or leave it out",
    Way(call=AT_SOURCES),
    Way(call=CALL),
)
case(
    "sources:_check_names#3",
    {},
    f"{AT_SOURCES} --target finest",
    "Expected `target` to be one of coarse, fine, but got 'finest'. Name the source",
    Way(call=f"{AT_SOURCES} --target fine"),
    Way(call=AT_SOURCES),
)
case(
    "sources:_check_names#4",
    {},
    f"{CALL} --sources coarse,fine --source-costs 50",
    "to be a number above 0 for each of coarse, fine, but got 50. Write what",
    Way(call=AT_SOURCES),
)
case(
    "sources:_check_names#4",
    stored(f'{TOML}sources = ["coarse", "fine"]\nsource_costs = [0, 50]\n'),
    "next",
    "to be a number above 0 for each of coarse, fine, but got 0, 50. Write what",
    Way(stored(f'{TOML}sources = ["coarse", "fine"]\nsource_costs = [0.1, 50]\n')),
)
case(
    "sources:check_sources#3",
    {},
    f"{AT_SOURCES} --source-noise 1,0.1 --noise-std 1",
    "Leave one out: the first is that of all sources",
    Way(call=f"{AT_SOURCES} --source-noise 1,0.1"),
    Way(call=f"{AT_SOURCES} --noise-std 1"),
)
case(
    "sources:check_sources#4",
    {},
    f"{AT_SOURCES} --source-noise 1",
    "Write one for each, 0 where values are exact, or leave it out",
    Way(call=f"{AT_SOURCES} --source-noise 1,0"),
    Way(call=AT_SOURCES),
)
BY_SOURCE = "name,source,y\nn03,{},4.5\n"
OLDER = {"old.csv": "x,source,y\n3.5,trial,4.5\n"}
case(
    "sources:check_sources#4",
    OLDER,
    f"{CALL} --history old.csv --source-noise 1,0.5,2",
    "for each of these candidates and, if they are known otherwise, earlier values, "
    "but got 1, 0.5, 2. Write one for each",
    Way(call=f"{CALL} --history old.csv --source-noise 1,0.5"),
    Way(call=f"{CALL} --history old.csv --source-noise 1"),
    Way(call=f"{CALL} --history old.csv"),
)
case(
    "sources:source_of#1",
    results(BY_SOURCE.format("fin")),
    AT_SOURCES,
    "got 'fin'; write fine; a value of an earlier source belongs in a table that",
    Way(results(BY_SOURCE.format("fine")), holds=values(4.5)),
    Way(
        {**results("name,source,y\n"), **OLDER},
        f"{AT_SOURCES} --history old.csv",
        lambda run: run.measured.earlier.values == (4.5,),
    ),
)
case(
    "sources:source_of#1",
    results(BY_SOURCE.format("")),
    AT_SOURCES,
    "expected a source (coarse, fine), but the cell is empty; write its name",
    Way(results(BY_SOURCE.format("coarse")), holds=values(4.5)),
)
case(
    "sources:column_of_sources#1",
    ONE,
    AT_SOURCES,
    "'source', which says which of coarse, fine measured a line, but it has name, y",
    Way(results(BY_SOURCE.format("coarse")), holds=values(4.5)),
)
case(
    "measurements:_Reader.earlier#1",
    table(HILL.replace("name", "source", 1)),
    AT_SOURCES.replace("--key name", "--key source"),
    "which says in other tables where values come from. Rename it",
    Way(table(HILL), AT_SOURCES),
)
HISTORY = f"{CALL} --history old.csv"
case(
    "sources:column_of_sources#1",
    {"old.csv": "x,y\n3.5,4.5\n"},
    HISTORY,
    "old.csv: expected the column 'source', which says of which campaign each value is "
    "(any name, such as 2025), but it has x, y. Add it",
    Way({"old.csv": "x,source,y\n3.5,2025,4.5\n"}),
)
case(
    "sources:column_of_sources#1",
    {"old.csv": "x,y\n3.5,4.5\n"},
    f"{CALL} --sources 0.5,1 --source-costs 1,50 --history old.csv",
    "which says of which level each value is (a number), but it has x, y. Add it",
    Way({"old.csv": "x,source,y\n3.5,0.37,4.5\n"}),
)
case(
    "measurements:_Reader.earlier#2",
    {"old.csv": "name,source,y\nn03,trial,4.5\n"},
    HISTORY,
    "expected the inputs of candidates.csv, but column 'x' is missing. Add it",
    Way(OLDER),
)
for cell, number in (("<2", 1), ("ND", 1), ("-4.5", 3)):
    case(
        f"measurements:_Reader._value#{number}",
        {"old.csv": f"x,source,y\n2.5,trial,{cell}\n3.5,trial,4.5\n"},
        f"{HISTORY} --log-result",
        f"but got {cell!r}; leave the cell empty, as earlier values may not be limits",
        Way({"old.csv": "x,source,y\n2.5,trial,\n3.5,trial,4.5\n"}),
    )
case(
    "measurements:_Reader.earlier#3",
    {"old.csv": "x,source,y\n3.5,,4.5\n"},
    HISTORY,
    "expected the name of a source, but the cell is empty; write one, such as",
    Way(OLDER),
)
case(
    "measurements:_Reader.earlier#4",
    {"old.csv": "x,source,y\n3.5,trial,4.5\n"},
    f"{CALL} --sources 0.5,1 --source-costs 1,50 --history old.csv",
    "expected a number, as 0.5, 1 are, but got 'trial'; write its number, or give",
    Way({"old.csv": "x,source,y\n3.5,0.37,4.5\n"}),
    Way(call=f"{AT_SOURCES} --history old.csv"),
)
case(
    "measurements:_Reader.earlier#5",
    {"old.csv": "x,source,y\n3.5,trial,\n"},
    HISTORY,
    "but got none. Leave `history` out",
    Way(call=CALL),
)
KINDS = "x,kind\n1,a\n3,b\n9,a\n"
case(
    "measurements:_Reader._check_inputs#1",
    {**table(KINDS), "old.csv": "x,kind,source,y\n1,c,t,4\n2,b,t,5\n"},
    f"next candidates.csv {ALWAYS} --history old.csv",
    "expected a word of candidates.csv (a, b), but got 'c'; correct it, or delete",
    Way({"old.csv": "x,kind,source,y\n1,a,t,4\n2,b,t,5\n"}),
    Way({"old.csv": "x,kind,source,y\n2,b,t,5\n"}),
)
case(
    "measurements:_Reader._check_inputs#1",
    {**table(KINDS), "old.csv": "x,kind,source,y\n-1,a,t,4\n"},
    f"next candidates.csv {ALWAYS} --history old.csv --logs x",
    "expected a number above 0, which has a logarithm, but got '-1'; correct it",
    Way({"old.csv": "x,kind,source,y\n0.1,a,t,4\n"}),
)
TRUE = table("x,name,truth\n4,a,7.5\n9,b,6\n")
SIMULATE = f"simulate candidates.csv {ALWAYS} --key name --inputs x --noise 1"
SIMULATE_YES_NO = YES_NO.replace("next", "simulate")
case(
    "truths:check_truth#1",
    {},
    f"{SIMULATE_YES_NO} --between 0.1,0.9 --noise 0.1",
    "drawn by probabilities, but got 0.1. Leave it out",
    Way(call=f"{SIMULATE_YES_NO} --between 0.1,0.9"),
)
SIMULATE_PHASES = PHASES.replace("next", "simulate")
for more, came in ((" --between 2,9", "--between"), ("", "none")):
    case(
        "truths:check_truth#3",
        {},
        f"{SIMULATE_PHASES}{more}",
        f"Expected true classes, or results to learn them from, but got {came}. Name a "
        "column of the candidates: --truth COLUMN",
        Way(
            table("x,name,truth\n4,a,gas\n9,b,solid\n"),
            f"{SIMULATE_PHASES} --inputs x --truth truth",
        ),
    )
case(
    "truths:true_values#3",
    table("x,name,truth\n4,a,gas\n9,b,liquid\n"),
    f"{SIMULATE_PHASES} --inputs x --truth truth",
    "expected a class, solid or gas, but got 'liquid'; write solid or gas",
    Way(table("x,name,truth\n4,a,gas\n9,b,solid\n")),
)
case(
    "truths:check_truth#6",
    {},
    f"{SIMULATE_YES_NO} --between 2,9",
    "Expected --between to be probabilities with `outcome`, from 0 to 1, but got 2,9",
    Way(call=f"{SIMULATE_YES_NO} --between 0.1,0.9"),
)
case(
    "truths:check_truth#5",
    {},
    f"simulate candidates.csv {ALWAYS} --key name",
    "--between",
    Way(call=f"simulate candidates.csv {ALWAYS} --key name --between 2,9 --noise 1"),
    Way(TRUE, f"{SIMULATE} --truth truth"),
)
case(
    "truths:check_truth#7",
    {},
    f"{SIMULATE} --between 0,9 --log-result",
    "Expected --between to be numbers above 0, which have logarithms",
    Way(call=f"{SIMULATE} --between 0.1,9 --log-result"),
)
case(
    "truths:check_truth#8",
    {},
    f"simulate candidates.csv {ALWAYS} --key name --between 2,9",
    "Give its standard deviation: --noise 0.5 (0 for none)",
    Way(call=f"simulate candidates.csv {ALWAYS} --key name --between 2,9 --noise 0.5"),
    Way(call=f"simulate candidates.csv {ALWAYS} --key name --between 2,9 --noise 0"),
)
case(
    "truths:check_truth#2",
    TRUE,
    f"{SIMULATE} --truth truth,name",
    "Expected --truth to name one column, but got truth, name. Separate names",
    Way(call=f"{SIMULATE} --truth truth"),
    Way(
        table('x,name,"truth,name"\n4,a,7.5\n9,b,6\n'),
        f"{SIMULATE} --truth '\"truth,name\"'",
    ),
)
case(
    "truths:check_truth#2",
    TRUE,
    f"{SIMULATE} --truth truth {SOURCES}",
    "Expected --truth to name a column for each of coarse, fine, but got truth",
    Way(call=f"{SIMULATE} --truth truth,truth {SOURCES}"),
)
case(
    "truths:check_truth#4",
    TRUE,
    f"{SIMULATE} --between 2,9 {SOURCES}",
    "Name columns of true values, or leave it out once results have taught a model",
    Way(call=f"{SIMULATE} --truth truth,truth {SOURCES}"),
    Way(results("name,source,y\na,fine,7\n"), f"{SIMULATE} {SOURCES}"),
)
case(
    "truths:true_values#1",
    TRUE,
    f"{SIMULATE} --truth trust",
    "expected the column 'trust' of true values, but it has x, name, truth",
    Way(call=f"{SIMULATE} --truth truth"),
)
case(
    "truths:true_values#2",
    TRUE,
    f"simulate candidates.csv {ALWAYS} --key name --noise 1 --truth truth",
    "but truth is one; give --ignore truth",
    Way(
        call=f"simulate candidates.csv {ALWAYS} --key name --noise 1 --truth truth "
        "--ignore truth"
    ),
)
case(
    "truths:true_values#3",
    table("x,name,truth\n4,a,7.5 g\n9,b,6\n"),
    f"{SIMULATE} --truth truth",
    "got '7.5 g'; write 7.5 (a unit may stand in the header, in brackets)",
    Way(table("x,name,truth (g)\n4,a,7.5\n9,b,6\n")),
)


@other("simulated:truth_of#1")
def no_model_to_draw_from() -> None:
    put(ONE)
    few = understood(f"simulate candidates.csv {ALWAYS} --key name")
    refused(
        "simulated:truth_of#1",
        "--between",
        lambda: truth_of(few, 1, None, None, None),
    )
    assert truth_of(few, 1, None, (2.0, 9.0), 0.5).values.shape == (1, 20)


@other("options:number#1")
def a_level_that_nobody_can_tell() -> None:
    says = "Expected a number, but got 'many'"
    refused("options:number#1", says, lambda: options.number("many"))
    assert options.number("65,5") == 65.5


@other("options:number#2")
def a_level_with_thousands() -> None:
    for text, wanted in (
        ("1.000,5", 1000.5),
        ("1,000.5", 1000.5),
        ("1 000", 1000.0),
        ("1'000", 1000.0),
        ("1.000.000", 1e6),
        ("1\u202f000", 1000.0),
        ("65,5 MPa", 65.5),
    ):
        said, sites = passed(lambda text=text: options.number(text), ArgumentTypeError)
        assert "options:number#2" in sites
        assert options.number(said.partition("; write ")[2]) == wanted
        assert "u202f" not in said


@other("command_line:page#1")
def a_page_that_is_none() -> None:
    says = "expected a page, as in report.html, but got 'answer.csv'"
    refused(
        "command_line:page#1",
        says,
        lambda: command_line.page("answer.csv"),
        ArgumentTypeError,
    )
    assert command_line.page("report.html") == Path("report.html")


@other("command_line:numbers#1")
def numbers_of_words() -> None:
    read, says = command_line.numbers, "as in 0.05,0.05"
    call = lambda: read("0.05;0.05")  # noqa: E731
    refused("command_line:numbers#1", says, call, ArgumentTypeError)
    assert read("0.05,0.05") == (0.05, 0.05)


@other("command_line:ends#1")
def ends_in_the_wrong_order() -> None:
    read, says = command_line.ends, "a smaller and a larger value, as in 20,60"
    refused("command_line:ends#1", says, lambda: read("60,20"), ArgumentTypeError)
    assert read("20,60") == (20.0, 60.0)


@other("options:at_least.read#1")
def a_number_that_is_too_small() -> None:
    read, says = options.at_least(1, int), "expected a whole number of at least 1"
    refused("options:at_least.read#1", says, lambda: read("0"), ArgumentTypeError)
    assert read("1") == 1


@other("demo:load_survey#1")
def a_survey_that_is_empty() -> None:
    Path("map.csv").write_text("")
    refused(
        "demo:load_survey#1",
        "Expected `--pool` to be a CSV file",
        lambda: demo.load_survey("map.csv", raw=False),
    )
    Path("map.csv").write_text("x,depth\n1,2\n3,4\n")
    assert len(demo.load_survey("map.csv", raw=False).pool) == 2


@other("demo:load_survey#2")
def a_survey_without_depths() -> None:
    Path("map.csv").write_text("x\n1\n3\n")
    refused(
        "demo:load_survey#2",
        "to have input columns and a last column of numbers",
        lambda: demo.load_survey("map.csv", raw=False),
    )
    Path("map.csv").write_text("x,depth\n1,2\n3,4\n")
    assert len(demo.load_survey("map.csv", raw=False).pool) == 2


@other("answers:draw_answer#1")
def a_picture_of_no_format() -> None:
    from botorch_lse.cli.answers import draw_answer

    run = understood(CALL)
    refused(
        "answers:draw_answer#1",
        "the picture cannot be written",
        lambda: draw_answer(run, Path("map.xyz")),
    )
    draw_answer(run, Path("map.png"))
    assert Path("map.png").exists()
