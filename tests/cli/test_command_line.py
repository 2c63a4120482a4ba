r"""A wrong call is answered beside its usage, and before anything heavy is loaded."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from botorch_lse import __version__
from botorch_lse.__main__ import command, main
from botorch_lse.cli.command_line import parse
from tests.cli.lab import HILL, Lab

PROBE = """
import sys
from botorch_lse import __main__

try:
    status = getattr(__main__, sys.argv[1])(sys.argv[2:])
except SystemExit as stop:
    status = stop.code
print()
print(status, *sorted({"numpy", "pandas", "torch"} & set(sys.modules)))
"""
ROOT = Path(__file__).parents[2]


def loaded(line: str, folder: Path, entry: str = "command") -> tuple[str, list[str]]:
    r"""The status of a call in a fresh process, and which large libraries it loads."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, entry, *line.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
    )
    status, *names = done.stdout.splitlines()[-1].split()
    return status, names


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("--help", "0"),
        ("next --help", "0"),
        ("--version", "0"),
        ("nxt", "2"),
        ("next --abve 7", "2"),
        ("next candidates.csv --batch 0", "2"),
        ("demo --help", "0"),
        ("demo --bugdet 3", "2"),
        ("demo --pool absent.csv", "2"),
        ("demo --threshold nan", "2"),
    ],
)
def test_options_are_checked_before_anything_is_loaded(
    line: str, status: str, tmp_path: Path
) -> None:
    assert loaded(line, tmp_path) == (status, [])


@pytest.mark.parametrize(("line", "status"), [("--help", "0"), ("nxt", "2")])
def test_the_other_way_to_call_answers_at_once_too(
    line: str, status: str, tmp_path: Path
) -> None:
    assert loaded(line, tmp_path, "main") == (status, [])


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(
    ("options", "results"),
    [
        ("--settings other.toml --key nam", ""),
        ("--ignore name --out results.csv", "x,y\n3,4\n3.01,4\n"),
        ("--key name", "name,y\nn03,lost\n"),
    ],
)
def test_faults_of_files_are_found_before_torch_is_loaded(
    options: str, results: str, tmp_path: Path
) -> None:
    (tmp_path / "candidates.csv").write_text(HILL)
    if results:
        (tmp_path / "results.csv").write_text(results)
    line = f"next candidates.csv --above 7 --column y {options}"
    assert loaded(line, tmp_path) == ("2", ["numpy", "pandas"])


@pytest.mark.some(0, slow=9)
@pytest.mark.parametrize(
    "line",
    [
        "simulate {}",
        "simulate {} --between 3,9",
        "simulate {} --truth depth --noise 1",
        "simulate {} --truth x --noise 1",
        "simulate {} --between -3,9 --noise 0.1 --log-result",
        "answer {} --picture folder/answer.png",
        "answer {} --picture answer.xyz",
    ],
)
def test_what_a_call_lacks_is_said_before_torch_is_loaded(
    line: str, tmp_path: Path
) -> None:
    (tmp_path / "candidates.csv").write_text(HILL)
    call = line.format("candidates.csv --above 7 --column y --key name")
    status, names = loaded(call, tmp_path)
    assert status == "2"
    assert "torch" not in names
    assert [path.name for path in tmp_path.iterdir()] == ["candidates.csv"]


@pytest.mark.slow
def test_results_beside_the_candidates_are_asked_about_without_torch(
    tmp_path: Path,
) -> None:
    lines = "".join(f"{x},{x % 5}.5\n" for x in (3, 1, 4, 15, 9, 2, 6, 5))
    (tmp_path / "candidates.csv").write_text(f"x,y\n{lines}")
    line = "next candidates.csv --above 7 --column y"
    assert loaded(line, tmp_path) == ("2", ["numpy", "pandas"])


@pytest.mark.slow
def test_words_are_read_without_torch(tmp_path: Path) -> None:
    lines = "".join(f"{x},{'ab'[x % 2]}\n" for x in (3, 1, 4, 15, 9, 2, 6, 5))
    (tmp_path / "candidates.csv").write_text(f"x,kind\n{lines}")
    (tmp_path / "results.csv").write_text("x,kind,y\n3,c,4\n")
    line = "next candidates.csv --above 7 --column y"
    assert loaded(line, tmp_path) == ("2", ["numpy", "pandas"])


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    r"""What a call says that is wrong by its words."""
    with pytest.raises(SystemExit) as stop:
        command(line.split())
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "program", "said"),
    [
        ("nxt", "botorch-lse", "but got nxt. Did you mean next?"),
        ("dmo", "botorch-lse", "but got dmo. Did you mean demo?"),
        ("candidates.csv", "botorch-lse", "report, simulate, demo), but got"),
        ("version", "botorch-lse", "but got version. Did you mean --version?"),
        ("help", "botorch-lse", "but got help. Did you mean --help?"),
        ("--above 7", "botorch-lse", "(next, answer, report, simulate, demo) before"),
        ("--versoin", "botorch-lse", "got --versoin. Did you mean --version?"),
        ("next --abve 7", "botorch-lse next", "--abve is no option. Did you mean"),
        ("next --abve=7", "botorch-lse next", "--abve is no option. Did you mean"),
        ("answer --pictur a.png", "botorch-lse answer", "Did you mean --picture?"),
        ("simulate --truht y", "botorch-lse simulate", "Did you mean --truth?"),
        ("next --qqqqqqqq 7", "botorch-lse next", "--qqqqqqqq is no option.\n"),
        ("next a.csv b.csv", "botorch-lse next", "b.csv is no option.\n"),
        ("demo --bugdet 7", "python -m botorch_lse", "Did you mean --budget?"),
        ("next --batch 0", "botorch-lse next", "of at least 1, but got '0'"),
        ("next --batch 1.5", "botorch-lse next", "a whole number of at least 1, but"),
        ("next --seed -1", "botorch-lse next", "a whole number of at least 0, but got"),
        ("next --epsilon -1", "botorch-lse next", "a number of at least 0, but got"),
        ("next --above nan", "botorch-lse next", "expected a number, but got 'nan'"),
        ("next --above=-inf", "botorch-lse next", "expected a number, but got '-inf'"),
        ("next --first x", "botorch-lse next", "expected a whole number, but got 'x'"),
        ("next --guess -1", "botorch-lse next", "a number of at least 0, but got '-1'"),
        ("next --trails n", "botorch-lse next", "Did you mean --trials?"),
        ("next --audit 0.05,x", "botorch-lse next", "as in 0.05,0.05, but got"),
        ("report --repor r.html", "botorch-lse report", "--repor is no option."),
        ("next --reprt r.html", "botorch-lse next", "Did you mean --report?"),
        ("simulate --runs 0", "botorch-lse simulate", "of at least 1, but got '0'"),
        ("simulate --noise -1", "botorch-lse simulate", "of at least 0, but got '-1'"),
        ("simulate --between 3,1", "botorch-lse simulate", "as in 20,60, but got"),
        ("simulate --between 3", "botorch-lse simulate", "as in 20,60, but got '3'"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_answered_beside_the_usage_of_its_command(
    line: str, program: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = refused(line, capsys)
    assert text.startswith(f"usage: {program} [-h]")
    assert f"\n{program}: error: " in text
    assert said in text


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("next c.csv --above -5,5", "above", -5.5),
        ("next c.csv --above -1e-3", "above", -0.001),
        ("next c.csv --below=-.5 --batch 3", "below", -0.5),
        ("simulate c.csv --between -20,60 --runs 2", "between", (-20.0, 60.0)),
    ],
)
def test_values_may_be_negative_however_they_are_written(
    words: str, name: str, value: object
) -> None:
    assert getattr(parse(words.split()), name) == value


def test_a_name_with_a_comma_stands_in_quotation_marks(lab: Lab) -> None:
    lines = "".join(f"{i};{i % 3};{(7 * i) % 5}\n" for i in range(1, 9))
    lab.write("candidates.csv", f"Pressure, bar;Time, min;share\n{lines}")
    call = "next candidates.csv --above 7 --column y --batch 2"
    said = lab.refused(call)
    counts = re.search(r"column 'Pressure, bar' counts .* (--ignore .*); if", said)
    assert counts is not None
    words = [*call.split(), *shlex.split(counts[1])]
    found = parse(words)
    assert found.ignore == ("Pressure, bar",)
    # Without the marks they are two names, and the message says what to write.
    said = lab.refused(f"{call} --ignore Pressure,bar")
    assert """as in --ignore '"Pressure, bar"'. It has""" in said
    assert command(words) == 0
    assert "Pressure, bar: ignored" in lab.capture.readouterr().out
    stored = (lab.folder / "botorch-lse.toml").read_text()
    assert 'ignore = ["Pressure, bar"]' in stored
    lab.call("next")


def test_both_ways_to_call_say_their_version(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for call in (command, main):
        with pytest.raises(SystemExit) as stop:
            call(["--version"])
        assert stop.value.code == 0
        assert capsys.readouterr().out == f"botorch-lse {__version__}\n"


@pytest.mark.parametrize(("before", "after"), [("", "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_wait_without_spinning_unless_told_otherwise(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", before)
    if not before:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    with pytest.raises(SystemExit):
        command(["--version"])
    assert os.environ["OMP_WAIT_POLICY"] == after
