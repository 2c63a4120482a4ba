r"""The arguments of ``optimal_design``, checked once and put into one form."""

from __future__ import annotations

from dataclasses import dataclass
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
from botorch_lse.designs.exact_kernel import KernelProblem, KernelTargets
from botorch_lse.designs.kernel_gram import Covariance, KernelGram
from botorch_lse.designs.problem import Problem
from botorch_lse.designs.scale import (
    refuse_lost_ridge,
    refuse_out_of_range,
    size_of,
    unit_of,
)
from botorch_lse.designs.targets import PairTargets, Targets, VectorTargets

OUTSIDE = 1e-6
"""A target is outside the span of the design points if this fraction of its length is:
far above float64's noise after whitening, far below what a user means by outside."""


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
        N = self.X.shape[0]
        return (
            self.rows is not None
            and self.weights is None
            and self.factor is None
            and bool((self.sigma == 1).all())
            and self.rows.numel() == N
            and torch.equal(self.rows, torch.arange(N, device=self.rows.device))
        )

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
        return KernelProblem(
            gram,
            self.sigma,
            self.gamma,
            KernelTargets(targets, self.weights, self.factor),
        )


def read_arguments(
    X: Any,
    targets: Any = None,
    *,
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
    gamma = in_interval(
        gamma,
        "gamma",
        0.0,
        float("inf"),
        closed_low=True,
        remedy="It is the noise variance over the number of observations.",
    )
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
    count = len(rows) if rows is not None else len(others)  # type: ignore[arg-type]
    factor = (
        None if pairs_factor is None else finite_number(pairs_factor, "pairs_factor")
    )
    weights = _read_weights(target_weights, count, factor is not None)
    if weights is not None:
        weights = weights.to(points)
    return Arguments(points, rows, others, gamma, sigma, weights, factor, kernel)


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
    if isinstance(targets, (list, tuple)):
        return len(targets) > 0 and all(
            isinstance(t, (bool, np.bool_)) for t in targets
        )
    return getattr(targets, "dtype", None) in (torch.bool, bool)


def _read_weights(target_weights: Any, count: int, pairs: bool) -> Tensor | None:
    r"""Factors of the squared norms: one per target, or one per ordered pair."""
    if target_weights is None:
        return None
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
    size = size_of(scaled, arguments.gamma)
    refuse_out_of_range(size, V, arguments.weights)
    unit = unit_of(size)
    if unit != 1:
        scaled, V = scaled / unit, V / unit
    refuse_lost_ridge(arguments.gamma, scaled, unit)
    gamma = arguments.gamma / unit / unit
    none = torch.empty(0, dtype=torch.long, device=Phi.device)
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
