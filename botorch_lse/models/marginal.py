r"""The likelihood of the default models with its gradient in closed form.

GPyTorch's own, by automatic differentiation, spends most of its time on other things
than arithmetic while values are few, and a fit asks for it up to a thousand times.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

import torch
from botorch.exceptions.errors import ModelFittingError
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

from botorch_lse.models.rising import Slope
from botorch_lse.models.source_kernels import Fading, Loadings

_LOG_2PI = math.log(2 * math.pi)
MANY = 300
"""The values of which a part is fitted first, if there are twice as many."""
ENOUGH = 1e-3
"""The gain in the log density of so many values at which a fit to them ends."""


def fit_likelihood(mll: ExactMarginalLogLikelihood) -> float:
    r"""Fit a model by BoTorch, with the gradient in closed form where there is one.

    With one kernel it takes BoTorch's steps and ends where BoTorch ends, up to
    rounding. With several it goes over logarithms, in a twentieth of the steps and at
    least as far. Of many values a part is fitted first, drawn at random, since each
    step costs the cube of their number: the fit to all then takes few.

    Args:
        mll: The marginal log likelihood of the model.

    Returns:
        What it attains, for each value.

    Raises:
        ModelFittingError: If no attempt ends.
    """
    closure: Any = likelihood_of(mll)  # whose gradient is one tensor
    if closure is not None:
        if closure.n > 2 * MANY:
            # At random, as each tenth row of a grid may have the same inputs.
            drawn = torch.Generator().manual_seed(0)
            some = torch.randperm(closure.n, generator=drawn)[:MANY]
            first: Any = likelihood_of(mll, some.to(closure.y.device))
            with suppress(ModelFittingError):  # the fit to all starts as it would
                fit_gpytorch_mll(mll, closure=first, optimizer=minimized)
        fit_gpytorch_mll(mll, closure=closure, optimizer=minimized)
        return -float(closure()[0])
    fit_gpytorch_mll(mll)
    model: Any = mll.model.train()
    with torch.no_grad():
        inputs = model.train_inputs
        return float(mll(model(*inputs), model.train_targets, *inputs))


def minimized(
    mll: ExactMarginalLogLikelihood, closure: Likelihood
) -> OptimizationResult:
    r"""Minimise a loss as BoTorch does, all parameters in one vector.

    With several kernels, over the logarithms of those that are positive.

    Args:
        mll: The marginal log likelihood of the model, whose parameters are set.
        closure: The loss and its gradient by these parameters.
    """
    parameters, bounds = get_parameters_and_bounds(mll, requires_grad=True)
    given: Any = bounds
    with in_one_vector(parameters.values()) as vector, torch.no_grad():
        low, high = (
            torch.cat(
                [
                    torch.as_tensor(given.get(name, (-math.inf, math.inf))[end])
                    .to(p)
                    .expand(p.numel())
                    for name, p in parameters.items()
                ]
            )
            for end in (0, 1)
        )
        kernel = closure.kernel
        is_single = (
            isinstance(kernel, Stationary)
            and len(kernel.sizes) == 1
            and not kernel.scales
        )
        is_log = (low > 0) & (not is_single)
        found = torch.where(is_log, vector.log(), vector)

        def set_parameters() -> None:
            vector.copy_(torch.where(is_log, found.exp().clamp_(low, high), found))

        def at_found() -> tuple[Tensor, list[Tensor]]:
            set_parameters()
            loss, slopes = closure()
            return loss, [torch.where(is_log, slopes * vector, slopes)]

        ends: Any = [torch.where(is_log, end.log(), end) for end in (low, high)]
        # A step for all values is dear, and a change so small in their density nothing.
        enough = {"ftol": ENOUGH / closure.n} if closure.n > 2 * MANY else None
        box: Any = {"all": tuple(ends)}
        result = scipy_minimize(at_found, {"all": found}, box, options=enough)
        set_parameters()
    if result.status not in (OptimizationStatus.SUCCESS, OptimizationStatus.STOPPED):
        warnings.warn(f"{result.message}", OptimizationWarning, stacklevel=2)
    return result


@contextmanager
def in_one_vector(parameters: Collection[Tensor]) -> Iterator[Tensor]:
    r"""One vector of all parameters: as long as it lasts, they are parts of it."""
    own = [p.data for p in parameters]
    vector = torch.cat([data.reshape(-1) for data in own])
    parts = vector.split([data.numel() for data in own])
    for p, part, data in zip(parameters, parts, own, strict=True):
        p.data = part.view(data.shape)
    try:
        yield vector
    finally:
        for p, data in zip(parameters, own, strict=True):
            p.data = data.copy_(p.data)


def likelihood_of(
    mll: ExactMarginalLogLikelihood, places: Tensor | slice = slice(None)
) -> Likelihood | None:
    r"""The likelihood of a model in closed form; ``None`` where it is not known.

    Known are sums and products of squared exponentials, Matern kernels (5/2) and
    BoTorch's kernels of words, with scales, a constant mean, Gaussian noise and
    log-normal priors.

    Args:
        mll: The marginal log likelihood of the model.
        places: The values that count; default: all.
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
    kernel = term_of(model.covar_module, X[places])
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
    return Likelihood(mll, kernel, given, places)


# --- kernels --------------------------------------------------------------------------


class Term(Protocol):
    r"""A kernel, or a part of one, at ``n`` points."""

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""

    def value(self) -> Tensor:
        r"""The covariances at the present parameters (``n x n``)."""

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of ``(weights * value).sum()``, after ``value``.

        Args:
            weights: ``n x n`` numbers, symmetric.

        Returns:
            One number for each of all parameters, in their order.
        """


def term_of(kernel: Kernel, X: Tensor) -> Term | None:
    r"""The term of a kernel at points ``X`` (``n x d``); ``None`` if it has no form."""
    columns = kernel.active_dims
    return _term_of(kernel, X if columns is None else X[:, columns])


def _term_of(kernel: Kernel, own: Tensor) -> Term | None:
    r"""The term of a kernel at the columns that it looks at."""
    kind, part = type(kernel), _stationary(kernel, [*range(own.shape[-1])])
    if part is not None:
        return Stationary(own, [part])
    if kind is CategoricalKernel:
        differs = (own.mT.unsqueeze(-1) != own.mT.unsqueeze(-2)).to(own)
        return Words(differs.flatten(start_dim=1), kernel.raw_lengthscale)
    if kind is Loadings:
        return OfSources(own.squeeze(-1).round().long(), kernel)
    if kind is Fading:
        return OfFading(own, kernel)
    if kind is Slope:
        return Known(kernel.forward(own, own))
    if kind is ScaleKernel:  # which has taken the columns of its inner kernel
        inner = _term_of(kernel.base_kernel, own)
        return None if inner is None else Scaled(inner, kernel.raw_outputscale)
    if kind is ProductKernel:
        alone = [k for k in kernel.kernels if type(k) is Loadings and k.is_of_one]
        if len(alone) == 1 and len(kernel.kernels) > 1:
            return _of_one(alone[0], kernel.kernels, own)
        factors = [f for k in kernel.kernels if (f := term_of(k, own)) is not None]
        return Product(factors) if len(factors) == len(kernel.kernels) else None
    return _sum_of(kernel.kernels, own) if kind is AdditiveKernel else None


def _of_one(alone: Loadings, kernels: Iterable[Kernel], own: Tensor) -> Term | None:
    r"""The term of a product that only the points of one source have."""
    number = own[:, alone.active_dims].view(-1).round().long()
    rows = alone.given[number].nonzero().view(-1)
    others = [kernel for kernel in kernels if kernel is not alone]
    factors = [f for k in others if (f := term_of(k, own[rows])) is not None]
    if len(factors) < len(others):
        return None
    inner = factors[0] if len(factors) == 1 else Product(factors)
    return OfPart(inner, rows, len(own))


def _sum_of(kernels: Iterable[Kernel], own: Tensor) -> Term | None:
    r"""The term of a sum, whose stationary parts of a kind are one term."""
    alike, others = dict[tuple[bool, bool], list[_Part]](), list[Term]()
    for kernel in kernels:
        columns = kernel.active_dims
        listed = [*range(own.shape[-1])] if columns is None else columns.tolist()
        part = _stationary(kernel, listed)
        if part is not None:
            alike.setdefault((part.is_rough, part.scale is None), []).append(part)
        elif (term := term_of(kernel, own)) is not None:
            others.append(term)
        else:
            return None
    terms = [*(Stationary(own, parts) for parts in alike.values()), *others]
    return terms[0] if len(terms) == 1 else Sum(terms)


def _stationary(kernel: Kernel, columns: list[int]) -> _Part | None:
    r"""A kernel of distances in some columns; ``None`` if it is another."""
    inner: Any = kernel.base_kernel if type(kernel) is ScaleKernel else kernel
    is_rough = type(inner) is MaternKernel and inner.nu == 2.5
    if not is_rough and type(inner) is not RBFKernel:
        return None
    scale = kernel.raw_outputscale if inner is not kernel else None
    return _Part(is_rough, columns, inner.raw_lengthscale, scale)


class Stationary:
    r"""A sum of scaled kernels of distances: all squared exponentials, or all Matern.

    They are the squared exponential ``exp(-d^2 / 2)`` and the Matern kernel of
    smoothness 5/2, ``(1 + s + s^2 / 3) exp(-s)`` with ``s = sqrt(5) d`` (Rasmussen and
    Williams 2006, equations 4.9 and 4.17), ``d`` in lengthscales. All are computed
    together, for each pair of points once: by themselves most of the time would go to
    calls while values are few.

    Args:
        X: ``n x d``.
        parts: The kernels, with or without scales.
    """

    def __init__(self, X: Tensor, parts: Sequence[_Part]) -> None:
        n, d = X.shape
        self.n, self.is_rough = n, parts[0].is_rough
        self.lengthscales = [part.lengthscale for part in parts]
        self.scales = [part.scale for part in parts if part.scale is not None]
        one, other = torch.tril_indices(n, n, -1).to(X.device)
        self.squared = (X.mT[:, one] - X.mT[:, other]).square_()  # d x pairs
        self.pairs = one * n + other
        # Where the matrix finds its entries: those of the pairs, then the diagonal's.
        entries = torch.full((n, n), len(one), device=X.device)
        entries[one, other] = entries[other, one] = torch.arange(len(one)).to(one)
        self.entries = entries.view(-1)
        # Which lengthscale, of all in a row, each kernel has in each of its columns.
        sizes = [part.lengthscale.numel() for part in parts]
        firsts = [sum(sizes[:k]) for k in range(len(parts))]
        cells, own = list[int](), list[int]()
        for k, (part, size, first) in enumerate(zip(parts, sizes, firsts, strict=True)):
            cells += [k * d + column for column in part.columns]
            own += [first + (j if size > 1 else 0) for j in range(len(part.columns))]
        self.cells, self.own = (torch.tensor(x).to(one) for x in (cells, own))
        self.sizes = sizes

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        yield from self.scales
        yield from self.lengthscales

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.lengths = torch.cat([found.view(-1) for found in self.lengthscales])
        k, d = len(self.sizes), len(self.squared)
        rates = self.lengths.new_zeros(k * d)
        own = self.lengths.index_select(0, self.own)
        rates.index_copy_(0, self.cells, own.square_().reciprocal_())
        squared = rates.view(k, d) @ self.squared  # k x pairs
        if self.is_rough:
            # The derivative by d^2 is that of -5/6 (1 + s) exp(-s), 5/3 of it below.
            s = squared.mul_(5).sqrt()
            decay = s.neg().exp_()
            self.slope = s.add_(1).mul_(decay)
            self.each = squared.div_(3).mul_(decay).add_(self.slope)
            self.slope.mul_(5 / 3)
        else:
            self.each = self.slope = squared.mul_(-0.5).exp_()
        self.weight = (
            torch.cat([found.view(1) for found in self.scales])
            if self.scales
            else self.lengths.new_ones(k)
        )
        entries = torch.cat((self.weight @ self.each, self.weight.sum().view(1)))
        # Several times as fast as by brackets.
        return entries.index_select(0, self.entries).view(self.n, self.n)

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        of_pairs = weights.reshape(-1).index_select(0, self.pairs).mul_(2)
        # d K_ij / d l = slope (x_i - x_j)^2 / l^3 in the column of l
        by_column = (self.slope * of_pairs) @ self.squared.mT
        by_column *= self.weight.unsqueeze(-1)
        own = self.lengths.index_select(0, self.own)
        of_cells = by_column.view(-1).index_select(0, self.cells) / own.pow(3)
        total = torch.zeros_like(self.lengths).index_add_(0, self.own, of_cells)
        if not self.scales:
            return total
        by_scale = self.each @ of_pairs + weights.diagonal().sum()
        return torch.cat((by_scale, total))


@dataclass(frozen=True)
class _Part:
    r"""A stationary kernel: its columns, lengthscales, and its scale if it has one."""

    is_rough: bool
    columns: list[int]
    lengthscale: Tensor
    scale: Tensor | None


@dataclass
class Words:
    r"""The kernel ``exp(-m)``, ``m`` the mean of 1 / lengthscale of words that differ.

    The mean is over all words: those that agree count as 0.

    Args:
        X: ``k x n^2``: 1 where two points have other words in a column.
        lengthscale: ``1 x k``, or one of all columns.
    """

    X: Tensor
    lengthscale: Tensor
    K: Tensor = field(init=False)

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        yield self.lengthscale

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        k, squared = self.X.shape
        rates = (1 / self.lengthscale / k).expand(1, k)
        n = math.isqrt(squared)
        self.K = (rates @ self.X).view(n, n).neg_().exp_()
        return self.K

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        found = self.X @ (weights * self.K).view(-1) / len(self.X)
        if self.lengthscale.numel() == 1:
            found = found.sum()
        return (found / self.lengthscale.square()).view(-1)


@dataclass
class OfSources:
    r"""The covariances of sources by their loadings on processes, ``sum a_l a_m``.

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
        return self.a @ self.a.mT

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        given, free = self.kernel.given, self.kernel.free
        if free is None:
            return weights.new_zeros(0)
        each = torch.zeros_like(self.kernel.loadings)
        each = each.index_add(0, self.number, 2 * weights @ self.a)
        return each.mT.reshape(given.shape)[given.isnan()]


@dataclass
class OfPart:
    r"""A kernel that some of the points have, 0 for all others.

    Of a part that one source has by itself only the points of this source are computed.

    Args:
        inner: The kernel at ``k`` points.
        rows: The ``k`` places of these among all.
        n: The number of all points.
    """

    inner: Term
    rows: Tensor
    n: int

    def __post_init__(self) -> None:
        self.places = (self.n * self.rows.unsqueeze(-1) + self.rows).view(-1)

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        yield from self.inner.parameters()

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        found = self.inner.value()
        every = found.new_zeros(self.n * self.n)
        return every.index_copy_(0, self.places, found.reshape(-1)).view(self.n, -1)

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        k = len(self.rows)
        own = weights.reshape(-1).index_select(0, self.places)
        return self.inner.slopes(own.view(k, k))


@dataclass
class OfFading:
    r"""The covariances ``s(x) s(x')`` of a part that fades along a direction.

    Args:
        X: ``n x k``.
        kernel: Which has the direction.
    """

    X: Tensor
    kernel: Fading
    s: Tensor = field(init=False)

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters that a fit may change."""
        yield self.kernel.free

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.s = self.kernel.share(self.X)
        return self.s.outer(self.s)

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        each = 2 * (weights @ self.s) * self.s * (1 - self.s)
        return torch.cat(((self.X - 0.5).mT @ each, each.sum().view(1)))


@dataclass
class Known:
    r"""A kernel without parameters.

    Args:
        K: Its ``n x n`` covariances.
    """

    K: Tensor

    def parameters(self) -> Iterator[Tensor]:
        r"""The parameters, of which there are none."""
        return iter(())

    def value(self) -> Tensor:
        r"""The covariances."""
        return self.K

    def slopes(self, weights: Tensor) -> Tensor:
        r"""No derivatives."""
        return weights.new_zeros(0)


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

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        own, inner = (weights * self.K).sum(), self.inner.slopes(self.scale * weights)
        return torch.cat((own.view(1), inner))


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

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        return torch.cat([part.slopes(weights) for part in self.parts])


@dataclass
class Product(Sum):
    r"""A product of kernels."""

    values: list[Tensor] = field(init=False)

    def value(self) -> Tensor:
        r"""The covariances at the present parameters."""
        self.values = [part.value() for part in self.parts]
        return reduce(torch.mul, self.values)

    def slopes(self, weights: Tensor) -> Tensor:
        r"""The derivatives of the weighted sum of the covariances."""
        found = []
        for i, part in enumerate(self.parts):
            others = self.values[:i] + self.values[i + 1 :]
            found.append(part.slopes(reduce(torch.mul, others, weights)))
        return torch.cat(found)


# --- the likelihood -------------------------------------------------------------------


@dataclass(eq=False)
class Likelihood:
    r"""The loss of a fit and its gradient by all parameters together.

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
        places: The values that count.
    """

    mll: ExactMarginalLogLikelihood
    kernel: Term
    priors: Sequence[tuple[Tensor, Tensor, Tensor, bool]]
    places: Tensor | slice

    def __post_init__(self) -> None:
        model: Any = self.mll.model
        noise = [*self.mll.likelihood.parameters()]
        self.n_noise = len(noise)
        self.y = model.train_targets[self.places]
        self.n = len(self.y)
        self.every = [*self.kernel.parameters(), model.mean_module.raw_constant, *noise]
        sizes = [p.numel() for p in self.every]
        places = dict[int, Tensor]()
        for p, part in zip(
            self.every, torch.arange(sum(sizes)).split(sizes), strict=True
        ):
            places[id(p)] = part.to(p.device)
        empty = self.every[0].new_zeros(3, 0).detach()
        of_priors = [
            torch.stack([torch.as_tensor(v).to(x).expand(x.numel()) for v in numbers])
            for x, *numbers in self.priors
        ]
        self.centre, self.spread, is_log = torch.cat([empty, *of_priors], dim=1)
        self.is_log = is_log > 0
        none = torch.arange(0, device=empty.device)
        known = [places[id(x)] for x, *_ in self.priors]
        self.with_prior = torch.cat([none, *known])
        trained = [places[id(p)] for p in self.mll.parameters() if p.requires_grad]
        self.trained = torch.cat([none, *trained])

    def __call__(self) -> tuple[Tensor, Tensor]:
        r"""The loss and its gradient by all parameters that are not held, in a row."""
        model: Any = self.mll.model
        likelihood: Any = self.mll.likelihood
        with torch.no_grad():
            S = self.kernel.value().clone()
            noise = likelihood.noise.expand_as(model.train_targets)
            S.diagonal().add_(noise[self.places])
            L = psd_safe_cholesky(S)
            inverse = torch.cholesky_inverse(L)
            n, r = self.n, self.y - model.mean_module.raw_constant
            a = inverse @ r
            loss = 0.5 * (r @ a + n * _LOG_2PI) + L.diagonal().log().sum()
            half = a.outer(a).sub_(inverse).mul_(0.5)
            parts = [self.kernel.slopes(half), a.sum().view(1)]
            parts += [half.diagonal().sum().view(1)] * self.n_noise
            # The priors: minus their log densities, and the slopes of those.
            x = torch.cat([p.view(-1) for p in self.every])[self.with_prior]
            logs = x.log()
            far = (torch.where(self.is_log, logs, x) - self.centre) / self.spread
            loss += (self.spread.log() + 0.5 * (far.square() + _LOG_2PI)).sum()
            loss += torch.where(self.is_log, logs, 0.0).sum()
            far /= self.spread
            of_priors = torch.where(self.is_log, (1 + far) / x, far)
            slopes = torch.cat(parts).index_add_(0, self.with_prior, -of_priors)
            return loss / n, slopes[self.trained] / -n
