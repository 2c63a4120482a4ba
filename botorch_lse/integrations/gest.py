r"""A generator for engines that speak gest-api: libEnsemble, Optimas, Xopt, blop.

Needs ``pip install 'botorch-lse[gest]'``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_
from typing import Any

import numpy as np
import pandas as pd
import torch
from gest_api import Generator  # type: ignore[import-untyped]
from gest_api import vocs as kinds  # type: ignore[import-untyped]
from torch.quasirandom import SobolEngine

from botorch_lse._validation import complaint, whole_number
from botorch_lse.data.observations import History, Observations
from botorch_lse.data.pool import Pool
from botorch_lse.goals.layouts import layout_of
from botorch_lse.models.outcomes import of_failure
from botorch_lse.strategies import Above, Below, Between, Region, State, Strategy
from botorch_lse.strategies.algorithm import MAX_FAILURES
from botorch_lse.strategies.loop import Unasked

__all__ = ["LevelSetGenerator", "region_of"]


class LevelSetGenerator(Generator):  # type: ignore[misc]  # gest-api has no types
    r"""A generator of points that tell where all constraints of a VOCS hold.

    The points are rows of a pool: ``n`` Sobol points of the variables' box, or rows of
    your own. Results may come in any order and number, together or one by one; what is
    known is a function of them, so that ``ingest`` of all earlier results resumes a run
    (points without an ``_id`` of this generator count where they are rows of the pool).
    How results of an earlier generator had come nobody knows: each counts as a look at
    the intervals, which are then at least as wide as those of the run.

    Example:
        >>> from gest_api.vocs import VOCS
        >>> vocs = VOCS(
        ...     variables={"x": [0.0, 1.0], "y": [0.0, 5.0]},
        ...     objectives={"cost": "EXPLORE"},
        ...     constraints={"strength": ["GREATER_THAN", 0.4]},
        ... )
        >>> generator = LevelSetGenerator(vocs, n=64)
        >>> [sorted(point) for point in generator.suggest(2)]
        [['_id', 'x', 'y'], ['_id', 'x', 'y']]

    Args:
        vocs: Variables, constraints (the region) and constants.
        goal: What is to be decided, whose outputs are named; default the region in
            which all constraints hold. Where the pool has sources it need name none:
            values of any source then come under the name of the target.
        pool: The points that may be suggested, with the variables' names; default
            ``n`` Sobol points.
        n: How many points the default pool has.
        seed: Of the default pool and the strategy.
        **options: For ``Strategy``: ``model``, ``rule``, ``delta``,
            ``max_observations`` and so on.

    Raises:
        ValueError: If there is nothing to decide, a variable is contextual, or the pool
            has other columns than there are variables.
    """

    returns_id = True

    def __init__(
        self,
        vocs: kinds.VOCS,
        goal: Region | None = None,
        *,
        pool: Pool | None = None,
        n: int = 1024,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(vocs)
        self.vocs = vocs
        pool = _points_of(vocs, whole_number(n, "n", 1), seed) if pool is None else pool
        self.table = pool.to_frame()
        if missing := [name for name in vocs.variables if name not in self.table]:
            wanted = "to have a column for each variable"
            raise ValueError(complaint("pool", wanted, f"it lacks {missing}"))
        goal = region_of(vocs) if goal is None else goal
        if not goal.outputs and pool.target is None:
            wanted, remedy = "to name its outputs", 'Write `Above(1, output="y")`.'
            raise ValueError(complaint("goal", wanted, f"got {goal}", remedy))
        self.strategy = Strategy(pool, goal, **options)
        names = goal.outputs or (pool.sources[pool.target or 0],)
        self._named = partial(layout_of(pool, goal).of_row, each=names)
        self.state: State = self.strategy.init(seed)
        self._others: Unasked | None = None
        self._out: dict[int, int] = {}
        self._failures: dict[int, int] = {}
        self._next = 0

    def _validate_vocs(self, vocs: kinds.VOCS) -> None:
        for name, variable in vocs.variables.items():
            if isinstance(variable, kinds.ContextualVariable):
                wanted = f"without contextual variables such as {name!r}"
                raise ValueError(f"Expected `vocs` {wanted}: a pool has fixed points.")
            if not isinstance(
                variable, kinds.ContinuousVariable | kinds.DiscreteVariable
            ):
                came = f"{name!r} is a {type(variable).__name__}"
                wanted = "to have continuous and discrete variables"
                raise ValueError(complaint("vocs", wanted, came))

    @property
    def stop_reason(self) -> str | None:
        r"""The reason to suggest nothing more; ``None`` while there is something."""
        return self.state.stop_reason

    def should_stop(self) -> tuple[bool, str | None]:
        r"""Whether the run has ended, and why; blop's endless loops ask it."""
        return self.state.is_done, self.state.stop_reason

    def to_frame(self) -> pd.DataFrame:
        r"""The answer: each point with its side and the intervals of the outputs."""
        return self.state.classification.to_frame()

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        r"""The next points to evaluate, planned in the knowledge of those that are out.

        Args:
            num_points: How many, at most 2,048 in one call, as each is planned beside
                the others; default one, or none once all is decided.

        Raises:
            ValueError: If fewer points than that are left.
        """
        out = list(self._out.values())
        room = self.strategy.room(self.state, out)
        default = num_points is None
        size = min(1, room) if default else whole_number(num_points, "num_points", 0)
        if size > room:
            why = self.stop_reason or f"{room:,} at most while {len(out)} are out"
            wanted, came = "to be what can be suggested", f"got {size}: {why}"
            remedy = f"Write `suggest({room})`." if room else ""
            raise ValueError(complaint("num_points", wanted, came, remedy))
        batch = self.strategy.ask(self.state, pending=out, size=size) if size else None
        return [self._suggested(row) for row in batch.order.tolist()] if batch else []

    def _suggested(self, row: int) -> dict[str, Any]:
        # As records the entries are Python's own numbers and words.
        (point,) = self.table[[*self.vocs.variables]].iloc[[row]].to_dict("records")
        fixed = {name: own.value for name, own in self.vocs.constants.items()}
        self._next += 1
        self._out[self._next] = row
        return {**point, **fixed, "_id": self._next}

    def ingest(self, results: list[dict[str, Any]]) -> None:
        r"""Learn from evaluated points; those with a result that is no number failed.

        Args:
            results: Points with the outputs of the goal. A point without ``_id``, or
                with one that is yet to be given (of an earlier run), is a row of the
                pool, or else old data, from which the model learns.

        Raises:
            ValueError: If an ``_id`` was told before, or twice, or belongs to another
                point, a point is no row of the pool where the strategy takes no old
                data, or an output is missing; nothing is learnt then.
        """
        ids = [_id_of(result) for result in results]
        for number, times in Counter(filter(None, ids)).items():
            if times > 1:
                came = f"got {number} {times} times"
                raise ValueError(complaint("_id", "to be told once", came, "Drop it."))
        rows = [self._row_of(result) for result in results]
        pairs = zip(rows, results, strict=True)
        values = [[_number(r, o) for o in self._named(row) or ()] for row, r in pairs]
        for i, row in enumerate(rows):
            failure = of_failure(self.strategy.outcomes_of(row))
            if failure is not None and not all(map(math.isfinite, values[i])):
                values[i] = [*failure]
        is_known = [all(map(math.isfinite, own)) for own in values]
        off = [i for i, row in enumerate(rows) if row is None and is_known[i]]
        state = self._with_old([results[i] for i in off], [values[i] for i in off])
        told = [i for i, row in enumerate(rows) if row is not None and is_known[i]]
        ours = [i for i in told if ids[i] in self._out]
        others = [i for i in told if ids[i] not in self._out]
        for group in [] if state.is_done else filter(None, (ours, others)):
            y = torch.tensor([values[i] for i in group], dtype=torch.float64)
            new = Observations(torch.tensor([rows[i] for i in group]), y.squeeze(-1))
            if group is others:
                self._others = Unasked.after(state, new, self._others)
                state = self._others.state
            else:
                new = new.at_round(state.round) if state.plan is None else new
                state = state.strategy.tell(state, new)
        for row, known in zip(rows, is_known, strict=True):
            if row is None or known:
                continue
            self._failures[row] = self._failures.get(row, 0) + 1
            if self._failures[row] == MAX_FAILURES and not state.is_done:
                state = state.strategy.exclude(state, [row])
        for number in ids:
            self._out.pop(number, None)
            self._next = max(self._next, number)  # of an earlier run: not given again
        self.strategy, self.state = state.strategy, state

    def _with_old(
        self, points: list[dict[str, Any]], values: list[list[float]]
    ) -> State:
        r"""The state that also knows points that are no rows of the pool."""
        if not points:
            return self.state
        y = torch.tensor(values, dtype=torch.float64).squeeze(-1)
        strategy = self.strategy.with_history(History(points, y))

        def again(of: State) -> State:
            return strategy.replay(of.observations, of.seed, excluded=of.excluded)

        now, others = again(self.state), self._others
        if others is not None and others.state is self.state:
            self._others = replace(others, state=now, start=again(others.start))
        return now

    def _row_of(self, result: Mapping[str, Any]) -> int | None:
        r"""The row of a point; ``None`` for old data that is at no row."""
        number = _id_of(result)
        if (row := self._out.get(number)) is not None:
            is_whole = {*self.table} <= {*result}
            there = self.strategy.pool.row_of(result) if is_whole else None
            lines = self.table.iloc
            if there is not None and not lines[there].equals(lines[row]):
                wanted, came = "to be that of its point", f"{number} is another one's"
                raise ValueError(complaint("_id", wanted, came, "Leave it out."))
            return row
        if 0 < number <= self._next:
            wanted = "to be one that was suggested and is out"
            raise ValueError(complaint("_id", wanted, f"got {number}"))
        row = self.strategy.pool.row_of(result)
        if row is None and not self.strategy.takes_history:
            point = {name: result[name] for name in self.vocs.variables}
            wanted, remedy = "to be rows of the pool", "Give it a `pool` with them."
            raise ValueError(complaint("results", wanted, f"got {point}", remedy))
        return row


def region_of(vocs: kinds.VOCS) -> Region:
    r"""The region in which all constraints of a VOCS hold.

    Raises:
        ValueError: If there is no constraint, or one is of an unknown kind.
    """
    parts: list[Region] = []
    for name, constraint in vocs.constraints.items():
        if isinstance(constraint, kinds.GreaterThanConstraint):
            parts.append(Above(constraint.value, output=name))
        elif isinstance(constraint, kinds.LessThanConstraint):
            parts.append(Below(constraint.value, output=name))
        elif isinstance(constraint, kinds.BoundsConstraint):
            low, high = constraint.range
            parts.append(Between(low, high, output=name))
        else:
            came = f"{name!r} is a {type(constraint).__name__}"
            raise ValueError(complaint("vocs", "to have known constraints", came))
    if not parts:
        wanted, remedy = "with constraints, the region", "Or give a `goal`."
        raise ValueError(f"Expected `vocs` {wanted}, but it has none. {remedy}")
    return reduce(and_, parts)


def _points_of(vocs: kinds.VOCS, n: int, seed: int) -> Pool:
    r"""The Sobol points of the variables; discrete ones take their values in turn."""
    unit = SobolEngine(len(vocs.variables), scramble=True, seed=seed)
    u = unit.draw(n, dtype=torch.float64).numpy()
    columns: dict[str, Sequence[Any]] = {}
    for share, (name, variable) in zip(u.T, vocs.variables.items(), strict=True):
        if isinstance(variable, kinds.DiscreteVariable):
            values = sorted(variable.values, key=lambda v: (str(type(v)), v))
            places = np.minimum((share * len(values)).astype(int), len(values) - 1)
            columns[name] = [values[place] for place in places]
        else:
            low, high = variable.domain
            columns[name] = low + share * (high - low)
    return Pool(pd.DataFrame(columns))


def _id_of(result: Mapping[str, Any]) -> int:
    r"""The number of a suggested point; 0 where it has none (nan in a table)."""
    number = result.get("_id")
    return 0 if number is None or number != number else int(number)


def _number(result: Mapping[str, Any], output: str) -> float:
    wanted = f"to have a number as {output!r}, nan or None where it failed"
    try:
        return math.nan if result[output] is None else float(result[output])
    except (KeyError, TypeError, ValueError):
        raise ValueError(complaint("results", wanted, f"got {dict(result)}")) from None
