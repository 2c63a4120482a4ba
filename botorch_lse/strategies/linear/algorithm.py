r"""Runs on linear features: least squares on all data, batches by optimal design."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.anytime import (
    AnytimeWidth,
    BatchMartingale,
    Information,
    StitchedWidth,
)
from botorch_lse.confidence.audit import KNOWN
from botorch_lse.confidence.classify import BELOW, UNDECIDED, Sides
from botorch_lse.confidence.judges import Judge
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.data.classification import Classification
from botorch_lse.data.observations import Observations, derived
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.designs import DesignWarning, optimal_design, round_design
from botorch_lse.designs.basis import outside_span, span_map
from botorch_lse.designs.certificate import whiten
from botorch_lse.estimators import (
    ArmStatistics,
    head_designs,
    head_from_arms,
    quadratic_features,
)
from botorch_lse.goals.base import Differences, Goal, Intervals
from botorch_lse.goals.gaps import squared_gaps
from botorch_lse.goals.regions import Region
from botorch_lse.models.gaussian_process import MEMORY_BUDGET
from botorch_lse.strategies.algorithm import (
    BUDGET,
    DECIDED,
    OUT_OF_REACH,
    Algorithm,
    AlgorithmFacts,
    AuditFacts,
    Step,
    facts_for_audits,
    judge_of,
)
from botorch_lse.strategies.forecast import MOST, Forecast, smallest
from botorch_lse.strategies.loop import SimulatedRun
from botorch_lse.surrogate.burn_in import BurnInData

ALARM = 1e-3
"""The probability that one of the two tests of the noise ever gives a false alarm."""
SUM_ROUNDING = 1e-9
"""The share of the sum of squares below which a difference of two sums is rounding."""


GROWTH = 0.1
"""The share of the data so far that the next batch adds."""
LEAST = 2
"""The number of measurements per dimension in a batch of the strategy's own size."""
FIRST_TOLERANCE = 1e-3
"""The gap of the initial design, on which the widths of the whole run rest."""
DESIGN_TOLERANCE = 2e-2
"""The gap of a batch's design: a worse design costs a few measurements, no validity."""
START = 0.1
"""The measurements of the initial design that are added when a batch is planned.
Every direction then has a finite norm, and unmeasured ones by far the largest."""
ENOUGH = 2
"""The measurements per point of a design from which efficient rounding is used.
With fewer it would give every point one, so that quota rounding is better."""
STRAY = 1.5
"""The standard deviations by which the width of a forecast is reduced.
An estimate varies along a run by about as much, and a row is decided the first time
that its interval clears the level, which is earlier than at a constant estimate."""
Measure = Callable[[Tensor, Tensor], Tensor | tuple[Tensor, Tensor]]
"""A function from rows, and how often to measure each, to their means.
``k`` or ``k x m`` means, or these and their ``yvar``, which a burn-in needs."""


class NoiseWarning(BotorchWarning):
    r"""The warning that noise is larger or heavier-tailed than stated: no guarantee."""


# --- items ----------------------------------------------------------------------------


def features_of(pool: Pool) -> Tensor:
    r"""The features of the pool, else its inputs (``N x d``)."""
    return pool.X if pool.features is None else pool.features


# --- what is known --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sums:
    r"""Weighted sums over all measurements, which suffice for least squares.

    They are of the scaled rows ``z = phi / sd``, features over the noise scale.

    Args:
        counts: ``N`` int64, how often each row was measured.
        V: ``h x h``, ``sum z z'``.
        moment: ``h x m``, ``sum z y / sd``.
        squares: ``m``, ``sum (y / sd)^2``, a mean of ``k`` counting ``k`` times.
        entries: How many values were given, a mean counting once.
    """

    counts: Tensor
    V: Tensor
    moment: Tensor
    squares: Tensor
    entries: int

    @classmethod
    def empty(cls, N: int, h: int, m: int) -> Sums:
        r"""The sums before any measurement; ``h`` features and ``m`` outputs."""
        moment = torch.zeros(h, m, dtype=torch.float64)
        V = torch.zeros(h, h, dtype=torch.float64)
        counts = torch.zeros(N, dtype=torch.long)
        return cls(counts, V, moment, torch.zeros(m, dtype=torch.float64), 0)

    @classmethod
    def of(
        cls, Phi: Tensor, noise_var: Tensor, rows: Tensor, y: Tensor, each: Tensor
    ) -> Sums:
        r"""The sums over some measurements.

        Args:
            Phi: ``N x h`` features.
            noise_var: ``N`` squared noise scales, fixed before these were measured.
            rows: ``n`` rows measured.
            y: ``n x m`` values, some of them means.
            each: ``n``, how many measurements each value is the mean of.
        """
        weights = (each / noise_var[rows]).unsqueeze(-1)
        Z = Phi[rows]
        counts = torch.zeros(len(Phi), dtype=torch.long).index_add(0, rows, each)
        return cls(
            counts,
            (weights * Z).mT @ Z,
            Z.mT @ (weights * y),
            (weights * y.square()).sum(dim=0),
            len(rows),
        )

    def add(self, other: Sums) -> Sums:
        r"""The sums over the measurements of both."""
        return Sums(
            self.counts + other.counts,
            self.V + other.V,
            self.moment + other.moment,
            self.squares + other.squares,
            self.entries + other.entries,
        )

    @property
    def n(self) -> int:
        r"""The number of measurements in all."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class LinearBelief:
    r"""The belief about ``T`` items, ``m`` outputs, ``h`` features after the rounds.

    Args:
        sums: The sums over all measurements.
        noise_var: ``N`` squared noise scales of future measurements.
        Z: ``T x h`` features of the items.
        sides: The sides of the items.
        lower: ``T x m``, the largest lower ends so far, units of ``y``; where intervals
            contradict each other, those of the current ones.
        upper: ``T x m``, the smallest upper ends so far, likewise.
        information: The data's information ``V``, relative to the initial design's.
        width: The confidence width that holds for all directions.
        martingale: Sums of the items' batch estimates, where they are used.
        contradicted: ``T x m`` bools: whether intervals have nothing in common.
        alarm: The first sign that the noise is not what was stated, as a clause;
            ``None`` if there was none.
        burn_in: The burn-in's measurements; ``None`` where the noise is known.
    """

    sums: Sums
    noise_var: Tensor
    Z: Tensor
    sides: Sides
    lower: Tensor
    upper: Tensor
    information: Information
    width: StitchedWidth
    martingale: BatchMartingale | None
    contradicted: Tensor
    alarm: str | None = None
    burn_in: BurnInData | None = None

    def reopened(self) -> LinearBelief:
        r"""The belief with the same estimates and every item undecided."""
        every = torch.ones_like(self.sides.candidates)
        return replace(self, sides=self.sides.reopened(every))

    @cached_property
    def theta(self) -> Tensor:
        r"""The least squares estimate from all measurements (``h x m``)."""
        return self.information.solve(self.sums.moment)

    @cached_property
    def mean(self) -> Tensor:
        r"""The estimates of the items' values (``T x m``), units of ``y``."""
        return self.Z @ self.theta

    @cached_property
    def sigma(self) -> Tensor:
        r"""The standard deviations of items (``T``); infinite where not determined."""
        return self.information.squared_norms(self.Z).sqrt()

    @cached_property
    def open(self) -> Tensor:
        r"""The numbers of the undecided items, ascending."""
        return (self.sides.side == UNDECIDED).nonzero().view(-1)

    @cached_property
    def left(self) -> Tensor:
        r"""The numbers of the items that are not below."""
        return (self.sides.side != BELOW).nonzero().view(-1)

    def pair_widths(self, i: Tensor, j: Tensor, factor: float) -> Tensor:
        r"""The widths of ``f(i) - factor f(j)`` (``len(i) x len(j)``)."""
        first, second = self.Z[i], factor * self.Z[j]
        return self.width.squared_differences(self.information, first, second).sqrt()


@dataclass(frozen=True, eq=False)
class Questions:
    r"""The linear combinations of features that are still to be estimated.

    Each belongs to an undecided item, or to a difference of two items, whose sign
    decides.

    Args:
        vectors: ``Q x h`` directions ``v``; the value in question is ``v' theta``.
        gaps: ``Q`` estimated distances of that value from being decided the other way,
            at least 0, units of ``y``; ``None`` before there are estimates.
    """

    vectors: Tensor
    gaps: Tensor | None = None


# --- goals ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearItems:
    r"""The belief about items on linear features, as goals ask for it.

    Args:
        known: The belief, in units of each output's noise.
        unit: For each output the unit of its noise.
    """

    known: LinearBelief
    unit: tuple[float, ...]

    memory_budget = MEMORY_BUDGET
    correlation = None

    @property
    def scale(self) -> tuple[float, ...]:
        r"""The unit of each output's noise, in which margins are told."""
        return self.unit

    def variance(self, output: int, items: Tensor) -> Tensor:
        r"""The variances of some items, of least squares."""
        return (self.unit[output] * self.known.sigma[items]).square()

    def differences(self, output: int, rivals: Tensor, factor: float) -> Differences:
        r"""The spread and the interval of ``f(i) - factor f(rival)``."""
        information, second = self.known.information, factor * self.known.Z[rivals]

        def at(items: Tensor) -> tuple[Tensor, Tensor]:
            apart = self.known.Z[items].unsqueeze(1) - second
            norms = information.squared_norms(apart.flatten(0, 1)).view(apart.shape[:2])
            half = self.known.pair_widths(items, rivals, factor)
            return self.unit[output] * norms.sqrt(), self.unit[output] * half

        return at


@runtime_checkable
class AsksForDirections(Protocol):
    r"""The interface of goals that say themselves what is still to be estimated.

    Else it is the values of the undecided items.
    """

    def directions(self, sides: Sides, known: LinearBelief) -> Questions:
        r"""The directions that are still to be estimated, and their gaps."""


# --- the burn-in ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BurnInPlan:
    r"""HEAD's two stages, after which the noise of each row is known.

    Args:
        X: ``N x d`` features as given.
        bounds: The least and the largest variance.
        n: Planned measurements.
        delta: The strategy's failure probability, half of which is spent here.
    """

    X: Tensor
    bounds: tuple[float, float]
    n: int
    delta: float

    @cached_property
    def _stages(self) -> tuple[Tensor, Tensor]:
        return head_designs(self.X).counts(self.n)

    def _stage(self, data: BurnInData) -> int:
        r"""The current stage: 0 while the first one needs measurements, else 1."""
        return int(bool((data.first.counts >= self._stages[0]).all()))

    @property
    def repeats(self) -> int:
        r"""The number of measurements of the row that both stages measure most."""
        return int(torch.stack(self._stages).sum(dim=0).max())

    def missing(self, data: BurnInData) -> Tensor:
        r"""The measurements that the current stage still needs (``N`` counts)."""
        stage = self._stage(data)
        return (self._stages[stage] - data.counts(stage)).clamp_min(0)

    def counts(self, data: BurnInData, request: PlanRequest) -> Tensor:
        r"""The next batch, which is part of the stage (``N`` counts)."""
        out = torch.bincount(request.pending, minlength=len(self.X))
        counts = (self.missing(data) - out).clamp_min(0)
        counts = torch.minimum(counts, request.left)
        excess = (counts.cumsum(dim=0) - request.size).clamp_min(0)
        return (counts - excess).clamp_min(0)

    def after(self, belief: LinearBelief, new: Observations) -> LinearBelief:
        r"""The belief after one more batch of the burn-in.

        It has the noise of each row if the batch was the last.
        """
        data = belief.burn_in
        assert data is not None  # it lasts
        data = data.add(self._stage(data), new)
        if bool(self.missing(data).any()):  # of this stage, or of the next one
            return replace(belief, burn_in=data)
        noise_var = self.inflated(data.first, data.second)
        data = replace(data, variances=noise_var)
        return replace(belief, burn_in=data, noise_var=noise_var)

    def inflated(self, first: ArmStatistics, second: ArmStatistics) -> Tensor:
        r"""The upper bounds of variances, with probability ``1 - delta / 2`` (``N``).

        ``s2 + sqrt(2) s2_max |phi_x| sqrt(2 log(2 N / delta))``, at most ``s2_max``,
        ``|phi_x|`` the norm of the quadratic features in the second stage's design.
        """
        largest = self.bounds[1]
        found = head_from_arms(self.X, first, second, self.bounds).variances
        quadratic = quadratic_features(self.X)
        norms = second.fit(quadratic).squared_norms(quadratic)
        reach = math.sqrt(2 * math.log(2 * len(self.X) / self.delta))
        return (found + math.sqrt(2) * largest * norms.sqrt() * reach).clamp_max(
            largest
        )


# --- the algorithm --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LinearAlgorithm(Algorithm):
    r"""The algorithm of a run on linear features.

    Args:
        pool: The rows that can be measured.
        items: The items to decide about, in the span of the pool's features.
        goal: The question about the items.
        noise_var: ``N`` squared noise scales; with a burn-in the largest variance.
        noise_in_words: The assumption about the noise.
        delta: The failure probability.
        design: See ``LinearStrategy``, as are the next ones.
        batch_size: Measurements per round.
        max_repeats: The largest number of measurements of one row.
        burn_in: The measurements that tell the noise; ``None`` where it is known.
        unit: For each output the unit of its noise; default 1.
    """

    pool: Pool
    items: Pool
    goal: Goal
    noise_var: Tensor
    noise_in_words: str
    delta: float
    design: str
    batch_size: int | None
    max_repeats: int | None
    burn_in: BurnInPlan | None = None
    unit: tuple[float, ...] = ()

    @cached_property
    def units(self) -> tuple[float, ...]:
        r"""The unit of each output's noise."""
        return self.unit or (1.0,) * self.goal.facts.n_outputs

    @cached_property
    def X(self) -> Tensor:
        r"""The features of the pool as given (``N x d``)."""
        return features_of(self.pool)

    @cached_property
    def _to_span(self) -> Tensor:
        return span_map(self.X)

    @cached_property
    def Phi(self) -> Tensor:
        r"""The features of the pool in coordinates of their span (``N x h``)."""
        return self.X @ self._to_span

    @cached_property
    def Z(self) -> Tensor:
        r"""The features of the items, in the same coordinates (``T x h``)."""
        return features_of(self.items) @ self._to_span

    def check_items(self) -> None:
        r"""Refuse items that no measurement predicts.

        Raises:
            ValueError: If all features are zero, or an item is outside their span.
            BotorchTensorDimensionError: If the items have other features.
        """
        X, items = self.X, features_of(self.items)
        if not bool((X != 0).any()):
            raise ValueError(
                "Expected a feature other than zero in `pool`, but all are zero."
            )
        if items.shape[1] != X.shape[1]:
            raise BotorchTensorDimensionError(
                f"Expected `targets` with {X.shape[1]} features as `pool`, but got "
                f"{items.shape[1]}."
            )
        outside = outside_span(items, self._to_span)
        if bool(outside.any()):
            raise ValueError(
                "Expected `targets` in the span of the pool's features, but item "
                f"{int(outside.nonzero()[0])} is not: no measurement of the pool "
                "predicts it. Leave it out, or add rows to the pool."
            )

    @cached_property
    def W(self) -> Tensor:
        r"""The information of one measurement of the first G-design (``h x h``)."""
        rows = self.Phi / self.noise_var.sqrt().unsqueeze(-1)
        design = optimal_design(rows, tol=FIRST_TOLERANCE)
        return (design.weights.unsqueeze(-1) * rows).mT @ rows

    @cached_property
    def widths(self) -> AnytimeWidth:
        r"""The widths, fixed before the first measurement.

        Half of ``delta`` is the burn-in's, where there is one.
        """
        rank = self.Phi.shape[1]
        spans = self.batch_size is None or self.batch_size >= LEAST * rank
        by_items = isinstance(self.goal, Region)  # each has an interval of its own
        return AnytimeWidth(
            self.W,
            self.delta if self.burn_in is None else self.delta / 2,
            len(self.items),
            self.goal.facts.n_outputs,
            batches=by_items and spans and self.max_repeats is None,
        )

    # --- rounds -----------------------------------------------------------------------

    def start(self, seed: int) -> LinearBelief:
        r"""The belief before any observation, with infinite intervals.

        Args:
            seed: The run's seed; not used, since nothing here is random.
        """
        (T, h), m, widths = self.Z.shape, self.goal.facts.n_outputs, self.widths
        data = None if self.burn_in is None else BurnInData.empty(len(self.pool))
        unknown = torch.full((T, m), torch.inf, dtype=torch.float64)
        sums = Sums.empty(len(self.pool), h, m)
        martingale = None
        if widths.uses_martingales:
            martingale = BatchMartingale.start(self.Z, self.W, m)
        return LinearBelief(
            sums,
            self.noise_var,
            self.Z,
            self.goal.start(T),
            -unknown,
            unknown,
            Information.of(sums.V, self.W),
            widths.stitched(),
            martingale,
            torch.zeros(T, m, dtype=torch.bool),
            burn_in=data,
        )

    def round_size(self, belief: LinearBelief, room: int | None) -> int:
        r"""The batch size if one was given, else one that grows with the data.

        Else the rest of the burn-in's stage; after it a tenth of the data so far, at
        least two measurements per dimension.
        """
        plan, data = self.burn_in, belief.burn_in
        if self.batch_size is not None:
            size = self.batch_size
        elif plan is not None and data is not None and data.lasts:
            size = int(plan.missing(data).sum())
        else:
            grown = math.ceil(GROWTH * belief.sums.n)
            size = max(LEAST * self.Phi.shape[1], grown)
        return size if room is None else min(size, room)

    def plan(self, belief: LinearBelief, request: PlanRequest) -> Tensor:
        r"""The rows to measure next, replicates included; see ``Algorithm.plan``."""
        counts = self.planned_batch(belief, request)
        return torch.arange(len(counts)).repeat_interleave(counts)

    def takes_any_rows(self, belief: LinearBelief) -> bool:
        r"""Whether rows may be excluded now: a burn-in needs those of its stages."""
        return belief.burn_in is None or not belief.burn_in.lasts

    def usable(self, belief: LinearBelief, request: PlanRequest) -> Tensor:
        r"""The measurements that may be planned, in a burn-in what it lacks (``N``)."""
        plan, data = self.burn_in, belief.burn_in
        if plan is not None and data is not None and data.lasts:
            return plan.counts(data, request)
        return super().usable(belief, request)

    def limit(
        self, belief: LinearBelief, left: Tensor, reason: str | None
    ) -> str | None:
        r"""The reason to end a run that goes no further; see ``Algorithm.limit``."""
        if reason is None and self._is_out_of_reach(belief, left):
            return OUT_OF_REACH
        return reason

    def _is_out_of_reach(self, belief: LinearBelief, left: Tensor) -> bool:
        r"""Whether a direction stays unknown without which nothing is decided."""
        if belief.information.is_complete:
            return False
        known = (belief.sums.counts > 0) | (left > 0)
        return bool(outside_span(self.Phi, span_map(self.Phi[known])).any())

    def planned_batch(self, belief: LinearBelief, request: PlanRequest) -> Tensor:
        r"""The next batch, in a burn-in part of its stage (``N`` counts)."""
        plan, data = self.burn_in, belief.burn_in
        if plan is not None and data is not None and data.lasts:
            return plan.counts(data, request)
        rows = self._scaled_rows(belief)
        known = torch.zeros_like(self.W) if belief.martingale else belief.sums.V
        out = rows[request.pending]
        usable = (request.left > 0).nonzero().view(-1)
        if len(usable) == 0:  # all are excluded, out, or measured as often as allowed
            return torch.zeros_like(request.left)
        weights = torch.zeros_like(rows[:, 0])
        weights[usable] = next_weights(
            rows[usable],
            known + out.mT @ out,
            self.W,
            self._directions_to_measure(belief),
            request.size,
            self.design == "gaps",
        )
        return rounded(weights, request.size, request.left)

    def _scaled_rows(self, belief: LinearBelief) -> Tensor:
        return self.Phi / belief.noise_var.sqrt().unsqueeze(-1)

    def _directions_to_measure(self, belief: LinearBelief) -> Questions:
        r"""The directions that the next batch is to estimate.

        All rows of the pool until the data determine every direction, then the goal's
        undecided directions.
        """
        if not belief.information.is_complete:
            return Questions(self.Phi)
        return self._questions(belief)

    def _questions(self, belief: LinearBelief) -> Questions:
        r"""The directions that are still to be estimated, and their gaps.

        By default the features of undecided items, and how far all their outputs may
        move, in units of their noise, until the answer changes.
        """
        if isinstance(self.goal, AsksForDirections):
            return self.goal.directions(belief.sides, belief)
        seen, rows = self.seen(belief), belief.open
        region = self.goal.region(seen.mean)
        assert region is not None  # else the goal asks for directions
        mean = [own[rows] for own in seen.mean]
        margin, _ = region.cells.at(rows).margins(mean, mean, self.units)
        pairs = zip(region.accuracies, self.units, strict=True)
        least = min(epsilon / unit for epsilon, unit in pairs)
        return Questions(belief.Z[rows], margin.abs() + least)

    def seen(self, belief: LinearBelief) -> Intervals:
        r"""The intervals of the items as goals read them, units of ``y``."""
        sigma = belief.sigma.unsqueeze(-1).expand_as(belief.mean)
        columns = (belief.lower, belief.upper, belief.mean, sigma)
        each = zip(*(part.unbind(dim=-1) for part in columns), strict=True)
        against = belief.contradicted.unbind(dim=-1)
        regions = tuple(
            Regions(unit * low, unit * high, unit * mean, unit * s, self.items, bad)
            for unit, (low, high, mean, s), bad in zip(
                self.units, each, against, strict=True
            )
        )
        rows = torch.arange(len(self.items))
        return Intervals(regions, rows, rows, LinearItems(belief, self.units))

    def _in_units(self, y: Tensor) -> Tensor:
        r"""Values of the outputs in units of their noise."""
        if not self.unit:
            return y
        if y.ndim == 1:
            return y / self.unit[0]
        return y / torch.tensor(self.unit).to(y)

    @property
    def facts(self) -> AlgorithmFacts:  # type: ignore[override]
        r"""The facts: the martingale's widths hold only for planned batches."""
        return AlgorithmFacts(needs_plans=self.widths.uses_martingales)

    def learn(self, belief: LinearBelief, step: Step) -> LinearBelief:
        r"""The belief after one more round; see ``Algorithm.learn``."""
        new = replace(step.new, y=self._in_units(step.new.y))
        if step.is_planned:
            belief = with_martingale(belief, self.Phi, new, self.widths)
        belief = with_batch(belief, self.Phi, new, self.widths)
        if belief.alarm is not None and belief.alarm not in self._warned:
            self._warned.add(belief.alarm)
            warn_of(belief.alarm)
        belief = intersected(belief, self.widths, self.delta)
        if belief.information.is_complete and belief.open.numel():
            sides = self.goal.update(belief.sides, self.seen(belief))
            belief = replace(belief, sides=sides)
        plan, data = self.burn_in, belief.burn_in
        if plan is not None and data is not None and data.lasts:
            return plan.after(belief, new)
        return belief

    @cached_property
    def _warned(self) -> set[str]:
        r"""The alarms already warned of: a replay does not warn again."""
        return set()

    def simulate(
        self,
        measure: Measure,
        complete: Callable[[Observations], Observations],
        limit: int | None,
        seed: int,
    ) -> SimulatedRun:
        r"""A whole run whose measurements come from a function, as counts and means.

        The same as asking and telling means, without a list of millions of rows.

        Args:
            measure: From ``k`` rows and ``k`` counts to means; see ``Measure``.
            complete: How the strategy checks and completes observations.
            limit: The budget.
            seed: The seed of ``init``.
        """
        belief, rounds, reason = self.start(seed), 0, DECIDED
        none, N = torch.empty(0, dtype=torch.long), len(self.pool)
        while belief.open.numel():
            n = belief.sums.n
            size = self.round_size(belief, None if limit is None else limit - n)
            left = torch.full((N,), torch.iinfo(torch.long).max)
            if self.max_repeats is not None:
                left = self.max_repeats - belief.sums.counts
            if size <= 0 or not bool((left > 0).any()):
                reason = BUDGET
                break
            request = PlanRequest(size, left, none, seed, rounds)
            counts = self.planned_batch(belief, request)
            rows = counts.nonzero().view(-1)
            found = measure(rows, counts[rows])
            y, yvar = found if isinstance(found, tuple) else (found, None)
            new = Observations(rows, y, yvar, torch.tensor(rounds), counts[rows])
            belief = self.learn(belief, Step(complete(new), new, seed, 1, True))
            rounds += 1
        answer = self.answer(belief)
        return SimulatedRun(answer, belief.sums.n, rounds, reason)

    # --- audits -----------------------------------------------------------------------

    @cached_property
    def audit_facts(self) -> AuditFacts | None:  # type: ignore[override]
        r"""The facts for audits; ``None`` where points of their own are decided."""
        if self.items is not self.pool:
            return None
        # The noise is only bounded, but where it is estimated.
        is_gaussian = self.burn_in is not None
        return facts_for_audits(
            self.goal, is_gaussian=is_gaussian, noise_in_words=self.noise_in_words
        )

    def audit_judge(self, belief: LinearBelief) -> Judge:
        r"""The judge by which an audit compares values with the present claim."""
        judge = judge_of(self.goal, self.seen(belief).mean)
        assert judge is not None  # else there are no facts for audits
        return judge

    def audited(self, belief: LinearBelief, new: Observations) -> Observations:
        r"""The values with their noise variances, those of means divided."""
        own = (belief.noise_var[new.indices] / new.replicates).unsqueeze(-1)
        yvar = own * torch.tensor(self.units) ** 2
        return derived(new, yvar=yvar.view(new.y.shape))

    def audit_noise_kind(self, belief: LinearBelief) -> str:
        r"""The kind of knowledge about the noise: a bound of its scale."""
        return KNOWN

    # --- the answer -------------------------------------------------------------------

    @property
    def guarantee(self) -> str:
        r"""The claimed probability and its assumptions, as a sentence."""
        d = self.X.shape[1]
        return (
            f"With probability {written(1 - self.delta)}, {self.goal.facts.promise}; "
            f"assumes {self.noise_in_words}, independent within a batch, f linear in "
            f"the {d} feature{'s' if d > 1 else ''}."
        )

    def answer(self, belief: LinearBelief, as_claimed: bool = False) -> Classification:
        r"""The side of every item, and whether the data contradict the assumptions."""
        claim = self.guarantee
        if belief.alarm is not None:
            claim = f"{claim} {contradicted(belief.alarm)}"
        return self.goal.answer(belief.sides, self.seen(belief), claim)

    def forecast(self, belief: LinearBelief, told: int) -> Forecast:
        r"""The expected number of further evaluations until everything is decided.

        The smallest number after which every width is below its gap.
        """
        if not belief.information.is_complete:
            return Forecast(None, "The measurements do not span the features yet.")
        questions, rows = self._questions(belief), self._scaled_rows(belief)
        assert questions.gaps is not None  # the data span the features
        norms = belief.information.squared_norms(questions.vectors)
        gaps = squared_gaps(questions.gaps, norms, 0.0).sqrt()
        start = None
        if belief.martingale is not None:
            start = BatchMartingale.start(questions.vectors, self.W, 1)

        def suffices(n: int) -> bool:
            V = belief.sums.V
            weights = next_weights(rows, V, self.W, questions, n, True)
            more = n * (weights.unsqueeze(-1) * rows).mT @ rows
            information = Information.of(V + more, self.W)
            squared = belief.width.squared(information, questions.vectors)
            norms = information.squared_norms(questions.vectors)
            if start is not None:  # as if all batches were alike
                alike = replace(start, precision=1 / norms)
                scalar = alike.squared(self.widths.target_delta)
                squared = torch.minimum(squared, scalar)
            return bool((squared.sqrt() - STRAY * norms.sqrt() <= gaps).all())

        basis = (
            f"Assumes the estimated gaps of the {belief.open.numel()} undecided items "
            "and an optimal design."
        )
        return Forecast(smallest(suffices, MOST), basis)


# --- planning -------------------------------------------------------------------------


def gap_weights(questions: Questions, norms: Tensor) -> Tensor | None:
    r"""The weights of directions: one over the squared gaps.

    A gap below its standard error counts as that: it is not known any better.

    Args:
        questions: ``Q`` directions with gaps.
        norms: Their ``Q`` squared standard errors.

    Returns:
        ``Q`` weights; ``None`` if the gaps are not known.
    """
    if questions.gaps is None:
        return None
    floored = torch.maximum(questions.gaps.square(), norms)
    weights = floored.clamp_min(torch.finfo(norms.dtype).tiny).reciprocal()
    return torch.where(weights.isfinite(), weights, 0.0)


def next_weights(
    rows: Tensor,
    known: Tensor,
    W: Tensor,
    questions: Questions,
    size: int,
    weighted: bool,
) -> Tensor:
    r"""The weights on rows that make the largest variance of a direction smallest.

    ``min over lam of max_v w_v v' (V + n sum lam z z')^-1 v`` for a batch of ``n``.

    Args:
        rows: ``N x h``, the features over their noise scales.
        known: ``h x h``, ``V`` of what was measured.
        W: ``h x h``, the initial design's information.
        questions: The directions.
        size: ``n``.
        weighted: Whether ``w_v`` are the gaps' weights, or ones.
    """
    L = torch.linalg.cholesky(known + START * W)
    norms = whiten(L, questions.vectors).square().sum(dim=-1)
    weights = gap_weights(questions, norms) if weighted else None
    if not bool((norms > 0).any()):
        return torch.full_like(rows[:, 0], 1 / len(rows))
    with warnings.catch_warnings():
        # A design that is a little worse costs a few measurements, no validity.
        warnings.simplefilter("ignore", DesignWarning)
        design = optimal_design(
            whiten(L, rows),
            whiten(L, questions.vectors),
            gamma=1 / size,
            target_weights=None if weights is None else weights / weights.max(),
            tol=DESIGN_TOLERANCE,
        )
    return design.weights


def rounded(weights: Tensor, size: int, left: Tensor) -> Tensor:
    r"""Whole counts that sum to ``size``, or to all that is ``left`` (``N``).

    Args:
        weights: ``N`` weights on the simplex.
        size: Measurements wanted.
        left: ``N``, how often each row may still be measured.
    """
    counts = torch.zeros_like(left)
    weights = torch.where(left > 0, weights, 0.0)
    while size > 0 and bool((left > counts).any()):
        if float(weights.sum()) <= 0:  # the design's rows are used up
            weights = (left > counts).to(weights)
        weights = weights / weights.sum()
        few = size < ENOUGH * int((weights > 0).sum())
        more = round_design(weights, size, "quota" if few else "pukelsheim")
        more = torch.minimum(more, left - counts)
        counts, size = counts + more, size - int(more.sum())
        weights = torch.where(left > counts, weights, 0.0)
    return counts


# --- rounds ---------------------------------------------------------------------------


def with_batch(
    belief: LinearBelief, Phi: Tensor, new: Observations, widths: AnytimeWidth
) -> LinearBelief:
    r"""The belief with the estimates after a batch.

    It has an alarm if this is the first batch whose noise is not as stated.

    Args:
        belief: The belief before.
        Phi: ``N x h`` features of what can be measured.
        new: The batch.
        widths: Fixed for the whole run.
    """
    sums = belief.sums.add(_sums(belief, Phi, new))
    information = Information.of(sums.V, widths.W)
    belief = replace(belief, sums=sums, information=information)
    if belief.alarm is not None:
        return belief
    found = noise_alarm(belief, new.indices, *standardised(belief, Phi, new))
    return replace(belief, alarm=found)


def with_martingale(
    belief: LinearBelief, Phi: Tensor, new: Observations, widths: AnytimeWidth
) -> LinearBelief:
    r"""The belief with a batch added to the martingale; called before ``with_batch``.

    Only for a batch whose rows were fixed before any of its values was known. Others
    must not enter: if the values of some rows decide whether others are reported, least
    squares on the batch is biased.
    """
    if belief.martingale is None:
        return belief
    batch = _sums(belief, Phi, new)
    alone = Information.of(batch.V, widths.W)
    martingale = belief.martingale.add(belief.Z, alone, batch.moment)
    return replace(belief, martingale=martingale)


def _sums(belief: LinearBelief, Phi: Tensor, new: Observations) -> Sums:
    y = new.y.view(len(new), -1)
    return Sums.of(Phi, belief.noise_var, new.indices, y, new.replicates)


def intersected(
    belief: LinearBelief, widths: AnytimeWidth, delta: float
) -> LinearBelief:
    r"""The belief with its intervals intersected with the current ones.

    It warns if they contradict earlier ones. Then nothing that earlier intervals
    decided is kept: all items are decided again.

    Args:
        belief: With the estimates after all data.
        widths: Fixed for the whole run.
        delta: The strategy's failure probability, for the warning.
    """
    squared = belief.width.squared(belief.information, belief.Z)
    ends = widths.interval(belief.mean, squared, belief.martingale)
    lower = torch.maximum(belief.lower, ends[0])
    upper = torch.minimum(belief.upper, ends[1])
    newly = (lower > upper) & ~belief.contradicted
    contradicted = belief.contradicted | newly
    lower = torch.where(contradicted, ends[0], lower)
    upper = torch.where(contradicted, ends[1], upper)
    for c in range(widths.m):
        found = Regions(
            lower[:, c],
            upper[:, c],
            belief.mean[:, c],
            belief.sigma,
            contradicted=newly[:, c],
        )
        claim = f"at all times, with probability {written(1 - delta)}"
        warn_if_empty(found, claim, "f not linear in the features")
    belief = replace(belief, lower=lower, upper=upper, contradicted=contradicted)
    return belief.reopened() if bool(contradicted.any()) else belief


# --- signs that the noise is not what was stated --------------------------------------


def noise_alarm(
    belief: LinearBelief, rows: Tensor, residuals: Tensor, reach: Tensor
) -> str | None:
    r"""A sign that residuals are larger than noise of the stated scale allows.

    Two tests, each with a false alarm with probability 0.001 at most along the run: a
    single residual beyond its own confidence width by more than ``sqrt(2 log(2 m n (n +
    1) / 0.001))`` scales, and the residual sum of squares of ``n`` values above ``n + 2
    sqrt(n x) + 2 x``, ``x = log(m n (n + 1) / 0.001)``.

    Args:
        belief: The belief with the estimates after these measurements.
        rows: ``n`` rows just measured.
        residuals: ``n x m``, in noise scales of the values.
        reach: ``n``, the widths of the estimates at these rows, in the same scales.

    Returns:
        A clause with the row of the largest residual; ``None`` if there is no sign.

    Source:
        The sum of squares: Hsu, Kakade and Zhang (2012), Theorem 1; least squares makes
        it smaller than that of the noise.
    """
    sums = belief.sums
    n, m = sums.entries, len(sums.squares)
    tests = math.log(m * n * (n + 1) / ALARM)
    excess = residuals.abs().amax(dim=-1) - reach
    worst = int(excess.argmax())
    spread = sums.squares - (belief.theta * sums.moment).sum(dim=0)
    spread = spread - SUM_ROUNDING * sums.squares
    limit = n + 2 * math.sqrt(n * tests) + 2 * tests
    if float(excess[worst]) > math.sqrt(2 * (tests + math.log(2))):
        return (
            f"a value of row {int(rows[worst])} is "
            f"{float(residuals[worst].abs().max()):.1f} noise scales off the estimate"
        )
    if bool((spread > limit).any()):
        largest = float(spread.max()) / n
        return (
            f"the mean squared residual is {largest:.2f} squared noise scales, last at "
            f"row {int(rows[worst])}"
        )
    return None


def contradicted(alarm: str) -> str:
    r"""The sentence that a guarantee adds after an alarm."""
    return (
        f"The data contradict the stated noise ({alarm}): the guarantee does not hold."
    )


def warn_of(alarm: str) -> None:
    r"""Warn that the noise is not as stated, and say what to do.

    Warns:
        NoiseWarning: Always.
    """
    warnings.warn(
        f"{contradicted(alarm)} The noise is larger or has heavier tails than stated, "
        "or f is not linear in the features. State a larger `noise_std`, or use the "
        "PAC strategies, which need no more than a variance.",
        NoiseWarning,
        stacklevel=2,
    )


def standardised(
    belief: LinearBelief, Phi: Tensor, new: Observations
) -> tuple[Tensor, Tensor]:
    r"""Residuals, and the estimates' widths, in noise scales of the values.

    Args:
        belief: The belief with the estimates after these measurements.
        Phi: ``N x h`` features.
        new: The measurements, of which an entry has the noise scale of a mean.
    """
    rows, y = new.indices, new.y.view(len(new), -1)
    roots = (new.replicates / belief.noise_var[rows]).sqrt()
    residuals = roots.unsqueeze(-1) * (y - Phi[rows] @ belief.theta)
    squared = belief.width.squared(belief.information, Phi[rows])
    return residuals, roots * squared.sqrt().nan_to_num(posinf=torch.inf)
