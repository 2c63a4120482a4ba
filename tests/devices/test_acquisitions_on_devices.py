r"""Acquisition functions follow the device of their model."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from botorch.models import ModelListGP

from botorch_lse._device import moved
from tests.acquisition.conftest import make_model
from tests.devices.conftest import Device
from tests.registry import ACQUISITIONS, AcquisitionCase

ROWS = torch.rand(12, 2, generator=torch.Generator().manual_seed(0)).double()


def model_of(case: AcquisitionCase) -> Any:
    model = make_model()[0]
    return ModelListGP(model, make_model()[0]) if case.has_several_outputs else model


@pytest.mark.some(12)
@pytest.mark.parametrize("case", ACQUISITIONS, ids=lambda case: case.cls.__name__)
@pytest.mark.parametrize("n_pending", [0, 2])
def test_values_and_gradients_are_alike(
    case: AcquisitionCase, n_pending: int, device: Device
) -> None:
    X, pending = ROWS[:5].unsqueeze(-2), ROWS[5 : 5 + n_pending]
    here = case.cls(model_of(case), **case.options(ROWS))
    here.set_X_pending(pending)
    at = X.clone().requires_grad_()
    values = here(at)
    (slopes,) = torch.autograd.grad(values.sum(), at)
    model, options = model_of(case), case.options(ROWS)
    with device as place:
        # What says where the targets are may be on the CPU or with the model.
        for given in (options, moved(options, place)):
            there = case.cls(deepcopy(model).to(place), **given)
            there.set_X_pending(pending.to(place))
            at = X.to(place).requires_grad_()
            found = there(at)
            assert found.device == place
            torch.testing.assert_close(found.cpu(), values)
            (slope,) = torch.autograd.grad(found.sum(), at)
            torch.testing.assert_close(slope.cpu(), slopes)
