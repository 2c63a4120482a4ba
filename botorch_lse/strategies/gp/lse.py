r"""LSE and LSE_imp, sequential and in batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse.checks import truth_value
from botorch_lse.confidence.schedules import BatchEta, BetaSchedule, UnionBeta
from botorch_lse.functional.scores import ambiguity, first_best, interval
from botorch_lse.pool_posterior import PoolPosterior
from botorch_lse.problem import Observations
from botorch_lse.strategies.goals import Goal, ImplicitGoal
from botorch_lse.strategies.gp.base import GPStrategy
from botorch_lse.strategies.gp.belief import Belief
from botorch_lse.strategies.gp.information import information_bound
from botorch_lse.strategies.rule import Request


@dataclass(frozen=True, eq=False)
class LSEStrategy(GPStrategy):
    r"""Measure the most ambiguous undecided row of intersected confidence regions.

    In batches (LSE_batch) planned rows shrink ``sigma`` and leave ``mean``; the
    regions that result choose the next row and are then forgotten. Regions are
    intersected and rows classified once per complete round, where the width of
    Theorem 1 holds as it stands (``t`` counts rounds). Arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), Algorithm 1; Algorithm 3 with errata 6. The letter of
        Algorithm 3 is ``LSELiteralBatchStrategy``.
    """

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        lower, upper = self._batch_regions(belief, posterior)
        return ambiguity(lower, upper, self.goal.level(posterior.mean))

    def _batch_regions(
        self, belief: Belief, posterior: PoolPosterior
    ) -> tuple[Tensor, Tensor]:
        beta = self._beta(belief.n_intervals, posterior)
        lower, upper = interval(posterior.mean, posterior.sigma, beta)
        regions = belief.regions
        return torch.maximum(regions.lower, lower), torch.minimum(regions.upper, upper)

    def _open_rows(self, belief: Belief) -> Tensor:
        everything = super()._open_rows(belief)
        return everything if self._is_initial(belief) else belief.sides.candidates


@dataclass(frozen=True, eq=False)
class ImplicitLSEStrategy(LSEStrategy):
    r"""LSE for the level ``omega max f``: measure the widest region among the rows that
    are undecided or may be the maximiser.

    Args:
        drop_maximisers: Whether decided rows are left alone once they cannot be the
            maximiser any more (the paper's text); by default they stay candidates (its
            pseudocode). Other arguments: see ``GPStrategy``.

    Source:
        Gotovos et al. (2013), Algorithm 2, with errata 4 and 5.
    """

    drop_maximisers: bool = False

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    def __post_init__(self) -> None:
        super().__post_init__()
        truth_value(self.drop_maximisers, "drop_maximisers")

    @cached_property
    def goal(self) -> Goal:
        r"""The implicit level."""
        return ImplicitGoal(
            float(self.omega or 0.0), self.epsilon, self.drop_maximisers
        )

    def _scores(self, belief: Belief, posterior: PoolPosterior) -> Tensor:
        lower, upper = self._batch_regions(belief, posterior)
        return upper - lower


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
        Gotovos et al. (2013), Algorithm 3 and Theorem 3 (``e^{2C}``, Lemma 19), with
        ``C`` by ``information_bound``.
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
