r"""Rare events: runs that extend their pool where the model sees the event.

An event of probability 1e-6 does not occur among the first rows. What was measured says
in which direction it lies: rows are drawn there, the run goes on among all rows, and so
step by step until the event itself is met and its probability known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.confidence.classify import ABOVE
from botorch_lse.data.distributions import Origin
from botorch_lse.goals.regions import Region
from botorch_lse.strategies.algorithm import BUDGET
from botorch_lse.strategies.criteria.content import ContentKnown
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from botorch_lse.strategies.loop import State, Strategy

CENTRES = 4
"""The largest number of design points around which rows are drawn.
A system may fail in several ways."""
APART = 2.0
"""The deviations between two design points that make them different ways to fail."""
WORTH = 2.0
"""The share of the largest density, ``exp(-WORTH^2)``, below which rows are left out.
They weigh too little to draw around them."""


def extended(state: State, n: int) -> State:
    r"""The run with about ``n`` more rows in its pool, where the event is.

    Rows are drawn around those that the model puts above the level and that are the
    likeliest under the distribution (design points, at most four). While no row is
    above, they are drawn around the row with the largest mean: the next level on the
    way there, as in subset simulation. What was measured is told to the new run as one
    round; the rows keep their numbers. Rows that were excluded stay so, and what was
    used up without a result stays charged to the budget.

    A confidence that a theorem claims does not survive this: it holds for rows that
    were chosen before the data. So such runs are refused. The sampling error in
    ``state.content()`` is that of weighted rows, with its coefficient of variation.

    Example:
        >>> from scipy.stats import norm
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import Above, GaussianProcess, Strategy
        >>> pool = Pool.from_distribution([norm(), norm()], 64)
        >>> model = GaussianProcess(RBFKernel().double(), noise_std=0.0)
        >>> strategy = Strategy(pool, Above(0.5), model=model, beta=4.0)
        >>> state = strategy.init()
        >>> batch = strategy.ask(state)
        >>> state = strategy.tell(state, batch.observe(pool.X[batch.order].sum(dim=-1)))
        >>> state = extended(state, 32)
        >>> state.n_used, len(state.strategy.pool)
        (1, 96)

    Args:
        state: Where the run stands, with a model.
        n: How many rows more; rounded down to the same number around each centre.

    Returns:
        The state of ``state.strategy`` on the larger pool, with the same seed and
        observations.

    Raises:
        UnsupportedError: If the strategy has no stated level and no model, or claims a
            confidence by a theorem.
        ValueError: If ``n`` is less than 4, or the pool does not know how its rows were
            drawn.

    Source:
        Echard et al. (2013), AK-IS; Huang et al. (2016), AK-SS. Deviation: theirs is
        one density around one point, or a chain of conditional samples; ours draws
        independent rows around several points and weighs all rows of all steps.
    """
    n = whole_number(n, "n", CENTRES)
    strategy, pool = state.strategy, state.strategy.pool
    sign, origin = _direction(strategy)
    answer = state.classification
    u = torch.from_numpy(origin.distribution.normal_numbers(pool.X))
    at = design_points(u, answer.best_guess, sign * answer.mean)
    more = pool.extended(n // len(at) * len(at), at, seed=state.seed)
    grown = replace(strategy, pool=more)
    start = grown.init(state.seed)
    if len(state.excluded_rows):
        start = grown.exclude(start, state.excluded_rows)
    if state.abandoned and not start.is_done:
        lost = torch.tensor(sorted(row for _, row in state.abandoned))
        # A round of its own, which had just these rows: a replay finds it so.
        start = replace(start, stored_plan=lost)
        start = grown.tell(start, None, abandoned=lost)
    known = state.observations
    if len(known) == 0:
        return start
    return grown.tell(
        start, replace(known, round=torch.full_like(known.indices, start.round))
    )


def _direction(strategy: Strategy) -> tuple[int, Origin]:
    r"""The sign of the event (1: larger values, -1: smaller), and the pool's origin.

    Raises:
        UnsupportedError: If the strategy has no stated level and no model, or claims a
            confidence by a theorem.
        ValueError: If the pool does not know how its rows were drawn.
    """
    parts: Any = getattr(strategy, "parts", None)
    goal: Any = parts.goal if isinstance(parts, GaussianAlgorithm) else None
    is_level = isinstance(goal, Region) and goal.values.is_alike_in_all_rows
    if not (is_level and goal.facts.n_outputs == goal.facts.n_comparisons == 1):
        raise UnsupportedError(
            "Expected a strategy on a Gaussian process with a stated level, such as "
            "`Strategy(pool, Above(0.0))` or `Below(0.0)`, but got another one."
        )
    if parts.model.is_fixed and parts.beta is None:
        raise UnsupportedError(
            "Expected a run that claims no confidence, but this one does by a theorem "
            "for rows that were chosen before the data. Write `beta=9.0`."
        )
    if strategy.pool.origin is None:
        raise ValueError(
            "Expected a pool that knows how its rows were drawn, but this one does "
            "not. Make it by `Pool.from_distribution`, without `sampling`."
        )
    below, above = goal.values.cells.classes.flatten().tolist()
    return (1 if above > below else -1), strategy.pool.origin


def rare_event(
    strategy: Strategy,
    measure: Callable[[Tensor], Any],
    *,
    n: int | None = None,
    variation: float = 0.1,
    most: int = 20,
    seed: int = 0,
) -> State:
    r"""A run until a rare event is met and its probability is known.

    The run goes on among the rows of the pool until their share is known, then with
    more rows where the event is (``extended``), and so on. It ends once a value of the
    event was measured and the coefficient of variation of the sample is small enough,
    after the last extension, or with the budget. As long as no value of the event was
    measured nothing is known of its probability, however sure a model is. So a learnt
    model may decide while all values lie on one side, as otherwise all measurements go
    into the first pool; that the event was met is looked at here.

    Example:
        >>> from scipy.stats import norm
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_lse import Pool
        >>> from botorch_lse.strategies import Above, GaussianProcess, Strategy
        >>> pool = Pool.from_distribution([norm(), norm()], 64)
        >>> kernel = RBFKernel().double()
        >>> kernel.lengthscale = 3.0
        >>> model = GaussianProcess(kernel, noise_std=0.0)
        >>> strategy = Strategy(pool, Above(0.9), model=model, beta=4.0)
        >>> state = rare_event(strategy, lambda X: (X.sum(dim=-1) / 4).tanh(), n=256)
        >>> state.content().variation <= 0.1
        True

    Args:
        strategy: On a pool from ``Pool.from_distribution``, with a level. Without
            ``content_tol`` it gets ``ContentKnown(0.05, until_sampled=True)``.
        measure: From ``q x d`` points to their ``q`` values.
        n: Rows of each extension; default as many as the pool has.
        variation: The coefficient of variation that is small enough.
        most: The largest number of extensions.
        seed: Of the run.

    Returns:
        The last state: ``state.content()`` has the probability and its intervals,
        ``state.content().variation`` says whether it is known.

    Raises:
        UnsupportedError: As ``extended`` says.
        ValueError: As ``extended`` says, or if a number is out of range.
    """
    in_interval(variation, "variation", 0.0, math.inf)
    whole_number(most, "most", 0)
    _direction(strategy)  # it complains
    strategy = _watching(strategy)
    state = strategy.init(seed)
    for step in range(most + 1):
        while not state.is_done:
            batch = state.strategy.ask(state)
            y = measure(batch.pool.X[batch.order].to(batch.pool.device))
            state = state.strategy.tell(state, batch.observe(y))
        is_known = _is_met(state) and state.content().variation <= variation
        if is_known or state.stop_reason == BUDGET or step == most:
            break
        state = extended(state, len(strategy.pool) if n is None else n)
    return state


def _watching(strategy: Any) -> Any:
    if strategy.content_tol is None:
        known = ContentKnown(0.05, until_sampled=True)
        strategy = replace(strategy, content_tol=known)
    if hasattr(strategy, "needs_both_sides"):
        return replace(strategy, needs_both_sides=False)
    model = replace(strategy.model, needs_both_sides=False)
    return replace(strategy, model=model)


def _is_met(state: State) -> bool:
    goal, data = state.strategy.parts.goal, state.observations  # type: ignore[attr-defined]
    sides = goal.values.at(data.indices).sides_between([data.y], [data.y])
    return bool((sides == ABOVE).any())


def design_points(u: Tensor, above: Tensor, mean: Tensor) -> Tensor:
    r"""The rows to draw around: the likeliest ones above, apart from each other.

    Args:
        u: ``N x d`` independent standard normal numbers of the rows.
        above: ``N`` bools: the rows said to be above.
        mean: ``N`` posterior means.
    """
    rows = above.nonzero().view(-1)
    if len(rows) == 0:
        return mean.argmax().unsqueeze(0)
    square = u[rows].square().sum(dim=-1)
    rows = rows[square <= square.min() + 2 * WORTH**2]
    rows = rows[u[rows].square().sum(dim=-1).argsort(stable=True)]
    found: list[int] = []
    while len(rows) and len(found) < CENTRES:
        first = rows[0]
        found.append(int(first))
        rows = rows[(u[rows] - u[first]).norm(dim=-1) > APART]
    return torch.tensor(found)
