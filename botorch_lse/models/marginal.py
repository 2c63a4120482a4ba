r"""The likelihood of the default models with its gradient in closed form.

GPyTorch's own, by automatic differentiation, spends most of its time on other things
than arithmetic while values are few, and a fit asks for it up to a thousand times.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

import torch
from botorch.exceptions.warnings import OptimizationWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.kernels import CategoricalKernel
from botorch.optim.core import (
    OptimizationResult,
    OptimizationStatus,
    scipy_minimize,
)
from botorch.optim.utils import get_parameters_and_bounds
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior, NormalPrior
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from botorch_lse.models.source_kernels import Loadings

Slope = tuple[Tensor, Tensor]
"""A parameter, and the derivative of the loss by it."""
_LOG_2PI = math.log(2 * math.pi)


def fit_likelihood(mll: ExactMarginalLogLikelihood) -> None:
    r"""Fit a model by BoTorch, with the gradient in closed form where there is one.

    Of numbers it takes BoTorch's steps and ends where BoTorch ends, up to rounding.
    With words it goes over logarithms, in a twentieth of the steps and at least as far.

    Args:
        mll: The marginal log likelihood of the model.

    Raises:
        ModelFittingError: If no attempt ends.
    """
    closure = likelihood_of(mll)
    if closure is None or type(closure.kernel) is SquaredExponential:
        fit_gpytorch_mll(mll, closure=closure)
    else:
        fit_gpytorch_mll(mll, closure=closure, optimizer=minimized_over_logarithms)


def minimized_over_logarithms(
    mll: ExactMarginalLogLikelihood, closure: Likelihood
) -> OptimizationResult:
    r"""Minimise a loss over the logarithms of the parameters that are positive.

    Args:
        mll: The marginal log likelihood of the model, whose parameters are set.
        closure: The loss and its gradient by these parameters.
    """
    parameters, bounds = get_parameters_and_bounds(mll, requires_grad=True)
    given: Any = bounds
    limits: Any = {n: tuple(map(float, pair)) for n, pair in given.items()}
    positive = {name for name, (low, _) in limits.items() if low > 0}
    found = {
        name: (p.log() if name in positive else p).detach().clone()
        for name, p in parameters.items()
    }

    def set_parameters() -> None:
        with torch.no_grad():
            for name, p in parameters.items():
                p.copy_(found[name])
                if name in positive:
                    p.exp_().clamp_(*limits[name])

    def in_logarithms() -> tuple[Tensor, list[Tensor]]:
        set_parameters()
        loss, slopes = closure()
        pairs = zip(parameters.items(), slopes, strict=True)
        return loss, [
            g * p.detach() if name in positive else g for (name, p), g in pairs
        ]

    ends: Any = {name: tuple(map(math.log, limits[name])) for name in positive}
    result = scipy_minimize(in_logarithms, found, {**limits, **ends})
    set_parameters()
    if result.status not in (OptimizationStatus.SUCCESS, OptimizationStatus.STOPPED):
        warnings.warn(f"{result.message}", OptimizationWarning, stacklevel=2)
    return result


def likelihood_of(mll: ExactMarginalLogLikelihood) -> Likelihood | None:
    r"""The likelihood of a model in closed form; ``None`` where it is not known.

    Known are sums and products of squared exponentials, Matern kernels (5/2) and
    BoTorch's kernels of words, with scales, a constant mean, Gaussian noise and
    log-normal priors.

    Args:
        mll: The marginal log likelihood of the model.
    """
    model: Any = mll.model
    is_single = model.num_outputs == 1 and not model.batch_shape
    kinds = type(model), type(model.mean_module)
    if not is_single or kinds != (SingleTaskGP, ConstantMean):
        return None
    if type(mll.likelihood) not in (GaussianLikelihood, FixedNoiseGaussianLikelihood):
        return None
    parts: tuple[Any, ...] = model.covar_module, model.mean_module, mll.likelihood
    if any(found._transform is not None for p in parts for found in p.constraints()):
        return None
    with torch.no_grad():
        X = model.transform_inputs(model.train_inputs[0])
    kernel = term_of(model.covar_module, X)
    if kernel is None:
        return None
    known = {id(parameter) for parameter in kernel.parameters()}
    known |= {id(p) for part in parts[1:] for p in part.parameters()}
    listed: Any = list(model.named_priors())
    priors = [(value_of(of), prior) for _, of, prior, value_of, _ in listed]
    kinds_known = (LogNormalPrior, NormalPrior)
    if any(type(p) not in kinds_known or id(x) not in known for x, p in priors):
        return None
    if not {id(parameter) for parameter in mll.parameters()} <= known:
        return None
    given = [(x, p.loc, p.scale, type(p) is LogNormalPrior) for x, p in priors]
    return Likelihood(mll, kernel, given)


# --- kernels --------------------------------------------------------------------------


class Term(Protocol):
    r"""A kernel, or a part of one, at ``n`` points."""

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""

    def value(self) -> Tensor:
        r"""The covariances at the present parameters (``n x n``)."""

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of ``(weights * value).sum()``, after ``value``.

        Args:
            weights: ``n x n`` numbers, symmetric.
        """


def term_of(kernel: Kernel, X: Tensor) -> Term | None:
    r"""The term of a kernel at points ``X`` (``n x d``); ``None`` if it has no form."""
    columns = kernel.active_dims
    return _term_of(kernel, X if columns is None else X[:, columns])


def _term_of(kernel: Kernel, own: Tensor) -> Term | None:
    r"""The term of a kernel at the columns that it looks at."""
    kind = type(kernel)
    if kind is RBFKernel:
        # Distances of large numbers lose digits.
        return SquaredExponential(own - own.mean(dim=0), kernel.raw_lengthscale)
    if kind is MaternKernel and kernel.nu == 2.5:
        return Matern(own - own.mean(dim=0), kernel.raw_lengthscale)
    if kind is CategoricalKernel:
        differs = (own.mT.unsqueeze(-1) != own.mT.unsqueeze(-2)).to(own)
        return Words(differs.flatten(start_dim=1), kernel.raw_lengthscale)
    if kind is Loadings:
        return OfSources(own.squeeze(-1).round().long(), kernel)
    if kind is ScaleKernel:  # which has taken the columns of its inner kernel
        inner = _term_of(kernel.base_kernel, own)
        return None if inner is None else Scaled(inner, kernel.raw_outputscale)
    if kind not in (AdditiveKernel, ProductKernel):
        return None
    found = [term_of(part, own) for part in kernel.kernels]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    return Sum(parts) if kind is AdditiveKernel else Product(parts)


@dataclass
class _OfLengthscale:
    r"""A kernel whose only parameter is a lengthscale of each column, or one of all."""

    X: Tensor
    lengthscale: Tensor
    K: Tensor = field(init=False)

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        yield self.lengthscale

    def _of_columns(self, slopes: Tensor) -> Tensor:
        r"""The derivatives by the lengthscales, summed where all share one."""
        return slopes.sum() if self.lengthscale.numel() == 1 else slopes


@dataclass
class SquaredExponential(_OfLengthscale):
    r"""The kernel ``exp(-d^2 / 2)`` of ``n x d`` points, distances in lengthscales."""

    Z: Tensor = field(init=False)

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.K = self._squared_distances().mul_(-0.5).exp_()
        return self.K

    def _squared_distances(self) -> Tensor:
        self.Z = Z = self.X / self.lengthscale
        norms = Z.square().sum(dim=-1)
        squared = (norms.unsqueeze(-1) + norms).addmm_(Z, Z.mT, alpha=-2).clamp_min_(0)
        return squared.fill_diagonal_(0)

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of the weighted sum of the covariances."""
        # d K_ij / d l_k = K_ij (z_ik - z_jk)^2 / l_k
        return self._slopes(weights * self.K)

    def _slopes(self, M: Tensor) -> Iterator[Slope]:
        r"""The sum of ``M_ij (z_ik - z_jk)^2 / l_k`` over ``i`` and ``j``."""
        Z = self.Z
        spread = 2 * (M.sum(dim=0) @ Z.square() - ((M @ Z) * Z).sum(dim=0))
        yield self.lengthscale, self._of_columns(spread) / self.lengthscale


@dataclass
class Matern(SquaredExponential):
    r"""The Matern kernel of smoothness 5/2, distances in lengthscales.

    With ``s = sqrt(5) d`` it is ``(1 + s + s^2 / 3) exp(-s)`` (Rasmussen and Williams
    2006, equation 4.17).
    """

    S: Tensor = field(init=False)
    E: Tensor = field(init=False)

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.S = self._squared_distances().mul_(5).sqrt_()
        self.E = self.S.neg().exp_()
        self.K = (1 + self.S + self.S.square().div_(3)).mul_(self.E)
        return self.K

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of the weighted sum of the covariances."""
        # d K_ij / d l_k = 5/3 (1 + s_ij) exp(-s_ij) (z_ik - z_jk)^2 / l_k
        return self._slopes(weights * (1 + self.S).mul_(self.E).mul_(5 / 3))


@dataclass
class Words(_OfLengthscale):
    r"""The kernel ``exp(-m)``, ``m`` the mean of 1 / lengthscale of words that differ.

    The mean is over all words: those that agree count as 0.

    Args:
        X: ``k x n^2``: 1 where two points have other words in a column.
        lengthscale: ``1 x k``.
    """

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        k, squared = self.X.shape
        rates = (1 / self.lengthscale / k).expand(1, k)
        n = math.isqrt(squared)
        self.K = (rates @ self.X).view(n, n).neg_().exp_()
        return self.K

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of the weighted sum of the covariances."""
        found = self.X @ (weights * self.K).view(-1) / len(self.X)
        yield self.lengthscale, self._of_columns(found) / self.lengthscale.square()


@dataclass
class OfSources:
    r"""The covariances of sources that load on one process, ``a_l a_m``.

    Args:
        number: ``n`` numbers of the sources.
        kernel: Which has the loadings.
    """

    number: Tensor
    kernel: Loadings
    a: Tensor = field(init=False)

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        if self.kernel.free is not None:
            yield self.kernel.free

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.a = self.kernel.loadings[self.number]
        return self.a.outer(self.a)

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of the weighted sum of the covariances."""
        given, free = self.kernel.given, self.kernel.free
        if free is None:
            return
        each = torch.zeros_like(given).index_add(0, self.number, 2 * weights @ self.a)
        yield free, each[given.isnan()]


@dataclass
class Scaled:
    r"""A kernel times a number."""

    inner: Term
    scale: Tensor
    K: Tensor = field(init=False)

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        yield self.scale
        yield from self.inner.parameters()

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.K = self.inner.value()
        return self.scale * self.K

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of the weighted sum of the covariances."""
        yield self.scale, (weights * self.K).sum()
        yield from self.inner.slopes(self.scale * weights)


@dataclass
class Sum:
    r"""A sum of kernels."""

    parts: Sequence[Term]

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        for part in self.parts:
            yield from part.parameters()

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        return reduce(torch.add, [part.value() for part in self.parts])

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of the weighted sum of the covariances."""
        for part in self.parts:
            yield from part.slopes(weights)


@dataclass
class Product(Sum):
    r"""A product of kernels."""

    values: list[Tensor] = field(init=False)

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.values = [part.value() for part in self.parts]
        return reduce(torch.mul, self.values)

    def slopes(self, weights: Tensor) -> Iterator[Slope]:
        r"""The derivatives of the weighted sum of the covariances."""
        for i, part in enumerate(self.parts):
            others = self.values[:i] + self.values[i + 1 :]
            yield from part.slopes(reduce(torch.mul, others, weights))


# --- the likelihood -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Likelihood:
    r"""The loss of a fit and its gradient: a closure for ``fit_gpytorch_mll``.

    With ``S = K + noise``, ``r = y - mean`` and ``a = S^-1 r`` the log density of ``n``
    values is ``-(r a + log det S + n log 2 pi) / 2``, and its derivative by an entry of
    ``S`` that of ``W / 2``, with ``W = a a^T - S^-1`` (Rasmussen and Williams 2006,
    equations 2.30 and 5.9). The loss is minus this and the log densities of the priors,
    divided by ``n``.

    Args:
        mll: The marginal log likelihood of the model, in training mode.
        kernel: The model's kernel at its points.
        priors: For each normal or log-normal prior its parameter, the mean of this or
            of its logarithm, the standard deviation, and whether it is the logarithm's.
    """

    mll: ExactMarginalLogLikelihood
    kernel: Term
    priors: Sequence[tuple[Tensor, Tensor, Tensor, bool]]

    def __call__(self) -> tuple[Tensor, list[Tensor]]:
        r"""The loss and its gradient by each parameter that is not held."""
        model: Any = self.mll.model
        likelihood: Any = self.mll.likelihood
        with torch.no_grad():
            S = self.kernel.value().clone()
            S.diagonal().add_(likelihood.noise)
            L = psd_safe_cholesky(S)
            inverse = torch.cholesky_inverse(L)
            mean, n = model.mean_module.raw_constant, len(S)
            r = model.train_targets - mean
            a = inverse @ r
            loss = 0.5 * (r @ a + n * _LOG_2PI) + L.diagonal().log().sum()
            half = 0.5 * (a.outer(a) - inverse)
            slopes = {id(p): slope for p, slope in self.kernel.slopes(half)}
            slopes[id(mean)] = a.sum()
            for noise in likelihood.parameters():
                slopes[id(noise)] = half.diagonal().sum()
            for x, centre, scale, is_log in self.priors:
                log = x.log() if is_log else x
                far = (log - centre) / scale
                loss += (scale.log() + 0.5 * (far.square() + _LOG_2PI)).sum()
                loss += log.sum() if is_log else 0.0
                slope = (1 + far / scale) / x if is_log else far / scale
                slopes[id(x)] = slopes[id(x)] - slope
            return loss / n, [
                (-slopes[id(p)] / n).view(p.shape)
                for p in self.mll.parameters()
                if p.requires_grad
            ]
