r"""A design problem: as the user states it, in coordinates, and a solver's answer.

Squares and fourth powers of the features are taken on the way to a norm. Dividing the
features and the targets by ``u`` and the ridge by ``u^2`` changes no norm, so features
of extraordinary size are brought near 1; what then is still out of range is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse.checks import (
    finite_number,
    in_interval,
    non_negative_vector,
    real_matrix,
    real_numbers,
    row_indices,
)
from botorch_lse.designs.basis import span_map, spanning_rows
from botorch_lse.designs.certificate import (
    information,
    lower_bound,
    relative_gap,
    sensitivities,
    whiten,
)
from botorch_lse.designs.kernel import (
    Covariance,
    KernelGram,
    KernelProblem,
    KernelTargets,
)
from botorch_lse.designs.targets import PairTargets, Targets, VectorTargets, Violators

SAFETY = tuple(10.0**k for k in range(-12, -2))
"""Masses tried in turn on spanning rows where ``gamma = 0`` and the information of a
design is singular in float64: its value is that of the design mixed with them."""
TRIM = (1.0, 0.1, 0.01)
"""Shares of the tolerance, tried in turn as the mass to drop."""
OUTSIDE = 1e-6
"""A target is outside the span of the design points if this fraction of its length is:
far above float64's noise after whitening, far below what a user means by outside."""
ORDINARY = (1e-30, 1e30)
"""Features whose largest entry is in here are used as they are."""
DIGITS = 140
"""Squared norms within ``10^-DIGITS`` to ``10^DIGITS`` have squares in float64."""
SMALLEST_RIDGE = 1e-13
"""A ridge below this fraction of the largest squared length of a column is lost in the
rounding of the information matrix: neither 0 nor itself is then being solved."""


@dataclass(frozen=True, eq=False)
class Problem:
    r"""``min over lam of max over targets of v' A(lam)^-1 v``.

    Args:
        Phi: ``N x m`` features of the design points, divided by the noise's root.
        targets: What to predict.
        gamma: The ridge, at least 0.
        span: For ``gamma = 0``: rows that span all features; else empty.
        floor: A lower bound that is known beforehand: the rank for ``gamma = 0`` and
            all design points as targets (Kiefer and Wolfowitz 1960); else 0.
    """

    Phi: Tensor
    targets: Targets
    gamma: float
    span: Tensor
    floor: float = 0.0

    @property
    def everywhere(self) -> bool:
        r"""Whether the targets are the design points, row by row, unweighted."""
        return isinstance(self.targets, VectorTargets) and self.targets.V is self.Phi

    def factor(self, columns: Tensor, masses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""A Cholesky factor of the information, and the design it belongs to.

        Returns:
            ``L``, and the design as columns and masses: the given one, unless it is
            singular and had to be mixed with the spanning rows.
        """
        A = information(self.Phi[columns], masses, self.gamma)
        L, info = torch.linalg.cholesky_ex(A)
        if int(info) == 0:
            return L, columns, masses
        rows = self.Phi[self.span]
        for eta in SAFETY:
            spread = torch.full_like(rows[:, 0], 1 / rows.shape[0])
            mixed = (1 - eta) * A + eta * information(rows, spread, 0.0)
            L, info = torch.linalg.cholesky_ex(mixed)
            if int(info) == 0:
                break
        else:
            raise RuntimeError("The spanning rows do not span.")
        both = torch.cat((columns, self.span))
        joint = torch.cat(((1 - eta) * masses, eta * spread))
        unique, where = both.unique(return_inverse=True)
        masses = torch.zeros_like(unique, dtype=A.dtype).index_add_(0, where, joint)
        return L, unique, masses


@dataclass(frozen=True, eq=False)
class Priced:
    r"""A design and target weights, priced against everything.

    Args:
        columns: Rows with mass.
        masses: Their weights.
        violators: The largest norms.
        lower: A lower bound of the optimal value.
        s: ``N`` sensitivities of the rows.
        target_ids: Targets with dual weight, which prove the lower bound.
        target_weights: Their weights, on the simplex.
    """

    columns: Tensor
    masses: Tensor
    violators: Violators
    lower: float
    s: Tensor
    target_ids: Tensor
    target_weights: Tensor

    @property
    def upper(self) -> float:
        r"""The design's value."""
        return self.violators.largest

    def solution(self, steps: int) -> Solution:
        r"""The same as a solution that took so many ``steps``."""
        proof = self.target_ids, self.target_weights
        return Solution(
            self.columns, self.masses, self.upper, self.lower, *proof, steps
        )


@dataclass(frozen=True, eq=False)
class Solution:
    r"""The best design and the best lower bound a solver found.

    Args:
        columns: Rows with mass.
        masses: Their weights, on the simplex.
        value: The largest squared norm.
        lower_bound: What no design can beat.
        target_ids: Targets with dual weight.
        target_weights: Their weights, on the simplex.
        steps: Steps taken; the unit is the solver's.
    """

    columns: Tensor
    masses: Tensor
    value: float
    lower_bound: float
    target_ids: Tensor
    target_weights: Tensor
    steps: int

    @property
    def gap(self) -> float:
        r"""``value / lower_bound - 1``."""
        return relative_gap(self.value, self.lower_bound)


def price(
    problem: Problem,
    columns: Tensor,
    masses: Tensor,
    target_ids: Tensor,
    target_weights: Tensor,
    many: int,
) -> Priced:
    r"""The certificate over all rows and targets, and the targets that violate it.

    Args:
        problem: The problem.
        columns: Rows with mass.
        masses: Their weights.
        target_ids: Targets with dual weight.
        target_weights: Their weights, on the simplex.
        many: How many violators to report.
    """
    L, columns, masses = problem.factor(columns, masses)
    V = problem.targets.vectors(target_ids)
    f = float(target_weights @ whiten(L, V).square().sum(dim=-1))
    s = sensitivities(problem.Phi, L, V, target_weights)
    lower = lower_bound(f, float(s.max()), float(masses @ s[columns]))
    violators, lower = problem.targets.largest(L, many), max(lower, problem.floor)
    return Priced(columns, masses, violators, lower, s, target_ids, target_weights)


def trimmed(problem: Problem, solution: Solution, tol: float) -> Solution:
    r"""The solution without the light masses, as far as the tolerance allows.

    The lightest masses, in total ``TRIM`` times the tolerance, are dropped if the rest
    is still certified within the tolerance.

    Args:
        problem: The problem.
        solution: A solution.
        tol: The gap that must not be exceeded.
    """
    order = solution.masses.argsort()
    total = solution.masses[order].cumsum(dim=0)
    for share in TRIM:
        kept = order[total > share * tol]
        if kept.numel() == order.numel():
            continue
        masses = solution.masses[kept] / solution.masses[kept].sum()
        L, columns, masses = problem.factor(solution.columns[kept], masses)
        value = problem.targets.largest(L, 1).largest
        if value <= max(solution.lower_bound * (1 + tol), solution.value):
            return replace(solution, columns=columns, masses=masses, value=value)
    return solution


@dataclass(frozen=True, eq=False)
class Arguments:
    r"""One design problem as the user stated it.

    Args:
        X: ``N x m`` features or ``N x d`` points, float64.
        rows: Targets as rows of ``X``, or ``None``: they are in ``others``.
        others: Further targets, vectors or points, or ``None``.
        gamma: The ridge.
        sigma: ``N`` noise standard deviations.
        weights: Target weights, ``T`` or ``T x T``, or ``None``.
        factor: The factor of pairs, or ``None``.
        kernel: The kernel, or ``None`` for features.
    """

    X: Tensor
    rows: Tensor | None
    others: Tensor | None
    gamma: float
    sigma: Tensor
    weights: Tensor | None
    factor: float | None
    kernel: Kernel | Covariance | None

    @property
    def everywhere(self) -> bool:
        r"""Whether the targets are exactly the design points, equally weighted."""
        if self.rows is None or self.weights is not None or self.factor is not None:
            return False
        every = torch.arange(self.X.shape[0], device=self.rows.device)
        return bool((self.sigma == 1).all()) and torch.equal(self.rows, every)

    @property
    def n_targets(self) -> int:
        r"""``T``, the number of target vectors; pairs are formed of these."""
        rows = self.rows if self.rows is not None else self.others
        return len(rows)  # type: ignore[arg-type]  # one of the two is given

    def kernel_problem(self) -> KernelProblem:
        r"""The problem on the kernel; ``kernel`` must be given."""
        assert self.kernel is not None
        if self.rows is not None:
            points, targets = self.X, self.rows
        else:
            assert self.others is not None
            points = torch.cat((self.X, self.others))
            targets = torch.arange(self.X.shape[0], len(points), device=points.device)
        gram = KernelGram.of(self.kernel, points)
        combined = KernelTargets(targets, self.weights, self.factor)
        return KernelProblem(gram, self.sigma, self.gamma, combined)


def read_arguments(
    X: Any,
    targets: Any = None,
    gamma: Any = 0.0,
    noise_var: Any = None,
    target_weights: Any = None,
    pairs_factor: Any = None,
    kernel: Kernel | Covariance | None = None,
) -> Arguments:
    r"""Check everything; see ``optimal_design`` for the meaning and the errors."""
    points = real_matrix(X, "X")
    if kernel is not None and (isinstance(kernel, type) or not callable(kernel)):
        raise ValueError(
            "Expected `kernel` to be a GPyTorch kernel or a function of two sets of "
            f"points, but got {type(kernel).__name__}. Write `RBFKernel()`, or None "
            "for the features `X`."
        )
    N = points.shape[0]
    remedy = "It is the noise variance over the number of observations."
    gamma = in_interval(gamma, "gamma", 0.0, math.inf, closed_low=True, remedy=remedy)
    sigma = torch.ones_like(points[:, 0])
    if noise_var is not None:
        variances = non_negative_vector(noise_var, "noise_var", N, "row of `X`")
        if not bool((variances > 0).all()):
            raise ValueError(
                "Expected `noise_var` to be positive, but entry "
                f"{int((variances == 0).nonzero()[0])} is 0. A row measured without "
                "noise needs one observation and no design."
            )
        sigma = variances.to(points).sqrt()
    rows, others = _read_targets(targets, points)
    if pairs_factor is not None:
        pairs_factor = finite_number(pairs_factor, "pairs_factor")
    read = Arguments(points, rows, others, gamma, sigma, None, pairs_factor, kernel)
    if target_weights is None:
        return read
    weights = _read_weights(target_weights, read.n_targets, pairs_factor is not None)
    return replace(read, weights=weights.to(points))


def _read_targets(targets: Any, X: Tensor) -> tuple[Tensor | None, Tensor | None]:
    r"""Rows of ``X``, or vectors of their own."""
    N = X.shape[0]
    if targets is None:
        return torch.arange(N, device=X.device), None
    read = real_numbers(targets, "targets", booleans=True)
    if read.ndim == 2:
        others = real_matrix(read, "targets").to(X)
        if others.shape[1] != X.shape[1]:
            raise BotorchTensorDimensionError(
                f"Expected `targets` to have the {X.shape[1]} columns of `X`, but got "
                f"shape {tuple(others.shape)}."
            )
        return None, others
    if _is_mask(targets):
        if read.shape != (N,):
            raise BotorchTensorDimensionError(
                f"Expected a mask `targets` with {N} entries, but got shape "
                f"{tuple(read.shape)}."
            )
        targets = read.nonzero().squeeze(-1)
    rows = row_indices(targets, "targets", N).to(X.device)
    if rows.numel() == 0:
        raise ValueError("Expected `targets` to have at least one entry, but got none.")
    return rows, None


def _is_mask(targets: Any) -> bool:
    r"""Whether these are truth values, one per row, rather than row numbers."""
    if isinstance(targets, (list, tuple)):
        return len(targets) > 0 and all(
            isinstance(t, (bool, np.bool_)) for t in targets
        )
    return getattr(targets, "dtype", None) in (torch.bool, bool)


def _read_weights(target_weights: Any, count: int, pairs: bool) -> Tensor:
    r"""Factors of the squared norms: one per target, or one per ordered pair."""
    if not pairs:
        weights = non_negative_vector(
            target_weights, "target_weights", count, "target", booleans=True
        )
    else:
        weights = real_matrix(target_weights, "target_weights")
        if weights.shape != (count, count):
            raise BotorchTensorDimensionError(
                f"Expected `target_weights` of pairs to have shape ({count}, {count}), "
                f"but got {tuple(weights.shape)}."
            )
        if bool((weights < 0).any()):
            raise ValueError(
                "Expected `target_weights` to be non-negative, but the smallest is "
                f"{float(weights.min()):g}."
            )
    if not bool((weights > 0).any()):
        raise ValueError("Expected a positive entry in `target_weights`, but got none.")
    return weights


def feature_problem(
    arguments: Arguments, Phi: Tensor, V: Tensor | None, pivots: Tensor | None = None
) -> Problem:
    r"""The problem in features, brought near 1 where their size is extraordinary.

    Args:
        arguments: The problem as stated.
        Phi: ``N x m`` features of the design points, noise not yet divided out.
        V: ``T x m`` targets, or ``None``: rows of ``Phi``.
        pivots: Rows that describe the others well, if known.

    Raises:
        ValueError: If ``gamma = 0`` and a target is outside the span of ``Phi``, or if
            sizes are beyond float64.
    """
    scaled = Phi if arguments.everywhere else Phi / arguments.sigma.unsqueeze(-1)
    V = Phi[arguments.rows] if V is None else V
    # The root of the information, nearly.
    size = max(float(scaled.abs().max()), math.sqrt(arguments.gamma))
    refuse_out_of_range(size, V, arguments.weights)
    unit = unit_of(size)
    if unit != 1:
        scaled, V = scaled / unit, V / unit
    refuse_lost_ridge(arguments.gamma, scaled, unit)
    gamma = arguments.gamma / unit / unit
    targets: Targets
    if arguments.everywhere:
        targets = VectorTargets(scaled)
    elif arguments.factor is not None:
        targets = PairTargets(V, arguments.factor, arguments.weights)
    elif arguments.weights is not None:
        targets = VectorTargets(arguments.weights.sqrt().unsqueeze(-1) * V)
    else:
        targets = VectorTargets(V)
    if gamma > 0:
        none = torch.empty(0, dtype=torch.long, device=Phi.device)
        return Problem(scaled, targets, gamma, none)
    return _spanning(scaled, targets, V, arguments.everywhere)


def _spanning(Phi: Tensor, targets: Targets, V: Tensor, everywhere: bool) -> Problem:
    r"""``gamma = 0``: coordinates in which the design points span everything."""
    to_span = span_map(Phi)
    inside = Phi @ to_span
    if not everywhere:
        _refuse_outside(Phi, V, to_span)
    span = spanning_rows(inside)
    mapped = VectorTargets(inside) if everywhere else targets.mapped(to_span)
    floor = float(inside.shape[1]) if everywhere else 0.0
    return Problem(inside, mapped, 0.0, span, floor)


def _refuse_outside(Phi: Tensor, V: Tensor, to_span: Tensor) -> None:
    r"""Complain about the first target that no design can predict."""
    basis = torch.linalg.qr(to_span).Q
    missing = (V - V @ basis @ basis.mT).norm(dim=-1)
    outside = missing > OUTSIDE * V.norm(dim=-1)
    if bool(outside.any()):
        raise ValueError(
            "Expected every target in the span of the rows of `X` where `gamma` is 0, "
            f"but target {int(outside.nonzero()[0])} is not: no design predicts it. "
            "Give a positive `gamma`, or leave such targets out."
        )


def unit_of(size: float) -> float:
    r"""``u``, a power of two, so that dividing is exact; 1 for ordinary sizes.

    Args:
        size: The largest feature, or that of the ridge if it is larger.
    """
    if size == 0 or ORDINARY[0] <= size <= ORDINARY[1]:
        return 1.0
    return math.ldexp(0.5, math.frexp(size)[1])


def refuse_out_of_range(size: float, V: Tensor, weights: Tensor | None) -> None:
    r"""Complain about norms whose squares float64 cannot hold.

    Args:
        size: See ``unit_of``.
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
