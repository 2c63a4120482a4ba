r"""Models: training tensors in, a fitted BoTorch model or a fixed prior out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Normalize, Standardize
from botorch.models.utils.gpytorch_modules import (
    get_covar_module_with_dim_scaled_prior,
)
from gpytorch.kernels import Kernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_lse.prior import GPPrior

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
    model = SingleTaskGP(
        train_X,
        train_Y,
        train_Yvar,
        input_transform=Normalize(train_X.shape[-1], bounds=bounds),
        outcome_transform=Standardize(1, min_stdv=TINY),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def unfitted_prior(bounds: Tensor) -> GPPrior:
    r"""The default model's prior before any data: scaled inputs, unit variance.

    It places first observations; nothing is classified with it.
    """
    d = bounds.shape[-1]
    kernel = get_covar_module_with_dim_scaled_prior(ard_num_dims=d, use_rbf_kernel=True)
    scale = Normalize(d, bounds=bounds).eval()
    base = GPPrior.from_kernel(kernel.to(torch.float64))
    return GPPrior(
        base.mean_module, base.covar_module, base.scale, base.shift, None, scale
    )


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
