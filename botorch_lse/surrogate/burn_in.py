r"""The burn-in: initial rounds of fixed size that measure the noise.

H-RAGE (Weltz et al. 2023) needs the noise variance of every row. Its burn-in has two
stages: the first estimates the mean, the second the variances, from residuals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.data.observations import Observations
from botorch_lse.designs import round_design
from botorch_lse.designs.basis import spanning_rows
from botorch_lse.estimators import ArmStatistics, head_designs, head_from_arms
from botorch_lse.estimators.variance import quadratic_features

PER_DIRECTION = 20
"""The default burn-in's measurements per dimension of the quadratic features.
Half of them estimate the variances; the standard error at the worst row is then at most
``sqrt(2 / 10) = 0.45`` of the largest variance, enough to tell loud rows from quiet."""


@dataclass(frozen=True, eq=False)
class BurnInData:
    r"""The measurements of the burn-in.

    Args:
        first: The first stage, for the mean.
        second: The second stage, for the variances.
        variances: ``N`` noise variances; ``None`` before both stages are complete.
    """

    first: ArmStatistics
    second: ArmStatistics
    variances: Tensor | None = None

    @classmethod
    def empty(cls, N: int) -> BurnInData:
        r"""The data before the first measurement of the burn-in, for ``N`` rows."""
        return cls(ArmStatistics.empty(N), ArmStatistics.empty(N))

    @property
    def n(self) -> int:
        r"""The number of measurements made in both stages."""
        return self.first.n + self.second.n

    @property
    def lasts(self) -> bool:
        r"""Whether the burn-in goes on: the variances are not estimated yet."""
        return self.variances is None

    def counts(self, stage: int) -> Tensor:
        r"""The number of measurements of each row in stage 0 or 1 (``N``)."""
        return (self.first, self.second)[stage].counts

    def add(self, stage: int, new: Observations) -> BurnInData:
        r"""The data with more measurements of stage 0 or 1."""
        arms = ArmStatistics.of_observations(new, len(self.first.counts))
        if stage == 0:
            return replace(self, first=self.first.merge(arms))
        return replace(self, second=self.second.merge(arms))


@dataclass(frozen=True, eq=False)
class BurnIn:
    r"""The plan of HEAD's two stages, in rounds of equal size within one stage.

    Args:
        Phi: ``N x m`` features.
        bounds: The least and the largest variance.
        batch_size: Measurements per round.
        size: Measurements in all, rounded up to two stages of whole rounds; default
            ``PER_DIRECTION`` per dimension of the quadratic features.

    Raises:
        ValueError: If ``size`` is too small for one of the designs.

    Source:
        Weltz et al. (2023), Algorithm 1.
    """

    Phi: Tensor
    bounds: tuple[float, float]
    batch_size: int
    size: int | None = None

    @cached_property
    def stages(self) -> tuple[Tensor, Tensor]:
        r"""The number of measurements of each row in each stage (``N`` per stage)."""
        designs = head_designs(self.Phi)
        least = designs.least
        size = self.size
        if size is None:
            rank = spanning_rows(quadratic_features(self.Phi)).numel()
            size = max(PER_DIRECTION * rank, least)
        if size < least:
            raise ValueError(
                f"Expected `burn_in` of at least {least}, twice the rows of the larger "
                f"design, but got {size}."
            )
        rounds = math.ceil(size / (2 * self.batch_size))
        return designs.counts(2 * rounds * self.batch_size)

    @property
    def n(self) -> int:
        r"""The number of measurements planned for both stages."""
        return sum(int(stage.sum()) for stage in self.stages)

    def _stage(self, data: BurnInData) -> int:
        r"""The current stage: 0 while the first one needs measurements, else 1."""
        return int(data.first.n >= int(self.stages[0].sum()))

    def after(self, data: BurnInData, new: Observations) -> BurnInData:
        r"""The data after one more complete round; the last round adds the variances.

        Args:
            data: What was measured before.
            new: The round.
        """
        stage = self._stage(data)
        data = data.add(stage, new)
        if stage == 0 or data.second.n < int(self.stages[1].sum()):
            return data
        found = head_from_arms(self.Phi, data.first, data.second, self.bounds)
        return replace(data, variances=found.variances)

    def plan(self, data: BurnInData, size: int, left: Tensor, out: Tensor) -> Tensor:
        r"""The next round: a share of what the stage still needs (``N`` counts).

        Args:
            data: The measurements.
            size: Measurements to place.
            left: ``N``, how often each row may still be measured.
            out: Rows that are being measured.

        Returns:
            Counts that sum to ``size``, or less if no row is left. Where a row may not
            be repeated, or others were measured meanwhile, the stage's own weights
            and then all rows fill the round.
        """
        number = self._stage(data)
        stage, out = self.stages[number], torch.bincount(out, minlength=len(left))
        missing = (stage - data.counts(number) - out).clamp_min(0)
        counts = _share(missing, size, torch.minimum(missing, left))
        for wanted in (stage, torch.ones_like(stage)):
            counts = counts + _share(wanted, size - int(counts.sum()), left - counts)
        return counts


def _share(wanted: Tensor, size: int, room: Tensor) -> Tensor:
    r"""Whole counts in the proportions ``wanted``, none above ``room`` (``N``).

    Args:
        wanted: ``N`` counts whose proportions are wanted.
        size: The sum of the counts; they sum to less if there is no more room.
        room: ``N``, how often each row may be measured at most.
    """
    counts = torch.zeros_like(wanted)
    while size > 0 and bool(((wanted > 0) & (room > 0)).any()):
        weights = (wanted * (room > 0)).double()
        most = min(size, int(room[weights > 0].clamp_max(size).sum()))
        new = round_design(weights / weights.sum(), most, "quota")
        new = torch.minimum(new, room)
        counts, room, size = counts + new, room - new, size - int(new.sum())
    return counts
