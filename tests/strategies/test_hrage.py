r"""H-RAGE on a Gaussian process: the burn-in, the designs, and what is decided."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from gpytorch.kernels import LinearKernel

from botorch_lse import Observations, Pool
from botorch_lse.estimators import head_designs
from botorch_lse.goals.extremes import eliminate_for_best
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.plotting import level_set_frame
from botorch_lse.strategies import HRAGELinearStrategy, HRAGEStrategy, State
from tests.covering import more_in_full
from tests.strategies.runs import GP, assert_same, grid, played

SIDE = 5
X = grid(SIDE)
PHI = torch.cat((torch.ones(len(X), 1).double(), X), dim=1)
SIGMA = torch.tensor([0.02, 0.6, 0.05]).double()
VARIANCES = PHI.square() @ SIGMA
BOUNDS = (0.02, 0.7)
POOL = Pool(X, features=PHI)
KNOWN = Pool(X, features=PHI, noise_var=VARIANCES)


def truth(seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(GP.sample(X.numpy(), seed))


def make(pool: Pool = POOL, **options) -> HRAGEStrategy:
    given = {"threshold": 0.4, "model": GPPrior.from_kernel(GP.kernel())}
    if pool.noise_var is None:
        given |= {"variance_bounds": BOUNDS, "burn_in": 36}
    return HRAGEStrategy(pool, **{**given, "batch_size": 6, "beta": 4.0, **options})


def measure(rows: torch.Tensor, round: int, seed: int = 0, f=None) -> torch.Tensor:
    noise = np.random.default_rng([seed, round]).standard_normal(len(rows))
    f = truth(seed) if f is None else f
    return f[rows] + VARIANCES[rows].sqrt() * torch.from_numpy(noise)


def run(strategy: HRAGEStrategy, rounds: int, seed: int = 0, f=None) -> list[State]:
    def values(rows: torch.Tensor, state: State) -> torch.Tensor:
        return measure(rows, state.round, seed, f)

    return played(strategy, values, rounds, seed)


# --- the burn-in ----------------------------------------------------------------------


@pytest.mark.parametrize(("burn_in", "rounds"), [(36, 3), (37, 4), (48, 4), (None, 10)])
def test_the_burn_in_is_heads_two_designs_in_whole_rounds(
    burn_in: int | None, rounds: int
) -> None:
    strategy = make(burn_in=burn_in)
    assert strategy.n_burn_in == 12 * rounds  # 20 per dimension of six is 120
    states = run(strategy, 2 * rounds)
    history = states[-1].history
    want = head_designs(PHI).counts(12 * rounds)
    for stage in range(2):
        asked = history.indices[(history.round >= rounds) == bool(stage)]
        found = torch.bincount(asked, minlength=len(X))
        assert torch.equal(found, want[stage])
    assert all(s.classification.undecided.all() for s in states[:-1])
    assert strategy.burn_in_used(states[-1]) == 12 * rounds
    assert strategy.variances(states[-2]) is None
    assert strategy.burn_in_used(run(strategy, 2 * rounds + 1)[-1]) == 12 * rounds


def test_rounds_of_a_stage_are_alike() -> None:
    # Each round of the first stage takes an even share, so that an early stop or a
    # drift of the bench hits all arms of the design.
    strategy = make(burn_in=48, batch_size=12)
    first, second = (s.history for s in run(strategy, 2)[1:])
    one = torch.bincount(first.indices, minlength=len(X))
    two = torch.bincount(second.indices, minlength=len(X)) - one
    assert int((one - two).abs().max()) <= 1


def test_variances_are_those_of_least_squares_written_out() -> None:
    strategy = make()
    state = run(strategy, 6, f=PHI @ torch.tensor([1.0, 2.0, -1.0]).double())[-1]
    history = state.history
    first = (history.round < 3).numpy()
    A, rows = PHI.numpy(), history.indices.numpy()
    y = history.y.numpy()
    theta = np.linalg.lstsq(A[rows[first]], y[first], rcond=None)[0]
    squares = (y[~first] - A[rows[~first]] @ theta) ** 2
    Q = np.stack([np.outer(a, a).ravel() for a in A])
    Sigma = np.linalg.lstsq(Q[rows[~first]], squares, rcond=None)[0]
    want = (Q @ Sigma).clip(*BOUNDS)
    found = strategy.variances(state)
    assert found is not None
    np.testing.assert_allclose(found.numpy(), want, rtol=1e-8)
    assert len(set(found.tolist())) > 10  # not all clipped


@pytest.mark.slow
@more_in_full("n_runs", 1, 4)
def test_many_measurements_find_the_variances(n_runs: int) -> None:
    errors = []
    for seed in range(n_runs):
        strategy = make(burn_in=6000, batch_size=1500)
        f = PHI @ torch.tensor([1.0, 2.0, -1.0]).double()
        found = strategy.variances(run(strategy, 4, seed, f)[-1])
        assert found is not None
        errors.append(float((found - VARIANCES).abs().max()))
    # The standard error at the worst arm: sqrt(2 h / n) of the largest variance.
    assert max(errors) <= 4 * (2 * 6 / 3000) ** 0.5 * float(VARIANCES.max())


@pytest.mark.parametrize("rounds", [6, 9])
def test_the_posterior_is_the_dense_one_with_the_estimated_noise(rounds: int) -> None:
    strategy = make()
    state = run(strategy, rounds)[-1]
    variances = strategy.variances(state)
    assert variances is not None
    rows = state.history.indices
    mean, sigma = GP.moments(
        X.numpy(), X[rows].numpy(), state.history.y.numpy(), variances[rows].numpy()
    )
    np.testing.assert_allclose(state.classification.mean.numpy(), mean, rtol=1e-8)
    np.testing.assert_allclose(state.classification.sigma.numpy(), sigma, rtol=1e-8)
    np.testing.assert_allclose(
        state.classification.lower.numpy(), mean - 2 * sigma, rtol=1e-7
    )


def test_told_variances_go_before_the_estimates() -> None:
    strategy = make()
    states = [strategy.init()]
    for _ in range(7):
        batch = strategy.ask(states[-1])
        y = measure(batch.order, states[-1].round)
        told = batch.observe(y, torch.full_like(y, 0.05))
        states.append(strategy.tell(states[-1], told))
    history = states[-1].history
    _, sigma = GP.moments(
        X.numpy(), X[history.indices].numpy(), history.y.numpy(), np.full(42, 0.05)
    )
    np.testing.assert_allclose(states[-1].classification.sigma.numpy(), sigma, 1e-8)
    assert strategy.variances(states[-1]) is not None


def test_the_model_is_fitted_after_the_burn_in_with_its_variances() -> None:
    seen = []

    def factory(train_X, train_Y, train_Yvar):
        from botorch.models import SingleTaskGP

        seen.append((len(train_X), train_Yvar))
        return SingleTaskGP(train_X, train_Y, train_Yvar).eval()

    strategy = make(model=factory, refit=2)
    state = run(strategy, 8)[-1]
    assert [n for n, _ in seen] == [36, 48]
    variances = strategy.variances(state)
    assert variances is not None
    first = state.history.indices[:36]
    assert torch.equal(seen[0][1].squeeze(-1), variances[first])


# --- the designs ----------------------------------------------------------------------


def worst_left(K: torch.Tensor, noise: torch.Tensor, rows, combos) -> float:
    r"""The largest variance of combinations ``combos`` after measuring ``rows``."""
    rows = torch.as_tensor(rows)
    C = K[rows][:, rows] + noise[rows].diag()
    left = K - K[:, rows] @ torch.linalg.solve(C, K[rows])
    return float(((combos @ left) * combos).sum(dim=-1).max())


def posterior_covariance(K, history, noise):
    if len(history) == 0:
        return K
    rows = history.indices
    C = K[rows][:, rows] + noise[rows].diag()
    return K - K[:, rows] @ torch.linalg.solve(C, K[rows])


@pytest.mark.slow
def test_level_set_batches_are_close_to_the_best_of_all() -> None:
    ours, blind = [], []
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        points = torch.rand(6, 2, generator=generator).double()
        noise = 10 ** (-2 + 3 * torch.rand(6, generator=generator).double())
        K = torch.from_numpy(GP.covariance(points.numpy(), points.numpy()))
        strategy = make(Pool(points, noise_var=noise), rounding="exchange")
        side = torch.tensor([1, 0, 0, -1, 0, 0], dtype=torch.int8)  # two are decided
        state = strategy.init()
        sides = replace(state.belief.sides, side=side, candidates=side == 0)
        belief = replace(state.belief, sides=sides)
        request = strategy._request(state, torch.empty(0).long())
        rows = strategy.algorithm.plan(belief, replace(request, size=8))
        combos = torch.eye(6).double()[side == 0]
        every = list(itertools.combinations_with_replacement(range(6), 8))
        left = [worst_left(K, noise, batch, combos) for batch in every]
        flat = noise.mean().expand(6)  # what a method blind to the noise would ask
        unaware = [worst_left(K, flat, batch, combos) for batch in every]
        ours.append(worst_left(K, noise, rows, combos) / min(left))
        blind.append(left[int(np.argmin(unaware))] / min(left))
    assert max(ours) <= 1.1
    assert float(np.mean(blind)) >= 1.3


def test_best_arm_batches_are_close_to_the_best_of_all() -> None:
    # Three arms, two of them near each other; the third tells them apart.
    arms = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.955, 0.296]]).double()
    noise = torch.tensor([0.1, 1.0, 0.18]).double()
    kernel = LinearKernel().double()
    kernel.variance = 4.0
    K = 4 * arms @ arms.T
    strategy = HRAGEStrategy(
        Pool(arms, noise_var=noise), model=kernel, batch_size=12, max_observations=240
    )
    state = strategy.init()
    f = arms @ torch.tensor([1.0, 0.0]).double()
    combos = {3: torch.tensor([[1.0, -1, 0], [1, 0, -1], [0, 1, -1]]).double()}
    combos[2] = combos[3][1:2]
    excess = []
    while not state.is_done:
        batch = strategy.ask(state)
        now = posterior_covariance(K, state.history, noise)
        v = combos[int(state.classification.undecided.sum())]
        best = min(
            worst_left(now, noise, batch, v)
            for batch in itertools.combinations_with_replacement(range(3), 12)
        )
        before = float(((v @ now) * v).sum(-1).max())
        here = worst_left(now, noise, batch.order, v)
        excess.append((here - best) / (before - best))  # share of the gain missed
        rng = np.random.default_rng(state.round)
        y = f[batch.order] + noise[batch.order].sqrt() * torch.from_numpy(
            rng.standard_normal(12)
        )
        state = strategy.tell(state, batch.observe(y))
    assert int(state.classification.undecided.sum()) == 2  # the race is between two
    assert max(excess) <= 0.15
    assert float(np.mean(excess)) <= 0.05


def test_elimination_for_the_best_by_definition() -> None:
    generator = torch.Generator().manual_seed(0)
    for epsilon in (0.0, 0.5):
        for _ in range(50):
            values = torch.randn(6, generator=generator)
            A = torch.rand(6, 6, generator=generator)
            half = A + A.T
            half.fill_diagonal_(0.0)
            rows = torch.tensor([1, 3, 4, 7, 8, 9])
            side = torch.full((10,), -1, dtype=torch.int8)
            side[rows] = 0
            found = eliminate_for_best(side, rows, values, half, epsilon)
            stays = [
                i
                for i in range(6)
                if not any(values[j] - values[i] - half[i, j] > 0 for j in range(6))
            ]
            best = int(values.argmax())
            sure = all(
                values[j] - values[best] + half[j, best] <= epsilon
                for j in stays
                if j != best
            )
            want = torch.full((10,), -1, dtype=torch.int8)
            want[rows[[best] if sure else stays]] = 1 if sure else 0
            assert torch.equal(found, want)
            assert bool((side[rows] == 0).all())  # the argument is not changed


# --- what is decided ------------------------------------------------------------------


@pytest.mark.some(0, slow=1)
@pytest.mark.parametrize("threshold", [0.4, None])
@more_in_full("n_runs", 3, 20)
def test_known_noise_is_seldom_wrong_and_says_so(
    threshold: float | None, n_runs: int
) -> None:
    wrong, open_rows = 0, []
    for seed in range(n_runs):
        f = truth(seed)
        strategy = make(
            KNOWN, threshold=threshold, beta=None, delta=0.1, epsilon=0.3,
            batch_size=20, max_observations=400,
        )  # fmt: skip
        answer = run(strategy, 20, seed)[-1].classification
        if threshold is None:
            bad = f[answer.above].numel() and float(f.max() - f[answer.above]) > 0.3
        else:
            bad = bool((answer.above & (f <= threshold - 0.3)).any())
            bad |= bool((answer.below & (f > threshold + 0.3)).any())
        wrong += bool(bad)
        open_rows.append(float(answer.undecided.double().mean()))
    assert float(np.mean(open_rows)) < 0.5
    assert wrong <= n_runs // 5  # of 20, more has probability 0.05 at delta = 0.1
    assert strategy.algorithm.claims_confidence
    assert strategy.guarantee.startswith("With probability 0.9 ")
    assert ("over all ordered pairs" in strategy.guarantee) == (threshold is None)


def test_the_width_of_the_maximiser_covers_all_pairs() -> None:
    level, best = make(KNOWN, beta=None), make(KNOWN, beta=None, threshold=None)
    t, N = 3, len(X)
    for strategy, many in ((level, N), (best, N * N)):
        want = 2 * np.log(many * np.pi**2 * t**2 / (6 * 0.05))
        assert strategy.algorithm.widths(t) == pytest.approx(want)


def test_estimated_noise_claims_no_confidence() -> None:
    strategy = make(beta=None)
    assert not strategy.algorithm.claims_confidence
    assert strategy.guarantee.startswith("No confidence is claimed")
    assert "estimates from 36 measurements" in strategy.guarantee
    assert "given, not derived" in make(beta=4.0).guarantee


@pytest.mark.parametrize("threshold", [0.4, None])
@more_in_full("n_runs", 1, 20)
def test_a_whole_run_with_estimated_noise(threshold: float | None, n_runs: int) -> None:
    right = []
    for seed in range(n_runs):
        strategy = make(threshold=threshold, epsilon=0.2, max_observations=600)
        state = run(strategy, 100, seed)[-1]
        assert state.stop_reason == "decided"
        f, answer = truth(seed), state.classification
        if threshold is None:
            assert int(answer.above.sum()) == 1
            right.append(float(f.max() - f[answer.above]) <= 0.2)
        else:
            sure = (f - threshold).abs() > 0.2
            right.append(torch.equal(answer.above[sure], (f > threshold)[sure]))
    # Intervals two standard deviations wide are right throughout in about four runs of
    # five; of 20 such runs fewer than 12 has probability 0.01.
    assert sum(right) >= 0.6 * n_runs


@pytest.mark.parametrize("threshold", [0.4, None])
@pytest.mark.parametrize("pool", [POOL, KNOWN], ids=["estimated", "known"])
def test_items_need_not_be_measurable(threshold: float | None, pool: Pool) -> None:
    items = Pool(torch.rand(4, 2, generator=torch.Generator().manual_seed(1)).double())
    strategy = make(pool, threshold=threshold, targets=items)
    states = run(strategy, 8)
    answer = states[-1].classification
    assert len(answer) == 4
    assert answer.pool is items
    history = states[-1].history
    noise = strategy.variances(states[-1])
    assert noise is not None
    rows = history.indices
    mean, sigma = GP.moments(
        items.X.numpy(), X[rows].numpy(), history.y.numpy(), noise[rows].numpy()
    )
    np.testing.assert_allclose(answer.mean.numpy(), mean, rtol=1e-8)
    np.testing.assert_allclose(answer.sigma.numpy(), sigma, rtol=1e-8)
    assert answer.to_frame().shape[0] == 4


@pytest.mark.parametrize("cls", [HRAGEStrategy, HRAGELinearStrategy])
def test_tables_count_the_measurements_of_rows_that_are_items(cls) -> None:
    items = Pool(torch.cat((X[[7, 3, 7]], X[:1] + 0.5)), features=PHI[[7, 3, 7, 0]])
    options = (
        {"model": GPPrior.from_kernel(GP.kernel())} if cls is HRAGEStrategy else {}
    )
    strategy = cls(
        KNOWN, threshold=0.4, targets=items, batch_size=4, noise_std=None, **options
    )
    rows = torch.tensor([3, 3, 7, 0, 11])
    state = strategy.init()
    state = strategy.tell(state, Observations(rows, truth()[rows]))
    assert state.measurements.indices.tolist() == [1, 1, 0]  # the first of equal items
    frame = level_set_frame(state.classification, state.measurements)
    assert frame["n_observations"].tolist() == [1, 2, 0, 0]


def test_items_that_are_the_pool_change_nothing() -> None:
    for threshold in (0.4, None):
        plain = run(make(threshold=threshold), 8)[-1]
        same = run(make(threshold=threshold, targets=Pool(X)), 8)[-1]
        assert torch.equal(plain.history.indices[:36], same.history.indices[:36])
        torch.testing.assert_close(
            plain.classification.sigma, same.classification.sigma, rtol=0.2, atol=0.02
        )


def test_the_forecast_appears_after_the_burn_in() -> None:
    for threshold in (0.4, None):
        states = run(make(threshold=threshold), 6)
        assert states[3].forecast().observations is None
        assert states[-1].forecast().observations >= 1


# --- asking and telling ---------------------------------------------------------------

MODES = {
    "level set": {},
    "maximiser": {"threshold": None},
    "items": {"targets": Pool(X[:4] + 0.01)},
    "fitted": {"model": None},
    "fitted maximiser": {"model": None, "threshold": None, "refit": 2},
}
modes = pytest.mark.parametrize("options", MODES.values(), ids=MODES.keys())


@pytest.mark.some(2)
@modes
def test_replay_equals_telling_one_by_one(options: dict) -> None:
    strategy = make(**options)
    for state in run(strategy, 8, seed=3)[1::3]:
        assert_same(strategy, strategy.replay(state.observations, seed=3), state)


@pytest.mark.some(2)
@modes
def test_a_round_told_in_pieces_is_the_same(options: dict) -> None:
    strategy = make(**options)
    whole = strategy.init()
    for _ in range(8):
        batch = strategy.ask(whole)
        y = measure(batch.order, whole.round)
        part, where = whole, torch.tensor([3, 0, 5])
        part = strategy.tell(part, Observations(batch.order[where], y[where]))
        rest = strategy.ask(part)
        left = torch.tensor([1, 2, 4])
        assert sorted(rest.order.tolist()) == sorted(batch.order[left].tolist())
        part = strategy.tell(part, Observations(batch.order[left], y[left]))
        whole = strategy.tell(whole, batch.observe(y))
        assert_same(strategy, part, whole)


@pytest.mark.some(4)
@modes
@pytest.mark.parametrize("rounds", [1, 7])
def test_rows_that_are_out_are_known(options: dict, rounds: int) -> None:
    strategy = make(**options)
    state = run(strategy, rounds)[-1]
    batch = strategy.ask(state)
    rest = strategy.ask(state, pending=batch.order[:2])
    assert torch.equal(rest.order, batch.order[2:])
    more = strategy.ask(state, pending=batch.order)
    assert more.round == batch.round + 1
    assert len(more.order) == 6


@pytest.mark.parametrize("max_repeats", [1, 2])
def test_repeats_are_limited_and_the_rows_run_out(max_repeats: int) -> None:
    strategy = make(max_repeats=max_repeats, burn_in=24, epsilon=0.0, beta=9.0)
    state = run(strategy, 100)[-1]
    counts = state.uses(len(X))
    assert int(counts.max()) <= max_repeats
    assert state.stop_reason in ("rows exhausted", "out of reach", "decided")
    assert strategy.burn_in_used(state) == 24


def test_a_budget_inside_the_burn_in_is_refused_at_construction() -> None:
    n = make().n_burn_in
    with pytest.raises(ValueError, match=f"at least {n}, what the burn-in.*{n - 1}"):
        make(max_observations=n - 1)
    state = run(make(max_observations=n), 100)[-1]
    assert (state.n_used, state.stop_reason) == (n, "budget")


def test_rows_measured_elsewhere_count_for_the_open_stage() -> None:
    strategy = make()
    state = run(strategy, 2)[-1]
    rows = torch.arange(20)
    state = strategy.tell(state, Observations(rows, measure(rows, 90)))
    assert strategy.burn_in_used(state) == 32
    for _ in range(3):  # the first stage is over at once
        batch = strategy.ask(state)
        y = measure(batch.order, state.round)
        state = strategy.tell(state, batch.observe(y))
    assert strategy.variances(state) is not None
    assert strategy.burn_in_used(state) == 50
    assert_same(strategy, strategy.replay(state.observations), state)


def test_abandoned_rows_close_a_round_of_the_burn_in() -> None:
    strategy = make()
    state = strategy.init()
    batch = strategy.ask(state)
    y = measure(batch.order, 0)
    part = strategy.tell(
        state, Observations(batch.order[1:], y[1:]), abandoned=batch.order[:1]
    )
    assert part.round == 1
    assert strategy.burn_in_used(part) == 5
    states = [part]
    while strategy.variances(states[-1]) is None:
        batch = strategy.ask(states[-1])
        y = measure(batch.order, states[-1].round)
        states.append(strategy.tell(states[-1], batch.observe(y)))
    assert strategy.burn_in_used(states[-1]) == 5 + 18 + 18


def test_the_scale_of_y_changes_no_batch() -> None:
    scale = 250.0
    kernel = GP.kernel()
    kernel.outputscale = GP.outputscale * scale**2
    wide = make(
        model=GPPrior.from_kernel(kernel),
        threshold=0.4 * scale,
        variance_bounds=(BOUNDS[0] * scale**2, BOUNDS[1] * scale**2),
    )
    plain = make()
    one, other = plain.init(), wide.init()
    for _ in range(9):
        batch, big = plain.ask(one), wide.ask(other)
        assert torch.equal(batch.order, big.order)
        y = measure(batch.order, one.round)
        one = plain.tell(one, batch.observe(y))
        other = wide.tell(other, big.observe(scale * y))
        if one.is_done:
            break
    assert torch.equal(one.classification.above, other.classification.above)
    assert len(one.history) > 36


# --- bad arguments --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"noise_std": 0.1}, "`variance_bounds` and `noise_std`"),
        ({"variance_bounds": (2.0, 1.0)}, r"`variance_bounds\[1\]` in \[2, inf\)"),
        ({"variance_bounds": 1.0}, "`variance_bounds` to be the least and the largest"),
        ({"targets": [[0.1]]}, "`targets` to be a Pool, but got list"),
        ({"burn_in": 4}, "`burn_in` of at least 1"),
        ({"burn_in": 1}, "`burn_in`"),
        ({"n_initial": 5}, "no `n_initial` with `variance_bounds`"),
        ({"variance_bounds": None, "noise_std": 0.1}, "`burn_in` with `variance_"),
        ({"omega": 0.5}, "exactly `threshold`"),
        ({"threshold": None, "memory_budget": 2**10}, "pairs fit `memory_budget`"),
    ],
)
def test_bad_arguments_are_refused(options: dict, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make(**options)


def test_known_noise_in_the_pool_and_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`variance_bounds` and `pool\.noise_var`"):
        make(KNOWN, variance_bounds=BOUNDS)


def test_items_with_other_columns_are_refused() -> None:
    with pytest.raises(BotorchTensorDimensionError, match="2 columns of `pool`"):
        make(targets=Pool(torch.rand(3, 4)))


@pytest.mark.some(1)
@pytest.mark.parametrize("apart", [1e-9, 1e-8])
def test_rows_that_nearly_coincide_are_not_told_apart(apart: float) -> None:
    pool = Pool(torch.tensor([[0.0, 0.0], [apart, 0.0], [3.0, 0.0]]).double())
    strategy = HRAGEStrategy(
        pool, model=GP.kernel(), noise_std=0.3, batch_size=30, max_observations=300
    )
    f, rng, state = torch.tensor([1.0, 1.0, -1.0]), np.random.default_rng(0), None
    state = strategy.init()
    while not state.is_done:
        rows = strategy.ask(state).order
        noise = 0.3 * torch.from_numpy(rng.standard_normal(len(rows)))
        state = strategy.tell(state, Observations(rows, f[rows] + noise))
    assert bool(state.classification.below[2])
    assert state.classification.undecided.tolist() == [True, True, False]


def test_equal_rows_share_their_side() -> None:
    pool = Pool(torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 0.0]]).double())
    strategy = HRAGEStrategy(pool, model=GP.kernel(), noise_std=0.3, batch_size=30)
    f, state = torch.tensor([1.0, -1.0, 1.0]), strategy.init()
    while not state.is_done:
        rows = strategy.ask(state).order
        state = strategy.tell(state, Observations(rows, f[rows]))
    assert state.classification.above.tolist() == [True, False, True]
