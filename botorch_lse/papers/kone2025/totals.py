r"""Unstructured strategies that judge rows by all of their measurements."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.confidence.classify import ABOVE, BELOW
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.goals.gaps import NEAREST
from botorch_lse.goals.pareto import pareto_answer, with_columns
from botorch_lse.papers.fixed_confidence import (
    RoundsAlgorithm,
    first_round_of,
    rehearsed,
)
from botorch_lse.papers.kone2025.base import (
    ParetoBelief,
    ParetoQuestion,
    ParetoStrategy,
    accept_rest,
    budget,
    decide_one_by_one,
    sizes_ahead,
)
from botorch_lse.papers.kone2025.gaps import blocks, differences, dominations
from botorch_lse.papers.kone2025.least_squares import ArmTotals, LinearFit
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies.algorithm import Step
from botorch_lse.strategies.forecast import Forecast

STRIDE = 1.02
"""How much longer each row is measured from one rehearsed step to the next."""
BY_BUDGET = (
    "No confidence is claimed: the error probability falls exponentially in the "
    "budget, at a rate that depends on the unknown gaps."
)


@dataclass(frozen=True, eq=False)
class TotalsBelief(ParetoBelief):
    r"""The belief with all measurements summed up.

    Args:
        totals: Counts and sums of every row.
    """

    totals: ArmTotals


Foreseen = Callable[[TotalsBelief], TotalsBelief]
"""The belief after the round that comes, if it repeats the estimates in hand."""


class TotalsRule(ABC):
    r"""A rule of how often to measure open rows, and what all measurements decide."""

    is_planned_ahead: bool = False
    """Whether the sizes of all rounds are known before any measurement."""

    last_is_accepted: bool = True
    """Whether a single open row needs no further measurement."""

    @abstractmethod
    def target(self, belief: TotalsBelief) -> int:
        r"""Measurements that each open row has after round ``t``."""

    @abstractmethod
    def width(self, belief: TotalsBelief) -> float:
        r"""Half widths of the intervals in standard deviations."""

    @abstractmethod
    def eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        r"""The belief for the next round; ``fit`` is of all rows.

        It has counts where the rule itself says what is measured next; without them
        each open row is measured up to the target.
        """

    @abstractmethod
    def forecast(self, belief: TotalsBelief, told: int, foreseen: Foreseen) -> Forecast:
        r"""About how many more evaluations until everything is decided.

        Args:
            belief: The belief after the complete rounds.
            told: Measurements of the open round that are told already.
            foreseen: What the next round would leave.
        """


@dataclass(frozen=True, eq=False)
class AllSamples(RoundsAlgorithm):
    r"""Measure the open rows up to a number, judge them by all measurements so far.

    Measurements nobody asked for count like others.

    Args:
        pool: The rows.
        question: What is to be decided about them.
        rule: How often they are measured, and what that decides.
        guarantee: What is claimed.
    """

    pool: Pool
    question: ParetoQuestion
    rule: TotalsRule
    guarantee: str

    def start(self, seed: int) -> TotalsBelief:
        r"""The belief before the first round."""
        blank = self.question.start()
        totals = ArmTotals.zero(len(self.pool), self.question.m)
        start = TotalsBelief(blank.t, blank.side, blank.estimate, blank.counts, totals)
        return self._prepared(start)

    def complete(self, observations: Observations) -> Observations:
        r"""The observations with one column per output."""
        return with_columns(observations, self.question.m)

    def size(self, belief: TotalsBelief) -> int:
        r"""Measurements of the round that comes."""
        return belief.size

    def rows(self, belief: TotalsBelief, seed: int, round: int) -> Tensor:
        r"""The rows of the round that comes."""
        return belief.rows

    def learn(self, belief: TotalsBelief, step: Step) -> TotalsBelief:
        r"""The belief after more measurements of any rows."""
        new = step.new
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
            if bool(belief.counts.any()):
                return belief

    def _judged(self, belief: TotalsBelief) -> TotalsBelief:
        fit, everything = belief.totals.fit(), torch.arange(len(self.pool))
        width = self.rule.width(belief)
        estimate = self.question.updated(belief, everything, fit, width)
        return self.rule.eliminate(replace(belief, estimate=estimate), fit)

    def _prepared(self, belief: TotalsBelief) -> TotalsBelief:
        r"""The belief with what is missing to the target, or with the end."""
        counts = torch.zeros_like(belief.counts)
        if belief.open.numel() <= int(self.rule.last_is_accepted):
            return replace(accept_rest(belief), counts=counts)
        rows = belief.open
        told = belief.totals.counts[rows].long()
        counts[rows] = (self.rule.target(belief) - told).clamp_min(0)
        return replace(belief, counts=counts)

    def _foreseen(self, belief: TotalsBelief) -> TotalsBelief:
        rows = belief.counts.nonzero().view(-1)
        means, counts = belief.estimate.mean[rows], belief.counts[rows]
        totals = belief.totals.add(rows, means, counts)
        return self._advanced(replace(belief, totals=totals))

    def answer(self, belief: TotalsBelief, as_claimed: bool = False) -> Classification:
        r"""The side of every row."""
        return pareto_answer(belief.side, belief.estimate, self.guarantee, self.pool)

    def forecast(self, belief: TotalsBelief, told: int) -> Forecast:
        r"""A forecast by a rehearsal, with an estimate or where none is needed."""
        if not (self.rule.is_planned_ahead or belief.is_estimated):
            return first_round_of(belief.size)
        return self.rule.forecast(belief, told, self._foreseen)


# --- a fixed budget -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UniformRule(TotalsRule):
    r"""One round of all rows, equally often.

    Args:
        question: The question to decide.
        budget: A remainder is not used.
    """

    question: ParetoQuestion
    budget: int

    is_planned_ahead = True

    def target(self, belief: TotalsBelief) -> int:
        r"""The measurements of each row: an equal share of the budget."""
        return self.budget // len(self.question.pool)

    def width(self, belief: TotalsBelief) -> float:
        r"""The width of intervals that hold together, once."""
        return self.question.width()

    def eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        r"""Accept the rows whose means are undominated."""
        optimal = pareto_mask(self.question.signs * fit.mean)
        side = torch.where(optimal, ABOVE, BELOW).to(belief.side.dtype)
        return replace(belief, t=belief.t + 1, side=side)

    def forecast(self, belief: TotalsBelief, told: int, foreseen: Foreseen) -> Forecast:
        r"""The rest of the round."""
        return rehearsed(sizes_ahead(belief, foreseen), told)


@dataclass(frozen=True, eq=False)
class UniformStrategy(ParetoStrategy):
    r"""Measure every row equally often; accept those whose means are undominated.

    ``max_observations`` is the budget, at least one per row; a remainder is not used.
    Arguments: see ``ParetoStrategy``.

    Source:
        The baseline of Kone et al. (2025), section 5.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        budget(self.max_observations, len(self.pool))

    @cached_property
    def algorithm(self) -> AllSamples:
        r"""The rounds of the algorithm."""
        rule = UniformRule(self.question, budget(self.max_observations))
        return AllSamples(self.pool, self.question, rule, self.guarantee)

    @property
    def guarantee(self) -> str:
        r"""No claim at a stated level."""
        return BY_BUDGET


@dataclass(frozen=True, eq=False)
class RejectsRule(TotalsRule):
    r"""One row decided per round, by rounds of growing length.

    Args:
        question: The question to decide.
        budget: At least one per row.
    """

    question: ParetoQuestion
    budget: int

    is_planned_ahead = True

    @cached_property
    def _harmonic(self) -> float:
        return 0.5 + sum(1 / i for i in range(2, len(self.question.pool) + 1))

    def target(self, belief: TotalsBelief) -> int:
        r"""The target of successive rejects."""
        return self._target(belief.t)

    def _target(self, t: int) -> int:
        K = len(self.question.pool)
        spare = (self.budget - K) / self._harmonic
        return max(1, math.ceil(spare / (K + 1 - t)))

    def width(self, belief: TotalsBelief) -> float:
        r"""The width of intervals that hold together, once."""
        return self.question.width()

    def eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        r"""The row with the largest gap in each round that measures nothing new."""
        rows, t, many = belief.open, belief.t, 1
        while many < len(rows) - 1 and self._target(t + many) == self._target(t):
            many += 1
        values = self.question.signs * fit.mean[rows]
        return decide_one_by_one(belief, values, many)

    def forecast(self, belief: TotalsBelief, told: int, foreseen: Foreseen) -> Forecast:
        r"""A forecast of the measurements to come, by a rehearsal."""
        return rehearsed(sizes_ahead(belief, foreseen), told)


@dataclass(frozen=True, eq=False)
class EGESRStrategy(ParetoStrategy):
    r"""Empirical gap elimination with successive rejects: one row decided per round.

    ``max_observations`` is the budget, at least one per row. Arguments: see
    ``ParetoStrategy``.

    Source:
        Kone et al. (2024), EGE-SR; the rounds are those of Audibert and Bubeck (2010),
        successive rejects.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        budget(self.max_observations, len(self.pool))

    @cached_property
    def algorithm(self) -> AllSamples:
        r"""The rounds of the algorithm."""
        rule = RejectsRule(self.question, budget(self.max_observations))
        return AllSamples(self.pool, self.question, rule, self.guarantee)

    @property
    def guarantee(self) -> str:
        r"""No claim at a stated level."""
        return BY_BUDGET


# --- a fixed confidence ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RacingRule(TotalsRule):
    r"""The rule to measure all open rows equally often, until intervals decide them.

    Args:
        question: The question to decide.
        step: See ``RacingStrategy``, as is the next one.
        epsilon: The tolerance.
    """

    question: ParetoQuestion
    step: int
    epsilon: float

    last_is_accepted = False

    def target(self, belief: TotalsBelief) -> int:
        r"""``step`` more in each round."""
        return self.step * belief.t

    def width(self, belief: TotalsBelief) -> float:
        r"""``sqrt(2 log(4 K m n^2 / delta))``: of intervals that hold at all times."""
        return self.question.width(2 * self.target(belief) ** 2)

    def half(self, belief: TotalsBelief) -> float:
        r"""Half widths of the intervals, units of ``y``."""
        n = self.target(belief)
        return self.width(belief) * self.question.known_noise / math.sqrt(n)

    def eliminate(self, belief: TotalsBelief, fit: LinearFit) -> TotalsBelief:
        r"""The rows certainly dominated, or certainly optimal and of no more use."""
        rows, side = belief.open, belief.side.clone()
        values = self.question.signs * fit.mean[rows]
        half = self.half(belief)
        rejected = dominations(values) > 2 * half
        left = (~rejected).nonzero().view(-1)
        values = values[left]
        optimal, needed = torch.zeros(2, len(left), dtype=torch.bool)
        for block in blocks(torch.arange(len(left)), len(left)):
            # M_eps(i, j) = max_c (mu_i + eps - mu_j)
            M = self.epsilon - differences(values, block)[0]
            certain = 2 * half <= M
            certain[torch.arange(len(block)), block] = True
            optimal[block] = certain.all(dim=1)
            # Row j waits while an undecided i might be dominated by it.
            waits = (2 * half >= M) & ~optimal[block].unsqueeze(1)
            needed |= waits.any(dim=0)
        side[rows[rejected]] = BELOW
        side[rows[left[optimal & ~needed]]] = ABOVE
        return replace(belief, t=belief.t + 1, side=side)

    def forecast(self, belief: TotalsBelief, told: int, foreseen: Foreseen) -> Forecast:
        r"""A forecast by a rehearsal in strides."""
        return rehearsed(self._sizes(belief), told)

    def _sizes(self, belief: TotalsBelief) -> Iterator[int]:
        told, fit = belief.totals.counts.long(), belief.totals.fit()
        least = NEAREST * float(belief.estimate.sigma[belief.open].max())
        while belief.open.numel():
            rows, target = belief.open, self.target(belief)
            more = (target - told[rows]).clamp_min(0)
            yield int(more.sum())
            told = told.index_add(0, rows, more)
            if self.half(belief) <= least:  # no gap is guessed below
                return
            belief = self.eliminate(belief, fit)
            # In strides: a round of one measurement each would take as long as the run.
            belief = replace(belief, t=max(belief.t, math.ceil(STRIDE * belief.t)))


@dataclass(frozen=True, eq=False)
class RacingStrategy(ParetoStrategy):
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

    @cached_property
    def algorithm(self) -> AllSamples:
        r"""The rounds of the algorithm."""
        rule = RacingRule(self.question, self.step, self.epsilon)
        return AllSamples(self.pool, self.question, rule, self.guarantee)

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
            f"of standard deviation at most {self.sigma:g} in each output "
            "(Auer et al. 2016, Theorem 4)."
        )
