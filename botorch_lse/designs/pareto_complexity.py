r"""The hardness of finding a Pareto set, from the true means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_lse.checks import real_matrix
from botorch_lse.designs.basis import span_map
from botorch_lse.pareto import pareto_gaps


@dataclass(frozen=True, eq=False)
class ParetoComplexity:
    r"""``sum`` and ``max`` of inverse squared gaps, smallest gaps first.

    Args:
        gaps: ``K`` gaps, units of ``y``.
        H_1: ``sum_i 1 / gap_i^2`` over all arms.
        H_2: ``max_i i / gap_(i)^2`` over all arms, gaps ascending.
        H_1_lin: ``H_1`` over the ``rank`` smallest gaps.
        H_2_lin: ``H_2`` over the ``rank`` smallest gaps.
        rank: The rank of the features; ``K`` without features.
    """

    gaps: Tensor
    H_1: float
    H_2: float
    H_1_lin: float
    H_2_lin: float
    rank: int


def pareto_complexity(means: Any, X: Any = None) -> ParetoComplexity:
    r"""``H_1``, ``H_2`` and their linear forms.

    Args:
        means: ``K x m`` true means, all outputs maximised.
        X: ``K x h`` features of the arms; ``None``: unstructured, the linear forms
            equal the others.

    Returns:
        Infinite values where a gap is 0: two arms tie and no budget separates them.

    Source:
        Kone et al. (2025), section 2.1, Eq. (1) and (2).
    """
    values = real_matrix(means, "means")
    K = values.shape[0]
    rank = K if X is None else span_map(real_matrix(X, "X")).shape[1]
    gaps = pareto_gaps(values)
    inverse = gaps.sort().values ** -2.0
    ranked = inverse * torch.arange(1, K + 1).to(inverse)
    return ParetoComplexity(
        gaps,
        float(inverse.sum()),
        float(ranked.max()),
        float(inverse[:rank].sum()),
        float(ranked[:rank].max()),
        rank,
    )
