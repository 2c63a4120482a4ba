r"""One planner: the same posterior, targets and size give the same batch every way."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.means import ZeroMean

from botorch_lse import Observations, Pool
from botorch_lse.acquisition import qMELK
from botorch_lse.designs import round_design
from botorch_lse.models.gaussian_process import GPPrior, PoolPosterior
from botorch_lse.optim import optimize_acqf_design
from botorch_lse.planning import (
    JointBatchPosterior,
    PosteriorProblem,
    designed,
    designed_batch,
    relaxed_counts,
)
from botorch_lse.strategies import HRAGEStrategy, MELKStrategy, MILKStrategy
from botorch_lse.strategies.gaussian import GaussianAlgorithm
from tests.covering import covering
from tests.reference import recording

NOISE = 0.1


def rows_and_kernel(seed, n=60):
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.2
    return X, kernel, generator


def after_one_round(strategy, X, generator):
    state = strategy.init()
    batch = strategy.ask(state)
    y = (4 * X[batch.order, 0]).sin() * (3 * X[batch.order, 1]).cos()
    noise = torch.randn(len(batch), generator=generator, dtype=torch.float64)
    return strategy.tell(state, batch.observe(y + NOISE * noise))


@pytest.mark.some(1)
@covering("seed, q", range(8), [3, 10, 30])
def test_melk_and_the_optimiser_find_batches_alike(seed, q):
    X, kernel, generator = rows_and_kernel(seed)
    strategy = MELKStrategy(
        Pool(X), 0.3, model=kernel, noise_std=NOISE, batch_size=q, beta=9.0
    )
    state = after_one_round(strategy, X, generator)
    data = state.history
    model = SingleTaskGP(
        X[data.indices],
        data.y.unsqueeze(-1),
        torch.full((len(data), 1), NOISE**2, dtype=torch.float64),
        covar_module=kernel,
        mean_module=ZeroMean(),
        outcome_transform=None,
        input_transform=None,
    )
    undecided = X[state.classification.undecided]
    acqf = qMELK(model.eval(), targets=undecided, noise_var=NOISE**2)
    _, best = optimize_acqf_design(acqf, X, q)
    own = acqf(X[strategy.ask(state).order])
    assert float(own / best) <= 1.02  # both are minus the worst variance


def problem_of_round(strategy, state):
    none = torch.empty(0, dtype=torch.long)
    (problem,) = strategy.algorithm.context(state.belief, none).problems
    return problem


DESIGNED = [
    (MELKStrategy, {"threshold": 0.3}),
    (MILKStrategy, {"omega": 0.7}),
    (HRAGEStrategy, {"threshold": 0.3}),
    (HRAGEStrategy, {}),
]


@pytest.mark.some(1)
@covering("form, seed, q", DESIGNED, range(4), [3, 10, 30])
def test_exchange_never_leaves_more_than_the_rounded_design(form, seed, q):
    cls, goal = form
    X, kernel, generator = rows_and_kernel(seed, 36)
    noise_var = 0.01 + 0.1 * X[:, 0]
    pool = Pool(X, noise_var=noise_var)
    strategy = cls(pool, **goal, model=kernel, batch_size=q, beta=4.0, epsilon=0.05)
    state = after_one_round(strategy, X, generator)
    if state.is_done:
        pytest.skip("decided at once")
    problem = problem_of_round(strategy, state)

    def left_by(rounding):
        rows = replace(strategy, rounding=rounding).ask(state).order
        counts = torch.bincount(rows, minlength=len(pool))
        return JointBatchPosterior.of([problem], counts).value

    assert left_by("exchange") <= left_by("quota") * (1 + 1e-9)


def problem_of(X, kernel, targets, weights=None, pairs_factor=None):
    posterior = PoolPosterior.start(GPPrior.from_kernel(kernel), X)
    noise = torch.full((len(X),), NOISE**2, dtype=torch.float64)
    return PosteriorProblem(posterior, noise, targets, weights, pairs_factor)


def test_a_batch_fills_what_is_allowed_and_no_more():
    X, kernel, _ = rows_and_kernel(0, 12)
    problem = problem_of(X, kernel, torch.arange(12))
    allowed = torch.tensor([0, 1, 0, 2, 0, 0, 1, 0, 0, 0, 3, 0])
    for rounding in ("exchange", "quota", "sample"):
        generator = torch.Generator().manual_seed(0)
        for q in (1, 5, 7, 20):
            counts = designed_batch(
                [problem], q, allowed, rounding=rounding, generator=generator
            )
            assert bool((counts <= allowed).all())
            assert int(counts.sum()) == min(q, 7)
    assert int(designed_batch([problem], 3, torch.zeros(12).long()).sum()) == 0


def test_nothing_uncertain_is_no_design_but_still_a_batch():
    X, kernel, _ = rows_and_kernel(0, 6)
    known = problem_of(X, kernel, torch.arange(6))
    start = replace(known.posterior, variance=torch.zeros(6, dtype=torch.float64))
    problem = replace(known, posterior=start)
    everywhere = torch.ones(6, dtype=torch.bool)
    assert int(relaxed_counts([problem], 4, everywhere, 0.1).sum()) == 0
    assert int(designed_batch([problem], 4, everywhere.long() * 4).sum()) == 4


@pytest.mark.parametrize("pairs_factor", [None, 0.7])
def test_weights_of_targets_and_pairs_count_as_in_a_dense_computation(pairs_factor):
    X, kernel, generator = rows_and_kernel(1, 10)
    T = 4
    shape = (T,) if pairs_factor is None else (T, T)
    weights = torch.rand(shape, generator=generator, dtype=torch.float64)
    targets = torch.tensor([1, 4, 7, 9])
    problem = problem_of(X, kernel, targets, weights, pairs_factor)
    counts = torch.tensor([0, 2, 0, 1, 0, 0, 1, 0, 0, 0])
    rows = torch.arange(10).repeat_interleave(counts)
    K = kernel(X).to_dense().detach()
    noisy = K[rows][:, rows] + NOISE**2 * torch.eye(len(rows)).double()
    C = K - K[:, rows] @ torch.linalg.solve(noisy, K[rows])
    C = C[targets][:, targets]
    v = C.diagonal()
    if pairs_factor is not None:
        v = v[:, None] + pairs_factor**2 * v - 2 * pairs_factor * C
    batch = JointBatchPosterior.of([problem], counts)
    assert batch.value == pytest.approx(float((weights * v).max()), rel=1e-8)


def test_a_large_batch_is_better_on_as_many_features_as_it_has_rows():
    X, kernel, _ = rows_and_kernel(3, 400)
    kernel.lengthscale = 0.1
    problem, q = problem_of(X, kernel, torch.arange(400)), 80
    allowed = torch.full((400,), q)
    found = designed_batch([problem], q, allowed, rounding="quota")
    twice = designed.Relaxation.of(problem, q, designed.TOLERANCE, most=2 * q)
    on_twice = round_design(twice.nearly(designed.TOLERANCE).weights, q)
    values = [JointBatchPosterior.of([problem], c).value for c in (found, on_twice)]
    assert values[0] < 0.9 * values[1]


@pytest.mark.parametrize("many", [1, 30, 2000])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_worst_of_many_pairs_are_those_of_a_dense_computation(
    monkeypatch, many, weighted
):
    # As of thousands of targets: the pairs of largest variance before are listed.
    monkeypatch.setattr(designed, "LISTED", 600)
    monkeypatch.setattr(designed, "STRIDE", 100)
    monkeypatch.setattr(designed, "SAMPLED", 30)
    X, kernel, generator = rows_and_kernel(2)
    shape, targets = (50, 50), torch.arange(5, 55)
    weights = torch.rand(shape, generator=generator, dtype=torch.float64)
    problem = problem_of(X, kernel, targets, weights if weighted else None, 0.6)
    known = torch.arange(0, 60, 4)
    posterior = problem.posterior.observe(known, X[known, 0], problem.noise_var[known])
    problem = replace(problem, posterior=posterior)
    counts = torch.bincount(torch.tensor([6, 17, 17, 41]), minlength=60)
    batch = JointBatchPosterior.of([problem], counts).parts[0]
    ids, left = batch.worst(many)

    C = batch.covariance(targets, targets)
    v = C.diagonal()
    dense = v[:, None] + 0.6**2 * v - 2 * 0.6 * C
    dense = (dense * weights if weighted else dense).flatten()
    largest = dense.sort(descending=True).values[: len(left)]
    assert torch.allclose(left, largest, rtol=0, atol=1e-12)
    assert len(left) == many if many < 600 else len(left) >= designed.LEADING
    assert torch.allclose(dense[ids], left, rtol=0, atol=1e-12)
    listed = batch._worst_listed(many, v, batch.W[:, targets].mT)
    assert listed is not None
    assert torch.allclose(listed[1], left, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pairs_factor", [None, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_of_one_is_the_best_row_there_is(seed, pairs_factor):
    X, kernel, generator = rows_and_kernel(seed, 14)
    shape = (5,) if pairs_factor is None else (5, 5)
    weights = torch.rand(shape, generator=generator, dtype=torch.float64)
    targets = torch.tensor([0, 3, 6, 8, 13])
    problem = problem_of(X, kernel, targets, weights, pairs_factor)
    allowed = (torch.arange(14) % 4 > 0).long()
    K = kernel(X).to_dense().detach()
    left = torch.full((14,), torch.inf).double()
    for row in allowed.nonzero().squeeze(-1).tolist():
        C = K - torch.outer(K[row], K[row]) / (K[row, row] + NOISE**2)
        C = C[targets][:, targets]
        v = C.diagonal()
        if pairs_factor is not None:
            v = v[:, None] + pairs_factor**2 * v - 2 * pairs_factor * C
        left[row] = (weights * v).max()
    counts = designed_batch([problem], 1, allowed)
    assert counts.sum() == 1
    assert float(left[counts.argmax()]) == pytest.approx(float(left.min()), rel=1e-6)


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_targets_outside_the_pool_are_predicted_and_never_measured(nu):
    X, _, _ = rows_and_kernel(2, 20)
    kernel = MaternKernel(nu=nu).double()
    kernel.lengthscale = 0.2
    prior = GPPrior.from_kernel(kernel)
    posterior = PoolPosterior.start(prior, X)
    noise = torch.full((15,), NOISE**2, dtype=torch.float64)
    problem = PosteriorProblem(posterior, noise, torch.arange(15, 20))
    counts = designed_batch([problem], 6, torch.full((15,), 6))
    assert counts.shape == (15,)
    assert int(counts.sum()) == 6
    before = float(posterior.variance[15:].max())
    assert JointBatchPosterior.of([problem], counts).value < before


@pytest.mark.slow
@pytest.mark.exhaustive
def test_on_the_table_of_runs_no_batch_leaves_more_than_the_rounded_design():
    recording.fill()
    compared = 0
    for name, case in recording.CASES.items():
        if not name.startswith(("MELKStrategy", "MILKStrategy", "HRAGEStrategy")):
            continue
        if "prior" in name or "sample" in name:
            continue
        strategy, F, std = case.make()
        # Once an audit draws rows nothing is left to design.
        is_plain = isinstance(strategy.algorithm, GaussianAlgorithm)
        is_plain = is_plain and not strategy.criteria
        if len(strategy.pool) > 40 or case.way != "asked" or not is_plain:
            continue  # the large ones take minutes here
        generator = torch.Generator().manual_seed(0)
        state = strategy.init()
        while not state.is_done and state.round < 4:
            rows = strategy.ask(state).order
            if not strategy.algorithm.model.is_initial(state.belief.fits):
                batches = {
                    rounding: replace(strategy, rounding=rounding).ask(state).order
                    for rounding in ("quota", "exchange")
                }
                problem = problem_of_round(strategy, state)
                left = {
                    rounding: JointBatchPosterior.of(
                        [problem], torch.bincount(batch, minlength=len(strategy.pool))
                    ).value
                    for rounding, batch in batches.items()
                }
                assert left["exchange"] <= left["quota"] * (1 + 1e-9), name
                compared += 1
            noise = torch.randn(F[rows].shape, generator=generator, dtype=torch.float64)
            y = F[rows] + std * noise
            state = strategy.tell(state, Observations(rows, y))
    assert compared > 80
