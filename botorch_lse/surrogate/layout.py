r"""What a row of the pool measures: all outputs of a candidate, or one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import OUTPUT, Pool
from botorch_lse.models.correlated import covariance_between
from botorch_lse.models.gaussian_process import PoolPosterior


@dataclass(frozen=True, eq=False)
class Layout:
    r"""What the rows of a pool measure: here each all outputs of one candidate.

    Args:
        pool: The rows that can be measured.
        n_outputs: ``M``.
    """

    pool: Pool
    n_outputs: int = 1

    @property
    def is_together(self) -> bool:
        r"""Whether a measurement has all outputs."""
        return True

    @property
    def names(self) -> tuple[str, ...]:
        r"""The names of the outputs, where the pool knows them; else nothing."""
        return ()

    @property
    def n_each(self) -> int:
        r"""How many measurements give all outputs of a candidate."""
        return 1

    @property
    def candidates(self) -> Pool:
        r"""The pool whose rows are decided about."""
        return self.pool

    def candidates_of(self, output: int) -> Pool:
        r"""The candidates, with the noise that is known of an output."""
        return self.candidates

    # --- rows and candidates ----------------------------------------------------------

    def at(self, rows: Tensor) -> Tensor:
        r"""The candidates that rows measure."""
        return rows

    def rows_of(self, output: int, candidates: Tensor) -> Tensor:
        r"""The rows that measure an output of candidates."""
        return candidates

    def by_row(self, of_candidates: Tensor) -> Tensor:
        r"""What is said of each candidate, for the rows that measure it."""
        return of_candidates

    def split(self, rows: Tensor) -> list[Tensor]:
        r"""For each output the candidates that rows measure."""
        return [rows] * self.n_outputs

    def rows(self, each: Sequence[Tensor]) -> Tensor:
        r"""The rows of candidates given by output: the inverse of ``split``."""
        return each[0]

    # --- numbers of each output -------------------------------------------------------

    def values(self, each: Sequence[Tensor]) -> Tensor:
        r"""By row the numbers of each output; of the first where a row has all."""
        return each[0]

    def merged(self, each: Sequence[Tensor], how: Callable[[Tensor], Tensor]) -> Tensor:
        r"""One number by row, made of those of the outputs that it measures.

        Args:
            each: For each output a number of each candidate.
            how: From the stack of several outputs to one number for each candidate.
        """
        return how(torch.stack(list(each)))

    def per_cost(self, scores: Tensor) -> Tensor:
        r"""Scores by row, divided by what outputs that differ in price cost."""
        return scores

    # --- measurements -----------------------------------------------------------------

    def at_candidates(self, data: Observations) -> Observations:
        r"""The measurements at rows of the candidates, for tables and pictures."""
        return data

    def by_output(self, data: Observations) -> list[Observations]:
        r"""The measurements of each output, at rows of the candidates."""
        if data.y.ndim == 1:  # of one output, or empty
            return [data] * self.n_outputs
        return [data.output(c) for c in range(self.n_outputs)]

    def places(self, rows: Tensor, output: int) -> Tensor:
        r"""The places among rows of those that measure an output."""
        return torch.arange(len(rows))

    def of_row(self, row: int | None, each: Sequence[Any]) -> tuple[Any, ...] | None:
        r"""Of one entry for each output those that a row measures.

        Args:
            row: The row; ``None``: a point that is no row.
            each: ``M`` entries.
        """
        return tuple(each)


@dataclass(frozen=True, eq=False)
class OneOutputEach(Layout):
    r"""The rows of a pool from ``Pool.at_outputs``: each measures one output.

    Row ``j N + i`` measures output ``j`` of candidate ``i``.
    """

    @property
    def is_together(self) -> bool:
        r"""No: a measurement has one output."""
        return False

    @property
    def names(self) -> tuple[str, ...]:
        r"""The names of the outputs in the pool's table."""
        if self.pool.table is None:
            return tuple(str(j) for j in range(self.n_outputs))
        outputs = self.pool.table[OUTPUT].iloc[:: self._n_candidates]
        return tuple(str(name) for name in outputs)

    @property
    def n_each(self) -> int:
        r"""One measurement for each output."""
        return self.n_outputs

    @property
    def _n_candidates(self) -> int:
        return len(self.pool) // self.n_outputs

    @cached_property
    def candidates(self) -> Pool:
        r"""The pool whose rows are decided about."""
        pool, N, table = self.pool, self._n_candidates, self.pool.table
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

    def at(self, rows: Tensor) -> Tensor:
        r"""The candidates that rows measure."""
        return rows % self._n_candidates

    def rows_of(self, output: int, candidates: Tensor) -> Tensor:
        r"""The rows that measure an output of candidates."""
        return candidates + output * self._n_candidates

    def by_row(self, of_candidates: Tensor) -> Tensor:
        r"""What is said of each candidate, once for each output."""
        return of_candidates.repeat(self.n_outputs)

    def split(self, rows: Tensor) -> list[Tensor]:
        r"""For each output the candidates of which rows measure it."""
        output = rows // self._n_candidates
        return [self.at(rows[output == j]) for j in range(self.n_outputs)]

    def rows(self, each: Sequence[Tensor]) -> Tensor:
        r"""The rows of candidates that are given by output."""
        return torch.cat([self.rows_of(j, own) for j, own in enumerate(each)])

    def values(self, each: Sequence[Tensor]) -> Tensor:
        r"""By row the number of the output that it measures."""
        return torch.cat(list(each))

    def merged(self, each: Sequence[Tensor], how: Callable[[Tensor], Tensor]) -> Tensor:
        r"""By row the number of the output that it measures."""
        return self.values(each)

    def per_cost(self, scores: Tensor) -> Tensor:
        r"""Scores by row, divided by the costs of the rows."""
        costs = self.pool.costs
        if costs is None:
            return scores
        # What is worth less than nothing is not made better by a high cost.
        return torch.where(scores > 0, scores / costs, scores * costs)

    def at_candidates(self, data: Observations) -> Observations:
        r"""The measurements at rows of the candidates, for tables and pictures."""
        return replace(data, indices=self.at(data.indices))

    def by_output(self, data: Observations) -> list[Observations]:
        r"""The measurements of each output, at rows of the candidates."""
        found = []
        for j in range(self.n_outputs):
            own = data.select(self.places(data.indices, j))
            found.append(self.at_candidates(own))
        return found

    def places(self, rows: Tensor, output: int) -> Tensor:
        r"""The places among rows of those that measure an output."""
        return (rows // self._n_candidates == output).nonzero().view(-1)

    def of_row(self, row: int | None, each: Sequence[Any]) -> tuple[Any, ...] | None:
        r"""The entry of the output that a row measures; unknown without a row."""
        return None if row is None else (each[row // self._n_candidates],)


@dataclass(frozen=True, eq=False)
class PairCovariances:
    r"""Posterior covariances between pairs of a candidate and an output, for planners.

    Args:
        layout: How rows are pairs.
        posteriors: One per output.
    """

    layout: Layout
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
        layout = self.layout
        for j, one in enumerate(self.posteriors):
            here = layout.places(rows, j)
            for k, other in enumerate(self.posteriors):
                there = layout.places(columns, k)
                if not (len(here) and len(there)):
                    continue
                at = layout.at(rows[here]), layout.at(columns[there])
                if j == k:
                    part = one.covariance_between(*at)
                elif one.is_correlated:
                    part = covariance_between(one, at[0], other, at[1])
                else:
                    continue
                found[here.unsqueeze(-1), there] = part
        return found
