r"""From weights to integer counts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_lse.checks import non_negative_vector, real_matrix, whole_number
from botorch_lse.designs.regret import regret_counts

METHODS = ("quota", "pukelsheim", "regret", "sample")
MOST = 10**17
"""Measurements at most: their shares are no whole numbers in float64 beyond."""
LARGEST = {"quota": MOST, "pukelsheim": MOST, "regret": 10**6, "sample": 10**8}
"""``"regret"`` decomposes a matrix per measurement; ``"sample"`` holds all draws."""
TOO_LARGE = {
    **dict.fromkeys(("quota", "pukelsheim"), "The weights themselves say as much."),
    **dict.fromkeys(("regret", "sample"), 'Use `method="quota"`.'),
}
SUM_TOLERANCE = 1e-6
"""How far weights may be from summing to one: float32 weights of a large pool are."""
TIE = 1e-9
"""Deficits this close are equal; the lowest row wins."""
PLAYED = 20_000
"""The quota method plays at most so many last observations one by one."""


def round_design(
    weights: Any,
    n: int,
    method: str = "quota",
    X: Any = None,
    generator: torch.Generator | None = None,
    kappa: float | None = None,
) -> Tensor:
    r"""How often to observe each point, ``n`` observations in all.

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
    if method in METHODS and n > LARGEST[method]:
        raise ValueError(
            f"Expected `n` of at most {LARGEST[method]:.0e} for `method={method!r}`, "
            f"but got {n:.3g}. {TOO_LARGE[method]}"
        )
    if method == "quota":
        return quota_counts(masses, n)
    if method == "pukelsheim":
        return pukelsheim_counts(masses, n)
    if method == "regret":
        if X is None:
            raise ValueError('Expected the features `X` for `method="regret"`.')
        return regret_counts(masses, n, real_matrix(X, "X").to(masses), kappa)
    if method == "sample":
        return sampled_counts(masses, n, generator)
    raise ValueError(f"Expected `method` to be one of {METHODS}, but got {method!r}.")


def on_simplex(weights: Any) -> Tensor:
    r"""Float64 weights, non-negative, rescaled to sum to one exactly.

    Raises:
        ValueError: If they do not sum to one within ``SUM_TOLERANCE``.
    """
    length = len(weights) if hasattr(weights, "__len__") else 0
    masses = non_negative_vector(weights, "weights", length, "row")
    total = float(masses.sum())
    if abs(total - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"Expected `weights` to sum to one, but the sum is {total:g}. Divide by it "
            "if only the proportions matter."
        )
    return masses / total


def quota_counts(weights: Tensor, n: int) -> Tensor:
    r"""Play ``argmax_x lam_x t - n_x`` for ``t = 1 .. n``.

    Above ``PLAYED`` observations the first are given out at once, as the floors of
    their shares: the counts stay within one of ``n * weights``, but a sequence is then
    a prefix of a longer one only up to such differences.
    """
    support = weights.nonzero().squeeze(-1)
    share = weights[support].cpu().numpy()
    played = min(n, max(PLAYED, 2 * support.numel()))
    counts = (share * (n - played)).astype("int64")
    for t in range(int(counts.sum()) + 1, n + 1):
        deficit = share * t - counts
        counts[(deficit >= deficit.max() - TIE).argmax()] += 1
    return _scatter(support, torch.as_tensor(counts), weights)


def pukelsheim_counts(weights: Tensor, n: int) -> Tensor:
    r"""Efficient apportionment: ``max_i (n_i - 1) / lam_i <= min_j n_j / lam_j``.

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
    scaled = torch.as_tensor((n - support.numel() / 2) * share)
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
    r"""Counts of ``n`` independent draws.

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


def _scatter(support: Tensor, counts: Tensor, weights: Tensor) -> Tensor:
    full = torch.zeros_like(weights, dtype=torch.long)
    full[support] = counts.to(weights.device, torch.long)
    return full
