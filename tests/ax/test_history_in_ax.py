r"""Trials with parameters that are no row of the pool, and predictions there."""

import math
from dataclasses import replace

import pytest
import torch
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import History, Pool
from botorch_lse.ax import (
    LevelSetAnalysis,
    grid_pool,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.strategies import (
    Above,
    Binary,
    GaussianProcess,
    GEGEStrategy,
    LogNormal,
    LSEStrategy,
    MELKLinearStrategy,
    Strategy,
)
from botorch_lse.surrogate.remarks import DataWarning

from .worlds import NOISE, fresh_state, node_of, same_state, state_of

PARAMETERS = [
    RangeParameterConfig(name="heat", bounds=(0, 2), parameter_type="float"),
    RangeParameterConfig(
        name="dose", bounds=(1, 100), parameter_type="float", scaling="log"
    ),
    ChoiceParameterConfig(
        name="mix", values=["a", "b", "c"], parameter_type="str", is_ordered=False
    ),
    ChoiceParameterConfig(
        name="size", values=["s", "m", "l"], parameter_type="str", is_ordered=True
    ),
]
OFF = {"heat": 0.3, "dose": 5.0, "mix": "b", "size": "l"}
ON = {"heat": 1.0, "dose": 10.0, "mix": "b", "size": "m"}
OFF_X = [0.3, math.log10(5.0), 0.0, 1.0, 0.0, 2.0]


def truth(parameters):
    lift = {"a": 0.0, "b": 0.5, "c": -0.5}[parameters["mix"]]
    size = {"s": -0.2, "m": 0.0, "l": 0.3}[parameters["size"]]
    return parameters["heat"] - math.log10(parameters["dose"]) + lift + size


def pool_of():
    return grid_pool(PARAMETERS, points=3)


def strategy_of(**options):
    kernel = ScaleKernel(RBFKernel()).double()
    settings = {"threshold": 0.1, "model": kernel, "beta": 4.0, "noise_std": NOISE}
    return LSEStrategy(pool_of(), **{**settings, "batch_size": 2, **options})


def client_of(strategy, **options):
    client = Client()
    client.configure_experiment(parameters=PARAMETERS, name="history")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy, **options))
    return client


def attach(client, parameters, value=None, sem=NOISE):
    trial = client.attach_trial(parameters)
    value = truth(parameters) if value is None else value
    client.complete_trial(trial, {"y": (value, sem)})
    return trial


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_trials_off_the_pool_count_as_data(asynchronous, tmp_path):
    strategy = strategy_of()
    assert pool_of().names == ("heat", "dose", "mix=a", "mix=b", "mix=c", "size")
    client = client_of(strategy, asynchronous=asynchronous)
    attach(client, OFF)
    attach(client, ON)  # a row: a measurement like any other
    for trial, parameters in client.get_next_trials(2).items():
        client.complete_trial(trial, {"y": (truth(parameters), NOISE)})
    attach(client, {**OFF, "heat": 1.9}, sem=0.2)
    state = state_of(client)
    assert len(state.history) == 3
    x = torch.tensor([OFF_X, [1.9, *OFF_X[1:]]], dtype=torch.float64)
    y = [truth(OFF), truth({**OFF, "heat": 1.9})]
    knows = strategy.with_history(History(x, y, [NOISE**2, 0.2**2]))
    again = knows.replay(state.observations, seed=0)
    for name in ("mean", "sigma", "lower", "upper"):
        one, other = (getattr(s.classification, name) for s in (state, again))
        assert torch.allclose(one, other, atol=1e-9), name
    assert "count as made before the run" in state.classification.guarantee
    assert same_state(state, fresh_state(client))
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert same_state(state_of(loaded), state)
    assert loaded.get_next_trials(2) == client.get_next_trials(2)
    assert len(level_set(client)) == len(strategy.pool)


@pytest.mark.slow
def test_answers_off_the_pool_count_as_old_ones(tmp_path):
    kernel = ScaleKernel(RBFKernel()).double()
    before = History([OFF_X, [1.8, *OFF_X[1:]]], [2, 3], trials=[3, 4])
    model = GaussianProcess(kernel, outcome=Binary(), history=before)
    strategy = Strategy(pool_of(), Above(0.6), model=model, batch_size=2)
    client = client_of(strategy)
    for heat, answer in ((0.3, 0.0), (1.9, 1.0)):
        attach(client, {**OFF, "heat": heat}, answer, sem=0.0)
    attach(client, ON, 1.0, sem=0.0)
    for trial in client.get_next_trials(2):
        client.complete_trial(trial, {"y": 1.0})
    state = state_of(client)
    x = torch.tensor([OFF_X, [1.9, *OFF_X[1:]]], dtype=torch.float64)
    knows = strategy.with_history(History(x, [0.0, 1.0]))
    assert knows.model.history.counts.tolist() == [3, 4, 1, 1]
    assert same_state(state, knows.replay(state.observations, seed=0))
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert same_state(state_of(loaded), state)
    assert loaded.get_next_trials(2) == client.get_next_trials(2)


def test_a_value_off_the_pool_tells_of_the_rows_near_it():
    near = pool_of().nearest(OFF_X)
    client = client_of(strategy_of())
    before = state_of(client).classification
    attach(client, OFF, 3.0)
    after = state_of(client).classification
    assert float(after.mean[near]) > float(before.mean[near]) + 0.5
    assert float(after.sigma[near]) < float(before.sigma[near])


def test_predictions_are_made_anywhere_in_the_space():
    client = client_of(strategy_of())
    attach(client, OFF)
    attach(client, ON)
    state, points = state_of(client), [OFF, ON, {**OFF, "dose": 77.0, "mix": "c"}]
    rows = [OFF_X, [1, 1, 0, 1, 0, 1], [0.3, math.log10(77), 0, 0, 1, 2]]
    mean, sigma = state.predict(torch.tensor(rows, dtype=torch.float64))
    said = client.predict(points)
    for i, found in enumerate(said):
        assert found["y"][0] == pytest.approx(float(mean[i]), abs=1e-8)
        assert found["y"][1] == pytest.approx(float(sigma[i]), abs=1e-8)


def test_what_failed_or_is_running_off_the_pool_says_nothing():
    client = client_of(strategy_of())
    before = client.get_next_trials(2)
    running = client.attach_trial(OFF)
    client.mark_trial_failed(client.attach_trial({**OFF, "heat": 1.7}))
    client.mark_trial_abandoned(client.attach_trial({**OFF, "heat": 1.8}))
    assert node_of(client).ledger(client._experiment).points == ()
    for trial, parameters in before.items():
        client.complete_trial(trial, {"y": (truth(parameters), NOISE)})
    client.complete_trial(running, {"y": (0.4, NOISE)})
    assert len(node_of(client).ledger(client._experiment).points) == 1
    assert len(state_of(client).history) == 2


def test_the_noise_is_that_of_the_strategy_where_no_sem_is_given():
    client = client_of(strategy_of())
    trial = client.attach_trial(OFF)
    client.complete_trial(trial, {"y": 0.4})
    (point,) = node_of(client).ledger(client._experiment).points
    assert point.yvar == (NOISE**2,)


def test_models_without_features_for_such_points_say_so():
    pool = pool_of()
    linear = Pool(pool.X, features=torch.eye(len(pool)), table=pool.table)
    client = client_of(MELKLinearStrategy(linear, threshold=0.1, noise_std=NOISE))
    attach(client, OFF)
    with pytest.raises(ValueError, match=r"to be a row of the pool, but got heat=0\.3"):
        client.get_next_trials(1)


def test_columns_that_come_from_no_parameter_are_named():
    pool = pool_of()
    squared = torch.cat((pool.X, pool.X[:, :1].square()), dim=-1)
    other = Pool(squared, names=(*pool.names, "heat2"), table=pool.table)
    kernel = ScaleKernel(RBFKernel()).double()
    client = client_of(LSEStrategy(other, 0.1, model=kernel, noise_std=NOISE, beta=4.0))
    attach(client, OFF)
    with pytest.raises(ValueError, match="what the model takes as 'heat2'"):
        client.get_next_trials(1)


def test_a_word_that_is_in_no_row_is_named():
    pool = pool_of()
    keep = (pool.table["mix"] != "c").to_numpy()
    part = Pool(pool.X[torch.tensor(keep)], names=pool.names, table=pool.table[keep])
    kernel = ScaleKernel(RBFKernel()).double()
    client = client_of(LSEStrategy(part, 0.1, model=kernel, noise_std=NOISE, beta=4.0))
    attach(client, {**OFF, "mix": "c"})
    with pytest.raises(ValueError, match="'mix' of trial 0 to be a value that is in"):
        client.get_next_trials(1)


def test_several_metrics_off_the_pool_count_for_a_pareto_strategy():
    kernels = tuple(ScaleKernel(RBFKernel()).double() for _ in range(2))
    strategy = GEGEStrategy(
        pool_of(), maximize=(True, False), model=kernels, noise_std=NOISE, beta=4.0
    )
    client = Client()
    client.configure_experiment(parameters=PARAMETERS, name="history")
    client.configure_optimization(objective="y, -z")
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    trial = client.attach_trial(OFF)
    client.complete_trial(trial, {"y": (0.4, NOISE), "z": (-1.0, NOISE)})
    assert len(client.get_next_trials(1)) == 1
    knows = strategy.with_history(History([OFF_X], [[0.4, -1.0]], NOISE**2))
    x = torch.tensor([OFF_X], dtype=torch.float64)
    for one, other in zip(
        state_of(client).predict(x), knows.init().predict(x), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-9)


def test_a_history_of_the_strategys_own_is_stored_and_comes_first(tmp_path):
    own = History([OFF_X, [1.5, *OFF_X[1:]]], [0.2, 1.1], 0.04)
    client = client_of(strategy_of(history=own))
    attach(client, {**OFF, "heat": 1.9})
    state = state_of(client)
    assert state.strategy.history.y.tolist()[:2] == [0.2, 1.1]
    assert len(state.strategy.history) == 3
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert same_state(state_of(loaded), state)


@pytest.mark.parametrize("sem", [None, NOISE / 2])
def test_stated_noise_is_that_of_old_values_beside_a_trial_off_the_pool(sem):
    # The trial's noise is known, by its sem or as stated, and so is theirs.
    values = History([[0.7, *OFF_X[1:]], [1.5, *OFF_X[1:]]], [0.2, 1.1])
    client = client_of(strategy_of(history=values))
    client.complete_trial(
        client.attach_trial(OFF), {"y": 0.4 if sem is None else (0.4, sem)}
    )
    assert len(client.get_next_trials(1)) == 1
    past = state_of(client).strategy.history
    variances = [NOISE**2, NOISE**2, (sem or NOISE) ** 2]
    assert torch.allclose(past.yvar, torch.tensor(variances).double())
    told = client_of(strategy_of(history=History(values.X, values.y, NOISE**2)))
    told.complete_trial(
        told.attach_trial(OFF), {"y": 0.4 if sem is None else (0.4, sem)}
    )
    x = torch.tensor([OFF_X], dtype=torch.float64)
    for one, other in zip(
        state_of(client).predict(x), state_of(told).predict(x), strict=True
    ):
        assert torch.equal(one, other)


def test_stated_shares_are_of_the_values_in_ax_too():
    model = GaussianProcess(outcome=LogNormal(), noise_std=0.1)
    pool = Pool(torch.linspace(0, 1, 9).double().unsqueeze(-1))
    strategy = Strategy(pool, Above(1000.0), model=model)
    client = Client()
    client.configure_experiment(parameters=pool_parameters(pool))
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=1))
    for value in (900.0, 4000.0):
        (trial,) = client.get_next_trials(1)
        client.complete_trial(trial, {"y": value})
    told = state_of(client).history
    assert told.y.tolist() == [900.0, 4000.0]
    torch.testing.assert_close(told.yvar, (0.1 * told.y).square())
    # An old value without noise takes no share of itself for a deviation.
    old = History([[0.1], [0.2]], [900.0, 1100.0])
    begun = replace(strategy, model=replace(model, history=old))
    with pytest.raises(ValueError, match="for all measurements of a `history`"):
        begun.with_history(History([[0.3]], [1000.0], [80.0**2]))


# --- fixed parameters -------------------------------------------------------------

HEAT = RangeParameterConfig(name="heat", bounds=(0, 100), parameter_type="float")


def with_fixed(value, kind, pool=None):
    r"""A client whose space fixes ``reactor``, and the parameters of its grid."""
    fixed = ChoiceParameterConfig(name="reactor", values=[value], parameter_type=kind)
    parameters = [HEAT, fixed]
    strategy = Strategy(
        grid_pool(parameters) if pool is None else pool,
        Above(0.5),
        model=GaussianProcess(
            ScaleKernel(RBFKernel()).double(), noise_std=NOISE, n_initial=2
        ),
        batch_size=2,
    )
    client = Client()
    client.configure_experiment(parameters=parameters, name="fixed")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    return client


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("value", "kind"), [("R2", "str"), (300, "int"), (2.5, "float"), (True, "bool")]
)
def test_one_fixed_parameter_beside_a_trial_off_the_pool(value, kind, tmp_path):
    client = with_fixed(value, kind)
    off = {"heat": 51.3, "reactor": value}
    client.complete_trial(client.attach_trial(off), {"y": (0.7, NOISE)})
    asked = client.get_next_trials(2)
    assert {p["reactor"] for p in asked.values()} == {value}
    (point,) = node_of(client).ledger(client._experiment).points
    code = float(value) if kind != "str" else 1.0
    assert point.x == (51.3, code)
    (said,) = client.predict([off])
    x = torch.tensor([point.x], dtype=torch.float64)
    mean, sigma = state_of(client).predict(x)
    assert said["y"] == pytest.approx((float(mean), float(sigma)), abs=1e-8)
    assert float(mean) > 0.6
    assert len(level_set(client)) == len(node_of(client).strategy.pool)
    assert (
        client.compute_analyses([LevelSetAnalysis()], display=False)[0].df is not None
    )
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert same_state(state_of(loaded), state_of(client))


@pytest.mark.filterwarnings("ignore:.*out-of-design")  # Ax says so, and goes on
def test_another_value_of_a_fixed_parameter_is_another_point():
    elsewhere = {"heat": 50.0, "reactor": 310}
    client = with_fixed(300, "int")
    attach(client, elsewhere, 0.7)
    (point,) = node_of(client).ledger(client._experiment).points
    assert point.x == (50.0, 310.0)
    # What the pool has no column for cannot be told from the row.
    client = with_fixed(300, "int", grid_pool([HEAT]))
    attach(client, elsewhere, 0.7)
    with pytest.raises(ValueError, match=r"'reactor' of trial 0 to be 300, .*got 310"):
        client.get_next_trials(1)
    client = with_fixed("R2", "str")
    other = {"heat": 50.0, "reactor": "R3"}
    attach(client, other, 0.7)
    with pytest.raises(ValueError, match=r"'reactor' of trial 0 .*got 'R3'"):
        client.get_next_trials(1)


@pytest.mark.parametrize(("kind", "n"), [("float", 41), ("int", 11)])
def test_a_trial_far_from_the_pool_is_named_and_spares_no_first_row(kind, n):
    pool = Pool(torch.linspace(20, 30, n, dtype=torch.float64).view(-1, 1), names=["T"])
    strategy = Strategy(pool, Above(0.3, epsilon=0.1), batch_size=1)
    client = Client()
    temperature = RangeParameterConfig(name="T", bounds=(0, 5000), parameter_type=kind)
    client.configure_experiment(parameters=[temperature], name="far")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    for number in (2500, 45, 31):  # of these only 31 tells of the pool
        value = float(number) if kind == "float" else number
        attach(client, {"T": value}, 1.0, sem=0.1)
    with pytest.warns(DataWarning, match=r"old value 0 has T = 2500 \(the pool: 20"):
        state = state_of(client)
    assert [remark.kind for remark in state.remarks] == ["far"]
    assert "old value 1 has T = 45" in state.remarks[0].text
    assert state.strategy.parts.model.wanted_to_decide == 9
