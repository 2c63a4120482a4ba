r"""What a level-set strategy is to decide, and how rounds decide it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import (
    UNDECIDED,
    Sides,
    explicit_sides,
)
from botorch_lse.confidence.regions import Regions


@dataclass(frozen=True)
class ExplicitGoal:
    r"""``above = {x : f(x) > threshold}``, decided rows stay as they are.

    Args:
        threshold: Units of ``y``.
        epsilon: The accuracy, units of ``y``.
    """

    threshold: float
    epsilon: float

    def start(self, n_rows: int) -> Sides:
        r"""Everything undecided."""
        return Sides.start(n_rows)

    def update(self, sides: Sides, regions: Regions) -> Sides:
        r"""Algorithm 1, lines 5 to 10, on the rows still undecided."""
        now = explicit_sides(regions.lower, regions.upper, self.threshold, self.epsilon)
        side = torch.where(sides.side == UNDECIDED, now, sides.side)
        return replace(sides, side=side, candidates=side == UNDECIDED)

    def level(self, mean: Tensor) -> float:
        r"""The level that probabilities refer to."""
        return self.threshold


@dataclass(frozen=True)
class ImplicitGoal:
    r"""``above = {x : f(x) > omega max f}``.

    Args:
        omega: In (0, 1).
        epsilon: The accuracy, units of ``y``.
        drop_maximisers: See ``Sides.update_implicit``.
    """

    omega: float
    epsilon: float
    drop_maximisers: bool = False

    def start(self, n_rows: int) -> Sides:
        r"""Everything undecided."""
        return Sides.start(n_rows)

    def update(self, sides: Sides, regions: Regions) -> Sides:
        r"""Algorithm 2, lines 4 to 15."""
        return sides.update_implicit(
            regions.lower, regions.upper, self.omega, self.epsilon, self.drop_maximisers
        )

    def level(self, mean: Tensor) -> float:
        r"""``omega`` times the largest posterior mean."""
        return self.omega * float(mean.max())


Goal = ExplicitGoal | ImplicitGoal
