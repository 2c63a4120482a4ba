r"""Inputs that are words: the default model's kernel, and runs on tables with words."""

import math

import pandas as pd
import pytest
import torch
from botorch.models import MixedSingleTaskGP
from botorch.models.kernels import CategoricalKernel
from gpytorch.kernels import RBFKernel

from botorch_lse import History, Pool
from botorch_lse.models import GPPrior, fit_mixed_gp, fit_single_task_gp
from botorch_lse.models.fitted import mixed_kernel, unfitted_prior, word_codes
from botorch_lse.models.gaussian_process import diagonal
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    LSEStrategy,
    Strategy,
    TruVaRStrategy,
)

CRUSTS = ("plain", "rye", "salt", "sour")


def table(n: int, seed: int = 0) -> pd.DataFrame:
    generator = torch.Generator().manual_seed(seed)
    draw = torch.rand(n, 2, generator=generator, dtype=torch.float64).numpy()
    which = torch.randint(4, (n,), generator=generator).tolist()
    crust = [CRUSTS[i] for i in which]
    return pd.DataFrame({"hours": draw[:, 0], "crust": crust, "heat": draw[:, 1]})


def taste(frame: pd.DataFrame) -> torch.Tensor:
    shift = frame["crust"].map(dict(zip(CRUSTS, (0.0, 0.8, -0.9, 0.3), strict=True)))
    waves = frame.apply(lambda row: math.sin(5 * row["hours"]) * row["heat"], axis=1)
    return torch.tensor((waves + shift).to_numpy(dtype=float))


# --- which inputs are words -----------------------------------------------------------


def test_words_are_the_columns_of_a_tables_words():
    frame = table(30).assign(oven=["gas", "wood"] * 15)
    assert Pool(frame).words == {"crust": (1, 4), "oven": (6, 2)}
    assert Pool(table(30)[["hours", "heat"]]).words == {}


@pytest.mark.parametrize(
    ("X", "names"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], None),
        ([[1.0, 0.0], [0.0, 1.0]], ("a", "b")),
        ([[1.0, 1.0], [0.0, 1.0]], ("s=a", "s=b")),
        ([[0.5, 0.5], [0.0, 1.0]], ("s=a", "s=b")),
        ([[1.0, 0.0], [0.0, 1.0]], ("s=a", "t=b")),
        ([[1.0, 5.0, 0.0], [0.0, 6.0, 1.0]], ("s=a", "s", "s=b")),
        ([[1.0], [1.0]], ("s=a",)),
    ],
)
def test_other_columns_are_none(X, names):
    assert Pool(X, names=names).words == {}


# --- the model ------------------------------------------------------------------------


def test_codes_are_scaled_numbers_and_the_level():
    pool = Pool(table(40))
    codes = word_codes(pool.bounds, dict(pool.words.values())).eval()
    found = codes(pool.X)
    low, high = pool.bounds
    assert torch.allclose(found[:, 0], ((pool.X - low) / (high - low))[:, 0])
    assert torch.allclose(found[:, 2], ((pool.X - low) / (high - low))[:, -1])
    wanted = [CRUSTS.index(word) for word in pool.table["crust"]]
    assert found[:, 1].tolist() == wanted


def test_the_kernel_is_one_of_botorchs():
    r"""That of MixedSingleTaskGP, with its scales where ours are."""
    pool = Pool(table(12))
    codes = word_codes(pool.bounds, dict(pool.words.values())).eval()(pool.X)
    ours = mixed_kernel(pool.d, dict(pool.words.values()))
    theirs = MixedSingleTaskGP(codes, codes[:, :1], cat_dims=[1]).covar_module.double()
    one, both = theirs.kernels
    for kernel, lengthscale in (
        (one.base_kernel.kernels[0], 0.4),
        (both.base_kernel.kernels[0], 0.9),
    ):
        kernel.lengthscale = lengthscale
    one.outputscale, both.outputscale = 0.7, 1.3
    one.base_kernel.kernels[1].outputscale = 0.5
    one.base_kernel.kernels[1].base_kernel.lengthscale = 2.0
    both.base_kernel.kernels[1].lengthscale = 0.6
    numbers, words, product = ours.kernels
    numbers.outputscale, words.outputscale, product.outputscale = 0.7, 0.35, 1.3
    numbers.base_kernel.lengthscale, words.base_kernel.lengthscale = 0.4, 2.0
    product.base_kernel.kernels[0].lengthscale = 0.9
    product.base_kernel.kernels[1].lengthscale = 0.6
    expected = theirs(codes, codes).to_dense()
    assert torch.allclose(ours(codes, codes).to_dense(), expected, atol=1e-12)


class Careless(RBFKernel):
    r"""A kernel of one's own that makes all covariances for the diagonal."""

    def forward(self, x1, x2, diag=False, **params):
        asked.append(x1.shape[-2])
        whole = super().forward(x1, x2, **params)
        return whole.diagonal(dim1=-2, dim2=-1) if diag else whole


asked = []
r"""How many points `Careless` was asked about at once."""


def test_variances_of_many_rows_are_asked_of_a_kernel_in_blocks():
    X = torch.rand(1100, 5, generator=torch.Generator().manual_seed(0)).double()
    prior = GPPrior.from_kernel(Careless())
    asked.clear()
    F = prior.features(X)
    found = prior.variance(F)
    assert max(asked) == 512
    assert sum(asked) == len(X)
    one_by_one = torch.cat([prior.variance(F[i : i + 1]) for i in range(0, 1100, 99)])
    assert torch.equal(found[::99], one_by_one)


def test_single_covariances_of_words_take_no_table_of_all(monkeypatch):
    n, d, words = 1100, 5, {1: 4}
    X = torch.rand(n, d, generator=torch.Generator().manual_seed(0)).double()
    X[:, 1:] = torch.eye(4)[torch.arange(n) % 4].double()
    bounds = torch.tensor([[0.0] * d, [1.0] * d]).double()
    prior = unfitted_prior(bounds, words)
    F = prior.features(X)
    G = F.roll(1, 0)
    with torch.no_grad():
        expected = prior.covar_module(F, G).to_dense().diagonal()
    monkeypatch.setattr(CategoricalKernel, "forward", None)  # it would be a table
    found = diagonal(prior.covar_module, F, G)
    assert found.std() > 0
    assert torch.allclose(found, expected, rtol=1e-12, atol=0)


def test_words_alone_are_a_model():
    frame = pd.DataFrame({"a": list("xyzxyzxyz"), "b": list("uuuvvvwww")})
    pool = Pool(frame)
    y = torch.tensor([0.0, 1, 2, 1, 2, 3, 2, 3, 4]).double().unsqueeze(-1)
    words = dict(pool.words.values())
    assert words == {0: 3, 3: 3}
    noise = torch.full((8, 1), 1e-4, dtype=torch.float64)
    model = fit_mixed_gp(pool.X[:8], y[:8], noise, pool.bounds, words)
    posterior = GPPrior.from_model(model)
    assert posterior.features(pool.X).shape == (9, 2)
    with torch.no_grad():
        mean = model.posterior(pool.X).mean.squeeze(-1)
    assert float((mean[:8] - y[:8, 0]).abs().max()) < 0.1
    assert float(mean[8]) > float(y.mean())


def test_before_data_it_has_unit_variance_and_knows_levels():
    pool = Pool(table(40))
    prior = unfitted_prior(pool.bounds, dict(pool.words.values()))
    F = prior.features(pool.X)
    assert torch.allclose(prior.variance(F), torch.ones(40).double())
    other = F[:1].clone()
    other[:, 1] = (other[:, 1] + 1) % 4
    apart = F[:1].clone()
    apart[:, 0] += 1.0
    near, far = prior.covariance(F[:1], other), prior.covariance(F[:1], apart)
    assert 0.1 < float(near) < 0.9
    assert 0.1 < float(far) < 0.9


def test_shifts_by_words_are_learnt_from_fewer_rows_than_by_columns():
    frame = table(400, seed=5)
    pool, y = Pool(frame), taste(frame)
    rows, noise = torch.arange(24), torch.full((24, 1), 1e-4, dtype=torch.float64)
    given = (pool.X[rows], y[rows, None], noise, pool.bounds)
    models = (
        fit_mixed_gp(*given, dict(pool.words.values())),
        fit_single_task_gp(*given),
    )
    with torch.no_grad():
        means = [model.posterior(pool.X[24:]).mean[:, 0] for model in models]
    by_words, by_columns = [float((mean - y[24:]).square().mean()) for mean in means]
    assert by_words < 0.6 * by_columns


# --- runs -----------------------------------------------------------------------------


def run(strategy, values, seed=0):
    generator = torch.Generator().manual_seed(seed)
    state = strategy.init(seed=seed)
    while not state.is_done:
        batch = strategy.ask(state)
        noise = 0.05 * torch.randn(len(batch), generator=generator, dtype=torch.float64)
        state = strategy.tell(state, batch.observe(values[batch.order] + noise))
    return state


def check_answer(state, values):
    r"""The model is the mixed one, and what is clear is right."""
    kernels = state.belief.posterior.prior.covar_module.modules()
    numbers = [kernel for kernel in kernels if isinstance(kernel, RBFKernel)]
    assert len(numbers) == 2  # with words, and without
    answer = state.classification
    clear = (values - 0.5).abs() > 0.1
    assert not bool((answer.above & (values < 0.5) & clear).any())
    assert not bool((answer.below & (values > 0.5) & clear).any())
    assert int(answer.undecided.sum()) < len(values) / 2


@pytest.mark.slow
def test_a_table_with_words_is_decided():
    frame = table(90, seed=2)
    pool, values = Pool(frame), taste(frame)
    options = {"batch_size": 20, "max_observations": 80}
    state = run(Strategy(pool, Above(0.5), **options), values)
    check_answer(state, values)
    assert list(state.classification.to_frame()["crust"]) == list(frame["crust"])


@pytest.mark.slow
@pytest.mark.parametrize("cls", [LSEStrategy, TruVaRStrategy])
@pytest.mark.parametrize("seed", [0, 1])
def test_tables_with_words_are_decided_by_other_rules(cls, seed):
    frame = table(120, seed=2 + seed)
    pool, values = Pool(frame), taste(frame)
    strategy = cls(pool, 0.5, batch_size=10, max_observations=110)
    check_answer(run(strategy, values, seed), values)


@pytest.mark.slow
def test_points_off_the_pool_have_the_words_of_the_pool():
    pool = Pool(table(40))
    points = pool.X[:12].clone()
    points[:, 0] += 0.01
    y = taste(table(40))[:12]
    model = GaussianProcess(noise_std=0.1, history=History(points, y), n_initial=4)
    strategy = Strategy(pool, Above(0.5), model=model, max_observations=8)
    state = run(strategy, taste(table(40)))
    assert state.predict(points)[0].shape == (12,)
    unknown = points[:1].clone()
    unknown[:, 1:5] = 0.0
    with pytest.raises(ValueError, match=r"words that the pool has.*columns 1 to 4"):
        state.predict(unknown)
    model = GaussianProcess(noise_std=0.1, history=History(unknown, y[:1]))
    with pytest.raises(ValueError, match="words that the pool has"):
        Strategy(pool, Above(0.5), model=model).init()


def test_a_model_that_is_given_is_taken():
    pool = Pool(table(40))
    model = GaussianProcess(RBFKernel().double(), noise_std=0.1).on(pool)
    assert model.is_fixed
