r"""APE: adaptive Pareto exploration, one pair of rows at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch
from scipy.optimize import minimize_scalar
from scipy.special import zeta
from torch import Tensor

from botorch_lse._validation import whole_number
from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.goals.gaps import likely_gaps
from botorch_lse.papers.fixed_confidence import MOST_REHEARSED
from botorch_lse.papers.kone2025.base import ParetoQuestion, ParetoStrategy
from botorch_lse.papers.kone2025.gaps import blocks, differences, empirical_gaps
from botorch_lse.papers.kone2025.least_squares import LinearFit
from botorch_lse.papers.kone2025.totals import (
    AllSamples,
    Foreseen,
    TotalsBelief,
    TotalsRule,
)
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies.forecast import Forecast


@dataclass(frozen=True, eq=False)
class APERule(TotalsRule):
    r"""The row of a pair that is most in doubt, until all pairs are certain.

    Args:
        question: The question to decide.
        step: See ``APEStrategy``.
    """

    question: ParetoQuestion
    step: int

    @cached_property
    def threshold(self) -> float:
        r"""``C^g(log(K_1 / delta) / 2)`` with ``K_1 = m K (K - 1) / 2`` pairs."""
        K = len(self.question.pool)
        pairs = max(1.0, self.question.m * K * (K - 1) / 2)
        return gaussian_threshold(0.5 * math.log(pairs / self.question.delta))

    def target(self, belief: TotalsBelief) -> int:
        r"""The measurements of a row at once; from then on pairs decide."""
        return self.step

    def width(self, belief: TotalsBelief) -> float:
        r"""The width of intervals that hold together, once; pairs have their own."""
        return self.question.width()

    def eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        r"""All rows decided once all pairs are certain, else the next row."""
        values, told = self.question.signs * fit.mean, belief.totals.counts
        every = torch.arange(len(values))
        blocks_of_rows = blocks(every, len(values))
        parts = [self._compared(values, told, rows) for rows in blocks_of_rows]
        safety, challenger, excess, reach = (
            torch.cat(column) for column in zip(*parts, strict=True)
        )
        optimal, clear = pareto_mask(values), safety > 0
        if bool(torch.where(optimal, clear, excess > 0).all()):
            side = torch.where(optimal, ABOVE, BELOW).to(belief.side.dtype)
            return replace(belief, side=side)
        leader = int(reach.masked_fill(clear, -torch.inf).argmax())
        rival = int(challenger[leader])
        counts = torch.zeros(len(told), dtype=torch.long)
        counts[leader if told[leader] <= told[rival] else rival] = self.step
        return replace(belief, t=belief.t + 1, counts=counts)

    def _compared(
        self, values: Tensor, counts: Tensor, rows: Tensor
    ) -> tuple[Tensor, ...]:
        r"""The comparison of some of the ``K`` rows with the hardest of the others.

        Returns:
            The smallest ``M(i, j)`` less its width and the ``j`` that has it; the
            largest ``m(i, j)`` less its width; the smallest ``M(i, j)`` and its width.
        """
        m, _ = differences(values, rows)
        width, own = self._pair_widths(counts, rows), (torch.arange(len(rows)), rows)
        M_low = (-m - width).index_put_(own, m.new_tensor(torch.inf))
        excess = (m - width).index_put_(own, m.new_tensor(-torch.inf)).amax(dim=1)
        reach = (-m + width).index_put_(own, m.new_tensor(torch.inf)).amin(dim=1)
        return *M_low.min(dim=1), excess, reach

    def forecast(self, belief: TotalsBelief, told: int, foreseen: Foreseen) -> Forecast:
        r"""A forecast by the estimated gaps, row by row."""
        counts, sigma = belief.totals.counts, belief.estimate.sigma.amax(dim=1)
        values = self.question.signs * belief.estimate.mean
        gaps = likely_gaps(empirical_gaps(values), math.sqrt(2) * sigma)
        needed = torch.stack([self._needed(float(gap)) for gap in gaps])
        more = float((needed - counts).clamp_min(0.0).sum())
        if more > MOST_REHEARSED:
            return Forecast(None, "The estimated gaps are too small for any number.")
        return Forecast(
            max(math.ceil(more) - told, 1),
            "Each row measured until pairs of it are as certain as the estimated gap "
            "asks for.",
        )

    def _needed(self, gap: float) -> Tensor:
        r"""Measurements of both rows after which a pair's half width is ``gap``."""
        n = torch.ones((), dtype=torch.float64)
        for _ in range(20):  # a contraction: n enters by log log n
            scale = self.threshold + 2 * (4 + n.log()).log()
            n = (8 * self.question.known_noise**2 * scale / gap**2).clamp_min(1.0)
        return n

    def _pair_widths(self, counts: Tensor, rows: Tensor) -> Tensor:
        r"""``rows x K`` half widths of ``mu_j(c) - mu_i(c)``."""
        slow, inverse = (4 + counts.log()).log(), 1 / counts
        scale = self.threshold + slow + slow[rows].unsqueeze(1)
        spread = inverse + inverse[rows].unsqueeze(1)
        return 2 * self.question.known_noise * (scale * spread).sqrt()


@dataclass(frozen=True, eq=False)
class APEStrategy(ParetoStrategy):
    r"""Measure the rows whose comparison is most in doubt until all are certain.

    The leader is, among rows not yet certainly optimal, the one that could be furthest
    from being dominated; its challenger is the row that may dominate it; the one
    measured less often of the two is measured. Rows are decided together at the end.

    Args:
        step: Measurements of a row at once; the paper's is 1.

    Source:
        Kone et al. (2023), APE for exact identification, with the widths for pairs that
        follow from Kaufmann and Koolen (2021), Theorem 10.
    """

    step: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_noise()
        whole_number(self.step, "step", 1)

    @cached_property
    def algorithm(self) -> AllSamples:
        r"""The rounds of the algorithm."""
        rule = APERule(self.question, self.step)
        return AllSamples(self.pool, self.question, rule, self.guarantee)

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        return (
            f"With probability {1 - self.delta:g} exactly the Pareto optimal rows are "
            "accepted, once no row is open; assumes independent Gaussian noise of "
            f"standard deviation at most {self.sigma:g} in each output (Kone "
            "et al. 2023)."
        )


@lru_cache(maxsize=64)
def gaussian_threshold(x: float) -> float:
    r"""``C^g(x) = min over 1/2 < lam < 1 of (g(lam) + x) / lam``, about ``x + log x``.

    ``g(lam) = 2 lam - 2 lam log(4 lam) + log zeta(2 lam) - log(1 - lam) / 2``.

    Source:
        Kaufmann and Koolen (2021), Theorem 10.
    """

    def bound(lam: float) -> float:
        g = 2 * lam - 2 * lam * math.log(4 * lam)
        g += math.log(zeta(2 * lam)) - 0.5 * math.log(1 - lam)
        return float((g + x) / lam)

    found = minimize_scalar(bound, bounds=(0.5 + 1e-9, 1 - 1e-9), method="bounded")
    return float(found.fun)
