r"""The noise variance of observations to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import Model
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from torch import Tensor

from botorch_lse.acquisition.covariance import ExactCovariance, PosteriorCovariance
from botorch_lse.checks import in_interval

NoiseVar = float | Callable[[Tensor], Tensor]
"""One variance, or a function from ``b x q x d`` points to ``b x q`` variances; units
of ``y`` squared. A model (which is callable) counts by its ``predict_noise``."""


def check_noise(noise_var: NoiseVar | None, model: Model) -> NoiseVar | None:
    r"""``noise_var`` as a number, a function, or ``None``: the model's own.

    Raises:
        UnsupportedError: If it is ``None`` and the model only knows the noise of its
            own data, or a model that predicts no noise.
        ValueError: If it is negative.
    """
    own: Any = getattr(model, "predict_noise", None)
    if noise_var is None and own is not None:
        return check_noise(own, model)
    if isinstance(noise_var, Model):
        predicted: Any = getattr(noise_var, "predict_noise", None)
        if predicted is None:
            raise UnsupportedError(
                "Expected `noise_var` to be a number, a function of `X` or a model "
                "with `predict_noise`, such as `HeteroscedasticGP`, but got "
                f"{type(noise_var).__name__}."
            )
        return check_noise(predicted, model)
    if noise_var is None:
        modules = model.modules()
        if any(isinstance(m, FixedNoiseGaussianLikelihood) for m in modules):
            raise UnsupportedError(
                "Expected `noise_var` for a model that knows the noise of its own "
                "observations only (`train_Yvar`), but got None. Give the variance of "
                "a future observation, a number or a function of `X`."
            )
        return None
    if callable(noise_var):
        return noise_var
    return in_interval(
        noise_var,
        "noise_var",
        0.0,
        float("inf"),
        closed_low=True,
    )


def future_noise(
    noise_var: NoiseVar | None,
    X: Tensor,
    covariance: PosteriorCovariance,
    model: Model,
    posterior_transform: PosteriorTransform | None,
) -> Tensor:
    r"""Noise variances at ``X``: ``b x q x d`` to ``b x S x q``, float64.

    Args:
        noise_var: From ``check_noise``.
        X: ``b x q x d``.
        covariance: The model's; it knows ``S``.
        model: A fitted model.
        posterior_transform: To one output.

    Raises:
        BotorchTensorDimensionError: If a function returns another shape than ``b x q``.
        ValueError: If it returns a negative variance.
    """
    members = covariance.members
    *batch, q, _ = X.shape
    if noise_var is None and isinstance(covariance, ExactCovariance):
        own = covariance.prior.noise_var
        assert own is not None  # `check_noise` refuses such models
        return own.double().unsqueeze(-1).expand(*batch, *members, q)
    if noise_var is None:
        return _noise_of_posterior(model, X, posterior_transform)
    if not callable(noise_var):
        filled = torch.full((), noise_var, dtype=torch.float64, device=X.device)
        return filled.expand(*batch, *members, q)
    found = torch.as_tensor(noise_var(X), dtype=torch.float64, device=X.device)
    if found.shape != X.shape[:-1]:
        raise BotorchTensorDimensionError(
            f"Expected `noise_var` to map b x q x d points to b x q variances, here "
            f"{tuple(X.shape[:-1])}, but got shape {tuple(found.shape)}."
        )
    if not bool((found >= 0).all()):
        raise ValueError(
            "Expected `noise_var` to return variances of at least 0, but the smallest "
            f"is {float(found.min()):g}."
        )
    found = found[(..., *[None] * len(members), slice(None))]
    return found.expand(*batch, *members, q)


def _noise_of_posterior(
    model: Model, X: Tensor, posterior_transform: PosteriorTransform | None
) -> Tensor:
    variances = []
    with torch.no_grad():
        for observed in (True, False):
            posterior: Any = model.posterior(
                X,
                observation_noise=observed,
                posterior_transform=posterior_transform,
            )
            variances.append(posterior.variance.squeeze(-1).double())
    return (variances[0] - variances[1]).clamp_min(0.0)
