r"""Instances of Kone et al. (2025): means, features and noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from botorch_lse.data.pool import Pool
from botorch_lse.papers.kone2025.gaps import (
    ParetoComplexity,
    pareto_complexity,
    pareto_gaps,
)
from botorch_lse.pareto import pareto_mask

NOC_FILE, ENERGY_FILE = "noc_CM_log.csv", "ENB2012_data.csv"
NOISE_STD = 0.5
DRAWN, MAX_DRAWS = 1000, 200


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
        r"""The gaps of the rows, and the complexity ``H`` made of them."""
        return pareto_complexity(self.means, self.X)

    @property
    def maximize(self) -> tuple[bool, ...]:
        r"""Which outputs are to be large: all of them."""
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
    K: int, h: int = 8, m: int = 2, noise_std: float = NOISE_STD, seed: int = 0
) -> ParetoInstance:
    r"""Arms ``1..h`` have the smallest gaps, the same for every ``K``.

    The first ``h`` features are the canonical basis. As in the authors' NoC the outputs
    are costs: ``Theta`` is drawn from ``U([0, 1])`` and ``mu = -X Theta``. Further
    features are drawn from ``U([0, 1]^h)``, scaled to length 1, and kept if they leave
    the gaps of the first ``h`` arms as they are and have a larger gap than those.

    Args:
        K: The number of arms, at least ``h``.
        h: The number of features.
        m: The number of outputs.
        noise_std: Of one measurement, each output; that of NoC unless said.
        seed: Of all draws; arms of a smaller ``K`` are the first of a larger one.

    Raises:
        ValueError: If hardly any draw can be kept.

    Source:
        Kone et al. (2025), section 5.1 and Appendix I.1, which give the construction
        but neither ``Theta`` nor the noise.
    """
    generator = torch.Generator().manual_seed(seed)
    means = -torch.rand(h, m, generator=generator, dtype=torch.float64)
    X = torch.eye(h, dtype=torch.float64)
    for _ in range(MAX_DRAWS):
        if len(X) >= K:
            break
        more = torch.rand(DRAWN, h, generator=generator, dtype=torch.float64)
        more = more / more.norm(dim=1, keepdim=True)
        X = torch.cat((X, more[_leave_gaps(more @ means, means)]))
    else:
        raise ValueError(
            f"Expected `seed` to allow {K} arms, but {MAX_DRAWS * DRAWN} draws with "
            f"seed {seed} gave {len(X)}. Use another seed."
        )
    X = X[:K]
    return ParetoInstance(f"K = {K}, seed {seed}", X, X @ means, noise_std)


def _leave_gaps(new: Tensor, means: Tensor) -> Tensor:
    r"""Which new arms have larger gaps than all others and leave theirs unchanged."""
    gaps, optimal = pareto_gaps(means), pareto_mask(means)
    ahead = means - new.unsqueeze(1)  # old minus new
    amount = ahead.amin(dim=-1).amax(dim=1)
    rival = (-ahead).amax(dim=-1).clamp_min(0) + amount.unsqueeze(1)
    rival = torch.minimum(ahead.amax(dim=-1), rival)
    keeps = (rival[:, optimal] >= gaps[optimal]).all(dim=1)
    less = ((-ahead).amin(dim=-1)[:, ~optimal] <= gaps[~optimal]).all(dim=1)
    return (amount > gaps.max()) & keeps & less


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
    return ParetoInstance("NoC, linearised", X, -fitted(X, Y), NOISE_STD)


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
    return ParetoInstance(name, X, -means if minimise else means, NOISE_STD)


def fitted(X: Tensor, Y: Tensor) -> Tensor:
    r"""The least squares fit of ``Y`` without intercept, for any rank."""
    return X @ (torch.linalg.pinv(X) @ Y)
