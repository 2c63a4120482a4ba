r"""Gaussian processes: taken apart, fitted, with unequal noise, and conditioned."""

from botorch_lse.models.default import fit_single_task_gp
from botorch_lse.models.heteroscedastic import (
    HeteroscedasticGP,
    QuadraticNoise,
    fit_heteroscedastic_gp,
)
from botorch_lse.models.posterior import PoolPosterior, PosteriorPath
from botorch_lse.models.prior import GPPrior

__all__ = [
    "GPPrior",
    "HeteroscedasticGP",
    "PoolPosterior",
    "PosteriorPath",
    "QuadraticNoise",
    "fit_heteroscedastic_gp",
    "fit_single_task_gp",
]
