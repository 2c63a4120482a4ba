r"""The linear strategies with anytime widths."""

from __future__ import annotations

import math
import pickle
import warnings

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_lse import Observations, Pool
from botorch_lse.confidence import EmptyRegionWarning, Information, StitchedWidth
from botorch_lse.pareto import pareto_mask
from botorch_lse.strategies import (
    GEGELinearStrategy,
    HRAGELinearStrategy,
    LinearStrategy,
    MELKLinearStrategy,
    MILKLinearStrategy,
    NoiseWarning,
    State,
)
from botorch_lse.strategies.linear.algorithm import Questions, next_weights, rounded
from tests.covering import covering, more_in_full
from tests.strategies.runs import assert_same

NOISE, DELTA = 0.3, 0.1


def arms(seed: int = 0, N: int = 15, h: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(N, h, generator=generator, dtype=torch.float64)
    return X / X.norm(dim=1, keepdim=True)


def coefficients(m: int = 1, h: int = 3, seed: int = 50) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(h, m, generator=generator, dtype=torch.float64)


MEANS = arms() @ coefficients(2)
LEVEL = 0.27


def melk(X: Tensor | None = None, **options) -> MELKLinearStrategy:
    settings = {"threshold": LEVEL, "noise_std": NOISE, "delta": DELTA, **options}
    return MELKLinearStrategy(Pool(arms() if X is None else X), **settings)


def milk(X: Tensor | None = None, **options) -> MILKLinearStrategy:
    settings = {"omega": 0.63, "noise_std": NOISE, "delta": DELTA, **options}
    return MILKLinearStrategy(Pool(arms() if X is None else X), **settings)


def best(X: Tensor | None = None, **options) -> HRAGELinearStrategy:
    settings = {"noise_std": NOISE, "delta": DELTA, **options}
    return HRAGELinearStrategy(Pool(arms() if X is None else X), **settings)


def gege(X: Tensor | None = None, **options) -> GEGELinearStrategy:
    chosen = {"maximize": (True, True), "noise_std": NOISE, "delta": DELTA, **options}
    return GEGELinearStrategy(Pool(arms() if X is None else X), **chosen)


MAKERS = [melk, milk, best, gege]
every = pytest.mark.parametrize("make", MAKERS)
one_and_several_outputs = pytest.mark.parametrize(
    "make",
    [melk, gege, *(pytest.param(m, marks=pytest.mark.slow) for m in (milk, best))],
)


def truth_of(strategy: LinearStrategy) -> Tensor:
    r"""The right ``above``."""
    f = MEANS[:, 0]
    if isinstance(strategy, GEGELinearStrategy):
        return pareto_mask(MEANS)
    if isinstance(strategy, MILKLinearStrategy):
        return f > strategy.omega * f.max()
    if isinstance(strategy, HRAGELinearStrategy) and strategy.threshold is None:
        return f == f.max()
    return f > LEVEL


def values(strategy: LinearStrategy, rows: Tensor, seed: int, n: int) -> Tensor:
    r"""Single measurements: a function of the seed and of how many came before."""
    generator = torch.Generator().manual_seed(10_000 * seed + n)
    noise = torch.randn(len(rows), 2, generator=generator, dtype=torch.float64)
    y = MEANS[rows] + NOISE * noise
    return y if strategy.m == 2 else y[:, 0]


def step(strategy: LinearStrategy, state: State, seed: int = 0) -> State:
    batch = strategy.ask(state)
    y = values(strategy, batch.order, seed, state.n_used)
    return strategy.tell(state, batch.observe(y))


def run(strategy: LinearStrategy, rounds: int = 10_000, seed: int = 0) -> State:
    state = strategy.init(seed)
    while not state.is_done and state.round < rounds:
        state = step(strategy, state, seed)
    return state


def means_of(seed: int, m: int = 1):
    generator = torch.Generator().manual_seed(seed)

    def measure(rows: Tensor, counts: Tensor) -> Tensor:
        noise = torch.randn(len(rows), 2, generator=generator, dtype=torch.float64)
        y = MEANS[rows] + NOISE * noise / counts.sqrt().unsqueeze(-1)
        return y if m == 2 else y[:, 0]

    return measure


# --- right answers --------------------------------------------------------------------


@pytest.mark.some(1, slow=4)
@covering("make, batch_size, design", MAKERS, [None, 5, 40], ["uniform", "gaps"])
def test_runs_end_with_the_truth(make, batch_size: int | None, design: str) -> None:
    strategy = make(batch_size=batch_size, design=design)
    state = run(strategy)
    assert state.stop_reason == "decided"
    assert torch.equal(state.classification.above, truth_of(strategy))


@pytest.mark.some(1)
@every
@more_in_full("n_runs", 1, 12)
def test_few_of_many_simulated_runs_are_wrong(make, n_runs: int) -> None:
    strategy = make()
    runs = [
        strategy.simulate(means_of(seed, strategy.m), seed) for seed in range(n_runs)
    ]
    right = truth_of(strategy)
    wrong = sum(not torch.equal(r.classification.above, right) for r in runs)
    assert wrong <= n_runs * DELTA
    assert {r.stop_reason for r in runs} == {"decided"}


def test_intervals_hold_the_truth_and_only_shrink() -> None:
    strategy, state = melk(), melk().init()
    last = state.classification
    while not state.is_done:
        state = step(strategy, state)
        now = state.classification
        assert bool((now.lower >= last.lower).all())
        assert bool((now.upper <= last.upper).all())
        last = now
    assert bool(((last.lower <= MEANS[:, 0]) & (MEANS[:, 0] <= last.upper)).all())


def test_intervals_are_those_of_least_squares_and_the_stitched_width() -> None:
    strategy = melk(batch_size=12)
    state = run(strategy, rounds=1)
    X, data = arms(), state.history
    z = X[data.indices] / NOISE
    V = z.mT @ z
    theta = torch.linalg.lstsq(z, (data.y / NOISE).unsqueeze(-1)).solution
    to_span = strategy.algorithm._to_span
    W = (
        torch.linalg.pinv(to_span).mT
        @ strategy.algorithm.W
        @ torch.linalg.pinv(to_span)
    )
    half = StitchedWidth(W, DELTA).squared(Information.of(V, W), X).sqrt()
    mean = (X @ theta).squeeze(-1)
    answer = state.classification
    torch.testing.assert_close(answer.mean, mean)
    torch.testing.assert_close(answer.lower, mean - half)
    torch.testing.assert_close(answer.upper, mean + half)
    sigma = (X @ torch.linalg.inv(V) * X).sum(dim=-1).sqrt()
    torch.testing.assert_close(answer.sigma, sigma)


def test_unequal_noise_weights_the_measurements() -> None:
    noise_var = torch.linspace(0.01, 1.0, 15, dtype=torch.float64)
    pool = Pool(arms(), noise_var=noise_var)
    strategy = MELKLinearStrategy(pool, LEVEL, batch_size=40)
    batch = strategy.ask(strategy.init())
    y = MEANS[batch.order, 0] + 0.1
    state = strategy.tell(strategy.init(), batch.observe(y))
    root = noise_var[batch.order].rsqrt().unsqueeze(-1)
    theta = torch.linalg.lstsq(root * arms()[batch.order], root * y.unsqueeze(-1))
    torch.testing.assert_close(
        state.classification.mean, (arms() @ theta.solution).squeeze(-1)
    )


def test_features_of_deficient_rank_do_as_well() -> None:
    wide = torch.cat((arms(), arms() @ coefficients(4)), dim=1)
    narrow, other = melk(max_observations=200), melk(wide, max_observations=200)
    a = narrow.simulate(means_of(0), 0)
    b = other.simulate(means_of(0), 0)
    assert other.algorithm.Phi.shape[1] == 3
    assert a.n_used == b.n_used
    torch.testing.assert_close(a.classification.mean, b.classification.mean)


def test_values_shifted_with_the_level_are_decided_alike() -> None:
    X = torch.cat((arms(), torch.ones(15, 1).double()), dim=1)
    runs = []
    for shift in (0.0, 7.0):
        measure = means_of(1)
        strategy = melk(X, threshold=LEVEL + shift, max_observations=200)
        runs.append(strategy.simulate(lambda r, c, s=shift, m=measure: m(r, c) + s, 1))
    assert runs[0].n_used == runs[1].n_used
    assert torch.equal(runs[0].classification.above, runs[1].classification.above)


@pytest.mark.slow
def test_items_may_differ_from_what_is_measured() -> None:
    items = arms(seed=7, N=6)
    level = HRAGELinearStrategy(
        Pool(arms()), LEVEL, targets=Pool(items), noise_std=NOISE
    )
    f = (items @ coefficients(2))[:, 0]
    found = level.simulate(means_of(0), 0).classification
    assert torch.equal(found.above, f > LEVEL)
    search = HRAGELinearStrategy(Pool(arms()), targets=Pool(items), noise_std=NOISE)
    found = search.simulate(means_of(0), 0).classification
    assert found.above.nonzero().view(-1).tolist() == [int(f.argmax())]
    assert float(found.probability_above.max()) > 0.99


def test_equal_best_items_are_all_best() -> None:
    X = torch.cat((arms(), arms()[int(MEANS[:, 0].argmax())].unsqueeze(0)))
    f = (X @ coefficients(2))[:, :1]
    strategy = best(X)
    generator = torch.Generator().manual_seed(0)

    def measure(rows: Tensor, counts: Tensor) -> Tensor:
        noise = torch.randn(len(rows), generator=generator, dtype=torch.float64)
        return f[rows, 0] + NOISE * noise / counts.sqrt()

    above = strategy.simulate(measure, 0).classification.above
    assert above.nonzero().view(-1).tolist() == [int(MEANS[:, 0].argmax()), 15]


def test_ties_within_epsilon_are_accepted() -> None:
    X = torch.eye(3, dtype=torch.float64)
    f = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)

    def measure(rows: Tensor, counts: Tensor) -> Tensor:
        return f[rows]

    one = best(X, epsilon=0.1).simulate(measure, 0)
    assert int(one.classification.above.sum()) == 1
    assert not bool(one.classification.above[2])
    both = f.unsqueeze(-1).repeat(1, 2)
    front = gege(X, epsilon=0.1).simulate(lambda rows, counts: both[rows], 0)
    assert front.classification.above.tolist() == [True, True, False]
    assert front.stop_reason == "decided"


def test_negative_maximum_leaves_nothing_above() -> None:
    X = torch.eye(3, dtype=torch.float64)
    f = torch.tensor([-1.0, -1.5, -3.0], dtype=torch.float64)
    found = milk(X).simulate(lambda rows, counts: f[rows], 0)
    assert found.classification.below.all()


def test_pareto_directions_follow_maximize() -> None:
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    found = gege(maximize=(True, False)).simulate(
        lambda rows, counts: signs * means_of(2, 2)(rows, counts), 2
    )
    assert torch.equal(found.classification.above, pareto_mask(MEANS))


def test_outputs_have_intervals_of_their_own() -> None:
    strategy = gege()
    state = run(strategy, rounds=6)
    found = strategy.estimate(state)
    assert bool(((found.lower <= MEANS) & (found.upper >= MEANS)).all())


# --- plans ----------------------------------------------------------------------------


def test_first_batch_is_a_g_design_on_the_span() -> None:
    X = torch.eye(4, dtype=torch.float64)
    strategy = melk(X, batch_size=20)
    assert strategy.ask(strategy.init()).counts.tolist() == [5, 5, 5, 5]


@every
def test_batches_of_one_span_the_features_soon(make) -> None:
    strategy = make(batch_size=1)
    state = run(strategy, rounds=6)
    assert state.belief.information.is_complete


def test_plan_minimises_the_worst_variance_after_the_batch() -> None:
    rows, known = arms(seed=3, N=5, h=2), torch.diag(torch.tensor([4.0, 1.0]).double())
    targets = arms(seed=4, N=3, h=2)
    W = 1e-9 * torch.eye(2, dtype=torch.float64)
    found = next_weights(rows, known, W, Questions(targets), 10, False)

    def worst(weights: Tensor) -> float:
        V = known + 10 * (weights.unsqueeze(-1) * rows).mT @ rows
        return float((targets @ torch.linalg.inv(V) * targets).sum(dim=-1).max())

    generator = torch.Generator().manual_seed(0)
    others = torch.rand(3000, 5, generator=generator, dtype=torch.float64) ** 4
    others = others / others.sum(dim=1, keepdim=True)
    assert worst(found) <= min(worst(w) for w in others) * 1.02


def test_smaller_gaps_get_more_measurements() -> None:
    X = torch.eye(2, dtype=torch.float64)
    near = torch.tensor([0.32, 0.6], dtype=torch.float64)
    for design, more in (("gaps", True), ("uniform", False)):
        strategy = melk(X, batch_size=20, design=design, noise_std=0.3)
        state = strategy.init()
        rows = torch.tensor([0, 1])
        told = Observations(rows, near, counts=torch.tensor([10, 10]))
        state = strategy.tell(state, told)
        assert bool(state.classification.undecided.all())
        counts = torch.bincount(strategy.ask(state).order, minlength=2).tolist()
        assert (counts[0] > counts[1]) is more


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=6),
    st.integers(1, 40),
    st.integers(0, 9),
)
def test_counts_sum_to_the_batch_or_to_what_is_left(
    weights: list[float], size: int, most: int
) -> None:
    w = torch.tensor(weights, dtype=torch.float64)
    w = w / w.sum() if float(w.sum()) > 0 else torch.full_like(w, 1 / len(w))
    left = torch.arange(len(w)) % 3 + most
    counts = rounded(w, size, left)
    assert bool((counts >= 0).all())
    assert bool((counts <= left).all())
    assert int(counts.sum()) == min(size, int(left.sum()))


def test_batches_grow_by_a_tenth() -> None:
    strategy = melk(noise_std=3.0)
    state, sizes = strategy.init(), []
    while state.n_used < 300:
        batch = strategy.ask(state)
        sizes.append((state.n_used, len(batch)))
        y = MEANS[batch.order, 0]
        state = strategy.tell(state, batch.observe(y))
    assert all(size == max(6, math.ceil(n / 10)) for n, size in sizes)


@every
def test_destructive_samples_are_measured_once(make) -> None:
    strategy = make(batch_size=4, max_repeats=1, noise_std=3.0)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        y = MEANS[batch.order] if strategy.m == 2 else MEANS[batch.order, 0]
        state = strategy.tell(state, batch.observe(y))
    assert state.stop_reason in ("rows exhausted", "budget")
    assert state.n_used == 15
    ran = strategy.simulate(means_of(0, strategy.m), 0)
    assert ran.n_used == 15


# --- state ----------------------------------------------------------------------------


@pytest.mark.some(2)
@covering("make, batch_size", MAKERS, [None, 3])
def test_replay_equals_telling_one_by_one(make, batch_size: int | None) -> None:
    strategy = make(batch_size=batch_size, noise_std=1.0)
    state = run(strategy, rounds=8, seed=3)
    assert_same(strategy, strategy.replay(state.observations, seed=3), state)
    again = pickle.loads(pickle.dumps((strategy, state)))
    assert_same(again[0], again[1], state)


@every
def test_round_told_in_pieces_is_the_round(make) -> None:
    strategy = make(batch_size=9, noise_std=1.0)
    start = run(strategy, rounds=2)
    batch = strategy.ask(start)
    y = values(strategy, batch.order, 0, start.n_used)
    whole = strategy.tell(start, batch.observe(y))
    pieces = start
    for part in (torch.tensor([7, 1, 4]), torch.tensor([0, 2, 3, 5, 6, 8])):
        told = Observations(batch.order[part], y[part])
        pieces = strategy.tell(pieces, told)
    assert_same(strategy, pieces, whole)


@every
def test_means_and_single_values_lead_to_the_same_estimates(make) -> None:
    strategy = make(batch_size=30)
    start = strategy.init()
    batch = strategy.ask(start)
    y = values(strategy, batch.order, 0, 0).view(len(batch), -1)
    single = strategy.tell(start, batch.observe(y if strategy.m == 2 else y[:, 0]))
    where = (batch.order.unsqueeze(0) == batch.indices.unsqueeze(1)).double()
    mean = where @ y / batch.counts.unsqueeze(-1)
    told = Observations(
        batch.indices, mean if strategy.m == 2 else mean[:, 0], counts=batch.counts
    )
    pooled = strategy.tell(start, told)
    for name in ("mean", "sigma", "lower", "upper"):
        torch.testing.assert_close(
            getattr(single.classification, name), getattr(pooled.classification, name)
        )


@pytest.mark.slow
@one_and_several_outputs
def test_asking_and_simulating_are_the_same_run(make) -> None:
    strategy = make()
    measure, state = means_of(4, strategy.m), strategy.init(4)
    while not state.is_done:
        batch = strategy.ask(state)
        y = measure(batch.indices, batch.counts)
        told = Observations(batch.indices, y, counts=batch.counts)
        state = strategy.tell(state, told)
    ran = strategy.simulate(means_of(4, strategy.m), 4)
    assert (ran.n_used, ran.rounds) == (state.n_used, state.round)
    assert torch.equal(ran.classification.mean, state.classification.mean)


def test_pending_rows_count_as_known() -> None:
    X = torch.eye(2, dtype=torch.float64)
    strategy = melk(X, batch_size=4)
    more = strategy.ask(strategy.init(), pending=[0, 0, 0, 0])
    assert more.counts.tolist() == [4]
    assert more.indices.tolist() == [1]


def test_budget_is_kept() -> None:
    strategy = melk(noise_std=30.0, max_observations=50)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(MEANS[batch.order, 0]))
    assert (state.n_used, state.stop_reason) == (50, "budget")
    ran = strategy.simulate(lambda rows, counts: MEANS[rows, 0], 0)
    assert (ran.n_used, ran.stop_reason) == (50, "budget")


# --- estimated noise ------------------------------------------------------------------


def noisy_problem() -> tuple[Tensor, Tensor, Tensor]:
    X = arms(N=20)
    Sigma = torch.diag(torch.tensor([1.0, 0.1, 0.1], dtype=torch.float64))
    return X, (X @ coefficients(1)).view(-1), (X @ Sigma * X).sum(dim=-1)


def estimated(**options) -> HRAGELinearStrategy:
    X, _, s2 = noisy_problem()
    bounds = (float(s2.min()), float(s2.max()))
    options = {"variance_bounds": bounds, "burn_in": 4000, **options}
    return HRAGELinearStrategy(Pool(X), **options)


def with_scatter(seed: int, strategy: HRAGELinearStrategy, state: State) -> State:
    _, f, s2 = noisy_problem()
    batch = strategy.ask(state)
    generator = torch.Generator().manual_seed(100 * seed + state.round)
    noise = torch.randn(len(batch), generator=generator, dtype=torch.float64)
    y = f[batch.order] + s2[batch.order].sqrt() * noise
    return strategy.tell(state, batch.observe(y))


@pytest.mark.slow
def test_inflated_variances_are_upper_bounds_and_freeze() -> None:
    _, _, s2 = noisy_problem()
    short = 0
    for seed in range(20):
        strategy = estimated()
        state = strategy.init()
        while state.belief.burn_in.lasts:
            assert torch.equal(state.belief.noise_var, s2.max().expand(20))
            state = with_scatter(seed, strategy, state)
        assert state.n_used == 4000
        found = state.belief.noise_var
        short += bool((found < s2).any())
        assert bool((found <= s2.max()).all())
        assert bool((found < 0.8 * s2.max()).any())
        after = with_scatter(seed, strategy, state)
        assert torch.equal(after.belief.noise_var, found)
    assert short <= 20 * 0.05 / 2 + 1


def test_burn_in_data_enter_with_the_largest_variance() -> None:
    strategy = estimated(burn_in=400)
    state = strategy.init()
    while state.belief.burn_in.lasts:
        state = with_scatter(0, strategy, state)
    Phi, counts = strategy.algorithm.Phi, state.belief.sums.counts
    V = (counts.unsqueeze(-1) * Phi).mT @ Phi / strategy.variance_bounds[1]
    torch.testing.assert_close(state.belief.sums.V, V)
    assert state.belief.width.delta == pytest.approx(0.025)
    again = strategy.replay(state.observations)
    assert_same(strategy, again, state)


def test_burn_in_in_small_batches_is_the_same_burn_in() -> None:
    large, small = estimated(burn_in=400), estimated(burn_in=400, batch_size=90)
    states = []
    for strategy in (large, small):
        state = strategy.init()
        while state.belief.burn_in.lasts and not state.is_done:
            state = with_scatter(0, strategy, state)
        states.append(state)
    counts = [s.belief.burn_in.first.counts for s in states]
    assert bool((counts[1] >= counts[0]).all())
    assert states[1].n_used >= 400


# --- what is said ---------------------------------------------------------------------


def test_guarantees_are_sentences_with_their_assumptions() -> None:
    X = arms(h=4)
    said = melk(X, noise_std=20.0, delta=0.05).init().classification.guarantee
    assert said == (
        "With probability 0.95, all decided rows are right; assumes noise sub-Gaussian "
        "with sd <= 20, independent within a batch, f linear in the 4 features."
    )
    assert "up to epsilon = 0.2" in melk(epsilon=0.2).guarantee
    assert "best item" in best().guarantee
    assert "more than 0.1 in every output" in gege(epsilon=0.1).guarantee
    assert "400 measurements" in estimated(burn_in=400).guarantee
    given = MELKLinearStrategy(Pool(arms(), noise_var=torch.ones(15)), 0.0)
    assert "with the given variances" in given.guarantee


@pytest.mark.slow
@one_and_several_outputs
def test_forecasts_become_right(make) -> None:
    strategy = make(noise_std=NOISE)
    assert strategy.init().forecast().observations is None
    total = strategy.simulate(means_of(0, strategy.m), 0).n_used
    state, measure = strategy.init(0), means_of(0, strategy.m)
    while state.n_used < total / 2:
        batch = strategy.ask(state)
        y = measure(batch.indices, batch.counts)
        told = Observations(batch.indices, y, counts=batch.counts)
        state = strategy.tell(state, told)
    foreseen = state.forecast()
    assert foreseen.observations is not None
    assert total / 3 <= state.n_used + foreseen.observations <= 3 * total
    assert "undecided items" in str(foreseen)


def test_heavy_tails_are_noticed() -> None:
    strategy = melk(batch_size=50)
    state = run(strategy, rounds=1)
    batch = strategy.ask(state)
    y = values(strategy, batch.order, 0, 50)
    y[3] += 12 * NOISE
    with pytest.warns(NoiseWarning, match=f"row {int(batch.order[3])} is 1.* scales"):
        strategy.tell(state, batch.observe(y))


def test_noise_larger_than_stated_is_noticed() -> None:
    strategy = melk(batch_size=200, noise_std=NOISE / 2)
    state = strategy.init()
    batch = strategy.ask(state)
    y = values(strategy, batch.order, 0, 0)
    with pytest.warns(NoiseWarning, match="mean squared residual is [34]"):
        strategy.tell(state, batch.observe(y))


def test_noise_is_warned_of_once_and_every_guarantee_says_so() -> None:
    strategy = melk(batch_size=50, noise_std=NOISE / 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = run(strategy, rounds=3)
        again = strategy.replay(state.observations)
    assert [w.category for w in caught] == [NoiseWarning]
    told = state.classification.guarantee
    assert told.startswith(strategy.guarantee)
    assert "The data contradict the stated noise" in told
    assert again.classification.guarantee == told


def test_a_guarantee_holds_as_long_as_the_data_do_not_contradict_it() -> None:
    strategy = melk(batch_size=50)
    assert run(strategy, rounds=2).classification.guarantee == strategy.guarantee


def test_a_pareto_set_says_that_its_noise_is_larger_than_stated() -> None:
    X = torch.eye(3, dtype=torch.float64)
    strategy = GEGELinearStrategy(Pool(X), maximize=(True, True), noise_std=0.1)
    rows = torch.arange(3).repeat(40)
    y = torch.randn(120, 2, generator=torch.Generator().manual_seed(0)).double()
    with pytest.warns(NoiseWarning):
        state = strategy.tell(strategy.init(), Observations(rows, y))
    assert "contradict the stated noise" in state.classification.guarantee


def test_a_budget_below_the_burn_in_is_refused() -> None:
    n = estimated(burn_in=None).n_burn_in
    message = f"`max_observations` of at least {n}, what the burn-in takes .*{n - 1}"
    with pytest.raises(ValueError, match=message):
        estimated(burn_in=None, max_observations=n - 1)
    assert estimated(burn_in=None, max_observations=n).max_observations == n
    with pytest.raises(ValueError, match="at least 400, what the burn-in takes"):
        estimated(max_observations=399, burn_in=400)


def test_repeats_below_those_of_the_burn_in_are_refused() -> None:
    options = {"burn_in": 60, "batch_size": 7, "epsilon": 0.1}
    n = estimated(**options).burn_in_plan.repeats
    message = f"`max_repeats` of at least {n}, as often .* but got {n - 1}. Give a larg"
    with pytest.raises(ValueError, match=message):
        estimated(max_repeats=n - 1, **options)
    known = {"noise_std": 1.0, "variance_bounds": None, "burn_in": None}
    assert estimated(max_repeats=1, **known)
    strategy = estimated(max_repeats=n, **options)
    state = strategy.init()
    while state.belief.burn_in.lasts:
        assert not state.is_done
        state = with_scatter(0, strategy, state)


def test_a_burn_in_whose_rows_are_used_up_ends_the_run() -> None:
    n = estimated(burn_in=60).burn_in_plan.repeats
    strategy = estimated(burn_in=60, batch_size=7, max_repeats=n)
    state = strategy.init()
    while not state.is_done:  # what is abandoned is used up
        rows = strategy.ask(state).order
        assert strategy.room(state) >= len(rows)
        state = strategy.tell(state, None, abandoned=rows)
    assert state.stop_reason == "rows exhausted"
    assert state.classification.undecided.all()


@pytest.mark.some(0, slow=2)
@more_in_full("n_runs", 2, 15)
def test_stated_noise_raises_no_alarm(n_runs: int) -> None:
    # 15 runs, two tests with 0.001 each: an alarm has probability 0.03 at most.
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoiseWarning)
        for seed in range(n_runs):
            melk().simulate(means_of(seed), seed)


def test_contradicting_intervals_warn_with_the_row() -> None:
    X = torch.eye(2, dtype=torch.float64)
    strategy = melk(X, threshold=2.5)
    rows, counts = torch.tensor([0, 1]), torch.tensor([1000, 1000])
    told = Observations(rows, torch.tensor([0.0, 0.0]).double(), counts=counts)
    state = strategy.tell(strategy.init(), told)
    later = Observations(rows, torch.tensor([2.0, 0.0]).double(), counts=9 * counts)
    with (
        pytest.warns(NoiseWarning),
        pytest.warns(EmptyRegionWarning, match="first of row 0 .*not linear"),
    ):
        strategy.tell(state, later)


# --- bad input ------------------------------------------------------------------------


@every
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.0}, "`delta`"),
        ({"epsilon": -1.0}, "`epsilon`"),
        ({"design": "random"}, "`design` to be one of"),
        ({"noise_std": 0.0}, "`noise_std`"),
        ({"noise_std": None}, "noise once"),
        ({"batch_size": 0}, "`batch_size`"),
    ],
)
def test_bad_arguments_are_named(make, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: melk(threshold=math.nan), "`threshold`"),
        (lambda: milk(omega=1.0), "`omega`"),
        (lambda: gege(maximize=True), "`maximize`"),
        (lambda: gege(maximize=(1, 2)), "`maximize`"),
        (lambda: best(burn_in=100), "no `burn_in`"),
        (lambda: best(variance_bounds=(0.1, 1.0)), "2 of them"),
        (lambda: best(targets=torch.eye(3)), "`targets` to be a Pool, but got Tensor"),
        (lambda: estimated(burn_in=3), "`budget` of at least"),
        (lambda: melk(torch.zeros(3, 2)), "other than zero"),
        (
            lambda: best(
                torch.eye(3).double()[:2], targets=Pool(torch.eye(3).double())
            ),
            "item 2 is not: no measurement",
        ),
    ],
)
def test_each_bad_argument_is_named(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BotorchTensorDimensionError, match="`targets` with 3 features"):
        best(targets=Pool(torch.eye(2)))
    two = Observations([0], torch.zeros(1, 2).double())
    with pytest.raises(BotorchTensorDimensionError, match="one output"):
        melk().tell(melk().init(), two)
    with pytest.raises(BotorchTensorDimensionError, match="per entry of `maximize`"):
        gege().tell(gege().init(), Observations([0], [1.0]))


# --- the martingale: rows fixed before any value --------------------------------------

SAMPLES, REFERENCES = (
    torch.eye(16).double()[0::2] + torch.eye(16).double()[1::2],
    (torch.eye(16).double()[1::2]),
)


def paired(**options) -> HRAGELinearStrategy:
    r"""Eight samples with a reference each; wanted are the samples less these."""
    pool = Pool(torch.cat((SAMPLES, REFERENCES)))
    wanted = Pool(torch.eye(16).double()[0::2])
    strategy = HRAGELinearStrategy(
        pool, 0.0, targets=wanted, noise_std=1.0, batch_size=32, **options
    )
    assert strategy.algorithm.widths.uses_martingales
    return strategy


def test_only_rounds_as_planned_enter_the_martingale() -> None:
    strategy = paired()
    state = strategy.init()
    before = state.belief.martingale.precision
    batch = strategy.ask(state)
    y = torch.zeros(len(batch), dtype=torch.float64)
    whole = strategy.tell(state, batch.observe(y))
    assert bool((whole.belief.martingale.precision > before).all())
    told = Observations(batch.order[1:], y[1:])
    for after in (
        strategy.tell(state, told, abandoned=batch.order[:1].tolist()),
        strategy.tell(state, Observations([0, 8] * 16, y)),
    ):
        assert after.round == 1
        assert torch.equal(after.belief.martingale.precision, before)
        assert after.belief.sums.n == len(after.observations)
    more = Observations(torch.cat((batch.order, batch.order[:1])), torch.zeros(33))
    after = strategy.tell(state, more)  # the batch, and the first of the next one
    assert after.round == 1
    assert after.told.indices.tolist() == batch.order[:1].tolist()
    assert torch.equal(
        after.belief.martingale.precision, whole.belief.martingale.precision
    )
    assert after.belief.sums.n == 32
    pieces = strategy.tell(state, Observations(batch.order[:5], y[:5]))
    pieces = strategy.tell(pieces, Observations(batch.order[5:], y[5:]))
    assert torch.equal(
        pieces.belief.martingale.precision, whole.belief.martingale.precision
    )
    replayed = strategy.replay(whole.observations)
    assert_same(strategy, replayed, whole)


@more_in_full("n_runs, n_rounds", (1, 30), (4, 100))
def test_references_skipped_for_low_samples_do_not_mislead(
    n_runs: int, n_rounds: int
) -> None:
    for seed in range(n_runs):
        generator = torch.Generator().manual_seed(seed)
        strategy = paired(delta=0.05)
        theta = torch.tensor([-0.2, 0.3] * 8).double()
        f, state = strategy.pool.X @ theta, strategy.init(seed)
        while not state.is_done and state.round < n_rounds:
            rows = strategy.ask(state).order
            noise = torch.randn(len(rows), generator=generator, dtype=torch.float64)
            y, keep = f[rows] + noise, torch.ones(len(rows), dtype=torch.bool)
            for j in range(8):
                if bool((rows == j).any()) and float(y[rows == j].mean()) < 0.1:
                    keep &= rows != 8 + j
            told = Observations(rows[keep], y[keep])
            lost = rows[~keep].tolist()
            state = strategy.tell(state, told, abandoned=lost or None)
        assert not bool(state.classification.above.any())


def test_an_answer_says_that_something_was_abandoned() -> None:
    strategy = melk(batch_size=4)
    state = strategy.init()
    row = int(strategy.ask(state).order[0])
    assert "abandoned" not in state.classification.guarantee
    after = strategy.tell(state, None, abandoned=[row])
    batch = strategy.ask(after)
    after = strategy.tell(after, batch.observe(torch.zeros(3)))
    assert after.classification.guarantee.endswith("so whatever their values.")
