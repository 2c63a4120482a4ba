r"""Many q-batches at once: the values of each, from blocks whose size does not grow."""

import pytest
import torch
from botorch.models import ModelListGP

from botorch_lse import Above
from botorch_lse.acquisition import qExpectedMisclassification, qTargetedIMSE
from botorch_lse.acquisition import targets as targets_module
from botorch_lse.models.gaussian_process import row_blocks
from tests.acquisition.conftest import batches, make_model
from tests.acquisition.test_contract_classes import ensemble
from tests.registry import BATCHES, AcquisitionCase

TARGETS = torch.rand(7, 2, generator=torch.Generator().manual_seed(1)).double()
cases = pytest.mark.parametrize("case", BATCHES, ids=lambda case: case.cls.__name__)


def made(case: AcquisitionCase, model):
    if case.has_several_outputs:
        model = ModelListGP(model, model)
    return case.cls(model, **case.options(TARGETS))


def values(acqf, X):
    r"""The values, and their gradients."""
    X = X.clone().requires_grad_()
    found = acqf(X)
    return found.detach(), *torch.autograd.grad(found.sum(), X)


def assert_parts_change_nothing(monkeypatch, acqf, X) -> None:
    want = values(acqf, X)
    monkeypatch.setattr(targets_module, "TOGETHER", 5)
    for found, whole in zip(values(acqf, X), want, strict=True):
        torch.testing.assert_close(found, whole, rtol=1e-10, atol=1e-12)


@pytest.mark.some(5)
@cases
@pytest.mark.parametrize("q", [1, 2])
def test_batches_are_evaluated_in_parts(monkeypatch, case, q) -> None:
    acqf = made(case, make_model()[0])
    assert_parts_change_nothing(monkeypatch, acqf, batches((3, 4), q))


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "case",
    [case for case in BATCHES if not case.has_several_outputs],
    ids=lambda case: case.cls.__name__,
)
def test_members_of_an_ensemble_count_as_batches(monkeypatch, case) -> None:
    acqf = made(case, ensemble())
    assert_parts_change_nothing(monkeypatch, acqf, batches((6,), 2))


@pytest.mark.parametrize("cls", [qExpectedMisclassification, qTargetedIMSE])
def test_batches_of_a_region_are_evaluated_in_parts(monkeypatch, cls) -> None:
    model, goal = make_model()[0], Above(21.0) & Above(20.0, output=1)
    acqf = cls(ModelListGP(model, model), TARGETS, goal=goal)
    assert_parts_change_nothing(monkeypatch, acqf, batches((3, 4), 2))


@cases
def test_blocks_of_targets_do_not_shrink_with_the_number_of_batches(
    monkeypatch, case
) -> None:
    # Each block passes over all batches that are evaluated together, so more blocks
    # for more batches would make time grow with the square of their number.
    acqf, widths = made(case, make_model()[0]), list[int]()

    def recorded(n_rows: int, per_row: int) -> list[slice]:
        widths.append(per_row)
        return row_blocks(n_rows, per_row)

    monkeypatch.setattr(targets_module, "row_blocks", recorded)
    monkeypatch.setattr(targets_module, "TOGETHER", 8)
    largest = []
    for n in (8, 80):
        widths.clear()
        acqf(batches((n,), 1))
        largest.append(max(widths))
    assert largest[1] == largest[0]
