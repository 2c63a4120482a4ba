r"""What all acquisition functions of a marginal posterior share."""

from __future__ import annotations

from abc import ABC
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.utils.transforms import is_ensemble
from gpytorch.likelihoods import (
    Likelihood,
    LikelihoodList,
    MultitaskGaussianLikelihood,
)
from torch import Tensor

from botorch_lse.checks import check_columns, finite_number
from botorch_lse.confidence.regions import safe_sqrt
from botorch_lse.functional.jitter import least_noise
from botorch_lse.functional.path import factorize, path_rows


class MarginalAcquisitionFunction(AcquisitionFunction, ABC):
    r"""An acquisition function of mean and standard deviation at one point.

    Pending points shrink the standard deviation and leave the mean, since the posterior
    variance does not depend on the values to come. That makes greedy batches with
    ``optimize_acqf(..., sequential=True)`` and ``optimize_acqf_discrete(q > 1)`` sound.
    (The latter's ``unique=True`` never measures a point twice in a batch.)

    Source:
        Gotovos et al. (2013), section 4.2; Desautels et al. (2012).
    """

    def __init__(
        self,
        model: Model,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        r"""Checks of the model and its transform.

        Args:
            model: A fitted model with a Gaussian posterior.
            posterior_transform: Required for a model with several outputs.
            X_pending: ``n' x d`` points submitted and not observed yet.

        Raises:
            UnsupportedError: If the model has several outputs and no transform.
        """
        super().__init__(model=model)
        check_outputs(model, posterior_transform)
        self.posterior_transform = posterior_transform
        self._pending_noise: Tensor | None = None
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Points that are out: they shrink the variance.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix with the columns of the
                model's inputs.
        """
        X_pending = pending_matrix(X_pending)
        if X_pending is not None:
            check_columns(self._posterior, X_pending, "X_pending")
        super().set_X_pending(X_pending)
        self._pending_noise = None if X_pending is None else self._noise(X_pending)

    def _noise(self, X: Tensor) -> Tensor:
        with torch.no_grad():
            noisy, latent = (
                self._posterior(X, noisy).variance.squeeze(-1)
                for noisy in (True, False)
            )
        return (noisy - latent).clamp_min(0.0)

    def _mean_and_sigma(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""Mean and shrunken standard deviation.

        Args:
            X: ``batch_shape x 1 x d``.

        Returns:
            Two tensors ``batch_shape``, with the ensemble's dimension last if any.
        """
        self.to(X)
        if self.X_pending is None:
            posterior = self._posterior(X)
            mean, variance = posterior.mean, posterior.variance
            return mean[..., 0, 0], safe_sqrt(variance[..., 0, 0])
        pending = self.X_pending.to(X)
        pending = pending.expand(*X.shape[:-2], *pending.shape)
        posterior = self._posterior(torch.cat((X, pending), dim=-2))
        if not isinstance(posterior, GPyTorchPosterior):
            raise UnsupportedError(
                "Expected a Gaussian posterior with `X_pending`, but got "
                f"{type(posterior).__name__}. Leave `X_pending` out, or use a model "
                "without such an outcome transform."
            )
        covariance = posterior.distribution.covariance_matrix
        noise = self._pending_noise.to(X)  # type: ignore[union-attr]  # set together
        noise = noise.expand(covariance.shape[:-2] + noise.shape[-1:])
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        least = least_noise(variance, covariance.dtype)
        L = factorize(covariance[..., 1:, 1:], noise, least)
        rows = path_rows(L, covariance[..., 1:, :1]).squeeze(-1).to(X)
        left = variance[..., 0] - rows.square().sum(dim=-1)
        return posterior.mean[..., 0, 0], safe_sqrt(left)

    def _posterior(self, X: Tensor, observation_noise: bool = False) -> Any:
        return self.model.posterior(
            X,
            observation_noise=observation_noise,
            posterior_transform=self.posterior_transform,
        )

    @property
    def is_ensemble(self) -> bool:
        r"""Whether values are averages over an ensemble."""
        return is_ensemble(self.model)


def check_outputs(model: Model, posterior_transform: PosteriorTransform | None) -> None:
    r"""Complain unless the model, with its transform, has one output.

    Raises:
        UnsupportedError: If the model has several outputs and no transform.
    """
    if not isinstance(model, Model):
        raise UnsupportedError(
            "Expected `model` to be a fitted BoTorch model, but got "
            f"{type(model).__name__}."
        )
    check_likelihood(model)
    if posterior_transform is None and model.num_outputs != 1:
        raise UnsupportedError(
            "Expected `posterior_transform` for a model with several outputs, but "
            f"`model` has {model.num_outputs} and it is None. Give one, such as "
            "`ScalarizedPosteriorTransform`; the threshold is in its units."
        )
    if posterior_transform is not None and not isinstance(
        posterior_transform, PosteriorTransform
    ):
        raise UnsupportedError(
            "Expected `posterior_transform` to be a PosteriorTransform, but got "
            f"{type(posterior_transform).__name__}."
        )


def check_likelihood(model: Model) -> None:
    r"""Complain about a model whose latent function is not in the units of ``y``.

    A classifier's posterior is that of a latent function which a link squeezes into
    probabilities: a level between 0 and 1 means nothing on its scale, and neither does
    the noise variance of an observation.

    Raises:
        UnsupportedError: If a likelihood is a link, without a noise variance.
    """
    for module in model.modules():
        if not isinstance(module, Likelihood) or isinstance(module, LikelihoodList):
            continue
        gaussian = isinstance(module, MultitaskGaussianLikelihood)
        if not gaussian and not hasattr(module, "noise"):
            raise UnsupportedError(
                "Expected `model` to have a likelihood that adds noise to the "
                f"function, but got {type(module).__name__}, whose latent function is "
                "not in the units of `y`. Fit a `SingleTaskGP` to means of replicates "
                "(shares of successes, with `train_Yvar`)."
            )


def pending_matrix(X_pending: Tensor | None) -> Tensor | None:
    r"""``n' x d`` pending points; ``None`` if there are none.

    Raises:
        BotorchTensorDimensionError: If it is not a matrix.
        ValueError: If it is not finite.
    """
    if X_pending is not None and not bool(torch.isfinite(X_pending).all()):
        raise ValueError("Expected `X_pending` to be finite. Leave out other rows.")
    if X_pending is not None and X_pending.ndim != 2:
        raise BotorchTensorDimensionError(
            "Expected `X_pending` to be n' x d, but got shape "
            f"{tuple(X_pending.shape)}."
        )
    return None if X_pending is None or X_pending.shape[0] == 0 else X_pending


def level_buffer(value: float | Tensor, name: str) -> Tensor:
    r"""A scalar level as a tensor for a buffer.

    Raises:
        BotorchTensorDimensionError: If it has more than one entry.
        ValueError: If it is not finite.
    """
    if isinstance(value, Tensor) and value.numel() != 1:
        raise BotorchTensorDimensionError(
            f"Expected `{name}` to be a scalar in the units of `y`, but got shape "
            f"{tuple(value.shape)}."
        )
    return torch.tensor(finite_number(value, name), dtype=torch.float64)
