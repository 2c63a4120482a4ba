r"""Ax's modular generator builds the design criteria."""

import pytest
import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials

from botorch_lse import Above, Below
from botorch_lse.acquisition import (
    Straddle,
    qExpectedMisclassification,
    qGEGE,
    qHRAGE,
)
from botorch_lse.ax import acquisition_generator_spec
from tests.registry import DESIGNED

from .test_acquisitions_in_ax import UNIT, modular_client, value

TARGETS = 2 * torch.rand(20, 2, generator=torch.Generator().manual_seed(0)).double()


def louder_to_the_east(X):
    return 0.5 + X[..., 0].square()


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("case", [c for c in DESIGNED if not c.has_several_outputs])
def test_concurrent_trials_lower_the_worst_variance(case):
    noise_var = louder_to_the_east if case.cls is qHRAGE else 1.0
    arguments = {**case.options(TARGETS), "noise_var": noise_var}
    client = modular_client(acquisition_generator_spec(case.cls, arguments))
    trials = client.get_next_trials(3)
    points = torch.tensor([[p["a"], p["b"]] for p in trials.values()]).double()
    model = client._generation_strategy.adapter.generator.surrogate.model
    acqf = case.cls(model, **arguments)
    with torch.no_grad():
        chosen = acqf(points)
        generator = torch.Generator().manual_seed(1)
        random = acqf(2 * torch.rand(100, 3, 2, generator=generator).double())
    assert chosen >= random.median()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning:ax.generators.torch.botorch_moo_utils")
@pytest.mark.parametrize(
    "objective", [pytest.param("y, -z", marks=pytest.mark.slow), "y"]
)
def test_several_metrics_lower_the_worst_variance_of_any(objective):
    r"""Two objectives, or one and a tracking metric that the criterion leaves out."""
    weights = [1.0, 0.01] if "z" in objective else None
    arguments = {"targets": TARGETS, "noise_var": 1.0, "output_weights": weights}
    spec = acquisition_generator_spec(qGEGE, arguments)
    client = several_metrics_client(spec, objective)
    trials = client.get_next_trials(3)
    points = torch.tensor([[p["a"], p["b"]] for p in trials.values()]).double()
    surrogate = client._generation_strategy.adapter.generator.surrogate
    model = surrogate.model
    if weights is None:
        model = surrogate.model.subset_output([surrogate.outcomes.index("y")])
    acqf = qGEGE(model, **arguments)
    with torch.no_grad():
        chosen = acqf(points)
        generator = torch.Generator().manual_seed(1)
        random = acqf(2 * torch.rand(100, 3, 2, generator=generator).double())
    assert model.num_outputs == (1 if weights is None else 2)
    assert chosen >= random.median()


@pytest.mark.slow
@pytest.mark.parametrize("acqf_class", [Straddle, qExpectedMisclassification])
def test_a_region_is_about_the_metrics_in_alphabetical_order(acqf_class):
    r"""The constraint's metric, ``cost``, comes before the objective's, ``y``."""
    goal = Below(30.0) & Above(70.0, output=1)
    options = {"goal": goal}
    if acqf_class is qExpectedMisclassification:
        options |= {"targets": TARGETS, "noise_var": 1.0}
    spec = acquisition_generator_spec(acqf_class, options)
    client = several_metrics_client(spec, "y", constraints=["cost <= 30"])
    trials = client.get_next_trials(2)
    surrogate = client._generation_strategy.adapter.generator.surrogate
    assert surrogate.outcomes == ["cost", "y"]
    points = torch.tensor([[p["a"], p["b"]] for p in trials.values()]).double()
    acqf = acqf_class(surrogate.model, **options)
    with torch.no_grad():
        chosen = acqf(points[:1].unsqueeze(0))
        generator = torch.Generator().manual_seed(1)
        random = acqf(2 * torch.rand(100, 1, 2, generator=generator).double())
    assert chosen >= random.quantile(0.9)


def several_metrics_client(spec, objective, constraints=()):
    client = Client(random_seed=0)
    client.configure_experiment(parameters=UNIT, name="several")
    other = "cost" if constraints else "z"
    client.configure_optimization(objective, outcome_constraints=[*constraints])
    if not constraints:
        client.configure_tracking_metrics([other])
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 1})],
        transition_criteria=[MinTrials(threshold=6, transition_to="GEGE")],
    )
    node = GenerationNode(name="GEGE", generator_specs=[spec])
    client.set_generation_strategy(GenerationStrategy(nodes=[sobol, node]))
    for _ in range(6):
        for trial, point in client.get_next_trials(1).items():
            z = 100 * point["b"] ** 2
            client.complete_trial(trial, {"y": (value(point), 1.0), other: (z, 1.0)})
    return client
