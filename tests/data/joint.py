r"""A stand-in for OpenTURNS, which default tests do not install."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import norm


class Joint:
    r"""Two normal numbers of correlation 0.6, with the methods that OpenTURNS has.

    Args:
        is_continuous: What it says of itself.
        names: Its description.
    """

    def __init__(
        self, is_continuous: bool = True, names: Sequence[str] = ("load", "strength")
    ) -> None:
        self.is_continuous, self.names = is_continuous, names

    def getDimension(self) -> int:
        return 2

    def getDescription(self) -> Sequence[str]:
        return self.names

    def isContinuous(self) -> bool:
        return self.is_continuous

    def computeSequentialConditionalQuantile(self, p: Sequence[float]) -> list[float]:
        first = norm.ppf(p[0])
        return [first, norm.ppf(p[1], 0.6 * first, 0.8)]

    def computeSequentialConditionalCDF(self, x: Sequence[float]) -> list[float]:
        return [norm.cdf(x[0]), norm.cdf(x[1], 0.6 * x[0], 0.8)]

    def computeLogPDF(self, X: Sequence[Sequence[float]]) -> list[list[float]]:
        return [[norm.logpdf(x) + norm.logpdf(y, 0.6 * x, 0.8)] for x, y in X]


class WithoutDensity(Joint):
    r"""The same, that complains where a density is asked for."""

    def computeLogPDF(self, X: Sequence[Sequence[float]]) -> list[list[float]]:
        raise RuntimeError("NotYetImplementedException : in computePDF")
