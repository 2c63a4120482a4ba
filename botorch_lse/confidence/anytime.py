r"""Which anytime widths to use for a fixed list of targets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.confidence.martingale import BatchMartingale
from botorch_lse.confidence.self_normalised import Information, StitchedWidth

REFERENCE = 2.0**10
"""Measurements at which the two widths are compared beforehand."""
POOLING = 1.3
"""What the martingale's squared width loses because its batches differ, about."""


@dataclass(frozen=True, eq=False)
class AnytimeWidth:
    r"""The self-normalised width, with batch martingales beside it at high rank.

    The ellipsoid pays for the rank, the martingales for the logarithm of the number of
    targets. Where the second is expected to be narrower, both are used with half of
    ``delta`` and both intervals are intersected. Assumes what ``StitchedWidth`` and
    ``BatchMartingale`` do.

    Args:
        W: ``h x h``, a design's information, fixed before the first measurement.
        delta: The failure probability, all outputs and targets together.
        n_targets: The number of targets.
        m: The number of outputs; each has an equal share of ``delta``.
        batches: Whether batches determine all targets; else there are no martingales.
    """

    W: Tensor
    delta: float
    n_targets: int
    m: int = 1
    batches: bool = True

    @cached_property
    def uses_martingales(self) -> bool:
        r"""Decided from the rank and the number of targets alone."""
        if not self.batches:
            return False
        eye = torch.eye(len(self.W), dtype=self.W.dtype)
        information = Information.of(REFERENCE * eye, eye)
        one = eye[:1]
        ellipsoid = StitchedWidth(eye, self.delta / self.m).squared(information, one)
        scalar = BatchMartingale.start(one, eye, 1).add(one, information, one.mT)
        martingale = scalar.squared(self.delta / (2 * self.m * self.n_targets))
        return float(ellipsoid) > POOLING * float(martingale)

    def stitched(self) -> StitchedWidth:
        r"""The width of every direction, for one output."""
        share = 2 if self.uses_martingales else 1
        return StitchedWidth(self.W, self.delta / (share * self.m))

    @property
    def target_delta(self) -> float:
        r"""The martingale's share of one target and output."""
        return self.delta / (2 * self.m * self.n_targets)

    def interval(
        self,
        estimate: Tensor,
        squared: Tensor,
        martingale: BatchMartingale | None,
    ) -> tuple[Tensor, Tensor]:
        r"""``T x m`` lower and upper ends.

        Args:
            estimate: ``T x m``, least squares on all data.
            squared: ``T`` squared self-normalised widths.
            martingale: Of the same targets, or ``None``.
        """
        half = squared.sqrt().unsqueeze(-1)
        lower, upper = estimate - half, estimate + half
        if martingale is None:
            return lower, upper
        half = martingale.squared(self.target_delta).sqrt().unsqueeze(-1)
        mean = martingale.mean
        return torch.maximum(lower, mean - half), torch.minimum(upper, mean + half)


def oracle_factor(n_targets: int, delta: float) -> float:
    r"""``2 log(2 N / delta)``: the squared width of a union bound at one fixed time."""
    return 2 * math.log(2 * n_targets / delta)
