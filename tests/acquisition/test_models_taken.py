r"""Models that acquisition functions take, and what is said of others."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.ensemble import EnsembleModel
from botorch.models.model import ModelList
from botorch.models.robust_relevance_pursuit_model import (
    RobustRelevancePursuitSingleTaskGP,
)
from botorch.models.transforms import Log
from botorch.models.transforms.outcome import Bilog, OutcomeTransform
from botorch.optim import optimize_acqf_discrete
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from botorch.sampling import SobolQMCNormalSampler
from linear_operator.utils.errors import NotPSDError
from torch import Tensor

from botorch_lse import Pool
from botorch_lse.acquisition import (
    ContourEntropy,
    ExpectedFeasibility,
    ImplicitStraddle,
    MaxVariance,
    RanjanImprovement,
    Straddle,
    UFunction,
    qNegMaxPosteriorVariance,
    qTruVaR,
)
from botorch_lse.acquisition.covariance import ExactCovariance, JointCovariance
from botorch_lse.strategies import Above, Below, GaussianProcess, Strategy
from tests.registry import ACQUISITIONS, BATCHES, INTERVALS, MOMENTS, AcquisitionCase

_RANDOM = torch.Generator().manual_seed(2)
X = torch.rand(9, 2, generator=_RANDOM, dtype=torch.float64)
Y = (4 * X[:, :1]).sin() + X[:, 1:]
Y = (Y - Y.mean()) / Y.std()
TARGETS, POINTS, NEW = X[:4] + 0.01, X[:5].unsqueeze(1), X[5:7] + 0.02
BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
OPTIONS = {case.cls: case.options(TARGETS, level=0.3) for case in ACQUISITIONS}
NAMES = {"ids": lambda case: case.cls.__name__}


def model() -> SingleTaskGP:
    return SingleTaskGP(X, Y).eval()


def fantasies() -> SingleTaskGP:
    own = model()
    own.posterior(X)
    return own.fantasize(NEW, SobolQMCNormalSampler(torch.Size([3]), seed=0))


@pytest.mark.parametrize("case", MOMENTS, **NAMES)
def test_several_models_in_one_are_scored_one_by_one(case: AcquisitionCase) -> None:
    if "pool" in OPTIONS[case.cls]:  # over which it looks for the maximum of one
        with pytest.raises(UnsupportedError, match="`model` without batch shape"):
            case.cls(fantasies(), **OPTIONS[case.cls])
        return
    acqf = case.cls(fantasies(), **OPTIONS[case.cls])
    with pytest.raises(BotorchTensorDimensionError, match=r"`acqf\(X\.unsqueeze"):
        acqf(POINTS)
    found = acqf(POINTS.unsqueeze(-3))
    assert found.shape == (5, 3)
    each = acqf(POINTS[2].expand(3, 1, 2))  # a point for each of the models
    torch.testing.assert_close(found[2], each, rtol=1e-10, atol=1e-12)


@pytest.mark.some(4)
@pytest.mark.parametrize("case", [*INTERVALS, *BATCHES], **NAMES)
def test_several_models_in_one_are_refused_where_points_are_prepared(
    case: AcquisitionCase,
) -> None:
    with pytest.raises(UnsupportedError, match="`model` without batch shape") as said:
        case.cls(fantasies(), **OPTIONS[case.cls])
    if "condition_on_observations" in str(said.value):
        own = model()
        own.posterior(X)
        one = own.condition_on_observations(NEW, torch.zeros(2, 1).double())
        assert case.cls(one, **OPTIONS[case.cls])(POINTS).isfinite().all()


@pytest.mark.parametrize("case", ACQUISITIONS, **NAMES)
def test_a_model_whose_fit_failed_is_named(case: AcquisitionCase) -> None:
    broken = model()
    broken.covar_module.raw_lengthscale.data.fill_(torch.nan)
    with pytest.raises(ValueError, match=r"'covar_module\.raw_lengthscale' is nan"):
        case.cls(broken, **OPTIONS[case.cls])
    given = GaussianProcess(copy.deepcopy(broken))
    with pytest.raises(ValueError, match=r"'covar_module\.raw_lengthscale' is nan"):
        Strategy(Pool(X), Above(0.3), model=given)


class Samples(EnsembleModel):
    r"""Three functions."""

    num_outputs = 1

    def forward(self, X: Tensor) -> Tensor:
        total = X.sum(dim=-1, keepdim=True)
        return torch.stack([total, 2 * total, 3 * total], dim=-3)


@pytest.mark.parametrize("kind", ["samples", "logarithm"])
def test_points_chosen_before_need_a_gaussian_posterior(kind: str) -> None:
    own = Samples()
    if kind == "logarithm":
        own = SingleTaskGP(X, Y.exp(), outcome_transform=Log())
    acqf, choices = Straddle(own, 1.2), X[:6]
    with pytest.raises(UnsupportedError, match="Choose one point at a time"):
        optimize_acqf_discrete(acqf, q=3, choices=choices)
    found, _ = optimize_acqf_discrete(Straddle(own, 1.2), q=1, choices=choices)
    assert found.shape == (1, 2)
    transformed = Straddle(model(), 0.2)  # values transformed beforehand
    assert optimize_acqf_discrete(transformed, q=3, choices=choices)[0].shape == (3, 2)


@pytest.mark.parametrize(
    ("cls", "transform", "options"),
    [
        *((cls, Log(), {"threshold": 1.2}) for cls in (UFunction, ContourEntropy)),
        (ExpectedFeasibility, Log(), {"threshold": 1.2}),
        (RanjanImprovement, Log(), {"threshold": 1.2}),
        (ContourEntropy, Log(), {"goal": Above(0.5) & Below(1.2)}),
        (Straddle, Bilog(), {"threshold": 1.2}),
        (ImplicitStraddle, Bilog(), {"omega": 0.8, "pool": X}),
        (qTruVaR, Bilog(), {"targets": TARGETS}),
    ],
)
def test_values_of_a_normal_distribution_need_one(
    cls: type[Any], transform: OutcomeTransform, options: dict[str, Any]
) -> None:
    values, _ = transform.untransform(Y)
    own = SingleTaskGP(X, values, outcome_transform=transform).eval()
    with pytest.raises(UnsupportedError, match="`model` to have a Gaussian posterior"):
        cls(own, **options)(POINTS)


@pytest.mark.slow
def test_points_on_a_mixed_space_are_chosen_one_by_one() -> None:
    acqf, few = Straddle(model(), 0.3), {"num_restarts": 2, "raw_samples": 4}
    options = {"bounds": BOX, "discrete_dims": {0: [0.0, 0.5, 1.0]}, **few}
    quick = {"maxiter_alternating": 1}
    with pytest.raises(BotorchTensorDimensionError, match="choose one point at a time"):
        optimize_acqf_mixed_alternating(acqf, q=2, options=quick, **options)
    chosen = torch.empty(0, 2, dtype=torch.float64)
    for _ in range(2):
        acqf.set_X_pending(chosen)
        one, _ = optimize_acqf_mixed_alternating(acqf, q=1, options=quick, **options)
        chosen = torch.cat((chosen, one))
    assert (chosen[0] - chosen[1]).abs().max() > 1e-3


@pytest.mark.some(4)
@pytest.mark.filterwarnings("ignore:SparseOutlierNoise")  # new points are no outliers
@pytest.mark.parametrize("case", [*MOMENTS, *BATCHES], **NAMES)
def test_a_likelihood_that_knows_outliers_is_in_the_units_of_y(
    case: AcquisitionCase,
) -> None:
    outlying = torch.cat((Y[:-1], Y[-1:] + 9.0))
    robust = RobustRelevancePursuitSingleTaskGP(X, outlying)
    assert case.cls(robust, **OPTIONS[case.cls])(POINTS).isfinite().all()
    pending = case.cls(robust, **OPTIONS[case.cls], X_pending=NEW)
    assert pending(POINTS).isfinite().all()
    if case.kind == "moments":  # with what the model itself says of its function
        said = robust.posterior(POINTS)
        sigma = MaxVariance(robust)(POINTS).sqrt()
        torch.testing.assert_close(sigma, said.variance.view(-1).sqrt())


def test_lists_that_botorch_does_not_join_are_taken_apart() -> None:
    weights = torch.tensor([1.0, 0.0], dtype=torch.float64)
    first = ScalarizedPosteriorTransform(weights)
    options = {"posterior_transform": first, "X_pending": NEW}
    joined = Straddle(ModelListGP(model(), model()), 0.3, **options)(POINTS)
    several = ModelList(model(), model())
    with pytest.raises(UnsupportedError, match=r"`model\.subset_output\(\[i\]\)`"):
        Straddle(several, 0.3, **options)(POINTS)
    half = {**options, "posterior_transform": ScalarizedPosteriorTransform(weights / 2)}
    with pytest.raises(UnsupportedError, match=r"`model\.subset_output\(\[i\]\)`"):
        qTruVaR(several, TARGETS, **half)
    alone = Straddle(several.subset_output([0]), 0.3, X_pending=NEW)(POINTS)
    torch.testing.assert_close(alone, joined, rtol=1e-8, atol=1e-10)


@pytest.mark.some(4)
@pytest.mark.parametrize("case", [*MOMENTS, *BATCHES], **NAMES)
def test_a_scalarisation_has_one_weight_for_each_output(case: AcquisitionCase) -> None:
    if case.has_several_outputs:  # which takes none
        return
    both = ScalarizedPosteriorTransform(torch.ones(2, dtype=torch.float64))
    message = r"`posterior_transform` with one weight per output of `model` \(1\).*2"
    with pytest.raises(BotorchTensorDimensionError, match=message):
        case.cls(model(), **OPTIONS[case.cls], posterior_transform=both)


def test_a_model_that_is_converted_is_asked_anew() -> None:
    acqf = ImplicitStraddle(model(), 0.8, X)
    wanted = acqf(POINTS)
    found = acqf.float()(POINTS.float())
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.some(4)
@pytest.mark.parametrize("case", BATCHES, **NAMES)
@pytest.mark.parametrize("kind", [ModelListGP, ModelList, "batched"])
def test_an_output_that_a_transform_takes_is_one_by_itself(
    case: AcquisitionCase, kind: Any
) -> None:
    if case.has_several_outputs:
        return
    parts = SingleTaskGP(X, -Y).eval(), model()
    own = SingleTaskGP(X, torch.cat((-Y, Y), -1)) if kind == "batched" else kind(*parts)
    second = torch.tensor([0.0, 1.0], dtype=torch.float64)
    transform = ScalarizedPosteriorTransform(second)
    options = {**OPTIONS[case.cls], "X_pending": NEW}
    acqf = case.cls(own, **options, posterior_transform=transform)
    assert isinstance(acqf.covariance, ExactCovariance)
    wanted = case.cls(model(), **options)(POINTS)
    torch.testing.assert_close(acqf(POINTS), wanted, rtol=1e-10, atol=1e-12)


def test_a_transform_of_the_users_is_taken_as_it_is() -> None:
    class Tenfold(ScalarizedPosteriorTransform):
        def forward(self, posterior: Any, X: Any = None) -> Any:
            return ScalarizedPosteriorTransform(10 * self.weights)(posterior)

    own = ModelListGP(SingleTaskGP(X, -Y), model()).eval()
    second = torch.tensor([0.0, 1.0], dtype=torch.float64)
    found = qNegMaxPosteriorVariance(own, TARGETS, posterior_transform=Tenfold(second))
    wanted = qNegMaxPosteriorVariance(model(), TARGETS)
    torch.testing.assert_close(found(POINTS), 100 * wanted(POINTS))


def test_a_sum_of_outputs_is_taken_as_it_is() -> None:
    own = ModelListGP(SingleTaskGP(X, -Y), model()).eval()
    for weights, offset in (([1.0, 1.0], 0.0), ([0.0, 2.0], 0.0), ([0.0, 1.0], 0.5)):
        vector = torch.tensor(weights, dtype=torch.float64)
        transform = ScalarizedPosteriorTransform(vector, offset)
        acqf = qTruVaR(own, TARGETS, posterior_transform=transform)
        assert isinstance(acqf.covariance, JointCovariance)


def test_columns_are_not_blamed_for_other_failures() -> None:
    with pytest.raises(NotPSDError):
        Straddle(Failing(), 0.3)(POINTS)


class Failing(Samples):
    r"""A model that fails at every point, whatever its columns."""

    def forward(self, X: Tensor) -> Tensor:
        raise NotPSDError
