r"""Whole runs on a simulated function, without lists of single measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from botorch_lse.problem import Observations
from botorch_lse.strategies.loop import BUDGET, DECIDED, Request
from botorch_lse.strategies.simulated import SimulatedRun

if TYPE_CHECKING:
    from botorch_lse.strategies.linear.base import LinearStrategy

Measure = Callable[[Tensor, Tensor], Tensor | tuple[Tensor, Tensor]]
"""From ``k`` rows and how often each is measured to ``k`` or ``k x m`` means, or to
these and their ``yvar``, which a burn-in needs."""


def simulated_run(
    strategy: LinearStrategy, measure: Measure, seed: int
) -> SimulatedRun:
    r"""The same as asking and telling means, without a list of millions of rows.

    Args:
        strategy: Who asks.
        measure: From ``k`` rows and ``k`` counts to means; see ``Measure``.
        seed: The seed of ``init``.
    """
    belief, rounds, reason = strategy._start(seed), 0, DECIDED
    none, N = torch.empty(0, dtype=torch.long), len(strategy.pool)
    limit, repeats = strategy.max_observations, strategy.max_repeats
    while belief.open.numel():
        n = belief.evidence.n
        size = strategy._round_size(belief, None if limit is None else limit - n)
        left = torch.full((N,), torch.iinfo(torch.long).max)
        if repeats is not None:
            left = repeats - belief.evidence.counts
        if size <= 0 or not bool((left > 0).any()):
            reason = BUDGET
            break
        request = Request(size, left, none, seed, rounds)
        counts = strategy.planned_batch(belief, request)
        rows = counts.nonzero().view(-1)
        found = measure(rows, counts[rows])
        y, yvar = found if isinstance(found, tuple) else (found, None)
        new = Observations(rows, y, yvar, torch.tensor(rounds), counts[rows])
        belief = strategy._learn_planned(belief, strategy._complete(new), new, seed)
        rounds += 1
    answer = strategy._classification(belief)
    return SimulatedRun(answer, belief.evidence.n, rounds, reason)
