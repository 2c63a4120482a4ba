r"""The metrics that a strategy learns from."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ax.core.data import Data
from ax.core.experiment import Experiment

from botorch_lse.strategies import Strategy


def listed(metrics: Any) -> tuple[str, ...] | None:
    r"""Names of metrics as given to a node; ``None`` for those of the objective.

    Raises:
        ValueError: If they are not a list of different names.
    """
    if metrics is None:
        return None
    names = [] if isinstance(metrics, str) else _items(metrics)
    is_name = [isinstance(name, str) for name in names]
    if not is_name or not all(is_name) or len(set(names)) < len(names):
        one = [metrics] if isinstance(metrics, str) else ["y"]
        raise ValueError(
            "Expected `metrics` to be a list of different names, one per output of the "
            f"strategy, but got {metrics!r}. Write `metrics={one}`."
        )
    return tuple(names)


def _items(metrics: Any) -> list[Any]:
    try:
        return list(metrics)
    except TypeError:
        return []


def check_known(
    experiment: Experiment, data: Data, metrics: Sequence[str] | None
) -> None:
    r"""Warn of metrics that the experiment does not have: a mistyped name, most often.

    They may still come with the first data.

    Args:
        experiment: With its metrics.
        data: Its data; metrics among them are known, too.
        metrics: Those given; ``None``: the objective's, which are known.

    Warns:
        UserWarning: If the experiment has metrics, but not all of these.
    """
    known = {*experiment.metrics, *data.metric_names}
    unknown = [name for name in metrics or () if name not in known]
    if unknown and experiment.metrics:
        warnings.warn(
            "Expected each of `metrics` to be a metric of the experiment, but it has "
            f"{sorted(known)} and not {unknown}. Correct the name, or call "
            f"`client.configure_tracking_metrics({unknown})`.",
            stacklevel=2,
        )


def metric_names(
    experiment: Experiment,
    metrics: Sequence[str] | None,
    strategy: Strategy | None = None,
) -> list[str]:
    r"""The metrics that the strategy learns from: those given, or the objective's.

    Raises:
        ValueError: If neither is there, there is not one per output of the strategy, or
            the objective's signs are not those of a strategy for several outputs.
    """
    signs = _signs(experiment)
    names = list(signs) if metrics is None else list(metrics)
    maximize = getattr(strategy, "maximize", None)
    n = 1 if maximize is None else len(maximize)
    if len(names) != n:
        found = f"`metrics` is {names}"
        if metrics is None:
            found = f"the experiment's objective has {names or 'none'}"
        raise ValueError(_wanted(n, found))
    for name, up in zip(names, maximize or (), strict=False):
        if name in signs and (signs[name] > 0) != up:
            raise ValueError(
                f"Expected `maximize` of the strategy to agree with the objective, but "
                f"{name!r} is to be {'maximised' if up else 'minimised'} by the one "
                "and not by the other. Write the objective of a metric to be minimised "
                f'as "-{name}".'
            )
    return names


def objective_metrics(experiment: Experiment) -> list[str]:
    r"""The metrics of the objective, where no level-set strategy says how many.

    Raises:
        ValueError: If the experiment has no objective.
    """
    names = list(_signs(experiment))
    if not names:
        raise ValueError(_wanted(1, "the experiment's objective has none"))
    return names


def _signs(experiment: Experiment) -> dict[str, float]:
    r"""The metrics of the objective, positive where they are to be maximised."""
    config = experiment.optimization_config
    return {} if config is None else dict(config.objective.metric_weights)


def _wanted(n: int, found: str) -> str:
    if n == 1:
        return (
            f"Expected an objective with one metric, or `metrics`, but {found}. Call "
            '`client.configure_optimization(objective="y")`, or pass `metrics=["y"]`.'
        )
    return (
        f"Expected one metric per output of the strategy ({n}), but {found}. Call "
        '`client.configure_optimization(objective="y, -z")`, or pass '
        '`metrics=["y", "z"]`, the outputs in order.'
    )
