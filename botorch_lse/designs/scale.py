r"""The sizes of features, targets and ridge that float64 can work with.

Squares and fourth powers of the features are taken on the way to a norm. Dividing the
features and the targets by ``u`` and the ridge by ``u^2`` changes no norm, so features
of extraordinary size are brought near 1; what then is still out of range is refused.
"""

from __future__ import annotations

import math

from torch import Tensor

ORDINARY = (1e-30, 1e30)
"""Features whose largest entry is in here are used as they are."""
DIGITS = 140
"""Squared norms within ``10^-DIGITS`` to ``10^DIGITS`` have squares in float64."""
SMALLEST_RIDGE = 1e-13
"""A ridge below this fraction of the largest squared length of a column is lost in the
rounding of the information matrix: neither 0 nor itself is then being solved."""


def size_of(Phi: Tensor, gamma: float) -> float:
    r"""The root of the information, nearly: the largest feature or that of the ridge.

    Args:
        Phi: ``N x m`` features, noise divided out.
        gamma: The ridge.
    """
    return max(float(Phi.abs().max()), math.sqrt(gamma))


def unit_of(size: float) -> float:
    r"""``u``, a power of two, so that dividing is exact; 1 for ordinary sizes."""
    if size == 0 or ORDINARY[0] <= size <= ORDINARY[1]:
        return 1.0
    return math.ldexp(0.5, math.frexp(size)[1])


def refuse_out_of_range(size: float, V: Tensor, weights: Tensor | None) -> None:
    r"""Complain about norms whose squares float64 cannot hold.

    Args:
        size: See ``size_of``.
        V: ``T x m`` targets.
        weights: Factors of the squared norms, or ``None``.

    Raises:
        ValueError: If the squared norms, about ``|v|^2 / size^2``, are too large or too
            small.
    """
    reach = float(V.abs().max())
    if size == 0 or reach == 0:
        return
    digits = 2 * (math.log10(reach) - math.log10(size))
    if weights is not None:
        digits += math.log10(float(weights.max()))
    if not abs(digits) <= DIGITS:
        raise ValueError(
            "Expected `X` (over the root of `noise_var`), `targets`, `target_weights` "
            f"and `gamma` of sizes that give squared norms between 1e-{DIGITS} and "
            f"1e{DIGITS}, but they give about 1e{digits:.0f}, whose square float64 "
            "cannot hold. Give `targets` in another unit; the value goes with its "
            "square."
        )


def ridge_of(n: int, Phi: Tensor, noise_var: Tensor | None = None) -> float:
    r"""``1 / n``, the ridge of ``n`` measurements, or the least that float64 can see.

    Nearly exact measurements leave so little that a smaller one is lost in rounding:
    the design is then that for a little more noise.

    Args:
        n: How many measurements are placed.
        Phi: ``N x m`` features.
        noise_var: ``N`` noise variances in the units of ``Phi``; ``None``: ones.
    """
    lengths = Phi.square().sum(dim=-1)
    if noise_var is not None:
        lengths = lengths / noise_var
    return max(1 / n, 2 * SMALLEST_RIDGE * float(lengths.max()))


def refuse_lost_ridge(gamma: float, Phi: Tensor, unit: float) -> None:
    r"""Complain about a ridge that float64 cannot see beside the features.

    Args:
        gamma: The ridge as stated.
        Phi: ``N x m`` features over ``unit``, noise divided out.
        unit: See ``unit_of``.

    Raises:
        ValueError: If the ridge is positive and below ``SMALLEST_RIDGE``, relatively.
    """
    least = SMALLEST_RIDGE * float(Phi.square().sum(dim=-1).max())
    if gamma > 0 and gamma / unit / unit < least:
        raise ValueError(
            f"Expected `gamma` to be 0 or at least {least * unit * unit:.2g}, "
            f"{SMALLEST_RIDGE:g} of the largest squared length of a row of `X` (over "
            f"its noise), but got {gamma:g}: float64 would round it away."
        )
