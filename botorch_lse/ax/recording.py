r"""Writing a client so that a crash at any moment loses nothing recorded.

A file is written as a whole or not at all, and has one writer at a time.

A client that was loaded before another one wrote must not write, because it would
replace the other's results. So it is checked that the client knows every stored trial:
that it has a trial of the same index and parameters, which has ended if the stored one
has, and which has a value of each metric that the stored one has. What the client has
beyond that is its own progress.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ax import Client
from ax.core.trial_status import TrialStatus
from filelock import FileLock, Timeout

from botorch_lse._files import (
    ChangedError,
    Seen,
    check_writable,
    followed,
    read_whole,
    remove_leftovers,
    write_whole,
)
from botorch_lse.ax import compat

_NOT_AN_EXPERIMENT = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""The errors of reading something else than an experiment as an experiment."""
_PATIENCE = 5.0
"""The seconds to wait for another ``save_client``; a run lasts longer."""


class Record(AbstractContextManager["Record"]):
    r"""The file or database with a client's experiment, locked while this is open.

    A client with a ``storage_config`` writes to its database by itself; what happens
    inside ``changes`` is one transaction there. A file is written at the end of
    ``changes``: to a temporary file that reaches the disk before it takes the name.

    One run at a time holds a file, and an experiment in an SQLite file. What others
    wrote without asking is noticed before it would be lost: a file that is not as this
    run left it, trials in the database that the client does not know.

    Args:
        client: A client with an experiment.
        path: A JSON file that ``Client.load_from_json_file`` reads; ``None``: none.

    Raises:
        ValueError: If there is no such folder, it cannot be written, another run holds
            it, or it holds another run, none, or trials that the client does not know.
    """

    def __init__(self, client: Client, path: str | Path | None = None) -> None:
        self.client = client
        self._known: dict[str, dict[str, Any]] = {}
        self._file: HeldFile | None = None
        self._is_behind = True  # until the first write nobody knows what the disk holds
        with ExitStack() as locks:
            if compat.lies_in_database(client):
                self._hold_database(locks)
            if path is not None:
                file = held(_checked(path, "storage"), "storage")
                self._file = locks.enter_context(file)
                self._check_file(self._file)
            self._locks = locks.pop_all()

    def __exit__(self, *error: object) -> None:
        self._locks.close()

    def _hold_database(self, locks: ExitStack) -> None:
        path, name = compat.database_file(), compat.experiment_of(self.client).name
        if path is not None:  # runs of other experiments may share the database
            own = f"{path.name}.{hashlib.sha256(name.encode()).hexdigest()[:16]}"
            label = f"the experiment {name!r} in {path}"
            lock = held(path.with_name(own), "storage_config", label=label)
            locks.enter_context(lock)
        _behind_in_database(self.client)

    def _check_file(self, file: HeldFile) -> None:
        r"""Refuse a file with anything that the client does not know."""
        path = file.path
        try:
            check_writable(path)
        except OSError as error:
            raise ValueError(
                f"Expected `storage` to be a file that can be written, but {path} is "
                "protected. Change its rights, or take another name."
            ) from error
        if (content := file.read()) is None:
            return
        try:
            name, stored = _trials_of(json.loads(content))
        except _NOT_AN_EXPERIMENT as error:
            raise ValueError(
                "Expected `storage` to be a new file or one of this run, but "
                f"{path} holds no experiment. Take another name, or remove it."
            ) from error
        text = json.dumps(self._snapshot())
        own_name, known = _trials_of(json.loads(text))
        unknown = [i for i, trial in stored.items() if not trial.is_known(known.get(i))]
        if name != own_name or unknown:
            raise ValueError(
                f"Expected `storage` to be a new file or the one this client was "
                f"loaded from, but {path} holds the experiment {name!r} with "
                f"{len(stored)} trials, {len(unknown)} of them unknown here or further "
                "than here. To go on with it: `client = Client.load_from_json_file("
                f"{str(path)!r})`."
            )

    @contextmanager
    def changes(self) -> Iterator[None]:
        r"""A context whose changes of the client are on the disk when it ends.

        Raises:
            ValueError: If somebody else wrote there; then nothing is written.
        """
        self._is_behind = True
        if compat.lies_in_database(self.client):
            with compat.one_transaction():
                yield
                # At the end: the transaction shuts others out from its first change on.
                if behind := _behind_in_database(self.client):
                    compat.save_trials(self.client, behind)
        else:
            yield
        self.write()
        self._is_behind = False

    def catch_up(self) -> None:
        r"""Write what the disk may lack: at the beginning, or after a failed write."""
        if self._is_behind or compat.lies_in_database(self.client):
            with self.changes():
                pass

    def write(self) -> None:
        r"""Write the file, if there is one.

        Raises:
            ValueError: If somebody else wrote it.
        """
        if self._file is not None:
            self._file.write(json.dumps(self._snapshot()).encode())

    def _snapshot(self) -> dict[str, Any]:
        return compat.snapshot_of(self.client, self._known)


@dataclass(frozen=True)
class _Trial:
    r"""A trial as a stored file describes it.

    Args:
        parameters: The parameterization of each arm, in order.
        is_over: Whether the trial has ended in any way.
        metrics: The names of the metrics with data.
    """

    parameters: list[dict[str, Any]]
    is_over: bool
    metrics: set[str]

    def is_known(self, here: _Trial | None) -> bool:
        r"""Whether the client's trial ``here`` is this one and at least as far."""
        return (
            here is not None
            and here.parameters == self.parameters
            and (here.is_over or not self.is_over)
            and here.metrics >= self.metrics
        )


def _trials_of(snapshot: dict[str, Any]) -> tuple[str, dict[str, _Trial]]:
    r"""The name and trials of an experiment, without making named objects."""
    experiment = snapshot["experiment"]
    found = {}
    for index, trial in experiment["trials"].items():
        runs = trial.get("generator_runs", [trial.get("generator_run")])
        tables = experiment["data_by_trial"].get(index, {"value": []})["value"]
        data = [json.loads(table["df"]["value"]) for _, table in tables]
        found[index] = _Trial(
            [arm["parameters"] for run in runs if run for arm in run["arms"]],
            TrialStatus[trial["status"]["name"]].is_terminal,
            {metric for table in data for metric in table["metric_name"].values()},
        )
    return experiment["name"], found


def _behind_in_database(client: Client) -> list[int]:
    r"""The indices of trials whose status in the database is out of date.

    A status falls behind after a failed step, or when ``Client.load_from_database``
    elsewhere wrote back what it had read before. The client must know every trial of
    the database. Called inside a transaction, the result holds until its end, whoever
    else writes.

    Raises:
        ValueError: If the database holds a trial that the client does not know, or the
            reverse.
    """
    experiment = compat.experiment_of(client)
    stored = compat.database_rows(experiment.name)
    if stored is None:
        return []
    again = (
        "Nothing is written. To go on with what is there: `client = "
        f"Client.load_from_database({experiment.name!r}, storage_config)`."
    )
    experiment_row, rows = stored
    trials = experiment.trials
    unknown = {
        index
        for row, (index, status) in rows.items()
        if index not in trials
        or trials[index].db_id != row
        or (status.is_terminal and not trials[index].status.is_terminal)
    }
    if unknown or experiment.db_id != experiment_row:
        raise ValueError(
            f"Expected the experiment {experiment.name!r} to be written by this client "
            f"alone, but the database holds {len(rows)} trials of it, "
            f"{len(unknown)} of them unknown here or further than here. {again}"
        )
    phantoms = [i for i, trial in trials.items() if trial.db_id not in {None, *rows}]
    if phantoms:
        raise ValueError(
            f"Expected all that this client wrote to be in the database, but trials "
            f"{phantoms} of the experiment {experiment.name!r} are not: they were made "
            f"in a step that failed as a whole, or were removed. {again}"
        )
    statuses = dict(rows.values())
    return [i for i, trial in trials.items() if statuses.get(i) != trial.status]


def save_client(client: Client, path: str | Path) -> None:
    r"""Save like ``client.save_to_json_file``: whole or not at all, in half the size.

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
        client: A client with an experiment.
        path: A file that ``Client.load_from_json_file`` reads.

    Raises:
        ValueError: If a run holds the file, or its folder cannot be written.
        OSError: If the file cannot be written; what was there before stays.
    """
    content = json.dumps(compat.snapshot_of(client)).encode()
    with held(_checked(path, "path"), "path", _PATIENCE) as file:
        write_whole(file.path, content)


def path_of(value: Any, name: str, what: str, example: str) -> Path:
    r"""The ``value`` as a path; a complaint says of ``what`` and gives an ``example``.

    Raises:
        ValueError: If it is no path.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(
            f"Expected `{name}` to be the path of {what}, but got {value!r}. "
            f'Write `{name}="{example}"`.'
        )
    return Path(value)


def _checked(path: Any, name: str) -> Path:
    r"""The path of a file in a folder that exists.

    Raises:
        ValueError: If it is no path, a folder, or its folder does not exist.
    """
    found = path_of(path, name, "a JSON file", "run.json")
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


@contextmanager
def uninterrupted(*, is_ending: bool = False) -> Iterator[None]:
    r"""A context in which Ctrl-C takes effect only at its end.

    It is used from the moment at which a result is in memory until it is on the disk.
    Python interrupts the main thread alone, so that in other threads nothing needs to
    be done.

    Args:
        is_ending: Whether the run ends anyway, by Ctrl-C or an error: another Ctrl-C
            meanwhile then takes no effect at all.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield  # None: a handler that Python did not set and could not put back
        return
    caught: list[Any] = []
    signal.signal(signal.SIGINT, lambda *args: caught.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if caught and not is_ending:
            signal.raise_signal(signal.SIGINT)


# --- files ----------------------------------------------------------------------------


class HeldFile:
    r"""A file that nothing else of this package writes; made by ``held``.

    A writer that takes no lock, such as ``Client.save_to_json_file``, is noticed where
    it wrote between two of ``write``.

    Args:
        path: The file itself, no link to it.
        name: The argument that gave it, for messages.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self._name = path, name
        self._last = Seen(None)  # at the last look

    def read(self) -> bytes | None:
        r"""The content; ``None`` if there is no such file.

        Raises:
            ValueError: If it can not be read.
        """
        try:
            content = read_whole(self.path)
        except OSError as error:
            raise ValueError(
                f"Expected `{self._name}` to be a file that can be read, but "
                f"{self.path} can not: {error}."
            ) from error
        if content is not None:
            self._last = Seen.of(content)
        return content

    def write(self, content: bytes) -> None:
        r"""Replace the content, unless someone else did since the last look.

        Raises:
            ValueError: If the file is not as it was read or written last.
            OSError: If it cannot be written; what was there before stays.
        """
        # One that is gone is written again: nothing of somebody else's is lost.
        over = self._last if self.path.exists() else Seen(None)
        try:
            write_whole(self.path, content, over)
        except ChangedError as error:
            raise ValueError(
                f"Expected `{self._name}` to be written by this run alone, but "
                f"{self.path} was changed by something else. It is left as it is; "
                "what this run has is in the client: `save_client(client, "
                '"other.json")` writes it elsewhere.'
            ) from error
        self._last = Seen.of(content)


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
        target = followed(path)
    except OSError as error:
        raise ValueError(
            f"Expected `{name}` to lead to a file, but {path} does not: "
            f"{error.strerror}. Take another name, or remove the link."
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
        remove_leftovers(target.parent)
        yield HeldFile(target, name)
