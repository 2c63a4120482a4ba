"""The certificate encloses the optimum, whatever design and weights it is given."""

from math import inf, nan

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse.designs import certify, optimal_design
from botorch_lse.designs.basis import KernelGram
from botorch_lse.designs.certificate import relative_gap
from botorch_lse.designs.problem import KernelInverse, KernelProblem, value_on_kernel
from botorch_lse.papers.mason2022.frank_wolfe import certify_on_kernel
from tests.designs.reference import sdp_value


def simplex(n, generator, power):
    raw = torch.rand(n, generator=generator, dtype=torch.float64) ** power + 1e-9
    return raw / raw.sum()


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    N=st.integers(3, 30),
    T=st.integers(1, 20),
    m=st.integers(1, 3),
    gamma=st.sampled_from([0.0, 1e-4, 0.1, 10.0]),
    power=st.sampled_from([0.1, 1.0, 8.0]),
)
@settings(max_examples=100, deadline=None)
def test_the_optimum_lies_between_the_ends(seed, N, T, m, gamma, power):
    generator = torch.Generator().manual_seed(seed)
    Phi = torch.randn(N, m, generator=generator, dtype=torch.float64)
    V = torch.randn(T, m, generator=generator, dtype=torch.float64)
    best = optimal_design(Phi, V, gamma=gamma, tol=1e-6)
    for _ in range(5):
        lam, w = simplex(N, generator, power), simplex(T, generator, power)
        found = certify(Phi, V, lam, w, gamma)
        assert found.lower <= best.value * (1 + 1e-9)
        assert found.upper >= best.lower_bound * (1 - 1e-9)
        assert found.upper >= found.lower


@pytest.mark.parametrize(
    ("upper", "lower"), [(1.0, 0.0), (1.0, inf), (1.0, nan), (inf, 1.0), (nan, 1.0)]
)
def test_an_end_that_overflows_proves_nothing(upper, lower):
    assert relative_gap(upper, lower) == inf


@pytest.mark.parametrize("gamma", [0.0, 0.2])
def test_the_ends_enclose_the_semidefinite_value(gamma):
    generator = torch.Generator().manual_seed(1)
    Phi = torch.randn(10, 3, generator=generator, dtype=torch.float64)
    V = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    optimum = sdp_value(Phi, V, gamma)
    for power in (0.1, 1.0, 5.0):
        found = certify(
            Phi, V, simplex(10, generator, power), simplex(4, generator, power), gamma
        )
        assert found.lower <= optimum * (1 + 1e-7)
        assert found.upper >= optimum * (1 - 1e-7)


def test_the_gap_closes_at_the_saddle_point():
    generator = torch.Generator().manual_seed(2)
    Phi = torch.randn(12, 3, generator=generator, dtype=torch.float64)
    design = optimal_design(Phi, gamma=0.1, tol=1e-8)
    found = certify(
        Phi, Phi[design.binding], design.weights, design.binding_weights, 0.1
    )
    assert found.lower == pytest.approx(design.value, rel=1e-7)


def kernel_problem(N=12, factor=None):
    generator = torch.Generator().manual_seed(3)
    Phi = torch.randn(N, 4, generator=generator, dtype=torch.float64)
    sigma = torch.linspace(0.5, 2.0, N, dtype=torch.float64)
    gram = KernelGram.of(lambda a, b: a @ b.T, Phi)
    points = torch.arange(0, N, 2)
    return Phi, KernelProblem(gram, sigma, 0.3, points, None, factor)


def test_the_kernel_form_of_the_inverse_is_lemma_g1():
    Phi, problem = kernel_problem()
    generator = torch.Generator().manual_seed(4)
    columns, masses = torch.arange(5), simplex(5, generator, 1.0)
    inverse = KernelInverse(problem, columns, masses)
    scaled = Phi[:5] / problem.sigma[:5, None]
    A = scaled.T @ (masses[:, None] * scaled) + 0.3 * torch.eye(4, dtype=torch.float64)
    dense = Phi @ torch.linalg.inv(A) @ Phi.T
    rows = torch.arange(12)
    products = inverse.products(rows, rows, inverse.loadings(rows))
    assert torch.allclose(products, dense, rtol=1e-9, atol=1e-10)
    norms = inverse.norms(rows, problem.gram.diagonal())
    assert torch.allclose(norms, dense.diagonal(), rtol=1e-9)


@pytest.mark.parametrize("factor", [None, 0.8])
def test_the_kernel_certificate_is_that_of_the_features(factor):
    Phi, problem = kernel_problem(factor=factor)
    generator = torch.Generator().manual_seed(5)
    lam = simplex(12, generator, 1.0)
    Y = Phi[problem.targets]
    V = Y if factor is None else torch.stack([a - factor * b for a in Y for b in Y])
    w = simplex(len(V), generator, 1.0)
    columns = torch.arange(12)
    found = certify_on_kernel(problem, columns, lam, torch.arange(len(V)), w)
    expected = certify(Phi / problem.sigma[:, None], V, lam, w, 0.3)
    assert found.upper == pytest.approx(expected.upper, rel=1e-9)
    assert found.lower == pytest.approx(expected.lower, rel=1e-9)
    assert value_on_kernel(problem, columns, lam) == found.upper
