r"""Scores of single rows, and the choice of the best row.

Where a Gaussian with this ``mean`` and ``sigma`` is the belief about ``f`` at a row,
``t = |mean - threshold| / sigma`` says how many deviations the row is from the level.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from botorch_lse._lazy import LazyModule

if TYPE_CHECKING:
    from botorch.utils.probability import utils as normal
else:
    # Its package brings SciPy's geometry, which no score needs.
    normal = LazyModule("botorch.utils.probability.utils")

TIE = 1e-9
"""The share of the prior's standard deviation below which scores are equal.
The lowest row is then taken: rounding differs between processors, and the same run must
ask for the same rows on each of them."""
TINY = 1e-300
"""A tiny standard deviation or variance in place of 0, by which one can divide."""
CERTAIN = 1e8
"""The largest number of deviations from the level that a row counts as.
More are what rounding left of a variance of 0: ratio and gradient would overflow."""
FEASIBILITY_ALPHA = 2.0
"""The half-width of the band around the level in Bichon et al. (2008)."""
RANJAN_ALPHA = 1.96
"""The half-width of the band around the level in Ranjan et al. (2008)."""


def straddle(
    mean: Tensor, sigma: Tensor, threshold: float | Tensor, beta: float | Tensor
) -> Tensor:
    r"""Straddle score ``sqrt(beta) sigma - |mean - threshold|``, units of ``y``.

    Source:
        Bryan et al. (2005); Gotovos et al. (2013), section 3, with ``beta = 1.96^2``.
    """
    return beta**0.5 * sigma - (mean - threshold).abs()


def ambiguity(lower: Tensor, upper: Tensor, threshold: float | Tensor) -> Tensor:
    r"""Ambiguity ``min(upper - threshold, threshold - lower)``, units of ``y``.

    At least ``epsilon`` for every undecided point, at most ``epsilon`` for every
    decided one.

    Source:
        Gotovos et al. (2013), section 3, the definition of ``a_t``.
    """
    return torch.minimum(upper - threshold, threshold - lower)


def deviations(mean: Tensor, sigma: Tensor, threshold: float | Tensor) -> Tensor:
    r"""Deviations ``|mean - threshold| / sigma``, up to ``CERTAIN``; 0 on the level.

    The gradient is finite, also where ``sigma`` is 0.
    """
    distance = (mean - threshold).abs()
    # Not the smallest number itself, whose square as a denominator would be 0.
    least = (distance / CERTAIN).clamp_min(torch.finfo(mean.dtype).tiny ** 0.5)
    return distance / torch.maximum(sigma, least)


def u_function(mean: Tensor, sigma: Tensor, threshold: float | Tensor) -> Tensor:
    r"""Score ``U = -|mean - threshold| / sigma``, without unit: large is doubtful.

    ``Phi(U)`` is the probability that the sign of ``mean - threshold`` is the wrong
    side. It does not ask how wide the interval is: a row on the level has the largest
    value, 0, however often it was measured.

    Source:
        Echard et al. (2011), the learning function U of AK-MCS. Deviation: minus the
        paper's, since ours is maximised.
    """
    return -deviations(mean, sigma, threshold)


def expected_feasibility(
    mean: Tensor,
    sigma: Tensor,
    threshold: float | Tensor,
    alpha: float = FEASIBILITY_ALPHA,
) -> Tensor:
    r"""Score ``E max(alpha sigma - |f - threshold|, 0)``, units of ``y``.

    How deep ``f`` is expected to lie in the band of ``alpha`` deviations around the
    level. With ``psi(u) = E max(u + Z, 0) = u Phi(u) + phi(u)``, ``Z`` standard normal,

        ``sigma (psi(alpha - t) - 2 psi(-t) + psi(-alpha - t))``,

    because the hat ``max(alpha - |y|, 0)`` is the second difference of ``max(y, 0)``.

    Source:
        Bichon et al. (2008), the expected feasibility function, with ``alpha = 2``.
        Deviation: in this form nothing cancels far from the level.
    """
    t = deviations(mean, sigma, threshold)
    hat = _surplus(alpha - t) - 2 * _surplus(-t) + _surplus(-alpha - t)
    return sigma * hat


def _surplus(u: Tensor) -> Tensor:
    r"""The mean ``psi(u) = E max(u + Z, 0)`` for a standard normal ``Z``."""
    return u * normal.ndtr(u) + normal.phi(u)


def ranjan_improvement(
    mean: Tensor,
    sigma: Tensor,
    threshold: float | Tensor,
    alpha: float = RANJAN_ALPHA,
) -> Tensor:
    r"""Score ``E max((alpha sigma)^2 - (f - threshold)^2, 0)``, units of ``y`` squared.

    Like ``expected_feasibility``, with a parabola in place of the hat:

        ``sigma^2 ((alpha^2 - t^2 - 1) (Phi(alpha - t) - Phi(-alpha - t))
        + (alpha + t) phi(alpha - t) + (alpha - t) phi(alpha + t))``.

    Source:
        Ranjan et al. (2008), the expectation of their improvement, with
        ``alpha = 1.96``.
    """
    t = deviations(mean, sigma, threshold)
    inside = normal.ndtr(alpha - t) - normal.ndtr(-alpha - t)
    ends = (alpha + t) * normal.phi(alpha - t) + (alpha - t) * normal.phi(alpha + t)
    return sigma.square() * ((alpha**2 - t.square() - 1) * inside + ends)


def contour_entropy(mean: Tensor, sigma: Tensor, threshold: float | Tensor) -> Tensor:
    r"""Entropy of the side of the level, nats: ``-p log p - (1 - p) log(1 - p)``.

    ``p = Phi(-t)`` is the probability of the unlikelier side. From ``log 2`` on the
    level to 0. It falls with ``t`` alone, so that it orders points as ``u_function``
    does; sums and averages of the two differ.

    Source:
        Shannon's entropy; for contours Cole et al. (2023).
    """
    t = deviations(mean, sigma, threshold)
    p = normal.ndtr(-t)
    # log p where p itself rounds to 0; log1p where 1 - p rounds to 1.
    return -(p * normal.log_ndtr(-t) + (1 - p) * torch.log1p(-p))


def interval(
    mean: Tensor, sigma: Tensor, beta: float | Tensor
) -> tuple[Tensor, Tensor]:
    r"""The confidence interval ``Q_t``, ``mean -+ sqrt(beta) sigma``.

    Source:
        Gotovos et al. (2013), section 3.
    """
    half = beta**0.5 * sigma
    return mean - half, mean + half


def first_best(scores: Tensor, eligible: Tensor, scale: float) -> int | None:
    r"""The lowest index whose score is the best among the eligible, up to ties.

    Args:
        scores: ``N`` scores.
        eligible: ``N`` bools.
        scale: The prior's standard deviation; scores within ``1e-9 * scale`` of the
            best are ties.

    Returns:
        The index, or ``None`` if nothing is eligible.

    Raises:
        ValueError: If an eligible score is no number.
    """
    if not bool(eligible.any()):
        return None
    masked = torch.where(eligible, scores, torch.full_like(scores, -torch.inf))
    best_score = masked.max()
    if bool(best_score.isnan()):
        row = int(masked.isnan().to(torch.uint8).argmax())
        raise ValueError(
            f"Expected `scores` of the rule to be numbers, but that of row {row} is "
            "nan. Return minus infinity for rows that are not to be chosen."
        )
    # The eligible alone: where all of their scores are minus infinity the others tie.
    best = eligible & (masked >= best_score - TIE * scale)
    return int(best.to(torch.uint8).argmax())


def best_ones(scores: Tensor, size: int) -> Tensor:
    r"""The places of the ``size`` largest scores, ascending; the first of equal ones.

    Scores count as equal to the smallest that is taken where they differ from it by
    less than a share ``TIE`` of it: which of them are larger depends on the processor.

    Args:
        scores: ``N`` numbers, which may be infinite.
        size: How many, at least 1; all places if there are fewer.
    """
    if size >= len(scores):
        return torch.arange(len(scores))
    least = float(scores.topk(size).values[-1])
    tie = TIE * abs(least) if math.isfinite(least) else 0.0
    is_above = scores > least + tie
    surely = is_above.nonzero().view(-1)
    tied = (~is_above & (scores >= least - tie)).nonzero().view(-1)
    return torch.cat((surely, tied[: size - len(surely)])).sort().values
