r"""The hardness of an instance: the designs an oracle would play, and their values.

An oracle that knows the means plays the weights that minimise the largest ratio of a
target's squared norm to its squared gap. The minimum bounds the samples of any correct
method from below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._validation import in_interval, real_matrix, real_vector
from botorch_lse.designs.basis import Covariance
from botorch_lse.designs.certificate import relative_gap, row_blocks, whiten
from botorch_lse.designs.optimal import Design, optimal_design
from botorch_lse.designs.problem import (
    KernelInverse,
    PairTargets,
    PairWeights,
    feature_problem,
    read_arguments,
)

TIE = 1e-14
"""A gap below this fraction of the means' scale is rounding, not a gap."""
ALTERNATIONS = 10
"""Steps between partners and weights on the way to Theorem 4.2 at most."""


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
    return _oracle(X, targets, gaps[rows], noise_var, gamma, kernel, tol)


def _gaps_to_level(
    X: Any, means: Any, threshold: float, Z: Any
) -> tuple[Tensor, Tensor]:
    r"""The means of the rows to classify, and how far they are from the level."""
    values = real_vector(means, "means", len(X if Z is None else Z), "row to classify")
    level = in_interval(threshold, "threshold", -math.inf, math.inf)
    gaps = values - level
    scale = max(float(values.abs().max()), abs(level))
    wanted = f"different from `threshold` = {level:g}"
    _refuse_ties(gaps, scale, wanted, "Move the level.")
    return values, gaps


def _refuse_ties(
    gaps: Tensor, scale: float, wanted: str, remedy: str, start: int = 0
) -> None:
    r"""Complain about the first gap that is zero up to float64's rounding of ``y``.

    Args:
        gaps: ``R`` gaps, or ``R x N`` of pairs.
        scale: The largest size of a value.
        wanted: What was expected.
        remedy: What helps.
        start: The number of the first row.
    """
    tied = gaps.abs() <= TIE * scale
    if bool(tied.any()):
        row = tied.nonzero()[0].tolist()
        row[0] += start
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
    wanted, remedy = "with one largest entry", "Classify against a level instead."
    _refuse_ties(gaps, float(values.abs().max()), wanted, remedy)
    targets = arms[best] - arms[others.to(arms.device)]
    return _oracle(X, targets, gaps, noise_var, gamma, None, tol)


def _oracle(
    X: Any,
    targets: Tensor,
    gaps: Tensor,
    noise_var: Any,
    gamma: float,
    kernel: Kernel | Covariance | None,
    tol: float,
) -> Complexity:
    r"""The optimal design whose targets are weighted by one over the squared gaps."""
    design = optimal_design(
        X,
        targets,
        gamma=gamma,
        noise_var=noise_var,
        target_weights=gaps**-2.0,
        kernel=kernel,
        tol=tol,
    )
    return Complexity(design.value, design.lower_bound, design)


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
    values = values.to(real_matrix(X, "X"))
    level = omega * values

    def sizes(i: Tensor, j: Tensor) -> Tensor:
        r"""The distances of pairs from a tie, at least ``tolerance``."""
        return (values[i] - level[j]).abs().clamp_min(tolerance)

    scale, wanted = float(values.abs().max()), "without a pair f(x) = omega f(x')"
    every = torch.arange(len(values), device=values.device)
    for block in row_blocks(len(every), len(every)):
        found = sizes(every[block].unsqueeze(-1), every)
        _refuse_ties(found, scale, wanted, "Give a `tolerance`.", block.start)
    if reading not in ("milk", "lower"):
        raise ValueError(
            f'Expected `reading` to be "milk" or "lower", but got {reading!r}.'
        )
    weights = PairWeights(every, lambda i, j: sizes(i, j) ** -2.0)

    def solved(weights: PairWeights) -> Design:
        r"""The optimal design for weights of the pairs."""
        return optimal_design(
            X,
            gamma=gamma,
            noise_var=noise_var,
            target_weights=weights,
            pairs_factor=omega,
            kernel=kernel,
            tol=tol,
        )

    def ratios(design: Design) -> Iterator[Tensor]:
        r"""Rows of squared norms under a design, over the squared gaps, in blocks."""
        masses = design.weights
        for rows, norms in _pair_norms(X, masses, omega, gamma, noise_var, kernel):
            yield weights[rows] * norms

    milk = solved(weights)
    if reading == "milk":
        return Complexity(milk.value, milk.lower_bound, milk, bounds_samples=False)
    return _theorem_4_2(weights, values > level.max(), milk, tol, solved, ratios)


def _theorem_4_2(
    weights: PairWeights,
    inside: Tensor,
    start: Design,
    tol: float,
    solved: Callable[[PairWeights], Design],
    ratios: Callable[[Design], Iterator[Tensor]],
) -> Complexity:
    r"""Alternate between the easiest partners of the rows outside and the design.

    Args:
        weights: ``N x N``, one over the squared gaps of the pairs.
        inside: ``N`` bools: the rows of the set.
        start: The initial design.
        tol: The relative gap to reach.
        solved: The optimal design for weights of the pairs.
        ratios: ``N x N`` ratios of squared norms and squared gaps under a design, in
            blocks of rows.
    """

    def counted(counts: Callable[[Tensor, Tensor], Tensor]) -> PairWeights:
        r"""The weights of the pairs that count, 0 for the others."""
        of = weights.entries
        return replace(weights, entries=lambda i, j: of(i, j) * counts(i, j))

    proven = 0.0
    if bool(inside.any()):
        proven = solved(counted(lambda i, j: inside[i])).lower_bound
    best, best_value = start, math.inf
    design = start
    for _ in range(ALTERNATIONS):
        parts = [(p.amax(dim=1), *p.min(dim=1)) for p in ratios(design)]
        largest, least, partner = (torch.cat(c) for c in zip(*parts, strict=True))
        value = float(torch.where(inside, largest, least).max())
        if value >= best_value * (1 - tol):
            break
        best, best_value = design, value
        easiest = partial(_inside_or_partner, inside, partner)
        design = solved(counted(easiest))
    gap = relative_gap(best_value, proven)
    design = replace(
        best, value=best_value, lower_bound=proven, gap=gap, converged=gap <= tol
    )
    return Complexity(best_value, proven, design)


def _inside_or_partner(inside: Tensor, partner: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return inside[i] | (partner[i] == j)


def _pair_norms(
    X: Any,
    weights: Tensor,
    factor: float,
    gamma: float,
    noise_var: Any,
    kernel: Kernel | Covariance | None,
) -> Iterator[tuple[slice, Tensor]]:
    r"""``|phi_i - factor phi_j|^2_{A(weights)^-1}`` for all ordered pairs.

    A kernel needs a positive ``gamma``.

    Yields:
        Some rows ``i``, and their ``rows x N`` norms.
    """
    arguments = read_arguments(X, None, gamma, noise_var, None, factor, kernel)
    columns = weights.nonzero().squeeze(-1)
    if kernel is not None:
        rows = torch.arange(weights.numel(), device=weights.device)
        inverse = KernelInverse(arguments.kernel_problem(), columns, weights[columns])
        R = inverse.loadings(rows)

        def gram(i: slice, j: slice) -> Tensor:
            return inverse.products(rows[i], rows[j], R[j])

    else:
        problem = feature_problem(arguments, arguments.X, None)
        assert isinstance(problem.targets, PairTargets)
        L, _, _ = problem.factor(columns, weights[columns])
        Z = whiten(L, problem.targets.Y)

        def gram(i: slice, j: slice) -> Tensor:
            return Z[i] @ Z[j].mT

    blocks = row_blocks(len(weights), len(weights))
    own = torch.cat([gram(block, block).diagonal() for block in blocks])
    for block in blocks:
        a = gram(block, slice(None))
        yield block, own[block].unsqueeze(-1) - 2 * factor * a + factor**2 * own
