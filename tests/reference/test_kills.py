r"""The kills of ``kills.py``, a few by default."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from botorch_lse.cli import cells
from tests.processes import forked

from . import kills

fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")


@fork
@pytest.mark.filterwarnings("ignore:TypeDecorator")
@pytest.mark.parametrize("number", [1, 3, 4, 6, 8, 11])
# A damaged file, a table, a full disk, a table, a run of Ax, a file saved meanwhile.
def test_some_kills_lose_nothing(number: int) -> None:
    found = kills.play(0, number)
    assert not found.startswith("FAILED"), found


@pytest.mark.slow
@fork
@pytest.mark.filterwarnings("ignore:TypeDecorator")
def test_many_kills_lose_nothing() -> None:
    assert kills.main(["--first", "1000", "--count", "20", "--minutes", "60"]) == 0


def test_each_executor_and_what_befalls_it_has_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = list[tuple[str, str]]()

    def note(kind: str, what: str, at: int) -> None:
        broken.append((kind, what))

    monkeypatch.setattr(kills, "break_one_of", note)
    monkeypatch.setattr(kills, "in_a_new_process", lambda call, *given: call(*given))
    kinds = {*kills.CLUSTERS, *kills.executors()}
    for number in range(0, kills.EVERY * len(kinds), kills.EVERY):
        assert kills.play(0, number).startswith("worker of ")
    assert {kind for kind, _ in broken} == kinds
    for number in range(0, 3 * kills.EVERY * len(kinds), kills.EVERY):
        kills.play(0, number)
    clusters = {(kind, what) for kind in kills.CLUSTERS for what in kills.BEFALLS}
    assert clusters <= {*broken}


@fork
def test_what_a_kill_loses_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def losing(path: Path, content: bytes, over: object = None) -> None:
        path.write_bytes(content[: len(content) // 2])

    monkeypatch.setattr(cells, "replace_file", losing)
    assert kills.main(["--first", "3", "--count", "1"]) == 1
    said = capsys.readouterr().out
    assert "3: FAILED: " in said
    assert "1 kills: 1 FAILED." in said


@pytest.mark.slow
@fork
def test_a_process_that_is_interrupted_at_once_never_goes_on_as_its_parent() -> None:
    for _ in range(20):
        child = forked(lambda: time.sleep(60))
        os.kill(child, signal.SIGINT)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130


@fork
def test_nor_does_one_whose_call_raises() -> None:
    def fails() -> int:
        raise ValueError("nobody expects this")

    assert os.waitstatus_to_exitcode(os.waitpid(forked(fails), 0)[1]) == 1
