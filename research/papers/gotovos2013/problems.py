r"""Problems and contestants of the reproduction of Gotovos et al. (2013)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.datasets import bathymetry
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import StraddleRankStrategy
from botorch_lse.strategies import (
    GPStrategy,
    ImplicitLSEStrategy,
    ImplicitStraddleStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    StraddleStrategy,
)
from research.papers.problems import Problem, gp_sample

BATCH = 30
SEQUENTIAL_BETA, BATCH_ETA = 3.0**2, 4.0**2
GRID, LENGTHSCALES, PRIOR_MEAN, SAMPLE_NOISE = 60, (0.1, 0.2), 5.0, 0.1
POSITIVE_SHARE = 0.3
LEVEL, SOUNDING_NOISE, FIT_CELLS, FIT_SEED = 100.0, 5.0, 200, 2013


def sample_problem(seed: int) -> Problem:
    r"""A function drawn from the prior, 30 % of the grid above the level.

    The prior's mean of 5 standard deviations makes the level about 0.75 of the
    maximum, as in the paper's experiments with an implicit level.
    """
    pool, prior, truth = gp_sample(seed, GRID, LENGTHSCALES, PRIOR_MEAN)
    threshold = float(truth.quantile(1.0 - POSITIVE_SHARE))
    omega = threshold / float(truth.max())
    return Problem(pool, truth, SAMPLE_NOISE, threshold, omega, prior, seed)


def sea_problem(seed: int) -> Problem:
    r"""The sea bed off Vancouver Island, 100 m; seeds differ in the noise."""
    pool, depth, prior = _sea()
    omega = LEVEL / float(depth.max())
    return Problem(pool, depth, SOUNDING_NOISE, LEVEL, omega, prior, seed)


@lru_cache(maxsize=1)
def _sea() -> tuple[Pool, Tensor, GPPrior]:
    r"""Cells for evaluation, their depth, and a prior fitted to 200 other cells."""
    chart = bathymetry()
    generator = torch.Generator().manual_seed(FIT_SEED)
    order = torch.randperm(len(chart.pool), generator=generator)
    fit, rest = order[:FIT_CELLS], order[FIT_CELLS:].sort().values
    noise = torch.randn(FIT_CELLS, generator=generator, dtype=torch.float64)
    soundings = chart.depth[fit] + SOUNDING_NOISE * noise
    prior = _maximum_likelihood(chart.pool.X[fit], soundings, chart.pool.bounds)
    table = chart.pool.to_frame().iloc[rest.numpy()].reset_index(drop=True)
    pool = Pool(chart.pool.X[rest], names=chart.pool.names, table=table)
    return pool, chart.depth[rest], prior


def _maximum_likelihood(X: Tensor, y: Tensor, bounds: Tensor) -> GPPrior:
    model = SingleTaskGP(
        X,
        y.unsqueeze(-1),
        torch.full((len(y), 1), SOUNDING_NOISE**2, dtype=torch.float64),
        covar_module=ScaleKernel(MaternKernel(2.5, ard_num_dims=X.shape[-1])),
        input_transform=Normalize(X.shape[-1], bounds=bounds),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return GPPrior.from_model(model)


Build = Callable[[Problem, int], GPStrategy]


@dataclass(frozen=True)
class Method:
    r"""One contestant.

    Args:
        name: As in the paper.
        build: From a problem and a number of measurements to the strategy.
        batch: Measurements per round.
        travel: Whether its path is measured.
    """

    name: str
    build: Build
    batch: int
    travel: bool = False


def methods() -> list[Method]:
    r"""The paper's algorithms with the settings of its section 5.

    Batch forms start with one batch of maximal variance (App. C), sequential ones with
    their own rule; so does ``STR_rank cold``, as the rule is printed.
    ``epsilon = 0``, so that all use the same number of measurements.
    """
    implicit = {"implicit": True}
    return [
        _method("LSE", LSEStrategy, 1, beta=SEQUENTIAL_BETA, travel=True),
        _method("STR", StraddleStrategy, 1),
        _method("VAR", MaxVarianceStrategy, 1, beta=SEQUENTIAL_BETA),
        _method("LSE_batch", LSEStrategy, BATCH, beta=BATCH_ETA, travel=True),
        _method("STR_batch", StraddleStrategy, BATCH),
        _method("STR_rank", StraddleRankStrategy, BATCH),
        _method("STR_rank cold", StraddleRankStrategy, BATCH, cold=True),
        _method("LSE_imp", ImplicitLSEStrategy, 1, beta=SEQUENTIAL_BETA, **implicit),
        _method(
            "LSE_imp-batch", ImplicitLSEStrategy, BATCH, beta=BATCH_ETA, **implicit
        ),
        _method("STR_imp", ImplicitStraddleStrategy, 1, **implicit),
    ]


def _method(
    name: str,
    kind: type[GPStrategy],
    batch: int,
    beta: float | None = None,
    implicit: bool = False,
    travel: bool = False,
    cold: bool = False,
) -> Method:
    n_initial = 0 if cold or batch == 1 else batch
    build = partial(_build, kind, batch, beta, implicit, n_initial)
    return Method(name, build, batch, travel)


def _build(
    kind: type[GPStrategy],
    batch: int,
    beta: float | None,
    implicit: bool,
    n_initial: int,
    problem: Problem,
    n: int,
) -> GPStrategy:
    goal: dict[str, Any] = {"omega": problem.omega} if implicit else {}
    return kind(
        problem.pool,
        None if implicit else problem.threshold,
        **goal,
        model=problem.prior,
        batch_size=batch,
        noise_std=problem.noise_std,
        beta=beta,
        max_observations=n,
        n_initial=n_initial,
    )
