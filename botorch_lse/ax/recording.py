r"""Writing a client so that a crash at any moment loses nothing recorded."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from ax.api.client import Client

from botorch_lse.ax.compat import (
    database_file,
    experiment_of,
    lies_in_database,
    one_transaction,
    save_trials,
    snapshot_of,
)
from botorch_lse.ax.files import HeldFile, held, write_whole
from botorch_lse.ax.known_trials import ahead_of_database, check_database, check_file

_PATIENCE = 5.0
"""Seconds to wait for another ``save_client``; a run lasts longer."""


class Record:
    r"""Where a client's experiment is kept, by nobody else as long as this is open.

    A client with a ``storage_config`` writes to its database by itself; what happens
    inside ``changes`` is one transaction there. A file is written at the end of
    ``changes``: to a temporary file that reaches the disk before it takes the name.

    One run at a time holds a file, and an experiment in an SQLite file. What others
    wrote without asking is noticed before it would be lost: a file that is not as this
    run left it, trials in the database that the client does not know.

    Args:
        client: With its experiment.
        path: A JSON file that ``Client.load_from_json_file`` reads; ``None``: none.

    Raises:
        ValueError: If there is no such folder, it cannot be written, another run holds
            it, or it holds another run, none, or trials that the client does not know.
    """

    def __init__(self, client: Client, path: str | Path | None = None) -> None:
        self.client = client
        self._known: dict[str, dict[str, Any]] = {}
        self._file: HeldFile | None = None
        self._is_behind = True  # as far as is known
        with ExitStack() as locks:
            if lies_in_database(client):
                self._hold_database(locks)
            if path is not None:
                self._file = locks.enter_context(
                    held(_checked(path, "storage"), "storage")
                )
                _check_rights(self._file.path)
                content = self._file.read()
                if content is not None:
                    check_file(client, content, self._file.path)
            self._locks = locks.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._locks.close()

    def _hold_database(self, locks: ExitStack) -> None:
        path, name = database_file(), experiment_of(self.client).name
        if path is not None:  # runs of other experiments may share the database
            own = f"{path.name}.{hashlib.sha256(name.encode()).hexdigest()[:16]}"
            label = f"the experiment {name!r} in {path}"
            lock = held(path.with_name(own), "storage_config", label=label)
            locks.enter_context(lock)
        check_database(self.client)

    @contextmanager
    def changes(self) -> Iterator[None]:
        r"""What changes inside is on the disk when this ends.

        Raises:
            ValueError: If somebody else wrote there; then nothing is written.
        """
        self._is_behind = True
        if lies_in_database(self.client):
            with one_transaction():
                yield
                # At the end: the transaction shuts others out from its first change on.
                check_database(self.client)
                if late := ahead_of_database(self.client):
                    save_trials(self.client, late)
        else:
            yield
        self.write()
        self._is_behind = False

    def catch_up(self) -> None:
        r"""Write what the disk may not have yet: at first, and after a failure."""
        if self._is_behind or lies_in_database(self.client):
            with self.changes():
                pass

    def write(self) -> None:
        r"""Write the file, if there is one.

        Raises:
            ValueError: If somebody else wrote it.
        """
        if self._file is not None:
            snapshot = snapshot_of(self.client, self._known)
            self._file.write(json.dumps(snapshot).encode())


def save_client(client: Client, path: str | Path) -> None:
    r"""Like ``client.save_to_json_file``, but whole or not at all, and half the size.

    A file of the same name is replaced, whatever it holds, unless a ``run_experiment``
    that is under way holds it. A symbolic link stays one: the file it leads to is
    replaced.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> client = Client()
        >>> client.configure_experiment(parameters=[], name="empty")
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "run.json")
        ...     save_client(client, path)
        ...     again = Client.load_from_json_file(str(path))

    Args:
        client: With its experiment.
        path: A file that ``Client.load_from_json_file`` reads.

    Raises:
        ValueError: If a run holds the file, or its folder cannot be written.
        OSError: If the file cannot be written; what was there before stays.
    """
    content = json.dumps(snapshot_of(client)).encode()
    with held(_checked(path, "path"), "path", _PATIENCE) as file:
        write_whole(file.path, content)


def _checked(path: Any, name: str) -> Path:
    r"""A place where a file can be written."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(
            f"Expected `{name}` to be the path of a JSON file, but got {path!r}. "
            f'Write `{name}="run.json"`.'
        )
    found = Path(path)
    if found.is_dir():
        raise ValueError(
            f"Expected `{name}` to be a file, but {found} is a folder. Write "
            f"`{name}={str(found / 'run.json')!r}`."
        )
    if not found.parent.is_dir():
        raise ValueError(
            f"Expected `{name}` to lie in a folder that is there, but there is no "
            f"{found.parent}. Make it: `Path({str(found.parent)!r}).mkdir("
            "parents=True)`."
        )
    return found


def _check_rights(path: Path) -> None:
    r"""A file that may not be written is not replaced either."""
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(
            f"Expected `storage` to be a file that can be written, but {path} is "
            "protected. Change its rights, or take another name."
        )
