r"""Algorithm 3 to the letter: batches that classify before their results are there."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from botorch_lse._validation import truth_value
from botorch_lse.confidence.schedules import (
    BatchEta,
    BetaSchedule,
    UnionBeta,
)
from botorch_lse.data.observations import Observations
from botorch_lse.data.requests import PlanRequest
from botorch_lse.functional.scores import first_best
from botorch_lse.goals.base import Goal
from botorch_lse.goals.extremes import ShareOfMax
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.rules.base import Belief, ScoreRule
from botorch_lse.rules.scores import Ambiguity, Width
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from botorch_lse.strategies.presets import GPStrategy


@dataclass(frozen=True, eq=False)
class LSELiteralBatchStrategy(GPStrategy):
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

    goals: ClassVar[tuple[str, ...]] = ("threshold",)

    @property
    def rule(self) -> ScoreRule:
        r"""The most ambiguous row."""
        return Ambiguity()

    @cached_property
    def information(self) -> float:
        r"""``C``, a bound of what ``batch_size - 1`` observations tell, in nats.

        0 for a model to be fitted, whose bound nobody knows beforehand.
        """
        return _information(self)

    @property
    def source(self) -> str:  # type: ignore[override]  # it has a number in it
        r"""The theorem with its ``C``."""
        return f"Gotovos et al. 2013, Theorem 3 with C = {self.information:.3g}"

    @cached_property
    def parts(self) -> LiteralBatches:
        r"""The parts joined, with batches that classify inside."""
        parts = super().parts
        given = {f.name: getattr(parts, f.name) for f in fields(parts)}
        given["size_is_open"] = False  # ``C`` is that of one batch size
        return LiteralBatches(**given, information=self.information)


@dataclass(frozen=True, eq=False)
class ImplicitLSELiteralBatchStrategy(GPStrategy):
    r"""Algorithm 3 to the letter with LSE_imp's sets and rule; for comparison only.

    Arguments: see ``ImplicitLSEStrategy`` and ``LSELiteralBatchStrategy``.

    Source:
        Gotovos et al. (2013), Algorithms 2 and 3.
    """

    drop_maximisers: bool = False

    goals: ClassVar[tuple[str, ...]] = ("omega",)

    def __post_init__(self) -> None:
        super().__post_init__()
        truth_value(self.drop_maximisers, "drop_maximisers")

    @cached_property
    def goal(self) -> Goal:
        r"""The goal: the sides of a share of the maximum."""
        return ShareOfMax(float(self.omega or 0.0), self.epsilon, self.drop_maximisers)

    @property
    def rule(self) -> ScoreRule:
        r"""The rule: measure where the confidence region is widest."""
        return Width()

    @cached_property
    def information(self) -> float:
        r"""The constant ``C``, see ``LSELiteralBatchStrategy``."""
        return _information(self)

    @property
    def source(self) -> str:  # type: ignore[override]  # it has a number in it
        r"""The theorem with its ``C``."""
        return f"Gotovos et al. 2013, Theorem 3 with C = {self.information:.3g}"

    @cached_property
    def parts(self) -> LiteralBatches:
        r"""The parts joined, with batches that classify inside."""
        parts = super().parts
        given = {f.name: getattr(parts, f.name) for f in fields(parts)}
        given["size_is_open"] = False  # ``C`` is that of one batch size
        return LiteralBatches(**given, information=self.information)


_Literal = LSELiteralBatchStrategy | ImplicitLSELiteralBatchStrategy


def _information(strategy: _Literal) -> float:
    if strategy.fixed is None:
        return 0.0
    start = PoolPosterior.start(strategy.fixed, strategy.pool.X, strategy.memory_budget)
    noise = float(strategy.gp.new_noise(strategy.fixed, None).min())
    return information_bound(start, noise, (strategy.batch_size or 1) - 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class LiteralBatches(GaussianAlgorithm):
    r"""Rounds in which each chosen row tightens regions and sides at once.

    Args:
        information: ``C``; else see ``GaussianAlgorithm``.
    """

    information: float

    @cached_property
    def widths(self) -> BetaSchedule:
        r"""The squared widths by observation."""
        if self.beta is not None:
            return self.beta
        union = UnionBeta(len(self.pool), self.delta)
        return BatchEta(union, self.batch_size, self.information)

    @property
    def claims_confidence(self) -> bool:
        r"""Whether the information bound that the theorem needs is known."""
        is_known = self.model.is_fixed or self.batch_size == 1
        return self.beta is None and is_known

    def _check_norm_bound(self) -> None:
        if self.norm_bound is not None:
            raise ValueError(
                "Expected no `norm_bound` for batches to the letter, whose intervals "
                f"inside a batch it does not cover, but got {self.norm_bound}. Use "
                "`LSEStrategy`."
            )

    def plan(self, belief: Belief, request: PlanRequest) -> Tensor:
        r"""The best row after each step inside the batch."""
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

    def usable(self, belief: Belief, request: PlanRequest) -> Tensor:
        r"""The measurements of the next batch: its steps may decide all other rows."""
        batch = replace(request, size=min(request.size, self.batch_size))
        return torch.bincount(self.plan(belief, batch), minlength=len(self.pool))

    def observe(self, belief: Belief, new: Observations) -> Belief:
        r"""The belief after one more round, whose steps inside the batch come first."""
        return super().observe(self._inside_the_batch(belief, new), new)

    def _choice(self, belief: Belief, left: Tensor) -> int | None:
        context = self.context(belief, left[:0])
        posterior = belief.posterior
        scores = posterior.variance
        if not context.is_initial:
            assert isinstance(self.rule, ScoreRule)  # as both strategies have
            scores = self.rule.scores(context)
        return first_best(scores, context.open_rows & (left > 0), posterior.scale)

    def _step(self, belief: Belief, row: int) -> Belief:
        fits, t = belief.fits.expecting(torch.tensor([row])), belief.n_intervals + 1
        beta = self.widths(t)
        posterior = fits.posteriors[0]
        tighter = belief.regions.intersect(posterior.mean, posterior.sigma, beta)
        return replace(
            belief,
            fits=fits,
            all_regions=(tighter,),
            sides=self.goal.update(belief.sides, self.seen(fits, (tighter,), beta)),
            n_intervals=t,
        )

    def _inside_the_batch(self, belief: Belief, new: Observations) -> Belief:
        r"""The steps inside the batch again, in the order in which rows were chosen."""
        inside, size = belief, self.batch_size
        left = torch.bincount(new.indices, minlength=len(self.pool))
        for _ in range(len(new) - 1 if len(new) <= size else 0):
            row = self._choice(inside, left)
            row = int(left.nonzero()[0]) if row is None else row
            left[row] -= 1
            inside = self._step(inside, row)
        last = belief.n_intervals + size - 1  # where the next batch begins
        return replace(inside, fits=belief.fits, n_intervals=last)


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
