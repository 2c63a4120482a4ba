r"""Fidelity parameters of Ax, and trials at numbers that are no source."""

import pytest
import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.core import (
    ChoiceParameter,
    Experiment,
    ParameterType,
    RangeParameter,
    SearchSpace,
)
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from botorch.exceptions.errors import UnsupportedError

from botorch_lse import Above, GaussianProcess, History, Pool, Strategy
from botorch_lse.acquisition import Straddle
from botorch_lse.ax import acquisition_generator_spec, level_set_generation_strategy
from botorch_lse.models import FidelityDiscrepancies

from .worlds import fresh_state, same_state, state_of

LEVELS, N = (0.25, 0.5, 1.0), 16
POOL = Pool.from_box([[0.0], [10.0]], N, names=("x",)).at_sources(
    LEVELS, costs=(1, 4, 50), noise_var=(0, 0, 0)
)
OLD = torch.tensor([[3.3, 0.37], [7.7, 0.61], [1.2, 0.5]], dtype=torch.float64)
SPACES = {
    "range": lambda target: RangeParameter(
        "source", ParameterType.FLOAT, 0, 1, is_fidelity=True, target_value=target
    ),
    "choice": lambda target: ChoiceParameter(
        "source",
        ParameterType.FLOAT,
        list(LEVELS),
        is_ordered=True,
        is_fidelity=True,
        target_value=target,
    ),
}


def value(parameters):
    x, mesh = parameters["x"], parameters["source"]
    return float(torch.tensor(x).sin()) + (1 - mesh) ** 2 * (1 + 0.1 * x)


def client_of(parameter, strategy=None):
    inputs = RangeParameter("x", ParameterType.FLOAT, 0, 10)
    client = Client()
    space = SearchSpace([inputs, parameter])
    client.set_experiment(Experiment(name="fidelity", search_space=space))
    client.configure_optimization(objective="y")
    if strategy is not None:
        client.set_generation_strategy(level_set_generation_strategy(strategy))
    return client


def strategy_of():
    model = GaussianProcess(FidelityDiscrepancies())
    return Strategy(POOL, Above(0.3), model=model, batch_size=2)


def complete(client, trials):
    for index, parameters in trials.items():
        client.complete_trial(index, {"y": (value(parameters), 0.0)})


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.filterwarnings("ignore:.*out-of-design")  # of a choice: Ax says so
def test_a_fidelity_parameter_is_the_source_and_takes_any_number(kind, tmp_path):
    client = client_of(SPACES[kind](1.0), strategy_of())
    for x, mesh in OLD.tolist():
        parameters = {"x": x, "source": mesh}
        complete(client, {client.attach_trial(parameters): parameters})
    trials = client.get_next_trials(2)
    assert {p["source"] for p in trials.values()} <= {*LEVELS}
    complete(client, trials)
    state = state_of(client)
    assert torch.equal(state.strategy.model.history.X, OLD)
    y = [value({"x": x, "source": mesh}) for x, mesh in OLD.tolist()]
    knows = strategy_of().with_history(History(OLD[:, :1], y, 0.0, source=OLD[:, 1]))
    told = knows.replay(state.observations)
    torch.testing.assert_close(told.classification.mean, state.classification.mean)
    assert len(state.classification.mean) == N
    client.save_to_json_file(str(tmp_path / "client.json"))
    again = Client.load_from_json_file(str(tmp_path / "client.json"))
    assert same_state(fresh_state(again), state)


@pytest.mark.filterwarnings("ignore")  # Ax's own
def test_acquisition_functions_refuse_a_fidelity():
    client = client_of(SPACES["range"](1.0))
    sobol = GenerationNode(
        name="sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL)],
        transition_criteria=[MinTrials(threshold=3, transition_to="model")],
    )
    spec = acquisition_generator_spec(Straddle, {"threshold": 0.3})
    model = GenerationNode(name="model", generator_specs=[spec])
    client.set_generation_strategy(GenerationStrategy(name="s", nodes=[sobol, model]))
    for _ in range(3):
        complete(client, client.get_next_trials(1))
    with pytest.raises(UnsupportedError, match="without a fidelity parameter") as e:
        client.get_next_trials(1)
    assert "Write `Strategy(pool.at_sources((0.25, 1.0), costs=...)" in str(e.value)
    goes_on = client_of(SPACES["range"](1.0), strategy_of())
    assert goes_on.get_next_trials(1)
