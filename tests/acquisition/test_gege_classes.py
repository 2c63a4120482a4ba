r"""qGEGE against dense formulas: several outputs, the worst of all variances."""

import itertools

import numpy as np
import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import KroneckerMultiTaskGP, ModelListGP, MultiTaskGP, SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.kernels import MaternKernel, ScaleKernel

from botorch_lse.acquisition import qGEGE, qNegMaxPosteriorVariance
from botorch_lse.data.pool import Pool
from botorch_lse.designs import optimal_design
from botorch_lse.optim import optimize_acqf_design
from botorch_lse.planning.designed import design_value, mixed_weights
from tests.acquisition.conftest import assert_differentiable, batches
from tests.acquisition.dense import DenseGP
from tests.acquisition.test_contract_classes import ensemble

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

POOL = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
TARGETS = POOL[:13]
WIDTHS = ((0.3, 0.5), (0.8, 0.2))
SCALES, NOISES = (1.7, 0.6), (0.04, 0.15)


def data(n, seed=3):
    X = torch.rand(n, 2, generator=torch.Generator().manual_seed(seed)).double()
    return X, 20 + 4 * (6 * X.sum(-1, keepdim=True)).sin()


def output(c, dtype=torch.float64, n=9, seed=3):
    r"""One output with its own kernel, noise and, for another seed, its own data."""
    X, Y = data(n, seed)
    Y = Y if c == 0 else -30 * Y + 100 * X[:, :1]
    kernel = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2))
    model = SingleTaskGP(
        X.to(dtype), Y.to(dtype), covar_module=kernel, outcome_transform=Standardize(1)
    )
    kernel.base_kernel.lengthscale = torch.tensor([WIDTHS[c]], dtype=dtype)
    kernel.outputscale = torch.tensor(SCALES[c], dtype=dtype)
    model.likelihood.noise = torch.tensor([NOISES[c]], dtype=dtype)
    scale = float(Y.std())
    noise = scale**2 * NOISES[c]
    dense = DenseGP(
        X.numpy(), Y[:, 0].numpy(), noise, WIDTHS[c], SCALES[c], float(Y.mean()), scale
    )
    return model.eval(), dense, noise


def both(kind="list", dtype=torch.float64):
    r"""A model with two outputs, the dense formulas and the noise of each."""
    if kind == "batched":
        return batched(dtype)
    seeds = (3, 4) if kind == "different data" else (3, 3)
    n = (9, 6) if kind == "different data" else (9, 9)
    parts = [output(c, dtype, n[c], seeds[c]) for c in (0, 1)]
    model = ModelListGP(*[part[0] for part in parts])
    return model.eval(), [part[1] for part in parts], [part[2] for part in parts]


def batched(dtype):
    r"""Both outputs in one ``SingleTaskGP``."""
    X, Y = data(9)
    Y = torch.cat((Y, -30 * Y + 100 * X[:, :1]), dim=-1)
    shape = torch.Size([2])
    kernel = ScaleKernel(
        MaternKernel(nu=2.5, ard_num_dims=2, batch_shape=shape), batch_shape=shape
    )
    model = SingleTaskGP(
        X.to(dtype), Y.to(dtype), covar_module=kernel, outcome_transform=Standardize(2)
    )
    kernel.base_kernel.lengthscale = torch.tensor(WIDTHS, dtype=dtype).unsqueeze(1)
    kernel.outputscale = torch.tensor(SCALES, dtype=dtype)
    model.likelihood.noise = torch.tensor(NOISES, dtype=dtype).unsqueeze(-1)
    parts = [output(c) for c in (0, 1)]
    return model.eval(), [part[1] for part in parts], [part[2] for part in parts]


def worst_variance(dense, batch, targets, noise):
    X = np.concatenate((dense.X, batch))
    noise = np.concatenate((dense.noise, np.broadcast_to(noise, len(batch))))
    inverse = np.linalg.inv(dense.k(X, X) + np.diag(noise))
    own = np.diag(dense.k(targets, targets))
    gain = np.einsum("ij,jk,ik->i", dense.k(targets, X), inverse, dense.k(targets, X))
    return (own - gain).max()


kinds = pytest.mark.parametrize("kind", ["list", "batched", "different data"])


@pytest.mark.some(3)
@kinds
@pytest.mark.parametrize("q", [1, 4])
@pytest.mark.parametrize("n_pending", [0, 3])
@pytest.mark.parametrize("noise", ["model", "number", "function", "each"])
@pytest.mark.parametrize("weights", [None, (1.0, 0.002), (1.0, 1e-3)])
def test_values_equal_dense_formulas(kind, q, n_pending, noise, weights):
    model, dense, own = both(kind)
    given, at = {
        "model": (None, lambda X, c: own[c]),
        "number": (0.3, lambda X, c: 0.3),
        "function": (lambda X: 0.1 + X[..., 0] ** 2, lambda X, c: 0.1 + X[:, 0] ** 2),
        "each": ([0.3, lambda X: 5 + X[..., 1]], lambda X, c: (0.3, 5 + X[:, 1])[c]),
    }[noise]
    pending = POOL[20 : 20 + n_pending]
    acqf = qGEGE(model, Pool(TARGETS), given, pending, output_weights=weights)
    X = batches((3,), q)
    X[0, -1] = X[0, 0]  # a replicate inside the batch
    X[1, -1] = data(9)[0][0]  # one of the data
    values = acqf(X).detach()
    for i in range(3):
        batch = torch.cat((X[i], pending)).numpy()
        want = max(
            w * worst_variance(dense[c], batch, TARGETS.numpy(), at(batch, c))
            for c, w in enumerate(weights or (1.0, 1.0))
        )
        assert -float(values[i]) == pytest.approx(want, rel=1e-9)


def test_either_output_can_be_the_worst():
    model, dense, own = both()
    X = batches((), 3)
    worst = [
        worst_variance(d, X.numpy(), TARGETS.numpy(), own[c])
        for c, d in enumerate(dense)
    ]
    for weights in ((1.0, 1e-6), (1e-6, 1.0)):
        value = qGEGE(model, TARGETS, output_weights=weights)(X)
        leads = int(np.argmax(weights))
        assert -float(value) == pytest.approx(worst[leads], rel=1e-9)


def test_one_output_is_the_worst_variance():
    model, X = output(0)[0], batches((5,), 2)
    torch.testing.assert_close(
        qGEGE(model, TARGETS)(X), qNegMaxPosteriorVariance(model, TARGETS)(X)
    )


@pytest.mark.some(3)
@kinds
@pytest.mark.parametrize("shape", [(), (5,), (3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_pending", [0, 2])
def test_shapes_dtypes_and_gradients(kind, shape, dtype, n_pending):
    acqf = qGEGE(both(kind, dtype)[0], TARGETS, output_weights=(1.0, 0.002))
    acqf.set_X_pending(POOL[20 : 20 + n_pending].to(dtype))
    X = batches(shape, 3, dtype).requires_grad_()
    assert_differentiable(acqf, X, shape)


@kinds
def test_float32_agrees_with_float64(kind):
    X = batches((6,), 3)
    double = qGEGE(both(kind)[0], TARGETS)(X)
    single = qGEGE(both(kind, torch.float32)[0], TARGETS)(X.float())
    torch.testing.assert_close(single.double(), double, rtol=1e-4, atol=1e-3)


@pytest.mark.some(0, slow=3)
@pytest.mark.parametrize("n_pending", [0, 2])
def test_gradient_is_right(n_pending):
    acqf = qGEGE(both()[0], TARGETS, 0.5, output_weights=(1.0, 0.002))
    acqf.set_X_pending(POOL[20 : 20 + n_pending])
    X = batches((4,), 3)
    X[0, 1] = X[0, 0]
    assert torch.autograd.gradcheck(acqf, X.requires_grad_())


@pytest.mark.some(2)
@kinds
def test_order_is_irrelevant_and_pending_points_are_part_of_the_batch(kind):
    model, X = both(kind)[0], batches((), 5)
    acqf = qGEGE(model, TARGETS)
    whole = acqf(X)
    torch.testing.assert_close(acqf(X.flip(-2)), whole)
    acqf.set_X_pending(X[:3])
    torch.testing.assert_close(acqf(X[3:]), whole)
    acqf.set_X_pending(None)
    torch.testing.assert_close(acqf(X), whole)


def test_a_replicate_is_a_second_observation():
    model, x = both()[0], batches((), 1)
    twice = qGEGE(model, TARGETS, 0.6)(x.expand(2, 2))
    torch.testing.assert_close(twice, qGEGE(model, TARGETS, 0.3)(x))


@pytest.mark.exhaustive
@pytest.mark.slow
def test_works_in_optimize_acqf():
    acqf = qGEGE(both()[0], TARGETS, output_weights=(1.0, 0.002))
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(0)
    X, value = optimize_acqf(acqf, box, q=3, num_restarts=8, raw_samples=128)
    assert X.shape == (3, 2)
    assert value >= acqf(batches((100,), 3)).max() - 1e-9
    _, values = optimize_acqf(
        acqf, box, q=2, num_restarts=2, raw_samples=32, sequential=True
    )
    assert values[1] >= values[0] - 1e-9


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [None, (0.1, 300.0)])
def test_batches_are_close_to_the_best_and_never_worse_than_greedy(seed, noise):
    model = both("different data")[0]
    generator = torch.Generator().manual_seed(seed)
    choices = torch.rand(9, 2, generator=generator).double()
    acqf = qGEGE(model, choices[2:], noise, output_weights=(1.0, 0.002))
    X, value = optimize_acqf_design(acqf, choices, 4)
    assert float(acqf(X).detach()) == float(value)
    every = list(itertools.combinations_with_replacement(range(9), 4))
    best = float(acqf(choices[torch.tensor(every)]).max())
    assert best + 1e-12 >= float(value) >= 1.05 * best
    greedy, _ = optimize_acqf_discrete(acqf, q=4, choices=choices, unique=False)
    acqf.set_X_pending(None)
    assert value >= acqf(greedy) - 1e-9


def test_a_larger_pool_is_no_worse_than_greedy():
    acqf = qGEGE(both()[0], TARGETS, output_weights=(1.0, 0.002))
    choices = torch.rand(200, 2, generator=torch.Generator().manual_seed(5)).double()
    greedy, _ = optimize_acqf_discrete(acqf, q=6, choices=choices, unique=False)
    acqf.set_X_pending(None)
    _, value = optimize_acqf_design(acqf, choices, 6)
    assert value >= acqf(greedy) - 1e-9


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_mixture_beats_each_outputs_own_design(seed):
    generator = torch.Generator().manual_seed(seed)
    problems = [
        {
            "X": torch.randn(20, 4, generator=generator).double() * (1 + 9 * skew),
            "gamma": 0.1,
        }
        for skew in torch.rand(3, 1, 4, generator=generator).double()
    ]
    own = [optimal_design(**p, tol=1e-4).weights for p in problems]

    def values(weights):
        return [design_value(p, weights) for p in problems]

    for p, weights in zip(problems, own, strict=True):
        solved = optimal_design(**p, tol=1e-4)
        assert design_value(p, weights) == pytest.approx(solved.value, rel=1e-9)
    mixed = mixed_weights(own, values)
    assert float(mixed.sum()) == pytest.approx(1.0)
    assert max(values(mixed)) <= min(max(values(weights)) for weights in own) + 1e-9
    shares = torch.rand(500, 3, generator=generator).double()
    shares = shares / shares.sum(dim=1, keepdim=True)
    others = [max(values(share @ torch.stack(own))) for share in shares]
    assert max(values(mixed)) <= 1.02 * min(others)


def test_input_constructor_builds_the_same_and_drops_the_objective():
    model, X = both()[0], batches((4,), 2)
    construct = get_acqf_input_constructor(qGEGE)
    sign = ScalarizedPosteriorTransform(torch.tensor([1.0, -1.0]).double())
    options = {"targets": TARGETS, "noise_var": 0.4, "output_weights": (1.0, 0.1)}
    arguments = construct(
        model=model,
        training_data=None,
        posterior_transform=sign,
        X_pending=POOL[:2],
        **options,
    )
    direct = qGEGE(model, **options, X_pending=POOL[:2])
    torch.testing.assert_close(qGEGE(**arguments)(X), direct(X))


def test_a_plain_model_is_taken_apart_as_botorch_does():
    X, Y = data(9)
    Y = torch.cat((Y, -30 * Y + 100 * X[:, :1]), dim=-1)
    model = SingleTaskGP(X, Y, outcome_transform=Standardize(2)).eval()
    points, parts = batches((5,), 3), []
    for c in (0, 1):
        one_hot = torch.eye(2).double()[c]
        transform = ScalarizedPosteriorTransform(one_hot)
        parts.append(
            qNegMaxPosteriorVariance(model, TARGETS, posterior_transform=transform)
        )
    for weights in ((1.0, 1e-9), (1e-9, 1.0)):
        acqf = qGEGE(model, TARGETS, output_weights=weights)
        want = parts[int(np.argmax(weights))](points)
        torch.testing.assert_close(acqf(points), want)


def test_correlated_outputs_and_ensembles_are_refused():
    X, Y = data(9)
    kronecker = KroneckerMultiTaskGP(X, torch.cat((Y, -Y), dim=-1))
    tasks = torch.cat((torch.cat((X, 0 * Y), -1), torch.cat((X, 0 * Y + 1), -1)))
    multi = MultiTaskGP(tasks, torch.cat((Y, -Y)), task_feature=-1)
    for model in (kronecker, multi):
        with pytest.raises(UnsupportedError, match="independent outputs"):
            qGEGE(model, TARGETS)
    mixed = ModelListGP(output(0)[0], ensemble())
    with pytest.raises(UnsupportedError, match="without ensembles"):
        qGEGE(mixed, TARGETS)
    qGEGE(ModelListGP(output(0)[0], output(1)[0]), TARGETS)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"noise_var": -1.0}, ValueError, r"`noise_var` in \[0, inf\), but got -1"),
        ({"noise_var": [1.0]}, BotorchTensorDimensionError, r"per output \(2\), but g"),
        ({"output_weights": [1.0, 0.0]}, ValueError, r"`output_weights` in \(0, inf\)"),
        (
            {"output_weights": torch.ones(3)},
            BotorchTensorDimensionError,
            r"`output_weights` with one entry per output \(2\), but got 3",
        ),
        ({"targets": POOL[:0]}, ValueError, "`targets` to have at least one row"),
        ({"targets": POOL[0]}, BotorchTensorDimensionError, "`targets` to be a matrix"),
        ({"X_pending": POOL[0]}, BotorchTensorDimensionError, "`X_pending` to be n' x"),
    ],
)
def test_bad_arguments_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        qGEGE(both()[0], **({"targets": TARGETS} | change))
    X, Y = data(9)
    known = SingleTaskGP(X, torch.cat((Y, -Y), -1), torch.ones(9, 2).double())
    with pytest.raises(UnsupportedError, match="`noise_var` for a model"):
        qGEGE(known.eval(), TARGETS)
    with pytest.raises(UnsupportedError, match="`model` to be a fitted BoTorch model"):
        qGEGE(None, TARGETS)
