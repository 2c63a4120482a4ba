r"""The design problems whose solution is timed, with their targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from research.papers.problems import grid

LINEAR_DIMENSION = 20


@dataclass(frozen=True)
class Instance:
    r"""One design problem with its targets for time and memory.

    Args:
        name: What it is.
        tols: Gaps to certify; the last has the targets.
        seconds: Within so long.
        gigabytes: And with so much memory, if stated.
        side: Points along one side of the unit square; 0 for another set.
        points: Points of the unit interval, or Gaussian vectors of a linear model.
        lengthscale: Of the RBF kernel; 0 for a linear model.
        gamma: The ridge.
        pairs_factor: ``c`` for all pairs as targets.
        unit: Whether the vectors have length 1: then equal weights are nearly optimal.
        compared: Whether the others run too.
    """

    name: str
    tols: tuple[float, ...]
    seconds: float
    gigabytes: float | None = None
    side: int = 0
    points: int = 0
    lengthscale: float = 0.0
    gamma: float = 0.0
    pairs_factor: float | None = None
    unit: bool = False
    compared: bool = True

    def problem(self) -> tuple[Tensor, dict[str, Any]]:
        r"""The design points and the arguments that all solvers share."""
        if not self.lengthscale:
            generator = torch.Generator().manual_seed(0)
            shape = (self.points, LINEAR_DIMENSION)
            X = torch.randn(shape, generator=generator, dtype=torch.float64)
            return X / X.norm(dim=-1, keepdim=True) if self.unit else X, {}
        line = torch.linspace(0.0, 1.0, max(self.points, 1), dtype=torch.float64)
        X = grid(self.side) if self.side else line.unsqueeze(-1)
        kernel = RBFKernel()
        kernel.lengthscale = self.lengthscale
        shared = {
            "kernel": kernel,
            "gamma": self.gamma,
            "pairs_factor": self.pairs_factor,
        }
        return X, shared


INSTANCES = (
    Instance(
        "200 points, RBF 0.05, gamma 0.1",
        (1e-2, 1e-4),
        0.3,
        points=200,
        lengthscale=0.05,
        gamma=0.1,
    ),
    Instance(
        "30 x 30, RBF 0.1, gamma 0.01",
        (1e-2, 1e-3),
        5.0,
        side=30,
        lengthscale=0.1,
        gamma=1e-2,
    ),
    Instance(
        "pairs of 200 points, RBF 0.05, gamma 0.1, c 0.9",
        (1e-2, 1e-3),
        2.0,
        points=200,
        lengthscale=0.05,
        gamma=0.1,
        pairs_factor=0.9,
    ),
    Instance("10^5 Gaussian vectors, 20 dimensions", (1e-2, 1e-3), 1.0, points=10**5),
    Instance(
        "10^5 unit vectors, 20 dimensions",
        (1e-2, 1e-3),
        1.0,
        points=10**5,
        unit=True,
    ),
    Instance(
        "100 x 100, RBF 0.1, gamma 0.01",
        (1e-1, 1e-2),
        15.0,
        2.0,
        side=100,
        lengthscale=0.1,
        gamma=1e-2,
    ),
    Instance(
        "316 x 316, RBF 0.1, gamma 0.01",
        (1e-2,),
        90.0,
        4.0,
        side=316,
        lengthscale=0.1,
        gamma=1e-2,
        compared=False,
    ),
)
