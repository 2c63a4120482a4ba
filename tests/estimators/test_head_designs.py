from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse.estimators import burn_in_size, head_designs, quadratic_features
from botorch_lse.papers.weltz2023 import separate_arms

RNG = np.random.default_rng(5)
X = torch.tensor(RNG.standard_normal((12, 2)))
PLAN = head_designs(X)


def worst(Phi: np.ndarray, weights: np.ndarray) -> float:
    A = np.linalg.pinv(Phi.T @ np.diag(weights) @ Phi)
    return max(p @ A @ p for p in Phi)


def test_both_designs_are_g_optimal() -> None:
    r"""Kiefer and Wolfowitz: the optimal value is the rank."""
    phi = quadratic_features(X).numpy()
    assert worst(X.numpy(), PLAN.theta.weights.numpy()) <= 2 * 1.01 + 1e-9
    assert worst(phi, PLAN.Sigma.weights.numpy()) <= 3 * 1.01 + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(100, 10_000))
def test_the_stages_share_the_budget(budget: int) -> None:
    first, second = PLAN.counts(budget)
    assert int(first.sum()) == budget // 2
    assert int(second.sum()) == budget - budget // 2
    for counts, design in ((first, PLAN.theta), (second, PLAN.Sigma)):
        assert bool((counts[design.support] >= 1).all())
        share = counts.double() / counts.sum() - design.weights
        assert float(share.abs().max()) < len(X) / float(counts.sum())


def test_a_budget_below_the_support_is_refused() -> None:
    with pytest.raises(ValueError, match="`budget` of at least"):
        PLAN.counts(2)


def test_fewer_arms_than_parameters_are_planned_on_their_span() -> None:
    plan = head_designs(torch.eye(4))
    assert plan.Sigma.value == pytest.approx(4.0)
    assert plan.Sigma.weights.tolist() == pytest.approx([0.25] * 4)


def test_the_burn_in_is_the_stated_formula() -> None:
    for rows, rank in ((X, 3), (torch.eye(4), 4)):
        stated = 16 * 2.5**2 * rank * 2 * math.log(4 * len(rows) / 0.05)
        assert burn_in_size(rows, (0.4, 1.0), 0.05) == math.ceil(stated)


def test_separate_arms_are_near_the_best_subset() -> None:
    phi = quadratic_features(X)
    subsets = itertools.combinations(range(len(X)), 3)
    best = max(float(torch.linalg.svdvals(phi[list(s)])[-1]) for s in subsets)
    chosen = separate_arms(X)
    assert len(set(chosen.tolist())) == 3
    assert float(torch.linalg.svdvals(phi[chosen])[-1]) > 0.8 * best


def test_separate_arms_are_as_many_as_the_rank() -> None:
    assert separate_arms(torch.eye(4)).tolist() == [0, 1, 2, 3]
    doubled = torch.cat((X[:4], X[:4]))
    assert len(separate_arms(doubled)) == 3
