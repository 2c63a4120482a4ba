r"""What a batch of pool rows is to predict, and what it leaves, whatever its values.

Everything is exact on the posterior covariance: after a batch with the factor ``L`` of
its noisy covariance, covariances are ``k - w' w`` with ``w = L^-1 k(batch, .)``.
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

        At least what the factorization of a batch needs: a row's least noise.
        """

    @property
    def targets(self) -> Tensor:
        r"""``T`` numbers of points whose variances matter."""

    @property
    def pairs_factor(self) -> float | None:
        r"""``c`` where the targets are all ordered pairs ``f(x) - c f(x')``."""

    @property
    def variance(self) -> Tensor:
        r"""The variance of each point before the batch."""

    @property
    def weights(self) -> Tensor | None:
        r"""Factors of the variances: ``T``, for pairs ``T x T``; ``None``: all 1."""

    @property
    def scale(self) -> float:
        r"""The largest weighted variance that can occur.

        Gains below a tiny share of it are rounding: the lowest of such rows is taken.
        """

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between points, by their numbers."""

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets."""


@dataclass(frozen=True, eq=False)
class PosteriorProblem:
    r"""A ``BatchProblem`` on the posterior of a pool.

    Args:
        posterior: On the pool's rows, perhaps followed by points to predict only.
        noise_var: ``N`` noise variances; below ``posterior.least_noise`` they count as
            that.
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
        r"""The prior's variance, times the largest weight."""
        largest = self.posterior.scale**2
        return largest if self.weights is None else largest * float(self.weights.max())

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between rows of the posterior."""
        every = torch.arange(self.variance.numel())
        if isinstance(rows, slice) and len(every[rows]) == len(every):
            # What is stored of all rows need not be gathered.
            return self.posterior.covariance_with(every[columns]).mT
        if isinstance(columns, slice) and len(every[columns]) == len(every):
            return self.posterior.covariance_with(every[rows])
        return self.posterior.covariance_between(every[rows], every[columns])

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets."""
        if self._gram is not None:
            return self._gram[rows]
        return self.block(self.targets[rows], self.targets)

    @cached_property
    def _gram(self) -> Tensor | None:
        r"""``T x T`` covariances of the targets, where they fit.

        Each step of a search over pairs needs them all.
        """
        fits = 8 * self.targets.numel() ** 2 <= self.posterior.memory_budget // 4
        return self.block(self.targets, self.targets) if fits else None


@dataclass(frozen=True, eq=False)
class BatchPosterior:
    r"""The posterior after a batch.

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
        r"""The posterior after a batch, computed from the problem alone."""
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

    def and_row(self, row: int) -> BatchPosterior:
        r"""After one more observation of ``row``."""
        at = torch.tensor([row], device=self.rows.device)
        new = self.left_between(at, slice(None))
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

    def freed(self, members: Tensor) -> Tensor:
        r"""``u``: without one observation, covariances rise by ``u(x) u(x')``.

        From the factor of the whole batch, not as ``c / sqrt(noise - variance)``: after
        an exact measurement that difference is rounding.

        Args:
            members: ``g`` places in ``rows``, each taken out alone.

        Returns:
            ``g x P``.

        Source:
            The inverse of a matrix without one row and column (Rasmussen and Williams
            2006, section 5.4.2, leave-one-out).
        """
        eye = torch.eye(self.rows.numel()).to(self.L)
        inverse = torch.cholesky_solve(eye[:, members], self.L)  # q x g
        own = inverse.gather(0, members.unsqueeze(0)).squeeze(0)
        # C_b^-1 k(b, .) without another solve: k(b, .) = L W.
        return (self.L.mT @ inverse / own.sqrt()).mT @ self.W

    def left_between(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances left between points, by their numbers."""
        block = self.problem.block(rows, columns)
        return block - self.W[:, rows].mT @ self.W[:, columns]

    @property
    def n_targets(self) -> int:
        r"""``T``, or ``T^2`` for pairs."""
        T = self.problem.targets.numel()
        return T if self.problem.pairs_factor is None else T * T

    @property
    def value(self) -> float:
        r"""The largest (weighted) variance over all targets."""
        return float(self.worst(1)[1][0])

    def worst(self, many: int) -> tuple[Tensor, Tensor]:
        r"""The ``many`` targets of largest (weighted) variance and these, falling.

        Targets are numbered by their place in ``targets``, pairs by ``i T + j``.
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

    def with_rows(self, ids: Tensor, rows: Tensor | slice) -> Tensor:
        r"""Covariances of targets ``ids``, times the root weight, with ``rows``."""
        return self.combined(ids, lambda points: self.left_between(points, rows))

    def combined(self, ids: Tensor, of: Callable[[Tensor], Tensor]) -> Tensor:
        r"""A linear function of points at targets ``ids``, times the root weight.

        Args:
            ids: Targets as ``worst`` numbers them.
            of: From ``p`` points, by their numbers, to ``p x k``.

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
    r"""The same batch on one problem per output.

    Args:
        parts: One per output, with equal counts.
    """

    parts: tuple[BatchPosterior, ...]

    @classmethod
    def of(
        cls, problems: Sequence[BatchProblem], counts: Tensor
    ) -> JointBatchPosterior:
        r"""The same batch on every output, computed from the problems alone."""
        return cls(tuple(BatchPosterior.of(problem, counts) for problem in problems))

    def and_row(self, row: int) -> JointBatchPosterior:
        r"""After one more observation of ``row``."""
        return JointBatchPosterior(tuple(part.and_row(row) for part in self.parts))

    @property
    def counts(self) -> Tensor:
        r"""``N``, how often each row is in the batch."""
        return self.parts[0].counts

    @property
    def value(self) -> float:
        r"""The largest (weighted) variance over all targets and outputs."""
        return max(part.value for part in self.parts)
