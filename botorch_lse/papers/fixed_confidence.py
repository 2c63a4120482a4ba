r"""The shared part of algorithms that choose the length of their rounds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.designs.rounding import MOST
from botorch_lse.strategies.algorithm import Algorithm
from botorch_lse.strategies.forecast import Forecast

MOST_REHEARSED = 2**40
"""More evaluations than this are as good as never."""


class RoundsAlgorithm(Algorithm):
    r"""An algorithm that says itself how long its rounds are, and judges whole rounds.

    A round that no longer fits the budget is not begun, and while rows of a round are
    out nothing further is planned: the next round needs their results. Every row may be
    measured, and measured again.

    Args:
        pool: The rows that can be measured.
    """

    pool: Pool

    @abstractmethod
    def size(self, belief: Any) -> int:
        r"""Measurements of the round that comes; 0 once the algorithm has ended."""

    @abstractmethod
    def rows(self, belief: Any, seed: int, round: int) -> Tensor:
        r"""The rows of the round that comes with replicates, ascending."""

    def round_size(self, belief: Any, room: int | None) -> int:
        r"""The size of the whole round, or nothing."""
        size = self.size(belief)
        return size if room is None or size <= room else 0

    def plan(self, belief: Any, request: PlanRequest) -> Tensor:
        r"""The rows of the round, unless something is out."""
        if request.pending.numel():
            return request.pending[:0]
        return self.rows(belief, request.seed, request.round)

    def takes_any_rows(self, belief: Any) -> bool:
        r"""Whether rows may be excluded: never, for a round is judged as a whole."""
        return False


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
