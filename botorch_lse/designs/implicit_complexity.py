r"""How hard an implicit level ``omega max f`` is: ``H^MILK`` and Theorem 4.2."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.checks import in_interval, real_vector
from botorch_lse.designs.certificate import relative_gap
from botorch_lse.designs.complexity import Complexity, refuse_ties, solved
from botorch_lse.designs.design import Design
from botorch_lse.designs.kernel_gram import Covariance
from botorch_lse.designs.optimal import optimal_design
from botorch_lse.designs.pair_norms import pair_norms

ALTERNATIONS = 10


def implicit_complexity(
    X: Any,
    means: Any,
    omega: float,
    *,
    reading: str = "milk",
    tolerance: float = 0.0,
    noise_var: Any = None,
    gamma: float = 0.0,
    kernel: Kernel | Covariance | None = None,
    tol: float = 1e-3,
) -> Complexity:
    r"""The hardness of ``{x : f(x) > omega max f}``, through pairs of rows.

    With ``v = phi(x) - omega phi(x')`` the ratio of a pair is ``|v|^2_{A^-1} / max(f(x)
    - omega f(x'), tolerance)^2``. ``H^MILK`` is the least possible maximum over all
    ordered pairs. The lower bound of Theorem 4.2 has, for ``x`` outside the set, the
    easiest ``x'`` instead of the hardest; that problem is not convex. It is solved by
    alternating between the easiest partners and the weights: ``value`` is what the
    found weights attain, ``lower_bound`` proves the rows inside the set only, so the
    design's gap stays true but need not be small.

    Args:
        X: ``N x m`` features, or points with a ``kernel``.
        means: ``N`` true values, units of ``y``.
        omega: The fraction of the maximum, in (0, 1); MILK's epsilon is ``1 - omega``.
        reading: ``"milk"`` for ``H^MILK``, ``"lower"`` for Theorem 4.2.
        tolerance: MILK's accuracy ``beta``, units of ``y``, at least 0.
        noise_var: ``N`` noise variances; default 1.
        gamma: The ridge.
        kernel: The kernel, or ``None`` for features.
        tol: The relative gap to reach.

    Raises:
        ValueError: If the gap of a pair is 0 and so is ``tolerance``.

    Source:
        Mason et al. (2022), Theorems 4.2 and 4.3. Pairs ``(x, x)`` are included, as
        printed.
    """
    omega = in_interval(omega, "omega", 0.0, 1.0)
    tolerance = in_interval(tolerance, "tolerance", 0.0, math.inf, closed_low=True)
    values = real_vector(means, "means", len(X), "row of `X`")
    gaps = values.unsqueeze(-1) - omega * values
    sizes = gaps.abs().clamp_min(tolerance)
    refuse_ties(
        sizes,
        float(values.abs().max()),
        "without a pair f(x) = omega f(x')",
        "Give a `tolerance`.",
    )
    shared = {"gamma": gamma, "noise_var": noise_var, "kernel": kernel}
    milk = solved(
        X, None, target_weights=sizes**-2.0, pairs_factor=omega, tol=tol, **shared
    )
    if reading == "milk":
        return replace(milk, bounds_samples=False)
    if reading != "lower":
        raise ValueError(
            f'Expected `reading` to be "milk" or "lower", but got {reading!r}.'
        )
    inside = (gaps > 0).all(dim=1)
    return _theorem_4_2(X, sizes**-2.0, inside, omega, milk.design, tol, shared)


def _theorem_4_2(
    X: Any,
    weights: Tensor,
    inside: Tensor,
    omega: float,
    start: Design,
    tol: float,
    shared: dict[str, Any],
) -> Complexity:
    r"""Alternate between the easiest partners of the rows outside and the design."""
    proven = 0.0
    if bool(inside.any()):
        rows_inside = weights * inside.unsqueeze(-1)
        proven = optimal_design(
            X, target_weights=rows_inside, pairs_factor=omega, tol=tol, **shared
        ).lower_bound
    best, best_value = start, math.inf
    design = start
    for _ in range(ALTERNATIONS):
        ratios = weights * pair_norms(X, design.weights, omega, **shared)
        hardest = torch.where(inside, ratios.amax(dim=1), ratios.amin(dim=1))
        value = float(hardest.max())
        if value >= best_value * (1 - tol):
            break
        best, best_value = design, value
        easiest = torch.zeros_like(weights)
        partner = ratios.argmin(dim=1, keepdim=True)
        easiest.scatter_(1, partner, weights.gather(1, partner))
        chosen = torch.where(inside.unsqueeze(-1), weights, easiest)
        design = optimal_design(
            X, target_weights=chosen, pairs_factor=omega, tol=tol, **shared
        )
    gap = relative_gap(best_value, proven)
    design = replace(
        best, value=best_value, lower_bound=proven, gap=gap, converged=gap <= tol
    )
    return Complexity(best_value, proven, design)
