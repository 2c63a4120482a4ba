r"""The private names of Ax that this package needs, and the versions it knows.

One function per name; ``tests/ax/test_compat.py`` fails when one of them moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from io import StringIO
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ax import Client
from ax.analysis.analysis import Analysis
from ax.core import Arm, Data, Experiment, GeneratorRun
from ax.core.trial_status import TrialStatus
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.encoders import data_to_dict, generation_strategy_to_dict
from ax.storage.json_store.registry import CORE_ENCODER_REGISTRY

from botorch_lse._validation import complaint, of_type

OLDEST_AX = (1, 3, 1)
TESTED_AX = "1.3.1"


def check_ax_version(installed: str | None = None) -> None:
    r"""Refuse an Ax that is too old.

    Raises:
        ImportError: If Ax is older than ``OLDEST_AX``.
    """
    installed = version("ax-platform") if installed is None else installed
    numbers = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    if numbers < OLDEST_AX:
        oldest = ".".join(map(str, OLDEST_AX))
        raise ImportError(
            f"Expected ax-platform of at least {oldest} (tested with {TESTED_AX}), but "
            f"{installed} is installed. Run `pip install 'ax-platform>={oldest}'`."
        )


check_ax_version()


def check_client(client: Any) -> None:
    r"""Complain about anything else than a ``Client``.

    Raises:
        ValueError: If it is, such as an ``AxClient``.
    """
    remedy = "Write `from ax.api.client import Client` and `client = Client()`."
    of_type(client, Client, "client", "a `Client` of `ax.api.client`", remedy)


def parts_of(
    experiment: Any, generation_strategy: GenerationStrategy | None
) -> tuple[Experiment, GenerationStrategy | None]:
    r"""The experiment and generation strategy of a client, or those that are given.

    Args:
        experiment: A ``Client`` or an experiment.
        generation_strategy: With an experiment.

    Raises:
        ValueError: If it is neither, such as an ``AxClient``.
    """
    if isinstance(experiment, Client):
        return experiment_of(experiment), generation_strategy_of(experiment)
    wanted = "a `Client` of `ax.api.client` or an Experiment"
    remedy = (
        "Of another client give its parts: `client.experiment`, "
        "`client.generation_strategy`."
    )
    of_type(experiment, Experiment, "experiment", wanted, remedy)
    return experiment, generation_strategy


def experiment_of(client: Client) -> Experiment:
    r"""The experiment inside a client.

    Raises:
        ValueError: If there is none yet.
    """
    if client._maybe_experiment is None:
        wanted, came = "to have an experiment", "it has none"
        remedy = "Call `client.configure_experiment(parameters=pool_parameters(pool))`."
        raise ValueError(complaint("client", wanted, came, remedy))
    return client._experiment


def generation_strategy_of(client: Client) -> GenerationStrategy | None:
    r"""The generation strategy inside a client, ``None`` before one is set."""
    return client._maybe_generation_strategy


def node_name_of(run: GeneratorRun) -> str | None:
    r"""The name of the node that made a generator run."""
    return run._generation_node_name


def arms_of(run: GeneratorRun) -> list[tuple[Arm, float]]:
    r"""The arms of a generator run with their weights.

    Ax's public attributes build two lists anew at each access, which is slow in loops.
    """
    return [(pair.arm, pair.weight) for pair in run._arm_weight_table.values()]


def properties_of(experiment: Experiment) -> dict[str, Any]:
    r"""The properties of an experiment, which both storages keep."""
    return experiment._properties


_CELLS = attrgetter("trial_index", "arm_name", "metric_name", "mean", "se", "step")


def cells_of(data: Data) -> list[tuple[Any, ...]]:
    r"""The rows of an experiment's data, by value, in the order of arrival.

    Each has the trial's index, the names of arm and metric, the value (maybe NaN), its
    standard error (NaN if unknown), and how far the trial had come (``None`` or NaN: at
    its end). Ax's public attribute is a table of all rows, which it builds anew after
    each change: 20 milliseconds for some hundred rows, where this takes a third of one.
    """
    return list(map(_CELLS, data._data_rows))


def save_properties(experiment: Experiment) -> None:
    r"""Write an experiment's properties to the database, if it lies in one.

    Ax writes them with the whole experiment only, not with its trials.
    """
    if experiment.db_id is None:
        return
    from ax.storage.sqa_store import db
    from ax.storage.sqa_store.save import update_properties_on_experiment

    if db.SESSION_FACTORY is not None:
        update_properties_on_experiment(experiment)


def has_own_registries(client: Client) -> bool:
    r"""Whether a client's storage configuration has registries of the user's own."""
    storage = client._storage_config
    return storage is not None and storage.registry_bundle is not None


def lies_in_database(client: Client) -> bool:
    r"""Whether a client writes its experiment to a database by itself."""
    return client._storage_config is not None


def snapshot_of(
    client: Client, known: dict[str, dict[str, Any]] | None = None
) -> dict[str, Any]:
    r"""The content of ``client.save_to_json_file``, with the experiment only once.

    Ax's own snapshot holds the experiment a second time inside the generation strategy;
    ``Client.load_from_json_file`` reads the first copy only.

    Args:
        client: A client with an experiment.
        known: Data encoded in earlier snapshots, by content; it is added to. Ax spends
            most of the time of a snapshot on the data of trials that never change.
    """
    strategy = client._maybe_generation_strategy
    if strategy is None or has_own_registries(client):
        return client._to_json_snapshot()
    known = {} if known is None else known

    def encoded(data: Data) -> dict[str, Any]:
        key = repr([tuple(vars(row).values()) for row in data._data_rows])
        if key not in known:
            known[key] = data_to_dict(data)
        return known[key]

    registry = {**CORE_ENCODER_REGISTRY, Data: encoded}
    parts = {**generation_strategy_to_dict(_unfitted(strategy)), "experiment": None}
    return {
        "_type": type(client).__name__,
        "experiment": object_to_json(client._experiment, encoder_registry=registry),
        "generation_strategy": object_to_json(parts, encoder_registry=registry),
    }


def _unfitted(strategy: GenerationStrategy) -> Any:
    r"""A generation strategy as Ax's encoder reads it, without fitting an adapter.

    The encoder asks for the adapter only to store whether there is one, which nothing
    reads; making the adapter takes longer than the rest of the snapshot.
    """

    class GenerationStrategy:  # the encoder writes the name of the class
        adapter = None

        def __getattr__(self, name: str) -> Any:
            return getattr(strategy, name)

    return GenerationStrategy()


def set_overview(overview: type[Analysis]) -> None:
    r"""Make this the overview of ``client.compute_analyses()`` without arguments.

    Ax has no place where a generation strategy could add cards of its own.
    """
    from ax.api import client
    from ax.service.utils import analysis_base

    for module in (client, analysis_base):
        vars(module)["OverviewAnalysis"] = overview


def complete_trial(client: Client, index: int, outcome: dict[str, Any]) -> None:
    r"""Complete a trial as ``client`` does, without the tables that only its log needs.

    At a thousand trials 33 of its 35 ms go into tables of all the data.

    Args:
        client: A client with an experiment.
        index: The trial's.
        outcome: By metric a value or ``(mean, sem)``; metrics that the experiment does
            not have yet become tracking metrics.
    """
    experiment = client._experiment
    if further := [name for name in outcome if name not in experiment.metrics]:
        client.configure_tracking_metrics(metric_names=further)
    trial = experiment.trials[index]
    (arm,) = trial.arms
    # As ``Client.attach_data`` has it: values without a progression have the step NaN.
    data = trial._raw_evaluations_to_data({arm.name: [(np.nan, outcome)]})
    experiment.attach_data(data)
    trial.mark_completed()
    client._save_or_update_trial_in_db_if_possible(experiment=experiment, trial=trial)


def database_file() -> Path | None:
    r"""The file of the open SQLite database; ``None`` for any other database."""
    from ax.storage.sqa_store import db

    if db.SESSION_FACTORY is None:
        return None
    url = db.get_engine().url
    path = url.database
    if url.get_backend_name() != "sqlite" or path in (None, "", ":memory:"):
        return None
    return None if path.startswith("file:") else Path(path).resolve()


def database_rows(name: str) -> tuple[int, dict[int, tuple[int, TrialStatus]]] | None:
    r"""The rows of an experiment in the open database; ``None`` if it has none.

    In a transaction the rows are locked until its end, so that of two writers the
    second one sees what the first one wrote (SQLite locks the whole database instead).

    Returns:
        The id of the experiment's row, and a dictionary from the id of each trial's row
        to the trial's index (several rows may have the same index) and status.
    """
    from ax.storage.sqa_store import db
    from ax.storage.sqa_store.sqa_classes import SQAExperiment, SQATrial

    if db.SESSION_FACTORY is None:
        return None
    with db.session_scope() as session:
        found = session.query(SQAExperiment.id).filter_by(name=name)
        row = found.with_for_update().one_or_none()
        if row is None:
            return None
        columns = (SQATrial.id, SQATrial.index, SQATrial.status)
        trials = session.query(*columns).filter_by(experiment_id=row[0])
        return row[0], {i: (index, at) for i, index, at in trials.with_for_update()}


def save_trials(client: Client, trials: list[int]) -> None:
    r"""Write trials and their data to the client's database."""
    experiment = client._experiment
    client._save_or_update_trials_in_db_if_possible(
        experiment=experiment, trials=[experiment.trials[i] for i in trials]
    )


@contextmanager
def one_transaction() -> Iterator[None]:
    r"""A context in which Ax's writes to its database happen together or not at all.

    Ax commits a trial, the deletion of its old data and its new data one by one; a
    crash in between would lose what was measured.
    """
    from ax.storage.sqa_store import db

    factory = db.SESSION_FACTORY
    if factory is None:  # no database was opened
        yield
        return
    engine = db.get_engine()
    with engine.begin() as connection:
        factory.remove()
        factory.configure(bind=connection)
        try:
            yield
        finally:
            factory.remove()
            factory.configure(bind=engine)


def as_stored(values: np.ndarray) -> np.ndarray:
    r"""The numbers as they come back after Ax has saved and loaded them.

    Ax writes data with ``DataFrame.to_json()``, that is with ten decimals. A live run
    that read more of them could decide otherwise than the same run after a reload.
    """
    table = pd.DataFrame({"mean": np.asarray(values, dtype=float)})
    text = StringIO(table.to_json())
    return pd.read_json(text, dtype=False)["mean"].to_numpy(dtype=float, copy=True)
