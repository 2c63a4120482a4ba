r"""Small experiments that the tests share."""

import logging

import pytest
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    LevelSetNode,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.strategies import LSEStrategy

logging.getLogger("ax").setLevel(logging.ERROR)

NOISE = 0.1
UNSYNCED = "PRAGMA synchronous=OFF"


def grid_pool(side=6):
    x = torch.linspace(0, 1, side, dtype=torch.float64)
    return Pool(torch.cartesian_prod(x, x), names=["east", "north"])


def truth(pool):
    return torch.sin(6 * pool.X[:, 0]) + pool.X[:, 1]


def kernel():
    k = ScaleKernel(RBFKernel(ard_num_dims=2)).double()
    k.outputscale = 1.3
    k.base_kernel.lengthscale = torch.tensor([[0.3, 0.5]])
    return k


def lse(pool=None, **options):
    pool = grid_pool() if pool is None else pool
    settings = {
        "threshold": 0.5,
        "model": kernel(),
        "batch_size": 3,
        "noise_std": NOISE,
        "beta": 4.0,
        "epsilon": 0.05,
    }
    return LSEStrategy(pool, **{**settings, **options})


def measure(pool, row, repeat=0):
    r"""A noisy value: a function of the row and of the repeat, like a real bench."""
    generator = torch.Generator().manual_seed(1000 * int(row) + repeat)
    noise = NOISE * torch.randn(1, generator=generator, dtype=torch.float64)
    return float(truth(pool)[int(row)] + noise)


def client_for(strategy, objective="y", seed=3, **client_options):
    client = Client(**client_options)
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="test")
    client.configure_optimization(objective=objective)
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=seed))
    return client


def sqlite_storage(path):
    r"""A new database, or the one that is there, as the one this process uses."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("tabulate", minversion="0.9")
    from ax.api.configs import StorageConfig
    from ax.storage.sqa_store.db import (
        create_all_tables,
        get_engine,
        init_engine_and_session_factory,
    )
    from sqlalchemy import event

    url = f"sqlite:///{path}"
    init_engine_and_session_factory(url=url, force_init=True)
    # What a killed process wrote is there; only a power failure needs the wait.
    event.listen(get_engine(), "connect", lambda c, _: c.execute(UNSYNCED).close())
    create_all_tables(get_engine())
    return StorageConfig(url=url)


def node_of(client):
    (node,) = client._generation_strategy.nodes_by_name.values()
    assert isinstance(node, LevelSetNode)
    return node


def state_of(client):
    return node_of(client).state(client._experiment)


def complete(client, strategy, trial, parameters, repeat=0):
    value = measure(strategy.pool, parameters[POOL_INDEX], repeat)
    client.complete_trial(trial, {"y": (value, NOISE)})


def rows_of(trials):
    r"""The rows of what a client gave out, in their order in the pool."""
    return sorted(p[POOL_INDEX] for p in trials.values())


def fresh_state(client):
    r"""The state computed by a node that remembers nothing."""
    node = node_of(client)
    new = LevelSetNode(
        node.strategy,
        node.metrics,
        seed=node.seed,
        name=node.name,
        max_failures=node.max_failures,
        asynchronous=node.asynchronous,
    )
    return new.state(client._experiment)


def same_state(one, other):
    assert one.round == other.round
    assert one.stop_reason == other.stop_reason
    assert one.seed == other.seed
    assert one.abandoned == other.abandoned
    assert one.excluded == other.excluded
    assert torch.equal(one.observations.indices, other.observations.indices)
    assert torch.equal(one.observations.y, other.observations.y)
    assert torch.equal(one.observations.round, other.observations.round)
    for name in ("above", "below", "lower", "upper", "mean", "sigma"):
        ours = getattr(one.classification, name)
        assert torch.equal(ours, getattr(other.classification, name)), name
    return True


def go_on(client, strategy, out):
    r"""Finish what is out, then run to the stop; what was asked, and the reason."""
    for trial, row in out.items():
        complete(client, strategy, trial, {POOL_INDEX: row})
    asked = []
    while True:
        try:
            trials = client.get_next_trials(100)
        except GenerationStrategyCompleted as stop:
            return asked, str(stop)
        asked.append({i: p[POOL_INDEX] for i, p in trials.items()})
        for trial, parameters in trials.items():
            complete(client, strategy, trial, parameters)
