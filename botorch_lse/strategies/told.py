r"""What is told and asked, looked at before it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from botorch_lse.problem import Observations, Pool
from botorch_lse.strategies.state import State

if TYPE_CHECKING:
    from botorch_lse.strategies.base import Strategy

MOST_LISTED = 50_000_000
"""Measurements that ``ask`` lists row by row at most: 400 MB."""


def by_round(observations: Observations) -> list[Observations]:
    r"""One group per label; one group without labels."""
    if observations.round is None:
        return [observations]
    return [
        observations.select((observations.round == label).nonzero().view(-1))
        for label in observations.round.unique().tolist()
    ]


def check_new(state: State, told: Observations, missing: Tensor | None) -> None:
    r"""What is told again, as with a sheet filled in further, must not count twice.

    Args:
        state: Before.
        told: What is told.
        missing: Rows that the open round still needs; ``None`` before any came.

    Raises:
        ValueError: If a measurement labelled by a round was told for it already.
    """
    if told.round is None:
        return
    late = told.round < state.round
    if missing is not None:
        late |= (told.round == state.round) & ~torch.isin(told.indices, missing)
    if not bool(late.any()):
        return
    known = set(_entries(state.history.append(state.told)))
    again = [entry for entry in _entries(told.select(late)) if entry in known]
    if again:
        label, row, *values = again[0]
        raise ValueError(
            f"Expected new measurements, but {len(again)} were told already, first "
            f"{', '.join(f'{v:g}' for v in values)} of row {row} in round {label}. "
            "Tell only what is new, or `replay` the whole; leave `round` out if it "
            "was measured again."
        )


def _entries(observations: Observations) -> list[tuple[Any, ...]]:
    r"""Round, row and values of each; observations are labelled by round."""
    if len(observations) == 0:
        return []
    assert observations.round is not None  # labelled
    y = observations.y.view(len(observations), -1).unbind(dim=-1)
    columns = (observations.round, observations.indices, *y)
    return list(zip(*(column.tolist() for column in columns), strict=True))


GOAL = ("threshold", "omega", "maximize", "epsilon", "targets")
"""The arguments, of those a strategy has, that say what it is to decide."""


def check_state(strategy: Strategy, state: object) -> None:
    r"""Whether a state answers the question that a strategy asks.

    What it holds was derived from the rows, their features and the goal; a strategy
    that differs in these would mistake it for an answer of its own. Budgets and batch
    sizes may differ, so that a run can be continued with more.

    Args:
        strategy: The strategy that is asked or told.
        state: What it is given.

    Raises:
        ValueError: If it is no state, or was made by a strategy of another class, for
            another pool or another goal.
    """
    if not isinstance(state, State):
        raise ValueError(
            f"Expected `state` to be a State, but got {type(state).__name__}. Take it "
            "from `strategy.init()` or `strategy.tell`."
        )
    maker = state.strategy
    if maker is strategy:  # as a rule; pools need no look then
        return
    if type(maker) is not type(strategy):
        difference = f"a {type(maker).__name__}"
    elif not _same(maker.pool, strategy.pool):
        difference = f"another pool of {len(maker.pool)} rows"
    else:
        other = [
            n
            for n in GOAL
            if not _same(*(getattr(s, n, None) for s in (maker, strategy)))
        ]
        if not other:
            return
        difference = f"`{other[0]}` = {getattr(maker, other[0])!r}"
    raise ValueError(
        f"Expected a `state` that this {type(strategy).__name__} made, but it was made "
        f"with {difference}. Go on with the strategy that made it; to answer another "
        "question about the same rows, `strategy.replay(state.observations)`."
    )


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, Pool) and isinstance(other, Pool):
        return one.hash == other.hash
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return tuple(one) == tuple(other)
    return bool(one == other)


def check_listable(size: int) -> None:
    r"""Whether a round can be listed row by row.

    Raises:
        ValueError: If it has more than ``MOST_LISTED`` measurements.
    """
    if size > MOST_LISTED:
        raise ValueError(
            f"Expected a round of at most {MOST_LISTED:,} measurements, but the "
            f"algorithm asks for {size:,}. State `y` in units in which the gaps that "
            "matter are about 1, give a larger `epsilon`, or use a strategy with "
            "anytime widths (`...LinearStrategy`); `planned_counts` and `simulate`, "
            "where there are, do not list the rows."
        )
