r"""The outputs of a model one by one, and regions of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

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

from botorch_lse._device import moved
from botorch_lse._validation import complaint, kind_of
from botorch_lse.acquisition.base import check_model, check_outputs
from botorch_lse.acquisition.covariance import makes_several
from botorch_lse.functional.value_region import ValueRegion
from botorch_lse.models.gaussian_process import GPPrior, training_data

Output = tuple[Model, PosteriorTransform | None]
"""A model, and the transform that takes its output if it has several."""


def independent_outputs(model: Model, most: int | None = None) -> list[Output]:
    r"""The outputs of a model, one by one.

    Args:
        model: A model.
        most: How many are needed; default all.

    Raises:
        UnsupportedError: If they are correlated, or one is an ensemble.
    """
    check_model(model)
    if makes_several(model):
        raise UnsupportedError(
            "Expected `model` without an input transform that makes several points of "
            f"one, but got {type(model.input_transform).__name__}. Leave it out; or "
            "take `qNegMaxPosteriorVariance` of one output, with a "
            "`posterior_transform`."
        )
    if model.num_outputs == 1:
        return [(model, None)]
    found: list[Output] = []
    if isinstance(model, ModelList):
        for each in model.models:
            found += independent_outputs(each)  # type: ignore[arg-type]  # a Module
            if most is not None and len(found) >= most:  # of the rest nothing is asked
                break
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
    r"""Output ``c`` as a model, or the whole model and the transform that takes it."""
    try:
        return model.subset_output([c]), None
    except (NotImplementedError, RuntimeError):  # own kernels, or fantasies
        weights = torch.zeros(model.num_outputs).to(next(model.parameters()))
        weights[c] = 1.0
        return model, ScalarizedPosteriorTransform(weights)


def per_output(values: object, name: str, m: int) -> list:  # type: ignore[type-arg]
    r"""One value per output; a value that is no sequence holds for all."""
    if isinstance(values, Tensor):
        values = values.tolist()
    if not isinstance(values, Sequence):
        return [values] * m
    if len(values) != m:
        raise BotorchTensorDimensionError(
            f"Expected `{name}` with one entry per output ({m}), but got {len(values)}."
        )
    return list(values)


# --- regions --------------------------------------------------------------------------


def region_of(threshold: Any, goal: Any, epsilon: float = 0.0) -> ValueRegion | None:
    r"""The region of values of a ``goal``; ``None`` where a ``threshold`` is given.

    Args:
        threshold: A level, or ``None``.
        goal: A region with stated levels, such as ``Above(0.55) & Below(0.75,
            output=1)``, or ``None``.
        epsilon: The accuracy beside a threshold; a goal has its own.

    Raises:
        ValueError: If both or none are given, the goal is no such region, or there is
            an accuracy beside it.
    """
    if hasattr(threshold, "leaves"):
        remedy = f"Write `goal={threshold}`."
        raise ValueError(
            complaint("threshold", "to be a level", "got a region", remedy)
        )
    if (threshold is None) == (goal is None):
        came = "got neither" if goal is None else "got both"
        wanted = "or `goal` to be given, exactly one of them"
        raise ValueError(complaint("threshold", wanted, came))
    if goal is None:
        return None
    if epsilon:
        wanted, remedy = "not beside a `goal`", "Write `Above(0.55, epsilon=0.1)`."
        raise ValueError(complaint("epsilon", wanted, f"got {epsilon}", remedy))
    if not isinstance(goal, type) and hasattr(goal, "leaves"):
        goal.check(max(len(leaf.levels) for leaf in goal.leaves))
        if goal.outputs:
            wanted = "with outputs by number, since a model does not know their names"
            remedy = (
                "Write `output=0` for the model's first output, and so on; in Ax it "
                "has the metrics of objective and outcome constraints, alphabetically."
            )
            raise ValueError(complaint("goal", wanted, f"got {goal.outputs}", remedy))
    region = getattr(goal, "values", None)
    if not isinstance(region, ValueRegion):
        wanted = "to be a region with stated levels"
        remedy = "Write `Above(0.55) & Below(0.75, output=1)`."
        raise ValueError(complaint("goal", wanted, f"got {kind_of(goal)}", remedy))
    if not region.is_alike_in_all_rows:
        wanted = "with the same levels everywhere, since points are no rows of a pool"
        remedy = "Subtract what differs by row from the values."
        raise ValueError(complaint("goal", wanted, "got levels by row", remedy))
    return region


def outputs_of(
    model: Model, region: ValueRegion, transform: PosteriorTransform | None
) -> list[Output]:
    r"""The outputs of a model that a region compares with levels.

    Args:
        model: With at least as many outputs as the region.
        region: The region.
        transform: Only for a region of one output, which it takes.

    Raises:
        UnsupportedError: If the model has too few outputs, or they are correlated.
    """
    m = region.n_outputs
    if m == 1 and (transform is not None or model.num_outputs == 1):
        check_outputs(model, transform)
        return [(model, transform)]
    if transform is not None:
        raise UnsupportedError(
            f"Expected no `posterior_transform` with a `goal` of {m} outputs, all of "
            f"which it takes, but got {type(transform).__name__}. Leave it out."
        )
    found = independent_outputs(model, m)
    if len(found) < m:
        raise UnsupportedError(
            f"Expected `model` with the {m} outputs of the `goal`, but it has "
            f"{len(found)}. Join one model per output by `ModelListGP`; in Ax name "
            "each metric in the objective or in an outcome constraint."
        )
    return found[:m]


def units_of(outputs: Sequence[Output]) -> list[float]:
    r"""The units in which scores of several outputs are compared; of a single one 1.

    The prior's largest standard deviation at the data. Of models whose prior is not
    known exactly it is the standard deviation of the values.
    """
    if len(outputs) == 1:
        return [1.0]
    return [_spread_of(*output) for output in outputs]


def _spread_of(model: Model, transform: PosteriorTransform | None) -> float:
    try:
        prior = GPPrior.from_model(model)
        F, _, _ = training_data(model, prior)  # type: ignore[arg-type]
        return float(prior.variance(F).max().sqrt())
    except UnsupportedError:
        pass
    y = getattr(model, "train_targets", None)
    if not isinstance(y, Tensor):
        return 1.0
    y = y.unsqueeze(-1) if model.num_outputs == 1 else y.mT
    if (outcome := getattr(model, "outcome_transform", None)) is not None:
        y, _ = outcome.untransform(y)
    weights: Any = getattr(transform, "weights", torch.ones(1))
    spread = float(y[..., int(weights.argmax())].std()) if y.shape[-2] > 1 else 0.0
    return spread if spread > 0 else 1.0


def set_pending_of_each(score: AcquisitionFunction, X_pending: Tensor | None) -> None:
    r"""Set the points that are being measured, for a score and each of its outputs.

    Args:
        score: An acquisition function that has one for each output, ``outputs``.
        X_pending: ``n' x d``, or ``None``.
    """
    outputs = cast(Sequence[AcquisitionFunction], score.outputs)
    for each in outputs:
        each.set_X_pending(X_pending)
    score._pending = outputs[0].X_pending


def value_of_region(
    region: ValueRegion,
    known: Sequence[tuple[Tensor, Tensor]],
    value: Callable[[ValueRegion, list[Tensor], list[Tensor]], Tensor],
) -> Tensor:
    r"""The values of points by what is known of each output, such as moments or ends.

    Args:
        region: The region.
        known: For each output two tensors of one shape.
        value: From the region, where the tensors are, and these flat and in double
            precision to the values of the points.

    Returns:
        Values in the shape and precision of the tensors.
    """
    like = known[0][0]
    first, second = (
        [one.double().flatten() for one in part] for part in zip(*known, strict=True)
    )
    with torch.device(like.device):  # cells are counted there
        found = value(moved(region, like.device), first, second)
    return found.view_as(like).to(like)
