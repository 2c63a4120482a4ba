r"""Nothing is lost: what people save meanwhile, links, rights, pipes, interrupts."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

import pytest

from botorch_lse import _files as files
from botorch_lse.__main__ import command, main
from botorch_lse.cli import command_line, commands
from botorch_lse.cli.runs import Run
from tests.cli.lab import NEXT, Lab, hill


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], name: str = "next_rows"
) -> None:
    r"""Do something each time that a call computes, after it read its files."""
    compute = getattr(Run, name)

    def computing(run: Run) -> object:
        act()
        return compute(run)

    monkeypatch.setattr(Run, name, computing)


@pytest.mark.parametrize("options", ["", " --out results.csv"])
def test_what_is_saved_while_a_call_computes_counts(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    sheet = "results.csv" if options else "sheet.csv"
    lab.call(NEXT + options)
    lines = lab.read(sheet)

    def save() -> None:
        if not done:
            done.append(sheet)
            lab.fill(sheet, lambda line: hill(line) if line == lines[0] else "")

    done = list[str]()
    meanwhile(monkeypatch, save)
    assert "1 measured" in lab.call("next")
    told = [line["y"] for line in lab.read("results.csv") if line["y"]]
    assert told == [hill(lines[0])]


def test_a_sheet_that_changes_all_the_time_is_left_alone(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.call(NEXT)
    saved = list[bytes]()

    def save() -> None:
        path = lab.folder / "sheet.csv"
        path.write_bytes(path.read_bytes() + b"\n")
        saved.append(path.read_bytes())

    meanwhile(monkeypatch, save)
    assert command(["next"]) == 2
    said = lab.capture.readouterr().err
    assert "sheet.csv was saved while this call computed: nothing was written" in said
    assert lab.contents()["sheet.csv"] == saved[-1]
    assert len(saved) == 4


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["answer.csv", "answer.png"])
def test_an_answer_that_is_saved_meanwhile_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lab.call(NEXT)
    write = commands.write_answer

    def writing(*arguments: object) -> None:
        (lab.folder / name).write_text("saved by hand")
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(commands, "write_answer", writing)
    assert command(["answer"]) == 2
    said = lab.capture.readouterr().err
    assert f"{name}: was saved by something else while this call computed" in said
    assert (lab.folder / name).read_text() == "saved by hand"
    monkeypatch.undo()
    monkeypatch.chdir(lab.folder)
    lab.call("answer")  # the remedy
    assert (lab.folder / name).read_bytes() != b"saved by hand"


@pytest.mark.slow
def test_links_to_another_drive_stay_links(lab: Lab) -> None:
    drive, away = lab.folder / "drive", lab.folder / "away"
    drive.mkdir()
    names = ("results.csv", "sheet.csv", "botorch-lse.toml", "answer.csv", "answer.png")
    lab.call(NEXT)
    lab.fill("sheet.csv", hill)
    lab.call("next")
    lab.call("answer")
    for name in names:
        (lab.folder / name).rename(drive / name)
        (lab.folder / name).symlink_to(drive / name)
    before = (drive / "results.csv").read_bytes()
    lab.fill("sheet.csv", hill)
    lab.call("next")
    lab.call("answer")
    assert all((lab.folder / name).is_symlink() for name in names)
    assert (drive / "results.csv").read_bytes().startswith(before)
    assert len((drive / "results.csv").read_bytes()) > len(before)
    drive.rename(away)
    for call in ("next", "answer", "simulate --between 0,9 --noise 1"):
        assert command(call.split()) == 2
        assert "is a link to" in lab.capture.readouterr().err
    (lab.folder / "botorch-lse.toml").unlink()
    (lab.folder / "botorch-lse.toml").symlink_to(away / "botorch-lse.toml")
    for call in ("next", "answer"):
        assert command(call.split()) == 2
        said = lab.capture.readouterr().err
        assert "results.csv: cannot be read (it is a link to" in said
    away.rename(drive)
    (lab.folder / "botorch-lse.toml").unlink()
    (lab.folder / "botorch-lse.toml").symlink_to(drive / "botorch-lse.toml")
    (lab.folder / "answer.csv").unlink()
    (lab.folder / "answer.csv").symlink_to("answer.csv")
    assert command(["answer"]) == 2
    assert "answer.csv: cannot be written" in lab.capture.readouterr().err


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["results.csv", "sheet.csv"])
def test_what_forbids_writing_is_not_replaced(lab: Lab, name: str) -> None:
    lab.call(NEXT)
    lab.fill("sheet.csv", hill)
    lab.call("next")
    lab.fill("sheet.csv", hill)
    (lab.folder / name).chmod(0o444)
    said = lab.refused("next")
    assert f"{name}: cannot be written (its rights forbid writing)" in said
    lab.call("simulate --between 0,9 --noise 1 --runs 1 --most 9")  # reads it alone
    (lab.folder / name).chmod(0o644)
    lab.call("next")


@pytest.mark.slow
def test_pictures_are_whole_or_as_they_were(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.call(NEXT)
    lab.call("answer")
    before = lab.contents()["answer.png"]
    sync, n = os.fsync, list[int]()

    def full(file: int) -> None:  # the table has room, the picture has none
        n.append(file)
        if len(n) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        said = lab.refused("answer")
    assert "answer.png: cannot be written (No space left on device). Make room" in said
    assert lab.contents()["answer.png"] == before


class Output:
    r"""A standard output that takes nothing."""

    def __init__(self, error: OSError) -> None:
        self.error = error

    def write(self, words: str) -> int:
        raise self.error

    def flush(self) -> None:
        r"""Nothing is buffered."""

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "a test")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 0),
        (OSError(errno.ENOSPC, "No space left on device"), 2),
    ],
)
def test_files_are_written_whoever_reads_the_words(
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    status: int,
) -> None:
    monkeypatch.setattr(sys, "stdout", Output(error))
    assert command(NEXT.split()) == status
    assert command(["answer"]) == status
    assert command(["simulate", "--between", "0,9", "--noise", "1"]) == status
    said = lab.capture.readouterr().err
    assert ("standard output: No space left on device" in said) == (status == 2)
    written = {"botorch-lse.toml", "sheet.csv", "answer.csv", "answer.png"}
    assert written <= {*lab.contents()}


def test_a_closed_standard_error_ends_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = "".join(f"n{x:02d},{hill({'x': str(x)})}\n" for x in range(0, 20, 2))
    lab.write("results.csv", f"name,y\n{known}")
    for stream in (Output(BrokenPipeError(errno.EPIPE, "Broken pipe")), None):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            if stream is not None:
                patch.setattr(Output, "isatty", lambda _: False, raising=False)
            lab.call(f"{NEXT} --first 10 --noise-std 1" if stream else "next")
    assert len(lab.read("sheet.csv")) == 4


@pytest.mark.parametrize("where", ["parse", "read"])
def test_an_interrupt_at_any_moment_is_answered_in_a_line(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, where, stop)
    assert command(["next"]) == 130
    said = lab.capture.readouterr().err
    assert said == "botorch-lse: stopped; no file was left half written\n"


def test_an_interrupt_of_the_demo_is_answered_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("botorch_lse.__main__.check", stop)
    assert main([]) == 130
    said = capsys.readouterr().err
    assert said == "python -m botorch_lse: stopped; no file was left half written\n"


def test_what_an_interrupt_leaves_the_next_call_removes(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.call(NEXT)
    left = lab.folder / ".answer.png.0123abcd.botorch-lse.tmp"
    left.touch()
    lab.call("next")
    assert not left.exists()
    with monkeypatch.context() as patch:
        # As a kill leaves it: nothing is removed any more.
        patch.setattr(files.Path, "unlink", lambda *_, **__: None)
        patch.setattr(files.Path, "replace", interrupt)
        lab.fill("sheet.csv", hill)
        assert command(["next"]) == 130
    assert any(name.endswith(".botorch-lse.tmp") for name in lab.contents())
    lab.call("next")
    assert not any(name.endswith(".botorch-lse.tmp") for name in lab.contents())


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_settings_that_are_no_file_are_named(lab: Lab) -> None:
    lab.call(NEXT)
    (lab.folder / "folder").mkdir()
    assert command(["next", "--settings", "folder"]) == 2
    said = lab.capture.readouterr().err
    assert said == "botorch-lse: error: folder: cannot be read (Is a directory).\n"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("matplotlib", "matplotlib is needed, which is not installed (No module named"),
        ("other", "The installation seems to be damaged"),
    ],
)
def test_a_module_that_is_missing_is_named(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, module: str, said: str
) -> None:
    lab.call(NEXT)

    def missing(*_: object) -> None:
        name = f"{module}.part"
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(commands, "draw_answer", missing)
    assert command(["answer"]) == 1
    words = lab.capture.readouterr().err
    assert said in words
    assert ("botorch-lse[plot]" in words) == (module == "matplotlib")
    assert (lab.folder / "answer.csv").exists()
