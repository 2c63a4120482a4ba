r"""Forecasts: how many more evaluations are needed until everything is decided.

They rest on gaps: the distances of the current estimates from the level (or from each
other), which an interval must be narrower than to decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from botorch_lse.planning import Relaxation

ROUGH = 0.1
"""The tolerance of a forecast's designs: estimated gaps are far less exact."""
HALVINGS = 4
"""Bisections of the exponent after the first doubling that suffices: within 5 %."""
MOST = 2**24
"""No more evaluations than this are forecast: nobody would make them."""
NEAREST = 0.1
"""The gap guessed for a row whose estimate lies on the level, in its standard
deviations: 8 % of the rows are nearer."""


@dataclass(frozen=True)
class Forecast:
    r"""What remains to be measured, from the current estimate.

    Args:
        observations: About how many more evaluations decide everything; ``None`` where
            no number does.
        basis: What the number rests on, as a sentence.
    """

    observations: int | None
    basis: str

    def __str__(self) -> str:
        if self.observations is None:
            return f"No number of further evaluations is foreseen. {self.basis}"
        return (
            f"About {self.observations} more evaluations until everything is decided. "
            f"{self.basis}"
        )


def observations_needed(relaxation: Relaxation, beta: float) -> int | None:
    r"""The smallest ``n`` whose optimal design makes every interval narrow enough.

    Estimates are taken to stay where they are, so that a row is decided once its
    interval is as narrow as its gap.

    Args:
        relaxation: The design of the targets, each weighted by one over its squared
            gap.
        beta: The squared width of the intervals.

    Returns:
        A number within about 5 %; ``None`` above ``MOST``.
    """

    def suffices(n: int) -> bool:
        ahead = relaxation.for_size(n)
        return beta * ahead.unit * ahead.nearly(ROUGH).value / n <= 1.0

    return smallest(suffices)


def smallest(suffices: Callable[[int], bool]) -> int | None:
    r"""The smallest ``n`` that suffices, within about 5 %; ``None`` above ``MOST``."""
    high = 1
    while not suffices(high):
        high *= 2
        if high > MOST:
            return None
    low, steps = high / 2, HALVINGS
    while steps > 0 and high - low > 1:
        middle = round((low * high) ** 0.5)
        low, high = (low, middle) if suffices(middle) else (middle, high)
        steps -= 1
    return int(high)


def likely_gaps(difference: Tensor, sigma: Tensor | float) -> Tensor:
    r"""Signed gaps to expect, none of them closer to 0 than ``NEAREST`` deviations.

    An estimate that lies on the level by chance would else need endless measurements.

    Args:
        difference: Estimates less the level, units of ``y``.
        sigma: Their standard deviations.
    """
    size = (difference.square() + (NEAREST * torch.as_tensor(sigma)).square()).sqrt()
    return torch.where(difference < 0, -size, size)


def squared_gaps(difference: Tensor, variance: Tensor, epsilon: float) -> Tensor:
    r"""The squared gaps to expect of estimates.

    Args:
        difference: Estimates less the level, units of ``y``.
        variance: Their variances.
        epsilon: The accuracy, which widens every gap.
    """
    return (likely_gaps(difference, variance.sqrt()).abs() + epsilon).square()
