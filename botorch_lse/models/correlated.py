r"""Correlated outputs: one Gaussian process on points and outputs.

A process on pairs ``(x, j)`` of a point and the number of an output gives each output a
prior of its own, and covariances between them, so that a value of one output tells of
the others. Each output has its ``PoolPosterior`` here as elsewhere; they share the
Cholesky factor of all data, and are observed together.

Source:
    The intrinsic model of coregionalization (Bonilla et al. 2007), BoTorch's
    ``MultiTaskGP``; any kernel on such pairs will do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.outcome import Standardize, StratifiedStandardize
from gpytorch.kernels import IndexKernel, Kernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from gpytorch.means import MultitaskMean
from torch import Tensor
from torch.nn import Module

from botorch_lse._validation import complaint
from botorch_lse.models.gaussian_process import (
    GPPrior,
    News,
    PoolPosterior,
    diagonal,
    factorize,
    frozen,
    noise_between,
    path_rows,
    row_blocks,
)
from botorch_lse.models.stationary import covariances

if TYPE_CHECKING:
    from botorch.models.multitask import MultiTaskGP

    from botorch_lse.models.fitted import ModelFactory

REMEDY = (
    "Give a `MultiTaskGP` of all outputs, a factory of one, or one single-output GP "
    "for each output."
)


AFFINE = (Standardize, StratifiedStandardize)
"""The outcome transforms after which outputs are Gaussian in their own units."""


# --- the process ----------------------------------------------------------------------


class OutputKernel(Kernel):
    r"""A kernel on points and outputs, in the units of the outputs.

    Args:
        base: The kernel, one of whose columns is the number of the output.
        column: Which one.
        scale: ``M`` factors from the kernel's units to those of the outputs.
    """

    scale: Tensor

    def __init__(self, base: Kernel, column: int, scale: Tensor) -> None:
        super().__init__()
        self.base, self.column = base, column
        self.register_buffer("scale", scale)

    def scale_at(self, x: Tensor) -> Tensor:
        r"""The factor of each point's output."""
        return self.scale[x[..., self.column].round().long()]

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""Covariances of ``N x d'`` points with ``M x d'``, or the diagonal alone."""
        one, other = self.scale_at(x1), self.scale_at(x2)
        if diag:
            return self.base(x1, x2, diag=True) * one * other
        block = covariances(self.base, x1, x2)
        return block * one.unsqueeze(-1) * other.unsqueeze(-2)


class OutputMean(Module):
    r"""A mean on points and outputs, in the units of the outputs.

    Args:
        base: The mean: GPyTorch's ``MultitaskMean``, of which one column is taken, or
            any other, which is given the number of the output among its columns.
        column: Where that number stands.
        scale: ``M`` factors from the mean's units to those of the outputs.
        shift: ``M`` values of the outputs where the mean is 0.
    """

    base: Module
    scale: Tensor
    shift: Tensor

    def __init__(self, base: Module, column: int, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.base, self.column = base, column
        self.register_buffer("scale", scale)
        self.register_buffer("shift", shift)

    def forward(self, x: Tensor) -> Tensor:
        r"""The means at ``N x d'`` points (``N``)."""
        at = x[..., self.column].round().long()
        if isinstance(self.base, MultitaskMean):
            point = torch.cat((x[..., : self.column], x[..., self.column + 1 :]), -1)
            standard = self.base(point).gather(-1, at.unsqueeze(-1)).squeeze(-1)
        else:
            standard = self.base(x)
        return standard * self.scale[at] + self.shift[at]


@dataclass(frozen=True)
class WithOutput:
    r"""The map from points to the kernel's inputs for one output.

    Args:
        column: Where the number of the output stands.
        task: By which number the model knows the output, before its input transform.
        number: The number of the output, from 0.
        transform: The model's input transform.
    """

    column: int
    task: int
    number: int
    transform: Callable[[Tensor], Tensor] | None = None

    def __call__(self, X: Tensor) -> Tensor:
        r"""The kernel's inputs ``... x (d + 1)`` at points ``... x d``."""
        c, task = self.column, torch.full_like(X[..., :1], self.task)
        full = torch.cat((X[..., :c], task, X[..., c:]), dim=-1)
        if self.transform is not None:
            full = self.transform(full).clone()
        full[..., c] = self.number
        return full


class TableKernel(Kernel):
    r"""A kernel that looks up task covariances: GPyTorch's with nothing to learn.

    Its own multiplies by sparse matrices at each call.

    Args:
        kernel: The kernel of the tasks.
    """

    table: Tensor

    def __init__(self, kernel: IndexKernel) -> None:
        super().__init__(active_dims=kernel.active_dims)
        self.register_buffer("table", kernel.covar_matrix.to_dense().detach())

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""Covariances of ``N x 1`` numbers with ``M x 1``, or the diagonal alone."""
        one, other = x1.long().squeeze(-1), x2.long().squeeze(-1)
        if diag:
            return self.table[one, other]
        return self.table[one.unsqueeze(-1), other.unsqueeze(-2)]


def tabulated(kernel: Kernel) -> Kernel:
    r"""The frozen kernel, its task covariances looked up in tables."""
    found = frozen(kernel)
    if isinstance(found, IndexKernel):
        return TableKernel(found)
    for module in list(found.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, IndexKernel):
                setattr(module, name, TableKernel(child))
    return found


def priors_of(model: Any) -> tuple[GPPrior, ...]:
    r"""The prior of each output of a ``MultiTaskGP``; they share one kernel.

    Args:
        model: A fitted ``MultiTaskGP`` with all its tasks as outputs; output 0 is the
            task of the smallest number. Its data are ignored.

    Raises:
        UnsupportedError: If it is another model, a part of it, or not exact.
    """
    _refuse_others(model)
    model.eval()
    column, M = model._task_feature, model.num_tasks
    tasks = sorted(model._output_tasks)
    transform = getattr(model, "input_transform", None)
    transform = None if transform is None else frozen(transform)
    scale, shift = _units_of(model, M)
    kernel = OutputKernel(tabulated(model.covar_module), column, scale)
    mean = OutputMean(frozen(model.mean_module), column, scale, shift)
    noise: list[Tensor | None] = [None] * M
    if not isinstance(model.likelihood, FixedNoiseGaussianLikelihood):
        raw = model.likelihood.noise.detach().double().view(-1).expand(M)
        noise = list((raw * scale.double().square()).unbind())
    one = torch.ones((), dtype=torch.float64, device=scale.device)
    found = tuple(
        GPPrior(
            mean,
            kernel,
            one,
            0.0 * one,
            noise[j],
            WithOutput(column, t, j, transform),
            noise_between=noise_between(model, float(scale[j])),
        )
        for j, t in enumerate(tasks)
    )
    _refuse_other_forward(model, found)
    return found


def _refuse_others(model: Any) -> None:
    # Not at the top: it brings SciPy, and whoever has a model has it.
    from botorch.models.multitask import MultiTaskGP

    name = type(model).__name__
    if not isinstance(model, MultiTaskGP):
        wanted = "to be a MultiTaskGP where outputs are correlated"
        raise UnsupportedError(complaint("model", wanted, f"got {name}", REMEDY))
    if model.num_outputs != model.num_tasks:
        came = f"got {model.num_outputs} of {model.num_tasks}"
        remedy = "Leave `output_tasks` out."
        wanted = "to have all its tasks as outputs"
        raise UnsupportedError(complaint("model", wanted, came, remedy))
    transform = getattr(model, "outcome_transform", None)
    if not (
        transform is None or type(transform) in (Standardize, StratifiedStandardize)
    ):
        raise UnsupportedError(
            "Expected the outcome transform of `model` to be `Standardize`, "
            f"`StratifiedStandardize` or none, but got {type(transform).__name__}, "
            "after which the posterior in the units of `y` is not Gaussian. Transform "
            "`y` and the levels yourself."
        )


def _units_of(model: MultiTaskGP, M: int) -> tuple[Tensor, Tensor]:
    r"""The factors and shifts from a model's units to those of outputs (``M`` each)."""
    transform, X = getattr(model, "outcome_transform", None), _inputs_of(model)
    if transform is None:
        return torch.ones(M).to(X), torch.zeros(M).to(X)
    scale, shift = transform.stdvs.view(-1), transform.means.view(-1)
    return scale.expand(M).to(X), shift.expand(M).to(X)


def _inputs_of(model: Any) -> Tensor:
    inputs: Tensor = model.train_inputs[0]
    return inputs.detach()


def _refuse_other_forward(model: MultiTaskGP, priors: Sequence[GPPrior]) -> None:
    r"""Complain if ``forward`` does more than call mean and kernel."""
    prior, column = priors[0], model._task_feature
    with torch.no_grad(), warnings.catch_warnings():
        # Of GPyTorch's sparse matrices torch warns, once.
        warnings.filterwarnings("ignore", "Sparse invariant checks")
        given = _inputs_of(model)
        at = torch.tensor(sorted(model._output_tasks)).to(given)
        number = (given[:, column : column + 1] == at).long().argmax(dim=-1)
        # The first two points of each output suffice.
        some = torch.cat([(number == j).nonzero()[:2, 0] for j in range(len(priors))])
        said, F = model.forward(given[some]), given[some].clone()
        F[:, column] = number[some].to(F)
        base = prior.mean_module.base
        assert isinstance(base, Module)  # of an `OutputMean`
        M = len(priors)
        plain = torch.ones(M).to(F), torch.zeros(M).to(F)  # scale and shift
        mean = OutputMean(base, column, *plain)(F)
        kernel = prior.covar_module
        assert isinstance(kernel, OutputKernel)  # likewise
        covariance = kernel.base(F).to_dense()
        close = partial(torch.allclose, rtol=1e-4, atol=1e-6)
        exact = close(said.mean, mean) and close(said.covariance_matrix, covariance)
    if not exact:
        raise UnsupportedError(
            "Expected `model.forward` to call the mean and the kernel of a MultiTaskGP,"
            f" but that of {type(model).__name__} does more. {REMEDY}"
        )


def rescaled(priors: Sequence[GPPrior], factors: Sequence[float]) -> list[GPPrior]:
    r"""The priors with each output's deviations from its mean multiplied by a factor.

    Args:
        priors: Of all outputs, as of ``priors_of``.
        factors: One for each.
    """
    before = priors[0].covar_module
    assert isinstance(before, OutputKernel)  # of `priors_of`
    factor = torch.tensor(factors).to(before.scale)
    kernel = OutputKernel(before.base, before.column, before.scale * factor)
    return [replace(prior, covar_module=kernel) for prior in priors]


@dataclass(frozen=True)
class CorrelatedModel:
    r"""The model of a process of correlated outputs, which is fitted to data.

    Args:
        factory: From ``(X, y, yvar)`` to a fitted ``MultiTaskGP``, the last column of
            ``X`` being the number of the output; ``None``: ``fit_multi_task_gp``.
    """

    factory: ModelFactory | None = None

    def fit(
        self,
        X: Sequence[Tensor],
        y: Sequence[Tensor],
        yvar: Sequence[Tensor] | None,
        bounds: Tensor,
    ) -> tuple[GPPrior, ...]:
        r"""The prior of each output.

        Args:
            X: For each output ``n_j x d`` points.
            y: For each output ``n_j`` values.
            yvar: For each output ``n_j`` noise variances, or ``None`` to learn one for
                each.
            bounds: ``2 x d`` bounds of the pool.

        Raises:
            UnsupportedError: If the factory does not return a ``MultiTaskGP``.
        """
        # Not at the top: it brings SciPy, which only a fit needs.
        from botorch_lse.models.fitted import fit_multi_task_gp

        given = in_long_form(X, y, yvar)
        if self.factory is None:
            return priors_of(fit_multi_task_gp(*given, bounds))
        return priors_of(self.factory(*given))


def in_long_form(
    X: Sequence[Tensor], y: Sequence[Tensor], yvar: Sequence[Tensor] | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    r"""The data with one line per value, the number of its output as last column.

    Args:
        X: For each output ``n_j x d`` points.
        y: For each output ``n_j`` values.
        yvar: For each output ``n_j`` noise variances, or ``None``.

    Returns:
        ``n x (d + 1)``, ``n x 1``, and ``n x 1`` or ``None``; output by output.
    """
    numbers = [torch.full((len(v), 1), float(j)).to(v) for j, v in enumerate(y)]
    pairs = zip(X, numbers, strict=True)
    long = torch.cat([torch.cat((own, number), dim=-1) for own, number in pairs])
    noise = None if yvar is None else torch.cat(list(yvar)).unsqueeze(-1)
    return long, torch.cat(list(y)).unsqueeze(-1), noise


# --- the posteriors -------------------------------------------------------------------

Posteriors = Sequence[PoolPosterior]


def start(
    priors: Sequence[GPPrior], X: Tensor, memory_budget: int
) -> tuple[PoolPosterior, ...]:
    r"""The posterior of each output before any observation.

    Args:
        priors: Of all outputs, as of ``priors_of``.
        X: ``N x d`` rows of the pool.
        memory_budget: Bytes for the path rows and for temporary arrays.
    """
    m = len(priors)
    each = [PoolPosterior.start(prior, X, memory_budget, m) for prior in priors]
    return tuple(replace(posterior, data=posterior.F[:0]) for posterior in each)


@dataclass(frozen=True, eq=False)
class _Points:
    r"""The outputs at some rows, output by output: ``p`` points.

    Args:
        F: ``p x d'`` features.
        path: ``p x (n + e)``, as of ``PoolPosterior.path_at``.
        scale: ``p`` deviations of the outputs' priors.
        least: ``p`` least noise variances of the outputs.
    """

    F: Tensor
    path: Tensor
    scale: Tensor
    least: Tensor

    @classmethod
    def of(cls, posteriors: Posteriors, rows: Sequence[Tensor]) -> _Points:
        pairs = list(zip(posteriors, rows, strict=True))
        path = torch.cat([p.path_at(own) for p, own in pairs])
        scale = torch.cat([torch.full((len(own),), p.scale) for p, own in pairs])
        least = torch.cat([p.least_noise.expand(len(own)) for p, own in pairs])
        F = torch.cat([p.F[own] for p, own in pairs])
        return cls(F, path, scale.to(path), least)

    def prior_with(self, posterior: PoolPosterior) -> Callable[[slice], Tensor]:
        r"""The map from a slice of the pool to prior covariances with an output."""
        return lambda rows: posterior.prior.covariance(self.F, posterior.F[rows])

    def factor(self, prior: GPPrior, noise_var: Tensor) -> Tensor:
        r"""The factor of the points' covariance, noise included."""
        left = prior.covariance(self.F, self.F) - self.path @ self.path.mT
        # In units of the outputs, so that jitter means the same in each.
        unit = left / self.scale.unsqueeze(-1) / self.scale
        L = factorize(unit, noise_var / self.scale.square())
        return self.scale.unsqueeze(-1) * L


def _news(
    posteriors: Posteriors,
    points: _Points,
    y: Sequence[Tensor],
    noise_var: Sequence[Tensor],
) -> News:
    r"""The news in further values of outputs, seen from the values before them."""
    given, prior = torch.cat(list(noise_var)), posteriors[0].prior
    noise = torch.maximum(given, points.least)
    L = points.factor(prior, noise)
    residual = torch.cat(list(y)) - prior.mean(points.F)
    residual = residual - points.path @ posteriors[0].a
    a = torch.linalg.solve_triangular(L, residual.unsqueeze(-1), upper=False)
    is_exact = bool((given <= points.least).any())
    return News(points.path, L, a.squeeze(-1), noise, is_exact)


def observed(
    posteriors: Posteriors,
    rows: Sequence[Tensor],
    y: Sequence[Tensor],
    noise_var: Sequence[Tensor],
) -> tuple[PoolPosterior, ...]:
    r"""The posteriors after measurements, each of any output.

    Args:
        posteriors: One per output.
        rows: For each output the rows at which it was measured.
        y: For each output its values there, in its units.
        noise_var: For each output the noise variances.
    """
    if sum(map(len, rows)) == 0:
        return tuple(posteriors)
    with torch.no_grad():
        points = _Points.of(posteriors, rows)
        news = _news(posteriors, points, y, noise_var)
        pairs = zip(posteriors, rows, strict=True)
        return tuple(
            p.conditioned(news, own, points.prior_with(p), points.F) for p, own in pairs
        )


def surprises(
    posteriors: Posteriors,
    rows: Sequence[Tensor],
    y: Sequence[Tensor],
    noise_var: Sequence[Tensor],
) -> tuple[Tensor, ...]:
    r"""The standardised residuals from the predictions, for each output.

    Each value is predicted from all before it, also from those of the batch, and of the
    outputs before its own. For the arguments see ``observed``.
    """
    with torch.no_grad():
        news = _news(posteriors, _Points.of(posteriors, rows), y, noise_var)
        return news.a.split([len(own) for own in rows])


def expected(
    posteriors: Posteriors, rows: Sequence[Tensor], noise_var: Sequence[Tensor]
) -> tuple[PoolPosterior, ...]:
    r"""The posteriors after measurements whose values are not known yet.

    Args:
        posteriors: One per output.
        rows: For each output the rows at which it will be measured.
        noise_var: For each output the noise variances.
    """
    with torch.no_grad():
        points = _Points.of(posteriors, rows)
        noise = torch.maximum(torch.cat(list(noise_var)), points.least)
        L = points.factor(posteriors[0].prior, noise)
        given = [p.covariance_to(points.prior_with(p), points.path) for p in posteriors]
        taken = [path_rows(L, covariance) for covariance in given]
        return tuple(p.less(own) for p, own in zip(posteriors, taken, strict=True))


def own_data(posterior: PoolPosterior) -> Tensor:
    r"""Whether observations of correlated outputs are of this output (``n`` bools)."""
    assert posterior.data is not None  # it is one of several
    column = posterior.prior.covar_module.column
    return posterior.data[:, column] == posterior.F[0, column]


def covariance_at(posteriors: Posteriors, rows: Tensor) -> Tensor:
    r"""The posterior covariances of the outputs, row by row (``T x M x M``)."""
    with torch.no_grad():
        M, found = len(posteriors), posteriors[0].mean.new_empty(0)
        found = found.new_empty(len(rows), M, M)
        kernel, n = posteriors[0].prior.covar_module, posteriors[0].a.numel()
        budget = posteriors[0].memory_budget
        for part in row_blocks(len(rows), M * (n + 1), budget):
            F = [p.F[rows[part]] for p in posteriors]
            path = [p.path_at(rows[part]) for p in posteriors]
            for m in range(M):
                for k in range(m + 1):
                    prior = diagonal(kernel, F[m], F[k])
                    own = prior - (path[m] * path[k]).sum(dim=-1)
                    found[part, m, k] = found[part, k, m] = own
        return found


def correlation_at(posteriors: Posteriors, rows: Tensor) -> Tensor | None:
    r"""The posterior correlations of outputs (``T x M x M``); ``None``: independent."""
    if not posteriors[0].is_correlated:
        return None
    covariance = covariance_at(posteriors, rows)
    least = torch.finfo(covariance.dtype).tiny
    sigma = covariance.diagonal(dim1=-2, dim2=-1).clamp_min(least).sqrt()
    found = covariance / sigma.unsqueeze(-1) / sigma.unsqueeze(-2)
    # Rounding may leave a little more than 1, or anything where nothing is uncertain.
    found = found.clamp(-1.0, 1.0)
    found.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    return found


def gains(
    posteriors: Posteriors,
    outputs: Sequence[int],
    rows: Tensor,
    targets: Tensor,
    noise: Sequence[Tensor],
) -> Iterator[tuple[slice, list[Tensor]]]:
    r"""The decrease of each output's variances by a measurement of all, or of one.

    Args:
        posteriors: One per output; they expect the rows planned already.
        outputs: Those that are measured: one or all.
        rows: ``C`` candidates.
        targets: ``T`` rows.
        noise: For each output that is measured ``C`` noise variances at the candidates.

    Yields:
        A slice of the candidates and, for each output, ``c x T`` reductions.
    """
    M, prior = len(posteriors), posteriors[0].prior
    if len(outputs) < M:
        yield from _gains_of_one(posteriors, outputs[0], rows, targets, noise[0])
        return
    with torch.no_grad():
        there = [p.path_at(targets).mT for p in posteriors]
        scale = torch.tensor([p.scale for p in posteriors]).to(there[0])
        for part in row_blocks(len(rows), 2 * M * len(targets)):
            x = rows[part]
            total = covariance_at(posteriors, x)
            added = torch.stack([own[part] for own in noise], dim=-1)
            total.diagonal(dim1=-2, dim2=-1).add_(added).clamp_min_(0.0)
            unit = total / scale.unsqueeze(-1) / scale
            L = torch.linalg.cholesky(unit + 1e-12 * torch.eye(M).to(unit))
            here = [p.path_at(x) for p in posteriors]
            found = []
            for k, target in enumerate(posteriors):
                F = target.F[targets]
                each = [
                    prior.covariance(p.F[x], F) - path @ there[k]
                    for p, path in zip(posteriors, here, strict=True)
                ]
                c = torch.stack(each, dim=1) / scale.view(1, -1, 1)
                found.append(path_rows(L, c).square().sum(dim=1))
            yield part, found


def _gains_of_one(
    posteriors: Posteriors, output: int, rows: Tensor, targets: Tensor, noise: Tensor
) -> Iterator[tuple[slice, list[Tensor]]]:
    r"""The decrease of variances by a measurement of one output; see ``gains``."""
    own, prior = posteriors[output], posteriors[0].prior
    with torch.no_grad():
        there = [p.path_at(targets).mT for p in posteriors]
        total = own.variance[rows] + torch.maximum(noise, own.least_noise)
        for part in row_blocks(len(rows), 2 * len(targets)):
            x, found = rows[part], []
            here = own.path_at(x)
            for target, path in zip(posteriors, there, strict=True):
                c = prior.covariance(own.F[x], target.F[targets]) - here @ path
                found.append(c.square() / total[part].unsqueeze(-1))
            yield part, found


def covariance_between(
    one: PoolPosterior, rows: Tensor, other: PoolPosterior, columns: Tensor
) -> Tensor:
    r"""The posterior covariances of an output at rows with another one (``r x c``)."""
    with torch.no_grad():
        prior = one.prior.covariance(one.F[rows], other.F[columns])
        return prior - one.path_at(rows) @ other.path_at(columns).mT
