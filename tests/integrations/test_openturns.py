r"""Pools of uncertain inputs from the real distributions of OpenTURNS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from scipy.stats import kendalltau, norm

from botorch_lse import Above, Pool, Strategy
from botorch_lse.data.distributions import FromOpenTURNS
from botorch_lse.strategies import GaussianProcess, rare_event

pytestmark = pytest.mark.engine
ot = pytest.importorskip("openturns")
N = 2**11
R = [[1.0, 0.6], [0.6, 1.0]]


def copulas() -> dict[str, Any]:
    correlation = ot.CorrelationMatrix(R)
    return {
        "independent": ot.IndependentCopula(2),
        "normal": ot.NormalCopula(correlation),
        "Clayton": ot.ClaytonCopula(2.0),
        "Frank": ot.FrankCopula(4.0),
        "Gumbel": ot.GumbelCopula(2.0),
        "Joe": ot.JoeCopula(2.0),
        "Student": ot.StudentCopula(4.0, correlation),
        "mixture": None,  # another kind of joint distribution
    }


def joint(name: str) -> Any:
    marginals = [ot.LogNormal(0.0, 0.3), ot.Gumbel(0.5, 1.0)]
    if name == "mixture":
        near = ot.Normal([2.0, 2.0], [1.0, 1.0], ot.CorrelationMatrix(R))
        return ot.Mixture([ot.Normal(2), near], [0.3, 0.7])
    found = ot.JointDistribution(marginals, copulas()[name])
    found.setDescription(["load", "strength"])
    return found


@pytest.mark.parametrize("name", copulas())
def test_rows_follow_the_distribution(name: str) -> None:
    given = joint(name)
    pool = Pool.from_distribution(given, N, seed=2)
    assert pool.is_sample
    X = pool.X.numpy()
    ranks = np.arange(1, N + 1) / N
    for j in range(2):
        p = np.array(given.getMarginal(j).computeCDF(np.sort(X[:, j])[:, None]))[:, 0]
        assert np.abs(p - ranks).max() < 2.23 / np.sqrt(N)  # of Kolmogorov's, 1e-4
    own = np.array(given.getSample(N))
    gap = kendalltau(*X.T).statistic - kendalltau(*own.T).statistic
    assert abs(gap) < 5 * np.sqrt(2 * 4 / (9 * N))  # the largest variance of tau


@pytest.mark.parametrize("name", copulas())
def test_normal_numbers_are_those_that_give_the_rows(name: str) -> None:
    inputs = FromOpenTURNS(joint(name))
    u = np.random.default_rng(1).normal(size=(64, 2))
    again = inputs.normal_numbers(inputs.values_at(u))
    # Conditional distributions of a Student copula are integrals by quadrature.
    np.testing.assert_allclose(again, u, atol=1e-3 if name == "Student" else 1e-6)


def test_a_normal_copula_is_that_of_scipy_s_marginals() -> None:
    given = ot.JointDistribution(
        [ot.Normal(3.0, 2.0), ot.Normal(-1.0, 0.5)],
        ot.NormalCopula(ot.CorrelationMatrix(R)),
    )
    one = Pool.from_distribution(given, 64, seed=5)
    other = Pool.from_distribution([norm(3, 2), norm(-1, 0.5)], 64, seed=5,
                                   correlation=R)  # fmt: skip
    torch.testing.assert_close(one.X, other.X, rtol=1e-6, atol=1e-6)


def test_descriptions_are_names() -> None:
    assert Pool.from_distribution(joint("Clayton"), 4).names == ("load", "strength")
    named = Pool.from_distribution(joint("Clayton"), 4, names=["a", "b"])
    assert named.names == ("a", "b")


@pytest.mark.parametrize("sampling", ["OpenTURNS", "scipy"])
def test_rows_drawn_elsewhere_count_by_their_weights(sampling: str) -> None:
    given = joint("Clayton")
    there = [norm(1.6, 0.6), norm(4.0, 1.5)]
    if sampling == "OpenTURNS":
        there = ot.JointDistribution([ot.Normal(1.6, 0.6), ot.Normal(4.0, 1.5)])
    pool = Pool.from_distribution(given, 2**13, sampling=there, seed=3)
    fails = (pool.X[:, 0] > 1.6) & (pool.X[:, 1] > 3.0)
    each = len(pool) * pool.mass * fails
    error = float(each.std()) / len(pool) ** 0.5
    # P(X > x, Y > y) = 1 - F(x) - F(y) + C(F(x), F(y)).
    point = [1.6, 3.0]
    p = [given.getMarginal(j).computeCDF(x) for j, x in enumerate(point)]
    truth = 1 - sum(p) + given.computeCDF(point)
    assert abs(float(each.mean()) - truth) < 5 * error < 0.5 * truth


def test_rare_events_are_met_around_the_likeliest_failures() -> None:
    r"""With the copula of Clayton, whose upper tails hardly go together."""
    given = ot.JointDistribution([ot.Normal(), ot.Normal()], ot.ClaytonCopula(1.0))
    pool = Pool.from_distribution(given, 512, seed=0)
    strategy = Strategy(pool, Above(4.5), model=GaussianProcess(noise_std=0.0),
                        max_observations=80)  # fmt: skip
    content = rare_event(strategy, lambda X: X.sum(dim=-1), n=400).content()
    u = np.random.default_rng(0).normal(size=(200_000, 2))
    truth = float((FromOpenTURNS(given).values_at(u).sum(dim=-1) > 4.5).double().mean())
    assert 0 < truth < 0.01
    assert content.combined[0] <= truth <= content.combined[1]
    assert content.estimate == pytest.approx(truth, rel=0.3)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ot.JointDistribution([ot.Poisson(3.0), ot.Normal()]), "continuous"),
        (lambda: ot.MarshallOlkinCopula(0.3, 0.5), "OpenTURNS says of it"),
    ],
)
def test_what_has_no_density_is_refused(made: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Pool.from_distribution(made(), 8)
    assert "`KernelSmoothing().build(...)`" in str(caught.value)
    smooth = ot.KernelSmoothing().build(made().getSample(200))
    assert len(Pool.from_distribution(smooth, 8)) == 8


def test_marginals_of_openturns_are_to_be_joined() -> None:
    parts = [ot.Normal(), ot.Gumbel()]
    with pytest.raises(ValueError, match="entry 0 is one of OpenTURNS") as caught:
        Pool.from_distribution(parts, 8)
    assert "`openturns.JointDistribution([...])`" in str(caught.value)
    assert len(Pool.from_distribution(ot.JointDistribution(parts), 8)) == 8
    with pytest.raises(ValueError, match="a list of frozen continuous"):
        Pool.from_distribution(ot.Normal, 8)


def test_a_correlation_beside_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no `correlation` beside `marginals`"):
        Pool.from_distribution(joint("normal"), 8, correlation=R)
    with pytest.raises(BotorchTensorDimensionError, match="per marginal"):
        Pool.from_distribution(joint("normal"), 8, sampling=ot.Normal(3))
