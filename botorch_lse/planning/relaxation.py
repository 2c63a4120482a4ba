r"""The relaxed problem: weights on the rows of a pool in place of counts.

It is convex and can be solved to a proven gap; rounding its weights gives counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from botorch_lse.designs import Design, DesignWarning, optimal_design, round_design
from botorch_lse.designs.basis import pivoted_cholesky
from botorch_lse.designs.problem import ridge_of
from botorch_lse.models.gaussian_process import row_blocks
from botorch_lse.planning.problem import BatchProblem

RESIDUAL = 0.5
"""The variance that features may miss, as a share of the largest one of a target, per
unit of the design's tolerance: a twentieth at a gap of a tenth. Large batches leave
less variance and need better features, in proportion to their size from ten rows on."""
RANK = 150
"""Features at most, or twice the batch if that is more: a batch tells no more
directions apart than it has observations, and a design's time grows with their square.
Twice as many changed neither the worst variance nor the F1 score of whole runs."""
FINEST = 1e-3
"""Features are not made more accurate than for designs of this gap: with rounding to
come they change nothing any more."""
PAIR_SHARE = 0.25
"""Errors of the features enter the variance of a difference up to four times."""
STEPS = 30
"""Steps of the search for the best mixture of several outputs' designs."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    r"""The optimal-design problem that belongs to a batch of ``q`` observations.

    ``q`` observations placed by weights ``lam`` leave the variance ``(1 / q) phi'
    (sum lam phi phi' / s2 + I / q)^-1 phi``, where ``phi`` are features whose inner
    products are the posterior covariances (pivoted Cholesky) and ``s2`` the noise.

    Args:
        stated: The arguments of ``optimal_design``, in units of the mean noise.
        unit: The factor from the value of that problem to ``q`` times a (weighted)
            variance, units of ``y`` squared.

    Source:
        Mason et al. (2022), section 5 and Appendix F.1: the design with ``gamma = 1 /
        q`` and columns ``phi / sigma``.
    """

    stated: dict[str, Any]
    unit: float

    @classmethod
    def of(
        cls,
        problem: BatchProblem,
        q: int,
        tol: float,
        usable: Tensor | None = None,
    ) -> Relaxation | None:
        r"""The relaxation of a problem; ``None`` if no target is uncertain.

        Args:
            problem: What a batch is to predict.
            q: The size of the batch.
            tol: The relative gap to which the design will be solved; the features are
                as accurate as that asks for.
            usable: ``N`` bools: the rows that may be measured; default all.
        """
        Phi = features(problem, q, tol)
        if Phi.shape[1] == 0:
            return None
        noise: Tensor | None = problem.noise_var
        if bool((problem.noise_var == problem.noise_var[0]).all()):
            unit, noise = problem.noise_var[0], None  # faster on unit noise
        else:
            unit = problem.noise_var.mean()
            noise = problem.noise_var / unit
        Phi, N = Phi / unit.sqrt(), problem.noise_var.numel()
        weights, factor = problem.weights, 1.0
        if weights is not None and bool((weights == weights.view(-1)[0]).all()):
            factor, weights = float(weights.view(-1)[0]), None
        rows = Phi[:N]
        everywhere = usable is None or bool(usable.all())
        are_rows = everywhere and len(Phi) == N
        stated = {
            "X": rows if everywhere else rows[usable],
            "targets": problem.targets if are_rows else Phi[problem.targets],
            "gamma": ridge_of(q, rows, noise),
            "noise_var": noise if everywhere or noise is None else noise[usable],
            "target_weights": weights,
            "pairs_factor": problem.pairs_factor,
        }
        return cls(stated, factor * float(unit))

    def solve(self, tol: float) -> Design:
        r"""The optimal design within ``tol``; with a ``DesignWarning`` if not.

        Its ``lower_bound / q``, times the noise variance where that is the same for all
        rows, is what no batch of ``q`` rows can beat.
        """
        return optimal_design(**self.stated, tol=tol)

    def for_size(self, q: int) -> Relaxation:
        r"""The relaxation for another number of observations, on the same features."""
        gamma = ridge_of(q, self.stated["X"], self.stated["noise_var"])
        return replace(self, stated={**self.stated, "gamma": gamma})

    def nearly(self, tol: float) -> Design:
        r"""``solve`` without a warning: a missed gap costs less than rounding does."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DesignWarning)
            return self.solve(tol)


def features(problem: BatchProblem, q: int, tol: float) -> Tensor:
    r"""Features of all points whose inner products approximate the covariances.

    Features that are left out only lower the norms of a design, so that a proven bound
    of it still holds.

    Args:
        problem: What a batch is to predict.
        q: The size of the batch.
        tol: The relative gap of the design.

    Returns:
        One row per point; no column where no target is uncertain.
    """
    share = RESIDUAL * max(tol, FINEST) * min(1.0, 10 / q)
    basis = pivoted_cholesky(
        problem.variance,
        lambda i: problem.block(slice(None), slice(i, i + 1)).squeeze(-1),
        share * _largest(problem),
        max(RANK, 2 * q),
    )
    return basis.Phi


def _largest(problem: BatchProblem) -> float:
    r"""The largest variance of a target, of which features may miss a share.

    For differences ``f(x) - f(x')`` it is that of the differences: what two points have
    in common cancels in them.
    """
    own = problem.variance[problem.targets]
    if problem.pairs_factor != 1.0:
        return float(own.max())
    spreads = [
        own[rows, None] + own - 2 * problem.gram_rows(rows)
        for rows in row_blocks(len(own), len(own))
    ]
    return PAIR_SHARE * max(float(spread.max()) for spread in spreads)


def relaxed_counts(
    problems: Sequence[BatchProblem],
    q: int,
    usable: Tensor,
    tol: float,
    method: str = "quota",
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""The optimal design of the relaxed problem, rounded to ``q`` observations.

    For several outputs it is the best mixture of their own optimal designs.

    Args:
        problems: One per output.
        q: The size of the batch.
        usable: ``N`` bools: the rows that may be measured.
        tol: The relative gap of the designs.
        method: How to round: ``"quota"``, or ``"sample"``: independent draws.
        generator: The source of randomness of ``"sample"``.

    Returns:
        ``N`` counts that sum to ``q``; zeros if nothing is uncertain or no row usable.
    """
    counts = torch.zeros(len(usable), dtype=torch.long, device=usable.device)
    if not bool(usable.any()):
        return counts
    all_found = [Relaxation.of(problem, q, tol, usable) for problem in problems]
    found = [relaxation for relaxation in all_found if relaxation is not None]
    if not found:
        return counts
    own = [relaxation.nearly(tol).weights for relaxation in found]

    def values(weights: Tensor) -> list[float]:
        r"""The largest variance that a design leaves, times ``q``, for each output."""
        return [r.unit * design_value(r.stated, weights) for r in found]

    weights = mixed_weights(own, values)
    counts[usable] = round_design(weights, q, method, generator=generator).to(counts)
    return counts


def design_value(problem: dict[str, Any], weights: Tensor) -> float:
    r"""The largest (weighted) squared norm of a design.

    Args:
        problem: Arguments of ``optimal_design`` with features, without pairs.
        weights: ``N`` weights.
    """
    Phi, noise = problem["X"], problem.get("noise_var")
    rate = weights if noise is None else weights / noise
    A = (Phi.mT * rate) @ Phi + problem["gamma"] * torch.eye(Phi.shape[1]).to(Phi)
    targets = problem.get("targets")
    rows = Phi if targets is None else targets
    V = rows if rows.ndim == 2 else Phi[rows]
    L = torch.linalg.cholesky(A)
    norms = torch.linalg.solve_triangular(L, V.mT, upper=False).square().sum(dim=0)
    factors = problem.get("target_weights")
    return float((norms if factors is None else factors * norms).max())


def mixed_weights(
    own: Sequence[Tensor], values: Callable[[Tensor], Sequence[float]]
) -> Tensor:
    r"""The mixture of designs whose largest value is about the smallest.

    The value of an output falls as its own optimal design gets a larger share. So the
    output with the largest value gets a larger share until all values are about equal.
    A mixture is not the optimal design for all outputs together, unless their
    covariances are alike.

    Args:
        own: For each output its optimal design, ``N`` weights.
        values: From a design to the value of each output, in common units.

    Returns:
        ``N`` weights.
    """
    if len(own) == 1:
        return own[0]
    designs = torch.stack(list(own))
    share = designs.new_full((len(own),), 1 / len(own))
    best, lowest = designs.mean(dim=0), torch.inf
    for step in range(STEPS):
        mixture = share @ designs
        found = torch.tensor(values(mixture), dtype=designs.dtype)
        if float(found.max()) < lowest:
            best, lowest = mixture, float(found.max())
        # A falling rate, as exponential updates need in order to settle.
        rate = 2 / (1 + step) ** 0.5
        share = torch.softmax(share.log() + rate * found / found.max(), dim=0)
    return best
