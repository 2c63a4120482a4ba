r"""Widths for a function with a norm bound in a kernel's space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_lse.checks import in_interval


@dataclass(frozen=True)
class RKHSWidth:
    r"""``|f(x) - mean(x)| <= width * sigma_lambda(x)`` for all ``x`` and all times.

    ``width = B + (R / sqrt(lambda)) sqrt(2 log(det(I + K / lambda)^(1/2) / delta))``
    with ``mean(x) = k(x)' (K + lambda I)^-1 y`` and ``sigma_lambda(x)^2 = k(x, x) -
    k(x)' (K + lambda I)^-1 k(x)``, for every fixed ``lambda > 0`` and repeated rows.

    Assumes: ``f`` has norm at most ``B`` in the space of the given kernel (known, not
    refitted), and the noise, given the past, is sub-Gaussian with scale at most ``R``.

    Args:
        bound: ``B``.
        noise_std: ``R``, units of ``y``.
        ridge: ``lambda``, fixed before the first measurement.
        delta: The failure probability.

    Example:
        >>> width = RKHSWidth(bound=1.0, noise_std=0.5, ridge=0.25, delta=0.1)
        >>> round(width(torch.zeros(0, 0)), 3)  # 1 + sqrt(2 log 10)
        3.146

    Source:
        Chowdhury and Gopalan (2017), Theorem 2 and Lemma 3, for any ``lambda`` instead
        of ``1 + eta``, and with the exact determinant instead of the information gain's
        bound; Abbasi-Yadkori (2012), Theorem 3.11.
    """

    bound: float
    noise_std: float
    ridge: float
    delta: float

    def __post_init__(self) -> None:
        in_interval(self.bound, "bound", 0.0, math.inf, closed_low=True)
        in_interval(self.noise_std, "noise_std", 0.0, math.inf, closed_low=True)
        in_interval(self.ridge, "ridge", 0.0, math.inf)
        in_interval(self.delta, "delta", 0.0, 1.0)

    def __call__(self, K: Tensor) -> float:
        r"""The factor of ``sigma_lambda``, from the ``n x n`` Gram matrix."""
        eye = torch.eye(len(K), dtype=K.dtype, device=K.device)
        L = torch.linalg.cholesky(eye + K / self.ridge)
        return float(self.from_information(L.diagonal().log().sum()))

    def from_information(self, information: Tensor) -> Tensor:
        r"""The factor, from ``1/2 log det(I + K / lambda)`` that is known already."""
        root = (2 * (information + math.log(1 / self.delta))).sqrt()
        return self.bound + self.noise_std / math.sqrt(self.ridge) * root

    def interval(
        self, K: Tensor, k: Tensor, diagonal: Tensor, y: Tensor
    ) -> tuple[Tensor, Tensor]:
        r"""``mean`` and half width at ``T`` points.

        Args:
            K: ``n x n`` Gram matrix of what was measured.
            k: ``n x T``, the kernel between that and the points.
            diagonal: ``T``, ``k(x, x)``.
            y: ``n`` values.
        """
        eye = torch.eye(len(K), dtype=K.dtype, device=K.device)
        L = torch.linalg.cholesky(K + self.ridge * eye)
        a = torch.linalg.solve_triangular(L, k, upper=False)
        b = torch.linalg.solve_triangular(L, y.unsqueeze(-1), upper=False)
        variance = (diagonal - a.square().sum(dim=0)).clamp_min(0.0)
        return (a.mT @ b).squeeze(-1), self(K) * variance.sqrt()
