r"""The expected decrease of a loss at target points by observations.

Notation: at a target the posterior of ``f`` is normal with mean ``m`` and standard
deviation ``s``; ``d = m - level``, ``a = d / s`` and ``p = Phi(a)``, the probability
that the target is above the level. Observations that take ``r`` off the variance
``s^2`` leave the variance ``s^2 - r`` and move the mean to a normal value of mean ``m``
and variance ``r``, so that with ``rho = r / s^2`` the ratio afterwards is

    a' = (a + sqrt(rho) Z) / sqrt(1 - rho),  Z standard normal.

Every loss here is a function ``g(p)`` of the side, or a weight times the variance, and
what counts is the *removal*, the loss now minus its expectation afterwards: a function
of ``d``, ``s^2`` and ``r`` alone. It is 0 at ``r = 0``, grows with ``r`` and is the
whole loss at ``r = s^2``.

*Smooth losses.* Write ``g(Phi(x)) = phi(x) e(x)``. Completing the square in the
integral over ``a'`` gives

    E g(p') = sqrt(z) phi(a) E e(sqrt(z) a + sqrt(1 - z) Z),  z = 1 - rho.

The last expectation is a smooth, slowly growing function of ``a`` and ``z``: a
polynomial in both is as good as exact. Its coefficients are computed once. In ``z``
alone they are one short polynomial for each target, which is what makes millions of
pairs of candidates and targets affordable.

Most of millions of pairs have little to do with each other. Where ``rho`` is at most
``LITTLE``, a removal is as good as a polynomial in ``rho`` itself with few terms, whose
sum over targets is a product of a matrix and a vector for each power; only the other
pairs need the longer formula, one by one (``Removal.summed``).

*The number of targets above the level* is not a sum of losses: its expected change has
the absolute value outside the sum over targets, so that targets which one value would
push to different sides cancel. ``volume_changes`` is the sum for given values to come,
and ``mean_absolute`` the expectation of its size.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from numpy.polynomial import Polynomial, chebyshev, hermite_e
from torch import Tensor

from botorch_lse.functional.scores import TINY
from botorch_lse.functional.variance_reduction import excess, single_gain

Smooth = Literal["product", "entropy"]

DEGREE = 12
"""The degree of the polynomials in ``z`` and ``y``: removals are exact to 2e-7."""
FARTHEST = 8.0
"""The deviations beyond which the factor besides ``phi(a)`` is taken as constant.
Every loss is below 1e-13 there."""
DEGREE_A = 40
"""The degree of the polynomials in ``a^2``, up to ``FARTHEST^2``."""
NODES = 80
"""The number of nodes of the Gauss-Hermite rule: coefficients are exact to rounding."""
LITTLE, FEW_POWERS = 0.2, 7
"""The largest ``rho`` of the short series of a removal, and its number of powers.
It is exact to 2e-9."""
IN_CACHE = 2**16
"""The number of (candidate, target) pairs that are taken together.
A loss is a dozen operations on each, which are much faster within a cache."""
FEW_PAIRS = 2**13
"""The number of pairs taken together where each has a dozen coefficients of its own."""
LEAST = 1e-30
"""The least value of ``rho`` and of ``1 - rho``, which moves a removal by 1e-15.
Its square roots have infinite slopes at both ends, and gradients must be finite."""
LEAST_ADDED = 1e-12
"""The share of a removal below which an addition to it does not count."""
ROOT_2PI = math.sqrt(2 * math.pi)
CLOSE, TERMS = 0.7, 28
"""The largest correlation for which a volume change is a series, and its terms.
The rest times the density of the value is below 1e-5 of a target."""
FEW = 2**9
"""The number of closer pairs whose changes are computed together: they fit a cache."""
STEP, END = 0.1, 6.0
"""The step and end of an observation's values at which volume changes are computed.
In standard deviations; further values have a probability of 2e-9."""
SOBOL = 1024
"""The number of values of several observations at which changes are computed."""
STEEPEST = (STEP / 4) ** 2
"""The least share of what is learnt about a target that stays unknown.
A target that would be known exactly jumps between two of the values; this makes a steep
slope of it, wide enough for the grid to notice and narrow enough to shift nothing."""


class Effect(ABC):
    r"""The effect, on ``T`` targets, of one observation at each of some candidates.

    Made once for the targets; then asked for many candidates. What is computed of each
    pair of a candidate and a target is summed over the targets, part by part, and
    ``total`` says what the sums come to.
    """

    @abstractmethod
    def parts(self, covariance: Tensor, observed_var: Tensor) -> Tensor:
        r"""The sums over targets (``C x k``), to which those of others are added.

        Args:
            covariance: ``C x T`` posterior covariances of candidates and targets,
                without gradients; they may be overwritten.
            observed_var: ``C`` variances of an observation at each candidate.
        """

    @abstractmethod
    def total(self, parts: Tensor) -> Tensor:
        r"""The values (``C``) from sums over all targets (``C x k``)."""

    @abstractmethod
    def whole(self, variance: Tensor) -> Tensor:
        r"""The size of what learning each target exactly would do (``T``), at least 0.

        Args:
            variance: ``T``, of the targets, units of ``y`` squared.
        """

    @abstractmethod
    def weighted(self, weight: Tensor) -> Effect:
        r"""The effect on targets that count by weights.

        Args:
            weight: ``T`` factors, at least 0.
        """


class Removal(Effect):
    r"""The decrease of a loss at each of ``T`` targets by observations.

    Also of batches: made once for the targets, then asked for many candidates.
    """

    @abstractmethod
    def of(self, gain: Tensor) -> Tensor:
        r"""The decreases of the loss at the targets (``... x T``).

        Args:
            gain: ``... x T`` reductions of the targets' variances, units of ``y``
                squared.
        """

    @abstractmethod
    def summed(self, gain: Tensor) -> Tensor:
        r"""The sum of ``of(gain)`` over targets, at less cost and without gradients.

        Args:
            gain: ``C x T`` reductions of the variances of ``T`` targets.

        Returns:
            ``C`` sums. A removal in them is a function of its own target and reduction
            alone, whatever stands beside it: sums that are equal stay so up to
            rounding.
        """

    @abstractmethod
    def weighted(self, weight: Tensor) -> Removal:
        r"""The removal of targets that count by weights.

        Args:
            weight: ``T`` factors, at least 0.
        """

    def parts(self, covariance: Tensor, observed_var: Tensor) -> Tensor:
        r"""The summed removals (``C x 1``)."""
        gain = single_gain(covariance, observed_var, out=covariance)
        return self.summed(gain).unsqueeze(-1)

    def total(self, parts: Tensor) -> Tensor:
        r"""The summed removals."""
        return parts.squeeze(-1)

    def whole(self, variance: Tensor) -> Tensor:
        r"""The loss that is left, at each target."""
        return self.of(variance).clamp_min(0.0)


@dataclass(frozen=True, eq=False)
class AddedRemoval(Removal):
    r"""The removal of another loss by observations beside others with open values.

    The whole batch takes the sum of both reductions off the variance, all seen from the
    posterior before any of its values, so that what the last observations add is the
    removal by all minus the removal by the others.

    Args:
        removal: Of the loss, by a whole batch.
        earlier: ``... x T`` reductions of the variances by the others.

    Source:
        Chevalier et al. (2014), section 3.
    """

    removal: Removal
    earlier: Tensor

    @cached_property
    def before(self) -> Tensor:
        r"""The removals by the others (``... x T``), with a difference's rounding."""
        # Where they leave nothing, what is added must be nothing, not rounding.
        return self.removal.of(self.earlier) * (1 + LEAST_ADDED)

    def of(self, gain: Tensor) -> Tensor:
        r"""The additional removal by further reductions, units of the loss."""
        return self.removal.of(self.earlier + gain) - self.before

    def summed(self, gain: Tensor) -> Tensor:
        r"""The additional removal summed; the differences come first."""
        return self.of(gain).sum(dim=-1)

    def weighted(self, weight: Tensor) -> AddedRemoval:
        r"""The removal of targets that count by weights."""
        return AddedRemoval(self.removal.weighted(weight), self.earlier)


# --- variances ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TruncatedRemoval(Removal):
    r"""The removal of variances down to a width that is small enough.

    Args:
        beta: The squared width.
        present: ``... x T``: what is left to remove, units of ``y`` squared.
    """

    beta: float | Tensor
    present: Tensor

    def of(self, gain: Tensor) -> Tensor:
        r"""The reductions, as far as they count."""
        return torch.minimum(self.beta * gain, self.present)

    def summed(self, gain: Tensor) -> Tensor:
        r"""The summed reductions, as far as they count."""
        return torch.cat([self.of(part).sum(dim=-1) for part in pieces(gain)])

    def weighted(self, weight: Tensor) -> TruncatedRemoval:
        r"""The removal of targets that count by weights."""
        return TruncatedRemoval(self.beta * weight, self.present * weight)


def truncated_variance(
    variance: Tensor, beta: float | Tensor = 1.0, eta: float | Tensor = 0.0
) -> TruncatedRemoval:
    r"""The removal of ``max(beta s^2, eta^2)``; with ``eta = 0`` of ``beta s^2``.

    Args:
        variance: ``... x T``, units of ``y`` squared.
        beta: The squared width.
        eta: Widths ``sqrt(beta) s`` below this count as reached; units of ``y``.

    Source:
        Bogunovic et al. (2016), Eq. (3); truncated at ``eta^2`` as there, erratum 1
        (papers/bogunovic2016/errata.md).
    """
    return TruncatedRemoval(beta, excess(variance, beta, eta))


@dataclass(frozen=True, eq=False)
class AnticipatedRemoval(Removal):
    r"""The removal of ``max(beta s^2, eta^2)``, complete where a target is decided.

    The value to come is replaced by its mean, so that means stay and intervals shrink.

    Args:
        variance: ``T``, units of ``y`` squared.
        beta: The squared width.
        eta: Widths ``sqrt(beta) s`` below this count as reached; units of ``y``.
        stays: From ``... x T`` half widths to bools: still undecided.
        weight: ``T`` factors by which targets count; ``None``: all the same.

    Source:
        Bogunovic et al. (2016), Appendix A, "Anticipating changes in M_t"; minuend over
        ``M_{t-1}``, erratum 4 (papers/bogunovic2016/errata.md).
    """

    variance: Tensor
    beta: float
    eta: float
    stays: Callable[[Tensor], Tensor]
    weight: Tensor | None = None

    def of(self, gain: Tensor) -> Tensor:
        r"""The part that no longer counts, units of ``y`` squared."""
        left = self.beta * (self.variance - gain).clamp_min(0.0)
        counted = left.clamp_min(self.eta**2) * self.stays(left.sqrt())
        found = (self.beta * self.variance).clamp_min(self.eta**2) - counted
        return found if self.weight is None else found * self.weight

    def summed(self, gain: Tensor) -> Tensor:
        r"""The part of all targets that no longer counts."""
        return torch.cat([self.of(part).sum(dim=-1) for part in pieces(gain)])

    def weighted(self, weight: Tensor) -> AnticipatedRemoval:
        r"""The removal of targets that count by further weights."""
        return replace(self, weight=_product(self.weight, weight))


@dataclass(frozen=True, eq=False)
class VarianceRemoval(Removal):
    r"""The removal of weighted variances.

    Args:
        weight: ``... x T``.
    """

    weight: Tensor

    def of(self, gain: Tensor) -> Tensor:
        r"""The reductions of the variances, times their weights."""
        return self.weight * gain

    def summed(self, gain: Tensor) -> Tensor:
        r"""The summed weighted reductions."""
        return gain @ self.weight

    def weighted(self, weight: Tensor) -> VarianceRemoval:
        r"""The removal of targets that count by further weights."""
        return VarianceRemoval(self.weight * weight)


def targeted_variance(
    distance: Tensor, variance: Tensor, tau: float = 0.0
) -> VarianceRemoval:
    r"""The removal of ``w s^2``, ``w`` the level's density under ``N(m, s^2 + tau^2)``.

    The weight does not change with the observations. Units of ``y``.

    Args:
        distance: ``... x T`` means minus the level, units of ``y``.
        variance: ``... x T``, units of ``y`` squared.
        tau: How far around the level values matter, units of ``y``.

    Source:
        Picheny et al. (2010), targeted integrated mean square error (tIMSE).
    """
    width = (variance + tau**2).clamp_min(TINY)
    weight = (-0.5 * distance.square() / width).exp() / (2 * math.pi * width).sqrt()
    return VarianceRemoval(weight)


# --- losses of the side ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SmoothRemoval(Removal):
    r"""The removal of a smooth function of ``p``: ``Q(1) - sqrt(z) Q(z)``.

    Args:
        loss: ``"product"`` or ``"entropy"``.
        a: ``... x T``: ``d / s``.
        variance: ``... x T``, at least ``TINY``, units of ``y`` squared.
        weight: ``... x T`` factors by which targets count; ``None``: all the same.
    """

    loss: Smooth
    a: Tensor
    variance: Tensor
    weight: Tensor | None = None

    @cached_property
    def parts_of_each(
        self,
    ) -> tuple[Sequence[Tensor], Sequence[Tensor], Tensor, Tensor]:
        r"""The facts about each target that all candidates need, weights included.

        Returns:
            The coefficients of ``Q`` in powers of ``2 z - 1``; those of a removal up to
            ``LITTLE`` in powers of ``rho`` from the first; the loss now, ``Q(1)``,
            summed as in ``of``: nothing learnt is nothing; and the slopes ``2 / s^2``,
            as ``2 z - 1`` is ``1 - slope gain``.
        """
        u = 2 * (self.a.abs().clamp_max(FARTHEST) / FARTHEST).square() - 1
        basis = [torch.ones_like(u), u]
        while len(basis) <= DEGREE_A:
            basis.append(2 * u * basis[-1] - basis[-2])
        with torch.device("cpu"):  # where the tables are made once for all devices
            table = torch.cat((_table(self.loss), _table_of_little(self.loss)), dim=-1)
        found = torch.stack(basis, dim=-1) @ table.to(self.a.device)
        factor = (-0.5 * self.a.square()).exp() / ROOT_2PI
        if self.weight is not None:
            factor = factor * self.weight
        found = found * factor.unsqueeze(-1)  # ... x T x coefficients of both
        each = [c.contiguous() for c in found.unbind(-1)]
        many, few = each[: DEGREE + 1], each[DEGREE + 1 :]
        return many, few, polynomial(many, torch.ones_like(u)), 2 / self.variance

    def of(self, gain: Tensor) -> Tensor:
        r"""The removals, units of the loss."""
        many, _, present, slope = self.parts_of_each
        return _taken(many, slope, present, gain)

    def summed(self, gain: Tensor) -> Tensor:
        r"""The summed removals; those by little from the short series."""
        _, (first, *others), _, slope = self.parts_of_each
        share, of_little = 0.5 * slope, []
        for part in pieces(gain):
            # Clamping is several times faster than a mask.
            rho = (part * share).clamp_max_(LITTLE)
            total, power = rho @ first, rho * rho
            for coefficient in others:
                total += power @ coefficient
                power.mul_(rho)
            of_little.append(total)
        return torch.cat(of_little) + self._of_much(gain)

    def whole(self, variance: Tensor) -> Tensor:
        r"""The loss now, without the polynomials."""
        density = (-0.5 * self.a.square()).exp() / ROOT_2PI
        found = density * _over_density(self.loss, self.a)
        return found if self.weight is None else found * self.weight

    def weighted(self, weight: Tensor) -> SmoothRemoval:
        r"""The removal of targets that count by further weights."""
        return replace(self, weight=_product(self.weight, weight))

    def _of_much(self, gain: Tensor) -> Tensor:
        r"""The sums of what pairs above ``LITTLE`` remove beyond the series (``C``)."""
        many, few, present, slopes = self.parts_of_each
        T, least = gain.shape[-1], 2 * LITTLE / slopes
        # NumPy finds the few pairs several times faster than torch.
        is_much = gain.cpu().numpy() > least.cpu().numpy()
        pairs = torch.from_numpy(np.flatnonzero(is_much))
        # What the series counts there, which is clamped.
        at_little = LITTLE * polynomial(few, torch.full_like(slopes, LITTLE))
        of_each = torch.stack((*many, slopes, present, at_little))
        found = gain.new_zeros(len(gain))
        for some in pairs.to(gain.device).split(FEW_PAIRS):
            # Whole numbers so small are exact, and their division is slow.
            row = ((some.double() + 0.5) / T).long()
            *gathered, counted = of_each.index_select(1, some - T * row)
            *coefficients, slope, left = gathered
            gains = gain.reshape(-1).index_select(0, some)
            removed = _taken(coefficients, slope, left, gains).sub_(counted)
            found.index_add_(0, row, removed)
        return found


def _taken(
    coefficients: Sequence[Tensor], slope: Tensor, present: Tensor, gain: Tensor
) -> Tensor:
    # Fused and in place where it can be: fresh memory costs more than arithmetic.
    y = (slope * gain).neg_().add_(1.0).clamp(-1.0, 1.0)
    root = (0.5 * y).add_(0.5).clamp_min(LEAST).sqrt()
    value = polynomial(coefficients, y)
    return torch.addcmul(present, root, value, value=-1.0)


def _product(one: Tensor | None, other: Tensor) -> Tensor:
    return other if one is None else one * other


def mutual_information(distance: Tensor, variance: Tensor) -> SmoothRemoval:
    r"""The removal of the side's entropy: mutual information with observations, nats.

    Args:
        distance: ``... x T`` means minus the level, units of ``y``.
        variance: ``... x T``, units of ``y`` squared.

    Source:
        Letham et al. (2022), GlobalMI; Gaussian in place of binary responses.
    """
    a = ratio_to_level(distance, variance)
    return SmoothRemoval("entropy", a, variance.clamp_min(TINY))


@cache
def _table(loss: Smooth) -> Tensor:
    r"""The polynomial ``E e(sqrt(z) a + sqrt(1 - z) Z)``.

    Returns:
        ``DEGREE_A + 1 x DEGREE + 1`` coefficients: Chebyshev polynomials of ``2 (a /
        FARTHEST)^2 - 1`` by powers of ``2 z - 1``.
    """
    u, y = _nodes(DEGREE_A), _nodes(DEGREE)
    return _fitted(_smoothed(loss, u, (y + 1) / 2), u, y) @ to_powers(DEGREE)


@cache
def _table_of_little(loss: Smooth) -> Tensor:
    r"""The removal over ``phi(a)`` as a polynomial in ``rho``, up to ``LITTLE``.

    Returns:
        ``DEGREE_A + 1 x FEW_POWERS`` coefficients: Chebyshev polynomials as in
        ``_table`` by powers of ``rho`` from the first.
    """
    u, y = _nodes(DEGREE_A), _nodes(FEW_POWERS - 1)
    rho = LITTLE * (y + 1) / 2
    left = (1 - rho).sqrt() * _smoothed(loss, u, 1 - rho)
    # Divided by `rho`, so that the removal is exactly 0 where nothing is learnt.
    removal = (_smoothed(loss, u, torch.ones_like(rho)) - left) / rho
    return _fitted(removal, u, y) @ to_powers(FEW_POWERS - 1, (0.0, LITTLE))


def _nodes(degree: int) -> Tensor:
    return torch.from_numpy(chebyshev.chebpts1(degree + 1))


def _smoothed(loss: Smooth, u: Tensor, z: Tensor) -> Tensor:
    r"""The mean ``E e(sqrt(z) a + sqrt(1 - z) Z)``; ``u = 2 (a / FARTHEST)^2 - 1``."""
    points, weights = (torch.from_numpy(x) for x in hermite_e.hermegauss(NODES))
    a = FARTHEST * ((u + 1) / 2).sqrt()
    x = (z.sqrt() * a[:, None]).unsqueeze(-1) + (1 - z).sqrt()[:, None] * points
    return _over_density(loss, x) @ weights / weights.sum()


def _fitted(value: Tensor, u: Tensor, y: Tensor) -> Tensor:
    r"""Coefficients of Chebyshev polynomials from values at ``_nodes`` of both."""
    of_u = torch.from_numpy(chebyshev.chebvander(u.numpy(), len(u) - 1))
    of_y = torch.from_numpy(chebyshev.chebvander(y.numpy(), len(y) - 1))
    return torch.linalg.solve(of_y, torch.linalg.solve(of_u, value).mT).mT


@cache
def to_powers(degree: int, domain: Sequence[float] = (-1.0, 1.0)) -> Tensor:
    r"""The powers' coefficients of Chebyshev polynomials on an interval."""
    found = torch.zeros(degree + 1, degree + 1, dtype=torch.float64)
    for k in range(degree + 1):
        series = chebyshev.Chebyshev([0.0] * k + [1.0], domain=domain)
        powers = series.convert(kind=Polynomial).coef
        found[k, : len(powers)] = torch.from_numpy(powers)
    return found


def _over_density(loss: Smooth, x: Tensor) -> Tensor:
    r"""The ratio ``e(x) = g(Phi(x)) / phi(x)``, without loss of digits in the tails."""
    x = x.abs()
    mills = math.sqrt(math.pi / 2) * torch.special.erfcx(x / math.sqrt(2))
    less = 0.5 * torch.erfc(x / math.sqrt(2)).clamp_min(TINY)
    if loss == "product":
        return mills * (1 - less)
    unlikely = -torch.special.log_ndtr(-x)
    return mills * (unlikely - (1 - less) * torch.log1p(-less) / less)


def expected_misclassification(distance: Tensor, variance: Tensor) -> SmoothRemoval:
    r"""The removal of ``p (1 - p)``, the variance of the side.

    Args:
        distance: ``... x T`` means minus the level, units of ``y``.
        variance: ``... x T``, units of ``y`` squared.

    Source:
        Bect et al. (2012); Chevalier et al. (2014), section 3, which has it as a
        bivariate normal probability, ``Phi2(a, -a; -rho)``.
    """
    a = ratio_to_level(distance, variance)
    return SmoothRemoval("product", a, variance.clamp_min(TINY))


def pieces(gain: Tensor) -> tuple[Tensor, ...]:
    r"""The rows of ``C x T`` numbers in pieces of about ``IN_CACHE``."""
    return gain.split(max(1, IN_CACHE // max(1, gain.shape[-1])))


def polynomial(coefficients: Sequence[Tensor], y: Tensor) -> Tensor:
    r"""The sum ``coefficients[0] + coefficients[1] y + ...`` by Horner's rule."""
    value = coefficients[-1] * y
    for coefficient in reversed(coefficients[1:-1]):
        # In place without a gradient, which needs every factor.
        if y.requires_grad:
            value = (value + coefficient) * y
        else:
            value.add_(coefficient).mul_(y)
    return value.add_(coefficients[0])


def ratio_to_level(distance: Tensor, variance: Tensor) -> Tensor:
    r"""The ratio ``a = d / s``, finite: a known target is far away or on the level."""
    return distance / variance.clamp_min(TINY).sqrt()


# --- volume ---------------------------------------------------------------------------


def values_to_come(q: int) -> Tensor:
    r"""The standardised values at which volume changes are computed (``n x q``).

    One observation takes values on an even grid; several take ``SOBOL`` points of a
    scrambled Sobol sequence, always the same ones, so that the criterion is a smooth
    function.
    """
    if q == 1:
        half = round(END / STEP)
        return STEP * torch.arange(-half, half + 1, dtype=torch.float64).unsqueeze(-1)
    return draw_sobol_normal_samples(q, SOBOL, dtype=torch.float64, seed=0)


def volume_changes(
    distance: Tensor, variance: Tensor, moves: Tensor, values: Tensor
) -> Tensor:
    r"""The change that given observations make in the expected number of targets above.

    ``sum_t [Phi((d + z' w) / sqrt(s^2 - w' w)) - Phi(d / s)]`` for each vector ``z`` of
    standardised values, where ``w`` is by how much each of them moves the mean of the
    target.

    Args:
        distance: ``... x T`` means minus the level, units of ``y``.
        variance: ``... x T``, units of ``y`` squared.
        moves: ``... x q x T``, units of ``y``.
        values: ``n x q``, from ``values_to_come``.

    Returns:
        ``... x n``, a number of targets.
    """
    # Phi(x) = (1 + erf(x / sqrt(2))) / 2, and the halves cancel: half of the time.
    known = moves.square().sum(dim=-2)
    scale = (2 * _variance_left(variance, known)).rsqrt()
    before = torch.erf(ratio_to_level(distance, variance) * 0.5**0.5) / 2
    start, slopes = (distance * scale).unsqueeze(-2), moves * scale.unsqueeze(-2)
    start, slopes = start.flatten(0, -3), slopes.flatten(0, -3)
    # In pieces that stay in a cache, one after the other: the large array of all
    # values is not made.
    width = max(1, IN_CACHE // len(values))
    pairs = zip(start.split(width, dim=-1), slopes.split(width, dim=-1), strict=True)
    after = -before.sum(dim=-1, keepdim=True)
    for first, slope in pairs:
        rows = max(1, IN_CACHE // (len(values) * slope.shape[-1]))
        each = zip(first.split(rows), slope.split(rows), strict=True)
        parts = [_normal_sums(one, values, own) for one, own in each]
        after = after + torch.cat(parts).reshape(*moves.shape[:-2], len(values))
    return after


def _normal_sums(start: Tensor, values: Tensor, slopes: Tensor) -> Tensor:
    r"""The sums over ``T`` of ``erf(start + z' slopes) / 2`` (``b x n``).

    Args:
        start: ``b x 1 x T``.
        values: ``n x q``, the ``z``.
        slopes: ``b x q x T``.
    """
    if values.shape[-1] == 1:  # products of n x 1 with 1 x T matrices are slow
        shifted = torch.addcmul(start, values, slopes)
    else:
        shifted = torch.baddbmm(start, values.expand(len(slopes), -1, -1), slopes)
    # In place without a gradient, which needs the argument.
    found = shifted.erf() if shifted.requires_grad else shifted.erf_()
    return found.sum(dim=-1) / 2


def _change(distance: Tensor, variance: Tensor, shift: Tensor, known: Tensor) -> Tensor:
    r"""The change of the probability of a target to be above.

    Args:
        distance: Means minus the level, units of ``y``.
        variance: Variances, units of ``y`` squared.
        shift: By how much the means move.
        known: By how much the variances shrink. All have shapes that go together.
    """
    # Of the less likely side, whose probability has all its digits.
    side = torch.where(distance < 0, 1.0, -1.0).to(distance)
    before = torch.special.ndtr(-ratio_to_level(distance, variance).abs())
    scale = side / _variance_left(variance, known).sqrt()
    after = torch.special.ndtr(torch.addcmul(distance * scale, shift, scale))
    return (after - before) * side


def _variance_left(variance: Tensor, known: Tensor) -> Tensor:
    return torch.maximum(variance - known, STEEPEST * known).clamp_min(TINY)


def mean_absolute(changes: Tensor, values: Tensor) -> Tensor:
    r"""The expectation of ``abs(change)`` over the values to come.

    For one observation by the trapezoidal rule with a correction where the change has
    another sign at the next value. The rule is exact to rounding for smooth integrands,
    and the error of a corner between two nodes is the second Bernoulli polynomial of
    its place. What is left is at most 1e-3 of the result, or 0.015 for each target
    that would be known exactly. For several observations the plain mean, within a few
    percent where targets are up to two deviations from the level, and rough beyond.

    Args:
        changes: ``... x n``.
        values: ``n x q``, from ``values_to_come``.

    Returns:
        ``...``

    Source:
        The Euler-Maclaurin formula on both sides of the corner.
    """
    if values.shape[-1] > 1:
        return changes.abs().mean(dim=-1)
    weighted = changes * ((-0.5 * values[:, 0].square()).exp() / ROOT_2PI)
    size, turns = weighted.abs(), weighted[..., 1:] * weighted[..., :-1] < 0
    left, right = size[..., :-1], size[..., 1:]
    both = torch.where(turns, left + right, 1.0)
    corner = torch.where(turns, both / 6 - left * right / both, 0.0)
    return STEP * (size.sum(dim=-1) + corner.sum(dim=-1))


def mean_square(changes: Tensor, values: Tensor) -> Tensor:
    r"""The expectation of ``change^2`` over the values to come.

    For one observation by the trapezoidal rule, which is exact to rounding here.

    Args:
        changes: ``... x n``.
        values: ``n x q``, from ``values_to_come``.

    Returns:
        ``...``
    """
    if values.shape[-1] > 1:
        return changes.square().mean(dim=-1)
    density = (-0.5 * values[:, 0].square()).exp() / ROOT_2PI
    return STEP * (changes.square() @ density)


@dataclass(frozen=True, eq=False)
class VolumeSeries(Effect):
    r"""The ``volume_changes`` by one observation at each of many candidates, cheaply.

    With the correlation ``rho`` of observation and target, ``He_k`` the probabilists'
    Hermite polynomials and ``z`` the standardised value to come,

        Phi((a + rho z) / sqrt(1 - rho^2)) - Phi(a)
            = phi(a) sum_{k >= 1} (-1)^(k - 1) rho^k He_{k - 1}(a) He_k(z) / k!,

    so that the sums over targets do not depend on ``z``. Pairs closer than ``CLOSE``,
    where the series converges slowly, are computed one by one.

    Args:
        distance: ``T`` means minus the level, units of ``y``.
        variance: ``T``, units of ``y`` squared.
        coefficients: ``TERMS`` tensors ``T``: what multiplies powers of ``rho`` and
            ``He_k(z) / sqrt(k!)``.
        weight: ``T`` factors by which targets count; ``None``: all the same.
        is_square: Whether the total is the mean of the square of the change, not of
            its size.

    Source:
        Mehler's formula, integrated over ``a``.
    """

    distance: Tensor
    variance: Tensor
    coefficients: tuple[Tensor, ...]
    weight: Tensor | None = None
    is_square: bool = False

    def weighted(self, weight: Tensor) -> VolumeSeries:
        r"""The effect on targets that count by weights."""
        coefficients = tuple(c * weight for c in self.coefficients)
        weight = _product(self.weight, weight)
        return replace(self, coefficients=coefficients, weight=weight)

    def parts(self, covariance: Tensor, observed_var: Tensor) -> Tensor:
        r"""The changes at the values to come (``C x n``)."""
        # How far a standard deviation of each value moves the means.
        moves = covariance.div_(observed_var.sqrt().unsqueeze(-1))
        return torch.cat([self.of(part) for part in pieces(moves)])

    def total(self, parts: Tensor) -> Tensor:
        r"""The expected size, or square, of the change."""
        mean = mean_square if self.is_square else mean_absolute
        return mean(parts, values_to_come(1).to(parts))

    def whole(self, variance: Tensor) -> Tensor:
        r"""The ``p (1 - p)``, half the mean size of a target's own change."""
        a = ratio_to_level(self.distance, variance)
        found = torch.special.ndtr(a) * torch.special.ndtr(-a)
        return found if self.weight is None else found * self.weight

    def of(self, moves: Tensor) -> Tensor:
        r"""The changes of the number above at ``values_to_come(1)`` (``C x n``).

        Args:
            moves: ``C x T``: by how much a standard deviation of the value at each
                candidate moves the means of the targets, units of ``y``.
        """
        values = values_to_come(1).to(moves)
        rho = moves / self.variance.clamp_min(TINY).sqrt()
        is_close = rho.abs() > CLOSE
        rho = rho.masked_fill(is_close, 0.0)
        power, sums = rho.clone(), []
        for coefficient in self.coefficients:
            sums.append(power @ coefficient)
            # In place without a gradient, which needs every power.
            power = power * rho if rho.requires_grad else power.mul_(rho)
        changes = torch.stack(sums, dim=-1) @ terms_to_come(len(sums)).to(moves)
        for pairs in is_close.nonzero().split(FEW):
            row, target = pairs.unbind(-1)
            move = moves[row, target].unsqueeze(-1)  # n x 1, beside 1 x values
            each = _change(
                self.distance[target].unsqueeze(-1),
                self.variance[target].unsqueeze(-1),
                move * values.mT,
                move.square(),
            )
            if self.weight is not None:
                each = each * self.weight[target, None]
            changes.index_add_(0, row, each)
        return changes


def volume_series(
    distance: Tensor, variance: Tensor, is_square: bool = False
) -> VolumeSeries:
    r"""The ``VolumeSeries`` of targets at some distances from the level.

    Args:
        distance: ``T`` means minus the level, units of ``y``.
        variance: ``T``, units of ``y`` squared.
        is_square: See ``VolumeSeries``.
    """
    # Beyond, the density is 0 in floating point, but powers of the ratio overflow.
    a = ratio_to_level(distance, variance).clamp(-40.0, 40.0)
    density = (-0.5 * a.square()).exp() / ROOT_2PI
    coefficients = tuple(
        -density * value / math.sqrt(k) * (-1) ** k
        for k, value in enumerate(hermite(a, TERMS), start=1)
    )
    return VolumeSeries(distance, variance, coefficients, is_square=is_square)


@cache
def terms_to_come(n: int) -> Tensor:
    r"""The terms ``He_k(z) / sqrt(k!)``, ``k`` from 1 to ``n`` (``n x values``)."""
    with torch.device("cpu"):  # made once for all devices
        return torch.stack(hermite(values_to_come(1)[:, 0], n + 1)[1:])


def hermite(x: Tensor, n: int) -> list[Tensor]:
    r"""The probabilists' Hermite polynomials ``He_k(x) / sqrt(k!)``, ``k < n``."""
    found = [torch.ones_like(x), x]
    for k in range(1, n - 1):
        found.append((x * found[k] - math.sqrt(k) * found[k - 1]) / math.sqrt(k + 1))
    return found
