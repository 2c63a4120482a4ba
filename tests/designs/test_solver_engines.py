"""The parts of the solver: what each promises on its own."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse.designs import optimal_design
from botorch_lse.designs.basis import pivoted_cholesky, span_map, spanning_rows
from botorch_lse.designs.problem import (
    PairTargets,
    PairWeights,
    Problem,
    VectorTargets,
    largest_pairs,
    norms_of_vectors,
    ridge_of,
)
from botorch_lse.designs.solver import (
    NEAR,
    WorkingSet,
    deletion_level,
    solve_restricted,
    spread_out,
)
from botorch_lse.papers.mason2022 import frank_wolfe_design
from research.benchmark.design_instances import INSTANCES
from tests.designs.problems import features


def rbf_covariance(X, lengthscale):
    return torch.exp(-((X[:, None] - X) ** 2).sum(-1) / (2 * lengthscale**2))


@given(seed=st.integers(0, 10**6), tolerance=st.sampled_from([1e-1, 1e-3, 1e-8]))
@settings(deadline=None, max_examples=25)
def test_the_basis_misses_at_most_its_residual(seed, tolerance):
    X = torch.rand(40, 2, generator=torch.Generator().manual_seed(seed)).double()
    K = rbf_covariance(X, 0.5)
    basis = pivoted_cholesky(K.diagonal().clone(), lambda i: K[:, i], tolerance)
    error = K - basis.Phi @ basis.Phi.T
    assert float(basis.residual.max()) <= tolerance
    assert torch.allclose(error.diagonal(), basis.residual, atol=1e-12)
    bound = (basis.residual[:, None] * basis.residual).sqrt()
    assert bool((error.abs() <= bound + 1e-10).all())


def test_a_basis_keeps_a_tolerance_per_row():
    X = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    K, tolerance = rbf_covariance(X, 0.05), torch.full((50,), 0.5, dtype=torch.float64)
    tolerance[20:30] = 1e-8
    basis = pivoted_cholesky(K.diagonal().clone(), lambda i: K[:, i], tolerance)
    assert bool((basis.residual <= tolerance).all())
    assert basis.pivots.numel() < 50


def test_spanning_rows_are_as_many_as_the_rank():
    Phi = features(30, 3) @ features(3, 8, seed=1)
    assert spanning_rows(Phi).numel() == 3
    inside = Phi @ span_map(Phi)
    gram = inside.T @ inside / 30
    assert torch.allclose(gram, torch.eye(3, dtype=torch.float64), atol=1e-10)


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_no_point_of_an_optimal_support_is_ever_deleted(seed, power):
    Phi = features(40, 3, seed)
    best = optimal_design(Phi, tol=1e-8).weights
    generator = torch.Generator().manual_seed(seed)
    raw = torch.rand(40, generator=generator, dtype=torch.float64) ** power
    mixed = 0.5 * best + 0.5 * raw / raw.sum()
    A = Phi.T @ (mixed[:, None] * Phi)
    g = (Phi @ torch.linalg.inv(A) * Phi).sum(-1)
    level = deletion_level(float(g.max()), 3)
    assert bool((g[best > 1e-3] >= level).all())


@pytest.mark.parametrize("c", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_are_maximised_without_being_listed(c, weighted, monkeypatch):
    monkeypatch.setattr("botorch_lse.designs.certificate.BLOCK", 64)  # many blocks
    Y, L = features(23, 4), torch.linalg.cholesky(torch.eye(4).double() * 2)
    weights = torch.rand(23, 23).double() if weighted else None
    targets = PairTargets(Y, c, weights)
    listed = targets.vectors(torch.arange(23 * 23)).square().sum(-1) / 2
    found = targets.largest(L, 40)
    assert found.largest == pytest.approx(float(listed.max()))
    assert torch.allclose(listed[found.ids], found.norms)
    assert found.ids.unique().numel() == found.ids.numel()
    rows = listed.reshape(23, 23).amax(dim=1).topk(20).values
    assert bool((rows[:, None] - found.norms).abs().min(dim=1).values.lt(1e-9).all())


@pytest.mark.parametrize("dense", [False, True])
def test_pairs_of_some_vectors_are_pairs_of_all(dense):
    Y, every = features(23, 4), torch.arange(23)
    W = torch.rand(23, 23).double()
    weights = W if dense else PairWeights(every, lambda i, j: W[i, j])
    targets, few = PairTargets(Y, 0.7, weights), torch.tensor([3, 20, 8])
    part, ids = targets.among(few), torch.arange(9)
    same = few[ids // 3] * 23 + few[ids % 3]
    assert torch.equal(part.vectors(ids), targets.vectors(same))
    eye = torch.eye(4).double()
    norms = part.vectors(ids).square().sum(dim=-1)
    assert part.largest(eye, 1).largest == pytest.approx(float(norms.max()))


def test_targets_are_zero_where_all_their_norms_are():
    Y, ones = features(5, 3), torch.ones(5, 3).double()
    assert VectorTargets(0 * Y).are_zero
    assert not VectorTargets(Y).are_zero
    assert PairTargets(ones, 1.0).are_zero
    assert not PairTargets(ones, 0.5).are_zero
    assert PairTargets(Y, 0.5, torch.zeros(5, 5).double()).are_zero


@pytest.mark.parametrize("gamma", [0.0, 0.1])
@pytest.mark.parametrize("weighted", ["not", "by pairs", "elsewhere"])
def test_many_pairs_are_solved_to_the_gap_from_a_part_of_them(
    monkeypatch, gamma, weighted
):
    X, weights = features(60, 4), None
    generator = torch.Generator().manual_seed(3)
    if weighted != "not":
        weights = torch.rand(60, 60, generator=generator, dtype=torch.float64)
    if weighted == "elsewhere":  # pairs of the longest vectors do not count
        longest = X.square().sum(dim=-1).topk(8).indices
        weights[longest[:, None], longest] = 0.0
    stated = {"gamma": gamma, "target_weights": weights, "pairs_factor": 0.8}
    expected = optimal_design(X, tol=1e-6, **stated)
    monkeypatch.setattr("botorch_lse.designs.solver.COARSE", 8)
    found = optimal_design(X, tol=1e-6, **stated)
    assert found.converged
    assert found.value == pytest.approx(expected.value, rel=2e-6)


def test_pair_maxima_are_those_of_the_gram_matrix():
    Z = features(6, 3)
    a = Z @ Z.T
    g = a.diagonal()[:, None] - 1.4 * a + 0.49 * a.diagonal()
    norms = norms_of_vectors(Z, 0.7)
    torch.testing.assert_close(norms(slice(2, 5)), g[2:5])
    found = largest_pairs(norms, a.diagonal(), None, 3)
    assert found.largest == pytest.approx(float(g.max()))
    assert float(g.flatten()[found.ids[0]]) == pytest.approx(found.largest)


def test_newcomers_keep_their_distance_and_their_order():
    vectors = features(700, 2)
    taken = spread_out(vectors, 30)
    unit = torch.nn.functional.normalize(vectors[taken], dim=-1)
    close = (unit @ unit.T).abs() - torch.eye(len(taken), dtype=torch.float64)
    assert float(close.max()) <= NEAR
    assert int(taken[0]) == 0
    assert torch.equal(taken, taken.sort().values)


def test_the_restricted_problem_is_solved_to_high_accuracy(monkeypatch):
    monkeypatch.setattr("botorch_lse.designs.solver.MAX_STEPS", 26)  # 25, and a look
    none = torch.empty(0, dtype=torch.long)
    V = VectorTargets(features(12, 5, seed=1))
    problem = Problem(features(40, 5), V, 0.01, none)
    rows, targets = torch.arange(40), torch.arange(12)
    start = WorkingSet(rows, torch.ones(40).double(), targets, torch.ones(12).double())
    _, found = solve_restricted(problem, start, 1e-8)
    assert found.gap <= 1e-8


def test_masses_of_many_decades_are_found():
    # Independent arms: the optimal masses are proportional to the target weights.
    weights = torch.logspace(0, -8, 25, dtype=torch.float64)
    design = optimal_design(torch.eye(25), target_weights=weights, tol=1e-7)
    assert design.value == pytest.approx(float(weights.sum()), rel=1e-6)


def test_after_a_hundred_steps_frank_wolfe_is_orders_of_magnitude_behind():
    X, shared = INSTANCES[0].problem()
    ours = optimal_design(X, tol=1e-4, **shared)
    theirs = frank_wolfe_design(X, max_steps=100, **shared)
    assert ours.value <= ours.lower_bound * (1 + 1e-4)
    gap = theirs.value / ours.lower_bound - 1
    assert gap >= 100 * (ours.value / ours.lower_bound - 1)


@pytest.mark.parametrize("n", [10, 1500, 10**7])
def test_the_ridge_of_nearly_exact_measurements_is_one_that_designs_take(n):
    Phi = features(30, 5) / 1e-5  # in units of the noise
    design = optimal_design(Phi, gamma=ridge_of(n, Phi), tol=1e-2)
    assert design.value <= design.lower_bound * 1.01
    with pytest.raises(ValueError, match="`gamma`"):
        optimal_design(Phi, gamma=1e-9)


@pytest.mark.some(1)
@pytest.mark.parametrize("angle", [0.003, 0.05, 0.4])
def test_nearly_equal_arms_are_solved_as_well(angle):
    # The best arms differ in one direction: a c-optimal design, whose value is
    # (|c_i| s_i + |c_j| s_j)^2 for the best pair of arms (Elfving 1952).
    near = [math.cos(angle), math.sin(angle)]
    X = torch.tensor([[1.0, 0.0], [0.0, 1.0], near], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        noise = 0.2 + torch.rand(3, generator=generator, dtype=torch.float64)
        values = []
        for pair in ([0, 1], [0, 2], [1, 2]):
            c = torch.linalg.solve(X[pair].T, X[2] - X[0])
            values.append(float((c.abs() * noise[pair].sqrt()).sum() ** 2))
        found = optimal_design(
            X, X[[0, 2]] - X[0], pairs_factor=1.0, noise_var=noise, tol=1e-5
        )
        assert found.value == pytest.approx(min(values), rel=1e-5)
        assert found.lower_bound <= min(values) * (1 + 1e-9)
