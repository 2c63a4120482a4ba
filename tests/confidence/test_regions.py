r"""Intersected regions against a loop over BoTorch's prefix posteriors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.means import ZeroMean
from torch import Tensor

from botorch_lse import Pool
from botorch_lse.confidence import (
    EmptyRegionWarning,
    Regions,
    UnionBeta,
    confidence_regions,
)
from botorch_lse.confidence.regions import warn_if_empty
from botorch_lse.models.gaussian_process import COPIES
from tests.reference.dense_gp import DenseGP

GP = DenseGP(lengthscale=(0.3, 0.4), outputscale=1.3)
N_TRAIN = 10
_RANDOM = torch.Generator().manual_seed(4)
TRAIN_X = torch.rand(N_TRAIN, 2, generator=_RANDOM, dtype=torch.float64)
TRAIN_Y = 20 + 6 * torch.randn(N_TRAIN, 1, generator=_RANDOM, dtype=torch.float64)
TRAIN_YVAR = 0.5 + torch.rand(N_TRAIN, 1, generator=_RANDOM, dtype=torch.float64)
POOL = torch.rand(25, 2, generator=_RANDOM, dtype=torch.float64)

pytestmark = pytest.mark.filterwarnings(
    "ignore::botorch.exceptions.warnings.InputDataWarning"
)


def fitted() -> SingleTaskGP:
    return SingleTaskGP(TRAIN_X, TRAIN_Y, TRAIN_YVAR, covar_module=GP.kernel()).eval()


def loop(
    model: SingleTaskGP, rounds: list[int], beta
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""One interval before the data and one after each complete round."""
    outcome: Standardize = model.outcome_transform
    scale, shift = outcome.stdvs.item(), outcome.means.item()
    labels = sorted(set(rounds))
    lower = torch.full((len(POOL),), -math.inf, dtype=torch.float64)
    upper = -lower
    for t, label in enumerate([None, *labels], start=1):
        n = 0 if label is None else sum(r <= label for r in rounds)
        if n == 0:
            mean = model.mean_module(POOL).detach()
            variance = model.covar_module(POOL).to_dense().diag().detach()
        else:
            prefix = SingleTaskGP(
                TRAIN_X[:n],
                (TRAIN_Y[:n] - shift) / scale,
                TRAIN_YVAR[:n] / scale**2,
                covar_module=model.covar_module,
                mean_module=model.mean_module,
                outcome_transform=None,
            ).eval()
            with torch.no_grad():
                posterior = prefix.posterior(POOL)
            mean, variance = posterior.mean.view(-1), posterior.variance.view(-1)
        mean, sigma = shift + scale * mean, scale * variance.sqrt()
        lower = torch.maximum(lower, mean - math.sqrt(beta(t)) * sigma)
        upper = torch.minimum(upper, mean + math.sqrt(beta(t)) * sigma)
    empty, half = lower > upper, math.sqrt(beta(t)) * sigma
    lower = torch.where(empty, mean - half, lower)
    upper = torch.where(empty, mean + half, upper)
    return lower, upper, mean, sigma


@pytest.mark.parametrize(
    "rounds", [list(range(10)), [0, 0, 0, 0, 1, 1, 1, 5, 5, 7], [3] * 10]
)
@pytest.mark.parametrize("width", ["number", "schedule"])
@pytest.mark.parametrize("budget", [2**30, 8 * COPIES * 10])  # one block, one a row
def test_regions_equal_a_loop_over_rounds(
    rounds: list[int], width: str, budget: int
) -> None:
    model = fitted()
    schedule = UnionBeta(25, 0.1) if width == "schedule" else (lambda t: 2.0)
    regions = confidence_regions(
        model,
        POOL,
        schedule if width == "schedule" else 2.0,
        None if rounds == list(range(10)) else torch.tensor(rounds),
        memory_budget=budget,
    )
    expected = loop(model, rounds, schedule)
    got = (regions.lower, regions.upper, regions.mean, regions.sigma)
    for a, b in zip(got, expected, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-8)


def test_a_memory_budget_below_one_row_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`memory_budget` of at least 480 bytes.*got 1"
    ):
        confidence_regions(fitted(), POOL, 4.0, memory_budget=1)


def test_regions_shrink_with_data_and_keep_the_pool() -> None:
    pool = Pool(POOL)
    regions = confidence_regions(fitted(), pool, 4.0)
    last = 2 * 2 * regions.sigma
    assert regions.pool is pool
    assert (regions.upper - regions.lower <= last + 1e-12).all()


def test_one_round_uses_the_second_width_not_the_tenth() -> None:
    seen: list[int] = []

    def beta(t: int) -> float:
        seen.append(t)
        return 4.0

    confidence_regions(fitted(), POOL, beta, torch.zeros(N_TRAIN, dtype=torch.long))
    assert seen == [1, 2]


def test_of_disjoint_intervals_the_last_one_counts() -> None:
    mean, sigma = torch.tensor([0.0, 0.0]), torch.tensor([1.0, 1.0])
    first = Regions.of_interval(mean, sigma, 1.0)
    both = first.intersect(torch.tensor([5.0, 0.5]), sigma, 1.0)
    assert both.lower.tolist() == [4.0, -0.5]
    assert both.upper.tolist() == [6.0, 1.0]
    assert both.contradicted.tolist() == [True, False]
    assert both.mean.tolist() == [5.0, 0.5]
    # It is not intersected any more: nobody knows which one was wrong.
    third = both.intersect(torch.tensor([4.5, 0.5]), sigma, 1.0)
    assert third.lower.tolist() == [3.5, -0.5]
    assert third.upper.tolist() == [5.5, 1.0]
    assert third.contradicted.tolist() == [True, False]


def test_empty_region_warning_names_the_first_row_and_the_claim() -> None:
    ends = torch.tensor([[0.0, 0.0, 2.0, 1.0], [1.0, 1.0, 3.0, 4.0]])
    contradicted = torch.tensor([False, False, True, True])
    regions = Regions(ends[0], ends[1], ends[0], ends[1], contradicted=contradicted)
    with pytest.warns(
        EmptyRegionWarning, match=r"2 of 4 rows.*first of row 2.*2 to 3.*at 95 %.*noise"
    ):
        warn_if_empty(regions, "at 95 %")


def wrong_runs(width: float, runs: int = 150, delta: float = 0.1) -> int:
    r"""Runs in which some row leaves its region, f drawn from the process."""
    gp = DenseGP(lengthscale=(0.3, 0.4), outputscale=1.0)
    x = POOL.numpy()
    noise = np.full(8, 0.2)
    union = UnionBeta(len(x), delta)
    wrong = 0
    for seed in range(runs):
        f = gp.sample(x, seed)
        random = np.random.default_rng(1000 + seed)
        rows = random.integers(0, len(x), 8)
        y = f[rows] + np.sqrt(0.2) * random.standard_normal(8)
        model = SingleTaskGP(
            POOL[rows],
            torch.tensor(y).unsqueeze(-1),
            torch.tensor(noise).unsqueeze(-1),
            covar_module=gp.kernel(),
            mean_module=ZeroMean(),
            outcome_transform=None,
        ).eval()
        regions = confidence_regions(model, POOL, lambda t: width**2 * union(t))
        truth = torch.tensor(f)
        inside = (regions.lower <= truth) & (truth <= regions.upper)
        wrong += not bool(inside.all())
    return wrong


@pytest.mark.slow
def test_lemma_one_holds_by_simulation_and_fails_with_a_third_of_the_width() -> None:
    # 150 runs, delta = 0.1: 4 standard errors above 15 are 29.7.
    assert wrong_runs(1.0) <= 15 + 4 * math.sqrt(150 * 0.1 * 0.9)
    assert wrong_runs(1 / 3) > 75


def test_ensembles_are_refused() -> None:
    taus = torch.tensor([0.1, 0.2]).double()
    model = EnsembleMapSaasSingleTaskGP(TRAIN_X, TRAIN_Y, taus=taus, num_taus=2).eval()
    with pytest.raises(
        UnsupportedError, match=r"one GP, but got an ensemble of \(2,\)"
    ):
        confidence_regions(model, POOL, 9.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beta": -1.0}, ValueError, r"`beta` in \[0, inf\), but got -1"),
        ({"pool": POOL[0]}, BotorchTensorDimensionError, "`pool` to be a matrix"),
        (
            {"pool": torch.rand(5, 3).double()},
            BotorchTensorDimensionError,
            r"`pool` to have the columns of the model's inputs, but got shape \(5, 3\)",
        ),
        (
            {"pool": Pool(POOL[:, :1])},
            BotorchTensorDimensionError,
            r"`pool` to have the columns of .*, but got shape \(25, 1\)",
        ),
        (
            {"beta": lambda t: -3.0},
            ValueError,
            r"`beta\(1\)` in \[0, inf\), but got -3",
        ),
        ({"pool": POOL * torch.nan}, ValueError, "`pool` to be finite, but row 0"),
        ({"rounds": torch.arange(3)}, ValueError, "`rounds` to hold one round per"),
        ({"rounds": "a"}, ValueError, "`rounds` to hold whole numbers, but got str"),
    ],
)
def test_bad_arguments_are_refused(options: dict, error: type, message: str) -> None:
    arguments = {"pool": POOL, "beta": 9.0, **options}
    with pytest.raises(error, match=message):
        confidence_regions(fitted(), **arguments)
