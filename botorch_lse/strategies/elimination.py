r"""Which rows and pairs leave the question after a round."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse.confidence.classify import ABOVE, BELOW


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
        refuted: ``N x N`` bools: its contrary is, up to an accuracy.
        outdone: ``N x N`` bools: the contrary is without the accuracy, so that the row
            is not the maximiser and need be compared with no more. Default ``refuted``.

    Source:
        Mason et al. (2022), Algorithm 2, lines 9 to 17, with erratum 3
        (papers/mason2022/errata.md): the pairs of ``A_t`` are examined at once,
        line 16 tests ``A_{t+1}`` for rows not in ``B``.
    """
    bad = (active & refuted).any(dim=1)
    gone = bad if outdone is None else (active & outdone).any(dim=1)
    left = active & ~certain & ~bad.unsqueeze(-1) & ~gone
    side = torch.where(bad, BELOW, side)
    good = (side != BELOW) & ~left.any(dim=1)
    return left, torch.where(good, ABOVE, side).to(torch.int8)


def eliminate_for_best(
    side: Tensor,
    rows: Tensor,
    values: Tensor,
    half: Tensor,
    epsilon: float,
    places: Tensor | None = None,
) -> Tensor:
    r"""The sides after one round of the search for the maximiser, by differences.

    A row goes if some other one is better for certain. Once no other row can be better
    than the best estimate by more than ``epsilon``, that row is accepted and the others
    go.

    Args:
        side: ``N`` codes.
        rows: The ``T`` rows in question.
        values: Their estimates, units of ``y``.
        half: ``T x T`` half widths of the intervals of ``f(x) - f(x')``.
        epsilon: The accuracy, units of ``y``.
        places: ``N`` numbers; rows with one number are one point and share their side.

    Source:
        Weltz et al. (2023), Algorithm 2, line 13, with the width of each pair; the
        acceptance within ``epsilon`` is own.
    """
    place = rows if places is None else places[rows]
    others = place.unsqueeze(-1) != place
    worse = (((values - values.unsqueeze(-1)) > half) & others).any(dim=1)
    side = side.index_fill(0, rows[worse], BELOW)
    best = int(values.argmax())
    rivals = ~worse & (values - values[best] + half[best] > epsilon) & others[best]
    if bool(rivals.any()):
        return side
    side = side.index_fill(0, rows, BELOW)
    return side.index_fill(0, rows[~others[best]], ABOVE)
