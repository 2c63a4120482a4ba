r"""A Gaussian process with everything fixed, in the units of ``y``.

``GPPrior.from_model`` is the only place that knows how GPyTorch and BoTorch store
kernels, noise and transforms.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.multitask import MultiTaskGP
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.utils.transforms import is_ensemble
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import Mean, ZeroMean
from gpytorch.models import ExactGP
from torch import Tensor
from torch.nn import Module, Parameter

from botorch_lse.functional.jitter import least_noise

_REMEDY = (
    "Use an exact single-output GP such as `SingleTaskGP`, or a criterion that only "
    "needs a posterior, such as `Straddle`."
)


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

    @classmethod
    def from_kernel(
        cls, kernel: Kernel, mean: Mean | None = None, noise_var: float | None = None
    ) -> GPPrior:
        r"""A prior from a GPyTorch kernel in the units of the inputs and of ``y``.

        Args:
            kernel: The covariance; its hyper-parameters are copied, frozen and held in
                float64.
            mean: The mean; default zero. Treated likewise.
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
            _frozen(mean if mean is not None else ZeroMean()).double(),
            _frozen(kernel).double(),
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
        scale, shift = _affine_outcome(model, getattr(model, "outcome_transform", None))
        parameter = model.train_inputs[0]
        likelihood = model.likelihood
        if type(likelihood) is GaussianLikelihood or hasattr(likelihood, "raw_noise"):
            noise = likelihood.noise.detach()[..., 0] * scale.square()
        else:
            noise = None
        transform = getattr(model, "input_transform", None)
        return cls(
            _frozen(model.mean_module),
            _frozen(model.covar_module),
            scale.to(parameter),
            shift.to(parameter),
            noise,
            None if transform is None else _frozen(transform),
            model.batch_shape if hasattr(model, "batch_shape") else torch.Size(),
            is_ensemble(model),
            getattr(model, "predict_noise", None),
        )

    def at_least(self, sigma: float, X: Tensor) -> GPPrior:
        r"""The same process, its scale raised where its deviations are smaller.

        Mean, lengthscales and noise stay as they are in the units of ``y``.

        Args:
            sigma: The prior standard deviation wanted at the widest point, units of
                ``y``.
            X: ``N x d`` points.

        Raises:
            UnsupportedError: If the process is an ensemble.
        """
        if self.batch_shape:
            raise UnsupportedError(
                "Expected one process, but got an ensemble of "
                f"{tuple(self.batch_shape)}."
            )
        with torch.no_grad():
            now = float(self.variance(self.features(X)).max().sqrt())
        if not 0 < now < sigma:
            return self
        kernel = ScaleKernel(self.covar_module)
        kernel.to(dtype=self.dtype, device=self.device)
        # Unconstrained, so that the factor is what it says to the last digit.
        kernel.register_constraint("raw_outputscale", Positive(transform=None))
        kernel.raw_outputscale = Parameter(
            torch.tensor((sigma / now) ** 2, dtype=self.dtype, device=self.device)
        )
        return replace(self, covar_module=_frozen(kernel))

    @property
    def knows_new_noise(self) -> bool:
        r"""Whether the noise of an observation to come is known."""
        return self.noise_var is not None or self.predict_noise is not None

    def new_noise(self, X: Tensor) -> Tensor | None:
        r"""Noise variances of one observation at each of ``N x d`` points, if known.

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

    @property
    def device(self) -> torch.device:
        r"""Where the kernel is evaluated."""
        return self.scale.device

    def features(self, X: Tensor) -> Tensor:
        r"""The kernel's inputs ``S x N x d'`` for ``N x d`` or ``S x N x d`` points."""
        X = X.to(dtype=self.dtype, device=self.device)
        if self.batch_shape and X.ndim < 2 + len(self.batch_shape):
            X = X.expand(*self.batch_shape, *X.shape)
        return X if self.transform_inputs is None else self.transform_inputs(X)

    def mean(self, F: Tensor) -> Tensor:
        r"""Prior means at features ``S x N x d'``: ``S x N``, units of ``y``."""
        return self.in_units(self.mean_module(F).double())

    def in_units(self, standardised: Tensor) -> Tensor:
        r"""Values ``S x N`` of the standardised process in the units of ``y``."""
        scale, shift = self.scale.double(), self.shift.double()
        return standardised * scale.unsqueeze(-1) + shift.unsqueeze(-1)

    def covariance(self, F: Tensor, G: Tensor) -> Tensor:
        r"""Prior covariances of ``S x N x d'`` with ``S x M x d'``: ``S x N x M``."""
        block = self.covar_module(F, G).to_dense().double()
        return block * self.scale.double().square()[..., None, None]

    def variance(self, F: Tensor) -> Tensor:
        r"""Prior variances at features: ``S x N``, float64, units of ``y`` squared."""
        value = self.covar_module(F, diag=True).double()
        return value * self.scale.double().square().unsqueeze(-1)

    def least_noise(self, F: Tensor) -> Tensor:
        r"""The least noise variance of an observation among features: ``S``."""
        with torch.no_grad():
            return least_noise(self.variance(F), self.dtype)


def training_data(model: ExactGP, prior: GPPrior) -> tuple[Tensor, Tensor, Tensor]:
    r"""Features ``S x n x d'``, values and noise variances ``S x n`` in units of ``y``.

    ``train_inputs`` are transformed already in evaluation mode and ``train_targets``
    standardised; the noise stands in the likelihood.
    """
    model.eval()
    F = model.train_inputs[0].detach()
    # The members of a fully Bayesian model share one copy of the inputs.
    F = F.expand(*prior.batch_shape, *F.shape[-2:])
    y = prior.in_units(model.train_targets.detach().double())
    unit = prior.scale.double().square().unsqueeze(-1)
    noise = model.likelihood.noise.detach().double() * unit
    return F, y, noise.expand(y.shape).clone()


def _frozen(module: Module) -> Module:
    r"""A copy in evaluation mode, without gradients."""
    module = deepcopy(module).eval()
    return module.requires_grad_(False)


def _refuse_inexact(model: Any) -> None:
    r"""Complain about a model that is not one exact GP of one output."""
    name = type(model).__name__
    if not isinstance(model, ExactGP):
        raise UnsupportedError(
            "Expected `model` to be an exact GP (gpytorch.models.ExactGP), but got "
            f"{name}, whose posteriors after each observation are not available. "
            f"{_REMEDY}"
        )
    if getattr(model, "num_outputs", 1) != 1:
        raise UnsupportedError(
            f"Expected `model` to have one output, but got {name} with "
            f"{model.num_outputs}. Take one output with `model.subset_output([i])`."
        )
    if isinstance(model, MultiTaskGP):
        raise UnsupportedError(
            "Expected `model` to have the data of one task, but got "
            f"{name} with {model.num_tasks} tasks, whose observations of other tasks "
            f"are no rounds of this one. {_REMEDY}"
        )
    if model.train_inputs is None or model.train_targets is None:
        raise UnsupportedError(f"Expected `model` to have data, but {name} has none.")
    if not (hasattr(model, "mean_module") and hasattr(model, "covar_module")):
        raise UnsupportedError(
            f"Expected `model` to have `mean_module` and `covar_module`, but {name} "
            f"has not. {_REMEDY}"
        )
    if not isinstance(
        model.likelihood, (GaussianLikelihood, FixedNoiseGaussianLikelihood)
    ):
        raise UnsupportedError(
            "Expected `model` to have a Gaussian likelihood, but got "
            f"{type(model.likelihood).__name__}. {_REMEDY}"
        )
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
    r"""Complain about a ``forward`` that does more than call mean and kernel."""
    # A deep kernel, for one, maps the inputs in `forward`, which we do not call.
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
    r"""The factor and the offset that lead from standardised values to ``y``."""
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
