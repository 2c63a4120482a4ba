"""Integer counts: sums, defining inequalities, guarantees, degenerate input."""

import math

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from gpytorch.kernels import RBFKernel
from hypothesis import example, given, settings
from hypothesis import strategies as st

from botorch_lse.designs import (
    DesignWarning,
    exchange_design,
    optimal_design,
    round_design,
)
from botorch_lse.designs.rounding import regret_counts
from tests.covering import covering
from tests.designs.problems import features

masses = st.lists(st.floats(1e-4, 1.0), min_size=1, max_size=20)


def normalised(raw):
    weights = torch.tensor(raw, dtype=torch.float64)
    return weights / weights.sum()


def worst_norm(Phi, counts, V=None):
    V = Phi if V is None else V
    A = Phi.T @ (counts.double()[:, None] * Phi)
    return float((V @ torch.linalg.pinv(A, hermitian=True) * V).sum(-1).max())


@given(raw=masses, n=st.integers(1, 300), method=st.sampled_from(["quota", "sample"]))
@settings(deadline=None)
def test_counts_sum_to_budget(raw, n, method):
    generator = torch.Generator().manual_seed(0)
    counts = round_design(normalised(raw), n, method, generator=generator)
    assert int(counts.sum()) == n
    assert int(counts.min()) >= 0


@given(raw=masses, n=st.integers(1, 300))
@example(raw=[0.400390625, 0.400390625, 0.400390625, 0.0499, 0.0499], n=143)
@settings(deadline=None)
def test_quota_stays_near_the_share(raw, n):
    weights = normalised(raw)
    ahead = round_design(weights, n) - n * weights
    assert float(ahead.max()) <= 1 + 1e-6
    assert float(-ahead.min()) <= sum(1 / j for j in range(2, len(raw) + 1)) + 1e-6


@given(raw=masses, n=st.integers(1, 100), more=st.integers(1, 30))
@settings(deadline=None)
def test_a_larger_quota_only_adds(raw, n, more):
    weights = normalised(raw)
    assert bool((round_design(weights, n + more) >= round_design(weights, n)).all())


def test_a_huge_quota_is_within_one_of_the_share():
    weights = normalised(range(1, 40))
    counts = round_design(weights, 10**7)
    assert int(counts.sum()) == 10**7
    assert float((counts - 10**7 * weights).abs().max()) <= 1


@given(raw=masses, extra=st.integers(0, 200))
@settings(deadline=None)
def test_pukelsheims_inequalities_define_the_apportionment(raw, extra):
    weights = normalised(raw)
    n = len(raw) + extra
    counts = round_design(weights, n, "pukelsheim").double()
    assert int(counts.sum()) == n
    largest = ((counts - 1) / weights).max()
    smallest = (counts / weights).min()
    assert float(largest) <= float(smallest) * (1 + 1e-9)


@covering("kappa, seed", [1 / 3, 0.25, 0.15], range(3))
def test_regret_rounding_keeps_its_guarantee(kappa, seed):
    h = 4
    Phi = features(30, h, seed)
    design = optimal_design(Phi, tol=1e-5)
    n = math.ceil(5 * h / kappa**2)
    counts = round_design(design.weights, n, "regret", X=Phi, kappa=kappa)
    assert int(counts.sum()) == n
    assert worst_norm(Phi, counts) <= (1 + 6 * kappa) * design.value / n


def test_regret_rounding_works_on_the_span_of_singular_features():
    inner = features(20, 3)
    Phi = inner @ features(3, 6, seed=1)
    design = optimal_design(Phi, tol=1e-4)
    counts = round_design(design.weights, 200, "regret", X=Phi)
    kappa = (15 / 200) ** 0.5
    assert worst_norm(inner, counts) <= (1 + 6 * kappa) * design.value / 200


def test_a_missed_guarantee_is_said(monkeypatch):
    # No input is known that breaks the theorem; a wrong count of steps stands in.
    monkeypatch.setattr(
        "botorch_lse.designs.rounding._shift", lambda v: v.sum() * 0 + 1e9
    )
    Phi = torch.cat((torch.eye(2), torch.tensor([[1.0, 0.0]]))).double()
    Phi = Phi * torch.tensor([1.0, 1.0, 100.0], dtype=torch.float64)[:, None]
    weights = torch.tensor([0.49, 0.01, 0.5], dtype=torch.float64)
    with pytest.warns(DesignWarning, match="misses its guarantee"):
        regret_counts(weights, 90, Phi)


def test_sampling_is_reproducible_and_follows_the_weights():
    weights = normalised([1, 2, 3, 4])
    draws = [
        round_design(
            weights, 10**5, "sample", generator=torch.Generator().manual_seed(seed)
        )
        for seed in (0, 0, 1)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    error = (weights * (1 - weights) / 10**5).sqrt()
    assert bool(((draws[0] / 10**5 - weights).abs() <= 4 * error).all())


@pytest.mark.parametrize("n", [4, 10, 40])
@pytest.mark.parametrize("method", ["quota", "sample"])
def test_exchange_never_makes_it_worse(n, method):
    Phi = features(60, 4)
    design = optimal_design(Phi, tol=1e-4)
    generator = torch.Generator().manual_seed(0)
    counts = round_design(design.weights, n, method, generator=generator)
    better = exchange_design(counts, Phi)
    assert int(better.sum()) == n
    after = worst_norm(Phi, better)
    assert after >= design.lower_bound / n * (1 - 1e-9)
    if torch.linalg.matrix_rank(Phi[counts > 0]) == 4:
        assert after <= worst_norm(Phi, counts) * (1 + 1e-9)
    if n >= 10:
        assert after <= 1.5 * design.value / n


def test_exchange_reaches_the_best_counts_of_a_tiny_instance():
    Phi, n = features(5, 2, seed=2), 4
    compositions = [
        torch.tensor([a, b, c, d, n - a - b - c - d])
        for a in range(n + 1)
        for b in range(n + 1 - a)
        for c in range(n + 1 - a - b)
        for d in range(n + 1 - a - b - c)
    ]
    regular = [c for c in compositions if torch.linalg.matrix_rank(Phi[c > 0]) == 2]
    best = min(worst_norm(Phi, counts) for counts in regular)
    weights = optimal_design(Phi, tol=1e-4).weights
    found = exchange_design(round_design(weights, n), Phi)
    assert worst_norm(Phi, found) <= best * 1.2


def test_exchange_works_on_a_kernel_and_on_pairs():
    X = torch.linspace(0, 1, 40, dtype=torch.float64).unsqueeze(-1)
    kernel = RBFKernel()
    kernel.lengthscale = 0.1
    K = kernel.double()(X).to_dense().detach()
    start = torch.zeros(40, dtype=torch.long)
    start[:8] = 1

    def worst(counts, c):
        rows = counts.nonzero().squeeze(-1).repeat_interleave(counts[counts > 0])
        left = K[rows][:, rows] + torch.eye(len(rows), dtype=torch.float64)
        S = K - K[:, rows] @ torch.linalg.solve(left, K[rows])
        own = S.diagonal()
        norms = own if c is None else own[:, None] - 2 * c * S + c * c * own
        return float(norms.max())

    for c in (None, 0.9):
        found = exchange_design(start, X, gamma=1 / 8, kernel=kernel, pairs_factor=c)
        assert worst(found, c) < 0.8 * worst(start, c)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.4], 3), "`weights` to sum to one, but the sum is 0.9"),
        (([1.5, -0.5], 3), "`weights` to be non-negative"),
        (([math.nan, 1.0], 3), "`weights` to be finite"),
        (([], 3), "sum to one"),
        (([0.5, 0.5], 0), "`n` to be at least 1"),
        (([0.5, 0.5], 1.5), "`n` to be a whole number"),
        (([0.5, 0.5], 1, "pukelsheim"), "`n` of at least the support, 2"),
        (([0.5, 0.5], 5, "regret"), "the features `X`"),
        (([0.5, 0.5], 5, "sample"), "a `generator`"),
        (([0.5, 0.5], 5, "sample", None, 3), "torch.Generator, .*got int.*manual_seed"),
        (([0.5, 0.5], 5, "best"), "`method` to be one of"),
        (([0.5, 0.5], 10**30), "`n` to be at most 9223372036854775807"),
        (([0.5, 0.5], 10**18), r"`n` of at most 1e\+17 .*weights themselves"),
        (([0.5, 0.5], 10**18, "pukelsheim"), r"`n` of at most 1e\+17"),
        (
            ([0.5, 0.5], 10**7, "regret"),
            r"at most 1e\+06 .*1e\+07. Use `method=\"quota",
        ),
        (([0.5, 0.5], 10**9, "sample"), r"at most 1e\+08 .*Use `method=\"quota"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        round_design(*arguments)


def test_a_kappa_without_a_theorem_is_refused():
    with pytest.raises(ValueError, match="`kappa` in"):
        round_design([0.5, 0.5], 5, "regret", X=torch.eye(2), kappa=0.5)


def test_features_of_another_length_are_refused():
    with pytest.raises(BotorchTensorDimensionError, match="one row per weight"):
        round_design([0.5, 0.5], 5, "regret", X=torch.ones(3, 1))


@pytest.mark.parametrize("counts", [[0, 0], [0.5, 0.5]])
def test_exchange_needs_whole_observations(counts):
    with pytest.raises(ValueError, match="`counts` to be whole numbers"):
        exchange_design(counts, torch.eye(2))


def test_one_point_takes_all_observations():
    for method in ("quota", "pukelsheim", "regret"):
        assert round_design([1.0], 7, method, X=torch.ones(1, 1)).tolist() == [7]


def test_subnormal_weights_count_as_none() -> None:
    counts = round_design([0.5, 0.5, 2e-309], 7, "pukelsheim")
    assert sorted(counts.tolist()) == [0, 3, 4]
