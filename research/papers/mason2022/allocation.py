r"""Where MELK's rounds measure, and where an oracle would (Figure 1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_lse.designs import Design, optimal_design
from botorch_lse.models.gaussian_process import factorize
from botorch_lse.papers.complexity import level_set_complexity
from research.papers.mason2022.problems import rbf_prior
from research.papers.problems import NUGGET
from research.report import Claim, Table

LENGTHSCALE, GAMMA, TOLERANCE = 0.1, 1e-7, 1e-2
BLOCK = 2
NEAR = 0.1
"""Total variation that counts as nearly identical."""


@dataclass(frozen=True, eq=False)
class Allocation:
    r"""The designs of MELK's rounds on one function.

    Args:
        size: Points per side.
        X: ``size^2 x 2`` points.
        truth: ``size^2`` values; the level is 0.
        designs: One per round.
        active: Rows in each round.
        oracle: ``lambda_*`` of Theorem 3.1.
        complexity: Its value.
    """

    size: int
    X: Tensor
    truth: Tensor
    designs: list[Design]
    active: list[int]
    oracle: Tensor
    complexity: float

    def total(self, by_draws: bool = False) -> Tensor:
        r"""The weighted sum of the designs: weights ``2^{2t}``, or the rounds' numbers
        of draws, which are proportional to ``2^{2t}`` times the design's value.
        """
        values = [d.value if by_draws else 1.0 for d in self.designs]
        parts = [
            4.0**t * value * design.weights
            for t, (value, design) in enumerate(
                zip(values, self.designs, strict=True), start=1
            )
        ]
        summed = torch.stack(parts).sum(dim=0)
        return summed / summed.sum()

    def distance(self, weights: Tensor, block: int = 1) -> float:
        r"""Total variation to the oracle, on blocks of ``block x block`` cells."""
        difference = weights - self.oracle
        k = self.size // block
        if block > 1:
            cells = difference.view(k, block, k, block)
            difference = cells.sum(dim=(1, 3))
        return 0.5 * float(difference.abs().sum())

    def loss(self, weights: Tensor) -> float:
        r"""The oracle's objective under ``weights``, as a multiple of its own."""
        kernel = _kernel()
        with torch.no_grad():
            K = kernel(self.X, self.X).to_dense()
        used = weights > 0
        root = weights[used].sqrt()
        inner = root.unsqueeze(-1) * K[used][:, used] * root
        L = factorize(inner, torch.full_like(root, GAMMA))
        V = torch.linalg.solve_triangular(L, root.unsqueeze(-1) * K[used], upper=False)
        norms = (K.diagonal() - V.square().sum(dim=0)) / GAMMA
        return float((norms / self.truth.square()).max()) / self.complexity


def _kernel() -> RBFKernel:
    kernel = RBFKernel().double()
    kernel.lengthscale = LENGTHSCALE
    return kernel.requires_grad_(False)


def allocate(seed: int, size: int) -> Allocation:
    r"""MELK's rounds where every estimate equals the truth.

    The rounds' numbers of draws make the errors of the estimates small beside the
    elimination width (and astronomical: ``2^{2t}``), so the draws themselves are left
    out. A row leaves after round ``t`` if it is further than ``2 2^{-t}`` from the
    level. The function is ``theta' phi(x)`` with standard normal ``theta`` and features
    ``phi`` of the kernel on the grid, a draw from the Gaussian process.
    """
    line = torch.arange(1, size + 1, dtype=torch.float64) / size
    X = torch.cartesian_prod(line, line)
    truth = _draw(X, seed)
    kernel = _kernel()
    options = {"kernel": kernel, "gamma": GAMMA, "tol": TOLERANCE}
    oracle = level_set_complexity(X, truth, 0.0, **options)  # type: ignore[arg-type]
    designs: list[Design] = []
    active: list[int] = []
    rows = torch.arange(len(X))
    while rows.numel():
        active.append(rows.numel())
        start = designs[-1] if designs else None
        designs.append(optimal_design(X, rows, initial=start, **options))  # type: ignore[arg-type]
        rows = rows[truth[rows].abs() <= 2 * 2.0 ** -len(designs)]
    weights = oracle.design.weights
    return Allocation(size, X, truth, designs, active, weights, oracle.value)


def _draw(X: Tensor, seed: int) -> Tensor:
    with torch.no_grad():
        covariance = rbf_prior(LENGTHSCALE).covariance(X, X)
    nugget = torch.full((len(X),), NUGGET, dtype=torch.float64)
    generator = torch.Generator().manual_seed(2 * seed)
    theta = torch.randn(len(X), generator=generator, dtype=torch.float64)
    return factorize(covariance, nugget) @ theta


def allocation_table(found: list[Allocation]) -> Table:
    r"""Both weightings of every function."""
    rows = []
    for seed, one in enumerate(found):
        for name, by_draws in (("2^{2t}", False), ("draws N_t", True)):
            weights = one.total(by_draws)
            rows.append(
                (
                    str(seed),
                    name,
                    str(len(one.designs)),
                    f"{one.distance(weights):.3f}",
                    f"{one.distance(weights, BLOCK):.3f}",
                    f"{one.loss(weights):.2f}",
                )
            )
    columns = (
        "function",
        "rounds weighted by",
        "rounds",
        "total variation",
        f"on blocks of {BLOCK} x {BLOCK}",
        "oracle's objective, times its optimum",
    )
    return Table("Figure 1: sum of MELK's designs against the oracle", columns, rows)


def allocation_claims(found: list[Allocation]) -> list[Claim]:
    r"""Whether the sums are nearly the oracle's allocation."""
    claims = []
    for name, by_draws in (("2^{2t}", False), ("the numbers of draws", True)):
        distances = [one.distance(one.total(by_draws)) for one in found]
        shown = ", ".join(f"{d:.3f}" for d in distances)
        claims.append(
            Claim(
                f"1: designs weighted by {name} within total variation {NEAR:g} of the "
                "oracle's allocation (mean)",
                "nearly identical",
                shown,
                sum(distances) / len(distances) <= NEAR,
            )
        )
    return claims
