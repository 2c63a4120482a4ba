r"""The interface of rules, what they are given, and greedy batches by scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from botorch_lse.confidence.calibration import are_too_wide, in_words
from botorch_lse.confidence.classify import Sides
from botorch_lse.confidence.regions import Regions
from botorch_lse.confidence.schedules import BetaSchedule
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.scores import (
    TINY,
    first_best,
    interval,
)
from botorch_lse.functional.value_region import Comparison, ValueRegion
from botorch_lse.goals.base import Goal, Targets
from botorch_lse.goals.one_sided import OneSided
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.models.shortlist import Shortlist
from botorch_lse.planning.designed import (
    PosteriorProblem,
)
from botorch_lse.surrogate.layout import FromSources, Layout
from botorch_lse.surrogate.posterior import Posterior
from botorch_lse.surrogate.remarks import Remark, Slip

SHORTLIST = 4096
"""The number of rows, at first, whose variances follow the planned rows.
Few in a large pool; looking through so many takes about as long as scoring them."""
LEAST_TOLD = 0.02
"""The share of the most that a row tells below which a whole source is left."""
INFORMED_SHARE = 0.5
"""The share of the prior's variance below which the data inform about a row."""


def is_informed(posterior: PoolPosterior, rows: Tensor) -> Tensor:
    r"""Whether the data have reduced each variance enough to decide by (``T`` bools).

    Measurements made before the run are a part of the data.
    """
    return (posterior.variance <= INFORMED_SHARE * posterior.bare_variance)[rows]


@dataclass(frozen=True, eq=False)
class Belief:
    r"""The belief of a ``GaussianAlgorithm`` after the complete rounds.

    Args:
        fits: The posterior of each output.
        all_regions: For each output ``C_t`` of the items, or the last interval where a
            strategy does not intersect or learns its model.
        sides: The sets of the classification.
        n_intervals: How many intervals the regions hold; the next is number + 1.
        one_sided: While every value lies on one side of the level, so that a learnt
            model decides nothing; else ``None``.
        held_back: What the model would decide by itself while it is not to.
        is_early: Whether too little was measured for a fitted model to decide by.
        memory: What the rule remembers of the rounds.
        ahead: For each output the standardised residuals of all values from what was
            predicted of them before their batch was measured.
        lost: Rows that were used up without a result, or excluded.
        is_alike: Whether all values of an output that is learnt are the same.
        remarks: What the values show that a fitted model does not say.
        slips: Values that are left out, as they may be slips.
        doubted: The rows of these that have no other value, which stay undecided.
        early: What a model says of the values told while the initial design goes on;
            ``None`` where it is complete, or no model can be fitted to them yet.
    """

    fits: Posterior
    all_regions: tuple[Regions, ...]
    sides: Sides
    n_intervals: int = 1
    one_sided: OneSided | None = None
    held_back: Sides | None = None
    is_early: bool = False
    memory: Any = None
    ahead: tuple[Tensor, ...] = ()
    lost: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    is_alike: bool = False
    remarks: tuple[Remark, ...] = ()
    slips: tuple[Slip, ...] = ()
    doubted: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    early: Early | None = None

    @cached_property
    def is_contradicted(self) -> bool:
        r"""Whether the predictions of an output were too narrow."""
        return any(are_too_wide(ahead) for ahead in self.ahead)

    @property
    def is_refuted(self) -> bool:
        r"""Whether measured values refute a stated model, or a stated norm."""
        return any(remark.kind in ("model", "norm") for remark in self.remarks)

    @property
    def contradiction(self) -> str:
        r"""The warning about the first output whose predictions were too narrow."""
        return next(in_words(a) for a in self.ahead if are_too_wide(a))

    @property
    def posterior(self) -> PoolPosterior:
        r"""The posterior of the first output, the only one of most strategies."""
        return self.fits.posteriors[0]

    @property
    def regions(self) -> Regions:
        r"""The regions of the first output, the only one of most strategies."""
        return self.all_regions[0]


@dataclass(frozen=True, eq=False)
class Early:
    r"""A model of the first values, fitted only if somebody looks at the answer.

    Args:
        algorithm: What fits it.
        fits: The posteriors that choose initial rows.
        history: All observations.
        seed: The run's seed, for fits.
    """

    algorithm: Any
    fits: Posterior
    history: Observations
    seed: int

    @cached_property
    def belief(self) -> Belief:
        r"""The belief under the fitted model, in which nothing is decided."""
        found: Belief = self.algorithm.fitted_early(self)
        return found


@dataclass(frozen=True, eq=False)
class SelectionContext:
    r"""The context in which a rule chooses rows: all that it may use.

    Args:
        belief: The belief after the complete rounds.
        fits: The posteriors to improve on, in which the variances are reduced by the
            rows that are being measured or already chosen.
        goal: The question to decide.
        items: Rows of the posterior that are to be decided.
        beta: The squared width of the last interval.
        open_rows: ``N`` bools: the rows that may be chosen at all.
        is_initial: Whether these are first rows, before the rule takes over.
        is_first_copy: ``T`` bools: of items that are one point the first.
        points: ``T`` numbers, the same for items that are one point.
        weights: ``N`` weights by which rows of the posterior count as items, those of
            copies of a point together; ``None``: all the same.
    """

    belief: Belief
    fits: Posterior
    goal: Goal
    items: Tensor
    beta: float
    open_rows: Tensor
    is_initial: bool
    is_first_copy: Tensor
    points: Tensor
    weights: Tensor | None = None

    def of_target(self, decided: slice) -> SelectionContext:
        r"""The context of the rows that are decided, where others are measured too.

        Args:
            decided: These rows.
        """
        rows = torch.arange(len(self.open_rows))[decided]
        fits = replace(
            self.fits,
            layout=Layout(self.fits.layout.items),
            posteriors=tuple(p.at_rows(rows) for p in self.posteriors),
            noise=tuple(noise[rows] for noise in self.fits.noise),
        )
        weights = None if self.weights is None else self.weights[rows]
        items, open_rows = torch.arange(len(rows)), self.open_rows[rows]
        return replace(
            self, fits=fits, items=items, open_rows=open_rows, weights=weights
        )

    @cached_property
    def region(self) -> ValueRegion | None:
        r"""The goal's region of values at the present means; ``None`` without one."""
        return self.goal.region([p.mean for p in self.fits.posteriors])

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        r"""The outputs and levels that decide sides, and where each still matters.

        In a row that is open all of them matter if none seems to: its intervals agree
        then, but by the prior alone, which is not to decide. Where the data inform of
        some outputs these are those of the others: more of the former, a row would be
        measured for ever that stays open.
        """
        if self.region is None:
            return ()
        regions = self.belief.all_regions
        ends = [own.lower for own in regions], [own.upper for own in regions]
        found = self.region.comparisons(*ends)
        known = [one.matters for one in found if one.matters is not None]
        if not known:
            return found
        by_prior = self.belief.sides.candidates & ~torch.stack(known).any(dim=0)
        unsure = [~is_informed(p, self.items) for p in self.fits.posteriors]
        if len(unsure) > 1:
            all_known = ~torch.stack(unsure).any(dim=0)
            unsure = [own | all_known for own in unsure]
        else:
            unsure = [torch.ones_like(by_prior)]
        return tuple(
            one
            if one.matters is None
            else replace(one, matters=one.matters | by_prior & unsure[one.output])
            for one in found
        )

    @property
    def tie_scale(self) -> float:
        r"""The unit of scores: the prior's ``sigma``; 1 for outputs in own units."""
        return self.posterior.scale if len(self.posteriors) == 1 else 1.0

    @property
    def posteriors(self) -> tuple[PoolPosterior, ...]:
        r"""The posteriors to improve on, one per output."""
        return self.fits.posteriors

    @property
    def posterior(self) -> PoolPosterior:
        r"""The posterior of the first output, the only one of most strategies."""
        return self.fits.posteriors[0]

    @property
    def targets(self) -> Targets:
        r"""The items, or pairs of items, that are still to be decided."""
        return self.goal.targets(self.belief.sides, self.items)

    @property
    def problems(self) -> list[PosteriorProblem]:
        r"""The planner's problem for each output: what a batch is to predict."""
        return problems_of(self.fits, self.targets, self.rows_that_matter)

    @property
    def rows_that_matter(self) -> list[Tensor] | None:
        r"""The rows whose value still decides a side, for each output (bools).

        ``None`` where that is the same as being in question.
        """
        if len(self.posteriors) == 1 or not self.comparisons:
            return None
        none = torch.zeros(len(self.posterior.mean), dtype=torch.bool)
        found = [none] * len(self.posteriors)
        for one in self.comparisons:
            here = ~none if one.matters is None else one.matters
            found[one.output] = found[one.output] | here
        return found


def problems_of(
    fits: Posterior, targets: Targets, matters: Sequence[Tensor] | None = None
) -> list[PosteriorProblem]:
    r"""The planner's problem for each output: what a batch is to predict.

    Several outputs compare in units of their prior's largest standard deviation.

    Args:
        fits: The posteriors.
        targets: What is in question.
        matters: For each output ``N`` bools, the rows in which it is; an output that is
            in question nowhere is left out. Default everywhere.
    """
    posteriors, found = fits.posteriors, []
    each, units = [targets.rows] * len(posteriors), [1 / p.scale**2 for p in posteriors]
    if matters is not None:
        each = [own[m[own]] for own, m in zip(each, matters, strict=True)]
    for part in fits.layout.to_improve(posteriors, fits.noise, each):
        covariances, noise, rows, outputs = part
        weights = targets.weights
        if len(posteriors) > 1:
            # Pairs in single precision: which of equally good designs is found hangs
            # on the last digits, and runs are to choose the rows that they always did.
            kind = torch.float32 if len(outputs) > 1 else torch.float64
            parts = [torch.full((len(each[j]),), units[j], dtype=kind) for j in outputs]
            weights = torch.cat(parts).double()
        if len(rows) or matters is None:
            given = covariances, noise, rows, weights, targets.factor
            found.append(PosteriorProblem(*given))
    return found


class Serves(IntEnum):
    r"""The goals that a rule can serve; each value includes those before it."""

    LEVEL = 0
    """The goals about one level of one output."""
    REGION = 1
    """The goals with several levels, or with several outputs and a level each."""
    ANYTHING = 2
    """The goals of any kind, also those that compare rows, such as a Pareto set."""


@dataclass(frozen=True)
class IntervalPolicy:
    r"""The policy by which intervals decide rows in a run with a given rule.

    Args:
        width: The squared width of each interval that belongs to the rule; ``None``:
            the theorem's.
        intersects: Whether the intervals of all rounds are intersected; else the last
            one counts.
        is_monotone: Whether what is decided stays decided, as long as intervals do not
            contradict.
        decides_before_data: Whether a theorem's width decides by the prior alone.
        by_round: Whether after a fit the intervals of all rounds are made again one by
            one, because the rule remembers something of each; else of the last alone.
    """

    width: BetaSchedule | None = None
    intersects: bool = True
    is_monotone: bool = True
    decides_before_data: bool = True
    by_round: bool = False

    @classmethod
    def of_all(cls, policies: Sequence[IntervalPolicy]) -> IntervalPolicy:
        r"""The joint policy of several rules that choose together.

        A width that all of them have is their own. What is intersected, final or made
        again by round for one of them is so for all.
        """
        width = policies[0].width
        is_common = all(policy.width == width for policy in policies)
        return cls(
            width if is_common else None,
            any(policy.intersects for policy in policies),
            any(policy.is_monotone for policy in policies),
            all(policy.decides_before_data for policy in policies),
            any(policy.by_round for policy in policies),
        )


class Rule(ABC):
    r"""A way to choose the rows of the next round from the belief and open rows."""

    serves: Serves = Serves.REGION
    """The goals for which the rule can choose."""
    only_candidates: bool = False
    """Whether the rule measures only rows in question."""
    intervals: IntervalPolicy = IntervalPolicy()
    """The policy by which intervals decide."""

    def on(self, pool: Pool) -> Rule:
        r"""The rule for a pool, with what it needs of the pool."""
        return self

    def check(self, pool: Pool, goal: Goal) -> None:  # noqa: B027  (a hook)
        r"""Complain if the rule belongs to another pool, or does not fit the goal."""

    @abstractmethod
    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The rows to measure, with replicates; fewer than asked if none is left."""

    # --- what a rule may remember of the complete rounds ------------------------------

    def start(self, posterior: PoolPosterior | None, beta: float) -> Any:
        r"""The rule's memory before any round; ``None`` as posterior means no model."""
        return None

    def width(self, memory: Any, beta: float) -> float:
        r"""The squared width of the next interval, where ``beta`` is the schedule's."""
        return beta

    def judged(self, memory: Any, widest: float | None, beta: float) -> Any:
        r"""The rule's memory after the sides were updated.

        Args:
            memory: Before.
            widest: The largest standard deviation of a row in question; ``None``
                without one.
            beta: The schedule's squared width of the interval.
        """
        return memory

    def measured(self, before: Any, after: Any, rows: Tensor) -> Any:
        r"""The rule's memory after a round whose rows were measured.

        Args:
            before: The memory before the round.
            after: The memory after the round was judged, perhaps by a new model.
            rows: What was measured, in any order.
        """
        return after

    def order(self, memory: Any, rows: Tensor, before: Tensor) -> Tensor:
        r"""The order in which to visit the rows of a batch after the row ``before``."""
        return rows.sort().values


class ScoreRule(Rule):
    r"""Measure the row with the best score, then the next best given that one.

    A row that is planned shrinks the deviations and leaves the means, since the
    posterior variance does not depend on the value to come.
    """

    falls_with_variance: bool = False
    """Whether scores read only means and variances, and none rises as variances shrink.
    Batches in large pools then cost less (``Shortlist``)."""

    @abstractmethod
    def scores(self, context: SelectionContext) -> Tensor:
        r"""The score of each row, by a posterior that expects the planned rows."""

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The rows with the best scores, chosen one by one."""
        if context.is_initial:
            return one_by_one(context, request, variance_left)
        return one_by_one(context, request, self.scores, self.falls_with_variance)


def one_by_one(
    context: SelectionContext,
    request: PlanRequest,
    scores: Callable[[SelectionContext], Tensor],
    falls_with_variance: bool = True,
) -> Tensor:
    r"""A greedy choice of rows; among equal scores the lowest row wins.

    Args:
        context: The belief and the rows to choose from.
        request: How many rows, and how often each may still be measured.
        scores: One score per row of the posterior.
        falls_with_variance: See ``ScoreRule``; so it is for ``variance_left``.
    """
    is_large = len(context.open_rows) > 4 * SHORTLIST
    has_all = context.fits.layout.n_each == 1  # outputs in each measurement
    is_plain = has_all and not context.posterior.is_correlated
    is_plain &= not context.fits.layout.has_sources
    if falls_with_variance and is_large and is_plain:
        rows, left = _shortlisted(context, request, scores)
    else:
        rows, left = [], request.left.clone()
    if rows and len(rows) < request.size:
        planned = context.fits.expecting(torch.tensor(rows))
        context = replace(context, fits=planned)
    layout = context.fits.layout
    is_at_source = layout.has_sources and not context.is_initial
    while len(rows) < request.size:
        open_rows = context.open_rows & (left > 0)
        if isinstance(layout, FromSources):
            open_rows = rows_due(context, layout, open_rows, request.pending, rows)
        if is_at_source:
            row = at_a_source(context, open_rows, scores)
        else:
            found = _scores_by_row(context, scores, len(left))
            row = first_best(found, open_rows, context.tie_scale)
        if row is None:
            break
        rows.append(row)
        left[row] -= 1
        if len(rows) < request.size:
            expected = context.fits.expecting(torch.tensor([row]))
            context = replace(context, fits=expected)
    return torch.tensor(rows, dtype=torch.long)


def rows_due(
    context: SelectionContext,
    layout: FromSources,
    open_rows: Tensor,
    pending: Tensor,
    chosen: Sequence[int],
) -> Tensor:
    r"""The rows of several sources that may be chosen next (bools).

    Of an initial design these are rows of the source whose turn it is, as long as there
    are any; later on those of the target where it is due.

    Args:
        context: The belief and the rows to choose from.
        layout: The sources.
        open_rows: The rows that may be chosen at all (bools).
        pending: Rows that are being measured.
        chosen: The rows of the batch so far.
    """
    before = context.belief.fits.measured, pending
    taken = torch.cat((*before, torch.tensor(chosen, dtype=torch.long)))
    if context.is_initial:
        first = open_rows & layout.first_rows(taken)
    elif layout.is_target_due(taken):
        first = torch.zeros_like(open_rows)
        first[layout.decided] = open_rows[layout.decided]
    else:
        return open_rows
    return first if bool(first.any()) else open_rows


def at_a_source(
    context: SelectionContext,
    open_rows: Tensor,
    scores: Callable[[SelectionContext], Tensor],
) -> int | None:
    r"""The row with the best score, at the source that tells most of it per cost.

    A measurement of the row at source ``l`` takes ``c^2 / (s^2 + v)`` off the variance
    of the target there: ``c`` is the covariance of the two, ``s^2`` and ``v`` are
    variance and noise at the source.

    Args:
        context: The belief and the rows to choose from.
        open_rows: Rows that may still be measured (bools).
        scores: See ``one_by_one``; of the target alone.
    """
    fits, layout = context.fits, context.fits.layout
    assert isinstance(layout, FromSources)  # it has sources
    found = scores(context.of_target(layout.decided))
    items = open_rows.view(layout.n_sources, -1).any(dim=0)
    item = first_best(found, items, context.tie_scale)
    if item is None:
        return None
    rows, posterior = layout.at_sources(item), context.posterior
    covariance = posterior.covariance_between(rows, rows[[layout.target]]).view(-1)
    observed = posterior.variance[rows] + fits.noise[0][rows]
    told = covariance.square() / observed.clamp_min(TINY)
    told = told.masked_fill(~open_rows[rows], 0.0)
    value = worth_asking(layout, rows, told)
    costs = torch.ones_like(value)
    if layout.pool.costs is not None:
        costs = layout.charged(layout.pool.costs[rows], rows)
    best = int((value / costs).masked_fill(~open_rows[rows], -torch.inf).argmax())
    return int(rows[best])


def worth_asking(layout: FromSources, rows: Tensor, told: Tensor) -> Tensor:
    r"""The amounts that rows tell, -1 at sources that tell next to nothing.

    However cheap a source is, it is left once its best row tells no more than
    ``LEAST_TOLD`` of what the best row of any source tells: the decisions take time,
    and the little that a model still expects of it rests on its finest assumptions. The
    target is never left; where no row tells anything, it is what is measured.

    Args:
        layout: The sources.
        rows: ``C`` rows.
        told: ``C`` amounts.
    """
    if len(told) == 0:
        return told
    source, found = layout.source_of(rows), told
    least = LEAST_TOLD * float(told.max())
    for one in range(layout.n_sources):
        own = source == one
        if one != layout.target and bool(own.any()) and float(told[own].max()) <= least:
            found = found.masked_fill(own, -1.0)
    return found


def _scores_by_row(
    context: SelectionContext, scores: Callable[[SelectionContext], Tensor], n: int
) -> Tensor:
    r"""The scores of the ``n`` rows that can be measured.

    Raises:
        ValueError: If they are fewer.
    """
    found = context.fits.layout.scores_by_row(scores(context))
    if len(found) < n:
        raise ValueError(
            f"Expected `scores` of a rule to be {n}, one per row of the pool, but got "
            f"{len(found)}. Write them by row, or by `largest_score`."
        )
    return found[:n]


def _shortlisted(
    context: SelectionContext,
    request: PlanRequest,
    scores: Callable[[SelectionContext], Tensor],
) -> tuple[list[int], Tensor]:
    r"""A greedy choice whose variances are exact on a list and too large elsewhere.

    Where the best score is that of a row on the list, no other row can have a better
    one. Else the list is doubled by the rows of the next best bounds.

    Returns:
        The rows, fewer than asked if the list outgrew the memory budget, or none is
        left, and ``N`` counts of how often each may still be measured.
    """
    fits, left = context.fits, request.left.clone()
    lists = [Shortlist(*both) for both in zip(fits.posteriors, fits.noise, strict=True)]
    size, budget, rows = SHORTLIST, fits.posteriors[0].memory_budget, list[int]()
    while len(rows) < request.size:
        now = tuple(one.posterior for one in lists)
        context = replace(context, fits=replace(fits, posteriors=now))
        found = _scores_by_row(context, scores, len(left))
        open_rows = context.open_rows & (left > 0)
        row = first_best(found, open_rows, context.tie_scale)
        if row is None:
            break
        unlisted = ~lists[0].is_listed[: len(left)]
        if unlisted[row]:
            if sum(one.bytes_with(size, request.size) for one in lists) > budget:
                break
            bounds = found.masked_fill(~(open_rows & unlisted), -torch.inf)
            bounds[row] = torch.inf  # the first of many ties
            best = bounds.topk(min(size, len(left))).indices
            best = best[bounds[best] > -torch.inf].sort().values
            for one in lists:
                one.add(best)
            size *= 2
            if rows:
                continue
        rows.append(row)
        left[row] -= 1
        if len(rows) < request.size:
            for one in lists:
                one.plan(row)
    return rows, left


def variance_left(context: SelectionContext) -> Tensor:
    r"""The variance of each row; with several outputs in units of the prior.

    Their sum, or where a measurement gives one output, each by itself.
    """
    posteriors = context.posteriors
    if len(posteriors) == 1:
        return posteriors[0].variance
    each = [p.variance / p.scale**2 for p in posteriors]
    return context.fits.layout.merged(each, partial(torch.sum, dim=0))


@dataclass(frozen=True, eq=False)
class Moments:
    r"""The belief about one output in each row, and the level to compare it with.

    Args:
        context: The belief and the rows to choose from.
        one: The output and the level.
    """

    context: SelectionContext
    one: Comparison

    @property
    def posterior(self) -> PoolPosterior:
        r"""The posterior of the output."""
        return self.context.posteriors[self.one.output]

    @property
    def mean(self) -> Tensor:
        r"""The posterior means of the rows (``N``)."""
        return self.posterior.mean

    @property
    def sigma(self) -> Tensor:
        r"""The standard deviations that the planned rows will leave (``N``)."""
        return self.posterior.sigma

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        r"""The lower and upper ends of the expected regions (``N`` each)."""
        return expected_regions(self.context, self.one.output)

    @property
    def level(self) -> float | Tensor:
        r"""The level: one number, or one for each row (``N``)."""
        return self.one.level


def largest_score(
    context: SelectionContext, score: Callable[[Moments], Tensor], unit: float = 1.0
) -> Tensor:
    r"""The score of each row by its least decided output and level.

    The score is the largest one over all comparisons that still matter in the row;
    where a measurement gives one output, over those of the output.

    Args:
        context: The belief and the rows to choose from.
        score: From the belief about an output, and a level, to ``N`` scores.
        unit: 1 if scores have the unit of the output, 0 if they have none.
    """
    found = []
    for one in context.comparisons:
        scores = score(Moments(context, one))
        if len(context.posteriors) > 1:
            scores = scores / context.posteriors[one.output].scale ** unit
        if one.matters is not None:
            scores = scores.masked_fill(~one.matters, -torch.inf)
        found.append(scores)
    outputs = [one.output for one in context.comparisons]
    return context.fits.layout.largest(outputs, found)


def expected_regions(
    context: SelectionContext, output: int = 0
) -> tuple[Tensor, Tensor]:
    r"""The ends of the regions within the interval that planned rows leave."""
    posterior = context.posteriors[output]
    regions = context.belief.all_regions[output]
    lower, upper = interval(posterior.mean, posterior.sigma, context.beta)
    return torch.maximum(regions.lower, lower), torch.minimum(regions.upper, upper)
