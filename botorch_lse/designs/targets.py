r"""What a design must predict well: vectors, or all ordered pairs of vectors.

Both answer two questions, so that no solver knows which one it holds: the vectors of
given targets, and the targets with the largest squared norm ``|v|^2_{A^-1}``. A target
has a number: its row, or ``i * T + j`` for the pair ``(i, j)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from botorch_lse.designs.certificate import row_blocks, whiten


@dataclass(frozen=True, eq=False)
class Violators:
    r"""The largest norms found, and where.

    Args:
        largest: The largest squared norm over all targets.
        ids: Targets that may enter a working set, by falling norm.
        norms: Their squared norms.
    """

    largest: float
    ids: Tensor
    norms: Tensor


class Targets(Protocol):
    r"""A set of target vectors in the space of the features."""

    def __len__(self) -> int: ...

    def vectors(self, ids: Tensor) -> Tensor:
        r"""The vectors of the targets ``ids``: ``t x m``."""

    def largest(self, L: Tensor, many: int) -> Violators:
        r"""The largest norms in ``A^-1``, where ``A = L L'``."""

    def mapped(self, transform: Tensor) -> Targets:
        r"""The same targets after ``v -> v @ transform``."""


@dataclass(frozen=True, eq=False)
class VectorTargets:
    r"""Targets ``v``, one per row.

    Args:
        V: ``T x m``; the square roots of the target weights are in it already.
    """

    V: Tensor

    def __len__(self) -> int:
        return self.V.shape[0]

    def vectors(self, ids: Tensor) -> Tensor:
        r"""Rows of ``V``: ``t x m``."""
        return self.V[ids]

    def norms(self, L: Tensor) -> Tensor:
        r"""``T`` squared norms ``v' A^-1 v``."""
        blocks = row_blocks(*self.V.shape)
        return torch.cat([whiten(L, self.V[b]).square().sum(dim=-1) for b in blocks])

    def largest(self, L: Tensor, many: int) -> Violators:
        r"""The ``many`` largest norms."""
        return top_norms(self.norms(L), many)

    def mapped(self, transform: Tensor) -> VectorTargets:
        r"""The rows of ``V @ transform``."""
        return VectorTargets(self.V @ transform)


def top_norms(norms: Tensor, many: int) -> Violators:
    r"""The ``many`` largest entries of ``norms``."""
    top, ids = norms.topk(min(many, norms.numel()))
    return Violators(float(top[0]), ids, top)


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
    weights: Tensor | None = None

    def __len__(self) -> int:
        return self.Y.shape[0] ** 2

    def vectors(self, ids: Tensor) -> Tensor:
        r"""``y_i - factor y_j``, times the root of the pair's weight: ``t x m``."""
        T = self.Y.shape[0]
        i, j = ids // T, ids % T
        difference = self.Y[i] - self.factor * self.Y[j]
        if self.weights is None:
            return difference
        return self.weights[i, j].sqrt().unsqueeze(-1) * difference

    def largest(self, L: Tensor, many: int) -> Violators:
        r"""Row-wise and column-wise maxima, the ``many`` largest of them."""
        Z = whiten(L, self.Y)
        return largest_pairs(
            Z.square().sum(dim=-1),
            lambda rows: Z[rows] @ Z.mT,
            self.factor,
            self.weights,
            many,
        )

    def mapped(self, transform: Tensor) -> PairTargets:
        r"""The pairs of the rows of ``Y @ transform``."""
        return PairTargets(self.Y @ transform, self.factor, self.weights)


def largest_pairs(
    own: Tensor,
    gram: Callable[[slice], Tensor],
    factor: float,
    weights: Tensor | None,
    many: int,
) -> Violators:
    r"""The row-wise and column-wise maxima of ``|y_i - factor y_j|^2``.

    Args:
        own: ``T`` squared norms ``a_ii``.
        gram: Rows of ``a``: a slice in, ``rows x T`` out.
        factor: ``c``.
        weights: ``T x T`` factors of the squared norms, or ``None``.
        many: How many to return.
    """
    T = own.numel()
    everyone = torch.arange(T, device=own.device)
    column, row_of = torch.full_like(own, -torch.inf), torch.zeros_like(everyone)
    tops, places = [], []
    for block in row_blocks(T, T):
        g = own[block, None] + factor**2 * own - 2 * factor * gram(block)
        if weights is not None:
            g = g * weights[block]
        top, j = g.max(dim=1)
        tops.append(top)
        places.append(everyone[block] * T + j)
        best, i = g.max(dim=0)
        row_of = torch.where(best > column, i + block.start, row_of)
        column = torch.maximum(best, column)
    # Half from each list: for a small factor all columns have the same best row.
    by_row, by_column = top_norms(torch.cat(tops), many), top_norms(column, many)
    half = (many + 1) // 2
    rows, columns = by_row.ids[:half], by_column.ids[:half]
    ids = torch.cat((torch.cat(places)[rows], row_of[columns] * T + columns))
    ids, where = ids.unique(return_inverse=True)
    norms = torch.zeros_like(ids, dtype=own.dtype)
    norms[where] = torch.cat((by_row.norms[:half], by_column.norms[:half]))
    found = top_norms(norms, many)
    return Violators(by_row.largest, ids[found.ids], found.norms)
