r"""How many more evaluations an optimal design needs for given gaps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from botorch_lse.designs import DesignWarning, optimal_design

ROUGH = 0.1
"""The certified gap of a forecast's designs: gaps are guessed far less well."""
HALVINGS = 4
"""Bisections of the exponent after the first doubling that suffices: within 5 %."""
MOST = 2**24
"""More evaluations than this are as good as never."""
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


def observations_needed(problem: dict[str, Any], beta: float) -> int | None:
    r"""The smallest ``n`` whose optimal design makes every interval narrow enough.

    Estimates are taken to stay where they are, so that a row is decided once its
    interval is as narrow as its gap.

    Args:
        problem: Arguments of ``optimal_design`` without ``gamma``, in units of the
            noise: features of the posterior, targets, and as ``target_weights`` one
            over the squared gaps.
        beta: The squared width of the intervals.

    Returns:
        A number within about 5 %; ``None`` above ``MOST``.
    """

    def suffices(n: int) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DesignWarning)
            design = optimal_design(**problem, gamma=1 / n, tol=ROUGH)
        return beta * design.value / n <= 1.0

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


def squared_gaps(difference: Tensor, variance: Tensor, epsilon: float) -> Tensor:
    r"""The squared gaps to expect of estimates.

    Args:
        difference: Estimates less the level, units of ``y``.
        variance: Their variances.
        epsilon: The accuracy, which widens every gap.
    """
    likely = (difference.square() + NEAREST**2 * variance).sqrt()
    return (likely + epsilon).square()
