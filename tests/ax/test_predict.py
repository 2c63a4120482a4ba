import math
import re

import pytest
import torch
from ax.analysis.analysis import ErrorAnalysisCard
from ax.analysis.plotly.arm_effects import ArmEffectsPlot
from ax.analysis.plotly.cross_validation import CrossValidationPlot
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import UnsupportedError
from botorch.exceptions.errors import UnsupportedError as NoModelYet

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.ax.compat import as_stored
from botorch_lse.strategies import Above, GaussianProcess, Strategy

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


@pytest.mark.parametrize("by_number", [True, False])
def test_each_source_has_its_own_predictions(by_number):
    plan = Pool.from_box([[0.0], [1.0]], 12, names=["a"])
    pool = plan.at_sources(("coarse", "fine"), costs=(1, 10), noise_var=(0, 0))
    model = GaussianProcess(n_initial=10)
    strategy = Strategy(pool, Above(0.6), model=model, batch_size=2)
    inputs = RangeParameterConfig(name="a", bounds=(0, 1), parameter_type="float")
    source = ChoiceParameterConfig(
        name="source", values=["coarse", "fine"], parameter_type="str", is_ordered=False
    )
    client = Client()
    client.configure_experiment(
        pool_parameters(pool) if by_number else [inputs, source], name="two"
    )
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    rows = pool.to_frame()[["a", "source"]].to_dict("records")
    rows = [{POOL_INDEX: k} for k in range(24)] if by_number else rows
    true = [float(x) + (k < 12) for k, x in enumerate(pool.X[:, 0])]  # coarse: 1 more
    told = [*range(0, 12, 2), *range(12, 24, 3)]
    for k in told:
        client.complete_trial(client.attach_trial(rows[k]), {"y": true[k]})
        if k == 2:  # no model yet: the mean of the values of the source
            mean, _ = client.predict(rows[:1])[0]["y"]
            assert mean == pytest.approx((true[0] + true[2]) / 2)
            assert client.predict(rows[-1:])
    found = [p["y"][0] for p in client.predict(rows)]
    assert found == pytest.approx(true, abs=0.05)
    answer = level_set(client)
    assert found[12:] == pytest.approx(answer["mean"].tolist(), abs=1e-6)
    for name in ("coarse", "fine") if not by_number else ():
        ((mean, _),) = client.predict([{"a": 0.123, "source": name}])[0].values()
        assert mean == pytest.approx(0.123 + (name == "coarse"), abs=0.05)
    plots = [ArmEffectsPlot("y"), CrossValidationPlot()]
    cards = client.compute_analyses(plots, display=False)
    leaves = [leaf for card in cards for leaf in card.flatten()]
    assert not any(isinstance(leaf, ErrorAnalysisCard) for leaf in leaves)


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
