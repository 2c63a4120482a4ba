r"""Tests of the stated noise and model against the values that were told."""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy  # which loads its packages when they are first used
import torch
from torch import Tensor

ALARM = 1e-4
"""The probability of a false alarm by each test.
It is small, as a run is tested after every round."""
SAME = 1e-6
"""The share of the range of all values within which exact values of a row are equal.
Decimals differ in the last digit, and single precision in the seventh."""
DELTA = 0.05
"""One minus the confidence of the noise that replaces a stated one."""
CLEARLY = 5.0
"""The standard deviations of the noise beyond which a value is off its prediction."""
FEW = 0.1
"""The share of the values that may be off, and two at least: one may be a slip."""
SLIGHT = 0.01
"""The share of the values' standard deviation below which being off does not matter."""


@dataclass(frozen=True, eq=False)
class Refuted:
    r"""A finding that repeated measurements differ more than the stated noise allows.

    Args:
        places: ``n`` bools: the values of rows that do.
        is_everywhere: Whether the noise is larger as a whole, not in these rows only.
        variances: ``n`` noise variances that the repeats allow: of all of them, or of
            the row of each value.
    """

    places: Tensor
    is_everywhere: bool
    variances: Tensor

    @property
    def largest(self) -> float:
        r"""The largest noise variance that replaces a stated one."""
        return float(self.variances[self.places].max())


def by_repeats(points: Tensor, y: Tensor, noise_var: Tensor) -> Refuted | None:
    r"""Whether repeated measurements refute their noise variances (chi-square).

    Args:
        points: ``n`` numbers of the points that were measured.
        y: ``n`` values of one output.
        noise_var: ``n`` variances that are stated.

    Returns:
        What is refuted: the noise of few points, if the others agree with it, else that
        of all. ``None`` if nothing is, which has a probability of ``1 - ALARM`` at
        least where the variances are the true ones.
    """
    each, group, counts = points.unique(return_inverse=True, return_counts=True)
    freedom = (counts - 1).double()
    if not bool(freedom.any()):
        return None
    variance = noise_var.clamp_min((SAME * float(y.max() - y.min())) ** 2)
    if not bool((variance > 0).all()):  # all values are equal
        return None
    zero = torch.zeros(len(each), dtype=torch.float64)
    weight = zero.index_add(0, group, 1 / variance)
    residual = y - (zero.index_add(0, group, y / variance) / weight)[group]
    chi = zero.index_add(0, group, residual.square() / variance)
    within = zero.index_add(0, group, residual.square())
    repeated = freedom > 0
    n = int(repeated.sum())
    bad = repeated & (_beyond(chi, freedom) < ALARM / 2 / n)
    rest = repeated & ~bad
    others, left = chi[rest].sum(), freedom[rest].sum()
    if 2 * int(bad.sum()) > n or float(_beyond(others, left)) < ALARM / 2:
        worst = chi == chi[repeated].max()  # each by itself may still agree
        at = repeated & ((_beyond(chi, freedom) < DELTA) | worst)
        total = _at_most(within.sum(), freedom.sum())
        return Refuted(at[group], True, total.expand(len(y)))
    if not bool(bad.any()):
        return None
    limits = zero.index_put((bad,), _at_most(within[bad], freedom[bad]))
    return Refuted(bad[group], False, limits[group])


def _beyond(chi: Tensor, freedom: Tensor) -> Tensor:
    r"""The probability that chi-square is larger; 1 without degrees of freedom."""
    found = torch.special.gammaincc(freedom.clamp_min(1.0) / 2, chi / 2)
    return torch.where(freedom > 0, found, 1.0)


def _at_most(within: Tensor, freedom: Tensor) -> Tensor:
    r"""The upper limit of the variance, from sums of squares within rows."""
    # `scipy.stats.chi2.ppf`, which takes half a second to load.
    least = 2 * scipy.special.gammaincinv(freedom.cpu().numpy() / 2, DELTA)
    return within / torch.as_tensor(least)


def off_their_values(L: Tensor, a: Tensor, y: Tensor, noise_var: Tensor) -> Tensor:
    r"""Whether values are far from what the model that knows them says (``n`` bools).

    The residual is ``y - mean = v (L L')^-1 (y - m)``. Its standard deviation is at
    most that of the noise if the model is right, so that ``CLEARLY`` is a small
    probability.

    Args:
        L: ``n x n`` factor of the covariance of the values, noise included.
        a: ``n`` whitened residuals ``L^-1 (y - m)``.
        y: ``n`` values.
        noise_var: ``n`` noise variances ``v``.
    """
    solved = torch.linalg.solve_triangular(L.mT, a.unsqueeze(-1), upper=True)
    residual = (noise_var * solved.squeeze(-1)).abs()
    is_off = residual > CLEARLY * noise_var.sqrt()
    return is_off & (residual > SLIGHT * y.std(correction=0))


def are_many(is_off: Tensor) -> bool:
    r"""Whether enough values are off to doubt the model rather than the values."""
    return int(is_off.sum()) > max(1.0, FEW * len(is_off))


def norm_refuted(L: Tensor, a: Tensor, noise_var: Tensor, bound: float) -> bool:
    r"""Whether the values need a function with a larger norm than the stated one.

    The norm of the posterior mean, ``C = K + V`` and ``r = y - m``, is that of ``f`` at
    most, and of the noise: ``sqrt(r' C^-1 K C^-1 r) <= |f| + sqrt(e' C^-1 K C^-1 e)``.
    The last term is a weighted sum of squares of standard normal numbers, whose weights
    are at most a quarter.

    Args:
        L: ``n x n`` factor of ``C``.
        a: ``n`` whitened residuals ``L^-1 r``.
        noise_var: ``n`` noise variances, the diagonal of ``V``.
        bound: Of the norm of ``f`` less the prior mean.

    Source:
        Laurent and Massart (2000), Lemma 1, for the quantile at ``1 - ALARM``.
    """
    solved = torch.linalg.solve_triangular(L.mT, a.unsqueeze(-1), upper=True)
    squared = a.square().sum() - (noise_var * solved.squeeze(-1).square()).sum()
    root = noise_var.sqrt()
    share = root.unsqueeze(-1) * torch.cholesky_inverse(L) * root
    weights = share - share @ share
    x = math.log(1 / ALARM)
    noise = weights.trace() + 2 * float(weights.square().sum() * x) ** 0.5 + x / 2
    return float(squared.clamp_min(0.0)) ** 0.5 > bound + float(noise) ** 0.5
