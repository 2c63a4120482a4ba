r"""What a batch from a pool leaves uncertain, for the design criteria.

Everything is exact on the posterior covariance: after a batch with the factor ``L`` of
its noisy covariance, covariances are ``k - w' w`` with ``w = L^-1 k(batch, .)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from botorch_lse.acquisition.covariance import PosteriorCovariance, Seen
from botorch_lse.acquisition.design import CACHE, DesignAcquisitionFunction
from botorch_lse.functional.path import factorize, path_rows
from botorch_lse.posterior import row_blocks


@dataclass(frozen=True, eq=False)
class PoolProblem:
    r"""Which rows of a pool leave which variances of which targets.

    Args:
        covariance: Of the posterior given data and pending points.
        points: ``P`` points: the ``N`` rows of the pool, then targets outside it.
        noise_var: ``N`` noise variances, units of ``y`` squared, at least
            ``least_noise``.
        targets: ``T`` numbers of points.
        pairs_factor: ``c`` where the targets are all pairs ``f(x) - c f(x')``.
        variance: ``P`` variances.
        gram: ``T x T`` covariances of the targets, where pairs need them and they fit.
        weights: ``T`` factors of the variances of single targets; ``None``: all 1.
    """

    covariance: PosteriorCovariance
    points: Seen
    noise_var: Tensor
    targets: Tensor
    pairs_factor: float | None
    variance: Tensor
    gram: Tensor | None
    weights: Tensor | None = None

    @classmethod
    def of(
        cls, acq_function: DesignAcquisitionFunction, choices: Tensor
    ) -> PoolProblem:
        r"""The problem of an acquisition function on ``N x d`` choices."""
        N, covariance = len(choices), acq_function.covariance
        both = torch.cat((choices, acq_function.targets))
        unique, where = both.unique(dim=0, return_inverse=True)
        first = torch.full((len(unique),), N, device=where.device)
        rows = torch.arange(N, device=where.device)
        first.scatter_reduce_(0, where[:N], rows, "amin")
        targets = first[where[N:]]  # N: not among the choices
        outside = targets == N
        targets[outside] = N + torch.arange(int(outside.sum()), device=where.device)
        seen = covariance.see(torch.cat((choices, acq_function.targets[outside])))
        width = seen.F.shape[-1] + seen.V.shape[-1]
        blocks = row_blocks(seen.F.shape[-2], width)
        variance = torch.cat([covariance.variance(seen.rows(b)) for b in blocks])
        noise = acq_function.future_noise(choices)
        problem = cls(
            covariance,
            seen,
            noise,
            targets,
            acq_function.pairs_factor,
            variance,
            None,
            acq_function.weights,
        )
        if problem.pairs_factor is None or 8 * targets.numel() ** 2 > CACHE:
            return problem
        return replace(problem, gram=problem.block(targets, targets))

    @property
    def scale(self) -> float:
        r"""The largest (weighted) variance before the batch: the unit of ties."""
        largest = float(self.variance.max())
        return largest if self.weights is None else largest * float(self.weights.max())

    @property
    def n_targets(self) -> int:
        r"""``T``, or ``T^2`` for pairs."""
        T = self.targets.numel()
        return T if self.pairs_factor is None else T * T

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between points, by their numbers."""
        left, right = self.points.rows(rows), self.points.rows(columns)
        return self.covariance.between(left, right)

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets."""
        if self.gram is not None:
            return self.gram[rows]
        return self.block(self.targets[rows], self.targets)


class BatchProblem(Protocol):
    r"""What ``Played`` needs of a problem; see ``PoolProblem``."""

    @property
    def noise_var(self) -> Tensor:
        r"""``N`` noise variances."""

    @property
    def targets(self) -> Tensor:
        r"""``T`` numbers of points."""

    @property
    def pairs_factor(self) -> float | None:
        r"""``c`` where the targets are pairs."""

    @property
    def variance(self) -> Tensor:
        r"""``P`` variances."""

    @property
    def weights(self) -> Tensor | None:
        r"""``T`` factors of the variances."""

    @property
    def scale(self) -> float:
        r"""The unit of ties."""

    @property
    def n_targets(self) -> int:
        r"""The number of targets."""

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between points, by their numbers."""

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets."""


@dataclass(frozen=True, eq=False)
class Played:
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
    def of(cls, problem: BatchProblem, counts: Tensor) -> Played:
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

    def and_row(self, row: int) -> Played:
        r"""After one more observation of ``row``."""
        at = torch.tensor([row], device=self.rows.device)
        new = self.left_between(at, slice(None))
        root = (self.variance[at] + self.problem.noise_var[at]).sqrt()
        new, q = new / root, self.rows.numel()
        L = self.L.new_zeros(q + 1, q + 1)
        L[:q, :q], L[q, :q], L[q, q] = self.L, self.W[:, row], root
        left = (self.variance - new.square().squeeze(0)).clamp_min(0.0)
        rows = torch.cat((self.rows, at))
        return Played(self.problem, rows, L, torch.cat((self.W, new)), left)

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
            pairs = (own[rows, None] + c**2 * own - 2 * c * C).flatten()
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
            w = problem.weights
            return C if w is None else w[ids].sqrt().unsqueeze(-1) * C
        members, where = torch.cat((ids // T, ids % T)).unique(return_inverse=True)
        C = of(problem.targets[members])
        return C[where[: ids.numel()]] - c * C[where[ids.numel() :]]


@dataclass(frozen=True, eq=False)
class JointlyPlayed:
    r"""The same batch on one problem per output.

    Args:
        parts: One per output, with equal counts.
    """

    parts: tuple[Played, ...]

    @classmethod
    def of(cls, problems: Sequence[BatchProblem], counts: Tensor) -> JointlyPlayed:
        r"""The same batch on every output, computed from the problems alone."""
        return cls(tuple(Played.of(problem, counts) for problem in problems))

    def and_row(self, row: int) -> JointlyPlayed:
        r"""After one more observation of ``row``."""
        return JointlyPlayed(tuple(part.and_row(row) for part in self.parts))

    @property
    def counts(self) -> Tensor:
        r"""``N``, how often each row is in the batch."""
        return self.parts[0].counts

    @property
    def value(self) -> float:
        r"""The largest (weighted) variance over all targets and outputs."""
        return max(part.value for part in self.parts)
