r"""The design criteria against dense formulas, and what every acquisition promises."""

import numpy as np
import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.kernels import LinearKernel

from botorch_lse.acquisition import qGEGE, qHRAGE, qMELK, qMILK
from botorch_lse.acquisition import targets as targets_module
from botorch_lse.data.pool import Pool
from tests.acquisition.conftest import (
    assert_differentiable,
    batches,
    make_model,
    with_noise,
)
from tests.acquisition.test_contract_classes import ensemble, member
from tests.registry import DESIGNED

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

POOL = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
WEIGHTS = torch.linspace(3.0, 0.0, 13, dtype=torch.float64)
TABLE = {case.cls: case.options(POOL[:13]) for case in DESIGNED}
TABLE[qMELK] = {"targets": Pool(POOL[:13])}  # targets may be a pool
every = pytest.mark.parametrize(("acqf_class", "options"), TABLE.items())
scalar = pytest.mark.parametrize(
    ("acqf_class", "options"), [(k, v) for k, v in TABLE.items() if k is not qGEGE]
)  # qGEGE takes several outputs and no transform: test_gege_classes.py


def dense_value(dense, batch, targets, noise, omega=None, target_weights=None):
    """Minus the largest variance, from one matrix inverse over all observations."""
    X = np.concatenate((dense.X, batch))
    inverse = np.linalg.inv(dense.k(X, X) + np.diag(np.concatenate((*noise,))))
    C = dense.k(targets, targets) - dense.k(targets, X) @ inverse @ dense.k(X, targets)
    if target_weights is not None:
        return -(target_weights.numpy() * np.diag(C)).max()
    if omega is None:
        return -np.diag(C).max()
    own = np.diag(C)
    return -(own[:, None] + omega**2 * own - 2 * omega * C).max()


@pytest.mark.some(16)
@every
@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("n_pending", [0, 3])
@with_noise("kind", {kind: kind for kind in ("model", "number", "function")}, "model")
def test_values_equal_dense_formulas(
    model_and_dense, acqf_class, options, q, n_pending, kind
):
    model, dense, own_noise = model_and_dense
    at = {
        "model": lambda X: np.full(len(X), own_noise),
        "number": lambda X: np.full(len(X), 0.3),
        "function": lambda X: 0.1 + X[..., 0] ** 2,
    }[kind]
    given = {
        "model": None,
        "number": 0.3,
        "function": lambda X: 0.1 + X[..., 0].square(),
    }[kind]
    pending = POOL[5 : 5 + n_pending]
    acqf = acqf_class(model, **options, noise_var=given, X_pending=pending)
    X = batches((3,), q)
    X[0, -1] = X[0, 0]  # a replicate inside the batch
    X[1, -1] = model.train_inputs[0][0]  # one of the data
    values = acqf(X).detach().numpy()
    targets = options["targets"]
    targets = (targets.X if isinstance(targets, Pool) else targets).numpy()
    for i in range(3):
        batch = np.concatenate((X[i].numpy(), pending.numpy()))
        noise = (dense.noise, at(batch))
        rest = {k: v for k, v in options.items() if k != "targets"}
        want = dense_value(dense, batch, targets, noise, **rest)
        assert values[i] == pytest.approx(want, rel=1e-9)


@pytest.mark.some(11)
@every
@pytest.mark.parametrize("shape", [(), (5,), (3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_pending", [0, 2])
def test_shapes_dtypes_and_gradients(acqf_class, options, shape, dtype, n_pending):
    acqf = acqf_class(make_model(dtype)[0], **options)
    acqf.set_X_pending(POOL[:n_pending].to(dtype))
    X = batches(shape, 3, dtype).requires_grad_()
    assert_differentiable(acqf, X, shape)


@every
def test_float32_agrees_with_float64(acqf_class, options):
    X = batches((6,), 3)
    double = acqf_class(make_model()[0], **options)(X)
    single = acqf_class(make_model(torch.float32)[0], **options)(X.float())
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-3)


@pytest.mark.some(1)
@every
@pytest.mark.parametrize("n_pending", [0, 2])
def test_gradient_is_right(acqf_class, options, n_pending):
    acqf = acqf_class(make_model()[0], **options, noise_var=0.5)
    acqf.set_X_pending(POOL[10 : 10 + n_pending])
    X = batches((4,), 3)
    X[0, 1] = X[0, 0]  # a replicate; Matern-5/2 is smooth at 0
    assert torch.autograd.gradcheck(acqf, X.requires_grad_())


@every
def test_order_inside_the_batch_is_irrelevant(acqf_class, options):
    acqf, X = acqf_class(make_model()[0], **options), batches((5,), 4)
    torch.testing.assert_close(acqf(X), acqf(X.flip(-2)))


@every
def test_pending_points_count_as_part_of_the_batch(acqf_class, options):
    model, X = make_model()[0], batches((), 5)
    whole = acqf_class(model, **options)(X)
    acqf = acqf_class(model, **options, X_pending=X[:2])
    torch.testing.assert_close(acqf(X[2:]), whole)
    acqf.set_X_pending(X[:4])
    torch.testing.assert_close(acqf(X[4:]), whole)
    acqf.set_X_pending(None)
    torch.testing.assert_close(acqf(X), whole)


@every
def test_pending_points_whose_noise_is_refused_are_not_taken(acqf_class, options):
    def noise(X):
        return 1.5 - X[..., 0].clamp_min(1.0)  # below 0 from 1.5 on

    model, X = make_model()[0], batches((), 5)
    acqf = acqf_class(model, **options, noise_var=noise, X_pending=X[:2])
    before = acqf(X[2:])
    with pytest.raises(ValueError, match="noise_var"):
        acqf.set_X_pending(X[:2] + 2.0)
    torch.testing.assert_close(acqf.X_pending, X[:2])
    torch.testing.assert_close(acqf(X[2:]), before)


@every
def test_a_replicate_is_a_second_observation(acqf_class, options):
    model, x = make_model()[0], batches((), 1)
    twice = acqf_class(model, **options, noise_var=0.6)(x.expand(2, 2))
    better = acqf_class(model, **options, noise_var=0.3)(x)
    torch.testing.assert_close(twice, better)


@pytest.mark.some(4)
@every
@pytest.mark.parametrize("n_pending", [0, 2])
def test_value_of_an_ensemble_is_the_average_of_its_members(
    acqf_class, options, n_pending
):
    model, X = ensemble(), batches((6,), 2)
    pending = POOL[8 : 8 + n_pending]
    values = acqf_class(model, **options, X_pending=pending)(X)
    members = [
        acqf_class(member(model, i), **options, X_pending=pending)(X) for i in range(3)
    ]
    assert values.shape == (6,)
    assert not torch.allclose(members[0], members[1])
    torch.testing.assert_close(values, torch.stack(members).mean(dim=0))


@pytest.mark.some(2)
@scalar
@pytest.mark.parametrize("n_pending", [0, 2])
def test_a_scalarised_model_equals_the_single_one(acqf_class, options, n_pending):
    _, X, Y, _ = make_model()
    both = SingleTaskGP(X, torch.cat((Y, -2 * Y), dim=-1), outcome_transform=None)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0]).double())
    pending = POOL[:n_pending]
    acqf = acqf_class(
        both.eval(), **options, posterior_transform=first, X_pending=pending
    )
    single = acqf_class(both.subset_output([0]), **options, X_pending=pending)
    points = batches((3, 2), 2)
    torch.testing.assert_close(acqf(points), single(points))
    weights = ScalarizedPosteriorTransform(torch.tensor([0.0, -3.0]).double())
    scaled = acqf_class(both, **options, posterior_transform=weights, noise_var=9 * 0.2)
    second = acqf_class(both.subset_output([1]), **options, noise_var=0.2)
    torch.testing.assert_close(scaled(points), 9 * second(points))


@pytest.mark.some(6)
@every
@pytest.mark.parametrize("budget", [2**8, 2**13])
def test_blocks_of_targets_change_nothing(monkeypatch, acqf_class, options, budget):
    model, X = make_model()[0], batches((3,), 2)
    whole = acqf_class(model, **options)(X)
    monkeypatch.setattr(targets_module, "CACHE", 0)
    blocks = targets_module.row_blocks
    monkeypatch.setattr(
        targets_module, "row_blocks", lambda n, per: blocks(n, per, budget)
    )
    torch.testing.assert_close(acqf_class(model, **options)(X), whole)


@pytest.mark.some(0, slow=3)
@every
def test_works_in_optimize_acqf_with_a_joint_batch(acqf_class, options):
    acqf = acqf_class(make_model()[0], **options)
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    # The maximum has kinks, where line searches end early: more restarts than usual.
    X, value = optimize_acqf(acqf, box, q=3, num_restarts=8, raw_samples=128)
    random = acqf(batches((100,), 3)).max()
    assert X.shape == (3, 2)
    assert value >= random - 1e-9


@every
def test_each_of_three_points_is_the_best_given_those_before(acqf_class, options):
    acqf = acqf_class(make_model()[0], **options)
    chosen, _ = optimize_acqf_discrete(acqf, q=3, choices=POOL)
    for i in range(3):
        acqf.set_X_pending(chosen[:i])
        rest = torch.stack([x for x in POOL if not (x == chosen[:i]).all(-1).any()])
        best = rest[acqf(rest.unsqueeze(-2)).argmax()]
        torch.testing.assert_close(chosen[i], best)


@every
def test_input_constructor_drops_the_sign_of_the_objective(acqf_class, options):
    model, X = make_model()[0], batches((4,), 2)
    construct = get_acqf_input_constructor(acqf_class)
    values = []
    for weight in (1.0, -1.0):
        sign = ScalarizedPosteriorTransform(torch.tensor([weight]).double())
        arguments = construct(
            model=model,
            training_data=None,
            posterior_transform=sign,
            X_pending=POOL[:2],
            noise_var=0.4,
            **options,
        )
        values.append(acqf_class(**arguments)(X))
    torch.testing.assert_close(*values)
    direct = acqf_class(model, **options, noise_var=0.4, X_pending=POOL[:2])(X)
    torch.testing.assert_close(values[0], direct)


def test_milk_counts_a_point_against_itself():
    model, x = make_model()[0], POOL[:1]
    alone = qMILK(model, x, omega=0.5)(POOL[3:5])
    torch.testing.assert_close(alone, 0.25 * qMELK(model, x)(POOL[3:5]))


def test_equal_weights_change_nothing_and_others_the_scale():
    model, X = make_model()[0], batches((5,), 3)
    plain = qHRAGE(model, POOL[:9])(X)
    torch.testing.assert_close(plain, qMELK(model, POOL[:9])(X))
    five = torch.full((9,), 5.0)
    torch.testing.assert_close(
        qHRAGE(model, POOL[:9], target_weights=five)(X), 5 * plain
    )
    alone = torch.zeros(9)
    alone[4] = 1.0
    torch.testing.assert_close(
        qHRAGE(model, POOL[:9], target_weights=alone)(X), qMELK(model, POOL[4:5])(X)
    )


def test_a_batch_of_a_linear_model_is_a_weighted_g_design():
    # A vague linear prior: the value is the worst w_t |x_t|^2 in the inverse of the
    # information of data and batch, every row with its own noise.
    generator = torch.Generator().manual_seed(4)
    X = torch.rand(8, 2, generator=generator).double()
    Y = X.sum(dim=-1, keepdim=True)
    kernel = LinearKernel().double()
    kernel.variance = 50.0
    Yvar = 0.1 + X[:, :1]
    model = SingleTaskGP(X, Y, Yvar, covar_module=kernel, outcome_transform=None)
    noise = lambda X: 0.2 + X[..., 0].square()  # noqa: E731
    acqf = qHRAGE(model.eval(), POOL[:13], noise, target_weights=WEIGHTS)
    batch = POOL[20:24]
    A = torch.eye(2).double() / 50.0 + X.T @ (X / Yvar)
    A = A + batch.T @ (batch / noise(batch).unsqueeze(-1))
    norms = (POOL[:13] @ torch.linalg.inv(A) * POOL[:13]).sum(dim=-1)
    want = -float((WEIGHTS * norms).max())
    assert float(acqf(batch)) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(
    ("weights", "error", "match"),
    [
        (torch.zeros(9), ValueError, "`target_weights` with a positive entry"),
        (-torch.ones(9), ValueError, "`target_weights`"),
        (torch.ones(8), BotorchTensorDimensionError, "`target_weights`"),
    ],
)
def test_bad_weights_are_refused(weights, error, match):
    with pytest.raises(error, match=match):
        qHRAGE(make_model()[0], POOL[:9], target_weights=weights)


@every
def test_a_model_without_noise_for_new_rows_is_refused(acqf_class, options):
    model = make_model(per_point=True)[0]
    with pytest.raises(UnsupportedError, match=r"`noise_var` for a model.*variance of"):
        acqf_class(model, **options)


@scalar
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"noise_var": -1.0}, ValueError, r"`noise_var` in \[0, inf\), but got -1"),
        ({"noise_var": float("nan")}, ValueError, "`noise_var` to be finite"),
        ({"targets": POOL[:0]}, ValueError, "`targets` to have at least one row"),
        ({"targets": POOL[0]}, BotorchTensorDimensionError, "`targets` to be a matrix"),
        (
            {"targets": torch.zeros(2, POOL.shape[-1] + 1)},
            BotorchTensorDimensionError,
            "`targets` to have the columns of the model's inputs",
        ),
        ({"targets": POOL * float("nan")}, ValueError, "`targets` to be finite"),
        (
            {"posterior_transform": "first"},
            UnsupportedError,
            "`posterior_transform` to be a PosteriorTransform",
        ),
        ({"X_pending": POOL[0]}, BotorchTensorDimensionError, "`X_pending` to be n' x"),
        (
            {"X_pending": torch.zeros(2, POOL.shape[-1] + 1)},
            BotorchTensorDimensionError,
            "`X_pending` to have the . columns of `targets`",
        ),
        ({"X_pending": POOL * float("nan")}, ValueError, "`X_pending` to be finite"),
        ({"model": None}, UnsupportedError, "`model` to be a fitted BoTorch model"),
    ],
)
def test_bad_arguments_are_refused(acqf_class, options, change, error, message):
    with pytest.raises(error, match=message):
        acqf_class(**({"model": make_model()[0]} | options | change))


@every
def test_a_bad_noise_function_is_refused(acqf_class, options):
    model, X = make_model()[0], POOL[:3]
    acqf = acqf_class(model, **options, noise_var=lambda X: X)
    with pytest.raises(BotorchTensorDimensionError, match="b x q variances, here"):
        acqf(X)
    acqf = acqf_class(model, **options, noise_var=lambda X: -X[..., 0])
    with pytest.raises(ValueError, match="`noise_var` to return variances of at least"):
        acqf(X)


@scalar
def test_models_that_cannot_be_handled_are_refused(acqf_class, options):
    _, X, Y, _ = make_model()
    both = SingleTaskGP(X, torch.cat((Y, -Y), dim=-1), outcome_transform=None)
    with pytest.raises(UnsupportedError, match="several outputs"):
        acqf_class(both, **options)
    flat = GenericDeterministicModel(lambda X: X.sum(-1, keepdim=True))
    with pytest.raises(UnsupportedError, match="Gaussian posterior"):
        acqf_class(flat, **options, noise_var=1.0)
    sign = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())
    with pytest.raises(UnsupportedError, match="None for an ensemble"):
        acqf_class(ensemble(), **options, posterior_transform=sign)
    with pytest.raises(BotorchTensorDimensionError, match="columns of `targets`"):
        acqf_class(make_model()[0], **options)(torch.rand(2, 3))


def test_omega_must_be_a_share():
    with pytest.raises(ValueError, match=r"`omega` in \(0, 1\), but got 1"):
        qMILK(make_model()[0], POOL, omega=1.0)
