r"""Improve integer counts by moving one observation at a time."""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.checks import non_negative_vector, whole_number
from botorch_lse.designs.certificate import sensitivities, whiten
from botorch_lse.designs.kernel import Covariance
from botorch_lse.designs.optimal import basis_for
from botorch_lse.designs.problem import Problem, feature_problem, read_arguments

TRIED = 12
"""Points tried as giver and as taker in one swap: 144 swaps are evaluated exactly."""
WORST = 500
"""Targets in the trial of a swap; the swap chosen is checked on all."""
SHARPNESS = 30.0
"""Targets weigh ``(norm / largest)^30`` when points are ranked for a swap."""
BASIS_ERROR = 1e-4


def exchange_design(
    counts: Any,
    X: Any,
    targets: Any = None,
    *,
    gamma: float = 0.0,
    noise_var: Any = None,
    target_weights: Any = None,
    pairs_factor: float | None = None,
    kernel: Kernel | Covariance | None = None,
    max_swaps: int = 60,
) -> Tensor:
    r"""Swap single observations while the worst squared norm falls.

    The value of ``counts`` is that of the weights ``counts / n``; the result's is never
    larger. Worth its time for budgets below about five times the support.

    Args:
        counts: ``N`` whole numbers, not all zero.
        X: See ``optimal_design``, as are the next six.
        targets: What to predict.
        gamma: The ridge.
        noise_var: ``N`` noise variances.
        target_weights: Factors of the squared norms.
        pairs_factor: ``c`` of the pairs.
        kernel: The kernel.
        max_swaps: Stop after so many swaps.

    Returns:
        ``N`` int64 counts with the same sum.

    Raises:
        ValueError: If ``counts`` holds no observation or a part of one.

    Source:
        Fedorov's exchange (1972), on the candidates that the certificate's
        sensitivities point to.
    """
    max_swaps = whole_number(max_swaps, "max_swaps", 0)
    arguments = read_arguments(
        X, targets, gamma, noise_var, target_weights, pairs_factor, kernel
    )
    read = non_negative_vector(counts, "counts", arguments.X.shape[0], "row of `X`")
    if not torch.equal(read, read.round()) or float(read.sum()) < 1:
        raise ValueError(
            "Expected `counts` to be whole numbers with a positive sum, but the sum "
            f"is {float(read.sum()):g}."
        )
    best = read.long().to(arguments.X.device)
    Phi, V = arguments.X, arguments.others
    if kernel is not None:
        Phi, V, _ = basis_for(arguments, arguments.kernel_problem(), BASIS_ERROR)
    problem = feature_problem(arguments, Phi, V)
    value = _value(problem, best)
    for _ in range(max_swaps):
        better = _best_swap(problem, best)
        improved = _value(problem, better)
        if improved >= value * (1 - 1e-9):
            break
        best, value = better, improved
    return best


def _value(problem: Problem, counts: Tensor) -> float:
    r"""The largest squared norm under the weights ``counts / n``."""
    L, _ = _factor(problem, counts)
    return problem.targets.largest(L, 1).largest


def _factor(problem: Problem, counts: Tensor) -> tuple[Tensor, Tensor]:
    r"""The factor of the information under ``counts / n``, and the rows that count."""
    columns = counts.nonzero().squeeze(-1)
    masses = counts[columns] / counts.sum().to(problem.Phi)
    L, _, _ = problem.factor(columns, masses)
    return L, columns


def _best_swap(problem: Problem, counts: Tensor) -> Tensor:
    r"""The best of the most promising swaps, by a rank-two update of ``A^-1``."""
    L, columns = _factor(problem, counts)
    found = problem.targets.largest(L, WORST)
    V = problem.targets.vectors(found.ids)
    w = torch.softmax(SHARPNESS * (found.norms / found.largest).log(), dim=0)
    s = sensitivities(problem.Phi, L, V, w)
    takers = s.topk(min(TRIED, s.numel())).indices
    givers = columns[
        s[columns].topk(min(TRIED, columns.numel()), largest=False).indices
    ]
    n = int(counts.sum())
    Y = whiten(L, V)
    Z_in, Z_out = (whiten(L, problem.Phi[rows]) / n**0.5 for rows in (takers, givers))
    b, c = Y @ Z_in.mT, Y @ Z_out.mT  # t x takers, t x givers
    # A' = A + z_in z_in' - z_out z_out'; the 2 x 2 capacitance is D + U' A^-1 U.
    p = 1 + Z_in.square().sum(dim=-1)[:, None]
    r = Z_out.square().sum(dim=-1)[None, :] - 1
    cross = Z_in @ Z_out.mT
    determinant = p * r - cross.square()
    b, c = b[:, :, None], c[:, None, :]
    change = (b.square() * r - 2 * b * c * cross + c.square() * p) / determinant
    worst = (found.norms[:, None, None] - change).amax(dim=0)
    worst = torch.where(determinant < 0, worst, torch.inf)
    i, j = divmod(int(worst.argmin()), givers.numel())
    swapped = counts.clone()
    swapped[takers[i]] += 1
    swapped[givers[j]] -= 1
    return swapped
