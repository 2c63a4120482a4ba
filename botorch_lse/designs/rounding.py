r"""Rounding of a design's weights to whole numbers of observations.

The methods are apportionment, random draws, and swapping single observations.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._numerals import written
from botorch_lse._validation import (
    check_shape,
    in_interval,
    non_negative_vector,
    one_of,
    real_matrix,
    whole_number,
)
from botorch_lse.designs.basis import Covariance, span_map
from botorch_lse.designs.certificate import information, sensitivities, whiten
from botorch_lse.designs.optimal import DesignWarning, basis_for
from botorch_lse.designs.problem import Problem, feature_problem, read_arguments

MOST = 10**17
"""The largest number of measurements whose shares float64 holds as whole numbers."""
LARGEST = {"quota": MOST, "pukelsheim": MOST, "regret": 10**6, "sample": 10**8}
"""The largest number of measurements for each method.
``"regret"`` decomposes a matrix per measurement, ``"sample"`` holds all draws."""
SUM_TOLERANCE = 1e-6
"""The distance from one that a sum of weights may have: float32 weights have it."""
TIE = 1e-9
"""The difference below which deficits are equal; the lowest row wins."""
ONE_BY_ONE = 20_000
"""The largest number of last observations that the quota method gives one by one."""
LARGEST_KAPPA = 1 / 3
"""The accuracy of ``"regret"`` beyond which its theorem says nothing."""
TRIED = 12
"""The number of points tried for removal, and for addition: 144 swaps at a time."""
WORST = 500
"""The number of targets in the trial of a swap; the one chosen is checked on all."""
SHARPNESS = 30.0
"""The power of ``norm / largest`` by which targets weigh when points are ranked."""
BASIS_ERROR = 1e-4
"""The relative error of the value by a kernel's features while swaps are compared."""


def round_design(
    weights: Any,
    n: int,
    method: str = "quota",
    X: Any = None,
    generator: torch.Generator | None = None,
    kappa: float | None = None,
) -> Tensor:
    r"""The number of observations at each point, ``n`` in all.

    Example:
        >>> round_design([0.5, 0.3, 0.2], 10).tolist()
        [5, 3, 2]

    Args:
        weights: ``N`` weights on the simplex.
        n: The number of observations, at least 1.
        method: ``"quota"``: at each step the point that lags most behind its share; any
            budget, and a larger budget only adds observations. ``"pukelsheim"``:
            efficient apportionment; ``n`` at least the support. ``"regret"``: regret
            minimisation on the features ``X``, with the guarantee ``1 + 6 kappa`` for
            ``n >= 5 h / kappa^2``, ``h`` the rank, ``kappa <= 1/3``. ``"sample"``:
            independent draws, which inverse-propensity estimators need.
        X: ``N x m`` features, needed by ``"regret"`` and used by no other method.
        generator: The source of randomness, needed by ``"sample"``.
        kappa: The accuracy of ``"regret"``, in (0, 1/3]; default the smallest that
            ``n`` allows.

    Returns:
        ``N`` int64 counts that sum to ``n``, on the device of ``weights``.

    Raises:
        ValueError: If ``weights`` is not on the simplex, ``n`` is too small or beyond
            what ``method`` can count (``LARGEST``), or ``method`` lacks what it needs.

    Source:
        Quota: own name for the tracking rule of Antos et al. (2010). Pukelsheim and
        Rieder (1992). Allen-Zhu et al. (2017), as ``ROUND`` in Kone et al. (2025),
        Theorem 4. Sampling: Camilleri et al. (2021), as used by Mason et al. (2022).
    """
    masses = on_simplex(weights)
    n = whole_number(n, "n", 1)
    one_of(method, "method", tuple(LARGEST))
    if n > LARGEST[method]:
        said = "The weights themselves say as much."
        remedy = said if LARGEST[method] == MOST else 'Use `method="quota"`.'
        raise ValueError(
            f"Expected `n` of at most {LARGEST[method]:.0e} for `method={method!r}`, "
            f"but got {n:.3g}. {remedy}"
        )
    if method == "quota":
        return quota_counts(masses, n)
    if method == "pukelsheim":
        return pukelsheim_counts(masses, n)
    if method == "sample":
        return sampled_counts(masses, n, generator)
    if X is None:
        raise ValueError('Expected the features `X` for `method="regret"`.')
    return regret_counts(masses, n, real_matrix(X, "X").to(masses), kappa)


def on_simplex(weights: Any) -> Tensor:
    r"""The weights in float64, non-negative, rescaled to sum to one exactly.

    Raises:
        ValueError: If they do not sum to one within ``SUM_TOLERANCE``.
    """
    length = len(weights) if hasattr(weights, "__len__") else 0
    masses = non_negative_vector(weights, "weights", length, "row")
    total = float(masses.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"Expected `weights` to sum to one, but the sum is {written(total)}. "
            "Divide by it if only the proportions matter."
        )
    return masses / total


def quota_counts(weights: Tensor, n: int) -> Tensor:
    r"""The counts by quota: observation ``t`` goes to ``argmax_x lam_x t - n_x``.

    No count of ``k`` points is ahead of its share by one, or behind it by more than
    ``1/2 + 1/3 + ... + 1/k``: of the ``j`` points that lag most, the mean lag is at
    most the sum from ``1/(j + 1)`` on, by induction from all of them, whose lags sum
    to zero. Above ``ONE_BY_ONE`` observations the first are given out at once, as the
    floors of their shares: a sequence is then a prefix of a longer one only up to such
    differences.
    """
    support = weights.nonzero().squeeze(-1)
    share = weights[support].cpu().numpy()
    # At least twice the support, so that steps can even out the floors' errors.
    last = min(n, max(ONE_BY_ONE, 2 * support.numel()))
    counts = (share * (n - last)).astype("int64")
    for t in range(int(counts.sum()) + 1, n + 1):
        deficit = share * t - counts
        counts[(deficit >= deficit.max() - TIE).argmax()] += 1
    return _scatter(support, torch.as_tensor(counts), weights)


def pukelsheim_counts(weights: Tensor, n: int) -> Tensor:
    r"""The efficient apportionment, ``max_i (n_i - 1) / lam_i <= min_j n_j / lam_j``.

    Start from ``ceil((n - s / 2) lam_i)`` for a support of ``s`` points; take from the
    largest ``(n_i - 1) / lam_i`` or give to the smallest ``n_i / lam_i`` until the sum
    is ``n``.

    Raises:
        ValueError: If ``n`` is smaller than the support.

    Source:
        Pukelsheim and Rieder (1992); Pukelsheim (2006), section 12.6.
    """
    # Subnormal weights overflow where counts are divided by them.
    weights = torch.where(weights < torch.finfo(weights.dtype).tiny, 0.0, weights)
    support = weights.nonzero().squeeze(-1)
    if n < support.numel():
        raise ValueError(
            f"Expected `n` of at least the support, {support.numel()}, for "
            f'`method="pukelsheim"`, but got {n}. Use `method="quota"`.'
        )
    share = weights[support].cpu().numpy()
    scaled = torch.from_numpy((n - support.numel() / 2) * share)
    # `TIE`: a share that is whole but for rounding must not be rounded up.
    counts = (scaled - TIE).ceil().clamp_min(1).long().numpy()
    for _ in range(abs(int(counts.sum()) - n)):
        if counts.sum() > n:
            counts[((counts - 1) / share).argmax()] -= 1
        else:
            counts[(counts / share).argmin()] += 1
    return _scatter(support, torch.as_tensor(counts), weights)


def sampled_counts(
    weights: Tensor, n: int, generator: torch.Generator | None
) -> Tensor:
    r"""The counts of ``n`` independent draws from the weights.

    Raises:
        ValueError: If there is no ``generator``.
    """
    if not isinstance(generator, torch.Generator):
        raise ValueError(
            'Expected a `generator`, a torch.Generator, for `method="sample"`, but got '
            f"{type(generator).__name__}. Write `torch.Generator().manual_seed(0)`."
        )
    masses = weights.to(generator.device)
    draws = torch.multinomial(masses, n, replacement=True, generator=generator)
    return draws.bincount(minlength=weights.numel()).to(weights.device)


def regret_counts(
    weights: Tensor, n: int, X: Tensor, kappa: float | None = None
) -> Tensor:
    r"""The counts by regret minimisation, with a guarantee for every set of targets.

    The method is "follow the regularised leader" with the ``l_1/2`` regulariser.

    In coordinates where ``n sum lam x x' = I``, step ``t`` has the action
    ``A = (c I + alpha Z)^-2`` with ``trace A = 1`` and ``Z`` the sum of ``x x'`` so
    far, ``alpha = sqrt(h) / kappa``, and takes the point with the largest
    ``x'Ax / (1 + alpha x' A^1/2 x)``. For ``n >= 5 h / kappa^2`` the worst squared norm
    is at most ``1 + 6 kappa`` times that of the weights, whatever the targets.

    Args:
        weights: ``N``, on the simplex.
        n: The number of observations.
        X: ``N x m`` features.
        kappa: The accuracy, in (0, 1/3], or ``None``: the smallest ``n`` allows.

    Source:
        Allen-Zhu, Li, Singh and Wang (2017), section 3; Kone et al. (2025), Theorem 4.
        Choice: only the support of ``weights`` is observed, to which the averaging
        argument of the proof applies.
    """
    N = weights.numel()
    check_shape(len(X) == N, X, "X", f"with one row per weight ({N})")
    support = weights.nonzero().squeeze(-1)
    share, Phi = weights[support], X[support]
    Phi = Phi @ span_map(Phi)
    whitener = torch.linalg.cholesky(n * information(Phi, share, 0.0))
    x = torch.linalg.solve_triangular(whitener, Phi.mT, upper=False).mT
    h = x.shape[1]
    if kappa is None:  # the smallest with n >= 5 h / kappa^2
        kappa = min(LARGEST_KAPPA, (5 * h / n) ** 0.5)
    kappa = in_interval(kappa, "kappa", 0.0, LARGEST_KAPPA, closed_high=True)
    alpha = h**0.5 / kappa
    counts = torch.zeros_like(support)
    Z = torch.zeros(h, h, dtype=x.dtype, device=x.device)
    for _ in range(n):
        values, vectors = torch.linalg.eigh(Z)
        root = 1 / (_shift(alpha * values) + alpha * values)
        rotated = (x @ vectors).square()
        score = (rotated @ root.square()) / (1 + alpha * (rotated @ root))
        i = int(score.argmax())
        counts[i] += 1
        Z = Z + torch.outer(x[i], x[i])
    _warn_if_missed(float(torch.linalg.eigvalsh(Z)[0]), kappa, n, h)
    return _scatter(support, counts, weights)


def _shift(values: Tensor) -> Tensor:
    r"""The ``c`` with ``sum (c + values)^-2 = 1``, by Newton's method from the left.

    The sum is convex and falls in ``c``; at ``c = 1 - min(values)`` it is at least 1,
    and from there Newton's iterates rise towards the root.
    """
    c = 1 - values.min()
    for _ in range(60):
        inverse = 1 / (c + values)
        excess = inverse.square().sum() - 1
        step = excess / (2 * inverse.pow(3).sum())
        c = c + step
        if float(step) <= 1e-13 * max(1.0, abs(float(c))):
            break
    return c


def _warn_if_missed(smallest: float, kappa: float, n: int, rank: int) -> None:
    r"""Warn if the theorem applies but its inequality for matrices does not hold."""
    if n >= 5 * rank / kappa**2 * (1 - 1e-12) and smallest < 1 / (1 + 6 * kappa):
        warnings.warn(
            f"The rounded design misses its guarantee: its information is "
            f"{smallest:.3g} of the weights', below 1 / (1 + 6 kappa) = "
            f"{1 / (1 + 6 * kappa):.3g}. The features may be too ill-conditioned; use "
            "another `method`.",
            DesignWarning,
            stacklevel=3,
        )


def _scatter(support: Tensor, counts: Tensor, weights: Tensor) -> Tensor:
    full = torch.zeros_like(weights, dtype=torch.long)
    full[support] = counts.to(weights.device, torch.long)
    return full


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
        max_swaps: The largest number of swaps.

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
            f"is {written(read.sum())}."
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
        if improved >= value * (1 - 1e-9):  # a smaller gain is rounding
            break
        best, value = better, improved
    return best


def _value(problem: Problem, counts: Tensor) -> float:
    r"""The largest squared norm under the weights ``counts / n``."""
    L, _ = _factor(problem, counts)
    return problem.targets.largest(L, 1).largest


def _factor(problem: Problem, counts: Tensor) -> tuple[Tensor, Tensor]:
    r"""The factor of the information under ``counts / n``, and the rows observed."""
    columns = counts.nonzero().squeeze(-1)
    masses = counts[columns] / counts.sum().to(problem.Phi)
    L, _, _ = problem.factor(columns, masses)
    return L, columns


def _best_swap(problem: Problem, counts: Tensor) -> Tensor:
    r"""The counts after the best of the most promising swaps.

    Each swap is evaluated on the worst targets, by a rank-two update of ``A^-1``.
    """
    L, columns = _factor(problem, counts)
    found = problem.targets.largest(L, WORST)
    V = problem.targets.vectors(found.ids)
    w = torch.softmax(SHARPNESS * (found.norms / found.largest).log(), dim=0)
    s = sensitivities(problem.Phi, L, V, w)
    added = s.topk(min(TRIED, s.numel())).indices
    removed = columns[
        s[columns].topk(min(TRIED, columns.numel()), largest=False).indices
    ]
    n = int(counts.sum())
    Y = whiten(L, V)
    Z_in, Z_out = (whiten(L, problem.Phi[rows]) / n**0.5 for rows in (added, removed))
    b, c = Y @ Z_in.mT, Y @ Z_out.mT  # t x added, t x removed
    # By Woodbury's formula: A' = A + z_in z_in' - z_out z_out', and the 2 x 2 matrix
    # D + U' A^-1 U has the entries p, r and cross.
    p = 1 + Z_in.square().sum(dim=-1)[:, None]
    r = Z_out.square().sum(dim=-1)[None, :] - 1
    cross = Z_in @ Z_out.mT
    determinant = p * r - cross.square()
    b, c = b[:, :, None], c[:, None, :]
    change = (b.square() * r - 2 * b * c * cross + c.square() * p) / determinant
    worst = (found.norms[:, None, None] - change).amax(dim=0)
    # Only then is A' positive definite: det A' = -determinant * det A.
    worst = torch.where(determinant < 0, worst, torch.inf)
    i, j = divmod(int(worst.argmin()), removed.numel())
    swapped = counts.clone()
    swapped[added[i]] += 1
    swapped[removed[j]] -= 1
    return swapped
