from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from hypothesis import given, settings
from hypothesis import strategies as st

from botorch_lse import Observations, Pool
from botorch_lse.goals.extremes import eliminate_pairs
from botorch_lse.papers import MELKPACStrategy, MILKPACStrategy, PACStrategy
from botorch_lse.papers.fixed_confidence import eliminate_rows
from botorch_lse.papers.mason2022 import catoni_alpha, catoni_mean
from botorch_lse.strategies import MILKLinearStrategy, State
from tests.covering import more_in_full
from tests.strategies.runs import assert_same, played

DELTA, BOUND, NOISE = 0.1, 1.0, 0.5
X = torch.tensor(
    [[1.0, 0.0], [0.0, 1.0], [0.8, 0.5], [-0.6, 0.3], [0.2, -0.9]],
).double()
F = X @ torch.tensor([0.9, -0.1]).double()
KNOWN = {"bound": BOUND, "noise_std": NOISE, "delta": DELTA}


def melk(**options) -> MELKPACStrategy:
    pool = options.pop("pool", None) or Pool(X)
    options = {**KNOWN, "epsilon": 0.25, **options}
    return MELKPACStrategy(pool, options.pop("threshold", 0.3), **options)


def milk(**options) -> MILKPACStrategy:
    pool = options.pop("pool", None) or Pool(X)
    return MILKPACStrategy(pool, **{**KNOWN, "omega": 0.5, "epsilon": 0.25, **options})


every = pytest.mark.parametrize("make", [melk, milk])


def gaussian(n: int, rng: np.random.Generator) -> np.ndarray:
    return NOISE * rng.standard_normal(n)


def heavy(n: int, rng: np.random.Generator) -> np.ndarray:
    r"""Student t with 2.1 degrees, whose variance is 21, at the stated variance."""
    return NOISE / math.sqrt(21) * rng.standard_t(2.1, n)


def play(strategy: PACStrategy, seed: int = 0, noise=gaussian, f=F) -> list[State]:
    rng = np.random.default_rng(seed)

    def values(rows: torch.Tensor, _: State) -> torch.Tensor:
        return f[rows] + torch.tensor(noise(len(rows), rng))

    return played(strategy, values, seed=seed)


# --- numbers of draws -----------------------------------------------------------------


def test_draws_of_melk_equal_the_hand_computed() -> None:
    # Unit vectors: the design is uniform, g = 2 without ridge and 1 / (1/2 + 1) with
    # gamma = 1. B^2 + sigma^2 = 2.
    pool = Pool(torch.eye(2).double())
    for gamma, g in ((0.0, 2.0), (1.0, 2 / 3)):
        strategy = melk(pool=pool, noise_std=1.0, gamma=gamma)
        exact = 16 * 4 * g * 2 * math.log(2 * 1 * 4 / 0.1)
        assert len(strategy.ask(strategy.init())) == math.ceil(exact)
    second = melk(pool=pool, noise_std=1.0).rounds.n_draws(2, 2.0)
    assert second == math.ceil(16 * 16 * 2 * 2 * math.log(2 * 4 * 4 / 0.1))


def test_draws_of_milk_equal_the_hand_computed() -> None:
    # Of the pairs (0,0), (0,1), (1,0), (1,1) the mixed ones are worst, 1 / l + .25 / l'
    # and its mirror image: l = l' = 1/2 and g = 2.5.
    strategy = milk(pool=Pool(torch.eye(2).double()), noise_std=1.0)
    exact = 16 * 4 * 2.5 * 2 * math.log(2 * 4 / 0.1)
    assert len(strategy.ask(strategy.init())) == pytest.approx(exact, rel=0.011)


def test_tiny_values_still_draw_enough_for_catoni() -> None:
    strategy = melk(bound=1e-3, noise_std=1e-3, threshold=0.0)
    n = len(strategy.ask(strategy.init()))
    assert n == math.ceil(4 * math.log(4 * 25 / DELTA))


# --- elimination ----------------------------------------------------------------------


def test_rows_are_eliminated_strictly_beyond_the_width() -> None:
    side = torch.tensor([0, 0, 0, 0, 1, 0], dtype=torch.int8)
    rows = torch.tensor([0, 1, 2, 3, 5])
    values = torch.tensor([1.6, 1.5, 0.5, 0.4, 1.0]).double()
    after = eliminate_rows(side, rows, values, threshold=1.0, width=0.5)
    assert after.tolist() == [1, 0, 0, -1, 1, 0]
    assert side.tolist() == [0, 0, 0, 0, 1, 0]


def pairs(*members: tuple[int, int], n: int = 3) -> torch.Tensor:
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i, j in members:
        mask[i, j] = True
    return mask


def test_pairs_of_three_points_by_hand() -> None:
    side = torch.zeros(3, dtype=torch.int8)
    everything = torch.ones(3, 3, dtype=torch.bool)
    # Row 2 is refuted by row 0 and leaves all its pairs; (0,0), (0,1), (1,1) are
    # certain. Row 0 has no pair left as first member, row 1 still has (1,0).
    left, side = eliminate_pairs(
        everything, side, pairs((0, 0), (0, 1), (1, 1)), pairs((2, 0))
    )
    assert torch.equal(left, pairs((1, 0)))
    assert side.tolist() == [1, 0, -1]
    # Row 0, though decided, is still needed by row 1.
    for certain, refuted, end in (
        (pairs((1, 0)), pairs(), [1, 1, -1]),
        (pairs(), pairs((1, 0)), [1, -1, -1]),
        # Pairs that left earlier say nothing any more.
        (pairs(), pairs((0, 1), (0, 0)), [1, 0, -1]),
    ):
        after, sides = eliminate_pairs(left, side, certain, refuted)
        assert sides.tolist() == end
        assert bool(after.any()) == (0 in end)


def test_refuted_beats_certain_and_frees_the_partners() -> None:
    # Row 1 is refuted; row 0's only open pair is with it, so row 0 is above at once.
    left, side = eliminate_pairs(
        pairs((0, 1), (1, 0), (1, 2), (2, 2)),
        torch.zeros(3, dtype=torch.int8),
        pairs((1, 0)),
        pairs((1, 2)),
    )
    assert side.tolist() == [1, -1, 0]
    assert torch.equal(left, pairs((2, 2)))


# --- against the algorithm written out ------------------------------------------------


def estimate(strategy, design, t: int, told: Observations, v: np.ndarray) -> float:
    r"""``W^(v)`` by its definition."""
    lam = design.weights.numpy()
    A = (lam[:, None] * X.numpy()).T @ X.numpy()
    inverse = np.linalg.inv(A + strategy.gamma * np.eye(2))
    n, norm = len(told), float(v @ inverse @ v)
    delta = DELTA / (2 * t**2) / len(X) ** 2
    alpha = catoni_alpha(n, (BOUND**2 + NOISE**2) * norm, delta)
    scores = X.numpy()[told.indices] @ inverse @ v
    return catoni_mean(scores * told.y.numpy(), alpha)


@pytest.mark.parametrize("gamma", [0.0, 0.01])
def test_melk_equals_its_algorithm_written_out(gamma: float) -> None:
    strategy = melk(gamma=gamma)
    states = play(strategy)
    above, below = set(), set()
    for t, state in enumerate(states[:-1], 1):
        after, width = states[t], 2 * 2**-t
        told = after.history.select(after.history.round == t - 1)
        for i in range(len(X)):
            if i in above | below:
                continue
            value = estimate(strategy, state.belief.design, t, told, X[i].numpy())
            if value - 0.3 < -width:
                below.add(i)
            elif value - 0.3 > width:
                above.add(i)
        conservative, aggressive = strategy.returned_sets(after)
        assert set(conservative.nonzero().view(-1).tolist()) == above
        assert set((~aggressive).nonzero().view(-1).tolist()) == below
    assert states[-1].stop_reason == "decided"
    assert above == {0, 2}


def test_milk_equals_its_algorithm_written_out() -> None:
    strategy = milk()
    states = play(strategy)
    N, everyone = len(X), range(len(X))
    active = {(i, j) for i in everyone for j in everyone}
    above, below = set(), set()
    for t, state in enumerate(states[:-1], 1):
        after, width = states[t], 2 * 2**-t
        told = after.history.select(after.history.round == t - 1)
        following = set(active)
        for i, j in sorted(active):
            v = (X[i] - 0.5 * X[j]).numpy()
            value = estimate(strategy, state.belief.design, t, told, v)
            if value < -width:
                below.add(i)
                following -= {(i, x) for x in everyone} | {(x, i) for x in everyone}
            elif value > width:
                following.discard((i, j))
        active = following
        for i in set(everyone) - below:
            if not {(i, x) for x in everyone} & active:
                above.add(i)
        conservative, aggressive = strategy.returned_sets(after)
        assert set(conservative.nonzero().view(-1).tolist()) == above
        assert set(range(N)) - below == set(aggressive.nonzero().view(-1).tolist())
        open_ = {tuple(p) for p in after.belief.active.nonzero().tolist()}
        assert open_ == active
    # Twice the tolerance's round: ceil(log2(4 / 0.25)) = 4 rounds at most.
    assert len(states) - 1 <= 4


# --- what is promised -----------------------------------------------------------------


@pytest.mark.some(1)
@pytest.mark.parametrize("noise", [gaussian, heavy])
@every
@more_in_full("n_runs", 5, 15)
def test_sets_are_right_also_under_heavy_tails(make, noise, n_runs: int) -> None:
    # Each instance may fail with probability 0.1, and hardly ever does.
    wrong = 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        Z = torch.tensor(rng.standard_normal((6, 2)))
        f = Z @ torch.tensor(rng.standard_normal(2))
        f = f / f.abs().max()
        strategy = make(pool=Pool(Z), epsilon=0.5)
        end = play(strategy, seed, noise, f)[-1]
        level = 0.3 if make is melk else 0.5 * float(f.max())
        if make is milk and float(f.max()) < 0:
            continue
        conservative, aggressive = strategy.returned_sets(end)
        answer = end.classification
        assert end.stop_reason == "decided"
        assert torch.equal(answer.above, aggressive)
        wrong += bool((conservative & (f <= level)).any())
        wrong += bool((~conservative & (f > level + 0.5)).any())
        wrong += bool((~aggressive & (f > level)).any())
        wrong += bool((aggressive & (f < level - 0.5)).any())
        assert bool((answer.lower <= f).all() and (f <= answer.upper).all())
    assert wrong == 0


@every
def test_returned_set_is_chosen_at_the_tolerance(make) -> None:
    level = float(F[0]) - 1e-3 if make is melk else None
    options = {"threshold": level} if level else {"omega": 0.7}
    ends = {}
    for returned in ("aggressive", "conservative"):
        strategy = make(epsilon=1.0, returned=returned, **options)
        end = play(strategy)[-1]
        assert len(end.history.round.unique()) == 2  # ceil(log2(4 / 1))
        ends[returned] = end.classification.above
        assert torch.equal(
            ends[returned],
            strategy.returned_sets(end)[returned == "aggressive"],
        )
    assert bool((ends["aggressive"] & ~ends["conservative"]).any())
    assert not bool((ends["conservative"] & ~ends["aggressive"]).any())


@pytest.mark.some(1)
@every
def test_linear_program_decides_much_the_same(make) -> None:
    plain, projected = (
        play(make(estimate=name))[-1].classification
        for name in ("means", "linear program")
    )
    assert torch.equal(plain.above, projected.above)


def test_kernel_without_ridge_equals_its_features() -> None:
    grid = torch.linspace(0, 1, 4).double().unsqueeze(-1)
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.3
    K = kernel(grid).to_dense().detach()
    L = torch.linalg.cholesky(K)
    f = torch.tensor([0.8, 0.1, -0.5, 0.6]).double()
    for gamma in (0.0, 1e-3):
        a = play(melk(pool=Pool(grid), kernel=kernel, gamma=gamma), f=f)
        b = play(melk(pool=Pool(grid, features=L), gamma=gamma), f=f)
        assert len(a) == len(b)
        for s, t in zip(a, b, strict=True):
            sizes = len(s.history), len(t.history)
            assert sizes[0] == pytest.approx(sizes[1], rel=0.02)
            assert torch.equal(s.classification.above, t.classification.above)


def test_guarantee_says_what_is_assumed() -> None:
    text = melk(epsilon=0.1).guarantee
    assert (
        "With probability 0.9, once no row is undecided, `above` holds every row above"
        in text
    )
    assert "|f| at most 1" in text
    assert "deviation at most 0.5" in text
    assert "Theorem 3.3" in text
    kernel = RBFKernel().double()
    text = milk(kernel=kernel, gamma=0.1, returned="conservative").guarantee
    assert "`below` holds every row below" in text
    assert "bias of gamma = 0.1" in text
    assert "Theorem 4.3" in text


# --- rounds ---------------------------------------------------------------------------


def after_one(strategy: PACStrategy) -> State:
    return play(strategy)[1]


def answers(batch, seed: int = 5) -> Observations:
    rng = np.random.default_rng(seed)
    return batch.observe(F[batch.order] + torch.tensor(gaussian(len(batch), rng)))


@pytest.mark.some(0, slow=3)
@every
def test_replay_and_pickle_give_the_same_state(make) -> None:
    strategy = make()
    for state in play(strategy, 3):
        again = strategy.replay(state.observations, seed=3)
        assert_same(strategy, again, state)
        assert torch.equal(again.belief.active, state.belief.active)
        assert_same(*pickle.loads(pickle.dumps((strategy, state))), state)


@every
def test_round_told_in_pieces_is_the_round(make) -> None:
    strategy = make()
    state = after_one(strategy)
    batch = strategy.ask(state)
    told = answers(batch)
    whole = strategy.tell(state, told)
    order = torch.randperm(len(told), generator=torch.Generator().manual_seed(0))
    third = len(told) // 3
    part = strategy.tell(state, told.select(order[:third]))
    assert part.round == state.round
    assert len(strategy.ask(part)) == len(told) - third
    again = strategy.replay(part.observations)
    assert torch.equal(strategy.ask(again).order, strategy.ask(part).order)
    for start in (part, again):
        rest = strategy.tell(start, told.select(order[third:]))
        assert_same(strategy, rest, whole)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9), st.sampled_from([melk, milk]))
def test_abandoned_draws_are_asked_again(share: int, make) -> None:
    strategy = make()
    state = strategy.init()
    batch = strategy.ask(state)
    told, lost = answers(batch), len(batch) * share // 10
    some = torch.randperm(len(told), generator=torch.Generator().manual_seed(1))
    gone = batch.order[some[:lost]]
    part = strategy.tell(state, told.select(some[lost:]), abandoned=gone.tolist())
    assert (part.round, part.belief.t) == (1, 1)
    assert torch.equal(strategy.ask(part).order, gone.sort().values)
    whole = strategy.tell(part, told.select(some[:lost]))
    assert whole.belief.t == 2
    means = strategy.tell(state, told).classification.mean
    assert torch.allclose(whole.classification.mean, means, atol=1e-12)
    assert "abandoned" in whole.classification.guarantee


@every
@more_in_full("budget", 20_000, 200_000)
def test_a_row_that_fails_always_is_never_decided(make, budget: int) -> None:
    strategy = make(max_observations=budget)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        fails = batch.order == 0
        told = answers(batch).select(~fails)
        state = strategy.tell(state, told, abandoned=batch.order[fails].tolist())
    assert state.stop_reason == "budget"
    assert bool(state.classification.undecided.all())


@every
def test_surplus_results_are_not_chosen_by_value(make) -> None:
    rng = np.random.default_rng(0)
    strategy = make()
    state = strategy.init()
    batch = strategy.ask(state)
    twice = torch.cat((batch.order, batch.order))
    y = F[twice] + torch.tensor(gaussian(len(twice), rng))
    order = y.argsort()
    told = Observations(twice[order], y[order])
    after = strategy.tell(state, told)
    assert after.belief.t == 2
    half = after.classification.upper - after.classification.mean
    assert bool(((after.classification.mean - F).abs() < half / 4).all())
    # Also where part of the round is there already.
    part = strategy.tell(state, told.select(torch.tensor([0])))
    after = strategy.tell(part, told.select(torch.arange(1, len(twice))))
    assert after.belief.t == 2
    assert bool(((after.classification.mean - F).abs() < half / 4).all())


def test_milk_goes_on_where_a_design_spans_differences_only() -> None:
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, -1.5]]).double()
    f = rows @ torch.tensor([0.55, 1.0]).double()
    strategy = milk(pool=Pool(rows), bound=2.0, noise_std=0.1, epsilon=0.05)
    state = play(strategy, 0, lambda n, rng: 0.1 * rng.standard_normal(n), f)[-1]
    assert state.stop_reason == "decided"
    assert state.classification.above.tolist() == (f > 0.5 * f.max()).tolist()


@every
def test_rows_that_were_not_drawn_are_kept_and_not_used(make) -> None:
    strategy = make()
    state = strategy.init()
    for rows in ([0] * 5, [1] * 20_000):
        foreign = Observations(rows, torch.full((len(rows),), 50.0), round=None)
        moved = strategy.tell(state, foreign)
        assert len(moved.observations) == len(rows)
        assert moved.belief.t == 1
        assert torch.equal(moved.classification.mean, state.classification.mean)
    # Told together with a complete round they do not enter it.
    batch = strategy.ask(state)
    told = answers(batch)
    extra = Observations([0] * 50, [99.0] * 50)
    mixed = strategy.tell(
        state,
        Observations(
            torch.cat((told.indices, extra.indices)), torch.cat((told.y, extra.y))
        ),
    )
    assert mixed.belief.t == 2
    assert len(mixed.history) == len(told) + 50


@every
def test_no_further_round_is_planned_before_the_results(make) -> None:
    strategy = make()
    state = strategy.init()
    out = strategy.ask(state).order
    with pytest.raises(ValueError, match="the next round needs their results"):
        strategy.ask(state, pending=out)
    assert torch.equal(strategy.ask(state, pending=out[:7]).order, out[7:])


@every
def test_budget_ends_the_run_before_a_round_that_exceeds_it(make) -> None:
    free = play(make())
    first, second = (len(s.history) for s in free[1:3])
    strategy = make(max_observations=second - 1)
    end = play(strategy)[-1]
    assert end.stop_reason == "budget"
    assert len(end.history) == first
    assert play(make(max_observations=10))[-1].history.y.numel() == 0


@every
def test_seed_decides_the_draws(make) -> None:
    strategy = make()
    orders = [strategy.ask(strategy.init(seed)).order for seed in (0, 0, 1)]
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bound": 0.0}, ValueError, r"`bound` in \(0, inf\)"),
        ({"noise_std": None}, ValueError, "neither `noise_std` nor `pool.noise_var`"),
        ({"pool": Pool(X, noise_var=[0.1] * 5)}, ValueError, "both `noise_std` and"),
        ({"noise_std": -1.0}, ValueError, r"`noise_std` in \[0"),
        ({"gamma": -0.1}, ValueError, r"`gamma` in \[0"),
        ({"delta": 1.0}, ValueError, r"`delta` in \(0, 1\)"),
        ({"epsilon": -1.0}, ValueError, r"`epsilon` in \[0"),
        ({"returned": "both"}, ValueError, "`returned` to be one of .*'both'"),
        ({"estimate": "median"}, ValueError, "`estimate` to be one of .*'median'"),
        ({"max_observations": 0}, ValueError, "`max_observations` to be at least 1"),
    ],
)
@every
def test_bad_arguments_are_refused(make, options, error, message) -> None:
    with pytest.raises(error, match=message):
        make(**options)


def test_bad_levels_and_bad_tells_are_refused() -> None:
    with pytest.raises(ValueError, match="`threshold` to be finite"):
        melk(threshold=math.nan)
    with pytest.raises(ValueError, match=r"`omega` in \(0, 1\).*give `threshold`"):
        milk(omega=1.5)
    strategy = melk()
    state = strategy.init()
    batch = strategy.ask(state)
    y = torch.zeros(len(batch.indices))
    with pytest.raises(ValueError, match="no `yvar`, because Catoni's mean"):
        strategy.tell(state, batch.observe(y, yvar=0.1, means=True))


@every
def test_means_of_draws_are_refused(make) -> None:
    told = Observations([0, 1], [0.1, 0.2], counts=torch.tensor([5, 1]))
    with pytest.raises(ValueError, match=r"means of replicates \(`counts`\). Tell the"):
        make().tell(make().init(), told)


def test_more_pairs_than_the_memory_holds_are_refused_with_a_way_out() -> None:
    pool = Pool(torch.rand(300, 2, generator=torch.Generator().manual_seed(0)).double())
    given = {"omega": 0.5, "noise_std": 0.1}
    known = {"bound": 1.0, "max_observations": 10**9}
    with pytest.raises(ValueError, match="pairs fit `memory_budget` = 1000000") as said:
        MILKPACStrategy(pool, memory_budget=10**6, **known, **given)
    needed = int(re.findall(r"300 need (\d+)", str(said.value))[0])
    named = re.findall(r"`(\w+Strategy)`", str(said.value))
    assert named == ["MILKLinearStrategy"]
    for strategy in (
        MILKPACStrategy(pool, memory_budget=needed, **known, **given),
        MILKLinearStrategy(pool, batch_size=10, **given),
    ):
        state = strategy.init(seed=0)
        batch = strategy.ask(state)
        state = strategy.tell(state, batch.observe(pool.X[batch.order, 0]))
        assert len(state.classification.undecided) == 300
