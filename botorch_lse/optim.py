r"""Batches from an acquisition function and a pool, by an optimal design."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_lse._validation import (
    one_of,
    real_matrix,
    same_columns,
    truth_value,
    whole_number,
)
from botorch_lse.acquisition.covariance import PosteriorCovariance, PreparedPoints
from botorch_lse.acquisition.targets import qGEGE, qNegMaxPosteriorVariance
from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import MEMORY_BUDGET, row_blocks
from botorch_lse.planning import PosteriorProblem, designed_batch

__all__ = ["PointsPosterior", "optimize_acqf_design", "problem_of"]

METHODS = ("quota", "sample")
"""The ways in which the weights of the relaxed design become counts."""


def optimize_acqf_design(
    acq_function: AcquisitionFunction,
    choices: Pool | Tensor,
    q: int,
    *,
    max_repeats: int | None = None,
    tol: float = 1e-2,
    method: str = "quota",
    exchange: bool = True,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The best batch of rows of a pool, from the relaxed optimal design.

    Sibling of ``optimize_acqf_discrete`` for the worst remaining posterior variance. It
    solves the relaxation (weights on the rows instead of counts) to a certified gap on
    the posterior covariance, rounds it, and improves both this batch and the greedy one
    by pair exchange. The better is returned, so it is never worse than greedy. A row
    may come several times where that is better. Points in ``acq_function.X_pending``
    count as observed. For several outputs the relaxation is the best mixture of the
    outputs' own optimal designs.

    Example:
        >>> from botorch_lse.acquisition import qMELK
        >>> acqf = qMELK(model, targets=pool_X[:5])  # the undecided rows
        >>> X, value = optimize_acqf_design(acqf, pool_X, q=3)
        >>> X.shape
        torch.Size([3, 2])

    Args:
        acq_function: ``qNegMaxPosteriorVariance``, ``qMELK``, ``qHRAGE``, ``qGEGE`` or
            ``qMILK``.
        choices: ``N x d`` rows, or a ``Pool``.
        q: The size of the batch.
        max_repeats: How often a row may be in the batch; default no limit, but once
            where the measurement is exact.
        tol: The relative gap of the relaxed design. A smaller one hardly changes the
            batch.
        method: How to round: ``"quota"``, or ``"sample"``: independent draws.
        exchange: Whether to improve the batches by pair exchange.
        generator: The source of randomness of ``"sample"``.

    Returns:
        The batch, ``q x d``, rows in the order of ``choices``, and its acquisition
        value, a scalar.

    Raises:
        UnsupportedError: If the acquisition function is another, or its model is an
            ensemble.
        ValueError: If ``q`` is not positive, or ``max_repeats`` rows do not fill it.
        BotorchTensorDimensionError: If ``choices`` have other columns than the targets.

    Source:
        Mason et al. (2022), Algorithm 1 and appendix F.1: the design with ``gamma = 1 /
        q`` and columns ``phi / sigma``, where ``phi`` are features of the posterior
        covariance. Rounding and exchange instead of draws are own.
    """
    parts = _criteria_of(acq_function)
    X = choices.X if isinstance(choices, Pool) else real_matrix(choices, "choices")
    targets = parts[0].targets
    same_columns(X, "choices", targets.shape[-1], "the acquisition function's targets")
    X = X.to(targets)
    q, exchange = whole_number(q, "q", 1), truth_value(exchange, "exchange")
    allowed = _allowed(max_repeats, q, X)
    one_of(method, "method", METHODS)
    with torch.no_grad():
        problems = [problem_of(part, X) for part in parts]
        counts = designed_batch(
            problems,
            q,
            _once_if_exact(allowed, parts, problems, q),
            rounding="exchange" if exchange else method,
            method=method,
            tol=tol,
            from_nothing=True,
            generator=generator,
        )
        batch = X.repeat_interleave(counts, dim=0)
        return batch, acq_function(batch).squeeze(0)


@dataclass(frozen=True, eq=False)
class PointsPosterior:
    r"""The posterior of an acquisition function on numbered points.

    Args:
        covariance: Of the posterior given data and pending points.
        points: ``P`` points: the ``N`` rows of the pool, then targets outside it.
    """

    covariance: PosteriorCovariance
    points: PreparedPoints
    memory_budget = MEMORY_BUDGET

    @cached_property
    def variance(self) -> Tensor:
        r"""The variances before the batch (``P``)."""
        width = self.points.F.shape[-1] + self.points.V.shape[-1]
        blocks = row_blocks(self.points.F.shape[-2], width)
        parts = [self.covariance.variance(self.points.rows(b)) for b in blocks]
        return torch.cat(parts)

    @property
    def scale(self) -> float:
        r"""The largest standard deviation: the prior's is not accessible."""
        return float(self.variance.max()) ** 0.5

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances before the batch between points, given by their numbers."""
        left, right = self.points.rows(rows), self.points.rows(columns)
        return self.covariance.between(left, right)


def problem_of(
    acq_function: qNegMaxPosteriorVariance, choices: Tensor
) -> PosteriorProblem:
    r"""The planning problem of an acquisition function on ``N x d`` choices."""
    N, covariance = len(choices), acq_function.covariance
    both = torch.cat((choices, acq_function.targets))
    unique, where = both.unique(dim=0, return_inverse=True)
    # Number targets by the first equal row of the pool; others come after the pool.
    first = torch.full((len(unique),), N, device=where.device)
    rows = torch.arange(N, device=where.device)
    first.scatter_reduce_(0, where[:N], rows, "amin")
    targets = first[where[N:]]  # N means: not among the choices
    outside = targets == N
    if covariance.is_of_averages:  # no row measures what a target means
        outside = torch.ones_like(outside)
    targets[outside] = N + torch.arange(int(outside.sum()), device=where.device)
    rows_and_others = (
        covariance.measured(choices),
        covariance.prepare(acq_function.targets[outside]),
    )
    points = PreparedPoints(
        torch.cat([part.F for part in rows_and_others], dim=-2),
        torch.cat([part.V for part in rows_and_others], dim=-2),
    )
    weights = acq_function.factors
    if weights is not None and acq_function.is_of_pairs:
        weights = weights.unsqueeze(-1).repeat(1, len(targets))
    return PosteriorProblem(
        PointsPosterior(covariance, points),
        acq_function.future_noise(choices),
        targets,
        weights,
        acq_function.pairs_factor,
    )


def _criteria_of(acq_function: AcquisitionFunction) -> list[qNegMaxPosteriorVariance]:
    r"""The worst-variance criterion of each output of an acquisition function.

    Raises:
        UnsupportedError: If it is another kind of function, or on an ensemble.
    """
    if isinstance(acq_function, qGEGE):
        parts = acq_function.parts
    elif isinstance(acq_function, qNegMaxPosteriorVariance):
        parts = [acq_function]
    else:
        raise UnsupportedError(
            "Expected `acq_function` to be a worst posterior variance "
            "(qNegMaxPosteriorVariance, qMELK, qHRAGE, qGEGE or qMILK), but "
            f"got {type(acq_function).__name__}. Use `optimize_acqf_discrete`."
        )
    members = parts[0].covariance.members
    if members:
        raise UnsupportedError(
            "Expected `acq_function` on one model, but its model is an ensemble of "
            f"{members.numel()}, whose average is no design problem. Use "
            "`optimize_acqf_discrete`."
        )
    return parts


def _once_if_exact(
    allowed: Tensor,
    parts: list[qNegMaxPosteriorVariance],
    problems: list[PosteriorProblem],
    q: int,
) -> Tensor:
    r"""Allow rows that are measured exactly at most once, if that leaves ``q`` rows.

    A second exact measurement of a row would tell nothing new.
    """
    exact = torch.ones_like(allowed, dtype=torch.bool)
    for part, problem in zip(parts, problems, strict=True):
        exact &= problem.noise_var <= part.least_noise
    once = torch.where(exact, allowed.clamp_max(1), allowed)
    return once if int(once.sum()) >= q else allowed


def _allowed(max_repeats: int | None, q: int, X: Tensor) -> Tensor:
    r"""The limits of each of ``N`` rows in the batch, from ``max_repeats``."""
    most = q if max_repeats is None else whole_number(max_repeats, "max_repeats", 1)
    if most * len(X) < q:
        raise ValueError(
            f"Expected `q` of at most `max_repeats` times the rows of `choices`, "
            f"{most} * {len(X)}, but got {q}. Allow more repeats."
        )
    return torch.full((len(X),), most, dtype=torch.long, device=X.device)
