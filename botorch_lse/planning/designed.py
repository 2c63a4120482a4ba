r"""Batches that make the largest variance of some targets small.

In up to four steps: solve the relaxed problem (weights instead of counts), round its
solution, add rows greedily, exchange rows. With several outputs a batch is judged by
the output with the largest variance.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_lse.models.gaussian_process import row_blocks
from botorch_lse.planning.problem import (
    BatchPosterior,
    BatchProblem,
    JointBatchPosterior,
)
from botorch_lse.planning.relaxation import relaxed_counts

logger = logging.getLogger(__name__)

ROUNDINGS = ("exchange", "quota", "sample")
TOLERANCE = 0.1
"""The design's certified gap where it is only rounded, which loses several times more.
"""
FINE = 1e-2
"""The same where it is improved afterwards: from a coarser design the exchange ends now
and then in a batch that is a tenth worse."""
SMALL_BATCH = 64
"""Batches up to this size are also built by greedy steps: there rounding costs most."""
ENTRIES = 2**22
"""Numbers in one table of targets by rows (32 MB): fewer targets for more rows."""
FINALISTS = 64
"""Rows whose greedy step is checked on all targets, where not all of them can be."""
TRIED = 16
"""Rows tried for removal, and for addition, in one swap; all in a small pool."""
SMALL_POOL = 64
"""In a pool of at most so many rows every swap is evaluated."""
SHARPNESS = 30.0
"""Targets weigh ``(variance / largest)^30`` when rows are ranked for a swap."""
LEADING = 64
"""Targets that rank the rows for a swap; the weights of others are negligible."""
MAX_SWAPS = 60
"""Swaps at most, a bound on the time: usually no swap helps long before."""
PROGRESS = 1e-9
"""A swap must lower the value by this share: smaller gains are rounding."""


def designed_batch(
    problems: Sequence[BatchProblem],
    q: int,
    allowed: Tensor,
    *,
    rounding: str = "exchange",
    method: str = "quota",
    tol: float | None = None,
    from_nothing: bool | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""How often to measure each row so that the largest variance becomes small.

    The optimal design of the relaxed problem is rounded to ``q`` observations. Then,
    unless ``rounding`` says otherwise, single observations are swapped for others while
    that helps; a batch built by greedy steps is improved likewise, and the better of
    the two is taken. Replicates are allowed where they are better. Several outputs are
    judged by the one that fares worst.

    Args:
        problems: One per output.
        q: The size of the batch.
        allowed: ``N``, how often each row may be in the batch.
        rounding: ``"exchange"``: as above. ``"quota"``: the rounded design alone, in a
            fraction of the time. ``"sample"``: independent draws from the design.
        method: How the design is rounded before an exchange, ``"quota"`` or
            ``"sample"``.
        tol: The relative gap of the relaxed design; default ``FINE`` before an
            exchange, else ``TOLERANCE``.
        from_nothing: Whether to try greedy steps besides the design; default for
            batches up to ``SMALL_BATCH`` that are improved by exchange.
        generator: The source of randomness of ``"sample"``.

    Returns:
        ``N`` counts that sum to ``q``, or to all that is allowed if that is less.
    """
    allowed = allowed.clamp(0, q)
    q = min(q, int(allowed.sum()))
    if q == 0:
        return torch.zeros_like(allowed)
    is_improved = rounding == "exchange"
    method = method if is_improved else rounding
    if tol is None:
        tol = FINE if is_improved else TOLERANCE
    counts = relaxed_counts(problems, q, allowed > 0, tol, method, generator)
    rounded = JointBatchPosterior.of(problems, torch.minimum(counts, allowed))
    # The design knows no limit on repeats: greedy steps replace what exceeds it.
    batches = {"design": greedy(rounded, q, allowed)}
    if from_nothing or (from_nothing is None and is_improved and q <= SMALL_BATCH):
        nothing = JointBatchPosterior.of(problems, torch.zeros_like(counts))
        batches["greedy"] = greedy(nothing, q, allowed)
    if is_improved:
        batches = {k: exchange_pairs(b, allowed) for k, b in batches.items()}
    values = {name: batch.value for name, batch in batches.items()}
    winner = min(values, key=values.__getitem__)  # the design if they tie
    logger.debug("The %s batch won; worst variances: %s.", winner, values)
    return batches[winner].counts


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
        batch = batch.with_observation(_best_addition(batch, batch.counts < allowed))
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
    # Equal up to rounding: the lowest row, so that every processor takes the same one.
    scale = max(part.problem.scale for part in batch.parts)
    tied = least <= least.min() + 1e-9 * scale
    return int(rows[tied.nonzero()[0, 0]])


def _left_after(batch: JointBatchPosterior, rows: Tensor, many: int) -> Tensor:
    r"""The largest variance that one observation of each row would leave.

    Args:
        batch: The batch so far.
        rows: ``r`` rows that may be added.
        many: How many targets, those of largest variance, to consider.

    Returns:
        ``r`` variances, the largest over targets and outputs.
    """
    outputs = [_left_in_output(part, rows, many) for part in batch.parts]
    return torch.stack(outputs).amax(dim=0)


def _left_in_output(batch: BatchPosterior, rows: Tensor, many: int) -> Tensor:
    r"""``_left_after`` for one output: ``r`` variances."""
    problem = batch.problem
    ids, left = batch.worst(min(batch.n_targets, many))
    total = batch.variance[rows] + problem.noise_var[rows]
    parts = []
    for b in row_blocks(rows.numel(), ids.numel()):
        C = batch.target_covariance(ids, rows[b])
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
    r"""The batch after the best of the promising swaps; ``None`` if there is none."""
    added, removed = _promising(batch, allowed)
    if added.numel() == 0:
        return None
    outputs = [_after_swaps(part, added, removed) for part in batch.parts]
    after = torch.stack(outputs).amax(dim=0)
    after[removed.unsqueeze(-1) == added] = torch.inf  # no swap of a row for itself
    i, j = divmod(int(after.argmin()), added.numel())
    counts = batch.counts.clone()
    counts[removed[i]] -= 1
    counts[added[j]] += 1
    return JointBatchPosterior.of([part.problem for part in batch.parts], counts)


def _after_swaps(batch: BatchPosterior, added: Tensor, removed: Tensor) -> Tensor:
    r"""``removed x added`` largest variances, one for each swap.

    A swap changes the covariances by a matrix of rank two: removing an observation adds
    a rank-one term, adding one subtracts a rank-one term.
    """
    noise = batch.problem.noise_var
    many = ENTRIES // (added.numel() * removed.numel())
    ids, left = batch.worst(min(batch.n_targets, many))
    # Without observation g covariances rise by u_g u_g' ...
    first = (batch.rows == removed.unsqueeze(-1)).to(torch.uint8).argmax(dim=-1)
    u = batch.rise_without(first)
    u_out = batch.at_targets(ids, lambda points: u[:, points].mT).unsqueeze(2)
    u_in = u[:, added]
    before = left[:, None, None] + u_out.square()  # t x removed x added
    # ... and with observation x they fall by c_x c_x' / (noise_x + var_x).
    link = batch.target_covariance(ids, added).unsqueeze(1) + u_out * u_in
    total = noise[added] + batch.variance[added] + u_in.square()
    return (before - link.square() / total).amax(dim=0)


def _promising(batch: JointBatchPosterior, allowed: Tensor) -> tuple[Tensor, Tensor]:
    r"""Rows worth adding to a batch, and rows worth removing from it.

    Ranked by how much an observation of the row lowers the largest variances.
    """
    N = batch.counts.numel()
    free = (batch.counts < allowed).nonzero().squeeze(-1)
    held = batch.counts.nonzero().squeeze(-1)
    if N <= SMALL_POOL:
        return free, held
    gain, largest = torch.zeros_like(batch.parts[0].variance[:N]), batch.value
    for part in batch.parts:
        ids, left = part.worst(LEADING)
        w = (left / largest) ** SHARPNESS if largest > 0 else torch.ones_like(left)
        total = part.variance[:N] + part.problem.noise_var
        C = part.target_covariance(ids, slice(0, N))
        gain += (w.unsqueeze(-1) * C.square()).sum(dim=0) / total
    added = free[gain[free].topk(min(TRIED, free.numel())).indices]
    removed = held[gain[held].topk(min(TRIED, held.numel()), largest=False).indices]
    return added, removed
