r"""Gaussian processes: read from BoTorch models, fitted, and conditioned on data."""

from typing import TYPE_CHECKING

from botorch_lse._lazy import lazy_names

if TYPE_CHECKING:
    from botorch_lse.models.fitted import (
        HeteroscedasticGP,
        QuadraticNoise,
        fit_additive_gp,
        fit_heteroscedastic_gp,
        fit_mixed_gp,
        fit_multi_task_gp,
        fit_single_task_gp,
    )
    from botorch_lse.models.gaussian_process import (
        GPPrior,
        PoolPosterior,
        PosteriorPath,
    )
    from botorch_lse.models.kernels import GramKernel, LearntKernel, TanimotoKernel
else:
    # The fitted ones bring BoTorch's models and SciPy, which take long to load.
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "fitted": (
                "HeteroscedasticGP QuadraticNoise fit_additive_gp "
                "fit_heteroscedastic_gp fit_mixed_gp fit_multi_task_gp "
                "fit_single_task_gp"
            ),
            "gaussian_process": "GPPrior PoolPosterior PosteriorPath",
            "kernels": "GramKernel LearntKernel TanimotoKernel",
        },
    )

__all__ = [
    "GPPrior",
    "GramKernel",
    "HeteroscedasticGP",
    "LearntKernel",
    "PoolPosterior",
    "PosteriorPath",
    "QuadraticNoise",
    "TanimotoKernel",
    "fit_additive_gp",
    "fit_heteroscedastic_gp",
    "fit_mixed_gp",
    "fit_multi_task_gp",
    "fit_single_task_gp",
]
