r"""Matrices, fingerprints and kernels to be learnt, through storage and Ax."""

import json
from functools import partial

import pandas as pd
import pytest
import torch
from ax.api.client import Client
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
)
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.models import GramKernel, LearntKernel, TanimotoKernel
from botorch_lse.strategies import Above, GaussianProcess, LSEStrategy, Strategy

from .worlds import same_state, state_of

BITS = (torch.rand(30, 16, generator=torch.Generator().manual_seed(0)) < 0.3).double()
ACTIVITY = TanimotoKernel()(BITS, BITS[:1]).to_dense()[:, 0]
GRAM = TanimotoKernel()(BITS, BITS).to_dense()
ROWS = torch.arange(len(BITS)).unsqueeze(-1)


def kernel_with_prior():
    kernel = MaternKernel(2.5)
    kernel.register_prior("lengthscale_prior", LogNormalPrior(0.0, 1.0), "lengthscale")
    return kernel


CASES = {
    "matrix": (Pool(ROWS), GramKernel(GRAM)),
    "matrix, learnt": (Pool(ROWS), LearntKernel(ScaleKernel(GramKernel(GRAM)))),
    "fingerprints": (Pool(BITS), LearntKernel(ScaleKernel(TanimotoKernel()))),
    "a function": (Pool(BITS), LearntKernel(kernel_with_prior)),
}


def build(case):
    pool, model = CASES[case]
    model = GaussianProcess(model, noise_std=0.05, n_initial=6)
    return Strategy(pool, Above(0.35), model=model, batch_size=3)


def measure(parameters):
    return {"activity": (float(ACTIVITY[parameters[POOL_INDEX]]), 0.05)}


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("case", CASES)
def test_a_run_that_is_loaded_goes_on_exactly(case, tmp_path):
    strategy, path = build(case), tmp_path / "assay.json"
    client = Client()
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="test")
    client.configure_optimization(objective="activity")
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=3))
    run_experiment(client, measure, storage=path, max_trials=9)
    again = Client.load_from_json_file(str(path))
    for one in (client, again):
        run_experiment(one, measure, storage=tmp_path / f"{id(one)}.json", max_trials=9)
    assert same_state(state_of(client), state_of(again))
    guess = level_set(again)["mean"].to_numpy() > 0.35
    assert (guess != (ACTIVITY > 0.35).numpy()).mean() < 0.2


@pytest.mark.parametrize("case", ["matrix", "matrix, learnt", "fingerprints"])
def test_a_kernel_comes_back_to_the_last_bit(case):
    strategy = build(case)
    stored = json.loads(json.dumps(encode_strategy(strategy)))
    again = decode_strategy(stored, strategy.pool)
    kernels = [found.model.model for found in (strategy, again)]
    kernels = [getattr(kernel, "kernel", kernel).double() for kernel in kernels]
    parts = [kernel.state_dict() for kernel in kernels]
    assert parts[0].keys() == parts[1].keys()
    assert all(torch.equal(parts[0][name], parts[1][name]) for name in parts[0])


@pytest.mark.slow
def test_a_fit_is_the_same_after_loading():
    kernel = ScaleKernel(RBFKernel(ard_num_dims=16))
    strategy = LSEStrategy(Pool(BITS), 0.35, model=LearntKernel(kernel))
    again = decode_strategy(encode_strategy(strategy), strategy.pool)
    X, y = BITS[:12], ACTIVITY[:12].unsqueeze(-1)
    fits = [found.model(X, y, None).state_dict() for found in (strategy, again)]
    assert all(torch.equal(fits[0][name], fits[1][name]) for name in fits[0])


def test_what_a_fit_hangs_on_and_cannot_be_stored_is_refused():
    bounded = RBFKernel(lengthscale_constraint=Interval(0.1, 2.0))
    for kernel in (kernel_with_prior(), bounded):
        strategy = LSEStrategy(Pool(BITS), 0.35, model=LearntKernel(kernel))
        with pytest.raises(ValueError, match=r"no priors.*LearntKernel\(my_kernel\)"):
            encode_strategy(strategy)
    strange = LearntKernel(partial(RBFKernel, ard_num_dims=16))
    with pytest.raises(ValueError, match="another process could not import"):
        encode_strategy(LSEStrategy(Pool(BITS), 0.35, model=strange))


def test_a_matrix_that_is_too_large_to_be_stored_is_refused():
    N = 1_001
    kernel = GramKernel(torch.eye(N))
    pool = Pool(torch.arange(N).unsqueeze(-1))
    strategy = LSEStrategy(pool, 0.35, model=kernel, noise_std=0.1)
    with pytest.raises(ValueError, match=r"at most 1000 rows.*1001.*from a file"):
        encode_strategy(strategy)


@pytest.mark.slow
def test_a_table_with_words_is_learnt_from_and_resumed(tmp_path):
    r"""Through Ax's own parameters, and as by asking and telling."""
    frame = pd.DataFrame(
        {
            "heat": torch.linspace(0, 1, 12).double().repeat(2).tolist(),
            "crust": ["rye"] * 12 + ["salt"] * 12,
        }
    )
    y = (5 * torch.from_numpy(frame["heat"].to_numpy(copy=True))).sin()
    y += torch.tensor([0.0] * 12 + [1.0] * 12)
    pool, path = Pool(frame), tmp_path / "bread.json"
    model = GaussianProcess(noise_std=0.05, n_initial=8)
    strategy = Strategy(pool, Above(0.5), model=model, batch_size=4)
    client = Client()
    client.configure_experiment(parameters=pool_parameters(pool), name="test")
    client.configure_optimization(objective="taste")
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=3))

    def bake(parameters):
        return {"taste": (float(y[parameters[POOL_INDEX]]), 0.05)}

    run_experiment(client, bake, storage=path, max_trials=12)
    again = Client.load_from_json_file(str(path))
    state = strategy.init(3)
    for one in (client, again):
        run_experiment(one, bake, storage=tmp_path / f"{id(one)}.json", max_trials=4)
    assert same_state(state_of(client), state_of(again))
    while state.n_used < 16:
        batch = strategy.ask(state)
        noise = torch.full((len(batch),), 0.0025, dtype=torch.float64)
        state = strategy.tell(state, batch.observe(y[batch.order], noise))
    rows = [found.observations.indices for found in (state, state_of(again))]
    assert torch.equal(*rows)
    assert level_set(again)["crust"].tolist() == frame["crust"].tolist()
