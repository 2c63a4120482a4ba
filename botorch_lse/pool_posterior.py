r"""The posterior on a whole pool, one new observation at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_lse.functional.path import factorize, path_rows
from botorch_lse.posterior import MEMORY_BUDGET, row_blocks
from botorch_lse.prior import GPPrior


class _Rows:
    r"""Append-only storage of path rows that several posteriors share.

    A posterior of ``n`` observations sees the first ``n`` rows. Appending to the
    longest one writes in place; appending to a shorter one copies first, so that no
    posterior ever changes.
    """

    def __init__(self, N: int, capacity: int = 16) -> None:
        self.data = torch.empty(capacity, N, dtype=torch.float64)
        self.used = 0

    def append(self, n: int, rows: Tensor) -> _Rows:
        q = rows.shape[0]
        target = self
        if n != self.used or n + q > self.data.shape[0]:
            capacity = max(2 * n, n + q, 16)
            target = _Rows(self.data.shape[1], capacity)
            target.data[:n] = self.data[:n]
        target.data[n : n + q] = rows
        target.used = n + q
        return target


@dataclass(frozen=True, eq=False)
class PoolPosterior:
    r"""Mean and variance of every row of a pool, given observations at rows.

    ``observe`` and ``expect`` return new objects; each new observation costs one new
    path row (``O(n N)``). Rows of the path are kept while ``n x N`` numbers fit the
    memory budget; beyond it they are computed again, in blocks of rows.

    Args:
        prior: The process, without batch shape.
        F: ``N x d'`` features of the pool.
        mean: ``N`` posterior means, units of ``y``.
        variance: ``N`` posterior variances.
        prior_variance: ``N`` variances before any observation.
        indices: ``n`` rows observed or expected.
        L: ``n x n`` factor of their covariance plus noise.
        a: ``n`` whitened residuals.
        memory_budget: Bytes for the path rows and for temporary arrays, each.
    """

    prior: GPPrior
    F: Tensor
    mean: Tensor
    variance: Tensor
    prior_variance: Tensor
    indices: Tensor
    L: Tensor
    a: Tensor
    memory_budget: int = MEMORY_BUDGET
    _rows: _Rows | None = None
    _expected: tuple[Tensor, ...] = ()

    @classmethod
    def start(
        cls, prior: GPPrior, X: Tensor, memory_budget: int = MEMORY_BUDGET
    ) -> PoolPosterior:
        r"""Before any observation, on ``N x d`` rows in the user's space."""
        with torch.no_grad():
            F = prior.features(X)
            mean, variance = prior.mean(F), prior.variance(F)
        none = mean.new_zeros(0)
        return cls(
            prior,
            F,
            mean.expand(F.shape[-2]).clone(),
            variance.clone(),
            variance,
            torch.empty(0, dtype=torch.long),
            none.view(0, 0),
            none,
            memory_budget,
            _Rows(F.shape[-2]),
        )

    @property
    def sigma(self) -> Tensor:
        r"""``N`` posterior standard deviations of the function."""
        return self.variance.clamp_min(0.0).sqrt()

    @property
    def scale(self) -> float:
        r"""The prior's standard deviation: the unit of ties."""
        return float(self.prior_variance.max().sqrt())

    def observe(self, indices: Tensor, y: Tensor, noise_var: Tensor) -> PoolPosterior:
        r"""After ``q`` more observations.

        Args:
            indices: ``q`` rows.
            y: ``q`` values, units of ``y``.
            noise_var: ``q`` noise variances, units of ``y`` squared.
        """
        if self._expected:
            raise ValueError("Expected no hypothetical rows when observing real ones.")
        if indices.numel() == 0:
            return self
        with torch.no_grad():
            cross, block = self._cross(indices)  # q x n, q x q
            L22 = factorize(block - cross @ cross.mT, noise_var)
            residual = (y - self.prior_mean_at(indices) - cross @ self.a).unsqueeze(-1)
            a2 = torch.linalg.solve_triangular(L22, residual, upper=False).squeeze(-1)
            rows = path_rows(L22, self._residual_covariance(indices, cross))
            n, q = self.a.numel(), indices.numel()
            L = self.L.new_zeros(n + q, n + q)
            L[:n, :n], L[n:, :n], L[n:, n:] = self.L, cross, L22
            return replace(
                self,
                mean=self.mean + a2 @ rows,
                variance=self.variance - rows.square().sum(dim=0),
                indices=torch.cat((self.indices, indices)),
                L=L,
                a=torch.cat((self.a, a2)),
                _rows=self._store(rows, n),
            )

    def expect(self, index: int, noise_var: float) -> PoolPosterior:
        r"""After one more observation that is planned, not known: variances shrink.

        Args:
            index: The row.
            noise_var: The noise variance the observation will have.
        """
        with torch.no_grad():
            at = torch.tensor([index])
            row = self.covariance_with(at)[0]
            row = row / (row[index] + noise_var).clamp_min(1e-300).sqrt()
            return replace(
                self,
                variance=self.variance - row.square(),
                _expected=(*self._expected, row),
            )

    def covariance_with(self, indices: Tensor) -> Tensor:
        r"""``q x N`` posterior covariances between rows ``indices`` and the pool."""
        with torch.no_grad():
            cross, _ = self._cross(indices)
            covariance = self._residual_covariance(indices, cross)
            for row in self._expected:
                covariance = covariance - row[indices].unsqueeze(-1) * row
            return covariance

    def prior_mean_at(self, indices: Tensor) -> Tensor:
        r"""``q`` prior means at rows."""
        return self.prior.mean(self.F[indices]).expand(indices.numel())

    def _cross(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        F = self.F[indices]
        block = self.prior.covariance(F, F)
        n = self.a.numel()
        if n == 0:
            return block.new_zeros(indices.numel(), 0), block
        if self._rows is not None:
            return self._rows.data[:n, indices].mT, block
        return path_rows(self.L, self.prior.covariance(self.F[self.indices], F)).mT, block

    def _residual_covariance(self, indices: Tensor, cross: Tensor) -> Tensor:
        F, n = self.F[indices], self.a.numel()
        if self._rows is not None and n:
            return self.prior.covariance(F, self.F) - cross @ self._rows.data[:n]
        # cross' = L^-1 k(train, new), so W = L^-T cross' gives cross V = W' k(train, x)
        W = torch.linalg.solve_triangular(self.L.mT, cross.mT, upper=True)
        train = self.F[self.indices]
        out = self.mean.new_empty(indices.numel(), self.F.shape[-2])
        per_row = n + indices.numel()
        for rows in row_blocks(self.F.shape[-2], per_row, self.memory_budget):
            out[:, rows] = self.prior.covariance(F, self.F[rows])
            if n:
                out[:, rows] -= W.mT @ self.prior.covariance(train, self.F[rows])
        return out

    def _store(self, rows: Tensor, n: int) -> _Rows | None:
        fits = 8 * (n + rows.shape[0]) * rows.shape[1] <= self.memory_budget
        return self._rows.append(n, rows) if self._rows is not None and fits else None
