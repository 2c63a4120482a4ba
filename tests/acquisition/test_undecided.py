r"""Targets whose side is decided are left out."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.exceptions.warnings import BotorchWarning

from botorch_lse.acquisition import (
    qEAVC,
    qExpectedMisclassification,
    qGlobalMI,
    qHRAGE,
    qMELK,
    qMILK,
    qNegMaxPosteriorVariance,
    qTargetedIMSE,
    qTruVaR,
)
from botorch_lse.optim import optimize_acqf_design
from tests.acquisition.conftest import batches, make_model
from tests.acquisition.test_contract_classes import ensemble, member

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)

POOL = torch.rand(30, 2, generator=torch.Generator().manual_seed(0)).double()
LEVEL, BETA, EPSILON = 21.0, 1.0, 0.1
PENDING = POOL[20:22]
GIVEN = {"threshold": LEVEL, "beta": BETA, "epsilon": EPSILON}
LOSSES = [
    (qTargetedIMSE, {"tau": 0.3}),
    (qExpectedMisclassification, {}),
    (qGlobalMI, {}),
    (qEAVC, {}),
]
WIDTHS = [
    (qTruVaR, {"eta": 0.5}),
    (qNegMaxPosteriorVariance, {}),
    (qMELK, {}),
    (qHRAGE, {}),
]
every = pytest.mark.parametrize(("cls", "options"), LOSSES + WIDTHS)


def undecided(model, points=POOL, level=LEVEL):
    r"""By the definition, from BoTorch's posterior."""
    posterior = model.posterior(points)
    mean, half = posterior.mean[:, 0], BETA**0.5 * posterior.variance[:, 0].sqrt()
    return (mean - half + EPSILON <= level) & (mean + half - EPSILON > level)


def whole(cls):
    r"""What a class needs to keep all targets given."""
    return {"threshold": LEVEL} if (cls in dict(LOSSES)) else {}


@pytest.mark.some(8)
@every
@pytest.mark.parametrize("q", [1, 3])
def test_the_rest_alone_has_the_same_value(cls, options, q):
    model = make_model()[0]
    is_open = undecided(model)
    assert 0 < is_open.sum() < len(POOL)
    own = {"beta": BETA} if cls is qTruVaR else {}
    some = cls(model, POOL, X_pending=PENDING, **GIVEN, **options)
    rest = POOL[is_open]
    alone = cls(model, rest, X_pending=PENDING, **whole(cls), **own, **options)
    X = batches((4,), q)
    assert torch.equal(some.targets, rest)
    torch.testing.assert_close(some(X), alone(X), rtol=1e-10, atol=0)


@pytest.mark.some(2)
@every
def test_members_of_an_ensemble_have_their_own(cls, options):
    several, X = ensemble(), batches((4,), 2)
    found = cls(several, POOL, noise_var=0.5, **GIVEN, **options)(X)
    members = [member(several, i) for i in range(3)]
    # Of the members, at least two must differ in what they have decided.
    assert len({tuple(undecided(one).tolist()) for one in members}) > 1
    each = [cls(one, POOL, noise_var=0.5, **GIVEN, **options)(X) for one in members]
    torch.testing.assert_close(found, torch.stack(each).mean(dim=0))


def pairs(model, batch, omega, is_open):
    r"""Minus the largest variance of ``f(x) - omega f(x')``, from a joint posterior."""
    acqf = qMILK(model, POOL, omega)
    prepared, L = acqf._batch(batch.unsqueeze(0))
    points = acqf._prepare(POOL)
    W = torch.linalg.solve_triangular(
        L, acqf.covariance.between(prepared, points), upper=False
    )[0]
    C = acqf.covariance.between(points, points) - W.mT @ W
    own = C.diagonal()
    spread = own[:, None] + omega**2 * own - 2 * omega * C
    return -spread[is_open].max()


def test_pairs_keep_decided_targets_as_their_second():
    model, X = make_model()[0], POOL[23:25]
    is_open = undecided(model)
    value = qMILK(model, POOL, 0.7, **GIVEN)(X)
    torch.testing.assert_close(value[0], pairs(model, X, 0.7, is_open))
    several = ensemble()
    found = qMILK(several, POOL, 0.7, noise_var=0.5, **GIVEN)(X)
    each = [
        qMILK(member(several, i), POOL, 0.7, noise_var=0.5, **GIVEN)(X)
        for i in range(3)
    ]
    torch.testing.assert_close(found, torch.stack(each).mean(dim=0))


@pytest.mark.parametrize(("cls", "options"), [(qMELK, {}), (qMILK, {"omega": 0.7})])
def test_designs_are_those_of_what_is_left(cls, options):
    acqf = cls(make_model()[0], POOL, **GIVEN, **options)
    X, value = optimize_acqf_design(acqf, POOL, q=3)
    torch.testing.assert_close(value, acqf(X)[0])
    singles = [acqf(x.expand(3, -1))[0] for x in POOL]
    assert value >= max(singles) - 1e-12


def test_weights_stay_with_their_targets():
    model, X = make_model()[0], batches((4,), 2)
    is_open, weights = undecided(model), torch.linspace(1, 3, len(POOL)).double()
    some = qHRAGE(model, POOL, target_weights=weights, **GIVEN)
    alone = qHRAGE(model, POOL[is_open], target_weights=weights[is_open])
    torch.testing.assert_close(some(X), alone(X))


@pytest.mark.parametrize("cls", [qMELK, qHRAGE])
def test_weights_on_decided_targets_alone_are_refused(cls):
    model, X = make_model()[0], batches((4,), 2)
    known = (~undecided(model)).double()
    with pytest.raises(ValueError, match=r"where a target is not decided.* Leave"):
        cls(model, POOL, target_weights=known, **GIVEN)
    assert bool((cls(model, POOL, target_weights=known)(X) < 0).all())


def test_pending_points_decide_nothing():
    model = make_model()[0]
    acqf = qMELK(model, POOL, **GIVEN)
    before = acqf.targets
    acqf.set_X_pending(POOL)
    assert torch.equal(acqf.targets, before)


@every
def test_where_all_are_decided_all_count(cls, options):
    model, X = make_model()[0], batches((4,), 2)
    given = {**GIVEN, "threshold": 1e3}
    with pytest.warns(BotorchWarning, match="all 30 targets are decided"):
        acqf = cls(model, POOL, **given, **options)
    assert len(acqf.targets) == 30
    assert torch.isfinite(acqf(X)).all()


def test_ax_gives_the_threshold_by_name():
    model, X = make_model()[0], batches((4,), 2)
    construct = get_acqf_input_constructor(qTruVaR)
    acqf = qTruVaR(**construct(model=model, targets=POOL, **GIVEN))
    torch.testing.assert_close(acqf(X), qTruVaR(model, POOL, **GIVEN)(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": float("nan")}, "`threshold`"),
        ({"threshold": LEVEL, "beta": 0.0}, "`beta`"),
        ({"threshold": LEVEL, "epsilon": -1.0}, "`epsilon`"),
        ({"epsilon": 0.1}, "Expected `threshold` where `epsilon`"),
    ],
)
@pytest.mark.parametrize("cls", [qTruVaR, qMELK])
def test_what_makes_no_sense_is_refused(cls, options, message):
    with pytest.raises(ValueError, match=message):
        cls(make_model()[0], POOL, **options)
