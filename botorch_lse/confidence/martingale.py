r"""Widths that cost the number of targets instead of the rank."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.confidence.self_normalised import (
    FIRST_SCALE,
    LEVELS,
    RATIO,
    Information,
)


@dataclass(frozen=True, eq=False)
class BatchMartingale:
    r"""For each target the sum of its batch-wise estimates, weighted by precision.

    Inside batch ``r`` the rows are fixed beforehand, so least squares on that batch
    alone is off by a sub-Gaussian amount of known scale ``s_r(v) = |v|_{V_r^-1}``, and
    ``sum_r v'(theta_r - theta) / s_r^2`` is a martingale with the variance process
    ``S = sum_r 1 / s_r^2``. Divided by ``S`` it is the error of the precision-weighted
    mean of the estimates, bounded at all times by a mixture over Gaussian priors.

    Assumes what ``StitchedWidth`` does, and that the rows of a batch, with those of
    them that came back, were fixed before any of its values.

    Args:
        totals: ``T x m`` sums of ``v'theta_r / s_r^2``.
        precision: ``T`` sums ``S``; batches that do not determine a target add nothing.
        units: ``T`` squared norms ``v' W^-1 v``, the scale of ``1 / S``, fixed before
            the first measurement.

    Source:
        Own; the scalar bound is Robbins (1970), Abbasi-Yadkori et al. (2011), Theorem
        1, for one dimension, stitched over ``rho_k = 4 8^k / units``.
    """

    totals: Tensor
    precision: Tensor
    units: Tensor

    @classmethod
    def start(cls, vectors: Tensor, W: Tensor, m: int) -> BatchMartingale:
        r"""No batch yet; ``vectors`` are the ``T x h`` targets."""
        units = Information.of(W, W).squared_norms(vectors)
        return cls(vectors.new_zeros(len(vectors), m), torch.zeros_like(units), units)

    def add(
        self, vectors: Tensor, batch: Information, moment: Tensor
    ) -> BatchMartingale:
        r"""With one more batch.

        Args:
            vectors: The ``T x h`` targets.
            batch: ``V_r``, of this batch alone.
            moment: ``h x m``, ``sum z y / scale`` of this batch.
        """
        variance = batch.squared_norms(vectors)
        gain = torch.where(variance > 0, 1 / variance, 0.0)
        estimates = vectors @ batch.solve(moment)
        return BatchMartingale(
            self.totals + gain.unsqueeze(-1) * estimates,
            self.precision + gain,
            self.units,
        )

    @property
    def mean(self) -> Tensor:
        r"""``T x m`` precision-weighted means; 0 where nothing is known."""
        S = self.precision.unsqueeze(-1)
        return torch.where(S > 0, self.totals / S.clamp_min(_tiny(S)), 0.0)

    def squared(self, delta: float) -> Tensor:
        r"""``T`` squared half widths about ``mean``, each target at level ``delta``.

        ``(S + rho) log((S + rho) / (rho delta_k^2)) / S^2``, smallest over ``rho =
        rho_k``, with ``delta_k = delta / 10``.
        """
        S, known = self.precision, (self.precision > 0) & (self.units > 0)
        best = torch.full_like(S, torch.inf)
        share = 2 * math.log(LEVELS / delta)
        for k in range(LEVELS):
            rho = FIRST_SCALE * RATIO**k / self.units
            squared = (S + rho) * (torch.log1p(S / rho) + share)
            best = torch.minimum(best, squared)
        return torch.where(known, best / S.square().clamp_min(_tiny(S)), torch.inf)


def _tiny(values: Tensor) -> float:
    return torch.finfo(values.dtype).tiny
