r"""Posterior covariances between points, and the noise of future observations.

There are two classes with the same methods. ``ExactCovariance`` uses the Cholesky
factor of the training data, where the model is an exact GP. ``JointCovariance`` asks
any other model with a Gaussian posterior for its joint posterior at the points.
Covariances are those of the latent function, float64, in units of ``y`` squared.
``members`` is the batch shape ``S`` of an ensemble, ``()`` for other models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.utils.transforms import is_ensemble
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from torch import Tensor

from botorch_lse.checks import in_interval
from botorch_lse.models.gaussian_process import (
    GPPrior,
    PosteriorPath,
    factorize,
    least_noise,
    path_rows,
)

NoiseVar = float | Callable[[Tensor], Tensor]
"""One variance, or a function from ``b x q x d`` points to ``b x q`` variances; units
of ``y`` squared. A model (which is callable) counts by its ``predict_noise``."""
JOINT = 1024
"""Points on either side of one joint posterior, whose covariance matrix has the square
of their sum as entries. For many t-batches there are fewer points, so that it takes
some tens of MB in all."""
LEAST_JOINT = 16
"""With fewer points than this the number of posterior calls would cost more."""


@dataclass(frozen=True, eq=False)
class PreparedPoints:
    r"""Points with what every covariance between them needs, computed once.

    Args:
        F: ``... x S x p x d'``, the kernel's inputs.
        V: ``... x S x p x n``, the path rows: what the data explain of the covariances
            is ``V V'``. Without columns for ``JointCovariance``.
    """

    F: Tensor
    V: Tensor

    def rows(self, rows: Tensor | slice) -> PreparedPoints:
        r"""The points with the numbers ``rows``."""
        return PreparedPoints(self.F[..., rows, :], self.V[..., rows, :])

    def batches(self, batches: slice) -> PreparedPoints:
        r"""The points of some of the leading t-batches."""
        return PreparedPoints(self.F[batches], self.V[batches])


class ExactCovariance:
    r"""Posterior covariances of an exact GP, from the factor of its training data.

    ``k(x, x') - v(x)' v(x')`` with ``v = L^-1 k(train, x)``.

    Args:
        path: The posterior of the data and the pending points.

    Source:
        Rasmussen and Williams (2006), Eq. (2.24), in the form of Algorithm 2.1.
    """

    def __init__(self, path: PosteriorPath) -> None:
        self.path = path
        self.prior: GPPrior = path.prior
        self.members = path.prior.batch_shape

    def prepare(self, X: Tensor) -> PreparedPoints:
        r"""Prepare points ``S x p x d`` or ``b x S x p x d`` for covariances."""
        batch = X.shape[: X.ndim - 2 - len(self.members)]
        F = self.prior.features(_merge(X, len(batch)))
        V = path_rows(self.path.L, self.prior.covariance(self.path.F, F)).mT
        return PreparedPoints(_split(F, batch), _split(V, batch))

    def between(self, left: PreparedPoints, right: PreparedPoints) -> Tensor:
        r"""Covariances ``b x S x p x p'`` of ``left`` with ``right``.

        ``right`` may have no t-batches ``b``; it is then the same for all of them.
        """
        batch = left.F.shape[: left.F.ndim - right.F.ndim]
        F, V = _merge(left.F, len(batch)), _merge(left.V, len(batch))
        block = self.prior.covariance(F, right.F) - V @ right.V.mT
        return _split(block, batch)

    def variance(self, points: PreparedPoints) -> Tensor:
        r"""``S x p`` variances of points without ``b``."""
        gain = points.V.square().sum(dim=-1)
        return (self.prior.variance(points.F) - gain).clamp_min(0.0)

    def least_noise(self, X: Tensor) -> Tensor:
        r"""``S``: the least noise variance of an observation at ``S x p x d``."""
        return self.prior.least_noise(self.prior.features(X))

    def own_noise(self, X: Tensor) -> Tensor:
        r"""The model's own noise variances ``b x S x q`` at points ``b x q x d``.

        They are the same at all points. Only for models that know the noise of future
        observations; ``check_noise`` refuses others.
        """
        own, (*batch, q, _) = self.prior.noise_var, X.shape
        assert own is not None  # `check_noise` refuses such models
        return own.double().unsqueeze(-1).expand(*batch, *self.members, q)

    def after(self, X: Tensor, noise_var: Tensor) -> ExactCovariance:
        r"""The covariances after further points are observed, whatever their values.

        Args:
            X: ``S x p x d``.
            noise_var: ``S x p``.
        """
        return ExactCovariance(self.path.after(self.prior.features(X), noise_var))


class JointCovariance:
    r"""Posterior covariances of any model, from its joint posteriors at the points.

    Observations at pending points are conditioned on, as a block of the same posterior.

    Args:
        model: A model with a Gaussian posterior, no ensemble.
        posterior_transform: To one output.
        X_pending: ``p x d``, or ``None``.
        noise_var: ``p`` noise variances at the pending points, or ``None``.
    """

    members = torch.Size()

    def __init__(
        self,
        model: Model,
        posterior_transform: PosteriorTransform | None,
        X_pending: Tensor | None = None,
        noise_var: Tensor | None = None,
    ) -> None:
        self.model, self.posterior_transform = model, posterior_transform
        self.X_pending, self.noise_var = X_pending, noise_var

    def prepare(self, X: Tensor) -> PreparedPoints:
        r"""Points ``b x p x d`` unchanged: there is nothing to compute beforehand."""
        return PreparedPoints(X, X[..., :0])

    def between(self, left: PreparedPoints, right: PreparedPoints) -> Tensor:
        r"""Covariances ``b x p x p'`` of ``left`` with ``right``, in blocks.

        ``right`` may have no t-batches ``b``; it is then the same for all of them.
        """
        size = max(int((JOINT**2 / left.F.shape[:-2].numel()) ** 0.5), LEAST_JOINT)
        rows = [
            torch.cat([self._block(a, c) for c in right.F.split(size, dim=-2)], dim=-1)
            for a in left.F.split(size, dim=-2)
        ]
        return torch.cat(rows, dim=-2)

    def _block(self, left: Tensor, right: Tensor) -> Tensor:
        r"""Covariances of ``left`` with ``right`` from one joint posterior."""
        batch, p = left.shape[:-2], left.shape[-2]
        right = right.to(left).expand(*batch, *right.shape[-2:])
        if self.X_pending is None or self.noise_var is None:
            return self._joint(torch.cat((left, right), dim=-2))[..., :p, p:]
        n = self.X_pending.shape[-2]
        pending = self.X_pending.to(left).expand(*batch, n, left.shape[-1])
        C = self._joint(torch.cat((pending, left, right), dim=-2))
        noise = self.noise_var.expand(*batch, n)
        W = path_rows(factorize(C[..., :n, :n], noise), C[..., :n, n:])
        return C[..., n : n + p, n + p :] - W[..., :p].mT @ W[..., p:]

    def _joint(self, X: Tensor) -> Tensor:
        r"""The covariance matrix of the model's posterior at ``X``."""
        posterior = self.model.posterior(
            X, posterior_transform=self.posterior_transform
        )
        if not isinstance(posterior, GPyTorchPosterior):
            raise UnsupportedError(
                "Expected `model` to have a Gaussian posterior, but got "
                f"{type(posterior).__name__}. Use a Gaussian process without such an "
                "outcome transform."
            )
        return posterior.distribution.covariance_matrix.double()

    def variance(self, points: PreparedPoints) -> Tensor:
        r"""``p`` posterior variances, units of ``y`` squared."""
        parts = []
        for X in points.F.split(JOINT):
            each = X.unsqueeze(-2)
            parts.append(self._block(each, each)[:, 0, 0])
        return torch.cat(parts).clamp_min(0.0)

    def least_noise(self, X: Tensor) -> Tensor:
        r"""The least noise variance of an observation at ``p x d`` points.

        It is a share of the posterior variances, because the prior is not accessible.
        """
        return least_noise(self.variance(self.prepare(X)), X.dtype)

    def own_noise(self, X: Tensor) -> Tensor:
        r"""The model's own noise variances ``b x q`` at points ``b x q x d``.

        The difference of the posterior variances with and without noise.
        """
        noisy, latent = predicted_variances(self.model, X, self.posterior_transform)
        return (noisy.double() - latent.double()).clamp_min(0.0)

    def after(self, X: Tensor, noise_var: Tensor) -> JointCovariance:
        r"""The covariances after ``p x d`` further points are observed.

        Only for an object without pending points of its own.
        """
        return JointCovariance(self.model, self.posterior_transform, X, noise_var)


PosteriorCovariance = ExactCovariance | JointCovariance


def posterior_covariance(
    model: Model, posterior_transform: PosteriorTransform | None = None
) -> PosteriorCovariance:
    r"""``ExactCovariance`` if the model allows it, else ``JointCovariance``.

    Args:
        model: A fitted model.
        posterior_transform: Required for a model with several outputs.

    Raises:
        UnsupportedError: If an ensemble is not an exact GP with one output.
    """
    if posterior_transform is None:
        try:
            return ExactCovariance(PosteriorPath.from_model(model))
        except UnsupportedError:
            if is_ensemble(model):
                raise
    elif is_ensemble(model):
        raise UnsupportedError(
            "Expected `posterior_transform` to be None for an ensemble, but got "
            f"{type(posterior_transform).__name__}. Take one output with "
            "`model.subset_output([i])`."
        )
    return JointCovariance(model, posterior_transform)


def check_noise(noise_var: NoiseVar | None, model: Model) -> NoiseVar | None:
    r"""``noise_var`` as a number, a function, or ``None``: the model's own.

    Raises:
        UnsupportedError: If it is ``None`` and the model only knows the noise of its
            own data, or a model that predicts no noise.
        ValueError: If it is negative.
    """
    if noise_var is None or isinstance(noise_var, Model):
        source = model if noise_var is None else noise_var
        predicted: Any = getattr(source, "predict_noise", None)
        if predicted is not None:
            return predicted  # type: ignore[no-any-return]  # a method of the model
        if noise_var is not None:
            raise UnsupportedError(
                "Expected `noise_var` to be a number, a function of `X` or a model "
                "with `predict_noise`, such as `HeteroscedasticGP`, but got "
                f"{type(noise_var).__name__}."
            )
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
    return in_interval(noise_var, "noise_var", 0.0, float("inf"), closed_low=True)


def predicted_variances(
    model: Model, X: Tensor, posterior_transform: PosteriorTransform | None
) -> tuple[Tensor, Tensor]:
    r"""Posterior variances at ``... x q x d`` with and without the model's noise."""
    with torch.no_grad():
        posteriors: list[Any] = [
            model.posterior(
                X,
                observation_noise=is_noisy,
                posterior_transform=posterior_transform,
            )
            for is_noisy in (True, False)
        ]
    noisy, latent = (posterior.variance.squeeze(-1) for posterior in posteriors)
    return noisy, latent


def _merge(T: Tensor, n_batch: int) -> Tensor:
    r"""``b x S x p x k`` to ``S x (b p) x k``."""
    if n_batch == 0:
        return T
    T = T.movedim(tuple(range(n_batch)), tuple(range(-2 - n_batch, -2)))
    return T.flatten(-2 - n_batch, -2)


def _split(T: Tensor, batch: torch.Size) -> Tensor:
    r"""``S x (b p) x k`` to ``b x S x p x k``."""
    if not batch:
        return T
    p = T.shape[-2] // batch.numel()
    T = T.unflatten(-2, (*batch, p))
    return T.movedim(tuple(range(-2 - len(batch), -2)), tuple(range(len(batch))))
