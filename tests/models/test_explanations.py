r"""Values that two explanations fit: the intervals cover both, and a remark says so."""

import math

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.exceptions.warnings import BotorchWarning
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from botorch_lse import History, Observations, Pool
from botorch_lse.models import marginal
from botorch_lse.models.explanations import profile
from botorch_lse.models.fitted import fit_heteroscedastic_gp, fit_single_task_gp
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.models.kernels import LearntKernel
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    ParetoByDifferences,
    Strategy,
)
from tests.strategies.runs import assert_same


def table(seed, noise, n=60):
    r"""One value of each row, of a smooth function of spread 9 in four inputs."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 4, generator=generator, dtype=torch.float64)
    f = 11 * (3 * X[:, 0] + 2 * X[:, 1]).sin() * (2 * X[:, 2]).cos()
    f = f + 8 * (4 * X[:, 3]).cos() * X[:, 1]
    f = f - f.median()
    y = f + noise * torch.randn(n, generator=generator, dtype=torch.float64)
    return X, f, y


def fast(seed, n=60):
    r"""Sixty exact values of a function that varies fast."""
    X = torch.rand(n, 4, generator=torch.Generator().manual_seed(seed)).double()
    f = 10 * (8 * X + torch.arange(4)).sin().sum(dim=-1)
    return X, f - f.median(), f - f.median()


def told(X, y, model=None, goal=None):
    strategy = Strategy(
        Pool(X),
        goal or Above(0.0),
        model=model or GaussianProcess(),
        batch_size=12,
    )
    state = strategy.tell(strategy.init(), Observations(torch.arange(len(X)), y))
    assert_same(strategy, strategy.replay(state.observations), state)
    return state


def outside(answer, f):
    return int(((f < answer.lower) | (f > answer.upper)).sum())


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("seed", [1, 2, 9])
def test_intervals_cover_a_noise_that_the_data_do_not_tell(seed) -> None:
    X, f, y = table(seed, noise=6.0)
    answer = told(X, y).classification
    # By the likeliest explanation alone 30 to 46 of 60 were outside.
    assert outside(answer, f) <= 3
    assert not bool((answer.above & (f < 0)).any())
    assert not bool((answer.below & (f > 0)).any())


@pytest.mark.slow
def test_intervals_cover_a_function_that_varies_fast() -> None:
    X, f, y = fast(0)
    answer = told(X, y).classification
    assert outside(answer, f) == 0
    # Nor do they by 1.96 standard deviations, which half of the time they would.
    assert float(((f - answer.mean).abs() <= 1.96 * answer.sigma).double().mean()) > 0.9


@pytest.mark.slow
def test_four_rows_measured_again_tell_the_noise() -> None:
    X, f, y = table(1, noise=6.0)
    state = told(X, y)
    (remark,) = state.remarks
    assert remark.kind == "noise"
    assert "No row was measured twice" in remark.text
    assert remark.text in state.classification.guarantee
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(4, generator=generator, dtype=torch.float64)
    rows = torch.tensor([4, 18, 33, 51])
    for n in (2, 4):
        y_again = f[rows[:n]] + 6 * draws[:n]
        every = torch.cat((torch.arange(60), rows[:n]))
        strategy = state.strategy
        again = Observations(every, torch.cat((y, y_again)))
        kinds = [r.kind for r in strategy.tell(strategy.init(), again).remarks]
        assert kinds == (["noise"] if n == 2 else [])
    known = told(X, y, GaussianProcess(noise_std=6.0))
    assert known.remarks == ()


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_a_fit_stays_as_it_is_where_the_data_tell_the_noise(noise) -> None:
    X, _, y = table(3, noise)
    model = fit_single_task_gp(X, y.unsqueeze(-1), None, Pool(X).bounds)
    assert isinstance(model.covar_module, RBFKernel)
    assert not hasattr(model, "noise_between")
    assert told(X, y).remarks == ()


def test_the_profile_is_the_density_of_the_values() -> None:
    X, _, y = table(3, noise=1.0)
    model = fit_single_task_gp(X, y.unsqueeze(-1), None, Pool(X).bounds)
    F, z, kernel = model.train_inputs[0], model.train_targets, model.covar_module
    noises, eye = torch.tensor([1e-3, 0.1, 2.0]).double(), torch.eye(60).double()
    prior = kernel.lengthscale_prior.log_prob(kernel.lengthscale).sum()
    for noise, value in zip(noises, profile(model, noises).tolist(), strict=True):
        K = kernel(F).to_dense() + noise * eye
        density = torch.distributions.MultivariateNormal(model.mean_module(F), K)
        expected = float((density.log_prob(z) + prior).detach())
        assert value == pytest.approx(expected, rel=1e-8)


def of_words():
    X, f, y = table(1, noise=6.0)
    frame = pd.DataFrame(X.numpy(), columns=list("abcd"))
    frame["word"] = ["u", "v", "w"] * 20
    return Pool(frame), f, y, GaussianProcess(n_initial=40), Above(0.0)


def of_several(correlated):
    X, f, y = table(1, noise=6.0)
    other = table(2, noise=6.0)[2]
    goal = Above(0.0) & Above(0.0, output=1)
    both = torch.stack((y, 0.5 * y + 0.5 * other), dim=-1)
    return Pool(X), f, both, GaussianProcess(correlated=correlated), goal


def of_old_values():
    X, f, y = table(1, noise=6.0)
    history = History(X[:40], y[:40])
    return Pool(X[40:]), f[40:], y[40:], GaussianProcess(history=history), Above(0.0)


def of_a_kernel():
    X, f, y = table(1, noise=6.0)
    model = GaussianProcess(LearntKernel(ScaleKernel(MaternKernel(ard_num_dims=4))))
    return Pool(X), f, y, model, Above(0.0)


CASES = {
    "words": of_words,
    "independent": lambda: of_several(False),
    "correlated": lambda: of_several(True),
    "old values": of_old_values,
    "a kernel": of_a_kernel,
}


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("name", CASES)
def test_every_learnt_noise_is_looked_at(name) -> None:
    pool, f, y, model, goal = CASES[name]()
    strategy = Strategy(pool, goal, model=model, batch_size=12)
    rows = torch.arange(len(pool))
    state = strategy.tell(strategy.init(), Observations(rows, y))
    assert {remark.kind for remark in state.remarks} == {"noise"}
    mean, sigma = state.predict(pool.X)
    if mean.ndim > 1:
        mean, sigma = mean[:, 0], sigma[:, 0]
    assert float(((f - mean).abs() <= 3 * sigma).double().mean()) > 0.95


@pytest.mark.parametrize("yvar", [None, 0.01])
def test_a_model_that_cannot_be_fitted_stays_as_it_was(monkeypatch, yvar):
    # As with three values, three lines of one word each and a kernel without priors.
    def fails(mll):
        for parameter in mll.model.parameters():
            parameter.data.fill_(math.nan)
        raise ModelFittingError("All attempts to fit the model have failed.")

    monkeypatch.setattr(marginal, "fit_likelihood", fails)
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2)).double()
    X, y = torch.rand(3, 2).double(), torch.tensor([[-0.6], [-0.5], [1.2]]).double()
    noise = None if yvar is None else torch.full_like(y, yvar)
    with pytest.warns(BotorchWarning, match="3 values could not be fitted.*n_initial"):
        model = LearntKernel(kernel)(X, y, noise)
    assert torch.equal(model.covar_module(X).to_dense(), kernel(X).to_dense())
    posterior = model.posterior(X)
    assert bool(torch.isfinite(posterior.mean).all() and (posterior.variance > 0).all())


# --- values that vary by their noise alone --------------------------------------------

FREE = LearntKernel(ScaleKernel(RBFKernel()))
QUANTILE = 4.575
"""Of 5 % of chi-square with 11 degrees of freedom, from tables."""


def noisy():
    r"""Six rows, each measured twice: all that varies is noise."""
    X = torch.linspace(0, 1, 6, dtype=torch.float64).view(-1, 1).repeat(2, 1)
    return X, torch.tensor([0.8, -0.8]).double().repeat_interleave(6).view(-1, 1)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_free_scale_stays_as_large_as_values_allow(is_known) -> None:
    X, y = noisy()
    model = FREE(X, y, torch.full_like(y, 0.64) if is_known else None)
    prior = GPPrior.from_model(model)
    noise = 0.64 if is_known else float(prior.noise_var)
    wanted = 12 * 0.64 / QUANTILE - noise
    found = prior.variance(prior.features(X))
    assert torch.allclose(found, torch.full_like(found, wanted), rtol=1e-3)


def test_a_scale_that_values_tell_stays_as_it_was_fitted() -> None:
    X, y = noisy()[0], (6 * noisy()[0]).sin()
    with_noise = torch.full_like(y, 1e-4)
    model = FREE(X, y, with_noise)
    assert type(model.covar_module.base_kernel) is RBFKernel


def test_a_pareto_set_is_not_decided_by_a_constant() -> None:
    X, y = noisy()
    strategy = Strategy(
        Pool(X[:6]),
        ParetoByDifferences((True, True), 0.05),
        model=GaussianProcess(model=FREE, noise_std=0.8),
        beta=4.0,
    )
    data = Observations(torch.arange(6).repeat(2), y.repeat(1, 2))
    answer = strategy.replay(data).classification
    assert bool(answer.undecided.all())  # they were all Pareto optimal, for certain


def test_heteroscedastic_models_that_no_fit_ends_stay_as_they_were(monkeypatch) -> None:
    def fails(_):
        raise ModelFittingError("All attempts to fit the model have failed.")

    monkeypatch.setattr(marginal, "fit_likelihood", fails)
    X, y = noisy()
    with pytest.warns(BotorchWarning, match="12 values could not be fitted"):
        model = fit_heteroscedastic_gp(X, y, None, lambda X: X[..., 0] * 0 + 0.64)
    assert not model.training
