r"""A Gaussian process with everything fixed, and its posteriors.

``GPPrior`` is the process, in the units of ``y``; ``GPPrior.from_model`` is the only
place that knows how GPyTorch and BoTorch store kernels, noise and transforms.
``PosteriorPath`` holds the past of a fitted model: the posteriors after each of its
observations or rounds, at any points. ``PoolPosterior`` goes forward: the posterior on
all rows of a pool, one new observation at a time, measured or only planned.

Both read every posterior from one triangular factor. Notation: ``n`` observations with
prior means ``m``, covariance ``K`` and noise variances ``s``; ``L L' = K + diag(s)``;
``k(x)`` the prior covariances between the observations and ``x``. With
``V = L^-1 k(x)`` and ``a = L^-1 (y - m)`` the posterior after the first ``t``
observations has

    mean      m(x) + sum_{i <= t} a_i V_i(x)
    variance  k(x, x) - sum_{i <= t} V_i(x)^2

because the leading block of ``L`` is the factor of the leading block of ``K``.
Everything is batch-shaped: leading dimensions are those of an ensemble.

A measurement divides by the variance that it has, ``k(x, x)`` given the data plus its
noise. Without noise, and where the row is known already, that variance is what rounding
left of it: of any size and any sign, another one on each processor. Every variance of
noise is therefore raised to a share of the process's own variance that is far above
rounding, and far below what anybody measures (``least_noise``). Exact measurements
(simulators) are such measurements; they leave the standard deviation ``1e-5`` of the
prior's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.kernels import CategoricalKernel
from botorch.models.model import Model
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.utils.transforms import is_ensemble
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import Mean, ZeroMean
from gpytorch.models import ExactGP
from torch import Tensor
from torch.nn import Module, Parameter

from botorch_lse._numerals import written
from botorch_lse._validation import complaint, whole_number, whole_numbers
from botorch_lse.models.outcomes import Outcome
from botorch_lse.models.stationary import (
    Stationary,
    StationarySum,
    composed,
    covariances,
    stationary_form,
)

JITTER = 1e-10
"""The least noise in float64, as a share of the prior variance.
A Cholesky factor of ``n`` rows is off by about ``n 1e-16`` of that variance, so that
10,000 measurements keep two digits of what this leaves."""
JITTER_SINGLE = 1e-5
"""The least noise in float32, which keeps as much of 100 measurements."""
ROUNDING = 1e-14
"""The rounding error of differences of variances, as a share of the prior variance."""
EXACT_NOTE = (
    "Measurements without noise count as exact, up to a noise variance of "
    f"{JITTER:g} of the prior's ({JITTER_SINGLE:g} in float32)."
)
"""The sentence that a guarantee adds where it rests on measurements without noise."""
JITTER_STEPS = (0.0, 1.0, 1e2, 1e4)
"""The jitters tried in turn until the Cholesky factor exists, in least noises.
Covariances of nearly equal points with hardly any noise are singular in float64."""

MEMORY_BUDGET = 2**30
"""The bytes that temporary arrays over a pool may take, unless said otherwise."""

FAST_BLOCK = 2**25
"""The bytes beyond which blocks are not made larger even where the budget allows.
Arrays that stay near the processor's caches are several times faster."""

KEPT_MEMORY = 30 * 2**20
"""The bytes of temporary arrays that the allocator keeps; its limit is 32 MiB."""

GIVEN_BACK = 2**17
"""The bytes of an array from which on Linux's allocator gives its memory back."""

COPIES = 6
"""The number of arrays of observations times rows that exist at once.
Covariances and their temporaries, path rows, and two cumulative sums."""

MERGED = 32
"""The number of rows, expected one by one, that are put together.
Reading a column of hundreds of tensors takes as long as computing with them."""

FITTED_NOISE = 2e-6
"""The smallest known noise in a fit, as a share of the spread of the values.
GPyTorch raises it to 1e-6 with a warning. The process then gets the noise as it is."""

WHOLE_GRAM = 400
"""The number of rows up to which all prior covariances are computed at once.
A call of a kernel takes about as long for this table as for five of its columns."""

DIAGONAL_ROWS = 512
"""The number of points of which a kernel is asked for the diagonal at once.
Should it make all their covariances, they take 2 MiB for each column."""

_REMEDY = (
    "Use an exact single-output GP such as `SingleTaskGP`, or a criterion that only "
    "needs a posterior, such as `Straddle`."
)
_REMEDY_APART = (
    "Outputs are independent here: give one single-output GP for each. Where they are "
    "correlated, a strategy takes `GaussianProcess(model)` with one fitted MultiTaskGP "
    "of all outputs, or `GaussianProcess(factory, correlated=True)`."
)


def least_noise(prior_variance: Tensor, dtype: torch.dtype) -> Tensor:
    r"""The least noise variance of a measurement, units of ``y`` squared.

    Args:
        prior_variance: ``... x N`` variances of the function before any measurement.
        dtype: The precision in which the kernel is evaluated.

    Returns:
        ``...``, relative to the largest of them; 0 without any.
    """
    share = JITTER if dtype == torch.float64 else JITTER_SINGLE
    variance = torch.nn.functional.pad(prior_variance.detach().double(), (0, 1))
    return share * variance.amax(dim=-1)


class JitterWarning(BotorchWarning):
    r"""The warning that noise was added to a covariance: answers change a little."""


def factorize(
    covariance: Tensor, noise_var: Tensor, least: Tensor | None = None
) -> Tensor:
    r"""The lower Cholesky factor of ``covariance + diag(noise_var)``.

    Args:
        covariance: ``... x n x n``.
        noise_var: ``... x n``.
        least: ``...``, see ``least_noise``: smaller noise variances are raised to it.
            ``None`` where no prior is known: they stay, and a jitter is a share of the
            mean of the diagonal.

    Returns:
        ``... x n x n``, float64.

    Raises:
        ValueError: If even the largest jitter does not help.
    """
    noise_var = noise_var.double()
    # The first attempt has no jitter, so that ordinary data are not changed at all.
    if least is not None:
        noise_var = torch.maximum(noise_var, least.unsqueeze(-1))
    noisy = covariance.double() + torch.diag_embed(noise_var)
    if least is None:
        least = JITTER * noisy.diagonal(dim1=-2, dim2=-1).mean(dim=-1)
    eye = torch.eye(noisy.shape[-1], dtype=noisy.dtype, device=noisy.device)
    for step in JITTER_STEPS:
        L, info = torch.linalg.cholesky_ex(noisy + step * least[..., None, None] * eye)
        if not bool(info.any()):
            if step > 0:
                warnings.warn(
                    f"The covariance of {noisy.shape[-1]} observations is singular; "
                    f"{step * float(least.max()):g} was added to the noise variance. "
                    "Give a larger one to avoid this.",
                    JitterWarning,
                    stacklevel=2,
                )
            return L
    raise ValueError(
        "Expected the prior covariance of the observations plus `noise_var` to be "
        "positive definite, but its Cholesky factor does not exist even with a jitter "
        f"of {JITTER_STEPS[-1] * float(least.max()):g}. Check the kernel and give a "
        "positive noise variance."
    )


def path_rows(L: Tensor, cross: Tensor) -> Tensor:
    r"""The path rows ``V = L^-1 cross``: one per observation, one column per point.

    Args:
        L: ``... x n x n`` lower factor.
        cross: ``... x n x N`` prior covariances.
    """
    return torch.linalg.solve_triangular(L, cross.to(L.dtype), upper=False)


def extended(L: Tensor, cross: Tensor, block: Tensor) -> Tensor:
    r"""The Cholesky factor of a covariance after ``q`` rows and columns are added.

    Args:
        L: ``... x n x n``, the factor so far.
        cross: ``... x q x n``, the path rows at the new points, transposed.
        block: ``... x q x q``, the factor of the new points' covariance (plus noise)
            given the ``n`` old observations.

    Returns:
        ``... x (n + q) x (n + q)``.
    """
    n, q = cross.shape[-1], cross.shape[-2]
    full = L.new_zeros(*L.shape[:-2], n + q, n + q)
    full[..., :n, :n], full[..., n:, :n], full[..., n:, n:] = L, cross, block
    return full


@dataclass(frozen=True, eq=False)
class GPPrior:
    r"""Mean, kernel, noise and transforms of a GP with all hyper-parameters fixed.

    Values come in the units of ``y``: the standardised process times ``scale`` plus
    ``shift``. ``S`` stands for the ensemble's batch shape, usually ``()``.

    Args:
        mean_module: The mean of the standardised process.
        covar_module: Its kernel, on transformed inputs.
        scale: ``S``, the outcome transform's standard deviation, or 1.
        shift: ``S``, the outcome transform's mean, or 0.
        noise_var: ``S``, the noise variance of one observation in the units of ``y``
            squared; ``None`` if the model knows the noise of its data only.
        transform_inputs: From the user's inputs to the kernel's.
        batch_shape: ``S``.
        is_ensemble: Whether ``S`` holds the members of an ensemble.
        predict_noise: Noise variances at points, ``... x d`` in the user's space to
            ``...``, units of ``y`` squared; ``None`` where ``noise_var`` is all.
        before: The process before it was ``given`` any values; ``None`` if it was not.
        noise_between: The noise variances between which the data that it was fitted to
            do not tell, units of ``y`` squared; ``None`` where they do.
        outcome: What results say of the process, with what a fit has found of it;
            ``None`` where they are values with noise.
    """

    mean_module: Module
    covar_module: Kernel
    scale: Tensor
    shift: Tensor
    noise_var: Tensor | None = None
    transform_inputs: Callable[[Tensor], Tensor] | None = None
    batch_shape: torch.Size = field(default_factory=torch.Size)
    is_ensemble: bool = False
    predict_noise: Callable[[Tensor], Tensor] | None = None
    before: GPPrior | None = None
    noise_between: tuple[float, float] | None = None
    outcome: Outcome | None = None

    @classmethod
    def from_kernel(
        cls, kernel: Kernel, mean: Mean | None = None, noise_var: float | None = None
    ) -> GPPrior:
        r"""A prior from a GPyTorch kernel in the units of the inputs and of ``y``.

        Args:
            kernel: The covariance; its hyper-parameters are copied, frozen and held in
                float64.
            mean: The mean; default zero. Copied and frozen like the kernel.
            noise_var: The noise variance of one observation.

        Raises:
            UnsupportedError: If the kernel is batched.
        """
        if len(kernel.batch_shape):
            raise UnsupportedError(
                f"Expected a kernel without batch shape, but got {kernel.batch_shape}."
            )
        one = torch.ones((), dtype=torch.float64)
        return cls(
            frozen(mean if mean is not None else ZeroMean()).double(),
            frozen(kernel).double(),
            one,
            0.0 * one,
            None if noise_var is None else noise_var * one,
        )

    @classmethod
    def from_model(cls, model: Any) -> GPPrior:
        r"""The prior inside a fitted exact GP with one output.

        Args:
            model: A ``SingleTaskGP`` or another ``ExactGP`` with ``mean_module`` and
                ``covar_module``, a Gaussian likelihood, any input transform, and a
                ``Standardize`` outcome transform or none.

        Raises:
            UnsupportedError: If the posterior along the data cannot be computed exactly
                for this model; the message says what to use instead.
        """
        _refuse_inexact(model)
        model.eval()
        _refuse_other_forward(model)
        return cls._of_parts(model, frozen)

    @classmethod
    def taken_from(cls, model: Any) -> GPPrior:
        r"""The prior inside a default model that nobody else has.

        Its modules are not copied, which would take longer than all else here.

        Args:
            model: A fitted ``SingleTaskGP`` of ours.

        Raises:
            ValueError: If its fit has failed.
        """
        check_parameters(model)
        return cls._of_parts(model.eval(), held)

    @classmethod
    def _of_parts(cls, model: Any, taken: Callable[[Module], Module]) -> GPPrior:
        scale, shift = _affine_outcome(model, getattr(model, "outcome_transform", None))
        parameter = model.train_inputs[0]
        likelihood = model.likelihood
        if type(likelihood) is GaussianLikelihood or hasattr(likelihood, "raw_noise"):
            noise = likelihood.noise.detach()[..., 0] * scale.square()
        else:
            noise = None
        transform = getattr(model, "input_transform", None)
        return cls(
            taken(model.mean_module),
            taken(model.covar_module),
            scale.to(parameter),
            shift.to(parameter),
            noise,
            None if transform is None else taken(transform),
            model.batch_shape if hasattr(model, "batch_shape") else torch.Size(),
            is_ensemble(model),
            getattr(model, "predict_noise", None),
            noise_between=noise_between(model, float(scale))
            if scale.ndim == 0
            else None,
        )

    def at_least(self, sigma: float, X: Tensor) -> GPPrior:
        r"""The process itself, its scale raised if its standard deviation is smaller.

        Mean, lengthscales and noise stay as they are in the units of ``y``. A process
        that varies enough is returned unchanged.

        Args:
            sigma: The prior standard deviation wanted at the widest point, units of
                ``y``.
            X: ``N x d`` points.

        Raises:
            UnsupportedError: If the process is an ensemble.
        """
        now = self._widest(X)
        if not 0 < now < sigma:
            return self
        kernel = ScaleKernel(self.covar_module)
        kernel.to(dtype=self.dtype, device=self.scale.device)
        # GPyTorch's default constraint would change the last digits of the factor.
        kernel.register_constraint("raw_outputscale", Positive(transform=None))
        factor = self.scale.new_tensor((sigma / now) ** 2, dtype=self.dtype)
        kernel.raw_outputscale = Parameter(factor)
        return replace(self, covar_module=frozen(kernel))

    def in_scale(self, sigma: float, X: Tensor) -> GPPrior:
        r"""The process in another unit, noise included.

        Args:
            sigma: The prior standard deviation wanted at the widest point, units of
                ``y``.
            X: ``N x d`` points.

        Raises:
            UnsupportedError: If the process is an ensemble.
        """
        factor = sigma / self._widest(X)
        noise = self.noise_var
        return replace(
            self,
            scale=self.scale * factor,
            noise_var=None if noise is None else noise * factor**2,
            noise_between=None,  # values that are alike have no noise to tell
        )

    def _widest(self, X: Tensor) -> float:
        if self.batch_shape:
            raise UnsupportedError(
                "Expected one process, but got an ensemble of "
                f"{tuple(self.batch_shape)}."
            )
        with torch.no_grad():
            return float(self.variance(self.features(X)).max().sqrt())

    def given(self, X: Tensor, y: Tensor, noise_var: Tensor) -> GPPrior:
        r"""The process conditioned on some values: again a Gaussian process.

        ``k(x, x') - V(x)' V(x')`` and ``m(x) + V(x)' a`` with ``V(x) = L^-1 k(X, x)``,
        ``a = L^-1 (y - m(X))`` and ``L L' = k(X, X) + noise``.

        Args:
            X: ``n x d`` points, in the user's space.
            y: ``n`` values, units of ``y``.
            noise_var: ``n`` noise variances, units of ``y`` squared; those below the
                least noise are raised to it.
        """
        with torch.no_grad():
            F, unit = self.features(X), self.scale.double()
            least = self.least_noise(F)
            noise = torch.maximum(noise_var.double(), least)
            gram = self.covariance(F, F)
            L = factorize(gram, noise, least) / unit
            # Both in the units of the standardised process, as the modules are.
            residual = ((y.double() - self.mean(F)) / unit).unsqueeze(-1)
            a = torch.linalg.solve_triangular(L, residual, upper=False).squeeze(-1)
        kernel = GivenKernel(self.covar_module, F, L)
        mean = GivenMean(self.mean_module, kernel, a)
        return replace(
            self,
            mean_module=frozen(mean),
            covar_module=frozen(kernel),
            before=self if self.before is None else self.before,
        )

    def errors_ahead(self) -> Tensor:
        r"""The prediction errors of given values, each from those before it.

        Returns:
            ``3 x n``: predictions and their standard deviations, noise included, in the
            units of ``y``, and their errors in units of these; no column where no value
            was ``given``.
        """
        given, unit = self.mean_module, self.scale.double()
        if not isinstance(given, GivenMean):
            return unit.new_zeros(3, 0)
        with torch.no_grad():
            L, a = given.kernel.L, given.a
            mean = self.in_units(given.base(given.kernel.F).double())
            return _errors_ahead(mean.expand(len(a)), unit * L, a)

    @property
    def knows_new_noise(self) -> bool:
        r"""Whether the noise variance of a future observation is known."""
        return self.noise_var is not None or self.predict_noise is not None

    def new_noise(self, X: Tensor) -> Tensor | None:
        r"""The noise variances of one observation at ``N x d`` points, if known.

        Returns:
            ``N``, units of ``y`` squared.
        """
        if self.predict_noise is not None:
            return self.predict_noise(X).detach().double()
        if self.noise_var is None:
            return None
        return self.noise_var.detach().double().expand(len(X))

    @property
    def dtype(self) -> torch.dtype:
        r"""The precision in which the kernel is evaluated."""
        return next((p.dtype for p in self.covar_module.parameters()), self.scale.dtype)

    def features(self, X: Tensor) -> Tensor:
        r"""The kernel's inputs ``S x N x d'`` at ``N x d`` or ``S x N x d`` points."""
        X = X.to(dtype=self.dtype, device=self.scale.device)
        # Each member of an ensemble has an input transform of its own.
        if self.batch_shape and X.ndim < 2 + len(self.batch_shape):
            X = X.expand(*self.batch_shape, *X.shape)
        return X if self.transform_inputs is None else self.transform_inputs(X)

    def mean(self, F: Tensor) -> Tensor:
        r"""Prior means at features (``S x N x d'`` to ``S x N``), units of ``y``."""
        return self.in_units(self.mean_module(F).double())

    def in_units(self, standardised: Tensor) -> Tensor:
        r"""The values of the standardised process in the units of ``y`` (``S x N``)."""
        scale, shift = self.scale.double(), self.shift.double()
        return standardised * scale.unsqueeze(-1) + shift.unsqueeze(-1)

    def covariance(self, F: Tensor, G: Tensor) -> Tensor:
        r"""The prior covariances of features (``S x N x d'``, ``S x M x d'``)."""
        unit, stationary = self.scale.double().square(), self._stationary
        if stationary is not None and (found := stationary(F, G)) is not None:
            scale = stationary.scale * unit
            return found.double().mul_(scale[..., None, None])
        block = covariances(self.covar_module, F, G)
        return block * unit[..., None, None]

    @cached_property
    def _stationary(self) -> Stationary | StationarySum | None:
        return stationary_form(self.covar_module)

    def pool_features(self, X: Tensor) -> Tensor:
        r"""The features of the rows of a pool (``N x d``).

        Raises:
            BotorchTensorDimensionError: If the process is for other columns.
        """
        try:
            # Variances alone would take one column for all that there should be.
            self.covariance(*2 * (self.features(X[:1]),))
        except RuntimeError as error:
            raise BotorchTensorDimensionError(
                f"Expected `model` to be for the {X.shape[-1]} columns of the pool,"
                f" but it cannot take them: {error}"
            ) from error
        return self.features(X)

    def variance(self, F: Tensor) -> Tensor:
        r"""The prior variances at features (``S x N``, float64), in ``y`` squared."""
        if self._stationary is not None:
            value = self._stationary.variance.expand(F.shape[:-1])
        else:
            value = diagonal(self.covar_module, F, F)
        return value * self.scale.double().square().unsqueeze(-1)

    def least_noise(self, F: Tensor) -> Tensor:
        r"""The least noise variance of an observation among features (``S``).

        After values were ``given`` it stays what it was before: a covariance given
        exact values is off by rounding of the covariance before them.
        """
        bare = self if self.before is None else self.before
        with torch.no_grad():
            return least_noise(bare.variance(F), self.dtype)


def _errors_ahead(mean: Tensor, L: Tensor, a: Tensor) -> Tensor:
    r"""The result of ``GPPrior.errors_ahead`` (``3 x n``).

    Args:
        mean: ``n`` prior means.
        L: ``n x n`` factor of the covariance of the values, noise included.
        a: ``n`` whitened residuals.
    """
    sigma = L.diagonal()
    return torch.stack((mean + L @ a - sigma * a, sigma, a))


def diagonal(kernel: Kernel, F: Tensor, G: Tensor) -> Tensor:
    r"""The covariances of points with one other point each, in blocks (``S x N``).

    Some kernels make all covariances for it, ``N`` times ``N`` numbers. So does
    BoTorch's kernel of words, for each column: its formula is applied to the pairs.

    Args:
        kernel: Any kernel.
        F: ``S x N x d'`` points.
        G: The other points.
    """
    of_parts = composed(kernel, lambda part: diagonal(part, F, G))
    if of_parts is not None:
        return of_parts
    if type(kernel) is CategoricalKernel and not len(kernel.batch_shape):
        columns = slice(None) if kernel.active_dims is None else kernel.active_dims
        differs = F[..., columns] != G[..., columns]
        return (differs / kernel.lengthscale.detach()).mean(dim=-1).neg().exp().double()
    parts = [
        kernel(one, other, diag=True).double()
        for one, other in zip(
            F.split(DIAGONAL_ROWS, dim=-2), G.split(DIAGONAL_ROWS, dim=-2), strict=True
        )
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


class GivenKernel(Kernel):
    r"""The covariance of a process once its values at some points were measured.

    Args:
        base: The covariance before.
        F: ``n x d'`` points, as the kernel takes them.
        L: ``n x n`` factor of their covariance plus noise.
    """

    def __init__(self, base: Kernel, F: Tensor, L: Tensor) -> None:
        super().__init__()
        self.base = base
        self.register_buffer("F", F)
        self.register_buffer("L", L)

    def path(self, x: Tensor) -> Tensor:
        r"""The rows ``L^-1 k(F, x)`` at ``N`` points (``n x N``)."""
        return path_rows(self.L, covariances(self.base, self.F, x))

    def forward(
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        r"""Covariances of ``N x d'`` points with ``M x d'``, or the diagonal alone."""
        if diag:
            known = (self.path(x1) * self.path(x2)).sum(dim=-2)
            return (self.base(x1, x2, diag=True) - known).clamp_min(0.0)
        return covariances(self.base, x1, x2) - self.path(x1).mT @ self.path(x2)


class GivenMean(Mean):
    r"""The mean of a process once its values at some points were measured.

    Args:
        base: The mean before.
        kernel: The covariance after.
        a: ``n`` whitened residuals of the values.
    """

    def __init__(self, base: Module, kernel: GivenKernel, a: Tensor) -> None:
        super().__init__()
        self.base, self.kernel = base, kernel
        self.register_buffer("a", a)

    def forward(self, x: Tensor) -> Tensor:
        r"""The means at ``N x d'`` points."""
        return self.base(x) + self.a @ self.kernel.path(x)


def noise_between(model: Any, unit: float) -> tuple[float, float] | None:
    r"""The range of noise variances that a model's data do not exclude, if known.

    Args:
        model: See ``explained``, which fits such models.
        unit: The standard deviation by which its values were standardised.
    """
    found = getattr(model, "noise_between", None)
    return None if found is None else (found[0] * unit**2, found[1] * unit**2)


def training_data(model: ExactGP, prior: GPPrior) -> tuple[Tensor, Tensor, Tensor]:
    r"""The features, values and noise variances of a fitted model's own data.

    ``S x n x d'``, and ``S x n`` each in units of ``y``. In evaluation mode
    ``train_inputs`` are transformed already, and ``train_targets`` standardised; the
    noise stands in the likelihood.
    """
    model.eval()
    F = model.train_inputs[0].detach()
    # The members of a fully Bayesian model share one copy of the inputs.
    F = F.expand(*prior.batch_shape, *F.shape[-2:])
    y = prior.in_units(model.train_targets.detach().double())
    unit = prior.scale.double().square().unsqueeze(-1)
    noise = model.likelihood.noise.detach().double() * unit
    return F, y, noise.expand(y.shape).clone()


def frozen(module: Module) -> Module:
    r"""A copy of a module in evaluation mode, whose parameters need no gradients.

    It is a copy so that fitting the user's model further does not change the prior.
    """
    return held(deepcopy(module))


def held(module: Module) -> Module:
    r"""A module itself, in evaluation mode and without need of gradients."""
    return module.eval().requires_grad_(False)


def check_parameters(model: Any) -> None:
    r"""Complain about a model whose fit has failed, or that was never finite.

    Args:
        model: A module.

    Raises:
        ValueError: If a parameter is not finite.
    """
    for name, parameter in model.named_parameters():
        bad = ~torch.isfinite(parameter.detach())
        if bool(bad.any()):
            wanted = "to have finite parameters"
            came = f"{name!r} is {written(parameter.detach()[bad][0])}"
            remedy = (
                "Its fit failed: make the model anew and fit it to values that are "
                "standardised and have no nan among them."
            )
            raise ValueError(complaint("model", wanted, came, remedy))


def _refuse_inexact(model: Any) -> None:
    r"""Complain unless a model is one exact GP of one output."""
    # Not at the top: they bring SciPy, and whoever has a model has them.
    from botorch.models.gpytorch import BatchedMultiOutputGPyTorchModel
    from botorch.models.multitask import MultiTaskGP

    name = type(model).__name__
    if not isinstance(model, ExactGP):
        wanted = "to be an exact GP (gpytorch.models.ExactGP)"
        came = f"got {name}, whose posteriors after each observation are not available"
        raise UnsupportedError(complaint("model", wanted, came, _REMEDY))
    if isinstance(model, MultiTaskGP):
        came = f"got {name} with {model.num_tasks}, which are correlated"
        wanted = "to have the data of one task"
        raise UnsupportedError(complaint("model", wanted, came, _REMEDY_APART))
    if getattr(model, "num_outputs", 1) != 1:
        came = f"got {name} with {model.num_outputs}"
        remedy = "Take one output with `model.subset_output([i])`."
        if not isinstance(model, BatchedMultiOutputGPyTorchModel):
            came += " in one joint posterior"
            remedy = _REMEDY_APART
        raise UnsupportedError(complaint("model", "to have one output", came, remedy))
    if model.train_inputs is None or model.train_targets is None:
        raise UnsupportedError(complaint("model", "to have data", f"{name} has none"))
    check_parameters(model)
    if not (hasattr(model, "mean_module") and hasattr(model, "covar_module")):
        wanted = "to have `mean_module` and `covar_module`"
        raise UnsupportedError(complaint("model", wanted, f"{name} has not", _REMEDY))
    likelihood = model.likelihood
    if not isinstance(likelihood, (GaussianLikelihood, FixedNoiseGaussianLikelihood)):
        wanted, came = "to have a Gaussian likelihood", type(likelihood).__name__
        raise UnsupportedError(complaint("model", wanted, f"got {came}", _REMEDY))
    if getattr(getattr(model, "input_transform", None), "is_one_to_many", False):
        raise UnsupportedError(
            "Expected the input transform of `model` to keep the number of points, but "
            f"{type(model.input_transform).__name__} makes several of one. Leave it "
            "out."
        )
    batched = bool(len(getattr(model, "batch_shape", ())))
    if batched and not is_ensemble(model):
        raise UnsupportedError(
            f"Expected `model` without batch shape, but got {tuple(model.batch_shape)}"
            ". Ensembles such as fully Bayesian models are supported; fit others one "
            "by one."
        )


def _refuse_other_forward(model: ExactGP) -> None:
    r"""Complain if ``forward`` does more than call mean and kernel."""
    # We evaluate mean and kernel by themselves and never call `forward`. A deep kernel,
    # for one, maps the inputs there. Two points suffice to notice that; the tolerances
    # are those of float32 models.
    with torch.no_grad():
        F = model.train_inputs[0][..., :2, :]
        said = model.forward(F)
        mean, covariance = model.mean_module(F), model.covar_module(F).to_dense()
        exact = torch.allclose(
            said.mean, mean.expand(said.mean.shape), rtol=1e-4, atol=1e-6
        ) and torch.allclose(said.covariance_matrix, covariance, rtol=1e-4, atol=1e-6)
    if not exact:
        raise UnsupportedError(
            "Expected `model.forward` to return `mean_module(x)` and `covar_module(x)`"
            f", but that of {type(model).__name__} does more. Move it into the kernel "
            f"or the input transform. {_REMEDY}"
        )


def _affine_outcome(
    model: ExactGP, transform: OutcomeTransform | None
) -> tuple[Tensor, Tensor]:
    r"""The ``scale`` and ``shift`` of ``y = scale * standardised + shift``.

    Raises:
        UnsupportedError: If the outcome transform is not ``Standardize``.
    """
    one = torch.ones(
        getattr(model, "batch_shape", ()),
        dtype=torch.float64,
        device=model.train_targets.device,
    )
    if transform is None:
        return one, 0.0 * one
    if type(transform) is not Standardize:
        raise UnsupportedError(
            "Expected the outcome transform of `model` to be `Standardize` or none, "
            f"but got {type(transform).__name__}, after which the posterior in the "
            "units of `y` is not Gaussian. Transform `y` and the threshold yourself."
        )
    scale, shift = transform.stdvs[..., 0, 0], transform.means[..., 0, 0]
    return scale.double() * one, shift.double() * one


def checked_budget(memory_budget: Any, per_row: int, what: str) -> int:
    r"""The ``memory_budget`` as a whole number that holds one row of an array.

    Args:
        memory_budget: Bytes.
        per_row: How many float64 numbers the row has.
        what: What the row holds, in words, for the error message.

    Raises:
        ValueError: If it is no whole number or too small; the message says the least.
    """
    budget, least = whole_number(memory_budget, "memory_budget", 1), 8 * per_row
    if budget < least:
        raise ValueError(
            f"Expected `memory_budget` of at least {least} bytes, {what}, but got "
            f"{budget}. The default is {MEMORY_BUDGET}."
        )
    return budget


def keep_memory() -> None:
    r"""Make the allocator keep memory for temporary arrays, before many are made.

    Once an array of this size was freed, that of Linux keeps memory for the next one
    rather than give it back to the system, from which it comes slowly, page by page.
    Nothing is written, so it takes no memory.
    """
    torch.empty(KEPT_MEMORY, dtype=torch.uint8)


def row_blocks(n_rows: int, per_row: int, budget: int = MEMORY_BUDGET) -> list[slice]:
    r"""The slices of a pool whose ``per_row`` float64 numbers a row fit the budget.

    Args:
        n_rows: Rows of the pool.
        per_row: Numbers held per row in one array (usually the observations).
        budget: Bytes for all temporary arrays together.
    """
    rows = max(1, min(budget, FAST_BLOCK) // (8 * COPIES * max(per_row, 1)))
    if 8 * n_rows * per_row > GIVEN_BACK:
        keep_memory()
    return [slice(i, min(i + rows, n_rows)) for i in range(0, n_rows, rows)]


@dataclass(frozen=True, eq=False)
class PosteriorPath:
    r"""The posteriors of an exact GP after each prefix of its data.

    All hyper-parameters and transforms are fixed, so the past is one triangular solve
    (see this module). Results are exact, float64 inside, in the units of ``y``.

    Example:
        >>> path = PosteriorPath.from_model(model)
        >>> means, variances = path.moments(pool_X)  # (n + 1) x N; row 0 is the prior

    Args:
        prior: The process.
        F: ``S x n x d'`` features of the observations.
        L: ``S x n x n`` factor of their covariance plus noise.
        a: ``S x n`` whitened residuals.
        noise_var: ``S x n`` noise variances, units of ``y`` squared.
        rounds: ``n`` round numbers, not decreasing.
    """

    prior: GPPrior
    F: Tensor
    L: Tensor
    a: Tensor
    noise_var: Tensor
    rounds: Tensor

    @classmethod
    def from_model(cls, model: Model, rounds: Tensor | None = None) -> PosteriorPath:
        r"""The path of a fitted model along its training data.

        Args:
            model: See ``GPPrior.from_model``.
            rounds: ``n`` round numbers, one per training observation, not decreasing;
                default each observation its own round.

        Raises:
            UnsupportedError: See ``GPPrior.from_model``.
            ValueError: If ``rounds`` has another length or decreases.
        """
        prior = GPPrior.from_model(model)
        F, y, noise_var = training_data(model, prior)  # type: ignore[arg-type]
        return cls.from_data(prior, F, y, noise_var, rounds)

    @classmethod
    def from_data(
        cls,
        prior: GPPrior,
        F: Tensor,
        y: Tensor,
        noise_var: Tensor,
        rounds: Tensor | None = None,
    ) -> PosteriorPath:
        r"""The path of ``S x n`` observations ``y`` at features ``S x n x d'``."""
        n = F.shape[-2]
        with torch.no_grad():
            L = factorize(prior.covariance(F, F), noise_var, prior.least_noise(F))
            residual = (y - prior.mean(F)).unsqueeze(-1)
            a = torch.linalg.solve_triangular(L, residual, upper=False).squeeze(-1)
        return cls(prior, F, L, a, noise_var, _check_rounds(rounds, n).to(L.device))

    @property
    def n_rounds(self) -> int:
        r"""The number of rounds, without the prior."""
        return int(torch.unique_consecutive(self.rounds).numel())

    def moments(self, X: Tensor, prefixes: bool = False) -> tuple[Tensor, Tensor]:
        r"""The means and variances at ``X`` before the first and after each round.

        Differentiable in ``X``. The caller chooses ``N`` so that ``n x N`` numbers fit
        into memory; ``blocks`` gives such pieces of a pool.

        Args:
            X: ``N x d`` points, or ``S x N x d``, in the user's space.
            prefixes: After each observation rather than after each round.

        Returns:
            Two tensors ``(R + 1) x S x N``, float64, in units of ``y`` and squared;
            variances are at least 0.

        Source:
            Rasmussen and Williams (2006), Eq. (2.25), (2.26), in the factored form of
            Algorithm 2.1; the prefix property is that of the Cholesky factor.
        """
        G = self.prior.features(X)
        mean, variance = self.prior.mean(G), self.prior.variance(G)
        V = path_rows(self.L, self.prior.covariance(self.F, G))
        # The prior, and what the observations up to each one add: (n + 1) rows.
        zero = V.new_zeros(*V.shape[:-2], 1, V.shape[-1])
        gain = torch.cat((zero, (V * self.a.unsqueeze(-1)).cumsum(dim=-2)), dim=-2)
        loss = torch.cat((zero, V.square().cumsum(dim=-2)), dim=-2)
        rounds = torch.arange(self.rounds.numel()) if prefixes else self.rounds
        _, counts = torch.unique_consecutive(rounds, return_counts=True)
        ends = torch.cat((counts.new_zeros(1), counts.cumsum(dim=0))).to(V.device)
        means = mean.unsqueeze(-2) + gain.index_select(-2, ends)
        variances = variance.unsqueeze(-2) - loss.index_select(-2, ends)
        return means.movedim(-2, 0), variances.clamp_min(0.0).movedim(-2, 0)

    def new_noise_var(self, p: int) -> Tensor:
        r"""The noise variances of observations to come (``S x p``), in ``y`` squared.

        The model's own; for known per-observation noise the average of the training
        data's, as in BoTorch's ``posterior(..., observation_noise=True)``.
        """
        noise = self.prior.noise_var
        noise = self.noise_var.mean(dim=-1) if noise is None else noise
        return noise.double().unsqueeze(-1).expand(*noise.shape, p)

    def after(self, F: Tensor, noise_var: Tensor) -> PosteriorPath:
        r"""The path with ``p`` further observations whose values are not known yet.

        Their whitened residuals are set to 0, so that they shrink the variances and
        leave the means unchanged. They count as one more round.

        Args:
            F: ``S x p x d'`` features.
            noise_var: ``S x p`` variances of the observations to come.
        """
        cross = path_rows(self.L, self.prior.covariance(self.F, F)).mT  # S x p x n
        block = factorize(
            self.prior.covariance(F, F) - cross @ cross.mT,
            noise_var,
            self.prior.least_noise(torch.cat((self.F, F), dim=-2)),
        )
        none = self.rounds.new_zeros(1)
        last = self.rounds[-1:] + 1 if self.rounds.numel() else none
        new_a = self.a.new_zeros(*self.a.shape[:-1], F.shape[-2])
        return replace(
            self,
            F=torch.cat((self.F, F), dim=-2),
            L=extended(self.L, cross, block),
            a=torch.cat((self.a, new_a), dim=-1),
            noise_var=torch.cat((self.noise_var, noise_var), dim=-1),
            rounds=torch.cat((self.rounds, last.expand(F.shape[-2]))),
        )


def _check_rounds(rounds: Tensor | None, n: int) -> Tensor:
    r"""The round numbers, which must not decrease; by default 0, 1, ..., ``n - 1``."""
    if rounds is None:
        return torch.arange(n)
    rounds = whole_numbers(rounds, "rounds")
    if rounds.shape != (n,):
        raise ValueError(
            f"Expected `rounds` to hold one round per training observation ({n}), but "
            f"got shape {tuple(rounds.shape)}."
        )
    if (rounds.diff() < 0).any():
        raise ValueError("Expected `rounds` not to decrease; sort the data by round.")
    return rounds


class _Rows:
    r"""Append-only storage of path rows that several posteriors share.

    A posterior of ``n`` observations reads the first ``n`` rows. Appending to the
    longest posterior writes in place; appending to a shorter one copies first, so that
    no posterior ever changes. Without sharing, each round would copy all rows.

    Args:
        N: The number of rows of the pool: the length of a path row.
        capacity: How many path rows to make room for.
    """

    def __init__(self, N: int, capacity: int = 0) -> None:
        self.data = torch.empty(capacity, N, dtype=torch.float64)
        self.used = 0

    def extended(self, n: int, q: int, most: int) -> _Rows:
        r"""The storage of the first ``n`` rows, with room for ``q`` more to be written.

        Args:
            n: Rows held so far.
            q: Rows to come.
            most: Rows that the storage may ever hold.
        """
        target = self
        if n != self.used or n + q > self.data.shape[0]:
            # Doubling keeps the time spent on copying proportional to the final size.
            capacity = max(2 * n, n + q, 16)
            # While rows are copied both storages are there. From half of the most on
            # there is one copy left; rows that were not written yet take no memory.
            capacity = most if 2 * capacity > most else capacity
            target = _Rows(self.data.shape[1], capacity)
            target.data[:n] = self.data[:n]
        target.used = n + q
        return target


@dataclass(frozen=True, eq=False)
class News:
    r"""The news in ``q`` further observations, as the ``n`` before them predict them.

    Args:
        path: ``q x n``, the path rows at the points of the new ones, transposed.
        L: ``q x q``, the factor of their covariance, noise included, given the old.
        a: ``q`` whitened residuals from what was predicted of them.
        noise_var: ``q`` noise variances, units of ``y`` squared.
        is_exact: Whether one of them counts as exact.
    """

    path: Tensor
    L: Tensor
    a: Tensor
    noise_var: Tensor
    is_exact: bool


@dataclass(frozen=True, eq=False)
class PoolPosterior:
    r"""Mean and variance of every row of a pool, given observations at rows.

    ``observe`` and ``expect`` return new objects; each new observation costs one new
    path row (``O(n N)``). The first rows of the path are kept, as many as fit half of
    the memory budget; the others are computed again each time, in blocks of rows of the
    pool.

    Args:
        prior: The process, without batch shape.
        F: ``N x d'`` features of the pool.
        mean: ``N`` posterior means, units of ``y``.
        variance: ``N`` posterior variances, at least 0.
        prior_variance: ``N`` variances before any observation.
        indices: ``n`` rows observed or expected.
        L: ``n x n`` factor of their covariance plus noise.
        a: ``n`` whitened residuals.
        information: ``1/2 log det(I + K / noise)`` of what was observed, nats.
        bare_variance: ``N`` variances before any value, also before history's.
        scale: The largest standard deviation before any value, units of ``y``; scores
            that differ by less than a tiny share of it count as equal.
        least_noise: The least noise variance of an observation, units of ``y`` squared.
        memory_budget: Bytes for the path rows and for temporary arrays.
        sharing: How many posteriors, one per output, keep their path rows in it.
        is_exact: Whether some measurement had at most the least noise, which is then
            treated as exact.
        data: ``n x d'`` features of the observations, where not all of them are rows of
            this pool: of correlated outputs each is told what was measured of any.
            ``indices`` are then the rows of the measurements, once each. Such outputs
            are observed together (``models/correlated.py``).
        known: ``N`` values that were measured without noise, nan elsewhere; ``None``:
            there are none.
    """

    prior: GPPrior
    F: Tensor
    mean: Tensor
    variance: Tensor
    prior_variance: Tensor
    indices: Tensor
    L: Tensor
    a: Tensor
    information: Tensor
    bare_variance: Tensor
    scale: float
    least_noise: Tensor
    memory_budget: int = MEMORY_BUDGET
    sharing: int = 1
    is_exact: bool = False
    data: Tensor | None = None
    known: Tensor | None = None
    _rows: _Rows | None = None
    _kept: int = 0
    _gram: Tensor | None = None
    _expected: tuple[Tensor, ...] = ()

    @classmethod
    def start(
        cls,
        prior: GPPrior,
        X: Tensor,
        memory_budget: int = MEMORY_BUDGET,
        sharing: int = 1,
    ) -> PoolPosterior:
        r"""The posterior before any observation: the prior on the rows of a pool.

        Args:
            prior: The process, without batch shape.
            X: ``N x d`` rows in the user's space.
            memory_budget: Bytes for the path rows and for temporary arrays.
            sharing: How many posteriors keep their path rows in it.

        Raises:
            BotorchTensorDimensionError: If the prior is for other columns.
        """
        with torch.no_grad():
            F = prior.pool_features(X)
            mean, variance = prior.mean(F), prior.variance(F)
            bare = variance if prior.before is None else prior.before.variance(F)
            N = F.shape[-2]
            # Half of the budget: the other half is for the path rows.
            is_small = N <= WHOLE_GRAM and memory_budget // 2 >= 8 * N * N
            gram = prior.covariance(F, F) if is_small else None
        none = mean.new_zeros(0)
        return cls(
            prior,
            F,
            mean.expand(F.shape[-2]).clone(),
            variance.clone(),
            variance,
            torch.empty(0, dtype=torch.long),
            none.view(0, 0),
            none,
            mean.new_zeros(()),
            bare,
            float(bare.max().sqrt()),
            least_noise(bare, prior.dtype),
            memory_budget,
            sharing,
            _rows=_Rows(N),
            _gram=gram,
        )

    @property
    def sigma(self) -> Tensor:
        r"""The posterior standard deviations of the function (``N``)."""
        return self.variance.sqrt()

    def observe(self, indices: Tensor, y: Tensor, noise_var: Tensor) -> PoolPosterior:
        r"""The posterior after ``q`` more observations.

        Args:
            indices: ``q`` rows of the pool.
            y: ``q`` values, units of ``y``.
            noise_var: ``q`` noise variances, units of ``y`` squared; those below
                ``least_noise`` are raised to it.
        """
        if indices.numel() == 0:
            return self
        news = self.news(indices, y, noise_var)
        between = partial(self.prior_covariance, indices)
        found, is_known = self.conditioned(news, indices, between), noise_var == 0
        if self.known is None and not bool(is_known.any()):
            return found
        nothing = torch.full_like(found.mean, torch.nan)
        known = nothing if self.known is None else self.known.clone()
        known[indices[is_known]] = y[is_known].to(known)
        return replace(found, known=known)

    def news(self, indices: Tensor, y: Tensor, noise_var: Tensor) -> News:
        r"""The news in ``q`` more observations at rows of the pool.

        Args:
            indices: ``q`` rows of the pool.
            y: ``q`` values, units of ``y``.
            noise_var: ``q`` noise variances, units of ``y`` squared; those below
                ``least_noise`` are raised to it.
        """
        # Expected rows are not in the factor: no value is conditioned on them.
        if self._expected:
            raise ValueError("Expected no hypothetical rows when observing real ones.")
        if self.is_correlated:
            raise ValueError("Expected correlated outputs to be observed together.")
        with torch.no_grad():
            is_exact = bool((noise_var <= self.least_noise).any())
            noise_var = torch.maximum(noise_var, self.least_noise)
            path = self.path_at(indices)
            left = self.prior_covariance(indices, indices) - path @ path.mT
            L22 = factorize(left, noise_var, self.least_noise)
            residual = (y - self.prior_mean_at(indices) - path @ self.a).unsqueeze(-1)
            a2 = torch.linalg.solve_triangular(L22, residual, upper=False).squeeze(-1)
            return News(path, L22, a2, noise_var, is_exact)

    def conditioned(
        self,
        news: News,
        indices: Tensor,
        prior_with: Callable[[slice], Tensor],
        data: Tensor | None = None,
    ) -> PoolPosterior:
        r"""The posterior after observations that need not be rows of the pool.

        Args:
            news: The observations, seen from those before.
            indices: Rows of the pool that were measured.
            prior_with: From a slice of the pool to the ``q x r`` prior covariances of
                the observations with its rows.
            data: ``q x d'`` features of the observations, where they are not the rows.
        """
        with torch.no_grad():
            kept, storage = self._storage_for(news.a.numel())
            new = kept - self._kept
            mean, variance = self.mean.clone(), self.variance.clone()
            for rows, covariance in self._residual_blocks(prior_with, news.path):
                V = path_rows(news.L, covariance)
                mean[rows] += news.a @ V
                variance[rows] -= V.square().sum(dim=0)
                variance[rows].clamp_min_(0.0)
                storage.data[self._kept : kept, rows] = V[:new]
            information = self.information + news.L.diagonal().log().sum()
            return replace(
                self,
                indices=torch.cat((self.indices, indices)),
                L=extended(self.L, news.path, news.L),
                information=information - news.noise_var.log().sum() / 2,
                a=torch.cat((self.a, news.a)),
                is_exact=self.is_exact or news.is_exact,
                data=None if data is None else torch.cat((self._data, data)),
                mean=mean,
                variance=variance,
                _rows=storage,
                _kept=kept,
            )

    def surprises(self, indices: Tensor, y: Tensor, noise_var: Tensor) -> Tensor:
        r"""The standardised residuals of values from their predictions (``q``).

        Each value is predicted from all before it, also from those of the ``q``. Under
        the model they are independent standard normal numbers.

        Args:
            indices: ``q`` rows of the pool.
            y: ``q`` values, units of ``y``.
            noise_var: ``q`` noise variances, units of ``y`` squared.
        """
        return self.news(indices, y, noise_var).a

    def at(self, X: Tensor) -> tuple[Tensor, Tensor]:
        r"""The posterior means and standard deviations of the function at any points.

        Args:
            X: ``M x d`` points, in the user's space.

        Returns:
            ``M`` means and ``M`` standard deviations, units of ``y``.
        """
        with torch.no_grad():
            F = self.prior.features(X)
            V = path_rows(self.L, self.prior.covariance(self._data, F))
            mean = self.prior.mean(F) + self.a @ V
            variance = self.prior.variance(F) - V.square().sum(dim=0)
            return mean, variance.clamp_min(0.0).sqrt()

    def before_data(self) -> PoolPosterior:
        r"""The posterior on the same pool before any observation."""
        none = self.a[:0]
        every = torch.arange(self.F.shape[-2])
        return replace(
            self,
            mean=self.prior_mean_at(every).clone(),
            variance=self.prior_variance.clone(),
            indices=self.indices[:0],
            L=none.view(0, 0),
            a=none,
            information=torch.zeros_like(self.information),
            is_exact=False,
            data=None if self.data is None else self.data[:0],
            _rows=_Rows(len(every)),
            _kept=0,
            _expected=(),
        )

    def at_rows(self, rows: Tensor) -> PoolPosterior:
        r"""The posterior at some rows of the pool alone, for no more observations.

        For what is planned on few rows of a large pool.

        Args:
            rows: ``M`` rows; they are numbered from 0 there.
        """
        kept, bare = _Rows(len(rows), self._kept), self.bare_variance[rows]
        kept.data[:] = self._path[:, rows]
        kept.used = self._kept
        return replace(
            self,
            F=self.F[rows],
            mean=self.mean[rows],
            variance=self.variance[rows],
            prior_variance=self.prior_variance[rows],
            bare_variance=bare,
            scale=float(bare.max().sqrt()),
            least_noise=least_noise(bare, self.prior.dtype),
            data=self._data,
            _rows=kept,
            _gram=None,
            _expected=tuple(block[:, rows] for block in self._expected),
        )

    def expect(self, index: int, noise_var: float) -> PoolPosterior:
        r"""The posterior after one more observation whose value is not known yet.

        The variances shrink, the means stay: a Gaussian process's variances do not
        depend on the measured values.

        Args:
            index: The row of the pool.
            noise_var: The noise variance that the observation will have; below
                ``least_noise`` it is raised to that.
        """
        with torch.no_grad():
            at = torch.tensor([index])
            row = self.covariance_with(at)[0]
            # Rounding may leave a known row a variance below 0.
            observed = row[index].clamp_min(0.0) + self.least_noise.clamp_min(noise_var)
            return self.less((row / observed.sqrt()).unsqueeze(0))

    def expect_all(self, indices: Tensor, noise_var: Tensor) -> PoolPosterior:
        r"""The results of ``expect`` for several rows, in one pass over the pool.

        Args:
            indices: ``q`` rows of the pool.
            noise_var: ``q`` noise variances that their observations will have.
        """
        with torch.no_grad():
            covariance = self.covariance_with(indices)
            among = covariance[:, indices]
            factor = factorize(among, noise_var, self.least_noise)
            return self.less(path_rows(factor, covariance))

    def less(self, rows: Tensor) -> PoolPosterior:
        r"""The posterior whose covariances are smaller by ``rows' rows``.

        Args:
            rows: ``q x N`` path rows of observations whose values are not known yet.
        """
        variance = (self.variance - rows.square().sum(dim=0)).clamp_min(0.0)
        blocks = (*self._expected, rows)
        last = blocks[-MERGED:]
        if len(last) == MERGED and all(len(block) == 1 for block in last):
            blocks = (*blocks[:-MERGED], torch.cat(last))
        return replace(self, variance=variance, _expected=blocks)

    def variance_between(self, i: Tensor, j: Tensor, factor: float = 1.0) -> Tensor:
        r"""The posterior variances of ``f(i) - factor f(j)`` (``B x L``).

        It is at least the rounding error of the difference, so that two rows that
        nearly coincide never count as known to differ.

        Args:
            i: ``B`` rows.
            j: ``L`` rows.
            factor: Of the second function value.
        """
        return self.variance_against(j, factor)(i)

    def variance_against(
        self, j: Tensor, factor: float = 1.0
    ) -> Callable[[Tensor], Tensor]:
        r"""The map from ``B`` rows to ``variance_between`` them and ``L`` others.

        For many calls with the same others: what depends on them is computed once.

        Args:
            j: ``L`` rows.
            factor: Of their function values.
        """
        path_of_j = self.path_at(j).mT.contiguous()

        def variance(i: Tensor) -> Tensor:
            spread = self.variance[i].unsqueeze(-1) + factor**2 * self.variance[j]
            # In place: such arrays are large, and each pass over them counts.
            covariance = self.covariance_between(i, j, path_of_j)
            spread.sub_(covariance, alpha=2 * factor)
            return spread.clamp_min_(ROUNDING * self.scale**2)

        return variance

    def covariance_with(self, indices: Tensor) -> Tensor:
        r"""The posterior covariances of rows ``indices`` with the pool (``q x N``)."""
        prior_with = partial(self.prior_covariance, indices)
        return self.covariance_to(prior_with, self.path_at(indices))

    def covariance_to(
        self, prior_with: Callable[[slice], Tensor], path: Tensor
    ) -> Tensor:
        r"""The posterior covariances of any points with the pool (``q x N``).

        Args:
            prior_with: From a slice of the pool to the ``q x r`` prior covariances of
                the points with its rows.
            path: ``q x (n + e)``, as of ``path_at``.
        """
        n = self.a.numel()
        with torch.no_grad():
            covariance = self.mean.new_empty(len(path), self.F.shape[-2])
            for rows, block in self._residual_blocks(prior_with, path[:, :n]):
                covariance[:, rows] = block
            each = (row for block in self._expected for row in block.unbind())
            own = path[:, n:].mT.unsqueeze(-1).unbind()
            for one, row in zip(own, each, strict=True):
                # In place: a batch of hundreds does this for each pair of its rows.
                covariance.addcmul_(one, row, value=-1)
            return covariance

    def covariance_between(
        self, rows: Tensor, columns: Tensor, path: Tensor | None = None
    ) -> Tensor:
        r"""The posterior covariances of some rows with others, in one (``r x c``).

        Args:
            rows: ``r`` rows.
            columns: ``c`` rows.
            path: ``path_at(columns)``, transposed and contiguous, which many calls with
                the same columns compute once.
        """
        if path is None:
            path = self.path_at(columns).mT.contiguous()
        with torch.no_grad():
            prior = self.prior_covariance(rows, columns)
            return prior.addmm_(self.path_at(rows), path, alpha=-1)

    def path_at(self, indices: Tensor) -> Tensor:
        r"""The entries of the path rows at rows ``indices`` (``q x (n + e)``).

        Prior covariances less products of these are posterior ones. The ``e`` rows that
        are expected are included.
        """
        n, first = self.a.numel(), self._path[:, indices]
        rows = [first]
        if self._kept < n:
            L = self.L[self._kept :]
            left = self._with_data(indices) - L[:, : self._kept] @ first
            rows.append(path_rows(L[:, self._kept :], left))
        rows += [block.index_select(1, indices) for block in self._expected]
        return (torch.cat(rows) if len(rows) > 1 else first).mT

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""The covariances between rows, given by numbers or as a slice."""
        every = torch.arange(self.variance.numel())
        if isinstance(rows, slice) and len(every[rows]) == len(every):
            # With whole rows the stored path is used as it lies, without a copy.
            return self.covariance_with(every[columns]).mT
        if isinstance(columns, slice) and len(every[columns]) == len(every):
            return self.covariance_with(every[rows])
        return self.covariance_between(every[rows], every[columns])

    def prior_covariance(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        r"""The covariances before any observation (``r x c``), in ``y`` squared."""
        with torch.no_grad():
            if self._gram is not None:
                if isinstance(columns, slice):
                    return self._gram[rows][:, columns]
                return self._gram.index_select(0, rows).index_select(1, columns)
            return self.prior.covariance(self.F[rows], self.F[columns])

    def prior_mean_at(self, rows: Tensor | slice) -> Tensor:
        r"""The prior means at some rows (``r``), units of ``y``."""
        F = self.F[rows]
        return self.prior.mean(F).expand(len(F))

    def before_history(self, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
        r"""Means and variances at some rows before any value, also before history's.

        Args:
            rows: ``r`` rows.

        Returns:
            ``r`` means, units of ``y``, and ``r`` variances.
        """
        F, bare = self.F[rows], self.prior.before or self.prior
        with torch.no_grad():
            return bare.mean(F).expand(len(F)), self.bare_variance[rows]

    @property
    def is_correlated(self) -> bool:
        r"""Whether this output is one of several that inform about each other."""
        return self.data is not None

    @property
    def prior_mean_of_data(self) -> Tensor:
        r"""The prior means of the observations (``n``), units of ``y``."""
        return self.prior.mean(self._data).expand(self.a.numel())

    def errors_ahead(self) -> Tensor:
        r"""The prediction errors of all values, each from those before it.

        Returns:
            ``3 x n``, see ``GPPrior.errors_ahead``; of correlated outputs, the values
            of all of them.
        """
        own = _errors_ahead(self.prior_mean_of_data, self.L, self.a)
        if self.prior.before is None:
            return own
        return torch.cat((self.prior.errors_ahead(), own), dim=-1)

    @property
    def _data(self) -> Tensor:
        return self.F[self.indices] if self.data is None else self.data

    def _with_data(self, rows: Tensor | slice) -> Tensor:
        r"""The prior covariances of the observations whose path rows are not kept.

        Returns:
            ``(n - kept) x r``, with some rows of the pool.
        """
        if self.data is None:
            return self.prior_covariance(self.indices[self._kept :], rows)
        return self.prior.covariance(self.data[self._kept :], self.F[rows])

    @property
    def _path(self) -> Tensor:
        assert self._rows is not None  # every posterior that is started has them
        return self._rows.data[: self._kept]

    def _residual_blocks(
        self, prior_with: Callable[[slice], Tensor], path: Tensor
    ) -> Iterator[tuple[slice, Tensor]]:
        r"""The posterior covariances of some points with the pool, block by block.

        They are the prior covariances less ``path V`` with the path rows ``V = L^-1
        k(train, x)``. Of ``V`` the first rows ``V1`` are kept. For the others ``V2 =
        L22^-1 (k(train2, x) - L21 V1)``, so that ``path2 V2 = W' (k(train2, x) - L21
        V1)`` with ``W = L22^-T path2'``: one triangular solve instead of one per block.

        Args:
            prior_with: From a slice of the pool to the ``q x r`` prior covariances of
                the points with its rows.
            path: ``q x n``, the path rows at the points, transposed.

        Yields:
            A slice of the pool, and the ``q x block`` covariances with it.
        """
        n, N, kept = self.a.numel(), self.F.shape[-2], self._kept
        known = path[:, :kept]
        if kept < n:
            L21, L22 = self.L[kept:, :kept], self.L[kept:, kept:]
            W = torch.linalg.solve_triangular(L22.mT, path[:, kept:].mT, upper=True)
            known = known - W.mT @ L21
        for rows in row_blocks(N, len(path) + n - kept, self.memory_budget):
            block = prior_with(rows)
            if kept:
                block = block - known @ self._path[:, rows]
            if kept < n:
                block = block - W.mT @ self._with_data(rows)
            yield rows, block

    def _storage_for(self, q: int) -> tuple[int, _Rows]:
        r"""The number of path rows to keep after ``q`` more, and storage for them.

        Path rows are kept up to their share of half of the memory budget, and none
        after one that is not kept.
        """
        assert self._rows is not None  # every posterior that is started has it
        most = self.memory_budget // (2 * 8 * self.F.shape[-2] * self.sharing)
        if self._kept < self.a.numel() or self._kept >= most:
            return self._kept, self._rows
        more = min(q, most - self._kept)
        return self._kept + more, self._rows.extended(self._kept, more, most)
