r"""The likelihood of the default model with its gradient in closed form.

GPyTorch's own, by automatic differentiation, spends most of its time on other things
than arithmetic while values are few, and a fit asks for it some forty times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

MEAN = "model.mean_module.raw_constant"
LENGTHSCALE = "model.covar_module.raw_lengthscale"
NOISE = "likelihood.noise_covar.raw_noise"
PRIORS = {
    "covar_module.lengthscale_prior": LENGTHSCALE,
    "likelihood.noise_covar.noise_prior": NOISE,
}
_LOG_2PI = math.log(2 * math.pi)


def fit_likelihood(mll: ExactMarginalLogLikelihood) -> None:
    r"""Fit a model by BoTorch, with the gradient in closed form where there is one.

    The same optimiser takes the same steps, up to rounding.

    Args:
        mll: The marginal log likelihood of the model.

    Raises:
        ModelFittingError: If no attempt ends.
    """
    fit_gpytorch_mll(mll, closure=Likelihood(mll) if has_closed_form(mll) else None)


def has_closed_form(mll: ExactMarginalLogLikelihood) -> bool:
    r"""Whether ``Likelihood`` knows the model: squared exponentials and their noise.

    Args:
        mll: The marginal log likelihood of the model.
    """
    model: Any = mll.model
    likelihood: Any = mll.likelihood
    if type(model) is not SingleTaskGP or model.num_outputs > 1 or model.batch_shape:
        return False
    kernel = model.covar_module
    parts = kernel, model.mean_module, likelihood
    if (type(kernel), type(model.mean_module)) != (RBFKernel, ConstantMean):
        return False
    if type(likelihood) not in (GaussianLikelihood, FixedNoiseGaussianLikelihood):
        return False
    constraints = [found for part in parts for found in part.constraints()]
    are_plain = all(constraint._transform is None for constraint in constraints)
    listed: Any = mll.model.named_priors()
    priors = {(name, type(prior)) for name, _, prior, _, _ in listed}
    are_known = priors <= {(name, LogNormalPrior) for name in PRIORS}
    names = {name for name, _ in mll.named_parameters()}
    is_alone = kernel.active_dims is None and names <= {MEAN, LENGTHSCALE, NOISE}
    return are_plain and are_known and is_alone


@dataclass(frozen=True, eq=False)
class Likelihood:
    r"""The loss of a fit and its gradient: a closure for ``fit_gpytorch_mll``.

    With ``S = K + noise``, ``r = y - mean`` and ``a = S^-1 r`` the log density of ``n``
    values is ``-(r a + log det S + n log 2 pi) / 2``, and its derivative by an entry of
    ``S`` that of ``W / 2``, with ``W = a a^T - S^-1`` (Rasmussen and Williams 2006,
    equations 2.30 and 5.9). The loss is minus this and the log densities of the priors,
    divided by ``n``.

    Args:
        mll: The marginal log likelihood of a model with ``has_closed_form``, in
            training mode.
    """

    mll: ExactMarginalLogLikelihood

    @cached_property
    def X(self) -> Tensor:
        r"""The points that the kernel sees, ``n x d``."""
        model: Any = self.mll.model
        with torch.no_grad():
            X: Tensor = model.transform_inputs(model.train_inputs[0])
            return X - X.mean(dim=0)  # distances of large numbers lose digits

    @cached_property
    def _parameters(self) -> dict[str, Tensor]:
        return dict(self.mll.named_parameters())

    @cached_property
    def _priors(self) -> list[tuple[str, Tensor, Tensor]]:
        r"""The parameter of each prior, and the prior's two parameters."""
        priors: Any = self.mll.model.named_priors()
        return [
            (PRIORS[name], prior.loc, prior.scale) for name, _, prior, _, _ in priors
        ]

    def __call__(self) -> tuple[Tensor, list[Tensor]]:
        r"""The loss and its gradient by each parameter that is not held."""
        model: Any = self.mll.model
        with torch.no_grad():
            values = {name: p.view(-1) for name, p in self._parameters.items()}
            lengthscale, n = values[LENGTHSCALE], len(self.X)
            noise = values.get(NOISE)
            Z = self.X / lengthscale
            norms = Z.square().sum(dim=-1)
            K = (norms.unsqueeze(-1) + norms).addmm_(Z, Z.mT, alpha=-2).clamp_min_(0)
            K = K.fill_diagonal_(0).mul_(-0.5).exp_()
            S = K.clone()
            S.diagonal().add_(self.mll.likelihood.noise if noise is None else noise)
            L = psd_safe_cholesky(S)
            inverse = torch.cholesky_inverse(L)
            r = model.train_targets - values[MEAN]
            a = inverse @ r
            loss = 0.5 * (r @ a + n * _LOG_2PI) + L.diagonal().log().sum()
            W = a.outer(a) - inverse
            M = W * K  # d S_ij / d l_k = K_ij (z_ik - z_jk)^2 / l_k
            spread = M.sum(dim=0) @ Z.square() - ((M @ Z) * Z).sum(dim=0)
            slopes = {
                MEAN: a.sum(),
                LENGTHSCALE: spread / lengthscale,
                NOISE: 0.5 * W.diagonal().sum(),
            }
            for of, centre, scale in self._priors:
                log = values[of].log()
                far = (log - centre) / scale
                loss += (log + scale.log() + 0.5 * (far.square() + _LOG_2PI)).sum()
                slopes[of] = slopes[of] - (1 + far / scale) / values[of]
            return loss / n, [
                (-slopes[name] / n).view(parameter.shape)
                for name, parameter in self._parameters.items()
                if parameter.requires_grad
            ]
