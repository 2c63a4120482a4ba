"""The papers' solvers do what the papers say, and their proofs are honest."""

import pytest
import torch

from botorch_lse.designs import DesignWarning, optimal_design
from botorch_lse.papers.kone2025 import mirror_descent_design
from botorch_lse.papers.mason2022 import frank_wolfe_design
from tests.designs.problems import rbf


def line(N):
    return torch.linspace(0, 1, N, dtype=torch.float64).unsqueeze(-1)


def test_frank_wolfes_first_steps_are_algorithm_4_by_hand():
    K = rbf(0.2).double()(line(7)).to_dense().detach()
    gamma, lam = 0.1, torch.zeros(7, dtype=torch.float64)
    lam[0] = 1.0
    Phi = torch.linalg.cholesky(K + 1e-13 * torch.eye(7, dtype=torch.float64))
    for t in range(1, 6):
        A = Phi.T @ (lam[:, None] * Phi) + gamma * torch.eye(7, dtype=torch.float64)
        inner = Phi @ torch.linalg.inv(A) @ Phi.T
        worst = int(inner.diagonal().argmax())
        row = int((inner[worst] ** 2).argmax())
        lam = (1 - 1 / (t + 2)) * lam
        lam[row] += 1 / (t + 2)
    found = frank_wolfe_design(
        line(7), gamma=gamma, kernel=rbf(0.2), max_steps=5, tol=1e3
    )
    assert torch.allclose(found.weights, lam, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [None, 0.9])
def test_frank_wolfe_encloses_the_optimum_on_kernel_and_features(factor):
    X, shared = line(30), {"gamma": 0.1, "pairs_factor": factor}
    best = optimal_design(X, kernel=rbf(0.1), tol=1e-5, **shared)
    values, vectors = torch.linalg.eigh(rbf(0.1).double()(X).to_dense().detach())
    Phi = vectors * values.clamp_min(0).sqrt()
    for found in (
        frank_wolfe_design(X, kernel=rbf(0.1), max_steps=300, tol=9.0, **shared),
        frank_wolfe_design(Phi, max_steps=300, tol=9.0, **shared),
    ):
        assert found.lower_bound <= best.value * (1 + 1e-9)
        assert found.value >= best.lower_bound
        assert found.value <= 1.2 * best.value


def test_mirror_descent_reaches_its_tolerance():
    Phi = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)).double()
    found = mirror_descent_design(Phi, max_steps=5000, tol=0.02)
    assert found.converged
    assert found.value <= 4 * 1.02


def test_a_baseline_out_of_time_says_so():
    Phi = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)).double()
    with pytest.warns(DesignWarning, match="not within"):
        found = mirror_descent_design(Phi, max_seconds=0.0, tol=1e-6)
    assert found.steps == 1
    with pytest.warns(DesignWarning, match="not within"):
        frank_wolfe_design(Phi, gamma=0.1, max_seconds=0.0, tol=1e-6)


def test_frank_wolfe_needs_a_ridge():
    with pytest.raises(ValueError, match="`gamma` in"):
        frank_wolfe_design(torch.eye(2), gamma=0.0)
