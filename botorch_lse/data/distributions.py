r"""Uncertain inputs: points drawn from a distribution, and their densities.

Every distribution is a function of independent standard normal numbers ``u``, one for
each input: drawn points are its values at draws of them. ``GaussianCopula`` is made of
one ``scipy.stats`` distribution for each input and a correlation, ``FromOpenTURNS`` is
any continuous distribution of OpenTURNS.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import scipy  # which loads its packages when they are first used
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_lse._lazy import LazyModule
from botorch_lse._validation import check_shape, complaint, real_matrix
from botorch_lse.data.names import chosen

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LazyModule("pandas")  # for tables

Draws = Literal["sobol", "monte_carlo"]
DRAWS = get_args(Draws)
NEEDED = ("ppf", "isf", "cdf", "sf", "logpdf")
"""The methods that are asked of a marginal distribution."""
OF_OPENTURNS = (
    "computeSequentialConditionalQuantile",
    "computeSequentialConditionalCDF",
    "computeLogPDF",
    "getDescription",
    "getDimension",
    "isContinuous",
)
"""The methods that are asked of a joint distribution of OpenTURNS."""
EDGE = 2.0**-31
"""The distance that Sobol points keep from 0 and 1, where values may be infinite.
Sobol points are multiples of a power of two."""


def marginals_of(marginals: Any, name: str) -> tuple[tuple[str, ...] | None, list[Any]]:
    r"""The names of the inputs, where they are given, and their distributions.

    Args:
        marginals: A sequence of frozen continuous distributions of ``scipy.stats``, or
            a dictionary from names to them.
        name: The argument's name.

    Raises:
        ValueError: If no distribution is given, or one is not frozen and continuous.
    """
    names = None
    if isinstance(marginals, Mapping):
        names, marginals = tuple(map(str, marginals)), list(marginals.values())
    wanted = (
        "to be a list of frozen continuous distributions of `scipy.stats`, or a joint "
        "one of OpenTURNS"
    )
    remedy = "Write `[scipy.stats.norm(0, 1), scipy.stats.uniform(2, 3)]`."
    if not isinstance(marginals, Sequence) or len(marginals) == 0:
        raise ValueError(complaint(name, wanted, f"got {marginals!r}", remedy))
    for i, one in enumerate(marginals):
        if isinstance(one, type) or not all(hasattr(one, m) for m in NEEDED):
            came = f"entry {i} is {one!r}"
            if is_of_openturns(one):
                came = f"entry {i} is one of OpenTURNS"
                remedy = "Join them by `openturns.JointDistribution([...])`."
            raise ValueError(complaint(name, wanted, came, remedy))
        try:
            median = np.asarray(one.ppf(0.5), dtype=float)
        except TypeError:  # a family that still lacks its parameters
            median = np.asarray([np.nan])
        if median.ndim or not np.isfinite(median):
            came = f"entry {i} has the median {median}"
            raise ValueError(complaint(name, wanted, came, remedy))
    return names, list(marginals)


def copula_factor(correlation: Any, d: int) -> NDArray[np.float64]:
    r"""The lower Cholesky factor of a ``d x d`` correlation; ``None``: independent.

    Raises:
        BotorchTensorDimensionError: If it has another shape.
        ValueError: If it is no correlation: not symmetric, without ones on the
            diagonal, or not positive definite.
    """
    if correlation is None:
        return np.eye(d)
    R = real_matrix(correlation, "correlation")
    wanted = f"to be {d} x {d}, one row per marginal"
    check_shape(tuple(R.shape) == (d, d), R, "correlation", wanted)
    ones = bool(torch.allclose(R.diagonal(), torch.ones(d, dtype=R.dtype)))
    L, info = torch.linalg.cholesky_ex(R)
    if not (ones and torch.allclose(R, R.mT) and int(info) == 0):
        raise ValueError(
            "Expected `correlation` to be symmetric and positive definite with ones on "
            f"the diagonal, but got {R.tolist()}. It is the correlation of the normal "
            "numbers behind the inputs, not their covariance."
        )
    factor: NDArray[np.float64] = L.numpy()
    return factor


def _at(marginal: Any, z: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""The values at normal numbers, from the nearer end, which keeps all digits."""
    upper = z > 0
    low = marginal.ppf(scipy.stats.norm.cdf(np.where(upper, 0.0, z)))
    high = marginal.isf(scipy.stats.norm.sf(np.where(upper, z, 0.0)))
    return np.where(upper, high, low)


class Distribution(ABC):
    r"""The joint distribution of ``d`` inputs, as a function of normal numbers."""

    @property
    @abstractmethod
    def d(self) -> int:
        r"""The number of inputs."""

    @abstractmethod
    def values_at(self, u: NDArray[np.float64]) -> Tensor:
        r"""The points at ``n x d`` independent standard normal numbers."""

    @abstractmethod
    def normal_numbers(self, X: Tensor) -> NDArray[np.float64]:
        r"""The independent normal numbers behind points (``n x d``)."""

    @abstractmethod
    def log_density(self, X: Tensor) -> Tensor:
        r"""The logarithms of the density at points (``n``), ``-inf`` outside."""

    def drawn(self, n: int, seed: int, by: Draws) -> Tensor:
        r"""The ``n x d`` points drawn.

        Args:
            n: How many.
            seed: Of the numbers.
            by: ``"sobol"``: a scrambled Sobol sequence, whose shares are as a rule
                nearer to the truth than those of independent points;
                ``"monte_carlo"``: independent points.
        """
        if by == "monte_carlo":
            u = np.random.default_rng(seed).standard_normal((n, self.d))
            return self.values_at(u)
        engine = SobolEngine(self.d, scramble=True, seed=seed)
        uniform = engine.draw(n, dtype=torch.float64).clamp(EDGE, 1 - EDGE).numpy()
        return self.values_at(scipy.stats.norm.ppf(uniform))


@dataclass(frozen=True, eq=False)
class GaussianCopula(Distribution):
    r"""The distribution of inputs joined by a correlation of normal numbers.

    With standard normal numbers ``z = L u`` of the correlation ``L L'``, input ``i`` is
    the value that its own distribution has at the probability ``Phi(z_i)``.

    Args:
        marginals: ``d`` frozen distributions.
        factor: ``d x d`` factor ``L``, from ``copula_factor``.
    """

    marginals: Sequence[Any]
    factor: NDArray[np.float64]

    @property
    def d(self) -> int:
        r"""The number of inputs."""
        return len(self.marginals)

    def values_at(self, u: NDArray[np.float64]) -> Tensor:
        r"""The points at ``n x d`` independent standard normal numbers."""
        pairs = zip(self.marginals, (u @ self.factor.T).T, strict=True)
        return torch.from_numpy(np.stack([_at(one, z) for one, z in pairs], axis=-1))

    def normal_numbers(self, X: Tensor) -> NDArray[np.float64]:
        r"""The independent normal numbers behind points (``n x d``)."""
        pairs = zip(self.marginals, X.numpy().T, strict=True)
        z = np.stack([_normal(one, x) for one, x in pairs], axis=-1)
        found: NDArray[np.float64] = np.asarray(np.linalg.solve(self.factor, z.T).T)
        return found

    def log_density(self, X: Tensor) -> Tensor:
        r"""The logarithms of the density at points (``n``), ``-inf`` outside.

        ``sum_i log f_i(x_i)`` plus the copula's ``-z' (R^-1 - 1) z / 2 - log(det R) /
        2`` at ``z_i = Phi^-1(F_i(x_i))``, with ``R = L L'``.
        """
        pairs = list(zip(self.marginals, X.numpy().T, strict=True))
        found = np.sum([one.logpdf(x) for one, x in pairs], axis=0)
        inside = np.isfinite(found)
        if inside.any() and not np.array_equal(self.factor, np.eye(self.d)):
            z = np.stack([_normal(one, x[inside]) for one, x in pairs], axis=-1)
            half = np.linalg.solve(self.factor, z.T)
            copula = 0.5 * (np.square(z).sum(axis=-1) - np.square(half).sum(axis=0))
            found[inside] += copula - np.log(np.diag(self.factor)).sum()
        return torch.from_numpy(found)


@dataclass(frozen=True, eq=False)
class FromOpenTURNS(Distribution):
    r"""A joint distribution of OpenTURNS with whatever copula, by its methods.

    Input ``i`` is the quantile at ``Phi(u_i)`` of its distribution given the inputs
    before (Rosenblatt's transformation, which every continuous distribution has).

    Args:
        given: The distribution.
    """

    given: Any

    @property
    def d(self) -> int:
        r"""The number of inputs."""
        return int(self.given.getDimension())

    def values_at(self, u: NDArray[np.float64]) -> Tensor:
        r"""The points at ``n x d`` independent standard normal numbers."""
        # Its quantiles are asked for by probabilities below 1, even of the far tail.
        p = scipy.stats.norm.cdf(u).clip(np.finfo(float).tiny, 1 - 2.0**-53)
        quantile = self.given.computeSequentialConditionalQuantile
        return torch.tensor([list(quantile(row)) for row in p.tolist()]).double()

    def normal_numbers(self, X: Tensor) -> NDArray[np.float64]:
        r"""The independent normal numbers behind points (``n x d``)."""
        probability = self.given.computeSequentialConditionalCDF
        p = np.array([list(probability(x)) for x in X.tolist()])
        found: NDArray[np.float64] = scipy.stats.norm.ppf(
            p.clip(np.finfo(float).tiny, 1 - 2.0**-53)
        )
        return found

    def log_density(self, X: Tensor) -> Tensor:
        r"""The logarithms of the density at points (``n``)."""
        found = np.asarray(self.given.computeLogPDF(X.tolist()))[:, 0]
        # Outside of its range OpenTURNS says the logarithm of the smallest number.
        lowest = np.log(np.finfo(float).tiny)
        return torch.from_numpy(np.where(found < lowest, -np.inf, found))


def is_of_openturns(given: Any) -> bool:
    r"""Whether it is a distribution with the methods that OpenTURNS gives it."""
    is_made = not isinstance(given, type)
    return is_made and all(hasattr(given, method) for method in OF_OPENTURNS)


def distribution_of(
    given: Any, correlation: Any, name: str
) -> tuple[tuple[str, ...] | None, Distribution]:
    r"""The names of the inputs, where they are given, and their joint distribution.

    Args:
        given: Marginals, see ``marginals_of``, or a distribution of OpenTURNS.
        correlation: ``d x d`` correlation of marginals, a table of names, or ``None``.
        name: The argument's name.

    Raises:
        BotorchTensorDimensionError: If the correlation has another shape.
        ValueError: If it is no correlation, no distribution is given, or one is not
            continuous, has no density, or is of OpenTURNS and a correlation is given.
    """
    if not is_of_openturns(given):
        own, marginals = marginals_of(given, name)
        if isinstance(correlation, pd.DataFrame) and own is not None:
            for _ in range(2):  # its columns, and then its rows
                correlation = chosen(correlation, own, "correlation", "inputs").T
        factor = copula_factor(correlation, len(marginals))
        return own, GaussianCopula(tuple(marginals), factor)
    found = FromOpenTURNS(given)
    if correlation is not None:
        raise ValueError(
            f"Expected no `correlation` beside `{name}` of OpenTURNS, but got one. "
            "Give the distribution a copula, such as `NormalCopula(correlation)`."
        )
    try:
        centre = found.values_at(np.zeros((1, found.d)))
        is_sound = given.isContinuous() and bool(found.log_density(centre).isfinite())
        came = f"got {given}"
    except (RuntimeError, TypeError) as error:  # as OpenTURNS complains
        is_sound, came = False, f"OpenTURNS says of it: {error}"
    if not is_sound:
        wanted = "to be a continuous distribution with a density"
        remedy = "Smooth it, for example by `KernelSmoothing().build(...)`."
        raise ValueError(complaint(name, wanted, came, remedy))
    described = tuple(map(str, given.getDescription()))
    return described if len({*described}) == found.d else None, found


@dataclass(frozen=True, eq=False)
class Origin:
    r"""The origin of a pool's rows: drawn from one distribution, and around points.

    The distribution that is meant is that of normal numbers ``u ~ N(0, 1)``. Around a
    point with the numbers ``c`` rows are drawn by ``u ~ N(c, 1)``.

    Args:
        distribution: The distribution that is meant.
        centres: ``K x d`` points ``c``; that of the distribution that is meant is 0.
        counts: ``K`` numbers of rows drawn around each.
    """

    distribution: Distribution
    centres: NDArray[np.float64]
    counts: tuple[int, ...]

    def around(self, centres: NDArray[np.float64], n: int, seed: int) -> Tensor:
        r"""The draws around each of ``k`` centres: ``n`` points, centre after centre.

        Args:
            centres: ``k x d``.
            n: How many around each.
            seed: Of the draws; so is the number of the centres before.
        """
        draws = np.random.default_rng((seed, len(self.counts)))
        u = draws.standard_normal((len(centres), n, centres.shape[1]))
        u = (u + centres[:, None]).reshape(-1, centres.shape[1])
        return self.distribution.values_at(u)

    def weights(self, X: Tensor) -> Tensor:
        r"""The ratios of the density that is meant to that of all draws (``n``).

        With ``n_k`` of ``n`` rows around ``c_k`` it is
        ``1 / sum_k (n_k / n) exp(u' c_k - |c_k|^2 / 2)``, at most ``n / n_0``.

        Source:
            Veach and Guibas (1995), multiple importance sampling with the balance
            heuristic; Owen and Zhou (2000), mixtures that keep the density meant.
        """
        u = torch.from_numpy(self.distribution.normal_numbers(X))
        c = torch.from_numpy(self.centres)
        share = torch.tensor(self.counts, dtype=u.dtype) / sum(self.counts)
        exponents = u @ c.T - c.square().sum(dim=-1) / 2 + share.log()
        return (-exponents.logsumexp(dim=-1)).exp()


def _normal(marginal: Any, x: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""The normal numbers behind values, from the nearer end."""
    low, high = marginal.cdf(x), marginal.sf(x)
    return np.where(low < high, scipy.stats.norm.ppf(low), scipy.stats.norm.isf(high))
