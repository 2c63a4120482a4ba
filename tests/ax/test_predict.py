import math
import re

import pytest
import torch
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import UnsupportedError
from botorch.exceptions.errors import UnsupportedError as NoModelYet

from botorch_lse.ax import (
    POOL_INDEX,
    level_set,
)
from botorch_lse.ax.compat import as_stored
from botorch_lse.strategies import Above, Strategy

from .test_pool_space import recipe_client, recipe_pool, recipe_strategy
from .worlds import NOISE, client_for, complete, grid_pool, kernel, lse, measure


def two_rounds(strategy):
    client, found = client_for(strategy), []
    for _ in range(2):
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
            found.append(parameters[POOL_INDEX])
    return client, found


def dense_posterior(pool, rows, y, noise_var):
    r"""The textbook formula, nothing of ours."""
    with torch.no_grad():
        K = kernel()(pool.X, pool.X).to_dense()
    train = K[rows][:, rows] + noise_var * torch.eye(len(rows), dtype=K.dtype)
    weights = torch.linalg.solve(train, K[rows])
    mean = weights.T @ y
    variance = K.diagonal() - (K[rows] * weights).sum(dim=0)
    return mean, variance.sqrt()


def test_predictions_are_the_posterior_in_the_metrics_units():
    strategy = lse()
    client, rows = two_rounds(strategy)
    y = torch.tensor(as_stored([measure(strategy.pool, row) for row in rows]))
    mean, sigma = dense_posterior(strategy.pool, rows, y, NOISE**2)
    told = client.predict([{POOL_INDEX: row} for row in (0, 17, 35, rows[0])])
    for row, prediction in zip((0, 17, 35, rows[0]), told, strict=True):
        found, sem = prediction["y"]
        assert found == pytest.approx(float(mean[row]), rel=1e-8, abs=1e-10)
        assert sem == pytest.approx(float(sigma[row]), rel=1e-6)


def test_predictions_do_not_depend_on_the_objectives_sign():
    strategy = lse()
    told = []
    for objective in ("y", "-y"):
        client = client_for(strategy, objective)
        for trial, parameters in client.get_next_trials(100).items():
            complete(client, strategy, trial, parameters)
        told.append(client.predict([{POOL_INDEX: 3}]))
    assert told[0] == told[1]


def test_predictions_before_any_data_are_the_prior():
    ((mean, sem),) = client_for(lse()).predict([{POOL_INDEX: 4}])[0].values()
    assert mean == pytest.approx(0.0)
    assert sem == pytest.approx(math.sqrt(1.3))


def test_predictions_before_any_data_of_a_learnt_model_are_in_standard_units():
    assays = grid_pool(3).at_outputs(2, (1.0, 1.0))
    region = Above(0.0) & Above(0.0, output=1)
    client = client_for(Strategy(assays, region))
    assert client.predict([{POOL_INDEX: 4}])[0] == {"y": (0.0, 1.0)}


@pytest.mark.slow
def test_predictions_by_the_values_of_a_row():
    client = recipe_client(recipe_strategy(recipe_pool()))
    for trial in client.get_next_trials(100):
        client.complete_trial(trial, {"y": (0.7 + 0.01 * trial, 0.1)})
    point = {"heat": 40.0, "steps": 1, "salt": "KBr", "stirred": True}
    answer = level_set(client)
    there = (answer[list(point)] == list(point.values())).all(axis=1)
    ((mean, sem),) = client.predict([point])[0].values()
    assert mean == pytest.approx(float(answer.loc[there, "mean"].iloc[0]))
    assert sem == pytest.approx(float(answer.loc[there, "sigma"].iloc[0]))
    # Off the pool a model must be there: the initial design is not complete yet.
    off = {**point, "heat": 41.0}
    with pytest.raises(
        NoModelYet, match=r"none has been fitted yet: (\d+) of"
    ) as error:
        client.predict([off])
    left = int(re.search(r"(\d+) of the \d+ measurements", str(error.value))[1])
    assert f"{left} of the" in answer.attrs["forecast"]
    asked = 0
    while asked < left:  # as many as it says
        for trial, parameters in client.get_next_trials(left - asked).items():
            client.complete_trial(
                trial, {"y": (parameters["heat"] / 50 + 0.01 * trial, 0.1)}
            )
            asked += 1
    assert asked == left
    assert math.isfinite(client.predict([off])[0]["y"][1])
    assert "forecast" not in level_set(client).attrs


def test_the_predictive_distribution_is_refused():
    client, _ = two_rounds(lse())
    features = [ObservationFeatures(parameters={POOL_INDEX: 1})]
    with pytest.raises(UnsupportedError, match="Add the noise variance"):
        client._generation_strategy.adapter.predict(features, True)


def test_a_prediction_changes_nothing():
    strategy = lse()
    client, _ = two_rounds(strategy)
    client.predict([{POOL_INDEX: 1}])
    other, _ = two_rounds(strategy)
    assert client.get_next_trials(100) == other.get_next_trials(100)
