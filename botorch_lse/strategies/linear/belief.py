r"""What a linear strategy derived from its data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.confidence.classify import BELOW, UNDECIDED
from botorch_lse.confidence.martingale import BatchMartingale
from botorch_lse.confidence.self_normalised import Information, StitchedWidth
from botorch_lse.strategies.linear.evidence import Evidence


@dataclass(frozen=True, eq=False)
class LinearBelief:
    r"""Where the run stands; ``T`` items, ``m`` outputs, ``h`` features.

    Args:
        evidence: The sums of all measurements.
        noise_var: ``N`` squared noise scales of the measurements that come.
        Z: ``T x h`` features of the items.
        side: ``T`` codes.
        lower: ``T x m``, the largest lower ends so far, units of ``y``; where intervals
            contradict each other, those of the current ones.
        upper: ``T x m``, the smallest upper ends so far, likewise.
        information: ``V`` seen from the first design.
        width: The width of all directions.
        martingale: The items' batch estimates, where they are used.
        candidates: ``T`` bools: items that may be the maximiser.
        margins: ``T x 3``: for several outputs how far an item is from being
            dominated, the width of this, and its standard deviation.
        contradicted: ``T x m`` bools: intervals that have nothing in common.
        alarm: The first sign that the noise is not what was stated, as a clause;
            ``None`` if there was none.
    """

    evidence: Evidence
    noise_var: Tensor
    Z: Tensor
    side: Tensor
    lower: Tensor
    upper: Tensor
    information: Information
    width: StitchedWidth
    martingale: BatchMartingale | None
    candidates: Tensor
    margins: Tensor
    contradicted: Tensor
    alarm: str | None

    def reopened(self) -> LinearBelief:
        r"""The same estimates with nothing decided."""
        side = torch.full_like(self.side, UNDECIDED)
        return replace(self, side=side, candidates=side == UNDECIDED)

    @cached_property
    def theta(self) -> Tensor:
        r"""``h x m`` least squares on all measurements."""
        return self.information.solve(self.evidence.moment)

    @cached_property
    def mean(self) -> Tensor:
        r"""``T x m`` estimates, units of ``y``."""
        return self.Z @ self.theta

    @cached_property
    def sigma(self) -> Tensor:
        r"""``T`` standard deviations; infinite where an item is not determined."""
        return self.information.squared_norms(self.Z).sqrt()

    @cached_property
    def open(self) -> Tensor:
        r"""The undecided items' numbers, ascending."""
        return (self.side == UNDECIDED).nonzero().view(-1)

    @cached_property
    def left(self) -> Tensor:
        r"""The numbers of the items that are not below."""
        return (self.side != BELOW).nonzero().view(-1)

    def pair_widths(self, i: Tensor, j: Tensor, factor: float) -> Tensor:
        r"""``len(i) x len(j)`` widths of ``f(i) - factor f(j)``."""
        first, second = self.Z[i], factor * self.Z[j]
        return self.width.squared_differences(self.information, first, second).sqrt()


@dataclass(frozen=True, eq=False)
class Questions:
    r"""What is undecided, as directions with the gaps that decide them.

    Args:
        vectors: ``Q x h`` directions.
        gaps: ``Q`` estimated distances from being decided the other way, at least 0,
            units of ``y``; ``None``: nothing is known yet.
    """

    vectors: Tensor
    gaps: Tensor | None = None
