r"""The expected effect of one answer of yes or no on the sides of targets.

At a candidate the latent function ``f`` is normal with mean ``m`` and variance ``s^2``,
and an answer there is yes, ``y = 1``, with the probability ``guess + w Phi(f)``, ``w``
being ``1 - guess - lapse``. At a target ``f`` is above the level with the probability
``p = Phi(b)``, ``b`` being its mean minus the level over its standard deviation.

All that the answer is expected to tell about the side is in one number of each pair,
the covariance of "the answer is yes" and "the target is above",

    t = w (Phi2(a, b; rho) - Phi(a) Phi(b)),  a = m / sqrt(1 + s^2),
    rho = c / (s_target sqrt(1 + s^2)),  c the covariance of both values of f,

since ``p`` becomes ``p + t / P(1)`` after a yes and ``p - t / P(0)`` after a no. It is
exact for the normal distribution of ``f`` that is given: nothing is fitted again.

Source:
    Letham et al. (2022), Theorem 1, which has the bivariate normal probability itself,
    for answers without guesses and lapses. Deviation: as a covariance, nothing cancels
    where an answer tells little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from botorch_lse.functional.lookahead import IN_CACHE, Smooth, ratio_to_level
from botorch_lse.functional.scores import TINY

NODES = ((0.3, 4), (0.5, 6), (0.75, 8), (0.9, 10), (1.0, 16))
"""The largest correlations up to which so many nodes are enough.
Covariances of both events are then exact to 1e-8. No correlation is above 0.97 while
the latent variance is below 16; there they are to 1e-6."""


@dataclass(frozen=True, eq=False)
class AnswerAhead:
    r"""One answer of yes or no at each of ``C`` candidates, before it is given.

    Args:
        mean: ``C`` means of the latent function.
        variance: ``C`` variances of it.
        guess: The probability of a yes however small the latent value is.
        lapse: The probability of a no however large it is.
    """

    mean: Tensor
    variance: Tensor
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
        share = torch.special.ndtr(self.ratio)
        return (self.guess + self.width * share).clamp_min(TINY)

    @property
    def no(self) -> Tensor:
        r"""The probabilities of a no (``C``)."""
        share = torch.special.ndtr(-self.ratio)
        return (self.lapse + self.width * share).clamp_min(TINY)

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

        Of ``p (1 - p)`` it is ``t^2 / (P(1) P(0))``; of the entropy it is the mutual
        information of side and answer, in nats.

        Args:
            loss: ``"product"`` or ``"entropy"``.
            b: ``T`` deviations of the targets from the level.
            together: ``C x T``, from ``with_sides``.
        """
        yes, no = self.yes.unsqueeze(-1), self.no.unsqueeze(-1)
        if loss == "product":
            return together.square() / (yes * no)
        above, below = torch.special.ndtr(b), torch.special.ndtr(-b)
        after = yes * _entropy(above + together / yes, below - together / yes)
        after = after + no * _entropy(above - together / no, below + together / no)
        return _entropy(above, below) - after

    def volume_change(self, together: Tensor) -> Tensor:
        r"""The expected absolute changes of the number of targets above (``C``).

        Both answers change it by as much in expectation: ``2 abs(sum of t)`` in all.

        Args:
            together: ``C x T``, from ``with_sides``, with weights if there are any.
        """
        return 2 * together.sum(dim=-1).abs()


def _entropy(above: Tensor, below: Tensor) -> Tensor:
    r"""The entropies of sides, which rounding may have left below a probability 0."""
    # Not 0 itself, where the entropy has no finite slope.
    above, below = above.clamp_min(TINY), below.clamp_min(TINY)
    return torch.special.entr(above) + torch.special.entr(below)


def joint_excess(h: Tensor, k: Tensor, rho: Tensor) -> Tensor:
    r"""The difference ``Phi2(h, k; rho) - Phi(h) Phi(k)``, ``Phi2`` being bivariate.

    It is the covariance of ``U <= h`` and ``V <= k`` for normal ``U`` and ``V`` with
    the correlation ``rho``: the integral, over an angle ``u`` from 0 to ``asin(rho)``,
    of ``exp(-(h^2 + k^2 - 2 h k sin u) / (2 cos^2 u)) / (2 pi)``.

    Args:
        h, k, rho: Of shapes that go together.

    Source:
        Plackett's identity; Genz (2004), Eq. (3), for the nodes.
    """
    shape = torch.broadcast_shapes(h.shape, k.shape, rho.shape)
    if len(shape) < 2 or math.prod(shape) <= IN_CACHE:
        return _excess(h, k, rho)
    # In pieces that stay in a cache; the first dimension is never the smaller one.
    wide = [x.expand(shape).flatten(0, -2) for x in (h, k, rho)]
    size = max(1, IN_CACHE // shape[-1])
    parts = zip(*(x.split(size) for x in wide), strict=True)
    return torch.cat([_excess(*part) for part in parts]).view(shape)


def _excess(h: Tensor, k: Tensor, rho: Tensor) -> Tensor:
    most = float(rho.detach().abs().max()) if rho.numel() else 0.0
    nodes = next((n for reach, n in NODES if most <= reach), NODES[-1][1])
    angle = rho.clamp(-1.0, 1.0).asin()
    squares, product = 0.5 * (h.square() + k.square()), h * k
    total = torch.zeros_like(angle)
    for x, weight in zip(*np.polynomial.legendre.leggauss(nodes), strict=True):
        sine = (0.5 * (x + 1) * angle).sin()
        exponent = (product * sine - squares) / (1 - sine.square())
        total = total + 0.5 * weight * exponent.exp()
    return angle * total / (2 * math.pi)
