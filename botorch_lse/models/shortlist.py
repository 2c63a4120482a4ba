r"""Planned rows in a large pool: variances kept up to date on few rows only.

A row that is planned shrinks the variance of every row, at the price of its covariance
with every row. A rule whose scores fall as variances shrink need not pay that: the
scores from before are upper bounds, so that only rows whose bound is near the best
score have to be brought up to date (the lazy greedy algorithm of Minoux, 1978). What is
chosen is the same.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from botorch_lse.models.gaussian_process import PoolPosterior


class Shortlist:
    r"""The variances of a pool as planned rows leave them, exact on a list of rows.

    On other rows they are those from before anything was planned: never too small.

    Args:
        posterior: What is believed before.
        noise_var: ``N`` noise variances of new observations, units of ``y`` squared.
    """

    def __init__(self, posterior: PoolPosterior, noise_var: Tensor) -> None:
        self._posterior, self._noise_var = posterior, noise_var
        self._variance = posterior.variance.clone()
        self._rows = torch.empty(0, dtype=torch.long)
        self._path = posterior.path_at(self._rows)
        self._place = torch.full_like(posterior.variance, -1, dtype=torch.long)
        # Of each planned row: its number, the standard deviation of its measurement,
        # and what it takes off, as one more row of the path on the list.
        self._planned: list[tuple[int, Tensor]] = []
        self._taken = posterior.variance.new_empty(0, 0)

    @property
    def posterior(self) -> PoolPosterior:
        r"""The posterior with the planned variances, but its earlier covariances."""
        return replace(self._posterior, variance=self._variance)

    @property
    def is_listed(self) -> Tensor:
        r"""Whether the variance of a row is exact, as it is listed (``N`` bools)."""
        return self._place >= 0

    def bytes_with(self, more: int, size: int) -> int:
        r"""The bytes of the list with ``more`` rows and ``size`` planned ones."""
        # Twice: a list that grows is copied.
        width = self._path.shape[1] + size
        return 2 * self._variance.element_size() * (len(self._rows) + more) * width

    def add(self, rows: Tensor) -> None:
        r"""Bring the variances of further rows up to date.

        Args:
            rows: Rows that are not on the list.
        """
        path = self._posterior.path_at(rows)
        taken = path.new_empty(len(self._planned), len(rows))
        for i, (row, deviation) in enumerate(self._planned):
            place = self._place[row]
            left = self._posterior.prior_covariance(torch.tensor([row]), rows)[0]
            left = left - path @ self._path[place]
            taken[i] = (left - self._taken[:i, place] @ taken[:i]) / deviation
        variance = self._variance[rows] - taken.square().sum(dim=0)
        self._variance = self._variance.index_copy(0, rows, variance.clamp_min(0.0))
        self._place[rows] = torch.arange(len(rows)) + len(self._rows)
        self._rows = torch.cat((self._rows, rows))
        self._path = torch.cat((self._path, path))
        self._taken = torch.cat((self._taken, taken), dim=1)

    def plan(self, row: int) -> None:
        r"""Shrink the variances of the list by a measurement of one of its rows.

        Args:
            row: A row of the pool that is on the list.
        """
        place = self._place[row]
        left = self._posterior.prior_covariance(torch.tensor([row]), self._rows)[0]
        left = left - self._path @ self._path[place]
        left = left - self._taken[:, place] @ self._taken
        # As `PoolPosterior.expect`: rounding may leave a known row less than nothing.
        noise = torch.maximum(self._posterior.least_noise, self._noise_var[row])
        deviation = (left[place].clamp_min(0.0) + noise).sqrt()
        taken = left / deviation
        variance = self._variance[self._rows] - taken.square()
        self._variance = self._variance.index_copy(
            0, self._rows, variance.clamp_min(0.0)
        )
        self._planned.append((row, deviation))
        self._taken = torch.cat((self._taken, taken.unsqueeze(0)))
