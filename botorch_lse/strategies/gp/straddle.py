r"""The straddle heuristics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.confidence.schedules import BetaSchedule, ConstantBeta
from botorch_lse.functional.scores import best_distinct, straddle
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.loop import Request

STRADDLE_BETA = 1.96**2


@dataclass(frozen=True, eq=False)
class StraddleStrategy(GPStrategy):
    r"""Measure where ``sqrt(beta) sigma - |mean - threshold|`` is largest.

    In batches (STR_batch) each row is the best given the ones before it: planned rows
    shrink ``sigma`` and leave ``mean``. Rows are classified by the current interval,
    not intersected, with the same ``beta`` (default ``1.96^2``); no confidence is
    claimed, and a row may become undecided again. Arguments: see ``GPStrategy``.

    Source:
        Bryan et al. (2005); Gotovos et al. (2013), section 5, STR and STR_batch.
    """

    goals: ClassVar[tuple[str, ...]] = ("threshold",)
    intersects: ClassVar[bool] = False
    is_monotone: ClassVar[bool] = False

    def _default_widths(self) -> BetaSchedule:
        return ConstantBeta(STRADDLE_BETA)

    @property
    def claims_confidence(self) -> bool:
        r"""Never: the rule has no theorem."""
        return False

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        level = self.goal.level(posterior.mean)
        beta = self.widths(belief.n_intervals)
        return straddle(posterior.mean, posterior.sigma, level, beta)


@dataclass(frozen=True, eq=False)
class StraddleRankStrategy(StraddleStrategy):
    r"""The ``batch_size`` distinct rows with the largest straddle scores.

    Rows of a batch do not know of each other, so they cluster: a baseline only.
    Arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), section 5, STR_rank.
    """

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        posterior = belief.posterior
        if self._is_initial(belief):
            return super()._plan(belief, request)
        scores = self._scores(belief, posterior)
        eligible = request.left > 0
        eligible[request.pending] = False
        rows = best_distinct(scores, eligible, posterior.scale, request.size)
        return torch.tensor(rows, dtype=torch.long)


@dataclass(frozen=True, eq=False)
class ImplicitStraddleStrategy(StraddleStrategy):
    r"""Straddle with the level ``omega`` times the largest posterior mean.

    The level is a guess that the rule does not try to improve, so it can get stuck.
    Rows are classified by LSE_imp's rule on the current intervals. Arguments: see
    ``GPStrategy``.

    Source:
        Gotovos et al. (2013), section 5, STR_imp.
    """

    goals: ClassVar[tuple[str, ...]] = ("omega",)
