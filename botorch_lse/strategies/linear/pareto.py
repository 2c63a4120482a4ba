r"""Pareto sets by pairwise widths: what is certainly dominated, what certainly not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies.linear.belief import LinearBelief, Questions
from botorch_lse.strategies.linear.goals import PAIRS, SAME


@dataclass(frozen=True, eq=False)
class Rivals:
    r"""How a set of items compares with a set of rivals.

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
    r"""``rows`` against ``rivals``, blockwise; nothing is stored for pairs.

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


def decide_pareto(belief: LinearBelief, values: Tensor, epsilon: float) -> LinearBelief:
    r"""Reject what is certainly dominated, accept what certainly is not.

    Dominators are looked for on the empirical front; an item is accepted if no item
    that is not rejected may exceed it by more than ``epsilon`` in every output. What
    a rejected item dominates, its own dominator dominates too.
    """
    rows, side = belief.open, belief.side.clone()
    best = front(belief, values)
    first = compare(belief, values, rows, best, epsilon)
    side[rows[first.dominated]] = BELOW
    belief = replace(belief, side=side)
    side = side.clone()
    promising = rows[~first.dominated & (first.safety > 0)]
    if promising.numel():
        every = compare(belief, values, promising, belief.left, epsilon)
        side[promising[every.safety > 0]] = ABOVE
    return replace(belief, side=side, margins=_margins(belief, values, rows, first))


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


def ask_pareto(belief: LinearBelief, values: Tensor, epsilon: float) -> Questions:
    r"""Each open item against the rival that decides it.

    An item that looks dominated asks about its strongest dominator, another one about
    the rival that is hardest to rule out.
    """
    rows = (belief.side == UNDECIDED).nonzero().view(-1)
    best = front(belief, values)
    first = compare(belief, values, rows, best, epsilon)
    below = first.excess > epsilon
    vectors = [belief.Z[first.dominator[below]] - belief.Z[rows[below]]]
    gaps = [first.excess[below]]
    others = rows[~below]
    if others.numel():
        hard = compare(belief, values, others, belief.left, epsilon)
        vectors.append(belief.Z[others] - belief.Z[hard.threat])
        gaps.append((hard.margin + epsilon).abs())
    return Questions(torch.cat(vectors), torch.cat(gaps))
