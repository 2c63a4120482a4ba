r"""Baselines that ignore the level when they choose."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.loop import Request
from botorch_lse.strategies.state import round_generator


@dataclass(frozen=True, eq=False)
class MaxVarianceStrategy(GPStrategy):
    r"""Measure where the posterior variance is largest.

    Regions and classes are those of LSE; Lemma 1's widths hold for any rule that
    chooses rows. Arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), section 5, VAR.
    """

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        return posterior.variance


@dataclass(frozen=True, eq=False)
class RandomStrategy(GPStrategy):
    r"""Measure rows drawn at random, each equally often as far as possible.

    Regions and classes are those of LSE. Arguments: see ``GPStrategy``; ``n_initial``
    is ignored, everything is random.

    Source:
        The usual baseline.
    """

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        generator = round_generator(request.seed, request.round)
        left, rows = request.left.clone(), torch.empty(0, dtype=torch.long)
        seen = torch.bincount(belief.posterior.indices, minlength=len(self.pool))
        seen += torch.bincount(request.pending, minlength=len(self.pool))
        while rows.numel() < request.size and bool((left > 0).any()):
            fewest = seen[left > 0].min()
            open_ = ((left > 0) & (seen == fewest)).nonzero().view(-1)
            order = torch.randperm(open_.numel(), generator=generator)
            drawn = open_[order[: request.size - rows.numel()]]
            left[drawn] -= 1
            seen[drawn] += 1
            rows = torch.cat((rows, drawn))
        return rows

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        return torch.zeros_like(posterior.mean)
