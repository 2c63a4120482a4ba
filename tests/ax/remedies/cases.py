r"""Cases: a state, a call that is refused in it, and what its message says to do.

A case is a generator: it builds a state, yields the call that is refused, is sent the
message, and then does what the message says, from the state in which it was said.
"""

import ast
import functools
import traceback
from pathlib import Path

import pytest
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
from botorch.exceptions.errors import BotorchError
from gpytorch.kernels import RBFKernel

import botorch_lse.ax
from botorch_lse import Pool
from botorch_lse.acquisition import Straddle
from botorch_lse.ax import (
    acquisition_generator_spec,
    grid_pool,
    level_set_generation_strategy,
)
from botorch_lse.strategies import (
    LSEStrategy,
)

from ..worlds import (
    NOISE,
)

CASES = {}


def case(site, remedy):
    r"""Register a case: where it raises, and what the message must name."""

    def register(steps):
        CASES[site, steps.__name__] = (steps, remedy)
        return steps

    return register


def refused(call):
    r"""The error of a call, and the place of the package that raised it."""
    with pytest.raises((ValueError, AxError, BotorchError)) as raised:
        call()
    frames = [
        f
        for f in traceback.extract_tb(raised.value.__traceback__)
        if Path(f.filename).parent == PACKAGE
    ]
    return raised.value, site_at(frames[-1].filename, frames[-1].lineno)


PACKAGE = Path(botorch_lse.ax.__file__).parent


@functools.cache
def sites_of(path):
    r"""The places in a file that raise, as (name, first line, last line)."""
    found = []

    def walk(node, name):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                walk(child, f"{name}.{child.name}" if name else child.name)
                continue
            if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call):
                found.append((name, child.lineno, child.end_lineno))
            walk(child, name)

    walk(ast.parse(path.read_text()), "")
    numbers, named = {}, []
    for name, first, last in found:
        numbers[name] = numbers.get(name, 0) + 1
        named.append((f"{path.stem}:{name}#{numbers[name]}", first, last))
    return named


def site_at(file, line):
    for name, first, last in sites_of(Path(file)):
        if first <= line <= last:
            return name
    return f"{Path(file).stem}: a check of `checks`, or what was called"


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
