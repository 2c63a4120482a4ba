r"""One optimal-design problem in coordinates, and what a solver hands back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.designs.certificate import (
    information,
    lower_bound,
    relative_gap,
    sensitivities,
)
from botorch_lse.designs.targets import Targets, VectorTargets, Violators, whiten

SAFETY = tuple(10.0**k for k in range(-12, -2))
"""Masses tried in turn on spanning rows where ``gamma = 0`` and the information of a
design is singular in float64: its value is that of the design mixed with them."""

TRIM = (1.0, 0.1, 0.01)
"""Shares of the tolerance, tried in turn as the mass to drop."""


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
        return (
            L,
            unique,
            torch.zeros_like(unique, dtype=A.dtype).index_add_(0, where, joint),
        )


@dataclass(frozen=True, eq=False)
class Priced:
    r"""A design and target weights, priced against everything.

    Args:
        columns: Rows with mass.
        masses: Their weights.
        violators: The largest norms.
        lower: A lower bound of the optimal value.
        s: ``N`` sensitivities of the rows.
    """

    columns: Tensor
    masses: Tensor
    violators: Violators
    lower: float
    s: Tensor

    @property
    def upper(self) -> float:
        r"""The design's value."""
        return self.violators.largest


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
    violators = problem.targets.largest(L, many)
    return Priced(columns, masses, violators, max(lower, problem.floor), s)


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
