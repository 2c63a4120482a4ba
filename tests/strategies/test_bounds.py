r"""Choices from bounds, against those from the sums of every row."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from botorch_lse.functional.lookahead import (
    AddedRemoval,
    expected_misclassification,
    mutual_information,
    targeted_variance,
    truncated_variance,
    volume_series,
)
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior
from botorch_lse.strategies import bounds, lookahead
from botorch_lse.strategies.bounds import largest_share, upper_bounds
from botorch_lse.strategies.lookahead import LeftOutWarning, Reductions
from tests.reference.dense_gp import DenseGP

SIDE, LEVEL = 20, 0.2
N = SIDE**2
LOSSES = {
    "truncated": lambda d, v: truncated_variance(v, 9.0, 0.4),
    "targeted": targeted_variance,
    "product": expected_misclassification,
    "entropy": mutual_information,
    "joint": lambda d, v: AddedRemoval(mutual_information(d, 1.3 * v), 0.3 * v),
    "volume": volume_series,
    "spread": partial(volume_series, is_square=True),
}
NO_PAIRS = {"FEW_PAIRS": 0, "ALL_PAIRS": 0}
WEIGHT = torch.linspace(0.1, 2.0, N, dtype=torch.float64)


def reductions(n: int, noise: float) -> Reductions:
    r"""Every row of a grid a candidate; targets are most of them."""
    ticks = torch.linspace(0, 1, SIDE, dtype=torch.float64)
    X = torch.cartesian_prod(ticks, ticks)
    prior = GPPrior.from_kernel(DenseGP(lengthscale=(0.15, 0.25)).kernel())
    rows = torch.randperm(N, generator=torch.Generator().manual_seed(n))[:n]
    noise_var = torch.full((N,), noise**2).double() * (1 + X[:, 0])
    y = (6 * X[rows].sum(dim=-1)).sin()
    posterior = PoolPosterior.start(prior, X).observe(rows, y, noise_var[rows])
    every = torch.arange(N)
    return Reductions(posterior, every, every[every % 7 != 0], noise_var)


def loss_at(given: Reductions, name: str, is_weighted: bool = False):
    posterior = given.posterior

    def at(targets: Tensor):
        distance = posterior.mean[targets] - LEVEL
        loss = LOSSES[name](distance, posterior.variance[targets])
        return loss.weighted(WEIGHT[targets]) if is_weighted else loss

    return at


@pytest.mark.parametrize("rank", [0, 8, 64, N])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("n", "noise", "is_weighted"), [(5, 0.01, False), (60, 0.3, True)]
)
def test_no_sum_exceeds_its_bound(
    name, n, noise, is_weighted, rank, monkeypatch
) -> None:
    monkeypatch.setattr(bounds, "RANK", rank)
    given = reductions(n, noise)
    at = loss_at(given, name, is_weighted)
    observed = given.posterior.variance + given.noise_var
    found = upper_bounds(given.posterior, given.rows, observed, given.targets, at)
    assert bool((found >= given.summed(at)).all())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(
    ("n", "noise", "is_weighted"), [(0, 0.0, True), (5, 0.01, False), (60, 0.3, True)]
)
def test_no_sum_exceeds_the_bound_of_the_same_covariances(
    name, n, noise, is_weighted
) -> None:
    given = reductions(n, noise)
    effect = loss_at(given, name, is_weighted)(given.targets)
    posterior, observed = given.posterior, given._observed
    pairs = effect.of_covariance(
        posterior.covariance_between(given.rows, given.targets), observed
    )
    variance = posterior.variance[given.targets]
    bound_of = effect.bounds(variance, largest_share(posterior, given.rows, observed))
    found = bound_of(pairs, torch.zeros(N).double())
    exact = effect.total(effect.parts(pairs))
    # A value that tells a target exactly makes its size a jump: see `mean_absolute`.
    slack = 0.015 if name == "volume" and noise == 0 else 1e-9
    assert bool((found >= exact * (1 - 1e-9) - slack * float(noise == 0)).all())
    best = exact.argmax()
    assert float(found[best] / exact[best]) <= 2.0  # it is worth something


def test_the_bound_of_the_best_linear_sum_is_tight() -> None:
    given = reductions(60, 0.3)
    at = loss_at(given, "targeted")
    observed = given.posterior.variance + given.noise_var
    found = upper_bounds(given.posterior, given.rows, observed, given.targets, at)
    wanted = given.summed(at)
    best = wanted.argmax()
    assert float(found[best] / wanted[best]) <= 1.2


@pytest.mark.parametrize("has_costs", [False, True])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("n", "noise"), [(5, 0.01), (60, 0.3)])
def test_the_best_row_by_bounds_is_the_best_of_all(
    name, n, noise, has_costs, monkeypatch
) -> None:
    given = reductions(n, noise)
    cost = 1.0 + given.posterior.F[:, 1] if has_costs else torch.ones(N).double()
    given = replace(given, costs=cost if has_costs else None)
    at = loss_at(given, name)
    wanted = given.summed(at)
    for name_of, value in {**NO_PAIRS, "MOST_PAIRS": N**2, "FIRST_ROWS": 8}.items():
        monkeypatch.setattr(lookahead, name_of, value)
    found = given.summed(at)
    assert int((found / cost).argmax()) == int((wanted / cost).argmax())
    scored = found > 0
    torch.testing.assert_close(found[scored], wanted[scored], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("has_costs", [False, True])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("n", "noise"), [(0, 0.1), (5, 0.01), (60, 0.3)])
def test_rows_left_out_by_bounds_of_all_covariances_are_not_the_best(
    name, n, noise, has_costs, monkeypatch
) -> None:
    given = reductions(n, noise)
    cost = 1.0 + given.posterior.F[:, 1] if has_costs else torch.ones(N).double()
    given = replace(given, costs=cost if has_costs else None)
    at = loss_at(given, name, is_weighted=True)
    wanted = given._every_sum(at)
    monkeypatch.setattr(lookahead, "WAITING", 4 * N)
    monkeypatch.setattr(lookahead, "AT_ONCE", 2**12)  # about ten rows in a piece
    found = given._screened(given._bounded(at), 0.0)
    assert int((found / cost).argmax()) == int((wanted / cost).argmax())
    scored = found > 0
    torch.testing.assert_close(found[scored], wanted[scored], rtol=1e-9, atol=1e-12)
    assert int(scored.sum()) < N
    monkeypatch.setattr(lookahead, "FEW_PAIRS", 0)
    again = given.summed(at)  # in another order
    assert int((again / cost).argmax()) == int((wanted / cost).argmax())
    # A sum that is known leaves out more, and one that is far above leaves out all.
    best = float((wanted / cost).max())
    assert int((given._screened(given._bounded(at), best) > 0).sum()) <= int(
        scored.sum()
    )
    assert int((given._screened(given._bounded(at), 9 * best) > 0).sum()) == 0


@pytest.mark.parametrize("name", LOSSES)
def test_a_choice_that_is_not_proven_says_how_good_it_is(name, monkeypatch) -> None:
    given = reductions(5, 0.01)
    at = loss_at(given, name)
    wanted = given.summed(at)
    for name_of, value in {**NO_PAIRS, "MOST_PAIRS": 0, "FIRST_ROWS": 3}.items():
        monkeypatch.setattr(lookahead, name_of, value)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = given.summed(at)
    (said,) = [w for w in caught if w.category is LeftOutWarning]
    factor = float(str(said.message).split("more than ")[1].split()[0])
    assert float(wanted.max() / found.max()) <= factor + 0.005
    assert int((found > 0).sum()) == 3


@pytest.mark.parametrize("name", list(LOSSES))
def test_promising_rows_come_first_where_few_can_be_scored(name, monkeypatch) -> None:
    r"""A tenth of the rows is scored; bounds without a factor say nothing."""
    given = reductions(20, 0.1)
    full = given._every_sum(loss_at(given, name))
    monkeypatch.setattr(bounds, "RANK", 0)
    values = {
        **NO_PAIRS,
        "ALL_PAIRS": N**2 // 16,
        "MOST_PAIRS": 60 * len(given.targets),
        "FEWER_PAIRS": 40 * len(given.targets),
    }
    for name_of, value in {**values, "FIRST_ROWS": 8}.items():
        monkeypatch.setattr(lookahead, name_of, value)
    # An effect that takes four times as long has a fourth of the rows.
    most = 10 if name in ("volume", "spread") else 40
    with pytest.warns(LeftOutWarning, match=f"{most} were scored exactly"):
        found = given.summed(loss_at(given, name))
    assert int((found > 0).sum()) <= most
    scored = found > 0
    torch.testing.assert_close(found[scored], full[scored])
    good = 0.81 if name == "spread" else 0.9  # of a square, and of the others
    assert float(full[found.argmax()]) >= good * float(full.max())


def test_costs_decide_which_rows_are_promising() -> None:
    given = reductions(20, 0.1)
    every = torch.ones(N, dtype=torch.float64)
    loss = loss_at(given, "product")
    plain = given._promising(loss, every, 24, N**2)
    assert len(plain.unique()) == 24
    dear = every.clone()
    dear[plain] = 1e6
    assert not bool(torch.isin(given._promising(loss, dear, 24, N**2), plain).any())
