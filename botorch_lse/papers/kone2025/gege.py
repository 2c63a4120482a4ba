r"""GEGE: G-optimal empirical gap elimination for linear outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse._validation import one_of
from botorch_lse.confidence.classify import ABOVE, BELOW, accuracy
from botorch_lse.data.arguments import points_of
from botorch_lse.data.observations import Observations
from botorch_lse.designs import optimal_design, round_design
from botorch_lse.designs.basis import span_map
from botorch_lse.designs.rounding import LARGEST_KAPPA
from botorch_lse.goals.gaps import NEAREST
from botorch_lse.papers.fixed_confidence import countable, rehearsed
from botorch_lse.papers.kone2025.base import (
    ParetoBelief,
    ParetoQuestion,
    ParetoStrategy,
    accept_rest,
    budget,
)
from botorch_lse.papers.kone2025.gaps import empirical_gaps
from botorch_lse.papers.kone2025.least_squares import LinearFit, span_least_squares
from botorch_lse.papers.kone2025.rounds import (
    HalvingRule,
    OwnSamples,
    RoundRule,
    Sampling,
)
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies.forecast import Forecast
from botorch_lse.strategies.linear.algorithm import features_of

DESIGN_TOLERANCE = 1e-3
ROUNDINGS = ("quota", "pukelsheim", "regret")
SAMPLE_SIZES = ("corrected", "printed")


@dataclass(frozen=True, eq=False)
class OptEstimator:
    r"""A G-optimal design on the span of some rows, rounded, and its least squares.

    Args:
        X: ``K x h`` features of the rows, of any rank.
        rounding: A method of ``round_design``: ``"quota"`` for any budget,
            ``"pukelsheim"`` for large ones, or ``"regret"``, the paper's ``ROUND``,
            which takes a decomposition per measurement.

    Source:
        Kone et al. (2025), Algorithm 1; the projection of its section 2.2.
    """

    X: Tensor
    rounding: str = "quota"

    @cached_property
    def Phi(self) -> Tensor:
        r"""``K x rank`` coordinates on the span."""
        return self.X @ span_map(self.X)

    @property
    def rank(self) -> int:
        r"""The dimension of the span."""
        return self.Phi.shape[1]

    @cached_property
    def weights(self) -> Tensor:
        r"""``K`` weights of the design; its worst squared norm is ``rank``."""
        if self.rank == 0:
            return torch.full_like(self.X[:, 0], 1 / len(self.X))
        return optimal_design(self.Phi, tol=DESIGN_TOLERANCE).weights

    @property
    def least(self) -> int:
        r"""The smallest number of measurements that can be rounded."""
        return int((self.weights > 0).sum()) if self.rounding == "pukelsheim" else 1

    def counts(self, n: int, kappa: float) -> Tensor:
        r"""``K`` counts that sum to ``n``; ``kappa`` is the precision of ``ROUND``."""
        if self.rank == 0:
            return round_design(self.weights, n)
        if self.rounding != "regret":
            return round_design(self.weights, n, self.rounding)
        kappa = min(kappa, LARGEST_KAPPA)
        return round_design(self.weights, n, "regret", X=self.Phi, kappa=kappa)

    def worst_norm(self, counts: Tensor) -> float:
        r"""``max_i |x_i|^2`` in the norm of ``V^+``; infinite where it cannot be."""
        nothing = torch.zeros(int((counts > 0).sum()), 1, dtype=self.X.dtype)
        rows = counts.nonzero().view(-1)
        return float(
            span_least_squares(self.Phi, rows, nothing, counts[rows]).norms.max()
        )

    def fit(self, rows: Tensor, used: Observations) -> LinearFit:
        r"""Least squares; ``rows`` are those of ``X`` in the pool, ascending."""
        places = torch.searchsorted(rows, used.indices)
        return span_least_squares(self.Phi, places, used.y, used.counts)


@dataclass(frozen=True, eq=False)
class DesignSampling(Sampling):
    r"""Sampling by the G-optimal design on the open rows' span, with least squares.

    Args:
        X: ``N x h`` features.
        rounding: See ``OptEstimator``.
    """

    X: Tensor
    rounding: str

    @cached_property
    def dimension(self) -> int:
        r"""The rank of all features."""
        return max(1, span_map(self.X).shape[1])

    @cached_property
    def least(self) -> int:
        r"""The least size of an initial design that, rounded, spans the features."""
        first = OptEstimator(self.X, self.rounding)
        n = max(first.rank, first.least)
        while not math.isfinite(first.worst_norm(first.counts(n, LARGEST_KAPPA))):
            n += 1
        return n

    def counts(self, rows: Tensor, n: int) -> Tensor:
        r"""The counts of measurements by row: the optimal design, rounded."""
        return OptEstimator(self.X[rows], self.rounding).counts(n, LARGEST_KAPPA)

    def fit(self, rows: Tensor, used: Observations) -> LinearFit:
        r"""Means of the rows by least squares on their features."""
        return OptEstimator(self.X[rows]).fit(rows, used)


@dataclass(frozen=True, eq=False)
class GEGEBudgetStrategy(ParetoStrategy):
    r"""GEGE with a fixed budget: ``ceil(log2 h)`` rounds, ``h`` the features' rank.

    ``max_observations`` is the budget; see ``HalvingRule``. ``delta`` is that of the
    intervals only. The features are ``pool.features``, else ``pool.X``. Other
    arguments: see ``ParetoStrategy``.

    Args:
        rounding: ``"quota"``, ``"pukelsheim"``, or ``"regret"``, the paper's ``ROUND``.

    Source:
        Kone et al. (2025), Algorithm 2 and Theorem 2, with errata 3 to 5
        (papers/kone2025/errata.md): ``floor(T / ceil(log2 h))`` measurements per
        round; one round for ``h = 1``; equal gaps beyond its rule by the lowest row.
        Deviation: ``"quota"`` rounding by default, which needs the least budget.
    """

    rounding: str = "quota"

    def __post_init__(self) -> None:
        one_of(self.rounding, "rounding", ROUNDINGS)
        super().__post_init__()
        self.rule.check()

    @cached_property
    def rule(self) -> HalvingRule:
        r"""The rule: measure by designs on ever fewer rows."""
        sampling = DesignSampling(features_of(self.pool), self.rounding)
        return HalvingRule(self.question, sampling, budget(self.max_observations))

    @cached_property
    def algorithm(self) -> OwnSamples:
        r"""The rounds of the algorithm."""
        return OwnSamples(self.pool, self.question, self.rule, self.guarantee)

    @property
    def guarantee(self) -> str:
        r"""No claim at a stated level."""
        return (
            "No confidence is claimed: if the outputs are linear in the features, the "
            "error probability falls exponentially in the budget, at a rate that "
            "depends on the unknown gaps (Kone et al. 2025, Theorem 2)."
        )


@dataclass(frozen=True, eq=False)
class GEGERule(RoundRule):
    r"""Rounds long enough for a precision that halves from one to the next.

    Args:
        question: The question to decide.
        X: ``N x h`` features.
        epsilon: See ``GEGEPACStrategy``, as are the next ones.
        sample_size: Which numbers of measurements.
        rounding: A method of ``round_design``.
    """

    question: ParetoQuestion
    X: Tensor
    epsilon: float
    sample_size: str
    rounding: str

    is_planned_ahead = False

    @cached_property
    def _places(self) -> Tensor:
        return points_of(self.X)

    @staticmethod
    def precision(t: int) -> float:
        r"""``eps_r = 1 / (2 2^r)``."""
        return 0.5 / 2.0**t

    def log_factor(self, t: int, n_open: int) -> float:
        r"""The logarithm in ``t_r`` for a round with this number of open rows."""
        delta = 6 * self.question.delta / (math.pi * t) ** 2
        if self.sample_size == "corrected":
            return math.log(2 * self.question.m * n_open / delta)
        return math.log(self.question.m * n_open / (2 * delta))

    def n_samples(self, t: int, n_open: int, rank: int) -> int:
        r"""The length ``t_r`` of a round, by its open rows and their ``rank``."""
        precision = self.precision(t)
        scale = 32 * (1 + 3 * precision) * self.question.known_noise**2 * max(1, rank)
        n = scale / precision**2 * self.log_factor(t, n_open)
        return math.ceil(countable(n))

    def needed_norm(self, t: int, n_open: int) -> float:
        r"""The squared norm at which every mean is off by ``eps_r / 4`` at most."""
        variance = 32 * self.question.known_noise**2 * self.log_factor(t, n_open)
        return self.precision(t) ** 2 / variance

    def prepared(self, belief: ParetoBelief) -> ParetoBelief:
        r"""The belief with the counts of the next round, or with the end."""
        counts = torch.zeros_like(belief.counts)
        close = belief.t > 1 and self.precision(belief.t) <= self.epsilon / 4
        if self._places[belief.open].unique().numel() <= 1 or close:
            return accept_rest(replace(belief, counts=counts))
        counts[belief.open] = self.counts(belief.t, belief.open)
        return replace(belief, counts=counts)

    def counts(self, t: int, rows: Tensor) -> Tensor:
        r"""The counts of measurements of the open ``rows`` in round ``t``."""
        estimator = OptEstimator(self.X[rows], self.rounding)
        n = max(self.n_samples(t, len(rows), estimator.rank), estimator.least)
        if self.sample_size == "printed":
            return estimator.counts(n, self.precision(t))
        needed = self.needed_norm(t, len(rows))
        n = max(n, estimator.rank)
        counts = estimator.counts(n, self.precision(t) / 2)
        while (worst := estimator.worst_norm(counts)) > needed:
            factor = min(2.0, worst / needed)
            n = max(n + 1, math.ceil(n * factor))
            counts = estimator.counts(n, self.precision(t) / 2)
        return counts

    def fit(self, belief: ParetoBelief, used: Observations) -> LinearFit:
        r"""Means of the rows by least squares on their features."""
        return OptEstimator(self.X[belief.open]).fit(belief.open, used)

    def suffices(self, belief: ParetoBelief, fit: LinearFit, n: int) -> bool:
        r"""Yes if every open row is known as precisely as the proof needs."""
        return float(fit.norms.max()) <= self.needed_norm(belief.t, len(fit.norms))

    def eliminate(self, belief: ParetoBelief) -> ParetoBelief:
        r"""Rows whose gaps are beyond the round's precision decided."""
        precision, rows = self.precision(belief.t), belief.open
        # Rows of equal features have equal means: one of them is judged for all.
        _, place = self._places[rows].unique(return_inverse=True)
        first = torch.full_like(place, len(rows)).scatter_reduce(
            0, place, torch.arange(len(rows)), "amin"
        )[: int(place.max()) + 1]
        values = self.values(belief)[first]
        side, gaps = belief.side.clone(), empirical_gaps(values)[place]
        optimal = pareto_mask(values, strict=True)[place]
        side[rows[optimal & (gaps >= precision)]] = ABOVE
        side[rows[~optimal & (gaps >= precision / 2)]] = BELOW
        return replace(belief, t=belief.t + 1, side=side)

    def width(self, belief: ParetoBelief) -> float:
        r"""The width of intervals that hold in all rounds."""
        return math.sqrt(2 * self.log_factor(belief.t, belief.open.numel()))

    def forecast(self, belief: ParetoBelief, told: int) -> Forecast:
        r"""A forecast by a rehearsal, up to the gaps that are still guessed."""
        return rehearsed(self._sizes(belief), told)

    def _sizes(self, belief: ParetoBelief) -> Iterator[int]:
        least = NEAREST * float(belief.estimate.sigma[belief.open].max())
        ahead = replace(self, rounding="pukelsheim")  # the same sizes, in no time
        while bool(belief.counts.any()):
            yield belief.size
            if self.precision(belief.t) <= least:  # no gap is guessed below
                return
            belief = ahead.following(belief)


@dataclass(frozen=True, eq=False)
class GEGEPACStrategy(ParetoStrategy):
    r"""GEGE at a fixed confidence: round ``r`` decides gaps of ``1 / (2 2^r)``.

    The round itself says how many rows are measured (``ask`` returns thousands). The
    widths start at 1/4, so state ``y`` in units in which gaps are below 1. Rows of
    equal features share their side; those of equal means are never told apart: give
    ``epsilon`` or ``max_observations``.

    Args:
        epsilon: The tolerance: every Pareto optimal row is accepted, and no row that
            another one exceeds by more than ``epsilon`` in every output. 0 is exact.
        sample_size: ``"corrected"`` numbers of measurements reach the precision that
            the proof needs; ``"printed"`` are the paper's.
        rounding: ``"pukelsheim"``, ``"quota"``, or ``"regret"``, the paper's ``ROUND``.

    Source:
        Kone et al. (2025), Algorithm 3 and Theorem 3; section 3.3 for ``epsilon``, with
        errata 2 and 6 (papers/kone2025/errata.md): ``log(2 m |A_r| / delta_r)`` and
        precision ``eps_r / 2`` in ``ROUND``. Deviations: efficient apportionment by
        default, which ``t_r`` in the thousands makes exact and fast; in the corrected
        form what the rounded design reaches is computed, and its size is raised until
        it suffices, since for small noise ``t_r`` is below Lemma 1's least size.
    """

    epsilon: float = 0.0
    sample_size: str = "corrected"
    rounding: str = "pukelsheim"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_noise()
        accuracy(self.epsilon)
        one_of(self.sample_size, "sample_size", SAMPLE_SIZES)
        one_of(self.rounding, "rounding", ROUNDINGS)

    @cached_property
    def algorithm(self) -> OwnSamples:
        r"""The rounds of the algorithm."""
        return OwnSamples(self.pool, self.question, self.rule, self.guarantee)

    @cached_property
    def rule(self) -> GEGERule:
        r"""The rule: the length of a round, and its decisions."""
        return GEGERule(
            self.question,
            features_of(self.pool),
            self.epsilon,
            self.sample_size,
            self.rounding,
        )

    @property
    def guarantee(self) -> str:
        r"""The probability claimed and its assumptions, as a sentence."""
        if self.sample_size == "printed":
            return (
                "No confidence is claimed: the printed numbers of measurements miss "
                'the precision of the proof; `sample_size="corrected"` reaches it.'
            )
        tolerance = (
            "and no other row"
            if self.epsilon == 0
            else f"and no row exceeded by more than {self.epsilon:g} in every output"
        )
        return (
            f"With probability {1 - self.delta:g} every Pareto optimal row is accepted "
            f"{tolerance}, once no row is open; assumes outputs linear in the features "
            "and independent sub-Gaussian noise of standard deviation at most "
            f"{self.sigma:g} in each (Kone et al. 2025, Theorem 3)."
        )
