r"""The straddle scores ranked, a baseline: batches that do not know of each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.scores import first_best
from botorch_lse.rules.base import (
    Rule,
    SelectionContext,
    at_a_source,
    one_by_one,
    rows_due,
    variance_left,
)
from botorch_lse.rules.scores import Straddle
from botorch_lse.strategies.presets import GPStrategy
from botorch_lse.surrogate.layout import FromSources


@dataclass(frozen=True)
class StraddleRank(Rule):
    r"""The distinct rows with the largest straddle scores.

    Rows of a batch do not know of each other, so they cluster: a baseline only.

    Source:
        Gotovos et al. (2013), section 5, STR_rank.
    """

    intervals = Straddle.intervals

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The best distinct rows, none that is out."""
        if context.is_initial:
            return one_by_one(context, request, variance_left)
        start = replace(context, fits=context.belief.fits)
        usable = request.left > 0
        eligible = usable.index_fill(0, request.pending, False)
        if not bool(eligible.any()):  # all others are out: rows once more
            eligible = usable
        layout = start.fits.layout
        if isinstance(layout, FromSources):
            rows = best_items(start, replace(request, left=eligible.long()), layout)
        else:
            scale = context.belief.posterior.scale
            scores = Straddle().scores(start)
            rows = best_distinct(scores, eligible, scale, request.size)
        return torch.tensor(rows, dtype=torch.long)


def best_items(
    context: SelectionContext, request: PlanRequest, layout: FromSources
) -> list[int]:
    r"""The items with the largest scores, each at the source that tells most per cost.

    Args:
        context: The belief before the batch.
        request: How many, and of which rows.
        layout: Whose rows are measured.
    """
    rows, left = list[int](), request.left.clone()
    while len(rows) < request.size:
        found = context.open_rows & (left > 0)
        open_rows = rows_due(context, layout, found, request.pending, rows)
        row = at_a_source(context, open_rows, Straddle().scores)
        if row is None:
            break
        rows.append(row)
        left[layout.at_sources(row % layout.n_items)] = 0
    return rows


@dataclass(frozen=True, eq=False)
class StraddleRankStrategy(GPStrategy):
    r"""The ``batch_size`` distinct rows with the largest straddle scores.

    Rows of a batch do not know of each other, so they cluster: a baseline only. Else
    as ``StraddleStrategy``. Arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), section 5, STR_rank.
    """

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    @property
    def rule(self) -> Rule:
        r"""The largest straddle scores at once."""
        return StraddleRank()


def best_distinct(scores: Tensor, eligible: Tensor, scale: float, n: int) -> list[int]:
    r"""The ``n`` best eligible indices, each once, best first, ties by lowest index."""
    eligible = eligible.clone()
    chosen: list[int] = []
    for _ in range(n):
        best = first_best(scores, eligible, scale)
        if best is None:
            break
        chosen.append(best)
        eligible[best] = False
    return chosen
