r"""Files written as a whole or not at all, and over nothing unseen.

Everything that this package writes goes through ``write_whole``. A link stays a link
and the file it leads to is replaced; a file that forbids writing is left alone; so is
one that is not as the caller saw it, because somebody saved it meanwhile.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows, which locks what is open by itself
    fcntl = None  # type: ignore[assignment]

_ENDING = ".botorch-lse.tmp"
_TEMPORARY = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(_ENDING)}")
"""The names of temporary files."""
_LONGEST = 100
"""The letters of a file's name that its temporary file keeps: names have 255 bytes."""


class ChangedError(OSError):
    r"""The error that a file is not as the caller saw it; it was left as it is."""


@dataclass(frozen=True)
class Seen:
    r"""The content of a file when it was looked at.

    Args:
        digest: That of its content; ``None``: there was no such file.
    """

    digest: bytes | None

    @classmethod
    def of(cls, content: bytes | None) -> Seen:
        r"""The record of a content that was read, or of a missing file."""
        return cls(None if content is None else hashlib.sha256(content).digest())


def followed(path: str | Path) -> Path:
    r"""The file that a path leads to, through all links.

    Args:
        path: A file, or a link to one, which need not be there yet.

    Raises:
        OSError: If it is a link to nowhere, or to itself.
    """
    path = Path(path)
    try:
        target = path.resolve()
    except RuntimeError as error:  # what Python raises for a circle of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
    if path.is_symlink() and not target.exists():
        words = f"it is a link to {target}, which is not there"
        raise FileNotFoundError(errno.ENOENT, words, str(path))
    return target


def read_whole(path: str | Path) -> bytes | None:
    r"""The content of a file; ``None`` if there is no such file.

    Raises:
        OSError: If it cannot be read, or is a link to nowhere.
    """
    try:
        return followed(path).read_bytes()
    except FileNotFoundError:
        if Path(path).is_symlink():
            raise
        return None


def seen_to_write(path: str | Path) -> Seen:
    r"""The content of a file that is to be replaced later.

    It is for the beginning of a call, which should not fail at its end: what forbids
    writing is found now, and what ended calls left beside the file is removed.

    Raises:
        OSError: If it cannot be written or read.
    """
    target = followed(path)
    check_writable(target)
    folder = target.parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder}", str(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        words = f"no file can be made in {folder}"
        raise PermissionError(errno.EACCES, words, str(path))
    remove_leftovers(folder)
    return Seen.of(read_whole(target))


def check_writable(path: Path) -> None:
    r"""Refuse a file that is there and may not be written.

    A file is replaced by renaming another one, which its rights do not prevent.

    Raises:
        OSError: If it is a folder, or its rights forbid writing.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not path.exists():
        return
    # Root may write anything: a file that nobody may write is meant to stay.
    if not os.access(path, os.W_OK) or not path.stat().st_mode & 0o222:
        words = "its rights forbid writing"
        raise PermissionError(errno.EACCES, words, str(path))


def write_whole(path: str | Path, content: bytes, over: Seen | None = None) -> None:
    r"""Write a file so that it is there as a whole, or as it was before.

    The bytes reach the disk before the name does: a crash at any moment leaves the old
    file or the new one, with the rights of the old one.

    Args:
        path: The file, or a link to it, which stays one.
        content: The content to write.
        over: The content that the caller saw; default: any is replaced.

    Raises:
        ChangedError: If it holds something else than the caller saw.
        OSError: If it cannot be written; what was there before stays.
    """
    target = followed(path)
    check_writable(target)
    if not target.parent.is_dir():
        words = f"there is no folder {target.parent}"
        raise FileNotFoundError(errno.ENOENT, words, str(path))
    with _temporary(target) as (temporary, file):
        if target.exists():
            _give_rights(target, temporary)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        if fcntl is None:
            file.close()  # Windows renames no open file
        if over is not None and Seen.of(read_whole(target)) != over:
            raise ChangedError(errno.EBUSY, "it was saved meanwhile", str(path))
        temporary.replace(target)
    if os.name == "posix":  # the folder's entry as well, where a folder can be synced
        with suppress(OSError):
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def write_figure(
    figure: Any, path: str | Path, over: Seen | None = None, **options: Any
) -> None:
    r"""Write a picture of matplotlib as a whole, in the format that its name says.

    Args:
        figure: The figure.
        path: The file; PNG if its name does not end in a format.
        over: The content that the caller saw; default: any is replaced.
        **options: For ``figure.savefig``, such as ``dpi``.

    Raises:
        ValueError: If its name ends in a format that matplotlib does not write.
        OSError: As ``write_whole``.
    """
    content, ending = io.BytesIO(), Path(path).suffix[1:]
    figure.savefig(content, format=ending or "png", **options)
    write_whole(path, content.getvalue(), over)


def _give_rights(old: Path, new: Path) -> None:
    r"""Give a file the rights of another one, and its owner where that is allowed."""
    if hasattr(os, "chown"):  # root, as in a container, writes for somebody else
        found = old.stat()
        with suppress(OSError):
            os.chown(new, found.st_uid, found.st_gid)
    shutil.copymode(old, new)


@contextmanager
def _temporary(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    r"""A new file beside another one, removed unless it took another name."""
    while True:
        token = secrets.token_hex(4)
        name = f".{target.name[:_LONGEST]}.{token}{_ENDING}"
        temporary = target.with_name(name)
        try:
            with temporary.open("xb") as file:
                # Held as long as its call lives; see ``remove_leftovers``, which may
                # have been there between the two.
                _locked(file, is_patient=True)
                if fcntl is not None and os.fstat(file.fileno()).st_nlink == 0:
                    continue
                yield temporary, file
                return
        finally:
            temporary.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    r"""Remove the temporary files that ended calls have left in a folder.

    Files of calls that are under way are locked, by whatever machine they run on. On
    Windows an open file cannot be removed.

    Args:
        folder: The folder; nothing is done where it cannot be read.
    """
    with suppress(OSError):
        for found in folder.iterdir():
            if not _TEMPORARY.fullmatch(found.name):
                continue
            with suppress(OSError), found.open("rb") as file:
                if fcntl is not None and not _locked(file, is_patient=False):
                    continue
                if fcntl is not None:
                    found.unlink()
            if fcntl is None:
                with suppress(OSError):
                    found.unlink()


def _locked(file: BinaryIO, *, is_patient: bool) -> bool:
    r"""Whether an open file is locked for this call now."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if is_patient else fcntl.LOCK_NB))
    except OSError:  # held by another call, or a drive without locks
        return False
    return True
