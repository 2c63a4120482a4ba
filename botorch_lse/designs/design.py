r"""A design and its proof."""

from __future__ import annotations

from dataclasses import dataclass

from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor


class DesignWarning(BotorchWarning):
    r"""A design is worse than it was asked to be; its reported gap is true."""


@dataclass(frozen=True, eq=False)
class Design:
    r"""Weights on the design points, and how far they are from optimal at most.

    Args:
        weights: ``N`` weights on the simplex.
        value: The largest (weighted) squared norm over all targets.
        lower_bound: What no design can beat.
        gap: ``value / lower_bound - 1``, 0 where both are 0.
        converged: Whether ``gap`` is within the tolerance.
        steps: Steps of the method; their cost differs between methods.
        support: The points with positive weight, ascending.
        binding: The targets that prove the bound, with the best bound's own design:
            numbers, or ``t x 2`` for pairs.
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
