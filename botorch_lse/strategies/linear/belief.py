r"""What strategies on linear features believe: least squares on all measurements."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_lse.confidence.anytime import (
    OUTSIDE,
    AnytimeWidth,
    BatchMartingale,
    Information,
    StitchedWidth,
)
from botorch_lse.confidence.classify import BELOW, UNDECIDED
from botorch_lse.confidence.regions import Regions, warn_if_empty
from botorch_lse.estimators import ArmStatistics
from botorch_lse.problem import Observations, Pool

ALARM = 1e-3
"""Probability of a false alarm along a whole run, each of the two tests."""
ROUNDING = 1e-9
"""Share of the sum of squares below which a difference of two sums is rounding."""


class NoiseWarning(BotorchWarning):
    r"""The noise is larger or has heavier tails than stated: no guarantee holds."""


# --- items ----------------------------------------------------------------------------


def features_of(pool: Pool) -> Tensor:
    r"""``N x d``: the pool's features, else its inputs."""
    return pool.X if pool.features is None else pool.features


def check_items(X: Tensor, items: Tensor, to_span: Tensor) -> None:
    r"""Refuse items that no measurement predicts.

    Args:
        X: ``N x d`` features of what can be measured.
        items: ``T x d`` features of what is to be decided.
        to_span: ``d x h``, the map onto the span of ``X``.

    Raises:
        ValueError: If all features are zero, or an item is outside their span.
        BotorchTensorDimensionError: If the items have other features.
    """
    if not bool((X != 0).any()):
        raise ValueError(
            "Expected a feature other than zero in `pool`, but all are zero."
        )
    if items.shape[1] != X.shape[1]:
        raise BotorchTensorDimensionError(
            f"Expected `targets` with {X.shape[1]} features as `pool`, but got "
            f"{items.shape[1]}."
        )
    basis = torch.linalg.qr(to_span).Q
    missing = (items - items @ basis @ basis.mT).norm(dim=-1)
    outside = missing > OUTSIDE * items.norm(dim=-1)
    if bool(outside.any()):
        raise ValueError(
            "Expected `targets` in the span of the pool's features, but item "
            f"{int(outside.nonzero()[0])} is not: no measurement of the pool predicts "
            "it. Leave it out, or add rows to the pool."
        )


# --- what is known --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sums:
    r"""Weighted sums over all measurements; the rows are ``z = phi / sd``.

    Args:
        counts: ``N`` int64, how often each row was measured.
        V: ``h x h``, ``sum z z'``.
        moment: ``h x m``, ``sum z y / sd``.
        squares: ``m``, ``sum (y / sd)^2``, a mean of ``k`` counting ``k`` times.
        entries: How many values came.
    """

    counts: Tensor
    V: Tensor
    moment: Tensor
    squares: Tensor
    entries: int

    @classmethod
    def empty(cls, N: int, h: int, m: int) -> Sums:
        r"""No measurement of ``N`` rows with ``h`` features and ``m`` outputs."""
        moment = torch.zeros(h, m, dtype=torch.float64)
        V = torch.zeros(h, h, dtype=torch.float64)
        counts = torch.zeros(N, dtype=torch.long)
        return cls(counts, V, moment, torch.zeros(m, dtype=torch.float64), 0)

    @classmethod
    def of(
        cls, Phi: Tensor, noise_var: Tensor, rows: Tensor, y: Tensor, each: Tensor
    ) -> Sums:
        r"""From measurements.

        Args:
            Phi: ``N x h`` features.
            noise_var: ``N`` squared noise scales, fixed before these values were seen.
            rows: ``n`` rows measured.
            y: ``n x m`` values, some of them means.
            each: ``n``, how many measurements each value is the mean of.
        """
        weights = (each / noise_var[rows]).unsqueeze(-1)
        Z = Phi[rows]
        counts = torch.zeros(len(Phi), dtype=torch.long).index_add(0, rows, each)
        return cls(
            counts,
            (weights * Z).mT @ Z,
            Z.mT @ (weights * y),
            (weights * y.square()).sum(dim=0),
            len(rows),
        )

    def add(self, other: Sums) -> Sums:
        r"""The sums over the measurements of both."""
        return Sums(
            self.counts + other.counts,
            self.V + other.V,
            self.moment + other.moment,
            self.squares + other.squares,
            self.entries + other.entries,
        )

    @property
    def n(self) -> int:
        r"""How many measurements were made in all."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class BurnIn:
    r"""The measurements from which the noise is estimated.

    Args:
        stage: 0 and 1 while it lasts, 2 after it.
        first: The measurements of the first stage, for the mean.
        second: Those of the second, for the variances.
    """

    stage: int
    first: ArmStatistics
    second: ArmStatistics


@dataclass(frozen=True, eq=False)
class LinearBelief:
    r"""Where the run stands; ``T`` items, ``m`` outputs, ``h`` features.

    Args:
        sums: The sums over all measurements.
        noise_var: ``N`` squared noise scales of the measurements that come.
        Z: ``T x h`` features of the items.
        side: ``T`` codes.
        lower: ``T x m``, the largest lower ends so far, units of ``y``; where intervals
            contradict each other, those of the current ones.
        upper: ``T x m``, the smallest upper ends so far, likewise.
        information: ``V`` seen from the first design.
        width: The width of all directions.
        martingale: The items' batch estimates, where they are used.
        candidates: ``T`` bools: items that may be the maximiser.
        margins: ``T x 3``: for several outputs how far an item is from being
            dominated, the width of this, and its standard deviation.
        contradicted: ``T x m`` bools: intervals that have nothing in common.
        alarm: The first sign that the noise is not what was stated, as a clause;
            ``None`` if there was none.
        burn_in: The burn-in's measurements; ``None`` where the noise is known.
    """

    sums: Sums
    noise_var: Tensor
    Z: Tensor
    side: Tensor
    lower: Tensor
    upper: Tensor
    information: Information
    width: StitchedWidth
    martingale: BatchMartingale | None
    candidates: Tensor
    margins: Tensor
    contradicted: Tensor
    alarm: str | None = None
    burn_in: BurnIn | None = None

    def reopened(self) -> LinearBelief:
        r"""The same estimates with nothing decided."""
        side = torch.full_like(self.side, UNDECIDED)
        return replace(self, side=side, candidates=side == UNDECIDED)

    @cached_property
    def theta(self) -> Tensor:
        r"""``h x m`` least squares on all measurements."""
        return self.information.solve(self.sums.moment)

    @cached_property
    def mean(self) -> Tensor:
        r"""``T x m`` estimates, units of ``y``."""
        return self.Z @ self.theta

    @cached_property
    def sigma(self) -> Tensor:
        r"""``T`` standard deviations; infinite where an item is not determined."""
        return self.information.squared_norms(self.Z).sqrt()

    @cached_property
    def open(self) -> Tensor:
        r"""The undecided items' numbers, ascending."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @cached_property
    def left(self) -> Tensor:
        r"""The numbers of the items that are not below."""
        return (self.side != BELOW).nonzero().view(-1)

    def pair_widths(self, i: Tensor, j: Tensor, factor: float) -> Tensor:
        r"""``len(i) x len(j)`` widths of ``f(i) - factor f(j)``."""
        first, second = self.Z[i], factor * self.Z[j]
        return self.width.squared_differences(self.information, first, second).sqrt()


@dataclass(frozen=True, eq=False)
class Questions:
    r"""What is undecided, as directions with the gaps that decide them.

    Args:
        vectors: ``Q x h`` directions.
        gaps: ``Q`` estimated distances from being decided the other way, at least 0,
            units of ``y``; ``None``: nothing is known yet.
    """

    vectors: Tensor
    gaps: Tensor | None = None


# --- rounds ---------------------------------------------------------------------------


def first_belief(Z: Tensor, noise_var: Tensor, widths: AnytimeWidth) -> LinearBelief:
    r"""Nothing was measured.

    Args:
        Z: ``T x h`` features of the items.
        noise_var: ``N`` squared noise scales.
        widths: Fixed for the whole run.
    """
    (T, h), m = Z.shape, widths.m
    unknown = torch.full((T, m), torch.inf, dtype=torch.float64)
    sums = Sums.empty(len(noise_var), h, m)
    martingale = None
    if widths.uses_martingales:
        martingale = BatchMartingale.start(Z, widths.W, m)
    side = torch.full((T,), UNDECIDED, dtype=torch.int8)
    return LinearBelief(
        sums,
        noise_var,
        Z,
        side,
        -unknown,
        unknown,
        Information.of(sums.V, widths.W),
        widths.stitched(),
        martingale,
        side == UNDECIDED,
        torch.tensor([0.0, torch.inf, torch.inf]).double().repeat(T, 1),
        torch.zeros(T, m, dtype=torch.bool),
    )


def with_batch(
    belief: LinearBelief, Phi: Tensor, new: Observations, widths: AnytimeWidth
) -> LinearBelief:
    r"""Estimates after a batch, with the first alarm if its noise is not as stated.

    Args:
        belief: Before.
        Phi: ``N x h`` features of what can be measured.
        new: The batch.
        widths: Fixed for the whole run.
    """
    batch, each = _sums(belief, Phi, new)
    rows, y = new.indices, new.y.view(len(new), -1)
    sums = belief.sums.add(batch)
    information = Information.of(sums.V, widths.W)
    belief = replace(belief, sums=sums, information=information)
    roots = (each / belief.noise_var[rows]).sqrt()
    if belief.alarm is not None:
        return belief
    found = noise_alarm(belief, rows, *standardised(belief, Phi, rows, y, roots))
    return replace(belief, alarm=found)


def with_martingale(
    belief: LinearBelief, Phi: Tensor, new: Observations, widths: AnytimeWidth
) -> LinearBelief:
    r"""Before ``with_batch``, for a batch whose rows were fixed before any value of it.

    What was told otherwise must not enter: rows that came back because of the values
    of others make the batch's least squares biased.
    """
    if belief.martingale is None:
        return belief
    batch, _ = _sums(belief, Phi, new)
    alone = Information.of(batch.V, widths.W)
    martingale = belief.martingale.add(belief.Z, alone, batch.moment)
    return replace(belief, martingale=martingale)


def _sums(belief: LinearBelief, Phi: Tensor, new: Observations) -> tuple[Sums, Tensor]:
    rows, y = new.indices, new.y.view(len(new), -1)
    each = torch.ones_like(rows) if new.counts is None else new.counts
    return Sums.of(Phi, belief.noise_var, rows, y, each), each


def intersected(
    belief: LinearBelief, widths: AnytimeWidth, delta: float
) -> LinearBelief:
    r"""With the current intervals, warning if they contradict earlier ones.

    Then nothing that earlier intervals decided is believed any more: all items are
    judged anew.

    Args:
        belief: With the estimates.
        widths: Fixed for the whole run.
        delta: The strategy's failure probability, for the warning.
    """
    squared = belief.width.squared(belief.information, belief.Z)
    ends = widths.interval(belief.mean, squared, belief.martingale)
    lower = torch.maximum(belief.lower, ends[0])
    upper = torch.minimum(belief.upper, ends[1])
    newly = (lower > upper) & ~belief.contradicted
    contradicted = belief.contradicted | newly
    lower = torch.where(contradicted, ends[0], lower)
    upper = torch.where(contradicted, ends[1], upper)
    for c in range(widths.m):
        found = Regions(
            lower[:, c],
            upper[:, c],
            belief.mean[:, c],
            belief.sigma,
            contradicted=newly[:, c],
        )
        claim = f"at all times, with probability {1 - delta:g}"
        warn_if_empty(found, claim, "f not linear in the features")
    belief = replace(belief, lower=lower, upper=upper, contradicted=contradicted)
    return belief.reopened() if bool(contradicted.any()) else belief


# --- signs that the noise is not what was stated --------------------------------------


def noise_alarm(
    belief: LinearBelief, rows: Tensor, residuals: Tensor, reach: Tensor
) -> str | None:
    r"""Which residual is larger than sub-Gaussian noise of the stated scale allows.

    Two tests, each with a false alarm with probability 0.001 at most along the run: a
    single residual beyond its own confidence width by more than ``sqrt(2 log(2 m n (n +
    1) / 0.001))`` scales, and the residual sum of squares of ``n`` values above ``n + 2
    sqrt(n x) + 2 x``, ``x = log(m n (n + 1) / 0.001)``.

    Args:
        belief: After the values were learnt.
        rows: ``n`` rows just measured.
        residuals: ``n x m``, in noise scales of the values.
        reach: ``n``, the widths of the estimates at these rows, in the same scales.

    Returns:
        A clause with the row of the largest residual; ``None`` if there is no sign.

    Source:
        The sum of squares: Hsu, Kakade and Zhang (2012), Theorem 1; least squares makes
        it smaller than that of the noise.
    """
    sums = belief.sums
    n, m = sums.entries, len(sums.squares)
    tests = math.log(m * n * (n + 1) / ALARM)
    excess = residuals.abs().amax(dim=-1) - reach
    worst = int(excess.argmax())
    spread = sums.squares - (belief.theta * sums.moment).sum(dim=0)
    spread = spread - ROUNDING * sums.squares
    limit = n + 2 * math.sqrt(n * tests) + 2 * tests
    if float(excess[worst]) > math.sqrt(2 * (tests + math.log(2))):
        return (
            f"a value of row {int(rows[worst])} is "
            f"{float(residuals[worst].abs().max()):.1f} noise scales off the estimate"
        )
    if bool((spread > limit).any()):
        largest = float(spread.max()) / n
        return (
            f"the mean squared residual is {largest:.2f} squared noise scales, last at "
            f"row {int(rows[worst])}"
        )
    return None


def contradicted(alarm: str) -> str:
    r"""What a guarantee says after an alarm."""
    return (
        f"The data contradict the stated noise ({alarm}): the guarantee does not hold."
    )


def warn_of(alarm: str) -> None:
    r"""Say that the noise is not what was stated, and what to do.

    Warns:
        NoiseWarning: Always.
    """
    warnings.warn(
        f"{contradicted(alarm)} The noise is larger or has heavier tails than stated, "
        "or f is not linear in the features. State a larger `noise_std`, or use the "
        "PAC strategies, which need no more than a variance.",
        NoiseWarning,
        stacklevel=2,
    )


def standardised(
    belief: LinearBelief, Phi: Tensor, rows: Tensor, y: Tensor, roots: Tensor
) -> tuple[Tensor, Tensor]:
    r"""Residuals, and the estimates' widths, in noise scales of the values.

    Args:
        belief: After the values were learnt.
        Phi: ``N x h`` features.
        rows: ``n`` rows.
        y: ``n x m`` values.
        roots: ``n``, one over the noise scale of each value.
    """
    residuals = roots.unsqueeze(-1) * (y - Phi[rows] @ belief.theta)
    squared = belief.width.squared(belief.information, Phi[rows])
    return residuals, roots * squared.sqrt().nan_to_num(posinf=torch.inf)
