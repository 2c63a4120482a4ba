import dataclasses
import itertools
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from ax.api.client import Client
from ax.api.configs import (
    ChoiceParameterConfig,
    DerivedParameterConfig,
    RangeParameterConfig,
)
from ax.core.parameter import (
    ChoiceParameter,
    FixedParameter,
    ParameterType,
    RangeParameter,
)
from ax.core.search_space import SearchSpace
from botorch.exceptions.warnings import InputDataWarning

from botorch_lse import Pool
from botorch_lse.ax import (
    POOL_INDEX,
    grid_pool,
    level_set,
    level_set_generation_strategy,
    pool_parameters,
)
from botorch_lse.ax.compat import as_stored, generation_strategy_of
from botorch_lse.ax.node import level_set_node
from botorch_lse.ax.pool_space import PoolSpace
from botorch_lse.strategies import Above, GaussianProcess, LSEStrategy, Strategy

from . import worlds


def by_number(n=36):
    bounds = RangeParameter(POOL_INDEX, ParameterType.INT, 0, n - 1)
    return PoolSpace(Pool(torch.arange(float(n)).unsqueeze(-1)), SearchSpace([bounds]))


def test_the_parameters_are_those_of_a_pool():
    for bad in (torch.rand(3, 2), [[0.0], [1.0]], None):
        message = rf"`pool` to be a Pool, but got {type(bad).__name__}\. .*`Pool\("
        with pytest.raises(ValueError, match=message):
            pool_parameters(bad)


def test_the_search_space_is_the_rows():
    (parameter,) = pool_parameters(worlds.grid_pool())
    assert parameter.name == POOL_INDEX
    assert parameter.bounds == (0, 35)
    assert parameter.parameter_type == "int"


def test_rows_come_back():
    space = by_number()
    for row in (0, 7, 35):
        assert space.row_of(space.parameters_of(row), "trial 0") == row
    assert space.row_of({POOL_INDEX: 4.0}, "trial 0") == 4


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({POOL_INDEX: -1}, "trial 4 to be a row of the pool, 0 to 35, but got -1; the "
         "nearest is 0"),
        ({POOL_INDEX: 36}, "the nearest is 35"),
        ({POOL_INDEX: 1.5}, "whole number, but got 1.5"),
        ({POOL_INDEX: True}, "whole number, but got True"),
        ({"x": 1}, r"parameter `pool_index`, but it has \['x'\]"),
    ],
)  # fmt: skip
def test_what_is_not_a_row_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        by_number().row_of(parameters, "trial 4")


def test_a_pool_of_one_row_is_refused():
    with pytest.raises(ValueError, match="at least 2 rows"):
        pool_parameters(Pool(torch.zeros(1, 1)))


# --- columns of the pool as parameters --------------------------------------------


PARAMETERS = [
    RangeParameterConfig(name="heat", bounds=(20.0, 80.0), parameter_type="float"),
    RangeParameterConfig(name="steps", bounds=(1, 3), parameter_type="int"),
    ChoiceParameterConfig(
        name="salt",
        values=["KBr", "NaCl", "LiF"],
        parameter_type="str",
        is_ordered=False,
    ),
    ChoiceParameterConfig(
        name="stirred", values=[False, True], parameter_type="bool", is_ordered=True
    ),
]


def recipes():
    rows = itertools.product(
        np.linspace(20, 80, 4), (1, 3), ("KBr", "NaCl"), (False, True)
    )
    table = pd.DataFrame(rows, columns=["heat", "steps", "salt", "stirred"])
    table["salt"] = table["salt"].astype("category")
    table["shelf"] = [f"S{i}" for i in range(len(table))]  # not a parameter
    return table


def recipe_pool():
    table = recipes()
    return Pool(table.drop(columns="shelf"), table=table)


def recipe_truth(pool):
    t = pool.to_frame()
    salt = np.where(t["salt"] == "KBr", 0.0, 1.0)
    return t["heat"].to_numpy() / 40 - salt + 0.5 * t["stirred"].to_numpy()


def recipe_client(strategy, parameters=PARAMETERS, **options):
    client = Client(**options)
    client.configure_experiment(parameters=parameters, name="recipes")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(level_set_generation_strategy(strategy, seed=3))
    return client


def recipe_strategy(pool, **options):
    settings = {"threshold": 0.8, "noise_std": 0.1, "batch_size": 4, "beta": 4.0}
    return LSEStrategy(pool, max_observations=12, **{**settings, **options})


def plan_without_ax(strategy, truth):
    state, asked = strategy.init(seed=3), []
    while not state.is_done:
        batch = strategy.ask(state)
        asked.append(batch.order.tolist())
        y = as_stored([truth[row] for row in batch.order])
        state = strategy.tell(state, batch.observe(y, 0.01))
    return asked


@pytest.mark.slow
def test_an_existing_search_space_asks_for_rows_by_their_values(tmp_path):
    pool = recipe_pool()
    truth, strategy = recipe_truth(pool), recipe_strategy(pool)
    client, asked = recipe_client(strategy), []
    names = ["heat", "steps", "salt", "stirred"]
    where = {tuple(r): i for i, r in enumerate(pool.to_frame()[names].values.tolist())}
    while True:
        try:
            trials = client.get_next_trials(100)
        except worlds.GenerationStrategyCompleted:
            break
        asked.append([where[tuple(p[n] for n in names)] for p in trials.values()])
        for trial, parameters in trials.items():
            assert type(parameters["stirred"]) is bool
            assert type(parameters["steps"]) is int
            row = where[tuple(parameters[n] for n in names)]
            client.complete_trial(trial, {"y": (float(truth[row]), 0.1)})
        client.save_to_json_file(str(tmp_path / "run.json"))
        client = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert asked == plan_without_ax(strategy, truth)
    answer = level_set(client)
    assert answer["n_observations"].sum() == 12
    assert list(answer.columns[:5]) == [*names, "shelf"]


def test_a_row_measured_elsewhere_enters_by_its_values():
    pool = recipe_pool()
    client = recipe_client(recipe_strategy(pool))
    inside = {"heat": 40.0 + 1e-12, "steps": 3, "salt": "NaCl", "stirred": True}
    trial = client.attach_trial(inside)
    client.complete_trial(trial, {"y": (1.0, 0.1)})
    counts = level_set(client)["n_observations"]
    table = pool.to_frame()
    (row,) = counts.to_numpy().nonzero()[0]
    found = table.loc[row, ["steps", "salt", "stirred"]].tolist()
    assert found == [3, "NaCl", True]
    assert table.loc[row, "heat"] == pytest.approx(40.0)


def test_a_word_that_no_row_has_is_refused_by_name():
    pool = recipe_pool()
    client = recipe_client(recipe_strategy(pool))
    trial = client.attach_trial(
        {"heat": 58.0, "steps": 1, "salt": "LiF", "stirred": False}
    )
    client.complete_trial(trial, {"y": (1.0, 0.1)})
    with pytest.raises(ValueError, match=r"'salt' of trial 0 to be a value .* 'LiF'"):
        client.get_next_trials(1)


def test_what_is_no_row_is_refused_with_the_nearest_one():
    pool = recipe_pool()
    other = {"heat": 58.0, "steps": 1, "salt": "LiF", "stirred": False}
    with pytest.raises(ValueError, match=r"nearest is row 1[67]: heat=60\.0, steps=1"):
        PoolSpace(pool, space_of()).row_of(other, "trial 0")


def space_of(*more):
    heat = RangeParameter("heat", ParameterType.FLOAT, 20.0, 80.0)
    steps = RangeParameter("steps", ParameterType.INT, 1, 3)
    salt = ChoiceParameter(
        "salt", ParameterType.STRING, ["KBr", "NaCl", "LiF"], is_ordered=False,
        sort_values=False,
    )  # fmt: skip
    stirred = ChoiceParameter(
        "stirred", ParameterType.BOOL, [False, True], is_ordered=True, sort_values=False
    )
    return SearchSpace([heat, steps, salt, stirred, *more])


def test_a_fixed_parameter_need_not_be_a_column():
    plant = FixedParameter("plant", ParameterType.STRING, "north")
    space = PoolSpace(recipe_pool(), space_of(plant))
    parameters = space.parameters_of(5)
    assert parameters["plant"] == "north"
    assert space.row_of(parameters, "trial 0") == 5


def test_a_row_at_another_value_than_the_fixed_one_is_refused():
    salt = FixedParameter("salt", ParameterType.STRING, "NaCl")
    others = [p for p in space_of().parameters.values() if p.name != "salt"]
    with pytest.raises(ValueError, match=r"row 0 does not: .*salt='KBr'"):
        PoolSpace(recipe_pool(), SearchSpace([*others, salt]))


def test_fixed_parameters_may_stand_beside_the_number_of_the_row():
    number = RangeParameter(POOL_INDEX, ParameterType.INT, 0, 31)
    plant = FixedParameter("plant", ParameterType.STRING, "north")
    space = PoolSpace(recipe_pool(), SearchSpace([number, plant]))
    assert space.parameters_of(5) == {POOL_INDEX: 5, "plant": "north"}
    heat = RangeParameter("heat", ParameterType.FLOAT, 20.0, 80.0)
    with pytest.raises(ValueError, match=r"only parameter that varies.*\['heat'\]"):
        PoolSpace(recipe_pool(), SearchSpace([number, heat]))


def test_a_pool_that_does_not_fit_the_space_is_refused():
    dose = RangeParameter("dose", ParameterType.FLOAT, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"but \['dose'\] are not"):
        PoolSpace(recipe_pool(), space_of(dose))
    table = recipes().drop(columns="shelf")
    hot = pd.concat((table, table.iloc[[0]].assign(heat=95.0)), ignore_index=True)
    with pytest.raises(ValueError, match="row 32 does not: heat=95"):
        PoolSpace(Pool(hot), space_of())
    twice = pd.concat((table, table.iloc[[3]]), ignore_index=True)
    with pytest.raises(ValueError, match="rows 3 and 32 are both"):
        PoolSpace(Pool(twice), space_of())
    with pytest.raises(ValueError, match=r"\['salt'\] are missing"):
        PoolSpace(recipe_pool(), space_of()).row_of(
            {"heat": 20.0, "steps": 1, "stirred": True}, "trial 0"
        )


def of_frame(frame):
    return Pool(frame)


def of_names(frame):
    return Pool(torch.tensor(frame.to_numpy().copy()), names=list(frame.columns))


@pytest.mark.parametrize("pool_of", [of_frame, of_names])
def test_equal_rows_are_said_when_ax_gets_the_strategy(pool_of):
    frame = pd.DataFrame({"x": [0.0, 0.25, 0.5, 0.5, 1.0]})
    x = RangeParameterConfig(name="x", bounds=(0, 1), parameter_type="float")

    def given(pool):
        strategy = LSEStrategy(pool, threshold=0.2, noise_std=0.1, batch_size=1)
        return level_set_generation_strategy(strategy)

    def first_trial(generation_strategy, parameters):
        client = Client()
        client.configure_experiment(parameters=parameters, name="equal")
        client.configure_optimization(objective="y")
        client.set_generation_strategy(generation_strategy)
        return client.get_next_trials(1)

    pool = pool_of(frame)
    said = r"2 rows .* equal .*row 2 is the first.*parameters=pool_parameters\(pool\)"
    with pytest.warns(InputDataWarning, match=said):
        copies = given(pool)
    with pytest.raises(ValueError, match="rows 2 and 3 are both"):
        first_trial(copies, [x])
    # Both remedies.
    assert first_trial(copies, pool_parameters(pool))
    assert first_trial(given(pool_of(frame.drop_duplicates())), [x])
    # Without names there are no columns that a parameter may be.
    unnamed = Pool(pool.X)
    assert first_trial(given(unnamed), pool_parameters(unnamed))


# --- grids ------------------------------------------------------------------------


def test_a_value_that_is_given_twice_is_one_row_of_a_grid():
    mix = ChoiceParameterConfig(
        name="mix", values=["a", "b", "a"], parameter_type="str"
    )
    assert grid_pool([mix]).to_frame()["mix"].tolist() == ["a", "b"]


def test_a_grid_has_every_combination_on_its_scales():
    parameters = [
        RangeParameterConfig(
            name="dose", bounds=(1e-3, 10), parameter_type="float", scaling="log"
        ),
        RangeParameterConfig(name="n", bounds=(1, 4), parameter_type="int"),
        RangeParameterConfig(
            name="pH", bounds=(5.0, 6.0), parameter_type="float", step_size=0.25
        ),
        ChoiceParameterConfig(
            name="size", values=["S", "M", "L"], parameter_type="str", is_ordered=True
        ),
        ChoiceParameterConfig(name="kind", values=["b", "a"], parameter_type="str"),
    ]
    pool = grid_pool(parameters, {"dose": 5, "n": 9})
    table = pool.to_frame()
    assert len(pool) == 5 * 4 * 5 * 3 * 2
    assert not table.duplicated().any()
    assert sorted(set(table["dose"])) == pytest.approx([1e-3, 1e-2, 0.1, 1, 10])
    assert sorted(set(table["n"])) == [1, 2, 3, 4]
    assert sorted(set(table["pH"])) == [5.0, 5.25, 5.5, 5.75, 6.0]
    assert pool.names == ("dose", "n", "pH", "size", "kind=a", "kind=b")
    X = pool.X.numpy()
    assert np.allclose(X[:, 0], np.log10(table["dose"]))
    codes = table["size"].map({"S": 0, "M": 1, "L": 2})
    assert np.array_equal(X[:, 3], codes)
    assert np.array_equal(X[:, 5], table["kind"] == "b")


def test_a_grid_is_a_pool_of_the_same_parameters():
    pool = grid_pool(PARAMETERS, 3)
    client = recipe_client(recipe_strategy(pool))
    trials = client.get_next_trials(100)
    assert len(trials) == 4
    for trial in trials:
        client.complete_trial(trial, {"y": (0.5, 0.1)})
    assert level_set(client)["n_observations"].sum() == 4


def levels(bounds, kind="float", scaling=None, points=None):
    parameter = RangeParameterConfig(
        name="x", bounds=bounds, parameter_type=kind, scaling=scaling
    )
    return grid_pool([parameter], points).to_frame()["x"].tolist()


def test_ranges_without_points_have_round_numbers():
    tenths = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert levels((0, 1)) == tenths
    assert levels((20, 95)) == [20, 30, 40, 50, 60, 70, 80, 90, 95]
    ends = levels((-0.03, 0.021))
    assert ends[:3] == [-0.03, -0.025, -0.02]
    assert ends[-3:] == [0.015, 0.02, 0.021]
    assert len(ends) == 12
    assert levels((1, 100), scaling="log") == [1, 2, 5, 10, 20, 50, 100]
    decades = [3e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02]
    assert levels((3e-4, 0.02), scaling="log") == decades
    assert levels((0, 12), "int") == list(range(13))
    assert levels((1, 5), "int", "log") == [1, 2, 3, 4, 5]
    assert levels((0, 1000), "int") == list(range(0, 1001, 50))
    assert levels((0, 1), points=3) == [0.0, 0.5, 1.0]
    assert levels((2e6, 3.1e6))[:3] == [2e6, 2.1e6, 2.2e6]


def test_points_may_be_given_for_some_ranges_only():
    pool = grid_pool(PARAMETERS, {"heat": 4})
    assert pool.to_frame()["heat"].nunique() == 4


def test_bad_grids_are_refused():
    with pytest.raises(ValueError, match=r"`points` by the names .* got \['heta'\]"):
        grid_pool(PARAMETERS, {"heta": 4})
    with pytest.raises(ValueError, match="`points`"):
        grid_pool(PARAMETERS, 1)
    many = [
        RangeParameterConfig(name=f"x{i}", bounds=(0, 1), parameter_type="float")
        for i in range(7)
    ]
    with pytest.raises(ValueError, match="they make 19,487,171"):
        grid_pool(many)
    with pytest.raises(ValueError, match="make 0"):
        grid_pool([])


def number(name="x", bounds=(0, 1), **options):
    return RangeParameterConfig(
        name=name, bounds=bounds, **{"parameter_type": "float", **options}
    )


@pytest.mark.parametrize(
    ("parameters", "points", "message"),
    [
        ([number()], 10**8, "`points` to be at most 1,000,000, but got 100,000,000"),
        ([number(parameter_type="int")], 10**8, "`points` to be at most 1,000,000"),
        ([number(step_size=2**-30)], 10, "they make 1,073,741,825. .*larger steps"),
        ([number(f"x{i}") for i in range(9)], 10**5, "they make 1[0,]{60}\\."),
    ],
)
def test_a_grid_that_is_too_large_is_refused_before_it_is_made(
    parameters, points, message
):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            grid_pool(parameters, points)
        assert tracemalloc.get_traced_memory()[1] < 2e7  # bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            number(),
            r"`parameters` to be a list.*got RangeParameterConfig. .*\[\.\.\.\]",
        ),
        ("a", "`parameters` to be a list of .*, but got 'a'"),
        (None, "`parameters` to be a list of .*, but got None"),
        ([number(), "a"], "`parameters` to be a list of .*, but entry 1 is 'a'"),
        ([number(), number()], r"names of `parameters` to differ.*\['x'\]"),
        (
            [number(scaling="log")],
            r"bounds of the range 'x'.*positive.*log.*got \(0, 1",
        ),
        ([number(step_size=0.0)], "`step_size` of the range 'x' .*positive.*got 0"),
        ([number(bounds=(0, math.inf))], "bounds of the range 'x' .*finite.*inf"),
        (
            [number(bounds=(1, 1))],
            r"bounds of the range 'x' .*but got \(1, 1\).*Choice",
        ),
        ([number(bounds=(2, 1))], r"bounds of the range 'x' .*but got \(2, 1\)"),
    ],
)
def test_what_makes_no_grid_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        grid_pool(parameters)


def test_whole_numbers_on_a_log_scale_count_once_each():
    pool = grid_pool([number(bounds=(1, 9), parameter_type="int", scaling="log")], 50)
    assert pool.to_frame()["x"].tolist() == list(range(1, 10))


# --- constraints, derived parameters, dependent ones ------------------------------


ACID = number("acid")
BASE = number("base", (0, 5), parameter_type="int")
SALT = ChoiceParameterConfig(
    name="salt", values=["KBr", "LiF"], parameter_type="str", is_ordered=False
)


def derived(expression, name="rest", kind="float"):
    return DerivedParameterConfig(
        name=name, expression_str=expression, parameter_type=kind
    )


def client_of(parameters, pool, constraints=()):
    client = Client()
    client.configure_experiment(
        parameters=parameters, parameter_constraints=list(constraints), name="grid"
    )
    client.configure_optimization(objective="y")
    model = GaussianProcess(noise_std=0.1, n_initial=2)
    strategy = Strategy(pool, Above(0.5), model=model, batch_size=2)
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    return client


@pytest.mark.parametrize(
    "constraints",
    [["acid + base <= 1"], ["base - 4*acid >= 0.5", "acid <= 0.75"], []],
)
def test_a_grid_leaves_out_what_breaks_a_constraint(constraints):
    parameters = [ACID, BASE, SALT]
    pool = grid_pool(parameters, parameter_constraints=constraints or None)
    whole = grid_pool(parameters).to_frame()
    x, n = whole["acid"], whole["base"]
    if len(constraints) == 1:
        whole = whole[x + n <= 1 + 1e-9]
    elif constraints:
        whole = whole[(n - 4 * x >= 0.5 - 1e-9) & (x <= 0.75 + 1e-9)]
    kept = whole.reset_index(drop=True)
    pd.testing.assert_frame_equal(pool.to_frame(), kept)
    assert pool.X[:, 0].tolist() == kept["acid"].tolist()
    client = client_of(parameters, pool, constraints)
    assert len(client.get_next_trials(2)) == 2


def test_rows_outside_constraints_are_told_of_the_argument():
    client = client_of([ACID, BASE], grid_pool([ACID, BASE]), ["acid + base <= 1"])
    with pytest.raises(ValueError, match=r"`grid_pool\(\.\.\., parameter_constraints="):
        client.get_next_trials(1)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ("acid <= 1", r"but got 'acid <= 1'\. Write a list"),
        (3, r"but got 3\. Write a list"),
        (["acid + heat <= 1"], r"the numbers, \['acid', 'base'\], .*\['heat'\]"),
        (["salt <= 1"], r"the numbers, \['acid', 'base'\], .*\['salt'\]"),
        (["acid"], "but got 'acid': "),
        (["acid ** 2 <= 1"], "but got .*: Only linear"),
        ([3], "but got 3: "),
        (
            ["acid >= 3"],
            r"none fulfils all of \['acid >= 3'\].*correct the constraints",
        ),
    ],
)
def test_what_is_no_constraint_is_refused(constraints, message):
    with pytest.raises(ValueError, match=message):
        grid_pool([ACID, BASE, SALT], parameter_constraints=constraints)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("has_columns", [True, False])
def test_derived_parameters_follow_the_others(has_columns, tmp_path):
    rest, copy = derived("1.0 - acid"), derived("salt", "label", "str")
    parameters = [ACID, SALT, rest, copy]
    pool = grid_pool(parameters)
    assert pool.names == ("acid", "salt=KBr", "salt=LiF")
    assert pool.to_frame()["rest"].tolist() == (1 - pool.X[:, 0]).tolist()
    assert pool.to_frame()["label"].tolist() == pool.to_frame()["salt"].tolist()
    if not has_columns:  # the space says what they are
        pool = grid_pool([ACID, SALT])
    client = client_of(parameters, pool)
    off = {"acid": 0.33, "salt": "LiF", "rest": 1.0 - 0.33, "label": "LiF"}
    client.complete_trial(client.attach_trial(off), {"y": 0.5})
    for trial, asked in client.get_next_trials(2).items():
        assert asked["rest"] == pytest.approx(1 - asked["acid"])
        assert asked["label"] == asked["salt"]
        client.complete_trial(trial, {"y": asked["acid"]})
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    assert worlds.same_state(worlds.state_of(loaded), worlds.state_of(client))
    (point,) = worlds.node_of(client).ledger(client._experiment).points
    assert point.x == (0.33, 0.0, 1.0)
    assert client.predict([off]) == loaded.predict([off])


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("acid * base", "but got 'acid \\* base': Only linear"),
        ("1", "but got '1': .*at least one parameter"),
        ("1 - heat", r"of others, \['acid', 'base'\], but it needs \['heat'\]"),
    ],
)
def test_what_is_no_derived_parameter_is_refused(expression, message):
    with pytest.raises(ValueError, match=message):
        grid_pool([ACID, BASE, derived(expression)])


def test_dependent_parameters_are_refused_by_name():
    kind = ChoiceParameterConfig(
        name="kind",
        values=["acid", "base"],
        parameter_type="str",
        is_ordered=False,
        dependent_parameters={"acid": ["acid"], "base": ["base"]},
    )
    message = "'kind' has `dependent_parameters`"
    with pytest.raises(ValueError, match=message):
        grid_pool([kind, ACID, BASE])
    flat = dataclasses.replace(kind, dependent_parameters=None)
    pool = grid_pool([flat, ACID, BASE], 2)
    with pytest.raises(ValueError, match=message):
        client_of([kind, ACID, BASE], pool).get_next_trials(1)
    # Both ways that the message names.
    assert client_of([flat, ACID, BASE], pool).get_next_trials(1)
    rows = pd.DataFrame({"kind": ["acid", "base"], "acid": [0.5, None]})
    own = Pool([[0.5], [1.0]], table=rows)
    assert client_of(pool_parameters(own), own).get_next_trials(1)


@pytest.mark.some(2)
@pytest.mark.parametrize("values", [[1.0, 2.0, 5.0], [True, False], ["b", "a"]])
def test_choices_without_order_are_levels_whatever_they_are(values):
    kind = type(values[0]).__name__
    parameters = [
        RangeParameterConfig(name="x", bounds=(0.0, 1.0), parameter_type="float"),
        ChoiceParameterConfig(
            name="c", values=values, parameter_type=kind, is_ordered=False
        ),
    ]
    pool = grid_pool(parameters, 5)
    assert pool.names[1:] == tuple(f"c={value}" for value in sorted(values, key=str))
    client = Client()
    client.configure_experiment(parameters=parameters, name="test")
    client.configure_optimization(objective="y")
    strategy = Strategy(pool, Above(0.5), batch_size=3)
    client.set_generation_strategy(level_set_generation_strategy(strategy))
    old = client.attach_trial({"x": 0.13, "c": values[1]})  # no row of the grid
    client.complete_trial(old, {"y": (0.2, 0.1)})
    assert len(client.get_next_trials(2)) == 2
    node = level_set_node(generation_strategy_of(client))
    state = node.state(client._experiment)
    history = state.strategy.model.history
    assert torch.equal(history.X, pool.points([{"x": 0.13, "c": values[1]}]))
