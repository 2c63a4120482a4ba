r"""The instances of Weltz et al. (2023), and measurements by sufficient statistics.

``k`` Gaussian measurements of an arm are known by their mean and their sample variance.
The mean is Gaussian with variance ``s2 / k``, the sum of squared deviations from it is
``s2`` times a chi-square variable with ``k - 1`` degrees of freedom, and the two are
independent (Cochran). Drawing these two numbers is drawing the ``k`` values, exactly,
for all that least squares and HEAD ever use of them.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_lse import datasets
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.estimators import ArmStatistics
from botorch_lse.papers.complexity import (
    Complexity,
    best_arm_complexity,
    level_set_complexity,
)

WIDE_ARMS, NARROW_ARMS, NARROW = 200, 1800, 0.1
ORACLE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class LinearProblem:
    r"""Arms with linear means and quadratic noise variances.

    Args:
        X: ``N x d`` features; items and arms are the same.
        theta: ``d`` coefficients of the mean.
        Sigma: ``d`` diagonal entries of the noise matrix.
        names: ``N`` names of the arms.
        threshold: The level; ``None``: the best arm is wanted.
    """

    X: Tensor
    theta: Tensor
    Sigma: Tensor
    names: tuple[str, ...] = ()
    threshold: float | None = None

    @property
    def pool(self) -> Pool:
        r"""The arms, noise not revealed."""
        return Pool(self.X)

    @property
    def means(self) -> Tensor:
        r"""The ``N`` true means, which the algorithms do not see."""
        return self.X @ self.theta

    @property
    def variances(self) -> Tensor:
        r"""``N`` true noise variances."""
        return self.X.square() @ self.Sigma

    @property
    def bounds(self) -> tuple[float, float]:
        r"""The least and the largest noise variance, known to the methods."""
        return float(self.variances.min()), float(self.variances.max())

    @property
    def above(self) -> Tensor:
        r"""``N`` bools: the best arm, or the level set."""
        if self.threshold is None:
            return self.means == self.means.max()
        return self.means > self.threshold

    def complexity(self, noise_var: Tensor) -> Complexity:
        r"""The oracle's design and its value, certified to ``ORACLE_TOLERANCE``."""
        tol = ORACLE_TOLERANCE
        if self.threshold is None:
            return best_arm_complexity(self.X, self.means, noise_var=noise_var, tol=tol)
        return level_set_complexity(
            self.X, self.means, self.threshold, noise_var=noise_var, tol=tol
        )

    @property
    def psi(self) -> Complexity:
        r"""``psi*``: the oracle knows every variance."""
        return self.complexity(self.variances)

    @property
    def rho(self) -> Complexity:
        r"""``rho*``: the oracle takes the largest variance for all."""
        return self.complexity(torch.full_like(self.variances, self.bounds[1]))

    def draw(self, counts: Tensor, generator: np.random.Generator) -> ArmStatistics:
        r"""Measure each arm so often.

        Args:
            counts: ``N``.
            generator: The noise.
        """
        k, s2 = counts.numpy(), self.variances.numpy()
        noise = np.sqrt(s2 / np.maximum(k, 1)) * generator.standard_normal(len(k))
        scatter = s2 * generator.chisquare(np.maximum(k - 1, 1))
        means = np.where(k > 0, self.means.numpy() + noise, 0.0)
        return ArmStatistics(
            counts, torch.from_numpy(means), torch.from_numpy(scatter * (k > 1))
        )

    def measure(
        self, counts: Tensor, round: int, generator: np.random.Generator
    ) -> Observations:
        r"""The same as means of replicates, with their scatter as ``yvar``."""
        drawn = self.draw(counts, generator)
        rows = counts.nonzero().view(-1)
        k = counts[rows]
        yvar = drawn.scatter[rows] / (k.double() * (k - 1).clamp_min(1))
        return Observations(rows, drawn.means[rows], yvar, torch.tensor(round), k)


def _real(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def sphere_problem(d: int, seed: int) -> LinearProblem:
    r"""Figure 2: 200 arms on the unit sphere, 1800 on one of radius 0.1."""
    generator = np.random.default_rng([seed, d])
    X = generator.standard_normal((WIDE_ARMS + NARROW_ARMS, d))
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    X[WIDE_ARMS:] = X[WIDE_ARMS:] * NARROW
    Sigma = torch.ones(d, dtype=torch.float64)
    Sigma[1::2] = 0.1
    return LinearProblem(torch.from_numpy(X), torch.ones(d, dtype=torch.float64), Sigma)


def standard(angle: float, quiet: float) -> LinearProblem:
    r"""The three arms of Figure 1, for guarantees: ``e1``, ``e2``, one near ``e1``.

    Args:
        angle: Between ``e1`` and the third arm.
        quiet: The noise variance of ``e1``; that of ``e2``, the informative arm, is 1.
    """
    X = _real([[1.0, 0.0], [0.0, 1.0], [math.cos(angle), math.sin(angle)]])
    return LinearProblem(X, _real([1.0, 0.0]), _real([quiet, 1.0]))


def signal_to_noise(d: int = 4, angle: float = 0.02, q: float = 0.4) -> LinearProblem:
    r"""Example 1: informative arms of several magnitudes, equal signal to noise."""
    e = torch.eye(d, dtype=torch.float64)
    near = [math.cos(angle) * e[0] + math.sin(angle) * e[i] for i in range(1, d)]
    middle = 0.5 * (e[0] + e[1])
    others = [middle + 0.1 * e[2], middle + 0.1 * (e[2] + e[3])]
    X = torch.stack((e[0], e[1], *(q * e[2:]), *near, *others))
    names = (
        "e1",
        "e2",
        *(f"{q:g} e{i + 1}" for i in range(2, d)),
        *(f"near e1, e{i + 1}" for i in range(1, d)),
        "g1",
        "g2",
    )
    return LinearProblem(X, e[0], torch.ones(d, dtype=torch.float64), names)


def benchmark(
    d: int = 3, angle: float = 0.02, noisy: float = 1.0, quiet: float = 0.2
) -> LinearProblem:
    r"""Example 2: one near-optimal arm, many that tell it from the best."""
    e = torch.eye(d, dtype=torch.float64)
    near = math.cos(angle) * e[0] + math.sin(angle) * e[1]
    pairs = list(itertools.combinations(range(d), 2))
    bent = [(e[i] + e[j]) / math.sqrt(2) for i, j in pairs]
    X = torch.stack((e[0], near, *e[2:], *bent))
    names = (
        "e1",
        "near e1",
        *(f"e{i + 1}" for i in range(2, d)),
        *(f"e{i + 1} + e{j + 1}" for i, j in pairs),
    )
    Sigma = torch.full((d,), noisy, dtype=torch.float64)
    Sigma[1:3] = quiet
    return LinearProblem(X, e[0], Sigma, names)


def web_page() -> LinearProblem:
    r"""Example 3: 2 variations in 3 dimensions; pairs interact."""
    page = datasets.web_page()
    return LinearProblem(page.X, page.theta, page.Sigma, page.names)
