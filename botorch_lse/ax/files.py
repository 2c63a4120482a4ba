r"""Files that are there as a whole, and have one writer at a time."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout


class HeldFile:
    r"""A file that nobody else of this package writes; made by ``held``.

    A writer that takes no lock, such as ``Client.save_to_json_file``, is noticed where
    it wrote between two of ``write``.

    Args:
        path: The file itself, no link to it.
        name: The argument that gave it, for messages.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self._name = path, name
        self._last: bytes | None = None  # the digest of what it held at the last look

    def read(self) -> bytes | None:
        r"""The content; ``None`` if there is no such file.

        Raises:
            ValueError: If it can not be read.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(
                f"Expected `{self._name}` to be a file that can be read, but "
                f"{self.path} can not: {error}."
            ) from error
        self._last = _digest(content)
        return content

    def write(self, content: bytes) -> None:
        r"""Replace the content, unless someone else did since the last look.

        Raises:
            ValueError: If the file is not as it was read or written last.
            OSError: If it cannot be written; what was there before stays.
        """
        expected = self._last
        if self.read() is not None and self._last != expected:
            self._last = expected
            raise ValueError(
                f"Expected `{self._name}` to be written by this run alone, but "
                f"{self.path} was changed by something else. It is left as it is; "
                "what this run has is in the client: `save_client(client, "
                '"other.json")` writes it elsewhere.'
            )
        write_whole(self.path, content)
        self._last = _digest(content)


@contextmanager
def held(
    path: str | Path, name: str, patience: float = 0.0, label: str | None = None
) -> Iterator[HeldFile]:
    r"""Hold a file, so that no other process or thread of this package writes it.

    The lock is the operating system's, on a hidden empty file ``.<file>.lock`` beside
    it, which stays. It ends with the process that holds it, however that dies, and is
    not inherited by worker processes. What killed writers left is removed.

    Not covered: programs that write the file without this lock; folders of a network
    whose server does not pass locks on to other machines; two hard links to one file.

    Args:
        path: The file, or a symbolic link to it, which stays one.
        name: The argument that gave it, for messages.
        patience: Seconds to wait for another writer.
        label: What is held, in words; default the file.

    Raises:
        ValueError: If somebody else holds it, or no lock can be made.
    """
    try:
        target = Path(path).resolve()  # symbolic links are followed
    except (OSError, RuntimeError) as error:
        raise ValueError(
            f"Expected `{name}` to lead to a file, but {path} does not: {error}."
        ) from error
    label = label or str(target)
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        locked = lock.acquire(timeout=patience)
    except OSError as error:  # also `Timeout`
        if isinstance(error, Timeout) and Path(lock.lock_file).exists():
            raise ValueError(
                f"Expected `{name}` to have one writer, but {label} is held by another "
                "run that is under way, in this process or another one. Wait until it "
                "ends, or take another name."
            ) from error
        raise ValueError(
            f"Expected `{name}` to lie in a folder where files can be made, but beside "
            f"{label} no lock can be made: {error}. Take another folder, or change the "
            "rights of this one."
        ) from error
    with locked:
        _remove_leftovers(target)
        yield HeldFile(target, name)


def write_whole(path: Path, content: bytes) -> None:
    r"""Write a file so that it is there as a whole, or as it was before.

    The bytes reach the disk before the name does: a crash at any moment leaves the old
    file or the new one, with the rights of the old one. It is for one writer at a time:
    see ``held``.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":  # the folder's entry as well
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _remove_leftovers(path: Path) -> None:
    r"""Remove temporary files of dead writers: a live one would hold the lock."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.\d+\.tmp")
    for found in path.parent.iterdir():
        if ours.fullmatch(found.name):
            found.unlink(missing_ok=True)


def _digest(content: Any) -> bytes:
    return hashlib.sha256(content).digest()
