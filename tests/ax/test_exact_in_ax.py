r"""Simulators without noise, through Ax: a standard error of 0."""

import pytest
import torch
from ax.api.client import Client
from ax.exceptions.generation_strategy import GenerationStrategyCompleted

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    level_set_generation_strategy,
    pool_parameters,
    run_experiment,
)
from botorch_lse.strategies import LSEStrategy
from tests.registry import GAUSSIAN, PLAYED_GP
from tests.strategies.test_exact import GP, F, X, make

from .worlds import client_for, grid_pool, state_of, truth


def run_to_the_end(client, value, most=40):
    rows = []
    for _ in range(most):
        try:
            trials = client.get_next_trials(3)
        except GenerationStrategyCompleted:
            return rows
        for trial, parameters in trials.items():
            row = int(parameters[POOL_INDEX])
            rows.append(row)
            client.complete_trial(trial, raw_data=value(row))
    raise AssertionError("no end")


@pytest.mark.some(1)
@pytest.mark.parametrize("case", PLAYED_GP)
def test_every_strategy_runs_to_its_end_without_a_repeat(case):
    client = client_for(make(case, beta=9.0, model=GP.kernel()))
    rows = run_to_the_end(client, lambda row: {"y": (float(F[row]), 0.0)})
    assert len(rows) == len(set(rows))
    assert "count as exact" in state_of(client).classification.guarantee


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("case", GAUSSIAN)
def test_several_exact_metrics_run_to_the_end(case):
    other = torch.tensor(GP.sample(X.numpy(), 4))
    strategy = case.make(
        Pool(X),
        maximize=(True, True),
        model=(GP.kernel(), GP.kernel()),
        noise_std=0.0,
        batch_size=3,
        beta=9.0,
    )
    client = Client()
    client.configure_experiment(parameters=pool_parameters(strategy.pool), name="test")
    client.configure_optimization(objective="a, b")
    metrics = ["a", "b"]
    client.set_generation_strategy(
        level_set_generation_strategy(strategy, metrics=metrics)
    )
    rows = run_to_the_end(
        client, lambda i: {"a": (float(F[i]), 0.0), "b": (float(other[i]), 0.0)}
    )
    assert len(rows) == len(set(rows))


@pytest.mark.slow
def test_a_learnt_model_is_told_exact_values_by_run_experiment():
    pool = grid_pool()
    values = truth(pool)
    strategy = LSEStrategy(pool, 0.9, batch_size=4, beta=9.0, max_observations=30)
    client = client_for(strategy)
    run_experiment(client, lambda p: (float(values[p[POOL_INDEX]]), 0.0))
    rows = [
        trial.arm.parameters[POOL_INDEX] for trial in client._experiment.trials.values()
    ]
    assert len(rows) == len(set(rows))
