r"""Forecasts: how many more evaluations are needed until everything is decided.

They rest on gaps: the distances of the current estimates from the level (or from each
other), which an interval must be narrower than to decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from botorch_lse.models.gaussian_process import PoolPosterior
    from botorch_lse.planning import Relaxation

ROUGH = 0.1
"""The tolerance of a forecast's designs: estimated gaps are far less exact."""
HALVINGS = 4
"""The number of bisections after the first doubling that suffices: within 5 %."""
LARGEST_BATCH = 75
"""The largest batch for which the features of a forecast are chosen.
There are twice as many features, and a design takes their square. A forecast is about
many batches, and whoever tells a whole table at once has one as large as it."""
NEAR = 1.05
"""The factor within which two numbers of evaluations are the same forecast."""
CHECKS = 10
"""The parts of a plan for several outputs: it is checked once one more was added."""
MOST_PLANNED = 1000
"""The longest plan for several outputs: about a second of work."""
DESIGNS = 6
"""The largest number of designs of one forecast; two or three are usual."""
MOST = 2**24
"""The largest number of evaluations that is forecast: nobody would make more."""
PER_ROW, FEW = 3, 10_000
"""The largest forecast for the rows of a pool: per row, and in a small pool in all.
Nobody makes more evaluations, so that their number is not worth the wait."""


@dataclass(frozen=True)
class Forecast:
    r"""The measurements that remain, by the current estimate.

    Args:
        observations: About how many more evaluations decide everything; ``None`` where
            no number does, or more than are worth counting.
        basis: What the number rests on, as a sentence.
        more_than: How many evaluations do not decide everything, where the forecast
            ended there.
    """

    observations: int | None
    basis: str
    more_than: int | None = None

    def __str__(self) -> str:
        if self.more_than is not None:
            return (
                f"More than {self.more_than} more evaluations until everything is "
                f"decided. {self.basis}"
            )
        if self.observations is None:
            return f"No number of further evaluations is foreseen. {self.basis}"
        more = f"{self.observations} more evaluation{'s' * (self.observations != 1)}"
        return f"About {more} until everything is decided. {self.basis}"


def most_worth_saying(n_rows: int) -> int:
    r"""The largest number of evaluations that a forecast for a pool reports.

    Args:
        n_rows: The rows of the pool.
    """
    return max(PER_ROW * n_rows, FEW)


def observations_needed(
    relaxation: Relaxation, beta: float, most: int = MOST
) -> int | None:
    r"""The smallest ``n`` whose optimal design makes every interval narrow enough.

    Estimates are taken to stay where they are, so that a row is decided once its
    interval is as narrow as its gap. The design of ``n`` leaves ``value / n`` of the
    variance, so that about ``beta * value`` would do. The initial design is that of
    ``most``; each next one starts from the last.

    Args:
        relaxation: The design of the targets, each weighted by one over its squared
            gap.
        beta: The squared width of the intervals.
        most: Where to end.

    Returns:
        A number within about 5 %; ``None`` above ``most``.
    """
    n, last, design = most, None, None
    enough: int | None = None
    for _ in range(DESIGNS):
        ahead = relaxation.for_size(n)
        design = ahead.nearly(ROUGH, design)
        needed = max(beta * ahead.unit * design.value, 1.0)
        if needed <= n:
            enough = n
        elif enough is None:
            return None
        if max(n / needed, needed / n) <= NEAR:
            return max(n, math.ceil(needed))
        guess = _where_equal(last, (n, needed))
        last = n, needed
        n = min(max(math.ceil(guess), 1), enough - 1)
        if n == last[0]:  # there is no number between: it is the next one
            return enough
    return enough


def _where_equal(last: tuple[int, float] | None, now: tuple[int, float]) -> float:
    r"""The point where as many evaluations are made as are needed.

    The need is interpolated by ``1 / needed = a + b / n``, which is exact for unrelated
    rows: ``n`` evaluations of one row add ``n`` times their precision to that of the
    prior.

    Args:
        last: A number of evaluations, and how many its design says are needed; ``None``
            at first.
        now: Another such pair.
    """
    n, needed = now
    if last is None:
        return needed
    b = (1 / needed - 1 / last[1]) / (1 / n - 1 / last[0])
    a = 1 / needed - b / n
    # The error of the designs can turn the line round: then the step without it.
    return (1 - b) / a if 0 <= b < 1 and a > 0 else needed


def planned_for_all(
    posteriors: Sequence[PoolPosterior],
    noise: Sequence[Tensor],
    items: Tensor,
    revealed: Callable[[int], Sequence[int]],
    open_after: Callable[[tuple[PoolPosterior, ...]], Tensor],
) -> int | None:
    r"""The length of a plan for several outputs after which no item is open.

    Each step is for the open item and output with the largest variance, in units of the
    prior's: it measures the row that lowers it most. Correlations of outputs are left
    out: the plan is rather too long.

    Args:
        posteriors: One per output, on ``P`` points, of which the first are rows.
        noise: For each output ``N`` noise variances of the rows.
        items: ``T`` points that are to be decided.
        revealed: From an output to those that its measurement reveals.
        open_after: From the posteriors after a part of the plan to ``T`` bools: which
            items are still open.

    Returns:
        A number within about 10 %; ``None`` above ``MOST_PLANNED``.
    """
    plans = [OutputPlan(*pair) for pair in zip(posteriors, noise, strict=True)]
    n = check = 0
    is_open = torch.ones(len(items), dtype=torch.bool)
    while n <= MOST_PLANNED:
        if n == check:
            is_open = open_after(tuple(plan.posterior_after for plan in plans))
            if not bool(is_open.any()):
                return max(n, 1)
            check = n + 1 + n // CHECKS
        widths = [plan.left[items[is_open]] / plan.start.scale**2 for plan in plans]
        output, item = divmod(int(torch.cat(widths).argmax()), len(widths[0]))
        row = plans[output].best_row(int(items[is_open][item]))
        for j in revealed(output):
            plans[j].measure(row)
        n += 1
    return None


class OutputPlan:
    r"""The variances of one output along a plan, measurement by measurement.

    Args:
        start: The posterior before it, on ``P`` points.
        noise: ``N`` noise variances of new observations.
    """

    def __init__(self, start: PoolPosterior, noise: Tensor) -> None:
        every = torch.arange(len(start.mean))
        self.start, self.left = start, start.variance
        self.noise = torch.maximum(noise, start.least_noise)
        self.covariance = start.covariance_between(every, every)
        self.path = self.covariance.new_empty(MOST_PLANNED + 1, len(every))
        self.n = 0

    @property
    def posterior_after(self) -> PoolPosterior:
        r"""The posterior after the plan so far."""
        return self.start.less(self.path[: self.n])

    def best_row(self, point: int) -> int:
        r"""The row whose measurement lowers the variance of a point most."""
        rows = len(self.noise)
        gain = self._with(point)[:rows].square() / (self.left[:rows] + self.noise)
        return int(gain.argmax())

    def measure(self, row: int) -> None:
        r"""Add the measurement of a row."""
        new = self._with(row)
        new = new / (new[row].clamp_min(0.0) + self.noise[row]).sqrt()
        self.path[self.n] = new
        self.left = (self.left - new.square()).clamp_min(0.0)
        self.n += 1

    def _with(self, point: int) -> Tensor:
        r"""The covariances of a point with all, after the plan so far (``P``)."""
        past = self.path[: self.n]
        return self.covariance[point] - past[:, point] @ past


def smallest(suffices: Callable[[int], bool], most: int) -> int | None:
    r"""The smallest ``n`` that suffices, within about 5 %; ``None`` above ``most``."""
    if not suffices(most):
        return None
    high = 1
    while high < most and not suffices(high):
        high = min(2 * high, most)
    low, steps = high / 2, HALVINGS
    while steps > 0 and high - low > 1:
        middle = round((low * high) ** 0.5)
        low, high = (low, middle) if suffices(middle) else (middle, high)
        steps -= 1
    return int(high)
