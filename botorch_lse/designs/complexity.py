r"""How hard an instance is: the designs an oracle would play, and their values.

An oracle that knows the means plays the weights that minimise the largest ratio of a
target's squared norm to its squared gap. The minimum bounds the samples of any correct
method from below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.checks import in_interval, real_matrix, real_vector
from botorch_lse.designs.design import Design
from botorch_lse.designs.kernel_gram import Covariance
from botorch_lse.designs.optimal import optimal_design

TIE = 1e-14
"""A gap below this fraction of the means' scale is rounding, not a gap."""


@dataclass(frozen=True, eq=False)
class Complexity:
    r"""``psi*`` of an instance, between proven ends.

    Args:
        value: The largest ratio of squared norm and squared gap under ``design``.
        lower_bound: What no design can beat.
        design: The oracle's allocation.
        bounds_samples: Whether a theorem turns the value into a lower bound on the
            samples of every correct method; ``H^MILK`` bounds MILK's from above.
    """

    value: float
    lower_bound: float
    design: Design
    bounds_samples: bool = True

    def __float__(self) -> float:
        return self.value

    def samples(self, delta: float) -> float:
        r"""``2 psi* log(1 / (2.4 delta))``, with the proven lower end of ``psi*``.

        No method that is right with probability ``1 - delta`` needs fewer observations
        on average, under Gaussian noise whose variances are known. A ridge only makes
        the bound smaller.

        Raises:
            ValueError: If no theorem says so, as for ``H^MILK``.

        Source:
            Mason et al. (2022), Theorems 3.1 and 4.2; Weltz et al. (2023), Theorem 4.2.
        """
        delta = in_interval(delta, "delta", 0.0, 1.0)
        if not self.bounds_samples:
            raise ValueError(
                "Expected a complexity with a lower bound on the samples, but H^MILK "
                'has none. Use `reading="lower"`.'
            )
        return 2 * self.lower_bound * max(math.log(1 / (2.4 * delta)), 0.0)


def level_set_complexity(
    X: Any,
    means: Any,
    threshold: float,
    *,
    Z: Any = None,
    reading: str = "all",
    noise_var: Any = None,
    gamma: float = 0.0,
    kernel: Kernel | Covariance | None = None,
    tol: float = 1e-3,
) -> Complexity:
    r"""``min over lam of max_z |z|^2_{A^-1} / (f(z) - threshold)^2``.

    Args:
        X: What can be measured: ``N x m`` features, or points with a ``kernel``.
        means: The true values of the rows to classify, units of ``y``.
        threshold: The level, units of ``y``.
        Z: The rows to classify, ``T x m``; default the rows of ``X``.
        reading: ``"all"`` takes the maximum over all rows; ``"above"`` over the rows
            above the level only, as Weltz et al. (2023), Eq. (4), literally has it.
        noise_var: ``N`` noise variances; default 1.
        gamma: The ridge.
        kernel: The kernel, or ``None`` for features.
        tol: The relative gap to reach.

    Raises:
        ValueError: If a row has exactly the level's value, or none is above it.

    Source:
        Mason et al. (2022), Theorem 3.1; Weltz et al. (2023), Eq. (4) and Appendix F.1,
        erratum 2 (papers/weltz2023/errata.md).
    """
    values, gaps = _gaps_to_level(X, means, threshold, Z)
    if reading == "all":
        rows = torch.arange(values.numel())
    elif reading == "above":
        rows = (gaps > 0).nonzero().squeeze(-1)
        if rows.numel() == 0:
            raise ValueError(
                'Expected a row above `threshold` for `reading="above"`, but the '
                f"largest of `means` is {float(values.max()):g}."
            )
    else:
        raise ValueError(
            f'Expected `reading` to be "all" or "above", but got {reading!r}.'
        )
    targets = rows if Z is None else real_matrix(Z, "Z")[rows]
    return solved(
        X,
        targets,
        gamma=gamma,
        noise_var=noise_var,
        target_weights=gaps[rows] ** -2.0,
        kernel=kernel,
        tol=tol,
    )


def _gaps_to_level(
    X: Any, means: Any, threshold: float, Z: Any
) -> tuple[Tensor, Tensor]:
    values = real_vector(means, "means", len(X if Z is None else Z), "row to classify")
    level = in_interval(threshold, "threshold", -math.inf, math.inf)
    gaps = values - level
    scale = max(float(values.abs().max()), abs(level))
    refuse_ties(
        gaps, scale, f"different from `threshold` = {level:g}", "Move the level."
    )
    return values, gaps


def refuse_ties(gaps: Tensor, scale: float, wanted: str, remedy: str) -> None:
    r"""Complain about the first gap that is zero up to float64's rounding of ``y``."""
    tied = gaps.abs() <= TIE * scale
    if bool(tied.any()):
        row = tied.nonzero()[0].tolist()
        raise ValueError(
            f"Expected `means` {wanted}, but entry {row if len(row) > 1 else row[0]} "
            f"is not: no number of samples decides it. {remedy}"
        )


def best_arm_complexity(
    X: Any,
    means: Any,
    *,
    Z: Any = None,
    noise_var: Any = None,
    gamma: float = 0.0,
    tol: float = 1e-3,
) -> Complexity:
    r"""``min over lam of max_z |z* - z|^2_{A^-1} / (f(z*) - f(z))^2``.

    Args:
        X: ``N x m`` features of what can be measured.
        means: The true values of the arms.
        Z: ``T x m`` features of the arms; default ``X``.
        noise_var: ``N`` noise variances; default 1.
        gamma: The ridge.
        tol: The relative gap to reach.

    Raises:
        ValueError: If two arms share the largest value, or there is one arm only.

    Source:
        Weltz et al. (2023), Eq. (4).
    """
    arms = real_matrix(X if Z is None else Z, "X" if Z is None else "Z")
    values = real_vector(means, "means", arms.shape[0], "arm")
    if values.numel() < 2:
        raise ValueError("Expected at least two arms in `means`, but got one.")
    best = int(values.argmax())
    others = torch.arange(values.numel(), device=values.device) != best
    gaps = values[best] - values[others]
    refuse_ties(
        gaps,
        float(values.abs().max()),
        "with one largest entry",
        "Classify against a level instead.",
    )
    return solved(
        X,
        arms[best] - arms[others.to(arms.device)],
        gamma=gamma,
        noise_var=noise_var,
        target_weights=gaps**-2.0,
        kernel=None,
        tol=tol,
    )


def solved(X: Any, targets: Any, **options: Any) -> Complexity:
    r"""The complexity whose design is ``optimal_design(X, targets, **options)``."""
    design = optimal_design(X, targets, **options)
    return Complexity(design.value, design.lower_bound, design)
