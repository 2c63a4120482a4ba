r"""What the algorithms share that say themselves how long their rounds are."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.designs.rounding import MOST
from botorch_lse.strategies.forecast import Forecast

MOST_REHEARSED = 2**40
"""More evaluations than this are as good as never."""


def countable(size: float) -> float:
    r"""The size of a round, if it can be counted at all.

    Raises:
        ValueError: If it is above ``MOST``.
    """
    if not size <= MOST:
        raise ValueError(
            f"Expected a round of at most {MOST:.0g} measurements, but the algorithm "
            f"asks for {size:.2g}. State `y` in units in which the gaps that matter "
            "are about 1."
        )
    return size


def eliminate_rows(
    side: Tensor, rows: Tensor, values: Tensor, threshold: float, width: float
) -> Tensor:
    r"""The sides after one round of MELK.

    Args:
        side: ``N`` codes.
        rows: The active rows.
        values: Their estimates, units of ``y``.
        threshold: The level.
        width: ``2 2^-t``.

    Source:
        Mason et al. (2022), Algorithm 1, lines 9 to 15; both tests are strict.
    """
    below = values < threshold - width
    above = ~below & (values > threshold + width)
    side = side.clone()
    side[rows[below]], side[rows[above]] = BELOW, ABOVE
    return side


def first_round_of(size: int) -> Forecast:
    r"""The forecast of such an algorithm before anything is estimated."""
    return Forecast(
        None, f"Nothing is estimated before the first round of {size:,} measurements."
    )


def rehearsed(sizes: Iterable[int], told: int) -> Forecast:
    r"""The forecast of an algorithm that says itself how long its rounds are.

    Args:
        sizes: The measurements of the rounds to come, as if the estimates were exact;
            they need not end.
        told: Measurements of the first of these rounds that are told already.
    """
    total = 0
    for size in sizes:
        total += size
        if total > MOST_REHEARSED:
            return Forecast(None, "The estimated gaps are too small for any number.")
    return Forecast(
        max(total - told, 1),
        "By a rehearsal of the rounds to come, as if the current estimate were exact.",
    )
