r"""From an acquisition function and a pool to a batch."""

from __future__ import annotations

import logging
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from torch import Tensor

from botorch_lse.acquisition.batch_search import exchange_pairs, greedy
from botorch_lse.acquisition.design import DesignAcquisitionFunction
from botorch_lse.acquisition.gege import qGEGE
from botorch_lse.acquisition.played import JointlyPlayed, PoolProblem
from botorch_lse.checks import real_matrix, truth_value, whole_number
from botorch_lse.designs import Design, optimal_design, round_design
from botorch_lse.designs.basis import pivoted_cholesky
from botorch_lse.designs.mixture import design_value, mixed_weights
from botorch_lse.designs.scale import ridge_of
from botorch_lse.problem import Pool

logger = logging.getLogger(__name__)

METHODS = ("quota", "sample")
BASIS_SHARE = 0.1
"""The share of the tolerance that low-rank features may use up."""
RANK = 256
"""Features at most, or twice the batch: a batch cannot follow finer detail."""


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
    parts = _supported(acq_function)
    X = choices.X if isinstance(choices, Pool) else real_matrix(choices, "choices")
    d = parts[0].targets.shape[-1]
    if X.shape[-1] != d:
        raise BotorchTensorDimensionError(
            f"Expected `choices` to have the {d} columns of the acquisition "
            f"function's targets, but got shape {tuple(X.shape)}."
        )
    X = X.to(parts[0].targets)
    q, exchange = whole_number(q, "q", 1), truth_value(exchange, "exchange")
    allowed = _allowed(max_repeats, q, X)
    if method not in METHODS:
        raise ValueError(
            f"Expected `method` to be one of {METHODS}, but got {method!r}."
        )
    with torch.no_grad():
        problems = [PoolProblem.of(part, X) for part in parts]
        allowed = _once_if_exact(allowed, parts, problems, q)
        weights = _relaxed_weights(problems, q, tol)
        counts = round_design(weights, q, method, generator=generator)
        kept = JointlyPlayed.of(problems, torch.minimum(counts, allowed))
        nothing = JointlyPlayed.of(problems, torch.zeros_like(counts))
        batches = {
            "design": greedy(kept, q, allowed),
            "greedy": greedy(nothing, q, allowed),
        }
        if exchange:
            batches = {k: exchange_pairs(b, allowed) for k, b in batches.items()}
        values = {name: played.value for name, played in batches.items()}
        winner = min(values, key=values.__getitem__)
        logger.debug("The %s batch won; worst variances: %s.", winner, values)
        batch = X.repeat_interleave(batches[winner].counts, dim=0)
        return batch, acq_function(batch).squeeze(0)


def _relaxed_weights(problems: list[PoolProblem], q: int, tol: float) -> Tensor:
    designs = [_design_problem(problem, q, tol) for problem in problems]
    own = [optimal_design(**stated, tol=tol).weights for stated, _ in designs]

    def values(weights: Tensor) -> list[float]:
        return [unit * design_value(stated, weights) for stated, unit in designs]

    return mixed_weights(own, values)


def relaxed_design(problem: PoolProblem, q: int, tol: float) -> Design:
    r"""The optimal design on the posterior covariance, for ``q`` observations.

    Its ``lower_bound / q``, times the noise variance where that is the same for all
    rows, is what no batch of ``q`` rows can beat.

    Args:
        problem: The pool and its targets.
        q: The size of the batch.
        tol: The relative gap to reach.

    Returns:
        The design; if its gap was not reached, with a ``DesignWarning``.
    """
    stated, _ = _design_problem(problem, q, tol)
    return optimal_design(**stated, tol=tol)


def _design_problem(
    problem: PoolProblem, q: int, tol: float
) -> tuple[dict[str, Any], float]:
    r"""The arguments of ``optimal_design``, and the unit of its value."""
    Phi, N = _features(problem, q, tol), problem.noise_var.numel()
    noise: Any = problem.noise_var
    unit = 1.0
    if bool((noise == noise[0]).all()):  # the solver is faster on unit noise
        Phi, noise, unit = Phi / noise[0].sqrt(), None, float(noise[0])
    targets: Any = problem.targets
    if len(Phi) > N:
        targets = Phi[targets]
    elif torch.equal(targets, torch.arange(N, device=targets.device)):
        targets = None
    stated = {
        "X": Phi[:N],
        "targets": targets,
        "gamma": ridge_of(q, Phi[:N], noise),
        "noise_var": noise,
        "target_weights": problem.weights,
        "pairs_factor": problem.pairs_factor,
    }
    return stated, unit


def _features(problem: PoolProblem, q: int, tol: float) -> Tensor:
    r"""Low-rank features of the posterior covariance of all points.

    ``k s2 / (s2 + q k)`` is the least variance that ``q`` observations of noise ``s2``
    leave; the residual stays a share of it, unless that takes more than ``RANK``
    features. Features left out only lower the norms, so the bound still holds. Where
    targets weigh differently, the share is that of the least important variance.
    """
    k, s2 = float(problem.variance.max()), float(problem.noise_var.min())
    share = 1.0
    if problem.weights is not None:
        weighted = problem.weights * problem.variance[problem.targets]
        share = min(1.0, float(weighted.max() / problem.weights.max()) / k)
    basis = pivoted_cholesky(
        problem.variance,
        lambda i: problem.block(slice(None), slice(i, i + 1)).squeeze(-1),
        share * BASIS_SHARE * tol * k * s2 / (s2 + q * k),
        max(RANK, 2 * q),
    )
    return basis.Phi


def _supported(acq_function: AcquisitionFunction) -> list[DesignAcquisitionFunction]:
    r"""The criterion of each output."""
    if isinstance(acq_function, qGEGE):
        parts = acq_function.parts
    elif isinstance(acq_function, DesignAcquisitionFunction):
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
    parts: list[DesignAcquisitionFunction],
    problems: list[PoolProblem],
    q: int,
) -> Tensor:
    r"""No more than once where one measurement tells all, if ``q`` others remain."""
    exact = torch.ones_like(allowed, dtype=torch.bool)
    for part, problem in zip(parts, problems, strict=True):
        exact &= problem.noise_var <= part.least_noise
    once = torch.where(exact, allowed.clamp_max(1), allowed)
    return once if int(once.sum()) >= q else allowed


def _allowed(max_repeats: int | None, q: int, X: Tensor) -> Tensor:
    r"""``N``, how often each row may be in the batch."""
    most = q if max_repeats is None else whole_number(max_repeats, "max_repeats", 1)
    if most * len(X) < q:
        raise ValueError(
            f"Expected `q` of at most `max_repeats` times the rows of `choices`, "
            f"{most} * {len(X)}, but got {q}. Allow more repeats."
        )
    return torch.full((len(X),), most, dtype=torch.long, device=X.device)
