r"""Algorithm 3 to the letter: batches that classify before their results are there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.confidence.schedules import BatchEta, BetaSchedule, UnionBeta
from botorch_lse.functional.scores import first_best
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.problem import Observations
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.lse import ImplicitLSEStrategy, LSEStrategy
from botorch_lse.strategies.loop import Request


@dataclass(frozen=True, eq=False)
class LSELiteralBatchStrategy(LSEStrategy):
    r"""Algorithm 3 to the letter: inside a batch, intervals with the old mean and the
    shrunken ``sigma`` are intersected and classify.

    With a constant width these intervals are wrong often and rows are misclassified;
    with ``eta_t`` of Theorem 3 they never tighten anything inside a batch. It is here
    for comparison: use ``LSEStrategy``.

    Arguments: see ``GPStrategy``; ``beta`` is ``eta`` here and counts observations,
    ``batch_size`` in each round. A larger group that nobody asked for is judged once,
    with its own mean.

    Source:
        Gotovos et al. (2013), Algorithm 3 and Theorem 3, with errata 1 and 6
        (papers/gotovos2013/errata.md), ``C`` by ``information_bound``.
    """

    def _check_norm_bound(self) -> None:
        raise ValueError(
            "Expected no `norm_bound` for LSELiteralBatchStrategy, whose intervals "
            f"inside a batch it does not cover, but got {self.norm_bound}. Use "
            "`LSEStrategy`."
        )

    def _default_widths(self) -> BetaSchedule:
        union = UnionBeta(len(self.pool), self.delta)
        return BatchEta(union, self.batch_size, self.information)

    @cached_property
    def information(self) -> float:
        r"""``C``, a bound of what ``batch_size - 1`` observations tell, in nats.

        0 for a model to be fitted, whose bound nobody knows beforehand.
        """
        if self.fixed is None:
            return 0.0
        start = PoolPosterior.start(self.fixed, self.pool.X, self.memory_budget)
        noise = float(self._planned_noise(self.fixed, None).min())
        return information_bound(start, noise, self.batch_size - 1)

    @property
    def claims_confidence(self) -> bool:
        r"""Only where the information bound that the theorem asks for is known."""
        known = self.fixed is not None or self.batch_size == 1
        return self.beta is None and known

    @property
    def _theorem(self) -> str:
        return f"Theorem 3 with C = {self.information:.3g}"

    def _plan(self, belief: Belief, request: Request) -> Tensor:
        left = request.left.clone()
        rows: list[int] = []
        for row in request.pending.tolist():
            belief = self._step(belief, row)
        while len(rows) < request.size:
            row = self._choice(belief, left)
            if row is None:
                break
            rows.append(row)
            left[row] -= 1
            belief = self._step(belief, row)
        return torch.tensor(rows, dtype=torch.long)

    def _choice(self, belief: Belief, left: Tensor) -> int | None:
        posterior = belief.posterior
        initial = self._is_initial(belief)
        scores = posterior.variance if initial else self._scores(belief, posterior)
        usable = self._open_rows(belief) & (left > 0)
        return first_best(scores, usable, posterior.scale)

    def _step(self, belief: Belief, row: int) -> Belief:
        noise = float(belief.new_noise[row])
        posterior = belief.posterior.expect(row, noise)
        t = belief.n_intervals + 1
        mean, sigma = posterior.mean, posterior.sigma
        regions = belief.regions.intersect(mean, sigma, self.widths(t))
        sides = self.goal.update(belief.sides, regions)
        return replace(
            belief, posterior=posterior, regions=regions, sides=sides, n_intervals=t
        )

    def _observe(self, belief: Belief, new: Observations) -> Belief:
        # The steps inside the batch again, in the order in which rows were chosen.
        inside, left = belief, torch.bincount(new.indices, minlength=len(self.pool))
        for _ in range(len(new) - 1 if len(new) <= self.batch_size else 0):
            row = self._choice(inside, left)
            row = int(left.nonzero()[0]) if row is None else row
            left[row] -= 1
            inside = self._step(inside, row)
        last = belief.n_intervals + self.batch_size - 1  # where the next batch begins
        before = replace(inside, posterior=belief.posterior, n_intervals=last)
        return super()._observe(before, new)


@dataclass(frozen=True, eq=False)
class ImplicitLSELiteralBatchStrategy(LSELiteralBatchStrategy, ImplicitLSEStrategy):
    r"""Algorithm 3 to the letter with LSE_imp's sets and rule; for comparison only.

    Arguments: see ``ImplicitLSEStrategy`` and ``LSELiteralBatchStrategy``.

    Source:
        Gotovos et al. (2013), Algorithms 2 and 3.
    """

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        return ImplicitLSEStrategy._scores(self, belief, posterior)


def information_bound(posterior: PoolPosterior, noise_var: float, n: int) -> float:
    r"""An upper bound of the information about ``f`` in any ``n`` measurements, nats.

    Greedy choice (the largest variance next) reaches at least ``1 - 1/e`` of the
    maximum, because information is monotone and submodular in the set.

    Args:
        posterior: On the pool.
        noise_var: The smallest noise variance of a measurement.
        n: The number of measurements.

    Source:
        Krause and Guestrin (2005); used by Srinivas et al. (2010), section 2.
    """
    if noise_var <= 0:
        return math.inf if n > 0 else 0.0
    information = 0.0
    for _ in range(n):
        row = int(posterior.variance.argmax())
        information += 0.5 * math.log1p(float(posterior.variance[row]) / noise_var)
        posterior = posterior.expect(row, noise_var)
    return information / (1.0 - math.exp(-1.0))
