r"""The forecast of a strategy that does not plan by designs itself."""

from __future__ import annotations

from torch import Tensor

from botorch_lse.confidence.classify import UNDECIDED
from botorch_lse.planning import PosteriorProblem, Relaxation
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.forecast import (
    ROUGH,
    Forecast,
    observations_needed,
    squared_gaps,
)
from botorch_lse.strategies.gp.belief import Belief

MOST_STEPS = 300
"""The longest plan that is made measurement by measurement."""
WORK = 2e10
"""Multiplications that such a plan may take; fewer steps on a large pool."""


def rows_forecast(
    belief: Belief,
    distances: Tensor,
    noise_var: Tensor,
    beta: float,
    epsilon: float,
    size: int,
) -> Forecast:
    r"""How many more observations decide the rows that are undecided.

    A short plan is made one measurement after the other, each of the row whose interval
    is the widest for its gap. Where it grows too long, the optimal design says how many
    are needed, on features that stand for the posterior covariance.

    Args:
        belief: Where the run stands.
        distances: ``N`` distances of the means from what would decide the rows.
        noise_var: ``N`` noise variances of new observations, or one for all.
        beta: The squared width of the next interval.
        epsilon: The accuracy.
        size: Observations of a batch.
    """
    rows = (belief.sides.side == UNDECIDED).nonzero().view(-1)
    posterior = belief.posterior
    variance = posterior.variance[rows]
    gaps = squared_gaps(distances[rows], variance, epsilon)
    work = len(posterior.mean) * (len(posterior.indices) + MOST_STEPS)
    steps = min(MOST_STEPS, max(1, int(WORK / work)))
    planned = planned_observations(posterior, rows, gaps / beta, noise_var, steps)
    if planned is not None:
        return Forecast(
            planned,
            "By a plan that narrows the widest interval each time until all are as "
            "narrow as the gaps of the current estimate ask for.",
        )
    N = belief.new_noise.numel()
    problem = PosteriorProblem(posterior, noise_var.expand(N), rows, 1 / gaps)
    relaxation = Relaxation.of(problem, size, ROUGH)
    assert relaxation is not None  # else the plan would have decided all
    needed = observations_needed(relaxation, beta)
    return Forecast(
        None if needed is None else max(needed, steps),
        "By the optimal design for the gaps of the current estimate and the width of "
        "the next round; a rule that does not plan by designs may need more.",
    )


def planned_observations(
    posterior: PoolPosterior,
    rows: Tensor,
    wanted: Tensor,
    noise_var: Tensor,
    most: int,
) -> int | None:
    r"""Measurements until every variance is at most the wanted one.

    Args:
        posterior: Where the run stands.
        rows: ``T`` rows.
        wanted: Their ``T`` variances.
        noise_var: ``N`` noise variances of new observations, or one for all.
        most: The longest plan that is tried.

    Returns:
        The length of a plan that measures, each time, the row whose variance is the
        largest multiple of the wanted one; ``None`` above ``most``.
    """
    noise = noise_var.expand(len(posterior.mean))
    for n in range(most + 1):
        ratio = posterior.variance[rows] / wanted
        worst = int(rows[ratio.argmax()])
        if float(ratio.max()) <= 1.0:
            return max(n, 1)
        posterior = posterior.expect(worst, float(noise[worst]))
    return None
