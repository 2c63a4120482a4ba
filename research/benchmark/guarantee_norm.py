r"""The guarantee for one unknown function of bounded norm, without a prior."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch

from botorch_lse.confidence import EmptyRegionWarning
from botorch_lse.data.pool import Pool
from botorch_lse.models.gaussian_process import PoolPosterior
from botorch_lse.strategies import GPStrategy, LSEStrategy, MELKStrategy, TruVaRStrategy
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from research.benchmark.guarantee import Form, guarantee_report
from research.benchmark.registry import Options, entry
from research.papers.problems import Problem, grid, matern_prior
from research.report import Report

DELTA, NOISE, NORM, LEVEL = 0.1, 1.0, 0.5, 0.1
SIZE, CENTRES, LENGTHSCALE, LIMIT = 4, 8, 0.2, 400
NOTES = (
    f"f is a sum of {CENTRES} kernel functions at random rows of a {SIZE} x {SIZE} grid"
    f", random signs and weights, scaled to norm {NORM:g} in the space of the kernel "
    f"(Matern-5/2, lengthscale {LENGTHSCALE:g}); noise standard deviation {NOISE:g}; "
    "run k uses seed k.",
    f"Level {LEVEL:g}, near which most rows lie, delta = {DELTA:g}. A run is wrong if "
    "any decided row lies on the other side of the level. It ends when all rows are "
    f"decided or after {LIMIT} measurements.",
)


def bounded_norm_problem(seed: int) -> Problem:
    r"""A function of norm ``NORM``."""
    pool, prior = Pool(grid(SIZE)), matern_prior((LENGTHSCALE, LENGTHSCALE))
    generator = torch.Generator().manual_seed(2 * seed)
    centres = torch.randperm(len(pool), generator=generator)[:CENTRES]
    weights = torch.randn(CENTRES, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        K = prior.covariance(pool.X, pool.X[centres])
        truth = K @ weights * (NORM / (weights @ K[centres] @ weights).sqrt())
    return Problem(pool, truth, NOISE, LEVEL, 0.5, prior, seed)


@dataclass(frozen=True, eq=False, kw_only=True)
class Divided(GaussianAlgorithm):
    r"""Widths divided by a number; else as it was.

    Args:
        divisor: The number.
    """

    divisor: float

    def width_of(self, t: int, posterior: PoolPosterior) -> float:
        r"""The squared width of interval ``t``."""
        return super().width_of(t, posterior) / self.divisor**2


def _build(
    kind: type[Any], batch_size: int, problem: Problem, divisor: float
) -> GPStrategy:
    strategy: GPStrategy = kind(
        problem.pool,
        problem.threshold,
        model=problem.prior,
        batch_size=batch_size,
        noise_std=problem.noise_std,
        delta=DELTA,
        norm_bound=NORM,
        max_observations=LIMIT,
    )
    parts = strategy.parts
    given = {f.name: getattr(parts, f.name) for f in fields(parts)}
    vars(strategy)["algorithm"] = Divided(**given, divisor=divisor)  # in its place
    return strategy


@entry("guarantee", "norm", "LSE, MELK, TruVaR for a function of bounded norm")
def guarantee_norm(options: Options) -> Report:
    r"""How often strategies are wrong with the widths of ``RKHSWidth``."""
    forms = [
        Form("LSE, B = 1", partial(_build, LSEStrategy, 1)),
        Form("LSE, B = 10", partial(_build, LSEStrategy, 10)),
        Form("MELK, B = 10", partial(_build, MELKStrategy, 10)),
        Form("TruVaR, B = 10", partial(_build, TruVaRStrategy, 10)),
    ]
    with warnings.catch_warnings():  # a third of the widths contradict themselves
        warnings.simplefilter("ignore", EmptyRegionWarning)
        return guarantee_report(
            "guarantee norm", NOTES, forms, bounded_norm_problem, options, DELTA, 0.0
        )
