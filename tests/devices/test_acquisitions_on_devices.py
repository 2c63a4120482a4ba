r"""Acquisition functions follow the device of their model."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from botorch.models import ModelListGP

from botorch_lse import Above, Below
from botorch_lse._device import moved
from botorch_lse.acquisition import (
    ContourEntropy,
    LSEAmbiguity,
    Straddle,
    qExpectedMisclassification,
    qTargetedIMSE,
)
from tests.acquisition.conftest import make_model
from tests.devices.conftest import Device
from tests.registry import ACQUISITIONS, AcquisitionCase

ROWS = torch.rand(12, 2, generator=torch.Generator().manual_seed(0)).double()


def model_of(case: AcquisitionCase) -> Any:
    model = make_model()[0]
    return ModelListGP(model, make_model()[0]) if case.has_several_outputs else model


@pytest.mark.some(3)
@pytest.mark.parametrize("case", ACQUISITIONS, ids=lambda case: case.cls.__name__)
@pytest.mark.parametrize("n_pending", [0, 2])
def test_values_and_gradients_are_alike(
    case: AcquisitionCase, n_pending: int, device: Device
) -> None:
    check_alike(case.cls, model_of(case), case.options(ROWS), n_pending, device)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "cls",
    [Straddle, ContourEntropy, LSEAmbiguity, qExpectedMisclassification, qTargetedIMSE],
)
@pytest.mark.parametrize("kind", ["and", "exclusive or"])
def test_regions_are_alike(cls: Any, kind: str, device: Device) -> None:
    model = ModelListGP(make_model()[0], make_model()[0])
    y = make_model()[0].train_targets
    first = Above(float(y.mean()))
    second = Below(float(y.quantile(0.8)), output=1)
    goal = first & second if kind == "and" else (first & ~second) | (~first & second)
    options: dict[str, Any] = {"goal": goal}
    if cls in (qExpectedMisclassification, qTargetedIMSE):
        options |= {"targets": ROWS, "noise_var": 0.1, "beta": 900.0}
    check_alike(cls, model, options, 2, device)


def check_alike(
    cls: Any, model: Any, options: dict[str, Any], n_pending: int, device: Device
) -> None:
    r"""Values and slopes of a class are those that it has on the CPU."""
    X, pending = ROWS[:5].unsqueeze(-2), ROWS[5 : 5 + n_pending]
    here = cls(deepcopy(model), **options)
    here.set_X_pending(pending)
    at = X.clone().requires_grad_()
    values = here(at)
    (slopes,) = torch.autograd.grad(values.sum(), at)
    with device as place:
        # What says where the targets are may be on the CPU or with the model.
        for given in (options, moved(options, place)):
            there = cls(deepcopy(model).to(place), **given)
            there.set_X_pending(pending.to(place))
            at = X.to(place).requires_grad_()
            found = there(at)
            assert found.device == place
            torch.testing.assert_close(found.cpu(), values)
            (slope,) = torch.autograd.grad(found.sum(), at)
            torch.testing.assert_close(slope.cpu(), slopes)
