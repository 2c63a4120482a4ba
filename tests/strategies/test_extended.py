"""Pools that grow where it matters, against probabilities that are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binom, expon, lognorm, multivariate_normal, norm

from botorch_lse import Pool
from botorch_lse.data.excursion_volume import sampling_limits
from tests.covering import more_in_full

NORMALS = (norm(), norm())


def fails(pool: Pool, beta: float) -> torch.Tensor:
    """A linear limit state: it fails with probability ``Phi(-beta)``."""
    return pool.X.sum(dim=-1) / pool.d**0.5 > beta


def grown(beta: float, seed: int, n: int = 500) -> Pool:
    """Three extensions, each around the row that comes next to failing."""
    pool = Pool.from_distribution(NORMALS, n, seed=seed, method="monte_carlo")
    for _ in range(3):
        u = pool.X.sum(dim=-1)
        reached = min(float(u.max()), beta * 2**0.5)
        failing = (u >= reached).nonzero().view(-1)
        nearest = failing[pool.X[failing].square().sum(dim=-1).argmin()]
        pool = pool.extended(n, at=[int(nearest)], seed=seed)
    return pool


def test_weights_are_the_ratio_of_the_densities() -> None:
    R = np.array([[1.0, 0.6], [0.6, 1.0]])
    marginals = (lognorm(0.5), norm(2.0, 3.0))
    pool = Pool.from_distribution(marginals, 64, correlation=R)
    more = pool.extended(40, at=[3, 9], seed=1).extended(16, at=[80], seed=1)
    # By scipy, from the normal numbers with their correlation.
    X = more.X.numpy()
    z = np.stack([np.log(X[:, 0]) / 0.5, (X[:, 1] - 2) / 3], axis=-1)
    density = multivariate_normal([0, 0], R).pdf(z)
    mixture = 64 * density
    for row, count in ((3, 20), (9, 20), (80, 16)):
        mixture += count * multivariate_normal(z[row], R).pdf(z)
    wanted = density / (mixture / 120)
    assert more.weights.numpy() == pytest.approx(wanted, rel=1e-9)
    assert more.mass.numpy() == pytest.approx(wanted / 120, rel=1e-9)


def test_rows_that_were_there_stay_where_they_are() -> None:
    pool = Pool.from_distribution({"load": expon(), "strength": norm()}, 32)
    more = pool.extended(8, at=[5], seed=2)
    assert torch.equal(more.X[:32], pool.X)
    assert (len(more), more.names) == (40, ("load", "strength"))
    assert more.is_sample
    assert torch.equal(more.X, pool.extended(8, at=[5], seed=2).X)
    assert not torch.equal(more.X, pool.extended(8, at=[5], seed=3).X)
    twice = more.extended(8, at=[5], seed=2)
    assert not torch.equal(twice.X[32:40], twice.X[40:])


@pytest.mark.some(1)
@more_in_full("runs", 50, 1000)
@pytest.mark.parametrize("beta", [norm.isf(1e-5), norm.isf(1e-6)])
def test_rare_probabilities_are_within_their_limits(beta: float, runs: int) -> None:
    missed, errors, stated = 0, [], []
    for seed in range(runs):
        pool = grown(float(beta), seed)
        member = fails(pool, float(beta))
        low, high = sampling_limits(pool.mass, member, False, 0.95)
        missed += not low <= norm.sf(beta) <= high
        errors.append(float(pool.mass[member].sum()) / norm.sf(beta) - 1)
        stated.append((high - low) / 2 / norm.sf(beta))
    # At most 5 % miss it: more do so with probability 1e-3.
    assert missed <= binom.isf(1e-3, runs, 0.05)
    # The rows around which others are drawn were chosen by looking: a bias that is
    # small against the error of one pool.
    assert abs(np.mean(errors)) < 4 * np.std(errors) / runs**0.5 + 0.02
    assert np.mean(stated) < 0.3


@pytest.mark.slow
def test_densities_that_were_fixed_before_leave_no_bias() -> None:
    beta, runs, found = 3.0, 200, []
    for seed in range(runs):
        pool = Pool.from_distribution(NORMALS, 50, seed=0, method="monte_carlo")
        pool = pool.extended(100, at=[0, 1], seed=seed)
        found.append(float(pool.mass[50:][fails(pool, beta)[50:]].sum()))
    # The mass that draws around the two rows should find: by a fine grid.
    line = torch.linspace(-9, 9, 1201, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    weight, centres = torch.zeros(len(grid)).double(), pool.X[:2]
    for c in centres:
        ratio = (grid @ c - c.square().sum() / 2).exp()
        weight += 50 / 150 * ratio
    share = weight / (weight + 50 / 150)
    density = (-grid.square().sum(dim=-1) / 2).exp() / (2 * torch.pi)
    inside = grid.sum(dim=-1) / 2**0.5 > beta
    wanted = float((density * share * inside).sum() * (line[1] - line[0]) ** 2)
    assert np.mean(found) == pytest.approx(
        wanted, abs=4 * np.std(found) / runs**0.5 + 0.01 * wanted
    )


def test_what_cannot_be_extended_says_why() -> None:
    pool = Pool.from_distribution(NORMALS, 32)
    with pytest.raises(ValueError, match="`n` to be a multiple of the 3 rows"):
        pool.extended(10, at=[0, 1, 2])
    with pytest.raises(ValueError, match="`at`"):
        pool.extended(10, at=[32])
    other = Pool.from_distribution(NORMALS, 32, sampling=[norm(2, 1), norm(2, 1)])
    for bare in (other, Pool(pool.X)):
        with pytest.raises(ValueError, match="knows how its rows were drawn"):
            bare.extended(10, at=[0])
