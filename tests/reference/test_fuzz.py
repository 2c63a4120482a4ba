r"""The sequences and the kills of ``fuzz.py`` and ``kills.py``, a few by default."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from botorch_lse import papers, strategies
from botorch_lse.strategies import ContentStop, Goal, Rule, Strategy
from botorch_lse.table import cells
from tests.registry import STRATEGIES

from . import fuzz, kills, worlds


def concrete(base: type, *packages: ModuleType) -> set[str]:
    r"""The classes of a kind that packages export and that can be made."""
    named = [
        (name, getattr(package, name))
        for package in packages
        for name in package.__all__
    ]
    return {
        name
        for name, cls in named
        if inspect.isclass(cls)
        and issubclass(cls, base)
        and not inspect.isabstract(cls)
    }


@pytest.mark.parametrize(
    ("base", "table"),
    [(Goal, worlds.GOALS), (Rule, worlds.RULES), (ContentStop, worlds.STOPS)],
)
def test_sequences_draw_every_exported_part(base: type, table: dict) -> None:
    assert concrete(base, strategies) == table.keys()


def test_sequences_draw_every_exported_strategy() -> None:
    drawn = {case.cls.__name__ for case in STRATEGIES} | {"LabelAudit"}
    assert concrete(Strategy, strategies, papers) - {"Strategy"} == drawn


def test_a_sequence_is_a_function_of_its_seed_and_number() -> None:
    one, other = [], []
    assert fuzz.play(3, 4, one.append) == fuzz.play(3, 4, other.append)
    assert one == other
    assert len(one) > 3


@pytest.mark.parametrize(
    ("error", "is_ours"),
    [
        (ValueError("Expected `y` to be finite, but got nan."), True),
        (ValueError("operands could not be broadcast"), False),
        (RuntimeError("Expected one"), False),
    ],
)
def test_only_refusals_in_words_are_refusals(error: Exception, is_ours: bool) -> None:
    assert fuzz.is_refusal(error) == is_ours


def test_what_must_not_happen_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("cannot reshape tensor")

    monkeypatch.setattr(fuzz.Sequence, "check", broken)
    assert fuzz.main(["--count", "3"]) == 1
    said = capsys.readouterr().out
    assert "FAILED: RuntimeError at test_fuzz.py" in said
    assert "cannot reshape tensor" in said
    assert "3 sequences: " in said
    assert "play one step by step: --seed 0 --only " in said


@pytest.mark.parametrize("number", range(5))
def test_some_sequences_hold(number: int) -> None:
    found = fuzz.play(0, number, lambda _: None)
    assert not found.startswith("FAILED"), found


def test_sequences_that_hold_end_with_nought(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fuzz.main(["--count", "2"]) == 0
    assert capsys.readouterr().out.startswith("2 sequences: ")


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 40, 80])
def test_many_sequences_hold(first: int) -> None:
    assert fuzz.main(["--first", str(first), "--count", "40", "--minutes", "60"]) == 0


# --- kills ----------------------------------------------------------------------------

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")


@fork
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("play", sorted(set(kills.PLAYS), key=lambda f: f.__name__))
def test_some_kills_lose_nothing(
    play: Callable[[random.Random], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "PLAYS", (play,))
    found = kills.play(0, 3)
    assert not found.startswith("FAILED"), found


@pytest.mark.slow
@fork
@pytest.mark.filterwarnings("ignore:TypeDecorator")
def test_many_kills_lose_nothing() -> None:
    assert kills.main(["--first", "1000", "--count", "20", "--minutes", "60"]) == 0


@fork
def test_what_a_kill_loses_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def losing(path: Path, content: bytes, over: object = None) -> None:
        path.write_bytes(content[: len(content) // 2])

    monkeypatch.setattr(cells, "replace_file", losing)
    monkeypatch.setattr(kills, "PLAYS", (kills.kill_a_table,))
    assert kills.main(["--first", "3", "--count", "1"]) == 1
    said = capsys.readouterr().out
    assert "3: FAILED: " in said
    assert "1 kills: 1 FAILED." in said
