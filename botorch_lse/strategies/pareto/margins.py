r"""Which rows are certainly dominated, and which certainly not, by intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW, UNDECIDED
from botorch_lse.posterior import row_blocks
from botorch_lse.strategies.pareto.belief import GPParetoBelief
from botorch_lse.strategies.pareto.outputs import ParetoEstimate

_COPIES = 8
"""Arrays of outputs times rows times rivals alive at once."""


@dataclass(frozen=True, eq=False)
class Comparison:
    r"""``B`` rows compared with ``L`` rivals: ``g(row) - g(rival)``, maximised.

    Args:
        lower: ``m x B x L`` lower ends of the intervals.
        upper: ``m x B x L`` upper ends.
        mean: ``m x B x L`` means.
        sigma: ``m x B x L`` standard deviations.
    """

    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor


Compare = Callable[[Tensor, Tensor], Comparison]
"""From rows and rivals to their comparison."""


@dataclass(frozen=True, eq=False)
class Judgement:
    r"""What the intervals say of ``R`` rows.

    A row is dominated where a rival exceeds it in every output, so its margin is ``min
    over rivals of max over outputs of g(row) - g(rival)``.

    Args:
        lower: ``R`` lower ends of the margins.
        upper: ``R`` upper ends; negative where a rival certainly exceeds the row.
        mean: ``R`` margins of the means; infinite for a row without rival.
        sigma: ``R`` standard deviations of the comparison that decides.
        threatened: ``R x L`` bools: the rival may exceed the row by ``epsilon`` in
            every output.
    """

    lower: Tensor
    upper: Tensor
    mean: Tensor
    sigma: Tensor
    threatened: Tensor


def judge(
    rows: Tensor,
    rivals: Tensor,
    compare: Compare,
    epsilon: Tensor,
    budget: int,
    places: Tensor,
) -> Judgement:
    r"""Judge rows against rivals; a row is no rival of itself or of an equal one.

    Args:
        rows: ``R`` rows.
        rivals: ``L`` rows.
        compare: Their intervals.
        epsilon: ``m`` tolerances, units of the outputs.
        budget: Bytes for temporary arrays.
        places: ``N`` numbers, equal for equal rows.
    """
    per_row = _COPIES * epsilon.numel() * rivals.numel()
    parts = [
        _judged(
            compare(rows[block], rivals),
            epsilon,
            places[rows[block]].unsqueeze(-1) == places[rivals],
        )
        for block in row_blocks(rows.numel(), per_row, budget)
    ]
    lower, upper, mean, sigma, threatened = (
        torch.cat(part) for part in zip(*parts, strict=True)
    )
    return Judgement(lower, upper, mean, sigma, threatened)


def _judged(found: Comparison, epsilon: Tensor, own: Tensor) -> tuple[Tensor, ...]:
    ends = [
        end.amax(dim=0).masked_fill(own, torch.inf).amin(dim=1)
        for end in (found.lower, found.upper)
    ]
    best, output = found.mean.max(dim=0)
    mean, rival = best.masked_fill(own, torch.inf).min(dim=1)
    at = torch.arange(len(rival))
    sigma = found.sigma[output[at, rival], at, rival]
    tolerant = (found.lower + epsilon.view(-1, 1, 1)).amax(dim=0)
    return *ends, mean, sigma, (tolerant <= 0) & ~own


def sorted_out(belief: GPParetoBelief, found: Judgement) -> GPParetoBelief:
    r"""Sides and active rows after a judgement of the open rows against the live ones.

    Rows certainly exceeded are rejected first and threaten nobody any more: whatever
    they exceed, the row that exceeds them does too.
    """
    rows, rivals = belief.open, belief.live
    side = belief.side.clone()
    side[rows[found.upper < 0]] = BELOW
    remains = side[rivals] != BELOW
    is_open = side[rows] == UNDECIDED
    threatened = found.threatened[:, remains]
    accepted = is_open & ~threatened.any(dim=1)
    side[rows[accepted]] = ABOVE
    active = side == UNDECIDED
    needed = threatened[is_open & ~accepted].any(dim=0)
    active[rivals[remains][needed]] = True
    return replace(belief, side=side, active=active)


def with_margins(
    estimate: ParetoEstimate, rows: Tensor, found: Judgement
) -> ParetoEstimate:
    r"""The estimate with the margins of ``rows``; a single row keeps its own."""
    new = {
        "margin": found.mean,
        "margin_lower": found.lower,
        "margin_upper": found.upper,
        "margin_sigma": found.sigma,
    }
    has_rival = found.mean.isfinite()
    kept = {
        part.name: getattr(estimate, part.name).index_put(
            (rows[has_rival],), new[part.name][has_rival]
        )
        for part in fields(estimate)
        if part.name in new
    }
    return replace(estimate, **kept)
