r"""Models and noise in all the forms a strategy takes them."""

from __future__ import annotations

import math
import types
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP, SingleTaskVariationalGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import RBFKernel
from gpytorch.means import LinearMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_lse import History, Observations, Pool
from botorch_lse.confidence import EmptyRegionWarning, RKHSWidth, UnionBeta
from botorch_lse.models.fitted import fit_additive_gp
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.papers import LSELiteralBatchStrategy
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    ComposedStrategy,
    GaussianProcess,
    HRAGEStrategy,
    ImplicitLSEStrategy,
    LSEStrategy,
    MaxVarianceStrategy,
    MELKStrategy,
    MILKStrategy,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)
from botorch_lse.surrogate import outputs
from tests.covering import covering
from tests.reference.dense_gp import DenseGP
from tests.strategies.runs import (
    GP,
    NOISE_STD,
    assert_same,
    grid,
    make,
    measure,
    run,
    step,
)

N = 36
not_standardised = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)
X = grid()
NOISE_VAR = torch.linspace(0.02, 0.4, N, dtype=torch.float64)


def shifted(row: int, before: int) -> float:
    return 60.0 + 8.0 * measure(row, before)


def learning(**options) -> LSEStrategy:
    model = options.get("model")
    few = {}
    if model is None or isinstance(model, types.FunctionType):
        few = {"n_initial": 6, "level_z": None}  # to be compared with BoTorch's own fit
    settings = {"threshold": 63.0, "batch_size": 6, "epsilon": 1.0, **few, **options}
    return LSEStrategy(Pool(X), **settings)


# --- learned models -----------------------------------------------------------------


def test_of_one_function_the_default_model_is_botorchs_refitted_each_round() -> None:
    model = GaussianProcess(family="single", n_initial=6, level_z=None)
    strategy = Strategy(
        Pool(X), Above(63.0, 1.0), model=model, rule=Ambiguity(), batch_size=6, beta=4.0
    )
    assert isinstance(strategy, ComposedStrategy)
    state = run(strategy, 4, value=shifted)[-1]  # by then four rows came twice
    told = state.history
    # The default model, fitted by BoTorch here, posterior by BoTorch.
    torch.manual_seed(0)
    own = SingleTaskGP(
        X[told.indices],
        told.y.unsqueeze(-1),
        input_transform=Normalize(2, bounds=strategy.pool.bounds),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(own.likelihood, own))
    posterior = own.eval().posterior(X)
    mean, sigma = posterior.mean.view(-1), posterior.variance.view(-1).sqrt()
    assert torch.allclose(state.classification.mean, mean, rtol=0, atol=1e-4)
    assert torch.allclose(state.classification.sigma, sigma, rtol=0, atol=1e-4)
    assert state.belief.fits.fitted_rounds == 4


def test_after_a_fit_the_current_interval_alone_decides() -> None:
    state = run(learning(beta=4.0), 4, value=shifted)[-1]
    answer = state.classification
    half = 2.0 * answer.sigma
    assert torch.allclose(answer.lower, answer.mean - half, rtol=1e-12)
    assert torch.allclose(answer.upper, answer.mean + half, rtol=1e-12)
    assert torch.equal(answer.above, answer.lower + 1.0 > 63.0)
    # The posterior is that of the whole past under the new hyper-parameters.
    frozen = LSEStrategy(
        Pool(X), 63.0, model=state.belief.posterior.prior, batch_size=6, beta=4.0
    )
    again = frozen.replay(state.observations).classification
    assert torch.allclose(answer.mean, again.mean, rtol=1e-9)
    assert torch.allclose(answer.sigma, again.sigma, rtol=1e-7)


def rare(X: torch.Tensor) -> torch.Tensor:
    r"""A few rows stand out, far above what the first measurements show."""
    return 10 * torch.exp(-8 * (X - 0.8).square().sum(dim=-1))


def test_what_few_data_teach_decides_nothing_for_good() -> None:
    # The first six values are small, so that the prior fitted to them ends below the
    # level everywhere: by itself it would decide all rows, wrongly.
    X = Pool.from_box([[0.0, 0.0], [1.0, 1.0]], 64).X
    f = rare(X)
    strategy = MELKStrategy(
        Pool(X), 8.0, batch_size=6, noise_std=0.1, beta=4.0, max_observations=60
    )
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(f[batch.order]))
    found = state.classification.best_guess
    assert int((f > 8.0).sum()) == 8
    assert int((found != (f > 8.0)).sum()) <= 1


@pytest.mark.some(2)
@covering("noise, refit", ["learned", "noise_std", "pool", "yvar"], [1, 2])
def test_learning_strategies_replay_exactly(noise: str, refit: int) -> None:
    pool = Pool(X, noise_var=64 * NOISE_VAR if noise == "pool" else None)
    strategy = LSEStrategy(
        pool,
        63.0,
        batch_size=6,
        refit=refit,
        noise_std=8 * NOISE_STD if noise == "noise_std" else None,
        max_observations=18,
    )
    state = strategy.init(seed=5)
    while not state.is_done:
        batch = strategy.ask(state)
        n = len(state.history)
        y = [shifted(row, n + i) for i, row in enumerate(batch.order.tolist())]
        yvar = 64 * NOISE_VAR[batch.order] if noise == "yvar" else None
        state = strategy.tell(state, batch.observe(y, yvar))
    assert state.stop_reason in ("decided", "budget")
    assert_same(strategy, strategy.replay(state.observations, seed=5), state)
    known = state.history.yvar
    if noise == "learned":
        assert known is None
    elif noise == "noise_std":
        assert torch.allclose(known, torch.full((18,), 64 * NOISE_STD**2).double())
    else:
        assert torch.allclose(known, 64 * NOISE_VAR[state.history.indices])


@pytest.mark.slow
def test_refit_schedules_say_when() -> None:
    every_second = run(learning(refit=2), 5, value=shifted)
    assert [s.belief.fits.fitted_rounds for s in every_second[1:]] == [1, 1, 3, 3, 5]
    grown = run(learning(refit=1.5), 6, value=shifted)
    assert [s.belief.fits.fitted_rounds for s in grown[1:]] == [1, 2, 3, 3, 5, 5]
    early = run(learning(refit=lambda n: n <= 2), 4, value=shifted)
    assert [s.belief.fits.fitted_rounds for s in early[1:]] == [1, 2, 2, 2]


@pytest.mark.slow
def test_of_many_values_the_default_fits_as_they_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outputs, "REFITTED_EACH_ROUND", 10)
    monkeypatch.setattr(outputs, "GROWTH", 1.3)
    strategy = learning(batch_size=2)
    states = run(strategy, 13, value=shifted)
    fitted = [state.belief.fits.fitted_values for state in states[3:]]
    assert fitted == [6, 8, 10, 10, 14, 14, 14, 20, 20, 20, 26]
    assert_same(strategy, strategy.replay(states[-1].observations), states[-1])
    old = History(X[:8], torch.linspace(50.0, 70.0, 8), torch.full((8,), 1.0))
    states = run(learning(batch_size=2, history=old, noise_std=1.0), 4, value=shifted)
    fitted = [state.belief.fits.fitted_values for state in states[1:]]
    assert fitted == [0, 0, 6, 6]  # of 14 values, and not of 16


def test_first_rows_spread_before_any_fit() -> None:
    strategy = learning(batch_size=2)
    states = run(strategy, 3, value=shifted)
    for state in states[:3]:
        assert state.belief.fits.fitted_rounds == -1
        assert state.classification.undecided.all()
        assert not torch.isnan(state.classification.probability_above).any()
    assert states[3].belief.fits.fitted_rounds == 3
    first = states[3].history.indices
    assert len(set(first.tolist())) == 6
    distances = torch.pdist(X[first])
    assert float(distances.min()) > 0.3


@pytest.mark.parametrize("n_initial", [0, 1])
def test_one_observation_is_enough_to_fit(n_initial: int) -> None:
    strategy = learning(batch_size=1, n_initial=n_initial)
    state = run(strategy, 2, value=shifted)[-1]
    assert state.belief.fits.fitted_rounds == 2
    assert torch.isfinite(state.classification.lower).all()


@not_standardised
@pytest.mark.parametrize("cls", [LSEStrategy, MELKStrategy, TruVaRStrategy])
def test_equal_values_decide_nothing_before_all_rows_are_known(cls: type) -> None:
    strategy = cls(Pool(X), 63.0, batch_size=6, noise_std=1.0)
    state = strategy.init()
    while not state.is_done and state.round < 20:
        n_rows = state.history.indices.unique().numel()
        assert bool(state.classification.undecided.all()) == (n_rows < N)
        state = step(strategy, state, lambda row, before: 7.0)
    assert state.stop_reason == "decided"
    assert bool(state.classification.below.all())


def test_replicates_of_one_row_are_no_start() -> None:
    strategy = learning()
    told = Observations([3] * 10, torch.linspace(-1.1, -0.9, 10))
    state = strategy.tell(strategy.init(), told)
    assert bool(state.classification.undecided.all())
    assert 3 not in strategy.ask(state).order.tolist()


@pytest.mark.parametrize("limits", [{"max_observations": 5}, {"max_repeats": 1}])
def test_a_run_too_short_for_its_start_learns_at_the_end(limits: dict) -> None:
    pool = Pool(X[:5]) if "max_repeats" in limits else Pool(X)
    strategy = LSEStrategy(pool, 63.0, batch_size=1, n_initial=20, **limits)
    state = run(strategy, 5, value=shifted)[-1]
    assert state.is_done
    assert torch.isfinite(state.classification.sigma).all()


@pytest.mark.some(1)
@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e9])
def test_units_of_y_change_nothing(unit: float) -> None:
    plain, scaled = learning(noise_std=2.0), learning(noise_std=2.0)
    scaled = replace(scaled, threshold=63.0 * unit, noise_std=2.0 * unit, epsilon=unit)
    a = run(plain, 3, value=shifted)[-1]
    b = run(scaled, 3, value=lambda row, before: unit * shifted(row, before))[-1]
    assert a.history.indices.tolist() == b.history.indices.tolist()
    means = b.classification.mean / unit
    assert torch.allclose(a.classification.mean, means, rtol=1e-4)
    assert a.classification.side.tolist() == b.classification.side.tolist()


def test_global_random_state_is_left_alone() -> None:
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    run(learning(), 2, value=shifted)
    assert torch.equal(torch.rand(1), expected)


def test_random_fits_are_a_function_of_seed_and_round() -> None:
    drawn: list[float] = []

    def model(train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None):
        made = SingleTaskGP(train_X, train_Y)
        drawn.append(float(torch.rand(())))
        made.covar_module.lengthscale = torch.full((1, 2), 0.2 + drawn[-1]).double()
        return made

    strategy = learning(model=model, beta=25.0, epsilon=0.0)
    torch.manual_seed(1)
    state = run(strategy, 3, value=shifted)[-1]
    torch.manual_seed(2)
    assert_same(strategy, strategy.replay(state.observations), state)
    assert drawn[:3] == drawn[3:]
    assert len(set(drawn[:3])) == 3
    strategy.replay(state.observations, seed=1)
    assert not set(drawn[6:]) & set(drawn[:3])


def test_callable_gets_the_training_tensors() -> None:
    calls: list[tuple[Tensor, Tensor, Tensor | None]] = []

    def model(train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None):
        calls.append((train_X, train_Y, train_Yvar))
        return fit_additive_gp(train_X, train_Y, train_Yvar, Pool(X).bounds)

    own = run(learning(model=model, noise_std=2.4), 2, value=shifted)
    train_X, train_Y, train_Yvar = calls[-1]
    told = own[-1].history
    assert torch.equal(train_X, X[told.indices])
    assert torch.equal(train_Y, told.y.unsqueeze(-1))
    assert torch.allclose(train_Yvar, torch.full((12, 1), 2.4**2).double())
    default = run(learning(noise_std=2.4), 2, value=shifted)
    assert torch.equal(own[-1].classification.mean, default[-1].classification.mean)
    run(learning(model=model), 1, value=shifted)
    assert calls[-1][2] is None


# --- fixed models -------------------------------------------------------------------


def fixed_model(known_noise: bool = False) -> SingleTaskGP:
    g = torch.Generator().manual_seed(1)
    train_X = torch.rand(8, 2, generator=g, dtype=torch.float64)
    train_Y = 60 + 8 * torch.randn(8, 1, generator=g, dtype=torch.float64)
    yvar = torch.full_like(train_Y, 3.0) if known_noise else None
    return SingleTaskGP(train_X, train_Y, yvar, covar_module=GP.kernel()).eval()


def test_fixed_model_gives_kernel_mean_noise_and_transforms_but_no_data() -> None:
    model = fixed_model()
    strategy = learning(model=model, beta=4.0)
    outcome = model.outcome_transform
    scale, shift = outcome.stdvs.item(), outcome.means.item()
    start = strategy.init().classification
    constant = model.mean_module.constant.item()
    mean = torch.full((N,), shift + scale * constant, dtype=torch.float64)
    assert torch.allclose(start.mean, mean)
    sigma = torch.full((N,), scale * GP.outputscale**0.5).double()
    assert torch.allclose(start.sigma, sigma)
    state = run(strategy, 2, value=shifted)[-1]
    told = state.history
    noise = np.full(12, scale**2 * model.likelihood.noise.item())
    x = X.numpy()
    gp = DenseGP(GP.lengthscale, GP.outputscale * scale**2, mean[0].item())
    dense, covariance = gp.posterior(x, x[told.indices], told.y.numpy(), noise)
    assert np.allclose(state.classification.mean, dense, rtol=0, atol=1e-7)
    variance = state.classification.sigma.square()
    assert np.allclose(variance, covariance.diagonal(), rtol=0, atol=1e-7)


@pytest.mark.parametrize("form", ["noise_std", "pool", "yvar"])
def test_known_noise_enters_the_posterior(form: str) -> None:
    given = {"noise_std": NOISE_STD} if form == "noise_std" else {"noise_std": None}
    pool = Pool(X, noise_var=NOISE_VAR if form == "pool" else None)
    given = {"noise_std": 9.0} if form == "yvar" else given
    strategy = make(LSEStrategy, pool=pool, batch_size=4, **given)
    batch = strategy.ask(strategy.init())
    own = torch.tensor([0.5, 0.1, 0.2, 0.9]).double()
    y = [0.3, -1.0, 2.0, 0.1]
    state = strategy.tell(
        strategy.init(), batch.observe(y, own if form == "yvar" else None)
    )
    noise = {
        "noise_std": np.full(4, NOISE_STD**2),
        "pool": NOISE_VAR[batch.order].numpy(),
        "yvar": own.numpy(),
    }[form]
    x = X.numpy()
    mean, covariance = GP.posterior(x, x[batch.order], np.array(y), noise)
    assert np.allclose(state.classification.mean, mean, atol=1e-9)
    variance = state.classification.sigma.square()
    assert np.allclose(variance, covariance.diagonal(), atol=1e-9)


def test_means_count_as_their_replicates() -> None:
    strategy = make(StraddleStrategy, batch_size=4)
    state = strategy.init()
    rows = Observations([3, 3, 3, 8], [1.8, 2.0, 2.2, 0.5])
    one_by_one = strategy.tell(state, rows).classification
    v = NOISE_STD**2
    mean = Observations([3, 8], [2.0, 0.5], yvar=[v / 3, v])
    together = strategy.tell(state, mean).classification
    assert torch.allclose(one_by_one.mean, together.mean, atol=1e-9)
    assert torch.allclose(one_by_one.sigma, together.sigma, atol=1e-9)


@pytest.mark.parametrize(("noise_var", "second"), [(1e-4, 0), (100.0, 1)])
def test_noisy_rows_are_planned_as_noisy(noise_var: float, second: int) -> None:
    # Two unrelated rows; the second is nearer to the level. One loud measurement of it
    # leaves it the best, one quiet measurement does not.
    mean = LinearMean(1).double()
    mean.weights.data.fill_(0.3)
    mean.bias.data.fill_(0.0)
    strategy = make(
        StraddleStrategy,
        pool=Pool(torch.tensor([[1.0], [0.0]]), noise_var=[1e-4, noise_var]),
        threshold=0.0,
        model=GPPrior.from_kernel(DenseGP((0.05,), 2.0).kernel(), mean),
        noise_std=None,
        batch_size=2,
    )
    assert strategy.ask(strategy.init()).order.tolist() == sorted([1, second])


# --- widths and guarantees ----------------------------------------------------------


def test_theorem_widths_claim_a_confidence_and_numbers_do_not() -> None:
    claimed = make(LSEStrategy, beta=None, delta=0.1, epsilon=0.0)
    text = claimed.init().classification.guarantee
    assert "With probability 0.9 all decided rows are right;" in text
    assert "Theorem 1" in text
    assert "up to epsilon = 0.1" in make(LSEStrategy, beta=None).guarantee
    assert "does not cover fitting" in learning().guarantee
    given = make(LSEStrategy, beta=9.0, delta=0.1).init().classification.guarantee
    assert "No confidence is claimed" in given
    assert "delta is ignored" in given
    assert "No confidence" in make(StraddleStrategy, beta=None).guarantee


def test_a_schedule_of_ones_own_claims_nothing() -> None:
    own = make(LSEStrategy, beta=UnionBeta(N, 0.05))
    theorem = make(LSEStrategy, beta=None)
    assert torch.equal(
        own.init().classification.lower, theorem.init().classification.lower
    )
    assert "No confidence is claimed" in own.guarantee


def test_values_that_contradict_the_model_are_reported() -> None:
    strategy = make(LSEStrategy, beta=None, noise_std=0.01)
    state = strategy.init()
    # No repeat differs by more than the noise; the means of many do.
    state = strategy.tell(state, Observations([3] * 30, [0.01] * 30))
    with pytest.warns(EmptyRegionWarning, match="first of row.*noise is larger"):
        strategy.tell(state, Observations([3] * 200, [-0.01] * 200))


# --- what is refused ----------------------------------------------------------------


def ensemble(train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None):
    taus = torch.tensor([0.1, 0.3]).double()
    model = EnsembleMapSaasSingleTaskGP(train_X, train_Y, taus=taus, num_taus=2)
    return model.eval()


def silent(train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None):
    return SingleTaskGP(train_X, train_Y, torch.full_like(train_Y, 0.1)).eval()


@not_standardised
@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (
            ensemble,
            UnsupportedError,
            r"`model` to be one GP per output, .*ensemble of \(2,\)",
        ),
        (
            silent,
            ValueError,
            "`noise_std`, `pool.noise_var` or `yvar`, because the fit",
        ),
        (
            lambda X, Y, V: SingleTaskVariationalGP(X, Y),
            UnsupportedError,
            "`model` to be an exact GP",
        ),
    ],
)
def test_models_that_a_callable_must_not_return(
    model, error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        run(learning(model=model), 1, value=shifted)


def test_first_rows_do_not_depend_on_the_units_of_the_noise() -> None:
    plans = []
    for noise_std in (1e-3, 1e3):
        strategy = LSEStrategy(Pool(X), 0.4, noise_std=noise_std, batch_size=6)
        plans.append(strategy.ask(strategy.init()).order.tolist())
    assert plans[0] == plans[1]
    assert len(set(plans[0])) == 6


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"threshold": torch.ones(2)},
            ValueError,
            "`threshold` to be a number or one per row",
        ),
        ({"threshold": float("nan")}, ValueError, "`threshold` to be finite, but got"),
        ({"threshold": None}, ValueError, "exactly `threshold` .* but got neither"),
        ({"omega": 0.5}, ValueError, "exactly `threshold` .*threshold and omega"),
        ({"delta": 0.0}, ValueError, r"`delta` in \(0, 1\), but got 0"),
        ({"delta": 5}, ValueError, r"`delta` in \(0, 1\), but got 5"),
        ({"beta": -1.0}, ValueError, r"`beta` in \[0, inf\), but got -1"),
        ({"epsilon": -0.1}, ValueError, r"`epsilon` in \[0, inf\), but got -0.1"),
        ({"batch_size": 0}, ValueError, "`batch_size` to be at least 1, but got 0"),
        ({"batch_size": 2.5}, ValueError, "`batch_size` to be a whole number"),
        (
            {"batch_size": 37, "max_repeats": 1},
            ValueError,
            "`batch_size` of at most 36, the pool's 36 rows times `max_repeats`",
        ),
        ({"max_observations": 0}, ValueError, "`max_observations` to be at least 1"),
        ({"max_repeats": 0}, ValueError, "`max_repeats` to be at least 1"),
        ({"n_initial": -1}, ValueError, "`n_initial` to be at least 0"),
        ({"refit": 0}, ValueError, "`refit` to be at least 1"),
        ({"refit": 1.0}, ValueError, r"`refit` in \(1, inf\).* as many, 1.1"),
        ({"refit": math.nan}, ValueError, "`refit`"),
        ({"noise_std": -1.0}, ValueError, "`noise_std` .*-1. Leave it out to learn"),
        ({"noise_std": None}, ValueError, "`noise_std` .or `pool.noise_var`., because"),
        (
            {"pool": Pool(X, noise_var=NOISE_VAR)},
            ValueError,
            "noise once, but got both `noise_std` and `pool.noise_var`",
        ),
        ({"pool": X}, ValueError, r"`pool` to be a Pool, but got Tensor. Write `Pool"),
        ({"model": "matern"}, UnsupportedError, "`model` to be None, a callable.*str"),
        (
            {"model": fixed_model(known_noise=True), "noise_std": None},
            ValueError,
            "fixed `model` does not know the noise of a new observation",
        ),
        (
            {"model": ensemble(X[:9], X[:9, :1], None)},
            UnsupportedError,
            r"one GP per output, but got an ensemble of \(2,\)",
        ),
    ],
)
def test_bad_arguments_are_refused(options: dict, error: type, message: str) -> None:
    arguments = {
        "pool": Pool(X),
        "threshold": 0.4,
        "model": GP.kernel(),
        "noise_std": NOISE_STD,
        **options,
    }
    with pytest.raises(error, match=message):
        LSEStrategy(**arguments)


@pytest.mark.parametrize("kind", ["kernel", "model"])
def test_a_model_of_other_columns_is_refused(kind: str) -> None:
    kernel = RBFKernel(ard_num_dims=3).double()
    inputs = torch.rand(5, 3, dtype=torch.float64)
    fitted = SingleTaskGP(inputs, inputs.sum(-1, True), covar_module=kernel)
    model = {"kernel": kernel, "model": fitted.eval()}[kind]
    strategy = LSEStrategy(Pool(X), 0.4, model=model, noise_std=NOISE_STD)
    with pytest.raises(BotorchTensorDimensionError, match="`model` to be for the 2"):
        strategy.init()


@pytest.mark.parametrize("omega", [1.2, 1.0, 0.0, -0.5])
def test_ratio_outside_its_interval_is_taken_for_a_level(omega: float) -> None:
    with pytest.raises(ValueError, match=r"`omega` in \(0, 1\).*give `threshold`"):
        make(ImplicitLSEStrategy, omega=omega)
    with pytest.raises(ValueError, match=r"exactly `omega` .*but got threshold"):
        ImplicitLSEStrategy(Pool(X), 0.4, model=GP.kernel(), noise_std=0.1)


# --- a bound of the norm in place of a prior ------------------------------------------


def test_norm_bound_gives_the_intervals_of_its_theorem() -> None:
    rows, y = [3, 3, 7, 20, 11], torch.tensor([0.1, 0.3, -0.4, 0.9, 0.2]).double()
    strategy = MaxVarianceStrategy(
        Pool(X),
        0.4,
        model=GP.kernel(),
        noise_std=NOISE_STD,
        norm_bound=1.5,
        delta=0.1,
        batch_size=5,
    )
    state = strategy.tell(strategy.init(), Observations(rows, y))
    K = torch.tensor(GP.covariance(X.numpy(), X.numpy()))
    width = RKHSWidth(1.5, NOISE_STD, NOISE_STD**2, 0.1)
    at = torch.tensor(rows)
    mean, half = width.interval(K[at][:, at], K[at], K.diagonal(), y)
    start = 1.5 + (2 * math.log(10)) ** 0.5
    prior = start * K.diagonal().sqrt()
    found = state.classification
    assert torch.allclose(found.mean, mean, atol=1e-9)
    assert torch.allclose(found.lower, torch.maximum(-prior, mean - half), atol=1e-9)
    assert torch.allclose(found.upper, torch.minimum(prior, mean + half), atol=1e-9)
    assert "norm at most 1.5" in found.guarantee


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("cls", "goal"),
    [
        (LSEStrategy, {"threshold": 0.4}),
        (MELKStrategy, {"threshold": 0.4}),
        (MILKStrategy, {"omega": 0.5}),
        (HRAGEStrategy, {}),
        (TruVaRStrategy, {}),
    ],
)
def test_norm_bound_replaces_the_widths_of_the_process(cls: type, goal: dict) -> None:
    half = []
    for bound in (None, 4.0, 9.0):
        strategy = cls(
            Pool(X[::2]),
            **goal,
            model=GP.kernel(),
            noise_std=NOISE_STD,
            norm_bound=bound,
            batch_size=12,
        )
        state = step(strategy, strategy.init())
        half.append(float(state.classification.upper[0] - state.classification.mean[0]))
        assert ("norm at most" in state.classification.guarantee) == (bound is not None)
        forecast = state.forecast()
        assert (forecast.observations is None) != (forecast.more_than is None)
    assert half[1] < half[2]
    assert half[0] not in half[1:]


@pytest.mark.parametrize(
    ("cls", "options", "message"),
    [
        (LSEStrategy, {"norm_bound": 0.0}, "`norm_bound`"),
        (LSEStrategy, {"norm_bound": float("nan")}, "`norm_bound`"),
        (LSEStrategy, {"beta": 4.0}, "theorem's widths, but got other widths"),
        (LSEStrategy, {"model": None}, "but got no fixed `model`"),
        (StraddleStrategy, {}, "but got other widths"),
        (LSELiteralBatchStrategy, {}, "no `norm_bound` for batches to the letter"),
        (
            HRAGEStrategy,
            {"variance_bounds": (0.1, 1.0), "noise_std": None},
            "but got other widths",
        ),
    ],
)
def test_norm_bound_is_refused_where_it_promises_nothing(
    cls: type, options: dict, message: str
) -> None:
    known = {"model": GP.kernel(), "noise_std": NOISE_STD, "norm_bound": 1.0}
    with pytest.raises(ValueError, match=message):
        cls(Pool(X), 0.4, **{**known, **options})
