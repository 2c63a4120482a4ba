r"""The next batch: a design on what is undecided, on top of what is known."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from botorch_lse.confidence.self_normalised import Information
from botorch_lse.designs import DesignWarning, optimal_design, round_design
from botorch_lse.strategies.linear.belief import Questions

DESIGN_TOLERANCE = 2e-2
START = 0.1
"""The first design's information that counts as known, in measurements: with it every
direction has a finite norm, and unmeasured ones by far the largest."""
ENOUGH = 2
"""So many measurements per point of the design round efficiently; below, quota."""


def gap_weights(questions: Questions, norms: Tensor) -> Tensor | None:
    r"""One over the squared gaps, each floored by its standard error."""
    if questions.gaps is None:
        return None
    floored = torch.maximum(questions.gaps.square(), norms)
    weights = floored.clamp_min(torch.finfo(norms.dtype).tiny).reciprocal()
    return torch.where(weights.isfinite(), weights, 0.0)


def next_weights(
    rows: Tensor,
    known: Tensor,
    W: Tensor,
    questions: Questions,
    size: int,
    weighted: bool,
) -> Tensor:
    r"""Weights that make the worst undecided direction's variance smallest.

    ``min over lam of max_v w_v v' (V + n sum lam z z')^-1 v`` for a batch of ``n``.

    Args:
        rows: ``N x h``, the features over their noise scales.
        known: ``h x h``, ``V`` of what was measured.
        W: ``h x h``, the first design's information.
        questions: The directions.
        size: ``n``.
        weighted: Whether ``w_v`` are the gaps' weights, or ones.
    """
    L = torch.linalg.cholesky(known + START * W)
    norms = _whitened(L, questions.vectors).square().sum(dim=-1)
    weights = gap_weights(questions, norms) if weighted else None
    if not bool((norms > 0).any()):
        return torch.full_like(rows[:, 0], 1 / len(rows))
    with warnings.catch_warnings():
        # A design that is a little worse costs a few measurements, no validity.
        warnings.simplefilter("ignore", DesignWarning)
        design = optimal_design(
            _whitened(L, rows),
            _whitened(L, questions.vectors),
            gamma=1 / size,
            target_weights=None if weights is None else weights / weights.max(),
            tol=DESIGN_TOLERANCE,
        )
    return design.weights


def _whitened(L: Tensor, vectors: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(L.mT, vectors, upper=True, left=False)


def rounded(weights: Tensor, size: int, left: Tensor) -> Tensor:
    r"""``N`` counts that sum to ``size``, or to all that is ``left``.

    Args:
        weights: ``N`` weights on the simplex.
        size: Measurements wanted.
        left: ``N``, how often each row may still be measured.
    """
    counts = torch.zeros_like(left)
    weights = torch.where(left > 0, weights, 0.0)
    while size > 0 and bool((left > counts).any()):
        if float(weights.sum()) <= 0:  # the design's rows are used up
            weights = (left > counts).to(weights)
        weights = weights / weights.sum()
        few = size < ENOUGH * int((weights > 0).sum())
        more = round_design(weights, size, "quota" if few else "pukelsheim")
        more = torch.minimum(more, left - counts)
        counts, size = counts + more, size - int(more.sum())
        weights = torch.where(left > counts, weights, 0.0)
    return counts


def information_of(rows: Tensor, counts: Tensor, W: Tensor) -> Information:
    r"""The information of so many measurements of each row."""
    return Information.of((counts.unsqueeze(-1) * rows).mT @ rows, W)
