r"""Acquisition classes of one answer of yes or no: their contract and their values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import VariationalELBO
from torch import Tensor
from torch.special import entr, ndtr, ndtri

from botorch_lse import Pool
from botorch_lse.acquisition import BernoulliStraddle, qGlobalMI
from botorch_lse.strategies import Binary
from tests.acquisition.conftest import assert_differentiable
from tests.registry import ANSWERS, AcquisitionCase

every = pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.cls.__name__)
TARGETED = [case for case in ANSWERS if case.cls is not BernoulliStraddle]
POOL = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
LEVEL = 0.7
RATES = {"guess": 0.2, "lapse": 0.05}
DRAWS = 400_000
# A model in float32 is part of what is tested here.
pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)


def classifier(dtype: torch.dtype = torch.float64) -> SingleTaskVariationalGP:
    r"""A model of answers, with a posterior that is set, not fitted."""
    X = POOL[:12].to(dtype)
    y = (X.sum(dim=-1, keepdim=True) > 1).to(dtype)
    likelihood = BernoulliLikelihood()
    model = SingleTaskVariationalGP(X, y, likelihood, inducing_points=X[:6]).to(dtype)
    model.model.covar_module.lengthscale = 0.4
    own = model.model.variational_strategy._variational_distribution
    own.variational_mean.data = torch.tensor([1.0, -0.5, 2.0, 0.3, -1.5, 0.8]).to(dtype)
    own.chol_variational_covar.data = 0.4 * torch.eye(6, dtype=dtype)
    model.model.variational_strategy.variational_params_initialized.fill_(1)
    return model.eval().requires_grad_(False)


def options(case: AcquisitionCase) -> dict[str, Any]:
    return case.options(POOL[20:], LEVEL)


def joint(X: Tensor) -> tuple[Tensor, Tensor]:
    found = classifier().posterior(X).distribution
    return found.mean.detach(), found.covariance_matrix.detach()


# --- values ---------------------------------------------------------------------------


def drawn_effects(mean: Tensor, S: Tensor) -> dict[str, float]:
    r"""The effects of an answer at the first point on the sides of all, by draws."""
    outcome, generator = Binary(**RATES), torch.Generator().manual_seed(0)
    L = torch.linalg.cholesky(S + 1e-9 * torch.eye(len(S)).double())
    normal = torch.randn(DRAWS, len(S), generator=generator, dtype=torch.float64)
    f = mean + normal @ L.T
    chance = outcome.value(f[:, 0])
    above = (f[:, 1:] > outcome.latent(torch.tensor(LEVEL).double())).double()
    p, yes = above.mean(dim=0), chance.mean()
    after = (chance @ above / DRAWS / yes, (1 - chance) @ above / DRAWS / (1 - yes))
    weights = (yes, 1 - yes)
    losses = {
        "BernoulliMisclassification": lambda p: (p * (1 - p)).sum(),
        "BernoulliGlobalMI": lambda p: (entr(p) + entr(1 - p)).sum(),
        "BernoulliEAVC": lambda q: -(q - p).sum().abs(),
    }
    pairs = list(zip(weights, after, strict=True))
    return {
        name: float(loss(p) - sum(w * loss(q) for w, q in pairs))
        for name, loss in losses.items()
    } | {"BernoulliStraddle": float(1.96 * chance.std() - (yes - LEVEL).abs())}


@pytest.mark.some(1)
@every
def test_values_are_those_of_draws_by_the_definition(case):
    acqf = case.cls(classifier(), **options(case), **RATES)
    points = POOL[12:15]
    for x in points:
        mean, S = joint(torch.cat((x.unsqueeze(0), POOL[20:])))
        wanted = drawn_effects(mean, S)[case.cls.__name__]
        # Ten sides, each with a standard error of at most 0.5 / sqrt(DRAWS).
        atol = 4 * 10 * 0.5 / DRAWS**0.5 / 2
        assert float(acqf(x.view(1, 1, 2))) == pytest.approx(wanted, abs=atol)


@pytest.mark.some(1)
@every
def test_pending_points_shrink_variances_by_what_is_expected(case):
    pending, x = POOL[15:18], POOL[12]
    mean, S = joint(torch.cat((pending, x.unsqueeze(0), POOL[20:])))
    noise = Binary(**RATES).pseudo_noise(mean[:3], S.diagonal()[:3])
    gain = torch.linalg.solve(S[:3, :3] + noise.diag(), S[:3, 3:])
    wanted = drawn_effects(mean[3:], S[3:, 3:] - S[3:, :3] @ gain)[case.cls.__name__]
    acqf = case.cls(classifier(), **options(case), **RATES, X_pending=pending)
    assert float(acqf(x.view(1, 1, 2))) == pytest.approx(wanted, abs=0.016)
    acqf.set_X_pending(None)
    alone = case.cls(classifier(), **options(case), **RATES)
    points = POOL[:7].unsqueeze(1)
    torch.testing.assert_close(acqf(points), alone(points))


@pytest.mark.some(4)
@every
@pytest.mark.parametrize("n", [0, 1, 16, 37, 1060])
def test_many_points_have_the_values_of_each_alone(case, n):
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(n, 1, 2, generator=generator, dtype=torch.float64)
    acqf = case.cls(classifier(), **options(case))
    found = acqf(X)
    assert found.shape == (n,)
    for i in range(0, n, 53):
        torch.testing.assert_close(found[i : i + 1], acqf(X[i : i + 1]))


@pytest.mark.slow
def test_a_fitted_model_is_asked_near_its_level():
    x = torch.linspace(0, 1, 40, dtype=torch.float64).unsqueeze(-1)
    p = ndtr(8 * x - 4)
    y = torch.rand(40, 1, generator=torch.Generator().manual_seed(0)) < p
    likelihood = BernoulliLikelihood()
    model = SingleTaskVariationalGP(x, y.double(), likelihood, inducing_points=x[::4])
    torch.manual_seed(0)
    mll = VariationalELBO(likelihood, model.model, num_data=40)
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": 100}})
    level = float((ndtri(torch.tensor(LEVEL)) + 4) / 8)
    for case in ANSWERS:
        acqf = case.cls(model, **case.options(x, LEVEL))
        best = float(x[acqf(x.unsqueeze(-1)).argmax()])
        assert abs(best - level) < 0.25


# --- the contract ---------------------------------------------------------------------


@pytest.mark.some(4)
@every
@pytest.mark.parametrize("shape", [(), (5,), (3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_pending", [0, 2])
def test_shapes_dtypes_and_gradients(case, shape, dtype, n_pending):
    acqf = case.cls(classifier(dtype), **options(case))
    acqf.set_X_pending(POOL[:n_pending].to(dtype))
    X = torch.rand(*shape, 1, 2, generator=torch.Generator().manual_seed(1))
    for _ in range(2):
        assert_differentiable(acqf, X.to(dtype).requires_grad_(), shape)


@every
def test_points_may_have_more_digits_than_the_model(case):
    X = POOL[:5].unsqueeze(-2)
    acqf = case.cls(classifier(torch.float32), **options(case))
    found, wanted = acqf(X), acqf(X.float())
    assert found.dtype == torch.float64
    assert next(acqf.model.parameters()).dtype == torch.float32
    torch.testing.assert_close(found.float(), wanted)


@pytest.mark.some(1)
@every
@pytest.mark.parametrize("n_pending", [0, 2])
def test_gradient_is_right(case, n_pending):
    acqf = case.cls(classifier(), **options(case), **RATES)
    acqf.set_X_pending(POOL[10 : 10 + n_pending])
    X = torch.rand(3, 1, 2, generator=torch.Generator().manual_seed(7)).double()
    assert torch.autograd.gradcheck(acqf, X.requires_grad_())


@pytest.mark.some(0, slow=2)
@every
def test_points_are_optimised_one_after_the_other(case):
    acqf = case.cls(classifier(), **options(case))
    with pytest.raises(BotorchTensorDimensionError, match="sequential=True"):
        acqf(POOL[:2])
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    given = {"q": 2, "num_restarts": 2, "raw_samples": 16, "sequential": True}
    X, values = optimize_acqf(acqf, box, **given, options={"maxiter": 20})
    assert X.shape == (2, 2)
    best = case.cls(classifier(), **options(case))(POOL.unsqueeze(-2)).max()
    assert values[0] >= best - 1e-2
    chosen, _ = optimize_acqf_discrete(acqf, q=3, choices=POOL)
    assert len(chosen.unique(dim=0)) == 3


@every
def test_input_constructor_drops_the_sign_of_the_objective(case):
    construct = get_acqf_input_constructor(case.cls)
    sign = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())
    arguments = construct(
        model=classifier(),
        training_data=None,
        posterior_transform=sign,
        X_pending=POOL[:2],
        **options(case),
    )
    X = POOL.unsqueeze(-2)
    wanted = case.cls(classifier(), **options(case), X_pending=POOL[:2])(X)
    torch.testing.assert_close(case.cls(**arguments)(X), wanted)
    with pytest.raises(ValueError, match="Expected options with"):
        construct(model=classifier(), training_data=None)


@pytest.mark.parametrize("case", TARGETED, ids=lambda case: case.cls.__name__)
def test_targets_may_be_a_pool(case):
    given = options(case) | {"targets": Pool(POOL[20:])}
    X = POOL[:5].unsqueeze(-2)
    wanted = case.cls(classifier(), **options(case))(X)
    torch.testing.assert_close(case.cls(classifier(), **given)(X), wanted)
    narrow = options(case) | {"targets": POOL[:, :1]}
    with pytest.raises(BotorchTensorDimensionError, match="`targets` to have the col"):
        case.cls(classifier(), **narrow)


@every
def test_what_is_no_model_of_answers_is_refused(case):
    y = POOL[:9].sum(dim=-1, keepdim=True)
    gaussian = SingleTaskGP(POOL[:9], (y - y.mean()) / y.std())
    with pytest.raises(UnsupportedError, match=r"got GaussianLikelihood.*`qGlobalMI`"):
        case.cls(gaussian, **options(case))
    qGlobalMI(gaussian, POOL, threshold=0.0)  # the remedy
    both = (POOL[:12] > 0.5).double()
    several = SingleTaskVariationalGP(
        POOL[:12], both, BernoulliLikelihood(), num_outputs=2, inducing_points=6
    )
    remedy = r"`SingleTaskVariationalGP\(X, Y\[:, \[i\]\], BernoulliLikelihood\(\)\)`"
    for wrong in (ModelListGP(gaussian, gaussian), several, None):
        with pytest.raises(UnsupportedError, match=remedy):
            case.cls(wrong, **options(case))
    one = SingleTaskVariationalGP(POOL[:12], both[:, [1]], BernoulliLikelihood())
    case.cls(one.eval(), **options(case))
    broken = classifier()
    broken.model.covar_module.raw_lengthscale.data.fill_(torch.nan)
    with pytest.raises(ValueError, match="raw_lengthscale' is nan"):
        case.cls(broken, **options(case))


@every
def test_levels_and_rates_and_pending_points_are_checked(case):
    known = options(case)
    with pytest.raises(ValueError, match=r"`threshold` in \(0\.5, 1\), but got 0\.4"):
        case.cls(classifier(), **known | {"threshold": 0.4, "guess": 0.5})
    with pytest.raises(ValueError, match="`lapse`"):
        case.cls(classifier(), **known, lapse=1.5)
    message = "`X_pending` to have the columns"
    with pytest.raises(BotorchTensorDimensionError, match=message):
        case.cls(classifier(), **known, X_pending=POOL[:2, :1])


def test_a_straddle_needs_a_width():
    with pytest.raises(ValueError, match="`beta`"):
        BernoulliStraddle(classifier(), 0.5, beta=-1.0)
