r"""What is stated of noise, model and norm is held against what is told."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
from scipy.stats import chi2

from botorch_lse import History, Observations, Pool
from botorch_lse.confidence.regions import EmptyRegionWarning
from botorch_lse.strategies import Above, Below, GaussianProcess, LogNormal, Strategy
from botorch_lse.surrogate.assumptions import ALARM, by_repeats
from botorch_lse.surrogate.remarks import DataWarning
from tests.strategies.runs import assert_same

POOL = Pool(torch.linspace(0, 1, 41, dtype=torch.float64).unsqueeze(-1))
TRUTH = (7 * POOL.X[:, 0]).sin()
TWICE = torch.tensor([3, 9, 15, 21, 27, 33] * 2 + [0, 6, 18, 40])


def kernel(lengthscale=0.2):
    found = RBFKernel().double()
    found.lengthscale = lengthscale
    return found


def constant(train_X, train_Y, train_Yvar):
    r"""A fitted model that says that nothing varies."""
    if train_Yvar is not None:
        train_Yvar = train_Yvar.clamp_min(1e-6)  # as GPyTorch has it, with a warning
    model = SingleTaskGP(
        train_X, train_Y, train_Yvar, covar_module=kernel(1e9), outcome_transform=None
    )
    if train_Yvar is None:
        model.likelihood.noise = 0.01
    return model.eval()


def draws(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, generator=generator, dtype=torch.float64)


def told(model, rows, y, yvar=None, pool=POOL, warned=1, **options):
    strategy = Strategy(
        pool, Above(0.3, epsilon=0.1), model=model, batch_size=8, **options
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DataWarning)
        # A refuted norm is mostly noticed by this, too.
        warnings.simplefilter("ignore", EmptyRegionWarning)
        state = strategy.tell(strategy.init(), Observations(rows, y, yvar))
        assert [w.category for w in said] == [DataWarning] * warned
        assert_same(strategy, strategy.replay(state.observations), state)
    return state


def are_right(answer, truth=TRUTH):
    wrong = (answer.above & (truth < 0.2)) | (answer.below & (truth > 0.4))
    outside = (truth < answer.lower) | (truth > answer.upper)
    return int(wrong.sum()), int(outside.sum())


# --- noise ----------------------------------------------------------------------------


def stated(how, noise_std):
    r"""Model, variances that are told, and pool of one way to state the noise."""
    if how == "noise_std":
        return GaussianProcess(noise_std=noise_std), None, POOL
    if how == "kernel":
        return GaussianProcess(kernel(), noise_std=noise_std), None, POOL
    if how == "yvar":
        return GaussianProcess(), noise_std**2, POOL
    if how == "model":
        model = SingleTaskGP(
            POOL.X[:9], TRUTH[:9, None], covar_module=kernel(), outcome_transform=None
        )
        model.likelihood.noise = max(noise_std, 0.01) ** 2
        return GaussianProcess(model), None, POOL
    var = torch.full((len(POOL),), noise_std**2, dtype=torch.float64)
    return GaussianProcess(), None, Pool(POOL.X, noise_var=var)


@pytest.mark.some(4)
@pytest.mark.parametrize("noise_std", [0.0, 0.01])
@pytest.mark.parametrize("how", ["noise_std", "kernel", "yvar", "model", "noise_var"])
def test_repeats_that_differ_by_more_than_the_stated_noise(how, noise_std) -> None:
    model, yvar, pool = stated(how, noise_std)
    y = TRUTH[TWICE] + 0.1 * draws(16, seed=1)
    state = told(model, TWICE, y, yvar, pool)
    remark, answer = state.remarks[0], state.classification
    assert (remark.kind, remark.output) == ("stated noise", 0)
    assert set(remark.rows) <= {3, 9, 15, 21, 27, 33}
    assert len(remark.rows) >= 3
    assert remark.text in answer.guarantee
    # The noise that the repeats allow takes the place of the stated one.
    assert are_right(answer) == (0, 0)
    assert float(answer.sigma[TWICE].min()) > 0.02


@pytest.mark.parametrize("noise_std", [0.1, None])
def test_noise_as_it_is_stated_or_learnt_is_left_alone(noise_std) -> None:
    y = TRUTH[TWICE] + 0.1 * draws(16, seed=1)
    assert told(GaussianProcess(noise_std=noise_std), TWICE, y, warned=0).remarks == ()


def test_the_run_goes_on_and_is_right() -> None:
    y = TRUTH[TWICE] + 0.1 * draws(16, seed=2)
    state = told(GaussianProcess(kernel(), noise_std=0.0), TWICE, y)
    while not state.is_done:
        batch = state.strategy.ask(state)
        more = TRUTH[batch.order] + 0.1 * draws(len(batch), seed=9 + state.round)
        state = state.strategy.tell(state, batch.observe(more))
    assert state.stop_reason == "decided"
    assert are_right(state.classification) == (0, 0)
    # Once what was said is done there is no such remark.
    honest = GaussianProcess(kernel(), noise_std=0.1)
    data = state.observations
    again = told(honest, data.indices, data.y, warned=0)
    assert "stated noise" in {remark.kind for remark in state.remarks}
    # One of some two hundred sequences of constant noise seems to grow: this is one.
    assert {remark.kind for remark in again.remarks} <= {"growing noise"}


def test_of_many_rows_one_that_contradicts_itself_is_open_alone() -> None:
    rows = torch.arange(0, 40, 2).repeat(2)
    y = TRUTH[rows] + 0.05 * draws(40, seed=3)
    y[5] += 3.0
    state = told(GaussianProcess(kernel(), noise_std=0.05), rows, y)
    (remark,) = state.remarks
    assert remark.rows == (10,)
    assert "for these rows" in remark.text
    assert are_right(state.classification) == (0, 0)
    assert float(state.classification.sigma[20]) < 0.05


def test_each_output_has_a_noise_of_its_own() -> None:
    noise = 0.1 * draws(16, seed=1)
    y = torch.stack((TRUTH[TWICE] + noise, -TRUTH[TWICE] + noise), dim=-1)
    strategy = Strategy(
        POOL,
        Above(0.3) & Below(0.5, output=1),
        model=GaussianProcess(noise_std=[0.1, 0.01]),
    )
    state = strategy.init()
    with pytest.warns(DataWarning, match="differ by more than the noise"):
        state = strategy.tell(state, Observations(TWICE, y))
    assert [remark.output for remark in state.remarks] == [1]


def test_false_alarms_are_as_rare_as_stated() -> None:
    points = torch.arange(30).repeat(3)
    variance = 0.1 + torch.rand(90, generator=torch.Generator().manual_seed(0))
    found = [
        by_repeats(points, variance.sqrt() * draws(90, seed), variance.double())
        for seed in range(2000)
    ]
    # By 2000 draws at ALARM = 1e-4 more than 3 alarms have a probability of 6e-5.
    assert sum(one is not None for one in found) <= 3
    assert ALARM == 1e-4


def test_the_noise_that_is_used_is_the_upper_limit_by_chi_square() -> None:
    points, y = torch.tensor([0, 0, 1, 1, 1, 2]), draws(6, seed=0)
    found = by_repeats(points, y, torch.zeros(6, dtype=torch.float64))
    assert found is not None
    within = sum(
        float(y[points == p].var(correction=0)) * k for p, k in ((0, 2), (1, 3))
    )
    assert found.largest == pytest.approx(within / chi2.ppf(0.05, 3))
    assert found.places.tolist() == [True] * 5 + [False]
    same = torch.tensor([1.0, 1.0 + 1e-9, 2.0, 2.0, 2.0, 5.0], dtype=torch.float64)
    assert by_repeats(points, same, torch.zeros(6, dtype=torch.float64)) is None


# --- models ---------------------------------------------------------------------------


@pytest.mark.some(2)
@pytest.mark.parametrize("noise_std", [None, 0.1, 0.0])
def test_a_model_that_its_own_values_reject_decides_nothing(noise_std) -> None:
    rows = torch.arange(0, 40, 4)
    y = TRUTH[rows] + (noise_std if noise_std is not None else 0.1) * draws(10, 0)
    model = GaussianProcess(constant, noise_std=noise_std, n_initial=9)
    state = told(model, rows, y)
    (remark,), answer = state.remarks, state.classification
    assert remark.kind == "model"
    assert len(remark.rows) >= 5
    assert set(remark.rows) <= set(rows.tolist())
    assert bool(answer.undecided.all())
    assert "nothing is decided" in answer.guarantee
    assert "does not fit the values" in str(state.forecast())
    # New rows come first, and once all were measured it ends.
    while not state.is_done:
        batch = state.strategy.ask(state)
        values = TRUTH[batch.order] + 0.1 * draws(len(batch), state.round)
        state = state.strategy.tell(state, batch.observe(values))
    assert state.stop_reason == "rows exhausted"
    assert len(state.observations) <= 41 + 8
    assert bool(state.classification.undecided.all())
    # As the remark says: leave both out.
    learnt = told(GaussianProcess(n_initial=9), rows, y, warned=0)
    assert all(remark.kind == "noise" for remark in learnt.remarks)


def test_one_value_that_is_off_is_no_wrong_model() -> None:
    rows = torch.arange(0, 40, 2)
    y = TRUTH[rows] + 0.1 * draws(20, seed=0)
    y[7] += 2.0
    known = GaussianProcess(kernel(), noise_std=0.1)
    assert told(known, rows, y, warned=0).remarks == ()


def drawn(seed, noise_std):
    r"""Values as a given process has them, and the norm of its function."""
    K = kernel()(POOL.X).to_dense().detach() + 1e-9 * torch.eye(41).double()
    normal = draws(41 + 30, seed)
    f = torch.linalg.cholesky(K) @ normal[:41]
    rows = torch.from_numpy(np.random.default_rng(seed).integers(0, 41, 30))
    norm = float(normal[:41].norm())
    return rows, f[rows] + noise_std * normal[41:], f, norm


@pytest.mark.parametrize("noise_std", [0.0, 0.1])
@pytest.mark.parametrize("bounded", [False, True])
def test_well_stated_models_and_norms_are_left_alone(noise_std, bounded) -> None:
    for seed in range(20):  # with the other cases 80 runs; ALARM allows for 0.016
        rows, y, _, norm = drawn(seed, noise_std)
        options = {"norm_bound": norm} if bounded else {}
        model = GaussianProcess(kernel(), noise_std=noise_std, **options)
        strategy = Strategy(POOL, Above(0.3), model=model, batch_size=8)
        assert strategy.tell(strategy.init(), Observations(rows, y)).remarks == ()


def test_values_that_need_a_larger_norm_decide_nothing() -> None:
    rows, y, _, _ = drawn(0, 0.01)
    model = GaussianProcess(kernel(), noise_std=0.1, norm_bound=0.5)
    state = told(model, rows, 10 * y)
    (remark,) = state.remarks
    assert remark.kind == "norm"
    assert "`norm_bound` = 0.5" in remark.text
    assert bool(state.classification.undecided.all())
    enough = GaussianProcess(kernel(), noise_std=0.1, norm_bound=100.0)
    assert told(enough, rows, 10 * y, warned=0).remarks == ()


# --- noise that grows with the value --------------------------------------------------

MANY = Pool(torch.linspace(0, 1, 80, dtype=torch.float64).unsqueeze(-1))
WAVE = 1.2 + (7 * MANY.X[:, 0]).sin()
GROWING = 0.1 * WAVE
EVERY = torch.arange(80)[torch.randperm(80, generator=torch.Generator().manual_seed(0))]


def wave(sigma=GROWING, seed=1):
    r"""A value of each row, in random order."""
    return (WAVE + sigma * draws(80, seed))[EVERY]


def grown(y, model, goal=None, pool=MANY, rows=EVERY, yvar=None):
    r"""The remarks on noise that grows with the value."""
    strategy = Strategy(
        pool, Above(1.0) if goal is None else goal, model=model, batch_size=8
    )
    state = strategy.tell(strategy.init(), Observations(rows, y, yvar))
    found = [one for one in state.remarks if one.kind == "growing noise"]
    assert all(one.text in state.classification.guarantee for one in found)
    return found


STATED = GaussianProcess(kernel(), noise_std=0.12)


def among_others(model):
    r"""The output after one whose noise is the same everywhere."""
    both = torch.stack((wave(0.1, seed=3), wave()), dim=-1)
    return grown(both, model, Above(1.0) & Above(1.0, output=1))


def of_old_values():
    history = History(MANY.X[EVERY], wave())
    known = GaussianProcess(kernel(), noise_std=0.12, history=history)
    return grown(wave()[:8], known, rows=EVERY[:8])


def of_words():
    frame = pd.DataFrame({"x": MANY.X[:, 0], "word": ["u", "v"] * 40})
    return grown(wave(), GaussianProcess(), pool=Pool(frame))


@pytest.mark.parametrize(
    ("told_to", "output"),
    [
        (lambda: grown(wave(), GaussianProcess()), 0),
        (lambda: grown(wave(), STATED), 0),
        (lambda: grown(wave(), STATED, ~Above(1.0) | Above(1.5)), 0),
        (lambda: among_others(STATED), 1),
        pytest.param(
            lambda: among_others(GaussianProcess(correlated=True)),
            1,
            marks=pytest.mark.slow,
        ),
        (of_old_values, 0),
        (of_words, 0),
    ],
)
def test_noise_that_grows_with_the_value_is_said(told_to, output) -> None:
    (remark,) = told_to()
    assert remark.output == output
    small, large = (float(one) for one in re.findall(r"(0\.\d+) in the", remark.text))
    # The mean squares of the noise of the smaller and the larger half of the values.
    order = GROWING.sort().values.square()
    assert small == pytest.approx(float(order[:40].mean()) ** 0.5, rel=0.4)
    assert large == pytest.approx(float(order[40:].mean()) ** 0.5, rel=0.4)


def test_what_is_advised_about_growing_noise_ends_it() -> None:
    (remark,) = grown(wave(), STATED)
    assert "`outcome=LogNormal()`, or tell" in remark.text
    log = GaussianProcess(kernel(), noise_std=0.1, outcome=LogNormal())
    assert grown(wave(), log, Above(1.0)) == []
    variances = GROWING[EVERY].square()
    assert grown(wave(), STATED, yvar=variances) == []
    # Not of values, or levels, that have no logarithm.
    below = grown(wave() - 1.2, STATED, Above(0.1))
    above = grown(wave(), STATED, Above(-1.0))
    for (remark,) in (below, above):
        assert "LogNormal" not in remark.text
        assert "Tell each value with its noise variance" in remark.text


@pytest.mark.parametrize("noise_std", [0.0, 0.12])
def test_the_same_noise_everywhere_is_left_alone(noise_std) -> None:
    known = GaussianProcess(kernel(), noise_std=noise_std)
    for seed in range(20):
        assert grown(wave(noise_std, seed), known) == []


def test_growing_noise_is_mostly_found() -> None:
    assert sum(len(grown(wave(seed=seed), STATED)) for seed in range(20)) >= 17
