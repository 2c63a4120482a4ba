r"""Scores of single rows (straddle, ambiguity), and how the best row is chosen."""

from __future__ import annotations

import torch
from torch import Tensor

TIE = 1e-9
"""Scores that differ by less than this share of the prior's standard deviation are
equal, and the lowest row is taken: rounding differs between processors, and the same
run must ask for the same rows on each of them."""


def straddle(
    mean: Tensor, sigma: Tensor, threshold: float | Tensor, beta: float | Tensor
) -> Tensor:
    r"""``sqrt(beta) sigma - |mean - threshold|``, units of ``y``.

    Source:
        Bryan et al. (2005); Gotovos et al. (2013), section 3, with ``beta = 1.96^2``.
    """
    return beta**0.5 * sigma - (mean - threshold).abs()


def ambiguity(lower: Tensor, upper: Tensor, threshold: float | Tensor) -> Tensor:
    r"""``min(upper - threshold, threshold - lower)``, units of ``y``.

    At least ``epsilon`` for every undecided point, at most ``epsilon`` for every
    decided one.

    Source:
        Gotovos et al. (2013), section 3, the definition of ``a_t``.
    """
    return torch.minimum(upper - threshold, threshold - lower)


def interval(
    mean: Tensor, sigma: Tensor, beta: float | Tensor
) -> tuple[Tensor, Tensor]:
    r"""``mean -+ sqrt(beta) sigma``: the confidence interval ``Q_t``.

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
    """
    if not bool(eligible.any()):
        return None
    masked = torch.where(eligible, scores, torch.full_like(scores, -torch.inf))
    return int((masked >= masked.max() - TIE * scale).to(torch.uint8).argmax())
