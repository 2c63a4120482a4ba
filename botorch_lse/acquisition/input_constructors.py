r"""Input constructors, so that Ax and BoTorch can build the classes by name."""

from __future__ import annotations

from inspect import signature
from typing import Any

from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.models.model import Model

from botorch_lse.acquisition.points import (
    ImplicitStraddle,
    LSEAmbiguity,
    LSEWidth,
    MaxVariance,
    Straddle,
)
from botorch_lse.acquisition.targets import (
    qGEGE,
    qHRAGE,
    qMELK,
    qMILK,
    qNegMaxPosteriorVariance,
    qTruVaR,
)


def register(acqf_class: type[AcquisitionFunction]) -> None:
    r"""Let Ax and BoTorch build a class from the arguments that its constructor names.

    A scalarisation of a model with one output is dropped: Ax passes the objective's
    sign in it, and the sign is not part of a level set. Thresholds are in the units of
    ``y``.

    Args:
        acqf_class: A class whose constructor takes the model first.
    """
    known = signature(acqf_class)

    def construct_inputs(model: Model, **given: Any) -> dict[str, Any]:
        r"""All arguments of the class by name, defaults filled in."""
        bound = known.bind(model, **given)
        bound.apply_defaults()
        if model.num_outputs == 1 and "posterior_transform" in bound.arguments:
            bound.arguments["posterior_transform"] = None
        return dict(bound.arguments)

    # BoTorch passes what the signature names, and names the function in its errors.
    construct_inputs.__signature__ = known  # type: ignore[attr-defined]
    construct_inputs.__name__ = acqf_class.__name__
    acqf_input_constructor(acqf_class)(construct_inputs)


for _acqf_class in (
    *(Straddle, ImplicitStraddle, MaxVariance, LSEAmbiguity, LSEWidth),
    *(qNegMaxPosteriorVariance, qMELK, qMILK, qHRAGE, qGEGE, qTruVaR),
):
    register(_acqf_class)
