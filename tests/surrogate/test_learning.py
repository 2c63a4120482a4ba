r"""A fit is a function of its data, not of threads or torch's default precision."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_lse import Pool
from botorch_lse.data.observations import Observations
from botorch_lse.models.fitted import CONSTANT_STD, fit_single_task_gp, unfitted_prior
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.surrogate.learning import OutputModel
from botorch_lse.surrogate.outputs import spread_over

X = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)).double()
POOL = Pool(X)
Y = (4 * X).sin().sum(dim=-1)


def history(seed: int, yvar: float | None = None) -> Observations:
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randperm(40, generator=draw)[:15]
    y = Y[rows] + 0.1 * torch.randn(15, generator=draw, dtype=torch.float64)
    return Observations(rows, y, None if yvar is None else yvar + 0 * y)


def restless(X: Tensor, y: Tensor, yvar: Tensor | None) -> SingleTaskGP:
    r"""A factory that draws random numbers."""
    model = SingleTaskGP(X, y, yvar)
    model.covar_module.lengthscale = 0.2 + torch.rand(1, 3).double()
    for _ in range(20):
        torch.rand(1000)
    return model.eval()


def moments(prior: GPPrior) -> tuple[Tensor, ...]:
    F = prior.features(X)
    found = (prior.covariance(F, F), prior.mean(F))
    return found if prior.noise_var is None else (*found, prior.noise_var)


def fitted(seed: int, model=None, yvar: float | None = None) -> tuple[Tensor, ...]:
    return moments(OutputModel(POOL, model, None).fit(history(seed, yvar), seed, 3))


def assert_equal(one, other) -> None:
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


@pytest.fixture
def single() -> Iterator[None]:
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.some(1)
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
@pytest.mark.parametrize("model", [None, restless], ids=["default", "restless"])
def test_fits_in_threads_are_those_one_after_the_other(model) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    alone = [fitted(seed, model) for seed in range(8)]
    assert torch.equal(torch.get_rng_state(), before)
    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda seed: fitted(seed, model), range(8)))
        for one, other in zip(alone, together, strict=True):
            assert_equal(one, other)
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("yvar", [None, 0.01, 0.0])
def test_fits_do_not_depend_on_the_default_precision(single, yvar) -> None:
    rough = fitted(1, yvar=yvar)
    assert torch.get_default_dtype() == torch.float32
    torch.set_default_dtype(torch.float64)
    assert_equal(rough, fitted(1, yvar=yvar))


def test_the_prior_before_a_fit_does_not_depend_on_it_either(single) -> None:
    rough = moments(unfitted_prior(POOL.bounds))
    torch.set_default_dtype(torch.float64)
    assert_equal(rough, moments(unfitted_prior(POOL.bounds)))


@pytest.mark.parametrize("known", [False, True])
def test_the_default_model_is_that_of_botorch(single, known) -> None:
    # Stated in float64 by us: this fails if BoTorch changes its defaults.
    torch.set_default_dtype(torch.float64)
    # Of all rows, from which the noise can be told without replicates.
    y, yvar = Y[:, None], torch.full((40, 1), 0.01) if known else None
    theirs = SingleTaskGP(
        X,
        y,
        yvar,
        input_transform=Normalize(3, bounds=POOL.bounds),
        outcome_transform=Standardize(1, min_stdv=CONSTANT_STD),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(theirs.likelihood, theirs))
    ours = fit_single_task_gp(X, y, yvar, POOL.bounds)
    want = theirs.eval().state_dict()
    # The gradient is in closed form, so that rounding differs.
    close = {"rtol": 1e-6, "atol": 1e-6, "msg": lambda said: f"{name}: {said}"}
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value, want[name], **close)


@pytest.mark.parametrize("n_rows", range(1, 12))
def test_rows_to_repeat_are_different_rows(n_rows) -> None:
    left = torch.ones(n_rows, dtype=torch.long)
    for size in range(6):
        found = spread_over(torch.arange(n_rows), left, size)
        assert found.unique().numel() == len(found) == min(size, n_rows)
    none = torch.zeros_like(left)
    assert spread_over(torch.arange(n_rows), none, 3).numel() == 0
    twice = torch.arange(n_rows).repeat(2)
    assert spread_over(twice, left, 3).numel() == 0
