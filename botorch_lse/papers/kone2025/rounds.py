r"""Rounds that are judged by their own samples: decide the rows with large gaps."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from botorch_lse.checks import whole_number
from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.papers.kone2025.base import ParetoBelief, ParetoStrategy
from botorch_lse.papers.kone2025.gaps import empirical_gaps
from botorch_lse.papers.kone2025.least_squares import ArmTotals, LinearFit
from botorch_lse.pareto import pareto_mask
from botorch_lse.problem import Observations
from botorch_lse.strategies.arguments import check_budget

B = TypeVar("B", bound=ParetoBelief)


@dataclass(frozen=True, eq=False)
class ParetoRoundStrategy(ParetoStrategy):
    r"""Measure the open rows, estimate from this round's samples alone, eliminate.

    Measurements of rows that are not open are kept and used for nothing. A round some
    of whose measurements were abandoned is judged if what came suffices, else its
    measurements are asked for again. Arguments: see ``ParetoStrategy``.
    """

    def _start(self, seed: int) -> ParetoBelief:
        return self._prepared(self._blank())

    def _learn(
        self, belief: ParetoBelief, new: Observations, history: Observations, seed: int
    ) -> ParetoBelief:
        if not bool(belief.counts.any()):
            return belief
        rows = belief.open
        used = new.select(torch.isin(new.indices, rows))
        if len(used) == 0:
            return belief
        fit = self._fit(belief, used)
        each = torch.ones_like(used.indices) if used.counts is None else used.counts
        told = torch.zeros_like(belief.counts).index_add(0, used.indices, each)
        complete = bool((told >= belief.counts).all())
        if not (complete or self._suffices(belief, fit, int(told.sum()))):
            return belief
        estimate = self._updated(belief, rows, fit, self._width(belief))
        return self._prepared(self._eliminate(replace(belief, estimate=estimate)))

    def _foreseen(self, belief: ParetoBelief) -> ParetoBelief:
        return self._prepared(self._eliminate(belief))

    def _values(self, belief: ParetoBelief) -> Tensor:
        r"""``|A_t| x m`` estimates of the open rows, all outputs maximised."""
        return self.signs * belief.estimate.mean[belief.open]

    @abstractmethod
    def _prepared(self, belief: ParetoBelief) -> ParetoBelief:
        r"""With the counts of the round that comes, or with the end."""

    @abstractmethod
    def _fit(self, belief: ParetoBelief, used: Observations) -> LinearFit:
        r"""Estimates of the open rows."""

    @abstractmethod
    def _suffices(self, belief: ParetoBelief, fit: LinearFit, n: int) -> bool:
        r"""Whether an incomplete round with ``n`` measurements may be judged."""

    @abstractmethod
    def _eliminate(self, belief: ParetoBelief) -> ParetoBelief:
        r"""The belief for the next round, open rows decided by their estimates."""

    @abstractmethod
    def _width(self, belief: ParetoBelief) -> float:
        r"""Half widths of the intervals in standard deviations."""


@dataclass(frozen=True, eq=False)
class HalvingStrategy(ParetoRoundStrategy):
    r"""A fixed budget in equal rounds, each of which keeps half of the rows open.

    ``max_observations`` is the budget ``T``. Measurements nobody asked for count
    against it; a round that no longer fits is not run, and its rows stay open.
    Arguments: see ``ParetoStrategy``; ``delta`` is that of the intervals only.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_observations is None:
            raise ValueError("Expected `max_observations`, the budget, but got None.")
        whole_number(self.max_observations, "max_observations", 1)
        check_budget(
            self.max_observations,
            self.rounds * self.least_per_round,
            f"{self.rounds} rounds of {self.least_per_round}, below which a round has "
            "no estimate of every row",
            "Give a larger budget, fewer rows, or fewer features.",
        )

    @property
    @abstractmethod
    def dimension(self) -> int:
        r"""What is halved: the rank of the features, or the number of rows."""

    @property
    @abstractmethod
    def least_per_round(self) -> int:
        r"""The fewest measurements with which the first round estimates every row."""

    @property
    def rounds(self) -> int:
        r"""``ceil(log2 dimension)``, at least 1."""
        return max(1, math.ceil(math.log2(self.dimension)))

    @property
    def round_budget(self) -> int:
        r"""Measurements per round, ``floor(T / rounds)``."""
        assert self.max_observations is not None  # checked
        return self.max_observations // self.rounds

    @property
    def _is_planned_ahead(self) -> bool:
        return True

    @abstractmethod
    def _allocation(self, rows: Tensor) -> Tensor:
        r"""How often to measure each of the open rows; sums to ``round_budget``."""

    def _prepared(self, belief: ParetoBelief) -> ParetoBelief:
        counts = torch.zeros(len(self.pool), dtype=torch.long)
        if belief.t > self.rounds or belief.open.numel() <= 1:
            return accept_rest(replace(belief, counts=counts))
        counts[belief.open] = self._allocation(belief.open)
        return replace(belief, counts=counts)

    def _suffices(self, belief: ParetoBelief, fit: LinearFit, n: int) -> bool:
        return 2 * n >= self.round_budget and bool(fit.norms.isfinite().all())

    def _eliminate(self, belief: ParetoBelief) -> ParetoBelief:
        keep = math.ceil(self.dimension / 2**belief.t)
        return keep_smallest(belief, self._values(belief), keep)

    def _width(self, belief: ParetoBelief) -> float:
        events = 2 * self.m * len(self.pool) * self.rounds
        return math.sqrt(2 * math.log(events / self.delta))


@dataclass(frozen=True, eq=False)
class EGESHStrategy(HalvingStrategy):
    r"""Empirical gap elimination with sequential halving, without structure.

    Needs a budget of ``K ceil(log2 K)`` at least. Arguments: see ``ParetoStrategy``.

    Source:
        Kone et al. (2024), EGE-SH, as described by Kone et al. (2025), section 3.2,
        with erratum 7 (papers/kone2025/errata.md). Deviation: what ``floor(T / R)``
        leaves over after dividing by the open rows is given to the lowest of them; with
        it, GEGE on the canonical basis is the same.
    """

    @property
    def dimension(self) -> int:
        r"""The number of rows."""
        return len(self.pool)

    @property
    def least_per_round(self) -> int:
        r"""One of each row."""
        return len(self.pool)

    def _allocation(self, rows: Tensor) -> Tensor:
        each, extra = divmod(self.round_budget, len(rows))
        return each + (torch.arange(len(rows)) < extra).long()

    def _fit(self, belief: ParetoBelief, used: Observations) -> LinearFit:
        rows = belief.open
        places = torch.searchsorted(rows, used.indices)
        return ArmTotals.zero(len(rows), self.m).add(places, used.y, used.counts).fit()

    @property
    def guarantee(self) -> str:
        r"""None at a stated level."""
        return (
            "No confidence is claimed: the error probability falls exponentially in "
            "the budget, at a rate that depends on the unknown gaps (Kone et al. 2024)."
        )


def keep_smallest(belief: B, values: Tensor, keep: int) -> B:
    r"""Keep the open rows with the smallest empirical gaps; decide the others.

    Args:
        belief: The rows that are open.
        values: ``|A_t| x m`` estimates of these, all outputs maximised.
        keep: How many stay open. Of equal gaps rows of the empirical Pareto set stay,
            then the lowest.

    Returns:
        The belief for the next round: rows not kept are accepted if they are in the
        empirical Pareto set (strict dominance), else rejected.

    Source:
        Kone et al. (2025), Algorithm 2, with errata 4 and 5
        (papers/kone2025/errata.md).
    """
    gaps, optimal = empirical_gaps(values), pareto_mask(values, strict=True)
    order = np.lexsort(((~optimal).numpy(), gaps.numpy()))  # stable; the last leads
    decided = torch.from_numpy(order)[keep:]
    side = belief.side.clone()
    code = torch.where(optimal[decided], ABOVE, BELOW).to(side.dtype)
    side[belief.open[decided]] = code
    return replace(belief, t=belief.t + 1, side=side)


def accept_rest(belief: B) -> B:
    r"""All open rows accepted, as at the end of GEGE: ``B + A``."""
    side = belief.side.clone()
    side[belief.open] = ABOVE
    return replace(belief, side=side)
