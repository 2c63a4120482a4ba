r"""Noise as a quadratic form, and the Gaussian process that predicts it."""

from functools import partial

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from gpytorch.kernels import LinearKernel

from botorch_lse.acquisition import qHRAGE, qTruVaR
from botorch_lse.data.observations import Observations
from botorch_lse.data.pool import Pool
from botorch_lse.models.fitted import (
    HeteroscedasticGP,
    QuadraticNoise,
    fit_heteroscedastic_gp,
)
from botorch_lse.models.gaussian_process import PosteriorPath
from botorch_lse.strategies import MELKStrategy, TruVaRStrategy

SIGMA = torch.tensor([[0.3, 0.1, 0.0], [0.1, 0.5, -0.2], [0.0, -0.2, 0.4]]).double()
BOUNDS = (0.35, 0.6)


def phi(X):
    return torch.stack((torch.ones_like(X[..., 0]), X[..., 0], X[..., 1]), dim=-1)


X = torch.rand(25, 2, generator=torch.Generator().manual_seed(0)).double()
Y = 10 + 3 * (5 * X).sin().sum(dim=-1, keepdim=True)
NOISE = QuadraticNoise(SIGMA, BOUNDS, phi)


def by_hand(points):
    values = []
    for x1, x2 in points.reshape(-1, 2).tolist():
        v = np.array([1.0, x1, x2])
        values.append(min(max(v @ SIGMA.numpy() @ v, BOUNDS[0]), BOUNDS[1]))
    return torch.tensor(values).double().reshape(points.shape[:-1])


def test_the_noise_is_the_clipped_quadratic_form_at_any_point():
    points = 3 * torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(1)) - 1
    found = NOISE(points.double())
    torch.testing.assert_close(found, by_hand(points.double()))
    assert float(found.min()) == BOUNDS[0]
    assert float(found.max()) == BOUNDS[1]
    assert NOISE(points).dtype == torch.float64


def test_features_of_a_pool_are_looked_up_by_row():
    pool = Pool(100 * X, features=phi(X))
    noise = QuadraticNoise(SIGMA, BOUNDS, pool)
    rows = torch.tensor([[3, 7], [24, 0]])
    torch.testing.assert_close(noise(100 * X[rows]), by_hand(X[rows]))
    torch.testing.assert_close(noise((100 * X[rows]).float()), by_hand(X[rows]))
    with pytest.raises(ValueError, match=r"Expected `X` to be rows of the pool"):
        noise(100 * X[:1] + 1.0)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"Sigma": torch.ones(2, 3)}, BotorchTensorDimensionError, "to be square"),
        ({"bounds": (0.5, 0.1)}, ValueError, "`bounds"),
        ({"bounds": (0.0, 1.0)}, ValueError, "`bounds"),
        ({"features": "phi"}, ValueError, "`features` to be a function .* got str"),
    ],
)
def test_bad_noise_is_refused(options, error, match):
    with pytest.raises(error, match=match):
        QuadraticNoise(**{"Sigma": SIGMA, "bounds": BOUNDS} | options)


def test_another_number_of_features_is_refused():
    with pytest.raises(BotorchTensorDimensionError, match="Expected 3 features"):
        QuadraticNoise(SIGMA, BOUNDS)(X)
    pool = Pool(X, features=phi(X))
    with pytest.raises(BotorchTensorDimensionError, match="`X` with the 2 columns"):
        QuadraticNoise(SIGMA, BOUNDS, pool)(torch.zeros(2, 3))


def test_points_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="`X`, the points, to be finite"):
        QuadraticNoise(SIGMA, BOUNDS)(torch.full((2, 3), torch.nan))


@pytest.mark.parametrize(
    ("noise", "error", "match"),
    [
        (0.1, ValueError, "`noise` to be a function .* but got 0.1"),
        (lambda X: -X.abs().sum(-1) - 1, ValueError, "`noise` to return positive"),
        (lambda X: X, BotorchTensorDimensionError, r"variances, here \(25,\), but got"),
    ],
)
def test_a_bad_noise_function_is_refused(noise, error, match):
    with pytest.raises(error, match=match):
        fit_heteroscedastic_gp(X, X.sin(), None, noise)


def test_the_model_learns_with_the_variances_and_predicts_them():
    model = fit_heteroscedastic_gp(
        X, Y, None, NOISE, torch.tensor([[0.0] * 2, [1.0] * 2])
    )
    path = PosteriorPath.from_model(model)
    torch.testing.assert_close(path.noise_var, by_hand(X))
    new = torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(2)).double()
    with torch.no_grad():
        noisy = model.posterior(new, observation_noise=True)
        latent = model.posterior(new)
    difference = (noisy.variance - latent.variance).squeeze(-1)
    torch.testing.assert_close(difference, by_hand(new), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(noisy.mean, latent.mean)


def test_known_variances_go_before_the_estimates():
    known = torch.full_like(Y, 0.07)
    model = fit_heteroscedastic_gp(X, Y, known, NOISE)
    path = PosteriorPath.from_model(model)
    torch.testing.assert_close(path.noise_var, known.squeeze(-1))
    torch.testing.assert_close(model.predict_noise(X), by_hand(X))


def weighted_ridge(model):
    r"""Posterior moments of Bayesian linear regression with the model's kernel."""
    kernel, scale = model.covar_module, model.outcome_transform.stdvs.item()
    v, shift = kernel.variance.item(), model.outcome_transform.means.item()
    mean = shift + scale * model.mean_module.constant.item()
    precision = torch.eye(2).double() / (v * scale**2)
    precision = precision + X.T @ (X / by_hand(X).unsqueeze(-1))
    right = X.T @ ((Y.squeeze(-1) - mean) / by_hand(X))
    covariance = torch.linalg.inv(precision)
    return mean + X @ covariance @ right, (X @ covariance * X).sum(dim=-1)


def test_a_linear_kernel_is_weighted_least_squares_with_a_ridge():
    model = fit_heteroscedastic_gp(X, Y, None, NOISE, covar_module=LinearKernel())
    with torch.no_grad():
        posterior = model.posterior(X)
    mean, variance = weighted_ridge(model)
    torch.testing.assert_close(posterior.mean.squeeze(-1), mean, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(
        posterior.variance.squeeze(-1), variance, rtol=1e-5, atol=0
    )


def test_the_kernel_given_is_copied():
    kernel = LinearKernel()
    kernel.variance = 7.0
    fit_heteroscedastic_gp(X, Y, None, NOISE, covar_module=kernel)
    assert kernel.variance.item() == pytest.approx(7.0)


# --- in strategies and acquisition functions ------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize("cls", [MELKStrategy, TruVaRStrategy])
def test_a_strategy_plans_and_learns_with_the_predicted_noise(cls):
    factory = partial(fit_heteroscedastic_gp, noise=NOISE)
    learnt = cls(Pool(X), 11.0, model=factory, n_initial=6, batch_size=3, beta=4.0)
    told = cls(
        Pool(X, noise_var=by_hand(X)), 11.0, model=factory, n_initial=6, batch_size=3,
        beta=4.0,
    )  # fmt: skip
    rows = [0, 3, 9, 12, 15, 20]
    data = Observations(rows, Y[rows, 0], round=0)
    one, other = learnt.replay(data), told.replay(data)
    torch.testing.assert_close(one.belief.fits.new_noise, by_hand(X))
    assert torch.equal(learnt.ask(one).order, told.ask(other).order)
    answers = one.classification, other.classification
    torch.testing.assert_close(answers[0].mean, answers[1].mean)
    torch.testing.assert_close(answers[0].sigma, answers[1].sigma)
    flat = cls(
        Pool(X), 11.0, model=factory, n_initial=6, batch_size=3, beta=4.0, noise_std=0.7
    ).replay(data)
    assert not torch.allclose(flat.classification.sigma, answers[0].sigma)


def test_a_fitted_model_serves_as_fixed_hyper_parameters():
    model = fit_heteroscedastic_gp(X, Y, None, NOISE)
    strategy = MELKStrategy(Pool(X), 11.0, model=model, batch_size=3, beta=4.0)
    state = strategy.tell(
        strategy.init(), strategy.ask(strategy.init()).observe([11.0] * 3)
    )
    row = int(state.history.indices[0])
    posterior = state.belief.posterior
    cross = posterior.prior.covariance(posterior.F, posterior.F)
    rows = state.history.indices
    K = cross[rows][:, rows] + by_hand(X)[rows].diag()
    want = cross[row, row] - cross[row, rows] @ torch.linalg.solve(K, cross[rows, row])
    assert float(state.classification.sigma[row]) ** 2 == pytest.approx(float(want))


def test_acquisition_functions_take_the_noise_from_function_or_model():
    model = fit_heteroscedastic_gp(X, Y, None, NOISE)
    batch = torch.rand(4, 3, 2, generator=torch.Generator().manual_seed(3)).double()
    for acqf_class in (qTruVaR, qHRAGE):
        given = acqf_class(model, X[:9], noise_var=NOISE)(batch)
        own = acqf_class(model, X[:9])(batch)
        asked = acqf_class(model, X[:9], noise_var=model)(batch)
        flat = acqf_class(model, X[:9], noise_var=0.3)(batch)
        torch.testing.assert_close(own, given)
        torch.testing.assert_close(asked, given)
        assert not torch.allclose(flat, given)


def test_a_model_that_predicts_no_noise_is_refused():
    model = HeteroscedasticGP(X, Y, NOISE).eval()
    other = SingleTaskGP(X, Y)
    with pytest.raises(UnsupportedError, match=r"`predict_noise`.*got SingleTaskGP"):
        qHRAGE(model, X[:9], noise_var=other)
