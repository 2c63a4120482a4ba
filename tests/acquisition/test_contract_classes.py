r"""What every acquisition class promises."""

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import (
    ExpectationPosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import (
    KroneckerMultiTaskGP,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
)
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.kernels import MaternKernel, ScaleKernel

from botorch_lse.acquisition import (
    ContourEntropy,
    ExpectedFeasibility,
    ImplicitStraddle,
    LSEAmbiguity,
    LSEWidth,
    MaxVariance,
    RanjanImprovement,
    Straddle,
    UFunction,
)
from tests.acquisition.conftest import assert_differentiable, make_model
from tests.registry import ACQUISITIONS, INTERVALS, MOMENTS, ONE_POINT

# float32 and raw outcomes are part of what is tested here
pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

POOL = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
TABLE = {case.cls: case.options(POOL) for case in ONE_POINT}
every = pytest.mark.parametrize(("acqf_class", "options"), TABLE.items())


def ensemble():
    """Three Gaussian processes with different hyper-parameters, as one model."""
    _, X, Y, _ = make_model()
    generator = torch.Generator().manual_seed(0)
    model = EnsembleMapSaasSingleTaskGP(
        X, Y, taus=torch.tensor([0.1, 0.2, 0.3]).double(), num_taus=3
    )
    draw = {"generator": generator, "dtype": torch.float64}
    model.covar_module.base_kernel.lengthscale = 0.3 + torch.rand(3, 1, 2, **draw)
    model.covar_module.outputscale = 0.5 + torch.rand(3, **draw)
    model.mean_module.constant.data = torch.rand(3, **draw)
    model.likelihood.noise = 0.05 + 0.1 * torch.rand(3, 1, **draw)
    return model.eval()


@pytest.mark.some(20)
@every
@pytest.mark.parametrize("shape", [(), (5,), (3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_pending", [0, 2])
def test_shapes_dtypes_and_gradients(acqf_class, options, shape, dtype, n_pending):
    model = make_model(dtype)[0]
    acqf = acqf_class(model, **options)
    acqf.set_X_pending(POOL[:n_pending].to(dtype))
    X = torch.rand(*shape, 1, 2, generator=torch.Generator().manual_seed(1))
    X = X.to(dtype).requires_grad_()
    assert_differentiable(acqf, X, shape)


@every
def test_float32_agrees_with_float64(acqf_class, options):
    X = POOL.unsqueeze(-2)
    double = acqf_class(make_model()[0], **options)(X)
    single = acqf_class(make_model(torch.float32)[0], **options)(X.float())
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-3)


@pytest.mark.some(4)
@every
@pytest.mark.parametrize("n_pending", [0, 2])
def test_gradient_is_right(acqf_class, options, n_pending):
    acqf = acqf_class(make_model()[0], **options)
    acqf.set_X_pending(POOL[10 : 10 + n_pending])
    X = torch.rand(4, 1, 2, generator=torch.Generator().manual_seed(7)).double()
    assert torch.autograd.gradcheck(acqf, X.requires_grad_())


@pytest.mark.some(4)
@every
def test_more_than_one_point_is_refused(acqf_class, options):
    acqf = acqf_class(make_model()[0], **options)
    message = r"one point.*q=1.*got \(2, 2\).*`optimize_acqf\(\.\.\., sequential=True"
    with pytest.raises(BotorchTensorDimensionError, match=message):
        acqf(POOL[:2])
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    settings = {"q": 2, "num_restarts": 1, "raw_samples": 2}
    settings["options"] = {"maxiter": 1}
    with pytest.raises(BotorchTensorDimensionError, match="sequential=True"):
        optimize_acqf(acqf, bounds, **settings)
    X, _ = optimize_acqf(acqf, bounds, **settings, sequential=True)
    assert X.shape == (2, 2)


@pytest.mark.some(4)
@every
@pytest.mark.parametrize("n_pending", [0, 2])
def test_value_of_an_ensemble_is_the_average_of_its_members(
    acqf_class, options, n_pending
):
    model, X = ensemble(), POOL[:6].unsqueeze(-2)
    pending = POOL[8 : 8 + n_pending]
    values = acqf_class(model, **options, X_pending=pending)(X)
    members = [
        acqf_class(member(model, i), **options, X_pending=pending)(X) for i in range(3)
    ]
    assert values.shape == (6,)
    assert not torch.allclose(members[0], members[1])
    torch.testing.assert_close(values, torch.stack(members).mean(dim=0))


def member(model, i):
    _, X, Y, _ = make_model()
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2))
    single = SingleTaskGP(X, Y, covar_module=kernel, outcome_transform=Standardize(1))
    source = model.covar_module
    kernel.base_kernel.lengthscale = source.base_kernel.lengthscale[i].detach()
    kernel.outputscale = source.outputscale[i].detach()
    single.mean_module.constant.data = model.mean_module.constant[i].detach()
    single.likelihood.noise = model.likelihood.noise[i].detach()
    return single.eval()


@pytest.mark.some(4)
@every
def test_each_of_four_points_is_the_best_given_those_before(acqf_class, options):
    acqf = acqf_class(make_model()[0], **options)
    chosen, _ = optimize_acqf_discrete(acqf, q=4, choices=POOL)
    for i in range(4):
        acqf.set_X_pending(chosen[:i])
        rest = torch.stack([x for x in POOL if not (x == chosen[:i]).all(-1).any()])
        best = rest[acqf(rest.unsqueeze(-2)).argmax()]
        torch.testing.assert_close(chosen[i], best)
    assert len(torch.unique(chosen, dim=0)) == 4


@pytest.mark.some(2)
@every
def test_works_in_optimize_acqf(acqf_class, options):
    acqf = acqf_class(make_model()[0], **options)
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    X, values = optimize_acqf(
        acqf, box, q=2, num_restarts=2, raw_samples=32, sequential=True
    )
    best_of_pool = acqf_class(make_model()[0], **options)(POOL.unsqueeze(-2)).max()
    assert X.shape == (2, 2)
    assert values[0] >= best_of_pool - 1e-6


@every
def test_input_constructor_drops_the_sign_of_the_objective(acqf_class, options):
    model = make_model()[0]
    construct = get_acqf_input_constructor(acqf_class)
    X = POOL.unsqueeze(-2)
    values = []
    for weight in (1.0, -1.0):
        sign = ScalarizedPosteriorTransform(torch.tensor([weight]).double())
        arguments = construct(
            model=model,
            training_data=None,
            posterior_transform=sign,
            X_pending=POOL[:2],
            **options,
        )
        values.append(acqf_class(**arguments)(X))
    torch.testing.assert_close(*values)


OF_ONE = {case.cls: case.options(POOL) for case in ACQUISITIONS
          if not case.has_several_outputs}  # fmt: skip


@pytest.mark.some(7)
@pytest.mark.parametrize(("acqf_class", "options"), OF_ONE.items())
@pytest.mark.parametrize("weights", [[1.0, 0.0], [-1.0, 0.0], [0.0, -2.0]])
@pytest.mark.parametrize("as_list", [True, False])
def test_the_metric_of_the_objective_is_taken_whatever_its_sign(
    acqf_class, options, weights, as_list
):
    _, X, Y, _ = make_model()
    other = Y.flip(0) + 1.0
    model = SingleTaskGP(X, torch.cat((Y, other), dim=-1), outcome_transform=None)
    if as_list:  # as Ax has it, with data of its own for each metric
        parts = (SingleTaskGP(X, y, outcome_transform=None) for y in (Y, other))
        model = ModelListGP(*parts)
    model.eval()
    objective = ScalarizedPosteriorTransform(torch.tensor(weights).double())
    arguments = get_acqf_input_constructor(acqf_class)(
        model=model, posterior_transform=objective, X_pending=POOL[:2], **options
    )
    named = model.subset_output([int(weights[0] == 0.0)])
    wanted = acqf_class(named, **options, X_pending=POOL[:2])
    points = POOL[5:].unsqueeze(-2)
    torch.testing.assert_close(acqf_class(**arguments)(points), wanted(points))


@pytest.mark.parametrize(("acqf_class", "options"), OF_ONE.items())
def test_an_objective_of_several_metrics_is_refused(acqf_class, options):
    _, X, Y, _ = make_model()
    model = SingleTaskGP(X, torch.cat((Y, -Y), dim=-1), outcome_transform=None)
    both = ScalarizedPosteriorTransform(torch.tensor([1.0, -1.0]).double())
    construct = get_acqf_input_constructor(acqf_class)
    with pytest.raises(UnsupportedError, match="configure_tracking_metrics"):
        construct(model=model, posterior_transform=both, **options)


@every
def test_points_of_other_columns_are_refused(acqf_class, options):
    acqf = acqf_class(make_model()[0], **options)
    for d in (1, 3):
        message = rf"`X` to have the columns of the model's .* got shape \(4, {d}\)"
        with pytest.raises(BotorchTensorDimensionError, match=message):
            acqf(torch.rand(4, 1, d).double())


@every
def test_pending_points_become_what_the_model_takes(acqf_class, options):
    X, pending = POOL[:3].unsqueeze(-2), POOL[7:9]
    wanted = acqf_class(make_model()[0], **options, X_pending=pending)(X)
    for same in (pending.tolist(), pending.numpy()):
        found = acqf_class(make_model()[0], **options, X_pending=same)(X)
        torch.testing.assert_close(found, wanted)
    acqf = acqf_class(make_model(torch.float32)[0], **options, X_pending=pending)
    for dtype in (torch.float32, torch.float64):
        found = acqf(X.to(dtype)).double()
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)
    with pytest.raises(ValueError, match="`X_pending` to hold numbers"):
        acqf.set_X_pending("all")


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # GPyTorch's, once
def test_other_transforms_and_correlated_models_keep_theirs():
    _, X, Y, _ = make_model()
    construct = get_acqf_input_constructor(Straddle)
    mean = ExpectationPosteriorTransform(n_w=2)
    model = SingleTaskGP(X, Y, outcome_transform=None)
    found = construct(model=model, threshold=0.0, posterior_transform=mean)
    assert found["posterior_transform"] is mean
    tasks = torch.cat([torch.cat((X, torch.full_like(Y, j)), -1) for j in (0, 1)])
    joint = MultiTaskGP(tasks, torch.cat((Y, -Y)), task_feature=-1)
    sign = ScalarizedPosteriorTransform(torch.tensor([-3.0, 0.0]).double())
    found = construct(model=joint, threshold=0.0, posterior_transform=sign)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0]).double())
    wanted = Straddle(joint, 0.0, posterior_transform=first)
    points = POOL[:5].unsqueeze(-2)
    torch.testing.assert_close(Straddle(**found)(points), wanted(points))


def test_a_level_among_standardised_values_is_warned_of():
    _, X, Y, _ = make_model()
    construct = get_acqf_input_constructor(Straddle)
    standard = (Y - Y.mean()) / Y.std()
    bare = SingleTaskGP(X, standard, outcome_transform=None)
    with pytest.warns(UserWarning, match=r"acquisition_generator_spec\(Straddle, opt"):
        construct(model=bare, threshold=21.0)
    construct(model=SingleTaskGP(X, Y, outcome_transform=None), threshold=21.0)
    own = SingleTaskGP(X, Y, outcome_transform=Standardize(1))
    construct(model=own, threshold=21.0)


@pytest.mark.parametrize("acqf_class", [case.cls for case in INTERVALS])
def test_a_list_of_one_model_is_that_model(acqf_class):
    model, options = make_model()[0], TABLE[acqf_class]
    points = POOL.unsqueeze(-2)
    found = acqf_class(ModelListGP(model), **options)(points)
    torch.testing.assert_close(found, acqf_class(model, **options)(points))


@pytest.mark.parametrize("acqf_class", [case.cls for case in MOMENTS])
def test_a_scalarised_model_equals_the_single_one(acqf_class):
    _, X, Y, _ = make_model()
    both = SingleTaskGP(X, torch.cat((Y, -2 * Y), dim=-1), outcome_transform=None)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0]).double())
    options = TABLE[acqf_class]
    acqf = acqf_class(both.eval(), **options, posterior_transform=first)
    acqf.set_X_pending(POOL[:2])
    single = acqf_class(both.subset_output([0]), **options, X_pending=POOL[:2])
    points = POOL.unsqueeze(-2)
    torch.testing.assert_close(acqf(points), single(points))


@every
def test_several_outputs_without_transform_are_refused(acqf_class, options):
    _, X, Y, _ = make_model()
    both = SingleTaskGP(X, torch.cat((Y, -Y), dim=-1), outcome_transform=None)
    with pytest.raises(UnsupportedError, match="output"):
        acqf_class(both, **options)


@pytest.mark.parametrize("acqf_class", [case.cls for case in INTERVALS])
def test_region_classes_refuse_what_they_cannot_do(acqf_class):
    options = TABLE[acqf_class]
    deterministic = GenericDeterministicModel(lambda X: X.sum(-1, keepdim=True))
    with pytest.raises(UnsupportedError, match=r"exact GP.*Straddle"):
        acqf_class(deterministic, **options)
    sign = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())
    with pytest.raises(UnsupportedError, match="`posterior_transform` to be None"):
        acqf_class(make_model()[0], **options, posterior_transform=sign)
    _, X, Y, _ = make_model()
    several = SingleTaskGP(X, torch.cat((Y, -Y), dim=-1), outcome_transform=None)
    second = ScalarizedPosteriorTransform(torch.tensor([0.0, 1.0]).double())
    message = r"Use `Straddle`.*the model of one, `model\.subset_output\(\[i\]\)`"
    with pytest.raises(UnsupportedError, match=message):
        acqf_class(several, **options, posterior_transform=second)
    acqf_class(several.subset_output([1]), **options)
    Straddle(several, 0.5, posterior_transform=second)
    with pytest.raises(ValueError, match=r"one round per training observation \(9\)"):
        acqf_class(make_model()[0], **options, rounds=torch.zeros(4))


@pytest.mark.parametrize("acqf_class", [Straddle, LSEAmbiguity])
def test_bad_levels_are_refused(acqf_class):
    model = make_model()[0]
    with pytest.raises(ValueError, match="`threshold` to be finite, but got nan"):
        acqf_class(model, threshold=float("nan"))
    with pytest.raises(BotorchTensorDimensionError, match="`threshold` to be a scalar"):
        acqf_class(model, threshold=torch.zeros(3))
    with pytest.raises(ValueError, match="`beta`"):
        acqf_class(model, threshold=0.0, beta=-1.0)
    with pytest.raises(ValueError, match="`omega` in \\(0, 1\\), but got 21"):
        ImplicitStraddle(model, omega=21.0, pool=POOL)


@pytest.mark.parametrize("acqf_class", [ExpectedFeasibility, RanjanImprovement])
def test_a_band_needs_a_width(acqf_class):
    model = make_model()[0]
    for alpha in (0.0, float("inf")):
        with pytest.raises(ValueError, match="`alpha`"):
            acqf_class(model, threshold=21.0, alpha=alpha)


def test_entropy_is_largest_where_u_is():
    model, X = make_model()[0], POOL.unsqueeze(-2)
    by_entropy, by_u = (
        acqf(model, threshold=21.0)(X).argsort() for acqf in (ContourEntropy, UFunction)
    )
    assert torch.equal(by_entropy, by_u)


@pytest.mark.parametrize("acqf_class", [Straddle, MaxVariance, LSEAmbiguity, LSEWidth])
@pytest.mark.parametrize("transform", [None, Normalize(POOL.shape[-1])])
@pytest.mark.parametrize("d", [1, 4])
def test_pending_points_of_other_columns_are_refused(acqf_class, transform, d):
    _, X, Y, _ = make_model()
    model = SingleTaskGP(X, Y, input_transform=transform).eval()
    other = torch.rand(5, d).double()
    message = rf"`X_pending` to have the columns .* got shape \(5, {d}\)"
    with pytest.raises(BotorchTensorDimensionError, match=message):
        acqf_class(model, **TABLE[acqf_class], X_pending=other)
    with pytest.raises(BotorchTensorDimensionError, match="`pool` to have the columns"):
        ImplicitStraddle(model, 0.5, other)


@every
def test_pending_points_need_two_dimensions(acqf_class, options):
    acqf = acqf_class(make_model()[0], **options)
    with pytest.raises(BotorchTensorDimensionError, match="`X_pending` to be n' x d"):
        acqf.set_X_pending(POOL[0])


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # GPyTorch's, once
@every
def test_a_model_that_takes_no_transform_is_answered_with_one_that_works(
    acqf_class, options
):
    _, X, Y, _ = make_model()
    both = torch.cat((Y, -Y), dim=-1)
    joint = KroneckerMultiTaskGP(X, both)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0]).double())
    if acqf_class in (LSEAmbiguity, LSEWidth):
        with pytest.raises(UnsupportedError, match="one single-output GP for each"):
            acqf_class(joint, **options)
        assert acqf_class(SingleTaskGP(X, Y), **options)(POOL[:3, None]).shape == (3,)
        return
    for transform in (None, first):
        with pytest.raises(UnsupportedError, match=r"output_tasks=\[0\]\)`"):
            acqf_class(joint, **options, posterior_transform=transform)
    tasks = torch.cat([torch.cat((X, torch.full_like(Y, j)), -1) for j in (0, 1)])
    model = MultiTaskGP(tasks, both.T.reshape(-1, 1), task_feature=-1, output_tasks=[0])
    assert acqf_class(model, **options)(POOL[:3, None]).shape == (3,)
