r"""The words for a strategy: its question, and what notebooks show of it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from botorch_lse._numerals import written
from botorch_lse.goals.base import Goal
from botorch_lse.goals.outcome_levels import quantities


def default_names(strategy: Any) -> tuple[str, ...]:
    r"""The names of what is measured, one for each output: the goal's, else ``y``."""
    m, own = strategy.n_predicted, tuple(map(str, strategy.outputs))
    return own or (("y",) if m == 1 else tuple(f"y{i}" for i in range(m)))


def question_of(strategy: Any, names: Sequence[str], outputs: Sequence[str]) -> str:
    r"""The question of a strategy in words; empty where there are none.

    Args:
        strategy: The strategy.
        names: The metrics.
        outputs: The names of the answer's outputs, where a row measures one of them.
    """
    goal, directions = getattr(strategy, "goal", None), strategy.directions
    if isinstance(goal, Goal):
        own = names if len(names) >= len(outputs) else outputs
        return goal.question(quantities(strategy.outcomes, own))
    if directions is not None:
        wanted = zip(directions, names, strict=True)
        return " and ".join(f"{'more' if up else 'less'} {name}" for up, name in wanted)
    for level, words in (("threshold", ""), ("omega", " of its maximum")):
        if getattr(strategy, level, None) is not None:
            return f"{names[0]} above {written(getattr(strategy, level))}{words}"
    return ""


def strategy_html(strategy: Any) -> str:
    r"""A strategy as notebooks show it: a table of question, parts and guarantee."""
    names, size = default_names(strategy), strategy.batch_size
    most = strategy.max_observations
    lines = {
        "question": question_of(strategy, names, ()),
        "candidates": repr(strategy.pool),
        "rule": shortened(getattr(strategy.algorithm, "rule", None)),
        "model": shortened(getattr(strategy, "model", None)),
        "batch size": "chosen anew in each round" if size is None else size,
        "measurements": "without a limit" if most is None else f"at most {most:,}",
        "guarantee": strategy.guarantee,
    }
    left = 'style="text-align: left; vertical-align: top"'
    rows = "".join(
        f"<tr><th {left}>{name}</th><td {left}>{html.escape(str(words))}</td></tr>"
        for name, words in lines.items()
        if words
    )
    return f"<p>{html.escape(type(strategy).__name__)}</p><table>{rows}</table>"


def shortened(thing: Any) -> str:
    r"""A part of a strategy in short: of a record what differs from its defaults.

    Example:
        >>> from botorch_lse import GaussianProcess
        >>> shortened(GaussianProcess(noise_std=0.1))
        'GaussianProcess(noise_std=0.1)'
    """
    if thing is None:
        return ""
    if isinstance(thing, tuple):
        return f"({', '.join(map(shortened, thing))})"
    if not is_dataclass(thing):
        is_plain = isinstance(thing, bool | int | float | str)
        own = getattr(thing, "__name__", type(thing).__name__)
        return repr(thing) if is_plain else own
    given = list[str]()
    for part in fields(thing):
        value = getattr(thing, part.name)
        default = part.default
        if part.default_factory is not MISSING:
            default = part.default_factory()
        # Tensors have no single truth value: what is no plain number is shown.
        is_default = value is default or repr(value) == repr(default)
        if part.init and part.repr and not is_default:
            given.append(f"{part.name}={shortened(value) or value}")
    return f"{type(thing).__name__}({', '.join(given)})"
