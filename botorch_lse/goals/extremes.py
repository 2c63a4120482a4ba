r"""Shares of the maximum and maximisers: questions that compare rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    Sides,
    accuracy,
    level_ends,
    may_be_on_either,
    ratio,
)
from botorch_lse.data.classification import Classification
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.goals.base import Goal, GoalFacts, Intervals, Targets, all_are_right
from botorch_lse.goals.gaps import likely_gaps, squared_gaps
from botorch_lse.models.gaussian_process import row_blocks

PAIR_ARRAYS = 6
"""The number of arrays of all pairs that exist at once in the search for the best."""


@dataclass(frozen=True)
class AnyShareOfMax(Goal):
    r"""Base class of ``above = {x : f(x) > omega max f}``.

    Args:
        omega: In (0, 1).
        epsilon: The accuracy.
    """

    omega: float
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "omega", ratio(self.omega))  # as a plain number
        accuracy(self.epsilon)

    def against(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""Whether sides disagree with the regions of item and level (``T`` bools)."""
        regions = seen.regions
        low = self.omega * regions.lower.max() - self.epsilon
        high = self.omega * regions.upper.max() + self.epsilon
        above = (sides.side == ABOVE) & (regions.upper < low)
        return above | ((sides.side == BELOW) & (regions.lower > high))

    @property
    def facts(self) -> GoalFacts:
        r"""The facts: one level, whose own bounds decide."""
        return GoalFacts(all_are_right(self.epsilon), self.epsilon / (1 + self.omega))

    def region(self, mean: Sequence[Tensor]) -> ValueRegion:
        r"""The values above ``omega`` times the largest mean."""
        return ValueRegion.above(self.omega * float(mean[0].max()), self.epsilon)

    def distances(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""The half widths that decide all, of open items and of possible maxima.

        With half widths ``w`` and the largest mean at ``b``, ``x`` is decided once
        ``w(x) + omega w(b) <= |f(x) - omega f(b)| + epsilon``. Of the nearest item and
        ``b`` both are the same. What is above asks for the highest end, too: then no
        other interval may reach higher than that of ``b``.
        """
        mean, is_open = seen.regions.mean, sides.side == UNDECIDED
        best = int(mean.argmax())
        gaps = likely_gaps(mean - self.omega * mean[best], seen.regions.sigma)
        left = gaps.abs().masked_fill(~is_open, torch.inf)
        least = left.min() / (1 + self.omega)
        is_any_above = (is_open & (gaps > 0)).any()
        found = least + (mean[best] - mean).where(is_any_above, torch.inf)
        found[best] = least
        return found.minimum(left - self.omega * least)

    def answer(self, sides: Sides, seen: Intervals, claim: str) -> Classification:
        r"""The answer; the level may be anywhere between its two bounds."""
        found = super().answer(sides, seen, claim)
        if self.epsilon == 0:
            return found
        ends = seen.regions.lower, seen.regions.upper
        within = may_be_on_either(sides.side, *ends, *level_ends(self.omega, *ends))
        return replace(found, within=within)

    def question(self, names: Sequence[str]) -> str:
        r"""The question, with the share in words."""
        return f"{names[0]} above {written(self.omega)} of its maximum"


@dataclass(frozen=True)
class ShareOfMax(AnyShareOfMax):
    r"""The question ``above = {x : f(x) > omega max f}``, by bounds of the level.

    The regions give an upper (optimistic) and a lower (pessimistic) bound of ``omega
    max f``; an item above the one is above, below the other it is below.

    Args:
        omega: In (0, 1).
        epsilon: The accuracy.
        drop_maximisers: See ``Sides.update_implicit``.

    Source:
        Gotovos et al. (2013), Algorithm 2, lines 4 to 15.
    """

    drop_maximisers: bool = False

    theorem: ClassVar[str] = "Theorem 2"

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after undecided items are compared with both bounds."""
        return sides.update_implicit(
            seen.regions.lower,
            seen.regions.upper,
            self.omega,
            self.epsilon,
            self.drop_maximisers,
        )


@dataclass(frozen=True, eq=False)
class PairSides(Sides):
    r"""The sides of a goal by pairs, with the pairs that are still to be compared.

    Args:
        pairs: ``N x N`` bools, the ordered pairs still open. For the other arguments
            see ``Sides``.
    """

    pairs: Tensor | None = None

    def reopened(self, rows: Tensor) -> PairSides:
        r"""The sides with ``rows`` (``N`` bools) undecided and all their pairs open."""
        assert self.pairs is not None
        found = super().reopened(rows)
        partners = rows & (found.side != BELOW).unsqueeze(-1)
        pairs = self.pairs | partners | rows.unsqueeze(-1)
        return PairSides(found.side, found.candidates, pairs=pairs)


@dataclass(frozen=True)
class ShareOfMaxByPairs(AnyShareOfMax):
    r"""The question ``above = {x : f(x) > omega max f}``, by comparing pairs.

    Each pair ``(x, x')`` has an interval of ``f(x) - omega f(x')``.

    An item is above once every pair ``(x, x')`` is certain, below once one is refuted;
    an item below leaves all pairs. A pair is certain if its lower end plus ``epsilon``
    is positive, which is tested first. The maximum is never estimated.

    Args:
        omega: In (0, 1).
        epsilon: The accuracy.

    Source:
        Mason et al. (2022), Algorithm 2.
    """

    theorem: ClassVar[str] = "Theorem 1, its union bound over all ordered pairs"
    by_pairs: ClassVar[bool] = True
    without_pairs: ClassVar[str] = "`ImplicitLSEStrategy` keeps no pairs"

    def bytes_for(self, n_items: int) -> int:
        r"""The bytes of one float64 variance per ordered pair."""
        return 8 * n_items**2

    def start(self, n_items: int) -> PairSides:
        r"""The sides before any interval: every ordered pair is open."""
        start = Sides.start(n_items)
        pairs = torch.ones(n_items, n_items, dtype=torch.bool)
        return PairSides(start.side, start.candidates, pairs=pairs)

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after each open pair is compared by its own interval."""
        pairs, omega = _pairs_of(sides), self.omega
        left = torch.zeros_like(pairs)
        bad, gone = (torch.zeros_like(sides.candidates) for _ in range(2))
        mean, live = seen.regions.mean, pairs.any(dim=1).nonzero().view(-1)
        widths = seen.belief.differences(0, torch.arange(len(mean)), omega)
        for block in row_blocks(live.numel(), len(mean), seen.belief.memory_budget):
            i = live[block]
            active, (_, half) = pairs[i], widths(i)
            high = mean[i].unsqueeze(-1) - omega * mean
            low = high - half
            # In place: what such a pass costs is memory.
            outdone = high.add_(half) <= 0
            certain = low.add_(self.epsilon) > 0
            refuted = (high.sub_(self.epsilon) <= 0) & ~certain
            left[i], bad[i], gone[i] = marked(active, certain, refuted, outdone)
        left, side = without_marked(left, sides.side, bad, gone)
        return PairSides(side, side == UNDECIDED, pairs=left)

    def targets(self, sides: Sides, rows: Tensor) -> Targets:
        r"""The differences of the pairs that are still open."""
        found = pair_targets(_pairs_of(sides), self.omega)
        return replace(found, rows=rows[found.rows])

    def gaps(self, sides: Sides, seen: Intervals) -> Targets:
        r"""The open pairs, weighted by one over the squared expected gaps."""
        omega, targets = self.omega, pair_targets(_pairs_of(sides), self.omega)
        items = targets.rows
        mean, variance = seen.regions.mean[items], seen.belief.variance(0, items)
        difference = mean.unsqueeze(-1) - omega * mean
        spread = variance.unsqueeze(-1) + omega**2 * variance
        weights = 1 / squared_gaps(difference, spread, self.epsilon)
        if targets.weights is not None:
            weights = weights * targets.weights
        # One refuted pair puts a row below: the pair with the likely maximum will do.
        best = int(mean.argmax())
        below = mean <= omega * mean[best]
        weights[below] *= (torch.arange(len(items)) == best).double()
        return Targets(seen.rows[items], weights, omega)

    def n_claims(self, n_items: int) -> int:
        r"""The number of ordered pairs, each with an interval."""
        return n_items**2


def _pairs_of(sides: Sides) -> Tensor:
    assert isinstance(sides, PairSides)
    assert sides.pairs is not None
    return sides.pairs


def pair_targets(pairs: Tensor, omega: float) -> Targets:
    r"""The open pairs as targets, on the rows that occur in them."""
    rows = (pairs.any(dim=0) | pairs.any(dim=1)).nonzero().view(-1)
    inner = pairs[rows][:, rows]
    return Targets(rows, None if bool(inner.all()) else inner.double(), omega)


def eliminate_pairs(
    active: Tensor,
    side: Tensor,
    certain: Tensor,
    refuted: Tensor,
    outdone: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The active pairs and the sides after one round of MILK.

    A row with a refuted pair goes to ``B`` and leaves all pairs, as first and as second
    member. Of the others the certain pairs leave; a row without a pair as first member
    goes to ``G``.

    Args:
        active: ``N x N`` bools, the ordered pairs ``A_t``.
        side: ``N`` codes.
        certain: ``N x N`` bools: ``f(x) > omega f(x')`` is certain.
        refuted: ``N x N`` bools: ``f(x) <= omega f(x')`` is certain up to the accuracy,
            so that ``x`` is below.
        outdone: ``N x N`` bools: ``f(x) <= omega f(x')`` is certain without any
            accuracy, so that ``x`` is not the maximiser and need be compared with no
            more. Default ``refuted``.

    Source:
        Mason et al. (2022), Algorithm 2, lines 9 to 17, with erratum 3
        (papers/mason2022/errata.md): the pairs of ``A_t`` are examined at once, line 16
        tests ``A_{t+1}`` for rows not in ``B``.
    """
    outdone = refuted if outdone is None else outdone
    left, bad, gone = marked(active, certain, refuted, outdone)
    return without_marked(left, side, bad, gone)


def marked(
    active: Tensor, certain: Tensor, refuted: Tensor, outdone: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The pairs that are not certain, and the marks of their first members.

    For some first members, see ``eliminate_pairs``: whether each is below, and whether
    it need be compared with no more.
    """
    bad, gone = ((active & found).any(dim=1) for found in (refuted, outdone))
    return active & ~certain, bad, gone


def without_marked(
    left: Tensor, side: Tensor, bad: Tensor, gone: Tensor
) -> tuple[Tensor, Tensor]:
    r"""The active pairs and the sides once all first members are marked.

    Args:
        left: ``N x N`` bools, the pairs that are not certain.
        side: ``N`` codes.
        bad: ``N`` bools: the rows that are below.
        gone: ``N`` bools: the rows to be compared with no more.
    """
    left = left & ~bad.unsqueeze(-1) & ~gone
    side = torch.where(bad, BELOW, side)
    good = (side != BELOW) & ~left.any(dim=1)
    return left, torch.where(good, ABOVE, side).to(torch.int8)


@dataclass(frozen=True)
class AnyMaximiser(Goal):
    r"""Base class of the search for ``argmax f``: above is accepted, below excluded.

    Args:
        epsilon: An item is accepted once every other one is at most this much better.
    """

    epsilon: float = 0.0

    @property
    def facts(self) -> GoalFacts:
        r"""The facts: two intervals are compared, which share the accuracy."""
        closest = "rows nearly as good as the best"
        promise = all_are_right(self.epsilon)
        return GoalFacts(promise, self.epsilon / 2, seeks_best=True, closest=closest)

    def region(self, mean: Sequence[Tensor]) -> ValueRegion:
        r"""The values above the largest mean."""
        return ValueRegion.above(float(mean[0].max()), self.epsilon)

    def question(self, names: Sequence[str]) -> str:
        r"""The question in words."""
        return f"where {names[0]} is largest"

    def __post_init__(self) -> None:
        accuracy(self.epsilon)

    def against(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""Whether accepted items are exceeded, or excluded ones are not (``T`` bools).

        The first are certainly worse than another item by more than ``epsilon``; the
        second certainly better than every item that is not excluded.
        """
        regions = seen.regions
        accepted = (sides.side == ABOVE) & (
            regions.upper + self.epsilon < regions.lower.max()
        )
        ruled_out = sides.side == BELOW
        others = torch.where(ruled_out, -torch.inf, regions.upper).max()
        return accepted | (ruled_out & (regions.lower > others))

    def answer(self, sides: Sides, seen: Intervals, claim: str) -> Classification:
        r"""The answer; no row is reported as decided by the accuracy.

        The probability is that of exceeding the best mean; of the best row itself, that
        it exceeds its likeliest rival.
        """
        found = replace(super().answer(sides, seen, claim), within=None)
        best = int(found.mean.argmax())
        is_best = seen.points == seen.points[best]
        rivals, own = (~is_best).nonzero().view(-1), seen.rows.new_tensor([best])
        chance = 1.0
        if len(rivals):
            sigma, _ = seen.belief.differences(0, own, 1.0)(rivals)
            ahead = (found.mean[best] - found.mean[rivals]) / sigma.view(-1)
            chance = float(torch.special.ndtr(ahead.min()))
        chances = found.probability_above.masked_fill(is_best, chance)
        return replace(found, probability_above=chances)

    def distances(self, sides: Sides, seen: Intervals) -> Tensor:
        r"""Half the distance of each mean from the best mean of another point."""
        mean = seen.regions.mean
        best = int(mean.argmax())
        copies = seen.points == seen.points[best]
        if bool(copies.all()):
            return torch.zeros_like(mean)
        rival = mean[~copies].max()
        found = torch.where(copies, mean - rival, mean - mean[best]) / 2
        return found.masked_fill(sides.side != UNDECIDED, torch.inf)


@dataclass(frozen=True)
class Maximiser(AnyMaximiser):
    r"""The maximiser of ``f``, by the confidence regions of the items.

    Args:
        epsilon: The accuracy.

    Source:
        Bogunovic et al. (2016), Algorithm 2, Eq. (5); accepting is ours.
    """

    theorem: ClassVar[str] = "Theorem 1"

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after items that cannot be the maximiser are excluded.

        With the regions' lower and upper ends ``l_t`` and ``u_t`` the candidates are
        ``M_t = {x in M_{t-1}: u_t(x) >= max over M_{t-1} of l_t}``.

        Once the item of the largest lower bound is as good as any other in ``M_t`` up
        to ``epsilon``, it is accepted (with its copies) and the others are ruled out.
        """
        M, regions = sides.candidates, seen.regions
        if not bool(M.any()):
            return sides
        lower = torch.where(M, regions.lower, -torch.inf)
        best = int(lower.argmax())
        stays = M & (regions.upper >= lower[best])
        accepted = stays & (seen.points == seen.points[best])
        others = stays & ~accepted
        rivals = regions.upper[others] > lower[best] + self.epsilon
        if bool(rivals.any()):
            side = torch.full_like(sides.side, BELOW).masked_fill(stays, UNDECIDED)
            return replace(sides, side=side, candidates=stays)
        side = torch.full_like(sides.side, BELOW).masked_fill(accepted, ABOVE)
        return replace(sides, side=side, candidates=accepted)


@dataclass(frozen=True)
class MaximiserByPairs(AnyMaximiser):
    r"""The maximiser of ``f``, by intervals of the differences between items.

    Args:
        epsilon: The accuracy.
    """

    theorem: ClassVar[str] = (
        "Theorem 1, its union bound over all ordered pairs of items"
    )
    by_pairs: ClassVar[bool] = True
    without_pairs: ClassVar[str] = "`TruVaRStrategy` without a level keeps no pairs"

    def bytes_for(self, n_items: int) -> int:
        r"""The bytes of the arrays over all pairs that exist at the same time."""
        return PAIR_ARRAYS * 8 * n_items**2

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after excluding items that another one certainly exceeds."""
        items = sides.candidates.nonzero().view(-1)
        _, half = seen.belief.differences(0, items, 1.0)(items)
        values = seen.regions.mean[items]
        side = eliminate_for_best(
            sides.side, items, values, half, self.epsilon, seen.points
        )
        open_ = side == UNDECIDED
        return replace(sides, side=side, candidates=open_ if open_.any() else side > 0)

    def targets(self, sides: Sides, rows: Tensor) -> Targets:
        r"""The differences of all pairs of items that are not excluded."""
        return Targets(rows[sides.candidates], None, 1.0)

    def gaps(self, sides: Sides, seen: Intervals) -> Targets:
        r"""The differences from the best item by its estimate, by squared gaps.

        The others are excluded by comparing them with that item.
        """
        targets = self.targets(sides, seen.rows)
        items = sides.candidates.nonzero().view(-1)
        mean = seen.regions.mean[items]
        sigma, _ = seen.belief.differences(0, items, 1.0)(items)
        spread = sigma.square()
        gaps = squared_gaps(mean.unsqueeze(-1) - mean, spread, self.epsilon)
        weights = torch.zeros_like(spread)
        best = int(mean.argmax())
        weights[:, best] = 1 / gaps[:, best].clamp_min(torch.finfo(gaps.dtype).tiny)
        weights[best, best] = 0.0
        return replace(targets, weights=weights)

    def n_claims(self, n_items: int) -> int:
        r"""The number of ordered pairs, each with an interval."""
        return n_items**2


def eliminate_for_best(
    side: Tensor,
    rows: Tensor,
    values: Tensor,
    half: Tensor,
    epsilon: float,
    points: Tensor | None = None,
) -> Tensor:
    r"""The sides after one round of the search for the maximiser, by differences.

    A row is excluded if some other one is certainly better. Once no other row can be
    better than the row of the best estimate by more than ``epsilon``, that row is
    accepted and the others are excluded.

    Args:
        side: ``N`` codes.
        rows: The ``T`` rows in question.
        values: Their estimates, units of ``y``.
        half: ``T x T`` half widths of the intervals of ``f(x) - f(x')``.
        epsilon: The accuracy, units of ``y``.
        points: ``N`` numbers; rows with one number are one point and share their side.

    Source:
        Weltz et al. (2023), Algorithm 2, line 13, with the width of each pair; the
        acceptance within ``epsilon`` is own.
    """
    place = rows if points is None else points[rows]
    others = place.unsqueeze(-1) != place
    worse = (((values - values.unsqueeze(-1)) > half) & others).any(dim=1)
    side = side.index_fill(0, rows[worse], BELOW)
    best = int(values.argmax())
    rivals = ~worse & (values - values[best] + half[best] > epsilon) & others[best]
    if bool(rivals.any()):
        return side
    side = side.index_fill(0, rows, BELOW)
    return side.index_fill(0, rows[~others[best]], ABOVE)
