r"""Tables and cards after Ax's modular generator, where there is no pool."""

import math

import pandas as pd
import pytest
import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import (
    ChoiceParameterConfig,
    DerivedParameterConfig,
    RangeParameterConfig,
)
from ax.core import (
    Arm,
    ChoiceParameter,
    Data,
    FixedParameter,
    ParameterConstraint,
    ParameterType,
    RangeParameter,
    SearchSpace,
)
from ax.core.parameter import DerivedParameter
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from botorch_lse import Above, Below
from botorch_lse.acquisition import ExpectedFeasibility, Straddle
from botorch_lse.ax import ModelAnalysis, acquisition_generator_spec, level_set
from botorch_lse.ax.modular import acquisition_options, sobol_points

PARAMETERS = [
    RangeParameterConfig(name="x", bounds=(0, 1), parameter_type="float"),
    ChoiceParameterConfig(
        name="mix", values=["a", "b"], parameter_type="str", is_ordered=False
    ),
]


def truth(parameters):
    return 4 * parameters["x"] + (1.0 if parameters["mix"] == "b" else 0.0)


def client_of(n=9):
    spec = acquisition_generator_spec(Straddle, {"threshold": 2.5, "beta": 4.0})
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, {"seed": 0})],
        transition_criteria=[MinTrials(threshold=8, transition_to="Straddle")],
    )
    nodes = [sobol, GenerationNode(name="Straddle", generator_specs=[spec])]
    client = Client(random_seed=0)
    client.configure_experiment(parameters=PARAMETERS, name="modular")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(GenerationStrategy(nodes=nodes, name="both"))
    for _ in range(n):
        for trial, parameters in client.get_next_trials(1).items():
            client.complete_trial(trial, {"y": (truth(parameters), 0.05)})
    return client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ax's own model
def test_there_is_a_table_and_a_card_on_points_of_the_space():
    client = client_of()
    client._generation_strategy.current_node._fit(client._experiment)  # for `predict`
    table = level_set(client)
    assert len(table) == 1024 + 9
    assert table["n_observations"].tolist() == [0] * 1024 + [1] * 9
    assert {*table["mix"]} == {"a", "b"}
    wanted = torch.tensor([truth(r) for r in table.to_dict("records")]) > 2.5
    above, below = (
        torch.tensor((table["side"] == s).to_numpy()) for s in ("above", "below")
    )
    assert float((above & ~wanted).double().mean()) < 0.02
    assert float((below & wanted).double().mean()) < 0.02
    assert float((above | below).double().mean()) > 0.9
    # The bounds are the model's predictions and the acquisition function's width.
    for i in (0, 500, 1030):
        row = table.iloc[i]
        ((mean, sem),) = client.predict([{"x": row["x"], "mix": row["mix"]}])[
            0
        ].values()
        assert row["mean"] == pytest.approx(mean, abs=1e-6)
        assert row["upper"] == pytest.approx(mean + 2 * sem, abs=1e-6)
    assert "No confidence is claimed" in table.attrs["guarantee"]
    (card,) = client.compute_analyses([ModelAnalysis(n=64)], display=False)
    assert "Of 73 points of the search space" in card.subtitle
    assert len(card.df) == 73
    (other,) = client.compute_analyses([ModelAnalysis(0.5, n=64)], display=False)
    assert " above 0.5, " in other.subtitle
    assert other.title == "Level set by the model: y above 0.5"
    assert other.get_figure().layout.title.text == other.title


def fitted(options, told, derived=()):
    r"""An experiment on a line, whose model knows the first three values."""
    spec = acquisition_generator_spec(Straddle, options)
    node = GenerationNode(name="Straddle", generator_specs=[spec])
    client = Client(random_seed=0)
    client.configure_experiment(parameters=[*PARAMETERS[:1], *derived], name="line")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(GenerationStrategy(nodes=[node], name="one"))
    for n, (x, y) in enumerate(told):
        point = {"x": x, **{p.name: 1 - x for p in derived}}
        client.complete_trial(client.attach_trial(point), {"y": (y, 0.01)})
        if n == 2:
            node._fit(client._experiment)
    return client


STEEP = [(k / 8, 10 * k / 8 - 5) for k in range(9)]
LINE = [(0.1, 0.0), (0.2, 0.0), (0.3, 0.0), *STEEP]


@pytest.mark.filterwarnings("ignore")
def test_the_answer_knows_what_came_since_the_last_trial_was_asked_for():
    client = fitted({"threshold": 1.5}, LINE)
    before, adapter = client.predict([{"x": 1.0}]), client._generation_strategy.adapter
    (row,) = level_set(client).query("x == 1 and n_observations > 0").to_dict("records")
    assert row["side"] == "above"
    assert row["mean"] == pytest.approx(5.0, abs=0.1)
    assert client._generation_strategy.adapter is adapter  # trials come as without it
    assert client.predict([{"x": 1.0}]) == before
    client.attach_data(11, {"y": (-5.0, 0.01)})  # a value is corrected
    (row,) = level_set(client).query("x == 1 and n_observations > 0").to_dict("records")
    assert row["side"] == "below"


def to_sobol_and_back():
    r"""A run that has left the node of the acquisition function."""
    sobol, again = (GeneratorSpec(Generators.SOBOL, {"seed": k}) for k in (0, 1))
    spec = acquisition_generator_spec(ExpectedFeasibility, {"threshold": 0.5})
    nodes = [
        GenerationNode(
            name="first",
            generator_specs=[sobol],
            transition_criteria=[MinTrials(threshold=3, transition_to="ours")],
        ),
        GenerationNode(
            name="ours",
            generator_specs=[spec],
            transition_criteria=[MinTrials(threshold=1, transition_to="last")],
        ),
        GenerationNode(name="last", generator_specs=[again]),
    ]
    client = Client(random_seed=0)
    client.configure_experiment(parameters=PARAMETERS[:1], name="back")
    client.configure_optimization(objective="y")
    client.set_generation_strategy(GenerationStrategy(nodes=nodes, name="back"))
    for _ in range(5):
        for trial, parameters in client.get_next_trials(1).items():
            client.complete_trial(trial, {"y": (parameters["x"], 0.01)})
    assert client._generation_strategy.current_node_name == "last"
    return client


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_loaded", [pytest.param(True, marks=pytest.mark.slow), 0])
def test_the_answer_outlives_the_node_of_the_acquisition_function(is_loaded, tmp_path):
    client = to_sobol_and_back()
    if is_loaded:
        client.save_to_json_file(str(tmp_path / "run.json"))
        client = Client.load_from_json_file(str(tmp_path / "run.json"))
    table = level_set(client)  # by a model of all data
    assert table["n_observations"].sum() == 5
    assert (table["mean"] - table["x"]).abs().max() < 0.1
    given = client._experiment, client._generation_strategy
    assert ModelAnalysis(0.5, n=8).validate_applicable_state(*given) is None


@pytest.mark.filterwarnings("ignore")
def test_values_that_the_model_leaves_out_do_not_count_as_measured():
    client = fitted({"threshold": 0.5}, STEEP)
    wanted = level_set(client)
    for x, is_failed in ((0.3, False), (0.4, True)):
        trial = client.attach_trial({"x": x})
        client.attach_data(trial, {"y": (99.0, 0.01)})
        mark = client.mark_trial_failed if is_failed else client.mark_trial_abandoned
        mark(trial)
    trial = client.attach_trial({"x": 0.6})  # stopped before its last value
    client.attach_data(trial, {"y": (1.0, 0.01)}, progression=3)
    client.mark_trial_early_stopped(trial)
    arms = client._experiment.new_batch_trial()
    arms.add_arms_and_weights([Arm({"x": 0.7}, "kept"), Arm({"x": 0.8}, "gone")])
    arms.mark_running(no_runner_required=True)
    arms.mark_arm_abandoned("gone")
    arms.mark_completed()
    rows = [
        {"trial_index": arms.index, "arm_name": name, "metric_name": "y",
         "metric_signature": "y", "mean": 2.0, "sem": 0.01}
        for name in ("kept", "gone")
    ]  # fmt: skip
    client._experiment.attach_data(Data(df=pd.DataFrame(rows)))
    told = level_set(client).query("n_observations > 0")["x"].tolist()
    assert told == [*wanted.query("n_observations > 0")["x"], 0.7]


@pytest.mark.filterwarnings("ignore")
def test_what_early_stopped_trials_had_come_to_is_no_final_value():
    client = fitted({"threshold": 0.5}, [])
    for k in range(9):
        trial, last = client.attach_trial({"x": k / 8}), 4 if k % 3 else 8
        for step in range(2, last + 1, 2):
            told = {"y": (k / 8 * step / 8, 0.01)}
            client.attach_data(trial, told, progression=step)
        if last == 8:
            client.complete_trial(trial)
        else:
            client.mark_trial_early_stopped(trial)
    (running,) = client.get_next_trials(1)
    client.attach_data(running, {"y": (0.0, 0.01)}, progression=1)
    table = level_set(client)
    assert table["n_observations"].sum() == 3
    assert (table["mean"] - table["x"]).abs().max() < 0.2  # .5 if they were final
    decided = table[table["side"] != "undecided"]
    assert len(decided) > 512
    assert ((decided["side"] == "above") == (decided["x"] > 0.5)).all()


@pytest.mark.filterwarnings("ignore")
def test_derived_parameters_are_computed_and_span_nothing():
    rest = DerivedParameterConfig(
        name="rest", expression_str="1 - x", parameter_type="float"
    )
    client = fitted({"threshold": 0.5}, LINE, [rest])
    table, wanted = level_set(client), level_set(fitted({"threshold": 0.5}, LINE))
    assert (table["x"] + table["rest"] - 1).abs().max() < 1e-9
    assert table["side"].equals(wanted["side"])
    (card,) = client.compute_analyses([ModelAnalysis(n=64)], display=False)
    assert card.get_figure().layout.xaxis.title.text == "x"  # a line, no square
    assert len(client.get_next_trials(1)) == 1


@pytest.mark.filterwarnings("ignore")
def test_the_level_is_that_of_the_current_node():
    def node(name, level, following):
        spec = acquisition_generator_spec(Straddle, {"threshold": level})
        rule = [MinTrials(threshold=2, transition_to=following)] if following else []
        return GenerationNode(
            name=name, generator_specs=[spec], transition_criteria=rule
        )

    nodes = [node("first", 0.25, "second"), node("second", 0.75, None)]
    strategy = GenerationStrategy(nodes=nodes, name="two")
    assert acquisition_options(strategy) == {"threshold": 0.25}
    client = fitted({"threshold": 0.5}, STEEP[:4])
    client.set_generation_strategy(strategy)
    for wanted in (0.25, 0.25, 0.75):
        (trial,) = client.get_next_trials(1)
        assert acquisition_options(strategy) == {"threshold": wanted}
        client.complete_trial(trial, {"y": (0.0, 0.01)})
    (card,) = client.compute_analyses([ModelAnalysis(n=8)], display=False)
    assert card.title == "Level set by the model: y above 0.75"


@pytest.mark.filterwarnings("ignore")
def test_a_goal_of_one_level_is_a_level():
    wanted = level_set(fitted({"threshold": 0.5, "beta": 4.0}, STEEP))
    for goal in (Above(0.5), Below(0.5)):
        client = fitted({"goal": goal, "beta": 4.0}, STEEP)
        assert level_set(client).equals(wanted)
        given = client._experiment, client._generation_strategy
        assert ModelAnalysis(n=8).validate_applicable_state(*given) is None
    with pytest.raises(ValueError, match=r"`goal` to be given, .*got both"):
        acquisition_generator_spec(Straddle, {"threshold": 0.5, "goal": Above(0.3)})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("goal", [Above(0.5), Above(0.5) & ~Below(0.1) | Above(9.0)])
def test_a_stored_specification_has_its_goal(goal, tmp_path) -> None:
    client = fitted({"goal": goal}, STEEP)
    client.save_to_json_file(str(tmp_path / "run.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "run.json"))
    (node,) = loaded._generation_strategy.nodes_by_name.values()
    options = node.generator_specs[0].generator_kwargs["botorch_acqf_options"]
    assert options["goal"] == goal
    assert len(loaded.get_next_trials(1)) == 1


@pytest.mark.filterwarnings("ignore")
def test_before_there_is_a_model_it_says_so():
    client = client_of(2)
    with pytest.raises(ValueError, match="whose model predicts 'y'"):
        level_set(client)
    (card,) = client.compute_analyses([ModelAnalysis()], display=False)
    assert "Complete 6 more trials, then ask" in str(card.blob)


@pytest.mark.slow  # Ax's own sensitivity analysis
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", [client_of, to_sobol_and_back])
def test_the_overview_begins_with_the_models_answer(run):
    (overview,) = run().compute_analyses(display=False)
    assert overview.children[0].title == "The answer by the model"


def test_sobol_points_fill_the_space_on_its_scales():
    space = SearchSpace(
        [
            RangeParameter("dose", ParameterType.FLOAT, 1, 100, log_scale=True),
            RangeParameter("n", ParameterType.INT, 1, 4),
            ChoiceParameter(
                "mix", ParameterType.STRING, ["a", "b", "c"], is_ordered=False,
                sort_values=False,
            ),
            FixedParameter("lab", ParameterType.STRING, "north"),
            RangeParameter("k", ParameterType.INT, 1, 9, log_scale=True),
            DerivedParameter("total", ParameterType.FLOAT, "2 * dose + n"),
            DerivedParameter("same", ParameterType.STRING, "mix"),
        ]
    )  # fmt: skip
    points = sobol_points(space, 1024)
    assert len(points) == 1024
    assert all(space.check_membership(p) for p in points)
    assert sum(p["dose"] < 10 for p in points) == pytest.approx(512, abs=8)
    for value in (1, 2, 3, 4):
        assert sum(p["n"] == value for p in points) == pytest.approx(256, abs=8)
    for value in "abc":
        assert sum(p["mix"] == value for p in points) == pytest.approx(1024 / 3, abs=8)
    assert {p["lab"] for p in points} == {"north"}
    assert all(p["same"] == p["mix"] for p in points)
    assert all(p["total"] == pytest.approx(2 * p["dose"] + p["n"]) for p in points)
    # From 0.5 to 9.5 on a log scale: 1 has what is below 1.5, 9 what is above 8.5.
    for value, share in ((1, math.log(3)), (9, math.log(9.5 / 8.5))):
        wanted = 1024 * share / math.log(19)
        assert sum(p["k"] == value for p in points) == pytest.approx(wanted, abs=8)
    assert points == sobol_points(space, 1024)
    assert points != sobol_points(space, 1024, seed=1)


def test_constraints_hold_or_are_said_to_leave_nothing():
    pair = [RangeParameter(name, ParameterType.FLOAT, 0, 1) for name in "xy"]
    half = SearchSpace(pair, [ParameterConstraint(inequality="x + y <= 0.5")])
    points = sobol_points(half, 200)
    assert len(points) == 200
    assert max(p["x"] + p["y"] for p in points) <= 0.5
    none = SearchSpace(pair, [ParameterConstraint(inequality="x + y <= 0.0001")])
    with pytest.raises(ValueError, match="Predict points of your own"):
        sobol_points(none, 20)
