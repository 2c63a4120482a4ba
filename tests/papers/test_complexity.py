"""Complexities: closed forms, the paper's readings, Monte-Carlo-free definitions."""

import math

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_lse.designs import certificate
from botorch_lse.papers import (
    best_arm_complexity,
    implicit_complexity,
    level_set_complexity,
    pareto_complexity,
)
from tests.designs.problems import features
from tests.designs.reference import sdp_value

EYE = torch.eye(4, dtype=torch.float64)
MILK_MEANS = torch.tensor([2.0, 1.6, 1.0, 0.3, -1.0], dtype=torch.float64)
MEANS = torch.tensor([1.0, 0.5, -0.25, -2.0], dtype=torch.float64)


def test_without_structure_psi_is_the_sum_of_inverse_squared_gaps():
    # Mason et al. (2022), after Theorem 3.1.
    found = level_set_complexity(EYE, MEANS, 0.1, tol=1e-6)
    inverse = (MEANS - 0.1) ** -2
    assert found.value == pytest.approx(float(inverse.sum()), rel=2e-6)
    assert torch.allclose(found.design.weights, inverse / inverse.sum(), atol=1e-4)


def test_noise_multiplies_the_inverse_squared_gaps():
    noise = torch.tensor([1.0, 4.0, 0.5, 2.0], dtype=torch.float64)
    found = level_set_complexity(EYE, MEANS, 0.1, noise_var=noise, tol=1e-6)
    expected = float((noise * (MEANS - 0.1) ** -2).sum())
    assert found.value == pytest.approx(expected, rel=2e-6)


def test_the_literal_reading_takes_only_rows_above():
    found = level_set_complexity(EYE, MEANS, 0.1, reading="above", tol=1e-6)
    expected = float(((MEANS - 0.1) ** -2)[:2].sum())
    assert found.value == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("reading", ["all", "above"])
def test_other_rows_may_be_classified_than_measured(reading):
    X, Z, theta = features(8, 3), features(5, 3, 1), features(1, 3, 2)[0]
    means = Z @ theta
    found = level_set_complexity(X, means, 0.2, Z=Z, reading=reading, tol=1e-6)
    rows = means > 0.2 if reading == "above" else torch.ones(5, dtype=torch.bool)
    V = (Z / (means - 0.2)[:, None])[rows]
    assert found.value == pytest.approx(sdp_value(X, V), rel=2e-6)
    assert found.lower_bound <= found.value


def test_the_best_arm_is_compared_with_every_other():
    X, theta = features(6, 3), features(1, 3, 5)[0]
    noise = torch.linspace(0.5, 2, 6, dtype=torch.float64)
    means = X @ theta
    found = best_arm_complexity(X, means, noise_var=noise, tol=1e-6)
    best = int(means.argmax())
    others = [i for i in range(6) if i != best]
    V = (X[best] - X[others]) / (means[best] - means[others])[:, None]
    assert found.value == pytest.approx(
        sdp_value(X / noise.sqrt()[:, None], V), rel=2e-6
    )


def test_two_arms_have_the_closed_form():
    # |e_1 - e_2|^2 in A^-1 is 1 / lam + 1 / (1 - lam): 4 at its least, over gap^2.
    found = best_arm_complexity(torch.eye(2), [1.0, 0.5], tol=1e-6)
    assert found.value == pytest.approx(16.0, rel=1e-5)


def test_samples_are_the_theorems_lower_bound():
    found = best_arm_complexity(torch.eye(2), [1.0, 0.5], tol=1e-6)
    expected = 2 * 16 * math.log(1 / (2.4 * 0.05))
    assert found.samples(0.05) == pytest.approx(expected, rel=1e-5)
    assert found.samples(0.05) <= 2 * float(found) * math.log(1 / 0.12)
    assert found.samples(0.5) == 0.0


def pairs_of(X, means, omega):
    V = torch.stack([a - omega * b for a in X for b in X])
    gaps = (means[:, None] - omega * means).flatten()
    return V, gaps


def test_milks_complexity_is_that_of_all_ordered_pairs():
    X, means = features(5, 3), torch.tensor([2.0, 1.5, 1.0, 0.3, -1.0]).double()
    found = implicit_complexity(X, means, 0.8, gamma=0.05, tol=1e-6)
    V, gaps = pairs_of(X, means, 0.8)
    assert found.value == pytest.approx(sdp_value(X, V / gaps[:, None], 0.05), rel=2e-6)


def test_milks_tolerance_caps_the_gaps():
    X, means = features(5, 3), MILK_MEANS
    with pytest.raises(ValueError, match=r"without a pair .* \[1, 0\] is not"):
        implicit_complexity(X, means, 0.8)
    found = implicit_complexity(X, means, 0.8, tolerance=0.5, tol=1e-6)
    V, gaps = pairs_of(X, means, 0.8)
    scaled = V / gaps.abs().clamp_min(0.5)[:, None]
    assert found.value == pytest.approx(sdp_value(X, scaled), rel=2e-6)


def test_theorem_4_2_lies_between_the_rows_inside_and_milk():
    X, means = features(6, 3), torch.tensor([2.0, 1.7, 1.0, 0.4, -0.5, -1.0]).double()
    omega = 0.8
    milk = implicit_complexity(X, means, omega, tol=1e-5)
    lower = implicit_complexity(X, means, omega, reading="lower", tol=1e-5)
    assert lower.lower_bound <= lower.value <= milk.value * (1 + 1e-9)
    # The value is the printed expression at the weights found.
    A = X.T @ (lower.design.weights[:, None] * X)
    V, gaps = pairs_of(X, means, omega)
    ratios = ((V @ torch.linalg.inv(A) * V).sum(-1) / gaps**2).reshape(6, 6)
    inside = means > omega * means.max()
    printed = torch.where(inside, ratios.amax(1), ratios.amin(1)).max()
    assert lower.value == pytest.approx(float(printed), rel=1e-6)
    # The bound is the optimum over the rows inside alone.
    rows = inside.repeat_interleave(6)
    optimum = sdp_value(X, (V / gaps[:, None])[rows])
    assert lower.lower_bound == pytest.approx(optimum, rel=2e-5)


@pytest.mark.some(2)
@pytest.mark.parametrize("reading", ["milk", "lower"])
@pytest.mark.parametrize("options", [{}, {"kernel": RBFKernel(), "gamma": 0.1}])
def test_pairs_taken_in_blocks_have_the_same_complexity(reading, options, monkeypatch):
    X, means = features(30, 3), torch.linspace(-1.0, 1.0, 30).double().exp()
    options = {**options, "reading": reading, "tolerance": 0.05}
    whole = implicit_complexity(X, means, 0.7, **options)
    monkeypatch.setattr(certificate, "BLOCK", 7 * 30)  # seven rows at once
    parts = implicit_complexity(X, means, 0.7, **options)
    assert parts.value == pytest.approx(whole.value, rel=1e-10)
    assert parts.lower_bound == pytest.approx(whole.lower_bound, rel=1e-10)
    tied = means.index_fill(0, torch.tensor(28), 0.7 * float(means[29]))
    with pytest.raises(ValueError, match=r"without a pair .* \[28, 29\] is not"):
        implicit_complexity(X, tied, 0.7)


def test_a_kernel_serves_both_level_sets():
    X = torch.linspace(0, 1, 25, dtype=torch.float64).unsqueeze(-1)
    kernel = RBFKernel()
    kernel.lengthscale = 0.2
    means = torch.sin(6 * X[:, 0]) + 0.013
    explicit = level_set_complexity(X, means, 0.1, kernel=kernel, gamma=0.01)
    assert explicit.design.converged
    options = {"kernel": kernel, "gamma": 0.01, "tolerance": 0.05}
    milk = implicit_complexity(X, means, 0.9, **options)
    lower = implicit_complexity(X, means, 0.9, reading="lower", **options)
    assert 0 < lower.lower_bound <= lower.value <= milk.value * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: level_set_complexity(EYE, MEANS, 0.5),
            "`threshold` = 0.5, but entry 1",
        ),
        (lambda: level_set_complexity(EYE, MEANS, 9.0, reading="above"), "a row above"),
        (lambda: level_set_complexity(EYE, MEANS, 0.1, reading="x"), "`reading`"),
        (lambda: level_set_complexity(EYE, MEANS, math.nan), "`threshold`"),
        (lambda: best_arm_complexity(EYE, [1.0, 1.0, 0.0, 0.0]), "one largest entry"),
        (lambda: best_arm_complexity(torch.eye(1), [1.0]), "at least two arms"),
        (lambda: implicit_complexity(EYE, MEANS, 1.5), "`omega` in"),
        (lambda: implicit_complexity(EYE, MEANS, 0.7, reading="x"), "`reading`"),
        (lambda: implicit_complexity(EYE, MEANS, 0.7, tolerance=-1), "`tolerance` in"),
        (lambda: level_set_complexity(EYE, MEANS, 0.1).samples(0.0), "`delta` in"),
        (lambda: implicit_complexity(EYE, MEANS, 0.7).samples(0.1), "H.MILK has none"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pareto_gaps_of_a_line_are_its_distances():
    # One output: the best arm's gap and the others' distances to it (Auer et al. 2016).
    found = pareto_complexity([[1.0], [0.7], [0.2]])
    assert found.gaps.tolist() == pytest.approx([0.3, 0.3, 0.8])
    assert pytest.approx(2 / 0.09 + 1 / 0.64) == found.H_1
    assert pytest.approx(2 / 0.09) == found.H_2


def brute_gaps(mu):
    """Kone et al. (2025), Eq. (1), written out arm by arm."""
    K, d = len(mu), len(mu[0])

    def m(i, j):
        return min(mu[j][c] - mu[i][c] for c in range(d))

    def optimal(i):
        return not any(
            all(mu[j][c] >= mu[i][c] for c in range(d))
            and any(mu[j][c] > mu[i][c] for c in range(d))
            for j in range(K)
        )

    star = [max(m(i, j) for j in range(K)) for i in range(K)]
    gaps = []
    for i in range(K):
        if not optimal(i):
            gaps.append(star[i])
            continue
        gaps.append(
            min(
                min(-m(i, j), max(-m(j, i), 0) + max(star[j], 0))
                for j in range(K)
                if j != i
            )
        )
    return gaps


@pytest.mark.parametrize("seed", range(5))
def test_pareto_gaps_follow_their_definition(seed):
    mu = features(9, 2, seed)
    found = pareto_complexity(mu, features(9, 3, seed + 50))
    assert found.gaps.tolist() == pytest.approx(brute_gaps(mu.tolist()))
    smallest = sorted(found.gaps.tolist())[:3]
    assert found.rank == 3
    assert pytest.approx(sum(g**-2 for g in smallest)) == found.H_1_lin
    expected = max((i + 1) * g**-2 for i, g in enumerate(smallest))
    assert pytest.approx(expected) == found.H_2_lin
    assert found.H_1_lin <= found.H_1
    assert found.H_2_lin <= found.H_2


def test_tied_arms_are_infinitely_hard():
    assert math.inf == pareto_complexity([[1.0, 1.0], [1.0, 1.0]]).H_1
