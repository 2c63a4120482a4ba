r"""Features of pools, and which items a pool's measurements can predict."""

from __future__ import annotations

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_lse.confidence.self_normalised import OUTSIDE
from botorch_lse.problem import Pool


def features_of(pool: Pool) -> Tensor:
    r"""``N x d``: the pool's features, else its inputs."""
    return pool.X if pool.features is None else pool.features


def check_items(X: Tensor, items: Tensor, to_span: Tensor) -> None:
    r"""Refuse items that no measurement predicts.

    Args:
        X: ``N x d`` features of what can be measured.
        items: ``T x d`` features of what is to be decided.
        to_span: ``d x h``, the map onto the span of ``X``.

    Raises:
        ValueError: If all features are zero, or an item is outside their span.
        BotorchTensorDimensionError: If the items have other features.
    """
    if not bool((X != 0).any()):
        raise ValueError(
            "Expected a feature other than zero in `pool`, but all are zero."
        )
    if items.shape[1] != X.shape[1]:
        raise BotorchTensorDimensionError(
            f"Expected `targets` with {X.shape[1]} features as `pool`, but got "
            f"{items.shape[1]}."
        )
    basis = torch.linalg.qr(to_span).Q
    missing = (items - items @ basis @ basis.mT).norm(dim=-1)
    outside = missing > OUTSIDE * items.norm(dim=-1)
    if bool(outside.any()):
        raise ValueError(
            "Expected `targets` in the span of the pool's features, but item "
            f"{int(outside.nonzero()[0])} is not: no measurement of the pool predicts "
            "it. Leave it out, or add rows to the pool."
        )
