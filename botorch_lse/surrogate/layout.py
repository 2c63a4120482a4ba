r"""Measurements of one output each: rows are pairs of a candidate and an output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import OUTPUT, Pool
from botorch_lse.models.correlated import covariance_between
from botorch_lse.models.gaussian_process import PoolPosterior


@dataclass(frozen=True, eq=False)
class Assays:
    r"""How the rows of a pool from ``Pool.at_outputs`` are pairs.

    Row ``j N + i`` measures output ``j`` of candidate ``i``.

    Args:
        pool: The rows, output by output.
        n_outputs: ``M``.
    """

    pool: Pool
    n_outputs: int

    @property
    def names(self) -> tuple[str, ...]:
        r"""The names of the outputs in the pool's table."""
        if self.pool.table is None:
            return tuple(str(j) for j in range(self.n_outputs))
        return tuple(str(name) for name in self.pool.table[OUTPUT].iloc[:: len(self)])

    def __len__(self) -> int:
        r"""The number of candidates."""
        return len(self.pool) // self.n_outputs

    @cached_property
    def candidates(self) -> Pool:
        r"""The pool whose rows are decided about."""
        pool, N, table = self.pool, len(self), self.pool.table
        return Pool(
            pool.X[:N, :-1],
            names=(pool.names or ())[:-1],
            table=None if table is None else table.iloc[:N].drop(columns=OUTPUT),
            weights=None if pool.weights is None else pool.weights[:N],
            total=None if pool.total is None else pool.total / self.n_outputs,
            is_sample=pool.is_sample,
        )

    def candidates_of(self, output: int) -> Pool:
        r"""The candidates, with the noise that is known of an output."""
        if self.pool.noise_var is None:
            return self.candidates
        noise = self.pool.noise_var.view(self.n_outputs, -1)[output]
        return replace(self.candidates, noise_var=noise)

    def split(self, rows: Tensor) -> list[Tensor]:
        r"""The candidates of some rows, by output."""
        output = rows // len(self)
        return [rows[output == j] % len(self) for j in range(self.n_outputs)]

    def joined(self, rows: Sequence[Tensor]) -> Tensor:
        r"""The rows of candidates that are given by output."""
        return torch.cat([own + j * len(self) for j, own in enumerate(rows)])

    def at_candidates(self, data: Observations) -> Observations:
        r"""The measurements at rows of the candidates, for tables and pictures."""
        return replace(data, indices=data.indices % len(self))

    def by_output(self, data: Observations) -> list[Observations]:
        r"""The measurements of each output, at rows of the candidates."""
        output, found = data.indices // len(self), []
        for j in range(self.n_outputs):
            own = data.select((output == j).nonzero().view(-1))
            found.append(self.at_candidates(own))
        return found


@dataclass(frozen=True, eq=False)
class PairCovariances:
    r"""Posterior covariances between pairs of a candidate and an output, for planners.

    Args:
        assays: How rows are pairs.
        posteriors: One per output.
    """

    assays: Assays
    posteriors: tuple[PoolPosterior, ...]

    @cached_property
    def variance(self) -> Tensor:
        r"""The variance of each pair before the batch."""
        return torch.cat([p.variance for p in self.posteriors])

    @property
    def scale(self) -> float:
        r"""The largest prior deviation of an output."""
        return max(p.scale for p in self.posteriors)

    @property
    def memory_budget(self) -> int:
        r"""Bytes for arrays over the pool."""
        return self.posteriors[0].memory_budget

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances before the batch between pairs, given by their numbers."""
        every = torch.arange(len(self.variance))
        rows, columns = every[rows], every[columns]
        found = self.variance.new_zeros(len(rows), len(columns))
        N = len(self.assays)
        for j, one in enumerate(self.posteriors):
            here = (rows // N == j).nonzero().view(-1)
            for k, other in enumerate(self.posteriors):
                there = (columns // N == k).nonzero().view(-1)
                if not (len(here) and len(there)):
                    continue
                at = rows[here] % N, columns[there] % N
                if j == k:
                    part = one.covariance_between(*at)
                elif one.is_correlated:
                    part = covariance_between(one, at[0], other, at[1])
                else:
                    continue
                found[here.unsqueeze(-1), there] = part
        return found
