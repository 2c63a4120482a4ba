r"""Strategies on linear features: all data kept, any batches, anytime widths."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.confidence.anytime import AnytimeWidth, BatchMartingale, Information
from botorch_lse.confidence.classify import accuracy, with_contradictions
from botorch_lse.designs import DesignWarning, optimal_design, round_design
from botorch_lse.designs.basis import span_map
from botorch_lse.estimators import (
    ArmStatistics,
    head_designs,
    head_from_arms,
    quadratic_features,
)
from botorch_lse.problem import Classification, Observations, Pool
from botorch_lse.strategies.arguments import check_noise_once
from botorch_lse.strategies.forecast import Forecast, smallest, squared_gaps
from botorch_lse.strategies.linear.belief import (
    BurnIn,
    LinearBelief,
    Questions,
    check_items,
    contradicted,
    features_of,
    first_belief,
    intersected,
    warn_of,
    with_batch,
    with_martingale,
)
from botorch_lse.strategies.linear.goals import LinearGoal
from botorch_lse.strategies.loop import (
    BUDGET,
    DECIDED,
    Request,
    SimulatedRun,
    State,
    Strategy,
)
from botorch_lse.strategies.pareto import with_columns

GROWTH = 0.1
"""The share of the data so far that the next batch adds."""
LEAST = 2
"""A batch of the strategy's own size has so many measurements per dimension."""
FIRST_TOLERANCE = 1e-3
DESIGNS = ("uniform", "gaps")
DESIGN_TOLERANCE = 2e-2
START = 0.1
"""The first design's information that counts as known, in measurements: with it every
direction has a finite norm, and unmeasured ones by far the largest."""
ENOUGH = 2
"""So many measurements per point of the design round efficiently; below, quota."""
STRAY = 1.5
"""A row is decided as soon as its estimate strays to one side once; along a run the
largest stray is about so many standard deviations, and it shortens the wait."""
Measure = Callable[[Tensor, Tensor], Tensor | tuple[Tensor, Tensor]]
"""From ``k`` rows and how often each is measured to ``k`` or ``k x m`` means, or to
these and their ``yvar``, which a burn-in needs."""


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

    def missing(self, data: BurnIn) -> Tensor:
        r"""``N`` counts that the current stage still needs."""
        made = (data.first, data.second)[data.stage].counts
        return (self._stages[data.stage] - made).clamp_min(0)

    def counts(self, data: BurnIn, request: Request) -> Tensor:
        r"""``N`` counts of the next batch: part of the stage."""
        out = torch.bincount(request.pending, minlength=len(self.X))
        counts = (self.missing(data) - out).clamp_min(0)
        counts = torch.minimum(counts, request.left)
        excess = (counts.cumsum(dim=0) - request.size).clamp_min(0)
        return (counts - excess).clamp_min(0)

    def after(self, belief: LinearBelief, new: Observations) -> LinearBelief:
        r"""With one more batch of the burn-in; with the noise, if it was the last."""
        data = belief.burn_in
        assert data is not None  # it lasts
        arms = ArmStatistics.of_observations(new, len(self.X))
        if data.stage == 0:
            data = replace(data, first=data.first.merge(arms))
        else:
            data = replace(data, second=data.second.merge(arms))
        if bool(self.missing(data).any()):
            return replace(belief, burn_in=data)
        belief = replace(belief, burn_in=replace(data, stage=data.stage + 1))
        if data.stage == 0:
            return belief
        return replace(belief, noise_var=self.inflated(data.first, data.second))

    def inflated(self, first: ArmStatistics, second: ArmStatistics) -> Tensor:
        r"""``N`` upper bounds of the variances, with probability ``1 - delta / 2``.

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


@dataclass(frozen=True, eq=False)
class LinearStrategy(Strategy):
    r"""Designs on what is undecided, least squares on all data, anytime widths.

    Works on ``pool.features``, or ``pool.X`` without. Each batch is the optimal
    addition to what is known; intervals hold at all times together, so they are
    intersected, decisions are final, and batches may have any size. Replicates may be
    told as means, ``Observations(indices, means, counts=...)``. ``yvar`` is not used:
    the noise is what the constructor says.

    Args:
        noise_std: A bound of the noise's sub-Gaussian scale (for Gaussian noise its
            standard deviation); default the roots of ``pool.noise_var``.
        delta: The failure probability.
        epsilon: The accuracy, units of ``y``.
        design: ``"uniform"`` treats all that is undecided alike; ``"gaps"`` weights it
            by its estimated gaps, floored by their standard errors.
        batch_size: Measurements per round; ``None``: a tenth of the data so far, at
            least two per dimension of the features.
        max_observations: Stop after so many measurements.
        max_repeats: How often one row may be measured.

    Raises:
        ValueError: If a number is out of range, the noise is given twice or never, or
            an item is outside the span of the pool's features.

    Warns:
        EmptyRegionWarning: If intervals contradict each other.
        NoiseWarning: Once, if residuals are larger than the stated noise allows; every
            ``guarantee`` from then on says so.
    """

    _: KW_ONLY
    noise_std: float | None = None
    delta: float = 0.05
    epsilon: float = 0.0
    design: str = "uniform"
    batch_size: int | None = None
    max_observations: int | None = None
    max_repeats: int | None = None

    def __post_init__(self) -> None:
        self._check_rounds()
        in_interval(self.delta, "delta", 0.0, 1.0)
        accuracy(self.epsilon)
        if self.design not in DESIGNS:
            raise ValueError(
                f"Expected `design` to be one of {DESIGNS}, but got {self.design!r}."
            )
        self._check_noise()
        self._check_items()

    def _check_noise(self) -> None:
        check_noise_once(self.noise_std, self.pool)

    def _check_items(self) -> None:
        check_items(self.X, features_of(self.items), self._to_span)

    # --- the problem ------------------------------------------------------------------

    @property
    def items(self) -> Pool:
        r"""The items to decide on."""
        return self.pool

    @property
    @abstractmethod
    def goal(self) -> LinearGoal:
        r"""What is to be decided."""

    @property
    def burn_in_plan(self) -> BurnInPlan | None:
        r"""The measurements that tell the noise; ``None`` where it is known."""
        return None

    @property
    def m(self) -> int:
        r"""The number of outputs."""
        return self.goal.m

    @cached_property
    def X(self) -> Tensor:
        r"""``N x d`` features as given."""
        return features_of(self.pool)

    @cached_property
    def _to_span(self) -> Tensor:
        return span_map(self.X)

    @cached_property
    def Phi(self) -> Tensor:
        r"""``N x h`` features in coordinates of their span."""
        return self.X @ self._to_span

    @cached_property
    def Z(self) -> Tensor:
        r"""``T x h`` features of the items, in the same coordinates."""
        return features_of(self.items) @ self._to_span

    @property
    def rank(self) -> int:
        r"""``h``, the dimension of the features' span."""
        return self.Phi.shape[1]

    def first_noise_var(self) -> Tensor:
        r"""``N`` squared noise scales; the largest variance before a burn-in."""
        if self.burn_in_plan is not None:
            largest = float(self.burn_in_plan.bounds[1])
            return torch.full((len(self.pool),), largest, dtype=torch.float64)
        if self.pool.noise_var is not None:
            return self.pool.noise_var
        assert self.noise_std is not None  # one of the two is given
        return torch.full((len(self.pool),), self.noise_std**2, dtype=torch.float64)

    @cached_property
    def W(self) -> Tensor:
        r"""``h x h``, the information of one measurement of the first G-design."""
        rows = self.Phi / self.first_noise_var().sqrt().unsqueeze(-1)
        design = optimal_design(rows, tol=FIRST_TOLERANCE)
        return (design.weights.unsqueeze(-1) * rows).mT @ rows

    @property
    def width_delta(self) -> float:
        r"""The widths' share of ``delta``; the other half may be a burn-in's."""
        return self.delta if self.burn_in_plan is None else self.delta / 2

    @cached_property
    def widths(self) -> AnytimeWidth:
        r"""The widths, fixed before the first measurement."""
        spans = self.batch_size is None or self.batch_size >= LEAST * self.rank
        return AnytimeWidth(
            self.W,
            self.width_delta,
            len(self.items),
            self.m,
            batches=self.goal.by_items and spans and self.max_repeats is None,
        )

    # --- rounds -----------------------------------------------------------------------

    def _start(self, seed: int) -> LinearBelief:
        start = first_belief(self.Z, self.first_noise_var(), self.widths)
        if self.burn_in_plan is None:
            return start
        none = ArmStatistics.empty(len(self.pool))
        return replace(start, burn_in=BurnIn(0, none, none))

    def _complete(self, observations: Observations) -> Observations:
        if self.directions is not None:
            return with_columns(observations, self.m)
        if observations.y.ndim != 1:
            raise BotorchTensorDimensionError(
                "Expected `y` with one output, but got shape "
                f"{tuple(observations.y.shape)}."
            )
        return observations

    def _round_size(self, belief: LinearBelief, room: int | None) -> int:
        if self.batch_size is not None:
            return super()._round_size(belief, room)
        plan, data = self.burn_in_plan, belief.burn_in
        if plan is not None and data is not None and data.stage < 2:
            size = int(plan.missing(data).sum())
            return size if room is None else min(size, room)
        grown = math.ceil(GROWTH * belief.sums.n)
        size = max(LEAST * self.rank, grown)
        return size if room is None else min(size, room)

    def _planning_belief(self, belief: Any) -> Any:
        return belief

    def _open_rows(self, belief: Any) -> Tensor:
        return torch.ones(len(self.pool), dtype=torch.bool)

    def _open_again(
        self, belief: Any, data: Observations, pending: Tensor, left: Tensor
    ) -> Tensor:
        return left

    def _plan(self, belief: LinearBelief, request: Request) -> Tensor:
        counts = self.planned_batch(belief, request)
        return torch.arange(len(counts)).repeat_interleave(counts)

    def _visiting_order(
        self, belief: LinearBelief, rows: Tensor, before: Tensor
    ) -> Tensor:
        return rows  # planned in order; sorting millions again takes seconds

    def planned_batch(self, belief: LinearBelief, request: Request) -> Tensor:
        r"""``N`` counts of the next batch; in a burn-in part of its stage."""
        plan, data = self.burn_in_plan, belief.burn_in
        if plan is not None and data is not None and data.stage < 2:
            return plan.counts(data, request)
        rows = self._scaled_rows(belief)
        known = torch.zeros_like(self.W) if belief.martingale else belief.sums.V
        out = rows[request.pending]
        usable = (request.left > 0).nonzero().view(-1)
        weights = torch.zeros_like(rows[:, 0])
        weights[usable] = next_weights(
            rows[usable],
            known + out.mT @ out,
            self.W,
            self._asked(belief),
            request.size,
            self.design == "gaps",
        )
        return rounded(weights, request.size, request.left)

    def _scaled_rows(self, belief: LinearBelief) -> Tensor:
        return self.Phi / belief.noise_var.sqrt().unsqueeze(-1)

    def _asked(self, belief: LinearBelief) -> Questions:
        r"""All rows of the pool before they span it, then what is undecided."""
        if not belief.information.is_complete:
            return Questions(self.Phi)
        return self.goal.questions(belief)

    @property
    def _needs_plans(self) -> bool:
        return self.widths.uses_martingales

    def _learn_planned(
        self, belief: LinearBelief, new: Observations, history: Observations, seed: int
    ) -> LinearBelief:
        belief = with_martingale(belief, self.Phi, new, self.widths)
        return self._learn(belief, new, history, seed)

    def _learn(
        self, belief: LinearBelief, new: Observations, history: Observations, seed: int
    ) -> LinearBelief:
        belief = with_batch(belief, self.Phi, new, self.widths)
        if belief.alarm is not None and belief.alarm not in self._warned:
            self._warned.add(belief.alarm)
            warn_of(belief.alarm)
        belief = intersected(belief, self.widths, self.delta)
        if belief.information.is_complete and belief.open.numel():
            belief = self.goal.decided(belief)
        plan, data = self.burn_in_plan, belief.burn_in
        if plan is None or data is None or data.stage == 2:
            return belief
        return plan.after(belief, new)

    @cached_property
    def _warned(self) -> set[str]:
        r"""Alarms that were given: a replay of the same data says nothing new."""
        return set()

    def simulate(self, measure: Measure, seed: int = 0) -> SimulatedRun:
        r"""The whole run on a function, by counts and means.

        The same as asking and telling means, without a list of millions of rows.

        Args:
            measure: From ``k`` rows and ``k`` counts to means; see ``Measure``.
            seed: The seed of ``init``.
        """
        belief, rounds, reason = self._start(seed), 0, DECIDED
        none, N = torch.empty(0, dtype=torch.long), len(self.pool)
        limit, repeats = self.max_observations, self.max_repeats
        while belief.open.numel():
            n = belief.sums.n
            size = self._round_size(belief, None if limit is None else limit - n)
            left = torch.full((N,), torch.iinfo(torch.long).max)
            if repeats is not None:
                left = repeats - belief.sums.counts
            if size <= 0 or not bool((left > 0).any()):
                reason = BUDGET
                break
            request = Request(size, left, none, seed, rounds)
            counts = self.planned_batch(belief, request)
            rows = counts.nonzero().view(-1)
            found = measure(rows, counts[rows])
            y, yvar = found if isinstance(found, tuple) else (found, None)
            new = Observations(rows, y, yvar, torch.tensor(rounds), counts[rows])
            belief = self._learn_planned(belief, self._complete(new), new, seed)
            rounds += 1
        answer = self._classification(belief)
        return SimulatedRun(answer, belief.sums.n, rounds, reason)

    # --- the answer -------------------------------------------------------------------

    def _promised(self, belief: LinearBelief) -> str:
        r"""The guarantee, and whether the data contradict what it assumes."""
        if belief.alarm is None:
            return self.guarantee
        return f"{self.guarantee} {contradicted(belief.alarm)}"

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        d = self.X.shape[1]
        return (
            f"With probability {1 - self.delta:g}, {self.goal.promise}; assumes "
            f"{self.noise_in_words}, independent within a batch, f linear in the {d} "
            f"feature{'s' if d > 1 else ''}."
        )

    def _classification(self, belief: LinearBelief) -> Classification:
        claim = with_contradictions(
            self._promised(belief), belief.contradicted.any(dim=-1)
        )
        return self.goal.answer(belief, claim, self.items)

    def _forecast(self, state: State) -> Forecast:
        belief = state.belief
        if not belief.information.is_complete:
            return Forecast(None, "The measurements do not span the features yet.")
        questions, rows = self.goal.questions(belief), self._scaled_rows(belief)
        return linear_forecast(belief, questions, rows, self.W, self.widths)

    @property
    def noise_in_words(self) -> str:
        r"""The assumption about the noise."""
        if self.burn_in_plan is not None:
            low, high = self.burn_in_plan.bounds
            return (
                "Gaussian noise whose variance is a quadratic form of the features "
                f"between {low:g} and {high:g}, estimated by {self.burn_in_plan.n} "
                "measurements"
            )
        if self.noise_std is not None:
            return f"noise sub-Gaussian with sd <= {self.noise_std:g}"
        return "noise sub-Gaussian with the given variances"


# --- planning -------------------------------------------------------------------------


def gap_weights(questions: Questions, norms: Tensor) -> Tensor | None:
    r"""One over the squared gaps, each floored by its standard error."""
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
    r"""Weights that make the worst undecided direction's variance smallest.

    ``min over lam of max_v w_v v' (V + n sum lam z z')^-1 v`` for a batch of ``n``.

    Args:
        rows: ``N x h``, the features over their noise scales.
        known: ``h x h``, ``V`` of what was measured.
        W: ``h x h``, the first design's information.
        questions: The directions.
        size: ``n``.
        weighted: Whether ``w_v`` are the gaps' weights, or ones.
    """
    L = torch.linalg.cholesky(known + START * W)
    norms = _whitened(L, questions.vectors).square().sum(dim=-1)
    weights = gap_weights(questions, norms) if weighted else None
    if not bool((norms > 0).any()):
        return torch.full_like(rows[:, 0], 1 / len(rows))
    with warnings.catch_warnings():
        # A design that is a little worse costs a few measurements, no validity.
        warnings.simplefilter("ignore", DesignWarning)
        design = optimal_design(
            _whitened(L, rows),
            _whitened(L, questions.vectors),
            gamma=1 / size,
            target_weights=None if weights is None else weights / weights.max(),
            tol=DESIGN_TOLERANCE,
        )
    return design.weights


def _whitened(L: Tensor, vectors: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(L.mT, vectors, upper=True, left=False)


def rounded(weights: Tensor, size: int, left: Tensor) -> Tensor:
    r"""``N`` counts that sum to ``size``, or to all that is ``left``.

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


def information_of(rows: Tensor, counts: Tensor, W: Tensor) -> Information:
    r"""The information of so many measurements of each row."""
    return Information.of((counts.unsqueeze(-1) * rows).mT @ rows, W)


def linear_forecast(
    belief: LinearBelief,
    questions: Questions,
    rows: Tensor,
    W: Tensor,
    widths: AnytimeWidth,
) -> Forecast:
    r"""The smallest ``n`` after which every width is below its gap.

    Args:
        belief: Where the run stands.
        questions: What is undecided.
        rows: ``N x h``, the features over their noise scales.
        W: ``h x h``, the first design's information.
        widths: The widths in use.
    """
    assert questions.gaps is not None  # the data span the features
    norms = belief.information.squared_norms(questions.vectors)
    gaps = squared_gaps(questions.gaps, norms, 0.0).sqrt()
    start = None
    if belief.martingale is not None:
        start = BatchMartingale.start(questions.vectors, W, 1)

    def suffices(n: int) -> bool:
        weights = next_weights(rows, belief.sums.V, W, questions, n, True)
        more = n * (weights.unsqueeze(-1) * rows).mT @ rows
        information = Information.of(belief.sums.V + more, W)
        squared = belief.width.squared(information, questions.vectors)
        norms = information.squared_norms(questions.vectors)
        if start is not None:  # as if all batches were alike
            scalar = replace(start, precision=1 / norms).squared(widths.target_delta)
            squared = torch.minimum(squared, scalar)
        return bool((squared.sqrt() - STRAY * norms.sqrt() <= gaps).all())

    n = smallest(suffices)
    basis = (
        f"Assumes the estimated gaps of the {belief.open.numel()} undecided items and "
        "an optimal design."
    )
    return Forecast(n, basis)
