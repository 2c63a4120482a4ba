r"""Schedules of the squared width ``beta`` of confidence intervals, round by round.

A schedule maps the interval's index ``t = 1, 2, ...`` to ``beta_t``: ``t = 1`` is the
prior's interval, ``t = r + 1`` the one after round ``r``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from botorch_lse._validation import in_interval, whole_number

BetaSchedule = Callable[[int], float]


@dataclass(frozen=True)
class ConstantBeta:
    r"""The same width in every round: a heuristic that claims no confidence.

    Args:
        beta: The squared width, at least 0.

    Raises:
        ValueError: If ``beta`` is negative or not finite.
    """

    beta: float

    def __post_init__(self) -> None:
        in_interval(self.beta, "beta", 0.0, math.inf, closed_low=True)

    def __call__(self, t: int) -> float:
        r"""The squared width, the same for every interval ``t``."""
        return float(self.beta)


@dataclass(frozen=True)
class UnionBeta:
    r"""The schedule ``beta_t = 2 log(N pi^2 t^2 / (6 delta))``.

    If ``f`` is drawn from the Gaussian process and the noise is Gaussian with the
    given variance, ``|f(x) - mean| <= sqrt(beta_t) sigma`` holds for all ``N`` rows and
    all ``t`` at once with probability at least ``1 - delta``, whichever rule chose the
    rows. In batches ``t`` counts rounds.

    Args:
        n_rows: ``N``, the number of rows.
        delta: The failure probability, in (0, 1).

    Source:
        Gotovos et al. (2013), Theorem 1 and Lemma 1.
    """

    n_rows: int
    delta: float

    def __post_init__(self) -> None:
        whole_number(self.n_rows, "n_rows", 1)
        in_interval(self.delta, "delta", 0.0, 1.0)

    def __call__(self, t: int) -> float:
        r"""The squared width of interval ``t = 1, 2, ...``."""
        return 2.0 * math.log(self.n_rows * (math.pi * t) ** 2 / (6.0 * self.delta))


@dataclass(frozen=True)
class BatchEta:
    r"""The schedule ``eta_t = e^{2C} beta_{fb[t] + 1}``, for means that are outdated.

    Args:
        beta: The schedule with feedback after every observation.
        batch_size: ``B``; ``fb[t] = B floor((t - 1) / B)`` observations have feedback
            before the choice of observation ``t``.
        information: ``C``, a bound on the information about ``f`` that any ``B - 1``
            observations add, in nats.

    Source:
        Gotovos et al. (2013), Theorem 3. Deviation: ``e^{2C}`` as Lemma 19 proves, not
        the ``e^C`` of the theorem's statement.
    """

    beta: BetaSchedule
    batch_size: int
    information: float

    def __post_init__(self) -> None:
        whole_number(self.batch_size, "batch_size", 1)
        in_interval(self.information, "information", 0.0, math.inf, closed_low=True)

    def __call__(self, t: int) -> float:
        r"""The squared width for the choice of observation ``t = 1, 2, ...``."""
        feedback = self.batch_size * ((t - 1) // self.batch_size)
        beta = beta_schedule(self.beta)(feedback + 1)
        return math.exp(2.0 * self.information) * beta


@dataclass(frozen=True)
class CheckedBeta:
    r"""A schedule of the user's own, each of whose values is checked.

    Args:
        schedule: ``t -> beta_t``.
        name: The argument it was given as.
    """

    schedule: BetaSchedule
    name: str = "beta"

    def __call__(self, t: int) -> float:
        r"""The squared width that the user's schedule gives for interval ``t``.

        Raises:
            ValueError: If the schedule returns a negative number or none.
        """
        return in_interval(
            self.schedule(t),
            f"{self.name}({t})",
            0.0,
            math.inf,
            closed_low=True,
            remedy="A schedule maps the round's index to a squared width.",
        )


def beta_schedule(beta: float | BetaSchedule, name: str = "beta") -> BetaSchedule:
    r"""A schedule from a number or a schedule; the user's own is checked when called.

    Raises:
        ValueError: If it is neither, or a negative number.
    """
    if isinstance(beta, ConstantBeta | UnionBeta | BatchEta | CheckedBeta):
        return beta
    if callable(beta):
        return CheckedBeta(beta, name)
    return ConstantBeta(in_interval(beta, name, 0.0, math.inf, closed_low=True))
