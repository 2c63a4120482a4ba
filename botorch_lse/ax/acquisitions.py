r"""The package's acquisition functions in Ax's modular BoTorch generator."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import pandas as pd
import torch
from ax.adapter.registry import Generators, MBM_X_trans_base
from ax.adapter.transforms.base import Transform
from ax.adapter.transforms.derelativize import Derelativize
from ax.adapter.transforms.map_key_to_float import MapKeyToFloat
from ax.core import ObservationFeatures, SearchSpace
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig
from ax.storage.botorch_modular_registry import (
    CLASS_TO_REVERSE_REGISTRY,
    register_acquisition_function,
)
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.transforms import Standardize
from torch import Tensor

from botorch_lse import acquisition
from botorch_lse._validation import of_type
from botorch_lse.acquisition.base import missing_arguments
from botorch_lse.acquisition.outputs import region_of
from botorch_lse.goals.regions import Above, And, Below, Between, Levels, Not, Or
from botorch_lse.strategies import Rule, Strategy

X_TRANSFORMS: tuple[type[Transform], ...] = tuple(MBM_X_trans_base)
"""Ax's usual transforms of the inputs.
Ranges on a linear scale pass unchanged; the surrogate scales them to the unit cube."""


POINTS = ("pool", "targets")
"""The options that are points of the model's space."""
FROM_AX = ("model", "X_pending", "posterior_transform")
"""The arguments of our classes that Ax itself gives."""


def acquisition_generator_spec(
    acqf_class: type[AcquisitionFunction], options: Mapping[str, Any]
) -> GeneratorSpec:
    r"""A generator specification with thresholds in the units of the metric.

    Ax's usual transforms standardise and winsorise the metric, so that a threshold
    would be compared with other units. Here no transform touches it; BoTorch's
    ``Standardize`` inside the surrogate takes their place and is undone in the
    posterior. The objective's sign does not matter. Of values with a progression the
    model has the last of each trial and, as in Ax's own generators, the step as a
    further input: what an early stopped trial had come to is no final value, and the
    answer is about the last step. With points among ``options``, which have no step,
    it counts as final: abandon such trials.

    Example:
        >>> from botorch_lse.acquisition import Straddle
        >>> spec = acquisition_generator_spec(Straddle, {"threshold": 100.0})

    Args:
        acqf_class: A class of ``botorch_lse.acquisition``.
        options: Its arguments beside the model. Points among them (the ``pool`` of
            ``ImplicitStraddle``, the ``targets`` of ``qTruVaR``) go through
            ``model_space`` first.

    Raises:
        ValueError: If ``acqf_class`` is no acquisition class, ``options`` no
            dictionary of arguments that it takes and needs, with one of ``threshold``
            and ``goal``, or ``pool`` or ``targets`` no tensor: see ``model_space``.
    """
    _check_class(acqf_class)
    if not isinstance(options, Mapping):
        raise ValueError(
            "Expected `options` to be a dictionary of the class's arguments, but got "
            f"{options!r}. Write `{{}}` for none."
        )
    _check_options(acqf_class, options)
    for name in POINTS:
        points = options.get(name)
        if points is not None and not isinstance(points, Tensor):
            raise ValueError(
                f"Expected the option `{name}` to be a tensor in the model's space, "
                f"but got {type(points).__name__}. Write `model_space(search_space, "
                "table)` with one column per parameter; `pool.to_frame()` is the table "
                "of a Pool."
            )
    # Of points, whose columns are the parameters, no step is known.
    with_step = [] if {*POINTS} & {*options} else [MapKeyToFloat]
    surrogate = SurrogateSpec(
        model_configs=[
            ModelConfig(name="level_set", outcome_transform_classes=[Standardize])
        ]
    )
    return GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_kwargs={
            "botorch_acqf_class": acqf_class,
            "botorch_acqf_options": dict(options),
            "surrogate_spec": surrogate,
            "transforms": [Derelativize, *with_step, *X_TRANSFORMS],
        },
    )


def _check_class(acqf_class: Any) -> None:
    is_class = isinstance(acqf_class, type)
    if is_class and issubclass(acqf_class, AcquisitionFunction):
        return
    remedy = "Take a class of `botorch_lse.acquisition`, not an instance."
    if is_class and issubclass(acqf_class, Strategy):
        remedy = "For a strategy write `level_set_generation_strategy(strategy)`."
    # Some rules of strategies have the names of acquisition classes.
    if is_class and issubclass(acqf_class, Rule):
        namesake = getattr(acquisition, acqf_class.__name__, None)
        name = "Straddle" if namesake is None else acqf_class.__name__
        remedy = (
            "That is the rule of a strategy: write "
            f"`from botorch_lse.acquisition import {name}`."
        )
    shown = f"the class {acqf_class.__name__}" if is_class else repr(acqf_class)
    raise ValueError(
        "Expected `acqf_class` to be an acquisition class such as `Straddle`, but got "
        f"{shown}. {remedy}"
    )


def _check_options(acqf_class: type[AcquisitionFunction], options: Any) -> None:
    r"""Complain now rather than at the first candidate, after the first trials.

    Our classes take from Ax what their constructors name. Those of BoTorch do not: what
    they are built from is known to their input constructors alone.
    """
    if getattr(acquisition, acqf_class.__name__, None) is not acqf_class:
        return
    known = signature(acqf_class).parameters
    names = [name for name in known if name not in FROM_AX]
    strange = [name for name in options if name not in names]
    if strange:
        raise ValueError(
            f"Expected `options` to be arguments of {acqf_class.__name__} among "
            f"{names}, but got {strange}."
        )
    if missing := missing_arguments(acqf_class, options):
        raise ValueError(
            f"Expected `options` to hold {missing}, which {acqf_class.__name__} needs, "
            f"but got {list(options)}."
        )
    if getattr(acqf_class, "needs_level", False):
        region_of(options.get("threshold"), options.get("goal"))


def model_space(search_space: SearchSpace, table: pd.DataFrame) -> Tensor:
    r"""The points of a search space as the model inside the generator sees them.

    Log scales, choices and fixed parameters go through the same transforms as the data.

    Example:
        >>> from ax.core.parameter import ParameterType, RangeParameter
        >>> dose = RangeParameter("dose", ParameterType.FLOAT, 1, 100, log_scale=True)
        >>> table = pd.DataFrame({"dose": [1.0, 10.0, 100.0]})
        >>> model_space(SearchSpace([dose]), table).shape
        torch.Size([3, 1])

    Args:
        search_space: The experiment's.
        table: ``N`` rows, one column per parameter, values as in a parameterization.

    Returns:
        ``N x d``, columns in the order of the model's inputs.

    Raises:
        ValueError: If an argument is something else, a column is missing, or a row is
            not in the search space.
    """
    wanted, remedy = "that of an experiment", "Write `experiment.search_space`."
    of_type(search_space, SearchSpace, "search_space", wanted, remedy)
    names = list(search_space.parameters)
    wanted = "a pandas DataFrame with one column per parameter"
    remedy = f"Write `pd.DataFrame(values, columns={names})`."
    of_type(table, pd.DataFrame, "table", wanted, remedy)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ValueError(
            f"Expected `table` to have a column for each parameter, but {missing} are "
            f"missing; it has {list(table.columns)}."
        )
    records: list[Any] = table[names].astype(object).to_dict("records")
    for i, record in enumerate(records):
        if not search_space.check_membership(record):
            raise ValueError(
                f"Expected the rows of `table` to lie in the search space, but row {i} "
                f"does not: {record}."
            )
    space = search_space.clone()
    features = [ObservationFeatures(parameters=record) for record in records]
    for transform_class in X_TRANSFORMS:
        transform = transform_class(search_space=space)
        space = transform.transform_search_space(space)
        features = transform.transform_observation_features(features)
    columns = list(space.parameters)
    values = [[f.parameters[name] for name in columns] for f in features]
    return torch.tensor(values, dtype=torch.float64)


def register_acquisition(acqf_class: type[AcquisitionFunction]) -> None:
    r"""Let Ax store an acquisition class, which it knows by its bare name.

    Raises:
        ValueError: If another class has this name already.
    """
    name = acqf_class.__name__
    known = CLASS_TO_REVERSE_REGISTRY[AcquisitionFunction].get(name, acqf_class)
    if f"{known.__module__}.{known.__qualname__}" != (
        f"{acqf_class.__module__}.{acqf_class.__qualname__}"
    ):
        raise ValueError(
            f"Expected the name {name!r} to be free in Ax's registry of acquisition "
            f"functions, but {known.__module__}.{name} holds it, and Ax stores classes "
            "by name only. Rename that class."
        )
    register_acquisition_function(acqf_class)


for _name in acquisition.__all__:
    _exported = getattr(acquisition, _name)
    if isinstance(_exported, type) and issubclass(_exported, AcquisitionFunction):
        register_acquisition(_exported)
# The goal of a specification, which Ax writes by its fields.
for _region in (Above, Below, Between, And, Or, Not, Levels):
    CORE_DECODER_REGISTRY[_region.__name__] = _region
