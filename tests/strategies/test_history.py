r"""Measurements off the pool, and what a model says anywhere."""

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import History, Pool
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.problem import Observations
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    GEGEStrategy,
    HRAGEStrategy,
    LSEStrategy,
    MELKLinearStrategy,
    PALStrategy,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)

from .runs import GP, NOISE_STD, assert_same, grid, make, measure, step

GENERATOR = torch.Generator().manual_seed(7)
X = torch.rand(9, 2, generator=GENERATOR, dtype=torch.float64)
Y = torch.randn(9, generator=GENERATOR, dtype=torch.float64)
POINTS = torch.rand(5, 2, generator=GENERATOR, dtype=torch.float64) * 1.4 - 0.2
ROWS = [3, 20, 20, 31]


def told(n=0):
    return Observations(ROWS, [measure(row, n + i) for i, row in enumerate(ROWS)])


def dense(train, y, noise_var, at):
    r"""Posterior mean and deviation by the textbook's formula."""
    k = GP.kernel()
    K = k(train, train).to_dense() + torch.diag(noise_var)
    C = k(train, at).to_dense()
    mean = C.mT @ torch.linalg.solve(K, y)
    variance = k(at, at).to_dense().diagonal() - (C * torch.linalg.solve(K, C)).sum(0)
    return mean.detach(), variance.detach().sqrt()


@pytest.mark.parametrize("cls", [LSEStrategy, StraddleStrategy, TruVaRStrategy])
@pytest.mark.parametrize("yvar", [None, 0.04])
def test_a_fixed_process_knows_what_was_measured_anywhere(cls, yvar):
    strategy = make(cls, history=History(X, Y, yvar))
    state = strategy.tell(strategy.init(), told())
    noise = torch.full((9,), yvar or NOISE_STD**2, dtype=torch.float64)
    rows = torch.tensor(ROWS)
    data = (
        torch.cat((X, grid()[rows])),
        torch.cat((Y, told().y)),
        torch.cat((noise, torch.full((4,), NOISE_STD**2, dtype=torch.float64))),
    )
    mean, sigma = dense(*data, grid())
    answer = state.classification
    assert torch.allclose(answer.mean, mean, atol=1e-8)
    assert torch.allclose(answer.sigma, sigma, atol=1e-8)
    mean, sigma = dense(*data, POINTS)
    said = state.predict(POINTS)
    assert torch.allclose(said[0], mean, atol=1e-8)
    assert torch.allclose(said[1], sigma, atol=1e-8)
    assert "were made before the run" not in answer.guarantee  # it says it like this:
    assert "count as made before the run" in answer.guarantee


def test_history_at_rows_is_what_telling_these_rows_is():
    rows = torch.tensor([1, 8, 30])
    y = torch.tensor([0.3, -1.0, 2.0])
    bare = make(StraddleStrategy)
    plain = bare.tell(bare.init(), Observations(rows, y))
    before = make(StraddleStrategy, history=History(grid()[rows], y)).init()
    for name in ("mean", "sigma"):
        one = getattr(plain.classification, name)
        assert torch.allclose(one, getattr(before.classification, name), atol=1e-8)


def fitted(train_X, train_Y, train_Yvar):
    r"""A model whose hyper-parameters depend on its data through both scalings."""
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.4, 1.5
    d = train_X.shape[-1]
    return SingleTaskGP(
        train_X,
        train_Y,
        train_Yvar,
        covar_module=kernel,
        input_transform=Normalize(d, bounds=torch.tensor([[0.0] * d, [1.0] * d])),
        outcome_transform=Standardize(1),
    )


def test_a_model_that_is_learnt_is_fitted_to_all_of_it():
    strategy = LSEStrategy(
        Pool(grid()),
        threshold=0.0,
        model=fitted,
        noise_std=0.1,
        level_z=None,
        n_initial=2,
        needs_both_sides=False,
        beta=4.0,
        history=History(X, Y),
    )
    state = strategy.tell(strategy.init(), told())
    rows = torch.tensor(ROWS)
    every = torch.cat((X, grid()[rows])), torch.cat((Y, told().y)).unsqueeze(-1)
    model = fitted(*every, torch.full((13, 1), 0.01, dtype=torch.float64))
    posterior = model.posterior(POINTS)
    mean, sigma = state.predict(POINTS)
    assert torch.allclose(mean, posterior.mean[:, 0], atol=1e-6)
    assert torch.allclose(sigma.square(), posterior.variance[:, 0], atol=1e-6)
    posterior = model.posterior(grid())
    assert torch.allclose(state.classification.mean, posterior.mean[:, 0], atol=1e-6)


def test_a_first_design_is_smaller_and_keeps_away_from_what_is_known():
    pool = Pool(grid())
    corner = History(torch.rand(15, 2, dtype=torch.float64) * 0.3, torch.zeros(15))
    bare = Strategy(pool, Above(0.4), batch_size=4)
    knows = bare.with_history(corner)
    assert bare.parts.model.wanted == 20
    assert knows.parts.model.wanted == 5
    asked = grid()[knows.ask(knows.init()).indices]
    assert bool((asked.amax(dim=-1) > 0.5).all())
    many = bare.with_history(History(torch.rand(99, 2), torch.zeros(99)))
    assert many.parts.model.wanted == 1


def test_a_default_model_runs_and_replays_with_a_history():
    values = (6 * X).sin().sum(-1)
    pool = Pool(grid())
    strategy = Strategy(
        pool,
        Above(0.2, epsilon=0.1),
        model=GaussianProcess(noise_std=0.1, history=History(3 * X - 1, values)),
        batch_size=8,
        max_observations=24,
    )
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        y = (6 * grid()[batch.order]).sin().sum(-1)
        state = strategy.tell(state, batch.observe(y))
    assert_same(strategy, strategy.replay(state.observations), state)
    mean, _ = state.predict(grid())
    assert torch.allclose(mean, state.classification.mean, atol=1e-6)


def test_histories_are_joined_in_order():
    first, second = History(X[:4], Y[:4]), History(X[4:], Y[4:])
    one = make(LSEStrategy, history=first).with_history(second)
    assert torch.equal(one.history.X, X)
    assert torch.equal(one.history.y, Y)
    with pytest.raises(ValueError, match="for all measurements of a `history`"):
        first.append(History(X, Y, 0.1))
    with pytest.raises(BotorchTensorDimensionError, match="same columns"):
        first.append(History(X[:, :1], Y))


def test_several_outputs_have_a_value_each():
    kernel = RBFKernel().double()
    goal = Above(0.0) & Above(0.0, output=1)
    both = torch.stack((Y, -Y), dim=-1)
    model = GaussianProcess(kernel, noise_std=0.1, history=History(X, both))
    state = Strategy(Pool(grid()), goal, model=model).init()
    mean, sigma = state.predict(X)
    assert mean.shape == sigma.shape == (9, 2)
    assert torch.allclose(mean[:, 0], -mean[:, 1], atol=1e-8)
    with pytest.raises(BotorchTensorDimensionError, match="one value per output"):
        Strategy(Pool(grid()), Above(0.0), model=model)


@pytest.mark.parametrize("cls", [GEGEStrategy, PALStrategy])
def test_a_pareto_strategy_knows_what_was_measured_anywhere(cls):
    values = torch.stack((Y, 2 * Y.flip(0)), dim=-1)
    bare = make(cls, maximize=(True, False), epsilon=0.0)
    assert bare.takes_history
    first, second = History(X[:4], values[:4], 0.04), History(X[4:], values[4:], 0.04)
    strategy = bare.with_history(first).with_history(second)
    mean, sigma = strategy.init().predict(POINTS)
    for j in range(2):
        found = dense(X, values[:, j], torch.full((9,), 0.04).double(), POINTS)
        assert torch.allclose(mean[:, j], found[0], atol=1e-8)
        assert torch.allclose(sigma[:, j], found[1], atol=1e-8)
    assert "count as made before the run" in strategy.guarantee


def test_the_covariance_after_measurements_is_that_of_the_textbook():
    prior = GPPrior.from_kernel(GP.kernel()).given(X, Y, torch.full((9,), 0.04))
    F = prior.features(POINTS)
    k = GP.kernel()
    K = k(X, X).to_dense() + 0.04 * torch.eye(9)
    C = k(X, POINTS).to_dense()
    wanted = k(POINTS, POINTS).to_dense() - C.mT @ torch.linalg.solve(K, C)
    assert np.allclose(prior.covariance(F, F), wanted.detach(), atol=1e-9)
    assert np.allclose(prior.variance(F), wanted.detach().diagonal(), atol=1e-9)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="no `norm_bound` with a `history`"):
        make(LSEStrategy, beta=None, norm_bound=2.0, history=History(X, Y))
    with pytest.raises(BotorchTensorDimensionError, match="2 columns of the pool"):
        make(LSEStrategy, history=History(X[:, :1], Y))
    with pytest.raises(BotorchTensorDimensionError, match="`y`"):
        History(X, Y[:3])
    with pytest.raises(ValueError, match="`yvar`"):
        History(X, Y, -1.0)
    noisy = Pool(grid(), noise_var=torch.full((36,), 0.1))
    learnt = {"model": None, "noise_std": None, "pool": noisy}
    with pytest.raises(ValueError, match=r"noise of `history`.*`pool\.noise_var`"):
        make(LSEStrategy, history=History(X, Y), **learnt)
    make(LSEStrategy, history=History(X, Y, 0.04), **learnt)
    bounds = {"variance_bounds": (0.01, 0.1), "noise_std": None}
    burning = make(HRAGEStrategy, **bounds)
    assert not burning.takes_history
    with pytest.raises(ValueError, match="no `history` with `variance_bounds`"):
        burning.with_history(History(X, Y))
    linear = MELKLinearStrategy(Pool(torch.eye(4)), threshold=0.4, noise_std=0.3)
    assert not linear.takes_history
    with pytest.raises(UnsupportedError, match="rows of its pool only"):
        linear.with_history(History(X, Y))
    with pytest.raises(UnsupportedError, match="not of other points"):
        linear.init().predict(torch.eye(4))
    bare = Strategy(Pool(grid()), Above(0.4))
    with pytest.raises(UnsupportedError, match="none has been fitted yet"):
        bare.init().predict(X)
    with pytest.raises(BotorchTensorDimensionError, match="`X` to have 2 columns"):
        bare.init().predict(X[:, :1])
    unknown = LSEStrategy(Pool(grid()), 0.0, model=fitted, history=History(X, Y))
    rows = Observations(list(range(36)), [float(i % 5) for i in range(36)], 0.1)
    start = unknown.init()
    with pytest.raises(ValueError, match="noise of all values to be known or of none"):
        unknown.tell(start, rows)
    state = step(make(LSEStrategy), make(LSEStrategy).init())
    assert state.predict(POINTS)[0].shape == (5,)
