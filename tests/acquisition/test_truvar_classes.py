r"""qTruVaR against dense re-conditioning, and what every acquisition promises."""

import numpy as np
import pytest
import torch
from botorch.acquisition.cost_aware import (
    GenericCostAwareUtility,
    InverseCostWeightedUtility,
)
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import ChainedInputTransform, FilterFeatures
from botorch.optim import optimize_acqf, optimize_acqf_discrete

from botorch_lse.acquisition import qTruVaR
from botorch_lse.acquisition import targets as targets_module
from botorch_lse.data.pool import Pool
from tests.acquisition.conftest import (
    assert_differentiable,
    batches,
    make_model,
    with_noise,
)
from tests.acquisition.test_contract_classes import ensemble, member

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

POOL = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
TARGETS = POOL[:13]
BETA = 4.0
etas = pytest.mark.parametrize("eta", [0.0, 2.5])


def price(X):
    return 1.0 + 3.0 * X[..., 1]


def noisiness(X):
    return 0.1 + X[..., 0] ** 2


def variances(dense, targets, seen, noise):
    r"""Variances after the data and ``seen``, from one inverse over everything."""
    X = np.concatenate((dense.X, seen))
    inverse = np.linalg.inv(
        dense.k(X, X) + np.diag(np.concatenate((dense.noise, noise)))
    )
    cross = dense.k(targets, X)
    return np.diag(dense.k(targets, targets) - cross @ inverse @ cross.T)


def brute_force(dense, batch, noise, targets, eta, pending, pending_noise):
    before = variances(dense, targets, pending, pending_noise)
    both = np.concatenate((pending, batch))
    after = variances(dense, targets, both, np.concatenate((pending_noise, noise)))
    widths = [np.maximum(BETA * v, eta**2).sum() for v in (before, after)]
    return widths[0] - widths[1]


# --- reference ----------------------------------------------------------------------


@pytest.mark.some(20)
@etas
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("n_pending", [0, 2])
@with_noise("noise", {"own": None, "one": 0.3, "per x": noisiness}, "own")
@pytest.mark.parametrize("cost", [None, 2.5, price], ids=["unit", "one", "per x"])
def test_values_equal_brute_force_conditioning(
    model_and_dense, eta, q, n_pending, noise, cost
):
    model, dense, own = model_and_dense
    X, pending = batches((4,), q), POOL[20 : 20 + n_pending]
    X[0, -1] = X[0, 0]  # a replicate inside the batch, if q > 1
    X[1, -1] = model.train_inputs[0][0]  # one of the data
    X[2, -1] = TARGETS[3]
    acqf = qTruVaR(model, TARGETS, BETA, eta, cost, noise, pending)

    def at(points):
        if noise is None or noise == 0.3:
            return np.full(len(points), own if noise is None else noise)
        return noisiness(points)

    want = []
    for batch in X.numpy():
        value = brute_force(
            dense,
            batch,
            at(batch),
            TARGETS.numpy(),
            eta,
            pending.numpy(),
            at(pending.numpy()),
        )
        c = price(batch) if callable(cost) else np.full(q, cost or 1.0)
        want.append(value / c.sum())
    np.testing.assert_allclose(acqf(X).detach().numpy(), want, rtol=1e-9, atol=1e-9)
    if eta > 0:
        wide = qTruVaR(model, TARGETS, BETA, 0.0, cost, noise, pending)
        assert (acqf(X) < wide(X)).all()  # the truncation does something


@etas
def test_utilities_weigh_like_the_cost_they_hold(eta):
    model = make_model()[0]
    cost_model = GenericDeterministicModel(lambda X: price(X).unsqueeze(-1))
    inverse = InverseCostWeightedUtility(cost_model)
    generic = GenericCostAwareUtility(lambda X, deltas: deltas / price(X).sum(-1))
    X = batches((3, 5), 3)
    want = qTruVaR(model, TARGETS, BETA, eta, price)(X)
    for utility in (inverse, generic):
        found = qTruVaR(model, TARGETS, BETA, eta, utility)(X)
        torch.testing.assert_close(found, want)


def test_an_ensemble_can_be_weighed_by_a_utility():
    generic = GenericCostAwareUtility(lambda X, deltas: deltas / price(X).sum(-1))
    X = batches((4,), 2)
    values = [qTruVaR(ensemble(), TARGETS, cost=c)(X) for c in (generic, price)]
    torch.testing.assert_close(*values)


@etas
def test_memory_blocks_change_nothing(monkeypatch, eta):
    model, X = make_model()[0], batches((6,), 2)
    want = qTruVaR(model, TARGETS, BETA, eta)(X)
    monkeypatch.setattr(targets_module, "CACHE", 0)

    def singles(n_rows, per_row):
        return [slice(i, min(i + 5, n_rows)) for i in range(0, n_rows, 5)]

    monkeypatch.setattr(targets_module, "row_blocks", singles)
    torch.testing.assert_close(qTruVaR(model, TARGETS, BETA, eta)(X), want)


def test_greedy_steps_add_up_to_the_joint_reduction():
    model, X = make_model()[0], batches((1,), 3)[0]
    joint = qTruVaR(model, TARGETS, BETA, 1.0)(X) * 3
    acqf = qTruVaR(model, TARGETS, BETA, 1.0)
    steps = 0.0
    for i in range(3):
        acqf.set_X_pending(X[:i])
        steps = steps + acqf(X[i : i + 1])
    torch.testing.assert_close(steps, joint)


def test_reached_targets_add_nothing():
    model, X = make_model()[0], batches((5,), 1)
    assert (qTruVaR(model, TARGETS, BETA, eta=100.0)(X) == 0).all()
    sigma = model.posterior(TARGETS).variance.detach().sqrt()[:, 0]
    wide = sigma > sigma.median()
    eta = 2.0 * float(sigma.median())
    torch.testing.assert_close(
        qTruVaR(model, TARGETS, BETA, eta)(X),
        qTruVaR(model, TARGETS[wide], BETA, eta)(X),
    )


def test_values_scale_with_the_square_of_y():
    _, X, Y, _ = make_model()
    values = []
    for scale, shift in ((1.0, 0.0), (10.0, -3.0)):
        model = SingleTaskGP(X, Y * scale + shift, outcome_transform=Standardize(1))
        acqf = qTruVaR(model.eval(), TARGETS, BETA, eta=2.0 * scale)
        values.append(acqf(batches((4,), 2)) / scale**2)
    torch.testing.assert_close(*values)


# --- noise levels -------------------------------------------------------------------


def test_noise_levels_are_a_column_that_the_model_drops():
    plain, X, Y, _ = make_model()
    level = torch.rand(len(X), 1, generator=torch.Generator().manual_seed(2)).double()
    drop = FilterFeatures(torch.tensor([0, 1]))
    scale = Normalize(2, bounds=torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double())
    model = SingleTaskGP(
        torch.cat((X, level), dim=-1),
        Y,
        covar_module=plain.covar_module,
        mean_module=plain.mean_module,
        likelihood=plain.likelihood,
        input_transform=ChainedInputTransform(drop=drop, scale=scale),
        outcome_transform=Standardize(1),
    ).eval()
    levels, costs = (
        torch.tensor([1e-6, 0.5]).double(),
        torch.tensor([15.0, 2.0]).double(),
    )
    targets = torch.cat((TARGETS, torch.zeros(13, 1)), dim=-1)
    acqf = qTruVaR(
        model,
        targets,
        BETA,
        eta=0.5,
        cost=lambda X: costs[X[..., -1].long()],
        noise_var=lambda X: levels[X[..., -1].long()],
    )
    for k in (0, 1):
        x = torch.cat((POOL, torch.full((30, 1), float(k))), dim=-1)
        single = qTruVaR(
            plain, TARGETS, BETA, 0.5, cost=float(costs[k]), noise_var=float(levels[k])
        )
        torch.testing.assert_close(
            acqf(x.unsqueeze(-2)), single(POOL.unsqueeze(-2)), rtol=1e-9, atol=1e-9
        )


# --- contract -----------------------------------------------------------------------


@etas
@pytest.mark.parametrize("shape", [(), (5,), (3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("q", [1, 3])
def test_shapes_dtypes_and_gradients(eta, shape, dtype, q):
    model = make_model(dtype)[0]
    acqf = qTruVaR(model, TARGETS, BETA, eta, price, X_pending=POOL[:2].to(dtype))
    X = batches(shape, q, dtype).requires_grad_()
    assert_differentiable(acqf, X, shape)


@etas
def test_float32_agrees_with_float64(eta):
    X = batches((6,), 3)
    double = qTruVaR(make_model()[0], TARGETS, BETA, eta)(X)
    single = qTruVaR(make_model(torch.float32)[0], TARGETS, BETA, eta)(X.float())
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-3)


@pytest.mark.some(1)
@etas
@pytest.mark.parametrize("n_pending", [0, 2])
def test_gradient_is_right(eta, n_pending):
    model = make_model()[0]
    acqf = qTruVaR(
        model, TARGETS, BETA, eta, price, noisiness, POOL[10 : 10 + n_pending]
    )
    assert torch.autograd.gradcheck(acqf, batches((3,), 2).requires_grad_())


@etas
def test_order_inside_the_batch_is_irrelevant(eta):
    acqf = qTruVaR(make_model()[0], TARGETS, BETA, eta, price)
    X = batches((4,), 3)
    torch.testing.assert_close(acqf(X), acqf(X[:, [2, 0, 1]]))


@etas
@pytest.mark.parametrize("n_pending", [0, 2])
def test_value_of_an_ensemble_is_the_average_of_its_members(eta, n_pending):
    model, X, pending = ensemble(), batches((6,), 2), POOL[8 : 8 + n_pending]
    values = qTruVaR(model, TARGETS, BETA, eta, price, X_pending=pending)(X)
    members = [
        qTruVaR(member(model, i), TARGETS, BETA, eta, price, X_pending=pending)(X)
        for i in range(3)
    ]
    assert values.shape == (6,)
    torch.testing.assert_close(values, torch.stack(members).mean(dim=0))


@etas
@pytest.mark.parametrize("n_pending", [0, 2])
def test_a_scalarised_model_equals_the_single_one(eta, n_pending):
    _, X, Y, _ = make_model()
    both = SingleTaskGP(X, torch.cat((Y, -2 * Y), dim=-1), outcome_transform=None)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0]).double())
    pending = POOL[:n_pending]
    acqf = qTruVaR(
        both.eval(), TARGETS, BETA, eta, X_pending=pending, posterior_transform=first
    )
    single = qTruVaR(both.subset_output([0]), TARGETS, BETA, eta, X_pending=pending)
    points = batches((5,), 2)
    torch.testing.assert_close(acqf(points), single(points), rtol=1e-6, atol=1e-6)


def test_each_of_four_points_is_the_best_given_those_before():
    acqf = qTruVaR(make_model()[0], TARGETS, BETA, 1.0, price)
    chosen, _ = optimize_acqf_discrete(acqf, q=4, choices=POOL)
    for i in range(4):
        acqf.set_X_pending(chosen[:i])
        rest = torch.stack([x for x in POOL if not (x == chosen[:i]).all(-1).any()])
        best = rest[acqf(rest.unsqueeze(-2)).argmax()]
        torch.testing.assert_close(chosen[i], best)


@pytest.mark.parametrize("sequential", [True, False])
def test_works_in_optimize_acqf(sequential):
    acqf = qTruVaR(make_model()[0], POOL, BETA, 1.0, price)
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    X, values = optimize_acqf(
        acqf, box, q=2, num_restarts=2, raw_samples=32, sequential=sequential
    )
    assert X.shape == (2, 2)
    acqf.set_X_pending(None)
    if sequential:
        assert values[0] >= acqf(POOL.unsqueeze(-2)).max() - 1e-6
    else:
        pairs = torch.stack((POOL[:15], POOL[15:]), dim=1)
        assert values >= acqf(pairs).max() - 1e-6


def test_input_constructor_drops_the_sign_of_the_objective():
    model = make_model()[0]
    construct = get_acqf_input_constructor(qTruVaR)
    values = []
    for weight in (1.0, -1.0):
        sign = ScalarizedPosteriorTransform(torch.tensor([weight]).double())
        arguments = construct(
            model=model,
            training_data=None,
            posterior_transform=sign,
            X_pending=POOL[:2],
            targets=Pool(TARGETS),
            beta=BETA,
            eta=1.0,
            cost=price,
            noise_var=0.3,
        )
        values.append(qTruVaR(**arguments)(batches((4,), 2)))
    torch.testing.assert_close(*values)
    want = qTruVaR(model, TARGETS, BETA, 1.0, price, 0.3, POOL[:2])
    torch.testing.assert_close(values[0], want(batches((4,), 2)))


# --- misuse -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beta": 0.0}, ValueError, r"`beta` in \(0, inf\), but got 0"),
        ({"eta": -0.1}, ValueError, r"`eta` in \[0, inf\), but got -0.1"),
        ({"cost": -2.0}, ValueError, r"`cost` in \(0, inf\), but got -2"),
        ({"cost": 0.0}, ValueError, "free measurement"),
        ({"noise_var": -1.0}, ValueError, "`noise_var`"),
        ({"targets": POOL[:0]}, ValueError, "`targets`"),
    ],
)
def test_bad_numbers_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        qTruVaR(make_model()[0], **{"targets": TARGETS, **options})


def test_bad_functions_are_refused():
    model, X = make_model()[0], batches((4,), 2)
    negative = qTruVaR(model, TARGETS, cost=lambda X: X[..., 0] - 10)
    with pytest.raises(ValueError, match=r"`cost` to return positive costs.*smallest"):
        negative(X)
    summed = qTruVaR(model, TARGETS, cost=lambda X: price(X).sum(-1))
    with pytest.raises(BotorchTensorDimensionError, match=r"here \(4, 2\), but got"):
        summed(X)
    silent = qTruVaR(model, TARGETS, cost=lambda X: None)
    with pytest.raises(ValueError, match=r"`cost` to return .* but got None"):
        silent(X)
    with pytest.raises(BotorchTensorDimensionError, match=r"2 columns of `targets`"):
        qTruVaR(model, TARGETS)(POOL[:, :1].unsqueeze(-2))


def test_unknown_noise_of_a_new_row_is_refused():
    model = make_model(per_point=True)[0]
    with pytest.raises(UnsupportedError, match="`noise_var` for a model that knows"):
        qTruVaR(model, TARGETS)


def test_several_outputs_without_transform_are_refused():
    _, X, Y, _ = make_model()
    both = SingleTaskGP(X, torch.cat((Y, -Y), dim=-1), outcome_transform=None)
    with pytest.raises(UnsupportedError, match="output"):
        qTruVaR(both, TARGETS)
