r"""One design for several outputs: a mixture of their own optimal designs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

STEPS = 30
"""Steps of the search for the mixture."""


def design_value(problem: dict[str, Any], weights: Tensor) -> float:
    r"""The largest (weighted) squared norm of a design.

    Args:
        problem: Arguments of ``optimal_design`` with features, without pairs.
        weights: ``N`` weights.
    """
    Phi, noise = problem["X"], problem.get("noise_var")
    rate = weights if noise is None else weights / noise
    A = (Phi.mT * rate) @ Phi + problem["gamma"] * torch.eye(Phi.shape[1]).to(Phi)
    targets = problem.get("targets")
    rows = Phi if targets is None else targets
    V = rows if rows.ndim == 2 else Phi[rows]
    L = torch.linalg.cholesky(A)
    norms = torch.linalg.solve_triangular(L, V.mT, upper=False).square().sum(dim=0)
    factors = problem.get("target_weights")
    return float((norms if factors is None else factors * norms).max())


def mixed_weights(
    own: Sequence[Tensor], values: Callable[[Tensor], Sequence[float]]
) -> Tensor:
    r"""The mixture of designs whose largest value is smallest, nearly.

    Towards an output's own optimal design its value falls, so the output that fares
    worst gets a larger share until all fare alike. A mixture is not the optimal design
    for all outputs; where their covariances are alike it is.

    Args:
        own: For each output its optimal design, ``N`` weights.
        values: From a design to the value of each output, in common units.

    Returns:
        ``N`` weights.
    """
    if len(own) == 1:
        return own[0]
    designs = torch.stack(list(own))
    share = designs.new_full((len(own),), 1 / len(own))
    best, lowest = designs.mean(dim=0), torch.inf
    for step in range(STEPS):
        mixture = share @ designs
        found = torch.tensor(values(mixture), dtype=designs.dtype)
        if float(found.max()) < lowest:
            best, lowest = mixture, float(found.max())
        rate = 2 / (1 + step) ** 0.5
        share = torch.softmax(share.log() + rate * found / found.max(), dim=0)
    return best
