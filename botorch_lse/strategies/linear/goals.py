r"""What becomes certain, and what to ask next: level, maximiser, share of maximum."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED, explicit_sides
from botorch_lse.strategies.linear.belief import LinearBelief, Questions

PAIRS = 2**21
"""Pairs of items compared at once."""
SAME = 1e-9
"""Widths below this share of the largest belong to equal items."""


# --- level ----------------------------------------------------------------------------


def decide_level(
    belief: LinearBelief, threshold: float, epsilon: float
) -> LinearBelief:
    r"""The sides after the current intervals; decided items stay as they are."""
    now = explicit_sides(belief.lower[:, 0], belief.upper[:, 0], threshold, epsilon)
    side = torch.where(belief.side == UNDECIDED, now, belief.side)
    return replace(belief, side=side)


def ask_level(belief: LinearBelief, threshold: float, epsilon: float) -> Questions:
    r"""The undecided items themselves."""
    gaps = (belief.mean[belief.open, 0] - threshold).abs() + epsilon
    return Questions(belief.Z[belief.open], gaps)


# --- maximiser ------------------------------------------------------------------------


def decide_best(belief: LinearBelief, epsilon: float) -> LinearBelief:
    r"""Items certainly worse than the leader leave; a leader without rivals is best.

    Items equal to the leader in every feature are best with it.
    """
    rows, side = belief.open, belief.side.clone()
    behind, widths, leader = _behind_leader(belief, rows)
    side[rows[behind > widths]] = BELOW
    equal = widths <= SAME * widths.max().clamp_min(torch.finfo(widths.dtype).tiny)
    equal |= rows == leader
    rivals = (widths - behind > epsilon) & ~equal
    if not bool(rivals.any()):
        side[rows] = BELOW
        side[rows[equal]] = ABOVE
    return replace(belief, side=side)


def _behind_leader(belief: LinearBelief, rows: Tensor) -> tuple[Tensor, Tensor, int]:
    r"""How far ``rows`` are behind their best by the estimates, with the widths."""
    values = belief.mean[rows, 0]
    leader = rows[values.argmax()]
    widths = belief.pair_widths(rows, leader.view(1), 1.0).squeeze(-1)
    return values.max() - values, widths, int(leader)


def ask_best(belief: LinearBelief, epsilon: float) -> Questions:
    r"""The differences between the leader and the other open items."""
    behind, _, leader = _behind_leader(belief, belief.open)
    others = belief.open != leader
    vectors = belief.Z[leader] - belief.Z[belief.open[others]]
    return Questions(vectors, behind[others] + epsilon)


# --- share of the maximum -------------------------------------------------------------


def decide_implicit(belief: LinearBelief, omega: float, epsilon: float) -> LinearBelief:
    r"""Items certainly on one side of ``omega max f``.

    An item is below if ``f(x) - omega f(leader)`` is certainly at most ``epsilon``,
    above if ``f(x) - omega f(x')`` certainly exceeds ``-epsilon`` for every ``x'`` that
    may be the maximiser. Nothing is stored for pairs.
    """
    candidates = _possible_maximisers(belief)
    leader = _leader(belief, candidates)
    rows, side = belief.open, belief.side.clone()
    gap, width = pair_gaps(belief, rows, leader, omega)
    gap, width = gap.squeeze(-1), width.squeeze(-1)
    promising = rows[gap - width + epsilon > 0]
    rivals = candidates.nonzero().view(-1)
    above = [
        part[(least > 0)]
        for part, least in _least_margins(belief, promising, rivals, omega, epsilon)
    ]
    side[rows[gap + width - epsilon <= 0]] = BELOW
    for part in above:
        side[part] = ABOVE
    return replace(belief, side=side, candidates=candidates)


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


def ask_implicit(belief: LinearBelief, omega: float, epsilon: float) -> Questions:
    r"""Each open item against the leader; if it looks above, its hardest rival too."""
    rows, leader = belief.open, _leader(belief, belief.candidates)
    gap = pair_gaps(belief, rows, leader, omega)[0].squeeze(-1)
    vectors = [belief.Z[rows] - omega * belief.Z[leader]]
    gaps = [gap.abs() + epsilon]
    rivals = belief.candidates.nonzero().view(-1)
    for part in rows[gap > 0].split(max(1, PAIRS // len(rivals))):
        margin, width = pair_gaps(belief, part, rivals, omega)
        hardest = ((margin + epsilon) / width).argmin(dim=-1)
        vectors.append(belief.Z[part] - omega * belief.Z[rivals[hardest]])
        here = margin.gather(1, hardest.unsqueeze(-1)).squeeze(-1)
        gaps.append(here.abs() + epsilon)
    return Questions(torch.cat(vectors), torch.cat(gaps))
