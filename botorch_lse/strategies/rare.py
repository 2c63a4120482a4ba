r"""Rare events: go on with a pool that has more rows where the model sees the event.

An event of probability 1e-6 does not occur among the first rows. What was measured says
in which direction it lies: rows are drawn there, the run goes on among all rows, and so
step by step until the event itself is met and its probability known.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse.checks import whole_number
from botorch_lse.strategies.gaussian import GPProcedure
from botorch_lse.strategies.loop import State

CENTRES = 4
"""Design points around which rows are drawn at most: a system may fail in several
ways."""
APART = 2.0
"""Deviations between two of them, so that they are different ways."""
WORTH = 2.0
"""Rows whose density is smaller than that of the likeliest by more than a factor of
``exp(WORTH^2)`` weigh too little to draw around them."""


def extended(state: State, n: int) -> State:
    r"""The run with about ``n`` more rows in its pool, where the event is.

    Rows are drawn around those that the model puts above the level and that are the
    likeliest under the distribution (design points, at most four). While no row is
    above, they are drawn around the row with the largest mean: the next level on the
    way there, as in subset simulation. What was measured is told to the new run as one
    round; the rows keep their numbers.

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
        >>> state = strategy.tell(state, batch.observe(batch.X.sum(dim=-1)))
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
    strategy = state.strategy
    parts = getattr(strategy, "parts", None)
    if not isinstance(parts, GPProcedure) or parts.goal.stated_level is None:
        raise UnsupportedError(
            "Expected a strategy on a Gaussian process with a stated level, such as "
            "`Strategy(pool, Above(0.0))`, but got another one."
        )
    if parts.model.is_fixed and parts.beta is None:
        raise UnsupportedError(
            "Expected a run that claims no confidence, but this one does by a theorem "
            "for rows that were chosen before the data. Write `beta=9.0`."
        )
    pool, origin = strategy.pool, strategy.pool.origin
    if origin is None:
        raise ValueError(
            "Expected a pool that knows how its rows were drawn, but this one does "
            "not. Make it by `Pool.from_distribution`, without `sampling`."
        )
    answer = state.classification
    u = torch.from_numpy(origin.normal_numbers(pool.X))
    at = design_points(u, answer.best_guess, answer.mean)
    more = pool.extended(n // len(at) * len(at), at, seed=state.seed)
    grown = replace(strategy, pool=more)
    start = grown.init(state.seed)
    known = state.observations
    if len(known) == 0:
        return start
    return grown.tell(start, replace(known, round=torch.zeros_like(known.indices)))


def design_points(u: Tensor, above: Tensor, mean: Tensor) -> Tensor:
    r"""Rows around which to draw: the likeliest ones above, apart from each other.

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
