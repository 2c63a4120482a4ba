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
    from botorch_lse.models.source_kernels import source_kernel
    from botorch_lse.models.sources import (
        Autoregressive,
        Coregionalised,
        Discrepancies,
        FadingDiscrepancies,
        FidelityDiscrepancies,
        IndependentSources,
        LikeliestSources,
        SourceModel,
    )
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
            "sources": (
                "Autoregressive Coregionalised Discrepancies FadingDiscrepancies "
                "FidelityDiscrepancies IndependentSources LikeliestSources SourceModel"
            ),
            "source_kernels": "source_kernel",
        },
    )

__all__ = [
    "Autoregressive",
    "Coregionalised",
    "Discrepancies",
    "FadingDiscrepancies",
    "FidelityDiscrepancies",
    "GPPrior",
    "GramKernel",
    "HeteroscedasticGP",
    "IndependentSources",
    "LearntKernel",
    "LikeliestSources",
    "PoolPosterior",
    "PosteriorPath",
    "QuadraticNoise",
    "SourceModel",
    "TanimotoKernel",
    "fit_additive_gp",
    "fit_heteroscedastic_gp",
    "fit_mixed_gp",
    "fit_multi_task_gp",
    "fit_single_task_gp",
    "source_kernel",
]
