r"""The straddle scores ranked, a baseline: batches that do not know of each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.scores import first_best
from botorch_lse.rules.base import Rule, SelectionContext, one_by_one, variance_left
from botorch_lse.rules.scores import STRADDLE_WIDTH, Straddle
from botorch_lse.strategies.presets import GPStrategy


@dataclass(frozen=True)
class StraddleRank(Rule):
    r"""The distinct rows with the largest straddle scores.

    Rows of a batch do not know of each other, so they cluster: a baseline only.

    Source:
        Gotovos et al. (2013), section 5, STR_rank.
    """

    own_width = STRADDLE_WIDTH
    intersects = False
    is_monotone = False

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The best distinct rows, none that is out."""
        if context.is_initial:
            return one_by_one(context, request, variance_left)
        posterior = context.belief.posterior
        scores = Straddle().scores(replace(context, fits=context.belief.fits))
        usable = request.left > 0
        eligible = usable.index_fill(0, request.pending, False)
        if not bool(eligible.any()):  # all others are out: rows once more
            eligible = usable
        rows = best_distinct(scores, eligible, posterior.scale, request.size)
        return torch.tensor(rows, dtype=torch.long)


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
