r"""Goals of strategies on linear features.

Intervals hold at all times together, so decisions are final. Pairs of items are
compared when they are needed; nothing is stored for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
    UNDECIDED,
    level_ends,
    may_be_on_either,
)
from botorch_lse.confidence.judges import Judge, ParetoJudge
from botorch_lse.confidence.regions import Regions
from botorch_lse.data.classification import Classification, gaussian_probability_above
from botorch_lse.data.pool import Pool
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.goals.base import ClassSides, GoalFacts
from botorch_lse.goals.regions import Region
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies.linear.algorithm import LinearBelief, LinearGoal, Questions

PAIRS = 2**21
"""Pairs of items compared at once."""
SAME = 1e-9
"""Items whose difference has a width below this share of the largest are equal."""


# --- region ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InRegion(LinearGoal):
    r"""The items for which comparisons of outputs with levels answer yes.

    Estimates and intervals of the algorithm are in units of each output's noise.

    Args:
        region: The question, in the units of the outputs.
        unit: For each output its noise scale.
    """

    region: Region
    unit: tuple[float, ...] = (1.0,)

    by_items = True

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        r"""The largest accuracy of an output."""
        return self.region.facts.tolerance

    @property
    def facts(self) -> GoalFacts:
        r"""The facts of the region."""
        return self.region.facts

    def judge(self) -> Judge:
        r"""The judge that compares the classes of values."""
        return self.region.judge()

    def level(self, belief: LinearBelief) -> float | None:
        r"""The level, if there is only one."""
        return self.facts.level

    @property
    def noise_units(self) -> tuple[float, ...]:
        r"""The unit of each output's noise."""
        return self.unit

    def in_units(self, values: Tensor) -> Tensor:
        r"""Values of the outputs in units of their noise."""
        if values.ndim == 1:
            return values / self.unit[0]
        return values / torch.tensor(self.unit).to(values)

    def _columns(self, values: Tensor) -> list[Tensor]:
        r"""``T x m`` numbers of the algorithm, output by output, in their units."""
        pairs = zip(values.unbind(dim=-1), self.unit, strict=True)
        return [own * unit for own, unit in pairs]

    @property
    def _values(self) -> ValueRegion:
        return self.region.values

    def _allowed(self, belief: LinearBelief) -> Tensor:
        ends = self._columns(belief.lower), self._columns(belief.upper)
        return self._values.allowed(*ends)

    def decided(self, belief: LinearBelief) -> LinearBelief:
        r"""The sides after the current intervals; decided items stay as they are."""
        now = self.region.values.codes(self._values.cells.agreed(self._allowed(belief)))
        side = torch.where(belief.side == UNDECIDED, now, belief.side)
        return replace(belief, side=side)

    def questions(self, belief: LinearBelief) -> Questions:
        r"""The features of the undecided items, and how far they are from changing.

        The distance is how far all outputs may move, in units of their noise, until the
        answer changes.
        """
        rows = belief.open
        mean = [own[rows] for own in self._columns(belief.mean)]
        margin, _ = self._values.cells.at(rows).margins(mean, mean, self.unit)
        pairs = zip(self._values.accuracies, self.unit, strict=True)
        least = min(epsilon / unit for epsilon, unit in pairs)
        return Questions(belief.Z[rows], margin.abs() + least)

    def _spread(self, belief: LinearBelief) -> Tensor:
        r"""``T x m`` standard deviations, in units of the noise."""
        return belief.sigma.unsqueeze(-1).expand(-1, len(self.unit))

    def probabilities(self, belief: LinearBelief) -> Tensor:
        r"""``T`` probabilities of being in the region."""
        parts = self._columns(belief.mean), self._columns(self._spread(belief))
        return self._values.cells.probabilities(*parts)[:, -1]

    def answer(self, belief: LinearBelief, claim: str, items: Pool) -> Classification:
        r"""The answer; for several outputs ``mean`` and its bounds are margins."""
        lower, upper = self._columns(belief.lower), self._columns(belief.upper)
        mean, sigma = self._columns(belief.mean), self._columns(self._spread(belief))
        against = belief.contradicted.unbind(dim=-1)
        parts = zip(lower, upper, mean, sigma, against, strict=True)
        regions = [Regions(a, b, m, s, items, bad) for a, b, m, s, bad in parts]
        sides = self.region.start(len(items))
        sides = replace(sides, side=belief.side, candidates=belief.side == UNDECIDED)
        if isinstance(sides, ClassSides):
            now = self._values.cells.agreed(self._allowed(belief))
            sides = replace(sides, classes=now)
        return self.region.described(sides, regions, self.unit, claim)


# --- maximiser ------------------------------------------------------------------------


@dataclass(frozen=True)
class Best(LinearGoal):
    r"""The item of the largest value.

    Args:
        epsilon: The accuracy.
    """

    epsilon: float = 0.0

    def level(self, belief: LinearBelief) -> float:
        r"""The largest estimate, with which the others are compared."""
        return float(belief.mean[:, 0].max())

    def decided(self, belief: LinearBelief) -> LinearBelief:
        r"""The sides after items certainly worse than the leader are excluded.

        The leader is the item of the best estimate. It is accepted once no other item
        can be better by more than ``epsilon``, with items that equal it in every
        feature.
        """
        rows, side = belief.open, belief.side.clone()
        behind, widths, leader = _behind_leader(belief, rows)
        side[rows[behind > widths]] = BELOW
        equal = widths <= SAME * widths.max().clamp_min(torch.finfo(widths.dtype).tiny)
        equal |= rows == leader
        rivals = (widths - behind > self.epsilon) & ~equal
        if not bool(rivals.any()):
            side[rows] = BELOW
            side[rows[equal]] = ABOVE
        return replace(belief, side=side)

    def questions(self, belief: LinearBelief) -> Questions:
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

    def probabilities(self, belief: LinearBelief) -> Tensor:
        r"""``T`` probabilities of being the best item."""
        return chances_of_being_best(belief)


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
    r"""``T`` probabilities of being better than the best other item, roughly.

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
class Share(LinearGoal):
    r"""The level set ``above = {x : f(x) > omega max f}``.

    Args:
        omega: In (0, 1).
        epsilon: The accuracy.
    """

    omega: float
    epsilon: float = 0.0

    def level(self, belief: LinearBelief) -> float:
        r"""The level: ``omega`` times the largest estimate."""
        return self.omega * float(belief.mean[:, 0].max())

    def within(self, belief: LinearBelief) -> Tensor | None:
        r"""``T`` bools: decided items that the accuracy decides; ``None``: none."""
        if self.epsilon == 0:
            return None
        ends = belief.lower[:, 0], belief.upper[:, 0]
        return may_be_on_either(belief.side, *ends, *level_ends(self.omega, *ends))

    def decided(self, belief: LinearBelief) -> LinearBelief:
        r"""The sides with the items that are certainly on one side of ``omega max f``.

        An item is below if ``f(x) - omega f(leader)`` is certainly at most ``epsilon``,
        above if ``f(x) - omega f(x')`` certainly exceeds ``-epsilon`` for every ``x'``
        that may be the maximiser. Nothing is stored for pairs.
        """
        candidates = _possible_maximisers(belief)
        leader = _leader(belief, candidates)
        rows, side = belief.open, belief.side.clone()
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
        return replace(belief, side=side, candidates=candidates)

    def questions(self, belief: LinearBelief) -> Questions:
        r"""The comparisons that will decide each undecided item.

        With the leader, and, if it seems to be above, with the rival for which that is
        least certain.
        """
        rows, leader = belief.open, _leader(belief, belief.candidates)
        gap = pair_gaps(belief, rows, leader, self.omega)[0].squeeze(-1)
        vectors = [belief.Z[rows] - self.omega * belief.Z[leader]]
        gaps = [gap.abs() + self.epsilon]
        rivals = belief.candidates.nonzero().view(-1)
        for part in rows[gap > 0].split(max(1, PAIRS // len(rivals))):
            margin, width = pair_gaps(belief, part, rivals, self.omega)
            hardest = ((margin + self.epsilon) / width).argmin(dim=-1)
            vectors.append(belief.Z[part] - self.omega * belief.Z[rivals[hardest]])
            here = margin.gather(1, hardest.unsqueeze(-1)).squeeze(-1)
            gaps.append(here.abs() + self.epsilon)
        return Questions(torch.cat(vectors), torch.cat(gaps))

    def probabilities(self, belief: LinearBelief) -> Tensor:
        r"""``T`` probabilities of being above ``omega`` times the largest estimate."""
        mean = belief.mean[:, 0]
        level = self.omega * float(mean.max())
        return gaussian_probability_above(mean, belief.sigma, level)


def _least_margins(
    belief: LinearBelief, rows: Tensor, rivals: Tensor, omega: float, epsilon: float
) -> list[tuple[Tensor, Tensor]]:
    parts = []
    for part in rows.split(max(1, PAIRS // max(len(rivals), 1))):
        gap, width = pair_gaps(belief, part, rivals, omega)
        parts.append((part, (gap - width).amin(dim=-1) + epsilon))
    return parts


def _possible_maximisers(belief: LinearBelief) -> Tensor:
    rows = belief.candidates.nonzero().view(-1)
    behind, widths, _ = _behind_leader(belief, rows)
    candidates = belief.candidates.clone()
    candidates[rows[behind > widths]] = False
    return candidates


def _leader(belief: LinearBelief, candidates: Tensor) -> Tensor:
    values = belief.mean[:, 0].masked_fill(~candidates, -torch.inf)
    return values.argmax().view(1)


def pair_gaps(
    belief: LinearBelief, i: Tensor, j: Tensor, omega: float
) -> tuple[Tensor, Tensor]:
    r"""``len(i) x len(j)`` estimates of ``f(i) - omega f(j)`` and their widths."""
    gap = belief.mean[i] - omega * belief.mean[j].mT
    return gap, belief.pair_widths(i, j, omega)


# --- Pareto set -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ParetoSet(LinearGoal):
    r"""The Pareto optimal items: above is accepted, below rejected.

    Args:
        signs: ``m`` signs: ``signs * y`` is maximised.
        epsilon: The tolerance.
    """

    signs: Tensor
    epsilon: float = 0.0

    def judge(self) -> Judge:
        r"""The judge that compares values with the accepted items."""
        epsilon = torch.full_like(self.signs, self.epsilon)
        return ParetoJudge(self.signs, epsilon)

    def decided(self, belief: LinearBelief) -> LinearBelief:
        r"""The sides: certainly dominated items rejected, others accepted when certain.

        Dominators are looked for on the empirical front; an item is accepted if no item
        that is not rejected may exceed it by more than ``epsilon`` in every output.
        What a rejected item dominates, its own dominator dominates too.
        """
        values = self.signs * belief.mean
        rows, side = belief.open, belief.side.clone()
        best = front(belief, values)
        first = compare(belief, values, rows, best, self.epsilon)
        side[rows[first.dominated]] = BELOW
        belief = replace(belief, side=side)
        side = side.clone()
        promising = rows[~first.dominated & (first.safety > 0)]
        if promising.numel():
            every = compare(belief, values, promising, belief.left, self.epsilon)
            side[promising[every.safety > 0]] = ABOVE
        return replace(belief, side=side, margins=_margins(belief, values, rows, first))

    def questions(self, belief: LinearBelief) -> Questions:
        r"""The comparison of each open item with the rival that will decide it.

        An item that looks dominated asks about its strongest dominator, another one
        about the rival that is hardest to rule out.
        """
        values = self.signs * belief.mean
        rows = (belief.side == UNDECIDED).nonzero().view(-1)
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

    @property
    def facts(self) -> GoalFacts:
        r"""The facts: several outputs without levels."""
        return GoalFacts(
            self._promise,
            self.epsilon,
            n_outputs=len(self.signs),
            directions=tuple((self.signs > 0).tolist()),
            n_comparisons=0,
            has_one_level=False,
            seeks_best=True,
        )

    @property
    def _promise(self) -> str:
        if self.epsilon > 0:
            return (
                "no Pareto optimal row is rejected and no row accepted that another "
                f"one exceeds by more than {written(self.epsilon)} in every output"
            )
        return "all accepted rows are Pareto optimal and all rejected ones are not"

    def probabilities(self, belief: LinearBelief) -> Tensor:
        r"""``T`` probabilities of not being dominated."""
        margin, _, spread = belief.margins.unbind(dim=-1)
        return gaussian_probability_above(margin, spread, 0.0)

    def answer(self, belief: LinearBelief, claim: str, items: Pool) -> Classification:
        r"""The answer, whose mean and bounds are margins."""
        margin, width, spread = belief.margins.unbind(dim=-1)
        side = belief.side
        return Classification(
            above=side == ABOVE,
            below=side == BELOW,
            undecided=side == UNDECIDED,
            lower=margin - width,
            upper=margin + width,
            mean=margin,
            sigma=spread,
            probability_above=self.probabilities(belief),
            guarantee=claim,
            pool=items,
            contradicted=belief.contradicted.any(dim=-1),
        )


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
    belief: LinearBelief, values: Tensor, rows: Tensor, first: Rivals
) -> Tensor:
    r"""``T x 3`` margins with those of ``rows``, against the front."""
    partner = first.dominator
    alone = first.excess.isinf()  # the front is the item itself
    gap = torch.where(alone, torch.inf, -first.excess)
    difference = belief.Z[rows] - belief.Z[partner]
    widths = belief.width.squared(belief.information, difference).sqrt()
    sigma = belief.information.squared_norms(difference).sqrt()
    new = torch.stack((gap, widths, sigma), dim=-1)
    old = belief.margins[rows]
    margins = belief.margins.clone()
    margins[rows] = torch.where(alone.unsqueeze(-1), old, new)
    return margins
