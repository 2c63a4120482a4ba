r"""A design problem: as the user states it, in coordinates, or on the kernel.

What a design must predict well are vectors, or differences of all ordered pairs of
vectors: its targets. Both kinds answer the same two questions, so that a solver need
not know which it has: what are the vectors of given targets, and which targets have the
largest squared norm ``|v|^2_{A^-1}``? A target has a number: its row, or ``i * T + j``
for the pair ``(i, j)``.

Squares and fourth powers of the features are taken on the way to a norm. Dividing the
features and the targets by ``u`` and the ridge by ``u^2`` changes no norm, so features
of extraordinary size are brought near 1; what then is still out of range is refused.

A solver works on features that agree with the kernel up to a small error. The value
that is reported is that of the kernel: ``phi(x)' A^-1 phi(y) = (k(x, y) - k_lam(x)'
(K_lam + gamma I)^-1 k_lam(y)) / gamma`` needs the kernel between the support of the
design and all points only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_lse._validation import (
    finite_number,
    in_interval,
    non_negative_vector,
    real_matrix,
    real_numbers,
    row_indices,
    same_columns,
)
from botorch_lse.data.names import are_named, beside_rows, chosen
from botorch_lse.designs.basis import (
    Covariance,
    KernelGram,
    outside_span,
    span_map,
    spanning_rows,
)
from botorch_lse.designs.certificate import information, row_blocks, whiten

SAFETY = tuple(10.0**k for k in range(-12, -2))
"""The masses tried in turn on spanning rows where ``gamma = 0``.
A design of singular information has the value of the design mixed with them."""
ORDINARY = (1e-30, 1e30)
"""The range of a largest entry in which features are used as they are."""
DIGITS = 140
"""The power of ten up to which squared norms, and their inverses, can be squared."""
SMALLEST_RIDGE = 1e-13
"""The least ridge, as a share of the largest squared length of a column.
A smaller one is lost in rounding: neither 0 nor the ridge itself is being solved."""


@dataclass(frozen=True, eq=False)
class Violators:
    r"""The targets with the largest squared norms under some design.

    They violate the bound that a solver has proven for the targets it considers.

    Args:
        largest: The largest squared norm over all targets.
        ids: The numbers of targets that may enter a working set, by falling norm.
        norms: Their squared norms.
    """

    largest: float
    ids: Tensor
    norms: Tensor


@dataclass(frozen=True, eq=False)
class VectorTargets:
    r"""Targets ``v``, one per row.

    Args:
        V: ``T x m``; the square roots of the target weights are in it already.
    """

    V: Tensor

    def vectors(self, ids: Tensor) -> Tensor:
        r"""The vectors of the targets ``ids`` (``t x m``)."""
        return self.V[ids]

    def largest(self, L: Tensor, many: int) -> Violators:
        r"""The ``many`` largest squared norms ``v' A^-1 v``, where ``A = L L'``."""
        blocks = row_blocks(*self.V.shape)
        norms = [whiten(L, self.V[b]).square().sum(dim=-1) for b in blocks]
        return top_norms(torch.cat(norms), many)

    @property
    def are_zero(self) -> bool:
        r"""Whether there is nothing to predict."""
        return not bool((self.V.square() > 0).any())

    def mapped(self, transform: Tensor) -> VectorTargets:
        r"""The targets in other coordinates: ``V @ transform``."""
        return VectorTargets(self.V @ transform)


def top_norms(norms: Tensor, many: int) -> Violators:
    r"""The ``many`` targets of largest squared norm, from the norms of all targets."""
    top, ids = norms.topk(min(many, norms.numel()))
    return Violators(float(top[0]), ids, top)


@dataclass(frozen=True, eq=False)
class PairWeights:
    r"""Factors of the squared norms of all ordered pairs, which are never listed.

    They stand for a ``T x T`` tensor, which takes 7 GB for 30,000 vectors.

    Args:
        every: ``0, ..., T - 1``, on the device of the vectors.
        entries: From numbers of first and second vectors, of shapes that go together,
            to the factors of their pairs.
    """

    every: Tensor
    entries: Callable[[Tensor, Tensor], Tensor]

    ndim: ClassVar[int] = 2

    def __getitem__(self, key: slice | tuple[Tensor, Tensor]) -> Tensor:
        if isinstance(key, tuple):
            return self.entries(*key)
        return self.entries(self.every[key].unsqueeze(-1), self.every)

    def amax(self, dim: int) -> Tensor:
        r"""The largest factors of the pairs of each first vector (``T``; ``dim`` 1)."""
        assert dim == 1
        T, found = len(self.every), None
        for block in row_blocks(T, T):
            rows = self[block]
            if found is None:  # once: small arrays between large ones cost the memory
                found = rows.new_empty(T)
            found[block] = rows.amax(dim=1)
        assert found is not None  # there is a vector
        return found

    def max(self) -> Tensor:
        r"""The largest factor."""
        return self.amax(dim=1).max()


@dataclass(frozen=True, eq=False)
class PairTargets:
    r"""Targets ``y_i - factor y_j`` for all ordered pairs, ``(i, i)`` included.

    The pairs are never listed: ``|y_i - c y_j|^2 = a_ii - 2 c a_ij + c^2 a_jj`` with
    the Gram matrix ``a = Z Z'``, ``Z = Y L^-T``, taken in blocks of rows.

    Args:
        Y: ``T x m``.
        factor: ``c``.
        weights: ``T x T`` factors of the squared norms (0 leaves a pair out), or
            ``None`` for ones.
    """

    Y: Tensor
    factor: float
    weights: Tensor | PairWeights | None = None

    def vectors(self, ids: Tensor) -> Tensor:
        r"""Vectors ``y_i - factor y_j``, times the root of the weight (``t x m``)."""
        T = self.Y.shape[0]
        i, j = ids // T, ids % T
        difference = self.Y[i] - self.factor * self.Y[j]
        if self.weights is None:
            return difference
        return self.weights[i, j].sqrt().unsqueeze(-1) * difference

    def largest(self, L: Tensor, many: int) -> Violators:
        r"""The ``many`` largest among the row-wise and column-wise maxima.

        Not the ``many`` largest pairs: those often share one point, and a solver that
        takes them in gains little from the second.
        """
        norms = norms_of_vectors(whiten(L, self.Y), self.factor)
        return largest_pairs(norms, self.Y[:, 0], self.weights, many)

    @property
    def are_zero(self) -> bool:
        r"""Whether there is nothing to predict; as a rule the first pairs deny it."""
        norms, T = norms_of_vectors(self.Y, self.factor), len(self.Y)
        return not any(
            float(_weighted(norms, rows, self.weights).max()) > 0
            for rows in row_blocks(T, T)
        )

    def among(self, few: Tensor) -> PairTargets:
        r"""The pairs of some of the vectors."""
        weights = self.weights
        if isinstance(weights, PairWeights):
            entries, every = weights.entries, torch.arange(len(few), device=few.device)
            weights = PairWeights(every, lambda i, j: entries(few[i], few[j]))
        elif weights is not None:
            weights = weights[few][:, few]
        return PairTargets(self.Y[few], self.factor, weights)

    def mapped(self, transform: Tensor) -> PairTargets:
        r"""The pairs in other coordinates: of the rows of ``Y @ transform``."""
        return PairTargets(self.Y @ transform, self.factor, self.weights)


def norms_of_vectors(Z: Tensor, factor: float) -> Callable[[slice], Tensor]:
    r"""The squared norms ``|z_i - factor z_j|^2`` of some first vectors with all.

    They are one product of longer vectors, ``(z_i, |z_i|^2, 1)`` with ``(-2 factor z_j,
    1, factor^2 |z_j|^2)``: what a pass over all pairs costs is memory.
    """
    own, one = Z.square().sum(dim=-1, keepdim=True), torch.ones_like(Z[:, :1])
    first = torch.cat((Z, own, one), dim=-1)
    second = torch.cat((-2 * factor * Z, one, factor**2 * own), dim=-1)
    return lambda rows: first[rows] @ second.mT


def largest_pairs(
    norms: Callable[[slice], Tensor],
    like: Tensor,
    weights: Tensor | PairWeights | None,
    many: int,
) -> Violators:
    r"""The row-wise and column-wise maxima of the squared norms of pairs.

    Args:
        norms: Of some first vectors with all: a slice in, ``rows x T`` out.
        like: ``T`` numbers of their kind.
        weights: ``T x T`` factors of the squared norms, or ``None``.
        many: How many to return.
    """
    T = like.numel()
    everyone = torch.arange(T, device=like.device)
    column, row_of = torch.full_like(like, -torch.inf), torch.zeros_like(everyone)
    # Made once: small arrays that stay between large ones cost the memory of these.
    tops, pair_ids = torch.empty_like(like), torch.empty_like(everyone)
    for block in row_blocks(T, T):
        g = _weighted(norms, block, weights)
        top, j = g.max(dim=1)
        tops[block], pair_ids[block] = top, everyone[block] * T + j
        # Where a maximum lies is asked of columns only where it grows, which is rare.
        best = g.amax(dim=0)
        grown = (best > column).nonzero().squeeze(-1)
        row_of[grown] = g[:, grown].argmax(dim=0) + block.start
        torch.maximum(best, column, out=column)
    # Half from each list: for a small factor all columns have the same best row.
    by_row, by_column = top_norms(tops, many), top_norms(column, many)
    half = (many + 1) // 2
    rows, columns = by_row.ids[:half], by_column.ids[:half]
    ids = torch.cat((pair_ids[rows], row_of[columns] * T + columns))
    ids, where = ids.unique(return_inverse=True)
    largest = torch.zeros_like(ids, dtype=like.dtype)
    largest[where] = torch.cat((by_row.norms[:half], by_column.norms[:half]))
    found = top_norms(largest, many)
    return Violators(by_row.largest, ids[found.ids], found.norms)


def _weighted(
    norms: Callable[[slice], Tensor], rows: slice, weights: Tensor | PairWeights | None
) -> Tensor:
    r"""The (weighted) squared norms of the pairs of some first vectors with all."""
    g = norms(rows)
    return g if weights is None else g.mul_(weights[rows])


@dataclass(frozen=True, eq=False)
class OwnWeights:
    r"""Factors made by our own hand, which need neither a check nor a copy.

    Args:
        values: ``T x T``; for 10,000 vectors 800 MB.
    """

    values: Tensor


Targets = VectorTargets | PairTargets


@dataclass(frozen=True, eq=False)
class Problem:
    r"""The problem ``min over lam of max over targets of v' A(lam)^-1 v``.

    Args:
        Phi: ``N x m`` features of the design points, divided by the noise's root.
        targets: The vectors that the design must predict.
        gamma: The ridge, at least 0.
        span: For ``gamma = 0`` rows of ``Phi`` that span all features; else empty.
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
class KernelProblem:
    r"""The design problem on a kernel, with combinations of points as targets.

    Args:
        gram: The kernel on all points.
        sigma: One noise standard deviation per design point; the design points are
            the first ``len(sigma)`` points of ``gram``.
        gamma: The ridge, above 0.
        targets: ``T`` points of the Gram matrix.
        weights: Factors of the squared norms: ``T``, for pairs ``T x T``, or ``None``.
        factor: ``c`` for the pairs ``(i, j) -> phi_i - c phi_j``; ``None`` for the
            points themselves.
    """

    gram: KernelGram
    sigma: Tensor
    gamma: float
    targets: Tensor
    weights: Tensor | PairWeights | None = None
    factor: float | None = None


class KernelInverse:
    r"""Inner products in ``A(lam)^-1`` for a sparse design.

    Args:
        problem: The problem.
        columns: Design points with mass.
        masses: Their weights.

    Source:
        Mason et al. (2022), Lemma G.1, with the columns ``phi / sigma``.
    """

    def __init__(self, problem: KernelProblem, columns: Tensor, masses: Tensor) -> None:
        self.gram, self.gamma, self.columns = problem.gram, problem.gamma, columns
        self.root = masses.sqrt() / problem.sigma[columns]
        K = self.root.unsqueeze(-1) * self.gram.block(columns, columns) * self.root
        eye = torch.eye(K.shape[0], dtype=K.dtype, device=K.device)
        self.L = torch.linalg.cholesky(K + self.gamma * eye)

    def loadings(self, points: Tensor) -> Tensor:
        r"""The loadings ``R = k_lam(points) L^-T`` (``p x s``), design on ``s`` points.

        ``k_lam`` are covariances with the design's points, times the root of their
        weight over the noise; ``R R'`` is what the design explains of the kernel.
        """
        k = self.gram.block(points, self.columns) * self.root
        return torch.linalg.solve_triangular(self.L.mT, k, upper=True, left=False)

    def norms(self, points: Tensor, diagonal: Tensor) -> Tensor:
        r"""The norms ``phi' A^-1 phi`` of each point, given its ``k(x, x)``."""
        blocks = row_blocks(points.numel(), self.columns.numel())
        gains = [self.loadings(points[b]).square().sum(dim=-1) for b in blocks]
        return ((diagonal[points] - torch.cat(gains)) / self.gamma).clamp_min(0.0)

    def products(self, left: Tensor, right: Tensor, R: Tensor) -> Tensor:
        r"""The products ``phi_l' A^-1 phi_r`` (``l x r``); ``R`` loads ``right``."""
        half = torch.linalg.solve_triangular(self.L.mT, R.mT, upper=True)
        k = self.gram.block(left, self.columns) * self.root
        return (self.gram.block(left, right) - k @ half) / self.gamma


def value_on_kernel(problem: KernelProblem, columns: Tensor, masses: Tensor) -> float:
    r"""The largest (weighted) squared norm over all targets, exact up to float64."""
    inverse = KernelInverse(problem, columns, masses)
    return largest_on_kernel(problem, inverse, 1).largest


def largest_on_kernel(
    problem: KernelProblem, inverse: KernelInverse, many: int
) -> Violators:
    r"""The ``many`` largest (weighted) squared norms over all targets."""
    points, weights = problem.targets, problem.weights
    own = inverse.norms(points, problem.gram.diagonal())
    if problem.factor is None:
        assert not isinstance(weights, PairWeights)
        return top_norms(own if weights is None else own * weights, many)
    R, factor = inverse.loadings(points), problem.factor

    def norms(rows: slice) -> Tensor:
        products = inverse.products(points[rows], points, R)
        return (own[rows, None] + factor**2 * own).sub_(2 * factor * products)

    return largest_pairs(norms, own, weights, many)


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
    weights: Tensor | PairWeights | None
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
        r"""The number ``T`` of target vectors; pairs are formed of these."""
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
        stated = self.sigma, self.gamma, targets, self.weights, self.factor
        return KernelProblem(gram, *stated)


def read_arguments(
    X: Any,
    targets: Any = None,
    gamma: Any = 0.0,
    noise_var: Any = None,
    target_weights: Any = None,
    pairs_factor: Any = None,
    kernel: Kernel | Covariance | None = None,
) -> Arguments:
    r"""The checked arguments; for meaning and errors see ``optimal_design``."""
    noise_var = beside_rows(noise_var, X, "noise_var")
    if are_named(X) and are_named(targets):
        targets = chosen(targets, X.columns, "targets", "columns")
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
    if isinstance(target_weights, PairWeights):  # by our own hand: checked
        return replace(read, weights=target_weights)
    if isinstance(target_weights, OwnWeights):
        return replace(read, weights=target_weights.values)
    weights = _read_weights(target_weights, read.n_targets, pairs_factor is not None)
    return replace(read, weights=weights.to(points))


def _read_targets(targets: Any, X: Tensor) -> tuple[Tensor | None, Tensor | None]:
    r"""The targets as row numbers of ``X`` or as vectors; the other is ``None``."""
    N = X.shape[0]
    if targets is None:
        return torch.arange(N, device=X.device), None
    read = real_numbers(targets, "targets", booleans=True)
    if read.ndim == 2:
        others = real_matrix(read, "targets").to(X)
        same_columns(others, "targets", X.shape[1], "`X`")
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
    r"""Whether values are truth values, one for each row, and not row numbers."""
    if isinstance(targets, (list, tuple)):
        return len(targets) > 0 and all(
            isinstance(t, (bool, np.bool_)) for t in targets
        )
    return getattr(targets, "dtype", None) in (torch.bool, bool)


def _read_weights(target_weights: Any, count: int, pairs: bool) -> Tensor:
    r"""The factors of the squared norms: one per target, or one per ordered pair."""
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


def feature_problem(arguments: Arguments, Phi: Tensor, V: Tensor | None) -> Problem:
    r"""The problem in features, brought near 1 where their size is extraordinary.

    Args:
        arguments: The problem as stated.
        Phi: ``N x m`` features of the design points, noise not yet divided out.
        V: ``T x m`` targets, or ``None``: rows of ``Phi``.

    Raises:
        ValueError: If ``gamma = 0`` and a target is outside the span of ``Phi``, or if
            sizes are beyond float64.
    """
    scaled = Phi if arguments.everywhere else Phi / arguments.sigma.unsqueeze(-1)
    V = Phi[arguments.rows] if V is None else V
    # About the root of the largest entry of the information matrix.
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
        assert isinstance(arguments.weights, Tensor)
        targets = VectorTargets(arguments.weights.sqrt().unsqueeze(-1) * V)
    else:
        targets = VectorTargets(V)
    if gamma > 0:
        none = torch.empty(0, dtype=torch.long, device=Phi.device)
        return Problem(scaled, targets, gamma, none)
    return _spanning(scaled, targets, V, arguments.everywhere)


def _spanning(Phi: Tensor, targets: Targets, V: Tensor, everywhere: bool) -> Problem:
    r"""The problem for ``gamma = 0``, in coordinates of the design points' span.

    There the information of a design can be inverted, and is as well conditioned as its
    weights.
    """
    to_span = span_map(Phi)
    inside = Phi @ to_span
    if not everywhere and bool((outside := outside_span(V, to_span)).any()):
        raise ValueError(
            "Expected every target in the span of the rows of `X` where `gamma` is 0, "
            f"but target {int(outside.nonzero()[0])} is not: no design predicts it. "
            "Give a positive `gamma`, or leave such targets out."
        )
    span = spanning_rows(inside)
    mapped = VectorTargets(inside) if everywhere else targets.mapped(to_span)
    floor = float(inside.shape[1]) if everywhere else 0.0
    return Problem(inside, mapped, 0.0, span, floor)


def unit_of(size: float) -> float:
    r"""The number ``u`` by which features are divided to bring them near 1.

    It is a power of two, so that dividing is exact, and 1 for ordinary sizes, so that
    ordinary problems are solved as they are.

    Args:
        size: The largest feature, or that of the ridge if it is larger.
    """
    if size == 0 or ORDINARY[0] <= size <= ORDINARY[1]:
        return 1.0
    return math.ldexp(0.5, math.frexp(size)[1])


def refuse_out_of_range(
    size: float, V: Tensor, weights: Tensor | PairWeights | None
) -> None:
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
    r"""The ridge ``1 / n`` of ``n`` measurements, or the least that float64 can see.

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
