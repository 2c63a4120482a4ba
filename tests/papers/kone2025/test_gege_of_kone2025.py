r"""GEGE against its paper: Algorithms 1 to 3 and what they promise."""

from __future__ import annotations

import math

import pytest
import torch

from botorch_lse import Pool
from botorch_lse.papers import EGESHStrategy, GEGEBudgetStrategy, GEGEPACStrategy
from botorch_lse.papers.kone2025.gege import OptEstimator
from botorch_lse.papers.kone2025.least_squares import span_least_squares
from botorch_lse.pareto import pareto_mask
from tests.covering import more_in_full
from tests.strategies.pareto_runs import NOISE_STD, linear_problem, make, run, step

X, MU = linear_problem()
TRUTH = pareto_mask(MU)


# --- Algorithm 1 --------------------------------------------------------------------


def test_least_squares_agree_with_numpy_on_full_rank() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(12, (40,), generator=generator)
    y = torch.randn(40, 2, generator=generator, dtype=torch.float64)
    fit = span_least_squares(X, rows, y)
    theta = torch.linalg.lstsq(X[rows], y).solution
    assert torch.allclose(fit.mean, X @ theta, rtol=1e-10)
    V = X[rows].mT @ X[rows]
    norms = (X * torch.linalg.solve(V, X.mT).mT).sum(dim=1)
    assert torch.allclose(fit.norms, norms, rtol=1e-10)
    residual = (y - X[rows] @ theta).square().sum(dim=0) / (40 - 3)
    assert torch.allclose(fit.noise_var, residual, rtol=1e-10)


def test_a_mean_weighs_as_much_as_its_replicates() -> None:
    rows = torch.tensor([0, 0, 0, 1, 5, 7])
    y = torch.randn(
        6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    whole = span_least_squares(X, rows, y)
    mean = torch.cat((y[:3].mean(dim=0, keepdim=True), y[3:]))
    counts = torch.tensor([3, 1, 1, 1])
    part = span_least_squares(X, torch.tensor([0, 1, 5, 7]), mean, counts)
    assert torch.allclose(whole.mean, part.mean, rtol=1e-10)
    assert torch.allclose(whole.norms, part.norms, rtol=1e-10)


def test_features_of_lower_rank_are_projected_on_their_span() -> None:
    low = X @ torch.randn(
        3, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    )
    assert OptEstimator(low).rank == 3
    rows = torch.arange(12)
    fit, full = span_least_squares(low, rows, MU), span_least_squares(X, rows, MU)
    assert torch.allclose(fit.mean, full.mean, rtol=1e-8)
    assert torch.allclose(fit.norms, full.norms, rtol=1e-8)


def test_directions_nobody_measured_are_unknown() -> None:
    fit = span_least_squares(
        torch.eye(3).double(), torch.tensor([0, 1]), torch.ones(2, 2).double()
    )
    assert fit.norms.tolist() == [1.0, 1.0, torch.inf]
    assert fit.noise_var.isnan().all()


@pytest.mark.parametrize("rounding", ["quota", "regret"])
def test_the_rounded_design_is_near_the_kiefer_wolfowitz_value(rounding: str) -> None:
    estimator = OptEstimator(X, rounding)
    n, kappa = 200, 1 / 3
    counts = estimator.counts(n, kappa)
    assert int(counts.sum()) == n
    # Kone et al. (2025), Lemma 3: (1 + 6 kappa) h / N, as N >= 5 h / kappa^2.
    assert estimator.worst_norm(counts) <= (1 + 6 * kappa) * 3 / n
    assert estimator.worst_norm(counts) >= 3 / n * (1 - 1e-9)


# --- Algorithm 2 --------------------------------------------------------------------


@pytest.mark.some(2)
@pytest.mark.parametrize("budget", [40, 101, 400])
@pytest.mark.parametrize("K", [5, 8])
@more_in_full("n_runs", 2, 10)
def test_on_the_canonical_basis_gege_is_sequential_halving(
    K: int, budget: int, n_runs: int
) -> None:
    mu = linear_problem(seed=K, K=K)[1]
    both = [
        make(cls, torch.eye(K), max_observations=budget)
        for cls in (GEGEBudgetStrategy, EGESHStrategy)
    ]
    for seed in range(n_runs):
        states = [strategy.init(seed) for strategy in both]
        generators = [torch.Generator().manual_seed(seed) for _ in both]
        while not states[0].is_done:
            batches = [s.ask(state) for s, state in zip(both, states, strict=True)]
            assert torch.equal(batches[0].order, batches[1].order)
            states = [
                step(s, state, mu, g)
                for s, state, g in zip(both, states, generators, strict=True)
            ]
            assert torch.equal(
                states[0].classification.above, states[1].classification.above
            )
            assert torch.equal(
                states[0].classification.below, states[1].classification.below
            )
        assert states[1].is_done


def test_rounds_keep_half_of_the_rank_open() -> None:
    X, mu = linear_problem(seed=1, K=40, h=8)
    strategy = make(GEGEBudgetStrategy, X, max_observations=301)
    state, open_rows = strategy.init(), []
    generator = torch.Generator().manual_seed(0)
    while not state.is_done:
        assert len(strategy.ask(state)) == 100
        state = step(strategy, state, mu, generator)
        open_rows.append(int(state.classification.undecided.sum()))
    assert open_rows == [4, 2, 0]


def test_the_rank_counts_not_the_number_of_features() -> None:
    X, _ = linear_problem(seed=1, K=20, h=4)
    doubled = torch.cat((X, X[:, :2] + X[:, 2:]), dim=1)
    assert make(GEGEBudgetStrategy, doubled).rule.rounds == 2


def test_one_feature_is_answered_in_one_round() -> None:
    X = torch.tensor([[1.0], [0.5], [-0.3]], dtype=torch.float64)
    mu = X @ torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    state = run(make(GEGEBudgetStrategy, X, max_observations=50), mu)
    assert state.round == 1
    assert state.classification.above.tolist() == [True, False, False]


def test_more_rows_do_not_need_more_samples() -> None:
    X, mu = linear_problem(seed=1, K=60, h=3)
    strategy = make(GEGEBudgetStrategy, X, max_observations=40)  # fewer than rows
    state = run(strategy, mu, std=1e-9)
    assert torch.equal(state.classification.above, pareto_mask(mu))


# --- Algorithm 3 --------------------------------------------------------------------


def test_sample_sizes_are_those_of_the_paper() -> None:
    strategy = make(GEGEPACStrategy, X, delta=0.1)
    eps, delta_r = 1 / 8, 6 * 0.1 / (math.pi * 2) ** 2
    scale = 32 * (1 + 3 * eps) * NOISE_STD**2 * 3 / eps**2
    corrected = math.ceil(scale * math.log(2 * 2 * 7 / delta_r))
    printed = math.ceil(scale * math.log(2 * 7 / (2 * delta_r)))
    assert strategy.rule.n_samples(2, 7, 3) == corrected
    literal = make(GEGEPACStrategy, X, delta=0.1, sample_size="printed")
    assert literal.rule.n_samples(2, 7, 3) == printed
    assert literal.guarantee.startswith("No confidence")


@pytest.mark.parametrize("noise_std", [0.001, 0.05, 0.5])
def test_corrected_rounds_reach_the_precision_of_the_proof(noise_std: float) -> None:
    strategy = make(GEGEPACStrategy, X, noise_std=noise_std)
    for t in (1, 3):
        counts = strategy.rule.counts(t, torch.arange(12))
        norm = OptEstimator(X).worst_norm(counts)
        delta_r = 6 * strategy.delta / (math.pi * t) ** 2
        error = strategy.rule.precision(t) / 4
        # Lemma 1's tail, summed over 12 rows and 2 outputs.
        tail = 12 * 2 * 2 * math.exp(-(error**2) / (2 * noise_std**2 * norm))
        assert tail <= delta_r * (1 + 1e-9)


@pytest.mark.slow
def test_the_pareto_set_is_found_with_the_stated_probability() -> None:
    wrong = 0
    for seed in range(40):
        X, mu = linear_problem(seed=seed % 4)
        state = run(make(GEGEPACStrategy, X, delta=0.1), mu, seed)
        assert state.stop_reason == "decided"
        wrong += not torch.equal(state.classification.above, pareto_mask(mu))
    assert wrong <= 4


def test_a_tolerance_accepts_what_is_close() -> None:
    mu = torch.tensor([[1.0, 1.0], [0.98, 0.98], [0.0, 0.0]], dtype=torch.float64)
    exact = run(make(GEGEPACStrategy, torch.eye(3)), mu)
    loose = run(make(GEGEPACStrategy, torch.eye(3), epsilon=0.2), mu)
    assert exact.classification.above.tolist() == [True, False, False]
    assert loose.classification.above[0]
    assert loose.classification.below[2]
    assert loose.n_used < exact.n_used
    # eps_r <= epsilon / 4 for the first time in round 4, which is not run.
    assert loose.round <= 4


def test_equal_rows_stay_open_until_the_budget_ends() -> None:
    mu = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, -1.0]], dtype=torch.float64)
    state = run(make(GEGEPACStrategy, torch.eye(3), max_observations=50_000), mu)
    assert state.stop_reason == "budget"
    assert state.classification.undecided.tolist() == [True, True, False]


def test_a_round_that_lost_measurements_is_asked_again_unless_it_suffices() -> None:
    strategy = make(GEGEPACStrategy, X)
    state = strategy.init()
    batch = strategy.ask(state)
    rest = torch.arange(len(batch))
    lost = rest[::2]
    kept = rest[1::2]
    told = strategy.tell(
        state,
        batch.observe(MU[batch.order]).select(kept),
        abandoned=batch.order[lost].tolist(),
    )
    assert told.round == 1
    assert torch.equal(strategy.ask(told).order, batch.order)
    few = strategy.tell(
        state,
        batch.observe(MU[batch.order]).select(rest[1:]),
        abandoned=[int(batch.order[0])],
    )
    assert few.classification.mean.any()


def test_unknown_options_are_named() -> None:
    with pytest.raises(ValueError, match="`rounding`"):
        make(GEGEBudgetStrategy, X, rounding="up")
    with pytest.raises(ValueError, match="`sample_size`"):
        make(GEGEPACStrategy, X, sample_size="large")
    with pytest.raises(ValueError, match="`epsilon`"):
        make(GEGEPACStrategy, X, epsilon=-1.0)


@pytest.mark.parametrize("rounding", ["quota", "pukelsheim", "regret"])
def test_a_budget_too_small_to_estimate_every_row_is_refused(rounding: str) -> None:
    plan = {"rounding": rounding}
    least = make(GEGEBudgetStrategy, X, **plan).rule.sampling.least
    rank = int(torch.linalg.matrix_rank(X))
    assert least >= rank
    rounds = make(GEGEBudgetStrategy, X, **plan).rule.rounds
    message = (
        f"at least {rounds * least}, {rounds} rounds of {least}.*{rounds * least - 1}"
    )
    with pytest.raises(ValueError, match=message):
        make(GEGEBudgetStrategy, X, max_observations=rounds * least - 1, **plan)
    enough = make(GEGEBudgetStrategy, X, max_observations=rounds * least, **plan)
    rows = X[enough.ask(enough.init()).indices]
    assert int(torch.linalg.matrix_rank(rows)) == rank


def test_features_default_to_the_inputs() -> None:
    pool = Pool(torch.rand(12, 1), features=X)
    state = run(make(GEGEBudgetStrategy, X, pool=pool), MU, std=1e-9)
    assert torch.equal(state.classification.above, TRUTH)


def test_regret_rounding_finds_the_set_as_well() -> None:
    strategy = make(GEGEBudgetStrategy, X, rounding="regret", max_observations=120)
    state = run(strategy, MU, std=1e-9)
    assert torch.equal(state.classification.above, TRUTH)


def test_rows_of_equal_features_share_their_side() -> None:
    X, mu = linear_problem(2)
    twice, values = torch.cat((X, X[:5])), torch.cat((mu, mu[:5]))
    state = run(make(GEGEPACStrategy, twice), values, seed=0)
    assert state.stop_reason == "decided"
    side = state.classification.side.tolist()
    assert side[12:] == side[:5]
    assert state.classification.above[:12].tolist() == pareto_mask(mu).tolist()
