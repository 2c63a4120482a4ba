r"""Unstructured strategies that judge rows by all of their measurements."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from botorch_lse.checks import in_interval, whole_number
from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.papers.kone2025.base import ParetoBelief, ParetoStrategy
from botorch_lse.papers.kone2025.least_squares import ArmTotals, LinearFit
from botorch_lse.papers.kone2025.rounds import accept_rest, keep_smallest
from botorch_lse.pareto import pareto_mask
from botorch_lse.problem import Observations
from botorch_lse.strategies.forecast import NEAREST

STRIDE = 1.02
"""How much longer each row is measured from one rehearsed step to the next."""


@dataclass(frozen=True, eq=False)
class TotalsBelief(ParetoBelief):
    r"""With all measurements summed up.

    Args:
        totals: Counts and sums of every row.
    """

    totals: ArmTotals


@dataclass(frozen=True, eq=False)
class ParetoTotalsStrategy(ParetoStrategy):
    r"""Measure the open rows up to a number, judge them by all measurements so far.

    Measurements nobody asked for count like others. Arguments: see ``ParetoStrategy``.
    """

    def _start(self, seed: int) -> TotalsBelief:
        blank = self._blank()
        totals = ArmTotals.zero(len(self.pool), self.m)
        start = TotalsBelief(blank.t, blank.side, blank.estimate, blank.counts, totals)
        return self._prepared(start)

    def _learn(
        self, belief: TotalsBelief, new: Observations, history: Observations, seed: int
    ) -> TotalsBelief:
        totals = belief.totals.add(new.indices, new.y, new.counts)
        belief = replace(belief, totals=totals)
        return self._advanced(belief) if bool(belief.counts.any()) else belief

    def _advanced(self, belief: TotalsBelief) -> TotalsBelief:
        r"""Judge rounds as long as the measurements they need are there."""
        while True:
            belief = self._prepared(belief)
            if bool(belief.counts.any()) or belief.open.numel() == 0:
                return belief
            belief = self._judged(belief)

    def _judged(self, belief: TotalsBelief) -> TotalsBelief:
        fit, everything = belief.totals.fit(), torch.arange(len(self.pool))
        estimate = self._updated(belief, everything, fit, self._width(belief))
        return self._eliminate(replace(belief, estimate=estimate), fit)

    def _foreseen(self, belief: TotalsBelief) -> TotalsBelief:
        rows = belief.counts.nonzero().view(-1)
        means, counts = belief.estimate.mean[rows], belief.counts[rows]
        totals = belief.totals.add(rows, means, counts)
        return self._advanced(replace(belief, totals=totals))

    def _prepared(self, belief: TotalsBelief) -> TotalsBelief:
        r"""With what is missing to the target, or with the end."""
        counts = torch.zeros(len(self.pool), dtype=torch.long)
        if self._has_ended(belief):
            return replace(accept_rest(belief), counts=counts)
        rows = belief.open
        told = belief.totals.counts[rows].long()
        counts[rows] = (self._target(belief) - told).clamp_min(0)
        return replace(belief, counts=counts)

    def _has_ended(self, belief: TotalsBelief) -> bool:
        r"""Whether what is open is accepted."""
        return belief.open.numel() <= 1

    @abstractmethod
    def _target(self, belief: TotalsBelief) -> int:
        r"""Measurements that each open row has after round ``t``."""

    @abstractmethod
    def _eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        r"""The belief for the next round; ``fit`` is of all rows."""

    @abstractmethod
    def _width(self, belief: TotalsBelief) -> float:
        r"""Half widths of the intervals in standard deviations."""


@dataclass(frozen=True, eq=False)
class _BudgetTotalsStrategy(ParetoTotalsStrategy):
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_observations is None:
            raise ValueError("Expected `max_observations`, the budget, but got None.")
        whole_number(self.max_observations, "max_observations", len(self.pool))

    @property
    def _is_planned_ahead(self) -> bool:
        return True

    def _width(self, belief: TotalsBelief) -> float:
        return math.sqrt(2 * math.log(2 * self.m * len(self.pool) / self.delta))

    @property
    def guarantee(self) -> str:
        r"""None at a stated level."""
        return (
            "No confidence is claimed: the error probability falls exponentially in "
            "the budget, at a rate that depends on the unknown gaps."
        )


@dataclass(frozen=True, eq=False)
class UniformStrategy(_BudgetTotalsStrategy):
    r"""Measure every row equally often; accept those whose means are undominated.

    ``max_observations`` is the budget, at least one per row; a remainder is not used.
    Arguments: see ``ParetoStrategy``.

    Source:
        The baseline of Kone et al. (2025), section 5.
    """

    def _target(self, belief: TotalsBelief) -> int:
        assert self.max_observations is not None  # checked
        return self.max_observations // len(self.pool)

    def _eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        optimal = pareto_mask(self.signs * fit.mean)
        side = torch.where(optimal, ABOVE, BELOW).to(belief.side.dtype)
        return replace(belief, t=belief.t + 1, side=side)


@dataclass(frozen=True, eq=False)
class EGESRStrategy(_BudgetTotalsStrategy):
    r"""Empirical gap elimination with successive rejects: one row decided per round.

    ``max_observations`` is the budget, at least one per row. Arguments: see
    ``ParetoStrategy``.

    Source:
        Kone et al. (2024), EGE-SR; the rounds are those of Audibert and Bubeck (2010),
        successive rejects.
    """

    @cached_property
    def _harmonic(self) -> float:
        return 0.5 + sum(1 / i for i in range(2, len(self.pool) + 1))

    def _target(self, belief: TotalsBelief) -> int:
        assert self.max_observations is not None  # checked
        K = len(self.pool)
        spare = (self.max_observations - K) / self._harmonic
        return max(1, math.ceil(spare / (K + 1 - belief.t)))

    def _eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        rows = belief.open
        values = self.signs * fit.mean[rows]
        return keep_smallest(belief, values, len(rows) - 1)


@dataclass(frozen=True, eq=False)
class RacingStrategy(ParetoTotalsStrategy):
    r"""Measure all open rows equally often until intervals decide them.

    In each round rows that are certainly dominated are rejected; those that are
    certainly Pareto optimal are accepted unless they are still needed to reject others.

    Args:
        step: Measurements of each open row per round.
        epsilon: The tolerance: no accepted row is exceeded by more than this in every
            output. 0 is exact.

    Source:
        Auer et al. (2016), Algorithm 1, with ``sigma sqrt(2 log(4 K m n^2 / delta) /
        n)`` for noise of standard deviation ``sigma``. With ``step > 1`` the widths
        stay those of a bound over all ``n``.
    """

    step: int = 1
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_noise()
        whole_number(self.step, "step", 1)
        in_interval(self.epsilon, "epsilon", 0.0, math.inf, closed_low=True)

    def _target(self, belief: TotalsBelief) -> int:
        return self.step * belief.t

    def _has_ended(self, belief: TotalsBelief) -> bool:
        return belief.open.numel() == 0

    def _coming(self, belief: TotalsBelief) -> Iterator[int]:
        told, fit = belief.totals.counts.long(), belief.totals.fit()
        least = NEAREST * float(belief.estimate.sigma[belief.open].max())
        while belief.open.numel():
            rows, target = belief.open, self._target(belief)
            more = (target - told[rows]).clamp_min(0)
            yield int(more.sum())
            told = told.index_add(0, rows, more)
            if self._half(belief) <= least:  # no gap is guessed below
                return
            belief = self._eliminate(belief, fit)
            # In strides: a round of one measurement each would take as long as the run.
            belief = replace(belief, t=max(belief.t, math.ceil(STRIDE * belief.t)))

    def _half(self, belief: TotalsBelief) -> float:
        n = self._target(belief)
        return self._width(belief) * self._need_noise() / math.sqrt(n)

    def _width(self, belief: TotalsBelief) -> float:
        n = self._target(belief)
        return math.sqrt(2 * math.log(4 * len(self.pool) * self.m * n**2 / self.delta))

    def _eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        rows, side = belief.open, belief.side.clone()
        values = self.signs * fit.mean[rows]
        half = self._half(belief)
        difference = values.unsqueeze(0) - values.unsqueeze(1)  # [i, j] = j - i
        m = difference.amin(dim=-1)
        rejected = (m > 2 * half).any(dim=1)
        left = (~rejected).nonzero().view(-1)
        # M_eps(i, j) = max_c (mu_i + eps - mu_j)
        M = self.epsilon - m[left][:, left]
        clear = M.clone().fill_diagonal_(torch.inf)
        optimal = (clear >= 2 * half).all(dim=1)
        # Row j waits while an undecided i might be dominated by it.
        needed = ((2 * half >= M) & ~optimal.unsqueeze(1)).any(dim=0)
        side[rows[rejected]] = BELOW
        side[rows[left[optimal & ~needed]]] = ABOVE
        return replace(belief, t=belief.t + 1, side=side)

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        tolerance = (
            "and no other row"
            if self.epsilon == 0
            else f"and no row exceeded by more than {self.epsilon:g} in every output"
        )
        return (
            f"With probability {1 - self.delta:g} every Pareto optimal row is accepted "
            f"{tolerance}, once no row is open; assumes independent sub-Gaussian noise "
            f"of standard deviation at most {self._need_noise():g} in each output "
            "(Auer et al. 2016, Theorem 4)."
        )
