r"""Goals of strategies on linear features.

Intervals hold at all times together, so decisions are final. Pairs of items are
compared when they are needed; nothing is stored for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.classify import ABOVE, BELOW, Sides
from botorch_lse.data.classification import Classification
from botorch_lse.goals.base import GoalFacts, Intervals
from botorch_lse.goals.extremes import AnyMaximiser, AnyShareOfMax
from botorch_lse.goals.pareto import ParetoEstimate, ParetoSet, pareto_answer
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies.linear.algorithm import LinearBelief, LinearItems, Questions

PAIRS = 2**21
"""The number of pairs of items compared at once."""
SAME = 1e-9
"""The share of the largest width within which two items count as equal."""


# --- maximiser ------------------------------------------------------------------------


@dataclass(frozen=True)
class Best(AnyMaximiser):
    r"""The item of the largest value, by comparisons with the leader.

    Args:
        epsilon: The accuracy.
    """

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides after items certainly worse than the leader are excluded.

        The leader is the item of the best estimate. It is accepted once no other item
        can be better by more than ``epsilon``, with items that equal it in every
        feature.
        """
        belief = belief_of(seen)
        rows, side = belief.open, sides.side.clone()
        behind, widths, leader = _behind_leader(belief, rows)
        side[rows[behind > widths]] = BELOW
        equal = widths <= SAME * widths.max().clamp_min(torch.finfo(widths.dtype).tiny)
        equal |= rows == leader
        rivals = (widths - behind > self.epsilon) & ~equal
        if not bool(rivals.any()):
            side[rows] = BELOW
            side[rows[equal]] = ABOVE
        return replace(sides, side=side)

    def directions(self, sides: Sides, belief: LinearBelief) -> Questions:
        r"""The differences between the leader and the other open items."""
        behind, _, leader = _behind_leader(belief, belief.open)
        others = belief.open != leader
        vectors = belief.Z[leader] - belief.Z[belief.open[others]]
        return Questions(vectors, behind[others] + self.epsilon)

    @property
    def facts(self) -> GoalFacts:
        r"""The facts: one output, and the best item is sought."""
        up_to = f" up to {written(self.epsilon)}" if self.epsilon > 0 else ""
        promise = f"`above` is the best item{up_to} once all are decided"
        return GoalFacts(promise, self.epsilon, seeks_best=True)

    def answer(self, sides: Sides, seen: Intervals, claim: str) -> Classification:
        r"""The answer, with probabilities of being the best item."""
        chances = chances_of_being_best(belief_of(seen))
        return replace(super().answer(sides, seen, claim), probability_above=chances)


def belief_of(seen: Intervals) -> LinearBelief:
    r"""The belief behind intervals of items on linear features."""
    items = seen.belief
    assert isinstance(items, LinearItems)  # the algorithm made them
    return items.known


def _behind_leader(belief: LinearBelief, rows: Tensor) -> tuple[Tensor, Tensor, int]:
    r"""The distances of ``rows`` from the best of them, by the estimates.

    Returns:
        The differences, their widths, and the row of the best estimate.
    """
    values = belief.mean[rows, 0]
    leader = rows[values.argmax()]
    widths = belief.pair_widths(rows, leader.view(1), 1.0).squeeze(-1)
    return values.max() - values, widths, int(leader)


def chances_of_being_best(belief: LinearBelief) -> Tensor:
    r"""The rough probability of each item to be better than the best other one (``T``).

    Errors are taken as Gaussian. Excluded items have 0; before the data determine every
    direction all have one half.
    """
    left, chances = belief.left, torch.zeros_like(belief.mean[:, 0])
    if not belief.information.is_complete:
        return torch.full_like(chances, 0.5)
    values = belief.mean[left, 0]
    best = int(values.argmax())
    others = torch.arange(len(left)) != best
    difference = belief.Z[left[others]] - belief.Z[left[best]]
    sigma = belief.information.squared_norms(difference).sqrt()
    tiny = torch.finfo(sigma.dtype).tiny
    behind = torch.special.ndtr((values[others] - values[best]) / sigma.clamp_min(tiny))
    chances[left[others]] = behind
    chances[left[best]] = 1 - (behind.max() if len(behind) else 0.0)
    return chances


# --- share of the maximum -------------------------------------------------------------


@dataclass(frozen=True)
class Share(AnyShareOfMax):
    r"""The level set ``above = {x : f(x) > omega max f}``, by comparisons of items.

    Args:
        omega: In (0, 1).
        epsilon: The accuracy.
    """

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides with the items that are certainly on one side of ``omega max f``.

        An item is below if ``f(x) - omega f(leader)`` is certainly at most ``epsilon``,
        above if ``f(x) - omega f(x')`` certainly exceeds ``-epsilon`` for every ``x'``
        that may be the maximiser. Nothing is stored for pairs.
        """
        belief = belief_of(seen)
        candidates = _possible_maximisers(belief, sides.candidates)
        leader = _leader(belief, candidates)
        rows, side = belief.open, sides.side.clone()
        gap, width = pair_gaps(belief, rows, leader, self.omega)
        gap, width = gap.squeeze(-1), width.squeeze(-1)
        promising = rows[gap - width + self.epsilon > 0]
        rivals = candidates.nonzero().view(-1)
        above = [
            part[(least > 0)]
            for part, least in _least_margins(
                belief, promising, rivals, self.omega, self.epsilon
            )
        ]
        side[rows[gap + width - self.epsilon <= 0]] = BELOW
        for part in above:
            side[part] = ABOVE
        return replace(sides, side=side, candidates=candidates)

    def directions(self, sides: Sides, belief: LinearBelief) -> Questions:
        r"""The comparisons that will decide each undecided item.

        With the leader, and, if it seems to be above, with the rival for which that is
        least certain.
        """
        rows, leader = belief.open, _leader(belief, sides.candidates)
        gap = pair_gaps(belief, rows, leader, self.omega)[0].squeeze(-1)
        vectors = [belief.Z[rows] - self.omega * belief.Z[leader]]
        gaps = [gap.abs() + self.epsilon]
        rivals = sides.candidates.nonzero().view(-1)
        for part in rows[gap > 0].split(max(1, PAIRS // len(rivals))):
            margin, width = pair_gaps(belief, part, rivals, self.omega)
            hardest = ((margin + self.epsilon) / width).argmin(dim=-1)
            vectors.append(belief.Z[part] - self.omega * belief.Z[rivals[hardest]])
            here = margin.gather(1, hardest.unsqueeze(-1)).squeeze(-1)
            gaps.append(here.abs() + self.epsilon)
        return Questions(torch.cat(vectors), torch.cat(gaps))


def _least_margins(
    belief: LinearBelief, rows: Tensor, rivals: Tensor, omega: float, epsilon: float
) -> list[tuple[Tensor, Tensor]]:
    parts = []
    for part in rows.split(max(1, PAIRS // max(len(rivals), 1))):
        gap, width = pair_gaps(belief, part, rivals, omega)
        parts.append((part, (gap - width).amin(dim=-1) + epsilon))
    return parts


def _possible_maximisers(belief: LinearBelief, candidates: Tensor) -> Tensor:
    rows = candidates.nonzero().view(-1)
    behind, widths, _ = _behind_leader(belief, rows)
    candidates = candidates.clone()
    candidates[rows[behind > widths]] = False
    return candidates


def _leader(belief: LinearBelief, candidates: Tensor) -> Tensor:
    values = belief.mean[:, 0].masked_fill(~candidates, -torch.inf)
    return values.argmax().view(1)


def pair_gaps(
    belief: LinearBelief, i: Tensor, j: Tensor, omega: float
) -> tuple[Tensor, Tensor]:
    r"""The estimates of ``f(i) - omega f(j)`` and their widths, for each pair."""
    gap = belief.mean[i] - omega * belief.mean[j].mT
    return gap, belief.pair_widths(i, j, omega)


# --- Pareto set -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FrontSides(Sides):
    r"""The sides of a Pareto set on linear features.

    Args:
        margins: ``T x 3``: how far an item is from being dominated, the width of this,
            and its standard deviation. For the other arguments see ``Sides``.
    """

    margins: Tensor = field(kw_only=True)


def front_sides(sides: Sides) -> FrontSides:
    r"""The sides, which are those of a Pareto set on linear features."""
    assert isinstance(sides, FrontSides)  # the goal made them
    return sides


@dataclass(frozen=True)
class ParetoOfFeatures(ParetoSet):
    r"""The Pareto optimal items: above is accepted, below rejected.

    Args:
        maximize: For each output, whether more is better.
        accuracies: The tolerance of each output, the same for all.
    """

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        r"""The accuracy up to which the answer must be right."""
        return float(self.tolerances[0])

    @property
    def _promise(self) -> str:
        if self.epsilon > 0:
            return (
                "no Pareto optimal row is rejected and no row accepted that another "
                f"one exceeds by more than {written(self.epsilon)} in every output"
            )
        return "all accepted rows are Pareto optimal and all rejected ones are not"

    def start(self, n_items: int) -> FrontSides:  # type: ignore[override]
        r"""The sides before any interval: every item is open, its margin unknown."""
        start = Sides.start(n_items)
        unknown = torch.tensor([0.0, torch.inf, torch.inf]).double().repeat(n_items, 1)
        return FrontSides(start.side, start.candidates, margins=unknown)

    def update(self, sides: Sides, seen: Intervals) -> Sides:
        r"""The sides: certainly dominated items rejected, others accepted when certain.

        Dominators are looked for on the empirical front; an item is accepted if no item
        that is not rejected may exceed it by more than ``epsilon`` in every output.
        What a rejected item dominates, its own dominator dominates too.
        """
        belief, before = belief_of(seen), front_sides(sides)
        values = self.signs * belief.mean
        rows, side = belief.open, sides.side.clone()
        best = front(belief, values)
        first = compare(belief, values, rows, best, self.epsilon)
        side[rows[first.dominated]] = BELOW
        left = (side != BELOW).nonzero().view(-1)
        side = side.clone()
        promising = rows[~first.dominated & (first.safety > 0)]
        if promising.numel():
            every = compare(belief, values, promising, left, self.epsilon)
            side[promising[every.safety > 0]] = ABOVE
        margins = _margins(belief, before.margins, rows, first)
        return replace(before, side=side, margins=margins)

    def directions(self, sides: Sides, belief: LinearBelief) -> Questions:
        r"""The comparison of each open item with the rival that will decide it.

        An item that looks dominated asks about its strongest dominator, another one
        about the rival that is hardest to rule out.
        """
        values = self.signs * belief.mean
        rows = belief.open
        best = front(belief, values)
        first = compare(belief, values, rows, best, self.epsilon)
        below = first.excess > self.epsilon
        vectors = [belief.Z[first.dominator[below]] - belief.Z[rows[below]]]
        gaps = [first.excess[below]]
        others = rows[~below]
        if others.numel():
            hard = compare(belief, values, others, belief.left, self.epsilon)
            vectors.append(belief.Z[others] - belief.Z[hard.threat])
            gaps.append((hard.margin + self.epsilon).abs())
        return Questions(torch.cat(vectors), torch.cat(gaps))

    def estimate(self, sides: Sides, seen: Intervals) -> ParetoEstimate:
        r"""The estimated outputs of every item, intervals intersected over time."""
        margin, width, spread = front_sides(sides).margins.unbind(dim=-1)
        names = ("mean", "lower", "upper", "sigma")
        columns = {
            name: torch.stack([getattr(own, name) for own in seen.all_regions], dim=-1)
            for name in names
        }
        return ParetoEstimate(
            **columns,
            margin=margin,
            margin_lower=margin - width,
            margin_upper=margin + width,
            margin_sigma=spread,
        )

    def answer(self, sides: Sides, seen: Intervals, claim: str) -> Classification:
        r"""The answer, whose mean and bounds are margins."""
        found, pool = self.estimate(sides, seen), seen.regions.pool
        against = torch.stack([own.contradicted for own in seen.all_regions], dim=-1)
        assert pool is not None  # the items
        return pareto_answer(sides.side, found, claim, pool, against)


@dataclass(frozen=True, eq=False)
class Rivals:
    r"""The comparison of a set of items with a set of rivals.

    Args:
        excess: ``len(rows)``, the largest ``min_c (f_j - f_i)_c`` over rivals ``j``.
        dominator: Its rival.
        dominated: Whether some rival certainly exceeds the item in every output.
        safety: The smallest ``max_c (f_i - f_j)_c + epsilon - width`` over rivals.
        threat: The rival with the smallest ratio of that margin to its width.
        margin: ``max_c (f_i - f_j)_c`` at the threat.
    """

    excess: Tensor
    dominator: Tensor
    dominated: Tensor
    safety: Tensor
    threat: Tensor
    margin: Tensor


def compare(
    belief: LinearBelief, values: Tensor, rows: Tensor, rivals: Tensor, epsilon: float
) -> Rivals:
    r"""Compare ``rows`` with ``rivals`` in blocks; nothing is stored for pairs.

    Args:
        belief: Where the run stands; it has the widths.
        values: ``T x m`` estimates, all outputs maximised.
        rows: Items.
        rivals: At least one; an item is not its own rival, nor are its equals.
        epsilon: The tolerance, units of ``y``.
    """
    size = max(1, PAIRS // max(len(rivals), 1))
    parts = [_block(belief, values, r, rivals, epsilon) for r in rows.split(size)]
    return Rivals(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _block(
    belief: LinearBelief, values: Tensor, rows: Tensor, rivals: Tensor, epsilon: float
) -> tuple[Tensor, ...]:
    low = values[rivals, 0] - values[rows, 0, None]
    for c in range(1, values.shape[1]):
        low = torch.minimum(low, values[rivals, c] - values[rows, c, None])
    widths = belief.pair_widths(rows, rivals, 1.0)
    tiny = torch.finfo(widths.dtype).tiny
    equal = widths <= SAME * widths.max().clamp_min(tiny)
    low = low.masked_fill(equal, -torch.inf)
    excess, dominator = low.max(dim=1)
    dominated = (low > widths).any(dim=1)
    margin = epsilon - low
    threat = (margin / widths.clamp_min(tiny)).argmin(dim=1)
    at_threat = low.gather(1, threat.unsqueeze(-1)).squeeze(-1)
    safety = (margin - widths).amin(dim=1)
    return excess, rivals[dominator], dominated, safety, rivals[threat], -at_threat


def front(belief: LinearBelief, values: Tensor) -> Tensor:
    r"""The empirical Pareto set of the items that are not rejected."""
    rows = belief.left
    return rows[pareto_mask(values[rows])]


def _margins(
    belief: LinearBelief, margins: Tensor, rows: Tensor, first: Rivals
) -> Tensor:
    r"""The margins (``T x 3``) once those of ``rows`` are compared with the front."""
    partner = first.dominator
    alone = first.excess.isinf()  # the front is the item itself
    gap = torch.where(alone, torch.inf, -first.excess)
    difference = belief.Z[rows] - belief.Z[partner]
    widths = belief.width.squared(belief.information, difference).sqrt()
    sigma = belief.information.squared_norms(difference).sqrt()
    new = torch.stack((gap, widths, sigma), dim=-1)
    old, margins = margins[rows], margins.clone()
    margins[rows] = torch.where(alone.unsqueeze(-1), old, new)
    return margins
