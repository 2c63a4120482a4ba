r"""Whether a client knows all trials that lie where it is about to write.

A client that was loaded before another one wrote does not: what it writes would replace
the other's results. It knows a trial if it has one of the same number and parameters;
if that one is over wherever the stored one is; and if it has a value of each metric
that the stored one has. What a client knows beyond that is its own progress.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ax.api.client import Client
from ax.core.base_trial import BaseTrial
from ax.core.trial_status import TrialStatus

from botorch_lse.ax.compat import database_rows, experiment_of


@dataclass(frozen=True)
class _StoredTrial:
    parameters: list[dict[str, Any]]
    is_over: bool
    metrics: set[str]


def check_file(client: Client, content: bytes, path: Path) -> None:
    r"""Refuse a file with anything that the client does not know.

    Args:
        client: About to write the file.
        content: What is in it.
        path: Where it is.

    Raises:
        ValueError: If it holds another run, none, or trials that are unknown.
    """
    name, stored = _read(content, path)
    experiment = experiment_of(client)
    table = experiment.lookup_data().df
    metrics: dict[int, set[str]] = {}
    for trial, metric in zip(table["trial_index"], table["metric_name"], strict=True):
        metrics.setdefault(int(trial), set()).add(metric)
    unknown = []
    for index, there in stored.items():
        here = experiment.trials.get(index)
        if (
            here is None
            or _arms(here) != there.parameters
            or (there.is_over and not here.status.is_terminal)
            or not there.metrics <= metrics.get(index, set())
        ):
            unknown.append(index)
    if name != experiment.name or unknown:
        raise ValueError(
            f"Expected `storage` to be a new file or the one this client was loaded "
            f"from, but {path} holds the experiment {name!r} with {len(stored)} "
            f"trials, {len(unknown)} of them unknown here or further than here. To go "
            f"on with it: `client = Client.load_from_json_file({str(path)!r})`."
        )


def check_database(client: Client) -> None:
    r"""Refuse a database with a trial that the client does not know, or the reverse.

    In a transaction this holds until its end, whoever else writes.

    Raises:
        ValueError: If there is one.
    """
    experiment = experiment_of(client)
    stored = database_rows(experiment.name)
    if stored is None:
        return
    again = (
        "Nothing is written. To go on with what is there: `client = "
        f"Client.load_from_database({experiment.name!r}, storage_config)`."
    )
    trials = experiment.trials
    unknown = {
        index
        for index, row, status in stored.trials
        if index not in trials
        or trials[index].db_id != row
        or (status.is_terminal and not trials[index].status.is_terminal)
    }
    if unknown or experiment.db_id != stored.experiment:
        raise ValueError(
            f"Expected the experiment {experiment.name!r} to be written by this client "
            f"alone, but the database holds {len(stored.trials)} trials of it, "
            f"{len(unknown)} of them unknown here or further than here. {again}"
        )
    rows = {row for _, row, _ in stored.trials}
    phantoms = [i for i, trial in trials.items() if trial.db_id not in {None, *rows}]
    if phantoms:
        raise ValueError(
            f"Expected all that this client wrote to be in the database, but trials "
            f"{phantoms} of the experiment {experiment.name!r} are not: they were made "
            f"in a step that failed as a whole, or were removed. {again}"
        )


def ahead_of_database(client: Client) -> list[int]:
    r"""Trials that the client knows further than the database.

    After a step that failed; or because ``Client.load_from_database`` elsewhere wrote
    back what it had read before.
    """
    experiment = experiment_of(client)
    stored = database_rows(experiment.name)
    if stored is None:
        return []
    statuses: dict[int, TrialStatus] = {i: status for i, _, status in stored.trials}
    return [
        index
        for index, trial in experiment.trials.items()
        if statuses.get(index) != trial.status
    ]


def _arms(trial: BaseTrial) -> list[dict[str, Any]]:
    return [dict(arm.parameters) for run in trial.generator_runs for arm in run.arms]


def _read(content: bytes, path: Path) -> tuple[str, dict[int, _StoredTrial]]:
    r"""An experiment's name and trials, without making anything that a file names."""
    try:
        experiment = json.loads(content)["experiment"]
        data = experiment["data_by_trial"]
        trials = {
            int(index): _StoredTrial(
                parameters=list(_parameters(trial)),
                is_over=TrialStatus[trial["status"]["name"]].is_terminal,
                metrics=set(_metrics(data.get(index, {"value": []}))),
            )
            for index, trial in experiment["trials"].items()
        }
        return experiment["name"], trials
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(
            "Expected `storage` to be a new file or one of this run, but "
            f"{path} holds no experiment. Take another name, or remove it."
        ) from error


def _parameters(trial: dict[str, Any]) -> Iterator[dict[str, Any]]:
    r"""Those of each arm, in order."""
    runs = trial.get("generator_runs", [trial.get("generator_run")])
    for run in runs:
        yield from (arm["parameters"] for arm in (run or {"arms": []})["arms"])


def _metrics(data: dict[str, Any]) -> Iterator[str]:
    r"""Those of the tables of one trial."""
    for _, table in data["value"]:
        yield from json.loads(table["df"]["value"])["metric_name"].values()
