r"""TruVaR's epochs: the width aimed at, and the width of the intervals meanwhile."""

from __future__ import annotations

import math
from dataclasses import dataclass

from botorch_lse.checks import in_interval, whole_number
from botorch_lse.strategies.gp.belief import Belief


@dataclass(frozen=True)
class EpochBeta:
    r"""``beta_(i) = a log(N t_(i)^2)``: the width of the paper's experiments.

    Args:
        n_rows: ``N``, noise levels included.
        factor: ``a``.

    Raises:
        ValueError: If ``n_rows`` or ``factor`` is not positive.

    Source:
        Bogunovic et al. (2016), section 4; a pool of one row counts as two, so that the
        width is positive.
    """

    n_rows: int
    factor: float

    def __post_init__(self) -> None:
        whole_number(self.n_rows, "n_rows", 1)
        in_interval(self.factor, "factor", 0.0, math.inf)

    def __call__(self, t: int) -> float:
        r"""``beta_(i)`` of an epoch whose first time index is ``t``."""
        return self.factor * math.log(max(self.n_rows, 2) * t**2)


@dataclass(frozen=True)
class Epochs:
    r"""Where the epochs stand.

    Args:
        number: ``i``, from 1.
        eta: ``eta_(i)``, units of ``y``.
        beta: ``beta_(i)``.
    """

    number: int = 1
    eta: float = 0.0
    beta: float = 1.0

    def after(
        self, sigma: float, next_beta: float, ratio: float, delta_bar: float
    ) -> Epochs:
        r"""After an observation that leaves the largest ``sigma`` in ``M_t``.

        Args:
            sigma: Units of ``y``.
            next_beta: ``beta`` of epochs that begin now; those entered at one time
                share it.
            ratio: ``r``.
            delta_bar: The slack.

        Source:
            Bogunovic et al. (2016), Algorithm 1, lines 5 and 6, with errata 2 and 3
            (papers/bogunovic2016/errata.md): with ``eta = 0`` there is one epoch.
        """
        number, eta, beta = self.number, self.eta, self.beta
        while eta > 0 and math.sqrt(beta) * sigma <= (1 + delta_bar) * eta:
            number, eta, beta = number + 1, ratio * eta, next_beta
        return Epochs(number, eta, beta)


@dataclass(frozen=True)
class TruVaRBelief(Belief):
    r"""What the complete rounds say, and where the epochs and the ship stand.

    Args:
        epochs: The epoch, its target width and its squared width ``beta_(i)``.
        previous: The row measured last; ``None`` before any.
        spent: The summed costs so far.
    """

    epochs: Epochs = Epochs()
    previous: int | None = None
    spent: float = 0.0
