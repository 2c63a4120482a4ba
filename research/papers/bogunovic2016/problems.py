r"""Problems of the reproduction of Bogunovic et al. (2016)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import GPPrior, factorize
from botorch_lse.rules.costs import RowCost
from research.papers.gotovos2013.problems import sea_problem
from research.papers.problems import gp_sample, grid

LAKE = (1400.0, 18.0)
"""Extents of the transect: metres along the surface, metres of depth."""
LAKE_LENGTHSCALES = (0.15, 0.2)
POSITIVE_SHARE = 0.3
EXACT = 1e-6
"""Noise variance of measurements that the paper calls noiseless."""

LEVELS, PRICES, HIGH = (1e-6, 1e-3, 0.05), (15.0, 10.0, 2.0), 2.25
RARE = 0.02
SAMPLE_LENGTHSCALE = 0.1
NUGGET = 1e-8
ANCHORS = 200

SEA_STRIDE = 3
"""Every third row and column of the chart: 530 cells, so that runs take seconds."""
PER_KM, PER_SOUNDING = 1.0, 1.0


@dataclass(frozen=True, eq=False)
class PricedProblem:
    r"""A pool, the truth about it, how it is measured and what that costs.

    Args:
        pool: ``N`` rows, with ``noise_var`` and, if rows have prices, ``costs``.
        truth: ``N`` values, units of ``y``.
        prior: The process that strategies may use.
        seed: Seed of the noise and of the first row.
        threshold: The level; ``None`` where the maximiser is sought.
        travel: What a row costs after another one.
    """

    pool: Pool
    truth: Tensor
    prior: GPPrior
    seed: int
    threshold: float | None = None
    travel: RowCost | None = None

    @property
    def above(self) -> Tensor:
        r"""``N`` bools: the true level set."""
        assert self.threshold is not None  # asked for level sets only
        return self.truth > self.threshold

    def noise_generator(self) -> torch.Generator:
        r"""A fresh stream of noise, the same for every strategy."""
        return torch.Generator().manual_seed(2 * self.seed + 1)

    def measure(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        r"""One noisy value for each of ``q`` rows."""
        assert self.pool.noise_var is not None  # every problem here has it
        noise = torch.randn(rows.shape, generator=generator, dtype=torch.float64)
        return self.truth[rows] + self.pool.noise_var[rows].sqrt() * noise


@dataclass(frozen=True, eq=False)
class BoatTrip:
    r"""``c(x | x') = 0.25 |x_1 - x_1'| + 4 (|x_2| + 1)``, no travel to the first row.

    Args:
        X: ``N x 2``: metres along the lake, metres of depth.

    Source:
        Bogunovic et al. (2016), section 4, "Lake data (varying cost)".
    """

    X: Tensor

    def __call__(self, previous: int | None, rows: Tensor) -> Tensor:
        r"""What each of some rows costs, coming from the previous one."""
        dive = 4.0 * (self.X[rows, 1].abs() + 1.0)
        if previous is None:
            return dive
        return dive + 0.25 * (self.X[rows, 0] - self.X[previous, 0]).abs()


@dataclass(frozen=True, eq=False)
class Cruise:
    r"""Kilometres from the last cell plus a fixed cost of a sounding.

    Args:
        X: ``N x 2`` in km.
    """

    X: Tensor

    def __call__(self, previous: int | None, rows: Tensor) -> Tensor:
        r"""What each of some rows costs, coming from the previous one."""
        stay = torch.full((len(rows),), PER_SOUNDING, dtype=torch.float64)
        if previous is None:
            return stay
        return stay + PER_KM * (self.X[rows] - self.X[previous]).norm(dim=-1)


def lake_problem(seed: int, size: int) -> PricedProblem:
    r"""A function drawn from a Matern-5/2 process on a transect, 30 % above the level.

    Lengthscales are 15 % and 20 % of the extents; measurements are exact up to a
    variance of 1e-6. A stand-in for the chlorophyll of Lake Zurich.
    """
    unit, prior, truth = gp_sample(seed, size, LAKE_LENGTHSCALES)
    threshold = float(truth.quantile(1.0 - POSITIVE_SHARE))
    travel = BoatTrip(unit.X * torch.tensor(LAKE, dtype=torch.float64))
    pool = Pool(unit.X, noise_var=torch.full((len(unit),), EXACT))
    return PricedProblem(pool, truth, prior, seed, threshold, travel)


def sea_trip(seed: int) -> PricedProblem:
    r"""The sea bed off Vancouver Island, 100 m, every third row and column."""
    whole = sea_problem(seed)
    cells = whole.pool.to_frame()
    every = (cells["row"] % SEA_STRIDE == 0) & (cells["column"] % SEA_STRIDE == 0)
    rows = torch.from_numpy(every.to_numpy().nonzero()[0])
    X = whole.pool.X[rows]
    noise = torch.full((len(rows),), whole.noise_std**2, dtype=torch.float64)
    table = cells.iloc[rows.numpy()].reset_index(drop=True)
    pool = Pool(X, noise_var=noise, names=whole.pool.names, table=table)
    return PricedProblem(
        pool, whole.truth[rows], whole.prior, seed, whole.threshold, Cruise(X)
    )


def levels_problem(seed: int, size: int) -> PricedProblem:
    r"""A draw of a squared-exponential process at three noise levels, level 2.25.

    The first of the draws ``1000 seed, 1000 seed + 1, ...`` with at least 2 % of the
    grid above the level: on average it is 1.2 %, and often nothing.
    """
    truth = next(
        draw
        for k in range(1000 * seed, 1000 * seed + 1000)
        if float(((draw := smooth_sample(k, size)) > HIGH).double().mean()) >= RARE
    )
    pool = Pool(grid(size)).at_noise_levels(LEVELS, PRICES)
    return PricedProblem(
        pool, truth.repeat(len(LEVELS)), smooth_prior(drop=1), seed, HIGH
    )


def one_level(problem: PricedProblem, k: int) -> PricedProblem:
    r"""The same function with one noise level only."""
    N = len(problem.pool) // len(LEVELS)
    pool = Pool(
        problem.pool.X[:N, :-1],
        noise_var=torch.full((N,), LEVELS[k]),
        costs=torch.full((N,), PRICES[k]),
    )
    prior = smooth_prior()
    return PricedProblem(pool, problem.truth[:N], prior, problem.seed, HIGH)


def peak_problem(seed: int, size: int) -> PricedProblem:
    r"""The posterior mean through 200 random points of a draw, to be maximised."""
    generator = torch.Generator().manual_seed(2 * seed)
    prior, pool = smooth_prior(), Pool(grid(size), noise_var=_exact(size**2))
    anchors = torch.rand(ANCHORS, 2, generator=generator, dtype=torch.float64)
    white = torch.randn(ANCHORS, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        nugget = torch.full((ANCHORS,), NUGGET, dtype=torch.float64)
        L = factorize(prior.covariance(anchors, anchors), nugget)
        # values = L white, so that K^-1 values = L^-T white
        weights = torch.linalg.solve_triangular(L.mT, white.unsqueeze(-1), upper=True)
        truth = (prior.covariance(pool.X, anchors) @ weights).squeeze(-1)
    return PricedProblem(pool, truth, prior, seed)


def svm_problem(path: Path) -> tuple[Pool, Tensor]:
    r"""The grid of hyper-parameters of the latent structured SVM.

    Args:
        path: A table with ``log2 C``, ``log2 alpha``, ``log2 epsilon`` and the
            validation error, comma-separated, without header.

    Returns:
        The pool of 1,400 rows, and minus the validation error.
    """
    table = torch.from_numpy(np.loadtxt(path, delimiter=","))
    return Pool(table[:, :3]), -table[:, 3]


def smooth_sample(seed: int, size: int) -> Tensor:
    r"""``size^2`` values of a squared-exponential process on the grid.

    The kernel is a product over the inputs, so the factor is that of one line, twice.
    """
    generator = torch.Generator().manual_seed(2 * seed)
    L = _line_factor(size)
    white = torch.randn(size, size, generator=generator, dtype=torch.float64)
    return (L @ white @ L.mT).reshape(-1)


@lru_cache(maxsize=4)
def smooth_prior(drop: int = 0) -> GPPrior:
    r"""Squared exponential, lengthscale 0.1, unit variance, without noise level.

    Args:
        drop: Columns at the end that the kernel does not see.
    """
    kernel = RBFKernel(active_dims=(0, 1) if drop else None).double()
    kernel.lengthscale = torch.tensor(SAMPLE_LENGTHSCALE)
    return GPPrior.from_kernel(kernel)


@lru_cache(maxsize=2)
def _line_factor(size: int) -> Tensor:
    line = torch.linspace(0.0, 1.0, size, dtype=torch.float64).unsqueeze(-1)
    kernel = RBFKernel().double()
    kernel.lengthscale = torch.tensor(SAMPLE_LENGTHSCALE)
    with torch.no_grad():
        covariance = kernel(line).to_dense()
    return factorize(covariance, torch.full((size,), NUGGET, dtype=torch.float64))


def _exact(n: int) -> Tensor:
    return torch.full((n,), EXACT, dtype=torch.float64)
