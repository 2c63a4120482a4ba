r"""Posteriors after every observation: at any point, or on a whole pool.

``PosteriorPath`` holds the past of a fitted model: the posteriors after each of its
observations or rounds, at any points. ``PoolPosterior`` goes forward: the posterior on
all rows of a pool, one new observation at a time, measured or only planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models.model import Model
from torch import Tensor

from botorch_lse.checks import whole_number, whole_numbers
from botorch_lse.functional.jitter import ROUNDING, least_noise
from botorch_lse.functional.path import (
    extended,
    factorize,
    path_moments,
    path_rows,
    round_ends,
)
from botorch_lse.models.prior import GPPrior, training_data

MEMORY_BUDGET = 2**30
"""Bytes that the temporary arrays over a pool may take, unless said otherwise."""

FAST_BLOCK = 2**25
"""Bytes beyond which blocks are not made larger even where the budget allows: arrays
that stay near the processor's caches are several times faster."""

COPIES = 6
"""Arrays of observations times rows alive at once: covariances and their temporaries,
path rows, and two cumulative sums."""

WHOLE_GRAM = 400
"""Rows up to which all prior covariances are computed at once: a call of a kernel takes
about as long for this table as for five of its columns."""


def checked_budget(memory_budget: Any, per_row: int, what: str) -> int:
    r"""``memory_budget`` if one row of an array fits it.

    Args:
        memory_budget: Bytes.
        per_row: Numbers in the row.
        what: What the row is, for people.

    Raises:
        ValueError: If it is no whole number or too small; the message says the least.
    """
    budget, least = whole_number(memory_budget, "memory_budget", 1), 8 * per_row
    if budget < least:
        raise ValueError(
            f"Expected `memory_budget` of at least {least} bytes, {what}, but got "
            f"{budget}. The default is {MEMORY_BUDGET}."
        )
    return budget


def row_blocks(n_rows: int, per_row: int, budget: int = MEMORY_BUDGET) -> list[slice]:
    r"""Slices of a pool such that ``per_row`` float64 numbers a row fit the budget.

    Args:
        n_rows: Rows of the pool.
        per_row: Numbers held per row in one array (usually the observations).
        budget: Bytes for all temporary arrays together.
    """
    rows = max(1, min(budget, FAST_BLOCK) // (8 * COPIES * max(per_row, 1)))
    return [slice(i, min(i + rows, n_rows)) for i in range(0, n_rows, rows)]


@dataclass(frozen=True, eq=False)
class PosteriorPath:
    r"""The posteriors of an exact GP after each prefix of its data.

    All hyper-parameters and transforms are fixed, so the past is one triangular solve
    (see ``functional.path``). Results are exact, float64 inside, in the units of ``y``.

    Example:
        >>> path = PosteriorPath.from_model(model)
        >>> means, variances = path.moments(pool_X)  # (n + 1) x N; row 0 is the prior

    Args:
        prior: The process.
        F: ``S x n x d'`` features of the observations.
        L: ``S x n x n`` factor of their covariance plus noise.
        a: ``S x n`` whitened residuals.
        noise_var: ``S x n`` noise variances, units of ``y`` squared.
        rounds: ``n`` round numbers, not decreasing.
    """

    prior: GPPrior
    F: Tensor
    L: Tensor
    a: Tensor
    noise_var: Tensor
    rounds: Tensor

    @classmethod
    def from_model(cls, model: Model, rounds: Tensor | None = None) -> PosteriorPath:
        r"""The path of a fitted model along its training data.

        Args:
            model: See ``GPPrior.from_model``.
            rounds: ``n`` round numbers, one per training observation, not decreasing;
                default each observation its own round.

        Raises:
            UnsupportedError: See ``GPPrior.from_model``.
            ValueError: If ``rounds`` has another length or decreases.
        """
        prior = GPPrior.from_model(model)
        F, y, noise_var = training_data(model, prior)  # type: ignore[arg-type]
        return cls.from_data(prior, F, y, noise_var, rounds)

    @classmethod
    def from_data(
        cls,
        prior: GPPrior,
        F: Tensor,
        y: Tensor,
        noise_var: Tensor,
        rounds: Tensor | None = None,
    ) -> PosteriorPath:
        r"""The path of ``S x n`` observations ``y`` at features ``S x n x d'``."""
        n = F.shape[-2]
        with torch.no_grad():
            L = factorize(prior.covariance(F, F), noise_var, prior.least_noise(F))
            residual = (y - prior.mean(F)).unsqueeze(-1)
            a = torch.linalg.solve_triangular(L, residual, upper=False).squeeze(-1)
        return cls(prior, F, L, a, noise_var, _check_rounds(rounds, n).to(L.device))

    @property
    def n_rounds(self) -> int:
        r"""The number of rounds, the prior not counted."""
        return int(torch.unique_consecutive(self.rounds).numel())

    def moments(self, X: Tensor, prefixes: bool = False) -> tuple[Tensor, Tensor]:
        r"""Means and variances at ``X`` before the first and after each round.

        Differentiable in ``X``. The caller chooses ``N`` so that ``n x N`` numbers fit
        into memory; ``blocks`` gives such pieces of a pool.

        Args:
            X: ``N x d`` points, or ``S x N x d``, in the user's space.
            prefixes: After each observation rather than after each round.

        Returns:
            Two tensors ``(R + 1) x S x N``, float64, in units of ``y`` and squared.
        """
        G = self.prior.features(X)
        V = path_rows(self.L, self.prior.covariance(self.F, G))
        rounds = torch.arange(self.rounds.numel()) if prefixes else self.rounds
        ends = round_ends(rounds).to(V.device)
        return path_moments(V, self.a, self.prior.mean(G), self.prior.variance(G), ends)

    def new_noise_var(self, p: int) -> Tensor:
        r"""``S x p`` noise variances of observations to come, units of ``y`` squared.

        The model's own; for known per-observation noise the average of the training
        data's, as in BoTorch's ``posterior(..., observation_noise=True)``.
        """
        noise = self.prior.noise_var
        noise = self.noise_var.mean(dim=-1) if noise is None else noise
        return noise.double().unsqueeze(-1).expand(*noise.shape, p)

    def after(self, F: Tensor, noise_var: Tensor) -> PosteriorPath:
        r"""The path with ``p`` further rows of unknown values: their residuals are 0.

        They shrink variances and leave means; they count as one more round.

        Args:
            F: ``S x p x d'`` features.
            noise_var: ``S x p`` variances of the observations to come.
        """
        cross = path_rows(self.L, self.prior.covariance(self.F, F)).mT  # S x p x n
        block = factorize(
            self.prior.covariance(F, F) - cross @ cross.mT,
            noise_var,
            self.prior.least_noise(torch.cat((self.F, F), dim=-2)),
        )
        none = self.rounds.new_zeros(1)
        last = self.rounds[-1:] + 1 if self.rounds.numel() else none
        new_a = self.a.new_zeros(*self.a.shape[:-1], F.shape[-2])
        return replace(
            self,
            F=torch.cat((self.F, F), dim=-2),
            L=extended(self.L, cross, block),
            a=torch.cat((self.a, new_a), dim=-1),
            noise_var=torch.cat((self.noise_var, noise_var), dim=-1),
            rounds=torch.cat((self.rounds, last.expand(F.shape[-2]))),
        )


def _check_rounds(rounds: Tensor | None, n: int) -> Tensor:
    r"""``n`` round numbers that do not decrease; default 0, 1, ..., ``n - 1``."""
    if rounds is None:
        return torch.arange(n)
    rounds = whole_numbers(rounds, "rounds")
    if rounds.shape != (n,):
        raise ValueError(
            f"Expected `rounds` to hold one round per training observation ({n}), but "
            f"got shape {tuple(rounds.shape)}."
        )
    if (rounds.diff() < 0).any():
        raise ValueError("Expected `rounds` not to decrease; sort the data by round.")
    return rounds


class _Rows:
    r"""Append-only storage of path rows that several posteriors share.

    A posterior of ``n`` observations sees the first ``n`` rows. Appending to the
    longest one writes in place; appending to a shorter one copies first, so that no
    posterior ever changes.
    """

    def __init__(self, N: int, capacity: int = 0) -> None:
        self.data = torch.empty(capacity, N, dtype=torch.float64)
        self.used = 0

    def extended(self, n: int, q: int, most: int) -> _Rows:
        r"""Storage with the first ``n`` rows and room for ``q`` more to be written.

        Args:
            n: Rows held so far.
            q: Rows to come.
            most: Rows that the storage may hold, at least ``n + q``.
        """
        target = self
        if n != self.used or n + q > self.data.shape[0]:
            capacity = min(max(2 * n, n + q, 16), most)
            target = _Rows(self.data.shape[1], capacity)
            target.data[:n] = self.data[:n]
        target.used = n + q
        return target


@dataclass(frozen=True, eq=False)
class PoolPosterior:
    r"""Mean and variance of every row of a pool, given observations at rows.

    ``observe`` and ``expect`` return new objects; each new observation costs one new
    path row (``O(n N)``). Rows of the path are kept while ``n x N`` numbers fit half
    the memory budget (storage that grows is copied, so both halves are used); beyond
    it they are computed again each time, in blocks of rows.

    Args:
        prior: The process, without batch shape.
        F: ``N x d'`` features of the pool.
        mean: ``N`` posterior means, units of ``y``.
        variance: ``N`` posterior variances, at least 0.
        prior_variance: ``N`` variances before any observation.
        indices: ``n`` rows observed or expected.
        L: ``n x n`` factor of their covariance plus noise.
        a: ``n`` whitened residuals.
        information: ``1/2 log det(I + K / noise)`` of what was observed, nats.
        memory_budget: Bytes for the path rows and for temporary arrays.
        is_exact: Whether a measurement counted as exact: with the least noise.
    """

    prior: GPPrior
    F: Tensor
    mean: Tensor
    variance: Tensor
    prior_variance: Tensor
    indices: Tensor
    L: Tensor
    a: Tensor
    information: Tensor
    memory_budget: int = MEMORY_BUDGET
    is_exact: bool = False
    _rows: _Rows | None = None
    _gram: Tensor | None = None
    _expected: tuple[Tensor, ...] = ()

    @classmethod
    def start(
        cls, prior: GPPrior, X: Tensor, memory_budget: int = MEMORY_BUDGET
    ) -> PoolPosterior:
        r"""Before any observation, on ``N x d`` rows in the user's space.

        Raises:
            BotorchTensorDimensionError: If the prior is for other columns.
        """
        with torch.no_grad():
            _check_columns(prior, X)
            F = prior.features(X)
            mean, variance = prior.mean(F), prior.variance(F)
            N = F.shape[-2]
            is_small = N <= WHOLE_GRAM and memory_budget // 2 >= 8 * N * N
            gram = prior.covariance(F, F) if is_small else None
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
            mean.new_zeros(()),
            memory_budget,
            _rows=_Rows(N),
            _gram=gram,
        )

    @property
    def sigma(self) -> Tensor:
        r"""``N`` posterior standard deviations of the function."""
        return self.variance.sqrt()

    @property
    def scale(self) -> float:
        r"""The prior's standard deviation: the unit of ties."""
        return float(self.prior_variance.max().sqrt())

    @cached_property
    def least_noise(self) -> Tensor:
        r"""The least noise variance of an observation, units of ``y`` squared."""
        return least_noise(self.prior_variance, self.prior.dtype)

    def observe(self, indices: Tensor, y: Tensor, noise_var: Tensor) -> PoolPosterior:
        r"""After ``q`` more observations.

        Args:
            indices: ``q`` rows.
            y: ``q`` values, units of ``y``.
            noise_var: ``q`` noise variances, units of ``y`` squared; those below
                ``least_noise`` are raised to it.
        """
        if self._expected:
            raise ValueError("Expected no hypothetical rows when observing real ones.")
        if indices.numel() == 0:
            return self
        with torch.no_grad():
            cross = self._cross(indices)  # q x n
            left = self.prior_covariance(indices, indices) - cross @ cross.mT
            is_exact = self.is_exact or bool((noise_var <= self.least_noise).any())
            noise_var = torch.maximum(noise_var, self.least_noise)
            L22 = factorize(left, noise_var, self.least_noise)
            residual = (y - self.prior_mean_at(indices) - cross @ self.a).unsqueeze(-1)
            a2 = torch.linalg.solve_triangular(L22, residual, upper=False).squeeze(-1)
            n, q = self.a.numel(), indices.numel()
            storage = self._room(q)
            mean, variance = self.mean.clone(), self.variance.clone()
            for rows, covariance in self._residual_blocks(indices, cross):
                V = path_rows(L22, covariance)
                mean[rows] += a2 @ V
                variance[rows] -= V.square().sum(dim=0)
                variance[rows].clamp_min_(0.0)
                if storage is not None:
                    storage.data[n : n + q, rows] = V
            information = self.information + L22.diagonal().log().sum()
            return replace(
                self,
                mean=mean,
                variance=variance,
                indices=torch.cat((self.indices, indices)),
                L=extended(self.L, cross, L22),
                information=information - noise_var.log().sum() / 2,
                a=torch.cat((self.a, a2)),
                is_exact=is_exact,
                _rows=storage,
            )

    def before_data(self) -> PoolPosterior:
        r"""The same process before any observation."""
        none = self.a[:0]
        every = torch.arange(self.F.shape[-2])
        return replace(
            self,
            mean=self.prior_mean_at(every).clone(),
            variance=self.prior_variance.clone(),
            indices=self.indices[:0],
            L=none.view(0, 0),
            a=none,
            information=torch.zeros_like(self.information),
            is_exact=False,
            _rows=_Rows(len(every)),
            _expected=(),
        )

    def expect(self, index: int, noise_var: float) -> PoolPosterior:
        r"""After one more observation that is planned, not known: variances shrink.

        Args:
            index: The row.
            noise_var: The noise variance the observation will have, raised likewise.
        """
        with torch.no_grad():
            at = torch.tensor([index])
            row = self.covariance_with(at)[0]
            observed = row[index].clamp_min(0.0) + self.least_noise.clamp_min(noise_var)
            row = row / observed.sqrt()
            return replace(
                self,
                variance=(self.variance - row.square()).clamp_min(0.0),
                _expected=(*self._expected, row),
            )

    def variance_between(self, i: Tensor, j: Tensor, factor: float = 1.0) -> Tensor:
        r"""``B x L`` posterior variances of ``f(i) - factor f(j)``.

        Where the prior's variances cancel to within rounding, that rounding is what
        remains: two rows that nearly coincide are never told apart for certain.

        Args:
            i: ``B`` rows.
            j: ``L`` rows.
            factor: Of the second function value.
        """
        spread = self.variance[i].unsqueeze(-1) + factor**2 * self.variance[j]
        spread = spread - 2 * factor * self.covariance_between(i, j)
        return spread.clamp_min(ROUNDING * self.scale**2)

    def covariance_with(self, indices: Tensor) -> Tensor:
        r"""``q x N`` posterior covariances between rows ``indices`` and the pool."""
        with torch.no_grad():
            covariance = self.mean.new_empty(indices.numel(), self.F.shape[-2])
            for rows, block in self._residual_blocks(indices, self._cross(indices)):
                covariance[:, rows] = block
            for row in self._expected:
                covariance = covariance - row[indices].unsqueeze(-1) * row
            return covariance

    def covariance_between(self, rows: Tensor, columns: Tensor) -> Tensor:
        r"""``r x c`` posterior covariances of some rows with others, in one piece."""
        with torch.no_grad():
            prior = self.prior_covariance(rows, columns)
            covariance = prior - self._cross(rows) @ self._cross(columns).mT
            for row in self._expected:
                covariance = covariance - row[rows].unsqueeze(-1) * row[columns]
            return covariance

    def prior_covariance(self, rows: Tensor, columns: Tensor | slice) -> Tensor:
        r"""``r x c`` covariances before any observation, units of ``y`` squared."""
        with torch.no_grad():
            if self._gram is not None:
                return self._gram[rows][:, columns]
            return self.prior.covariance(self.F[rows], self.F[columns])

    def prior_mean_at(self, indices: Tensor) -> Tensor:
        r"""``q`` prior means at rows."""
        return self.prior.mean(self.F[indices]).expand(indices.numel())

    def _cross(self, indices: Tensor) -> Tensor:
        r"""``q x n`` entries of the path rows at rows ``indices``."""
        n = self.a.numel()
        if n == 0:
            return self.a.new_zeros(indices.numel(), 0)
        if self._rows is not None:
            return self._rows.data[:n, indices].mT
        return path_rows(self.L, self.prior_covariance(self.indices, indices)).mT

    def _residual_blocks(
        self, indices: Tensor, cross: Tensor
    ) -> Iterator[tuple[slice, Tensor]]:
        r"""Blocks of the pool, and ``q x block`` covariances with what is unexplained.

        Prior covariances less ``cross V``. Where the path rows ``V = L^-1 k(train, x)``
        are not stored, ``cross V = W' k(train, x)`` with ``W = L^-T cross'``.
        """
        n, N = self.a.numel(), self.F.shape[-2]
        stored = self._rows.data[:n] if self._rows is not None else None
        if stored is None:
            W = torch.linalg.solve_triangular(self.L.mT, cross.mT, upper=True)
        per_row = indices.numel() + (n if stored is None else 0)
        for rows in row_blocks(N, per_row, self.memory_budget):
            block = self.prior_covariance(indices, rows)
            if stored is not None:
                yield rows, block - cross @ stored[:, rows]
            else:
                yield rows, block - W.mT @ self.prior_covariance(self.indices, rows)

    def _room(self, q: int) -> _Rows | None:
        r"""Storage for ``q`` more rows, if half the memory budget can hold them all."""
        n, N = self.a.numel(), self.F.shape[-2]
        most = self.memory_budget // (2 * 8 * N)
        if self._rows is None or n + q > most:
            return None
        return self._rows.extended(n, q, most)


def _check_columns(prior: GPPrior, X: Tensor) -> None:
    r"""Complain about a prior that cannot take the columns of the pool."""
    try:
        prior.variance(prior.features(X[:1]))
    except RuntimeError as error:
        raise BotorchTensorDimensionError(
            f"Expected `model` to be for the {X.shape[-1]} columns of the pool, but it "
            f"cannot take them: {error}"
        ) from error
