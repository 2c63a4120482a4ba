r"""What a level-set strategy is to decide, and how rounds decide it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.confidence.classify import (
    ABOVE,
    BELOW,
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

    def against(self, sides: Sides, regions: Regions) -> Tensor:
        r"""``N`` bools: the side is not what the row's own region says."""
        tolerant = self.threshold - self.epsilon, self.threshold + self.epsilon
        above = (sides.side == ABOVE) & (regions.upper <= tolerant[0])
        return above | ((sides.side == BELOW) & (regions.lower > tolerant[1]))

    def level(self, mean: Tensor) -> float:
        r"""The level that probabilities refer to."""
        return self.threshold

    def level_of(self, values: Tensor) -> float | None:
        r"""The level on which measured values have a side, if there is one."""
        return self.threshold

    @property
    def tolerance(self) -> float:
        r"""What an interval may be wider than its distance."""
        return self.epsilon

    def distances(self, mean: Tensor) -> Tensor:
        r"""``N`` signed distances; an interval as narrow as its own is decided."""
        return mean - self.threshold


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

    def against(self, sides: Sides, regions: Regions) -> Tensor:
        r"""``N`` bools: the side is not what the regions say of row and level."""
        low = self.omega * regions.lower.max() - self.epsilon
        high = self.omega * regions.upper.max() + self.epsilon
        above = (sides.side == ABOVE) & (regions.upper < low)
        return above | ((sides.side == BELOW) & (regions.lower > high))

    def level(self, mean: Tensor) -> float:
        r"""``omega`` times the largest posterior mean."""
        return self.omega * float(mean.max())

    def level_of(self, values: Tensor) -> float | None:
        r"""``omega`` times the largest value."""
        return self.omega * float(values.max())

    @property
    def tolerance(self) -> float:
        r"""What an interval may be wider than its distance."""
        return self.epsilon

    def distances(self, mean: Tensor) -> Tensor:
        r"""``N`` signed distances, if the maximum were known."""
        return mean - self.level(mean)


@dataclass(frozen=True, eq=False)
class MaximiserGoal:
    r"""Find ``argmax f``: "above" is the accepted row, "below" what is ruled out.

    Args:
        epsilon: A row is accepted once every other row is at most this much better,
            units of ``y``.
        places: ``N`` numbers; rows with one number are one point, at several noise
            levels.
    """

    epsilon: float
    places: Tensor

    def start(self, n_rows: int) -> Sides:
        r"""Every row may be the maximiser."""
        return Sides.start(n_rows)

    def update(self, sides: Sides, regions: Regions) -> Sides:
        r"""``M_t = {x in M_{t-1}: u_t(x) >= max over M_{t-1} of l_t}``.

        Once the row of the largest lower bound is as good as any other in ``M_t`` up to
        ``epsilon``, it is accepted (with its copies) and the others are ruled out.

        Source:
            Bogunovic et al. (2016), Algorithm 2, Eq. (5); accepting is ours.
        """
        M = sides.candidates
        if not bool(M.any()):
            return sides
        lower = torch.where(M, regions.lower, -torch.inf)
        best = int(lower.argmax())
        stays = M & (regions.upper >= lower[best])
        accepted = stays & (self.places == self.places[best])
        others = stays & ~accepted
        rivals = regions.upper[others] > lower[best] + self.epsilon
        if bool(rivals.any()):
            side = torch.full_like(sides.side, BELOW).masked_fill(stays, UNDECIDED)
            return replace(sides, side=side, candidates=stays)
        side = torch.full_like(sides.side, BELOW).masked_fill(accepted, ABOVE)
        return replace(sides, side=side, candidates=accepted)

    def against(self, sides: Sides, regions: Regions) -> Tensor:
        r"""``N`` bools: accepted but exceeded, or ruled out but better than all."""
        accepted = (sides.side == ABOVE) & (
            regions.upper + self.epsilon < regions.lower.max()
        )
        ruled_out = sides.side == BELOW
        others = torch.where(ruled_out, -torch.inf, regions.upper).max()
        return accepted | (ruled_out & (regions.lower > others))

    def level(self, mean: Tensor) -> float:
        r"""The largest posterior mean: what probabilities refer to."""
        return float(mean.max())

    def level_of(self, values: Tensor) -> float | None:
        r"""None: every value but the largest lies below the maximum."""
        return None

    @property
    def tolerance(self) -> float:
        r"""What an interval may be wider than its distance."""
        return self.epsilon / 2

    def distances(self, mean: Tensor) -> Tensor:
        r"""``N`` signed distances: half of what the best other point is away."""
        best = int(mean.argmax())
        copies = self.places == self.places[best]
        if bool(copies.all()):
            return torch.zeros_like(mean)
        rival = mean[~copies].max()
        return torch.where(copies, mean - rival, mean - mean[best]) / 2


Goal = ExplicitGoal | ImplicitGoal | MaximiserGoal
