r"""Shared parts of strategies for several outputs: signs, data, intervals, answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.data.arguments import NOISY, check_noise_once
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.goals.pareto import ParetoEstimate, checked_directions, signs_of
from botorch_lse.papers.kone2025.gaps import pareto_margins, standing
from botorch_lse.papers.kone2025.least_squares import LinearFit
from botorch_lse.strategies.algorithm import BUDGET, DECIDED, Algorithm, Step
from botorch_lse.strategies.loop import SimulatedRun, State, Strategy, check_state


@dataclass(frozen=True, eq=False)
class ParetoBelief:
    r"""The belief after the algorithm's rounds.

    Args:
        t: The round of the algorithm that comes next, from 1.
        side: ``N`` codes: accepted, rejected, open.
        estimate: The last estimate of every row.
        counts: ``N``, how often each row is measured in round ``t``; zeros once the
            algorithm has ended.
    """

    t: int
    side: Tensor
    estimate: ParetoEstimate
    counts: Tensor

    @cached_property
    def open(self) -> Tensor:
        r"""The open rows, ascending: the papers' ``A_t``."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @property
    def size(self) -> int:
        r"""Measurements of round ``t``."""
        return int(self.counts.sum())

    @property
    def rows(self) -> Tensor:
        r"""The rows of round ``t`` with replicates."""
        return torch.arange(len(self.counts)).repeat_interleave(self.counts)

    @property
    def is_estimated(self) -> bool:
        r"""Whether anything was measured that says something of a row."""
        return bool(self.estimate.sigma.isfinite().any())


B = TypeVar("B", bound=ParetoBelief)


@dataclass(frozen=True, eq=False)
class ParetoQuestion:
    r"""The question which rows are Pareto optimal, and how sure the answer must be.

    Args:
        pool: The rows.
        signs: ``m`` signs: ``signs * y`` is maximised.
        noise_std: A bound of the noise standard deviation in each output, if there is
            one.
        delta: The failure probability of the whole run.
    """

    pool: Pool
    signs: Tensor
    noise_std: float | None
    delta: float

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return len(self.signs)

    @property
    def known_noise(self) -> float:
        r"""``noise_std``, which the strategy has asked for."""
        assert self.noise_std is not None  # checked
        return self.noise_std

    def width(self, times: int = 1) -> float:
        r"""``sqrt(2 log(2 m N times / delta))``: half widths in standard deviations.

        With probability ``1 - delta`` the intervals of all means hold together, made
        as many ``times`` along the run.
        """
        return math.sqrt(2 * math.log(2 * self.m * len(self.pool) * times / self.delta))

    def start(self) -> ParetoBelief:
        r"""The belief before any measurement, without counts of the first round."""
        N = len(self.pool)
        estimate = ParetoEstimate.unknown(N, self.m)
        counts = torch.zeros(N, dtype=torch.long)
        return ParetoBelief(1, torch.zeros(N, dtype=torch.int8), estimate, counts)

    def updated(
        self, belief: ParetoBelief, rows: Tensor, fit: LinearFit, width: float
    ) -> ParetoEstimate:
        r"""The estimates with those of ``rows``.

        Args:
            belief: Whose estimates are kept for the other rows.
            rows: ``K`` rows that are open or needed to judge those.
            fit: Of these rows.
            width: Half widths of the intervals in standard deviations.
        """
        noise = fit.noise_var.nan_to_num(nan=torch.inf).sqrt()
        if self.noise_std is not None:
            noise = torch.full_like(noise, self.noise_std)
        sigma = fit.norms.sqrt().unsqueeze(-1) * noise
        half = width * sigma
        # A margin is a difference of two rows, in the output that decides.
        margin_width = half.amax(dim=-1) + half.max()
        largest = sigma.amax(dim=-1)
        margin_sigma = torch.hypot(largest, largest.max())
        margin = pareto_margins(self.signs * fit.mean)
        old = belief.estimate
        margin = torch.where(margin.isinf(), old.margin[rows], margin)  # a single row
        new = ParetoEstimate(
            fit.mean,
            fit.mean - half,
            fit.mean + half,
            sigma,
            margin,
            margin - margin_width,
            margin + margin_width,
            margin_sigma,
        )
        return ParetoEstimate(
            *(
                getattr(old, part.name).index_put((rows,), getattr(new, part.name))
                for part in fields(ParetoEstimate)
            )
        )


def accept_rest(belief: B) -> B:
    r"""The answer that accepts all open rows, as at the end of GEGE: ``B + A``."""
    side = belief.side.clone()
    side[belief.open] = ABOVE
    return replace(belief, side=side)


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
    gaps, optimal, _ = standing(values)
    decided = _by_gap(gaps, optimal)[keep:]
    return _decided(belief, belief.open[decided], optimal[decided], 1)


def decide_one_by_one(belief: B, values: Tensor, rounds: int) -> B:
    r"""The belief after rounds that keep all open rows but one, by equal estimates.

    The same as ``keep_smallest`` once for each round, without a look at all rows where
    a round changes nothing but for the row that it decides.

    Args:
        belief: The rows that are open.
        values: ``|A_t| x m`` estimates of these, all outputs maximised.
        rounds: How many rounds; fewer than open rows, or 1.
    """
    rows, left = belief.open, rounds
    while left:
        gaps, optimal, needed = standing(values)
        falling = _by_gap(gaps, optimal).flip(0)
        is_alone = ~(optimal | needed)[falling]
        many = min(left, max(1, int(is_alone.long().cumprod(dim=0).sum())))
        now = falling[:many]
        belief = _decided(belief, rows[now], optimal[now], many)
        stays = torch.ones_like(optimal).index_fill(0, now, False)
        rows, values, left = rows[stays], values[stays], left - many
    return belief


def _by_gap(gaps: Tensor, optimal: Tensor) -> Tensor:
    order = np.lexsort(((~optimal).numpy(), gaps.numpy()))  # stable; the last leads
    return torch.from_numpy(order)


def _decided(belief: B, rows: Tensor, optimal: Tensor, rounds: int) -> B:
    side = belief.side.clone()
    side[rows] = torch.where(optimal, ABOVE, BELOW).to(side.dtype)
    return replace(belief, t=belief.t + rounds, side=side)


def sizes_ahead(belief: B, foreseen: Callable[[B], B]) -> Iterator[int]:
    r"""The sizes of the rounds to come.

    Args:
        belief: Where the run stands.
        foreseen: The belief after the round that comes, if it repeats the estimates in
            hand.
    """
    while bool(belief.counts.any()):
        yield belief.size
        belief = foreseen(belief)


def budget(max_observations: int | None, least: int = 1) -> int:
    r"""The budget of a strategy that plans its rounds by it.

    Raises:
        ValueError: If there is none, or it is below ``least``.
    """
    if max_observations is None:
        raise ValueError("Expected `max_observations`, the budget, but got None.")
    return whole_number(max_observations, "max_observations", least)


Measure = Callable[[Tensor, Tensor], Tensor]
"""From ``k`` rows and how often each is measured to ``k x m`` means."""


@dataclass(frozen=True, eq=False)
class ParetoStrategy(Strategy):
    r"""A strategy that estimates means, of rows or of linear features.

    Replicates may be told as their mean (``batch.observe(y, yvar, means=True)``); noise
    is taken to be alike everywhere.

    Args:
        maximize: For each output, whether more is better.
        noise_std: The standard deviation of the noise in each output, or a bound;
            default the largest of ``pool.noise_var``, else estimated from residuals.
        delta: The failure probability; where no theorem holds, that of the intervals.
        max_observations: Never measure more than this.
    """

    _: KW_ONLY
    maximize: Sequence[bool]
    noise_std: float | None = None
    delta: float = 0.05
    max_observations: int | None = None
    max_repeats: None = field(init=False, default=None)
    batch_size: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._check_rounds()
        object.__setattr__(self, "maximize", checked_directions(self.maximize))
        in_interval(self.delta, "delta", 0.0, 1.0)
        if self.noise_std is None:
            if self.pool.noise_var is not None:
                check_noise_once(None, self.pool)
            return
        in_interval(self.noise_std, "noise_std", 0.0, math.inf, remedy=NOISY)
        if self.pool.noise_var is not None:
            raise ValueError(
                "Expected the noise once, but got both `noise_std` and "
                "`pool.noise_var`."
            )

    @property
    def directions(self) -> tuple[bool, ...]:
        r"""The directions as given by ``maximize``."""
        return tuple(self.maximize)

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return len(self.maximize)

    @cached_property
    def question(self) -> ParetoQuestion:
        r"""The question as the strategy's parts take it."""
        return ParetoQuestion(
            self.pool, signs_of(self.maximize), self.sigma, self.delta
        )

    @property
    @abstractmethod
    def algorithm(self) -> Algorithm:
        r"""The rounds of the algorithm."""

    def estimate(self, state: State) -> ParetoEstimate:
        r"""The estimated outputs of every row with their intervals."""
        check_state(self, state)
        found: ParetoEstimate = state.belief.estimate
        return found

    @property
    @abstractmethod
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""

    @property
    def weighs_by_counts(self) -> bool:
        r"""Yes: noise is alike everywhere, so counts say how much a mean weighs."""
        return True

    @property
    def sigma(self) -> float | None:
        r"""The bound of the noise standard deviation, if there is one."""
        if self.noise_std is not None or self.pool.noise_var is None:
            return self.noise_std
        return math.sqrt(float(self.pool.noise_var.max()))

    def _need_noise(self) -> None:
        if self.sigma is None:
            raise ValueError(
                f"Expected `noise_std` or `pool.noise_var` for {type(self).__name__}, "
                "whose numbers of measurements depend on it, but got neither."
            )

    def simulate(self, measure: Measure, seed: int = 0) -> SimulatedRun:
        r"""The whole run on a function, by counts and means, never by single pulls.

        The same as asking and telling means, without the lists of rows that a round
        of millions of measurements would be.

        Args:
            measure: From ``k`` rows and ``k`` counts to ``k x m`` means.
            seed: The seed of ``init``.
        """
        algorithm = self.algorithm
        belief, n, rounds = algorithm.start(seed), 0, 0
        while bool(belief.counts.any()):
            room = None if self.max_observations is None else self.max_observations - n
            size = algorithm.round_size(belief, room)
            if size == 0:
                answer = algorithm.answer(belief)
                return SimulatedRun(answer, n, rounds, BUDGET)
            rows = belief.counts.nonzero().view(-1)
            counts = belief.counts[rows]
            new = Observations(
                rows, measure(rows, counts), round=torch.tensor(rounds), counts=counts
            )
            belief = algorithm.learn(belief, Step(algorithm.complete(new), new, seed))
            n, rounds = n + size, rounds + 1
        return SimulatedRun(algorithm.answer(belief), n, rounds, DECIDED)
