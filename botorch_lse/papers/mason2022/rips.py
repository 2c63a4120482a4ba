r"""Robust inverse propensity scores: many linear estimates from one random design."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from scipy.sparse import bmat, coo_matrix, eye
from torch import Tensor

from botorch_lse._validation import (
    in_interval,
    non_negative_vector,
    real_matrix,
    real_vector,
    row_indices,
    same_columns,
)
from botorch_lse.papers.mason2022.catoni import catoni_alpha, catoni_means
from botorch_lse.papers.mason2022.quadrature import Nodes, condensed

ACCURACY = 1e-3
"""What condensing the values may move a mean, as a share of its half width; the bound
is ten times what happens."""
SINGULAR = 1e-10
"""Eigenvalues below this share of the largest count as zero where there is no ridge."""
OUTSIDE = 1e-5
"""What a vector may have outside the span, as a share of its length: a design mixed
with masses of 1e-12 on other rows counts as one without them."""
FOURTH = 3.0
"""The largest fourth derivative of Catoni's influence function, next to 0."""
EXACT = 2000
"""The number of values up to which nothing is condensed."""
BLOCK = 2**17
"""Entries of one block of directions times values (1 MB): what the caches like."""


@dataclass(frozen=True, eq=False)
class RIPSEstimate:
    r"""Estimates of ``v' theta`` for many directions ``v``.

    Args:
        means: ``T`` estimates ``W^(v)``, units of ``y``.
        norms: ``T`` squared norms ``|v|^2_{A^-1}``.
    """

    means: Tensor
    norms: Tensor


@dataclass(frozen=True, eq=False)
class _Directions:
    r"""Directions ``v_i`` or ``v_i - factor v_j``, seen through their scores.

    Args:
        scores: ``T x s``, ``v' A^-1 phi(x)`` of vectors and measured rows.
        Z: ``T x m`` whitened vectors.
        i: The vector of each direction.
        j: The vector subtracted, or ``None``.
        factor: Its factor.
    """

    scores: Tensor
    Z: Tensor
    i: Tensor
    j: Tensor | None
    factor: float

    def blocks(self, per_direction: int) -> Iterator[slice]:
        step = max(1, BLOCK // max(per_direction, 1))
        for start in range(0, self.i.numel(), step):
            yield slice(start, min(start + step, self.i.numel()))

    def of(self, rows: Tensor, block: slice) -> Tensor:
        r"""The directions' combinations of ``rows``, vector by vector."""
        found = rows[self.i[block]]
        if self.j is None:
            return found
        return found.sub_(rows[self.j[block]], alpha=self.factor)


def rips(
    V: Any,
    X: Any,
    weights: Any,
    indices: Any,
    y: Any,
    *,
    second_moment: float,
    delta: float,
    gamma: float = 0.0,
    pairs: tuple[Tensor, Tensor, float] | None = None,
) -> RIPSEstimate:
    r"""Catoni's means ``W^(v)`` of ``v' A^-1 phi(x_i) y_i`` for every direction ``v``.

    ``A = sum_x weights_x phi_x phi_x' + gamma I``, inverted on its span. If the rows
    ``indices`` were drawn independently by ``weights``, then for each direction
    ``|W^(v) - v' theta| <= |v|_{A^-1} (sqrt(gamma) |theta| + h + catoni_width(n,
    second_moment, delta))`` with probability ``1 - delta``, whatever the noise's
    distribution; ``h`` is how far from linear the function is.

    The values of each row are condensed first (``condensed``), so that ``n`` enters
    once and not once per direction; memory stays at a few blocks.

    Args:
        V: ``T x m`` vectors to estimate at.
        X: ``N x m`` features of the rows that could be drawn.
        weights: ``N``, the design they were drawn by.
        indices: ``n`` drawn rows.
        y: ``n`` values, one per draw.
        second_moment: A bound of ``E[y^2]`` for every row, the papers' ``B^2 +
            sigma^2``, units of ``y`` squared.
        delta: The failure probability of one direction.
        gamma: The ridge, at least 0.
        pairs: ``(i, j, factor)``: the directions are ``V[i] - factor V[j]`` for ``P``
            pairs, instead of the rows of ``V``; the estimates are ``P``.

    Raises:
        ValueError: If a number is out of range, there are too few draws, or ``gamma``
            is 0 and the drawn rows do not span a vector.
        BotorchTensorDimensionError: If shapes do not fit.

    Source:
        Camilleri et al. (2021); Mason et al. (2022), Algorithm 3 and Theorem C.1, with
        the variance ``(B^2 + sigma^2) |v|^2`` and Catoni's ``alpha``, erratum 5
        (papers/mason2022/errata.md).
        Deviation: none in the means beyond rounding by ``ACCURACY``.
    """
    phi, vectors = real_matrix(X, "X"), real_matrix(V, "V")
    lam = non_negative_vector(weights, "weights", len(phi), "row of `X`")
    rows = row_indices(indices, "indices", len(phi))
    values = real_vector(y, "y", rows.numel(), "draw")
    S = in_interval(second_moment, "second_moment", 0.0, math.inf)
    unit_alpha = catoni_alpha(rows.numel(), S, delta)
    used, group = rows.unique(return_inverse=True)
    if bool((lam[used] == 0).any()):
        raise ValueError(
            "Expected `indices` to be drawn by `weights`, but row "
            f"{int(used[lam[used] == 0][0])} has weight 0."
        )
    every = torch.arange(len(vectors))
    i, j, factor = (every, None, 0.0) if pairs is None else pairs
    Z, z = _whitened(vectors, phi, lam, gamma, used, (i, j, factor))
    directions = _Directions(Z @ z.mT, Z, i, j, factor)
    norms = _norms(directions)
    positive = norms > torch.finfo(norms.dtype).tiny
    # A direction of norm 0 is 0 on every row: any ``alpha`` will do.
    alpha = unit_alpha / torch.where(positive, norms, torch.ones_like(norms)).sqrt()
    nodes = _condense(directions, alpha, group, values, delta)
    return RIPSEstimate(_means(directions, alpha, nodes), norms)


def _whitened(
    V: Tensor,
    Phi: Tensor,
    lam: Tensor,
    gamma: float,
    used: Tensor,
    pairs: tuple[Tensor, Tensor | None, float],
) -> tuple[Tensor, Tensor]:
    r"""``V R`` and ``Phi[used] R`` with ``R R' = A^-1``, the pseudo-inverse."""
    same_columns(V, "V", Phi.shape[1], "`X`")
    ridge = in_interval(gamma, "gamma", 0.0, math.inf, closed_low=True)
    sizes, axes = _axes(Phi, lam)
    if ridge == 0:
        # A design for few vectors need not span the others.
        sizes, axes = _spanned_axes(sizes, axes)
        outside = _is_outside(V, axes, *pairs)
        if bool(outside.any()):
            raise ValueError(
                "Expected every direction in the span of the rows with positive "
                "`weights` where `gamma` is 0, but direction "
                f"{int(outside.nonzero()[0])} is not. Give a positive `gamma`."
            )
    root = axes / (sizes + ridge).sqrt()
    return V @ root, Phi[used] @ root


def is_spanned(V: Tensor, Phi: Tensor, lam: Tensor) -> Tensor:
    r"""``T`` bools: which vectors lie in the span of the rows with positive weight.

    Args:
        V: ``T x m`` vectors.
        Phi: ``N x m`` features.
        lam: ``N`` weights.
    """
    _, axes = _spanned_axes(*_axes(Phi, lam))
    return ~_is_outside(V, axes, torch.arange(len(V)), None, 0.0)


def _axes(Phi: Tensor, lam: Tensor) -> tuple[Tensor, Tensor]:
    r"""Eigenvalues and eigenvectors of ``sum_x lam_x phi_x phi_x'``."""
    held = lam.nonzero().squeeze(-1)
    A = Phi[held].mT @ (lam[held].unsqueeze(-1) * Phi[held])
    sizes, axes = torch.linalg.eigh(A)
    return sizes, axes


def _spanned_axes(sizes: Tensor, axes: Tensor) -> tuple[Tensor, Tensor]:
    kept = sizes > SINGULAR * sizes[-1]
    return sizes[kept], axes[:, kept]


def _is_outside(
    V: Tensor, axes: Tensor, i: Tensor, j: Tensor | None, factor: float
) -> Tensor:
    r"""Whether ``V[i]``, or ``V[i] - factor V[j]``, has a part across the axes."""
    across, size = V - V @ axes @ axes.mT, V.norm(dim=-1)
    directions = _Directions(across, across, i, j, factor)
    left = torch.cat(
        [
            directions.of(across, block).norm(dim=-1)
            for block in directions.blocks(across.shape[1])
        ]
    )
    reach = size[i] if j is None else size[i] + factor * size[j]
    return left > OUTSIDE * reach


def _norms(directions: _Directions) -> Tensor:
    r"""``|v|^2_{A^-1}`` of every direction."""
    Z = directions.Z
    parts = [
        directions.of(Z, block).square().sum(dim=-1)
        for block in directions.blocks(Z.shape[1])
    ]
    return torch.cat(parts)


def _condense(
    directions: _Directions, alpha: Tensor, group: Tensor, y: Tensor, delta: float
) -> Nodes:
    r"""Bins of which no direction sees more than ``step`` units of its ``alpha``."""
    n, L = y.numel(), math.log(2 / delta)
    if n <= EXACT:
        return Nodes(group, y, torch.ones_like(y))
    # A mean is off by FOURTH step^4 / 384 / alpha, and 1 / alpha is about sqrt(n v /
    # (2 L)), a share n / (2 L) of the half width sqrt(2 v L / n).
    step = (384 * ACCURACY * 2 * L / (FOURTH * n)) ** 0.25
    scores = directions.scores
    reach = torch.zeros_like(scores[0])
    for block in directions.blocks(scores.shape[1]):
        seen = alpha[block].unsqueeze(-1) * directions.of(scores, block).abs()
        reach = torch.maximum(reach, seen.amax(dim=0))
    return condensed(group, y, step / reach.clamp_min(1e-300))


def _means(directions: _Directions, alpha: Tensor, nodes: Nodes) -> Tensor:
    parts = []
    for block in directions.blocks(nodes.y.numel()):
        scores = directions.of(directions.scores, block)
        values = scores[:, nodes.group].mul_(nodes.y)
        parts.append(catoni_means(values, nodes.weights, alpha[block]))
    return torch.cat(parts)


def rips_projection(
    estimate: RIPSEstimate,
    V: Any,
    *,
    pairs: tuple[Tensor, Tensor, float] | None = None,
) -> Tensor:
    r"""``v' theta_hat`` with ``theta_hat = argmin max_v |v' theta - W^(v)| / |v|``.

    One vector that agrees with all means as well as possible; its error bound is twice
    that of the means, which need not come from one vector. A linear program, solved by
    HiGHS. For pairs it has a few entries per pair, never ``P x m``.

    Args:
        estimate: From ``rips``.
        V: ``T x m``, the vectors given to ``rips``.
        pairs: The pairs given to ``rips``.

    Returns:
        ``T`` values ``v' theta_hat``, or ``P`` of the pairs.

    Raises:
        ValueError: If the linear program was not solved.

    Source:
        Mason et al. (2022), Algorithm 3, the returned ``theta_hat``, and Theorem C.1.
    """
    vectors = real_matrix(V, "V")
    T, m = vectors.shape
    every = torch.arange(T)
    i, j, factor = (every, every, 0.0) if pairs is None else pairs
    P = i.numel()
    at = np.tile(np.arange(P), 2)
    entries = np.repeat([1.0, -factor], P)
    mix = coo_matrix((entries, (at, torch.cat((i, j)).numpy())), shape=(P, T))
    size = coo_matrix(estimate.norms.sqrt().unsqueeze(-1).numpy())
    means = estimate.means.numpy()
    # Unknowns: theta (m), its values at the vectors (T), the largest deviation.
    none = coo_matrix((P, m))
    deviations: Any = bmat([[none, mix, -size], [none, -mix, -size]])
    values: Any = bmat([[coo_matrix(vectors.numpy()), -eye(T), coo_matrix((T, 1))]])
    result: Any = linprog(
        np.concatenate((np.zeros(m + T), [1.0])),
        A_ub=deviations.tocsr(),
        b_ub=np.concatenate((means, -means)),
        A_eq=values.tocsr(),
        b_eq=np.zeros(T),
        bounds=[(None, None)] * (m + T) + [(0, None)],
        method="highs",
    )
    if not result.success:
        raise ValueError(
            "Expected the linear program of `rips_projection` to have a solution, but "
            f"HiGHS said: {result.message} Use the means instead."
        )
    return torch.from_numpy(mix @ result.x[m : m + T])
