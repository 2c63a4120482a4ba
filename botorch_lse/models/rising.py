r"""Mean and kernel of functions that rise or fall along some of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor


class RisingMean(Mean):
    r"""A mean that rises along some inputs, and a constant.

    Args:
        rising: The inputs along which it rises, in the unit cube; in its middle the
            mean is the constant. Each of all inputs has an equal part of the change.
        falling: Those along which it falls.
        rise: The change along all of them, over the pool's range. The kernel says how
            far rises vary around it. As a number fitted by itself it was too large
            after a few answers that happened to agree, and nothing told how sure it
            was. It is times ``steepness``, which a fit may tie to the kernel's scale:
            a steep function then surely rises.
    """

    def __init__(
        self, rising: Sequence[int], falling: Sequence[int] = (), rise: float = 1.0
    ) -> None:
        super().__init__()
        self.rising, self.falling, self.rise = list(rising), list(falling), rise
        self.register_buffer("constant", torch.zeros((), dtype=torch.float64))
        self.register_buffer("steepness", torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        r"""The means at ``... x n x d'`` points."""
        risen = [x[..., column] - 0.5 for column in self.rising]
        risen += [0.5 - x[..., column] for column in self.falling]
        rise = self.steepness * self.rise / max(len(risen), 1)
        return self.constant + rise * sum(risen, torch.zeros_like(x[..., 0]))


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
