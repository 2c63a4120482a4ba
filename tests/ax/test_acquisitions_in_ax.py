import warnings
from inspect import signature

import pandas as pd
import pytest
import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.storage.botorch_modular_registry import ACQUISITION_FUNCTION_REGISTRY
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.exceptions.errors import UnsupportedError

from botorch_lse import Pool, acquisition, strategies
from botorch_lse.acquisition import (
    ImplicitStraddle,
    MaxVariance,
    Straddle,
    qTruVaR,
)
from botorch_lse.ax import acquisition_generator_spec, level_set, model_space
from botorch_lse.ax.acquisitions import register_acquisition
from botorch_lse.strategies import LSEStrategy
from tests.registry import ONE_POINT

N_SOBOL = 5
UNIT = [
    RangeParameterConfig(name=name, bounds=(0.0, 2.0), parameter_type="float")
    for name in ("a", "b")
]


def value(parameters):
    r"""Metres, far from standardised: the level 70 runs across the middle."""
    return 20 + 45 * parameters["a"] + 5 * parameters["b"]


def generation_strategy(spec):
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 1})],
        transition_criteria=[
            MinTrials(
                threshold=N_SOBOL, transition_to="LSE", use_all_trials_in_exp=True
            )
        ],
    )
    node = GenerationNode(name="LSE", generator_specs=[spec])
    return GenerationStrategy(nodes=[sobol, node])


def modular_client(spec, objective="y", parameters=UNIT, evaluate=value, n=N_SOBOL):
    client = Client(random_seed=0)
    client.configure_experiment(parameters=parameters, name="modular")
    client.configure_optimization(objective=objective)
    client.set_generation_strategy(generation_strategy(spec))
    for _ in range(n):
        for trial, point in client.get_next_trials(1).items():
            client.complete_trial(trial, {"y": (evaluate(point), 1.0)})
    return client


POINTS = 2 * torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
STRADDLE = acquisition_generator_spec(Straddle, {"threshold": 70.0, "beta": 4.0})


def test_every_exported_class_is_registered():
    for name in acquisition.__all__:
        exported = getattr(acquisition, name)
        if issubclass(exported, AcquisitionFunction):
            assert ACQUISITION_FUNCTION_REGISTRY[exported] == name


def test_a_name_that_is_taken_is_refused():
    class Straddle(AcquisitionFunction):
        pass

    with pytest.raises(ValueError, match="name 'Straddle' to be free"):
        register_acquisition(Straddle)
    register_acquisition(acquisition.Straddle)  # again is fine


@pytest.mark.slow
def test_several_concurrent_trials_near_the_level_in_metric_units():
    client = modular_client(STRADDLE)
    trials = client.get_next_trials(3)
    assert len(trials) == 3
    points = torch.tensor([[p["a"], p["b"]] for p in trials.values()])
    assert torch.pdist(points).min() > 0.05  # they know of each other
    for trial, point in trials.items():
        assert abs(value(point) - 70) < 40
        client.complete_trial(trial, {"y": (value(point), 1.0)})
    assert len(client.get_next_trials(2)) == 2


@pytest.mark.slow
def test_the_candidate_is_the_best_of_an_independent_posterior():
    client = modular_client(STRADDLE)
    ((_, point),) = client.get_next_trials(1).items()
    model = client._generation_strategy.adapter.generator.surrogate.model
    x = torch.linspace(0, 2, 41, dtype=torch.float64)
    X = torch.cartesian_prod(x, x)
    at = torch.tensor([[point["a"], point["b"]]], dtype=torch.float64)
    with torch.no_grad():
        posterior, here = model.posterior(X), model.posterior(at)
    score = lambda p: 2 * p.variance.sqrt() - (p.mean - 70.0).abs()  # noqa: E731
    assert float(score(here)) >= float(score(posterior).max()) - 1e-3
    truth = 20 + 45 * X[:, 0] + 5 * X[:, 1]
    assert float((posterior.mean.squeeze(-1) - truth).abs().mean()) < 10  # metres


@pytest.mark.slow
def test_the_objectives_sign_does_not_matter():
    up, down = modular_client(STRADDLE, "y"), modular_client(STRADDLE, "-y")
    ((_, one),) = up.get_next_trials(1).items()
    ((_, other),) = down.get_next_trials(1).items()
    assert one == pytest.approx(other, abs=1e-4)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("objective", ["y", "-y"])
@pytest.mark.parametrize("constraints", [["w <= 0.9"], ["w >= -5"], []])
def test_neither_the_sign_nor_constraints_move_the_level(objective, constraints):
    client = modular_client(STRADDLE)
    for trial in client._experiment.trials:
        client.attach_data(trial, {"w": (0.3 + 0.1 * trial, 0.1)})
    client.configure_optimization(objective, outcome_constraints=constraints)
    ((_, point),) = client.get_next_trials(1).items()
    plain = modular_client(STRADDLE)
    ((_, wanted),) = plain.get_next_trials(1).items()
    assert point == pytest.approx(wanted, abs=1e-2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ax's own model
def test_an_objective_of_several_metrics_is_refused_with_the_way_out():
    client = modular_client(STRADDLE)
    for trial in client._experiment.trials:
        client.attach_data(trial, {"w": (0.3 + 0.1 * trial, 0.1)})
    client.configure_optimization("y, -w")
    with pytest.raises(UnsupportedError, match=r"`client.configure_tracking_metrics"):
        client.get_next_trials(1)
    client.configure_optimization(objective="y")
    client.configure_tracking_metrics(["w"])
    spec = acquisition_generator_spec(Straddle, {"threshold": 70.0, "beta": 4.0})
    client.set_generation_strategy(generation_strategy(spec))  # Ax keeps fits in specs
    assert client.get_next_trials(1)


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize(
    ("acqf_class", "options"),
    [
        (case.cls, case.options(POINTS, 70.0))
        for case in ONE_POINT
        if case.cls is not Straddle
    ]
    + [(qTruVaR, {"targets": POINTS, "beta": 4.0, "eta": 0.1, "noise_var": 0.01})],
)
def test_the_other_classes_give_concurrent_trials(acqf_class, options):
    client = modular_client(acquisition_generator_spec(acqf_class, options))
    assert len(client.get_next_trials(2)) == 2


@pytest.mark.slow
def test_saving_and_loading_keeps_class_and_threshold(tmp_path):
    path = str(tmp_path / "client.json")
    modular_client(STRADDLE).save_to_json_file(path)
    asked = []
    for _ in range(2):
        client = Client.load_from_json_file(path)
        client._random_seed = 0  # Ax does not store it
        ((_, point),) = client.get_next_trials(1).items()
        asked.append(point)
    assert asked[0] == asked[1]
    (spec,) = client._generation_strategy.nodes_by_name["LSE"].generator_specs
    assert spec.generator_kwargs["botorch_acqf_class"] is Straddle
    assert spec.generator_kwargs["botorch_acqf_options"]["threshold"] == 70.0


# --- the model's space ----------------------------------------------------------------

MIXED = [
    RangeParameterConfig(
        name="dose", bounds=(1e-3, 10.0), parameter_type="float", scaling="log"
    ),
    ChoiceParameterConfig(
        name="soil",
        values=["clay", "sand", "silt"],
        parameter_type="str",
        is_ordered=False,
    ),
    RangeParameterConfig(name="layers", bounds=(1, 4), parameter_type="int"),
]


def mixed_value(parameters):
    soil = {"clay": 1.0, "sand": 2.0, "silt": 3.0}[parameters["soil"]]
    return soil * (3 + torch.tensor(parameters["dose"]).log10().item())


@pytest.mark.slow
def test_points_pass_the_transforms_of_the_data():
    client = modular_client(STRADDLE, parameters=MIXED, evaluate=mixed_value)
    client.get_next_trials(1)
    experiment = client._experiment
    measured = [experiment.trials[i].arm.parameters for i in range(N_SOBOL)]
    ours = model_space(experiment.search_space, pd.DataFrame(measured))
    surrogate = client._generation_strategy.adapter.generator.surrogate
    (theirs,) = surrogate.Xs
    assert ours.shape == theirs.shape
    assert torch.allclose(ours, theirs, atol=1e-12)


@pytest.mark.slow
def test_implicit_straddle_on_a_log_scale_and_a_choice():
    client = modular_client(STRADDLE, parameters=MIXED, evaluate=mixed_value)
    table = pd.DataFrame(
        [
            {"dose": dose, "soil": soil, "layers": 2}
            for dose in (0.001, 0.1, 10.0)
            for soil in ("clay", "sand", "silt")
        ]
    )
    pool = model_space(client._experiment.search_space, table)
    spec = acquisition_generator_spec(ImplicitStraddle, {"omega": 0.5, "pool": pool})
    implicit = modular_client(spec, parameters=MIXED, evaluate=mixed_value)
    assert len(implicit.get_next_trials(2)) == 2


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize(
    ("acqf_class", "name", "options"),
    [
        (ImplicitStraddle, "pool", {"omega": 0.5}),
        (qTruVaR, "targets", {"beta": 4.0, "eta": 0.0, "noise_var": 0.01}),
    ],
)
def test_a_pool_in_the_users_space_is_refused_and_the_remedy_works(
    acqf_class, name, options
):
    pool = Pool(2 * torch.rand(6, 2), names=["a", "b"])
    message = rf"`{name}` to be a tensor.*got Pool. Write `model_space\(search_space, "
    for given in (pool, pool.to_frame()):
        shown = message.replace("Pool", type(given).__name__)
        with pytest.raises(ValueError, match=shown):
            acquisition_generator_spec(acqf_class, {**options, name: given})
    space = modular_client(STRADDLE)._experiment.search_space
    points = model_space(space, pool.to_frame())
    spec = acquisition_generator_spec(acqf_class, {**options, name: points})
    assert len(modular_client(spec).get_next_trials(1)) == 1


def test_points_outside_the_search_space_are_refused():
    space = modular_client(STRADDLE)._experiment.search_space
    with pytest.raises(ValueError, match="row 1 does not"):
        model_space(space, pd.DataFrame({"a": [0.1, 9.0], "b": [0.1, 0.2]}))
    with pytest.raises(ValueError, match=r"\['b'\] are missing"):
        model_space(space, pd.DataFrame({"a": [0.1]}))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ax's own model
def test_a_modular_generator_says_when_it_will_have_a_level_set_table():
    client = modular_client(STRADDLE, n=2)
    ask = r"`client\.get_next_trials\(1\)`"
    with pytest.raises(ValueError, match=rf"Complete 3 more trials, then .*{ask}"):
        level_set(client)
    for _ in range(3):
        ((trial, parameters),) = client.get_next_trials(1).items()
        client.complete_trial(trial, {"y": (value(parameters), 1.0)})
    with pytest.raises(ValueError, match=rf"none yet\. Ask for the next trial: {ask}"):
        level_set(client)
    client.get_next_trials(1)
    assert len(level_set(client)) > 1024


def test_a_rule_is_told_from_the_acquisition_class_of_its_name():
    message = r"the class Straddle.*`from botorch_lse.acquisition import Straddle`"
    with pytest.raises(ValueError, match=message):
        acquisition_generator_spec(strategies.Straddle, {"threshold": 0.5})


@pytest.mark.some(0, slow=3)
@pytest.mark.filterwarnings("ignore")  # of Ax's own model
@pytest.mark.parametrize("options", [{"acquisition_options": {"threshold": 0.7}}, {}])
def test_options_that_do_not_arrive_lead_to_our_specification(options):
    spec = GeneratorSpec(
        Generators.BOTORCH_MODULAR,
        generator_kwargs={"botorch_acqf_class": Straddle, **options},
    )
    client = modular_client(spec)
    message = (
        r"options with \['threshold'\].*`botorch_lse\.ax\.acquisition_generator_spec\("
        r'Straddle, \{"threshold": \.\.\.\}\)`'
    )
    with pytest.raises(ValueError, match=message):
        client.get_next_trials(1)
    assert modular_client(STRADDLE).get_next_trials(1)


@pytest.mark.slow
def test_a_modular_generator_without_a_level_has_no_table():
    spec = acquisition_generator_spec(MaxVariance, {})  # which has no level
    with pytest.raises(ValueError, match="to hold a LevelSetNode"):
        level_set(modular_client(spec))


@pytest.mark.parametrize("bad", [dict, LSEStrategy, "Straddle", Straddle.forward])
def test_only_acquisition_classes_make_a_generator(bad):
    message = "`acqf_class` to be an acquisition class such as `Straddle`, but got"
    with pytest.raises(ValueError, match=message):
        acquisition_generator_spec(bad, {})


@pytest.mark.parametrize("options", [None, 3, [("threshold", 1.0)]])
def test_options_are_a_dictionary(options):
    with pytest.raises(ValueError, match=r"`options` to be a dictionary.*`\{\}`"):
        acquisition_generator_spec(Straddle, options)


def test_a_strategys_acquisition_names_its_own_way():
    with pytest.raises(ValueError, match=r"level_set_generation_strategy"):
        acquisition_generator_spec(LSEStrategy, {})


def test_the_model_space_is_made_of_a_search_space_and_a_table():
    client = Client()
    client.configure_experiment(parameters=UNIT, name="unit")
    space = client._experiment.search_space
    for table in ([0.1, 0.2], None, torch.zeros(2, 2)):
        with pytest.raises(ValueError, match=r"`table` to be a pandas DataFrame.*got"):
            model_space(space, table)
    with pytest.raises(ValueError, match=r"`search_space` to be .*but got list"):
        model_space(UNIT, pd.DataFrame({"a": [0.1], "b": [0.1]}))


@pytest.mark.parametrize(
    ("acqf_class", "options", "message"),
    [
        (
            Straddle,
            {"threshold": 1.0, "kappa": 2.0},
            r"Straddle among .*got \['kappa'\]",
        ),
        (Straddle, {"threshold": 1.0, "model": None}, r"but got \['model'\]"),
        (Straddle, {}, r"to hold \['threshold'\], which Straddle needs, but got \[\]"),
    ],
)
def test_arguments_that_a_class_does_not_take_are_named_at_once(
    acqf_class, options, message
):
    with pytest.raises(ValueError, match=message):
        acquisition_generator_spec(acqf_class, options)


def test_a_class_of_botorch_is_left_to_its_own_input_constructor():
    assert acquisition_generator_spec(qLogExpectedImprovement, {"eta": 1e-3})


def test_every_class_takes_by_ax_what_its_constructor_names():
    for name in acquisition.__all__:
        cls = getattr(acquisition, name)
        if isinstance(cls, type) and issubclass(cls, AcquisitionFunction):
            assert {"model", "X_pending"} <= set(signature(cls).parameters), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ax's own model
def test_a_level_in_standardised_units_is_warned_of():
    given = {
        "botorch_acqf_class": Straddle,
        "botorch_acqf_options": {"threshold": 70.0},
    }
    spec = GeneratorSpec(Generators.BOTORCH_MODULAR, generator_kwargs=given)
    with pytest.warns(UserWarning, match=r"Ax has standardised them.*acquisition_gene"):
        modular_client(spec).get_next_trials(1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        modular_client(STRADDLE).get_next_trials(1)
    assert not [w for w in caught if "standardised" in str(w.message)]
