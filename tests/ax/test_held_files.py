r"""Files that are whole, and have one writer."""

import contextlib
import os
import tempfile
import threading
from multiprocessing import get_context
from pathlib import Path

import pytest

from botorch_lse.ax.recording import held

HELD = "Expected `storage` to have one writer, but .*a.json is held by another run"


def locked_out(path):
    with pytest.raises(ValueError, match=HELD), held(path, "storage"):
        pass
    return True


def test_a_thread_or_a_call_further_up_holds_a_file_alone(tmp_path):
    path, found = tmp_path / "a.json", []
    with held(path, "storage"):
        assert locked_out(path)
        thread = threading.Thread(target=lambda: found.append(locked_out(path)))
        thread.start()
        thread.join()
        with held(tmp_path / "b.json", "storage"):
            pass
    assert found == [True]
    with held(path, "storage") as file:
        file.write(b"free again")


def test_a_link_stays_a_link_and_has_the_lock_of_its_target(tmp_path):
    target, link = tmp_path / "a.json", tmp_path / "link.json"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with held(link, "storage") as file:
        assert file.read() == b"old"
        file.write(b"new")
        assert locked_out(target)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    for name, end in (("round.json", "round.json"), ("away.json", "drive/a.json")):
        other = tmp_path / name
        other.symlink_to(tmp_path / end)
        wanted = pytest.raises(ValueError, match="to lead to a file")
        with wanted, held(other, "storage"):
            pass


def test_what_another_program_wrote_is_not_overwritten(tmp_path):
    path = tmp_path / "a.json"
    changed = "by this run alone, but .*a.json was changed by something else"
    with held(path, "storage") as file:
        path.write_bytes(b"theirs")
        for _ in range(2):
            with pytest.raises(ValueError, match=changed):
                file.write(b"ours")
        assert file.read() == b"theirs"
        file.write(b"ours")
        path.unlink()
        file.write(b"ours")
    assert path.read_bytes() == b"ours"


@contextlib.contextmanager
def without_rights(mode):
    r"""A folder, as a user sees it who is not root."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(mode)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            folder.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="rights of POSIX")
def test_a_folder_that_cannot_be_written_is_named():
    message = "in a folder where files can be made, but beside .*run.json no lock"
    with (
        without_rights(0o555) as folder,
        pytest.raises(ValueError, match=message),
        held(folder / "run.json", "storage"),
    ):
        pass


def dies_in_the_middle_of_a_write(path):
    os.fsync = lambda _: os.kill(os.getpid(), 9)
    with held(path, "storage") as file:
        file.read()
        file.write(b"half")


def waits_with_a_worker(path, ready, worker):
    with held(path, "storage"):
        process = get_context("fork").Process(target=worker.recv)
        process.start()  # it outlives its parent
        ready.send(process.pid)
        worker.recv()


fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")


@fork
def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    kept = [".b.json.12.tmp", ".a.json.x.tmp", "a.json.botorch-lse.tmp"]
    for name in kept:
        (tmp_path / name).touch()
    process = get_context("fork").Process(
        target=dies_in_the_middle_of_a_write, args=[path]
    )
    process.start()
    process.join()
    (left,) = tmp_path.glob(".a.json.*.botorch-lse.tmp")
    assert left.read_bytes() == b"half"
    with held(path, "storage") as file:
        assert not left.exists()
        assert file.read() == b"old"
    assert {*kept, "a.json", ".a.json.lock"} == {p.name for p in tmp_path.iterdir()}


@fork
def test_the_lock_of_a_killed_process_is_free_though_its_workers_live(tmp_path):
    path, context = tmp_path / "a.json", get_context("fork")
    ready, told = context.Pipe()
    worker, _open = context.Pipe()
    process = context.Process(target=waits_with_a_worker, args=[path, told, worker])
    process.start()
    orphan = ready.recv()
    try:
        assert locked_out(path)
        process.kill()
        process.join()
        os.kill(orphan, 0)  # it lives
        with held(path, "storage"):
            pass
    finally:
        os.kill(orphan, 9)


def test_one_waits_for_a_short_writer(tmp_path):
    path, inside = tmp_path / "a.json", threading.Event()
    order = []

    def write():
        with held(path, "storage"):
            inside.set()
            threading.Event().wait(0.2)
            order.append("short writer")

    thread = threading.Thread(target=write)
    thread.start()
    inside.wait()
    with held(path, "storage", patience=30.0):
        order.append("who waited")
    thread.join()
    assert order == ["short writer", "who waited"]
