r"""TruVaR against a step-by-step replay, and what its options promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from gpytorch.kernels import RBFKernel

from botorch_lse import Observations, Pool
from botorch_lse.ax.storage import decode_strategy, encode_strategy
from botorch_lse.models.gaussian_process import GPPrior
from botorch_lse.models.kernels import LearntKernel
from botorch_lse.strategies import (
    Above,
    GaussianProcess,
    StraddleStrategy,
    Strategy,
    TruVaRStrategy,
)
from tests.covering import covering, more_in_full
from tests.reference.truvar import TruVaRReplay
from tests.strategies.runs import (
    GP,
    NOISE_STD,
    assert_same,
    grid,
    make,
    measure,
    rows,
    run,
    step,
    truth,
)

X = grid()
N = len(X)
SIGMA = math.sqrt(GP.outputscale)


def travel(previous: int | None, to: torch.Tensor) -> torch.Tensor:
    r"""Distance to the last row, and one plus the second input."""
    still = 1.0 + X[to, 1]
    return still if previous is None else still + (X[to] - X[previous]).norm(dim=-1)


def travel_to(previous: int | None, row: int) -> float:
    return float(travel(previous, torch.tensor([row]))[0])


def log_beta(a: float, n: int = N):
    return lambda t: a * math.log(n * t**2)


def build(goal: str, **options) -> TruVaRStrategy:
    given = {"threshold": 0.4} if goal == "threshold" else {"threshold": None}
    if goal == "omega":
        given["omega"] = 0.6
    chosen = {"beta": None, "beta_factor": 0.5, "epsilon": 0.0, **options}
    return make(TruVaRStrategy, **given, **chosen)


def assert_replayed(strategy, replay: TruVaRReplay, steps: int = 9) -> None:
    trace, states = replay.run(steps), run(strategy, steps)
    assert states[-1].history.indices.tolist() == replay.rows
    assert len(states) == len(trace)
    for state, want in zip(states, trace, strict=True):
        belief, answer = state.belief, state.classification
        assert rows(belief.sides.candidates) == want["M"]
        if replay.threshold is not None:
            assert rows(answer.above) == want["H"]
            assert rows(answer.below) == want["L"]
            assert rows(answer.undecided) == want["M"]
        assert belief.memory.epochs.number == want["epoch"]
        assert belief.memory.epochs.eta == pytest.approx(want["eta"])
        assert belief.memory.epochs.beta == pytest.approx(want["beta"])
        assert strategy.spent(state) == pytest.approx(want["spent"])


OPTIONS = [
    {},
    {"eta_ratio": 0.5, "delta_bar": 0.2},
    {"monotone": False},
    {"only_open": True},
    {"anticipates": True},
]


# --- reference ----------------------------------------------------------------------


@pytest.mark.some(2)
@covering("goal, options", ["threshold", "maximiser"], OPTIONS)
def test_strategy_is_algorithm_one(goal: str, options: dict) -> None:
    if options.get("monotone") is False and goal == "maximiser":
        options = {**options, "beta_factor": 0.35}
    replay = TruVaRReplay(
        GP,
        X.numpy(),
        np.full(N, NOISE_STD**2),
        measure,
        log_beta(options.get("beta_factor", 0.5)),
        0.4 if goal == "threshold" else None,
        eta=SIGMA,
        ratio=options.get("eta_ratio", 0.1),
        delta_bar=options.get("delta_bar", 0.0),
        monotone=options.get("monotone", True),
        only_open=options.get("only_open", False),
        anticipates=options.get("anticipates", False),
    )
    assert_replayed(build(goal, **options), replay)


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["threshold", "maximiser"])
def test_costs_may_depend_on_the_row_before(goal: str) -> None:
    level = 0.4 if goal == "threshold" else None
    noise = np.full(N, NOISE_STD**2)
    replay = TruVaRReplay(
        GP, X.numpy(), noise, measure, log_beta(0.5), level, travel_to, eta=SIGMA
    )
    assert_replayed(build(goal, cost=travel), replay)


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["threshold", "maximiser"])
def test_rows_have_their_own_cost_and_noise(goal: str) -> None:
    costs, noise = 1.0 + X[:, 0], 0.02 + 0.5 * X[:, 1] ** 2
    pool = Pool(X, costs=costs, noise_var=noise)
    level = 0.4 if goal == "threshold" else None
    replay = TruVaRReplay(
        GP,
        X.numpy(),
        noise.numpy(),
        measure,
        log_beta(0.5),
        level,
        lambda before, row: float(costs[row]),
        eta=SIGMA,
    )
    assert_replayed(build(goal, pool=pool, noise_std=None), replay)


def test_widths_of_the_theorem_grow_with_time() -> None:
    strategy = build("threshold", beta_factor=None)
    assert strategy.algorithm.claims_confidence
    assert "Lemma C.1" in strategy.guarantee
    for t, state in enumerate(run(strategy, 5)):
        want = 2 * math.log(N * (math.pi * (t + 1)) ** 2 / (6 * strategy.delta))
        assert state.belief.memory.epochs.beta == pytest.approx(want)
    assert "No confidence" in build("threshold").guarantee


# --- epochs -------------------------------------------------------------------------


def epochs_of(noise_std: float, steps: int) -> list[tuple[int, float, float]]:
    r"""Epoch, target and squared width of one row whose values equal the level."""
    strategy = TruVaRStrategy(
        Pool([[0.0]]),
        0.0,
        model=RBFKernel().double(),
        noise_std=noise_std,
        beta_factor=1.0,
        eta_ratio=0.5,
    )
    state, table = strategy.init(), []
    for _ in range(steps + 1):
        e = state.belief.memory.epochs
        table.append((e.number, e.eta, pytest.approx(e.beta, rel=1e-12)))
        state = strategy.tell(state, Observations([0], [0.0]))
    return table


def test_epoch_table_equals_a_hand_computed_one() -> None:
    # Variance after n observations 1 / (1 + n). One row counts as two: beta_(i) = log(2
    # t_(i)^2). log 2: width 0.83 / sqrt(2) = 0.59 <= 1 at n = 1, so t_(2) = 2, log 8:
    # 1.442 / sqrt(1 + n) <= 0.5 first at n = 8, so t_(3) = 9, log 162.
    first, second, third = (math.log(2 * t**2) for t in (1, 2, 9))
    want = [(1, 1.0, first), *[(2, 0.5, second)] * 7, (3, 0.25, third)]
    assert epochs_of(1.0, 8) == want


def test_epochs_entered_at_one_time_share_their_width() -> None:
    # sigma = 0.01: widths 0.0083, then 1.442 * 0.01 = 0.0144 until eta = 2^-7.
    assert epochs_of(0.01, 1)[1] == (8, 2.0**-7, math.log(8))


def test_eta_zero_is_variance_reduction_in_one_epoch() -> None:
    strategy = build("threshold", eta=0.0)
    for state in run(strategy, 6):
        assert state.belief.memory.epochs.number == 1
        if not state.is_done:
            M = rows(state.belief.sides.candidates)
            seen = state.history.indices.tolist()
            left = [variances(seen, [x])[sorted(M)].sum() for x in range(N)]
            chosen = int(strategy.ask(state).order)
            assert left[chosen] == pytest.approx(min(left), rel=1e-9)


def variances(seen: list[int], more: list[int]) -> np.ndarray:
    at = seen + more
    P, noise = X.numpy(), np.full(len(at), NOISE_STD**2)
    return np.diag(GP.posterior(P, P[at], np.zeros(len(at)), noise)[1])


# --- batches ------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [None, travel])
def test_batches_are_greedy_steps_with_everything_but_variances_fixed(cost) -> None:
    strategy = build("threshold", batch_size=4, cost=cost)
    state = run(strategy, 2)[-1]
    belief, chosen = state.belief, []
    e, M = belief.memory.epochs, sorted(rows(belief.sides.candidates))
    previous = belief.memory.previous
    seen = state.history.indices.tolist()
    for _ in range(4):
        before = np.maximum(e.beta * variances(seen, chosen)[M], e.eta**2).sum()
        scores = [
            (
                before
                - np.maximum(e.beta * variances(seen, [*chosen, x])[M], e.eta**2).sum()
            )
            / (1.0 if cost is None else travel_to(previous, x))
            for x in range(N)
        ]
        previous = int(np.argmax(scores))
        chosen.append(previous)
    assert sorted(strategy.ask(state).order.tolist()) == sorted(chosen)


def test_batches_come_in_the_order_of_the_cheapest_next_row() -> None:
    strategy = build("threshold", batch_size=4, cost=travel)
    state = run(strategy, 2)[-1]
    order, previous = strategy.ask(state).order.tolist(), state.belief.memory.previous
    left, spent = sorted(order), strategy.spent(state)
    for row in order:
        costs = [travel_to(previous, x) for x in left]
        assert travel_to(previous, row) == pytest.approx(min(costs))
        left.remove(row)
        spent, previous = spent + travel_to(previous, row), row
    after = step(strategy, state)
    assert after.belief.memory.previous == order[-1]
    assert strategy.spent(after) == pytest.approx(spent)


def test_a_batch_goes_on_when_all_widths_are_reached_inside_it() -> None:
    strategy = build("threshold", batch_size=8, eta=1.5)
    chosen = strategy.ask(strategy.init())
    assert len(chosen) == 8
    assert len(chosen.indices) > 4  # not the same row for want of a score


# --- goals --------------------------------------------------------------------------


@pytest.mark.some(0, slow=2)
@more_in_full("monotone", True, False)
def test_maximiser_is_found_and_recommended(monotone: bool) -> None:
    strategy = build("maximiser", beta_factor=0.5, monotone=monotone)
    state = run(strategy, 200)[-1]
    assert state.stop_reason == "decided"
    best = strategy.recommend(state)
    assert rows(state.classification.above) == {best}
    assert best == int(truth().argmax())
    assert int(state.classification.below.sum()) == N - 1


def test_undecided_maximiser_is_recommended_by_the_mean() -> None:
    strategy = build("maximiser")
    state = run(strategy, 5)[-1]
    M, mean = state.belief.sides.candidates, state.belief.posterior.mean
    assert not state.is_done
    assert rows(state.classification.undecided) == rows(M)
    assert not state.classification.above.any()
    assert strategy.recommend(state) == int(mean.argmax())


@pytest.mark.slow
def test_epsilon_accepts_a_row_that_no_other_can_beat_by_more() -> None:
    strict, loose = build("maximiser"), build("maximiser", epsilon=0.5)
    before, last = run(loose, 200)[-2:]
    assert len(last.history) < len(run(strict, 200)[-1].history)
    answer, best = last.classification, loose.recommend(last)
    others = before.belief.sides.candidates & (torch.arange(N) != best)
    gap = float(answer.upper[others].max() - answer.lower[best])
    assert 0 < gap <= 0.5
    assert truth().max() - truth()[best] <= 0.5


@pytest.mark.slow
def test_implicit_level_uses_the_levels_of_lse_imp() -> None:
    strategy = build("omega", beta_factor=1.0, epsilon=0.3)
    state = run(strategy, 300)[-1]
    assert state.stop_reason == "decided"
    level = 0.6 * truth().max()
    above, below = state.classification.above, state.classification.below
    assert (truth()[above.numpy()] > level - 0.2).all()
    assert (truth()[below.numpy()] < level + 0.2).all()
    for before, after in zip(run(strategy, 20), run(strategy, 20)[1:], strict=False):
        assert rows(after.belief.sides.candidates) <= rows(
            before.belief.sides.candidates
        )


# --- options ------------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["threshold", "maximiser", "omega"])
def test_prefilter_scores_the_most_promising_rows(goal: str) -> None:
    strategy = build(goal, prefilter=3)
    state = run(strategy, 4)[-1]
    belief = state.belief
    mean, sigma = belief.posterior.mean, belief.posterior.sigma
    half = math.sqrt(belief.memory.epochs.beta) * sigma
    quick = {
        "threshold": half - (mean - 0.4).abs(),
        "maximiser": mean + half,
        "omega": half - (mean - 0.6 * mean.max()).abs(),
    }[goal]
    row = int(strategy.ask(state).order)
    top = quick.argsort(descending=True)[:3].tolist()
    assert row in top
    context = strategy.algorithm.context(belief, torch.empty(0, dtype=torch.long))
    previous = belief.memory.previous
    scores = strategy.rule.scores(context, previous, torch.arange(N))
    assert float(scores[row]) == float(scores[top].max())
    everything = build(goal, prefilter=N)
    assert_same_choice(everything, build(goal))


def assert_same_choice(one: TruVaRStrategy, other: TruVaRStrategy) -> None:
    states = run(one, 4)
    assert (
        states[-1].history.indices.tolist()
        == run(other, 4)[-1].history.indices.tolist()
    )


def test_memory_budget_does_not_change_choices() -> None:
    assert_same_choice(build("threshold", memory_budget=2**12), build("threshold"))


EVERY = [
    ("threshold", {"cost": travel, "batch_size": 3}),
    ("maximiser", {"batch_size": 3}),
    ("maximiser", {"cost": travel, "monotone": False}),
    ("omega", {"batch_size": 2}),
    ("threshold", {"anticipates": True, "only_open": True, "batch_size": 2}),
    ("threshold", {"prefilter": 5}),
]


@pytest.mark.some(3)
@pytest.mark.parametrize(("goal", "options"), EVERY)
def test_replay_and_storage_continue_identically(goal: str, options: dict) -> None:
    strategy = build(goal, model=GP.kernel(), **options)
    state = run(strategy, 4, seed=3)[-1]
    batch = strategy.ask(state).order.tolist()
    first = Observations(batch[:1], [measure(batch[0], 50)])
    part = strategy.tell(state, first)
    again = decode_strategy(encode_strategy(strategy), strategy.pool)
    for one in (strategy, again):
        assert_same(one, one.replay(state.observations, seed=3), state)
        assert_same(one, one.replay(part.observations, seed=3), part)
    if len(batch) > 1:
        assert strategy.ask(part).order.tolist() == batch[1:]


def test_fitted_models_are_refitted_with_costs_and_levels() -> None:
    points = X[::3]
    pool = Pool(points).at_noise_levels([0.01, 0.25], [4.0, 1.0])
    strategy = TruVaRStrategy(pool, 0.4, n_initial=4, max_observations=8, epsilon=0.1)
    state = strategy.init()
    while not state.is_done:
        batch = strategy.ask(state)
        y = [truth()[3 * (row % 12)] + 0.1 for row in batch.order.tolist()]
        state = strategy.tell(state, batch.observe(y))
    answer = state.classification
    torch.testing.assert_close(answer.mean[:12], answer.mean[12:])
    assert strategy.spent(state) == float(pool.costs[state.history.indices].sum())
    assert_same(strategy, strategy.replay(state.observations), state)
    assert state.history.indices[0] >= 12  # the cheap copy before any fit


# --- noise levels -------------------------------------------------------------------


@pytest.mark.slow
def test_noise_levels_are_a_choice_per_cost() -> None:
    levels, prices = [1e-4, 0.1, 1.0], [1.5, 1.3, 1.0]
    pool = Pool(X).at_noise_levels(levels, prices)
    assert pool.names == ("x0", "x1", "noise_level")
    assert pool.X[:, -1].tolist() == [k for k in range(3) for _ in range(N)]
    copies = np.tile(X.numpy(), (3, 1))
    replay = TruVaRReplay(
        GP,
        copies,
        pool.noise_var.numpy(),
        lambda row, before: measure(row % N, before),
        log_beta(0.5, 3 * N),
        0.4,
        lambda before, row: float(pool.costs[row]),
        eta=SIGMA,
    )
    kernel = GP.kernel()
    strategy = build("threshold", pool=pool, noise_std=None, model=kernel)
    trace, states = replay.run(6), [strategy.init()]
    while len(states) < len(trace):
        value = replay.value
        states.append(step(strategy, states[-1], value))
    assert states[-1].history.indices.tolist() == replay.rows
    assert len({row // N for row in replay.rows}) > 1
    own = GPPrior.from_kernel(GP.kernel())
    with_dims = build(
        "threshold",
        pool=pool,
        noise_std=None,
        model=GPPrior(
            own.mean_module,
            own.covar_module,
            own.scale,
            own.shift,
            transform_inputs=first_two,
        ),
    )
    again = with_dims.replay(states[-1].observations)
    torch.testing.assert_close(
        again.classification.mean, states[-1].classification.mean
    )


def first_two(inputs: torch.Tensor) -> torch.Tensor:
    return inputs[..., :2]


def test_other_strategies_refuse_models_that_take_the_level_for_an_input() -> None:
    pool = Pool(X).at_noise_levels([0.01, 0.25], [4.0, 1.0])
    said = (
        r"`model` to leave out the last column of the pool, 'noise_level', but got .*"
    )
    for model in (None, RBFKernel().double(), LearntKernel(RBFKernel().double())):
        with pytest.raises(
            ValueError, match=said + "Use `TruVaRStrategy`, or a kernel"
        ):
            Strategy(pool, Above(0.4), model=GaussianProcess(model))
        with pytest.raises(ValueError, match=said):
            StraddleStrategy(pool, 0.4, model=model)
    with pytest.raises(BotorchTensorDimensionError, match="for the 3 columns"):
        StraddleStrategy(pool, 0.4, model=RBFKernel(ard_num_dims=2).double())
    kernel = RBFKernel(active_dims=(0, 1)).double()
    kernel.lengthscale = 0.3
    assert Strategy(pool, Above(0.4), model=GaussianProcess(LearntKernel(kernel)))
    strategy = Strategy(pool, Above(0.4), model=GaussianProcess(kernel))
    y = truth()[:4]
    told = strategy.tell(strategy.init(), Observations(N + torch.arange(4), y))
    mean = told.classification.mean
    torch.testing.assert_close(mean[:N], mean[N:])


def test_copies_of_the_maximiser_are_one_point() -> None:
    pool = Pool(X).at_noise_levels([0.01, 0.25], [4.0, 1.0])
    strategy = build("maximiser", pool=pool, noise_std=None, model=GP.kernel())
    state = strategy.init()
    while not state.is_done:
        state = step(strategy, state, lambda row, before: measure(row % N, before))
    best = int(truth().argmax())
    assert rows(state.classification.above) == {best, best + N}


def test_tables_keep_their_columns_at_noise_levels() -> None:
    import pandas as pd

    table = pd.DataFrame({"depth": [1.0, 2.0], "soil": ["clay", "sand"]})
    pool = Pool(table).at_noise_levels([0.1, 1.0], [3.0, 1.0])
    assert pool.table["soil"].tolist() == ["clay", "sand"] * 2
    assert pool.table["noise_level"].tolist() == [0, 0, 1, 1]
    assert pool.costs.tolist() == [3.0, 3.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="bare points, but it has costs and noise_var"):
        pool.at_noise_levels([1.0], [1.0])
    with pytest.raises(BotorchTensorDimensionError, match="`costs`"):
        Pool(table).at_noise_levels([0.1, 1.0], [3.0])


# --- misuse -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eta": -1.0}, r"`eta` in \[0, inf\), but got -1"),
        ({"eta_ratio": 1.0}, r"`eta_ratio` in \(0, 1\)"),
        ({"delta_bar": -0.1}, "`delta_bar`"),
        ({"beta_factor": 0.0}, "`beta_factor`"),
        ({"beta": 4.0}, "both `beta` and `beta_factor`"),
        ({"prefilter": 0}, "`prefilter` to be at least 1"),
        ({"monotone": "no"}, "`monotone` to be True or False, but got 'no'"),
        ({"memory_budget": 0}, "`memory_budget` to be at least 1"),
        ({"memory_budget": 2e9}, "`memory_budget` to be a whole number"),
        ({"cost": 3.0}, "`cost` to be a function"),
        ({"omega": 0.5}, "exactly one of `threshold` or `omega`"),
        ({"pool": Pool(X, costs=torch.zeros(N))}, "`pool.costs` to be positive"),
        (
            {"pool": Pool(X, costs=torch.ones(N)), "cost": travel},
            "both `cost` and `pool.costs`",
        ),
        ({"noise_std": None}, "does not know the noise of a new observation"),
    ],
)
def test_bad_arguments_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build("threshold", **options)


def test_bad_costs_are_refused() -> None:
    with pytest.raises(ValueError, match="`costs` to be non-negative, but entry 0"):
        Pool(X, costs=-torch.ones(N))
    with pytest.raises(BotorchTensorDimensionError, match=r"`costs`.*\(36\)"):
        Pool(X, costs=torch.ones(N - 1))
    negative = build("threshold", cost=lambda previous, rows: -1.0 * rows)
    with pytest.raises(ValueError, match="`cost` to be positive and finite, but entry"):
        negative.ask(negative.init())
    short = build("threshold", cost=lambda previous, rows: torch.ones(3))
    with pytest.raises(BotorchTensorDimensionError, match=r"per row \(36\)"):
        short.ask(short.init())
    silent = build("threshold", cost=lambda previous, rows: None)
    with pytest.raises(ValueError, match=r"per row \(36\), but got None"):
        silent.ask(silent.init())


def test_anticipating_needs_an_explicit_goal() -> None:
    with pytest.raises(UnsupportedError, match="`anticipates` to be False"):
        build("omega", anticipates=True)
