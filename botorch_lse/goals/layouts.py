r"""The layout that a goal has on the rows of a pool."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import UnsupportedError

from botorch_lse._validation import complaint
from botorch_lse.data.pool import OUTPUT, Pool
from botorch_lse.goals.base import Goal
from botorch_lse.goals.regions import Region
from botorch_lse.surrogate.layout import FromSources, Layout, OneOutputEach


def layout_of(pool: Pool, goal: Goal) -> Layout:
    r"""The layout of a pool: its rows measure all outputs of the goal, or one of them.

    Raises:
        UnsupportedError: If rows measure one output each, and the goal is no region.
        ValueError: If it is a region of other outputs.
    """
    if pool.target is not None:
        return _from_sources(pool, goal)
    if (pool.names or ("",))[-1] != OUTPUT or goal.facts.n_outputs == 1:
        return Layout(pool, goal.facts.n_outputs)
    M, number = goal.facts.n_outputs, pool.X[:, -1]
    names = goal.facts.names
    if goal.facts.n_comparisons == 0:
        raise UnsupportedError(
            "Expected a region as `goal`, such as `Above(1) & Below(2, output=1)`, "
            f"where rows measure one output each, but got {type(goal).__name__}."
        )
    expected = torch.arange(M).to(number).repeat_interleave(len(pool) // M)
    if len(pool) % M or not torch.equal(number, expected):
        raise ValueError(
            f"Expected `pool` at the {M} outputs of the `goal`, but its column "
            f"{OUTPUT!r} has {int(number.max()) + 1}. Write `pool.at_outputs(...)` "
            "with as many outputs."
        )
    found = OneOutputEach(pool, M)
    if names and names != found.names:
        raise ValueError(
            "Expected `pool.at_outputs` to name the outputs in the order of the "
            f"`goal`, {names}, but got {found.names}."
        )
    return found


def _from_sources(pool: Pool, goal: Goal) -> Layout:
    r"""The layout of a pool at several sources, of which one is decided.

    Raises:
        UnsupportedError: If the goal is no region of one output with one level for all
            rows.
        ValueError: If it names another output than the target.
    """
    if (
        not isinstance(goal, Region)
        or goal.n_outputs > 1
        or not goal.values.is_alike_in_all_rows
    ):
        raise UnsupportedError(
            "Expected a region of one output as `goal`, with levels that are the same "
            "in all rows, such as `Above(1)`, where a pool has sources, but got "
            f"{type(goal).__name__}."
        )
    found, names = FromSources(pool), goal.facts.names
    target = pool.sources[found.target]
    if names and names != (target,):
        wanted = f"to be about the target, {target!r}, or without `output`"
        raise ValueError(complaint("goal", wanted, f"got {names[0]!r}"))
    return found
