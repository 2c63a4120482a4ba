r"""Layouts: the outputs that a measurement of a pool's row reveals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import OUTPUT, Pool
from botorch_lse.models.correlated import covariance_between
from botorch_lse.models.gaussian_process import PoolPosterior

LEAST_COST = 0.01
"""The least cost of a measurement that a rule counts, as a share of the target's.
A source that is a thousand times cheaper would win every comparison per cost until
nothing is left to learn from it, and each of its measurements takes a decision."""
MOST_IN_A_ROW = 20
"""The largest number of measurements of other sources between two of the target.
Few values of the target do not tell a useful source from a useless one, which would be
asked until all is known of it."""
FIRST_AT_TARGET, LEAST_AT_TARGET = 6, 4
"""The number of initial rows at the target, and the least number at any source.
Of more than five inputs the target has one for each and one more. Alone it would have
more (``FIRST_ALONE`` for each input, and two): these teach how the sources differ, and
where the level may be the others show."""
FIRST_AT_SOURCES, FIRST_ALONE, FIRST_COST = 10, 2, 0.2
"""The limits of initial rows at any other source than the target.
The largest number for each input, and what these may cost, as a share of what those of
a target alone would. A source that turns out to tell nothing has then cost little, and
the rule asks one that tells again. At a fifth of the target's cost it is a row for each
of a target alone: fewer show no correlation."""
SHARE_FIRST = 0.25
"""The largest share of a small pool that is measured before the rule takes over."""
MOST_FIRST_INPUTS = 10
"""The largest number of inputs that count for these numbers.
Of a thousand bits of fingerprints few are free; 100 rows do not fill ten inputs."""


@dataclass(frozen=True, eq=False)
class Layout:
    r"""The layout of a pool each of whose rows measures all outputs of a candidate.

    Args:
        pool: The rows that can be measured.
        n_outputs: ``M``.
    """

    pool: Pool
    n_outputs: int = 1

    decides_output: ClassVar[str] = "the `goal`"
    """The argument that says of which output a single value is, for messages."""

    @property
    def names(self) -> tuple[str, ...]:
        r"""The names of the outputs where the pool knows them, else empty."""
        return ()

    @property
    def n_each(self) -> int:
        r"""The number of measurements that give all outputs of a candidate."""
        return 1

    @property
    def takes_history(self) -> bool:
        r"""Whether measurements of any points can be told, which have all outputs."""
        return True

    @property
    def candidates(self) -> Pool:
        r"""The rows at which the posteriors are computed."""
        return self.pool

    @property
    def items(self) -> Pool:
        r"""The pool whose rows are decided."""
        return self.candidates

    @property
    def decided(self) -> slice:
        r"""The candidates that are decided."""
        return slice(None)

    def candidates_of(self, output: int) -> Pool:
        r"""The candidates, with the known noise of one output."""
        return self.candidates

    # --- rows and candidates ----------------------------------------------------------

    def at(self, rows: Tensor) -> Tensor:
        r"""The candidates that rows measure."""
        return rows

    def rows_of(self, output: int, candidates: Tensor) -> Tensor:
        r"""The rows that measure an output of candidates."""
        return candidates

    def by_row(self, of_candidates: Tensor) -> Tensor:
        r"""The numbers of candidates, given to the rows that measure them."""
        return of_candidates

    def split(self, rows: Tensor) -> list[Tensor]:
        r"""The candidates that rows measure, output by output."""
        return [rows] * self.n_outputs

    def rows(self, each: Sequence[Tensor]) -> Tensor:
        r"""The rows of candidates given by output: the inverse of ``split``."""
        return each[0]

    def groups(self, rows: Tensor) -> list[tuple[Tensor, Tensor, Sequence[int]]]:
        r"""The rows in groups that measure the same outputs.

        Returns:
            For each group the positions among the rows, the candidates measured there,
            and the outputs.
        """
        return [(torch.arange(len(rows)), rows, range(self.n_outputs))]

    def revealed(self, output: int) -> Sequence[int]:
        r"""The outputs that a measurement of an output reveals."""
        return range(self.n_outputs)

    # --- sources ----------------------------------------------------------------------

    @property
    def has_sources(self) -> bool:
        r"""Whether most rows are measured only for what they tell of others."""
        return False

    @property
    def first_of_sources(self) -> tuple[int, ...]:
        r"""The sizes of the initial design at each source; empty without sources."""
        return ()

    def with_target(self, X: Tensor) -> Tensor:
        r"""The points of the posterior for ``M x d`` points of the function."""
        return X

    def of_target(self, data: Observations) -> Observations:
        r"""The measurements of what is decided, without those of other sources."""
        return data

    def charged(self, costs: Tensor, rows: Tensor) -> Tensor:
        r"""The costs by which a rule divides what rows tell.

        Args:
            costs: ``C`` costs of rows.
            rows: ``C`` rows.
        """
        return costs

    # --- numbers of each output -------------------------------------------------------

    def at_rows(self, each: Sequence[Tensor], rows: Tensor) -> Tensor:
        r"""The numbers of measurements: one for each value that rows give (``n x m``).

        Args:
            each: For each output a number of each candidate.
            rows: ``n`` rows.
        """
        return torch.stack([own[rows] for own in each], dim=-1)

    def values(self, each: Sequence[Tensor]) -> Tensor:
        r"""The numbers by row: of the row's own output, or of the first output."""
        return each[0]

    def merged(self, each: Sequence[Tensor], how: Callable[[Tensor], Tensor]) -> Tensor:
        r"""One number by row, merged from the outputs that it measures.

        Args:
            each: For each output a number of each candidate.
            how: From the stack of several outputs to one number for each candidate.
        """
        return how(torch.stack(list(each)))

    def per_cost(self, scores: Tensor) -> Tensor:
        r"""The scores by row per cost, where outputs differ in price."""
        return scores

    def largest(self, outputs: Sequence[int], scores: Sequence[Tensor]) -> Tensor:
        r"""The largest score of each row among those of the outputs that it measures.

        Args:
            outputs: The output that each of the scores is about.
            scores: For each of them ``N`` scores of candidates.
        """
        return scores[0] if len(scores) == 1 else torch.stack(list(scores)).amax(dim=0)

    def scores_by_row(self, scores: Tensor) -> Tensor:
        r"""The scores by row, where a rule may have given them by candidate."""
        return scores

    # --- posteriors -------------------------------------------------------------------

    def located(
        self, fits: Sequence[PoolPosterior], noise: Sequence[Tensor], rows: Tensor
    ) -> tuple[PoolPosterior, ...]:
        r"""The unfitted processes, knowing which rows were measured but no values.

        Args:
            fits: One per output, all of them equal.
            noise: For each output the noise variances of new values.
            rows: The rows that were measured.
        """
        return (_located(fits[0], noise[0], rows),) * self.n_outputs

    def to_improve(
        self,
        posteriors: Sequence[PoolPosterior],
        noise: Sequence[Tensor],
        each: Sequence[Tensor],
    ) -> list[Improvement]:
        r"""The planning problems: one per output, about which each measurement tells.

        Args:
            posteriors: One per output.
            noise: For each output the noise variances of new values.
            each: For each output the candidates that a batch is to predict.
        """
        parts = zip(posteriors, noise, each, strict=True)
        return [
            (posterior, noise_var.contiguous(), rows, [j])
            for j, (posterior, noise_var, rows) in enumerate(parts)
        ]

    # --- measurements -----------------------------------------------------------------

    def at_candidates(self, data: Observations) -> Observations:
        r"""The measurements at rows of the candidates, for tables and pictures."""
        return data

    def by_output(self, data: Observations) -> list[Observations]:
        r"""The measurements of each output, at rows of the candidates."""
        if data.y.ndim == 1:  # of one output, or empty
            return [data] * self.n_outputs
        return [data.output(c) for c in range(self.n_outputs)]

    def joined(self, data: Observations, each: Sequence[Tensor]) -> Tensor:
        r"""The numbers of measurements, from those of each output (as ``data.y``)."""
        return torch.stack(list(each), dim=-1).view(data.y.shape)

    def places(self, rows: Tensor, output: int) -> Tensor:
        r"""The positions, among some rows, of those that measure an output."""
        return torch.arange(len(rows))

    def of_row(self, row: int | None, each: Sequence[Any]) -> tuple[Any, ...] | None:
        r"""The entries, one per output, that belong to a row.

        Args:
            row: The row; ``None``: a point that is no row.
            each: ``M`` entries.
        """
        return tuple(each)


@dataclass(frozen=True, eq=False)
class OneOutputEach(Layout):
    r"""The layout of a pool from ``Pool.at_outputs``: each row measures one output.

    Row ``j N + i`` measures output ``j`` of candidate ``i``.
    """

    decides_output = "each row of the `pool`"

    @property
    def names(self) -> tuple[str, ...]:
        r"""The names of the outputs in the pool's table."""
        if self.pool.table is None:
            return tuple(str(j) for j in range(self.n_outputs))
        outputs = self.pool.table[OUTPUT].iloc[:: self._n_candidates]
        return tuple(str(name) for name in outputs)

    @property
    def n_each(self) -> int:
        r"""The number of outputs: each needs a measurement of its own."""
        return self.n_outputs

    @property
    def takes_history(self) -> bool:
        r"""Whether measurements of any points can be told: their output is not."""
        return False

    @property
    def _n_candidates(self) -> int:
        return len(self.pool) // self.n_outputs

    @cached_property
    def candidates(self) -> Pool:
        r"""The pool whose rows are decided, without the column of outputs."""
        return self.pool.once(self.n_outputs)

    def candidates_of(self, output: int) -> Pool:
        r"""The candidates, with the known noise of one output."""
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
        r"""The numbers of candidates, once for each output."""
        return of_candidates.repeat(self.n_outputs)

    def split(self, rows: Tensor) -> list[Tensor]:
        r"""The candidates whose rows measure an output, output by output."""
        output = rows // self._n_candidates
        return [self.at(rows[output == j]) for j in range(self.n_outputs)]

    def rows(self, each: Sequence[Tensor]) -> Tensor:
        r"""The rows of candidates that are given by output."""
        return torch.cat([self.rows_of(j, own) for j, own in enumerate(each)])

    def revealed(self, output: int) -> Sequence[int]:
        r"""The outputs that a measurement of an output reveals: itself alone."""
        return (output,)

    def groups(self, rows: Tensor) -> list[tuple[Tensor, Tensor, Sequence[int]]]:
        r"""The rows in groups that measure the same output; see ``Layout``."""
        places = [self.places(rows, j) for j in range(self.n_outputs)]
        return [(at, self.at(rows[at]), (j,)) for j, at in enumerate(places)]

    def located(
        self, fits: Sequence[PoolPosterior], noise: Sequence[Tensor], rows: Tensor
    ) -> tuple[PoolPosterior, ...]:
        r"""The unfitted processes, each knowing which of its rows were measured."""
        parts = zip(fits, noise, self.split(rows), strict=True)
        return tuple(_located(*own) for own in parts)

    def to_improve(
        self,
        posteriors: Sequence[PoolPosterior],
        noise: Sequence[Tensor],
        each: Sequence[Tensor],
    ) -> list[Improvement]:
        r"""The planning problem, a single one: pairs of a candidate and an output."""
        pairs = PairCovariances(self, tuple(posteriors))
        outputs = list(range(self.n_outputs))
        return [(pairs, self.values(noise), self.rows(each), outputs)]

    def at_rows(self, each: Sequence[Tensor], rows: Tensor) -> Tensor:
        r"""The numbers of measurements: of each row that of its output (``n x 1``)."""
        return self.values(each)[rows].unsqueeze(-1)

    def values(self, each: Sequence[Tensor]) -> Tensor:
        r"""The number, by row, of the output that it measures."""
        return torch.cat(list(each))

    def merged(self, each: Sequence[Tensor], how: Callable[[Tensor], Tensor]) -> Tensor:
        r"""The number, by row, of the output that it measures."""
        return self.values(each)

    def per_cost(self, scores: Tensor) -> Tensor:
        r"""The scores by row, divided by the costs of the rows."""
        costs = self.pool.costs
        if costs is None:
            return scores
        # What is worth less than nothing is not made better by a high cost.
        return torch.where(scores > 0, scores / costs, scores * costs)

    def largest(self, outputs: Sequence[int], scores: Sequence[Tensor]) -> Tensor:
        r"""The largest score of each row among those of its output, per cost."""
        best = [scores[0].new_full((self._n_candidates,), -torch.inf)] * self.n_outputs
        for output, own in zip(outputs, scores, strict=True):
            best[output] = best[output].maximum(own)
        return self.per_cost(self.values(best))

    def scores_by_row(self, scores: Tensor) -> Tensor:
        r"""The scores by row; those of candidates count for each output, per cost."""
        if len(scores) != self._n_candidates:
            return scores
        return self.per_cost(self.by_row(scores))

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

    def joined(self, data: Observations, each: Sequence[Tensor]) -> Tensor:
        r"""The numbers of measurements, from those of the output of each."""
        found = torch.empty(len(data), dtype=torch.float64)
        for j, own in enumerate(each):
            found[self.places(data.indices, j)] = own
        return found

    def places(self, rows: Tensor, output: int) -> Tensor:
        r"""The positions, among some rows, of those that measure an output."""
        return (rows // self._n_candidates == output).nonzero().view(-1)

    def of_row(self, row: int | None, each: Sequence[Any]) -> tuple[Any, ...] | None:
        r"""The entry of the output that a row measures; unknown without a row."""
        return None if row is None else (each[row // self._n_candidates],)


def _located(posterior: PoolPosterior, noise: Tensor, rows: Tensor) -> PoolPosterior:
    zeros = torch.zeros(len(rows), dtype=torch.float64)
    return posterior.observe(rows, zeros, noise[rows])


@dataclass(frozen=True, eq=False)
class FromSources(Layout):
    r"""The layout of a pool from ``Pool.at_sources``: one of the sources is decided.

    Row ``l N + i`` measures source ``l`` of item ``i``. There is one posterior, of all
    rows, so that all measurements inform of the target; its rows alone are items.

    Args:
        told: The number of points that a history has measured at each source.
    """

    told: tuple[int, ...] = ()

    @property
    def target(self) -> int:
        r"""The number of the source that is decided."""
        assert self.pool.target is not None  # as ``Pool.at_sources`` makes it
        return self.pool.target

    @property
    def n_sources(self) -> int:
        r"""The number of sources, ``M``."""
        return len(self.pool.sources)

    @property
    def n_items(self) -> int:
        r"""The number of rows of each source, ``N``."""
        return len(self.pool) // self.n_sources

    def knowing(self, told: Tensor) -> FromSources:
        r"""The layout with points that were measured before the run.

        A number that is no source's spares first rows of the nearest source, but none
        of the target's, which teach what the others are worth.

        Args:
            told: ``n x d`` points, in the columns of the pool.
        """
        apart = (told[:, -1:] - self.pool.levels).abs()
        of_target = apart[:, self.target]
        apart[:, self.target] = of_target.where(of_target == 0, torch.inf)
        number = apart.argmin(dim=-1)
        times = number.bincount(minlength=self.n_sources)
        return replace(self, told=tuple(times.tolist()))

    @property
    def has_sources(self) -> bool:
        r"""Whether most rows are measured only for what they tell of others."""
        return True

    @property
    def items(self) -> Pool:
        r"""The pool whose rows are decided, without the column of sources."""
        return self.pool.without_sources

    @property
    def decided(self) -> slice:
        r"""The rows of the target."""
        return self.pool.of_target

    def by_row(self, of_candidates: Tensor) -> Tensor:
        r"""The numbers of items, once for each source."""
        return of_candidates.repeat(self.n_sources)

    def at_sources(self, item: int) -> Tensor:
        r"""The rows that measure an item, one for each source."""
        return item + self.n_items * torch.arange(self.n_sources)

    def source_of(self, rows: Tensor) -> Tensor:
        r"""The numbers of the sources that rows measure."""
        return rows // self.n_items

    def with_target(self, X: Tensor) -> Tensor:
        r"""The points with what the target has behind their inputs."""
        number = float(self.pool.levels[self.target])
        return torch.cat((X, torch.full_like(X[..., :1], number)), dim=-1)

    def of_target(self, data: Observations) -> Observations:
        r"""The measurements of what is decided, without those of other sources."""
        is_own = self.source_of(data.indices) == self.target
        return data.select(is_own.nonzero().view(-1))

    def at_candidates(self, data: Observations) -> Observations:
        r"""The measurements of the target, at rows of the items."""
        found = self.of_target(data)
        return replace(found, indices=found.indices % self.n_items)

    @cached_property
    def _costs(self) -> Tensor:
        assert self.pool.costs is not None  # as ``Pool.at_sources`` makes it
        return self.pool.costs.view(self.n_sources, -1)[:, 0]

    def charged(self, costs: Tensor, rows: Tensor) -> Tensor:
        r"""The costs of rows, at least a share of the target's: see ``LEAST_COST``."""
        return costs.maximum(LEAST_COST * self._costs[self.target])

    def is_target_due(self, taken: Tensor) -> bool:
        r"""Whether other sources have cost as much as a measurement of the target.

        Or were measured ``MOST_IN_A_ROW`` times, since the last one of the target.

        Args:
            taken: Rows that were measured, or are planned, in order.
        """
        at = (self.source_of(taken) == self.target).nonzero().view(-1)
        since = taken[int(at[-1]) + 1 :] if len(at) else taken
        cost = self._costs[self.source_of(since)].sum()
        return len(since) >= MOST_IN_A_ROW or bool(cost >= self._costs[self.target])

    @cached_property
    def first_of_sources(self) -> tuple[int, ...]:
        r"""The sizes of the initial design at each source, few at the target.

        The other sources get what ``FIRST_COST`` of the cost of a target alone pays
        for, at most ``FIRST_AT_SOURCES`` for each input.
        """
        d, N = min(self.items.n_inputs, MOST_FIRST_INPUTS), self.n_items
        alone = max(FIRST_ALONE * d + 2, LEAST_AT_TARGET)
        budget = FIRST_COST * alone * self._costs[self.target]
        found = (budget / self._costs.clamp_min(1e-300)).long()
        found = found.clamp(LEAST_AT_TARGET, max(FIRST_AT_SOURCES * d, LEAST_AT_TARGET))
        found[self.target] = max(d + 1, min(alone, FIRST_AT_TARGET))
        limit = max(int(SHARE_FIRST * N), LEAST_AT_TARGET)
        found = found.clamp_max(min(limit, N))
        if self.told:
            found = (found - torch.tensor(self.told)).clamp_min(0)
        return tuple(found.tolist())

    def first_rows(self, taken: Tensor) -> Tensor:
        r"""The rows from which the next one of an initial design comes (bools).

        Those of the source that is farthest behind its share. The design is nested: at
        the target rows come first that another source has measured, as differences of
        sources are seen best where both were measured.

        Args:
            taken: Rows that were measured, or are planned.
        """
        wanted = torch.tensor(self.first_of_sources, dtype=torch.float64)
        source = self.source_of(taken)
        share = torch.bincount(source, minlength=self.n_sources) / wanted
        # Of sources that are equally far behind the target is the last one, and none
        # is behind of which enough was told before the run.
        share[self.target] += 1e-9
        share[wanted == 0] = torch.inf
        at = int(share.argmin())
        found = torch.zeros(self.n_sources, self.n_items, dtype=torch.bool)
        found[at] = True
        if at == self.target:
            seen = torch.zeros_like(found).view(-1).index_fill(0, taken, True)
            seen = seen.view_as(found)
            nested = seen.any(dim=0) & ~seen[at]
            if bool(nested.any()):
                found[at] = nested
        return found.view(-1)


@dataclass(frozen=True, eq=False)
class PairCovariances:
    r"""Posterior covariances between (candidate, output) pairs, for planners.

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
        r"""The largest prior standard deviation of an output."""
        return max(p.scale for p in self.posteriors)

    @property
    def memory_budget(self) -> int:
        r"""The bytes for arrays over the pool."""
        return self.posteriors[0].memory_budget

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between pairs before the batch, given by their numbers."""
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


Improvement = tuple[PoolPosterior | PairCovariances, Tensor, Tensor, list[int]]
"""A planner's problem: covariances, noise variances, rows to predict, and outputs."""
