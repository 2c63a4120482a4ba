r"""Gaussian processes: taken apart, fitted, with unequal noise, and conditioned."""

from botorch_lse.models.fitted import (
    HeteroscedasticGP,
    QuadraticNoise,
    fit_heteroscedastic_gp,
    fit_single_task_gp,
)
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior, PosteriorPath

__all__ = [
    "GPPrior",
    "HeteroscedasticGP",
    "PoolPosterior",
    "PosteriorPath",
    "QuadraticNoise",
    "fit_heteroscedastic_gp",
    "fit_single_task_gp",
]
