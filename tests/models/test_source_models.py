r"""The kernels of models of sources, written out, and the fits' gradients."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models import SingleTaskGP
from gpytorch.kernels import (
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_lse import Pool
from botorch_lse.models import (
    Autoregressive,
    Coregionalised,
    Discrepancies,
    FadingDiscrepancies,
    FidelityDiscrepancies,
    IndependentSources,
    LikeliestSources,
    source_kernel,
)
from botorch_lse.models.explanations import likeliest
from botorch_lse.models.fitted import (
    default_likelihood,
    kernel_of_inputs,
    scaled,
    unfitted_standardised,
)
from botorch_lse.models.source_kernels import Fading, Loadings
from botorch_lse.models.sources import (
    SourceModel,
    SourceParts,
    _criterion,
    fit_sources,
)
from tests.models.test_marginal import compare

M, TARGET, D, N = 3, 1, 2, 12
MODELS = [
    Discrepancies(),
    FadingDiscrepancies(),
    FidelityDiscrepancies(),
    Autoregressive(),
    Coregionalised(),
    IndependentSources(),
]


def points() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    X = torch.rand(N, D, generator=generator, dtype=torch.float64)
    return X, torch.arange(N) % M


def of_inputs(kernel: Kernel) -> Kernel:
    kernel.active_dims = torch.arange(D)
    return kernel


LEVELS = (0.2, 1.0, 0.6)
FURTHER = (0.35, 1.3, 1.1)
"""Numbers of old values, the last two of which are beyond the target's."""


def near(one: float, other: float, widest: float = 0.8) -> float:
    r"""The covariance of errors of size 1, for a target of 1."""
    h, g = (one - 1.0) / widest, (other - 1.0) / widest
    if h * g <= 0:
        return 0.0
    s = 5**0.5 * abs(math.log(h / g)) / 2.0
    return h * g * (1 + s + s**2 / 3) * math.exp(-s)


def parts(
    process: Kernel | None = None,
    own: Kernel | None = None,
    rho: float = 0.4,
    levels: tuple[float, ...] = LEVELS,
) -> SourceParts:
    def first() -> Kernel:
        return process or kernel_of_inputs(D, {})

    def other() -> Kernel:
        return own or scaled(kernel_of_inputs(D, {}), 0.25, 2.0)

    n = len(levels)
    correlation = torch.full((n, n), rho, dtype=torch.float64).fill_diagonal_(1.0)
    numbers = torch.tensor(levels, dtype=torch.float64)
    given = first, other, correlation, numbers, range(D), M
    return SourceParts(n, TARGET, D, *given)


def test_given_kernels_stay_as_they_are() -> None:
    kernel = RBFKernel()
    source_kernel([kernel, kernel], [[1.0, 0.0], [0.8, 0.6]], d=D)
    assert kernel.active_dims is None
    assert kernel.raw_lengthscale.dtype == torch.float32


FADES = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
"""How a part fades along both inputs, and its offset."""


def wanted(
    model: SourceModel, K: Tensor, G: Tensor, X: Tensor, source: Tensor
) -> Tensor:
    r"""The covariances entry by entry, from those of a process and of own parts."""
    share = 1 / (1 + torch.exp(-2.0 * (X[:, 0] - 0.5) + (X[:, 1] - 0.5) - 0.5))
    found = torch.empty(N, N, dtype=torch.float64)
    for i in range(N):
        for j in range(N):
            one, other = int(source[i]), int(source[j])
            is_same = float(one == other)
            if isinstance(model, FidelityDiscrepancies):
                part = near(LEVELS[one], LEVELS[other]) * (G[i, j] + 1.0)
                found[i, j] = K[i, j] + part
            elif isinstance(model, Discrepancies):
                part = is_same * (one != TARGET) * (G[i, j] + 1.0)
                found[i, j] = K[i, j] + part
            elif isinstance(model, FadingDiscrepancies):
                part = is_same * (one != TARGET)
                found[i, j] = K[i, j] + part * (share[i] * share[j] * G[i, j] + 1.0)
            elif isinstance(model, IndependentSources):
                found[i, j] = is_same * (K if one == TARGET else G + 1.0)[i, j]
            elif isinstance(model, Autoregressive):
                # In the order 0, 2, 1: g_0, 0.4 g_0 + g_2, 0.4 g_0 + 0.3 g_2 + g_1.
                loads = torch.tensor([[1, 0, 0], [0.4, 0.3, 1], [0.4, 1, 0]]).double()
                a, b = loads[one], loads[other]
                found[i, j] = a[0] * b[0] * K[i, j] + (a[1:] * b[1:]).sum() * G[i, j]
                found[i, j] += is_same * (one != 0)
            else:
                A = torch.tensor([[1, 0, 0], [0.4, 0.5, 0], [0.4, 0, 0.5]]).double()
                found[i, j] = (A[one] @ A[other]) * K[i, j]
    return found


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_kernel_is_what_its_docstring_says(model: SourceModel) -> None:
    X, source = points()
    process = of_inputs(RBFKernel().double())
    own = of_inputs(MaternKernel(nu=2.5).double())
    kernel = model.kernel(parts(process, own))
    if isinstance(model, Autoregressive):  # the loading of the target on the second
        free = [p for name, p in kernel.named_parameters() if name.endswith("free")]
        with torch.no_grad():
            free[1].fill_(0.3)
    for part in kernel.modules():
        if isinstance(part, Fading):
            part.initialize(free=FADES)
    F = torch.cat((X, source.unsqueeze(-1).double()), dim=-1)
    with torch.no_grad():
        found = kernel(F).to_dense()
        bare = [k(X).to_dense() for k in (process, own)]
    torch.testing.assert_close(found, wanted(model, bare[0], bare[1], X, source))


@pytest.mark.parametrize("model", [FidelityDiscrepancies(), IndependentSources()])
def test_numbers_that_are_no_source_have_the_covariance_of_the_docstring(
    model: SourceModel,
) -> None:
    X, _ = points()
    process = of_inputs(RBFKernel().double())
    own = of_inputs(MaternKernel(nu=2.5).double())
    levels = (*LEVELS, *FURTHER)
    kernel = model.kernel(parts(process, own, levels=levels))
    with torch.no_grad():
        K, G = (k(X).to_dense() for k in (process, own))
    for one, other in itertools.product(range(6), range(6)):
        F, H = (torch.cat((X, torch.full((N, 1), j)), dim=-1) for j in (one, other))
        with torch.no_grad():
            found = kernel(F.double(), H.double()).to_dense()
            on_diagonal = kernel(F.double(), H.double(), diag=True)
        wanted = K + near(levels[one], levels[other]) * (G + 1)
        if isinstance(model, IndependentSources):
            wanted = (one == other) * (K if one == TARGET else G + 1)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(on_diagonal, wanted.diagonal())


def test_values_at_any_numbers_are_one_dense_process() -> None:
    r"""The posterior of the target, from the fitted kernels by numpy alone."""
    generator = torch.Generator().manual_seed(5)
    plan = Pool.from_box([[0.0, 0.0], [2.0, 1.0]], 16)
    pool = plan.at_sources((0.5, 1.0, 0.25), costs=(4, 9, 1), target=1.0)
    told = torch.rand(30, 3, generator=generator, dtype=torch.float64)
    told[:, 2] = 0.1 + 1.2 * told[:, 2]
    X = torch.cat((pool.X[[1, 5, 20, 25, 30, 40]], told))
    y = (3 * X[:, 0]).sin() + X[:, 1] + (1 - X[:, 2]).square() * (1 + X[:, 1])
    noise = torch.full_like(y, 1e-3)
    prior = fit_sources(
        FidelityDiscrepancies(), X, y.unsqueeze(-1), noise.unsqueeze(-1), pool
    )
    after, at = prior.given(X, y, noise), pool.X[pool.of_target]
    with torch.no_grad():
        mean, variance = (f(after.features(at)) for f in (after.mean, after.variance))
        unit = prior.covar_module.scale[0] ** 2
        terms = prior.covar_module.base.kernels
        (product,) = [k for k in terms if isinstance(k, ProductKernel)]
        process = [k for k in terms if not isinstance(k, ProductKernel | Loadings)]
        (own,) = [k for k in product.kernels if not isinstance(k, Loadings)]
        assert len(terms) == len(process) + 2  # with the shifts
        both = torch.cat((X, at))
        F = prior.features(both)
        K, G = (
            sum((unit * k(F).to_dense()).numpy() for k in some)
            for some in (process, [own])
        )
        centre = prior.mean(F).numpy()
    numbers = both[:, 2].tolist()
    widest = max(abs(t - 1.0) for t in numbers)
    shares = [[near(s, t, widest) for t in numbers] for s in numbers]
    S = K + np.array(shares) * (G + float(unit))
    n = len(y)
    solved = np.linalg.solve(S[:n, :n] + np.diag(noise.numpy()), S[:n, n:])
    wanted = centre[n:] + solved.T @ (y.numpy() - centre[:n])
    left = np.diag(S[n:, n:] - S[n:, :n] @ solved)
    np.testing.assert_allclose(mean.numpy(), wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variance.numpy(), left, rtol=1e-4, atol=1e-7)


LIKELIHOODS = [
    *((model, LEVELS) for model in MODELS),
    (FidelityDiscrepancies(), (*LEVELS, *FURTHER)),
    (IndependentSources(), (*LEVELS, *FURTHER)),
]


@pytest.mark.some(2)
@pytest.mark.parametrize("is_exact", [True, False])
@pytest.mark.parametrize(
    ("model", "levels"), LIKELIHOODS, ids=lambda one: type(one).__name__
)
def test_gradients_of_fits_are_those_of_automatic_differentiation(
    model: SourceModel, levels: tuple[float, ...], is_exact: bool
) -> None:
    X, _ = points()
    source = torch.arange(N) % len(levels)
    F = torch.cat((X, source.unsqueeze(-1).double()), dim=-1)
    y = (3 * X.sum(dim=-1) + source).sin().unsqueeze(-1)
    noise = torch.full_like(y, 0.01) if is_exact else None
    gp: SingleTaskGP = SingleTaskGP(
        F,
        y,
        noise,
        likelihood=None if is_exact else default_likelihood(),
        covar_module=model.kernel(parts(levels=levels)),
        outcome_transform=None,
    )
    mll = ExactMarginalLogLikelihood(gp.likelihood, gp)
    mll.train()
    compare(mll)


@pytest.mark.some(1)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_are_compared_by_their_likelihood_and_its_price(
    model: SourceModel,
) -> None:
    X, source = points()
    F = torch.cat((X, source.unsqueeze(-1).double()), dim=-1)
    y = (3 * X.sum(dim=-1) + source).sin().unsqueeze(-1)
    value, gp = likeliest(unfitted_standardised(F, y, None, model.kernel(parts())))
    with torch.no_grad():
        S = gp.covar_module(F).to_dense() + gp.likelihood.noise * torch.eye(N).double()
        mean = gp.mean_module(F)
    prior = torch.distributions.MultivariateNormal(mean, S)
    free = sum(p.numel() for p in gp.parameters() if p.requires_grad)
    wanted = prior.log_prob(y[:, 0]) - free * math.log(N) / 2
    found = _criterion(value, gp)
    assert found == pytest.approx(float(wanted.detach()), rel=1e-8)


@pytest.mark.slow
def test_the_likeliest_model_is_chosen() -> None:
    X = torch.linspace(0, 6, 25, dtype=torch.float64).unsqueeze(-1)
    pool = Pool(X).at_sources(("a", "b"), costs=(1, 9), noise_var=(1e-6, 1e-6))
    rows = torch.cat((torch.arange(25), 25 + torch.arange(0, 25, 2)))
    F, target = pool.X[rows], torch.sin(2 * pool.X[rows, 0])
    other = 100 * (5 * F[:, 0] + 1).sin()
    for source, likely in (
        (target, Discrepancies()),
        (-target, Autoregressive()),
        (other, IndependentSources()),
    ):
        y = torch.where(rows < 25, source + 0.1 * F[:, 0].cos(), target)
        given = y.unsqueeze(-1), torch.full((len(y), 1), 1e-6).double(), pool
        chosen = fit_sources(LikeliestSources(), F, *given)
        alone = fit_sources(likely, F, *given)
        with torch.no_grad():
            torch.testing.assert_close(
                chosen.covariance(*2 * (chosen.features(F),)),
                alone.covariance(*2 * (alone.features(F),)),
            )


@pytest.mark.slow
def test_a_source_that_is_right_on_one_side_tells_of_the_target_there_alone() -> None:
    X = torch.linspace(0, 10, 41, dtype=torch.float64).unsqueeze(-1)
    pool = Pool(X).at_sources(("a", "b"), costs=(1, 9), noise_var=(0.0, 0.0))
    x = X[:, 0]
    target = torch.sin(2 * x)
    wrong = (0.7 * x + 1).cos() / (1 + (20 - 4 * x).exp())
    rows = torch.cat((torch.arange(41), 41 + torch.arange(0, 41, 5)))
    y = torch.cat((target + wrong + 0.5, target))[rows]
    noise = torch.full((len(y), 1), 1e-8, dtype=torch.float64)
    given = pool.X[rows], y.unsqueeze(-1), noise, pool
    at = torch.cat((X, torch.ones_like(X)), dim=-1)
    errors, deviations = [], []
    for model in (LikeliestSources(), Discrepancies()):
        prior = fit_sources(model, *given).given(pool.X[rows], y, noise.view(-1))
        with torch.no_grad():
            F = prior.features(at)
            errors.append((prior.mean(F) - target).abs()[x < 4].max())
            deviations.append(prior.variance(F).clamp_min(0).sqrt())
    assert float(errors[0]) < 0.2 * float(errors[1])
    # Where the source is wrong, the model says that it does not know.
    likeliest = deviations[0]
    assert float(likeliest[x < 4].max()) < 0.2 * float(likeliest[x > 7].max())


@pytest.mark.slow
def test_words_are_inputs_of_all_sources() -> None:
    import pandas as pd

    salt = ["none", "sea", "kitchen"] * 8
    table = pd.DataFrame({"heat": torch.linspace(0, 1, 24).numpy(), "salt": salt})
    pool = Pool(table).at_sources(("a", "b"), costs=(1, 9), noise_var=(1e-6, 1e-6))
    assert pool.sources == ("a", "b")
    assert pool.without_sources.n_inputs == 2
    y = (3 * pool.X[:, 0] + pool.X[:, 1] + 0.2 * pool.X[:, -1]).unsqueeze(-1)
    noise = torch.full_like(y, 1e-6)
    half = torch.cat((torch.arange(24), torch.arange(24, 48, 3)))
    prior = fit_sources(None, pool.X[half], y[half], noise[half], pool)
    after = prior.given(pool.X[half], y[half, 0], noise[half, 0])
    with torch.no_grad():
        mean = after.mean(after.features(pool.X[24:]))
    assert (mean - y[24:, 0]).abs().max() < 0.1


def test_given_loadings_have_a_column_for_each_kernel() -> None:
    kernels = [ScaleKernel(RBFKernel()), RBFKernel()]
    with pytest.raises(BotorchTensorDimensionError, match="column for each of 2"):
        source_kernel(kernels, [[1.0], [0.5]], d=1)
