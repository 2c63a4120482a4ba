r"""The closed form of the likelihood, beside GPyTorch's automatic differentiation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize, Warp
from botorch.optim.closures import get_loss_closure_with_grads
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior
from torch import Tensor

from botorch_lse.models.fitted import default_kernel, default_likelihood
from botorch_lse.models.marginal import Likelihood, fit_likelihood, has_closed_form


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


@pytest.mark.parametrize("yvar", [None, 0.01])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 2), (40, 6)])
@pytest.mark.parametrize("holds_noise", [False, True])
def test_value_and_gradient_are_those_of_automatic_differentiation(
    n: int, d: int, yvar: float | None, holds_noise: bool
) -> None:
    mll = of_model(n, d, yvar)
    assert has_closed_form(mll)
    for parameter in mll.likelihood.parameters():
        parameter.requires_grad_(not holds_noise)
    parameters, closed = trained(mll), Likelihood(mll)
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
        assert len(gradient) == len(slopes) == len(parameters)
        for found, known in zip(gradient, slopes, strict=True):
            torch.testing.assert_close(found, known, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("yvar", [None, 0.01])
def test_the_fit_is_the_same(yvar: float | None) -> None:
    own, reference = of_model(30, 3, yvar), of_model(30, 3, yvar)
    fit_likelihood(own)
    fit_gpytorch_mll(reference)
    assert not own.training
    pairs = zip(own.parameters(), reference.parameters(), strict=True)
    for found, known in pairs:
        torch.testing.assert_close(found, known, rtol=1e-5, atol=1e-6)


def other_models() -> list[ExactMarginalLogLikelihood]:
    some = default_kernel(2)
    some.active_dims = torch.tensor([0, 1])
    prior = RBFKernel(ard_num_dims=2, lengthscale_prior=GammaPrior(3.0, 6.0))
    kernels = [ScaleKernel(RBFKernel()), MaternKernel(), some, prior, RBFKernel()]
    found = [of_model(12, 2, covar_module=kernel.double()) for kernel in kernels]
    warp = Warp(d=2, indices=[0, 1])
    return [*found, of_model(12, 2, input_transform=warp)]


@pytest.mark.parametrize("mll", other_models())
def test_other_models_are_fitted_by_gpytorch(mll: ExactMarginalLogLikelihood) -> None:
    assert not has_closed_form(mll)
    before = [parameter.detach().clone() for parameter in mll.parameters()]
    fit_likelihood(mll)
    after = list(mll.parameters())
    assert any(not torch.equal(*pair) for pair in zip(before, after, strict=True))
