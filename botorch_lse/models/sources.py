r"""Learnt models of several sources, such as coarse and fine simulations.

All are sums over independent processes (``models/source_kernels.py``). They differ in
the loadings of the sources on these, and in which of them have the same kernel.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel
from torch import Tensor

from botorch_lse._validation import complaint, kind_of
from botorch_lse.data.pool import Pool
from botorch_lse.models.correlated import OutputKernel, OutputMean
from botorch_lse.models.gaussian_process import (
    FITTED_NOISE,
    GPPrior,
    held,
    noise_between,
)
from botorch_lse.models.source_kernels import Fading, Loadings, of_inputs

OWN_SHARE, OWN_SPREAD = 0.25, 2.0
"""The likeliest variance of what a source has by itself, as a share of that of values.
The second is the standard deviation of its logarithm: a source may differ from another
one by next to nothing, or by all that it is."""
DOUBT = 20.0
"""The odds before any data that sources are useless.
With even odds few values make some useless sources seem to follow the target, by up to
3 in the logarithm of the odds, and these are then paid for; of an identical source six
rows say 30. It is as much as a 95 % level asks for."""
ORDERS = 2.0
"""The difference of logarithms over which errors of two levels of a fidelity are alike:
those of a mesh, say, and of one that is seven times as fine."""
FEW_SHARED = 3
"""The number of points measured at two sources from which their correlation is read.
It is where a fit begins, from which it finds the sign."""
USUAL_LOADING = 0.7
"""The loading with which a fit begins where few points are shared."""


# --- learnt models --------------------------------------------------------------------


@dataclass(frozen=True)
class SourceParts:
    r"""The parts of which a model of sources is made.

    Args:
        n_sources: ``M``.
        target: The number of the source that is decided.
        column: Where the inputs have the number of the source.
        process: Makes the kernel of a function of the inputs, of variance 1 or so.
        own: Makes the kernel of what a source has by itself.
        correlation: ``M x M`` correlations, as far as the values show them.
        levels: What the last column of points has at each source: numbers, which of
            sources with names mean nothing (``M``).
        numbers: The columns of inputs that are numbers, not words.
        n_measured: The number of sources that the pool has, which come first. Others
            are numbers at which values were told before the run.
    """

    n_sources: int
    target: int
    column: int
    process: Callable[[], Kernel]
    own: Callable[[], Kernel]
    correlation: Tensor
    levels: Tensor
    numbers: Sequence[int]
    n_measured: int

    def unit(self, source: int) -> Tensor:
        r"""The loadings of a process that one source has alone."""
        return torch.eye(self.n_sources, dtype=torch.float64)[source]

    def alone(self, source: int) -> Kernel:
        r"""The kernel of a source's own part and offset, of which others know nothing.

        The offset has variance 1: of a few values the mean is not known better.
        """
        loads = [Loadings(self.unit(source), self.column) for _ in range(2)]
        return self.own() * loads[0] + loads[1]


class SourceModel(ABC):
    r"""A model of several sources that is fitted to their values.

    Give it as ``GaussianProcess(model)`` for a pool from ``Pool.at_sources``. Each part
    has the kernel and priors of the default model of one source.
    """

    has_one_unit: bool = False
    """Whether all sources are told in one unit, so that differences have a meaning."""
    needs_numbers: bool = False
    """Whether it needs sources that are numbers."""
    knows_all_numbers: bool = False
    """Whether it takes old values at numbers that are none of the sources."""
    odds: float = 1.0
    """The odds of this model before any data, in a choice of several."""

    @abstractmethod
    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernel that is fitted, at its initial values.

        Args:
            parts: Of what it is made.
        """


@dataclass(frozen=True)
class Discrepancies(SourceModel):
    r"""The model in which other sources are the target plus a discrepancy of their own.

    ``f_l = f_L + g_l``, with independent ``g_l``: for sources that mean to say the same
    thing in the same unit.

    Source:
        Poloczek et al. (2017), section 4; Marques et al. (2018), section 2 (CLoVER).
    """

    has_one_unit = True

    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernel of the target, and for each other source that of its part."""
        others = [j for j in range(parts.n_sources) if j != parts.target]
        return reduce(add, [parts.process(), *map(parts.alone, others)])


@dataclass(frozen=True)
class FadingDiscrepancies(SourceModel):
    r"""The model in which other sources are right in one part of the box only.

    ``f_l = f_L + s_l(x) g_l + c_l``: the discrepancy ``g_l`` of ``Discrepancies`` fades
    along a direction (``Fading``) that is learnt, while a constant shift ``c_l`` stays.
    A source may then be wrong for small values of an input and right for large ones.
    Without inputs that are numbers it is ``Discrepancies``.
    """

    has_one_unit = True

    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernel of the target, and for each other source that of its part."""
        terms = [parts.process()]
        for j in range(parts.n_sources):
            if j != parts.target:
                own, load = parts.own(), Loadings(parts.unit(j), parts.column)
                if parts.numbers:
                    own = own * Fading(parts.numbers)
                terms += [own * load, Loadings(parts.unit(j), parts.column)]
        return reduce(add, terms)


@dataclass(frozen=True)
class FidelityDiscrepancies(SourceModel):
    r"""The model in which discrepancies shrink as a number nears that of the target.

    For sources that are numbers, such as the size of a mesh or the share of training:
    ``pool.at_sources((0.25, 0.5, 1.0), ...)``. With the distance ``h_l`` of the number
    of source ``l`` from that of the target, relative to the largest one, the
    discrepancies ``g_l`` of ``Discrepancies`` are one function of the inputs and of
    ``h``, with covariance ``k(x, x') h_l h_m c(log(h_l / h_m))``, constant shifts
    likewise, where ``c`` is the Matern correlation of smoothness 5/2 with lengthscale
    ``ORDERS``; below and above the target's number they are independent. So they are in
    proportion to ``h``, and similar at distances of the same order. Few parameters
    describe them all, and old values may be of any number (``History(source=0.37)``),
    whether it is measured now or not.

    Source:
        Tuo, Wu and Yu (2014), Technometrics 56, section 2.2. Deviation: with their
        ``min(h_l, h_m)^2``, for which ``c`` is ``exp(-|log(h_l / h_m)|)``, errors at
        near numbers are less alike than those of the functions that were tried.
    """

    has_one_unit = True
    needs_numbers = True
    knows_all_numbers = True

    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernel of the target, and that of all discrepancies together."""
        h = parts.levels - parts.levels[parts.target]
        size = h.abs() / h.abs().max()
        alike = MaternKernel(nu=2.5).to(h)
        alike.lengthscale = ORDERS
        orders = size.where(size > 0, 1.0).log().unsqueeze(-1)  # the target's size is 0
        covariance = alike(orders).to_dense().detach() * size.outer(size)
        values, vectors = torch.linalg.eigh(covariance * (h.outer(h) > 0))
        loadings = (vectors * values.clamp_min(0.0).sqrt()).mT
        first, second = (Loadings(loadings, parts.column) for _ in range(2))
        return parts.process() + parts.own() * first + second


@dataclass(frozen=True)
class Autoregressive(SourceModel):
    r"""The model in which each source is a multiple of others plus a part of its own.

    ``f_l = sum_j rho_lj g_j + g_l`` over the sources before it, the target being the
    last: a factor ``rho`` may be negative, near 0 for a source that says nothing, and
    sources may have different units. With two sources it is that of Kennedy and
    O'Hagan.

    Source:
        Kennedy and O'Hagan (2000), Eq. (1). Deviation: with three sources and more, a
        source depends on all before it by factors of their own, not on the last alone.
    """

    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernels of the own parts, with free loadings of the sources after."""
        others = [j for j in range(parts.n_sources) if j != parts.target]
        order, terms = [*others, parts.target], list[Kernel]()
        for place, source in enumerate(order):
            loads = parts.unit(source)
            loads[order[place + 1 :]] = torch.nan
            found = Loadings(loads, parts.column)
            start = parts.correlation[source][loads.isnan()]
            if len(start):
                # What the first does not explain is not known to be another's.
                found.initialize(free=start if place == 0 else 0.0 * start)
            own = parts.process() if place == 0 else parts.own()
            terms.append(own * found)
            if place > 0:
                terms.append(Loadings(parts.unit(source), parts.column))
        return reduce(add, terms)


@dataclass(frozen=True)
class Coregionalised(SourceModel):
    r"""The model in which all sources are mixtures of processes with one kernel.

    ``Cov(f_l(x), f_m(x')) = B_lm k(x, x')`` with any covariance ``B``: sources vary at
    the same lengthscales, as products of one family may.

    Source:
        Bonilla et al. (2007); BoTorch's ``MultiTaskGP`` has the same covariance.
    """

    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernel of the inputs, times ``B = A A^T`` with a triangular ``A``."""
        terms, M = list[Kernel](), parts.n_sources
        for j in range(M):
            loads = torch.full((M,), torch.nan, dtype=torch.float64)
            loads[:j] = 0.0
            found = Loadings(loads, parts.column)
            start = parts.correlation[j].clone() if j == 0 else 0.5 * parts.unit(j)
            found.initialize(free=start[j:])
            terms.append(found)
        return parts.process() * reduce(add, terms)


@dataclass(frozen=True)
class IndependentSources(SourceModel):
    r"""The model in which other sources tell nothing of the target.

    Beside others in ``LikeliestSources`` it is what they have to explain better: where
    it is the likeliest, values of other sources change nothing at the target, and no
    rule pays for them. The choice is made anew at each fit, so that a source which
    later values of the target show to be useful is asked again. Old values at
    numbers that are none of the sources have one kernel, and tell nothing of each other
    either.
    """

    odds = DOUBT
    knows_all_numbers = True

    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernel of the target, and those of the other sources' own parts."""
        others = [j for j in range(parts.n_measured) if j != parts.target]
        of_target = Loadings(parts.unit(parts.target), parts.column)
        terms = [parts.process() * of_target, *map(parts.alone, others)]
        if parts.n_measured < parts.n_sources:
            units = torch.eye(parts.n_sources, dtype=torch.float64)[parts.n_measured :]
            first, second = (Loadings(units, parts.column) for _ in range(2))
            terms += [parts.own() * first, second]
        return reduce(add, terms)


@dataclass(frozen=True)
class LikeliestSources(SourceModel):
    r"""The model of sources that explains the values best, chosen again at each fit.

    No model of sources is best everywhere. The choice goes by the likelihood at the
    fitted hyper-parameters less half of ``log n`` for each of them (BIC), and by the
    odds before any data: other models must be ``DOUBT`` times as likely as
    ``IndependentSources``, in which other sources have no part.

    Args:
        models: The models to choose from.

    Raises:
        ValueError: If one is not a model of sources, or there is none.

    Source:
        Schwarz (1978), Ann. Statist. 6, for the criterion.
    """

    models: tuple[SourceModel, ...] = (
        Discrepancies(),
        FadingDiscrepancies(),
        Autoregressive(),
        IndependentSources(),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))  # it is frozen
        for one in self.models or (None,):
            if not isinstance(one, SourceModel):
                wanted = "to be models of sources, such as `(Discrepancies(),)`"
                raise ValueError(complaint("models", wanted, f"got {kind_of(one)}"))
        for name, holds in (("needs_numbers", any), ("knows_all_numbers", all)):
            found = holds(getattr(one, name) for one in self.models)
            object.__setattr__(self, name, found)

    def kernel(self, parts: SourceParts) -> Kernel:
        r"""The kernel of the first model; ``fit_sources`` tries all of them."""
        return self.models[0].kernel(parts)


OF_ALL_NUMBERS = LikeliestSources((FidelityDiscrepancies(), IndependentSources()))
"""The models to choose from where old values are of numbers that are no source's."""


# --- fits -----------------------------------------------------------------------------


def fit_sources(
    model: SourceModel | None,
    train_X: Tensor,
    train_Y: Tensor,
    train_Yvar: Tensor | None,
    pool: Pool,
) -> GPPrior:
    r"""The process of all sources, fitted to their values.

    Args:
        model: The model; ``None``: the likeliest of several.
        train_X: ``n x (d + 1)``; the last column is the number of the source, as in the
            pool, or of values from before the run any number.
        train_Y: ``n x 1``.
        train_Yvar: ``n x 1``, or ``None`` to learn the noise, which then is the same
            share of the variance of values at each source.
        pool: The pool, from ``Pool.at_sources``.
    """
    if model is None:
        has_more = len(numbers_of(pool, train_X)) > len(pool.sources)
        model = OF_ALL_NUMBERS if has_more else LikeliestSources()
    several = model.models if isinstance(model, LikeliestSources) else (model,)
    found = [_fit(one, train_X, train_Y, train_Yvar, pool) for one in several]
    return max(found, key=lambda pair: pair[0])[1]()


def numbers_of(pool: Pool, X: Tensor) -> Tensor:
    r"""The number of each source, the pool's first, then further ones in order.

    Args:
        pool: The pool, from ``Pool.at_sources``.
        X: ``n x (d + 1)`` points, the last column of which may have further numbers.
    """
    known, told = pool.levels.to(X), X[:, -1].unique()
    return torch.cat((known, told[~torch.isin(told, known)]))


@dataclass(frozen=True, eq=False)
class SourceOf:
    r"""The place of the source of points among all sources: that of the nearest number.

    Args:
        numbers: The number of each source (``M``).
    """

    numbers: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        r"""The places, from 0, of ``... x (d + 1)`` points."""
        numbers, order = self.numbers.sort()
        middle = (numbers[1:] + numbers[:-1]) / 2
        return order[torch.bucketize(X[..., -1].contiguous(), middle)]


@dataclass(frozen=True, eq=False)
class BesideSource:
    r"""The map of all columns but the last, in place of which comes that of the source.

    Args:
        transform: The map of the inputs.
        source_of: The map of points to the places of their sources.
    """

    transform: Callable[[Tensor], Tensor]
    source_of: SourceOf

    def __call__(self, X: Tensor) -> Tensor:
        r"""The kernel's inputs at ``... x (d + 1)`` points."""
        own = self.transform(X[..., :-1])
        return torch.cat((own, self.source_of(X).unsqueeze(-1).to(own)), dim=-1)


@dataclass(frozen=True, eq=False)
class NoiseOfSources:
    r"""The noise variance of a new value, by its source.

    Args:
        variance: ``M`` variances.
        source_of: The map of points to the places of their sources.
    """

    variance: Tensor
    source_of: SourceOf

    def __call__(self, X: Tensor) -> Tensor:
        r"""The noise variances at ``... x (d + 1)`` points."""
        return self.variance[self.source_of(X)]


def unfitted_sources(pool: Pool, told: Tensor) -> GPPrior:
    r"""The prior before any data: sources that know nothing of each other.

    Args:
        pool: The pool, from ``Pool.at_sources``.
        told: ``n x (d + 1)`` points of values from before the run.
    """
    from botorch_lse.models.fitted import input_scaling, kernel_of_inputs

    numbers = numbers_of(pool, told)
    bounds, words = pool.bounds[:, :-1], dict(pool.words.values())
    transform = BesideSource(input_scaling(bounds, words), SourceOf(numbers))
    column = transform(pool.X[:1]).shape[-1] - 1
    same = Loadings(torch.eye(len(numbers), dtype=torch.float64), column)
    kernel = kernel_of_inputs(bounds.shape[-1], words, is_sum=False)
    prior = GPPrior.from_kernel(of_inputs(kernel, column) * same)
    prior = replace(prior, transform_inputs=transform)
    with torch.no_grad():
        variance = prior.variance(prior.features(pool.X[:1]))[0]
    return replace(prior, scale=prior.scale / variance.sqrt())


def _fit(
    model: SourceModel, X: Tensor, Y: Tensor, yvar: Tensor | None, pool: Pool
) -> tuple[float, Callable[[], GPPrior]]:
    r"""The criterion of how well a model explains values, and what makes its process.

    What noise the values allow is asked of the chosen model alone, as it takes as long
    as a fit.
    """
    from botorch_lse.models import fitted
    from botorch_lse.models.explanations import explained, likeliest

    assert pool.target is not None  # as `Pool.at_sources` makes it
    levels, y = numbers_of(pool, X), Y.squeeze(-1)
    M, source_of = len(levels), SourceOf(levels)
    source = source_of(X)
    # Further numbers, which may have a value each, have one centre; all have one where
    # the model itself knows how the mean changes with the number.
    n = 0 if model.needs_numbers else len(pool.sources)
    group = torch.arange(M).to(source).clamp_max(n)
    units = _units(y, group[source], n + 1, model.has_one_unit)
    centre, scale = (unit[group] for unit in units)
    bounds, words = pool.bounds[:, :-1], dict(pool.words.values())
    transform = BesideSource(fitted.input_scaling(bounds, words), source_of)
    F, d = transform(X), bounds.shape[-1]
    standard = ((y - centre[source]) / scale[source]).unsqueeze(-1)
    column = F.shape[-1] - 1

    def process() -> Kernel:
        return of_inputs(fitted.kernel_of_inputs(d, words), column)

    def own() -> Kernel:
        return fitted.scaled(process(), OWN_SHARE, OWN_SPREAD)

    correlation = _correlation(F[:, :-1], standard.squeeze(-1), source, M)
    numbers = fitted.columns_of_numbers(d, words)
    given = column, process, own, correlation, levels, numbers, len(pool.sources)
    parts = SourceParts(M, pool.target, *given)
    noise = None
    if yvar is not None:
        noise = yvar / scale[source].square().unsqueeze(-1)
        noise = noise.clamp_min(FITTED_NOISE)
    kernel = model.kernel(parts)
    starts = fitted.unfitted_standardised(F, standard, noise, kernel)
    # Where the noise is learnt they are begun from once more, with another noise.
    found: tuple[float, Any] = likeliest(deepcopy(starts) if noise is None else starts)
    of_target = float(scale[pool.target])
    value = _criterion(*found) - float(scale[source].log().sum())

    def prior() -> GPPrior:
        gp, between = found[1], None
        if yvar is None:
            gp = explained(starts, fitted.n_replicates(F), found)
            known = gp.likelihood.noise.detach().double() * scale.square()
            between = noise_between(gp, of_target)
        else:
            known = _mean_by(yvar.squeeze(-1), source, M)
        one = torch.ones((), dtype=torch.float64).to(F)
        return GPPrior(
            held(OutputMean(gp.mean_module, column, scale, centre)),
            held(OutputKernel(gp.covar_module, column, scale)),
            one,
            0.0 * one,
            None,
            transform,
            predict_noise=NoiseOfSources(known, source_of),
            noise_between=between,
        )

    return value + math.log(model.odds), prior


def _mean_by(values: Tensor, source: Tensor, M: int) -> Tensor:
    r"""The mean of the values of each source; of all where a source has none."""
    n, zero = torch.bincount(source, minlength=M), values.new_zeros(M)
    found = zero.index_add(0, source, values) / n
    return torch.where(n > 0, found, values.mean())


def _units(
    y: Tensor, source: Tensor, M: int, has_one_unit: bool
) -> tuple[Tensor, Tensor]:
    r"""The centre and the standard deviation of the values of each source (``M``).

    Args:
        y: ``n`` values.
        source: ``n`` numbers of sources.
        M: The number of sources.
        has_one_unit: Whether the unit is the same for all of them.
    """
    centre = _mean_by(y, source, M)
    squares = (y - centre[source]).square()
    common = squares.mean().sqrt()
    if not float(common) > 0:
        common = torch.ones_like(common)
    found = common.expand(M).clone()
    if not has_one_unit:
        own = _mean_by(squares, source, M).sqrt()
        found = torch.where(own > 0, own, found)
    return centre, found


def _correlation(X: Tensor, y: Tensor, source: Tensor, M: int) -> Tensor:
    r"""The correlations of sources at points that two of them share (``M x M``).

    Args:
        X: ``n x d`` points.
        y: ``n`` values.
        source: ``n`` numbers of sources.
        M: The number of sources.
    """
    _, point = X.unique(dim=0, return_inverse=True)
    values = torch.full((M, int(point.max()) + 1), torch.nan, dtype=torch.float64)
    values[source, point] = y  # of repeats one
    found = torch.eye(M, dtype=torch.float64)
    for j, k in itertools.combinations(range(M), 2):
        shared = values[[j, k]][:, ~values[[j, k]].isnan().any(dim=0)]
        rho = torch.tensor(USUAL_LOADING)
        if shared.shape[-1] >= FEW_SHARED and bool((shared.std(dim=-1) > 0).all()):
            rho = torch.corrcoef(shared)[0, 1]
        found[j, k] = found[k, j] = rho
    return found


def _criterion(value: float, model: Any) -> float:
    r"""The log likelihood of a fitted model, less BIC's price of its parameters.

    Of the standardised values: the units are the caller's business.

    Args:
        value: What its fit attained, for each value, with the priors.
        model: Itself.
    """
    from botorch_lse.models.explanations import log_priors

    n = len(model.train_targets)
    k = sum(p.numel() for p in model.parameters() if p.requires_grad)
    with torch.no_grad():
        return n * value - log_priors(model) - 0.5 * k * math.log(n)
