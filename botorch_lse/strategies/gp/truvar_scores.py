r"""TruVaR's reductions for many rows of a pool, in blocks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from botorch_lse.functional.scores import straddle
from botorch_lse.functional.variance_reduction import (
    single_gain,
    truncated_reduction,
    truncated_sum,
)
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.posterior import row_blocks
from botorch_lse.strategies.goals import ExplicitGoal, Goal, ImplicitGoal
from botorch_lse.strategies.gp.truvar_epochs import Epochs, TruVaRBelief

Stays = Callable[[Tensor, Tensor], Tensor]
"""From means ``T`` and half widths ``C x T`` to bools ``C x T``: still in question."""

NOTHING = 1e-12
"""Reductions below this share of the summed variance are rounding: all is reached."""


def epoch_reductions(
    posterior: PoolPosterior,
    rows: Tensor,
    targets: Tensor,
    noise_var: Tensor,
    epochs: Epochs,
    stays: Stays | None = None,
) -> Tensor:
    r"""The numerator of Eq. (3) for each of ``C`` rows in the current epoch.

    Where no row has anything left to reduce (inside a batch, all widths may have
    reached ``eta``), the reduction of the plain variances.

    Args:
        posterior: On the pool; it expects the rows planned already.
        rows: ``C`` candidates.
        targets: ``T`` rows in question.
        noise_var: ``C`` noise variances of an observation at each candidate.
        epochs: The widths.
        stays: For "anticipating changes", what stays in question.
    """
    beta, eta = epochs.beta, epochs.eta
    given = (posterior, rows, targets, noise_var, beta)
    if stays is not None:
        return anticipated_reductions(*given, eta, stays)
    found = pool_reductions(*given, eta)
    everything = beta * float(posterior.variance[targets].sum())
    if eta > 0 and float(found.max()) <= NOTHING * everything:
        return pool_reductions(*given, 0.0)
    return found


def stays_in_question(threshold: float | None, epsilon: float) -> Stays:
    r"""Eq. (6) for a level, Eq. (5) for the maximiser (``None``)."""
    if threshold is None:
        return lambda mean, half: mean + half >= (mean - half).amax(-1, True)
    return lambda mean, half: (mean - threshold).abs() + epsilon <= half


def pool_reductions(
    posterior: PoolPosterior,
    rows: Tensor,
    targets: Tensor,
    noise_var: Tensor,
    beta: float,
    eta: float,
) -> Tensor:
    r"""The numerator of Eq. (3) for each of ``C`` rows.

    Args:
        posterior: On the pool.
        rows: ``C`` candidates.
        targets: ``T`` rows over which the sums run.
        noise_var: ``C`` noise variances of an observation at each candidate, at least
            ``posterior.least_noise``.
        beta: The squared width.
        eta: The width to reach, units of ``y``.

    Returns:
        ``C`` reductions, units of ``y`` squared.

    Source:
        Bogunovic et al. (2016), Eq. (3) and (18).
    """
    total = torch.zeros(len(rows), dtype=torch.float64)
    observed = posterior.variance[rows] + noise_var
    n = len(posterior.indices) + 1
    for columns in row_blocks(len(targets), n, posterior.memory_budget):
        part = targets[columns]
        variance = posterior.variance[part]
        for block in row_blocks(len(rows), len(part), posterior.memory_budget):
            covariance = posterior.covariance_between(rows[block], part)
            gain = single_gain(covariance, observed[block])
            total[block] += truncated_reduction(gain, variance, beta, eta)
    return total


def anticipated_reductions(
    posterior: PoolPosterior,
    rows: Tensor,
    targets: Tensor,
    noise_var: Tensor,
    beta: float,
    eta: float,
    stays: Stays,
) -> Tensor:
    r"""The same with the subtrahend over the targets that would stay in question.

    The observation to come is replaced by its mean, so that means stay and intervals
    shrink. Arguments and result: see ``pool_reductions``.

    Source:
        Bogunovic et al. (2016), Appendix A, "Anticipating changes in M_t"; minuend over
        ``M_{t-1}``, erratum 4 (papers/bogunovic2016/errata.md).
    """
    mean = posterior.mean[targets]
    variance = posterior.variance[targets]
    observed = posterior.variance[rows] + noise_var
    everything = torch.ones_like(variance, dtype=torch.bool)
    before = truncated_sum(variance, everything, beta, eta)
    parts = []
    for block in row_blocks(len(rows), len(targets), posterior.memory_budget):
        covariance = posterior.covariance_between(rows[block], targets)
        left = (variance - single_gain(covariance, observed[block])).clamp_min(0.0)
        counted = stays(mean, (beta * left).sqrt())
        parts.append(before - truncated_sum(left, counted, beta, eta))
    return torch.cat(parts)


def quick_scores(belief: TruVaRBelief, posterior: PoolPosterior, goal: Goal) -> Tensor:
    r"""``N`` scores that cost nothing, by which rows are chosen to be scored in full.

    Source:
        Bogunovic et al. (2016), Appendix A, for the maximiser; the others are ours.
    """
    mean, sigma, beta = posterior.mean, posterior.sigma, belief.epochs.beta
    if isinstance(goal, ExplicitGoal):
        return straddle(mean, sigma, goal.threshold, beta)
    return sigma if isinstance(goal, ImplicitGoal) else mean + beta**0.5 * sigma
