r"""All that the measurements of a linear function say, in sums."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Evidence:
    r"""Weighted sums over all measurements; the rows are ``z = phi / sd``.

    Args:
        counts: ``N`` int64, how often each row was measured.
        V: ``h x h``, ``sum z z'``.
        moment: ``h x m``, ``sum z y / sd``.
        squares: ``m``, ``sum (y / sd)^2``, a mean of ``k`` counting ``k`` times.
        entries: How many values came.
    """

    counts: Tensor
    V: Tensor
    moment: Tensor
    squares: Tensor
    entries: int

    @classmethod
    def empty(cls, N: int, h: int, m: int) -> Evidence:
        r"""No measurement of ``N`` rows with ``h`` features and ``m`` outputs."""
        moment = torch.zeros(h, m, dtype=torch.float64)
        V = torch.zeros(h, h, dtype=torch.float64)
        counts = torch.zeros(N, dtype=torch.long)
        return cls(counts, V, moment, torch.zeros(m, dtype=torch.float64), 0)

    @classmethod
    def of(
        cls, Phi: Tensor, noise_var: Tensor, rows: Tensor, y: Tensor, each: Tensor
    ) -> Evidence:
        r"""From measurements.

        Args:
            Phi: ``N x h`` features.
            noise_var: ``N`` squared noise scales, fixed before these values were seen.
            rows: ``n`` rows measured.
            y: ``n x m`` values, some of them means.
            each: ``n``, how many measurements each value is the mean of.
        """
        weights = (each / noise_var[rows]).unsqueeze(-1)
        Z = Phi[rows]
        counts = torch.zeros(len(Phi), dtype=torch.long).index_add(0, rows, each)
        return cls(
            counts,
            (weights * Z).mT @ Z,
            Z.mT @ (weights * y),
            (weights * y.square()).sum(dim=0),
            len(rows),
        )

    def add(self, other: Evidence) -> Evidence:
        r"""Both."""
        return Evidence(
            self.counts + other.counts,
            self.V + other.V,
            self.moment + other.moment,
            self.squares + other.squares,
            self.entries + other.entries,
        )

    @property
    def n(self) -> int:
        r"""All measurements."""
        return int(self.counts.sum())
