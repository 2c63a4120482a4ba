r"""Measurements off the pool, and what a model says anywhere."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import History, Pool
from botorch_lse.data.observations import Observations
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import PALStrategy
from botorch_lse.strategies import (
    Above,
    Below,
    GaussianProcess,
    GEGEStrategy,
    HRAGEStrategy,
    LSEStrategy,
    MELKLinearStrategy,
    Straddle,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)
from botorch_lse.surrogate.remarks import DataWarning
from tests.covering import covering

from .runs import GP, NOISE_STD, assert_same, grid, make, measure, played, step

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
    assert "count as made before the run: assumed to be of the same function, at" in (
        answer.guarantee
    )


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
    assert bare.parts.model.wanted_to_decide == 20
    assert knows.parts.model.wanted_to_decide == 5
    assert bare.parts.model.wanted == 9
    assert knows.parts.model.wanted == 4
    asked = grid()[knows.ask(knows.init()).indices]
    assert bool((asked.amax(dim=-1) > 0.5).all())
    many = History(torch.rand(99, 2), torch.zeros(99))
    assert bare.with_history(many).parts.model.wanted == 4  # to measure them again
    assert make_known(many).parts.model.wanted == 1


def make_known(history):
    model = GaussianProcess(noise_std=0.1, history=history)
    return Strategy(Pool(grid()), Above(0.4), model=model)


@pytest.mark.slow
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


def test_a_given_process_learns_of_old_values_by_a_replay() -> None:
    pool = Pool(torch.linspace(0, 1, 20, dtype=torch.float64).unsqueeze(-1))
    y = (6 * pool.X[:, 0]).sin()
    kernel = ScaleKernel(RBFKernel()).double().requires_grad_(False)
    model = GaussianProcess(kernel, noise_std=0.3)
    strategy = Strategy(pool, Above(0.3), model=model, batch_size=4)
    batch = strategy.ask(strategy.init())
    state = strategy.tell(strategy.init(), batch.observe(y[batch.order]))
    informed = strategy.with_history(History(pool.X, y))
    with pytest.raises(ValueError, match="made with another `history`") as e:
        informed.ask(state)
    assert "`strategy.replay(state.observations)`" in str(e.value)
    again = informed.replay(state.observations).classification
    assert bool((again.sigma < state.classification.sigma).all())
    # A batch itself may be pending.
    by_rows = strategy.ask(strategy.init(), pending=batch.order)
    by_batch = strategy.ask(strategy.init(), pending=batch)
    assert torch.equal(by_rows.order, by_batch.order)


def test_histories_are_joined_in_order():
    first, second = History(X[:4], Y[:4]), History(X[4:], Y[4:])
    one = make(LSEStrategy, history=first).with_history(second)
    assert torch.equal(one.history.X, X)
    assert torch.equal(one.history.y, Y)
    with pytest.raises(ValueError, match="for all measurements of a `history`"):
        first.append(History(X, Y, 0.1))
    with pytest.raises(BotorchTensorDimensionError, match="same columns"):
        first.append(History(X[:, :1], Y))


@pytest.mark.parametrize("known", [0, 1])
def test_stated_noise_counts_where_a_part_of_a_history_does_not_tell_its_own(known):
    both, goal = torch.stack((Y, -Y), dim=-1), Above(0.0) & Above(0.0, output=1)
    yvar = [None, None]
    yvar[known] = 0.01
    first, second = History(X[:4], both[:4], yvar[0]), History(X[4:], both[4:], yvar[1])
    model = GaussianProcess(noise_std=(0.2, 0.3), history=first)
    told = Strategy(Pool(grid()), goal, model=model).with_history(second)
    stated = torch.tensor([[0.04, 0.09]]).double().expand(9, 2).clone()
    stated[slice(4) if known == 0 else slice(4, 9)] = 0.01
    assert torch.allclose(told.model.history.yvar, stated)


def test_old_values_have_the_noise_that_all_rows_share():
    both, goal = torch.stack((Y, -Y), dim=-1), Above(0.0) & Above(0.0, output=1)
    pool = Pool(grid(), noise_var=[0.3] * 36)
    first, second = History(X[:4], both[:4], 0.01), History(X[4:], both[4:])
    model = GaussianProcess(history=first)
    told = Strategy(pool, goal, model=model).with_history(second).model.history
    assert told.yvar.tolist() == [[0.01] * 2] * 4 + [[0.3] * 2] * 5
    levels = Pool(grid()).at_sources((0.5, 1.0), (1, 2), noise_var=(0.2, 0.1))
    strategy = Strategy(levels, Above(0.0))
    told = strategy.with_history(History(X[:2], Y[:2], source=(1.0, 0.5)))
    assert told.model.history.yvar.tolist() == [0.1, 0.2]
    with pytest.raises(ValueError, match="without `noise_var`, and the noise is lear"):
        strategy.with_history(History(X, Y, source=0.7))  # nobody knows its noise


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
    noisy = Pool(grid(), noise_var=torch.linspace(0.1, 0.2, 36))
    learnt = {"model": None, "noise_std": None, "pool": noisy}
    with pytest.raises(ValueError, match="noise of all values to be known or of none"):
        make(LSEStrategy, history=History(X, Y), **learnt)
    make(LSEStrategy, history=History(X, Y, 0.04), **learnt)
    bounds = {"variance_bounds": (0.01, 0.1), "noise_std": None}
    burning = make(HRAGEStrategy, **bounds)
    assert not burning.takes_history
    with pytest.raises(ValueError, match="no `history` with `variance_bounds`"):
        burning.with_history(History(X, Y))
    linear = MELKLinearStrategy(Pool(torch.eye(4)), threshold=0.4, noise_std=0.3)
    assert not linear.takes_history
    region = Above(0.1) & Below(0.4, output=1)
    together = Strategy(Pool(grid()), region, model=GaussianProcess(correlated=True))
    assert not together.takes_history  # so that Ax refuses points as they come
    past = History([[0.5, 0.5]], [[0.1, 0.2]])
    with pytest.raises(UnsupportedError, match="no `history` where outputs are corr"):
        together.with_history(past)
    assert replace(together, model=GaussianProcess()).with_history(past).takes_history
    with pytest.raises(UnsupportedError, match="rows of its pool only"):
        linear.with_history(History(X, Y))
    with pytest.raises(UnsupportedError, match="not of other points"):
        linear.init().predict(torch.eye(4))
    bare = Strategy(Pool(grid()), Above(0.4))
    with pytest.raises(UnsupportedError, match="none has been fitted yet"):
        bare.init().predict(X)
    with pytest.raises(BotorchTensorDimensionError, match="`X` to have 2 columns"):
        bare.init().predict(X[:, :1])
    state = step(make(LSEStrategy), make(LSEStrategy).init())
    assert state.predict(POINTS)[0].shape == (5,)


# --- every run with old values ends ---------------------------------------------------


WORDS = pd.DataFrame({"x": [0.0, 0.3, 0.6, 0.9] * 3, "s": list("abcabcabcabc")})
POOLS = {"numbers": Pool(grid(4)), "words": Pool(WORDS), "outputs": Pool(grid(4))}


def wave(X):
    return (6 * X).sin().sum(-1)


def before(n, kind, noise, again=5):
    r"""``n`` old values off the pool, one of so many a replicate; 0: none is."""
    generator = torch.Generator().manual_seed(n)
    pool = POOLS[kind]
    at = pool.X[torch.randint(len(pool), (n,), generator=generator)].clone()
    at[:, 0] += 0.1 * torch.rand(n, generator=generator, dtype=torch.float64)
    if again:
        at[again - 1 :: again] = at[again - 2 :: again][: len(at[again - 1 :: again])]
    y = wave(at) + 0.1 * torch.randn(n, generator=generator, dtype=torch.float64)
    y = torch.stack((y, -y), dim=-1) if kind == "outputs" else y
    return History(at, y, 0.01 if noise in ("by row", "told") else None)


def with_old_values(history, kind, noise, batch_size, **options):
    pool, model = POOLS[kind], {"model": fitted}
    if noise == "known":
        model |= {"noise_std": 0.1}
    if noise == "by row":
        own = torch.linspace(0.01, 0.011, len(pool))
        pool = Pool(pool.X, names=pool.names, noise_var=own)
    goal = Above(0.4, epsilon=0.3)
    if kind == "outputs":
        goal = goal & Above(-0.8, epsilon=0.3, output=1)
    options = {"max_observations": 40, "rule": Straddle(), **options}
    return Strategy(
        pool,
        goal,
        model=GaussianProcess(history=history, **model),
        batch_size=batch_size,
        **options,
    )


@pytest.mark.some(2)
@covering(
    "batch_size, n_before, noise, kind",
    range(1, 13),
    (1, 5, 10, 16, 20, 21, 200),
    ("learnt", "known", "by row", "told"),
    ("numbers", "words", "outputs"),
)
def test_every_run_with_old_values_ends(batch_size, n_before, noise, kind) -> None:
    ends_with_old_values(batch_size, n_before, noise, kind)


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("n_before", [20, 200])
def test_new_rows_come_once_no_row_is_left_to_repeat(batch_size, n_before) -> None:
    ends_with_old_values(batch_size, n_before, "learnt", "numbers", again=0)


def ends_with_old_values(batch_size, n_before, noise, kind, again=5) -> None:
    history = before(n_before, kind, noise, again)
    strategy = with_old_values(history, kind, noise, batch_size)
    generator = torch.Generator().manual_seed(n_before)

    def values(rows, state):
        y = wave(strategy.pool.X[rows])
        y += 0.1 * torch.randn(len(rows), generator=generator, dtype=torch.float64)
        return torch.stack((y, -y), dim=-1) if kind == "outputs" else y

    state, yvar = strategy.init(), 0.01 if noise == "told" else None
    while not state.is_done:
        batch = strategy.ask(state)
        assert 0 < len(batch) <= batch_size
        state = strategy.tell(state, batch.observe(values(batch.order, state), yvar))
        assert len(state.observations) <= 40
    assert state.stop_reason in ("decided", "budget")
    assert torch.isfinite(state.classification.sigma).all()
    if noise == "learnt":
        points = torch.cat((history.X, strategy.pool.X[state.observations.indices]))
        assert len(points) - len(points.unique(dim=0)) >= 4


@pytest.mark.parametrize("noise", ["learnt", "told"])
def test_the_first_design_counts_the_replicates_and_the_noise_of_old_values(
    noise,
) -> None:
    model = with_old_values(before(20, "numbers", noise), "numbers", noise, 1)
    assert model.parts.model.n_repeats == 0
    bare = with_old_values(None, "numbers", noise, 1)
    assert bare.parts.model.n_repeats == 4
    few = before(10, "numbers", "learnt")
    own = with_old_values(few, "numbers", "learnt", 1).parts.model
    assert own.n_repeats == 4 - 2
    assert own.wanted_to_decide == 16 - 8  # points, not values


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_run_on_few_rows_ends_whose_noise_is_learnt(n_rows, batch_size) -> None:
    pool = Pool(torch.linspace(0, 1, n_rows, dtype=torch.float64).unsqueeze(-1))
    model = GaussianProcess(fitted)
    strategy = Strategy(
        pool,
        Above(0.5),
        model=model,
        rule=Straddle(),
        batch_size=batch_size,
        max_observations=12,
    )
    value = lambda rows, state: pool.X[rows, 0] + 0.01 * len(state.history)  # noqa: E731
    # A batch of equal values of the only row says that repeats tell nothing.
    reasons = ("decided", "budget", "rows exhausted")
    assert played(strategy, value)[-1].stop_reason in reasons


@pytest.mark.some(1)
@pytest.mark.parametrize("batch_size", [3, 4, 5, 8])
def test_no_row_is_measured_again_beyond_its_limit(batch_size) -> None:
    pool = Pool(torch.linspace(0, 1, 8, dtype=torch.float64).unsqueeze(-1))
    strategy = Strategy(
        pool,
        Above(0.5),
        model=GaussianProcess(fitted),
        rule=Straddle(),
        batch_size=batch_size,
        max_repeats=2,
    )
    for seed in range(5):
        state = strategy.init(seed)
        while not state.is_done:
            batch = strategy.ask(state)
            lost = batch.order[:1] if state.round == 0 else None
            kept = batch.order if lost is None else batch.order[1:]
            y = pool.X[kept, 0] + 0.05 * torch.arange(len(kept))
            told = Observations(kept, y)
            state = strategy.tell(state, told, abandoned=lost)
            assert state.uses(8).max() <= 2


def test_old_values_without_the_noise_of_a_pool_are_refused_before_it_costs() -> None:
    known, unknown = (before(9, "numbers", noise) for noise in ("told", "learnt"))
    with pytest.raises(ValueError, match="known or of none"):
        with_old_values(unknown, "numbers", "by row", 1)
    with_old_values(known, "numbers", "by row", 1)  # the remedy


@pytest.mark.parametrize("is_old_known", [True, False])
def test_noise_may_be_told_of_old_or_of_new_values_alone(is_old_known: bool) -> None:
    past = before(9, "numbers", "told" if is_old_known else "learnt")
    strategy = with_old_values(past, "numbers", "learnt", 16)
    rows, y = strategy.ask(strategy.init()).order, torch.linspace(-1, 1, 16).double()
    yvar = None if is_old_known else 0.02 + 0.001 * torch.arange(16).double()
    state = strategy.replay(Observations(rows, y, yvar=yvar))
    assert state.belief.fits.is_informed
    (posterior,) = state.belief.fits.posteriors
    # One noise is learnt of all, and each value counts with its own where it was told.
    prior = posterior.prior.before
    old = past.yvar if is_old_known else prior.noise_var.expand(len(past.y))
    new = prior.noise_var.expand(16) if is_old_known else yvar
    F = prior.features(torch.cat((past.X, strategy.pool.X[rows])))
    G = prior.features(strategy.pool.X)
    K = prior.covariance(F, F) + torch.diag(torch.cat((old, new)))
    C = prior.covariance(F, G)
    values = torch.cat((past.y, y)) - prior.mean(F)
    mean = prior.mean(G) + C.mT @ torch.linalg.solve(K, values)
    assert torch.allclose(posterior.mean, mean, rtol=1e-6, atol=1e-8)


# --- knowing more decides more --------------------------------------------------------


def decided(model, history, seed, n=24, noise_std=0.1):
    r"""How many rows are decided after ``n`` measurements, and the last state."""
    pool = Pool(grid(10))
    strategy = Strategy(
        pool,
        Above(0.5, epsilon=0.1),
        model=replace(model, history=history),
        rule=Straddle(),
        beta=9.0,
        batch_size=6,
        max_observations=n,
    )
    generator = torch.Generator().manual_seed(seed)

    def values(rows, state):
        draws = torch.randn(len(rows), generator=generator, dtype=torch.float64)
        return wave(pool.X[rows]) + noise_std * draws

    state = played(strategy, values, seed=seed)[-1]
    return int((~state.classification.undecided).sum()), state


def old(seed, noise_std=0.1, n=20):
    generator = torch.Generator().manual_seed(100 + seed)
    at = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    draws = torch.randn(n, generator=generator, dtype=torch.float64)
    return History(at, wave(at) + noise_std * draws)


MODELS = {
    "fixed": GaussianProcess(GPPrior.from_kernel(GP.kernel()), noise_std=0.1),
    "known noise": GaussianProcess(noise_std=0.1),
    "learnt noise": GaussianProcess(),
}


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        ("fixed", 4),
        pytest.param("fixed", 20, marks=pytest.mark.slow),
        pytest.param("known noise", 4, marks=pytest.mark.slow),
        pytest.param("learnt noise", 4, marks=pytest.mark.slow),
    ],
)
def test_old_values_decide_more_on_average(name, seeds) -> None:
    model, with_them, without = MODELS[name], [], []
    for seed in range(seeds):
        n, state = decided(model, old(seed), seed)
        with_them.append(n)
        answer = state.classification
        clear = (answer.lower + 0.1 > 0.5) | (answer.upper - 0.1 <= 0.5)
        assert not bool((answer.undecided & clear).any())
        without.append(decided(model, None, seed)[0])
    assert sum(with_them) > sum(without)


def test_the_prior_that_decides_nothing_is_that_before_old_values() -> None:
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.3
    X = torch.linspace(0, 3, 61, dtype=torch.float64)
    # Far above the level by old values, which the prior by itself says nothing of.
    before = History(torch.tensor([[0.0], [0.3]]), torch.tensor([2.0, 2.0]))
    model = GaussianProcess(kernel, noise_std=0.05, history=before)
    strategy = Strategy(Pool(X.unsqueeze(-1)), Above(0.0), model=model, beta=4.0)
    told = Observations([len(X) - 1], [0.5])
    answer = strategy.tell(strategy.init(), told).classification
    clear = answer.lower > 0
    assert bool(clear[0])
    assert bool(answer.above[clear].all())


def test_old_values_on_the_other_side_count_as_values_on_both_sides() -> None:
    pool = Pool(grid(4))
    rows = pool.X.sum(-1) < 0.5
    at = torch.tensor([[0.9, 0.9], [0.9, 0.7], [0.7, 0.9], [0.8, 0.8]])
    high = History(at, torch.tensor([2.0, 2.1, 1.9, 2.0]))
    model = GaussianProcess(fitted, noise_std=0.1, n_initial=1)
    for history, expected in ((None, "below"), (high, None)):
        own = replace(model, history=history)
        strategy = Strategy(pool, Above(1.0), model=own, rule=Straddle())
        told = Observations(rows.nonzero().view(-1), -1.0 - pool.X[rows].sum(-1))
        state = strategy.tell(strategy.init(), told)
        found = state.belief.one_sided
        assert (found and found.side) == expected


def smooth(X):
    return (3 * X[:, 0]).sin()


def exact_kernel(lengthscale=0.5):
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel


def single_precision():
    X = torch.linspace(0, 1, 9).unsqueeze(-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        model = SingleTaskGP(X, smooth(X).unsqueeze(-1), covar_module=RBFKernel())
    model.covar_module.lengthscale = 0.3
    return model


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("model", "error"), [(exact_kernel(), 1e-5), (single_precision(), 1e-3)]
)
@pytest.mark.parametrize("place", ["on rows", "twice", "anywhere"])
def test_exact_values_can_be_told_after_many_exact_old_values(
    model, error, place
) -> None:
    pool = Pool(torch.linspace(0, 1, 121, dtype=torch.float64).unsqueeze(-1))
    generator = torch.Generator().manual_seed(0)
    at = {
        "on rows": pool.X[::2],
        "twice": torch.cat((pool.X[::3], pool.X[::3])),
        "anywhere": 2 * torch.rand(80, 1, generator=generator).double() - 0.5,
    }[place]
    known = GaussianProcess(model, noise_std=0.0, history=History(at, smooth(at)))
    strategy = Strategy(pool, Above(0.5), model=known, rule=Straddle(), batch_size=1)
    state, truth = strategy.init(), smooth(pool.X)
    for row in range(1, 121, 12):
        state = strategy.tell(state, Observations([row], truth[[row]]))
    mean, sigma = state.predict(pool.X)
    assert float((mean - truth).abs().max()) < error
    assert float(sigma.max()) < error


@pytest.mark.some(2)
@pytest.mark.parametrize("model", [exact_kernel(0.2), fitted, None])
def test_rows_that_exact_old_values_tell_are_not_measured_again(model) -> None:
    pool = Pool(torch.linspace(0, 1, 31, dtype=torch.float64).unsqueeze(-1))
    truth = smooth(pool.X)
    known = History(pool.X[:25], truth[:25])
    strategy = Strategy(
        pool,
        Above(float(truth[4])),  # which no measurement with any noise can decide
        model=GaussianProcess(model, noise_std=1e-9, history=known),
        batch_size=3,
    )
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(truth[batch.order]))
        assert state.round == 1 or bool((batch.order >= 25).all())
    assert state.stop_reason == "rows exhausted"
    assert state.classification.undecided.nonzero().tolist() == [[4]]
    # All values on one side: every row is known, so that none has to be seen.
    above = Strategy(
        pool,
        Above(-1.0),
        model=GaussianProcess(model, noise_std=0.0, history=History(pool.X, truth)),
        batch_size=3,
    )
    state = above.init()
    if not state.is_done:
        batch = above.ask(state)
        state = above.tell(state, batch.observe(truth[batch.order]))
    assert (state.is_done, state.stop_reason) == (True, "decided")
    assert bool(state.classification.above.all())


def test_a_first_batch_told_in_parts_has_room_where_old_values_tell_every_row() -> None:
    pool = Pool(torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1))
    truth = smooth(pool.X)
    strategy = Strategy(
        pool,
        Above(-9.0),
        model=GaussianProcess(
            exact_kernel(0.2),
            noise_std=0.0,
            history=History(pool.X, truth),
        ),
        batch_size=5,
        beta=9.0,  # a width of choice, with which old values alone decide nothing
    )
    state = strategy.init()
    rows = strategy.ask(state).order
    for n_told in range(1, 5):
        told = rows[n_told - 1 : n_told]
        state = strategy.tell(state, Observations(told, truth[told]))
        assert strategy.room(state) == 5 - n_told
        assert strategy.room(state, rows[n_told:]) == 0
    state = strategy.tell(state, Observations(rows[4:], truth[rows[4:]]))
    assert state.stop_reason == "decided"


OVEN = Pool(torch.linspace(20, 30, 41, dtype=torch.float64).view(-1, 1), names=["T"])


def oven(X):
    return (0.9 * (X[:, 0] - 20)).sin()


def old_oven(place, seed):
    r"""Eleven old values near the pool, of which some were written down wrongly."""
    generator = torch.Generator().manual_seed(seed)
    at = 20 + 10 * torch.rand(11, 1, generator=generator, dtype=torch.float64)
    y = oven(at) + 0.1 * torch.randn(11, generator=generator, dtype=torch.float64)
    if place == "one a hundred times as large":
        at[3] *= 100
    if place == "kelvin":
        at += 273.15
    if place == "beside":
        at += 10
    return History(at, y)


@pytest.mark.some(1)
@pytest.mark.parametrize("noise_std", [None, 0.1])
@pytest.mark.parametrize("place", ["one a hundred times as large", "kelvin", "beside"])
def test_old_values_far_from_the_pool_are_named_and_do_no_harm(
    place, noise_std
) -> None:
    model = GaussianProcess(noise_std=noise_std, history=old_oven(place, 1))
    strategy = Strategy(OVEN, Above(0.3, epsilon=0.1), model=model, batch_size=15)
    # Of ten rows those that old values within reach spare; four to be repeated.
    spared = int((model.history.X <= 32).sum())
    least = 1 if noise_std else 4
    assert strategy.parts.model.wanted == max(least, 10 - spared)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DataWarning)
        state = strategy.init()
        generator = torch.Generator().manual_seed(1)
        while not state.is_done:
            batch = strategy.ask(state)
            noise = torch.randn(len(batch), generator=generator, dtype=torch.float64)
            y = oven(OVEN.X[batch.order]) + 0.1 * noise
            state = strategy.tell(state, batch.observe(y))
    answer, truth = state.classification, oven(OVEN.X)
    assert not bool((answer.above & (truth < 0.2)).any())
    assert not bool((answer.below & (truth > 0.4)).any())
    if place == "beside":  # by less than the width of the pool's range
        assert (state.remarks, said) == ((), [])
        return
    (remark,), (warning,) = state.remarks, said
    assert warning.category is DataWarning
    assert str(warning.message) == remark.text
    assert remark.kind == "far"
    assert "(the pool: 20 to 30)" in remark.text
    assert ", and 8 more" in remark.text or place != "kelvin"
    assert "In another unit" in answer.guarantee


def test_far_old_values_on_the_other_side_are_none_on_both_sides() -> None:
    strategy = Strategy(OVEN, Above(-2.0), batch_size=14)
    known = strategy.with_history(History([[3000.0]], [-5.0]))
    with pytest.warns(DataWarning, match="T = 3000"):
        state = known.init()
    rows = torch.cat((torch.arange(0, 40, 4), torch.tensor([0, 12, 24, 36])))
    state = known.tell(state, Observations(rows, oven(OVEN.X)[rows]))
    assert bool(state.classification.undecided.all())
    assert "Every value so far lies above the level" in state.classification.guarantee
