r"""Writing a client so that a crash at any moment loses nothing recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ax.api.client import Client

from botorch_lse.ax.compat import (
    experiment_of,
    lies_in_database,
    one_transaction,
    snapshot_of,
)
from botorch_lse.ax.pool_store import write_whole


class Record:
    r"""Where a client's experiment is kept.

    A client with a ``storage_config`` writes to its database by itself; what happens
    inside ``changes`` is one transaction there. A file is written at the end of
    ``changes``: to a temporary file that reaches the disk before it takes the name.

    Args:
        client: With its experiment.
        path: A JSON file that ``Client.load_from_json_file`` reads; ``None``: none.

    Raises:
        ValueError: If there is no such folder, or the file holds another run or none.
    """

    def __init__(self, client: Client, path: str | Path | None = None) -> None:
        self.client = client
        self._known: dict[str, dict[str, Any]] = {}
        self.path = None if path is None else _checked(path)
        if self.path is not None and self.path.exists():
            _check_same_run(client, self.path)

    @contextmanager
    def changes(self) -> Iterator[None]:
        r"""What changes inside is on the disk when this ends."""
        if lies_in_database(self.client):
            with one_transaction():
                yield
        else:
            yield
        self.write()

    def write(self) -> None:
        r"""Write the file, if there is one."""
        if self.path is not None:
            snapshot = snapshot_of(self.client, self._known)
            write_whole(self.path, json.dumps(snapshot).encode())


def save_client(client: Client, path: str | Path) -> None:
    r"""Like ``client.save_to_json_file``, but whole or not at all, and half the size.

    A file of the same name is replaced, whatever it holds.

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
        OSError: If the file cannot be written; what was there before stays.
    """
    write_whole(Path(path), json.dumps(snapshot_of(client)).encode())


def _checked(path: Any) -> Path:
    r"""A place where a file can be written."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(
            f"Expected `storage` to be the path of a JSON file, but got {path!r}. "
            'Write `storage="run.json"`.'
        )
    found = Path(path)
    if found.is_dir():
        raise ValueError(
            f"Expected `storage` to be a file, but {found} is a folder. Write "
            f"`storage={str(found / 'run.json')!r}`."
        )
    if not found.parent.is_dir():
        raise ValueError(
            "Expected `storage` to lie in a folder that is there, but there is no "
            f"{found.parent}. Make it: `Path({str(found.parent)!r}).mkdir("
            "parents=True)`."
        )
    return found


def _check_same_run(client: Client, path: Path) -> None:
    r"""A run that is begun anew must not overwrite what was measured before."""
    try:
        stored = json.loads(path.read_text())["experiment"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            "Expected `storage` to be a new file or one of this run, but "
            f"{path} holds no experiment. Take another name, or remove it."
        ) from error
    experiment = experiment_of(client)
    lost = [i for i in stored["trials"] if int(i) not in experiment.trials]
    if stored["name"] != experiment.name or lost:
        raise ValueError(
            f"Expected `storage` to be a new file or the one this client was loaded "
            f"from, but {path} holds the experiment {stored['name']!r} with "
            f"{len(stored['trials'])} trials, {len(lost)} of them unknown here. To go "
            f"on with it: `client = Client.load_from_json_file({str(path)!r})`."
        )
