r"""Mean and kernel of functions that rise along some of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

LIKELY_RISE = 1.0
"""The median of the prior of a rise over the pool's range, in units."""


class RisingMean(Mean):
    r"""A mean that rises along some inputs, and is 0 in the middle but for a constant.

    Args:
        columns: The inputs, in the unit cube.
    """

    def __init__(self, columns: Sequence[int]) -> None:
        super().__init__()
        self.columns = list(columns)
        self.register_buffer("constant", torch.zeros((), dtype=torch.float64))
        rises = torch.full((len(columns),), LIKELY_RISE, dtype=torch.float64)
        self.register_buffer("rises", rises)

    def centred(self, x: Tensor) -> Tensor:
        r"""The inputs along which it rises, less their middle (``... x n x k``)."""
        columns = torch.tensor(self.columns, dtype=torch.long, device=x.device)
        return x.index_select(-1, columns) - 0.5

    def forward(self, x: Tensor) -> Tensor:
        r"""The means at ``... x n x d'`` points."""
        return self.constant + self.centred(x) @ self.rises


class Slope(Kernel):
    r"""The covariance of a line through 0 in the middle, whose slope is of variance 1.

    Times a kernel of other inputs it is that of a line whose slope depends on them.

    Args:
        column: The input, in the unit cube.
    """

    is_stationary = False

    def __init__(self, column: int) -> None:
        super().__init__(active_dims=(column,))

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: Any) -> Tensor:
        r"""The covariances of ``... x n x 1`` points with ``... x m x 1`` others."""
        one, other = x1 - 0.5, x2 - 0.5
        return (one * other).sum(dim=-1) if diag else one @ other.mT
