"""Pools drawn from a distribution, and rows that count by weights."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from botorch.exceptions.warnings import InputDataWarning
from scipy.stats import expon, gumbel_r, lognorm, multivariate_normal, norm, uniform

from botorch_lse import Pool
from botorch_lse.ax.storage import decode_pool, encode_pool
from botorch_lse.data.distributions import GaussianCopula, copula_factor
from tests.data.joint import Joint

R = [[1.0, 0.6], [0.6, 1.0]]
N = 2**14


def share(pool: Pool, is_above: torch.Tensor) -> tuple[float, float]:
    """A weighted share and the standard error of the mean that it is."""
    each = len(pool) * pool.mass * is_above
    return float(each.mean()), float(each.std()) / len(pool) ** 0.5


# --- draws ----------------------------------------------------------------------------


def test_what_sampling_never_draws_is_named() -> None:
    said = r"0\.5 of it is never drawn, and counts as not above\. Widen `sampling`"
    with pytest.warns(InputDataWarning, match=said):
        Pool.from_distribution([uniform()], 64, sampling=[uniform(0, 0.5)])
    Pool.from_distribution([uniform()], 64, sampling=[uniform(-0.5, 2)])  # as advised


@pytest.mark.parametrize("method", ["sobol", "monte_carlo"])
def test_columns_follow_their_marginals(method: str) -> None:
    marginals = [norm(3, 2), uniform(-1, 4), gumbel_r(50, 11)]
    pool = Pool.from_distribution(marginals, N, seed=3, method=method)
    assert pool.is_sample
    assert pool.weights is None
    for marginal, column in zip(marginals, pool.X.numpy().T, strict=True):
        # Kolmogorov's statistic; its 0.9999 quantile is 2.23 / sqrt(N).
        ranks = np.arange(1, N + 1) / N
        gap = np.abs(marginal.cdf(np.sort(column)) - ranks).max()
        assert gap < 2.23 / np.sqrt(N)


def test_sobol_points_are_more_even_than_independent_ones() -> None:
    gaps = {}
    for method in ("sobol", "monte_carlo"):
        pool = Pool.from_distribution([norm(), norm()], 2**10, method=method)
        gaps[method] = abs(float((pool.X.sum(dim=-1) > 1).double().mean()))
        gaps[method] = abs(gaps[method] - norm.sf(1 / np.sqrt(2)))
    assert gaps["sobol"] < gaps["monte_carlo"]


def test_correlation_is_that_of_the_normal_numbers_behind() -> None:
    marginals = [norm(1, 2), expon(scale=3)]
    pool = Pool.from_distribution(marginals, N, seed=0, correlation=R, method="sobol")
    z = np.stack(
        [norm.ppf(m.cdf(x)) for m, x in zip(marginals, pool.X.numpy().T, strict=True)]
    )
    assert np.corrcoef(z)[0, 1] == pytest.approx(0.6, abs=4 * 0.64 / np.sqrt(N))


def test_density_of_joined_normals_is_the_multivariate_one() -> None:
    inputs = GaussianCopula([norm(1, 2), norm(-1, 0.5)], copula_factor(R, 2))
    X = torch.randn(50, 2, generator=torch.Generator().manual_seed(0)).double()
    S = np.diag([2, 0.5])
    found = inputs.log_density(X)
    wanted = multivariate_normal([1, -1], S @ np.asarray(R) @ S).logpdf(X.numpy())
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10)


def test_density_of_joined_lognormals_integrates_to_one() -> None:
    inputs = GaussianCopula([lognorm(0.5), lognorm(0.3, scale=2)], copula_factor(R, 2))
    grid = [torch.linspace(1e-4, 12, 600, dtype=torch.float64)] * 2
    X = torch.cartesian_prod(*grid)
    cell = float(grid[0][1] - grid[0][0]) ** 2
    total = cell * float(inputs.log_density(X).exp().sum())
    assert total == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("correlation", [None, R])
def test_weights_of_another_density_give_the_probability_that_is_meant(
    correlation,
) -> None:
    meant, shifted = [norm(), norm()], [norm(2.5, 1), norm(2.5, 1)]
    pool = Pool.from_distribution(
        meant, N, seed=1, correlation=correlation, sampling=shifted, method="sobol"
    )
    assert pool.weights is not None
    rho = 0.0 if correlation is None else 0.6
    truth = norm.sf(5 / np.sqrt(2 + 2 * rho))  # 2e-4 and 3e-3
    P, error = share(pool, pool.X.sum(dim=-1) > 5)
    assert abs(P - truth) < 4 * error
    assert error < 0.05 * truth  # 16,384 plain draws: 0.55 and 0.15
    assert 1 < pool.effective_size < N / 10


def test_far_tails_keep_their_digits() -> None:
    pool = Pool.from_distribution(
        [norm()], 2**12, sampling=[norm(9, 1)], method="monte_carlo"
    )
    assert pool.weights is not None
    P, error = share(pool, pool.X[:, 0] > 9)
    assert abs(P - norm.sf(9)) < 4 * error < norm.sf(9)


def test_a_joint_distribution_goes_by_its_methods() -> None:
    pool = Pool.from_distribution(Joint(), 64, seed=5)
    same = Pool.from_distribution([norm(), norm()], 64, seed=5, correlation=R)
    torch.testing.assert_close(pool.X, same.X, rtol=0, atol=1e-9)
    assert pool.names == ("load", "strength")
    assert Pool.from_distribution(Joint(names=("x", "x")), 4).names == ("x0", "x1")
    more = pool.extended(32, at=[3, 7], seed=1)
    other = same.extended(32, at=[3, 7], seed=1)
    torch.testing.assert_close(more.X, other.X, rtol=0, atol=1e-7)
    torch.testing.assert_close(more.weights, other.weights, rtol=1e-7, atol=0)
    there = [norm(2, 1), norm(2, 1)]
    drawn = Pool.from_distribution(Joint(), 64, sampling=there)
    wanted = norm.logpdf(drawn.X[:, 0]) + norm.logpdf(
        drawn.X[:, 1], 0.6 * drawn.X[:, 0], 0.8
    )
    wanted -= sum(one.logpdf(x) for one, x in zip(there, drawn.X.T, strict=True))
    np.testing.assert_allclose(drawn.weights, np.exp(wanted), rtol=1e-10)


def test_names_come_from_a_dictionary_or_are_given() -> None:
    marginals = {"load": norm(), "strength": uniform()}
    assert Pool.from_distribution(marginals, 4).names == ("load", "strength")
    assert Pool.from_distribution(marginals, 4, names=["a", "b"]).names == ("a", "b")
    assert Pool.from_distribution([norm()], 4).names == ("x0",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"marginals": norm()}, "`marginals` to be a list of frozen continuous"),
        ({"marginals": []}, "`marginals` to be a list of frozen continuous"),
        ({"marginals": [norm(), norm(0, -1)]}, "entry 1 has the median nan"),
        ({"marginals": [norm([0, 1]), norm()]}, "entry 0 has the median"),
        ({"marginals": [0.5, norm()]}, "entry 0 is 0.5"),
        ({"correlation": [[1.0, 2.0], [2.0, 1.0]]}, "`correlation` to be symmetric"),
        ({"correlation": [[4.0, 0.0], [0.0, 4.0]]}, "not their covariance"),
        ({"n": 0}, "`n`"),
        ({"seed": -1}, "`seed`"),
        ({"method": "halton"}, "`method`"),
        ({"sampling": [uniform(5, 1), norm(), 3]}, "`sampling`.*entry 2 is 3"),
        ({"sampling": [lognorm, norm()]}, "`sampling`.*entry 0"),
        (
            {"marginals": [uniform(), norm()], "sampling": [uniform(5), norm()]},
            "never draws",
        ),
    ],
)
def test_a_distribution_that_is_none_is_refused(change, message: str) -> None:
    given = {"marginals": [norm(), norm()], "n": 8, **change}
    with pytest.raises(ValueError, match=message):
        Pool.from_distribution(**given)


@pytest.mark.parametrize(
    "change", [{"correlation": [[1.0]]}, {"sampling": [norm()]}, {"names": ["a"]}]
)
def test_lengths_that_differ_are_refused(change) -> None:
    with pytest.raises((BotorchTensorDimensionError, ValueError), match="2"):
        Pool.from_distribution([norm(), norm()], 8, **change)


# --- weights --------------------------------------------------------------------------

X = torch.arange(4.0).unsqueeze(-1)


def test_only_ratios_of_weights_matter() -> None:
    one, other = Pool(X, weights=[1, 2, 3, 4]), Pool(X, weights=[10, 20, 30, 40])
    assert one.mass.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert torch.allclose(one.mass, other.mass)
    assert one.effective_size == pytest.approx(10**2 / 30)


def test_shares_are_of_the_total_that_is_given() -> None:
    pool = Pool(X, weights=[1, 2, 3, 4], total=20)
    assert pool.mass.tolist() == pytest.approx([0.05, 0.1, 0.15, 0.2])
    assert Pool(X, total=8).mass.tolist() == [0.125] * 4
    assert pool.effective_size == pytest.approx(10**2 / 30)
    for total in (0, -1.0, float("inf")):
        with pytest.raises(ValueError, match="`total`"):
            Pool(X, total=total)


def test_without_weights_rows_count_the_same() -> None:
    pool = Pool(X)
    assert pool.mass.tolist() == [0.25] * 4
    assert pool.effective_size == 4
    assert not pool.is_sample


def test_weights_belong_to_the_fingerprint_only_where_they_are() -> None:
    hashes = {
        Pool(X).hash,
        Pool(X, weights=[1, 1, 1, 2]).hash,
        Pool(X, weights=[1, 1, 1, 3]).hash,
        Pool(X, is_sample=True).hash,
        Pool(X, total=8).hash,
    }
    assert len(hashes) == 5
    # As it was before there were weights: stored experiments know it.
    assert Pool(X).hash.startswith("f0ad2d896bfb5893")


def test_weights_stand_in_the_table() -> None:
    frame = Pool(X, weights=[1, 2, 3, 4]).to_frame()
    assert frame.columns.tolist() == ["x0", "weight"]
    assert frame["weight"].tolist() == [1, 2, 3, 4]
    table = pd.DataFrame({"weight": [7.0, 8.0], "x": [1.0, 2.0]}, index=["a", "b"])
    frame = Pool(table, weights=[1, 2]).to_frame()
    assert frame.columns.tolist() == ["weight", "x", "weight_lse"]
    assert frame.index.tolist() == ["a", "b"]


def test_weights_are_stored_to_the_last_bit() -> None:
    pool = Pool(X, weights=torch.rand(4).double(), total=7, is_sample=True)
    again = decode_pool(json.loads(json.dumps(encode_pool(pool))))
    assert again.hash == pool.hash
    assert torch.equal(again.weights, pool.weights)
    assert again.is_sample
    assert again.total == 7


def test_noise_levels_keep_the_weights() -> None:
    levels = Pool(X, weights=[1, 2, 3, 4]).at_noise_levels([0.1, 0.2], [2, 1])
    assert levels.mass.view(2, 4).sum(dim=0).tolist() == pytest.approx(
        [0.1, 0.2, 0.3, 0.4]
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, 3, -1], "`weights` to be non-negative"),
        ([0, 0, 0, 0], "`weights` to have one that is positive"),
        ([1, 2, 3, float("nan")], "`weights` to be finite"),
    ],
)
def test_weights_out_of_range_are_refused(weights, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Pool(X, weights=weights)
    with pytest.raises(BotorchTensorDimensionError, match="`weights`"):
        Pool(X, weights=[1, 2])
