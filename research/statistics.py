r"""Exact binomial intervals and verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.stats import binomtest

CONFIDENCE = 0.95
HOLDS, VIOLATED, OPEN = "holds", "violated", "undetermined"


@dataclass(frozen=True)
class WrongFraction:
    r"""How many of so many runs were wrong, against a promised probability.

    Args:
        wrong: Runs that broke the promise.
        runs: All runs.
        delta: The promised bound of the probability of a wrong run.
    """

    wrong: int
    runs: int
    delta: float

    @property
    def fraction(self) -> float:
        r"""The share of wrong runs."""
        return self.wrong / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        r"""The two-sided 95 % Clopper-Pearson interval of the probability."""
        ends = binomtest(self.wrong, self.runs).proportion_ci(CONFIDENCE, "exact")
        return float(ends.low), float(ends.high)

    @property
    def verdict(self) -> str:
        r"""``"holds"`` if the upper limit is at most ``delta``, ``"violated"`` if the
        lower limit exceeds it, else ``"undetermined"``: more runs would tell.
        """
        low, high = self.interval
        if high <= self.delta:
            return HOLDS
        return VIOLATED if low > self.delta else OPEN
