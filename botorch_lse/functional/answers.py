r"""The expected effect of one result, such as yes or no, on the sides of targets.

*Answers.* At a candidate the latent function ``f`` is normal with mean ``m`` and
variance ``s^2``, and an answer there is yes, ``y = 1``, with the probability ``guess +
w Phi(f)``, ``w`` being ``1 - guess - lapse``. At a target ``f`` is above the level with
the probability ``p = Phi(b)``, ``b`` being its mean minus the level over its standard
deviation.

All that the answer is expected to tell about the side is in one number of each pair,
the covariance of "the answer is yes" and "the target is above",

    t = w (Phi2(a, b; rho) - Phi(a) Phi(b)),  a = m / sqrt(1 + s^2),
    rho = c / (s_target sqrt(1 + s^2)),  c the covariance of both values of f,

since ``p`` becomes ``p + t / P(1)`` after a yes and ``p - t / P(0)`` after a no. It is
exact for the normal distribution of ``f`` that is given: nothing is fitted again.

*Other results*, such as grades and counts, have a number ``t`` each, by quadrature over
the values of ``f`` at the candidate; see ``AnyResultAhead``.

Source:
    Letham et al. (2022), Theorem 1, which has the bivariate normal probability itself,
    for answers without guesses and lapses. Deviation: as a covariance, nothing cancels
    where an answer tells little. Other results are ours.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import numpy as np
import torch
from torch import Tensor

from botorch_lse.functional.lookahead import Smooth, ratio_to_level
from botorch_lse.functional.scores import TINY

PAIRS = 2**18
"""The number of pairs at a time, of which dozens of operations stay in a cache.
With 2**16, as of look-ahead for numbers, exact scores took up to a fifth longer."""
LITTLE, FEW_NODES = 0.3, 3
"""The largest correlation for which so few nodes are enough, as for most pairs."""
NODES = ((0.5, 4), (0.75, 6), (0.9, 8), (1.0, 16))
"""The same of larger ones, by angles.
Covariances of both events are then exact to 2e-8. No correlation is above 0.97 while
the latent variance is below 16; there they are to 1e-6."""
REACH, LATENT_NODES = 5.0, 81
"""The deviations up to which values of ``f`` count, and how many of them.
At equal distances, as sums of smooth functions are then exact to the share beyond, 6e-7
here. Where the value decides a target's side, as it does at the candidate itself, the
side is smoothed over a distance: what a grade tells of it is wrong by up to 3 % where
``f`` has a variance of 25, and what a count of a thousand tells by 10 %."""
SMOOTHED = 0.7
"""The least deviation of a side given the value of ``f``, in distances of the values.
Below it sums over values would depend on where a side changes between two of them."""
Change = Literal[Smooth, "volume"]
"""A loss of the sides, or the number of targets above."""


@dataclass(frozen=True, eq=False)
class ResultAhead(ABC):
    r"""One result at each of ``C`` candidates, before it is known.

    Args:
        mean: ``C`` means of the latent function.
        variance: ``C`` variances of it.
    """

    mean: Tensor
    variance: Tensor

    @property
    def per_pair(self) -> int:
        r"""The numbers that a pair of candidate and target takes."""
        return 1

    def pieces(self, covariance: Tensor) -> Iterator[tuple[Self, Tensor]]:
        r"""Some candidates at a time, whose pairs with all targets stay in a cache.

        Dozens of operations on each pair are twice as fast there.

        Args:
            covariance: ``C x T`` covariances of candidates and targets.
        """
        size = max(1, PAIRS // (self.per_pair * max(1, covariance.shape[-1])))
        for start in range(0, max(1, len(covariance)), size):
            some = slice(start, start + size)
            yield self.of_some(some), covariance[some]

    def of_some(self, some: slice) -> Self:
        r"""The results of some candidates."""
        return replace(self, mean=self.mean[some], variance=self.variance[some])

    @abstractmethod
    def with_sides(
        self, distance: Tensor, variance: Tensor, covariance: Tensor
    ) -> Tensor:
        r"""The covariances of results and of targets being above.

        Args:
            distance: ``T`` means minus the level.
            variance: ``T`` variances.
            covariance: ``C x T`` covariances of candidates and targets.
        """

    @abstractmethod
    def removed(self, loss: Smooth, b: Tensor, together: Tensor) -> Tensor:
        r"""The expected decreases of a loss of the sides (``C x T``).

        Args:
            loss: ``"product"``, ``p (1 - p)``, or ``"entropy"``, of which it is the
                mutual information of side and result, in nats.
            b: ``T`` deviations of the targets from the level.
            together: The covariances from ``with_sides``.
        """

    @abstractmethod
    def volume_change(self, together: Tensor) -> Tensor:
        r"""The expected absolute changes of the number of targets above (``C``).

        Args:
            together: The covariances from ``with_sides``, with weights if there are
                any.
        """


@dataclass(frozen=True, eq=False)
class AnswerAhead(ResultAhead):
    r"""One answer of yes or no at each of ``C`` candidates, before it is given.

    Args:
        mean: ``C`` means of the latent function.
        variance: ``C`` variances of it.
        guess: The probability of a yes however small the latent value is.
        lapse: The probability of a no however large it is.
    """

    guess: float = 0.0
    lapse: float = 0.0

    @property
    def ratio(self) -> Tensor:
        r"""The deviations ``a`` (``C``)."""
        return self.mean * (1 + self.variance).rsqrt()

    @property
    def width(self) -> float:
        r"""The probability that an answer is neither guessed nor a lapse."""
        return 1.0 - self.guess - self.lapse

    @property
    def yes(self) -> Tensor:
        r"""The probabilities of a yes (``C``)."""
        return (self.guess + self.width * _below(self.ratio)).clamp_min(TINY)

    @property
    def no(self) -> Tensor:
        r"""The probabilities of a no (``C``)."""
        return (self.lapse + self.width * _below(-self.ratio)).clamp_min(TINY)

    def with_sides(
        self, distance: Tensor, variance: Tensor, covariance: Tensor
    ) -> Tensor:
        r"""The covariances of a yes and of targets being above (``C x T``).

        Args:
            distance: ``T`` means minus the level.
            variance: ``T`` variances.
            covariance: ``C x T`` covariances of candidates and targets.
        """
        b = ratio_to_level(distance, variance)
        roots = (1 + self.variance).unsqueeze(-1) * variance.clamp_min(TINY)
        rho = covariance * roots.rsqrt()
        return self.width * joint_excess(self.ratio.unsqueeze(-1), b, rho)

    def removed(self, loss: Smooth, b: Tensor, together: Tensor) -> Tensor:
        r"""The expected decreases of a loss of the sides (``C x T``).

        Of ``p (1 - p)`` it is ``t^2 / (P(1) P(0))``.
        """
        yes, no = self.yes.unsqueeze(-1), self.no.unsqueeze(-1)
        if loss == "product":
            return together.square() / (yes * no)
        above, below = _below(b), _below(-b)
        after = yes * _entropy(above + together / yes, below - together / yes)
        after = after + no * _entropy(above - together / no, below + together / no)
        return _entropy(above, below) - after

    def volume_change(self, together: Tensor) -> Tensor:
        r"""The expected absolute changes of the number of targets above (``C``).

        Both answers change it by as much in expectation: ``2 abs(sum of t)`` in all.
        """
        return 2 * together.sum(dim=-1).abs()


@dataclass(frozen=True, eq=False)
class AnyResultAhead(ResultAhead):
    r"""One of ``K`` results at each of ``C`` candidates, by their probabilities.

    Args:
        mean, variance: See ``ResultAhead``.
        chances: ``C x K x LATENT_NODES`` probabilities of the results given the values
            of ``latent_values``.

    Source:
        Derived here: with weights ``w`` and values ``x`` of ``latent_values``, and
        ``P(k) = sum_j w_j P(k | x_j)``, the covariance of a result ``k`` and a side is
        ``sum_j w_j (P(k | x_j) - P(k)) P(above | x_j)``.
    """

    chances: Tensor

    @property
    def per_pair(self) -> int:
        r"""The numbers that a pair of candidate and target takes."""
        return max(self.chances.shape[1:])

    def of_some(self, some: slice) -> AnyResultAhead:
        r"""The results of some candidates."""
        return replace(super().of_some(some), chances=self.chances[some])

    @cached_property
    def shares(self) -> Tensor:
        r"""The probabilities of the results (``C x K x 1``)."""
        _, weights = _latent_nodes(self.mean)
        return (self.chances @ weights).clamp_min(TINY).unsqueeze(-1)

    def with_sides(
        self, distance: Tensor, variance: Tensor, covariance: Tensor
    ) -> Tensor:
        r"""The covariances of results and of targets being above (``C x K x T``)."""
        x, weights = _latent_nodes(self.mean)
        slope = covariance * self.variance.clamp_min(TINY).rsqrt().unsqueeze(-1)
        step = (slope * SMOOTHED * (x[1] - x[0])).square()
        left = torch.maximum(variance - slope.square(), step).clamp_min(TINY).sqrt()
        ratio, slope = ((y / left).unsqueeze(-2) for y in (distance, slope))
        above = torch.special.ndtr(torch.addcmul(ratio, slope, x.unsqueeze(-1)))
        return (self.chances - self.shares) * weights @ above

    def removed(self, loss: Smooth, b: Tensor, together: Tensor) -> Tensor:
        r"""The expected decreases of a loss of the sides (``C x T``).

        Of ``p (1 - p)`` it is the sum over results of ``t^2 / P``.
        """
        moves = together / self.shares
        if loss == "product":
            return (together * moves).sum(dim=-2)
        above, below = _below(b), _below(-b)
        after = self.shares * _entropy(above + moves, below - moves)
        return _entropy(above, below) - after.sum(dim=-2)

    def volume_change(self, together: Tensor) -> Tensor:
        r"""The expected absolute changes of the number of targets above (``C``)."""
        return together.sum(dim=-1).abs().sum(dim=-1)


def latent_values(mean: Tensor, variance: Tensor) -> Tensor:
    r"""The values of ``f`` at which results are asked for (``C x LATENT_NODES``).

    Args:
        mean: ``C`` means of the latent function.
        variance: ``C`` variances of it.
    """
    x, _ = _latent_nodes(mean)
    return mean.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * x


def _latent_nodes(like: Tensor) -> tuple[Tensor, Tensor]:
    r"""Standard normal values at equal distances, and their weights, which sum to 1."""
    x = torch.linspace(-REACH, REACH, LATENT_NODES).to(like)
    density = (-0.5 * x.square()).exp()
    return x, density / density.sum()


def _below(z: Tensor) -> Tensor:
    r"""The standard normal probabilities below ``z``, exact in the lower tail too.

    There ``ndtr`` is a difference: it has the last digits of 1, and beyond -9 it is 0.
    """
    return torch.special.log_ndtr(z).exp()


def _entropy(above: Tensor, below: Tensor) -> Tensor:
    r"""The entropies of sides, which rounding may have left below a probability 0."""
    # Not 0 itself, where the entropy has no finite slope. Not by `entr`, which takes
    # three times as long.
    above, below = above.clamp_min(TINY), below.clamp_min(TINY)
    return -torch.addcmul(above * above.log(), below, below.log())


def joint_excess(h: Tensor, k: Tensor, rho: Tensor) -> Tensor:
    r"""The difference ``Phi2(h, k; rho) - Phi(h) Phi(k)``, ``Phi2`` being bivariate.

    It is the covariance of ``U <= h`` and ``V <= k`` for normal ``U`` and ``V`` with
    the correlation ``rho``: the integral of their density over correlations ``r`` from
    0 to ``rho``. With an angle in place of its sine ``r``, the integral from 0 to
    ``asin(rho)`` of ``exp(-(h^2 + k^2 - 2 h k r) / (2 (1 - r^2))) / (2 pi)``.

    Args:
        h, k, rho: Of shapes that go together.

    Source:
        Plackett's identity; Genz (2004), Eq. (3), for the nodes.
    """
    parts = h * k, -0.5 * (h.square() + k.square())
    found = torch.zeros_like(parts[0] * rho)
    # Correlations themselves, without sines, are fast, and as good where they are low.
    for share, weight in _gauss(FEW_NODES):
        density, root = _density(*parts, share * rho)
        found = torch.addcmul(found, density, root, value=weight)
    found = found * rho
    is_far = rho.detach().abs() > LITTLE
    if not bool(is_far.any()):
        return found
    is_far = is_far.expand_as(found)
    few = [part.expand_as(found)[is_far] for part in (*parts, rho)]
    return found.masked_scatter(is_far, _by_angle(*few))


def _by_angle(product: Tensor, squares: Tensor, rho: Tensor) -> Tensor:
    r"""The same for ``n`` pairs of any correlation; see ``_density``."""
    most = float(rho.detach().abs().max())
    nodes = next((n for reach, n in NODES if most <= reach), NODES[-1][1])
    angle = rho.clamp(-1.0, 1.0).asin()
    found = torch.zeros_like(angle)
    for share, weight in _gauss(nodes):
        density, _ = _density(product, squares, (share * angle).sin())
        found = found + weight * density
    return found * angle


def _density(product: Tensor, squares: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    r"""The density of two normal values by an angle, and the angle's slope by ``r``.

    Without the factor ``1 / (2 pi)``, which the weights of ``_gauss`` have.

    Args:
        product: ``h k``.
        squares: ``-(h^2 + k^2) / 2``.
        r: The sine of the angle, which is the correlation.
    """
    root = (1 - r.square()).rsqrt()
    return (torch.addcmul(squares, product, r) * root.square()).exp(), root


def _gauss(nodes: int) -> list[tuple[float, float]]:
    r"""The nodes of a mean over ``[0, 1]``, and their weights, over ``2 pi``."""
    found = np.polynomial.legendre.leggauss(nodes)
    return [(0.5 * (x + 1), w / (4 * math.pi)) for x, w in zip(*found, strict=True)]
