r"""Gaps: the distances from the level that intervals must be narrower than."""

from __future__ import annotations

import torch
from torch import Tensor

NEAREST = 0.1
"""The gap guessed for a row whose estimate lies on the level, in its deviations.
8 % of the rows are nearer."""


def likely_gaps(difference: Tensor, sigma: Tensor | float) -> Tensor:
    r"""Expected signed gaps, none closer to 0 than ``NEAREST`` deviations.

    An estimate that lies on the level by chance would else need endless measurements.

    Args:
        difference: Estimates less the level, units of ``y``.
        sigma: Their standard deviations.
    """
    size = (difference.square() + (NEAREST * torch.as_tensor(sigma)).square()).sqrt()
    return torch.where(difference < 0, -size, size)


def squared_gaps(difference: Tensor, variance: Tensor, epsilon: float) -> Tensor:
    r"""The expected squared gaps of estimates.

    Args:
        difference: Estimates less the level, units of ``y``.
        variance: Their variances.
        epsilon: The accuracy, which widens every gap.
    """
    return (likely_gaps(difference, variance.sqrt()).abs() + epsilon).square()
