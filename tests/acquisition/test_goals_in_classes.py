r"""Acquisition classes that take a region, against its definition."""

import functools

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_lse import Above, Below, Between, Pool, Strategy
from botorch_lse.acquisition import (
    ContourEntropy,
    ExpectedFeasibility,
    LSEAmbiguity,
    LSEWidth,
    RanjanImprovement,
    Straddle,
    UFunction,
    qEAVC,
    qExpectedMisclassification,
    qGlobalMI,
    qTargetedIMSE,
    qTruVaR,
)
from botorch_lse.acquisition.outputs import units_of
from botorch_lse.strategies import Levels, ShareOfMax
from tests.acquisition.test_contract_classes import ensemble

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

NOISE = (0.01, 0.04)
GOAL = Above(0.8) & Below(0.3, output=1)
TARGETS = torch.rand(25, 2, generator=torch.Generator().manual_seed(1)).double()
BATCH = torch.rand(4, 2, 2, generator=torch.Generator().manual_seed(2)).double()
ONE = [
    Straddle,
    UFunction,
    ContourEntropy,
    ExpectedFeasibility,
    RanjanImprovement,
    LSEAmbiguity,
]
TAKING = [qExpectedMisclassification, qTargetedIMSE]


def values(X):
    first = (4 * X[:, 0]).sin() + X[:, 1]
    return torch.stack((first, 2 * (3 * X[:, 1]).cos() - X[:, 0]), dim=-1)


def output(j, X=None, y=None):
    r"""A process of output ``j``, its values exactly as given."""
    if X is None:
        X = torch.rand(10, 2, generator=torch.Generator().manual_seed(0)).double()
        y = values(X)[:, j : j + 1]
    model = SingleTaskGP(X, y, outcome_transform=None)
    model.likelihood.noise = torch.tensor([NOISE[j]]).double()
    model.covar_module.lengthscale = torch.tensor([[0.4, 0.6]]).double()
    return model.eval()


def both():
    return ModelListGP(output(0), output(1))


def moments(model, X):
    r"""``m x N`` means and standard deviations at ``N x d`` points."""
    with torch.no_grad():
        found = model.posterior(X)
    return found.mean.mT, found.variance.sqrt().mT


# --- one level is one level -----------------------------------------------------------


@pytest.mark.parametrize("cls", ONE)
def test_a_goal_of_one_level_is_that_level(cls) -> None:
    X = BATCH[:, :1]
    own = cls(output(1), threshold=0.3)
    for goal in (Above(0.3), Below(0.3)):
        torch.testing.assert_close(cls(output(1), goal=goal)(X), own(X))


@pytest.mark.parametrize("cls", [*TAKING, qGlobalMI, qEAVC])
def test_a_goal_of_one_level_in_one_of_two_outputs(cls) -> None:
    X = BATCH[:, :1]
    one = Straddle(both(), goal=Above(0.3, output=1))
    torch.testing.assert_close(one(X), Straddle(output(1), 0.3)(X))
    given = {"noise_var": NOISE, "beta": 4.0}
    found = cls(both(), TARGETS, goal=Above(0.3, 0.1, output=1), **given)
    given["noise_var"] = NOISE[1]
    own = cls(output(1), TARGETS, 0.3, epsilon=0.1, **given)
    assert 0 < len(own.targets) < len(TARGETS)
    torch.testing.assert_close(found(BATCH), own(BATCH))


# --- several, by definition -----------------------------------------------------------


@functools.cache
def units():
    return units_of([(output(0), None), (output(1), None)])


@pytest.mark.parametrize("cls", ONE[1:-1])
def test_scores_of_a_conjunction_are_as_defined(cls) -> None:
    found = cls(both(), goal=GOAL)(TARGETS.unsqueeze(-2))
    mean, sigma = moments(both(), TARGETS)
    above = torch.special.ndtr((mean[0] - 0.8) / sigma[0])
    below = torch.special.ndtr((0.3 - mean[1]) / sigma[1])
    p = torch.stack((above * below, 1 - above * below))
    if cls is UFunction:
        expected = torch.special.ndtri(p.amin(dim=0).clamp_min(1e-300))
    elif cls is ContourEntropy:
        expected = -(p * p.clamp_min(1e-300).log()).sum(dim=0)
    else:  # each level by how much the class depends on it
        X, power = TARGETS.unsqueeze(-2), 2 if cls is RanjanImprovement else 1
        first, second = cls(output(0), 0.8)(X), cls(output(1), 0.3)(X)
        expected = below**2 * first / units()[0] ** power
        expected = expected + above**2 * second / units()[1] ** power
    here = p.amin(dim=0) > 1e-12  # where digits are left in 1 - p
    assert here.sum() > 15
    torch.testing.assert_close(found[here], expected[here], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("cls", [Straddle, LSEAmbiguity])
def test_the_score_is_positive_just_where_the_class_is_open(cls) -> None:
    X = torch.rand(300, 1, 2, generator=torch.Generator().manual_seed(5)).double()
    found = cls(both(), goal=GOAL)(X)
    if cls is Straddle:
        mean, sigma = moments(both(), X.squeeze(-2))
        lower, upper = mean - 1.96 * sigma, mean + 1.96 * sigma
    else:
        ends = [LSEWidth(output(j))._region(X) for j in range(2)]
        lower, upper = (torch.stack(end) for end in zip(*ends, strict=True))
    inside = (lower[0] > 0.8) & (upper[1] <= 0.3)
    outside = (upper[0] <= 0.8) | (lower[1] > 0.3)
    for part in (inside, outside, ~inside & ~outside):
        assert part.any()
    assert torch.equal(found > 0, ~(inside | outside))
    # Where one output alone is open, as of that output alone.
    alone = (lower[1] <= 0.3) & (upper[1] <= 0.3) & (lower[0] <= 0.8) & (upper[0] > 0.8)
    own = torch.minimum(upper[0] - 0.8, 0.8 - lower[0]) / units()[0]
    inner = (0.3 - upper[1]) / units()[1]  # the other output is farther from its level
    alone &= inner > (upper[0] - lower[0]) / units()[0]
    assert alone.any()
    torch.testing.assert_close(found[alone], own[alone])


def test_a_point_that_another_output_decides_is_not_chosen() -> None:
    line = torch.linspace(0, 1, 9).double().unsqueeze(-1)
    parts = []
    for y in (5 * line - 2.5, line - 0.2):  # the border of both is 0.5
        part = SingleTaskGP(line, y, torch.full_like(y, 1e-4), outcome_transform=None)
        part.covar_module.lengthscale = torch.tensor([[0.3]]).double()
        parts.append(part.eval())
    goal, fine = Above(0.0) & Above(0.0, output=1), torch.linspace(0, 1, 201).double()
    for cls in ONE:
        with torch.no_grad():
            values = cls(ModelListGP(*parts), goal=goal)(fine.view(-1, 1, 1))
        assert abs(float(fine[values.argmax()]) - 0.5) < 0.05


def test_classes_of_several_levels_are_open_near_each() -> None:
    X = torch.linspace(0, 1, 101).double()
    X = torch.stack((X, torch.full_like(X, 0.5)), dim=-1)
    mean, sigma = moments(output(0), X)
    levels = Levels((0.7, 1.1))
    found = Straddle(output(0), goal=levels)(X.unsqueeze(-2))
    half = 1.96 * sigma[0]
    is_open = torch.zeros(len(X), dtype=torch.bool)
    for level in levels.levels:
        is_open |= (mean[0] - half <= level) & (mean[0] + half > level)
    assert 0 < is_open.sum() < len(X)
    assert torch.equal(found > 0, is_open)


@pytest.mark.parametrize("kind", ["batched", "raw"])
def test_units_are_those_of_the_values(kind) -> None:
    X, Y = output(0).train_inputs[0], values(output(0).train_inputs[0])
    Y = Y * torch.tensor([1000.0, 1.0]).double()
    if kind == "batched":  # with kernels that BoTorch cannot take apart
        shape = torch.Size([2])
        kernel = ScaleKernel(RBFKernel(batch_shape=shape), batch_shape=shape)
        model = SingleTaskGP(X, Y, covar_module=kernel)
    else:
        model = SingleTaskGP(X, Y, outcome_transform=Standardize(2))
    first, second = Straddle(model, goal=GOAL).units
    assert 300 < first / second < 3000


def test_the_expected_fall_of_wrong_sides_is_that_of_a_simulation() -> None:
    model, X, n = both(), BATCH[0], 20_000
    acqf = qExpectedMisclassification(model, TARGETS, goal=GOAL, noise_var=NOISE)
    now, later = torch.ones(2, len(TARGETS)).double().unbind()
    later = later.expand(n, -1)
    generator = torch.Generator().manual_seed(0)
    for j, part in enumerate(model.models):
        with torch.no_grad():
            joint = part.posterior(torch.cat((X, TARGETS))).distribution
        C, mean = joint.covariance_matrix.double(), joint.mean[len(X) :].double()
        noisy = C[: len(X), : len(X)] + NOISE[j] * torch.eye(len(X)).double()
        gain = torch.linalg.solve(noisy, C[: len(X), len(X) :]).mT  # T x q
        variance = C.diagonal()[len(X) :]
        left = (variance - (gain @ C[: len(X), len(X) :]).diagonal()).sqrt()
        drawn = torch.randn(n, len(X), generator=generator, dtype=torch.float64)
        mean_then = mean + drawn @ torch.linalg.cholesky(noisy).mT @ gain.mT
        sign, level = (1, 0.8) if j == 0 else (-1, 0.3)
        now = now * torch.special.ndtr(sign * (mean - level) / variance.sqrt())
        later = later * torch.special.ndtr(sign * (mean_then - level) / left)
    fall = (now * (1 - now) - later * (1 - later)).sum(dim=-1)
    error = float(fall.std()) / n**0.5
    per_cost = float(acqf(X))  # of two measurements that cost one each
    assert 2 * per_cost == pytest.approx(float(fall.mean()), abs=4 * error)
    assert float(fall.mean()) > 20 * error


def test_variances_near_the_levels_count_as_the_side_hangs_on_them() -> None:
    model, X, tau = both(), BATCH[0], (0.1, 0.2)
    acqf = qTargetedIMSE(model, TARGETS, tau=tau, goal=GOAL, noise_var=NOISE)
    mean, sigma = moments(model, TARGETS)
    above = torch.special.ndtr((mean[0] - 0.8) / sigma[0])
    below = torch.special.ndtr((0.3 - mean[1]) / sigma[1])
    expected = 0.0
    for j, other in enumerate((below, above)):
        with torch.no_grad():
            C = model.models[j].posterior(torch.cat((X, TARGETS))).distribution
        C = C.covariance_matrix.double()
        noisy = C[:2, :2] + NOISE[j] * torch.eye(2).double()
        taken = (C[:2, 2:] * torch.linalg.solve(noisy, C[:2, 2:])).sum(dim=0)
        spread = torch.distributions.Normal(
            mean[j], (sigma[j] ** 2 + tau[j] ** 2).sqrt()
        )
        density = spread.log_prob(torch.tensor((0.8, 0.3)[j]).double()).exp()
        expected += float((density * other**2 * taken).sum()) / units()[j]
    assert 2 * float(acqf(X)) == pytest.approx(expected, rel=1e-6)  # per cost


@pytest.mark.parametrize("cls", TAKING)
def test_pending_points_count_as_measured_at_their_means(cls) -> None:
    model, pending = both(), TARGETS[:2] + 0.01
    acqf = cls(model, TARGETS, goal=GOAL, noise_var=NOISE, X_pending=pending)
    more = []
    for j, part in enumerate(model.models):
        with torch.no_grad():
            mean = part.posterior(pending).mean
        X, y = part.train_inputs[0], part.train_targets
        more.append(output(j, torch.cat((X, pending)), torch.cat((y[:, None], mean))))
    later = cls(ModelListGP(*more), TARGETS, goal=GOAL, noise_var=NOISE)
    later.units = acqf.units  # which the data do not change
    torch.testing.assert_close(acqf(BATCH), later(BATCH), rtol=1e-6, atol=1e-9)
    acqf.set_X_pending(None)
    plain = cls(model, TARGETS, goal=GOAL, noise_var=NOISE)
    torch.testing.assert_close(acqf(BATCH), plain(BATCH))


@pytest.mark.parametrize("cls", TAKING)
def test_targets_that_the_data_decide_are_left_out(cls) -> None:
    model = both()
    acqf = cls(model, TARGETS, goal=GOAL, noise_var=NOISE, beta=4.0)
    mean, sigma = moments(model, TARGETS)
    ends = (mean - 2 * sigma, mean + 2 * sigma)
    inside = (ends[0][0] > 0.8) & (ends[1][1] <= 0.3)
    outside = (ends[1][0] <= 0.8) | (ends[0][1] > 0.3)
    is_open = ~(inside | outside)
    assert 0 < is_open.sum() < len(TARGETS)
    kept = cls(model, TARGETS[is_open], goal=GOAL, noise_var=NOISE)
    torch.testing.assert_close(acqf(BATCH), kept(BATCH))
    with pytest.warns(match="sides of all 2 targets are decided"):
        cls(model, TARGETS[outside][:2], goal=GOAL, noise_var=NOISE, beta=4.0)


def test_a_band_leaves_out_targets_of_variance_criteria() -> None:
    band, model = Between(0.5, 0.9, epsilon=0.05), output(0)
    acqf = qTruVaR(both(), TARGETS, beta=4.0, goal=band)
    mean, sigma = moments(model, TARGETS)
    low, high = mean[0] - 2 * sigma[0], mean[0] + 2 * sigma[0]
    inside = (low + 0.05 > 0.5) & (high - 0.05 <= 0.9)
    outside = (high - 0.05 <= 0.5) | (low + 0.05 > 0.9)
    assert torch.equal(acqf.targets, TARGETS[~(inside | outside)])


@pytest.mark.some(1)
@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("cls", [*ONE, *TAKING])
def test_gradients_are_right(cls, pending) -> None:
    options = {"goal": GOAL, "X_pending": TARGETS[:pending]}
    if cls in TAKING:
        options |= {"targets": TARGETS, "noise_var": NOISE}
    X = BATCH[:, : 2 if cls in TAKING else 1].clone()
    if cls is UFunction:  # beyond, rounding is more than what a step changes
        X = X[cls(both(), **options)(X) > -5]
    X.requires_grad_()
    assert torch.autograd.gradcheck(cls(both(), **options), X)


@pytest.mark.some(0, slow=2)
@pytest.mark.parametrize("cls", [Straddle, qExpectedMisclassification])
def test_batches_are_chosen_in_botorchs_loops(cls) -> None:
    options = {"goal": GOAL}
    if cls in TAKING:
        options |= {"targets": TARGETS, "noise_var": NOISE}
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    few = {"num_restarts": 1, "raw_samples": 4, "options": {"maxiter": 5}}
    torch.manual_seed(0)
    X, _ = optimize_acqf(cls(both(), **options), box, q=2, sequential=True, **few)
    assert X.shape == (2, 2)
    assert float(torch.pdist(X)) > 1e-3  # the second knows of the first
    chosen, _ = optimize_acqf_discrete(cls(both(), **options), 2, TARGETS)
    assert chosen.shape == (2, 2)


# --- how it is built ------------------------------------------------------------------


@pytest.mark.parametrize("cls", [Straddle, qExpectedMisclassification])
def test_the_input_constructor_keeps_all_outputs(cls) -> None:
    model, options = both(), {"goal": GOAL}
    if cls in TAKING:
        options |= {"targets": TARGETS, "noise_var": NOISE}
    construct = get_acqf_input_constructor(cls)
    named = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0]).double())
    given = construct(model, posterior_transform=named, **options)
    assert given["model"] is model
    X = BATCH[:, :1]
    torch.testing.assert_close(cls(**given)(X), cls(model, **options)(X))
    one = construct(model, posterior_transform=named, **options | {"goal": Above(0.8)})
    assert one["model"].num_outputs == 1
    y = model.models[0].train_targets
    raw = SingleTaskGP(
        model.models[0].train_inputs[0],
        ((y - y.mean()) / y.std()).unsqueeze(-1),
        outcome_transform=None,
    )
    with pytest.warns(UserWarning, match="`goal` is compared with these"):
        construct(ModelListGP(raw, model.models[1]), **options)


def test_what_is_no_region_is_refused_by_name() -> None:
    model, two = both(), ScalarizedPosteriorTransform(torch.ones(2).double())
    with pytest.raises(ValueError, match=r"`threshold` or `goal` to be.*neither"):
        Straddle(output(0))
    with pytest.raises(ValueError, match=r"exactly one of them.*got both"):
        Straddle(output(0), 0.5, goal=Above(0.5))
    with pytest.raises(ValueError, match=r"`goal` to be a region.*got .*ShareOfMax"):
        qExpectedMisclassification(model, TARGETS, goal=ShareOfMax(0.5))
    with pytest.raises(ValueError, match="same levels everywhere"):
        Straddle(output(0), goal=Above((0.1, 0.2)))
    with pytest.raises(UnsupportedError, match="2 outputs of the `goal`, but it has 1"):
        Straddle(output(0), goal=GOAL)
    with pytest.raises(
        UnsupportedError, match="no `posterior_transform` with a `goal`"
    ):
        Straddle(model, goal=GOAL, posterior_transform=two)
    with pytest.raises(UnsupportedError, match="one level of one output for qGlobalMI"):
        qGlobalMI(model, TARGETS, goal=GOAL)
    with pytest.raises(UnsupportedError, match="about one output for qTruVaR"):
        qTruVaR(both(), TARGETS, goal=GOAL)
    with pytest.raises(UnsupportedError, match="without an ensemble for a `goal`"):
        qTargetedIMSE(ensemble(), TARGETS, goal=Between(0.1, 0.2))
    with pytest.raises(ValueError, match=r"`threshold` to be a level.*`goal=Above"):
        qExpectedMisclassification(model, TARGETS, Above(0.5))
    for cls in (qTruVaR, qGlobalMI):
        with pytest.raises(ValueError, match="`epsilon` not beside a `goal`"):
            cls(output(0), TARGETS, goal=Above(0.5), epsilon=0.1)
    mixed = Above(0.5, output="a") & Below(0.1, output=1)
    with pytest.raises(ValueError, match="a name in all parts of a region"):
        Straddle(model, goal=mixed)
    named = Above(0.5, output="a") & Below(0.1, output="b")
    with pytest.raises(ValueError, match=r"outputs by number.*\('a', 'b'\)"):
        Straddle(model, goal=named)
    with pytest.raises(ValueError, match="same wherever output 0 occurs"):
        Straddle(model, goal=Above(0.5, 0.1) & Below(0.7))
    Straddle(ModelListGP(output(0), output(1), output(1)), goal=GOAL)  # one more


def test_a_goal_that_no_values_meet_is_refused() -> None:
    message = r"`goal` that values can meet, but none is output 0 above 0.5 and .* 0.3"
    never = Above(0.5) & Below(0.3)
    with pytest.raises(ValueError, match=message):
        Straddle(output(0), goal=never)
    with pytest.raises(ValueError, match=message):
        Strategy(Pool(TARGETS), never)
    with pytest.raises(ValueError, match="values can meet"):
        Straddle(output(0), goal=Above(0.5) & Below(0.5))
    for goal in (Above(0.3) & Below(0.5), never | Above(0.9), ~never):
        Straddle(output(0), goal=goal)
    Straddle(both(), goal=Above(0.5) & Below(0.3, output=1))


def test_a_goal_of_one_output_takes_the_first_of_several() -> None:
    X = BATCH[:, :1]
    found = Straddle(both(), goal=Between(0.2, 0.8))(X)
    torch.testing.assert_close(found, Straddle(output(0), goal=Between(0.2, 0.8))(X))
