r"""The rivals of HEAD: the uniform estimator and that of separate arms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import real_matrix
from botorch_lse.designs.basis import span_map, spanning_rows
from botorch_lse.estimators import (
    ArmStatistics,
    VarianceEstimate,
    head_from_arms,
    quadratic_features,
)
from botorch_lse.estimators.variance import variances_from_residuals

MAX_SWAPS = 200


def uniform_variance(
    X: Any, indices: Any, y: Any, bounds: Any = None
) -> VarianceEstimate:
    r"""The uniform estimator: one sample for ``theta`` and its squared residuals.

    Meant for arms drawn uniformly. Arguments: see ``head``.

    Source:
        Weltz et al. (2023), Algorithm 3, on the span of the features.
    """
    X = real_matrix(X, "X")
    return uniform_from_arms(X, ArmStatistics.of_values(indices, y, len(X)), bounds)


def uniform_from_arms(
    X: Tensor, data: ArmStatistics, bounds: Any = None
) -> VarianceEstimate:
    r"""``uniform_variance`` from sufficient statistics."""
    return head_from_arms(X, data, data, bounds)


def separate_arm_variance(
    X: Any, indices: Any, y: Any, bounds: Any = None
) -> VarianceEstimate:
    r"""The separate arm estimator: each arm's own sample variance, then ``Sigma``.

    Meant for few arms measured equally often, ``separate_arms``. Arguments: see
    ``head``.

    Source:
        Weltz et al. (2023), Algorithm 4; the sample variance has divisor ``n`` as
        printed.
    """
    X = real_matrix(X, "X")
    data = ArmStatistics.of_values(indices, y, len(X))
    return separate_from_arms(X, data, bounds)


def separate_from_arms(
    X: Tensor, data: ArmStatistics, bounds: Any = None
) -> VarianceEstimate:
    r"""``separate_arm_variance`` from sufficient statistics."""
    return variances_from_residuals(
        X, None, data, data.squared_residuals(data.means), bounds
    )


def separate_arms(X: Any) -> Tensor:
    r"""The arms, as many as the rank of ``quadratic_features``, far from dependence.

    Pivoted Cholesky chooses arms; then arms are swapped as long as that enlarges the
    smallest singular value of their features. Each swap is the one that makes the
    squared Frobenius norm of the inverse smallest, which is cheap to evaluate for all
    swaps.

    Args:
        X: ``N x d`` features of the arms.

    Returns:
        The arms' row numbers, ascending.

    Source:
        Weltz et al. (2023), Appendix C, whose exact maximum over all subsets nobody can
        compute, with erratum 6 (papers/weltz2023/errata.md): the largest smallest
        singular value is meant. The search is own.
    """
    Phi = quadratic_features(real_matrix(X, "X"))
    chosen = spanning_rows(Phi @ span_map(Phi))
    basis = torch.linalg.qr(span_map(Phi)).Q
    Phi = Phi @ basis  # an isometry: the singular values are those of the features
    smallest = _smallest_singular_value(Phi[chosen])
    for _ in range(MAX_SWAPS):
        swapped = _best_swap(Phi, chosen)
        value = _smallest_singular_value(Phi[swapped])
        if value <= smallest * (1 + 1e-9):
            break
        chosen, smallest = swapped, value
    return chosen.sort().values


def _smallest_singular_value(rows: Tensor) -> float:
    return float(torch.linalg.svdvals(rows)[-1])


def _best_swap(Phi: Tensor, chosen: Tensor) -> Tensor:
    r"""The chosen arms with the swap after which ``|inverse|_F`` is smallest.

    With ``B`` the inverse, ``G = B' B`` and ``c = phi B``, putting ``phi`` in place of
    arm ``i`` changes the squared norm by ``-2 ((c G)_i - G_ii) / c_i + G_ii (|c|^2 - 2
    c_i + 1) / c_i^2`` (Sherman and Morrison).
    """
    B = torch.linalg.inv(Phi[chosen])
    G = B.mT @ B
    C = Phi @ B
    own = G.diagonal()
    lengths = C.square().sum(dim=1, keepdim=True)
    change = -2 * (C @ G - own) / C + own * (lengths - 2 * C + 1) / C.square()
    change[chosen] = torch.inf  # an arm is measured separately once
    change = change.nan_to_num(nan=torch.inf, posinf=torch.inf)
    new, old = divmod(int(change.argmin()), len(chosen))
    swapped = chosen.clone()
    swapped[old] = new
    return swapped
