r"""Kernels evaluated here against GPyTorch's, and what is left to GPyTorch."""

import pickle

import pytest
import torch
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)

from botorch_lse.models import stationary
from botorch_lse.models.fitted import additive_kernel
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.models.stationary import (
    MOST_INPUTS,
    Stationary,
    StationarySum,
    covariances,
    stationary_form,
)


class MyMatern(MaternKernel):
    r"""Somebody's own."""


def points(n: int, d: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, d, generator=generator, dtype=torch.float64)


def kernels(d: int) -> list:
    bases = [RBFKernel(), RBFKernel(ard_num_dims=d)]
    bases += [MaternKernel(nu, ard_num_dims=d) for nu in (0.5, 1.5, 2.5)]
    for i, base in enumerate(bases):
        base.lengthscale = 0.2 + 0.1 * i + torch.rand(base.lengthscale.shape)
    scaled = ScaleKernel(ScaleKernel(MaternKernel(1.5, ard_num_dims=d)))
    scaled.outputscale, scaled.base_kernel.outputscale = 0.3, 7.0
    return [*bases, scaled]


@pytest.mark.parametrize("d", [1, 4])
@pytest.mark.parametrize("which", range(6))
def test_covariances_are_gpytorchs(d, which):
    kernel = kernels(d)[which].double()
    F, G = points(30, d), torch.cat((points(30, d)[:3], points(40, d, seed=1)))
    prior = GPPrior.from_kernel(kernel)
    expected = kernel(F, G).to_dense().detach()
    found = prior.covariance(F, G)
    assert prior._stationary is not None
    # GPyTorch's distances of equal points are 1e-8, by products that cancel.
    assert torch.allclose(found, expected, rtol=0, atol=3e-7 * float(expected.max()))
    apart = torch.cdist(F, G) > 1e-3
    assert torch.allclose(found[apart], expected[apart], rtol=1e-9, atol=0)


def test_a_point_has_its_variance_with_itself():
    X = 1e3 + points(20, 3)
    for kernel in kernels(3):
        prior = GPPrior.from_kernel(kernel)
        itself = prior.covariance(X, X).diagonal()
        assert torch.allclose(itself, prior.variance(X), rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "kernel",
    [
        MyMatern(2.5),
        RQKernel(),
        PeriodicKernel(),
        AdditiveKernel(RBFKernel(), MaternKernel()),
        ScaleKernel(RBFKernel(), active_dims=(1,)),
        RBFKernel(batch_shape=torch.Size([2])),
        ScaleKernel(RBFKernel(batch_shape=torch.Size([2]))),
    ],
)
def test_what_is_not_known_is_left_to_gpytorch(kernel):
    assert Stationary.of(kernel) is None


def composed(lengthscale: float) -> dict:
    def rbf(**options):
        kernel = RBFKernel(**options)
        kernel.lengthscale = lengthscale
        return ScaleKernel(kernel)

    matern = MaternKernel(1.5)
    return {
        "columns": rbf(active_dims=(1,)),
        "sum": rbf() + matern,
        "product": rbf(active_dims=(0,)) * matern,
        "scaled sum": ScaleKernel(rbf() + LinearKernel()) * RQKernel(),
    }


def test_a_sum_is_that_of_its_terms():
    kernel, other = additive_kernel(3).double(), RBFKernel(active_dims=[1]).double()
    kernel.kernels.append(other)
    F, G = points(30, 3), points(40, 3, seed=1)
    prior = GPPrior.from_kernel(kernel)
    terms = [GPPrior.from_kernel(part) for part in kernel.kernels]
    assert isinstance(prior._stationary, StationarySum)
    expected = terms[0].covariance(F, G)
    for term in terms[1:]:
        expected = expected + term.covariance(F, G)
    found = prior.covariance(F, G)
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0.0)
    assert torch.equal(prior.variance(F), sum(term.variance(F) for term in terms))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_input_has_the_distances_of_cdist_to_the_bit(dtype):
    kernel = Stationary(lambda r: r, torch.tensor([[0.3]], dtype=dtype), torch.ones(()))
    F, G = points(30, 1).to(dtype), points(40, 1, seed=1).to(dtype)
    mode = "donot_use_mm_for_euclid_dist"
    expected = torch.cdist(F / 0.3, G / 0.3, compute_mode=mode)
    assert torch.equal(kernel(F, G), expected)


def test_a_sum_with_a_term_that_is_not_stationary_is_left_to_gpytorch():
    assert stationary_form(RBFKernel() + LinearKernel()) is None
    assert stationary_form(AdditiveKernel(RBFKernel(batch_shape=(2,)))) is None


@pytest.mark.parametrize("name", composed(1.0))
def test_sums_products_and_columns_are_gpytorchs(name):
    kernel = composed(0.4)[name].double()
    F, G = points(12, 3), points(9, 3, seed=1)
    expected = kernel(F, G).to_dense().detach()
    assert torch.allclose(covariances(kernel, F, G), expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", composed(1.0))
@pytest.mark.parametrize("is_given", [False, True])
def test_equal_points_agree_however_short_the_lengthscale(name, is_given):
    r"""A fit without priors makes one of 1e-8, which distances by products miss."""
    prior = GPPrior.from_kernel(composed(1e-8)[name])
    X, y = points(6, 2).repeat(3, 1), torch.arange(5.0).double()
    if is_given:
        prior = prior.given(X[:5], y, torch.full_like(y, 0.01))
    variance, among = prior.variance(X), prior.covariance(X, X)
    for i in range(6):
        assert torch.allclose(among[i::6, i::6], variance[i], rtol=1e-9, atol=0)


def test_gradients_and_many_inputs_are_left_to_gpytorch(monkeypatch):
    def fail(*_):
        raise AssertionError("Expected GPyTorch's kernel.")

    monkeypatch.setitem(stationary._MATERN, 2.5, fail)
    prior = GPPrior.from_kernel(MaternKernel(2.5))
    X = points(5, 2).requires_grad_(True)
    (gradient,) = torch.autograd.grad(prior.covariance(X, points(4, 2, 1)).sum(), X)
    assert bool(gradient.abs().min() > 0)
    wide = points(3, MOST_INPUTS + 1)
    assert prior.covariance(wide, wide).shape == (3, 3)
    with pytest.raises(AssertionError, match="GPyTorch"):
        prior.covariance(points(5, 2), points(4, 2))


def test_another_number_of_inputs_is_refused():
    prior = GPPrior.from_kernel(RBFKernel(ard_num_dims=3))
    for d in (1, 2, 4):
        with pytest.raises(RuntimeError, match=r"size|match|dimension"):
            prior.covariance(points(5, d), points(4, d))
    with pytest.raises((RuntimeError, AssertionError)):
        GPPrior.from_kernel(RBFKernel()).covariance(points(5, 1), points(4, 2))


def test_a_prior_that_was_used_can_be_sent_to_another_process():
    prior = GPPrior.from_kernel(ScaleKernel(MaternKernel(2.5)))
    X = points(6, 2)
    before = prior.covariance(X, X)
    assert torch.equal(pickle.loads(pickle.dumps(prior)).covariance(X, X), before)
