r"""Gaussian processes: read from BoTorch models, fitted, and conditioned on data."""

from botorch_lse.models.fitted import (
    HeteroscedasticGP,
    QuadraticNoise,
    fit_heteroscedastic_gp,
    fit_multi_task_gp,
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
    "fit_multi_task_gp",
    "fit_single_task_gp",
]
