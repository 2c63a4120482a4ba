r"""The closed form of the likelihood, beside GPyTorch's automatic differentiation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.exceptions.warnings import OptimizationWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize, Warp
from botorch.optim.closures import get_loss_closure_with_grads
from botorch.optim.core import OptimizationResult, OptimizationStatus
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior
from torch import Tensor
from torch.nn.functional import one_hot

from botorch_lse.models import marginal
from botorch_lse.models.fitted import (
    additive_kernel,
    default_kernel,
    default_likelihood,
    mixed_kernel,
    word_codes,
)
from botorch_lse.models.marginal import fit_likelihood, likelihood_of


def data(n: int, d: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    X = 1e3 + 5 * torch.rand(n, d, generator=generator, dtype=torch.float64)
    noise = torch.randn(n, generator=generator, dtype=torch.float64)
    return X, (X.sum(dim=-1).sin() + 0.1 * noise).unsqueeze(-1)


def of_model(
    n: int, d: int, yvar: float | None = None, **parts: Any
) -> ExactMarginalLogLikelihood:
    X, y = data(n, d)
    bounds = torch.stack((X.amin(dim=0), X.amax(dim=0))) if n > 1 else None
    known = yvar is not None
    parts = {
        "covar_module": default_kernel(d),
        "likelihood": None if known else default_likelihood(),
        "input_transform": None if bounds is None else Normalize(d, bounds=bounds),
        "outcome_transform": Standardize(1),
        **parts,
    }
    variances = torch.full_like(y, yvar) * (1 + y.square()) if known else None
    model = SingleTaskGP(X, y, variances, **parts)
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    mll.train()
    return mll


def trained(mll: ExactMarginalLogLikelihood) -> dict[str, Tensor]:
    return {name: p for name, p in mll.named_parameters() if p.requires_grad}


def compare(mll: ExactMarginalLogLikelihood) -> None:
    r"""The closed form at four places, beside the reference."""
    parameters, closed = trained(mll), likelihood_of(mll)
    assert closed is not None
    reference = get_loss_closure_with_grads(mll, parameters)
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        with torch.no_grad():
            for parameter in parameters.values():
                drawn = torch.rand(
                    parameter.shape, generator=generator, dtype=torch.float64
                )
                parameter.copy_(0.05 + drawn)
        value, gradient = closed()
        wanted, slopes = reference()
        torch.testing.assert_close(value, wanted.detach(), rtol=1e-8, atol=1e-8)
        found = gradient.split([parameter.numel() for parameter in parameters.values()])
        assert len(found) == len(slopes) == len(parameters)
        for own, known in zip(found, slopes, strict=True):
            torch.testing.assert_close(own, known.view(-1), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("yvar", [None, 0.01])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 2), (40, 6)])
@pytest.mark.parametrize("holds_noise", [False, True])
def test_value_and_gradient_are_those_of_automatic_differentiation(
    n: int, d: int, yvar: float | None, holds_noise: bool
) -> None:
    mll = of_model(n, d, yvar)
    for parameter in mll.likelihood.parameters():
        parameter.requires_grad_(not holds_noise)
    compare(mll)


@pytest.mark.some(4)
@pytest.mark.parametrize("yvar", [None, 0.01])
@pytest.mark.parametrize(("n", "d"), [(1, 2), (7, 2), (40, 6)])
def test_so_are_those_of_sums_of_functions(n: int, d: int, yvar: float | None) -> None:
    compare(of_model(n, d, yvar, covar_module=additive_kernel(d)))


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("d", [2, 5])
def test_a_sum_attains_at_least_as_much(d: int) -> None:
    own, reference = (of_model(30, d, covar_module=additive_kernel(d)) for _ in "ab")
    fit_likelihood(own)
    fit_gpytorch_mll(reference)
    assert attained(own) <= attained(reference) + 1e-5


def of_words(
    words: dict[int, int], yvar: float | None = None
) -> ExactMarginalLogLikelihood:
    d = max(first + n for first, n in words.items())
    X = torch.zeros(25, d, dtype=torch.float64)
    X[:] = data(25, d)[0] - 1e3
    for first, n in words.items():
        levels = torch.arange(25).remainder(n)
        X[:, first : first + n] = one_hot(levels, n).double()
    bounds = torch.stack((X.amin(dim=0), X.amax(dim=0)))
    kernel, codes = mixed_kernel(d, words), word_codes(bounds, words)
    y = data(25, d)[1]
    variances = None if yvar is None else torch.full_like(y, yvar)
    noise = default_likelihood() if yvar is None else None
    model = SingleTaskGP(
        X, y, variances, noise, covar_module=kernel, input_transform=codes
    )
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    mll.train()
    return mll


@pytest.mark.parametrize("yvar", [None, 0.01])
@pytest.mark.parametrize("words", [{2: 3}, {0: 2, 3: 4}, {0: 5}])
def test_so_are_those_of_numbers_and_words(
    words: dict[int, int], yvar: float | None
) -> None:
    compare(of_words(words, yvar))


def attained(mll: ExactMarginalLogLikelihood) -> float:
    mll.train()
    closed = likelihood_of(mll)
    assert closed is not None
    return float(closed()[0])


@pytest.mark.some(2)
@pytest.mark.parametrize("yvar", [None, 0.01])
@pytest.mark.parametrize(("n", "d"), [(9, 2), (30, 3)])
def test_the_fit_is_the_same(n: int, d: int, yvar: float | None) -> None:
    own, reference = of_model(n, d, yvar), of_model(n, d, yvar)
    fit_likelihood(own)
    assert not own.training
    fit_gpytorch_mll(reference)
    pairs = zip(own.parameters(), reference.parameters(), strict=True)
    for found, known in pairs:
        torch.testing.assert_close(found, known, rtol=1e-5, atol=1e-6)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("words", [{2: 3}, {0: 2, 3: 4}])
def test_with_words_it_attains_at_least_as_much(words: dict[int, int]) -> None:
    own, reference = of_words(words), of_words(words)
    fit_likelihood(own)
    fit_gpytorch_mll(reference)
    assert attained(own) <= attained(reference) + 1e-5
    for name, parameter, constraint in own.named_parameters_and_constraints():
        if constraint is not None:
            assert bool((parameter >= constraint.lower_bound).all()), name


@pytest.mark.parametrize("yvar", [None, 0.01])
def test_the_likelihood_of_a_part_is_that_of_a_model_of_it(yvar: float | None) -> None:
    places = torch.tensor([7, 2, 11, 3, 0])
    mll = of_model(12, 2, yvar, outcome_transform=None)
    model: Any = mll.model
    parts = model.train_inputs[0][places], model.train_targets[places].unsqueeze(-1)
    variances = mll.likelihood.noise[places].unsqueeze(-1) if yvar else None
    few = SingleTaskGP(
        *parts,
        variances,
        covar_module=model.covar_module,
        likelihood=None if yvar else mll.likelihood,
        input_transform=model.input_transform,
        outcome_transform=None,
    )
    reference = ExactMarginalLogLikelihood(few.likelihood, few)
    found = likelihood_of(mll, places)
    wanted = likelihood_of(reference)
    assert found is not None
    assert wanted is not None
    for own, known in zip(found(), wanted(), strict=True):
        torch.testing.assert_close(own, known, rtol=1e-8, atol=1e-8)


@pytest.mark.some(1)
@pytest.mark.parametrize("yvar", [None, 0.01])
def test_of_many_values_a_part_is_fitted_first(
    yvar: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = list[int]()

    class Counted(marginal.Likelihood):
        def __call__(self) -> tuple[Tensor, Tensor]:
            sizes.append(self.n)
            return super().__call__()

    monkeypatch.setattr(marginal, "Likelihood", Counted)
    n, kernel = 150, additive_kernel(2)
    whole = of_model(n, 2, yvar, covar_module=kernel)
    fit_likelihood(whole)
    assert {*sizes} == {n}
    steps = len(sizes)
    sizes.clear()
    monkeypatch.setattr(marginal, "MANY", 50)
    own = of_model(n, 2, yvar, covar_module=additive_kernel(2))
    fit_likelihood(own)
    assert sizes[0] == 50
    assert sizes.count(n) < 0.7 * steps
    assert attained(own) * n <= attained(whole) * n + 0.1


def test_a_fit_that_ends_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    mll = of_words({2: 3})

    def broken(*arguments: Any, **options: Any) -> OptimizationResult:
        return OptimizationResult(
            step=0, fval=0.0, status=OptimizationStatus.FAILURE, message="no step"
        )

    monkeypatch.setattr(marginal, "scipy_minimize", broken)
    with (
        pytest.warns(OptimizationWarning, match="no step"),
        pytest.raises(ModelFittingError),
    ):
        fit_likelihood(mll)


def other_models() -> list[ExactMarginalLogLikelihood]:
    prior = RBFKernel(ard_num_dims=2, lengthscale_prior=GammaPrior(3.0, 6.0))
    kernels = [ScaleKernel(RBFKernel()), MaternKernel(), prior, RBFKernel()]
    found = [of_model(12, 2, covar_module=kernel.double()) for kernel in kernels]
    warp = Warp(d=2, indices=[0, 1])
    return [*found, of_model(12, 2, input_transform=warp)]


@pytest.mark.some(1)
@pytest.mark.parametrize("mll", other_models())
def test_other_models_are_fitted_by_gpytorch(mll: ExactMarginalLogLikelihood) -> None:
    assert likelihood_of(mll) is None
    before = [parameter.detach().clone() for parameter in mll.parameters()]
    fit_likelihood(mll)
    after = list(mll.parameters())
    assert any(not torch.equal(*pair) for pair in zip(before, after, strict=True))
