r"""What the cases of ``botorch_lse.ax`` share."""

from pathlib import Path

import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import (
    ChoiceParameterConfig,
    RangeParameterConfig,
)
from ax.exceptions.core import AxError
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from gpytorch.kernels import RBFKernel

import botorch_lse.ax
from botorch_lse import Pool
from botorch_lse.acquisition import Straddle
from botorch_lse.ax import (
    acquisition_generator_spec,
    grid_pool,
    level_set_generation_strategy,
)
from botorch_lse.strategies import LSEStrategy
from tests.remedies import Remedies

from ..worlds import NOISE

PACKAGE = Path(botorch_lse.ax.__file__).parent
REMEDIES = Remedies(sorted(PACKAGE.glob("*.py")), (AxError,))
case = REMEDIES.case


# --- what the cases share ---------------------------------------------------------

HEAT = RangeParameterConfig(name="heat", bounds=(0, 1), parameter_type="float")
DOSE = RangeParameterConfig(name="dose", bounds=(0, 1), parameter_type="float")
SALT = ChoiceParameterConfig(
    name="salt", values=["KBr", "LiF"], parameter_type="str", is_ordered=False
)


def fixed(pool, **options):
    r"""A strategy on a pool of any columns, quick to ask."""
    settings = {"threshold": 0.5, "model": RBFKernel(), "noise_std": NOISE, "beta": 4.0}
    return LSEStrategy(pool, **{**settings, "batch_size": 2, **options})


def on(parameters, strategy, objective="y", constraints=(), **options):
    client = Client()
    client.configure_experiment(
        parameters=parameters, name="test", parameter_constraints=list(constraints)
    )
    client.configure_optimization(objective=objective)
    use(client, strategy, **options)
    return client


def use(client, strategy, **options):
    client.set_generation_strategy(level_set_generation_strategy(strategy, **options))


def complete(client, trials, value=(0.3, NOISE)):
    for trial in trials:
        client.complete_trial(trial, {"y": value})


def goes_on(client, n=1):
    r"""Whether the client gives out trials."""
    return len(client.get_next_trials(n)) > 0


def modular(spec, objective="y", n=2, parameters=(HEAT, DOSE)):
    sobol = GenerationNode(
        name="Sobol",
        generator_specs=[GeneratorSpec(Generators.SOBOL, {"seed": 1})],
        transition_criteria=[MinTrials(threshold=2, transition_to="LSE")],
    )
    nodes = [sobol, GenerationNode(name="LSE", generator_specs=[spec])]
    client = Client(random_seed=0)
    client.configure_experiment(parameters=list(parameters), name="modular")
    client.configure_optimization(objective=objective)
    client.set_generation_strategy(GenerationStrategy(nodes=nodes, name="both"))
    for _ in range(n):
        ((trial, point),) = client.get_next_trials(1).items()
        client.complete_trial(trial, {"y": (point["heat"], 0.1)})
    return client


STRADDLE = acquisition_generator_spec(Straddle, {"threshold": 0.5})


def of_features():
    r"""Rows with features that other points do not have, and a trial elsewhere."""
    pool = grid_pool([HEAT, SALT], 3)
    odd = torch.cat((pool.X, pool.X[:, :1].square()), dim=-1)
    own = Pool(odd, names=(*pool.names, "squared"), table=pool.table)
    return own, {"heat": 0.3, "salt": "KBr"}
