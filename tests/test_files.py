r"""Files that are written as a whole or not at all, and over nothing unseen."""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from botorch_lse._files import (
    ChangedError,
    Seen,
    read_whole,
    remove_leftovers,
    seen_to_write,
    write_figure,
    write_whole,
)

LEFT = ".a.csv.0123abcd.botorch-lse.tmp"


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv"
    write_whole(path, b"old")

    def fails(error: BaseException) -> None:
        def sync(_: int) -> None:
            raise error

        monkeypatch.setattr(os, "fsync", sync)
        with pytest.raises(type(error)):
            write_whole(path, b"new")
        assert path.read_bytes() == b"old"
        assert list(tmp_path.iterdir()) == [path]

    fails(OSError("full"))
    fails(KeyboardInterrupt())


def test_a_file_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_whole(path, b"old")
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    path.chmod(0o640)
    write_whole(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o444)
    for refused in (lambda: write_whole(path, b"other"), lambda: seen_to_write(path)):
        with pytest.raises(PermissionError, match="rights forbid writing"):
            refused()
    assert path.read_bytes() == b"new"
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, b"")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_somebody_saved_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    seen = seen_to_write(path)
    assert seen == Seen(None)
    write_whole(path, b"first", seen)
    with pytest.raises(ChangedError, match="saved meanwhile"):
        write_whole(path, b"second", seen)
    assert path.read_bytes() == b"first"
    seen = seen_to_write(path)
    path.unlink()
    with pytest.raises(ChangedError):
        write_whole(path, b"second", seen)
    assert not list(tmp_path.iterdir())


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    link, target = tmp_path / "a.csv", tmp_path / "drive" / "b.csv"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_whole(link, b"new", seen_to_write(link))
    assert link.is_symlink()
    assert read_whole(link) == target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]
    target.unlink()
    for does in (read_whole, seen_to_write, lambda path: write_whole(path, b"lost")):
        with pytest.raises(OSError, match="which is not there"):
            does(link)
    circle = tmp_path / "c.csv"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match=r"Too many levels|not there"):
        read_whole(circle)


def test_leftovers_of_ended_calls_are_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ["a.csv", ".a.csv.12.tmp", ".b.botorch-lse.tmp", "a.0123abcd.botorch-lse"]
    for name in (*kept, LEFT):
        (tmp_path / name).touch()
    sync, inside = os.fsync, []

    def cleaning(file: int) -> None:  # another call begins while this one writes
        remove_leftovers(tmp_path)
        inside.append({path.name for path in tmp_path.iterdir()} - {*kept})
        sync(file)

    monkeypatch.setattr(os, "fsync", cleaning)
    write_whole(tmp_path / "a.csv", b"new")
    assert (tmp_path / "a.csv").read_bytes() == b"new"
    (own,) = inside[0]
    assert own != LEFT
    assert {path.name for path in tmp_path.iterdir()} == {*kept}


def test_long_names_have_room_for_a_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 250)
    write_whole(path, b"content")
    assert path.read_bytes() == b"content"


def test_a_picture_is_written_whole_in_the_format_of_its_name(tmp_path: Path) -> None:
    figure, axes = plt.subplots(figsize=(1, 1))
    axes.set_axis_off()
    path = tmp_path / "a.png"
    path.write_bytes(b"whole")
    with pytest.raises(ValueError, match="not supported"):
        write_figure(figure, path.with_suffix(".abc"))
    with pytest.raises(ChangedError):
        write_figure(figure, path, Seen(None))
    assert path.read_bytes() == b"whole"
    write_figure(figure, path)
    write_figure(figure, tmp_path / "plain", dpi=50)
    write_figure(figure, tmp_path / "a.pdf")
    begins = {p.name: p.read_bytes()[:4] for p in tmp_path.iterdir()}
    png = b"\x89PNG"
    assert begins == {"a.png": png, "plain": png, "a.pdf": b"%PDF"}
    plt.close(figure)
