r"""Acquisition functions, constraints as a goal, costs, the modular generator."""

import pandas as pd
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.core.objective import Objective
from ax.core.optimization_config import OptimizationConfig
from ax.core.outcome_constraint import OutcomeConstraint
from ax.core.parameter import ParameterType, RangeParameter
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec

import botorch_lse.ax
from botorch_lse import Pool
from botorch_lse.acquisition import MaxVariance, Straddle, qTruVaR
from botorch_lse.ax import (
    ModelAnalysis,
    acquisition_generator_spec,
    goal_from_constraints,
    grid_pool,
    level_set,
    level_set_generation_strategy,
    model_space,
    pool_parameters,
    trial_cost,
)
from botorch_lse.ax.modular import sobol_points
from botorch_lse.strategies import (
    Between,
    LSEStrategy,
    Strategy,
    TruVaRStrategy,
)

from .. import fitting
from ..worlds import (
    NOISE,
    client_for,
    kernel,
    lse,
)
from ..worlds import (
    grid_pool as world,
)
from .cases import DOSE, HEAT, STRADDLE, case, complete, modular

# --- acquisition functions --------------------------------------------------------


@case("acquisitions:acquisition_generator_spec#1", "Write `{}` for none")
def no_options(_):
    yield lambda: acquisition_generator_spec(MaxVariance, None)
    assert acquisition_generator_spec(MaxVariance, {})


@case("acquisitions:acquisition_generator_spec#2", "`model_space(search_space, table)`")
def a_pool_in_the_options(_):
    pool, client = grid_pool([HEAT, DOSE], 3), Client()
    client.configure_experiment(parameters=[HEAT, DOSE], name="test")
    yield lambda: acquisition_generator_spec(qTruVaR, {"targets": pool})
    points = model_space(client._experiment.search_space, pool.to_frame())
    assert acquisition_generator_spec(qTruVaR, {"targets": points})


@case("acquisitions:_check_class#1", "`level_set_generation_strategy(strategy)`")
def a_strategy_as_acquisition(_):
    yield lambda: acquisition_generator_spec(LSEStrategy, {})
    assert level_set_generation_strategy(lse())


@case("acquisitions:_check_class#1", "Take a class of `botorch_lse.acquisition`")
def no_class(_):
    yield lambda: acquisition_generator_spec("Straddle", {"threshold": 0.5})
    assert acquisition_generator_spec(Straddle, {"threshold": 0.5})


@case("acquisitions:_check_options#1", "among ['threshold', 'beta', 'goal']")
def an_option_of_another_name(_):
    options = {"treshold": 0.5}
    yield lambda: acquisition_generator_spec(Straddle, options)
    assert acquisition_generator_spec(Straddle, {"threshold": 0.5, "beta": 4.0})


@case("acquisitions:_check_options#2", "`options` to hold ['threshold']")
def a_missing_option(_):
    yield lambda: acquisition_generator_spec(Straddle, {})
    assert acquisition_generator_spec(Straddle, {"threshold": 0.5})


@case("_validation: model_space", "Write `experiment.search_space`")
def no_search_space(_):
    client, table = Client(), pd.DataFrame({"heat": [0.1]})
    client.configure_experiment(parameters=[HEAT], name="test")
    yield lambda: model_space([HEAT], table)
    experiment = client._experiment
    assert model_space(experiment.search_space, table).shape == (1, 1)


@case("_validation: model_space", "`pd.DataFrame(values, columns=['heat'])`")
def no_table(_):
    space = SearchSpace([RangeParameter("heat", ParameterType.FLOAT, 0.0, 1.0)])
    values = [[0.1], [0.2]]
    yield lambda: model_space(space, values)
    assert model_space(space, pd.DataFrame(values, columns=["heat"])).shape == (2, 1)


@case("acquisitions:model_space#1", "a column for each parameter")
def a_table_without_a_column(_):
    space = SearchSpace([RangeParameter("heat", ParameterType.FLOAT, 0.0, 1.0)])
    table = pd.DataFrame({"warmth": [0.1]})
    yield lambda: model_space(space, table)
    assert len(model_space(space, table.rename(columns={"warmth": "heat"}))) == 1


@case("acquisitions:model_space#2", "to lie in the search space, but row 1")
def a_table_outside_the_space(_):
    space = SearchSpace([RangeParameter("heat", ParameterType.FLOAT, 0.0, 1.0)])
    table = pd.DataFrame({"heat": [0.1, 2.0]})
    yield lambda: model_space(space, table)
    assert len(model_space(space, table.drop(index=1))) == 1


@case("acquisitions:register_acquisition#1", "Rename that class")
def an_acquisition_with_a_name_that_is_taken(_):
    own = type("Straddle", (MaxVariance,), {})
    yield lambda: botorch_lse.ax.acquisitions.register_acquisition(own)
    own.__name__ = own.__qualname__ = "OwnStraddleOfATest"
    botorch_lse.ax.acquisitions.register_acquisition(own)


# --- constraints as a goal --------------------------------------------------------


def constrained(*constraints):
    client = Client()
    client.configure_experiment(parameters=pool_parameters(world()), name="test")
    client.configure_optimization(
        objective="cost", outcome_constraints=list(constraints)
    )
    return client


@case("constraints:goal_from_constraints#1", 'outcome_constraints=["strength >= 40"])`')
def no_constraints(_):
    client = constrained()
    yield lambda: goal_from_constraints(client)
    client.configure_optimization(
        objective="cost", outcome_constraints=["strength >= 40"]
    )
    assert goal_from_constraints(client).outputs == ("strength",)


@case("constraints:goal_from_constraints#2", "['strength'], but got ['stregth']")
def an_accuracy_of_no_constraint(_):
    client = constrained("strength >= 40")
    yield lambda: goal_from_constraints(client, {"stregth": 1.0})
    assert goal_from_constraints(client, {"strength": 1.0}).outputs == ("strength",)


def with_constraint(expression, **weights):
    client = constrained("strength >= 40")
    experiment = client._experiment
    names = {name: name for name in ("cost", "strength", "stress")}
    known = {"metric_name_to_signature": names}
    client.configure_tracking_metrics(["stress"])
    constraint = OutcomeConstraint(
        expression=expression, metric_name_to_signature=names
    )
    objective = Objective(expression="-cost", **known)
    experiment.optimization_config = OptimizationConfig(
        objective=objective, outcome_constraints=[constraint]
    )
    return client


@case("constraints:_part#1", "Measure the baseline and write its value")
def a_relative_constraint(_):
    client = with_constraint("strength >= 0.9 * baseline")
    yield lambda: goal_from_constraints(client)
    client.configure_optimization("cost", outcome_constraints=["strength >= 36"])
    assert goal_from_constraints(client).outputs == ("strength",)


@case("constraints:_part#2", "Record the sum as a metric of its own")
def a_constraint_on_a_sum(_):
    client = with_constraint("strength + stress >= 40")
    yield lambda: goal_from_constraints(client)
    client.configure_optimization("cost", outcome_constraints=["total >= 40"])
    assert goal_from_constraints(client).outputs == ("total",)


# --- costs ------------------------------------------------------------------------


@case("costs:_check_costs#1", "Write `Pool(X, costs=...)`")
def a_cost_of_free_measurements(_):
    client = client_for(lse())
    (trial,) = client.get_next_trials(1)
    yield lambda: trial_cost(client, trial)
    X = world().X
    for priced in (
        lse(Pool(X, costs=1 + X[:, 0])),
        TruVaRStrategy(
            world(), 0.5, model=kernel(), noise_std=NOISE, beta=4.0, cost=fitting.walk
        ),
    ):
        client = client_for(priced)
        (trial,) = client.get_next_trials(1)
        assert trial_cost(client, trial) > 0


@case("costs:trial_cost#1", "one of the experiment's 1 trials")
def a_cost_of_no_trial(_):
    X = world().X
    client = client_for(lse(Pool(X, costs=1 + X[:, 0])))
    (trial,) = client.get_next_trials(1)
    yield lambda: trial_cost(client, 7)
    assert trial_cost(client, trial) > 0


@case("costs:register_cost_metric#1", "Register that one under another number")
def a_metric_with_our_number(_):
    from ax.core.metric import Metric

    registry, costs = botorch_lse.ax.costs.CORE_METRIC_REGISTRY, botorch_lse.ax.costs
    other = type("OtherMetric", (Metric,), {})
    registry[other] = costs.COST_METRIC
    try:
        yield costs.register_cost_metric
        registry[other] = costs.COST_METRIC + 1
        costs.register_cost_metric()
    finally:
        del registry[other]


# --- the modular generator --------------------------------------------------------


@case("modular:model_answer#1", "Write `ModelAnalysis(threshold=70.0)`")
def no_level(_):
    client = modular(acquisition_generator_spec(MaxVariance, {}), n=3)
    given = client._experiment, client._generation_strategy
    yield lambda: ModelAnalysis(n=8).compute(*given)
    assert ModelAnalysis(threshold=70.0, n=8).compute(*given).df is not None


@case("modular:model_answer#1", "`level_set_generation_strategy(Strategy(grid_pool(p")
def a_region_that_is_no_level(_):
    goal = Between(0.2, 0.6)
    client = modular(acquisition_generator_spec(Straddle, {"goal": goal}), n=0)
    yield lambda: level_set(client)
    strategy = Strategy(grid_pool([HEAT, DOSE]), goal)
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    assert len(level_set(client)) == len(strategy.pool)


@case("modular:model_answer#2", '`client.configure_optimization(objective="y")`')
def an_objective_of_several_metrics(_):
    client = modular(STRADDLE, n=3)
    for trial in client._experiment.trials:
        client.attach_data(trial, {"z": (0.1 * trial, 0.1)})
    client.configure_optimization(objective="y, z")
    yield lambda: level_set(client)
    client.configure_optimization(objective="y")
    assert len(level_set(client)) > 1000


@case("modular:model_answer#3", "Complete 1 more trial, then ask")
def no_model_yet(_):
    client = modular(STRADDLE, n=1)
    yield lambda: level_set(client)
    complete(client, client.get_next_trials(1))
    client.get_next_trials(1)
    assert len(level_set(client)) > 1000


@case("modular:model_answer#3", "Ask for the next trial: `client.get_next_trials(1)`")
def trials_enough_but_no_model_yet(_):
    client = modular(STRADDLE, n=2)
    yield lambda: level_set(client)
    client.get_next_trials(1)
    assert len(level_set(client)) > 1000


@case("modular:model_answer#3", "Complete 1 more trial, then ask")
def trials_enough_but_no_data_yet(_):
    client = modular(STRADDLE, n=0)
    trials = client.get_next_trials(2)
    yield lambda: level_set(client)
    for trial in trials:
        complete(client, [trial], (float(trial), 0.1))
    client.get_next_trials(1)
    assert len(level_set(client)) > 1000


@case("modular:model_answer#3", "Complete 1 more trial, then ask")
def no_data_for_the_first_node(_):
    spec = acquisition_generator_spec(Straddle, {"threshold": 0.5})
    client = modular(STRADDLE, n=0)
    node = GenerationNode("LSE", [spec])
    client.set_generation_strategy(GenerationStrategy(nodes=[node], name="LSE"))
    yield lambda: level_set(client)
    complete(client, [client.attach_trial({"heat": 0.2, "dose": 0.5})])
    client.get_next_trials(1)
    assert len(level_set(client)) > 1000


@case("modular:model_answer#3", "with a node that has an `acquisition_generator_spec`")
def nodes_without_a_model(_):
    client, analysis = modular(STRADDLE, n=1), ModelAnalysis(threshold=0.5, n=8)
    sobol = GenerationNode("Sobol", [GeneratorSpec(Generators.SOBOL)])
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol], name="Sobol"))
    complete(client, client.get_next_trials(1))
    yield lambda: analysis.compute(client._experiment, client._generation_strategy)
    node = GenerationNode("LSE", [STRADDLE])
    client.set_generation_strategy(GenerationStrategy(nodes=[node], name="LSE"))
    client.get_next_trials(1)
    assert analysis.compute(client._experiment, client._generation_strategy)


@case("modular:model_answer#3", "Call `client.set_generation_strategy`")
def no_generator(_):
    client = modular(STRADDLE, n=0)
    experiment, analysis = client._experiment, ModelAnalysis(threshold=0.5, n=8)
    yield lambda: analysis.compute(experiment, None)
    client = modular(STRADDLE, n=3)
    assert analysis.compute(client._experiment, client._generation_strategy)


@case("modular:sobol_points#1", "`client.predict(points)`")
def constraints_that_leave_hardly_anything(_):
    client = modular(STRADDLE, n=3)
    space = client._experiment.search_space
    narrow = SearchSpace(
        list(space.parameters.values()), [ParameterConstraint("heat + dose <= 1e-6")]
    )
    yield lambda: sobol_points(narrow, 8)
    assert client.predict([{"heat": 0.0, "dose": 0.0}])
