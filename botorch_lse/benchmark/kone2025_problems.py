r"""Instances of Kone et al. (2025): means, features and noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from botorch_lse.designs import ParetoComplexity, pareto_complexity
from botorch_lse.pareto import pareto_mask
from botorch_lse.problem import Pool

NOC_FILE, ENERGY_FILE = "noc_CM_log.csv", "ENB2012_data.csv"
NOC_STD, SYNTHETIC_STD = 0.5, 0.25
SMALLEST_GAP, GROWTH, SPACING, LEVEL = 0.02, 1.25, 0.1, 0.2


@dataclass(frozen=True, eq=False)
class ParetoInstance:
    r"""Arms whose means are known to the benchmark only.

    Args:
        name: For people.
        X: ``K x h`` features.
        means: ``K x m`` true means, all outputs maximised.
        noise_std: Of one measurement, each output.
    """

    name: str
    X: Tensor
    means: Tensor
    noise_std: float

    @cached_property
    def pool(self) -> Pool:
        r"""The arms as a strategy sees them."""
        return Pool(self.X)

    @cached_property
    def truth(self) -> Tensor:
        r"""``K`` bools: the Pareto set."""
        return pareto_mask(self.means)

    @cached_property
    def complexity(self) -> ParetoComplexity:
        r"""Gaps and ``H``."""
        return pareto_complexity(self.means, self.X)

    @property
    def maximize(self) -> tuple[bool, ...]:
        r"""All outputs are."""
        return (True,) * self.means.shape[1]

    def measure(self, seed: int) -> Callable[[Tensor, Tensor], Tensor]:
        r"""Means of so many measurements of rows, with the noise of a seed."""
        generator = torch.Generator().manual_seed(seed)

        def means(rows: Tensor, counts: Tensor) -> Tensor:
            shape = (len(rows), self.means.shape[1])
            noise = torch.randn(shape, generator=generator, dtype=torch.float64)
            return self.means[rows] + self.noise_std * noise / counts.sqrt().view(-1, 1)

        return means


def synthetic(
    K: int, h: int = 8, m: int = 2, noise_std: float = SYNTHETIC_STD
) -> ParetoInstance:
    r"""Arms ``1..h`` have the smallest gaps, the same for every ``K``.

    The first ``h`` features are the canonical basis: ``h / 2`` optimal arms spaced on
    an antidiagonal, each with one arm a little below it. The others have features drawn
    from the unit cube, scaled to length 1, and lie far below.

    Source:
        Kone et al. (2025), section 5.1 and Appendix I.1, which gives no numbers; these
        are own.
    """
    pairs = torch.arange(h // 2, dtype=torch.float64)
    best = torch.full((h // 2, m), -LEVEL, dtype=torch.float64)
    best[:, 0] += SPACING * pairs
    best[:, 1] -= SPACING * pairs
    below = best - SMALLEST_GAP * GROWTH ** pairs.unsqueeze(-1)
    theta = torch.cat((best, below))
    generator = torch.Generator().manual_seed(0)
    more = torch.rand(K - h, h, generator=generator, dtype=torch.float64)
    more = more / more.norm(dim=1, keepdim=True)
    X = torch.cat((torch.eye(h, dtype=torch.float64), more))
    return ParetoInstance(f"K = {K}", X, X @ theta, noise_std)


def noc(path: Path) -> ParetoInstance:
    r"""The linear instance the authors made of NoC: four Pareto arms.

    Rows of features scaled to length 1, least squares without intercept, both fitted
    outputs minimised.

    Source:
        Almer et al. (2011); Kone et al. (2025), section 5.1 and their notebook.
    """
    table = torch.from_numpy(np.loadtxt(path, delimiter=";"))
    X, Y = table[:, :4], table[:, 4:]
    X = X / X.norm(dim=1, keepdim=True)
    return ParetoInstance("NoC, linearised", X, -fitted(X, Y), NOC_STD)


def energy(path: Path, linear: bool, minimise: bool = True) -> ParetoInstance:
    r"""Heating and cooling loads of 768 buildings, in standard deviations.

    Args:
        path: The file.
        linear: Whether the means are the linear fit, or the loads themselves.
        minimise: Whether small loads are good.

    Source:
        Tsanas and Xifara (2012); Kone et al. (2025), Appendix I.2. Columns are scaled
        by their maxima, so the features keep their rank of 7.
    """
    table = torch.from_numpy(np.loadtxt(path, delimiter=",", skiprows=1))
    X, Y = table[:, :8], table[:, 8:10]
    X, Y = X / X.amax(dim=0), Y / Y.std(dim=0)
    means = fitted(X, Y) if linear else Y
    name = "energy, linear fit" if linear else "energy, the loads themselves"
    return ParetoInstance(name, X, -means if minimise else means, 0.5)


def fitted(X: Tensor, Y: Tensor) -> Tensor:
    r"""The least squares fit of ``Y`` without intercept, for any rank."""
    return X @ (torch.linalg.pinv(X) @ Y)
