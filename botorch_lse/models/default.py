r"""Models: training tensors in, a fitted BoTorch model or a fixed prior out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import InputTransform
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
    get_gaussian_likelihood_with_lognormal_prior,
)
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel, RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_lse.models.prior import GPPrior

TINY = 1e-300
"""Below this the spread of the values counts as none; in any units it is far below."""

ModelFactory = Callable[[Tensor, Tensor, Tensor | None], Model]
ModelArgument: TypeAlias = ModelFactory | Model | Kernel | GPPrior | None


def fit_single_task_gp(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor
) -> SingleTaskGP:
    r"""The default model: BoTorch's ``SingleTaskGP``, fitted from its initial values.

    Args:
        train_X: ``n x d``.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn one noise variance.
        bounds: ``2 x d`` bounds of the pool, for the input scaling.
    """
    scale = Normalize(train_X.shape[-1], bounds=bounds)
    return fit_with_inputs(train_X, train_Y, train_Yvar, scale, train_X.shape[-1])


def fit_with_inputs(
    train_X: Tensor,
    train_Y: Tensor,
    train_Yvar: Tensor | None,
    input_transform: InputTransform,
    d: int,
) -> SingleTaskGP:
    r"""The default model after an input transform.

    Args:
        train_X: ``n x d'``.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn one noise variance.
        input_transform: From the columns of ``train_X`` to the kernel's.
        d: The kernel's columns.
    """
    model = SingleTaskGP(
        train_X,
        train_Y,
        train_Yvar,
        likelihood=default_likelihood() if train_Yvar is None else None,
        covar_module=default_kernel(d),
        input_transform=input_transform,
        outcome_transform=Standardize(1, min_stdv=TINY),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def default_kernel(d: int) -> RBFKernel:
    r"""BoTorch's default kernel of ``d`` inputs, in float64 whatever torch's default.

    BoTorch states prior, bound and initial value in the default precision, so that a
    fit would depend on a setting that has nothing to do with the data.

    Source:
        Hvarfner et al. (2024), in the form of BoTorch's
        ``get_covar_module_with_dim_scaled_prior``.
    """
    kernel: RBFKernel = get_covar_module_with_dim_scaled_prior(d).double()
    prior = LogNormalPrior(_double(2**0.5 + math.log(d) * 0.5), _double(3**0.5))
    kernel.register_prior("lengthscale_prior", prior, "lengthscale")
    kernel.register_constraint("raw_lengthscale", _above(2.5e-2, prior.mode))
    return kernel


def default_likelihood() -> GaussianLikelihood:
    r"""BoTorch's default likelihood likewise."""
    likelihood = get_gaussian_likelihood_with_lognormal_prior().double()
    prior = LogNormalPrior(_double(-4.0), _double(1.0))
    noise = likelihood.noise_covar
    noise.register_prior("noise_prior", prior, "noise")
    noise.register_constraint("raw_noise", _above(1e-4, prior.mode))
    return likelihood


def _above(bound: float, initial_value: Tensor) -> GreaterThan:
    r"""A bound in float64, which GPyTorch makes in the default precision."""
    found = GreaterThan(bound, transform=None, initial_value=initial_value).double()
    found.lower_bound.fill_(bound)
    return found


def _double(value: float) -> Tensor:
    r"""A float64 tensor."""
    return torch.tensor(value, dtype=torch.float64)


def unfitted_prior(bounds: Tensor) -> GPPrior:
    r"""The default model's prior before any data: scaled inputs, unit variance.

    It places first observations; nothing is classified with it.
    """
    d = bounds.shape[-1]
    scale = Normalize(d, bounds=bounds).eval()
    prior = GPPrior.from_kernel(default_kernel(d))
    return replace(prior, transform_inputs=scale)


def fixed_prior(model: ModelArgument) -> GPPrior | None:
    r"""The prior of an argument with fixed hyper-parameters; ``None`` for a factory.

    Args:
        model: A fitted BoTorch model (its data are ignored; kernel, mean, noise and
            transforms are taken), a GPyTorch kernel (zero mean, units of ``y``), a
            ``GPPrior``, a factory, or ``None``.

    Raises:
        UnsupportedError: If it is none of these, or not exact (``GPPrior.from_model``).
    """
    if isinstance(model, GPPrior):
        return model
    if isinstance(model, Kernel):
        return GPPrior.from_kernel(model)
    if isinstance(model, Model):
        return GPPrior.from_model(model)
    if model is None or callable(model):
        return None
    raise UnsupportedError(
        "Expected `model` to be None, a callable (train_X, train_Y, train_Yvar) -> "
        "fitted BoTorch model, a fitted BoTorch model, or a GPyTorch kernel, but got "
        f"{type(model).__name__}."
    )
