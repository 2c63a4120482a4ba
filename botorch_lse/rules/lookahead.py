r"""Rules that look one measurement ahead.

Each asks what a measurement is expected to take off a loss of the rows in question:
truncated variances (TruVaR), variances near the level (tIMSE), wrong sides (SUR) or the
entropy of the sides; or how far it moves the number of rows above (EAVC).
``Reductions`` is the pass over candidates and targets that they share; the losses are
functions of ``functional/lookahead.py``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from botorch_lse._validation import complaint, in_interval, one_of, truth_value
from botorch_lse.data.pool import Pool
from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.answers import Change
from botorch_lse.functional.class_removal import class_removal, level_weights
from botorch_lse.functional.lookahead import (
    AddedRemoval,
    AnticipatedRemoval,
    Effect,
    Removal,
    expected_misclassification,
    mutual_information,
    ratio_to_level,
    targeted_variance,
    truncated_variance,
    volume_series,
)
from botorch_lse.functional.scores import TIE, TINY, best_ones, first_best
from botorch_lse.functional.value_region import Comparison
from botorch_lse.functional.variance_reduction import single_gain
from botorch_lse.goals.base import Goal
from botorch_lse.models import correlated
from botorch_lse.models.gaussian_process import (
    COPIES,
    ROUNDING,
    PoolPosterior,
    keep_memory,
    row_blocks,
)
from botorch_lse.rules.base import (
    Rule,
    SelectionContext,
    Serves,
    rows_due,
    variance_left,
    worth_asking,
)
from botorch_lse.rules.costs import RowCosts
from botorch_lse.surrogate.draws import systematic_sample
from botorch_lse.surrogate.layout import FromSources
from botorch_lse.surrogate.posterior import Posterior

Block = tuple[slice, Tensor, Tensor]
"""A slice of candidates, their covariances with targets and observed variances."""
Stays = Callable[[Tensor, Tensor], Tensor]
"""A test of which targets stay undecided, by ``T`` means and ``C x T`` half widths."""
Batch = Literal["believer", "joint"]
"""The way in which planned and pending rows count; see ``LookAhead``."""
BATCHES = get_args(Batch)
AT_ONCE = 2**18
"""The number of pairs whose covariances the model gives in one call.
A call takes as long as some ten thousand pairs; much larger arrays leave the caches."""
WIDEST = 2**14
"""The largest number of targets taken together, so that pieces have enough rows."""
ALL_PAIRS = 2**21
"""The number of (row, target) pairs, for each output, up to which all are computed.
It takes a fraction of a second; of more, a sample says which rows are worth it."""
SAMPLE = 256
"""The number of targets on which every row is scored first."""
SHORTLIST = 256
"""The number of rows that are best on the sample, and of uncertain rows beside."""
FINE = 2**13
"""The number of targets up to which the shortlist is scored on all of them.
Of more targets ``FINE`` are drawn for it, and the best rows are scored on all."""
FINALISTS = 64
"""The number of rows that are scored on all of more than ``FINE`` targets."""
MOST_ROWS = 100_000
"""The largest number of rows that are scored on the sample.
Half of more rows are drawn by what they tell of themselves, the others evenly."""
LEADERS = 64
"""The number of targets of largest mean that others are always compared with."""
NEGLIGIBLE = 1e-12
"""The share of the summed variance below which reductions are rounding.
Every width has then reached its target. Exact scores of results are rounding below the
same share of the number of targets, each of which has a loss of at most 1."""


@dataclass(frozen=True)
class Visits:
    r"""The memory of a rule with costs after the complete rounds.

    Args:
        previous: The row measured last; ``None`` before any.
        spent: The summed costs so far.
    """

    previous: int | None = None
    spent: float = 0.0


class LookAhead(Rule):
    r"""Measure the row that most lowers a loss of the rows in question, per cost.

    A batch is chosen one row after the other: rows already chosen, and rows that are
    being measured, reduce the variances and leave the means, since variances do not
    depend on the values to come. A row may be chosen again.

    For losses around the level there are two ways to count the rows before.
    ``"believer"`` (the Kriging believer) takes their values as known, equal to their
    means: the loss starts from the reduced variances. ``"joint"`` leaves their values
    open: the next row is the one with which the whole batch, rows that are being
    measured included, is expected to remove most, seen from the posterior before any of
    its values (Chevalier et al. 2014). It is exact and takes as long.

    A result that is no number, such as yes or no, a grade or a count, is scored as the
    Gaussian measurement that takes off as much of the variances. With ``exact`` the
    ``FINALISTS`` rows that are then the best are scored again, by all results that they
    may have (``functional/answers.py``); measured numbers have exact scores anyway.
    """

    costs: RowCosts | None
    """The costs of rows; ``None``: the pool's costs, or 1 for each row."""
    exact = False
    """Whether results that are no numbers are scored exactly."""
    change: ClassVar[Change]
    """The loss, or what changes, of which rules that may be exact score the change."""

    @abstractmethod
    def removed(self, context: SelectionContext, reductions: Reductions) -> Tensor:
        r"""The expected decrease of the targets' loss by each of ``C`` rows."""

    def usable(self, context: SelectionContext, rows: Tensor) -> Tensor:
        r"""The rows worth a look, among those that may still be measured."""
        return rows

    def on(self, pool: Pool) -> Rule:
        r"""The rule with the pool's costs, if it has none of its own.

        Raises:
            ValueError: If a cost is not positive.
        """
        if self.costs is not None or pool.costs is None:
            return self
        # A rule is a dataclass, which only the concrete class says.
        return replace(self, costs=RowCosts(pool))  # type: ignore[type-var]

    def check(self, pool: Pool, goal: Goal) -> None:
        r"""Complain unless the costs are those of the pool, and exact scores can be.

        Raises:
            ValueError: If costs are of other rows, or scores are to be exact with
                several levels or outputs.
        """
        n_levels = goal.facts.n_outputs, goal.facts.n_comparisons
        if self.exact and n_levels != (1, 1):
            wanted = "to be left out with several levels or outputs"
            remedy = "Results then count as Gaussian measurements."
            raise ValueError(complaint("exact", wanted, "got True", remedy))
        if self.costs is not None and self.costs.pool.hash != pool.hash:
            raise ValueError(
                f"Expected `costs` of the strategy's own `pool` of {len(pool)} rows, "
                f"but got those of another one of {len(self.costs.pool)}. Write "
                "`RowCosts(pool)`."
            )

    # --- memory -----------------------------------------------------------------------

    def start(self, posterior: PoolPosterior | None, beta: float) -> Visits:
        r"""The rule's memory before any round, when nothing is measured."""
        return Visits()

    def measured(self, before: Visits, after: Visits, rows: Tensor) -> Visits:
        r"""The rule's memory with the last row visited and the costs of all visits."""
        if self.costs is None:
            return replace(after, spent=before.spent + len(rows))
        path = self.costs.visiting_order(before.previous, rows)
        spent = before.spent + self.costs.along(before.previous, path)
        # Where all others are excluded, a model is learnt of what was known before.
        previous = self.costs.end(before.previous, rows)
        return replace(after, previous=previous, spent=spent)

    def order(self, memory: Visits, rows: Tensor, before: Tensor) -> Tensor:
        r"""The rows in visiting order: after ``before`` always the cheapest next."""
        if self.costs is None:
            return rows.sort().values
        previous = self.costs.end(memory.previous, before)
        return self.costs.visiting_order(previous, rows)

    # --- choosing ---------------------------------------------------------------------

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The best rows, chosen one by one while the rows in question stay fixed."""
        left, previous, layout = request.left.clone(), None, context.fits.layout
        if self.costs is not None:
            visited = context.belief.memory.previous
            previous = self.costs.end(visited, request.pending)
        chosen: list[int] = []
        kept: Kept | None = {} if request.size > 1 else None
        while len(chosen) < request.size:
            open_rows = context.open_rows & (left > 0)
            if isinstance(layout, FromSources):
                given = layout, open_rows, request.pending, chosen
                open_rows = rows_due(context, *given)
            rows = open_rows.nonzero().view(-1)
            if rows.numel() == 0:
                break
            if not context.is_initial:
                rows = self.usable(context, rows)
            scores = self.scores(context, previous, rows, kept)
            # Scores are sums over targets, and ties a share of the best one. They come
            # from covariances, which are differences from prior ones: where nearly all
            # variance is gone, what is left of their digits decides.
            posterior, best = context.fits.posteriors[0], abs(float(scores.max()))
            rounding = ROUNDING * posterior.scale**2
            digits = 2 * rounding / max(float(posterior.variance.max()), rounding)
            unit = best * max(1.0, min(digits, 1.0) / TIE)  # of a squared covariance
            at = first_best(scores, torch.ones_like(rows, dtype=torch.bool), unit)
            row = int(rows[at or 0])
            chosen.append(row)
            left[row] -= 1
            if len(chosen) < request.size:
                expected = context.fits.expecting(torch.tensor([row]))
                context = replace(context, fits=expected)
            previous = row
        return torch.tensor(chosen, dtype=torch.long)

    def scores(
        self,
        context: SelectionContext,
        previous: int | None,
        rows: Tensor,
        kept: Kept | None = None,
    ) -> Tensor:
        r"""The decrease of the loss per cost by each row; initially the variance.

        Args:
            context: What is believed and still open.
            previous: The row measured before, on which costs may depend.
            rows: The rows to score.
            kept: See ``Reductions``.

        Source:
            Bogunovic et al. (2016), Eq. (3), for the truncated variance.
        """
        belief, layout = context.belief, context.fits.layout
        costs = None if self.costs is None else self.costs.of(previous, rows)
        if costs is not None:
            costs = layout.charged(costs, rows)
        if context.is_initial:
            if layout.n_each > 1:
                costs = None  # each output needs its first rows, whatever they cost
            found = variance_left(context)[rows]
        else:
            targets = context.items[belief.sides.candidates & context.is_first_copy]
            noise = layout.values(belief.fits.noise)[rows]
            given = context.fits.posteriors[0], rows, targets, noise, costs
            reductions = Reductions(*given, kept=kept)
            found = self.removed(context, reductions)
            if self.exact:
                found = by_results(context, reductions, found, self.change)
            if isinstance(layout, FromSources):
                found = worth_asking(layout, rows, found)
        return found if costs is None else found / costs


@dataclass(frozen=True)
class TargetedVariance(LookAhead):
    r"""Measure the row that most lowers the variances near the level (tIMSE).

    The sum over the rows in question of ``w r``: ``r`` is what a measurement takes off
    the variance ``s^2`` of a row, ``w`` the density of the level under ``N(mean, s^2 +
    tau^2)``. It is never far from the best rule and the cheapest that looks ahead.

    Args:
        tau: How far around the level values matter, units of ``y``.
        costs: The costs of rows; ``None``: the pool's costs, or one each.
        batch: ``"believer"`` or ``"joint"``, see ``LookAhead``. Here the weights are
            those before the batch where it is joint.

    Raises:
        ValueError: If ``tau`` is negative or ``batch`` is not known.

    Source:
        Picheny et al. (2010).
    """

    tau: float = 0.0
    costs: RowCosts | None = None
    batch: Batch = "believer"

    def __post_init__(self) -> None:
        in_interval(self.tau, "tau", 0.0, math.inf, closed_low=True)
        one_of(self.batch, "batch", BATCHES)

    def removed(self, context: SelectionContext, reductions: Reductions) -> Tensor:
        r"""The weighted reductions of the variances."""
        removal = partial(targeted_variance, tau=self.tau)
        if is_one_level(context):
            return near_level(context, reductions, removal, self.batch)
        return near_levels(context, reductions, self.tau, self.batch)


@dataclass(frozen=True)
class ExpectedMisclassification(LookAhead):
    r"""Measure the row that most lowers the expected number of wrong sides (SUR).

    The sum over the rows in question of ``p (1 - p)`` now, minus its expectation after
    the measurement, where ``p`` is the probability that the row is above; see
    ``functional/lookahead.py``.

    For a region ``p`` is the probability to be inside, made of all outputs and levels,
    and the expectation is exact as well (``functional/class_removal.py``).

    Args:
        costs: The costs of rows; ``None``: the pool's costs, or one each.
        batch: ``"believer"`` or ``"joint"``, see ``LookAhead``.
        exact: Whether results that are no numbers are scored exactly, one level being
            in question and the batch not joint; see ``LookAhead``.

    Raises:
        ValueError: If ``batch`` is not known, or joint beside ``exact``.

    Source:
        Bect et al. (2012); Chevalier et al. (2014), section 3.
    """

    costs: RowCosts | None = None
    batch: Batch = "believer"
    exact: bool = False

    change = "product"

    def __post_init__(self) -> None:
        one_of(self.batch, "batch", BATCHES)
        if truth_value(self.exact, "exact") and self.batch == "joint":
            refuse_joint()

    def removed(self, context: SelectionContext, reductions: Reductions) -> Tensor:
        r"""The expected decreases of the probabilities of a wrong side."""
        if not is_one_level(context):
            return off_the_doubt(context, reductions, self.batch)
        return near_level(context, reductions, expected_misclassification, self.batch)


@dataclass(frozen=True)
class MutualInformation(LookAhead):
    r"""Measure the row that tells most about the sides in question (GlobalMI).

    The sum over these rows of the mutual information between side and measurement, in
    nats.

    Args:
        costs: The costs of rows; ``None``: the pool's costs, or one each.
        batch: ``"believer"`` or ``"joint"``, see ``LookAhead``.
        exact: Whether results that are no numbers are scored exactly, one level being
            in question and the batch not joint; see ``LookAhead``.

    Raises:
        ValueError: If ``batch`` is not known, or joint beside ``exact``.

    Source:
        Letham et al. (2022); Gaussian in place of binary responses, unless ``exact``.
    """

    costs: RowCosts | None = None
    batch: Batch = "believer"
    exact: bool = False

    change = "entropy"

    serves = Serves.LEVEL

    def __post_init__(self) -> None:
        one_of(self.batch, "batch", BATCHES)
        if truth_value(self.exact, "exact") and self.batch == "joint":
            refuse_joint()

    def removed(self, context: SelectionContext, reductions: Reductions) -> Tensor:
        r"""The expected reductions of the entropies of the sides."""
        return near_level(context, reductions, mutual_information, self.batch)


@dataclass(frozen=True)
class AbsoluteVolumeChange(LookAhead):
    r"""Measure the row expected to change the number of rows above most (EAVC).

    The expectation of ``abs(sum of p_after - p)`` over the rows in question, where
    ``p`` is the probability of a row to be above. The absolute value is outside the
    sum: rows that one value would push to different sides cancel. In a batch, rows that
    were chosen before reduce the variances and leave the means.

    Args:
        costs: The costs of rows; ``None``: the pool's costs, or one each.
        exact: Whether results that are no numbers are scored exactly, see
            ``LookAhead``.

    Source:
        Letham et al. (2022); Gaussian in place of binary responses, unless ``exact``.
    """

    costs: RowCosts | None = None
    exact: bool = False

    change = "volume"

    serves = Serves.LEVEL

    def __post_init__(self) -> None:
        truth_value(self.exact, "exact")

    def removed(self, context: SelectionContext, reductions: Reductions) -> Tensor:
        r"""The expected absolute changes of the number of rows above the level."""
        level = context.comparisons[0].level
        found = reductions.volume_change(level, context.weights)
        return found if float(found.max()) > 0 else reductions.truncated(1.0, 0.0)


@dataclass(frozen=True)
class ContentVariance(LookAhead):
    r"""Measure the row that most narrows the interval of the share above the level.

    The variance of the share under the posterior, minus its expectation after the
    measurement: the mean square of ``sum w (p_after - p)`` over the rows in question,
    with their weights ``w`` and their probabilities ``p`` to be above. Sides of rows
    that one value moves together count together. In a batch, rows that were chosen
    before reduce the variances and leave the means.

    Args:
        costs: The costs of rows; ``None``: the pool's costs, or one each.

    Source:
        Bect et al. (2012), the SUR strategy of the variance of the excursion volume,
        which they bound by sums over points; this is that variance itself.
    """

    costs: RowCosts | None = None

    serves = Serves.LEVEL

    def removed(self, context: SelectionContext, reductions: Reductions) -> Tensor:
        r"""The expected reductions of the variance of the share."""
        level = context.comparisons[0].level
        found = reductions.volume_change(level, context.weights, is_square=True)
        return found if float(found.max()) > 0 else reductions.truncated(1.0, 0.0)


def near_level(
    context: SelectionContext,
    reductions: Reductions,
    removal: Callable[[Tensor, Tensor], Removal],
    batch: Batch,
) -> Tensor:
    r"""The amount that each row takes off a loss of distances from the level.

    Where all targets are so far from the level that nothing is left of the loss in
    floating point, or the rows before have removed all of it, the plain reductions of
    their variances, so that the choice has a direction.

    Targets count by their weights, where they have them.

    Args:
        context: The belief and the rows to choose from.
        reductions: The reductions of the variances by the rows.
        removal: From signed distances from the level and variances to removals.
        batch: How rows that are chosen or being measured count.
    """
    posterior = context.fits.posteriors[0]
    before = context.belief.fits.posteriors[0].variance
    (level,), weights = context.comparisons, context.weights

    def at(targets: Tensor) -> Removal:
        distance = posterior.mean[targets] - level.level_at(targets)
        left = posterior.variance[targets]
        whole = left if batch == "believer" else before[targets]
        found, earlier = removal(distance, whole), whole - left
        if bool(earlier.any()):  # or nothing is added to, and sums are cheaper
            found = AddedRemoval(found, earlier)
        return found if weights is None else found.weighted(weights[targets])

    found = reductions.summed(at)
    if float(found.max()) <= 0:
        return reductions.truncated(1.0, 0.0)
    return found


def refuse_joint() -> None:
    r"""Complain about exact scores of results in joint batches.

    Raises:
        ValueError: In any case.
    """
    wanted = 'to be "believer" with `exact=True`'
    remedy = "Leave `exact` out: results then count as Gaussian measurements."
    raise ValueError(complaint("batch", wanted, 'got "joint"', remedy))


def by_results(
    context: SelectionContext,
    reductions: Reductions,
    scores: Tensor,
    change: Change,
) -> Tensor:
    r"""The scores of the best rows by the results that they may have, if these say it.

    Args:
        context: The belief and the rows to choose from.
        reductions: The rows and the targets.
        scores: ``C`` scores by Gaussian measurements in place of results.
        change: The loss of the sides, or the number of targets above.

    Returns:
        ``C`` scores, 0 for rows that are not among the ``FINALISTS`` best. Those given
        where numbers are measured, or all targets are so far from the level that
        rounding would decide.
    """
    outcomes = context.fits.outcomes
    if not outcomes or outcomes[0] is None:
        return scores
    costs, targets = reductions.costs, reductions.targets
    best = best_ones(scores if costs is None else scores / costs, FINALISTS)
    posterior, (level,) = context.fits.posteriors[0], context.comparisons
    counts = reductions.counts
    if context.weights is not None:
        counts = counts * context.weights[targets]
    mean, variance = posterior.mean, posterior.variance
    distance = mean[targets] - level.level_at(targets)
    if len(targets) > FINE:
        b = ratio_to_level(distance, variance[targets])
        loss = torch.special.ndtr(b) * torch.special.ndtr(-b) * counts + TINY
        drawn, mass = systematic_sample(loss, FINE, 0)
        targets, distance = targets[drawn], distance[drawn]
        counts = counts[drawn] * mass / loss[drawn]
    few = replace(reductions.of_some(best), targets=targets, kept=None)
    covariance = torch.cat([own for _, own, _ in few.blocks_of(targets)])
    given = distance, variance[targets]
    b, found = ratio_to_level(*given), []
    result = outcomes[0].ahead(mean[few.rows], variance[few.rows])
    for some, own in result.pieces(covariance):
        together = some.with_sides(*given, own)
        if change == "volume":
            found.append(some.volume_change(together * counts))
        else:
            found.append(some.removed(change, b, together) @ counts)
    exactly = torch.cat(found)
    if not float(exactly.max()) > NEGLIGIBLE * float(counts.sum()):
        return scores
    return torch.zeros_like(scores).index_copy_(0, best, exactly)


def is_one_level(context: SelectionContext) -> bool:
    r"""Whether sides depend on one output at one level only."""
    return len(context.fits.posteriors) == 1 and len(context.comparisons) == 1


Kept = dict[int, tuple[Tensor, Tensor, Tensor, int, Tensor]]
"""The covariances that are kept for each posterior, by the identity of its factor.
The factor, so that its identity is not given to another one, the rows, the targets, the
number of path rows that are taken off, and the covariances."""
Gains = Iterator[tuple[slice, Iterator[tuple[Tensor, list[Tensor]]]]]
"""The reductions of targets' variances by all rows, for some targets at a time.
In pieces: positions among the rows, and ``c x T`` reductions (or ``1 x 1`` zeros) for
each output."""
Taken = Callable[[Sequence[Tensor]], Tensor]
"""A function from each output's reductions to decreases of a loss (``C x T`` each)."""


def over_outputs(
    context: SelectionContext, reductions: Reductions, at: Callable[[Tensor], Taken]
) -> Tensor:
    r"""The amount that each row takes off a loss that depends on all outputs.

    Args:
        context: The belief and the rows to choose from.
        reductions: The reductions of the variances by the rows.
        at: From targets to what reductions take off there.
    """
    posteriors, weights = context.posteriors, context.weights

    def whole(targets: Tensor) -> Tensor:
        found = at(targets)([p.variance[targets] for p in posteriors])
        return found if weights is None else found * weights[targets]

    def sums(some: Reductions) -> Tensor:
        total = torch.zeros(len(some.rows), dtype=torch.float64)
        for part, blocks in gains_of_outputs(context.fits, some):
            targets, counts = some.targets[part], some.counts[part]
            if weights is not None:
                counts = counts * weights[targets]
            taken = at(targets)
            for rows, gains in blocks:
                total[rows] += taken(gains) @ counts
        return total

    reach = _reach(context.fits, reductions)
    return reductions.best(sums, whole, reach, len(posteriors))


def _reach(fits: Posterior, reductions: Reductions) -> tuple[Tensor, Tensor]:
    r"""The place of each row among the targets' rows, and how far its mean may move.

    In units of the prior's standard deviation, of the output for which that is most.
    """
    rows, each = reductions.rows, []
    for posterior, noise in zip(fits.posteriors, fits.noise, strict=True):
        own = posterior.variance[: len(noise)]
        each.append(own / (own + noise).clamp_min(TINY).sqrt() / posterior.scale)
    move = fits.layout.merged(each, partial(torch.amax, dim=0))
    return fits.layout.at(rows), move[rows]


def gains_of_outputs(fits: Posterior, reductions: Reductions) -> Gains:
    r"""The decreases of all outputs' variances by measurements, block by block.

    Args:
        fits: The posteriors.
        reductions: The reductions of the variances by the rows.
    """
    keep_memory()
    parts = reductions.parts()
    kept = reductions.kept if len(parts) == 1 else None
    for part in parts:
        given = reductions.rows, reductions.targets[part], kept
        yield part, _gains_at(fits, *given)


def _gains_at(
    fits: Posterior, rows: Tensor, targets: Tensor, kept: Kept | None
) -> Iterator[tuple[Tensor, list[Tensor]]]:
    r"""The decreases at some targets: positions of rows, and one matrix per output."""
    posteriors, nothing = fits.posteriors, torch.zeros(1, 1, dtype=torch.float64)
    for places, own, outputs in fits.layout.groups(rows):
        noise = [fits.noise[j][own] for j in outputs]
        if posteriors[0].is_correlated:
            found = correlated.gains(posteriors, outputs, own, targets, noise)
            yield from ((places[piece], gains) for piece, gains in found)
            continue
        pairs = zip(outputs, noise, strict=True)
        each = [Reductions(posteriors[j], own, targets, n, kept=kept) for j, n in pairs]
        for blocks in zip(*(one.blocks_of(targets) for one in each), strict=True):
            gains = [nothing] * len(posteriors)
            for j, (_, covariance, observed) in zip(outputs, blocks, strict=True):
                gains[j] = single_gain(covariance, observed, out=covariance)
            yield places[blocks[0][0]], gains


def off_the_doubt(
    context: SelectionContext, reductions: Reductions, batch: Batch
) -> Tensor:
    r"""The amount that each row takes off the doubt about classes of rows in question.

    Args:
        context: The belief and the rows to choose from.
        reductions: The reductions of the variances by the rows.
        batch: How rows that are chosen or being measured count: see ``LookAhead``.
    """
    region, posteriors = context.region, context.posteriors
    assert region is not None  # the rule serves regions
    before = context.belief.fits.posteriors

    def at(targets: Tensor) -> Taken:
        means = [p.mean[targets] for p in posteriors]
        left = [p.variance[targets] for p in posteriors]
        whole = [p.variance[targets] for p in before] if batch == "joint" else left
        earlier = [w - v for w, v in zip(whole, left, strict=True)]
        removal = class_removal(region.cells.at(targets), means, whole)
        # Where nothing more is learnt nothing must be left of the difference.
        known = removal.of(earlier) * (1 + ROUNDING)

        def taken(found: Sequence[Tensor]) -> Tensor:
            gains = [gain + gone for gain, gone in zip(found, earlier, strict=True)]
            return removal.of(gains) - known

        return taken

    total = over_outputs(context, reductions, at)
    return total if float(total.max()) > 0 else plain_gains(context, reductions)


def near_levels(
    context: SelectionContext, reductions: Reductions, tau: float, batch: Batch
) -> Tensor:
    r"""The amount that each row takes off the variances near all levels of all outputs.

    Like ``targeted_variance``, with the share by which the side depends on each level
    as a further factor, summed over the levels, and over the outputs in units of their
    prior's standard deviation.

    Args:
        context: The belief and the rows to choose from.
        reductions: The reductions of the variances by the rows.
        tau: How far around a level values matter, units of the output.
        batch: How rows that are chosen or being measured count: see ``LookAhead``.
    """
    region, before = context.region, context.belief.fits.posteriors
    assert region is not None  # the rule serves regions
    given = before if batch == "joint" else context.posteriors

    def at(targets: Tensor) -> Taken:
        cells = region.cells.at(targets)
        means = [p.mean[targets] for p in given]
        variances = [p.variance[targets] for p in given]
        shares = level_weights(cells, means, variances)
        weights = []
        for j, own in enumerate(context.posteriors):
            distance = means[j].unsqueeze(-1) - cells.levels[j]
            near = targeted_variance(distance, variances[j].unsqueeze(-1), tau).weight
            weights.append((near * shares[j]).sum(dim=-1) / own.scale)
        return partial(_weighted, weights)

    total = over_outputs(context, reductions, at)
    return total if float(total.max()) > 0 else plain_gains(context, reductions)


def plain_gains(context: SelectionContext, reductions: Reductions) -> Tensor:
    r"""The decrease of all outputs' variances by each row, in units of the prior."""
    units = [torch.tensor(p.scale**-2).double() for p in context.posteriors]
    everything = replace(context, weights=None)
    return over_outputs(everything, reductions, lambda _: partial(_weighted, units))


def _weighted(weights: Sequence[Tensor], gains: Sequence[Tensor]) -> Tensor:
    r"""The reductions of all outputs, summed with the weights of each (``C x T``)."""
    each = [gain * weight for gain, weight in zip(gains, weights, strict=True)]
    return sum(each[1:], each[0])


@dataclass(frozen=True, eq=False)
class Reductions:
    r"""The decreases of ``T`` targets' variances by each of ``C`` rows.

    The one pass over candidates and targets that all rules of this module share: in
    blocks within the memory budget, and sums that depend on the rows alone.

    Args:
        posterior: On the pool; it expects the rows planned already.
        rows: ``C`` candidates.
        targets: ``T`` rows in question, over which the sums run.
        noise_var: ``C`` noise variances of an observation at each candidate, at least
            ``posterior.least_noise``.
        costs: ``C`` costs, by which sums of many rows are compared; default 1 each.
        weights: ``T`` factors by which targets count that stand for others; default 1
            each.
        kept: What is kept from row to row of a batch, each of which lowers all
            covariances by one product; ``None``: nothing, they are computed anew.
    """

    posterior: PoolPosterior
    rows: Tensor
    targets: Tensor
    noise_var: Tensor
    costs: Tensor | None = None
    weights: Tensor | None = None
    kept: Kept | None = None

    @property
    def counts(self) -> Tensor:
        r"""The factors by which targets count (``T``)."""
        if self.weights is None:
            return torch.ones(len(self.targets), dtype=torch.float64)
        return self.weights

    def summed(
        self, effect_at: Callable[[Tensor], Effect], beside: Tensor | None = None
    ) -> Tensor:
        r"""The effect of each row, summed over the targets.

        Args:
            effect_at: From numbers of targets to what an observation does there.
            beside: Targets with which others are compared, wherever these are only some
                of them.

        Returns:
            ``C`` sums, units of the loss: see ``best``.
        """

        def whole(targets: Tensor) -> Tensor:
            return effect_at(targets).whole(self.posterior.variance[targets])

        n, of_some = len(self.targets), Reductions._every_sum
        sums = partial(of_some, effect_at=effect_at, beside=beside, n_targets=n)
        return self.best(sums, whole)

    def best(
        self,
        sums: Callable[[Reductions], Tensor],
        whole: Callable[[Tensor], Tensor],
        reach: tuple[Tensor, Tensor] | None = None,
        n_outputs: int = 1,
    ) -> Tensor:
        r"""The sum of each row over all targets; with many, of the best rows only.

        Every row is scored on a sample of the targets, drawn in proportion to the loss
        that they have now. The best ones, and those that are uncertain themselves where
        there is much to lose, are scored exactly.

        Args:
            sums: What some rows take off the loss of some targets.
            whole: From targets to the loss that they have now.
            reach: For each row its place among the posterior's rows, and by how much a
                standard deviation of its value moves its mean; default those of the
                posterior.
            n_outputs: Outputs that each have covariances of their own.

        Returns:
            ``C`` sums, units of the loss. Where there are more than ``ALL_PAIRS`` pairs
            of rows and targets, those of the rows that are likely to be the best per
            cost, and 0 for the others.
        """
        if len(self.rows) * len(self.targets) * n_outputs <= ALL_PAIRS:
            return sums(self)
        if self.kept is not None:  # another sample of the targets for each row
            return replace(self, kept=None).best(sums, whole, reach, n_outputs)
        found = torch.zeros(len(self.rows), dtype=torch.float64)
        loss = torch.cat([whole(self.targets[part]) for part in self.parts()])
        loss = loss.clamp_min(0.0)
        if not float(loss.sum()) > 0:
            return found
        own = self._own(loss, *(reach or self._moves))
        some = self._drawn(own)
        far = self._best_of(some, SHORTLIST, loss, SAMPLE, sums)
        some = torch.cat((far, best_ones(own, SHORTLIST))).unique()
        if len(self.targets) > FINE:
            some = self._best_of(some, FINALISTS, loss, FINE, sums)
        return found.index_copy_(0, some, sums(self.of_some(some)))

    @property
    def _moves(self) -> tuple[Tensor, Tensor]:
        variance = self.posterior.variance[self.rows]
        return self.rows, variance / (variance + self.noise_var).clamp_min(TINY).sqrt()

    def _own(self, loss: Tensor, places: Tensor, move: Tensor) -> Tensor:
        r"""A hint of how much each row tells about itself, per cost (``C``)."""
        of_all = torch.zeros_like(self.posterior.variance)
        hint = of_all.index_copy_(0, self.targets, loss)[places] * move
        return hint if self.costs is None else hint / self.costs

    def _drawn(self, own: Tensor) -> Tensor:
        r"""The places of the rows that are scored on the sample."""
        every = torch.arange(len(own))
        if len(own) <= MOST_ROWS:
            return every
        evenly = every[:: -(-2 * len(own) // MOST_ROWS)]
        if not float(own.sum()) > 0:
            return evenly
        likely, _ = systematic_sample(own, MOST_ROWS // 2, 0)
        return torch.cat((evenly, likely)).unique()

    def _best_of(
        self,
        some: Tensor,
        size: int,
        loss: Tensor,
        n_targets: int,
        sums: Callable[[Reductions], Tensor],
    ) -> Tensor:
        r"""The places of the ``size`` best rows, per cost on a sample of targets.

        Args:
            some: Places of the rows.
            size: How many.
            loss: ``T`` losses of the targets now.
            n_targets: Of the sample.
            sums: See ``best``.
        """
        kept, mass = systematic_sample(loss, n_targets, 0)
        is_any = loss[kept] > 0  # rounding may meet the last target instead
        kept, mass = kept[is_any], mass[is_any]
        rows, targets = self.of_some(some), self.targets[kept]
        scores = sums(replace(rows, targets=targets, weights=mass / loss[kept]))
        if rows.costs is not None:
            scores = scores / rows.costs
        return some[best_ones(scores, size)]

    def of_some(self, some: Tensor) -> Reductions:
        r"""The reductions by some of the rows, by their places."""
        rows, noise_var = self.rows[some], self.noise_var[some]
        costs = None if self.costs is None else self.costs[some]
        return replace(self, rows=rows, noise_var=noise_var, costs=costs)

    def _every_sum(
        self,
        effect_at: Callable[[Tensor], Effect],
        beside: Tensor | None = None,
        n_targets: int = 0,
    ) -> Tensor:
        r"""The sum of each row; see ``summed`` for the arguments.

        Args:
            effect_at: From numbers of targets to what an observation does there.
            beside: Targets with which others are compared.
            n_targets: How many there are, of which these may be some.
        """
        keep_memory()
        sums: Tensor | None = None
        parts = self.parts()
        some = self if len(parts) == 1 else replace(self, kept=None)
        if len(parts) == 1 and len(self.targets) == n_targets:
            beside = None  # they are among the others
        for part in parts:
            targets, weights = self.targets[part], self.weights
            if weights is not None or beside is not None:
                weights = self.counts[part]
            if beside is not None:
                targets = torch.cat((targets, beside))
                nothing = torch.zeros(len(beside), dtype=torch.float64)
                weights = torch.cat((self.counts[part], nothing))
            effect = effect_at(targets)
            if weights is not None:
                effect = effect.weighted(weights)
            for rows, covariance, observed in some.blocks_of(targets):
                found = effect.parts(covariance, observed)
                if sums is None:
                    sums = found.new_zeros(len(self.rows), found.shape[-1])
                sums[rows] += found
        if sums is None:
            return torch.zeros(len(self.rows), dtype=torch.float64)
        return effect.total(sums)

    def volume_change(
        self,
        level: float | Tensor,
        weights: Tensor | None = None,
        is_square: bool = False,
    ) -> Tensor:
        r"""The change in the number of targets above that each row is expected to make.

        Args:
            level: The level, or one for each row of the posterior; units of ``y``.
            weights: ``N`` weights by which rows count as targets; default all the same.
            is_square: Whether to return mean squares; default mean sizes.

        Returns:
            ``C`` of them, as ``summed``.
        """
        posterior = self.posterior

        def at(targets: Tensor) -> Effect:
            distance = posterior.mean[targets] - Comparison(0, level).level_at(targets)
            series = volume_series(distance, posterior.variance[targets], is_square)
            return series if weights is None else series.weighted(weights[targets])

        return self.summed(at)

    def parts(self) -> list[slice]:
        r"""The targets in parts whose path rows fit the memory budget."""
        posterior, n = self.posterior, self.posterior.a.numel() + 1
        most = min(posterior.memory_budget, 8 * COPIES * n * WIDEST)
        return row_blocks(len(self.targets), n, most)

    def blocks_of(self, part: Tensor) -> Iterator[Block]:
        r"""The pieces of all rows with some targets; the caller may overwrite them."""
        posterior, rows = self.posterior, self.rows
        budget = min(posterior.memory_budget, 8 * COPIES * AT_ONCE)
        path = posterior.path_at(part).mT.contiguous()
        blocks = row_blocks(len(rows), len(part), budget)
        between = partial(posterior.covariance_between, columns=part, path=path)
        # What is kept comes on top of the pieces; 2^21 pairs are 16 MiB.
        whole, size = None, 8 * COPIES * len(rows) * len(part)
        if self.kept is not None and 0 < size <= posterior.memory_budget:
            found = self.kept.get(id(posterior.L))
            if found is not None and torch.equal(found[2], part):
                _, before, _, n, whole = found
                places = torch.searchsorted(before, rows).clamp_max(len(before) - 1)
                is_part = torch.equal(before[places], rows)
                if not torch.equal(before, rows):
                    whole = whole[places]
                planned = posterior.path_at(rows)[:, n:]
                whole = whole.addmm_(planned, path[n:], alpha=-1) if is_part else None
            if whole is None:
                whole = torch.cat([between(rows[block]) for block in blocks])
            self.kept[id(posterior.L)] = posterior.L, rows, part, len(path), whole
        for block in blocks:
            own = rows[block]
            covariance = between(own) if whole is None else whole[block].clone()
            yield block, covariance, posterior.variance[own] + self.noise_var[block]

    def in_epoch(self, beta: float, eta: float) -> Tensor:
        r"""The reduction of truncated variance by each row, as an epoch counts it.

        If no row has anything left to reduce (inside a batch, all widths may have
        reached ``eta``), the reduction of the plain variances is given.

        Args:
            beta: The squared width.
            eta: The width to reach, units of ``y``.
        """
        found = self.truncated(beta, eta)
        everything = beta * float(self.posterior.variance[self.targets].sum())
        if eta > 0 and float(found.max()) <= NEGLIGIBLE * everything:
            return self.truncated(beta, 0.0)
        return found

    def truncated(self, beta: float, eta: float) -> Tensor:
        r"""The reduction of truncated variance by each row: the numerator of Eq. (3).

        Args:
            beta: The squared width.
            eta: The width to reach, units of ``y``.

        Returns:
            ``C`` reductions, units of ``y`` squared.

        Source:
            Bogunovic et al. (2016), Eq. (3) and (18).
        """

        def at(targets: Tensor) -> Removal:
            return truncated_variance(self.posterior.variance[targets], beta, eta)

        return self.summed(at)

    def anticipated(self, beta: float, eta: float, stays: Stays) -> Tensor:
        r"""The reductions if targets that a measurement decides no longer count.

        Args:
            beta: The squared width.
            eta: The width to reach, units of ``y``.
            stays: What stays in question.

        Source:
            Bogunovic et al. (2016), Appendix A; see ``AnticipatedRemoval``.
        """
        mean, variance = self.posterior.mean, self.posterior.variance
        leaders = self.targets[best_ones(mean[self.targets], LEADERS)]

        def at(targets: Tensor) -> AnticipatedRemoval:
            return AnticipatedRemoval(
                variance[targets], beta, eta, partial(stays, mean[targets])
            )

        # Whether a row may be the maximiser depends on the best lower end of all.
        return self.summed(at, leaders)
