r"""The paper's own solver of designs, for comparison: it need not converge."""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._validation import in_interval, whole_number
from botorch_lse.designs.basis import Covariance
from botorch_lse.designs.certificate import (
    Certificate,
    lower_bound,
    row_blocks,
    sensitivities,
)
from botorch_lse.designs.optimal import Design, as_design
from botorch_lse.designs.problem import (
    KernelInverse,
    KernelProblem,
    Problem,
    feature_problem,
    largest_on_kernel,
    read_arguments,
)
from botorch_lse.designs.solver import Solution, WorkingSet, evaluate


class _Oracle(Protocol):
    r"""The oracle of Frank-Wolfe: the worst target, and where to measure for it."""

    def step(self, columns: Tensor, masses: Tensor) -> tuple[int, int]:
        r"""The worst target and the row with the largest product with it."""

    def prove(
        self, columns: Tensor, masses: Tensor, ids: Tensor, w: Tensor
    ) -> tuple[float, float]:
        r"""The value of the design and the lower bound that ``w`` proves."""


class _FeatureOracle:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def step(self, columns: Tensor, masses: Tensor) -> tuple[int, int]:
        L, _, _ = self.problem.factor(columns, masses)
        worst = self.problem.targets.largest(L, 1).ids
        V = self.problem.targets.vectors(worst)
        s = sensitivities(self.problem.Phi, L, V, torch.ones_like(V[:, 0]))
        return int(worst[0]), int(s.argmax())

    def prove(
        self, columns: Tensor, masses: Tensor, ids: Tensor, w: Tensor
    ) -> tuple[float, float]:
        working = WorkingSet(columns, masses, ids, w)
        found = evaluate(self.problem, working, 1, 0).solution
        return found.value, found.lower_bound


class _KernelOracle:
    def __init__(self, problem: KernelProblem) -> None:
        self.problem = problem
        self.rows = torch.arange(problem.sigma.numel(), device=problem.sigma.device)

    def step(self, columns: Tensor, masses: Tensor) -> tuple[int, int]:
        inverse = KernelInverse(self.problem, columns, masses)
        worst = largest_on_kernel(self.problem, inverse, 1).ids
        points, mix = as_points(self.problem, worst)
        products = inverse.products(self.rows, points, inverse.loadings(points))
        s = (products @ mix.mT).square().squeeze(-1) / self.problem.sigma.square()
        return int(worst[0]), int(s.argmax())

    def prove(
        self, columns: Tensor, masses: Tensor, ids: Tensor, w: Tensor
    ) -> tuple[float, float]:
        found = certify_on_kernel(self.problem, columns, masses, ids, w)
        return found.upper, found.lower


def frank_wolfe_design(
    X: Any,
    targets: Any = None,
    *,
    gamma: float,
    noise_var: Any = None,
    target_weights: Any = None,
    pairs_factor: float | None = None,
    kernel: Kernel | Covariance | None = None,
    max_steps: int = 1000,
    max_seconds: float = float("inf"),
    tol: float = 1.0,
) -> Design:
    r"""Mason's Frank-Wolfe: towards the row that helps the worst target most.

    All arguments but the last three are those of ``optimal_design``. The lower bound is
    that of the certificate with the visits of the worst targets as dual weights.

    Args:
        X: Features or points.
        targets: What to predict.
        gamma: The ridge, above 0.
        noise_var: ``N`` noise variances.
        target_weights: Factors of the squared norms.
        pairs_factor: ``c`` of the pairs.
        kernel: The kernel: the method then works on it as the paper does (Lemma G.1).
        max_steps: Steps to take.
        max_seconds: Stop after so long.
        tol: The gap from which the result counts as converged; the method takes no
            notice of it.

    Source:
        Mason et al. (2022), Algorithm 4, with the step ``1 / (t + 2)`` and its slips
        read as in the text after Lemma G.1. It is a subgradient method and need not
        converge: erratum 6 (papers/mason2022/errata.md).
    """
    in_interval(gamma, "gamma", 0.0, float("inf"))
    max_steps = whole_number(max_steps, "max_steps", 1)
    arguments = read_arguments(
        X,
        targets,
        gamma=gamma,
        noise_var=noise_var,
        target_weights=target_weights,
        pairs_factor=pairs_factor,
        kernel=kernel,
    )
    oracle: _Oracle
    if kernel is not None:
        oracle = _KernelOracle(arguments.kernel_problem())
    else:
        oracle = _FeatureOracle(
            feature_problem(arguments, arguments.X, arguments.others)
        )
    weights = torch.zeros_like(arguments.X[:, 0])
    weights[0] = 1.0
    visits: dict[int, int] = {}
    end, steps = time.monotonic() + max_seconds, 0
    for steps in range(1, max_steps + 1):
        columns = weights.nonzero().squeeze(-1)
        worst, row = oracle.step(columns, weights[columns])
        visits[worst] = visits.get(worst, 0) + 1
        weights *= 1 - 1 / (steps + 2)
        weights[row] += 1 / (steps + 2)
        if time.monotonic() > end:
            break
    columns = weights.nonzero().squeeze(-1)
    ids = torch.tensor(list(visits), device=weights.device)
    w = torch.tensor(list(visits.values())).to(weights) / steps
    value, lower = oracle.prove(columns, weights[columns], ids, w)
    found = Solution(columns, weights[columns], value, lower, ids, w, steps)
    return as_design(found, arguments, tol)


def certify_on_kernel(
    problem: KernelProblem,
    columns: Tensor,
    masses: Tensor,
    target_ids: Tensor,
    target_weights: Tensor,
) -> Certificate:
    r"""``certify`` without features: exact up to float64.

    Args:
        problem: The problem.
        columns: Design points with mass.
        masses: Their weights, on the simplex.
        target_ids: Targets with dual weight (pairs: ``i * T + j``).
        target_weights: Their weights, on the simplex.
    """
    inverse = KernelInverse(problem, columns, masses)
    upper = largest_on_kernel(problem, inverse, 1).largest
    N = problem.sigma.numel()
    rows = torch.arange(N, device=columns.device)
    points, mix = as_points(problem, target_ids)
    R = inverse.loadings(points)
    s = (
        torch.cat(
            [
                (inverse.products(rows[b], points, R) @ mix.mT).square()
                @ target_weights
                for b in row_blocks(N, points.numel() + columns.numel())
            ]
        )
        / problem.sigma.square()
    )
    products = mix @ inverse.products(points, points, R) @ mix.mT
    f = float(products.diagonal() @ target_weights)
    average = float(masses @ s[columns])
    return Certificate(upper, lower_bound(f, float(s.max()), average))


def as_points(problem: KernelProblem, ids: Tensor) -> tuple[Tensor, Tensor]:
    r"""Targets ``ids`` as ``mix @ phi(points)``."""
    dtype = torch.float64
    if problem.factor is None:
        scale = torch.ones_like(ids, dtype=dtype)
        if problem.weights is not None:
            assert isinstance(problem.weights, Tensor)
            scale = problem.weights[ids].sqrt()
        return problem.targets[ids], torch.diag(scale)
    T = problem.targets.numel()
    i, j = ids // T, ids % T
    members, where = torch.cat((i, j)).unique(return_inverse=True)
    mix = torch.zeros(ids.numel(), members.numel(), dtype=dtype, device=ids.device)
    each = torch.arange(ids.numel(), device=ids.device)
    minus = torch.full_like(each, -problem.factor, dtype=dtype)
    mix.index_put_((each, where[: len(ids)]), torch.ones_like(minus), accumulate=True)
    mix.index_put_((each, where[len(ids) :]), minus, accumulate=True)
    if problem.weights is not None:
        mix = problem.weights[i, j].sqrt().unsqueeze(-1) * mix
    return problem.targets[members], mix
