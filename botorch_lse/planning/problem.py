r"""What a batch is to predict: rows of a pool, or differences between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from botorch_lse.models.posterior import PoolPosterior


class BatchProblem(Protocol):
    r"""Which rows may be measured, and which variances a batch is to make small.

    Points are numbered: first the ``N`` rows of the pool, which can be measured, then
    points that can only be predicted. The planner asks nothing but these questions, so
    that an acquisition function on any model and a strategy on a pool's posterior get
    their batches from the same code.
    """

    @property
    def noise_var(self) -> Tensor:
        r"""``N`` noise variances of measurements of the rows, units of ``y`` squared.

        At least what the factorization of a batch needs: a row's least noise.
        """

    @property
    def targets(self) -> Tensor:
        r"""``T`` numbers of points whose variances matter."""

    @property
    def pairs_factor(self) -> float | None:
        r"""``c`` where the targets are all ordered pairs ``f(x) - c f(x')``."""

    @property
    def variance(self) -> Tensor:
        r"""The variance of each point before the batch."""

    @property
    def weights(self) -> Tensor | None:
        r"""Factors of the variances: ``T``, for pairs ``T x T``; ``None``: all 1."""

    @property
    def scale(self) -> float:
        r"""The largest weighted variance that can occur.

        Gains below a tiny share of it are rounding: the lowest of such rows is taken.
        """

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between points, by their numbers."""

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets."""


@dataclass(frozen=True, eq=False)
class PosteriorProblem:
    r"""A ``BatchProblem`` on the posterior of a pool.

    Args:
        posterior: On the pool's rows, perhaps followed by points to predict only.
        noise_var: ``N`` noise variances; below ``posterior.least_noise`` they count as
            that.
        targets: ``T`` rows of the posterior.
        weights: ``T`` factors of the variances, for pairs ``T x T``; ``None``: all 1.
        pairs_factor: ``c`` where the targets are all pairs ``f(x) - c f(x')``.
    """

    posterior: PoolPosterior
    noise_var: Tensor
    targets: Tensor
    weights: Tensor | None = None
    pairs_factor: float | None = None

    @property
    def variance(self) -> Tensor:
        r"""The variance of each row before the batch."""
        return self.posterior.variance

    @property
    def scale(self) -> float:
        r"""The prior's variance, times the largest weight."""
        largest = self.posterior.scale**2
        return largest if self.weights is None else largest * float(self.weights.max())

    def block(self, rows: Tensor | slice, columns: Tensor | slice) -> Tensor:
        r"""Covariances between rows of the posterior."""
        every = torch.arange(self.variance.numel())
        if isinstance(rows, slice) and len(every[rows]) == len(every):
            # What is stored of all rows need not be gathered.
            return self.posterior.covariance_with(every[columns]).mT
        if isinstance(columns, slice) and len(every[columns]) == len(every):
            return self.posterior.covariance_with(every[rows])
        return self.posterior.covariance_between(every[rows], every[columns])

    def gram_rows(self, rows: slice) -> Tensor:
        r"""Covariances of targets ``rows`` with all targets."""
        if self._gram is not None:
            return self._gram[rows]
        return self.block(self.targets[rows], self.targets)

    @cached_property
    def _gram(self) -> Tensor | None:
        r"""``T x T`` covariances of the targets, where they fit.

        Each step of a search over pairs needs them all.
        """
        fits = 8 * self.targets.numel() ** 2 <= self.posterior.memory_budget // 4
        return self.block(self.targets, self.targets) if fits else None
