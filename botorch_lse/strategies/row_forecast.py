r"""Forecasts for the rows of a pool: what its undecided rows still need."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_lse.data.requests import round_generator
from botorch_lse.functional.scores import best_ones
from botorch_lse.goals.gaps import squared_gaps
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.planning import PosteriorProblem, Relaxation
from botorch_lse.rules.base import Belief
from botorch_lse.strategies.forecast import (
    LARGEST_BATCH,
    ROUGH,
    Forecast,
    most_worth_saying,
    observations_needed,
)

MOST_STEPS = 300
"""The longest forecast that is made measurement by measurement."""
FORECAST_ROWS = 1024
"""The number of rows in question that count in the forecast of a larger pool.
Those that need the most measurements, a second of work at most. These and as many
others, drawn at random, are measured."""
DESIGNED_ROWS = 100
"""The largest pool in which forecasts for several outputs or levels use designs.
Designs come nearer to what a run takes: within a factor of two."""
LARGEST = 2 * FORECAST_ROWS
"""The largest pool of which all rows count in a forecast."""


def rows_forecast(
    belief: Belief,
    distances: Tensor,
    beta: float,
    epsilon: float,
    size: int,
) -> Forecast:
    r"""The number of further observations that decide the undecided rows.

    First a plan is made, one measurement after the other, each of the row whose
    interval is the widest relative to its gap. Where the plan grows too long, the size
    comes from the optimal design, on features of the posterior covariance.

    Args:
        belief: Where the run stands.
        distances: ``N`` distances of the means from what would decide the rows,
            infinite where no more need be known.
        beta: The squared width of the next interval.
        epsilon: The accuracy.
        size: Observations of a batch.
    """
    posterior = belief.posterior
    noise = belief.fits.new_noise.expand(len(posterior.mean))
    most = most_worth_saying(len(noise))
    rows = distances.isfinite().nonzero().view(-1)
    gaps = squared_gaps(distances[rows], posterior.variance[rows], epsilon)
    words = ""
    if len(noise) > LARGEST:
        n = min(FORECAST_ROWS, len(rows))
        kept = best_ones(posterior.variance[rows] / gaps, n)
        if n < len(rows):
            words = f" Of the {len(rows)} rows in question the {n} widest count."
        rows, gaps = rows[kept], gaps[kept]
        used = torch.cat((rows, some_rows(len(noise), rows, FORECAST_ROWS)))
        posterior, noise = posterior.at_rows(used), noise[used]
        rows = torch.arange(n)
    planned = planned_observations(posterior, rows, gaps / beta, noise, MOST_STEPS)
    if planned is not None:
        return Forecast(
            planned,
            "By a plan that narrows the widest interval each time until all are as "
            "narrow as the gaps of the current estimate ask for; a rule that measures "
            f"other rows may need more.{words}",
        )
    problem = PosteriorProblem(posterior, noise, rows, 1 / gaps)
    relaxation = Relaxation.of(problem, min(size, LARGEST_BATCH), ROUGH)
    assert relaxation is not None  # else the plan would have decided all
    needed = observations_needed(relaxation, beta, most)
    # Its features leave out a row that is known far better than others, though its gap
    # may ask for more: it takes about what measurements of this row alone would.
    alone = noise.min() * (beta / gaps - 1 / posterior.variance[rows]).max()
    if needed is not None and alone > needed:
        needed = None if alone > most else math.ceil(alone)
    return Forecast(
        None if needed is None else max(needed, MOST_STEPS),
        "By the optimal design for the gaps of the current estimate and the width of "
        f"the next round; a rule that does not plan by designs may need more.{words}",
        most if needed is None else None,
    )


def some_rows(n_rows: int, without: Tensor, size: int) -> Tensor:
    r"""A random choice of a pool's rows, the same at every call.

    Args:
        n_rows: The rows of the pool.
        without: Rows that are not drawn.
        size: How many.
    """
    generator = round_generator(0, 0)
    drawn = torch.randperm(n_rows, generator=generator, device=generator.device)
    drawn = drawn.to(without.device)
    return drawn[~torch.isin(drawn, without)][:size]


def planned_observations(
    posterior: PoolPosterior,
    rows: Tensor,
    wanted: Tensor,
    noise_var: Tensor,
    most: int,
) -> int | None:
    r"""The number of measurements until every variance is at most the wanted one.

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
    noise = noise_var.expand(len(posterior.mean))[rows]
    noise = torch.maximum(noise, posterior.least_noise)
    covariance = posterior.covariance_between(rows, rows)
    left, path = posterior.variance[rows], covariance.new_empty(most, len(rows))
    for n in range(most + 1):
        ratio = left / wanted
        worst = int(ratio.argmax())
        if float(ratio[worst]) <= 1.0:
            return max(n, 1)
        if n < most:
            row = covariance[worst] - path[:n, worst] @ path[:n]
            path[n] = row / (row[worst].clamp_min(0.0) + noise[worst]).sqrt()
            left = (left - path[n].square()).clamp_min(0.0)
    return None
