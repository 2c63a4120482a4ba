r"""Choices from a sample of targets, against those from the sums of every pair."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import pytest
import torch
from torch import Tensor

from botorch_lse import Observations, Pool
from botorch_lse.functional.lookahead import (
    AddedRemoval,
    expected_misclassification,
    mutual_information,
    targeted_variance,
    truncated_variance,
    volume_series,
)
from botorch_lse.goals.extremes import Maximiser
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior
from botorch_lse.rules import lookahead
from botorch_lse.rules.base import SelectionContext
from botorch_lse.rules.lookahead import Reductions
from botorch_lse.strategies import (
    Above,
    Below,
    Between,
    ExpectedMisclassification,
    GaussianProcess,
    Levels,
    LookAhead,
    Region,
    Strategy,
    TargetedVariance,
    TruncatedVariance,
    Variance,
)
from tests.reference.dense_gp import DenseGP

SIDE, LEVEL = 20, 0.2
N = SIDE**2
TICKS = torch.linspace(0, 1, SIDE, dtype=torch.float64)
X = torch.cartesian_prod(TICKS, TICKS)
PRIOR = GPPrior.from_kernel(DenseGP(lengthscale=(0.15, 0.25)).kernel())
LOSSES = {
    "truncated": lambda d, v: truncated_variance(v, 9.0, 0.4),
    "targeted": targeted_variance,
    "product": expected_misclassification,
    "entropy": mutual_information,
    "joint": lambda d, v: AddedRemoval(mutual_information(d, 1.3 * v), 0.3 * v),
    "volume": volume_series,
    "spread": partial(volume_series, is_square=True),
}
EVERY = {"ALL_PAIRS": 2**40}
WEIGHT = torch.linspace(0.1, 2.0, N, dtype=torch.float64)
COST = 1.0 + X[:, 1]
SAMPLED = {
    "once": {"ALL_PAIRS": 0, "SAMPLE": 48, "SHORTLIST": 24},
    "twice": {"ALL_PAIRS": 0, "SAMPLE": 48, "SHORTLIST": 48, "FINE": 128}
    | {"FINALISTS": 12},
    "rows": {"ALL_PAIRS": 0, "SAMPLE": 64, "SHORTLIST": 32, "MOST_ROWS": 200},
}


def limits(monkeypatch, values: dict[str, int]) -> None:
    for name, value in values.items():
        monkeypatch.setattr(lookahead, name, value)


def reductions(n: int, noise: float, has_costs: bool = False) -> Reductions:
    r"""Every row of a grid a candidate; targets are most of them."""
    rows = torch.randperm(N, generator=torch.Generator().manual_seed(n))[:n]
    noise_var = torch.full((N,), noise**2).double() * (1 + X[:, 0])
    y = (6 * X[rows].sum(dim=-1)).sin()
    posterior = PoolPosterior.start(PRIOR, X).observe(rows, y, noise_var[rows])
    every = torch.arange(N)
    costs = COST if has_costs else None
    return Reductions(posterior, every, every[every % 7 != 0], noise_var, costs)


def loss_at(given: Reductions, name: str, is_weighted: bool = False):
    posterior = given.posterior

    def at(targets: Tensor):
        distance = posterior.mean[targets] - LEVEL
        loss = LOSSES[name](distance, posterior.variance[targets])
        return loss.weighted(WEIGHT[targets]) if is_weighted else loss

    return at


@pytest.mark.some(18)
@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("n", "noise", "has_costs"), [(5, 0.01, False), (60, 0.3, True)]
)
def test_the_row_chosen_from_a_sample_is_as_good_as_the_best(
    name, n, noise, has_costs, kind, monkeypatch
) -> None:
    given = reductions(n, noise, has_costs)
    at = loss_at(given, name, is_weighted=True)
    wanted = given.summed(at)  # of all pairs
    limits(monkeypatch, SAMPLED[kind])
    found = given.summed(at)
    scored = found > 0
    torch.testing.assert_close(found[scored], wanted[scored], rtol=1e-9, atol=1e-12)
    most = SAMPLED[kind].get("FINALISTS", 2 * SAMPLED[kind]["SHORTLIST"])
    assert int(scored.sum()) <= most < N
    cost = COST if has_costs else torch.ones(N).double()
    best = float((wanted / cost).max())
    assert float((found / cost).max()) >= GOOD[kind] * best


GOOD = {"once": 0.99, "twice": 0.99, "rows": 0.97}
"""The least share of what the best row takes off, with samples as small as here."""


@pytest.mark.some(4)
@pytest.mark.parametrize("name", LOSSES)
def test_a_target_in_a_sample_counts_for_its_share_of_the_loss(name) -> None:
    r"""A comb with very many teeth meets each target as often as its loss says."""
    given = reductions(60, 0.3)
    at = loss_at(given, name)
    loss = at(given.targets).whole(given.posterior.variance[given.targets])
    kept, mass = lookahead.systematic_sample(loss, 2**20, 0)
    targets = given.targets[kept]
    some = replace(given, targets=targets, weights=mass / loss[kept])
    found, wanted = some._every_sum(at), given._every_sum(at)
    assert float((found - wanted).abs().max()) < 1e-3 * float(wanted.max())


# --- rules in strategies --------------------------------------------------------------

TWO = Above(0.0) & Below(0.6, output=1)
CASES: dict[str, tuple[LookAhead, Region | Maximiser, bool]] = {
    "and": (ExpectedMisclassification(), TWO, False),
    "and, joint": (ExpectedMisclassification(batch="joint"), TWO, False),
    "and, targeted": (TargetedVariance(), TWO, False),
    "and, single outputs": (ExpectedMisclassification(), TWO, True),
    "either": (
        ExpectedMisclassification(),
        (Above(0.0) | Above(0.6, output=1)) & ~TWO,
        False,
    ),
    "band": (ExpectedMisclassification(), Between(-0.3, 0.5), False),
    "levels": (ExpectedMisclassification(), Levels((-0.5, 0.0, 0.5)), False),
    "maximiser": (TruncatedVariance(eta=0.3), Maximiser(), False),
    "maximiser, anticipated": (
        TruncatedVariance(eta=0.3, anticipates=True),
        Maximiser(),
        False,
    ),
    "level, anticipated": (
        TruncatedVariance(eta=0.3, anticipates=True),
        Above(LEVEL),
        False,
    ),
}


@cache
def situation_of(name: str) -> SelectionContext:
    r"""After 30 measurements, while two more are being made."""
    rule, goal, is_single = CASES[name]
    M = getattr(goal, "n_outputs", 1)
    model = GaussianProcess(PRIOR if M == 1 else (PRIOR,) * M, noise_std=0.2)
    pool = Pool(X).at_outputs(M, costs=(1.0, 2.0)) if is_single else Pool(X)
    given = {"model": model, "beta": 4.0, "batch_size": 30}
    rows = torch.randperm(len(pool), generator=torch.Generator().manual_seed(3))[:30]
    y = (6 * X[rows % N].sum(dim=-1) + rows // N).sin()
    if M > 1 and not is_single:
        y = torch.stack((y, (5 * X[rows, 0]).cos()), dim=-1)
    cheap = Strategy(pool, goal, rule=Variance(), **given)
    belief = cheap.replay(Observations(rows, y)).belief
    strategy = Strategy(pool, goal, rule=rule, **given)
    memory = strategy.rule.start(belief.posterior, 4.0)
    pending = torch.tensor([70, 200])
    return strategy.parts.context(replace(belief, memory=memory), pending)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", SAMPLED)
def test_rules_choose_from_a_sample_as_well_as_from_all(
    name, kind, monkeypatch
) -> None:
    rule, context = CASES[name][0], situation_of(name)
    every = torch.arange(len(context.open_rows))
    limits(monkeypatch, EVERY)
    wanted = rule.scores(context, None, every)
    limits(monkeypatch, SAMPLED[kind])
    found = rule.scores(context, None, every)
    scored = found > 0
    torch.testing.assert_close(found[scored], wanted[scored], rtol=1e-8, atol=1e-10)
    assert float(found.max()) >= GOOD[kind] * float(wanted.max())
    assert int(scored.sum()) < len(every)
