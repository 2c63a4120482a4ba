r"""What takes longer is announced, and moves at a terminal."""

from __future__ import annotations

import io
import sys
from importlib.abc import MetaPathFinder
from time import sleep

import pytest

from botorch_lse import cli as table
from botorch_lse.__main__ import command
from botorch_lse.cli import commands, progress
from botorch_lse.cli.progress import doing
from tests.cli.lab import NEXT, Lab, hill


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_terminal(patch: pytest.MonkeyPatch) -> Terminal:
    r"""A terminal in place of standard error, and a clock that goes fast."""
    found = Terminal()
    patch.setattr(sys, "stderr", found)
    patch.setattr(progress, "PATIENCE", 0.01)
    patch.setattr(progress, "STEP", 0.01)
    return found


def until(terminal: Terminal, words: str) -> None:
    for _ in range(500):  # however busy the machine is
        if words in terminal.getvalue():
            return
        sleep(0.01)
    raise AssertionError(terminal.getvalue())


def test_a_terminal_shows_the_words_at_once_and_then_place_and_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = at_terminal(monkeypatch)
    with doing("learning from 18 values") as shown:
        assert terminal.getvalue().startswith("learning from 18 values ...")
        shown.place = "sheet 2 of 3"
        until(terminal, "\rlearning from 18 values ... sheet 2 of 3, 0 s ")
    assert terminal.getvalue().endswith("\n")


def test_what_is_quick_as_a_rule_is_shown_only_if_it_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = at_terminal(monkeypatch)

    def fail() -> None:
        with doing("choosing 8 lines", at_once=False):
            assert terminal.getvalue() == ""
            until(terminal, "choosing 8 lines")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    before = terminal.getvalue()
    assert before.endswith("\n")
    sleep(0.05)
    assert terminal.getvalue() == before  # the clock has ended


def test_a_file_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with doing("learning from 18 values"), doing("choosing", at_once=False):
        assert capsys.readouterr().err == "learning from 18 values ...\n"
    assert capsys.readouterr().err == ""


def test_loading_is_shown_where_it_lasts(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = at_terminal(monkeypatch)

    class Slow(MetaPathFinder):
        r"""A disk that is slow until somebody was told so."""

        def find_spec(self, name: str, *_: object) -> None:
            if name == commands.__name__:
                until(terminal, "loading the model ...")

    monkeypatch.setattr(table, "commands", commands)  # as it is, also afterwards
    monkeypatch.delitem(sys.modules, commands.__name__)
    monkeypatch.setattr(sys, "meta_path", [Slow(), *sys.meta_path])
    assert command(NEXT.split()) == 0
    assert "loading the model ..." in terminal.getvalue()


def test_learning_is_announced_before_it_begins(lab: Lab) -> None:
    known = "".join(f"n{x:02d},{hill({'x': str(x)})}\n" for x in range(0, 20, 2))
    lab.write("results.csv", f"name,y\n{known}")
    assert command(f"{NEXT} --first 10 --noise-std 1".split()) == 0
    said = lab.capture.readouterr()
    assert said.err == "learning from 10 values ...\n"
    assert "learning" not in said.out
