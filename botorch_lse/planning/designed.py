r"""Batches that make the worst variance small: relax, round, exchange."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import torch
from torch import Tensor

from botorch_lse.planning.batch_posterior import JointBatchPosterior
from botorch_lse.planning.problem import BatchProblem
from botorch_lse.planning.relaxation import relaxed_counts
from botorch_lse.planning.search import exchange_pairs, greedy

logger = logging.getLogger(__name__)

ROUNDINGS = ("exchange", "quota", "sample")
TOLERANCE = 0.1
"""The design's certified gap where it is only rounded, which loses several times more.
"""
FINE = 1e-2
"""The same where it is improved afterwards: from a coarser design the exchange ends now
and then in a batch that is a tenth worse."""
SMALL = 64
"""Batches up to this size are also built by greedy steps: there rounding costs most."""


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
            batches up to ``SMALL``.
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
    # Rows that may not come so often are replaced one by one.
    batches = {"design": greedy(rounded, q, allowed)}
    if from_nothing or (from_nothing is None and is_improved and q <= SMALL):
        nothing = JointBatchPosterior.of(problems, torch.zeros_like(counts))
        batches["greedy"] = greedy(nothing, q, allowed)
    if is_improved:
        batches = {k: exchange_pairs(b, allowed) for k, b in batches.items()}
    values = {name: batch.value for name, batch in batches.items()}
    winner = min(values, key=values.__getitem__)  # the design if they tie
    logger.debug("The %s batch won; worst variances: %s.", winner, values)
    return batches[winner].counts
