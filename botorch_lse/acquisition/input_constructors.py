r"""Input constructors, so that Ax and BoTorch can build the classes by name.

A scalarisation of a model with one output is dropped: Ax passes the objective's sign in
it, and the sign is not part of a level set. Thresholds are in the units of ``y``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botorch.acquisition.cost_aware import CostAwareUtility
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_lse.acquisition.cost import Cost
from botorch_lse.acquisition.design import qMELK, qNegMaxPosteriorVariance
from botorch_lse.acquisition.design_pairs import qMILK
from botorch_lse.acquisition.gege import qGEGE
from botorch_lse.acquisition.hrage import qHRAGE
from botorch_lse.acquisition.noise import NoiseVar
from botorch_lse.acquisition.regions import LSE_BETA, LSEAmbiguity, LSEWidth
from botorch_lse.acquisition.straddle import (
    STRADDLE_BETA,
    ImplicitStraddle,
    MaxVariance,
    Straddle,
)
from botorch_lse.acquisition.truvar import TRUVAR_BETA, qTruVaR
from botorch_lse.confidence.schedules import BetaSchedule
from botorch_lse.problem import Pool


@acqf_input_constructor(Straddle)
def construct_inputs_straddle(
    model: Model,
    threshold: float | Tensor,
    beta: float = STRADDLE_BETA,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``Straddle``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "threshold": threshold,
        "beta": beta,
    }


@acqf_input_constructor(ImplicitStraddle)
def construct_inputs_implicit_straddle(
    model: Model,
    omega: float,
    pool: Pool | Tensor,
    beta: float = STRADDLE_BETA,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``ImplicitStraddle``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "omega": omega,
        "pool": pool,
        "beta": beta,
    }


@acqf_input_constructor(MaxVariance)
def construct_inputs_max_variance(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``MaxVariance``; see there."""
    return _shared(model, posterior_transform, X_pending)


@acqf_input_constructor(LSEAmbiguity)
def construct_inputs_lse_ambiguity(
    model: Model,
    threshold: float | Tensor,
    beta: float | BetaSchedule = LSE_BETA,
    rounds: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``LSEAmbiguity``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "threshold": threshold,
        "beta": beta,
        "rounds": rounds,
    }


@acqf_input_constructor(LSEWidth)
def construct_inputs_lse_width(
    model: Model,
    beta: float | BetaSchedule = LSE_BETA,
    rounds: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``LSEWidth``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "beta": beta,
        "rounds": rounds,
    }


@acqf_input_constructor(qNegMaxPosteriorVariance, qMELK)
def construct_inputs_worst_variance(
    model: Model,
    targets: Pool | Tensor,
    noise_var: NoiseVar | None = None,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``qNegMaxPosteriorVariance`` and ``qMELK``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "targets": targets,
        "noise_var": noise_var,
    }


@acqf_input_constructor(qHRAGE)
def construct_inputs_hrage(
    model: Model,
    targets: Pool | Tensor,
    noise_var: NoiseVar | None = None,
    target_weights: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``qHRAGE``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "targets": targets,
        "noise_var": noise_var,
        "target_weights": target_weights,
    }


@acqf_input_constructor(qGEGE)
def construct_inputs_gege(
    model: Model,
    targets: Pool | Tensor,
    noise_var: NoiseVar | Sequence[NoiseVar] | None = None,
    output_weights: Sequence[float] | Tensor | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``qGEGE``; see there. A posterior transform is dropped."""
    return {
        "model": model,
        "targets": targets,
        "noise_var": noise_var,
        "output_weights": output_weights,
        "X_pending": X_pending,
    }


@acqf_input_constructor(qMILK)
def construct_inputs_milk(
    model: Model,
    targets: Pool | Tensor,
    omega: float,
    noise_var: NoiseVar | None = None,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``qMILK``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "targets": targets,
        "omega": omega,
        "noise_var": noise_var,
    }


@acqf_input_constructor(qTruVaR)
def construct_inputs_truvar(
    model: Model,
    targets: Pool | Tensor,
    beta: float = TRUVAR_BETA,
    eta: float = 0.0,
    cost: Cost | CostAwareUtility | None = None,
    noise_var: NoiseVar | None = None,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    r"""Arguments of ``qTruVaR``; see there."""
    return _shared(model, posterior_transform, X_pending) | {
        "targets": targets,
        "beta": beta,
        "eta": eta,
        "cost": cost,
        "noise_var": noise_var,
    }


def _shared(
    model: Model,
    posterior_transform: PosteriorTransform | None,
    X_pending: Tensor | None,
) -> dict[str, Any]:
    transform = None if model.num_outputs == 1 else posterior_transform
    return {
        "model": model,
        "posterior_transform": transform,
        "X_pending": X_pending,
    }
