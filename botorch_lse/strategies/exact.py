r"""Rows that are known exactly are not measured again."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.functional.jitter import JITTER


@dataclass(frozen=True)
class Exactness:
    r"""Which measurements of one output count as exact.

    Args:
        least: Noise variances up to this count as none, units of ``y`` squared.
        noise: ``N`` noise variances of measurements to come; ``None`` while nobody
            knows them.
    """

    least: float
    noise: Tensor | None

    def of_rows(self, n_rows: int) -> Tensor:
        r"""``n_rows`` bools: the next measurement of the row is exact."""
        if self.noise is None:
            return torch.zeros(n_rows, dtype=torch.bool)
        return self.noise[:n_rows] <= self.least

    def of_told(self, indices: Tensor, yvar: Tensor | None) -> Tensor:
        r"""``n`` bools: this measurement was exact.

        Args:
            indices: ``n`` rows.
            yvar: Their noise variances, if they were told.
        """
        if yvar is not None:
            return yvar <= self.least
        return self.of_rows(int(indices.max()) + 1 if len(indices) else 0)[indices]


def least_of_values(y: Tensor) -> float:
    r"""What counts as no noise while no model says how much the function varies."""
    return JITTER * float(y.var(correction=0)) if len(y) else 0.0


def repeats_left(left: Tensor, exact: Tensor, known: Tensor, places: Tensor) -> Tensor:
    r"""How often rows may still be measured if nothing known is measured again.

    Args:
        left: ``N`` counts as ``max_repeats`` leaves them.
        exact: ``N`` bools: the next measurement is exact.
        known: Rows measured exactly, or out to be.
        places: ``N`` numbers, equal for rows that are one point.
    """
    # Of several exact copies of a point one is enough: the first.
    copies = torch.where(exact, torch.arange(len(left)), len(left))
    first = torch.full_like(places, len(left)).scatter_reduce(0, places, copies, "amin")
    is_first = first[places] == torch.arange(len(left))
    left = torch.where(exact, left.clamp_max(1) * is_first, left)
    return left.masked_fill(torch.isin(places, places[known]), 0)
