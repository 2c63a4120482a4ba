r"""Batches from a pool for the design criteria: greedy steps and pair exchange.

Everything is exact on the posterior covariance: after a batch with the factor ``L`` of
its noisy covariance, covariances are ``k - w' w`` with ``w = L^-1 k(batch, .)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.acquisition.covariance import PosteriorCovariance, Seen
from botorch_lse.acquisition.design import CACHE, DesignAcquisitionFunction
from botorch_lse.functional.path import factorize, path_rows
from botorch_lse.posterior import row_blocks

ENTRIES = 2**22
"""Numbers in one table of targets by rows (32 MB): fewer targets for more rows."""
FINALISTS = 64
"""Rows whose greedy step is checked on all targets, where not all of them can be."""
TRIED = 16
"""Rows tried as giver and as taker in one swap; all rows of a pool up to ``SMALL``."""
SMALL = 64
SHARPNESS = 30.0
"""Targets weigh ``(variance / largest)^30`` when rows are ranked for a swap."""
LEADING = 64
"""Targets that rank the rows for a swap; the weights of others are negligible."""
MAX_SWAPS = 60
PROGRESS = 1e-9
"""A swap must lower the value by this share: smaller gains are rounding."""


@dataclass(frozen=True, eq=False)
class PoolProblem:
    r"""Which rows of a pool leave which variances of which targets.

    Args:
        covariance: Of the posterior given data and pending points.
        points: ``P`` points: the ``N`` rows of the pool, then targets outside it.
        noise_var: ``N`` noise variances, units of ``y`` squared.
        targets: ``T`` numbers of points.
        pairs_factor: ``c`` where the targets are all pairs ``f(x) - c f(x')``.
        variance: ``P`` variances.
        gram: ``T x T`` covariances of the targets, where pairs need them and they fit.
    """

    covariance: PosteriorCovariance
    points: Seen
    noise_var: Tensor
    targets: Tensor
    pairs_factor: float | None
    variance: Tensor
    gram: Tensor | None

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
        )
        if problem.pairs_factor is None or 8 * targets.numel() ** 2 > CACHE:
            return problem
        return replace(problem, gram=problem.block(targets, targets))

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


@dataclass(frozen=True, eq=False)
class Played:
    r"""The posterior after a batch.

    Args:
        problem: The problem.
        counts: ``N``, how often each row is in the batch.
        W: ``q x P``, ``L^-1`` times the batch's covariances with all points.
        variance: ``P`` variances left.
    """

    problem: PoolProblem
    counts: Tensor
    W: Tensor
    variance: Tensor

    @classmethod
    def of(cls, problem: PoolProblem, counts: Tensor) -> Played:
        r"""From scratch."""
        if not bool(counts.any()):
            W = problem.variance.new_empty(0, problem.variance.numel())
            return cls(problem, counts, W, problem.variance)
        rows = torch.arange(counts.numel(), device=counts.device)
        rows = rows.repeat_interleave(counts)
        k = problem.block(rows, slice(None))
        L = factorize(k[:, rows], problem.noise_var[rows])
        W = path_rows(L, k)
        left = problem.variance - W.square().sum(dim=0)
        return cls(problem, counts, W, left.clamp_min(0.0))

    def and_row(self, row: int) -> Played:
        r"""After one more observation of ``row``."""
        at = torch.tensor([row], device=self.counts.device)
        new = self.left_between(at, slice(None))
        new = new / (self.variance[at] + self.problem.noise_var[at]).sqrt()
        counts = self.counts.clone()
        counts[row] += 1
        left = (self.variance - new.square().squeeze(0)).clamp_min(0.0)
        return Played(self.problem, counts, torch.cat((self.W, new)), left)

    def left_between(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances left between points, by their numbers."""
        block = self.problem.block(rows, columns)
        return block - self.W[:, rows].mT @ self.W[:, columns]

    @property
    def value(self) -> float:
        r"""The largest variance over all targets."""
        return float(self.worst(1)[1][0])

    def worst(self, many: int) -> tuple[Tensor, Tensor]:
        r"""The ``many`` targets of largest variance and these, falling.

        Targets are numbered by their place in ``targets``, pairs by ``i T + j``.
        """
        problem = self.problem
        T, c, left = problem.targets.numel(), problem.pairs_factor, self.variance
        own = left[problem.targets]
        if c is None:
            top, ids = own.topk(min(many, T))
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
        r"""Covariances left between targets ``ids`` and points ``rows``."""
        problem = self.problem
        T, c = problem.targets.numel(), problem.pairs_factor
        if c is None:
            return self.left_between(problem.targets[ids], rows)
        members, where = torch.cat((ids // T, ids % T)).unique(return_inverse=True)
        C = self.left_between(problem.targets[members], rows)
        return C[where[: ids.numel()]] - c * C[where[ids.numel() :]]


def greedy(start: Played, q: int, allowed: Tensor) -> Played:
    r"""Add rows one by one, each the best given those before, to a batch of ``q``.

    Exact where all targets by all rows are at most ``ENTRIES`` numbers; else the step
    is chosen on the targets of largest variance and checked on all for the best rows.

    Args:
        start: What is in the batch already.
        q: The size of the batch.
        allowed: ``N``, how often each row may be in the batch.
    """
    played = start
    while int(played.counts.sum()) < q:
        played = played.and_row(_best_addition(played, played.counts < allowed))
    return played


def _best_addition(played: Played, free: Tensor) -> int:
    problem, rows = played.problem, free.nonzero().squeeze(-1)
    many = min(problem.n_targets, max(ENTRIES // rows.numel(), FINALISTS))
    ids, left = played.worst(many)
    least = _left_after(played, ids, left, rows)
    if many < problem.n_targets:
        best = least.topk(min(FINALISTS, rows.numel()), largest=False).indices
        rows = rows[best.sort().values]
        ids, left = played.worst(min(problem.n_targets, ENTRIES // FINALISTS))
        least = _left_after(played, ids, left, rows)
    # The first of equals: the lowest row.
    tied = least <= least.min() + 1e-9 * float(problem.variance.max())
    return int(rows[tied.nonzero()[0, 0]])


def _left_after(played: Played, ids: Tensor, left: Tensor, rows: Tensor) -> Tensor:
    r"""The largest of the variances ``left`` after one observation of each row."""
    problem = played.problem
    total = played.variance[rows] + problem.noise_var[rows]
    parts = []
    for b in row_blocks(rows.numel(), ids.numel()):
        C = played.with_rows(ids, rows[b])
        parts.append((left.unsqueeze(-1) - C.square() / total[b]).amax(dim=0))
    return torch.cat(parts)


def exchange_pairs(start: Played, allowed: Tensor) -> Played:
    r"""Swap single observations while the largest variance falls.

    Args:
        start: A batch.
        allowed: ``N``, how often each row may be in the batch.

    Source:
        Fedorov (1972), on the rows that the worst targets point to.
    """
    played, value = start, start.value
    for _ in range(MAX_SWAPS):
        better = _best_swap(played, allowed)
        if better is None:
            break
        improved = better.value
        if improved >= value * (1 - PROGRESS):
            break
        played, value = better, improved
    return played


def _best_swap(played: Played, allowed: Tensor) -> Played | None:
    r"""The best of the promising swaps; each is a rank-two change of covariances."""
    problem, noise = played.problem, played.problem.noise_var
    takers, givers = _promising(played, allowed)
    if takers.numel() == 0:
        return None
    many = ENTRIES // (takers.numel() * givers.numel())
    ids, left = played.worst(min(problem.n_targets, many))
    c_in, c_out = played.with_rows(ids, takers), played.with_rows(ids, givers)
    cross = played.left_between(givers, takers)
    # Without giver g covariances rise by c_g c_g' / (noise_g - var_g) ...
    freed = (noise[givers] - played.variance[givers]).clamp_min(1e-12 * noise[givers])
    c_in, c_out = c_in.unsqueeze(1), c_out.unsqueeze(2)  # t x givers x takers
    before = left[:, None, None] + c_out.square() / freed[:, None]
    # ... and with taker x they fall by c_x c_x' / (noise_x + var_x).
    link = c_in + c_out * (cross / freed[:, None])
    total = noise[takers] + played.variance[takers]
    total = total + cross.square() / freed[:, None]
    after = (before - link.square() / total).amax(dim=0)
    after[givers.unsqueeze(-1) == takers] = torch.inf
    i, j = divmod(int(after.argmin()), takers.numel())
    counts = played.counts.clone()
    counts[givers[i]] -= 1
    counts[takers[j]] += 1
    return Played.of(problem, counts)


def _promising(played: Played, allowed: Tensor) -> tuple[Tensor, Tensor]:
    r"""Rows that the worst targets would like to see more of, and less."""
    problem, N = played.problem, played.counts.numel()
    free = (played.counts < allowed).nonzero().squeeze(-1)
    held = played.counts.nonzero().squeeze(-1)
    if N <= SMALL:
        return free, held
    ids, left = played.worst(LEADING)
    w = torch.softmax(SHARPNESS * (left / left[0].clamp_min(1e-300)).log(), dim=0)
    total = played.variance[:N] + problem.noise_var
    C = played.with_rows(ids, slice(0, N))
    gain = (w.unsqueeze(-1) * C.square()).sum(dim=0) / total
    takers = free[gain[free].topk(min(TRIED, free.numel())).indices]
    givers = held[gain[held].topk(min(TRIED, held.numel()), largest=False).indices]
    return takers, givers
