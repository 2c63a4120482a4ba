from __future__ import annotations

import numpy as np
import pytest
import torch

from botorch_lse import Observations, Pool
from botorch_lse.designs import optimal_design
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.strategies import (
    LSEStrategy,
    MELKStrategy,
    MILKStrategy,
    RandomStrategy,
    Strategy,
)
from tests.covering import more_in_full
from tests.reference.dense_gp import DenseGP
from tests.strategies.runs import GP, NOISE_STD, grid, make, measure, run, step

OMEGA = 0.6
both = pytest.mark.parametrize("cls", [MELKStrategy, MILKStrategy])


def covariance(history: Observations, planned: list[int] | None = None) -> np.ndarray:
    r"""Posterior covariance of the grid, written out."""
    X = grid().numpy()
    rows = [*history.indices.tolist(), *(planned or [])]
    noise = np.full(len(rows), NOISE_STD**2)
    return GP.posterior(X, X[rows], np.zeros(len(rows)), noise)[1]


# --- the batch ------------------------------------------------------------------------


@pytest.mark.parametrize("rounding", ["quota", "exchange"])
def test_large_batch_nearly_attains_the_best_worst_variance(rounding: str) -> None:
    q = 600
    strategy = make(MELKStrategy, batch_size=q, rounding=rounding)
    state = strategy.tell(strategy.init(), Observations([3, 20, 8], [0.1, 0.9, -0.4]))
    undecided = state.classification.undecided
    assert bool(undecided.any())
    K = torch.tensor(covariance(state.history))
    L = torch.linalg.cholesky(K + 1e-9 * torch.eye(36))
    exact = optimal_design(L / NOISE_STD, undecided, gamma=1 / q, tol=1e-3)
    best = exact.lower_bound * NOISE_STD**2 / q
    after = covariance(state.history, strategy.ask(state).order.tolist())
    worst = after.diagonal()[undecided.numpy()].max()
    assert best <= worst <= 1.12 * best


def test_large_batch_nearly_attains_the_best_worst_pair() -> None:
    q = 600
    strategy = make(MILKStrategy, batch_size=q)
    state = strategy.tell(strategy.init(), Observations([3, 20, 8], [0.1, 0.9, -0.4]))
    pairs = state.belief.sides.pairs.numpy()
    K = torch.tensor(covariance(state.history))
    L = torch.linalg.cholesky(K + 1e-9 * torch.eye(36))
    exact = optimal_design(
        L / NOISE_STD,
        gamma=1 / q,
        tol=1e-3,
        pairs_factor=OMEGA,
        target_weights=pairs.astype(float),
    )
    best = exact.lower_bound * NOISE_STD**2 / q
    after = covariance(state.history, strategy.ask(state).order.tolist())
    own = after.diagonal()
    spread = own[:, None] + OMEGA**2 * own - 2 * OMEGA * after
    assert best <= spread[pairs].max() <= 1.12 * best


def test_only_the_undecided_rows_count() -> None:
    # Rows far below the level on the left are decided; the batch goes to the right.
    X = torch.linspace(0, 1, 21).double().unsqueeze(-1)
    gp = DenseGP((0.05,), 1.0)
    pool = Pool(X)
    strategy = make(
        MELKStrategy, pool=pool, model=gp.kernel(), batch_size=8, threshold=0.0
    )
    left = torch.arange(10).repeat(6)
    state = strategy.tell(strategy.init(), Observations(left, -2.0 + 0.0 * left))
    assert bool(state.classification.below[:9].all())
    assert int(strategy.ask(state).indices.min()) >= 9


@both
def test_pending_rows_are_planned_around(cls: type) -> None:
    strategy = make(cls, batch_size=6, epsilon=0.0)
    state = run(strategy, 1)[-1]
    first = strategy.ask(state).order
    second = strategy.ask(state, pending=first).order
    joint = covariance(state.history, [*first.tolist(), *second.tolist()])
    again = covariance(state.history, [*first.tolist(), *first.tolist()])
    assert joint.diagonal().max() < again.diagonal().max()


@both
def test_limits_on_repeats_leave_a_full_batch(cls: type) -> None:
    strategy = make(cls, batch_size=30, max_repeats=1)
    state = strategy.init()
    batch = strategy.ask(state)
    assert batch.counts.tolist() == [1] * 30


@both
def test_drawn_batches_depend_on_the_seed_and_quota_ones_do_not(cls: type) -> None:
    for rounding, different in (("sample", True), ("quota", False)):
        strategy = make(cls, batch_size=12, rounding=rounding)
        orders = [strategy.ask(strategy.init(seed)).order.tolist() for seed in (0, 1)]
        assert (orders[0] != orders[1]) == different
        assert strategy.ask(strategy.init(1)).order.tolist() == orders[1]


@both
def test_design_of_the_prior_forgets_where_was_measured(cls: type) -> None:
    strategy = make(cls, batch_size=10, design="prior", beta=1e6)
    own = make(cls, batch_size=10, beta=1e6)
    orders = []
    for one in (strategy, own):
        for row in (0, 35):
            state = one.tell(one.init(), Observations([row] * 10, [0.4] * 10))
            orders.append(one.ask(state).order)
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[2], orders[3])


def test_loud_rows_are_measured_less() -> None:
    X = grid()
    noise = torch.full((36,), NOISE_STD**2)
    noise[X[:, 0] > 0.5] = 25.0
    pool = Pool(X, noise_var=noise)
    strategy = make(MELKStrategy, pool=pool, noise_std=None, batch_size=20, beta=50.0)
    batch = strategy.ask(strategy.init())
    loud = (noise > 1)[batch.order]
    plain = make(MELKStrategy, batch_size=20, beta=50.0)
    usual = (noise > 1)[plain.ask(plain.init()).order]
    # The right half needs more when it is loud: its variance is the worst.
    assert int(loud.sum()) > int(usual.sum())


def test_pool_without_uncertainty_still_gives_a_batch() -> None:
    kernel = GP.kernel()
    kernel.outputscale = 1e-30
    strategy = make(
        MELKStrategy,
        model=GPPrior.from_kernel(kernel),
        threshold=0.0,
        epsilon=0.0,
        beta=1e40,
        batch_size=3,
    )
    state = strategy.init()
    if not state.is_done:
        assert len(strategy.ask(state)) == 3


# --- decisions ------------------------------------------------------------------------


@pytest.mark.slow
def test_melk_decides_by_the_current_interval_and_for_good() -> None:
    strategy = make(MELKStrategy, batch_size=5, epsilon=0.0, beta=4.0)
    side = np.zeros(36)
    X = grid().numpy()
    for state in run(strategy, 8):
        told = state.history
        noise = np.full(len(told), NOISE_STD**2)
        mean, sigma = GP.moments(X, X[told.indices], told.y.numpy(), noise)
        answer = state.classification
        assert np.allclose(answer.lower, mean - 2 * sigma, atol=1e-7)
        side = np.where((side == 0) & (mean - 2 * sigma > 0.4), 1, side)
        side = np.where((side == 0) & (mean + 2 * sigma <= 0.4), -1, side)
        assert np.array_equal(answer.above.int() - answer.below.int(), side)
    row = int(np.argmax(side))
    # For good, unless its own interval comes to lie on the other side.
    in_doubt = 0
    for _ in range(60):
        state = strategy.tell(state, Observations([row], [-0.3]))
        answer = state.classification
        if float(answer.lower[row]) < 0.4 < float(answer.upper[row]):
            assert bool(answer.above[row])
            in_doubt += 1
    assert in_doubt > 0
    assert float(answer.upper[row]) < 0.4
    assert bool(answer.below[row])
    assert bool(answer.contradicted[row])


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_milk_decides_pairs_like_its_definition(epsilon: float) -> None:
    strategy = make(MILKStrategy, batch_size=5, epsilon=epsilon, beta=4.0)
    X = grid().numpy()
    N = len(X)
    active = {(i, j) for i in range(N) for j in range(N)}
    above, below = set(), set()
    for state in run(strategy, 8):
        told = state.history
        noise = np.full(len(told), NOISE_STD**2)
        mean, K = GP.posterior(X, X[told.indices], told.y.numpy(), noise)
        refuted, certain = set(), set()
        for i, j in active:
            v = np.zeros(N)
            v[i] += 1.0
            v[j] -= OMEGA
            half = 2 * np.sqrt(max(v @ K @ v, 0.0))
            if v @ mean - half + epsilon > 0:
                certain.add((i, j))
            elif v @ mean + half - epsilon <= 0:
                refuted.add(i)
        below |= refuted
        active = {
            (i, j) for i, j in active - certain if i not in refuted and j not in refuted
        }
        above = set(range(N)) - below - {i for i, _ in active}
        answer = state.classification
        assert set(answer.above.nonzero().view(-1).tolist()) == above
        assert set(answer.below.nonzero().view(-1).tolist()) == below
    assert above
    assert below


@pytest.mark.some(1)
@both
@more_in_full("n_runs", 1, 10)
def test_decided_rows_are_right_with_the_theorem_s_width(
    cls: type, n_runs: int
) -> None:
    # Draws of the process; each may fail with probability 0.1, and hardly ever does.
    wrong = 0
    for seed in range(n_runs):
        f = GP.sample(grid().numpy(), 100 + seed)
        level = 0.4 if cls is MELKStrategy else OMEGA * f.max()
        strategy = make(cls, beta=None, delta=0.1, batch_size=10, max_observations=120)
        rng = np.random.default_rng(seed)
        state = strategy.init()
        y = {r: f[r] + NOISE_STD * rng.standard_normal(120) for r in range(36)}
        while not state.is_done:
            state = step(strategy, state, lambda r, i, y=y: float(y[r][i]))
        answer = state.classification
        wrong += bool((answer.above.numpy() & (f < level - 0.1)).any())
        wrong += bool((answer.below.numpy() & (f > level + 0.1)).any())
        assert int(answer.undecided.sum()) < 30
    assert wrong == 0


@pytest.mark.slow
@pytest.mark.exhaustive
def test_designs_decide_more_than_ambiguity_and_chance() -> None:
    # A small form of Figure 2b: noise as large as the function, batches of 10.
    X = np.linspace(0, 1, 60)[:, None]
    gp = DenseGP((0.1,), 1.0, is_rbf=True)
    scores: dict[type, list[float]] = {}
    for seed in range(6):
        K = gp.covariance(X, X) + 1e-8 * np.eye(60)
        rng = np.random.default_rng(seed)
        f = np.linalg.cholesky(K) @ rng.standard_normal(60)
        truth = f > np.quantile(f, 0.8)
        for cls in (MELKStrategy, LSEStrategy, RandomStrategy):
            strategy = make(
                cls,
                pool=Pool(X),
                model=gp.kernel(),
                noise_std=1.0,
                threshold=float(np.quantile(f, 0.8)),
                epsilon=0.0,
                beta=9.0,
                batch_size=10,
                max_observations=300,
            )
            found = _answer(strategy, f, seed)
            hits = int((found & truth).sum())
            score = 2 * hits / (2 * hits + int((found ^ truth).sum()) or 1)
            scores.setdefault(cls, []).append(score)
    mean = {cls: np.mean(values) for cls, values in scores.items()}
    assert mean[MELKStrategy] > mean[LSEStrategy] + 0.05
    assert mean[MELKStrategy] > mean[RandomStrategy]


def _answer(strategy: Strategy, f: np.ndarray, seed: int) -> np.ndarray:
    noise = np.random.default_rng(1000 + seed)
    state = strategy.init()
    while not state.is_done:
        state = step(strategy, state, lambda r, _: f[r] + noise.standard_normal())
    return state.classification.above.numpy()


# --- words and refusals ---------------------------------------------------------------


@both
def test_only_the_theorem_s_width_claims_a_confidence(cls: type) -> None:
    text = make(cls, beta=None, delta=0.1).guarantee
    assert "With probability 0.9" in text
    assert ("all ordered pairs" in text) == (cls is MILKStrategy)
    assert "No confidence is claimed" in make(cls, beta=9.0).guarantee


def test_pairs_have_wider_intervals_than_rows() -> None:
    rows, pairs = make(MELKStrategy, beta=None), make(MILKStrategy, beta=None)
    assert pairs.algorithm.widths(1) == pytest.approx(
        rows.algorithm.widths(1) + 2 * np.log(36)
    )


@both
def test_learned_models_are_planned_with(cls: type) -> None:
    strategy = make(cls, model=None, noise_std=None, batch_size=6)
    state = strategy.init()
    for _ in range(3):
        state = step(strategy, state, measure)
    assert len(strategy.ask(state)) == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounding": "ceil"}, "`rounding` to be one of .*'ceil'"),
        ({"design": "uniform"}, "`design` to be one of .*'uniform'"),
        ({"delta": 0.0}, r"`delta` in \(0, 1\)"),
        ({"batch_size": 0}, "`batch_size` to be at least 1"),
    ],
)
@both
def test_bad_arguments_are_refused(cls: type, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(cls, **options)


def test_wrong_goals_and_too_many_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="exactly `threshold` for MELKStrategy"):
        make(MELKStrategy, threshold=None, omega=0.5)
    with pytest.raises(ValueError, match="exactly `omega` for MILKStrategy"):
        make(MILKStrategy, threshold=0.4, omega=None)
    with pytest.raises(ValueError, match="pairs fit `memory_budget` = 10000 bytes"):
        make(MILKStrategy, memory_budget=10_000)


def test_milk_still_compares_with_a_maximiser_that_is_below_by_epsilon() -> None:
    # (1 - omega) max f < epsilon: the maximiser's own pair is refuted up to epsilon.
    f = torch.tensor([0.1, -0.9, -0.9]).double()
    for seed in range(10):
        strategy = MILKStrategy(
            Pool(torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])),
            omega=0.5,
            model=DenseGP((1.0, 1.0), 1.0).kernel(),
            noise_std=1.0,
            delta=1e-4,
            epsilon=0.6,
            batch_size=3,
        )
        rng, state = np.random.default_rng(seed), strategy.init()
        while state.round < 12 and bool(state.classification.undecided[0]):
            y = f[0] + torch.from_numpy(rng.standard_normal(3))
            state = strategy.tell(state, Observations([0, 0, 0], y))
        if not state.is_done:
            yvar = torch.tensor([1e6, 2e-4, 2e-4]).double()
            y = f + yvar.sqrt() * torch.from_numpy(rng.standard_normal(3))
            state = strategy.tell(state, Observations([0, 1, 2], y, yvar))
        wrong = state.classification.above & (f < 0.5 * f.max() - 0.6)
        assert not bool(wrong.any())
