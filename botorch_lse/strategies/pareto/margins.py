r"""Which rows are certainly dominated, and which certainly not, by intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.posterior import row_blocks

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
    rows: Tensor, rivals: Tensor, compare: Compare, epsilon: Tensor, budget: int
) -> Judgement:
    r"""Judge rows against rivals; a row is no rival of itself.

    Args:
        rows: ``R`` rows.
        rivals: ``L`` rows.
        compare: Their intervals.
        epsilon: ``m`` tolerances, units of the outputs.
        budget: Bytes for temporary arrays.
    """
    per_row = _COPIES * epsilon.numel() * rivals.numel()
    parts = [
        _judged(rows[block], rivals, compare(rows[block], rivals), epsilon)
        for block in row_blocks(rows.numel(), per_row, budget)
    ]
    lower, upper, mean, sigma, threatened = (
        torch.cat(part) for part in zip(*parts, strict=True)
    )
    return Judgement(lower, upper, mean, sigma, threatened)


def _judged(
    rows: Tensor, rivals: Tensor, found: Comparison, epsilon: Tensor
) -> tuple[Tensor, ...]:
    own = rows.unsqueeze(-1) == rivals
    ends = [
        end.amax(dim=0).masked_fill(own, torch.inf).amin(dim=1)
        for end in (found.lower, found.upper)
    ]
    best, output = found.mean.max(dim=0)
    mean, rival = best.masked_fill(own, torch.inf).min(dim=1)
    at = torch.arange(rows.numel())
    sigma = found.sigma[output[at, rival], at, rival]
    tolerant = (found.lower + epsilon.view(-1, 1, 1)).amax(dim=0)
    return *ends, mean, sigma, (tolerant <= 0) & ~own
