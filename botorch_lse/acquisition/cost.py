r"""What an evaluation costs, and values per cost."""

from __future__ import annotations

from collections.abc import Callable

import torch
from botorch.acquisition.cost_aware import CostAwareUtility
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.checks import in_interval

Cost = float | Callable[[Tensor], Tensor]
"""One cost, or a function from ``b x q x d`` points to ``b x q`` costs."""

FREE = "A free measurement would be repeated for ever: add what it costs at least."


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
    if found.shape != X.shape[:-1]:
        raise BotorchTensorDimensionError(
            "Expected `cost` to map b x q x d points to b x q costs, here "
            f"{tuple(X.shape[:-1])}, but got shape {tuple(found.shape)}."
        )
    if not bool((found > 0).all()):
        raise ValueError(
            "Expected `cost` to return positive costs, but the smallest is "
            f"{float(found.min()):g}. {FREE}"
        )
    total = found.to(value).sum(dim=-1)
    return value / total[(..., *[None] * members)]
