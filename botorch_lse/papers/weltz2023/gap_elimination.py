r"""Rounds of optimal designs and gap elimination, with counts instead of lists."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse._validation import finite_number, in_interval
from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.data.arguments import check_targets
from botorch_lse.data.classification import Classification, gaussian_probability_above
from botorch_lse.data.pool import Pool
from botorch_lse.designs import Design, optimal_design
from botorch_lse.estimators import (
    ArmStatistics,
    LeastSquares,
    head_designs,
    head_from_arms,
)
from botorch_lse.goals.gaps import likely_gaps
from botorch_lse.papers.fixed_confidence import (
    RoundsAlgorithm,
    countable,
    eliminate_rows,
    first_round_of,
    rehearsed,
)
from botorch_lse.strategies.algorithm import Step
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.linear.algorithm import features_of
from botorch_lse.strategies.loop import State, Strategy, check_state

DESIGN_TOLERANCE = 1e-2


@dataclass(frozen=True, eq=False)
class ItemEstimate:
    r"""The last estimate of every item while it was undecided.

    Args:
        mean: ``T`` estimates, units of ``y``; 0 before the first.
        half_width: ``T``, what they are off at most; infinite before the first and
            where the measurements determine differences of items only.
        sigma: ``T``, bounds of their standard deviations.
        probability_above: ``T`` probabilities of lying above the level, or of being the
            best, were the estimates Gaussian with these standard deviations.
    """

    mean: Tensor
    half_width: Tensor
    sigma: Tensor
    probability_above: Tensor

    @classmethod
    def unknown(cls, T: int) -> ItemEstimate:
        r"""The estimate before any measurement: nothing is known."""
        zero = torch.zeros(T, dtype=torch.float64)
        return cls(zero, zero + torch.inf, zero + torch.inf, zero + 0.5)

    def updated(self, rows: Tensor, *parts: Tensor) -> ItemEstimate:
        r"""The estimate with new values, in the order of the fields, at ``rows``."""
        old = (self.mean, self.half_width, self.sigma, self.probability_above)
        new = (o.index_copy(0, rows, p) for o, p in zip(old, parts, strict=True))
        return ItemEstimate(*new)


@dataclass(frozen=True, eq=False)
class RageBelief:
    r"""The belief of the algorithm between rounds.

    Args:
        t: The algorithm's round, from 1; -1 and 0 are the two stages of the burn-in.
        side: ``T`` codes: the items' sides.
        estimate: The last estimates.
        data: The measurements of the current round.
        plan: ``N`` counts that complete it; ``None`` once the algorithm has ended.
        variances: ``N`` noise variances that designs and fits use; ``None`` before the
            burn-in is over.
        first: The measurements of the burn-in's first stage.
        n_burn_in: Measurements made during the burn-in.
    """

    t: int
    side: Tensor
    estimate: ItemEstimate
    data: ArmStatistics
    plan: Tensor | None = None
    variances: Tensor | None = None
    first: ArmStatistics | None = None
    n_burn_in: int = 0

    @property
    def active(self) -> Tensor:
        r"""The undecided items' row numbers."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @property
    def missing(self) -> Tensor:
        r"""``N`` counts that the current round still needs."""
        if self.plan is None:
            return torch.zeros_like(self.data.counts)
        return (self.plan - self.data.counts).clamp_min(0)

    def next_round(self) -> RageBelief:
        r"""The round after this one, without data or plan."""
        empty = ArmStatistics.empty(len(self.data.counts))
        return replace(self, t=self.t + 1, data=empty, plan=None)


@dataclass(frozen=True, eq=False)
class HeadBurnIn:
    r"""The rounds -1 and 0, from which HEAD learns the noise.

    Args:
        X: ``N x d`` features of what can be measured.
        bounds: The least and the largest noise variance.
        n: Planned measurements.
    """

    X: Tensor
    bounds: tuple[float, float]
    n: int

    @cached_property
    def _stages(self) -> tuple[Tensor, Tensor]:
        return head_designs(self.X).counts(self.n)

    def counts(self, t: int) -> Tensor:
        r"""``N`` counts of round ``t``."""
        return self._stages[t + 1]

    def evaluated(self, belief: RageBelief) -> RageBelief:
        r"""The next round; after both with the variances."""
        if belief.t == -1:
            return replace(belief.next_round(), first=belief.data)
        assert belief.first is not None  # the stage before
        found = head_from_arms(self.X, belief.first, belief.data, self.bounds)
        return replace(belief.next_round(), variances=found.variances)


@dataclass(frozen=True, eq=False)
class GapElimination(RoundsAlgorithm):
    r"""Rounds of least squares on optimal designs that drop what is clear.

    Args:
        pool: The rows that can be measured.
        items: The question to decide.
        threshold: The level, units of ``y``; ``None`` looks for the best item.
        delta: The failure probability.
        noise_var: ``N`` noise variances; ``None`` before a burn-in is over.
        burn_in: The rounds in which they are learnt; ``None`` where they are known.
        sample_constant: ``c`` in ``tau = c 4^t q log(8 t^2 |Z| / delta)``.
        elimination_constant: What decides in round ``t``, in ``2^-t``.
        guarantee: What is claimed.
    """

    pool: Pool
    items: Pool
    threshold: float | None
    delta: float
    noise_var: Tensor | None
    burn_in: HeadBurnIn | None
    sample_constant: float
    elimination_constant: float
    guarantee: str

    @cached_property
    def Phi(self) -> Tensor:
        r"""``N x d`` features of what can be measured."""
        return features_of(self.pool)

    @cached_property
    def Z(self) -> Tensor:
        r"""``T x d`` features of the items."""
        return features_of(self.items)

    def width(self, t: int) -> float:
        r"""``2^-t``: what decides in round ``t``, units of ``y``."""
        return self.elimination_constant * 2.0**-t

    def n_draws(self, t: int, q: float) -> float:
        r"""``tau`` of round ``t``, where ``q`` is the design's worst squared norm.

        Source:
            Weltz et al. (2023), Algorithm 2, line 8; Algorithm 5, line 6, with
            erratum 1 (papers/weltz2023/errata.md).
        """
        return self.sample_constant * 4.0**t * q * self._log_term(t)

    def _log_term(self, t: int) -> float:
        return log_term(t, len(self.items), self.delta)

    # --- rounds -----------------------------------------------------------------------

    def start(self, seed: int) -> RageBelief:
        r"""The first round.

        The algorithm counts from 1; rounds of a burn-in come before, at -1 and 0.
        """
        T = len(self.items)
        return self._prepared(
            RageBelief(
                t=1 if self.burn_in is None else -1,
                side=torch.full((T,), UNDECIDED, dtype=torch.int8),
                estimate=ItemEstimate.unknown(T),
                data=ArmStatistics.empty(len(self.pool)),
                variances=self.noise_var,
            )
        )

    def _prepared(self, belief: RageBelief) -> RageBelief:
        r"""The belief with the counts of the next round."""
        if self.burn_in is not None and belief.t < 1:
            return replace(belief, plan=self.burn_in.counts(belief.t))
        rows = belief.active
        if rows.numel() == 0:
            return replace(belief, plan=None)
        design = self._design(belief, self.Z[rows])
        if design.value <= 0:  # equal items, or items whose value is 0 for certain
            above = self.threshold is None or self.threshold < 0
            side = belief.side.index_fill(0, rows, ABOVE if above else BELOW)
            return replace(belief, side=side, plan=None)
        size = self.n_draws(belief.t, design.value)
        return replace(belief, plan=counts_at_least(design.weights, size))

    def _design(self, belief: RageBelief, items: Tensor) -> Design:
        r"""The design for undecided items, or for their differences."""
        assert belief.variances is not None  # the burn-in is over
        best = self.threshold is None
        return optimal_design(
            self.Phi,
            # Differences do not change with the origin; those of items that are not
            # measurable themselves may well be.
            items - items[0] if best else items,
            pairs_factor=1.0 if best else None,
            noise_var=belief.variances,
            tol=DESIGN_TOLERANCE,
        )

    def size(self, belief: RageBelief) -> int:
        r"""Measurements that the round still needs."""
        return int(belief.missing.sum())

    def rows(self, belief: RageBelief, seed: int, round: int) -> Tensor:
        r"""The rows that the round still needs."""
        counts = belief.missing
        return torch.arange(len(counts)).repeat_interleave(counts)

    def learn(self, belief: RageBelief, step: Step) -> RageBelief:
        r"""The belief with more measurements, after a round if they complete it."""
        new = step.new
        data = ArmStatistics.of_observations(new, len(self.pool))
        belief = replace(belief, data=belief.data.merge(data))
        if belief.t < 1:
            n_burn_in = belief.n_burn_in + new.n_measured
            belief = replace(belief, n_burn_in=n_burn_in)
        if belief.plan is None or bool((belief.missing > 0).any()):
            return belief
        return self._prepared(self._evaluated(belief))

    def _evaluated(self, belief: RageBelief) -> RageBelief:
        r"""The round's decisions, and the next round.

        Source:
            Weltz et al. (2023), Algorithm 2, lines 11 to 23, with erratum 1
            (papers/weltz2023/errata.md).
        """
        if self.burn_in is not None and belief.t < 1:
            return self.burn_in.evaluated(belief)
        rows = belief.active
        fit = belief.data.fit(self.Phi, belief.variances)
        Z = self.Z[rows]
        values, norms = Z @ fit.theta, fit.squared_norms(Z)
        scale = self.sample_constant / 2
        sigma = (scale * norms).sqrt()
        if self.threshold is None:
            side = eliminate_worse(belief.side, rows, values, self.width(belief.t))
            chances = probability_best(Z, fit, scale)
        else:
            level = self.threshold
            side = eliminate_rows(
                belief.side, rows, values, level, self.width(belief.t)
            )
            chances = gaussian_probability_above(values, sigma, level)
        half = sigma * math.sqrt(2 * self._log_term(belief.t))
        estimate = belief.estimate.updated(rows, values, half, sigma, chances)
        return replace(belief.next_round(), side=side, estimate=estimate)

    # --- what is to come --------------------------------------------------------------

    def forecast(self, belief: RageBelief, told: int) -> Forecast:
        r"""A forecast by a rehearsal, once there is an estimate."""
        if belief.t <= 1:
            return first_round_of(self.size(belief))
        return rehearsed(self._coming(belief), told)

    def _coming(self, belief: RageBelief) -> Iterator[int]:
        while belief.plan is not None:
            yield self.size(belief)
            belief = self._prepared(self._foreseen(belief))

    def _foreseen(self, belief: RageBelief) -> RageBelief:
        r"""The decisions of the round if the estimates in hand were exact."""
        rows, before = belief.active, belief.t - 1
        values = belief.estimate.mean[rows]
        sigma = self.width(before) / math.sqrt(2 * self._log_term(before))
        if self.threshold is None:
            gaps = likely_gaps(values - values.max(), sigma)
            gaps[values.argmax()] = 0.0
            side = eliminate_worse(belief.side, rows, gaps, self.width(belief.t))
        else:
            gaps = likely_gaps(values - self.threshold, sigma)
            side = eliminate_rows(belief.side, rows, gaps, 0.0, self.width(belief.t))
        return replace(belief.next_round(), side=side)

    # --- the answer -------------------------------------------------------------------

    def answer(self, belief: RageBelief, as_claimed: bool = False) -> Classification:
        r"""The side of every item."""
        side, estimate = belief.side, belief.estimate
        return Classification(
            above=side == ABOVE,
            below=side == BELOW,
            undecided=side == UNDECIDED,
            lower=estimate.mean - estimate.half_width,
            upper=estimate.mean + estimate.half_width,
            mean=estimate.mean,
            sigma=estimate.sigma,
            probability_above=estimate.probability_above,
            guarantee=self.guarantee,
            pool=self.items,
        )


@dataclass(frozen=True, eq=False)
class GapEliminationStrategy(Strategy):
    r"""Rounds of least squares on optimal designs that drop what is clear.

    Round ``t`` measures each row ``ceil(tau lambda)`` times, so that all undecided
    items (or their differences) are known to ``2^-t``, and decides what is clear by
    more. A round is evaluated when its counts are reached, with all that was measured
    during it; what was abandoned is asked again. Rounds reach millions of
    measurements: ``planned_counts`` has the counts that ``ask`` spells out row by row,
    and ``tell`` takes means, ``Observations(indices, means, yvar, counts=...)``.

    Args:
        pool: What can be measured; ``pool.features``, or ``pool.X`` without.
        threshold: The level, units of ``y``; ``None`` looks for the best item.
        targets: The items to decide on, with as many features; default ``pool``.
        delta: The failure probability.
        max_observations: Stop before a round that would exceed so many measurements.

    Raises:
        ValueError: If a number is out of range.
        BotorchTensorDimensionError: If the items have other features than the pool.
    """

    threshold: float | None = None
    _: KW_ONLY
    targets: Pool | None = None
    delta: float = 0.05
    max_observations: int | None = None
    max_repeats: None = field(init=False, default=None)
    batch_size: None = field(init=False, default=None)

    elimination_constant: ClassVar[float] = 1.0
    theorem: ClassVar[str]

    def __post_init__(self) -> None:
        self._check_rounds()
        if self.threshold is not None:
            finite_number(self.threshold, "threshold")
        in_interval(self.delta, "delta", 0.0, 1.0)
        check_targets(self.targets)
        given, d = (features_of(p).shape[1] for p in (self.items, self.pool))
        if given != d:
            raise BotorchTensorDimensionError(
                f"Expected `targets` with {d} features as `pool`, but got {given}."
            )

    # --- parts ------------------------------------------------------------------------

    @cached_property
    def algorithm(self) -> GapElimination:
        r"""The rounds of the algorithm."""
        return GapElimination(
            self.pool,
            self.items,
            self.threshold,
            self.delta,
            self.variances,
            self.burn_in_plan,
            self.sample_constant,
            self.elimination_constant,
            self.guarantee,
        )

    @property
    def items(self) -> Pool:
        r"""The items to decide on."""
        return self.pool if self.targets is None else self.targets

    @property
    @abstractmethod
    def sample_constant(self) -> float:
        r"""``c`` in ``tau = c 4^t q log(8 t^2 |Z| / delta)``."""

    @property
    @abstractmethod
    def variances(self) -> Tensor | None:
        r"""``N`` noise variances that are known from the start."""

    @property
    def burn_in_plan(self) -> HeadBurnIn | None:
        r"""The rounds that estimate the variances; ``None`` where they are known."""
        return None

    @abstractmethod
    def _noise(self) -> str:
        r"""The assumption about the noise, in words."""

    def planned_counts(self, state: State) -> Tensor:
        r"""``N`` counts: how often each row of the pool is to be measured now.

        The same as ``ask(state).counts``, spread over the pool, without a list of all
        measurements.
        """
        check_state(self, state)
        if state.plan is None:
            return state.belief.missing
        return torch.bincount(self.missing(state), minlength=len(self.pool))

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        what, bounds = "`above` and `below` are right", ""
        if self.threshold is None:
            what = "`above` is the best item once nothing is undecided"
            bounds = " `lower` and `upper` hold for each item by itself."
        return (
            f"With probability {1 - self.delta:g} {what}; assumes f linear in the "
            f"features and independent Gaussian noise {self._noise()} (Weltz et al. "
            f"2023, {self.theorem}).{bounds}"
        )


def log_term(t: int, n_items: int, delta: float) -> float:
    r"""``log(8 t^2 |Z| / delta)``.

    Source:
        Weltz et al. (2023), Algorithm 2, line 8, and Algorithm 5, line 6.
    """
    return math.log(8 * t**2 * n_items / delta)


def counts_at_least(weights: Tensor, size: float) -> Tensor:
    r"""``ceil(size * weights)`` as int64, up to rounding of the product."""
    shares = countable(size) * weights
    return (shares * (1 - 1e-12)).ceil().long()


def eliminate_worse(side: Tensor, rows: Tensor, values: Tensor, width: float) -> Tensor:
    r"""The sides after one round of best-arm elimination; a single survivor is best.

    Args:
        side: ``T`` codes.
        rows: The active items.
        values: Their estimates, units of ``y``.
        width: An item goes if another one's estimate is better by more than this.

    Source:
        Weltz et al. (2023), Algorithm 2, line 13; the test is strict.
    """
    worse = values.max() - values > width
    side = side.index_fill(0, rows[worse], BELOW)
    left = rows[~worse]
    return side.index_fill(0, left, ABOVE) if left.numel() == 1 else side


def probability_best(Z: Tensor, fit: LeastSquares, scale: float) -> Tensor:
    r"""``P(z beats the best other item)``, judged by the estimated best two.

    Args:
        Z: ``T x d`` items.
        fit: Their estimate.
        scale: What the variances of the fit are multiplied by.
    """
    values = Z @ fit.theta
    best = int(values.argmax())
    others = torch.arange(len(values)) != best
    sigma = (scale * fit.squared_norms(Z[others] - Z[best])).sqrt()
    gaps = (values[others] - values[best]) / sigma.clamp_min(
        torch.finfo(sigma.dtype).tiny
    )
    chances = torch.full_like(values, 0.5)
    chances[others] = torch.special.ndtr(gaps)
    if len(values) > 1:
        chances[best] = 1 - chances[others].max()
    return chances
