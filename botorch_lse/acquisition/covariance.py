r"""Posterior covariances between points, and the noise of future observations.

There are two classes with the same methods. ``ExactCovariance`` uses the Cholesky
factor of the training data, where the model is an exact GP. ``JointCovariance`` asks
any other model with a Gaussian posterior for its joint posterior at the points.
Covariances are those of the latent function, float64, in units of ``y`` squared.
``members`` is the batch shape ``S`` of an ensemble, ``()`` for other models.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model, ModelList
from botorch.models.transforms.input import ChainedInputTransform, InputPerturbation
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.utils.transforms import is_ensemble
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from torch import Tensor

from botorch_lse._validation import in_interval
from botorch_lse.models.gaussian_process import (
    GPPrior,
    PosteriorPath,
    factorize,
    least_noise,
    path_rows,
)

NoiseVar = float | Callable[[Tensor], Tensor]
"""The noise variance of an observation: a number, or a function of points.
``b x q x d`` to ``b x q``, in ``y`` squared. A model, which is callable, counts by its
``predict_noise``."""
JOINT = 1024
"""The number of points on either side of one joint posterior.
Its covariance matrix has the square of their sum as entries. For many t-batches there
are fewer points, so that it takes some tens of MB in all."""
LEAST_JOINT = 16
"""The least number of points of a posterior: with fewer, the calls would cost more."""


@dataclass(frozen=True, eq=False)
class PreparedPoints:
    r"""Points with all that covariances between them need, computed once.

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

    def measured(self, X: Tensor) -> PreparedPoints:
        r"""Prepare points where the function is measured, as where it is meant."""
        return self.prepare(X)

    is_of_averages = False

    def between(self, left: PreparedPoints, right: PreparedPoints) -> Tensor:
        r"""The covariances of ``left`` with ``right`` (``b x S x p x p'``).

        ``right`` may have no t-batches ``b``; it is then the same for all of them.
        """
        batch = left.F.shape[: left.F.ndim - right.F.ndim]
        F, V = _merge(left.F, len(batch)), _merge(left.V, len(batch))
        block = self.prior.covariance(F, right.F) - V @ right.V.mT
        return _split(block, batch)

    def variance(self, points: PreparedPoints) -> Tensor:
        r"""The variances of points without t-batches ``b`` (``S x p``)."""
        gain = points.V.square().sum(dim=-1)
        return (self.prior.variance(points.F) - gain).clamp_min(0.0)

    def least_noise(self, X: Tensor) -> Tensor:
        r"""The least noise variances of an observation at ``S x p x d`` (``S``)."""
        return self.prior.least_noise(self.prior.features(X))

    def own_noise(self, X: Tensor) -> Tensor:
        r"""The model's own noise variances (``b x S x q``) at points ``b x q x d``.

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


class Averages:
    r"""The subject of a posterior and of measurements, where these are not the same.

    A model with an ``InputPerturbation`` makes several points of one, and a transform
    such as ``ExpectationPosteriorTransform`` takes the average of the function at them:
    ``g(x) = sum_w weight_w f(x + e_w)`` is what matters. A measurement is one of
    ``f(x)`` at the point itself. Both are averages over ``n_w`` points, ``f(x)`` over
    copies of one, and so have one joint posterior. For other models ``n_w = 1`` and
    both are the function.

    Args:
        model: A fitted model.
        posterior_transform: To one output.
    """

    def __init__(
        self, model: Model, posterior_transform: PosteriorTransform | None
    ) -> None:
        if isinstance(model, ModelList) and len(model.models) == 1:
            (model,) = model.models  # type: ignore[assignment]  # a Module
        self.model, self.posterior_transform = model, posterior_transform
        self.n_w = int(getattr(posterior_transform, "n_w", 1))

    @property
    def are_meant(self) -> bool:
        r"""Whether averages are meant rather than the function itself."""
        return makes_several(self.model)

    def meant(self, X: Tensor) -> Tensor:
        r"""The points for what is meant (``... x p x d`` to ``... x p x (n_w d')``)."""
        if not self.are_meant:
            return X
        self.model.eval()
        return self._side_by_side(self.model.transform_inputs(X), X.shape[-2])

    def measured(self, X: Tensor) -> Tensor:
        r"""The points for measurements (``... x p x d`` to ``... x p x (n_w d')``).

        Raises:
            UnsupportedError: If it is not known what is measured at a point.
        """
        if not self.are_meant:
            self._check_parts()
            return X
        copies = self._unperturbed(X).repeat_interleave(self.n_w, dim=-2)
        return self._side_by_side(copies, X.shape[-2])

    def _check_parts(self) -> None:
        r"""Refuse several models of which one makes several points of one."""
        parts = self.model.models if isinstance(self.model, ModelList) else ()
        if any(makes_several(part) for part in parts):
            raise UnsupportedError(
                "Expected one model where a point becomes several, but got a "
                f"{type(self.model).__name__}. Take one: `model.subset_output([i])`."
            )

    def _unperturbed(self, X: Tensor) -> Tensor:
        r"""The model's features of the points themselves."""
        transform: Any = self.model.input_transform
        chain = isinstance(transform, ChainedInputTransform)
        self.model.eval()
        for part in transform.values() if chain else [transform]:
            if isinstance(part, InputPerturbation):
                continue
            if part.is_one_to_many:
                raise UnsupportedError(
                    "Expected an `InputPerturbation` where a point becomes several, "
                    f"but got {type(part).__name__}, with which it is not known where "
                    "a measurement is made. Take a class for one point, such as "
                    "`Straddle`, without `X_pending`."
                )
            X = part(X)
        return X

    def _side_by_side(self, X: Tensor, p: int) -> Tensor:
        r"""The ``n_w`` points of each of ``p`` ones as the columns of one row."""
        n_w = X.shape[-2] // p
        if n_w != self.n_w:
            raise UnsupportedError(_wrong_number(n_w * p, p, self.n_w))
        return X.unflatten(-2, (p, n_w)).flatten(-2)

    def posterior(self, F: Tensor) -> Any:
        r"""The joint posterior at what ``meant`` and ``measured`` gave.

        Raises:
            UnsupportedError: If it has not one number for each.
        """
        if self.are_meant:
            points = F.unflatten(-1, (self.n_w, -1)).flatten(-3, -2)
            found = self._asked(points, False, self._bare)
        else:
            is_one = not isinstance(self.model, ModelList)
            if is_one and self.n_w > 1:  # BoTorch would fail with a bare error
                raise UnsupportedError(_wrong_number(F.shape[-2], 1, self.n_w))
            found = self._asked(F)
        check_posterior(found, F.shape[-2])
        return found

    def variances(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""The variances of measurements (``... x q x d``), with and without noise."""
        noisy: Any
        latent: Any
        with torch.no_grad():
            if self.are_meant:  # of the function itself, which is measured
                X, bare = self._unperturbed(X), self._bare
                noisy = bare.posterior(X, observation_noise=True)
                latent = bare.posterior(X)
            else:
                noisy, latent = self._asked(X, True), self._asked(X)
            return noisy.variance.squeeze(-1), latent.variance.squeeze(-1)

    def _asked(
        self, X: Tensor, is_noisy: bool = False, model: Model | None = None
    ) -> Any:
        r"""A model's posterior at ``... x p x d`` points, after the transform."""
        try:
            return (model or self.model).posterior(
                X,
                observation_noise=is_noisy,
                posterior_transform=self.posterior_transform,
            )
        except (NotImplementedError, AttributeError, IndexError) as error:
            if not isinstance(self.model, ModelList):
                raise
            raise UnsupportedError(
                "Expected a model list whose joint posterior `posterior_transform` can "
                f"take, but BoTorch says: {error}. Take the output by itself: "
                "`model.subset_output([i])`, and leave `posterior_transform` out."
            ) from error

    @property
    def _bare(self) -> Model:
        r"""The model on features, which no input transform changes any more."""
        self.model.eval()  # which brings its training inputs there
        bare = copy(self.model)
        parts = bare.__dict__["_modules"]
        bare.__dict__["_modules"] = {
            name: part for name, part in parts.items() if name != "input_transform"
        }
        return bare


def makes_several(model: Any) -> bool:
    r"""Whether an input transform of a model makes several points of one."""
    transform = getattr(model, "input_transform", None)
    several = getattr(transform, "is_one_to_many", False)
    return bool(several and getattr(transform, "transform_on_eval", True))


def check_posterior(posterior: Any, n_points: int) -> None:
    r"""Complain unless a posterior has exactly one number for each point.

    Args:
        posterior: At ``... x n_points x d`` points.
        n_points: How many there are.

    Raises:
        UnsupportedError: If it has others.
    """
    try:
        found = posterior.mean.shape[-2:]
    except NotImplementedError:  # a transform of outcomes whose mean is not known
        check_gaussian(posterior)
        raise
    if found[0] != n_points:
        raise UnsupportedError(_wrong_number(found[0], n_points, 1))
    if found[1] != 1:
        raise UnsupportedError(
            f"Expected one output, but the posterior has {found[1]}. Take one with "
            "`model.subset_output([i])`, or give a `ScalarizedPosteriorTransform`."
        )


def check_gaussian(posterior: Any) -> None:
    r"""Complain about a posterior that is not Gaussian.

    Raises:
        UnsupportedError: If it is another.
    """
    if not isinstance(posterior, GPyTorchPosterior):
        raise UnsupportedError(
            "Expected `model` to have a Gaussian posterior, but got "
            f"{type(posterior).__name__}. Use a Gaussian process, without a transform "
            "of outcomes such as `Log`: transform the values beforehand."
        )


def _wrong_number(n_found: int, n_points: int, n_w: int) -> str:
    r"""The complaint where points become more or fewer, with a remedy."""
    wanted = f"Expected the posterior at {n_points} points to have as many numbers"
    if n_w == 1 and n_found > n_points:
        return (
            f"{wanted}, but it has {n_found}: an input transform of `model`, such as "
            "`InputPerturbation`, makes several points of one. Give "
            "`posterior_transform=ExpectationPosteriorTransform(n_w="
            f"{n_found // n_points})`: the level is then one of the average over them. "
            "Classes of batches, and `X_pending`, take no other such transform than "
            "`InputPerturbation`."
        )
    return (
        f"{wanted}, but there are {n_found} before `posterior_transform` averages over "
        f"{n_w} each. Give it the number of points that the input transform of `model` "
        "makes of one; without such a transform leave it out."
    )


class JointCovariance:
    r"""Posterior covariances of any model, from its joint posteriors at the points.

    Observations at pending points are conditioned on, as a block of the same posterior.

    Args:
        model: A model with a Gaussian posterior, no ensemble.
        posterior_transform: To one output.
        X_pending: ``p x (n_w d')`` as ``Averages.measured`` gives them, or ``None``.
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
        self.averages = Averages(model, posterior_transform)
        self.X_pending, self.noise_var = X_pending, noise_var

    def prepare(self, X: Tensor) -> PreparedPoints:
        r"""Prepare points ``b x p x d`` for what is meant, computing nothing yet."""
        F = self.averages.meant(X)
        return PreparedPoints(F, F[..., :0])

    def measured(self, X: Tensor) -> PreparedPoints:
        r"""Prepare points ``b x p x d`` for what is measured there."""
        F = self.averages.measured(X)
        return PreparedPoints(F, F[..., :0])

    @property
    def is_of_averages(self) -> bool:
        r"""Whether what is meant at a point is not what is measured there."""
        return self.averages.are_meant

    def between(self, left: PreparedPoints, right: PreparedPoints) -> Tensor:
        r"""The covariances of ``left`` with ``right`` (``b x p x p'``), in blocks.

        ``right`` may have no t-batches ``b``; it is then the same for all of them.
        """
        size = max(int((JOINT**2 / left.F.shape[:-2].numel()) ** 0.5), LEAST_JOINT)
        rows = [
            torch.cat([self._block(a, c) for c in right.F.split(size, dim=-2)], dim=-1)
            for a in left.F.split(size, dim=-2)
        ]
        return torch.cat(rows, dim=-2)

    def _block(self, left: Tensor, right: Tensor) -> Tensor:
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
        posterior = self.averages.posterior(X)
        check_gaussian(posterior)
        return posterior.distribution.covariance_matrix.double()

    def variance(self, points: PreparedPoints) -> Tensor:
        r"""The posterior variances of points (``p``), units of ``y`` squared."""
        blocks = (self._block(X, X) for X in in_groups(points.F))
        own = [block.diagonal(dim1=-2, dim2=-1).flatten() for block in blocks]
        return torch.cat(own).clamp_min(0.0)

    def least_noise(self, X: Tensor) -> Tensor:
        r"""The least noise variance of an observation at ``p x d`` points.

        It is a share of the posterior variances, because the prior is not accessible.
        """
        return least_noise(self.variance(self.prepare(X)), X.dtype)

    def own_noise(self, X: Tensor) -> Tensor:
        r"""The model's own noise variances (``b x q``) at points ``b x q x d``.

        The difference of the posterior variances with and without noise.
        """
        noisy, latent = self.averages.variances(X)
        return (noisy.double() - latent.double()).clamp_min(0.0)

    def after(self, X: Tensor, noise_var: Tensor) -> JointCovariance:
        r"""The covariances after ``p x d`` further points are observed.

        Only for an object without pending points of its own.
        """
        at = self.averages.measured(X)
        return JointCovariance(self.model, self.posterior_transform, at, noise_var)


def in_groups(X: Tensor) -> list[Tensor]:
    r"""Points ``p x d`` as t-batches of some points, for what is asked of each alone.

    A posterior for each point would take all inducing points or data as often.
    """
    groups = []
    for part in X.split(JOINT):
        whole = len(part) // LEAST_JOINT * LEAST_JOINT
        if whole > 0:
            groups.append(part[:whole].unflatten(0, (-1, LEAST_JOINT)))
        if whole < len(part) or len(X) == 0:
            groups.append(part[whole:].unsqueeze(0))
    return groups


PosteriorCovariance = ExactCovariance | JointCovariance


def posterior_covariance(
    model: Model, posterior_transform: PosteriorTransform | None = None
) -> PosteriorCovariance:
    r"""An ``ExactCovariance`` if the model allows it, else a ``JointCovariance``.

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
    r"""The ``noise_var`` as a number, a function, or ``None``: the model's own.

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


def _merge(T: Tensor, n_batch: int) -> Tensor:
    if n_batch == 0:
        return T
    T = T.movedim(tuple(range(n_batch)), tuple(range(-2 - n_batch, -2)))
    return T.flatten(-2 - n_batch, -2)


def _split(T: Tensor, batch: torch.Size) -> Tensor:
    if not batch:
        return T
    p = T.shape[-2] // batch.numel()
    T = T.unflatten(-2, (*batch, p))
    return T.movedim(tuple(range(-2 - len(batch), -2)), tuple(range(len(batch))))
