r"""Batches in large pools: few variances are brought up to date, none too few."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

from botorch_lse import Pool
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior
from botorch_lse.models.shortlist import Shortlist
from botorch_lse.rules import base as rules
from botorch_lse.strategies import (
    Above,
    Ambiguity,
    Below,
    Between,
    ContourEntropy,
    ExpectedFeasibility,
    GaussianProcess,
    RandomizedStraddle,
    RanjanImprovement,
    ScoreRule,
    State,
    Straddle,
    Strategy,
    UFunction,
    Variance,
    Width,
)
from botorch_lse.surrogate.posterior import Posterior
from tests.strategies.runs import played

RULES = [
    Ambiguity(),
    ContourEntropy(),
    ExpectedFeasibility(),
    RandomizedStraddle(),
    RanjanImprovement(),
    Straddle(),
    UFunction(),
    Variance(),
    Width(),
]


def kernel() -> ScaleKernel:
    found = ScaleKernel(MaternKernel(nu=2.5)).double()
    found.base_kernel.lengthscale = 0.2
    return found


def pool_of(n: int, seed: int) -> Pool:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return Pool(torch.cat((X, X[:5])))  # some rows twice: ties


def observed(seed: int = 0, n: int = 12) -> PoolPosterior:
    generator = torch.Generator().manual_seed(seed)
    prior = GPPrior.from_kernel(kernel())
    posterior = PoolPosterior.start(prior, pool_of(100, seed).X)
    rows = torch.randint(100, (n,), generator=generator)
    y = torch.randn(n, generator=generator, dtype=torch.float64)
    return posterior.observe(rows, y, torch.full((n,), 0.04, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(3))
def test_listed_variances_are_those_of_expected_measurements(seed: int) -> None:
    posterior = observed(seed)
    noise = torch.linspace(0.0, 0.1, 105, dtype=torch.float64)  # also exact ones
    one, full = Shortlist(posterior, noise), posterior
    steps = [([3, 50, 7], 7), ([1, 60, 61], 7), ([], 60), ([100, 0], 0), ([99], 99)]
    for added, planned in steps:
        one.add(torch.tensor(added, dtype=torch.long))
        one.plan(planned)
        full = full.expect(planned, float(noise[planned]))
        found, listed = one.posterior.variance, one.is_listed
        assert torch.allclose(found[listed], full.variance[listed], atol=1e-12)
        assert torch.equal(found[~listed], posterior.variance[~listed])
    assert listed.nonzero().view(-1).tolist() == [0, 1, 3, 7, 50, 60, 61, 99, 100]


def ends_with(
    monkeypatch: pytest.MonkeyPatch, size: int, strategy: Strategy, noise: float
) -> State:
    def values(rows: torch.Tensor, state: State) -> torch.Tensor:
        generator = torch.Generator().manual_seed(state.round)
        shape = (len(rows), strategy.goal.facts.n_outputs)
        errors = torch.randn(shape, generator=generator, dtype=torch.float64)
        truth = (5 * strategy.pool.X[rows]).sin().prod(dim=-1, keepdim=True)
        return (truth + noise * errors).squeeze(-1)

    monkeypatch.setattr(rules, "SHORTLIST", size)
    return played(strategy, values)[-1]


@pytest.mark.some(1)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("size", [1, 8])
def test_a_short_list_chooses_the_same_rows(monkeypatch, rule, size: int) -> None:
    for seed, goal in enumerate((Above(0.2, epsilon=0.05), Between(0.1, 0.5))):
        strategy = Strategy(
            pool_of(150, seed),
            goal,
            model=GaussianProcess(kernel(), noise_std=0.1),
            rule=rule,
            beta=4.0,
            batch_size=7,
            max_repeats=3,
            max_observations=42,
        )
        short = ends_with(monkeypatch, size, strategy, 0.1)
        whole = ends_with(monkeypatch, 1000, strategy, 0.1)
        assert len(whole.observations) >= 14
        assert torch.equal(short.observations.indices, whole.observations.indices)


@pytest.mark.parametrize("rule", [Straddle(), Ambiguity()], ids=["straddle", "lse"])
def test_several_outputs_share_one_list(monkeypatch, rule: ScoreRule) -> None:
    strategy = Strategy(
        pool_of(120, 0),
        Above(0.2, epsilon=0.05) & Below(0.4, output=1, epsilon=0.05),
        model=GaussianProcess((kernel(), kernel()), noise_std=0.1),
        rule=rule,
        beta=4.0,
        batch_size=5,
        max_observations=30,
    )
    short = ends_with(monkeypatch, 4, strategy, 0.1)
    whole = ends_with(monkeypatch, 1000, strategy, 0.1)
    assert torch.equal(short.observations.indices, whole.observations.indices)


def test_a_list_that_outgrows_the_budget_is_given_up(monkeypatch) -> None:
    def strategy(budget: int) -> Strategy:
        return Strategy(
            pool_of(150, 0),
            Above(0.2, epsilon=0.05),
            model=GaussianProcess(kernel(), noise_std=0.1, memory_budget=budget),
            rule=Straddle(),
            batch_size=7,
            max_observations=28,
        )

    asked, own = [], Posterior.expecting

    def noted(self: Posterior, rows: torch.Tensor) -> Posterior:
        asked.extend(rows.tolist())
        return own(self, rows)

    monkeypatch.setattr(Posterior, "expecting", noted)
    small = ends_with(monkeypatch, 4, strategy(8 * 400), 0.1)
    assert len(asked) >= 12
    asked.clear()
    roomy = ends_with(monkeypatch, 4, strategy(2**20), 0.1)
    assert not asked
    assert torch.equal(small.observations.indices, roomy.observations.indices)


def test_a_rule_of_ones_own_is_scored_anew_each_time(monkeypatch) -> None:
    asked = []

    class Rising(ScoreRule):
        r"""Likes rows that are known: its scores rise as variances shrink."""

        def scores(self, context):
            asked.append(context.posterior.variance)
            return -context.posterior.variance

    strategy = Strategy(
        pool_of(60, 0),
        Above(0.2),
        model=GaussianProcess(kernel(), noise_std=0.1),
        rule=Rising(),
        batch_size=3,
        max_observations=6,
    )
    ends_with(monkeypatch, 1, strategy, 0.1)
    for before, after in pairwise(asked[:3]):
        assert bool((after <= before).all())
        assert int((after < before).sum()) > 10  # everywhere, not on a list


@pytest.mark.parametrize(
    "rule",
    [r for r in RULES if isinstance(r, ScoreRule)],
    ids=lambda r: type(r).__name__,
)
def test_no_score_rises_when_variances_shrink(monkeypatch, rule: ScoreRule) -> None:
    assert rule.falls_with_variance
    seen = []
    own = type(rule).scores

    def noted(self, context):
        found = own(self, context)
        seen.append((context.belief, found))
        return found

    monkeypatch.setattr(type(rule), "scores", noted)
    strategy = Strategy(
        pool_of(80, 1),
        Above(0.2),
        model=GaussianProcess(kernel(), noise_std=0.1),
        rule=rule,
        beta=4.0,
        batch_size=6,
        max_observations=24,
    )
    ends_with(monkeypatch, 1000, strategy, 0.1)
    compared = 0
    for (before, high), (after, low) in pairwise(seen):
        if before is after:  # the same batch
            compared += 1
            assert bool((low <= high + 1e-9 * high.abs().max()).all())
    assert compared >= 10
