r"""What all strategies for several outputs promise, and the baselines by themselves."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError

from botorch_lse import Pool
from botorch_lse.papers import (
    APEStrategy,
    EGESHStrategy,
    EGESRStrategy,
    GEGEBudgetStrategy,
    GEGEPACStrategy,
    RacingStrategy,
    UniformStrategy,
    empirical_gaps,
)
from botorch_lse.papers.kone2025.ape import gaussian_threshold
from botorch_lse.papers.kone2025.base import decide_one_by_one, keep_smallest
from botorch_lse.pareto import pareto_mask
from tests.registry import BUDGETED, CONFIDENT, StrategyCase
from tests.strategies.pareto_runs import (
    NOISE_STD,
    draw,
    linear_problem,
    make,
    run,
    step,
)
from tests.strategies.runs import assert_same

every = pytest.mark.parametrize("case", BUDGETED + CONFIDENT)
budgeted = pytest.mark.parametrize("case", BUDGETED)
X, MU = linear_problem()
TRUTH = pareto_mask(MU)


@pytest.mark.some(3)
@every
def test_without_noise_exactly_the_pareto_set_is_accepted(case: StrategyCase) -> None:
    state = run(make(case, X), MU, std=1e-9)
    assert state.stop_reason == "decided"
    assert torch.equal(state.classification.above, TRUTH)
    assert torch.equal(state.classification.below, ~TRUTH)


@pytest.mark.some(3)
@every
def test_three_outputs_and_one_output_work(case: StrategyCase) -> None:
    for m in (1, 3):
        X, mu = linear_problem(seed=4, K=8, m=m)
        state = run(make(case, X, m=m), mu, std=1e-9)
        assert torch.equal(state.classification.above, pareto_mask(mu))


@pytest.mark.some(1)
@every
def test_minimising_an_output_is_maximising_its_negative(case: StrategyCase) -> None:
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64)
    up = make(case, X)
    down = make(case, X, maximize=(True, False))
    states = [up.init(), down.init()]
    generator = torch.Generator().manual_seed(1)
    while not states[0].is_done:
        batch = up.ask(states[0])
        assert torch.equal(batch.order, down.ask(states[1]).order)
        y = MU[batch.order] + NOISE_STD * torch.randn(
            len(batch), 2, generator=generator, dtype=torch.float64
        )
        states = [
            up.tell(states[0], batch.observe(y)),
            down.tell(states[1], batch.observe(signs * y)),
        ]
    assert torch.equal(states[0].classification.above, states[1].classification.above)
    ours, theirs = up.estimate(states[0]), down.estimate(states[1])
    assert torch.allclose(ours.mean, signs * theirs.mean)


@every
def test_means_of_replicates_say_the_same_as_the_replicates(case: StrategyCase) -> None:
    strategy = make(case, X, noise_std=NOISE_STD)
    single = strategy.init()
    mean = strategy.init()
    generator = torch.Generator().manual_seed(2)
    for _ in range(4):
        if single.is_done:
            break
        batch = strategy.ask(single)
        y = MU[batch.order] + NOISE_STD * torch.randn(
            len(batch), 2, generator=generator, dtype=torch.float64
        )
        places = torch.searchsorted(batch.indices, batch.order)
        counts = batch.counts.double().unsqueeze(-1)
        averages = torch.zeros(len(counts), 2).double().index_add(0, places, y) / counts
        yvar = (NOISE_STD**2 / counts).expand(-1, 2)
        single = strategy.tell(single, batch.observe(y))
        mean = strategy.tell(mean, batch.observe(averages, yvar, means=True))
    assert single.n_used == mean.n_used
    assert (single.classification.side == mean.classification.side).all()
    a, b = strategy.estimate(single), strategy.estimate(mean)
    assert torch.allclose(a.mean, b.mean, rtol=1e-10)
    assert torch.allclose(a.half_width, b.half_width, rtol=1e-10)


@pytest.mark.some(5)
@every
@pytest.mark.parametrize("means", [True, False])
def test_replay_equals_telling_round_by_round(case: StrategyCase, means: bool) -> None:
    strategy = make(case, X)
    state = run(strategy, MU, seed=3, means=means, rounds=6)
    assert_same(strategy, strategy.replay(state.observations, seed=3), state)


@every
def test_part_of_a_round_may_be_told_first(case: StrategyCase) -> None:
    strategy = make(case, X)
    state = strategy.init()
    batch = strategy.ask(state)
    y = MU[batch.order]
    whole = batch.observe(y)
    part = strategy.tell(state, whole.select(torch.arange(0, len(batch), 2)))
    rest = strategy.ask(part)
    assert len(rest) == len(batch) - len(range(0, len(batch), 2))
    full = strategy.tell(part, rest.observe(MU[rest.order]))
    assert_same(strategy, full, strategy.tell(state, whole))


@pytest.mark.some(1)
@every
def test_a_simulation_is_the_loop_without_lists(case: StrategyCase) -> None:
    strategy = make(case, X)
    generator = torch.Generator().manual_seed(5)

    def measure(rows: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        scale = NOISE_STD / counts.double().sqrt().unsqueeze(-1)
        return MU[rows] + scale * draw(len(rows), 2, generator)

    simulated, state = strategy.simulate(measure), run(strategy, MU, seed=5)
    for name in ("above", "below", "mean", "lower"):
        ours = getattr(simulated.classification, name)
        assert torch.allclose(
            ours.double(), getattr(state.classification, name).double()
        )
    assert simulated.n_used == state.n_used
    assert simulated.stop_reason == state.stop_reason
    assert simulated.rounds == state.round


@every
def test_states_survive_pickling(case: StrategyCase) -> None:
    strategy = make(case, X)
    state = run(strategy, MU, rounds=2)
    again = pickle.loads(pickle.dumps((strategy, state)))
    assert_same(again[0], again[1], state)


@every
def test_measurements_nobody_asked_for_are_kept(case: StrategyCase) -> None:
    strategy = make(case, X, max_observations=20_000)
    state = strategy.init()
    batch = strategy.ask(state)
    foreign = batch.observe(MU[batch.order]).select(torch.tensor([0]))
    foreign = type(foreign)(foreign.indices, foreign.y)
    # A single measurement of an asked row belongs to the open round ...
    told = strategy.tell(state, foreign)
    assert told.n_used == 1
    # ... and extra measurements beyond a complete round are counted as well.
    full = strategy.tell(state, batch.observe(MU[batch.order]))
    if not full.is_done:
        extra = strategy.tell(full, foreign)
        assert extra.n_used == full.n_used + 1
        assert_same(strategy, strategy.replay(extra.observations), extra)


@pytest.mark.some(1)
@every
def test_the_order_of_the_rows_does_not_matter_without_ties(case: StrategyCase) -> None:
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(7))
    state = run(make(case, X), MU, std=1e-9)
    moved = run(make(case, X[order]), MU[order], std=1e-9)
    assert torch.equal(moved.classification.above, state.classification.above[order])


@pytest.mark.some(3)
@every
def test_the_answer_is_a_table_of_margins(case: StrategyCase) -> None:
    strategy = make(case, X)
    assert strategy.init().classification.undecided.all()
    state = run(strategy, MU)
    frame = state.classification.to_frame()
    assert set(frame["side"]) <= {"above", "below", "undecided"}
    assert not frame[["mean", "lower", "upper"]].isna().any().any()
    assert (frame["lower"] <= frame["mean"]).all()
    estimate = strategy.estimate(state)
    assert (estimate.lower <= estimate.upper).all()


@every
def test_the_noise_is_given_once(case: StrategyCase) -> None:
    pool = Pool(X, noise_var=torch.full((12,), 0.04))
    with pytest.raises(ValueError, match="`noise_std`"):
        make(case, X, pool=pool, noise_std=0.2)
    assert make(case, X, pool=pool, noise_std=None).sigma == pytest.approx(0.2)


@pytest.mark.parametrize("case", CONFIDENT)
def test_a_confidence_needs_the_noise(case: StrategyCase) -> None:
    with pytest.raises(ValueError, match="`noise_std`"):
        case.cls(Pool(X), maximize=(True, True))


@budgeted
def test_a_budget_is_needed_and_kept(case: StrategyCase) -> None:
    with pytest.raises(ValueError, match="`max_observations`"):
        case.cls(Pool(X), maximize=(True, True))
    assert run(make(case, X, max_observations=97), MU).n_used <= 97


@pytest.mark.some(1)
@pytest.mark.parametrize("cls", [GEGEBudgetStrategy, UniformStrategy])
def test_noise_is_estimated_from_residuals(cls: type) -> None:
    strategy = make(cls, X, max_observations=30_000)
    state = strategy.init()
    generator = torch.Generator().manual_seed(0)
    state = step(strategy, state, MU, generator, means=False)
    estimate = strategy.estimate(state)
    known = make(cls, X, max_observations=30_000, noise_std=NOISE_STD)
    other = known.estimate(known.replay(state.observations))
    assert torch.allclose(estimate.sigma, other.sigma, rtol=0.05)


@every
def test_outputs_are_declared(case: StrategyCase) -> None:
    for wrong in (True, (), (1, 0)):
        with pytest.raises(ValueError, match="`maximize`"):
            make(case, X, maximize=wrong)
    strategy = make(case, X)
    batch = strategy.ask(strategy.init())
    with pytest.raises(BotorchTensorDimensionError, match="`maximize`"):
        strategy.tell(strategy.init(), batch.observe(MU[batch.order][:, :1]))


def test_too_small_a_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="`max_observations` of at least 48, 4 rounds"):
        make(EGESHStrategy, X, max_observations=47)
    with pytest.raises(ValueError, match="`max_observations` to be at least 12"):
        make(EGESRStrategy, X, max_observations=11)


# --- the baselines ------------------------------------------------------------------


def test_uniform_measures_all_rows_equally_often() -> None:
    batch = make(UniformStrategy, X, max_observations=130)
    counts = batch.ask(batch.init()).counts
    assert counts.tolist() == [10] * 12


def test_successive_rejects_decides_one_row_per_round_by_all_data() -> None:
    strategy = make(EGESRStrategy, X, max_observations=400)
    state = strategy.init()
    generator = torch.Generator().manual_seed(0)
    open_rows = [12]
    while not state.is_done:
        state = step(strategy, state, MU, generator)
        open_rows.append(int(state.classification.undecided.sum()))
    # Audibert and Bubeck (2010): n_k = ceil((T - K) / (log-bar(K) (K + 1 - k))).
    harmonic = 0.5 + sum(1 / i for i in range(2, 13))
    first = math.ceil(388 / harmonic / 12)
    assert (
        state.history.select(state.history.round == 0).counts.tolist() == [first] * 12
    )
    assert open_rows[:4] == [12, 11, 10, 9]
    assert state.n_used <= 400


def test_successive_rejects_takes_the_row_with_the_largest_gap() -> None:
    strategy = make(EGESRStrategy, X, max_observations=400)
    state = run(strategy, MU, rounds=1, std=1e-9)
    assert int(state.classification.undecided.logical_not().nonzero()) == int(
        empirical_gaps(MU).argmax()
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("has_ties", [False, True])
def test_rounds_without_measurements_decide_as_one_after_the_other(
    m: int, has_ties: bool
) -> None:
    values = torch.randn(60, m, generator=torch.Generator().manual_seed(m)).double()
    values = values.round() if has_ties else values
    strategy = EGESRStrategy(Pool(values), maximize=(True,) * m, max_observations=999)
    start = belief = strategy.algorithm.question.start()
    for rounds in range(1, 60):
        belief = keep_smallest(belief, values[belief.open], 60 - rounds)
        together = decide_one_by_one(start, values, rounds)
        assert together.t == belief.t
        assert torch.equal(together.side, belief.side)


def test_sequential_halving_uses_the_samples_of_the_round_only() -> None:
    strategy = make(EGESHStrategy, X, max_observations=480)
    generator = torch.Generator().manual_seed(0)
    first = step(strategy, strategy.init(), MU + 5.0, generator)
    second = step(strategy, first, MU, generator, std=1e-9)
    rows = first.classification.undecided
    assert torch.allclose(strategy.estimate(second).mean[rows], MU[rows])
    assert int(rows.sum()) == 6


def test_racing_keeps_a_certain_row_that_others_may_depend_on() -> None:
    # Row 0 is optimal and clear; row 2 is near row 1, which row 0 barely dominates.
    mu = torch.tensor([[2.0, 2.0], [1.95, 1.95], [0.0, 3.0]], dtype=torch.float64)
    strategy = make(RacingStrategy, torch.eye(3), step=1000)
    state = run(strategy, mu, rounds=1, std=1e-9)
    # 0.05 is below the width of 2000 pulls: nothing is rejected, so 0 stays.
    assert not state.classification.above[0]
    assert state.classification.above[2]
    state = run(strategy, mu, std=1e-9)
    assert state.classification.above.tolist() == [True, False, True]


@pytest.mark.slow
def test_racing_with_a_tolerance_stops_earlier() -> None:
    mu = torch.tensor([[1.0, 1.0], [0.99, 0.99]], dtype=torch.float64)
    exact = run(make(RacingStrategy, torch.eye(2), step=500), mu)
    loose = run(make(RacingStrategy, torch.eye(2), step=500, epsilon=0.2), mu)
    assert loose.n_used < exact.n_used
    assert loose.classification.above[0]


def test_ape_measures_the_less_known_of_leader_and_challenger() -> None:
    strategy = make(APEStrategy, torch.eye(3), step=1)
    mu = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-3.0, -3.0]], dtype=torch.float64)
    state = run(strategy, mu, std=1e-9, rounds=60)
    told = torch.bincount(state.observations.measured, minlength=3)
    assert told[2] < told[0]
    assert abs(int(told[0] - told[1])) <= 1


def test_the_gaussian_threshold_is_near_x_plus_log_x() -> None:
    for x in (3.0, 6.0, 12.0, 50.0):
        value = gaussian_threshold(x)
        assert x < value < x + 2.5 * math.log(x) + 3
    assert gaussian_threshold(6.0) > gaussian_threshold(5.0)


def test_pac_forms_claim_a_confidence_and_budgeted_ones_none() -> None:
    for case in CONFIDENT:
        guarantee = make(case, X).guarantee
        assert guarantee.startswith("With probability 0.95")
    for case in BUDGETED:
        assert make(case, X).guarantee.startswith("No confidence is claimed")
    assert "exceeded by more" in make(GEGEPACStrategy, X, epsilon=0.1).guarantee
    assert "exceeded by more" in make(RacingStrategy, X, epsilon=0.1).guarantee
