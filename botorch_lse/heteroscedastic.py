r"""Keeps the former import path of the models with unequal noise.

They are defined in ``botorch_lse.models``.
"""

from botorch_lse.models import (
    HeteroscedasticGP,
    QuadraticNoise,
    fit_heteroscedastic_gp,
)

__all__ = ["HeteroscedasticGP", "QuadraticNoise", "fit_heteroscedastic_gp"]
