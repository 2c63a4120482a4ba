r"""The optimal design on a finite set, with a certificate."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch.exceptions.warnings import BotorchWarning
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._validation import in_interval, non_negative_vector, whole_number
from botorch_lse.designs.basis import Covariance
from botorch_lse.designs.problem import (
    Arguments,
    KernelProblem,
    feature_problem,
    read_arguments,
    value_on_kernel,
)
from botorch_lse.designs.solver import Solution, Start, nothing_to_predict, solve

BASIS_SHARE = 0.1
"""The share of the tolerance that the basis of a kernel may use up."""
REFINEMENTS = 3
"""The largest number of times that a problem on a kernel is solved.
The features are a hundred times more accurate each time."""
TINY = torch.finfo(torch.float64).tiny


class DesignWarning(BotorchWarning):
    r"""The warning that a design is worse than it was asked to be; its gap is true."""


@dataclass(frozen=True, eq=False)
class Design:
    r"""Weights on the design points, and a bound of their distance from the optimum.

    Args:
        weights: ``N`` weights on the simplex.
        value: The largest (weighted) squared norm over all targets.
        lower_bound: A proven lower bound of the value of every design.
        gap: ``value / lower_bound - 1``, 0 where both are 0.
        converged: Whether ``gap`` is within the tolerance.
        steps: Steps of the method; their cost differs between methods.
        support: The points with positive weight, ascending.
        binding: The numbers of the targets that prove the bound, ``t x 2`` for pairs;
            they belong to the design that proved the best bound.
        binding_weights: Their dual weights, on the simplex.
    """

    weights: Tensor
    value: float
    lower_bound: float
    gap: float
    converged: bool
    steps: int
    support: Tensor
    binding: Tensor
    binding_weights: Tensor

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return (
            f"Design({self.support.numel()} of {self.weights.numel()} points, value "
            f"{self.value:.6g}, at most {self.gap:.2g} above optimal, {state})"
        )


def optimal_design(
    X: Any,
    targets: Any = None,
    *,
    gamma: float = 0.0,
    noise_var: Any = None,
    target_weights: Any = None,
    pairs_factor: float | None = None,
    kernel: Kernel | Covariance | None = None,
    tol: float = 1e-2,
    initial: Design | Tensor | None = None,
    max_rounds: int = 60,
) -> Design:
    r"""The design that makes the worst squared norm over all targets smallest.

    ``min over lam of max over targets v of v' A(lam)^-1 v`` with ``A(lam) = sum_x
    lam_x phi_x phi_x' / s2_x + gamma I``, ``lam`` on the simplex: with ``n``
    observations placed by ``lam`` and ``gamma = 1 / n`` the norm is ``n`` times the
    posterior variance of ``f(v)`` at unit prior and noise ``s2``. The result is proven
    to be within its reported ``gap`` of the optimum.

    Example:
        >>> import torch
        >>> design = optimal_design(torch.eye(3, dtype=torch.float64))
        >>> [round(w, 3) for w in design.weights.tolist()], round(design.value, 3)
        ([0.333, 0.333, 0.333], 3.0)

    Args:
        X: ``N x m`` features, or ``N x d`` points with a ``kernel``.
        targets: What to predict: ``None`` for all rows of ``X``, row numbers or a mask,
            or ``T x m`` vectors (with a kernel ``T x d`` points).
        gamma: The ridge, at least 0; the papers' ``gamma``. With a kernel and 0 the
            kernel is replaced by features that agree with it to ``1e-13`` of its scale,
            and the certificate is about these.
        noise_var: ``N`` noise variances, units of ``y`` squared; the columns become
            ``phi / sigma``, the targets stay unscaled. Default 1.
        target_weights: ``T`` factors of the squared norms, ``T x T`` for pairs; 0
            leaves a target out.
        pairs_factor: ``c``: the targets are ``v_i - c v_j`` for all ordered pairs of
            ``targets``, ``(i, i)`` included as in MILK's first active set.
        kernel: A GPyTorch kernel, or a function ``(a x d, b x d) -> a x b``.
        tol: The relative gap to reach.
        initial: A design to start from, or its ``N`` weights.
        max_rounds: The largest number of rounds of Newton's method.

    Returns:
        A ``Design`` in float64 on the device of ``X``. If it did not reach ``tol`` it
        says so, and a ``DesignWarning`` is given.

    Raises:
        ValueError: If a number is not finite or out of range, if ``gamma`` is 0 and a
            target is outside the span of the design points, or if sizes are beyond
            float64.
        BotorchTensorDimensionError: If shapes do not fit.

    Source:
        The criterion of Mason et al. (2022), Algorithms 1 and 2; Weltz et al. (2023),
        Eq. (4); Kone et al. (2025), Eq. (56). The solver and the certificate are own
        (``solver``, ``certificate``), not the papers' Frank-Wolfe, which is
        ``frank_wolfe_design``.
    """
    tol = in_interval(tol, "tol", 0.0, 1.0)
    max_rounds = whole_number(max_rounds, "max_rounds", 1)
    arguments = read_arguments(
        X, targets, gamma, noise_var, target_weights, pairs_factor, kernel
    )
    start = _start(initial, arguments)
    solve_on = _solve_features if kernel is None else _solve_kernel
    return as_design(solve_on(arguments, tol, start, max_rounds), arguments, tol)


def _start(initial: Design | Tensor | None, arguments: Arguments) -> Start | None:
    r"""The solver's start: weights, or a design and what binds it."""
    weights = _initial_weights(initial, arguments.X)
    if weights is None or not isinstance(initial, Design):
        return None if weights is None else Start(weights)
    ids, T = initial.binding, arguments.n_targets
    if arguments.factor is not None and ids.ndim == 2:
        ids, T = ids[:, 0] * T + ids[:, 1], T * T
    if ids.ndim != 1 or not len(ids) or int(ids.max()) >= T:
        return Start(weights)  # it is a design for other targets
    return Start(weights, ids, initial.binding_weights)


def _initial_weights(initial: Design | Tensor | None, X: Tensor) -> Tensor | None:
    if initial is None:
        return None
    given = initial.weights if isinstance(initial, Design) else initial
    weights = non_negative_vector(given, "initial", X.shape[0], "row of `X`").to(X)
    if float(weights.sum()) <= 0:
        raise ValueError("Expected `initial` to have a positive entry, but got none.")
    return weights / weights.sum()


def _solve_features(
    arguments: Arguments, tol: float, initial: Start | None, max_rounds: int
) -> Solution:
    X, V = arguments.X, arguments.others
    if arguments.gamma > 0:
        both = X if V is None else torch.cat((X, V))
        if both.shape[1] > both.shape[0]:
            # An isometry onto the span changes no inner product.
            Vh = torch.linalg.svd(both, full_matrices=False).Vh
            X, V = X @ Vh.mT, None if V is None else V @ Vh.mT
    if arguments.gamma == 0 and not bool((X != 0).any()):
        if V is not None and bool((V != 0).any()):
            raise ValueError(
                "Expected a feature other than zero in `X` where `gamma` is 0, but all "
                "are zero: no design predicts the targets. Give a positive `gamma`."
            )
        return nothing_to_predict(X)
    return solve(feature_problem(arguments, X, V), None, tol, initial, max_rounds)


def _solve_kernel(
    arguments: Arguments, tol: float, initial: Start | None, max_rounds: int
) -> Solution:
    r"""Solve a problem on a kernel in features of it, certified with the kernel itself.

    The features are refined until their error no longer matters for the certificate.
    """
    on_kernel = arguments.kernel_problem()
    share = BASIS_SHARE
    for _ in range(REFINEMENTS):
        Phi, V, pivots = basis_for(arguments, on_kernel, share * tol)
        if Phi.shape[1] == 0:
            return nothing_to_predict(Phi)
        problem = feature_problem(arguments, Phi, V)
        # The rest of the tolerance is for the features' error in value and bound.
        inner = tol * (1 - 2 * BASIS_SHARE)
        solution = solve(problem, pivots, inner, initial, max_rounds)
        if arguments.gamma == 0 or solution.value <= 0:
            return solution
        # The bound holds for the kernel as it stands: the kernel's features are the
        # basis with more coordinates, and more coordinates only raise a norm
        # ``max_u (2 u'v - u'Au)``. The value needs the kernel itself.
        value = value_on_kernel(on_kernel, solution.columns, solution.masses)
        resolved = solution.gap <= tol
        solution = replace(solution, value=value)
        if solution.gap <= tol or not resolved:
            break
        # The features were too coarse, not the solver: refine and go on from here.
        share = share * 1e-2
        weights = torch.zeros_like(arguments.sigma)
        weights[solution.columns] = solution.masses
        initial = Start(weights)
    return solution


def basis_for(
    arguments: Arguments, problem: KernelProblem, error: float
) -> tuple[Tensor, Tensor | None, Tensor]:
    r"""Features of the kernel that change the value by about ``error``, relatively.

    A residual ``r`` adds at most ``r (1 + sqrt(g))^2 / gamma`` to a squared norm ``g``,
    and no design makes the largest norm smaller than ``max k / (max k / s2 + gamma)``.

    Returns:
        Features of the design points, of target points of their own or ``None``, and
        the design points among the pivots.
    """
    diagonal, N = problem.gram.diagonal(), problem.sigma.numel()
    noisy = diagonal[:N] / problem.sigma.square()
    ceiling = float(noisy.max()) + problem.gamma
    least = float(_squared_lengths(problem, diagonal).max())
    error = error * problem.gamma * least / max(ceiling, TINY)
    allowed = torch.full_like(diagonal, error)
    allowed[:N] = allowed[:N] * problem.sigma.square().clamp_max(1.0)
    basis = problem.gram.basis(allowed)
    V = None if arguments.rows is not None else basis.Phi[N:]
    return basis.Phi[:N], V, basis.pivots[basis.pivots < N]


def _squared_lengths(problem: KernelProblem, diagonal: Tensor) -> Tensor:
    r"""The squared lengths ``k(x, x)`` of targets, times weight over largest weight."""
    lengths = diagonal[problem.targets]
    if problem.weights is None:
        return lengths
    weights = problem.weights
    largest = weights.amax(dim=1) if weights.ndim == 2 else weights[:]
    return lengths * (largest / weights.max())


def as_design(solution: Solution, arguments: Arguments, tol: float) -> Design:
    r"""A solver's solution as the public ``Design``; warns if it missed ``tol``."""
    weights = torch.zeros_like(arguments.X[:, 0])
    weights[solution.columns] = solution.masses / solution.masses.sum()
    converged = solution.gap <= tol
    if not converged:
        warnings.warn(
            f"The design is proven to be within {solution.gap:.2g} of the optimum, "
            f"not within `tol` = {tol:g}. Its value and its gap are true. Allow more "
            "steps, or accept it.",
            DesignWarning,
            stacklevel=3,
        )
    ids = solution.target_ids
    if arguments.factor is not None:
        T = arguments.n_targets
        ids = torch.stack((ids // T, ids % T), dim=-1)
    return Design(
        weights,
        solution.value,
        solution.lower_bound,
        solution.gap,
        converged,
        solution.steps,
        weights.nonzero().squeeze(-1),
        ids,
        solution.target_weights,
    )
