r"""The page of a table's run."""

from __future__ import annotations

import sys

import pandas as pd
import pytest
import torch

from botorch_lse.__main__ import command
from botorch_lse.cli import commands, runs
from tests.cli.lab import HILL, NEXT, Lab, hill
from tests.plotting.test_reports import frame_of, inside

PLAIN = f"{NEXT} --first 10 --noise-std 0.7"


@pytest.mark.slow
def test_the_page_says_what_the_answer_says(lab: Lab) -> None:
    lab.write("candidates.csv", HILL)
    lab.call(PLAIN)
    for _ in range(2):
        lab.fill("sheet.csv", hill)
        lab.call("next")
    said = lab.call("report")
    assert "Wrote report.html: open it in any browser." in said
    data = inside((lab.folder / "report.html").read_text(encoding="utf-8"))
    lab.call("answer")
    table, frame = lab.read("answer.csv"), frame_of(data)
    assert frame["name"].tolist() == [line["name"] for line in table]
    assert frame["side"].tolist() == [line["side"] for line in table]
    assert frame["x"].tolist() == list(range(20))  # numbers, which sort as such
    for line, mean in zip(table, frame["mean"], strict=True):
        assert float(line["mean"]) == pytest.approx(mean, abs=0.02)
    assert data["title"].startswith("y: above 7")
    assert data["answer"] == said.splitlines()[:-1]
    facts = dict(data["facts"])
    assert facts["measurements"] == "8"
    assert facts["sheets"] == "3"
    assert data["followingWords"] == "These lines of sheet.csv are open."
    names = [line["name"] for line in lab.read("sheet.csv")]
    (asked,) = [one["cells"] for one in data["following"] if one["name"] == "name"]
    assert asked == names
    settings = dict(data["settings"])
    assert settings["above"] == "7.0"
    assert len(settings["SHA-256 of results.csv"]) == 16
    titles = [one["title"] for one in data["progress"]]
    assert titles[0] == "Progress"


@pytest.mark.slow
def test_a_page_learns_the_run_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.call(PLAIN)
    for _ in range(3):
        lab.fill("sheet.csv", hill)
        lab.call("next")
    begun, learning = [], runs.learning

    def counted(run, strategy):
        begun.append(run)
        return learning(run, strategy)

    monkeypatch.setattr(runs, "learning", counted)
    lab.call("report")
    assert len(begun) == 1
    # What it says is what a state and a progress say that are learnt apart.
    (run,) = begun
    apart = runs.Run.read(run.settings)
    assert not apart.state.classification.undecided.all()
    assert torch.equal(apart.state.classification.mean, run.state.classification.mean)
    assert apart.state.stop_reason == run.state.stop_reason
    pd.testing.assert_frame_equal(apart.progress, run.progress)


def test_before_there_are_values_the_page_says_so(lab: Lab) -> None:
    lab.write("candidates.csv", HILL)
    lab.call(PLAIN)
    lab.call("report first.html")
    data = inside((lab.folder / "first.html").read_text(encoding="utf-8"))
    assert data["drawings"] == []
    assert "The first 10 measurements are spread over the table" in data["answer"][-1]


def test_rows_that_cannot_be_measured_and_decimal_commas_are_shown(lab: Lab) -> None:
    comma = HILL.replace(",", ";").replace("3;n03", "3,5;n03")
    lab.write("candidates.csv", comma)
    lab.call(PLAIN)
    lab.write("results.csv", "x;y\n3,5;1,5\n7;n/a\n")
    lab.call("report")
    data = inside((lab.folder / "report.html").read_text(encoding="utf-8"))
    assert data["mark"] == ","
    frame = frame_of(data)
    assert frame.loc[frame["name"] == "n07", "side"].tolist() == ["n/a"]
    assert frame.loc[frame["name"] == "n03", "x"].tolist() == [3.5]
    assert dict(data["facts"])["not measurable"] == "1"


def read_page(lab: Lab, name: str = "report.html") -> dict:
    return inside((lab.folder / name).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_page_of_the_settings_is_written_anew_by_next_and_answer(lab: Lab) -> None:
    said = lab.call(f"{PLAIN} --report now.html")
    assert said.endswith("Wrote now.html: load it again in the browser.\n")
    assert 'report = "now.html"' in (lab.folder / "botorch-lse.toml").read_text()
    for sheet in (1, 2, 3):
        data = read_page(lab, "now.html")
        facts = dict(data["facts"])
        assert facts["sheets"] == str(sheet)
        assert facts["measurements"] == str(4 * (sheet - 1))
        names = [line["name"] for line in lab.read("sheet.csv")]
        (asked,) = [one["cells"] for one in data["following"] if one["name"] == "name"]
        assert asked == names
        assert data["followingWords"] == "These lines of sheet.csv are open."
        lab.fill("sheet.csv", hill)
        lab.call("next")
    before = read_page(lab, "now.html")
    lab.call("report")  # what it says is what `next` had written
    assert read_page(lab, "now.html") == before
    lab.call("answer")
    assert read_page(lab, "now.html") == before


def test_without_the_setting_no_call_but_report_writes_a_page(lab: Lab) -> None:
    lab.call(PLAIN)
    lab.call("answer")
    assert not (lab.folder / "report.html").exists()
    lab.call("report")
    (lab.folder / "report.html").write_text("of somebody else")
    lab.fill("sheet.csv", hill)
    lab.call("next")
    assert (lab.folder / "report.html").read_text() == "of somebody else"


def test_a_page_stands_where_its_settings_stand(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab.folder / "run").mkdir()
    lab.call(f"{PLAIN} --settings run/botorch-lse.toml --report run/now.html")
    before = (lab.folder / "run" / "now.html").stat().st_mtime_ns
    monkeypatch.chdir(lab.folder / "run")
    lab.call("next --report now.html")
    assert (lab.folder / "run" / "now.html").stat().st_mtime_ns > before


def test_a_page_that_fails_keeps_neither_sheet_nor_words(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.call(f"{PLAIN} --report now.html")
    lab.fill("sheet.csv", hill)

    def full(*_args: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commands, "write_whole", full)
    assert command(["next"]) == 2
    said = lab.capture.readouterr()
    assert "4 lines to measure" in said.out
    assert "now.html" in said.err
    assert len(lab.read("sheet.csv")) == len(lab.read("results.csv")) == 4


def test_what_a_page_needs_is_said_before_anything_is_written(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lab.contents()
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "plotly", None)
        assert command(f"{PLAIN} --report now.html".split()) != 0
    assert "'botorch-lse[plot]'" in lab.capture.readouterr().err
    assert lab.contents() == before
    assert "nowhere" in lab.refused(f"{PLAIN} --report nowhere/now.html")


@pytest.mark.parametrize("page", ["candidates.csv", "report", "answer.png"])
def test_a_page_that_is_none_is_refused(
    lab: Lab, capsys: pytest.CaptureFixture[str], page: str
) -> None:
    lab.write("candidates.csv", HILL)
    lab.call(PLAIN)
    before = lab.contents()
    with pytest.raises(SystemExit):
        command(["report", page])
    assert f"as in report.html, but got {page!r}" in capsys.readouterr().err
    assert lab.contents() == before


def test_a_page_that_cannot_be_written_is_said_before_anything_is_computed(
    lab: Lab,
) -> None:
    lab.write("candidates.csv", HILL)
    lab.call(PLAIN)
    assert "nowhere" in lab.refused("report nowhere/report.html")
