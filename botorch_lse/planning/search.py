r"""Batches from a pool for the design criteria: greedy steps and pair exchange.

With several outputs a batch is judged by the output that fares worst.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_lse.models.posterior import row_blocks
from botorch_lse.planning.batch_posterior import BatchPosterior, JointBatchPosterior

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


def greedy(start: JointBatchPosterior, q: int, allowed: Tensor) -> JointBatchPosterior:
    r"""Add rows one by one, each the best given those before, to a batch of ``q``.

    Exact where all targets by all rows are at most ``ENTRIES`` numbers; else the step
    is chosen on the targets of largest variance and checked on all for the best rows.

    Args:
        start: What is in the batch already.
        q: The size of the batch.
        allowed: ``N``, how often each row may be in the batch.
    """
    batch = start
    while int(batch.counts.sum()) < q:
        batch = batch.and_row(_best_addition(batch, batch.counts < allowed))
    return batch


def _best_addition(batch: JointBatchPosterior, free: Tensor) -> int:
    r"""The row whose measurement leaves the smallest largest variance."""
    rows = free.nonzero().squeeze(-1)
    many = max(ENTRIES // rows.numel(), FINALISTS)
    least = _left_after(batch, rows, many)
    if many < max(part.n_targets for part in batch.parts):
        best = least.topk(min(FINALISTS, rows.numel()), largest=False).indices
        rows = rows[best.sort().values]
        least = _left_after(batch, rows, ENTRIES // FINALISTS)
    # The first of equals: the lowest row.
    scale = max(part.problem.scale for part in batch.parts)
    tied = least <= least.min() + 1e-9 * scale
    return int(rows[tied.nonzero()[0, 0]])


def _left_after(batch: JointBatchPosterior, rows: Tensor, many: int) -> Tensor:
    r"""The largest of the ``many`` leading variances after one observation of a row."""
    outputs = [_left_in_output(part, rows, many) for part in batch.parts]
    return torch.stack(outputs).amax(dim=0)


def _left_in_output(batch: BatchPosterior, rows: Tensor, many: int) -> Tensor:
    r"""The same for one output: one number per row."""
    problem = batch.problem
    ids, left = batch.worst(min(batch.n_targets, many))
    total = batch.variance[rows] + problem.noise_var[rows]
    parts = []
    for b in row_blocks(rows.numel(), ids.numel()):
        C = batch.with_rows(ids, rows[b])
        parts.append((left.unsqueeze(-1) - C.square() / total[b]).amax(dim=0))
    return torch.cat(parts)


def exchange_pairs(start: JointBatchPosterior, allowed: Tensor) -> JointBatchPosterior:
    r"""Swap single observations while the largest variance falls.

    Args:
        start: A batch.
        allowed: ``N``, how often each row may be in the batch.

    Source:
        Fedorov (1972), on the rows that the worst targets point to.
    """
    batch, value = start, start.value
    for _ in range(MAX_SWAPS):
        better = _best_swap(batch, allowed)
        if better is None:
            break
        improved = better.value
        if improved >= value * (1 - PROGRESS):
            break
        batch, value = better, improved
    return batch


def _best_swap(
    batch: JointBatchPosterior, allowed: Tensor
) -> JointBatchPosterior | None:
    r"""The best of the promising swaps."""
    takers, givers = _promising(batch, allowed)
    if takers.numel() == 0:
        return None
    outputs = [_after_swaps(part, takers, givers) for part in batch.parts]
    after = torch.stack(outputs).amax(dim=0)
    after[givers.unsqueeze(-1) == takers] = torch.inf
    i, j = divmod(int(after.argmin()), takers.numel())
    counts = batch.counts.clone()
    counts[givers[i]] -= 1
    counts[takers[j]] += 1
    return JointBatchPosterior.of([part.problem for part in batch.parts], counts)


def _after_swaps(batch: BatchPosterior, takers: Tensor, givers: Tensor) -> Tensor:
    r"""``givers x takers`` largest variances: each a rank-two change of covariances."""
    noise = batch.problem.noise_var
    many = ENTRIES // (takers.numel() * givers.numel())
    ids, left = batch.worst(min(batch.n_targets, many))
    # Without giver g covariances rise by u_g u_g' ...
    first = (batch.rows == givers.unsqueeze(-1)).to(torch.uint8).argmax(dim=-1)
    u = batch.freed(first)
    u_out = batch.combined(ids, lambda points: u[:, points].mT).unsqueeze(2)
    u_in = u[:, takers]
    before = left[:, None, None] + u_out.square()  # t x givers x takers
    # ... and with taker x they fall by c_x c_x' / (noise_x + var_x).
    link = batch.with_rows(ids, takers).unsqueeze(1) + u_out * u_in
    total = noise[takers] + batch.variance[takers] + u_in.square()
    return (before - link.square() / total).amax(dim=0)


def _promising(batch: JointBatchPosterior, allowed: Tensor) -> tuple[Tensor, Tensor]:
    r"""Rows that the worst targets would like to see more of, and less."""
    N = batch.counts.numel()
    free = (batch.counts < allowed).nonzero().squeeze(-1)
    held = batch.counts.nonzero().squeeze(-1)
    if N <= SMALL:
        return free, held
    gain, largest = torch.zeros_like(batch.parts[0].variance[:N]), batch.value
    for part in batch.parts:
        ids, left = part.worst(LEADING)
        w = (left / largest) ** SHARPNESS if largest > 0 else torch.ones_like(left)
        total = part.variance[:N] + part.problem.noise_var
        C = part.with_rows(ids, slice(0, N))
        gain += (w.unsqueeze(-1) * C.square()).sum(dim=0) / total
    takers = free[gain[free].topk(min(TRIED, free.numel())).indices]
    givers = held[gain[held].topk(min(TRIED, held.numel()), largest=False).indices]
    return takers, givers
