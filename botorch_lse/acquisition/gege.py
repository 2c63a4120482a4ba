r"""The worst remaining variance over several outputs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.gpytorch import BatchedMultiOutputGPyTorchModel
from botorch.models.model import Model, ModelList
from botorch.models.multitask import MultiTaskGP
from botorch.utils.transforms import is_ensemble
from torch import Tensor
from torch.nn import ModuleList

from botorch_lse.acquisition.base import check_likelihood
from botorch_lse.acquisition.design import DesignAcquisitionFunction
from botorch_lse.acquisition.hrage import qHRAGE
from botorch_lse.acquisition.noise import NoiseVar
from botorch_lse.checks import in_interval
from botorch_lse.problem import Pool


class qGEGE(AcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""GEGE's batch criterion on Gaussian processes: several outputs at once.

    ``a(X) = -max over outputs c and targets t of weight_c var(f_c(t) | data, pending,
    X)`` with the open rows of a Pareto-set problem as ``targets``; every observation
    measures all outputs. Exact for independent outputs. Variances are in the units of
    each output squared: give ``output_weights`` where units differ.

    Example:
        >>> from botorch.models import ModelListGP
        >>> both = ModelListGP(model, model)
        >>> acqf = qGEGE(both, targets=pool_X[:5], output_weights=[1.0, 0.01])
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Kone et al. (2025), Algorithm 1: the G-optimal design over the active arms, for
        integer counts and with posterior variances in place of ``|x|^2_{V^+}``, which
        they are, up to a factor, for a linear kernel.
    """

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        noise_var: NoiseVar | Sequence[NoiseVar] | None = None,
        X_pending: Tensor | None = None,
        *,
        output_weights: Sequence[float] | Tensor | None = None,
    ) -> None:
        r"""The model, what to predict, and how future observations are measured.

        Args:
            model: A fitted model with ``m`` independent outputs: a ``SingleTaskGP`` or
                a ``ModelListGP``.
            targets: ``T x d`` points whose values matter, or a ``Pool``: all its rows.
            noise_var: The noise variance of a future observation of an output, in its
                units squared: a number, a function from ``b x q x d`` points to ``b x
                q``, or one of these per output. Default the model's own.
            X_pending: ``n' x d`` points submitted and not observed yet.
            output_weights: ``m`` positive factors of the variances; default 1.

        Raises:
            UnsupportedError: If the outputs are correlated, an output is an ensemble,
                or the model knows the noise of its own observations only.
            ValueError: If ``targets`` is empty or not finite, or a noise variance or
                weight not positive.
            BotorchTensorDimensionError: If there is not one noise variance or weight
                per output.
        """
        super().__init__(model=model)
        outputs = independent_outputs(model)
        noises = _per_output(noise_var, "noise_var", len(outputs))
        weights = _per_output(output_weights, "output_weights", len(outputs))
        X = targets.X if isinstance(targets, Pool) else targets
        self.outputs = ModuleList(
            _criterion(output, X, noise, weight)
            for output, noise, weight in zip(outputs, noises, weights, strict=True)
        )
        self.set_X_pending(X_pending)

    @property
    def parts(self) -> list[DesignAcquisitionFunction]:
        r"""The criterion of each output, weighted."""
        return list(self.outputs)  # type: ignore[arg-type]  # made above

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Points that are out count as observed.

        Args:
            X_pending: ``n' x d``, or ``None``.

        Raises:
            BotorchTensorDimensionError: If it is not a matrix.
        """
        for part in self.parts:
            part.set_X_pending(X_pending)
        self.X_pending = self.parts[0].X_pending

    def forward(self, X: Tensor) -> Tensor:
        r"""Values at ``X``: ``batch_shape x q x d`` to ``batch_shape``."""
        return torch.stack([part(X) for part in self.parts]).amin(dim=0)


Output = tuple[Model, PosteriorTransform | None]
"""A model, and the transform that takes its output if it has several."""


def independent_outputs(model: Model) -> list[Output]:
    r"""The outputs of a model, one by one.

    Raises:
        UnsupportedError: If they are correlated, or one is an ensemble.
    """
    if not isinstance(model, Model):
        raise UnsupportedError(
            "Expected `model` to be a fitted BoTorch model, but got "
            f"{type(model).__name__}."
        )
    check_likelihood(model)
    if model.num_outputs == 1:
        return [(model, None)]
    found: list[Output] = []
    if isinstance(model, ModelList):
        for each in model.models:
            found += independent_outputs(each)  # type: ignore[arg-type]  # a Module
    elif isinstance(model, BatchedMultiOutputGPyTorchModel) and not isinstance(
        model, MultiTaskGP
    ):
        found = [_output(model, c) for c in range(model.num_outputs)]
    else:
        raise UnsupportedError(
            "Expected `model` with independent outputs (`SingleTaskGP`, `ModelListGP`),"
            f" but got {type(model).__name__}, where an observation of one output tells"
            " about the others. Fit one model per output and join them by "
            "`ModelListGP`."
        )
    if any(is_ensemble(one) for one, _ in found):
        raise UnsupportedError(
            "Expected `model` without ensembles among several outputs, but "
            f"{type(model).__name__} holds one. Use one member, such as the "
            "maximum a posteriori fit."
        )
    return found


def _output(model: BatchedMultiOutputGPyTorchModel, c: int) -> Output:
    try:
        return model.subset_output([c]), None
    except NotImplementedError:  # own kernels: BoTorch cannot take them apart
        weights = torch.zeros(model.num_outputs).to(next(model.parameters()))
        weights[c] = 1.0
        return model, ScalarizedPosteriorTransform(weights)


def _criterion(
    output: Output, X: Tensor, noise_var: NoiseVar | None, weight: float | None
) -> qHRAGE:
    factors = None
    if weight is not None:
        weight = in_interval(weight, "output_weights", 0.0, float("inf"))
        factors = torch.full((len(X),), weight, dtype=torch.float64)
    model, transform = output
    return qHRAGE(
        model, X, noise_var, target_weights=factors, posterior_transform=transform
    )


def _per_output(values: object, name: str, m: int) -> list:  # type: ignore[type-arg]
    if isinstance(values, Tensor):
        values = values.tolist()
    if not isinstance(values, Sequence):
        return [values] * m
    if len(values) != m:
        raise BotorchTensorDimensionError(
            f"Expected `{name}` with one entry per output ({m}), but got {len(values)}."
        )
    return list(values)
