r"""Pools as search spaces, and grids."""

import dataclasses

import pandas as pd
import torch
from ax.api.client import Client
from ax.api.configs import (
    ChoiceParameterConfig,
    DerivedParameterConfig,
    RangeParameterConfig,
)
from ax.core.parameter import ParameterType, RangeParameter
from ax.core.search_space import SearchSpace

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    grid_pool,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.ax.pool_space import PoolSpace
from botorch_lse.papers import RAGEPACStrategy
from botorch_lse.strategies import StraddleStrategy

from ..worlds import (
    NOISE,
    lse,
    node_of,
)
from .cases import DOSE, HEAT, SALT, case, fixed, goes_on, of_features, on, use

# --- pools as search spaces -------------------------------------------------------


@case("_validation: pool_parameters", "Write `Pool(X)`, or `strategy.pool`")
def no_pool(_):
    X = [[0.0], [1.0]]
    yield lambda: pool_parameters(X)
    assert pool_parameters(Pool(X))
    assert pool_parameters(lse().pool)


@case("pool_space:pool_parameters#1", "`strategy.ask` and `strategy.tell` need no Ax")
def a_pool_of_one_row(_):
    pool = Pool([[0.5]])
    yield lambda: pool_parameters(pool)
    strategy = fixed(pool, batch_size=1)
    state = strategy.init()
    assert strategy.tell(state, strategy.ask(state).observe([3.0])).round == 1


@case("pool_space:PoolSpace.__init__#1", "with `pool_parameters(pool)`")
def a_parameter_that_is_no_column(_):
    pool = Pool(grid_pool([HEAT, DOSE], 3).X, names=["warmth", "dose"])
    client = on([HEAT, DOSE], fixed(pool))
    yield lambda: client.get_next_trials(1)
    assert goes_on(on([HEAT, DOSE], fixed(Pool(pool.X, names=["heat", "dose"]))))
    assert goes_on(on(pool_parameters(pool), fixed(pool)))


@case("pool_space:PoolSpace.__init__#2", "`grid_pool(..., parameter_constraints=...)`")
def rows_outside_the_space(_):
    parameters, constraints = [HEAT, DOSE], ["heat + dose <= 1"]
    client = on(parameters, fixed(grid_pool(parameters, 3)), constraints=constraints)
    yield lambda: client.get_next_trials(1)
    pool = grid_pool(parameters, 3, parameter_constraints=constraints)
    use(client, fixed(pool))
    assert goes_on(client)
    assert goes_on(on(parameters, fixed(grid_pool(parameters, 3))))  # a wider space


@case("pool_space:PoolSpace.__init__#3", "Add the column in which they differ")
def rows_with_the_same_parameters(_):
    pool = grid_pool([HEAT, DOSE], 3)
    client = on([HEAT], fixed(pool))
    yield lambda: client.get_next_trials(1)
    assert goes_on(on([HEAT, DOSE], fixed(pool)))
    assert goes_on(on(pool_parameters(pool), fixed(pool)))


@case("pool_space:PoolSpace.row_of#1", "['dose'] are missing")
def a_parameterization_without_a_parameter(_):
    pool, client = grid_pool([HEAT, DOSE], 3), Client()
    client.configure_experiment(parameters=[HEAT, DOSE], name="test")
    space = PoolSpace(pool, client._experiment.search_space)
    yield lambda: space.row_of({"heat": 0.5}, "trial 0")
    assert space.row_of({"heat": 0.5, "dose": 0.0}, "trial 0") == 3


def of_linear():
    pool = grid_pool([HEAT, DOSE], 3)
    own = Pool(pool.X, features=torch.eye(9).double(), names=pool.names)
    return on([HEAT, DOSE], RAGEPACStrategy(own, 0.5, noise_std=NOISE))


@case("pool_space:PoolSpace.row_of#2", "the nearest is row 4: heat=0.5, dose=0.5")
def a_point_that_is_no_row(_):
    client = of_linear()
    node = node_of(client)
    space = node.space(client._experiment)
    yield lambda: space.row_of({"heat": 0.45, "dose": 0.5}, "the point")
    assert space.row_of({"heat": 0.5, "dose": 0.5}, "the point") == 4


@case("pool_space:PoolSpace.point_of#1", "'salt' of the point to be 'KBr'")
def another_value_of_a_fixed_parameter(_):
    one = dataclasses.replace(SALT, values=["KBr"])
    client = on([HEAT, one], fixed(grid_pool([HEAT], 3)))
    space = node_of(client).space(client._experiment)
    yield lambda: space.point_of({"heat": 0.3, "salt": "LiF"}, "the point")
    assert client.predict([{"heat": 0.3, "salt": "KBr"}])


@case("pool_space:PoolSpace.point_of#2", "to be a row of the pool")
def a_prediction_without_features(_):
    pool, elsewhere = of_features()
    client = on([HEAT, SALT], fixed(pool))
    yield lambda: client.predict([elsewhere])
    assert client.predict([{**elsewhere, "heat": 0.5}])


@case("pool_space:PoolSpace.point_of#3", "'salt' of the point to be a value that is in")
def a_prediction_for_an_unknown_word(_):
    pool = grid_pool([HEAT, dataclasses.replace(SALT, values=["KBr"])], 3)
    client = on([HEAT, SALT], fixed(pool))
    yield lambda: client.predict([{"heat": 0.3, "salt": "LiF"}])
    assert client.predict([{"heat": 0.3, "salt": "KBr"}])


KIND = ChoiceParameterConfig(
    name="kind",
    values=["a", "b"],
    parameter_type="str",
    is_ordered=False,
    dependent_parameters={"a": ["heat"], "b": ["dose"]},
)
FLAT = dataclasses.replace(KIND, dependent_parameters=None)


@case("pool_space:_check_flat#1", "Leave these out, so that each row has")
def a_space_of_dependent_parameters(_):
    pool = grid_pool([FLAT, HEAT, DOSE], 2)
    client = on([KIND, HEAT, DOSE], fixed(pool))
    yield lambda: client.get_next_trials(1)
    assert goes_on(on([FLAT, HEAT, DOSE], fixed(pool)))


def meshes(name, target=1.0):
    mesh = RangeParameter(
        name, ParameterType.FLOAT, 0, 1, is_fidelity=True, target_value=target
    )
    return SearchSpace([RangeParameter("heat", ParameterType.FLOAT, 0, 1), mesh])


@case(
    "pool_space:_check_fidelities#1",
    "Call the parameter 'source', and write `pool.at_sources((0.25, 1.0), costs=..., "
    "target=1.0)`",
)
def a_fidelity_that_is_an_input_of_the_pool(_):
    X, heat = [[0.2, 0.5], [0.7, 1.0]], Pool([[0.2], [0.7]], names=("heat",))
    plan = heat.at_sources((0.25, 1.0), costs=(1, 9), target=1.0)
    for name, pool in (
        ("mesh", Pool(X, names=("heat", "mesh"))),
        ("source", Pool(X, names=("heat", "source"))),
        ("source", heat.at_sources(("coarse", "fine"), costs=(1, 9))),
        ("mesh", plan),
    ):
        yield lambda name=name, pool=pool: PoolSpace(pool, meshes(name))
        assert PoolSpace(plan, meshes("source")).n_rows == 4


@case("pool_space:_check_fidelities#2", "Write `pool.at_sources(..., target=0.5)`")
def a_fidelity_with_another_target(_):
    heat = Pool([[0.2], [0.7]], names=("heat",))
    plan = heat.at_sources((0.5, 1.0), costs=(1, 9))
    yield lambda: PoolSpace(plan, meshes("source", 0.5))
    half = heat.at_sources((0.5, 1.0), costs=(1, 9), target=0.5)
    assert PoolSpace(half, meshes("source", 0.5)).n_rows == 4


@case("pool_space:_checked#4", "`Pool(X, table=table)`, with `pool_parameters(pool)`")
def a_grid_of_dependent_parameters(_):
    yield lambda: grid_pool([KIND, HEAT, DOSE])
    table = pd.DataFrame({"kind": ["a", "b"], "heat": [0.5, None]})
    pool = Pool([[0.5], [1.0]], table=table)
    assert goes_on(on(pool_parameters(pool), fixed(pool)))


@case("pool_space:_check_alone#1", "leave `pool_index` out and give the pool's columns")
def a_parameter_beside_the_number(_):
    pool = grid_pool([HEAT, DOSE], 3)
    client = on([*pool_parameters(pool), HEAT], fixed(pool))
    yield lambda: client.get_next_trials(1)
    assert goes_on(on(pool_parameters(pool), fixed(pool)))
    assert goes_on(on([HEAT, DOSE], fixed(pool)))


def numbered():
    pool = grid_pool([HEAT, DOSE], 3)
    number = RangeParameter(POOL_INDEX, ParameterType.INT, 0, 8)
    return pool, PoolSpace(pool, SearchSpace([number]))


@case("pool_space:_row_of_number#1", "with `pool_parameters(pool)`")
def a_parameterization_without_the_number(_):
    pool, space = numbered()
    yield lambda: space.row_of({"heat": 0.5}, "trial 0")
    client = on(pool_parameters(pool), fixed(pool))
    ((_, parameters),) = client.get_next_trials(1).items()
    assert space.row_of(parameters, "trial 0") >= 0


@case("pool_space:_row_of_number#2", "to be a whole number, but got 1.5")
def half_a_row(_):
    _, space = numbered()
    yield lambda: space.row_of({POOL_INDEX: 1.5}, "trial 0")
    assert space.row_of({POOL_INDEX: 2}, "trial 0") == 2


@case("pool_space:_row_of_number#3", "`Pool.nearest(x)` gives the row")
def a_row_beyond_the_last(_):
    pool, space = numbered()
    yield lambda: space.row_of({POOL_INDEX: 9}, "the point")
    assert space.row_of({POOL_INDEX: pool.nearest([1.0, 1.0])}, "the point") == 8


# --- grids ------------------------------------------------------------------------


@case("pool_space:grid_pool#1", "by the names of parameters, ['heat']")
def points_of_no_parameter(_):
    yield lambda: grid_pool([HEAT], {"warmth": 3})
    assert len(grid_pool([HEAT], {"heat": 3})) == 3


def derived(expression):
    return DerivedParameterConfig(
        name="rest", expression_str=expression, parameter_type="float"
    )


@case("pool_space:_derived#1", "Only linear expressions")
def a_product_as_derived_parameter(_):
    yield lambda: grid_pool([HEAT, DOSE, derived("heat * dose")])
    assert grid_pool([HEAT, DOSE, derived("1 - heat")])


@case("pool_space:_derived#2", "of others, ['heat'], but it needs ['dose']")
def a_derived_parameter_without_its_source(_):
    yield lambda: grid_pool([HEAT, derived("1 - dose")])
    assert grid_pool([HEAT, DOSE, derived("1 - dose")])


@case("pool_space:_inside#1", "Write a list")
def a_constraint_that_is_no_list(_):
    yield lambda: grid_pool([HEAT], 3, "heat <= 0.5")
    assert len(grid_pool([HEAT], 3, ["heat <= 0.5"])) == 2


@case("pool_space:_inside#2", '`["acid + base <= 1"]`')
def no_inequality(_):
    yield lambda: grid_pool([HEAT, DOSE], 3, ["heat + dose"])
    assert len(grid_pool([HEAT, DOSE], 3, ["heat + dose <= 1"])) == 6


@case("pool_space:_inside#3", "about the numbers, ['heat']")
def a_constraint_on_a_word(_):
    yield lambda: grid_pool([HEAT, SALT], 3, ["salt <= 1"])
    assert grid_pool([HEAT, SALT], 3, ["heat <= 1"])


@case("pool_space:_inside#4", "Take more `points`, or correct the constraints or the")
def constraints_that_nothing_fulfils(_):
    between = ["heat >= 0.2", "heat <= 0.3"]
    yield lambda: grid_pool([HEAT], 3, between)
    assert len(grid_pool([HEAT], 5, between)) == 1
    assert len(grid_pool([HEAT], 3, ["heat >= 0.2"])) == 2
    assert len(grid_pool([dataclasses.replace(HEAT, bounds=(0, 0.5))], 3, between)) == 1


@case("pool_space:_checked#1", "Write `grid_pool([...])`")
def one_parameter(_):
    yield lambda: grid_pool(HEAT)
    assert grid_pool([HEAT])


@case(
    "pool_space:_checked#2", "Give what `client.configure_experiment(parameters=...)`"
)
def no_parameters(_):
    yield lambda: grid_pool("heat")
    assert grid_pool([HEAT])


@case(
    "pool_space:_checked#3", "Give what `client.configure_experiment(parameters=...)`"
)
def a_parameter_of_axs_core(_):
    yield lambda: grid_pool([RangeParameter("heat", ParameterType.FLOAT, 0.0, 1.0)])
    assert grid_pool([HEAT])
    assert on([HEAT], fixed(grid_pool([HEAT])))


@case("pool_space:_checked#5", "Rename one of them")
def two_parameters_of_one_name(_):
    yield lambda: grid_pool([HEAT, HEAT])
    assert grid_pool([HEAT, dataclasses.replace(HEAT, name="other")])


@case("pool_space:_check_range#1", "Raise the lower one")
def zero_on_a_log_scale(_):
    log = dataclasses.replace(HEAT, scaling="log")
    yield lambda: grid_pool([log])
    assert grid_pool([dataclasses.replace(log, bounds=(0.01, 1))])


@case("pool_space:_check_range#1", "ChoiceParameterConfig(name='heat', values=[1]")
def a_range_of_one_value(_):
    said = yield lambda: grid_pool([dataclasses.replace(HEAT, bounds=(1, 1))])
    choice = eval(said.split("`")[1])  # the code of the message
    parameters = [choice, DOSE]
    pool = grid_pool(parameters, 3)
    assert goes_on(on(parameters, fixed(pool)))


@case("pool_space:_check_range#2", "Leave it out for `points` values")
def a_step_of_nothing(_):
    yield lambda: grid_pool([dataclasses.replace(HEAT, step_size=0.0)])
    assert len(grid_pool([HEAT], 3)) == 3


@case("pool_space:_check_rows#1", "Take fewer `points`, or larger steps")
def a_grid_that_is_too_large(_):
    fine = [dataclasses.replace(HEAT, step_size=1e-7)]
    yield lambda: grid_pool(fine)
    assert grid_pool([dataclasses.replace(HEAT, step_size=0.5)])
    yield lambda: grid_pool([HEAT, DOSE], 2000)
    assert grid_pool([HEAT, DOSE], 20)
    names = [f"x{i}" for i in range(6)]
    reals = [
        RangeParameterConfig(name=name, parameter_type="float", bounds=(0.0, 1.0))
        for name in names
    ]
    yield lambda: grid_pool(reals)
    pool = Pool.from_box([[0.0] * 6, [1.0] * 6], 64, names=names)
    client = Client()
    client.configure_experiment(parameters=reals, name="test")
    client.configure_optimization(objective="y")
    strategy = StraddleStrategy(pool, 0.5, batch_size=2)
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    assert len(client.get_next_trials(2)) == 2


@case("pool_space:_points#1", "Take fewer")
def too_many_points(_):
    yield lambda: grid_pool([HEAT], 10**7)
    assert grid_pool([HEAT], 10)
