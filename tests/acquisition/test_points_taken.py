r"""Points that acquisition functions take, and what is said of others."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf_discrete
from torch import Tensor

from botorch_lse.acquisition import (
    LSEAmbiguity,
    LSEWidth,
    MaxVariance,
    Straddle,
    qExpectedMisclassification,
    qGlobalMI,
)
from botorch_lse.strategies import Between
from tests.acquisition.test_answer_classes import classifier
from tests.registry import ACQUISITIONS, ANSWERS, BATCHES, AcquisitionCase

GRID = torch.cartesian_prod(torch.arange(3), torch.arange(3))
TARGETS = GRID[:4].double() + 0.3
# The answers of the classifier are 0 and 1.
pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)
NAMES = {"ids": lambda case: case.cls.__name__}
every = pytest.mark.parametrize("case", [*ACQUISITIONS, *ANSWERS], **NAMES)


def model() -> SingleTaskGP:
    X = GRID[::2].double()
    y = X.sin().sum(dim=-1, keepdim=True)
    return SingleTaskGP(X, y, input_transform=Normalize(2)).eval()


def made(case: AcquisitionCase, **options: Any) -> Any:
    own = classifier() if case in ANSWERS else model()
    return case.cls(own, **case.options(TARGETS, level=0.6), **options)


@every
def test_whole_numbers_and_halves_have_the_values_of_the_same_points(
    case: AcquisitionCase,
) -> None:
    acqf, points = made(case), GRID[2:6].unsqueeze(1)
    found, half = acqf(points), acqf(points.half())
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, acqf(points.double()), rtol=0, atol=0)
    torch.testing.assert_close(half, found, rtol=0, atol=0)
    assert all(own.dtype == torch.float64 for own in acqf.model.parameters())


def test_choices_of_whole_numbers_are_those_of_the_same_points() -> None:
    acqf = qGlobalMI(model(), TARGETS, 0.6)
    found, _ = optimize_acqf_discrete(acqf, q=2, choices=GRID)
    wanted, _ = optimize_acqf_discrete(acqf, q=2, choices=GRID.double())
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("case", BATCHES, **NAMES)
def test_batches_are_of_finite_points_and_may_be_none(case: AcquisitionCase) -> None:
    acqf = made(case)
    assert acqf(TARGETS[:0].unsqueeze(1)).shape == (0,)
    with pytest.raises(BotorchTensorDimensionError, match="`X` to hold at least one"):
        acqf(TARGETS[:2, None][:, :0])
    with pytest.raises(ValueError, match="`X` to be finite"):
        acqf(torch.stack((TARGETS[:2], TARGETS[:2] * torch.nan)))


@every
def test_assigned_pending_points_count_as_those_that_are_set(
    case: AcquisitionCase,
) -> None:
    wanted, acqf, X = made(case, X_pending=TARGETS[:2]), made(case), TARGETS[1:, None]
    before = acqf(X)
    acqf.X_pending = TARGETS[:2]
    assert acqf.X_pending.tolist() == TARGETS[:2].tolist()
    for same in (acqf, copy.deepcopy(acqf), pickle.loads(pickle.dumps(acqf))):
        torch.testing.assert_close(same(X), wanted(X), rtol=1e-10, atol=1e-12)
    acqf.X_pending = None
    torch.testing.assert_close(acqf(X), before)


@pytest.mark.parametrize("cls", [Straddle, LSEAmbiguity, qExpectedMisclassification])
def test_pending_points_reach_what_fixes_a_column(cls: Any) -> None:
    options = {"goal": Between(0.2, 0.8)}
    if cls is qExpectedMisclassification:
        options["targets"] = TARGETS
    acqf, X = cls(model(), **options), TARGETS[1:3, None]
    fixed = FixedFeatureAcquisitionFunction(acqf, 2, [1], [0.3])
    fixed.set_X_pending(X[0, :, :1])
    pending = torch.tensor([[float(X[0, 0, 0]), 0.3]], dtype=torch.float64)
    wanted = cls(model(), **options, X_pending=pending)
    points = torch.cat((X[..., :1], torch.full_like(X[..., :1], 0.3)), dim=-1)
    torch.testing.assert_close(fixed(X[..., :1]), wanted(points))


def test_a_vector_of_targets_is_a_row_or_a_column() -> None:
    message = r"`X\.unsqueeze\(-1\)` for one column, `X\.unsqueeze\(0\)` for one row"
    with pytest.raises(BotorchTensorDimensionError, match=message):
        qGlobalMI(model(), TARGETS[0], 0.6)
    with pytest.raises(BotorchTensorDimensionError, match=r"`\[X\]` for one row"):
        qGlobalMI(model(), TARGETS[0].tolist(), 0.6)
    for one in (TARGETS[0].unsqueeze(0), [TARGETS[0].tolist()]):
        assert qGlobalMI(model(), one, 0.6)(TARGETS).shape == (1,)


@pytest.mark.parametrize("cls", [LSEWidth, MaxVariance])
def test_classes_of_one_point_follow_a_model_as_they_say(cls: Any) -> None:
    own, X = model(), TARGETS[:, None]
    acqf = cls(own)
    before = acqf(X)
    own.covar_module.lengthscale = 0.1
    own.train().eval()
    follows = cls is MaxVariance  # the others hold the model's prior and data
    torch.testing.assert_close(acqf(X), cls(own)(X) if follows else before)
    assert not torch.allclose(cls(own)(X), before)


def test_a_class_of_the_users_may_keep_pending_points_as_botorch_does() -> None:
    class Kept(Straddle):
        def set_X_pending(self, X_pending: Tensor | None = None) -> None:
            self.X_pending = X_pending

    acqf = Kept(model(), 0.6, X_pending=TARGETS[:2])
    assert acqf.X_pending.tolist() == TARGETS[:2].tolist()
    acqf.X_pending = TARGETS[:1]
    assert acqf.X_pending.tolist() == TARGETS[:1].tolist()


def test_pending_points_of_earlier_pickles_are_found() -> None:
    acqf = Straddle(model(), 0.6, X_pending=TARGETS[:2])
    wanted = acqf(TARGETS[1:, None])
    acqf.__dict__["X_pending"] = acqf.__dict__.pop("_pending")
    torch.testing.assert_close(acqf(TARGETS[1:, None]), wanted)
