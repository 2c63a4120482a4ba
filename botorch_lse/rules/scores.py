r"""Scores of single rows by mean, standard deviation and interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse._validation import in_interval, truth_value
from botorch_lse.confidence.schedules import ConstantBeta
from botorch_lse.data.requests import PlanRequest, round_generator
from botorch_lse.functional.scores import (
    FEASIBILITY_ALPHA,
    RANJAN_ALPHA,
    TIE,
    ambiguity,
    expected_feasibility,
    ranjan_improvement,
    straddle,
    u_function,
)
from botorch_lse.rules.base import (
    IntervalPolicy,
    Moments,
    Rule,
    ScoreRule,
    SelectionContext,
    Serves,
    largest_score,
    one_by_one,
    variance_left,
)

STRADDLE_WIDTH = ConstantBeta(1.96**2)
CLOSE = 1e-6
"""The share, or difference of ``t``, below which criteria made of ``t`` are ties.
``t`` are the deviations from the level. ``TIE`` of the prior's standard deviation would
not do: the criteria fall as ``exp(-t^2 / 2)``, and where all rows are six deviations
off, the first of them would be as good as the best."""


@dataclass(frozen=True)
class Variance(ScoreRule):
    r"""Measure the row of largest posterior variance, whatever the level.

    Source:
        Gotovos et al. (2013), section 5, VAR.
    """

    serves = Serves.ANYTHING
    falls_with_variance = True

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The posterior variance of each row; of several outputs the scaled sum."""
        return variance_left(context)


@dataclass(frozen=True)
class Random(Rule):
    r"""Measure rows drawn at random, each as often as the others as far as possible.

    Source:
        The usual baseline.
    """

    serves = Serves.ANYTHING

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The rows drawn at random, in the initial design too."""
        N = len(context.open_rows)
        generator = round_generator(request.seed, request.round)
        left, rows = request.left.clone(), torch.empty(0, dtype=torch.long)
        uses = torch.bincount(context.belief.fits.measured, minlength=N)
        uses += torch.bincount(request.pending, minlength=N)
        while rows.numel() < request.size and bool((left > 0).any()):
            fewest = uses[left > 0].min()
            open_ = ((left > 0) & (uses == fewest)).nonzero().view(-1)
            order = torch.randperm(
                open_.numel(), generator=generator, device=generator.device
            )
            first = order[: request.size - rows.numel()]
            drawn = open_[first.to(open_.device)]
            left[drawn] -= 1
            uses[drawn] += 1
            rows = torch.cat((rows, drawn))
        return rows


@dataclass(frozen=True)
class Straddle(ScoreRule):
    r"""Measure where ``sqrt(beta) sigma - |mean - level|`` is largest.

    Source:
        Bryan et al. (2005); Gotovos et al. (2013), section 5, STR and STR_batch.
    """

    intervals = IntervalPolicy(
        width=STRADDLE_WIDTH, intersects=False, is_monotone=False
    )
    falls_with_variance = True

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The straddle score of each row, units of ``y``."""
        beta = context.beta
        return largest_score(
            context, lambda m: straddle(m.mean, m.sigma, m.level, beta)
        )


@dataclass(frozen=True)
class RandomizedStraddle(Rule):
    r"""Measure by the straddle score, with a width drawn at random for each round.

    ``beta`` has the chi-square distribution with two degrees of freedom: mostly small,
    so that rows near the level come first, at times large, so that nothing is
    forgotten. It is a function of the run's seed and the number of the round alone. It
    only chooses; what is decided, the strategy's width says.

    Source:
        Inatsu et al. (2024), "Active learning for level set estimation using randomized
        straddle algorithms". Deviations: only rows in question are measured, since the
        best row may be one on the level that ``epsilon`` has decided; batches are ours,
        with one draw for all rows of a round.
    """

    only_candidates = True

    def rows(self, context: SelectionContext, request: PlanRequest) -> Tensor:
        r"""The rows with the best scores, one by one; initial rows by variance."""
        drawn = replace(context, beta=drawn_beta(request.seed, request.round))
        scores = variance_left if context.is_initial else Straddle().scores
        return one_by_one(drawn, request, scores)


def drawn_beta(seed: int, round: int) -> float:
    r"""The random width of a round: chi-square with two degrees of freedom (mean 2)."""
    generator = round_generator(seed, round)
    uniform = float(
        torch.rand(
            (), generator=generator, dtype=torch.float64, device=generator.device
        )
    )
    return -2.0 * math.log1p(-uniform)  # 1 - u is never 0


def in_steps(scores: Tensor, context: SelectionContext) -> Tensor:
    r"""Scores without a unit, scaled so that ``first_best`` calls ``CLOSE`` a tie."""
    return scores * (context.tie_scale * TIE / CLOSE)


def by_ratio(scores: Tensor, context: SelectionContext) -> Tensor:
    r"""Logarithms of positive scores, so that scores with a ratio near one tie."""
    positive = scores.clamp_min(torch.finfo(scores.dtype).tiny)
    return in_steps(positive.log(), context)


@dataclass(frozen=True)
class UFunction(ScoreRule):
    r"""Measure the row in question whose mean is fewest deviations from the level.

    Source:
        Echard et al. (2011), the learning function U of AK-MCS. Deviations: what is in
        question, and when to stop, is said by the strategy's width, in place of
        ``min U >= 2``; only rows in question are measured.
    """

    # A row on the level has the best value, 0, for ever: also once its interval is so
    # narrow that ``epsilon`` decides it.
    only_candidates = True
    falls_with_variance = True

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The negative number of standard deviations, scaled for ties."""
        found = largest_score(
            context, lambda m: u_function(m.mean, m.sigma, m.level), 0
        )
        return in_steps(found, context)


ContourEntropy = UFunction
"""The name of ``UFunction`` as Shannon's entropy of contours (Cole et al., 2023)."""


@dataclass(frozen=True)
class ExpectedFeasibility(ScoreRule):
    r"""Measure the row in question with the largest expected feasibility.

    Args:
        alpha: The half-width of the band around the level, in deviations of the row.
        by_weight: Whether the score counts by the weight of the row, in a pool with
            weights: of importance weights many are so small that the side of the row
            hardly counts.

    Raises:
        ValueError: If ``alpha`` is not above 0, or ``by_weight`` is no bool.

    Source:
        Bichon et al. (2008), the expected feasibility function of EGRA. Deviations: in
        question, and when to stop, as in ``UFunction``; theirs knows no weights.
    """

    alpha: float = FEASIBILITY_ALPHA
    by_weight: bool = False

    only_candidates = True
    falls_with_variance = True

    def __post_init__(self) -> None:
        in_interval(self.alpha, "alpha", 0.0, math.inf)
        truth_value(self.by_weight, "by_weight")

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The logarithm of each row's expected feasibility, scaled for ties."""

        def score(m: Moments) -> Tensor:
            return expected_feasibility(m.mean, m.sigma, m.level, self.alpha)

        found, weights = largest_score(context, score), context.weights
        if self.by_weight and weights is not None:
            n_others = len(context.posterior.mean) - len(weights)  # no items
            share = torch.cat((weights / weights.max(), weights.new_zeros(n_others)))
            # Of several outputs that are measured one by one each has all rows.
            found = found.view(-1, len(share))
            found = (found * share.clamp_min(torch.finfo(found.dtype).tiny)).view(-1)
        return by_ratio(found, context)


@dataclass(frozen=True)
class RanjanImprovement(ScoreRule):
    r"""Measure the row in question with the largest improvement of Ranjan et al.

    Args:
        alpha: The half-width of the band around the level, in deviations of the row.

    Raises:
        ValueError: If ``alpha`` is not above 0.

    Source:
        Ranjan et al. (2008), the expectation of their improvement. Deviation: only rows
        in question are measured.
    """

    alpha: float = RANJAN_ALPHA

    only_candidates = True
    falls_with_variance = True

    def __post_init__(self) -> None:
        in_interval(self.alpha, "alpha", 0.0, math.inf)

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The logarithm of each row's improvement, scaled for ties."""

        def score(m: Moments) -> Tensor:
            return ranjan_improvement(m.mean, m.sigma, m.level, self.alpha)

        return by_ratio(largest_score(context, score, 2), context)


@dataclass(frozen=True)
class Ambiguity(ScoreRule):
    r"""Measure the row whose region reaches farthest over the level on both sides.

    Args:
        intersects: Whether regions are intersections, or the last interval alone.

    Source:
        Gotovos et al. (2013), Algorithm 1.
    """

    intersects: bool = True

    only_candidates = True
    falls_with_variance = True

    @property
    def intervals(self) -> IntervalPolicy:  # type: ignore[override]
        r"""The policy: intersected intervals, if wanted."""
        return IntervalPolicy(intersects=self.intersects)

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The ambiguity of each row's expected region, units of ``y``."""
        return largest_score(context, lambda m: ambiguity(*m.ends, m.level))


@dataclass(frozen=True)
class Width(ScoreRule):
    r"""Measure the row with the widest region.

    Source:
        Gotovos et al. (2013), Algorithm 2.
    """

    only_candidates = True
    falls_with_variance = True

    def scores(self, context: SelectionContext) -> Tensor:
        r"""The width of each row's expected region, units of ``y``."""
        return largest_score(context, lambda m: m.ends[1] - m.ends[0])
