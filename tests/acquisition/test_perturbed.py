r"""Models that make several points of one: averages are meant, points are measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.input import (
    AppendFeatures,
    ChainedInputTransform,
    InputPerturbation,
    Normalize,
)
from gpytorch.kernels import LinearKernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_lse.acquisition import (
    Straddle,
    qNegMaxPosteriorVariance,
    qTruVaR,
)
from botorch_lse.optim import optimize_acqf_design
from tests.registry import ACQUISITIONS, BATCHES, MOMENTS, AcquisitionCase

NOISE, BETA = 0.05, 4.0
MOVES = torch.tensor([[-1.0, 0.4], [0.3, 0.0], [1.2, -0.7]], dtype=torch.float64)
WEIGHTS = torch.tensor([[1.0], [2.0], [1.0]], dtype=torch.float64)
_RANDOM = torch.Generator().manual_seed(5)


def draw(*shape: int) -> Tensor:
    r"""Points in a box from 0 to 10."""
    return 10 * torch.rand(*shape, generator=_RANDOM, dtype=torch.float64)


X, TARGETS, BATCH, PENDING = draw(8, 2), draw(5, 2), draw(4, 2, 2), draw(2, 2)
Y = (0.4 * X[:, :1]).sin() + 0.1 * X[:, 1:]


def model(moves: Tensor | None = MOVES, kernel: Any = None) -> SingleTaskGP:
    unit = Normalize(2, bounds=torch.tensor([[0.0, 0.0], [10.0, 10.0]]).double())
    several = {} if moves is None else {"moves": InputPerturbation(moves)}
    inputs = ChainedInputTransform(**several, unit=unit) if several else unit
    if kernel is None:
        kernel = ScaleKernel(RBFKernel())
        kernel.base_kernel.lengthscale = 0.3
    found = SingleTaskGP(
        X, Y, covar_module=kernel, input_transform=inputs, outcome_transform=None
    )
    found.likelihood.noise = NOISE
    found.mean_module.initialize(constant=0.2)
    return found.eval()


def expectation(weights: Tensor | None = None) -> ExpectationPosteriorTransform:
    return ExpectationPosteriorTransform(n_w=3, weights=weights)


def value(case: AcquisitionCase, own: Any, **options: Any) -> Tensor:
    given = {**case.options(TARGETS, level=0.5), **options}
    q = 2 if case.kind == "batch" else 1
    found: Tensor = case.cls(own, **given)(BATCH[:, :q])
    return found.detach()


@pytest.mark.some(5)
@pytest.mark.parametrize("case", ACQUISITIONS, ids=lambda case: case.cls.__name__)
def test_a_point_that_becomes_several_is_refused(case: AcquisitionCase) -> None:
    with pytest.raises(UnsupportedError) as refused:
        value(case, model())
    said = str(refused.value)
    if case.kind == "intervals" or case.has_several_outputs:
        assert "Leave it out" in said
        assert value(case, model(None)).isfinite().all()
        return
    assert "Give `posterior_transform=ExpectationPosteriorTransform(n_w=3)`" in said
    own = expectation()
    assert value(case, model(), posterior_transform=own).isfinite().all()
    # The number of points must be that of the model.
    wrong = ExpectationPosteriorTransform(n_w=2)
    for other, remedy in ((model(), "Give it the number"), (model(None), "leave it")):
        with pytest.raises(UnsupportedError, match=remedy):
            value(case, other, posterior_transform=wrong)


@pytest.mark.some(5)
@pytest.mark.parametrize("pending", [None, PENDING], ids=["", "pending"])
@pytest.mark.parametrize(
    "case",
    [case for case in (*MOMENTS, *BATCHES) if not case.has_several_outputs],
    ids=lambda case: case.cls.__name__,
)
def test_averages_of_a_linear_function_are_its_values(
    case: AcquisitionCase, pending: Tensor | None
) -> None:
    moves = MOVES - MOVES.mean(dim=0)
    plain, moved = model(None, LinearKernel()), model(moves, LinearKernel())
    found = value(case, moved, posterior_transform=expectation(), X_pending=pending)
    wanted = value(case, plain, X_pending=pending)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7)


def dense(pending: Tensor | None) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    r"""Variances of averages before and after a batch, from one dense covariance."""
    own = model(None)
    w = (WEIGHTS / WEIGHTS.sum()).view(-1)
    known = X if pending is None else torch.cat((X, pending))

    def variances(batch: Tensor) -> tuple[Tensor, Tensor]:
        around = (TARGETS.unsqueeze(1) + MOVES).reshape(-1, 2)
        points = torch.cat((known, batch, around)) / 10
        K = own.covar_module(points).to_dense().detach()
        A = torch.zeros(len(known) + len(batch) + 5, len(points)).double()
        first = len(known) + len(batch)
        A[:first, :first] = torch.eye(first).double()
        for t in range(5):
            A[first + t, first + 3 * t : first + 3 * t + 3] = w
        C = A @ K @ A.T

        def after(n: int) -> Tensor:
            noisy = C[:n, :n] + NOISE * torch.eye(n).double()
            cross = C[:n, first:]
            return C.diagonal()[first:] - (
                cross * torch.linalg.solve(noisy, cross)
            ).sum(0)

        return after(len(known)), after(first)

    return variances


@pytest.mark.some(1)
@pytest.mark.parametrize("pending", [None, PENDING], ids=["", "pending"])
def test_a_batch_is_looked_ahead_of_as_measured_where_it_is(
    pending: Tensor | None,
) -> None:
    variances = dense(pending)
    options = {
        "posterior_transform": expectation(WEIGHTS),
        "X_pending": pending,
        "targets": TARGETS,
    }
    eta = 0.3
    reduction = qTruVaR(model(), beta=BETA, eta=eta, **options)
    worst = qNegMaxPosteriorVariance(model(), **options)
    for batch in BATCH:
        before, after = (v.mul(BETA).clamp_min(eta**2) for v in variances(batch))
        wanted = (before - after).sum() / len(batch)
        torch.testing.assert_close(reduction(batch)[0], wanted, rtol=1e-6, atol=1e-9)
        wanted = -variances(batch)[1].max()
        torch.testing.assert_close(worst(batch)[0], wanted, rtol=1e-6, atol=1e-9)


def test_pending_points_are_measured_where_they_are() -> None:
    own = Straddle(
        model(), 0.5, BETA, posterior_transform=expectation(WEIGHTS), X_pending=PENDING
    )
    bare = Straddle(model(), 0.5, BETA, posterior_transform=expectation(WEIGHTS))
    mean = (
        model()
        .posterior(TARGETS.unsqueeze(1), posterior_transform=expectation(WEIGHTS))
        .mean.view(-1)
    )
    for acqf, after in ((bare, 0), (own, 1)):
        sigma = dense(None)(PENDING)[after].sqrt()
        wanted = BETA**0.5 * sigma - (mean - 0.5).abs()
        found = acqf(TARGETS.unsqueeze(1))
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-8)


def test_a_design_measures_choices_and_predicts_averages() -> None:
    acqf = qNegMaxPosteriorVariance(
        model(), TARGETS, posterior_transform=expectation(WEIGHTS)
    )
    choices = torch.cat((TARGETS, draw(3, 2)))
    batch, found = optimize_acqf_design(acqf, choices, q=2)
    every = torch.stack(
        [choices[[i, j]] for i in range(len(choices)) for j in range(i, len(choices))]
    )
    assert found >= 1.1 * acqf(every).detach().max()  # values are negative
    torch.testing.assert_close(found, -dense(None)(batch)[1].max(), rtol=1e-6, atol=0)


def test_where_a_measurement_is_made_must_be_known() -> None:
    features = AppendFeatures(torch.tensor([[0.2], [0.8]], dtype=torch.float64))
    plain = SingleTaskGP(
        X / 10,
        (Y - Y.mean()) / Y.std(),
        input_transform=features,
        outcome_transform=None,
    ).eval()
    average = ExpectationPosteriorTransform(n_w=2)
    one = draw(3, 1, 1) / 10
    found = Straddle(plain, 0.5, posterior_transform=average)(one)
    assert found.isfinite().all()
    with pytest.raises(UnsupportedError, match="Take a class for one point"):
        Straddle(plain, 0.5, posterior_transform=average, X_pending=one[0])
    with pytest.raises(UnsupportedError, match="take no other such transform than"):
        qTruVaR(plain, one.view(-1, 1))
    with pytest.raises(UnsupportedError, match="Take a class for one point"):
        qTruVaR(plain, one.view(-1, 1), posterior_transform=average)(one)


def test_the_one_model_of_a_list_is_taken() -> None:
    both = ModelListGP(model(), model())
    name = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0], dtype=torch.float64))
    with pytest.raises(UnsupportedError):
        Straddle(both, 0.5, posterior_transform=name)(BATCH[:, :1])
    options = {"posterior_transform": expectation(), "X_pending": PENDING}
    alone = Straddle(model(), 0.5, **options)(BATCH[:, :1])
    in_list = Straddle(ModelListGP(model()), 0.5, **options)(BATCH[:, :1])
    torch.testing.assert_close(in_list, alone, rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    "case", [*MOMENTS, *BATCHES[:-1]], ids=lambda c: c.cls.__name__
)
def test_constructors_keep_all_transforms_but_scalarisations(
    case: AcquisitionCase,
) -> None:
    construct = get_acqf_input_constructor(case.cls)
    options, average = case.options(TARGETS, level=0.5), expectation()
    given = construct(model(), posterior_transform=average, **options)
    assert given["posterior_transform"] is average
    sign = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64))
    given = construct(model(None), posterior_transform=sign, **options)
    assert given["posterior_transform"] is None
