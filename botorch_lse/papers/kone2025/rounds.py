r"""Rounds that are judged by their own samples: decide the rows with large gaps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.data.arguments import check_budget
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
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
    keep_smallest,
    sizes_ahead,
)
from botorch_lse.papers.kone2025.least_squares import ArmTotals, LinearFit
from botorch_lse.strategies.algorithm import Step
from botorch_lse.strategies.forecast import Forecast


class RoundRule(ABC):
    r"""A rule of the length of a round, and of what its own samples decide."""

    question: ParetoQuestion

    is_planned_ahead: bool
    """Whether the sizes of all rounds are known before any measurement."""

    @abstractmethod
    def prepared(self, belief: ParetoBelief) -> ParetoBelief:
        r"""The belief with the counts of the next round, or with the end."""

    @abstractmethod
    def fit(self, belief: ParetoBelief, used: Observations) -> LinearFit:
        r"""Estimates of the open rows."""

    @abstractmethod
    def suffices(self, belief: ParetoBelief, fit: LinearFit, n: int) -> bool:
        r"""Whether an incomplete round with ``n`` measurements may be judged."""

    @abstractmethod
    def width(self, belief: ParetoBelief) -> float:
        r"""Half widths of the intervals in standard deviations."""

    @abstractmethod
    def eliminate(self, belief: ParetoBelief) -> ParetoBelief:
        r"""The belief for the next round, open rows decided by their estimates."""

    @abstractmethod
    def forecast(self, belief: ParetoBelief, told: int) -> Forecast:
        r"""About how many more evaluations; see ``Algorithm.forecast``."""

    def values(self, belief: ParetoBelief) -> Tensor:
        r"""``|A_t| x m`` estimates of the open rows, all outputs maximised."""
        return self.question.signs * belief.estimate.mean[belief.open]

    def following(self, belief: ParetoBelief) -> ParetoBelief:
        r"""The next round, after the one whose estimates the belief has."""
        return self.prepared(self.eliminate(belief))


@dataclass(frozen=True, eq=False)
class OwnSamples(RoundsAlgorithm):
    r"""Measure the open rows, estimate from this round's samples alone, eliminate.

    Measurements of rows that are not open are kept and used for nothing. A round some
    of whose measurements were abandoned is judged if what came suffices, else its
    measurements are asked for again.

    Args:
        pool: The rows.
        question: What is to be decided about them.
        rule: How long a round is, and what it decides.
        guarantee: What is claimed.
    """

    pool: Pool
    question: ParetoQuestion
    rule: RoundRule
    guarantee: str

    def start(self, seed: int) -> ParetoBelief:
        r"""The belief before the first round."""
        return self.rule.prepared(self.question.start())

    def complete(self, observations: Observations) -> Observations:
        r"""The observations with one column per output."""
        return with_columns(observations, self.question.m)

    def size(self, belief: ParetoBelief) -> int:
        r"""Measurements of the round that comes."""
        return belief.size

    def rows(self, belief: ParetoBelief, seed: int, round: int) -> Tensor:
        r"""The rows of the round that comes."""
        return belief.rows

    def learn(self, belief: ParetoBelief, step: Step) -> ParetoBelief:
        r"""The belief after a round, if it can be judged."""
        new = step.new
        if not bool(belief.counts.any()):
            return belief
        rows, rule = belief.open, self.rule
        used = new.select(torch.isin(new.indices, rows))
        if len(used) == 0:
            return belief
        fit = rule.fit(belief, used)
        each = used.replicates
        told = torch.zeros_like(belief.counts).index_add(0, used.indices, each)
        complete = bool((told >= belief.counts).all())
        if not (complete or rule.suffices(belief, fit, int(told.sum()))):
            return belief
        estimate = self.question.updated(belief, rows, fit, rule.width(belief))
        return rule.following(replace(belief, estimate=estimate))

    def answer(self, belief: ParetoBelief, as_claimed: bool = False) -> Classification:
        r"""The side of every row."""
        return pareto_answer(belief.side, belief.estimate, self.guarantee, self.pool)

    def forecast(self, belief: ParetoBelief, told: int) -> Forecast:
        r"""A forecast by a rehearsal, with an estimate or where none is needed."""
        if not (self.rule.is_planned_ahead or belief.is_estimated):
            return first_round_of(belief.size)
        return self.rule.forecast(belief, told)


class Sampling(ABC):
    r"""The spread of a round of fixed size over the open rows, and its estimates."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        r"""The number to halve: the rank of the features, or the number of rows."""

    @property
    @abstractmethod
    def least(self) -> int:
        r"""The fewest measurements with which the first round estimates every row."""

    @abstractmethod
    def counts(self, rows: Tensor, n: int) -> Tensor:
        r"""The counts of measurements of the open ``rows``, which sum to ``n``."""

    @abstractmethod
    def fit(self, rows: Tensor, used: Observations) -> LinearFit:
        r"""Estimates of the open ``rows``, ascending, from measurements of these."""


@dataclass(frozen=True, eq=False)
class HalvingRule(RoundRule):
    r"""A fixed budget in equal rounds, each of which keeps half of the rows open.

    Args:
        question: The question to decide.
        sampling: How a round is spread over the open rows.
        budget: ``T``. Measurements nobody asked for count against it; a round that no
            longer fits is not run, and its rows stay open.
    """

    question: ParetoQuestion
    sampling: Sampling
    budget: int

    is_planned_ahead = True

    def check(self) -> None:
        r"""Whether the budget suffices for an estimate of every row.

        Raises:
            ValueError: If it does not.
        """
        least = self.sampling.least
        check_budget(
            self.budget,
            self.rounds * least,
            f"{self.rounds} rounds of {least}, below which a round has no estimate of "
            "every row",
            "Give a larger budget, fewer rows, or fewer features.",
        )

    @cached_property
    def rounds(self) -> int:
        r"""``ceil(log2 dimension)``, at least 1."""
        return max(1, math.ceil(math.log2(self.sampling.dimension)))

    @property
    def round_budget(self) -> int:
        r"""Measurements per round, ``floor(T / rounds)``."""
        return self.budget // self.rounds

    def prepared(self, belief: ParetoBelief) -> ParetoBelief:
        r"""The belief with the counts of the next round, or with the end."""
        counts = torch.zeros_like(belief.counts)
        if belief.t > self.rounds or belief.open.numel() <= 1:
            return accept_rest(replace(belief, counts=counts))
        counts[belief.open] = self.sampling.counts(belief.open, self.round_budget)
        return replace(belief, counts=counts)

    def fit(self, belief: ParetoBelief, used: Observations) -> LinearFit:
        r"""Estimates of the open rows."""
        return self.sampling.fit(belief.open, used)

    def suffices(self, belief: ParetoBelief, fit: LinearFit, n: int) -> bool:
        r"""Yes with half of the round, if every open row is estimated."""
        return 2 * n >= self.round_budget and bool(fit.norms.isfinite().all())

    def width(self, belief: ParetoBelief) -> float:
        r"""The width of intervals that hold in all rounds."""
        return self.question.width(self.rounds)

    def eliminate(self, belief: ParetoBelief) -> ParetoBelief:
        r"""Half of the rows decided, those with the largest gaps."""
        keep = math.ceil(self.sampling.dimension / 2**belief.t)
        return keep_smallest(belief, self.values(belief), keep)

    def forecast(self, belief: ParetoBelief, told: int) -> Forecast:
        r"""A forecast by a rehearsal; the sizes depend on no estimate."""
        return rehearsed(sizes_ahead(belief, self.following), told)


@dataclass(frozen=True, eq=False)
class EqualSampling(Sampling):
    r"""Sampling of all open rows equally often, each estimated by its own mean.

    Args:
        n_rows: ``N``.
        m: The number of outputs.
    """

    n_rows: int
    m: int

    @property
    def dimension(self) -> int:
        r"""The number of rows."""
        return self.n_rows

    @property
    def least(self) -> int:
        r"""The least number of measurements: one of each row."""
        return self.n_rows

    def counts(self, rows: Tensor, n: int) -> Tensor:
        r"""The counts of measurements; the lowest rows get what is left over."""
        each, extra = divmod(n, len(rows))
        return each + (torch.arange(len(rows)) < extra).long()

    def fit(self, rows: Tensor, used: Observations) -> LinearFit:
        r"""The mean of each row's values, and its width."""
        places = torch.searchsorted(rows, used.indices)
        return ArmTotals.zero(len(rows), self.m).add(places, used.y, used.counts).fit()


@dataclass(frozen=True, eq=False)
class EGESHStrategy(ParetoStrategy):
    r"""Empirical gap elimination with sequential halving, without structure.

    ``max_observations`` is the budget, at least ``K ceil(log2 K)``; see
    ``HalvingRule``. ``delta`` is that of the intervals only. Arguments: see
    ``ParetoStrategy``.

    Source:
        Kone et al. (2024), EGE-SH, as described by Kone et al. (2025), section 3.2,
        with erratum 7 (papers/kone2025/errata.md). Deviation: what ``floor(T / R)``
        leaves over after dividing by the open rows is given to the lowest of them; with
        it, GEGE on the canonical basis is the same.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rule.check()

    @cached_property
    def rule(self) -> HalvingRule:
        r"""Halving by equal shares."""
        sampling = EqualSampling(len(self.pool), self.m)
        return HalvingRule(self.question, sampling, budget(self.max_observations))

    @cached_property
    def algorithm(self) -> OwnSamples:
        r"""The rounds of the algorithm."""
        return OwnSamples(self.pool, self.question, self.rule, self.guarantee)

    @property
    def guarantee(self) -> str:
        r"""No claim at a stated level."""
        return (
            "No confidence is claimed: the error probability falls exponentially in "
            "the budget, at a rate that depends on the unknown gaps (Kone et al. 2024)."
        )
