import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.kernels import MaternKernel, ScaleKernel

from tests.acquisition.dense import DenseGP

LENGTHSCALE = (0.3, 0.5)
OUTPUTSCALE = 1.7
NOISE = 0.04  # variance, standardised units


def make_model(dtype=torch.float64, per_point=False, n=9):
    generator = torch.Generator().manual_seed(3)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    X[-1] = X[0]  # a repeated point
    Y = 20 + 4 * (6 * X.sum(-1, keepdim=True)).sin()
    Yvar = 0.1 + torch.rand(n, 1, generator=generator, dtype=torch.float64)
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2))
    model = SingleTaskGP(
        X.to(dtype),
        Y.to(dtype),
        Yvar.to(dtype) if per_point else None,
        covar_module=kernel,
        outcome_transform=Standardize(1),
    )
    kernel.base_kernel.lengthscale = torch.tensor([LENGTHSCALE], dtype=dtype)
    kernel.outputscale = torch.tensor(OUTPUTSCALE, dtype=dtype)
    model.mean_module.constant.data.fill_(0.2)
    if not per_point:
        model.likelihood.noise = torch.tensor([NOISE], dtype=dtype)
    return model.eval(), X, Y, Yvar


def make_dense(X, Y, Yvar=None):
    sd, mean = float(Y.std()), float(Y.mean())
    noise = sd**2 * NOISE if Yvar is None else Yvar[:, 0].numpy()
    return DenseGP(
        X.numpy(),
        Y[:, 0].numpy(),
        noise,
        LENGTHSCALE,
        OUTPUTSCALE,
        shift=mean + 0.2 * sd,
        scale=sd,
    )


NOISES = ["one noise", "noise per point"]


def with_noise(name, kinds, own):
    r"""Parametrize with models and kinds of future noise.

    A model with its own noise for each point does not know that of others: it is
    refused with the kind ``own``, which is to be the model's.
    """
    pairs = [
        pytest.param(noise, kind, id=f"{noise}-{label}")
        for noise in NOISES
        for label, kind in kinds.items()
        if (noise, label) != ("noise per point", own)
    ]
    return pytest.mark.parametrize(
        f"model_and_dense, {name}", pairs, indirect=["model_and_dense"]
    )


@pytest.fixture(params=NOISES)
def model_and_dense(request):
    per_point = request.param == "noise per point"
    model, X, Y, Yvar = make_model(per_point=per_point)
    dense = make_dense(X, Y, Yvar if per_point else None)
    new_noise = float(dense.noise.mean())
    return model, dense, new_noise


@pytest.fixture
def points():
    generator = torch.Generator().manual_seed(5)
    return torch.rand(40, 2, generator=generator, dtype=torch.float64)


def batches(shape, q, dtype=torch.float64):
    r"""Batches of ``q`` points in the unit square, the same ones in each type."""
    X = torch.rand(*shape, q, 2, generator=torch.Generator().manual_seed(1))
    return X.to(dtype)


def assert_differentiable(acqf, X, shape):
    r"""Values of the batch shape and dtype of ``X``, and gradients that are some."""
    values = acqf(X)
    assert values.shape == (shape or (1,))
    assert values.dtype == X.dtype
    values.sum().backward()
    assert torch.isfinite(X.grad).all()
    assert (X.grad != 0).any()
