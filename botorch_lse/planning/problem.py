r"""What a batch of pool rows is to predict, and the variances that it leaves.

These do not depend on the values to come, and are exact on the posterior covariance
``k``: after a batch with the factor ``L`` of its noisy covariance, covariances are ``k
- w' w`` with ``w = L^-1 k(batch, .)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from botorch_lse.models.gaussian_process import (
    PoolPosterior,
    extended,
    factorize,
    path_rows,
    row_blocks,
)


class BatchProblem(Protocol):
    r"""Which rows may be measured, and which variances a batch is to make small.

    Points are numbered: first the ``N`` rows of the pool, which can be measured, then
    points that can only be predicted. The planner asks nothing but these questions, so
    that an acquisition function on any model and a strategy on a pool's posterior get
    their batches from the same code.
    """

    @property
    def noise_var(self) -> Tensor:
        r"""``N`` noise variances of measurements of the rows, units of ``y`` squared.

        Each is at least the model's ``least_noise``, so that batches can be factorized.
        """

    @property
    def targets(self) -> Tensor:
        r"""The numbers of the ``T`` points whose variances the batch is to lower."""

    @property
    def pairs_factor(self) -> float | None:
        r"""``c`` if ``f(x) - c f(x')`` matters for all ordered pairs of ``targets``.

        ``None`` if the function's values at ``targets`` themselves matter.
        """

    @property
    def variance(self) -> Tensor:
        r"""The variance of each point before the batch."""

    @property
    def weights(self) -> Tensor | None:
        r"""Factors of the variances: ``T``, for pairs ``T x T``; ``None`` means 1."""

    @property
    def scale(self) -> float:
        r"""The largest weighted variance that can occur.

        Variances that differ by less than a tiny share of it count as equal.
        """

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances before the batch between points, given by their numbers."""

    def gram_rows(self, rows: slice) -> Tensor:
        r"""``r x T`` covariances before the batch: targets ``rows`` with all."""


@dataclass(frozen=True, eq=False)
class PosteriorProblem:
    r"""A ``BatchProblem`` on the posterior of a pool.

    Args:
        posterior: On the pool's rows, perhaps followed by points to predict only.
        noise_var: ``N`` noise variances, units of ``y`` squared, at least
            ``posterior.least_noise``.
        targets: ``T`` rows of the posterior.
        weights: ``T`` factors of the variances, for pairs ``T x T``; ``None``: all 1.
        pairs_factor: ``c`` where the targets are all pairs ``f(x) - c f(x')``.
    """

    posterior: PoolPosterior
    noise_var: Tensor
    targets: Tensor
    weights: Tensor | None = None
    pairs_factor: float | None = None

    @property
    def variance(self) -> Tensor:
        r"""The variance of each row before the batch."""
        return self.posterior.variance

    @property
    def scale(self) -> float:
        r"""The prior's largest variance, times the largest weight."""
        largest = self.posterior.scale**2
        return largest if self.weights is None else largest * float(self.weights.max())

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between rows of the posterior, given by their numbers."""
        every = torch.arange(self.variance.numel())
        if isinstance(rows, slice) and len(every[rows]) == len(every):
            # With whole rows the stored path is used as it lies, without a copy.
            return self.posterior.covariance_with(every[columns]).mT
        if isinstance(columns, slice) and len(every[columns]) == len(every):
            return self.posterior.covariance_with(every[rows])
        return self.posterior.covariance_between(every[rows], every[columns])

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets: ``r x T``."""
        if self._gram is not None:
            return self._gram[rows]
        return self.block(self.targets[rows], self.targets)

    @cached_property
    def _gram(self) -> Tensor | None:
        r"""``T x T`` covariances of the targets; ``None`` if they take too much memory.

        They are kept because each step of a search over pairs needs them all.
        """
        fits = 8 * self.targets.numel() ** 2 <= self.posterior.memory_budget // 4
        return self.block(self.targets, self.targets) if fits else None


@dataclass(frozen=True, eq=False)
class BatchPosterior:
    r"""The variances and covariances after a batch, and what they are computed from.

    Args:
        problem: The problem.
        rows: ``q`` rows of the batch, replicates included.
        L: ``q x q``, the factor of their covariance plus noise.
        W: ``q x P``, ``L^-1`` times the batch's covariances with all points.
        variance: ``P`` variances left.
    """

    problem: BatchProblem
    rows: Tensor
    L: Tensor
    W: Tensor
    variance: Tensor

    @classmethod
    def of(cls, problem: BatchProblem, counts: Tensor) -> BatchPosterior:
        r"""The posterior after the batch ``counts``, computed from the problem alone.

        Not by updates, whose rounding errors would add up over many swaps.
        """
        rows = torch.arange(counts.numel(), device=counts.device)
        rows = rows.repeat_interleave(counts)
        if rows.numel() == 0:
            L = problem.variance.new_empty(0, 0)
            W = problem.variance.new_empty(0, problem.variance.numel())
            return cls(problem, rows, L, W, problem.variance)
        k = problem.block(rows, slice(None))
        L = factorize(k[:, rows], problem.noise_var[rows])
        W = path_rows(L, k)
        left = problem.variance - W.square().sum(dim=0)
        return cls(problem, rows, L, W, left.clamp_min(0.0))

    def with_observation(self, row: int) -> BatchPosterior:
        r"""The posterior after one more observation of ``row``, by an update."""
        at = torch.tensor([row], device=self.rows.device)
        new = self.covariance(at, slice(None))
        root = (self.variance[at] + self.problem.noise_var[at]).sqrt()
        new = new / root
        L = extended(self.L, self.W[:, at].mT, root.unsqueeze(-1))
        left = (self.variance - new.square().squeeze(0)).clamp_min(0.0)
        rows = torch.cat((self.rows, at))
        return BatchPosterior(self.problem, rows, L, torch.cat((self.W, new)), left)

    @property
    def counts(self) -> Tensor:
        r"""``N``, how often each row is in the batch."""
        return torch.bincount(self.rows, minlength=self.problem.noise_var.numel())

    def rise_without(self, members: Tensor) -> Tensor:
        r"""How covariances rise when one observation is taken out of the batch.

        Without observation ``b`` they rise by ``u_b(x) u_b(x')``. ``u`` is computed
        from the factor of the whole batch, not as ``c / sqrt(noise - variance)``: after
        an exact measurement that difference is rounding.

        Args:
            members: ``g`` positions in ``rows``, each taken out by itself.

        Returns:
            ``u``, ``g x P``.

        Source:
            The inverse of a matrix without one row and column (Rasmussen and Williams
            2006, section 5.4.2, leave-one-out).
        """
        eye = torch.eye(self.rows.numel()).to(self.L)
        inverse = torch.cholesky_solve(eye[:, members], self.L)  # q x g
        own = inverse.gather(0, members.unsqueeze(0)).squeeze(0)
        # C_b^-1 k(b, .) without another solve: k(b, .) = L W.
        return (self.L.mT @ inverse / own.sqrt()).mT @ self.W

    def covariance(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances after the batch between points, given by their numbers."""
        block = self.problem.block(rows, columns)
        return block - self.W[:, rows].mT @ self.W[:, columns]

    @property
    def n_targets(self) -> int:
        r"""The number of targets: ``T``, or ``T^2`` for pairs."""
        T = self.problem.targets.numel()
        return T if self.problem.pairs_factor is None else T * T

    @property
    def value(self) -> float:
        r"""The largest (weighted) variance that the batch leaves at a target."""
        return float(self.worst(1)[1][0])

    def worst(self, many: int) -> tuple[Tensor, Tensor]:
        r"""The ``many`` targets of largest (weighted) variance.

        Returns:
            Their numbers, and their variances in falling order. A target's number is
            its position in ``targets``, that of a pair ``i T + j``.
        """
        problem = self.problem
        T, c, left = problem.targets.numel(), problem.pairs_factor, self.variance
        own = left[problem.targets]
        if c is None:
            w = problem.weights
            top, ids = (own if w is None else w * own).topk(min(many, T))
            return ids, top
        W = self.W[:, problem.targets]
        ids = torch.empty(0, dtype=torch.long, device=own.device)
        top = own[:0]
        for rows in row_blocks(T, T):
            C = problem.gram_rows(rows) - W[:, rows].mT @ W
            pairs = own[rows, None] + c**2 * own - 2 * c * C
            if problem.weights is not None:
                pairs = problem.weights[rows] * pairs
            pairs = pairs.flatten()
            more, at = pairs.topk(min(many, pairs.numel()))
            top, kept = torch.cat((top, more)).topk(
                min(many, top.numel() + more.numel())
            )
            ids = torch.cat((ids, at + rows.start * T))[kept]
        return ids, top

    def target_covariance(self, ids: Tensor, rows: Tensor | slice) -> Tensor:
        r"""Covariances after the batch of targets ``ids`` with ``rows``.

        They are multiplied by the root of the target's weight.
        """
        return self.at_targets(ids, lambda points: self.covariance(points, rows))

    def at_targets(self, ids: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
        r"""A function of points, extended linearly to targets.

        For a pair the second point's value, times ``c``, is subtracted from the
        first's. The result is multiplied by the root of the target's weight.

        Args:
            ids: Targets, numbered as by ``worst``.
            of: From the numbers of ``p`` points to ``p x k`` values.

        Returns:
            One row per target, ``k`` columns.
        """
        problem = self.problem
        T, c = problem.targets.numel(), problem.pairs_factor
        if c is None:
            C = of(problem.targets[ids])
        else:
            both = torch.cat((ids // T, ids % T))
            members, where = both.unique(return_inverse=True)
            C = of(problem.targets[members])
            C = C[where[: ids.numel()]] - c * C[where[ids.numel() :]]
        if problem.weights is None:
            return C
        return problem.weights.view(-1)[ids].sqrt().unsqueeze(-1) * C


@dataclass(frozen=True, eq=False)
class JointBatchPosterior:
    r"""The posteriors of several outputs after the same batch.

    Args:
        parts: One per output, with equal counts.
    """

    parts: tuple[BatchPosterior, ...]

    @classmethod
    def of(
        cls, problems: Sequence[BatchProblem], counts: Tensor
    ) -> JointBatchPosterior:
        r"""The posteriors after the batch ``counts``, one for each problem."""
        return cls(tuple(BatchPosterior.of(problem, counts) for problem in problems))

    def with_observation(self, row: int) -> JointBatchPosterior:
        r"""The posterior after one more observation of ``row``, for every output."""
        return JointBatchPosterior(
            tuple(part.with_observation(row) for part in self.parts)
        )

    @property
    def counts(self) -> Tensor:
        r"""``N``, how often each row is in the batch."""
        return self.parts[0].counts

    @property
    def value(self) -> float:
        r"""The largest (weighted) variance over all targets and outputs."""
        return max(part.value for part in self.parts)
