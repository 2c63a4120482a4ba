r"""What the rounds of MELK and MILK need and leave behind."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torch import Tensor

from botorch_lse.designs import Design
from botorch_lse.problem import Observations
from botorch_lse.strategies.rule import countable


def draws_of_round(
    t: int, N: int, g: float, second_moment: float, delta: float, constant: float = 16.0
) -> int:
    r"""``N_t = ceil(max(16 4^t g (B^2 + sigma^2) log(2 t^2 N^2 / delta), 2 log(N /
    delta)))``.

    Args:
        t: The round, from 1.
        N: The number of rows.
        g: The worst squared norm under the round's design.
        second_moment: ``B^2 + sigma^2``, units of ``y`` squared.
        delta: The failure probability of the whole run.
        constant: The paper's 16.

    Source:
        Mason et al. (2022), Algorithms 1 and 2, lines 5 to 7, with the squared norm
        (errata 1). Deviation: at least ``4 log(4 t^2 N^2 / delta)``, twice what
        Catoni's mean needs, which matters for ``g (B^2 + sigma^2)`` far below 1 only.
    """
    q = constant * 4.0**t * g * second_moment * math.log(2 * t**2 * N**2 / delta)
    least = 4 * math.log(4 * t**2 * N**2 / delta)
    return math.ceil(max(countable(q), 2 * math.log(N / delta), least))


@dataclass(frozen=True, eq=False)
class Estimate:
    r"""The last estimate of every row.

    Args:
        mean: ``N`` estimates of the function, units of ``y``; 0 before the first.
        half_width: ``N``, what they are off at most; the bound ``B`` before the first.
        sigma: ``N``, bounds of their standard deviations.
    """

    mean: Tensor
    half_width: Tensor
    sigma: Tensor

    def updated(
        self, rows: Tensor, mean: Tensor, half_width: Tensor, sigma: Tensor
    ) -> Estimate:
        r"""With new numbers at ``rows``."""
        parts = (self.mean, mean), (self.half_width, half_width), (self.sigma, sigma)
        return Estimate(*(old.index_put((rows,), new) for old, new in parts))


@dataclass(frozen=True, eq=False)
class PACBelief:
    r"""What the algorithm's rounds say.

    Args:
        t: The round of the algorithm that comes next, from 1.
        side: ``N`` codes: the sets ``G_t``, ``B_t`` and the rest.
        active: The active set ``A_t``: ``N`` rows or ``N x N`` ordered pairs.
        estimate: The last estimate of every row.
        design: The design of round ``t``; ``None`` once the algorithm has ended.
        size: ``N_t``; 0 once it has ended.
        kept: Draws of this round that were told while others were abandoned.
        missing: The draws still to come; ``None``: all of them, yet to be drawn.
    """

    t: int
    side: Tensor
    active: Tensor
    estimate: Estimate
    design: Design | None = None
    size: int = 0
    kept: Observations = field(default_factory=Observations.empty)
    missing: Tensor | None = None
