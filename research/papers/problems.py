r"""Problems with a known truth and simulated noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import GPPrior, factorize

NUGGET = 1e-8
"""Variance added to a sample's covariance, whose smallest eigenvalues are 0 in
float64; a standard deviation of 1e-4 of the prior's."""


@dataclass(frozen=True, eq=False)
class Problem:
    r"""A pool, the truth about it, and how it is measured.

    Args:
        pool: ``N`` rows.
        truth: ``N`` values of the function, units of ``y``.
        noise_std: Standard deviation of one measurement's noise, units of ``y``.
        threshold: The level, units of ``y``.
        omega: The level as a share of the maximum, if that is positive.
        prior: The process that strategies may use, hyper-parameters fixed.
        seed: Seed of the noise.
    """

    pool: Pool
    truth: Tensor
    noise_std: float
    threshold: float
    omega: float
    prior: GPPrior
    seed: int

    @property
    def above(self) -> Tensor:
        r"""``N`` bools: the true level set."""
        return self.truth > self.threshold

    def noise_generator(self) -> torch.Generator:
        r"""A fresh stream of noise, the same for every strategy."""
        return torch.Generator().manual_seed(2 * self.seed + 1)

    def measure(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        r"""One noisy value for each of ``q`` rows."""
        noise = torch.randn(rows.shape, generator=generator, dtype=torch.float64)
        return self.truth[rows] + self.noise_std * noise


def grid(size: int) -> Tensor:
    r"""``size^2 x 2`` points of a regular grid on the unit square."""
    line = torch.linspace(0.0, 1.0, size, dtype=torch.float64)
    return torch.cartesian_prod(line, line)


@lru_cache(maxsize=4)
def matern_prior(lengthscales: tuple[float, ...], mean: float = 0.0) -> GPPrior:
    r"""Matern-5/2 with one lengthscale per input, unit variance, a constant mean."""
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=len(lengthscales))).double()
    kernel.outputscale = 1.0
    kernel.base_kernel.lengthscale = torch.tensor([lengthscales])
    constant = ConstantMean().double()
    constant.initialize(constant=mean)
    return GPPrior.from_kernel(kernel, constant)


def gp_sample(
    seed: int,
    size: int,
    lengthscales: tuple[float, ...],
    mean: float = 0.0,
) -> tuple[Pool, GPPrior, Tensor]:
    r"""A grid, a prior and one function drawn from it.

    Args:
        seed: Of the draw.
        size: Points per side of the grid.
        lengthscales: Of the Matern-5/2 kernel, in sides of the square.
        mean: The prior's mean, in prior standard deviations.

    Returns:
        The pool, the prior, and ``size^2`` values.
    """
    pool, factor = _factored(size, lengthscales)
    generator = torch.Generator().manual_seed(2 * seed)
    white = torch.randn(len(pool), generator=generator, dtype=torch.float64)
    return pool, matern_prior(lengthscales, mean), mean + factor @ white


@lru_cache(maxsize=2)
def _factored(size: int, lengthscales: tuple[float, ...]) -> tuple[Pool, Tensor]:
    pool = Pool(grid(size))
    with torch.no_grad():
        covariance = matern_prior(lengthscales).covariance(pool.X, pool.X)
    nugget = torch.full((len(pool),), NUGGET, dtype=torch.float64)
    return pool, factorize(covariance, nugget)
