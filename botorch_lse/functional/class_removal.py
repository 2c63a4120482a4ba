r"""The expected decrease of the doubt about a point's class by observations.

The doubt about a class with probabilities ``p_1, ..., p_K`` is ``(1 - sum_k p_k^2) /
2``, half the probability that two independent draws from the posterior have other
classes; for a region, inside or outside, it is ``p (1 - p)``. An observation changes
the probabilities and keeps their expectations, so that what it is expected to remove is
half the sum of the variances of the probabilities to come.

*A conjunction.* Where one class is a product of sets, one for each output, as ``A & B``
is, its probability is the product of the ``q_j``, the probabilities of the sets, and

    Var prod q_j' = prod (Var q_j' + q_j^2) - prod q_j^2,

which takes one step for each output. What follows serves all other classes.

The probabilities are linear in the ``P_ji = P(f_j > t_i)`` of each output
(``functional/cells.py``), and what is learnt of one output is independent of what is
learnt of the others. So with the derivatives ``D_S`` by one ``P_ji`` of each output in
a set ``S``, all of them at the present probabilities,

    Var p_k' = sum over S, i and l of D_S[k, i] D_S[k, l] prod_{j in S} V_j[i, l],

where ``V_j[i, l]`` is the covariance of ``P_ji'`` and ``P_jl'``. With two outputs that
have a level each these are three terms. No term is the small difference of large ones.

*One output.* Two independent draws of the output from the posterior to come are, seen
from now, bivariate normal with the correlation ``rho = r / s^2``, the share of the
variance that is removed. So ``V[i, l] = Phi2(a_i, a_l; rho) - Phi(a_i) Phi(a_l)``, with
``a = (mean - level) / s``; the derivative by ``rho`` is the bivariate density, which
gives

    V[i, l] = 1 / (2 pi) int_0^{asin rho} exp(-(a_i - a_l)^2 / (4 (1 - sin t))
                                              - (a_i + a_l)^2 / (4 (1 + sin t))) dt.

For ``i = l`` it is what ``lookahead.py`` removes from ``p (1 - p)``. For each target
the integral is as good as a polynomial in ``asin rho``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from numpy.polynomial import chebyshev, legendre
from torch import Tensor

from botorch_lse.functional.cells import Cells
from botorch_lse.functional.lookahead import (
    Removal,
    expected_misclassification,
    pieces,
    polynomial,
    ratio_to_level,
    to_powers,
)
from botorch_lse.functional.scores import TINY

DEGREE = 20
"""The degree of the polynomials in the angle.
Covariances are exact to 1e-6; to 2e-5 if levels nearly coincide and all is learnt."""
NODES = 24
"""The number of nodes of the Gauss-Legendre rule behind their coefficients."""


@dataclass(frozen=True, eq=False)
class CovarianceRemoval(Removal):
    r"""The covariance of ``P(f > t)`` and ``P(f > u)`` after observations.

    Args:
        variance: ``... x T``, at least ``TINY``.
        powers: ``DEGREE + 1`` tensors ``... x T``: the covariance over the angle in
            powers of the angle, scaled to [-1, 1].
    """

    variance: Tensor
    powers: tuple[Tensor, ...]

    def of(self, gain: Tensor) -> Tensor:
        r"""The covariances (``... x T``), 0 where nothing is learnt."""
        angle = (gain / self.variance).clamp(0.0, 1.0).asin()
        value = polynomial(self.powers, angle * (4 / math.pi) - 1)
        return value.mul_(angle)

    def summed(self, gain: Tensor) -> Tensor:
        r"""The summed covariances."""
        return torch.cat([self.of(part).sum(dim=-1) for part in pieces(gain)])

    def weighted(self, weight: Tensor) -> CovarianceRemoval:
        r"""The covariances times weights."""
        return replace(self, powers=tuple(c * weight for c in self.powers))


def covariance_removal(
    first: Tensor, second: Tensor, variance: Tensor
) -> CovarianceRemoval:
    r"""The removal by the covariance of two levels of one output; see this module.

    Args:
        first: ``... x T`` means minus the one level, units of ``y``.
        second: ``... x T`` means minus the other one.
        variance: ``... x T``, units of ``y`` squared.

    Source:
        Drezner and Wesolowsky (1990), the bivariate normal integral by angles.
    """
    a, b = ratio_to_level(first, variance), ratio_to_level(second, variance)
    # Far from both levels nothing is left; squares stay finite.
    a, b = a.clamp(-1e8, 1e8), b.clamp(-1e8, 1e8)
    y = torch.from_numpy(chebyshev.chebpts1(DEGREE + 1)).to(a)
    nodes, weights = (torch.from_numpy(x).to(a) for x in legendre.leggauss(NODES))
    angles = (y + 1) * (math.pi / 4)
    sine = (angles.unsqueeze(-1) * ((nodes + 1) / 2)).sin()  # D x n
    apart = (a - b).square()[..., None, None] / 4
    along = (a + b).square()[..., None, None] / 4
    density = (-apart / (1 - sine) - along / (1 + sine)).exp()
    mean = density @ weights / 2  # ... x D: the integral over the angle
    basis = torch.from_numpy(chebyshev.chebvander(y.cpu().numpy(), DEGREE)).to(a)
    coefficients = (mean / (2 * math.pi)) @ torch.linalg.inv(basis).mT
    powers = (coefficients @ to_powers(DEGREE).to(a)).unbind(-1)
    each = tuple(c.contiguous() for c in powers)
    return CovarianceRemoval(variance.clamp_min(TINY), each)


@dataclass(frozen=True, eq=False)
class ClassRemoval:
    r"""The decrease of the doubt about the class by observations of all outputs.

    Args:
        covariances: The output and the removal of each pair of its levels.
        terms: ``T`` weights, and which of the covariances they multiply.
    """

    covariances: tuple[tuple[int, Removal], ...]
    terms: tuple[tuple[Tensor, tuple[int, ...]], ...]

    def of(self, gains: Sequence[Tensor]) -> Tensor:
        r"""The removals at targets by candidates (``C x T``).

        Args:
            gains: For each output ``C x T`` reductions of its variance at the targets.
        """
        known = [removal.of(gains[j]) for j, removal in self.covariances]
        total = gains[0].new_zeros(())
        for weight, members in self.terms:
            product = known[members[0]]
            for member in members[1:]:
                product = product * known[member]
            total = total + product * weight
        return total


@dataclass(frozen=True, eq=False)
class ProductRemoval:
    r"""The decrease of the doubt about a conjunction by observations of all outputs.

    Args:
        factors: For each output that matters its number, the ``T`` probabilities of
            its set, and the removals whose weighted sum is what their variance will be.
    """

    factors: tuple[tuple[int, Tensor, tuple[Removal, ...]], ...]

    def of(self, gains: Sequence[Tensor]) -> Tensor:
        r"""The removals of ``ClassRemoval.of``, without differences of large terms."""
        total, known = gains[0].new_zeros(()), torch.ones_like(self.factors[0][1])
        for j, probability, removals in self.factors:
            variance = removals[0].of(gains[j])
            for removal in removals[1:]:
                variance = variance + removal.of(gains[j])
            square = probability.square()
            total = torch.addcmul(total * (variance + square), variance, known)
            known = known * square
        return total


def class_removal(
    cells: Cells, mean: Sequence[Tensor], variance: Sequence[Tensor]
) -> ClassRemoval | ProductRemoval:
    r"""The removal of the doubt about the class, ``(1 - sum_k p_k^2) / 2``.

    Args:
        cells: The class of each cell, for ``T`` targets.
        mean: For each output ``T`` posterior means.
        variance: For each output ``T`` posterior variances.
    """
    sides = cells.factors()
    if sides is not None:
        return _product_removal(cells, sides, mean, variance)
    numbers: dict[tuple[int, int, int], int] = {}
    covariances: list[tuple[int, Removal]] = []
    for j in range(len(cells.levels)):
        for (i, k), removal in _of_levels(cells, j, mean[j], variance[j]).items():
            numbers[j, i, k] = numbers[j, k, i] = len(covariances)
            covariances.append((j, removal))
    weights: dict[tuple[int, ...], Tensor] = {}
    for outputs, slopes in cells.slopes(mean, [v.sqrt() for v in variance]).items():
        places = [range(cells.levels[j].shape[1]) for j in outputs]
        every = list(itertools.product(*places))
        for first, second in itertools.product(every, every):
            triples = zip(outputs, first, second, strict=True)
            members = tuple(numbers[triple] for triple in triples)
            weight = (_at(slopes, first) * _at(slopes, second)).sum(dim=-1) / 2
            weights[members] = weights.get(members, 0.0) + weight
    return ClassRemoval(
        tuple(covariances), tuple((w, members) for members, w in weights.items())
    )


def _product_removal(
    cells: Cells,
    sides: Sequence[Tensor],
    mean: Sequence[Tensor],
    variance: Sequence[Tensor],
) -> ProductRemoval:
    r"""The ``class_removal`` of a product of sets; for ``sides`` see ``Cells``."""
    shares = cells.shares(mean, [v.sqrt() for v in variance])
    factors = []
    for j, (side, share) in enumerate(zip(sides, shares, strict=True)):
        probability, step = (share * side).sum(dim=-1), side.diff(dim=-1)
        removals = tuple(
            removal.weighted((1 if i == k else 2) * step[:, i] * step[:, k])
            for (i, k), removal in _of_levels(cells, j, mean[j], variance[j]).items()
        )
        if removals:
            factors.append((j, probability, removals))
    return ProductRemoval(tuple(factors))


def _of_levels(
    cells: Cells, output: int, mean: Tensor, variance: Tensor
) -> dict[tuple[int, int], Removal]:
    r"""The covariance of each pair of levels of an output, the first not below."""
    found: dict[tuple[int, int], Removal] = {}
    distance = [mean - level for level in cells.levels[output].mT]
    for i, own in enumerate(distance):
        for k, other in enumerate(distance[:i]):
            found[i, k] = covariance_removal(own, other, variance)
        found[i, i] = expected_misclassification(own, variance)
    return found


def _at(slopes: Tensor, levels: Sequence[int]) -> Tensor:
    r"""The derivatives by one level of each output (``T x K``)."""
    for level in levels:
        slopes = slopes[:, :, level]
    return slopes


def level_weights(
    cells: Cells, mean: Sequence[Tensor], variance: Sequence[Tensor]
) -> list[Tensor]:
    r"""The weights of levels: how much the class depends on each (``T x L_j``).

    That is half the sum of the squared derivatives of the probabilities of the classes
    by the probability to be above the level: 1 where nothing else matters.

    Args:
        cells: The class of each cell, for ``T`` targets.
        mean: For each output ``T`` posterior means.
        variance: For each output ``T`` posterior variances.
    """
    slopes = cells.slopes(mean, [v.sqrt() for v in variance])
    none = [m.new_zeros(len(m), 0) for m in mean]
    return [
        slopes[j,].square().sum(dim=1).expand(len(mean[j]), -1) / 2
        if (j,) in slopes
        else none[j]
        for j in range(len(mean))
    ]
