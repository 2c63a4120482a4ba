r"""Truncated variance reduction per cost."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from botorch.acquisition.cost_aware import CostAwareUtility
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.transforms import (
    average_over_ensemble_models,
    t_batch_mode_transform,
)
from torch import Tensor

from botorch_lse.acquisition.covariance import NoiseVar
from botorch_lse.acquisition.design import TargetAcquisitionFunction
from botorch_lse.checks import check_map, in_interval
from botorch_lse.functional.variance_reduction import joint_gain, truncated_reduction
from botorch_lse.models.posterior import row_blocks
from botorch_lse.problem import Pool

TRUVAR_BETA = 9.0
Cost = float | Callable[[Tensor], Tensor]
"""One cost, or a function from ``b x q x d`` points to ``b x q`` costs."""

FREE = "A free measurement would be repeated for ever: add what it costs at least."


class qTruVaR(TargetAcquisitionFunction):  # noqa: N801 (BoTorch's q)
    r"""Truncated variance reduction over the targets, per cost of the q-batch.

    ``a(X) = sum_v [max(beta s(v)^2, eta^2) - max(beta s_X(v)^2, eta^2)] / sum_x c(x)``
    over the targets ``v``, where ``s(v)^2`` is the posterior variance given data and
    pending points and ``s_X(v)^2`` that after the whole batch ``X`` besides; neither
    depends on values to come, so the value is exact. Targets whose width ``sqrt(beta)
    s(v)`` is ``eta`` already add nothing. ``eta = 0`` is pure variance reduction. Units
    of ``y`` squared per cost.

    Targets are the points still in question: undecided rows of a pool for a level set,
    possible maximisers for optimisation, or a dense grid of them on a box (representer
    points). A choice between noise levels is a last column ``noise_level`` of ``X``
    that the model's input transform drops and that ``cost`` and ``noise_var`` read.

    Greedy batches (``optimize_acqf(..., sequential=True)``, ``optimize_acqf_discrete``)
    pass points already chosen as ``X_pending``: then each is the best next step per
    cost. (The latter's ``unique=True`` never measures a point twice in a batch.)

    Example:
        >>> acqf = qTruVaR(model, targets=pool_X[:4], beta=9.0, eta=0.1)
        >>> values = acqf(X)  # X: batch_shape x q x d; values: batch_shape

    Source:
        Bogunovic et al. (2016), Eq. (3), in the form of Eq. (18); representer points
        and pure variance reduction: Appendix A. Deviation: averaged over an ensemble.
    """

    def __init__(
        self,
        model: Model,
        targets: Pool | Tensor,
        beta: float = TRUVAR_BETA,
        eta: float = 0.0,
        cost: Cost | CostAwareUtility | None = None,
        noise_var: NoiseVar | None = None,
        X_pending: Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
    ) -> None:
        r"""Truncated variance reduction per cost.

        Args:
            model: A fitted model with a Gaussian posterior.
            targets: ``T x d`` points whose values matter, or a ``Pool``: all its rows.
            beta: The squared width, positive.
            eta: The width to reach, at least 0, units of ``y``.
            cost: The cost of one evaluation: a positive number, a function from ``b x q
                x d`` points to ``b x q`` positive costs, or a ``CostAwareUtility``,
                which weighs the reduction itself. Default 1.
            noise_var: The noise variance of a future observation, units of ``y``
                squared: a number, or a function from ``b x q x d`` points to ``b x q``.
                Default the model's own.
            X_pending: ``n' x d`` points submitted and not observed yet.
            posterior_transform: Required for a model with several outputs.

        Raises:
            UnsupportedError: If the model has several outputs and no transform, knows
                the noise of its own observations only, or has no Gaussian posterior.
            ValueError: If ``beta``, ``cost`` or ``noise_var`` is not positive, ``eta``
                negative, or ``targets`` empty or not finite.
        """
        self.beta = in_interval(beta, "beta", 0.0, math.inf)
        self.eta = in_interval(eta, "eta", 0.0, math.inf, closed_low=True)
        cost = check_cost(cost)
        super().__init__(model, targets, noise_var, X_pending, posterior_transform)
        self.cost = cost

    @t_batch_mode_transform()
    @average_over_ensemble_models  # type: ignore[arg-type]  # typed for the base
    def forward(self, X: Tensor) -> Tensor:
        r"""Values at ``X``: ``batch_shape x q x d`` to ``batch_shape``."""
        batch, L = self._batch(X)
        total = L.new_zeros(L.shape[:-2])  # b x S
        for block in row_blocks(len(self.targets), self._width + L[..., 0].numel()):
            cross = self.covariance.between(batch, self._targets_at(block))
            gain = joint_gain(L, cross)  # b x S x block
            variance = self.variance[..., block]
            total = total + truncated_reduction(gain, variance, self.beta, self.eta)
        value = total.reshape(*X.shape[:-2], *total.shape[1:])
        return per_cost(value, X, self.cost).to(X)


def check_cost(cost: Cost | CostAwareUtility | None) -> Cost | CostAwareUtility:
    r"""``cost`` as a positive number, a function or a utility; ``None`` is 1.

    Raises:
        ValueError: If it is not positive.
    """
    if cost is None:
        return 1.0
    if callable(cost):
        return cost
    return in_interval(cost, "cost", 0.0, float("inf"), remedy=FREE)


def per_cost(value: Tensor, X: Tensor, cost: Cost | CostAwareUtility) -> Tensor:
    r"""Values divided by the summed costs of their q-batches.

    Args:
        value: ``b x S``.
        X: ``b x q x d``.
        cost: From ``check_cost``.

    Returns:
        ``b x S``.

    Raises:
        BotorchTensorDimensionError: If a function returns another shape than ``b x q``.
        ValueError: If it returns a cost that is not positive.
    """
    members = value.ndim - (X.ndim - 2)
    if isinstance(cost, CostAwareUtility):
        # BoTorch puts samples first; here they are the members of an ensemble.
        flat = value.flatten(X.ndim - 2).movedim(-1, 0) if members else value[None]
        weighed = cost(X=X, deltas=flat.to(X)).movedim(0, -1)
        return weighed.reshape(value.shape)
    if not callable(cost):
        return value / (cost * X.shape[-2])
    returned = cost(X)
    try:
        found = torch.as_tensor(returned)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"Expected `cost` to return b x q costs, here {tuple(X.shape[:-1])}, but "
            f"got {returned!r}."
        ) from error
    check_map(found, X, "cost", "costs", positive=True, remedy=FREE)
    total = found.to(value).sum(dim=-1)
    return value / total[(..., *[None] * members)]
