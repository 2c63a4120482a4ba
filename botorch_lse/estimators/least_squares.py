r"""Weighted least squares on arms: counts and means instead of lists of pulls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_lse._validation import (
    check_shape,
    non_negative_vector,
    real_matrix,
    real_vector,
    row_indices,
)
from botorch_lse.data.names import beside_rows
from botorch_lse.data.observations import Observations
from botorch_lse.designs.basis import SPAN_TOLERANCE, outside_span


@dataclass(frozen=True, eq=False)
class LeastSquares:
    r"""A weighted least squares fit.

    Args:
        theta: ``d`` coefficients; where several fit equally well, the shortest.
        root: ``d x h`` with ``root root' = (X' W X)^+``, ``h`` the rank.
    """

    theta: Tensor
    root: Tensor

    def squared_norms(self, V: Tensor) -> Tensor:
        r"""The norms ``v' (X' W X)^+ v`` of vectors.

        They are the variances of ``v' theta`` if ``W`` is the inverse noise covariance,
        infinite where the data do not determine ``v' theta``.

        Args:
            V: ``T x d``.
        """
        norms = (V @ self.root).square().sum(dim=-1)
        return norms.masked_fill(outside_span(V, self.root), torch.inf)


def weighted_least_squares(X: Any, y: Any, weights: Any = None) -> LeastSquares:
    r"""The least squares fit ``argmin over theta of sum_i w_i (y_i - x_i' theta)^2``.

    With ``w_i = 1 / s2_i`` for noise variances ``s2_i`` it is the linear unbiased
    estimator of least variance, ``(X' W X)^-1``. An entry that is the mean of ``k``
    measurements counts with ``k`` times the weight.

    Example:
        >>> X = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> fit = weighted_least_squares(X, [0.0, 4.0], [1.0, 3.0])
        >>> fit.theta.round(decimals=6).tolist()
        [3.0, 0.0]

    Args:
        X: ``n x d`` features; they need not span ``R^d``.
        y: ``n`` values.
        weights: ``n`` weights, at least 0; default 1.

    Raises:
        ValueError: If a number is not finite, or a weight negative.
        BotorchTensorDimensionError: If the lengths differ.

    Source:
        Weltz et al. (2023), Eq. (2). Deviation: on the span of the features.
    """
    y, weights = beside_rows(y, X, "y"), beside_rows(weights, X, "weights")
    X = real_matrix(X, "X")
    n = X.shape[0]
    y = real_vector(y, "y", n, "row of `X`")
    if weights is None:
        weights = torch.ones(n, dtype=torch.float64)
    root = non_negative_vector(weights, "weights", n, "row of `X`").sqrt()
    U, sizes, Vh = torch.linalg.svd(root.unsqueeze(-1) * X, full_matrices=False)
    kept = sizes > SPAN_TOLERANCE * sizes[0]
    covariance_root = Vh[kept].mT / sizes[kept]
    return LeastSquares(covariance_root @ (U[:, kept].mT @ (root * y)), covariance_root)


@dataclass(frozen=True, eq=False)
class ArmStatistics:
    r"""Sufficient statistics of Gaussian measurements of ``N`` arms.

    Args:
        counts: ``N`` int64, how often each arm was measured.
        means: ``N`` means, units of ``y``; 0 where nothing was measured.
        scatter: ``N`` sums of squared deviations from the arm's own mean, units of
            ``y`` squared.
    """

    counts: Tensor
    means: Tensor
    scatter: Tensor

    @classmethod
    def empty(cls, N: int) -> ArmStatistics:
        r"""The statistics of ``N`` arms before any measurement."""
        none = torch.zeros(N, dtype=torch.float64)
        return cls(torch.zeros(N, dtype=torch.long), none, none)

    @classmethod
    def of_values(cls, indices: Any, y: Any, N: int) -> ArmStatistics:
        r"""The statistics of single measurements: the arm and the value of each."""
        rows = row_indices(indices, "indices", N)
        values = real_vector(y, "y", rows.numel(), "entry of `indices`")
        single = torch.ones_like(rows)
        return cls._pooled(rows, values, torch.zeros_like(values), single, N)

    @classmethod
    def of_observations(cls, observations: Observations, N: int) -> ArmStatistics:
        r"""The statistics of observations, some of them means of replicates.

        Args:
            observations: An entry with ``counts`` of ``k`` is a mean, and its ``yvar``
                the sample variance of the ``k`` values divided by ``k``, their scatter
                about the mean. The ``yvar`` of single values is not used.
            N: The number of arms.

        Raises:
            BotorchTensorDimensionError: If there are several outputs.
            ValueError: If means come without variance.
        """
        check_shape(observations.y.ndim == 1, observations.y, "y", "with one output")
        counts, yvar = observations.replicates, observations.yvar
        if yvar is None:
            if bool((counts > 1).any()):
                raise ValueError(
                    "Expected `yvar` with means of replicates, but got None. Give the "
                    "sample variance of the replicates divided by their number."
                )
            yvar = torch.zeros_like(observations.y)
        k = counts.double()  # the square of a count overflows int64
        scatter = (k - 1) * k * yvar
        return cls._pooled(observations.indices, observations.y, scatter, counts, N)

    @classmethod
    def _pooled(
        cls, rows: Tensor, means: Tensor, scatter: Tensor, counts: Tensor, N: int
    ) -> ArmStatistics:
        r"""The statistics of all arms from entries, several of which may be of one arm.

        Args:
            rows: The arm of each entry.
            means: Its mean.
            scatter: Its sum of squared deviations from its mean.
            counts: How many measurements it stands for.
            N: The number of arms.
        """
        total = torch.zeros(N, dtype=torch.long).index_add(0, rows, counts)
        zero = torch.zeros(N, dtype=torch.float64)
        mean = zero.index_add(0, rows, means * counts) / total.clamp_min(1)
        between = counts * (means - mean[rows]).square()
        return cls(total, mean, zero.index_add(0, rows, scatter + between))

    def merge(self, other: ArmStatistics) -> ArmStatistics:
        r"""The statistics of the measurements of both."""
        rows = torch.arange(len(self.counts)).repeat(2)
        parts = zip(self._fields(), other._fields(), strict=True)
        means, scatter, counts = (torch.cat(pair) for pair in parts)
        return self._pooled(rows, means, scatter, counts, len(self.counts))

    def _fields(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.means, self.scatter, self.counts

    @property
    def n(self) -> int:
        r"""The number of measurements of all arms together."""
        return int(self.counts.sum())

    def fit(self, X: Tensor, noise_var: Tensor | None = None) -> LeastSquares:
        r"""Weighted least squares on all measurements.

        Args:
            X: ``N x d`` features of the arms.
            noise_var: ``N`` noise variances; default 1.
        """
        measured = self.counts > 0
        weights = self.counts[measured].double()
        if noise_var is not None:
            weights = weights / noise_var[measured]
        return weighted_least_squares(X[measured], self.means[measured], weights)

    def squared_residuals(self, predicted: Tensor) -> Tensor:
        r"""The mean squared deviations of arms' measurements from predictions (``N``).

        Args:
            predicted: ``N`` values; arms without measurement get 0.
        """
        k = self.counts
        offset = (self.means - predicted).square().masked_fill(k == 0, 0.0)
        return self.scatter / k.clamp_min(1) + offset
